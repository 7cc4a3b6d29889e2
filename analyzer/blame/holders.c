/*
 * analyzer/blame/holders.c: the holders of a lock during a wait for it. Called by the accounting
 * for each wait for a lock.
 */
#include <stdlib.h>
#include <string.h>
#include "account/account.h"
#include "holders.h"

/* Stretches of one wait that are kept, the first of them exactly. */
#define INTERVALS_EXACT 192
#define INTERVALS_MOST 256

static bool same_holder(const struct hold_interval *a, const struct hold_interval *b)
{
	return a->holder == b->holder && a->fn == b->fn && a->handover == b->handover;
}

/*
 * A wait in which the lock changed hands again and again. Behind the first intervals only the sum
 * of each holder is kept, at first as if it began at 0: lay_out puts them in a row. The time of
 * each holder stays exact, their order does not.
 */
static void add_to_sums(struct wait *w, const struct hold_interval *interval)
{
	uint64_t ns = interval->end_ns - interval->begin_ns;

	for (size_t i = INTERVALS_EXACT; i < w->n_intervals; i++)
		if (same_holder(&w->intervals[i], interval)) {
			w->intervals[i].end_ns += ns;
			return;
		}
	if (w->n_intervals == INTERVALS_MOST) { /* holders_find begins anew, with samples */
		w->holders_dropped = true;
		return;
	}
	w->intervals[w->n_intervals] = *interval;
	w->intervals[w->n_intervals].begin_ns = 0;
	w->intervals[w->n_intervals++].end_ns = ns;
}

static void lay_out(struct wait *w)
{
	uint64_t at_ns;

	if (w->n_intervals <= INTERVALS_EXACT)
		return;
	at_ns = w->intervals[INTERVALS_EXACT - 1].end_ns;
	for (size_t i = INTERVALS_EXACT; i < w->n_intervals; i++) {
		w->intervals[i].begin_ns += at_ns;
		w->intervals[i].end_ns += at_ns;
		at_ns = w->intervals[i].end_ns;
	}
}

/* The holders of a lock, followed from event to event during a wait. Each is the event in which it acquired the lock. */
#define HOLDERS_MOST 32
struct holders {
	struct accounting *a;
	struct wait *w;
	const struct lock_event *open; /* it was acquired so, and its release may not be recorded */
	const struct lock_event
		*now; /* the one to blame: the holder for longest, or the last one */
	uint64_t begin_ns; /* since then */
	bool measured; /* that it is this one */
	bool handover; /* it has released the lock */
	bool unfollowed; /* the lock rested meanwhile: not all who had it left a record */
	bool first_measured;
	struct lock_event first; /* the holder when the wait began; its thread NULL: unknown */
	uint64_t
		forgotten_ns; /* until then it changed hands, and who had it is forgotten; 0: it is not */
	size_t n;
	const struct lock_event *active[HOLDERS_MOST]; /* the holders: one, or several readers */
	struct hold_interval intervals[INTERVALS_MOST + 1]; /* the wait's, and one in the making */
};

/* A lock that pauses is not followed for a longer time than a thread takes to wake up. */
#define AT_REST_NS 100000

/* While the lock pauses it changes hands as often as before: the last holder stands for all. */
static bool is_at_rest(const struct holders *h, uint64_t ns)
{
	return h->unfollowed && h->handover && h->now->thread && ns > AT_REST_NS;
}

/* The stretch up to `ns` is over. It is put together where it is going to be kept. */
static void advance(struct holders *h, uint64_t ns)
{
	struct wait *w = h->w;
	struct hold_interval *next = &w->intervals[w->n_intervals];
	uint64_t begin_ns = h->begin_ns;

	h->begin_ns = ns = min_u64(ns, w->end_ns);
	if (begin_ns >= ns)
		return;
	next->holder = h->now->thread;
	next->begin_ns = begin_ns;
	next->end_ns = ns;
	next->seen_begin_ns = next->seen_end_ns = 0;
	next->fn = h->now->fn;
	next->device = h->now->device;
	next->measured = h->measured && !h->unfollowed;
	next->handover = h->handover && !is_at_rest(h, ns - begin_ns);
	if (next->handover)
		w->handover_ns += ns - begin_ns;
	if (unlikely(w->n_intervals >= INTERVALS_EXACT))
		add_to_sums(w, next);
	else if (w->n_intervals && same_holder(next - 1, next))
		next[-1].end_ns = ns;
	else
		w->n_intervals++;
}

