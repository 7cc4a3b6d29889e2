/*
 * analyzer/trace/record.h: a record on its way through the readings, and what it says, in the analyzer's units: times in
 * nanoseconds since the epoch, durations in nanoseconds, nothing longer than the clock has run. What a record is in its
 * file (union spy_any) concerns only those that find, copy or print records.
 *
 * record_…() of a kind of record is NULL for records of any other kind; decode_…() is for records of its kind alone.
 */
#ifndef CUDASPY_RECORD_H
#define CUDASPY_RECORD_H

#include "trace.h"

/* Valid until the next one is asked for. */
struct record {
	const union spy_any *raw;
	struct stream *stream;
	uint64_t ns; /* its time, since the epoch */
	union {
		uint64_t head; /* all of them, for what only compares them */
		struct {
			uint16_t event; /* enum spy_event */
			/* Of calls alone: */
			uint16_t trace_fn; /* the function's number in its trace */
			uint16_t result;
			uint8_t device, depth;
		};
	};
	uint32_t process; /* index of the stream's trace */
	uint32_t tid; /* thread that the slot belonged to */
	/* The rest is the model's: model_apply fills it. */
	struct thread *thread; /* the writer */
	uint32_t fn; /* of calls and counts: number in the set's functions */
	uint8_t contract; /* enum spy_contract: the function's */
	uint64_t duration_ns; /* of calls */
};

_Static_assert(offsetof(struct spy_rec_head, event) == 8 &&
		       offsetof(struct spy_rec_head, fn) == 10 &&
		       offsetof(struct spy_rec_head, result) == 12 &&
		       offsetof(struct spy_rec_head, device) == 14 &&
		       offsetof(struct spy_rec_head, depth) == 15,
	       "struct record has them in one word, as the file has");

/* The record is that one. Of records that are no calls the word may lie behind the record in part: what it is in is larger. */
static inline void record_set(struct record *record, const union spy_any *raw)
{
	record->raw = raw;
	record->head = raw_word(raw, offsetof(struct spy_rec_head, event));
}

/* The same, of the record that the stream's reader has in hand, for what reads streams one by one. */
static inline void record_of_stream(struct record *record, struct stream *stream)
{
	record_set(record, stream->reader.record);
	record->stream = stream;
	record->ns = timeline_ns(&stream->trace->timeline, raw_time(record->raw));
}

static inline uint64_t record_span_ns(const struct record *record, uint64_t cycles)
{
	return timeline_span_ns(&record->stream->trace->timeline, cycles);
}

/* Not longer than the clock had run at that time. */
static inline uint64_t record_past_ns(const struct record *record, uint64_t cycles)
{
	return min_u64(record_span_ns(record, cycles), record->ns);
}

/* In cycles: what records of one trace are compared by. */
static inline uint64_t record_time(const struct record *record)
{
	return raw_time(record->raw);
}

/* The same of a call: how long it took; no longer than the clock has run. */
static inline uint64_t record_cycles(const struct record *record)
{
	return raw_duration(record->raw);
}

