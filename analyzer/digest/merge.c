/*
 * analyzer/digest/merge.c: sets of ranks, joined. Called for each rank that is read, merged or made.
 */
#include <errno.h>
#include <stdlib.h>
#include "digest.h"

struct digest *digest_new(void)
{
	struct digest *digest = xcalloc(1, sizeof(*digest));

	digest_schema_init(&digest->schema);
	digest_texts_init(&digest->texts);
	digest_data_init(&digest->work, &digest->schema);
	digest_data_init(&digest->other, &digest->schema);
	return digest;
}

void digest_free(struct digest *digest)
{
	struct digest_rank *rank, *next;

	if (!digest)
		return;
	HASH_CLEAR(by_name, digest->by_name);
	HASH_EMPTY (digest->by_key, rank, next) {
		free(rank->key);
		free(rank->bytes);
		free(rank);
	}
	for (uint32_t i = 0; i < digest->n_sources; i++)
		free(digest->sources[i]);
	free(digest->sources);
	digest_texts_release(&digest->texts);
	digest_data_release(&digest->work);
	digest_data_release(&digest->other);
	arena_release(&digest->arena);
	free(digest);
}

unsigned int digest_level(size_t n_ranks)
{
	unsigned int level = 0;

	while (level < DIGEST_LEVELS && n_ranks > (size_t)DIGEST_LEVEL_0 << level)
		level++;
	return level;
}

/* ---- whose it is ----------------------------------------------------------------------------- */

static uint64_t rank_cell(const struct digest_data *data, unsigned int column)
{
	return data->tables[D_RANK].n ? digest_cell(data, D_RANK, 0, column) : 0;
}

const char *digest_rank_name(struct arena *texts, const struct digest *digest,
			     const struct digest_data *data)
{
	const char *job = digest_texts_at(&digest->texts, rank_cell(data, D_RANK_job));
	const char *place = digest_texts_at(&digest->texts, rank_cell(data, D_RANK_place));
	uint64_t rank = rank_cell(data, D_RANK_rank_1);

	if (!rank || *place)
		return arena_printf(
			texts, "%s.%llu on %s",
			digest_texts_at(&digest->texts, rank_cell(data, D_RANK_program)),
			(unsigned long long)rank_cell(data, D_RANK_pid),
			digest_texts_at(&digest->texts, rank_cell(data, D_RANK_host)));
	return arena_printf(texts, "rank %llu%s%s", (unsigned long long)rank - 1,
			    *job ? " of job " : "", job);
}

/* Ranks in the order of their numbers, and what sorts as bytes do. */
static char *key_of(const struct digest *digest, const struct digest_data *data, size_t *name_bytes)
{
	char *name = xasprintf("%s\x01%020llu\x01%020llu\x01%s",
			       digest_texts_at(&digest->texts, rank_cell(data, D_RANK_job)),
			       (unsigned long long)rank_cell(data, D_RANK_rank_1),
			       (unsigned long long)rank_cell(data, D_RANK_restarts),
			       digest_texts_at(&digest->texts, rank_cell(data, D_RANK_place)));
	char *key;

	*name_bytes = strlen(name);
	if (!data->tables[D_PART].n)
		return name;
	key = xasprintf("%s\x01%020llu", name,
			(unsigned long long)digest_cell(data, D_PART, 0, D_PART_first));
	free(name);
	return key;
}

bool digest_rank_is_same(const struct digest_rank *a, const struct digest_rank *b)
{
	return a->name_bytes == b->name_bytes && !memcmp(a->key, b->key, a->name_bytes);
}

const char *digest_part_words(struct arena *texts, const char *words, uint64_t first, uint64_t last)
{
	bool several = first != last || *words;

	if (*words)
		words = arena_printf(texts, "parts%s,", strchr(words, ' '));
	else
		words = several ? "parts" : "part";
	return first == last ? arena_printf(texts, "%s %llu", words, (unsigned long long)first)
			     : arena_printf(texts, "%s %llu-%llu", words, (unsigned long long)first,
					    (unsigned long long)last);
}

static uint32_t source_of(struct digest *digest, const char *name)
{
	uint32_t last = digest->n_sources;

	if (last && !strcmp(digest->sources[last - 1], name))
		return last - 1;
	digest->sources = grow(digest->sources, last, sizeof(char *));
	digest->sources[last] = xstrdup(name);
	digest->n_sources++;
	return last;
}

/* ---- smaller --------------------------------------------------------------------------------- */

