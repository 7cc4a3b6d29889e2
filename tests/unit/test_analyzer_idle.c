/*
 * tests/unit/test_analyzer_idle.c: how long a GPU certainly had nothing to do, and what the time is
 * charged to.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "idle/host.h"
#include "idle/idle.h"
#include "story.h"

#define STEPS 20

static json_t *gpu(const struct story *s, size_t i)
{
	return json_array_get(json_object_get(s->root, "gpus"), i);
}

static uint64_t ns_of(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

/* Of the causes of that kind together. */
static uint64_t charged(const json_t *row, const char *list, const char *cause)
{
	const json_t *one;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach(json_object_get(row, list), i,
			   one) if (!strcmp(json_string_value(json_object_get(one, "cause")),
					    cause)) sum += ns_of(one, "ns");
	return sum;
}

/* A wait between calls, which has just ended. */
static void outside(struct story *s, uint64_t ns, const char *what)
{
	s->ns += ns;
	fprintf(s->log, "%lluns outside %s duration=%lluns\n", (unsigned long long)s->ns, what,
		(unsigned long long)ns);
}

/* The scheduler's account, as a call begins: what it ran, and was kept from running, since the last
 * one. */
static void scheduled(struct story *s, uint64_t window, uint64_t ran, uint64_t delayed)
{
	fprintf(s->log, "%lluns gap window=%llu running=%llu not_running=%llu\n",
		(unsigned long long)s->ns, (unsigned long long)window, (unsigned long long)ran,
		(unsigned long long)delayed);
}

/* Steps of work, each waited for, with something between them. */
static void tell(struct story *s, void (*between)(struct story *s), const char *environment)
{
	unsigned int i;

	begin_with(s, environment);
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		between(s);
	}
	launch(s, 0, 4000);
	wait_for_stream(s, MS, 0x20);
	conclude(s);
}

/* Times of one place: all of it, how often, the longest one, and of all what lies in long ones. Parts that begin at the same
 * moment are of one time; what is short and has no place is never long. */
static void test_sums(void **state)
{
	static const struct {
		uint64_t at_ns, ns;
		bool anywhere; /* no function, no stack */
		uint64_t long_ns, longest_ns; /* then */
	} parts[] = {
		{100, 200000, false, 0, 200000},
		{100, 49999, false, 0, 249999},
		{100, 1, false, 1, 250000},
		{900, 250000, false, 250001, 250000},
		{900, 3, false, 250004, 250003},
		{1900, 300000, true, 250004, 300000},
		{0, 200000, false, 250004, 300000},
		{0, 200000, false, 250004, 300000}, /* when is not known: each by itself */
	};
	struct trace trace = {.index = 3};
	struct process process = {.trace = &trace};
	struct idle_sums sums = {.by_key = NULL};
	struct idle_sum *sum = NULL, *share;
	uint64_t ns = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		sum = idle_sums_add(&sums, 7, &process,
				    &(struct idle_part){.cause = IDLE_SLEEP,
							.fn = parts[i].anywhere ? NO_FUNCTION : 5,
							.fn_before = NO_FUNCTION,
							.at_ns = parts[i].at_ns},
				    parts[i].ns);
		ns += parts[i].ns;
		assert_int_equal(sum->ns, ns);
		assert_int_equal(sum->count, i + 1);
		assert_int_equal(sum->long_ns, parts[i].long_ns);
		assert_int_equal(sum->longest_ns, parts[i].longest_ns);
	}
	assert_int_equal(sum->longest.at_ns, 1900);
	assert_int_equal(HASH_COUNT(sums.by_key), 1);
	/* A half of it is due to something else: as large a part of all. */
	share = idle_sums_add_of(&sums, 8, &(struct idle_part){.cause = IDLE_CPU, .fn = 5},
				 ns - ns / 2, sum);
	assert_int_equal(share->ns, ns - ns / 2);
	assert_int_equal(share->count, 4);
	assert_int_equal(share->long_ns, 250004 / 2);
	assert_int_equal(share->longest_ns, 150000);
	assert_int_equal(sum->ns, ns);
	/* And a part of one is one. */
	share = idle_sums_add_of(&sums, 8, &(struct idle_part){.cause = IDLE_GIL, .fn = 5},
				 ns / 100, sum);
	assert_int_equal(share->count, 1);
	assert_int_equal(HASH_COUNT(sums.by_key), 3);
	idle_sums_release(&sums);
}

/* Who ran meanwhile: the place that has most of the time, and its thread, unless several threads were there. */
static void test_meanwhile(void **state)
{
	static const struct stack one = {.function = 0x10}, again = {.function = 0x10},
				  other = {.function = 0x20};
	static const struct {
		const struct stack *at;
		uint32_t tid;
		uint64_t ns;
		const struct stack *meanwhile; /* then */
		uint32_t meanwhile_tid;
	} parts[] = {
		{NULL, 0, 500, NULL, 0},    {&one, 5, 100, &one, 5},   {&again, 5, 100, &one, 5},
		{NULL, 0, 500, &one, 5},    {&other, 6, 150, &one, 5}, {&other, 6, 100, &other, 6},
		{&other, 7, 10, &other, 0}, {&one, 5, 100, &one, 5},
	};
	struct trace trace = {.index = 3};
	struct process process = {.trace = &trace};
	struct idle_sums sums = {.by_key = NULL};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const struct idle_sum *sum =
			idle_sums_add(&sums, 7, &process,
				      &(struct idle_part){.cause = IDLE_LOCK,
							  .fn = NO_FUNCTION,
							  .fn_before = NO_FUNCTION,
							  .meanwhile = parts[i].at,
							  .meanwhile_tid = parts[i].tid},
				      parts[i].ns);

		assert_ptr_equal(sum->meanwhile, parts[i].meanwhile);
		assert_int_equal(sum->meanwhile_tid, parts[i].meanwhile_tid);
	}
	idle_sums_release(&sums);
}

