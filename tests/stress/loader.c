/*
 * tests/stress/loader.c: the dynamic loader, used while CUDA is: libraries that come and go and call CUDA in
 * their constructors, look-ups, and calls made under the loader's own lock. (RTLD_DEEPBIND would hide calls from
 * the recorder: it says so, and tests/e2e/test_ways_plugins.sh looks.)
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime.h"
#include "stress.h"

/* DIR/libstress_pluginN.so, beside the program. */
static void *open_plugin(unsigned int n, int mode)
{
	char path[4200];
	const char *end = strrchr(self, '/');

	snprintf(path, sizeof(path), "%.*s/libstress_plugin%u.so", (int)(end - self), self, n);
	return dlopen(path, mode);
}

void do_plugins(struct actor *actor)
{
	static const int modes[] = {RTLD_NOW, RTLD_LAZY, RTLD_NOW | RTLD_GLOBAL};

	for (unsigned int i = 1 + below(actor, 5); i > 0; i--) {
		void *handle = open_plugin(below(actor, 4), modes[below(actor, 3)]);
		int (*work)(int) = handle ? (int (*)(int))dlsym(handle, "plugin_work") : NULL;

		see(actor, work ? (uint64_t)work((int)i) : 0);
		if (one_in(actor, 3))
			burst(actor);
		if (handle && !one_in(actor, 8))
			see(actor, (uint64_t)dlclose(handle));
	}
}

static void call_found(struct actor *actor, void *function)
{
	int device = 1;

	see(actor, function != NULL);
	if (function)
		see(actor, (uint64_t)CALL(((int (*)(int *))function)(&device)));
}

void do_lookups(struct actor *actor)
{
	void *runtime = dlopen("libcudart.so.13", RTLD_NOW);

	for (unsigned int i = 1 + below(actor, 8); i > 0; i--) {
		switch (below(actor, 6)) {
		case 0:
			call_found(actor, dlsym(RTLD_DEFAULT, "cudaGetDevice"));
			break;
		case 1:
			call_found(actor, runtime ? dlsym(runtime, "cudaGetDevice") : NULL);
			break;
		case 2:
			call_found(actor,
				   runtime ? dlvsym(runtime, "cudaGetDevice", "libcudart.so.13")
					   : NULL);
			break;
		case 3:
			see(actor, dlsym(RTLD_DEFAULT, "cudaNoSuchFunction") != NULL);
			see(actor, dlerror() != NULL);
			break;
		case 4:
			see(actor, dlsym(RTLD_NEXT, "printf") != NULL);
			break;
		case 5:
			see(actor, dlopen("/no/such/library.so", RTLD_NOW) != NULL);
			see(actor, dlerror() != NULL);
			break;
		}
	}
	if (runtime)
		dlclose(runtime);
}

/* How many objects there are differs; that the first few can be visited does not. */
static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	int device;

	(void)info, (void)size;
	CALL(cudaGetDevice(&device));
	CALL(cudaSetDevice(0));
	CALL(cudaStreamQuery(NULL));
	return ++*(int *)data == 3;
}

void do_objects(struct actor *actor)
{
	int visited = 0;

	see(actor, (uint64_t)dl_iterate_phdr(visit, &visited));
	see(actor, (uint64_t)visited);
}
