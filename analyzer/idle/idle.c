/*
 * analyzer/idle/idle.c: what records tell of GPUs and of what threads did between their calls. Called by
 * the main reading for each record that does not go the fast path: the first submission after a
 * drain never does.
 */
#include <stdlib.h>
#include "account/streams.h"
#include "blame/journal.h"
#include "trace/groups.h"
#include "callers.h"
#include "idle.h"

void idle_init(struct idle *idle, struct accounting *accounts)
{
	*idle = (struct idle){.accounts = accounts, .sums.phases = &accounts->expect->phases};
	idle->users = xcalloc(accounts->model->n_processes * WORK_DEVICES, sizeof(*idle->users));
	idle->recorded = xcalloc(accounts->model->n_processes + 1, sizeof(*idle->recorded));
	idle->profilers = xcalloc(accounts->model->n_processes + 1, sizeof(*idle->profilers));
	idle->gil_held_at = xcalloc(accounts->model->n_processes + 1, sizeof(*idle->gil_held_at));
	idle->due_ns = UINT64_MAX;
}

void idle_release(struct idle *idle)
{
	struct idle_gpu_name *name, *next;

	for (size_t i = 0; i < idle->n_gpus; i++) {
		const struct idle_gpu *gpu = &idle->gpus[i];

		for (size_t k = 0; k < gpu->intervals_size && k < gpu->n_intervals; k++)
			free(gpu->intervals[k].charges);
		free(idle->gpus[i].processes);
		free(idle->gpus[i].ran);
		free(idle->gpus[i].intervals);
	}
	HASH_EMPTY (idle->names, name, next)
		free(name);
	free(idle->gpus);
	free(idle->users);
	free(idle->recorded);
	free(idle->profilers);
	free(idle->gil_held_at);
	free(idle->shared);
	gpu_ops_release(&idle->ops);
	free(idle->ranges.ns);
	free(idle->pieces.all);
	host_threads_release(&idle->threads);
	idle_sums_release(&idle->sums);
	samples_release(&idle->samples);
	in_c_release(&idle->in_c);
	*idle = (struct idle){0};
}

/* ---- which GPU ------------------------------------------------------------------------------- */

static bool same_gpu(const struct idle_gpu *known, const struct process *process, const char *uuid)
{
	return known->uuid && known->processes[0]->trace->host == process->trace->host &&
	       !strcmp(known->uuid, uuid);
}

/* Of a GPU that has a name: the one that was found under it, or where to keep it. */
static struct idle_gpu_name *name_of(struct idle *idle, uint64_t key)
{
	struct idle_gpu_name *name;

	HASH_FIND(hh, idle->names, &key, sizeof(key), name);
	if (!name)
		HASH_NEW(idle->names, name, key, key);
	return name;
}

/* Processes see the same GPU under different numbers: its uuid tells. */
static uint32_t find_gpu(struct idle *idle, const struct process *process, uint8_t device,
			 const char *uuid)
{
	struct idle_gpu_name *name =
		uuid ? name_of(idle, groups_gpu_key(process->trace, uuid)) : NULL;

	if (name && name->gpu && same_gpu(&idle->gpus[name->gpu - 1], process, uuid))
		return name->gpu;
	idle->gpus = grow(idle->gpus, idle->n_gpus, sizeof(*idle->gpus));
	idle->gpus[idle->n_gpus++] = (struct idle_gpu){
		.created = position_now(), .device = device, .uuid = uuid, .left_out = true};
	if (name)
		name->gpu = (uint32_t)idle->n_gpus;
	return (uint32_t)idle->n_gpus;
}

void idle_name_gpus(struct idle *idle)
{
	for (size_t i = 0; i < idle->n_gpus; i++) {
		const struct idle_gpu *gpu = &idle->gpus[i];

		if (gpu->uuid)
			name_of(idle, groups_gpu_key(gpu->processes[0]->trace, gpu->uuid))->gpu =
				(uint32_t)i + 1;
	}
}

uint32_t idle_meet(struct idle *idle, const struct process *process, uint8_t device,
		   const char *uuid)
{
	uint32_t number = find_gpu(idle, process, device, uuid);
	struct idle_gpu *found = &idle->gpus[number - 1];

	found->processes = grow(found->processes, found->n_processes, sizeof(*found->processes));
	found->processes[found->n_processes++] = process;
	if (filter_has_gpu(idle->accounts->filtering, process->trace->index, device))
		found->left_out = false;
	if (idle->recorded[process->trace->index])
		found->exact.n_known++;
	else
		found->exact.known =
			false; /* since its last operation, for that one may have worked */
	return number;
}

