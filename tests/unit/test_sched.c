/* links: shim/record/sched.c */
/*
 * tests/unit/test_sched.c: the kernel's account of a thread, with a clock, a time on the CPU and a schedstat of the
 * test's own: what is written of a long call, when the file is read at all, and what is known where it is not there.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "no_guard.h"
#include "record/sched.h"
#include "state/session.h"

#define FREQUENCY 2000000000ull /* cycles a second: two in a nanosecond */
#define MS (FREQUENCY / 1000)
#define NS_OF_MS 1000000ull

struct spy_session *spy_session;
bool spy_cost_without_probes, spy_cost_without_stacks;
bool spy_probing, spy_clock_is_counter;
static struct spy_thread thread;
static uint8_t packet[SPY_PACKET_BYTES] __attribute__((aligned(64)));
static uint64_t now = FREQUENCY; /* cycles */
static uint64_t on_cpu_ns, delay_ns; /* as the kernel has them */
static int looks; /* into the file */
static int lost;
static bool no_file;

uint64_t spy_clock_monotonic(void)
{
	return now;
}

void spy_thread_count_lost(struct spy_thread *of)
{
	assert_ptr_equal(of, &thread);
	lost++;
}

/* ---- the kernel ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_THREAD_CPUTIME_ID)
		return (int)syscall(SYS_clock_gettime, clock, time);
	time->tv_sec = (time_t)(on_cpu_ns / 1000000000);
	time->tv_nsec = (long)(on_cpu_ns % 1000000000);
	return 0;
}

int open(const char *path, int flags, ...)
{
	int fd;

	if (strcmp(path, "/proc/thread-self/schedstat") != 0)
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
	looks++;
	if (no_file) {
		errno = ENOENT;
		return -1;
	}
	fd = memfd_create("schedstat", 0);
	dprintf(fd, "%llu %llu 17\n", (unsigned long long)on_cpu_ns, (unsigned long long)delay_ns);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* ---- a thread ---- */

static int begin(void **state)
{
	(void)state;
	free(spy_session);
	spy_session = calloc(1, sizeof(*spy_session));
	spy_session->frequency = FREQUENCY;
	memset(&thread, 0, sizeof(thread));
	memset(packet, 0, sizeof(packet));
	thread.packet = (struct spy_packet *)packet;
	thread.head = packet + sizeof(struct spy_packet);
	spy_thread_use_room(&thread, packet + SPY_PACKET_BYTES - SPY_CALL_ROOM - SPY_WAIT_ROOM);
	on_cpu_ns = 5 * 1000000000ull + 123;
	delay_ns = 7000;
	looks = lost = 0;
	no_file = false;
	spy_probing = true;
	spy_sched_begin(FREQUENCY);
	return 0;
}

/* So many milliseconds, of which the thread ran, and was ready without a CPU; it waited for locks as long as said. */
static void pass(uint64_t ms, uint64_t ran_ms, uint64_t delayed_ms, uint64_t waited_ms)
{
	now += ms * MS;
	on_cpu_ns += ran_ms * NS_OF_MS;
	delay_ns += delayed_ms * NS_OF_MS;
	thread.waited += waited_ms * MS;
}

static struct spy_rec_sched *last(void)
{
	assert_ptr_not_equal(thread.head, packet + sizeof(struct spy_packet));
	assert_int_equal(thread.packet->content_bits, 8 * (uint64_t)(thread.head - packet));
	return (struct spy_rec_sched *)(thread.head - sizeof(struct spy_rec_sched));
}

static void test_limits(void **state)
{
	(void)state;
	assert_int_equal(spy_long_call, FREQUENCY / (1000000000 / SPY_LOOKED_AT_NS));
	assert_int_equal(spy_look_again, 2 * MS);
	spy_probing = false; /* without probes nobody looks at the account; at what is due, yes */
	spy_sched_begin(FREQUENCY);
	assert_true(spy_long_call == UINT64_MAX && spy_look_again == 2 * MS);
	assert_false(spy_sched_look_before(&thread, 7 * MS));
	assert_int_equal(thread.ran_at, 7 * MS);
}

