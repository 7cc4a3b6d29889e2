/*
 * tests/unit/test_analyzer_straggler.c: which rank holds a job up, and what that costs (findings/straggler.c), at each
 * threshold: from sums of ranks that are written down here. How the sums come about is in test_analyzer_ranks.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "findings/straggler.h"

#define MS 1000000ull
#define RANKS 8
#define JOB_NS (10000 * MS)
#define OPERATIONS 64

/* Ranks whose first operations lie 10 s before their last ones. */
struct job {
	struct ranks ranks;
	struct rank rank[RANKS], *all[RANKS], *late; /* late: rank 1 */
	struct idle idle;
};

/* These ranks, late by so many ms in all; rank 1 in all parts of the run, by the same each time. */
static void begin(struct job *job, size_t n, const uint64_t *late_ms)
{
	size_t i;

	*job = (struct job){.ranks = {.all = job->all, .n = n, .idle = &job->idle}};
	job->late = &job->rank[1];
	for (i = 0; i < n; i++) {
		job->all[i] = &job->rank[i];
		job->rank[i] = (struct rank){.index = (uint32_t)i,
					     .number = (uint32_t)i,
					     .first_ns = 5 * MS,
					     .last_ns = 5 * MS + JOB_NS,
					     .timed = 100,
					     .late_ns = late_ms[i] * MS,
					     .sure_ns = late_ms[i] * MS};
		job->ranks.late_ns += late_ms[i] * MS;
	}
	for (i = 0; i < OPERATIONS; i++) {
		rank_parts_next(&job->ranks.parts);
		rank_parts_add(&job->ranks.parts, 1, MS);
	}
}

static void end(struct job *job)
{
	struct idle_sum *sum, *next;

	HASH_EMPTY (job->idle.sums.by_key, sum, next)
		free(sum);
	rank_parts_release(&job->ranks.parts);
}

static void finds(const struct job *job, enum straggler_by by, bool mostly)
{
	struct straggler h = straggler_find(&job->ranks);

	assert_int_equal(h.by, by);
	assert_int_equal(h.mostly, mostly);
	if (by != STRAGGLER_NONE && mostly)
		assert_ptr_equal(h.rank, job->late);
}

/* ---- does one rank stand out? ----------------------------------------------------------------- */

/* Of three ranks and more 60 % of all lateness, or 35 % and three times the second one; of two 70 %. */
static void test_stands_out(void **state)
{
	static const struct {
		size_t n;
		uint64_t late_ms[RANKS];
		bool mostly;
	} jobs[] = {
		{3, {0, 600, 400}, true},
		{3, {0, 598, 400}, false},
		{4, {200, 602, 201, 0}, true},
		{4, {300, 900, 300, 300}, true},
		{4, {300, 899, 300, 300}, false},
		{4, {301, 900, 300, 300}, false},
		{7, {100, 350, 110, 110, 110, 110, 110}, true},
		{7, {102, 350, 110, 110, 110, 110, 110}, false},
		{2, {300, 700}, true},
		{2, {302, 700}, false},
		{2, {200, 602}, true},
	};
	struct job job;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		begin(&job, jobs[i].n, jobs[i].late_ms);
		finds(&job, jobs[i].mostly ? STRAGGLER_BY_HOST : STRAGGLER_NONE, jobs[i].mostly);
		end(&job);
	}
}

/* 2.5 % of the job's time, more than once, and where others surely waited for it; in nearly all parts of the run. */
static void test_enough(void **state)
{
	static const struct {
		uint64_t late_ms, longest_ms, sure_ms, longest_sure_ms;
		bool found;
	} jobs[] = {
		{250, 0, 250, 0, true},     {249, 0, 249, 0, false},   {250, 1, 250, 0, false},
		{350, 100, 350, 100, true}, {350, 101, 350, 0, false}, {350, 0, 250, 0, true},
		{350, 0, 249, 0, false},    {350, 0, 350, 101, false},
	};
	struct job job;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		begin(&job, 3, (const uint64_t[]){0, jobs[i].late_ms, 0});
		job.late->longest_late_ns = jobs[i].longest_ms * MS;
		job.late->sure_ns = jobs[i].sure_ms * MS;
		job.late->longest_sure_ns = jobs[i].longest_sure_ms * MS;
		finds(&job, jobs[i].found ? STRAGGLER_BY_HOST : STRAGGLER_NONE, jobs[i].found);
		end(&job);
	}
	begin(&job, 3, (const uint64_t[]){0, 1000, 0});
	rank_parts_release(&job.ranks.parts);
	finds(&job, STRAGGLER_NONE, false);
	end(&job);
}

