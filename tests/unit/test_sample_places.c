/* links: shim/sample/places.c */
/*
 * tests/unit/test_sample_places.c: places in the program get numbers, and records where a reader may not know them: once in
 * each part, or in each packet; more places and functions than the tables have; room for a sample and its place in one packet.
 */
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "process/options.h"
#include "sample/places.h"
#include "stack/stack.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

/* ---- the rest of the shim ---- */

static struct spy_places *places;
static bool keeps_packets, no_slot, unreadable;
static bool does_not_grow;
static int n_packets, packets_left, n_codes;
static uint32_t recorded_codes; /* the trace has those up to this number */

bool spy_options_keeps_packets(void)
{
	return keeps_packets;
}

struct spy_thread *spy_thread_take(enum spy_stream_kind kind)
{
	assert_int_equal(kind, SPY_STREAM_SAMPLES);
	return no_slot ? NULL : &thread;
}

bool spy_thread_next_packet(struct spy_thread *of)
{
	if (!packets_left)
		return false;
	packets_left--;
	n_packets++;
	use_packet(of, 0);
	of->packet->seq = (uint64_t)n_packets;
	if (does_not_grow)
		of->head = of->full_at - 1;
	return true;
}

bool spy_python_read(const struct spy_python_walk *walk, const struct spy_python_frame *frame,
		     struct spy_python_place *place)
{
	assert_int_equal(walk->pid, session.pid);
	*place = (struct spy_python_place){.first_line = frame->first_line,
					   .line = 1000 + (uint32_t)frame->at};
	return !unreadable;
}

uint32_t spy_stack_code(struct spy_thread *of, const struct spy_python_place *place,
			uint64_t at_time)
{
	assert_ptr_equal(of, &thread);
	assert_int_equal(at_time, now);
	n_codes++;
	return place->first_line;
}

bool spy_stack_code_is_recorded(const struct spy_thread *stream, uint32_t number)
{
	assert_ptr_equal(stream, &thread);
	return number <= recorded_codes;
}

static int begin(void **state)
{
	(void)state;
	begin_session();
	free(places);
	places = calloc(1, sizeof(*places));
	keeps_packets = no_slot = unreadable = false;
	n_packets = n_codes = 0;
	packets_left = 100;
	recorded_codes = 1000;
	thread.packet = NULL;
	thread.head = NULL;
	thread.file.part = 1;
	spy_thread_lose_room(&thread);
	assert_true(spy_places_ready(places));
	return 0;
}

static const struct spy_rec_place *next_place(size_t words)
{
	return next_record(&thread, SPY_EV_PLACE, sizeof(struct spy_rec_place) + 8 * words);
}

/* ---- room ---- */

static void test_room(void **state)
{
	struct spy_places *empty_places = calloc(1, sizeof(*places));

	(void)state;
	assert_int_equal(n_packets, 1);
	assert_ptr_equal(places->stream, &thread);
	assert_true(spy_places_ready(places)); /* there is room */
	assert_int_equal(n_packets, 1);
	/* Called back, for another part has begun: not in the one before. */
	spy_thread_call_back(&thread);
	assert_true(spy_places_ready(places));
	assert_int_equal(n_packets, 2);
	thread.head = thread.full_at - 1;
	assert_true(spy_places_ready(places));
	assert_int_equal(n_packets, 3);
	packets_left = 0;
	thread.head = thread.full_at - 1;
	assert_false(spy_places_ready(places));
	no_slot = true;
	assert_false(spy_places_ready(empty_places));
	assert_null(empty_places->stream);
	no_slot = false;
	free(empty_places);
}

/* A tail grows by and by: a few steps, and no more. */
static void test_growing_tail(void **state)
{
	(void)state;
	packets_left = 100;
	thread.file.room = 0;
	for (size_t bytes = 1; bytes < 20000; bytes *= 2) {
		thread.head = thread.full_at - bytes;
		assert_true(spy_places_ready(places));
		assert_true((size_t)(thread.full_at - thread.head) >
			    2 * (SPY_PYTHON_FILE + SPY_PYTHON_FUNCTION) + 8 * SPY_PLACE_MOST);
	}
	thread.head = thread.full_at - 1;
	n_packets = 0;
	does_not_grow = true;
	assert_false(spy_places_ready(places));
	assert_int_equal(n_packets, 8);
	does_not_grow = false;
}

