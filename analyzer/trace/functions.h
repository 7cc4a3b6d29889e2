/*
 * analyzer/trace/functions.h: the functions that traces speak of.
 *
 * Each entry point of this build's entrypoints.def, and each name a trace of another version
 * brings along, has one number here: the number of enum spy_fn for the former, the next free one
 * for the latter. A trace's own numbers are mapped to these by name.
 */
#ifndef CUDASPY_FUNCTIONS_H
#define CUDASPY_FUNCTIONS_H

#include "base/util.h"
#include "cudaspy/contract.h"
#include "cudaspy/trace_format.h"

/* What a function does, so far as its name says more than its contract. */
enum function_does {
	FUNCTION_OTHER,
	FUNCTION_RECORDS_EVENT,
	FUNCTION_WAITS_FOR_EVENT, /* makes a stream wait */
	FUNCTION_LAUNCHES_GRAPH,
	FUNCTION_BEGINS_CAPTURE,
	FUNCTION_ENDS_CAPTURE,
	FUNCTION_CREATES_STREAM,
	FUNCTION_DESTROYS_STREAM,
	FUNCTION_MAKES_EVENT, /* or destroys one */
	FUNCTION_MAKES_GRAPH, /* to launch; the same */
	FUNCTION_OPENS_MAPPING, /* to a GPU */
	FUNCTION_OPENS_PEER, /* lets a GPU reach another one's memory */
	FUNCTION_CLOSES_PEER,
	FUNCTION_OPENS_POOL, /* to a GPU */
	/* memory of another process, and peer access if it lies on another GPU */
	FUNCTION_OPENS_SHARED,
	FUNCTION_ENDS_CONTEXT, /* if there is no other user */
	FUNCTION_WAITS_FOR_OTHERS, /* makes a stream wait for what is no work of a GPU */
	FUNCTION_SHOWS_OTHERS, /* results: a function on the host, graphics, other devices */
};

struct function {
	char *name;
	uint8_t contract; /* enum spy_contract; HOST without a row in entrypoints.def */
	uint8_t does; /* enum function_does */
};

struct functions {
	struct function *all;
	uint32_t count;
	struct function_name *by_name;
};

void functions_init(struct functions *f);
void functions_release(struct functions *f);

/* Number of the function of that name, as far as it is visible; a new one if there is none yet. */
uint32_t functions_number(struct functions *f, const char *name);

/* Is there one of that name, which has no characters that are not shown? */
bool functions_has(const struct functions *f, const char *name);

/* Has entrypoints.def a row of that name? */
bool functions_known(const char *name, size_t length);

/* Is it a copy that promises to be asynchronous? False for functions we do not know. */
bool functions_async_copy(const struct functions *f, uint32_t fn);

#endif
