/*
 * tests/unit/test_analyzer_cost.c: what recording costs, estimated from made-up programs whose truth is known, by the plan
 * that the recorder follows: the interval has to have the truth in it as often as it says, whatever the program does.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/util.h"
#include "cost/estimate.h"
#include "cudaspy/cost_plan.h"
#include "sections/sections.h"

#define STEP_NS 1000000.0
#define RUNS 300

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t chance;

static double uniform(void)
{
	chance = chance * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(chance >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* ---- programs -------------------------------------------------------------------------------- */

/* What a program does at a moment. Its own time goes on by what it gets done: in parts with calls more slowly while they
 * are recorded. */
struct program {
	double at_ns; /* its own time */
	double speed, until_ns, rate; /* of those that draw what comes next */
};

/* Calls in a millisecond; 0: it works for itself, or waits. Less than 0: so many, and recording costs it nothing. */
typedef double rate_fn(struct program *p, double now_ns);

static double ms(const struct program *p)
{
	return p->at_ns / 1e6;
}

static double steady(struct program *p, double now_ns)
{
	(void)p;
	(void)now_ns;
	return 50;
}

static double phases(struct program *p, double now_ns)
{
	(void)now_ns;
	return fmod(ms(p), 97) < 41 ? 400 : 15;
}

/* In step with windows of 10 ms, were these not in random order. */
static double in_step(struct program *p, double now_ns)
{
	(void)now_ns;
	return fmod(ms(p), 30) < 10 ? 120 : 60;
}

static double drift(struct program *p, double now_ns)
{
	(void)p;
	return 30 * exp(now_ns / 1e10) * (1 + 0.3 * sin(now_ns / 8e8));
}

/* Others on the machine slow it down for a while. */
static double crowded(struct program *p, double now_ns)
{
	if (now_ns >= p->until_ns) {
		p->speed = exp(0.25 * normal());
		p->until_ns = now_ns - 12e6 * log(uniform());
	}
	return 60 * p->speed;
}

/* How often it calls, it changes at random moments, by powers of ten. */
static double wild(struct program *p, double now_ns)
{
	if (now_ns >= p->until_ns) {
		p->rate = pow(10, 0.6 + 2 * uniform());
		p->until_ns = now_ns - 60e6 * log(uniform());
	}
	return p->rate;
}

/* 30 % of the time with calls, then none for a time that does not depend on them. */
static double bursts(struct program *p, double now_ns)
{
	if (now_ns >= p->until_ns && p->rate == 0) {
		p->rate = 200;
		p->until_ns = p->at_ns + 300e6;
	} else if (p->rate > 0 && p->at_ns >= p->until_ns) {
		p->rate = 0;
		p->until_ns = now_ns + 700e6;
	}
	return p->rate;
}

static double few(struct program *p, double now_ns)
{
	(void)p;
	(void)now_ns;
	return 2.5;
}

static double hardly_any(struct program *p, double now_ns)
{
	(void)p;
	(void)now_ns;
	return 0.02;
}

struct scenario {
	const char *name;
	rate_fn *rate;
	double seconds;
	double noise; /* of single calls' times, in parts of them */
	double busy; /* the part of the time that recording makes longer */
};

static const struct scenario scenarios[] = {
	{"steady", steady, 20, 0.5, 1},    {"phases", phases, 30, 0.5, 1},
	{"in step", in_step, 20, 0.3, 1},  {"drift", drift, 20, 0.5, 1},
	{"crowded", crowded, 30, 0.5, 1},  {"wild", wild, 60, 0.5, 1},
	{"bursts", bursts, 40, 0.5, 0.3},  {"few calls", few, 60, 1, 1},
	{"heavy tails", steady, 20, 4, 1},
};

/* ---- a run of one ----------------------------------------------------------------------------- */

static double calls_in(struct program *p, const struct scenario *s, double now_ns, double ns,
		       double cost)
{
	double calls = 0, end_ns = now_ns + ns;

	for (; now_ns < end_ns - 1; now_ns += STEP_NS) {
		double rate = s->rate(p, now_ns) * STEP_NS / 1e6;
		double slower = rate > 0 ? 1 / (1 + cost) : 1;

		p->at_ns += STEP_NS * slower;
		rate *= slower;
		calls += rate + s->noise * sqrt(rate) * normal();
	}
	/* A window has whole calls, and begins and ends somewhere in one. */
	return floor(fmax(calls, 0) + uniform());
}

