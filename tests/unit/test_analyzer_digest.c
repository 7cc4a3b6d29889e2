/*
 * tests/unit/test_analyzer_digest.c: digests that are made smaller; what is equal counts once, what differs is refused, and why; damaged
 * bytes and other versions are seen; texts; dumps. (Merges in any order: test_analyzer_digest_trees.c.)
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include "digest_made.h"
#include "digest_scene.h"
#include "job/job.h"
#include "scratch.h"

/* ---- smaller --------------------------------------------------------------------------------- */

/* To a level at once or by way of others: the same rows. */
static void test_levels(void **state)
{
	struct digest *digest = make(1, 5, 400);
	struct digest_data a, b;
	size_t n;
	struct digest_rank **ranks = digest_ranks(digest, &n);
	unsigned int level, way;
	struct digest_bytes x = {0}, y = {0};

	(void)state;
	for (level = 0; level < 12; level++) {
		digest_rank_data(digest, ranks[0], &a);
		digest_rank_data(digest, ranks[0], &b);
		digest_data_reduce(&a, &digest->schema, level);
		for (way = 0; way <= level; way += 1 + (unsigned int)chance(3))
			digest_data_reduce(&b, &digest->schema, way);
		digest_data_reduce(&b, &digest->schema, level);
		x.n = y.n = 0;
		digest_data_pack(&x, &a, &digest->schema, NULL);
		digest_data_pack(&y, &b, &digest->schema, NULL);
		assert_int_equal(x.n, y.n);
		assert_memory_equal(x.at, y.at, x.n);
		digest_data_release(&a);
		digest_data_release(&b);
	}
	free(x.at);
	free(y.at);
	free(ranks);
	digest_free(digest);
}

/* Sums are the same at all levels. */
static uint64_t sum_of(const struct digest *digest, unsigned int level)
{
	size_t n;
	struct digest_rank **ranks = digest_ranks(digest, &n);
	struct digest_data data;
	uint64_t sum = 0;
	uint32_t i;

	digest_rank_data(digest, ranks[0], &data);
	digest_data_reduce(&data, &digest->schema, level);
	for (i = 0; i < data.tables[D_FUNC].n; i++)
		sum = add_capped(sum, digest_cell(&data, D_FUNC, i, D_FUNC_total_ns));
	digest_data_release(&data);
	free(ranks);
	return sum;
}

static void test_sums(void **state)
{
	struct digest *digest = make(1, 8, 90);
	uint64_t sum = sum_of(digest, 0);

	(void)state;
	assert_true(sum > 0);
	assert_int_equal(sum_of(digest, 3), sum);
	assert_int_equal(sum_of(digest, 11), sum);
	digest_free(digest);
}

static void add_function(struct job *job, uint32_t rank, uint64_t function, uint64_t ns)
{
	struct digest_data data;
	unsigned int half;
	uint64_t *row;

	digest_data_init(&data, &job->digest->schema);
	for (half = 0; half < 2; half++) {
		row = digest_data_add(&data, D_FUNC);
		row[D_FUNC_function] = function;
		row[D_FUNC_total_ns] = ns / 2;
	}
	job_sum_add(job, &data, rank);
	digest_data_release(&data);
}

/* Which rank has most of a function, and how many have it: the first, the last, one between; with rows of others in between. */
static void test_job_sums(void **state)
{
	struct digest *digest = digest_new();
	struct job job = {.digest = digest};
	struct job_sum **sums;
	size_t n;

	(void)state;
	add_function(&job, 0, 5, 64);
	add_function(&job, 0, 6, 9);
	add_function(&job, 1, 5, 48);
	add_function(&job, 1, 6, 4096);
	add_function(&job, 2, 5, 32);
	add_function(&job, 3, 6, 2048);
	sums = job_sums(&job, JOB_FUNCTIONS, &n);
	assert_int_equal(n, 2);
	assert_int_equal(sums[0]->cells[D_FUNC_function], 6);
	assert_int_equal(sums[0]->ranks, 3);
	assert_int_equal(sums[0]->most_rank, 1);
	assert_int_equal(sums[1]->ranks, 3);
	assert_int_equal(sums[1]->most_rank, 0);
	assert_int_equal(sums[1]->most, 64);
	assert_int_equal(sums[1]->cells[D_FUNC_total_ns], 64 + 48 + 32);
	free(sums);
	job_sums_release(&job);
	digest_free(digest);
}

