/*
 * tests/sim/locks.c: the locks of the simulated driver, on every calling thread. They are real pthread
 * calls through the PLT, so whoever interposes pthread_mutex_lock and friends sees them as it would
 * see the real driver's. Granularity (SPYSIM_LOCK):
 *
 *   split    (default, as measured on driver 580) one mutex of the process for allocation, pinning,
 *            managed memory, graphs and modules; for each device a rwlock (the context: calls that wait
 *            for the device hold it as writer, launches and copies read it), a mutex for pageable
 *            copies and one for the memory pool
 *   process  one mutex for everything, held also while waiting for the GPU (old drivers)
 *   device   nothing process-wide: the process mutex becomes the device's
 *
 * Order: context, staging, process, pool. A script's hold lines add locks, taken before all of these.
 * A lock that the thread holds already is not taken again, so that a script can hold one of the above.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kernel_module.h"

enum { HELD_MAX = 32 };

struct lock {
	union {
		pthread_mutex_t mutex;
		pthread_rwlock_t rw;
		pthread_spinlock_t spin;
	};
	unsigned char kind; /* enum sim_lock_kind */
	unsigned char what; /* enum sim_lock */
	short dev;
	atomic_int owner; /* thread; not of readers */
	char name[128]; /* of a scripted one */
	struct lock *next;
};

struct device_locks {
	struct lock context, staging, pool, process;
};

/* clang-format off */
#define MUTEX(which, device) \
	{ .mutex = PTHREAD_MUTEX_INITIALIZER, .kind = SIM_MUTEX, .what = (which), .dev = (device) }
#define RWLOCK(which, device) \
	{ .rw = PTHREAD_RWLOCK_INITIALIZER, .kind = SIM_RWLOCK, .what = (which), .dev = (device) }
#define DEVICE(i) \
	{ RWLOCK(SIM_LOCK_CONTEXT, i), MUTEX(SIM_LOCK_STAGING, i), MUTEX(SIM_LOCK_POOL, i), \
	  MUTEX(SIM_LOCK_PROCESS, i) }

static struct lock process = MUTEX(SIM_LOCK_PROCESS, 0);
static struct lock init_lock = MUTEX(SIM_LOCK_INIT, 0), runtime_lock = MUTEX(SIM_LOCK_RUNTIME, 0);
static struct device_locks devices[SIM_MAX_DEVICES] = {
	DEVICE(0), DEVICE(1), DEVICE(2),  DEVICE(3),  DEVICE(4),  DEVICE(5),  DEVICE(6),  DEVICE(7),
	DEVICE(8), DEVICE(9), DEVICE(10), DEVICE(11), DEVICE(12), DEVICE(13), DEVICE(14), DEVICE(15),
};
/* clang-format on */

/* What this thread holds, in the order of taking. */
static __thread struct held {
	struct lock *lock;
	unsigned char as;
	unsigned again; /* times it was to be taken while it was held */
	uint64_t begin_ns, end_ns; /* of the wait for it */
} mine[HELD_MAX];
static __thread unsigned mine_cnt;

static int self_tid(void)
{
	if (!sim_self.tid)
		sim_self.tid = (int)sim_syscall(SYS_gettid, 0, 0, 0);
	return sim_self.tid;
}

/* Books a wait on the call and on the runtime call around it. */
static void note_wait(const struct lock *lock, int holder, uint64_t ns)
{
	for (struct sim_span *span = sim_self.span; span; span = span->outer) {
		span->lock_wait_ns += ns;
		if (ns < span->worst_ns)
			continue;
		span->worst_ns = ns;
		span->holder_tid = holder;
		span->lock = (short)(lock->what + 1);
		span->lock_dev = lock->dev;
	}
}

static void write_down(const struct held *h, uint64_t release_ns)
{
	struct sim_wait wait = {
		.kind = WAIT_LOCK,
		.how = h->as,
		.lock = h->lock->what,
		.lock_dev = h->lock->dev,
		.name = h->lock->name,
		.address = h->lock,
		.begin_ns = h->begin_ns,
		.end_ns = h->end_ns,
		.release_ns = release_ns,
		.released_ns = sim_now_ns(),
	};

	sim_note_wait(&wait);
}

static struct held *held_by_me(const struct lock *lock)
{
	for (unsigned i = mine_cnt; i-- > 0;)
		if (mine[i].lock == lock)
			return &mine[i];
	return NULL;
}

static void block_on(struct lock *lock, enum sim_lock_as as)
{
	switch (as) {
	case AS_MUTEX:
		pthread_mutex_lock(&lock->mutex);
		break;
	case AS_READER:
		pthread_rwlock_rdlock(&lock->rw);
		break;
	case AS_WRITER:
		pthread_rwlock_wrlock(&lock->rw);
		break;
	case AS_SPINNER:
		pthread_spin_lock(&lock->spin);
		break;
	}
}

