/* links: shim/record/ready.c shim/state/subsystem.c */
/*
 * tests/unit/test_ready.c: the slow path of a call: a thread's first one, a full packet, no room, no slot; what is then
 * lost, and how often it is asked again; and how often a dormant thread looks what is due.
 */
#include <errno.h>
#include "process/options.h"
#include "process/own_stack.h"
#include "record/message.h"
#include "record/truncation.h"
#include "state/subsystem.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

/* ---- the rest of the shim ---- */

uint32_t spy_window_changes = 1;
static bool narrow, keeps_packets, has_time, look_opens;
static int n_handled, n_lost, n_thread_lost, n_begun, n_warned;
static int begun_state; /* what beginning a session comes to */
static bool no_slots, no_packets;
static size_t name_bytes; /* that a new owner's name takes */
static char happened[64];

bool spy_options_keeps_packets(void)
{
	return keeps_packets;
}

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	work(data);
}

bool spy_own_stack_is_narrow(void)
{
	return narrow;
}

void spy_fork_handle(void)
{
	n_handled++;
}

void spy_session_count_lost(void)
{
	n_lost++;
}

void spy_thread_count_lost(struct spy_thread *of)
{
	assert_ptr_equal(of, spy_self);
	n_thread_lost++;
}

static void note(char what)
{
	size_t length = strlen(happened);

	assert_true(length + 1 < sizeof(happened));
	happened[length] = what;
}

uint64_t spy_overhead_begin(void)
{
	note('(');
	return now;
}

void spy_overhead_end(struct spy_thread *of, uint64_t begun)
{
	(void)of;
	(void)begun;
	note(')');
}

void spy_truncation_watch(void)
{
	note('w');
}

void spy_truncation_repair(const struct spy_thread *of)
{
	(void)of;
	note('t');
}

void spy_warn_damaged(void)
{
	n_warned++;
}

struct spy_thread *spy_thread_begin(void)
{
	note('b');
	if (no_slots)
		return NULL;
	thread.page = &page;
	spy_self = &thread;
	return &thread;
}

bool spy_thread_next_packet(struct spy_thread *of)
{
	note('n');
	if (no_packets)
		return false;
	of->file.seq++;
	use_packet(of, 0);
	return true;
}

void spy_thread_write_name(struct spy_thread *of)
{
	note('o');
	of->head += name_bytes;
}

void spy_thread_wake(struct spy_thread *of)
{
	note('W');
	of->asleep = false;
	of->counts_turn = 0;
}

void spy_thread_sleep(struct spy_thread *of)
{
	note('S');
	of->asleep = true;
	of->counts_turn = spy_window_is_counting() ? spy_window_turn() : 0;
}

static int begin_recording(void)
{
	int as_it_is = begun_state;

	n_begun++;
	if (begun_state == SPY_SESSION_BEGINNING)
		begun_state = SPY_SESSION_ACTIVE; /* the other thread gets on */
	if (as_it_is == SPY_SESSION_ACTIVE)
		session.state = SPY_SESSION_ACTIVE;
	return as_it_is;
}

static struct spy_thread *nested;

static void packet_is_new(struct spy_thread *of)
{
	(void)of;
	note('p');
	nested = spy_thread_ready(); /* as a call of an allocator does */
	assert_false(spy_thread_find_room(of));
	assert_false(spy_thread_look(of));
}

static void repeats(struct spy_thread *of)
{
	(void)of;
	note('r');
}

static bool looked_between;

static void looks(struct spy_thread *of, uint64_t at, bool between)
{
	(void)of;
	assert_int_equal(at, now);
	note('l');
	looked_between = between;
	if (look_opens)
		spy_recorded_from = SPY_RECORDED;
}

static bool may_have_time(void)
{
	return has_time;
}

static const struct spy_subsystem subsystems[] = {{.name = "none"},
						  {.name = "one",
						   .packet = packet_is_new,
						   .repeat = repeats,
						   .look = looks,
						   .has_time = may_have_time},
						  {0}};

static void expect_happened(const char *wanted)
{
	assert_string_equal(happened, wanted);
	memset(happened, 0, sizeof(happened));
}

/* A program before its first call. */
static int begin(void **state)
{
	(void)state;
	begin_session();
	memset(&thread, 0, sizeof(thread));
	memset(happened, 0, sizeof(happened));
	session.state = SPY_SESSION_NONE;
	session.begun.clock = now;
	spy_self = &empty;
	spy_subsystems = subsystems;
	spy_begin_recording = begin_recording;
	begun_state = SPY_SESSION_ACTIVE;
	narrow = keeps_packets = has_time = look_opens = no_slots = no_packets = false;
	n_handled = n_lost = n_thread_lost = n_begun = n_warned = 0;
	name_bytes = 0;
	nested = &empty;
	return 0;
}

