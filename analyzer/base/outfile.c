/*
 * analyzer/base/outfile.c: files written beside their place first, so that nobody sees half of one, and a failure
 * leaves the old one. Called by verbs with --output, and by who writes profiles.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "outfile.h"

/* The one that is being written, for signals; one at a time. */
static const char *volatile unfinished;

static void remove_unfinished(int number)
{
	const char *name = unfinished;

	if (name)
		unlink(name);
	signal(number, SIG_DFL);
	raise(number);
}

void outfile_unfinished(const char *temporary)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};
	struct sigaction now;

	unfinished = temporary;
	for (size_t i = 0; temporary && i < ARRAY_SIZE(numbers); i++)
		if (!sigaction(numbers[i], NULL, &now) && now.sa_handler == SIG_DFL)
			signal(numbers[i], remove_unfinished);
}

/* A device, a pipe, a link that leads nowhere yet: nothing to put a file in the place of. */
static bool is_no_file(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return !lstat(path, &status);
	return !S_ISREG(status.st_mode);
}

/* One that was not there, under a name that no other file can have; of the mode of the file that it replaces, or
 * that others get. */
static FILE *new_file(char *name, const char *old)
{
	mode_t mask = umask(0);
	int fd = mkostemp(name, O_CLOEXEC);
	struct stat status;
	FILE *file;

	umask(mask);
	if (fd < 0)
		return NULL;
	fchmod(fd, stat(old, &status) ? 0666 & ~mask : status.st_mode & 0777);
	file = fdopen(fd, "w");
	if (!file)
		close(fd);
	return file;
}

static int fail(const char *path, int err)
{
	warn("%s: %s", path, strerror(err));
	return -err;
}

/* The kernel's rule for links in folders like /tmp (proc(5), protected_symlinks), whether or not it is in force here: we
 * look where a link leads ourselves, and put another file there. The same holds for files and pipes that lie there. */
static bool is_planted(const char *path)
{
	char *copy = xstrdup(path);
	const char *folder = dirname(copy);
	struct stat status, parent;
	bool planted = !lstat(path, &status) && !stat(folder, &parent) &&
		       (parent.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH) &&
		       status.st_uid != geteuid() && status.st_uid != parent.st_uid;

	free(copy);
	return planted;
}

int outfile_refuse_planted(const char *path)
{
	if (!is_planted(path))
		return 0;
	warn("%s: is another user's, in a folder in which everybody may write: left alone", path);
	return -EACCES;
}

static int refuse(const char *path)
{
	struct stat status;
	bool exists = !stat(path, &status);
	int err = outfile_refuse_planted(path);

	if (err)
		return err;
	if (exists && S_ISDIR(status.st_mode))
		return fail(path, EISDIR);
	if (exists && access(path, W_OK)) /* who made it so does not want it replaced */
		return fail(path, EACCES);
	return 0;
}

int outfile_open(struct outfile *out, const char *path)
{
	int err = refuse(path);

	*out = (struct outfile){0};
	if (err)
		return err;
	out->path = realpath(path, NULL) ?: xstrdup(path);
	if (is_no_file(path))
		out->file = fopen(path, "we");
	else
		out->file = new_file(out->temporary = xasprintf("%s.XXXXXX", out->path), path);
	if (out->file) {
		if (out->temporary)
			outfile_unfinished(out->temporary);
		return 0;
	}
	err = fail(path, errno);
	free(out->path);
	free(out->temporary);
	*out = (struct outfile){0};
	return err;
}

int outfile_check(const char *path)
{
	struct outfile out;
	int err;

	if (is_no_file(path))
		return refuse(path);
	err = outfile_open(&out, path);
	if (!err)
		outfile_close(&out, false);
	return err;
}

int outfile_close(struct outfile *out, bool keep)
{
	int err = ferror(out->file) ? -EIO : 0;

	errno = 0;
	if (fclose(out->file) && keep && !err)
		err = fail(out->path, errno ?: EIO);
	if (out->temporary && keep && !err && rename(out->temporary, out->path))
		err = fail(out->path, errno);
	if (out->temporary && (!keep || err))
		unlink(out->temporary);
	outfile_unfinished(NULL);
	free(out->path);
	free(out->temporary);
	*out = (struct outfile){0};
	return err ?: keep ? 0 : -ECANCELED;
}
