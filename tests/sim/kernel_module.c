/*
 * tests/sim/kernel_module.c: libsimkernel.so, the kernel module of the simulated driver. No request of
 * a real kernel lasts on demand, so this library, preloaded last, answers one request of ours in
 * ioctl(): it sleeps as many nanoseconds as its argument says. Everything else goes to the kernel.
 */
#include "kernel_module.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

PUBLIC int ioctl(int fd, unsigned long request, void *arg);

/* Not nanosleep, which would be seen as a second wait inside the first. */
static void sleep_ns(uint64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000u);
	until.tv_nsec = (long)(ns % 1000000000u);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

int ioctl(int fd, unsigned long request, void *arg)
{
	if (fd == SIM_KERNEL_FD && request == SIM_KERNEL_WORK) {
		sleep_ns(*(const uint64_t *)arg);
		return 0;
	}
	return (int)syscall(SYS_ioctl, fd, request, arg); /* sets errno */
}
