/*
 * analyzer/findings/framework_cures.c: cures in the words of the framework that made a call for the program. A row is what of a
 * framework the line of the program called, or the library that made the call. Called by finding.c.
 */
#include <stdio.h>
#include <string.h>
#include "detector.h"
#include "framework_cures.h"
#include "python_lines.h"
#include "base/util.h"
#include "model/model.h"

static const char capture_once[] =
	"Capture the graph once, before the loop, and replay it: each torch.cuda.graph() empties "
	"PyTorch's caches of memory, which are filled anew behind it. For sizes that change, keep "
	"a graph for each.";

#define NO_CACHING "PYTORCH_NO_CUDA_MEMORY_CACHING"

static const char no_caching[] =
	"Leave the variable " NO_CACHING
	" out, because it is for debugging: with it each tensor is a cudaMalloc, and "
	"its end a cudaFree, which waits for the GPU; without it PyTorch keeps memory.";

/* To be extended: a row each, the more special ones first. */
static const struct cure {
	const char *file, *function; /* of Python, that was called: their ends; NULL: any */
	const char *module; /* with the caller of the CUDA function: its file; NULL: any */
	const char *variable; /* of the environment, that is set; NULL: any */
	const char *calls; /* a part of the CUDA function's name */
	const char *words;
} cures[] = {
	{NULL, NULL, "libc10_cuda.so", NO_CACHING, "cudaMalloc", no_caching},
	{NULL, NULL, "libc10_cuda.so", NO_CACHING, "cudaFree", no_caching},
	{"torch/cuda/graphs.py", "graph.__enter__", NULL, NULL, "Free", capture_once},
	{"torch/cuda/graphs.py", NULL, NULL, NULL, "cudaGraph", capture_once},
	{"torch/cuda/memory.py", "empty_cache", NULL, NULL, "Free",
	 "Take torch.cuda.empty_cache() out of the loop: what it gives back is allocated anew. Where "
	 "memory is short because it is in pieces, set "
	 "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."},
	{NULL, NULL, "libc10_cuda.so", NULL, "cudaFree",
	 "PyTorch's allocator gives memory back to have room for more, because memory is short or in "
	 "pieces: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, keep sizes the same, or need "
	 "less memory (smaller batches, fewer tensors kept)."},
};

static bool is_called(const struct python_code *code, const struct cure *cure)
{
	if (!cure->file)
		return true;
	return code && text_ends_with(code->file, cure->file) &&
	       (!cure->function || text_ends_with(code->function, cure->function));
}

static bool is_made_by(const struct finding_place *place, const struct cure *cure)
{
	return !cure->module ||
	       (place->module && !strcmp(path_basename(place->module), cure->module));
}

/* PyTorch asks whether it is there, whatever its value. */
static bool is_set(const struct finding *finding, const struct cure *cure)
{
	const struct process *process = finding->origin.process;
	char key[64];

	if (!cure->variable)
		return true;
	snprintf(key, sizeof(key), "env_%s", cure->variable);
	return process && metadata_text(&process->trace->metadata, key);
}

const char *framework_cure(const struct finding *finding)
{
	const struct finding_stacks *stacks = &finding->stacks;
	const struct python_code *code = NULL;

	if (!finding->place.function)
		return NULL;
	if (stacks->n_python)
		code = python_called(stacks->python->costliest->stack).code;
	for (size_t i = 0; i < ARRAY_SIZE(cures); i++)
		if (strstr(finding->place.function, cures[i].calls) && is_called(code, &cures[i]) &&
		    is_made_by(&finding->place, &cures[i]) && is_set(finding, &cures[i]))
			return cures[i].words;
	return NULL;
}

bool framework_words(const char *cure)
{
	for (size_t i = 0; i < ARRAY_SIZE(cures); i++)
		if (cures[i].words == cure)
			return true;
	return false;
}
