/*
 * tests/unit/test_analyzer_slow_link.c: which operations are far slower than the links of their GPUs (detectors/slow_link.c), at each bound.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "detectors/table.h"
#include "findings/finding.h"
#include "ranks/ranks.h"
#include "trace/hosts.h"

#define MS 1000000ull
#define RANKS 2
#define BYTES (16ull << 20)
#define SLOW_NS BYTES /* at a tenth of 10 GB/s */

/* Two ranks of one host for a second, on GPUs with ten links of 1 GB/s; 8 broadcasts of 16 MiB, each at a tenth of that. */
struct job {
	struct host hosts[2];
	struct metadata_env env;
	struct trace traces[RANKS];
	struct process processes[RANKS];
	const struct process *of_gpu[RANKS];
	struct idle_gpu gpus[RANKS];
	struct idle idle;
	struct rank rank[RANKS], *all[RANKS];
	struct rank_group groups[2];
	struct ranks ranks;
	struct arena texts;
	struct found found;
};

static void begin(struct job *job)
{
	*job = (struct job){.idle = {.gpus = job->gpus, .n_gpus = RANKS},
			    .ranks = {.all = job->all,
				      .n = RANKS,
				      .idle = &job->idle,
				      .groups = job->groups,
				      .n_groups = 1}};
	job->found.texts = &job->texts;
	for (uint32_t i = 0; i < RANKS; i++) {
		job->traces[i] = (struct trace){.index = i, .host = &job->hosts[0]};
		job->processes[i].trace = &job->traces[i];
		job->of_gpu[i] = &job->processes[i];
		job->gpus[i] = (struct idle_gpu){.processes = &job->of_gpu[i],
						 .n_processes = 1,
						 .device = (uint8_t)i,
						 .looks = {.links = 10, .link_mbytes = 1000}};
		job->rank[i] = (struct rank){.index = i,
					     .process = &job->processes[i],
					     .device = (uint8_t)i,
					     .first_ns = 5 * MS,
					     .last_ns = 1005 * MS};
		job->all[i] = &job->rank[i];
		job->groups[i] = (struct rank_group){.func = SPY_NCCL_BROADCAST,
						     .comm_ranks = RANKS,
						     .bytes = BYTES,
						     .operations = 8,
						     .transfer_ns = 8 * SLOW_NS};
	}
}

static void end(struct job *job)
{
	findings_free(job->found.all, job->found.n);
	arena_release(&job->texts);
}

/* The one finding; NULL: there is none. */
static const struct finding *find(struct job *job)
{
	detector_slow_link.conclude_ranks(&job->ranks, &job->found);
	assert_in_range(job->found.n, 0, 1);
	return job->found.n ? job->found.all : NULL;
}

static void says(const struct finding *finding, const char *words)
{
	assert_non_null(finding);
	if (!strstr(finding->what, words))
		fail_msg("%s", finding->what);
}

/* By NVLink, at 4 GB/s, three quarters of the time would not be. */
static void test_slow(void **state)
{
	const struct finding *finding;
	struct job job;

	(void)state;
	begin(&job);
	finding = find(&job);
	says(finding, "Broadcast of 16.0 MiB moves 1 GB/s (bus bandwidth)");
	says(finding, "each GPU has 10 GB/s of NVLink in each direction");
	says(finding,
	     "8 collectives take 134.2 ms, 13 % of 1.000 s, of which by NVLink some 33.55 ms were left, beside other work or not");
	assert_null(strstr(finding->what, "is set"));
	assert_int_equal(finding->count, 8);
	assert_int_equal(finding->origin.processes, 2);
	assert_ptr_equal(finding->origin.process, &job.processes[0]);
	assert_in_range(finding->cost.own_ns, 6 * SLOW_NS - 1, 6 * SLOW_NS);
	assert_int_equal(finding->cost.gain_high_ns, finding->cost.own_ns);
	end(&job);
}

/* What is a little faster, smaller, rarer; where one GPU has no links, or is on another host; what is too little of the time. */
static void test_not_slow(void **state)
{
	struct job job;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		begin(&job);
		switch (i) {
		case 0:
			job.groups[0].transfer_ns -= 8;
			break;
		case 1:
			job.groups[0].bytes -= 1;
			job.groups[0].transfer_ns += 8;
			break;
		case 2:
			job.groups[0].operations = 7;
			break;
		case 3:
			job.gpus[1].looks.links = 0;
			break;
		case 4:
			job.traces[1].host = &job.hosts[1];
			break;
		case 5: /* 100.66 ms are less than a fortieth of 4.028 s */
			job.rank[1].last_ns += 3028 * MS;
			break;
		case 6:
			job.rank[0].exposed_known = true;
			job.rank[0].exposed_ns = 24 * MS;
			break;
		default:
			job.gpus[1].looks.link_mbytes = 999;
		}
		assert_null(find(&job));
		end(&job);
	}
}

/* The longest rank is the one whose time counts; of what it does not wait for beside other work no more than that is a cost. */
static void test_bounds(void **state)
{
	const struct finding *finding;
	struct job job;

	(void)state;
	begin(&job);
	job.rank[1].last_ns += 3000 * MS;
	finding = find(&job);
	assert_non_null(finding);
	assert_ptr_equal(finding->origin.process, &job.processes[1]);
	end(&job);
	begin(&job);
	job.rank[0].exposed_known = true;
	job.rank[0].exposed_ns = 26 * MS;
	finding = find(&job);
	assert_non_null(finding);
	assert_int_equal(finding->cost.own_ns, 26 * MS);
	end(&job);
}

/* All kinds of operations that are slow together; the one that takes longest is named. */
static void test_groups(void **state)
{
	const struct finding *finding;
	struct job job;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		begin(&job);
		job.ranks.n_groups = 2;
		job.groups[i].func = SPY_NCCL_REDUCE;
		job.groups[i].operations = 10;
		job.groups[i].transfer_ns = 10 * SLOW_NS;
		finding = find(&job);
		says(finding, "Reduce of 16.0 MiB");
		assert_int_equal(finding->count, 18);
		assert_in_range(finding->cost.own_ns, 27 * SLOW_NS / 2 - 2, 27 * SLOW_NS / 2);
		end(&job);
	}
}

/* What is set in the environment and does it; 0 does not. */
static void test_settings(void **state)
{
	static const struct {
		const char *key, *value, *words;
	} cases[] = {
		{"env_NCCL_P2P_DISABLE", "1", "or not; NCCL_P2P_DISABLE=1 is set"},
		{"env_NCCL_P2P_LEVEL", "LOC", "or not; NCCL_P2P_LEVEL=LOC is set"},
		{"env_NCCL_P2P_DISABLE", "0", NULL},
		{"env_NCCL_P2P_DISABLE", "", NULL},
		{"env_NCCL_SHM_DISABLE", "1", NULL},
	};
	struct job job;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct finding *finding;

		begin(&job);
		job.env = (struct metadata_env){.key = (char *)(uintptr_t)cases[i].key,
						.value = (char *)(uintptr_t)cases[i].value};
		job.traces[0].metadata.env = &job.env;
		job.traces[0].metadata.n_env = 1;
		finding = find(&job);
		assert_non_null(finding);
		if (cases[i].words)
			says(finding, cases[i].words);
		else
			assert_null(strstr(finding->what, "is set"));
		end(&job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow),     cmocka_unit_test(test_not_slow),
		cmocka_unit_test(test_bounds),   cmocka_unit_test(test_groups),
		cmocka_unit_test(test_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
