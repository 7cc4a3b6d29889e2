/* links: shim/record/thread.c shim/state/subsystem.c */
/*
 * tests/unit/test_thread_slots.c: threads get slots, new ones and those of threads that have ended; what a slot's next user
 * finds, and what its stream says of it; packets, counters, sleep, and another part of the recording.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/bounds.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/board.h"
#include "record/message.h"
#include "record/sched.h"
#include "record/stream_file.h"
#include "state/subsystem.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

#define SLOTS 6

/* ---- the rest of the shim ---- */

struct spy_thread *spy_threads;
uint32_t spy_window_changes = 1;
bool spy_probing;
static struct spy_thread threads[SPY_BOARD_SLOTS];
static struct spy_slot_page pages[SLOTS];
static uint8_t room[SLOTS][SPY_PACKET_BYTES] __attribute__((aligned(4096)));
static uint64_t so_many; /* bytes of a packet */
static bool behind, deleted, keeps_packets;
static int make_room_error, n_made_room, n_warned, n_sched, n_ended;
static char happened[64];

bool spy_options_keeps_packets(void)
{
	return keeps_packets;
}

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	work(data);
}

uintptr_t spy_own_stack_left_at(void)
{
	return 4711;
}

struct spy_bounds spy_bounds_of_self(uintptr_t at)
{
	assert_int_equal(at, 4711);
	return (struct spy_bounds){1000, 9000};
}

void spy_self_reset(void)
{
	spy_self = &empty;
}

struct spy_slot_page *spy_board_page(struct spy_board *of, uint32_t slot)
{
	assert_ptr_equal(of, &board);
	return slot < SLOTS ? &pages[slot] : NULL;
}

void spy_sched_begin_thread(struct spy_thread *of)
{
	(void)of;
	n_sched++;
}

void spy_warn_not_stored(int error)
{
	assert_int_equal(error, make_room_error);
	n_warned++;
}

bool spy_stream_is_behind(const struct spy_stream_file *file)
{
	(void)file;
	return behind;
}

bool spy_stream_is_deleted(const struct spy_stream_file *file)
{
	(void)file;
	return deleted;
}

uint8_t *spy_stream_limit(const struct spy_stream_file *file)
{
	return (uint8_t *)file->packet + so_many - SPY_CALL_ROOM - SPY_WAIT_ROOM;
}

int spy_stream_make_room(struct spy_thread *of)
{
	n_made_room++;
	if (make_room_error)
		return make_room_error;
	behind = false;
	of->file.packet = (struct spy_packet *)room[of->slot];
	of->file.seq++;
	of->head = room[of->slot] + sizeof(struct spy_packet);
	return 0;
}

void spy_stream_end(struct spy_thread *of)
{
	(void)of;
	n_ended++;
}

/* What subsystems are told, a letter for each. */
static void note(char what)
{
	size_t length = strlen(happened);

	assert_true(length + 1 < sizeof(happened));
	happened[length] = what;
}

static void begins(struct spy_thread *of)
{
	assert_ptr_equal(of, spy_self);
	note('b');
}

static void repeats(struct spy_thread *of)
{
	(void)of;
	note('r');
}

static void sleeps(struct spy_thread *of, uint64_t at)
{
	assert_int_equal(at, now);
	assert_false(of->asleep);
	note('s');
}

static void wakes(struct spy_thread *of)
{
	assert_false(of->asleep);
	note('w');
}

static void ends(struct spy_thread *of)
{
	assert_int_not_equal(of->handle, 0);
	note('e');
}

static const struct spy_subsystem subsystems[] = {{.name = "one",
						   .thread_begins = begins,
						   .repeat = repeats,
						   .thread_sleeps = sleeps,
						   .thread_wakes = wakes,
						   .thread_ends = ends},
						  {0}};

static void expect_happened(const char *wanted)
{
	assert_string_equal(happened, wanted);
	memset(happened, 0, sizeof(happened));
}

/* ---- a process ---- */

static int begin(void **state)
{
	(void)state;
	begin_session();
	memset(threads, 0, sizeof(threads[0]) * SLOTS);
	memset(pages, 0, sizeof(pages));
	memset(happened, 0, sizeof(happened));
	spy_threads = threads;
	spy_subsystems = subsystems;
	session.slots = 1; /* the session's own */
	spy_self = &empty;
	so_many = sizeof(room[0]);
	behind = deleted = keeps_packets = false;
	make_room_error = n_made_room = n_warned = n_sched = n_ended = 0;
	spy_probing = true;
	return 0;
}

