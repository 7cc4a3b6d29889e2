/*
 * analyzer/account.c: where the time of each call of the application went. Called by the main
 * reading for each record.
 */
#include <stdlib.h>
#include <string.h>
#include "account.h"
#include "kernel_module.h"
#include "cudaspy/contract.h"
#include "finding.h"

/* Calls of a class differ: so much more than expected is no loss yet. */
#define SLACK_NS 2000

/* Waits of one call that are kept apart, and different requests of ioctl. */
#define WAITS_MOST 4096
#define IOCTLS_MOST 256

/* So many calls of a thread keep their waits, for those who waited at them. */
#define WAITS_KEPT 8

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- sums ----------------------------------------------------------------------------------- */

void account_add(struct account *sum, const struct account *more)
{
	size_t i;

	sum->calls += more->calls;
	sum->total_ns += more->total_ns;
	sum->expected_ns += more->expected_ns;
	sum->maybe_ns += more->maybe_ns;
	sum->kernel_ns += more->kernel_ns;
	for (i = 0; i < BUCKET_COUNT; i++)
		sum->bucket_ns[i] += more->bucket_ns[i];
}

uint64_t account_lost_by(const struct account *a, enum bucket bucket)
{
	if (bucket == BUCKET_OWN || bucket == BUCKET_GPU_INTENDED)
		return 0;
	return a->bucket_ns[bucket] - (bucket == BUCKET_IOCTL ? a->kernel_ns : 0);
}

uint64_t account_lost(const struct account *a)
{
	return a->total_ns - a->bucket_ns[BUCKET_OWN] - a->bucket_ns[BUCKET_GPU_INTENDED] -
	       a->kernel_ns;
}

static struct account *account_of(struct caller *c, uint32_t fn)
{
	while (c->n_functions <= fn) {
		c->of_function = grow(c->of_function, c->n_functions, sizeof(*c->of_function));
		c->of_function[c->n_functions++] = 0;
	}
	if (!c->of_function[fn]) {
		c->accounts = grow(c->accounts, c->n_accounts, sizeof(*c->accounts));
		c->account_fns = grow(c->account_fns, c->n_accounts, sizeof(*c->account_fns));
		c->accounts[c->n_accounts] = (struct account){0};
		c->account_fns[c->n_accounts] = fn;
		c->of_function[fn] = (uint32_t)++c->n_accounts;
	}
	return &c->accounts[c->of_function[fn] - 1];
}

struct account account_sum(const struct accounting *a, const struct process *process)
{
	struct account sum = {0};
	size_t i, j;

	for (i = 0; i < a->n_callers; i++) {
		const struct caller *c = a->callers[i];

		for (j = 0; c && (!process || c->thread->process == process) && j < c->n_accounts;
		     j++)
			account_add(&sum, &c->accounts[j]);
	}
	return sum;
}

/* ---- callers -------------------------------------------------------------------------------- */

struct caller *account_caller(const struct accounting *a, const struct thread *thread)
{
	return thread->index < a->n_callers ? a->callers[thread->index] : NULL;
}

static struct caller *caller_of(struct accounting *a, struct thread *thread)
{
	if (likely(thread->index < a->n_callers) && likely(a->callers[thread->index] != NULL))
		return a->callers[thread->index];
	while (a->n_callers <= thread->index) {
		a->callers = grow(a->callers, a->n_callers, sizeof(struct caller *));
		a->callers[a->n_callers++] = NULL;
	}
	a->callers[thread->index] = xcalloc(1, sizeof(struct caller));
	a->callers[thread->index]->thread = thread;
	a->callers[thread->index]->device = SPY_DEVICE_NONE;
	return a->callers[thread->index];
}

static inline void set_device(struct accounting *a, struct caller *c, uint8_t device)
{
	if (likely(c->device == device))
		return;
	c->device = device;
	if (device < 64)
		a->gpus_used[c->thread->process->trace->index] |= 1ull << device;
}

