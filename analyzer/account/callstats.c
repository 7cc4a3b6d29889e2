/*
 * analyzer/account/callstats.c: the calls, counted and timed by function, thread and device. Called
 * by the commands' one loop for each record; read by the report.
 */
#include <stdlib.h>
#include <string.h>
#include "callstats.h"
#include "model/join.h"

#define NO_DEVICE 100
#define NO_BINARY_FOR_GPU 209
#define NOT_PERMITTED 800

/* Results of driver_types.h; those of the driver have the same numbers. */
static const struct {
	uint16_t result;
	const char *why;
} answers[] = {
	{4, "the process was ending"},          {NO_DEVICE, "the machine was asked for GPUs"},
	{500, "a name was asked for"},          {704, "peer access was enabled already"},
	{708, "the device was in use already"}, {712, "the memory was pinned already"},
	{801, "a feature was asked for"},       {910, "the graph has to be instantiated instead"},
};

const char *callstats_answer(uint32_t result)
{
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		if (answers[i].result == result)
			return answers[i].why;
	return NULL;
}

const char *callstats_trial(const char *function, enum spy_contract contract, uint32_t result)
{
	/* A library has kernels for some GPUs each, and looks for them. A launch is another matter. */
	if (result == NO_BINARY_FOR_GPU &&
	    (contract == SPY_CONTRACT_LAZY_LOAD || contract == SPY_CONTRACT_MODULE ||
	     contract == SPY_CONTRACT_HOST))
		return "code for this GPU was asked for";
	/* PyTorch asks for memory that another node can reach, before it asks for ordinary one. Any other call would be
	 * forbidden because a host function makes it. */
	if (result == NOT_PERMITTED && !strcmp(function, "cuMemCreate"))
		return "memory of some kind was asked for";
	return NULL;
}

static void see_later(struct last_failed *last, const struct last_failed *more)
{
	if (more->result && (!last->result || more->ns >= last->ns))
		*last = *more;
}

/* That there is no GPU answers who counts them; who wants memory dies of it. */
void callstats_failed(struct callstats *s, const struct model *model, const struct record *record)
{
	uint16_t result = record->result;
	const struct last_failed failed = {record->ns, record->fn, result};
	const char *function = model->set->functions.all[record->fn].name;
	bool asks = result != NO_DEVICE || strstr(function, "DeviceCount");

	if (asks && callstats_answer(result)) {
		s->answers++;
	} else if (callstats_trial(function, record->contract, result)) {
		s->trials[record->process].n++;
		see_later(&s->trials[record->process].last, &failed);
	} else {
		see_later(&s->last_failed, &failed);
	}
}

/* Who looks for something, finds most of it, and goes on. */
static bool was_answered(const struct callstats *s, size_t process, const struct last_failed *last)
{
	const struct calls *calls = &s->direct[last->fn];

	for (uint32_t device = 0; device < CALLSTATS_DEVICES; device++)
		if (s->used[device] &&
		    s->uses[callstats_index(s, process, device)].last_ns > last->ns)
			return 2 * calls->failed <= calls->count;
	return false;
}

uint64_t callstats_answers(const struct callstats *s, struct last_failed *last)
{
	uint64_t sum = s->answers;

	*last = s->last_failed;
	for (size_t i = 0; i < s->n_processes; i++) {
		const struct trials *trials = &s->trials[i];

		if (trials->n && was_answered(s, i, &trials->last))
			sum += trials->n;
		else
			see_later(last, &trials->last);
	}
	return sum;
}

void callstats_init(struct callstats *s, const struct model *model, struct filtering *filtering)
{
	*s = (struct callstats){
		.model = model, .n_processes = model->n_processes, .filtering = filtering};
	s->devices = xcalloc(CALLSTATS_DEVICES * s->n_processes, sizeof(*s->devices));
	s->uses = xcalloc(CALLSTATS_DEVICES * s->n_processes, sizeof(*s->uses));
	s->trials = xcalloc(s->n_processes, sizeof(*s->trials));
	callstats_grow(s, model);
}

void callstats_release(struct callstats *s)
{
	for (size_t i = 0; i < s->n_functions; i++) {
		if (!s->called[i])
			continue;
		histogram_release(&s->direct[i].durations_ns);
		histogram_release(&s->nested[i].durations_ns);
	}
	free(s->direct);
	free(s->nested);
	free(s->counted);
	free(s->called);
	free(s->trials);
	free(s->threads);
	free(s->devices);
	free(s->uses);
	*s = (struct callstats){0};
}

static void *grow_zero(void *array, size_t old, size_t new, size_t size)
{
	if (!old) /* untouched, for most functions are not called */
		return xcalloc(new, size);
	array = xrealloc(array, new, size);
	memset((char *)array + old * size, 0, (new - old) * size);
	return array;
}

void callstats_grow(struct callstats *s, const struct model *model)
{
	size_t functions = model->set->functions.count;
	size_t threads = 2 * model->n_threads + 16;

	if (functions > s->n_functions) {
		s->direct = grow_zero(s->direct, s->n_functions, functions, sizeof(*s->direct));
		s->nested = grow_zero(s->nested, s->n_functions, functions, sizeof(*s->nested));
		s->counted = grow_zero(s->counted, s->n_functions, functions, sizeof(*s->counted));
		s->called = grow_zero(s->called, s->n_functions, functions, sizeof(*s->called));
		s->n_functions = functions;
	}
	if (model->n_threads >= s->n_threads) {
		s->threads = grow_zero(s->threads, s->n_threads, threads, sizeof(*s->threads));
		s->n_threads = threads;
	}
}

