/*
 * shim/probe/outside.c: a wait between two calls becomes a record. Runs on the thread that waited,
 * when it goes on. Takes no lock and allocates nothing: the program may be anywhere, in an allocator
 * of its own, say. So it changes no packets either; the next call does. Some 250 waits have room
 * until then. More of the kind of the last one are added to it, others are forgotten: that time is
 * unexplained.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "probe/outside.h"
#include "probe/query.h"
#include "probe/wait.h"
#include "record/board.h"
#include "record/sched.h"
#include "state/session.h"
#include "stack/python.h"
#include "stack/stack.h"

#pragma GCC poison malloc calloc realloc fopen

#define DURATION_MAX ((1ull << 48) - 1)

/* For the record of a thread's name, and that of the wait. */
#define NAMED_ROOM (sizeof(struct spy_rec_non_cuda_thread) + sizeof(struct spy_rec_outside))

uint64_t spy_outside_least = UINT64_MAX;
uint64_t spy_poll_long_call = UINT64_MAX;

/* A read or write that finds its bytes, or room for them, is the kernel's work and no wait: a nanosecond
 * for two bytes. */
#define BYTES_IN_NS 2

static double cycles_in_ns;

void spy_outside_begin(uint64_t frequency)
{
	cycles_in_ns = (double)frequency / 1e9;
	spy_outside_least =
		spy_probing ? frequency / (1000000000 / SPY_OUTSIDE_LEAST_NS) : UINT64_MAX;
	spy_poll_long_call = spy_probing ? frequency / (1000000000 / SPY_LOOKED_AT_NS) : UINT64_MAX;
}

uint32_t spy_outside_thread(pthread_t handle)
{
	uint32_t slots = atomic_load_explicit(&spy_session->slots, memory_order_relaxed);

	for (uint32_t slot = 1; slot < slots && slot < SPY_BOARD_SLOTS; slot++)
		if (__atomic_load_n(&spy_threads[slot].handle, __ATOMIC_RELAXED) == handle)
			return __atomic_load_n(&spy_session->slot_tids[slot], __ATOMIC_ACQUIRE);
	return 0;
}

/* What the thread was ready in, and on no CPU, since the last look, in cycles: at most, for some of it was before the call. */
static uint64_t time_without_cpu(struct spy_thread *thread)
{
	uint64_t before = thread->outside_delay_ns, now;

	if (before < thread->delay_ns)
		before = thread->delay_ns;
	now = spy_sched_delay_ns();
	thread->outside_delay_ns = now;
	return before && now > before ? (uint64_t)((double)(now - before) * cycles_in_ns) : 0;
}

/* Of a read or write: less what cannot be a wait. What is not to block does not. */
static uint64_t time_of_work(struct spy_thread *thread, const struct spy_outside *wait)
{
	int flags;

	if (wait->kind != SPY_WAIT_TRANSFER && wait->kind != SPY_WAIT_ACCEPT)
		return 0;
	flags = fcntl((int)wait->object, F_GETFL);
	if (flags >= 0 && flags & O_NONBLOCK)
		return UINT64_MAX;
	return (uint64_t)((double)wait->bytes / BYTES_IN_NS * cycles_in_ns) +
	       time_without_cpu(thread);
}

/* What the descriptor stands for, if it is open still. */
static uint8_t file_kind(int fd)
{
	socklen_t length = sizeof(int);
	struct stat status;
	int listening = 0;

	if (fstat(fd, &status))
		return SPY_FILE_UNKNOWN;
	switch (status.st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFBLK:
	case S_IFDIR:
		return SPY_FILE_REGULAR;
	case S_IFIFO:
		return SPY_FILE_PIPE;
	case S_IFCHR:
		return SPY_FILE_DEVICE;
	case S_IFSOCK:
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length);
		return listening ? SPY_FILE_LISTENING : SPY_FILE_SOCKET;
	default:
		return SPY_FILE_EVENT; /* the kernel's objects without a place in a file system */
	}
}

/* Python's GIL and its condition lie in the interpreter's state, which a library exports. */
static bool is_gil(const struct spy_outside *wait)
{
	const struct spy_python *python = spy_python_here();

	return python && !wait->is_file &&
	       wait->object - python->symbols.runtime < python->symbols.runtime_bytes;
}

/* The record before, if this wait goes on with what that one was for, or if there is no room. */
static struct spy_rec_outside *row_of(const struct spy_thread *thread,
				      const struct spy_outside *wait)
{
	struct spy_rec_outside *last = (struct spy_rec_outside *)thread->row;

	if (!last || thread->head != thread->row + sizeof(*last) || last->event != SPY_EV_OUTSIDE ||
	    last->kind != wait->kind)
		return NULL;
	if (wait->flags & SPY_WAIT_LATE && spy_thread_has_room_outside(thread, sizeof(*last)))
		return NULL;
	return (last->object == wait->object && last->caller == wait->caller) ||
			       !spy_thread_has_room_outside(thread, sizeof(*last))
		       ? last
		       : NULL;
}

