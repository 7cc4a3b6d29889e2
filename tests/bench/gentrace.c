/*
 * tests/bench/gentrace.c: writes a synthetic trace of many records, to time its readers with.
 *
 *   gentrace DIR RECORDS THREADS
 *
 * A thread is a launch-bound loop: launches with the driver call inside them, copies of which one
 * in eight is pageable, synchronisations, allocations. All threads run at the same time, so that
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

/* A launch: the driver's call, then the runtime's around it. */
static void launch(struct tw_trace *w, unsigned int slot, uint64_t *time)
{
	struct spy_rec_head inner =
		head(*time += 2500, SPY_EV_NESTED, SPY_FN_cuLaunchKernel, 1800 + random_below(900));
	struct spy_rec_launch outer = {.caller = 0x401000 + random_below(16) * 64,
				       .kernel_lo = (uint16_t)(1 + random_below(8)),
				       .stream = 0x5000 + slot};

	inner.depth = 1;
	tw_record(w, slot, &inner, sizeof(inner));
	outer.head =
		head(*time += 200, SPY_EV_LAUNCH, SPY_FN_cudaLaunchKernel, inner.duration + 300);
	tw_record(w, slot, &outer, sizeof(outer));
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

static void other(struct tw_trace *w, unsigned int slot, uint64_t *time)
{
	struct spy_rec_op op = {.caller = 0x403000, .stream = 0x5000 + slot};
	struct spy_rec_memory memory = {.caller = 0x404000,
					.op = SPY_MEMOP_ALLOC,
					.kind = SPY_MEM_DEVICE,
					.address = 0x7f0000000000,
					.bytes = 1 << 20};

	if (random_below(4)) {
		op.head = head(*time += 20000, SPY_EV_OP, SPY_FN_cudaStreamSynchronize,
			       1000 + random_below(18000));
		tw_record(w, slot, &op, sizeof(op));
	} else {
		memory.head = head(*time += 3000, SPY_EV_MEMORY, SPY_FN_cudaMallocAsync,
				   500 + random_below(2000));
		tw_record(w, slot, &memory, sizeof(memory));
	}
}

static void write_thread(struct tw_trace *w, unsigned int slot, uint64_t records)
{
	struct spy_rec_thread thread = {
		.head = {1000 + slot, SPY_EV_THREAD}, .tid = 100 + slot, .name = "worker"};
	uint64_t time = 1000 + slot;

	tw_stream(w, slot)->tid = thread.tid;
	tw_record(w, slot, &thread, sizeof(thread));
	for (records--; records >= 2;) {
		uint64_t dice = random_below(10);

		if (dice < 6) {
			launch(w, slot, &time);
			records -= 2;
		} else if (dice < 9) {
			copy(w, slot, &time);
			records--;
		} else {
			other(w, slot, &time);
			records--;
		}
	}
	while (records--)
		other(w, slot, &time);
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