/* The records in the slot's packet. */
static const void *next_in(const struct spy_thread *of, enum spy_event event, size_t bytes)
{
	const uint8_t *record = room[of->slot] + sizeof(struct spy_packet) + read_at;

	read_at += bytes;
	assert_true(record + bytes <= of->head);
	assert_int_equal(((const struct spy_rec_other *)record)->event, event);
	return record;
}

static void expect_name(const struct spy_thread *of)
{
	const struct spy_rec_thread *record = next_in(of, SPY_EV_THREAD, sizeof(*record));
	char name[16];

	prctl(PR_GET_NAME, name);
	assert_int_equal(record->tid, syscall(SYS_gettid));
	assert_int_equal(record->reserved, 0);
	assert_string_equal(record->name, name);
}

static void expect_count(const struct spy_thread *of, uint16_t fn, uint64_t count)
{
	const struct spy_rec_count *record = next_in(of, SPY_EV_COUNT, sizeof(*record));

	assert_int_equal(record->fn, fn);
	assert_int_equal(record->count, count);
	assert_int_equal(record->tid, syscall(SYS_gettid));
}

static void expect_no_more(const struct spy_thread *of)
{
	assert_ptr_equal(of->head, room[of->slot] + sizeof(struct spy_packet) + read_at);
	read_at = 0;
}

/* ---- slots ---- */

static void test_new_slots(void **state)
{
	struct spy_thread *of;

	(void)state;
	for (uint32_t slot = 1; slot < SLOTS; slot++) {
		of = spy_thread_begin();
		assert_ptr_equal(of, &threads[slot]);
		assert_ptr_equal(of, spy_self);
		assert_int_equal(of->slot, slot);
		assert_ptr_equal(of->page, &pages[slot]);
		assert_int_equal(of->tid, syscall(SYS_gettid));
		assert_int_equal(of->page->tid, of->tid);
		assert_int_equal(session.slot_tids[slot], of->tid);
		assert_int_equal(of->handle, pthread_self());
		assert_int_equal(of->stack_begin, 1000);
		assert_int_equal(of->stack_end, 9000);
		assert_int_equal(of->turn, spy_window_turn());
		assert_int_equal(session.slots, slot + 1);
		assert_int_equal(board.slots, slot + 1);
		assert_int_equal(session.alive, slot);
		expect_happened("b"); /* its name comes with its first packet */
		assert_int_equal(n_sched, slot);
	}
	/* There is no memory for another page. */
	assert_null(spy_thread_begin());
	assert_int_equal(session.alive, SLOTS - 1);
	assert_int_equal(session.slots, SLOTS);
	assert_int_equal(session.lock.owner, 0);
}

static void *an_interpreter(void)
{
	return NULL;
}

/* The last slot that was given back comes first; its next user finds nothing of the one before. */
static void test_reused_slot(void **state)
{
	struct spy_thread *first, *second, *of;

	(void)state;
	first = spy_thread_begin();
	assert_true(spy_thread_next_packet(first));
	second = spy_thread_begin();
	expect_happened("bb");
	first->device = 3;
	first->context = 4;
	first->n_holds = 2;
	first->holds[1] = 77;
	first->acquired[1].lock = 78;
	first->query.object = 5;
	first->poll_served = 6;
	first->poll_is_late = first->serves_cuda = true;
	first->gaps.n = 7;
	first->python_state = 8;
	first->python_asked = an_interpreter;
	first->row = first->head;
	first->dormant_frame = 9;
	first->ran_at = first->delay_at = first->idle_ns = first->look_at = 10;
	first->inspect = (struct spy_inspect_cache){0};
	first->detail_level = SPY_DETAIL_TIME;
	first->depth = 2;
	first->reentry_frame = 11;
	first->page->wait_kind = first->page->outside_kind = 1;
	first->page->depth = 1;
	spy_thread_end(first);
	expect_happened("e");
	assert_int_equal(n_ended, 1);
	assert_int_equal(first->handle, 0);
	assert_int_equal(session.slot_tids[1], 0);
	assert_int_equal(pages[1].tid + pages[1].depth + pages[1].outside_kind, 0);
	assert_int_equal(first->depth + first->detail_level, 0);
	assert_int_equal(first->reentry_frame, 0);
	spy_thread_end(second);
	expect_happened("e");
	/* Two that begin: the second slot, the first one, and then a new one. */
	assert_ptr_equal(spy_thread_begin(), second);
	expect_happened("b"); /* it has no packet yet */
	of = spy_thread_begin();
	assert_ptr_equal(of, first);
	expect_happened("br");
	expect_name(of); /* the packet goes on, and says whose it is now */
	expect_no_more(of);
	assert_int_equal(of->device + of->context + of->n_holds + of->query.object +
				 of->poll_served + of->gaps.n,
			 0);
	assert_int_equal(of->holds[1] + of->acquired[1].lock + of->python_state + of->dormant_frame,
			 0);
	assert_false(of->poll_is_late || of->serves_cuda);
	assert_null(of->python_asked);
	assert_null(of->row);
	assert_int_equal(of->ran_at + of->delay_at + of->idle_ns + of->look_at, 0);
	assert_int_equal(of->page->wait_kind + of->page->outside_kind, 0);
	assert_int_equal(session.slots, 3);
	assert_ptr_equal(spy_thread_begin(), &threads[3]);
	assert_int_equal(session.alive, 5); /* so many have begun */
}

