/*
 * analyzer/blame/blame.c: follows waits to their holders and roots. Called by the accounting when a
 * call with waits has returned, or one that others waited at.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "blame.h"
#include "observer.h"
#include "account/book.h"

/* So many links a wait chain has at most: a longer one would be a circle. */
#define LEVELS_MOST 16

void blame_init(struct blame *b, struct accounting *accounts)
{
	*b = (struct blame){.accounts = accounts};
	b->unattributed = xcalloc(accounts->model->n_processes, sizeof(*b->unattributed));
	accounts->blame = b;
}

void blame_release(struct blame *b)
{
	for (size_t i = 0; b->unattributed && i < b->accounts->model->n_processes; i++)
		unattributed_release(&b->unattributed[i]);
	free(b->unattributed);
	kernel_overlap_release(&b->kernel_overlap);
	edges_release(&b->direct);
	edges_release(&b->roots);
	free(b->stalled.bits);
	free(b->stalled_across.bits);
	*b = (struct blame){0};
}

static enum processes_help blame_processes_help(const union blame_key *root)
{
	if (root->cause == CAUSE_IOCTL)
		return HELP_NOT;
	if (root->cause == CAUSE_NOT_RUNNING ||
	    root->cause == CAUSE_MPS) /* another user's server keeps all processes waiting */
		return HELP_UNKNOWN;
	return root->waiter_device == root->holder_device ? HELP_WITH_MPS : HELP_ALONE;
}

void blame_add_help(const struct blame_edge *root, double help_ns[HELP_NOT + 1])
{
	enum processes_help help = blame_processes_help(&root->key);
	bool one_gpu = root->key.waiter_device == root->key.holder_device;

	help_ns[help] += root->waited_ns - root->avoidable_ns;
	help_ns[one_gpu ? HELP_WITH_MPS : HELP_ALONE] += root->avoidable_ns;
}

static inline bool is_stall(const union blame_key *k, bool across_devices)
{
	return k->holder && k->holder != k->waiter && k->waiter_device != SPY_DEVICE_NONE &&
	       k->holder_device != SPY_DEVICE_NONE && k->cause != CAUSE_UNKNOWN &&
	       blame_processes_help(k) != HELP_UNKNOWN &&
	       (k->waiter_device != k->holder_device) == across_devices;
}

bool blame_is_stall(const union blame_key *root, bool across_devices)
{
	return is_stall(root, across_devices);
}

/* ---- the sums ------------------------------------------------------------------------------- */

static uint32_t index_of(const struct thread *thread)
{
	return thread ? thread->index + 1 : 0;
}

static union blame_key key_of(const struct blame_origin *o, const struct thread *holder,
			      uint32_t fn, uint8_t device, const struct lock *lock, uint8_t cause)
{
	return blame_key_of(index_of(o->waiter), o->fn, o->device, index_of(holder), fn, device,
			    lock ? lock->index + 1 : 0, cause, o->inferred);
}

/* Pairs of calls that are counted separately, besides some for each thread and lock: all pairs of
 * 128 threads. Of many processes each has its share. */
#define PAIRS_MOST 16384
#define PAIRS_LEAST 1024
#define PAIRS_EACH 4

/* Are there that many already? roots: of these, else of direct ones. */
static bool has_all_pairs(const struct accounting *a, const struct process_account *p, bool roots)
{
	size_t each = PAIRS_EACH * (p->n_threads + p->n_locks), share;

	if (likely(p->n_pairs[roots] < PAIRS_LEAST + each))
		return false;
	share = PAIRS_MOST / (a->model->n_processes ?: 1);
	return p->n_pairs[roots] >= (share > PAIRS_LEAST ? share : PAIRS_LEAST) + each;
}

/* Of hundreds of threads each waits for each. Beyond so many pairs a sum has the waiter and the
 * holder's call, but not the holder's thread. */
static __attribute__((noinline)) struct blame_edge *
make_edge(struct accounting *a, const struct blame_origin *o, bool roots,
	  const union blame_key *key, struct thread *holder)
{
	struct process_account *p = &a->processes[o->process];
	struct blame_edges *edges = roots ? &a->blame->roots : &a->blame->direct;
	size_t before = edges->n;
	union blame_key its = *key;
	struct blame_edge *edge;

	if (has_all_pairs(a, p, roots) && holder && key->holder != key->waiter)
		its.holder = index_of(model_many(a->model, holder->process));
	edge = edges_get(edges, &its);
	p->n_pairs[roots] += edges->n - before;
	return edge;
}

