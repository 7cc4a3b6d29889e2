/* links: shim/parts/parts.c shim/record/part.c */
/*
 * tests/unit/test_parts.c: a part of the recording ends and the next one begins: what is noted of each slot, what the records
 * say, what is counted of which part; when it is due; and errors on the way, after which nothing has changed.
 */
#include <errno.h>
#include <unistd.h>
#include "describe/describe.h"
#include "parts/parts.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/board.h"
#include "record/message.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

#define SECOND 1000000000ull
#define FILES (48 << 10) /* parts.c: of a part's metadata and board */
#define TAILS 8192
#define SLOTS 6

/* ---- the rest of the shim ---- */

struct spy_thread *spy_threads;
struct spy_part *spy_finished_parts;
static struct spy_thread threads[SLOTS];
static struct spy_slot_page pages[SLOTS];
static struct spy_part finished[SPY_PARTS_MOST];
static struct spy_part_options asked;
static uint64_t frequency; /* as it is measured */
static struct spy_rec_part put[8]; /* what the session's stream was given */
static int n_put, n_windows, n_repeated, n_clocks;
static int n_dropped, n_unprepared, n_expired, n_warned, n_turns;
static uint32_t metadata[8];
static int n_metadata;
static uint64_t finished_lost;
static uint32_t finished_board;
static bool deleted, too_long, has_room, no_lock;
static uint64_t look_takes;

/* Which step fails, and how often. */
static enum step { NOTHING, BEGIN_PART, METADATA, PREPARE, EXCHANGE } fails;
static int failure;

static int outcome_of(enum step step)
{
	return fails == step ? failure : 0;
}

bool spy_options_parts(struct spy_part_options *parts)
{
	*parts = asked;
	return asked.bytes || asked.ns || asked.keep_ns;
}

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	work(data);
}

void spy_clock_read_pair(struct spy_clock_pair *pair)
{
	*pair = (struct spy_clock_pair){.clock = now, .monotonic_ns = 111, .realtime_ns = 222};
}

uint64_t spy_clock_frequency(const struct spy_clock_pair *from, const struct spy_clock_pair *to)
{
	assert_ptr_equal(from, &session.begun);
	assert_int_equal(to->clock, now);
	return frequency;
}

int spy_window_describe(struct spy_rec_window records[2])
{
	records[0] = records[1] = (struct spy_rec_window){.head.event = SPY_EV_WINDOW};
	return n_windows;
}

void spy_repeated_each(void *(*of)(const void *record, size_t bytes))
{
	assert_ptr_equal(of, spy_session_put);
	n_repeated++;
}

static int n_window_records;

void *spy_session_put(const void *record, size_t bytes)
{
	const struct spy_rec_other *head = record;

	if (head->event == SPY_EV_WINDOW)
		n_window_records++;
	if (head->event == SPY_EV_CLOCK) {
		const struct spy_rec_clock *clock = record;

		assert_int_equal(clock->monotonic_ns, 111);
		assert_int_equal(clock->realtime_ns, 222);
		n_clocks++;
	}
	if (head->event != SPY_EV_PART)
		return NULL;
	assert_int_equal(bytes, sizeof(put[0]));
	memcpy(&put[n_put], record, bytes);
	return &put[n_put++];
}

void *spy_session_offer(enum spy_event event, size_t bytes)
{
	return spy_session_append(event, bytes);
}

void spy_session_turn(void)
{
	n_turns++;
}

bool spy_folder_has_room(size_t bytes)
{
	assert_int_equal(bytes, SPY_PACKET_BYTES);
	return has_room;
}

int spy_folder_begin_part(uint32_t part, uint32_t *number)
{
	assert_int_equal(part, session.part + 1);
	*number = 9;
	return outcome_of(BEGIN_PART);
}

int spy_metadata_write(struct spy_session *of, uint32_t part)
{
	assert_ptr_equal(of, &session);
	metadata[n_metadata++ % 8] = part;
	if (no_lock)
		session.lock.owner = 1;
	return outcome_of(METADATA);
}

int spy_stream_prepare(uint32_t part)
{
	assert_int_equal(part, session.part + 1);
	assert_true(spy_lock_is_mine(&session.lock));
	return outcome_of(PREPARE);
}

void spy_stream_unprepare(uint32_t part)
{
	assert_int_equal(part, session.part + 1);
	n_unprepared++;
}

int spy_folder_exchange(uint32_t part, uint32_t number)
{
	assert_int_equal(part, session.part + 1);
	assert_int_equal(number, 9);
	return outcome_of(EXCHANGE);
}