/* What runs beside the GPU's own work costs nothing: as far as that is known of all ranks. */
static void test_exposed(void **state)
{
	static const struct {
		uint64_t exposed_ms[3];
		bool known, found;
	} jobs[] = {
		{{0, 0, 250}, true, true},
		{{250, 1, 0}, true, true},
		{{249, 249, 249}, true, false},
		{{0, 0, 0}, false, true},
	};
	struct job job;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		begin(&job, 3, (const uint64_t[]){0, 1000, 0});
		for (k = 0; k < 3; k++) {
			job.rank[k].exposed_ns = jobs[i].exposed_ms[k] * MS;
			job.rank[k].exposed_known = jobs[i].known || k != 2;
		}
		finds(&job, jobs[i].found ? STRAGGLER_BY_HOST : STRAGGLER_NONE, jobs[i].found);
		end(&job);
	}
}

/* The time of the job is that of its steps, where there are ten; of the longest rank; of the part that digests have. */
static void test_job_time(void **state)
{
	static const struct {
		struct rank_steps steps;
		double part;
		uint64_t longer_ms; /* than others a rank takes */
		uint64_t ms;
	} jobs[] = {
		{{.count = 0}, 0, 0, 10000},
		{{.count = 0}, 0, 500, 10500},
		{{.count = 9, .outside_ns = 4000 * MS, .total_ns = 5000 * MS}, 0, 0, 10000},
		{{.count = 10, .outside_ns = 4000 * MS, .total_ns = 5000 * MS}, 0, 0, 6000},
		{{.count = 10, .outside_ns = 12000 * MS, .total_ns = 5000 * MS}, 0, 0, 0},
		{{.count = 10, .outside_ns = UINT64_MAX, .total_ns = 5000 * MS}, 0, 0, 5000},
		{{.count = 10, .outside_ns = UINT64_MAX, .total_ns = 15000 * MS}, 0, 0, 10000},
		{{.count = 0}, 0.25, 0, 2500},
		{{.count = 10, .outside_ns = 4000 * MS, .total_ns = 5000 * MS}, 0.5, 0, 3000},
	};
	struct job job;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		begin(&job, 3, (const uint64_t[]){0, 0, 0});
		job.rank[2].last_ns += jobs[i].longer_ms * MS;
		job.ranks.steps = jobs[i].steps;
		job.ranks.part = jobs[i].part;
		assert_int_equal(straggler_find(&job.ranks).job_ns, jobs[i].ms * MS);
		end(&job);
	}
}

/* ---- by its thread, by its GPU, or by the work of that? ---------------------------------------- */

/* 60 % of its usual lateness is its GPU's. Then: had it as much to do, 80 % of the times, and was it last in 60 % of all
 * steps, or else operations? Work that is divided evenly saves only a part of it. */
static void test_by(void **state)
{
	static const struct {
		uint64_t late_ms, longest_ms, gpu_ms, longest_gpu_ms;
		uint64_t same, last; /* of 100 */
		uint64_t steps, own_steps;
		uint64_t bytes[3]; /* that each received */
		enum straggler_by by;
	} jobs[] = {
		{1000, 0, 600, 0, 80, 60, 0, 0, {0}, STRAGGLER_BY_GPU},
		{1000, 0, 599, 0, 80, 60, 0, 0, {0}, STRAGGLER_BY_HOST},
		{1100, 100, 700, 100, 80, 60, 0, 0, {0}, STRAGGLER_BY_GPU},
		{1100, 100, 700, 101, 80, 60, 0, 0, {0}, STRAGGLER_BY_HOST},
		{1000, 0, 600, 0, 79, 60, 0, 0, {0}, STRAGGLER_BY_WORK},
		{1000, 0, 600, 0, 80, 59, 0, 0, {0}, STRAGGLER_BY_WORK},
		{1000, 0, 600, 0, 80, 0, 10, 6, {0}, STRAGGLER_BY_GPU},
		{1000, 0, 600, 0, 80, 0, 10, 5, {0}, STRAGGLER_BY_WORK},
		{1000, 0, 600, 0, 80, 0, 9, 9, {0}, STRAGGLER_BY_WORK},
		{1000, 0, 600, 0, 80, 60, 10, 5, {0}, STRAGGLER_BY_GPU},
		{1000, 0, 600, 0, 80, 60, 0, 0, {100, 110, 100}, STRAGGLER_BY_WORK},
		{1000, 0, 600, 0, 80, 60, 0, 0, {100, 109, 100}, STRAGGLER_BY_GPU},
		{1000, 0, 600, 0, 80, 60, 0, 0, {0, 110, 100}, STRAGGLER_BY_GPU},
		{750, 0, 750, 0, 79, 60, 0, 0, {0}, STRAGGLER_BY_WORK},
		{749, 0, 749, 0, 79, 60, 0, 0, {0}, STRAGGLER_NONE},
		{850, 101, 850, 101, 79, 60, 0, 0, {0}, STRAGGLER_NONE},
		{749, 0, 749, 0, 80, 60, 0, 0, {0}, STRAGGLER_BY_GPU},
	};
	struct job job;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		begin(&job, 3, (const uint64_t[]){0, jobs[i].late_ms, 0});
		job.late->longest_late_ns = jobs[i].longest_ms * MS;
		job.late->gpu_late_ns = jobs[i].gpu_ms * MS;
		job.late->longest_gpu_late_ns = jobs[i].longest_gpu_ms * MS;
		job.late->gpu_late_count = 100;
		job.late->gpu_late_same_work = jobs[i].same;
		job.late->last_count = jobs[i].last;
		job.late->steps = jobs[i].own_steps;
		job.ranks.steps.count = jobs[i].steps;
		job.ranks.steps.total_ns = JOB_NS;
		for (k = 0; k < 3; k++)
			job.rank[k].exchanged_bytes = jobs[i].bytes[k];
		finds(&job, jobs[i].by, true);
		end(&job);
	}
}

