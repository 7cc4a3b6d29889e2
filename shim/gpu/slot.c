/*
 * shim/gpu/slot.c: CUPTI has one slot for tools. A tool inside the program (a framework's profiler) that takes it finds
 * it free: these functions are CUPTI's, exported before CUPTI's own, and make libcudaspy_gpu.so give way first. Without
 * CUDASPY_GPU they only pass on. On the application's threads.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include "gpu/gpu.h"
#include "hook/loader.h"
#include "lib/disk.h"
#include "process/options.h"

#define EXPORT __attribute__((visibility("default")))

/* CUpti_CallbackFunc and the rest are passed on as they are: pointers. CUptiResult, cupti_result.h:
 * CUPTI_ERROR_NOT_INITIALIZED. */
#define NOT_INITIALIZED 15

/* The path of a loaded CUPTI: the one behind so many others. */
struct search {
	unsigned int skip;
	char path[SPY_PATH_MAX];
};

/* Nothing is opened here: the loader's list is locked, and who opens something locks it the other way round. */
static int look_into(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	if (!base || strncmp(base, "/libcupti.so", strlen("/libcupti.so")) != 0 ||
	    strlen(info->dlpi_name) >= sizeof(search->path) || search->skip--)
		return 0;
	strcpy(search->path, info->dlpi_name);
	return 1;
}

static void *find_in(const char *path, const char *name)
{
	void *handle = spy_real_dlopen(path, RTLD_LAZY | RTLD_NOLOAD), *found;

	if (!handle)
		return NULL;
	found = spy_real_dlsym(handle, name);
	spy_real_dlclose(handle);
	return found;
}

#define LOADED_MOST 8

/* What the caller would have got without us. Looked up each time: it is rarely called, and a CUPTI may be unloaded. */
static void *real(const char *name)
{
	void *found = spy_real_dlsym(RTLD_NEXT, name);

	for (unsigned int i = 0; !found && i < LOADED_MOST; i++) {
		struct search search = {.skip = i};

		if (!dl_iterate_phdr(look_into, &search))
			break;
		found = find_in(search.path, name);
	}
	return found;
}

#define FUNCTIONS(F) \
	F(cuptiSubscribe, (void **subscriber, void *callback, void *data), \
	  (subscriber, callback, data)) \
	F(cuptiSubscribe_v2, (void **subscriber, void *callback, void *data, void *params), \
	  (subscriber, callback, data, params)) \
	F(cuptiActivityRegisterCallbacks, (void *requested, void *completed), \
	  (requested, completed)) \
	F(cuptiFinalize, (void), ())

#define DEFINE(name, params, args) \
	EXPORT int name params; \
	int name params \
	{ \
		int(*function) params = real(#name); \
\
		spy_gpu_give_way(__builtin_return_address(0)); \
		return function ? function args : NOT_INITIALIZED; \
	}
FUNCTIONS(DEFINE)

void *spy_gpu_look_up(const char *name, void *found)
{
#define ROW(name, params, args) {#name, (void *)name},
	static const struct {
		const char *name;
		void *function;
	} ours[] = {FUNCTIONS(ROW)};

	for (size_t i = 0; found && spy_options.gpu && i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strcmp(name, ours[i].name) == 0)
			return ours[i].function;
	return found;
}
