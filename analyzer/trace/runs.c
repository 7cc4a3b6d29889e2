/*
 * analyzer/trace/runs.c: traces of several runs in one folder. Called while a set is opened. Who records into a folder
 * twice finds both runs there, and a report of the two together says nothing true of either: so they are named.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "runs.h"
#include "trace.h"
#include "base/median.h"

/* Processes without a name for their run, as a script starts them one after the other: so long between two. */
#define PAUSE_NS 2000000000

/* ---- which are together ---------------------------------------------------------------------- */

/* A trace, while they are sorted. */
struct member {
	struct trace *trace;
	const char *id; /* NULL: none */
	uint64_t begin_ns, end_ns;
};

static const char *id_of(const struct trace *trace)
{
	const char *run = metadata_text(&trace->metadata, "cudaspy_run");

	return run && *run                                   ? run
	       : trace->metadata.job && *trace->metadata.job ? trace->metadata.job
							     : NULL;
}

/* When the recorder wrote its metadata for the last time: as the process ended, unless it was killed. */
static uint64_t end_of(const struct trace *trace)
{
	const struct container_member *packed =
		trace->container ? container_find(trace->container, trace->first_member, "metadata")
				 : NULL;
	char *path = xasprintf("%s/metadata", trace->dir);
	struct stat status;
	uint64_t ns = 0;

	if (trace->alive)
		ns = UINT64_MAX;
	else if (packed)
		ns = packed->mtime_ns;
	else if (!stat(path, &status) && status.st_mtim.tv_sec > 0)
		ns = (uint64_t)status.st_mtim.tv_sec * 1000000000 +
		     (uint64_t)status.st_mtim.tv_nsec;
	free(path);
	return ns;
}

static struct member member_of(struct trace *trace)
{
	int64_t begin = metadata_number(&trace->metadata, "start_realtime_ns", 0);
	struct member m = {.trace = trace,
			   .id = id_of(trace),
			   .begin_ns = begin > 0 ? (uint64_t)begin : 0,
			   .end_ns = end_of(trace)};

	m.end_ns = max_u64(m.end_ns, m.begin_ns);
	return m;
}

/* Those with a name first, by it; then by their begin. */
static int by_id(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return (!x->id || !y->id ? !x->id - !y->id : strcmp(x->id, y->id))
		       ?: COMPARE(x->begin_ns, y->begin_ns);
}

/* Does the run go on? Without a name it does while one of its processes is there, and where times are unknown. */
static bool goes_on(const struct member *before, const struct member *m, uint64_t until_ns)
{
	if (before->id && m->id)
		return !strcmp(before->id, m->id);
	if (before->id || m->id)
		return false;
	return !m->begin_ns || until_ns > UINT64_MAX - PAUSE_NS ||
	       m->begin_ns <= until_ns + PAUSE_NS;
}

static int by_begin(const void *a, const void *b)
{
	const struct trace_run *x = a, *y = b;

	return COMPARE(x->begin_ns, y->begin_ns);
}

/* The runs are sorted when each trace has its own; so traces are given it by the first trace of each. */
static void number_runs(struct trace_set *set, const struct member *all)
{
	if (set->n_runs)
		qsort(set->runs, set->n_runs, sizeof(*set->runs), by_begin);
	for (size_t i = 0; i < set->n_traces; i++)
		for (size_t j = 0; j < set->n_runs; j++)
			if (set->runs[j].first == all[i].trace->run_first)
				all[i].trace->run = (uint32_t)j;
}