/* ---- equal and not --------------------------------------------------------------------------- */

static void test_equal_and_not(void **state)
{
	struct file a = written(make(3, 1, 40)), b = written(make(3, 2, 40)), once, twice;
	struct digest *digest = read_back(&a);

	(void)state;
	assert_int_equal(digest_read(digest, "again", a.bytes, a.n), 0);
	assert_int_equal(digest->n_ranks, 1);
	twice = written(digest);
	once = written(read_back(&a));
	assert_same(&once, &twice);
	digest = read_back(&a);
	assert_int_equal(digest_read(digest, "other", b.bytes, b.n), -EEXIST);
	digest_free(digest);
	free(a.bytes);
	free(b.bytes);
	free(once.bytes);
	free(twice.bytes);
}

/* ---- parts of a recording -------------------------------------------------------------------- */

struct range {
	uint64_t first, last; /* 0: it has no parts */
};

/* The digest of rank 3 that has these parts, two ranges at most. */
static struct file parts(const char *recording, struct range a, struct range b)
{
	const struct range ranges[] = {a, b};
	struct digest *digest = digest_new();
	struct digest_data data;
	size_t i;

	digest_data_init(&data, &digest->schema);
	digest_data_add(&data, D_RANK)[D_RANK_rank_1] = 4;
	digest_data_add(&data, D_FUNC)[D_FUNC_count] = a.first * 100 + b.last;
	for (i = 0; i < 2 && ranges[i].first; i++) {
		uint64_t *row = digest_data_add(&data, D_PART);

		row[D_PART_recording] = digest_texts_add(&digest->texts, recording);
		row[D_PART_first] = ranges[i].first;
		row[D_PART_last] = ranges[i].last;
	}
	assert_int_equal(digest_add(digest, &data, "made"), 0);
	digest_data_release(&data);
	return written(digest);
}

static const struct range none;

/* In whatever order and tree. */
static void test_parts(void **state)
{
	struct file files[] = {parts("a", (struct range){1, 1}, (struct range){4, 4}),
			       parts("a", (struct range){2, 3}, none),
			       parts("a", (struct range){5, 9}, none), written(make(1, 1, 20)),
			       written(make(2, 1, 20))};
	size_t n = ARRAY_SIZE(files), trees;
	struct file first = written(merge_some(files, n)), other;

	(void)state;
	for (trees = 0; trees < 30; trees++) {
		state_of_chance = trees;
		shuffle(files, n);
		other = written(merge_some(files, n));
		assert_same(&first, &other);
		free(other.bytes);
	}
	free(first.bytes);
	for (trees = 0; trees < n; trees++)
		free(files[trees].bytes);
}

static void test_parts_that_overlap(void **state)
{
	struct file others[] = {
		parts("a", (struct range){1, 2}, none), /* beside 2-3, 6 */
		parts("a", (struct range){1, 1}, (struct range){6, 7}),
		parts("a", (struct range){2, 3}, (struct range){7, 7}),
		parts("a", (struct range){1, 9}, none),
		parts("b", (struct range){1, 1}, none),
		parts("", none, none),
	};
	struct file file = parts("a", (struct range){2, 3}, (struct range){6, 6});
	struct file beside = parts("a", (struct range){4, 5}, (struct range){7, 9});
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		struct digest *digest = read_back(&file), *back = read_back(&others[i]);

		assert_int_equal(digest_read(digest, "beside", beside.bytes, beside.n), 0);
		assert_int_equal(digest_read(digest, "again", file.bytes, file.n), 0);
		assert_int_equal(digest->n_ranks, 2);
		assert_int_equal(digest_read(digest, "other", others[i].bytes, others[i].n),
				 -EEXIST);
		assert_int_equal(digest_read(back, "file", file.bytes, file.n), -EEXIST);
		digest_free(digest);
		digest_free(back);
		free(others[i].bytes);
	}
	free(file.bytes);
	free(beside.bytes);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void put_sum(struct file *file)
{
	uint64_t sum =
		digest_checksum(file->bytes + DIGEST_HEAD_BYTES, file->n - DIGEST_HEAD_BYTES);
	int i;

	for (i = 0; i < 8; i++)
		file->bytes[32 + i] = (uint8_t)(sum >> 8 * i);
}

