/*
 * analyzer/export/proto.c: a message's memory. Called by perfetto.c.
 */
#include <stdlib.h>
#include "proto.h"

void proto_make_room(struct proto *p, size_t n)
{
	p->room = 2 * (p->room + n) + 64;
	p->bytes = xrealloc(p->bytes, p->room, 1);
}

void proto_release(struct proto *p)
{
	free(p->bytes);
	*p = (struct proto){0};
}
