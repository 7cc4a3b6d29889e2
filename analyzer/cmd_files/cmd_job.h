/*
 * analyzer/cmd_files/cmd_job.h: reports of jobs, from digests, for the verbs.
 */
#ifndef CUDASPY_CMD_JOB_H
#define CUDASPY_CMD_JOB_H

#include "cmd_digest.h"

struct renderer;

/* Does an argument name digests: a file of that kind, a folder of them, @FILE? */
bool job_is_digest(const char *name);
bool job_any_digest(const char *const *names, size_t n);

/* Reads what is named: digests, and traces, which are digested now. *incomplete: some could not be read, as a message has
 * said. 0, or -errno after a message. */
int job_load(struct digest *digest, const char *const *names, size_t n, bool *incomplete);

/* The report of what is in the digest. 0, or -errno after a message. */
int job_show_digest(struct digest *digest, const struct renderer *renderer, bool verbose,
		    FILE *out);

/* job_load, and shows the report. */
int job_show(const char *const *names, size_t n, const struct renderer *renderer, bool verbose,
	     FILE *out, bool *incomplete);

/* Two jobs side by side: all that is named on a side is one job. 0, or -errno after a message. */
int job_diff(const char *const *a_names, size_t n_a, const char *const *b_names, size_t n_b,
	     const struct renderer *renderer, FILE *out);

#endif
