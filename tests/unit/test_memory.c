/* links: shim/inspect/memory.c shim/lib/handle_map.c shim/lib/lock.c */
/*
 * tests/unit/test_memory.c: the map of memory ranges against a naive model, its readers against its
 * writers, and the questions to the driver.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#include "cudaspy/function_numbers.h"
#include "inspect_stubs.h"

/* What inspect.c would call. */
bool spy_inspect_reset(void)
{
	spy_memory_reset();
	return true;
}

const struct spy_inspector spy_inspectors[SPY_INSPECTOR_COUNT];

static void add(uint64_t lo, uint64_t bytes, uint8_t kind, uint16_t context)
{
	spy_memory_add(&(struct spy_memory){lo, lo + bytes, kind, 1, context, 0});
}

static uint8_t kind_at(uint64_t address)
{
	struct spy_memory found;

	spy_memory_find(address, &found);
	return found.kind;
}

static void test_edges(void **state)
{
	struct spy_memory was;

	(void)state;
	assert_int_equal(kind_at(0), SPY_MEM_UNKNOWN);
	add(0x1000, 0x1000, SPY_MEM_PINNED, 0);
	assert_int_equal(kind_at(0xfff), SPY_MEM_UNKNOWN);
	assert_int_equal(kind_at(0x1000), SPY_MEM_PINNED);
	assert_int_equal(kind_at(0x1fff), SPY_MEM_PINNED);
	assert_int_equal(kind_at(0x2000), SPY_MEM_UNKNOWN);
	add(0x1800, 0, SPY_MEM_MANAGED, 0); /* empty: ignored */
	assert_int_equal(kind_at(0x1800), SPY_MEM_PINNED);
	assert_false(spy_memory_remove(0x1800, &was)); /* not its beginning */
	assert_true(spy_memory_remove(0x1000, &was));
	assert_int_equal(was.hi, 0x2000);
	assert_int_equal(was.device, 1);
	assert_int_equal(kind_at(0x1000), SPY_MEM_UNKNOWN);
	add(UINT64_MAX - 0x1000, 0x1000, SPY_MEM_DEVICE, 0);
	assert_int_equal(kind_at(UINT64_MAX - 1), SPY_MEM_DEVICE);
	assert_int_equal(kind_at(UINT64_MAX), SPY_MEM_UNKNOWN);
}

/* What was said of a range is what is found of each of its bytes. */
static void test_all_of_it(void **state)
{
	const struct spy_memory said = {0x5000, 0x9000, SPY_MEM_DEVICE, 3, 0x1234, 0x56};
	struct spy_memory found;

	(void)state;
	spy_memory_add(&said);
	spy_memory_find(0x8fff, &found);
	assert_int_equal(found.lo, said.lo);
	assert_int_equal(found.hi, said.hi);
	assert_int_equal(found.kind, said.kind);
	assert_int_equal(found.device, said.device);
	assert_int_equal(found.context, said.context);
	assert_int_equal(found.access, said.access);

	add(0xb000, 0x1000, SPY_MEM_PINNED,
	    0); /* the gap between them, and the one behind what is left */
	spy_memory_find(0x9000, &found);
	assert_int_equal(found.kind, SPY_MEM_UNKNOWN);
	assert_int_equal(found.lo, 0x9000);
	assert_int_equal(found.hi, 0xb000);
	assert_true(spy_memory_remove(0xb000, &found));
	/* What was freed is in no gap, and has no kind. */
	spy_memory_find(0x9000, &found);
	assert_int_equal(found.kind, SPY_MEM_UNKNOWN);
	assert_int_equal(found.lo, 0x9000);
	assert_int_equal(found.hi, 0xb000);
	spy_memory_find(0xb000, &found);
	assert_int_equal(found.kind, SPY_MEM_UNKNOWN);
	assert_int_equal(found.device, SPY_DEVICE_NONE);
	assert_int_equal(found.lo, 0xb000);
	assert_int_equal(found.hi, 0xc000);
	assert_false(spy_memory_remove(0xb000, &found));
	assert_true(spy_memory_remove(0x5000, &found));
}

