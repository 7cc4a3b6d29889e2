/*
 * analyzer/trace/decode.h: what records say that have times, or other units than the analyzer's. Each function is for
 * records of the kinds it names alone. Called by the stages, on whatever thread they read.
 */
#ifndef CUDASPY_DECODE_H
#define CUDASPY_DECODE_H

#include "record.h"

/* SPY_EV_WAIT: a thread waited inside a call. */
struct wait_record {
	uint8_t kind; /* enum spy_wait_kind */
	uint8_t flags; /* enum spy_wait_flag, or-ed */
	uint8_t device, holder_device;
	uint16_t fn, outer_fn, holder_fn; /* numbers in the trace */
	uint32_t count;
	uint32_t holder; /* thread, 0 unknown */
	uint64_t object;
	uint64_t ns; /* that all waits of the record took together */
	uint64_t begin_ns; /* of the first of them */
};

static inline struct wait_record decode_wait(const struct record *record)
{
	const struct spy_rec_wait *raw = &record->raw->wait;

	return (struct wait_record){.kind = raw->kind,
				    .flags = raw->flags,
				    .device = raw->device,
				    .holder_device = raw->holder_device,
				    .fn = raw->fn,
				    .outer_fn = raw->outer_fn,
				    .holder_fn = raw->holder_fn,
				    .count = raw->count,
				    .holder = raw->holder,
				    .object = raw->object,
				    .ns = record_span_ns(record, raw->duration),
				    .begin_ns = record->ns - record_past_ns(record, raw->span)};
}

/* SPY_EV_PLACE: frames in Python, then return addresses. */
struct place_record {
	uint8_t n_python, n_frames; /* words of the record: those in Python, those behind them */
	uint64_t
		function; /* where the innermost frame's function begins, of a thread that ran; 0 unknown */
	/* Of one that ran Python: the frames are functions in C, as return addresses, and `function` is the interpreter's; 0: what
	 * ran is unknown. */
	bool in_c;
};

static inline struct place_record decode_place(const struct record *record)
{
	const struct spy_rec_place *raw = &record->raw->place;
	uint8_t python = raw->python & ~SPY_PLACE_FUNCTION, count = raw->count;
	bool has_function = raw->python & SPY_PLACE_FUNCTION && count > python;

	count -= has_function;
	python = python < count ? python : count;
	return (struct place_record){.n_python = python,
				     .n_frames = count - python,
				     .function = has_function ? raw->words[count] : 0,
				     .in_c = has_function && python};
}

/* SPY_EV_OUTSIDE: a thread waited between two calls. */
struct outside_record {
	uint8_t kind; /* enum spy_wait_kind */
	uint8_t file; /* enum spy_file_kind */
	uint8_t flags; /* enum spy_wait_flag, or-ed */
	/* Of a poll with SPY_WAIT_LATE, which is the record's first: descriptors; it was not to wait. */
	uint16_t ready;
	bool at_once;
	uint32_t count; /* waits */
	uint32_t holder;
	uint64_t object;
	uint64_t return_address;
	uint64_t ns; /* that all waits of the record took together */
	uint64_t begin_ns; /* of the first of them */
	uint64_t begin_time; /* the same in cycles, for what records are compared by */
};

static inline struct outside_record decode_outside(const struct record *record)
{
	const struct spy_rec_outside *raw = &record->raw->outside;
	uint64_t span_ns = record_past_ns(record, raw->span);

	return (struct outside_record){
		.kind = raw->kind,
		.file = raw->file,
		.flags = raw->flags,
		.ready = raw->flags & SPY_WAIT_LATE ? raw->ready : 0,
		.at_once = raw->flags & SPY_WAIT_LATE && raw->at_once,
		.count = raw->count,
		.holder = raw->holder,
		.object = raw->object,
		.return_address = raw->caller,
		.ns = min_u64(record_span_ns(record, raw->duration), span_ns),
		.begin_ns = record->ns - span_ns,
		.begin_time = raw->time - min_u64(raw->span, raw->time)};
}

