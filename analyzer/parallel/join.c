/*
 * analyzer/parallel/join.c: the parts of a set become one analysis, stage by stage. Called by analysis.c when all have been
 * read.
 */
#include <stdlib.h>
#include "base/redact.h"
#include "parts.h"

#define ON_JOIN(...) __VA_ARGS__;
#define STAGE(field, type, when, ...) \
	static bool join_##field(struct analysis *a, struct parts *p, struct join *join) \
	{ \
		type **parts = xcalloc(p->n + 1, sizeof(*parts)); \
		bool joined = true; \
		size_t i; \
\
		(void)a; \
		(void)join; \
		for (i = 0; i < p->n; i++) \
			parts[i] = &p->all[i].a.field; \
		__VA_ARGS__ \
		free(parts); \
		return joined; \
	}
#include "findings/stages.def"

static void print_warnings(const struct parts *p)
{
	struct creation_order order = {0};

	for (size_t i = 0; i < p->n; i++)
		for (size_t j = 0; j < p->all[i].n_warnings; j++)
			creation_order_add(&order, &p->all[i].warnings[j].at, i,
					   p->all[i].warnings[j].text);
	creation_order_sort(&order);
	for (size_t i = 0; i < order.n; i++)
		warn("%s", (const char *)order.all[i].what);
	creation_order_release(&order);
}

bool parts_join(struct parts *p)
{
	struct analysis *a = p->whole;

	if (redact_is_full())
		join_refuse(&p->join, "more users or folders than --redact keeps");
	if (p->join.refused)
		return false;
#define STAGE(field, type, when, ...) \
	if ((when) && !join_##field(a, p, &p->join)) \
		return false;
#include "findings/stages.def"
	print_warnings(p);
	return true;
}
