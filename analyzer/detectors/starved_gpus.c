/*
 * analyzer/detectors/starved_gpus.c: a GPU has nothing to do, again and again, for reasons of one kind: what the detectors of
 * such reasons have in common. Called when all records have been read.
 *
 * A case is a GPU that was certainly idle for a good part of its work because of that, its longest
 * such gap aside: what a program does once is not systematic. Nor is what it does in the first part of its work alone, as
 * compiling for the sizes that it meets. What other findings have of the idle time is no case.
 */
#include <stdlib.h>
#include "starved_gpus.h"
#include "base/median.h"
#include "findings/gpu_use.h"
#include "findings/idle_price.h"
#include "text/text.h"
#include "text/where.h"

#define LEAST_NS 50000000

static bool is_case(const struct starved_gpus *h)
{
	uint64_t repeated_ns = h->ns - min_u64(h->ns, h->longest_ns);

	return repeated_ns >= LEAST_NS && repeated_ns >= h->work_ns / STARVED_LEAST_PART;
}

static bool is_of(const struct idle_sum *sum, uint64_t causes)
{
	return causes >> sum->key.cause & 1;
}

/* What the sum has for the case of its GPU. */
static uint64_t ns_for(const struct starved_gpus_kind *kind, const struct idle *idle,
		       const struct starved_gpus *gpus, const struct idle_sum *sum)
{
	uint64_t ns = is_of(sum, kind->causes) ? idle_price_left(idle, sum) : 0;

	return ns && !is_of(sum, gpus[gpu_of_sum(idle, sum)].once) ? ns : 0;
}

/* ---- what is done once ------------------------------------------------------------------------ */

#define ONCE_PART 4 /* of the work: the first one */
#define ONCE_MOST 0.9 /* of the time lies there */

/*
 * Of a GPU that one process uses: work that is known (idle_is_work) is done once where it lies before the thread that feeds the GPU
 * has made the first part of its calls. What else lies there, but not behind that work, belongs to it: a compiler's threads try
 * what they compiled, and wait for programs that they start.
 */
struct at_begin {
	uint64_t until,
		work_until; /* in PROGRESS_UNIT_NS since the phase began; 0: unknown, or there is no such work */
	double ns[IDLE_CAUSE_COUNT], early_ns[IDLE_CAUSE_COUNT];
};

static uint64_t find_begin(const struct idle *idle, const struct idle_gpu *gpu)
{
	const struct thread *feeder = gpu->n_processes == 1 ? gpu_feeder(idle, gpu) : NULL;
	const struct host_thread *h = feeder ? host_thread_find(&idle->threads, feeder) : NULL;
	const struct thread_account *c = h ? thread_account_of(idle->accounts, feeder) : NULL;
	uint64_t begin_ns, ns;

	if (!c || !h->clock)
		return 0;
	begin_ns = idle->accounts->expect->phases.all[gpu->processes[0]->trace->index].begin_ns;
	ns = progress_clock_at(h->clock, c->recent_ops.progress_calls / ONCE_PART);
	return (ns - min_u64(begin_ns, ns)) / PROGRESS_UNIT_NS;
}

/* Adds up what of these causes lies before that. */
static void see_early(const struct idle *idle, const struct starved_gpus_kind *kind, bool of_work,
		      struct at_begin *begins)
{
	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		uint64_t ns = is_of(sum, kind->causes) ? idle_price_left(idle, sum) : 0;
		struct at_begin *begin;

		if (!ns || idle_is_work(sum->key.cause) != of_work)
			continue;
		begin = &begins[gpu_of_sum(idle, sum)];
		begin->ns[sum->key.cause] += (double)ns;
		if (sum->progress)
			begin->early_ns[sum->key.cause] +=
				(double)ns *
				progress_before(sum->progress,
						of_work ? begin->until : begin->work_until);
	}
}

static bool lies_early(const struct at_begin *begin, enum idle_cause cause)
{
	return begin->ns[cause] > 0 && begin->early_ns[cause] >= ONCE_MOST * begin->ns[cause];
}

