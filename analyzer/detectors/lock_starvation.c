/*
 * analyzer/detectors/lock_starvation.c: a thread that waits for a lock which others take again and again
 * before it gets its turn.
 *
 * The locks inside CUDA are no queues: who gives one back and wants it again at once has it before a
 * sleeping waiter is awake. In a queue nobody would be passed over more often than there are threads.
 */
#include "detector.h"
#include "report_words.h"

#define TURNS 2 /* more than so many rounds of all its threads is no queue any more */
#define ROW_LEAST_NS 10000000 /* a shorter wait is noticed by nobody, however often it is lost */

static bool starves(const struct lock *lock)
{
	uint64_t threads = lock->waiters.count > lock->holders.count ? lock->waiters.count
								     : lock->holders.count;

	return lock->waits && lock->passed_waits && lock->longest_row > TURNS * threads &&
	       lock->row_ns >= ROW_LEAST_NS;
}

static const char *taker(struct report *report, const struct analysis *a, const struct lock *lock)
{
	if (!lock->row_thread)
		return "";
	return report_text(report, ", %llu times by %s%s", (unsigned long long)lock->row_taken,
			   word_thread(report, lock->row_thread, SPY_DEVICE_NONE),
			   word_in_function(report, a, lock->row_fn));
}

static void tell(const struct analysis *a, struct report *report, const struct lock *lock,
		 struct finding **findings, size_t *n)
{
	struct finding *finding = detector_add(&detector_lock_starvation, findings, n);
	const char *more = "";

	if (lock->passed_waits > 1)
		more = report_text(report, "; %llu such waits in all",
				   (unsigned long long)lock->passed_waits);
	finding->process = lock->process;
	finding->function = word_function(a, lock->row_fn);
	finding->count = lock->passed_waits;
	finding->own_ns = lock->passed_ns;
	finding->overlaps = true; /* those who took it have a stall, or findings of their own */
	finding->what = report_text(
		report, "%s waited %s for a lock that others took %llu times meanwhile%s%s",
		word_thread(report, lock->starved, SPY_DEVICE_NONE),
		word_time(report, lock->row_ns), (unsigned long long)lock->longest_row,
		taker(report, a, lock), more);
	if (finding->function)
		finding->fix =
			report_text(report,
				    "Call %s less often: keep what it makes, or do more with one "
				    "call. A process of "
				    "its own for the thread that waits has locks of its own.",
				    finding->function);
}

static void conclude(const struct analysis *a, struct report *report, struct finding **findings,
		     size_t *n)
{
	size_t i;

	for (i = 0; i < a->accounts.locks.count; i++)
		if (starves(a->accounts.locks.all[i]))
			tell(a, report, a->accounts.locks.all[i], findings, n);
}

const struct detector detector_lock_starvation = {
	.id = "lock-starvation",
	.title = "a thread loses a lock to others again and again",
	.sees = "Waits of 10 ms and more for a lock inside CUDA that other threads took and gave "
		"back many times meanwhile, more than twice as often as a queue would have let "
		"them. A thread that calls in a tight loop keeps the lock to itself that way; "
		"one that calls now and then hangs.",
	.blind = "Locks that are not the C library's, and recordings without probes. Beyond some "
		 "thousands of changes of hands during one wait the count is too low.",
	.fix = "Let the threads that take it call less often, or give the one that waits a process "
	       "of its own.",
	.conclude = conclude,
};