static void blame_now(struct holders *h)
{
	if (h->n) {
		h->now = h->active[0];
		h->measured = h->now != &h->first || h->first_measured;
	}
	h->handover = !h->n && (h->now->thread || h->handover);
}

static void take(struct holders *h, const struct lock_event *holder)
{
	if (!holder->shared || (h->n && !h->active[0]->shared))
		h->n = 0; /* its holder must have released it */
	for (size_t i = 0; i < h->n; i++)
		if (h->active[i]->thread == holder->thread)
			return;
	if (h->n < HOLDERS_MOST)
		h->active[h->n++] = holder;
}

/* A thread releases the lock that was not known to hold it: a reader that had it all the time. The
 * intervals without a known holder were this reader's, as far back as is remembered. */
static void had_all_along(struct holders *h, const struct lock_event *holder)
{
	for (size_t i = 0; i < h->w->n_intervals; i++) {
		struct hold_interval *s = &h->w->intervals[i];

		if ((s->holder && !s->handover) || s->end_ns <= h->forgotten_ns)
			continue;
		if (s->handover)
			h->w->handover_ns -= s->end_ns - s->begin_ns;
		s->holder = holder->thread;
		s->fn = holder->fn;
		s->device = holder->device;
		s->measured = !h->unfollowed;
		s->handover = false;
	}
	if (!h->n)
		h->now = holder;
}

static void give_back(struct holders *h, const struct lock_event *holder)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->active[i]->thread == holder->thread) {
			h->n--;
			for (; i < h->n; i++)
				h->active[i] = h->active[i + 1];
			return;
		}
	/* Of a lock that only one can have, it is a matter of equal times. */
	if (!h->n || h->active[0]->shared)
		had_all_along(h, holder);
}

/* When the call had ended that took the lock, at the latest; UINT64_MAX: not yet, as far as we
 * know. Where times are rounded it may seem to have begun right behind that. */
static uint64_t call_end(const struct accounting *a, const struct lock_event *event)
{
	const struct thread_account *c = thread_account_of(a, event->thread);
	uint64_t number = c ? c->ring.n : 0, end_ns = UINT64_MAX;

	while (number && c->ring.n - number < c->ring.size) {
		const struct completed_call *f = completed_call_at(&c->ring, --number);

		if (f->end_ns <= event->ns)
			break;
		if (f->begin_ns <= event->ns + 1)
			return f->end_ns;
		end_ns = f->begin_ns;
	}
	return end_ns;
}

/* A holder whose release is not recorded has released it when its call ended, at the latest. */
static void close_open(struct holders *h, uint64_t ns)
{
	const struct lock_event *holder = h->open;
	uint64_t end_ns = holder ? call_end(h->a, holder) : UINT64_MAX;

	if (end_ns >= ns)
		return;
	h->open = NULL;
	advance(h, end_ns);
	give_back(h, holder);
	blame_now(h);
}

/* The holder when the wait began: the one that the lock itself named, or the last one that acquired
 * it. */
static void first_holder(struct model *model, const struct record *record,
			 const struct wait_record *wait, struct holders *h,
			 const struct lock_event *last)
{
	struct process *process = record->thread->process;
	struct lock_event *holder = &h->first;

	*holder = (struct lock_event){.fn = NO_FUNCTION,
				      .device = wait->holder_device,
				      .shared = wait->flags & SPY_WAIT_READERS};
	h->first_measured = true;
	if (wait->holder ==
	    record->thread->tid) { /* it has the lock already, and waits for itself */
		holder->thread = record->thread;
	} else if (wait->holder) {
		holder->thread = wait->flags & SPY_WAIT_SHARED
					 ? model_find_thread(model, process, wait->holder)
					 : model_thread(model, process, wait->holder);
		if (!(wait->flags & SPY_WAIT_IDLE_HOLDER))
			holder->fn =
				trace_function(model->set, record->stream->trace, wait->holder_fn);
	} else if (!(wait->flags & SPY_WAIT_FREE) && last && last->thread != record->thread &&
		   !(last->shared && wait->kind == SPY_WAIT_READ) &&
		   !(wait->flags & SPY_WAIT_READERS && (!last->shared || last->released))) {
		holder->thread = last->thread;
		holder->fn = last->fn;
		holder->device = last->device;
		h->first_measured = false;
	}
	if (holder->thread && !(wait->flags & SPY_WAIT_FREE))
		take(h, holder);
	h->now = holder;
	h->measured = h->first_measured;
	h->handover = wait->flags & SPY_WAIT_FREE;
}

