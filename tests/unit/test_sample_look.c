/* links: shim/sample/look.c shim/sample/ask.c shim/sample/places.c */
/*
 * tests/unit/test_sample_look.c: looks at threads that really sleep and run, with a made-up interpreter and made-up stacks:
 * what state and place a sample has, when one that stands still is written again, whose weight it is, and when there is none.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "process/options.h"
#include "sample/in_c.h"
#include "sample/look.h"
#include "sample/places.h"
#include "stack/stack.h"
#include "stack/unwind.h"
#include "state/libraries.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

/* ---- the rest of the shim ---- */

static struct spy_places *places;
static struct spy_looked looked;
static struct spy_thread stream; /* of samples; the thread that is looked at is `thread` */
static struct spy_slot_page looked_page;
static struct spy_python python;
static struct spy_python_activity activity;
static size_t n_frames, n_holder_frames;
static bool has_python, cut, no_libraries;
static int held; /* libraries */
static uintptr_t asked_state;
static int in_c, n_ended;
static struct spy_unwind unwound_from;
static void (*meanwhile)(void);
static struct {
	bool was;
	uint64_t ns, function;
	size_t n;
} interruption;
static uint64_t asked_since;

bool spy_options_keeps_packets(void)
{
	return false;
}

struct spy_thread *spy_thread_take(enum spy_stream_kind kind)
{
	(void)kind;
	return &stream;
}

bool spy_thread_next_packet(struct spy_thread *of)
{
	use_packet(of, 1);
	return true;
}

bool spy_libraries_hold(void)
{
	held += !no_libraries;
	return !no_libraries;
}

void spy_libraries_release(void)
{
	held--;
}

const struct spy_python *spy_python_here(void)
{
	return has_python ? &python : NULL;
}

size_t spy_python_look_at(const struct spy_python *with, struct spy_python_guess *guess, void *room,
			  uintptr_t state, uintptr_t handle, struct spy_python_frame *frames,
			  bool *is_cut)
{
	size_t n = state == 0x5000 ? n_holder_frames : n_frames;

	assert_ptr_equal(with, &python);
	assert_true(held > 0);
	(void)guess;
	(void)room;
	assert_int_equal(handle, state == 0x5000 ? 0x5001 : thread.handle);
	asked_state = state;
	for (size_t i = 0; i < n; i++)
		frames[i] = (struct spy_python_frame){
			.file = 1, .function = state, .first_line = 7, .at = (int32_t)i};
	*is_cut = cut;
	return n;
}

uint64_t spy_overhead_begin(void)
{
	return 0;
}

void spy_overhead_end(struct spy_thread *of, uint64_t begun)
{
	(void)of;
	(void)begun;
}

/* What the thread copies itself. */
bool spy_python_copy_own(const struct spy_python *with, uintptr_t state, uintptr_t handle,
			 struct spy_python_copy *copy)
{
	(void)with;
	assert_int_equal(state, thread.python_state);
	assert_int_equal(handle, thread.handle);
	copy->top = 0x7700;
	return true;
}

size_t spy_python_look_at_copy(const struct spy_python *with, void *room,
			       const struct spy_python_copy *copy, struct spy_python_frame *frames)
{
	(void)with;
	(void)room;
	assert_int_equal(copy->top, 0x7700);
	frames[0] = (struct spy_python_frame){
		.file = 1, .function = copy->top, .first_line = 9, .at = 50};
	return 1;
}

bool spy_python_activity(const struct spy_python *with, uintptr_t state,
			 struct spy_python_activity *is)
{
	(void)with;
	assert_int_equal(state, thread.python_state);
	*is = activity;
	return true;
}

bool spy_python_read(const struct spy_python_walk *walk, const struct spy_python_frame *frame,
		     struct spy_python_place *place)
{
	(void)walk;
	*place = (struct spy_python_place){.first_line = frame->first_line,
					   .line = 100 + (uint32_t)frame->at};
	return true;
}

