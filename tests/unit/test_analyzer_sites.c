/*
 * tests/unit/test_analyzer_sites.c: places of a program become one site with all that they have, which stacks are kept of
 * its calls and for how much each stands, and which of its rounds are remembered.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include "findings/site.h"
#include "account/account.h"

/* ---- sites become one ------------------------------------------------------------------------- */

static struct process process;
static struct thread threads[4] = {{.index = 0, .process = &process},
				   {.index = 1, .process = &process},
				   {.index = 2, .process = &process},
				   {.index = 3, .process = &process}};

static void test_add(void **state)
{
	struct site sum = {.count = 1,
			   .bytes = 2,
			   .failed = 3,
			   .total_ns = 4,
			   .hidden_ns = 5,
			   .cost.own_ns = 6,
			   .cost.gain_low_ns = 7,
			   .cost.gain_high_ns = 8,
			   .cost.instead_ns = 9,
			   .tally = 10,
			   .cost.others_ns = 11,
			   .cost.others_sure_ns = 12,
			   .cost.cross_ns = 13,
			   .first_ns = 100,
			   .last_ns = 200,
			   .rounds.count = 5,
			   .rounds.at_the_end = true,
			   .devices = 1,
			   .threads = 2};
	struct site more = {.count = 10,
			    .bytes = 20,
			    .failed = 30,
			    .total_ns = 40,
			    .hidden_ns = 50,
			    .cost.own_ns = 60,
			    .cost.gain_low_ns = 70,
			    .cost.gain_high_ns = 80,
			    .cost.instead_ns = 90,
			    .tally = 100,
			    .cost.others_ns = 110,
			    .cost.others_sure_ns = 120,
			    .cost.cross_ns = 130,
			    .first_ns = 50,
			    .last_ns = 150,
			    .rounds.count = 7,
			    .rounds.at_the_end = true,
			    .devices = 4,
			    .threads = 3};
	int round;

	(void)state;
	thread_set_add(&sum.callers, &threads[0]);
	thread_set_add(&more.callers, &threads[0]);
	thread_set_add(&more.callers, &threads[1]);
	for (round = 1; round <= 2; round++) {
		site_add(&sum, &more);
		assert_int_equal(sum.count, 1 + 10 * round);
		assert_int_equal(sum.bytes, 2 + 20 * round);
		assert_int_equal(sum.failed, 3 + 30 * round);
		assert_int_equal(sum.total_ns, 4 + 40 * round);
		assert_int_equal(sum.hidden_ns, 5 + 50 * round);
		assert_int_equal(sum.cost.own_ns, 6 + 60 * round);
		assert_int_equal(sum.cost.gain_low_ns, 7 + 70 * round);
		assert_int_equal(sum.cost.gain_high_ns, 8 + 80 * round);
		assert_int_equal(sum.cost.instead_ns, 9 + 90 * round);
		assert_int_equal(sum.tally, 10 + 100 * round);
		assert_int_equal(sum.cost.others_ns, 11 + 110 * round);
		assert_int_equal(sum.cost.others_sure_ns, 12 + 120 * round);
		assert_int_equal(sum.cost.cross_ns, 13 + 130 * round);
		assert_int_equal(sum.threads, 2 + 3 * round);
		assert_int_equal(sum.first_ns, round == 1 ? 50 : 40);
		assert_int_equal(sum.last_ns, round == 1 ? 200 : 250);
		assert_int_equal(sum.rounds.count, 7);
		assert_int_equal(sum.rounds.at_the_end, round == 1);
		assert_int_equal(sum.devices, round == 1 ? 5 : 13);
		assert_int_equal(sum.callers.count, 2);
		more.first_ns = 40;
		more.last_ns = 250;
		more.rounds.count = 3;
		more.devices = 8;
		more.rounds.at_the_end = false;
	}
	more.bytes = UINT64_MAX;
	site_add(&sum, &more);
	assert_int_equal(sum.bytes, NUMBER_MOST);
	thread_set_release(&sum.callers);
	thread_set_release(&more.callers);
}

