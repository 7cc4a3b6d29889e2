/*
 * shim/entry/lifecycle.c: one process' recording begins with the first CUDA call, ends with the
 * process, and begins anew in a forked child. What the shim's subsystems do at these turns is in their own files, and who they
 * are in subsystems.c. Runs on whatever thread gets there; everything here is rare.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "describe/describe.h"
#include "entry/lifecycle.h"
#include "entry/subsystems.h"
#include "hook/slots.h"
#include "lib/signal_guard.h"
#include "process/folder.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/notes.h"
#include "record/truncation.h"
#include "record/board.h"
#include "record/message.h"
#include "state/session.h"

static int last_pid; /* whose the inspectors' tables are: the parent's after a fork */
static char first_directory[SPY_PATH_MAX]; /* where the program was started */

/* ---- before anything else ------------------------------------------------------------------- */

static int begin_recording(void);

static pthread_once_t once = PTHREAD_ONCE_INIT;

static int forked_pid; /* of the last child that has run after_fork_in_child */

/*
 * What other threads of the parent held is free in the child. fork waits for none of them: a signal
 * handler may have called it, and have interrupted the holder. Pages that a child never needs are
 * not touched.
 */
static void after_fork_in_child(void)
{
	spy_fork_child();
	forked_pid = (int)spy_syscall(SYS_getpid);
	spy_folder_forget();
	spy_truncation_forked();
	SPY_EACH(forked);
}

static void init(void)
{
	/* Kernels before 4.14 and some emulations wipe nothing. It runs before what follows. */
	if (!spy_session_init())
		pthread_atfork(NULL, NULL, spy_session_wipe);
	spy_options_read();
	last_pid = (int)spy_syscall(SYS_getpid);
	pthread_atfork(spy_fork_before, spy_fork_after, after_fork_in_child);
	spy_thread_init();
	spy_subsystems = spy_all_subsystems;
	spy_begin_recording = begin_recording;
	SPY_EACH(load);
	spy_clock_init(spy_options.clock && strcmp(spy_options.clock, "monotonic") == 0);
	spy_clock_read_pair(&spy_loaded);
	spy_message_init();
	if (!getcwd(first_directory, sizeof(first_directory)))
		first_directory[0] = '\0';
	/* A program with more rights than its caller is not to write files for its caller. */
	if (getauxval(AT_SECURE) || spy_options.disable) {
		spy_slots_disable();
		spy_session->state = SPY_SESSION_FAILED;
		return;
	}
	SPY_EACH(init);
}

static _Atomic bool ready;

static void init_guarded(void)
{
	SPY_SIGNAL_GUARD;

	pthread_once(&once, init);
	atomic_store(&ready, true);
}

void spy_lifecycle_init(void)
{
	if (!atomic_load_explicit(&ready, memory_order_acquire))
		init_guarded();
}

__attribute__((constructor(102))) static void load(void)
{
	spy_lifecycle_init();
	/* Not before: a program may call us before the C library has its environment. */
	SPY_EACH(arrange);
}

/* ---- beginning ------------------------------------------------------------------------------ */

/* A folder of our own. A relative parent is relative to where the program was started. 0 or
 * -errno. */
static int make_folder(void)
{
	const char *parent = spy_options.out ? spy_options.out : first_directory;
	char absolute[SPY_PATH_MAX];
	int length =
		snprintf(absolute, sizeof(absolute), "%s%s%s",
			 *parent == '/' ? "" : first_directory, *parent == '/' ? "" : "/", parent);

	if (length < 0 || (size_t)length >= sizeof(absolute))
		return -ENAMETOOLONG;
	return spy_folder_create(spy_session->directory, sizeof(spy_session->directory), absolute,
				 spy_session->pid);
}

/* Measured since the library was loaded, or, if that was just now, for a millisecond. */
static uint64_t measure_frequency(struct spy_clock_pair *now)
{
	uint64_t frequency;

	do {
		spy_clock_read_pair(now);
		frequency = spy_clock_frequency(&spy_loaded, now);
	} while (!frequency);
	return frequency;
}

static void make_uuid(uint8_t uuid[16])
{
	if (getrandom(uuid, 16, GRND_NONBLOCK) != 16)
		memcpy(uuid, &spy_session->begun, 16);
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40); /* RFC 4122: version 4 */
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

/* The trace's clock and the system's, as they are now. */
static void write_clock_record(void)
{
	struct spy_rec_clock *record = spy_session_append(SPY_EV_CLOCK, sizeof(*record));
	struct spy_clock_pair now;

	if (!record)
		return;
	spy_clock_read_pair(&now);
	record->head.time = now.clock; /* later than when the record was begun */
	record->reserved = 0;
	record->reserved2 = 0;
	record->monotonic_ns = now.monotonic_ns;
	record->realtime_ns = now.realtime_ns;
	spy_session_commit(sizeof(*record));
}

