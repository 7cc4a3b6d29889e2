/*
 * mpi/tree.c: the reduction: a binomial tree by hand. In round k, ranks whose bit k is set send their digest to the rank
 * without that bit, and are done. Digests vary in size, so that MPI_Reduce, whose elements are of one size, cannot take them;
 * merging does not depend on order or grouping, so any tree gives the same bytes. Called once, by all ranks.
 *
 * A rank that has nothing to give says so: nobody waits for it longer than for any other.
 */
#include <errno.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tree.h"
#include "base/util.h"

#define CHUNK_BYTES ((uint64_t)1 << 28) /* of one message: MPI counts in int */

enum { TAG_HEADER = 1, TAG_BYTES };

/* What comes before the bytes. One kind of machine: no job has two orders of bytes. */
struct header {
	uint64_t bytes, read, left_out, differ;
	char problems[TREE_PROBLEMS];
};

void tree_problem(struct tree_state *state, const char *format, ...)
{
	size_t n = strlen(state->problems);
	va_list ap;
	int wanted;

	va_start(ap, format);
	wanted = vsnprintf(state->problems + n, sizeof(state->problems) - n, format, ap);
	va_end(ap);
	if (wanted < 0 || n + (size_t)wanted + 1 >= sizeof(state->problems))
		state->problems[n] = 0; /* whole lines only: their number is known anyway */
	else
		strcat(state->problems, "\n");
}

static void send_to(struct tree_state *state, int to)
{
	static struct header header; /* large for a stack */
	uint8_t *bytes = NULL;
	size_t n = 0;
	uint64_t at;

	if (!state->differ && state->digest->n_ranks)
		digest_write(state->digest, &bytes, &n);
	header = (struct header){.bytes = n,
				 .read = state->read,
				 .left_out = state->left_out,
				 .differ = state->differ};
	memcpy(header.problems, state->problems, sizeof(header.problems));
	MPI_Send(&header, sizeof(header), MPI_BYTE, to, TAG_HEADER, MPI_COMM_WORLD);
	for (at = 0; at < n; at += CHUNK_BYTES)
		MPI_Send(bytes + at, (int)min_u64(n - at, CHUNK_BYTES), MPI_BYTE, to, TAG_BYTES,
			 MPI_COMM_WORLD);
	state->sent_bytes = sizeof(header) + n;
	free(bytes);
}

static void take_problems(struct tree_state *state, const char *lines)
{
	while (*lines) {
		int n = (int)strcspn(lines, "\n");

		tree_problem(state, "%.*s", n, lines);
		lines += n + (lines[n] == '\n');
	}
}

static void receive_from(struct tree_state *state, int from)
{
	static struct header header;
	char name[48];
	uint8_t *bytes;
	uint64_t at;
	int err = 0;

	MPI_Recv(&header, sizeof(header), MPI_BYTE, from, TAG_HEADER, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	bytes = xcalloc(header.bytes + 1, 1);
	for (at = 0; at < header.bytes; at += CHUNK_BYTES)
		MPI_Recv(bytes + at, (int)min_u64(header.bytes - at, CHUNK_BYTES), MPI_BYTE, from,
			 TAG_BYTES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	snprintf(name, sizeof(name), "the digest of MPI rank %d", from);
	if (header.bytes && !state->differ)
		err = digest_read(state->digest, name, bytes, header.bytes);
	free(bytes);
	state->read += header.read;
	state->left_out += header.left_out;
	state->differ |= header.differ || err == -EEXIST;
	header.problems[sizeof(header.problems) - 1] = 0;
	take_problems(state, header.problems);
	if (err && err != -EEXIST) {
		state->left_out++;
		tree_problem(state, "%s: cannot be read", name);
	}
}

void tree_reduce(struct tree_state *state)
{
	int rank, ranks, bit;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (bit = 1; bit < ranks; bit <<= 1) {
		if (rank & bit) {
			send_to(state, rank - bit);
			return;
		}
		if (rank + bit < ranks)
			receive_from(state, rank + bit);
	}
}
