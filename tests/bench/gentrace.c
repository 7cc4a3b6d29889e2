/*
 * tests/bench/gentrace.c: writes a synthetic trace of many records, to time its readers with.
 *
 *   gentrace DIR RECORDS N [SHAPE]
 *
 * A shape has N of one thing, in about as many records whatever N is (SHAPES below says of what). The first one,
 * `loop`, is N threads that each are a launch-bound loop: launches, copies of which one in eight is pageable,
 * synchronisations with the driver's call inside them, allocations. All threads run at the same time, so that
 * their records interleave as finely as they can. The same arguments give the same trace.
 */
#include <stddef.h>
#include "cudaspy/function_numbers.h"
#include "../unit/trace_writer.h"

#define PACKET_BYTES (256 << 10)
#define FIRST_TID 100

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}

static struct spy_rec_head head(uint64_t time, enum spy_event event, enum spy_fn fn,
				uint64_t duration)
{
	return (struct spy_rec_head){
		.time = time, .event = event, .fn = fn, .duration = duration, .context = 1};
}

static uint64_t launch_places = 16;

static void launch(struct tw_trace *w, unsigned int slot, uint64_t *time)
{
	struct spy_rec_launch r = {.caller = 0x401000 + random_below(launch_places) * 64,
				   .kernel_lo = (uint16_t)(1 + random_below(8)),
				   .stream = 0x5000 + slot};

	r.head = head(*time += 2700, SPY_EV_LAUNCH, SPY_FN_cudaLaunchKernel,
		      2100 + random_below(900));
	tw_record(w, slot, &r, sizeof(r));
}

/* The driver's call, then the runtime's around it. */
static void synchronise(struct tw_trace *w, unsigned int slot, uint64_t *time)
{
	uint64_t duration = 700 + random_below(18000);
	struct spy_rec_inner inner = {.time = *time += 20000,
				      .event = SPY_EV_INNER,
				      .fn = SPY_FN_cuStreamSynchronize,
				      .duration = (uint32_t)duration};
	struct spy_rec_op op = {.caller = 0x403000, .stream = 0x5000 + slot};

	tw_record(w, slot, &inner, sizeof(inner));
	op.head = head(*time += 200, SPY_EV_OP, SPY_FN_cudaStreamSynchronize, duration + 300);
	tw_record(w, slot, &op, sizeof(op));
}

static void copy(struct tw_trace *w, unsigned int slot, uint64_t *time)
{
	bool pageable = !random_below(8), in = random_below(2);
	uint64_t host = pageable ? SPY_MEM_PAGEABLE : SPY_MEM_PINNED;
	struct spy_rec_copy r = {.caller = 0x402000 + random_below(16) * 64,
				 .src_device = SPY_DEVICE_NONE,
				 .dst_device = SPY_DEVICE_NONE,
				 .stream = 0x5000 + slot,
				 .direction = in ? SPY_DIR_H2D : SPY_DIR_D2H,
				 .src_kind = (uint8_t)(in ? host : SPY_MEM_DEVICE),
				 .dst_kind = (uint8_t)(in ? SPY_MEM_DEVICE : host),
				 .bytes = 4096 << random_below(8)};

	r.head = head(*time += 6000, SPY_EV_COPY, SPY_FN_cudaMemcpyAsync,
		      (pageable ? 5000 : 1000) + random_below(900));
	tw_record(w, slot, &r, sizeof(r));
}

static void allocate(struct tw_trace *w, unsigned int slot, uint64_t *time)
{
	struct spy_rec_memory memory = {.caller = 0x404000,
					.op = SPY_MEMOP_ALLOC,
					.kind = SPY_MEM_DEVICE,
					.address = 0x7f0000000000,
					.bytes = 1 << 20};

	memory.head = head(*time += 3000, SPY_EV_MEMORY, SPY_FN_cudaMallocAsync,
			   500 + random_below(2000));
	tw_record(w, slot, &memory, sizeof(memory));
}

static void begin_thread(struct tw_trace *w, unsigned int slot, uint32_t tid, uint64_t time)
{
	struct spy_rec_thread thread = {
		.head = {time, SPY_EV_THREAD}, .tid = tid, .name = "worker"};

	tw_stream(w, slot)->tid = tid;
	tw_record(w, slot, &thread, sizeof(thread));
}

static void work(struct tw_trace *w, unsigned int slot, uint64_t *time, uint64_t records)
{
	while (records >= 2) {
		uint64_t dice = random_below(40);

		if (dice < 24) {
			launch(w, slot, time);
			records--;
		} else if (dice < 36) {
			copy(w, slot, time);
			records--;
		} else if (dice < 39) {
			synchronise(w, slot, time);
			records -= 2;
		} else {
			allocate(w, slot, time);
			records--;
		}
	}
	while (records--)
		allocate(w, slot, time);
}

/* Part i of `all`, divided by n. */
static uint64_t part(uint64_t all, uint64_t n, uint64_t i)
{
	return all / n + (i < all % n);
}

