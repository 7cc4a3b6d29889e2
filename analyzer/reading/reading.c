/*
 * analyzer/reading/reading.c: the main reading: the one loop over all records of some streams. Called by analysis.c, and
 * by the workers of a parallel analysis (analyzer/parallel/).
 */
#include <stdlib.h>
#include "reading.h"
#include "blame/calls.h"
#include "stack_gc.h"
#include "trace/position.h"

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
	uint64_t n = 0, until_ns = UINT64_MAX;
	struct nested_call call;

	if (likely(!reader_peek_nested(r, &call)) || a->filtering.kinds || a->accounts.listener)
		return 0;
	if (a->accounted)
		until_ns = unattributed_due(&a->blame.unattributed[record->process], record->ns);
	do {
		uint64_t ns = timeline_ns(&trace->timeline, call.time);
		uint32_t fn;

		if (unlikely(call.fn >= trace->n_functions) || unlikely(ns >= until_ns))
			break;
		fn = trace->functions[call.fn];
		if (unlikely(a->set->functions.all[fn].contract == SPY_CONTRACT_INIT) ||
		    unlikely(call.damaged))
			break;
		callstats_see_nested(&a->stats, fn, result_is_failure(call.result),
				     timeline_span_ns(&trace->timeline, call.duration));
		reader_take(r, &call);
		n++;
	} while (reader_peek_nested(r, &call));
	return n;
}