void calls_add(struct calls *sum, const struct calls *more)
{
	sum->count += more->count;
	sum->failed += more->failed;
	sum->total_ns += more->total_ns;
	if (more->count)
		histogram_merge(&sum->durations_ns, &more->durations_ns);
}

void callstats_count(struct callstats *s, const struct thread *thread, uint32_t fn, uint64_t count)
{
	struct calls_sum *sum = thread ? &s->threads[thread->index] : NULL;

	s->called[fn] = true;
	s->counted[fn] = add_capped(s->counted[fn], count);
	s->all.counted = add_capped(s->all.counted, count);
	if (sum)
		sum->counted = add_capped(sum->counted, count);
}

/* What the threads of a slot counted and did not write down any more. */
static void add_slot(struct callstats *s, struct model *model, const struct process *process,
		     const struct spy_slot_page *slot)
{
	const struct board *board = &process->trace->board;
	const struct thread *thread =
		slot->tid ? model_find_thread(model, process, slot->tid) : NULL;

	for (size_t i = 0; i < SPY_BOARD_COUNTERS && !slot->asleep; i++) {
		uint32_t fn;

		if (!slot->counts[i])
			continue;
		fn = trace_function(model->set, process->trace, board->head.counter_fn[i]);
		callstats_grow(s, model);
		if (filter_outside_counted(s->filtering, process->trace->index, thread, fn))
			s->filtering->counted = add_capped(s->filtering->counted, slot->counts[i]);
		else
			callstats_count(s, thread, fn, slot->counts[i]);
	}
}

uint64_t callstats_callers(const struct callstats *s)
{
	uint64_t callers = 0;

	for (size_t i = 0; i < s->model->n_threads; i++)
		callers += s->threads[i].count > 0;
	return callers;
}

uint64_t callstats_process_ns(const struct callstats *s, const struct process *process,
			      uint64_t *n_threads)
{
	uint64_t ns = 0;

	*n_threads = 0;
	for (const struct thread *thread = process->threads; thread; thread = thread->next) {
		if (!s->threads[thread->index].count)
			continue;
		++*n_threads;
		ns += thread_lived_ns(thread);
	}
	return ns;
}

void callstats_finish(struct callstats *s, struct model *model)
{
	callstats_grow(s, model);
	for (size_t i = 0; i < model->n_processes; i++) {
		const struct board *board = &model->processes[i].trace->board;

		for (size_t j = 0; j < board->n_slots; j++)
			add_slot(s, model, &model->processes[i], &board->slots[j]);
	}
	for (size_t i = 0; i < model->n_threads; i++) {
		s->all.count += s->threads[i].count;
		s->all.total_ns += s->threads[i].total_ns;
		s->all.copied_bytes = add_capped(s->all.copied_bytes, s->threads[i].copied_bytes);
		if (s->threads[i].count)
			s->run_ns += thread_lived_ns(model->threads[i]);
	}
}

/* struct callstats, joined: direct, nested, counted, called, n_functions, threads, n_threads, devices, uses, used, all, answers,
 * last_failed, trials; not: model, n_processes, filtering (the whole's), run_ns (callstats_finish), named_elsewhere (while it is read). */
/* struct calls_sum, joined: counted; not: count, total_ns, copied_bytes, fast_copies_ns (of threads and GPUs, which are one part's). */
static void join_part(struct callstats *s, const struct callstats *more,
		      const struct join_part *part)
{
	/* What a part has not touched is not touched here: it would all come into memory. */
	for (size_t i = 0; i < more->n_functions; i++) {
		if (!more->called[i])
			continue;
		s->called[i] = true;
		calls_add(&s->direct[i], &more->direct[i]);
		calls_add(&s->nested[i], &more->nested[i]);
		s->counted[i] = add_capped(s->counted[i], more->counted[i]);
	}
	for (size_t i = 0; i < part->model->n_threads && i < more->n_threads; i++)
		s->threads[part->model->threads[i]->index] = more->threads[i];
	for (size_t j = 0; j < CALLSTATS_DEVICES; j++)
		for (size_t i = 0; more->used[j] && i < part->n_processes; i++) {
			size_t at = callstats_index(s, part->processes[i], (uint32_t)j);

			s->used[j] = true;
			s->devices[at] = more->devices[at];
			s->uses[at] = more->uses[at];
		}
	s->all.counted = add_capped(s->all.counted, more->all.counted);
	for (size_t i = 0; i < part->n_processes; i++)
		s->trials[part->processes[i]] = more->trials[part->processes[i]];
	s->answers += more->answers;
	see_later(&s->last_failed, &more->last_failed);
}

void callstats_join(struct callstats *s, struct callstats *const *parts, const struct model *model,
		    const struct join *join)
{
	callstats_grow(s, model);
	for (size_t i = 0; i < join->n; i++)
		join_part(s, parts[i], &join->parts[i]);
}
