/*
 * analyzer/blame/blame_join.c: locks, who waited for whom and the worst calls of all parts of a set become one; and what
 * parts wrote down for that while they were read. Called by parallel/join.c and replay.c.
 */
#include <stdlib.h>
#include "blame.h"
#include "account/account.h"
#include "model/join.h"

/* A worst call, until the parts are one: its part, and its number there. */
#define PART_SHIFT 40

/* ---- locks ------------------------------------------------------------------------------------ */

static bool join_locks(struct locks *whole, struct blame *const *parts, struct join *join)
{
	struct creation_order order = {0};

	for (size_t i = 0; i < join->n; i++) {
		struct locks *l = &parts[i]->accounts->locks;

		for (size_t j = 0; j < l->count; j++)
			creation_order_add(&order, &l->all[j]->created, i, l->all[j]);
		HASH_CLEAR(hh, l->by_key);
	}
	creation_order_sort(&order);
	for (size_t i = 0; i < order.n; i++) {
		struct lock *lock = order.all[i].what;
		const struct join_part *part = &join->parts[order.all[i].part];

		lock->index = (uint32_t)i;
		thread_set_renumber(&lock->waiters, part->model->threads);
		thread_set_renumber(&lock->holders, part->model->threads);
		whole->all = grow(whole->all, i, sizeof(struct lock *));
		whole->all[whole->count++] = lock;
		HASH_ADD(hh, whole->by_key, key, sizeof(lock->key), lock);
	}
	creation_order_release(&order);
	return whole->count < LOCKS_MOST || join_refuse(join, "too many locks");
}

/* ---- edges ------------------------------------------------------------------------------------ */

static uint32_t join_thread_index(const struct join_part *part, uint32_t index)
{
	return index ? part->model->threads[index - 1]->index + 1 : 0;
}

static void join_edge(struct blame_edges *whole, const struct join_part *part,
		      const struct locks *locks, const struct blame_edge *edge)
{
	union blame_key key = edge->key;
	struct blame_edge *new;

	key.waiter = join_thread_index(part, key.waiter);
	key.holder = join_thread_index(part, key.holder);
	key.lock = key.lock ? locks->all[key.lock - 1]->index + 1 : 0;
	new = edges_get(whole, &key);
	*new = *edge;
	new->key = key;
	new->last_wait += part->waits_before;
}

static void join_edges(struct blame_edges *whole, struct blame *const *parts,
		       const struct join *join, bool roots)
{
	struct creation_order order = {0};
	struct blame_edge *edge;

	for (size_t i = 0; i < join->n; i++) {
		const struct blame_edges *edges = roots ? &parts[i]->roots : &parts[i]->direct;

		EDGES_ITER (edge, edges)
			creation_order_add(&order, &edge->created, i, edge);
	}
	creation_order_sort(&order);
	for (size_t i = 0; i < order.n; i++)
		join_edge(whole, &join->parts[order.all[i].part],
			  &parts[order.all[i].part]->accounts->locks, order.all[i].what);
	creation_order_release(&order);
}

static void join_call_set(struct call_set *whole, const struct call_set *set, uint64_t calls_before)
{
	size_t at = calls_before / 64, n;

	if (!set->count)
		return;
	n = at + set->n_words;
	if (n > whole->n_words) {
		whole->bits = xrealloc(whole->bits, n, sizeof(*whole->bits));
		memset(whole->bits + whole->n_words, 0,
		       (n - whole->n_words) * sizeof(*whole->bits));
		whole->n_words = n;
	}
	for (n = 0; n < set->n_words; n++)
		whole->bits[at + n] |= set->bits[n];
	whole->first_ns = whole->count ? min_u64(whole->first_ns, set->first_ns) : set->first_ns;
	whole->last_ns = max_u64(whole->last_ns, set->last_ns);
	whole->count += set->count;
}

/* ---- the worst calls -------------------------------------------------------------------------- */

