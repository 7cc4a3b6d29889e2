/*
 * analyzer/account/account.c: the accounts of threads, and their last calls. Called for each call (blame/calls.c), and by those
 * who ask what calls took.
 */
#include <stdlib.h>
#include <utlist.h>
#include "book.h"

/* So many waits, and holders in them, of a thread's last calls are kept, for their waiters. */
#define WAITS_KEPT 2048

/* ---- sums ----------------------------------------------------------------------------------- */

void account_add(struct account *sum, const struct account *more)
{
	sum->calls += more->calls;
	sum->total_ns += more->total_ns;
	sum->expected_ns = add_known_ns(sum->expected_ns, more->expected_ns);
	sum->asleep_ns += more->asleep_ns;
	sum->maybe_ns += more->maybe_ns;
	sum->kernel_ns += more->kernel_ns;
	sum->starting_stalls[0] += more->starting_stalls[0];
	sum->starting_stalls[1] += more->starting_stalls[1];
	for (size_t i = 0; i < BUCKET_COUNT; i++)
		sum->bucket_ns[i] += more->bucket_ns[i];
}

uint64_t account_lost_by(const struct account *a, enum bucket bucket)
{
	if (!bucket_is_lost(bucket))
		return 0;
	return a->bucket_ns[bucket] - (bucket == BUCKET_IOCTL ? a->kernel_ns : 0);
}

uint64_t account_lost(const struct account *a)
{
	return a->total_ns - a->bucket_ns[BUCKET_OWN] - a->bucket_ns[BUCKET_LOADING] -
	       a->bucket_ns[BUCKET_GPU_INTENDED] - a->kernel_ns;
}

#define PLACES_FIRST 8 /* a line of the cache */

static void grow_places(struct function_accounts *f)
{
	f->n_places = f->n_places ? 4 * f->n_places : PLACES_FIRST;
	free(f->places);
	f->places = xcalloc(f->n_places, sizeof(*f->places));
	for (uint32_t i = 0; i < f->n; i++)
		*account_place(f, f->fns[i]) = (struct account_place){f->fns[i], i + 1};
}

struct account *account_add_function(struct function_accounts *f, uint32_t fn)
{
	if (4 * f->n >= f->n_places)
		grow_places(f);
	f->all = grow(f->all, f->n, sizeof(*f->all));
	f->fns = grow(f->fns, f->n, sizeof(*f->fns));
	f->all[f->n] = (struct account){0};
	f->fns[f->n] = fn;
	*account_place(f, fn) = (struct account_place){fn, ++f->n};
	return &f->all[f->n - 1];
}

/* ---- accounts of threads --------------------------------------------------------------------- */

struct account account_sum(const struct accounting *a, const struct process *process)
{
	struct account sum = {0};

	for (const struct thread *thread = process->threads; thread; thread = thread->next) {
		const struct thread_account *c = thread_account_of(a, thread);

		for (size_t i = 0; c && i < c->functions.n; i++)
			account_add(&sum, &c->functions.all[i]);
	}
	return sum;
}

double account_avoidable_ns(const struct accounting *a)
{
	double sum = 0;

	for (size_t i = 0; i < a->model->n_processes; i++)
		sum += a->processes[i].avoidable_ns;
	return sum;
}

/*
 * Threads that have ended are remembered by what they did until their process has so many; then only sums
 * are left of them, and the last call. A program may make a new thread for each piece of work. Of many processes each has
 * its share.
 */
#define REMEMBERED 1024
#define REMEMBERED_LEAST 64

static size_t remembered_most(const struct accounting *a)
{
	size_t share = REMEMBERED / (a->model->n_processes ?: 1);

	return share > REMEMBERED_LEAST ? share : REMEMBERED_LEAST;
}

size_t wait_next_holder(const struct wait *w, size_t i, struct holder_part *part)
{
	const struct hold_interval *by = &w->intervals[i], *s = by;
	uint64_t released_ns = by->handover ? by->begin_ns : by->end_ns;

	for (i++;
	     i < w->n_intervals && w->intervals[i].handover && w->intervals[i].holder == by->holder;
	     i++)
		s = &w->intervals[i];
	part->by = by;
	part->begin_ns = by->begin_ns;
	part->end_ns = max_u64(by->begin_ns, s->end_ns);
	part->release_ns = part->end_ns - min_u64(released_ns, part->end_ns);
	return i;
}