/* Among many, too, a gap goes from a range to the next one. */
static void test_gaps(void **state)
{
	struct spy_memory found;
	uint64_t i;

	(void)state;
	for (i = 1; i <= 1000; i++)
		add(i * 0x1000, 0x800, SPY_MEM_DEVICE, 0);
	for (i = 1; i <= 1000; i++) {
		assert_false(spy_memory_find(i * 0x1000 + 0x900, &found));
		assert_int_equal(found.lo, i * 0x1000 + 0x800);
		assert_int_equal(found.hi, i < 1000 ? (i + 1) * 0x1000 : UINT64_MAX);
	}
	for (i = 1; i <= 1000; i++)
		assert_true(spy_memory_remove(i * 0x1000, &found));
}

/* One that covers many others, which were freed unseen, and an area that is forgotten: all of them are gone. */
static void test_covered(void **state)
{
	struct spy_memory found;
	uint64_t i;

	(void)state;
	for (int again = 0; again < 2; again++) {
		add(0x800, 0x100, SPY_MEM_PINNED, 0);
		for (i = 1; i <= 1000; i++)
			add(i * 0x1000, 0x800, SPY_MEM_PINNED, 0);
		add(0x1000000, 0x100, SPY_MEM_PINNED, 0);
		if (again)
			spy_memory_remove_span(
				0x17ff, 0x1000 * 1000 + 1); /* it touches the first and the last */
		else
			add(0x1000, 0x1000 * 1000, SPY_MEM_DEVICE, 0);
		for (i = 1; i <= 1000; i++) {
			assert_int_equal(kind_at(i * 0x1000),
					 again ? SPY_MEM_UNKNOWN : SPY_MEM_DEVICE);
			assert_int_equal(kind_at(i * 0x1000 + 0x7ff),
					 again ? SPY_MEM_UNKNOWN : SPY_MEM_DEVICE);
		}
		assert_true(spy_memory_find(0x8ff, &found));
		assert_true(spy_memory_find(0x1000000, &found));
		assert_int_equal(spy_memory_remove(0x1000, &found), !again);
		for (i = 1; i <= 1000; i++)
			assert_false(spy_memory_remove(i * 0x1000, &found));
		assert_true(spy_memory_remove(0x800, &found));
		assert_true(spy_memory_remove(0x1000000, &found));
	}
}

/* A range that is freed and allocated again, as the same or as another one; and many that are not. */
static void test_again(void **state)
{
	struct spy_memory was;
	uint64_t generation;

	(void)state;
	add(0x1000, 0x1000, SPY_MEM_PINNED, 1);
	for (int i = 0; i < 1000; i++) {
		generation = spy_memory_date.generation;
		assert_true(spy_memory_remove(0x1000, &was));
		assert_int_equal(kind_at(0x1000), SPY_MEM_UNKNOWN);
		add(0x1000, 0x1000, i % 2 ? SPY_MEM_PINNED : SPY_MEM_DEVICE, 2);
		assert_int_equal(kind_at(0x1fff), i % 2 ? SPY_MEM_PINNED : SPY_MEM_DEVICE);
		assert_true(spy_memory_date.generation >= generation + 2);
	}
	assert_true(spy_memory_remove(0x1000, &was));
	add(0x1800, 0x1000, SPY_MEM_MANAGED, 0);
	assert_int_equal(kind_at(0x1000), SPY_MEM_UNKNOWN);
	assert_int_equal(kind_at(0x27ff), SPY_MEM_MANAGED);
	assert_false(spy_memory_remove(0x1000, &was));
	/* Each at an address of its own, some of which stay. */
	for (uint64_t i = 1; i < 5000; i++) {
		add(i * 0x10000, 0x1000, SPY_MEM_DEVICE, 0);
		if (i % 3)
			assert_true(spy_memory_remove(i * 0x10000, &was));
	}
	for (uint64_t i = 1; i < 5000; i++)
		assert_int_equal(kind_at(i * 0x10000), i % 3 ? SPY_MEM_UNKNOWN : SPY_MEM_DEVICE);
	for (uint64_t i = 3; i < 5000; i += 3)
		assert_true(spy_memory_remove(i * 0x10000, &was));
	assert_true(spy_memory_remove(0x1800, &was));
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(kind_at(i * 0x10000), SPY_MEM_UNKNOWN);
}

static void test_contexts(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		add(i * 0x1000, 0x1000, SPY_MEM_PINNED, i % 3);
	spy_memory_remove_context(SPY_DEVICE_NONE, 2);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(kind_at(i * 0x1000 + 1),
				 i % 3 == 2 ? SPY_MEM_UNKNOWN : SPY_MEM_PINNED);
	spy_memory_remove_context(1, 1);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(kind_at(i * 0x1000 + 1), SPY_MEM_UNKNOWN);
}