void spy_folder_drop_part(uint32_t part, uint32_t number)
{
	assert_int_equal(part, session.part + 1);
	assert_int_equal(number, 9);
	n_dropped++;
}

struct spy_file_id spy_folder_id(uint32_t part)
{
	return (struct spy_file_id){.inode = 1000 + part};
}

void spy_board_finish(uint32_t part, uint64_t lost)
{
	finished_board = part;
	finished_lost = lost;
}

uint64_t spy_stream_first_bytes(void)
{
	return TAILS;
}

bool spy_stream_is_deleted(const struct spy_stream_file *file)
{
	(void)file;
	return deleted;
}

void spy_warn_not_stored(int error)
{
	assert_int_equal(error, failure);
	n_warned++;
}

void spy_parts_expire(uint64_t at_time)
{
	(void)at_time;
	n_expired++;
	now += look_takes;
}

bool spy_parts_are_kept_too_long(uint64_t at_time)
{
	(void)at_time;
	return too_long;
}

/* ---- a recording ---- */

static struct spy_parts *parts(void)
{
	return &session.parts;
}

static void begin_with(struct spy_part_options options)
{
	begin_session();
	memset(threads, 0, sizeof(threads));
	memset(pages, 0, sizeof(pages));
	memset(finished, 0, sizeof(finished[0]) * 16);
	spy_threads = threads;
	spy_finished_parts = finished;
	asked = options;
	frequency = FREQUENCY;
	n_put = n_windows = n_repeated = n_clocks = n_window_records = n_metadata = 0;
	n_dropped = n_unprepared = n_expired = n_warned = n_turns = 0;
	fails = NOTHING;
	deleted = too_long = no_lock = false;
	has_room = true;
	look_takes = 0;
	session.pid = getpid();
	session.slots = SLOTS;
	session.part = 1;
	session.begun.clock = now - 77;
	spy_parts_begin(FREQUENCY);
	for (uint32_t slot = 1; slot < SLOTS; slot++) {
		threads[slot].slot = slot;
		threads[slot].page = &pages[slot];
		threads[slot].file.packet = (struct spy_packet *)packets[0];
		threads[slot].file.part = 1;
		threads[slot].limit = packets[1];
	}
}

static int begin(void **state)
{
	(void)state;
	begin_with((struct spy_part_options){0});
	return 0;
}

/* ---- one part and the next ---- */