static void find_work_until(const struct idle *idle, struct at_begin *begins)
{
	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		size_t gpu = gpu_of_sum(idle, sum);
		struct at_begin *begin = gpu < idle->n_gpus ? &begins[gpu] : NULL;

		if (begin && sum->progress && idle_is_work(sum->key.cause) &&
		    lies_early(begin, sum->key.cause))
			begin->work_until =
				max_u64(begin->work_until,
					min_u64(progress_end(sum->progress), begin->until));
	}
}

static void find_once(const struct starved_gpus_kind *kind, const struct idle *idle,
		      struct starved_gpus *gpus)
{
	struct at_begin *begins = xcalloc(idle->n_gpus + 1, sizeof(*begins));

	for (size_t i = 0; i < idle->n_gpus; i++)
		begins[i].until = find_begin(idle, &idle->gpus[i]);
	see_early(idle, kind, true, begins);
	find_work_until(idle, begins);
	see_early(idle, kind, false, begins);
	for (size_t i = 0; i < idle->n_gpus; i++)
		for (unsigned int cause = 0; cause < IDLE_CAUSE_COUNT; cause++) {
			if (!lies_early(&begins[i], cause))
				continue;
			gpus[i].once |= 1ull << cause;
			gpus[i].once_ns += (uint64_t)begins[i].ns[cause];
		}
	free(begins);
}

/* Where the thread was, and not only which calls it was between. */
static bool has_place(const struct idle_sum *sum)
{
	const struct idle_part *part = &sum->longest;

	return sum->key.code || idle_in_a_call(sum->key.cause) || part->fn == NO_FUNCTION;
}

static void add_callback(struct starved_gpus *h, const struct idle_callback *callback, uint64_t ns)
{
	h->callback = h->callback ?: callback;
	h->callback_ns += callback ? ns : 0;
}

const struct idle_callback *starved_gpus_callback(const struct starved_gpus *h)
{
	return h->callback_ns > h->ns / 2 ? h->callback : NULL;
}

static void add_sum(const struct starved_gpus_kind *kind, struct starved_gpus *h,
		    const struct idle_sum *sum, uint64_t ns)
{
	if (is_of(sum, kind->beside)) {
		h->beside_ns += ns;
		return;
	}
	h->ns += ns;
	h->gaps += sum->count;
	add_callback(h, idle_callback_of_stack(sum->longest.stack), ns);
	if (sum->key.code && (!h->in_python || sum->ns > h->in_python->ns))
		h->in_python = sum;
}

/* ---- where most of it went -------------------------------------------------------------------- */

/* What a sum has left of a GPU's idle time; `of`: that GPU, or the process of which it is a case. */
struct part_of_gpu {
	size_t of;
	const struct idle_sum *sum;
	uint64_t ns;
};

/* What another thread did is a part of the place. */
static int by_others(const struct idle_sum *x, const struct idle_sum *y)
{
	return COMPARE(x->meanwhile_tid, y->meanwhile_tid) ?:
	       COMPARE(x->meanwhile != NULL, y->meanwhile != NULL) ?:
	       (x->meanwhile ? python_compare_functions(x->meanwhile, y->meanwhile) : 0);
}

/* Those of a GPU, of them those that ran in one function; other ones by place. */
static int by_function(const void *a, const void *b)
{
	const struct part_of_gpu *x = a, *y = b;
	const struct idle_sum_key *k = &x->sum->key, *l = &y->sum->key;

	return COMPARE(x->of, y->of) ?: COMPARE(k->process, l->process) ?:
	       COMPARE(k->cause, l->cause) ?: COMPARE(k->code != 0, l->code != 0) ?:
	       (k->code && idle_runs_python(k->cause)
			? python_compare_functions(x->sum->longest.stack, y->sum->longest.stack)
			: COMPARE(k->address, l->address) ?: COMPARE(k->code, l->code) ?:
			  COMPARE(k->line, l->line) ?: by_others(x->sum, y->sum));
}

#define PLACED_PART 4 /* of the largest part: what has a place is told of instead */

/* A function, rather than "before cuCtxSetCurrent". */
static bool is_better(const struct starved_gpus *h, const struct idle_sum *sum, uint64_t ns)
{
	if (!h->most || has_place(h->most) == has_place(sum))
		return !h->most || ns > h->most_ns;
	return has_place(sum) ? ns >= h->most_ns / PLACED_PART : h->most_ns < ns / PLACED_PART;
}