static void take(struct lock *lock, enum sim_lock_as as)
{
	const uint64_t long_ns = 5000;
	struct held *h = held_by_me(lock);
	uint64_t begin_ns, end_ns;
	int holder;

	if (h) {
		h->again++;
		return;
	}
	if (mine_cnt == HELD_MAX)
		abort();
	holder = atomic_load_explicit(&lock->owner, memory_order_relaxed);
	begin_ns = sim_self.span ? sim_now_ns() : 0;
	block_on(lock, as);
	end_ns = begin_ns ? sim_now_ns() : 0;
	if (begin_ns && (holder || end_ns - begin_ns > long_ns))
		note_wait(lock, holder, end_ns - begin_ns);
	if (as != AS_READER)
		atomic_store_explicit(&lock->owner, self_tid(), memory_order_relaxed);
	mine[mine_cnt++] = (struct held){lock, (unsigned char)as, 0, begin_ns, end_ns};
}

static void give(struct lock *lock)
{
	struct held *h = held_by_me(lock), was;
	uint64_t release_ns;

	if (!h)
		abort();
	if (h->again) {
		h->again--;
		return;
	}
	was = *h;
	memmove(h, h + 1, (size_t)(mine + mine_cnt - (h + 1)) * sizeof(*h));
	mine_cnt--;
	release_ns = sim_waits_on ? sim_now_ns() : 0;
	if (was.as != AS_READER)
		atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
	if (lock->kind == SIM_MUTEX)
		pthread_mutex_unlock(&lock->mutex);
	else if (lock->kind == SIM_RWLOCK)
		pthread_rwlock_unlock(&lock->rw);
	else
		pthread_spin_unlock(&lock->spin);
	if (release_ns && was.begin_ns)
		write_down(&was, release_ns);
}

/* ---- the driver's own ---- */
static struct lock *process_lock(int dev)
{
	return sim_script.locks == LOCKS_DEVICE ? &devices[dev].process : &process;
}

unsigned sim_lock(unsigned set, int dev)
{
	if (sim_script.locks == LOCKS_PROCESS) {
		take(&process, AS_MUTEX);
		return HOLD_PROCESS;
	}
	if (set & (HOLD_CTX_READ | HOLD_CTX_WRITE))
		take(&devices[dev].context, set & HOLD_CTX_WRITE ? AS_WRITER : AS_READER);
	if (set & HOLD_STAGING)
		take(&devices[dev].staging, AS_MUTEX);
	if (set & HOLD_PROCESS)
		take(process_lock(dev), AS_MUTEX);
	if (set & HOLD_POOL)
		take(&devices[dev].pool, AS_MUTEX);
	return set;
}

unsigned sim_lock_also(unsigned held, unsigned set, int dev)
{
	return sim_script.locks == LOCKS_PROCESS ? held : held | sim_lock(set, dev);
}

unsigned sim_lock_idle(int dev)
{
	unsigned held = sim_lock(HOLD_CTX_WRITE, dev);

	sim_wait_device(dev, WHY_HIDDEN);
	return sim_lock_also(held, HOLD_PROCESS, dev);
}

void sim_unlock(unsigned held, int dev)
{
	if (sim_script.locks == LOCKS_PROCESS) {
		give(&process);
		return;
	}
	if (held & HOLD_POOL)
		give(&devices[dev].pool);
	if (held & HOLD_PROCESS)
		give(process_lock(dev));
	if (held & HOLD_STAGING)
		give(&devices[dev].staging);
	if (held & (HOLD_CTX_READ | HOLD_CTX_WRITE))
		give(&devices[dev].context);
}

void sim_lock_global(enum sim_lock which)
{
	take(which == SIM_LOCK_INIT ? &init_lock : &runtime_lock, AS_MUTEX);
}

void sim_unlock_global(enum sim_lock which)
{
	give(which == SIM_LOCK_INIT ? &init_lock : &runtime_lock);
}

static void forget(struct lock *lock)
{
	pthread_mutex_init(&lock->mutex, NULL);
	lock->owner = 0;
}

void sim_locks_fork_child(void)
{
	forget(&init_lock);
	forget(&runtime_lock);
}

/* ---- the script's ---- */
static struct lock *_Atomic scripted;

static struct lock *scripted_find(const char *name, unsigned kind)
{
	struct lock *lock = scripted;

	while (lock && (lock->kind != kind || strcmp(lock->name, name) != 0))
		lock = lock->next;
	return lock;
}

static struct lock *scripted_lock(const char *name, unsigned kind)
{
	static struct sim_spin making;
	struct lock *lock = scripted_find(name, kind);