static inline struct blame_edge *edge_of(struct accounting *a, const struct blame_origin *o,
					 bool roots, const union blame_key *key,
					 struct thread *holder)
{
	struct blame_edge *edge = edges_find(roots ? &a->blame->roots : &a->blame->direct, key);

	return likely(edge != NULL) ? edge : make_edge(a, o, roots, key, holder);
}

/* A wait counts once, in however many links it comes. */
static void count_wait(struct blame_edge *edge, const struct blame_origin *o)
{
	edge->waits += edge->last_wait != o->wait;
	edge->last_wait = o->wait;
}

static inline bool call_set_has(const struct call_set *set, uint64_t call)
{
	return call / 64 < set->n_words && set->bits[call / 64] >> call % 64 & 1;
}

/* It is not there yet. */
static void call_set_add(struct call_set *set, uint64_t call, uint64_t begin_ns)
{
	size_t word = call / 64, n = set->n_words;

	if (word >= n) {
		set->n_words = 2 * word + 16;
		set->bits = xrealloc(set->bits, set->n_words, sizeof(*set->bits));
		memset(set->bits + n, 0, (set->n_words - n) * sizeof(*set->bits));
	}
	set->bits[word] |= 1ull << call % 64;
	if (!set->count++ || begin_ns < set->first_ns)
		set->first_ns = begin_ns;
	if (begin_ns > set->last_ns)
		set->last_ns = begin_ns;
}

/* A call that other threads stalled, by another GPU's or not: each once. */
static inline void count_stalled(struct accounting *a, const struct blame_origin *o, bool across)
{
	struct call_set *set = across ? &a->blame->stalled_across : &a->blame->stalled;

	if (likely(call_set_has(set, o->call)))
		return;
	call_set_add(set, o->call, o->begin_ns);
	if (o->starting)
		account_of(&thread_account_get(a, o->waiter)->functions, o->fn)
			->starting_stalls[across]++;
}

static void charge_direct(struct accounting *a, const struct blame_origin *o,
			  const struct lock *lock, const struct hold_interval *s)
{
	union blame_key key = key_of(o, s->holder, s->fn, s->device, lock, 0);
	struct blame_edge *edge;

	edge = edge_of(a, o, false, &key, s->holder);
	count_wait(edge, o);
	edge->waited_ns += (double)(s->end_ns - s->begin_ns);
}

static void charge_shares(struct accounting *a, const struct blame_origin *o, struct thread *thread,
			  uint32_t fn, uint8_t device, enum cause cause, double ns,
			  double avoidable_ns)
{
	union blame_key key = key_of(o, thread, fn, device, NULL, (uint8_t)cause);
	struct blame_edge *edge;
	bool across;

	if (ns <= 0)
		return;
	ns *= o->weight;
	avoidable_ns *= o->weight;
	edge = edge_of(a, o, true, &key, thread);
	count_wait(edge, o);
	edge->waited_ns += ns;
	edge->avoidable_ns += avoidable_ns;
	if (unlikely(o->starting))
		edge->starting_ns += ns;
	if (o->working)
		edge->working_ns += ns;
	across = key.waiter_device != key.holder_device;
	if (is_stall(&key, across))
		count_stalled(a, o, across);
	if (o->serial && thread && o->weight != 1)
		thread = model_many(a->model, thread->process); /* as in worst_calls.c */
	if (o->serial)
		worst_call_add_root(
			a->blame, o->serial,
			&(struct worst_call_root){o->lock, thread, fn, device, (uint8_t)cause, ns});
}

static void charge_root(struct accounting *a, const struct blame_origin *o, struct thread *thread,
			uint32_t fn, uint8_t device, enum cause cause, double ns)
{
	charge_shares(a, o, thread, fn, device, cause, ns, 0);
}

/* ---- to the root ---------------------------------------------------------------------------- */

static void follow(struct accounting *a, struct wait_chain_link *link);

