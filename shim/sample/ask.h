/*
 * shim/sample/ask.h: a thread that goes from one call to the next within microseconds has moved on before a look at it has ended. It is
 * asked instead: it copies its own frames as its next timed call begins, where the time that the question fell into ends.
 */
#ifndef CUDASPY_SHIM_ASK_H
#define CUDASPY_SHIM_ASK_H

#include <stdatomic.h>
#include "stack/python.h"
#include "state/thread.h"

#define SPY_QUESTIONS 8 /* at one time; who finds none free is asked later */

/* Zeros at first. */
struct spy_question {
	_Atomic uint32_t state; /* enum question_state, in ask.c */
	struct spy_thread *thread; /* that is asked, as long as it has that number: */
	uint32_t tid;
	uint64_t asked; /* cycles */
	uint64_t weight_us; /* of its time that the looks since then stand for */
	struct spy_python_copy copy;
};

/* On the sampler's thread. */

/* The question that the thread has been asked; NULL: none. */
struct spy_question *spy_question_of(struct spy_question *questions,
				     const struct spy_thread *thread, uint32_t tid);
/* Asks a thread that was outside of calls right before, and is in Python now and then. NULL: all questions are asked. Those to
 * threads that have ended are withdrawn. */
struct spy_question *spy_question_ask(struct spy_question *questions, struct spy_thread *thread,
				      uint32_t tid);
/* Is its answer there? Then `copy` has it until the question is withdrawn. */
bool spy_question_is_answered(const struct spy_question *question);
/* There is, or will be, no use for the answer. */
void spy_question_withdraw(struct spy_question *question);

/* On the thread that is asked, as a timed call begins, at `start` (cycles). */
void spy_question_answer(struct spy_question *questions, struct spy_thread *thread, uint64_t start);

#endif
