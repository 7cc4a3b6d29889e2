/*
 * analyzer/account/account.c: where the time of each call of the application went. Called by the
 * main reading for each record.
 */
#include <stdlib.h>
#include <utlist.h>
#include <string.h>
#include "account.h"
#include "divide.h"
#include "kernel_module.h"
#include "cudaspy/contract.h"

/* So many waits, and holders in them, of a thread's last calls are kept, for their waiters. */
#define WAITS_KEPT 2048

/* ---- sums ----------------------------------------------------------------------------------- */

void account_add(struct account *sum, const struct account *more)
{
	size_t i;

	sum->calls += more->calls;
	sum->total_ns += more->total_ns;
	sum->expected_ns = add_known_ns(sum->expected_ns, more->expected_ns);
	sum->asleep_ns += more->asleep_ns;
	sum->maybe_ns += more->maybe_ns;
	sum->kernel_ns += more->kernel_ns;
	sum->starting_stalls[0] += more->starting_stalls[0];
	sum->starting_stalls[1] += more->starting_stalls[1];
	for (i = 0; i < BUCKET_COUNT; i++)
		sum->bucket_ns[i] += more->bucket_ns[i];
}

uint64_t account_lost_by(const struct account *a, enum bucket bucket)
{
	if (!bucket_is_lost(bucket))
		return 0;
	return a->bucket_ns[bucket] - (bucket == BUCKET_IOCTL ? a->kernel_ns : 0);
}

uint64_t account_lost(const struct account *a)
{
	return a->total_ns - a->bucket_ns[BUCKET_OWN] - a->bucket_ns[BUCKET_LOADING] -
	       a->bucket_ns[BUCKET_GPU_INTENDED] - a->kernel_ns;
}

#define PLACES_FIRST 8 /* a line of the cache */

static void grow_places(struct function_accounts *f)
{
	uint32_t i;

	f->n_places = f->n_places ? 4 * f->n_places : PLACES_FIRST;
	free(f->places);
	f->places = xcalloc(f->n_places, sizeof(*f->places));
	for (i = 0; i < f->n; i++)
		*account_place(f, f->fns[i]) = (struct account_place){f->fns[i], i + 1};
}

struct account *account_add_function(struct function_accounts *f, uint32_t fn)
{
	if (4 * f->n >= f->n_places)
		grow_places(f);
	f->all = grow(f->all, f->n, sizeof(*f->all));
	f->fns = grow(f->fns, f->n, sizeof(*f->fns));
	f->all[f->n] = (struct account){0};
	f->fns[f->n] = fn;
	*account_place(f, fn) = (struct account_place){fn, ++f->n};
	return &f->all[f->n - 1];
}

/* ---- accounts of threads --------------------------------------------------------------------- */

struct account account_sum(const struct accounting *a, const struct process *process)
{
	struct account sum = {0};
	const struct thread *thread;
	size_t i;

	for (thread = process->threads; thread; thread = thread->next) {
		const struct thread_account *c = thread_account_of(a, thread);

		for (i = 0; c && i < c->functions.n; i++)
			account_add(&sum, &c->functions.all[i]);
	}
	return sum;
}

double account_avoidable_ns(const struct accounting *a)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < a->model->n_processes; i++)
		sum += a->processes[i].avoidable_ns;
	return sum;
}

/*
 * Threads that have ended are remembered by what they did until their process has so many; then only sums
 * are left of them, and the last call. A program may make a new thread for each piece of work. Of many processes each has
 * its share.
 */
#define REMEMBERED 1024
#define REMEMBERED_LEAST 64

static size_t remembered_most(const struct accounting *a)
{
	size_t share = REMEMBERED / (a->model->n_processes ?: 1);

	return share > REMEMBERED_LEAST ? share : REMEMBERED_LEAST;
}

