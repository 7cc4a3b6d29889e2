/*
 * tests/sim/unseen.h: how the simulator does what belongs to no driver: its bookkeeping. Whoever
 * interposes libc to see the driver wait must not see these: system calls are made without libc, and
 * what must be exclusive spins. Included by driver and runtime, on any thread.
 */
#ifndef SIM_UNSEEN_H
#define SIM_UNSEEN_H

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns -errno, as the kernel does. */
static inline long sim_syscall(long number, long a, long b, long c)
{
	long rc;

#if defined(__x86_64__)
	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "0"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
#else
	rc = syscall(number, a, b, c);
#endif
	return rc;
}

static inline void sim_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

struct sim_spin {
	atomic_int locked;
};

static inline void sim_spin_lock(struct sim_spin *spin)
{
	for (unsigned n = 0;; n++) {
		if (!atomic_load_explicit(&spin->locked, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&spin->locked, 1, memory_order_acquire))
			return;
		if (n % 64 == 63)
			sim_syscall(SYS_sched_yield, 0, 0, 0);
		else
			sim_relax();
	}
}

static inline void sim_spin_unlock(struct sim_spin *spin)
{
	atomic_store_explicit(&spin->locked, 0, memory_order_release);
}

#endif
