/* links: shim/probe/outside.c shim/probe/query.c shim/entry/gap.c shim/state/subsystem.c */
/*
 * tests/unit/test_outside.c: a wait between two calls becomes a record: what it was for, who held it, which waits share
 * a record, and where there is no room; and after which call the next long time without one is expected.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/clock.h"
#include "probe/outside.h"
#include "probe/poll.h"
#include "probe/probe.h"
#include "probe/query.h"
#include "probe/wait.h"
#include "entry/gap.h"
#include "record/sched.h"
#include "state/session.h"
#include "state/subsystem.h"
#include "stack/python.h"
#include "stack/stack.h"

#define RECORD sizeof(struct spy_rec_outside)
#define MS 1000000

struct spy_session *spy_session;
static struct spy_thread threads[SPY_BOARD_SLOTS];
struct spy_thread *spy_threads = threads;
__thread struct spy_thread *spy_self;
bool spy_clock_is_counter, spy_probing;
uint64_t spy_long_gap = 1 * MS;
uint64_t spy_look_again; /* whenever it is asked */
bool spy_cost_without_probes, spy_cost_without_stacks;

static uint64_t now;
static struct spy_thread *self; /* slot 1 */
static struct spy_slot_page page;
static uint8_t packet[SPY_PACKET_BYTES] __attribute__((aligned(64)));
static int named, stacks, looks;
static struct spy_python python;
static bool has_python;

uint64_t spy_clock_monotonic(void)
{
	return now;
}

void spy_wait_name_holder(struct spy_thread *thread, uint32_t tid)
{
	assert_ptr_equal(thread, self);
	assert_true(thread->reentry_frame && tid);
	named++;
}

void spy_stack_wait(struct spy_thread *thread, const struct spy_outside *wait, uint64_t at)
{
	assert_ptr_equal(thread, self);
	assert_true(wait && at == now);
	stacks++;
}

static uint64_t ran_ns; /* the thread's time on a CPU */

uint64_t spy_sched_ran_ns(void)
{
	return ran_ns;
}

void spy_sched_look_later(struct spy_thread *thread)
{
	(void)thread;
}

bool spy_sched_look_before(struct spy_thread *thread, uint64_t start)
{
	assert_ptr_equal(thread, self);
	assert_int_equal(start, now);
	looks++;
	return true;
}

static uint64_t delay_ns; /* without a CPU, so far */

uint64_t spy_sched_delay_ns(void)
{
	return delay_ns;
}

uint8_t spy_recorded_from = SPY_RECORDED;
uint32_t spy_window_changes;
static uint64_t opened_at;
static int renewed;

uint64_t spy_window_opened_at(void)
{
	return opened_at;
}

static int asked;

static void look(struct spy_thread *thread, uint64_t at, bool between)
{
	assert_ptr_equal(thread, self);
	assert_int_equal(at, now);
	assert_true(between);
	asked++;
}

static const struct spy_subsystem subsystems[] = {{.name = "test", .look = look}, {.name = NULL}};

void spy_thread_renew(struct spy_thread *thread)
{
	assert_ptr_equal(thread, self);
	thread->turn = spy_window_changes;
	renewed++;
}

const struct spy_python *spy_python_here(void)
{
	return has_python ? &python : NULL;
}

static int begin(void **state)
{
	(void)state;
	free(spy_session);
	spy_session = aligned_alloc(128, (sizeof(*spy_session) + 127) / 128 * 128);
	memset(spy_session, 0, sizeof(*spy_session));
	memset(threads, 0, sizeof(threads));
	memset(packet, 0, sizeof(packet));
	memset(&page, 0, sizeof(page));
	spy_session->slots = 3;
	self = &spy_threads[1];
	self->packet = (struct spy_packet *)packet;
	self->page = &page;
	self->head = packet + sizeof(struct spy_packet);
	spy_thread_use_room(self, packet + SPY_PACKET_BYTES - SPY_CALL_ROOM - SPY_WAIT_ROOM);
	self->file.room = SPY_PACKET_BYTES;
	spy_self = self;
	spy_probing = true;
	spy_subsystems = subsystems;
	named = stacks = looks = asked = 0;
	has_python = false;
	now = 1000 * MS;
	spy_session->frequency = 1000000000;
	spy_outside_begin(1000000000);
	return 0;
}