/* The recording has gone on to another part meanwhile: the slot does, too, and says it there. */
static void test_reused_in_another_part(void **state)
{
	struct spy_thread *of = spy_thread_begin();

	(void)state;
	spy_thread_next_packet(of);
	spy_thread_end(of);
	behind = true;
	expect_happened("be");
	spy_thread_begin();
	expect_happened("br");
	assert_false(behind);
	expect_name(of);
	expect_no_more(of);
}

/* A slot of another kind is never a free one, and has no owner's name. */
static void test_taken(void **state)
{
	struct spy_thread *of = spy_thread_begin(), *taken;

	(void)state;
	spy_thread_end(of);
	taken = spy_thread_take(SPY_STREAM_SAMPLES);
	assert_ptr_equal(taken, &threads[2]);
	assert_int_equal(taken->file.kind, SPY_STREAM_SAMPLES);
	assert_ptr_equal(session.taken[SPY_STREAM_SAMPLES], taken);
	assert_int_equal(taken->tid, 0);
	assert_int_equal(session.alive, 2);
	memset(happened, 0, sizeof(happened));
	behind = true;
	assert_true(spy_thread_next_packet(taken));
	expect_no_more(taken);
	expect_happened("");
	for (int i = 3; i < SLOTS; i++)
		assert_non_null(spy_thread_take(SPY_STREAM_SAMPLES));
	assert_null(spy_thread_take(SPY_STREAM_SAMPLES));
	assert_int_equal(session.lock.owner, 0);
}

/* ---- packets ---- */

static void test_no_room(void **state)
{
	struct spy_thread *of = spy_thread_begin();
	const uint8_t *head;

	(void)state;
	make_room_error = -28;
	assert_false(spy_thread_next_packet(of));
	assert_null(of->packet);
	assert_int_equal(n_warned, 1);
	assert_int_equal(of->retry_at, now + 100 * MS);
	/* It is not asked again for a tenth of a second. */
	now += 100 * MS - 1;
	assert_false(spy_thread_next_packet(of));
	assert_int_equal(n_made_room, 1);
	now++;
	make_room_error = 0;
	assert_true(spy_thread_next_packet(of));
	assert_int_equal(n_made_room, 2);
	assert_int_equal(of->retry_at, 0);
	assert_ptr_equal(of->packet, of->file.packet);
	assert_ptr_equal(spy_thread_limit(of), room[1] + so_many - SPY_CALL_ROOM - SPY_WAIT_ROOM);
	/* Another part has begun, and there is no room in it: what is left of the packet serves meanwhile. */
	behind = true;
	make_room_error = -28;
	head = of->head;
	spy_thread_call_back(of);
	assert_true(spy_thread_next_packet(of));
	assert_ptr_equal(of->head, head);
	assert_non_null(spy_thread_limit(of));
	assert_int_equal(n_warned, 2);
	spy_thread_call_back(of);
	assert_true(spy_thread_next_packet(of)); /* not asked for again */
	assert_int_equal(n_made_room, 3);
	of->head = of->full_at;
	assert_false(spy_thread_next_packet(of));
}

/* Called back though it has moved on already: it goes on where it is. */
static void test_called_back(void **state)
{
	struct spy_thread *of = spy_thread_begin();
	const uint8_t *limit;

	(void)state;
	spy_thread_next_packet(of);
	limit = spy_thread_limit(of);
	of->row = of->head;
	spy_thread_call_back(of);
	assert_true(spy_thread_next_packet(of));
	assert_int_equal(n_made_room, 1);
	assert_ptr_equal(spy_thread_limit(of), limit);
	assert_null(of->row);
	/* Into the next part: with its name, and what others have to say again. */
	memset(happened, 0, sizeof(happened));
	behind = true;
	assert_true(spy_thread_next_packet(of));
	assert_int_equal(n_made_room, 2);
	expect_happened("r");
	expect_name(of);
	expect_no_more(of);
}