/* Now one and now another, for a quarter of the job's time without the longest, and GPUs for 60 % of it. */
static void test_in_turn(void **state)
{
	static const struct {
		uint64_t late_ms[3], longest_ms, gpu_ms[3];
		enum straggler_by by;
	} jobs[] = {
		{{1249, 1251, 0}, 0, {750, 750, 0}, STRAGGLER_BY_WORK},
		{{1248, 1251, 0}, 0, {750, 750, 0}, STRAGGLER_NONE},
		{{1249, 1251, 0}, 1, {750, 750, 0}, STRAGGLER_NONE},
		{{1249, 1252, 0}, 1, {750, 751, 0}, STRAGGLER_BY_WORK},
		{{1249, 1251, 0}, 0, {750, 749, 0}, STRAGGLER_NONE},
	};
	struct job job;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		begin(&job, 3, jobs[i].late_ms);
		job.late->longest_late_ns = jobs[i].longest_ms * MS;
		for (k = 0; k < 3; k++)
			job.rank[k].gpu_late_ns = jobs[i].gpu_ms[k] * MS;
		finds(&job, jobs[i].by, false);
		end(&job);
	}
	/* Of equal ones the first stands for them. */
	begin(&job, 3, (const uint64_t[]){1300, 1300, 1300});
	assert_ptr_equal(straggler_find(&job.ranks).rank, &job.rank[0]);
	end(&job);
	/* One that stands out, but not systematically, is neither. */
	begin(&job, 3, (const uint64_t[]){0, 5000, 0});
	rank_parts_release(&job.ranks.parts);
	job.late->gpu_late_ns = 5000 * MS;
	finds(&job, STRAGGLER_NONE, false);
	end(&job);
}

/* Received in all-to-alls, in times of the others' mean. */
static void test_share(void **state)
{
	struct job job;

	(void)state;
	begin(&job, 3, (const uint64_t[]){0, 1000, 0});
	assert_true(straggler_share(&job.ranks, job.late) == 0);
	job.rank[0].exchanged_bytes = 100;
	job.rank[1].exchanged_bytes = 600;
	job.rank[2].exchanged_bytes = 300;
	assert_true(straggler_share(&job.ranks, job.late) == 3);
	assert_true(straggler_share(&job.ranks, &job.rank[0]) == 100 * 2 / 900.0);
	job.rank[2].exchanged_bytes = 0;
	assert_true(straggler_share(&job.ranks, job.late) == 0);
	job.ranks.n = 1;
	assert_true(straggler_share(&job.ranks, &job.rank[0]) == 0);
	end(&job);
}

/* ---- the reason of a thread -------------------------------------------------------------------- */

static struct idle_sum *reason(struct job *job, size_t rank, enum idle_cause cause,
			       uint64_t address, uint32_t code, uint64_t ms)
{
	struct idle_sum *sum;

	HASH_NEW(job->idle.sums.by_key, sum, key,
		 (struct idle_sum_key){.owner = idle_owner_rank(rank),
				       .address = address,
				       .process = 1,
				       .cause = cause,
				       .code = code,
				       .line = (uint32_t)ms});
	sum->ns = ms * MS;
	return sum;
}

static void is_reason(const struct job *job, const struct idle_sum *sum, uint64_t ms, int kind)
{
	struct straggler_reason found = straggler_reason(&job->idle, job->late);

	assert_ptr_equal(found.sum, sum);
	assert_int_equal(found.ns, ms * MS);
	assert_int_equal(found.kind, kind);
}