/* By the plan, from a random frame on. The caller frees. */
static struct cost_pair *run_of(const struct scenario *s, double cost, size_t *n)
{
	struct program p = {.speed = 1};
	uint64_t first = (uint64_t)(uniform() * 1e9), number;
	struct cost_pair *pairs = NULL;
	double now_ns = 0;

	*n = 0;
	for (number = first; now_ns < s->seconds * 1e9; number++) {
		struct spy_cost_frame frame = spy_cost_frame(number);
		double length_ns = (double)frame.length_ns;
		uint32_t block, place;

		now_ns = (double)((number - first) * SPY_COST_FRAME_NS);
		calls_in(&p, s, now_ns, (double)frame.first_ns, cost);
		now_ns += (double)frame.first_ns;
		for (block = 0; block < frame.blocks; block++) {
			const uint8_t *order = spy_cost_order(&frame, block);
			double calls[SPY_COST_PLACES];

			for (place = 0; place < SPY_COST_PLACES; place++) {
				calls[order[place]] = calls_in(&p, s, now_ns, length_ns,
							       order[place] == 1 ? 0 : cost);
				now_ns += length_ns;
			}
			pairs = grow(pairs, *n, sizeof(*pairs));
			pairs[(*n)++] = (struct cost_pair){calls[0], length_ns, calls[1], length_ns,
							   2 * length_ns};
		}
	}
	return pairs;
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void check_coverage(const struct scenario *s, double cost)
{
	double truth = cost * s->busy, half = 0, middle = 0;
	unsigned int i, inside = 0, known = 0;
	size_t n;

	chance = 12345;
	for (i = 0; i < RUNS; i++) {
		struct cost_pair *pairs = run_of(s, cost, &n);
		struct cost_estimate e = cost_estimate(pairs, n, 0);

		free(pairs);
		inside += e.low <= truth && truth <= e.high;
		known += e.verdict == COST_KNOWN;
		half += (e.high - e.low) / 2;
		middle += e.middle;
	}
	print_message("%-12s truth %4.1f %%: mean %6.2f %% +- %.2f %%, has the truth in %.1f %%, "
		      "known in %.0f %%\n",
		      s->name, 100 * truth, 100 * middle / RUNS, 100 * half / RUNS,
		      100.0 * inside / RUNS, 100.0 * known / RUNS);
	assert_true(inside >= (cost > 0.1 ? 0.9 : 0.93) * RUNS);
}

static void test_coverage(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(scenarios); i++) {
		check_coverage(&scenarios[i], 0);
		check_coverage(&scenarios[i], 0.02);
	}
	check_coverage(&scenarios[0], 0.01);
	check_coverage(&scenarios[0], 0.05);
	check_coverage(&scenarios[1], 0.2);
}

static struct cost_estimate estimate_of(rate_fn *rate, double seconds, double cost)
{
	struct scenario s = {"", rate, seconds, 0.5, 1};
	struct cost_estimate e;
	struct cost_pair *pairs;
	size_t n;

	chance = 7;
	pairs = run_of(&s, cost, &n);
	e = cost_estimate(pairs, n, 0);
	free(pairs);
	return e;
}

/* What cannot be told is not told. */
static void test_verdicts(void **state)
{
	struct cost_pair alike[12];
	struct cost_estimate e;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(alike); i++)
		alike[i] = (struct cost_pair){1000, 1e7, 1010 + (double)(i % 3), 1e7, 2e7};
	assert_int_equal(cost_estimate(NULL, 0, 0).verdict, COST_NOTHING);
	assert_int_equal(estimate_of(steady, 20, 0.02).verdict, COST_KNOWN);
	assert_int_equal(cost_estimate(alike, 11, 0).verdict, COST_FEW_BLOCKS);
	assert_int_equal(cost_estimate(alike, 12, 0).verdict, COST_KNOWN);
	assert_int_equal(estimate_of(hardly_any, 30, 0.02).verdict, COST_FEW_CALLS);
	assert_int_equal(estimate_of(crowded, 2, 0.02).verdict, COST_VARIES);
	/* A large cost need not be known as exactly. */
	e = estimate_of(steady, 10, 1.0);
	assert_int_equal(e.verdict, COST_KNOWN);
	assert_true(e.low > 0.8 && e.high < 1.2);
}

