/* links: shim/process/heap.c shim/record/notes.c shim/record/kernel_names.c shim/lib/lock.c */
/*
 * tests/unit/test_session_tables.c: the recorder's own memory, up to its bound; notes, each once, and kernels' names, up to
 * as many as are told apart: what is written of them, and what the board says of those that are not.
 */
#include <stdio.h>
#include <stdlib.h>
#include "process/heap.h"
#include "process/own_stack.h"
#include "record/kernel_names.h"
#include "record/notes.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

#define CHUNK (64 << 10) /* heap.c */
#define NOTES_MOST 4096
#define EARLY_MOST 32
#define EARLY_TEXT 255
#define KERNELS_MOST 65535

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	work(data);
}

static int begin(void **state)
{
	(void)state;
	begin_session();
	return 0;
}

/* ---- memory ---- */

static bool is_zero(const char *memory, size_t bytes)
{
	while (bytes && !memory[bytes - 1])
		bytes--;
	return !bytes;
}

/* In sizes of powers of two, 32 bytes at least; what the board says they are together. */
static void test_sizes(void **state)
{
	static const struct {
		size_t bytes, takes;
	} cases[] = {{1, 32},
		     {32, 32},
		     {33, 64},
		     {64, 64},
		     {65, 128},
		     {CHUNK / 2, CHUNK / 2},
		     {CHUNK / 2 + 1, CHUNK},
		     {CHUNK * 4 + 1, CHUNK * 8}};
	uint64_t used = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *piece = spy_heap_take(cases[i].bytes), *again;

		used += cases[i].takes;
		assert_int_equal(board.heap, used);
		assert_true(is_zero(piece, cases[i].bytes));
		assert_int_equal((uintptr_t)piece % 32, 0);
		/* The next of its size gets it, as zeros; one of another size does not. */
		memset(piece, 'x', cases[i].bytes);
		spy_heap_give(piece, cases[i].bytes);
		assert_int_equal(board.heap, used - cases[i].takes);
		assert_ptr_not_equal(spy_heap_take(2 * cases[i].takes), piece);
		again = spy_heap_take(cases[i].bytes);
		assert_ptr_equal(again, piece);
		assert_true(is_zero(again, cases[i].bytes));
		assert_ptr_not_equal(spy_heap_take(cases[i].bytes), piece);
		used += 3 * cases[i].takes;
		assert_int_equal(board.heap, used);
	}
	spy_heap_give(NULL, 100);
	assert_int_equal(board.heap, used);
}

/* Pieces lie beside each other, to the end of a chunk and on in the next. */
static void test_pieces(void **state)
{
	static char *pieces[3000];

	(void)state;
	for (int i = 0; i < 3000; i++) {
		size_t bytes = (size_t)32 << i % 3;

		pieces[i] = spy_heap_take(bytes);
		memset(pieces[i], 'a' + i % 26, bytes);
	}
	for (int i = 0; i < 3000; i++)
		for (size_t k = 0; k < (size_t)32 << i % 3; k++)
			assert_int_equal(pieces[i][k], 'a' + i % 26);
}

static void test_bound(void **state)
{
	void *last = NULL;

	(void)state;
	assert_null(spy_heap_take(SPY_HEAP_MOST + 1));
	assert_null(spy_heap_take(SIZE_MAX / 2));
	for (size_t used = 0; used < SPY_HEAP_MOST; used += 1 << 20) {
		last = spy_heap_take(1 << 20);
		assert_non_null(last);
	}
	assert_int_equal(board.heap, SPY_HEAP_MOST);
	assert_null(spy_heap_take(1));
	spy_heap_give(last, 1 << 20);
	assert_non_null(spy_heap_take(1));
	assert_null(spy_heap_take(1 << 20));
	/* All of it at once. */
	begin_session();
	assert_non_null(spy_heap_take(SPY_HEAP_MOST));
	assert_null(spy_heap_take(1));
}

/* ---- notes ---- */

static void expect_note(size_t *from, enum spy_note note, const char *text)
{
	const struct spy_rec_note *record = (void *)(session_records + *from);

	assert_int_equal(record->head.event, SPY_EV_NOTE);
	assert_int_equal(record->note, note);
	assert_string_equal(record->text, text);
	*from += sizeof(*record) + strlen(text) + 1;
	assert_true(*from <= session_bytes);
}

static void test_notes(void **state)
{
	char longest[2 * SPY_TEXT_MAX];
	size_t from = 0;

	(void)state;
	spy_note(SPY_NOTE_OTHER, "%s %d", "answer", 42);
	spy_note(SPY_NOTE_OTHER, "answer 42"); /* however it is made */
	spy_note(SPY_NOTE_OTHER, "answer 4");
	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	spy_note(SPY_NOTE_OTHER, "%s", longest);
	longest[SPY_TEXT_MAX] = '\0'; /* no other, as far as it is told */
	spy_note(SPY_NOTE_OTHER, "%s", longest);
	expect_note(&from, SPY_NOTE_OTHER, "answer 42");
	expect_note(&from, SPY_NOTE_OTHER, "answer 4");
	longest[SPY_TEXT_MAX - 1] = '\0';
	expect_note(&from, SPY_NOTE_OTHER, longest);
	assert_int_equal(from, session_bytes);
	assert_int_equal(board.notes, 3);
	assert_int_equal(board.notes_dropped, 0);
}