static void forget_calls(struct process_account *p, struct thread_account *c)
{
	struct completed_call *last;
	size_t i;

	DL_DELETE(p->remembered, c);
	p->n_remembered--;
	for (i = 0; i < c->ring.size; i++)
		waits_free(c->ring.calls[i].waits, c->ring.calls[i].n_waits);
	last = xcalloc(1, sizeof(*last));
	if (c->ring.n)
		*last = *completed_call_at(&c->ring, c->ring.n - 1);
	last->thread = c->thread;
	last->waits = NULL;
	last->n_waits = c->waits_kept = 0;
	free(c->ring.calls);
	history_free(c->history);
	c->history = NULL;
	c->ring.calls = last;
	c->ring.size = 1;
}

/* For each new thread two of those that are remembered are looked at, so that there are few that
 * have ended. */
static void make_room(const struct accounting *a, struct process_account *p)
{
	unsigned int looks;

	for (looks = 0; looks < 2 && p->n_remembered > remembered_most(a); looks++) {
		struct thread_account *c = p->remembered;

		if (c->thread->exited_ns != UINT64_MAX) {
			forget_calls(p, c);
			continue;
		}
		DL_DELETE(p->remembered, c);
		DL_APPEND(p->remembered, c);
	}
}

struct thread_account *thread_account_add(struct accounting *a, struct thread *thread)
{
	struct process_account *p = &a->processes[thread->process->trace->index];
	struct thread_account *c;

	make_room(a, p);
	while (a->n_thread_accounts <= thread->index) {
		a->thread_accounts = grow(a->thread_accounts, a->n_thread_accounts,
					  sizeof(struct thread_account *));
		a->thread_accounts[a->n_thread_accounts++] = NULL;
	}
	c = a->thread_accounts[thread->index] = xcalloc(1, sizeof(*c));
	c->ring.most = thread->process->trace->use.gpu_times ? COMPLETED_KEPT_GPU : COMPLETED_KEPT;
	c->thread = thread;
	c->device = SPY_DEVICE_NONE;
	c->cpu_pressure = &a->cpu_pressure[thread->process->trace->host->index];
	DL_APPEND(p->remembered, c);
	p->n_remembered++;
	p->n_threads++;
	return c;
}

static void thread_account_free(struct thread_account *c)
{
	size_t i;

	waits_free(c->waits, c->n_waits);
	for (i = 0; i < c->ring.size; i++)
		waits_free(c->ring.calls[i].waits, c->ring.calls[i].n_waits);
	free(c->ring.calls);
	history_free(c->history);
	free(c->deferred);
	free(c->open);
	free(c->functions.places);
	free(c->functions.all);
	free(c->functions.fns);
	free(c);
}

/* Unknown where the metadata is lost: then as in most recordings. */
static bool was_probed(const struct metadata *metadata)
{
	return metadata_number(metadata, "probes", !metadata->frequency);
}

/* Since that version waits between calls leave records. */
#define GAPS_TOLD 6

static bool are_gaps_recorded(const struct metadata *metadata)
{
	return was_probed(metadata) &&
	       metadata_number(metadata, "trace_version", GAPS_TOLD) >= GAPS_TOLD;
}

void account_init(struct accounting *a, struct model *model, struct expect *expect,
		  const struct callstats *stats)
{
	const struct filtering *filtering = stats->filtering;
	size_t i;

	*a = (struct accounting){
		.model = model, .expect = expect, .filtering = filtering, .stats = stats};
	work_init(&a->work, model);
	ranges_init(&a->ranges, model);
	if (filter_has(filtering, FILTER_RANGE))
		a->ranges.only = filtering->filter->words.of[FILTER_RANGE];
	a->signatures = xcalloc(model->n_processes, sizeof(*a->signatures));
	a->probed = xcalloc(model->n_processes, sizeof(*a->probed));
	a->gaps_recorded = xcalloc(model->n_processes, sizeof(*a->gaps_recorded));
	a->gpus_used = xcalloc(model->n_processes, sizeof(*a->gpus_used));
	a->contexts = xcalloc(model->n_processes, sizeof(*a->contexts));
	a->processes = xcalloc(model->n_processes, sizeof(*a->processes));
	a->peers = xcalloc(model->n_processes, sizeof(*a->peers));
	a->unattributed = xcalloc(model->n_processes, sizeof(*a->unattributed));
	a->cpu_pressure = xcalloc(model->set->n_hosts, sizeof(*a->cpu_pressure));
	for (i = 0; i < model->set->n_hosts; i++)
		a->cpu_pressure[i].cpus = model->set->hosts[i].cpus;
	for (i = 0; i < model->n_processes; i++) {
		a->probed[i] = was_probed(&model->processes[i].trace->metadata);
		a->gaps_recorded[i] = are_gaps_recorded(&model->processes[i].trace->metadata);
	}
}

