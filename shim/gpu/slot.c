/*
 * shim/gpu/slot.c: CUPTI has one slot for tools. A tool inside the program (a framework's profiler) that takes it finds
 * it free: these functions are CUPTI's, exported before CUPTI's own, and make libcudaspy_gpu.so give way first. Without
 * CUDASPY_GPU they only pass on. On the application's threads.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include "gpu/gpu.h"
#include "hook/loader.h"
#include "process/options.h"

#define EXPORT __attribute__((visibility("default")))

/* CUpti_CallbackFunc and the rest are passed on as they are: pointers. CUptiResult, cupti_result.h:
 * CUPTI_ERROR_NOT_INITIALIZED. */
#define NOT_INITIALIZED 15

/* A loaded CUPTI's function. */
struct search {
	const char *name;
	void *found;
};

static int look_into(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	void *handle;

	(void)size;
	if (!base || strncmp(base, "/libcupti.so", strlen("/libcupti.so")) != 0)
		return 0;
	handle = spy_real_dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return 0;
	search->found = spy_real_dlsym(handle, search->name);
	spy_real_dlclose(handle);
	return search->found != NULL;
}

/* What the caller would have got without us. */
static void *real(const char *name, void **known)
{
	struct search search = {.name = name, .found = __atomic_load_n(known, __ATOMIC_RELAXED)};

	if (search.found)
		return search.found;
	search.found = spy_real_dlsym(RTLD_NEXT, name);
	if (!search.found)
		dl_iterate_phdr(look_into, &search);
	__atomic_store_n(known, search.found, __ATOMIC_RELAXED);
	return search.found;
}

#define FUNCTIONS(F) \
	F(cuptiSubscribe, (void **subscriber, void *callback, void *data), \
	  (subscriber, callback, data)) \
	F(cuptiSubscribe_v2, (void **subscriber, void *callback, void *data, void *params), \
	  (subscriber, callback, data, params)) \
	F(cuptiActivityRegisterCallbacks, (void *requested, void *completed), \
	  (requested, completed))

#define DEFINE(name, params, args) \
	EXPORT int name params; \
	int name params \
	{ \
		static void *known; \
		int(*function) params = real(#name, &known); \
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