/* SPY_EV_SCHED, SPY_EV_GAP: what the scheduler did with the thread since the last look. */
struct sched_record {
	uint32_t process_ran; /* as in struct spy_rec_sched */
	uint64_t window_ns;
	uint64_t running_ns, not_running_ns;
	uint64_t unknown_ns; /* not_running_ns may be so much more */
};

static inline struct sched_record decode_sched(const struct record *record)
{
	const struct spy_rec_sched *raw = &record->raw->sched;
	uint64_t window_ns = record_span_ns(record, raw->window);

	return (struct sched_record){.process_ran = raw->process_ran,
				     .window_ns = window_ns,
				     .running_ns = raw->running_ns,
				     .not_running_ns = raw->not_running_ns,
				     .unknown_ns =
					     raw->unknown == UINT16_MAX
						     ? window_ns
						     : (uint64_t)raw->unknown * SPY_UNKNOWN_UNIT};
}

/* SPY_EV_TAKEN, SPY_EV_RELEASED, SPY_EV_HELD: a lock was acquired without a wait, or released. */
struct lock_record {
	uint8_t kind; /* enum spy_wait_kind */
	bool shared; /* acquired by a reader */
	uint16_t outer_fn; /* number in the trace */
	uint64_t object;
	/* Of SPY_EV_HELD: */
	bool acquired_at_once; /* since_ns is known */
	uint64_t since_ns; /* when it was acquired */
	uint64_t waking_ns; /* that the release took */
};

static inline struct lock_record decode_lock(const struct record *record)
{
	const struct spy_rec_held *raw = &record->raw->held; /* the others are its beginning */
	struct lock_record lock = {.kind = raw->kind,
				   .shared = raw->kind == SPY_WAIT_READ,
				   .outer_fn = raw->outer_fn,
				   .object = raw->object};

	if (record->event != SPY_EV_HELD)
		return lock;
	lock.acquired_at_once = raw->held;
	lock.since_ns = record->ns - record_past_ns(record, raw->held);
	lock.waking_ns = record_span_ns(record, (uint64_t)raw->span * SPY_SPAN_UNIT);
	return lock;
}

/* SPY_EV_HOST_FUNCTION: a stream ran a function on the host, until the record's time. */
struct host_function_record {
	uint8_t device;
	uint16_t fn; /* number of the call in the trace */
	uint32_t tid; /* thread that submitted it */
	uint64_t function, stream, return_address;
	uint64_t begin_ns;
	uint64_t submitted_ns;
};

static inline struct host_function_record decode_host_function(const struct record *record)
{
	const struct spy_rec_host_function *raw = &record->raw->host_function;

	return (struct host_function_record){
		.device = raw->device,
		.fn = raw->fn,
		.tid = raw->tid,
		.function = raw->function,
		.stream = raw->stream,
		.return_address = raw->caller,
		.begin_ns = record->ns - record_past_ns(record, raw->duration),
		.submitted_ns = timeline_ns(&record->stream->trace->timeline, raw->handed)};
}

/* SPY_EV_RANGE, SPY_EV_RANGE_VALUE */
struct range_record {
	uint8_t what; /* enum spy_range_what */
	bool has_id;
	uint32_t name; /* number in the process */
	uint64_t id; /* of a started range; 0: none */
	uint64_t since_ns; /* SPY_RANGE_OPEN: when it began */
};

static inline bool record_is_of_range(const struct record *record)
{
	return record->event == SPY_EV_RANGE || record->event == SPY_EV_RANGE_VALUE;
}

static inline struct range_record decode_range(const struct record *record)
{
	const struct spy_rec_range_value *raw =
		&record->raw->range_value; /* begins like the other */
	bool has_id = record->event == SPY_EV_RANGE_VALUE;
	struct range_record range = {.what = raw->what, .has_id = has_id, .name = raw->name};

	if (range.what == SPY_RANGE_OPEN)
		range.since_ns =
			min_u64(timeline_ns(&record->stream->trace->timeline, has_id ? raw->id : 0),
				record->ns);
	else if (has_id && range.what != SPY_RANGE_PUSH)
		range.id = raw->id;
	return range;
}

/* SPY_EV_COLLECTIVE_RAN */
struct collective_ran_record {
	uint32_t comm, id;
	uint64_t begin_ns, end_ns; /* the GPU's timer; 0: unknown */
	uint64_t seen_ns; /* when the thread learnt that it had begun */
};