void waits_free(struct wait *waits, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(waits[i].intervals);
	free(waits);
}

static void forget_calls(struct process_account *p, struct thread_account *c)
{
	struct completed_call *last;

	DL_DELETE(p->remembered, c);
	p->n_remembered--;
	for (size_t i = 0; i < c->ring.size; i++)
		waits_free(c->ring.calls[i].waits, c->ring.calls[i].n_waits);
	last = xcalloc(1, sizeof(*last));
	if (c->ring.n)
		*last = *completed_call_at(&c->ring, c->ring.n - 1);
	last->thread = c->thread;
	last->waits = NULL;
	last->n_waits = c->waits_kept = 0;
	free(c->ring.calls);
	history_free(c->history);
	c->history = NULL;
	c->ring.calls = last;
	c->ring.size = 1;
}

/* For each new thread two of those that are remembered are looked at, so that there are few that
 * have ended. */
static void make_room(const struct accounting *a, struct process_account *p)
{
	for (unsigned int looks = 0; looks < 2 && p->n_remembered > remembered_most(a); looks++) {
		struct thread_account *c = p->remembered;

		if (c->thread->exited_ns != UINT64_MAX) {
			forget_calls(p, c);
			continue;
		}
		DL_DELETE(p->remembered, c);
		DL_APPEND(p->remembered, c);
	}
}

struct thread_account *thread_account_add(struct accounting *a, struct thread *thread)
{
	struct process_account *p = &a->processes[thread->process->trace->index];
	struct thread_account *c;

	make_room(a, p);
	while (a->n_thread_accounts <= thread->index) {
		a->thread_accounts = grow(a->thread_accounts, a->n_thread_accounts,
					  sizeof(struct thread_account *));
		a->thread_accounts[a->n_thread_accounts++] = NULL;
	}
	c = a->thread_accounts[thread->index] = xcalloc(1, sizeof(*c));
	c->ring.most = thread->process->trace->use.gpu_times ? COMPLETED_KEPT_GPU : COMPLETED_KEPT;
	c->thread = thread;
	c->device = SPY_DEVICE_NONE;
	c->cpu_pressure = &a->cpu_pressure[thread->process->trace->host->index];
	DL_APPEND(p->remembered, c);
	p->n_remembered++;
	p->n_threads++;
	return c;
}

static void thread_account_free(struct thread_account *c)
{
	waits_free(c->waits, c->n_waits);
	for (size_t i = 0; i < c->ring.size; i++)
		waits_free(c->ring.calls[i].waits, c->ring.calls[i].n_waits);
	free(c->ring.calls);
	history_free(c->history);
	free(c->deferred);
	free(c->open);
	free(c->functions.places);
	free(c->functions.all);
	free(c->functions.fns);
	free(c);
}

/* Unknown where the metadata is lost: then as in most recordings. */
static bool was_probed(const struct metadata *metadata)
{
	return metadata_number(metadata, "probes", !metadata->frequency);
}

/* Since that version waits between calls leave records. */
#define GAPS_TOLD 6

static bool are_gaps_recorded(const struct metadata *metadata)
{
	return was_probed(metadata) &&
	       metadata_number(metadata, "trace_version", GAPS_TOLD) >= GAPS_TOLD;
}

