/*
 * analyzer/idle/callers.c: waits by what people call them. Called for waits that have a stack.
 */
#include "callers.h"
#include "base/util.h"

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

	return caller ? caller->cause : cause;
}

const char *idle_name_of_stack(const struct stack *stack)
{
	const struct caller *caller = find(stack);

	return caller ? caller->name : NULL;
}