/* A lock remembers its last events, of which one long wait may see more: who had it before these is unknown. */
static void forget_first(struct holders *h, const struct lock *lock, uint64_t first)
{
	const struct lock_event *oldest = lock_event(lock, first);

	h->forgotten_ns = 0;
	if (!first || !oldest || lock_event(lock, first - 1))
		return;
	h->forgotten_ns = oldest->ns;
	h->first = (struct lock_event){.fn = NO_FUNCTION, .device = SPY_DEVICE_NONE};
	h->first_measured = h->measured = h->handover = false;
	h->n = 0;
}

/* Threads that acquired it in one wait are counted separately, by the call they did so in, so many of them. */
#define TAKERS_MOST 64

#define TAKES_MOST 1024 /* are looked at; of more some, evenly apart */

/* Perhaps no waiter was passed over more often so far: which thread acquired the lock instead? */
static void find_taker(struct wait *w, uint64_t number)
{
	uint64_t step = 1 + (w->lock->events - number) / TAKES_MOST;
	struct {
		const struct lock_event *event;
		uint64_t acquired;
	} takers[TAKERS_MOST];
	const struct lock_event *event;
	size_t i, n = 0, most = 0;

	for (; (event = lock_event(w->lock, number)); number += step) {
		if (event->released || (event->shared && w->kind == SPY_WAIT_READ))
			continue;
		for (i = 0; i < n && (takers[i].event->thread != event->thread ||
				      takers[i].event->fn != event->fn);
		     i++)
			;
		if (i == TAKERS_MOST)
			continue;
		if (i == n) {
			takers[n].event = event;
			takers[n++].acquired = 0;
		}
		takers[i].acquired++;
		if (takers[i].acquired > takers[most].acquired)
			most = i;
	}
	if (!n)
		return;
	w->loss.by = takers[most].event->thread;
	w->loss.by_fn = takers[most].event->fn;
	w->loss.by_acquired = min_u64(takers[most].acquired * step, w->loss.acquired);
}

#define CALLS_MOST 16 /* are told apart in one wait */

/* In which call was the lock had longest? */
static void find_longest(struct wait *w)
{
	struct {
		uint32_t fn;
		uint64_t ns;
	} calls[CALLS_MOST];
	size_t i, k, n = 0;

	for (i = 0; i < w->n_intervals; i++) {
		const struct hold_interval *s = &w->intervals[i];

		if (s->handover || !s->holder || s->fn == NO_FUNCTION)
			continue;
		for (k = 0; k < n && calls[k].fn != s->fn; k++)
			;
		if (k == CALLS_MOST)
			continue;
		if (k == n) {
			calls[n].ns = 0;
			calls[n++].fn = s->fn;
		}
		calls[k].ns += s->end_ns - s->begin_ns;
		if (calls[k].ns <= w->loss.had_ns)
			continue;
		w->loss.had_ns = calls[k].ns;
		w->loss.had_fn = calls[k].fn;
	}
}

static void count_loss(struct wait *w, struct thread *waiter, uint64_t first, uint64_t acquired)
{
	struct lock *lock = w->lock;

	w->loss = (struct lock_loss){.waiter = waiter,
				     .ns = w->ns,
				     .acquired = acquired,
				     .by_fn = NO_FUNCTION,
				     .had_fn = NO_FUNCTION};
	if (acquired > lock->loss.lost && w->ns >= LOCK_LOSS_NS)
		find_taker(w, first);
	if (w->loss.by)
		find_longest(w);
	if (w->left_out || acquired <= lock->longest_row)
		return;
	lock->longest_row = acquired;
	lock->starved = waiter;
}