static void test_rotate(void **state)
{
	uint64_t first = now, second;

	(void)state;
	assert_int_equal(board.part, 1);
	assert_int_equal(spy_parts_begun_at(1), first);
	for (uint32_t slot = 1; slot < SLOTS; slot++) {
		threads[slot].head = packets[0] + 100 * slot;
		threads[slot].file.seq = slot;
		pages[slot].calls = 10 * slot;
		pages[slot].lost = slot;
	}
	threads[2].page = NULL; /* a slot that could not be had */
	threads[3].file.packet = NULL; /* a thread that has recorded nothing */
	board.lost = 6;
	board.windows = 4;
	session.used = 100000;
	session.noncuda_threads[0] = 5;
	session.noncuda_threads[SPY_NONCUDA_THREADS - 1] = 6;
	frequency = FREQUENCY + 1;
	now += SECOND;
	second = now;
	assert_int_equal(spy_parts_rotate(), 0);
	assert_int_equal(session.part, 2);
	assert_int_equal(board.part, 2);
	assert_int_equal(spy_parts_begun_at(2), second);
	assert_int_equal(spy_parts_begun_at(1), first);
	assert_int_equal(session.frequency, FREQUENCY + 1); /* known better by now */
	assert_int_equal(board.frequency, FREQUENCY + 1);
	assert_int_equal(parts()->due, UINT64_MAX);
	assert_int_equal(parts()->windows, 4);
	assert_int_equal(parts()->next, 2);
	assert_int_equal(parts()->oldest, 1);
	assert_false(parts()->busy);
	assert_int_equal(session.lock.owner, 0);
	assert_int_equal(n_turns, 1);
	/* The last record of the part, with the calls that are in it. */
	assert_int_equal(n_put, 1);
	assert_int_equal(put[0].state, SPY_PART_END);
	assert_int_equal(put[0].number, 1);
	assert_int_equal(put[0].since, first);
	assert_int_equal(put[0].calls, 10 + 40 + 50);
	assert_int_equal(put[0].recording_began, session.begun.clock);
	/* How far each slot has come; their next calls look for room. */
	for (uint32_t slot = 1; slot < SLOTS; slot++) {
		bool cut = slot != 2 && slot != 3;

		assert_int_equal(threads[slot].cut.part, cut ? 1 : 0);
		assert_int_equal(threads[slot].cut.seq, cut ? slot : 0);
		assert_ptr_equal(threads[slot].cut.head, cut ? threads[slot].head : NULL);
		assert_int_equal(threads[slot].cut.so_far.calls, cut ? 10 * slot : 0);
		assert_int_equal(threads[slot].cut.so_far.lost, cut ? slot : 0);
		assert_null(spy_thread_limit(&threads[slot]));
	}
	/* Names of other threads are said again. */
	assert_int_equal(
		session.noncuda_threads[0] + session.noncuda_threads[SPY_NONCUDA_THREADS - 1], 0);
	/* What is known of the part. */
	assert_int_equal(finished[1].number, 1);
	assert_int_equal(finished[1].suffix, 9);
	assert_int_equal(finished[1].folder.inode, 1001);
	assert_int_equal(finished[1].bytes, 100000);
	assert_int_equal(finished[1].so_far.calls, 100);
	assert_int_equal(finished[1].so_far.lost, 1 + 4 + 5);
	assert_int_equal(finished[1].end, second);
	assert_int_equal(parts()->finished_bytes, 100000);
	assert_int_equal(session.used, 100000 + FILES);
	/* Its board says what it has lost that is no slot's; the next one counts anew. */
	assert_int_equal(finished_board, 1);
	assert_int_equal(finished_lost, 6);
	assert_int_equal(board.lost, 0);
	assert_int_equal(parts()->lost, 6);
	/* Metadata of the next one, and once more of the one that is over. */
	assert_int_equal(n_metadata, 2);
	assert_int_equal(metadata[0], 2);
	assert_int_equal(metadata[1], 1);

	/* The next one: a slot that has not moved on keeps its note, and one that has is noted anew. */
	threads[4].file.part = 2;
	threads[5].file.part =
		3; /* … and one that is ahead, of which it is known what it began with */
	threads[5].file.began_in = 3;
	threads[5].file.began = (struct spy_tally){70, 7};
	pages[1].calls = 999;
	pages[4].calls = 60;
	pages[5].calls = 999;
	session.used += 5000;
	board.lost = 2;
	assert_int_equal(spy_parts_rotate(), 0);
	assert_int_equal(threads[1].cut.part, 1);
	assert_int_equal(threads[1].cut.so_far.calls, 10);
	assert_int_equal(threads[4].cut.part, 2);
	assert_int_equal(threads[4].cut.so_far.calls, 60);
	assert_int_equal(threads[5].cut.part, 1);
	assert_int_equal(threads[5].cut.so_far.calls, 70);
	assert_int_equal(put[1].calls, 20 + 20);
	assert_int_equal(put[1].since, second);
	assert_int_equal(finished[2].bytes, FILES + 5000);
	assert_int_equal(finished[2].so_far.calls, 140);
	assert_int_equal(finished_lost, 2);
	assert_int_equal(parts()->lost, 8);
	assert_int_equal(session.part, 3);
}

/* Records of earlier parts that were found to be lost since are not counted off. */
static void test_fewer_calls(void **state)
{
	(void)state;
	pages[1].calls = 50;
	assert_int_equal(spy_parts_rotate(), 0);
	assert_int_equal(put[0].calls, 50);
	threads[1].file.part = 2;
	pages[1].calls = 40;
	assert_int_equal(spy_parts_rotate(), 0);
	assert_int_equal(put[1].calls, 0);
	threads[1].file.part = 3;
	pages[1].calls = 45;
	assert_int_equal(spy_parts_rotate(), 0);
	assert_int_equal(put[2].calls, 5);
}

