/*
 * analyzer/blame/kernel_overlap.c: which other threads were in the kernel module. Called by the
 * accounting for each request to it, and by unattributed.c for each call that was in it longer than
 * such calls are, some time after it has returned.
 */
#include <stdlib.h>
#include "blame.h"
#include "account/account.h"

/* What calls take in the kernel module is not the same each time: less than this is negligible. */
#define EXCESS_LEAST_NS 2000

/* So many requests are remembered, for calls that are not longer than those took: it is what a look
 * costs at most. */
#define RING_FIRST 64
#define RING_MOST 1024

struct request {
	struct thread_account *account;
	uint64_t begin_ns, end_ns;
	const struct host *host; /* requests of others are none of its kernel's */
	uint32_t fn; /* the application's call */
	uint8_t device;
	double part; /* of the time between: requests in a row share a record */
	/* at the same time as those of the call in hand; also of those that it stands for:
	 * gather */
	double overlap_ns;
};

/* A request of the call in hand. */
struct stretch {
	uint64_t begin_ns, end_ns;
	double part;
};

void kernel_overlap_release(struct kernel_overlap *c)
{
	edges_release(&c->edges);
	free(c->ring);
	free(c->own);
	free(c->numbered);
	*c = (struct kernel_overlap){0};
}

/* ---- requests ------------------------------------------------------------------------------- */

static inline struct request *request_of(const struct kernel_overlap *c, uint64_t number)
{
	return &c->ring[number & (c->ring_size - 1)];
}

/* The oldest that is remembered. */
static inline uint64_t oldest(const struct kernel_overlap *c)
{
	return c->requests > c->ring_size ? c->requests - c->ring_size : 0;
}

/* None has been forgotten yet: they lie in their order. */
static void grow_ring(struct kernel_overlap *c)
{
	size_t size = c->ring_size ? 2 * c->ring_size : RING_FIRST;

	c->ring = xrealloc(c->ring, size, sizeof(*c->ring));
	c->ring_size = size;
}

static void meet(struct kernel_overlap *c, const struct request *request)
{
	if (c->requests == c->ring_size && c->ring_size < RING_MOST)
		grow_ring(c);
	*request_of(c, c->requests++) = *request;
}

void kernel_overlap_add_wait(struct kernel_overlap *c, struct thread_account *account, uint32_t fn,
			     const struct wait *w)
{
	struct journal_entry *entry;

	if (w->end_ns <= w->begin_ns)
		return;
	if (!c->journal) {
		meet(c,
		     &(struct request){.account = account,
				       .begin_ns = w->begin_ns,
				       .end_ns = w->end_ns,
				       .host = account->thread->process->trace->host,
				       .fn = fn,
				       .device = account->device,
				       .part = (double)w->ns / (double)(w->end_ns - w->begin_ns)});
		return;
	}
	entry = journal_add(c->journal, JOURNAL_REQUEST);
	entry->fn = fn;
	entry->device = account->device;
	entry->module.account = account;
	entry->module.begin_ns = w->begin_ns;
	entry->module.end_ns = w->end_ns;
	entry->module.ns = w->ns;
}

/* ---- a call --------------------------------------------------------------------------------- */

static uint64_t excess_ns(const struct completed_call *f)
{
	return f->bucket_ns[BUCKET_IOCTL] - f->kernel_ns;
}

bool kernel_overlap_is_significant(const struct completed_call *f)
{
	return excess_ns(f) >= EXCESS_LEAST_NS;
}

static void add_own(struct kernel_overlap *c, const struct request *r)
{
	if (c->n_own == c->own_size) {
		c->own_size = 2 * c->own_size + 16;
		c->own = xrealloc(c->own, c->own_size, sizeof(*c->own));
	}
	c->own[c->n_own++] = (struct stretch){r->begin_ns, r->end_ns, r->part};
}

/* Fills in c->own, the last one first. Returns the first request of all that ended during the call,
 * or after it. */
static uint64_t find_own(struct kernel_overlap *c, const struct thread_account *account,
			 const struct completed_call *f)
{
	uint64_t number = c->requests, last = oldest(c);

	c->n_own = 0;
	for (; number > last && request_of(c, number - 1)->end_ns > f->begin_ns; number--) {
		const struct request *r = request_of(c, number - 1);

		if (r->account == account && r->end_ns <= f->end_ns)
			add_own(c, r);
	}
	return number;
}

