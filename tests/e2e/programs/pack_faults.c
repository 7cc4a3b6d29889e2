/*
 * tests/e2e/programs/pack_faults.c: preloaded into `cudaspy pack` and `unpack`: a machine that stops at any step, and a file system that
 * cannot exchange names.
 *
 *   PACK_STOP=N       the process is killed before the N-th call that changes a name, from 1 on
 *   PACK_EXCHANGE=no  names cannot be exchanged
 *
 * Steps are counted in the file that PACK_STEPS names.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void step(void)
{
	const char *stop = getenv("PACK_STOP"), *path = getenv("PACK_STEPS");
	static int n;
	FILE *file;

	n++;
	if (stop && atoi(stop) == n)
		raise(SIGKILL);
	file = path ? fopen(path, "we") : NULL;
	if (file) {
		fprintf(file, "%d\n", n);
		fclose(file);
	}
}

int renameat2(int old_dir, const char *old, int new_dir, const char *new, unsigned int flags)
{
	int (*real)(int, const char *, int, const char *, unsigned int);

	step();
	if (getenv("PACK_EXCHANGE") && flags) {
		errno = EINVAL;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "renameat2");
	return real(old_dir, old, new_dir, new, flags);
}

int rename(const char *old, const char *new)
{
	int (*real)(const char *, const char *);

	step();
	*(void **)&real = dlsym(RTLD_NEXT, "rename");
	return real(old, new);
}

int unlink(const char *path)
{
	int (*real)(const char *);

	step();
	*(void **)&real = dlsym(RTLD_NEXT, "unlink");
	return real(path);
}

int rmdir(const char *path)
{
	int (*real)(const char *);

	step();
	*(void **)&real = dlsym(RTLD_NEXT, "rmdir");
	return real(path);
}
