/* links: shim/record/fork.c shim/state/session.c shim/state/self.c */
/*
 * tests/unit/test_fork_memory.c: the session's memory, and a thread's, in a forked child: zeros, but for what a signal
 * handler's fork interrupted; and what a thread's own state says before its first call and in a slow path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/clock.h"
#include "lib/signal_guard.h"
#include "state/session.h"
#include "state/thread.h"

bool spy_clock_is_counter;
static uint64_t now = 1000;

uint64_t spy_clock_monotonic(void)
{
	return now;
}

/* As the board and the tails are: a child does not have them. */
static void *map(size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	madvise(map, bytes, MADV_DONTFORK);
	return map;
}

static struct spy_thread *thread;

static int begin(void **state)
{
	(void)state;
	assert_true(spy_session_init());
	assert_true(spy_session_map_tables());
	spy_session->slots = 2;
	spy_session_wipe();
	spy_session->slots = 2;
	spy_session->state = SPY_SESSION_ACTIVE;
	spy_session->board = map(SPY_BOARD_PAGE);
	spy_session->board->slots = 4711;
	thread = &spy_threads[1];
	thread->page = map(SPY_BOARD_PAGE);
	thread->page->calls = 4711;
	thread->packet = map(SPY_PACKET_BYTES);
	thread->head = (uint8_t *)thread->packet + 400;
	thread->slot = 1;
	thread->tid = 77;
	spy_thread_use_room(thread, (uint8_t *)thread->packet + 1000);
	spy_finished_parts[5].number = 5;
	spy_self = thread;
	return 0;
}

/* In a child, whose status is that of its first wrong line. */
#define CHECK(what) \
	do { \
		if (!(what)) \
			_exit(__LINE__ % 255 + 1); \
	} while (0)

