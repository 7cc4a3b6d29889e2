/*
 * analyzer/detectors/lock_starvation.c: a thread that waits for a lock which others take again and
 * again before it gets its turn.
 *
 * The locks inside CUDA are no queues: a thread that releases one and wants it again at once has it
 * before a sleeping waiter is awake. In a queue no thread would be passed over more often than
 * there are threads.
 *
 * A waiter that was awake and had no CPU was not kept from the lock by those the threads that
 * acquired it meanwhile: a queue, or a process of its own, would not have helped. That time is no
 * part of the cost.
 */
#include "holder_cure.h"
#include "table.h"
#include "account/account.h"
#include "text/text.h"

#define LACK_LEAST_PART 20 /* from that part of the wait on it is told that a CPU was missing */
#define TURNS 2 /* more than so many rounds of all its threads is no queue any more */

static bool starves(const struct lock *lock)
{
	uint64_t threads = lock->waiters.count > lock->holders.count ? lock->waiters.count
								     : lock->holders.count;

	return lock->loss.waiter && lock->passed_waits && lock->loss.lost > TURNS * threads;
}

static const char *taker(struct arena *texts, const struct trace_set *set,
			 const struct lock_loss *loss)
{
	if (!loss->by)
		return "";
	return arena_printf(texts, ", %llu times by %s%s", (unsigned long long)loss->by_acquired,
			    text_thread(texts, loss->by, SPY_DEVICE_NONE),
			    text_in_function(texts, set, loss->by_fn));
}

static const char *without_cpu(struct arena *texts, const struct lock_loss *loss)
{
	if (loss->lacked_ns < loss->ns / LACK_LEAST_PART)
		return "";
	return arena_printf(texts, "; for %s of that it was ready to go on and had no CPU",
			    text_time(texts, loss->lacked_ns));
}

/* The calls that take it most often need not be those that have it longest. */
static const char *longest(struct arena *texts, const struct trace_set *set,
			   const struct lock_loss *loss)
{
	if (loss->had_fn == NO_FUNCTION || loss->had_fn == loss->by_fn)
		return "";
	return arena_printf(texts, "; they had it longest in %s, for %s",
			    text_function(set, loss->had_fn), text_time(texts, loss->had_ns));
}

static void add_finding(const struct trace_set *set, const struct lock *lock, struct found *found)
{
	struct arena *texts = found->texts;
	struct finding *finding = detector_add(&detector_lock_starvation, found);
	const struct lock_loss *loss = &lock->loss;
	uint32_t fn = loss->had_fn != NO_FUNCTION ? loss->had_fn : loss->by_fn;
	const char *more = "", *cure = holder_cure(texts, set, fn, false);

	if (lock->passed_waits > 1)
		more = arena_printf(texts, "; %llu such waits in all",
				    (unsigned long long)lock->passed_waits);
	finding->origin.process = lock->process;
	finding->place.function = text_function(set, fn);
	finding->count = lock->passed_waits;
	finding->cost.own_ns = lock->passed_ns;
	thread_costs_add(&finding->cost.threads, loss->waiter, (double)loss->ns, 0);
	/* the threads that acquired it have a stall, or findings of their own */
	finding->cost.overlaps = true;
	finding->what = arena_printf(
		texts, "%s waited %s for a lock that others took %llu times meanwhile%s%s%s%s",
		text_thread(texts, loss->waiter, SPY_DEVICE_NONE), text_time(texts, loss->ns),
		(unsigned long long)loss->acquired, taker(texts, set, loss),
		longest(texts, set, loss), without_cpu(texts, loss), more);
	finding->fix = cure;
	if (cure)
		finding->otherwise =
			"Or give the thread that waits a process of its own, which has "
			"locks of its own.";
}

static void conclude(const struct accounting *a, struct found *found)
{
	for (size_t i = 0; i < a->locks.count; i++)
		if (starves(a->locks.all[i]))
			add_finding(a->model->set, a->locks.all[i], found);
}

const struct detector detector_lock_starvation = {
	.id = "lock-starvation",
	.title = "a thread waits for a lock that others acquire again and again",
	.sees = "Waits of 10 ms and more for a lock inside CUDA that other threads took and gave "
		"back many times meanwhile, more than twice as often as a queue would have let "
		"them. A thread that calls in a tight loop keeps the lock to itself that way; "
		"one that calls now and then hangs.",
	.blind = "Locks that are not the C library's, and recordings without probes. Beyond "
		 "some thousands of changes of hands during one wait the count is too low. In "
		 "which part of a call its thread was ready to go on and had no CPU is unknown. "
		 "So such time does not count where it does not fit into the rest of the call, "
		 "nor does the same share of the times that others took the lock.",
	.fix = "Let the threads that take it call less often, or give the one that waits a process "
	       "of its own.",
	.conclude_calls = conclude,
};