/* Places are told apart up to a number; what comes beyond it is at no place. */
static void test_sums_most(void **state)
{
	struct trace trace = {.index = 3};
	struct process process = {.trace = &trace};
	struct idle_sums sums = {.by_key = NULL};
	const struct idle_sum *sum = NULL;

	(void)state;
	for (uint64_t i = 1; i <= IDLE_SUMS_MOST + 10; i++)
		sum = idle_sums_add(&sums, 7, &process,
				    &(struct idle_part){.cause = IDLE_LOCK,
							.address = i,
							.fn = NO_FUNCTION,
							.fn_before = NO_FUNCTION},
				    5);
	assert_int_equal(HASH_COUNT(sums.by_key), IDLE_SUMS_MOST + 1);
	assert_int_equal(sum->key.address, 0);
	assert_int_equal(sum->ns, 10 * 5);
	assert_int_equal(sum->count, 10);
	assert_ptr_equal(sum->process, &process);
	idle_sums_release(&sums);
}

/* Stacks of a part of a set are held while a sum shows them. */
static void test_held(void **state)
{
	static struct stack first = {.function = 0x10}, longer = {.function = 0x10},
			    before = {.function = 0x30};
	struct trace trace = {.index = 3};
	struct process process = {.trace = &trace};
	struct idle_sums sums = {.holds = true};
	struct idle_part part = {.cause = IDLE_CPU, .fn = 5, .fn_before = 6, .stack = &first};

	(void)state;
	idle_sums_add(&sums, 7, &process, &part, 100);
	assert_int_equal(first.held, 1);
	part.stack = &longer;
	idle_sums_add(&sums, 7, &process, &part, 99);
	assert_int_equal(first.held, 1);
	assert_int_equal(longer.held, 0);
	part.stack_before = &before;
	idle_sums_add(&sums, 7, &process, &part, 101);
	assert_int_equal(first.held, 0);
	assert_int_equal(longer.held, 1);
	assert_int_equal(before.held, 1);
	idle_sums_release(&sums);
}

/* A ring has room for all entries until it has the most that it may have, and then no more than that. */
static void test_ring(void **state)
{
	static const size_t most[] = {4, 8, 64, 1000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(most); i++) {
		size_t size = 0;
		void *ring = NULL;

		for (uint64_t n = 0; n < 3 * most[i]; n++) {
			ring = ring_grow(ring, &size, n, most[i], 8);
			assert_true(n < size || size == most[i]);
			assert_true(size <= most[i] && size <= 4 * (n + 1));
		}
		free(ring);
	}
}

static void sleeps(struct story *s)
{
	outside(s, 2 * MS, "kind=sleep caller=0x30");
}

static void computes(struct story *s)
{
	s->ns += 2 * MS;
}

static void test_causes(void **state)
{
	static const struct {
		const char *wait, *cause;
	} waits[] = {
		{"kind=mutex object=0x1000 holder=9 caller=0x30", "lock"},
		{"kind=condition object=0x1000 caller=0x30", "lock"},
		{"kind=semaphore object=0x1000 caller=0x30", "lock"},
		{"kind=condition object=0x1000 caller=0x30 flags=32", "gil"},
		{"kind=transfer file=pipe object=3 caller=0x30", "pipe"},
		{"kind=poll file=pipe object=3 caller=0x30", "pipe"},
		{"kind=transfer file=socket object=3 caller=0x30", "socket"},
		{"kind=transfer file=file object=3 caller=0x30", "file"},
		{"kind=poll file=listening object=3 caller=0x30", "nothing-to-do"},
		{"kind=accept file=listening object=3 caller=0x30", "nothing-to-do"},
		{"kind=epoll object=3 caller=0x30", "nothing-to-do"},
		{"kind=join holder=9 caller=0x30", "join"},
		{"kind=child caller=0x30", "join"},
		{"kind=sleep caller=0x30", "sleep"},
	};
	struct story *s = *state;
	unsigned int i, n;

	for (n = 0; n < ARRAY_SIZE(waits); n++) {
		begin_with(s, "probes=1");
		for (i = 0; i < STEPS; i++) {
			launch(s, 0, 4000);
			wait_for_stream(s, MS, 0x20);
			outside(s, 2 * MS, waits[n].wait);
		}
		launch(s, 0, 4000);
		conclude(s);
		assert_int_equal(charged(gpu(s, 0), "idle_causes", waits[n].cause), STEPS * 2 * MS);
		assert_int_equal(charged(gpu(s, 0), "feeder_causes", waits[n].cause),
				 STEPS * 2 * MS);
	}
}

static void test_bounds(void **state)
{
	struct story *s = *state;
	json_t *row;

	tell(s, sleeps, "probes=1");
	row = gpu(s, 0);
	assert_int_equal(ns_of(row, "device"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "busy_known")), "bounds");
	assert_int_equal(ns_of(row, "idle_ns"), STEPS * 2 * MS);
	/* The scheduler was not asked: the thread may have had no CPU. */
	assert_int_equal(ns_of(row, "busy_ns"), 0);
	assert_int_equal(ns_of(row, "idle_max_ns"), ns_of(row, "work_ns"));
	assert_non_null(strstr(s->shown, "was outside CUDA for"));
}

/* Waits for a GPU by one thread, and what the scheduler says of another one, which may have held something. */
static uint64_t proven(struct story *s, const char *call_of_wait, const char *account,
		       const char *other)
{
	unsigned int i;

	begin_with(s, "probes=1");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		if (account)
			fprintf(s->log, "%lluns %s\n", (unsigned long long)s->ns + MS + 1000,
				account);
		call(s, 1000, MS, "%s", call_of_wait);
		sleeps(s);
	}
	fprintf(s->log, "slot 2 tid=8\n1us thread tid=8 name=\"b\"\n");
	for (i = 0; other && i < STEPS; i++)
		fprintf(s->log,
			"%uus %s\n%uus memory cudaMalloc op=alloc kind=device bytes=9 address=0x99 "
			"duration=100us\n",
			3000 * i + 3000, other, 3000 * i + (*other == 'g' ? 3100 : 3000));
	conclude(s);
	return ns_of(gpu(s, 0), "busy_ns");
}

static void hurries(struct story *s)
{
	s->ns += 100;
}