/* Takes from the wait's begin what is before `begin_ns`. */
static void cut_intervals(struct wait *w, uint64_t begin_ns)
{
	size_t i, n = 0;

	if (w->intervals)
		w->handover_ns = 0;
	for (i = 0; i < w->n_intervals; i++) {
		struct hold_interval s = w->intervals[i];

		if (s.end_ns <= begin_ns)
			continue;
		if (s.begin_ns < begin_ns)
			s.begin_ns = begin_ns;
		w->handover_ns += s.handover ? s.end_ns - s.begin_ns : 0;
		w->intervals[n++] = s;
	}
	w->n_intervals = n;
}

static void cut_lock(const struct wait *w, uint64_t ns)
{
	struct lock *lock = w->lock;

	if (w->left_out)
		return;
	if (!w->n_intervals) { /* it was not waited for: waking others */
		lock->waking_ns -= w->ns - ns;
		return;
	}
	lock->waited_ns -= w->ns - ns;
	if (lock->longest_ns == w->ns)
		lock->longest_ns = ns;
}

void holders_fit(struct wait *waits, size_t n, uint64_t call_ns)
{
	struct wait *w;
	uint64_t ns;

	while (n--) {
		w = &waits[n];
		ns = min_u64(w->ns, call_ns);
		call_ns -= ns;
		if (likely(ns == w->ns))
			continue;
		if (w->lock) {
			cut_lock(w, ns);
			cut_intervals(w, w->end_ns - ns);
			w->begin_ns = w->end_ns - ns;
		}
		w->loss.ns = min_u64(w->loss.ns, ns);
		w->ns = ns;
	}
}

void holders_settle(struct wait *w)
{
	struct lock_loss *loss = &w->loss;
	uint64_t left_ns = loss->ns - min_u64(loss->lacked_ns, loss->ns);

	if (!w->lock || w->left_out || !left_ns || !loss->acquired)
		return;
	loss->lost = (uint64_t)((double)loss->acquired * (double)left_ns / (double)loss->ns);
	if (loss->lost > w->lock->loss.lost && left_ns >= LOCK_LOSS_NS)
		w->lock->loss = *loss;
	if (loss->lost < LOCK_PASSED)
		return;
	w->lock->passed_waits++;
	w->lock->passed_ns += left_ns;
}

/* From event to event. Returns how often others took the lock. */
static uint64_t walk(struct holders *h, uint64_t number)
{
	struct lock *lock = h->w->lock;
	const struct lock_event *event;
	uint64_t acquired = 0;

	for (; (event = lock_event(lock, number)); number++) {
		/* Readers are not in each other's way. */
		if (event->shared && h->w->kind == SPY_WAIT_READ)
			continue;
		close_open(h, event->ns);
		advance(h, event->ns);
		if (event->released) {
			give_back(h, event);
		} else {
			take(h, event);
			acquired++;
		}
		if (!event->released || (h->open && h->open->thread == event->thread))
			h->open = event->open ? event : NULL;
		blame_now(h);
	}
	close_open(h, h->w->end_ns);
	advance(h, h->w->end_ns);
	lay_out(h->w);
	return acquired;
}

/* ---- samples -------------------------------------------------------------------------------- */

/*
 * What a walk may cost, in each process. Hundreds of threads that all want one lock wait, each of them, while it
 * goes through the hands of all others: the square of them. So long walks are paid for: each wait
 * earns some events, and there are many for a start. Where nothing is left, the lock is looked at
 * in some moments of the wait, one in each part of it: then a part belongs to the holder at its
 * moment. Over many waits each holder gets its share.
 */
#define WALK_FREE (1u << 18)
#define WALK_EACH 12
#define WALK_SHORT 64 /* is always made */
#define SAMPLES 12
#define LOOK_BACK 32 /* events, for one that names the holder */

static bool may_walk(struct accounting *a, const struct lock *lock, uint64_t events)
{
	uint64_t *walks = &a->processes[lock->key.process].walks;

	if (!*walks)
		*walks = WALK_FREE;
	*walks += WALK_EACH;
	if (events <= WALK_SHORT)
		return true;
	if ((lock->events_of_dropped && events >= lock->events_of_dropped) || events >= *walks)
		return false;
	*walks -= events;
	return true;
}

static void had_since(struct hold_interval *holder, const struct lock_event *event, uint64_t ns)
{
	holder->holder = event->thread;
	holder->fn = event->fn;
	holder->device = event->device;
	holder->measured = true;
	holder->seen_begin_ns = ns;
}