/* Nothing of a torn or damaged one is taken. */
static void test_damage(void **state)
{
	struct file file = written(make(3, 1, 20));
	struct digest *digest = digest_new();
	size_t i;

	(void)state;
	for (i = 0; i < file.n; i += 1 + i / 40)
		assert_int_equal(digest_read(digest, "torn", file.bytes, i), -EBADMSG);
	for (i = 0; i < file.n; i += 1 + i / 20) {
		file.bytes[i] ^= 0x10;
		assert_true(digest_read(digest, "damaged", file.bytes, file.n) < 0 ||
			    (i >= 12 && i < 16)); /* the minor version */
		file.bytes[i] ^= 0x10;
	}
	file.bytes[8] = DIGEST_MAJOR + 1;
	assert_int_equal(digest_read(digest, "later", file.bytes, file.n), -EPROTO);
	free(file.bytes);
	digest_free(digest);
}

/* With a checksum that fits: the reader distrusts what is behind it. What it takes it can write again. */
static void test_distrust(void **state)
{
	struct file file = written(make(3, 1, 20)), again;
	unsigned int i, times;

	(void)state;
	state_of_chance = 12345;
	for (i = 0; i < 3000; i++) {
		struct file copy = {malloc(file.n), file.n};
		struct digest *digest = digest_new();

		memcpy(copy.bytes, file.bytes, file.n);
		for (times = 1 + (unsigned int)chance(4); times > 0; times--)
			copy.bytes[DIGEST_HEAD_BYTES + chance(file.n - DIGEST_HEAD_BYTES)] =
				(uint8_t)chance(256);
		put_sum(&copy);
		digest_read(digest, "strange", copy.bytes, copy.n);
		again = written(digest);
		free(again.bytes);
		free(copy.bytes);
	}
	free(file.bytes);
}

/* ---- versions -------------------------------------------------------------------------------- */

/* One with a column and a table more than this version has: both are kept, whichever comes first. */
static struct digest *make_later(uint64_t rank)
{
	struct digest *digest = make(rank, 1, 20);
	struct digest_schema later = digest->schema;
	struct digest *with = digest_new();
	struct digest_table_info *table = &later.tables[D_LOSS];

	table->columns[table->n_columns] = table->columns[D_LOSS_count];
	strcpy(table->columns[table->n_columns++].name, "later");
	later.tables[later.n_tables] = later.tables[D_LOSS];
	strcpy(later.tables[later.n_tables++].name, "later");
	assert_int_equal(digest_join(with, &later, "later"), 0);
	assert_int_equal(digest_merge(with, digest), 0);
	digest_free(digest);
	return with;
}

static void test_versions(void **state)
{
	struct file later = written(make_later(1)), now = written(make(2, 1, 20)), a, b;
	struct digest *digest = read_back(&later);
	struct digest_schema wrong;

	(void)state;
	assert_int_equal(digest->schema.n_tables, DIGEST_TABLES_KNOWN + 1);
	assert_int_equal(digest->schema.tables[D_LOSS].n_columns, D_LOSS_COLUMNS + 1);
	assert_int_equal(digest_read(digest, "now", now.bytes, now.n), 0);
	a = written(digest);
	digest = read_back(&now);
	assert_int_equal(digest_read(digest, "later", later.bytes, later.n), 0);
	b = written(digest);
	assert_same(&a, &b);
	digest = read_back(&now);
	wrong = digest->schema;
	strcpy(wrong.tables[2].columns[1].name, "other");
	assert_int_equal(digest_join(digest, &wrong, "wrong"), -EPROTO);
	digest_free(digest);
	free(later.bytes);
	free(now.bytes);
	free(a.bytes);
	free(b.bytes);
}

