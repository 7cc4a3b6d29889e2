/*
 * tests/e2e/programs/phdr.c: makes CUDA calls in a callback of dl_iterate_phdr, where the loader's lock is held, while another
 * thread opens libraries. Prints how many threads there are before the callback, at its end, and after it.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include "sim_program.h"

static atomic_int over;

static int threads(void)
{
	DIR *folder = opendir("/proc/self/task");
	const struct dirent *entry;
	int n = 0;

	while (folder && (entry = readdir(folder)))
		n += entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return n;
}

static void *open_libraries(void *name)
{
	while (!over) {
		void *library = dlopen(name, RTLD_NOW);

		if (library)
			dlclose(library);
	}
	return NULL;
}

/* Calls with pauses between them, behind each of which the recorder looks at what is due. */
static void work(void)
{
	for (int i = 0; i < 20; i++) {
		void *memory = NULL;

		usleep(5000);
		cudaMalloc(&memory, 4096);
		cudaFree(memory);
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *within)
{
	(void)info;
	(void)size;
	work();
	*(int *)within = threads();
	return 1;
}

int main(int argc, char **argv)
{
	int before, within = 0;
	pthread_t opener;

	if (argc != 2 || cudaFree(NULL))
		return 1;
	pthread_create(&opener, NULL, open_libraries, argv[1]);
	before = threads();
	dl_iterate_phdr(visit, &within);
	work();
	printf("%d %d %d\n", before, within, threads());
	over = 1;
	return pthread_join(opener, NULL);
}