static void shape_loop(struct tw_trace *w, uint64_t records, uint64_t n)
{
	uint64_t i, time;

	for (i = 0; i < n; i++) {
		time = 1001 + i;
		begin_thread(w, (unsigned int)i + 1, (uint32_t)(FIRST_TID + 1 + i), time);
		work(w, (unsigned int)i + 1, &time, part(records, n, i) - 1);
	}
}

/* Threads come and go: eight at a time, each slot is used by one after the other. */
static void shape_threads(struct tw_trace *w, uint64_t records, uint64_t n)
{
	uint64_t times[8], i;

	for (i = 0; i < 8; i++)
		times[i] = 1001 + i;
	for (i = 0; i < n; i++) {
		begin_thread(w, i % 8 + 1, (uint32_t)(FIRST_TID + 1 + i), times[i % 8] += 1000);
		work(w, i % 8 + 1, &times[i % 8], part(records, n, i) - 1);
	}
}

/* A call of `slot` that ends at `time`. */
static void op(struct tw_trace *w, unsigned int slot, uint64_t time, uint64_t duration,
	       const struct spy_rec_op *like)
{
	struct spy_rec_op op = *like;

	op.head.time = time;
	op.head.event = SPY_EV_OP;
	op.head.duration = duration;
	op.head.context = 1;
	tw_record(w, slot, &op, sizeof(op));
}

/* A call inside another one: in either form, one in many fails, and fewer may start CUDA up. */
static void inner_call(struct tw_trace *w, unsigned int slot, uint64_t time, uint64_t duration)
{
	struct spy_rec_inner inner = {.time = time,
				      .event = SPY_EV_INNER,
				      .fn = SPY_FN_cuLaunchKernel,
				      .duration = (uint32_t)duration};
	struct spy_rec_head nested = head(time, SPY_EV_NESTED, SPY_FN_cuMemAlloc_v2, duration);

	if (random_below(2)) {
		tw_record(w, slot, &inner, sizeof(inner));
		return;
	}
	nested.depth = 1;
	if (!random_below(50))
		nested.result = 2;
	if (!random_below(500))
		nested.fn = SPY_FN_cuInit;
	tw_record(w, slot, &nested, sizeof(nested));
}

/* One thread's next call and those inside it; it takes long once in a while, and no record says why. Returns how many
 * records. */
static uint64_t nesting_call(struct tw_trace *w, unsigned int slot, uint64_t *time)
{
	uint64_t n = random_below(random_below(100) ? 8 : 4000), i, begin = *time += 500;

	if (!random_below(300))
		*time += 5000000 + random_below(3000000);
	for (i = 0; i < n; i++)
		inner_call(w, slot, *time += 300 + random_below(1500), 200);
	*time += 400;
	op(w, slot, *time, *time - begin,
	   &(struct spy_rec_op){.head.fn = SPY_FN_cudaEventCreate, .caller = 0x405000});
	return n + 1;
}

/* Calls inside others, many of them; at the same time in all threads. */
static void shape_nested(struct tw_trace *w, uint64_t records, uint64_t n)
{
	uint64_t i, time, written;

	for (i = 0; i < n; i++) {
		time = 1001 + i;
		begin_thread(w, (unsigned int)i + 1, (uint32_t)(FIRST_TID + 1 + i), time);
		for (written = 1; written < part(records, n, i);)
			written += nesting_call(w, (unsigned int)i + 1, &time);
	}
}

#define TURN_NS 10000

/* Turn after turn another thread gets a lock: waits, call, gives it back. Three records each. */
static void take_turn(struct tw_trace *w, uint64_t turn, uint64_t threads, uint64_t locks,
		      uint64_t *ended)
{
	unsigned int slot = (unsigned int)(turn % threads) + 1;
	uint64_t lock = 0x7f0000001000 + turn / threads % locks * 64;
	uint64_t time = TURN_NS * (turn + 1), begun = ended[slot] ? ended[slot] + 100 : 1000;
	struct spy_rec_wait wait = {
		.time = time,
		.event = SPY_EV_WAIT,
		.kind = SPY_WAIT_MUTEX,
		.fn = SPY_FN_cudaFree,
		.outer_fn = SPY_FN_cudaFree,
		.duration = time - begun,
		.span = time - begun,
		.object = lock,
		.count = 1,
		.holder = turn ? (uint32_t)(FIRST_TID + 1 + (turn - 1) % threads) : 0,
		.holder_fn = SPY_FN_cudaFree};
	struct spy_rec_held held = {.time = time + TURN_NS - 1000,
				    .event = SPY_EV_HELD,
				    .kind = SPY_WAIT_MUTEX,
				    .fn = SPY_FN_cudaFree,
				    .outer_fn = SPY_FN_cudaFree,
				    .object = lock,
				    .span = 1};

	tw_record(w, slot, &wait, sizeof(wait));
	tw_record(w, slot, &held, sizeof(held));
	ended[slot] = time + TURN_NS - 500;
	op(w, slot, ended[slot], ended[slot] - begun,
	   &(struct spy_rec_op){.head.fn = SPY_FN_cudaFree, .caller = 0x405000});
}

