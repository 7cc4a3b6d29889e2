/*
 * analyzer/digest/digest.h: digests: what is known of the ranks of a job, small enough to be moved and put together.
 *
 * A digest is a set of ranks, each with its data (data.h). To merge is to join the sets: a rank that is in both counts
 * once, if its data were the same when they were made; else the merge is refused. Of a recording in parts (table `parts`)
 * different parts of a rank are different members of the set, unless they overlap: then the merge is refused, too. All ranks of a digest are reduced to one
 * level, which depends on their number alone, and on the levels that the merged ones had already. So the result does not
 * depend on order or grouping, nor on how often something is merged, and its bytes do not either: ranks and texts are
 * written in an order of their own. docs/DIGEST_FORMAT.md has the proof in words, and the format.
 *
 * For `cudaspy digest`, `merge`, `report` and `dump`, for cudaspy-mpi, and for tests. One digest is used by one thread at a
 * time.
 */
#ifndef CUDASPY_DIGEST_H
#define CUDASPY_DIGEST_H

#include "data.h"
#include "base/hash.h"
#include "base/magic.h"

#define DIGEST_MAJOR 1 /* another one: the file cannot be read */
#define DIGEST_MINOR 3 /* a later one has more tables, columns or sections */

#define DIGEST_RANK_BYTES (1000000) /* one rank's data and texts are no more than that */
#define DIGEST_LEVEL_0 256 /* so many ranks keep all rows; with each doubling it is half as many */
#define DIGEST_LEVELS 24
#define DIGEST_FILE_MOST ((uint64_t)4 << 30) /* larger files are not read */

/* A rank, or some parts of its recording. */
struct digest_rank {
	char *key; /* in the order of which ranks are written; owned */
	size_t name_bytes; /* of the key: whose rank it is. The rest is the first part, if there are parts */
	struct digest_hash hash; /* of its data at level 0 */
	uint8_t *bytes; /* packed data; owned */
	size_t n;
	uint32_t source; /* where it comes from: digest->sources */
	UT_hash_handle hh;
	UT_hash_handle by_name; /* of a rank's parts the one that came first */
	struct digest_rank *more; /* the others */
};

struct digest {
	struct digest_schema schema;
	struct digest_texts texts;
	struct digest_rank *by_key, *by_name;
	size_t n_ranks; /* of parts of a rank each counts */
	uint64_t bytes; /* of the packed data of all of them */
	unsigned int level;
	size_t texts_checked; /* texts when it was last seen which of them are in use */
	char **sources; /* names of files, for messages; owned */
	uint32_t n_sources;
	struct arena arena; /* texts of messages */
	struct digest_data work, other; /* of the rank in hand; while others are repacked */
};

struct digest *digest_new(void);
void digest_free(struct digest *digest);

/*
 * Reads a digest in memory and merges it into this one. name: what to call it in messages. 0, or after a message:
 * -EBADMSG torn or damaged, -EPROTO of a version that cannot be read: then nothing of it has been taken. -EEXIST: a rank
 * is in both, and differs: the digest is of no use any more.
 */
int digest_read(struct digest *into, const char *name, const void *bytes, size_t n);

/* Merges one digest into another one. 0, or after a message -EEXIST or -EPROTO, as above. */
int digest_merge(struct digest *into, const struct digest *from);

/* The whole file's bytes: *bytes is the caller's to free. */
void digest_write(struct digest *digest, uint8_t **bytes, size_t *n);

/* Adds a rank, whose rows and texts are of this digest; reduces `data` until it is small enough. 0 or -EEXIST. */
int digest_add(struct digest *digest, struct digest_data *data, const char *source);

/* The ranks, in order, parts of one behind each other: *n of them; the caller frees the array. */
struct digest_rank **digest_ranks(const struct digest *digest, size_t *n);

/* Are they parts of one rank's recording? */
bool digest_rank_is_same(const struct digest_rank *a, const struct digest_rank *b);

/* The rank's data; digest_data_release. */
void digest_rank_data(const struct digest *digest, const struct digest_rank *rank,
		      struct digest_data *data);

/* "part 2", "parts 1-3, 5": one more run, to "" or to what this has made of those before. */
const char *digest_part_words(struct arena *texts, const char *words, uint64_t first,
			      uint64_t last);

/* "rank 3 of job 42", "rank 3", "app.123 on node1". */
const char *digest_rank_name(struct arena *texts, const struct digest *digest,
			     const struct digest_data *data);

/* The level of so many ranks. */
unsigned int digest_level(size_t n_ranks);

/* All of its rows, one line each, or as JSON. 0, or -EIO after a message. */
int digest_dump(const struct digest *digest, bool json, FILE *out);

/* ---- files: file.c --------------------------------------------------------------------------- */

/* As digest_read; another -errno after a message if the file cannot be read at all. */
int digest_read_file(struct digest *into, const char *path);

/* ---- for the files of this folder ------------------------------------------------------------- */

#define DIGEST_HEAD_BYTES 40

uint64_t digest_checksum(const void *bytes, size_t n);

/* merge.c: packed rows of another schema and other texts. Takes nothing but copies. */
int digest_take(struct digest *into, const struct digest_schema *schema, const uint32_t *map,
		uint32_t n_map, const struct digest_hash *hash, struct digest_cursor *packed,
		const char *source);

/* What another version's schema has more, for a digest called that. 0, or -EPROTO after a message. */
int digest_join(struct digest *into, const struct digest_schema *schema, const char *name);

/* All ranks to that level, if they are not there yet. */
void digest_raise(struct digest *digest, unsigned int level);

#endif
