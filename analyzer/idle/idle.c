/*
 * analyzer/idle/idle.c: when GPUs certainly had nothing to do, and what is charged for it. Called by
 * the main reading for each record that does not go the fast path: the first submission after a
 * drain never does.
 */
#include <stdlib.h>
#include "account/streams.h"
#include "idle.h"

void idle_init(struct idle *idle, struct accounting *accounts)
{
	*idle = (struct idle){.accounts = accounts};
	idle->users = xcalloc(accounts->model->n_processes * WORK_DEVICES, sizeof(*idle->users));
	idle->recorded = xcalloc(accounts->model->n_processes + 1, sizeof(*idle->recorded));
	idle->due_ns = UINT64_MAX;
}

void idle_release(struct idle *idle)
{
	struct idle_gpu_name *name, *next;
	size_t i, k;

	for (i = 0; i < idle->n_gpus; i++) {
		const struct idle_gpu *gpu = &idle->gpus[i];

		for (k = 0; k < gpu->intervals_size && k < gpu->n_intervals; k++)
			free(gpu->intervals[k].charges);
		free(idle->gpus[i].processes);
		free(idle->gpus[i].intervals);
	}
	HASH_EMPTY (idle->names, name, next)
		free(name);
	free(idle->gpus);
	free(idle->users);
	free(idle->recorded);
	gpu_ops_release(&idle->ops);
	free(idle->range_ns);
	host_threads_release(&idle->threads);
	idle_sums_release(&idle->sums);
	*idle = (struct idle){0};
}

/* ---- which GPU ------------------------------------------------------------------------------- */

static bool same_gpu(const struct idle_gpu *known, const struct process *process,
		     const struct gpu *gpu)
{
	const struct gpu *named = idle_named(known);

	return named && named->uuid && known->processes[0]->trace->host == process->trace->host &&
	       !strcmp(named->uuid, gpu->uuid);
}

/* Of a GPU that has a name: the one that was found under it, or where to keep it. */
static struct idle_gpu_name *name_of(struct idle *idle, const struct process *process,
				     const struct gpu *gpu)
{
	uint64_t key = hash_key(gpu->uuid, strlen(gpu->uuid)) |
		       (uint64_t)process->trace->host->index << 32;
	struct idle_gpu_name *name;

	HASH_FIND(hh, idle->names, &key, sizeof(key), name);
	if (!name) {
		name = xcalloc(1, sizeof(*name));
		name->key = key;
		HASH_ADD(hh, idle->names, key, sizeof(name->key), name);
	}
	return name;
}