static void expect_right(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void check_session_is_zero(void)
{
	CHECK(spy_session->state == SPY_SESSION_NONE && !spy_session->slots && !spy_session->board);
	CHECK(!spy_session_active() && !spy_session_failed());
	CHECK(!spy_finished_parts[5].number);
	CHECK(!spy_threads[1].tid || spy_self == thread);
}

/* What the calling thread has before its first call: it is always full. */
static void check_is_empty(const struct spy_thread *of)
{
	CHECK(of && !of->packet && !of->page && !of->depth && !of->reentry_frame);
	CHECK(of->head >= spy_thread_limit(of));
	CHECK(of < spy_threads || of >= spy_threads + SPY_BOARD_SLOTS);
}

static void test_fork(void **state)
{
	(void)state;
	for (int guarded = 0; guarded < 2;
	     guarded++) { /* in a slow path nothing is in the making */
		pid_t child;

		thread->reentry_frame = guarded ? UINTPTR_MAX : 0;
		spy_fork_before();
		child = fork();
		if (!child) {
			check_session_is_zero();
			spy_fork_child();
			check_is_empty(spy_self);
			CHECK(spy_fork_is_handled());
			spy_fork_handle();
			_exit(0);
		}
		spy_fork_after();
		expect_right(child);
		assert_ptr_equal(spy_self, thread);
		assert_int_equal(thread->tid, 77);
		assert_true(spy_fork_is_handled());
	}
}

/* What the thread may be about to write to is there in the child, for nothing. */
static void test_pages(void **state)
{
	struct spy_slot_page *page = thread->page;
	struct spy_board *board = spy_session->board;
	pid_t child;

	(void)state;
	spy_fork_before();
	child = fork();
	if (!child) {
		spy_fork_child();
		CHECK(page->calls == 0 && board->slots == 0);
		page->calls++;
		board->lost++;
		_exit(0);
	}
	spy_fork_after();
	expect_right(child);
	assert_int_equal(page->calls, 4711);
	assert_int_equal(board->lost, 0);
	/* A thread without calls has none. */
	spy_self_reset();
	spy_fork_before();
	child = fork();
	if (!child) {
		spy_fork_child();
		check_is_empty(spy_self);
		_exit(0);
	}
	spy_fork_after();
	expect_right(child);
	spy_self = thread;
}

/* A signal handler forked in the middle of a record: that goes on in the child, in memory like it, and is forgotten then. */
static void test_in_the_making(void **state)
{
	struct spy_packet *packet = thread->packet;
	uint8_t *head = thread->head;

	(void)state;
	for (int dormant = 0; dormant < 2; dormant++) {
		pid_t child;

		if (dormant)
			thread->packet = NULL;
		thread->reentry_frame = 5;
		thread->depth = 2;
		spy_fork_before();
		child = fork();
		if (!child) {
			check_session_is_zero();
			spy_fork_child();
			CHECK(spy_self == thread && thread->tid == 77 && thread->depth == 2);
			CHECK(thread->reentry_frame == 5 && thread->head == head);
			CHECK(!spy_thread_limit(thread) && !thread->full_at && !thread->end);
			CHECK(!spy_fork_is_handled());
			if (!dormant) {
				*head = 7; /* the record … */
				spy_thread_publish(thread, now, 24); /* … is completed */
				CHECK(packet->content_bits);
			}
			spy_fork_handle(); /* not yet */
			CHECK(!spy_fork_is_handled() && thread->tid == 77);
			thread->reentry_frame = 0;
			spy_fork_handle();
			CHECK(spy_fork_is_handled());
			check_is_empty(spy_self);
			CHECK(!thread->tid && !thread->depth && !thread->head);
			spy_fork_handle();
			/* And its own child is none of that. */
			spy_fork_before();
			spy_fork_child();
			CHECK(spy_fork_is_handled());
			_exit(0);
		}
		spy_fork_after();
		expect_right(child);
		assert_int_equal(thread->reentry_frame, 5);
		assert_ptr_equal(thread->head, head);
		/* The copy is of that fork alone. */
		thread->reentry_frame = 0;
		spy_fork_before();
		child = fork();
		if (!child) {
			spy_fork_child();
			check_is_empty(spy_self);
			_exit(0);
		}
		spy_fork_after();
		expect_right(child);
	}
}

/* ---- the session ---- */

static void test_session(void **state)
{
	struct spy_thread *tables = spy_threads;

	(void)state;
	assert_true(spy_session_active());
	assert_false(spy_session_failed());
	spy_session_count_lost();
	assert_int_equal(spy_session->board->lost, 1);
	spy_session->state = SPY_SESSION_FAILED;
	assert_true(spy_session_failed());
	assert_false(spy_session_active());
	spy_session_count_lost(); /* before there is a board */
	spy_session_count_lost();
	assert_int_equal(spy_session->board->lost, 1);
	assert_int_equal(spy_session_take_lost(), 2);
	assert_int_equal(spy_session_take_lost(), 0);
	assert_true(spy_session_map_tables()); /* once */
	assert_ptr_equal(spy_threads, tables);
	spy_session_wipe();
	assert_int_equal(spy_threads[1].tid + spy_finished_parts[5].number + spy_session->slots, 0);
	spy_session = NULL; /* before the library is initialised */
	assert_true(spy_session_failed());
	assert_false(spy_session_active());
}

/* ---- a thread's own state ---- */

static void test_self(void **state)
{
	uintptr_t before = 99;

	(void)state;
	spy_thread_count_lost(thread);
	spy_thread_count_lost(thread);
	assert_int_equal(thread->file.discarded, 2);
	assert_int_equal(thread->page->lost, 2);
	assert_int_equal(thread->packet->discarded, 2);
	thread->packet->overhead = 5;
	now = 3000;
	assert_int_equal(spy_overhead_begin(), 3000);
	spy_overhead_end(thread, 2900);
	spy_overhead_end(NULL, 2900);
	assert_int_equal(thread->packet->overhead, 105);
	thread->packet = NULL;
	spy_overhead_end(thread, 2900);
	spy_thread_count_lost(thread);
	assert_int_equal(thread->page->lost, 3);
	/* Device and context, as the board shows them. */
	spy_thread_set_device(thread, 2, 0x1234);
	assert_int_equal(spy_thread_device(thread), 2);
	assert_int_equal(thread->page->device, 2);
	assert_int_equal(thread->page->context, 0x1234);
	thread->device = 0;
	assert_int_equal(spy_thread_device(thread), SPY_DEVICE_NONE);
	/* In a slow path its calls are not recorded, and then as before. */
	thread->reentry_frame = 4;
	assert_ptr_equal(spy_self_block_reentry(&before), thread);
	assert_int_equal(before, 4);
	assert_int_equal(thread->reentry_frame, UINTPTR_MAX);
	spy_self_restore_reentry(thread, before);
	assert_int_equal(thread->reentry_frame, 4);
	spy_self_reset(); /* its slot may be another thread's by then */
	thread->reentry_frame = 0;
	spy_self_restore_reentry(thread, 4);
	assert_int_equal(thread->reentry_frame, 0);
	assert_null(spy_self_block_reentry(&before));
	assert_null(spy_self->packet);
	thread->page = NULL;
	spy_thread_count_lost(thread);
	assert_int_equal(thread->file.discarded, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_fork, begin),
		cmocka_unit_test_setup(test_pages, begin),
		cmocka_unit_test_setup(test_in_the_making, begin),
		cmocka_unit_test_setup(test_session, begin),
		cmocka_unit_test_setup(test_self, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
