/*
 * analyzer/detectors/holder_cure.c: the cure of a wait for a lock is one of the call that has the lock, by what that call
 * does and what it waits for itself. Called by the detectors of such waits, after the last record.
 */
#include "holder_cure.h"
#include "text/text.h"

/* Streams, events and graphs are made as host work, but made they are. */
static bool makes(const struct function *function)
{
	return function->does == FUNCTION_CREATES_STREAM ||
	       function->does == FUNCTION_DESTROYS_STREAM ||
	       function->does == FUNCTION_MAKES_EVENT || function->does == FUNCTION_MAKES_GRAPH;
}

bool holder_prepares(const struct function *function)
{
	switch (function->contract) {
	case SPY_CONTRACT_ALLOC:
	case SPY_CONTRACT_PIN:
	case SPY_CONTRACT_LIMIT:
	case SPY_CONTRACT_MODULE:
	case SPY_CONTRACT_LIBRARY:
	case SPY_CONTRACT_LAZY_LOAD:
	case SPY_CONTRACT_GRAPH_BUILD:
	case SPY_CONTRACT_INIT:
		return true;
	default:
		return makes(function);
	}
}

/* What only frees device memory can be done in the order of a stream. Both, and what unpins or unmaps, wait for all
 * streams of the device: to synchronise one before it helps nobody. */
static const char *cure_of_free(struct arena *texts, const char *name, bool waits_for_gpu)
{
	const char *waits = waits_for_gpu ? " waits for all streams of the GPU" : " takes long";

	if (strstr(name, "Host") || strstr(name, "Unregister"))
		return arena_printf(
			texts,
			"%s%s and keeps the others out meanwhile: keep what it frees and "
			"use it again, or free it when the work is over.",
			name, waits);
	return arena_printf(texts,
			    "Take %s out of the threads' work, for it%s and keeps the others out "
			    "meanwhile: keep what it frees and use it again, or free it in the "
			    "stream's order (cudaFreeAsync).",
			    name, waits);
}

static const char *cure_of_copy(struct arena *texts, const char *name, bool waits_for_gpu)
{
	if (waits_for_gpu)
		return arena_printf(texts,
				    "%s waited for the GPU and kept the others out meanwhile: copy "
				    "from or to pinned memory, or let its work be done before it "
				    "(synchronise its stream).",
				    name);
	return arena_printf(texts, "Call %s less often: fewer, larger copies, of pinned memory.",
			    name);
}

/* Waits for the GPU are what it is for. */
static const char *cure_of_wait(struct arena *texts, const char *name)
{
	return arena_printf(texts,
			    "Call %s less often: wait once for the work of several calls, for the "
			    "one stream or event whose results are needed.",
			    name);
}

static const char *cure_of_work(struct arena *texts, const char *name, bool waits_for_gpu)
{
	if (waits_for_gpu)
		return arena_printf(
			texts,
			"%s waited for room in its stream's queue and kept the others out "
			"meanwhile: hand over less ahead of the GPU, with fewer and larger "
			"kernels or a graph.",
			name);
	return arena_printf(texts, "Call %s less often: more work with each call, or a graph.",
			    name);
}

const char *holder_cure(struct arena *texts, const struct trace_set *set, uint32_t fn,
			bool waits_for_gpu)
{
	const char *name = text_function(set, fn);
	const struct function *function;

	if (!name)
		return NULL;
	function = &set->functions.all[fn];
	if (function->contract == SPY_CONTRACT_FREE)
		return cure_of_free(texts, name, waits_for_gpu);
	if (holder_prepares(function))
		return arena_printf(texts,
				    "Take %s out of the threads' loops: do it once, before the "
				    "work%s.",
				    name, makes(function) ? ", and use again what it makes" : "");
	switch (function->contract) {
	case SPY_CONTRACT_COPY_SYNC:
	case SPY_CONTRACT_COPY_ASYNC:
	case SPY_CONTRACT_COPY_BATCH:
	case SPY_CONTRACT_PEER:
	case SPY_CONTRACT_MEMSET_SYNC:
		return cure_of_copy(texts, name, waits_for_gpu);
	case SPY_CONTRACT_STREAM:
	case SPY_CONTRACT_EVENT:
	case SPY_CONTRACT_DEVICE:
		return cure_of_wait(texts, name);
	case SPY_CONTRACT_ALLOC_POOL:
		return arena_printf(
			texts,
			"Call %s less often: keep memory and use it again; let the pool "
			"keep what is freed (cudaMemPoolAttrReleaseThreshold).",
			name);
	case SPY_CONTRACT_HOST:
		return arena_printf(texts, "Call %s less often.", name);
	default:
		return cure_of_work(texts, name, waits_for_gpu);
	}
}
