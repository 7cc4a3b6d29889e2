/*
 * shim/sample/ask.c: questions to threads that do not stand still. The sampler's thread asks, through the time from when on the
 * thread looks for what is due (look_at); the thread that is asked answers, on its way into a call: a few calls of the kernel's, which
 * copy its frames, at most as often as the sampler looks. What the copy means is the sampler's to find out.
 *
 * A thread that sets its look_at at the same moment overlooks the question, and finds it in a later time between calls: no answer.
 */
#include "lib/clock.h"
#include "sample/ask.h"
#include "state/board_fields.h"
#include "state/libraries.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

enum question_state {
	FREE,
	ASKED,
	ANSWERING, /* the thread's own now */
	USELESS, /* likewise, and the sampler wants it no more */
	ANSWERED
};

/* ---- the sampler's thread ----------------------------------------------------------------------- */

/* Its slot is free, or another thread's. */
static bool has_ended(const struct spy_question *question)
{
	return spy_board_see(question->thread->page->tid) != question->tid;
}

struct spy_question *spy_question_of(struct spy_question *questions,
				     const struct spy_thread *thread, uint32_t tid)
{
	for (struct spy_question *q = questions; q < questions + SPY_QUESTIONS; q++)
		if (q->thread == thread && q->tid == tid && atomic_load(&q->state) != FREE)
			return q;
	return NULL;
}

struct spy_question *spy_question_ask(struct spy_question *questions, struct spy_thread *thread,
				      uint32_t tid)
{
	for (struct spy_question *q = questions; q < questions + SPY_QUESTIONS; q++) {
		if (atomic_load(&q->state) != FREE && has_ended(q))
			spy_question_withdraw(q);
		if (atomic_load(&q->state) != FREE)
			continue;
		q->thread = thread;
		q->tid = tid;
		q->asked = spy_clock();
		q->weight_us = 0;
		atomic_store(&q->state, ASKED);
		spy_thread_look_at(thread, 0);
		return q;
	}
	return NULL;
}

bool spy_question_is_answered(const struct spy_question *question)
{
	return atomic_load(&question->state) == ANSWERED;
}

void spy_question_withdraw(struct spy_question *question)
{
	uint32_t asked = ASKED, answering = ANSWERING;

	if (!atomic_compare_exchange_strong(&question->state, &asked, FREE) &&
	    !atomic_compare_exchange_strong(&question->state, &answering, USELESS) &&
	    answering == ANSWERED)
		atomic_store(&question->state, FREE);
}

/* ---- the thread that is asked --------------------------------------------------------------------- */

static bool copy_frames(struct spy_thread *thread, struct spy_python_copy *copy)
{
	const struct spy_python *python;
	bool copied;

	if (!spy_python_here() || !spy_libraries_hold())
		return false;
	python = spy_python_here();
	copied = python && thread->python_state &&
		 spy_python_copy_own(python, thread->python_state, (uintptr_t)thread->handle, copy);
	spy_libraries_release();
	return copied;
}

static void answer(struct spy_question *question, struct spy_thread *thread, uint64_t start)
{
	uint32_t asked = ASKED, answering = ANSWERING;
	bool is_answer;

	if (!atomic_compare_exchange_strong(&question->state, &asked, ANSWERING))
		return;
	is_answer = question->asked >= thread->left_at && question->asked <= start &&
		    copy_frames(thread, &question->copy);
	if (!atomic_compare_exchange_strong(&question->state, &answering,
					    is_answer ? ANSWERED : FREE))
		atomic_store(&question->state, FREE);
}

void spy_question_answer(struct spy_question *questions, struct spy_thread *thread, uint64_t start)
{
	uint64_t begun;

	for (struct spy_question *q = questions; q < questions + SPY_QUESTIONS; q++) {
		if (atomic_load(&q->state) != ASKED || q->thread != thread)
			continue;
		begun = spy_overhead_begin();
		answer(q, thread, start);
		spy_overhead_end(thread, begun);
	}
}
