/*
 * analyzer/idle/functions.c: functions on the host keep streams waiting. Called by idle.c when one has run (SPY_EV_HOST_FUNCTION).
 *
 * While it ran nothing of its stream did: what came before it was done, and what comes behind it could not begin. Where the
 * other streams of the GPU certainly had nothing to do either, the GPU was idle; and because of the function, as far as its
 * stream had work behind it. A GPU that several processes use is left out: it may have worked for another one.
 */
#include <stdlib.h>
#include "account/stream_functions.h"
#include "account/streams.h"
#include "trace/groups.h"
#include "idle.h"

/* A function that has run, and what it was run for. */
struct run {
	struct host_function_record host;
	struct gpu_stream *stream;
	struct stream_function function;
};

static struct gpu_stream *stream_of(struct idle *idle, uint32_t process,
				    const struct host_function_record *host,
				    const struct thread *by)
{
	uint64_t handle = host->stream;

	if (handle == STREAM_PER_THREAD && by)
		handle += own_stream(by);
	return streams_find(&idle->accounts->work,
			    &(struct stream_key){handle, process, streams_device(host->device)},
			    false);
}

/* Is all that the other stream has been given done, because the function's stream has waited for it? Or does it wait
 * for something behind the function itself? */
static bool is_no_obstacle(const struct run *run, const struct gpu_stream *other)
{
	const struct stream_behind *b;
	uint64_t in_stream = run->function.submitted;

	for (b = run->stream->behind; b < run->stream->behind + STREAM_BEHIND; b++)
		if (b->stream == other && b->at <= in_stream && b->upto >= other->submitted)
			return true;
	for (b = other->behind; b < other->behind + STREAM_BEHIND; b++)
		if (b->stream == run->stream && b->upto >= in_stream && other->done + 1 >= b->at)
			return true;
	return false;
}

#define OTHERS_LOOKED_AT 64 /* of streams that may have work */

/* From when on the GPU has had nothing to do for other streams; UINT64_MAX: it may have. */
static uint64_t others_idle_since(const struct run *run)
{
	const struct device_streams *d = run->stream->beside;
	uint64_t since_ns = run->host.begin_ns, seen = 0;
	uint64_t most = streams_outstanding(d) - (run->stream->submitted - run->stream->done);
	const struct gpu_stream *stream;
	unsigned int looks = 0;

	for (stream = streams_first(d, run->host.begin_ns); stream && looks < OTHERS_LOOKED_AT;
	     stream = streams_next(d, stream, run->host.begin_ns), looks++) {
		if (stream == run->stream)
			continue;
		if (stream_is_busy(stream) && !is_no_obstacle(run, stream))
			return UINT64_MAX;
		seen += stream->submitted - stream->done;
		if (!stream_is_busy(stream))
			since_ns = max_u64(since_ns, stream->drained_ns);
	}
	return stream || seen != most ? UINT64_MAX : since_ns;
}

/* The thread's first known call that gave the stream something behind the function; or *handed: the one that gave it the
 * function itself. */
static const struct completed_call *first_behind(const struct run *run,
						 const struct thread_account *c,
						 const struct completed_call **handed)
{
	uint64_t known = min_u64(c->ring.n, c->ring.size), i;
	const struct completed_call *behind = NULL;

	for (i = 1; i <= known; i++) {
		const struct completed_call *call = completed_call_at(&c->ring, c->ring.n - i);

		if (call->begin_ns < run->function.begin_ns)
			break;
		if (call->stream != run->host.stream)
			continue;
		if (call->begin_ns == run->function.begin_ns)
			*handed = call;
		else
			behind = call;
	}
	return behind;
}

/* Since when its stream has had work behind it, at the latest. */
static uint64_t work_behind_since(const struct run *run, const struct completed_call *behind)
{
	uint64_t ns = run->stream->handed_ns;

	return ns <= run->host.begin_ns || !behind ? ns : min_u64(ns, behind->end_ns);
}

/* A call of another stream that may have given the GPU something to do. */
static uint64_t last_elsewhere(const struct idle_user *user, const struct gpu_stream *stream)
{
	return user->handed_to == stream ? user->elsewhere_ns : user->handed_ns;
}

void functions_see_call(struct idle_user *user, const struct gpu_stream *stream, uint64_t ns)
{
	if (!stream || user->handed_to != stream) {
		user->elsewhere_ns = user->handed_ns;
		user->handed_to = stream;
	}
	user->handed_ns = ns;
}

