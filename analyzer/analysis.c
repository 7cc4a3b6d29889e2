/*
 * analyzer/analysis.c: a trace set, read from end to end. Called by `report`, `why`, `info` and
 * `run`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "analysis.h"
#include "fast_path.h"
#include "stack_gc.h"
#include "account/evidence.h"
#include "expect/priors.h"

/* The first reading, and what the machine's profile knows better. */
static int learn(struct analysis *a, const char *profile)
{
	char *why;
	int found;

	expect_learn(&a->expect, a->set);
	evidence_gather(&a->expect);
	found = profile_choose(&a->profile, profile, &a->expect.machine, &why);
	if (found == 0 && why)
		warn("%s", why);
	free(why);
	if (found < 0)
		return found;
	expect_settle(&a->expect, found ? &a->profile : NULL,
		      priors_choose(&a->prior, &a->expect.machine) ? &a->prior : NULL);
	return 0;
}

/* A terminal shows the progress, from the third second on. */
#define PROGRESS_RECORDS (1u << 22)
#define PROGRESS_AFTER_NS 3000000000ull

static void tell_progress(const struct analysis *a, uint64_t records, uint64_t begun_ns, bool end)
{
	static bool told;
	uint64_t all = a->expect.records;

	if (end && told)
		fprintf(stderr, "\r\033[K");
	if (end || !isatty(STDERR_FILENO) || now_ns() - begun_ns < PROGRESS_AFTER_NS)
		return;
	told = true;
	if (all)
		fprintf(stderr, "\rcudaspy: %u %% of %llu million records",
			(unsigned int)(100 * records / all), (unsigned long long)(all / 1000000));
	else
		fprintf(stderr, "\rcudaspy: %llu million records",
			(unsigned long long)(records / 1000000));
}

/*
 * Calls inside others are many, and of most of them nothing matters but how many and how long they
 * were: those behind the record in its stream are counted here, without being put in order with
 * what other streams have. Not those that may start CUDA up, for which the model and the accounting
 * wait, nor functions that metadata does not name, nor those so much later that an unattributed
 * wait may be due (account_see). Returns how many.
 */
static inline uint64_t count_nested(struct analysis *a, const struct record *record)
{
	struct reader *r = &record->stream->reader;
	const struct trace *trace = record->stream->trace;
	const union spy_any *raw = reader_peek_nested(r);
	uint64_t n = 0, until_ns = UINT64_MAX;

	if (likely(!raw) || a->filtering.kinds || a->accounts.listener)
		return 0;
	if (a->accounted)
		until_ns = unattributed_due(&a->accounts.unattributed[record->process], record->ns);
	for (; raw; raw = reader_peek_nested(r), n++) {
		bool inner = raw->other.event == SPY_EV_INNER;
		uint64_t duration = inner ? min_u64(raw->inner.duration, record_time(raw))
					  : record_duration(raw);
		uint64_t ns = timeline_ns(&trace->timeline, raw->other.time);
		uint32_t fn;

		if (unlikely(raw->call_head.fn >= trace->n_functions) || unlikely(ns >= until_ns))
			break;
		fn = trace->functions[raw->call_head.fn];
		if (unlikely(a->set->functions.all[fn].contract == SPY_CONTRACT_INIT) ||
		    unlikely(!inner && !raw->call_head.depth)) /* damaged */
			break;
		callstats_see_nested(&a->stats, fn, !inner && call_failed(&raw->call_head),
				     timeline_span_ns(&trace->timeline, duration));
		reader_take(r, raw);
	}
	return n;
}

/* How long the record's thread was in calls until now. */
static uint64_t in_calls_ns(const struct analysis *a, const struct fast_path *path,
			    const struct record *record)
{
	const struct thread_account *c = thread_account_of(&a->accounts, record->thread);

	return a->stats.threads[record->thread->index].total_ns + (c ? c->left_out_ns : 0) +
	       (path->thread == record->thread ? path->total_ns : 0);
}

/* What a thread's calls that count have done so far. */
static struct range_seen seen_of(const struct analysis *a, const struct fast_path *path,
				 const struct thread *thread, uint64_t ns)
{
	const struct thread_account *c = thread_account_of(&a->accounts, thread);
	struct range_seen seen = {.ns = ns};

	if (thread->index < a->stats.n_threads) {
		seen.calls = a->stats.threads[thread->index].count;
		seen.calls_ns = a->stats.threads[thread->index].total_ns;
	}
	if (path && path->thread == thread) {
		seen.calls += path->calls;
		seen.calls_ns += path->total_ns;
	}
	if (c) {
		seen.lost_ns = c->lost_ns;
		seen.gpu_ns = c->gpu_ns;
		seen.lock_ns = c->lock_ns;
	}
	return seen;
}