/* A bound that is too small for a share is said as a time. */
static void test_small_bound(void **state)
{
	struct story *s = *state;

	tell(s, hurries, "probes=1");
	assert_int_equal(ns_of(gpu(s, 0), "idle_ns"), STEPS * 100);
	assert_true(is_said(s, "idle 2.000 us or more of "));
	assert_false(is_said(s, "under 0.1 % or more"));
}

/* What a thread waits for a GPU, that one works: but for a tenth of a millisecond, and for what it had no CPU. */
static void test_worked(void **state)
{
	static const char wait[] = "op cudaStreamSynchronize stream=8 caller=0x20";
	struct story *s = *state;

	assert_in_range(proven(s, wait, "sched window=1ms running=10us not_running=0", NULL),
			STEPS * 8 * MS / 10, STEPS * 9 * MS / 10);
	assert_in_range(proven(s, wait, "sched window=1ms running=10us not_running=300us", NULL),
			STEPS * 5 * MS / 10, STEPS * 6 * MS / 10);
	assert_in_range(
		proven(s, wait, "sched window=1ms running=600us not_running=0 unknown=300us", NULL),
		STEPS * 5 * MS / 10, STEPS * 6 * MS / 10);
	assert_int_equal(proven(s, wait, "sched window=1ms running=10us not_running=950us", NULL),
			 0);
	/* Another thread may have held what this one waited for; not while it was in no call. */
	assert_in_range(proven(s, wait, "sched window=1ms running=10us not_running=0",
			       "sched window=1ms running=10us not_running=300us"),
			STEPS * 5 * MS / 10, STEPS * 6 * MS / 10);
	assert_in_range(proven(s, wait, "sched window=1ms running=10us not_running=0",
			       "gap window=2ms running=10us not_running=2ms"),
			STEPS * 7 * MS / 10, STEPS * 8 * MS / 10);
	/* The call does other things, too. */
	assert_int_equal(
		proven(s, "memory cudaFree op=free kind=device bytes=9 address=0x9 caller=0x20",
		       "sched window=1ms running=10us not_running=0", NULL),
		0);
}

/* The scheduler is asked at each second wait, the first one or the other, about the time since it was asked last. */
static uint64_t proven_by_half(struct story *s, unsigned int first)
{
	unsigned int i;

	begin_with(s, "probes=1");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		if (i % 2 == first)
			fprintf(s->log, "%lluns sched window=4ms running=10us not_running=0\n",
				(unsigned long long)s->ns + MS + 1000);
		call(s, 1000, MS, "op cudaStreamSynchronize stream=8 caller=0x20");
		sleeps(s);
	}
	launch(s, 0, 4000);
	conclude(s);
	return ns_of(gpu(s, 0), "busy_ns");
}

/* A wait proves nothing until the scheduler is asked: then it does. */
static void test_asked_later(void **state)
{
	struct story *s = *state;

	assert_int_equal(proven_by_half(s, 1), STEPS * 9 * MS / 10);
	assert_int_equal(proven_by_half(s, 0), (STEPS - 1) * 9 * MS / 10);
}

static void test_on_a_cpu(void **state)
{
	struct story *s = *state;

	tell(s, computes, "probes=1");
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "cpu"), STEPS * 2 * MS);
	/* Traces of before do not tell of waits between calls. */
	tell(s, computes, "probes=1 version=5");
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "unexplained"), STEPS * 2 * MS);
	assert_int_equal(json_array_size(json_object_get(gpu(s, 0), "feeder_causes")), 0);
}

static void is_delayed(struct story *s)
{
	s->ns += 4 * MS;
	scheduled(s, 5 * MS, 2 * MS, 1 * MS);
}

/* Of four milliseconds the thread ran two at most, and was kept from running for one. */
static void test_scheduled(void **state)
{
	struct story *s = *state;

	tell(s, is_delayed, "probes=1");
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "not-running"), STEPS * 1 * MS);
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "unexplained"), STEPS * 1 * MS);
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "cpu"), STEPS * 2 * MS);
}

/* The account begins before the gap: what the thread ran was before it. */
static void test_ran_earlier(void **state)
{
	struct story *s = *state;
	unsigned int i;

	begin_with(s, "probes=1");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		s->ns += 1 * MS;
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		s->ns += 2 * MS;
		scheduled(s, 4 * MS + 8000, 1 * MS, 0);
	}
	launch(s, 0, 4000);
	conclude(s);
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "unexplained"), STEPS * 2 * MS);
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "cpu"), 0);
}

static void allocates(struct story *s)
{
	call(s, 0, 2 * MS,
	     "memory cudaMalloc op=alloc kind=device bytes=4096 address=0x9000 caller=0x40");
}

static void test_in_calls(void **state)
{
	struct story *s = *state;
	uint64_t sum;

	tell(s, allocates, "probes=1");
	sum = charged(gpu(s, 0), "idle_causes", "cuda-call") +
	      charged(gpu(s, 0), "idle_causes", "unexplained");
	assert_int_equal(sum, STEPS * 2 * MS);
}

/* As long as any stream has work that was not waited for, nothing is certain. */
static void test_other_stream(void **state)
{
	struct story *s = *state;
	unsigned int i;

	begin_with(s, "probes=1");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		call(s, 0, 4000, "launch cudaLaunchKernel kernel=2 stream=9 caller=0x11");
		wait_for_stream(s, MS, 0x20);
		sleeps(s);
	}
	conclude(s);
	assert_int_equal(ns_of(gpu(s, 0), "idle_ns"), 0);
	assert_int_equal(charged(gpu(s, 0), "feeder_causes", "sleep"), (STEPS - 1) * 2 * MS);
}

/* Steps: a kernel, a function on the host and another kernel in stream 8, and what else there is. The function runs for
 * 2 ms of the wait of 4 ms. behind: milliseconds until the second kernel is handed over. */
