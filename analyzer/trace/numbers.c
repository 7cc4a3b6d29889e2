/*
 * analyzer/trace/numbers.c: what the numbers of functions and of record types in a trace mean. Called when it is opened, and
 * by the readings.
 */
#include <stdio.h>
#include <string.h>
#include "cudaspy/function_numbers.h"
#include "position.h"
#include "open.h"

void trace_map_functions(struct trace_set *set, struct trace *trace)
{
	struct metadata *m = &trace->metadata;

	if (trace->functions)
		return;
	trace->mapped = xcalloc(m->n_functions, sizeof(*trace->mapped));
	for (size_t i = 0; i < m->n_functions; i++)
		trace->mapped[i] = m->functions[i]
					   ? functions_number(&set->functions, m->functions[i])
					   : trace_function_slow(set, (uint16_t)i);
	trace->functions = trace->mapped;
	trace->n_functions = m->n_functions;
	metadata_forget_functions(m);
}

static bool numbers_as_we_do(const struct trace_set *set, const struct metadata *m)
{
	for (size_t i = 0; i < m->n_functions; i++)
		if (i >= SPY_FN_COUNT || !m->functions[i] ||
		    strcmp(set->functions.all[i].name, m->functions[i]))
			return false;
	return true;
}

void trace_map_known_functions(struct trace_set *set, struct trace *trace)
{
	static const uint32_t known[] = {
#define ENTRY(name, layer, record, contract, inspector) SPY_FN_##name,
#include "cudaspy/entrypoints.def"
	};

	if (!numbers_as_we_do(set, &trace->metadata))
		return;
	trace->functions = known;
	trace->n_functions = trace->metadata.n_functions ?: SPY_FN_COUNT;
	metadata_forget_functions(&trace->metadata);
}

uint32_t trace_function_slow(struct trace_set *set, uint16_t fn)
{
	char name[32];

	snprintf(name, sizeof(name), "function %u", fn);
	if (!functions_has(&set->functions, name) && reading_refuses("an unnamed function"))
		return 0;
	return functions_number(&set->functions, name);
}

/* Names that record types had in metadata of earlier versions. */
static bool was_called(size_t number, const char *name)
{
	return number == SPY_EV_NON_CUDA_THREAD && !strcmp(name, "stranger");
}

void trace_check_events(const struct trace *trace)
{
	for (size_t i = 0; i < trace->metadata.n_events; i++) {
		const char *name = trace->metadata.events[i];

		if (name && !was_called(i, name) &&
		    (i >= SPY_EV_COUNT_ALL || strcmp(name, record_layouts[i].name)))
			warn("%s/metadata: record type %zu is '%s', which this cudaspy does "
			     "not know",
			     trace->dir, i, name);
	}
}