/* The parts [0, n) are in one function. */
static void see_function(const struct idle *idle, struct starved_gpus *h,
			 const struct part_of_gpu *parts, size_t n)
{
	const struct part_of_gpu *largest = parts;
	bool several_lines = false;
	struct in_c in_c = {0};
	uint64_t ns = 0;

	for (size_t i = 0; i < n; i++) {
		ns += parts[i].ns;
		several_lines |= parts[i].sum->key.code != parts->sum->key.code ||
				 parts[i].sum->key.line != parts->sum->key.line;
		in_c_add(&in_c, &idle->in_c, &parts[i].sum->key);
		if ((COMPARE(parts[i].ns, largest->ns)
			     ?: COMPARE(largest->sum->key.owner, parts[i].sum->key.owner)) > 0)
			largest = &parts[i];
	}
	if (!is_better(h, largest->sum, ns))
		return;
	h->most = largest->sum;
	h->most_ns = ns;
	h->several_lines = several_lines;
	h->in_c = in_c;
}

static size_t process_of(const struct starved_gpus *gpu)
{
	return gpu->most->process->trace->index;
}

/* Into each GPU; with `processes` into each of these, of its GPUs that are cases: the same place may have kept several waiting. */
static void find_most(const struct starved_gpus_kind *kind, const struct idle *idle,
		      struct starved_gpus *gpus, struct starved_gpus *processes)
{
	struct part_of_gpu *parts = xcalloc(HASH_COUNT(idle->sums.by_key) + 1, sizeof(*parts));
	size_t n = 0, first = 0;

	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		uint64_t ns = ns_for(kind, idle, gpus, sum);
		size_t gpu = ns ? gpu_of_sum(idle, sum) : 0, process = sum->process->trace->index;

		if (!ns ||
		    (processes && (!is_case(&gpus[gpu]) || process_of(&gpus[gpu]) != process)))
			continue;
		parts[n++] = (struct part_of_gpu){processes ? process : gpu, sum, ns};
	}
	if (n)
		qsort(parts, n, sizeof(*parts), by_function);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && !by_function(&parts[first], &parts[i]))
			continue;
		see_function(idle, &(processes ?: gpus)[parts[first].of], &parts[first], i - first);
		first = i;
	}
	free(parts);
}

/* A wait for another thread, of which no line of the program is known, while another one ran one: there the time went. */
static bool ran_meanwhile(const struct idle_sum *sum)
{
	return !sum->key.code && sum->meanwhile && python_line(sum->meanwhile).code;
}

bool starved_gpus_ran_meanwhile(const struct starved_gpus *h)
{
	return h->most_ns > h->ns / 2 && ran_meanwhile(h->most);
}

/* Is it known what lines of Python call in C, for most of the time? */
static bool has_in_c(const struct starved_gpus *h)
{
	return h->most_ns > h->ns / 2 && idle_runs_python(h->most->key.cause) &&
	       h->most->longest.fn == NO_FUNCTION;
}

struct in_c_most starved_gpus_in_c(const struct starved_gpus *h)
{
	return has_in_c(h) ? in_c_most(&h->in_c) : (struct in_c_most){0};
}

bool starved_gpus_is_parallel(const struct starved_gpus *h)
{
	return has_in_c(h) && in_c_is_parallel(&h->in_c);
}

/* What a sum has of its longest time between two calls. */
struct gap_part {
	size_t gpu;
	uint64_t thread, at_ns, ns;
};

static int by_gap(const void *a, const void *b)
{
	const struct gap_part *x = a, *y = b;

	return COMPARE(x->gpu, y->gpu) ?: COMPARE(x->thread, y->thread) ?: COMPARE(x->at_ns, y->at_ns);
}

