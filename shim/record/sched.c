/*
 * shim/record/sched.c: the kernel's account of a thread, looked at after long calls. Runs on the
 * application's threads, when a call of their own has returned, or begins after a long while.
 *
 * The time on a CPU costs one short system call. The time ready to run and on none is in a file,
 * which takes ten times as long to read: long enough to change who gets a lock next where threads
 * wait for it in rows. So it is read only if the call's time is not explained without it, by the
 * time on a CPU and the waits for locks, or if the thread was kept waiting for a CPU lately, or if
 * the last look was long ago.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "lib/signal_guard.h"
#include "lib/clock.h"
#include "record/sched.h"
#include "state/session.h"

#pragma GCC poison malloc calloc realloc fopen

#define LOOK_AGAIN 500
#define DELAY_AGAIN 10
#define PROCESS_AGAIN 100
#define LACKED_CPU_PART 50 /* that part of the time without a CPU, or more */
#define UNEXPLAINED 8 /* that part of the time, or more */

uint64_t spy_long_call = UINT64_MAX, spy_look_again = UINT64_MAX;
static uint64_t delay_again, process_again;
static _Atomic uint64_t process_looked_at;
static bool blind; /* the kernel's account is not to be had, or not wanted */

void spy_sched_begin(uint64_t frequency)
{
	spy_long_call = UINT64_MAX;
	spy_look_again = frequency / LOOK_AGAIN;
	blind = !spy_probing;
	if (blind)
		return;
	spy_long_call = frequency / (1000000000 / SPY_LOOKED_AT_NS);
	delay_again = frequency / DELAY_AGAIN;
	process_again = frequency / PROCESS_AGAIN;
	atomic_store(&process_looked_at, 0);
}