/* A range begins or ends: with --range calls may count from now on, or not any more. */
static void see_range(struct analysis *a, struct fast_path *paths, const struct record *record)
{
	struct ranges *ranges = &a->accounts.ranges;
	struct range_seen seen = {0};
	struct thread *owner;
	size_t stream;

	owner = ranges_owner(ranges, record, &stream);
	if (owner && ranges->only)
		fast_path_close(&paths[stream], &a->stats);
	if (owner)
		seen = seen_of(a, &paths[stream], owner, record->ns);
	ranges_see(ranges, record, owner, &seen);
}

/* What is open in a thread of the process ends for the reader: it is told again when the next window begins. Of a GPU
 * nothing is known until then. */
static void see_window(struct analysis *a, struct fast_path *paths, const struct record *record)
{
	size_t i;

	for (i = 0; i < a->set->n_streams; i++)
		if (a->set->streams[i]->trace == record->stream->trace)
			fast_path_close(&paths[i], &a->stats);
	if (record->raw->window.state != SPY_WINDOW_CLOSED &&
	    record->raw->window.state != SPY_WINDOW_COUNTING)
		return;
	for (i = 0; i < a->model.n_threads; i++) {
		const struct thread *thread = a->model.threads[i];
		struct range_seen seen;

		if (thread->process->trace != record->stream->trace)
			continue;
		seen = seen_of(a, NULL, thread, record->ns);
		ranges_finish(&a->accounts.ranges, thread, &seen);
	}
	idle_see_dormant(&a->idle, record->process);
}

/* Calls of counted functions: does their number not count? */
static bool leave_out_counted(struct analysis *a, const struct record *record)
{
	if (record->raw->other.event != SPY_EV_COUNT ||
	    !filter_outside_counted(&a->filtering, record->process, record->thread, record->fn))
		return false;
	a->filtering.counted = add_capped(a->filtering.counted, record->raw->count.count);
	return true;
}

/* A call inside another one. */
static bool leave_out_nested(struct analysis *a, const struct record *record, bool outside)
{
	struct thread_account *c = thread_account_of(&a->accounts, record->thread);

	if (c)
		c->left_out = outside;
	if (outside)
		callstats_room(&a->stats, &a->model, record->thread);
	return outside;
}

/*
 * With a filter: is it a call, or a number of some, that does not count? Of what the accounting is about to see, its
 * thread's account says it from here on (left_out).
 */
static bool leave_out(struct analysis *a, const struct record *record)
{
	unsigned int outside = filter_outside(&a->filtering, record);
	struct thread_account *c;

	if (ranges_leave_out(&a->accounts.ranges, record->thread))
		outside |= 1u << FILTER_RANGE;
	if (!record_is_call(record->raw) && record->raw->other.event < SPY_EV_WAIT)
		return leave_out_counted(a, record);
	if (record_is_call(record->raw) && record->raw->call_head.depth)
		return leave_out_nested(a, record, outside);
	c = thread_account_get(&a->accounts, record->thread);
	c->left_out = outside;
	if (!outside || !record_is_call(record->raw))
		return false;
	callstats_room(&a->stats, &a->model, record->thread);
	filter_count(&a->filtering, outside, record->duration_ns);
	c->left_out_ns += record->duration_ns;
	return true;
}

/* What does not count is not shown: a thread whose first call is still in progress has no account that says so. */
static void show(const struct analysis *a, const struct record *record, bool left_out)
{
	const struct listener *listener = a->accounts.listener;
	const struct thread_account *c;

	if (left_out || account_leaves_out(&a->accounts, record->thread))
		return;
	if (record->raw->other.event == SPY_EV_OUTSIDE) {
		if (listener->on_outside)
			listener->on_outside(listener->data, record);
		return;
	}
	if (!record_is_call(record->raw))
		return;
	c = thread_account_of(&a->accounts, record->thread);
	if (record->raw->call_head.depth && listener->on_nested)
		listener->on_nested(listener->data, record);
	if (!record->raw->call_head.depth && listener->on_call)
		listener->on_call(listener->data, record,
				  completed_call_at(&c->ring, c->ring.n - 1));
}

/* What is open in a thread, ends with it. */
static void end_ranges(struct analysis *a)
{
	size_t i;

	for (i = 0; i < a->model.n_threads; i++) {
		const struct thread *thread = a->model.threads[i];
		uint64_t ns = min_u64(thread->exited_ns, thread->process->last_ns);
		struct range_seen seen = seen_of(a, NULL, thread, ns);

		ranges_finish(&a->accounts.ranges, thread, &seen);
	}
}