/* ---- the first call ---- */

static void test_first_call(void **state)
{
	(void)state;
	errno = 4711;
	assert_ptr_equal(spy_thread_ready(), &thread);
	assert_int_equal(errno, 4711);
	assert_int_equal(n_begun, 1);
	expect_happened("b(norplwt)"); /* a slot, a packet, whose it is, what is due */
	assert_null(nested); /* its own calls are not recorded */
	assert_int_equal(n_lost + n_thread_lost, 0);
	assert_true(looked_between);
	/* Full: the next packet. Whose it is, only where the packet that said it may be deleted. */
	for (int bounded = 0; bounded < 2; bounded++) {
		keeps_packets = bounded;
		thread.head = thread.full_at;
		thread.depth = 1;
		session.damaged = bounded;
		assert_ptr_equal(spy_thread_ready(), &thread);
		expect_happened(bounded ? "(norplwt)" : "(nplwt)");
		assert_false(looked_between);
		assert_int_equal(n_warned, bounded);
	}
	assert_int_equal(n_begun, 1);
	assert_int_equal(n_handled, 3);
}

/* A process that records nothing: nothing is remembered, each call asks. */
static void test_no_session(void **state)
{
	(void)state;
	begun_state = SPY_SESSION_NONE;
	for (int i = 1; i < 4; i++) {
		assert_null(spy_thread_ready());
		assert_int_equal(n_begun, i);
		assert_int_equal(n_lost, i);
	}
	spy_begin_recording = NULL; /* the library is not loaded yet */
	assert_null(spy_thread_ready());
	assert_int_equal(n_lost, 4);
	expect_happened("");
}

/* Another thread is just beginning it: what it comes to is awaited. */
static void test_beginning(void **state)
{
	(void)state;
	begun_state = SPY_SESSION_BEGINNING;
	assert_ptr_equal(spy_thread_ready(), &thread);
	assert_int_equal(n_begun, 2);
	assert_int_equal(n_lost, 0);
}

/* No slot: a call in a tenth of a second asks, the others are counted. Another session is another matter. */
static void test_no_slot(void **state)
{
	(void)state;
	no_slots = true;
	assert_null(spy_thread_ready());
	expect_happened("b");
	now += 100 * MS - 1;
	assert_null(spy_thread_ready());
	expect_happened("");
	now++;
	assert_null(spy_thread_ready());
	expect_happened("b");
	assert_int_equal(n_lost, 3);
	session.begun.clock++; /* a forked child's */
	assert_null(spy_thread_ready());
	expect_happened("b");
	now += 50 * MS;
	no_slots = false;
	assert_null(spy_thread_ready());
	now += 50 * MS;
	assert_ptr_equal(spy_thread_ready(), &thread);
	/* It is forgotten once there was one. */
	no_slots = true;
	spy_self = &empty;
	memset(happened, 0, sizeof(happened));
	assert_null(spy_thread_ready());
	expect_happened("b");
}

static void test_narrow(void **state)
{
	(void)state;
	narrow = true;
	assert_null(spy_thread_ready());
	assert_int_equal(n_lost, 1);
	assert_int_equal(n_begun, 0);
	expect_happened("");
}

/* ---- no room ---- */

static void test_no_room(void **state)
{
	(void)state;
	no_packets = true;
	assert_null(spy_thread_ready());
	expect_happened("b(n");
	assert_int_equal(n_thread_lost, 1);
	assert_int_equal(n_lost, 0);
	/* Until it is time to ask again the call is only counted. */
	thread.retry_at = now + 100 * MS;
	now += 100 * MS - 1;
	assert_null(spy_thread_ready());
	expect_happened("");
	assert_int_equal(n_thread_lost, 2);
	now++;
	assert_null(spy_thread_ready());
	expect_happened("(n");
	no_packets = false;
	thread.retry_at = 0;
	assert_ptr_equal(spy_thread_ready(), &thread);
	assert_int_equal(n_thread_lost, 3);
	/* A packet that its owner's name fills is none. */
	name_bytes = sizeof(packets[0]);
	keeps_packets = true;
	thread.head = thread.full_at;
	assert_null(spy_thread_ready());
	assert_int_equal(n_thread_lost, 4);
}