static void unpack(const struct digest *digest, const struct digest_rank *rank,
		   struct digest_data *data)
{
	struct digest_cursor cursor = {rank->bytes, rank->bytes, rank->bytes + rank->n, NULL, NULL};

	/* They are this digest's own: it has packed them. */
	digest_data_unpack(&cursor, data, &digest->schema, &digest->schema, NULL, UINT32_MAX);
}

void digest_rank_data(const struct digest *digest, const struct digest_rank *rank,
		      struct digest_data *data)
{
	digest_data_init(data, &digest->schema);
	unpack(digest, rank, data);
}

static void repack(struct digest *digest, struct digest_rank *rank, const struct digest_data *data,
		   const uint32_t *map)
{
	struct digest_bytes bytes = {0};

	digest_data_pack(&bytes, data, &digest->schema, map);
	digest->bytes += bytes.n;
	digest->bytes -= rank->n;
	free(rank->bytes);
	rank->bytes = xrealloc(bytes.at, bytes.n + 1, 1);
	rank->n = bytes.n;
}

static void mark_texts(const struct digest *digest, const struct digest_data *data, uint32_t *used)
{
	for (uint32_t i = 0; i < data->n_tables; i++)
		for (uint32_t column = 0; column < data->tables[i].columns; column++) {
			if (digest->schema.tables[i].columns[column].type != DIGEST_TEXT)
				continue;
			for (uint32_t row = 0; row < data->tables[i].n; row++)
				used[digest_cell(data, i, row, column)] = 1;
		}
}

/* The texts of rows that are gone. */
static void forget_texts(struct digest *digest)
{
	struct digest_texts old = digest->texts;
	uint32_t *map = xcalloc(old.n, sizeof(*map)), i;

	for (struct digest_rank *rank = digest->by_key; rank; rank = rank->hh.next) {
		unpack(digest, rank, &digest->other);
		mark_texts(digest, &digest->other, map);
	}
	digest_texts_init(&digest->texts);
	for (i = 1; i < old.n; i++)
		map[i] = map[i] ? digest_texts_add(&digest->texts, digest_texts_at(&old, i)) : 0;
	map[0] = 0;
	for (struct digest_rank *rank = digest->by_key; rank; rank = rank->hh.next) {
		unpack(digest, rank, &digest->other);
		repack(digest, rank, &digest->other, map);
	}
	digest_texts_release(&old);
	free(map);
	digest->texts_checked = digest->texts.bytes;
}

#define TEXTS_LEAST (8u << 20) /* less is not worth looking */

static void look_at_texts(struct digest *digest)
{
	if (digest->level && digest->texts.bytes > TEXTS_LEAST &&
	    digest->texts.bytes > 2 * digest->texts_checked)
		forget_texts(digest);
}

void digest_raise(struct digest *digest, unsigned int level)
{
	if (level <= digest->level)
		return;
	digest->level = level;
	for (struct digest_rank *rank = digest->by_key; rank; rank = rank->hh.next) {
		unpack(digest, rank, &digest->other);
		digest_data_reduce(&digest->other, &digest->schema, level);
		repack(digest, rank, &digest->other, NULL);
	}
}

/* ---- joined ---------------------------------------------------------------------------------- */

/* Of digest->other, which is there already, and digest->work, the rank in hand. */
static bool is_other_run(const struct digest *digest)
{
	static const uint32_t of_run[] = {D_RANK_host, D_RANK_boot, D_RANK_pid};

	for (size_t i = 0; i < ARRAY_SIZE(of_run); i++)
		if (rank_cell(&digest->work, of_run[i]) != rank_cell(&digest->other, of_run[i]))
			return true;
	return digest->work.tables[D_PART].n && digest->other.tables[D_PART].n &&
	       digest_cell(&digest->work, D_PART, 0, D_PART_recording) !=
		       digest_cell(&digest->other, D_PART, 0, D_PART_recording);
}

static bool rows_overlap(const struct digest *digest, uint32_t a, uint32_t b)
{
	const struct digest_data *x = &digest->work, *y = &digest->other;

	return digest_cell(x, D_PART, a, D_PART_recording) ==
		       digest_cell(y, D_PART, b, D_PART_recording) &&
	       digest_cell(x, D_PART, a, D_PART_first) <= digest_cell(y, D_PART, b, D_PART_last) &&
	       digest_cell(y, D_PART, b, D_PART_first) <= digest_cell(x, D_PART, a, D_PART_last);
}

