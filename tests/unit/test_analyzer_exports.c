/*
 * tests/unit/test_analyzer_exports.c: readable logs become traces, and what exports, digests, the report of a job and the HTML report's
 * timeline have of them is compared with what they had when a person last looked. So each number in them is known, whatever the machine.
 *
 * For tests/golden/NAME.log: NAME.chrome, NAME.folded, NAME.causes, NAME.sqlite, NAME.digest, NAME.job, NAME.jobtext, NAME.gates, NAME.filtered,
 * NAME.change, NAME.timeline and NAME.why; for mixed.log, which has all kinds of records, mixed.perfetto and mixed.csv, too. With
 * CUDASPY_BLESS=1 in the environment they are written instead (golden.h).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <glob.h>
#include <jansson.h>
#include <sqlite3.h>
#include <zlib.h>
#include "golden.h"
#include "trace_text.h"
#include "cmd/command.h"
#include "cmd_files/cmd_job.h"
#include "cmd_read/cmd_report.h"
#include "export/proto.h"
#include "render/render.h"

#define MADE "made" /* in the scratch directory */

/* ---- JSON ------------------------------------------------------------------------------------- */

static void show_part(const char *key, const json_t *part, FILE *out)
{
	fprintf(out, "%s: ", key);
	json_dumpf(part, out, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY);
	fputc('\n', out);
}

/* ---- exports --------------------------------------------------------------------------------- */

static void export_to(const char *path, const char *format, const char *order)
{
	char *argv[] = {(char *)"export", (char *)format, (char *)path,
			(char *)".",      (char *)order,  NULL};

	assert_int_equal(command_export.run(&command_export, order ? 5 : 4, argv), 0);
}

static void show_file(const char *format, const char *order, FILE *out)
{
	char *text;

	export_to("--output=" MADE, format, order);
	text = scratch_read(MADE, NULL);
	assert_non_null(text);
	fputs(text, out);
	free(text);
	unlink(MADE);
}

static void show_chrome(FILE *out)
{
	show_file("--format=chrome", NULL, out);
}

static void show_folded(FILE *out)
{
	show_file("--format=folded", NULL, out);
}

static void show_causes(FILE *out)
{
	show_file("--format=folded", "--by=cause", out);
}

/* ---- the database ---------------------------------------------------------------------------- */

static int show_row(void *data, int n, char **values, char **names)
{
	FILE *out = data;

	fputc(' ', out);
	for (int i = 0; i < n; i++)
		if (values[i])
			fprintf(out, " %s=%s", names[i], values[i]);
	fputc('\n', out);
	return 0;
}

static void ask(sqlite3 *db, const char *question,
		int (*row)(void *data, int n, char **values, char **names), void *data)
{
	char *error = NULL;

	if (sqlite3_exec(db, question, row, data, &error) != SQLITE_OK)
		fail_msg("%s: %s", question, error);
}

struct dump {
	sqlite3 *db;
	FILE *out;
};

/* The report's own tables are its JSON's, which other tests compare. */
static int show_table(void *data, int n, char **values, char **names)
{
	const struct dump *dump = data;
	char question[256];

	(void)n;
	(void)names;
	if (!strncmp(values[0], "report_", 7) || !strncmp(values[0], "ENUM_", 5) ||
	    !strncmp(values[0], "META_", 5))
		return 0;
	fprintf(dump->out, "%s\n", values[0]);
	snprintf(question, sizeof(question), "SELECT * FROM \"%s\"", values[0]);
	ask(dump->db, question, show_row, dump->out);
	return 0;
}

