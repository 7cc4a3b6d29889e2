/* links: shim/sample/sampler.c */
/*
 * tests/unit/test_sampler_thread.c: the sampler's thread, with made-up looks: when it starts, at whom it looks and for how
 * much of their time, that it sleeps while recording is dormant, and that it ends. It waits for looks, never for a time.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "hook/loader.h"
#include "lib/clock.h"
#include "lib/signal_guard.h"
#include "process/elf_scan.h"
#include "process/folder.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "process/signal_mask.h"
#include "record/notes.h"
#include "sample/look.h"
#include "sample/nvml.h"
#include "sample/places.h"
#include "sample/running.h"
#include "sample/sampler.h"
#include "state/recorded.h"
#include "state/session.h"

#define MOST 64 /* sampler.c: at one time */
#define SLOTS 200

/* ---- the rest of the shim ---- */

struct spy_options spy_options;
struct spy_session *spy_session;
struct spy_thread *spy_threads;
uint8_t spy_recorded_from;
bool spy_clock_is_counter;
static struct spy_session session;
static struct spy_board board;
static struct spy_thread *threads;
static struct spy_slot_page pages[SLOTS];
static bool loader_held, active;
static char is_single;
static uint64_t running_ns;
static int n_gpu_looks, n_places_written, n_own_files;
static bool nvml_began;

/* Looks, in their order; the first ones. */
static struct {
	uint32_t slot;
	uint64_t weight_us;
	bool own_stack;
} looks[1000];
static void *looks_places, *looks_looked; /* what the last one was given */
static _Atomic uint32_t n_looks, n_ended;
static _Atomic bool hold; /* the thread waits in its next look */
static __thread bool on_own_stack;

uint64_t spy_clock_monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool spy_session_active(void)
{
	return active;
}

bool spy_loader_is_held_here(void)
{
	return loader_held;
}

bool spy_options_number(const char *text, unsigned long long end, unsigned long long *number)
{
	unsigned long long value = strtoull(text, NULL, 10);

	assert_int_equal(end, SPY_SAMPLE_HZ_MOST + 1);
	if (value >= end)
		return false;
	*number = value;
	return true;
}

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	on_own_stack = true;
	work(data);
	on_own_stack = false;
}

bool spy_signals_hold(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	return pthread_sigmask(SIG_SETMASK, &all, before) == 0;
}

void spy_signals_release(const sigset_t *before)
{
	(void)before;
}

void spy_folder_own_files(void)
{
	n_own_files++;
}

void spy_note(enum spy_note what, const char *format, ...)
{
	(void)what;
	(void)format;
}

void spy_nvml_begin(const _Atomic uint32_t *stop)
{
	nvml_began = !*stop;
}

bool spy_nvml_take(struct spy_rec_gpu_look *look)
{
	look->device = 3;
	if (!n_gpu_looks)
		return false;
	n_gpu_looks--;
	return true;
}

int spy_nvml_leave(const struct timespec *until)
{
	(void)until;
	return 0;
}

void spy_nvml_forked(void)
{
}

void spy_running_begin(uint64_t ns)
{
	running_ns = ns;
}

void spy_running_end(struct spy_running *running)
{
	(void)running;
	n_ended++;
}

void spy_running_forked(void)
{
}

bool spy_places_ready(struct spy_places *places)
{
	return places;
}

void spy_place_write(struct spy_places *places, const void *record, size_t bytes)
{
	const struct spy_rec_gpu_look *look = record;

	assert_non_null(places);
	n_places_written +=
		look->head.event == SPY_EV_GPU_LOOK && look->device == 3 && bytes == sizeof(*look);
}

size_t spy_python_look_bytes(void)
{
	return 100;
}

void spy_question_answer(struct spy_question *questions, struct spy_thread *of, uint64_t start)
{
	(void)questions;
	(void)of;
	(void)start;
}

