/*
 * analyzer/blame/waits.c: what the recorder saw a thread waiting for: records of waits,
 * of locks that changed hands, of the scheduler. They are kept until the record of the call they
 * happened in. Called by the main reading for each of them.
 */
#include <stdlib.h>
#include "calls.h"
#include "holders.h"
#include "account/book.h"

#define WAITS_MOST 4096 /* of one call that are kept separate */

static void count_wait(struct lock *lock, const struct wait *w, struct thread *thread)
{
	lock->waits++;
	lock->waited_ns += w->ns;
	if (w->ns > lock->longest_ns)
		lock->longest_ns = w->ns;
	thread_set_add(&lock->waiters, thread);
}

/* The process's lock at that address. */
static struct lock *lock_of(struct accounting *a, const struct record *record, uint64_t address)
{
	size_t before = a->locks.count;
	struct lock *lock = locks_get(&a->locks, record->thread->process, address);

	a->processes[record->process].n_locks += a->locks.count - before;
	a->blame->unattributed[record->process].locks_seen = true;
	return lock;
}

static void book_lock(struct accounting *a, const struct thread_account *c,
		      const struct record *record, const struct wait_record *wait, struct wait *w)
{
	struct trace *trace = record->stream->trace;
	uint32_t fn = trace_function(a->model->set, trace, wait->outer_fn);

	w->lock = lock_of(a, record, wait->object);
	if (!w->lock->waits) {
		w->lock->kind = wait->kind;
		w->lock->first_fn = fn;
		w->lock->first_inner_fn = trace_function(a->model->set, trace, wait->fn);
		w->lock->first_ns = record->ns;
	}
	holders_find(a, record, wait, w);
	if (!c->left_out)
		count_wait(w->lock, w, record->thread);
	/* "Several locks" is a lock without a holder. */
	if (wait->object && !(wait->flags & SPY_WAIT_FAILED))
		lock_add(w->lock, &(struct lock_event){.ns = record->ns,
						       .thread = record->thread,
						       .fn = fn,
						       .device = wait->device,
						       .open = wait->kind == SPY_WAIT_MUTEX ||
							       wait->flags & SPY_WAIT_UNFOLLOWED,
						       .shared = wait->kind == SPY_WAIT_READ});
}

static void book_ioctl(struct accounting *a, uint64_t request, uint32_t count, uint64_t ns)
{
	size_t i;

	for (i = 0; i < a->n_ioctls; i++)
		if (a->ioctls[i].request == request)
			break;
	if (i == IOCTLS_MOST) { /* the last one stands for all others */
		i = IOCTLS_MOST - 1;
		a->ioctls[i].request = 0;
	} else if (i == a->n_ioctls) {
		a->ioctls = grow(a->ioctls, a->n_ioctls, sizeof(*a->ioctls));
		a->ioctls[a->n_ioctls++] =
			(struct ioctl_sum){.request = request, .created = position_now()};
	}
	a->ioctls[i].count += count;
	a->ioctls[i].ns += ns;
}

static void meet_ioctl(struct accounting *a, struct thread_account *c, uint32_t outer_fn,
		       const struct wait *w)
{
	if (c->left_out)
		return;
	book_ioctl(a, w->request, w->count, w->ns);
	kernel_overlap_add_wait(&a->blame->kernel_overlap, c, outer_fn, w);
}

static void add_wait(struct thread_account *c, const struct wait *w)
{
	c->waits = grow(c->waits, c->n_waits, sizeof(*c->waits));
	c->waits[c->n_waits++] = *w;
}