/* Nothing has changed then, and nothing is left of the folder. */
static void test_errors(void **state)
{
	for (int i = BEGIN_PART; i <= EXCHANGE + 2; i++) {
		int error;

		begin(state);
		fails = i;
		failure = -ENOSPC;
		has_room = i != EXCHANGE + 1;
		session.state = i == EXCHANGE + 2 ? SPY_SESSION_FAILED : SPY_SESSION_ACTIVE;
		board.lost = 3;
		error = spy_parts_rotate();
		assert_int_equal(error, i == EXCHANGE + 2 ? -EAGAIN : -ENOSPC);
		assert_int_equal(session.part, 1);
		assert_int_equal(n_put, 0);
		assert_int_equal(board.lost, 3);
		assert_int_equal(parts()->next, 1);
		assert_false(parts()->busy);
		assert_int_equal(session.lock.owner, 0);
		assert_int_equal(n_dropped, i >= METADATA && i <= EXCHANGE);
		assert_int_equal(n_unprepared, i == EXCHANGE);
		assert_ptr_equal(spy_thread_limit(&threads[1]), packets[1]);
	}
	/* In a forked child the parts are the parent's. */
	begin(state);
	session.pid++;
	assert_int_equal(spy_parts_rotate(), -EAGAIN);
	/* Another thread is at it, or works in the folder of the part before. */
	begin(state);
	parts()->busy = true;
	assert_int_equal(spy_parts_rotate(), -EAGAIN);
	assert_true(parts()->busy);
	parts()->busy = false;
	parts()->inside[0] = 1;
	assert_int_equal(spy_parts_rotate(), -EAGAIN);
	parts()->inside[0] = 0;
	parts()->inside[1] = 1; /* in the one that ends: that is as ever */
	assert_int_equal(spy_parts_rotate(), 0);
	/* The session's lock is not to be had. */
	begin(state);
	no_lock = true;
	assert_int_equal(spy_parts_rotate(), -EAGAIN);
	assert_true(n_dropped > 0);
	session.lock.owner = 0;
	/* The frequency cannot be measured yet. */
	begin(state);
	frequency = 0;
	assert_int_equal(spy_parts_rotate(), 0);
	assert_int_equal(session.frequency, FREQUENCY);
}

/* ---- records ---- */

static void test_record_begin(void **state)
{
	(void)state;
	n_windows = 2;
	session.part = 4;
	parts()->begun_at[0] = 4040;
	parts()->removed = 2;
	finished[2] = (struct spy_part){.number = 2, .so_far = {500, 5}, .end = 2020};
	spy_parts_record_begin();
	assert_int_equal(n_put, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(put[i].state, i ? SPY_PART_REPEATED : SPY_PART_BEGIN);
		assert_int_equal(put[i].number, 4);
		assert_int_equal(put[i].since, 4040);
		assert_int_equal(put[i].removed, 2);
		assert_int_equal(put[i].removed_calls, 500);
		assert_int_equal(put[i].removed_until, 2020);
		assert_int_equal(put[i].recording_began, session.begun.clock);
	}
	assert_int_equal(n_repeated, 1);
	assert_int_equal(n_window_records, 2);
	assert_int_equal(n_clocks, 1);
	/* What it says of removed parts is not said again. */
	session_bytes = 0;
	spy_parts_record_removed();
	assert_int_equal(session_bytes, 0);
	parts()->removed = 3;
	finished[3] = (struct spy_part){.number = 3, .so_far = {800, 5}, .end = 3030};
	session_full = true;
	spy_parts_record_removed(); /* no room: the next time */
	session_full = false;
	spy_parts_record_removed();
	spy_parts_record_removed();
	assert_int_equal(session_bytes, sizeof(put[0]));
	{
		const struct spy_rec_part *record = (void *)session_records;

		assert_int_equal(record->head.event, SPY_EV_PART);
		assert_int_equal(record->head.time, now);
		assert_int_equal(record->state, SPY_PART_REMOVED);
		assert_int_equal(record->removed, 3);
		assert_int_equal(record->removed_calls, 800);
		assert_int_equal(record->removed_until, 3030);
	}
}

/* ---- when it is due ---- */

static uint32_t part_after_look(bool between)
{
	spy_parts_look(&thread, now, between);
	return session.part;
}

static void test_by_age(void **state)
{
	uint64_t begun;

	(void)state;
	begin_with((struct spy_part_options){.ns = 10 * SECOND});
	begun = now;
	assert_true(spy_parts_have_time());
	assert_int_equal(session.used, FILES);
	now = begun + 10 * SECOND - 1;
	assert_int_equal(part_after_look(true), 1);
	assert_int_equal(n_expired, 0);
	now++;
	assert_int_equal(part_after_look(false), 1); /* not inside a call */
	session.state = SPY_SESSION_FAILED;
	assert_int_equal(part_after_look(true), 1);
	assert_false(spy_parts_have_time());
	session.state = SPY_SESSION_ACTIVE;
	assert_int_equal(part_after_look(true), 2);
	now += 10 * SECOND - 1;
	assert_int_equal(part_after_look(true), 2);
	now++;
	assert_int_equal(part_after_look(true), 3);
	/* Where nothing was recorded, nothing is put away. */
	spy_recorded_from = SPY_DORMANT;
	now += 100 * SECOND;
	assert_int_equal(part_after_look(true), 3);
	board.windows++; /* there was a window */
	assert_int_equal(part_after_look(true), 4);
	begin_with((struct spy_part_options){0});
	assert_false(spy_parts_have_time());
	assert_int_equal(session.used, 0);
	begin_with((struct spy_part_options){.keep_ns = 1});
	assert_true(spy_parts_have_time());
	begin_with((struct spy_part_options){.bytes = 1});
	assert_false(spy_parts_have_time());
}

