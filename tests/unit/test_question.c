/*
 * tests/unit/test_question.c: a question of the sampler's is answered in the time between calls that it was asked in, by the thread
 * that it was asked, once; and not in a later one, by another thread, or after it was withdrawn.
 */
/* links: shim/sample/ask.c shim/lib/clock.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "sample/ask.h"
#include "state/libraries.h"

static struct spy_question questions[SPY_QUESTIONS];
static struct spy_thread threads[SPY_QUESTIONS + 2];
static struct spy_slot_page pages[SPY_QUESTIONS + 2];
static struct spy_question *withdrawn_meanwhile;
static int copies;
static bool copied = true;

/* What ask.c needs of the rest of the recorder. */
const struct spy_python *spy_python_here(void)
{
	static struct spy_python python;

	return &python;
}

bool spy_libraries_hold(void)
{
	return true;
}

void spy_libraries_release(void)
{
}

bool spy_python_copy_own(const struct spy_python *python, uintptr_t state, uintptr_t handle,
			 struct spy_python_copy *copy)
{
	(void)python;
	(void)handle;
	copies++;
	copy->top = state;
	if (withdrawn_meanwhile)
		spy_question_withdraw(withdrawn_meanwhile);
	return copied;
}

uint64_t spy_overhead_begin(void)
{
	return 0;
}

void spy_overhead_end(struct spy_thread *thread, uint64_t begun)
{
	(void)thread;
	(void)begun;
}

static int set_up(void **state)
{
	(void)state;
	memset(questions, 0, sizeof(questions));
	memset(threads, 0, sizeof(threads));
	for (uint32_t i = 0; i < SPY_QUESTIONS + 2; i++) {
		threads[i].page = &pages[i];
		pages[i].tid = 100 + i;
		threads[i].python_state = 1000 + i;
		threads[i].look_at = UINT64_MAX;
	}
	withdrawn_meanwhile = NULL;
	copies = 0;
	copied = true;
	return 0;
}

static struct spy_question *ask(uint32_t slot, uint64_t at)
{
	struct spy_question *question = spy_question_ask(questions, &threads[slot], 100 + slot);

	if (question)
		question->asked = at;
	return question;
}

static void test_answered(void **state)
{
	struct spy_question *question = ask(3, 50);

	(void)state;
	threads[3].left_at = 40;
	assert_int_equal(threads[3].look_at, 0);
	assert_ptr_equal(spy_question_of(questions, &threads[3], 103), question);
	assert_null(spy_question_of(questions, &threads[4], 103));
	assert_false(spy_question_is_answered(question));
	spy_question_answer(questions, &threads[4], 60);
	assert_false(spy_question_is_answered(question));
	spy_question_answer(questions, &threads[3], 60);
	assert_true(spy_question_is_answered(question));
	assert_int_equal(question->copy.top, 1003);
	spy_question_answer(questions, &threads[3], 61);
	assert_int_equal(copies, 1);
	spy_question_withdraw(question);
	assert_null(spy_question_of(questions, &threads[3], 103));
}

/* It was overlooked, and another call has come and gone; or the thread was in a call when it was asked. */
static void test_too_late(void **state)
{
	struct spy_question *question = ask(3, 50);

	(void)state;
	threads[3].left_at = 51;
	spy_question_answer(questions, &threads[3], 60);
	assert_int_equal(copies, 0);
	assert_null(spy_question_of(questions, &threads[3], 103));
	question = ask(3, 70);
	spy_question_answer(questions, &threads[3], 69);
	assert_null(spy_question_of(questions, &threads[3], 103));
	threads[3].left_at = 71;
	question = ask(3, 71);
	spy_question_answer(questions, &threads[3], 71);
	assert_true(spy_question_is_answered(question));
}

static void test_no_frames(void **state)
{
	(void)state;
	copied = false;
	ask(3, 50);
	spy_question_answer(questions, &threads[3], 60);
	assert_int_equal(copies, 1);
	assert_null(spy_question_of(questions, &threads[3], 103));
}

static void test_withdrawn(void **state)
{
	struct spy_question *question = ask(3, 50);

	(void)state;
	spy_question_withdraw(question);
	spy_question_answer(questions, &threads[3], 60);
	assert_int_equal(copies, 0);
	question = withdrawn_meanwhile = ask(3, 70);
	spy_question_answer(questions, &threads[3], 80);
	assert_int_equal(copies, 1);
	assert_false(spy_question_is_answered(question));
	assert_null(spy_question_of(questions, &threads[3], 103));
	withdrawn_meanwhile = NULL;
	assert_ptr_equal(ask(3, 90), question);
}

/* The thread has ended, and another has its slot: that is not asked, and the question is free where all others are in use. */
static void test_of_another(void **state)
{
	struct spy_question *question = ask(3, 50);

	(void)state;
	assert_null(spy_question_of(questions, &threads[3], 999));
	for (uint32_t i = 0; i < SPY_QUESTIONS; i++)
		if (i != 3)
			assert_non_null(ask(i, 50));
	assert_null(ask(SPY_QUESTIONS, 50));
	pages[3].tid = 0;
	assert_ptr_equal(ask(SPY_QUESTIONS, 60), question);
	/* One that has answered, too. */
	spy_question_answer(questions, &threads[2], 60);
	pages[2].tid = 999;
	assert_non_null(ask(SPY_QUESTIONS + 1, 70));
}

static void test_all_asked(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SPY_QUESTIONS; i++)
		assert_non_null(ask(i, 50));
	assert_null(ask(SPY_QUESTIONS, 50));
	assert_int_equal(threads[SPY_QUESTIONS].look_at, UINT64_MAX);
	spy_question_answer(questions, &threads[2], 60);
	assert_null(ask(SPY_QUESTIONS, 60));
	spy_question_withdraw(spy_question_of(questions, &threads[2], 102));
	assert_ptr_equal(ask(SPY_QUESTIONS, 70), &questions[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_answered, set_up),
		cmocka_unit_test_setup(test_too_late, set_up),
		cmocka_unit_test_setup(test_no_frames, set_up),
		cmocka_unit_test_setup(test_withdrawn, set_up),
		cmocka_unit_test_setup(test_of_another, set_up),
		cmocka_unit_test_setup(test_all_asked, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