void runs_find(struct trace_set *set)
{
	struct member *all = xcalloc(set->n_traces, sizeof(*all));
	struct trace_run *run = NULL;
	uint64_t until_ns = 0;

	for (size_t i = 0; i < set->n_traces; i++)
		all[i] = member_of(set->traces[i]);
	qsort(all, set->n_traces, sizeof(*all), by_id);
	for (size_t i = 0; i < set->n_traces; i++) {
		if (!i || !goes_on(&all[i - 1], &all[i], until_ns)) {
			set->runs = grow(set->runs, set->n_runs, sizeof(*set->runs));
			run = &set->runs[set->n_runs++];
			*run = (struct trace_run){.first = all[i].trace,
						  .id = all[i].id,
						  .begin_ns = all[i].begin_ns};
			until_ns = 0;
		}
		run->n_traces++;
		all[i].trace->run_first = run->first;
		until_ns = max_u64(until_ns, all[i].end_ns);
	}
	number_runs(set, all);
	free(all);
}

/* ---- words ----------------------------------------------------------------------------------- */

char *run_text(const struct trace_run *run)
{
	time_t seconds = (time_t)(run->begin_ns / 1000000000);
	char when[32] = "";
	struct tm tm;

	if (run->begin_ns && localtime_r(&seconds, &tm))
		strftime(when, sizeof(when), ", %Y-%m-%d %H:%M", &tm);
	return xasprintf("%s.%u (%zu process%s%s)", run->first->program, run->first->pid,
			 run->n_traces, run->n_traces == 1 ? "" : "es", when);
}

#define TOLD 8 /* runs that are named */

/* "a.1 (1 process), b.2 (3 processes) and 4 more"; the caller frees. */
static char *list_runs(const struct trace_set *set)
{
	char *list = xstrdup("");
	size_t i, first = set->n_runs > TOLD ? set->n_runs - TOLD : 0;

	for (i = first; i < set->n_runs; i++) {
		char *text = run_text(&set->runs[i]);
		char *longer = xasprintf("%s%s%s", list, i > first ? ", " : "", text);

		free(list);
		free(text);
		list = longer;
	}
	if (first) {
		char *longer = xasprintf("%zu earlier ones, %s", first, list);

		free(list);
		list = longer;
	}
	return list;
}

void runs_warn(const struct trace_set *set, bool may_choose)
{
	const struct trace_run *last;
	char *list, *how = NULL;

	if (set->n_runs < 2)
		return;
	last = &set->runs[set->n_runs - 1];
	list = list_runs(set);
	if (may_choose)
		how = xasprintf("; --run=last or --run=%s.%u reads one of them",
				last->first->program, last->first->pid);
	warn("traces of %zu runs are read as one: %s%s", set->n_runs, list, how ?: "");
	free(how);
	free(list);
}

/* ---- choosing -------------------------------------------------------------------------------- */

static bool is_process(const struct trace *trace, const char *wanted)
{
	char *name = xasprintf("%s.%u", trace->program, trace->pid);
	bool is = !strcmp(name, wanted);

	free(name);
	return is;
}

/* How many runs fit; *chosen is the last of them. */
static size_t find_run(const struct trace_set *set, const char *wanted, size_t *chosen)
{
	size_t i, fits = 0, last = SIZE_MAX;

	for (i = 0; i < set->n_runs; i++)
		if (set->runs[i].id && !strncmp(set->runs[i].id, wanted, strlen(wanted))) {
			*chosen = i;
			fits++;
		}
	for (i = 0; !fits && i < set->n_traces; i++)
		if (is_process(set->traces[i], wanted) && set->traces[i]->run != last) {
			*chosen = last = set->traces[i]->run;
			fits++;
		}
	return fits;
}

int runs_choose(struct trace_set *set, const char *wanted)
{
	size_t chosen = set->n_runs - 1, fits = set->n_runs > 0, i;
	char *list;

	if (strcmp(wanted, "last") != 0)
		fits = find_run(set, wanted, &chosen);
	if (fits != 1) {
		list = list_runs(set);
		warn("--run=%s: %s (there are: %s)", wanted,
		     fits ? "several runs fit" : "no run is called so", list);
		free(list);
		return -ENOENT;
	}
	for (i = 0; i < set->n_traces; i++)
		set->traces[i]->left_out = set->traces[i]->run != chosen;
	set->runs[0] = set->runs[chosen];
	set->n_runs = 1;
	return 0;
}
