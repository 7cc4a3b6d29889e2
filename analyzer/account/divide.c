/*
 * analyzer/account/divide.c: a call's duration, divided into buckets (buckets.h). Called by the
 * accounting for each call that took longer than such calls do, or in which the probes saw
 * something.
 */
#include "account.h"
#include "divide.h"

/* What the probes saw inside of it. */
struct seen {
	uint64_t lock_ns, ioctl_ns;
	uint64_t handover_ns; /* of lock_ns: the lock was free, and the thread not running yet */
	uint64_t blocked_ns; /* asleep or yielding, for no lock */
};

static struct seen add_waits(const struct thread_account *c, uint64_t duration_ns)
{
	struct seen seen = {0};
	uint64_t left_ns = duration_ns;

	for (size_t i = 0; i < c->n_waits; i++) {
		const struct wait *w = &c->waits[i];
		uint64_t ns = w->ns < left_ns ? w->ns : left_ns;

		left_ns -= ns;
		if (w->lock) {
			seen.lock_ns += ns;
			seen.handover_ns += min_u64(w->handover_ns, ns);
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
static uint64_t not_running(const struct thread_account *c, uint64_t duration_ns)
{
	uint64_t ns = c->not_running_ns;

	if (!c->sched_window_ns)
		return 0;
	if (c->sched_window_ns > duration_ns)
		ns = (uint64_t)((double)ns * (double)duration_ns / (double)c->sched_window_ns);
	return ns < duration_ns ? ns : duration_ns;
}

/* Of its waits for locks: how long the thread had no CPU in each is not known, but in all of
 * them. */
static void share_lack(struct thread_account *c, uint64_t lacked_ns, uint64_t lock_ns)
{
	for (size_t i = 0; i < c->n_waits && lacked_ns; i++)
		if (c->waits[i].lock)
			c->waits[i].loss.lacked_ns =
				(uint64_t)((double)c->waits[i].ns * (double)lacked_ns /
					   (double)lock_ns);
}

/* May the call have loaded code: a kernel that is used for the first time, a variable, a module? */
static bool may_load(const struct record *record, bool cold)
{
	switch (record->contract) {
	case SPY_CONTRACT_LAUNCH:
		return cold;
	case SPY_CONTRACT_LAZY_LOAD:
	case SPY_CONTRACT_LIBRARY:
	case SPY_CONTRACT_MODULE:
		return true;
	default:
		return false;
	}
}

/* Which bucket has what a call took beyond its own work, of which the probes saw nothing? */
static enum bucket excess_bucket(struct accounting *a, struct gpu_stream **stream,
				 const struct record *record, const struct gpu_waits *waits,
				 bool cold, uint64_t excess_ns)
{
	uint64_t queued;

	switch (waits->sort) {
	case GPU_WAIT_INTENDED:
		return BUCKET_GPU_INTENDED;
	case GPU_WAIT_HIDDEN:
		if (waits->what == GPU_WAIT_STREAM ||
		    work_on_device(&a->work, record)) /* a copy waits at least for itself */
			return BUCKET_GPU_HIDDEN;
		break;
	case GPU_WAIT_QUEUE:
		queued = work_queued(&a->work, stream, record);
		if (queued >= QUEUE_LEAST && work_queue_was_full(*stream, queued, excess_ns))
			return BUCKET_QUEUE;
		/* A kernel's first launch may have to load it, or to enlarge the device's stack:
		 * with the context locked, and behind all work of the device. */
		if (cold && work_on_device(&a->work, record))
			return BUCKET_GPU_HIDDEN;
		break;
	default:
		break;
	}
	return may_load(record, cold) ? BUCKET_LOADING : BUCKET_UNEXPLAINED;
}

/*
 * A first call starts something up, and there may be no other to compare it with. Where the GPU was
 * idle, all of it is the price of that; else no more than what starting up takes at most.
 */
#define COLD_MOST_NS 5000000
#define COLD_FEW 3

/* Where the cost of a call that may have waited is unknown, it costs at least that. */
#define UNKNOWN_OWN_NS 50000

/* What a first call may take that finds the GPU at work, and be no wait for it: of a few there is a
 * limit. A prior knows small kernels, and larger ones take longer. */
static uint64_t cold_price(const struct call_class *class, const struct gpu_waits *waits,
			   uint64_t rest_ns)
{
	uint64_t most_ns = divide_own_limit(class);

	if (class->source == EXPECT_NONE)
		return waits->sort == GPU_WAIT_HIDDEN ? UNKNOWN_OWN_NS : COLD_MOST_NS;
	if (class->source == EXPECT_PRIOR)
		return EXPECT_PRIOR_MOST * (class->expected_ns + class->spread_ns);
	if (rest_ns > most_ns)
		most_ns = class->expected_ns;
	return class->samples < COLD_FEW ? min_u64(most_ns, COLD_MOST_NS) : most_ns;
}

static uint64_t own_work(struct accounting *a, const struct thread_account *c,
			 const struct record *record, const struct call_class *class,
			 const struct gpu_waits *waits, bool cold, uint64_t rest_ns)
{
	uint64_t expected_ns = class->expected_ns;

	if (c->rested && class->rested_ns)
		expected_ns = class->rested_ns;

	if (cold && !work_on_device(&a->work, record))
		return rest_ns;
	if (cold && waits->sort != GPU_WAIT_INTENDED)
		expected_ns = cold_price(class, waits, rest_ns);
	else if (class->source == EXPECT_NONE && waits->sort != GPU_WAIT_INTENDED)
		expected_ns = UNKNOWN_OWN_NS;
	else if (rest_ns <= (c->rested ? divide_rested_limit(class) : divide_own_limit(class)))
		return rest_ns;
	if (class->source == EXPECT_NONE && waits->sort == GPU_WAIT_NOT)
		return rest_ns;
	return min_u64(rest_ns, expected_ns);
}

/*
 * Of what is no wait that the probes saw: what of it is the loading of code? The call's own work is
 * what it costs when its code is there. Where the GPU was idle, the rest is the loading; else no
 * more of it than is known to be.
 */
static uint64_t loading(struct accounting *a, const struct record *record,
			const struct call_class *class, bool cold, uint64_t own_ns)
{
	const struct call_class *warm = class;
	uint64_t warm_ns;

	if (!may_load(record, cold))
		return 0;
	if (cold)
		warm = expect_class(a->expect, record, record->fn, false);
	/* What such a call costs lies in the code, which is other code each time. */
	if (record->contract == SPY_CONTRACT_LIBRARY || record->contract == SPY_CONTRACT_MODULE)
		return own_ns;
	warm_ns = warm->source == EXPECT_NONE ? SLACK_NS : divide_own_limit(warm);
	return own_ns - min_u64(own_ns, warm_ns);
}

/*
 * Of an excess that nothing explains, what is the call's own work: as much as calls take with
 * nothing in their way; all of it, where there is nothing to compare it with. One that is in the
 * kernel module longer than its like makes more than they do, and has more to do around it, too.
 */
static uint64_t unobstructed(const struct thread_account *c, const struct call_class *class,
			     const struct completed_call *f, uint64_t excess_ns)
{
	uint64_t limit_ns = c->rested ? divide_rested_limit(class) : divide_own_limit(class);

	if (class->source == EXPECT_NONE)
		return excess_ns;
	if (limit_ns < class->most_ns)
		limit_ns = class->most_ns;
	limit_ns -= min_u64(limit_ns, f->bucket_ns[BUCKET_OWN]);
	if (f->bucket_ns[BUCKET_IOCTL] > f->kernel_ns && limit_ns < COLD_MOST_NS)
		limit_ns = COLD_MOST_NS;
	return min_u64(excess_ns, limit_ns);
}

static bool mps_is_in_the_way(const struct accounting *a, const struct process *process)
{
	const struct reading_position now = position_now();
	struct mps_server server;

	return model_mps_in_the_way(a->model, process, &now, &server);
}

/*
 * A client of MPS waits in cuInit while the server belongs to another user; what the process found
 * before and after says so. The whole of cuInit is charged: what of it was work is unknown. Nothing
 * after it is, also if it failed.
 */
static uint64_t mps_turn(const struct accounting *a, const struct completed_call *f)
{
	const struct process *process = f->thread->process;
	uint64_t begin_ns = process->mps_before.ns, end_ns = process->mps.ns ?: process->init_ns;

	if (likely(!begin_ns) || begin_ns > f->end_ns || (end_ns && end_ns < f->begin_ns) ||
	    !mps_is_in_the_way(a, process))
		return 0;
	if (begin_ns < f->begin_ns)
		begin_ns = f->begin_ns;
	return (end_ns && end_ns < f->end_ns ? end_ns : f->end_ns) - begin_ns;
}

/* A first call that starts CUDA or a device up is at work in the kernel module, and waits for
 * threads that the driver starts: that is what it is for. Of the runtime's, any one may be that. */
static bool starts_up(const struct thread_account *c, const struct record *record, bool cold)
{
	uint8_t contract = record->contract;

	if (c->starts_up)
		return true;
	return cold && (contract == SPY_CONTRACT_INIT || contract == SPY_CONTRACT_HOST);
}

/* Of the time in the kernel module: what the call is made for. A first call has no other to compare
 * it with. */
static uint64_t kernel_work(const struct call_class *class, bool cold, uint64_t ioctl_ns)
{
	if (cold || ioctl_ns <= class->kernel_ns + class->kernel_ns / 2)
		return ioctl_ns;
	return class->kernel_ns;
}

bool divide(struct accounting *a, struct thread_account *c, const struct record *record,
	    const struct call_class *class, const struct gpu_waits *waits, bool cold,
	    struct completed_call *f)
{
	uint64_t duration_ns = f->end_ns - f->begin_ns, rest_ns, excess_ns, idle_ns, taken_ns;
	struct seen seen = add_waits(c, duration_ns);
	uint64_t *bucket_ns = f->bucket_ns;
	enum bucket bucket;
	bool all_own;

	rest_ns = duration_ns - seen.lock_ns - seen.ioctl_ns;
	taken_ns = min_u64(mps_turn(a, f), rest_ns);
	bucket_ns[BUCKET_MPS] = taken_ns;
	rest_ns -= taken_ns;
	seen.blocked_ns = min_u64(seen.blocked_ns - min_u64(taken_ns, seen.blocked_ns), rest_ns);
	if (starts_up(c, record, cold))
		seen.blocked_ns = 0;
	rest_ns -= seen.blocked_ns;
	bucket_ns[BUCKET_OWN] = own_work(a, c, record, class, waits, cold, rest_ns);
	excess_ns = rest_ns - bucket_ns[BUCKET_OWN];
	bucket_ns[BUCKET_LOADING] = loading(a, record, class, cold, bucket_ns[BUCKET_OWN]);
	bucket_ns[BUCKET_OWN] -= bucket_ns[BUCKET_LOADING];
	all_own = !excess_ns;

	/* First what blocked no other thread, then what looked like a wait for a lock: a thread
	 * that was given the lock and not a processor. */
	idle_ns = not_running(c, duration_ns);
	taken_ns = min_u64(idle_ns, excess_ns);
	excess_ns -= taken_ns;
	bucket_ns[BUCKET_NOT_RUNNING] = taken_ns;
	share_lack(c, min_u64(idle_ns - taken_ns, seen.lock_ns), seen.lock_ns);
	taken_ns = min_u64(idle_ns - taken_ns, seen.handover_ns);
	bucket_ns[BUCKET_NOT_RUNNING] += taken_ns;
	bucket_ns[BUCKET_LOCK] = seen.lock_ns - taken_ns;
	bucket_ns[starts_up(c, record, cold) ? BUCKET_OWN
		  : may_load(record, cold)   ? BUCKET_LOADING
					     : BUCKET_IOCTL] += seen.ioctl_ns;
	f->kernel_ns = kernel_work(class, cold, bucket_ns[BUCKET_IOCTL]);
	f->expected_ns = add_known_ns(f->expected_ns, f->kernel_ns);
	bucket = excess_bucket(a, &c->stream, record, waits, cold, excess_ns + seen.blocked_ns);
	if (bucket == BUCKET_UNEXPLAINED) {
		taken_ns = unobstructed(c, class, f, excess_ns);
		bucket_ns[BUCKET_OWN] += taken_ns;
		excess_ns -= taken_ns;
	}
	bucket_ns[bucket] += excess_ns + seen.blocked_ns;
	return class->source != EXPECT_NONE || all_own;
}

/* What it ran outside the call is at most the rest of the window. */
uint64_t divide_busy_wait(const struct thread_account *c, const struct completed_call *f)
{
	uint64_t duration_ns = f->end_ns - f->begin_ns, elsewhere_ns = f->bucket_ns[BUCKET_OWN];

	if (c->sched_window_ns > duration_ns)
		elsewhere_ns += c->sched_window_ns - duration_ns;
	if (c->running_ns <= elsewhere_ns)
		return 0;
	return min_u64(c->running_ns - elsewhere_ns, f->bucket_ns[BUCKET_GPU_INTENDED]);
}
