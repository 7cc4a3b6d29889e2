/*
 * analyzer/account/locks.c: the locks that calls waited for, and the order in which they changed
 * hands. Called by the accounting for each wait; read by the report.
 */
#include <stdlib.h>
#include "locks.h"
#include "base/median.h"

#define RING_FIRST 8
#define RING_MOST 16384 /* events of one lock that are remembered */

void locks_release(struct locks *l)
{
	struct lock *lock, *next;

	HASH_EMPTY (l->by_key, lock, next) {
		free(lock->ring);
		thread_set_release(&lock->waiters);
		thread_set_release(&lock->holders);
		free(lock->name);
		free(lock->place);
		free(lock);
	}
	free(l->all);
	*l = (struct locks){0};
}

static struct lock_key key_of(const struct process *process, uint64_t address)
{
	return (struct lock_key){.address = address, .process = process->trace->index};
}

struct lock *locks_get(struct locks *l, const struct process *process, uint64_t address)
{
	struct lock_key key = key_of(process, address);
	struct lock *lock = l->last;

	if (lock && lock->key.address == key.address && lock->key.process == key.process)
		return lock;
	HASH_FIND(hh, l->by_key, &key, sizeof(key), lock);
	if (!lock && unlikely(l->count >= LOCKS_MOST) && address)
		return locks_get(l, process, 0); /* several, with unknown holders */
	if (!lock) {
		HASH_NEW(l->by_key, lock, key, key);
		lock->process = process;
		lock->created = position_now();
		lock->index = (uint32_t)l->count;
		l->all = grow(l->all, l->count, sizeof(struct lock *));
		l->all[l->count++] = lock;
	}
	l->last = lock;
	return lock;
}

/* ---- events --------------------------------------------------------------------------- */

static void grow_ring(struct lock *lock)
{
	size_t size = lock->ring_size ? 2 * lock->ring_size : RING_FIRST, i;
	struct lock_event *ring = xcalloc(size, sizeof(*ring));

	for (i = 0; i < lock->ring_size; i++) {
		uint64_t number = lock->events - lock->ring_size + i;

		ring[number % size] = lock->ring[number % lock->ring_size];
	}
	free(lock->ring);
	lock->ring = ring;
	lock->ring_size = size;
}

static void count_taken(struct lock_event *event, const struct lock_event *before)
{
	event->acquired = (before ? before->acquired : 0) + !event->released;
	event->acquired_exclusive =
		(before ? before->acquired_exclusive : 0) + (!event->released && !event->shared);
}

/* The ring is in the order of time: what is known late goes before what came since. */
void lock_add(struct lock *lock, const struct lock_event *event)
{
	uint64_t at, oldest;

	if (!lock->key.address) /* several locks: without a holder */
		return;
	if (lock->events >= lock->ring_size && lock->ring_size < RING_MOST)
		grow_ring(lock);
	at = lock->events++;
	oldest = lock->events > lock->ring_size ? lock->events - lock->ring_size : 0;
	for (; at > oldest && lock_event_place(lock, at - 1)->ns > event->ns; at--)
		*lock_event_place(lock, at) = *lock_event_place(lock, at - 1);
	*lock_event_place(lock, at) = *event;
	for (; at < lock->events; at++)
		count_taken(lock_event_place(lock, at),
			    at > oldest ? lock_event_place(lock, at - 1) : NULL);
}

uint64_t lock_events_since(const struct lock *lock, uint64_t ns)
{
	uint64_t kept = min_u64(lock->events, lock->ring_size);
	uint64_t low = lock->events - kept, high = lock->events, back;

	/* Most often it is one of the last. */
	for (back = 1; high > low; back *= 2) {
		uint64_t number = lock->events - min_u64(back, kept);

		if (lock_event_place(lock, number)->ns <= ns) {
			low = number + 1;
			break;
		}
		high = number;
	}
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (lock_event_place(lock, middle)->ns > ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* ---- sets of threads ------------------------------------------------------------------------ */

#define MEMBERS_FIRST 4

/* The place of that member, or the empty one where it would be; the table is not empty. */
static uint32_t *place_in(const struct thread_set *set, uint32_t member)
{
	uint32_t at = member * 0x9e3779b1u >> 7;

	while (set->members[at & (set->n_places - 1)] &&
	       set->members[at & (set->n_places - 1)] != member)
		at++;
	return &set->members[at & (set->n_places - 1)];
}

static void add_member(struct thread_set *set, uint32_t member)
{
	uint32_t *place = set->n_places ? place_in(set, member) : NULL, i;
	struct thread_set more = {.count = set->count + 1};

	if (place && *place)
		return;
	if (place && 2 * set->count < set->n_places) {
		*place = member;
		set->count++;
		return;
	}
	more.n_places = set->n_places ? 2 * set->n_places : MEMBERS_FIRST;
	more.members = xcalloc(more.n_places, sizeof(*more.members));
	for (i = 0; i < set->n_places; i++)
		if (set->members[i])
			*place_in(&more, set->members[i]) = set->members[i];
	*place_in(&more, member) = member;
	free(set->members);
	*set = more;
}

void thread_set_release(struct thread_set *set)
{
	free(set->members);
	*set = (struct thread_set){0};
}

void thread_set_add(struct thread_set *set, const struct thread *thread)
{
	add_member(set, thread->index + 1);
}

void thread_set_renumber(struct thread_set *set, struct thread *const *threads)
{
	struct thread_set old = *set;

	*set = (struct thread_set){0};
	for (uint32_t i = 0; i < old.n_places; i++)
		if (old.members[i])
			thread_set_add(set, threads[old.members[i] - 1]);
	thread_set_release(&old);
}

void thread_set_join(struct thread_set *set, const struct thread_set *more)
{
	for (uint32_t i = 0; i < more->n_places; i++)
		if (more->members[i])
			add_member(set, more->members[i]);
}

bool thread_set_has(const struct thread_set *set, const struct thread *thread)
{
	return set->n_places && *place_in(set, thread->index + 1);
}

/* ---- names ---------------------------------------------------------------------------------- */

static int by_waited(const void *a, const void *b)
{
	const struct lock *x = *(struct lock *const *)a, *y = *(struct lock *const *)b;

	return COMPARE(y->waited_ns, x->waited_ns) ?: COMPARE(x->index, y->index);
}

char *lock_place(const struct process *process, uint64_t address, uint64_t ns)
{
	const struct module *module = model_module_of_data(process, address, ns);

	/* more waits in one call than there is room for: the last record has the rest */
	if (!address)
		return xstrdup("several locks");
	if (!module)
		return xstrdup("heap");
	return xasprintf("%s+0x%llx", path_basename(module->path),
			 (unsigned long long)(address - module->base));
}

struct lock **locks_name(struct locks *l, size_t *n_named)
{
	struct lock **all = xcalloc(l->count + 1, sizeof(*all)), *lock, *next;
	size_t i, n = 0;

	HASH_ITER (hh, l->by_key, lock, next)
		if (lock->waits)
			all[n++] = lock;
	qsort(all, n, sizeof(struct lock *), by_waited);
	for (i = 0; i < n; i++) {
		all[i]->rank = (uint32_t)i + 1;
		free(all[i]->name);
		free(all[i]->place);
		all[i]->name = xasprintf("L%zu", i + 1);
		all[i]->place = lock_place(all[i]->process, all[i]->key.address, all[i]->first_ns);
	}
	*n_named = n;
	return all;
}
