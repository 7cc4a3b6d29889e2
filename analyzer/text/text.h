/*
 * analyzer/text/text.h: the words in which sentences are written: times, counts, functions,
 * processes, threads. Texts live as long as the arena.
 */
#ifndef CUDASPY_TEXT_H
#define CUDASPY_TEXT_H

#include "base/util.h"
#include "model/model.h"

/* "1.234 ms"; "12 %"; "1 call", "1,234 calls", of what has an s when there are several. */
const char *text_time(struct arena *texts, uint64_t ns);
/* The same of several threads' times, added up, which may be more than has passed: "1.234 thread-ms", "1.234
 * thread-seconds". Of a single thread it is its time. */
const char *text_thread_time(struct arena *texts, uint64_t ns, uint64_t threads);
const char *text_percent(struct arena *texts, double part, double whole);
const char *text_count(struct arena *texts, uint64_t n, const char *what);

/* "t = 214.7 ms": the time since the trace's begin. */
/* "2nd" */
const char *text_ordinal(struct arena *texts, uint64_t n);

const char *text_since(struct arena *texts, const struct model *model, uint64_t ns);

/* A function's name, NULL for NO_FUNCTION; " in cudaMalloc", or nothing. */
const char *text_function(const struct trace_set *set, uint32_t fn);
const char *text_in_function(struct arena *texts, const struct trace_set *set, uint32_t fn);

/* A result by its name, as the layer calls it that the function belongs to. */
const char *text_result(const struct trace_set *set, uint32_t fn, unsigned int result);

/* "node1"; NULL: unknown. */
const char *text_known_host(struct arena *texts, const struct host *host);

/* "@node1", where there are several hosts; else nothing. */
const char *text_host(struct arena *texts, const struct trace *trace);

/* "program.pid", with its host. */
const char *text_program(struct arena *texts, const struct trace *trace);

/* "rank 3", "rank 3, 2nd start"; NULL: no launcher gave it a rank. */
const char *text_rank(struct arena *texts, const struct trace *trace);

/* " (node7, GPU 1)": the host where there are several, the device unless it is SPY_DEVICE_NONE;
 * empty if that leaves nothing. */
const char *text_where_runs(struct arena *texts, const struct trace *trace, uint8_t device);

/* "program.pid", as tables name a process, with its host; "rank 3, program.pid" where it has a rank. */
const char *text_process(struct arena *texts, const struct trace *trace);

/*
 * "thread 123 (GPU 1)", "thread 123@node1 (GPU 1)", "thread 123 'loader' (GPU 1)",
 * "thread 123 of rank 3 (node1, GPU 1)",
 * "the driver's own thread cuda-EvtHandlr (124)", "a thread without calls, loader (125)".
 */
const char *text_thread(struct arena *texts, const struct thread *thread, uint8_t device);

#endif
