/*
 * analyzer/blame/company.c: who else was in the kernel module. Called by the accounting for each request to it, and
 * by riddles.c for each call that was in it longer than such calls are, some time after it has returned.
 */
#include <stdlib.h>
#include <string.h>
#include "account/account.h"

/* What calls take in the kernel module is not the same each time: less than this is no matter. */
#define EXCESS_LEAST_NS 2000

/* So many requests are remembered: those of a millisecond, of threads that make nothing else. */
#define RING_FIRST 64
#define RING_MOST 4096

struct request {
	struct thread *thread;
	uint64_t begin_ns, end_ns;
	uint32_t fn; /* the application's call */
	uint8_t device;
	double part; /* of the time between: requests in a row share a record */
	double beside_ns; /* at the same time as those of the call in hand */
};

/* A request of the call in hand. */
struct stretch {
	uint64_t begin_ns, end_ns;
	double part;
};

/* Clocks are compared within one boot of a machine. */
static uint32_t machine_of(const struct company *c, const struct model *model, uint32_t process)
{
	const char *boot = metadata_text(&model->processes[process].trace->metadata, "boot_id");
	const char *other;
	uint32_t i;

	for (i = 0; i < process; i++) {
		if (c->machines[i] != i)
			continue;
		other = metadata_text(&model->processes[i].trace->metadata, "boot_id");
		if (!strcmp(boot ?: "", other ?: ""))
			break;
	}
	return i;
}

void company_init(struct company *c, const struct model *model)
{
	uint32_t i;

	c->machines = xcalloc(model->n_processes, sizeof(*c->machines));
	for (i = 0; i < model->n_processes; i++)
		c->machines[i] = machine_of(c, model, i);
}

void company_release(struct company *c)
{
	edges_release(&c->edges);
	free(c->ring);
	free(c->own);
	free(c->machines);
	*c = (struct company){0};
}

/* ---- requests ------------------------------------------------------------------------------- */

static inline struct request *request_of(const struct company *c, uint64_t number)
{
	return &c->ring[number & (c->ring_size - 1)];
}

/* The oldest that is remembered. */
static inline uint64_t oldest(const struct company *c)
{
	return c->requests > c->ring_size ? c->requests - c->ring_size : 0;
}

/* None has been forgotten yet: they lie in their order. */
static void grow_ring(struct company *c)
{
	size_t size = c->ring_size ? 2 * c->ring_size : RING_FIRST;

	c->ring = xrealloc(c->ring, size, sizeof(*c->ring));
	c->ring_size = size;
}

void company_meet(struct company *c, const struct caller *caller, uint32_t fn,
		  const struct waited *w)
{
	if (w->end_ns <= w->begin_ns)
		return;
	if (c->requests == c->ring_size && c->ring_size < RING_MOST)
		grow_ring(c);
	*request_of(c, c->requests++) = (struct request){
		.thread = caller->thread,
		.begin_ns = w->begin_ns,
		.end_ns = w->end_ns,
		.fn = fn,
		.device = caller->device,
		.part = (double)w->ns / (double)(w->end_ns - w->begin_ns),
	};
}

/* ---- a call --------------------------------------------------------------------------------- */

static uint64_t excess_ns(const struct finished *f)
{
	return f->bucket_ns[BUCKET_IOCTL] - f->kernel_ns;
}

bool company_matters(const struct finished *f)
{
	return excess_ns(f) >= EXCESS_LEAST_NS;
}

/* Fills in c->own, the last one first. Returns how many. */
static size_t find_own(struct company *c, const struct finished *f, uint64_t first)
{
	uint64_t number;
	size_t n = 0;

	for (number = c->requests; number > first; number--) {
		const struct request *r = request_of(c, number - 1);

		if (r->thread != f->thread || r->end_ns > f->end_ns)
			continue;
		if (n == c->own_size) {
			c->own_size = 2 * n + 16;
			c->own = xrealloc(c->own, c->own_size, sizeof(*c->own));
		}
		c->own[n++] = (struct stretch){r->begin_ns, r->end_ns, r->part};
	}
	return n;
}

/* The first of those that ended during the call, or after it. */
static uint64_t first_beside(const struct company *c, const struct finished *f)
{
	uint64_t number = c->requests, last = oldest(c);

	while (number > last && request_of(c, number - 1)->end_ns > f->begin_ns)
		number--;
	return number;
}