static void join_row(struct spy_rec_outside *record, const struct spy_outside *wait, uint64_t now)
{
	record->duration = (record->duration + (now - wait->start)) & DURATION_MAX;
	record->span = (now - (record->time - record->span)) & DURATION_MAX;
	record->count++;
	record->time = now;
	if (wait->kind == SPY_WAIT_QUERY)
		record->flags = wait->flags; /* of the last answer */
	if (record->holder != wait->holder) /* several threads had it */
		record->holder = 0;
}

static void write_record(struct spy_thread *thread, const struct spy_outside *wait, uint64_t now)
{
	struct spy_rec_outside *record = (struct spy_rec_outside *)thread->head;
	uint64_t duration = now - wait->start;

	if (!spy_thread_has_room_outside(thread, sizeof(*record)))
		return;
	if (duration > DURATION_MAX)
		duration = DURATION_MAX;
	*record = (struct spy_rec_outside){
		.time = now,
		.event = SPY_EV_OUTSIDE,
		.kind = wait->kind,
		.file = wait->is_file ? file_kind((int)wait->object) : SPY_FILE_UNKNOWN,
		.count = 1,
		.duration = duration,
		.flags = wait->flags,
		.span = duration,
		.at_once = wait->at_once,
		.ready = wait->ready,
		.caller = wait->caller,
		.object = wait->object,
		.holder = wait->holder,
	};
	if (is_gil(wait))
		record->flags |= SPY_WAIT_GIL;
	thread->row = thread->head;
	spy_thread_publish(thread, now, sizeof(*record));
}

/* Sleeping until the next question to a GPU: the board shows that wait. */
static bool sleeps_between_questions(const struct spy_thread *thread, uint8_t kind)
{
	return thread->page->outside_kind == SPY_WAIT_QUERY + 1 &&
	       (kind == SPY_WAIT_SLEEP || kind == SPY_WAIT_YIELD) && spy_query_is_open(thread);
}

void spy_outside_show_on(struct spy_slot_page *page, const struct spy_outside *wait)
{
	spy_board_show(page->outside_kind, 0);
	spy_board_show(page->outside_object, wait->object);
	spy_board_show(page->outside_holder, wait->holder);
	spy_board_show(page->outside_since, wait->start);
	spy_board_show(page->outside_caller, wait->caller);
	spy_board_show(page->outside_calls, (uint16_t)page->calls);
	__atomic_store_n(&page->outside_kind, (uint8_t)(wait->kind + 1), __ATOMIC_RELEASE);
}

/* At work meanwhile: a handler may fork, and the child has no board. */
void spy_outside_show(const struct spy_outside *wait)
{
	struct spy_thread *thread = spy_self;

	if (!spy_is_outside() || !spy_thread_try_work(thread, __builtin_frame_address(0)))
		return;
	if (!sleeps_between_questions(thread, wait->kind))
		spy_outside_show_on(thread->page, wait);
	spy_thread_end_work(thread);
}

void spy_outside_hide(void)
{
	struct spy_thread *thread = spy_self;

	if (!spy_is_outside() || !spy_thread_try_work(thread, __builtin_frame_address(0)))
		return;
	if (thread->page->outside_kind != SPY_WAIT_QUERY + 1)
		spy_board_show(thread->page->outside_kind, 0);
	spy_thread_end_work(thread);
}

/* Does it take long from here on, and not before? Then it gets a stack, and a record behind that. */
static bool becomes_long(const struct spy_outside *wait, uint64_t begun, uint64_t now)
{
	return now - begun >= spy_long_gap && wait->start - begun < spy_long_gap &&
	       wait->start != begun;
}

void spy_outside_add(struct spy_thread *thread, const struct spy_outside *wait, uint64_t begun,
		     uint64_t now)
{
	struct spy_rec_outside *row = row_of(thread, wait);
	struct spy_outside whole = *wait;

	if (!spy_window_is_open() || wait->start < spy_window_opened_at())
		return;
	thread->waited += now - wait->start;
	if (row && !becomes_long(wait, begun, now)) {
		join_row(row, wait, now);
		spy_thread_publish(thread, now, 0);
		return;
	}
	whole.start = begun;
	spy_stack_wait(thread, &whole, now);
	write_record(thread, wait, now);
}

static void write_wait(struct spy_thread *thread, struct spy_outside *wait)
{
	uint64_t now, begun;

	/* Before the look at the clock: times must not decrease. */
	if (wait->holder && !row_of(thread, wait) &&
	    spy_thread_has_room_outside(thread, NAMED_ROOM))
		spy_wait_name_holder(thread, wait->holder);
	now = spy_clock();
	begun = spy_query_slept(thread, wait, now) ? thread->query.begun : wait->start;
	spy_outside_add(thread, wait, begun, now);
}

void spy_outside_write(const struct spy_outside *wait)
{
	struct spy_thread *thread = spy_self;
	struct spy_outside waited = *wait;
	uint64_t ended = spy_clock(), work;
	int error = errno;

	if (!spy_window_is_open() || wait->start < spy_window_opened_at() || !spy_is_outside() ||
	    !spy_thread_try_work(thread, __builtin_frame_address(0)))
		return;
	work = time_of_work(thread, wait);
	if (!work ||
	    (work < ended - wait->start && ended - wait->start - work >= spy_outside_least)) {
		waited.start += work;
		write_wait(thread, &waited);
	}
	spy_thread_end_work(thread);
	errno = error;
}