/* Processes see the same GPU under different numbers: its uuid tells. */
static uint32_t find_gpu(struct idle *idle, const struct process *process, uint8_t device)
{
	const struct gpu *gpu = model_gpu(process, device);
	struct idle_gpu_name *name = gpu && gpu->uuid ? name_of(idle, process, gpu) : NULL;
	uint32_t number = (uint32_t)idle->n_gpus + 1;
	struct idle_gpu *found;

	if (name && name->gpu && same_gpu(&idle->gpus[name->gpu - 1], process, gpu)) {
		number = name->gpu;
	} else {
		idle->gpus = grow(idle->gpus, idle->n_gpus, sizeof(*idle->gpus));
		idle->gpus[idle->n_gpus++] =
			(struct idle_gpu){.born = moment_now(), .device = device, .left_out = true};
		if (name)
			name->gpu = number;
		if (idle->journal)
			journal_add(idle->journal, JOURNAL_GPU)->gpu = number - 1;
	}
	found = &idle->gpus[number - 1];
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

static struct idle_gpu *gpu_of_user(struct idle *idle, struct idle_user *user,
				    const struct process *process, uint8_t device)
{
	if (!user->gpu) {
		user->gpu = find_gpu(idle, process, device == SPY_DEVICE_NONE ? 0 : device);
		idle->n_devices = (uint32_t)max_u64(idle->n_devices, device + 1u);
	}
	return &idle->gpus[user->gpu - 1];
}

struct idle_gpu *idle_gpu_of(struct idle *idle, const struct process *process, uint8_t device)
{
	size_t index = work_index(&idle->accounts->work, process->trace->index, device);

	return gpu_of_user(idle, &idle->users[index], process, device);
}

/* ---- intervals ------------------------------------------------------------------------------- */

struct charging {
	struct idle *idle;
	struct idle_interval *interval;
	uint64_t owner;
	const struct process *process;
};

static void charge(void *data, const struct idle_part *part, uint64_t ns)
{
	struct charging *c = data;
	struct idle_interval *interval = c->interval;
	struct idle_sum *sum = idle_sums_add(&c->idle->sums, c->owner, c->process, part, ns);
	size_t i = 0;

	idle_sum_follow(c->idle->accounts, &c->idle->threads, sum, part, ns);
	while (i < interval->n_charges && interval->charges[i].sum != sum)
		i++;
	if (i == interval->n_charges) {
		interval->charges = grow(interval->charges, i, sizeof(*interval->charges));
		interval->charges[interval->n_charges++] = (struct idle_charge){.sum = sum};
	}
	interval->charges[i].ns += ns;
}

static uint64_t *idle_of_range(struct idle *idle, const struct range_name *name)
{
	while (idle->n_ranges <= name->index) {
		idle->range_ns = grow(idle->range_ns, idle->n_ranges, sizeof(*idle->range_ns));
		idle->range_ns[idle->n_ranges++] = 0;
	}
	return &idle->range_ns[name->index];
}

/* No later call can take any of it back. */
static void show_interval(const struct idle *idle, const struct idle_gpu *gpu,
			  const struct idle_interval *interval)
{
	const struct listener *listener = idle->accounts->listener;
	const struct idle_charge *most = NULL;
	size_t i;

	if (!listener || !listener->on_idle || !interval->ns)
		return;
	for (i = 0; i < interval->n_charges; i++)
		if (!most || interval->charges[i].ns > most->ns)
			most = &interval->charges[i];
	listener->on_idle(listener->data,
			  &(struct shown_idle){.gpu = (uint32_t)(gpu - idle->gpus),
					       .cause = most ? (uint8_t)most->sum->key.cause
							     : IDLE_UNEXPLAINED,
					       .begin_ns = interval->begin_ns,
					       .end_ns = interval->end_ns,
					       .ns = interval->ns});
}

void idle_show_rest(const struct idle *idle)
{
	size_t i;
	uint64_t k;

	for (i = 0; i < idle->n_gpus; i++) {
		const struct idle_gpu *gpu = &idle->gpus[i];
		uint64_t kept = min_u64(gpu->n_intervals, gpu->intervals_size);

		for (k = gpu->n_intervals - kept; k < gpu->n_intervals; k++)
			show_interval(idle, gpu, &gpu->intervals[k % gpu->intervals_size]);
	}
}

struct idle_interval *idle_next_interval(struct idle_gpu *gpu)
{
	gpu->intervals = ring_grow(gpu->intervals, &gpu->intervals_size, gpu->n_intervals,
				   IDLE_KEPT, sizeof(*gpu->intervals));
	return &gpu->intervals[gpu->n_intervals++ % gpu->intervals_size];
}

/* For GPUs of other parts. */
static struct journal_entry *write_down(struct idle *idle, const struct idle_gpu *gpu,
					enum journal_kind kind)
{
	uint32_t index = (uint32_t)(gpu - idle->gpus);
	struct journal_entry *entry;

	if (!idle->journal || index >= IDLE_PAIRED)
		return NULL;
	entry = journal_add(idle->journal, kind);
	entry->gpu = index;
	return entry;
}

/* The GPU had nothing to do until the thread of `c` began a call. */
static void end_idle(struct idle *idle, struct idle_gpu *gpu, const struct thread_account *c,
		     uint64_t until_ns)
{
	const struct process *process = c->thread->process;
	const struct phase *phase = &idle->accounts->expect->phases.all[process->trace->index];
	uint64_t begin_ns = max_u64(gpu->since_ns, phase->begin_ns);
	uint64_t end_ns = min_u64(until_ns, phase->end_ns);
	struct idle_charge *charges = NULL;
	struct idle_interval *interval;
	struct journal_entry *entry;

	gpu->since_ns = 0;
	if (begin_ns >= end_ns)
		return;
	interval = idle_next_interval(gpu);
	if (gpu->n_intervals > gpu->intervals_size) { /* the place of an old one */
		show_interval(idle, gpu, interval);
		charges = interval->charges;
	}
	*interval = (struct idle_interval){
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.ns = end_ns - begin_ns,
		.charges = charges,
		.range = ranges_innermost(&idle->accounts->ranges, c->thread)};
	gpu->idle_ns += interval->ns;
	entry = write_down(idle, gpu, JOURNAL_IDLE);
	if (entry) {
		entry->idle.begin_ns = begin_ns;
		entry->idle.end_ns = end_ns;
	}
	idle_together(idle->gpus, idle->n_gpus, (size_t)(gpu - idle->gpus), interval);
	if (interval->range)
		*idle_of_range(idle, interval->range) += interval->ns;
	host_divide(idle->accounts, host_thread_find(&idle->threads, c->thread), c, begin_ns,
		    end_ns, charge,
		    &(struct charging){.idle = idle,
				       .interval = interval,
				       .owner = idle_owner_gpu((size_t)(gpu - idle->gpus)),
				       .process = process});
}

static void shrink(struct idle *idle, struct idle_gpu *gpu, struct idle_interval *interval,
		   uint64_t by_ns)
{
	uint64_t left_ns = interval->ns - by_ns, rest_ns = by_ns, ns;
	size_t i;

	for (i = 0; i < interval->n_charges; i++) {
		struct idle_charge *part = &interval->charges[i];

		ns = i + 1 < interval->n_charges
			     ? (uint64_t)((double)part->ns * (double)by_ns / (double)interval->ns)
			     : rest_ns;
		ns = min_u64(min_u64(ns, rest_ns), part->ns);
		part->ns -= ns;
		part->sum->ns -= ns;
		rest_ns -= ns;
	}
	for (i = 0; rest_ns && i < interval->n_charges; i++) { /* what rounding has left */
		ns = min_u64(rest_ns, interval->charges[i].ns);
		interval->charges[i].ns -= ns;
		interval->charges[i].sum->ns -= ns;
		rest_ns -= ns;
	}
	interval->ns = left_ns;
	if (interval->range)
		*idle_of_range(idle, interval->range) -= by_ns;
	gpu->idle_ns -= by_ns;
}

/* A call that may have handed work to the GPU was going on all that time. */
static void take_back(struct idle *idle, struct idle_gpu *gpu, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t i, least = gpu->n_intervals > IDLE_KEPT ? gpu->n_intervals - IDLE_KEPT : 0;
	struct journal_entry *entry;

	for (i = gpu->n_intervals; i > least; i--) {
		struct idle_interval *interval = &gpu->intervals[(i - 1) % gpu->intervals_size];
		uint64_t from_ns, to_ns;

		if (interval->end_ns <= begin_ns)
			return;
		from_ns = max_u64(interval->begin_ns, begin_ns);
		to_ns = min_u64(interval->end_ns, end_ns);
		if (from_ns < to_ns && interval->ns) {
			uint64_t by_ns = min_u64(to_ns - from_ns, interval->ns);

			entry = write_down(idle, gpu, JOURNAL_TAKEN_BACK);
			if (entry) {
				entry->idle.number = i - 1;
				entry->idle.by_ns = by_ns;
			}
			shrink(idle, gpu, interval, by_ns);
		}
	}
	if (least && gpu->intervals[least % gpu->intervals_size].begin_ns > begin_ns)
		gpu->doubt_ns += gpu->intervals[least % gpu->intervals_size].begin_ns - begin_ns;
}

uint64_t idle_certain_ns(const struct idle_gpu *gpu)
{
	return gpu->idle_ns - min_u64(gpu->doubt_ns, gpu->idle_ns);
}

uint64_t idle_scaled_ns(const struct idle_gpu *gpu, uint64_t ns)
{
	if (!gpu->doubt_ns || !gpu->idle_ns || idle_gpu_is_exact(gpu))
		return ns;
	return (uint64_t)((double)ns * (double)idle_certain_ns(gpu) / (double)gpu->idle_ns);
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

/* Threads that wait for a GPU show that it works, but for what it takes to wake them. */
#define WAKING_NS 100000

static void see_wait_for(struct idle_gpu *gpu, const struct phase *phase,
			 const struct completed_call *f)
{
	uint64_t ns = completed_ns(f, BUCKET_GPU_INTENDED) + completed_ns(f, BUCKET_GPU_HIDDEN);
	uint64_t begin_ns = f->end_ns - min_u64(ns, f->end_ns - f->begin_ns), end_ns = f->end_ns;

	if (ns <= WAKING_NS)
		return;
	end_ns = min_u64(end_ns - WAKING_NS, phase->end_ns);
	begin_ns = max_u64(begin_ns, max_u64(phase->begin_ns, gpu->waited_until_ns));
	if (begin_ns >= end_ns)
		return;
	gpu->waited_ns += end_ns - begin_ns;
	gpu->waited_until_ns = end_ns;
}

static void see_turn(struct idle_gpu *gpu, const struct recent_ops *recent_ops)
{
	gpu->turns++;
	gpu->turns_brought += recent_ops->brought_before;
	gpu->turns_across += recent_ops->device_before == SPY_DEVICE_NONE;
}

static void set_busy(struct idle_gpu *gpu, struct idle_user *user, bool busy)
{
	if (user->busy == busy)
		return;
	user->busy = busy;
	gpu->n_busy += busy ? 1 : (size_t)-1;
}

/* What was handed over while recording was dormant, and before, is done: but for streams that it does not wait for. */
static bool waits_for_work(const struct record *record)
{
	return !call_failed(&record->raw->call_head) &&
	       (record->contract == SPY_CONTRACT_STREAM ||
		record->contract == SPY_CONTRACT_DEVICE ||
		record->contract == SPY_CONTRACT_COPY_SYNC);
}

void idle_see_dormant(struct idle *idle, size_t process)
{
	uint32_t device;

	for (device = 0; device < WORK_DEVICES; device++) {
		struct idle_user *user =
			&idle->users[work_index(&idle->accounts->work, process, device)];

		user->unseen = true;
		if (!user->gpu)
			continue;
		set_busy(&idle->gpus[user->gpu - 1], user, true);
		idle->gpus[user->gpu - 1].since_ns = 0;
	}
}

static void see_device(struct idle *idle, const struct record *record,
		       const struct thread_account *c)
{
	uint8_t device = record->raw->call_head.device;
	size_t index = streams_device_index(&idle->accounts->work, record);
	const struct device_streams *d = &idle->accounts->work.devices[index];
	struct idle_user *user = &idle->users[index];
	uint64_t begin_ns = record->ns - min_u64(record->duration_ns, record->ns);
	uint64_t handed_over = d->handed_over + d->others;
	const struct process *process = record->thread->process;
	struct idle_gpu *gpu;
	bool submits;

	if (!user->gpu && !handed_over)
		return;
	gpu = gpu_of_user(idle, user, process, device);
	submits = user->handed_over != handed_over || may_submit(record->contract);
	user->handed_over = handed_over;
	if (submits && gpu->since_ns && begin_ns > gpu->since_ns)
		end_idle(idle, gpu, c, begin_ns);
	if (submits) {
		gpu->since_ns = 0;
		take_back(idle, gpu, begin_ns, record->ns);
	}
	see_wait_for(gpu, &idle->accounts->expect->phases.all[record->process],
		     completed_call_at(&c->ring, c->ring.n - 1));
	if (user->busy && !streams_outstanding(d))
		see_turn(gpu, &c->recent_ops);
	if (unlikely(user->unseen) && waits_for_work(record))
		user->unseen = false;
	set_busy(gpu, user, streams_outstanding(d) || user->unseen);
	if (!gpu->n_busy && !gpu->since_ns)
		gpu->since_ns = record->ns;
}

/* ---- a thread's own account ------------------------------------------------------------------ */

struct own_account {
	struct idle *idle;
	const struct thread *thread;
};

static void add_own(void *data, const struct idle_part *part, uint64_t ns)
{
	const struct own_account *own = data;

	idle_sum_follow(own->idle->accounts, &own->idle->threads,
			idle_sums_add(&own->idle->sums, idle_owner_thread(own->thread),
				      own->thread->process, part, ns),
			part, ns);
}

/* The thread's time since the last such call: the gap before this one part by part; other gaps were
 * short, and nothing was recorded in them. */
static void see_thread(struct idle *idle, const struct record *record,
		       const struct thread_account *c, uint64_t in_calls_ns)
{
	struct host_thread *h = host_thread_get(&idle->threads, record->thread);
	const struct completed_call *f = completed_call_at(&c->ring, c->ring.n - 1);
	uint64_t since_ns = h->seen_ns, before_ns = h->seen_in_calls_ns, gap_ns, short_ns, calls_ns;
	uint64_t gap_begin_ns =
		c->ring.n > 1 ? completed_call_at(&c->ring, c->ring.n - 2)->end_ns : f->begin_ns;

	h->in_python |= f->stack && f->stack->n_python;
	h->seen_ns = record->ns;
	h->seen_in_calls_ns = in_calls_ns;
	if (!since_ns || since_ns < record->thread->process->opened_ns ||
	    !phase_has(&idle->accounts->expect->phases, record->process, since_ns) ||
	    !phase_has(&idle->accounts->expect->phases, record->process, record->ns))
		return;
	calls_ns = min_u64(in_calls_ns - before_ns, record->ns - since_ns);
	h->in_calls_ns += calls_ns;
	h->outside_ns += record->ns - since_ns - calls_ns;
	if (gap_begin_ns < since_ns)
		gap_begin_ns = since_ns;
	gap_ns = f->begin_ns > gap_begin_ns ? f->begin_ns - gap_begin_ns : 0;
	gap_ns = min_u64(gap_ns, record->ns - since_ns - calls_ns);
	short_ns = record->ns - since_ns - calls_ns - gap_ns;
	if (gap_ns)
		host_divide(idle->accounts, h, c, f->begin_ns - gap_ns, f->begin_ns, add_own,
			    &(struct own_account){.idle = idle, .thread = record->thread});
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

void idle_see(struct idle *idle, const struct record *record, uint64_t in_calls_ns)
{
	const struct thread_account *c = thread_account_of(idle->accounts, record->thread);

	if (!c)
		return;
	if (record->raw->other.event == SPY_EV_OUTSIDE)
		host_see_wait(host_thread_get(&idle->threads, record->thread), record);
	else if (record->raw->other.event == SPY_EV_GAP)
		host_see_gap(host_thread_get(&idle->threads, record->thread), c, record);
	if (!record_is_call(record->raw) || record->raw->call_head.depth)
		return;
	see_device(idle, record, c);
	see_thread(idle, record, c, in_calls_ns);
}
