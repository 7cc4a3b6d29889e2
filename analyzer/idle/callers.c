/*
 * analyzer/idle/callers.c: waits, and what runs between two calls, by what people call them. Called where a stack is known.
 */
#include "callers.h"
#include "base/util.h"
#include "model/python.h"

/* Who waits: the end of a file's path in Python, or a part of a library's name. To be extended: a
 * row each, the more special ones first. */
static const struct caller {
	const char *file, *library;
	enum idle_cause cause; /* IDLE_CAUSE_COUNT: as the wait itself says */
	const char *name;
} callers[] = {
	{"torch/utils/data/dataloader.py", NULL, IDLE_LOADER, "torch's DataLoader"},
	{"nvidia/dali/pipeline.py", NULL, IDLE_LOADER, "DALI"},
	{"webdataset/pipeline.py", NULL, IDLE_LOADER, "webdataset"},
	{"tensorflow/python/data/ops/iterator_ops.py", NULL, IDLE_LOADER, "tf.data"},
	{"grain/python/data_loader.py", NULL, IDLE_LOADER, "grain's DataLoader"},
	{"multiprocessing/queues.py", NULL, IDLE_PIPE, "a queue between processes"},
	{"multiprocessing/connection.py", NULL, IDLE_PIPE, "a pipe between processes"},
	{"concurrent/futures/_base.py", NULL, IDLE_LOCK, "a thread pool"},
	{"multiprocessing/pool.py", NULL, IDLE_LOCK, "a pool of workers"},
	{"/queue.py", NULL, IDLE_LOCK, "a queue between threads"},
	{"socketserver.py", NULL, IDLE_NOTHING_TO_DO, "a server's requests"},
	{"asyncio/base_events.py", NULL, IDLE_NOTHING_TO_DO, "an event loop"},
	{NULL, "libgomp.so", IDLE_LOCK, "an OpenMP barrier"},
	{NULL, "libomp.so", IDLE_LOCK, "an OpenMP barrier"},
	{NULL, "libiomp5.so", IDLE_LOCK, "an OpenMP barrier"},
	{NULL, "libtbb.so", IDLE_LOCK, "TBB's scheduler"},
};

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), n = strlen(end);

	return length >= n && !strcmp(text + length - n, end);
}

static bool in_python(const struct stack *stack, const char *file)
{
	for (uint8_t i = 0; i < stack->n_python; i++) {
		const struct python_code *code = model_python(stack, &stack->python[i]);

		if (code && ends_with(code->file, file))
			return true;
	}
	return false;
}

/* Only near the wait: above it the whole program may run in such a library. */
#define NEAR 4

static bool in_library(const struct stack *stack, const char *library)
{
	for (uint8_t i = 0; i < stack->n && i < NEAR; i++) {
		const struct module *module =
			model_module(stack->process, stack->frames[i], stack->ns);

		if (module && !strncmp(path_basename(module->path), library, strlen(library)))
			return true;
	}
	return false;
}

static const struct caller *find(const struct stack *stack)
{
	for (size_t i = 0; stack && i < ARRAY_SIZE(callers); i++)
		if (callers[i].file ? in_python(stack, callers[i].file)
				    : in_library(stack, callers[i].library))
			return &callers[i];
	return NULL;
}

enum idle_cause idle_cause_of_stack(const struct stack *stack, enum idle_cause cause)
{
	const struct caller *caller = find(stack);

	if (caller)
		return caller->cause;
	return cause == IDLE_PIPE ? idle_cause_of_work(stack, cause) : cause;
}

const char *idle_name_of_stack(const struct stack *stack)
{
	const struct caller *caller = find(stack);

	return caller ? caller->name : NULL;
}

/* ---- what runs --------------------------------------------------------------------------------- */

/* What a library does for the program: a part of its file's path, and of its function's name (NULL: any; no module's own code,
 * which is imported). To be extended: a row each. Of several that a stack goes through the first one here counts. */
