/*
 * analyzer/digest/format.c: a digest as bytes: docs/DIGEST_FORMAT.md. Reading distrusts all of them. Called by merge and
 * report for each file, and by cudaspy-mpi for what other ranks send.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "digest.h"

enum section { SECTION_LEVEL = 1, SECTION_SCHEMA, SECTION_TEXTS, SECTION_RANKS, SECTIONS };

/* The head, little endian: magic, major, minor, bytes of the head, bytes of the body, checksum of the body. */
static void put_le(uint8_t *at, uint64_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_le(const uint8_t *at, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

uint64_t digest_checksum(const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint64_t sum = n;

	for (; n >= 8; at += 8, n -= 8)
		sum = hash_mix((sum ^ sum >> 31) ^ get_le(at, 8));
	return hash_mix((sum ^ sum >> 31) ^ get_le(at, n));
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_section(struct digest_bytes *to, enum section section, struct digest_bytes *body)
{
	digest_put_number(to, section);
	digest_put_number(to, body->n);
	digest_put(to, body->at, body->n);
	free(body->at);
	*body = (struct digest_bytes){0};
}

static void put_name(struct digest_bytes *to, const char *name)
{
	digest_put_number(to, strlen(name));
	digest_put(to, name, strlen(name));
}

static void put_schema(struct digest_bytes *to, const struct digest_schema *schema)
{
	digest_put_number(to, schema->n_tables);
	for (uint32_t i = 0; i < schema->n_tables; i++) {
		const struct digest_table_info *table = &schema->tables[i];

		put_name(to, table->name);
		digest_put_number(to, table->rule);
		digest_put_number(to, table->by);
		digest_put_number(to, table->most);
		digest_put_number(to, table->least);
		digest_put_number(to, table->n_columns);
		for (uint32_t j = 0; j < table->n_columns; j++) {
			put_name(to, table->columns[j].name);
			digest_put_number(to, table->columns[j].type);
			digest_put_number(to, table->columns[j].fold);
		}
	}
}

/* A text, and which number it has here and in the file. */
struct ordered {
	const char *text;
	uint32_t number;
};

static int by_text(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;

	return strcmp(x->text, y->text);
}

/* Those that are in use, in order; map: from the digest's numbers. The empty one is 0 in both. */
static void put_texts(struct digest_bytes *to, const struct digest *digest, uint32_t *map)
{
	struct ordered *all = xcalloc(digest->texts.n, sizeof(*all));
	size_t n = 0, i;

	for (i = 1; i < digest->texts.n; i++)
		if (map[i])
			all[n++] =
				(struct ordered){digest_texts_at(&digest->texts, i), (uint32_t)i};
	qsort(all, n, sizeof(*all), by_text);
	digest_put_number(to, n);
	for (i = 0; i < n; i++) {
		put_name(to, all[i].text);
		map[all[i].number] = (uint32_t)i + 1;
	}
	map[0] = 0;
	free(all);
}

static void mark_used(struct digest *digest, uint32_t *map)
{
	struct digest_data data;

	for (struct digest_rank *rank = digest->by_key; rank; rank = rank->hh.next) {
		digest_rank_data(digest, rank, &data);
		for (uint32_t i = 0; i < data.n_tables; i++)
			for (uint32_t row = 0; row < data.tables[i].n; row++)
				for (uint32_t column = 0; column < data.tables[i].columns; column++)
					if (digest->schema.tables[i].columns[column].type ==
					    DIGEST_TEXT)
						map[digest_cell(&data, i, row, column)] = 1;
		digest_data_release(&data);
	}
}

static void put_ranks(struct digest_bytes *to, const struct digest *digest, const uint32_t *map)
{
	struct digest_bytes packed = {0};
	struct digest_rank **ranks;
	struct digest_data data;
	uint8_t hash[16];
	size_t n, i;

	ranks = digest_ranks(digest, &n);
	digest_put_number(to, n);
	for (i = 0; i < n; i++) {
		digest_rank_data(digest, ranks[i], &data);
		packed.n = 0;
		digest_data_pack(&packed, &data, &digest->schema, map);
		digest_data_release(&data);
		put_le(hash, ranks[i]->hash.a, 8);
		put_le(hash + 8, ranks[i]->hash.b, 8);
		digest_put(to, hash, sizeof(hash));
		digest_put_number(to, packed.n);
		digest_put(to, packed.at, packed.n);
	}
	free(packed.at);
	free(ranks);
}

static void put_head(struct digest_bytes *to)
{
	memcpy(to->at, DIGEST_MAGIC, 8);
	put_le(to->at + 8, DIGEST_MAJOR, 4);
	put_le(to->at + 12, DIGEST_MINOR, 4);
	put_le(to->at + 16, DIGEST_HEAD_BYTES, 8);
	put_le(to->at + 24, to->n - DIGEST_HEAD_BYTES, 8);
	put_le(to->at + 32, digest_checksum(to->at + DIGEST_HEAD_BYTES, to->n - DIGEST_HEAD_BYTES),
	       8);
}

void digest_write(struct digest *digest, uint8_t **bytes, size_t *n)
{
	uint32_t *map = xcalloc(digest->texts.n, sizeof(*map));
	static const uint8_t head[DIGEST_HEAD_BYTES];
	struct digest_bytes to = {0}, body = {0};

	digest_put(&to, head, sizeof(head));
	digest_put_number(&body, digest->level);
	put_section(&to, SECTION_LEVEL, &body);
	put_schema(&body, &digest->schema);
	put_section(&to, SECTION_SCHEMA, &body);
	mark_used(digest, map);
	put_texts(&body, digest, map);
	put_section(&to, SECTION_TEXTS, &body);
	put_ranks(&body, digest, map);
	put_section(&to, SECTION_RANKS, &body);
	put_head(&to);
	free(map);
	*bytes = to.at;
	*n = to.n;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
	const char *name;
	const uint8_t *begin;
	struct digest_schema schema;
	uint64_t level;
	uint32_t *map; /* from the file's texts to the digest's; owned */
	uint32_t n_map;
	struct digest_cursor sections[SECTIONS]; /* at: NULL where there is none */
};

/* Offsets in the file are of people's use. */
static int complain(const struct reading *r, const struct digest_cursor *cursor)
{
	warn("%s: damaged at byte %zu: %s", r->name, (size_t)(cursor->bad_at - r->begin),
	     cursor->bad);
	return -EBADMSG;
}

static int check_head(const struct reading *r, const uint8_t *at, size_t n, size_t *head_bytes)
{
	uint64_t major, body;

	if (memcmp(at, DIGEST_MAGIC, n < 8 ? n : 8) != 0) {
		warn("%s: no digest of cudaspy's", r->name);
		return -EBADMSG;
	}
	if (n < DIGEST_HEAD_BYTES) {
		warn("%s: torn: it ends at byte %zu, in its head", r->name, n);
		return -EBADMSG;
	}
	major = get_le(at + 8, 4);
	if (major != DIGEST_MAJOR) {
		warn("%s: a digest of version %" PRIu64
		     ", and this cudaspy reads version %d: make it again, or use that cudaspy",
		     r->name, major, DIGEST_MAJOR);
		return -EPROTO;
	}
	*head_bytes = get_le(at + 16, 8);
	body = get_le(at + 24, 8);
	if (*head_bytes < DIGEST_HEAD_BYTES || *head_bytes > n || body > n - *head_bytes) {
		warn("%s: torn: it ends at byte %zu of %" PRIu64, r->name, n,
		     add_capped(*head_bytes, body));
		return -EBADMSG;
	}
	if (body != n - *head_bytes) {
		warn("%s: damaged: %zu bytes behind its end, at byte %" PRIu64, r->name,
		     (size_t)(n - *head_bytes - body), *head_bytes + body);
		return -EBADMSG;
	}
	if (digest_checksum(at + *head_bytes, body) != get_le(at + 32, 8)) {
		warn("%s: damaged: bytes %zu to %zu do not fit their checksum", r->name,
		     *head_bytes, n);
		return -EBADMSG;
	}
	return 0;
}

/* Sections that this version does not know are passed over. */
static int find_sections(struct reading *r, const uint8_t *at, size_t n)
{
	struct digest_cursor cursor = {at, at, at + n, NULL, NULL};
	unsigned int unknown = 0, i;

	while (cursor.at < cursor.end) {
		uint64_t section = digest_get_number(&cursor);
		uint64_t bytes = digest_get_number(&cursor);
		const uint8_t *body = digest_get(&cursor, bytes);

		if (cursor.bad)
			return complain(r, &cursor);
		if (section && section < SECTIONS)
			r->sections[section] =
				(struct digest_cursor){body, body, body + bytes, NULL, NULL};
		else
			unknown++;
	}
	for (i = 1; i < SECTIONS; i++)
		if (!r->sections[i].at) {
			warn("%s: damaged: section %u is missing", r->name, i);
			return -EBADMSG;
		}
	if (unknown)
		warn("%s: %u parts of it are of a later version, and left out", r->name, unknown);
	return 0;
}

static void get_name(struct digest_cursor *cursor, char name[DIGEST_NAME_BYTES])
{
	uint64_t n = digest_get_number(cursor), i;
	const uint8_t *at = digest_get(cursor, n);

	if (!at || !n || n >= DIGEST_NAME_BYTES) {
		digest_get_bad(cursor, "a name is too long, or empty");
		return;
	}
	for (i = 0; i < n; i++)
		if (!(at[i] == '_' || (at[i] >= 'a' && at[i] <= 'z') ||
		      (at[i] >= '0' && at[i] <= '9')))
			digest_get_bad(cursor, "a name has other letters than a to z");
	memcpy(name, at, n);
}

static uint64_t get_below(struct digest_cursor *cursor, uint64_t least, uint64_t end)
{
	uint64_t number = digest_get_number(cursor);

	if (number < least || number >= end) {
		digest_get_bad(cursor, "a number in the schema is out of its range");
		return least;
	}
	return number;
}

static void get_table(struct digest_cursor *cursor, struct digest_table_info *table)
{
	get_name(cursor, table->name);
	table->rule = (uint8_t)get_below(cursor, 0, DIGEST_RULES);
	table->by = (uint8_t)get_below(cursor, 0, DIGEST_COLUMNS_MOST);
	table->most = (uint32_t)get_below(cursor, 1, DIGEST_ROWS_MOST);
	table->least = (uint32_t)get_below(cursor, 1, DIGEST_ROWS_MOST);
	table->n_columns = (uint32_t)get_below(cursor, table->by + 1, DIGEST_COLUMNS_MOST + 1);
	for (uint32_t i = 0; i < table->n_columns && !cursor->bad; i++) {
		get_name(cursor, table->columns[i].name);
		table->columns[i].type = (uint8_t)get_below(cursor, 0, DIGEST_TYPES);
		table->columns[i].fold = (uint8_t)get_below(cursor, 0, DIGEST_FOLDS);
	}
}

static int get_schema(struct reading *r)
{
	struct digest_cursor *cursor = &r->sections[SECTION_SCHEMA];

	r->schema.n_tables = (uint32_t)get_below(cursor, 1, DIGEST_TABLES_MOST + 1);
	for (uint32_t i = 0; i < r->schema.n_tables && !cursor->bad; i++)
		get_table(cursor, &r->schema.tables[i]);
	return cursor->bad ? complain(r, cursor) : 0;
}

/* into NULL: are they sound? Else to its texts. */
static int get_texts(struct reading *r, struct digest *into)
{
	struct digest_cursor cursor = r->sections[SECTION_TEXTS];
	uint64_t n = digest_get_number(&cursor), i;

	if (n >= (uint64_t)(cursor.end - cursor.at) + 1)
		digest_get_bad(&cursor, "there are more texts than bytes");
	if (into && !cursor.bad)
		r->map = xcalloc(n + 1, sizeof(*r->map));
	for (i = 0; i < n && !cursor.bad; i++) {
		uint64_t bytes = digest_get_number(&cursor);
		const uint8_t *text = digest_get(&cursor, bytes);

		if (text && (bytes > DIGEST_TEXT_BYTES || memchr(text, 0, bytes)))
			digest_get_bad(&cursor, "a text is too long, or has a NUL");
		if (into && !cursor.bad)
			r->map[i + 1] = digest_texts_add_n(&into->texts, (const char *)text, bytes);
	}
	r->n_map = (uint32_t)n + 1;
	return cursor.bad ? complain(r, &cursor) : 0;
}

/* into NULL: are they sound? Else to it. */
static int get_ranks(struct reading *r, struct digest *into, struct digest_data *data)
{
	struct digest_cursor cursor = r->sections[SECTION_RANKS], rank;
	uint64_t n = digest_get_number(&cursor), i, bytes;
	int err = 0, first = 0;

	for (i = 0; i < n && !cursor.bad; i++) {
		const uint8_t *hash = digest_get(&cursor, 16), *packed;
		struct digest_hash of;

		bytes = digest_get_number(&cursor);
		packed = digest_get(&cursor, bytes);
		if (cursor.bad)
			break;
		of = (struct digest_hash){get_le(hash, 8), get_le(hash + 8, 8)};
		rank = (struct digest_cursor){packed, packed, packed + bytes, NULL, NULL};
		if (into)
			err = digest_take(into, &r->schema, r->map, r->n_map, &of, &rank, r->name);
		else
			err = digest_data_unpack(&rank, data, &r->schema, &r->schema, NULL,
						 r->n_map);
		if (rank.bad)
			return complain(r, &rank);
		if (!into && !data->tables[D_RANK].n)
			digest_get_bad(&cursor, "a rank without a name");
		first = first ?: err;
	}
	if (cursor.at < cursor.end)
		digest_get_bad(&cursor, "there is more than the ranks");
	return cursor.bad ? complain(r, &cursor) : first;
}

static int check_body(struct reading *r)
{
	struct digest_cursor *level = &r->sections[SECTION_LEVEL];
	struct digest_data data;
	int err;

	r->level = digest_get_number(level);
	if (r->level > DIGEST_LEVELS)
		digest_get_bad(level, "no such level");
	if (level->bad)
		return complain(r, level);
	err = get_schema(r) ?: get_texts(r, NULL);
	if (err)
		return err;
	digest_data_init(&data, &r->schema);
	err = get_ranks(r, NULL, &data);
	digest_data_release(&data);
	return err;
}

int digest_read(struct digest *into, const char *name, const void *bytes, size_t n)
{
	struct reading *r = xcalloc(1, sizeof(*r));
	size_t head_bytes = 0;
	int err;

	*r = (struct reading){.name = name, .begin = bytes};
	err = check_head(r, bytes, n, &head_bytes) ?:
	      find_sections(r, r->begin + head_bytes, n - head_bytes) ?: check_body(r) ?:
	      digest_join(into, &r->schema, name);
	if (!err) {
		digest_raise(into, (unsigned int)r->level);
		err = get_texts(r, into) ?: get_ranks(r, into, NULL);
	}
	free(r->map);
	free(r);
	return err;
}
