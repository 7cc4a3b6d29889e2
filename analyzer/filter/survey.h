/*
 * analyzer/filter/survey.h: what a trace set has that can be asked for by name or by time: threads, GPUs, ranks,
 * functions, ranges; when it began and ended. One reading of all records, made only where there is a filter: names may
 * come after the records that they decide upon, and a name that does not exist is to be said before anything is shown.
 */
#ifndef CUDASPY_SURVEY_H
#define CUDASPY_SURVEY_H

#include "model/model.h"

#define SURVEY_DEVICES 256

struct survey_name {
	struct survey_name *next;
	bool given; /* by the program; else it is the system's */
	char name[];
};

struct survey_thread {
	uint64_t key; /* index of the trace, number */
	struct survey_name *names;
	UT_hash_handle hh;
};

/* A process, or a process with one of its GPUs, is a rank of a job. */
struct survey_rank {
	uint32_t process, number, ranks; /* ranks: of the communicator that says so */
	uint8_t device;
	bool whole; /* all calls of the process are the rank's */
};

struct survey {
	uint64_t first_ns, last_ns; /* of all records; since the epoch */
	struct survey_span {
		uint64_t first_ns, last_ns; /* first_ns > last_ns: no records */
	} * processes; /* by index of the trace */
	struct survey_thread *threads;
	bool devices[SURVEY_DEVICES]; /* that were current in calls, or worked */
	uint8_t *functions; /* by the set's number: SURVEY_CALLED, … */
	size_t n_functions;
	struct range_names ranges;
	struct survey_rank *ranks;
	size_t n_ranks;
};

/* How a function was called: by the application itself; inside another call, or only counted. */
enum { SURVEY_CALLED = 1, SURVEY_NESTED = 2 };

void survey_make(struct survey *s, struct trace_set *set);
void survey_release(struct survey *s);

static inline bool survey_calls(const struct survey *s, uint32_t fn)
{
	return fn < s->n_functions && s->functions[fn];
}

/* NULL: the process has no such thread. */
const struct survey_thread *survey_find_thread(const struct survey *s, uint32_t process,
					       uint32_t tid);

static inline uint32_t survey_tid(const struct survey_thread *thread)
{
	return (uint32_t)thread->key;
}

#endif