/* The worst call is the longest; of equal ones the first; a site may have none. */
static void test_worst(void **state)
{
	struct site sum = {.count = 0}, more = {.count = 0};

	(void)state;
	site_add(&sum, &more);
	assert_null(sum.worst.thread);
	more.worst = (struct evidence){100, 50, &threads[1], 1};
	site_add(&sum, &more);
	assert_ptr_equal(sum.worst.thread, &threads[1]);
	assert_int_equal(sum.worst.device, 1);
	more.worst = (struct evidence){90, 49, &threads[2], 2};
	site_add(&sum, &more);
	assert_int_equal(sum.worst.begin_ns, 100);
	more.worst = (struct evidence){110, 50, &threads[2], 2};
	site_add(&sum, &more);
	assert_int_equal(sum.worst.begin_ns, 100);
	more.worst = (struct evidence){90, 50, &threads[2], 2};
	site_add(&sum, &more);
	assert_int_equal(sum.worst.begin_ns, 90);
	more.worst = (struct evidence){500, 51, &threads[3], 3};
	site_add(&sum, &more);
	assert_int_equal(sum.worst.begin_ns, 500);
	more.worst = (struct evidence){600, 99, NULL, 3};
	site_add(&sum, &more);
	assert_int_equal(sum.worst.begin_ns, 500);
}

/* Some kernels, each once, and whether there are more. */
static void test_kernels(void **state)
{
	struct site sum = {.kernels = {"a", "b"}}, more = {.kernels = {"b", "c", "d"}};
	struct site last = {.kernels = {"e"}}, none = {.more_kernels = true};

	(void)state;
	site_add(&sum, &more);
	assert_string_equal(sum.kernels[2], "c");
	assert_string_equal(sum.kernels[3], "d");
	assert_false(sum.more_kernels);
	site_add(&sum, &last);
	assert_string_equal(sum.kernels[3], "d");
	assert_true(sum.more_kernels);
	sum = (struct site){.kernels = {"a"}};
	site_add(&sum, &none);
	assert_true(sum.more_kernels);
}

/* ---- stacks ----------------------------------------------------------------------------------- */

#define WAYS (SITE_STACKS + 2)

static const struct stack *stack_of(uint64_t way)
{
	static struct stack
		*stacks[2 * WAYS]; /* of each way two: what is the same lies in either */
	static unsigned int turn;
	size_t at = 2 * way + turn++ % 2;

	if (!stacks[at]) {
		stacks[at] = calloc(1, sizeof(struct stack) + sizeof(uint64_t));
		*stacks[at] = (struct stack){.process = &process, .n = 1};
		stacks[at]->frames[0] = 0x1000 + way;
	}
	return stacks[at];
}

static void call(struct site_stacks *s, const struct stack *stack, uint64_t bytes, uint64_t cost_ns)
{
	site_stacks_call(s, &(struct site_call){
				    .bytes = bytes, .ns = 10, .cost_ns = cost_ns, .stack = stack});
}

/* A stack stands for the calls like its own that came before it; those behind the last one are shared out. */
static void test_weights(void **state)
{
	struct site_stacks s = {0};

	(void)state;
	call(&s, NULL, 64, 99); /* 100 each, with the nanosecond */
	call(&s, NULL, 128, 999);
	call(&s, stack_of(0), 64, 99);
	call(&s, stack_of(1), 128, 99);
	call(&s, stack_of(0), 64, 199);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.all[0].weight, 400);
	assert_int_equal(s.all[0].cost_ns, 199); /* the costlier one */
	assert_int_equal(s.all[1].weight, 1100);
	call(&s, stack_of(0), 64, 49);
	assert_int_equal(s.all[0].weight, 450);
	assert_int_equal(s.all[0].cost_ns, 199);
	call(&s, stack_of(2), 64, 149);
	call(&s, NULL, 64, 299); /* 450 to 150 */
	call(&s, NULL, 64, 299);
	call(&s, NULL, 4096, 5); /* like none */
	site_stacks_end(&s);
	assert_int_equal(s.all[0].weight, 450 + 450);
	assert_int_equal(s.all[1].weight, 1100);
	assert_int_equal(s.all[2].weight, 150 + 150);
	site_stacks_release(&s);
	assert_int_equal(s.n, 0);
}

