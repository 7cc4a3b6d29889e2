/*
 * analyzer/trace/reader.h: the records of one stream, in the order they were written.
 *
 * A stream is what one slot of a process wrote: stream_NNNN, or with a size bound the files
 * stream_NNNN_K that are left of it, and then stream_NNNN_tail. The reader is the only part of the
 * analyzer that distrusts bytes: behind it a record lies in memory as a whole, has a known type,
 * and its texts end. What cannot be read costs the rest of its packet or its file, and is counted.
 *
 * A file may be a part of another one, a container; then path is what it is called, and offsets are its own.
 *
 * Files are read with pread into one buffer for each stream, not mapped: a file that shrinks under
 * a mapping kills its reader, and with a buffer memory stays the same however long the trace is.
 *
 * A process that has not ended in order may still be writing. Then the tail is copied before
 * anything else of the stream is looked at: packets only move from the tail to the stream's file,
 * so that what follows is never behind what is in our hands.
 */
#ifndef CUDASPY_READER_H
#define CUDASPY_READER_H

#include "base/util.h"
#include "pack/container.h"
#include "cudaspy/trace_format.h"

/* Any record; which one, other.event says. */
union spy_any {
	struct spy_rec_other other;
	struct spy_rec_head call_head;
	struct spy_rec_inner inner;
	struct spy_rec_call call;
	struct spy_rec_op op;
	struct spy_rec_launch launch;
	struct spy_rec_copy copy;
	struct spy_rec_memory memory;
	struct spy_rec_thread thread;
	struct spy_rec_count count;
	struct spy_rec_kernel kernel;
	struct spy_rec_module module;
	struct spy_rec_gpu gpu;
	struct spy_rec_clock clock;
	struct spy_rec_note note;
	struct spy_rec_wait wait;
	struct spy_rec_taken taken;
	struct spy_rec_sched sched; /* and SPY_EV_GAP */
	struct spy_rec_outside outside;
	struct spy_rec_non_cuda_thread non_cuda_thread;
	struct spy_rec_mps mps;
	struct spy_rec_share share;
	struct spy_rec_stack stack;
	struct spy_rec_held held;
	struct spy_rec_python_code python_code;
	struct spy_rec_python_stack python_stack;
	struct spy_rec_gpu_op gpu_op;
	struct spy_rec_gpu_submit gpu_submit;
	struct spy_rec_gpu_clock gpu_clock;
	struct spy_rec_gpu_state gpu_state;
	struct spy_rec_range range;
	struct spy_rec_range_value range_value;
	struct spy_rec_range_name range_name;
	struct spy_rec_nvtx_name nvtx_name;
	struct spy_rec_nccl_comm nccl_comm;
	struct spy_rec_collective collective;
	struct spy_rec_collective_ran collective_ran;
	struct spy_rec_nccl_state nccl_state;
	struct spy_rec_window window;
	struct spy_rec_cost cost;
	struct spy_rec_part part;
	struct spy_rec_host_function host_function;
	struct spy_rec_place place;
	struct spy_rec_sample sample;
	struct spy_rec_gpu_look gpu_look;
};

/* Per record type: bytes before the texts, number of texts, name in metadata. */
struct record_layout {
	uint16_t bytes;
	uint8_t texts;
	const char *name;
};
extern const struct record_layout record_layouts[SPY_EV_COUNT_ALL];

static inline bool raw_is_call(const union spy_any *record)
{
	return record->other.event <= SPY_EV_MEMORY;
}

/*
 * What every call is asked for, taken from the words of its record (trace_format.h): gcc reads a
 * field of 48 bits in a packed struct byte by byte.
 */
static inline uint64_t raw_word(const union spy_any *raw, size_t offset)
{
	uint64_t word;

	__builtin_memcpy(&word, (const char *)raw + offset, sizeof(word));
	return word;
}

#define RAW_48_BITS (((uint64_t)1 << 48) - 1)

static inline uint64_t raw_time(const union spy_any *raw)
{
	return raw_word(raw, offsetof(struct spy_rec_other, time));
}

/* Cycles; of a call's record in its long form. No call is longer than the clock has run. */
static inline uint64_t raw_duration(const union spy_any *raw)
{
	return min_u64(raw_word(raw, sizeof(struct spy_rec_head) - 8) & RAW_48_BITS, raw_time(raw));
}

/* Text i of a record the reader has returned; NUL-terminated. */
const char *raw_text(const union spy_any *record, unsigned int i);

/* What a stream has lost, and why. */
struct reader_losses {
	uint64_t discarded; /* records the process could not write, by its own count */
	uint64_t packets_dropped; /* by keep-the-last: older than the first one that is left */
	uint64_t packets_missing; /* in the middle */
	uint64_t unreadable_bytes; /* damaged */
	uint64_t disordered; /* records older than the one before them */
	uint64_t unreadable_files; /* that could not be opened */
};

