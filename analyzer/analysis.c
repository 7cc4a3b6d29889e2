/*
 * analyzer/analysis.c: a trace set, read from end to end. Called by `report`, `why`, `info` and
 * `run`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "analysis.h"
#include "base/redact.h"
#include "base/jobs.h"
#include "parallel/parts.h"
#include "account/evidence.h"
#include "expect/priors.h"

/* The first reading, and what the machine's profile knows better. */
static int analysis_learn(struct analysis *a, const struct analysis_options *options, bool again)
{
	char *why;
	int found;

	jobs_phase("first reading");
	expect_learn(&a->expect, a->set);
	jobs_phase("evidence");
	if (!evidence_gather(&a->expect, jobs_now())) {
		expect_release(&a->expect);
		expect_learn(&a->expect, a->set);
		(void)evidence_gather(&a->expect, 1);
	}
	jobs_phase("settling");
	found = profile_choose(&a->profile, options->profile, &a->expect.machine, &why);
	if (found == 0 && why && !again)
		warn("%s", why);
	free(why);
	if (found < 0)
		return found;
	expect_settle(&a->expect, found ? &a->profile : NULL,
		      priors_choose(&a->prior, &a->expect.machine) ? &a->prior : NULL);
	return 0;
}

/* A terminal shows the progress, from the third second on. */
#define PROGRESS_RECORDS (1u << 22)
#define PROGRESS_AFTER_NS 3000000000ull

static void print_progress(const struct analysis *a, uint64_t records, uint64_t begun_ns, bool end)
{
	static bool printed;
	uint64_t all = a->expect.records;

	if (end && printed)
		fprintf(stderr, "\r\033[K");
	if (end || !isatty(STDERR_FILENO) || now_ns() - begun_ns < PROGRESS_AFTER_NS)
		return;
	printed = true;
	if (all)
		fprintf(stderr, "\rcudaspy: %u %% of %llu million records",
			(unsigned int)(100 * records / all), (unsigned long long)(all / 1000000));
	else
		fprintf(stderr, "\rcudaspy: %llu million records",
			(unsigned long long)(records / 1000000));
}

/* What was to be said while records were read: by then all users and folders are known that are not to be named. */
struct kept_warnings {
	char **texts;
	size_t n;
};

static void keep_warning(void *data, char *text)
{
	struct kept_warnings *kept = data;

	kept->texts = grow(kept->texts, kept->n, sizeof(char *));
	kept->texts[kept->n++] = text;
}

static void print_kept(struct kept_warnings *kept)
{
	for (size_t i = 0; i < kept->n; i++) {
		warn("%s", kept->texts[i]);
		free(kept->texts[i]);
	}
	free(kept->texts);
}

/* The main reading, record by record in the order of time. */
static void read_all(struct analysis *a)
{
	uint64_t begun_ns = now_ns();
	struct kept_warnings kept = {0};
	struct reading r;

	if (redact_is_on())
		warn_divert(keep_warning, &kept);
	reading_begin(&r, a, jobs_now() - 1);
	while (reading_go_on(&r, PROGRESS_RECORDS))
		print_progress(a, r.records, begun_ns, false);
	print_progress(a, r.records, begun_ns, true);
	reading_end(&r);
	warn_divert(NULL, NULL);
	print_kept(&kept);
}

/* The set may have been read before, to its end. */
static void rewind_all(struct trace_set *set)
{
	for (size_t i = 0; i < set->n_streams; i++) {
		reader_rewind(&set->streams[i]->reader);
		set->streams[i]->called_ns = 0;
	}
}

/* Up to the main reading. again: what there was to be said has been said. */
static int begin(struct analysis *a, const struct analysis_options *options, bool again)
{
	int err = 0;

#define ON_WHOLE(...) __VA_ARGS__;
#define ON_INIT ON_WHOLE
#define STAGE(field, type, when, ...) \
	if (!err && when) { \
		__VA_ARGS__ \
	}
#include "findings/stages.def"
	return err;
}

static void finish(struct analysis *a)
{
#define ON_FINISH(...) __VA_ARGS__;
#define STAGE(field, type, when, ...) \
	if (when) { \
		__VA_ARGS__ \
	}
#include "findings/stages.def"
}