/* Text i of a record that has some; NUL-terminated. */
static inline const char *record_text(const struct record *record, unsigned int i)
{
	return raw_text(record->raw, i);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static inline bool record_is_call(const struct record *record)
{
	return record->event <= SPY_EV_MEMORY;
}

/* A call of the application's own. */
static inline bool record_is_outer_call(const struct record *record)
{
	return record_is_call(record) && !record->depth;
}

/* Results that are answers and no failures: cudaErrorNotReady, CUDA_ERROR_NOT_READY. */
#define RESULT_NOT_READY 600

static inline bool result_is_failure(uint16_t result)
{
	return unlikely(result) && result != SPY_RESULT_NONE && result != RESULT_NOT_READY;
}

/* Only of calls: did it return an error? */
static inline bool record_failed(const struct record *record)
{
	return result_is_failure(record->result);
}

/* Return address of a call; 0: the record does not say. */
static inline uint64_t record_return_address(const struct record *record)
{
	if (record->event == SPY_EV_NESTED || !record_is_call(record))
		return 0;
	return raw_word(record->raw, sizeof(struct spy_rec_head)) & RAW_48_BITS;
}

/* Handles of the default streams in all records: the process's own, and each thread's own. */
enum { STREAM_LEGACY = 1, STREAM_PER_THREAD = 2 };

/* The stream the call works in; 0: none. */
static inline uint64_t record_stream(const struct record *record)
{
	uint64_t word;

	if (record->event < SPY_EV_OP || record->event > SPY_EV_MEMORY)
		return 0;
	word = raw_word(record->raw, sizeof(struct spy_rec_head) + 8);
	if (record->event == SPY_EV_LAUNCH)
		return word >> 16;
	return record->event == SPY_EV_COPY ? word & RAW_48_BITS : word;
}

/* Number of the kernel of a launch; 0: unknown, or no launch. */
static inline uint32_t record_kernel(const struct record *record)
{
	if (record->event != SPY_EV_LAUNCH)
		return 0;
	return (uint32_t)(raw_word(record->raw, sizeof(struct spy_rec_head)) >> 48) |
	       (uint32_t)raw_word(record->raw, sizeof(struct spy_rec_head) + 8) << 16;
}

/* Number of the thread's current context, 0 unknown. */
static inline uint16_t record_context(const struct record *record)
{
	return record->raw->call_head.context;
}

#define RECORD_AS(name, type, field, kind) \
	static inline const struct type *record_##name(const struct record *record) \
	{ \
		return record->event == (kind) ? &record->raw->field : NULL; \
	}
#define RECORD_OF(name, kind) RECORD_AS(name, spy_rec_##name, name, kind)
RECORD_OF(op, SPY_EV_OP)
RECORD_OF(copy, SPY_EV_COPY)
RECORD_OF(memory, SPY_EV_MEMORY)

/* Handle of an event, graph, context or stream, or a peer device; 0: none. */
static inline uint64_t record_object(const struct record *record)
{
	const struct spy_rec_op *op = record_op(record);

	return op ? op->object : 0;
}

/* Bytes of a copy or of memory; 0: none, or unknown. */
static inline uint64_t record_bytes(const struct record *record)
{
	const struct spy_rec_copy *copy = record_copy(record);
	const struct spy_rec_memory *memory = record_memory(record);

	if (copy)
		return copy->bytes;
	return memory ? memory->bytes : 0;
}

/* Of a copy: enum spy_direction. */
static inline uint8_t record_direction(const struct record *record)
{
	const struct spy_rec_copy *copy = record_copy(record);

	return copy ? copy->direction : SPY_DIR_UNKNOWN;
}

/* Does it move data, if it does not fail? Not if it only becomes part of a graph. */
static inline bool copy_moves(const struct spy_rec_copy *copy)
{
	return !copy->captured && copy->bytes;
}

static inline bool copy_took_place(const struct spy_rec_copy *copy)
{
	return copy_moves(copy) && !result_is_failure(copy->head.result);
}

static inline bool copy_is_pageable(const struct spy_rec_copy *copy)
{
	return copy->src_kind == SPY_MEM_PAGEABLE || copy->dst_kind == SPY_MEM_PAGEABLE;
}

/* Both are assumed, so that most machines are faster. Pageable: `tests/gpu/jobs.py server` copied 3.0 GB while its GPU worked for 677 ms in all (H200, --gpu). */
#define COPY_PAGEABLE_BYTES_IN_NS 3
#define COPY_PINNED_BYTES_IN_NS 12
/* Of pageable memory no more is on its way when the call is over: docs/CUDA_FACTS.md, "Asynchronous copies of pageable memory". */
#define COPY_STAGED_BYTES (3 << 20)

static inline bool copy_is_pinned(const struct spy_rec_copy *copy)
{
	return copy->src_kind == SPY_MEM_PINNED || copy->dst_kind == SPY_MEM_PINNED;
}

/* For how long a GPU was copying between it and the host, at most, if the machine is no slower than these; the call took call_ns. */
static inline uint64_t copy_most_ns(const struct spy_rec_copy *copy, uint64_t call_ns)
{
	if (!copy_took_place(copy) || copy->direction == SPY_DIR_D2D ||
	    copy->direction == SPY_DIR_H2H)
		return 0;
	if (copy_is_pinned(copy))
		return copy->bytes / COPY_PINNED_BYTES_IN_NS;
	return min_u64(copy->bytes, COPY_STAGED_BYTES + COPY_PAGEABLE_BYTES_IN_NS * call_ns) /
	       COPY_PAGEABLE_BYTES_IN_NS;
}

/* From one GPU to another, as far as the recorder knew. */
static inline bool copy_is_between_gpus(const struct spy_rec_copy *copy)
{
	return copy->src_device != copy->dst_device && copy->src_device != SPY_DEVICE_NONE &&
	       copy->dst_device != SPY_DEVICE_NONE;
}

/* Where memory lies of which no allocation was seen (a pool's) is asked for large copies only. */
static inline bool copy_may_be_between_gpus(const struct spy_rec_copy *copy)
{
	bool known = copy->src_device != SPY_DEVICE_NONE && copy->dst_device != SPY_DEVICE_NONE;

	return known ? copy->src_device != copy->dst_device
		     : copy->direction == SPY_DIR_D2D || copy->direction == SPY_DIR_UNKNOWN;
}

/* A null pointer was freed. */
static inline bool memory_is_nothing(const struct spy_rec_memory *memory)
{
	return !memory->address && !memory->bytes;
}

/* ---- what has neither times nor other units --------------------------------------------------- */

RECORD_OF(thread, SPY_EV_THREAD)
RECORD_OF(count, SPY_EV_COUNT)
RECORD_AS(kernel_name, spy_rec_kernel, kernel, SPY_EV_KERNEL)
RECORD_OF(module, SPY_EV_MODULE)
RECORD_OF(gpu, SPY_EV_GPU)
RECORD_OF(note, SPY_EV_NOTE)
RECORD_OF(non_cuda_thread, SPY_EV_NON_CUDA_THREAD)
RECORD_OF(mps, SPY_EV_MPS)
RECORD_OF(share, SPY_EV_SHARE)
RECORD_OF(stack, SPY_EV_STACK)
RECORD_OF(python_code, SPY_EV_PYTHON_CODE)
RECORD_OF(python_stack, SPY_EV_PYTHON_STACK)
RECORD_OF(place, SPY_EV_PLACE)
RECORD_OF(gpu_look, SPY_EV_GPU_LOOK)
RECORD_OF(gpu_op, SPY_EV_GPU_OP)
RECORD_OF(gpu_submit, SPY_EV_GPU_SUBMIT)
RECORD_OF(gpu_state, SPY_EV_GPU_STATE)
RECORD_OF(range_name, SPY_EV_RANGE_NAME)
RECORD_OF(nvtx_name, SPY_EV_NVTX_NAME)
RECORD_OF(nccl_comm, SPY_EV_NCCL_COMM)
RECORD_OF(collective, SPY_EV_COLLECTIVE)
RECORD_OF(nccl_state, SPY_EV_NCCL_STATE)
RECORD_OF(window, SPY_EV_WINDOW)
#undef RECORD_OF
#undef RECORD_AS

#endif