static void free_caller(struct caller *c)
{
	size_t i;

	waited_free(c->waits, c->n_waits);
	for (i = 0; i < c->ring_size; i++)
		waited_free(c->ring[i].waits, c->ring[i].n_waits);
	free(c->ring);
	free(c->pieces);
	free(c->open);
	free(c->of_function);
	free(c->accounts);
	free(c->account_fns);
	free(c);
}

/* Where the metadata is lost nobody knows: as most recordings are. */
static bool was_probed(const struct metadata *metadata)
{
	return metadata_number(metadata, "probes", !metadata->frequency);
}

void account_init(struct accounting *a, struct model *model, struct expect *expect)
{
	size_t i;

	*a = (struct accounting){.model = model, .expect = expect};
	work_init(&a->work, model);
	a->probed = xcalloc(model->n_processes, sizeof(*a->probed));
	a->gpus_used = xcalloc(model->n_processes, sizeof(*a->gpus_used));
	for (i = 0; i < model->n_processes; i++)
		a->probed[i] = was_probed(&model->processes[i].trace->metadata);
}

void account_release(struct accounting *a)
{
	size_t i;

	for (i = 0; i < a->n_callers; i++)
		if (a->callers[i])
			free_caller(a->callers[i]);
	free(a->callers);
	free(a->ioctls);
	free(a->riddles);
	free(a->guesses);
	free(a->probed);
	free(a->gpus_used);
	locks_release(&a->locks);
	work_release(&a->work);
	peers_release(&a->peers);
	blame_release(&a->blame);
	*a = (struct accounting){0};
}

/* ---- waits ---------------------------------------------------------------------------------- */

static void book_lock(struct accounting *a, const struct record *record, struct waited *w)
{
	const struct spy_rec_wait *raw = &record->raw->wait;
	struct trace *trace = record->stream->trace;
	uint32_t fn = trace_function(a->model->set, trace, raw->outer_fn);

	w->lock = locks_get(&a->locks, record->thread->process, raw->object);
	if (!w->lock->waits) {
		w->lock->kind = raw->kind;
		w->lock->first_fn = fn;
		w->lock->first_inner_fn = trace_function(a->model->set, trace, raw->fn);
		w->lock->first_ns = record->ns;
	}
	holders_find(a->model, record, w);
	w->lock->waits++;
	w->lock->waited_ns += w->ns;
	if (w->ns > w->lock->longest_ns)
		w->lock->longest_ns = w->ns;
	thread_set_add(&w->lock->waiters, record->thread);
	if (!(raw->flags & SPY_WAIT_FAILED))
		lock_add(w->lock, &(struct lock_event){.ns = record->ns,
						       .thread = record->thread,
						       .fn = fn,
						       .device = (uint8_t)raw->device,
						       .shared = raw->kind == SPY_WAIT_READ});
}

static void book_ioctl(struct accounting *a, uint64_t request, uint32_t count, uint64_t ns)
{
	size_t i;

	for (i = 0; i < a->n_ioctls; i++)
		if (a->ioctls[i].request == request)
			break;
	if (i == IOCTLS_MOST) { /* the last one stands for all others */
		i = IOCTLS_MOST - 1;
		a->ioctls[i].request = 0;
	} else if (i == a->n_ioctls) {
		a->ioctls = grow(a->ioctls, a->n_ioctls, sizeof(*a->ioctls));
		a->ioctls[a->n_ioctls++] = (struct ioctl_sum){.request = request};
	}
	a->ioctls[i].count += count;
	a->ioctls[i].ns += ns;
}

static void add_wait(struct caller *c, const struct waited *w)
{
	c->waits = grow(c->waits, c->n_waits, sizeof(*c->waits));
	c->waits[c->n_waits++] = *w;
}