/* Several for each thread, so that all have something to do to the end. */
#define PARTS_EACH 4

/* ---- in parts --------------------------------------------------------------------------------- */

static uint64_t parts_begun_ns; /* for what is told of the progress */

static void print_parts(const struct analysis *whole, uint64_t records)
{
	print_progress(whole, records, parts_begun_ns, false);
}

/* Listeners are shown what happens in the order of time; places of the program are looked up in a table that is filled
 * meanwhile. */
static bool may_be_parts(const struct trace_set *set, const struct analysis_options *options)
{
	if (jobs_now() < 2 || set->n_traces < 2)
		return false;
	return !options || (!options->listener && (!options->subject || !options->subject->place));
}

enum outcome {
	OUTCOME_READ,
	OUTCOME_ONE, /* they all belong together: nothing has been read yet */
	OUTCOME_AGAIN, /* the groups were others: from the first reading on */
	OUTCOME_GIVEN_UP, /* from the first reading on, as a whole */
};

/* The main reading by several threads. */
static enum outcome read_parts(struct analysis *a, struct groups *groups)
{
	enum outcome outcome = OUTCOME_READ;
	struct parts parts;

	if (a->accounted) /* else nothing is concluded */
		groups_by_timed_use(groups, a->set);
	jobs_phase("making parts");
	parts_init(&parts, a, groups, PARTS_EACH * jobs_now());
	parts_begun_ns = now_ns();
	if (parts.n < 2) {
		outcome = OUTCOME_ONE;
	} else {
		jobs_phase("main reading");
		parts_read(&parts, jobs_now(), print_parts);
		jobs_phase("joining");
		print_progress(a, 0, parts_begun_ns, true);
		if (!parts_join(&parts))
			outcome = parts.join.has_conflict ? OUTCOME_AGAIN : OUTCOME_GIVEN_UP;
	}
	if (outcome == OUTCOME_AGAIN)
		groups_unite(groups, parts.join.conflict[0], parts.join.conflict[1]);
	jobs_log("%zu processes in %zu parts by %u threads%s%s", a->set->n_traces, parts.n,
		 jobs_now(), parts.join.refused ? ", given up: " : "", parts.join.refused ?: "");
	a->blame.kernel_overlap.numbers = false;
	jobs_phase("releasing");
	parts_release(&parts);
	return outcome;
}

static int prepare(struct analysis *a, struct trace_set *set,
		   const struct analysis_options *options, bool again)
{
	rewind_all(set);
	*a = (struct analysis){.set = set, .accounted = options};
	return begin(a, options, again);
}

#define TRIES 4 /* in parts */

int analysis_run(struct analysis *a, struct trace_set *set, const struct analysis_options *options)
{
	unsigned int tries = may_be_parts(set, options) ? TRIES : 0;
	enum outcome outcome = OUTCOME_ONE;
	struct groups groups;
	int err;

	groups_init(&groups, set->n_traces);
	err = prepare(a, set, options, false);
	while (!err && tries--) {
		outcome = read_parts(a, &groups);
		if (outcome == OUTCOME_READ || outcome == OUTCOME_ONE)
			break;
		tries = outcome == OUTCOME_AGAIN ? tries : 0;
		analysis_release(a);
		err = prepare(a, set, options, true);
	}
	groups_release(&groups);
	if (err)
		return err;
	jobs_phase("main reading");
	if (outcome != OUTCOME_READ)
		read_all(a);
	jobs_phase("finishing");
	finish(a);
	jobs_phase("concluding");
	return 0;
}

#define ON_RELEASE(...) __VA_ARGS__;
#define ON_RELEASE_WHOLE ON_RELEASE
#define STAGE(field, type, when, ...) \
	static void release_##field(struct analysis *a) \
	{ \
		__VA_ARGS__ \
	}
#include "findings/stages.def"

void analysis_release(struct analysis *a)
{
	static void (*const releases[])(struct analysis * a) = {
#define STAGE(field, ...) release_##field,
#include "findings/stages.def"
	};
	size_t i;

	for (i = ARRAY_SIZE(releases); i--;)
		releases[i](a);
	profile_release(&a->profile);
	profile_release(&a->prior);
	*a = (struct analysis){0};
}