/* The largest, lines of a function of Python's together; not of other ranks, nor what its GPU was late. */
static void test_reason(void **state)
{
	struct idle_sum *sleep, *line, *other;
	struct job job;

	(void)state;
	begin(&job, 3, (const uint64_t[]){0, 900, 0});
	is_reason(&job, NULL, 0, STRAGGLER_EXCESS);
	reason(&job, 1, IDLE_GPU_WORK, 0, 0, 5000);
	reason(&job, 2, IDLE_SLEEP, 0, 0, 4000);
	is_reason(&job, NULL, 0, STRAGGLER_EXCESS);
	sleep = reason(&job, 1, IDLE_LOCK, 0, 0, 0);
	is_reason(&job, sleep, 0, STRAGGLER_EXCESS);
	sleep = reason(&job, 1, IDLE_SLEEP, 0, 0, 250);
	is_reason(&job, sleep, 250, STRAGGLER_EXCESS);
	reason(&job, 1, IDLE_PYTHON, 0, 7, 100);
	line = reason(&job, 1, IDLE_PYTHON, 0, 7, 150);
	is_reason(&job, sleep, 250, STRAGGLER_EXCESS); /* of equal ones the larger sum */
	reason(&job, 1, IDLE_PYTHON, 0, 7, 49);
	reason(&job, 1, IDLE_PYTHON, 0, 8, 200);
	reason(&job, 2, IDLE_PYTHON, 0, 7, 60);
	reason(&job, 1, IDLE_CPU, 0, 7, 61);
	HASH_NEW(job.idle.sums.by_key, other, key,
		 (struct idle_sum_key){
			 .owner = idle_owner_rank(1), .cause = IDLE_PYTHON, .code = 7});
	other->ns = 62 * MS; /* of another process */
	is_reason(&job, line, 299, STRAGGLER_SPREAD); /* a third is 300 */
	reason(&job, 1, IDLE_PYTHON, 0, 7, 1);
	is_reason(&job, line, 300, STRAGGLER_EXCESS);
	/* Half of the lateness at places where the others compute, too. */
	job.late->unshared.alike_ns = 450 * MS;
	is_reason(&job, line, 300, STRAGGLER_ALIKE);
	job.late->unshared.alike_ns = 449 * MS;
	is_reason(&job, line, 300, STRAGGLER_EXCESS);
	/* What no other rank does, where the others do not exceed it. */
	other = reason(&job, 1, IDLE_CPU, 0x10, 0, 5);
	job.late->unshared.ns = 500 * MS;
	job.late->unshared.excess_ns = 501 * MS;
	is_reason(&job, line, 300, STRAGGLER_EXCESS);
	job.late->unshared.most = other;
	is_reason(&job, line, 300, STRAGGLER_EXCESS);
	job.late->unshared.alike_ns = 450 * MS;
	is_reason(&job, other, 500, STRAGGLER_UNSHARED);
	job.late->unshared.alike_ns = 0;
	job.late->unshared.excess_ns = 500 * MS;
	is_reason(&job, other, 500, STRAGGLER_UNSHARED);
	end(&job);
}

/* Ranks are late in turn, and one of them does what the others do not: 2.5 % of the job's time, more than once, 70 % of
 * what any rank does alone. */
static void test_unshared(void **state)
{
	static const struct {
		uint64_t unshared_ms[3], longest_ms, excess_ms, sure_ms;
		bool found;
	} jobs[] = {
		{{0, 250, 0}, 0, 0, 500, true},    {{0, 249, 0}, 0, 0, 500, false},
		{{0, 250, 0}, 1, 0, 500, false},   {{0, 350, 0}, 100, 0, 500, true},
		{{300, 700, 0}, 0, 0, 500, true},  {{300, 698, 0}, 0, 0, 500, false},
		{{0, 250, 0}, 0, 251, 500, false}, {{0, 250, 0}, 0, 250, 250, true},
		{{0, 250, 0}, 0, 250, 249, false},
	};
	struct job job;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		begin(&job, 3, (const uint64_t[]){1000, 900, 900});
		for (k = 0; k < 3; k++)
			job.rank[k].unshared.ns = jobs[i].unshared_ms[k] * MS;
		job.late->unshared.most = reason(&job, 1, IDLE_SLEEP, 0, 0, 200);
		job.late->unshared.excess_ns = jobs[i].excess_ms * MS;
		job.late->longest_late_ns = jobs[i].longest_ms * MS;
		job.late->sure_ns = jobs[i].sure_ms * MS;
		finds(&job, jobs[i].found ? STRAGGLER_BY_HOST : STRAGGLER_NONE, jobs[i].found);
		end(&job);
	}
}

/* ---- stages ------------------------------------------------------------------------------------ */

/* Four stages of a pipeline, rank 1 the one that waits least, rank 2 late for longer, and a rank beside them. */
static void stages(struct job *job, const uint64_t *wait_ms)
{
	size_t i;

	begin(job, 5, (const uint64_t[]){100, 900, 950, 100, 0});
	for (i = 0; i < 5; i++) {
		job->rank[i].wait_ns = wait_ms[i] * MS;
		job->rank[i].messages = i < 4 ? 10 : 0;
		job->rank[i].messages_wait_ns = job->rank[i].messages ? wait_ms[i] * MS : 0;
		job->ranks.wait_ns += wait_ms[i] * MS;
	}
}