/* Where one of a pair's windows has few calls, it is no comparison of its own, whichever that is. */
static void test_few(void **state)
{
	struct cost_pair pairs[80];
	struct cost_estimate e;

	(void)state;
	for (int few = 0; few < 2; few++) {
		for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
			pairs[i] = few ? (struct cost_pair){5, 5 * 1100.0, 100, 1e5, 1e6}
				       : (struct cost_pair){100, 1.1e5, 5, 5 * 1000.0, 1e6};
		e = cost_estimate(pairs, ARRAY_SIZE(pairs), 0);
		assert_int_equal(e.compared, ARRAY_SIZE(pairs) / 4); /* of 20 calls each */
		assert_int_equal(e.verdict, COST_KNOWN);
		assert_true(fabs(e.middle - 0.1) < 1e-9);
	}
}

/* 40 pairs, half of them so much above what the others are below; a known cost is known to 5 % to each side. */
static struct cost_estimate wide(double apart)
{
	struct cost_pair pairs[40];

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		pairs[i] = (struct cost_pair){1000, 1e7 * (i % 2 ? 1 + apart : 1 - apart), 1000,
					      1e7, 2e7};
	return cost_estimate(pairs, ARRAY_SIZE(pairs), 0);
}

static void test_width(void **state)
{
	(void)state;
	assert_int_equal(wide(0.11).verdict, COST_KNOWN);
	assert_in_range((uint64_t)((wide(0.11).high - wide(0.11).low) * 1e3), 60, 80);
	assert_int_equal(wide(0.2).verdict, COST_VARIES);
}

/* Time without any call makes the cost of the whole less, not that of calls. */
static void test_idle(void **state)
{
	struct scenario s = {"", steady, 20, 0.5, 1};
	struct cost_estimate e, idle;
	struct cost_pair *pairs;
	size_t n;

	(void)state;
	pairs = run_of(&s, 0.04, &n);
	e = cost_estimate(pairs, n, 0);
	idle = cost_estimate(pairs, n, 40e9);
	assert_true(idle.middle < e.middle);
	cost_estimate_of_busy(&idle);
	assert_true(fabs(idle.middle - e.middle) < 1e-9);
	free(pairs);
}

/* Percentiles of 97.5 %, as tables have them. */
static void test_student(void **state)
{
	(void)state;
	assert_true(fabs(cost_student(5) - 2.5706) < 0.02);
	assert_true(fabs(cost_student(11) - 2.2010) < 0.003);
	assert_true(fabs(cost_student(30) - 2.0423) < 0.001);
	assert_true(fabs(cost_student(1e6) - 1.9600) < 0.001);
}

static void told(const char *text, const char *begin, bool more)
{
	assert_memory_equal(text, begin, strlen(begin));
	assert_int_equal(strstr(text, "too short") != NULL, more);
}

/* Of three processes one kept no limit, and one has left nothing: what became of the limit is told of the others. */
static void test_kept(void **state)
{
	static struct trace traces[4];
	struct process processes[4] = {{.trace = NULL}};
	struct model model = {.processes = processes, .n_processes = 4};
	const struct accounting accounts = {.model = &model};
	const struct cost_study cost = {.accounts = &accounts};
	struct board *board = &traces[0].board;
	struct arena texts = {0};
	unsigned int i, kind;

	(void)state;
	for (i = 0; i < 4; i++) {
		processes[i].trace = &traces[i];
		traces[i].board.present = i != 1;
		traces[i].board.head.overhead_ppm = i == 2 ? 0 : 50000;
		for (kind = 0; kind < SPY_COST_KINDS; kind++)
			traces[i].board.head.cost_cycles[kind] = 77000;
	}
	board->head.overhead_ppm = 20000;
	board->head.cost_ppm = 250000; /* a fifth of the time */
	board->head.lean_ppm = 111111; /* a tenth */
	board->head.cost_cycles[SPY_COST_ALL] = 40;
	board->head.cost_cycles[SPY_COST_NO_PROBES] = 10;
	board->head.cost_cycles[SPY_COST_NO_STACKS] = 10;
	board->head.cost_cycles[SPY_COST_LEAN] = 20;
	board->head.cost_cycles[SPY_COST_COUNTING] = 20;
	board = &traces[3].board;
	memset(board->head.cost_cycles, 0, sizeof(board->head.cost_cycles));
	board->head.cost_cycles[SPY_COST_COUNTING] = 100;
	board->head.cost_ppm = -1;
	/* 60 / 5 + 20 / 10 are 14 of 200, which is 7.5 % of the others. */
	told(report_cost_text(&texts, &cost),
	     "--overhead=5%: with everything in 30 % of the time, without probes and stacks in 10 "
	     "%, calls only counted in 60 %, which makes about 7.53 %",
	     true);
	board->head.cost_cycles[SPY_COST_COUNTING] = 300;
	told(report_cost_text(&texts, &cost),
	     "--overhead=5%: with everything in 15 % of the time, without probes and stacks in 5.0 "
	     "%, calls only counted in 80 %, which makes about 3.63 %",
	     false);
	arena_release(&texts);
}

