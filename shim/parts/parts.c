/*
 * shim/parts/parts.c: a part of the recording ends, and the next one begins. Runs on whatever thread sees that it is due, on
 * the recorder's own stack.
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include "describe/describe.h"
#include "parts/parts.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/board.h"
#include "record/message.h"
#include "state/session.h"

static struct spy_part_options wanted;

static struct spy_parts *parts(void)
{
	return &spy_session->parts;
}

/* ---- times ----------------------------------------------------------------------------------- */

static uint64_t cycles(uint64_t ns)
{
	return (uint64_t)((double)ns * (double)atomic_load(&spy_session->frequency) / 1e9);
}

static uint64_t end_of_part(uint64_t now)
{
	return wanted.ns ? now + cycles(wanted.ns) : UINT64_MAX;
}

bool spy_parts_have_time(void)
{
	return spy_session_active() && (wanted.ns || wanted.keep_ns);
}

/* ---- what there is ----------------------------------------------------------------------------- */

#define FILES_BYTES ((uint64_t)(48 << 10)) /* of a part's metadata and of its board, about */

/* On the disk, of the part that is being written. */
static uint64_t bytes_of_part(void)
{
	uint64_t used = atomic_load(&spy_session->used);
	uint64_t finished = atomic_load(&parts()->finished_bytes);

	return used > finished ? used - finished : 0;
}

/* ---- records ---------------------------------------------------------------------------------- */

/* What is known of a part stays when it is removed, until so many others have been finished. */
static struct spy_rec_part describe(enum spy_part_state state, uint32_t number)
{
	uint32_t removed = atomic_load(&parts()->removed);
	const struct spy_part *last = &spy_finished_parts[removed % SPY_PARTS_MOST];

	return (struct spy_rec_part){.head.event = SPY_EV_PART,
				     .state = (uint16_t)state,
				     .number = number,
				     .since = spy_parts_begun_at(number),
				     .removed = removed,
				     .removed_calls = removed ? last->so_far.calls : 0,
				     .removed_until = removed ? last->end : 0,
				     .recording_began = spy_session->begun.clock};
}

void spy_parts_record_begin(void)
{
	uint32_t number = atomic_load(&spy_session->part);
	struct spy_rec_part record = describe(SPY_PART_BEGIN, number);
	struct spy_rec_window windows[2];
	int n = spy_window_describe(windows);
	struct spy_rec_clock clock = {.head.event = SPY_EV_CLOCK};
	struct spy_clock_pair now;

	spy_session_put(&record, sizeof(record));
	spy_repeated_each(spy_session_put);
	for (int i = 0; i < n; i++)
		spy_session_put(&windows[i], sizeof(windows[i]));
	record.state = SPY_PART_REPEATED;
	spy_session_put(&record, sizeof(record));
	spy_clock_read_pair(&now);
	clock.monotonic_ns = now.monotonic_ns;
	clock.realtime_ns = now.realtime_ns;
	spy_session_put(&clock, sizeof(clock));
	atomic_store(&parts()->removed_recorded, record.removed);
}

void spy_parts_record_removed(void)
{
	struct spy_rec_part record, *place;

	if (atomic_load(&parts()->removed_recorded) == atomic_load(&parts()->removed))
		return;
	place = spy_session_offer(SPY_EV_PART, sizeof(*place));
	if (!place)
		return;
	record = describe(SPY_PART_REMOVED, atomic_load(&spy_session->part));
	record.head = place->head;
	*place = record;
	atomic_store(&parts()->removed_recorded, record.removed);
	spy_session_commit(sizeof(*place));
}

/* ---- from one part to the next ------------------------------------------------------------------ */

/*
 * How far a slot has come. Its owner goes on writing meanwhile; records move the head when they are complete, and at most
 * the one in the making is on the other side. A slot that has not moved on since an earlier part keeps that one's note.
 */
__attribute__((no_sanitize("thread"))) static void note_cut(struct spy_thread *thread,
							    uint32_t number)
{
	const struct spy_stream_file *file = &thread->file;

	if (!thread->page || !file->packet || atomic_load(&file->part) < number)
		return;
	thread->cut.seq = file->seq;
	thread->cut.head = thread->head;
	thread->cut.so_far = (struct spy_tally){thread->page->calls, thread->page->lost};
	if (atomic_load(&file->began_in) > number) /* it has moved on meanwhile */
		thread->cut.so_far = file->began;
	else
		atomic_store(&thread->cut.part, number);
}

/* In all parts so far: of each slot up to its last cut. */
static struct spy_tally sum_cuts(void)
{
	struct spy_tally sum = {0};

