/*
 * shim/describe/ranks.c: the variables by which launchers say which rank a process is: torchrun, Slurm, Open MPI, MPICH
 * and its relatives, PMIx, PALS. Runs when a session begins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "describe/ranks.h"

/* A row each, the first that is set to a number counts. */
static const char *const ranks[] = {"RANK",     "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
				    "PMI_RANK", "PMIX_RANK",    "PALS_RANKID",
				    NULL};
static const char *const local_ranks[] = {
	"LOCAL_RANK",      "SLURM_LOCALID",     "OMPI_COMM_WORLD_LOCAL_RANK",
	"MPI_LOCALRANKID", "PALS_LOCAL_RANKID", NULL};
static const char *const world_sizes[] = {"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE",
					  "PMI_SIZE", NULL};
static const char *const jobs[] = {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
				   NULL};
static const char *const restarts[] = {"TORCHELASTIC_RESTART_COUNT", NULL};

#define DIGITS_MOST 9 /* that a number of 32 bits surely has room for */

static bool read_number(const char *variable, uint32_t *number)
{
	const char *value = getenv(variable);
	size_t digits = value ? strspn(value, "0123456789") : 0;

	if (!digits || digits > DIGITS_MOST || value[digits])
		return false;
	*number = (uint32_t)strtoul(value, NULL, 10);
	return true;
}

static const char *find_number(const char *const *variables, uint32_t *number)
{
	while (*variables && !read_number(*variables, number))
		variables++;
	return *variables;
}

/* Slurm calls the only process of a job, or a shell in an allocation, rank 0 of 1. */
static bool is_alone(const char *from)
{
	uint32_t tasks;

	return strcmp(from, "SLURM_PROCID") == 0 && read_number("SLURM_NTASKS", &tasks) &&
	       tasks <= 1;
}

static const char *find_rank(uint32_t *rank)
{
	for (const char *const *variable = ranks; *variable; variable++)
		if (read_number(*variable, rank) && !is_alone(*variable))
			return *variable;
	return NULL;
}

static void read_job(char *job, size_t size)
{
	for (const char *const *variable = jobs; *variable; variable++) {
		const char *value = getenv(*variable), *step = getenv("SLURM_STEP_ID");

		if (!value || !*value)
			continue;
		if (strcmp(*variable, "SLURM_JOB_ID") == 0 && step && *step)
			snprintf(job, size, "%s.%s", value, step);
		else
			snprintf(job, size, "%s", value);
		return;
	}
}

void spy_rank_read(struct spy_rank *rank)
{
	*rank = (struct spy_rank){0};
	rank->from = find_rank(&rank->rank);
	if (rank->from) {
		rank->has_local_rank = find_number(local_ranks, &rank->local_rank);
		rank->has_world_size = find_number(world_sizes, &rank->world_size);
	}
	rank->has_restarts = find_number(restarts, &rank->restarts);
	read_job(rank->job, sizeof(rank->job));
}
