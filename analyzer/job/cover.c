/*
 * analyzer/job/cover.c: which parts of their recordings the ranks' digests are of, and which times they cover. Called when all
 * ranks are loaded and the hosts' clocks are known.
 */
#include <stdlib.h>
#include "job.h"

/* Of the time that most ranks cover: one that is away by more covers another time. */
#define APART_PART 10
#define APART_LEAST_NS 1000000000ull /* and no less than that, if no rank is there in parts */

/* ---- parts ----------------------------------------------------------------------------------- */

/* Of the rank's first process; runs of one recording, which may follow one another now. */
static void name_parts(struct job *job, struct job_rank *r)
{
	const struct job_part *run = r->parts;
	uint64_t first = 0, last = 0;
	const char *words = "";

	r->parts_complete = true;
	for (; run; run = run->next) {
		if (strcmp(run->recording, r->parts->recording) != 0)
			continue;
		r->n_parts += run->parts;
		if (run->parts <= run->last - run->first)
			r->parts_complete = false;
		if (!first)
			first = run->first;
		else if (run->first != last + 1) {
			words = digest_part_words(&job->texts, words, first, last);
			first = run->first;
			r->parts_complete = false;
		}
		last = run->last;
		r->n_parts_known = last;
		r->parts_end_known = run->newest;
		r->removed_calls = max_u64(r->removed_calls, run->removed_calls);
	}
	r->parts_words = digest_part_words(&job->texts, words, first, last);
	r->parts_complete &= r->parts->first == 1 && r->parts_end_known;
}

static void name_all_parts(struct job *job)
{
	for (size_t i = 0; i < job->n_ranks; i++) {
		struct job_rank *r = &job->ranks[i];

		if (!r->parts)
			continue;
		name_parts(job, r);
		job->n_partial += !r->parts_complete;
	}
}

/* ---- times ----------------------------------------------------------------------------------- */

/* A thread that makes no calls may be in a part that has ended long ago: of parts their own time counts. */
static uint64_t begin_of(const struct job_rank *r)
{
	return r->parts ? r->parts->from_ns : r->begin_ns;
}

static uint64_t end_of(const struct job_rank *r)
{
	const struct job_part *run = r->parts;
	uint64_t end_ns = run ? 0 : add_capped(r->begin_ns, r->span_ns);

	for (; run; run = run->next)
		if (!strcmp(run->recording, r->parts->recording))
			end_ns = max_u64(end_ns, run->until_ns);
	return end_ns;
}

static bool time_is_known(const struct job *job, const struct job_rank *r)
{
	return r->begin_ns && (!r->host || job->hosts[r->host].clock_known);
}

/* Since the job's begin, by the first host's clock, as far as it is known. */
static int64_t since_begin(const struct job *job, const struct job_rank *r, uint64_t ns)
{
	return (int64_t)(ns - job->begin_ns) - job->hosts[r->host].clock_ns;
}

static uint64_t not_before(int64_t ns)
{
	return ns > 0 ? (uint64_t)ns : 0;
}

uint64_t job_at_ns(const struct job *job, uint32_t rank, uint64_t ns)
{
	return not_before(since_begin(job, &job->ranks[rank], ns));
}

/* Where a host's clock is not known against the first one's, its time says nothing; if none is, it is all that there is. */
void job_begin(struct job *job)
{
	bool any = job->n_hosts && job->hosts[0].clock_known;

	for (size_t i = 0; i < job->n_ranks; i++) {
		const struct job_rank *r = &job->ranks[i];
		uint64_t begin_ns = r->begin_ns - (uint64_t)job->hosts[r->host].clock_ns;

		if (!r->begin_ns || (any && !time_is_known(job, r)))
			continue;
		if (!job->begin_ns || begin_ns < job->begin_ns)
			job->begin_ns = begin_ns;
	}
}

uint64_t job_from_ns(const struct job *job, const struct job_rank *r)
{
	return not_before(since_begin(job, r, begin_of(r)));
}

uint64_t job_until_ns(const struct job *job, const struct job_rank *r)
{
	return not_before(since_begin(job, r, end_of(r)));
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

static void find_apart(struct job *job)
{
	uint64_t *begins = xcalloc(job->n_ranks + 1, sizeof(*begins)), most_ns;
	uint64_t *ends = xcalloc(job->n_ranks + 1, sizeof(*ends));
	size_t i, n = 0;

	for (i = 0; i < job->n_ranks; i++) {
		if (!time_is_known(job, &job->ranks[i]))
			continue;
		begins[n] = job_from_ns(job, &job->ranks[i]);
		ends[n++] = job_until_ns(job, &job->ranks[i]);
	}
	job->most_from_ns = lower_median_u64(begins, n);
	job->most_until_ns = lower_median_u64(ends, n);
	most_ns = distance(job->most_from_ns, job->most_until_ns) / APART_PART;
	if (!job->n_partial)
		most_ns = max_u64(most_ns, APART_LEAST_NS);
	for (i = 0; i < job->n_ranks; i++) {
		struct job_rank *r = &job->ranks[i];

		r->is_apart = time_is_known(job, r) &&
			      (distance(job_from_ns(job, r), job->most_from_ns) > most_ns ||
			       distance(job_until_ns(job, r), job->most_until_ns) > most_ns);
		job->n_apart += r->is_apart;
	}
	if (n == 2 && job->n_apart) /* there is no telling which of two is where most are */
		for (i = 0; i < job->n_ranks; i++)
			job->ranks[i].is_apart = time_is_known(job, &job->ranks[i]);
	free(begins);
	free(ends);
}

void job_cover(struct job *job)
{
	name_all_parts(job);
	find_apart(job);
}
