/*
 * analyzer/idle/exact.c: where GPU times were recorded, when each GPU worked and when it was idle, to the nanosecond.
 * Idle time is charged to what made the operation late that ended it. Called by the main reading, which sees the host's
 * records in the order of time: an operation's turn comes when the records of those who may have kept it waiting have
 * been seen.
 */
#include "idle.h"
#include "trace/position.h"

/* What begins no later than so long after its submission was on the way to the GPU; what begins later waited there for
 * something. A choice: some times what the way takes. */
#define ON_THE_WAY_NS 20000

/* ---- charging -------------------------------------------------------------------------------- */

struct charging {
	struct idle *idle;
	uint32_t gpu; /* index */
	const struct process *process;
};

static void show_idle(const struct charging *c, const struct idle_part *part, uint64_t ns)
{
	const struct listener *listener = c->idle->accounts->listener;

	if (listener && listener->on_idle)
		listener->on_idle(listener->data, &(struct shown_idle){.gpu = c->gpu,
								       .cause = part->cause,
								       .exact = true,
								       .begin_ns = part->at_ns,
								       .end_ns = part->at_ns + ns,
								       .ns = ns});
}

static void charge(void *data, const struct idle_part *part, uint64_t ns)
{
	const struct charging *c = data;

	show_idle(c, part, ns);
	idle_sum_follow(
		c->idle->accounts, &c->idle->threads,
		idle_sums_add(&c->idle->sums, idle_owner_exact(c->gpu), c->process, part, ns), part,
		ns);
}

static void charge_cause(struct charging *c, enum idle_cause cause, uint64_t begin_ns,
			 uint64_t end_ns)
{
	if (begin_ns < end_ns)
		charge(c,
		       &(struct idle_part){.cause = cause,
					   .fn = NO_FUNCTION,
					   .fn_before = NO_FUNCTION,
					   .at_ns = begin_ns},
		       end_ns - begin_ns);
}

static const struct thread_account *account_of_tid(const struct idle *idle,
						   const struct process *process, uint32_t tid)
{
	const struct thread *thread =
		tid ? model_find_thread(idle->accounts->model, process, tid) : NULL;

	return thread ? thread_account_of(idle->accounts, thread) : NULL;
}

/* What the thread did. */
static void charge_thread(struct charging *c, const struct thread_account *thread,
			  uint64_t begin_ns, uint64_t end_ns)
{
	if (begin_ns >= end_ns)
		return;
	if (!thread)
		charge_cause(c, IDLE_UNEXPLAINED, begin_ns, end_ns);
	else
		host_divide(c->idle->accounts, host_thread_find(&c->idle->threads, thread->thread),
			    thread, begin_ns, end_ns, charge, c);
}

/* The call at that time; behind: the numbers of calls back from the last one, from where it is looked for. */
static const struct completed_call *call_before(const struct thread_account *c, uint64_t ns,
						uint64_t *behind)
{
	uint64_t known = min_u64(c->ring.n, c->ring.size);

	while (++*behind <= known) {
		const struct completed_call *call =
			completed_call_at(&c->ring, c->ring.n - *behind);

		if (call->begin_ns <= ns)
			return call;
	}
	return NULL;
}

#define LOOK_BACK 16 /* calls, for the one before in the same stream */

/* Of the operation that the thread submitted at that time: what it had handed to the same stream just before is a function
 * that runs on the host. NULL: it is something else, or not known. */
static const struct completed_call *host_function(const struct idle *idle,
						  const struct thread_account *c, uint64_t ns)
{
	const struct functions *functions = &idle->accounts->model->set->functions;
	uint64_t behind = 0, looks;
	const struct completed_call *own = c ? call_before(c, ns, &behind) : NULL, *call;

	for (looks = 0; own && own->stream && looks < LOOK_BACK; looks++) {
		call = call_before(c, ns, &behind);
		if (!call)
			return NULL;
		if (call->stream == own->stream)
			return functions->all[call->fn].does == FUNCTION_SHOWS_OTHERS ? call : NULL;
	}
	return NULL;
}

/* The operation had been submitted, and could not begin. */
static void charge_dependency(struct charging *c, const struct thread_account *thread,
			      const struct gpu_event *op, uint64_t begin_ns, uint64_t end_ns)
{
	const struct completed_call *call =
		begin_ns < end_ns ? host_function(c->idle, thread, op->submit_begin_ns) : NULL;

	if (!call) {
		charge_cause(c, IDLE_DEPENDENCY, begin_ns, end_ns);
		return;
	}
	charge(c,
	       &(struct idle_part){
		       .cause = IDLE_HOST_FUNCTION,
		       .address = call->return_address,
		       .fn = call->fn,
		       .fn_before = NO_FUNCTION,
		       .object = functions_address(&c->idle->gpus[c->gpu], c->process, call),
		       .thread = thread->thread,
		       .stack = call->stack,
		       .at_ns = begin_ns},
	       end_ns - begin_ns);
}

