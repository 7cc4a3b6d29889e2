/*
 * shim/nccl/arrange.c: NCCL finds the recorder, unless the user has a profiler for it. Runs when the library is loaded.
 *
 * NCCL opens the library that NCCL_PROFILER_PLUGIN names, or libnccl-profiler.so, and with the name STATIC_PLUGIN looks
 * into what the program has loaded. So the recorder sets the variable to that. It does not where the user has set the
 * variable, in the environment or in a file that NCCL reads, or where NCCL would find a library. Programs that are started
 * by this one inherit the variable; where they are not recorded, NCCL finds nothing and goes on.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/disk.h"
#include "nccl/operations.h"
#include "nccl/profiler.h"
#include "nvtx/inject.h"
#include "process/options.h"
#include "state/session.h"

#define VARIABLE "NCCL_PROFILER_PLUGIN"
#define OWN_VALUE "STATIC_PLUGIN"
#define LIBRARY "/libnccl-profiler.so"
#define LOADERS_CACHE "/etc/ld.so.cache"

/* ---- files ---------------------------------------------------------------------------------------- */

typedef bool look_for(const char *text, size_t bytes);

/* What is to be seen in a file; false where there is none. */
static bool look_into(const char *path, look_for *look)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	void *text = MAP_FAILED;
	bool found;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
		text = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (text == MAP_FAILED)
		return false;
	found = look(text, (size_t)status.st_size);
	munmap(text, (size_t)status.st_size);
	return found;
}

/* A line that sets the variable. */
static bool sets_variable(const char *text, size_t bytes)
{
	const char *end = text + bytes;

	for (const char *line = text; line && line < end; line++) {
		size_t rest = (size_t)(end - line);

		if (rest >= strlen(VARIABLE) && memcmp(line, VARIABLE, strlen(VARIABLE)) == 0)
			return true;
		line = memchr(line, '\n', rest);
		if (!line)
			break;
	}
	return false;
}

/* Paths of the loader's cache end with a NUL. */
static bool has_library(const char *text, size_t bytes)
{
	return memmem(text, bytes, LIBRARY, sizeof(LIBRARY));
}

/* ---- what the user has ------------------------------------------------------------------------------ */

static char text[SPY_PATH_MAX + 64]; /* what there is to say of it */

static bool is_set_in(const char *path)
{
	if (!path || !*path || !look_into(path, sets_variable))
		return false;
	snprintf(text, sizeof(text), VARIABLE " in %s", path);
	return true;
}

static bool is_set_in_a_file(void)
{
	const char *home = getenv("HOME");
	char path[SPY_PATH_MAX];

	if (is_set_in(getenv("NCCL_CONF_FILE")) || is_set_in("/etc/nccl.conf"))
		return true;
	if (!home || (size_t)snprintf(path, sizeof(path), "%s/.nccl.conf", home) >= sizeof(path))
		return false;
	return is_set_in(path);
}

/* An empty folder is the current one, as for the loader. */
static bool is_in_folder(const char *folder, size_t length)
{
	int written = snprintf(text, sizeof(text), "%.*s" LIBRARY, length ? (int)length : 1,
			       length ? folder : ".");

	return written > 0 && (size_t)written < sizeof(text) && access(text, F_OK) == 0;
}

static bool is_in_path(const char *path)
{
	while (path && *path) {
		size_t length = strcspn(path, ":;");

		if (is_in_folder(path, length))
			return true;
		path += length + (path[length] != '\0');
	}
	return false;
}

static bool is_to_be_found(void)
{
	static const char folders[] = "/lib64:/usr/lib64:/lib:/usr/lib";

	if (is_in_path(getenv("LD_LIBRARY_PATH")) || is_in_path(folders))
		return true;
	if (!look_into(LOADERS_CACHE, has_library))
		return false;
	snprintf(text, sizeof(text), "%s in " LOADERS_CACHE, &LIBRARY[1]);
	return true;
}

/* Has the user a profiler? Then `text` says which. */
static bool is_taken(const char *variable)
{
	if (variable && strcmp(variable, OWN_VALUE) != 0) {
		snprintf(text, sizeof(text), VARIABLE "=%s", variable);
		return true;
	}
	if (spy_nccl_has_other()) {
		snprintf(text, sizeof(text), "a profiler that is linked into the program");
		return true;
	}
	/* Ours, inherited from a parent, which has looked. */
	return !variable && (is_set_in_a_file() || is_to_be_found());
}

void spy_nccl_arrange(void)
{
	const char *variable = getenv(VARIABLE);

	/* Else the environment is not ours alone any more. */
	if (!spy_nvtx_is_early())
		return;
	if (spy_session_failed() || spy_options.nonccl) {
		spy_nccl_state(SPY_NCCL_OFF, "not wanted");
		return;
	}
	if (is_taken(variable)) {
		spy_nccl_state(SPY_NCCL_TAKEN, text);
		return;
	}
	spy_nccl_serving = variable || setenv(VARIABLE, OWN_VALUE, 1) == 0;
}
