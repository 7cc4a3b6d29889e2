/*
 * mpi/share.h: which traces and digests each rank of cudaspy-mpi takes.
 */
#ifndef CUDASPY_MPI_SHARE_H
#define CUDASPY_MPI_SHARE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* What one rank reads together: the traces of one rank of the job, one trace, or one digest. */
struct share_group {
	char *name; /* for messages; owned */
	const char **paths; /* owned array; paths are of the share's text */
	size_t n;
	bool digest; /* one */
};

struct share {
	char *text; /* all there is: the kind, a path and 0 each; owned */
	size_t text_bytes;
	struct share_group *groups; /* this rank's */
	size_t n_groups;
	unsigned int
		unknown; /* names that are no traces and no digests, on this host; a message has said so */
};

/*
 * Of each host one rank looks what there is in `names`. Where all hosts see the same, all ranks share it; else the ranks of
 * each host share what is there. Called by all ranks.
 */
void share_make(struct share *share, const char *const *names, size_t n_names);
void share_release(struct share *share);

#endif