static inline struct collective_ran_record decode_collective_ran(const struct record *record)
{
	const struct spy_rec_collective_ran *raw = &record->raw->collective_ran;

	return (struct collective_ran_record){
		.comm = raw->comm,
		.id = raw->id,
		.begin_ns = raw->begin_ns,
		.end_ns = raw->end_ns,
		.seen_ns = min_u64(timeline_ns(&record->stream->trace->timeline, raw->seen),
				   record->ns)};
}

/* SPY_EV_PART */
struct part_record {
	uint8_t state; /* enum spy_part_state */
	uint32_t number;
	uint64_t calls;
	uint32_t removed; /* parts that the recorder has deleted */
	uint64_t removed_calls;
	uint64_t removed_ns; /* that they lasted */
};

static inline struct part_record decode_part(const struct record *record)
{
	const struct spy_rec_part *raw = &record->raw->part;
	uint64_t removed = raw->removed_until - min_u64(raw->recording_began, raw->removed_until);

	return (struct part_record){.state = (uint8_t)min_u64(raw->state, UINT8_MAX),
				    .number = raw->number,
				    .calls = raw->calls,
				    .removed = raw->removed,
				    .removed_calls = raw->removed_calls,
				    .removed_ns = record_span_ns(record, removed)};
}

/* SPY_EV_COST: calls of a thread in a cost window. */
struct cost_record {
	bool valid; /* a window that is used: else only its counts are */
	uint8_t kind; /* enum spy_cost_kind */
	unsigned int n; /* functions */
	uint32_t calls;
	uint64_t window;
	uint64_t ns; /* that it lasted for the thread */
	uint64_t delay_ns; /* of that, ready to run but on no CPU */
	struct {
		uint16_t fn; /* number in the trace */
		uint32_t count;
	} functions[SPY_COST_FUNCTIONS];
};

static inline struct cost_record decode_cost(const struct record *record)
{
	const struct spy_rec_cost *raw = &record->raw->cost;
	struct cost_record cost = {.valid = raw->window && raw->kind < SPY_COST_KINDS &&
					    raw->end > raw->begin && raw->window % 4,
				   .kind = raw->kind,
				   .n = (unsigned int)min_u64(raw->n, SPY_COST_FUNCTIONS),
				   .calls = raw->calls,
				   .window = raw->window,
				   .ns = record_span_ns(record, raw->end - raw->begin),
				   .delay_ns = raw->delay_ns};

	for (unsigned int i = 0; i < cost.n; i++) {
		cost.functions[i].fn = raw->fn[i];
		cost.functions[i].count = raw->count[i];
	}
	return cost;
}

/* SPY_EV_SAMPLE: where a thread was, between two calls. */
struct sample_record {
	uint64_t ns; /* when it was looked at */
	uint64_t weight_us; /* so much of its time it stands for */
	uint32_t tid, place, holder;
	uint16_t state; /* enum spy_sample_state, or-ed */
};

static inline struct sample_record decode_sample(const struct record *record)
{
	const struct spy_rec_sample *raw = &record->raw->sample;

	return (struct sample_record){.ns = record->ns - min_u64(raw->ago, record->ns),
				      .weight_us = raw->weight,
				      .tid = raw->tid,
				      .place = raw->place,
				      .holder = raw->holder,
				      .state = raw->state};
}

/* SPY_EV_GPU_CLOCK: CUPTI's clock against the trace's. */
struct gpu_clock_record {
	bool valid; /* taken before the record was written */
	uint64_t ns, gpu_ns; /* the same moment on both */
	uint64_t error_ns;
	uint64_t dropped;
};

static inline struct gpu_clock_record decode_gpu_clock(const struct record *record)
{
	const struct spy_rec_gpu_clock *raw = &record->raw->gpu_clock;

	return (struct gpu_clock_record){
		.valid = raw->clock <= raw->time,
		.ns = timeline_ns(&record->stream->trace->timeline, raw->clock),
		.gpu_ns = raw->gpu_ns,
		.error_ns = record_span_ns(record, raw->error),
		.dropped = raw->dropped};
}

#endif
