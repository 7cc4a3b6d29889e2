/*
 * shim/hook/loader.c: the dynamic loader's functions that the shim stands before, and the objects
 * that it has loaded. Runs on the application's threads: when the library is loaded, and at first
 * calls and look-ups.
 */
#include <dlfcn.h>
#include <string.h>
#include "hook/loader.h"
#include "hook/slots.h"
#include "process/elf_scan.h"

#define DRIVER_SONAME "libcuda.so"

/* The assembly jumps through these. */
void *(*spy_real_dlsym)(void *, const char *);
void *(*spy_real_dlvsym)(void *, const char *, const char *);
void *(*spy_real_dlopen)(const char *, int);
void *(*spy_real_dlmopen)(Lmid_t, const char *, int);

int (*spy_real_dlclose)(void *);

/* Objects loaded with the program: those after the shim may interpose, those opened later not. */
size_t spy_loader_startup;
size_t spy_loader_self;

static int count_objects(const struct spy_object *object, void *data)
{
	(void)data;
	spy_loader_startup = object->position + 1;
	if (object->is_self)
		spy_loader_self = object->position;
	return 0;
}

/* May run before anything else of this process, inside a sanitizer's own beginning. */
__attribute__((no_sanitize("address", "undefined", "thread"))) void spy_loader_find(void)
{
	spy_real_dlvsym = spy_next_symbol("dlvsym");
	spy_real_dlopen = spy_next_symbol("dlopen");
	spy_real_dlmopen = spy_next_symbol("dlmopen");
	spy_real_dlclose = spy_next_symbol("dlclose");
	spy_real_dlsym = spy_next_symbol("dlsym");
}

void spy_loader_init(void)
{
	if (!spy_real_dlsym)
		spy_loader_find();
	spy_each_object(count_objects, NULL);
}

int spy_loader_layer(const struct spy_object *object, int fn)
{
	if (!spy_slots_is_runtime(fn))
		return strncmp(object->soname, DRIVER_SONAME, strlen(DRIVER_SONAME)) == 0
			       ? SPY_LAYER_DRIVER
			       : -1;
	for (size_t g = 3; g-- > 0;)
		if (spy_object_has_version(object, spy_generations[g].version))
			return spy_generations[g].layer;
	return -1;
}

static int visit_at(const struct spy_object *object, void *data)
{
	struct spy_place *at = data;
	size_t length, from = 0;

	if (at->address < object->begin || at->address >= object->end)
		return 0;
	at->found = true;
	at->position = object->position;
	length = strlen(object->path);
	if (length >= sizeof(at->path))
		from = length - sizeof(at->path) + 1;
	strcpy(at->path, object->path + from);
	at->layer = spy_loader_layer(object, at->fn);
	return 1;
}

struct spy_place spy_loader_at(const void *address, int fn)
{
	struct spy_place at = {.address = (uintptr_t)address, .fn = fn, .layer = -1};

	spy_each_object(visit_at, &at);
	return at;
}
