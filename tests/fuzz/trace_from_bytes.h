/*
 * tests/fuzz/trace_from_bytes.h: a string of bytes becomes traces: several processes with several threads, records of all
 * kinds, metadata and boards, whole or damaged. For the fuzz target.
 *
 * The bytes are a program: a byte says what comes next, those behind it say how. Where they say nothing more they are
 * zeros, so that any string is one, and a short one makes a small trace. Values come from short lists, so that records
 * have to do with each other: the same locks, streams, places, kernels; and now and then they are any number at all. A
 * record's time is that of a clock that all processes share and each record moves on. Rows of records are repeated as
 * a whole: what is found in programs shows in loops.
 */
#ifndef CUDASPY_FUZZ_TRACE_FROM_BYTES_H
#define CUDASPY_FUZZ_TRACE_FROM_BYTES_H

#include <fcntl.h>
#include <unistd.h>
#include "../unit/trace_writer.h"
#include "cudaspy/function_numbers.h"

#define TB_PROCESSES 4
#define TB_SLOTS 6 /* of a process; 0 is the session's */
#define TB_RECORDS 6000 /* of an input, those that are repeated included */
#define TB_ROW 12 /* records that are remembered to be repeated */
#define TB_PARENT_MAX 128

struct tb_bytes {
	const uint8_t *at, *end;
};

/* A record that was written: for a repetition, which has another time. */
struct tb_written {
	unsigned int process, slot;
	uint64_t step; /* cycles since the record before it */
	size_t size;
	uint8_t bytes[512];
};

struct tb_process {
	struct tw_trace w;
	struct tw_metadata metadata;
	char env[2048];
	bool whole_metadata; /* with all functions, as the recorder writes it */
	uint64_t last[TB_SLOTS]; /* time of the slot's last record */
};

struct tb {
	struct tb_bytes in;
	const char *parent;
	struct tb_process *processes[TB_PROCESSES];
	unsigned int n_processes, process, slot, records;
	uint64_t now;
	struct tb_written row[TB_ROW];
	uint64_t n_written;
};

/* ---- bytes -------------------------------------------------------------------------------------- */

static inline uint8_t tb_byte(struct tb *t)
{
	return t->in.at < t->in.end ? *t->in.at++ : 0;
}

static inline uint64_t tb_word(struct tb *t)
{
	uint64_t word = 0;
	int i;

	for (i = 0; i < 8; i++)
		word = word << 8 | tb_byte(t);
	return word;
}

/* One of a list; or, for the largest byte, any number. */
static inline uint64_t tb_one_of(struct tb *t, const uint64_t *values, size_t n)
{
	uint8_t byte = tb_byte(t);

	return byte == 0xff ? tb_word(t) : values[byte % n];
}