static void take_turns(struct tw_trace *w, uint64_t records, uint64_t threads, uint64_t locks)
{
	static uint64_t ended[TW_SLOTS];
	uint64_t i;

	for (i = 0; i < threads; i++)
		begin_thread(w, (unsigned int)i + 1, (uint32_t)(FIRST_TID + 1 + i), 900);
	for (i = 0; i < records / 3; i++)
		take_turn(w, i, threads, locks, ended);
}

/* N threads want one lock, all the time. */
static void shape_waiters(struct tw_trace *w, uint64_t records, uint64_t n)
{
	take_turns(w, records, n, 1);
}

/* Two threads, and N locks one after the other. */
static void shape_locks(struct tw_trace *w, uint64_t records, uint64_t n)
{
	take_turns(w, records, 2, n);
}

/* The copy to pageable memory that a stack belongs to. */
static void stall(struct tw_trace *w, uint64_t *time, uint64_t caller, uint64_t stream, bool stack)
{
	struct spy_rec_copy r = {.caller = caller,
				 .src_device = SPY_DEVICE_NONE,
				 .dst_device = SPY_DEVICE_NONE,
				 .stream = stream,
				 .direction = SPY_DIR_H2D,
				 .src_kind = SPY_MEM_PAGEABLE,
				 .dst_kind = SPY_MEM_DEVICE,
				 .bytes = 1 << 20};
	struct spy_rec_stack s = {.time = *time += 60000,
				  .event = SPY_EV_STACK,
				  .fn = SPY_FN_cudaMemcpyAsync,
				  .why = SPY_STACK_PAGEABLE,
				  .count = SPY_STACK_MOST};
	unsigned int i;

	s.frames[0] = caller;
	for (i = 1; i < SPY_STACK_MOST; i++)
		s.frames[i] = 0x407000 + 64 * i + random_below(4) * 16;
	if (stack)
		tw_record(w, 1, &s, sizeof(s));
	r.head = head(*time, SPY_EV_COPY, SPY_FN_cudaMemcpyAsync, 50000);
	tw_record(w, 1, &r, sizeof(r));
}

/* A copy in the legacy stream, which waits for all streams but non-blocking ones. */
static void legacy_copy(struct tw_trace *w, uint64_t *time)
{
	struct spy_rec_copy r = {.caller = 0x408000,
				 .src_device = SPY_DEVICE_NONE,
				 .dst_device = SPY_DEVICE_NONE,
				 .stream = 1,
				 .direction = SPY_DIR_D2H,
				 .src_kind = SPY_MEM_DEVICE,
				 .dst_kind = SPY_MEM_PAGEABLE,
				 .bytes = 1 << 20};

	r.head = head(*time += 60000, SPY_EV_COPY, SPY_FN_cudaMemcpy, 50000 + random_below(9000));
	tw_record(w, 1, &r, sizeof(r));
}

/* N non-blocking streams, used in turn and never waited for. Of three calls one waits longer than it should: in a stream
 * of its own, or in the legacy one. */
static void shape_streams(struct tw_trace *w, uint64_t records, uint64_t n)
{
	struct spy_rec_launch r = {.caller = 0x401000, .kernel_lo = 1};
	uint64_t time = 1001, i;

	begin_thread(w, 1, FIRST_TID + 1, time);
	for (i = 0; i < n; i++)
		op(w, 1, time += 3000, 2000,
		   &(struct spy_rec_op){.head.fn = SPY_FN_cudaStreamCreateWithFlags,
					.caller = 0x406000,
					.flags = 1,
					.object = 0x600000 + i * 64});
	for (i = n; i < records; i++) {
		r.stream = i % 5 ? 0x600000 + i % n * 64 : 0x5001;
		r.head = head(time += 2700, SPY_EV_LAUNCH, SPY_FN_cudaLaunchKernel, 2100);
		if (i % 3)
			tw_record(w, 1, &r, sizeof(r));
		else if (i % 2)
			op(w, 1, time += 40000, 30000 + random_below(9000),
			   &(struct spy_rec_op){.head.fn = SPY_FN_cudaStreamSynchronize,
						.caller = 0x403000,
						.stream = 0x5001});
		else
			legacy_copy(w, &time);
	}
}

static void module(struct tw_trace *w, uint64_t time, uint64_t number, uint16_t gone)
{
	uint64_t base = 0x7e0000000000 + number * 0x10000;
	struct spy_rec_module r = {.head = {time, SPY_EV_MODULE},
				   .gone = gone,
				   .span_pages = 16,
				   .base = base,
				   .begin = base + 0x1000,
				   .end = base + 0x9000};
	char path[64];

	snprintf(path, sizeof(path), "/tmp/jit/module_%llu.so", (unsigned long long)number);
	tw_record_text(w, 0, &r, sizeof(r), 2, (const char *const[]){"", path});
}

/* What happens N times, each time after as many calls of one thread. */
typedef void happen_fn(struct tw_trace *w, uint64_t *time, uint64_t number);