static void functions_in(struct story *s, unsigned int stream, const char *beside,
			 unsigned int behind)
{
	uint64_t handed[STEPS];
	unsigned int i;

	begin_with(s, "probes=1");
	for (i = 0; i < STEPS; i++) {
		call(s, 0, 4000, "launch cudaLaunchKernel kernel=1 stream=%u caller=0x10", stream);
		call(s, 1000, 2000, "op cudaLaunchHostFunc stream=%u caller=0x72", stream);
		handed[i] = s->ns - 2000;
		if (beside)
			call(s, 1000, 4000, "%s", beside);
		call(s, behind * MS, 4000, "launch cudaLaunchKernel kernel=1 stream=%u caller=0x10",
		     stream);
		call(s, 1000, 4 * MS, "op cudaStreamSynchronize stream=%u caller=0x20", stream);
	}
	call(s, 0, 4000, "launch cudaLaunchKernel kernel=1 stream=%u caller=0x10", stream);
	fprintf(s->log, "slot 2 tid=9\n1us thread tid=9 name=\"cuda\"\n");
	for (i = 0; i < STEPS; i++)
		fprintf(s->log,
			"%lluns host_function by=cudaLaunchHostFunc tid=7 stream=%u duration=2ms "
			"ago=%lluns function=0x99 caller=0x72\n",
			(unsigned long long)handed[i] + 3 * MS, stream, 3ull * MS + 10);
	conclude(s);
}

static void functions(struct story *s, const char *beside, unsigned int behind)
{
	functions_in(s, 8, beside, behind);
}

/* A thread asks whether work is done, until it is: as good as a synchronisation with what it asks for, no better. */
static void test_asked(void **state)
{
	static const struct {
		const char *handed, *asked;
		uint64_t asked_ns;
		bool proof;
	} all[] = {
		{NULL, "kind=query object=8 caller=0x30", MS, true},
		{"op cudaEventRecord stream=8 object=0x70", "kind=query object=0x70 caller=0x30",
		 MS, true},
		{NULL, "kind=query object=8 caller=0x30 flags=4", MS, false},
		{NULL, "kind=query object=0x70 caller=0x30", MS, false},
		{NULL, "kind=poll object=8 caller=0x30", MS, false},
		{"op cudaEventRecord stream=9 object=0x70", "kind=query object=0x70 caller=0x30",
		 MS, false},
		{"launch cudaLaunchKernel kernel=2 stream=9", "kind=query object=8 caller=0x30", MS,
		 false},
		/* recorded since it was asked first */
		{"op cudaEventRecord stream=8 object=0x70", "kind=query object=0x70 caller=0x30",
		 3 * MS, false},
	};
	struct story *s = *state;
	unsigned int i, n;

	for (n = 0; n < ARRAY_SIZE(all); n++) {
		begin_with(s, "probes=1");
		for (i = 0; i < STEPS; i++) {
			launch(s, 0, 4000);
			if (all[n].handed)
				call(s, 1000, 4000, "%s caller=0x11", all[n].handed);
			s->ns += MS;
			fprintf(s->log, "%lluns outside %s duration=%lluns\n",
				(unsigned long long)s->ns, all[n].asked,
				(unsigned long long)all[n].asked_ns);
			sleeps(s);
		}
		launch(s, 0, 4000);
		conclude(s);
		assert_int_equal(ns_of(gpu(s, 0), "idle_ns"), all[n].proof ? STEPS * 2 * MS : 0);
	}
}

/* While a function on the host runs, the GPU has nothing to do, if no other stream has; because of the function, if there is
 * work behind it. */
static void test_host_function(void **state)
{
	static const char other[] = "launch cudaLaunchKernel kernel=2 stream=9 caller=0x11";
	struct story *s = *state;

	functions(s, NULL, 0);
	assert_in_range(charged(gpu(s, 0), "idle_causes", "host-function"), (STEPS - 1) * 2 * MS,
			STEPS * 2 * MS);
	assert_int_equal(ns_of(gpu(s, 0), "idle_ns"),
			 charged(gpu(s, 0), "idle_causes", "host-function"));
	functions(s, NULL, 2); /* it has been running for 1 ms by then */
	assert_in_range(charged(gpu(s, 0), "idle_causes", "host-function"),
			(STEPS - 1) * 9 * MS / 10, STEPS * MS);
	functions(s, NULL, 4);
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "host-function"), 0);
	functions(s, other, 0);
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "host-function"), 0);
	/* In the default stream that each thread has of its own. */
	functions_in(s, 2, NULL, 0);
	assert_in_range(charged(gpu(s, 0), "idle_causes", "host-function"), (STEPS - 1) * 2 * MS,
			STEPS * 2 * MS);
	functions_in(s, 2, other, 0);
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "host-function"), 0);
	/* It waits for all streams, so that its own stream alone has work from the second step on. */
	functions(s, "op cudaDeviceSynchronize caller=0x21", 0);
	assert_in_range(charged(gpu(s, 0), "idle_causes", "host-function"), (STEPS - 1) * MS,
			STEPS * 2 * MS);
}

/* Another thread's call that began before the GPU was waited for, and copies meanwhile, is known when it
 * returns. */
static void test_taken_back(void **state)
{
	struct story *s = *state;
	unsigned int i;
	uint64_t all_ns, idle_ns;

	tell(s, sleeps, "probes=1");
	all_ns = ns_of(gpu(s, 0), "idle_ns");
	begin_with(s, "probes=1");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		sleeps(s);
	}
	launch(s, 0, 4000);
	fprintf(s->log, "slot 2 tid=8\n1us thread tid=8 name=\"b\"\n");
	fprintf(s->log,
		"%uns copy cudaMemcpy stream=1 duration=%uns direction=d2h src=device dst=pinned "
		"bytes=4096 caller=0x50\n",
		21 * MS, 15 * MS);
	conclude(s);
	idle_ns = ns_of(gpu(s, 0), "idle_ns");
	assert_in_range(idle_ns, all_ns - 12 * MS, all_ns - 9 * MS);
}

/* So many things were done in each interval that they are not all kept apart for that. */
static void naps(struct story *s)
{
	char what[64];
	unsigned int i;

	for (i = 0; i < 48; i++) {
		snprintf(what, sizeof(what), "kind=%s caller=%#x", i % 8 ? "sleep" : "join",
			 0x100 + i);
		outside(s, 50000, what);
	}
}

