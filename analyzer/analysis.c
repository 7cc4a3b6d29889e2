/*
 * analyzer/analysis.c: a trace set, read from end to end. Called by `report`, `why`, `info` and `run`.
 */
#include <stdlib.h>
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

/* The main reading. */
static void read_all(struct analysis *a)
{
	struct merge merge;
	struct record record;

	merge_init(&merge, a->set);
	while (merge_next(&merge, &record)) {
		model_apply(&a->model, &record);
		callstats_see(&a->stats, &a->model, &record);
		if (a->accounted)
			account_see(&a->accounts, &record);
	}
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
