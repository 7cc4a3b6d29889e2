/*
 * analyzer/ranks/capture.c: records of NCCL's become events (events.h): with all that the evaluation has to know of the
 * process at that time. Called by the main reading, on the thread that reads the records of the process.
 */
#include <stdlib.h>
#include "work.h"

/* ---- communicators --------------------------------------------------------------------------- */

struct lane_comm *rank_lane_comm(const struct ranks_work *w, uint32_t process, uint32_t number)
{
	const struct lane_comm_key key = {process, number};
	struct lane_comm *comm;

	HASH_FIND(hh, w->lane_comms, &key, sizeof(key), comm);
	return comm;
}

void rank_capture_comm(struct ranks *ranks, const struct record *record)
{
	struct rank_comm_event event = {.head = {RANK_EVENT_COMM, record->thread->process},
					.comm = *record_nccl_comm(record)};
	struct ranks_work *w = ranks->work;
	struct lane_comm *comm = rank_lane_comm(w, record->process, event.comm.comm);

	if (!comm && HASH_COUNT(w->lane_comms) >= MEMBERS_MOST) {
		ranks->lost++;
		return;
	}
	if (!comm)
		HASH_NEW(w->lane_comms, comm, key,
			 (struct lane_comm_key){record->process, event.comm.comm});
	comm->device = event.comm.device == SPY_DEVICE_NONE ? 0 : event.comm.device;
	rank_emit(ranks, &event.head, sizeof(event));
}

/* ---- what waits for operations ---------------------------------------------------------------- */

#define STREAMS_LOOKED_AT 64

/* Has work been handed to a stream of the list, behind the first `upto` operations of that one? */
static bool any_behind(const struct gpu_stream *list, const struct gpu_stream *stream,
		       uint64_t upto)
{
	unsigned int n = 0, i;

	for (; list; list = list->next) {
		if (n++ == STREAMS_LOOKED_AT)
			return true;
		for (i = 0; list != stream && i < STREAM_BEHIND; i++)
			if (list->behind[i].stream == stream && list->behind[i].upto >= upto &&
			    list->work > list->behind[i].work)
				return true;
	}
	return false;
}

/*
 * Has the host, or other work, waited for the communicator's operation before? The buckets of a backward pass are reduced
 * in a stream of their own, beside it: until something waits for that stream, a rank's wait in one of them is no time that
 * its own work has lost. (A stream of NCCL's waits, too, but has no work.) Where no other stream has got any, there is
 * nothing beside it.
 */
static bool is_waited_for(const struct lane_comm *comm, const struct gpu_stream *stream)
{
	const struct device_streams *d = stream->beside;
	bool beside = d->handed_over - comm->handed_over > stream->work - comm->work;

	return !beside || stream != comm->stream || stream->done >= comm->upto ||
	       stream->work > comm->work + 1 || any_behind(d->busy, stream, comm->upto) ||
	       any_behind(d->busy_non_blocking, stream, comm->upto);
}

/* An operation of the communicator, right behind its launch. */
static void take_comm(struct lane_comm *comm, const struct thread_account *c,
		      const struct process *process, struct rank_op *op)
{
	const struct gpu_stream *stream = c ? c->stream : NULL;

	op->continues = stream && comm->submitted_ns &&
			!process_dormant_ns(process, comm->submitted_ns, op->submit_begin_ns) &&
			!is_waited_for(comm, stream);
	comm->stream = stream;
	comm->upto = stream ? stream->submitted : 0;
	comm->work = stream ? stream->work : 0;
	comm->handed_over = stream ? stream->beside->handed_over : 0;
	comm->submitted_ns = op->submit_begin_ns;
}

/* ---- submitted ------------------------------------------------------------------------------- */

#define BEHIND_MOST 4 /* calls that a library may make between the launch and the record */

/* The last of the thread's calls that submitted work; NULL: the record is not behind one. */
static const struct completed_call *launch_of(const struct ranks *ranks,
					      const struct thread_account *c)
{
	const struct functions *functions = &ranks->idle->accounts->model->set->functions;
	uint64_t known = c ? min_u64(c->ring.n, c->ring.size) : 0, i;

	for (i = 1; i <= known && i <= BEHIND_MOST; i++) {
		const struct completed_call *call = completed_call_at(&c->ring, c->ring.n - i);

		if (spy_contract_submits(functions->all[call->fn].contract))
			return call;
	}
	return NULL;
}

static uint64_t handed_over(const struct ranks *ranks, const struct process *process,
			    uint32_t device)
{
	const struct gpu_work *work = &ranks->idle->accounts->work;
	const struct device_streams *d =
		&work->devices[work_index(work, (uint32_t)process->trace->index, device)];

	return d->handed_over + d->others;
}

/* How often recording has been dormant until now. Those who compare ranks may not look for themselves: the process's records
 * may be read on meanwhile. */
static uint64_t holes_of(const struct process *process)
{
	return process->n_dormant_times + process->dormant;
}