static uint64_t time_on_cpu_ns(clockid_t whose)
{
	struct timespec time;

	if (clock_gettime(whose, &time))
		return 0;
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t spy_sched_ran_ns(void)
{
	return time_on_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Of all threads of the process, for the record: the kernel goes through all of them, so that one of them looks, and not always.
 * 0: it did not. */
static uint32_t process_ran(uint64_t now)
{
	uint64_t before = atomic_load_explicit(&process_looked_at, memory_order_relaxed);

	if ((int64_t)(now - before) < (int64_t)process_again ||
	    !atomic_compare_exchange_strong_explicit(&process_looked_at, &before, now,
						     memory_order_relaxed, memory_order_relaxed))
		return 0;
	return (uint32_t)(time_on_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) / SPY_RAN_UNIT) ?: 1;
}

/* The thread's time ready to run but on no CPU: the second number of
 * Documentation/scheduler/sched-stats.rst of the kernel. False where there is no such file. */
static bool read_delay(uint64_t *delay_ns)
{
	ssize_t length = -1;
	char text[96], *end;
	int fd;

	fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (length <= 0)
		return false;
	text[length] = '\0';
	strtoull(text, &end, 10);
	*delay_ns = strtoull(end, NULL, 10);
	return true;
}

uint64_t spy_sched_delay_ns(void)
{
	static bool unknown;
	uint64_t delay_ns = 0;
	int error = errno;
	SPY_SIGNAL_GUARD;

	if (!unknown && !read_delay(&delay_ns))
		unknown = true;
	errno = error;
	return delay_ns;
}

static uint64_t ns_of(uint64_t cycles)
{
	return (uint64_t)((double)cycles * 1e9 / (double)atomic_load(&spy_session->frequency));
}

/* Was the file read a short time ago, and was the thread not kept waiting then? */
static bool has_free_cpu(const struct spy_thread *thread, uint64_t now)
{
	return thread->delay_at && !thread->lacked_cpu && now - thread->delay_at < delay_again;
}

/* Is the time clear without the file, of which the thread ran for ran_ns? */
static bool is_explained(const struct spy_thread *thread, uint64_t window_ns, uint64_t ran_ns)
{
	return window_ns < ran_ns + ns_of(thread->waited) + window_ns / UNEXPLAINED;
}

/* How long the thread was kept waiting for a CPU since the last look into the file. False:
 * unknown. */
static bool look_at_delay(struct spy_thread *thread, uint64_t now, uint64_t *delay_ns)
{
	uint64_t delay_before_ns = thread->delay_ns, at_before = thread->delay_at;
	SPY_SIGNAL_GUARD;

	if (!read_delay(&thread->delay_ns))
		return false;
	thread->delay_at = now;
	*delay_ns = at_before ? thread->delay_ns - delay_before_ns : 0;
	thread->lacked_cpu = at_before && *delay_ns >= ns_of(now - at_before) / LACKED_CPU_PART;
	return true;
}

/* What the kernel says of the thread's time since the last look. */
struct account {
	uint64_t window; /* cycles */
	uint64_t delay_ns, unknown_ns, ran_ns;
};

static void write_record(struct spy_thread *thread, enum spy_event event, uint64_t now,
			 const struct account *account)
{
	struct spy_rec_sched *record = (struct spy_rec_sched *)thread->head;
	uint64_t unknown = (account->unknown_ns + SPY_UNKNOWN_UNIT - 1) / SPY_UNKNOWN_UNIT;

	/* The call's own record comes behind it, and the call may no longer count as in
	 * progress. */
	if (!spy_thread_has_room(thread, sizeof(*record) + SPY_RECORD_MAX)) {
		spy_thread_count_lost(thread);
		return;
	}
	*record = (struct spy_rec_sched){
		.time = now,
		.event = event,
		.unknown = unknown < UINT16_MAX ? (uint16_t)unknown : UINT16_MAX,
		.process_ran = process_ran(now),
		.window = account->window,
		.not_running_ns = account->delay_ns,
		.running_ns = account->ran_ns,
	};
	spy_thread_publish(thread, now, sizeof(*record));
}

void spy_sched_look_later(struct spy_thread *thread)
{
	uint64_t at = thread->ran_at + spy_look_again;

	spy_thread_look_at(thread, at < thread->cost.phase.end ? at : thread->cost.phase.end);
}

/* Reads the file: of the delay since it was read last, in proportion, what belongs to idle_ns, the time without a CPU since
 * the last look. False: unknown. */
static bool read_account(struct spy_thread *thread, uint64_t at, uint64_t idle_ns,
			 struct account *account)
{
	uint64_t whole_ns;

	if (!look_at_delay(thread, at, &whole_ns))
		return false;
	account->delay_ns = whole_ns;
	if (whole_ns && thread->idle_ns)
		account->delay_ns = (uint64_t)((double)whole_ns * (double)idle_ns /
					       (double)(idle_ns + thread->idle_ns));
	if (whole_ns > idle_ns)
		whole_ns = idle_ns;
	if (account->delay_ns > idle_ns)
		account->delay_ns = idle_ns;
	account->unknown_ns = whole_ns - account->delay_ns;
	return true;
}

/* event: the record to write; SPY_EV_COUNT_ALL: none. */
static void look(struct spy_thread *thread, uint64_t at, enum spy_event event)
{
	bool told = event != SPY_EV_COUNT_ALL;
	int error = errno;
	struct account account = {.window = at - thread->ran_at};
	uint64_t window_ns = ns_of(account.window), idle_ns;
	uint64_t on_cpu_ns = spy_sched_ran_ns(), ran_ns = on_cpu_ns - thread->ran_ns;
	bool first = !thread->ran_at;

	if (ran_ns > window_ns)
		ran_ns = window_ns;
	account.ran_ns = ran_ns;
	idle_ns = window_ns - ran_ns;
	if (!has_free_cpu(thread, at) || (told && !is_explained(thread, window_ns, ran_ns))) {
		if (!read_account(thread, at, idle_ns, &account)) {
			spy_long_call = UINT64_MAX;
			blind = true;
			return;
		}
		thread->idle_ns = 0;
	} else {
		thread->idle_ns += idle_ns;
		account.unknown_ns = idle_ns;
	}
	if (told && !first)
		write_record(thread, event, at, &account);
	thread->ran_at = at;
	spy_sched_look_later(thread);
	thread->ran_ns = on_cpu_ns;
	thread->waited = 0;
	errno = error;
}

void spy_sched_look(struct spy_thread *thread, uint64_t now)
{
	if (spy_cost_probes_off())
		return;
	look(thread, now, SPY_EV_SCHED);
}

bool spy_sched_look_before(struct spy_thread *thread, uint64_t start)
{
	if (blind) {
		thread->ran_at = start;
		spy_sched_look_later(thread);
	} else {
		look(thread, start, SPY_EV_GAP);
	}
	return !blind;
}

void spy_sched_begin_thread(struct spy_thread *thread)
{
	look(thread, spy_clock(), SPY_EV_COUNT_ALL);
}