	if (lock)
		return lock;
	sim_spin_lock(&making);
	lock = scripted_find(name, kind);
	if (!lock) {
		lock = calloc(1, sizeof(*lock));
		if (!lock)
			abort();
		snprintf(lock->name, sizeof(lock->name), "%s", name);
		lock->kind = (unsigned char)kind;
		lock->what = SIM_LOCK_SCRIPTED;
		if (kind == SIM_MUTEX)
			pthread_mutex_init(&lock->mutex, NULL);
		else if (kind == SIM_RWLOCK)
			pthread_rwlock_init(&lock->rw, NULL);
		else
			pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
		lock->next = scripted;
		scripted = lock;
	}
	sim_spin_unlock(&making);
	return lock;
}

/* A driver's lock by its name (process, context2; without a number that of the call's device), or one
 * that exists only in the script. */
static struct lock *lock_of_rule(const struct sim_hold_rule *rule, int dev)
{
	static const char *const names[] = {"process", "context", "staging", "pool"};
	size_t i, len = 0;
	char *end;
	long number;

	for (i = 0; i < 4; i++) {
		len = strlen(names[i]);
		if (strncmp(rule->lock, names[i], len) == 0)
			break;
	}
	if (i == 4 || (rule->kind == SIM_RWLOCK) != (i == 1) || rule->kind == SIM_SPINLOCK)
		return scripted_lock(rule->lock, rule->kind);
	number = strtol(rule->lock + len, &end, 10);
	if (*end)
		return scripted_lock(rule->lock, rule->kind);
	if (end > rule->lock + len)
		dev = (int)number;
	if (dev < 0 || dev >= SIM_MAX_DEVICES)
		dev = 0;
	return i == 0   ? process_lock(dev)
	       : i == 1 ? &devices[dev].context
	       : i == 2 ? &devices[dev].staging
			: &devices[dev].pool;
}

void sim_holds_begin(struct sim_span *span)
{
	span->hold_dev = (short)(sim_self.ctx ? sim_self.ctx->dev : 0);
	span->ioctl_ns = sim_script_ioctl_ns(span->fn);
	for (const struct sim_hold_rule *rule = sim_script_holds(span->fn); rule;
	     rule = rule->next) {
		struct lock *lock;

		if (!strstr(sim_fn_name[span->fn], rule->function))
			continue;
		lock = lock_of_rule(rule, span->hold_dev);
		take(lock, rule->mode);
		sim_work_for(rule->work_ns);
		if (rule->whole_call)
			span->holding = true;
		else
			give(lock);
	}
}

/* Backwards, as they were taken. */
static void release_rules(const struct sim_hold_rule *rule, const struct sim_span *span)
{
	if (!rule)
		return;
	release_rules(rule->next, span);
	if (rule->whole_call && strstr(sim_fn_name[span->fn], rule->function))
		give(lock_of_rule(rule, span->hold_dev));
}

void sim_holds_end(struct sim_span *span)
{
	if (span->ioctl_ns)
		sim_kernel_work();
	if (span->holding)
		release_rules(sim_script_holds(span->fn), span);
}

/* ---- time ---- */

/* Neither nanosleep nor usleep, which a tracer watches: a wait for the GPU is no wait for a lock. */
void sim_sleep_until(uint64_t when_ns)
{
	const uint64_t spin_ns = 60000;
	uint64_t now = sim_now_ns();

	if (when_ns <= now)
		return;
	if (when_ns > now + spin_ns) {
		uint64_t t = when_ns - spin_ns;
		struct timespec ts = {(time_t)(t / 1000000000u), (long)(t % 1000000000u)};

		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
			;
	}
	while ((now = sim_now_ns()) < when_ns)
		sim_relax();
	sim_note_late(now - when_ns);
}

/* Short work keeps the CPU, long work sleeps, unless the script wants it busy. */
void sim_work_for(uint64_t ns)
{
	uint64_t until_ns = sim_now_ns() + ns;

	if (!ns)
		return;
	if (!sim_script.busy_work) {
		sim_sleep_until(until_ns);
		return;
	}
	while (sim_now_ns() < until_ns)
		sim_relax();
	sim_note_late(sim_now_ns() - until_ns);
}

/* The host's own work in a call. */
void sim_host_work(enum sim_fn fn, uint64_t default_ns)
{
	if (sim_self.span)
		sim_kernel_work();
	sim_work_for(sim_script_cost_ns(sim_fn_name[fn], default_ns));
}

/* Without the kernel module (not preloaded) the time is host work like any other. */
void sim_kernel_work(void)
{
	struct sim_wait wait = {.kind = WAIT_IOCTL};
	uint64_t ns = 0;

	for (struct sim_span *span = sim_self.span; span; span = span->outer) {
		ns += span->ioctl_ns;
		span->ioctl_ns = 0;
	}
	if (!ns)
		return;
	wait.begin_ns = sim_now_ns();
	if (ioctl(SIM_KERNEL_FD, SIM_KERNEL_WORK, &ns)) {
		sim_work_for(ns);
		return;
	}
	wait.end_ns = sim_now_ns();
	sim_note_wait(&wait);
}