static size_t written(void)
{
	return (size_t)(self->head - packet) - sizeof(struct spy_packet);
}

static const struct spy_rec_outside *last(void)
{
	assert_int_equal(self->packet->content_bits, 8 * (uint64_t)(self->head - packet));
	return (const struct spy_rec_outside *)(self->head - RECORD);
}

/* A wait of so long, which has just ended. */
static void wait_for(struct spy_outside wait, uint64_t ns)
{
	now += 5000;
	wait.start = now;
	now += ns;
	spy_outside_write(&wait);
}

static void test_record(void **state)
{
	(void)state;
	assert_int_equal(spy_outside_least, 20000);
	wait_for((struct spy_outside){.kind = SPY_WAIT_MUTEX,
				      .object = 0x7000,
				      .holder = 42,
				      .flags = SPY_WAIT_FAILED,
				      .caller = 0x123456},
		 3 * MS);
	assert_int_equal(written(), RECORD);
	assert_int_equal(last()->event, SPY_EV_OUTSIDE);
	assert_int_equal(last()->time, now);
	assert_int_equal(last()->kind, SPY_WAIT_MUTEX);
	assert_int_equal(last()->file, SPY_FILE_UNKNOWN);
	assert_int_equal(last()->count, 1);
	assert_int_equal(last()->duration, 3 * MS);
	assert_int_equal(last()->span, 3 * MS);
	assert_int_equal(last()->flags, SPY_WAIT_FAILED);
	assert_int_equal(last()->caller, 0x123456);
	assert_int_equal(last()->object, 0x7000);
	assert_int_equal(last()->holder, 42);
	assert_int_equal(self->waited, 3 * MS);
	assert_int_equal(self->reentry_frame, 0);
	assert_int_equal(named, 1);
	assert_int_equal(stacks, 1);
}

/* The first poll behind a long call has a record of its own, however short it was; waits behind it share that. */
static void test_late_poll(void **state)
{
	struct spy_outside wait = {
		.kind = SPY_WAIT_EPOLL, .object = 7, .is_file = true, .caller = 0x60};

	(void)state;
	wait_for(wait, MS);
	wait.flags = SPY_WAIT_LATE;
	wait.ready = 3;
	wait_for(wait, 1000);
	assert_int_equal(written(), 2 * RECORD);
	assert_int_equal(last()->flags, SPY_WAIT_LATE);
	assert_int_equal(last()->ready, 3);
	wait.flags = wait.ready = 0;
	wait_for(wait, MS);
	assert_int_equal(written(), 2 * RECORD);
	assert_int_equal(last()->count, 2);
	assert_int_equal(last()->flags, SPY_WAIT_LATE);
	assert_int_equal(last()->ready, 3);
}

static struct spy_poll returned(unsigned int n, const uint64_t *all)
{
	struct epoll_event events[4];
	struct spy_poll poll = spy_poll_begin(true);

	for (unsigned int i = 0; i < n; i++)
		events[i] = (struct epoll_event){.events = EPOLLIN, .data.u64 = all[i]};
	spy_poll_see_events(&poll, events, (int)n);
	spy_poll_end(&poll, true);
	return poll;
}

