/*
 * analyzer/timeline/calls.c: a thread's calls, what is inside of them, and its waits between them: one track of slices that lie in
 * one another. Called by the main reading when a call has returned, or a wait has ended.
 *
 * Calls inside a call and waits are known before it, so they wait for it here. What records claim may not fit together: the
 * call of the application stays as it is, and what is around or inside of it is cut.
 */
#include <stdlib.h>
#include "events.h"
#include "idle/causes.h"
#include "text/text.h"
#include "trace/names.h"
#include "base/median.h"

#define PENDING_MOST 65536 /* of a thread; then they are shown without the call they are in */
#define GAPS_MOST 64 /* likewise, of a thread that is in no call */
#define ARROWS_MOST 65536 /* likewise, to a call that has not returned */
#define DEPTH_WAIT 255 /* inside all calls of the same times */

/* ---- what waits --------------------------------------------------------------------------------- */

static struct pending_slices *pending_of(struct events *e, const struct thread *thread)
{
	while (unlikely(e->n_pending <= thread->index)) {
		e->pending = grow(e->pending, e->n_pending, sizeof(*e->pending));
		e->pending[e->n_pending++] = (struct pending_slices){0};
	}
	return &e->pending[thread->index];
}

static struct pending *add(struct pending_slices *p)
{
	if (unlikely(p->n == p->room)) {
		p->room = p->room ? 2 * p->room : 4;
		p->all = xrealloc(p->all, p->room, sizeof(*p->all));
	}
	p->all[p->n] = (struct pending){0};
	return &p->all[p->n++];
}

static void add_argument(struct pending *p, enum slice_argument_key key, uint64_t value)
{
	if (value && p->n < PENDING_ARGUMENTS)
		p->arguments[p->n++] = (struct slice_argument){key, value};
}

/* By their begins, the outer before the inner. */
static int in_order(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	return COMPARE(x->begin_ns, y->begin_ns) ?: COMPARE(y->end_ns, x->end_ns) ?:
	       COMPARE(x->depth, y->depth);
}

static void close_until(struct events *e, struct track *track, size_t *n_open, uint64_t ns)
{
	for (; *n_open && e->open_ends[*n_open - 1] <= ns; --*n_open)
		if (e->sink->slice_end)
			e->sink->slice_end(e->sink->data, track, e->open_ends[*n_open - 1]);
}

static void open_slice(struct events *e, const struct slice *slice, size_t *n_open)
{
	if (unlikely(*n_open == e->open_room)) {
		e->open_room = e->open_room ? 2 * e->open_room : 16;
		e->open_ends = xrealloc(e->open_ends, e->open_room, sizeof(*e->open_ends));
	}
	e->open_ends[(*n_open)++] = slice->end_ns;
	e->sink->slice(e->sink->data, slice);
}

/* A wait that runs into a call inside belongs to where most of it was: calls stay whole. True: it has been moved. */
static bool fit_wait(const struct pending_slices *order, size_t i)
{
	struct pending *w = &order->all[i];

	for (size_t k = i + 1; k < order->n && order->all[k].begin_ns < w->end_ns; k++) {
		const struct pending *inside = &order->all[k];

		if (inside->category != SLICE_NESTED || inside->end_ns <= w->end_ns)
			continue;
		if (inside->begin_ns - w->begin_ns > w->end_ns - inside->begin_ns) {
			w->end_ns = inside->begin_ns;
			return false;
		}
		w->begin_ns = inside->begin_ns;
		return true;
	}
	return false;
}

static void sort(struct pending_slices *order)
{
	bool moved = false;

	qsort(order->all, order->n, sizeof(*order->all), in_order);
	for (size_t i = 0; i < order->n; i++)
		if (order->all[i].category == SLICE_WAIT)
			moved |= fit_wait(order, i);
	if (moved)
		qsort(order->all, order->n, sizeof(*order->all), in_order);
}