/* ---- against a model: one byte of kind for each page of a small address space ---- */

#define PAGES 6000
static struct {
	uint8_t kind;
	uint16_t first; /* page its range begins at */
} model[PAGES];

static void model_clear(unsigned int first, unsigned int end)
{
	for (unsigned int i = first; i < end; i++) {
		unsigned int base = model[i].first;

		if (!model[i].kind)
			continue;
		for (unsigned int k = base; k < PAGES && model[k].kind && model[k].first == base;
		     k++)
			model[k].kind = 0;
	}
}

static void test_random(void **state)
{
	uint64_t seed = 12345;

	(void)state;
	memset(model, 0, sizeof(model));
	for (int step = 0; step < 200000; step++) {
		struct spy_memory was;
		unsigned int page, length, what;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		page = (seed >> 33) % PAGES;
		length = 1 + (seed >> 50) % 3;
		what = (seed >> 20) % 16;
		if (page + length > PAGES)
			continue;
		if (what < 8) {
			uint8_t kind = (uint8_t)(1 + what % 4);

			/* the map keeps a range that is added again as it is */
			model_clear(page, page + length);
			for (unsigned int i = page; i < page + length; i++) {
				model[i].kind = kind;
				model[i].first = (uint16_t)page;
			}
			add(page * 4096ull, length * 4096ull, kind, 0);
		} else if (what < 14) {
			bool have = model[page].kind && model[page].first == page;

			assert_int_equal(spy_memory_remove(page * 4096ull, &was), have);
			if (have)
				model_clear(page, page + 1);
		} else if (what == 14 && step % 64 == 0) {
			model_clear(page, page + length);
			spy_memory_remove_span(page * 4096ull, (page + length) * 4096ull);
		}
		if (step % 1000 == 0) {
			for (unsigned int i = 0; i < PAGES; i++)
				assert_int_equal(kind_at(i * 4096ull + 7), model[i].kind);
		} else {
			assert_int_equal(kind_at(page * 4096ull + 4095), model[page].kind);
		}
	}
}

/* ---- readers against writers ---- */

#define STABLE 0x100000000ull /* nobody touches these while the test runs */
#define STABLE_RANGES 300
#define CHURN 0x100001000ull /* between them */

static _Atomic bool stop;

static void *write_map(void *data)
{
	uint64_t seed = (uintptr_t)data * 7919 + 1;
	struct spy_memory was;

	for (int i = 0; i < 60000; i++) {
		uint64_t slot, lo;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		slot = (seed >> 33) % STABLE_RANGES;
		lo = CHURN + slot * 0x10000 + ((uintptr_t)data << 12);
		add(lo, 0x800, SPY_MEM_DEVICE, 0);
		if (seed >> 63)
			add(lo + 0x800, 0x100, SPY_MEM_MANAGED, 0);
		if (seed & 1u << 20)
			spy_memory_remove(lo, &was);
		if (seed & 1u << 21)
			spy_memory_remove(lo + 0x800, &was);
	}
	return NULL;
}

static void *read_map(void *data)
{
	struct spy_inspect_cache *cache = calloc(1, sizeof(*cache));
	uint64_t seed = (uintptr_t)data, reads = 0;
	struct spy_memory found;

	while (!stop) {
		uint64_t slot, lo;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		slot = (seed >> 33) % STABLE_RANGES;
		lo = STABLE + slot * 0x10000;
		if (spy_memory_kind(cache, lo + 0x10, 0x800) != SPY_MEM_PINNED)
			abort();
		if (!spy_memory_find(lo + 0xfff, &found) || found.lo != lo ||
		    found.hi != lo + 0x1000)
			abort();
		spy_memory_find(CHURN + slot * 0x10000 + (seed & 0x7fff), &found);
		if (found.kind && found.kind != SPY_MEM_DEVICE && found.kind != SPY_MEM_MANAGED)
			abort();
		if (found.kind && found.hi - found.lo != 0x800 && found.hi - found.lo != 0x100)
			abort();
		reads++;
	}
	free(cache);
	return (void *)(uintptr_t)reads;
}

static void test_threads(void **state)
{
	pthread_t writers[3], readers[3];
	void *reads;

	(void)state;
	stop = false;
	for (uint64_t i = 0; i < STABLE_RANGES; i++)
		add(STABLE + i * 0x10000, 0x1000, SPY_MEM_PINNED, 0);
	for (uintptr_t i = 0; i < 3; i++) {
		pthread_create(&writers[i], NULL, write_map, (void *)(i + 1));
		pthread_create(&readers[i], NULL, read_map, (void *)(i + 1));
	}
	for (int i = 0; i < 3; i++)
		pthread_join(writers[i], NULL);
	stop = true;
	for (int i = 0; i < 3; i++) {
		pthread_join(readers[i], &reads);
		assert_true(reads);
	}
}

