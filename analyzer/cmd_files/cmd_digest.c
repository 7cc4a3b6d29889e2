/*
 * analyzer/cmd_files/cmd_digest.c: `cudaspy digest`: what is worth knowing of each rank's traces, in one small file.
 */
#include <errno.h>
#include <stdlib.h>
#include "analysis.h"
#include "cmd_digest.h"
#include "cmd/output.h"
#include "base/redact.h"
#include "digest/make.h"

/* ---- whose traces ---------------------------------------------------------------------------- */

/* The traces of a rank; or one of a process without. */
struct rank_traces {
	char *key; /* owned */
	const char **dirs; /* owned array */
	size_t n;
};

struct all_ranks {
	struct rank_traces *all;
	size_t n;
};

/* As ranks.c tells ranks apart. */
static char *key_of(const struct trace *trace)
{
	const struct metadata *m = &trace->metadata;

	if (!m->has_rank || m->world_size == 1)
		return xasprintf("%s", trace->dir);
	return xasprintf("rank\n%s\n%u\n%u", m->job ?: "", m->rank, m->restarts);
}

static void add_dir(struct rank_traces *rank, const char *dir)
{
	rank->dirs = grow((void *)rank->dirs, rank->n, sizeof(*rank->dirs));
	rank->dirs[rank->n++] = dir;
}

static void add_trace(struct all_ranks *ranks, const struct trace *trace)
{
	char *key = key_of(trace);
	struct rank_traces *rank;
	size_t i = 0;

	while (i < ranks->n && strcmp(ranks->all[i].key, key) != 0)
		i++;
	if (i == ranks->n) {
		ranks->all = grow(ranks->all, ranks->n, sizeof(*ranks->all));
		ranks->all[ranks->n++] = (struct rank_traces){.key = key};
	} else {
		free(key);
	}
	rank = &ranks->all[i];
	for (i = 0; i < trace->n_parts; i++)
		add_dir(rank, trace->parts[i].dir);
	if (!trace->n_parts)
		add_dir(rank, trace->dir);
}

static void all_ranks_release(struct all_ranks *ranks)
{
	for (size_t i = 0; i < ranks->n; i++) {
		free(ranks->all[i].key);
		free((void *)ranks->all[i].dirs);
	}
	free(ranks->all);
}

/* ---- one rank -------------------------------------------------------------------------------- */

static int digest_set(struct digest *digest, struct trace_set *set, const char *profile)
{
	struct symbolizer *symbols = symbolizer_new();
	struct analysis analysis;
	int err = analysis_run(
		&analysis, set,
		&(struct analysis_options){.profile = profile, .sample_collectives = true});

	if (!err)
		err = digest_make(digest, &analysis, symbols, set->traces[0]->dir);
	analysis_release(&analysis);
	symbolizer_free(symbols);
	return err;
}

/* Each rank is read by itself: so its data are the same whatever other ranks' traces lie beside. */
static int digest_rank(struct digest *digest, const struct rank_traces *rank, const char *profile)
{
	struct trace_set set;
	int err = trace_set_open(&set, rank->dirs, rank->n, NULL);

	if (!err)
		err = digest_set(digest, &set, profile);
	trace_set_release(&set);
	return err;
}

int digest_traces(struct digest *digest, const char *const *dirs, size_t n_dirs,
		  const struct trace_filter *filter, const char *profile)
{
	struct all_ranks ranks = {0};
	struct trace_set set;
	int err = trace_set_open(&set, dirs, n_dirs, filter);

	for (size_t i = 0; !err && i < set.n_traces; i++)
		add_trace(&ranks, set.traces[i]);
	if (!err && ranks.n == 1)
		err = digest_set(digest, &set, profile);
	for (size_t i = 0; !err && ranks.n > 1 && i < ranks.n; i++)
		err = digest_rank(digest, &ranks.all[i], profile);
	all_ranks_release(&ranks);
	trace_set_release(&set);
	return err;
}

int digest_save(struct digest *digest, FILE *out)
{
	uint8_t *bytes;
	size_t n, written;

	digest_write(digest, &bytes, &n);
	written = fwrite(bytes, 1, n, out);
	free(bytes);
	return finish_output(out) || written != n ? -EIO : 0;
}

/* ---- the verb -------------------------------------------------------------------------------- */

struct options {
	const char *output;
	const char *profile;
	const char *run;
	bool redact;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"output",  'o', "FILE", "the digest; - is standard output", offsetof(struct options, output)},
	{"profile", 'p', "FILE", "what calls cost on that machine, from cudaspy calibrate", offsetof(struct options, profile)},
	RUN_OPTION(struct options, run),
	REDACT_OPTION(struct options, redact),
};
/* clang-format on */

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {0};
	struct digest *digest;
	struct output out;
	int status, err;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (!options.output) {
		warn("digest: where to? -o FILE says it");
		return STATUS_USAGE;
	}
	if (options.redact)
		redact_begin();
	status = output_begin(&out, self->name, &(struct output_options){.path = options.output},
			      false);
	if (status)
		return status;
	digest = digest_new();
	err = digest_traces(digest, (const char *const *)argv + 1, (size_t)argc - 1,
			    &(struct trace_filter){.wanted = options.run}, options.profile);
	if (!err)
		err = digest_save(digest, out.file);
	digest_free(digest);
	status = output_end(&out, !err) || err ? STATUS_NOTHING : STATUS_FINE;
	warnings_flush();
	return status;
}

const struct command command_digest = {
	.name = "digest",
	.arguments = "-o FILE [options] [DIR...]",
	.summary = "Writes what matters of the traces in DIR (default: here) into one small file",
	.text = "For jobs of many ranks: each rank, or each host, digests its own traces where "
		"the program's files are, `cudaspy merge` puts the digests of all together, and "
		"`cudaspy report` shows which ranks, hosts and GPUs differ from the rest and "
		"why. A rank's digest is at most 1 MB, however long its traces are. Each rank "
		"is looked at by itself; a process that no launcher gave a rank is one of its "
		"own.",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