void account_release(struct accounting *a)
{
	size_t i;

	for (i = 0; i < a->n_thread_accounts; i++)
		if (a->thread_accounts[i])
			thread_account_free(a->thread_accounts[i]);
	for (i = 0; a->signatures && i < a->model->n_processes; i++) {
		signatures_release(&a->signatures[i]);
		peers_release(&a->peers[i]);
		unattributed_release(&a->unattributed[i]);
	}
	free(a->thread_accounts);
	free(a->signatures);
	free(a->ioctls);
	free(a->probed);
	free(a->gaps_recorded);
	free(a->gpus_used);
	free(a->contexts);
	locks_release(&a->locks);
	work_release(&a->work);
	free(a->peers);
	free(a->processes);
	ranges_release(&a->ranges);
	for (i = 0; a->cpu_pressure && i < a->model->set->n_hosts; i++)
		cpu_pressure_release(&a->cpu_pressure[i]);
	free(a->cpu_pressure);
	blame_release(&a->blame);
	kernel_overlap_release(&a->kernel_overlap);
	free(a->unattributed);
	*a = (struct accounting){0};
}

/* ---- a call --------------------------------------------------------------------------------- */

/* The ring begins small: most threads make few calls. */
void account_grow_ring(struct thread_account *c)
{
	size_t size = c->ring.size ? 4 * c->ring.size : 4, i;
	struct completed_call *ring = xcalloc(size, sizeof(*ring));

	for (i = 0; i < c->ring.size; i++) {
		uint64_t number = c->ring.n - c->ring.size + i;

		ring[number % size] = c->ring.calls[number % c->ring.size];
	}
	for (i = 0; i < size; i++)
		ring[i].thread = c->thread;
	free(c->ring.calls);
	c->ring.calls = ring;
	c->ring.size = size;
}

/* What the call's waits take of memory: each wait, and each hold interval of its lock. */
static size_t weight_of_waits(const struct completed_call *f)
{
	size_t weight = f->n_waits, i;

	for (i = 0; i < f->n_waits; i++)
		weight += f->waits[i].n_intervals;
	return weight;
}

static void forget_waits(struct thread_account *c, struct completed_call *f)
{
	c->waits_kept -= weight_of_waits(f);
	waits_free(f->waits, f->n_waits);
	f->waits = NULL;
	f->n_waits = 0;
}

/* A call that lost time makes room for a newer one. */
void account_forget(struct thread_account *c, struct completed_call *f)
{
	if (!c->history)
		c->history = xcalloc(1, sizeof(*c->history));
	history_add(c->history, f);
	forget_waits(c, f);
}

/* The oldest calls go without theirs. */
static void bound_waits(struct thread_account *c)
{
	uint64_t number = c->ring.n > c->ring.size ? c->ring.n - c->ring.size : 0;

	for (; c->waits_kept > WAITS_KEPT && number + 1 < c->ring.n; number++) {
		struct completed_call *f = completed_call_at(&c->ring, number);

		if (f->divided && f->waits)
			forget_waits(c, f);
	}
}

static uint64_t slept_ns(const struct completed_call *f)
{
	uint64_t ns = 0;
	size_t i;

	for (i = 0; i < f->n_waits; i++)
		if (wait_asleep(&f->waits[i]))
			ns += f->waits[i].ns;
	return ns;
}

static void book_division(struct account *account, const struct completed_call *f)
{
	size_t i;

	for (i = 0; i < BUCKET_COUNT; i++)
		account->bucket_ns[i] += f->bucket_ns[i];
	account->kernel_ns += f->kernel_ns;
	account->asleep_ns += min_u64(slept_ns(f), f->bucket_ns[BUCKET_UNEXPLAINED]);
	if (f->awaits)
		account->maybe_ns += completed_lost(f);
}

