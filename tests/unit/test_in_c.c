/*
 * tests/unit/test_in_c.c: what a line of Python called in C is believed only of the line that the thread was in when it was
 * interrupted; libraries on the way there have the function by which they were entered. The walk up the stack is made up.
 */
/* links: shim/sample/in_c.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdint.h>
#include <string.h>
#include "sample/in_c.h"

#define INTERPRETER 0x10000
#define EVALUATE 0x10100 /* in it, as others up to 0x1ffff */
#define LIBZ 0x20000
#define LIBC 0x30000
#define EXTENSION 0x40000
#define BYTECODE 0x5000000
#define WORD(line) (7ull << 32 | (line))

static struct spy_unwound walk[16];
static size_t n_walk;
static uint64_t registers[17];

void spy_unwind_each(const struct spy_interrupted *at, spy_unwind_visit *show, void *data)
{
	(void)at;
	for (size_t i = 0; i < n_walk && show(&walk[i], data); i++)
		;
}

uintptr_t spy_unwind_object(uintptr_t address)
{
	return address & ~(uintptr_t)0xffff;
}

/* Ten instructions of two bytes are a line. */
uint64_t spy_place_word(struct spy_places *p, const struct spy_python *python,
			const struct spy_python_frame *frame)
{
	(void)p;
	(void)python;
	return WORD(40 + (unsigned int)frame->at / 20);
}

/* ---- the walk --------------------------------------------------------------------------------- */

static int begin(void **state)
{
	(void)state;
	n_walk = 0;
	memset(registers, 0, sizeof(registers));
	return 0;
}

static void called(uint64_t function)
{
	walk[n_walk++] = (struct spy_unwound){.object = function & ~0xffffull,
					      .function = function,
					      .registers = registers,
					      .known = 1u << 3 | 0xfu << 12};
}

/* The interpreter's function has these words on its stack. */
static void evaluated(const uint64_t *words, size_t n)
{
	called(EVALUATE);
	walk[n_walk - 1].words = words;
	walk[n_walk - 1].n_words = n;
}

/* In line 42, which the frames say; what of it was added to the place. */
static struct spy_frames look(void)
{
	const struct spy_python python = {.symbols.evaluate = EVALUATE};
	const struct spy_python_frame frame = {
		.at = 44, .bytecode = BYTECODE, .bytecode_bytes = 200};
	struct spy_frames place = {.python = 2, .count = 2, .words = {WORD(42), WORD(99)}};

	spy_place_add_c(NULL, &python, &frame, &(struct spy_interrupted){0}, &place);
	assert_int_equal(place.python & ~SPY_PLACE_FUNCTION, 2);
	assert_int_equal(!!(place.python & SPY_PLACE_FUNCTION), place.count > 2);
	return place;
}

static void is_nothing(struct spy_frames place)
{
	assert_int_equal(place.count, 2);
}

static void is_unknown(struct spy_frames place)
{
	assert_int_equal(place.count, 3);
	assert_int_equal(place.words[2], 0);
}

static void is_in(struct spy_frames place, const uint64_t *functions, size_t n)
{
	assert_int_equal(place.count, 3 + n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(place.words[2 + i], functions[i] + 1);
	assert_int_equal(place.words[2 + n], EVALUATE);
}

/* ---- tests ------------------------------------------------------------------------------------ */

/* A register has the next instruction: of the line, or the first of the next line. Another line's is not believed. */
static void test_line(void **state)
{
	static const uint64_t in_line[] = {40, 44, 58, 60}, elsewhere[] = {38, 62, 0, 198};

	(void)state;
	evaluated(NULL, 0);
	for (size_t i = 0; i < 4; i++) {
		registers[14] = BYTECODE + in_line[i];
		is_in(look(), NULL, 0);
		registers[14] = BYTECODE + elsewhere[i];
		is_nothing(look());
	}
	registers[14] = BYTECODE + 200; /* beyond the function */
	is_nothing(look());
	registers[14] = BYTECODE + 44;
	walk[0].known = 1u << 3; /* what it had there is not known */
	is_nothing(look());
}

/* On its stack there may be what was there before: then it is not known whether a library belongs to the line. The first
 * instruction of the function says nothing. */
static void test_stack(void **state)
{
	static const uint64_t agree[] = {BYTECODE, BYTECODE + 44, 2, BYTECODE + 46},
			      stale[] = {BYTECODE + 44, BYTECODE + 100},
			      other[] = {BYTECODE + 100, 3};

	(void)state;
	evaluated(agree, 4);
	is_in(look(), NULL, 0);
	evaluated(stale, 2);
	walk[0] = walk[1];
	is_in(look(), NULL, 0);
	registers[12] = BYTECODE + 100; /* a register says more */
	is_nothing(look());
	begin(NULL);
	called(LIBZ);
	evaluated(agree, 4);
	is_in(look(), (const uint64_t[]){LIBZ}, 1);
	walk[1].words = stale;
	walk[1].n_words = 2;
	is_unknown(look());
	walk[1].words = other;
	is_nothing(look());
}

static void test_libraries(void **state)
{
	(void)state;
	registers[15] = BYTECODE + 44;
	called(LIBC + 0x10); /* memcpy, in deflate_slow, in deflate, … */
	called(LIBZ + 0x20);
	called(LIBZ + 0x30);
	called(INTERPRETER + 0x10); /* … by a function of the interpreter, by a module of its */
	called(EXTENSION + 0x40);
	evaluated(NULL, 0);
	called(LIBC + 0x99); /* who called the interpreter is of no interest */
	is_in(look(), (const uint64_t[]){LIBC + 0x10, LIBZ + 0x30, EXTENSION + 0x40}, 3);
	begin(NULL); /* of more the innermost ones */
	registers[15] = BYTECODE + 44;
	for (uint64_t i = 0; i < 5; i++)
		called(LIBC + i * 0x10000);
	evaluated(NULL, 0);
	is_in(look(), (const uint64_t[]){LIBC, LIBC + 0x10000, LIBC + 0x20000}, 3);
}

static void test_unknown(void **state)
{
	(void)state;
	registers[15] = BYTECODE + 44;
	called(LIBZ);
	is_unknown(look()); /* the walk got no further */
	called(0);
	evaluated(NULL, 0);
	is_unknown(look()); /* code without tables */
	begin(NULL);
	registers[15] = BYTECODE + 44;
	called(LIBZ);
	walk[0].object = spy_unwind_object(
		(uintptr_t)spy_place_add_c); /* the recorder was at work, or the thread in a call */
	evaluated(NULL, 0);
	is_nothing(look());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_line, begin),
		cmocka_unit_test_setup(test_stack, begin),
		cmocka_unit_test_setup(test_libraries, begin),
		cmocka_unit_test_setup(test_unknown, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