/* The main reading. */
static void read_all(struct analysis *a)
{
	uint64_t begun_ns = now_ns(), records = 0, tell_at = PROGRESS_RECORDS;
	struct merge merge;
	struct record record;
	struct fast_path *paths = xcalloc(a->set->n_streams, sizeof(*paths)), *path; /* by stream */
	size_t i, stacks_most = STACKS_FIRST;
	bool left_out;

	merge_init(&merge, a->set, false);
	if (a->accounted)
		exact_begin(&a->idle);
	while (merge_next(&merge, &record)) {
		if (unlikely(++records >= tell_at)) {
			tell_progress(a, records, begun_ns, false);
			tell_at += PROGRESS_RECORDS;
		}
		if (unlikely(record.ns >= a->idle.due_ns))
			exact_go_on(&a->idle, record.ns);
		path = &paths[record.stream->index];
		records += count_nested(a, &record);
		if (fast_path_take(path, &a->accounts, &a->stats, &record))
			continue;
		merge_look_ahead(&merge);
		if (unlikely(a->model.n_stacks >= stacks_most))
			stacks_most = stack_gc(a);
		model_apply(&a->model, &record);
		left_out = unlikely(a->filtering.kinds) && leave_out(a, &record);
		if (!left_out)
			callstats_see(&a->stats, &a->model, &record);
		if (a->accounted) {
			account_see(&a->accounts, &record);
			if (unlikely(record_is_of_range(record.raw)))
				see_range(a, paths, &record);
			else if (record.raw->other.event == SPY_EV_OUTSIDE)
				ranges_see_outside(&a->accounts.ranges, &record);
			else if (unlikely(record.raw->other.event == SPY_EV_WINDOW))
				see_window(a, paths, &record);
			else if (unlikely(record.raw->other.event == SPY_EV_COST))
				cost_see(&a->cost, &a->model, &record);
			idle_see(&a->idle, &record, in_calls_ns(a, path, &record));
			ranks_see(&a->ranks, &record);
			if (unlikely(a->accounts.listener != NULL))
				show(a, &record, left_out);
			else if (record_is_call(record.raw) && !record.raw->call_head.depth)
				fast_path_open(path, &a->accounts, &a->stats, &record);
		}
	}
	tell_progress(a, records, begun_ns, true);
	if (a->accounted)
		exact_go_on(&a->idle, UINT64_MAX);
	merge_release(&merge);
	for (i = 0; i < a->set->n_streams; i++)
		fast_path_close(&paths[i], &a->stats);
	free(paths);
	model_finish(&a->model);
	if (a->accounted)
		end_ranges(a);
	callstats_finish(&a->stats, &a->model);
}

/* What the options limit the analysis to. */
static int begin_filtering(struct analysis *a, const struct analysis_options *options)
{
	int err = filtering_begin(&a->filtering, options->filter, a->set, &a->expect.phases);

	if (!err)
		filtering_cut(&a->filtering, &a->expect.phases);
	return err;
}

/* The set may have been read before, to its end. */
static void rewind_all(struct trace_set *set)
{
	size_t i;

	for (i = 0; i < set->n_streams; i++) {
		reader_rewind(&set->streams[i]->reader);
		set->streams[i]->called_ns = 0;
	}
}

int analysis_run(struct analysis *a, struct trace_set *set, const struct analysis_options *options)
{
	int err;

	rewind_all(set);
	*a = (struct analysis){.set = set, .accounted = options};
	model_init(&a->model, set);
	callstats_init(&a->stats, &a->model, &a->filtering);
	if (options) {
		err = learn(a, options->profile) ?: begin_filtering(a, options);
		if (err)
			return err;
		account_init(&a->accounts, &a->model, &a->expect, &a->filtering);
		findings_init(&a->findings, &a->accounts);
		cost_begin(&a->cost, &a->accounts);
		idle_init(&a->idle, &a->accounts);
		ranks_init(&a->ranks, &a->idle);
		a->ranks.sample = options->sample_collectives;
		a->accounts.listener = a->accounts.ranges.listener = options->listener;
		if (options->subject)
			a->accounts.blame.subject = *options->subject;
	}
	read_all(a);
	if (options) {
		account_finish(&a->accounts);
		cost_finish(&a->cost);
		ranks_finish(&a->ranks);
		idle_show_rest(&a->idle);
		callstats_grow(&a->stats, &a->model); /* there may be a thread more */
	}
	return 0;
}

void analysis_release(struct analysis *a)
{
	findings_release(&a->findings);
	cost_release(&a->cost);
	ranks_release(&a->ranks);
	idle_release(&a->idle);
	account_release(&a->accounts);
	expect_release(&a->expect);
	profile_release(&a->profile);
	profile_release(&a->prior);
	filtering_end(&a->filtering);
	callstats_release(&a->stats);
	model_release(&a->model);
	*a = (struct analysis){0};
}