/* ---- the driver's answers ---- */

static uint8_t ask(uint64_t address, uint64_t bytes)
{
	return spy_memory_ask(&the_thread, &the_thread.inspect, address, bytes);
}

static void test_answers(void **state)
{
	struct spy_memory was;

	(void)state;
	assert_int_equal(ask(0x5010, 4), SPY_MEM_PAGEABLE);
	assert_int_equal(ask(0x5020, 4), SPY_MEM_PAGEABLE);
	assert_int_equal(asked, 1); /* once for the page */
	driver_ranges[0] = (struct spy_memory){0x6000, 0x6010, SPY_MEM_PINNED, 0, 0, 0};
	driver_ranges[1] = (struct spy_memory){0x4ff0, 0x5000, SPY_MEM_PINNED, 0, 0, 0};
	assert_int_equal(ask(0x5fff, 1), SPY_MEM_PAGEABLE);
	assert_int_equal(ask(0x6000, 4), SPY_MEM_PINNED); /* and no further than the page */
	assert_int_equal(ask(0x4fff, 1), SPY_MEM_PINNED);
	assert_int_equal(asked, 3);
	add(0x5800, 0x100, SPY_MEM_PINNED, 0); /* registered since: byte by byte */
	assert_int_equal(ask(0x5800, 4), SPY_MEM_PINNED);
	assert_int_equal(ask(0x57ff, 4), SPY_MEM_PAGEABLE);
	assert_int_equal(ask(0x5800, 4), SPY_MEM_PINNED);
	assert_int_equal(ask(0x5900, 4), SPY_MEM_PAGEABLE);
	assert_int_equal(asked, 5);
	assert_int_equal(ask(0x5880, 0x100), SPY_MEM_MIXED); /* begins pinned */
	assert_int_equal(ask(0x57f0, 0x100), SPY_MEM_PAGEABLE); /* begins pageable */
	spy_memory_remove(0x5800, &was);
	assert_int_equal(ask(0x5800, 4), SPY_MEM_PAGEABLE);
	assert_int_equal(asked, 7);
	driver_ranges[0] = (struct spy_memory){0x900000, 0x980000, SPY_MEM_PINNED, 0, 0, 0};
	driver_ranges[1] = (struct spy_memory){0xa00000, 0xa80000, SPY_MEM_MANAGED, 0, 0, 0};
	driver_ranges[2] = (struct spy_memory){0xb00000, 0xb80000, SPY_MEM_DEVICE, 0, 0, 0};
	assert_int_equal(ask(0x900100, 0x1000), SPY_MEM_PINNED);
	assert_int_equal(ask(0xa00100, 0x1000), SPY_MEM_MANAGED);
	assert_int_equal(ask(0xb00100, 0x1000), SPY_MEM_DEVICE);
	assert_int_equal(asked, 10);
	spy_memory_remove(0x900000, &was); /* freed, and not by us: what it is now nobody knows */
	driver_ranges[0].lo = driver_ranges[0].hi = 0;
	assert_int_equal(ask(0x900100, 0x1000), SPY_MEM_PAGEABLE);
	real_driver[SPY_FN_cuPointerGetAttributes] = NULL;
	assert_int_equal(ask(0x123456, 1), SPY_MEM_UNKNOWN);
}

static void allocate_elsewhere(void)
{
	add(0x7000000, 0x1000, SPY_MEM_DEVICE, 0);
}