/* What others waited for at a call that is a case of some problem. */
static void charge_site(struct accounting *a, const struct wait_chain_link *link,
			const struct completed_call *f, uint64_t ns)
{
	const struct blame_origin *o = &link->origin;

	if (f->site && o->waiter != f->thread)
		a->observer->on_others_wait(
			f->site, &(struct others_wait){.waiter = o->waiter,
						       .ns = (double)ns * o->weight,
						       .sure = !o->awaits,
						       .working = o->working,
						       .across_devices = o->device != f->device});
}

/* What kept a thread from its own work, but for locks. */
/* clang-format off */
static const struct {
	enum bucket bucket;
	enum cause cause;
} reasons[] = {
	{BUCKET_LOADING,      CAUSE_LOADING},
	{BUCKET_GPU_INTENDED, CAUSE_GPU},
	{BUCKET_GPU_HIDDEN,   CAUSE_GPU},
	{BUCKET_IOCTL,        CAUSE_IOCTL},
	{BUCKET_QUEUE,        CAUSE_QUEUE},
	{BUCKET_NOT_RUNNING,  CAUSE_NOT_RUNNING},
	{BUCKET_MPS,          CAUSE_MPS},
	{BUCKET_UNEXPLAINED,  CAUSE_UNKNOWN},
};
/* clang-format on */

/* Time of a call in which the probes saw nothing, or of which is forgotten what they saw. Its own
 * work first: a short stretch is the short part of it. */
static void charge_rest(struct accounting *a, const struct wait_chain_link *link,
			const struct completed_call *f, uint64_t ns)
{
	bool seen = f->n_waits; /* what of it was in the kernel module has been charged */
	uint64_t own = completed_ns(f, BUCKET_OWN);
	uint64_t others = f->end_ns - f->begin_ns - own - completed_ns(f, BUCKET_LOCK) -
			  (seen ? completed_ns(f, BUCKET_IOCTL) : 0);
	double share;

	charge_site(a, link, f, ns);
	if (!others || ns < own)
		own = ns;
	charge_root(a, &link->origin, f->thread, f->fn, f->device, CAUSE_OWN, (double)own);
	if (own == ns)
		return;
	share = (double)(ns - own) / (double)others;
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		bool module = reasons[i].cause == CAUSE_IOCTL;
		uint64_t part = module && seen ? 0 : completed_ns(f, reasons[i].bucket);

		charge_shares(a, &link->origin, f->thread, f->fn, f->device, reasons[i].cause,
			      share * (double)part,
			      module && part ? share * (double)f->avoidable_ns : 0);
	}
}

/* What of [begin, end) lies in [from, to)? */
static uint64_t overlap(uint64_t begin, uint64_t end, uint64_t from, uint64_t to)
{
	begin = begin > from ? begin : from;
	end = end < to ? end : to;
	return begin < end ? end - begin : 0;
}

/* Before, between or after the holder's calls, as far as we know them. */
static void charge_outside(struct accounting *a, const struct wait_chain_link *link, uint64_t ns)
{
	charge_root(a, &link->origin, link->holder, link->fn, link->device,
		    link->holder ? CAUSE_OWN : CAUSE_UNKNOWN, (double)ns);
}

/* While a lock is being handed over, what its last holder does has no part in it. */
static void follow_interval(struct accounting *a, struct wait_chain_link *link,
			    const struct hold_interval *s)
{
	if (s->handover)
		charge_outside(a, link, link->end_ns - link->begin_ns);
	else
		follow(a, link);
}

static inline const uint64_t *ns_at(const void *all, size_t byte)
{
	return (const void *)((const char *)all + byte);
}

#define FEW 4 /* are looked at one after the other */

/* The first of n structures, one behind the other in time, whose end_ns (at that offset) lies
 * behind `ns`: a call may have thousands of waits, and a wait hundreds of hold intervals. */
static inline size_t first_after(const void *all, size_t n, size_t bytes, size_t offset,
				 uint64_t ns)
{
	size_t low = 0, high = n;

	while (high - low > FEW) {
		size_t middle = low + (high - low) / 2;

		if (*ns_at(all, middle * bytes + offset) > ns)
			high = middle;
		else
			low = middle + 1;
	}
	while (low < high && *ns_at(all, low * bytes + offset) <= ns)
		low++;
	return low;
}

