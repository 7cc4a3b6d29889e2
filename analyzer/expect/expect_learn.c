/*
 * analyzer/expect/expect_learn.c: the first reading: in runs of streams, by several threads, and what these have learnt
 * becomes one. Called by report and calibrate before anything else is read.
 */
#include <stdlib.h>
#include "learned.h"
#include "base/jobs.h"
#include "base/pool.h"

/*
 * Streams of a process that one thread reads one after the other. A small process is one run. In a larger one the session's
 * stream is a run by itself, which is read before the others; these are of RUN_LEAST records or more, and not many more than
 * RUNS_MOST, for each takes memory until those before it have been read. None of this depends on how many threads there are,
 * so what is learnt does not either.
 */
#define RUNS_MOST 32

struct run {
	struct trace *trace;
	struct stream **streams;
	size_t n_streams;
	uint64_t records; /* to be read, about */
	const struct run *session; /* to be read before; NULL: none */
	struct learned learned;
	bool refused; /* something that only one at a time can do */
	bool read;
};

struct lesson {
	struct expect *e;
	struct run *runs; /* in the order of streams */
	size_t n;
	struct run **sessions, **others; /* these, in the order in which they are read */
	size_t n_sessions, n_others;
	bool apart; /* several at a time */
	bool refused;
	size_t joined; /* so many runs are a part of the whole */
	/* Of the process whose runs are being joined: */
	struct first_call *firsts;
	uint64_t passed_at;
};

/* ---- runs ------------------------------------------------------------------------------------ */

static uint64_t records_of(const struct stream *stream)
{
	uint64_t all = reader_bytes(&stream->reader) / RECORD_BYTES;

	return min_u64(all, READ_WHOLE) + (all - min_u64(all, READ_WHOLE)) / READ_ONE_IN;
}

static struct run *add_run(struct lesson *lesson, struct trace *trace, size_t first)
{
	struct run *run;

	lesson->runs = grow(lesson->runs, lesson->n, sizeof(*lesson->runs));
	run = &lesson->runs[lesson->n++];
	*run = (struct run){.trace = trace, .streams = trace->streams + first};
	return run;
}

static void add_runs(struct lesson *lesson, struct trace *trace)
{
	uint64_t *records = xcalloc(trace->n_streams + 1, sizeof(*records)), all = 0, least;
	struct run *run = NULL;

	for (size_t i = 0; i < trace->n_streams; i++)
		all += records[i] = records_of(trace->streams[i]);
	least = all < 2 * RUN_LEAST ? UINT64_MAX : max_u64(RUN_LEAST, all / RUNS_MOST);
	for (size_t i = 0; i < trace->n_streams; i++) {
		if (!run || run->records >= least)
			run = add_run(lesson, trace, i);
		run->n_streams++;
		run->records += records[i];
		if (is_session(trace->streams[i]) && least < UINT64_MAX)
			run = NULL;
	}
	free(records);
}

static bool is_first(const struct lesson *lesson, const struct run *run)
{
	return run == lesson->runs || run[-1].trace != run->trace;
}

static bool is_last(const struct lesson *lesson, const struct run *run)
{
	return run + 1 == lesson->runs + lesson->n || run[1].trace != run->trace;
}

/* Of a process the largest ones first: no thread is left with one when the others have nothing to do. */
static int by_process_and_size(const void *a, const void *b)
{
	const struct run *x = *(struct run *const *)a, *y = *(struct run *const *)b;

	if (x->trace != y->trace)
		return x->trace->index < y->trace->index ? -1 : 1;
	if (x->records != y->records)
		return x->records > y->records ? -1 : 1;
	return x < y ? -1 : 1;
}

