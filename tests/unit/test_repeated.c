/*
 * tests/unit/test_repeated.c: what a part of a recording begins with: of each thing what was said of it last, once; nothing that
 * is no more.
 */
/* links: shim/record/repeated.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "process/heap.h"
#include "record/part.h"
#include "state/session.h"

struct spy_session *spy_session;

static size_t taken;
static bool full;

void *spy_heap_take(size_t bytes)
{
	void *memory = full ? NULL : calloc(1, bytes);

	taken += memory ? bytes : 0;
	return memory;
}

void spy_heap_give(void *memory, size_t bytes)
{
	taken -= memory ? bytes : 0;
	free(memory);
}

/* ---- what is told ---- */

static char told[4000];

#define TELL(...) sprintf(told + strlen(told), __VA_ARGS__)

static void *tell(const void *record, size_t bytes)
{
	const struct spy_rec_other *head = record;
	const struct spy_rec_module *module = record;
	const struct spy_rec_nvtx_name *name = record;
	const struct spy_rec_note *note = record;
	const struct spy_rec_nccl_comm *comm = record;

	assert_true(bytes > sizeof(*head));
	if (head->event == SPY_EV_MODULE)
		TELL("module %llx-%llx ", (unsigned long long)module->begin,
		     (unsigned long long)module->end);
	else if (head->event == SPY_EV_NVTX_NAME)
		TELL("name %u %llx %s ", name->what, (unsigned long long)name->object, name->text);
	else if (head->event == SPY_EV_NOTE)
		TELL("note %u %s ", note->note, note->text);
	else
		TELL("comm %u rank %u ", comm->comm, comm->rank);
	return NULL;
}

static void expect(const char *text)
{
	told[0] = '\0';
	spy_repeated_each(tell);
	assert_string_equal(told, text);
}

static void module(uint64_t begin, uint64_t end, bool gone)
{
	struct spy_rec_module record = {
		.head.event = SPY_EV_MODULE, .begin = begin, .end = end, .gone = gone};

	spy_repeated_add(&record.head, sizeof(record));
}

/* With one letter behind it. */
static void name(uint8_t what, uint64_t object, char letter)
{
	struct {
		struct spy_rec_nvtx_name record;
		char text[2];
	} all = {{.head.event = SPY_EV_NVTX_NAME, .what = what, .object = object}, {letter, '\0'}};

	spy_repeated_add(&all.record.head, sizeof(all));
}

static void note(uint32_t number, char letter)
{
	struct {
		struct spy_rec_note record;
		char text[2];
	} all = {{.head.event = SPY_EV_NOTE, .note = number}, {letter, '\0'}};

	spy_repeated_add(&all.record.head, sizeof(all));
}

static void comm(uint32_t number, uint32_t rank)
{
	struct spy_rec_nccl_comm record = {
		.head.event = SPY_EV_NCCL_COMM, .comm = number, .rank = rank};

	spy_repeated_add(&record.head, sizeof(record));
}

/* ---- tests ---- */

static int setup(void **state)
{
	(void)state;
	spy_session = calloc(1, sizeof(*spy_session));
	taken = 0;
	full = false;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(spy_session);
	return 0;
}

static void test_modules(void **state)
{
	(void)state;
	module(0x1000, 0x2000, false);
	module(0x5000, 0x6000, false);
	expect("module 1000-2000 module 5000-6000 ");
	module(0x1000, 0x2000, true);
	expect("module 5000-6000 ");
	module(0x1000, 0x4000, false); /* another one in its place */
	module(0x5000, 0x7000, false);
	expect("module 1000-4000 module 5000-7000 ");
	module(0x1000, 0x4000, true);
	module(0x5000, 0x7000, true);
	module(0x8000, 0x9000, true); /* was never told of */
	expect("");
}

/* Of all that are told apart by more than a number. */
static void test_several(void **state)
{
	(void)state;
	name(1, 0x10, 'a');
	name(1, 0x20, 'b');
	name(2, 0x10, 'c');
	note(3, 'x');
	note(3, 'y');
	note(4, 'x');
	comm(1, 0);
	comm(2, 1);
	expect("name 1 10 a name 1 20 b name 2 10 c note 3 x note 3 y note 4 x comm 1 rank 0 "
	       "comm 2 rank 1 ");
	name(1, 0x20, 'd');
	note(3, 'x');
	comm(1, 5);
	expect("name 1 10 a name 2 10 c note 3 y note 4 x comm 2 rank 1 name 1 20 d note 3 x "
	       "comm 1 rank 5 ");
}

/* What is about a moment is not kept; what there is no room for is missing, and nothing else. */
static void test_no_room(void **state)
{
	struct spy_rec_other moment = {.event = SPY_EV_CLOCK};
	size_t before;

	(void)state;
	spy_repeated_add(&moment, sizeof(moment));
	expect("");
	comm(1, 0);
	comm(2, 0);
	before = taken;
	full = true;
	comm(3, 0);
	comm(1, 9);
	expect("comm 2 rank 0 ");
	assert_true(taken < before);
	full = false;
	comm(3, 1);
	expect("comm 2 rank 0 comm 3 rank 1 ");
	assert_int_equal(taken, before);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(test_modules), TEST(test_several),
					   TEST(test_no_room)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