/* The same of those that another thread has found behind the record, all of which are named and start nothing up. */
static inline uint64_t count_found(struct analysis *a, struct ahead *ahead,
				   const struct record *record)
{
	uint64_t until_ns = UINT64_MAX;

	if (likely(!ahead_has_nested(ahead)))
		return 0;
	if (a->accounted)
		until_ns = unattributed_due(&a->blame.unattributed[record->process], record->ns);
	return ahead_count_nested(ahead, until_ns);
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

/* What is open in a thread of the process ends for the reader: it is told again when the next window begins, or a part of
 * the recording whose neighbour is not here. Of a GPU nothing is known until then. */
static void see_window(struct analysis *a, struct fast_path *paths, const struct record *record)
{
	const struct spy_rec_window *window = record_window(record);

	for (size_t i = 0; i < a->set->n_streams; i++)
		if (a->set->streams[i]->trace == record->stream->trace)
			fast_path_close(&paths[i], &a->stats);
	if (window && window->state != SPY_WINDOW_CLOSED && window->state != SPY_WINDOW_COUNTING)
		return;
	for (size_t i = 0; i < a->model.n_threads; i++) {
		const struct thread *thread = a->model.threads[i];
		struct range_seen seen;

		if (thread->process->trace != record->stream->trace)
			continue;
		seen = seen_of(a, NULL, thread, record->ns);
		ranges_finish(&a->accounts.ranges, thread, &seen);
	}
	idle_see_dormant(&a->idle, record);
}

static bool begins_apart(const struct record *record)
{
	return decode_part(record).state == SPY_PART_BEGIN &&
	       record->thread->process->part_is_apart;
}

/* Calls of counted functions: does their number not count? */
static bool leave_out_counted(struct analysis *a, const struct record *record)
{
	if (record->event != SPY_EV_COUNT ||
	    !filter_outside_counted(&a->filtering, record->process, record->thread, record->fn))
		return false;
	a->filtering.counted = add_capped(a->filtering.counted, record_count(record)->count);
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
	if (!record_is_call(record) && record->event < SPY_EV_WAIT)
		return leave_out_counted(a, record);
	if (record_is_call(record) && record->depth)
		return leave_out_nested(a, record, outside);
	c = thread_account_get(&a->accounts, record->thread);
	c->left_out = outside;
	if (!outside || !record_is_call(record))
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
	if (record->event == SPY_EV_OUTSIDE) {
		if (listener->on_outside)
			listener->on_outside(listener->data, record);
		return;
	}
	if (record->event == SPY_EV_GPU_LOOK && listener->on_gpu_look)
		listener->on_gpu_look(listener->data, record);
	if (!record_is_call(record))
		return;
	c = thread_account_of(&a->accounts, record->thread);
	if (record->depth && listener->on_nested)
		listener->on_nested(listener->data, record);
	if (!record->depth && listener->on_call)
		listener->on_call(listener->data, record,
				  completed_call_at(&c->ring, c->ring.n - 1));
}

/* The same of a call that went the fast path, for which what the model fills in is not there yet. */
static __attribute__((noinline)) void show_fast(const struct analysis *a,
						const struct fast_path *path, struct record *record)
{
	const struct completed_call *f =
		completed_call_at(&path->account->ring, path->account->ring.n - 1);

	record->thread = path->thread;
	record->fn = f->fn;
	record->contract = a->set->functions.all[f->fn].contract;
	record->duration_ns = f->end_ns - f->begin_ns;
	show(a, record, false);
}

/* Where the most records are calls inside others, which those who read ahead count, the main reading takes less time than one
 * of them. Else two are of no use, and which one's record comes first would have to be found out for each. */
static unsigned int threads_ahead(const struct analysis *a, unsigned int helpers)
{
	return a->expect.inner > a->expect.outer ? helpers : 1;
}

/* Other threads read ahead, if there can be any. Calls inside others may come out of order where nobody has to see each of
 * them; where all calls count, those threads count them by function. */
static void begin_ahead(struct reading *r, unsigned int helpers)
{
	struct analysis *a = r->a;
	bool all = !a->filtering.kinds;
	const struct ahead_wish wish = {
		.merge = &r->merge,
		.set = a->set,
		.record = &r->record,
		.nested_ns = all && !a->accounts.listener ? UNATTRIBUTED_DELAY_NS : 0,
		.count = all,
		.threads = threads_ahead(a, helpers),
	};

	r->ahead = ahead_begin(&wish);
	a->stats.named_elsewhere = r->ahead && all;
}

void reading_begin(struct reading *r, struct analysis *a, unsigned int helpers)
{
	*r = (struct reading){.a = a, .stacks_most = STACKS_FIRST};
	r->paths = xcalloc_apart(a->set->n_streams, sizeof(*r->paths));
	merge_init_streams(&r->merge, a->model.streams, a->model.n_streams, false);
	if (a->accounted)
		exact_begin(&a->idle);
	if (helpers)
		begin_ahead(r, helpers);
}

/* The accounting, and what it knows of ranges. */
static void see_account(struct reading *r, const struct record *record)
{
	struct analysis *a = r->a;

	account_see(&a->accounts, record);
	if (unlikely(record_is_of_range(record)))
		see_range(a, r->paths, record);
	else if (record->event == SPY_EV_OUTSIDE)
		ranges_see_outside(&a->accounts.ranges, record);
	else if (unlikely(record->event == SPY_EV_WINDOW))
		see_window(a, r->paths, record);
	else if (unlikely(record->event == SPY_EV_PART) && begins_apart(record))
		see_window(a, r->paths, record);
}

/* Those that see each record. */
static __always_inline bool see_always(struct reading *r, struct fast_path *path,
				       struct record *record)
{
	struct analysis *a = r->a;
	bool left_out = false;

#define ALWAYS true
#define ACCOUNTED false
#define ON_SEE(...) __VA_ARGS__;
#define STAGE(field, type, when, ...) \
	if (when) { \
		__VA_ARGS__ \
	}
#include "findings/stages.def"
	return left_out;
}

/* What the accounting and those behind it have to see. */
static void account_for(struct reading *r, struct fast_path *path, struct record *record,
			bool left_out)
{
	struct analysis *a = r->a;

#define ALWAYS false
#define ACCOUNTED true
#define ON_SEE(...) __VA_ARGS__;
#define STAGE(field, type, when, ...) \
	if (when) { \
		__VA_ARGS__ \
	}
#include "findings/stages.def"
	if (unlikely(a->accounts.listener != NULL))
		show(a, record, left_out);
	if (record_is_outer_call(record))
		fast_path_open(path, &a->accounts, &a->stats, record);
}

/* One record, which is in hand: its calls inside it are counted, and it is accounted for. Returns how many there were. */
static __always_inline uint64_t read_record(struct reading *r, struct ahead *ahead)
{
	struct analysis *a = r->a;
	struct record *record = &r->record;
	struct fast_path *path = &r->paths[record->stream->index];
	uint64_t records = 1;
	bool left_out;

	if (unlikely(record->ns >= a->idle.due_ns))
		exact_go_on(&a->idle, record->ns);
	records += ahead ? count_found(a, ahead, record) : count_nested(a, record);
	if (fast_path_take(path, &a->accounts, &a->stats, record, ahead ? ahead->first : NULL)) {
		if (unlikely(a->accounts.listener != NULL))
			show_fast(a, path, record);
		return records;
	}
	if (!ahead)
		merge_look_ahead(&r->merge);
	if (unlikely(a->model.n_stacks >= r->stacks_most))
		r->stacks_most = stack_gc(a);
	left_out = see_always(r, path, record);
	if (a->accounted)
		account_for(r, path, record, left_out);
	return records;
}

/* With many threads, what is known of each is more than the cache has room for: what the next records need is fetched while
 * this one is looked at. */
static inline void fetch_of(const struct reading *r, const struct ahead *ahead,
			    const struct ahead_thread *t)
{
	uint32_t streams[2];
	size_t n = ahead_coming(t, streams, ARRAY_SIZE(streams));
	const struct thread_account *c;

	if (n < ARRAY_SIZE(streams))
		return;
	c = r->paths[streams[1]].account;
	__builtin_prefetch(c, 1);
	__builtin_prefetch(&ahead->streams[streams[1]].called_ns, 1);
	c = r->paths[streams[0]].account;
	if (!c)
		return;
	__builtin_prefetch(&c->functions);
	__builtin_prefetch(&c->recent_ops, 1);
	__builtin_prefetch(c->stream, 1);
	__builtin_prefetch(completed_call_at(&c->ring, c->ring.n), 1);
}

static inline void fetch_next(const struct reading *r, const struct ahead *ahead)
{
	fetch_of(r, ahead, ahead->hand);
}

bool reading_go_on(struct reading *r, uint64_t most)
{
	struct ahead *ahead = r->ahead;
	uint64_t records = r->records, until = records + most;

	reading_place.record =
		NULL; /* the first one is not in hand yet: what init has said of streams goes on */
	if (r->records)
		reading_place.record = &r->record;
	while (records < until && ahead && ahead_next(ahead)) {
		reading_place.record = &r->record;
		fetch_next(r, ahead);
		records += read_record(r, ahead);
	}
	while (records < until && !ahead && merge_next(&r->merge, &r->record)) {
		reading_place.record = &r->record;
		records += read_record(r, NULL);
	}
	r->records = records;
	return records >= until;
}

void reading_give_up(struct reading *r)
{
	ahead_end(r->ahead);
	r->ahead = NULL;
	r->record = (struct record){0}; /* whose stream may have been the threads' */
	merge_release(&r->merge);
	free(r->paths);
	r->paths = NULL;
}

void reading_end(struct reading *r)
{
	struct analysis *a = r->a;

	reading_place.record = NULL;
	reading_place.position = (struct reading_position){UINT64_MAX, 0};
	if (a->accounted)
		exact_go_on(&a->idle, UINT64_MAX);
	for (size_t i = 0; i < a->set->n_streams; i++)
		fast_path_close(&r->paths[i], &a->stats);
	if (r->ahead)
		ahead_add_calls(r->ahead, &a->stats);
	reading_give_up(r);
}

/* What is open in a thread, ends with it. */
void reading_end_ranges(struct analysis *a)
{
	for (size_t i = 0; a->accounted && i < a->model.n_threads; i++) {
		const struct thread *thread = a->model.threads[i];
		uint64_t ns = min_u64(thread->exited_ns, thread->process->last_ns);
		struct range_seen seen = seen_of(a, NULL, thread, ns);

		ranges_finish(&a->accounts.ranges, thread, &seen);
	}
}
