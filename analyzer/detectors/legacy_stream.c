/*
 * analyzer/detectors/legacy_stream.c: work in the legacy default stream, before which all other
 * streams of the device stop and behind which they wait, unless they were made non-blocking.
 */
#include "table.h"
#include "findings/site.h"
#include "text/text.h"

/* Fewer are a beginning or an end; and they must be spread over the process's work or its time. */
#define TURNS_LEAST 10
#define SPREAD_LEAST 0.4

static bool is_case(const struct accounting *a, size_t process, const struct legacy_use *use)
{
	uint64_t all = a->work.submissions[process];
	struct span span;

	if (use->turns < TURNS_LEAST)
		return false;
	if ((double)(use->last_turn - use->first_turn) >= SPREAD_LEAST * (double)all)
		return true;
	span = work_span(a, process, NULL);
	return (double)(use->last_ns - use->first_ns) >=
	       SPREAD_LEAST * (double)(span.end_ns - span.begin_ns);
}

static void add_finding(const struct trace_set *set, struct arena *texts,
			const struct legacy_use *use, uint32_t device, struct finding *finding)
{
	finding->place.function = text_function(set, use->most.fn);
	finding->lookup.address = use->most.return_address;
	finding->lookup.address_ns = use->most.ns;
	finding->lookup.stacks = use->stacks;
	finding->lookup.n_stacks = min_u64(use->n_stacks, LEGACY_STACKS);
	finding->count = use->turns;
	finding->cost.unknown = true;
	finding->what =
		arena_printf(texts,
			     "%s work in the legacy default stream of GPU %u, %s by %s, and "
			     "work in %llu other stream%s had to wait for each other",
			     text_count(texts, use->turns, "time"), device,
			     use->votes >= use->turns / 2 ? "mostly" : "among others",
			     finding->place.function ?: "unknown calls",
			     (unsigned long long)use->streams, use->streams == 1 ? "" : "s");
}

static void conclude(const struct accounting *a, struct found *found)
{
	const struct gpu_work *work = &a->work;

	for (size_t process = 0; process < work->n_processes; process++) {
		for (uint32_t device = 0; device < work->n_devices; device++) {
			const struct legacy_use *use =
				&work->legacy[work_index(work, process, device)];
			struct finding *finding;

			if (!is_case(a, process, use))
				continue;
			finding = detector_add(&detector_legacy_stream, found);
			finding->origin.process = &a->model->processes[process];
			add_finding(a->model->set, found->texts, use, device, finding);
		}
	}
}

const struct detector detector_legacy_stream = {
	.id = "legacy-stream",
	.title = "work in the default stream blocks other streams",
	.sees = "Kernels, copies and memsets handed to the legacy default stream (stream 0) "
		"while another stream of the device, made without cudaStreamNonBlocking, had "
		"work outstanding, and the reverse, ten times or more all through the program. "
		"The GPU begins such work when all of those streams are done, and none of them "
		"goes on before it is finished: nothing overlaps. A cudaMemcpy behind the same "
		"thread's own stream is no case, because that wait is intended.",
	.blind = "A stream counts as busy until a call has waited for it, because the GPU is "
		 "not asked; what the order cost is unknown. The order may be what keeps the "
		 "results right: look before you change it. Streams whose creation was not "
		 "recorded, and the per-thread default stream, are left out.",
	.fix = "Give that work a stream of its own, make the streams with "
	       "cudaStreamCreateWithFlags(cudaStreamNonBlocking), or compile with "
	       "--default-stream per-thread; where an order is needed, say so with "
	       "cudaStreamWaitEvent.",
	.conclude_calls = conclude,
};
