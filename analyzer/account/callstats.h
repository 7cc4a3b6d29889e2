/*
 * analyzer/account/callstats.h: the calls, counted and timed by function, thread and device. Memory
 * grows with those, not with records.
 */
#ifndef CUDASPY_CALLSTATS_H
#define CUDASPY_CALLSTATS_H

#include "base/histogram.h"
#include "filter/filter.h"
#include "model/model.h"

struct calls {
	uint64_t count;
	uint64_t failed;
	uint64_t total_ns;
	struct histogram durations_ns;
};

/* Calls of the application itself (depth 0). */
struct calls_sum {
	uint64_t count;
	uint64_t total_ns;
	uint64_t counted; /* of counted functions */
	uint64_t copied_bytes; /* by copies at any depth */
	uint64_t fast_copies_ns; /* copy_most_ns of those on the fast path */
};

#define CALLSTATS_DEVICES 256

/* Of a process and a GPU: from the first call that allocates, copies or launches to the last that
 * works on it or waits for it. A context alone, such as peer access needs, takes no turn on the
 * GPU. */
struct device_use {
	uint64_t first_ns, last_ns; /* the first one's begin, the last one's end; 0: none */
	uint64_t first_end_ns; /* the first one's end */
};

struct callstats {
	const struct model *model;
	/* By function number, for depth 0 and for calls inside other calls. */
	struct calls *direct, *nested;
	uint64_t *counted; /* calls of counted functions, by function number */
	bool *called; /* by function number: there is something in these */
	size_t n_functions;
	struct calls_sum *threads; /* by thread index */
	size_t n_threads;
	/* Both by callstats_index. */
	struct calls_sum *devices;
	struct device_use *uses;
	bool used[CALLSTATS_DEVICES]; /* by any process */
	size_t n_processes;
	struct calls_sum all;
	uint64_t
		run_ns; /* all time that threads which call CUDA had: thread_lived_ns of each; at the end */
	struct filtering *filtering; /* what of the recording counts */
	/* Calls of functions that have a name are counted in direct and nested by another thread, which reads ahead. */
	bool named_elsewhere;
	/* Of the failed ones of depth 0: what they returned answers a question (callstats_answer). */
	uint64_t answers;
	/* The last one that does not: of a program that an error ends, it. fn, result: as of the record. */
	struct last_failed {
		uint64_t ns;
		uint32_t fn;
		uint16_t result; /* 0: there is none */
	} last_failed;
	/* By process: calls that tried what not every GPU or system has (callstats_trial). Answers, where the process goes on. */
	struct trials {
		uint64_t n;
		struct last_failed last;
	} * trials;
};

/*
 * What a call asks to be told by an error, and a program goes on with: that CUDA is gone already, which its own libraries find
 * out as a process ends; that peer access is enabled already. NULL: the result is no such answer. Whether memory, or code
 * for a GPU, was only asked for depends on the function.
 */
const char *callstats_answer(uint32_t result);

/* What such a call tried, where it is the function that makes an answer of the result; NULL: nothing. */
const char *callstats_trial(const char *function, enum spy_contract contract, uint32_t result);

/* Failed calls that were answers, and the last one that was none. At the end: a trial was answered where work for a GPU came
 * after it, and most of that function's calls have found what they wanted. */
uint64_t callstats_answers(const struct callstats *s, struct last_failed *last);

/* A call of depth 0 that failed: an answer, a trial, or the last failure so far. */
void callstats_failed(struct callstats *s, const struct model *model, const struct record *record);

/* Of a process and a device, as work_index. */
static inline size_t callstats_index(const struct callstats *s, size_t process, uint32_t device)
{
	return device * s->n_processes + process;
}

void callstats_init(struct callstats *s, const struct model *model, struct filtering *filtering);
void callstats_release(struct callstats *s);

/* Adds what was counted of the parts of a set, whose threads have their numbers. */
struct join;
void callstats_join(struct callstats *s, struct callstats *const *parts, const struct model *model,
		    const struct join *join);