static void test_taken_back_of_many(void **state)
{
	struct story *s = *state;
	uint64_t sum_ns = 0;
	const json_t *one;
	unsigned int i;
	size_t k;

	begin_with(s, "probes=1");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		naps(s);
	}
	launch(s, 0, 4000);
	fprintf(s->log, "slot 2 tid=8\n1us thread tid=8 name=\"b\"\n");
	fprintf(s->log,
		"%uns copy cudaMemcpy stream=1 duration=%uns direction=d2h src=device dst=pinned "
		"bytes=4096 caller=0x50\n",
		50 * MS, 45 * MS);
	conclude(s);
	json_array_foreach(json_object_get(gpu(s, 0), "idle_causes"), k, one)
	{
		assert_true(ns_of(one, "ns") <= ns_of(gpu(s, 0), "idle_ns"));
		sum_ns += ns_of(one, "ns");
	}
	assert_in_range(ns_of(gpu(s, 0), "idle_ns"), MS, STEPS * 2 * MS);
	assert_in_range(100 * charged(gpu(s, 0), "idle_causes", "join") / sum_ns, 10,
			15); /* 6 of 48 */
	assert_int_equal(sum_ns, ns_of(gpu(s, 0), "idle_ns"));
}

/* Where others' work, or calls that are not seen, may have kept the GPU busy nothing is certain, and the report says why. */
static void test_uncertain(void **state)
{
	static const struct {
		const char *line, *why;
	} cases[] = {
		{"2us note note=blind text=\"a library was opened elsewhere\"",
		 "nothing certain: not all calls are seen: see LOSSES"},
		{"discarded 5", "nothing certain: records are lost"},
		{"2us gpu device=0 name=\"A\" uuid=\"GPU-1\" pci=\"0\"\n2us share device=0 client=yes",
		 "nothing certain: other clients of MPS may use it"},
		{"3us call cudaIpcOpenMemHandle duration=1us",
		 "nothing certain: another process may work in memory that they share"},
		{"3us call cuIpcOpenMemHandle_v2 duration=1us",
		 "nothing certain: another process may work in memory that they share"},
		{"2us gpu device=0 name=\"A\" uuid=\"GPU-1\" pci=\"0\"\n2us share device=0 client=no",
		 NULL},
	};
	struct story *s = *state;

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		begin_with(s, "probes=1");
		fprintf(s->log, "%s\n", cases[n].line);
		s->ns = 5000;
		for (unsigned int i = 0; i < STEPS; i++) {
			launch(s, 0, 4000);
			wait_for_stream(s, MS, 0x20);
			sleeps(s);
		}
		launch(s, 0, 4000);
		conclude(s);
		assert_int_equal(ns_of(gpu(s, 0), "idle_ns"), cases[n].why ? 0 : STEPS * 2 * MS);
		if (cases[n].why && !is_said(s, cases[n].why))
			fail_msg("not '%s' in:\n%s", cases[n].why, s->shown);
		assert_int_equal(charged(gpu(s, 0), "feeder_causes", "sleep"), STEPS * 2 * MS);
	}
}

/* A wait for a data loader is told by the file in Python that waits; without a stack, by the last one there. */
static void test_loader(void **state)
{
	struct story *s = *state;
	unsigned int i;
	json_t *cause;

	begin_with(s, "probes=1");
	fprintf(s->log, "2us python_code code=1 first_line=3 "
			"file=\"/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py\" "
			"function=\"_try_get_data\"\n"
			"2us python_code code=2 first_line=1 file=\"/home/user/train.py\" "
			"function=\"main\"\n");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		if (!i)
			fprintf(s->log,
				"%lluns stack fn=- why=32 frames=0x30\n"
				"%lluns python_stack fn=- lines=1:1133,2:17\n",
				(unsigned long long)s->ns + 2 * MS,
				(unsigned long long)s->ns + 2 * MS);
		outside(s, 2 * MS, "kind=poll file=pipe object=3 caller=0x30");
	}
	launch(s, 0, 4000);
	conclude(s);
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "loader"), STEPS * 2 * MS);
	assert_non_null(strstr(s->shown, "torch's DataLoader: train.py:17 in main"));
	cause = json_array_get(json_object_get(gpu(s, 0), "idle_causes"), 0);
	assert_string_equal(json_string_value(json_object_get(cause, "cause")), "loader");
	assert_non_null(found(s, "starved-by-loader"));
	assert_int_equal(ns_of(found(s, "starved-by-loader"), "cost_ns"), STEPS * 2 * MS);
	assert_non_null(strstr(s->shown, "waited for torch's DataLoader for 40.00 ms"));
}

static void names_lines(const struct story *s)
{
	fputs("2us python_code code=1 first_line=3 file=\"/usr/lib/python3/threading.py\" "
	      "function=\"wait\"\n"
	      "2us python_code code=2 first_line=1 file=\"/home/user/train.py\" "
	      "function=\"main\"\n",
	      s->log);
}

/* The stack of a wait, in Python: train.py:LINE has called something that waits in threading.py. */
static void stack_at(const struct story *s, uint64_t ns, unsigned int line)
{
	fprintf(s->log,
		"%lluns stack fn=- why=32 frames=0x30\n%lluns python_stack fn=- lines=1:327,2:%u\n",
		(unsigned long long)ns, (unsigned long long)ns, line);
}

/* The idle time charged to a cause whose place has that text in it. */
static uint64_t charged_at(const struct story *s, const char *place)
{
	json_t *cause;
	uint64_t ns = 0;
	size_t i;

	json_array_foreach(json_object_get(gpu(s, 0), "idle_causes"), i, cause)
	{
		const char *site = json_string_value(json_object_get(cause, "site"));

		if (site && strstr(site, place))
			ns += ns_of(cause, "ns");
	}
	return ns;
}