/* Long calls and short ones are not alike, but where only one sort has a stack. Outliers stand for themselves. */
static void test_likes(void **state)
{
	struct site_stacks s = {0};

	(void)state;
	site_stacks_call(&s,
			 &(struct site_call){.bytes = 8, .ns = ACCOUNT_LONG_NS, .cost_ns = 999});
	call(&s, stack_of(0), 8, 99);
	assert_int_equal(s.all[0].weight, 100);
	site_stacks_call(&s, &(struct site_call){.bytes = 8,
						 .ns = ACCOUNT_LONG_NS - 1,
						 .cost_ns = 99,
						 .stack = stack_of(0)});
	assert_int_equal(s.all[0].weight, 200);
	assert_int_equal(s.all[0].ns, 10);
	call(&s, NULL, 8, 9);
	site_stacks_call(&s, &(struct site_call){.bytes = 8,
						 .ns = 77,
						 .cost_ns = 499,
						 .stack = stack_of(0),
						 .outlier = true});
	assert_int_equal(s.n, 2);
	assert_int_equal(s.all[0].weight, 200);
	assert_int_equal(s.all[1].weight, 500);
	assert_int_equal(s.all[1].like, 0);
	assert_int_equal(s.all[1].ns, 77);
	site_stacks_end(&s);
	assert_int_equal(s.all[0].weight, 200 + 10 + 1000); /* of the same bytes */
	assert_int_equal(s.all[1].weight, 500);
	site_stacks_release(&s);
}

/* So many are kept; a heavier one takes the place of the lightest. */
static void test_most_stacks(void **state)
{
	struct site_stacks s = {0}, sum = {0};
	uint64_t i;

	(void)state;
	for (i = 0; i < SITE_STACKS; i++)
		call(&s, stack_of(i), 8, i == 7 ? 9 : 99);
	assert_int_equal(s.n, SITE_STACKS);
	call(&s, stack_of(SITE_STACKS), 8, 8);
	assert_int_equal(s.all[7].weight, 10);
	assert_int_equal(s.all[7].stack->frames[0], 0x1007);
	call(&s, stack_of(SITE_STACKS), 8, 49);
	assert_int_equal(s.n, SITE_STACKS);
	assert_int_equal(s.all[7].weight, 50);
	assert_int_equal(s.all[7].stack->frames[0], 0x1000 + SITE_STACKS);
	site_stacks_add(&sum, &s);
	assert_int_equal(sum.n, SITE_STACKS);
	site_stacks_add(&sum, &s);
	for (i = 0; i < SITE_STACKS; i++)
		assert_int_equal(sum.all[i].weight, i == 7 ? 100 : 200);
	site_stacks_release(&s);
	site_stacks_release(&sum);
}

/* ---- rounds ------------------------------------------------------------------------------------ */

/* However many there are, half as many as fit and more are remembered, evenly apart, and the first one. */
static void test_rounds(void **state)
{
	struct site site = {.count = 0};
	uint64_t i, j;

	(void)state;
	for (i = 0; i < 5000; i++) {
		rounds_add(&site.rounds, 10 * i, 1000 * i);
		assert_int_equal(site.rounds.count, i + 1);
		assert_in_range(site.rounds.n_sampled, i < SITE_SAMPLES ? i + 1 : SITE_SAMPLES / 2,
				SITE_SAMPLES);
		for (j = 0; j < site.rounds.n_sampled; j++) {
			assert_int_equal(site.rounds.sampled[j].submissions,
					 10 * j * site.rounds.stride);
			assert_int_equal(site.rounds.sampled[j].ns, 1000 * j * site.rounds.stride);
		}
		assert_true(site.rounds.n_sampled * site.rounds.stride > i);
	}
	free(site.rounds.sampled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),     cmocka_unit_test(test_worst),
		cmocka_unit_test(test_kernels), cmocka_unit_test(test_weights),
		cmocka_unit_test(test_likes),   cmocka_unit_test(test_most_stacks),
		cmocka_unit_test(test_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
