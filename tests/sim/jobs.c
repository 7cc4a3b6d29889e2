/*
 * tests/sim/jobs.c: what the GPUs did, for those who ask: gpu.<pid>.tsv of the truth, and a listener
 * (the look-alike of CUPTI). Where nobody asks, an operation has no job and nothing of this runs.
 *
 * A job belongs to its operation until that has ended, and to the submitting thread until its outermost
 * call has returned; who is last hands it in. Both hand-ins are stacks that nobody waits for. They are
 * emptied by the engine's worker thread, by settle(), and at exit; truth and listener run there.
 */
#include "activity.h"

#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

struct sim_job {
	struct sim_job *next_ended, *next_whole, *next_of_call;
	atomic_int refs;
	struct sim_activity activity;
	int gpu, tid;
	enum sim_fn fn; /* outermost; FN_COUNT: the call began before anyone asked */
	uint64_t call_begin_ns, call_end_ns;
	bool cut_off; /* the process ended first */
};

atomic_bool sim_jobs_on;
atomic_bool sim_calls_on;
static _Atomic(const struct sim_listener *) listener;
static _Atomic(struct sim_job *) ended, whole;
static bool truth;

/* ---- names that stay ---- */
struct name {
	struct name *next;
	char text[];
};

const char *sim_intern(const char *text)
{
	static struct name *names[256];
	static struct sim_spin lock;
	unsigned hash = 0;
	struct name *name;

	for (const char *p = text; *p; p++)
		hash = hash * 31 + (unsigned char)*p;
	sim_spin_lock(&lock);
	for (name = names[hash % 256]; name && strcmp(name->text, text); name = name->next)
		;
	if (!name) {
		name = malloc(sizeof(*name) + strlen(text) + 1);
		if (!name)
			abort();
		strcpy(name->text, text);
		name->next = names[hash % 256];
		names[hash % 256] = name;
	}
	sim_spin_unlock(&lock);
	return name->text;
}

/* ---- the life of a job ---- */
static const signed char kind_of_op[] = {
	[OP_MARK] = -1,
	[OP_KERNEL] = ACTIVITY_KERNEL,
	[OP_COPY] = ACTIVITY_COPY,
	[OP_SET] = ACTIVITY_SET,
	[OP_HOST] = -1,
};

bool sim_op_counts(const struct sim_op *op)
{
	return op->kind == OP_KERNEL || op->kind == OP_COPY || op->kind == OP_SET;
}

struct sim_job *sim_job_new(const struct sim_op *op, const struct sim_stream *stream)
{
	struct sim_span *span = sim_self.span;
	struct sim_job *job;

	if (!sim_op_counts(op))
		return NULL;
	job = calloc(1, sizeof(*job));
	if (!job)
		abort();
	atomic_init(&job->refs, 1);
	job->gpu = sim_devices[stream->ctx->dev].gpu;
	job->tid = (int)sim_syscall(SYS_gettid, 0, 0, 0);
	job->fn = FN_COUNT;
	job->activity = (struct sim_activity){
		.kind = (enum sim_activity_kind)kind_of_op[op->kind],
		.device = (unsigned)stream->ctx->dev,
		.context = (unsigned)stream->ctx->id,
		.stream = op->as_stream ? op->as_stream : (unsigned)stream->id,
		.graph = op->graph,
		.graph_ops = op->graph_ops,
		.graph_node = op->graph_node,
		.what = op->what,
	};
	if (!span)
		return job;
	job->activity.correlation = span->correlation;
	while (span->outer)
		span = span->outer;
	job->fn = span->fn;
	job->call_begin_ns = span->begin_ns;
	job->next_of_call = span->jobs;
	span->jobs = job;
	atomic_store(&job->refs, 2);
	return job;
}

static void put(struct sim_job *job)
{
	if (atomic_fetch_sub(&job->refs, 1) > 1)
		return;
	job->next_whole = atomic_load(&whole);
	while (!atomic_compare_exchange_weak(&whole, &job->next_whole, job))
		;
}

void sim_jobs_of_call(struct sim_span *span)
{
	struct sim_job *job;

	while ((job = span->jobs)) {
		span->jobs = job->next_of_call;
		job->call_end_ns = span->end_ns;
		put(job);
	}
}

/* Under the engine's lock. */
void sim_job_ended(struct sim_job *job, const struct sim_op *op)
{
	job->activity.submit_ns = op->submit_ns;
	job->activity.begin_ns = op->ran_from_ns ? op->ran_from_ns : op->start_ns;
	job->activity.end_ns = op->end_ns;
	job->next_ended = atomic_load(&ended);
	while (!atomic_compare_exchange_weak(&ended, &job->next_ended, job))
		;
}

/* The process ends while the operation runs. */
void sim_job_cut(struct sim_job *job, const struct sim_op *op, uint64_t now)
{
	sim_job_ended(job, op);
	job->activity.end_ns = now;
	job->cut_off = true;
}

/* ---- handing on ---- */
static const char *mem_name(unsigned char kind)
{
	static const char *const names[] = {"-",      "pageable", "pinned",
					    "device", "managed",  "array"};

	return names[kind];
}

