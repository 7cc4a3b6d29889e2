/*
 * shim/sample/sampler.h: a thread of the recorder's that looks where the program's threads are between their calls. Its row is in
 * entry/subsystems.c, which says on which threads these run.
 */
#ifndef CUDASPY_SHIM_SAMPLER_H
#define CUDASPY_SHIM_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

struct spy_thread;

#define SPY_SAMPLE_HZ 100
#define SPY_SAMPLE_HZ_MOST 1000

/* The library is loaded. */
void spy_sampler_load(void);

/* A recording begins: what was asked for. */
void spy_sampler_begin(uint64_t frequency);

/* Starts it, once there is a context of CUDA and another thread. On a thread of the program. */
void spy_sampler_look(struct spy_thread *thread, uint64_t now, bool between);

/* A thread records again: it may have gone to sleep. */
void spy_sampler_wake(struct spy_thread *thread);

/* It writes nothing from here on. Waits a moment for the look it is at. */
void spy_sampler_stop(void);

/* The same, and waits until its threads are gone: the program is about to do what a process with several threads may not. */
void spy_sampler_leave(void);

/* In a forked child: there is none. */
void spy_sampler_forked(void);

#endif