/* ---- places ---- */

static void test_numbers(void **state)
{
	struct spy_frames one = {.count = 2, .words = {0x1000, 0x2000}}, two = one, three = one,
			  none = {0};
	const struct spy_rec_place *record;
	uint32_t numbers[3];

	(void)state;
	two.words[1]++;
	three.python = 1; /* the same words, and something else */
	numbers[0] = spy_place_number(places, &one);
	record = next_place(2);
	assert_int_equal(record->head.time, now);
	assert_int_equal(record->place, numbers[0]);
	assert_int_equal(record->count, 2);
	assert_int_equal(record->python, 0);
	assert_int_equal(record->words[0], 0x1000);
	assert_int_equal(record->words[1], 0x2000);
	numbers[1] = spy_place_number(places, &two);
	assert_int_equal(next_place(2)->words[1], 0x2001);
	numbers[2] = spy_place_number(places, &three);
	assert_int_equal(next_place(2)->python, 1);
	assert_true(numbers[0] && numbers[1] && numbers[2]);
	assert_true(numbers[0] != numbers[1] && numbers[1] != numbers[2] &&
		    numbers[0] != numbers[2]);
	/* Known, and recorded: nothing is written. */
	assert_int_equal(spy_place_number(places, &one), numbers[0]);
	assert_int_equal(spy_place_number(places, &none), 0);
	no_record(&thread);
	/* In another part: once more. */
	thread.file.part = 2;
	assert_int_equal(spy_place_number(places, &one), numbers[0]);
	assert_int_equal(next_place(2)->place, numbers[0]);
	spy_place_number(places, &one);
	no_record(&thread);
}

/* With a bound: in each packet. */
static void test_numbers_bounded(void **state)
{
	struct spy_frames one = {.count = 1, .words = {0x1000}};
	uint32_t number;

	keeps_packets = true;
	free(places);
	places = calloc(1, sizeof(*places));
	(void)state;
	assert_true(spy_places_ready(places));
	number = spy_place_number(places, &one);
	next_place(1);
	thread.file.part = 2;
	spy_place_number(places, &one);
	no_record(&thread);
	spy_thread_next_packet(&thread);
	assert_int_equal(spy_place_number(places, &one), number);
	next_place(1);
	no_record(&thread);
}

/* More than there are places for: those have a record for each sample, and no number; the others keep theirs. */
static void test_many_places(void **state)
{
	static uint32_t numbers[2 * SPY_PLACES];
	static bool used[SPY_PLACES + 1];
	int without = 0;

	(void)state;
	for (uint64_t i = 0; i < 2 * SPY_PLACES; i++) {
		spy_thread_next_packet(&thread);
		packets_left = 100;
		numbers[i] = spy_place_number(
			places, &(struct spy_frames){.count = 1, .words = {0x400000 + 16 * i}});
		assert_int_equal(next_place(1)->place, numbers[i]);
		assert_true(numbers[i] <= SPY_PLACES);
		assert_false(numbers[i] && used[numbers[i]]);
		used[numbers[i]] = true;
		without += !numbers[i];
	}
	assert_in_range(without, SPY_PLACES, SPY_PLACES + SPY_PLACES / 4);
	for (uint64_t i = 0; i < 2 * SPY_PLACES; i++) {
		spy_thread_next_packet(&thread);
		packets_left = 100;
		assert_int_equal(spy_place_number(places, &(struct spy_frames){.count = 1,
									       .words = {0x400000 +
											 16 * i}}),
				 numbers[i]);
		if (!numbers[i])
			next_place(1);
		no_record(&thread);
	}
}

/* ---- functions of Python's ---- */

