/*
 * analyzer/cmd_files/cmd_digest.h: digests of traces and of files, for the verbs that make, merge and show them.
 */
#ifndef CUDASPY_CMD_DIGEST_H
#define CUDASPY_CMD_DIGEST_H

#include "digest/digest.h"
#include "trace/trace.h"

/* Adds the ranks whose traces are in `dirs`, each analyzed by itself. 0, or -errno after a message, as report_show; -EEXIST
 * as digest_add. */
int digest_traces(struct digest *digest, const char *const *dirs, size_t n_dirs,
		  const struct trace_filter *filter, const char *profile);

/* Writes the file's bytes. 0, or -EIO after a message. */
int digest_save(struct digest *digest, FILE *out);

/* What became of a list of digests. */
struct digest_inputs {
	size_t read; /* files that were merged */
	size_t bad; /* files that could not be: a message has said why */
	bool differ; /* a rank is in two of them, and differs: there is no result */
};

/*
 * Merges the digests that are named: files; folders, for all files in them that are called *.digest; @FILE, for the names in it, one
 * a line; "@-" for standard input. What is torn, damaged or of another version is left out after a message.
 */
void digest_read_all(struct digest *digest, const char *const *names, size_t n,
		     struct digest_inputs *inputs);

#endif
