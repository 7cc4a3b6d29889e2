/*
 * analyzer/base/magic.c: what kind of file it is. Called where arguments are looked at.
 */
#include <sys/stat.h>
#include "magic.h"

bool file_is_digest(const char *path)
{
	char magic[DIGEST_MAGIC_BYTES];
	struct stat status;
	FILE *file;
	bool is;

	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	is = fread(magic, 1, sizeof(magic), file) == sizeof(magic) &&
	     !memcmp(magic, DIGEST_MAGIC, sizeof(magic));
	fclose(file);
	return is;
}