static void test_many_notes(void **state)
{
	(void)state;
	for (int i = 0; i < NOTES_MOST + 5; i++) {
		size_t before = session_bytes;

		spy_note(SPY_NOTE_OTHER, "note %d", i);
		assert_int_equal(session_bytes > before, i < NOTES_MOST);
	}
	assert_int_equal(board.notes, NOTES_MOST);
	assert_int_equal(board.notes_dropped, 5);
	spy_note(SPY_NOTE_OTHER, "note 7"); /* that is no new one */
	assert_int_equal(board.notes_dropped, 5);
}

/* Before there is a session, the first ones are kept for it. */
static void test_early_notes(void **state)
{
	char longest[400];
	size_t from = 0;

	(void)state;
	session.state = SPY_SESSION_NONE;
	memset(longest, 'e', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	spy_note(SPY_NOTE_OTHER, "%s", longest);
	spy_note(SPY_NOTE_OTHER, "twice");
	spy_note(SPY_NOTE_OTHER, "twice");
	for (int i = 3; i < EARLY_MOST + 4; i++)
		spy_note(SPY_NOTE_OTHER, "early %d", i);
	assert_int_equal(session_bytes, 0);
	session.state = SPY_SESSION_ACTIVE;
	spy_notes_flush_early();
	longest[EARLY_TEXT] = '\0';
	expect_note(&from, SPY_NOTE_OTHER, longest);
	expect_note(&from, SPY_NOTE_OTHER, "twice");
	for (int i = 3; i < EARLY_MOST; i++) {
		char text[16];

		snprintf(text, sizeof(text), "early %d", i);
		expect_note(&from, SPY_NOTE_OTHER, text);
	}
	assert_int_equal(from, session_bytes);
	assert_int_equal(session.early_lock.owner + session.lock.owner, 0);
}

/* ---- names of kernels ---- */

static void expect_kernel(size_t *from, uint32_t number, const char *name)
{
	const struct spy_rec_kernel *record = (void *)(session_records + *from);

	assert_int_equal(record->head.event, SPY_EV_KERNEL);
	assert_int_equal(record->kernel, number);
	assert_int_equal(record->reserved, 0);
	assert_string_equal(record->name, name);
	*from += sizeof(*record) + strlen(name) + 1;
	assert_true(*from <= session_bytes);
}

static void test_kernels(void **state)
{
	char longest[2 * SPY_TEXT_MAX];
	size_t from = 0;

	(void)state;
	memset(longest, 'k', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(spy_kernel_number("add"), 1);
	assert_int_equal(spy_kernel_number("ad"), 2);
	assert_int_equal(spy_kernel_number("add"), 1);
	assert_int_equal(spy_kernel_number(longest), 3);
	longest[SPY_TEXT_MAX] = '\0';
	assert_int_equal(spy_kernel_number(longest), 3);
	longest[SPY_TEXT_MAX - 1] = '\0';
	assert_int_equal(spy_kernel_number(longest), 3);
	longest[SPY_TEXT_MAX - 2] = '\0';
	assert_int_equal(spy_kernel_number(longest), 4);
	longest[SPY_TEXT_MAX - 2] = 'k';
	assert_int_equal(spy_kernel_number(""), 0);
	assert_int_equal(spy_kernel_number(NULL), 0);
	expect_kernel(&from, 1, "add");
	expect_kernel(&from, 2, "ad");
	expect_kernel(&from, 3, longest);
	longest[SPY_TEXT_MAX - 2] = '\0';
	expect_kernel(&from, 4, longest);
	assert_int_equal(from, session_bytes);
	assert_int_equal(board.kernels, 4);
	session.state = SPY_SESSION_FAILED;
	assert_int_equal(spy_kernel_number("add"), 0);
}

/* Those beyond have one number together, whose record is written once. */
static void test_many_kernels(void **state)
{
	char name[32];
	size_t from;

	(void)state;
	for (uint32_t i = 1; i <= KERNELS_MOST; i++) {
		snprintf(name, sizeof(name), "%u", i);
		session_bytes = 0;
		assert_int_equal(spy_kernel_number(name), i);
	}
	assert_int_equal(board.kernels_unnamed, 0);
	session_bytes = from = 0;
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "beyond %d", i);
		assert_int_equal(spy_kernel_number(name), KERNELS_MOST + 1);
	}
	expect_kernel(&from, KERNELS_MOST + 1, "(kernels beyond the first 65535)");
	assert_int_equal(from, session_bytes);
	assert_int_equal(board.kernels_unnamed, 3);
	assert_int_equal(board.kernels, KERNELS_MOST + 1);
	assert_int_equal(spy_kernel_number("7"), 7);
	assert_int_equal(board.kernels_unnamed, 3);
}

/* No memory for it: no number, and no record. */
static void test_no_memory(void **state)
{
	(void)state;
	assert_non_null(spy_heap_take(SPY_HEAP_MOST));
	assert_int_equal(spy_kernel_number("add"), 0);
	assert_int_equal(session_bytes, 0);
	assert_int_equal(session.lock.owner, 0);
	spy_note(SPY_NOTE_OTHER, "a note");
	assert_int_equal(board.notes_dropped, 1);
	assert_int_equal(session_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_sizes, begin),
		cmocka_unit_test_setup(test_pieces, begin),
		cmocka_unit_test_setup(test_bound, begin),
		cmocka_unit_test_setup(test_notes, begin),
		cmocka_unit_test_setup(test_many_notes, begin),
		cmocka_unit_test_setup(test_early_notes, begin),
		cmocka_unit_test_setup(test_kernels, begin),
		cmocka_unit_test_setup(test_many_kernels, begin),
		cmocka_unit_test_setup(test_no_memory, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