static void happens(struct tw_trace *w, uint64_t records, uint64_t n, uint64_t records_each,
		    happen_fn *happen)
{
	uint64_t time = 1001, i,
		 calls = records - (n * records_each < records ? n * records_each : records);

	begin_thread(w, 1, FIRST_TID + 1, time);
	for (i = 0; i < n; i++) {
		happen(w, &time, i);
		work(w, 1, &time, part(calls, n, i));
	}
}

/* Loaded, a copy from pageable memory made in it, and unloaded. */
static void load(struct tw_trace *w, uint64_t *time, uint64_t number)
{
	struct spy_rec_copy r = {.caller = 0x7e0000002000 + number * 0x10000,
				 .src_device = SPY_DEVICE_NONE,
				 .dst_device = SPY_DEVICE_NONE,
				 .stream = 0x5001,
				 .direction = SPY_DIR_H2D,
				 .src_kind = SPY_MEM_PAGEABLE,
				 .dst_kind = SPY_MEM_DEVICE,
				 .bytes = 1 << 20};

	module(w, *time += 100, number, 0);
	r.head = head(*time += 60000, SPY_EV_COPY, SPY_FN_cudaMemcpyAsync, 50000);
	tw_record(w, 1, &r, sizeof(r));
	module(w, *time += 100, number, 1);
}

static void shape_modules(struct tw_trace *w, uint64_t records, uint64_t n)
{
	happens(w, records, n, 3, load);
}

static void say(struct tw_trace *w, uint64_t *time, uint64_t number)
{
	struct spy_rec_note r = {.head = { *time += 100, SPY_EV_NOTE}, .note = SPY_NOTE_UNKNOWN};
	char text[64];

	snprintf(text, sizeof(text), "cuFunction%llu", (unsigned long long)number);
	tw_record_text(w, 0, &r, offsetof(struct spy_rec_note, text), 1,
		       (const char *const[]){text});
}

static void shape_notes(struct tw_trace *w, uint64_t records, uint64_t n)
{
	happens(w, records, n, 1, say);
}

static void name_kernel(struct tw_trace *w, uint64_t *time, uint64_t number)
{
	struct spy_rec_kernel r = {.head = { *time += 100, SPY_EV_KERNEL},
				   .kernel = (uint32_t)(number + 1)};
	struct spy_rec_launch used = {.caller = 0x401000,
				      .kernel_lo = (uint16_t)r.kernel,
				      .kernel_hi = (uint16_t)(r.kernel >> 16),
				      .stream = 0x5001};
	char text[64];

	snprintf(text, sizeof(text), "_Z6kernel%llu", (unsigned long long)number);
	tw_record_text(w, 0, &r, offsetof(struct spy_rec_kernel, name), 1,
		       (const char *const[]){text});
	used.head = head(*time += 2700, SPY_EV_LAUNCH, SPY_FN_cudaLaunchKernel, 2500);
	tw_record(w, 1, &used, sizeof(used));
}

static void shape_kernels(struct tw_trace *w, uint64_t records, uint64_t n)
{
	happens(w, records, n, 2, name_kernel);
}

static void stall_with_stack(struct tw_trace *w, uint64_t *time, uint64_t number)
{
	stall(w, time, 0x408000 + number % 16 * 64, 0x5001, true);
}

static void shape_stacks(struct tw_trace *w, uint64_t records, uint64_t n)
{
	happens(w, records, n, 2, stall_with_stack);
}

static void stall_elsewhere(struct tw_trace *w, uint64_t *time, uint64_t number)
{
	stall(w, time, 0x1000000 + number * 64, 0x5001, false);
}

static void shape_sites(struct tw_trace *w, uint64_t records, uint64_t n)
{
	happens(w, records, n, 1, stall_elsewhere);
}

/* Threads as in `loop`, each of whose calls is of another function, of which there are as many as numbers allow. */
static void shape_functions(struct tw_trace *w, uint64_t records, uint64_t n)
{
	uint64_t i, j, time;

	for (i = 0; i < n; i++) {
		struct spy_rec_call r = {.caller = 0x409000};

		time = 1001 + i;
		begin_thread(w, (unsigned int)i + 1, (uint32_t)(FIRST_TID + 1 + i), time);
		for (j = 0; j < part(records, n, i); j++) {
			r.head = head(time += 3000, SPY_EV_CALL, SPY_FN_cudaFree, 2000);
			r.head.fn = (uint16_t)(1000 + random_below(64000));
			tw_record(w, (unsigned int)i + 1, &r, sizeof(r));
		}
	}
}

#define GPU_SLOT 2
#define GPU_AHEAD 7000000000ull /* CUPTI's clock of the trace's */

static void gpu_begins(struct tw_trace *w, uint64_t time)
{
	struct spy_rec_gpu_clock clock = {
		.time = time, .event = SPY_EV_GPU_CLOCK, .clock = time, .gpu_ns = time + GPU_AHEAD};
	struct spy_rec_gpu_state state = {.head = {time, SPY_EV_GPU_STATE}, .state = SPY_GPU_ON};

	tw_stream(w, GPU_SLOT)->kind = SPY_STREAM_GPU;
	tw_record(w, GPU_SLOT, &clock, sizeof(clock));
	tw_record(w, GPU_SLOT, &state, sizeof(state));
}