static size_t first_interval(const struct wait *w, uint64_t ns)
{
	return first_after(w->intervals, w->n_intervals, sizeof(*w->intervals),
			   offsetof(struct hold_interval, end_ns), ns);
}

static size_t first_wait(const struct completed_call *f, uint64_t ns)
{
	return first_after(f->waits, f->n_waits, sizeof(*f->waits), offsetof(struct wait, end_ns),
			   ns);
}

/* Of a sample, what the holder did is asked for the time around its moment, for which the lock is
 * known to have been the holder's. */
static void look_at_sample(struct wait_chain_link *link, const struct hold_interval *s)
{
	if (likely(!s->seen_end_ns))
		return;
	link->origin.weight *= (double)(link->end_ns - link->begin_ns) /
			       (double)(s->seen_end_ns - s->seen_begin_ns);
	link->begin_ns = s->seen_begin_ns;
	link->end_ns = s->seen_end_ns;
}

/* From the holder to whom that one waited for meanwhile. */
static void pass_on(struct wait_chain_link *link, const struct hold_interval *s)
{
	look_at_sample(link, s);
	link->holder = s->holder;
	link->fn = s->fn;
	link->device = s->device;
	link->level++;
	link->origin.inferred |= !s->measured;
}

/* The holder was itself waiting for a lock in the stretch [begin, end) of the link: the blame goes on to the holders of that
 * one. */
static void go_on(struct accounting *a, const struct wait_chain_link *link, uint64_t begin_ns,
		  uint64_t end_ns, const struct wait *w)
{
	for (size_t i = first_interval(w, begin_ns); i < w->n_intervals; i++) {
		const struct hold_interval *s = &w->intervals[i];
		struct wait_chain_link next;

		if (s->begin_ns >= end_ns)
			break;
		if (!overlap(s->begin_ns, s->end_ns, begin_ns, end_ns))
			continue;
		next = *link;
		next.begin_ns = s->begin_ns > begin_ns ? s->begin_ns : begin_ns;
		next.end_ns = s->end_ns < end_ns ? s->end_ns : end_ns;
		pass_on(&next, s);
		follow_interval(a, &next, s);
	}
}

/* The stretch [begin, end) of a link, inside a call that has returned; i: of its waits, the first that ended after begin. */
static void charge_call(struct accounting *a, const struct wait_chain_link *link,
			const struct completed_call *f, size_t i, uint64_t begin_ns,
			uint64_t end_ns)
{
	uint64_t rest_ns = end_ns - begin_ns, ns;

	for (; i < f->n_waits && f->waits[i].begin_ns < end_ns; i++) {
		const struct wait *w = &f->waits[i];

		ns = overlap(w->begin_ns, w->end_ns, begin_ns, end_ns);
		if (ns > rest_ns)
			ns = rest_ns;
		if (!ns || (w->lock ? !w->n_intervals : w->kind != SPY_WAIT_IOCTL))
			continue;
		rest_ns -= ns;
		if (w->lock) {
			go_on(a, link, begin_ns, end_ns, w);
			continue;
		}
		charge_site(a, link, f, ns);
		charge_shares(a, &link->origin, f->thread, f->fn, f->device, CAUSE_IOCTL,
			      (double)ns, (double)ns * (double)w->avoidable_behind);
	}
	if (rest_ns)
		charge_rest(a, link, f, rest_ns);
}

/* When the holder made calls that are forgotten, one by one. The holder had the lock, so none of it
 * was a wait for it. */