/* The GPU was idle until the operation began; NULL: none did. */
static void charge_gap(struct idle *idle, struct idle_gpu *gpu, const struct gpu_event *op,
		       uint64_t begin_ns, uint64_t end_ns)
{
	const struct process *process =
		op ? &idle->accounts->model->processes[op->process] : gpu->exact.process;
	struct charging c = {.idle = idle,
			     .gpu = (uint32_t)(gpu - idle->gpus),
			     .process = process ?: gpu->processes[0]};
	uint64_t submit_begin_ns, submit_end_ns;
	const struct thread_account *thread;

	if (!op) {
		thread = process ? account_of_tid(idle, process, gpu->exact.tid) : NULL;
		charge_thread(&c, thread, begin_ns, end_ns);
		return;
	}
	if (!op->submit_end_ns) {
		charge_cause(&c, IDLE_UNEXPLAINED, begin_ns, end_ns);
		return;
	}
	thread = account_of_tid(idle, process, op->tid);
	submit_begin_ns = min_u64(max_u64(op->submit_begin_ns, begin_ns), end_ns);
	submit_end_ns = min_u64(max_u64(op->submit_end_ns, begin_ns), end_ns);
	if (end_ns - submit_end_ns <= ON_THE_WAY_NS && submit_end_ns > begin_ns)
		submit_end_ns = end_ns;
	charge_thread(&c, thread, begin_ns, submit_begin_ns);
	if (submit_begin_ns < submit_end_ns && thread)
		host_divide_submission(idle->accounts, thread, submit_begin_ns, submit_end_ns,
				       charge, &c);
	else
		charge_cause(&c, IDLE_LAUNCH, submit_begin_ns, submit_end_ns);
	charge_dependency(&c, thread, op, submit_end_ns, end_ns);
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* Of a time the part that lies in the process's working phase. */
static uint64_t in_phase(const struct idle *idle, const struct process *process, uint64_t *begin_ns,
			 uint64_t *end_ns)
{
	const struct phase *phase = &idle->accounts->expect->phases.all[process->trace->index];

	*begin_ns = max_u64(*begin_ns, max_u64(phase->begin_ns, process->first_ns));
	*end_ns = min_u64(*end_ns, phase->end_ns);
	return *begin_ns < *end_ns ? *end_ns - *begin_ns : 0;
}

static void see_gap(struct idle *idle, struct idle_gpu *gpu, const struct process *process,
		    const struct gpu_event *op, uint64_t until_ns)
{
	struct exact_gpu *exact = &gpu->exact;
	uint64_t begin_ns = exact->at_ns, end_ns = until_ns;
	uint64_t ns = in_phase(idle, process, &begin_ns, &end_ns);

	exact->at_ns = max_u64(exact->at_ns, until_ns);
	if (!ns)
		return;
	exact->idle_ns += ns;
	charge_gap(idle, gpu, op, begin_ns, end_ns);
}

/* Until then nothing else has begun: what goes on of either kind is divided. */
static void divide_busy(struct idle *idle, struct idle_gpu *gpu, const struct process *process,
			uint64_t until_ns)
{
	struct exact_gpu *exact = &gpu->exact;
	uint64_t begin_ns = exact->divided_ns;
	uint64_t end_ns = min_u64(until_ns, exact->collective_until_ns), alone_ns;

	exact->divided_ns = max_u64(exact->divided_ns, until_ns);
	if (begin_ns >= end_ns)
		return;
	exact->collective_ns += in_phase(idle, process, &begin_ns, &end_ns);
	alone_ns = max_u64(begin_ns, exact->own_until_ns);
	if (alone_ns < end_ns)
		exact->exposed_ns += in_phase(idle, process, &alone_ns, &end_ns);
}

static void see_kind(struct idle *idle, struct idle_gpu *gpu, const struct process *process,
		     const struct gpu_event *op)
{
	struct exact_gpu *exact = &gpu->exact;
	bool collective = idle->is_collective && idle->is_collective(idle->collectives, op);
	uint64_t *until_ns = collective ? &exact->collective_until_ns : &exact->own_until_ns;

	divide_busy(idle, gpu, process, op->begin_ns);
	*until_ns = max_u64(*until_ns, op->end_ns);
	exact->collectives +=
		collective && phase_has(&idle->accounts->expect->phases, op->process, op->begin_ns);
}

static void see_op(struct idle *idle, const struct gpu_event *op)
{
	const struct process *process = &idle->accounts->model->processes[op->process];
	struct idle_gpu *gpu = idle_gpu_of(idle, process, op->device);
	struct exact_gpu *exact = &gpu->exact;
	const struct listener *listener = idle->accounts->listener;
	const struct gpu *named = idle_named(gpu);
	uint64_t begin_ns, end_ns, ns;

	if (listener && listener->on_gpu_op)
		listener->on_gpu_op(listener->data, op, (uint32_t)(gpu - idle->gpus));
	if (!exact->known) {
		exact->at_ns = max_u64(exact->at_ns, op->end_ns);
		return;
	}
	see_kind(idle, gpu, process, op);
	if (op->begin_ns > exact->at_ns)
		see_gap(idle, gpu, process, op, op->begin_ns);
	begin_ns = max_u64(exact->at_ns, op->begin_ns);
	end_ns = op->end_ns;
	exact->at_ns = max_u64(exact->at_ns, op->end_ns);
	ns = in_phase(idle, process, &begin_ns, &end_ns);
	exact->busy_ns += ns;
	exact->operations += phase_has(&idle->accounts->expect->phases, op->process, op->begin_ns);
	if (op->kind == SPY_GPU_KERNEL && named && op->amount < named->multiprocessors)
		exact->small_ns += ns;
	exact->tid = op->tid;
	exact->process = process;
}

/* The processes that are recorded at this time are others, or the GPU has another user. */
static void look_whether_known(struct idle *idle, struct idle_gpu *gpu, uint64_t ns)
{
	bool known = gpu->exact.n_known == gpu->n_processes;

	if (known == gpu->exact.known)
		return;
	if (!known && ns > gpu->exact.at_ns)
		see_gap(idle, gpu, gpu->processes[0], NULL, ns);
	gpu->exact.known = known;
	gpu->exact.ever |= known;
	gpu->exact.at_ns = max_u64(gpu->exact.at_ns, ns);
}

static void see_recording(struct idle *idle, uint32_t process, bool on, uint64_t ns)
{
	if (idle->recorded[process] == on)
		return;
	idle->recorded[process] = on;
	for (uint32_t device = 0; device < WORK_DEVICES; device++) {
		uint32_t number =
			idle->users[work_index(&idle->accounts->work, process, device)].gpu;
		struct idle_gpu *gpu = number ? &idle->gpus[number - 1] : NULL;

		if (!gpu)
			continue;
		gpu->exact.n_known += on ? 1 : (size_t)-1;
		look_whether_known(idle, gpu, ns);
	}
}

/* ---- in the order of time -------------------------------------------------------------------- */

static void see_event(struct idle *idle, const struct gpu_event *event)
{
	const struct process *process = &idle->accounts->model->processes[event->process];

	if (event->event != GPU_EVENT_OP) {
		see_recording(idle, event->process, event->event == GPU_EVENT_ON, event->begin_ns);
		return;
	}
	look_whether_known(idle, idle_gpu_of(idle, process, event->device), event->begin_ns);
	see_op(idle, event);
}

/* Operations are missing: how long it worked is not known. */
static bool has_losses(const struct idle *idle, const struct idle_gpu *gpu)
{
	for (size_t i = 0; i < gpu->n_processes; i++)
		if (gpu_times_lost(&idle->ops.times[gpu->processes[i]->trace->index]))
			return true;
	return false;
}

/* A tool that took CUPTI's slot may have left only the beginning. */
static bool has_most(const struct idle *idle, const struct idle_gpu *gpu)
{
	size_t process = gpu->processes[0]->trace->index;
	const struct phase *phase = &idle->accounts->expect->phases.all[process];

	return idle->ops.times[process].state != SPY_GPU_GAVE_WAY ||
	       2 * exact_known_ns(&gpu->exact) >= phase->end_ns - phase->begin_ns;
}

static void conclude(struct idle *idle)
{
	for (size_t i = 0; i < idle->n_gpus; i++) {
		struct idle_gpu *gpu = &idle->gpus[i];

		divide_busy(idle, gpu, gpu->exact.process ?: gpu->processes[0], UINT64_MAX);
		gpu->exact.sound = gpu->exact.ever && exact_known_ns(&gpu->exact) &&
				   !has_losses(idle, gpu) && has_most(idle, gpu);
	}
}

void exact_begin(struct idle *idle)
{
	const struct model *model = idle->accounts->model;
	struct reading_position position;

	gpu_ops_init(&idle->ops, model->set, model->streams, model->n_streams);
	idle->due_ns = UINT64_MAX;
	(void)gpu_ops_next(&idle->ops, &idle->due_ns, &position);
}

void exact_go_on(struct idle *idle, uint64_t ns)
{
	const struct record *record = reading_place.record;
	const struct gpu_event *next;
	struct reading_position position;

	while ((next = gpu_ops_next(&idle->ops, &idle->due_ns, &position)) &&
	       (idle->due_ns <= ns || ns == UINT64_MAX)) {
		reading_place.record = NULL;
		reading_place.position = position;
		see_event(idle, next);
		gpu_ops_take(&idle->ops);
	}
	if (!next)
		idle->due_ns = UINT64_MAX;
	reading_place.record = record;
	if (ns == UINT64_MAX)
		conclude(idle);
}
