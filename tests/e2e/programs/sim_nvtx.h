/*
 * tests/e2e/programs/sim_nvtx.h: NVTX, as far as programs for the simulator need it: ranges, as NVTX's header calls them
 * (nvtx3/nvtxDetail/nvtxTypes.h), by the library that the environment names.
 */
#ifndef SIM_NVTX_H
#define SIM_NVTX_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { CORE = 1, MARK_A = 2, RANGE_START_A = 5, RANGE_END = 7, PUSH_A = 9, POP = 11 };

static void *functions[17];
static void **places[17];

static int table_of(unsigned int module, void ****table, unsigned int *size)
{
	if (module != CORE)
		return 0;
	*table = places;
	*size = 16;
	return 1;
}

static const void *exports(unsigned int which)
{
	static const struct {
		size_t size;
		int (*table_of)(unsigned int module, void ****table, unsigned int *size);
	} callbacks = {sizeof(callbacks), table_of};

	return which == 1 ? &callbacks : NULL;
}

__attribute__((unused)) static void find_nvtx(void)
{
	const char *name = getenv("NVTX_INJECTION64_PATH");
	void *library = name ? dlopen(name, RTLD_LAZY) : NULL;
	int (*initialise)(const void *(*exports)(unsigned int)) =
		library ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
	int i;

	for (i = 0; i < 17; i++)
		places[i] = &functions[i];
	if (initialise)
		initialise(exports);
}

__attribute__((unused)) static void push(const char *name)
{
	if (functions[PUSH_A])
		((int (*)(const char *))functions[PUSH_A])(name);
}

__attribute__((unused)) static void pop(void)
{
	if (functions[POP])
		((int (*)(void))functions[POP])();
}

static uint64_t open_id;

__attribute__((unused)) static void begin(const char *name)
{
	if (functions[RANGE_START_A])
		open_id = ((uint64_t(*)(const char *))functions[RANGE_START_A])(name);
}

__attribute__((unused)) static void *end(void *unused)
{
	(void)unused;
	if (functions[RANGE_END])
		((void (*)(uint64_t))functions[RANGE_END])(open_id);
	return NULL;
}

#endif