/* One without parts is of all that there is. */
static bool are_disjoint(const struct digest *digest)
{
	uint32_t n = digest->work.tables[D_PART].n, n_other = digest->other.tables[D_PART].n, i, j;

	if (!n || !n_other || is_other_run(digest))
		return false;
	for (i = 0; i < n; i++)
		for (j = 0; j < n_other; j++)
			if (rows_overlap(digest, i, j))
				return false;
	return true;
}

/* "parts 1-3, 5", "all of it": of its first process */
static const char *parts_words(struct arena *texts, const struct digest_data *data)
{
	uint32_t n = data->tables[D_PART].n, i;
	const char *words = "";

	for (i = 0; i < n && digest_cell(data, D_PART, i, D_PART_recording) ==
				     digest_cell(data, D_PART, 0, D_PART_recording);
	     i++)
		words = digest_part_words(texts, words, digest_cell(data, D_PART, i, D_PART_first),
					  digest_cell(data, D_PART, i, D_PART_last));
	return n ? words : "all of it";
}

static const char *why_different(struct arena *texts, const struct digest *digest)
{
	if (is_other_run(digest))
		return "they are of two runs of the program: each is a job of its own";
	if (digest->work.tables[D_PART].n || digest->other.tables[D_PART].n)
		return arena_printf(
			texts,
			"they overlap: of its recording the first one has %s, and the second one "
			"%s, and what is in both would count twice. Digest each part once",
			parts_words(texts, &digest->other), parts_words(texts, &digest->work));
	if (rank_cell(&digest->work, D_RANK_begin_ns) !=
		    rank_cell(&digest->other, D_RANK_begin_ns) ||
	    rank_cell(&digest->work, D_RANK_span_ns) != rank_cell(&digest->other, D_RANK_span_ns))
		return "one may have been made while the program was running, or of some of its "
		       "traces: digest all of them, once";
	return "one may lack files, be redacted, or be made by another version of cudaspy or with "
	       "another profile";
}

static void warn_different(struct digest *digest, const struct digest_rank *rank,
			   const char *source)
{
	struct arena texts = {0};

	unpack(digest, rank, &digest->other);
	warn("%s is in %s and in %s, and differs: which one is right is unknown; %s",
	     digest_rank_name(&texts, digest, &digest->work), digest->sources[rank->source], source,
	     why_different(&texts, digest));
	arena_release(&texts);
}

/* Which of the parts of that name the rank in hand must not be beside. */
static const struct digest_rank *find_overlap(struct digest *digest,
					      const struct digest_rank *first)
{
	for (const struct digest_rank *rank = first; rank; rank = rank->more) {
		unpack(digest, rank, &digest->other);
		if (!are_disjoint(digest))
			return rank;
	}
	return NULL;
}

static void add_rank(struct digest *digest, struct digest_rank *rank, struct digest_rank *first)
{
	HASH_ADD_KEYPTR(hh, digest->by_key, rank->key, strlen(rank->key), rank);
	if (first) {
		rank->more = first->more;
		first->more = rank;
	} else {
		HASH_ADD_KEYPTR(by_name, digest->by_name, rank->key, rank->name_bytes, rank);
	}
	digest->n_ranks++;
}

/* digest->work is the rank in hand. */
static int add_work(struct digest *digest, const struct digest_hash *hash, const char *source)
{
	size_t name_bytes;
	char *key = key_of(digest, &digest->work, &name_bytes);
	const struct digest_rank *overlap;
	struct digest_rank *rank, *first;

	HASH_FIND_STR(digest->by_key, key, rank);
	if (rank && rank->hash.a == hash->a && rank->hash.b == hash->b) {
		free(key);
		return 0;
	}
	HASH_FIND(by_name, digest->by_name, key, name_bytes, first);
	overlap = rank ?: find_overlap(digest, first);
	if (overlap) {
		free(key);
		warn_different(digest, overlap, source);
		return -EEXIST;
	}
	digest_raise(digest, digest_level(digest->n_ranks + 1));
	digest_data_reduce(&digest->work, &digest->schema, digest->level);
	rank = xcalloc(1, sizeof(*rank));
	rank->key = key;
	rank->name_bytes = name_bytes;
	rank->hash = *hash;
	rank->source = source_of(digest, source);
	add_rank(digest, rank, first);
	repack(digest, rank, &digest->work, NULL);
	look_at_texts(digest);
	return 0;
}

int digest_take(struct digest *into, const struct digest_schema *schema, const uint32_t *map,
		uint32_t n_map, const struct digest_hash *hash, struct digest_cursor *packed,
		const char *source)
{
	int err = digest_data_unpack(packed, &into->work, &into->schema, schema, map, n_map);

	return err ?: add_work(into, hash, source);
}