/* Room for the record's function and thread. */
void callstats_grow(struct callstats *s, const struct model *model);

/* Room for the thread, whose call is not counted. */
static inline void callstats_room(struct callstats *s, const struct model *model,
				  const struct thread *thread)
{
	if (thread->index >= s->n_threads)
		callstats_grow(s, model);
}

/* `count` calls of a counted function, by a thread or by one we cannot tell (NULL). */
void callstats_count(struct callstats *s, const struct thread *thread, uint32_t fn, uint64_t count);

static inline bool callstats_is_work(const struct record *record)
{
	if (record->event != SPY_EV_OP)
		return record->event > SPY_EV_OP;
	return record->contract == SPY_CONTRACT_LAUNCH || record->contract == SPY_CONTRACT_SUBMIT;
}

static inline void callstats_use(struct device_use *use, const struct record *record)
{
	if (unlikely(!use->first_ns)) {
		use->first_ns =
			record->ns > record->duration_ns ? record->ns - record->duration_ns : 0;
		use->first_end_ns = record->ns;
	}
	use->last_ns = record->ns;
}

static inline void callstats_add(struct calls *calls, bool failed, uint64_t duration_ns)
{
	calls->count++;
	calls->total_ns += duration_ns;
	if (unlikely(failed))
		calls->failed++;
	histogram_add(&calls->durations_ns, duration_ns);
}

static inline void callstats_add_call(struct callstats *s, const struct record *record)
{
	if (s->named_elsewhere && likely(record->trace_fn < record->stream->trace->n_functions))
		return;
	s->called[record->fn] = true;
	callstats_add(record->depth ? &s->nested[record->fn] : &s->direct[record->fn],
		      record_failed(record), record->duration_ns);
}

/* Sees each record after the model. */
static inline void callstats_see(struct callstats *s, const struct model *model,
				 const struct record *record)
{
	struct calls_sum *thread, *device;
	size_t of_device;

	if (unlikely(record->thread->index >= s->n_threads) ||
	    unlikely(model->set->functions.count > s->n_functions))
		callstats_grow(s, model);
	thread = &s->threads[record->thread->index];
	if (record_is_call(record)) {
		of_device = callstats_index(s, record->process, record->device);
		device = &s->devices[of_device];
		callstats_add_call(s, record);
		s->used[record->device] = true;
		if (!record->depth) {
			if (record_failed(record))
				callstats_failed(s, model, record);
			thread->count++;
			thread->total_ns += record->duration_ns;
			device->count++;
			device->total_ns += record->duration_ns;
			if (record->event >= SPY_EV_OP &&
			    (s->uses[of_device].first_ns || callstats_is_work(record)))
				callstats_use(&s->uses[of_device], record);
		}
		if (record->event == SPY_EV_COPY && copy_took_place(record_copy(record))) {
			thread->copied_bytes =
				add_capped(thread->copied_bytes, record_bytes(record));
			device->copied_bytes =
				add_capped(device->copied_bytes, record_bytes(record));
		}
	} else if (record->event == SPY_EV_COUNT) {
		callstats_count(s, record->thread, record->fn, record_count(record)->count);
	}
}

/* The same for a call inside another one of which no more is known. */
static inline void callstats_see_nested(struct callstats *s, uint32_t fn, bool failed,
					uint64_t duration_ns)
{
	s->called[fn] = true;
	callstats_add(&s->nested[fn], failed, duration_ns);
}

/* Adds the calls of a function that were counted elsewhere. */
void calls_add(struct calls *sum, const struct calls *more);

/* How many threads made calls that were recorded. */
uint64_t callstats_callers(const struct callstats *s);

/* As run_ns, of one process, and how many threads that is. */
uint64_t callstats_process_ns(const struct callstats *s, const struct process *process,
			      uint64_t *n_threads);

/* After the last record: adds what only the boards have counted, sums up. */
void callstats_finish(struct callstats *s, struct model *model);

#endif