/* The call counts. */
static void book_call(struct thread_account *c, const struct completed_call *f)
{
	struct account *account = account_of(&c->functions, f->fn);

	account_book(account, f);
	if (!f->divided)
		return;
	book_division(account, f);
	c->lost_ns += completed_lost(f);
	c->gpu_ns += f->bucket_ns[BUCKET_GPU_INTENDED] + f->bucket_ns[BUCKET_GPU_HIDDEN];
	c->lock_ns += f->bucket_ns[BUCKET_LOCK];
}

/* Pinned or managed: memory that every GPU of the process has to know of. */
static bool about_host_memory(const struct record *record)
{
	const struct spy_rec_memory *memory = record_memory(record);

	return memory && (memory->kind == SPY_MEM_PINNED || memory->kind == SPY_MEM_MANAGED);
}

static void share_ioctls(struct accounting *a, const struct thread_account *c,
			 const struct record *record, struct completed_call *f)
{
	uint64_t used = a->gpus_used[record->process];
	double avoidable_ns = 0, avoidable_behind_ns = 0;
	size_t i;

	kernel_module_share(c->waits, c->n_waits, about_host_memory(record),
			    (unsigned int)__builtin_popcountll(used));
	for (i = 0; i < c->n_waits; i++) {
		avoidable_ns += (double)c->waits[i].ns * (double)c->waits[i].avoidable;
		avoidable_behind_ns +=
			(double)c->waits[i].ns * (double)c->waits[i].avoidable_behind;
	}
	f->avoidable_ns = min_u64((uint64_t)avoidable_behind_ns, f->bucket_ns[BUCKET_IOCTL]);
	if (avoidable_ns > (double)f->bucket_ns[BUCKET_IOCTL])
		avoidable_ns = (double)f->bucket_ns[BUCKET_IOCTL];
	if (!c->left_out)
		a->processes[record->process].avoidable_ns += avoidable_ns;
}

/* What the scheduler says of them is known, or never will be. */
static void settle_waits(struct thread_account *c)
{
	size_t i;

	for (i = 0; i < c->n_waits; i++)
		holders_settle(&c->waits[i]);
}

/* A call that took longer than such calls do, or in which the probes saw something. */
static void divide_slow(struct accounting *a, struct thread_account *c, const struct record *record,
			const struct call_class *class, const struct gpu_waits *waits, bool cold,
			struct completed_call *f)
{
	bool known;

	memset(f->bucket_ns, 0, sizeof(f->bucket_ns));
	f->avoidable_ns = 0;
	holders_fit(c->waits, c->n_waits, f->end_ns - f->begin_ns);
	f->divided = true;
	known = divide(a, c, record, class, waits, cold, f);
	f->awaits = gpu_wait_is_for_work(waits) &&
		    work_awaited(&a->work, &c->stream, record, waits) > 0;
	if (unlikely(cold) && known) /* each costs what it costs: others say nothing of this one */
		f->expected_ns = f->bucket_ns[BUCKET_OWN] + f->kernel_ns;
	if (c->n_waits)
		share_ioctls(a, c, record, f);
	settle_waits(c);
	f->waits = c->waits;
	f->n_waits = c->n_waits;
	c->waits = NULL;
	c->n_waits = 0;
	c->waits_kept += weight_of_waits(f);
	if (unlikely(c->waits_kept > WAITS_KEPT))
		bound_waits(c);
	if (f->bucket_ns[BUCKET_NOT_RUNNING])
		cpu_pressure_lack(c->cpu_pressure, cpu_pressure_slice(c->cpu_pressure, f->end_ns),
				  f->bucket_ns[BUCKET_NOT_RUNNING]);
	if (phase_has(&a->expect->phases, record->process, f->end_ns))
		c->not_running_working_ns += f->bucket_ns[BUCKET_NOT_RUNNING];
	if (c->sched_window_ns)
		c->busy_wait_ns += divide_busy_wait(c, f);
	c->sched_window_ns = c->not_running_ns = c->running_ns = 0;
}

