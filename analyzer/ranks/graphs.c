/*
 * analyzer/ranks/graphs.c: collective operations in CUDA graphs: each launch of a graph becomes one operation, by the host's
 * times. Called for records of captured operations and for calls, on the thread that reads the records of their process.
 *
 * NCCL says that a captured operation runs, by a function on the host that it has put into the graph. Its times of the kernel may be
 * those of an earlier run, where the recorder does not ask for all of them. So of each launch the first operation that is told of stands for all. Its
 * number says which launches of the ranks are one. It begins with the launch, where the stream had nothing to do before, and ends when the host
 * knows that the stream is done. Of launches behind others it is not known when they begin. These operations have communicators of their own here:
 * times of hosts and of GPUs are not compared.
 */
#include "work.h"

/* ---- telling --------------------------------------------------------------------------------- */

static void emit_submitted(struct ranks *ranks, struct rank_graph *graph, struct lane_comm *comm,
			   const struct spy_rec_collective *operation)
{
	const struct completed_call *launch = &graph->launch;
	const struct process *process = launch->thread->process;
	struct rank_submitted_event event = {.head = {RANK_EVENT_SUBMITTED, process},
					     .operation = *operation,
					     .ns = launch->end_ns,
					     .graph = true};

	/* Each function has numbers of its own; and all that a graph does ends at the same time on all ranks. */
	event.operation.seq ^= (uint64_t)operation->func << 56;
	event.operation.func = SPY_NCCL_ALL_REDUCE;
	event.operation.count = event.operation.bytes_each = 0;
	event.operation.flags = SPY_COLLECTIVE_GRAPH | SPY_COLLECTIVE_RUN_FOLLOWS;
	event.op = rank_op_new(ranks, launch->thread, launch->end_ns, launch, comm->device);
	rank_site_see(ranks, launch->thread, launch->end_ns, NULL, launch, &event.site);
	rank_emit(ranks, &event.head, sizeof(event));
	graph->id = operation->id;
	graph->waited_for = true;
}

/* end_ns 0: it is not known when it began, or ended. */
static void emit_ran(struct ranks *ranks, struct rank_graph *graph, uint64_t end_ns)
{
	uint64_t begin_ns = graph->launch.end_ns;
	struct rank_ran_event event = {
		.head = {RANK_EVENT_RAN, graph->launch.thread->process},
		.id = graph->id,
		.graph = true,
		.by_host_times = true,
		.ran_ns = end_ns,
		.seen_ns = begin_ns,
		.begin_ns = begin_ns,
		.end_ns = end_ns,
	};

	graph->waited_for = false;
	rank_emit(ranks, &event.head, sizeof(event));
}

/* ---- what is seen ---------------------------------------------------------------------------- */

/* The first operation of the launch, if it has none yet. */
static void take_first(struct ranks *ranks, struct rank_graph *graph,
		       const struct spy_rec_collective *operation)
{
	const struct process *process = graph->launch.thread->process;
	struct lane_comm *comm =
		rank_lane_comm(ranks->work, (uint32_t)process->trace->index, operation->comm);

	graph->has_first = true;
	if (comm)
		emit_submitted(ranks, graph, comm, operation);
}

/* Is it known that the launch has run? Until then, its functions on the host run. */
static bool is_done(const struct rank_graph *graph)
{
	return !graph->stream || graph->stream->done >= graph->upto;
}

void rank_graph_see(struct ranks *ranks, const struct record *record,
		    const struct spy_rec_collective *operation)
{
	struct rank_graph *graph = &ranks->work->graphs[record->process];
	const struct thread_account *c = thread_account_of(ranks->idle->accounts, record->thread);

	if (c && c->ring.n) /* it is captured now: the thread is the program's */
		return;
	if (graph->launch.thread && !graph->has_first && record->ns >= graph->launch.begin_ns) {
		take_first(ranks, graph, operation);
	} else if (!graph->ahead && (!graph->launch.thread || is_done(graph))) {
		/* The launch that it is of has not returned yet. */
		graph->ahead = true;
		graph->ahead_ns = record->ns;
		graph->first_ahead = *operation;
	}
}

static void begin_launch(struct ranks *ranks, struct rank_graph *graph,
			 const struct completed_call *launch, const struct gpu_stream *stream)
{
	if (graph->waited_for)
		emit_ran(ranks, graph, 0);
	graph->launch = *launch;
	graph->stream = stream;
	graph->upto = stream ? stream->submitted : 0;
	graph->at_once = stream && stream->done + 1 >= stream->submitted;
	graph->has_first = false;
	if (graph->ahead && graph->ahead_ns >= launch->begin_ns)
		take_first(ranks, graph, &graph->first_ahead);
	graph->ahead = false;
}

void rank_graph_see_call(struct ranks *ranks, const struct record *record)
{
	struct rank_graph *graph = &ranks->work->graphs[record->process];
	const struct functions *functions = &ranks->idle->accounts->model->set->functions;
	const struct thread_account *c = thread_account_of(ranks->idle->accounts, record->thread);
	const struct completed_call *call =
		c && c->ring.n ? completed_call_at(&c->ring, c->ring.n - 1) : NULL;

	if (!call)
		return;
	if (functions->all[call->fn].does == FUNCTION_LAUNCHES_GRAPH)
		begin_launch(ranks, graph, call, c->stream);
	else if (graph->waited_for && is_done(graph))
		emit_ran(ranks, graph, graph->at_once ? call->end_ns : 0);
}
