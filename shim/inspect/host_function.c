/*
 * shim/inspect/host_function.c: functions on the host that a program puts into streams. A call that
 * hands one over (on the application's thread) gives CUDA a function of ours and an entry of a table in
 * the place of function and argument; when CUDA runs that, on a thread of its own, the entry is freed,
 * the program's function is called as CUDA would have called it, and a record says how long it ran.
 *
 * An entry serves one run. So what a graph may run again goes to CUDA as it is: where the stream is
 * being captured, or may be. That, and functions for which there is no entry, is counted.
 *
 * On CUDA's thread nothing of CUDA is called, and nothing is kept while the function runs but what lies
 * on its stack: it may end its thread, or leave by an exception.
 */
#include <errno.h>
#include "cudaspy/function_numbers.h"
#include "hook/resolve.h"
#include "inspect/host_function.h"
#include "inspect/inspect.h"
#include "inspect/inspect_common.h"
#include "lib/clock.h"
#include "process/options.h"
#include "record/board.h"
#include "state/session.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

/* Places of the rows: stream, function; its argument lies behind it. a: 1: it is called with stream and status, too. */
enum { STREAM, FUNCTION };

/* Twice what one stream has room for (about 1,020 operations), and what never ran: of a call that failed, or because a context broke. */
#define HANDED_MOST 2048
#define LOOKS 16 /* entries that are looked at for a free one */

static struct handed {
	uint32_t taken;
	uint32_t tid; /* of the thread that handed it over */
	void *function, *argument;
	uint64_t stream, caller;
	uint64_t at; /* when: right before the call */
	uint16_t fn; /* the call's */
	uint16_t context;
	uint8_t device;
} handed[HANDED_MOST];
static uint32_t next;

#define UNWATCHED 1 /* in the place of an entry: the function goes to CUDA as it is */

static uint64_t unwatched; /* see struct spy_board */

static void count_unwatched(void)
{
	__atomic_fetch_add(&unwatched, 1, __ATOMIC_RELAXED);
	spy_host_functions_count();
}

void spy_host_functions_count(void)
{
	if (spy_session_active())
		spy_board_show(spy_session->board->functions_unwatched,
			       __atomic_load_n(&unwatched, __ATOMIC_RELAXED));
}

void spy_host_functions_forked(void)
{
	unwatched = 0;
}

/* ---- entries -------------------------------------------------------------------------------- */

static struct handed *take(void)
{
	uint32_t i = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED), end = i + LOOKS;

	for (; i != end; i++) {
		struct handed *h = &handed[i % HANDED_MOST];

		if (!__atomic_load_n(&h->taken, __ATOMIC_RELAXED) &&
		    !__atomic_exchange_n(&h->taken, 1, __ATOMIC_ACQUIRE))
			return h;
	}
	return NULL;
}

static void give_back(struct handed *h)
{
	__atomic_store_n(&h->taken, 0, __ATOMIC_RELEASE);
}

/* The entry is free for others from here on. */
static struct handed taken_out(void *entry)
{
	struct handed copy = *(struct handed *)entry;

	give_back(entry);
	return copy;
}

/* ---- when it runs --------------------------------------------------------------------------- */

/* CUDA's thread gets a stream at the first function that it runs, and goes on to the next packet before one. When the
 * function begins; 0: there will be no record. */
static uint64_t begin_run(void)
{
	struct spy_thread *thread = spy_self;
	int error = errno;

	if (!spy_window_is_open())
		return 0;
	if (thread->head >= spy_thread_limit(thread) && !thread->depth) {
		bool first = !thread->page;

		thread = spy_thread_ready();
		if (thread && first)
			thread->serves_cuda = true;
	}
	errno = error;
	return thread && thread->packet ? spy_clock() : 0;
}