static void show_sqlite(FILE *out)
{
	struct dump dump = {.out = out};

	export_to("--output=" MADE, "--format=sqlite", NULL);
	assert_int_equal(sqlite3_open(MADE, &dump.db), SQLITE_OK);
	ask(dump.db, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
	    show_table, &dump);
	sqlite3_close(dump.db);
	unlink(MADE);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void show_csv(FILE *out)
{
	glob_t found;

	export_to("--output=" MADE, "--format=csv", NULL);
	assert_int_equal(glob(MADE "/*", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char *text = scratch_read(found.gl_pathv[i], NULL);

		assert_non_null(text);
		fprintf(out, "%s\n%s", found.gl_pathv[i], text);
		free(text);
		unlink(found.gl_pathv[i]);
	}
	globfree(&found);
	assert_int_equal(rmdir(MADE), 0);
}

/* ---- Protocol Buffers ------------------------------------------------------------------------ */

static uint64_t varint(const uint8_t **at)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	for (; **at & 0x80; shift += 7)
		value |= (uint64_t)(*(*at)++ & 0x7f) << shift;
	return value | (uint64_t) * (*at)++ << shift;
}

static bool is_text(const uint8_t *at, size_t n)
{
	while (n && *at >= ' ')
		at++, n--;
	return !n;
}

/* As "field=number", "field='text'" and "field{ message }": what no message in a trace is, is a text. */
static void show_message(const uint8_t *at, const uint8_t *end, FILE *out)
{
	while (at < end) {
		uint64_t key = varint(&at), value;

		fprintf(out, " %llu", (unsigned long long)key >> 3);
		if ((key & 7) == PROTO_VARINT) {
			fprintf(out, "=%llu", (unsigned long long)varint(&at));
			continue;
		}
		if ((key & 7) == PROTO_FIXED64) {
			memcpy(&value, at, sizeof(value));
			at += sizeof(value);
			fprintf(out, "=%#llx", (unsigned long long)value);
			continue;
		}
		assert_int_equal(key & 7, PROTO_BYTES);
		value = varint(&at);
		if (is_text(at, value)) {
			fprintf(out, "='%.*s'", (int)value, (const char *)at);
		} else {
			fputs("{", out);
			show_message(at, at + value, out);
			fputs(" }", out);
		}
		at += value;
	}
	assert_ptr_equal(at, end);
}

static void show_perfetto(FILE *out)
{
	const uint8_t *at, *end;
	char *bytes;
	size_t n;

	export_to("--output=" MADE, "--format=perfetto", NULL);
	bytes = scratch_read(MADE, &n);
	assert_non_null(bytes);
	at = (const uint8_t *)bytes;
	for (end = at + n; at < end;) {
		uint64_t key = varint(&at), size = varint(&at);

		fprintf(out, "%llu:", (unsigned long long)key >> 3);
		show_message(at, at + size, out);
		fputc('\n', out);
		at += size;
	}
	assert_ptr_equal(at, end);
	free(bytes);
	unlink(MADE);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* To what can be asked of most logs; where there is no such thing, what is said is on stderr. */
static void show_why(FILE *out)
{
	static const char *const words[] = {"1",         "2",          "gpu0",
					    "rank1",     "L1",         "101",
					    "thread102", "cudaMalloc", "cudaStreamSynchronize",
					    "load",      "train.py:11"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		char *argv[] = {(char *)"why", (char *)"--output=" MADE, (char *)words[i],
				(char *)".", NULL};
		char *text;

		fprintf(out, "---- why %s\n", words[i]);
		if (command_why.run(&command_why, 4, argv))
			continue;
		text = scratch_read(MADE, NULL);
		assert_non_null(text);
		fputs(text, out);
		free(text);
		unlink(MADE);
	}
}

/* ---- the gate -------------------------------------------------------------------------------- */

static int report_to(const char *path, const char *const *more, size_t n)
{
	char *argv[12] = {(char *)"report", (char *)"--format=json", (char *)path};

	for (size_t i = 0; i < n; i++)
		argv[3 + i] = (char *)more[i];
	return command_report.run(&command_report, (int)n + 3, argv);
}

/* All processes, compared with the first one alone. */
static void show_gate(FILE *out)
{
	static const char *const asked[] = {"--fail-on=problem",
					    "--budget=all:1.5%,all:2ms,pageable-copy:0x",
					    "--baseline=old", "."};
	static const char *const keys[] = {"id", "compared", "before_ns", "gain_high_ns", "fails"};
	char *text;
	json_t *root, *finding;
	glob_t found;
	size_t i;

	assert_int_equal(glob("*", 0, NULL, &found), 0);
	assert_int_equal(report_to("--output=old", (const char *[]){found.gl_pathv[0]}, 1), 0);
	globfree(&found);
	fprintf(out, "status %d\n", report_to("--output=" MADE, asked, ARRAY_SIZE(asked)));
	text = scratch_read(MADE, NULL);
	assert_non_null(text);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	show_part("gate", json_object_get(root, "gate"), out);
	json_array_foreach(json_object_get(root, "gate_failures"), i, finding)
		show_part("failure", finding, out);
	json_array_foreach(json_object_get(root, "findings"), i, finding)
	{
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
			show_part(keys[k], json_object_get(finding, keys[k]), out);
	}
	json_decref(root);
	free(text);
	unlink(MADE);
	unlink("old");
}

/* ---- a part of it --------------------------------------------------------------------------------- */

/* What is said of one thread's calls from the middle on. */
static void show_filtered(FILE *out)
{
	static const char *const asked[] = {"--thread=101", "--from=50%", "."};
	char *text;

	fprintf(out, "status %d\n", report_to("--output=" MADE, asked, ARRAY_SIZE(asked)));
	text = scratch_read(MADE, NULL);
	if (text)
		fputs(text, out);
	free(text);
	unlink(MADE);
}

/* ---- digests --------------------------------------------------------------------------------- */

static struct digest *digest_of_log(void)
{
	struct digest *digest = digest_new();

	assert_int_equal(digest_traces(digest, (const char *[]){"."}, 1, NULL, NULL), 0);
	return digest;
}

static void show_digest(FILE *out)
{
	struct digest *digest = digest_of_log();

	assert_int_equal(digest_dump(digest, false, out), 0);
	digest_free(digest);
}

static void show_job_in(const char *format, FILE *out)
{
	struct digest *digest = digest_of_log();

	assert_int_equal(job_show_digest(digest, renderer_find(format), true, out), 0);
	digest_free(digest);
}

static void show_job(FILE *out)
{
	show_job_in("json", out);
}

static void show_job_text(FILE *out)
{
	show_job_in("text", out);
}

/* From all processes to the first one. */
static void show_change(FILE *out)
{
	glob_t found;

	assert_int_equal(glob("*", 0, NULL, &found), 0);
	assert_int_equal(job_diff((const char *[]){"."}, 1, (const char *const *)found.gl_pathv, 1,
				  renderer_find("json"), out),
			 0);
	globfree(&found);
}

/* ---- the timeline of the HTML report --------------------------------------------------------- */

/* The caller frees. */
static char *unpacked(const void *packed, size_t n_packed, size_t *n)
{
	uLongf size = 1 << 20;
	char *bytes = calloc(1, size + 1);

	assert_non_null(bytes);
	assert_int_equal(uncompress((Bytef *)bytes, &size, packed, (uLong)n_packed), Z_OK);
	*n = size;
	return bytes;
}

/* What lies there, which is numbers alone: seven bits a byte, the lowest first. */
static void show_numbers(const uint8_t *bytes, const json_t *where, FILE *out)
{
	const uint8_t *at = bytes + json_integer_value(json_array_get(where, 0));
	const uint8_t *end = at + json_integer_value(json_array_get(where, 1));
	uint64_t value = 0;
	unsigned int shift = 0;

	for (; at < end; at++) {
		value |= (uint64_t)(*at & 0x7f) << shift;
		shift += 7;
		if (*at & 0x80)
			continue;
		fprintf(out, " %llu", (unsigned long long)value);
		value = shift = 0;
	}
	fputc('\n', out);
}

static void show_lane(const uint8_t *bytes, json_t *lane, FILE *out)
{
	json_t *items = json_incref(json_object_get(lane, "items")), *where;
	const char *key;

	json_object_del(lane, "items");
	show_part("lane", lane, out);
	json_object_foreach(items, key, where)
	{
		fprintf(out, "  %lld %s:", json_integer_value(json_array_get(where, 2)), key);
		show_numbers(bytes, where, out);
	}
	json_decref(items);
}

static int render_timeline(const struct report *report, FILE *out)
{
	const struct report_timeline *t = &report->timeline;
	size_t n, i;
	char *json = unpacked(t->json, t->json_bytes, &n);
	char *bytes = unpacked(t->items, t->items_bytes, &n);
	json_t *root = json_loads(json, 0, NULL), *part;
	const char *key;

	assert_non_null(root);
	json_object_foreach(root, key, part)
	{
		if (!strcmp(key, "lanes"))
			for (i = 0; i < json_array_size(part); i++)
				show_lane((uint8_t *)bytes, json_array_get(part, i), out);
		else if (strcmp(key, "buckets") != 0 && strcmp(key, "causes") != 0 &&
			 strcmp(key, "wait_kinds") != 0)
			show_part(key, part, out);
	}
	json_decref(root);
	free(json);
	free(bytes);
	return 0;
}

static void show_timeline(FILE *out)
{
	static const struct renderer renderer = {
		.name = "timeline", .render = render_timeline, .timeline = true};

	assert_int_equal(report_show((const char *[]){"."}, 1, NULL,
				     &(struct report_options){.renderer = &renderer}, out),
			 0);
}

/* ---- */

static const struct {
	const char *suffix;
	void (*show)(FILE *out); /* of the traces in the current directory */
	const char *only; /* of that log */
} views[] = {
	{"chrome", show_chrome, NULL},     {"folded", show_folded, NULL},
	{"causes", show_causes, NULL},     {"sqlite", show_sqlite, NULL},
	{"digest", show_digest, NULL},     {"job", show_job, NULL},
	{"change", show_change, NULL},     {"timeline", show_timeline, NULL},
	{"why", show_why, NULL},           {"gates", show_gate, NULL},
	{"filtered", show_filtered, NULL}, {"jobtext", show_job_text, NULL},
	{"csv", show_csv, "mixed"},        {"perfetto", show_perfetto, "mixed"},
};

static void check(void **state)
{
	const char *name = *state;
	char path[PATH_MAX + 64], *dir = scratch_make(), *text;
	size_t size;
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s.log", golden_dir, name);
	tt_make(path, dir);
	/* Paths of traces are in the output: they must not depend on the scratch directory. */
	assert_int_equal(chdir(dir), 0);
	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		if (views[i].only && strcmp(views[i].only, name) != 0)
			continue;
		out = open_memstream(&text, &size);
		views[i].show(out);
		fclose(out);
		golden_compare(name, views[i].suffix, text);
		free(text);
	}
	assert_int_equal(chdir("/"), 0);
	scratch_remove(dir);
}

/* ---- a few calls, of which each number is known ------------------------------------------------ */

static char *few_dir;

static int make_few(void **state)
{
	FILE *log;

	(void)state;
	few_dir = scratch_make();
	assert_int_equal(chdir(few_dir), 0);
	log = fopen("few.log", "w");
	fputs("trace app.100 pid=100 ppid=1 program=\"/app\" clock_source=\"tsc\" cudaspy_version=\"0.1.0\" "
	      "start_realtime_ns=5000000000\n\n"
	      "slot 1 tid=101\n"
	      "1us thread tid=101 name=\"app\"\n"
	      "2us range_name number=1 name=\"step\"\n"
	      "2us range_name number=2 name=\"other\"\n"
	      "2ms op cudaEventSynchronize duration=1ms object=0x99 device=0 caller=0x401064\n"
	      "3ms range what=push name=1\n"
	      "5ms op cudaStreamSynchronize duration=1ms stream=0x11 object=0x77 device=0 caller=0x401064\n"
	      "6ms range what=pop name=1\n"
	      "7ms range what=push name=2\n"
	      "9ms call cudaDeviceSynchronize duration=1ms device=0 caller=0x401064\n"
	      "10ms range what=pop name=2\n",
	      log);
	fclose(log);
	tt_make("few.log", few_dir);
	return 0;
}

static int forget_few(void **state)
{
	(void)state;
	assert_int_equal(chdir("/"), 0);
	scratch_remove(few_dir);
	return 0;
}

/* What each of them waited for. */
static void test_syncs(void **state)
{
	sqlite3 *db;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	export_to("--output=" MADE, "--format=sqlite", NULL);
	assert_int_equal(sqlite3_open(MADE, &db), SQLITE_OK);
	ask(db,
	    "SELECT end - start AS ns, syncType, eventId, deviceId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION ORDER BY start",
	    show_row, out);
	sqlite3_close(db);
	fclose(out);
	unlink(MADE);
	assert_string_equal(text, "  ns=1000000 syncType=1 eventId=153 deviceId=0\n"
				  "  ns=1000000 syncType=3 eventId=0 deviceId=0\n"
				  "  ns=1000000 syncType=4 eventId=0 deviceId=0\n");
	free(text);
}

static int run_export(const char *window)
{
	char option[64], *argv[] = {(char *)"export",
				    (char *)"--format=chrome",
				    (char *)"--output=" MADE,
				    option,
				    (char *)".",
				    NULL};
	int status;

	snprintf(option, sizeof(option), "--window=%s", window);
	status = command_export.run(&command_export, 5, argv);
	unlink(MADE);
	return status;
}

static void test_window(void **state)
{
	static const char *const good[] = {"1", "300", "100000", "0001"}, *const bad[] = {
										  "0",   "100001",
										  "-1",  "+1",
										  " 1",  "1 ",
										  "1MB", "",
										  "x"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(run_export(good[i]), STATUS_FINE);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(run_export(bad[i]), STATUS_USAGE);
}

/* Records in ranges of a name, and those that begin and end them. */
static void test_dump_of_ranges(void **state)
{
	char *argv[] = {(char *)"dump", (char *)"--range=step", (char *)"--output=" MADE,
			(char *)".", NULL},
	     *text;

	(void)state;
	assert_int_equal(command_dump.run(&command_dump, 4, argv), 0);
	text = scratch_read(MADE, NULL);
	assert_non_null(strstr(text, "cudaStreamSynchronize"));
	assert_non_null(strstr(text, "what=push name=1"));
	assert_non_null(strstr(text, "what=pop name=1"));
	assert_null(strstr(text, "cudaEventSynchronize"));
	assert_null(strstr(text, "cudaDeviceSynchronize"));
	assert_null(strstr(text, "what=push name=2"));
	assert_null(strstr(text, "what=pop name=2"));
	free(text);
	unlink(MADE);
}

#define FEW_TEST(function) cmocka_unit_test_setup_teardown(function, make_few, forget_few)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FEW_TEST(test_syncs), FEW_TEST(test_window), FEW_TEST(test_dump_of_ranges),
		GOLDEN_TEST(mixed),   GOLDEN_TEST(locks),    GOLDEN_TEST(sharing),
		GOLDEN_TEST(ranks),   GOLDEN_TEST(parts),    GOLDEN_TEST(between),
	};

	golden_find();
	setenv("TZ", "UTC", 1); /* a database has the local time, too */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