static void write_whole(void)
{
	static const char *const kinds[] = {"kernel", "copy", "set"};
	struct sim_job *job = atomic_exchange(&whole, NULL);
	char text[32768];
	size_t at = 0;

	while (job) {
		const struct sim_activity *a = &job->activity;
		struct sim_job *next = job->next_whole;
		uint64_t blocks = (uint64_t)a->what.grid[0] * a->what.grid[1] * a->what.grid[2];

		if (truth) {
			at += (size_t)snprintf(
				text + at, sizeof(text) - at,
				"%u\t%d\t%s\t%u\t%d\t%s\t%llu\t%llu\t%llu\t%llu\t%llu\t%s\t%s\t%"
				"u\t%u\t%.200s\t%s\t%llu\n",
				a->device, job->gpu, kinds[a->kind], a->stream, job->tid,
				job->fn < FN_COUNT ? sim_fn_name[job->fn] : "-",
				(unsigned long long)job->call_begin_ns,
				(unsigned long long)job->call_end_ns,
				(unsigned long long)a->begin_ns, (unsigned long long)a->end_ns,
				(unsigned long long)(a->kind == ACTIVITY_KERNEL ? blocks
										: a->what.bytes),
				mem_name(a->what.src), mem_name(a->what.dst), a->correlation,
				a->graph, a->what.name ? a->what.name : "-",
				job->cut_off ? "CUT" : "-", (unsigned long long)a->submit_ns);
			if (at > sizeof(text) - 1024) {
				sim_truth_gpu(text, at);
				at = 0;
			}
		}
		free(job);
		job = next;
	}
	if (at)
		sim_truth_gpu(text, at);
}

/* Operations of a stream are told in their order, those of different streams are not. */
void sim_jobs_hand_on(void)
{
	const struct sim_listener *to = atomic_load(&listener);
	struct sim_job *job = atomic_exchange(&ended, NULL), *next, *order[2] = {NULL, NULL};

	for (; job; job = next) {
		next = job->next_ended;
		job->next_ended = order[job->activity.stream & 1];
		order[job->activity.stream & 1] = job;
	}
	for (int i = 1; i >= 0; i--)
		for (job = order[i]; job; job = next) {
			next = job->next_ended;
			if (to && !job->cut_off)
				to->activity(&job->activity);
			put(job);
		}
	if (atomic_load(&whole))
		write_whole();
}

bool sim_jobs_waiting(void)
{
	return atomic_load(&ended);
}

void sim_job_call(const struct sim_span *span)
{
	const struct sim_listener *to = atomic_load(&listener);
	struct sim_call call = {.fn = span->fn,
				.correlation = span->correlation,
				.result = span->result,
				.begin_ns = span->begin_ns,
				.end_ns = span->end_ns};

	/* Who began to listen meanwhile has not seen it begin. */
	if (!to || !span->begin_ns)
		return;
	call.tid = (int)sim_syscall(SYS_gettid, 0, 0, 0);
	to->call(&call);
}

/* ---- who asks ---- */
void sim_jobs_truth(void)
{
	truth = true;
	atomic_store(&sim_jobs_on, true);
}

/* The child has no work on a GPU; what its parent's has become is the parent's to tell. */
void sim_jobs_fork_child(void)
{
	atomic_store(&ended, NULL);
	atomic_store(&whole, NULL);
	atomic_store(&listener, NULL);
	atomic_store(&sim_calls_on, false);
	atomic_store(&sim_jobs_on, truth);
}

static void listen(const struct sim_listener *to)
{
	atomic_store(&listener, to);
	atomic_store(&sim_jobs_on, to || truth);
	atomic_store(&sim_calls_on, to != NULL);
	if (to)
		sim_spans_on = true;
}

static struct sim_ctx *ctx_of(void *handle)
{
	struct sim_ctx *ctx = handle ? handle : sim_self.ctx;

	return ctx && ctx->magic == CTX_MAGIC ? ctx : NULL;
}

static unsigned context_id(void *handle)
{
	struct sim_ctx *ctx = ctx_of(handle);

	return ctx ? (unsigned)ctx->id : 0;
}

static int device(void *handle)
{
	struct sim_ctx *ctx = ctx_of(handle);

	return ctx ? ctx->dev : -1;
}

static unsigned stream_id(void *handle, void *stream, bool per_thread)
{
	struct sim_ctx *ctx = ctx_of(handle);
	struct sim_stream *s;
	int rc;

	if (!stream && !per_thread)
		return ctx ? (unsigned)ctx->legacy.id : 0;
	s = sim_stream_of(stream, per_thread, &rc);
	return s ? (unsigned)s->id : 0;
}

const struct sim_activity_source *spysim_activity(void)
{
	static const struct sim_activity_source source = {
		.knobs = &sim_script.cupti,
		.listen = listen,
		.settle = sim_engine_settle,
		.busy_ns = sim_engine_busy_ns,
		.context_id = context_id,
		.device = device,
		.stream_id = stream_id,
	};

	sim_script_load();
	return &source;
}
