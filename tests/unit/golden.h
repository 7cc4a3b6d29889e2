/*
 * tests/unit/golden.h: texts are compared with files in tests/golden, which hold what was said when a person last
 * looked. With CUDASPY_BLESS=1 in the environment the files are written instead: git shows then what is different.
 */
#ifndef CUDASPY_TESTS_GOLDEN_H
#define CUDASPY_TESTS_GOLDEN_H

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scratch.h"

static char golden_dir[PATH_MAX];

/* Beside the test's file, wherever the build was started. */
static inline void golden_find(void)
{
	char here[PATH_MAX], path[PATH_MAX + 16];

	snprintf(here, sizeof(here), "%s", __FILE__);
	snprintf(path, sizeof(path), "%s/../golden", dirname(here));
	if (!realpath(path, golden_dir)) {
		printf("%s is not here: run this from the top of the source tree\n", path);
		exit(77);
	}
}

/* The first line in which they differ. */
static inline void golden_differs(const char *path, const char *wanted, const char *text)
{
	unsigned int line = 1;
	size_t i, begin = 0;

	for (i = 0; wanted[i] && wanted[i] == text[i]; i++)
		if (wanted[i] == '\n') {
			line++;
			begin = i + 1;
		}
	fail_msg("%s:%u: now it is:\n%.*s\nnot:\n%.*s", path, line,
		 (int)strcspn(text + begin, "\n"), text + begin, (int)strcspn(wanted + begin, "\n"),
		 wanted + begin);
}

static inline void golden_compare(const char *name, const char *suffix, const char *text)
{
	char path[PATH_MAX + 64], *wanted;

	snprintf(path, sizeof(path), "%s/%s.%s", golden_dir, name, suffix);
	if (getenv("CUDASPY_BLESS")) {
		scratch_write(path, text, strlen(text));
		return;
	}
	wanted = scratch_read(path, NULL);
	if (!wanted)
		fail_msg("%s is missing: CUDASPY_BLESS=1 writes it", path);
	if (strcmp(wanted, text))
		golden_differs(path, wanted, text);
	free(wanted);
}

/* A test of the log NAME.log there, by `check`, whose state is that name. */
#define GOLDEN_TEST(of) \
	{ \
#of, check, NULL, NULL, #of \
	}

#endif