#define TB_ONE_OF(t, ...) \
	tb_one_of(t, (const uint64_t[]){__VA_ARGS__}, \
		  sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static inline const char *tb_text(struct tb *t, const char *const *texts, size_t n)
{
	static char any[64];
	uint8_t byte = tb_byte(t);
	size_t i;

	if (byte != 0xff)
		return texts[byte % n];
	n = tb_byte(t) % (sizeof(any) - 1);
	for (i = 0; i < n; i++)
		any[i] = (char)tb_byte(t);
	any[n] = '\0';
	return any;
}

#define TB_TEXT(t, ...) \
	tb_text(t, (const char *const[]){__VA_ARGS__}, \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static inline uint64_t tb_stream(struct tb *t)
{
	return TB_ONE_OF(t, 1, 2, 0, 0x10, 0x20, 0x30, 0xffffffffffff);
}

static inline uint64_t tb_device(struct tb *t)
{
	return TB_ONE_OF(t, 0, 1, 0, SPY_DEVICE_NONE, 2, 62, 63, 64, 254) & 0xff;
}

static inline uint64_t tb_bytes(struct tb *t)
{
	return TB_ONE_OF(t, 0, 4, 1024, 65536, 65537, 1 << 20, 64 << 20, 1ull << 40, UINT64_MAX);
}

static inline uint64_t tb_object(struct tb *t)
{
	return TB_ONE_OF(t, 0, 1, 0x10, 0x20, 0x700, 0x701, 0x7000, SPY_ACCESS_GIVEN | 3,
			 SPY_ACCESS_GIVEN | 1, 0x400100);
}

static inline uint64_t tb_caller(struct tb *t)
{
	return TB_ONE_OF(t, 0x401000, 0x401010, 0x402000, 0x500010, 0, 0x600000, UINT64_MAX);
}

/* ---- functions ------------------------------------------------------------------------------------ */

static const struct tb_function {
	uint16_t fn;
	uint8_t event;
	const char *name;
} tb_functions[] = {
#define TB_FN(event, name) \
	{ \
		SPY_FN_##name, SPY_EV_##event, #name \
	}
	TB_FN(LAUNCH, cudaLaunchKernel),
	TB_FN(LAUNCH, cuLaunchKernel),
	TB_FN(COPY, cudaMemcpyAsync),
	TB_FN(COPY, cudaMemcpy),
	TB_FN(COPY, cudaMemcpyPeerAsync),
	TB_FN(COPY, cuMemcpyHtoD_v2),
	TB_FN(COPY, cuMemcpyDtoHAsync_v2),
	TB_FN(COPY, cudaMemcpyBatchAsync),
	TB_FN(COPY, cudaMemcpy2DAsync),
	TB_FN(MEMORY, cudaMalloc),
	TB_FN(MEMORY, cudaFree),
	TB_FN(MEMORY, cudaMallocHost),
	TB_FN(MEMORY, cudaFreeHost),
	TB_FN(MEMORY, cudaHostRegister),
	TB_FN(MEMORY, cudaHostUnregister),
	TB_FN(MEMORY, cudaMallocAsync),
	TB_FN(MEMORY, cudaFreeAsync),
	TB_FN(MEMORY, cudaMemset),
	TB_FN(MEMORY, cudaMemsetAsync),
	TB_FN(MEMORY, cudaMallocManaged),
	TB_FN(MEMORY, cuMemMap),
	TB_FN(MEMORY, cuMemUnmap),
	TB_FN(MEMORY, cuMemAlloc_v2),
	TB_FN(MEMORY, cuMemFree_v2),
	TB_FN(OP, cudaStreamSynchronize),
	TB_FN(OP, cudaDeviceSynchronize),
	TB_FN(OP, cudaEventSynchronize),
	TB_FN(OP, cudaEventRecord),
	TB_FN(OP, cudaStreamWaitEvent),
	TB_FN(OP, cudaStreamCreate),
	TB_FN(OP, cudaStreamCreateWithFlags),
	TB_FN(OP, cudaStreamDestroy),
	TB_FN(OP, cudaEventCreate),
	TB_FN(OP, cudaEventDestroy),
	TB_FN(OP, cudaGraphLaunch),
	TB_FN(OP, cudaGraphInstantiate),
	TB_FN(OP, cudaGraphExecDestroy),
	TB_FN(OP, cudaStreamBeginCapture),
	TB_FN(OP, cudaStreamEndCapture),
	TB_FN(OP, cuModuleLoadData),
	TB_FN(OP, cuModuleUnload),
	TB_FN(OP, cuLibraryLoadData),
	TB_FN(OP, cuCtxCreate_v2),
	TB_FN(OP, cuCtxDestroy_v2),
	TB_FN(OP, cudaDeviceEnablePeerAccess),
	TB_FN(OP, cudaDeviceDisablePeerAccess),
	TB_FN(OP, cuCtxEnablePeerAccess),
	TB_FN(OP, cuMemSetAccess),
	TB_FN(OP, cudaMemPoolSetAccess),
	TB_FN(OP, cuKernelGetFunction),
	TB_FN(OP, cudaFuncGetAttributes),
	TB_FN(OP, cudaStreamQuery),
	TB_FN(OP, cudaEventQuery),
	TB_FN(OP, cudaLaunchHostFunc),
	TB_FN(OP, cuStreamSynchronize),
	TB_FN(OP, cuDevicePrimaryCtxReset_v2),
	TB_FN(CALL, cuInit),
	TB_FN(CALL, cudaSetDevice),
	TB_FN(CALL, cudaDeviceReset),
	TB_FN(CALL, cudaDeviceSetLimit),
	TB_FN(CALL, cuDevicePrimaryCtxRetain),
	TB_FN(CALL, cudaDeviceSynchronize),
	TB_FN(CALL, cuCtxSynchronize),
	TB_FN(COUNT, cudaGetDevice),
	TB_FN(COUNT, cudaGetLastError),
#undef TB_FN
};

#define TB_FUNCTIONS (sizeof(tb_functions) / sizeof(tb_functions[0]))

/* One that leaves records of that kind; now and then another one. */
static inline uint16_t tb_fn(struct tb *t, uint8_t event)
{
	uint8_t byte = tb_byte(t);
	size_t i, n = 0;

	if (byte >= 0xf0)
		return byte == 0xff ? (uint16_t)tb_word(t)
				    : tb_functions[tb_byte(t) % TB_FUNCTIONS].fn;
	for (i = 0; i < TB_FUNCTIONS; i++)
		n += tb_functions[i].event == event;
	n = n ? byte % n : 0;
	for (i = 0; i < TB_FUNCTIONS; i++)
		if (tb_functions[i].event == event && !n--)
			return tb_functions[i].fn;
	return tb_functions[byte % TB_FUNCTIONS].fn;
}

/* ---- records -------------------------------------------------------------------------------------- */

static inline uint32_t tb_tid(const struct tb *t, unsigned int slot)
{
	return 100 * (t->process + 1) + slot;
}

/* As records are written: with the time in front. */
static inline void tb_write(struct tb *t, void *record, size_t size)
{
	struct tb_process *p = t->processes[t->process];
	struct tb_written *written = &t->row[t->n_written % TB_ROW];
	uint64_t time;

	memcpy(&time, record, sizeof(time));
	if (t->records++ >= TB_RECORDS)
		return;
	tw_record(&p->w, t->slot, record, size);
	written->process = t->process;
	written->slot = t->slot;
	written->step = time - p->last[t->slot];
	written->size = size <= sizeof(written->bytes) ? size : 0;
	memcpy(written->bytes, record, written->size);
	t->n_written++;
	p->last[t->slot] = time;
}

static inline void tb_write_text(struct tb *t, const void *record, size_t fixed, unsigned int texts,
				 const char *const text[])
{
	if (t->records++ < TB_RECORDS)
		tw_record_text(&t->processes[t->process]->w, t->slot, record, fixed, texts, text);
}

/* The last records again, so many rounds, each as long after the one before it as it was. */
static inline void tb_repeat(struct tb *t)
{
	uint64_t n = 1 + tb_byte(t) % TB_ROW, rounds = tb_byte(t),
		 pause = TB_ONE_OF(t, 0, 1000, 20000, 1000000);
	struct tb_written row[TB_ROW];
	unsigned int process = t->process, slot = t->slot;
	uint64_t i;

	if (n > t->n_written)
		n = t->n_written;
	for (i = 0; i < n; i++)
		row[i] = t->row[(t->n_written - n + i) % TB_ROW];
	for (; n && rounds && t->records < TB_RECORDS; rounds--) {
		t->now += pause;
		for (i = 0; i < n; i++) {
			if (!row[i].size)
				continue;
			t->process = row[i].process;
			t->slot = row[i].slot;
			t->now += row[i].step;
			memcpy(row[i].bytes, &t->now, sizeof(t->now));
			tb_write(t, row[i].bytes, row[i].size);
		}
	}
	t->process = process;
	t->slot = slot;
}

/* Which slot, and how much later. */
static inline void tb_move_on(struct tb *t)
{
	static const uint64_t steps[] = {0,         1,          100,     1000,     5000,
					 20000,     100000,     1000000, 10000000, 50000000,
					 300000000, 1000000000, 2000000, 300000,   3000};
	uint8_t byte = tb_byte(t);

	t->slot = 1 + (byte >> 4) % (TB_SLOTS - 1);
	if ((byte & 15) < 15)
		t->now += steps[byte & 15];
	else if (tb_byte(t) & 1)
		t->now += tb_word(t) >> (tb_byte(t) % 64);
	else
		t->now -= 500;
}

/* So many eighths of the time since the slot's last record, or any. */
static inline uint64_t tb_duration(struct tb *t)
{
	uint64_t gap = t->now - t->processes[t->process]->last[t->slot];
	uint8_t byte = tb_byte(t);

	if (byte == 0xff)
		return tb_word(t);
	if (byte >= 0xf0)
		return 1ull << (byte & 15) * 3;
	return gap / 8 * (byte % 9);
}

static inline struct spy_rec_head tb_head(struct tb *t, uint8_t event)
{
	uint8_t byte;
	struct spy_rec_head head = {.event = event, .fn = tb_fn(t, event)};

	head.time = t->now;
	head.duration = tb_duration(t) & 0xffffffffffff;
	byte = tb_byte(t);
	head.depth = byte < 0xe0 ? 0 : byte & 7;
	head.result = TB_ONE_OF(t, 0, 0, 0, 0, 0, 0, 700, 600, 4, 2, SPY_RESULT_NONE) & 0xffff;
	head.device = (uint8_t)tb_device(t);
	head.context = tb_byte(t) & 3;
	return head;
}

static inline void tb_call(struct tb *t, uint8_t event)
{
	struct spy_rec_head head = tb_head(t, event);
	uint64_t caller = tb_caller(t) & 0xffffffffffff;

	if (event == SPY_EV_NESTED) {
		head.depth |= 1;
		tb_write(t, &head, sizeof(head));
	} else if (event == SPY_EV_CALL) {
		struct spy_rec_call r = {.head = head, .caller = caller};

		tb_write(t, &r, sizeof(r));
	} else if (event == SPY_EV_OP) {
		struct spy_rec_op r = {.head = head,
				       .caller = caller,
				       .flags = TB_ONE_OF(t, 0, 1, 2, 0xff) & 0xffff,
				       .stream = tb_stream(t),
				       .object = tb_object(t)};

		tb_write(t, &r, sizeof(r));
	} else if (event == SPY_EV_LAUNCH) {
		uint64_t kernel = TB_ONE_OF(t, 1, 2, 3, 0, 70000);
		struct spy_rec_launch r = {.head = head,
					   .caller = caller,
					   .kernel_lo = kernel & 0xffff,
					   .kernel_hi = kernel >> 16 & 0xffff,
					   .stream = tb_stream(t) & 0xffffffffffff};

		tb_write(t, &r, sizeof(r));
	} else if (event == SPY_EV_COPY) {
		uint8_t kinds = tb_byte(t), more = tb_byte(t);
		struct spy_rec_copy r = {.head = head,
					 .caller = caller,
					 .src_device = tb_device(t),
					 .dst_device = tb_device(t),
					 .stream = tb_stream(t) & 0xffffffffffff,
					 .direction = more & 7,
					 .captured = more >> 7 & !(more >> 6 & 1),
					 .form = more >> 3 & 7,
					 .src_kind = kinds & 15,
					 .dst_kind = kinds >> 4,
					 .bytes = tb_bytes(t) & 0xfffffffffffffff,
					 .src_access = more >> 4 & 3,
					 .dst_access = more >> 5 & 3};

		tb_write(t, &r, sizeof(r));
	} else {
		uint8_t what = tb_byte(t);
		struct spy_rec_memory r = {.head = head,
					   .caller = caller,
					   .op = what == 0xff ? 0xee : what & 15,
					   .kind = what >> 4,
					   .pool = tb_byte(t) & 1,
					   .stream = tb_stream(t),
					   .address = tb_object(t),
					   .bytes = tb_bytes(t)};

		tb_write(t, &r, sizeof(r));
	}
}

static inline void tb_inner(struct tb *t)
{
	struct spy_rec_inner r = {.time = t->now,
				  .event = SPY_EV_INNER,
				  .fn = tb_fn(t, SPY_EV_CALL),
				  .duration = (uint32_t)tb_duration(t)};

	tb_write(t, &r, sizeof(r));
}

static inline void tb_wait(struct tb *t)
{
	uint8_t what = tb_byte(t), flags = tb_byte(t);
	uint64_t duration = tb_duration(t) & 0xffffffffffff;
	struct spy_rec_wait r = {.time = t->now,
				 .event = SPY_EV_WAIT,
				 .kind = what == 0xff ? 0xfe : what % SPY_WAIT_KINDS,
				 .depth = what >> 6,
				 .fn = tb_fn(t, SPY_EV_MEMORY),
				 .outer_fn = tb_fn(t, SPY_EV_LAUNCH),
				 .duration = duration,
				 .device = tb_device(t),
				 .flags = flags & 0x80 ? flags & 31 : 0,
				 .object = tb_object(t),
				 .count = (uint32_t)TB_ONE_OF(t, 1, 2, 100, 0, UINT32_MAX),
				 .holder = tb_byte(t) & 8 ? 0 : tb_tid(t, tb_byte(t) % 8),
				 .holder_since = TB_ONE_OF(t, 0, 1000, t->now, t->now - 1000),
				 .holder_device = tb_device(t),
				 .span = tb_byte(t) & 1 ? duration : duration * 2,
				 .holder_fn = tb_fn(t, SPY_EV_MEMORY)};

	tb_write(t, &r, sizeof(r));
}

static inline void tb_handoff(struct tb *t)
{
	static const uint16_t events[] = {SPY_EV_TAKEN, SPY_EV_RELEASED, SPY_EV_HELD, SPY_EV_HELD};
	uint8_t what = tb_byte(t);
	struct spy_rec_held r = {.time = t->now,
				 .event = events[what & 3],
				 .kind = (what >> 2) % SPY_WAIT_KINDS,
				 .fn = tb_fn(t, SPY_EV_MEMORY),
				 .outer_fn = tb_fn(t, SPY_EV_MEMORY),
				 .object = tb_object(t),
				 .span = TB_ONE_OF(t, 0, 1, 100, 65535) & 0xffff,
				 .held = tb_duration(t) & 0xffffffffffff};

	tb_write(t, &r, r.event == SPY_EV_HELD ? sizeof(r) : sizeof(struct spy_rec_taken));
}

static inline void tb_outside(struct tb *t)
{
	struct spy_rec_outside r = {
		.time = t->now,
		.event = SPY_EV_OUTSIDE,
		.kind = tb_byte(t) % (SPY_WAIT_KINDS + 1),
		.file = tb_byte(t) % (SPY_FILE_KINDS + 1),
		.count = (uint32_t)TB_ONE_OF(t, 1, 5, 0, UINT32_MAX),
		.duration = tb_duration(t) & 0xffffffffffff,
		.flags = tb_byte(t),
		.span = tb_duration(t) & 0xffffffffffff,
		.ready = t->now % 3,
		.at_once = t->now % 2,
		.caller = tb_caller(t),
		.object = tb_object(t),
		.holder = tb_byte(t) & 1 ? tb_tid(t, tb_byte(t) % 16) : 0,
	};

	tb_write(t, &r, sizeof(r));
}

/* Where a thread is between its calls, and what NVML says of a GPU. */
static inline void tb_sample(struct tb *t)
{
	uint8_t what = tb_byte(t), i;
	struct {
		struct spy_rec_place place;
		uint64_t words[6];
	} place = {.place = {.head = {t->now, SPY_EV_PLACE},
			     .python = what & 0x10 ? what : what % 5,
			     .count = 6,
			     .place = (uint32_t)TB_ONE_OF(t, 1, 2, 0, 4096, 4097, UINT32_MAX)}};
	struct spy_rec_sample sample = {.head = {t->now, SPY_EV_SAMPLE},
					.state = tb_byte(t) & 63,
					.tid = tb_tid(t, tb_byte(t) % 16),
					.place = (uint32_t)TB_ONE_OF(t, 1, 2, 0, 4096, UINT32_MAX),
					.holder = tb_tid(t, tb_byte(t) % 16),
					.weight = (uint32_t)TB_ONE_OF(t, 10000, 1, 0, UINT32_MAX),
					.ago = (uint32_t)TB_ONE_OF(t, 0, 5000, UINT32_MAX)};
	struct spy_rec_gpu_look look = {.head = {t->now, SPY_EV_GPU_LOOK},
					.device = (uint8_t)TB_ONE_OF(t, 0, 1, SPY_DEVICE_NONE),
					.busy = tb_byte(t),
					.clock = tb_byte(t),
					.clock_most = tb_byte(t),
					.reasons = tb_byte(t),
					.others = tb_byte(t) & 1,
					.known = what & 3};

	for (i = 0; i < 6; i++)
		place.words[i] =
			i < 3 ? (uint64_t)TB_ONE_OF(t, 1, 2, 3, 0) << 32 | i : tb_caller(t);
	if (what & 4)
		tb_write(t, &place, sizeof(place));
	if (what & 8)
		tb_write(t, &look, sizeof(look));
	tb_write(t, &sample, sizeof(sample));
}

static inline void tb_host_function(struct tb *t)
{
	struct spy_rec_host_function r = {
		.time = t->now,
		.event = SPY_EV_HOST_FUNCTION,
		.device = (uint8_t)TB_ONE_OF(t, 0, 1, SPY_DEVICE_NONE),
		.tid = tb_tid(t, tb_byte(t) % 16),
		.duration = tb_duration(t) & 0xffffffffffff,
		.fn = tb_fn(t, SPY_EV_OP),
		.function = tb_caller(t),
		.stream = TB_ONE_OF(t, 1, 2, 8, 9, 0),
		.handed = t->now - TB_ONE_OF(t, 0, 1000, 100000, 5000000, 4000000000),
		.caller = tb_caller(t),
	};

	tb_write(t, &r, sizeof(r));
}

/* A GPU's: in whatever stream, which may be one of such records. */
static inline void tb_gpu(struct tb *t)
{
	uint8_t what = tb_byte(t);
	uint64_t begin = t->now - TB_ONE_OF(t, 0, 1000, 100000, 5000000, 4000000000);
	struct spy_rec_gpu_op op = {
		.time = t->now,
		.event = SPY_EV_GPU_OP,
		.kind = tb_byte(t) % 4,
		.device = (uint8_t)tb_device(t),
		.correlation = (uint32_t)TB_ONE_OF(t, 0, 1, 2, 1025, 70000, UINT32_MAX),
		.begin_ns = TB_ONE_OF(t, begin, t->now, 0, UINT64_MAX),
		.end_ns = TB_ONE_OF(t, t->now, begin, begin + 500, 0, UINT64_MAX),
		.amount = TB_ONE_OF(t, 1, 0, 1000, UINT64_MAX),
		.kernel = (uint32_t)TB_ONE_OF(t, 1, 0, UINT32_MAX)};
	struct spy_rec_gpu_submit submit = {.time = t->now,
					    .event = SPY_EV_GPU_SUBMIT,
					    .correlation = op.correlation,
					    .begin_ns = op.begin_ns,
					    .end_ns = op.end_ns,
					    .tid = tb_tid(t, what % 8)};
	struct spy_rec_gpu_clock clock = {.time = t->now,
					  .event = SPY_EV_GPU_CLOCK,
					  .error = (uint32_t)TB_ONE_OF(t, 10, 0, UINT32_MAX),
					  .clock = TB_ONE_OF(t, t->now, begin, 0, UINT64_MAX),
					  .gpu_ns = TB_ONE_OF(t, t->now, begin, 0, UINT64_MAX),
					  .dropped = TB_ONE_OF(t, 0, 1, UINT64_MAX)};
	struct spy_rec_gpu_state state = {.head = {t->now, SPY_EV_GPU_STATE},
					  .state = tb_byte(t) % 7};

	if (what & 32) {
		struct tw_stream *s = tw_stream(&t->processes[t->process]->w, t->slot);

		s->kind = (uint32_t)TB_ONE_OF(t, SPY_STREAM_GPU, SPY_STREAM_CALLS, 2);
	}
	memset(state.text, what, sizeof(state.text));
	if ((what & 15) < 9)
		tb_write(t, &op, sizeof(op));
	else if ((what & 15) < 13)
		tb_write(t, &submit, sizeof(submit));
	else if ((what & 15) < 14)
		tb_write(t, &clock, sizeof(clock));
	else
		tb_write(t, &state, sizeof(state));
}

/* Of a cost window; or it begins or ends for the process, if that is the session's stream. */
static inline void tb_cost(struct tb *t)
{
	uint8_t what = tb_byte(t);
	struct spy_rec_cost cost = {.head = {t->now, SPY_EV_COST},
				    .kind = what & 7,
				    .n = (uint8_t)TB_ONE_OF(t, 0, 1, 8, 255),
				    .calls = (uint32_t)TB_ONE_OF(t, 0, 100, 1000, UINT32_MAX),
				    .begin = t->now - tb_duration(t),
				    .end = t->now,
				    .window = TB_ONE_OF(t, 0, 41, 42, 43, UINT64_MAX),
				    .delay_ns = TB_ONE_OF(t, 0, 1, UINT64_MAX)};
	struct spy_rec_window window = {.head = {t->now, SPY_EV_WINDOW}, .state = what >> 4 & 7};
	unsigned int i;

	for (i = 0; i < SPY_COST_FUNCTIONS; i++) {
		cost.fn[i] = tb_fn(t, SPY_EV_CALL);
		cost.count[i] = tb_byte(t);
	}
	if (what & 8)
		tb_write(t, &window, sizeof(window));
	else
		tb_write(t, &cost, sizeof(cost));
}

static inline void tb_sched(struct tb *t)
{
	uint8_t what = tb_byte(t);
	struct spy_rec_sched r = {.time = t->now,
				  .event = what & 1 ? SPY_EV_SCHED : SPY_EV_GAP,
				  .window = tb_duration(t),
				  .not_running_ns = tb_duration(t),
				  .running_ns = tb_duration(t)};

	if (what & 2)
		tb_outside(t);
	else if (what & 4)
		tb_gpu(t);
	else if (what & 8)
		tb_cost(t);
	else if (what & 16)
		tb_host_function(t);
	else if (what & 32)
		tb_sample(t);
	else
		tb_write(t, &r, sizeof(r));
}

/* A stack, maybe one in Python too, and the call that they are of. */
static inline void tb_stack(struct tb *t)
{
	static const uint8_t kinds[] = {SPY_EV_COPY, SPY_EV_MEMORY, SPY_EV_OP, SPY_EV_LAUNCH};
	uint8_t event = kinds[tb_byte(t) % 4], n = tb_byte(t), i;
	const uint8_t *from = t->in.at;
	struct spy_rec_stack stack = {.time = t->now,
				      .event = SPY_EV_STACK,
				      .fn = tb_fn(t, event),
				      .why = tb_byte(t),
				      .count = n & 0x80 ? n : n % 6};
	struct spy_rec_python_stack python = {.time = t->now,
					      .event = SPY_EV_PYTHON_STACK,
					      .fn = stack.fn,
					      .count = n & 0x40 ? n : n % 4,
					      .more = n & 1};

	for (i = 0; i < 6; i++)
		stack.frames[i] = tb_caller(t);
	for (i = 0; i < 4; i++) {
		python.codes[i] = (uint32_t)TB_ONE_OF(t, 1, 2, 3, 0, 65535, 65536);
		python.lines[i] = (uint32_t)TB_ONE_OF(t, 3, 4, 0, UINT32_MAX);
	}
	tb_write(t, &stack, sizeof(stack));
	if (n & 0x20)
		tb_write(t, &python, sizeof(python));
	t->in.at = from; /* the same function again */
	tb_call(t, event);
}

static inline void tb_names(struct tb *t)
{
	uint8_t what = tb_byte(t);
	struct spy_rec_other head = {t->now, SPY_EV_KERNEL};
	struct spy_rec_kernel kernel = {.kernel =
						(uint32_t)TB_ONE_OF(t, 1, 2, 3, 0, 70000, 1 << 22)};
	struct spy_rec_module module = {.gone = what >> 7,
					.span_pages =
						(uint32_t)TB_ONE_OF(t, 16, 0, 4096, UINT32_MAX),
					.base = TB_ONE_OF(t, 0x400000, 0x500000, 0, 0x7f0000000000),
					.begin = TB_ONE_OF(t, 0x401000, 0x500000, 0),
					.end = TB_ONE_OF(t, 0x403000, 0x510000, UINT64_MAX)};
	struct spy_rec_gpu gpu = {
		.device = (uint16_t)tb_device(t), .cc_major = 9, .bytes = tb_bytes(t)};
	struct spy_rec_note note = {.note = tb_byte(t) % 7};
	struct spy_rec_python_code code = {.code = (uint32_t)TB_ONE_OF(t, 1, 2, 3, 0, 65535, 65536),
					   .first_line = tb_byte(t)};
	const char *text =
		TB_TEXT(t, "_Z5firstv", "second", "", "driver 13000", "a<b>&\"c\"\xff\x1b[31m",
			"/nonexistent/app", "/proc/self/exe", "\xe2\x80\xae\xc3");
	const char *other = TB_TEXT(t, "GPU-1", "GPU-2", "", "train.py", "abcdef01",
				    "/nonexistent/libcublas.so.13");

	switch (what % 5) {
	case 0:
		kernel.head = head;
		tb_write_text(t, &kernel, sizeof(kernel), 1, &text);
		break;
	case 1:
		module.head = (struct spy_rec_other){t->now, SPY_EV_MODULE};
		tb_write_text(t, &module, sizeof(module), 2, (const char *[]){other, text});
		break;
	case 2:
		gpu.head = (struct spy_rec_other){t->now, SPY_EV_GPU};
		tb_write_text(t, &gpu, sizeof(gpu), 3,
			      (const char *[]){text, other, "0000:01:00.0"});
		break;
	case 3:
		note.head = (struct spy_rec_other){t->now, SPY_EV_NOTE};
		tb_write_text(t, &note, sizeof(note), 1, &text);
		break;
	default:
		code.head = (struct spy_rec_other){t->now, SPY_EV_PYTHON_CODE};
		tb_write_text(t, &code, sizeof(code), 3, (const char *[]){other, text, ""});
	}
}

/* What the program says by NVTX. */
static inline void tb_nvtx(struct tb *t)
{
	uint8_t what = tb_byte(t);
	uint32_t name = (uint32_t)TB_ONE_OF(t, 1, 2, 3, 0, 70000, UINT32_MAX);
	struct spy_rec_range range = {.time = t->now,
				      .event = SPY_EV_RANGE,
				      .what = what == 0xff ? what : what % SPY_RANGE_WHATS,
				      .name = name};
	struct spy_rec_range_value value = {.time = t->now,
					    .event = SPY_EV_RANGE_VALUE,
					    .what = range.what,
					    .payload_type = tb_byte(t) % (SPY_PAYLOADS + 1),
					    .name = name,
					    .id = TB_ONE_OF(t, 1, 2, 3, 0, t->now, UINT64_MAX),
					    .payload = tb_bytes(t),
					    .category = tb_byte(t)};
	struct spy_rec_range_name naming = {
		.head = {t->now, SPY_EV_RANGE_NAME}, .folded = what >> 7, .name = name};
	struct spy_rec_nvtx_name object = {.head = {t->now, SPY_EV_NVTX_NAME},
					   .what = tb_byte(t) % (SPY_NAMED_KINDS + 1),
					   .object = tb_byte(t) & 1 ? tb_tid(t, t->slot)
								    : tb_stream(t)};
	const char *domain = TB_TEXT(t, "", "layers", "\xff\x1b[31m");
	const char *text =
		TB_TEXT(t, "step 1", "step 2", "", "a<b>&\"c\"", "\xe2\x80\xae\xc3", "#");

	switch (what >> 4 & 3) {
	case 0:
		tb_write_text(t, &naming, sizeof(naming), 3, (const char *[]){domain, text, ""});
		break;
	case 1:
		tb_write_text(t, &object, sizeof(object), 1, &text);
		break;
	case 2:
		tb_write(t, &value, sizeof(value));
		break;
	default:
		tb_write(t, &range, sizeof(range));
	}
}

/* What NCCL's profiler interface brings. */
static inline void tb_nccl(struct tb *t)
{
	uint8_t what = tb_byte(t);
	uint64_t begin = TB_ONE_OF(t, t->now, t->now - 1000, t->now + 1000, 0, UINT64_MAX);
	struct spy_rec_nccl_comm comm = {.head = {t->now, SPY_EV_NCCL_COMM},
					 .interface = tb_byte(t) % 9,
					 .comm = what >> 6,
					 .hash = TB_ONE_OF(t, 1, 2, 0, UINT64_MAX),
					 .rank = (uint32_t)TB_ONE_OF(t, 0, 1, 2, UINT32_MAX),
					 .ranks = (uint32_t)TB_ONE_OF(t, 2, 3, 0, 1, UINT32_MAX),
					 .tid = tb_tid(t, t->slot),
					 .device = tb_byte(t)};
	struct spy_rec_collective op = {
		.time = t->now,
		.event = SPY_EV_COLLECTIVE,
		.func = tb_byte(t) % (SPY_NCCL_FUNCS + 1),
		.flags = tb_byte(t),
		.comm = what >> 6,
		.seq = TB_ONE_OF(t, 0, 1, 2, 3, t->now, UINT64_MAX),
		.count = TB_ONE_OF(t, 1, 1024, 0, UINT64_MAX),
		.id = tb_byte(t) % 8,
		.peer = (int32_t)TB_ONE_OF(t, 0, 1, 2, UINT32_MAX, 0x80000000u),
		.bytes_each = tb_byte(t),
		.algorithm = tb_byte(t),
		.protocol = tb_byte(t),
		.channels = tb_byte(t)};
	struct spy_rec_collective_ran ran = {.time = t->now,
					     .event = SPY_EV_COLLECTIVE_RAN,
					     .channels = op.channels,
					     .comm = op.comm,
					     .id = op.id,
					     .begin_ns = begin,
					     .end_ns = begin + tb_duration(t),
					     .seen = TB_ONE_OF(t, t->now, 0, UINT64_MAX)};
	struct spy_rec_nccl_state state = {.head = {t->now, SPY_EV_NCCL_STATE},
					   .state = tb_byte(t) % 5};

	memset(comm.name, what, sizeof(comm.name));
	memset(state.text, what, sizeof(state.text));
	switch (what >> 2 & 7) {
	case 0:
		tb_write(t, &state, sizeof(state));
		break;
	case 1:
		tb_write(t, &comm, sizeof(comm));
		break;
	case 2:
	case 3:
	case 4:
		tb_write(t, &op, sizeof(op));
		break;
	default:
		tb_write(t, &ran, sizeof(ran));
	}
}

static inline void tb_threads(struct tb *t)
{
	uint8_t what = tb_byte(t);
	uint32_t tid = what & 0x80 ? tb_tid(t, tb_byte(t) % 16) : tb_tid(t, t->slot);
	struct spy_rec_thread thread = {
		.head = {t->now, what & 1 ? SPY_EV_THREAD : SPY_EV_NON_CUDA_THREAD}, .tid = tid};
	struct spy_rec_count count = {.head = {t->now, SPY_EV_COUNT},
				      .fn = tb_fn(t, SPY_EV_COUNT),
				      .tid = tid,
				      .count = TB_ONE_OF(t, 1, 1000, UINT64_MAX)};
	struct spy_rec_clock clock = {.head = {t->now, SPY_EV_CLOCK}, .monotonic_ns = t->now};
	const char *name = TB_TEXT(t, "main", "worker", "", "0123456789abcdef");

	memcpy(thread.name, name, strnlen(name, sizeof(thread.name)));
	if (what & 2)
		tb_write(t, &count, sizeof(count));
	else if (what & 4)
		tb_write(t, &clock, sizeof(clock));
	else
		tb_write(t, &thread, sizeof(thread));
}

static inline void tb_sharing(struct tb *t)
{
	uint8_t what = tb_byte(t);
	struct spy_rec_mps mps = {.head = {t->now, SPY_EV_MPS},
				  .initialised = what & 1,
				  .uid = (uint32_t)TB_ONE_OF(t, 1000, 1001, 0),
				  .daemon = (uint32_t)TB_ONE_OF(t, 50, 0),
				  .server = (uint32_t)TB_ONE_OF(t, 60, 61, 0),
				  .server_uid = (uint32_t)TB_ONE_OF(t, 1000, 1001, 0)};
	struct spy_rec_share share = {.head = {t->now, SPY_EV_SHARE},
				      .device = (uint16_t)tb_device(t),
				      .client = tb_byte(t) & 3,
				      .multiprocessors = tb_byte(t)};
	const char *directory = TB_TEXT(t, "/tmp/mps", "");

	if (what & 2)
		tb_write(t, &share, sizeof(share));
	else
		tb_write_text(t, &mps, sizeof(mps), 4, (const char *[]){directory, "50", "", "\n"});
}

static inline void tb_board(struct tb *t)
{
	struct tb_process *p = t->processes[t->process];
	struct spy_slot_page *page = tw_page(&p->w, t->slot);
	uint8_t what = tb_byte(t);

	switch (what & 7) {
	case 0:
		page->tid = tb_tid(t, t->slot);
		page->depth = tb_byte(t) & 3;
		page->outer_fn = tb_fn(t, SPY_EV_OP);
		page->fn = tb_fn(t, SPY_EV_MEMORY);
		page->since = TB_ONE_OF(t, t->now, 0, UINT64_MAX);
		page->wait_kind = TB_ONE_OF(t, 0, 1, 2, 8, 12);
		page->wait_object = tb_object(t);
		page->wait_holder = tb_byte(t) & 1 ? tb_tid(t, 1) : 0;
		page->device = (uint8_t)tb_device(t);
		break;
	case 1:
		p->w.board.ended = tb_byte(t) & 1;
		break;
	case 2:
		p->w.board.lost = TB_ONE_OF(t, 1, 1000, UINT64_MAX);
		break;
	case 3:
		page->lost = TB_ONE_OF(t, 1, 1000, UINT64_MAX);
		break;
	case 4:
		page->calls = TB_ONE_OF(t, 0, 1, UINT64_MAX);
		break;
	case 5:
		p->w.board.counter_fn[what >> 3] = tb_fn(t, SPY_EV_COUNT);
		page->counts[what >> 3] = TB_ONE_OF(t, 1, 5, UINT64_MAX);
		page->tid = tb_byte(t) & 1 ? tb_tid(t, t->slot) : 0;
		break;
	case 6:
		tw_stream(&p->w, t->slot)->discarded = TB_ONE_OF(t, 1, 1000, UINT64_MAX);
		break;
	default:
		tw_stream(&p->w, t->slot)->tid = tb_tid(t, tb_byte(t) % 8);
	}
}

/* What others in the process bring. */
static inline void tb_company(struct tb *t)
{
	uint8_t what = tb_byte(t);

	if (what & 2)
		tb_nvtx(t);
	else
		what & 1 ? tb_nccl(t) : tb_sharing(t);
}

/* Anything, with a time of now and a kind that there is. */
static inline void tb_any(struct tb *t)
{
	uint8_t record[64], i;
	struct spy_rec_other head = {t->now, tb_byte(t) % (SPY_EV_COUNT_ALL + 1)};

	for (i = 0; i < sizeof(record); i++)
		record[i] = tb_byte(t);
	memcpy(record, &head, sizeof(head));
	tb_write(t, record, sizeof(record));
}

static inline void tb_step(struct tb *t)
{
	uint8_t op = tb_byte(t) % 32;

	tb_move_on(t);
	if (op < 4)
		tb_call(t, SPY_EV_LAUNCH);
	else if (op < 7)
		tb_call(t, SPY_EV_COPY);
	else if (op < 10)
		tb_call(t, SPY_EV_MEMORY);
	else if (op < 14)
		tb_call(t, SPY_EV_OP);
	else if (op < 15)
		tb_call(t, SPY_EV_CALL);
	else if (op < 16)
		tb_call(t, SPY_EV_NESTED);
	else if (op < 17)
		tb_inner(t);
	else if (op < 20)
		tb_wait(t);
	else if (op < 21)
		tb_handoff(t);
	else if (op < 22)
		tb_sched(t);
	else if (op < 23)
		tb_stack(t);
	else if (op < 24)
		tb_threads(t);
	else if (op < 25)
		tb_names(t);
	else if (op < 26)
		tb_company(t);
	else if (op < 29)
		tb_repeat(t);
	else if (op < 30)
		t->process = tb_byte(t) % t->n_processes;
	else if (op < 31)
		tb_board(t);
	else
		tb_any(t);
}

/* ---- processes ------------------------------------------------------------------------------------- */

static inline void tb_begin_process(struct tb *t, unsigned int number)
{
	struct tb_process *p = calloc(1, sizeof(*p));
	uint8_t bits = tb_byte(t), more = tb_byte(t);
	char dir[TB_PARENT_MAX + 32];
	int used;

	snprintf(dir, sizeof(dir), "%s/app-%u.cudaspy", t->parent, number);
	tw_open(&p->w, dir, bits & 1 ? 1024 : 4096);
	p->w.bounded = bits >> 1 & 1;
	p->whole_metadata = !(more & 15);
	p->w.board.pid = bits & 4 ? 100 : 100 + number;
	p->metadata = (struct tw_metadata){
		.frequency = TB_ONE_OF(t, 1000000000, 2100000000, 1000000, 1, 0),
		.offset_s = TB_ONE_OF(t, 5, 1700000000, 0),
		.offset = TB_ONE_OF(t, 0, 1000000000)};
	used = snprintf(
		p->env, sizeof(p->env),
		"\ttracer_name = \"cudaspy\";\n\ttrace_version = %llu;\n\tpid = %u;\n"
		"\tppid = %u;\n\tprogram = \"/bin/%s\";\n\thostname = \"%s\";\n"
		"\tboot_id = \"%s\";\n\tclock_source = \"tsc\";\n\tprobes = %u;\n"
		"\tcpus = %u;\n\tstart_realtime_ns = %llu;\n",
		(unsigned long long)TB_ONE_OF(t, 5, 4, 3, 2, 1), p->w.board.pid, bits & 8 ? 100 : 1,
		bits & 16 ? "app" : "other", bits & 32 ? "one" : "two", bits & 64 ? "b" : "c",
		!(bits & 128), more >> 4 & 3,
		(unsigned long long)TB_ONE_OF(t, 0, 1700000000000000000, 1700000000000000001));
	if (more & 64)
		used += snprintf(p->env + used, sizeof(p->env) - (size_t)used,
				 "\tenv_CUDA_LAUNCH_BLOCKING = \"1\";\n");
	if (more & 128)
		snprintf(p->env + used, sizeof(p->env) - (size_t)used,
			 "\tenv_CUDA_MODULE_LOADING = \"EAGER\";\n\tenv_CUDASPY_KEEP = \"1\";\n");
	p->metadata.env = p->env;
	for (used = 1; used < TB_SLOTS; used++)
		tw_stream(&p->w, (unsigned int)used)->tid = 100 * (number + 1) + (unsigned int)used;
	t->processes[number] = p;
}

/* The functions that are used, in a tenth of the text. */
static inline void tb_short_metadata(const struct tb_process *p)
{
	FILE *file = tw_create(p->w.dir, "metadata");
	char uuid[64] = "";
	size_t i;

	for (i = 0; i < 16; i++)
		sprintf(uuid + strlen(uuid), "%02x", p->w.uuid[i]);
	fprintf(file, SPY_TSDL_HEAD "typealias enum : u16 {\n");
	for (i = 0; i < TB_FUNCTIONS; i++)
		fprintf(file, "\"%s\" = %u,\n", tb_functions[i].name, tb_functions[i].fn);
	fprintf(file, "} := fn_t;\ntrace { uuid = \"%s\"; };\nenv {\n%s};\n\n", uuid, p->env);
	fprintf(file, SPY_TSDL_CLOCK, p->metadata.frequency, p->metadata.offset_s,
		p->metadata.offset);
	fclose(file);
}

static inline void tb_end_process(struct tb_process *p)
{
	if (p->whole_metadata)
		tw_write_metadata(&p->w, &p->metadata);
	else
		tb_short_metadata(p);
	tw_close(&p->w);
	free(p);
}

/* ---- damage ------------------------------------------------------------------------------------------ */

#define TB_DAMAGE_BYTES 12 /* of the input, each */

static inline void tb_damage(struct tb *t)
{
	static const char *const files[] = {"metadata",    ".board",           "stream_0000_tail",
					    "stream_0001", "stream_0001_tail", "stream_0001_000000",
					    "stream_0002", "stream_0002_tail", "stream_0003_tail"};
	const uint8_t *end = t->in.at + TB_DAMAGE_BYTES;
	uint8_t what = tb_byte(t) % 8, byte;
	char path[TB_PARENT_MAX + 64];
	off_t at;
	int fd;

	snprintf(path, sizeof(path), "%s/app-%u.cudaspy/%s", t->parent, tb_byte(t) % t->n_processes,
		 files[tb_byte(t) % (sizeof(files) / sizeof(files[0]))]);
	at = (tb_byte(t) << 8 | tb_byte(t)) % 16384;
	fd = open(path, O_RDWR);
	if (what == 7)
		unlink(path);
	else if (what == 6 && fd >= 0 && ftruncate(fd, at))
		abort();
	for (; what < 6 && fd >= 0; what++) { /* some bytes beside each other */
		byte = tb_byte(t);
		if (pwrite(fd, &byte, 1, at++) != 1)
			abort();
	}
	if (fd >= 0)
		close(fd);
	t->in.at = end < t->in.end ? end : t->in.end;
}

/* ---- all of it ---------------------------------------------------------------------------------------- */

/* Makes the traces in directories below `parent`, which exists and is empty. */
static inline void tb_make(const char *parent, const uint8_t *data, size_t size)
{
	static struct tb t;
	struct tb_bytes damages;
	unsigned int i, damage;

	t = (struct tb){.in = {data, data + size}, .parent = parent, .now = 10000000000};
	t.n_processes = 1 + tb_byte(&t) % TB_PROCESSES;
	damage = tb_byte(&t);
	damage = damage < 192 ? 0 : damage & 7;
	damages = t.in;
	for (i = 0; i < damage * TB_DAMAGE_BYTES; i++)
		tb_byte(&t);
	for (i = 0; i < t.n_processes; i++)
		tb_begin_process(&t, i);
	while (t.in.at < t.in.end && t.records < TB_RECORDS)
		tb_step(&t);
	for (i = 0; i < t.n_processes; i++)
		tb_end_process(t.processes[i]);
	t.in = damages;
	while (damage--)
		tb_damage(&t);
}

#endif
