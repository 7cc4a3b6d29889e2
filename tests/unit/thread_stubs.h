/*
 * tests/unit/thread_stubs.h: a session and threads made by hand, with packets in memory and a clock that stands still, for
 * tests of what writes records. To be included by one file of a test.
 */
#ifndef CUDASPY_TESTS_THREAD_STUBS_H
#define CUDASPY_TESTS_THREAD_STUBS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "lib/clock.h"
#include "state/session.h"
#include "state/thread.h"

#define FREQUENCY 1000000000 /* cycles are nanoseconds */
#define MS 1000000ull

struct spy_session *spy_session;
__thread struct spy_thread *spy_self;
bool spy_clock_is_counter;
__attribute__((weak)) uint8_t spy_recorded_from; /* or recorded.c's */
static uint64_t now;
static struct spy_session session;
static struct spy_board board;

/* The program's thread, which is the calling one; another one; and what a thread has before its first call. */
static struct spy_thread thread, other_thread, empty;
static struct spy_slot_page page;
static uint8_t packets[2][1 << 18] __attribute__((aligned(4096)));
static uint8_t session_records[1 << 20]; /* of the session's stream */
static size_t session_bytes;
static bool session_full;
static int n_room; /* how often room was looked for … */
static struct spy_thread *gets_slot; /* … and what thread the calling one becomes by that */
static size_t read_at; /* records of a packet are read from here on */

uint64_t spy_clock_monotonic(void)
{
	return now;
}

bool spy_session_active(void)
{
	return session.state == SPY_SESSION_ACTIVE;
}

__attribute__((weak)) void *spy_session_append(enum spy_event event, size_t bytes)
{
	struct spy_rec_other *record = (void *)(session_records + session_bytes);

	if (!spy_session_active() || session_full)
		return NULL;
	assert_true(spy_try_lock(&session.lock));
	assert_true(session_bytes + bytes <= sizeof(session_records));
	memset(record, 0xa5, bytes);
	*record = (struct spy_rec_other){.time = now, .event = event};
	return record;
}

__attribute__((weak)) void spy_session_commit(size_t bytes)
{
	session_bytes += bytes;
	assert_true(spy_lock_is_mine(&session.lock));
	spy_unlock(&session.lock);
}

/* Or lock.c's. */
__attribute__((weak)) bool spy_lock_slowly(struct spy_lock *lock)
{
	(void)lock;
	return false;
}

/* An empty packet. */
static inline void use_packet(struct spy_thread *of, int packet)
{
	memset(packets[packet], 0xa5, sizeof(packets[packet]));
	of->packet = (struct spy_packet *)packets[packet];
	of->packet->time_end = 0;
	of->page = &page;
	of->head = packets[packet] + sizeof(struct spy_packet);
	of->file.room = sizeof(packets[packet]);
	spy_thread_use_room(of, packets[packet] + sizeof(packets[packet]) - SPY_CALL_ROOM -
					SPY_WAIT_ROOM);
	read_at = 0;
}

__attribute__((weak)) bool spy_thread_find_room(const struct spy_thread *of) /* or ready.c's */
{
	n_room++;
	if (!gets_slot)
		return false;
	if (of == &empty || of->asleep)
		use_packet(gets_slot, 1);
	gets_slot->asleep = false;
	spy_self = gets_slot;
	return true;
}

static inline void begin_session(void)
{
	static int pid;

	assert_int_equal(session.lock.owner, 0); /* as the test before has left it */
	memset(&session, 0, sizeof(session));
	memset(&board, 0, sizeof(board));
	memset(&thread, 0, sizeof(thread));
	memset(&other_thread, 0, sizeof(other_thread));
	memset(&page, 0, sizeof(page));
	session.state = SPY_SESSION_ACTIVE;
	session.board = &board;
	session.frequency = FREQUENCY;
	session.pid = ++pid;
	spy_session = &session;
	session_bytes = 0;
	session_full = false;
	spy_recorded_from = SPY_RECORDED;
	use_packet(&thread, 0);
	spy_self = &thread;
	gets_slot = NULL;
	n_room = 0;
	now += 1000 * MS;
}

/* The next record in the thread's packet, of that kind. */
static inline const void *next_record(const struct spy_thread *of, enum spy_event event,
				      size_t bytes)
{
	const uint8_t *record = (const uint8_t *)of->packet + sizeof(struct spy_packet) + read_at;

	read_at += bytes;
	assert_true(record + bytes <= of->head);
	assert_int_equal(((const struct spy_rec_other *)record)->event, event);
	return record;
}

/* There are no more, and they are all shown to readers. */
static inline void no_record(const struct spy_thread *of)
{
	size_t bytes = sizeof(struct spy_packet) + read_at;

	assert_ptr_equal(of->head, (uint8_t *)of->packet + bytes);
	if (read_at)
		assert_int_equal(of->packet->content_bits, 8 * bytes);
	assert_int_equal(of->reentry_frame, 0);
}

#endif