/* Again after a while, and where a cost window ends: what is recorded may change there. */
static void test_look_later(void **state)
{
	uint64_t end = thread.cost.phase.end, ran_at = thread.ran_at;

	(void)state;
	thread.ran_at = 50 * MS;
	thread.cost.phase.end = UINT64_MAX;
	spy_sched_look_later(&thread);
	assert_int_equal(thread.look_at, 50 * MS + spy_look_again);
	thread.cost.phase.end = 50 * MS + spy_look_again - 1;
	spy_sched_look_later(&thread);
	assert_int_equal(thread.look_at, 50 * MS + spy_look_again - 1);
	thread.cost.phase.end = end;
	thread.ran_at = ran_at;
}

static void test_account(void **state)
{
	const struct spy_rec_sched *record;

	(void)state;
	errno = EDOM;
	spy_sched_look(&thread, now); /* the first one knows nothing of what was before */
	assert_ptr_equal(thread.head, packet + sizeof(struct spy_packet));
	assert_int_equal(looks, 1);
	assert_int_equal(thread.ran_at, now);
	pass(10, 2, 3, 0);
	spy_sched_look(&thread, now);
	assert_int_equal(errno, EDOM);
	record = last();
	assert_int_equal(record->event, SPY_EV_SCHED);
	assert_int_equal(record->time, now);
	assert_int_equal(record->window, 10 * MS);
	assert_int_equal(record->running_ns, 2 * NS_OF_MS);
	assert_int_equal(record->not_running_ns, 3 * NS_OF_MS);
	assert_int_equal(record->unknown, 0);
	assert_int_equal(thread.packet->time_end, now);
	assert_int_equal(looks, 2);
	assert_true(thread.lacked_cpu);
	pass(10, 15, 20, 0); /* accounts may disagree with the clock: it is right */
	spy_sched_look(&thread, now);
	assert_int_equal(last()->running_ns, 10 * NS_OF_MS);
	assert_int_equal(last()->not_running_ns, 0);
	assert_int_equal(last()->unknown, 0);
	pass(10, 4, 20, 0);
	spy_sched_look(&thread, now);
	assert_int_equal(last()->not_running_ns, 6 * NS_OF_MS);
	assert_int_equal(last()->unknown, 0);
	assert_int_equal(lost, 0);
}

/* A thread begins: only remembered. A call begins after a long time without one: a record. */
static void test_before(void **state)
{
	uint8_t *head = thread.head;

	(void)state;
	spy_sched_begin_thread(&thread);
	assert_ptr_equal(thread.head, head);
	assert_int_equal(looks, 1);
	assert_int_equal(thread.ran_at, now);
	pass(50, 1, 30, 0);
	spy_sched_look_before(&thread, now);
	assert_int_equal(last()->event, SPY_EV_GAP);
	assert_int_equal(last()->time, now);
	assert_int_equal(last()->window, 50 * MS);
	assert_int_equal(last()->running_ns, 1 * NS_OF_MS);
	assert_int_equal(last()->not_running_ns, 30 * NS_OF_MS);
	assert_int_equal(looks, 2);
	assert_int_equal(thread.ran_at, now);
	pass(50, 1, 0, 49); /* it waited, which is known */
	spy_sched_look_before(&thread, now);
	assert_int_equal(last()->not_running_ns, 0);
	pass(4, 1, 2, 0);
	spy_sched_look(&thread, now);
	assert_int_equal(last()->event, SPY_EV_SCHED);
	assert_int_equal(last()->window, 4 * MS);
	assert_int_equal(last()->running_ns, 1 * NS_OF_MS);
}

/* The time of the whole process: each hundredth of a second, for whichever thread comes first. */
static void test_process(void **state)
{
	(void)state;
	spy_sched_look(&thread, now);
	pass(10, 10, 0, 0);
	spy_sched_look(&thread, now);
	assert_true(last()->process_ran);
	pass(9, 9, 0, 0);
	spy_sched_look(&thread, now);
	assert_int_equal(last()->process_ran, 0);
	pass(1, 1, 0, 0);
	spy_sched_look(&thread, now);
	assert_true(last()->process_ran);
}