static size_t text_bytes(const struct digest *digest, const struct digest_data *data)
{
	uint32_t *used = xcalloc(digest->texts.n, sizeof(*used)), i;
	size_t bytes = 0;

	mark_texts(digest, data, used);
	for (i = 0; i < digest->texts.n; i++)
		bytes += used[i] ? strlen(digest_texts_at(&digest->texts, i)) + 2 : 0;
	free(used);
	return bytes;
}

static size_t size_of(const struct digest *digest, const struct digest_data *data)
{
	struct digest_bytes bytes = {0};

	digest_data_pack(&bytes, data, &digest->schema, NULL);
	free(bytes.at);
	return bytes.n + text_bytes(digest, data);
}

static void copy_data(struct digest_data *to, const struct digest_data *from)
{
	for (uint32_t i = 0; i < from->n_tables; i++) {
		for (uint32_t row = 0; row < from->tables[i].n; row++)
			memcpy(digest_data_add(to, i),
			       &from->tables[i].cells[(size_t)row * from->tables[i].columns],
			       from->tables[i].columns * sizeof(uint64_t));
		to->tables[i].folded = from->tables[i].folded;
	}
}

int digest_add(struct digest *digest, struct digest_data *data, const char *source)
{
	struct digest_hash hash;
	unsigned int level = 0;

	do
		digest_data_reduce(data, &digest->schema, level);
	while (size_of(digest, data) > DIGEST_RANK_BYTES && level++ < DIGEST_LEVELS);
	hash = digest_data_hash(data, &digest->schema, &digest->texts);
	digest_data_clear(&digest->work, &digest->schema);
	copy_data(&digest->work, data);
	return add_work(digest, &hash, source);
}

static uint32_t *map_texts(struct digest *into, const struct digest_texts *texts)
{
	uint32_t *map = xcalloc(texts->n + 1, sizeof(*map)), i;

	for (i = 0; i < texts->n; i++)
		map[i] = digest_texts_add(&into->texts, digest_texts_at(texts, i));
	return map;
}

/* Their rows and columns are packed as the schema was. */
int digest_join(struct digest *into, const struct digest_schema *schema, const char *name)
{
	struct digest_schema old = into->schema;
	const char *why;
	int err = digest_schema_join(&into->schema, schema, &into->arena, &why);

	if (err) {
		into->schema = old;
		warn("%s: no version of this format: %s", name, why);
		return err;
	}
	if (!memcmp(&old, &into->schema, sizeof(old)))
		return 0;
	for (struct digest_rank *rank = into->by_key; rank; rank = rank->hh.next) {
		struct digest_cursor cursor = {rank->bytes, rank->bytes, rank->bytes + rank->n,
					       NULL, NULL};

		digest_data_unpack(&cursor, &into->other, &into->schema, &old, NULL, UINT32_MAX);
		digest_data_reduce(&into->other, &into->schema, into->level);
		repack(into, rank, &into->other, NULL);
	}
	return 0;
}

int digest_merge(struct digest *into, const struct digest *from)
{
	uint32_t *map;
	int err, first = 0;

	err = digest_join(into, &from->schema, from->n_sources ? from->sources[0] : "a digest");
	if (err)
		return err;
	digest_raise(into, from->level);
	map = map_texts(into, &from->texts);
	for (struct digest_rank *rank = from->by_key; rank; rank = rank->hh.next) {
		struct digest_cursor cursor = {rank->bytes, rank->bytes, rank->bytes + rank->n,
					       NULL, NULL};

		err = digest_take(into, &from->schema, map, from->texts.n, &rank->hash, &cursor,
				  from->sources[rank->source]);
		first = first ?: err;
	}
	free(map);
	return first;
}

static int by_key(const void *a, const void *b)
{
	const struct digest_rank *x = *(const struct digest_rank *const *)a;
	const struct digest_rank *y = *(const struct digest_rank *const *)b;

	return strcmp(x->key, y->key);
}

struct digest_rank **digest_ranks(const struct digest *digest, size_t *n)
{
	struct digest_rank **all = xcalloc(digest->n_ranks + 1, sizeof(struct digest_rank *));

	*n = 0;
	for (struct digest_rank *rank = digest->by_key; rank; rank = rank->hh.next)
		all[(*n)++] = rank;
	qsort(all, *n, sizeof(struct digest_rank *), by_key);
	return all;
}