/* Numbers of files that have none in their name. */
#define READER_FILE_PLAIN 0 /* stream_NNNN */
#define READER_FILE_TAIL UINT64_MAX /* stream_NNNN_tail */

struct reader_file {
	char *path;
	/* Its part of the recording (trace_format.h), and the first one of those that are here without a gap up to it.
	 * Files are in the order of parts, then of numbers. */
	uint32_t part, run;
	uint64_t number; /* K of stream_NNNN_K + 1, or one of the above */
	/* What was in it when it was added, if it is the tail of a process that may still write;
	 * NULL: read the file. Owned. */
	uint8_t *copy;
	size_t copy_bytes;
	struct container_extent packed; /* where it lies in another file; its name is not owned */
};

/* What each record needs comes first: with many streams it has to be fetched each time. */
struct reader {
	/* the record, valid after reader_next returned true, until it is called again; the short
	 * form of a nested call comes as the long one */
	const union spy_any *record;
	uint64_t time; /* cycles; never less than the record's before */
	uint64_t time_most; /* of a record of this packet that is not damaged; not less than time */
	size_t size; /* bytes of the record, texts included */
	/* the window: what of the packet's content is in the buffer */
	const uint8_t *at, *end;
	uint64_t records; /* returned so far */
	uint32_t tid; /* thread the slot belongs to */
	uint32_t kind; /* enum spy_stream_kind, of the packet */
	struct spy_rec_head expanded;

	uint8_t *buffer;
	size_t buffer_bytes, filled_bytes; /* its size; what of it is from the file */
	uint64_t buffer_off; /* in the file, of buffer[0] */
	uint64_t content_end_off; /* of the packet */
	uint64_t packet_end_off;
	uint64_t file_bytes;
	uint64_t file_off; /* where it begins in what fd is of */
	int fd; /* -1: no file open */

	struct reader_file *files; /* in the order they were written; owned */
	size_t n_files, file; /* the one being read */
	const uint8_t *uuid; /* every packet has it; NULL: unknown; not owned */
	/* What is known of the process; set them before the first reader_next. */
	bool live; /* it may be writing while we read */
	bool unbounded; /* it keeps all of its packets */
	bool keeps_first; /* it deletes packets, but not the first one of this stream */
	bool quiet; /* nothing is said of damage: a second reading will say it */
	uint64_t time_end; /* cycles: what claims to be of that time or later is damaged */

	bool started; /* reader_next was called */
	bool repeated; /* what comes has been read in the part before */
	uint32_t part; /* of the packet */
	uint64_t discarded; /* of the part, by its packets so far */
	bool any_packet;
	uint64_t seq; /* of the packet */
	uint64_t others; /* of the records, those that are no calls */
	uint64_t inner_bytes; /* of the calls that reader_next_outer has passed over */
	struct reader_losses losses;
};

/* uuid: every packet must have it; NULL: any. It is not copied. */
void reader_init(struct reader *r, const uint8_t *uuid);

/* Size of the buffer; before the first reader_next. Small sizes are raised to what it takes. */
void reader_set_buffer(struct reader *r, size_t bytes);

/* Adds a file; before the first reader_next. Files may come in any order. number: as in struct
 * reader_file. */
void reader_add_file(struct reader *r, const char *path, uint64_t number);

/* extent: where its bytes are, if not in a file of that name; NULL: they are. */
void reader_add_extent(struct reader *r, const char *path, uint64_t number,
		       const struct container_extent *extent);

/* The same for the tail of a process that may still be writing: what is in it now is what counts.
 * Before the stream's other files are even looked for. */
void reader_add_copy_of_tail(struct reader *r, const char *path);
void reader_add_copy_of_extent(struct reader *r, const char *path,
			       const struct container_extent *extent);

/* Its files are those of a later part of the recording than the first one, so far. */
void reader_set_part(struct reader *r, uint32_t part);

/* Takes over the files of a reader of the same stream in another part. */
void reader_join(struct reader *r, struct reader *other);

/* Parts `run` to `part` are all here. */
void reader_set_run(struct reader *r, uint32_t part, uint32_t run);

void reader_release(struct reader *r);

/* Bytes of all its files, now, or of what is in hand of a tail. */
uint64_t reader_bytes(const struct reader *r);

/* Back to before the first record, as if nothing had been read yet: losses and counts are zero.
 * What is in hand of a tail that is still written stays what it was. */
void reader_rewind(struct reader *r);

/*
 * After reader_next: passes over the rest of the packet and n - 1 packets behind it, as far as they
 * lie in the same file and are not damaged. For a reading that need not see everything and is
 * rewound: what was passed over is not counted, nor looked at. Returns how many bytes.
 */
uint64_t reader_pass(struct reader *r, unsigned int n);

/* Calls returned so far. */
static inline uint64_t reader_calls(const struct reader *r)
{
	return r->records - r->others;
}