/* What the driver said stays true although the map changed while it was asked. */
static void test_answer_during_change(void **state)
{
	(void)state;
	during_ask = allocate_elsewhere;
	assert_int_equal(ask(0x5010, 4), SPY_MEM_PAGEABLE);
	during_ask = NULL;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Shown, not judged: machines differ. */
static void test_speed(void **state)
{
	enum { N = 2000000 };
	uint64_t sum = 0;
	double t;

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		add(STABLE + i * 0x10000, 0x8000, SPY_MEM_PINNED, 0);
	t = now_ns();
	for (int i = 0; i < N; i++)
		sum += spy_memory_kind(&the_thread.inspect, STABLE + 0x100, 0x1000);
	print_message("same pointer: %.1f ns\n", (now_ns() - t) / N);
	t = now_ns();
	for (uint64_t i = 0; i < N; i++)
		sum += spy_memory_kind(&the_thread.inspect, STABLE + i % 10000 * 0x10000, 0x1000);
	print_message("10000 ranges in turn: %.1f ns\n", (now_ns() - t) / N);
	t = now_ns();
	for (uint64_t i = 0; i < 200000; i++) {
		struct spy_memory was;

		spy_memory_remove(STABLE + i * 7919 % 10000 * 0x10000, &was);
		spy_memory_add(&was);
	}
	print_message("a free and an allocation: %.1f ns\n", (now_ns() - t) / 200000);
	assert_int_equal(sum, 2ull * N * SPY_MEM_PINNED);
}

/* ---- a lock that is not given back ------------------------------------------------------------- */

static pthread_barrier_t held, tried;
static struct spy_lock *the_lock;

static void keep_lock(struct spy_lock *lock)
{
	the_lock = lock;
}

/* As a thread does that a signal handler keeps, or that left by longjmp. */
static void *hold_lock(void *unused)
{
	assert_true(spy_lock(the_lock));
	pthread_barrier_wait(&held);
	pthread_barrier_wait(&tried);
	spy_unlock(the_lock);
	return unused;
}

static void test_lock_kept(void **state)
{
	uint64_t before = spy_lock_timeouts;
	struct spy_memory was;
	pthread_t thread;

	(void)state;
	spy_inspect_reset();
	add(0x1000, 0x1000, SPY_MEM_PINNED, 0);
	spy_memory_locks(keep_lock);
	pthread_barrier_init(&held, NULL, 2);
	pthread_barrier_init(&tried, NULL, 2);
	pthread_create(&thread, NULL, hold_lock, NULL);
	pthread_barrier_wait(&held);
	add(0x5000, 0x1000, SPY_MEM_DEVICE, 0); /* goes on without, after a while */
	assert_false(spy_memory_remove(0x1000, &was)); /* at once */
	assert_int_equal(spy_lock_timeouts, before + 2);
	/* What is free now, and what is new, is unknown: nothing is sure. */
	assert_int_equal(kind_at(0x1000), SPY_MEM_UNKNOWN);
	assert_int_equal(kind_at(0x5000), SPY_MEM_UNKNOWN);
	pthread_barrier_wait(&tried);
	pthread_join(thread, NULL);
	add(0x9000, 0x1000, SPY_MEM_MANAGED, 0);
	assert_int_equal(kind_at(0x9000), SPY_MEM_MANAGED);
	assert_int_equal(kind_at(0x1000), SPY_MEM_UNKNOWN);
	assert_false(spy_lock_is_held(the_lock));
}

/* Left by longjmp, the lock is taken over by its own thread; in a forked child others are free. */
static void test_lock_left(void **state)
{
	struct spy_lock lock = {0};

	(void)state;
	assert_true(spy_lock_table(&lock));
	assert_true(spy_lock_table(&lock));
	assert_false(spy_lock(&lock));
	spy_lock_forget(&lock);
	assert_true(spy_lock_is_held(&lock));
	spy_unlock(&lock);
	lock.owner = 64; /* another thread's */
	lock.timeout_turn = lock.turns + 1;
	assert_false(spy_lock_table(&lock));
	spy_lock_forget(&lock);
	assert_true(spy_lock(&lock));
	assert_int_not_equal(lock.timeout_turn, lock.turns + 1);
}

static void *give_back_soon(void *lock)
{
	usleep(20000);
	spy_unlock(lock);
	return NULL;
}

/* Whoever has it is waited for, the first one and the one behind him who was given up. */
static void test_lock_waited_for(void **state)
{
	struct spy_lock lock = {.owner = 64};
	pthread_t thread;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&thread, NULL, give_back_soon, &lock), 0);
		assert_true(spy_lock(&lock));
		pthread_join(thread, NULL);
		lock.timeout_turn = lock.turns + 1;
		spy_unlock(&lock);
		lock.owner = 64;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_edges),
		TEST(test_all_of_it),
		TEST(test_gaps),
		TEST(test_covered),
		TEST(test_again),
		TEST(test_contexts),
		TEST(test_random),
		TEST(test_threads),
		TEST(test_answers),
		TEST(test_answer_during_change),
		TEST(test_lock_kept),
		TEST(test_lock_left),
		TEST(test_lock_waited_for),
		TEST(test_speed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