/* When the file is not read: it was lately, the thread was not kept waiting then, and the time is clear without it. */
static void test_seldom(void **state)
{
	(void)state;
	spy_sched_look(&thread, now);
	pass(1, 1, 0, 0);
	spy_sched_look(&thread, now);
	assert_int_equal(looks, 1);
	pass(16, 15, 0, 0); /* all but a sixteenth */
	spy_sched_look(&thread, now);
	assert_int_equal(looks, 1);
	assert_int_equal(last()->not_running_ns, 0);
	assert_int_equal(last()->unknown, (NS_OF_MS + SPY_UNKNOWN_UNIT - 1) /
						  SPY_UNKNOWN_UNIT); /* it may have had no CPU */
	assert_int_equal(last()->running_ns, 15 * NS_OF_MS);
	pass(16, 2, 0, 13); /* it waited for locks */
	spy_sched_look(&thread, now);
	assert_int_equal(looks, 1);
	assert_int_equal(thread.waited, 0);
	pass(16, 2, 0, 12); /* two of sixteen milliseconds are not explained */
	spy_sched_look(&thread, now);
	assert_int_equal(looks, 2);
	pass(99, 99, 0, 0);
	spy_sched_look(&thread, now);
	assert_int_equal(looks, 2);
	pass(1, 1, 0, 0); /* a tenth of a second ago */
	spy_sched_look(&thread, now);
	assert_int_equal(looks, 3);
	pass(50, 49, 1, 0);
	spy_sched_look_before(&thread, now);
	assert_int_equal(looks, 3);
	pass(50, 47, 0, 0);
	spy_sched_look(&thread, now); /* due; a hundredth of the time without a CPU is no crowd */
	assert_int_equal(looks, 4);
	assert_false(thread.lacked_cpu);
	/* Of that millisecond it knows not when it was: in proportion to the idle time (1 before, 3 in this window). */
	assert_int_equal(last()->not_running_ns, NS_OF_MS * 3 / 4);
	assert_int_equal(last()->unknown, (NS_OF_MS / 4 + SPY_UNKNOWN_UNIT - 1) / SPY_UNKNOWN_UNIT);
	pass(100, 98, 2, 0); /* a fiftieth is */
	spy_sched_look(&thread, now);
	assert_int_equal(looks, 5);
	assert_true(thread.lacked_cpu);
	pass(1, 1, 0, 0);
	spy_sched_look(&thread, now); /* so it is read again, though all is explained */
	assert_int_equal(looks, 6);
}

static void test_no_file(void **state)
{
	(void)state;
	no_file = true;
	spy_sched_look(&thread, now);
	assert_ptr_equal(thread.head, packet + sizeof(struct spy_packet));
	assert_true(spy_long_call == UINT64_MAX && spy_look_again == 2 * MS);
}

static void test_no_room(void **state)
{
	uint8_t *end = packet + SPY_PACKET_BYTES - sizeof(struct spy_rec_sched) - SPY_RECORD_MAX;

	(void)state;
	spy_sched_look(&thread, now);
	pass(10, 2, 3, 0);
	thread.head = end; /* room for this record, and the call's */
	spy_sched_look(&thread, now);
	assert_int_equal(lost, 0);
	assert_ptr_equal(thread.head, end + sizeof(struct spy_rec_sched));
	thread.head = end + 8;
	pass(10, 2, 3, 0);
	spy_sched_look(&thread, now);
	assert_int_equal(lost, 1);
	assert_ptr_equal(thread.head, end + 8);
}

#define TEST(function) cmocka_unit_test_setup(function, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_limits),     TEST(test_account), TEST(test_process), TEST(test_before),
		TEST(test_look_later), TEST(test_seldom),  TEST(test_no_file), TEST(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