/* The replay has found which they are, and who was in the kernel module meanwhile. */
static bool fill_worst_call(struct worst_call *v, struct blame *const *parts, struct join *join)
{
	size_t part = v->serial >> PART_SHIFT;
	const struct blame *b = parts[part];
	const struct worst_call found = *v;
	uint64_t serial = v->serial & (((uint64_t)1 << PART_SHIFT) - 1);
	size_t i;

	for (i = 0; i < WORST_CALLS && b->worst_calls[i].serial != serial; i++)
		;
	if (i == WORST_CALLS)
		return join_refuse(join, "calls that lost the same");
	*v = b->worst_calls[i];
	v->serial = serial + join->parts[part].serials_before;
	v->range = join_name(v->range);
	v->overlap_thread = found.overlap_thread;
	v->overlap_fn = found.overlap_fn;
	v->overlap_device = found.overlap_device;
	v->overlap_ns = found.overlap_ns;
	return true;
}

static bool join_worst_calls(struct blame *b, struct blame *const *parts, struct join *join)
{
	for (size_t i = 0; i < WORST_CALLS; i++)
		if (b->worst_calls[i].serial && !fill_worst_call(&b->worst_calls[i], parts, join))
			return false;
	return true;
}

/* ---- numbers of calls and waits ---------------------------------------------------------------- */

/* Those of a part come behind those of the parts before it. Sets of calls have 64 in a word. */
static void number_parts(struct blame *whole, struct blame *const *parts, struct join *join)
{
	uint64_t calls = 0, waits = 0, serials = 0;

	for (size_t i = 0; i < join->n; i++) {
		const struct blame *b = parts[i];
		struct join_part *part = &join->parts[i];

		part->calls_before = calls;
		part->waits_before = waits;
		part->serials_before = serials;
		calls += (b->calls + 64) & ~(uint64_t)63;
		waits += b->waits;
		serials += b->serial;
	}
	whole->calls = calls;
	whole->waits = max_u64(whole->waits, waits);
	whole->serial = serials;
}

/* Links that are not followed yet know their call, their wait, and their worst call by its number. */
static void number_links(struct wait_chain_link *links, size_t n, const struct join_part *part)
{
	for (size_t i = 0; i < n; i++) {
		struct blame_origin *origin = &links[i].origin;

		origin->call += part->calls_before;
		origin->wait += part->waits_before;
		if (origin->serial)
			origin->serial += part->serials_before;
	}
}

static void join_process(struct blame *whole, struct blame *b, const struct join_part *part,
			 uint32_t process)
{
	struct unattributed_waits *r = &whole->unattributed[process];
	const struct thread *thread;

	*r = b->unattributed[process];
	b->unattributed[process] = (struct unattributed_waits){0};
	number_links(r->guesses, r->n_guesses, part);
	thread = whole->accounts->model->processes[process].threads;
	for (; thread; thread = thread->next) {
		struct thread_account *c = thread_account_of(whole->accounts, thread);

		if (c)
			number_links(c->deferred, c->n_deferred, part);
	}
}

/* struct blame, joined: direct, roots, stalled, stalled_across, worst_calls, calls, waits, serial, unattributed; not: accounts (the
 * whole's), least_lost_ns, kernel_overlap (the replay), subject (the whole's), journal (of a part). */
/* struct locks, joined: by_key, all, count; not: last (while records are read). */
/* struct call_set, joined: bits, n_words, count, first_ns, last_ns; not: nothing. */
bool blame_join(struct blame *whole, struct blame *const *parts, struct join *join)
{
	number_parts(whole, parts, join);
	if (!join_locks(&whole->accounts->locks, parts, join) ||
	    !join_worst_calls(whole, parts, join))
		return false;
	join_edges(&whole->direct, parts, join, false);
	join_edges(&whole->roots, parts, join, true);
	kernel_overlap_renumber(&whole->kernel_overlap);
	for (size_t i = 0; i < join->n; i++) {
		const struct join_part *part = &join->parts[i];

		join_call_set(&whole->stalled, &parts[i]->stalled, part->calls_before);
		join_call_set(&whole->stalled_across, &parts[i]->stalled_across,
			      part->calls_before);
		for (size_t j = 0; j < part->n_processes; j++)
			join_process(whole, parts[i], part, part->processes[j]);
	}
	return true;
}

/* ---- journals --------------------------------------------------------------------------------- */

void blame_replay(struct accounting *whole, size_t part, const struct journal_entry *entry)
{
	if (entry->kind == JOURNAL_WORST_CALL)
		worst_call_replay(whole->blame, entry->worst.thread, entry->worst.end_ns,
				  entry->worst.lost_ns,
				  (uint64_t)part << PART_SHIFT | entry->worst.serial);
	else
		kernel_overlap_replay(whole, entry);
}
