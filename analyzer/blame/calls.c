/*
 * analyzer/blame/calls.c: each call of the application: its time is divided, and what it lost is put down to those it waited
 * for. Called by the main reading for each call.
 */
#include "calls.h"
#include "holders.h"
#include "observer.h"
#include "account/book.h"
#include "account/divide.h"
#include "account/kernel_module.h"
#include "account/run_ahead.h"
#include "cudaspy/contract.h"

static uint64_t slept_ns(const struct completed_call *f)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < f->n_waits; i++)
		if (wait_asleep(&f->waits[i]))
			ns += f->waits[i].ns;
	return ns;
}

static void book_division(struct account *account, const struct completed_call *f)
{
	for (size_t i = 0; i < BUCKET_COUNT; i++)
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

	kernel_module_share(c->waits, c->n_waits, about_host_memory(record),
			    (unsigned int)__builtin_popcountll(used));
	for (size_t i = 0; i < c->n_waits; i++) {
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
	for (size_t i = 0; i < c->n_waits; i++)
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
	account_keep_waits(c, f);
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

	if (f->n_waits || lost_ns > a->blame->least_lost_ns)
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
	if (unlikely(record->stream->trace->cuda.launches_block) && !c->left_out)
		run_ahead_see(&a->processes[record->process].ahead, signature, f);
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
	for (size_t i = 0; i < a->n_thread_accounts; i++)
		if (a->thread_accounts[i])
			settle_waits(a->thread_accounts[i]);
	for (size_t i = 0; i < a->model->set->n_hosts; i++)
		cpu_pressure_settle(&a->cpu_pressure[i]);
	unattributed_finish(a);
	blame_finish(a);
}