uint32_t spy_stack_code(struct spy_thread *of, const struct spy_python_place *place,
			uint64_t at_time)
{
	(void)of;
	(void)at_time;
	return place->first_line;
}

bool spy_stack_code_is_recorded(const struct spy_thread *of, uint32_t number)
{
	(void)of;
	return number;
}

void spy_place_add_c(struct spy_places *of, const struct spy_python *with,
		     const struct spy_python_frame *innermost,
		     const struct spy_interrupted *at_place, struct spy_frames *place)
{
	(void)of;
	(void)with;
	(void)at_place;
	assert_int_equal(innermost->at, 0);
	assert_true(place->count > 0);
	in_c++;
}

size_t spy_unwind(const struct spy_unwind *start, uint64_t *frames, size_t most)
{
	void (*others)(void) = meanwhile;

	unwound_from = *start;
	assert_true(most >= 2);
	frames[0] = 0x1111;
	frames[1] = 0x2222;
	meanwhile = NULL;
	if (others)
		others();
	return 2;
}

bool spy_running_look(struct spy_running *running, uint32_t tid, uint64_t since_ns, uint64_t *ns,
		      struct spy_interrupted *at_place)
{
	(void)running;
	assert_int_equal(tid, looked.tid);
	asked_since = since_ns;
	*ns = interruption.ns;
	*at_place = (struct spy_interrupted){0};
	return interruption.was;
}

size_t spy_running_walk(const struct spy_interrupted *at_place, uint64_t *frames, size_t most,
			uint64_t *function)
{
	(void)at_place;
	assert_true(interruption.n <= most);
	for (size_t i = 0; i < interruption.n; i++)
		frames[i] = 0x9000 + i;
	*function = interruption.function;
	return interruption.n;
}

void spy_running_end(struct spy_running *running)
{
	(void)running;
	n_ended++;
}

/* ---- a thread of the program's ---- */

static _Atomic uint32_t sleeper_tid, word;
static _Atomic bool runs;

static void *sleep_or_run(void *data)
{
	(void)data;
	sleeper_tid = (uint32_t)syscall(SYS_gettid);
	while (runs)
		;
	while (!word)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return NULL;
}

static pthread_t sleeper;