/* Samples divide the longest time between two calls among several places: together they are what the program may do but once. */
static void find_longest_gaps(const struct starved_gpus_kind *kind, const struct idle *idle,
			      struct starved_gpus *gpus)
{
	struct gap_part *parts = xcalloc(HASH_COUNT(idle->sums.by_key) + 1, sizeof(*parts));
	uint64_t gap_ns = 0;
	size_t n = 0;

	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (ns_for(kind, idle, gpus, sum))
			parts[n++] = (struct gap_part){
				gpu_of_sum(idle, sum),
				sum->longest.thread ? sum->longest.thread->index + 1 : 0,
				sum->longest.at_ns, sum->longest_ns};
	if (n)
		qsort(parts, n, sizeof(*parts), by_gap);
	for (size_t i = 0; i < n; i++) {
		struct starved_gpus *h = &gpus[parts[i].gpu];

		if (!i || !parts[i].at_ns || by_gap(&parts[i - 1], &parts[i]))
			gap_ns = 0;
		gap_ns += parts[i].ns;
		h->longest_ns = max_u64(h->longest_ns, gap_ns);
	}
	free(parts);
}

static struct starved_gpus *look_at_gpus(const struct starved_gpus_kind *kind,
					 const struct idle *idle)
{
	struct starved_gpus *gpus = xcalloc(idle->n_gpus + 1, sizeof(*gpus));

	find_once(kind, idle, gpus);
	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		uint64_t ns = is_of(sum, kind->beside) ? idle_price_left(idle, sum)
						       : ns_for(kind, idle, gpus, sum);

		if (ns)
			add_sum(kind, &gpus[gpu_of_sum(idle, sum)], sum, ns);
	}
	find_most(kind, idle, gpus, NULL);
	for (size_t i = 0; i < idle->n_gpus; i++) {
		gpus[i].gpu = &idle->gpus[i];
		gpus[i].work_ns = gpu_work_ns(idle->accounts->expect, gpus[i].gpu);
		gpus[i].work_ns -= min_u64(gpus[i].once_ns, gpus[i].work_ns);
	}
	find_longest_gaps(kind, idle, gpus);
	return gpus;
}

/* A process has one finding for all of its GPUs that are cases. */
static void add_gpu(struct starved_gpus *process, const struct starved_gpus *gpu)
{
	process->ns += gpu->ns;
	process->beside_ns += gpu->beside_ns;
	process->work_ns += gpu->work_ns;
	add_callback(process, gpu->callback, gpu->callback_ns);
	process->once |= gpu->once;
	process->once_ns += gpu->once_ns;
	process->gaps += gpu->gaps;
	process->gpus++;
}

/* The process's finding tells of one of its GPUs: that of the largest sum. */
static void choose_gpu(const struct idle *idle, struct starved_gpus *process,
		       const struct starved_gpus *gpus)
{
	const struct starved_gpus *gpu = &gpus[gpu_of_sum(idle, process->most)];

	process->in_python = gpu->in_python;
	process->gpu = gpu->gpu;
}

static void add_costs(const struct starved_gpus_kind *kind, const struct idle *idle,
		      const struct starved_gpus *gpus, struct starved_gpus *processes)
{
	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		uint64_t ns = ns_for(kind, idle, gpus, sum);
		const struct starved_gpus *gpu = ns ? &gpus[gpu_of_sum(idle, sum)] : NULL;
		struct starved_gpus *process;

		if (!gpu || !is_case(gpu))
			continue;
		process = &processes[process_of(gpu)];
		process->by_cause[sum->key.cause] += ns;
		if (sum->longest.thread)
			thread_costs_add(&process->costs, sum->longest.thread, (double)ns,
					 (double)ns);
	}
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The part to tell of: calls and waits at one place have a stack only now and then. */
static const struct idle_part *part_to_show(const struct starved_gpus *h)
{
	const struct idle_sum *in_python = h->in_python;

	return in_python && h->most->key.address && in_python->key.cause == h->most->key.cause &&
			       in_python->key.address == h->most->key.address
		       ? &in_python->longest
		       : &h->most->longest;
}

/* "most of it", of what is more than half of it; else how much the largest part is. */
static const char *how_much(struct arena *texts, const struct starved_gpus *h)
{
	if (h->most_ns > h->ns / 2)
		return "most of it";
	return arena_printf(texts, "%s of it",
			    text_percent(texts, (double)h->most_ns, (double)h->ns));
}

/* "train.py:21 in step", "train.py:21 and other lines of step". */
static const char *line_text(struct arena *texts, const struct starved_gpus *h,
			     const struct python_line *line)
{
	const char *file = line->code ? path_basename(line->code->file) : NULL;

	if (!file || !line->line || !h->several_lines)
		return text_python(texts, line);
	return arena_printf(texts, "%s:%u and other lines of %.*s", file, line->line,
			    (int)python_name_length(line->code), line->code->function);
}