static void see_wait(struct accounting *a, struct thread_account *c, const struct record *record)
{
	const struct wait_record wait = decode_wait(record);
	struct wait w = {.kind = wait.kind,
			 .begin_ns = wait.begin_ns,
			 .end_ns = record->ns,
			 .ns = wait.ns,
			 .request = wait.object,
			 .left_out = c->left_out,
			 .count = wait.count};

	/* A thread waits for one thing at a time: whatever a record claims, it began after the
	 * last, and after the call before. */
	if (c->waited_until_ns < record->stream->called_ns)
		c->waited_until_ns = record->stream->called_ns;
	if (w.begin_ns < c->waited_until_ns)
		w.begin_ns = min_u64(c->waited_until_ns, w.end_ns);
	w.ns = min_u64(w.ns, w.end_ns - w.begin_ns);
	c->waited_until_ns = w.end_ns;
	a->probed[record->process] = true; /* whatever its metadata says */
	account_set_device(a, c, wait.device);
	if (spy_wait_is_lock(wait.kind)) {
		/* When each of several in one record was is unknown: as if they had come last. */
		w.begin_ns = w.end_ns - w.ns;
		book_lock(a, c, record, &wait, &w);
	} else if (wait.kind == SPY_WAIT_IOCTL) {
		meet_ioctl(a, c,
			   trace_function(a->model->set, record->stream->trace, wait.outer_fn), &w);
	}
	if (c->n_waits >= WAITS_MOST) {
		holders_settle(&w);
		free(w.intervals);
		return;
	}
	add_wait(c, &w);
}

/* Releasing a lock without waiters takes this long at most. */
#define WAKING_LEAST_NS 200

/* A thread that releases a lock wakes a waiter. The lock costs that time; no thread is to blame. */
static void see_waking(struct thread_account *c, struct lock *lock, const struct record *record,
		       const struct lock_record *held)
{
	uint64_t ns = held->waking_ns;

	if (ns < WAKING_LEAST_NS || record->ns < c->waited_until_ns || c->n_waits >= WAITS_MOST)
		return;
	c->waited_until_ns = record->ns + ns;
	if (!c->left_out)
		lock->waking_ns += ns;
	add_wait(c, &(struct wait){.kind = held->kind,
				   .begin_ns = record->ns,
				   .end_ns = record->ns + ns,
				   .ns = ns,
				   .handover_ns = ns,
				   .left_out = c->left_out,
				   .lock = lock});
}

static void see_move(struct accounting *a, struct thread_account *c, const struct record *record)
{
	const struct lock_record taken = decode_lock(record);

	lock_add(lock_of(a, record, taken.object),
		 &(struct lock_event){
			 .ns = record->ns,
			 .thread = record->thread,
			 .fn = trace_function(a->model->set, record->stream->trace, taken.outer_fn),
			 .device = c->device,
			 .released = record->event == SPY_EV_RELEASED,
			 .open = record->event == SPY_EV_TAKEN,
			 .shared = taken.shared});
}

static void see_held(struct accounting *a, struct thread_account *c, const struct record *record)
{
	const struct lock_record held = decode_lock(record);
	struct lock *lock = lock_of(a, record, held.object);
	struct lock_event event = {
		.ns = held.since_ns,
		.thread = record->thread,
		.fn = trace_function(a->model->set, record->stream->trace, held.outer_fn),
		.device = c->device,
		.shared = held.shared};

	if (held.acquired_at_once)
		lock_add(lock, &event);
	event.ns = record->ns;
	event.released = true;
	lock_add(lock, &event);
	see_waking(c, lock, record, &held);
}

static void see_cpu_use(struct accounting *a, const struct thread_account *c,
			const struct record *record, const struct sched_record *sched)
{
	if (sched->process_ran)
		cpu_pressure_ran(c->cpu_pressure, &a->processes[record->process].cpu_use,
				 record->ns, sched->process_ran);
}

static void see_sched(struct accounting *a, struct thread_account *c, const struct record *record)
{
	const struct sched_record sched = decode_sched(record);

	see_cpu_use(a, c, record, &sched);
	if (record->event == SPY_EV_GAP) {
		c->gap_recorded = true;
		return;
	}
	c->not_running_ns = sched.not_running_ns;
	c->running_ns = sched.running_ns;
	c->sched_window_ns = sched.window_ns;
}

void account_other(struct accounting *a, const struct record *record)
{
	struct thread_account *c = thread_account_get(a, record->thread);

	switch (record->event) {
	case SPY_EV_WAIT:
		see_wait(a, c, record);
		break;
	case SPY_EV_TAKEN:
	case SPY_EV_RELEASED:
		see_move(a, c, record);
		break;
	case SPY_EV_HELD:
		see_held(a, c, record);
		break;
	case SPY_EV_SCHED:
	case SPY_EV_GAP:
		see_sched(a, c, record);
		break;
	case SPY_EV_OUTSIDE:
		work_see_outside(&a->work, record);
		c->gap_recorded = true;
		break;
	default:
		break;
	}
}
