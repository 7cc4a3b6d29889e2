/*
 * shim/arch/x86_64/processor.h: what C cannot say of this processor: its counter, the thread
 * pointer, a pause in a loop, and a system call. Used on any of the application's threads, at any
 * time.
 */
#ifndef CUDASPY_SHIM_PROCESSOR_H
#define CUDASPY_SHIM_PROCESSOR_H

#include <cpuid.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/* The counter that is the trace's clock. */
static inline uint64_t spy_counter(void)
{
	return __builtin_ia32_rdtsc();
}

/* Does the counter run at one speed on all cores, in all their states? Intel SDM vol. 3, 18.17.1
 * and AMD APM vol. 3: CPUID 8000_0007h, EDX bit 8. */
static inline bool spy_counter_is_invariant(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
}

/* Where the calling thread's control block lies: another address for each thread. */
static inline uintptr_t spy_thread_pointer(void)
{
	uintptr_t self;

	__asm__("movq %%fs:0, %0" : "=r"(self));
	return self;
}

/* In a loop that tries again. */
static inline void spy_pause(void)
{
	__builtin_ia32_pause();
}

/* Adds one to a counter of the calling thread's, which others may read. One instruction: what a signal handler counts on
 * the same thread is not undone. */
static inline void spy_count(uint64_t *counter)
{
	__asm__ volatile("incq %0" : "+m"(*counter) : : "cc");
}

/* What is read behind it is read later: loads keep their order here, so it is for the compiler (Intel SDM 3A, 9.2.2). */
static inline void spy_read_barrier(void)
{
	__asm__ volatile("" : : : "memory");
}

/* syscall(2) of the shim's own. The function of that name is one that the shim exports itself,
 * for the application's calls (trampoline.S). System V ABI, AMD64 supplement, appendix A.2. */
static inline long spy_syscall_words(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (result < 0 && result > -4096) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

#define SPY_SYSCALL_SIX(number, a, b, c, d, e, f, ...) \
	spy_syscall_words((long)(number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), \
			  (long)(f))
#define spy_syscall(...) SPY_SYSCALL_SIX(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

#endif