/* What of [begin, end) the stretch has. */
static double share_of(const struct stretch *s, uint64_t begin_ns, uint64_t end_ns)
{
	begin_ns = begin_ns > s->begin_ns ? begin_ns : s->begin_ns;
	end_ns = least(end_ns, s->end_ns);
	return begin_ns < end_ns ? (double)(end_ns - begin_ns) * s->part : 0;
}

/*
 * Fills in how long each request of others since `first` was there at the same time as those of the call, and adds
 * that up in *sum_ns. Returns how long any was there. It goes back in time, by ends: what is before `seen_ns`, none of
 * those so far was there.
 */
static double find_beside(struct company *c, const struct finished *f, uint64_t first,
			  double *sum_ns)
{
	size_t n_own = find_own(c, f, first), from = 0, i;
	uint64_t seen_ns = f->end_ns, number;
	double any_ns = 0;

	*sum_ns = 0;
	for (number = c->requests; number > first; number--) {
		struct request *r = request_of(c, number - 1);

		r->beside_ns = 0;
		if (r->thread == f->thread || r->begin_ns >= f->end_ns ||
		    c->machines[r->thread->process->trace->index] !=
			    c->machines[f->thread->process->trace->index])
			continue;
		while (from < n_own && c->own[from].begin_ns >= r->end_ns)
			from++;
		for (i = from; i < n_own && c->own[i].end_ns > r->begin_ns; i++) {
			r->beside_ns += share_of(&c->own[i], r->begin_ns, r->end_ns) * r->part;
			any_ns += share_of(&c->own[i], r->begin_ns, least(r->end_ns, seen_ns)) *
				  r->part;
		}
		seen_ns = least(seen_ns, r->begin_ns);
		*sum_ns += r->beside_ns;
	}
	return any_ns;
}

static void charge(struct accounting *a, const struct finished *f, const struct request *r,
		   double ns)
{
	struct blame_key key = {.waiter = f->thread->index + 1,
				.waiter_fn = f->fn,
				.waiter_device = f->device,
				.holder = r->thread->index + 1,
				.holder_fn = r->fn,
				.holder_device = r->device,
				.inferred = true};
	struct blame_edge *edge = edges_get(&a->company.edges, &key);

	edge->waits += edge->last_wait != a->blame.waits;
	edge->last_wait = a->blame.waits;
	edge->waited_ns += ns;
}

/* Of so many different ones at most, who was there longest is told. */
#define BESIDE_MOST 16

/* most_ns: more than that nobody can have to do with it. */
static void name_beside(struct victim *v, const struct company *c, uint64_t first, double most_ns)
{
	const struct request *by[BESIDE_MOST];
	double ns[BESIDE_MOST], longest_ns = 0;
	uint64_t number;
	size_t n = 0, i;

	for (number = first; number < c->requests; number++) {
		const struct request *r = request_of(c, number);

		for (i = 0; i < n && (by[i]->thread != r->thread || by[i]->fn != r->fn); i++)
			;
		if (r->beside_ns <= 0 || i == BESIDE_MOST)
			continue;
		if (i == n) {
			by[n] = r;
			ns[n++] = 0;
		}
		ns[i] += r->beside_ns;
		if (ns[i] <= longest_ns)
			continue;
		longest_ns = ns[i];
		v->beside = r->thread;
		v->beside_fn = r->fn;
		v->beside_device = r->device;
	}
	v->beside_ns = (uint64_t)(longest_ns < most_ns ? longest_ns : most_ns);
}

void company_find(struct accounting *a, const struct finished *f)
{
	struct company *c = &a->company;
	uint64_t first = first_beside(c, f), number;
	double sum_ns, any_ns = find_beside(c, f, first, &sum_ns), excess = (double)excess_ns(f);
	struct victim *victim = blame_victim_of(&a->blame, f);

	if (sum_ns <= 0)
		return;
	excess = excess < any_ns ? excess : any_ns;
	if (victim)
		name_beside(victim, c, first, excess);
	a->blame.waits++;
	for (number = first; number < c->requests; number++) {
		const struct request *r = request_of(c, number);

		if (r->beside_ns > 0)
			charge(a, f, r, excess * r->beside_ns / sum_ns);
	}
}
