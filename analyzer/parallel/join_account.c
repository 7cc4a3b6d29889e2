/*
 * analyzer/parallel/join_account.c: the accounting and the blame of all parts become one. Called by join.c, when threads
 * have their numbers.
 */
#include <stdlib.h>
#include "parts.h"

/* ---- threads ---------------------------------------------------------------------------------- */

static void join_thread_account(struct parts *p, struct part *part, struct thread_account *c)
{
	struct accounting *a = &p->whole->accounts;
	size_t i;

	c->cpu_pressure = &a->cpu_pressure[c->thread->process->trace->host->index];
	c->stream = NULL; /* of the part's; no more work is handed over */
	for (i = 0; i < c->n_open; i++)
		c->open[i].range = join_name(c->open[i].range);
	for (i = 0; i < c->n_deferred; i++) {
		c->deferred[i].origin.call += part->calls_before;
		c->deferred[i].origin.wait += part->waits_before;
	}
	while (a->n_thread_accounts <= c->thread->index) {
		a->thread_accounts = grow(a->thread_accounts, a->n_thread_accounts,
					  sizeof(struct thread_account *));
		a->thread_accounts[a->n_thread_accounts++] = NULL;
	}
	a->thread_accounts[c->thread->index] = c;
}

static void join_thread_accounts(struct parts *p, struct part *part)
{
	struct accounting *a = &part->a.accounts;
	size_t i;

	for (i = 0; i < a->n_thread_accounts; i++)
		if (a->thread_accounts[i])
			join_thread_account(p, part, a->thread_accounts[i]);
	a->n_thread_accounts = 0;
}

/* ---- processes -------------------------------------------------------------------------------- */

static void join_work(struct gpu_work *whole, struct gpu_work *w, uint32_t process)
{
	uint32_t device;

	for (device = 0; device < w->n_devices; device++) {
		size_t at = work_index(w, process, device);

		whole->devices[at] = w->devices[at];
		w->devices[at].shared = NULL; /* is the whole's now */
		whole->legacy[at] = w->legacy[at];
	}
	whole->n_devices = (uint32_t)max_u64(whole->n_devices, w->n_devices);
	whole->submissions[process] = w->submissions[process];
	whole->first_work_ns[process] = w->first_work_ns[process];
	whole->views[process] = w->views[process];
}

static void join_guesses(struct unattributed_waits *r, const struct part *part)
{
	size_t i;

	for (i = 0; i < r->n_guesses; i++) {
		r->guesses[i].origin.call += part->calls_before;
		r->guesses[i].origin.wait += part->waits_before;
	}
}

static void join_process(struct accounting *whole, struct part *part, uint32_t process)
{
	struct accounting *a = &part->a.accounts;

	join_work(&whole->work, &a->work, process);
	whole->probed[process] = a->probed[process];
	whole->gaps_told[process] = a->gaps_told[process];
	whole->gpus_used[process] = a->gpus_used[process];
	whole->contexts[process] = a->contexts[process];
	whole->processes[process] = a->processes[process];
	whole->peers[process] = a->peers[process];
	whole->unattributed[process] = a->unattributed[process];
	join_guesses(&whole->unattributed[process], part);
	a->peers[process] = (struct peers){0};
	a->unattributed[process] = (struct unattributed_waits){0};
}

/* ---- hosts, requests -------------------------------------------------------------------------- */

static void join_cpu_pressure(struct parts *p)
{
	const struct cpu_pressure **parts = xcalloc(p->n + 1, sizeof(*parts));
	size_t host, i;

	for (host = 0; host < p->whole->set->n_hosts; host++) {
		for (i = 0; i < p->n; i++)
			parts[i] = &p->all[i].a.accounts.cpu_pressure[host];
		cpu_pressure_join(&p->whole->accounts.cpu_pressure[host], parts, p->n);
	}
	free(parts);
}

static void join_ioctl(struct accounting *a, const struct ioctl_sum *more)
{
	size_t i = 0;

	while (i < a->n_ioctls && a->ioctls[i].request != more->request)
		i++;
	if (i == a->n_ioctls) {
		a->ioctls = grow(a->ioctls, a->n_ioctls, sizeof(*a->ioctls));
		a->ioctls[a->n_ioctls++] =
			(struct ioctl_sum){.request = more->request, .born = more->born};
	}
	a->ioctls[i].count += more->count;
	a->ioctls[i].ns += more->ns;
}

