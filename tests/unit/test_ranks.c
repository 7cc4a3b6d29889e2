/* links: shim/process/ranks.c */
/*
 * tests/unit/test_ranks.c: which rank of a job a process is, from what launchers put into its environment: each of them
 * has names of its own, and values that are no numbers say nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "process/ranks.h"

/* The rank in an environment of so many variables, "NAME=VALUE". */
static struct spy_rank rank_in(const char *const *variables)
{
	struct spy_rank rank;

	clearenv();
	while (*variables)
		putenv((char *)*variables++);
	spy_rank_read(&rank);
	return rank;
}

#define IN(...) rank_in((const char *const[]){__VA_ARGS__, NULL})

static void test_launchers(void **state)
{
	static const char *const said[][2] = {{"RANK=7", "RANK"},
					      {"SLURM_PROCID=7", "SLURM_PROCID"},
					      {"OMPI_COMM_WORLD_RANK=7", "OMPI_COMM_WORLD_RANK"},
					      {"PMI_RANK=7", "PMI_RANK"},
					      {"PMIX_RANK=7", "PMIX_RANK"},
					      {"PALS_RANKID=7", "PALS_RANKID"}};
	struct spy_rank rank;

	(void)state;
	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		rank = IN(said[i][0]);
		assert_string_equal(rank.from, said[i][1]);
		assert_int_equal(rank.rank, 7);
		assert_false(rank.has_local_rank || rank.has_world_size || rank.has_restarts);
	}
	rank = IN("RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=8", "TORCHELASTIC_RESTART_COUNT=2",
		  "TORCHELASTIC_RUN_ID=job one", "SLURM_PROCID=0", "SLURM_NTASKS=4",
		  "SLURM_JOB_ID=9");
	assert_string_equal(rank.from, "RANK");
	assert_int_equal(rank.rank, 3);
	assert_int_equal(rank.local_rank, 1);
	assert_int_equal(rank.world_size, 8);
	assert_int_equal(rank.restarts, 2);
	assert_string_equal(rank.job, "job one");
	rank = IN("SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_LOCALID=0", "SLURM_JOB_ID=9",
		  "SLURM_STEP_ID=1");
	assert_string_equal(rank.from, "SLURM_PROCID");
	assert_true(rank.has_local_rank);
	assert_int_equal(rank.world_size, 2);
	assert_string_equal(rank.job, "9.1");
	/* mpirun within a job of Slurm: each is a run. */
	rank = IN("OMPI_COMM_WORLD_RANK=1", "OMPI_MCA_ess_base_jobid=77", "SLURM_JOB_ID=9");
	assert_string_equal(rank.job, "77");
	/* What torchrun calls each job that has no name. */
	rank = IN("RANK=1", "TORCHELASTIC_RUN_ID=none", "SLURM_JOB_ID=9");
	assert_string_equal(rank.job, "9");
}

static void test_none(void **state)
{
	struct spy_rank rank = IN("HOME=/");

	(void)state;
	assert_null(rank.from);
	assert_string_equal(rank.job, "");
	/* A shell in an allocation. */
	rank = IN("SLURM_PROCID=0", "SLURM_NTASKS=1", "SLURM_LOCALID=0", "SLURM_JOB_ID=9");
	assert_null(rank.from);
	assert_false(rank.has_local_rank || rank.has_world_size);
	assert_string_equal(rank.job, "9");
	/* Which something else may have set up. */
	rank = IN("SLURM_PROCID=0", "SLURM_NTASKS=1", "PMI_RANK=5");
	assert_string_equal(rank.from, "PMI_RANK");
}

static void test_no_numbers(void **state)
{
	struct spy_rank rank = IN("RANK=", "SLURM_PROCID=-1", "OMPI_COMM_WORLD_RANK=0x3",
				  "PMI_RANK= 4", "PMIX_RANK=12345678901", "PALS_RANKID=6");
	char long_job[600] = "PBS_JOBID=";

	(void)state;
	assert_string_equal(rank.from, "PALS_RANKID");
	assert_int_equal(rank.rank, 6);
	rank = IN("RANK=two");
	assert_null(rank.from);
	memset(long_job + strlen(long_job), 'x', 500);
	rank = IN(long_job);
	assert_int_equal(strlen(rank.job), SPY_JOB_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launchers),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_no_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
