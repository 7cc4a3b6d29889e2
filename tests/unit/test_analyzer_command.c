/*
 * tests/unit/test_analyzer_command.c: options are understood wherever they stand, wrong ones are
 * named, and exit statuses are what the help promises.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "base/suggest.h"
#include "cmd/command.h"
#include "scratch.h"

struct options {
	bool flag, second;
	const char *text, *one;
	struct option_values list;
};

static const struct option_row rows[] = {
	{"flag", 'g', NULL, "", offsetof(struct options, flag)},
	{"hello", 0, NULL, "", offsetof(struct options, flag)},
	{"texts", 0, "TEXT", "", offsetof(struct options, one)},
	{"second", 's', NULL, "", offsetof(struct options, second)},
	{"text", 't', "TEXT,...", "", offsetof(struct options, text)},
	{"one", 0, "1", "", offsetof(struct options, one)},
	{"list", 'l', OPTION_SEVERAL, "", offsetof(struct options, list)},
};

static const struct command anywhere = {
	.name = "anywhere", .options = rows, .n_options = ARRAY_SIZE(rows)};
static const struct command first_ends = {
	.name = "first", .options = rows, .n_options = ARRAY_SIZE(rows), .first_ends = true};

/* Words in one string, split at blanks, as a command line. The arguments that are left go into
 * `left`, with a blank behind each. */
static bool parse(const struct command *command, const char *line, struct options *options,
		  char *left, int *status)
{
	char copy[256], *argv[32] = {NULL}, *word;
	int argc = 0, i;
	bool fine;

	*options = (struct options){0};
	snprintf(copy, sizeof(copy), "verb %s", line);
	for (word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	fine = command_parse(command, options, &argc, argv, status);
	left[0] = '\0';
	assert_true(!fine || !argv[argc]);
	for (i = 1; fine && i < argc; i++)
		strcat(strcat(left, argv[i]), " ");
	if (options->text)
		options->text = !strcmp(options->text, "value") ? "value" : "other";
	return fine;
}

static void test_good(void **state)
{
	static const char *const lines[] = {
		"-g -t value a b",
		"a b --flag --text=value",
		"--text value a -g b",
	};
	struct options o;
	char left[256];
	int status;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_true(parse(&anywhere, lines[i], &o, left, &status));
		assert_true(o.flag);
		assert_string_equal(o.text, "value");
		assert_string_equal(left, "a b ");
	}
	assert_true(parse(&anywhere, "--one -tvalue", &o, left, &status));
	assert_string_equal(o.text, "value");
	assert_non_null(o.one);
	assert_true(parse(&anywhere, "-- -g -t", &o, left, &status));
	assert_string_equal(left, "-g -t ");
	assert_false(o.flag);
	assert_true(parse(&first_ends, "-g app -t --", &o, left, &status));
	assert_true(o.flag);
	assert_string_equal(left, "app -t -- ");
}

/* An option that may be given several times; only so often. */
static void test_several(void **state)
{
	char line[256] = "", left[256];
	struct options o;
	int status, i;

	(void)state;
	assert_true(parse(&anywhere, "--list=1 -l 2 a --list 3", &o, left, &status));
	assert_int_equal(o.list.n, 3);
	for (i = 0; i < OPTION_VALUES; i++)
		strcat(line, "-l7 ");
	assert_true(parse(&anywhere, line, &o, left, &status));
	assert_int_equal(o.list.n, OPTION_VALUES);
	assert_false(parse(&anywhere, strcat(line, "-l7"), &o, left, &status));
	assert_int_equal(status, STATUS_USAGE);
}

static void test_wrong(void **state)
{
	static const char *const lines[] = {"--nothing", "-x",  "--flag=1",    "a -t", "--tex=1",
					    "--te",      "-gx", "--flag=x -t", "--=1", "--help=1"};
	struct options o;
	char left[256];
	int status;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		status = -1;
		assert_false(parse(&anywhere, lines[i], &o, left, &status));
		assert_int_equal(status, STATUS_USAGE);
	}
}