static const struct work {
	const char *file, *function;
	enum idle_cause cause;
	const char *name;
} works[] = {
	{"/torch/_dynamo/convert_frame.py", NULL, IDLE_COMPILE, "torch.compile"},
	{"/torch/_inductor/compile_fx.py", "compile", IDLE_COMPILE, "torch.compile"},
	{"/torch/_inductor/async_compile.py", NULL, IDLE_COMPILE, "torch.compile"},
	{"/torch/_inductor/runtime/triton_heuristics.py", "compile", IDLE_COMPILE, "torch.compile"},
	{"/torch/_inductor/runtime/triton_heuristics.py", "autotune", IDLE_COMPILE,
	 "torch.compile"},
	{"/torch/_dynamo/symbolic_convert.py", NULL, IDLE_COMPILE, "torch.compile"},
	{"/torch/_functorch/_aot_autograd/graph_capture", NULL, IDLE_COMPILE, "torch.compile"},
	{"/torch/_subclasses/fake_tensor.py", NULL, IDLE_COMPILE, "torch.compile"},
	{"/torch/_inductor/codegen/", NULL, IDLE_COMPILE, "torch.compile"},
	{"/torch/_inductor/fx_passes/", NULL, IDLE_COMPILE, "torch.compile"},
	{"/torch/_inductor/graph.py", NULL, IDLE_COMPILE, "torch.compile"},
	{"/torch/_inductor/ir.py", NULL, IDLE_COMPILE, "torch.compile"},
	{"/torch/_inductor/pattern_matcher.py", NULL, IDLE_COMPILE, "torch.compile"},
	{"/torch/_inductor/scheduler.py", NULL, IDLE_COMPILE, "torch.compile"},
	{"/torch/utils/cpp_extension.py", NULL, IDLE_COMPILE, "an extension of torch"},
	{"/triton/compiler/compiler.py", "compile", IDLE_COMPILE, "Triton"},
	{"/triton/compiler/code_generator.py", NULL, IDLE_COMPILE, "Triton"},
	{"/triton/backends/nvidia/compiler.py", NULL, IDLE_COMPILE, "Triton"},
	{"/cupy/cuda/compiler.py", NULL, IDLE_COMPILE, "CuPy"},
	{"/numba/core/compiler.py", NULL, IDLE_COMPILE, "Numba"},
	{"/numba/cuda/compiler.py", NULL, IDLE_COMPILE, "Numba"},
	{"/jax/_src/compiler.py", NULL, IDLE_COMPILE, "JAX"},
	{"/torch/serialization.py", "save", IDLE_SAVE, "torch.save"},
	{"/torch/distributed/checkpoint/state_dict_saver.py", NULL, IDLE_SAVE,
	 "torch.distributed.checkpoint"},
	{"/safetensors/", "save", IDLE_SAVE, "safetensors"},
	{"/orbax/checkpoint/", "save", IDLE_SAVE, "Orbax"},
	{"/transformers/tokenization_", NULL, IDLE_TOKENIZE, "transformers"},
	{"/tokenizers/", NULL, IDLE_TOKENIZE, "tokenizers"},
	{"/tiktoken/", NULL, IDLE_TOKENIZE, "tiktoken"},
	{"/sentencepiece/", NULL, IDLE_TOKENIZE, "sentencepiece"},
	{"/logging/__init__.py", NULL, IDLE_LOG, "logging"},
	{"/loguru/", NULL, IDLE_LOG, "loguru"},
	{"/torch/utils/tensorboard/", NULL, IDLE_LOG, "TensorBoard"},
	{"/wandb/", NULL, IDLE_LOG, "wandb"},
	{"/mlflow/", NULL, IDLE_LOG, "MLflow"},
	{"/tqdm/", "display", IDLE_LOG, "tqdm"},
	{"/json/__init__.py", "dump", IDLE_LOG, "json"},
	{"/json/encoder.py", NULL, IDLE_LOG, "json"},
	{"<frozen importlib", NULL, IDLE_IMPORT, NULL},
};

static bool does_work(const struct python_line *line, const struct work *work)
{
	if (!line->code || !strstr(line->code->file, work->file))
		return false;
	if (!work->function)
		return strcmp(line->code->function, "<module>") != 0;
	return strstr(line->code->function, work->function);
}

/* Only what the program's own innermost frame has called: above it the whole program may run in such a library. */
static const struct work *find_work(const struct stack *stack)
{
	size_t first = ARRAY_SIZE(works);

	for (uint8_t i = 0; stack && i < stack->n_python; i++) {
		struct python_line line = python_line_at(stack, i);

		if (python_is_program(&line))
			break;
		for (size_t row = 0; row < first; row++)
			if (does_work(&line, &works[row]))
				first = row;
	}
	return first < ARRAY_SIZE(works) ? &works[first] : NULL;
}

enum idle_cause idle_cause_of_work(const struct stack *stack, enum idle_cause cause)
{
	const struct work *work = find_work(stack);

	return work ? work->cause : cause;
}

/* Libraries that compile a kernel and then load it. */
static const struct compiler {
	const char *library, *name;
} compilers[] = {
	{"libcudnn_engines_runtime_compiled.so", "cuDNN"},
};

static const struct compiler *find_compiler(const struct process *process, uint64_t address,
					    uint64_t ns)
{
	const struct module *module = address ? model_module(process, address, ns) : NULL;

	for (size_t i = 0; module && i < ARRAY_SIZE(compilers); i++)
		if (!strncmp(path_basename(module->path), compilers[i].library,
			     strlen(compilers[i].library)))
			return &compilers[i];
	return NULL;
}

bool idle_is_compiled(const struct process *process, uint64_t address, uint64_t ns,
		      const struct stack *stack)
{
	const struct work *work = find_work(stack);

	return (work && work->cause == IDLE_COMPILE) || find_compiler(process, address, ns);
}

const char *idle_name_of_work(const struct process *process, const struct idle_part *part)
{
	const struct work *work = find_work(part->stack);
	const struct compiler *compiler;

	if (work && work->cause == part->cause)
		return work->name;
	compiler = part->cause == IDLE_COMPILE ? find_compiler(process, part->compiler, part->at_ns)
					       : NULL;
	return compiler ? compiler->name : NULL;
}