/* How much of [begin, end) the call was in the kernel module; `from`: of c->own, the first that may
 * be of it. */
static double share_of_own(const struct kernel_overlap *c, size_t from, uint64_t begin_ns,
			   uint64_t end_ns)
{
	double ns = 0;

	for (size_t i = from; i < c->n_own && c->own[i].end_ns > begin_ns; i++) {
		const struct stretch *s = &c->own[i];
		uint64_t to_ns = min_u64(end_ns, s->end_ns);
		uint64_t from_ns = begin_ns > s->begin_ns ? begin_ns : s->begin_ns;

		if (from_ns < to_ns)
			ns += (double)(to_ns - from_ns) * s->part;
	}
	return ns;
}

/* A thread's requests in calls of one function are charged together, as the last of them:
 * fewer edges to look up. The number that it has is of an earlier search, unless it comes
 * after this one. */
static void gather(struct kernel_overlap *c, struct request *r, uint64_t number)
{
	struct request *later = request_of(c, r->account->overlap_request);

	if (r->account->overlap_request > number && later->fn == r->fn &&
	    later->device == r->device) {
		later->overlap_ns += r->overlap_ns;
		r->overlap_ns = 0;
	} else {
		r->account->overlap_request = number;
	}
}

/*
 * Fills in how long requests of others since `first` were there at the same time as those of the
 * call, and adds that up in *sum_ns. Returns how long any was there. It goes back in time, by ends:
 * what is before `seen_ns`, none of those so far was there.
 */
static double find_overlaps(struct kernel_overlap *c, const struct thread_account *account,
			    const struct completed_call *f, uint64_t first, double *sum_ns)
{
	const struct host *host = f->thread->process->trace->host;
	uint64_t seen_ns = f->end_ns, number = c->requests;
	size_t from = 0;
	double any_ns = 0;

	*sum_ns = 0;
	while (number-- > first) {
		struct request *r = request_of(c, number);

		r->overlap_ns = 0;
		if (r->begin_ns >= f->end_ns || r->account == account || r->host != host)
			continue;
		while (from < c->n_own && c->own[from].begin_ns >= r->end_ns)
			from++;
		r->overlap_ns = share_of_own(c, from, r->begin_ns, r->end_ns) * r->part;
		if (r->begin_ns < seen_ns) {
			any_ns += share_of_own(c, from, r->begin_ns, min_u64(r->end_ns, seen_ns)) *
				  r->part;
			seen_ns = r->begin_ns;
		}
		*sum_ns += r->overlap_ns;
		gather(c, r, number);
	}
	return any_ns;
}

/* Of hundreds of threads each has been in it with each: beyond so many sums the other thread is not
 * named. */
#define PAIRS_MOST 8192

static uint32_t number_of(struct kernel_overlap *c, struct thread_account *account)
{
	if (!c->numbers)
		return account->thread->index + 1;
	if (!account->overlap_number) {
		c->numbered = grow(c->numbered, c->n_numbered, sizeof(struct thread *));
		c->numbered[c->n_numbered++] = account->thread;
		account->overlap_number = (uint32_t)c->n_numbered;
	}
	return account->overlap_number;
}

static void charge(struct accounting *a, struct thread_account *account,
		   const struct completed_call *f, const struct request *r, double ns)
{
	union blame_key key = {.waiter = number_of(&a->blame->kernel_overlap, account),
			       .waiter_fn = f->fn,
			       .waiter_device = f->device,
			       .holder = number_of(&a->blame->kernel_overlap, r->account),
			       .holder_fn = r->fn,
			       .holder_device = r->device,
			       .inferred = true};
	struct blame_edge *edge;

	if (unlikely(a->blame->kernel_overlap.edges.n >= PAIRS_MOST)) {
		key.holder = 0;
		key.holder_fn = NO_FUNCTION;
		key.holder_device = SPY_DEVICE_NONE;
	}
	edge = edges_get(&a->blame->kernel_overlap.edges, &key);
	edge->waits += edge->last_wait != a->blame->waits;
	edge->last_wait = a->blame->waits;
	edge->waited_ns += ns;
}