/* The long form of a short record, whose device and context are the outer call's: unknown. */
static inline const union spy_any *reader_expand(struct reader *r,
						 const struct spy_rec_inner *inner)
{
	r->expanded = (struct spy_rec_head){.time = inner->time,
					    .event = SPY_EV_NESTED,
					    .fn = inner->fn,
					    .device = SPY_DEVICE_NONE,
					    .depth = 1,
					    .duration = inner->duration};
	return (const union spy_any *)&r->expanded;
}

/* Is the record in hand one that came in its short form? It is in no buffer. */
static inline bool reader_has_expanded(const struct reader *r)
{
	return r->record == (const union spy_any *)&r->expanded;
}

/* The part of reader_next that is rarely needed. */
bool reader_next_slow(struct reader *r);

/* Not older than the record before, and not of another time than its packet. */
static inline bool reader_in_time(const struct reader *r, const union spy_any *record)
{
	return record->other.time - r->time <= r->time_most - r->time;
}

/* For reader_step: the next record lies there. */
static inline bool reader_step_to(struct reader *r, const uint8_t *at)
{
	const union spy_any *record = (const union spy_any *)at;
	size_t left = (size_t)(r->end - at), size;

	if (unlikely(left < sizeof(struct spy_rec_inner)))
		return false;
	if (!raw_is_call(record) && record->other.event != SPY_EV_INNER)
		return false;
	size = record_layouts[record->other.event].bytes;
	if (unlikely(left < size) || unlikely(!reader_in_time(r, record)))
		return false;
	r->at = (const uint8_t *)record;
	r->size = size;
	r->time = record->other.time;
	r->record = record;
	if (unlikely(record->other.event == SPY_EV_INNER))
		r->record = reader_expand(r, &record->inner);
	r->records++;
	return true;
}

/* To the next record, if that is no more than a step: it is one of a call, and lies in the buffer,
 * which stays as it is. False: it has to be looked for, and nothing has changed. */
static inline bool reader_step(struct reader *r)
{
	return reader_step_to(r, r->at + r->size);
}

/* To the next record. False at the end; what went wrong on the way is in losses and on stderr. */
static inline bool reader_next(struct reader *r)
{
	return likely(reader_step(r)) || reader_next_slow(r);
}

/* A call inside another one that already told the details. */
struct nested_call {
	const union spy_any *raw; /* in its short form or the long one */
	uint64_t time, duration; /* cycles; not longer than the clock has run */
	uint16_t fn, result;
	bool damaged; /* it is in no other one */
};

/*
 * The next record, if it is one of such a call, and lies right behind the record in hand. False: it is another one, or has
 * to be looked for. For counting such calls in a row: reader_take passes over it, and the record in hand stays what it is.
 */
static inline bool reader_peek_nested(const struct reader *r, struct nested_call *call)
{
	const union spy_any *raw = (const union spy_any *)(r->at + r->size);
	size_t left = (size_t)(r->end - r->at) - r->size;
	bool inner;

	if (left < sizeof(struct spy_rec_head) ||
	    (raw->other.event != SPY_EV_INNER && raw->other.event != SPY_EV_NESTED) ||
	    unlikely(!reader_in_time(r, raw)))
		return false;
	inner = raw->other.event == SPY_EV_INNER;
	call->raw = raw;
	call->time = raw_time(raw);
	call->duration = inner ? min_u64(raw->inner.duration, call->time) : raw_duration(raw);
	call->fn = raw->call_head.fn;
	call->result = inner ? 0 : raw->call_head.result;
	call->damaged = !inner && !raw->call_head.depth;
	return true;
}

static inline const union spy_any *reader_long_form(struct reader *r,
						    const struct nested_call *call)
{
	return call->raw->other.event == SPY_EV_INNER ? reader_expand(r, &call->raw->inner)
						      : call->raw;
}

static inline void reader_take(struct reader *r, const struct nested_call *call)
{
	r->at = (const uint8_t *)call->raw;
	r->size = record_layouts[call->raw->other.event].bytes;
	r->time = call->time;
	r->records++;
}

/* reader_next where calls inside of other calls are not needed: passes over nearly all of them, and
 * neither counts nor checks those. */
static inline bool reader_next_outer(struct reader *r)
{
	const uint8_t *at = r->at + r->size;

	for (;;) {
		const union spy_any *record = (const union spy_any *)at;
		size_t left = (size_t)(r->end - at);

		if (left >= sizeof(struct spy_rec_inner) && record->other.event == SPY_EV_INNER)
			at += sizeof(struct spy_rec_inner);
		else if (left >= sizeof(struct spy_rec_head) &&
			 record->other.event == SPY_EV_NESTED)
			at += sizeof(struct spy_rec_head);
		else
			break;
	}
	r->inner_bytes += (size_t)(at - (r->at + r->size));
	if (likely(reader_step_to(r, at)))
		return true;
	r->at = at;
	r->size = 0;
	return reader_next_slow(r);
}

#endif