static void test_python(void **state)
{
	struct spy_python python = {.minor = 12};
	struct spy_python_frame frames[SPY_PLACE_MOST + 2];
	struct spy_frames place = {.count = 1, .words = {77}};
	uint64_t word;

	(void)state;
	for (size_t i = 0; i < SPY_PLACE_MOST + 2; i++)
		frames[i] = (struct spy_python_frame){
			.file = 1, .function = 2, .lines = 3, .first_line = 5, .at = (int32_t)i};
	word = spy_place_word(places, &python, &frames[4]);
	assert_int_equal(word, 5ull << 32 | 1004);
	assert_int_equal(n_codes, 1);
	assert_int_equal(spy_place_word(places, &python, &frames[4]), word);
	assert_int_equal(n_codes, 1); /* both are known */
	assert_int_equal(spy_place_word(places, &python, &frames[6]), 5ull << 32 | 1006);
	assert_int_equal(n_codes, 2); /* another line of it */
	/* Another function, by each of its objects. */
	for (int i = 0; i < 4; i++) {
		struct spy_python_frame other = frames[4];

		other.file += i == 0;
		other.function += i == 1;
		other.lines += i == 2;
		other.first_line += i == 3;
		spy_place_word(places, &python, &other);
		assert_int_equal(n_codes, 3 + i);
	}
	/* Its record is deleted: it is told again. */
	recorded_codes = 4;
	assert_int_equal(spy_place_word(places, &python, &frames[4]), word);
	assert_int_equal(n_codes, 7);
	recorded_codes = 1000;
	/* It cannot be read, or there is no room for what it would need. */
	unreadable = true;
	frames[7].file = 9;
	assert_int_equal(spy_place_word(places, &python, &frames[7]), 0);
	unreadable = false;
	thread.head = thread.full_at - 100;
	assert_int_equal(spy_place_word(places, &python, &frames[7]), 0);
	assert_int_equal(n_codes, 7);
	spy_thread_next_packet(&thread);
	/* As many frames as a place has. */
	spy_place_add_python(places, &python, frames, 3, &place);
	assert_int_equal(place.count, 4);
	assert_int_equal(place.python, 3);
	assert_int_equal(place.words[0], 77);
	assert_int_equal(place.words[1], 5ull << 32 | 1000);
	assert_int_equal(place.words[3], 5ull << 32 | 1002);
	place = (struct spy_frames){0};
	spy_place_add_python(places, &python, frames, SPY_PLACE_MOST + 2, &place);
	assert_int_equal(place.count, SPY_PLACE_MOST);
	assert_int_equal(place.python, SPY_PLACE_MOST);
}

/* More functions than are remembered: what gives way is told again, and right. */
static void test_many_functions(void **state)
{
	struct spy_python python = {.minor = 12};

	(void)state;
	recorded_codes = UINT32_MAX;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 1; i < 3 * SPY_PLACES_CODES; i++) {
			struct spy_python_frame frame = {
				.file = 16 * i, .first_line = i, .at = (int32_t)i};

			assert_int_equal(spy_place_word(places, &python, &frame),
					 (uint64_t)i << 32 | (1000 + i));
		}
	assert_true(n_codes > 3 * SPY_PLACES_CODES);
}

/* ---- names of threads ---- */

static void test_thread_names(void **state)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	const struct spy_rec_non_cuda_thread *record;

	(void)state;
	prctl(PR_SET_NAME, "a sampled one");
	spy_place_name_thread(places, tid);
	record = next_record(&thread, SPY_EV_NON_CUDA_THREAD, sizeof(*record));
	assert_int_equal(record->tid, tid);
	assert_int_equal(record->head.time, now);
	assert_string_equal(record->name, "a sampled one");
	spy_place_name_thread(places, tid); /* once */
	spy_place_name_thread(places, 0); /* there is none */
	no_record(&thread);
	/* The table is a ring. */
	for (uint32_t i = 1; i <= SPY_PLACES_NAMED; i++)
		places->named[places->n_named++ % SPY_PLACES_NAMED] = 5000000 + i;
	spy_place_name_thread(places, tid);
	next_record(&thread, SPY_EV_NON_CUDA_THREAD, sizeof(*record));
	/* With a bound the packet that said it may be deleted. */
	places->bounded = true;
	spy_place_name_thread(places, tid);
	next_record(&thread, SPY_EV_NON_CUDA_THREAD, sizeof(*record));
	no_record(&thread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_room, begin),
		cmocka_unit_test_setup(test_growing_tail, begin),
		cmocka_unit_test_setup(test_numbers, begin),
		cmocka_unit_test_setup(test_numbers_bounded, begin),
		cmocka_unit_test_setup(test_many_places, begin),
		cmocka_unit_test_setup(test_python, begin),
		cmocka_unit_test_setup(test_many_functions, begin),
		cmocka_unit_test_setup(test_thread_names, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
