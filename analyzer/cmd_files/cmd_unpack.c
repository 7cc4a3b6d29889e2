/*
 * analyzer/cmd_files/cmd_unpack.c: `cudaspy unpack`: trace directories out of a container.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/command.h"
#include "pack/pack.h"

struct options {
	const char *output;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"output", 'o', "DIR", "leave FILE, and make the directories in DIR", offsetof(struct options, output)},
};
/* clang-format on */

/* If it still is what was unpacked, and none of its directories has taken its name. */
static int remove_container(const struct container *c)
{
	struct stat st;
	int err;

	if (stat(c->path, &st) || st.st_dev != c->device || st.st_ino != c->inode)
		return 0;
	if (!unlink(c->path))
		return 0;
	err = errno;
	warn("%s: %s", c->path, strerror(err));
	return -err;
}

static int unpack_file(const char *path, const char *output)
{
	struct container c;
	char *parent = output ? xstrdup(output) : folder_of_path(path), *below;
	int err = container_open(&c, path, false);

	if (!err) {
		below = xasprintf("%s/.", parent);
		err = make_parents(below) ?: unpack_container(&c, parent, !output);
		free(below);
	}
	if (!err && !output)
		err = remove_container(&c);
	if (!err && (c.torn || c.refused))
		err = -EBADMSG; /* it has been said what is missing */
	container_release(&c);
	free(parent);
	return err;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {0};
	int status, i, err = 0;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (argc < 2) {
		warn("unpack: no file (cudaspy help unpack)");
		return STATUS_USAGE;
	}
	for (i = 1; i < argc; i++) {
		int one = unpack_file(argv[i], options.output);

		err = err ?: one;
	}
	warnings_flush();
	return err ? STATUS_NOTHING : STATUS_FINE;
}

const struct command command_unpack = {
	.name = "unpack",
	.arguments = "[options] FILE...",
	.summary = "Restores the trace directories that `cudaspy pack` has put into FILE",
	.text = "Each gets its old name, in the folder of FILE, which is removed when all of "
		"them are complete. Checksums have to be right. If FILE is damaged or cut off, "
		"--output=DIR restores what can be read, and FILE stays. Exit status 2: "
		"something could not be unpacked.\n",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