/* However much there is of a rank, its digest is bounded. */
static void test_bounded(void **state)
{
	struct digest *digest = digest_new();
	struct digest_data data;
	uint64_t *row;
	uint32_t i, j, k;
	char text[500];
	struct file file;

	(void)state;
	state_of_chance = 9;
	digest_data_init(&data, &digest->schema);
	for (i = 0; i < digest->schema.n_tables; i++)
		for (j = 0; j < (i ? 5000 : 1); j++) {
			row = digest_data_add(&data, i);
			for (k = 0; k < digest->schema.tables[i].n_columns; k++) {
				memset(text, 'a' + (int)chance(26), sizeof(text));
				snprintf(text, sizeof(text), "%u %u %u", i, j, k);
				text[strlen(text)] = 'x';
				text[sizeof(text) - 1] = '\0';
				row[k] = digest->schema.tables[i].columns[k].type == DIGEST_TEXT
						 ? digest_texts_add(&digest->texts, text)
						 : UINT64_MAX - chance(1000);
			}
		}
	assert_int_equal(digest_add(digest, &data, "large"), 0);
	digest_data_release(&data);
	file = written(digest);
	assert_in_range(file.n, 1000, 1 << 20);
	free(file.bytes);
}

/* ---- what is said of them ---------------------------------------------------------------------- */

/* The last complaint. */
static char complaint[1024];
static unsigned int complaints;

static void take_complaint(void *data, char *text)
{
	(void)data;
	snprintf(complaint, sizeof(complaint), "%s", text);
	complaints++;
	free(text);
}

/* One more digest of a rank that is there, and differs. */
static void refused(const char *first, const char *first_parts, const char *second,
		    const char *second_parts, const char *expected)
{
	struct scene s = {0};

	rank(&s, "rank_1=4 host=a boot=b %s", first);
	for (; *first_parts; first_parts += 2)
		row(&s, "parts", "recording=r first=%c last=%c", first_parts[0], first_parts[1]);
	rank(&s, "rank_1=4 host=a %s", second);
	for (; *second_parts; second_parts += 2)
		row(&s, "parts", "recording=%c first=%c last=%c", *second_parts == '9' ? 'q' : 'r',
		    second_parts[0], second_parts[1]);
	complaints = 0;
	warn_divert(take_complaint, NULL);
	assert_int_equal(digest_add(s.digest, &s.data, "second"), -EEXIST);
	warn_divert(NULL, NULL);
	assert_int_equal(complaints, 1);
	if (!strstr(complaint, expected))
		fail_msg("'%s', not '%s'", complaint, expected);
	digest_data_release(&s.data);
	digest_free(s.digest);
}

#define TWO_RUNS "they are of two runs of the program: each is a job of its own"

/* Why two digests of one rank differ. */
static void test_why_refused(void **state)
{
	(void)state;
	refused("pid=5", "", "boot=b pid=6", "",
		"rank 3 is in told and in second, and differs: which one is right is unknown; " TWO_RUNS);
	refused("pid=5", "", "boot=c pid=5", "", TWO_RUNS);
	refused("pid=5", "", "pid=5 boot=b host=h", "", TWO_RUNS);
	refused("pid=5", "11", "boot=b pid=5", "99", TWO_RUNS);
	refused("job=x pid=5", "2366", "job=x boot=b pid=5", "37",
		"rank 3 of job x is in told and in second, and differs: which one is right is unknown; "
		"they overlap: of its recording the first one has parts 2-3, 6, and the second one "
		"parts 3-7, and what is in both would count twice. Digest each part once");
	refused("pid=5", "22", "boot=b pid=5", "",
		"the first one has part 2, and the second one all of it");
	refused("pid=5", "", "boot=b pid=5", "13",
		"the first one has all of it, and the second one parts 1-3");
	refused("pid=5 begin_ns=1s span_ns=2s", "", "boot=b pid=5 begin_ns=1s span_ns=3s", "",
		"one may have been made while the program was running");
	refused("pid=5 begin_ns=1s span_ns=2s", "", "boot=b pid=5 begin_ns=2s span_ns=2s", "",
		"one may have been made while the program was running");
	refused("pid=5 calls=7", "", "boot=b pid=5 calls=8", "",
		"one may lack files, be redacted, or be made by another version of cudaspy");
}