/* The holder at that moment, from when until when; first: of the events, the first in the wait. */
static struct hold_interval holder_at(const struct holders *h, const struct hold_interval *at_first,
				      uint64_t first, uint64_t ns)
{
	uint64_t number = lock_events_since(h->w->lock, ns), looks;
	const struct lock_event *event = lock_event(h->w->lock, number);
	struct hold_interval holder = *at_first;

	holder.seen_begin_ns = h->w->begin_ns;
	holder.seen_end_ns = event ? min_u64(event->ns, h->w->end_ns) : h->w->end_ns;
	for (looks = 0; looks < LOOK_BACK && number > first; looks++) {
		event = lock_event(h->w->lock, --number);
		if (!event)
			break;
		/* Readers are not in each other's way; behind one of several another one may have
		 * it still. */
		if (event->shared && (event->released || h->w->kind == SPY_WAIT_READ))
			continue;
		had_since(&holder, event, event->ns);
		holder.handover = event->released;
		if (event->open && call_end(h->a, event) <= ns) {
			had_since(&holder, event, call_end(h->a, event));
			holder.handover = true;
		}
		break;
	}
	return holder;
}

static uint64_t acquired_until(const struct wait *w, uint64_t number)
{
	const struct lock_event *event = number ? lock_event(w->lock, number - 1) : NULL;

	return !event ? 0 : w->kind == SPY_WAIT_READ ? event->acquired_exclusive : event->acquired;
}

static uint64_t sample(struct holders *h, const struct hold_interval *at_first, uint64_t first)
{
	struct wait *w = h->w;
	uint64_t from_ns = w->begin_ns, random = w->begin_ns ^ w->end_ns << 20, i;

	w->n_intervals = 0;
	w->handover_ns = 0;
	for (i = 1; i <= SAMPLES; i++) {
		uint64_t to_ns = w->begin_ns + (w->end_ns - w->begin_ns) * i / SAMPLES;
		struct hold_interval *s = &w->intervals[w->n_intervals];

		if (to_ns == from_ns)
			continue;
		random = (random ^ random >> 29) * 0xbf58476d1ce4e5b9ull + i;
		*s = holder_at(h, at_first, first, from_ns + (random >> 16) % (to_ns - from_ns));
		s->measured &= !h->unfollowed;
		s->begin_ns = from_ns;
		s->end_ns = to_ns;
		w->handover_ns += s->handover ? to_ns - from_ns : 0;
		w->n_intervals++;
		from_ns = to_ns;
	}
	return (uint32_t)(acquired_until(w, w->lock->events) - acquired_until(w, first));
}

static struct hold_interval *kept(const struct hold_interval *intervals, size_t n)
{
	return n ? memcpy(xrealloc(NULL, n, sizeof(*intervals)), intervals, n * sizeof(*intervals))
		 : NULL;
}

void holders_find(struct accounting *a, const struct record *record, const struct wait_record *wait,
		  struct wait *w)
{
	struct lock *lock = w->lock;
	uint64_t first = lock_events_since(lock, w->begin_ns), n = lock->events - first,
		 acquired = 0;
	struct hold_interval at_first;
	bool walked = may_walk(a, lock, n);
	struct thread *known = NULL;
	struct holders h; /* large: what is not filled in here is not looked at */

	h.a = a;
	h.w = w;
	h.open = NULL;
	h.begin_ns = w->begin_ns;
	h.unfollowed = wait->flags & SPY_WAIT_UNFOLLOWED;
	h.n = 0;
	w->intervals = h.intervals;
	first_holder(a->model, record, wait, &h, first ? lock_event(lock, first - 1) : NULL);
	forget_first(&h, lock, first);
	at_first = (struct hold_interval){.holder = h.first.thread,
					  .fn = h.first.fn,
					  .device = h.first.device,
					  .measured = h.first_measured,
					  .handover = h.handover};
	if (walked)
		acquired = walk(&h, first);
	if (w->holders_dropped)
		lock->events_of_dropped = n;
	if (!walked || w->holders_dropped)
		acquired = sample(&h, &at_first, first);
	count_loss(w, record->thread, first, acquired);
	w->intervals = kept(h.intervals, w->n_intervals);
	for (size_t i = 0; i < w->n_intervals; i++) {
		struct thread *holder = w->intervals[i].holder;

		if (holder && holder != known)
			thread_set_add(&lock->holders, holder);
		known = holder;
	}
}