	for (uint32_t slot = 1; slot < atomic_load(&spy_session->slots); slot++) {
		sum.calls += spy_threads[slot].cut.so_far.calls;
		sum.lost += spy_threads[slot].cut.so_far.lost;
	}
	return sum;
}

static void finish(uint32_t number, uint32_t suffix, struct spy_tally so_far, uint64_t now)
{
	struct spy_part *part = &spy_finished_parts[number % SPY_PARTS_MOST];
	uint64_t bytes = bytes_of_part();

	*part = (struct spy_part){.number = number,
				  .suffix = suffix,
				  .folder = spy_folder_id(number),
				  .bytes = bytes,
				  .so_far = so_far,
				  .end = now};
	atomic_fetch_add(&parts()->finished_bytes, bytes);
	atomic_fetch_add(&spy_session->used, FILES_BYTES); /* of the next one */
	atomic_store(&parts()->next, number + 1);
}

/* Returns how much the part has lost that is no slot's. Session lock held. */
static uint64_t turn(uint32_t number, uint32_t suffix)
{
	struct spy_rec_part end = describe(SPY_PART_END, number), *last;
	uint64_t lost = __atomic_exchange_n(&spy_session->board->lost, 0, __ATOMIC_RELAXED);
	struct spy_tally so_far;
	uint64_t now;

	parts()->lost += lost;
	last = spy_session_put(&end, sizeof(end));
	now = spy_clock();
	atomic_store(&parts()->begun_at[(number + 1) % 2], now);
	atomic_store(&parts()->due, end_of_part(now));
	atomic_store(&spy_session->part, number + 1);
	spy_board_show(spy_session->board->part, number + 1);
	for (uint32_t slot = 1; slot < atomic_load(&spy_session->slots); slot++) {
		note_cut(&spy_threads[slot], number);
		spy_thread_call_back(&spy_threads[slot]);
	}
	for (size_t i = 0; i < SPY_NONCUDA_THREADS; i++)
		__atomic_store_n(&spy_session->noncuda_threads[i], 0, __ATOMIC_RELAXED);
	so_far = sum_cuts();
	/* There are fewer, where records of earlier parts were found to be lost. */
	if (last && so_far.calls > parts()->calls)
		last->calls = so_far.calls - parts()->calls;
	finish(number, suffix, so_far, now);
	parts()->calls = so_far.calls;
	parts()->windows = spy_board_see(spy_session->board->windows);
	/* All of slot 0 stays: it moves on now, and tells what the part begins with. */
	spy_session_turn();
	return lost;
}

/* The frequency is known better the longer it runs. */
static void measure_frequency(void)
{
	struct spy_clock_pair now;
	uint64_t frequency;

	spy_clock_read_pair(&now);
	frequency = spy_clock_frequency(&spy_session->begun, &now);
	if (!frequency)
		return;
	spy_session->board->frequency = frequency;
	atomic_store(&spy_session->frequency, frequency);
}

/* From one part to the next, whose session stream has room there. 0 or -errno: then nothing has changed. Session lock held. */
static int go_on(uint32_t number, uint32_t suffix, uint64_t *lost)
{
	int error = spy_stream_prepare(number + 1);

	if (error)
		return error;
	error = spy_folder_exchange(number + 1, suffix);
	if (error)
		spy_stream_unprepare(number + 1);
	else
		*lost = turn(number, suffix);
	return error;
}

static int begin_part(void)
{
	uint32_t number = atomic_load(&spy_session->part), suffix;
	uint64_t lost = 0;
	int error;

	/* A thread may be at work in the folder of the part before, still. */
	if (atomic_load(&parts()->inside[(number + 1) % 2]))
		return -EAGAIN;
	if (!spy_folder_has_room(SPY_PACKET_BYTES))
		return -ENOSPC;
	measure_frequency();
	error = spy_folder_begin_part(number + 1, &suffix);
	if (error)
		return error;
	error = spy_metadata_write(spy_session, number + 1);
	if (!error && !spy_lock(&spy_session->lock))
		error = -EAGAIN;
	if (!error) {
		error = go_on(number, suffix, &lost);
		spy_unlock(&spy_session->lock);
	}
	if (error) {
		spy_folder_drop_part(number + 1, suffix);
		return error;
	}
	spy_board_finish(number, lost);
	spy_metadata_write(spy_session, number);
	return 0;
}

static void rotate_on_own_stack(void *data)
{
	int *error = data;

	*error = -EAGAIN;
	if (!spy_session_active() || spy_session->pid != (int)spy_syscall(SYS_getpid) ||
	    atomic_exchange(&parts()->busy, true))
		return;
	*error = begin_part();
	atomic_store(&parts()->busy, false);
}

#define TRIES 100