/* Shows them all, in the track, from_ns at the earliest; `call` as the slice of the application's call, which stands among them with an empty name;
 * NULL: there is none. */
static void show_order(struct events *e, struct track *track, uint64_t from_ns,
		       const struct slice *call)
{
	struct pending_slices *order = &e->order;
	size_t i, n_open = 0;
	bool at_end;

	if (order->n > 1)
		sort(order);
	for (i = 0; i < order->n; i++) {
		const struct pending *p = &order->all[i];
		struct slice slice = {.track = track,
				      .begin_ns = max_u64(p->begin_ns, from_ns),
				      .end_ns = p->end_ns,
				      .category = (enum slice_category)p->category,
				      .name = p->name,
				      .flow = p->flow,
				      .n = p->n};

		/* What took no time as its call ended, is in the call. */
		at_end = p->category == SLICE_WAIT && slice.begin_ns &&
			 slice.end_ns <= slice.begin_ns;
		close_until(e, track, &n_open, slice.begin_ns - at_end);
		if (n_open)
			slice.end_ns = min_u64(slice.end_ns, e->open_ends[n_open - 1]);
		slice.end_ns = max_u64(slice.begin_ns, slice.end_ns);
		memcpy(slice.arguments, p->arguments, p->n * sizeof(*p->arguments));
		open_slice(e, p->category == SLICE_CALL ? call : &slice, &n_open);
	}
	close_until(e, track, &n_open, UINT64_MAX);
	order->n = 0;
}

/* What was before the call ends with its begin, what is inside of it begins with it. */
static void take_pending(struct events *e, struct pending_slices *pending, uint64_t begin_ns,
			 uint64_t end_ns)
{
	for (size_t i = 0; i < pending->n; i++) {
		struct pending *p = add(&e->order);

		*p = pending->all[i];
		if (p->category == SLICE_OUTSIDE || p->end_ns <= begin_ns) {
			p->begin_ns = min_u64(p->begin_ns, begin_ns);
			p->end_ns = min_u64(p->end_ns, begin_ns);
		} else {
			p->begin_ns = max_u64(p->begin_ns, begin_ns);
			p->end_ns = min_u64(p->end_ns, end_ns);
		}
	}
	pending->n = 0;
}

static void next(struct events *e)
{
	if (e->sink->next)
		e->sink->next(e->sink->data);
}

/* All of the thread's that waits, without a call. */
static void show_pending(struct events *e, const struct thread *thread)
{
	struct pending_slices *pending = pending_of(e, thread);
	struct track *track;
	uint64_t until_ns = 0;

	if (!pending->n)
		return;
	for (size_t i = 0; i < pending->n; i++)
		until_ns = max_u64(until_ns, pending->all[i].end_ns);
	next(e);
	track = tracks_thread(&e->tracks, thread)->calls;
	take_pending(e, pending, UINT64_MAX, UINT64_MAX);
	show_order(e, track, track->until_ns, NULL);
	track->until_ns = max_u64(track->until_ns, until_ns);
}

void events_finish_threads(struct events *e)
{
	const struct model *model = &e->source.shown->model;

	for (size_t i = 0; i < e->n_pending && i < model->n_threads; i++)
		show_pending(e, model->threads[i]);
}

/* ---- waits in a call ----------------------------------------------------------------------------- */

static const struct lock_names *names_of_lock(struct events *e, const struct lock *lock)
{
	struct arena texts = {0};
	struct lock_names *names;
	const char *name;

	while (unlikely(e->n_locks <= lock->index)) {
		e->locks = grow(e->locks, e->n_locks, sizeof(*e->locks));
		e->locks[e->n_locks++] = (struct lock_names){0};
	}
	names = &e->locks[lock->index];
	if (!names->lock) {
		name = tracks_lock_name(&e->tracks, &texts, lock);
		names->lock = label_of(&e->labels, name);
		names->wait = label_of(&e->labels, arena_printf(&texts, "wait for %s", name));
		arena_release(&texts);
	}
	return names;
}