static bool is_asleep(void)
{
	char path[64], text[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%u/syscall", sleeper_tid);
	file = fopen(path, "r");
	if (!file || !fgets(text, sizeof(text), file))
		text[0] = '\0';
	if (file)
		fclose(file);
	return strtol(text, NULL, 10) == SYS_futex;
}

static void start(bool running)
{
	sleeper_tid = word = 0;
	runs = running;
	pthread_create(&sleeper, NULL, sleep_or_run, NULL);
	while (!sleeper_tid || (!running && !is_asleep()))
		usleep(100);
	looked_page.tid = thread.tid = sleeper_tid;
}

static int begin(void **state)
{
	(void)state;
	begin_session();
	free(places);
	places = calloc(1, sizeof(*places));
	memset(&looked, 0, sizeof(looked));
	memset(&stream, 0, sizeof(stream));
	memset(&looked_page, 0, sizeof(looked_page));
	stream.file.part = 1;
	thread.page = &looked_page;
	looked_page.calls = 5;
	thread.handle = 0x4001;
	activity = (struct spy_python_activity){0};
	n_frames = n_holder_frames = 0;
	has_python = cut = no_libraries = false;
	held = in_c = n_ended = 0;
	meanwhile = NULL;
	memset(&interruption, 0, sizeof(interruption));
	return 0;
}

static int end(void **state)
{
	(void)state;
	runs = false;
	word = 1;
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	pthread_join(sleeper, NULL);
	assert_int_equal(held, 0);
	return 0;
}

static const struct spy_rec_sample *next_sample(uint16_t state, uint32_t weight)
{
	const struct spy_rec_sample *record = next_record(&stream, SPY_EV_SAMPLE, sizeof(*record));

	assert_int_equal(record->head.time, now);
	assert_int_equal(record->state, state);
	assert_int_equal(record->weight, weight);
	return record;
}

static const struct spy_rec_place *next_place(uint8_t of_python, uint8_t count)
{
	const struct spy_rec_place *record =
		next_record(&stream, SPY_EV_PLACE, sizeof(*record) + 8 * (size_t)count);

	assert_int_equal(record->python, of_python);
	assert_int_equal(record->count, count);
	return record;
}

/* ---- threads that sleep ---- */

static void test_blocked(void **state)
{
	const struct spy_rec_sample *record;
	uint32_t place;

	(void)state;
	start(false);
	spy_look(places, &looked, &thread, 10000);
	assert_true(unwound_from.ip && unwound_from.sp);
	place = next_place(0, 2)->place;
	record = next_sample(SPY_SAMPLE_BLOCKED, 10000);
	assert_int_equal(record->tid, sleeper_tid);
	assert_int_equal(record->place, place);
	assert_int_equal(record->holder, 0);
	assert_int_equal(record->ago, 0);
	no_record(&stream);
	/* It stands still: its weight is summed up, and written twice a second. */
	for (int i = 0; i < 49; i++) {
		now += 10 * MS;
		spy_look(places, &looked, &thread, 10000);
	}
	no_record(&stream);
	now += 10 * MS;
	spy_look(places, &looked, &thread, 20000);
	record = next_sample(SPY_SAMPLE_BLOCKED, 510000);
	assert_int_equal(record->place, place);
	no_record(&stream);
	/* It has gone on: what is left comes first, as of when it was seen last. */
	now += 10 * MS;
	spy_look(places, &looked, &thread, 7000);
	now += 3 * MS;
	looked_page.calls++;
	spy_look(places, &looked, &thread, 8000);
	record = next_sample(SPY_SAMPLE_BLOCKED, 7000);
	assert_int_equal(record->ago, 3 * MS);
	record = next_sample(SPY_SAMPLE_BLOCKED, 8000);
	assert_int_equal(record->place, place); /* its record is there */
	no_record(&stream);
	/* Inside a call nothing is looked at. */
	now += 1 * MS;
	spy_look(places, &looked, &thread, 500);
	looked_page.depth = 1;
	spy_look(places, &looked, &thread, 600);
	next_sample(SPY_SAMPLE_BLOCKED, 500);
	spy_look(places, &looked, &thread, 700);
	no_record(&stream);
	looked_page.depth = 0;
	looked_page.asleep = 1;
	spy_look(places, &looked, &thread, 700);
	looked_page.asleep = 0;
	looked_page.calls = 0; /* before its first call */
	spy_look(places, &looked, &thread, 700);
	looked_page.calls = 5;
	looked_page.tid = 0; /* the slot is free */
	spy_look(places, &looked, &thread, 700);
	looked_page.tid = 5000000; /* it has gone */
	spy_look(places, &looked, &thread, 700);
	no_record(&stream);
	assert_int_equal(n_ended, 2); /* that of the one before is over */
}

static void call_meanwhile(void)
{
	looked_page.calls++;
}

/* It made a call while it was looked at: what was seen may be of two times. */
static void test_calls_meanwhile(void **state)
{
	(void)state;
	start(false);
	meanwhile = call_meanwhile;
	spy_look(places, &looked, &thread, 10000);
	no_record(&stream);
	spy_look(places, &looked, &thread, 10000);
	next_place(0, 2);
	next_sample(SPY_SAMPLE_BLOCKED, 10000);
	/* While a library is unloaded no stack is read. */
	looked_page.calls++;
	no_libraries = true;
	spy_look(places, &looked, &thread, 10000);
	assert_int_equal(next_sample(SPY_SAMPLE_BLOCKED, 10000)->place, 0);
	no_record(&stream);
}

/* ---- Python ---- */

/* The call that comes meanwhile is one that says where the thread was. */
static void answer_meanwhile(void)
{
	looked_page.calls++;
	spy_question_answer(places->questions, &thread, now);
}

/* It has moved on: the answer is the sample, as of when it was asked. */
static void test_asked(void **state)
{
	const struct spy_rec_sample *record;

	(void)state;
	start(false);
	has_python = true;
	n_frames = 3;
	thread.python_state = 0x4000;
	thread.left_at = now;
	meanwhile = answer_meanwhile;
	spy_look(places, &looked, &thread, 10);
	assert_int_equal(next_place(1, 1)->words[0], 9ull << 32 | 150);
	next_sample(SPY_SAMPLE_RAN, 10);
	no_record(&stream);
	/* It says so when the look is over: the next one finds the answer, before its own sample. */
	meanwhile = call_meanwhile;
	spy_look(places, &looked, &thread, 20);
	no_record(&stream);
	spy_question_answer(places->questions, &thread, now);
	now += 10 * MS;
	spy_look(places, &looked, &thread, 30);
	record = next_sample(SPY_SAMPLE_RAN, 20);
	assert_int_equal(record->ago, 10 * MS);
	next_place(3, 5);
	next_sample(SPY_SAMPLE_BLOCKED, 30);
	no_record(&stream);
	/* It had made another call by the time it saw the question. */
	looked_page.calls++;
	meanwhile = call_meanwhile;
	spy_look(places, &looked, &thread, 40);
	thread.left_at = now + 1;
	spy_question_answer(places->questions, &thread, now + 2);
	looked_page.calls++;
	spy_look(places, &looked, &thread, 50);
	next_sample(SPY_SAMPLE_BLOCKED, 50);
	no_record(&stream);
	thread.left_at = 0;
}

static void test_python(void **state)
{
	const struct spy_rec_place *place;

	(void)state;
	start(false);
	has_python = true;
	n_frames = 3;
	spy_look(places, &looked, &thread, 10); /* it has never been in the interpreter */
	next_place(0, 2);
	next_sample(SPY_SAMPLE_BLOCKED, 10);
	looked_page.calls++;
	thread.python_state = 0x4000;
	spy_look(places, &looked, &thread, 10);
	assert_int_equal(asked_state, 0x4000);
	place = next_place(3, 5);
	assert_int_equal(place->words[0], 7ull << 32 | 100);
	assert_int_equal(place->words[2], 7ull << 32 | 102);
	assert_int_equal(place->words[3], 0x1111);
	next_sample(SPY_SAMPLE_BLOCKED, 10);
	looked_page.calls++;
	cut = true;
	activity = (struct spy_python_activity){.collects = true, .holder = 0x4000};
	spy_look(places, &looked, &thread, 10);
	next_sample(SPY_SAMPLE_BLOCKED | SPY_SAMPLE_CUT | SPY_SAMPLE_GC, 10);
	looked_page.calls++;
	cut = false;
	activity.holder = 0x5000; /* another one collects */
	spy_look(places, &looked, &thread, 10);
	next_sample(SPY_SAMPLE_BLOCKED, 10);
	no_record(&stream);
}

/* It waits for the interpreter's lock: where the one is that has it is said, too, and first. */
static void test_gil(void **state)
{
	const uint32_t tid = (uint32_t)syscall(SYS_gettid);
	const struct spy_rec_sample *record;

	(void)state;
	start(false);
	has_python = true;
	thread.python_state = 0x4000;
	n_frames = 1;
	n_holder_frames = 2;
	activity = (struct spy_python_activity){
		.holder = 0x5000, .holder_tid = tid, .holder_handle = 0x5001};
	for (int i = 0; i < 4; i++) { /* no lock is known; beside it on either side; in it */
		looked_page.calls++;
		activity.gil = i == 0 ? 0
				      : (uintptr_t)&word + (i == 1) -
						(i == 2   ? SPY_PYTHON_GIL_BYTES
						 : i == 3 ? SPY_PYTHON_GIL_BYTES - 1
							  : 0);
		spy_look(places, &looked, &thread, 10);
		if (i == 0)
			next_place(1, 3);
		if (i < 3) {
			assert_int_equal(next_sample(SPY_SAMPLE_BLOCKED, 10)->holder, 0);
			continue;
		}
		next_record(&stream, SPY_EV_NON_CUDA_THREAD,
			    sizeof(struct spy_rec_non_cuda_thread));
		next_place(2, 2);
		record = next_sample(SPY_SAMPLE_HOLDER, 1);
		assert_int_equal(record->tid, tid);
		assert_int_equal(record->holder, 0);
		record = next_sample(SPY_SAMPLE_BLOCKED | SPY_SAMPLE_GIL, 10);
		assert_int_equal(record->holder, tid);
		assert_int_equal(record->tid, sleeper_tid);
	}
	/* Nobody has it, as far as is known; or where is not known. */
	looked_page.calls++;
	activity.holder = 0;
	spy_look(places, &looked, &thread, 10);
	assert_int_equal(next_sample(SPY_SAMPLE_BLOCKED | SPY_SAMPLE_GIL, 10)->holder, 0);
	looked_page.calls++;
	activity.holder = 0x5000;
	n_holder_frames = 0;
	spy_look(places, &looked, &thread, 10);
	assert_int_equal(next_sample(SPY_SAMPLE_BLOCKED | SPY_SAMPLE_GIL, 10)->holder, tid);
	no_record(&stream);
}

/* ---- threads that run ---- */

/* Looks until it found the thread on a CPU: on a busy machine it may have none for a while. */
static const struct spy_rec_sample *look_at_running(void)
{
	const struct spy_rec_sample *record;

	do {
		spy_thread_next_packet(&stream);
		looked_page.calls++;
		memset(places->places, 0, sizeof(places->places));
		spy_look(places, &looked, &thread, 10);
		record = (const struct spy_rec_sample *)(stream.head - sizeof(*record));
		usleep(1000);
	} while (!(record->state & SPY_SAMPLE_RAN));
	return record;
}

static void test_running(void **state)
{
	const struct spy_rec_sample *record;

	(void)state;
	start(true);
	record = look_at_running();
	assert_int_equal(record->state, SPY_SAMPLE_RAN);
	assert_int_equal(record->place, 0);
	/* Where the kernel interrupted it last, and when that was. */
	interruption.was = true;
	interruption.n = 2;
	interruption.ns = now - 40000;
	record = look_at_running();
	assert_int_equal(record->ago, 40000);
	assert_int_equal(next_place(0, 2)->words[1], 0x9001);
	assert_int_equal(asked_since, now); /* of the look before */
	interruption.function = 0x8888;
	look_at_running();
	assert_int_equal(next_place(SPY_PLACE_FUNCTION, 3)->words[2], 0x8888);
	interruption.ns = now + 1; /* that makes no sense */
	assert_int_equal(look_at_running()->place, 0);
	/* In Python: what its innermost frame called, unless that may be another one by then. */
	interruption.ns = now;
	has_python = true;
	thread.python_state = 0x4000;
	n_frames = 1;
	look_at_running();
	assert_true(in_c > 0);
	in_c = 0;
	cut = true;
	assert_int_equal(look_at_running()->state, SPY_SAMPLE_RAN | SPY_SAMPLE_CUT);
	assert_int_equal(in_c, 0);
	/* One that runs is looked at again and again. */
	assert_int_equal(looked.cpu_ns, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_blocked), TEST(test_calls_meanwhile), TEST(test_asked), TEST(test_python),
		TEST(test_gil),     TEST(test_running),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
