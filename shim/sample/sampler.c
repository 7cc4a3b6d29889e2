/*
 * shim/sample/sampler.c: the sampler's thread: when it runs, how often it looks, and at whom. The thread is the recorder's own; what
 * starts, wakes and stops it runs on threads of the program.
 *
 * How often: at intervals drawn between a half and one and a half of the mean, which is what was asked for, or longer: so long that
 * the looks of one interval take a hundredth of it. What a sample stands for is written with it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "hook/loader.h"
#include "lib/signal_guard.h"
#include "process/elf_scan.h"
#include "process/folder.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/notes.h"
#include "sample/look.h"
#include "sample/nvml.h"
#include "sample/places.h"
#include "sample/running.h"
#include "sample/sampler.h"
#include "state/board_fields.h"
#include "state/recorded.h"
#include "state/session.h"

#define CPU_PART 100 /* it takes one part in so many of a CPU */
#define INTERVAL_MOST_NS 1000000000ull
#define LATE_NS 500000
#define MOMENT_NS 300000000
#define LOOKS_OF_START 3 /* map and fill tables, once: they say nothing of what a look takes */
#define LOOKS_MOST 64 /* threads that are looked at, at once; the others come next */
#define STACK_BYTES ((size_t)512 << 10)
#define END_MS 50 /* so long the end waits for a look */
#define GONE_MS 200
#define LEAVE_S 1 /* and who has to be alone, for its threads to end */

enum sampler_state {
	NONE,
	RUNNING,
	OVER /* not again in this process */
};

static _Atomic int state; /* enum sampler_state */
static _Atomic uint32_t asked_to_stop; /* a futex: 1 it ends */
static _Atomic uint32_t turn; /* a futex: grows when a thread records again */
static _Atomic bool at_work;
static _Atomic int sampler_tid;
static const char *
	single_threaded; /* of the C library since 2.32; NULL: it does not say, and nothing is sampled */
static uint64_t asked_ns; /* the mean interval that was asked for; 0: no sampling */

struct sampler {
	pthread_t thread;
	struct spy_places *places;
	struct spy_looked *looked; /* by slot */
	uint64_t random;
	uint64_t interval_ns; /* the mean one, as it is now */
	uint64_t taken_ns; /* what the looks of an interval take, on average */
	uint32_t n; /* intervals, up to LOOKS_OF_START */
	uint32_t next; /* slot that is looked at first */
};

static struct sampler sampler;
static struct spy_question *_Atomic questions; /* in there; NULL: none have been asked */

/* ---- looks ----------------------------------------------------------------------------------- */

/* One more than the last one. */
static uint32_t slots_in_use(void)
{
	uint32_t slots = atomic_load(&spy_session->slots);

	return slots < SPY_BOARD_SLOTS ? slots : SPY_BOARD_SLOTS;
}

static bool is_of_interest(uint32_t slot)
{
	const struct spy_slot_page *page = spy_threads[slot].page;

	return page && spy_board_see(page->tid) && spy_board_see(page->calls);
}

static uint32_t count_threads(uint32_t slots)
{
	uint32_t n = 0;

	for (uint32_t slot = 1; slot < slots; slot++)
		n += is_of_interest(slot);
	return n;
}

static void write_gpu_looks(void)
{
	struct spy_rec_gpu_look look;

	while (spy_places_ready(sampler.places) && spy_nvml_take(&look)) {
		look.head = (struct spy_rec_other){.time = spy_clock(), .event = SPY_EV_GPU_LOOK};
		spy_place_write(sampler.places, &look, sizeof(look));
	}
}

static void look_at_threads(void *data)
{
	uint32_t slots = slots_in_use(), n, looks = 0;
	uint64_t weight_us;

	(void)data;
	n = count_threads(slots);
	weight_us = sampler.interval_ns / 1000;
	if (n > LOOKS_MOST)
		weight_us = weight_us * n / LOOKS_MOST;
	for (uint32_t i = 0; i + 1 < slots && looks < LOOKS_MOST; i++) {
		if (++sampler.next >= slots)
			sampler.next = 1;
		if (!is_of_interest(sampler.next)) {
			spy_running_end(&sampler.looked[sampler.next].running);
			continue;
		}
		looks++;
		spy_look(sampler.places, &sampler.looked[sampler.next], &spy_threads[sampler.next],
			 weight_us);
	}
	write_gpu_looks();
}