static bool join_ioctls(struct parts *p)
{
	struct accounting *whole = &p->whole->accounts;
	struct births order = {0};
	size_t i, j;

	for (i = 0; i < p->n; i++) {
		struct accounting *a = &p->all[i].a.accounts;

		for (j = 0; j < a->n_ioctls; j++)
			births_add(&order, &a->ioctls[j].born, i, &a->ioctls[j]);
	}
	births_sort(&order);
	for (i = 0; i < order.n; i++)
		join_ioctl(whole, order.all[i].what);
	births_release(&order);
	return whole->n_ioctls < IOCTLS_MOST || parts_refuse(p, "too many kinds of requests");
}

/* ---- ranges ----------------------------------------------------------------------------------- */

static void add_seen(struct range_seen *sum, const struct range_seen *more)
{
	sum->ns += more->ns;
	sum->calls += more->calls;
	sum->calls_ns += more->calls_ns;
	sum->lost_ns += more->lost_ns;
	sum->gpu_ns += more->gpu_ns;
	sum->lock_ns += more->lock_ns;
	sum->outside_ns += more->outside_ns;
}

static void join_range_sum(struct range_sum *sum, const struct range_sum *more)
{
	sum->count += more->count;
	sum->marks += more->marks;
	sum->longest_ns = max_u64(sum->longest_ns, more->longest_ns);
	sum->unended += more->unended;
	sum->left_open += more->left_open;
	add_seen(&sum->all, &more->all);
	add_seen(&sum->own, &more->own);
}

static void join_range_thread(struct ranges *whole, struct range_thread *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		t->open[i].name = join_name(t->open[i].name);
	while (whole->n_threads <= t->thread->index) {
		whole->threads =
			grow(whole->threads, whole->n_threads, sizeof(struct range_thread *));
		whole->threads[whole->n_threads++] = NULL;
	}
	whole->threads[t->thread->index] = t;
}

static bool join_ranges(struct parts *p, struct part *part)
{
	struct ranges *whole = &p->whole->accounts.ranges, *r = &part->a.accounts.ranges;
	const struct range_names *names = &part->a.model.range_names;
	size_t i;

	for (i = 0; i < r->n_sums; i++) {
		const struct range_name *name = names->all[i]->into;

		while (whole->n_sums <= name->index) {
			whole->sums = grow(whole->sums, whole->n_sums, sizeof(*whole->sums));
			whole->sums[whole->n_sums++] = (struct range_sum){0};
		}
		join_range_sum(&whole->sums[name->index], &r->sums[i]);
	}
	for (i = 0; i < r->n_threads; i++)
		if (r->threads[i])
			join_range_thread(whole, r->threads[i]);
	r->n_threads = 0;
	whole->lost += r->lost;
	whole->most_started += r->most_started;
	return whole->most_started < RANGES_STARTED_MOST ||
	       parts_refuse(p, "too many ranges that any thread may end");
}

/* ---- numbers of calls and waits --------------------------------------------------------------- */

/* Those of a part come behind those of the parts before it. Sets of calls have 64 in a word. */
static void number_parts(struct parts *p)
{
	uint64_t calls = 0, waits = 0, serials = 0;
	size_t i;

	for (i = 0; i < p->n; i++) {
		const struct blame *b = &p->all[i].a.accounts.blame;

		p->all[i].calls_before = calls;
		p->all[i].waits_before = waits;
		p->all[i].serials_before = serials;
		calls += (b->calls + 64) & ~(uint64_t)63;
		waits += b->waits;
		serials += b->serial;
	}
	p->whole->accounts.blame.calls = calls;
	p->whole->accounts.blame.waits = max_u64(p->whole->accounts.blame.waits, waits);
	p->whole->accounts.blame.serial = serials;
}

bool join_accounts(struct parts *p)
{
	uint64_t n_streams = 0;
	size_t i, j;

	number_parts(p);
	for (i = 0; i < p->n; i++) {
		struct part *part = &p->all[i];

		n_streams += HASH_COUNT(part->a.accounts.work.by_key);
		join_thread_accounts(p, part);
		for (j = 0; j < part->n_processes; j++)
			join_process(&p->whole->accounts, part, part->processes[j]);
		if (!join_ranges(p, part))
			return false;
	}
	join_cpu_pressure(p);
	return join_ioctls(p) && (n_streams < STREAMS_MOST || parts_refuse(p, "too many streams"));
}

/* ---- locks ------------------------------------------------------------------------------------ */