static void test_append(void **state)
{
	struct spy_thread *of = spy_thread_begin();
	struct spy_rec_other *record;

	(void)state;
	record = spy_thread_append(of, SPY_EV_NOTE, 64);
	assert_ptr_equal(record, room[1] + sizeof(struct spy_packet));
	assert_int_equal(record->time, now);
	spy_thread_commit(of, 64);
	assert_int_equal(of->packet->content_bits, 8 * (sizeof(struct spy_packet) + 64));
	assert_int_equal(of->packet->time_end, now);
	/* Up to the limit, and no further. */
	of->head = of->full_at - 64;
	assert_ptr_equal(spy_thread_append(of, SPY_EV_NOTE, 64), of->full_at - 64);
	assert_int_equal(n_made_room, 1);
	assert_ptr_equal(spy_thread_append(of, SPY_EV_NOTE, 65),
			 room[1] + sizeof(struct spy_packet));
	assert_int_equal(n_made_room, 2);
	make_room_error = -28;
	of->head = of->full_at;
	assert_null(spy_thread_append(of, SPY_EV_NOTE, 1));
}

/* ---- counters ---- */

static void test_counts(void **state)
{
	struct spy_thread *of = spy_thread_begin();

	(void)state;
	board.counter_fn[0] = 10;
	board.counter_fn[3] = 13;
	board.counter_fn[SPY_BOARD_COUNTERS - 1] = 99;
	of->page->counts[0] = 5;
	of->page->counts[3] = 1ull << 40;
	of->page->counts[SPY_BOARD_COUNTERS - 1] = 7;
	spy_thread_end(of);
	expect_count(of, 10, 5);
	expect_count(of, 13, 1ull << 40);
	expect_count(of, 99, 7);
	expect_no_more(of);
	for (int i = 0; i < SPY_BOARD_COUNTERS; i++)
		assert_int_equal(of->page->counts[i], 0);
	/* Without room, or in a part that is deleted, they stay on the board. */
	for (int i = 0; i < 2; i++) {
		of->page->counts[3] = 8;
		deleted = i;
		make_room_error = i ? 0 : -28;
		of->head = i ? of->head : of->full_at;
		spy_thread_flush_counts(of);
		assert_int_equal(of->page->counts[3], 8);
	}
}

/* With a bound: behind the packet that had its name, the name again. */
static void test_counts_in_a_new_packet(void **state)
{
	struct spy_thread *of = spy_thread_begin();

	for (int bounded = 0; bounded < 2; bounded++) {
		begin(state);
		of = spy_thread_begin();
		spy_thread_next_packet(of);
		keeps_packets = bounded;
		of->page->counts[0] = 5;
		spy_thread_flush_counts(of);
		expect_count(of, 0, 5);
		expect_no_more(of);
		of->page->counts[0] = 6;
		of->head = of->full_at;
		spy_thread_flush_counts(of);
		expect_count(of, 0, 6);
		if (bounded)
			expect_name(of);
		expect_no_more(of);
	}
}

/* ---- sleep ---- */

static void expect_asleep(const struct spy_thread *of, bool asleep)
{
	assert_int_equal(of->asleep, asleep);
	assert_int_equal(of->page->asleep, asleep);
	assert_int_equal(of->packet != NULL, !asleep);
	assert_int_equal(spy_thread_limit(of) != NULL, !asleep);
	assert_int_equal(of->until_look, asleep);
}

static void test_sleep(void **state)
{
	struct spy_thread *of = spy_thread_begin();

	(void)state;
	spy_thread_next_packet(of);
	of->page->counts[0] = 5;
	of->depth = 1;
	of->page->depth = 1;
	of->detail_level = SPY_DETAIL_TIME;
	of->row = of->head;
	memset(happened, 0, sizeof(happened));
	spy_thread_sleep(of);
	expect_count(of, 0, 5);
	expect_no_more(of);
	expect_happened("s");
	expect_asleep(of, true);
	assert_null(of->row);
	assert_int_equal(of->depth + of->page->depth + of->detail_level, 0);
	spy_thread_sleep(of); /* once */
	expect_happened("");
	/* What was counted meanwhile is of no window; times of before are none of its. */
	of->page->counts[0] = 9;
	of->gaps.n = 3;
	of->ran_at = of->delay_at = of->idle_ns = of->look_at = 10;
	of->poll_is_late = true;
	of->dormant_frame = 4;
	spy_window_changes++;
	n_sched = 0;
	of->head = room[1] + sizeof(struct spy_packet);
	spy_thread_wake(of);
	expect_asleep(of, false);
	expect_name(of);
	expect_no_more(of);
	expect_happened("rw");
	assert_int_equal(of->page->counts[0], 0);
	assert_int_equal(of->turn, spy_window_turn());
	assert_int_equal(of->gaps.n + of->ran_at + of->delay_at + of->idle_ns + of->look_at, 0);
	assert_int_equal(of->dormant_frame, 0);
	assert_false(of->poll_is_late);
	assert_int_equal(of->left_at, now);
	assert_int_equal(n_sched, 1);
	spy_thread_wake(of);
	expect_happened("");
	/* A window that it did not notice: awake as it is. */
	spy_window_changes++;
	spy_thread_renew(of);
	expect_happened("r");
	assert_int_equal(of->turn, spy_window_turn());
	spy_probing = false;
	spy_thread_renew(of);
	assert_int_equal(n_sched, 2);
}