/* Two lines of the program wait in one line of Python's own library: these are two places. */
static void test_lines_of_the_program(void **state)
{
	struct story *s = *state;
	unsigned int i;

	begin_with(s, "probes=1");
	names_lines(s);
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		stack_at(s, s->ns + (i % 2 ? 3 : 2) * MS, i % 2 ? 29 : 17);
		outside(s, (i % 2 ? 3 : 2) * MS, "kind=semaphore object=0x1000 caller=0x30");
	}
	launch(s, 0, 4000);
	conclude(s);
	assert_int_equal(charged_at(s, "train.py:17"), STEPS / 2 * 2 * MS);
	assert_int_equal(charged_at(s, "train.py:29"), STEPS / 2 * 3 * MS);
}

/* A wait that goes on behind its stack keeps it, and what was waited before for the same has it, too: not what was waited for
 * something else, nor a wait that began when the stack was taken already. */
static void test_waits_that_go_on(void **state)
{
	struct story *s = *state;
	unsigned int i;

	begin_with(s, "probes=1");
	names_lines(s);
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		outside(s, MS, "kind=semaphore object=0x2000 caller=0x31");
		outside(s, 2 * MS, "kind=semaphore object=0x1000 caller=0x30");
		stack_at(s, s->ns + MS, 17);
		outside(s, 4 * MS, "kind=semaphore object=0x1000 caller=0x30");
		outside(s, MS, "kind=semaphore object=0x3000 caller=0x32");
	}
	launch(s, 0, 4000);
	conclude(s);
	assert_int_equal(charged(gpu(s, 0), "idle_causes", "lock"), STEPS * 8 * MS);
	assert_int_equal(charged_at(s, "train.py:17"), STEPS * 6 * MS);
}

static void allocates_and_frees(struct story *s)
{
	allocates(s);
	call(s, 0, 20000,
	     "memory cudaFree op=free kind=device bytes=4096 address=0x9000 caller=0x41");
}

static json_t *found_in(const struct story *s, const char *id, const char *function)
{
	json_t *row;
	size_t i;

	json_array_foreach(s->findings, i, row) if (rs_is(row, "id", id) &&
						    rs_is(row, "function", function)) return row;
	return NULL;
}

/* What a GPU's idle time is charged to in calls at a finding's place is the finding's, and what no
 * finding has calls at is nobody's. */
static void test_price(void **state)
{
	static const char *const formats[] = {"sarif", "junit"};
	struct story *s = *state;
	json_t *finding;

	tell(s, allocates_and_frees, "probes=1");
	finding = found_in(s, "steady-state", "cudaMalloc");
	assert_non_null(finding);
	assert_in_range(ns_of(finding, "idle_gpu_ns"), 38 * MS, STEPS * 2 * MS);
	assert_true(is_said(s, "; GPU idle for it: "));
	for (unsigned int i = 0; i < ARRAY_SIZE(formats); i++) {
		char *text = rendered(s, formats[i]);

		assert_non_null(strstr(text, " Because of it GPUs were idle for "));
		free(text);
	}
	/* Calls that are not seen may have handed work over: nothing is certain. */
	begin_with(s, "probes=1");
	fprintf(s->log, "2us note note=blind text=\"a library was opened elsewhere\"\n");
	for (unsigned int i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		allocates_and_frees(s);
	}
	launch(s, 0, 4000);
	conclude(s);
	finding = found_in(s, "steady-state", "cudaMalloc");
	assert_non_null(finding);
	assert_true(json_is_null(json_object_get(finding, "idle_gpu_ns")));
	assert_false(is_said(s, "GPU idle for it"));
}

/* The host works right behind waits that it could have made later. */
static void test_price_behind(void **state)
{
	struct story *s = *state;
	json_t *finding;
	unsigned int i;

	begin_with(s, "probes=1");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, 3 * MS, 0x20);
		computes(s);
	}
	launch(s, 0, 4000);
	wait_for_stream(s, MS, 0x20);
	conclude(s);
	finding = found(s, "early-sync");
	assert_non_null(finding);
	assert_in_range(ns_of(finding, "idle_gpu_ns"), 36 * MS, STEPS * 2 * MS);
	assert_true(ns_of(finding, "idle_gpu_ns") <= ns_of(finding, "cost_ns"));
}

/* Who had the lock is told, and what it did with it, if it makes CUDA calls itself. */
static void test_holder(void **state)
{
	struct story *s = *state;
	uint64_t ends[STEPS];
	const json_t *cause;
	unsigned int i;

	begin_with(s, "probes=1");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		outside(s, 2 * MS, "kind=mutex object=0x1000 holder=8 caller=0x30");
		ends[i] = s->ns;
	}
	launch(s, 0, 4000);
	fprintf(s->log, "slot 2 tid=8\n1us thread tid=8 name=\"b\"\n"
			"5us op cudaEventQuery duration=1us caller=0x60\n");
	for (i = 0; i < STEPS; i++)
		fprintf(s->log,
			"%lluns outside kind=transfer file=file object=4 caller=0x70 "
			"duration=1900us\n"
			"%lluns op cudaEventQuery duration=500ns caller=0x61\n",
			(unsigned long long)ends[i] - 50000, (unsigned long long)ends[i] - 1000);
	conclude(s);
	cause = json_array_get(json_object_get(gpu(s, 0), "idle_causes"), 0);
	assert_string_equal(json_string_value(json_object_get(cause, "cause")), "lock");
	assert_int_equal(ns_of(cause, "holder"), 8);
	assert_string_equal(json_string_value(json_object_get(cause, "holder_cause")), "file");
	if (!strstr(s->shown, "waiting for thread 8 (reading or writing files)"))
		fail_msg("%s", s->shown);
}

/* The same thread's wait, at a line of Python. */
static void waits_in_python(const struct story *s, uint64_t ns, unsigned int us)
{
	fprintf(s->log,
		"%lluns stack fn=- frames=0x70,0x71\n%lluns python_stack fn=- lines=1:42\n"
		"%lluns outside kind=transfer file=file object=4 caller=0x70 duration=%uus\n"
		"%lluns op cudaEventQuery duration=500ns caller=0x61\n",
		(unsigned long long)ns, (unsigned long long)ns, (unsigned long long)ns, us,
		(unsigned long long)ns + 1000);
}

