/*
 * tests/e2e/programs/weekclock.c: a library that is preloaded: the clocks of the process run $WEEK_SPEED times as fast as the real
 * ones. The recorder's times are of these clocks with CUDASPY_CLOCK=monotonic. For tests/bench/week.sh.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct timespec began[2]; /* CLOCK_REALTIME, CLOCK_MONOTONIC */
static long speed;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor(101))) static void begin(void)
{
	const char *text = getenv("WEEK_SPEED");

	real = dlsym(RTLD_NEXT, "clock_gettime");
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &began[CLOCK_REALTIME]);
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &began[CLOCK_MONOTONIC]);
	speed = text ? atol(text) : 1;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long long ns;

	if (real ? real(clock, now) : syscall(SYS_clock_gettime, clock, now))
		return -1;
	if (speed <= 1 || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
		return 0;
	ns = (now->tv_sec - began[clock].tv_sec) * 1000000000ll + now->tv_nsec -
	     began[clock].tv_nsec;
	ns *= speed;
	now->tv_sec = began[clock].tv_sec + (ns + began[clock].tv_nsec) / 1000000000;
	now->tv_nsec = (ns + began[clock].tv_nsec) % 1000000000;
	return 0;
}