static const char *wait_text(unsigned int kind)
{
	static char text[64];

	snprintf(text, sizeof(text), "wait: %s", name_wait(kind));
	return text;
}

/* Of the call, which is the first of those in order. */
static struct pending *add_wait(struct events *e, const struct wait *w, uint64_t begin_ns,
				uint64_t end_ns)
{
	struct pending *p = add(&e->order);
	const struct pending *call = &e->order.all[0];

	p->begin_ns = min_u64(max_u64(events_since(e, begin_ns), call->begin_ns), call->end_ns);
	p->end_ns = min_u64(max_u64(events_since(e, end_ns), p->begin_ns), call->end_ns);
	p->category = SLICE_WAIT;
	p->depth = DEPTH_WAIT;
	if (w->lock) {
		p->name = names_of_lock(e, w->lock)->wait;
		add_argument(p, ARGUMENT_LOCK, names_of_lock(e, w->lock)->lock);
	} else {
		p->name = events_cached(e, &e->waits, w->kind, wait_text);
	}
	return p;
}

enum in_call { IN_CALL, IN_NONE, IN_CALL_UNKNOWN };

/* Was the holder in that call then? Unknown: the call that it was in has not returned yet, or is lost. */
static enum in_call was_in_call(const struct events *e, const struct hold_interval *by, uint64_t ns)
{
	const struct thread_account *c = thread_account_of(&e->source.shown->accounts, by->holder);
	uint64_t number = c ? c->ring.n : 0;
	const struct completed_call *call = NULL;

	while (number && c->ring.n - number < c->ring.size) {
		const struct completed_call *before = completed_call_at(&c->ring, number - 1);

		if (before->end_ns <= ns)
			break;
		call = before;
		number--;
	}
	if (!call)
		return IN_CALL_UNKNOWN;
	return call->begin_ns <= ns && call->fn == by->fn ? IN_CALL : IN_NONE;
}

static void defer_arrow(struct events *e, const struct thread *holder,
			const struct pending_arrow *arrow)
{
	struct pending_slices *pending = pending_of(e, holder);

	if (pending->n_arrows >= ARROWS_MOST)
		return;
	pending->arrows = grow(pending->arrows, pending->n_arrows, sizeof(*pending->arrows));
	pending->arrows[pending->n_arrows++] = *arrow;
}

/* The thread's call has returned. Arrows to what was before it lead nowhere: that call is lost. */
static void show_arrows(struct events *e, const struct completed_call *call)
{
	struct pending_slices *pending = pending_of(e, call->thread);
	size_t n = 0;

	for (size_t i = 0; i < pending->n_arrows; i++) {
		const struct pending_arrow arrow = pending->arrows[i];

		if (arrow.end_ns >= call->end_ns) {
			pending->arrows[n++] = arrow;
			continue;
		}
		if (arrow.end_ns < call->begin_ns || arrow.fn != call->fn)
			continue;
		events_flow(e, tracks_thread(&e->tracks, arrow.waiter)->calls, arrow.begin_ns,
			    ++e->flows, false);
		events_flow(e, tracks_thread(&e->tracks, call->thread)->calls, arrow.end_ns,
			    e->flows, true);
	}
	pending->n_arrows = n;
}

/* The arrow ends where the holder certainly had the lock, in its call: as the wait begins, or where it was seen to have it. It
 * may have been released long before the waiter noticed. Arrows lead to later times. */
