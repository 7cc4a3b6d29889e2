/*
 * mpi/cudaspy_mpi.c: the program cudaspy-mpi: each rank digests its share of a job's traces, or reads its share of digests; a
 * tree brings them together, and rank 0 writes the digest and the report. `mpirun` or `srun` launches it, MPI moves the data.
 * One source for every MPI: only what MPI 3.0 has. Of each rank one thread calls MPI.
 */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "share.h"
#include "tree.h"
#include "base/jobs.h"
#include "base/redact.h"
#include "cmd_files/cmd_job.h"
#include "cmd/manual.h"
#include "cmd/output.h"
#include "cudaspy/launchers.h"
#include "render/render.h"

#ifndef CUDASPY_VERSION
#define CUDASPY_VERSION "unknown"
#endif

struct options {
	const char *output; /* the digest */
	const char *format, *report;
	const char *profile, *jobs;
	bool verbose, redact, statistics, manual;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"output",     'o', "FILE",   "the digest of all ranks", offsetof(struct options, output)},
	{"format",     'f', "FORMAT", "of the report: text (default), json, html", offsetof(struct options, format)},
	{"report",     0,   "FILE",   "write the report to FILE instead of to standard output", offsetof(struct options, report)},
	{"verbose",    'v', NULL,     "all ranks and all tables", offsetof(struct options, verbose)},
	{"profile",    'p', "FILE",   "what calls cost on these machines, from cudaspy calibrate", offsetof(struct options, profile)},
	{"jobs",       'j', "N",      "threads of each rank (1): more, where there is one rank for each host", offsetof(struct options, jobs)},
	{"statistics", 0,   NULL,     "say on standard error what it took: time, bytes moved, memory", offsetof(struct options, statistics)},
	{"manual",     0,   NULL,     "print the manual page", offsetof(struct options, manual)},
	REDACT_OPTION(struct options, redact),
};
/* clang-format on */

static const struct command self = {
	.name = "mpi",
	.apart = true,
	.arguments = "-o FILE [options] [DIR...]",
	.summary =
		"Digests the traces in DIR (default: here), each rank its share, and reports them",
	.text = "To be started by mpirun or srun, with as many ranks as are to share the work: "
		"one for each host is enough, one for each rank of the job is fastest. DIR "
		"holds traces, digests, or folders of them. If all hosts see the same in it, "
		"all ranks share it; else each host's ranks share what is there, so that traces "
		"may lie on local disks. What cannot be read is named and left out: the status "
		"is then 1. It is 2 if nothing was read or written, or if a rank of the job is "
		"in two digests that differ.",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
};

/* ---- the share of a rank --------------------------------------------------------------------- */

static void read_group(struct tree_state *state, const struct share_group *group,
		       const char *profile)
{
	int err = group->digest
			  ? digest_read_file(state->digest, group->paths[0])
			  : digest_traces(state->digest, group->paths, group->n, NULL, profile);

	if (!err) {
		state->read++;
		return;
	}
	state->left_out++;
	state->differ |= err == -EEXIST;
	tree_problem(state, "%s: %s", group->name,
		     err == -EEXIST ? "differs from what another one says" : "cannot be read");
}

static void read_share(struct tree_state *state, const struct share *share, const char *profile)
{
	state->left_out = share->unknown;
	for (size_t i = 0; i < share->n_groups && !state->differ; i++)
		read_group(state, &share->groups[i], profile);
}

/* ---- what it took ---------------------------------------------------------------------------- */

