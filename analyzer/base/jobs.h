/*
 * analyzer/base/jobs.h: how many threads read a trace set. By default, as many as this process has CPUs.
 */
#ifndef CUDASPY_JOBS_H
#define CUDASPY_JOBS_H

#include <stdbool.h>
#include <stddef.h>

/* A row for verbs that read traces; `member` is a const char *. */
/* clang-format off */
#define JOBS_OPTION(type, member) \
	{"jobs", 'j', "N", "read with so many threads: as many as there are CPUs by default, 1: with one after the other", offsetof(type, member)}
/* clang-format on */

#define JOBS_MOST 1024

/* What followed the option; NULL: it was not given, then CUDASPY_JOBS counts. 0, or -EINVAL after a message. */
int jobs_choose(const char *option);

/* At least 1. */
unsigned int jobs_now(void);

/* With CUDASPY_JOBS_TRACE in the environment: a line on stderr. For tests. */
void jobs_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* With CUDASPY_JOBS_TRACE=phases: the phase before has ended, and the one of that name begins. A line says what the one
 * before took: time, CPU time of all threads, page faults, switches. NULL: none begins. By the main thread. */
void jobs_phase(const char *name);
bool jobs_logs_phases(void);

#endif