static void add_holder(struct events *e, const struct thread *waiter, struct pending *p,
		       const struct hold_interval *by)
{
	struct pending_arrow arrow = {.waiter = waiter, .fn = by->fn};
	bool is_sample = by->seen_end_ns;
	uint64_t begin_ns = is_sample ? by->seen_begin_ns : by->begin_ns;
	uint64_t end_ns = is_sample ? by->seen_end_ns : by->end_ns;
	uint64_t at_ns = max_u64(begin_ns + (end_ns > begin_ns), e->zero_ns + p->begin_ns);

	if (!by->holder)
		return;
	add_argument(p, ARGUMENT_HOLDER, events_thread_name(e, by->holder));
	if (by->fn == NO_FUNCTION)
		return;
	add_argument(p, ARGUMENT_HOLDER_CALL, label_of_function(&e->labels, by->fn));
	switch (was_in_call(e, by, at_ns)) {
	case IN_CALL:
		p->flow = ++e->flows;
		events_flow(e, tracks_thread(&e->tracks, by->holder)->calls, at_ns, p->flow, true);
		break;
	case IN_CALL_UNKNOWN:
		arrow.begin_ns = e->zero_ns + p->begin_ns;
		arrow.end_ns = at_ns;
		defer_arrow(e, by->holder, &arrow);
		break;
	case IN_NONE:
		break;
	}
}

/* Holders of a wait that are shown one by one. In a convoy of threads each of their waits has all of them. */
#define HOLDERS_APART 4

/* The part of the holder that had the lock for longest, in *longest. Returns the number of parts. */
static size_t count_holders(const struct wait *w, struct holder_part *longest)
{
	struct holder_part part;
	size_t i, n = 0;

	for (i = 0; i < w->n_intervals; n++) {
		i = wait_next_holder(w, i, &part);
		if (!n || part.end_ns - part.begin_ns > longest->end_ns - longest->begin_ns)
			*longest = part;
	}
	return n;
}

static void add_lock_wait(struct events *e, const struct thread *waiter, const struct wait *w)
{
	struct holder_part part;
	size_t n = count_holders(w, &part), i;
	struct pending *p;

	if (n > HOLDERS_APART) {
		p = add_wait(e, w, w->intervals[0].begin_ns,
			     w->intervals[w->n_intervals - 1].end_ns);
		add_argument(p, ARGUMENT_HOLDERS, n);
		add_holder(e, waiter, p, part.by);
		return;
	}
	for (i = 0; i < w->n_intervals;) {
		i = wait_next_holder(w, i, &part);
		p = add_wait(e, w, part.begin_ns, part.end_ns);
		add_argument(p, ARGUMENT_RELEASE, part.release_ns);
		add_holder(e, waiter, p, part.by);
	}
}

static void add_waits(struct events *e, const struct completed_call *call)
{
	for (size_t i = 0; i < call->n_waits; i++) {
		const struct wait *w = &call->waits[i];
		struct pending *p;

		if (w->n_intervals) {
			add_lock_wait(e, call->thread, w);
		} else {
			p = add_wait(e, w, w->begin_ns, w->end_ns);
			if (w->ns != w->end_ns - w->begin_ns)
				add_argument(p, ARGUMENT_WAITED, w->ns);
			if (w->count > 1)
				add_argument(p, ARGUMENT_TIMES, w->count);
		}
		if (w->lock)
			counters_see_wait(e, call->thread->process, w->lock, w->begin_ns,
					  w->end_ns);
	}
}

/* ---- a call -------------------------------------------------------------------------------------- */

static void add_copy(struct events *e, struct slice *slice, const struct spy_rec_copy *copy)
{
	slice_add_known(slice, ARGUMENT_BYTES, copy->bytes);
	slice_add(slice, ARGUMENT_DIRECTION,
		  events_cached(e, &e->directions, copy->direction, name_direction));
	slice_add(slice, ARGUMENT_FROM,
		  events_cached(e, &e->memory_kinds, copy->src_kind, name_memory_kind));
	slice_add(slice, ARGUMENT_TO,
		  events_cached(e, &e->memory_kinds, copy->dst_kind, name_memory_kind));
	slice_add_known(slice, ARGUMENT_CAPTURED, copy->captured);
}

