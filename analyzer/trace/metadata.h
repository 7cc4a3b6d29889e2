/*
 * analyzer/trace/metadata.h: what a trace's metadata file says.
 *
 * The file is TSDL (CTF 1.8), written by the shim: include/cudaspy/metadata_layout.h. This is no
 * general TSDL parser: it takes what it knows from wherever it stands, and steps over the rest.
 */
#ifndef CUDASPY_METADATA_H
#define CUDASPY_METADATA_H

#include "base/util.h"

/* A key of the env block. Numbers have a text too. */
struct metadata_env {
	char *key;
	char *value;
	bool is_number;
	int64_t number;
};

struct metadata {
	uint8_t uuid[16];
	bool has_uuid;
	uint64_t frequency; /* of the clock, cycles a second; 0: not said */
	uint64_t offset_s, offset_cycles; /* of the clock's zero, since the epoch */
	struct metadata_env *env;
	size_t n_env;
	/* Number -> name, NULL where there is none. Owned. Both empty: as this version has them. */
	char **functions;
	size_t n_functions;
	char **events;
	size_t n_events;
	char *event_name; /* while parsing: of the event block we are in */
	/* Which rank of a job the process is, as a launcher told it. Texts are in env. */
	bool has_rank;
	uint32_t rank; /* 0 if it has none */
	int32_t local_rank; /* on its host; -1 unknown */
	uint32_t world_size; /* ranks of the job; 0 unknown */
	uint32_t restarts; /* times that the rank had been started before */
	const char *job, *rank_from; /* which job; the variable that rank is from; NULL unknown */
};

#define METADATA_MAX_BYTES (16 << 20) /* more of it is not read */

/*
 * Reads a metadata file. 0, -ENOENT without a word when there is none, another -errno after a
 * warning: not a metadata file, another tool's trace, or a later format. metadata_release in all
 * cases.
 */
int metadata_read(struct metadata *m, const char *path);

/* The same for text in memory, which need not end in NUL; path is for complaints. */
int metadata_parse(struct metadata *m, const char *path, const char *text, size_t size);

void metadata_release(struct metadata *m);

/* The functions' names are known elsewhere: there may be a thousand of them in each trace. */
void metadata_forget_functions(struct metadata *m);

/* --redact: forgets the command line, the variables and what a launcher calls the job, as a recorder that was told to
 * redact writes none of them, and where the program was; the paths of it are told to redact.h first. */
void metadata_redact(struct metadata *m);

/* Value of an env key, or NULL; its number, or `otherwise`. */
const char *metadata_text(const struct metadata *m, const char *key);
int64_t metadata_number(const struct metadata *m, const char *key, int64_t otherwise);

#endif
