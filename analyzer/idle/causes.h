/*
 * analyzer/idle/causes.h: what a thread did while a GPU had nothing to do: one row for each cause,
 * with its code (in JSON, and for `cudaspy explain`), its words in a sentence, and what it means.
 */
#ifndef CUDASPY_IDLE_CAUSES_H
#define CUDASPY_IDLE_CAUSES_H

#include <stdbool.h>

#define IDLE_CAUSES(CAUSE) \
	CAUSE(PYTHON, "python", "running Python", \
	      "The thread that submits the GPU's work was on a CPU, between two CUDA calls, in a program " \
	      "that runs Python. Do less between the calls: move work into the loader, batch it, " \
	      "compile or capture the step (torch.compile, CUDA graphs).") \
	CAUSE(GC, "python-gc", "collecting Python's garbage", \
	      "The thread that submits the GPU's work was in Python's garbage collector. Call gc.freeze() after start-up, raise " \
	      "gc.set_threshold(), or call gc.collect() where nothing waits, by all ranks in the same step.") \
	CAUSE(COMPILE, "compile", "compiling", \
	      "The thread that submits the GPU's work compiled a kernel. Within a loop that is most often for a size that has " \
	      "not been there before: use few sizes (pad, or sort into buckets), torch.compile(dynamic=True) or mark_dynamic, " \
	      "a static cache of keys and values, and keep the compilers' caches. TORCH_LOGS=recompiles says why torch.compile " \
	      "compiles again. JAX compiles anew for each new function: call jax.jit once, outside of the loop.") \
	CAUSE(IMPORT, "import", "importing modules of Python", \
	      "The thread that submits the GPU's work imported modules. Import them before the loop.") \
	CAUSE(TOKENIZE, "tokenize", "tokenizing", \
	      "The thread that submits the GPU's work made tokens of text. Do that in the loader's workers or once, beforehand; " \
	      "use a fast tokenizer, on whole batches.") \
	CAUSE(LOG, "log", "formatting or logging text", \
	      "The thread that submits the GPU's work formatted text, for a log most often. Log less often, numbers rather than " \
	      "tensors, and in another thread.") \
	CAUSE(SAVE, "save", "saving", \
	      "The thread that submits the GPU's work wrote a checkpoint. Copy it to pinned memory and write it in another " \
	      "thread (torch.distributed.checkpoint.async_save), by all ranks a part, or less often.") \
	CAUSE(CPU, "cpu", "computing on a CPU", \
	      "The thread that submits the GPU's work was on a CPU, between two CUDA calls. Move that " \
	      "work to other threads, or submit the next work before it.") \
	CAUSE(GIL, "gil", "waiting for Python's GIL", \
	      "The thread waited for the lock of Python's interpreter, which another thread had. Use " \
	      "processes instead of threads, or fewer threads that run Python.") \
	CAUSE(SLEEP, "sleep", "asleep", \
	      "The thread slept for a time that the program had set. Wait for an event instead of polling.") \
	CAUSE(LOCK, "lock", "waiting for another thread", \
	      "The thread waited for a lock, a condition or a semaphore of the program's own. The report " \
	      "names the holder where the lock does.") \
	CAUSE(PIPE, "pipe", "waiting for a pipe", \
	      "The thread waited for another process or thread to write to a pipe, or to read from it.") \
	CAUSE(SOCKET, "socket", "waiting for a connection's data", \
	      "The thread waited for data from a connection, or for room to send.") \
	CAUSE(FILE, "file", "reading or writing files", \
	      "The thread waited for a file, a disk or a terminal. Read ahead in another thread.") \
	CAUSE(LOADER, "loader", "waiting for the data loader", \
	      "The thread waited for the next batch of a data loader. Give the loader more workers, pin its " \
	      "memory, prefetch, or do less for each sample.") \
	CAUSE(JOIN, "join", "waiting for a thread or process to end", \
	      "The thread waited until another thread, or a child process, had ended.") \
	CAUSE(NOT_RUNNING, "not-running", "ready but on no CPU", \
	      "The thread was ready to run and had no CPU: more threads were ready than there are CPUs.") \
	CAUSE(LAUNCH, "launch", "submitting work", \
	      "The thread was in calls that submit work to a GPU, at their own cost, or the work was on its way to the " \
	      "GPU. Submit more work in " \
	      "fewer calls: CUDA graphs, larger kernels, batched copies.") \
	CAUSE(CUDA_CALL, "cuda-call", "in other CUDA calls", \
	      "The thread was in calls that allocate, free, ask or create, at their own cost.") \
	CAUSE(CUDA_LOCK, "cuda-lock", "waiting for a lock inside CUDA", \
	      "The thread waited inside a CUDA call for a lock of the driver: `cudaspy report` names its holder.") \
	CAUSE(CUDA_WAIT, "cuda-wait", "waiting inside CUDA for a GPU", \
	      "The thread waited inside a CUDA call for work of a GPU: of another one than the idle one, or it had yet to " \
	      "notice that the work was done.") \
	CAUSE(GPU_QUERY, "gpu-query", "waiting for the GPU, by asking whether it is done", \
	      "The thread asked over and over whether work of a GPU had ended (cudaEventQuery, cudaStreamQuery), and it had not. " \
	      "It waited for the GPU as in a synchronisation, and kept a CPU busy: cudaEventSynchronize waits without that, of an " \
	      "event made with cudaEventBlockingSync.") \
	CAUSE(KERNEL_MODULE, "kernel-module", "in NVIDIA's kernel module", \
	      "The thread was in a request to the kernel module: memory is mapped or unmapped, most often.") \
	CAUSE(CODE_LOADING, "code-loading", "loading code of the GPU", \
	      "The thread loaded a kernel or a library for the GPU, as the first call of each does.") \
	CAUSE(DEPENDENCY, "dependency", "waiting for other work of a GPU", \
	      "The next operation was submitted in time and waited on the device: for another stream, a copy or " \
	      "another GPU, or for its turn.") \
	CAUSE(HOST_FUNCTION, "host-function", "waiting for a function on the host", \
	      "The next operation was submitted in time and waited in its stream behind a function on the host " \
	      "(cudaLaunchHostFunc, cudaStreamAddCallback). Keep such functions short: signal a thread, and let that do " \
	      "the work.") \
	CAUSE(COLLECTIVE, "collective", "waiting for another rank", \
	      "The GPU waited in a collective operation for another rank.") \
	CAUSE(GPU_WORK, "gpu-work", "its GPU worked longer", \
	      "The rank's operation had been submitted in time, or its thread waited for its own GPU before: the GPU was late " \
	      "with the work before it. It has more to do than the others', or is slower: clocks, power, another tenant.") \
	CAUSE(NOTHING_TO_DO, "nothing-to-do", "waiting for requests", \
	      "The thread waited for a connection or an event: no request had come. No problem by itself.") \
	CAUSE(UNEXPLAINED, "unexplained", "unexplained", \
	      "What the thread did is not known: it was blocked, but not where a probe saw it.")

enum idle_cause {
#define CAUSE(name, code, text, meaning) IDLE_##name,
	IDLE_CAUSES(CAUSE)
#undef CAUSE
		IDLE_CAUSE_COUNT
};

/* Was the thread inside a call then? */
bool idle_in_a_call(enum idle_cause cause);

/* Is it known by what the thread was about, in Python: its meaning has the cure. */
bool idle_is_work(enum idle_cause cause);

/* Is it what Python did on a CPU between two calls; known by what it was about, or not? */
bool idle_runs_python(enum idle_cause cause);

/* Is it what a wait certainly was, whoever made it? */
bool idle_is_certain(enum idle_cause cause);

/* By number. */
extern const char *const idle_cause_codes[IDLE_CAUSE_COUNT];

/* The cause of that code; IDLE_CAUSE_COUNT: there is none. */
enum idle_cause idle_cause_of_code(const char *code);
extern const char *const idle_cause_texts[IDLE_CAUSE_COUNT];
extern const char *const idle_cause_meanings[IDLE_CAUSE_COUNT];

#endif
