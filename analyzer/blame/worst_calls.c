/*
 * analyzer/blame/worst_calls.c: the calls that lost most: which, what each waited for, and where
 * the blame for that ended. Called by the accounting when a call has returned, and by blame.c.
 */
#include <string.h>
#include "blame.h"
#include "account/account.h"

/* ---- what it waited for ---------------------------------------------------------------------- */

/* Of so many different ones at most. */
#define HOLDERS_MOST 256

struct held {
	struct thread *holder;
	uint32_t fn;
	uint8_t device;
	uint64_t ns;
};

/* Samples tell what kind of holders a wait had, and not for how long each. */
static struct thread *known_holder(struct accounting *a, const struct hold_interval *s)
{
	return s->seen_end_ns && s->holder ? model_many(a->model, s->holder->process) : s->holder;
}

static void add_held(struct accounting *a, struct held *held, size_t *n,
		     const struct hold_interval *s)
{
	struct thread *holder = known_holder(a, s);
	size_t i;

	if (s->handover && !s->holder)
		return;
	for (i = 0; i < *n; i++)
		if (held[i].holder == holder && held[i].fn == s->fn)
			break;
	if (i == HOLDERS_MOST)
		return;
	if (i == *n)
		held[(*n)++] = (struct held){holder, s->fn, s->device, 0};
	held[i].ns += s->end_ns - s->begin_ns;
}

/* Which lock the call waited for longest. Few calls wait for more than one or two. A thread that
 * wakes others as it releases a lock has not waited for it. */
static void name_lock(struct worst_call *v, const struct completed_call *call)
{
	for (size_t i = 0; i < call->n_waits; i++) {
		const struct lock *lock = call->waits[i].lock;
		uint64_t ns = 0;

		if (!call->waits[i].n_intervals || lock == v->lock)
			continue;
		for (size_t j = i; j < call->n_waits; j++)
			ns += call->waits[j].lock == lock ? call->waits[j].ns : 0;
		if (ns <= v->lock_ns)
			continue;
		v->lock = lock;
		v->lock_ns = ns;
	}
}

static void name_holder(struct accounting *a, struct worst_call *v,
			const struct completed_call *call)
{
	struct held held[HOLDERS_MOST];
	size_t i, j, n = 0;

	name_lock(v, call);
	for (i = 0; i < call->n_waits; i++)
		for (j = 0; call->waits[i].lock == v->lock && j < call->waits[i].n_intervals; j++)
			add_held(a, held, &n, &call->waits[i].intervals[j]);
	for (i = 0; i < n; i++) {
		if (held[i].ns <= v->held_ns)
			continue;
		v->holder = held[i].holder;
		v->holder_fn = held[i].fn;
		v->holder_device = held[i].device;
		v->held_ns = held[i].ns;
	}
}

/* What it waited for that is no lock, by sort. */
static void name_sleep(struct worst_call *v, const struct completed_call *call)
{
	uint64_t sums[SPY_WAIT_KINDS] = {0};

	for (size_t i = 0; i < call->n_waits; i++) {
		const struct wait *w = &call->waits[i];

		if (!wait_asleep(w) || w->kind >= SPY_WAIT_KINDS)
			continue;
		sums[w->kind] += w->ns;
		if (sums[w->kind] <= v->slept_ns)
			continue;
		v->slept_kind = w->kind;
		v->slept_ns = sums[w->kind];
	}
}

/* ---- the subject ----------------------------------------------------------------------------- */

static bool segment_about(const struct hold_interval *s, const struct subject *about)
{
	switch (about->kind) {
	case SUBJECT_THREAD:
		return s->holder && subject_is_thread(about, s->holder);
	case SUBJECT_CALL:
		return s->holder && s->fn == about->fn;
	case SUBJECT_DEVICE:
		return s->holder && s->device == about->device;
	default:
		return false;
	}
}