static void dumps(struct scene *s, bool json, const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	scene_add(s);
	assert_int_equal(digest_dump(s->digest, json, out), 0);
	fclose(out);
	if (!strstr(text, expected))
		fail_msg("'%s' is not in\n%s", expected, text);
	free(text);
}

/* All that there is of each rank; of tables that had too many rows, one for the others. */
static void test_dump(void **state)
{
	struct scene s = {0};

	(void)state;
	rank(&s, "job=x rank_1=1 host='a\xff\tb' calls=7");
	for (unsigned int i = 0; i < 98; i++)
		row(&s, "functions", "function=f%u total_ns=%u longest_ns=%u", i, 1000 - i, i);
	dumps(&s, false,
	      "# digest 1.3, level 0, 1 rank\n# rank 0 of job x\nrank job=\"x\" rank_1=1 host=\"a");
	rank(&s, "place=p program=app pid=77 host=node");
	dumps(&s, false,
	      "# digest 1.3, level 0, 2 ranks\n# app.77 on node\nrank place=\"p\" host=\"node\" program=\"app\" pid=77\n# rank 0 of job x\n");
	dumps(&s, false,
	      "functions function=\"f95\" total_ns=905 longest_ns=95\n"
	      "functions rest_of=2 total_ns=1807 longest_ns=97\n");
	dumps(&s, true,
	      "{\"schema\": \"cudaspy-digest-1\", \"level\": 0, \"ranks\": [\n{\"name\":\"app.77 on node\",\"rank\":[{\"job\":\"\",\"rank_1\":0,");
	dumps(&s, true, "\"gpus\":[],\"functions\":[],");
	dumps(&s, true, "},\n{\"name\":\"rank 0 of job x\",");
	dumps(&s, true,
	      "{\"rest_of\":2,\"function\":\"\",\"nested\":0,\"count\":0,\"failed\":0,\"total_ns\":1807,\"longest_ns\":97,");
	scene_end(&s);
}

/* ---- texts ------------------------------------------------------------------------------------- */

/* Texts of rows that are gone are gone, too, where they are many; those of the others stay. */
static void test_texts_are_forgotten(void **state)
{
	static const char long_text[] = "%s-%03u-%0380u";
	struct scene s = {0};
	size_t n;
	struct digest_rank **ranks;

	(void)state;
	for (unsigned int k = 0; k < 300; k++) {
		rank(&s, "rank_1=%u host=a", k + 1);
		for (unsigned int i = 0; i < 100; i++) {
			char text[500];

			snprintf(text, sizeof(text), long_text, i < 64 ? "stays" : "goes", k, i);
			row(&s, "sites", "module=%s weight_ns=%u", text, 1000 - i);
		}
	}
	scene_add(&s);
	assert_int_equal(s.digest->level, 1);
	assert_in_range(s.digest->texts.bytes, 300 * 64 * 390, 300 * 100 * 390 - 1000000);
	ranks = digest_ranks(s.digest, &n);
	for (size_t k = 0; k < n; k++) {
		struct digest_data data;

		digest_rank_data(s.digest, ranks[k], &data);
		assert_int_equal(data.tables[D_SITE].n, 65);
		for (unsigned int i = 0; i < 64; i++) {
			char text[500];

			snprintf(text, sizeof(text), long_text, "stays", (unsigned int)k, i);
			assert_string_equal(text, digest_texts_at(&s.digest->texts,
								  digest_cell(&data, D_SITE, i,
									      D_SITE_module)));
		}
		digest_data_release(&data);
	}
	free(ranks);
	scene_end(&s);
}

