/*
 * shim/state/self.c: the calling thread's own state. Runs on the application's threads, at any
 * time.
 */
#include <string.h>
#include "lib/signal_guard.h"
#include "lib/clock.h"
#include "state/board_fields.h"
#include "state/thread.h"

/* All zeros, so always full: what a thread has before its first call. */
static struct spy_thread no_thread;

__thread struct spy_thread *spy_self = &no_thread;

__thread unsigned int spy_self_deferring;

void spy_self_reset(void)
{
	spy_self = &no_thread;
}

/* The counter is in the board, so it survives a SIGKILL. */
void spy_thread_count_lost(struct spy_thread *thread)
{
	spy_count(&thread->file.discarded);
	if (thread->page)
		spy_count(&thread->page->lost);
	if (thread->packet)
		thread->packet->discarded = thread->file.discarded;
}

struct spy_thread *spy_self_block_reentry(uintptr_t *before)
{
	struct spy_thread *thread = spy_self;

	if (!thread->page)
		return NULL;
	*before = thread->reentry_frame;
	thread->reentry_frame = UINTPTR_MAX;
	return thread;
}

void spy_self_restore_reentry(struct spy_thread *thread, uintptr_t before)
{
	if (thread == spy_self) /* its slot may be another thread's by now */
		thread->reentry_frame = before;
}

uint64_t spy_overhead_begin(void)
{
	return spy_clock();
}

void spy_overhead_end(struct spy_thread *thread, uint64_t begun)
{
	if (thread && thread->packet)
		thread->packet->overhead += spy_clock() - begun;
}

uint8_t spy_thread_device(struct spy_thread *thread)
{
	return (uint8_t)(thread->device - 1);
}

void spy_thread_set_device(struct spy_thread *thread, uint8_t device, uint16_t context)
{
	thread->device = (uint8_t)(device + 1);
	thread->context = context;
	spy_board_show(thread->page->device, device);
	spy_board_show(thread->page->context, context);
}