static int begin_files(void)
{
	struct spy_board *board;
	int error = spy_session_map_tables() ? make_folder() : -ENOMEM;

	if (error)
		return error;
	spy_session->part = 1;
	spy_session->frequency = measure_frequency(&spy_session->begun);
	spy_probing = !spy_options.noprobes;
	make_uuid(spy_session->uuid);
	error = spy_board_create(&board);
	if (error)
		return error;
	spy_session->slots = 1;
	spy_board_fill(board);
	spy_session->board = board;
	error = spy_metadata_write(spy_session, 1);
	if (error)
		return error;
	SPY_EACH(begin, spy_session->frequency);
	spy_threads[0].tid = (uint32_t)spy_session->pid;
	return spy_stream_make_room(&spy_threads[0]);
}

/* What is known when a session begins. */
static void write_first_records(void)
{
	write_clock_record();
	SPY_EACH(first_records);
}

static bool forget_parent(void)
{
	for (const struct spy_subsystem *each = spy_subsystems; each->name; each++)
		if (each->forget_parent && !each->forget_parent())
			return false;
	return true;
}

/* Do the tables that outlive a recording belong to this process? If not, they are emptied. False: not yet. */
static bool take_over_tables(void)
{
	int pid = (int)spy_syscall(SYS_getpid);

	spy_session->pid = pid;
	if (last_pid == pid)
		return true;
	if (forked_pid != pid) /* by clone or _Fork */
		after_fork_in_child();
	if (!spy_fork_is_handled() || !forget_parent())
		return false;
	last_pid = pid;
	return true;
}

