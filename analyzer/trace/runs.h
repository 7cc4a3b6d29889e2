/*
 * analyzer/trace/runs.h: which traces of a set are of one run of a program: those of one `cudaspy run`, of one job of a
 * launcher, else those whose processes were there at the same time.
 */
#ifndef CUDASPY_RUNS_H
#define CUDASPY_RUNS_H

#include "base/util.h"

struct trace;
struct trace_set;

struct trace_run {
	const struct trace *first; /* which began first: its program and number name the run */
	const char *id; /* of `cudaspy run`; NULL: none */
	uint64_t begin_ns; /* since the epoch; 0 unknown */
	size_t n_traces;
};

/* When all traces are open: fills set->runs, in the order in which they began. set->runs is freed with the set. */
void runs_find(struct trace_set *set);

/* Leaves out (trace->left_out) what is not of that run: "last", the id of one or how it begins, or a process of it as
 * PROGRAM.PID. -ENOENT after a message: there is none, or several. */
int runs_choose(struct trace_set *set, const char *wanted);

/* Says which runs there are, if there are several; and how one is chosen, if the verb can (`may_choose`). */
void runs_warn(const struct trace_set *set, bool may_choose);

/* "app.123 (4 processes, 2026-03-14 15:09)"; the caller frees. */
char *run_text(const struct trace_run *run);

#endif