static bool ran(struct idle *idle, const struct record *record, const struct thread *by,
		struct run *run)
{
	run->stream = stream_of(idle, record->process, &run->host, by);
	return run->stream &&
	       stream_function_ran(run->stream, run->host.submitted_ns, &run->function);
}

/* Between the look at the clock and the call's own there is next to nothing. */
#define SAME_CALL_NS 1000000

uint64_t functions_address(const struct idle_gpu *gpu, const struct process *process,
			   const struct completed_call *call)
{
	for (uint64_t i = 1; i <= FUNCTIONS_KEPT && i <= gpu->n_ran; i++) {
		const struct ran_function *f = &gpu->ran[(gpu->n_ran - i) % FUNCTIONS_KEPT];

		if (f->process == process && f->stream == call->stream &&
		    f->handed_ns <= call->begin_ns + ROUNDED_NS)
			return call->begin_ns - min_u64(f->handed_ns, call->begin_ns) <=
					       SAME_CALL_NS
				       ? f->address
				       : 0;
	}
	return 0;
}

static void remember(struct idle_gpu *gpu, const struct process *process, const struct run *run)
{
	if (!gpu->ran)
		gpu->ran = xcalloc(FUNCTIONS_KEPT, sizeof(*gpu->ran));
	gpu->ran[gpu->n_ran++ % FUNCTIONS_KEPT] =
		(struct ran_function){.process = process,
				      .stream = run->host.stream,
				      .handed_ns = run->host.submitted_ns,
				      .address = run->host.function};
}

static void find_shared(struct idle *idle)
{
	const struct trace_set *set = idle->accounts->model->set;
	uint32_t *each = xcalloc(set->n_traces + 1, sizeof(*each));

	for (uint32_t i = 0; i < set->n_traces; i++)
		each[i] = i;
	idle->shared = groups_elsewhere(set, each, &idle->n_shared);
	idle->shared_known = true;
	free(each);
}

/* Does no other process use the GPU, in the whole of the recording? Which of them came first, parts of a set do not know. */
static bool is_its_alone(struct idle *idle, const struct process *process,
			 const struct idle_user *user)
{
	const struct idle_gpu *gpu = user->gpu ? &idle->gpus[user->gpu - 1] : NULL;
	uint64_t key;

	if (!gpu || gpu->n_processes > 1 || user->unseen)
		return false;
	if (!idle->shared_known)
		find_shared(idle);
	if (!gpu->uuid || !idle->n_shared)
		return true;
	key = groups_gpu_key(process->trace, gpu->uuid);
	return !bsearch(&key, idle->shared, idle->n_shared, sizeof(key), groups_by_key);
}

void functions_see_run(struct idle *idle, const struct record *record)
{
	struct run run = {.host = decode_host_function(record)};
	const struct process *process = record->thread->process;
	const struct thread *by = model_find_thread(idle->accounts->model, process, run.host.tid);
	const struct thread_account *c = by ? thread_account_of(idle->accounts, by) : NULL;
	size_t index =
		work_index(&idle->accounts->work, record->process, streams_device(run.host.device));
	const struct completed_call *behind, *handed = NULL;
	struct idle_user *user = &idle->users[index];
	uint64_t since_ns;
	bool known = ran(idle, record, by, &run);

	if (user->gpu)
		remember(&idle->gpus[user->gpu - 1], process, &run);
	if (!known || !is_its_alone(idle, process, user) || run.stream->work == run.function.work)
		return;
	since_ns = others_idle_since(&run);
	if (since_ns == UINT64_MAX)
		return;
	behind = c ? first_behind(&run, c, &handed) : NULL;
	since_ns = max_u64(since_ns, work_behind_since(&run, behind));
	since_ns = max_u64(since_ns, last_elsewhere(user, run.stream));
	idle_add_interval(idle, &idle->gpus[user->gpu - 1], process, since_ns, record->ns,
			  &(struct idle_part){.cause = IDLE_HOST_FUNCTION,
					      .address = run.host.return_address,
					      .fn = trace_function(idle->accounts->model->set,
								   process->trace, run.host.fn),
					      .fn_before = NO_FUNCTION,
					      .object = run.host.function,
					      .thread = by,
					      .stack = handed ? handed->stack : NULL,
					      .at_ns = since_ns});
}