static void charge_history(struct accounting *a, const struct wait_chain_link *link,
			   const struct history *history, uint64_t begin_ns, uint64_t end_ns)
{
	double rest_ns = (double)(end_ns - begin_ns);

	for (size_t i = 0; history && i < history->n; i++) {
		const struct era *era = &history->eras[i];
		double ns = (double)overlap(era->begin_ns, era->end_ns, begin_ns, end_ns);
		double all_ns = (double)(era->end_ns - era->begin_ns) - era->bucket_ns[BUCKET_LOCK];

		for (size_t j = 0; ns > 0 && all_ns > 0 && j < ARRAY_SIZE(reasons); j++) {
			double part_ns = ns * era->bucket_ns[reasons[j].bucket] / all_ns;
			bool module = reasons[j].cause == CAUSE_IOCTL;

			part_ns = part_ns < rest_ns ? part_ns : rest_ns;
			rest_ns -= part_ns;
			charge_shares(a, &link->origin, link->holder, link->fn, link->device,
				      reasons[j].cause, part_ns,
				      module && part_ns > 0 ? ns * era->avoidable_ns / all_ns : 0);
		}
	}
	charge_root(a, &link->origin, link->holder, link->fn, link->device, CAUSE_OWN, rest_ns);
}

/* Before the holder's call of that number, or between it and the one before. */
static void charge_before(struct accounting *a, const struct wait_chain_link *link,
			  const struct thread_account *holder, uint64_t number, uint64_t begin_ns,
			  uint64_t end_ns)
{
	if (holder->ring.n - number == holder->ring.size)
		charge_history(a, link, holder->history, begin_ns, end_ns);
	else
		charge_outside(a, link, end_ns - begin_ns);
}

/* What of the link comes after begin_ns. */
static void defer(struct thread_account *holder, const struct wait_chain_link *link,
		  uint64_t begin_ns)
{
	holder->deferred = grow(holder->deferred, holder->n_deferred, sizeof(*holder->deferred));
	holder->deferred[holder->n_deferred] = *link;
	holder->deferred[holder->n_deferred++].begin_ns = begin_ns;
}

/* Number of the first call of those in the ring that ended after ns. They end one after the other; most often it is one of
 * the last ones. */
static uint64_t first_call_behind(const struct call_ring *ring, uint64_t ns)
{
	uint64_t kept = min_u64(ring->n, ring->size), least = ring->n - kept, most = ring->n;

	for (uint64_t back = 1; most > least; back *= 2) {
		uint64_t number = ring->n - min_u64(back, kept);

		if (completed_call_at(ring, number)->end_ns <= ns) {
			least = number + 1;
			break;
		}
		most = number;
	}
	while (least < most) {
		uint64_t middle = least + (most - least) / 2;

		if (completed_call_at(ring, middle)->end_ns > ns)
			most = middle;
		else
			least = middle + 1;
	}
	return most;
}

/* Divides a link among the holder's calls from that number on; what lies behind the last of them is deferred to the one in
 * progress. */
static void divide_link(struct accounting *a, const struct wait_chain_link *link,
			struct thread_account *holder, uint64_t number)
{
	uint64_t begin_ns = link->begin_ns;

	for (; number < holder->ring.n && begin_ns < link->end_ns; number++) {
		const struct completed_call *f = completed_call_at(&holder->ring, number);
		uint64_t end_ns = f->end_ns < link->end_ns ? f->end_ns : link->end_ns;

		if (f->begin_ns >= link->end_ns)
			break;
		if (f->begin_ns > begin_ns) {
			charge_before(a, link, holder, number, begin_ns, f->begin_ns);
			begin_ns = f->begin_ns;
		}
		charge_call(a, link, f, first_wait(f, begin_ns), begin_ns, end_ns);
		begin_ns = end_ns;
	}
	if (begin_ns >= link->end_ns)
		return;
	if (number < holder->ring.n)
		charge_before(a, link, holder, number, begin_ns, link->end_ns);
	else
		defer(holder, link, begin_ns);
}

/* The hold interval that all of the link lies in, if its holder waited for a lock all the time: in the i-th wait of that
 * call. NULL: there is none, or it is a sample. */
static const struct hold_interval *blocking_interval(const struct wait_chain_link *link,
						     const struct completed_call *f, size_t i)
{
	const struct hold_interval *s;
	const struct wait *w;

	if (i == f->n_waits)
		return NULL;
	w = &f->waits[i];
	if (w->begin_ns > link->begin_ns || w->end_ns < link->end_ns)
		return NULL;
	i = first_interval(w, link->begin_ns);
	if (i == w->n_intervals)
		return NULL;
	s = &w->intervals[i];
	if (s->begin_ns > link->begin_ns || s->end_ns < link->end_ns || s->handover ||
	    s->seen_end_ns)
		return NULL;
	return s;
}

