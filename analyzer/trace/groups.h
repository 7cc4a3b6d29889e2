/*
 * analyzer/trace/groups.h: which processes of a set have to be read together, for their records say something of one
 * another: those that use the same GPU.
 */
#ifndef CUDASPY_GROUPS_H
#define CUDASPY_GROUPS_H

#include "trace.h"

/* Which processes are read together: the first one of each group. */
struct groups {
	uint32_t *with; /* by index of the trace: another one of its group */
	size_t n;
};

void groups_init(struct groups *g, size_t n);
void groups_release(struct groups *g);
void groups_unite(struct groups *g, uint32_t a, uint32_t b);
uint32_t groups_find(struct groups *g, uint32_t a);

/* Unites what the first reading has seen to belong together (struct trace_use). */
void groups_by_use(struct groups *g, const struct trace_set *set);

/* Those of which GPU times of the same GPU are recorded: that has been read to the end. */
void groups_by_gpu_times(struct groups *g, const struct trace_set *set);

#endif