/* A thread that is asleep records nothing, and so loses nothing. In a window it is woken, whatever room there was before. */
static void test_asleep(void **state)
{
	(void)state;
	spy_thread_ready();
	memset(happened, 0, sizeof(happened));
	thread.asleep = true;
	spy_recorded_from = SPY_DORMANT;
	thread.head = thread.full_at;
	assert_ptr_equal(spy_thread_ready(), &thread);
	expect_happened("");
	assert_int_equal(n_thread_lost, 0);
	spy_recorded_from = SPY_RECORDED;
	thread.retry_at = now + 1;
	assert_ptr_equal(spy_thread_ready(), &thread);
	expect_happened("W(nplwt)");
	assert_false(thread.asleep);
}

/* ---- between calls ---- */

static void test_find_room(void **state)
{
	(void)state;
	spy_thread_ready();
	memset(happened, 0, sizeof(happened));
	thread.head = thread.full_at;
	assert_false(spy_thread_find_room(&other_thread));
	narrow = true;
	assert_false(spy_thread_find_room(&thread));
	narrow = false;
	session.state = SPY_SESSION_FAILED;
	assert_false(spy_thread_find_room(&thread));
	session.state = SPY_SESSION_ACTIVE;
	thread.retry_at = now + 1;
	assert_false(spy_thread_find_room(&thread));
	expect_happened("");
	thread.retry_at = now;
	assert_true(spy_thread_find_room(&thread));
	expect_happened("(nplwt)");
	no_packets = true;
	thread.head = thread.full_at;
	assert_false(spy_thread_find_room(&thread));
	assert_int_equal(n_lost + n_thread_lost, 0); /* its calls lose nothing */
}

/* ---- dormant ---- */

/* How many calls until the next look, if the last one was so long ago and so many calls; on average 50 us. */
static void test_steps(void **state)
{
	static const struct {
		uint64_t elapsed_us;
		uint32_t step, next;
	} cases[] = {{50, 1, 1},    {25, 1, 2},    {25, 8, 16},  {100, 8, 4},
		     {1, 1, 50},    {1, 2, 64},    {50, 64, 64}, {3200, 64, 1},
		     {3199, 64, 1}, {1600, 64, 2}, {400, 1, 1},  {60000, 64, 1}};

	(void)state;
	spy_thread_ready();
	spy_recorded_from = SPY_DORMANT;
	has_time = true;
	thread.asleep = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		thread.looked_at = now;
		thread.look_step = cases[i].step;
		now += cases[i].elapsed_us * 1000;
		memset(happened, 0, sizeof(happened));
		assert_false(spy_thread_look(&thread));
		expect_happened("l");
		assert_true(looked_between);
		assert_int_equal(thread.until_look, cases[i].next);
		assert_int_equal(thread.look_step, cases[i].next);
		assert_int_equal(thread.looked_at, now);
	}
	thread.looked_at = 0; /* the first look */
	spy_thread_look(&thread);
	assert_int_equal(thread.until_look, 1);
	/* Nothing can be due: the clock is not read. */
	has_time = false;
	memset(happened, 0, sizeof(happened));
	spy_thread_look(&thread);
	expect_happened("");
	assert_int_equal(thread.until_look, 64);
}

static void test_falls_asleep(void **state)
{
	(void)state;
	spy_thread_ready();
	memset(happened, 0, sizeof(happened));
	spy_recorded_from = SPY_DORMANT;
	narrow = true;
	assert_false(spy_thread_look(&thread));
	expect_happened("");
	narrow = false;
	assert_false(spy_thread_look(&thread));
	expect_happened("S");
	assert_false(spy_thread_look(&thread));
	expect_happened("");
	/* Calls are counted from here on, and it does not yet: it has to begin that. */
	spy_recorded_from = SPY_COUNTED_ONLY;
	assert_false(spy_thread_look(&thread));
	expect_happened("WS");
	assert_int_equal(thread.counts_turn, spy_window_turn());
	assert_false(spy_thread_look(&thread));
	expect_happened("");
	/* A later time of that kind: what it has counted belongs to the one before. */
	spy_window_changes++;
	assert_false(spy_thread_look(&thread));
	expect_happened("WS");
	/* What it sees to opens a window. */
	has_time = look_opens = true;
	assert_true(spy_thread_look(&thread));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_first_call, begin),
		cmocka_unit_test_setup(test_no_session, begin),
		cmocka_unit_test_setup(test_beginning, begin),
		cmocka_unit_test_setup(test_no_slot, begin),
		cmocka_unit_test_setup(test_narrow, begin),
		cmocka_unit_test_setup(test_no_room, begin),
		cmocka_unit_test_setup(test_asleep, begin),
		cmocka_unit_test_setup(test_find_room, begin),
		cmocka_unit_test_setup(test_steps, begin),
		cmocka_unit_test_setup(test_falls_asleep, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
