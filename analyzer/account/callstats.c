/*
 * analyzer/account/callstats.c: the calls, counted and timed by function, thread and device. Called
 * by the commands' one loop for each record; read by the report.
 */
#include <stdlib.h>
#include <string.h>
#include "callstats.h"

#define NO_DEVICE 100

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
	size_t i;

	for (i = 0; i < ARRAY_SIZE(answers); i++)
		if (answers[i].result == result)
			return answers[i].why;
	return NULL;
}

/* That there is no GPU answers who counts them; who wants memory dies of it. */
void callstats_failed(struct callstats *s, const struct model *model, const struct record *record)
{
	uint16_t result = record->raw->call_head.result;

	bool asks = result != NO_DEVICE ||
		    strstr(model->set->functions.all[record->fn].name, "DeviceCount");

	if (asks && callstats_answer(result))
		s->answers++;
	else
		callstats_join_failed(s, &(struct last_failed){record->ns, record->fn, result});
}

void callstats_join_failed(struct callstats *s, const struct last_failed *more)
{
	if (more->result && (!s->last_failed.result || more->ns >= s->last_failed.ns))
		s->last_failed = *more;
}

void callstats_init(struct callstats *s, const struct model *model, struct filtering *filtering)
{
	*s = (struct callstats){.n_processes = model->n_processes, .filtering = filtering};
	s->devices = xcalloc(CALLSTATS_DEVICES * s->n_processes, sizeof(*s->devices));
	s->uses = xcalloc(CALLSTATS_DEVICES * s->n_processes, sizeof(*s->uses));
	callstats_grow(s, model);
}

void callstats_release(struct callstats *s)
{
	size_t i;

	for (i = 0; i < s->n_functions; i++) {
		if (!s->called[i])
			continue;
		histogram_release(&s->direct[i].durations_ns);
		histogram_release(&s->nested[i].durations_ns);
	}
	free(s->direct);
	free(s->nested);
	free(s->counted);
	free(s->called);
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
	size_t i;

	for (i = 0; i < SPY_BOARD_COUNTERS && !slot->asleep; i++) {
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

uint64_t callstats_callers(const struct callstats *s, size_t n_threads)
{
	uint64_t callers = 0;
	size_t i;

	for (i = 0; i < n_threads; i++)
		callers += s->threads[i].count > 0;
	return callers;
}

void callstats_finish(struct callstats *s, struct model *model)
{
	size_t i, j;

	callstats_grow(s, model);
	for (i = 0; i < model->n_processes; i++) {
		const struct board *board = &model->processes[i].trace->board;

		for (j = 0; j < board->n_slots; j++)
			add_slot(s, model, &model->processes[i], &board->slots[j]);
	}
	for (i = 0; i < model->n_threads; i++) {
		s->all.count += s->threads[i].count;
		s->all.total_ns += s->threads[i].total_ns;
		s->all.copied_bytes = add_capped(s->all.copied_bytes, s->threads[i].copied_bytes);
	}
}
