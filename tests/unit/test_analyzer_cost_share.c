/*
 * tests/unit/test_analyzer_cost_share.c: how large a part of a thread's time something cost (findings/cost_share.c): of its working time,
 * of its whole time, or of all threads', whichever is most.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "account/account.h"
#include "findings/cost_share.h"

#define MS 1000000ull
#define THREADS 4

/* A process from 0 to 1000 ms that works from 200 to 700, and its threads, which are there from 100 ms on. */
struct run {
	struct trace trace;
	struct process process;
	struct thread threads[THREADS], *all[THREADS];
	struct calls_sum sums[THREADS];
	struct phase phase;
	struct model model;
	struct expect expect;
	struct callstats stats;
	struct accounting a;
	struct thread_costs costs;
};

static void begin(struct run *run)
{
	*run = (struct run){
		.process = {.trace = &run->trace, .last_ns = 1000 * MS},
		.phase = {.found = true, .begin_ns = 200 * MS, .end_ns = 700 * MS},
		.model = {.threads = run->all, .n_threads = THREADS},
		.expect.phases.all = &run->phase,
		.stats = {.threads = run->sums, .run_ns = 2000 * MS},
		.a = {.model = &run->model, .expect = &run->expect, .stats = &run->stats}};
	for (uint32_t i = 0; i < THREADS; i++) {
		run->threads[i] = (struct thread){.index = i,
						  .process = &run->process,
						  .first_ns = 100 * MS,
						  .exited_ns = UINT64_MAX};
		run->all[i] = &run->threads[i];
		run->sums[i].count = i < 2; /* two call CUDA */
	}
}

static void end(struct run *run)
{
	thread_costs_release(&run->costs);
}

static void add(struct run *run, unsigned int thread, double ms, double working_ms)
{
	thread_costs_add(&run->costs, &run->threads[thread], ms * (double)MS,
			 working_ms * (double)MS);
}

/* thread: -1: all */
static void is(struct cost_share found, int percent, enum cost_share_whole whole, int thread,
	       uint64_t cost_ms, uint64_t whole_ms)
{
	assert_true(found.share > percent / 100.0 - 1e-9 && found.share < percent / 100.0 + 1e-9);
	assert_int_equal(found.whole, whole);
	assert_int_equal(found.thread ? (int)found.thread->index : -1, thread);
	assert_int_equal(found.cost_ns, cost_ms * MS);
	assert_int_equal(found.whole_ns, whole_ms * MS);
}

static struct cost_share of(const struct run *run, uint64_t all_ms)
{
	return cost_share_of(&run->a, &run->costs, all_ms * MS);
}

/* Of its 500 ms of work, or of the 900 ms that it was there, or of the 2000 ms of all. */
static void test_larger(void **state)
{
	struct run run;

	(void)state;
	begin(&run);
	add(&run, 1, 90, 50);
	is(of(&run, 90), 10, COST_SHARE_WORKING, 1, 50, 500);
	add(&run, 1, 90, 0);
	is(of(&run, 180), 20, COST_SHARE_THREAD, 1, 180, 900);
	is(of(&run, 600), 30, COST_SHARE_ALL, -1, 600, 2000);
	is(of(&run, 400), 20, COST_SHARE_THREAD, 1, 180, 900);
	/* The thread that it costs most, of the same the first one; in its work it may be another one. */
	add(&run, 0, 180, 0);
	is(of(&run, 0), 20, COST_SHARE_THREAD, 0, 180, 900);
	add(&run, 2, 270, 0);
	add(&run, 3, 0, 200);
	is(of(&run, 0), 40, COST_SHARE_WORKING, 3, 200, 500);
	add(&run, 2, 720, 0);
	is(of(&run, 0), 100, COST_SHARE_THREAD, 2, 990, 900); /* no more than all of it */
	end(&run);
	begin(&run);
	is(of(&run, 0), 0, COST_SHARE_WORKING, -1, 0, 0);
	is(of(&run, 100), 5, COST_SHARE_ALL, -1, 100, 2000);
	end(&run);
}