/* It counted its calls, in a cost window: they are written, also without a packet so far. */
static void test_sleep_counting(void **state)
{
	for (int packet = 0; packet < 2; packet++) {
		struct spy_thread *of;

		begin(state);
		of = spy_thread_begin();
		if (packet)
			spy_thread_next_packet(of);
		spy_thread_sleep(of);
		of->counts_turn = 3;
		of->page->counts[0] = 9;
		spy_thread_wake(of);
		expect_asleep(of, false);
		expect_name(of);
		expect_count(of, 0, 9);
		expect_no_more(of);
	}
}

/* In another part, when it wakes. */
static void test_wake_in_another_part(void **state)
{
	struct spy_thread *of = spy_thread_begin();

	(void)state;
	spy_thread_next_packet(of);
	spy_thread_sleep(of);
	behind = true;
	spy_thread_wake(of);
	assert_false(behind);
	assert_int_equal(n_made_room, 2);
	assert_int_equal(of->file.seq, 2);
	expect_asleep(of, false);
}

/* While recording is dormant a thread begins asleep, and a slot's packet waits. One that ends asleep leaves no counters. */
static void test_begin_dormant(void **state)
{
	struct spy_thread *of;

	(void)state;
	spy_recorded_from = SPY_DORMANT;
	of = spy_thread_begin();
	expect_asleep(of, true);
	expect_happened("b");
	of->page->counts[0] = 9;
	spy_thread_end(of);
	assert_int_equal(of->page->counts[0], 0);
	assert_int_equal(n_made_room, 0);
	expect_happened("e");
	/* Its next user begins in a window. */
	spy_recorded_from = SPY_RECORDED;
	assert_ptr_equal(spy_thread_begin(), of);
	assert_false(of->asleep);
	expect_happened("bw");
	/* It ends while it counts: that is written. */
	spy_thread_next_packet(of);
	spy_thread_sleep(of);
	of->counts_turn = 3;
	of->page->counts[0] = 4;
	spy_thread_end(of);
	expect_name(of);
	expect_count(of, 0, 4);
	expect_no_more(of);
}

/* ---- the end of a thread ---- */

static void *call_and_end(void *data)
{
	spy_self = &empty;
	*(struct spy_thread **)data = spy_thread_begin();
	return NULL;
}

/* The thread's key frees the slot; not in a forked child, where it reads as zeros. */
static void test_ends(void **state)
{
	struct spy_thread *of;
	pthread_t id;

	(void)state;
	spy_thread_init();
	for (int i = 0; i < 3; i++) {
		pthread_create(&id, NULL, call_and_end, &of);
		pthread_join(id, NULL);
		assert_ptr_equal(of, &threads[1]);
		assert_int_equal(of->handle, 0);
		assert_int_equal(n_ended, i + 1);
	}
	spy_self = &empty;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_new_slots, begin),
		cmocka_unit_test_setup(test_reused_slot, begin),
		cmocka_unit_test_setup(test_reused_in_another_part, begin),
		cmocka_unit_test_setup(test_taken, begin),
		cmocka_unit_test_setup(test_no_room, begin),
		cmocka_unit_test_setup(test_called_back, begin),
		cmocka_unit_test_setup(test_append, begin),
		cmocka_unit_test_setup(test_counts, begin),
		cmocka_unit_test_setup(test_counts_in_a_new_packet, begin),
		cmocka_unit_test_setup(test_sleep, begin),
		cmocka_unit_test_setup(test_sleep_counting, begin),
		cmocka_unit_test_setup(test_wake_in_another_part, begin),
		cmocka_unit_test_setup(test_begin_dormant, begin),
		cmocka_unit_test_setup(test_ends, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