/* ", most of it between train.py:17 in step and train.py:21 in step"; where it is known. */
static const char *most_text(struct arena *texts, const struct model *model,
			     const struct starved_gpus *h)
{
	const struct trace_set *set = model->set;
	const struct idle_part *part = part_to_show(h);
	const char *much = how_much(texts, h);
	struct python_line line = python_line(part->stack),
			   before = python_line(part->stack_before);
	const char *at = line_text(texts, h, &line), *after = text_python(texts, &before);
	const char *name = idle_name_of_wait(part);
	const char *others = text_meanwhile(texts, model, h->most->process, h->most->meanwhile_tid,
					    h->most->meanwhile);

	if (h->most->key.cause == IDLE_HOST_FUNCTION)
		return part->object ? arena_printf(texts, ", %s", much) : "";
	if (idle_in_a_call(h->most->key.cause) && part->fn != NO_FUNCTION)
		return arena_printf(texts, ", %s in %s%s%s", much, text_function(set, part->fn),
				    at ? " at " : "", at ?: "");
	if (name)
		return arena_printf(texts, ", %s for %s%s%s", much, name, at ? " at " : "",
				    at ?: "");
	if (at && after && part->fn_before != NO_FUNCTION && part->fn != NO_FUNCTION)
		return arena_printf(texts, ", %s between %s and %s", much, after, at);
	if (at)
		return arena_printf(texts, ", %s %s %s%s%s", much,
				    part->fn == NO_FUNCTION ? "at" : "before", at,
				    others ? ", while " : "", others ?: "");
	return others ? arena_printf(texts, ", %s while %s", much, others) : "";
}

static enum idle_cause most_of(const uint64_t by_cause[IDLE_CAUSE_COUNT])
{
	enum idle_cause most = 0, cause;

	for (cause = 1; cause < IDLE_CAUSE_COUNT; cause++)
		if (by_cause[cause] > by_cause[most])
			most = cause;
	return most;
}

enum idle_cause starved_gpus_cause(const struct starved_gpus *h)
{
	return most_of(h->by_cause);
}

#define CAUSES_TOLD 3
#define SHOWN_LEAST_PART 20 /* smaller parts are not told */

/* "compiling (torch.compile)", where it is known what most of it was about. */
static const char *cause_text(struct arena *texts, const struct starved_gpus *h,
			      enum idle_cause cause)
{
	const struct idle_sum *most = h->most;
	const char *library =
		most->key.cause == cause ? idle_name_of_work(most->process, &most->longest) : NULL;

	if (!library)
		return idle_cause_texts[cause];
	return arena_printf(texts, "%s (%s)", idle_cause_texts[cause], library);
}

/* "running Python for 1.2 s, waiting for a pipe for 0.2 s". */
static const char *causes_text(struct arena *texts, const struct starved_gpus *h)
{
	uint64_t left[IDLE_CAUSE_COUNT];
	const char *text = "";

	memcpy(left, h->by_cause, sizeof(left));
	for (unsigned int i = 0; i < CAUSES_TOLD; i++) {
		enum idle_cause cause = most_of(left);

		if (left[cause] <= h->ns / SHOWN_LEAST_PART)
			break;
		if (left[cause] >= h->ns - h->ns / SHOWN_LEAST_PART)
			return cause_text(texts, h, cause);
		text = arena_printf(texts, "%s%s%s for %s", text, i ? ", " : "",
				    cause_text(texts, h, cause), text_time(texts, left[cause]));
		left[cause] = 0;
	}
	return text;
}

/* "; compiling took 8.650 s more, in the first quarter of the work alone". */
static const char *once_text(struct arena *texts, const struct starved_gpus *h)
{
	const char *causes = NULL;

	if (h->once_ns < h->ns / SHOWN_LEAST_PART)
		return "";
	for (unsigned int cause = 0; cause < IDLE_CAUSE_COUNT; cause++)
		if (h->once >> cause & 1)
			causes = arena_printf(texts, "%s%s%s", causes ?: "", causes ? ", " : "",
					      idle_cause_texts[cause]);
	return causes ? arena_printf(texts,
				     "; %s took %s more, in the first quarter of the work alone",
				     causes, text_time(texts, h->once_ns))
		      : "";
}

