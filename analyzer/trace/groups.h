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
void groups_copy(struct groups *g, const struct groups *of);
void groups_release(struct groups *g);
void groups_unite(struct groups *g, uint32_t a, uint32_t b);
uint32_t groups_find(struct groups *g, uint32_t a);

/* Unites what the first reading has seen to belong together (struct trace_use): those that use the same GPU. */
void groups_by_use(struct groups *g, const struct trace_set *set);

/* Only where GPU times of one of them are recorded: then what the GPU did is put in order as a whole. */
void groups_by_timed_use(struct groups *g, const struct trace_set *set);

/* Those of which GPU times of the same GPU are recorded: that has been read to the end. */
void groups_by_gpu_times(struct groups *g, const struct trace_set *set);

/* A GPU of a host, by the hash of its uuid. */
uint64_t groups_gpu_key(const struct trace *trace, const char *uuid);
int groups_by_key(const void *a, const void *b); /* for qsort */

/* GPUs that processes of several parts use: part_of: by index of the trace. The caller frees their keys, ascending. */
uint64_t *groups_elsewhere(const struct trace_set *set, const uint32_t *part_of, size_t *n);

#endif