/* A text is cut where it is too long, not in the middle of a character. */
static void test_long_texts(void **state)
{
	struct digest_texts texts;
	char text[DIGEST_TEXT_BYTES + 3];
	uint32_t number;

	(void)state;
	digest_texts_init(&texts);
	memset(text, 'a', sizeof(text));
	number = digest_texts_add_n(&texts, text, DIGEST_TEXT_BYTES);
	assert_int_equal(strlen(digest_texts_at(&texts, number)), DIGEST_TEXT_BYTES);
	assert_int_equal(digest_texts_add_n(&texts, text, DIGEST_TEXT_BYTES + 1), number);
	memcpy(&text[DIGEST_TEXT_BYTES - 2], "\xe2\x82\xac", 3);
	number = digest_texts_add_n(&texts, text, sizeof(text));
	assert_int_equal(strlen(digest_texts_at(&texts, number)), DIGEST_TEXT_BYTES - 2);
	memset(text, 'a', sizeof(text));
	memcpy(&text[DIGEST_TEXT_BYTES - 3], "\xe2\x82\xac", 3);
	number = digest_texts_add_n(&texts, text, sizeof(text));
	assert_int_equal(strlen(digest_texts_at(&texts, number)), DIGEST_TEXT_BYTES);
	assert_int_equal(digest_texts_add(&texts, NULL), 0);
	assert_string_equal(digest_texts_at(&texts, texts.n), "");
	digest_texts_release(&texts);
}

/* ---- bytes, one by one ------------------------------------------------------------------------- */

static void test_numbers(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		uint64_t number;
		bool bad;
	} cases[] = {
		{"\x00", 1, 0, false},
		{"\x7f", 1, 127, false},
		{"\x80\x01", 2, 128, false},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, UINT64_MAX, false},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, 0, true}, /* 65 bits */
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", 11, 0, true},
		{"\x80", 1, 0, true},
		{"", 0, 0, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint8_t *at = (const uint8_t *)cases[i].bytes;
		struct digest_cursor cursor = {at, at, at + cases[i].n, NULL, NULL};
		struct digest_bytes packed = {0};

		assert_int_equal(digest_get_number(&cursor), cases[i].number);
		assert_int_equal(cursor.bad != NULL, cases[i].bad);
		assert_ptr_equal(cursor.at, cursor.end);
		digest_put_number(&packed, cases[i].number);
		if (!cases[i].bad) {
			assert_int_equal(packed.n, cases[i].n);
			assert_memory_equal(packed.at, at, packed.n);
		}
		free(packed.at);
	}
}

/* Tables of a rank come in their order, each once, with as many rows as there are bytes for. */
static void test_packed_tables(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *bad; /* NULL: nothing */
	} cases[] = {
		/* table, rows, folded, cells: two columns of losses */
		{"\x0c\x01\x00\x00\x05", 5, NULL},
		{"\x0c\x02\x01\x00\x05\x00\x06", 7, NULL},
		{"\x0c\x01\x00\x00\x05\x0c\x01\x00\x00\x05", 10,
		 "a table has a number that it cannot have here"},
		{"\x0f\x01\x00\x00\x05", 5, "a table has a number that it cannot have here"},
		{"\x0c\x00\x00\x00\x05", 5, "a table has more rows than there is room for"},
		{"\x0c\x02\x00\x00\x05\x00", 6, "a table has more rows than there is room for"},
		{"\x0c\x01\x00\x02\x05", 5, "a text has a number that there is not"},
		{"\x0c\x01\x00\x01\x05", 5, NULL},
	};
	struct digest *digest = digest_new();
	struct digest_data data;

	(void)state;
	assert_int_equal(D_LOSS, 12);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint8_t *at = (const uint8_t *)cases[i].bytes;
		struct digest_cursor cursor = {at, at, at + cases[i].n, NULL, NULL};

		digest_data_init(&data, &digest->schema);
		assert_int_equal(digest_data_unpack(&cursor, &data, &digest->schema,
						    &digest->schema, NULL, 2),
				 cases[i].bad ? -EBADMSG : 0);
		if (cases[i].bad) {
			assert_string_equal(cursor.bad, cases[i].bad);
		} else {
			assert_int_equal(data.tables[D_LOSS].n, cases[i].bytes[1]);
			assert_int_equal(data.tables[D_LOSS].folded, cases[i].bytes[2]);
			assert_int_equal(digest_cell(&data, D_LOSS, 0, D_LOSS_count), 5);
		}
		digest_data_release(&data);
	}
	digest_free(digest);
}

