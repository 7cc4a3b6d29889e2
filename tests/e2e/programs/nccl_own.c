/*
 * tests/e2e/programs/nccl_own.c: a program with a profiler for NCCL of its own, of an old version of the interface. It looks for
 * profilers as NCCL does, the newest first, and must find its own and no other.
 */
#include <dlfcn.h>
#include <stdio.h>

const char ncclProfiler_v2[] = "own";

int main(void)
{
	void *here = dlopen(NULL, RTLD_NOW);
	char name[] = "ncclProfiler_v0";
	int version, status = 0;

	for (version = 7; version > 0; version--) {
		const void *found;

		name[sizeof(name) - 2] = (char)('0' + version);
		found = dlsym(here, name);
		if (found == (version == 2 ? ncclProfiler_v2 : NULL))
			continue;
		fprintf(stderr, "nccl_own: %s: %p\n", name, found);
		status = 1;
	}
	return status;
}