static void see_wait(struct accounting *a, struct caller *c, const struct record *record)
{
	const struct spy_rec_wait *raw = &record->raw->wait;
	const struct timeline *timeline = &record->stream->trace->timeline;
	uint64_t span = timeline_span_ns(timeline, raw->span);
	struct waited w = {.kind = raw->kind,
			   .begin_ns = record->ns - least(span, record->ns),
			   .end_ns = record->ns,
			   .ns = timeline_span_ns(timeline, raw->duration),
			   .request = raw->object,
			   .count = raw->count};

	/* A thread waits for one thing at a time: whatever a record claims, it began after the last. */
	if (w.begin_ns < c->waited_until_ns)
		w.begin_ns = least(c->waited_until_ns, w.end_ns);
	w.ns = least(w.ns, w.end_ns - w.begin_ns);
	c->waited_until_ns = w.end_ns;
	set_device(a, c, (uint8_t)raw->device);
	if (spy_wait_is_lock(raw->kind))
		book_lock(a, record, &w);
	else if (raw->kind == SPY_WAIT_IOCTL)
		book_ioctl(a, raw->object, raw->count, w.ns);
	if (c->n_waits >= WAITS_MOST) {
		free(w.segments);
		return;
	}
	add_wait(c, &w);
}

/* Giving a lock back to nobody takes this long at most. */
#define WAKING_LEAST_NS 200

/* Whoever gives a lock back wakes one who waits for it: time that the lock costs, and nobody's fault. */
static void see_waking(struct caller *c, struct lock *lock, const struct record *record)
{
	const struct spy_rec_held *raw = &record->raw->held;
	uint64_t ns = timeline_span_ns(&record->stream->trace->timeline,
				       (uint64_t)raw->span * SPY_SPAN_UNIT);

	if (ns < WAKING_LEAST_NS || record->ns < c->waited_until_ns || c->n_waits >= WAITS_MOST)
		return;
	c->waited_until_ns = record->ns + ns;
	lock->waking_ns += ns;
	add_wait(c, &(struct waited){.kind = raw->kind,
				     .begin_ns = record->ns,
				     .end_ns = record->ns + ns,
				     .ns = ns,
				     .handover_ns = ns,
				     .lock = lock});
}

static void see_move(struct accounting *a, struct caller *c, const struct record *record)
{
	const struct spy_rec_taken *raw = &record->raw->taken;

	lock_add(locks_get(&a->locks, record->thread->process, raw->object),
		 &(struct lock_event){
			 .ns = record->ns,
			 .thread = record->thread,
			 .fn = trace_function(a->model->set, record->stream->trace, raw->outer_fn),
			 .device = c->device,
			 .released = raw->event == SPY_EV_RELEASED,
			 .shared = raw->kind == SPY_WAIT_READ});
}

static void see_held(struct accounting *a, struct caller *c, const struct record *record)
{
	const struct spy_rec_held *raw = &record->raw->held;
	struct lock *lock = locks_get(&a->locks, record->thread->process, raw->object);
	uint64_t held_ns = timeline_span_ns(&record->stream->trace->timeline, raw->held);
	struct lock_event event = {
		.ns = record->ns - least(held_ns, record->ns),
		.thread = record->thread,
		.fn = trace_function(a->model->set, record->stream->trace, raw->outer_fn),
		.device = c->device,
		.shared = raw->kind == SPY_WAIT_READ};

	if (raw->held)
		lock_add(lock, &event);
	event.ns = record->ns;
	event.released = true;
	lock_add(lock, &event);
	see_waking(c, lock, record);
}

void account_other(struct accounting *a, const struct record *record)
{
	struct caller *c = caller_of(a, record->thread);

	switch (record->raw->other.event) {
	case SPY_EV_WAIT:
		see_wait(a, c, record);
		break;
	case SPY_EV_TAKEN:
	case SPY_EV_RELEASED:
		see_move(a, c, record);
		break;
	case SPY_EV_HELD:
		see_held(a, c, record);
		break;
	case SPY_EV_SCHED:
		c->not_running_ns = record->raw->sched.not_running_ns;
		c->running_ns = record->raw->sched.running_ns;
		c->sched_window_ns = timeline_span_ns(&record->stream->trace->timeline,
						      record->raw->sched.window);
		break;
	default:
		break;
	}
}