/* The launch that ended then, and its kernel, which begins a bit later. */
static void gpu_works(struct tw_trace *w, uint64_t time, uint64_t ended, uint32_t number)
{
	struct spy_rec_gpu_submit submit = {.time = time,
					    .event = SPY_EV_GPU_SUBMIT,
					    .correlation = number,
					    .begin_ns = ended - 2000 + GPU_AHEAD,
					    .end_ns = ended - 100 + GPU_AHEAD,
					    .tid = FIRST_TID + 1};
	struct spy_rec_gpu_op kernel = {.time = time,
					.event = SPY_EV_GPU_OP,
					.kind = SPY_GPU_KERNEL,
					.correlation = number,
					.begin_ns = ended + 2000 + GPU_AHEAD,
					.end_ns = ended + 4000 + GPU_AHEAD,
					.amount = 64,
					.kernel = 1};

	tw_record(w, GPU_SLOT, &submit, sizeof(submit));
	tw_record(w, GPU_SLOT, &kernel, sizeof(kernel));
}

/* A thread launches, and what its GPU did is told of N launches at a time, the last one first. */
static void shape_gpu(struct tw_trace *w, uint64_t records, uint64_t n)
{
	uint64_t *ended = calloc(n, sizeof(*ended)), time = 1001, number = 0, i;

	begin_thread(w, 1, FIRST_TID + 1, time);
	gpu_begins(w, time);
	while (number < records / 3) {
		for (i = 0; i < n; i++) {
			launch(w, 1, &time);
			ended[i] = time;
			time += random_below(9000);
		}
		for (number += i; i; i--)
			gpu_works(w, time + 9000, ended[i - 1], (uint32_t)(number - n + i));
	}
	free(ended);
}

static const char environment[] =
	"\ttracer_name = \"cudaspy\";\n\ttrace_version = 5;\n\tprogram = \"gentrace\";\n"
	"\tprobes = 1;\n\thostname = \"node\";\n\tclock_source = \"tsc\";\n"
	"\tboot_id = \"01234567-89ab-cdef-0123-456789abcdef\";\n";

static void write_metadata(struct tw_trace *w, uint32_t pid)
{
	char env[512];
	struct tw_metadata metadata = {.frequency = 1000000000, .offset_s = 1700000000, .env = env};

	snprintf(env, sizeof(env), "%s\tpid = %u;\n", environment, pid);
	tw_write_metadata(w, &metadata);
}

/* ---- several processes ------------------------------------------------------------------------ */

static void work_alone(struct tw_trace *w, uint64_t records, uint64_t n, uint64_t i)
{
	uint64_t time = 1001 + i;

	(void)n;
	begin_thread(w, 1, (uint32_t)(1000 + i), time);
	work(w, 1, &time, records - 1);
}

#define STEP_NS 1000000
#define STEP_RECORDS 100
#define SHORT_RECORDS 5 /* of the shapes `collectives` and `communicators` */
#define STEP_LATE_NS 200000 /* the rank in the middle, in one step of four */
#define TIMER_AHEAD_NS 5000000000ull /* of each rank's GPU, times its number */

static void join_communicator(struct tw_trace *w, uint64_t time, uint64_t n, uint64_t rank,
			      uint64_t number, uint64_t hash)
{
	struct spy_rec_nccl_comm comm = {.head = {time, SPY_EV_NCCL_COMM},
					 .interface = 5,
					 .comm = (uint32_t)number,
					 .hash = hash,
					 .rank = (uint32_t)rank,
					 .ranks = (uint32_t)n,
					 .nodes = 1,
					 .tid = (uint32_t)(1000 + rank)};

	tw_record(w, 1, &comm, sizeof(comm));
}

static void all_reduce(struct tw_trace *w, uint64_t time, uint64_t end, uint64_t step,
		       uint64_t rank, uint64_t communicators)
{
	uint64_t ahead = TIMER_AHEAD_NS * (rank + 1);
	struct spy_rec_stack stack = {.time = time,
				      .event = SPY_EV_STACK,
				      .count = 2,
				      .frames = {0x501000 + step % 7 * 64, 0x502000 + rank * 64}};
	struct spy_rec_collective op = {.time = time,
					.event = SPY_EV_COLLECTIVE,
					.func = SPY_NCCL_ALL_REDUCE,
					.flags = SPY_COLLECTIVE_RUN_FOLLOWS,
					.comm = (uint32_t)(1 + step % communicators),
					.seq = step / communicators,
					.count = 1 << 20,
					.id = (uint32_t)step,
					.bytes_each = 4};
	struct spy_rec_collective_ran ran = {.time = end + 20000,
					     .event = SPY_EV_COLLECTIVE_RAN,
					     .channels = 1,
					     .comm = op.comm,
					     .id = (uint32_t)step,
					     .begin_ns = time + 3000 + ahead,
					     .end_ns = end + ahead,
					     .seen = time + 9000};

	if (step % 16 == 0)
		tw_record(w, 1, &stack, sizeof(stack));
	tw_record(w, 1, &op, sizeof(op));
	tw_record(w, 2, &ran, sizeof(ran));
}

