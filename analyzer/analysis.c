/*
 * analyzer/analysis.c: a trace set, read from end to end. Called by `report`, `why`, `info` and `run`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "analysis.h"

/* The first reading, and what the machine's profile knows better. */
static int learn(struct analysis *a, const char *profile)
{
	char *why;
	int found;

	expect_learn(&a->expect, a->set);
	found = profile_choose(&a->profile, profile, &a->expect.machine, &why);
	if (found == 0 && why)
		complain("%s", why);
	free(why);
	if (found < 0)
		return found;
	expect_settle(&a->expect, found ? &a->profile : NULL);
	return 0;
}

/* Somebody who waits at a terminal is told how far it is, from the third second on. */
#define PROGRESS_RECORDS (1u << 22)
#define PROGRESS_AFTER_NS 3000000000ull

static void tell_progress(const struct analysis *a, uint64_t records, uint64_t begun_ns, bool end)
{
	static bool told;
	uint64_t all = a->expect.records;

	if (end && told)
		fprintf(stderr, "\r\033[K");
	if (end || !isatty(STDERR_FILENO) || now_ns() - begun_ns < PROGRESS_AFTER_NS)
		return;
	told = true;
	if (all)
		fprintf(stderr, "\rcudaspy: %u %% of %llu million records",
			(unsigned int)(100 * records / all), (unsigned long long)(all / 1000000));
	else
		fprintf(stderr, "\rcudaspy: %llu million records",
			(unsigned long long)(records / 1000000));
}

/* The main reading. */
static void read_all(struct analysis *a)
{
	uint64_t begun_ns = now_ns(), records = 0;
	struct merge merge;
	struct record record;

	merge_init(&merge, a->set);
	while (merge_next(&merge, &record)) {
		if (unlikely(!(++records % PROGRESS_RECORDS)))
			tell_progress(a, records, begun_ns, false);
		model_apply(&a->model, &record);
		callstats_see(&a->stats, &a->model, &record);
		if (a->accounted)
			account_see(&a->accounts, &record);
	}
	tell_progress(a, records, begun_ns, true);
	merge_release(&merge);
	model_finish(&a->model);
	callstats_finish(&a->stats, &a->model);
}

int analysis_run(struct analysis *a, struct trace_set *set, const struct analysis_options *options)
{
	int err;

	*a = (struct analysis){.set = set, .accounted = options};
	model_init(&a->model, set);
	callstats_init(&a->stats, &a->model);
	if (options) {
		err = learn(a, options->profile);
		if (err)
			return err;
		account_init(&a->accounts, &a->model, &a->expect);
		findings_init(&a->findings, &a->accounts);
		if (options->subject)
			a->accounts.blame.subject = *options->subject;
	}
	read_all(a);
	if (options)
		account_finish(&a->accounts);
	return 0;
}

void analysis_release(struct analysis *a)
{
	findings_release(&a->findings);
	account_release(&a->accounts);
	expect_release(&a->expect);
	profile_release(&a->profile);
	callstats_release(&a->stats);
	model_release(&a->model);
	*a = (struct analysis){0};
}
