/*
 * analyzer/digest/file.c: digests in files. Called by the verbs.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "digest.h"

static int read_all(FILE *file, const char *path, uint8_t **bytes, size_t *n)
{
	struct stat status;

	if (fstat(fileno(file), &status)) {
		warn("%s: %s", path, strerror(errno));
		return -EIO;
	}
	if ((uint64_t)status.st_size > DIGEST_FILE_MOST) {
		warn("%s: too large for a digest", path);
		return -EFBIG;
	}
	*bytes = xrealloc(NULL, (size_t)status.st_size + 1, 1);
	*n = fread(*bytes, 1, (size_t)status.st_size, file);
	if (!ferror(file))
		return 0;
	warn("%s: %s", path, strerror(errno));
	return -EIO;
}

int digest_read_file(struct digest *into, const char *path)
{
	FILE *file = open_regular(path);
	uint8_t *bytes = NULL;
	size_t n = 0;
	int err;

	if (!file) {
		err = -errno;
		if (err == -ENOENT)
			warn("%s: there is no such file", path);
		return err;
	}
	err = read_all(file, path, &bytes, &n);
	fclose(file);
	err = err ?: digest_read(into, path, bytes, n);
	free(bytes);
	return err;
}
