/*
 * analyzer/pack/swap.c: something new in the place of something old. Called by `cudaspy pack` and `cudaspy unpack`.
 *
 * Linux can exchange two names in one step, even if one is a file and the other a folder; several network file systems cannot.
 * There the new one is shown under a name beside the old one first: readers of the folder take two that hold the same trace for
 * one, so at no moment is the trace missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "swap.h"
#include "writer.h"
#include "base/util.h"

#define SUFFIX ".cudaspy"

static bool cannot_exchange(int err)
{
	return err == EINVAL || err == ENOSYS || err == EOPNOTSUPP || err == EPERM;
}

/* "X.new.cudaspy" of "X.cudaspy". */
static char *name_beside(const char *path)
{
	size_t n = strlen(path), suffix = strlen(SUFFIX);

	if (n > suffix && !strcmp(path + n - suffix, SUFFIX))
		n -= suffix;
	return xasprintf("%.*s.new%s", (int)n, path, SUFFIX);
}

static int fail(const char *path)
{
	int err = errno;

	warn("%s: %s", path, strerror(err));
	return -err;
}

static int swap_in_steps(const char *temporary, const char *path, const char *old)
{
	char *beside = name_beside(path);
	struct stat st;
	int err = 0;

	if (!lstat(beside, &st)) {
		warn("%s: is in the way: remove it, or rename it", beside);
		err = -EEXIST;
	} else if (rename(temporary, beside)) {
		err = fail(beside);
	} else if (rename(path, old)) {
		err = fail(path);
		if (rename(beside, temporary))
			warn("%s: %s", beside, strerror(errno));
	} else if (rename(beside, path)) {
		err = fail(path);
		if (rename(old, path))
			warn("%s: the trace is now called %s", path, beside);
		else if (rename(beside, temporary))
			warn("%s: %s", beside, strerror(errno));
	}
	free(beside);
	return err;
}

int swap_in(const char *temporary, const char *path, char **old)
{
	char *folder = folder_of_path(path);
	int err = 0;

	*old = NULL;
	if (!renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_EXCHANGE)) {
		*old = xstrdup(temporary);
	} else if (!cannot_exchange(errno)) {
		err = fail(path);
	} else {
		*old = xasprintf("%s.old", temporary);
		err = swap_in_steps(temporary, path, *old);
		if (err) {
			free(*old);
			*old = NULL;
		}
	}
	sync_folder(folder);
	free(folder);
	return err;
}
