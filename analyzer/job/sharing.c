/*
 * analyzer/job/sharing.c: processes of several ranks, or of one, that used a GPU at the same time, and whether they took turns:
 * as findings/sharing.c has it where their traces are read together. Called when all ranks are loaded.
 */
#include <stdlib.h>
#include "job.h"
#include "findings/finding.h"
#include "findings/sharing.h"

#define TENANTS_MOST 4096 /* of one GPU that are compared: the first ones */

static int by_gpu(const void *a, const void *b)
{
	const struct job_tenant *x = a, *y = b;

	return strcmp(x->place, y->place) ?: strcmp(x->uuid, y->uuid) ?:
	       COMPARE(x->from_ns, y->from_ns) ?: COMPARE(x->rank, y->rank) ?:
	       COMPARE(x->pid, y->pid) ?: COMPARE(x->until_ns, y->until_ns);
}

static bool same_gpu(const struct job_tenant *a, const struct job_tenant *b)
{
	return !strcmp(a->place, b->place) && !strcmp(a->uuid, b->uuid);
}

/* tenants_together of findings/sharing.h */
static bool are_together(const struct job_tenant *a, const struct job_tenant *b)
{
	if (!a->client || !b->client)
		return false;
	if (a->server && b->server)
		return a->server == b->server;
	return *a->directory && !strcmp(a->directory, b->directory);
}

/* "rank 1", "rank 1 and 3 more" */
static void name_with(struct job *job, struct job_tenant *t, const struct job_tenant *first)
{
	uint64_t others = t->mates + t->rivals;

	t->with = job->ranks[first->rank].name;
	if (others > 1)
		t->with = arena_printf(&job->texts, "%s and %llu more", t->with,
				       (unsigned long long)(others - 1));
}

/* What of the time from *until_ns on is new. They come in the order of their beginnings. */
static uint64_t take(uint64_t *until_ns, const struct job_tenant *self,
		     const struct job_tenant *other)
{
	uint64_t begin_ns = max_u64(max_u64(*until_ns, self->from_ns), other->from_ns);
	uint64_t end_ns = min_u64(self->until_ns, other->until_ns);

	if (end_ns <= begin_ns)
		return 0;
	*until_ns = end_ns;
	return end_ns - begin_ns;
}

static void compare(struct job *job, struct job_tenant *self, const struct job_tenant *all,
		    size_t n)
{
	uint64_t shared_until_ns = 0, sliced_until_ns = 0;
	const struct job_tenant *first = NULL;

	for (size_t i = 0; i < n && all[i].from_ns < self->until_ns; i++) {
		if (&all[i] == self || all[i].until_ns <= self->from_ns ||
		    (all[i].rank == self->rank && all[i].pid == self->pid))
			continue;
		first = first ?: &all[i];
		self->shared_ns += take(&shared_until_ns, self, &all[i]);
		if (are_together(self, &all[i])) {
			self->mates++;
		} else {
			self->rivals++;
			self->sliced_ns += take(&sliced_until_ns, self, &all[i]);
		}
	}
	if (first)
		name_with(job, self, first);
}

/* What a rank's own digest says of it is of its own processes only. */
static void find_slices(struct job *job)
{
	bool *seen = xcalloc(job->n_ranks + 1, sizeof(*seen));
	struct job_site *site = NULL;

	for (size_t i = 0; i < job->n_tenants; i++) {
		const struct job_tenant *t = &job->tenants[i];

		if (!job_is_sliced(t))
			continue;
		if (!site) {
			site = job_site_nowhere(job, "time-slicing");
			site->ranks = site->count = 0;
			site->severity = SEVERITY_NOTE; /* what it costs is unknown */
		}
		site->count++;
		site->ranks += !seen[t->rank];
		seen[t->rank] = true;
	}
	free(seen);
}

bool job_is_sliced(const struct job_tenant *t)
{
	return sharing_is_sliced(t->sliced_ns, t->until_ns - t->from_ns);
}

void job_share(struct job *job)
{
	size_t from, to, i, n;

	if (job->n_tenants)
		qsort(job->tenants, job->n_tenants, sizeof(*job->tenants), by_gpu);
	for (from = 0; from < job->n_tenants; from = to) {
		for (to = from + 1;
		     to < job->n_tenants && same_gpu(&job->tenants[from], &job->tenants[to]); to++)
			;
		n = min_u64(to - from, TENANTS_MOST);
		for (i = 0; i < n && *job->tenants[from].uuid; i++)
			compare(job, &job->tenants[from + i], &job->tenants[from], n);
	}
	find_slices(job);
}
