/*
 * analyzer/cmd_files/cmd_job.c: the report of a job, from digests. Called by `report` and `diff` when they are given some.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "cmd_job.h"
#include "job/diff.h"
#include "job/sections.h"
#include "render/render.h"

/* If it is none, that has to be said of a digest. */
static bool is_called_digest(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, ".digest");
}

/* A folder of digests, not of traces: it has files called so, and nothing that a trace has. */
static bool has_digests(const char *name)
{
	struct dirent *entry;
	DIR *dir = opendir(name);
	bool digests = false, traces = false;

	while (dir && (entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');

		digests |= is_called_digest(entry->d_name);
		traces |= (dot && !strcmp(dot, ".cudaspy")) || !strcmp(entry->d_name, "metadata");
	}
	if (dir)
		closedir(dir);
	return digests && !traces;
}

bool job_is_digest(const char *name)
{
	struct stat status;

	if (*name == '@')
		return true;
	if (!stat(name, &status) && S_ISDIR(status.st_mode))
		return has_digests(name);
	return file_is_digest(name) || is_called_digest(name);
}

bool job_any_digest(const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (job_is_digest(names[i]))
			return true;
	return false;
}

static bool is_folder(const char *name)
{
	struct stat status;

	return !stat(name, &status) && S_ISDIR(status.st_mode);
}

int job_load(struct digest *digest, const char *const *names, size_t n, bool *incomplete)
{
	struct digest_inputs inputs = {0};
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		if (job_is_digest(names[i]) || !is_folder(names[i]))
			digest_read_all(digest, &names[i], 1, &inputs);
		else
			err = digest_traces(digest, &names[i], 1, NULL, NULL);
	}
	*incomplete = inputs.bad > 0;
	if (inputs.differ)
		return -EEXIST;
	return err ?: digest->n_ranks ? 0 : -ENOENT;
}

int job_show_digest(struct digest *digest, const struct renderer *renderer, bool verbose, FILE *out)
{
	struct renderer tables = *renderer;
	struct report report;
	struct job job;
	int err;

	report_init(&report, JOB_SCHEMA);
	report.view = view_for(out);
	report.view.verbose = verbose;
	report.text_only = false;
	report.more = "More: --verbose has hosts, calls, idle times, locks and waits of all "
		      "ranks; the report of a rank's traces has single calls.";
	job_init(&job, digest);
	job_report(&report, &job);
	if (renderer->timeline)
		tables.render = render_html_tables;
	err = renderer_show(&tables, &report, out);
	report_release(&report);
	job_release(&job);
	return err;
}

int job_show(const char *const *names, size_t n, const struct renderer *renderer, bool verbose,
	     FILE *out, bool *incomplete)
{
	struct digest *digest = digest_new();
	int err = job_load(digest, names, n, incomplete);

	if (!err)
		err = job_show_digest(digest, renderer, verbose, out);
	digest_free(digest);
	return err;
}

/* A side of a diff. */
struct side {
	struct digest *digest;
	struct job job;
};

static int load_side(struct side *side, const char *const *names, size_t n)
{
	bool incomplete;
	int err;

	side->digest = digest_new();
	err = job_load(side->digest, names, n, &incomplete);
	if (!err)
		job_init(&side->job, side->digest);
	return err;
}

static void side_release(struct side *side)
{
	job_release(&side->job);
	digest_free(side->digest);
}

int job_diff(const char *const *a_names, size_t n_a, const char *const *b_names, size_t n_b,
	     const struct renderer *renderer, FILE *out)
{
	struct side a = {0}, b = {0};
	struct report report;
	int err = load_side(&a, a_names, n_a) ?: load_side(&b, b_names, n_b);

	if (!err) {
		report_init(&report, JOB_DIFF_SCHEMA);
		report.view = view_for(out);
		report.view.always_brief = true;
		job_diff_report(&report, &a.job, &b.job);
		err = renderer_show(renderer, &report, out);
		report_release(&report);
	}
	side_release(&a);
	side_release(&b);
	return err;
}