/* As large as that; not if hardly more is in it than each part has. */
static void test_by_size(void **state)
{
	const uint64_t each = FILES + TAILS;

	(void)state;
	begin_with((struct spy_part_options){.bytes = 200000});
	session.used = 199999;
	assert_int_equal(part_after_look(true), 1);
	session.used = 200000;
	assert_int_equal(part_after_look(true), 2);
	session.used = parts()->finished_bytes + 199999;
	assert_int_equal(part_after_look(true), 2);
	session.used++;
	assert_int_equal(part_after_look(true), 3);
	session.used = parts()->finished_bytes -
		       1; /* packets of finished parts were stored elsewhere meanwhile */
	assert_int_equal(part_after_look(true), 3);
	begin_with((struct spy_part_options){.bytes = 1});
	session.used = each + each / 2 - 1;
	assert_int_equal(part_after_look(true), 1);
	session.used++;
	assert_int_equal(part_after_look(true), 2);
}

/* What failed is tried again in a tenth of a second, what is in the way in a millisecond. */
static void test_retries(void **state)
{
	(void)state;
	begin_with((struct spy_part_options){.bytes = 100000});
	now += SECOND;
	session.used = 100000;
	fails = BEGIN_PART;
	failure = -ENOSPC;
	assert_int_equal(part_after_look(true), 1);
	assert_int_equal(n_warned, 1);
	fails = NOTHING;
	now += 100 * MS - 1;
	assert_int_equal(part_after_look(true), 1);
	now++;
	assert_int_equal(part_after_look(true), 2);
	session.used = parts()->finished_bytes + 100000;
	parts()->busy = true;
	assert_int_equal(part_after_look(true), 2);
	parts()->busy = false;
	now += 1 * MS - 1;
	assert_int_equal(part_after_look(true), 2);
	now++;
	assert_int_equal(part_after_look(true), 3);
	assert_int_equal(n_warned, 1);
}

/* A look that took long rests for twenty times as long, but for parts that are large. */
static void test_rests(void **state)
{
	(void)state;
	begin_with((struct spy_part_options){.keep_ns = 1});
	now += SECOND;
	too_long = true;
	look_takes = 10 * MS;
	spy_parts_look(&thread, now, true);
	assert_int_equal(n_expired, 1);
	look_takes = 0;
	now += 200 * MS - 1;
	spy_parts_look(&thread, now, true);
	assert_int_equal(n_expired, 1);
	now++;
	spy_parts_look(&thread, now, true);
	assert_int_equal(n_expired, 2);
	/* What was removed is said. */
	too_long = false;
	spy_parts_look(&thread, now, true);
	assert_int_equal(n_expired, 2);
	parts()->removed = 1;
	spy_parts_look(&thread, now, true);
	assert_int_equal(parts()->removed_recorded, 1);
}

/* ---- the end ---- */

static void test_end(void **state)
{
	(void)state;
	spy_parts_end();
	assert_true(parts()->busy && parts()->removing);
	assert_int_equal(spy_parts_rotate(), -EAGAIN);
	assert_int_equal(session.part, 1);
}

/* What is in a deleted part's file: part of those deleted, or lost, if there was no room elsewhere. */
static void test_in_deleted(void **state)
{
	for (int i = 0; i < 4; i++) {
		begin(state);
		session.slots = 2;
		pages[1].calls = i == 3 ? 70 : 100;
		pages[1].lost = 5;
		threads[1].cut.so_far.calls = 70;
		threads[1].retry_at = i == 2;
		board.removed_calls = 1000;
		deleted = i > 0;
		spy_parts_count_in_deleted();
		assert_int_equal(board.removed_calls, i == 1 ? 1030 : 1000);
		assert_int_equal(pages[1].calls, i >= 2 ? 70 : 100);
		assert_int_equal(pages[1].lost, i == 2 ? 35 : 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_rotate, begin),
		cmocka_unit_test_setup(test_fewer_calls, begin),
		cmocka_unit_test_setup(test_errors, begin),
		cmocka_unit_test_setup(test_record_begin, begin),
		cmocka_unit_test(test_by_age),
		cmocka_unit_test(test_by_size),
		cmocka_unit_test(test_retries),
		cmocka_unit_test(test_rests),
		cmocka_unit_test_setup(test_end, begin),
		cmocka_unit_test(test_in_deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
