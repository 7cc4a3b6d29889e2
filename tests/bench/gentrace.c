/*
 * tests/bench/gentrace.c: writes a synthetic trace of many records, to time its readers with.
 *
 *   gentrace DIR RECORDS THREADS
 *
 * A thread is a launch-bound loop: launches, copies of which one in eight is pageable, synchronisations
 * with the driver's call inside them, allocations. All threads run at the same time, so that
 * their records interleave as finely as they can. The same arguments give the same trace.
 */
#include "../unit/trace_writer.h"

#define PACKET_BYTES (256 << 10)

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

static void launch(struct tw_trace *w, unsigned int slot, uint64_t *time)
{
	struct spy_rec_launch r = {.caller = 0x401000 + random_below(16) * 64,
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

static void write_thread(struct tw_trace *w, unsigned int slot, uint64_t records)
{
	struct spy_rec_thread thread = {
		.head = {1000 + slot, SPY_EV_THREAD}, .tid = 100 + slot, .name = "worker"};
	uint64_t time = 1000 + slot;

	tw_stream(w, slot)->tid = thread.tid;
	tw_record(w, slot, &thread, sizeof(thread));
	for (records--; records >= 2;) {
		uint64_t dice = random_below(40);

		if (dice < 24) {
			launch(w, slot, &time);
			records--;
		} else if (dice < 36) {
			copy(w, slot, &time);
			records--;
		} else if (dice < 39) {
			synchronise(w, slot, &time);
			records -= 2;
		} else {
			allocate(w, slot, &time);
			records--;
		}
	}
	while (records--)
		allocate(w, slot, &time);
}

int main(int argc, char **argv)
{
	static const struct tw_metadata metadata = {
		.frequency = 1000000000,
		.offset_s = 1700000000,
		.env = "\ttracer_name = \"cudaspy\";\n\ttrace_version = 1;\n"
		       "\tprogram = \"gentrace\";\n\tpid = 100;\n",
	};
	static struct tw_trace w;
	uint64_t records, threads, i;

	if (argc != 4) {
		fputs("usage: gentrace DIR RECORDS THREADS\n", stderr);
		return 2;
	}
	records = strtoull(argv[2], NULL, 0);
	threads = strtoull(argv[3], NULL, 0);
	if (!threads || threads >= TW_SLOTS || records < 2 * threads) {
		fprintf(stderr, "gentrace: 1 to %d threads, 2 records each or more\n",
			TW_SLOTS - 1);
		return 2;
	}
	tw_open(&w, argv[1], PACKET_BYTES);
	tw_write_metadata(&w, &metadata);
	for (i = 0; i < threads; i++)
		write_thread(&w, (unsigned int)i + 1, records / threads + (i < records % threads));
	tw_close(&w);
	return 0;
}
