/*
 * shim/lib/clock.c: which clock a trace uses, and how it relates to the system's clocks. Called by
 * lifecycle.c when the library is loaded and when a session begins and ends.
 */
#include <time.h>
#include "lib/clock.h"

#define NS_PER_S 1000000000ull

bool spy_clock_is_counter = true;

static uint64_t read_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t spy_clock_monotonic(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

void spy_clock_init(bool force_monotonic)
{
	spy_clock_is_counter = !force_monotonic && spy_counter_is_invariant();
}

void spy_clock_read_pair(struct spy_clock_pair *pair)
{
	uint64_t best = UINT64_MAX;

	/* The attempt that was interrupted least. */
	for (int i = 0; i < 5; i++) {
		uint64_t before = spy_clock();
		uint64_t monotonic = read_ns(CLOCK_MONOTONIC);
		uint64_t realtime = read_ns(CLOCK_REALTIME);
		uint64_t after = spy_clock();

		if (after - before < best) {
			best = after - before;
			pair->clock = before + (after - before) / 2;
			pair->monotonic_ns = monotonic;
			pair->realtime_ns = realtime;
		}
	}
}

uint64_t spy_clock_frequency(const struct spy_clock_pair *from, const struct spy_clock_pair *to)
{
	uint64_t ns = to->monotonic_ns - from->monotonic_ns;

	if (!spy_clock_is_counter)
		return NS_PER_S;
	if (ns < NS_PER_S / 1000)
		return 0;
	return (uint64_t)((unsigned __int128)(to->clock - from->clock) * NS_PER_S / ns);
}