/* "; for 1.364 s of it jax.pure_callback called the program's own functions". */
static const char *callback_text(struct arena *texts, const struct starved_gpus *h)
{
	if (!h->callback || h->callback_ns < h->ns / SHOWN_LEAST_PART)
		return "";
	return arena_printf(texts, "; for %s of it %s ran functions of the program on the host",
			    text_time(texts, h->callback_ns), h->callback->name);
}

static const char *what(const struct starved_gpus_kind *kind, const struct idle *idle,
			struct arena *texts, const struct starved_gpus *h)
{
	const struct thread *thread = h->most->longest.thread ?: gpu_feeder(idle, h->gpu);
	const char *gpus = h->gpus > 1
				   ? arena_printf(texts, "%llu GPUs", (unsigned long long)h->gpus)
				   : arena_printf(texts, "GPU %u", h->gpu->device);
	const char *who = thread ? text_thread(texts, thread, h->gpu->device) : "the thread",
		   *beside = "";

	if (kind->beside && h->beside_ns >= h->ns / SHOWN_LEAST_PART)
		beside = arena_printf(texts, "; for %s more it slept, or waited for a connection",
				      text_time(texts, h->beside_ns));
	return arena_printf(texts,
			    "%s %s waiting: %s %s for %s, %s of %s work, "
			    "while %s%s, which feeds %s, was %s%s%s%s%s",
			    kind->who_keeps(h), gpus, h->gpus > 1 ? "they" : "it",
			    h->gpu->estimated_ns ? "had nothing to do, as NVML says, at least"
						 : "certainly had nothing to do",
			    text_time(texts, h->ns),
			    text_percent(texts, (double)h->ns, (double)h->work_ns),
			    h->gpus > 1 ? "their" : "its", kind->of_thread, who,
			    h->gpus > 1 ? "one of them" : "it", causes_text(texts, h),
			    most_text(texts, idle->accounts->model, h), callback_text(texts, h),
			    beside, once_text(texts, h));
}

/* ---- findings -------------------------------------------------------------------------------- */

/* Lines of Python count by how many of the finding's stacks have them: each sum has as many as its
 * part of the time is. */
static void add_stacks(const struct starved_gpus_kind *kind, const struct idle *idle,
		       struct arena *texts, const struct starved_gpus *h,
		       const struct starved_gpus *gpus, struct finding *finding)
{
	const struct stack **stacks =
		arena_take(texts, xcalloc(SITE_STACKS, sizeof(struct stack *)));
	size_t n_stacks = 0;

	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		const struct stack *stack =
			ran_meanwhile(sum) ? sum->meanwhile : sum->longest.stack;
		uint64_t ns = stack ? ns_for(kind, idle, gpus, sum) : 0;
		uint64_t n = h->ns ? (uint64_t)((double)ns * SITE_STACKS / (double)h->ns) : 0;

		if (!n || !is_case(&gpus[gpu_of_sum(idle, sum)]) ||
		    process_of(&gpus[gpu_of_sum(idle, sum)]) != process_of(h))
			continue;
		while (n-- && n_stacks < SITE_STACKS)
			stacks[n_stacks++] = stack;
	}
	if (!n_stacks)
		return;
	finding->lookup.stacks = stacks;
	finding->lookup.n_stacks = n_stacks;
}

/* Where the most of it went. */
static struct idle_part place_of(const struct idle_sum *sum)
{
	struct idle_part part = sum->longest;

	if (!ran_meanwhile(sum))
		return part;
	part.cause = IDLE_PYTHON;
	part.fn = NO_FUNCTION;
	part.address = 0;
	part.stack = sum->meanwhile;
	return part;
}

/* "; in save 92 % of the time was in deflate (libz.so.1)". */
static void name_in_library(const struct starved_gpus *h, const struct in_c_most *most,
			    const struct python_code *code, struct finding *finding,
			    struct arena *texts)
{
	finding_name_place(
		finding, texts,
		&(struct named_place){
			.words = arena_printf(
				texts, "; in %.*s %s of the time was in ",
				(int)python_name_length(code), code->function,
				text_percent(texts, (double)most->us, (double)h->in_c.us)),
			.address = most->function->address,
			.ns = most->function->place->ns,
			.in_library = true,
			.whole_library = most->where == IN_C_LIBRARY});
}