static bool join_locks(struct parts *p)
{
	struct locks *whole = &p->whole->accounts.locks;
	struct births order = {0};
	size_t i, j;

	for (i = 0; i < p->n; i++) {
		struct locks *l = &p->all[i].a.accounts.locks;

		for (j = 0; j < l->count; j++)
			births_add(&order, &l->all[j]->born, i, l->all[j]);
		HASH_CLEAR(hh, l->by_key);
	}
	births_sort(&order);
	for (i = 0; i < order.n; i++) {
		struct lock *lock = order.all[i].what;
		const struct part *part = &p->all[order.all[i].part];

		lock->index = (uint32_t)i;
		join_threads_of(&lock->waiters, part);
		join_threads_of(&lock->holders, part);
		whole->all = grow(whole->all, i, sizeof(struct lock *));
		whole->all[whole->count++] = lock;
		HASH_ADD(hh, whole->by_key, key, sizeof(lock->key), lock);
	}
	births_release(&order);
	return whole->count < LOCKS_MOST || parts_refuse(p, "too many locks");
}

/* ---- edges ------------------------------------------------------------------------------------ */

static uint32_t join_thread_index(const struct part *part, uint32_t index)
{
	return index ? part->a.model.threads[index - 1]->index + 1 : 0;
}

static void join_edge(struct blame_edges *whole, const struct part *part,
		      const struct blame_edge *edge)
{
	const struct locks *locks = &part->a.accounts.locks;
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

static void join_edges(struct parts *p, struct blame_edges *whole, bool roots)
{
	struct births order = {0};
	struct blame_edge *edge;
	size_t i;

	for (i = 0; i < p->n; i++) {
		const struct blame *b = &p->all[i].a.accounts.blame;
		const struct blame_edges *edges = roots ? &b->roots : &b->direct;

		EDGES_ITER (edge, edges)
			births_add(&order, &edge->born, i, edge);
	}
	births_sort(&order);
	for (i = 0; i < order.n; i++)
		join_edge(whole, &p->all[order.all[i].part], order.all[i].what);
	births_release(&order);
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
static bool fill_worst_call(struct parts *p, struct worst_call *v)
{
	struct part *part = &p->all[v->serial >> 40];
	const struct blame *b = &part->a.accounts.blame;
	const struct worst_call found = *v;
	uint64_t serial = v->serial & (((uint64_t)1 << 40) - 1);
	size_t i;

	for (i = 0; i < WORST_CALLS && b->worst_calls[i].serial != serial; i++)
		;
	if (i == WORST_CALLS)
		return parts_refuse(p, "calls that lost the same");
	*v = b->worst_calls[i];
	v->serial = serial + part->serials_before;
	v->range = join_name(v->range);
	v->overlap_thread = found.overlap_thread;
	v->overlap_fn = found.overlap_fn;
	v->overlap_device = found.overlap_device;
	v->overlap_ns = found.overlap_ns;
	return true;
}

static bool join_worst_calls(struct parts *p)
{
	struct blame *b = &p->whole->accounts.blame;
	size_t i;

	for (i = 0; i < WORST_CALLS; i++)
		if (b->worst_calls[i].serial && !fill_worst_call(p, &b->worst_calls[i]))
			return false;
	return true;
}

/* Links that are not followed yet know their worst call by its number. */
static void number_links(struct parts *p, struct part *part)
{
	struct accounting *a = &p->whole->accounts;
	size_t i, j;

	for (i = 0; i < part->n_processes; i++) {
		const struct process *process = &p->whole->model.processes[part->processes[i]];
		struct unattributed_waits *r = &a->unattributed[part->processes[i]];
		const struct thread *thread;

		for (j = 0; j < r->n_guesses; j++)
			if (r->guesses[j].origin.serial)
				r->guesses[j].origin.serial += part->serials_before;
		for (thread = process->threads; thread; thread = thread->next) {
			struct thread_account *c = thread_account_of(a, thread);

			for (j = 0; c && j < c->n_deferred; j++)
				if (c->deferred[j].origin.serial)
					c->deferred[j].origin.serial += part->serials_before;
		}
	}
}

bool join_blame(struct parts *p)
{
	struct accounting *whole = &p->whole->accounts;
	size_t i;

	if (!join_locks(p) || !join_worst_calls(p))
		return false;
	join_edges(p, &whole->blame.direct, false);
	join_edges(p, &whole->blame.roots, true);
	kernel_overlap_renumber(&whole->kernel_overlap);
	for (i = 0; i < p->n; i++) {
		const struct part *part = &p->all[i];
		const struct blame *b = &part->a.accounts.blame;

		join_call_set(&whole->blame.stalled, &b->stalled, part->calls_before);
		join_call_set(&whole->blame.stalled_across, &b->stalled_across, part->calls_before);
		number_links(p, &p->all[i]);
	}
	return true;
}
