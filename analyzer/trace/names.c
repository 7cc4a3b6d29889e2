/*
 * analyzer/trace/names.c: names of the small enums of trace_format.h, and of results. Called by
 * dump, report and detectors.
 */
#include <stdio.h>
#include "names.h"
#include "base/util.h"
#include "cudaspy/metadata_layout.h"
#include "cudaspy/trace_format.h"

static const char *find(const char *const *names, size_t count, unsigned int value)
{
	static char raw[8][16];
	static unsigned int turn;
	char *text;

	if (value < count)
		return names[value];
	text = raw[turn++ % ARRAY_SIZE(raw)];
	snprintf(text, sizeof(raw[0]), "#%u", value);
	return text;
}

#define NAME(number, text) [number] = text,
#define FUNCTION(name, list) \
	const char *name(unsigned int value) \
	{ \
		static const char *const names[] = {list(NAME)}; \
\
		return find(names, ARRAY_SIZE(names), value); \
	}

FUNCTION(name_memory_kind, SPY_MEMORY_KINDS)
FUNCTION(name_access, SPY_ACCESSES)
FUNCTION(name_direction, SPY_DIRECTIONS)
FUNCTION(name_copy_form, SPY_COPY_FORMS)
FUNCTION(name_memory_op, SPY_MEMORY_OPS)
FUNCTION(name_note, SPY_NOTES)
FUNCTION(name_client, SPY_CLIENTS)
FUNCTION(name_wait, SPY_WAIT_NAMES)
FUNCTION(name_file, SPY_FILE_NAMES)
FUNCTION(name_gpu_op, SPY_GPU_OP_NAMES)
FUNCTION(name_gpu_state, SPY_GPU_STATE_NAMES)
FUNCTION(name_range_what, SPY_RANGE_WHAT_NAMES)
FUNCTION(name_payload, SPY_PAYLOAD_NAMES)
FUNCTION(name_nvtx_named, SPY_NAMED_NAMES)
FUNCTION(name_nccl_func, SPY_NCCL_FUNC_NAMES)

const char *name_shown_func(unsigned int func)
{
	return func == SPY_NCCL_FUNCS ? "CUDA graph" : name_nccl_func(func);
}

FUNCTION(name_nccl_algorithm, SPY_NCCL_ALGORITHM_NAMES)
FUNCTION(name_nccl_protocol, SPY_NCCL_PROTOCOL_NAMES)
FUNCTION(name_nccl_state, SPY_NCCL_STATE_NAMES)
FUNCTION(name_window, SPY_WINDOW_NAMES)
FUNCTION(name_cost, SPY_COST_NAMES)
FUNCTION(name_part, SPY_PART_NAMES)

const char *name_error(unsigned int result, bool driver)
{
	switch (result) {
#define ERROR(number, driver_name, runtime_name, text) \
	case number: \
		return driver ? driver_name : runtime_name;
#include "cudaspy/errors.def"
#undef ERROR
	default:
		return find(NULL, 0, result);
	}
}