void spy_look(struct spy_places *places, struct spy_looked *looked, struct spy_thread *thread,
	      uint64_t weight_us)
{
	uint32_t n = n_looks;

	assert_non_null(places);
	assert_int_equal((uintptr_t)looked % 8, 0);
	looks_places = places;
	looks_looked = looked;
	if (n < sizeof(looks) / sizeof(*looks)) {
		looks[n].slot = (uint32_t)(thread - threads);
		looks[n].weight_us = weight_us;
		looks[n].own_stack = on_own_stack;
	}
	n_looks = n + 1;
	while (hold)
		usleep(100);
}

static void *find(void *handle, const char *name)
{
	assert_ptr_equal(handle, RTLD_DEFAULT);
	return strcmp(name, "__libc_single_threaded") == 0 ? &is_single : NULL;
}

void *(*spy_real_dlsym)(void *handle, const char *name) = find;

/* ---- a process ---- */

static int begin(void **state)
{
	(void)state;
	if (!threads)
		threads = calloc(SPY_BOARD_SLOTS, sizeof(*threads));
	memset(pages, 0, sizeof(pages));
	for (int slot = 0; slot < SLOTS; slot++)
		threads[slot].page = NULL;
	spy_threads = threads;
	spy_session = &session;
	session.board = &board;
	session.slots = 1;
	session.pid = 7;
	active = true;
	spy_options = (struct spy_options){.sample = "1000"};
	spy_recorded_from = SPY_RECORDED;
	loader_held = false;
	is_single = 0;
	n_looks = n_ended = 0;
	n_gpu_looks = n_places_written = n_own_files = 0;
	spy_sampler_load();
	spy_sampler_begin(1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hold = false;
	spy_sampler_leave();
	spy_sampler_forked();
	return 0;
}

/* Threads of the program, in slots 1, 2 …; with a context they are what starts it. */
static void have_threads(uint32_t n)
{
	for (uint32_t slot = 1; slot <= n; slot++) {
		threads[slot].page = &pages[slot];
		pages[slot].tid = 100 + slot;
		pages[slot].calls = 1;
		pages[slot].context = 1;
	}
	session.slots = n + 1;
}

static bool starts(void)
{
	spy_sampler_look(&threads[1], 0, true);
	usleep(20000); /* time for a look, if it did */
	return n_looks;
}

static void await_looks(uint32_t n)
{
	while (n_looks < n)
		usleep(200);
}

/* ---- when it starts ---- */

/* Is there memory? */
static bool is_mapped(void *memory)
{
	unsigned char in_core;

	return mincore((void *)((uintptr_t)memory & ~(uintptr_t)4095), 1, &in_core) == 0;
}

static void test_starts(void **state)
{
	pid_t child;
	int status;

	(void)state;
	have_threads(1);
	is_single = 1; /* no other thread: some things are forbidden as soon as there is one */
	assert_false(starts());
	is_single = 0;
	pages[1].context = 0; /* no context of CUDA yet */
	assert_false(starts());
	pages[1].context = 1;
	loader_held = true;
	assert_false(starts());
	loader_held = false;
	spy_options.sample = "0";
	spy_sampler_begin(1);
	assert_false(starts());
	spy_options = (struct spy_options){.nostacks = "1"};
	spy_sampler_begin(1);
	assert_false(starts());
	spy_options = (struct spy_options){.sample = "1001"}; /* wrong: as often as without it */
	spy_sampler_begin(1);
	spy_sampler_look(&threads[1], 0, true);
	await_looks(1);
	assert_int_equal(looks[0].weight_us, 10000);
	assert_true(looks[0].own_stack);
	assert_int_equal(running_ns, 6250000);
	assert_true(nvml_began);
	assert_int_equal(n_own_files, 1);
	spy_sampler_look(&threads[1], 0, true); /* once */
	assert_int_equal(n_own_files, 1);
	assert_true(board.looked > 0);
	/* What the sampler knows is not copied for a child, which has no sampler. */
	assert_true(is_mapped(looks_places) && is_mapped(looks_looked));
	child = fork();
	if (!child)
		_exit(is_mapped(looks_places) + 2 * is_mapped(looks_looked));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* ---- at whom ---- */

/* All that make calls, in turn; each look stands for an interval of its time. */
static void test_turns(void **state)
{
	(void)state;
	have_threads(5);
	pages[2].calls = 0;
	pages[4].tid = 0;
	threads[5].page = NULL;
	n_gpu_looks = 3;
	spy_sampler_look(&threads[1], 0, true);
	await_looks(6);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(looks[i].slot, i % 2 ? 3 : 1);
		assert_int_equal(looks[i].weight_us,
				 1000); /* of the first looks; then what they take counts */
	}
	assert_true(n_ended >= 6); /* the others are not interrupted */
	spy_sampler_leave();
	assert_int_equal(n_gpu_looks, 0);
	assert_int_equal(n_places_written, 3);
}

/* More than are looked at at one time: the others come next, and each look stands for more. */
static void test_many(void **state)
{
	(void)state;
	have_threads(2 * MOST);
	spy_sampler_look(&threads[1], 0, true);
	await_looks(3 * MOST);
	for (uint32_t i = 0; i < 3 * MOST; i++) {
		assert_int_equal(looks[i].slot, 1 + i % (2 * MOST));
		assert_int_equal(looks[i].weight_us, 2000);
	}
}

/* ---- dormant, over ---- */

static void test_dormant(void **state)
{
	uint32_t before, ended;

	(void)state;
	have_threads(1);
	spy_recorded_from = SPY_DORMANT;
	assert_false(starts());
	spy_recorded_from = SPY_RECORDED;
	spy_sampler_wake(&threads[1]);
	await_looks(1);
	spy_recorded_from = SPY_DORMANT;
	usleep(20000); /* the look that it may be at */
	before = n_looks;
	ended = n_ended;
	while (n_ended == ended) /* for more than a moment: threads are left alone */
		usleep(1000);
	assert_int_equal(n_looks, before);
	spy_recorded_from = SPY_RECORDED;
	spy_sampler_wake(&threads[1]);
	await_looks(before + 2);
}

/* Who has to be alone: no thread is left. In a child there is none, and there may be one. */
static void test_leave(void **state)
{
	uint32_t before;

	(void)state;
	have_threads(1);
	spy_sampler_leave(); /* there is none */
	for (int process = 0; process < 2; process++) {
		before = n_looks;
		spy_sampler_look(&threads[1], 0, true);
		await_looks(before + 1);
		spy_sampler_leave();
		before = n_looks;
		assert_true(n_ended > (uint32_t)process);
		spy_sampler_look(&threads[1], 0, true); /* not again in this one */
		usleep(5000);
		assert_int_equal(n_looks, before);
		spy_sampler_forked();
	}
}

static void *let_go(void *data)
{
	(void)data;
	usleep(10000);
	hold = false;
	return NULL;
}

/* The end of the process: the look that it is at is awaited, and none comes behind. Last, for its thread is not. */
/* A look that never ends is awaited for 50 ms. In a child: there is one stop in a process. */
static int stop_in_vain(void **state)
{
	uint64_t began;

	spy_sampler_forked();
	begin(state);
	have_threads(1);
	hold = true;
	spy_sampler_look(&threads[1], 0, true);
	await_looks(1);
	began = spy_clock_monotonic();
	spy_sampler_stop();
	return spy_clock_monotonic() - began < 50000000;
}

static void test_stop(void **state)
{
	uint32_t before;
	pthread_t other;
	pid_t child;
	int status;

	child = fork();
	if (!child)
		_exit(stop_in_vain(state));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	begin(state);
	have_threads(1);
	spy_sampler_stop();
	spy_sampler_look(&threads[1], 0, true);
	hold = true;
	await_looks(1);
	pthread_create(&other, NULL, let_go, NULL);
	spy_sampler_stop();
	before = n_looks;
	assert_int_equal(before, 1);
	spy_sampler_look(&threads[1], 0, true); /* not again */
	usleep(20000);
	assert_int_equal(n_looks, before);
	pthread_join(other, NULL);
}

/* A session that is over is not written to. */
static void test_no_session(void **state)
{
	(void)state;
	have_threads(1);
	active = false;
	assert_false(starts());
	active = true;
	await_looks(1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_starts),           TEST(test_turns), TEST(test_many),
		TEST(test_dormant),          TEST(test_leave), TEST(test_no_session),
		cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
