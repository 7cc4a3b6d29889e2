/*
 * analyzer/cmd_run/loadable.c: looks into a program's file before it is run. Called by `cudaspy run`. A
 * program that the shim cannot get into would leave an empty report and no word why.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "loadable.h"

#define SCRIPTS_MOST 4 /* one naming the next as its interpreter: as many as Linux follows */

/* The file that execvp would run. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH") ?: "/bin:/usr/bin";
	size_t length;

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	for (;; dirs += length + 1) {
		length = strcspn(dirs, ":");
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, dirs, length ? "/" : "",
			     name) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
		if (!dirs[length])
			return false;
	}
}

/* The interpreter of a script in place of it. False: it is none. */
static bool follow_script(char path[PATH_MAX])
{
	char line[PATH_MAX + 8] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *begin = line + 2;

	if (fd < 0)
		return false;
	if (read(fd, line, sizeof(line) - 1) < 0)
		line[0] = '\0';
	close(fd);
	if (strncmp(line, "#!", 2) != 0)
		return false;
	begin += strspn(begin, " \t");
	begin[strcspn(begin, " \t\r\n")] = '\0';
	snprintf(path, PATH_MAX, "%s", begin);
	return true;
}

/* The loader that a program names; empty: none, it is statically linked. False: not known. */
static bool read_interpreter(int fd, char interpreter[PATH_MAX])
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	*interpreter = '\0';
	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    header.e_phentsize != sizeof(segment))
		return false;
	for (int i = 0; i < header.e_phnum; i++) {
		off_t at = (off_t)(header.e_phoff + (size_t)i * sizeof(segment));

		if (pread(fd, &segment, sizeof(segment), at) != sizeof(segment))
			return false;
		if (segment.p_type != PT_INTERP)
			continue;
		if (segment.p_filesz >= PATH_MAX ||
		    pread(fd, interpreter, segment.p_filesz, (off_t)segment.p_offset) !=
			    (ssize_t)segment.p_filesz)
			return false;
		interpreter[segment.p_filesz] = '\0';
		return true;
	}
	return true;
}

static bool look_into(int fd, char *text, size_t size)
{
	unsigned char ident[EI_NIDENT];
	char interpreter[PATH_MAX];
	const char *name;

	if (pread(fd, ident, sizeof(ident), 0) != sizeof(ident) ||
	    memcmp(ident, ELFMAG, SELFMAG) != 0)
		return true;
	if (ident[EI_CLASS] != ELFCLASS64) {
		snprintf(text, size, "is a 32-bit program, and the recorder has 64 bits");
		return true;
	}
	if (!read_interpreter(fd, interpreter))
		return true;
	if (!*interpreter) {
		snprintf(text, size,
			 "is statically linked: there is no loader that could load the recorder");
		return true;
	}
	name = strrchr(interpreter, '/');
	name = name ? name + 1 : interpreter;
	if (strncmp(name, "ld-musl-", 8) != 0)
		return true;
	snprintf(text, size, "is linked to musl (%s), and the recorder to the GNU C library",
		 interpreter);
	return false;
}

/* The loader preloads nothing that has a path into a program with more rights than its user. */
static bool gains_rights(int fd)
{
	struct stat status;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || fstat(fd, &status) < 0)
		return false;
	if ((status.st_mode & S_ISUID && status.st_uid != getuid()) ||
	    (status.st_mode & S_ISGID && status.st_mode & S_IXGRP && status.st_gid != getgid()))
		return true;
	return getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

bool loadable_look(const char *program, char *text, size_t size)
{
	char path[PATH_MAX];
	bool starts;
	int fd;

	*text = '\0';
	if (!find_program(program, path))
		return true;
	for (int i = 0; i < SCRIPTS_MOST && follow_script(path); i++)
		;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	starts = look_into(fd, text, size);
	if (!*text && gains_rights(fd))
		snprintf(text, size,
			 "gets more rights than its user has (set-user-ID, set-group-ID or "
			 "capabilities): the loader loads no recorder into it");
	close(fd);
	return starts;
}
