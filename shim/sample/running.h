/*
 * shim/sample/running.h: where threads are that run. On the sampler's thread.
 *
 * The kernel interrupts such a thread at intervals of its own CPU time, and copies its registers and the top of its stack to where
 * the sampler finds them (perf_event_open(2), a software clock, for the process's own threads): no signal, no descriptor kept. Many
 * systems refuse that, and it is not tried under a seccomp filter, which may kill who tries.
 */
#ifndef CUDASPY_SHIM_RUNNING_H
#define CUDASPY_SHIM_RUNNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPY_RUNNING_MOST 16 /* threads that are interrupted, at once */

/* What there is of one thread. Zeros at first. */
struct spy_running {
	void *ring; /* NULL: it is not interrupted */
};

struct spy_interrupted;

/* Its registers and stack at the last interruption, which was at *ns (CLOCK_MONOTONIC) and not before since_ns; they stay until
 * the next look. False: there is none, yet, or none since then, or it cannot be had: the thread is interrupted from now on, if it
 * may be. */
bool spy_running_look(struct spy_running *running, uint32_t tid, uint64_t since_ns, uint64_t *ns,
		      struct spy_interrupted *at);

/* Its return addresses then, innermost first, and where the function begins in which it was (0 unknown). 0: there are none. */
size_t spy_running_walk(const struct spy_interrupted *at, uint64_t *frames, size_t most,
			uint64_t *function);

/* The thread is interrupted no more. */
void spy_running_end(struct spy_running *running);

/* In nanoseconds of CPU time; before the first look. */
void spy_running_begin(uint64_t interval_ns);

/* In a forked child, which has nothing of it. */
void spy_running_forked(void);

#endif