/* ---- a call --------------------------------------------------------------------------------- */

/* What the probes saw inside of it. */
struct seen {
	uint64_t lock_ns, ioctl_ns;
	uint64_t handover_ns; /* of lock_ns: the lock was free, and the thread not running yet */
	uint64_t blocked_ns; /* asleep or yielding, for no lock */
};

static struct seen add_waits(const struct caller *c, uint64_t duration_ns)
{
	struct seen seen = {0};
	uint64_t left_ns = duration_ns;
	size_t i;

	for (i = 0; i < c->n_waits; i++) {
		const struct waited *w = &c->waits[i];
		uint64_t ns = w->ns < left_ns ? w->ns : left_ns;

		left_ns -= ns;
		if (w->lock) {
			seen.lock_ns += ns;
			seen.handover_ns += least(w->handover_ns, ns);
		} else if (w->kind == SPY_WAIT_IOCTL) {
			seen.ioctl_ns += ns;
		} else {
			seen.blocked_ns += ns;
		}
	}
	return seen;
}

/* How long the thread was kept from running during the call. The scheduler's account is of a window
 * that ends with the call and may have begun long before it. */
static uint64_t not_running(const struct caller *c, uint64_t duration_ns)
{
	uint64_t ns = c->not_running_ns;

	if (!c->sched_window_ns)
		return 0;
	if (c->sched_window_ns > duration_ns)
		ns = (uint64_t)((double)ns * (double)duration_ns / (double)c->sched_window_ns);
	return ns < duration_ns ? ns : duration_ns;
}

/* How long the thread was on a CPU in the call's wait, at least: what it ran outside the call is at most
 * the rest of the window. */
static uint64_t spun(const struct caller *c, const struct finished *f)
{
	uint64_t duration_ns = f->end_ns - f->begin_ns, elsewhere_ns = f->bucket_ns[BUCKET_OWN];

	if (c->sched_window_ns > duration_ns)
		elsewhere_ns += c->sched_window_ns - duration_ns;
	if (c->running_ns <= elsewhere_ns)
		return 0;
	return least(c->running_ns - elsewhere_ns, f->bucket_ns[BUCKET_GPU_INTENDED]);
}

/* Which bucket has what a call took beyond its own work, of which the probes saw nothing? */
static enum bucket excess_bucket(struct accounting *a, struct gpu_stream **stream,
				 const struct record *record, const struct gpu_waits *waits,
				 bool cold, uint64_t excess_ns)
{
	switch (waits->sort) {
	case GPU_WAIT_INTENDED:
		return BUCKET_GPU_INTENDED;
	case GPU_WAIT_HIDDEN:
		if (waits->what == GPU_WAIT_STREAM ||
		    work_on_device(&a->work, record)) /* a copy waits at least for itself */
			return BUCKET_GPU_HIDDEN;
		return BUCKET_UNEXPLAINED;
	case GPU_WAIT_QUEUE:
		if (work_queued(&a->work, stream, record) >= QUEUE_LEAST &&
		    work_crowded(*stream, excess_ns))
			return BUCKET_QUEUE;
		/* A kernel's first launch may have to load it, or to enlarge the device's stack: with
		 * the context locked, and behind all work of the device. */
		if (cold && work_on_device(&a->work, record))
			return BUCKET_GPU_HIDDEN;
		return BUCKET_UNEXPLAINED;
	default:
		return BUCKET_UNEXPLAINED;
	}
}

/* So much of a class' calls is their own work for sure. */
static uint64_t own_limit(const struct call_class *class)
{
	uint64_t slack = class->expected_ns / 2 + SLACK_NS;

	return class->expected_ns + (class->spread_ns > slack ? class->spread_ns : slack);
}

/*
 * A first call starts something up, and there may be no other to compare it with. Where the GPU was
 * idle, all of it is the price of that; else no more than what starting up takes at most.
 */
#define COLD_MOST_NS 5000000
#define COLD_FEW 3

