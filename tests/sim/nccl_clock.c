/*
 * tests/sim/nccl_clock.c: the global timers of the GPUs, as far as the profiler interface shows them. Each
 * is off CLOCK_MONOTONIC by about what CLOCK_REALTIME is, and from there by an offset and a drift of its
 * own: the script's, or by SPYSIM_NCCL_SEED and the rank: an offset of 10 ms at most or, for one GPU in
 * four, of some hours, and a drift of 20 ppm at most. A GPU has one timer for all its communicators: the
 * first one's rank decides.
 */
#include "nccl.h"

#include <stdlib.h>

struct nccl_clock {
	uint64_t since_ns, base_ns; /* CLOCK_MONOTONIC, and what the timer then showed */
	double drift;
};

/* splitmix64 */
uint64_t nccl_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a + (b + 1) * 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* Between -most and most. */
static double between(uint64_t random, double most)
{
	return ((double)(random % 2000001) / 1e6 - 1) * most;
}

static void set_up(struct nccl_clock *clock, int rank)
{
	const struct sim_nccl *knobs = nccl_source->knobs;
	const char *seed = getenv("SPYSIM_NCCL_SEED");
	double offset_ns = knobs->timer_offset_us * 1e3, drift_ppm = knobs->timer_drift_ppm;
	struct timespec ts;

	if (seed && *seed && !knobs->timer_set) {
		uint64_t random = nccl_mix(strtoull(seed, NULL, 0), (uint64_t)rank);
		bool far = random % 4 == 0;

		offset_ns = between(nccl_mix(random, 1), far ? 2e13 : 1e7);
		drift_ppm = between(nccl_mix(random, 2), 20);
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	clock->since_ns = nccl_now_ns();
	clock->base_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec +
			 (uint64_t)(int64_t)offset_ns;
	clock->drift = drift_ppm / 1e6;
}

const struct nccl_clock *nccl_clock_of(int dev, int rank)
{
	static struct nccl_clock clocks[64];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct nccl_clock *clock = &clocks[dev & 63];

	pthread_mutex_lock(&lock);
	if (!clock->base_ns)
		set_up(clock, rank);
	pthread_mutex_unlock(&lock);
	return clock;
}

uint64_t nccl_clock_read(const struct nccl_clock *clock, uint64_t ns)
{
	int64_t since = (int64_t)(ns - clock->since_ns);
	uint64_t value =
		clock->base_ns + (uint64_t)(since + (int64_t)((double)since * clock->drift));

	return value - value % nccl_source->knobs->timer_step_ns;
}