static void name_in_c(const struct starved_gpus *h, struct finding *finding, struct arena *texts)
{
	const struct in_c_most most = starved_gpus_in_c(h);
	struct python_line line = python_line(h->most->longest.stack);

	if (!line.code)
		return;
	if (starved_gpus_is_parallel(h))
		finding->what = arena_printf(
			texts,
			"%s; in %.*s %s of the time was in parallel loops on the CPU (OpenMP)",
			finding->what, (int)python_name_length(line.code), line.code->function,
			text_percent(texts, (double)h->in_c.parallel_us, (double)h->in_c.us));
	else if (most.function)
		name_in_library(h, &most, line.code, finding, texts);
}

static void add_finding(const struct starved_gpus_kind *kind, const struct idle *idle,
			const struct starved_gpus *h, const struct starved_gpus *gpus,
			struct found *found)
{
	const struct model *model = idle->accounts->model;
	struct arena *texts = found->texts;
	struct finding *finding = detector_add(kind->detector, found);
	const struct idle_part place = place_of(h->most), *part = &place;

	finding->origin.process = h->most->process;
	finding->count = h->gaps;
	finding->cost.own_ns = h->ns;
	/* Up to all of it: what is waited for may become less, or be done by several threads while the GPU works. */
	finding->cost.gain_high_ns = h->ns;
	finding->cost.gain_known = true;
	finding->cost.threads = h->costs;
	finding->place.function = text_function(model->set, part->fn);
	/* Where no Python was is not to be placed by the stacks of others, whose lines of Python say where these were. */
	if ((part->stack && part->stack->n_python) || !h->in_python)
		finding_look_up(finding, texts, part);
	if (part->cause == IDLE_HOST_FUNCTION && part->object)
		finding_name_place(finding, texts,
				   &(struct named_place){.words = "",
							 .address = idle_function_address(part),
							 .ns = part->at_ns});
	finding->what = what(kind, idle, texts, h);
	name_in_c(h, finding, texts);
	finding->fix = kind->cure(model->set, texts, h);
	if (kind->remark)
		kind->remark(h, finding);
	add_stacks(kind, idle, texts, h, gpus, finding);
}

/* All of it is the price of the process's finding. */
static void take(const struct starved_gpus_kind *kind, const struct idle *idle,
		 const struct starved_gpus *gpus, struct finding *findings, size_t n)
{
	for (struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		uint64_t ns = ns_for(kind, idle, gpus, sum);
		const struct starved_gpus *gpu = ns ? &gpus[gpu_of_sum(idle, sum)] : NULL;

		if (!gpu || !is_case(gpu))
			continue;
		for (size_t i = 0; i < n; i++) {
			if (findings[i].detector != kind->detector ||
			    findings[i].origin.process != gpu->most->process)
				continue;
			findings[i].cost.idle_gpu_known = true;
			findings[i].cost.idle_gpu_ns += ns;
			sum->priced_ns = sum->ns;
		}
	}
}

void starved_gpus_conclude(const struct starved_gpus_kind *kind, const struct idle *idle,
			   struct found *found)
{
	const struct model *model = idle->accounts->model;
	struct starved_gpus *processes = xcalloc(model->n_processes + 1, sizeof(*processes));
	struct starved_gpus *gpus = look_at_gpus(kind, idle);
	size_t i, first = found->n;

	for (i = 0; i < idle->n_gpus; i++)
		if (is_case(&gpus[i]))
			add_gpu(&processes[process_of(&gpus[i])], &gpus[i]);
	find_most(kind, idle, gpus, processes);
	add_costs(kind, idle, gpus, processes);
	for (i = 0; i < model->n_processes; i++) {
		if (!processes[i].gpus)
			continue;
		choose_gpu(idle, &processes[i], gpus);
		add_finding(kind, idle, &processes[i], gpus, found);
	}
	if (found->n > first)
		take(kind, idle, gpus, found->all + first, found->n - first);
	free(processes);
	free(gpus);
}