/* most_ns: no thread can account for more. */
static void name_overlap(struct worst_call *v, const struct kernel_overlap *c, uint64_t first,
			 double most_ns)
{
	const struct request *longest = request_of(c, first);

	for (uint64_t number = first; number < c->requests; number++)
		if (request_of(c, number)->overlap_ns > longest->overlap_ns)
			longest = request_of(c, number);
	v->overlap_thread = longest->account->thread;
	v->overlap_fn = longest->fn;
	v->overlap_device = longest->device;
	v->overlap_ns = (uint64_t)(longest->overlap_ns < most_ns ? longest->overlap_ns : most_ns);
}

/* For the replay. */
static void write_down(struct journal *journal, struct thread_account *account,
		       const struct completed_call *f)
{
	struct journal_entry *entry = journal_add(journal, JOURNAL_SEARCH);

	entry->fn = f->fn;
	entry->device = f->device;
	entry->module.account = account;
	entry->module.begin_ns = f->begin_ns;
	entry->module.end_ns = f->end_ns;
	entry->module.excess_ns = excess_ns(f);
	entry->module.lost_ns = completed_lost(f);
}

void kernel_overlap_find(struct accounting *a, struct thread_account *account,
			 const struct completed_call *f)
{
	struct kernel_overlap *c = &a->blame->kernel_overlap;
	uint64_t first, number;
	double sum_ns, any_ns, excess = (double)excess_ns(f);
	struct worst_call *worst_call;

	if (c->journal) {
		write_down(c->journal, account, f);
		return;
	}
	first = find_own(c, account, f);
	any_ns = find_overlaps(c, account, f, first, &sum_ns);
	worst_call = worst_call_of(a->blame, f);
	if (sum_ns <= 0)
		return;
	excess = excess < any_ns ? excess : any_ns;
	if (worst_call)
		name_overlap(worst_call, c, first, excess);
	a->blame->waits++;
	for (number = first; number < c->requests; number++) {
		const struct request *r = request_of(c, number);

		if (r->overlap_ns > 0)
			charge(a, account, f, r, excess * r->overlap_ns / sum_ns);
	}
}

/* ---- parts of a set -------------------------------------------------------------------------- */

void kernel_overlap_replay(struct accounting *a, const struct journal_entry *entry)
{
	struct thread_account *account = entry->module.account;
	uint64_t begin_ns = entry->module.begin_ns, end_ns = entry->module.end_ns;
	struct completed_call f;

	if (entry->kind == JOURNAL_REQUEST) {
		meet(&a->blame->kernel_overlap,
		     &(struct request){.account = account,
				       .begin_ns = begin_ns,
				       .end_ns = end_ns,
				       .host = account->thread->process->trace->host,
				       .fn = entry->fn,
				       .device = entry->device,
				       .part = (double)entry->module.ns /
					       (double)(end_ns - begin_ns)});
		return;
	}
	/* As much of the call as is asked for. */
	f = (struct completed_call){.thread = account->thread,
				    .fn = entry->fn,
				    .device = entry->device,
				    .divided = true,
				    .begin_ns = begin_ns,
				    .end_ns = end_ns};
	f.bucket_ns[BUCKET_IOCTL] = entry->module.excess_ns;
	f.bucket_ns[BUCKET_OWN] = end_ns - begin_ns - entry->module.lost_ns;
	kernel_overlap_find(a, account, &f);
}

void kernel_overlap_renumber(struct kernel_overlap *c)
{
	struct blame_edges old = c->edges;
	const struct blame_edge *edge;
	struct blame_edge *new;

	c->edges = (struct blame_edges){0};
	EDGES_ITER (edge, &old) {
		union blame_key key = edge->key;

		key.waiter = key.waiter ? c->numbered[key.waiter - 1]->index + 1 : 0;
		key.holder = key.holder ? c->numbered[key.holder - 1]->index + 1 : 0;
		new = edges_get(&c->edges, &key);
		*new = *edge;
		new->key = key;
	}
	edges_release(&old);
	c->numbers = false;
}