/* Why the call waited for the GPU, if it did. */
static const char *why_waited(const struct completed_call *f, const struct gpu_waits *waits)
{
	if (waits->sort == GPU_WAIT_QUEUE && f->bucket_ns[BUCKET_GPU_HIDDEN])
		return "a kernel's first launch may have to load it, behind all work of the device";
	return waits->why;
}

static void spread_blame(struct accounting *a, const struct completed_call *f, const char *why)
{
	uint64_t lost_ns = completed_lost(f);

	if (f->n_waits || lost_ns > a->blame.least_lost_ns)
		blame_waits(a, f, worst_call_add(a, f, lost_ns, why));
	unattributed_remember(a, f);
}

static struct site *observe(struct accounting *a, struct thread_account *c,
			    const struct record *record, const struct call_class *class,
			    const struct gpu_waits *waits, bool cold,
			    const struct completed_call *f)
{
	return a->observer->on_call(a->observer, &(struct observed){.accounts = a,
								    .account = c,
								    .record = record,
								    .call = f,
								    .class = class,
								    .waits = waits,
								    .contract = record->contract,
								    .cold = cold});
}

static inline void count_cpu_pressure(struct thread_account *c, const struct completed_call *f)
{
	struct cpu_pressure *cpu_pressure = c->cpu_pressure;

	if (likely(cpu_pressure_slice(cpu_pressure, f->end_ns) < c->slices))
		return;
	if (unlikely(!cpu_pressure->begin_ns))
		cpu_pressure->begin_ns = f->begin_ns;
	cpu_pressure_add(cpu_pressure, &c->slices, cpu_pressure_slice(cpu_pressure, f->begin_ns),
			 cpu_pressure_slice(cpu_pressure, f->end_ns));
}

static inline uint64_t expected_of(const struct call_class *class)
{
	return class->source == EXPECT_NONE ? UNKNOWN_NS : class->expected_ns;
}

/* The call becomes the newest of its thread's recent operations. */
static inline void recent_op_add(struct accounting *a, struct thread_account *c,
				 const struct record *record,
				 const struct call_signature *signature,
				 const struct completed_call *f, bool cold)
{
	bool submitted = work_see(&a->work, &c->stream, record, signature);

	recent_ops_see(&c->recent_ops, record, signature,
		       &(struct recent_op){.begin_ns = f->begin_ns,
					   .end_ns = f->end_ns,
					   .own_ns = completed_ns(f, BUCKET_OWN),
					   .submitted = submitted,
					   .cold = cold});
}

/* The first of its signature. Which ones of those that took no longer than their own work do
 * detectors ask for? */
static void meet(const struct observer *observer, const struct record *record,
		 struct call_signature *signature)
{
	uint32_t asked = observer ? observer->always : 0;

	if (observer && signature->copy) {
		asked |= copy_is_pageable(record_copy(record)) ? observer->pageable : 0;
		asked |= copy_is_between_gpus(record_copy(record)) ? observer->peer : 0;
		signature->asked_in_run = observer->in_run >> signature->contract & 1;
	}
	signature->asked = asked >> signature->contract & 1;
}

/* Is the call cold? If not, nor will others of its signature be. */
static bool is_cold(struct accounting *a, const struct record *record,
		    struct call_signature *signature)
{
	if (signature->class)
		return false;
	if (!signature->failed && expect_cold(a->expect, record))
		return true;
	signature->class = expect_class(a->expect, record, record->fn, false);
	signature->own_most_ns = divide_own_limit(signature->class);
	signature->expected_ns = expected_of(signature->class);
	return false;
}

static inline bool is_asked_for(const struct thread_account *c, const struct record *record,
				const struct call_signature *signature)
{
	return signature->asked ||
	       (signature->asked_in_run && recent_ops_in_run(&c->recent_ops.run, record));
}

/* A call of contract INIT. */
static void see_context(struct accounting *a, const struct record *record)
{
	struct contexts *contexts = &a->contexts[record->process];

	if (record->duration_ns < ACCOUNT_LONG_NS || record_failed(record))
		return;
	if (a->model->set->functions.all[record->fn].does == FUNCTION_ENDS_CONTEXT)
		contexts->ended++;
	else if (contexts->ended)
		contexts->made_again++;
}