static bool is_elsewhere(const struct idle *idle, const struct process *process, const char *uuid)
{
	uint64_t key;

	if (!uuid || !idle->n_elsewhere)
		return false;
	key = groups_gpu_key(process->trace, uuid);
	return bsearch(&key, idle->elsewhere, idle->n_elsewhere, sizeof(key), groups_by_key);
}

/* For the other parts. */
static void update_user(struct idle *idle, const struct process *process, uint8_t device,
			uint32_t number)
{
	struct idle_gpu *gpu = &idle->gpus[number - 1];
	struct journal_entry *entry;

	gpu->elsewhere = is_elsewhere(idle, process, gpu->uuid);
	if (!gpu->elsewhere && gpu->n_processes > 1)
		return;
	/* Exact times are put in order in one reading. */
	if (gpu->elsewhere && process->trace->use.gpu_times)
		reading_refuses("GPU times of a GPU that several parts use");
	entry = journal_add(idle->journal, JOURNAL_GPU);
	entry->gpu = number - 1;
	entry->device = device;
	entry->user.process = process;
	entry->user.uuid = gpu->elsewhere ? gpu->uuid : NULL;
}

static void meet(struct idle *idle, struct idle_user *user, const struct process *process,
		 uint8_t device)
{
	uint8_t known_as = device == SPY_DEVICE_NONE ? 0 : device;
	const struct gpu *gpu = model_gpu(process, known_as);

	user->gpu = idle_meet(idle, process, known_as, gpu ? gpu->uuid : NULL);
	idle->n_devices = (uint32_t)max_u64(idle->n_devices, device + 1u);
	if (idle->journal)
		update_user(idle, process, known_as, user->gpu);
}

static struct idle_gpu *gpu_of_user(struct idle *idle, struct idle_user *user,
				    const struct process *process, uint8_t device)
{
	if (!user->gpu)
		meet(idle, user, process, device);
	return &idle->gpus[user->gpu - 1];
}

struct idle_gpu *idle_gpu_of(struct idle *idle, const struct process *process, uint8_t device)
{
	size_t index = work_index(&idle->accounts->work, process->trace->index, device);