/* What the lane has known since its operation before goes to this one. */
static void take_lane(struct rank_op *op, struct rank_lane *lane,
		      const struct completed_call *launch, uint64_t handed)
{
	op->first = !lane->submitted_ns || lane->holes != op->holes;
	lane->holes = op->holes;
	op->gpu_operations = handed - min_u64(lane->handed_over, handed);
	lane->handed_over = handed;
	lane->submitted_ns = op->submit_begin_ns;
	if (lane->launches && launch)
		lane->launches[lane->n_launches++ % LAUNCHES_MOST] =
			(struct rank_launch){launch->begin_ns, launch->end_ns};
}

struct rank_op *rank_op_hold(struct rank_op *op)
{
	op->held++;
	return op;
}

void rank_op_release(struct rank_op *op)
{
	if (!op)
		return;
	if (op->held) {
		op->held--;
		return;
	}
	rank_op_release(op->lead);
	free(op);
}

struct rank_op *rank_op_new(struct ranks *ranks, const struct thread *thread, uint64_t ns,
			    const struct completed_call *launch, uint32_t device)
{
	struct rank_lane *lane = rank_lane_get(ranks, thread);
	struct lane_part parts[PARTS_MOST];
	uint32_t n_parts = lane ? rank_lane_take(ranks, lane, parts) : 0, i;
	struct rank_op *op = xcalloc(1, sizeof(*op) + n_parts * sizeof(*op->own_parts));

	op->parts = op->own_parts;
	op->launched = launch != NULL;
	op->first = true;
	op->holes = holes_of(thread->process);
	op->submit_begin_ns = launch ? launch->begin_ns : ns;
	op->submit_end_ns = launch ? launch->end_ns : ns;
	op->n_parts = n_parts;
	for (i = 0; i < n_parts; i++)
		op->parts[i] = (struct rank_part){.place = parts[i].place->place,
						  .ns = parts[i].ns,
						  .end_ns = parts[i].end_ns};
	if (lane)
		take_lane(op, lane, launch, handed_over(ranks, thread->process, device));
	return op;
}

static const struct range_thread *ranges_of(const struct ranks *ranks, const struct thread *thread)
{
	const struct ranges *ranges = &ranks->idle->accounts->ranges;
	const struct range_thread *own = ranges_thread(ranges, thread);

	if ((!own || !own->n) &&
	    thread->process->threads) /* others may submit for the main thread */
		own = ranges_thread(ranges, thread->process->threads);
	return own;
}

static void find_levels(const struct ranks *ranks, const struct thread *thread,
			struct rank_level levels[RANK_LEVELS])
{
	const struct range_thread *t = ranges_of(ranks, thread);

	for (uint32_t i = 0; t && i < RANK_LEVELS && i < t->n; i++) {
		const struct range_name *name = t->open[i].name;

		levels[i] = (struct rank_level){name->family ?: name, t->open[i].since_ns};
	}
}

/* That was taken for this record; NULL: none. */
static const struct stack *stack_of(const struct record *record)
{
	const struct stack *stack = record->thread->stack;
	bool own = stack && stack->fn == SPY_FN_NONE && stack->time == record_time(record);

	return own ? stack : NULL;
}

void rank_capture_collective(struct ranks *ranks, const struct record *record)
{
	struct rank_submitted_event event = {
		.head = {RANK_EVENT_SUBMITTED, record->thread->process},
		.operation = *record_collective(record),
		.ns = record->ns};
	struct lane_comm *comm = rank_lane_comm(ranks->work, record->process, event.operation.comm);
	const struct thread_account *c = thread_account_of(ranks->idle->accounts, record->thread);
	const struct completed_call *launch = launch_of(ranks, c);

	ranks->any = ranks->submits[record->process] = true;
	if (!comm || event.operation.func >= SPY_NCCL_FUNCS ||
	    (rank_func_is_between_two(event.operation.func) && event.operation.peer < 0)) {
		ranks->lost++;
		return;
	}
	if (!(event.operation.flags & SPY_COLLECTIVE_GRAPH)) {
		event.op = rank_op_new(ranks, record->thread, record->ns, launch, comm->device);
		take_comm(comm, c, record->thread->process, event.op);
		/* Taking what the lane did, calls of it were divided; none was added. */
		rank_site_see(ranks, record->thread, record->ns, stack_of(record), launch,
			      &event.site);
		find_levels(ranks, record->thread, event.levels);
	}
	rank_emit(ranks, &event.head, sizeof(event));
	if (event.operation.flags & SPY_COLLECTIVE_GRAPH)
		rank_graph_see(ranks, record, &event.operation);
}

/* ---- and ran --------------------------------------------------------------------------------- */

void rank_capture_ran(struct ranks *ranks, const struct record *record)
{
	const struct collective_ran_record ran = decode_collective_ran(record);
	struct rank_ran_event event = {
		.head = {RANK_EVENT_RAN, record->thread->process},
		.id = ran.id,
		.by_host_times = !ran.begin_ns,
		.ran_ns = record->ns,
		.seen_ns = ran.seen_ns,
	};

	event.begin_ns = event.by_host_times ? event.seen_ns : ran.begin_ns;
	event.end_ns = event.by_host_times ? event.ran_ns : ran.end_ns;
	rank_emit(ranks, &event.head, sizeof(event));
}
