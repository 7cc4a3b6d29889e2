/*
 * analyzer/findings/spread.c: is a site's kind of call made all through the work, or at its
 * beginning? Called when a site gets a call, and by detectors when all records have been read.
 */
#include "site.h"

static void sample(struct rounds *rounds, uint64_t submissions, uint64_t ns)
{
	if (!rounds->stride)
		rounds->stride = 1;
	if (rounds->count % rounds->stride)
		return;
	if (rounds->n_sampled == SITE_SAMPLES) {
		for (uint32_t i = 0; i < SITE_SAMPLES / 2; i++)
			rounds->sampled[i] = rounds->sampled[2 * i];
		rounds->n_sampled = SITE_SAMPLES / 2;
		rounds->stride *= 2;
		if (rounds->count % rounds->stride)
			return;
	}
	rounds->sampled = grow(rounds->sampled, rounds->n_sampled, sizeof(*rounds->sampled));
	rounds->sampled[rounds->n_sampled++] = (struct round){submissions, ns};
}

void rounds_add(struct rounds *rounds, uint64_t submissions, uint64_t ns)
{
	sample(rounds, submissions, ns);
	rounds->count++;
	rounds->submissions = submissions;
}

/* The bit of the tenth of [begin, end) that `at` lies in. */
static unsigned int tenth(uint64_t at, uint64_t begin, uint64_t end)
{
	uint64_t part = at > begin ? 10 * (at - begin) / (end - begin) : 0;

	return 1u << (part < 10 ? part : 9);
}

unsigned int site_tenths(const struct accounting *a, const struct site *site)
{
	uint64_t all = a->work.submissions[site->key.process];
	unsigned int tenths = 0;

	for (uint32_t i = 0; i < site->rounds.n_sampled && all; i++)
		tenths |= tenth(site->rounds.sampled[i].submissions, 0, all + 1);
	return (unsigned int)__builtin_popcount(tenths);
}

struct span work_span(const struct accounting *a, size_t process, const struct thread *only)
{
	struct span span = {.begin_ns = a->work.first_work_ns[process]};
	const struct thread *thread;

	if (only && only->first_ns > span.begin_ns)
		span.begin_ns = only->first_ns;
	for (thread = a->model->processes[process].threads; thread; thread = thread->next) {
		const struct thread_account *c = thread_account_of(a, thread);
		uint64_t end_ns;

		if (!c || !c->ring.n || (only && thread != only))
			continue;
		end_ns = completed_call_at(&c->ring, c->ring.n - 1)->end_ns;
		span.end_ns = end_ns > span.end_ns ? end_ns : span.end_ns;
	}
	return span;
}

/* Of the time that the threads work which make its calls: all of them, or the only one. */
static unsigned int tenths_of_time(const struct accounting *a, const struct site *site)
{
	struct span span =
		work_span(a, site->key.process, site->threads == 1 ? site->last_thread : NULL);
	unsigned int tenths = 0;

	for (uint32_t i = 0; i < site->rounds.n_sampled && span.begin_ns < span.end_ns; i++)
		tenths |= tenth(site->rounds.sampled[i].ns, span.begin_ns, span.end_ns);
	return (unsigned int)__builtin_popcount(tenths);
}

unsigned int site_spread(const struct accounting *a, const struct site *site)
{
	unsigned int of_work = site_tenths(a, site), of_time = tenths_of_time(a, site);

	return of_work > of_time ? of_work : of_time;
}