	return gpu_of_user(idle, &idle->users[index], process, device);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* May the GPU have something to do because of such a call, beside what is known to be handed over? */
static bool may_submit(enum spy_contract contract)
{
	switch (contract) {
	case SPY_CONTRACT_HOST:
	case SPY_CONTRACT_STREAM:
	case SPY_CONTRACT_EVENT:
	case SPY_CONTRACT_DEVICE:
	case SPY_CONTRACT_ALLOC:
	case SPY_CONTRACT_PIN:
		return false;
	default:
		return true;
	}
}

static void see_turn(struct idle_gpu *gpu, const struct recent_ops *recent_ops)
{
	gpu->turns++;
	gpu->turns_brought += recent_ops->brought_before;
	gpu->turns_across += recent_ops->device_before == SPY_DEVICE_NONE;
}

/* What was handed over while recording was dormant, and before, is done: but for streams that it does not wait for. */
static bool waits_for_work(const struct record *record)
{
	return !record_failed(record) && (record->contract == SPY_CONTRACT_STREAM ||
					  record->contract == SPY_CONTRACT_DEVICE ||
					  record->contract == SPY_CONTRACT_COPY_SYNC);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool works(const struct idle_user *user)
{
	return user->busy && !user->since_ns;
}

/* What it makes of the GPU as the process alone knows it. */
static void see_own(struct idle_user *user, const struct idle_event *event)
{
	bool worked = works(user);

	if (event->submits || event->dormant)
		user->since_ns = 0;
	user->busy = (int)user->busy + event->busier;
	if (!user->busy && !user->since_ns)
		user->since_ns = event->ns;
	if (!worked && works(user))
		user->works_ns = event->ns;
}

/* Is the GPU another one after it? While a process works, the GPU is not idle, so that submissions that have begun since
 * it did change nothing; nor does what does not submit where the process itself is as it was. */
static bool is_relevant(const struct idle_user *before, const struct idle_user *user,
			const struct idle_event *event)
{
	return event->busier || before->since_ns != user->since_ns ||
	       (event->submits && (!works(before) || event->begin_ns < before->works_ns));
}

/* What its thread did since the process's own work was done, as far as it may be charged. */
static void collect_own(struct idle *idle, const struct idle_user *before,
			const struct idle_event *event)
{
	const struct phase *phase =
		&idle->accounts->expect->phases.all[event->process->trace->index];
	uint64_t begin_ns = max_u64(event->own_since_ns, phase->begin_ns);
	uint64_t end_ns = min_u64(event->begin_ns, phase->end_ns);

	idle->pieces.n = 0;
	if (event->submits && !works(before) && begin_ns < end_ns)
		idle_pieces_collect(&idle->pieces, idle->accounts, &idle->threads, event->account,
				    begin_ns, end_ns);
}

/* Other parts have processes that use the GPU, too. */
static void emit_elsewhere(struct idle *idle, struct idle_user *user,
			   const struct idle_event *event)
{
	const struct idle_user before = *user;
	struct journal_entry *entry;
	size_t bytes;

	see_own(user, event);
	if (!is_relevant(&before, user, event))
		return;
	collect_own(idle, &before, event);
	bytes = idle->pieces.n * sizeof(*idle->pieces.all);
	entry = journal_add_heavy(idle->journal, JOURNAL_GPU_EVENT,
				  1 + bytes / sizeof(struct journal_entry));
	entry->gpu = user->gpu - 1;
	entry->event.process = event->process;
	entry->event.begin_ns = event->begin_ns;
	entry->event.submits = event->submits;
	entry->event.dormant = event->dormant;
	entry->event.busier = event->busier;
	entry->event.n_pieces = (uint32_t)idle->pieces.n;
	if (!idle->pieces.n)
		return;
	entry->event.range = ranges_innermost(&idle->accounts->ranges, event->account->thread);
	entry->event.holds = idle_pieces_hold(idle->pieces.all, idle->pieces.n, 1);
	entry->event.at = journal_store(idle->journal, idle->pieces.all, bytes);
}

static inline void emit(struct idle *idle, struct idle_user *user, const struct idle_event *event)
{
	struct idle_gpu *gpu = &idle->gpus[user->gpu - 1];

	if (unlikely(gpu->elsewhere)) {
		emit_elsewhere(idle, user, event);
		return;
	}
	see_own(user, event);
	idle_apply(idle, gpu, event);
}

void idle_see_dormant(struct idle *idle, const struct record *record)
{
	for (uint32_t device = 0; device < WORK_DEVICES; device++) {
		struct idle_user *user =
			&idle->users[work_index(&idle->accounts->work, record->process, device)];

		user->unseen = true;
		if (user->gpu)
			emit(idle, user,
			     &(struct idle_event){.process = record->thread->process,
						  .ns = record->ns,
						  .dormant = true,
						  .busier = !user->busy});
	}
}

static void see_device(struct idle *idle, const struct record *record,
		       const struct thread_account *c, uint64_t in_calls_ns)
{
	uint8_t device = record->device;
	size_t index = streams_device_index(&idle->accounts->work, record);
	const struct device_streams *d = &idle->accounts->work.devices[index];
	struct idle_user *user = &idle->users[index];
	const struct process *process = record->thread->process;
	struct idle_gpu *gpu;
	bool submits, busy;

	if (!user->gpu && !(d->handed_over + d->others))
		return;
	gpu = gpu_of_user(idle, user, process, device);
	submits = idle->accounts->work.handed || may_submit(record->contract);
	busy_see_call(gpu, host_thread_get(&idle->threads, record->thread),
		      &idle->accounts->expect->phases.all[record->process], record,
		      completed_call_at(&c->ring, c->ring.n - 1), in_calls_ns);
	if (user->busy && !streams_outstanding(d))
		see_turn(gpu, &c->recent_ops);
	if (unlikely(user->unseen) && waits_for_work(record))
		user->unseen = false;
	busy = streams_outstanding(d) || user->unseen;
	if (submits)
		functions_see_call(user, record_stream(record) ? c->stream : NULL, record->ns);
	emit(idle, user,
	     &(struct idle_event){.process = process,
				  .begin_ns = record->ns - min_u64(record->duration_ns, record->ns),
				  .ns = record->ns,
				  .submits = submits,
				  .busier = (int8_t)(busy - user->busy),
				  .own_since_ns = user->since_ns,
				  .account = c});
}

/* A thread has asked for work until that was done. */
static void see_found_done(struct idle *idle, const struct record *record,
			   const struct thread_account *c)
{
	const struct gpu_work *work = &idle->accounts->work;
	struct idle_user *user;
	bool busy;

	if (!work->found_done || !idle->users[work->found_done - work->devices].gpu)
		return;
	user = &idle->users[work->found_done - work->devices];
	busy = streams_outstanding(work->found_done) || user->unseen;
	if (user->busy && !busy)
		see_turn(&idle->gpus[user->gpu - 1], &c->recent_ops);
	emit(idle, user,
	     &(struct idle_event){.process = record->thread->process,
				  .begin_ns = record->ns,
				  .ns = record->ns,
				  .busier = (int8_t)(busy - user->busy),
				  .own_since_ns = user->since_ns,
				  .account = c});
}

/* ---- a thread's own account ------------------------------------------------------------------ */

struct own_account {
	struct idle *idle;
	struct host_thread *h;
	const struct thread *thread;
};

static void add_own(void *data, const struct idle_part *part, uint64_t ns)
{
	const struct own_account *own = data;

	if (part->cause == IDLE_GPU_QUERY)
		own->h->queried_ns += ns;

	idle_sum_follow(own->idle->accounts, &own->idle->threads,
			idle_sums_add(&own->idle->sums, idle_owner_thread(own->thread),
				      own->thread->process, part, ns),
			part, ns);
}

/* So few calls are no work: most threads of a program with thousands make no more. */
#define CLOCK_FROM 8

static void see_clock(struct host_thread *h, uint64_t calls, uint64_t ns)
{
	if (calls < CLOCK_FROM)
		return;
	if (unlikely(!h->clock))
		h->clock = xcalloc(1, sizeof(*h->clock));
	progress_clock_see(h->clock, calls, ns);
}

/* The thread's time since the last such call: the gap before this one part by part; other gaps were
 * short, and nothing was recorded in them. */
static void see_thread(struct idle *idle, const struct record *record,
		       const struct thread_account *c, uint64_t in_calls_ns)
{
	struct host_thread *h = host_thread_get(&idle->threads, record->thread);
	const struct completed_call *f = completed_call_at(&c->ring, c->ring.n - 1);
	uint64_t since_ns = h->seen_ns, before_ns = h->seen_in_calls_ns, gap_ns, short_ns, calls_ns;
	uint64_t gpu_ns = c->gpu_ns - h->seen_gpu_ns;
	uint64_t gap_begin_ns =
		c->ring.n > 1 ? completed_call_at(&c->ring, c->ring.n - 2)->end_ns : f->begin_ns;

	h->in_python |= f->stack && f->stack->n_python;
	if (h->n_pooled < h->n_samples)
		samples_pool(&idle->samples, idle->accounts, h, c);
	h->seen_ns = record->ns;
	h->seen_in_calls_ns = in_calls_ns;
	h->seen_gpu_ns = c->gpu_ns;
	if (!since_ns || since_ns < record->thread->process->opened_ns ||
	    !phase_has(&idle->accounts->expect->phases, record->process, since_ns) ||
	    !phase_has(&idle->accounts->expect->phases, record->process, record->ns))
		return;
	see_clock(h, c->recent_ops.progress_calls, record->ns);
	calls_ns = min_u64(in_calls_ns - before_ns, record->ns - since_ns);
	h->in_calls_ns += calls_ns;
	gpu_ns = min_u64(gpu_ns, calls_ns);
	h->gpu_ns += gpu_ns;
	if (host_loads_code(idle->accounts, f->fn))
		h->loading_ns += min_u64(f->end_ns - f->begin_ns, calls_ns - gpu_ns);
	h->outside_ns += record->ns - since_ns - calls_ns;
	if (gap_begin_ns < since_ns)
		gap_begin_ns = since_ns;
	gap_ns = f->begin_ns > gap_begin_ns ? f->begin_ns - gap_begin_ns : 0;
	gap_ns = min_u64(gap_ns, record->ns - since_ns - calls_ns);
	short_ns = record->ns - since_ns - calls_ns - gap_ns;
	h->brief_ns += short_ns + (gap_ns < HOST_BRIEF_NS ? gap_ns : 0);
	if (gap_ns)
		host_divide(idle->accounts, h, c, f->begin_ns - gap_ns, f->begin_ns, add_own,
			    &(struct own_account){.idle = idle, .h = h, .thread = record->thread});
	if (short_ns)
		idle_sums_add(
			&idle->sums, idle_owner_thread(record->thread), record->thread->process,
			&(struct idle_part){
				.cause = host_cpu_cause(idle->accounts, record->thread->process, h),
				.thread = record->thread,
				.fn = NO_FUNCTION,
				.fn_before = NO_FUNCTION,
				.at_ns = since_ns},
			short_ns);
}

/* Not within the process's working phase, if it has one. */
static void see_around(struct idle *idle, const struct thread *thread,
		       const struct host_sample *sample)
{
	const struct phase *phase =
		&idle->accounts->expect->phases.all[thread->process->trace->index];

	if (phase->found && sample->ns < phase->begin_ns)
		samples_pool_around(&idle->samples, thread, SAMPLES_BEFORE, sample);
	else if (phase->found && sample->ns >= phase->end_ns)
		samples_pool_around(&idle->samples, thread, SAMPLES_BEHIND, sample);
}

/* Between its begin and its end a profiler records; each of the two takes some time. */
static void see_profiler(struct idle *idle, const struct process *process,
			 const struct stack *place, uint64_t ns)
{
	struct profiler_use *use = &idle->profilers[process->trace->index];
	const struct phase *phase = &idle->accounts->expect->phases.all[process->trace->index];
	bool ends;
	const char *name = idle_profiler_of_stack(place, &ends);

	if (!name)
		return;
	if (ends && use->begun_ns) {
		use->name = name;
		use->ns += min_u64(ns, phase->end_ns) -
			   min_u64(max_u64(use->begun_ns, phase->begin_ns),
				   min_u64(ns, phase->end_ns));
	}
	use->begun_ns = ends ? 0 : ns;
}

/* It stands in the sampler's stream. */
static void see_sample(struct idle *idle, const struct record *record)
{
	const struct sample_record sample = decode_sample(record);
	struct process *process = record->thread->process;
	const struct stack *place = model_sampled(process, sample.place);
	const struct thread *thread = model_find_thread(idle->accounts->model, process, sample.tid);
	const struct stack **held_at = &idle->gil_held_at[record->process];

	if (sample.state & SPY_SAMPLE_HOLDER) {
		*held_at = place;
		return;
	}
	if (thread && sample.state & SPY_SAMPLE_RAN)
		in_c_see(&idle->in_c, place, sample.weight_us);
	if (sample.state & SPY_SAMPLE_RAN)
		see_profiler(idle, process, place, sample.ns);
	if (thread && sample.weight_us) {
		const struct host_sample found = {.ns = sample.ns,
						  .weight_us = sample.weight_us,
						  .place = place,
						  .holder = sample.holder,
						  .held_at = sample.holder ? *held_at : NULL,
						  .state = sample.state};

		host_see_sample(host_thread_get(&idle->threads, thread), &found);
		see_around(idle, thread, &found);
	}
	*held_at = NULL;
}

void idle_see(struct idle *idle, const struct record *record, uint64_t in_calls_ns)
{
	const struct thread_account *c = thread_account_of(idle->accounts, record->thread);

	if (unlikely(record->event == SPY_EV_SAMPLE))
		see_sample(idle, record);
	else if (unlikely(record->event == SPY_EV_GPU_LOOK))
		gpu_looks_see(idle, record);
	else if (record->event == SPY_EV_COPY)
		gpu_looks_see_copy(idle, record);
	if (!c)
		return;
	switch (record->event) {
	case SPY_EV_OUTSIDE:
		host_see_wait(&idle->threads, host_thread_get(&idle->threads, record->thread),
			      record);
		see_found_done(idle, record, c);
		break;
	case SPY_EV_HOST_FUNCTION:
		functions_see_run(idle, record);
		break;
	case SPY_EV_GAP:
		host_see_gap(host_thread_get(&idle->threads, record->thread), c, record);
		__attribute__((fallthrough));
	case SPY_EV_SCHED:
		busy_see_look(host_thread_get(&idle->threads, record->thread),
			      &idle->accounts->expect->phases.all[record->process], record,
			      in_calls_ns);
		break;
	default:
		break;
	}
	if (!record_is_outer_call(record))
		return;
	see_device(idle, record, c, in_calls_ns);
	see_thread(idle, record, c, in_calls_ns);
	if (record->duration_ns >= SPY_LOOKED_AT_NS &&
	    phase_has(&idle->accounts->expect->phases, record->process, record->ns))
		loops_see_call(&host_thread_get(&idle->threads, record->thread)->loops,
			       completed_call_at(&c->ring, c->ring.n - 1));
}
