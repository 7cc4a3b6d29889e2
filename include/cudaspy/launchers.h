/*
 * include/cudaspy/launchers.h: which rank of which job a process is, by the variables of its launcher: torchrun, Slurm,
 * Open MPI, MPICH and its relatives, PMIx, PALS. For the recorder, and for `cudaspy run`, which a launcher may start once
 * for each rank.
 */
#ifndef CUDASPY_LAUNCHERS_H
#define CUDASPY_LAUNCHERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPY_JOB_MAX 128

struct spy_rank {
	const char *from; /* the variable that says the rank; NULL: none does */
	uint32_t rank;
	bool has_local_rank, has_world_size, has_restarts;
	uint32_t local_rank, world_size, restarts;
	char job[SPY_JOB_MAX]; /* empty: unknown */
};

/* A row each, the first that is set to a number counts. */
static const char *const spy_rank_variables[] = {"RANK",     "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
						 "PMI_RANK", "PMIX_RANK",    "PALS_RANKID",
						 NULL};
static const char *const spy_local_rank_variables[] = {
	"LOCAL_RANK",      "SLURM_LOCALID",     "OMPI_COMM_WORLD_LOCAL_RANK",
	"MPI_LOCALRANKID", "PALS_LOCAL_RANKID", NULL};
static const char *const spy_world_size_variables[] = {"WORLD_SIZE", "SLURM_NTASKS",
						       "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
/* A launcher's own before those of the system that it may have been started by: mpirun within a job of Slurm. */
static const char *const spy_job_variables[] = {"TORCHELASTIC_RUN_ID",
						"OMPI_MCA_ess_base_jobid",
						"PMIX_NAMESPACE",
						"SLURM_JOB_ID",
						"PBS_JOBID",
						"LSB_JOBID",
						NULL};
static const char *const spy_restart_variables[] = {"TORCHELASTIC_RESTART_COUNT", NULL};

#define SPY_RANK_DIGITS 9 /* that a number of 32 bits surely has room for */

static inline bool spy_read_number(const char *variable, uint32_t *number)
{
	const char *value = getenv(variable);
	size_t digits = value ? strspn(value, "0123456789") : 0;

	if (!digits || digits > SPY_RANK_DIGITS || value[digits])
		return false;
	*number = (uint32_t)strtoul(value, NULL, 10);
	return true;
}

static inline const char *spy_find_number(const char *const *variables, uint32_t *number)
{
	while (*variables && !spy_read_number(*variables, number))
		variables++;
	return *variables;
}

/* Slurm calls the only process of a job, or a shell in an allocation, rank 0 of 1. */
static inline bool spy_rank_is_alone(const char *from)
{
	uint32_t tasks;

	return strcmp(from, "SLURM_PROCID") == 0 && spy_read_number("SLURM_NTASKS", &tasks) &&
	       tasks <= 1;
}

static inline const char *spy_find_rank(uint32_t *rank)
{
	for (const char *const *variable = spy_rank_variables; *variable; variable++)
		if (spy_read_number(*variable, rank) && !spy_rank_is_alone(*variable))
			return *variable;
	return NULL;
}

static inline void spy_read_job(char *job, size_t size)
{
	for (const char *const *variable = spy_job_variables; *variable; variable++) {
		const char *value = getenv(*variable), *step = getenv("SLURM_STEP_ID");

		if (!value || !*value || strcmp(value, "none") == 0) /* torchrun's, of any job */
			continue;
		if (strcmp(*variable, "SLURM_JOB_ID") == 0 && step && *step)
			snprintf(job, size, "%s.%s", value, step);
		else
			snprintf(job, size, "%s", value);
		return;
	}
}

static inline void spy_launcher_read(struct spy_rank *rank)
{
	*rank = (struct spy_rank){0};
	rank->from = spy_find_rank(&rank->rank);
	if (rank->from) {
		rank->has_local_rank = spy_find_number(spy_local_rank_variables, &rank->local_rank);
		rank->has_world_size = spy_find_number(spy_world_size_variables, &rank->world_size);
	}
	rank->has_restarts = spy_find_number(spy_restart_variables, &rank->restarts);
	spy_read_job(rank->job, sizeof(rank->job));
}

#endif
