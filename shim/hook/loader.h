/*
 * shim/hook/loader.h: the dynamic loader's functions, and the objects that it has loaded. Called on
 * the application's threads, in slow paths.
 */
#ifndef CUDASPY_SHIM_LOADER_H
#define CUDASPY_SHIM_LOADER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)
/* The real functions. The assembly jumps through these. */
extern void *(*spy_real_dlsym)(void *, const char *);
extern void *(*spy_real_dlvsym)(void *, const char *, const char *);
extern void *(*spy_real_dlopen)(const char *, int);
extern void *(*spy_real_dlmopen)(Lmid_t, const char *, int);
extern int (*spy_real_dlclose)(void *);
#pragma GCC visibility pop

/* Objects loaded with the program: those after the shim may interpose, those opened later not. */
extern size_t spy_loader_startup;
extern size_t spy_loader_self;

struct spy_object;

/* Finds the functions the shim itself interposes; called by the first look-up, by the assembly. */
void spy_loader_find(void);

/* Looks at the objects loaded with the program; when the library is loaded. */
void spy_loader_init(void);

/* The enum spy_layer of a loaded object that provides the function, or -1: neither libcuda nor a
 * libcudart. */
int spy_loader_layer(const struct spy_object *object, int fn);

/* Which object an address lies in. */
struct spy_place {
	uintptr_t address;
	int fn;
	bool found;
	char path[256]; /* the end of it */
	int layer; /* enum spy_layer for fn, -1 no CUDA library */
	size_t position; /* in the loader's list */
};

struct spy_place spy_loader_at(const void *address, int fn);

#endif
