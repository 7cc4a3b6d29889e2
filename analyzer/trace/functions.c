/*
 * analyzer/trace/functions.c: the functions that traces speak of. Called while traces are opened,
 * and by the model for numbers it has not met.
 */
#include <stdlib.h>
#include <string.h>
#include "functions.h"
#include "base/hash.h"
#include "base/lines.h"

#define FUNCTIONS_MOST 16384 /* are distinguished */

struct function_name {
	uint32_t number;
	UT_hash_handle hh;
};

static const struct {
	const char *name;
	uint8_t contract;
} rows[] = {
#define ENTRY(name, layer, record, contract, inspector) {#name, SPY_CONTRACT_##contract},
#include "cudaspy/entrypoints.def"
};

static uint8_t what_does(const char *name)
{
	static const struct {
		const char *part; /* of the name */
		uint8_t does;
	} all[] = {
		{"EventRecord", FUNCTION_RECORDS_EVENT},
		{"WaitEvent", FUNCTION_WAITS_FOR_EVENT},
		{"GraphLaunch", FUNCTION_LAUNCHES_GRAPH},
		{"BeginCapture", FUNCTION_BEGINS_CAPTURE},
		{"EndCapture", FUNCTION_ENDS_CAPTURE},
		{"StreamCreate", FUNCTION_CREATES_STREAM},
		{"StreamDestroy", FUNCTION_DESTROYS_STREAM},
		{"EventCreate", FUNCTION_MAKES_EVENT},
		{"EventDestroy", FUNCTION_MAKES_EVENT},
		{"GraphInstantiate", FUNCTION_MAKES_GRAPH},
		{"GraphExecDestroy", FUNCTION_MAKES_GRAPH},
		{"MemSetAccess", FUNCTION_OPENS_MAPPING},
		{"EnablePeerAccess", FUNCTION_OPENS_PEER},
		{"DisablePeerAccess", FUNCTION_CLOSES_PEER},
		{"MemPoolSetAccess", FUNCTION_OPENS_POOL},
		{"IpcOpenMemHandle", FUNCTION_OPENS_SHARED},
		{"CtxDestroy", FUNCTION_ENDS_CONTEXT},
		{"CtxDetach", FUNCTION_ENDS_CONTEXT},
		{"PrimaryCtxRelease", FUNCTION_ENDS_CONTEXT},
		{"PrimaryCtxReset", FUNCTION_ENDS_CONTEXT},
		{"cudaDeviceReset", FUNCTION_ENDS_CONTEXT},
		{"cudaThreadExit", FUNCTION_ENDS_CONTEXT},
		{"WaitValue", FUNCTION_WAITS_FOR_OTHERS},
		{"BatchMemOp", FUNCTION_WAITS_FOR_OTHERS},
		{"WaitExternal", FUNCTION_WAITS_FOR_OTHERS},
		{"GraphAddHostNode", FUNCTION_WAITS_FOR_OTHERS},
		{"GraphAddNode", FUNCTION_WAITS_FOR_OTHERS}, /* of any kind */
		{"HostFunc", FUNCTION_SHOWS_OTHERS},
		{"AddCallback", FUNCTION_SHOWS_OTHERS},
		{"Graphics", FUNCTION_SHOWS_OTHERS},
		{"SignalExternal", FUNCTION_SHOWS_OTHERS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (strstr(name, all[i].part))
			return all[i].does;
	return FUNCTION_OTHER;
}

static uint32_t add(struct functions *f, const char *name)
{
	struct function_name *entry = xcalloc(1, sizeof(*entry));
	uint32_t number = f->count;

	f->all = grow(f->all, f->count, sizeof(*f->all));
	f->all[f->count++] = (struct function){
		.name = xstrdup(name), .contract = SPY_CONTRACT_HOST, .does = what_does(name)};
	entry->number = number;
	HASH_ADD_KEYPTR(hh, f->by_name, f->all[number].name, strlen(name), entry);
	return number;
}

void functions_init(struct functions *f)
{
	*f = (struct functions){0};
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		add(f, rows[i].name);
		f->all[i].contract = rows[i].contract;
	}
}

void functions_release(struct functions *f)
{
	struct function_name *entry, *next;

	HASH_EMPTY (f->by_name, entry, next)
		free(entry);
	for (uint32_t i = 0; i < f->count; i++)
		free(f->all[i].name);
	free(f->all);
	*f = (struct functions){0};
}

uint32_t functions_number(struct functions *f, const char *name)
{
	struct function_name *entry;
	char *shown = visible(name);
	uint32_t number;

	HASH_FIND(hh, f->by_name, shown, strlen(shown), entry);
	if (!entry && f->count >= FUNCTIONS_MOST) { /* damage: CUDA has some thousand */
		free(shown);
		shown = xstrdup("other functions");
		HASH_FIND(hh, f->by_name, shown, strlen(shown), entry);
	}
	number = entry ? entry->number : add(f, shown);
	free(shown);
	return number;
}

bool functions_has(const struct functions *f, const char *name)
{
	const struct function_name *entry;

	HASH_FIND(hh, f->by_name, name, strlen(name), entry);
	return entry;
}

bool functions_known(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strncmp(rows[i].name, name, length) && !rows[i].name[length])
			return true;
	return false;
}

bool functions_async_copy(const struct functions *f, uint32_t fn)
{
	uint8_t contract = f->all[fn].contract;

	return contract == SPY_CONTRACT_COPY_ASYNC || contract == SPY_CONTRACT_COPY_BATCH;
}
