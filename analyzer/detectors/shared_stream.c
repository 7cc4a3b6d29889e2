/*
 * analyzer/detectors/shared_stream.c: several threads hand their work to one stream, the default stream for instance, and
 * wait for it at the same time: each waits for the others' work, too.
 */
#include <stdlib.h>
#include "table.h"
#include "account/shared_streams.h"
#include "findings/gpu_use.h"
#include "idle/idle.h"
#include "text/text.h"

#define LEAST_PART 10 /* of a thread's working time */
#define LEAST_NS 10000000
#define LEAST_THREADS 2

static const char fix_of_copies[] =
	"Give each thread a stream of its own (cudaStreamCreateWithFlags with "
	"cudaStreamNonBlocking), copy with cudaMemcpyAsync in it, from and to pinned memory, and "
	"wait for that stream alone; or compile with --default-stream per-thread, where "
	"cudaMemcpy waits for the thread's own stream.";

/* Of a process and a device. */
struct sharing {
	uint64_t waits, copies, waited_ns, others_ns, threads, streams;
	uint64_t handle; /* of the stream with most of it, */
	uint64_t most_ns; /* of that */
	const struct stream_sharer *worst;
	struct thread_costs costs;
};

static bool is_much(const struct idle *idle, const struct stream_sharer *sharer)
{
	const struct host_thread *h =
		sharer->thread ? host_thread_find(&idle->threads, sharer->thread) : NULL;

	return h && sharer->others_ns >= LEAST_NS &&
	       sharer->others_ns >= (h->outside_ns + h->in_calls_ns) / LEAST_PART;
}

static void add_sharer(struct sharing *sum, const struct stream_sharer *sharer)
{
	sum->threads++;
	sum->waits += sharer->waits;
	sum->copies += sharer->copies;
	sum->waited_ns += sharer->waited_ns;
	sum->others_ns += sharer->others_ns;
	thread_costs_add(&sum->costs, sharer->thread, (double)sharer->others_ns,
			 (double)sharer->others_ns);
	if (!sum->worst || sharer->others_ns > sum->worst->others_ns)
		sum->worst = sharer;
}

static void add_stream(const struct idle *idle, const struct stream_sharing *s, struct sharing *sum)
{
	uint64_t before_ns = sum->others_ns, much = 0;

	for (size_t i = 0; i < STREAM_SHARERS; i++)
		much += is_much(idle, &s->sharers[i]);
	if (much < LEAST_THREADS)
		return;
	for (size_t i = 0; i < STREAM_SHARERS; i++)
		if (is_much(idle, &s->sharers[i]))
			add_sharer(sum, &s->sharers[i]);
	sum->streams++;
	if (sum->others_ns - before_ns <= sum->most_ns)
		return;
	sum->most_ns = sum->others_ns - before_ns;
	sum->handle = s->handle;
}

/* "one stream": which one. */
static const char *stream_words(const struct sharing *sum)
{
	if (sum->streams > 1)
		return "shared streams";
	return sum->handle == STREAM_LEGACY ? "the default stream (stream 0)" : "one stream";
}

#define BUSY_LEAST_PERCENT 90

/* Is there hardly any time in which the GPU could do more? Then the threads may stand in line for it, and not for the stream. */
static bool is_busy(const struct idle *idle, size_t process, uint32_t device)
{
	size_t number = idle->users[work_index(&idle->accounts->work, process, device)].gpu;
	const struct idle_gpu *gpu = number ? &idle->gpus[number - 1] : NULL;
	uint64_t work_ns = gpu ? gpu_work_ns(idle->accounts->expect, gpu) : 0;
	uint64_t busy_ns = !gpu                     ? 0
			   : idle_gpu_is_exact(gpu) ? gpu->exact.busy_ns
						    : busy_certain_ns(idle, gpu);

	return work_ns && busy_ns >= work_ns / 100 * BUSY_LEAST_PERCENT;
}

static const char *what(struct arena *texts, const struct sharing *sum, uint32_t device, bool busy)
{
	const struct stream_sharer *worst = sum->worst;
	bool copies = sum->copies == sum->waits;

	return arena_printf(
		texts,
		"%s %s %s of GPU %u%s at the same time: of %s in %s, about %s were for the "
		"others' work, %s; %s longest: about %s of %s%s",
		text_count(texts, sum->threads, "thread"),
		copies ? "copy in" : "hand their work to", stream_words(sum), device,
		copies ? "" : " and wait for it", text_time(texts, sum->waited_ns),
		text_count(texts, sum->waits, copies ? "blocking call" : "wait"),
		text_time(texts, sum->others_ns),
		copies ? "by what was done before them" : "by the numbers of operations",
		text_thread(texts, worst->thread, (uint8_t)device),
		text_time(texts, worst->others_ns), text_time(texts, worst->waited_ns),
		busy && !copies
			? "; the GPU worked nearly all the time: if each kernel fills it, the threads "
			  "stand in line for the GPU itself, nothing is lost, and a stream for each "
			  "gains nothing"
			: "");
}

static void add_finding(const struct idle *idle, struct arena *texts, const struct sharing *sum,
			uint32_t device, const struct process *process, struct finding *finding)
{
	const struct trace_set *set = idle->accounts->model->set;
	const struct stream_sharer *worst = sum->worst;

	finding->origin.process = process;
	finding->variant = device + 1;
	finding->count = sum->waits;
	finding_set_cost(finding, sum->others_ns);
	finding->cost.threads = sum->costs;
	finding->place.function = text_function(set, worst->fn);
	finding_look_up(finding, texts,
			&(struct idle_part){.address = worst->return_address,
					    .at_ns = worst->ns,
					    .fn = worst->fn,
					    .stack = worst->stack});
	finding->what = what(texts, sum, device, is_busy(idle, process->trace->index, device));
	finding->fix = sum->copies == sum->waits ? fix_of_copies : detector_shared_stream.fix;
}

static void conclude(const struct idle *idle, struct found *found)
{
	const struct model *model = idle->accounts->model;
	const struct gpu_work *work = &idle->accounts->work;
	const struct stream_sharing *s;

	for (size_t process = 0; process < work->n_processes; process++) {
		for (uint32_t device = 0; device < work->n_devices; device++) {
			struct sharing sum = {0};

			for (s = work->devices[work_index(work, process, device)].shared; s;
			     s = s->next)
				add_stream(idle, s, &sum);
			if (sum.threads)
				add_finding(idle, found->texts, &sum, device,
					    &model->processes[process],
					    detector_add(&detector_shared_stream, found));
		}
	}
}

const struct detector detector_shared_stream = {
	.id = "shared-stream",
	.title = "threads share a stream, and each waits for the others' work",
	.sees = "Two threads or more that hand work to the same stream, the default stream for "
		"instance, and wait for it at the same time: from 10 ms and a tenth of their "
		"working time on that they wait for each other's work. How long that is, is "
		"inferred from the numbers of operations; of copies that wait (cudaMemcpy), by "
		"what others had done meanwhile, but for copies in the same direction. Threads "
		"that take turns with a stream are no case.",
	.blind = "How long each operation takes, and whether the GPU has room for several at a "
		 "time: if it has not, a stream each gains nothing in all. Waits for events; "
		 "copies of one direction, which take turns on the GPU in any case; and kernels "
		 "of others that a copy waits for, if they do not wait themselves.",
	.fix = "Give each thread a stream of its own (cudaStreamCreateWithFlags with "
	       "cudaStreamNonBlocking, or compile with --default-stream per-thread) and let it "
	       "wait for that one alone.",
	.conclude_idle = conclude,
};
