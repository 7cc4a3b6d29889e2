/*
 * shim/probe/caller.c: is the caller inside a call of its own, and is there room for a record
 * inside it? Runs on the thread that calls a probe, perhaps with a lock of the driver's: no lock,
 * no system call, no allocation.
 */
#include "arch/frame_layout.h"
#include "probe/caller.h"
#include "probe/waiters.h"
#include "record/board.h"
#include "state/thread.h"

#pragma GCC poison malloc calloc realloc fopen

/*
 * A call that was left by an exception or longjmp never ended for the recorder. Its frame lay below
 * where we are; or, if we are deeper by now, other data lies in its place. What spy_enter and the
 * trampoline wrote into it decides. Only on the thread's own stack: another stack may be gone.
 */
__attribute__((no_sanitize("address"))) static bool
in_progress(const struct spy_thread *thread, const struct spy_progress *call, uintptr_t here)
{
	const struct spy_frame *frame = (const struct spy_frame *)call->frame;

	if (call->frame <= here)
		return false;
	if (here < thread->stack_begin || call->frame >= thread->stack_end)
		return true;
	return frame->thread == thread && &thread->calls[frame->depth] == call &&
	       (uintptr_t)frame->stack == call->frame + SPY_FRAME_BYTES + SPY_FRAME_ABOVE &&
	       frame->stack[-1] == frame->caller;
}

static bool on_thread_stack(const struct spy_thread *thread, uintptr_t address)
{
	return address >= thread->stack_begin && address < thread->stack_end;
}

/*
 * The thread's innermost call was left, and it goes on without: it waits for nothing any more, and
 * is in no call that the board should show. Not on a signal handler's stack or a coroutine's: from
 * there one comes back.
 */
static __attribute__((noinline)) void forget_left(struct spy_thread *thread, uintptr_t here)
{
	uint8_t depth = thread->depth;

	if (!on_thread_stack(thread, here))
		return;
	while (depth && !in_progress(thread, &thread->calls[depth - 1], here))
		depth--;
	if (!spy_thread_try_work(thread, __builtin_frame_address(0)))
		return;
	thread->depth = depth;
	thread->detail_level = SPY_DETAIL_NONE;
	thread->page->wait_kind = 0;
	__atomic_store_n(&thread->page->depth, depth, __ATOMIC_RELEASE);
	spy_waiters_leave(thread);
	spy_thread_end_work(thread);
}

struct spy_thread *spy_caller(const void *here)
{
	struct spy_thread *thread = spy_self;

	if (!spy_probing || thread->reentry_frame || !thread->depth || !thread->packet)
		return NULL;
	if (in_progress(thread, &thread->calls[thread->depth - 1], (uintptr_t)here))
		return thread;
	forget_left(thread, (uintptr_t)here);
	return NULL;
}

void *spy_caller_room(struct spy_thread *thread, size_t bytes)
{
	if (spy_thread_has_room(thread, bytes))
		return thread->head;
	spy_thread_count_lost(thread);
	return NULL;
}

void spy_caller_set_begin(struct spy_thread *thread, uint64_t now)
{
	for (uint8_t i = 0; i < thread->depth; i++)
		if (!thread->calls[i].start) {
			thread->calls[i].start = now;
			if (!i)
				spy_board_show(thread->page->since, now);
			else if (i + 1 == thread->depth)
				spy_board_show(thread->page->inner_since, now);
		}
}