/* What was ready, without what is served already. */
static void test_ready(void **state)
{
	struct pollfd all[] = {{.fd = 5, .revents = POLLOUT},
			       {.fd = 6, .revents = POLLIN},
			       {.fd = 7, .revents = POLLHUP},
			       {.fd = 8}};
	struct epoll_event room = {.events = EPOLLOUT, .data.u64 = 12};
	struct spy_poll poll;
	fd_set set;

	(void)state;
	poll = returned(2, (const uint64_t[]){10, 11});
	assert_int_equal(spy_poll_flags(&poll), 0);
	assert_int_equal(spy_poll_ready(&poll, false), 0); /* behind no long call */
	self->poll_is_late = true;
	assert_false(spy_poll_begin(false).late);
	poll = returned(3, (const uint64_t[]){10, 11, 12});
	assert_int_equal(spy_poll_flags(&poll), SPY_WAIT_LATE);
	assert_int_equal(spy_poll_ready(&poll, false), 2); /* 11 was served last */
	assert_int_equal(spy_poll_ready(&poll, true), 0); /* they came while it waited */
	assert_false(self->poll_is_late);
	self->poll_is_late = true;
	poll = returned(1, (const uint64_t[]){12});
	assert_int_equal(spy_poll_ready(&poll, false), 0);
	self->poll_is_late = true;
	poll = returned(0, NULL); /* nothing: 12 is still the last one */
	assert_int_equal(self->poll_served, 12);
	/* Room to write is no input. */
	spy_poll_see_events(&poll, &room, 1);
	assert_int_equal(poll.ready, 0);
	spy_poll_see_descriptors(&poll, all, 4);
	assert_int_equal(poll.ready, 2);
	assert_int_equal(poll.last, 7);
	FD_ZERO(&set);
	FD_SET(3, &set);
	FD_SET(9, &set);
	spy_poll_see_set(&poll, &set, 9);
	assert_int_equal(poll.ready, 3);
	spy_poll_see_set(&poll, NULL, 9);
	assert_int_equal(poll.last, 3);
	/* In a forked child the thread has no records. */
	self->packet = NULL;
	spy_poll_end(&poll, true);
	assert_int_equal(self->poll_served, 12);
}

/* Nothing is written where nothing is watched, and errno stays. */
static void test_nowhere(void **state)
{
	const struct spy_outside wait = {.kind = SPY_WAIT_SLEEP};

	(void)state;
	self->depth = 1;
	wait_for(wait, MS);
	self->depth = 0;
	self->reentry_frame = 1;
	wait_for(wait, MS);
	self->reentry_frame = 0;
	self->packet = NULL;
	wait_for(wait, MS);
	self->packet = (struct spy_packet *)packet;
	assert_int_equal(written(), 0);
	spy_probing = false;
	spy_outside_begin(1000000000);
	assert_int_equal(spy_outside_least, UINT64_MAX);
}

/* A read or write waits no longer than it was neither copying nor without a CPU, and not at all where it is not to block. */
static void test_work_is_no_wait(void **state)
{
	struct spy_outside wait = {.kind = SPY_WAIT_TRANSFER, .is_file = true};
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	wait.object = (uint64_t)ends[0];
	delay_ns = 7 * MS;
	wait_for(wait, MS); /* of what was before nothing is known */
	assert_int_equal(written(), RECORD);
	assert_int_equal(last()->duration, MS);
	delay_ns += MS - 10000;
	wait_for(wait, MS);
	assert_int_equal(last()->duration, MS);
	assert_int_equal(last()->count, 1);
	delay_ns += MS;
	wait_for(wait, 5 * MS);
	assert_int_equal(last()->count, 2);
	assert_int_equal(last()->duration, 5 * MS);
	wait.bytes = 4000000;
	wait_for(wait, 2 * MS);
	assert_int_equal(last()->count, 2);
	wait_for(wait, 3 * MS);
	assert_int_equal(last()->count, 3);
	assert_int_equal(last()->duration, 6 * MS);
	wait.bytes = 0;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	wait_for(wait, 50 * MS);
	wait.kind = SPY_WAIT_ACCEPT;
	wait_for(wait, 50 * MS);
	assert_int_equal(last()->count, 3);
	close(ends[0]);
	close(ends[1]);
}

static void test_rows(void **state)
{
	struct spy_outside wait = {.kind = SPY_WAIT_CONDITION, .object = 0x10, .caller = 0x20};

	(void)state;
	wait_for(wait, 30000);
	wait_for(wait, 40000);
	assert_int_equal(written(), RECORD);
	assert_int_equal(last()->count, 2);
	assert_int_equal(last()->duration, 70000);
	assert_int_equal(last()->span, 75000);
	assert_int_equal(last()->time, now);
	assert_int_equal(stacks, 1);
	wait.object = 0x11;
	wait_for(wait, 30000);
	wait.caller = 0x21;
	wait_for(wait, 30000);
	wait.kind = SPY_WAIT_SEMAPHORE;
	wait_for(wait, 30000);
	assert_int_equal(written(), 4 * RECORD);
	self->head += 8; /* another record */
	self->packet->content_bits += 64;
	wait_for(wait, 30000);
	assert_int_equal(written(), 5 * RECORD + 8);
	assert_int_equal(last()->count, 1);
}

