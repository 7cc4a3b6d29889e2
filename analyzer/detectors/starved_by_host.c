/*
 * analyzer/detectors/starved_by_host.c: a GPU has nothing to do, again and again, because the thread
 * that feeds it computes, runs Python, or waits for something of the program's own between its calls.
 *
 * Waits for a data loader or for the GIL have detectors of their own; waits for requests are no case. A thread that sleeps
 * means to, and one that reads from a connection may wait for requests: that alone is no case
 * either, but told where there is one.
 */
#include <string.h>
#include "starved_gpus.h"
#include "table.h"
#include "model/python.h"

static const char *who_keeps(const struct starved_gpus *h)
{
	enum idle_cause cause = starved_gpus_cause(h);

	return cause == IDLE_PYTHON || cause == IDLE_GC ? "Python keeps" : "the host keeps";
}

static bool is_own_python(const struct starved_gpus *h)
{
	return h->most_ns > h->ns / 2 && idle_sum_is_own_python(h->most);
}

/* An environment may be called like a package: /opt/torch/lib/python3.12/site-packages/… */
static bool has_one_of(const char *path, const char *const *names, size_t n)
{
	static const char packages[] = "-packages";
	const char *within = strstr(path, packages);

	if (within)
		path = within + sizeof(packages) - 1;
	for (size_t i = 0; i < n; i++)
		if (strstr(path, names[i]))
			return true;
	return false;
}

/* Loops and matrices that frameworks have computed on the host, too. */
static bool is_arithmetic(const char *library)
{
	static const char *const names[] = {"libgomp", "libiomp5",    "libomp",
					    "libmkl",  "libopenblas", "libscipy_openblas",
					    "libblas", "libblis"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(library, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Arithmetic or data of a library that works on the host: of its files in Python, or in C? */
static bool is_host_library(const char *path)
{
	static const char *const names[] = {"/numpy/",  "/numpy.libs/", "/scipy/",   "/scipy.libs/",
					    "/pandas/", "/PIL/",        "/sklearn/", "/cv2/"};

	return has_one_of(path, names, ARRAY_SIZE(names)) || is_arithmetic(path_basename(path));
}

/* Small operations, each handed to the GPU by a framework: what it does in C for that is less if there are fewer. */
static bool is_framework(const char *path)
{
	static const char *const names[] = {"/torch/", "/jaxlib/", "/tensorflow/", "/cupy/"};

	return has_one_of(path, names, ARRAY_SIZE(names));
}

static const char *cure_of_python(const struct starved_gpus *h)
{
	const struct in_c_most most = starved_gpus_in_c(h);
	const struct python_code *called =
		h->most_ns > h->ns / 2 ? python_called(h->most->longest.stack).code : NULL;
	const char *library = in_c_path(&most);

	if (is_host_library(library) || starved_gpus_is_parallel(h) ||
	    (called && is_host_library(called->file)))
		return "Do it on the GPU (CuPy, torch, jax.numpy), or in other processes, a step ahead, "
		       "while the GPU works.";
	if (!is_own_python(h) || is_framework(library))
		return "Less Python between the CUDA calls. PyTorch: torch.compile the step, or "
		       "capture it in a CUDA graph; move .item(), .cpu() and prints out of the "
		       "loop; prepare data in the loader's workers. JAX: jit the whole step, with "
		       "lax.scan for loops. Larger batches.";
	switch (most.where) {
	case IN_C_INTERPRETER:
		return "Do it with fewer lines of Python (NumPy for its loops, or the GPU); or in other processes, a "
		       "step ahead, while the GPU works: threads share the interpreter.";
	case IN_C_FUNCTION:
	case IN_C_LIBRARY:
		return "That is C code, which fewer lines of Python make no faster. Do it in other threads (most libraries "
		       "give Python's GIL back meanwhile) or processes, a step ahead, while the GPU works; or do less of "
		       "it.";
	case IN_C_UNKNOWN:
		break;
	}
	return "Do it with fewer lines of Python (NumPy for its loops, or the GPU); or do it, and what "
	       "these lines call in C, in other threads or processes, a step ahead, while the GPU works.";
}

static const char *cure(const struct trace_set *set, struct arena *texts,
			const struct starved_gpus *h)
{
	enum idle_cause cause = starved_gpus_ran_meanwhile(h) ? IDLE_PYTHON : starved_gpus_cause(h);

	(void)set;
	(void)texts;
	if (starved_gpus_callback(h))
		return starved_gpus_callback(h)->cure;
	if (idle_is_work(cause))
		return idle_cause_meanings[cause];
	switch (cause) {
	case IDLE_PYTHON:
		return cure_of_python(h);
	case IDLE_CPU:
		return detector_starved_by_host.fix;
	default:
		return "Have what the next step needs ready before it is needed: let the other "
		       "side work a step ahead, with a buffer between, and submit the next step "
		       "before you wait for the last one.";
	}
}

static const struct starved_gpus_kind kind = {
	.detector = &detector_starved_by_host,
	.causes = IDLE_CAUSE_BIT(PYTHON) | IDLE_CAUSE_BIT(GC) | IDLE_CAUSE_BIT(CPU) |
		  IDLE_CAUSE_BIT(COMPILE) | IDLE_CAUSE_BIT(IMPORT) | IDLE_CAUSE_BIT(TOKENIZE) |
		  IDLE_CAUSE_BIT(LOG) | IDLE_CAUSE_BIT(SAVE) | IDLE_CAUSE_BIT(LOCK) |
		  IDLE_CAUSE_BIT(PIPE) | IDLE_CAUSE_BIT(FILE) | IDLE_CAUSE_BIT(JOIN),
	.beside = IDLE_CAUSE_BIT(SLEEP) | IDLE_CAUSE_BIT(SOCKET),
	.who_keeps = who_keeps,
	.of_thread = "",
	.cure = cure,
};

static void conclude(const struct idle *idle, struct found *found)
{
	starved_gpus_conclude(&kind, idle, found);
}

const struct detector detector_starved_by_host = {
	.id = "starved-by-host",
	.title = "a GPU has nothing to do because of the thread that feeds it",
	.sees = "GPUs that had nothing to do for a fifth of their work or more, and for 50 ms, "
		"the longest gap aside, because the thread that submits their work was on a CPU "
		"between its calls, in Python or not, or waited for a lock, a thread, a pipe or "
		"a file of the program's own. The calls prove it, or NVML's utilisation does: "
		"then it is estimated what for. The place is that of the wait, where samples "
		"found the thread, or the call that came too late. What other findings have of "
		"the idle time does not count, nor what is compiled, imported or saved in the first quarter "
		"of the work alone, by the calls of the thread that feeds the GPU, and what other threads did "
		"until then, which is named.",
	.blind =
		"What a thread does on a CPU outside of Python, and what Python calls in C, where the system does not let a process "
		"interrupt its threads. Without NVML, and in runs of "
		"less than some 0.7 seconds, idle time that no wait for the GPU proves. Waits for requests and "
		"sleeps are no case by themselves, nor is data from a connection, which may be "
		"requests; a queue between threads may also be empty because there are no "
		"requests.",
	.fix = "Do that work in other threads while the GPU works, into memory of its own, and "
	       "submit the next step before you wait for the last one; or do it on the GPU.",
	.of_function = true,
	.of_idle = true,
	.of_host = true,
	.conclude_idle = conclude,
};