/* A call of whom nobody knows what it costs, when it could have waited, costs that for sure. */
#define UNKNOWN_OWN_NS 50000

static uint64_t own_work(struct accounting *a, const struct record *record,
			 const struct call_class *class, const struct gpu_waits *waits, bool cold,
			 uint64_t rest_ns)
{
	uint64_t expected_ns = class->expected_ns;

	if (class->source == EXPECT_NONE && waits->sort != GPU_WAIT_INTENDED)
		expected_ns = UNKNOWN_OWN_NS;

	if (cold && !work_on_device(&a->work, record))
		return rest_ns;
	if (cold && class->samples < COLD_FEW)
		expected_ns = least(expected_ns, COLD_MOST_NS);
	else if (rest_ns <= own_limit(class))
		return rest_ns;
	if (class->source == EXPECT_NONE && waits->sort == GPU_WAIT_NOT)
		return rest_ns;
	return least(rest_ns, expected_ns);
}

/*
 * A client of MPS waits in cuInit while the server belongs to another user; what the process found
 * before and after says so. The whole of cuInit is charged: what of it was work, nobody saw. Nothing
 * after it is, also if it failed.
 */
static uint64_t mps_turn(const struct accounting *a, const struct finished *f)
{
	const struct process *process = f->thread->process;
	uint64_t begin_ns = process->mps_before.ns, end_ns = process->mps.ns ?: process->init_ns;

	if (likely(!begin_ns) || begin_ns > f->end_ns || (end_ns && end_ns < f->begin_ns) ||
	    !model_mps_in_the_way(a->model, process))
		return 0;
	if (begin_ns < f->begin_ns)
		begin_ns = f->begin_ns;
	return (end_ns && end_ns < f->end_ns ? end_ns : f->end_ns) - begin_ns;
}

/* A first call that starts CUDA or a device up is at work in the kernel module: that is what it is for. Of
 * the runtime's, any one may be that. */
static bool starts_up(const struct accounting *a, const struct caller *c,
		      const struct record *record, bool cold)
{
	uint8_t contract = a->model->set->functions.all[record->fn].contract;

	if (c->starts_up)
		return true;
	return cold && (contract == SPY_CONTRACT_INIT || contract == SPY_CONTRACT_HOST);
}

/* Of the time in the kernel module: what the call is made for. A first call has no other to compare it with. */
static uint64_t kernel_work(const struct call_class *class, bool cold, uint64_t ioctl_ns)
{
	if (cold || ioctl_ns <= class->kernel_ns + class->kernel_ns / 2)
		return ioctl_ns;
	return class->kernel_ns;
}

/* Divides the duration into the buckets. */
static void divide(struct accounting *a, struct caller *c, const struct record *record,
		   const struct call_class *class, const struct gpu_waits *waits, bool cold,
		   struct finished *f)
{
	uint64_t duration_ns = f->end_ns - f->begin_ns, rest_ns, excess_ns, idle_ns, taken_ns;
	struct seen seen = add_waits(c, duration_ns);
	uint64_t *bucket_ns = f->bucket_ns;

	rest_ns = duration_ns - seen.lock_ns - seen.ioctl_ns;
	taken_ns = least(mps_turn(a, f), rest_ns);
	bucket_ns[BUCKET_MPS] = taken_ns;
	rest_ns -= taken_ns;
	seen.blocked_ns = least(seen.blocked_ns - least(taken_ns, seen.blocked_ns), rest_ns);
	rest_ns -= seen.blocked_ns;
	bucket_ns[BUCKET_OWN] = own_work(a, record, class, waits, cold, rest_ns);
	excess_ns = rest_ns - bucket_ns[BUCKET_OWN];