/* Of waits in a row the holder, if it was the same. */
static void test_row_holder(void **state)
{
	struct spy_outside wait = {.kind = SPY_WAIT_MUTEX, .object = 0x10, .holder = 5};

	(void)state;
	wait_for(wait, 30000);
	wait_for(wait, 30000);
	assert_int_equal(last()->holder, 5);
	wait.holder = 6;
	wait_for(wait, 30000);
	assert_int_equal(last()->holder, 0);
	assert_int_equal(last()->count, 3);
}

/* Room for records is as far as the calls' reserve goes, and no further than the tail's file. */
static void test_room(void **state)
{
	struct spy_outside wait = {.kind = SPY_WAIT_MUTEX, .object = 0x10};
	uint8_t *first = self->head;

	(void)state;
	self->file.room = sizeof(struct spy_packet) + 2 * RECORD;
	for (wait.object = 1; wait.object < 10; wait.object++)
		wait_for(wait, 30000);
	assert_int_equal(self->head - first, 2 * RECORD);
	assert_int_equal(last()->count, 8); /* all of the kind */
	assert_int_equal(last()->duration, 8 * 30000);
	wait.kind = SPY_WAIT_SLEEP;
	wait_for(wait, 30000); /* is forgotten */
	assert_int_equal(last()->count, 8);
	self->file.room = SPY_PACKET_BYTES;
	spy_thread_use_room(self, self->head + RECORD - 1 - SPY_CALL_ROOM - SPY_WAIT_ROOM);
	wait_for(wait, 30000);
	assert_int_equal(self->head - first, 2 * RECORD);
	spy_thread_use_room(self, self->limit + 1);
	wait_for(wait, 30000);
	assert_int_equal(self->head - first, 3 * RECORD);
}

static unsigned int kind_of(int fd)
{
	wait_for((struct spy_outside){.kind = SPY_WAIT_TRANSFER,
				      .object = (uint64_t)fd,
				      .is_file = true,
				      .caller = now},
		 30000);
	return last()->file;
}

static void test_files(void **state)
{
	int pipes[2], sockets[2], listening = socket(AF_UNIX, SOCK_STREAM, 0);
	int poll = epoll_create1(0), file = open("/proc/self/exe", O_RDONLY);
	int null = open("/dev/null", O_RDONLY);

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	assert_int_equal(bind(listening, &(struct sockaddr){.sa_family = AF_UNIX}, 2), 0);
	assert_int_equal(kind_of(listening), SPY_FILE_SOCKET);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(kind_of(listening), SPY_FILE_LISTENING);
	assert_int_equal(kind_of(pipes[0]), SPY_FILE_PIPE);
	assert_int_equal(kind_of(sockets[0]), SPY_FILE_SOCKET);
	assert_int_equal(kind_of(file), SPY_FILE_REGULAR);
	assert_int_equal(kind_of(null), SPY_FILE_DEVICE);
	assert_int_equal(kind_of(poll), SPY_FILE_EVENT);
	close(pipes[0]);
	assert_int_equal(kind_of(pipes[0]), SPY_FILE_UNKNOWN);
}

/* The lock of the interpreter lies in its state. */
static void test_gil(void **state)
{
	struct spy_outside wait = {.kind = SPY_WAIT_CONDITION, .object = 0x5000};

	(void)state;
	python.symbols.runtime = 0x5000;
	python.symbols.runtime_bytes = 0x100;
	wait_for(wait, 30000);
	assert_int_equal(last()->flags, 0);
	has_python = true;
	for (wait.object = 0x4fff; wait.object <= 0x5100; wait.object++) {
		self->head = packet + sizeof(struct spy_packet);
		wait_for(wait, 30000);
		assert_int_equal(last()->flags,
				 wait.object >= 0x5000 && wait.object < 0x5100 ? SPY_WAIT_GIL : 0);
	}
	wait = (struct spy_outside){.kind = SPY_WAIT_TRANSFER, .object = 0x5000, .is_file = true};
	wait_for(wait, 30000);
	assert_int_equal(last()->flags, 0);
}