/* As much of a name as no other begins with; letters in one word. */
static void test_short(void **state)
{
	static const struct {
		const char *line, *left;
		bool flag, second;
	} good[] = {
		{"--fl a", "a ", true, false},      {"--lis=1 a", "a ", false, false},
		{"--text=value", "", false, false}, {"-gs a", "a ", true, true},
		{"-sgtvalue a", "a ", true, true},  {"-gst value a", "a ", true, true},
		{"--o", "", false, false},          {"--t value --te=1", NULL, false, false},
		{"--hel", "", true, false},
	};
	struct options o;
	char left[256];
	int status;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		bool fine = parse(&anywhere, good[i].line, &o, left, &status);

		assert_int_equal(fine, good[i].left != NULL);
		if (!fine)
			continue;
		assert_string_equal(left, good[i].left);
		assert_int_equal(o.flag, good[i].flag);
		assert_int_equal(o.second, good[i].second);
	}
}

static const char *suggested(const char *word, const char *list)
{
	static char copy[256];
	struct suggest suggest = {.word = word};

	snprintf(copy, sizeof(copy), "%s", list);
	suggest_try_list(&suggest, copy);
	return suggest.best ?: "-";
}

static void test_suggestions(void **state)
{
	static const char verbs[] = "run,report,explain,why,diff,dump,info,calibrate,help";

	(void)state;
	assert_string_equal(suggested("reprot", verbs), "report");
	assert_string_equal(suggested("REPORT", verbs), "report");
	assert_string_equal(suggested("report", "report"),
			    "-"); /* it was said that it is unknown */
	assert_string_equal(suggested("calib", verbs), "calibrate");
	assert_string_equal(suggested("dmup", verbs), "dump");
	assert_string_equal(suggested("rn", verbs), "run");
	assert_string_equal(suggested("hepl", verbs), "help");
	assert_string_equal(suggested("x", verbs), "-");
	assert_string_equal(suggested("", verbs), "-");
	assert_string_equal(suggested("something", verbs), "-");
	assert_string_equal(suggested("cudaMemcpyAsinc", "cudaMalloc,cudaMemcpy,cudaMemcpyAsync"),
			    "cudaMemcpyAsync");
}

static int run(const struct command *command, const char *argument)
{
	char verb[] = "verb", word[256];
	char *argv[] = {verb, word, NULL};

	snprintf(word, sizeof(word), "%s", argument);
	return command->run(command, 2, argv);
}

static void test_statuses(void **state)
{
	static const struct command *const commands[] = {&command_report, &command_dump,
							 &command_info};
	char *dir = scratch_make();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		assert_int_equal(run(commands[i], "--no-such-option"), STATUS_USAGE);
		assert_int_equal(run(commands[i], "/nonexistent"), STATUS_NOTHING);
		assert_int_equal(run(commands[i], dir), STATUS_NOTHING);
	}
	assert_int_equal(run(&command_report, "--format=rhyme"), STATUS_USAGE);
	assert_int_equal(run(&command_report, "--fail-on=nothing"), STATUS_NOTHING);
	assert_int_equal(run(&command_report, "--budget=all"), STATUS_NOTHING);
	assert_int_equal(run(&command_info, "--format=sarif"), STATUS_USAGE);
	assert_int_equal(run(&command_explain, "no-such-detector"), STATUS_USAGE);
	assert_int_equal(run(&command_explain, "--format=junit"), STATUS_USAGE);
	assert_int_equal(run(&command_info, "--format=rhyme"), STATUS_USAGE);
	assert_int_equal(run(&command_dump, "--fields=time,colour"), STATUS_USAGE);
	assert_int_equal(run(&command_dump, "--fields="), STATUS_USAGE);
	assert_int_equal(run(&command_dump, "--fields=,"), STATUS_USAGE);
	assert_int_equal(run(&command_run, "--format=rhyme"), STATUS_USAGE);
	scratch_remove(dir);
	/* 1 is the gate's alone. */
	assert_int_equal(STATUS_GATE, 1);
	assert_int_equal(STATUS_NOTHING, 2);
	assert_int_equal(STATUS_USAGE, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),  cmocka_unit_test(test_several),
		cmocka_unit_test(test_short), cmocka_unit_test(test_suggestions),
		cmocka_unit_test(test_wrong), cmocka_unit_test(test_statuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