#define BLOCKS 12

/* A block's windows of a length each; a thread that makes no call in one leaves no record. */
static size_t window_at(struct cost_window *windows, unsigned int block, struct thread *thread,
			enum spy_cost_kind kind, uint32_t calls)
{
	*windows = (struct cost_window){
		.number = spy_cost_window(block, 0, kind),
		.thread = thread,
		.ns = (double)spy_cost_frame(block).length_ns,
		.calls = calls,
		.kind = (uint8_t)kind,
	};
	return 1;
}

/* What recording costs a program, and of that one of its threads, by windows in the order in which they ended. */
static void test_windows(void **state)
{
	static struct trace trace = {.board.head.overhead_ppm = 1};
	static struct process process = {.trace = &trace};
	static struct thread threads[2] = {{.process = &process, .index = 0},
					   {.process = &process, .index = 1}};
	static struct cost_window windows[6 * BLOCKS];
	struct cost_study cost = {.windows = windows};
	struct cost_of of = {.fn = COST_ALL_FUNCTIONS};
	struct cost_estimate e;
	unsigned int i, k;
	double ns = 0;

	(void)state;
	for (i = BLOCKS; i-- > 0;) {
		for (k = 0; k < 2; k++) {
			cost.n += window_at(&windows[cost.n], i, &threads[k], SPY_COST_COUNTING,
					    k ? 1600 : 1200);
			cost.n += window_at(&windows[cost.n], i, &threads[k], SPY_COST_ALL,
					    k ? 1000 : 1000);
		}
		cost.n += window_at(&windows[cost.n], i, &threads[0], SPY_COST_NO_PROBES, 1300);
		ns += 3 * (double)spy_cost_frame(i).length_ns;
	}
	cost_finish(&cost);
	e = cost_compare(&cost, &of, SPY_COST_COUNTING);
	assert_int_equal(e.compared, BLOCKS);
	assert_true(fabs(e.middle - 0.4) < 1e-6);
	/* Less than with all: the second thread made no call then. */
	e = cost_compare(&cost, &of, SPY_COST_NO_PROBES);
	assert_true(fabs(e.middle - -0.35) < 1e-6);
	assert_true(fabs(cost_rate(&cost, &of).ns - ns) < 1);
	assert_int_equal(cost_rate(&cost, &of).calls, BLOCKS * (2800 + 2000 + 1300));

	of.thread = &threads[0];
	e = cost_compare(&cost, &of, SPY_COST_NO_PROBES);
	assert_true(fabs(e.middle - 0.3) < 1e-6);
	e = cost_compare(&cost, &of, SPY_COST_NO_STACKS);
	assert_int_equal(e.compared, 0);
	of.thread = &threads[1];
	e = cost_compare(&cost, &of, SPY_COST_COUNTING);
	assert_true(fabs(e.middle - 0.6) < 1e-6);
	assert_int_equal(cost_rate(&cost, &of).calls, BLOCKS * (1600 + 1000));

	/* A thread that made no call in a window was there, though it has left no record. */
	of.thread = &threads[0];
	windows[0].thread = &threads[1];
	assert_int_equal(cost_compare(&cost, &of, SPY_COST_COUNTING).pairs, BLOCKS);
	windows[0].thread = &threads[0];

	/* Where a thread had hardly any CPU, nothing is compared. */
	of.thread = NULL;
	windows[1].ns = 0;
	e = cost_compare(&cost, &of, SPY_COST_COUNTING);
	assert_int_equal(e.pairs, BLOCKS - 1);
	assert_true(fabs(e.middle - 0.4) < 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),     cmocka_unit_test(test_windows),
		cmocka_unit_test(test_student),  cmocka_unit_test(test_coverage),
		cmocka_unit_test(test_verdicts), cmocka_unit_test(test_few),
		cmocka_unit_test(test_width),    cmocka_unit_test(test_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
