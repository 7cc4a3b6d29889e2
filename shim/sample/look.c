/*
 * shim/sample/look.c: one look at one thread: where is it? On the sampler's thread. It reads the thread's memory through the kernel
 * and its state from /proc, and takes no lock that the program knows.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include "sample/look.h"
#include "sample/in_c.h"
#include "sample/places.h"
#include "stack/unwind.h"
#include "state/board_fields.h"
#include "state/libraries.h"
#include "state/session.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

/* What a thread that does not move has been for so long is written. */
#define WRITE_MS 500ull

/* ---- the system's account of a thread --------------------------------------------------------- */

/* How long it has been on a CPU; 0: it is gone, or the system does not say. The number of a thread's CPU clock is that of
 * clock_getcpuclockid(3). */
static uint64_t cpu_ns(uint32_t tid)
{
	clockid_t clock = (clockid_t)(~tid << 3 | 6);
	struct timespec t;

	if (spy_syscall(SYS_clock_gettime, clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec + 1;
}

/* What it is blocked in; proc(5), /proc/pid/syscall. */
struct blocked {
	long call;
	uint64_t first; /* argument */
	uintptr_t sp, pc;
};

static size_t read_proc(uint32_t tid, char *text, size_t size)
{
	char path[48];
	long fd, got;

	snprintf(path, sizeof(path), "/proc/self/task/%u/syscall", tid);
	fd = spy_syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = spy_syscall(SYS_read, fd, text, size - 1);
	spy_syscall(SYS_close, fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

static uint64_t take_hex(char **at)
{
	return strtoull(*at, at, 16);
}

/* Is it in the kernel, by a call of its own? False: it runs or is ready, or the system does not say. */
static bool is_blocked(uint32_t tid, struct blocked *blocked)
{
	char text[256], *at = text;

	if (!read_proc(tid, text, sizeof(text)) || *text == 'r') /* running */
		return false;
	blocked->call = strtol(at, &at, 10);
	blocked->first = blocked->call < 0 ? 0 : take_hex(&at);
	for (int i = 0; blocked->call >= 0 && i < 5; i++)
		take_hex(&at);
	blocked->sp = take_hex(&at);
	blocked->pc = take_hex(&at);
	return blocked->sp && blocked->pc;
}

/* ---- the place -------------------------------------------------------------------------------- */

struct looking {
	struct spy_places *places;
	struct spy_looked *looked;
	struct spy_thread *thread;
	struct spy_frames place;
	struct spy_python_frame innermost; /* of place, if it has any of Python */
	struct spy_python_activity activity;
	uint16_t state;
	uint32_t holder;
};

/* Where the thread is that has the GIL, for which this one waits: a sample of its own, which stands before this one's. */
static void look_at_holder(struct looking *l, const struct spy_python *python,
			   const struct spy_python_activity *activity)
{
	struct spy_python_frame frames[SPY_PYTHON_LOOKED];
	struct spy_python_guess guess = {0};
	struct spy_frames place = {0};
	uint32_t number;
	bool cut;
	size_t n;

	l->holder = activity->holder_tid;
	n = spy_python_look_at(python, &guess, l->places->room, activity->holder,
			       activity->holder_handle, frames, &cut);
	spy_place_add_python(l->places, python, frames, n, &place);
	if (!place.count || !spy_places_ready(l->places))
		return;
	spy_place_name_thread(l->places, l->holder);
	number = spy_place_number(l->places, &place);
	spy_place_write(
		l->places,
		&(struct spy_rec_sample){.head = {.time = spy_clock(), .event = SPY_EV_SAMPLE},
					 .state = SPY_SAMPLE_HOLDER | (cut ? SPY_SAMPLE_CUT : 0),
					 .tid = l->holder,
					 .place = number,
					 .weight = 1},
		sizeof(struct spy_rec_sample));
}

/* Does the thread wait for the GIL, and who has it? */
static void look_for_gil(struct looking *l, const struct blocked *blocked)
{
	const struct spy_python *python;

	if (!l->activity.gil || blocked->call != SYS_futex ||
	    blocked->first - l->activity.gil >= SPY_PYTHON_GIL_BYTES || !spy_libraries_hold())
		return;
	l->state |= SPY_SAMPLE_GIL;
	python = spy_python_here();
	if (python && l->activity.holder)
		look_at_holder(l, python, &l->activity);
	spy_libraries_release();
}

static void look_at_python(struct looking *l)
{
	uintptr_t state = __atomic_load_n(&l->thread->python_state, __ATOMIC_RELAXED);
	uintptr_t handle = (uintptr_t)__atomic_load_n(&l->thread->handle, __ATOMIC_RELAXED);
	struct spy_python_frame frames[SPY_PYTHON_LOOKED];
	const struct spy_python *python;
	bool cut = false;
	size_t n;

	if (!state || !spy_python_here() || !spy_libraries_hold())
		return;
	python = spy_python_here();
	n = python ? spy_python_look_at(python, &l->looked->python, l->places->room, state, handle,
					frames, &cut)
		   : 0;
	spy_place_add_python(l->places, python, frames, n, &l->place);
	if (n)
		l->innermost = frames[0];
	if (python)
		spy_python_activity(python, state, &l->activity);
	spy_libraries_release();
	if (cut)
		l->state |= SPY_SAMPLE_CUT;
	if (l->activity.collects && l->activity.holder == state)
		l->state |= SPY_SAMPLE_GC;
}

#define NATIVE_MOST (SPY_PLACE_MOST - SPY_PYTHON_LOOKED) /* leaves room for a word more */

static void look_at_stack(struct looking *l, const struct blocked *blocked)
{
	struct spy_unwind from = {.ip = blocked->pc, .sp = blocked->sp};
	uint64_t frames[NATIVE_MOST];
	size_t n;

	if (!spy_libraries_hold())
		return;
	n = spy_unwind(&from, frames, NATIVE_MOST);
	spy_libraries_release();
	for (size_t i = 0; i < n && l->place.count < SPY_PLACE_MOST; i++)
		l->place.words[l->place.count++] = frames[i];
}

/* When the kernel interrupted it last: not before the last look. */
static bool was_interrupted(struct looking *l, struct spy_interrupted *at, uint64_t *ns,
			    uint64_t *now_ns)
{
	uint64_t since_ns = l->looked->looked_ns;

	l->looked->looked_ns = *now_ns = spy_clock_monotonic();
	return spy_running_look(&l->looked->running, l->looked->tid, since_ns, ns, at) &&
	       *ns <= *now_ns;
}

/* What the line of Python called in C, if the thread was in it when it was interrupted last. */
static void look_in_c(struct looking *l)
{
	const struct spy_python *python;
	uint64_t ns, now_ns;
	struct spy_interrupted at;

	if (!was_interrupted(l, &at, &ns, &now_ns) || !spy_libraries_hold())
		return;
	python = spy_python_here();
	if (python)
		spy_place_add_c(l->places, python, &l->innermost, &at, &l->place);
	spy_libraries_release();
}

/* Where it was then. */
static void look_at_interrupted(struct looking *l, uint64_t *seen)
{
	uint64_t frames[NATIVE_MOST], ns, function, now_ns;
	struct spy_interrupted at;
	size_t n = was_interrupted(l, &at, &ns, &now_ns)
			   ? spy_running_walk(&at, frames, NATIVE_MOST, &function)
			   : 0;

	if (!n)
		return;
	l->place.count = (uint8_t)n;
	memcpy(l->place.words, frames, n * sizeof(frames[0]));
	if (function) {
		l->place.words[l->place.count++] = function;
		l->place.python |= SPY_PLACE_FUNCTION;
	}
	*seen -= (uint64_t)((double)(now_ns - ns) * 1e-9 *
			    (double)atomic_load(&spy_session->frequency));
}

/* Is the thread outside of calls, and the same that had made so many? */
static bool is_outside(const struct spy_thread *thread, uint32_t tid, uint64_t calls)
{
	const struct spy_slot_page *page = thread->page;

	return spy_board_see(page->tid) == tid && !spy_board_see(page->depth) &&
	       !spy_board_see(page->asleep) && spy_board_see(page->calls) == calls;
}

/* ---- what is written --------------------------------------------------------------------------- */

static void write_sampled(struct spy_places *places, struct spy_looked *looked)
{
	struct spy_sample *s = &looked->sampled;
	uint64_t now = spy_clock(), frequency = atomic_load(&spy_session->frequency);
	double ago = (double)(now - s->seen) * 1e9 / (double)frequency;

	if (s->weight_us && spy_places_ready(places))
		spy_place_write(places,
				&(struct spy_rec_sample){
					.head = {.time = now, .event = SPY_EV_SAMPLE},
					.state = s->state,
					.tid = looked->tid,
					.place = s->place,
					.holder = s->holder,
					.weight = s->weight_us < UINT32_MAX ? (uint32_t)s->weight_us
									    : UINT32_MAX,
					.ago = ago < UINT32_MAX ? (uint32_t)ago : UINT32_MAX},
				sizeof(struct spy_rec_sample));
	s->weight_us = 0;
	looked->written = now;
}

static void read_answer(struct looking *l, const struct spy_question *question)
{
	struct spy_python_frame frames[SPY_PYTHON_LOOKED];
	const struct spy_python *python;
	size_t n;

	if (!spy_python_here() || !spy_libraries_hold())
		return;
	python = spy_python_here();
	n = python ? spy_python_look_at_copy(python, l->places->room, &question->copy, frames) : 0;
	spy_place_add_python(l->places, python, frames, n, &l->place);
	spy_libraries_release();
}

/* Where the thread was when it was asked. */
static void write_answer(struct spy_places *places, struct spy_looked *looked,
			 struct spy_question *question)
{
	struct looking l = {.places = places, .looked = looked};

	if (!question->weight_us || !spy_places_ready(places))
		return;
	read_answer(&l, question);
	looked->sampled = (struct spy_sample){.state = SPY_SAMPLE_RAN,
					      .place = spy_place_number(places, &l.place),
					      .weight_us = question->weight_us,
					      .seen = question->asked};
	write_sampled(places, looked);
}

/* The look has found it elsewhere: the answer stands for it, too. */
static void leave_to_answer(struct spy_places *places, struct spy_looked *looked,
			    struct spy_question *question, uint64_t weight_us)
{
	question->weight_us += weight_us;
	if (!spy_question_is_answered(question))
		return;
	write_answer(places, looked, question);
	spy_question_withdraw(question);
}

/* Its place is read, and its record written. If it stands still, that is its place until it moves. */
static void look_anew(struct spy_places *places, struct spy_looked *looked,
		      struct spy_thread *thread, uint32_t tid, uint64_t calls, uint64_t weight_us)
{
	struct looking l = {.places = places, .looked = looked, .thread = thread};
	struct spy_question *question = spy_question_of(places->questions, thread, tid);
	uint64_t before_ns = cpu_ns(tid), seen = spy_clock();
	struct blocked blocked;
	bool stands_still;

	if (looked->tid != tid) {
		looked->python = (struct spy_python_guess){0};
		spy_running_end(&looked->running);
	}
	looked->tid = tid;
	looked->calls = calls;
	looked->cpu_ns = 0;
	if (!before_ns || !spy_places_ready(places))
		return;
	if (!question && __atomic_load_n(&thread->python_state, __ATOMIC_RELAXED))
		question = spy_question_ask(places->questions, thread, tid);
	look_at_python(&l);
	stands_still = cpu_ns(tid) == before_ns;
	if (stands_still && is_blocked(tid, &blocked)) {
		l.state |= SPY_SAMPLE_BLOCKED;
		look_at_stack(&l, &blocked);
		look_for_gil(&l, &blocked);
	} else {
		l.state |= stands_still ? 0 : SPY_SAMPLE_RAN;
		if (!l.place.count)
			look_at_interrupted(&l, &seen);
		else if (!(l.state & (SPY_SAMPLE_CUT | SPY_SAMPLE_GC)))
			look_in_c(&l);
	}
	/* What was written for the holder of the GIL has taken room. */
	if (!is_outside(thread, tid, calls)) {
		if (question)
			leave_to_answer(places, looked, question, weight_us);
		return;
	}
	if (question && !question->weight_us)
		spy_question_withdraw(question);
	if (!spy_places_ready(places))
		return;
	looked->sampled = (struct spy_sample){.state = l.state,
					      .place = spy_place_number(places, &l.place),
					      .holder = l.holder,
					      .weight_us = weight_us,
					      .seen = seen};
	/* At once: who waits is told where before the wait ends. */
	write_sampled(places, looked);
	if (stands_still && cpu_ns(tid) == before_ns && (looked->sampled.place || !l.place.count))
		looked->cpu_ns = before_ns;
}

void spy_look(struct spy_places *places, struct spy_looked *looked, struct spy_thread *thread,
	      uint64_t weight_us)
{
	const struct spy_slot_page *page = thread->page;
	uint32_t tid = spy_board_see(page->tid);
	uint64_t calls = spy_board_see(page->calls);
	bool outside = tid && calls && is_outside(thread, tid, calls);
	struct spy_question *question;

	if (outside && looked->cpu_ns && looked->tid == tid && looked->calls == calls &&
	    looked->cpu_ns == cpu_ns(tid)) {
		/* One that is ready runs no more code while it has no CPU. */
		if (looked->sampled.state & SPY_SAMPLE_BLOCKED)
			looked->sampled.weight_us += weight_us;
		looked->sampled.seen = spy_clock();
		if (looked->sampled.seen - looked->written >=
		    atomic_load(&spy_session->frequency) / 1000 * WRITE_MS)
			write_sampled(places, looked);
		return;
	}
	if (looked->sampled.weight_us)
		write_sampled(places, looked);
	looked->cpu_ns = 0;
	question = spy_question_of(places->questions, thread, tid);
	if (question)
		leave_to_answer(places, looked, question, 0);
	if (outside)
		look_anew(places, looked, thread, tid, calls, weight_us);
}
