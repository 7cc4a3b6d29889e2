/*
 * analyzer/live_view/tables.h: the picture of running programs as tables of a report, which `ps`, `top` and `snapshot` share.
 */
#ifndef CUDASPY_LIVE_TABLES_H
#define CUDASPY_LIVE_TABLES_H

#include "base/report.h"
#include "live/verdict.h"

void live_add_verdicts(struct report *report, const struct verdicts *v);
void live_add_processes(struct report *report, const struct live_words *w);

/* Who waits for whom, from the threads that nobody waits for down to those that wait for none. */
void live_add_chains(struct report *report, const struct live_words *w, uint64_t after_ns);

/* stacks: the last recorded stack of each thread that has not gone on for after_ns. */
void live_add_threads(struct report *report, const struct live_words *w, uint64_t after_ns,
		      bool stacks);
void live_add_locks(struct report *report, const struct live_words *w);
void live_add_gpus(struct report *report, const struct live_words *w);
void live_add_ranks(struct report *report, const struct live_words *w, uint64_t after_ns);

/* The costliest calls and waits between the two looks. */
void live_add_costs(struct report *report, const struct live_words *w);

/* Its last recorded stack, which need not be of the call it is in; NULL: none. */
const struct table *live_last_stack(struct report *report, const struct live_words *w,
				    const struct live_thread *t);

/* Calls a second of a process, between the two looks. */
uint64_t live_calls_per_s(const struct live_process *process);

/* Threads of it that wait for a lock, a thread or a GPU. */
uint64_t live_waiting(const struct live_process *process);

/* Name of a thread's state in tables, JSON and metrics: "lock", "gpu", … */
const char *live_doing_name(enum live_doing doing);

#endif