static void make_runs(struct lesson *lesson)
{
	const struct trace_set *set = lesson->e->set;
	const struct run *session = NULL;

	for (size_t i = 0; i < set->n_traces; i++)
		add_runs(lesson, set->traces[i]);
	lesson->sessions = xcalloc(lesson->n + 1, sizeof(*lesson->sessions));
	lesson->others = xcalloc(lesson->n + 1, sizeof(*lesson->others));
	for (size_t i = 0; i < lesson->n; i++) {
		struct run *run = &lesson->runs[i];

		if (is_first(lesson, run))
			session = is_session(run->streams[0]) && !is_last(lesson, run) ? run : NULL;
		run->session = run == session ? NULL : session;
		if (run == session)
			lesson->sessions[lesson->n_sessions++] = run;
		else
			lesson->others[lesson->n_others++] = run;
	}
	if (lesson->apart && lesson->n_others) /* else they are joined as they are read */
		qsort(lesson->others, lesson->n_others, sizeof(*lesson->others),
		      by_process_and_size);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void read_run(const struct lesson *lesson, struct run *run)
{
	static const struct phase_windows none;

	reading_place = (struct reading_place){.apart = lesson->apart};
	learn_streams(&run->learned, lesson->e->set, run->streams, run->n_streams,
		      run->session ? &run->session->learned.windows : &none);
	run->refused = reading_place.refused;
	reading_place = (struct reading_place){0};
}

static void read_session(void *data, size_t i)
{
	const struct lesson *lesson = data;

	read_run(lesson, lesson->sessions[i]);
}

static void read_other(void *data, size_t i)
{
	const struct lesson *lesson = data;

	read_run(lesson, lesson->others[i]);
}

/* ---- what runs have learnt becomes one -------------------------------------------------------- */

/* The run's class becomes a part of the whole's. */
static void join_class(struct expect *e, struct call_class *c)
{
	size_t n = e->n_classes;
	struct call_class *sum = expect_class_of_key(e, &c->key);

	if (e->n_classes > n) {
		sum->clean = c->clean;
		sum->all = c->all;
		sum->rested = c->rested;
		sum->kernel = c->kernel;
		c->clean = c->all = c->rested = c->kernel = (struct histogram){0};
		return;
	}
	histogram_merge(&sum->clean, &c->clean);
	histogram_merge(&sum->all, &c->all);
	histogram_merge(&sum->rested, &c->rested);
	histogram_merge(&sum->kernel, &c->kernel);
}

static void join_names(char ***names, size_t *n, char *const *more, size_t n_more)
{
	for (size_t i = 0; i < n_more; i++)
		machine_add_name(names, n, more[i]);
}

/* Those of several streams: the first one's MPS counts, as for the model. */
static void join_use(struct trace_use *use, struct trace_use *more)
{
	for (size_t i = 0; i < ARRAY_SIZE(use->devices); i++) {
		use->devices[i] |= more->devices[i];
		use->timed[i] |= more->timed[i];
	}
	use->gpu_times |= more->gpu_times;
	for (size_t i = 0; i < more->n_gpus; i++) {
		use->gpus = grow(use->gpus, use->n_gpus, sizeof(*use->gpus));
		use->gpus[use->n_gpus++] = more->gpus[i];
	}
	free(more->gpus);
	if (use->mps)
		free(more->mps);
	else
		use->mps = more->mps;
	*more = (struct trace_use){0};
}

static void join_firsts(struct lesson *lesson, struct first_call *more)
{
	struct first_call *first, *next;

	if (!lesson->firsts) {
		lesson->firsts = more;
		return;
	}
	HASH_ITER (hh, more, first, next) {
		firsts_add(&lesson->firsts, lesson->e, first);
		HASH_DEL(more, first);
		free(first);
	}
}

/* Which of each kind was the first of the process is known only now. */
static void learn_firsts(struct lesson *lesson)
{
	struct first_call *first, *next;

	HASH_ITER (hh, lesson->firsts, first, next) {
		first->class.flags |= CLASS_COLD;
		/* What was passed over may have had an earlier one. */
		if (first->time < lesson->passed_at)
			histogram_add(&expect_class_of_key(lesson->e, &first->class)->all,
				      first->own_ns);
		HASH_DEL(lesson->firsts, first);
		free(first);
	}
}

static void join_run(struct lesson *lesson, struct run *run)
{
	struct learned *l = &run->learned;
	struct expect *e = lesson->e;
	size_t i, process = run->trace->index;

	if (is_first(lesson, run))
		lesson->passed_at = UINT64_MAX;
	for (i = 0; i < l->e.n_classes; i++)
		join_class(e, l->e.classes[i]);
	join_names(&e->machine.drivers, &e->machine.n_drivers, l->e.machine.drivers,
		   l->e.machine.n_drivers);
	join_names(&e->machine.gpus, &e->machine.n_gpus, l->e.machine.gpus, l->e.machine.n_gpus);
	e->records += l->e.records;
	e->outer += l->e.outer;
	e->inner += l->e.inner;
	e->last_ns[process] = max_u64(e->last_ns[process], l->last_ns);
	phases_join(&e->phases, &l->e.phases);
	join_use(&run->trace->use, &l->use);
	join_firsts(lesson, l->firsts);
	lesson->passed_at = min_u64(lesson->passed_at, l->passed_at);
	lesson->refused |= run->refused;
	expect_release(&l->e);
	if (!is_last(lesson, run))
		return;
	learn_firsts(lesson);
	phases_conclude(&e->phases, run->trace, &l->windows);
	if (phase_joined(&l->windows))
		cold_marks_join(&e->processes[process]);
}

/* A run has been read; all that are read up to it become a part of the whole, in the order of streams. */
static void join_read(void *data, size_t i)
{
	struct lesson *lesson = data;

	lesson->others[i]->read = true;
	while (lesson->joined < lesson->n && lesson->runs[lesson->joined].read)
		join_run(lesson, &lesson->runs[lesson->joined++]);
}

static void note_session(void *data, size_t i)
{
	struct lesson *lesson = data;

	lesson->sessions[i]->read = true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void sum_up(struct call_class *c)
{
	histogram_merge(&c->all, &c->clean);
	c->learnt = histogram_count(&c->all);
	c->clean_calls = histogram_count(&c->clean);
	if (histogram_count(&c->kernel) > c->learnt / 2)
		c->kernel_ns = histogram_quantile(&c->kernel, 0.1);
}

static void init(struct expect *e, struct trace_set *set)
{
	*e = (struct expect){.set = set, .probed = true};
	e->processes = xcalloc(set->n_traces, sizeof(*e->processes));
	e->last_ns = xcalloc(set->n_traces, sizeof(*e->last_ns));
	phases_init(&e->phases, set);
	expect_grow_table(e);
	for (size_t i = 0; i < set->n_traces; i++) {
		free(set->traces[i]->use.gpus);
		free(set->traces[i]->use.mps);
		set->traces[i]->use = (struct trace_use){0};
		e->probed &= metadata_number(&set->traces[i]->metadata, "probes", 0) != 0;
	}
}

/* False: it has to be done by one thread. */
static bool learn_all(struct expect *e, struct trace_set *set, unsigned int jobs)
{
	struct lesson lesson = {.e = e, .apart = jobs > 1};

	init(e, set);
	make_runs(&lesson);
	jobs_log("first reading: %zu runs of streams by %u threads", lesson.n, jobs);
	pool_run(jobs, lesson.n_sessions, read_session, note_session, &lesson);
	pool_run(jobs, lesson.n_others, read_other, join_read, &lesson);
	for (size_t i = 0; i < e->n_classes; i++)
		sum_up(e->classes[i]);
	free(lesson.runs);
	free(lesson.sessions);
	free(lesson.others);
	return !lesson.refused;
}

void expect_learn(struct expect *e, struct trace_set *set)
{
	if (learn_all(e, set, jobs_now()))
		return;
	expect_release(e);
	(void)learn_all(e, set, 1);
}