static void say_statistics(const struct tree_state *state, const double *times)
{
	struct rusage usage;
	double mine[3] = {times[1] - times[0], (double)state->sent_bytes, 0}, most[3], sum[3];
	int rank, ranks;

	getrusage(RUSAGE_SELF, &usage);
	mine[2] = (double)usage.ru_maxrss / 1024;
	MPI_Reduce(mine, most, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Reduce(mine, sum, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (rank)
		return;
	fprintf(stderr,
		"cudaspy-mpi: %d ranks: reading %.3f s (the slowest), merging %.3f s, writing "
		"%.3f s; %.0f bytes moved, %.0f by one rank at most; memory of a rank %.1f MiB "
		"at most, of rank 0 %.1f MiB\n",
		ranks, most[0], times[2] - times[1], times[3] - times[2], sum[1], most[1], most[2],
		mine[2]);
}

/* ---- rank 0 ---------------------------------------------------------------------------------- */

/* What rank 0 writes to. */
struct places {
	const struct renderer *renderer;
	struct output digest, report;
};

/* 0, or an exit status after a message. */
static int places_open(struct places *places, const struct options *options)
{
	const char *format = options->format ?: "text";
	int status;

	places->renderer = renderer_find(format);
	if (!places->renderer || (strcmp(format, "text") != 0 && strcmp(format, "json") != 0 &&
				  strcmp(format, "html") != 0)) {
		warn("mpi: no format '%s' (text or json or html)", format);
		return STATUS_USAGE;
	}
	status = output_begin(&places->digest, "mpi",
			      &(struct output_options){.path = options->output}, false);
	if (status)
		return status;
	/* Standard output is mpirun's: a terminal of its own (Open MPI), whatever it writes to. */
	status = output_begin(&places->report, "mpi",
			      &(struct output_options){
				      .path = options->report, .colour = "never", .no_pager = true},
			      false);
	if (status)
		output_end(&places->digest, false);
	return status;
}

static void say_problems(const struct tree_state *state)
{
	size_t lines = 0;

	for (const char *c = state->problems; *c; c++)
		lines += *c == '\n';
	if (!state->left_out)
		return;
	warn("mpi: %lu of %lu could not be read, and %s left out%s", (unsigned long)state->left_out,
	     (unsigned long)(state->left_out + state->read), state->left_out == 1 ? "is" : "are",
	     lines ? ":" : "");
	for (const char *line = state->problems; *line; line += strcspn(line, "\n") + 1)
		warn("mpi: left out: %.*s", (int)strcspn(line, "\n"), line);
	if (lines && state->left_out > lines)
		warn("mpi: and %lu more", (unsigned long)(state->left_out - lines));
}

static int places_write(struct places *places, const struct tree_state *state,
			const struct options *options)
{
	bool nothing = state->differ || !state->digest->n_ranks;
	int status = nothing ? STATUS_NOTHING : state->left_out ? STATUS_GATE : STATUS_FINE;
	bool wrote;

	say_problems(state);
	if (state->differ)
		warn("mpi: nothing is written: digests that differ cannot both be right");
	else if (nothing)
		warn("mpi: nothing is written: no trace and no digest could be read");
	wrote = !nothing && !digest_save(state->digest, places->digest.file);
	if (output_end(&places->digest, wrote) || !wrote)
		status = STATUS_NOTHING;
	wrote = !nothing && !job_show_digest(state->digest, places->renderer, options->verbose,
					     places->report.file);
	if (output_end(&places->report, wrote) || !wrote)
		status = STATUS_NOTHING;
	return status;
}

/* ---- main ------------------------------------------------------------------------------------ */

/* All ranks: an exit status, that of rank 0 counts. */
static int work(const struct options *options, const char *const *names, size_t n_names)
{
	static struct tree_state state; /* large for a stack */
	struct places places;
	struct share share;
	double times[4];
	int rank, status = 0;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		status = places_open(&places, options);
	MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (status)
		return status;
	state.digest = digest_new();
	times[0] = MPI_Wtime();
	share_make(&share, names, n_names);
	read_share(&state, &share, options->profile);
	times[1] = MPI_Wtime();
	if (options->statistics) /* so that merging is not the wait for the slowest reader */
		MPI_Barrier(MPI_COMM_WORLD);
	tree_reduce(&state);
	times[2] = MPI_Wtime();
	if (rank == 0)
		status = places_write(&places, &state, options);
	times[3] = MPI_Wtime();
	if (options->statistics)
		say_statistics(&state, times);
	warnings_flush();
	share_release(&share);
	digest_free(state.digest);
	return status;
}

/* What is wrong with a command line each rank finds, before MPI is there: the first one says it. */
static bool parse(struct options *options, int *argc, char **argv, int *status)
{
	struct spy_rank rank;
	int null = -1, kept = -1;
	bool fine;

	spy_launcher_read(&rank);
	if (rank.from && rank.rank) {
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		dup2(null, STDERR_FILENO);
	}
	fine = command_parse(&self, options, argc, argv, status);
	if (fine && !options->manual && !options->output) {
		warn("mpi: where to? -o FILE says it");
		*status = STATUS_USAGE;
		fine = false;
	}
	if (fine && jobs_choose(options->jobs ?: "1")) {
		*status = STATUS_USAGE;
		fine = false;
	}
	if (kept >= 0)
		dup2(kept, STDERR_FILENO);
	close(kept);
	close(null);
	return fine;
}

int main(int argc, char **argv)
{
	static const struct command *const commands[] = {&self};
	static const struct command_set tool = {
		.version = CUDASPY_VERSION, .commands = commands, .n = 1};
	static const char *const here[] = {"."};
	struct options options = {0};
	int status, rank, provided;

	if (!parse(&options, &argc, argv, &status))
		return status;
	if (options.manual) {
		manual_verb(&self, &tool, stdout);
		return command_said();
	}
	if (options.redact)
		redact_begin();
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	status = work(&options, argc > 1 ? (const char *const *)argv + 1 : here,
		      argc > 1 ? (size_t)argc - 1 : 1);
	MPI_Finalize();
	/* Launchers say a lot about ranks that end otherwise: one is enough. */
	return rank == 0 ? status : STATUS_FINE;
}
