/*
 * analyzer/export/target.c: a file that has its name once it is complete. Called by `cudaspy export`, and by formats of several files.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "target.h"
#include "base/outfile.h"

static int complain(const char *path)
{
	int err = errno ? -errno : -EIO;

	warn("%s: %s", path, strerror(-err));
	return err;
}

/* What a link leads to is replaced, not the link. */
static char *real_name(const char *path)
{
	char *resolved = realpath(path, NULL), *name = xstrdup(resolved ?: path);

	free(resolved);
	return name;
}

static bool is_folder(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

/* Calls see for each file of a folder, until it returns an error. 0, or that. */
static int for_each_file(const char *folder, int (*see)(const char *path, const char *to),
			 const char *to)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int err = 0;

	while (dir && !err && (entry = readdir(dir))) {
		char *path = xasprintf("%s/%s", folder, entry->d_name);
		char *other = xasprintf("%s/%s", to, entry->d_name);

		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			err = see(path, other);
		free(other);
		free(path);
	}
	if (dir)
		closedir(dir);
	return err;
}

static int move_file(const char *path, const char *to)
{
	return rename(path, to) ? complain(to) : 0;
}

static int remove_file(const char *path, const char *to)
{
	(void)to;
	unlink(path);
	return 0;
}

/* A folder that is there already keeps what else is in it. */
static int move_into_place(const struct export_target *o)
{
	int err;

	if (!is_folder(o->path))
		return move_file(o->temporary, o->path);
	if (!is_folder(o->temporary)) {
		errno = EISDIR;
		return complain(o->path);
	}
	err = for_each_file(o->temporary, move_file, o->path);
	if (!err)
		rmdir(o->temporary);
	return err;
}

/* A new name beside the path, of which there is no file. A folder's path may end in a slash. */
static char *name_beside(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return xasprintf("%.*s%s.new-XXXXXX", (int)min_u64(n, INT_MAX), path,
			 is_folder(path) ? "/" : "");
}

/* mkostemp lets nobody else read the file; this one is like any other. */
static void set_mode(int fd)
{
	mode_t mask = umask(0);

	umask(mask);
	if (fchmod(fd, 0666 & ~mask))
		return; /* a file system without modes */
}

static int open_beside(struct export_target *o, const char *mode)
{
	int fd;

	o->temporary = name_beside(o->path);
	fd = mkostemp(o->temporary, O_CLOEXEC);
	if (fd < 0) {
		free(o->temporary);
		o->temporary = NULL;
		return complain(o->path);
	}
	outfile_unfinished(o->temporary);
	set_mode(fd);
	o->file = fdopen(fd, mode);
	if (o->file)
		return 0;
	close(fd);
	return complain(o->path);
}

static bool is_written_in_place(const char *path)
{
	struct stat status;

	return !stat(path, &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

int target_open(struct export_target *o, const char *path)
{
	int err;

	*o = (struct export_target){0};
	if (!strcmp(path, "-")) {
		o->path = xstrdup(path);
		o->file = stdout;
		return 0;
	}
	err = outfile_refuse_planted(path);
	if (err)
		return err;
	o->path = real_name(path);
	if (!is_written_in_place(path))
		return open_beside(o, "w");
	o->file = fopen(path, "we");
	return o->file ? 0 : complain(path);
}

int target_reserve(struct export_target *o, const char *path)
{
	int err;

	*o = (struct export_target){0};
	if (!strcmp(path, "-") || is_written_in_place(path)) {
		warn("%s: this format needs a file with a name of its own",
		     strcmp(path, "-") ? path : "standard output");
		return -EINVAL;
	}
	err = outfile_refuse_planted(path);
	if (err)
		return err;
	o->path = real_name(path);
	err = open_beside(o, "w");
	if (err)
		return err;
	fclose(o->file);
	o->file = NULL;
	unlink(o->temporary);
	return 0;
}

void target_write(struct export_target *o, const void *bytes, size_t n)
{
	errno = 0;
	if (!o->err && fwrite(bytes, 1, n, o->file) != n)
		o->err = errno ? -errno : -EIO;
}

static void forget(struct export_target *o)
{
	outfile_unfinished(NULL);
	free(o->path);
	free(o->temporary);
	*o = (struct export_target){0};
}

int target_commit(struct export_target *o)
{
	int err = o->err;

	if (err)
		warn("%s: %s", strcmp(o->path, "-") ? o->path : "standard output", strerror(-err));
	else if (o->file)
		err = finish_output(o->file);
	if (o->file && o->file != stdout && fclose(o->file) && !err)
		err = complain(o->path);
	o->file = NULL;
	if (!err && o->temporary)
		err = move_into_place(o);
	if (err)
		target_discard(o);
	else
		forget(o);
	return err;
}

void target_discard(struct export_target *o)
{
	if (o->file && o->file != stdout)
		fclose(o->file);
	if (o->temporary && unlink(o->temporary) && is_folder(o->temporary)) {
		for_each_file(o->temporary, remove_file, o->temporary);
		rmdir(o->temporary);
	}
	forget(o);
}