static void test_thread(void **state)
{
	(void)state;
	spy_threads[1].handle = 0x111;
	spy_threads[2].handle = 0x222;
	spy_session->slot_tids[1] = 11;
	spy_session->slot_tids[2] = 22;
	assert_int_equal(spy_outside_thread(0x222), 22);
	assert_int_equal(spy_outside_thread(0x111), 11);
	assert_int_equal(spy_outside_thread(0x333), 0);
	spy_session->slot_tids[2] = 0; /* it has ended */
	assert_int_equal(spy_outside_thread(0x222), 0);
}

/* ---- gaps ------------------------------------------------------------------------------------ */

/* So many calls, then a long time without one. Returns how many of the calls got a stack because the gap was expected
 * behind them, and whether the last one did. */
static int go_round(unsigned int calls, bool *last_one)
{
	int expected = 0;

	*last_one = false;
	while (calls--) {
		if (spy_gap_is_beside(self) && !self->gaps.behind) {
			expected++;
			*last_one = !calls;
		}
		self->gaps.behind = false;
		page.calls++;
		self->left_at = now;
	}
	now += 5 * MS;
	spy_gap_look(self, now);
	return expected;
}

static void test_expected(void **state)
{
	static const unsigned int rounds[] = {3, 7};
	unsigned int i;
	bool hit;

	(void)state;
	for (i = 0; i < 4; i++)
		go_round(5, &hit);
	assert_int_equal(go_round(5, &hit), 1); /* always as many */
	assert_true(hit);
	for (i = 0; i < 6; i++)
		go_round(rounds[i % 2], &hit);
	for (i = 0; i < 6; i++) { /* in turns */
		assert_int_equal(go_round(rounds[i % 2], &hit), 1);
		assert_true(hit);
	}
	assert_int_equal(looks, 17);
}

/* A look after a short time is no gap. */
static void test_short(void **state)
{
	(void)state;
	self->left_at = now - spy_long_gap + 1;
	spy_gap_look(self, now);
	assert_false(self->gaps.behind);
	assert_int_equal(self->gaps.n, 0);
	self->left_at--;
	spy_gap_look(self, now);
	assert_true(self->gaps.behind);
	assert_true(spy_gap_is_beside(self));
	assert_int_equal(self->gaps.n, 1);
	assert_int_equal(looks, 2);
	assert_int_equal(asked, 2); /* each time what is due was done */
}

/* The board shows a wait while it lasts, for threads that are between calls alone. */
static void test_board(void **state)
{
	const struct spy_outside wait = {.start = 900,
					 .kind = SPY_WAIT_MUTEX,
					 .object = 0x7000,
					 .holder = 42,
					 .caller = 0x123456};

	(void)state;
	page.calls = 0x30005;
	spy_outside_show(&wait);
	assert_int_equal(page.outside_kind, SPY_WAIT_MUTEX + 1);
	assert_int_equal(page.outside_object, 0x7000);
	assert_int_equal(page.outside_holder, 42);
	assert_int_equal(page.outside_since, 900);
	assert_int_equal(page.outside_caller, 0x123456);
	assert_int_equal(page.outside_calls, 5);
	assert_int_equal(self->reentry_frame, 0);
	spy_outside_hide();
	assert_int_equal(page.outside_kind, 0);
	self->depth = 1;
	spy_outside_show(&wait);
	assert_int_equal(page.outside_kind, 0);
	self->depth = 0;
	spy_outside_show(&wait);
	self->packet = NULL; /* a child whose parent was at that: it has no board */
	spy_outside_hide();
	assert_int_equal(page.outside_kind, SPY_WAIT_MUTEX + 1);
}

/* ---- a GPU that is asked over and over ---- */

#define US 1000
#define READY 0
#define NOT_READY 600

/* Asks for it after so many microseconds, in so many of which the thread had a CPU. */
static void ask(uint64_t after_us, uint64_t ran_us, uint64_t object, uint64_t answer)
{
	uint64_t stack[8] = {0};
	struct spy_frame frame = {
		.thread = self, .caller = 0x4321, .result = answer, .stack = stack + 4};

	now += after_us * US;
	ran_ns += ran_us * US;
	self->reentry_frame = 1;
	spy_query_answered(&frame, object);
	self->reentry_frame = 0;
}

