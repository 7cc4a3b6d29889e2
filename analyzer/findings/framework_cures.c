/*
 * analyzer/findings/framework_cures.c: cures in the words of the framework that made a call for the program. A row is what of a
 * framework the line of the program called, or the library that made the call. Called by finding.c.
 */
#include <stdio.h>
#include <string.h>
#include "detector.h"
#include "framework_cures.h"
#include "python_lines.h"
#include "site.h"
#include "base/util.h"
#include "idle/callers.h"
#include "model/model.h"
#include "symbols/symbolize.h"

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

/* What NVIDIA's libraries make for a program that asks for it again and again: a row each, by the library that calls. */
static const struct made {
	const char *library;
	const char *words;
} made[] = {
	{"libcufft",
	 "Make each plan of cuFFT once, before the work, and keep it: a new one loads its code and allocates. C and C++: "
	 "cufftPlan* and cufftMakePlan* outside of the loop, cufftDestroy behind it. CuPy: "
	 "cupy.fft.config.get_plan_cache() keeps them, unless its size is 0 or the sizes are more. PyTorch: "
	 "torch.backends.cuda.cufft_plan_cache.max_size."},
	{"libcublas",
	 "Make a handle of cuBLAS (cublasCreate) once for each thread and GPU, and keep it, with a workspace of the "
	 "program's own (cublasSetWorkspace): a new one loads code and allocates. CuPy has one for each "
	 "thread: use threads again instead of starting new ones."},
	{"libcublasLt",
	 "Make a handle of cuBLASLt (cublasLtCreate) and the descriptions of a product once, and keep them, with "
	 "a workspace of the program's own."},
	{"libcudnn*",
	 "Make cuDNN's handles (cudnnCreate) and plans once, and keep them: what it makes is for one shape, so let "
	 "the program meet few shapes (pad, or sort into buckets). PyTorch: torch.backends.cudnn.benchmark = "
	 "False where shapes change."},
	{"libcusolver",
	 "Make a handle of cuSOLVER (cusolverDnCreate) once for each thread and GPU, and keep it, with the "
	 "workspace for the largest problem."},
	{"libcusparse",
	 "Make a handle of cuSPARSE (cusparseCreate), and the plan of a product (cusparseSpGEMM_createDescr), once, "
	 "and keep them, with their buffers."},
	{"libcurand",
	 "Make a generator of cuRAND (curandCreateGenerator) once, and keep it: its state is set up anew for each "
	 "one (curandSetStream changes its stream, curandSetPseudoRandomGeneratorSeed its seed)."},
	{"libnvjpeg",
	 "Make nvJPEG's handle and states (nvjpegCreate, nvjpegJpegStateCreate) once for each thread, and keep "
	 "them: their memory grows to the largest image, and stays."},
};

/* So often, with work between: not as a program starts, or ends. */
#define AGAIN_LEAST 5

/* Is the finding about calls that load code, allocate or create, or give such things back? */
static bool is_making(const struct finding *finding)
{
	static const char *const detectors[] = {"lazy-loading", "steady-state", "hidden-sync"};
	static const char *const calls[] = {"ModuleLoad", "LibraryLoad", "Unload", "lloc",   "Free",
					    "Register",   "register",    "Create", "Destroy"};
	bool by_id = false;

	for (size_t i = 0; i < ARRAY_SIZE(detectors); i++)
		by_id |= !strcmp(finding->detector->id, detectors[i]);
	for (size_t i = 0; by_id && i < ARRAY_SIZE(calls); i++)
		if (strstr(finding->place.function, calls[i]))
			return finding->site && finding->site->rounds.count >= AGAIN_LEAST;
	return false;
}

const char *framework_makes(const struct finding *finding)
{
	const struct finding_place *place = &finding->place;

	if (!place->library || !place->function || !is_making(finding))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		if (symbolize_is_library(place->library, made[i].library))
			return made[i].words;
	return NULL;
}

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

/* Of copies for a function that the framework runs on the host: by their range, or by what called them. */
static const char *cure_of_callback(const struct finding *finding)
{
	const struct finding_stacks *stacks = &finding->stacks;
	const struct range_shares *ranges = finding->site ? finding->site->ranges : NULL;
	const struct idle_callback *callback = NULL;

	if (!finding->site || finding->remarks.wrong)
		return NULL;
	if (stacks->n_python)
		callback = idle_callback_of_stack(stacks->python->costliest->stack);
	for (size_t i = 0; ranges && i < ranges->n && !callback; i++)
		if (ranges->all[i].ns > finding->site->cost.own_ns / 2)
			callback = idle_callback_of_range(ranges->all[i].name);
	return callback ? callback->cure : NULL;
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
	return framework_makes(finding) ?: cure_of_callback(finding);
}

bool framework_words(const char *cure)
{
	for (size_t i = 0; i < ARRAY_SIZE(cures); i++)
		if (cures[i].words == cure)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		if (made[i].words == cure)
			return true;
	return idle_is_callback_cure(cure);
}