void account_init(struct accounting *a, struct model *model, struct expect *expect,
		  const struct callstats *stats)
{
	const struct filtering *filtering = stats->filtering;

	*a = (struct accounting){
		.model = model, .expect = expect, .filtering = filtering, .stats = stats};
	work_init(&a->work, model);
	ranges_init(&a->ranges, model);
	if (filter_has(filtering, FILTER_RANGE))
		a->ranges.only = filtering->filter->words.of[FILTER_RANGE];
	a->signatures = xcalloc(model->n_processes, sizeof(*a->signatures));
	a->probed = xcalloc(model->n_processes, sizeof(*a->probed));
	a->gaps_recorded = xcalloc(model->n_processes, sizeof(*a->gaps_recorded));
	a->gpus_used = xcalloc(model->n_processes, sizeof(*a->gpus_used));
	a->contexts = xcalloc(model->n_processes, sizeof(*a->contexts));
	a->processes = xcalloc(model->n_processes, sizeof(*a->processes));
	a->peers = xcalloc(model->n_processes, sizeof(*a->peers));
	a->cpu_pressure = xcalloc(model->set->n_hosts, sizeof(*a->cpu_pressure));
	for (size_t i = 0; i < model->set->n_hosts; i++)
		a->cpu_pressure[i].cpus = model->set->hosts[i].cpus;
	for (size_t i = 0; i < model->n_processes; i++) {
		a->probed[i] = was_probed(&model->processes[i].trace->metadata);
		a->gaps_recorded[i] = are_gaps_recorded(&model->processes[i].trace->metadata);
	}
}

void account_release(struct accounting *a)
{
	for (size_t i = 0; i < a->n_thread_accounts; i++)
		if (a->thread_accounts[i])
			thread_account_free(a->thread_accounts[i]);
	for (size_t i = 0; a->signatures && i < a->model->n_processes; i++) {
		signatures_release(&a->signatures[i]);
		peers_release(&a->peers[i]);
		free(a->processes[i].ahead);
	}
	free(a->thread_accounts);
	free(a->signatures);
	free(a->ioctls);
	free(a->probed);
	free(a->gaps_recorded);
	free(a->gpus_used);
	free(a->contexts);
	locks_release(&a->locks);
	work_release(&a->work);
	free(a->peers);
	free(a->processes);
	ranges_release(&a->ranges);
	for (size_t i = 0; a->cpu_pressure && i < a->model->set->n_hosts; i++)
		cpu_pressure_release(&a->cpu_pressure[i]);
	free(a->cpu_pressure);
	*a = (struct accounting){0};
}

/* ---- a call --------------------------------------------------------------------------------- */

/* The ring begins small: most threads make few calls. */
void account_grow_ring(struct thread_account *c)
{
	size_t size = c->ring.size ? 4 * c->ring.size : 4, i;
	struct completed_call *ring = xcalloc(size, sizeof(*ring));

	for (i = 0; i < c->ring.size; i++) {
		uint64_t number = c->ring.n - c->ring.size + i;

		ring[number % size] = c->ring.calls[number % c->ring.size];
	}
	for (i = 0; i < size; i++)
		ring[i].thread = c->thread;
	free(c->ring.calls);
	c->ring.calls = ring;
	c->ring.size = size;
}

/* What the call's waits take of memory: each wait, and each hold interval of its lock. */
static size_t weight_of_waits(const struct completed_call *f)
{
	size_t weight = f->n_waits, i;

	for (i = 0; i < f->n_waits; i++)
		weight += f->waits[i].n_intervals;
	return weight;
}

static void forget_waits(struct thread_account *c, struct completed_call *f)
{
	c->waits_kept -= weight_of_waits(f);
	waits_free(f->waits, f->n_waits);
	f->waits = NULL;
	f->n_waits = 0;
}

/* A call that lost time makes room for a newer one. */
void account_forget(struct thread_account *c, struct completed_call *f)
{
	if (!c->history)
		c->history = xcalloc(1, sizeof(*c->history));
	history_add(c->history, f);
	forget_waits(c, f);
}

static void bound_waits(struct thread_account *c)
{
	uint64_t number = c->ring.n > c->ring.size ? c->ring.n - c->ring.size : 0;

	for (; c->waits_kept > WAITS_KEPT && number + 1 < c->ring.n; number++) {
		struct completed_call *f = completed_call_at(&c->ring, number);

		if (f->divided && f->waits)
			forget_waits(c, f);
	}
}

void account_keep_waits(struct thread_account *c, struct completed_call *f)
{
	f->waits = c->waits;
	f->n_waits = c->n_waits;
	c->waits = NULL;
	c->n_waits = 0;
	c->waits_kept += weight_of_waits(f);
	if (unlikely(c->waits_kept > WAITS_KEPT))
		bound_waits(c);
}