/* The link has come back to the thread that it was at two levels ago, and would go on like that. */
static void go_round(struct wait_chain_link *link)
{
	link->level += (LEVELS_MOST + 1 - link->level) & ~1;
}

/* Follows a link to its roots. The caller's copy of it is used up. */
static void follow(struct accounting *a, struct wait_chain_link *link)
{
	const struct hold_interval *s = NULL, *last = NULL, *before_last;

	while (link->holder && link->level <= LEVELS_MOST) {
		struct thread_account *holder = thread_account_of(a, link->holder);
		const struct completed_call *f;
		uint64_t number;
		size_t i;

		if (!holder)
			break;
		number = first_call_behind(&holder->ring, link->begin_ns);
		f = number < holder->ring.n ? completed_call_at(&holder->ring, number) : NULL;
		if (!f || f->begin_ns > link->begin_ns || f->end_ns < link->end_ns) {
			divide_link(a, link, holder, number);
			return;
		}
		before_last = last;
		last = s;
		i = first_wait(f, link->begin_ns);
		s = blocking_interval(link, f, i);
		if (!s) {
			charge_call(a, link, f, i, link->begin_ns, link->end_ns);
			return;
		}
		pass_on(link, s);
		if (s == before_last)
			go_round(link);
	}
	if (link->level > LEVELS_MOST)
		charge_root(a, &link->origin, link->holder, link->fn, link->device, CAUSE_LOCK,
			    (double)(link->end_ns - link->begin_ns));
	else
		charge_outside(a, link, link->end_ns - link->begin_ns);
}

void blame_resolve_deferred(struct accounting *a, struct thread_account *account)
{
	struct wait_chain_link *links = account->deferred;
	size_t n = account->n_deferred, i;

	account->deferred = NULL;
	account->n_deferred = 0;
	for (i = 0; i < n; i++)
		follow(a, &links[i]);
	free(links);
}

/* Had it not returned when the trace ends? Then it is unknown what the call was doing. */
static bool in_flight(const struct thread *thread)
{
	const struct board *board = &thread->process->trace->board;

	for (size_t i = 0; i < board->n_slots; i++)
		if (board->slots[i].tid == thread->tid && board->slots[i].depth)
			return true;
	return false;
}

void blame_finish(struct accounting *a)
{
	for (size_t i = 0; i < a->n_thread_accounts; i++) {
		struct thread_account *c = a->thread_accounts[i];
		enum cause cause =
			c && c->n_deferred && in_flight(c->thread) ? CAUSE_UNKNOWN : CAUSE_OWN;

		for (size_t j = 0; c && j < c->n_deferred; j++)
			charge_root(a, &c->deferred[j].origin, c->thread, c->deferred[j].fn,
				    c->deferred[j].device, cause,
				    (double)(c->deferred[j].end_ns - c->deferred[j].begin_ns));
	}
}

static bool is_working(const struct accounting *a, const struct completed_call *call)
{
	return phase_has(&a->expect->phases, call->thread->process->trace->index, call->end_ns);
}

static bool is_starting(const struct accounting *a, const struct completed_call *call)
{
	return work_starting(&a->work, call->thread->process->trace->index, call->begin_ns);
}

/* ---- without probes ------------------------------------------------------------------------- */

/* Of a call's time, the part that it was not held up by others itself. */
static double own_part(const struct completed_call *f)
{
	uint64_t held = completed_ns(f, BUCKET_LOCK) + completed_ns(f, BUCKET_UNEXPLAINED);
	uint64_t duration = f->end_ns - f->begin_ns;

	return duration > held ? (double)(duration - held) / (double)duration : 0;
}

/* The call of another thread of the process that covers most of this one's unexplained time, and
 * does something of its own meanwhile. */