	/* First what was in nobody's way, then what looked like a wait for a lock: a thread that was
	 * given the lock and not a processor. */
	idle_ns = not_running(c, duration_ns);
	taken_ns = least(idle_ns, excess_ns);
	excess_ns -= taken_ns;
	bucket_ns[BUCKET_NOT_RUNNING] = taken_ns;
	taken_ns = least(idle_ns - taken_ns, seen.handover_ns);
	bucket_ns[BUCKET_NOT_RUNNING] += taken_ns;
	bucket_ns[BUCKET_LOCK] = seen.lock_ns - taken_ns;
	bucket_ns[starts_up(a, c, record, cold) ? BUCKET_OWN : BUCKET_IOCTL] += seen.ioctl_ns;
	f->kernel_ns = kernel_work(class, cold, bucket_ns[BUCKET_IOCTL]);
	f->expected_ns += f->kernel_ns;
	excess_ns += seen.blocked_ns;
	bucket_ns[excess_bucket(a, &c->stream, record, waits, cold, excess_ns)] += excess_ns;
}

/* The ring begins small: most threads make few calls. */
static void grow_ring(struct caller *c)
{
	size_t size = c->ring_size ? 4 * c->ring_size : 4, i;
	struct finished *ring = xcalloc(size, sizeof(*ring));

	for (i = 0; i < c->ring_size; i++) {
		uint64_t number = c->n_finished - c->ring_size + i;

		ring[number % size] = c->ring[number % c->ring_size];
	}
	free(c->ring);
	c->ring = ring;
	c->ring_size = size;
}

static void forget_waits(struct finished *f)
{
	waited_free(f->waits, f->n_waits);
	f->waits = NULL;
	f->n_waits = 0;
}

static struct finished *next_finished(struct caller *c)
{
	struct finished *f;

	if (unlikely(c->n_finished == c->ring_size) && c->ring_size < FINISHED_KEPT)
		grow_ring(c);
	f = &c->ring[c->n_finished++ % c->ring_size];
	if (unlikely(f->waits != NULL))
		forget_waits(f);
	return f;
}

static void book(struct caller *c, const struct finished *f)
{
	struct account *account = account_of(c, f->fn);
	size_t i;

	account->calls++;
	account->total_ns += f->end_ns - f->begin_ns;
	account->expected_ns += f->expected_ns;
	if (likely(!f->divided)) {
		account->bucket_ns[BUCKET_OWN] += f->end_ns - f->begin_ns;
		return;
	}
	for (i = 0; i < BUCKET_COUNT; i++)
		account->bucket_ns[i] += f->bucket_ns[i];
	account->kernel_ns += f->kernel_ns;
	if (f->awaits)
		account->maybe_ns += finished_lost(f);
}

/* Pinned or managed: memory that every GPU of the process has to know of. */
static bool about_host_memory(const struct record *record)
{
	return record->raw->other.event == SPY_EV_MEMORY &&
	       (record->raw->memory.kind == SPY_MEM_PINNED ||
		record->raw->memory.kind == SPY_MEM_MANAGED);
}

static void share_ioctls(struct accounting *a, const struct caller *c, const struct record *record,
			 const struct finished *f)
{
	uint64_t used = a->gpus_used[record->stream->trace->index];
	double spared_ns = 0;
	size_t i;

	kernel_module_share(c->waits, c->n_waits, about_host_memory(record),
			    (unsigned int)__builtin_popcountll(used));
	for (i = 0; i < c->n_waits; i++)
		spared_ns += (double)c->waits[i].ns * (double)c->waits[i].spared;
	if (spared_ns > (double)f->bucket_ns[BUCKET_IOCTL])
		spared_ns = (double)f->bucket_ns[BUCKET_IOCTL];
	a->spared_ns += spared_ns;
}

