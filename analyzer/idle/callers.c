/*
 * analyzer/idle/callers.c: waits, and what runs between two calls, by what people call them. Called where a stack is known.
 */
#include "callers.h"
#include "base/util.h"
#include "model/python.h"

/* Who waits: the end of a file's path in Python, none of the program's own, or a part of a library's name. To be extended: a
 * row each, the more special ones first. */
static const struct caller {
	const char *file;
	const char *function; /* in it, with its class or without; NULL: any */
	const char *inner; /* the file that the innermost frame has to be in; NULL: any */
	const char *library;
	enum idle_cause cause;
	const char *name;
} callers[] = {
	{"torch/utils/data/dataloader.py", .cause = IDLE_LOADER, .name = "torch's DataLoader"},
	{"nvidia/dali/pipeline.py", .cause = IDLE_LOADER, .name = "DALI"},
	{"webdataset/pipeline.py", .cause = IDLE_LOADER, .name = "webdataset"},
	{"tensorflow/python/data/ops/iterator_ops.py", .cause = IDLE_LOADER, .name = "tf.data"},
	{"grain/python/data_loader.py", .cause = IDLE_LOADER, .name = "grain's DataLoader"},
	{"multiprocessing/queues.py", .cause = IDLE_PIPE, .name = "a queue between processes"},
	{"multiprocessing/connection.py", .cause = IDLE_PIPE, .name = "a pipe between processes"},
	{"/subprocess.py", "_communicate", NULL, NULL, IDLE_PIPE, "a program that was started"},
	{"concurrent/futures/_base.py", .cause = IDLE_LOCK, .name = "a thread pool"},
	{"multiprocessing/pool.py", .cause = IDLE_LOCK, .name = "a pool of workers"},
	{"/queue.py", "get", "/threading.py", NULL, IDLE_LOCK,
	 "a queue between threads, which is empty"},
	{"/queue.py", "put", "/threading.py", NULL, IDLE_LOCK,
	 "a queue between threads, which is full"},
	{"/queue.py", .cause = IDLE_LOCK, .name = "a queue between threads"},
	/* The program's own functions run inside of these, too. */
	{"socketserver.py", NULL, "/selectors.py", NULL, IDLE_NOTHING_TO_DO, "a server's requests"},
	{"asyncio/base_events.py", NULL, "/selectors.py", NULL, IDLE_NOTHING_TO_DO,
	 "an event loop"},
	{"/threading.py", "Thread.join", "/threading.py", NULL, IDLE_JOIN, "a Python thread's end"},
	{"/threading.py", "Event.wait", "/threading.py", NULL, IDLE_LOCK, "a threading.Event"},
	{"/threading.py", "Barrier.wait", "/threading.py", NULL, IDLE_LOCK, "a threading.Barrier"},
	{"/threading.py", "acquire", "/threading.py", NULL, IDLE_LOCK, "a threading.Semaphore"},
	{"/threading.py", "wait", "/threading.py", NULL, IDLE_LOCK,
	 "a condition or an event of Python's"},
	{"torch/autograd/graph.py", "_engine_run_backward", NULL, NULL, IDLE_LOCK,
	 "PyTorch's backward pass, on a thread of its own"},
	{NULL, .library = "libgomp.so", .cause = IDLE_LOCK, .name = "an OpenMP barrier"},
	{NULL, .library = "libomp.so", .cause = IDLE_LOCK, .name = "an OpenMP barrier"},
	{NULL, .library = "libiomp5.so", .cause = IDLE_LOCK, .name = "an OpenMP barrier"},
	{NULL, .library = "libtbb.so", .cause = IDLE_LOCK, .name = "TBB's scheduler"},
};

/* "get" is Queue.get, too; before Python 3.11 names are without their classes. */
static bool is_called(const struct python_code *code, const char *name)
{
	const char *own = strrchr(code->function, '.'), *wanted = strrchr(name, '.');

	if (!own)
		return !strcmp(code->function, wanted ? wanted + 1 : name);
	return !strcmp(wanted ? code->function : own + 1, name);
}

/* The frame's function, if its file is a library's and has that end. */
static const struct python_code *code_of(const struct stack *stack, uint8_t frame, const char *file)
{
	struct python_line line = {.code = model_python(stack, &stack->python[frame])};

	return line.code && text_ends_with(line.code->file, file) && !python_is_program(&line)
		       ? line.code
		       : NULL;
}

static bool in_python(const struct stack *stack, const struct caller *row)
{
	if (row->inner && !(stack->n_python && code_of(stack, 0, row->inner)))
		return false;
	for (uint8_t i = 0; i < stack->n_python; i++) {
		const struct python_code *code = code_of(stack, i, row->file);

		if (code && (!row->function || is_called(code, row->function)))
			return true;
	}
	return false;
}

/* Is the code there one of a library's whose file's name begins so? */
static bool is_in_library(const struct process *process, uint64_t address, uint64_t ns,
			  const char *library)
{
	const struct module *module = address ? model_module(process, address, ns) : NULL;

	return module && !strncmp(path_basename(module->path), library, strlen(library));
}

/* Only near the wait: above it the whole program may run in such a library. */
#define NEAR 4

