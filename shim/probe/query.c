/*
 * shim/probe/query.c: waits for a GPU that is asked over and over. Called by the inspector of the questions, and by outside.c.
 */
#include <stdatomic.h>
#include "probe/query.h"
#include "record/board.h"
#include "record/sched.h"
#include "state/session.h"

#pragma GCC poison malloc calloc realloc fopen

#define NOT_READY 600 /* cudaErrorNotReady, CUDA_ERROR_NOT_READY */
/* Questions for others in a row: who asks for many asks for this one again by then */
#define OTHERS_MOST 64

/* What a thread may work between two questions so that the time counts as a wait; what it may so that it still asks for the
 * same; and for how long it may sleep. */
#define WORK_MOST_US 50
#define APART_US 1000
#define SLEEP_MOST_MS 250

/* Its time on a CPU is a system call, so it is not asked for after each question: the thread is taken to have run from the last
 * look to the last answer. */
#define LOOK_AGAIN_US 250

static uint64_t cycles_of_us(uint64_t us)
{
	return atomic_load_explicit(&spy_session->frequency, memory_order_relaxed) / 1000000 * us;
}

static void look_at_cpu(struct spy_query *query, uint64_t now)
{
	query->ran_ns = spy_sched_ran_ns();
	query->ran_at = now;
}

static void look_again(struct spy_query *query, uint64_t now)
{
	if (now - query->ran_at >= cycles_of_us(LOOK_AGAIN_US))
		look_at_cpu(query, now);
}

/* So long the thread has worked since the last answer, at most (cycles): not while it had no CPU, or slept. */
static uint64_t worked(const struct spy_query *query, uint64_t now)
{
	uint64_t ran, before = query->last - query->ran_at;

	if (now - query->last <= cycles_of_us(WORK_MOST_US))
		return now - query->last;
	ran = (spy_sched_ran_ns() - query->ran_ns) * cycles_of_us(1000) / 1000000;
	return ran - (ran < before ? ran : before);
}

static void show(const struct spy_thread *thread)
{
	spy_outside_show_on(thread->page, &(struct spy_outside){.start = thread->query.begun,
								.object = thread->query.object,
								.caller = thread->query.caller,
								.kind = SPY_WAIT_QUERY});
}

/* Its first question with that answer, or the first one after something else. */
static void begin(struct spy_thread *thread, const struct spy_frame *frame, uint64_t object,
		  uint64_t now)
{
	thread->query = (struct spy_query){.object = object,
					   .caller = frame->caller,
					   .calls = thread->page->calls,
					   .begun = now,
					   .since = now,
					   .last = now};
	look_at_cpu(&thread->query, now);
	show(thread);
}

static void end(struct spy_thread *thread)
{
	thread->query.object = 0;
	if (thread->page->outside_kind == SPY_WAIT_QUERY + 1)
		spy_board_show(thread->page->outside_kind, 0);
}

static bool goes_on(const struct spy_thread *thread, uint64_t now)
{
	return spy_query_is_open(thread) &&
	       worked(&thread->query, now) <= cycles_of_us(WORK_MOST_US);
}

static struct spy_outside wait_of(const struct spy_query *query)
{
	return (struct spy_outside){.start = query->since,
				    .object = query->object,
				    .caller = query->caller,
				    .kind = SPY_WAIT_QUERY,
				    .flags = SPY_WAIT_FAILED};
}

/* The thread has waited until now. Short pieces are put together. */
static void add(struct spy_thread *thread, const struct spy_frame *frame, uint64_t now, bool ended)
{
	struct spy_query *query = &thread->query;
	struct spy_outside wait = wait_of(query);

	query->last = now;
	if (now - query->since < spy_outside_least && !(ended && query->written))
		return;
	wait.flags = ended ? 0 : SPY_WAIT_FAILED;
	wait.sp = (uintptr_t)frame->stack;
	wait.bp = frame->stack[-3];
	spy_outside_add(thread, &wait, query->begun, now);
	query->since = now;
	query->written = true;
	look_again(query, now);
}

/* The time since the last answer was no wait. */
static void pass_over(struct spy_query *query, uint64_t now)
{
	query->since = query->last = now;
	look_at_cpu(query, now);
}

/* The thread is at work on its records. */
void spy_query_answered(struct spy_frame *frame, uint64_t object)
{
	struct spy_thread *thread = frame->thread;
	struct spy_query *query = &thread->query;
	uint32_t result = (uint32_t)frame->result;
	uint64_t now, work;

	if (frame->depth || (result != NOT_READY && query->object != object) ||
	    spy_outside_least == UINT64_MAX)
		return;
	now = spy_clock();
	if (result != NOT_READY) {
		if (goes_on(thread, now))
			add(thread, frame, now, !result);
		end(thread);
		return;
	}
	query->others = query->object == object ? 0 : query->others + 1;
	work = spy_query_is_open(thread) ? worked(query, now) : UINT64_MAX;
	if (work > cycles_of_us(APART_US) || query->others > OTHERS_MOST) {
		begin(thread, frame, object, now);
		return;
	}
	query->slept = false;
	if (work > cycles_of_us(WORK_MOST_US))
		pass_over(query, now);
	else
		add(thread, frame, now, false);
	if (thread->page->outside_kind != SPY_WAIT_QUERY + 1)
		show(thread);
}

bool spy_query_slept(struct spy_thread *thread, struct spy_outside *wait, uint64_t now)
{
	struct spy_query *query = &thread->query;

	if ((wait->kind != SPY_WAIT_SLEEP && wait->kind != SPY_WAIT_YIELD) || query->slept ||
	    !goes_on(thread, wait->start) || now - wait->start > cycles_of_us(SLEEP_MOST_MS * 1000))
		return false;
	*wait = (struct spy_outside){.start = query->since,
				     .object = query->object,
				     .caller = query->caller,
				     .sp = wait->sp,
				     .bp = wait->bp,
				     .kind = SPY_WAIT_QUERY,
				     .flags = SPY_WAIT_FAILED};
	query->since = query->last = now;
	query->written = query->slept = true;
	look_at_cpu(query, now);
	return true;
}