/* A section more, or one that is no more. */
static void test_sections(void **state)
{
	struct file file = written(make(3, 1, 5));
	struct digest *digest = digest_new();
	uint8_t *bytes = malloc(file.n + 5);
	struct file more = {bytes, file.n + 5};

	(void)state;
	warn_divert(take_complaint, NULL);
	memcpy(bytes, file.bytes, file.n);
	memcpy(bytes + file.n, "\x09\x03new", 5);
	for (int i = 0; i < 8; i++)
		bytes[24 + i] = (uint8_t)((more.n - DIGEST_HEAD_BYTES) >> 8 * i);
	put_sum(&more);
	assert_int_equal(digest_read(digest, "more", more.bytes, more.n), 0);
	assert_string_equal(complaint, "more: 1 parts of it are of a later version, and left out");
	assert_int_equal(digest->n_ranks, 1);
	/* The first one is the level, of one byte. */
	assert_memory_equal(&file.bytes[DIGEST_HEAD_BYTES], "\x01\x01\x00", 3);
	file.bytes[DIGEST_HEAD_BYTES + 2] = DIGEST_LEVELS + 1;
	put_sum(&file);
	assert_int_equal(digest_read(digest, "deep", file.bytes, file.n), -EBADMSG);
	assert_string_equal(complaint, "deep: damaged at byte 43: no such level");
	file.bytes[DIGEST_HEAD_BYTES + 2] = DIGEST_LEVELS;
	put_sum(&file);
	assert_int_equal(digest_read(digest, "levels", file.bytes, file.n), 0);
	assert_int_equal(digest->level, DIGEST_LEVELS);
	file.bytes[DIGEST_HEAD_BYTES] = 9;
	put_sum(&file);
	assert_int_equal(digest_read(digest, "less", file.bytes, file.n), -EBADMSG);
	assert_string_equal(complaint, "less: damaged: section 1 is missing");
	warn_divert(NULL, NULL);
	free(bytes);
	free(file.bytes);
	digest_free(digest);
}

static void test_files(void **state)
{
	char *dir = scratch_make(), path[300];
	struct file file = written(make(3, 1, 5));
	struct digest *digest = digest_new();

	(void)state;
	warn_divert(take_complaint, NULL);
	snprintf(path, sizeof(path), "%s/a", dir);
	assert_int_equal(digest_read_file(digest, path), -ENOENT);
	assert_non_null(strstr(complaint, "/a: there is no such file"));
	complaints = 0;
	scratch_write(path, file.bytes, file.n);
	assert_int_equal(digest_read_file(digest, path), 0);
	assert_int_equal(digest->n_ranks, 1);
	assert_int_equal(complaints, 0);
	scratch_write(path, file.bytes, file.n - 1);
	assert_int_equal(digest_read_file(digest, path), -EBADMSG);
	assert_int_equal(truncate(path, (off_t)DIGEST_FILE_MOST + 1), 0);
	assert_int_equal(digest_read_file(digest, path), -EFBIG);
	assert_non_null(strstr(complaint, "/a: too large for a digest"));
	warn_divert(NULL, NULL);
	free(file.bytes);
	digest_free(digest);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_job_sums),
		cmocka_unit_test(test_equal_and_not),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_parts_that_overlap),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_distrust),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_why_refused),
		cmocka_unit_test(test_dump),
		cmocka_unit_test(test_texts_are_forgotten),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_packed_tables),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