static bool call_about(const struct completed_call *call, const struct subject *about)
{
	if (about->kind == SUBJECT_ALL ||
	    (about->kind == SUBJECT_THREAD && subject_is_thread(about, call->thread)) ||
	    (about->kind == SUBJECT_CALL && call->fn == about->fn) ||
	    (about->kind == SUBJECT_DEVICE && call->device == about->device))
		return true;
	if (about->kind == SUBJECT_PLACE || about->kind == SUBJECT_FINDING)
		return !about->place || about->place->made_there(about->place, call);
	for (size_t i = 0; i < call->n_waits; i++) {
		const struct wait *w = &call->waits[i];

		if (about->kind == SUBJECT_LOCK && w->lock &&
		    w->lock->key.address == about->lock.address &&
		    w->lock->key.process == about->lock.process)
			return true;
		for (size_t j = 0; j < w->n_intervals; j++)
			if (segment_about(&w->intervals[j], about))
				return true;
	}
	return false;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Less than this is negligible. */
#define WORST_CALL_LEAST_NS 50000

static struct worst_call *least_of(struct blame *b)
{
	struct worst_call *least = &b->worst_calls[0];

	for (size_t i = 1; i < WORST_CALLS; i++)
		if (b->worst_calls[i].lost_ns < least->lost_ns)
			least = &b->worst_calls[i];
	return least;
}

uint64_t worst_call_add(struct accounting *a, const struct completed_call *call, uint64_t lost_ns,
			const char *why)
{
	struct blame *b = a->blame;
	struct worst_call *v;
	uint64_t serial;

	if (lost_ns <= b->least_lost_ns || lost_ns < WORST_CALL_LEAST_NS ||
	    !call_about(call, &b->subject))
		return 0;
	v = least_of(b);
	serial = ++b->serial;
	*v = (struct worst_call){.serial = serial,
				 .at = position_now(),
				 .thread = call->thread,
				 .fn = call->fn,
				 .device = call->device,
				 .begin_ns = call->begin_ns,
				 .end_ns = call->end_ns,
				 .expected_ns = call->expected_ns,
				 .lost_ns = lost_ns,
				 .return_address = call->return_address,
				 .stack = call->stack,
				 .range = ranges_innermost(&a->ranges, call->thread),
				 .holder_fn = NO_FUNCTION,
				 .holder_device = SPY_DEVICE_NONE,
				 .why = why};
	memcpy(v->bucket_ns, call->bucket_ns, sizeof(v->bucket_ns));
	v->bucket_ns[BUCKET_IOCTL] -= call->kernel_ns;
	name_holder(a, v, call);
	name_sleep(v, call);
	b->least_lost_ns = least_of(b)->lost_ns;
	if (b->journal) {
		struct journal_entry *entry = journal_add(b->journal, JOURNAL_WORST_CALL);

		entry->worst.thread = call->thread;
		entry->worst.end_ns = call->end_ns;
		entry->worst.lost_ns = lost_ns;
		entry->worst.serial = serial;
	}
	return serial;
}

void worst_call_replay(struct blame *b, struct thread *thread, uint64_t end_ns, uint64_t lost_ns,
		       uint64_t serial)
{
	if (lost_ns <= b->least_lost_ns)
		return;
	*least_of(b) = (struct worst_call){
		.serial = serial, .thread = thread, .end_ns = end_ns, .lost_ns = lost_ns};
	b->least_lost_ns = least_of(b)->lost_ns;
}

struct worst_call *worst_call_of(struct blame *b, const struct completed_call *call)
{
	if (completed_lost(call) < b->least_lost_ns)
		return NULL;
	for (size_t i = 0; i < WORST_CALLS; i++)
		if (b->worst_calls[i].thread == call->thread &&
		    b->worst_calls[i].end_ns == call->end_ns)
			return &b->worst_calls[i];
	return NULL;
}

void worst_call_add_root(struct blame *b, uint64_t serial, const struct worst_call_root *more)
{
	struct worst_call_root *root, *smallest;
	size_t i, j;

	for (i = 0; i < WORST_CALLS && b->worst_calls[i].serial != serial; i++)
		;
	if (i == WORST_CALLS)
		return;
	smallest = &b->worst_calls[i].roots[0];
	for (j = 0; j < WORST_CALL_ROOTS; j++) {
		root = &b->worst_calls[i].roots[j];
		if (root->ns > 0 && root->lock == more->lock && root->thread == more->thread &&
		    root->fn == more->fn && root->cause == more->cause) {
			root->ns += more->ns;
			return;
		}
		if (root->ns < smallest->ns)
			smallest = root;
	}
	if (more->ns > smallest->ns)
		*smallest = *more;
}

void worst_call_infer(struct blame *b, const struct wait_chain_link *link)
{
	for (size_t i = 0; link->origin.serial && i < WORST_CALLS; i++) {
		struct worst_call *v = &b->worst_calls[i];

		if (v->serial != link->origin.serial)
			continue;
		v->inferred = true;
		v->holder = link->holder;
		v->holder_fn = link->fn;
		v->holder_device = link->device;
		v->held_ns = link->end_ns - link->begin_ns;
	}
}