/* Other threads wait for that. */
static void has_begun(enum spy_session_state state)
{
	atomic_store(&spy_session->state, (int)state);
	spy_syscall(SYS_futex, &spy_session->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static enum spy_session_state begin_alone(void)
{
	int error;

	spy_truncation_watch();
	error = begin_files();
	if (error)
		spy_slots_disable();
	has_begun(error ? SPY_SESSION_FAILED : SPY_SESSION_ACTIVE);
	if (error)
		spy_message("cannot write a trace to %s: %s; the program goes on without being "
			    "recorded (CUDASPY_OUT=DIR chooses another place)",
			    spy_session->directory, spy_message_reason(error));
	else
		write_first_records();
	return error ? SPY_SESSION_FAILED : SPY_SESSION_ACTIVE;
}

static int begin_recording(void)
{
	int state = SPY_SESSION_NONE;

	if (!atomic_compare_exchange_strong(&spy_session->state, &state, SPY_SESSION_BEGINNING))
		return state;
	if (take_over_tables())
		return begin_alone();
	has_begun(SPY_SESSION_NONE);
	return SPY_SESSION_NONE;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* A page that the disk had no room for goes with the process: what is counted nowhere else is
 * lost. */
static void count_unbacked_page(const struct spy_thread *thread)
{
	uint64_t lost = 0;

	if (spy_board_backs(spy_session->board, thread->page))
		return;
	for (size_t i = 0; i < SPY_BOARD_COUNTERS; i++)
		lost += __atomic_exchange_n(&thread->page->counts[i], 0, __ATOMIC_RELAXED);
	/* A packet has the number of lost calls. */
	if (!thread->packet || spy_stream_is_deleted(&thread->file))
		lost += __atomic_exchange_n(&thread->page->lost, 0, __ATOMIC_RELAXED);
	__atomic_fetch_add(&spy_session->board->lost, lost, __ATOMIC_RELAXED);
}

static void close_with_a_line(void)
{
	uint64_t calls = 0, pageable = 0, lost = 0;
	uint64_t untold = atomic_load(&spy_session->untold);
	char others[64] = "";

	for (uint32_t slot = 1; slot < atomic_load(&spy_session->slots); slot++) {
		const struct spy_slot_page *page = spy_threads[slot].page;

		count_unbacked_page(&spy_threads[slot]);

		/* their threads may still count */
		calls += __atomic_load_n(&page->calls, __ATOMIC_RELAXED);
		pageable += __atomic_load_n(&page->pageable, __ATOMIC_RELAXED);
		lost += __atomic_load_n(&page->lost, __ATOMIC_RELAXED);
	}
	lost += spy_session->parts.lost;
	lost += __atomic_add_fetch(&spy_session->board->lost, spy_session_take_lost(),
				   __ATOMIC_RELAXED);
	/* As the report has them: its LOSSES count the session's own, too. */
	if (untold)
		snprintf(others, sizeof(others), ", and %llu records that are no calls",
			 (unsigned long long)untold);
	spy_message("%s: %llu calls (nested ones included), %llu pageable async cop%s, %llu lost%s",
		    spy_session->directory, (unsigned long long)calls, (unsigned long long)pageable,
		    pageable == 1 ? "y" : "ies", (unsigned long long)lost, others);
}

/*
 * From here on a full packet of another thread stays where it is, and what comes after it is lost:
 * half a packet in a stream's file would cost more. Pairs with begin_store. Bounded, because a
 * signal handler may have interrupted a store of its own thread.
 */
static void wait_for_stores(void)
{
	const struct timespec a_moment = {.tv_nsec = 100000};

	_Atomic int *inside = spy_session->parts.inside;

	atomic_store(&spy_session->ender, spy_lock_self());
	for (int i = 0; i < 500 && (atomic_load(&inside[0]) || atomic_load(&inside[1])); i++)
		spy_syscall(SYS_nanosleep, &a_moment, NULL);
}

/* A file that was not written to since may have been truncated. */
static void look_at_files(void)
{
	for (uint32_t slot = 0; slot < atomic_load(&spy_session->slots); slot++)
		if (!spy_stream_is_whole(&spy_threads[slot]))
			atomic_store(&spy_session->damaged, true);
}

/* What a signal handler may not do: it may have interrupted malloc, or ourselves. */
static void complete_trace(bool refined)
{
	SPY_EACH_BACKWARDS(end);
	look_at_files();
	spy_warn_damaged();
	write_clock_record();
	if (spy_self->page && !spy_self->depth && spy_self->counts_turn)
		spy_thread_wake(spy_self);
	if (spy_self->page && !spy_self->depth && !spy_self->asleep)
		spy_thread_flush_counts(spy_self);
	if (spy_lock_timeouts)
		spy_note(SPY_NOTE_OTHER,
			 "cudaspy could not take a lock of its own %llu times; what it should "
			 "have recorded about memory, streams or kernels then is unknown",
			 (unsigned long long)spy_lock_timeouts);
	if (refined)
		spy_metadata_write(spy_session, spy_session->part);
}

/* Most processes that are forked make few calls, and many programs fork hundreds. Tails of other threads stay: they may still
 * write. */
static void give_room_back(void)
{
	if (spy_self->page)
		spy_stream_give_back(spy_self);
	if (!spy_try_lock(&spy_session->lock)) /* nor is it worth a wait */
		return;
	spy_stream_give_back(&spy_threads[0]);
	spy_unlock(&spy_session->lock);
}

#define PAIR_ERROR_NS 1000 /* two clocks are not read at once */

/* Does a frequency that was measured over so many cycles say more than the one before? Where it moves no time of the recording by more
 * than it may be wrong itself, the files stay as they are: a forked child's are written once. */
static bool is_finer(uint64_t frequency, uint64_t cycles)
{
	uint64_t before = atomic_load(&spy_session->frequency);
	uint64_t apart = frequency > before ? frequency - before : before - frequency;
	double seconds = (double)cycles / (double)before;

	return seconds * (double)apart / (double)before * 1e9 > PAIR_ERROR_NS;
}

static void end_on_own_stack(void *data)
{
	const bool *from_signal = data;
	struct spy_clock_pair now;
	uint64_t frequency;
	bool refined;

	/* A child of vfork has our memory, but is not us. */
	if (!spy_session_active() || spy_session->pid != (int)spy_syscall(SYS_getpid) ||
	    atomic_exchange(&spy_session->ended, true))
		return;
	SPY_EACH(stop);
	spy_clock_read_pair(&now);
	/* Over the whole run the frequency is known better. */
	frequency = spy_clock_frequency(&spy_session->begun, &now);
	refined = frequency && is_finer(frequency, now.clock - spy_session->begun.clock);
	if (refined) {
		spy_session->board->frequency = frequency;
		atomic_store(&spy_session->frequency, frequency);
	}
	if (!*from_signal) /* what was another user's is written again by the one that it is given to */
		complete_trace(refined || spy_session->given);
	wait_for_stores();
	spy_truncation_repair(NULL);
	SPY_EACH(final);
	spy_session->board->ended = 1;
	close_with_a_line();
	give_room_back();
	spy_truncation_repair(NULL);
}

void spy_lifecycle_end(bool from_signal)
{
	spy_own_stack_run(end_on_own_stack, &from_signal);
}

__attribute__((destructor(101))) static void unload(void)
{
	spy_lifecycle_end(false);
}

/* A program that leaves by _exit runs no destructor; and _exit is what signal handlers call. */
void _exit(int status) __attribute__((visibility("default")));
void _Exit(int status) __attribute__((visibility("default"), alias("_exit")));

void _exit(int status)
{
	if (spy_session)
		spy_lifecycle_end(true);
	for (;;)
		spy_syscall(SYS_exit_group, status);
}
