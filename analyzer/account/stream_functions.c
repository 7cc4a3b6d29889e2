/*
 * analyzer/account/stream_functions.c: functions on the host in streams. Called by work.c, and when one has run.
 */
#include <stdlib.h>
#include <string.h>
#include "stream_functions.h"

#define FUNCTIONS_FIRST 16

/* Room for one more; of too many the oldest is forgotten. */
static void make_room(struct stream_functions *f)
{
	size_t waiting = f->n - f->first;

	if (waiting == STREAM_FUNCTIONS_MOST) {
		f->first++;
		waiting--;
	}
	if (f->n < f->size)
		return;
	if (2 * waiting > f->size || !f->size) {
		f->size = f->size ? 2 * f->size : FUNCTIONS_FIRST;
		f->all = xrealloc(f->all, f->size, sizeof(*f->all));
	}
	memmove(f->all, f->all + f->first, waiting * sizeof(*f->all));
	f->first = 0;
	f->n = waiting;
}

void stream_function_handed(struct gpu_stream *stream, uint64_t begin_ns)
{
	struct stream_functions *f = stream->functions;

	if (!f)
		f = stream->functions = xcalloc(1, sizeof(*f));
	make_room(f);
	f->all[f->n++] = (struct stream_function){
		.begin_ns = begin_ns, .submitted = stream->submitted, .work = stream->work};
}

bool stream_function_ran(struct gpu_stream *stream, uint64_t handed_ns,
			 struct stream_function *function)
{
	struct stream_functions *f = stream->functions;

	while (f && f->first < f->n && f->all[f->first].begin_ns + ROUNDED_NS < handed_ns)
		f->first++;
	if (!f || f->first == f->n)
		return false;
	*function = f->all[f->first++];
	return true;
}

void stream_functions_free(struct stream_functions *functions)
{
	if (functions)
		free(functions->all);
	free(functions);
}