static void write_run(struct spy_thread *thread, const struct handed *h, uint64_t begun)
{
	uint64_t now = spy_clock();

	*(struct spy_rec_host_function *)thread->head =
		(struct spy_rec_host_function){.time = now,
					       .event = SPY_EV_HOST_FUNCTION,
					       .device = h->device,
					       .tid = h->tid,
					       .duration = (now - begun) & ((1ull << 48) - 1),
					       .fn = h->fn,
					       .function = (uintptr_t)h->function,
					       .stream = h->stream,
					       .handed = h->at,
					       .caller = h->caller & ((1ull << 48) - 1),
					       .context = h->context};
	spy_thread_publish(thread, now, sizeof(struct spy_rec_host_function));
}

static void end_run(const struct handed *h, uint64_t begun)
{
	struct spy_thread *thread = spy_self;

	if (!begun || !spy_window_is_open() || begun < spy_window_opened_at() ||
	    thread->reentry_frame || !spy_thread_try_work(thread, __builtin_frame_address(0)))
		return;
	if (spy_thread_has_room_outside(thread, sizeof(struct spy_rec_host_function)))
		write_run(thread, h, begun);
	else
		spy_count(&thread->page->lost);
	spy_thread_end_work(thread);
}

static void run_function(void *entry)
{
	struct handed h = taken_out(entry);
	uint64_t begun = begin_run();

	((void (*)(void *))h.function)(h.argument);
	end_run(&h, begun);
}

static void run_callback(void *stream, int status, void *entry)
{
	struct handed h = taken_out(entry);
	uint64_t begun = begin_run();

	((void (*)(void *, int, void *))h.function)(stream, status, h.argument);
	end_run(&h, begun);
}

/* ---- when it is handed over ----------------------------------------------------------------- */

/* Does the driver say that what is put into the stream runs once? The legacy stream is never captured. */
static bool runs_once(const struct spy_frame *frame, uint64_t stream)
{
	int (*ask)(uint64_t, int *) = spy_resolve_driver(spy_fn_per_thread[frame->slot->fn]
								 ? SPY_FN_cuStreamIsCapturing_ptsz
								 : SPY_FN_cuStreamIsCapturing);
	int status = 0;

	return stream_or_default(frame, stream) == SPY_STREAM_LEGACY ||
	       (ask && !ask(stream, &status) && !status);
}

static struct handed *entry_for(const struct spy_frame *frame, uint64_t stream)
{
	if (spy_options.nofunctions)
		return NULL;
	if (frame->details.captured || !runs_once(frame, stream))
		return NULL;
	return take();
}

void inspect_host_function(struct spy_frame *frame, const struct spy_inspector *self)
{
	struct spy_thread *thread = frame->thread;
	int place = self->at[FUNCTION];
	struct handed *h;

	inspect_op(frame, self);
	frame->details.address = 0;
	if (frame->depth || !frame->regs[place] || !spy_window_is_open())
		return;
	h = entry_for(frame, arg(frame, self, STREAM));
	if (!h) {
		frame->details.address = UNWATCHED;
		return;
	}
	h->tid = thread->tid;
	h->function = (void *)frame->regs[place];
	h->argument = (void *)frame->regs[place + 1];
	h->stream = frame->details.stream;
	h->caller = frame->caller;
	h->fn = frame->slot->fn;
	h->context = thread->context;
	h->device = (uint8_t)(thread->device - 1);
	h->at = spy_clock();
	frame->details.address = (uintptr_t)h;
	frame->regs[place] = self->a ? (uintptr_t)run_callback : (uintptr_t)run_function;
	frame->regs[place + 1] = (uintptr_t)h;
}

/* Of a call that failed the entry stays taken: nobody promises that the function will not run, and another one in its place would. */
void inspect_host_function_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	(void)self;
	if (succeeded(frame) && frame->details.address == UNWATCHED)
		count_unwatched();
}

/* Runs with each launch of the graph. */
void inspect_host_node(struct spy_frame *frame, const struct spy_inspector *self)
{
	inspect_op(frame, self);
	if (!frame->depth && spy_window_is_open())
		count_unwatched();
}
