/*
 * analyzer/idle/together.c: for how long two GPUs had nothing to do at the same time: what tells GPUs
 * that work in turns from those that work together. Called by idle.c for each interval in which a
 * GPU was idle, when it has ended.
 */
#include "idle.h"

uint64_t idle_in_both(const struct idle_gpu *other, const struct idle_interval *interval)
{
	uint64_t least = other->n_intervals > IDLE_KEPT ? other->n_intervals - IDLE_KEPT : 0;
	uint64_t i, ns = 0;

	for (i = other->n_intervals; i > least; i--) {
		const struct idle_interval *its =
			&other->intervals[(i - 1) % other->intervals_size];
		uint64_t from_ns = max_u64(its->begin_ns, interval->begin_ns);
		uint64_t to_ns = min_u64(its->end_ns, interval->end_ns);

		if (its->end_ns <= interval->begin_ns)
			break;
		if (from_ns < to_ns)
			ns += min_u64(to_ns - from_ns, its->ns);
	}
	return ns;
}

void idle_together(struct idle_gpu *gpus, size_t n_gpus, size_t gpu,
		   const struct idle_interval *interval)
{
	for (size_t i = 0; gpu < IDLE_PAIRED && i < n_gpus && i < IDLE_PAIRED; i++) {
		uint64_t ns = i == gpu ? 0 : idle_in_both(&gpus[i], interval);

		gpus[gpu].together_ns[i] += ns;
		gpus[i].together_ns[gpu] += ns;
	}
}
