/*
 * shim/entry/gap.c: a call begins after a long time without one. Runs on the application's
 * threads, at most every two milliseconds in each.
 *
 * Where a thread was before a gap is known only when the gap is over. But programs go round in
 * loops: the number of calls between two gaps is often the one that came after the same number
 * before. So the call behind which a gap is expected gets a stack, and the analyzer believes it
 * only if the gap came.
 */
#include "entry/gap.h"
#include "record/sched.h"
#include "state/subsystem.h"
#include "stack/stack.h"

/* So many calls lay between the last two gaps: how many will it be next? */
static uint32_t expect_next(const struct spy_gaps *gaps, uint32_t between)
{
	for (uint32_t i = 1; i < SPY_GAPS && i < gaps->n; i++)
		if (gaps->between[(gaps->n - i - 1) % SPY_GAPS] == between)
			return gaps->between[(gaps->n - i) % SPY_GAPS];
	return between;
}

void spy_gap_look(struct spy_thread *thread, uint64_t start)
{
	struct spy_gaps *gaps = &thread->gaps;
	uint64_t calls = thread->page->calls;
	uint32_t between = (uint32_t)(calls - gaps->calls_at);

	SPY_EACH(look, thread, start, true);
	/* It made no call while recording was dormant: that time is no gap. */
	if (spy_thread_missed_a_change(thread) && spy_window_is_open()) {
		spy_thread_renew(thread);
		return;
	}
	if (start - thread->ran_at < spy_look_again) {
		spy_sched_look_later(thread);
		return;
	}
	if (!spy_sched_look_before(thread, start))
		return;
	if (start - thread->left_at < spy_long_gap)
		return;
	gaps->next_at = calls + expect_next(gaps, between);
	gaps->between[gaps->n++ % SPY_GAPS] = between;
	gaps->calls_at = calls;
	gaps->behind = true;
}