/* Had the thread made no call for long? f: the call, which is in the ring already. */
static bool is_rested(const struct thread_account *c, const struct completed_call *f)
{
	return c->ring.n < 2 ||
	       f->begin_ns >= completed_call_at(&c->ring, c->ring.n - 2)->end_ns + EXPECT_PAUSE_NS;
}

/* f: what all calls have in common is filled in. */
static __attribute__((noinline)) void account_slow(struct accounting *a, struct thread_account *c,
						   const struct record *record,
						   struct call_signature *signature,
						   struct completed_call *f)
{
	const struct gpu_waits *waits = signature->waits;
	struct call_class *class;
	bool cold = is_cold(a, record, signature);

	class = cold ? expect_class(a->expect, record, record->fn, true) : signature->class;
	c->rested = is_rested(c, f);
	f->expected_ns = expected_of(class);
	if (c->rested && class->rested_ns && record->duration_ns > class->expected_ns)
		f->expected_ns = min_u64(class->rested_ns, record->duration_ns);
	if (!signature->failed)
		expect_count(class, record->duration_ns);
	if (unlikely(!signature->first_seen))
		meet(a->observer, record, signature);
	if (c->n_waits || c->sched_window_ns || cold ||
	    record->duration_ns > divide_own_limit(class))
		divide_slow(a, c, record, class, waits, cold, f);
	if (a->observer && !c->left_out &&
	    (f->divided || signature->failed || c->n_open || c->starts_up ||
	     is_asked_for(c, record, signature)))
		f->site = observe(a, c, record, class, waits, cold, f);
	if (signature->contract == SPY_CONTRACT_INIT)
		see_context(a, record);
	if (!c->left_out)
		book_call(c, f);
	recent_op_add(a, c, record, signature, f, cold);
	signature->first_seen = true;
	signature->plain =
		signature->class && !signature->failed && !signature->asked && !signature->peers;
	if (signature->peers)
		peers_see(&a->peers[record->process], a->model, record);
	if (f->divided && !c->left_out)
		spread_blame(a, f, why_waited(f, waits));
	if (c->n_deferred)
		blame_resolve_deferred(a, c);
}

/* Is nothing to be said of the call but that there was such a one, and how long it took? */
static inline bool is_plain(const struct thread_account *c, const struct record *record,
			    const struct call_signature *signature)
{
	return likely(signature->plain) && likely(record->duration_ns <= signature->own_most_ns) &&
	       likely(!(c->n_waits | c->sched_window_ns | c->n_open | c->n_deferred |
			c->starts_up)) &&
	       !(signature->asked_in_run && recent_ops_in_run(&c->recent_ops.run, record));
}

void account_call(struct accounting *a, const struct record *record)
{
	struct thread_account *c = thread_account_get(a, record->thread);
	struct call_signature *signature = signature_find(&a->signatures[record->process],
							  a->expect, record->stream->trace, record);
	struct completed_call *f = completed_call_next(c);

	account_set_device(a, c, record->device);
	f->device = c->device;
	account_remember(f, record->fn, record, record->duration_ns, record->thread);
	count_cpu_pressure(c, f);
	c->recent_ops.progress_calls += signature->progress_calls;
	if (is_plain(c, record, signature)) {
		f->expected_ns = signature->expected_ns;
		expect_count(signature->class, record->duration_ns);
		if (likely(!c->left_out))
			account_book(account_of(&c->functions, f->fn), f);
		recent_op_add(a, c, record, signature, f, false);
	} else {
		account_slow(a, c, record, signature, f);
	}
	c->starts_up = c->gap_recorded = false;
}

void account_nested(struct accounting *a, const struct record *record)
{
	if (record->contract != SPY_CONTRACT_INIT)
		return;
	thread_account_get(a, record->thread)->starts_up = true;
	see_context(a, record);
}

void account_finish(struct accounting *a)
{
	size_t i;

	for (i = 0; i < a->n_thread_accounts; i++)
		if (a->thread_accounts[i])
			settle_waits(a->thread_accounts[i]);
	for (i = 0; i < a->model->set->n_hosts; i++)
		cpu_pressure_settle(&a->cpu_pressure[i]);
	unattributed_finish(a);
	blame_finish(a);
}
