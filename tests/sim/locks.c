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
 * Order: context, staging, process, pool.
 */
#include "sim.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lock {
	pthread_mutex_t mutex;
	atomic_int owner;
};

struct device_locks {
	pthread_rwlock_t context;
	atomic_int writer;
	struct lock staging, pool, process;
};

static struct lock process = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static struct device_locks devices[SIM_MAX_DEVICES] = {
	[0 ... SIM_MAX_DEVICES - 1] =
		{
			.context = PTHREAD_RWLOCK_INITIALIZER,
			.staging.mutex = PTHREAD_MUTEX_INITIALIZER,
			.pool.mutex = PTHREAD_MUTEX_INITIALIZER,
			.process.mutex = PTHREAD_MUTEX_INITIALIZER,
		},
};

static int self_tid(void)
{
	if (!sim_self.tid)
		sim_self.tid = (int)syscall(SYS_gettid);
	return sim_self.tid;
}

/* Books a wait on the call and on the runtime call around it. */
static void note_wait(enum sim_lock kind, int dev, int holder, uint64_t since_ns)
{
	uint64_t ns = sim_now_ns() - since_ns;

	for (struct sim_span *span = sim_self.span; span; span = span->outer) {
		span->lock_wait_ns += ns;
		if (ns < span->worst_ns)
			continue;
		span->worst_ns = ns;
		span->holder_tid = holder;
		span->lock = (short)(kind + 1);
		span->lock_dev = (short)dev;
	}
}

static void take(struct lock *lock, enum sim_lock kind, int dev)
{
	int holder = atomic_load_explicit(&lock->owner, memory_order_relaxed);
	uint64_t since_ns = sim_self.span && holder ? sim_now_ns() : 0;

	pthread_mutex_lock(&lock->mutex);
	if (since_ns)
		note_wait(kind, dev, holder, since_ns);
	atomic_store_explicit(&lock->owner, self_tid(), memory_order_relaxed);
}

static void give(struct lock *lock)
{
	atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
	pthread_mutex_unlock(&lock->mutex);
}

static void take_context(int dev, bool write)
{
	struct device_locks *d = &devices[dev];
	int holder = atomic_load_explicit(&d->writer, memory_order_relaxed);
	uint64_t since_ns = sim_self.span && (holder || write) ? sim_now_ns() : 0;

	if (write)
		pthread_rwlock_wrlock(&d->context);
	else
		pthread_rwlock_rdlock(&d->context);
	if (since_ns && (holder || sim_now_ns() - since_ns > 5000))
		note_wait(SIM_LOCK_CONTEXT, dev, holder, since_ns);
	if (write)
		atomic_store_explicit(&d->writer, self_tid(), memory_order_relaxed);
}

unsigned sim_lock(unsigned set, int dev)
{
	if (sim_script.locks == LOCKS_PROCESS) {
		take(&process, SIM_LOCK_PROCESS, 0);
		return HOLD_PROCESS;
	}
	if (set & (HOLD_CTX_READ | HOLD_CTX_WRITE))
		take_context(dev, set & HOLD_CTX_WRITE);
	if (set & HOLD_STAGING)
		take(&devices[dev].staging, SIM_LOCK_STAGING, dev);
	if (set & HOLD_PROCESS && sim_script.locks == LOCKS_DEVICE)
		take(&devices[dev].process, SIM_LOCK_PROCESS, dev);
	else if (set & HOLD_PROCESS)
		take(&process, SIM_LOCK_PROCESS, 0);
	if (set & HOLD_POOL)
		take(&devices[dev].pool, SIM_LOCK_POOL, dev);
	return set;
}

unsigned sim_lock_also(unsigned held, unsigned set, int dev)
{
	return sim_script.locks == LOCKS_PROCESS ? held : held | sim_lock(set, dev);
}

unsigned sim_lock_idle(int dev)
{
	unsigned held = sim_lock(HOLD_CTX_WRITE, dev);

	sim_wait_device(dev);
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
		give(sim_script.locks == LOCKS_DEVICE ? &devices[dev].process : &process);
	if (held & HOLD_STAGING)
		give(&devices[dev].staging);
	if (held & (HOLD_CTX_READ | HOLD_CTX_WRITE)) {
		if (held & HOLD_CTX_WRITE)
			atomic_store_explicit(&devices[dev].writer, 0, memory_order_relaxed);
		pthread_rwlock_unlock(&devices[dev].context);
	}
}

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* sched_yield is among the calls a tracer watches, so the spin lock asks the kernel itself. */
static void yield_unseen(void)
{
#if defined(__x86_64__)
	long rc;

	__asm__ volatile("syscall" : "=a"(rc) : "0"(SYS_sched_yield) : "rcx", "r11", "memory");
#else
	sched_yield();
#endif
}

void sim_spin_lock(struct sim_spin *spin)
{
	for (unsigned n = 0;; n++) {
		if (!atomic_load_explicit(&spin->locked, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&spin->locked, 1, memory_order_acquire))
			return;
		if (n % 64 == 63)
			yield_unseen();
		else
			relax();
	}
}

void sim_spin_unlock(struct sim_spin *spin)
{
	atomic_store_explicit(&spin->locked, 0, memory_order_release);
}

/* Neither nanosleep nor usleep, which a tracer watches: a wait for the GPU is no wait for a lock. */
void sim_sleep_until(uint64_t when_ns)
{
	const uint64_t spin_ns = 60000;
	uint64_t now = sim_now_ns();

	if (when_ns > now + spin_ns) {
		uint64_t t = when_ns - spin_ns;
		struct timespec ts = {(time_t)(t / 1000000000u), (long)(t % 1000000000u)};

		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
			;
	}
	while (sim_now_ns() < when_ns)
		relax();
}

/* The host's own work in a call: short work burns the CPU, long work sleeps, as the kernel module's
 * does from the thread's point of view. */
void sim_host_work(enum sim_fn fn, uint64_t default_ns)
{
	uint64_t ns = sim_script_cost_ns(sim_fn_name[fn], default_ns);

	if (ns)
		sim_sleep_until(sim_now_ns() + ns);
}