static void test_stages(void **state)
{
	static const struct {
		uint64_t wait_ms[5], longest_ms, gpu_ms, work_ms;
		enum straggler_by by;
	} jobs[] = {
		/* 500 ms are 5 % of the job's time: of 4 stages 2000 ms more than 4 times the least. */
		{{900, 100, 700, 700, 0}, 0, 0, 0, STRAGGLER_BY_HOST},
		{{900, 100, 700, 699, 0}, 0, 0, 0, STRAGGLER_NONE},
		{{900, 100, 700, 700, 0}, 250, 0, 0, STRAGGLER_BY_HOST},
		{{900, 100, 700, 700, 0}, 251, 0, 0, STRAGGLER_NONE},
		{{900, 100, 700, 700, 0}, 0, 539, 0, STRAGGLER_BY_HOST},
		/* The others work for 9100, 9300 and 9300 ms at most: it does for 500 more than the mean of 4. */
		{{900, 100, 700, 700, 0}, 0, 540, 9900, STRAGGLER_BY_WORK},
		{{900, 100, 700, 700, 0}, 0, 540, 9899, STRAGGLER_NONE},
		{{900, 100, 700, 700, 0}, 0, 540, 8000, STRAGGLER_NONE},
		{{12000, 100, 700, 700, 0}, 0, 540, 7000, STRAGGLER_BY_WORK},
	};
	struct straggler h;
	struct job job;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		stages(&job, jobs[i].wait_ms);
		job.late->longest_late_ns = jobs[i].longest_ms * MS;
		job.late->gpu_late_ns = jobs[i].gpu_ms * MS;
		job.late->work_ns = jobs[i].work_ms * MS;
		h = straggler_find(&job.ranks);
		assert_true(h.stages);
		assert_int_equal(h.n_stages, 4);
		assert_int_equal(h.waits_ns, 100 * MS);
		assert_int_equal(h.more_ns, job.ranks.wait_ns - 4 * 100 * MS);
		assert_ptr_equal(h.rank, job.late);
		finds(&job, jobs[i].by, jobs[i].by != STRAGGLER_NONE);
		end(&job);
	}
}

/* Not where they wait as much in other operations, where one rank alone sends, or where none is late. */
static void test_no_stages(void **state)
{
	static const uint64_t wait_ms[5] = {900, 100, 700, 700, 0};
	struct job job;

	(void)state;
	stages(&job, wait_ms);
	job.rank[4].wait_ns += 2400 * MS;
	job.ranks.wait_ns += 2399 * MS;
	assert_true(straggler_find(&job.ranks).stages);
	job.ranks.wait_ns += MS;
	assert_false(straggler_find(&job.ranks).stages);
	job.rank[2].late_ns = 100 * MS;
	finds(&job, STRAGGLER_BY_HOST, true);
	end(&job);
	stages(&job, wait_ms);
	job.rank[0].messages = job.rank[2].messages = job.rank[3].messages = 0;
	job.ranks.wait_ns = 100 * MS;
	assert_false(straggler_find(&job.ranks).stages);
	end(&job);
	/* 2.5 % of the job's time have to be late at all. */
	stages(&job, wait_ms);
	job.ranks.late_ns = 250 * MS;
	finds(&job, STRAGGLER_BY_HOST, true);
	job.ranks.late_ns -= 1;
	finds(&job, STRAGGLER_NONE, false);
	end(&job);
}

/* ---- prices ------------------------------------------------------------------------------------ */

static struct cost price(struct job *job, enum straggler_by by, bool mostly)
{
	static const struct process process;
	struct found found = {.texts = NULL};
	struct straggler h = straggler_find(&job->ranks);
	struct finding *finding;
	struct cost cost;

	assert_int_equal(h.by, by);
	assert_int_equal(h.mostly, mostly);
	job->all[h.rank->index]->process = &process;
	finding = straggler_finding(detectors_find("straggler-rank"), &job->ranks, &h, &found);
	assert_int_equal(found.n, 1);
	assert_ptr_equal(finding, found.all);
	assert_ptr_equal(finding->origin.process, &process);
	assert_int_equal(found.all->count, h.rank->last_count);
	assert_int_equal(found.all->origin.processes, 1);
	cost = found.all->cost;
	assert_true(cost.gain_known && cost.idle_gpu_known);
	free(found.all);
	return cost;
}

static void costs(struct cost cost, uint64_t own_ms, uint64_t low_ms, uint64_t high_ms,
		  uint64_t idle_ms)
{
	assert_int_equal(cost.own_ns, own_ms * MS);
	assert_int_equal(cost.gain_low_ns, low_ms * MS);
	assert_int_equal(cost.gain_high_ns, high_ms * MS);
	assert_int_equal(cost.idle_gpu_ns, idle_ms * MS);
}

