/*
 * tests/e2e/programs/judge.c: holds what cudaspy says of waits against what the simulator wrote down
 * (tests/sim/README.md, "Truth"). Run by test_blame.sh and test_judge.sh, single-threaded.
 *
 *   judge [--name=NAME] TRUTH_DIR REPORT.json    one line of key=value: how much of it is right
 *   judge --truth-only TRUTH_DIR                 who waited for whom, in truth
 *   judge --as-report TRUTH_DIR                  the truth, as a report would say it
 *   judge --sum [LINES]                          adds such lines up; status 1 when a target is missed
 *
 * Here are its options, the sum of many lines, and what its parts use: judge_truth.c reads what the simulator
 * wrote, judge_blame.c works out who is to blame, judge_show.c shows that, judge_score.c compares.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "judge.h"

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "judge: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(2);
}

void *grow(void *array, size_t cnt, size_t bytes)
{
	if (cnt & (cnt - 1))
		return array;
	array = realloc(array, (cnt ? 2 * cnt : 1) * bytes);
	if (!array)
		die("no memory");
	return array;
}

const char *intern(const char *name)
{
	static char **names;
	static size_t cnt;

	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(names[i], name))
			return names[i];
	names = grow(names, cnt, sizeof(*names));
	names[cnt] = strdup(name);
	return names[cnt++];
}

/* ---- many runs ---- */
static double value_of(const char *line, const char *key)
{
	char with[64];
	const char *at;

	snprintf(with, sizeof(with), " %s=", key);
	at = strstr(line, with);
	return at ? strtod(at + strlen(with), NULL) : 0;
}

static bool check(const char *what, double value, const char *unit, bool met, const char *target)
{
	printf("  %-44s %9.3f %-3s %s (target: %s)\n", what, value, unit, met ? "met" : "MISSED",
	       target);
	return met;
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 100;
}

static int add_up(FILE *file)
{
	static const char *const keys[] = {
		"lock_ns",      "right_ns", "wrong_device_ns", "root_ns", "root_right_ns",
		"false_stalls", "calls_ns", "clean",           "pairs",   "off_pairs"};
	enum { LOCK_NS, RIGHT, WRONG, ROOT, ROOT_RIGHT, STALLS, CALLS, CLEAN, PAIRS, OFF, KEY_CNT };
	double sum[KEY_CNT] = {0}, off[BUCKET_CNT] = {0}, worst = 0;
	char line[4096], worst_line[256] = "-", key[64], title[64];
	unsigned int runs = 0;
	bool met = true;

	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "name=", 5) != 0)
			continue;
		runs++;
		for (int i = 0; i < KEY_CNT; i++)
			sum[i] += value_of(line, keys[i]);
		for (int b = 0; b < BUCKET_CNT; b++) {
			snprintf(key, sizeof(key), "off_%s_ns", bucket_name[b]);
			off[b] += value_of(line, key);
		}
		if (value_of(line, "worst") > worst) {
			worst = value_of(line, "worst");
			snprintf(worst_line, sizeof(worst_line), "%.*s %.60s",
				 (int)strcspn(line, " "), line,
				 strstr(line, "worst_at=") ? strstr(line, "worst_at=") : "");
			worst_line[strcspn(worst_line, "\n")] = '\0';
		}
	}
	printf("%u runs, %.0f ms waited for locks in truth, %.0f ms in calls; %.0f of them clean\n",
	       runs, sum[LOCK_NS] / MS, sum[CALLS] / MS, sum[CLEAN]);
	if (!runs)
		return 1;
	met &= check("lock time with the right holder", percent(sum[RIGHT], sum[LOCK_NS]), "%",
		     percent(sum[RIGHT], sum[LOCK_NS]) >= 98, "98 % or more");
	met &= check("blamed on a wrong device", sum[WRONG] / MS, "ms", sum[WRONG] == 0, "none");
	met &= check("lock time with the right root", percent(sum[ROOT_RIGHT], sum[ROOT]), "%",
		     percent(sum[ROOT_RIGHT], sum[ROOT]) >= 95, "95 % or more");
	for (int b = 0; b < BUCKET_CNT; b++) {
		snprintf(title, sizeof(title), "time of calls misplaced: %s", bucket_name[b]);
		met &= check(title, percent(off[b], sum[CALLS]), "%", off[b] <= 0.02 * sum[CALLS],
			     "2 % or less");
	}
	met &= check("false stalls across devices in clean runs", sum[STALLS], "", sum[STALLS] == 0,
		     "none");
	printf("  %-44s %9.0f of %.0f\n", "accounts of a thread's function beyond 2 %", sum[OFF],
	       sum[PAIRS]);
	printf("  %-44s %9.3f %%  %s\n", "the worst of them", 100 * worst, worst_line);
	return met ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *name = "-";
	bool truth_only = false, as_report = false, sum = false, verbose = false;

	for (; argc > 1 && argv[1][0] == '-'; argc--, argv++) {
		if (!strncmp(argv[1], "--name=", 7))
			name = argv[1] + 7;
		else if (!strcmp(argv[1], "--truth-only"))
			truth_only = true;
		else if (!strcmp(argv[1], "--as-report"))
			as_report = true;
		else if (!strcmp(argv[1], "--sum"))
			sum = true;
		else if (!strcmp(argv[1], "-v"))
			verbose = true;
		else
			die("no such option: %s", argv[1]);
	}
	if (sum) {
		FILE *file = argc > 1 ? fopen(argv[1], "r") : stdin;

		if (!file)
			die("cannot read %s", argv[1]);
		return add_up(file);
	}
	if (argc != (truth_only || as_report ? 2 : 3))
		die("a directory with truth%s, please",
		    truth_only || as_report ? "" : " and a report");
	read_truth(argv[1]);
	if (truth_only)
		show_truth();
	else if (as_report)
		show_as_report();
	else
		judge(name, argv[2], verbose);
	return 0;
}