/* What is in the way lasts for as long as a packet takes to be stored. */
int spy_parts_rotate(void)
{
	const struct timespec a_moment = {.tv_nsec = 100000};
	int error = -EAGAIN;

	for (int i = 0; i < TRIES && error == -EAGAIN; i++) {
		if (i)
			spy_syscall(SYS_nanosleep, &a_moment, NULL);
		spy_own_stack_run(rotate_on_own_stack, &error);
	}
	return error;
}

/* ---- by itself ---------------------------------------------------------------------------------- */

/* Not where little more is in it than what each part has: parts would follow one another at each look. */
static bool is_large(void)
{
	uint64_t bytes = bytes_of_part(), each = FILES_BYTES + spy_stream_first_bytes();

	return wanted.bytes && bytes >= wanted.bytes && bytes >= each + each / 2;
}

static bool is_due(uint64_t now)
{
	if (is_large())
		return true;
	/* Where nothing is recorded, nothing is to be put away. */
	return now >= atomic_load(&parts()->due) &&
	       (spy_window_is_open() ||
		spy_board_see(spy_session->board->windows) != parts()->windows);
}

#define RETRY_NS 100000000
/* Another thread is at it, or stores a packet in the folder of the part before */
#define RETRY_SOON_NS 1000000

/* Times as long as a look took: a slow disk with parts of milliseconds does not stop the program */
#define REST 20

static _Atomic uint64_t paused_until;

static void look_on_own_stack(void *data)
{
	static _Atomic uint64_t retry_at;
	uint64_t now = *(const uint64_t *)data;
	int error = 0;

	if (is_due(now) && now >= atomic_load(&retry_at))
		rotate_on_own_stack(&error);
	if (error) {
		atomic_store(&retry_at, now + cycles(error == -EAGAIN ? RETRY_SOON_NS : RETRY_NS));
		if (error != -EAGAIN)
			spy_warn_not_stored(error);
	}
	spy_parts_expire(now);
	spy_parts_record_removed();
	now = spy_clock() - now; /* so long it took */
	atomic_store(&paused_until, spy_clock() + REST * now);
}

static bool is_anything_due(uint64_t now)
{
	if (is_large())
		return true;
	return now >= atomic_load_explicit(&paused_until, memory_order_relaxed) &&
	       (is_due(now) || spy_parts_are_kept_too_long(now) ||
		atomic_load(&parts()->removed_recorded) != atomic_load(&parts()->removed));
}

/* Where nothing is to be done, which is nearly always, the own stack and its signal mask are not needed: the mask is
 * changed under a lock that all threads of the process share. */
void spy_parts_look(struct spy_thread *thread, uint64_t now, bool between)
{
	(void)thread;
	if (between && spy_session_active() && is_anything_due(now))
		spy_own_stack_run(look_on_own_stack, &now);
}

/* ---- sessions ------------------------------------------------------------------------------------ */

void spy_parts_begin(uint64_t frequency)
{
	uint64_t now = spy_clock();

	(void)frequency;
	if (spy_options_parts(&wanted))
		atomic_fetch_add(&spy_session->used, FILES_BYTES);
	atomic_store(&parts()->begun_at[1], now);
	atomic_store(&parts()->due, end_of_part(now));
	atomic_store(&parts()->oldest, 1);
	atomic_store(&parts()->next, 1);
	spy_session->board->part = 1;
}

static void take(_Atomic bool *busy)
{
	const struct timespec a_moment = {.tv_nsec = 100000};

	for (int i = 0; i < 500 && atomic_exchange(busy, true); i++)
		spy_syscall(SYS_nanosleep, &a_moment, NULL);
}

void spy_parts_end(void)
{
	take(&parts()->busy);
	take(&parts()->removing);
}

/*
 * What a thread has written since its part ended, and has not taken along to another one, is deleted with that part. If it
 * found no room in the others, that is lost; else it made no call since, and what there is was part of those deleted.
 */
__attribute__((no_sanitize("thread"))) static void count_in_deleted(struct spy_thread *thread)
{
	uint64_t calls = thread->page->calls, written = calls - thread->cut.so_far.calls;

	if (!spy_stream_is_deleted(&thread->file) || calls <= thread->cut.so_far.calls)
		return;
	if (!thread->retry_at) {
		spy_session->board->removed_calls += written;
		return;
	}
	__atomic_store_n(&thread->page->calls, calls - written, __ATOMIC_RELAXED);
	__atomic_fetch_add(&thread->page->lost, written, __ATOMIC_RELAXED);
}

void spy_parts_count_in_deleted(void)
{
	for (uint32_t slot = 1; slot < atomic_load(&spy_session->slots); slot++)
		count_in_deleted(&spy_threads[slot]);
}