/* A call that took longer than such calls do, or in which the probes saw something. */
static void look_closer(struct accounting *a, struct caller *c, const struct record *record,
			const struct call_class *class, const struct gpu_waits *waits, bool cold,
			struct finished *f)
{
	memset(f->bucket_ns, 0, sizeof(f->bucket_ns));
	f->divided = true;
	divide(a, c, record, class, waits, cold, f);
	f->awaits = gpu_wait_is_for_work(waits) &&
		    work_awaited(&a->work, &c->stream, record, waits) > 0;
	if (unlikely(cold)) /* each costs what it costs: others say nothing of this one */
		f->expected_ns = f->bucket_ns[BUCKET_OWN] + f->kernel_ns;
	if (c->n_waits)
		share_ioctls(a, c, record, f);
	f->waits = c->waits;
	f->n_waits = c->n_waits;
	if (f->waits && c->ring_size > WAITS_KEPT && c->n_finished > WAITS_KEPT)
		forget_waits(&c->ring[(c->n_finished - 1 - WAITS_KEPT) % c->ring_size]);
	c->waits = NULL;
	c->n_waits = 0;
	if (c->sched_window_ns)
		c->spun_ns += spun(c, f);
	c->sched_window_ns = c->not_running_ns = c->running_ns = 0;
}

/* Unexplained time that is worth a conclusion from overlap: probes see most of what there is. */
#define RIDDLE_LEAST_NS 200000
#define RIDDLE_LEAST_PROBED_NS 1000000

/* Who was in the way returns about then. */
static uint64_t due_ns(const struct finished *f)
{
	return f->end_ns + (f->end_ns - f->begin_ns) / 8 + 100000;
}

static void remember_riddle(struct accounting *a, const struct finished *f)
{
	bool probed = a->probed[f->thread->process->trace->index];
	uint64_t ns = f->bucket_ns[BUCKET_UNEXPLAINED];

	if (ns < (probed ? RIDDLE_LEAST_PROBED_NS : RIDDLE_LEAST_NS) ||
	    ns < (f->end_ns - f->begin_ns) / 2)
		return;
	a->riddles = grow(a->riddles, a->n_riddles, sizeof(*a->riddles));
	a->riddles[a->n_riddles] = *f;
	a->riddles[a->n_riddles].waits = NULL;
	a->riddles[a->n_riddles].n_waits = 0;
	if (!a->n_riddles || due_ns(f) < a->riddles_due_ns)
		a->riddles_due_ns = due_ns(f);
	a->n_riddles++;
}

/* Conclusions that are kept until it is known whether the probes saw any lock at all. */
#define GUESSES_MOST 1024

/*
 * Where no probe could have seen a lock, what others were in the way for was one. Probes that see locks
 * would have seen this one, too: then the riddle stays one.
 */
static void solve_riddle(struct accounting *a, const struct finished *f)
{
	bool probed = a->probed[f->thread->process->trace->index];
	struct account *account;
	struct blame_piece piece;

	if ((probed && (a->locks.count || a->n_guesses == GUESSES_MOST)) ||
	    !blame_infer(a, f, &piece))
		return;
	if (probed) {
		a->guesses = grow(a->guesses, a->n_guesses, sizeof(*a->guesses));
		a->guesses[a->n_guesses++] = piece;
		return;
	}
	blame_conclude(a, &piece);
	account = account_of(account_caller(a, f->thread), f->fn);
	account->bucket_ns[BUCKET_UNEXPLAINED] -= f->bucket_ns[BUCKET_UNEXPLAINED];
	account->bucket_ns[BUCKET_LOCK] += f->bucket_ns[BUCKET_UNEXPLAINED];
}

void account_riddles(struct accounting *a, uint64_t now_ns)
{
	size_t i, kept = 0;

	a->riddles_due_ns = UINT64_MAX;
	for (i = 0; i < a->n_riddles; i++) {
		if (due_ns(&a->riddles[i]) <= now_ns) {
			solve_riddle(a, &a->riddles[i]);
			continue;
		}
		if (due_ns(&a->riddles[i]) < a->riddles_due_ns)
			a->riddles_due_ns = due_ns(&a->riddles[i]);
		a->riddles[kept++] = a->riddles[i];
	}
	a->n_riddles = kept;
}

/* Why the call waited for the GPU, if it did. */
static const char *why_waited(const struct finished *f, const struct gpu_waits *waits)
{
	if (waits->sort == GPU_WAIT_QUEUE && f->bucket_ns[BUCKET_GPU_HIDDEN])
		return "a kernel's first launch may have to load it, behind all work of the device";
	return waits->why;
}