static void add_memory(struct events *e, struct slice *slice, const struct spy_rec_memory *memory)
{
	slice_add(slice, ARGUMENT_DOES,
		  events_cached(e, &e->memory_ops, memory->op, name_memory_op));
	slice_add_known(slice, ARGUMENT_BYTES, memory->bytes);
	if (memory->kind)
		slice_add(slice, ARGUMENT_MEMORY,
			  events_cached(e, &e->memory_kinds, memory->kind, name_memory_kind));
}

static void add_arguments(struct events *e, struct slice *slice, const struct record *record)
{
	if (record_failed(record))
		slice_add_known(slice, ARGUMENT_RESULT,
				label_of(&e->labels, text_result(e->source.shown->set, record->fn,
								 record->result)));
	if (record->event == SPY_EV_COPY)
		add_copy(e, slice, record_copy(record));
	else if (record->event == SPY_EV_MEMORY)
		add_memory(e, slice, record_memory(record));
	else if (record->event == SPY_EV_LAUNCH)
		slice_add_known(slice, ARGUMENT_KERNEL,
				events_kernel(e, record->process, record_kernel(record)));
	slice_add_known(slice, ARGUMENT_STREAM, record_stream(record));
}

/* Where its time went; where nothing else is said, all of it is its own work. */
static void add_parts(struct slice *slice, const struct completed_call *call)
{
	if (!call->divided || call->bucket_ns[BUCKET_OWN] == call->end_ns - call->begin_ns)
		return;
	for (size_t i = 0; i < BUCKET_COUNT; i++)
		if (call->bucket_ns[i])
			slice_add(slice, (enum slice_argument_key)(ARGUMENT_BUCKET + i),
				  call->bucket_ns[i]);
}

static struct slice slice_of_call(struct events *e, const struct record *record,
				  const struct completed_call *call)
{
	struct slice slice;

	/* Not all of it, which is large: arguments are filled in as far as n says. */
	slice.track = tracks_thread(&e->tracks, record->thread)->calls;
	slice.begin_ns = events_since(e, call->begin_ns);
	slice.end_ns = max_u64(slice.begin_ns, events_since(e, call->end_ns));
	slice.category = SLICE_CALL;
	slice.name = label_of_function(&e->labels, call->fn);
	slice.flow = 0;
	slice.flow_ends = false;
	slice.depth = 0;
	slice.n = 0;
	slice_add_known(&slice, ARGUMENT_BEFORE, events_before(e, call->begin_ns));
	slice_add_known(&slice, ARGUMENT_WHERE,
			label_of_where(&e->labels, label_where(&e->labels, record->thread->process,
							       call->return_address, call->end_ns,
							       call->stack)));
	if (record->device != SPY_DEVICE_NONE)
		slice_add(&slice, ARGUMENT_GPU, record->device);
	add_arguments(e, &slice, record);
	if (call->expected_ns != UNKNOWN_NS)
		slice_add(&slice, ARGUMENT_EXPECTED, call->expected_ns);
	add_parts(&slice, call);
	return slice;
}

void events_on_call(void *data, const struct record *record, const struct completed_call *call)
{
	struct events *e = data;
	struct pending_slices *pending = pending_of(e, record->thread);
	struct slice slice = slice_of_call(e, record, call);
	struct pending *p;
	uint64_t from_ns;

	next(e);
	from_ns = tracks_row(&e->tracks, &slice, 0);
	if (likely(!pending->n) && (!call->divided || !call->n_waits)) {
		e->sink->slice(e->sink->data, &slice);
		if (e->sink->slice_end)
			e->sink->slice_end(e->sink->data, slice.track, slice.end_ns);
	} else {
		p = add(&e->order);
		p->begin_ns = slice.begin_ns;
		p->end_ns = slice.end_ns;
		p->category = SLICE_CALL;
		take_pending(e, pending, slice.begin_ns, slice.end_ns);
		if (call->divided)
			add_waits(e, call);
		show_order(e, slice.track, from_ns, &slice);
	}
	show_arrows(e, call);
	counters_see_call(e, record);
	events_show_findings(e, slice.end_ns);
}