static uint64_t own_cpu_ns(void)
{
	struct timespec t = {0};

	spy_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The mean interval from now on. */
static void keep_budget(uint64_t taken_ns)
{
	if (sampler.n < LOOKS_OF_START) {
		sampler.n++;
		return;
	}
	sampler.taken_ns = (7 * sampler.taken_ns + taken_ns) / 8;
	sampler.interval_ns = sampler.taken_ns * CPU_PART;
	if (sampler.interval_ns < asked_ns)
		sampler.interval_ns = asked_ns;
	if (sampler.interval_ns > INTERVAL_MOST_NS)
		sampler.interval_ns = INTERVAL_MOST_NS;
}

static bool is_over(void)
{
	return atomic_load(&asked_to_stop);
}

/* Nobody ends while it is at work, and it begins no work once somebody does. */
static void work(bool in_time)
{
	uint64_t before_ns = own_cpu_ns();

	atomic_store(&at_work, true);
	if (!is_over() && spy_session_active()) {
		spy_board_show(spy_session->board->looked, spy_clock());
		if (in_time)
			spy_own_stack_run(look_at_threads, NULL);
	}
	atomic_store(&at_work, false);
	if (in_time)
		keep_budget(own_cpu_ns() - before_ns);
}

/* ---- the thread ------------------------------------------------------------------------------- */

/* Until then, or until it is to stop. */
static void sleep_until(const struct timespec *until)
{
	spy_syscall(SYS_futex, &asked_to_stop, FUTEX_WAIT_BITSET_PRIVATE, 0, until, NULL,
		    FUTEX_BITSET_MATCH_ANY);
}

/* False: it woke up late, for want of a CPU. Then threads are where they lose theirs, more often than elsewhere: a look would be no
 * sample of their time. */
static bool sleep_an_interval(struct timespec *next)
{
	uint64_t ns = sampler.interval_ns, now_ns = spy_clock_monotonic(), at_ns;

	sampler.random = sampler.random * 6364136223846793005ull + 1442695040888963407ull;
	at_ns = (uint64_t)next->tv_sec * 1000000000 + (uint64_t)next->tv_nsec + ns / 2 +
		(sampler.random >> 33) % ns;
	if (at_ns < now_ns) /* it had no CPU, or the clock was stopped with the machine */
		at_ns = now_ns + ns / 2;
	*next = (struct timespec){(time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000)};
	sleep_until(next);
	return spy_clock_monotonic() - at_ns < LATE_NS;
}

/* No thread is interrupted any more. */
static void leave_threads(void)
{
	uint32_t slots = slots_in_use();

	for (uint32_t slot = 1; slot < slots; slot++)
		spy_running_end(&sampler.looked[slot].running);
}

/* While recording is dormant. The one who ends it, and each thread that records again, wakes it. A program whose recording is
 * dormant for more than a moment is left alone. */
static void sleep_while_dormant(void)
{
	const struct timespec a_moment = {.tv_nsec = MOMENT_NS}, *most = &a_moment;
	uint32_t now;
	long status = 0;

	while (now = atomic_load(&turn), !spy_window_is_open() && !is_over()) {
		status = spy_syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, most, NULL, 0);
		if (status < 0 && errno == ETIMEDOUT) {
			leave_threads();
			most = NULL;
		}
	}
}

static void *run(void *data)
{
	struct timespec next = {0};
	sigset_t before;
	bool in_time;

	(void)data;
	atomic_store(&sampler_tid, (int)spy_syscall(SYS_gettid));
	spy_signals_hold(&before);
	prctl(PR_SET_NAME, "cudaspy");
	spy_nvml_begin(
		&asked_to_stop); /* with the program's descriptors: NVML's state is that of all who use it */
	spy_folder_own_files();
	spy_running_begin(asked_ns * 5 / 8); /* not in step with the looks */
	while (!is_over()) {
		sleep_while_dormant();
		in_time = sleep_an_interval(&next);
		if (!is_over() && spy_window_is_open())
			work(in_time);
	}
	leave_threads();
	return NULL;
}