/* Where the holder was stays known, though nothing else has that stack any more. */
static void test_holders_stack(void **state)
{
	struct story *s = *state;
	uint64_t ends[STEPS], last;
	const json_t *cause;
	unsigned int i;

	begin_with(s, "probes=1");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		outside(s, 2 * MS, "kind=mutex object=0x1000 holder=8 caller=0x30");
		ends[i] = s->ns;
	}
	launch(s, 0, 4000);
	last = s->ns;
	s->ns += 400 * MS;
	for (i = 0; i < 9000; i++) {
		fprintf(s->log, "%lluns stack fn=cudaEventQuery frames=0x65,%#x\n",
			(unsigned long long)s->ns + 2000, 0x1000 + i);
		call(s, 1000, 1000, "op cudaEventQuery caller=0x65");
	}
	fprintf(s->log, "slot 2 tid=8\n1us thread tid=8 name=\"b\"\n"
			"1us python_code code=1 first_line=3 file=\"/home/train.py\" "
			"function=\"step\"\n5us op cudaEventQuery duration=1us caller=0x60\n");
	for (i = 0; i < STEPS; i++)
		waits_in_python(s, ends[i] - 50000, 1900);
	for (i = 0; i < 100; i++)
		waits_in_python(s, last + (i + 1) * 3 * MS, 2000);
	conclude(s);
	cause = json_array_get(json_object_get(gpu(s, 0), "idle_causes"), 0);
	assert_string_equal(json_string_value(json_object_get(cause, "holder_cause")), "file");
	assert_non_null(json_object_get(cause, "holder_site"));
	assert_string_equal(json_string_value(json_object_get(cause, "holder_site")),
			    "train.py:42 in step");
}

static void tell_gil(struct story *s, uint64_t wait_ns, uint64_t work_ns)
{
	unsigned int i;

	begin_with(s, "probes=1");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		outside(s, wait_ns, "kind=condition object=0x1000 caller=0x30 flags=32");
		s->ns += work_ns;
	}
	launch(s, 0, 4000);
	conclude(s);
}

/* A tenth of the thread's time is much; less is not, nor is the same time in another lock. */
static void test_gil(void **state)
{
	struct story *s = *state;
	json_t *finding;

	tell_gil(s, 2 * MS, 0);
	finding = found(s, "gil-contention");
	assert_non_null(finding);
	assert_int_equal(ns_of(finding, "cost_ns"), STEPS * 2 * MS);
	assert_int_equal(ns_of(finding, "count"), STEPS);
	assert_int_equal(ns_of(finding, "idle_gpu_ns"), STEPS * 2 * MS);
	assert_non_null(strstr(s->shown, "waited for Python's GIL for 40.00 ms between its calls"));
	assert_non_null(strstr(s->shown, "GPU idle for it: 40.00 ms"));
	tell_gil(s, 2 * MS, 18 * MS);
	assert_null(found(s, "gil-contention"));
	tell_gil(s, MS / 4, 0); /* 5 ms in all */
	assert_null(found(s, "gil-contention"));
	tell(s, sleeps, "probes=1");
	assert_null(found(s, "gil-contention"));
	assert_null(found(s, "starved-by-loader"));
}

/* A wait of 8 ms at line 17 and 19 of 2 ms at line 21, the first as code 1 says, the others as code `code` does. */
static void tell_lines(struct story *s, const char *names, const char *wait, unsigned int code)
{
	begin_with(s, "probes=1");
	fprintf(s->log,
		"%s2us python_code code=3 first_line=1 file=\"/home/user/train.py\" function=\"main\"\n",
		names);
	for (unsigned int i = 0; i < STEPS; i++) {
		uint64_t ns = i ? 2 * MS : 8 * MS, at;

		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		at = s->ns + ns;
		fprintf(s->log,
			"%lluns stack fn=- why=32 frames=0x30\n%lluns python_stack fn=- lines=%u:327,3:%u\n",
			(unsigned long long)at, (unsigned long long)at, i ? code : 1, i ? 21 : 17);
		outside(s, ns, wait);
	}
	launch(s, 0, 4000);
	conclude(s);
}

/* The place is that of most of the time, not of the longest wait; and the sentence says no more than most of it does: a wait for
 * the GIL in Event.wait is no wait for the event. */
static void test_most(void **state)
{
	static const char gil
		[] = "kind=condition object=0x1000 caller=0x30 flags=32",
	     pipe[] = "kind=poll file=pipe object=3 caller=0x30",
	     threading[] =
		     "2us python_code code=1 first_line=3 file=\"/usr/lib/python3/threading.py\" function=\"wait\"\n"
		     "2us python_code code=2 first_line=3 file=\"/usr/lib/python3/dist-packages/torch/nn.py\" function=\"f\"\n",
	     loaders[] =
		     "2us python_code code=1 first_line=3 file=\"/usr/lib/python3/dist-packages/nvidia/dali/pipeline.py\" "
		     "function=\"run\"\n"
		     "2us python_code code=2 first_line=3 file=\"/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py\" "
		     "function=\"_get\"\n";
	struct story *s = *state;
	json_t *finding;

	tell_lines(s, threading, gil, 2);
	finding = found(s, "gil-contention");
	assert_non_null(finding);
	says(finding,
	     "thread 7 (GPU 0) waited for Python's GIL for 46.00 ms between its calls, 83 % of it at train.py:21 in main");
	assert_int_equal(number(finding, "python_line"), 21);
	assert_non_null(strstr(s->shown, "also train.py:17"));
	assert_null(strstr(s->shown, "threading.Event"));
	tell_lines(s, loaders, pipe, 2);
	says(found(s, "starved-by-loader"),
	     "waited for a data loader for 46.00 ms between its calls, 83 % of it at train.py:21 in main");
	/* The same one everywhere. */
	tell_lines(s, loaders, pipe, 1);
	says(found(s, "starved-by-loader"),
	     "waited for DALI for 46.00 ms between its calls, 83 % of it at train.py:21 in main");
}

