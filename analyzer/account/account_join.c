/*
 * analyzer/account/account_join.c: the accounting of all parts of a set becomes one. Called by parallel/join.c, when threads
 * have their numbers.
 */
#include <stdlib.h>
#include "account.h"
#include "model/join.h"

void account_init_part(struct accounting *a, const uint64_t *begun_ns)
{
	for (size_t i = 0; i < a->model->set->n_hosts; i++) {
		a->cpu_pressure[i].apart = true;
		a->cpu_pressure[i].begin_ns = begun_ns[i];
	}
}

/* ---- threads ---------------------------------------------------------------------------------- */

static void join_thread_account(struct accounting *a, struct thread_account *c)
{
	c->cpu_pressure = &a->cpu_pressure[c->thread->process->trace->host->index];
	c->stream = NULL; /* of the part's; no more work is handed over */
	while (a->n_thread_accounts <= c->thread->index) {
		a->thread_accounts = grow(a->thread_accounts, a->n_thread_accounts,
					  sizeof(struct thread_account *));
		a->thread_accounts[a->n_thread_accounts++] = NULL;
	}
	a->thread_accounts[c->thread->index] = c;
}

static void join_thread_accounts(struct accounting *whole, struct accounting *a)
{
	for (size_t i = 0; i < a->n_thread_accounts; i++)
		if (a->thread_accounts[i])
			join_thread_account(whole, a->thread_accounts[i]);
	a->n_thread_accounts = 0;
}

/* ---- processes -------------------------------------------------------------------------------- */

static void join_work(struct gpu_work *whole, struct gpu_work *w, uint32_t process)
{
	for (uint32_t device = 0; device < w->n_devices; device++) {
		size_t at = work_index(w, process, device);

		whole->devices[at] = w->devices[at];
		w->devices[at].shared = NULL; /* is the whole's now */
		whole->legacy[at] = w->legacy[at];
	}
	whole->n_devices = (uint32_t)max_u64(whole->n_devices, w->n_devices);
	whole->submissions[process] = w->submissions[process];
	whole->first_work_ns[process] = w->first_work_ns[process];
	whole->views[process] = w->views[process];
	whole->turns[process] = w->turns[process];
}

static void join_process(struct accounting *whole, struct accounting *a, uint32_t process)
{
	join_work(&whole->work, &a->work, process);
	whole->probed[process] = a->probed[process];
	whole->gaps_recorded[process] = a->gaps_recorded[process];
	whole->gpus_used[process] = a->gpus_used[process];
	whole->contexts[process] = a->contexts[process];
	whole->processes[process] = a->processes[process];
	a->processes[process].ahead = NULL; /* is the whole's now */
	whole->peers[process] = a->peers[process];
	a->peers[process] = (struct peers){0};
}

/* ---- hosts, requests -------------------------------------------------------------------------- */

static void join_cpu_pressure(struct accounting *whole, struct accounting *const *parts, size_t n)
{
	const struct cpu_pressure **all = xcalloc(n + 1, sizeof(*all));

	for (size_t host = 0; host < whole->model->set->n_hosts; host++) {
		for (size_t i = 0; i < n; i++)
			all[i] = &parts[i]->cpu_pressure[host];
		cpu_pressure_join(&whole->cpu_pressure[host], all, n);
	}
	free(all);
}

static void join_ioctl(struct accounting *a, const struct ioctl_sum *more)
{
	size_t i = 0;

	while (i < a->n_ioctls && a->ioctls[i].request != more->request)
		i++;
	if (i == a->n_ioctls) {
		a->ioctls = grow(a->ioctls, a->n_ioctls, sizeof(*a->ioctls));
		a->ioctls[a->n_ioctls++] =
			(struct ioctl_sum){.request = more->request, .created = more->created};
	}
	a->ioctls[i].count += more->count;
	a->ioctls[i].ns += more->ns;
}

static bool join_ioctls(struct accounting *whole, struct accounting *const *parts,
			struct join *join)
{
	struct creation_order order = {0};

	for (size_t i = 0; i < join->n; i++)
		for (size_t j = 0; j < parts[i]->n_ioctls; j++)
			creation_order_add(&order, &parts[i]->ioctls[j].created, i,
					   &parts[i]->ioctls[j]);
	creation_order_sort(&order);
	for (size_t i = 0; i < order.n; i++)
		join_ioctl(whole, order.all[i].what);
	creation_order_release(&order);
	return whole->n_ioctls < IOCTLS_MOST || join_refuse(join, "too many kinds of requests");
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
	for (size_t i = 0; i < t->n; i++)
		t->open[i].name = join_name(t->open[i].name);
	while (whole->n_threads <= t->thread->index) {
		whole->threads =
			grow(whole->threads, whole->n_threads, sizeof(struct range_thread *));
		whole->threads[whole->n_threads++] = NULL;
	}
	whole->threads[t->thread->index] = t;
}

static bool join_ranges(struct ranges *whole, struct ranges *r, const struct range_names *names,
			struct join *join)
{
	for (size_t i = 0; i < r->n_sums; i++) {
		const struct range_name *name = names->all[i]->into;

		while (whole->n_sums <= name->index) {
			whole->sums = grow(whole->sums, whole->n_sums, sizeof(*whole->sums));
			whole->sums[whole->n_sums++] = (struct range_sum){0};
		}
		join_range_sum(&whole->sums[name->index], &r->sums[i]);
	}
	for (size_t i = 0; i < r->n_threads; i++)
		if (r->threads[i])
			join_range_thread(whole, r->threads[i]);
	r->n_threads = 0;
	whole->lost += r->lost;
	whole->most_started += r->most_started;
	return whole->most_started < RANGES_STARTED_MOST ||
	       join_refuse(join, "too many ranges that any thread may end");
}

/* struct accounting, joined: work, peers, cpu_pressure, thread_accounts, n_thread_accounts, ioctls, n_ioctls, ranges,
 * probed, gaps_recorded, gpus_used, contexts, processes; not: model, expect, filtering, stats, blame, observer, listener (the whole's),
 * locks (blame_join), signatures (a cache). */
/* struct gpu_work, joined: devices, legacy, n_devices, submissions, first_work_ns, views, turns, by_key; not: events, found_done, n_captures,
 * n_capturing, handed (while records are read), n_processes (the whole's). */
/* struct ranges, joined: sums, n_sums, threads, n_threads, most_started, lost; not: model, listener, only (the whole's), started
 * (while records are read). */
/* struct range_sum, joined: count, marks, longest_ns, unended, left_open, all, own; not: nothing. */
/* struct range_seen, joined: ns, calls, calls_ns, lost_ns, gpu_ns, lock_ns, outside_ns; not: nothing. */
bool account_join(struct accounting *whole, struct accounting *const *parts, struct join *join)
{
	uint64_t n_streams = 0;

	for (size_t i = 0; i < join->n; i++) {
		const struct join_part *part = &join->parts[i];

		n_streams += HASH_COUNT(parts[i]->work.by_key);
		join_thread_accounts(whole, parts[i]);
		for (size_t j = 0; j < part->n_processes; j++)
			join_process(whole, parts[i], part->processes[j]);
		if (!join_ranges(&whole->ranges, &parts[i]->ranges, &part->model->range_names,
				 join))
			return false;
	}
	join_cpu_pressure(whole, parts, join->n);
	return join_ioctls(whole, parts, join) &&
	       (n_streams < STREAMS_MOST || join_refuse(join, "too many streams"));
}
