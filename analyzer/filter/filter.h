/*
 * analyzer/filter/filter.h: the part of a recording that a verb is asked about: --thread, --gpu, --rank, --process,
 * --function, --range, --from and --to.
 *
 * A verb has FILTER_OPTIONS among its options, and gives what followed them to filter_parse. The filter is then bound to
 * a trace set (filtering_begin): names are looked up, times become times of the trace, and what does not exist is an
 * error that says what there is. From then on filter_outside says of each record by which options it is left out.
 *
 * Readings must see all records, also those left out: they say what memory is, who holds a lock, and what GPUs
 * have to do.
 */
#ifndef CUDASPY_FILTER_H
#define CUDASPY_FILTER_H

#include "survey.h"
#include "words.h"
#include "expect/phase.h"

#define FILTER_NO_FUNCTION UINT32_MAX

/* Calls of the application. */
struct filter_sum {
	uint64_t calls, ns;
};

/* A filter at work on a trace set. */
struct filtering {
	const struct filter *filter;
	unsigned int kinds; /* asked for, a bit for each kind; 0: nothing is left out */
	struct trace_set *set;
	/* --from and --to: records from from_ns on and before to_ns are in. */
	uint64_t from_ns, to_ns;
	bool no_phase; /* asked for, and no process has one: it is the whole recording */
	struct survey survey;
	bool *processes; /* of --process, by index of the trace */
	bool *ranks; /* of --rank, by index of the survey's … */
	uint8_t *
		ranks_of; /* … and by that of the trace: enum filter_answer, unknown: depends on the GPU */
	/* Answers so far: enum filter_answer, by thread index and by the set's function number. */
	uint8_t *threads, *functions;
	size_t n_threads, n_functions;
	uint8_t *devices; /* by thread index: current, as last seen */
	size_t n_devices;
	uint64_t found[FILTER_KINDS]; /* threads, GPUs … of the recording that are meant */
	/* So far: what each option leaves out by itself, and all of them together. */
	struct filter_sum outside[FILTER_KINDS], left_out;
	uint64_t counted; /* calls that were only counted, left out */
};

/*
 * Binds a parsed filter, which must live as long, to a set; NULL: nothing is left out. Reads the set once where names
 * or times are needed. phases: of its processes (expect_learn); may be NULL where filter_needs_phase says so. 0, or
 * -EINVAL after a message. filtering_end in all cases.
 */
int filtering_begin(struct filtering *f, const struct filter *filter, struct trace_set *set,
		    const struct phases *phases);
void filtering_end(struct filtering *f);

/* For a part of the set: with no answers and sums yet. Then those of all parts become the whole's. */
void filtering_copy(struct filtering *f, const struct filtering *whole);
void filtering_release_copy(struct filtering *f);
void filtering_join(struct filtering *f, struct filtering *const *parts, size_t n);

/* Are --from and --to the begin or the end of the working phase? */
bool filter_needs_phase(const struct filter *filter);

/* Cuts the phases to the time from --from to --to. What is told of GPUs and ranks is of the phases. */
void filtering_cut(const struct filtering *f, struct phases *phases);

/*
 * By which options is the record left out? A bit for each kind; 0: it is in. Not by --range: that is known by those who
 * follow ranges (account/ranges.h). The model has seen the record. Each record has to be shown, in the order of time.
 */
unsigned int filter_outside(struct filtering *f, const struct record *record);

/* The same for calls of which only the number is known. thread: NULL unknown. */
unsigned int filter_outside_counted(struct filtering *f, size_t process,
				    const struct thread *thread, uint32_t fn);

/* A call of the application is left out, by these. */
void filter_count(struct filtering *f, unsigned int outside, uint64_t duration_ns);

/* Is the GPU one of those meant, as the process numbers it? True where no option says which. */
bool filter_has_gpu(const struct filtering *f, size_t process, uint8_t device);

static inline bool filter_has(const struct filtering *f, enum filter_kind kind)
{
	return f->kinds >> kind & 1;
}

/* Is there a limit in time? */
static inline bool filter_has_window(const struct filtering *f)
{
	return filter_has(f, FILTER_FROM) || filter_has(f, FILTER_TO);
}

/* Was the function called anywhere in the recording? False without a filter: then those who count calls know. */
static inline bool filter_saw_call(const struct filtering *f, uint32_t fn)
{
	return unlikely(f->kinds) && survey_calls(&f->survey, fn);
}

#endif