static const struct completed_call *in_the_way(const struct accounting *a,
					       const struct completed_call *call)
{
	const struct completed_call *best = NULL;
	uint64_t lost_ns = completed_ns(call, BUCKET_UNEXPLAINED), number;
	double most = 0.7 * (double)lost_ns;

	for (size_t i = 0; i < a->n_thread_accounts; i++) {
		const struct thread_account *c = a->thread_accounts[i];

		if (!c || c->thread == call->thread || c->thread->process != call->thread->process)
			continue;
		for (number = c->ring.n; number && c->ring.n - number < c->ring.size; number--) {
			const struct completed_call *f = completed_call_at(&c->ring, number - 1);
			double ns;

			if (f->end_ns <= call->begin_ns)
				break;
			ns = (double)overlap(f->begin_ns, f->end_ns, call->begin_ns, call->end_ns) *
			     own_part(f);
			if (ns > most) {
				most = ns;
				best = f;
			}
		}
	}
	return best;
}

bool blame_infer(struct accounting *a, const struct completed_call *call,
		 struct wait_chain_link *link)
{
	const struct completed_call *holder = in_the_way(a, call);
	const struct worst_call *worst_call = worst_call_of(a->blame, call);

	if (!holder)
		return false;
	*link = (struct wait_chain_link){
		.origin = {.waiter = call->thread,
			   .process = call->thread->process->trace->index,
			   .serial = worst_call ? worst_call->serial : 0,
			   .fn = call->fn,
			   .device = call->device,
			   .awaits = call->awaits,
			   .starting = is_starting(a, call),
			   .working = is_working(a, call),
			   .inferred = true,
			   .weight = 1,
			   .call = ++a->blame->calls,
			   .wait = ++a->blame->waits,
			   .begin_ns = call->begin_ns},
		.holder = holder->thread,
		.begin_ns = holder->begin_ns > call->begin_ns ? holder->begin_ns : call->begin_ns,
		.end_ns = holder->end_ns < call->end_ns ? holder->end_ns : call->end_ns,
		.fn = holder->fn,
		.device = holder->device,
	};
	return true;
}

void blame_conclude(struct accounting *a, const struct wait_chain_link *link)
{
	const struct hold_interval s = {.holder = link->holder,
					.begin_ns = link->begin_ns,
					.end_ns = link->end_ns,
					.fn = link->fn,
					.device = link->device};
	struct wait_chain_link followed = *link;

	charge_direct(a, &link->origin, NULL, &s);
	worst_call_infer(a->blame, link);
	follow(a, &followed);
}

/* ---- a call's waits ------------------------------------------------------------------------- */

/* link: of the wait; its origin's weight is 1. */
static void blame_interval(struct accounting *a, struct wait_chain_link *link, const struct wait *w,
			   const struct hold_interval *s)
{
	link->holder = s->holder;
	link->begin_ns = s->begin_ns;
	link->end_ns = s->end_ns;
	link->fn = s->fn;
	link->device = s->device;
	link->level = 0;
	link->origin.inferred = !s->measured;
	charge_direct(a, &link->origin, w->lock, s);
	look_at_sample(link, s);
	follow_interval(a, link, s);
	link->origin.weight = 1;
}

/*
 * For a lock that was free all the time no thread is to blame: the thread had to be woken, or to
 * get a CPU. But if it took longer than that, a thread had it that was not seen.
 */
#define FREE_MOST_NS 1000000

static bool was_free(const struct wait *w, const struct hold_interval *s)
{
	uint64_t ns = s->end_ns - s->begin_ns;

	return s->handover && !s->holder && ns - min_u64(w->loss.lacked_ns, ns) < FREE_MOST_NS;
}

void blame_waits(struct accounting *a, const struct completed_call *call, uint64_t serial)
{
	struct wait_chain_link link = {.origin = {.waiter = call->thread,
						  .process = call->thread->process->trace->index,
						  .fn = call->fn,
						  .device = call->device,
						  .awaits = call->awaits,
						  .starting = is_starting(a, call),
						  .working = is_working(a, call),
						  .serial = serial,
						  .weight = 1,
						  .call = ++a->blame->calls,
						  .begin_ns = call->begin_ns}};

	for (size_t i = 0; i < call->n_waits; i++) {
		link.origin.wait = ++a->blame->waits;
		link.origin.lock = call->waits[i].lock;
		for (size_t j = 0; j < call->waits[i].n_intervals; j++) {
			const struct hold_interval *s = &call->waits[i].intervals[j];

			if (!was_free(&call->waits[i], s))
				blame_interval(a, &link, &call->waits[i], s);
		}
	}
}