static bool in_library(const struct stack *stack, const char *library)
{
	for (uint8_t i = 0; i < stack->n && i < NEAR; i++)
		if (is_in_library(stack->process, stack->frames[i], stack->ns, library))
			return true;
	return false;
}

static const struct caller *find(const struct stack *stack)
{
	for (size_t i = 0; stack && i < ARRAY_SIZE(callers); i++)
		if (callers[i].file ? in_python(stack, &callers[i])
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

/* In a queue's get, too, a thread that waits for the GIL waits for that. */
const char *idle_name_of_wait(const struct idle_part *part)
{
	bool waits = part->fn == NO_FUNCTION && !idle_runs_python(part->cause) &&
		     !idle_is_certain(part->cause);
	const struct caller *caller = waits ? find(part->stack) : NULL;

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
	{"/triton/runtime/autotuner.py", NULL, IDLE_COMPILE, "Triton's autotuner"},
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
	{"/lightning/pytorch/core/module.py", "log", IDLE_LOG, "Lightning"},
	{"/lightning/pytorch/loggers/", NULL, IDLE_LOG, "Lightning"},
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
	for (size_t i = 0; i < ARRAY_SIZE(compilers); i++)
		if (is_in_library(process, address, ns, compilers[i].library))
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

/* ---- profilers ---------------------------------------------------------------------------------- */

/* Functions in which a profiler begins to record, and those in which it makes something of its records. That a profiler's
 * libraries are loaded says nothing: PyTorch loads CUPTI with itself. */
static const struct profiler {
	const char *file, *function, *name;
	bool ends;
} profilers[] = {
	{"torch/profiler/profiler.py", "prepare_trace", "torch.profiler", false},
	{"torch/profiler/profiler.py", "start_trace", "torch.profiler", false},
	{"torch/profiler/profiler.py", "stop_trace", "torch.profiler", true},
	{"torch/profiler/profiler.py", "_trace_ready", "torch.profiler", true},
	{"torch/profiler/profiler.py", "export_chrome_trace", "torch.profiler", true},
	{"torch/autograd/profiler.py", "_prepare_trace", "torch.autograd.profiler", false},
	{"torch/autograd/profiler.py", "_start_trace", "torch.autograd.profiler", false},
	/* Others in that file have such a method: before Python 3.11, where names are without their classes, it is unknown. */
	{"torch/autograd/profiler.py", "profile.__exit__", "torch.autograd.profiler", true},
	{"jax/_src/profiler.py", "start_trace", "jax.profiler", false},
	{"jax/_src/profiler.py", "stop_trace", "jax.profiler", true},
};

static bool is_profiler(const struct stack *stack, const struct profiler *profiler)
{
	for (uint8_t i = 0; i < stack->n_python; i++) {
		const struct python_code *code = code_of(stack, i, profiler->file);

		if (code &&
		    (strchr(profiler->function, '.') ? !strcmp(code->function, profiler->function)
						     : is_called(code, profiler->function)))
			return true;
	}
	return false;
}

const char *idle_profiler_of_stack(const struct stack *stack, bool *ends)
{
	for (size_t i = 0; stack && stack->n_python && i < ARRAY_SIZE(profilers); i++) {
		if (!is_profiler(stack, &profilers[i]))
			continue;
		*ends = profilers[i].ends;
		return profilers[i].name;
	}
	return NULL;
}

/* ---- what is called back ------------------------------------------------------------------------ */

static const char cure_of_jax[] =
	"jax.pure_callback, jax.io_callback and jax.debug.callback run Python on the host, within the "
	"step: the GPU waits, and what goes in and comes out is copied through memory that is not pinned. "
	"Write the function in jax.numpy, so that it is compiled with the step; or call it less often.";

/* To be extended: a row each. */
static const struct idle_callback callbacks[] = {
	{"/jax/_src/callback.py", "pure_callback_impl", "TSL", "/pure_callback",
	 "jax.pure_callback", cure_of_jax},
	{"/jax/_src/callback.py", "io_callback_impl", "TSL", "/io_callback", "jax.io_callback",
	 cure_of_jax},
	{"/jax/_src/debugging.py", "debug_callback_impl", "TSL", "/debug_callback",
	 "jax.debug.callback", cure_of_jax},
};

const struct idle_callback *idle_callback_of_stack(const struct stack *stack)
{
	for (uint8_t i = 0; stack && i < stack->n_python; i++)
		for (size_t row = 0; row < ARRAY_SIZE(callbacks); row++) {
			const struct python_code *code = code_of(stack, i, callbacks[row].file);

			if (code && text_ends_with(code->function, callbacks[row].function))
				return &callbacks[row];
		}
	return NULL;
}

const struct idle_callback *idle_callback_of_range(const struct range_name *range)
{
	for (size_t row = 0; row < ARRAY_SIZE(callbacks); row++)
		if (!strcmp(range->domain, callbacks[row].domain) &&
		    strstr(range->name, callbacks[row].range))
			return &callbacks[row];
	return NULL;
}

bool idle_is_callback_cure(const char *words)
{
	for (size_t row = 0; row < ARRAY_SIZE(callbacks); row++)
		if (callbacks[row].cure == words)
			return true;
	return false;
}
