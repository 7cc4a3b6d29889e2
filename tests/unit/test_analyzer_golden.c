/*
 * tests/unit/test_analyzer_golden.c: readable logs become traces, and what dump, report and info
 * say about them is compared with what they said when a person last looked.
 *
 * For each tests/golden/NAME.log: NAME.dump, NAME.stable, NAME.report, NAME.first, NAME.json and NAME.info.
 * With CUDASPY_BLESS=1 in the environment they are written instead (golden.h). babeltrace2, if installed, must
 * read each trace without a word and find as many events as dump has lines.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "cmd_read/cmd_report.h"
#include "golden.h"
#include "trace_text.h"
#include "render/render.h"
#include "model/dump.h"

static void show_dump(const char *dir, FILE *out, bool stable)
{
	struct trace_set set;
	struct dump dump;

	assert_int_equal(dump_init(&dump, out, NULL, false, stable), 0);
	assert_int_equal(trace_set_open(&set, &dir, 1, NULL), 0);
	assert_int_equal(dump_all(&dump, &set), 0);
	trace_set_release(&set);
}

static void show_plain(const char *dir, FILE *out)
{
	show_dump(dir, out, false);
}

static void show_stable(const char *dir, FILE *out)
{
	show_dump(dir, out, true);
}

static void show_report(const char *dir, FILE *out)
{
	struct report_options options = {
		.renderer = renderer_find("text"), .nested = true, .verbose = true};

	assert_int_equal(report_show(&dir, 1, NULL, &options, out), 0);
}

/* What is shown without --verbose. */
static void show_first(const char *dir, FILE *out)
{
	struct report_options options = {.renderer = renderer_find("text")};

	assert_int_equal(report_show(&dir, 1, NULL, &options, out), 0);
}

static void show_json(const char *dir, FILE *out)
{
	struct report_options options = {.renderer = renderer_find("json")};

	assert_int_equal(report_show(&dir, 1, NULL, &options, out), 0);
}

static void show_info(const char *dir, FILE *out)
{
	assert_int_equal(info_show(&dir, 1, NULL, renderer_find("text"), out), 0);
}

static const struct {
	const char *suffix;
	void (*show)(const char *dir, FILE *out);
	bool for_people;
} views[] = {
	{"dump", show_plain, false}, {"stable", show_stable, false}, {"report", show_report, true},
	{"first", show_first, true}, {"json", show_json, false},     {"info", show_info, true},
};

static unsigned long count_lines(const char *text)
{
	unsigned long n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void ask_babeltrace(const char *dir, unsigned long events)
{
	char command[1024], text[4096];
	unsigned long lines = 0;
	FILE *pipe;

	if (system("command -v babeltrace2 >/dev/null"))
		return;
	/* Its stderr too: a warning would be a line too many. Losses are announced by design. */
	snprintf(command, sizeof(command),
		 "babeltrace2 %s 2>&1 | grep -v '^WARNING: Tracer .*discarded'", dir);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (fgets(text, sizeof(text), pipe))
		lines++;
	pclose(pipe);
	assert_int_equal(lines, events);
}

/* However narrow the screen, no line of what people read is wider. */
static void check_widths(const char *dir)
{
	static const char *const widths[] = {"40", "60", "80", "160"};
	char *text = NULL, *line, *rest;
	size_t i, j, size;
	FILE *out;

	for (i = 0; i < ARRAY_SIZE(widths); i++) {
		setenv("COLUMNS", widths[i], 1);
		for (j = 0; j < ARRAY_SIZE(views); j++) {
			if (!views[j].for_people)
				continue;
			out = open_memstream(&text, &size);
			views[j].show(dir, out);
			fclose(out);
			for (rest = text; (line = strsep(&rest, "\n"));)
				if (strlen(line) > strtoul(widths[i], NULL, 10))
					fail_msg("%s at %s columns: %s", views[j].suffix, widths[i],
						 line);
			free(text);
		}
	}
	unsetenv("COLUMNS");
}

static void check(void **state)
{
	const char *name = *state;
	char path[PATH_MAX + 64], *dir = scratch_make(), *text = NULL;
	size_t i, size;
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s.log", golden_dir, name);
	/* Paths of traces are in the output: they must not depend on the scratch directory. */
	tt_make(path, dir);
	assert_int_equal(chdir(dir), 0);
	for (i = 0; i < ARRAY_SIZE(views); i++) {
		out = open_memstream(&text, &size);
		views[i].show(".", out);
		fclose(out);
		if (!strcmp(views[i].suffix, "dump"))
			ask_babeltrace(dir, count_lines(text));
		golden_compare(name, views[i].suffix, text);
		free(text);
	}
	check_widths(".");
	assert_int_equal(chdir("/"), 0);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		GOLDEN_TEST(pageable), GOLDEN_TEST(killed), GOLDEN_TEST(locks),
		GOLDEN_TEST(sharing),  GOLDEN_TEST(turns),  GOLDEN_TEST(mixed),
		GOLDEN_TEST(ranks),    GOLDEN_TEST(parts),  GOLDEN_TEST(between),
	};

	golden_find();
	unsetenv("COLUMNS");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
