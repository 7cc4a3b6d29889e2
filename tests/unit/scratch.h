/*
 * tests/unit/scratch.h: a directory for a test's files, gone afterwards; and texts of files.
 */
#ifndef CUDASPY_TESTS_SCRATCH_H
#define CUDASPY_TESTS_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRATCH_UNUSED __attribute__((unused))

/* Makes an empty directory and returns its path; scratch_remove frees it. */
SCRATCH_UNUSED static char *scratch_make(void)
{
	const char *where = getenv("TMPDIR");
	char *path = NULL;

	if (asprintf(&path, "%s/cudaspy-test-XXXXXX", where ? where : "/tmp") < 0 ||
	    !mkdtemp(path)) {
		perror("mkdtemp");
		exit(3);
	}
	return path;
}

SCRATCH_UNUSED static int scratch_remove_one(const char *path, const struct stat *st, int type,
					     struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

SCRATCH_UNUSED static void scratch_remove(char *path)
{
	nftw(path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}

/* The whole file with a NUL behind it, or NULL if there is none. The caller frees. */
SCRATCH_UNUSED static char *scratch_read(const char *path, size_t *size)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t n = 0, got;

	if (!file)
		return NULL;
	do {
		text = realloc(text, n + 65536 + 1);
		if (!text)
			exit(3);
		got = fread(text + n, 1, 65536, file);
		n += got;
	} while (got);
	text[n] = '\0';
	fclose(file);
	if (size)
		*size = n;
	return text;
}

SCRATCH_UNUSED static void scratch_write(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(bytes, 1, size, file) != size) {
		perror(path);
		exit(3);
	}
	fclose(file);
}

/* However long its lines are: one blank for each row of blanks and ends of lines. Returns it. */
SCRATCH_UNUSED static char *scratch_squeeze(char *text)
{
	char *from = text, *to = text;

	for (; *from; from++)
		if (*from != ' ' && *from != '\n')
			*to++ = *from;
		else if (to > text && to[-1] != ' ')
			*to++ = ' ';
	*to = '\0';
	return text;
}

#endif