static void test_price_of_a_rank(void **state)
{
	static const struct {
		uint64_t held_ms, sure_ms, unshared_ms, low_ms;
	} jobs[] = {
		{700, 800, 0, 700},    {900, 800, 0, 800},
		{1100, 1200, 0, 1000}, /* no more than it was late */
		{700, 800, 650, 650}, /* of what no other rank does, no more than that */
		{600, 800, 650, 600},
	};
	struct job job;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		begin(&job, 3, (const uint64_t[]){10, 1000, 0});
		job.late->held_ns = jobs[i].held_ms * MS;
		job.late->sure_ns = jobs[i].sure_ms * MS;
		job.late->paid_ns = 1500 * MS;
		job.late->last_count = 42;
		job.late->unshared.ns = jobs[i].unshared_ms * MS;
		job.late->unshared.most = reason(&job, 1, IDLE_SLEEP, 0, 0, 200);
		if (!jobs[i].unshared_ms)
			job.late->unshared.most = NULL;
		costs(price(&job, STRAGGLER_BY_HOST, true), 1000, jobs[i].low_ms, 1000, 1500);
		end(&job);
	}
	/* Where it is slower here and there, the gain may be none. */
	begin(&job, 3, (const uint64_t[]){0, 1000, 0});
	job.late->held_ns = job.late->paid_ns = 1000 * MS;
	reason(&job, 1, IDLE_CPU, 0, 0, 200);
	costs(price(&job, STRAGGLER_BY_HOST, true), 1000, 0, 1000, 1000);
	end(&job);
}

/* Even work saves no more than the mean of all waits. */
static void test_price_of_work(void **state)
{
	struct job job;

	(void)state;
	begin(&job, 3, (const uint64_t[]){0, 1000, 0});
	job.late->gpu_late_ns = 1000 * MS;
	job.late->gpu_late_count = 1;
	job.late->held_ns = 700 * MS;
	job.late->paid_ns = 1500 * MS;
	costs(price(&job, STRAGGLER_BY_WORK, true), 1000, 500, 500, 1500);
	job.late->held_ns = 300 * MS;
	costs(price(&job, STRAGGLER_BY_WORK, true), 1000, 300, 500, 1500);
	job.late->paid_ns = 6000 * MS;
	costs(price(&job, STRAGGLER_BY_WORK, true), 1000, 300, 1000, 6000);
	end(&job);
	begin(&job, 3, (const uint64_t[]){1300, 1310, 10});
	job.rank[0].gpu_late_ns = job.rank[1].gpu_late_ns = 1300 * MS;
	job.rank[0].paid_ns = 1000 * MS;
	job.rank[1].paid_ns = 1200 * MS;
	job.rank[2].paid_ns = 800 * MS;
	costs(price(&job, STRAGGLER_BY_WORK, false), 2620, 0, 1000, 3000);
	end(&job);
}

static void test_price_of_stages(void **state)
{
	struct job job;

	(void)state;
	stages(&job,
	       (const uint64_t[]){900, 100, 700, 1100, 0}); /* 800, 600, 1000 ms more than rank 1 */
	job.late->held_ns = 100 * MS;
	costs(price(&job, STRAGGLER_BY_HOST, true), 800, 0, 600, 2400);
	end(&job);
}

/* ---- words ------------------------------------------------------------------------------------- */

static void says(const struct straggler *h, const char *words)
{
	struct arena texts = {0};

	assert_string_equal(straggler_words(&texts, h), words);
	arena_release(&texts);
}

#define CAME_LAST \
	"rank 1 holds the other ranks up: it came last to 42 of 100 collectives, and the others waited 1.000 s for it, 10 % of 10.00 s"

/* In certain steps: it was the last one in most of the slow ones, for more than half of each, and these are most of what
 * it is late by. */
static void test_words(void **state)
{
	static const struct {
		uint64_t every, more_ms;
		struct {
			uint32_t last;
			uint64_t last_ms;
		} slow[4]; /* steps of 100 ms each */
		const char *words;
	} jobs[] = {
		{0, 500, {{1, 90}, {1, 90}, {1, 90}, {1, 90}}, CAME_LAST},
		{10,
		 500,
		 {{1, 51}, {1, 51}, {1, 51}, {0, 90}},
		 CAME_LAST ", most of it in each 10th step"},
		{10, 499, {{1, 51}, {1, 51}, {1, 51}, {0, 90}}, CAME_LAST},
		{10, 500, {{1, 51}, {1, 51}, {0, 90}, {0, 90}}, CAME_LAST},
		{10, 500, {{1, 51}, {1, 51}, {1, 50}, {1, 50}}, CAME_LAST},
	};
	struct rank_steps *steps;
	struct straggler h;
	struct job job;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		begin(&job, 3, (const uint64_t[]){0, 1000, 0});
		job.late->last_count = 42;
		steps = &job.ranks.steps;
		steps->slow_every = jobs[i].every;
		steps->slow_more_ns = jobs[i].more_ms * MS;
		for (k = 0; k < 4; k++)
			steps->slow[steps->n_slow++] =
				(struct rank_step){.ns = 100 * MS,
						   .last = jobs[i].slow[k].last,
						   .last_ns = jobs[i].slow[k].last_ms * MS};
		h = straggler_find(&job.ranks);
		says(&h, jobs[i].words);
		end(&job);
	}
}

