/*
 * tests/unit/digest_made.h: digests that are made by chance, as bytes, and merged by trees that are drawn by chance.
 */
#ifndef CUDASPY_TESTS_DIGEST_MADE_H
#define CUDASPY_TESTS_DIGEST_MADE_H

#include <stdlib.h>
#include "digest/digest.h"

/* ---- made by chance -------------------------------------------------------------------------- */

static uint64_t state_of_chance;

static inline uint64_t chance(uint64_t below)
{
	state_of_chance = state_of_chance * 6364136223846793005ull + 1442695040888963407ull;
	return below ? (state_of_chance >> 33) % below : 0;
}

/* Numbers of all lengths, and many equal ones. */
static inline uint64_t any_number(void)
{
	uint64_t number = chance(4) ? chance(8) : (chance(UINT32_MAX) << 31) + chance(UINT32_MAX);

	return number >> chance(40);
}

static inline uint64_t any_text(struct digest *digest, uint64_t of)
{
	char text[64];

	snprintf(text, sizeof(text), "text %llu %s", (unsigned long long)chance(of),
		 chance(3) ? "" : "\xc3\xa4\"<");
	return digest_texts_add(&digest->texts, text);
}

static inline void add_rows(struct digest *digest, struct digest_data *data, uint32_t table,
			    uint64_t n)
{
	const struct digest_table_info *info = &digest->schema.tables[table];
	uint32_t column;

	while (n-- > 0) {
		uint64_t *row = digest_data_add(data, table);

		for (column = 0; column < info->n_columns; column++)
			row[column] = info->columns[column].type == DIGEST_TEXT
					      ? any_text(digest, 50)
					      : any_number();
	}
}

/* The digest of one rank; the same one for the same number and seed. */
static inline struct digest *make(uint64_t rank, uint64_t seed, unsigned int rows)
{
	struct digest *digest = digest_new();
	struct digest_data data;
	uint64_t *row;
	uint32_t i;

	state_of_chance = rank * 1000003 + seed;
	digest_data_init(&data, &digest->schema);
	add_rows(digest, &data, D_RANK, 1);
	row = data.tables[D_RANK].cells;
	row[D_RANK_job] = digest_texts_add(&digest->texts, rank % 7 ? "job" : "another");
	row[D_RANK_rank_1] = rank + 1;
	row[D_RANK_restarts] = 0;
	row[D_RANK_place] = 0;
	for (i = 1; i < digest->schema.n_tables; i++)
		add_rows(digest, &data, i, chance(rows));
	assert_int_equal(digest_add(digest, &data, "made"), 0);
	digest_data_release(&data);
	return digest;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

struct file {
	uint8_t *bytes;
	size_t n;
};

static inline struct file written(struct digest *digest)
{
	struct file file;

	digest_write(digest, &file.bytes, &file.n);
	digest_free(digest);
	return file;
}

static inline struct digest *read_back(const struct file *file)
{
	struct digest *digest = digest_new();

	assert_int_equal(digest_read(digest, "file", file->bytes, file->n), 0);
	return digest;
}

static inline void assert_same(const struct file *a, const struct file *b)
{
	assert_int_equal(a->n, b->n);
	assert_memory_equal(a->bytes, b->bytes, a->n);
}

/* ---- trees ----------------------------------------------------------------------------------- */

static inline void shuffle(struct file *files, size_t n)
{
	size_t i;

	for (i = n; i > 1; i--) {
		size_t j = chance(i);
		struct file file = files[i - 1];

		files[i - 1] = files[j];
		files[j] = file;
	}
}

/* Merges files[0, n) by a tree drawn by chance, now and then by way of bytes, and some twice. */
static inline struct digest *merge_some(const struct file *files, size_t n)
{
	struct digest *a, *b;
	size_t cut, again;
	struct file file;

	if (n == 1)
		return read_back(files);
	cut = 1 + chance(n - 1);
	again = chance(4) ? 0 : chance(n - cut + 1);
	a = merge_some(files, cut + again);
	b = merge_some(files + cut, n - cut);
	if (chance(2)) {
		assert_int_equal(digest_merge(a, b), 0);
		digest_free(b);
	} else {
		file = written(b);
		assert_int_equal(digest_read(a, "part", file.bytes, file.n), 0);
		free(file.bytes);
	}
	return a;
}

#endif