/* A step after the other: calls, and an all-reduce in which all ranks meet. */
static void work_in_steps(struct tw_trace *w, uint64_t n, uint64_t i, uint64_t steps,
			  uint64_t step_records, uint64_t communicators)
{
	uint64_t time = 1001 + i, step;

	begin_thread(w, 1, (uint32_t)(1000 + i), time);
	begin_thread(w, 2, (uint32_t)(100000 + i), time);
	for (step = 1; step <= communicators; step++)
		join_communicator(w, time + 500, n, i, step, 0xc0ffed + step);
	time += 1000;
	for (step = 0; step < steps; step++) {
		uint64_t begin = 1001 + (step + 1) * STEP_NS;

		time = time > begin ? time : begin + random_below(2000);
		work(w, 1, &time, step_records - 3);
		if (i == n / 2 && step % 4 == 0)
			time += STEP_LATE_NS;
		launch(w, 1, &time);
		all_reduce(w, time + 1000, begin + STEP_NS - 30000, step, i, communicators);
		time += 2000;
	}
}

static void work_as_rank(struct tw_trace *w, uint64_t records, uint64_t n, uint64_t i)
{
	work_in_steps(w, n, i, records / STEP_RECORDS, STEP_RECORDS, 1);
}

/* Hardly anything but collectives: each is a step. */
static void work_together(struct tw_trace *w, uint64_t records, uint64_t n, uint64_t i)
{
	work_in_steps(w, n, i, records / SHORT_RECORDS, SHORT_RECORDS, 1);
}

/* One rank's, in N communicators by turns. */
static void shape_communicators(struct tw_trace *w, uint64_t records, uint64_t n)
{
	work_in_steps(w, 2, 0, records / SHORT_RECORDS, SHORT_RECORDS, n);
}

/* Each of N ranks of one communicator joins it, and submits an operation: all in one process, as no program does it. */
static void shape_members(struct tw_trace *w, uint64_t records, uint64_t n)
{
	uint64_t time = 2000, i;

	begin_thread(w, 1, 1000, 1000);
	begin_thread(w, 2, 100000, 1000);
	for (i = 0; i < n; i++)
		join_communicator(w, time += 100, n, i, i + 1, 0xc0ffee);
	for (i = 0; i < n; i++, time += 5000) {
		launch(w, 1, &time);
		all_reduce(w, time + 1000, time + 4000, i, 0, n);
	}
	if (records > 3 * n)
		work(w, 1, &time, records - 3 * n);
}

/* The same, and hardly two launches are made at the same place. */
static void work_everywhere(struct tw_trace *w, uint64_t records, uint64_t n, uint64_t i)
{
	launch_places = 1 << 22;
	work_as_rank(w, records, n, i);
}

/* ---- processes that share a GPU --------------------------------------------------------------- */

#define SHARED_LOCK 0x7f0000002000

/* One of several processes, and one of its two threads, which has the turn. */
struct sharing {
	struct tw_trace *w;
	uint64_t process, time;
	unsigned int slot;
	uint8_t device; /* 0: the one that all share; 1: one of its own */
};

static uint32_t tid_of(const struct sharing *s, unsigned int slot)
{
	return (uint32_t)(1000 + 2 * s->process + slot);
}

static void tell_gpu(struct sharing *s, uint16_t device, uint64_t number)
{
	struct spy_rec_gpu gpu = {.head = {s->time, SPY_EV_GPU},
				  .device = device,
				  .cc_major = 9,
				  .bytes = 80ull << 30};
	char uuid[64];

	snprintf(uuid, sizeof(uuid), "GPU-%08llx-89ab-cdef-0123-456789abcdef",
		 (unsigned long long)number);
	tw_record_text(s->w, 0, &gpu, sizeof(gpu), 3,
		       (const char *const[]){"a GPU", uuid, "0000:01:00.0"});
}

/* It is a client of MPS, as the others are. */
static void tell_mps(struct sharing *s)
{
	struct spy_rec_mps mps = {.head = {s->time, SPY_EV_MPS},
				  .initialised = 1,
				  .uid = 1000,
				  .daemon = 40,
				  .server = 50,
				  .server_uid = 1000};
	struct spy_rec_share share = {
		.head = {s->time, SPY_EV_SHARE}, .client = SPY_CLIENT_YES, .multiprocessors = 132};

	tw_record_text(s->w, 0, &mps, offsetof(struct spy_rec_mps, text), 4,
		       (const char *const[]){"/tmp/nvidia-mps", "", "", ""});
	tw_record(s->w, 0, &share, sizeof(share));
}

static void name_range(struct sharing *s, uint32_t number, const char *name)
{
	struct spy_rec_range_name r = {.head = {s->time, SPY_EV_RANGE_NAME}, .name = number};

	tw_record_text(s->w, 0, &r, sizeof(r), 3, (const char *const[]){"", name, ""});
}