static void test_words_of_stages(void **state)
{
	struct straggler h;
	struct job job;

	(void)state;
	stages(&job, (const uint64_t[]){900, 100, 700, 1100, 0});
	h = straggler_find(&job.ranks);
	says(&h,
	     "rank 1 holds the other ranks up: each of them waited 800.0 ms longer than it did on average, mostly in sends and "
	     "receives, 8.0 % of 10.00 s; the 100.0 ms that it waited itself are what the schedule costs where all have as much to "
	     "do (the bubble of a pipeline)");
	h.n_stages = 2;
	says(&h,
	     "rank 1 holds the other ranks up: each of them waited 2.400 s longer than it did, mostly in sends and receives, 24 % of "
	     "10.00 s; the 100.0 ms that it waited itself are what the schedule costs where all have as much to do (the bubble of a "
	     "pipeline)");
	end(&job);
}

/* A part to show: that of the reason, or the largest one with lines of Python that has its place. */
static void test_part(void **state)
{
	struct idle_sum *sum, *line;
	struct job job;

	(void)state;
	begin(&job, 3, (const uint64_t[]){0, 1000, 0});
	sum = reason(&job, 1, IDLE_SLEEP, 0x10, 0, 500);
	assert_ptr_equal(straggler_part(&job.idle, sum), &sum->longest);
	reason(&job, 2, IDLE_SLEEP, 0x10, 7, 900);
	reason(&job, 1, IDLE_CPU, 0x10, 7, 900);
	reason(&job, 1, IDLE_SLEEP, 0x20, 7, 900);
	assert_ptr_equal(straggler_part(&job.idle, sum), &sum->longest);
	reason(&job, 1, IDLE_SLEEP, 0x10, 7, 20);
	line = reason(&job, 1, IDLE_SLEEP, 0x10, 8, 40);
	reason(&job, 1, IDLE_SLEEP, 0x10, 9, 30);
	assert_ptr_equal(straggler_part(&job.idle, sum), &line->longest);
	end(&job);
}

/* What to do about what the rank's thread did. */
static void test_cures(void **state)
{
	static const struct {
		enum idle_cause cause;
		const char *function, *fix;
	} cases[] = {
		{IDLE_CPU, NULL, "Do that work on no rank alone"},
		{IDLE_LOADER, NULL, "Let that rank's loader be ready"},
		{IDLE_PIPE, NULL, "Let that rank's loader be ready"},
		{IDLE_FILE, NULL, "Let that rank's loader be ready"},
		{IDLE_SOCKET, NULL, "Let that rank's loader be ready"},
		{IDLE_NOT_RUNNING, NULL, "Give that rank's process CPUs of its own"},
		{IDLE_CUDA_CALL, "cudaMalloc", "empty_cache() not within the loop"},
		{IDLE_CUDA_WAIT, "cudaFree", "empty_cache() not within the loop"},
		{IDLE_CUDA_WAIT, "cudaStreamSynchronize", "Let all ranks do that in the same step"},
		{IDLE_KERNEL_MODULE, "cudaStreamCreate",
		 "Take that call out of the step, or let all ranks make it"},
		{IDLE_CUDA_LOCK, NULL, "Take that call out of the step, or let all ranks make it"},
		{IDLE_SLEEP, NULL, "Take out of that rank's step what the others do not do"},
		{IDLE_SAVE, NULL, NULL}, /* as it is explained */
	};
	struct job job;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct function function = {.name = (char *)(uintptr_t)cases[i].function};
		struct trace_set set = {
			.functions = {.all = &function, .count = cases[i].function != NULL}};
		struct model model = {.set = &set};
		struct accounting accounts = {.model = &model};
		struct arena texts = {0};
		struct found found = {.texts = &texts};
		const char *fix = cases[i].fix ?: idle_cause_meanings[cases[i].cause];

		begin(&job, 3, (const uint64_t[]){0, 1000, 0});
		job.idle.accounts = &accounts;
		reason(&job, 1, cases[i].cause, 0, 0, 800)->longest.fn = 0;
		detectors_find("straggler-rank")->conclude_ranks(&job.ranks, &found);
		assert_int_equal(found.n, 1);
		if (!strstr(found.all->fix, fix))
			fail_msg("%s: %s", idle_cause_codes[cases[i].cause], found.all->fix);
		assert_non_null(strstr(found.all->what, idle_cause_texts[cases[i].cause]));
		findings_free(found.all, found.n);
		arena_release(&texts);
		end(&job);
	}
}

