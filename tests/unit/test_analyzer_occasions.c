/*
 * tests/unit/test_analyzer_occasions.c: cases of a site become occasions, and these say how often it comes back (findings/recurrence.c), at
 * each bound. What findings make of it is in test_analyzer_recurrence.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "account/account.h"
#include "findings/finding.h"
#include "findings/recurrence.h"
#include "findings/site.h"

#define MS 1000000ull

/* A process of 12 s that works from 1 to 11 s in steps of 100 ms, each of which hands work to the GPU 10 times. */
struct run {
	struct trace trace;
	struct process process;
	struct thread thread, *all;
	struct calls_sum sum;
	struct phase phase;
	struct model model;
	struct expect expect;
	struct callstats stats;
	uint64_t submissions;
	struct accounting a;
	struct site site;
};

static void begin(struct run *run)
{
	*run = (struct run){.process = {.trace = &run->trace, .last_ns = 12000 * MS},
			    .thread = {.process = &run->process, .exited_ns = UINT64_MAX},
			    .all = &run->thread,
			    .sum.count = 1,
			    .phase = {.found = true,
				      .steps_sure = true,
				      .begin_ns = 1000 * MS,
				      .end_ns = 11000 * MS,
				      .step_ns = 100 * MS,
				      .step_work = 10},
			    .model = {.processes = &run->process,
				      .n_processes = 1,
				      .threads = &run->all,
				      .n_threads = 1},
			    .expect.phases.all = &run->phase,
			    .stats = {.threads = &run->sum, .run_ns = 12000 * MS},
			    .submissions = 1000,
			    .a = {.model = &run->model,
				  .expect = &run->expect,
				  .stats = &run->stats,
				  .work.submissions = &run->submissions}};
}

static void end(struct run *run)
{
	occasions_release(&run->site.occasions);
	thread_costs_release(&run->site.cost.threads);
}

static void add(struct run *run, uint64_t begin_ms, uint64_t ms, uint64_t submissions)
{
	run->site.count++;
	occasions_add(&run->site.occasions, &run->phase, begin_ms * MS, (begin_ms + ms) * MS,
		      submissions);
	thread_costs_add(&run->site.cost.threads, &run->thread, (double)(ms * MS),
			 (double)(ms * MS));
}

/* So many cases of `ms` in every n-th step. */
static void add_row(struct run *run, unsigned int n, unsigned int count, uint64_t ms)
{
	for (unsigned int i = 0; i < count; i++)
		add(run, 1000 + 100ull * n * i, ms, 10ull * n * i);
}

static struct recurrence is(const struct run *run, enum recurs recurs, uint64_t occasions,
			    uint64_t every)
{
	struct recurrence r = recurrence_of(&run->a, &run->site);

	assert_int_equal(r.recurs, recurs);
	assert_int_equal(r.occasions, occasions);
	assert_int_equal(r.every, every);
	return r;
}

/* The phase begins and ends within a step: what ends a step before it, or behind it, is not in it. */
static void test_outside(void **state)
{
	static const struct {
		uint64_t end_ms[2];
		enum recurs recurs;
		bool at_start, at_end;
	} cases[] = {
		{{899}, RECURS_START, true, false},         {{900}, RECURS_ONCE, false, false},
		{{11100}, RECURS_ONCE, false, false},       {{11101}, RECURS_END, false, true},
		{{500, 11500}, RECURS_OUTSIDE, true, true}, {{500, 5000}, RECURS_ONCE, true, false},
	};
	struct run run;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct recurrence r;

		begin(&run);
		for (size_t k = 0; k < 2 && cases[i].end_ms[k]; k++)
			add(&run, cases[i].end_ms[k] - 10, 10, 0);
		r = recurrence_of(&run.a, &run.site);
		assert_int_equal(r.recurs, cases[i].recurs);
		assert_int_equal(r.at_start, cases[i].at_start);
		assert_int_equal(r.at_end, cases[i].at_end);
		run.phase.found = false;
		is(&run, RECURS_UNKNOWN, 0, 0);
		end(&run);
	}
}

/* One and a half steps of work, or of time where no step has any, are between two occasions. */
static void test_apart(void **state)
{
	static const struct {
		double work; /* of a step */
		uint64_t ms[2], submissions[2], occasions;
	} cases[] = {
		{10, {5000, 9000}, {400, 415}, 1},  {10, {5000, 9000}, {400, 416}, 2},
		{10, {5000, 5060}, {400, 416}, 2},  {1, {5000, 5060}, {400, 402}, 2},
		{0.9, {5000, 5060}, {400, 500}, 1}, {0, {5000, 5199}, {400, 500}, 1},
		{0, {5000, 5200}, {400, 400}, 2},   {0, {5000, 5020}, {400, 500}, 1},
	};
	struct run run;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(&run);
		run.phase.step_work = cases[i].work;
		for (size_t k = 0; k < 2; k++)
			add(&run, cases[i].ms[k], 50, cases[i].submissions[k]);
		assert_int_equal(run.site.occasions.count, cases[i].occasions);
		end(&run);
	}
}

