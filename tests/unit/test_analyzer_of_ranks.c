/*
 * tests/unit/test_analyzer_of_ranks.c: findings that ranks of a job have in common become one (findings/of_ranks.c).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include "findings/detector.h"
#include "findings/of_ranks.h"
#include "ranks/ranks.h"
#include "detectors/table.h"

#define MS 1000000ull
#define RANKS 6

/* One finding of each rank, in their order. */
struct job {
	struct trace traces[RANKS];
	struct process processes[RANKS];
	struct rank rank[RANKS], *by_process[RANKS];
	struct ranks ranks;
	struct arena texts;
	struct found found;
};

static void begin(struct job *job, const uint64_t *cost_ms, size_t n)
{
	static const struct host host;

	*job = (struct job){.ranks = {.by_process = job->by_process, .n = n}};
	job->found.texts = &job->texts;
	for (uint32_t i = 0; i < n; i++) {
		struct finding *finding = detector_add(&detector_launch_bound, &job->found);

		job->traces[i] = (struct trace){.index = i, .program = "train"};
		job->processes[i].trace = &job->traces[i];
		job->rank[i] = (struct rank){.index = i, .number = i, .job = "7"};
		job->by_process[i] = &job->rank[i];
		finding->origin.process = &job->processes[i];
		finding->origin.host = &host;
		finding->what = "slow";
		finding->cost.idle_gpu_ns = (i + 1) * MS;
		finding_set_cost(finding, cost_ms[i] * MS);
	}
}

static void end(struct job *job)
{
	findings_free(job->found.all, job->found.n);
	arena_release(&job->texts);
}

/* The costliest one stands for all of them, and names the others, or counts them. */
static void test_one(void **state)
{
	static const struct {
		uint64_t cost_ms[RANKS];
		size_t n;
		uint64_t most_ms, idle_ms;
		uint32_t of; /* the rank */
		const char *what;
	} jobs[] = {
		{{10}, 1, 10, 1, 0, "slow"},
		{{10, 20}, 2, 20, 3, 1, "slow; the same of rank 0: 10.00 ms"},
		{{20, 10}, 2, 20, 3, 0, "slow; the same of rank 1: 10.00 ms"},
		{{20, 20}, 2, 20, 3, 0, "slow; the same of rank 1: 20.00 ms"},
		{{10, 40, 20, 30},
		 4,
		 40,
		 10,
		 1,
		 "slow; the same of rank 0, rank 2, rank 3: 30.00 ms at most"},
		{{10, 40, 20, 50, 30},
		 5,
		 50,
		 15,
		 3,
		 "slow; the same of 4 more ranks: 40.00 ms at most"},
	};
	struct job job;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		const struct finding *one;

		begin(&job, jobs[i].cost_ms, jobs[i].n);
		findings_join_ranks(&job.found, &job.ranks);
		assert_int_equal(job.found.n, 1);
		one = &job.found.all[0];
		assert_string_equal(one->what, jobs[i].what);
		assert_ptr_equal(one->origin.process, &job.processes[jobs[i].of]);
		assert_int_equal(one->origin.processes, jobs[i].n);
		assert_non_null(one->origin.host);
		assert_int_equal(cost_ns(&one->cost), jobs[i].most_ms * MS);
		assert_int_equal(one->cost.idle_gpu_ns, jobs[i].idle_ms * MS);
		end(&job);
	}
}

/* Of several hosts it is of none. */
static void test_hosts(void **state)
{
	static const struct host other;
	struct job job;

	(void)state;
	begin(&job, (const uint64_t[]){10, 20, 30}, 3);
	job.found.all[1].origin.host = &other;
	findings_join_ranks(&job.found, &job.ranks);
	assert_int_equal(job.found.n, 1);
	assert_null(job.found.all[0].origin.host);
	end(&job);
}

enum differs { BY_JOB, BY_PROGRAM, BY_DETECTOR, BY_RANK, BY_NO_RANK, NOT_OF_CODE };

/* What is no finding of another rank of the same job, in the same program, stays. */
static void test_several(void **state)
{
	struct detector another = detector_launch_bound;
	struct job job;

	(void)state;
	for (int i = BY_JOB; i <= NOT_OF_CODE; i++) {
		begin(&job, (const uint64_t[]){10, 30, 20}, 3);
		if (i == BY_JOB)
			job.rank[1].job = "8";
		else if (i == BY_PROGRAM)
			job.traces[1].program = "other";
		else if (i == BY_DETECTOR)
			job.found.all[1].detector = &another;
		else if (i == BY_RANK)
			job.by_process[1] = &job.rank[0];
		else if (i == BY_NO_RANK)
			job.by_process[1] = NULL;
		else
			job.found.all[1].detector = &detector_time_slicing;
		findings_join_ranks(&job.found, &job.ranks);
		assert_int_equal(job.found.n, 2);
		assert_string_equal(job.found.all[0].what, "slow");
		assert_string_equal(job.found.all[1].what, "slow; the same of rank 0: 10.00 ms");
		end(&job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