/* What no other rank does: nine tenths and more of the lateness are all of it, and of that the same of one place. */
static void test_unshared_words(void **state)
{
	static const struct {
		uint64_t ms, most_ms;
		bool rest, several;
	} cases[] = {{900, 810, false, false},
		     {899, 899, true, false},
		     {900, 809, false, true},
		     {899, 800, true, true}};
	struct trace_set set = {.functions = {.count = 0}};
	struct model model = {.set = &set};
	struct accounting accounts = {.model = &model};
	struct job job;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct arena texts = {0};
		struct found found = {.texts = &texts};

		begin(&job, 3, (const uint64_t[]){0, 1000, 0});
		job.idle.accounts = &accounts;
		job.late->unshared.ns = cases[i].ms * MS;
		job.late->unshared.most = reason(&job, 1, IDLE_SLEEP, 0, 0, cases[i].most_ms);
		detectors_find("straggler-rank")->conclude_ranks(&job.ranks, &found);
		assert_int_equal(found.n, 1);
		assert_non_null(strstr(found.all->what, "is for what no other rank does: "));
		assert_int_equal(strstr(found.all->what, "; the rest is at places") != NULL,
				 cases[i].rest);
		assert_int_equal(strstr(found.all->what, "rank does: most of it asleep") != NULL,
				 cases[i].several);
		findings_free(found.all, found.n);
		arena_release(&texts);
		end(&job);
	}
}

/* Who was last how often: four ranks at most, of steps if there are any; and whether their GPUs had as much to do. */
static void test_in_turn_words(void **state)
{
	static const struct {
		uint64_t last[6], steps[6], n_steps,
			same; /* same: of 100 operations in which a GPU was late */
		const char *words;
	} cases[] = {
		{{30, 31, 0, 0, 0, 0},
		 {0},
		 0,
		 79,
		 "last was rank 0 in 30 of 100 collectives, rank 1 in 31"},
		{{30, 31, 0, 0, 0, 0},
		 {0},
		 0,
		 80,
		 "last was rank 0 in 30 of 100 collectives, rank 1 in 31; it had as many operations submitted as the others, which took its "
		 "GPU longer, as longer sequences do"},
		{{0, 31, 5, 0, 0, 7},
		 {0},
		 0,
		 0,
		 "last was rank 1 in 31 of 100 collectives, rank 2 in 5, rank 5 in 7"},
		{{1, 2, 3, 4, 5, 6},
		 {0},
		 0,
		 0,
		 "last was rank 0 in 1 of 100 collectives, rank 1 in 2, rank 2 in 3, rank 3 in 4"},
		{{1, 2, 3, 4, 5, 6},
		 {0, 4, 5, 0, 0, 0},
		 9,
		 0,
		 "last was rank 1 in 4 of 9 steps, rank 2 in 5"},
	};
	struct job job;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct arena texts = {0};
		struct found found = {.texts = &texts};
		const char *words;

		begin(&job, 6, (const uint64_t[]){1300, 1300, 0, 0, 0, 0});
		job.ranks.order = job.all;
		job.ranks.steps.count = cases[i].n_steps;
		for (size_t k = 0; k < 6; k++) {
			job.rank[k].last_count = cases[i].last[k];
			job.rank[k].steps = cases[i].steps[k];
			job.rank[k].gpu_late_ns = job.rank[k].late_ns;
			job.rank[k].gpu_late_count = k < 2 ? 50 : 0;
			job.rank[k].gpu_late_same_work = k < 2 ? (cases[i].same + k) / 2 : 0;
		}
		detectors_find("uneven-work")->conclude_ranks(&job.ranks, &found);
		assert_int_equal(found.n, 1);
		words = strstr(found.all->what, "last was");
		assert_non_null(words);
		assert_string_equal(words, cases[i].words);
		assert_non_null(strstr(
			found.all->what,
			"ranks wait for each other 2.600 s in collectives, 26 % of 10.00 s"));
		findings_free(found.all, found.n);
		arena_release(&texts);
		end(&job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stands_out),
		cmocka_unit_test(test_enough),
		cmocka_unit_test(test_exposed),
		cmocka_unit_test(test_job_time),
		cmocka_unit_test(test_by),
		cmocka_unit_test(test_in_turn),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_reason),
		cmocka_unit_test(test_unshared),
		cmocka_unit_test(test_stages),
		cmocka_unit_test(test_no_stages),
		cmocka_unit_test(test_price_of_a_rank),
		cmocka_unit_test(test_price_of_work),
		cmocka_unit_test(test_price_of_stages),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_words_of_stages),
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_cures),
		cmocka_unit_test(test_unshared_words),
		cmocka_unit_test(test_in_turn_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