/* Several threads: those of whose time it is much together, and the one that waits longest by name. */
static void test_gil_of_several(void **state)
{
	static const struct {
		unsigned int us; /* of each 4 ms, of another thread */
		const char *says;
		uint64_t count, cost_ns;
	} cases[] = {
		{1500,
		 "thread 7 (GPU 0) waited for Python's GIL for 40.00 ms between its calls (2 threads did so, for 70.00 ms together)",
		 40, 70 * MS},
		{3000,
		 "thread 8 'b' (GPU 0) waited for Python's GIL for 60.00 ms between its calls (2 threads did so, for 100.0 ms together)",
		 40, 100 * MS},
		{300, "thread 7 (GPU 0) waited for Python's GIL for 40.00 ms between its calls", 20,
		 40 * MS},
	};
	struct story *s = *state;

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		json_t *finding;
		unsigned int i;

		begin_with(s, "probes=1");
		for (i = 0; i < STEPS; i++) {
			launch(s, 0, 4000);
			wait_for_stream(s, MS, 0x20);
			outside(s, 2 * MS, "kind=condition object=0x1000 caller=0x30 flags=32");
		}
		launch(s, 0, 4000);
		fputs("slot 2 tid=8\n1us thread tid=8 name=\"b\"\n", s->log);
		for (i = 1; i <= STEPS + 1; i++)
			fprintf(s->log,
				"%uus launch cudaLaunchKernel kernel=1 stream=9 duration=4us caller=0x10\n"
				"%uus outside kind=condition object=0x1000 caller=0x40 flags=32 duration=%uus\n",
				4000 * i, 4000 * i + 10 + cases[n].us, cases[n].us);
		conclude(s);
		finding = found(s, "gil-contention");
		assert_non_null(finding);
		if (!is_said(s, cases[n].says))
			fail_msg("not '%s' in:\n%s", cases[n].says, s->shown);
		assert_int_equal(strstr(what(finding), "threads did so") != NULL, n < 2);
		assert_int_equal(ns_of(finding, "cost_ns"), cases[n].cost_ns);
		assert_int_equal(ns_of(finding, "count"), cases[n].count);
	}
}

/* The longest part at a place shows by the stack of another one there how the program comes to it: of the same call, not of
 * another, nor by a line of Python, which is a place of its own. */
static void test_borrowed_stacks(void **state)
{
	static struct stack native, other, python = {.n_python = 1};
	static const struct idle_part plain = {
		.address = 0x10, .fn = 1, .address_before = 0x20, .fn_before = 2};
	static const struct {
		struct idle_part from;
		const struct stack *behind, *before; /* then */
	} cases[] = {
		{{.address = 0x10, .fn = 1, .stack = &native}, &native, NULL},
		{{.address_before = 0x20, .fn_before = 2, .stack_before = &native}, NULL, &native},
		{{.address = 0x11, .fn = 1, .stack = &native}, NULL, NULL},
		{{.address = 0x10, .fn = 3, .stack = &native}, NULL, NULL},
		{{.address_before = 0x21, .fn_before = 2, .stack_before = &native}, NULL, NULL},
		{{.address = 0x10, .fn = 1, .stack = &python}, NULL, NULL},
	};
	struct idle_part part;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		part = plain;
		assert_int_equal(idle_part_borrow(&part, &cases[i].from),
				 cases[i].behind || cases[i].before);
		assert_ptr_equal(part.stack, cases[i].behind);
		assert_ptr_equal(part.stack_before, cases[i].before);
	}
	part = plain;
	part.stack = &other; /* its own */
	assert_false(idle_part_borrow(&part, &cases[0].from));
	assert_ptr_equal(part.stack, &other);
}

/* Two of three GPUs have nothing to do at the same time, now and again; what is left of an interval counts. */
static void test_idle_together(void **state)
{
	struct idle_interval first[] = {{.begin_ns = 100, .end_ns = 200, .ns = 100},
					{.begin_ns = 300, .end_ns = 500, .ns = 50}};
	struct idle_interval third[] = {{.begin_ns = 190, .end_ns = 210, .ns = 20}};
	struct idle_gpu gpus[] = {{.intervals = first, .intervals_size = 2, .n_intervals = 2},
				  {.intervals_size = 1},
				  {.intervals = third, .intervals_size = 1, .n_intervals = 1}};

	(void)state;
	idle_together(gpus, 3, 1, &(struct idle_interval){.begin_ns = 150, .end_ns = 320});
	idle_together(gpus, 3, 1, &(struct idle_interval){.begin_ns = 400, .end_ns = 480});
	idle_together(gpus, 3, 1, &(struct idle_interval){.begin_ns = 500, .end_ns = 600});
	assert_int_equal(gpus[1].together_ns[0], 50 + 20 + 50);
	assert_int_equal(gpus[0].together_ns[1], 50 + 20 + 50);
	assert_int_equal(gpus[1].together_ns[2], 20);
	assert_int_equal(gpus[2].together_ns[1], 20);
	assert_int_equal(gpus[0].together_ns[2], 0);
	assert_int_equal(gpus[1].together_ns[1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
		cmocka_unit_test_setup_teardown(test_causes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_small_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_worked, setup, teardown),
		cmocka_unit_test(test_idle_together),
		cmocka_unit_test_setup_teardown(test_asked_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_on_a_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scheduled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ran_earlier, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_host_function, setup, teardown),
		cmocka_unit_test_setup_teardown(test_taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_taken_back_of_many, setup, teardown),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_meanwhile),
		cmocka_unit_test(test_sums_most),
		cmocka_unit_test(test_held),
		cmocka_unit_test_setup_teardown(test_uncertain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_loader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lines_of_the_program, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waits_that_go_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_holder, setup, teardown),
		cmocka_unit_test_setup_teardown(test_holders_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gil, setup, teardown),
		cmocka_unit_test_setup_teardown(test_most, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gil_of_several, setup, teardown),
		cmocka_unit_test(test_borrowed_stacks),
		cmocka_unit_test_setup_teardown(test_price, setup, teardown),
		cmocka_unit_test_setup_teardown(test_price_behind, setup, teardown),
	};

	return RUN_WITH_FINDINGS(tests);
}