static void range(struct sharing *s, enum spy_range_what what, uint32_t name)
{
	struct spy_rec_range r = {
		.time = s->time += 50, .event = SPY_EV_RANGE, .what = (uint8_t)what, .name = name};

	tw_record(s->w, s->slot, &r, sizeof(r));
}

/* Between two calls. holder: a slot of the process; 0: nobody. */
static void wait_outside(struct sharing *s, uint64_t ns, enum spy_wait_kind kind,
			 unsigned int holder)
{
	struct spy_rec_outside r = {.time = s->time += ns,
				    .event = SPY_EV_OUTSIDE,
				    .kind = (uint8_t)kind,
				    .count = 1,
				    .duration = ns - ns / 8,
				    .span = ns,
				    .caller = 0x409000 + kind * 64,
				    .object = holder ? SHARED_LOCK : 0,
				    .holder = holder ? tid_of(s, holder) : 0};
	struct spy_rec_stack stack = {
		.time = s->time, .event = SPY_EV_STACK, .count = 2, .frames = {r.caller, 0x40a000}};

	if (!random_below(6))
		tw_record(s->w, s->slot, &stack, sizeof(stack));
	tw_record(s->w, s->slot, &r, sizeof(r));
}

/* The scheduler's account of the time before the call that is about to begin. */
static void account_for_gap(struct sharing *s, uint64_t ns)
{
	struct spy_rec_sched r = {.time = s->time += ns,
				  .event = SPY_EV_GAP,
				  .window = ns + 9000,
				  .not_running_ns = ns / 4,
				  .running_ns = ns / 3};

	tw_record(s->w, s->slot, &r, sizeof(r));
}

static void call(struct sharing *s, enum spy_fn fn, uint64_t duration)
{
	op(s->w, s->slot, s->time += duration, duration,
	   &(struct spy_rec_op){.head.fn = (uint16_t)fn,
				.head.device = s->device,
				.caller = 0x40b000 + fn * 16,
				.stream = 0x5000});
}

static void submit(struct sharing *s, unsigned int slot, uint64_t duration)
{
	struct spy_rec_launch r = {.caller = 0x40d000 + random_below(16) * 64,
				   .kernel_lo = (uint16_t)(1 + random_below(8)),
				   .stream = 0x5000 + slot};

	r.head = head(s->time, SPY_EV_LAUNCH, SPY_FN_cudaLaunchKernel, duration);
	r.head.device = s->device;
	tw_record(s->w, slot, &r, sizeof(r));
}

/* The GPU has nothing of the process's to do meanwhile. */
static void do_something_else(struct sharing *s)
{
	uint64_t ns = 1000 + random_below(400000), i;

	switch (random_below(6)) {
	case 0:
		wait_outside(s, ns, SPY_WAIT_SLEEP, 0);
		break;
	case 1:
		wait_outside(s, ns, SPY_WAIT_MUTEX, 3 - s->slot);
		break;
	case 2:
		wait_outside(s, ns / 2, SPY_WAIT_CONDITION, 3 - s->slot);
		s->time += ns / 4;
		wait_outside(s, ns / 4, SPY_WAIT_JOIN, 3 - s->slot);
		break;
	case 3:
		account_for_gap(s, ns);
		break;
	case 4:
		for (i = random_below(12); i; i--)
			call(s, SPY_FN_cudaEventQuery, 400 + random_below(900));
		break;
	default:
		s->time += ns;
	}
	if (!random_below(5))
		call(s, SPY_FN_cudaMalloc, 2000 + random_below(90000));
}

/* Recording is dormant for a while. */
static void window(struct sharing *s, enum spy_window_state state, uint32_t number, uint64_t since)
{
	struct spy_rec_window r = {.head = {s->time, SPY_EV_WINDOW},
				   .state = (uint16_t)state,
				   .number = number,
				   .since = since,
				   .text = "as generated"};

	tw_record(s->w, 0, &r, sizeof(r));
}

/* One of the other thread's, which began when the GPU had nothing to do, maybe: a launch, or one that waits for all work. */
static void end_long_call(struct sharing *s)
{
	uint64_t duration = 20000 + 500 * random_below(400);

	s->time += 500;
	if (random_below(2))
		submit(s, 3 - s->slot, duration);
	else
		op(s->w, 3 - s->slot, s->time, duration,
		   &(struct spy_rec_op){.head.fn = SPY_FN_cudaFree,
					.head.device = s->device,
					.caller = 0x40c000});
}