static bool map_tables(void)
{
	size_t looked = SPY_BOARD_SLOTS * sizeof(struct spy_looked);
	size_t places = (sizeof(struct spy_places) + spy_python_look_bytes() + 63) & ~(size_t)63;
	char *map;

	map = mmap(NULL, places + looked, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return false;
	madvise(map, places + looked, MADV_DONTFORK);
	sampler.places = (struct spy_places *)map;
	sampler.looked = (struct spy_looked *)(map + places);
	atomic_store(&questions, sampler.places->questions);
	return true;
}

static int create(void)
{
	pthread_attr_t attributes;
	int error;

	if (pthread_attr_init(&attributes))
		return ENOMEM;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	error = pthread_create(&sampler.thread, &attributes, run, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}

static void start(void *data)
{
	int error = ENOMEM;

	(void)data;
	sampler.interval_ns = asked_ns;
	sampler.random = spy_clock() ^ (uint64_t)spy_session->pid << 32;
	if (map_tables())
		error = create();
	if (!error)
		return;
	atomic_store(&state, OVER);
	spy_note(SPY_NOTE_OTHER, "threads are not sampled between their calls: %s",
		 error == EAGAIN ? "no more threads may be made" : "no memory");
}

/* ---- begin and end ---------------------------------------------------------------------------- */

void spy_sampler_load(void)
{
	single_threaded = spy_real_dlsym(RTLD_DEFAULT, "__libc_single_threaded");
}

void spy_sampler_begin(uint64_t frequency)
{
	unsigned long long hz = SPY_SAMPLE_HZ;

	(void)frequency;
	if (spy_options.sample)
		spy_options_number(spy_options.sample, SPY_SAMPLE_HZ_MOST + 1, &hz);
	asked_ns = hz && !spy_options.nostacks ? 1000000000 / hz : 0;
}

/* Has the program other threads already? Else some things are forbidden as soon as there is one, or warned of. */
static bool has_threads(void)
{
	return single_threaded && !*single_threaded;
}

void spy_sampler_look(struct spy_thread *thread, uint64_t now, bool between)
{
	struct spy_question *asked = atomic_load(&questions);
	int none = NONE;

	if (asked && between)
		spy_question_answer(asked, thread, now);
	if (atomic_load(&state) != NONE || !asked_ns || !thread->page->context || !has_threads())
		return;
	/* pthread_create takes a lock that dlopen has while it waits for the one that is held here. */
	if (spy_loader_is_held_here())
		return;
	if (atomic_compare_exchange_strong(&state, &none, RUNNING))
		spy_own_stack_run(start, NULL);
}

void spy_sampler_wake(struct spy_thread *thread)
{
	(void)thread;
	atomic_fetch_add(&turn, 1);
	if (atomic_load(&state) == RUNNING)
		spy_syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* The thread ends by and by; what it is at is awaited. */
void spy_sampler_stop(void)
{
	const struct timespec a_moment = {.tv_nsec = 200000};
	int running = RUNNING;

	if (!atomic_compare_exchange_strong(&state, &running, OVER))
		return;
	atomic_store(&asked_to_stop, 1);
	atomic_fetch_add(&turn, 1);
	spy_syscall(SYS_futex, &asked_to_stop, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0);
	spy_syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	for (int i = 0; i < END_MS * 5 && atomic_load(&at_work); i++)
		spy_syscall(SYS_nanosleep, &a_moment, NULL);
}

/* A thread that has been joined is still one of the process's until the kernel has taken it off its list. */
static void await_gone(int tid)
{
	const struct timespec a_moment = {.tv_nsec = 50000};

	for (int i = 0; i < GONE_MS * 20 && tid && !spy_syscall(SYS_tgkill, getpid(), tid, 0); i++)
		spy_syscall(SYS_nanosleep, &a_moment, NULL);
}

void spy_sampler_leave(void)
{
	struct timespec until;

	if (atomic_load(&state) != RUNNING)
		return;
	spy_sampler_stop();
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LEAVE_S;
	pthread_timedjoin_np(sampler.thread, NULL, &until);
	await_gone(atomic_load(&sampler_tid));
	await_gone(spy_nvml_leave(&until));
}

/* What the parent's thread used is not there, or a copy that nobody uses. */
void spy_sampler_forked(void)
{
	atomic_store(&state, NONE);
	atomic_store(&asked_to_stop, 0);
	atomic_store(&at_work, false);
	atomic_store(&sampler_tid, 0);
	sampler = (struct sampler){0};
	atomic_store(&questions, NULL);
	spy_nvml_forked();
	spy_running_forked();
}