/* In each step, in every so many, or in few. */
static void test_steps(void **state)
{
	struct recurrence r;
	struct run run;

	(void)state;
	begin(&run);
	add_row(&run, 1, 100, 50);
	r = is(&run, RECURS_STEPS, 1, 1);
	assert_true(r.each && r.steps_sure && !r.little);
	assert_int_equal(r.first_ns, 1000 * MS);
	assert_int_equal(r.working_ns, 5000 * MS);
	end(&run);
	/* For nine tenths of the phase. */
	begin(&run);
	add_row(&run, 1, 90, 100);
	assert_true(is(&run, RECURS_STEPS, 1, 1).each);
	end(&run);
	begin(&run);
	add_row(&run, 1, 90, 99);
	assert_false(is(&run, RECURS_STEPS, 1, 1).each);
	end(&run);
	begin(&run);
	add_row(&run, 5, 20, 50);
	is(&run, RECURS_AGAIN, 20, 5);
	run.phase.step_work = 4; /* of 50 submissions twelve and a half */
	is(&run, RECURS_AGAIN, 20, 13);
	run.phase.step_work = 0; /* 9550 ms, 19 times */
	is(&run, RECURS_AGAIN, 20, 5);
	end(&run);
	/* For three fifths of the time from the first to the last they are in most steps. */
	begin(&run);
	add_row(&run, 2, 6, 120); /* of 1120 ms 720 */
	is(&run, RECURS_STEPS, 6, 1);
	end(&run);
	begin(&run);
	add_row(&run, 2, 6, 110); /* of 1110 ms 660 */
	is(&run, RECURS_AGAIN, 6, 2);
	end(&run);
	/* Of few steps it is unknown. */
	begin(&run);
	add_row(&run, 5, 3, 50);
	run.phase.end_ns = 2600 * MS;
	is(&run, RECURS_AGAIN, 3, 5);
	run.phase.end_ns = 2599 * MS;
	is(&run, RECURS_UNKNOWN, 0, 0);
	end(&run);
}

/* Several cases on one occasion are one, if it is short: a tenth of the work, a quarter of the time. */
static void test_once(void **state)
{
	static const struct {
		uint64_t last_ms, submissions, all;
		enum recurs recurs;
	} cases[] = {
		{5100, 410, 1000, RECURS_ONCE},
		{5100, 410, 90, RECURS_ONCE},
		{5100, 410, 89, RECURS_STEPS},
		{7450, 410, 1000, RECURS_ONCE}, /* 2500 ms, with its own 50 */
		{7451, 410, 1000, RECURS_STEPS},
	};
	struct run run;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(&run);
		add(&run, 5000, 50, 400);
		add(&run, cases[i].last_ms, 50, cases[i].submissions);
		run.submissions = cases[i].all;
		is(&run, cases[i].recurs, 1, cases[i].recurs == RECURS_STEPS);
		end(&run);
	}
	/* One case alone may be as long as it likes. */
	begin(&run);
	add(&run, 1000, 9000, 400);
	is(&run, RECURS_ONCE, 1, 0);
	end(&run);
}

/* Nine tenths of the cost in a quarter of the phase, in which little else was handed over: that is not done again. */
static void test_burst(void **state)
{
	static const struct {
		uint64_t each_ms, burst_ms, all;
		bool found;
	} cases[] = {
		{1, 2000, 1000, true},
		{1, 900, 1000, true},
		/* Of 800 ms 725 in four parts of the phase, of 700 ms 625. */
		{1, 700, 10000, true},
		{1, 600, 10000, false},
		/* From 200 to 240 of the submissions, of which seven are cases: 33. */
		{1, 2000, 330, true},
		{1, 2000, 329, false},
		{10, 2000, 1000, false},
	};
	struct recurrence r;
	struct run run;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(&run);
		add(&run, 3000, cases[i].burst_ms, 200);
		for (unsigned int k = 0; k < 100; k++)
			add(&run, 1000 + 100 * k, cases[i].each_ms, 10 * k);
		run.submissions = cases[i].all;
		r = recurrence_of(&run.a, &run.site);
		assert_int_equal(r.burst_ns > 0, cases[i].found);
		assert_int_equal(r.working_ns + r.burst_ns,
				 (cases[i].burst_ms + 100 * cases[i].each_ms) * MS);
		if (cases[i].found)
			assert_in_range(r.burst_ns, cases[i].burst_ms * MS,
					(cases[i].burst_ms + 25 * cases[i].each_ms) * MS);
		end(&run);
	}
}

/* Of two sites the larger of what there is, and all that is not in the phase. */
static void test_join(void **state)
{
	struct occasions *o;
	struct run one, more;

	(void)state;
	begin(&one);
	begin(&more);
	add(&one, 500, 10, 0);
	add_row(&one, 5, 10, 50);
	add(&more, 600, 10, 0);
	add(&more, 11500, 10, 0);
	for (unsigned int i = 0; i < 20; i++)
		add(&more, 2000 + 300 * i, 20, 100 + 30 * i);
	occasions_join(&one.site.occasions, &more.site.occasions);
	o = &one.site.occasions;
	assert_int_equal(o->before, 2);
	assert_int_equal(o->behind, 1);
	assert_int_equal(o->cases, 30);
	assert_int_equal(o->count, 20);
	assert_int_equal(o->first_ns, 1000 * MS);
	assert_int_equal(o->last_ns, 7720 * MS);
	assert_int_equal(o->within_ns, 500 * MS);
	assert_int_equal(o->first_submissions, 100); /* 0: unknown */
	assert_int_equal(o->last_submissions, 670);
	assert_int_equal(o->submissions, 670);
	/* From 1000 to 1625 ms two cases, and from 2250 to 2875 one of the first site and two of the other. */
	assert_int_equal(o->parts[0].count, 2);
	assert_int_equal(o->parts[0].ns, 100 * MS);
	assert_int_equal(o->parts[2].count, 3);
	assert_int_equal(o->parts[2].ns, 90 * MS);
	assert_int_equal(o->parts[2].first_ns, 2300 * MS);
	assert_int_equal(o->parts[2].first_submissions, 130);
	assert_int_equal(o->parts[2].submissions, 160);
	end(&one);
	end(&more);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outside), cmocka_unit_test(test_apart),
		cmocka_unit_test(test_steps),   cmocka_unit_test(test_once),
		cmocka_unit_test(test_burst),   cmocka_unit_test(test_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
