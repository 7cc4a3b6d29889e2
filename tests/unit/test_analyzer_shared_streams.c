/*
 * tests/unit/test_analyzer_shared_streams.c: of a wait for a stream that several threads use, the part that was for the
 * others' work, in nanoseconds.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "account/shared_streams.h"
#include "account/streams.h"

enum { A, B, C, THREADS };

static struct device_streams device;
static struct gpu_stream stream;
static struct thread threads[THREADS];

static int setup(void **state)
{
	(void)state;
	memset(&device, 0, sizeof(device));
	stream = (struct gpu_stream){.key = {.stream = 0x10}, .beside = &device};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	stream_sharing_free(device.shared);
	return 0;
}

static void hands_over(unsigned int thread, unsigned int operations, uint64_t ns)
{
	while (operations--)
		stream_hand_over(&device, &stream, &threads[thread], ns, false);
}

/* Calls become known when they end. */
static void waits(unsigned int thread, uint64_t begin_ns, uint64_t end_ns)
{
	static const union spy_any raw = {.other.event = SPY_EV_OP};
	const struct record record = {.raw = &raw,
				      .event = SPY_EV_OP,
				      .thread = &threads[thread],
				      .ns = end_ns,
				      .duration_ns = end_ns - begin_ns};

	stream_is_awaited(&stream, &record, stream_submitted_before(&stream, begin_ns));
}

/* What that thread's waits beside others' were, and of that for the others' work. */
static void expect(unsigned int thread, uint64_t count, uint64_t waited_ns, uint64_t others_ns)
{
	const struct stream_sharer *s = stream.sharing->sharers;

	while (s < stream.sharing->sharers + STREAM_SHARERS && s->thread != &threads[thread])
		s++;
	if (s == stream.sharing->sharers + STREAM_SHARERS) {
		assert_int_equal(count, 0);
		return;
	}
	assert_int_equal(s->waits, count);
	assert_int_equal(s->waited_ns, waited_ns);
	assert_in_range(s->others_ns + 1, others_ns, others_ns + 2);
}

/* One operation of its own, and three of the other's, that nobody has waited for. */
static void test_two(void **state)
{
	(void)state;
	hands_over(A, 1, 100);
	hands_over(B, 3, 110);
	waits(A, 200, 1000);
	expect(A, 0, 0, 0); /* alone, so far */
	waits(B, 300, 1100);
	expect(B, 1, 800, 200);
	expect(A, 0, 0, 0);
}

/* What a wait was for that had ended when the next one begins, is done; what has come since then may not be. */
static void test_what_is_done(void **state)
{
	(void)state;
	hands_over(A, 5, 100);
	hands_over(B, 7, 110);
	waits(A, 200, 500);
	hands_over(C, 2, 250); /* behind what A waits for */
	hands_over(B, 1, 260);
	hands_over(A, 1, 510);
	hands_over(C, 1, 515);
	waits(A, 520, 900);
	expect(A, 0, 0, 0);
	waits(B, 500, 901); /* right when A's ended: C's two, its own one */
	expect(B, 1, 401, 401 * 2 / 3);

	hands_over(C, 4, 1000);
	hands_over(B, 1, 1010);
	waits(C, 1100, 1500);
	waits(B, 1200, 1600); /* A waited for those of 510 and 515 */
	expect(B, 2, 401 + 400, 401 * 2 / 3 + 400 * 4 / 5);
}

/* A wait that ends when another begins was not beside it; nor was one of the thread itself, however times are rounded. */
static void test_beside(void **state)
{
	(void)state;
	hands_over(A, 1, 100);
	hands_over(B, 1, 110);
	waits(A, 200, 500);
	waits(B, 500, 800);
	expect(B, 0, 0, 0);
	waits(B, 799, 1000);
	expect(B, 0, 0, 0);
	waits(A, 999, 1200);
	expect(A, 1, 201, 0); /* nothing was handed over since */

	hands_over(A, 3, 1290);
	hands_over(C, 1, 1300);
	hands_over(B, 1, 1300);
	waits(A, 1295, 1400);
	waits(B, 1299, 1500); /* those of 1300 come behind it, by the clock */
	expect(B, 1, 201, 201);
}

/* Of what a thread hands over in one go, a part may be done and another part come behind the wait. */
static void test_part_of_a_turn(void **state)
{
	(void)state;
	hands_over(B, 1, 90);
	hands_over(A, 4, 100);
	waits(A, 150, 200);
	hands_over(A, 2, 250);
	hands_over(B, 1, 260);
	hands_over(C, 9, 300);
	waits(B, 270, 600);
	waits(A, 280, 610);
	expect(A, 1, 330, 330 / 3);
	hands_over(A, 1, 620);
	waits(C, 400, 700);
	waits(A, 650, 850); /* none of C's nine is known to be done: it waits for them longer */
	expect(A, 2, 330 + 200, 330 / 3 + 200 * 9 / 10);
}

static void copies(unsigned int thread, uint8_t direction, uint64_t begin_ns, uint64_t end_ns)
{
	const union spy_any raw = {.copy = {.head.event = SPY_EV_COPY, .direction = direction}};
	const struct record record = {.raw = &raw,
				      .event = SPY_EV_COPY,
				      .thread = &threads[thread],
				      .ns = end_ns,
				      .duration_ns = end_ns - begin_ns};

	hands_over(thread, 1, end_ns);
	stream_is_copied_in(&stream, &record, stream.submitted);
}

/* A copy waits for what others waited for, but not for copies in its own direction, nor for what its own thread did before,
 * however times are rounded. */
static void test_copies(void **state)
{
	(void)state;
	hands_over(B, 1, 90);
	copies(A, SPY_DIR_H2D, 100, 200);
	copies(A, SPY_DIR_D2H, 199, 400);
	expect(A, 0, 0, 0);
	copies(B, SPY_DIR_H2D, 150,
	       500); /* of which A's other copy took until 400, its like one until 200 */
	expect(B, 1, 350, 200);
	copies(C, SPY_DIR_H2D, 450, 700); /* behind its like */
	expect(C, 0, 0, 0);
	copies(A, SPY_DIR_D2H, 600, 800); /* C's until 700 */
	expect(A, 1, 200, 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_two),    TEST(test_what_is_done),
		TEST(test_beside), TEST(test_part_of_a_turn),
		TEST(test_copies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