/* Where no phase is known, all of the process's time is its work; and there is less of a thread that came late, ended early or was away,
 * but at least a tenth of its process's. */
static void test_lives(void **state)
{
	static const struct {
		uint64_t first_ms, exited_ms, away_ms, working_ms;
	} cases[] = {
		{100, 0, 0, 500},  {300, 0, 0, 400},  {100, 600, 0, 400}, {100, 0, 50, 450},
		{100, 0, 460, 50}, {100, 0, 600, 50}, {680, 0, 0, 50},    {800, 0, 0, 50},
		{650, 0, 0, 50},   {640, 0, 0, 60},
	};
	struct run run;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(&run);
		run.threads[1].first_ns = cases[i].first_ms * MS;
		run.threads[1].away_ns = cases[i].away_ms * MS;
		if (cases[i].exited_ms)
			run.threads[1].exited_ns = cases[i].exited_ms * MS;
		add(&run, 1, 0, (double)cases[i].working_ms / 10);
		assert_int_equal(of(&run, 0).whole_ns, cases[i].working_ms * MS);
		is(of(&run, 0), 10, COST_SHARE_WORKING, 1,
		   (uint64_t)((double)cases[i].working_ms / 10), cases[i].working_ms);
		end(&run);
	}
	begin(&run);
	run.phase = (struct phase){.begin_ns = 0, .end_ns = UINT64_MAX};
	add(&run, 1, 0, 90);
	is(of(&run, 0), 10, COST_SHARE_THREAD, 1, 90, 900);
	end(&run);
}

/* While processes worked: of the thread's 500 ms, or of the 1000 ms of the two that call CUDA. */
static void test_working(void **state)
{
	struct run run;

	(void)state;
	begin(&run);
	is(cost_share_working(&run.a, &run.costs), 0, COST_SHARE_WORKING, -1, 0, 0);
	add(&run, 0, 900, 100);
	is(cost_share_working(&run.a, &run.costs), 20, COST_SHARE_WORKING, 0, 100, 500);
	add(&run, 1, 0, 100);
	add(&run, 2, 0, 100);
	is(cost_share_working(&run.a, &run.costs), 30, COST_SHARE_ALL, -1, 300, 1000);
	add(&run, 2, 0, 50);
	is(cost_share_working(&run.a, &run.costs), 35, COST_SHARE_ALL, -1, 350, 1000);
	run.threads[1].first_ns = 450 * MS;
	add(&run, 2, 0, 25);
	is(cost_share_working(&run.a, &run.costs), 50, COST_SHARE_ALL, -1, 375, 750);
	end(&run);
}

/* A sum for each thread, however many. */
static void test_costs(void **state)
{
	static struct thread threads[100];
	struct thread_costs costs = {0}, twice = {0};
	double ns = 0, working_ns = 0;
	size_t i;

	(void)state;
	for (i = 0; i < 300; i++) {
		threads[i % 100].index = 7 * (uint32_t)(i % 100);
		thread_costs_add(&costs, &threads[i % 100], 10, 3);
	}
	assert_int_equal(costs.n, 100);
	thread_costs_join(&twice, &costs, 2);
	thread_costs_join(&twice, &costs, 0.5);
	assert_int_equal(twice.n, 100);
	for (i = 0; i < twice.n_places; i++) {
		if (!twice.all[i].thread)
			continue;
		assert_true(twice.all[i].ns == 75 && twice.all[i].working_ns == 22.5);
		ns += twice.all[i].ns;
		working_ns += twice.all[i].working_ns;
	}
	assert_true(ns == 7500 && working_ns == 2250);
	thread_costs_release(&costs);
	assert_int_equal(costs.n, 0);
	thread_costs_release(&twice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_larger),
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_working),
		cmocka_unit_test(test_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
