/*
 * shim/record/fork.c: memory for what a thread that forks has in the making. Runs on the thread
 * that forks, before and after, and in the child.
 */
#include <string.h>
#include <sys/mman.h>
#include "state/session.h"
#include "state/thread.h"

/*
 * A signal handler may interrupt spy_enter or spy_leave, fork, and return in the child, too: what
 * it interrupted goes on there and completes a record, in memory that the child has as zeros or not
 * at all. So it is given memory like it, once and for nothing: the thread as it was, full, and
 * pages in place of its packet and of its page of the board.
 */
static __thread struct spy_thread *as_it_was; /* a copy, while the thread forks */
/* which the count-only path may be about to count on */
static __thread struct spy_slot_page *page_it_had;
/* and the board's first page, at which each call looks whether the outside asks for something */
static __thread struct spy_board *board_it_had;

static struct spy_thread *resumed; /* in the child: the thread that got such memory */

#define THREAD_BYTES sizeof(struct spy_thread)

static void *map_at(void *address, size_t bytes, int flags)
{
	void *map = mmap(address, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

void spy_fork_before(void)
{
	struct spy_thread *thread = spy_self;

	page_it_had = thread->page;
	board_it_had = spy_session ? spy_session->board : NULL;
	if (!thread->reentry_frame || thread->reentry_frame == UINTPTR_MAX)
		return;
	as_it_was = map_at(NULL, THREAD_BYTES, 0);
	if (as_it_was)
		memcpy(as_it_was, thread, THREAD_BYTES);
}

void spy_fork_after(void)
{
	if (as_it_was)
		munmap(as_it_was, THREAD_BYTES);
	as_it_was = NULL;
}

void spy_fork_child(void)
{
	resumed = NULL;
	if (page_it_had)
		map_at(page_it_had, SPY_BOARD_PAGE, MAP_FIXED_NOREPLACE);
	if (board_it_had)
		map_at(board_it_had, SPY_BOARD_PAGE, MAP_FIXED_NOREPLACE);
	if (!as_it_was) {
		spy_self_reset(); /* its slot will be another thread's */
		return;
	}
	if (as_it_was->packet) /* else recording was dormant: it has a table in the making */
		map_at(as_it_was->packet, SPY_PACKET_BYTES, MAP_FIXED_NOREPLACE);
	resumed = spy_self;
	memcpy(resumed, as_it_was, THREAD_BYTES);
	spy_thread_lose_room(resumed);
	spy_fork_after();
}

bool spy_fork_is_handled(void)
{
	return !resumed;
}

/* It has come back to its own calls, of the child's. */
void spy_fork_handle(void)
{
	if (!resumed || spy_self != resumed || resumed->reentry_frame)
		return;
	memset(resumed, 0, THREAD_BYTES);
	spy_self_reset();
	resumed = NULL;
}
