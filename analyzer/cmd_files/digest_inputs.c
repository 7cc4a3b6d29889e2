/*
 * analyzer/cmd_files/digest_inputs.c: digests that are named on a command line, in a list or by their folder. Called by `merge`,
 * `report` and `diff`.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "cmd_digest.h"

#define LISTS_DEEP 8 /* lists in lists */
#define SUFFIX ".digest"

static void read_one(struct digest *digest, const char *name, struct digest_inputs *inputs)
{
	int err = digest_read_file(digest, name);

	if (err == -EEXIST)
		inputs->differ = true;
	else if (err)
		inputs->bad++;
	else
		inputs->read++;
}

static int is_digest(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name), suffix = strlen(SUFFIX);

	return n > suffix && !strcmp(entry->d_name + n - suffix, SUFFIX);
}

static void read_folder(struct digest *digest, const char *name, struct digest_inputs *inputs)
{
	struct dirent **entries;
	int n = scandir(name, &entries, is_digest, alphasort), i;

	if (n <= 0) {
		if (n < 0)
			warn("%s: %s", name, strerror(errno));
		else
			warn("%s: no digests in it: no files called *" SUFFIX, name);
		inputs->bad++;
	}
	for (i = 0; i < n; i++) {
		char *path = xasprintf("%s/%s", name, entries[i]->d_name);

		read_one(digest, path, inputs);
		free(path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static void read_name(struct digest *digest, const char *name, unsigned int deep,
		      struct digest_inputs *inputs);

static void read_list(struct digest *digest, const char *name, unsigned int deep,
		      struct digest_inputs *inputs)
{
	bool standard = !strcmp(name, "-");
	FILE *file = standard ? stdin : fopen(name, "re");
	char *line = NULL;
	size_t size = 0, names = 0;
	ssize_t n;

	if (!file || deep > LISTS_DEEP) {
		warn("%s: %s", name, file ? "lists in lists, too deep" : strerror(errno));
		inputs->bad++;
	} else {
		while ((n = getline(&line, &size, file)) >= 0) {
			if (n && line[n - 1] == '\n')
				line[n - 1] = '\0';
			if (!*line)
				continue;
			names++;
			read_name(digest, line, deep + 1, inputs);
		}
		if (!names)
			warn("%s: no names of digests in it", standard ? "standard input" : name);
	}
	free(line);
	if (file && !standard)
		fclose(file);
}

static void read_name(struct digest *digest, const char *name, unsigned int deep,
		      struct digest_inputs *inputs)
{
	struct stat status;

	if (*name == '@')
		read_list(digest, name + 1, deep, inputs);
	else if (!stat(name, &status) && S_ISDIR(status.st_mode))
		read_folder(digest, name, inputs);
	else
		read_one(digest, name, inputs);
}

void digest_read_all(struct digest *digest, const char *const *names, size_t n,
		     struct digest_inputs *inputs)
{
	for (size_t i = 0; i < n; i++)
		read_name(digest, names[i], 0, inputs);
}