void events_on_nested(void *data, const struct record *record)
{
	struct events *e = data;
	struct pending_slices *pending = pending_of(e, record->thread);
	uint64_t begin_ns = record->ns - min_u64(record->duration_ns, record->ns);
	struct pending *p;

	if (pending->n >= PENDING_MOST)
		show_pending(e, record->thread);
	p = add(pending);
	p->begin_ns = events_since(e, begin_ns);
	add_argument(p, ARGUMENT_BEFORE, events_before(e, begin_ns));
	p->end_ns = events_since(e, record->ns);
	p->category = SLICE_NESTED;
	p->depth = max_u64(record->depth, 1);
	p->name = label_of_function(&e->labels, record->fn);
}

/* ---- between calls --------------------------------------------------------------------------------- */

static const char *cause_text(unsigned int cause)
{
	return cause < IDLE_CAUSE_COUNT ? idle_cause_texts[cause] : "?";
}

/* The call in which the holder was for most of the wait; NULL: none, or none that is still known. */
static const struct completed_call *held_over(const struct events *e, const struct thread *holder,
					      const struct host_wait *wait)
{
	const struct thread_account *c = thread_account_of(&e->source.shown->accounts, holder);
	const struct completed_call *call, *longest = NULL;
	uint64_t longest_ns = 0, begin_ns, end_ns;

	for (uint64_t i = 1; c && i <= min_u64(c->ring.n, c->ring.size); i++) {
		call = completed_call_at(&c->ring, c->ring.n - i);
		if (call->end_ns <= wait->begin_ns)
			break;
		begin_ns = max_u64(call->begin_ns, wait->begin_ns);
		end_ns = min_u64(call->end_ns, wait->end_ns);
		if (end_ns <= begin_ns || end_ns - begin_ns <= longest_ns)
			continue;
		longest = call;
		longest_ns = end_ns - begin_ns;
	}
	return longest;
}

/* As the wait begins, or that call. */
static void add_arrow(struct events *e, struct pending *p, const struct thread *holder,
		      const struct host_wait *wait)
{
	const struct completed_call *call = held_over(e, holder, wait);

	if (!call)
		return;
	add_argument(p, ARGUMENT_HOLDER_CALL, label_of_function(&e->labels, call->fn));
	p->flow = ++e->flows;
	events_flow(e, tracks_thread(&e->tracks, holder)->calls,
		    max_u64(call->begin_ns + 1, wait->begin_ns), p->flow, true);
}

void events_on_outside(void *data, const struct record *record)
{
	struct events *e = data;
	const struct host_thread *host =
		host_thread_find(&e->source.shown->idle.threads, record->thread);
	const struct host_wait *wait;
	const struct thread *holder;
	struct pending *p;

	if (!host || !host->n_waits)
		return;
	if (pending_of(e, record->thread)->n >= GAPS_MOST)
		show_pending(e, record->thread);
	wait = &host->waits[(host->n_waits - 1) % host->waits_size];
	holder = wait->part.holder ? model_find_thread(&e->source.shown->model,
						       record->thread->process, wait->part.holder)
				   : NULL;
	p = add(pending_of(e, record->thread));
	p->begin_ns = events_since(e, wait->begin_ns);
	p->end_ns = max_u64(p->begin_ns, events_since(e, wait->end_ns));
	p->category = SLICE_OUTSIDE;
	p->name = events_cached(e, &e->causes, wait->part.cause, cause_text);
	add_argument(p, ARGUMENT_WHERE,
		     label_of_where(&e->labels, label_where(&e->labels, record->thread->process,
							    wait->part.address, wait->end_ns,
							    wait->part.stack)));
	if (holder) {
		add_argument(p, ARGUMENT_HOLDER, events_thread_name(e, holder));
		add_arrow(e, p, holder, wait);
	}
	add_argument(p, ARGUMENT_WAITED, wait->ns);
}
