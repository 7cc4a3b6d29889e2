/*
 * tests/sim/driver_resolve.c: cuGetProcAddress: from a base name, a version and the per-thread flag to
 * one of the exported symbols, as the real driver answers: the newest symbol of the family that is
 * not newer than the version (since.def). Also cuGetExportTable and error names. Any thread, also
 * before cuInit.
 */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Every exported symbol with its address; the type does not matter here. */
#define DECLARE_DRIVER(name) extern char name##_address[] __asm__(#name);
#define ROW_DRIVER(name) {#name, name##_address},
#define NOTHING(name)
#define DECLARE_RT NOTHING
#define DECLARE_RT11 NOTHING
#define DECLARE_RT12 NOTHING
#define DECLARE_RT13 NOTHING
#define DECLARE_RT11_12 NOTHING
#define DECLARE_RT12_13 NOTHING
#define ROW_RT NOTHING
#define ROW_RT11 NOTHING
#define ROW_RT12 NOTHING
#define ROW_RT13 NOTHING
#define ROW_RT11_12 NOTHING
#define ROW_RT12_13 NOTHING

#define ENTRY(name, layer, record, contract, inspector) DECLARE_##layer(name)
#include "cudaspy/entrypoints.def"
#undef ENTRY

static const struct symbol {
	const char *name;
	char *address;
} symbols[] = {
#define ENTRY(name, layer, record, contract, inspector) ROW_##layer(name)
#include "cudaspy/entrypoints.def"
#undef ENTRY
};

static const struct since {
	const char *name;
	int version;
} since[] = {
#define SINCE(name, version) {#name, version},
#include "since.def"
#undef SINCE
};

static int compare(const void *key, const void *row)
{
	return strcmp(key, *(const char *const *)row);
}

/* Both tables are in strcmp order. */
static void *address_of(const char *name)
{
	const struct symbol *s = bsearch(name, symbols, sizeof(symbols) / sizeof(symbols[0]),
					 sizeof(symbols[0]), compare);

	return s ? s->address : NULL;
}

static int since_of(const char *name)
{
	const struct since *s =
		bsearch(name, since, sizeof(since) / sizeof(since[0]), sizeof(since[0]), compare);

	return s ? s->version : 0;
}

enum { FOUND, NOT_FOUND, VERSION_TOO_LOW };

static void *resolve(const char *name, int version, uint64_t flags, int *status)
{
	static const char *const family[] = {"", "_v2", "_v3", "_v4"};
	char symbol[128], best[128] = "";
	void *found = NULL, *variant;
	bool known = false;

	for (size_t i = 0; i < sizeof(family) / sizeof(family[0]); i++) {
		void *address;

		snprintf(symbol, sizeof(symbol), "%s%s", name, family[i]);
		address = address_of(symbol);
		if (!address)
			continue;
		known = true;
		if (since_of(symbol) <= version) {
			found = address;
			strcpy(best, symbol);
		}
	}
	*status = found ? FOUND : known ? VERSION_TOO_LOW : NOT_FOUND;
	if (!found || !(flags & 2))
		return found;
	best[sizeof(best) - 8] = 0;
	strcat(best, "_ptsz");
	variant = address_of(best);
	if (!variant) {
		best[strlen(best) - 2] = 'd';
		best[strlen(best) - 1] = 's';
		variant = address_of(best);
	}
	return variant ? variant : found;
}

static int get_proc_address(const char *name, void **out, int version, uint64_t flags, int *status)
{
	int ignored;

	if (!name || !out || flags > 2)
		return SIM_INVALID_VALUE;
	/* The runtime asks for "" with version 0, and is told that this is fine. */
	if (!*name) {
		*out = NULL;
		if (status)
			*status = NOT_FOUND;
		return SIM_OK;
	}
	*out = resolve(name, version, flags, status ? status : &ignored);
	return *out || status ? SIM_OK : SIM_NOT_FOUND;
}
EXPORT_ANYTIME(cuGetProcAddress, (const char *name, void **out, int version, uint64_t flags),
	       get_proc_address(name, out, version, flags, NULL))
EXPORT_ANYTIME(cuGetProcAddress_v2,
	       (const char *name, void **out, int version, uint64_t flags, int *status),
	       get_proc_address(name, out, version, flags, status))

/* ---- the one private table ---- */
static struct sim_thread *thread_self(void)
{
	return &sim_self;
}

void sim_declare_global(void *library, const char *name, size_t bytes, bool managed);

static void runtime_lock(void)
{
	sim_lock_global(SIM_LOCK_RUNTIME);
}

static void runtime_unlock(void)
{
	sim_unlock_global(SIM_LOCK_RUNTIME);
}

static const struct sim_private private_table = {
	.size = sizeof(struct sim_private),
	.thread = thread_self,
	.spans_on = &sim_spans_on,
	.span_open = sim_span_open,
	.span_close = sim_span_close,
	.unimplemented = sim_unimplemented,
	.declare_global = sim_declare_global,
	.lock = runtime_lock,
	.unlock = runtime_unlock,
};

/* NVIDIA's runtime asks for tables that only NVIDIA's driver has, and gives up. */
static void refuse_real_runtime(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (sim_script.init_result != SIM_NO_DEVICE && !atomic_flag_test_and_set(&said))
		fprintf(stderr,
			"sim: %s has NVIDIA's runtime linked to it, which does not work with the simulator's "
			"driver: build it with 'nvcc -cudart shared'\n",
			program_invocation_short_name);
}

static int export_table(const void **out, const void *uuid)
{
	if (!out || !uuid)
		return SIM_INVALID_VALUE;
	*out = NULL;
	if (memcmp(uuid, sim_private_uuid, 16) != 0) {
		if (memcmp(uuid, sim_missing_uuids[0], 16) != 0 &&
		    memcmp(uuid, sim_missing_uuids[1], 16) != 0)
			refuse_real_runtime();
		return SIM_NOT_FOUND;
	}
	*out = &private_table;
	return SIM_OK;
}
EXPORT_ANYTIME(cuGetExportTable, (const void **out, const void *uuid), export_table(out, uuid))

/* ---- names of errors ---- */
static int error_text(int code, const char **out, bool name)
{
	switch (code) {
#define ERROR(number, driver_name, runtime_name, text) \
	case number: \
		*out = name ? driver_name : text; \
		return SIM_OK;
#include "cudaspy/errors.def"
#undef ERROR
	}
	*out = NULL;
	return SIM_INVALID_VALUE;
}
EXPORT_ANYTIME(cuGetErrorName, (int code, const char **out), error_text(code, out, true))
EXPORT_ANYTIME(cuGetErrorString, (int code, const char **out), error_text(code, out, false))