static void spread_blame(struct accounting *a, const struct finished *f, const char *why)
{
	uint64_t lost_ns = finished_lost(f);

	if (f->n_waits || lost_ns > a->blame.least_lost_ns)
		blame_waits(a, f, blame_victim(a, f, lost_ns, why));
	remember_riddle(a, f);
}

static struct site *observe(struct accounting *a, struct caller *c, const struct record *record,
			    const struct call_class *class, const struct gpu_waits *waits,
			    bool cold, const struct finished *f)
{
	uint8_t contract = a->model->set->functions.all[record->fn].contract;

	return a->observer->see(a->observer, &(struct observed){.accounts = a,
								.caller = c,
								.record = record,
								.call = f,
								.class = class,
								.waits = waits,
								.contract = contract,
								.cold = cold});
}

/* The call becomes the newest of its thread's steps. */
static void take_step(struct caller *c, const struct record *record, const struct finished *f,
		      const struct gpu_waits *waits, uint8_t contract, bool submitted, bool cold)
{
	steps_see(&c->steps, record->raw, waits,
		  &(struct step){.begin_ns = f->begin_ns,
				 .end_ns = f->end_ns,
				 .own_ns = finished_ns(f, BUCKET_OWN),
				 .contract = contract,
				 .failed = call_failed(&record->raw->call_head),
				 .submitted = submitted,
				 .cold = cold});
}

void account_call(struct accounting *a, const struct record *record)
{
	const struct spy_rec_head *head = &record->raw->call_head;
	uint8_t contract = a->model->set->functions.all[record->fn].contract;
	const struct gpu_waits *waits = gpu_wait_of(record->raw, contract);
	struct caller *c = caller_of(a, record->thread);
	struct finished *f = next_finished(c);
	bool cold = !call_failed(head) && expect_cold(a->expect, record);
	const struct call_class *class = expect_class(a->expect, record->raw, record->fn, cold);
	uint64_t submissions;

	f->thread = c->thread;
	f->fn = record->fn;
	set_device(a, c, head->device);
	f->device = c->device;
	f->end_ns = record->ns;
	f->begin_ns = record->ns - least(record->duration_ns, record->ns);
	f->expected_ns = class->expected_ns;
	f->caller = record_caller(record->raw);
	f->divided = f->awaits = false;
	if (unlikely(c->n_waits) || unlikely(c->sched_window_ns) || unlikely(cold) ||
	    unlikely(record->duration_ns > own_limit(class)))
		look_closer(a, c, record, class, waits, cold, f);
	f->site = NULL;
	c->steps.tries += steps_is_try(contract);
	if (a->observer && (f->divided || a->observer->always >> contract & 1 ||
			    call_failed(head) || unlikely(c->n_open)))
		f->site = observe(a, c, record, class, waits, cold, f);
	book(c, f);
	submissions = a->work.submissions[record->stream->trace->index];
	work_see(&a->work, &c->stream, a->model, record, contract, waits);
	take_step(c, record, f, waits, contract,
		  a->work.submissions[record->stream->trace->index] != submissions, cold);
	if (unlikely(contract == SPY_CONTRACT_ALLOC) && record->raw->other.event <= SPY_EV_OP)
		peers_see(&a->peers, a->model, record);
	if (unlikely(f->divided))
		spread_blame(a, f, why_waited(f, waits));
	if (unlikely(c->n_pieces))
		blame_arrivals(a, c);
	c->starts_up = false;
}

void account_nested(struct accounting *a, const struct record *record)
{
	if (a->model->set->functions.all[record->fn].contract == SPY_CONTRACT_INIT)
		caller_of(a, record->thread)->starts_up = true;
}

void account_finish(struct accounting *a)
{
	size_t i;

	account_riddles(a, UINT64_MAX);
	for (i = 0; i < a->n_guesses && !a->locks.count; i++)
		blame_conclude(a, &a->guesses[i]);
	blame_finish(a);
}