static void slept(uint64_t us)
{
	uint64_t start = now;

	now += us * US;
	spy_outside_write(
		&(struct spy_outside){.start = start, .kind = SPY_WAIT_SLEEP, .caller = 0x9999});
}

static void expect_query(uint64_t us, bool ended)
{
	assert_int_equal(last()->kind, SPY_WAIT_QUERY);
	assert_int_equal(last()->object, 0x50);
	assert_int_equal(last()->caller, 0x4321);
	assert_int_equal(last()->duration, us * US);
	assert_int_equal(last()->flags, ended ? 0 : SPY_WAIT_FAILED);
}

/* What is between the questions is a wait, in one record, until the answer is another one. */
static void test_asked(void **state)
{
	int i;

	(void)state;
	ask(5, 5, 0x50, READY);
	assert_int_equal(page.outside_kind, 0);
	ask(5, 5, 0x50, NOT_READY);
	assert_int_equal(page.outside_kind, SPY_WAIT_QUERY + 1);
	assert_int_equal(page.outside_object, 0x50);
	for (i = 0; i < 98; i++)
		ask(10, 10, i % 3 ? 0x50 : 0x51, NOT_READY); /* and for another one */
	assert_int_equal(written(), RECORD);
	expect_query(980, false);
	ask(7000, 3, 0x50, NOT_READY); /* no CPU meanwhile */
	assert_int_equal(written(), 2 * RECORD); /* it has become long, and gets a stack */
	expect_query(7000, false);
	assert_int_equal(stacks, 2);
	ask(10, 10, 0x50, READY);
	assert_int_equal(written(), 2 * RECORD);
	assert_int_equal(last()->flags, 0);
	assert_int_equal(page.outside_kind, 0);
	ask(500, 500, 0x50, NOT_READY); /* for the next work */
	assert_int_equal(written(), 2 * RECORD);
}

/* Sleeping until the next question is the same wait, once for each of them, and not for long. */
static void test_asked_and_slept(void **state)
{
	int i;

	(void)state;
	ask(5, 5, 0x50, NOT_READY);
	for (i = 0; i < 3; i++) {
		slept(200);
		ask(2, 2, 0x50, NOT_READY);
	}
	expect_query(604, false); /* the last 2 us are in no record yet */
	slept(200);
	expect_query(806, false);
	slept(300);
	assert_int_equal(last()->kind, SPY_WAIT_SLEEP);
	ask(2, 2, 0x50, NOT_READY);
	slept(260 * 1000);
	assert_int_equal(last()->kind, SPY_WAIT_SLEEP);
}

/* A thread that works and asks now and then does not wait; nor one that makes other calls meanwhile. */
static void test_asked_seldom(void **state)
{
	int i;

	(void)state;
	ask(5, 5, 0x50, NOT_READY);
	for (i = 0; i < 20; i++)
		ask(900, 850, 0x50, NOT_READY);
	assert_int_equal(written(), 0);
	assert_int_equal(page.outside_since, 1000 * MS + 5 * US); /* since then it is not done */
	ask(5000, 5000, 0x50, NOT_READY);
	assert_int_equal(page.outside_since, now);
	for (i = 0; i < 20; i++) {
		page.calls++;
		ask(30, 30, 0x50, NOT_READY);
	}
	assert_int_equal(written(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_record, begin),
		cmocka_unit_test_setup(test_late_poll, begin),
		cmocka_unit_test_setup(test_ready, begin),
		cmocka_unit_test_setup(test_nowhere, begin),
		cmocka_unit_test_setup(test_work_is_no_wait, begin),
		cmocka_unit_test_setup(test_rows, begin),
		cmocka_unit_test_setup(test_row_holder, begin),
		cmocka_unit_test_setup(test_room, begin),
		cmocka_unit_test_setup(test_files, begin),
		cmocka_unit_test_setup(test_gil, begin),
		cmocka_unit_test_setup(test_board, begin),
		cmocka_unit_test_setup(test_thread, begin),
		cmocka_unit_test_setup(test_asked, begin),
		cmocka_unit_test_setup(test_asked_and_slept, begin),
		cmocka_unit_test_setup(test_asked_seldom, begin),
		cmocka_unit_test_setup(test_expected, begin),
		cmocka_unit_test_setup(test_short, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