/* Work for the GPU, which is waited for, and something else behind it: by one of the two threads. */
static uint64_t share(struct sharing *s)
{
	uint64_t launches = 1 + random_below(9), i;

	s->slot = 1 + (unsigned int)random_below(2);
	s->device = !random_below(6);
	range(s, SPY_RANGE_PUSH, 1 + (uint32_t)random_below(2));
	for (i = 0; i < launches; i++) {
		s->time += 2700;
		submit(s, s->slot, 2100 + random_below(900));
	}
	if (!random_below(4) && !s->device)
		copy(s->w, s->slot, &s->time);
	if (!random_below(5))
		end_long_call(s);
	if (s->device || random_below(3))
		call(s, SPY_FN_cudaDeviceSynchronize, 5000 + random_below(30000));
	else
		synchronise(s->w, s->slot, &s->time);
	do_something_else(s);
	range(s, SPY_RANGE_POP, 0);
	return launches + 7;
}

static bool are_clients;

static void work_shared(struct tw_trace *w, uint64_t records, uint64_t n, uint64_t i)
{
	struct sharing s = {.w = w, .process = i, .time = 1001 + i * 7000};
	uint64_t written, since;

	(void)n;
	tell_gpu(&s, 0, 1);
	tell_gpu(&s, 1, 2 + i);
	if (are_clients)
		tell_mps(&s);
	name_range(&s, 1, "step");
	name_range(&s, 2, "evaluate");
	begin_thread(w, 1, tid_of(&s, 1), s.time);
	begin_thread(w, 2, tid_of(&s, 2), s.time);
	for (written = 5; written < records; written += share(&s)) {
		if (i % 4 != 3 || random_below(200))
			continue;
		since = s.time;
		window(&s, SPY_WINDOW_CLOSED, 1, 0);
		s.time += 3000000;
		window(&s, SPY_WINDOW_OPEN, 2, since);
	}
}

static void work_as_client(struct tw_trace *w, uint64_t records, uint64_t n, uint64_t i)
{
	are_clients = true;
	work_shared(w, records, n, i);
}

/* In folders below; each has a GPU of its own, unless it says which. */
static void processes(const char *dir, uint64_t records, uint64_t n,
		      void (*write)(struct tw_trace *w, uint64_t records, uint64_t n, uint64_t i))
{
	static struct tw_trace w;
	char path[1024];
	uint64_t i;

	if (mkdir(dir, 0777) && errno != EEXIST) {
		perror(dir);
		exit(3);
	}
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/process_%06llu", dir, (unsigned long long)i);
		tw_open(&w, path, 16 << 10);
		write_metadata(&w, (uint32_t)(1000 + i));
		write(&w, part(records, n, i), n, i);
		tw_close(&w);
	}
}

static const struct {
	const char *name;
	void (*write)(struct tw_trace *w, uint64_t records, uint64_t n); /* NULL: processes */
	bool slots; /* each of the N takes one */
	void (*write_process)(struct tw_trace *w, uint64_t records, uint64_t n, uint64_t i);
} SHAPES[] = {
	{"loop", shape_loop, true, NULL},
	{"threads", shape_threads, false, NULL},
	{"waiters", shape_waiters, true, NULL},
	{"locks", shape_locks, false, NULL},
	{"streams", shape_streams, false, NULL},
	{"modules", shape_modules, false, NULL},
	{"notes", shape_notes, false, NULL},
	{"kernels", shape_kernels, false, NULL},
	{"stacks", shape_stacks, false, NULL},
	{"sites", shape_sites, false, NULL},
	{"functions", shape_functions, true, NULL},
	{"processes", NULL, false, work_alone},
	{"ranks", NULL, false, work_as_rank},
	{"places", NULL, false, work_everywhere},
	{"collectives", NULL, false, work_together},
	{"communicators", shape_communicators, false, NULL},
	{"members", shape_members, false, NULL},
	{"gpu", shape_gpu, false, NULL},
	{"nested", shape_nested, true, NULL},
	{"shared", NULL, false, work_shared},
	{"clients", NULL, false, work_as_client},
};
#define N_SHAPES (sizeof(SHAPES) / sizeof(SHAPES[0]))

static int usage(void)
{
	size_t i;

	fprintf(stderr,
		"usage: gentrace DIR RECORDS N [SHAPE]; 2 records or more for each of N, "
		"which is below %d for shapes of threads alive at a time. Shapes:",
		TW_SLOTS);
	for (i = 0; i < N_SHAPES; i++)
		fprintf(stderr, " %s", SHAPES[i].name);
	fputs("\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static struct tw_trace w;
	uint64_t records, n;
	size_t shape = 0;

	if (argc < 4 || argc > 5)
		return usage();
	records = strtoull(argv[2], NULL, 0);
	n = strtoull(argv[3], NULL, 0);
	while (argc == 5 && shape < N_SHAPES && strcmp(SHAPES[shape].name, argv[4]))
		shape++;
	if (shape == N_SHAPES || !n || records < 2 * n || (SHAPES[shape].slots && n >= TW_SLOTS))
		return usage();
	if (!SHAPES[shape].write) {
		processes(argv[1], records, n, SHAPES[shape].write_process);
		return 0;
	}
	tw_open(&w, argv[1], SHAPES[shape].slots && n > 64 ? PACKET_BYTES / 16 : PACKET_BYTES);
	write_metadata(&w, FIRST_TID);
	SHAPES[shape].write(&w, records, n);
	tw_close(&w);
	return 0;
}
