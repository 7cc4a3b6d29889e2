/*
 * analyzer/report/report_words.h: the words in which the sections about waits are written: threads,
 * functions, times, and what belongs to the subject of a question.
 */
#ifndef CUDASPY_REPORT_WORDS_H
#define CUDASPY_REPORT_WORDS_H

#include "base/report.h"
#include "findings/analyzed.h"
#include "symbols/python.h"
#include "symbols/symbolize.h"

/* Names of buckets and causes for people, keys of causes in JSON; by their numbers. */
extern const char *const bucket_names[BUCKET_COUNT];
extern const char *const cause_names[CAUSE_COUNT];
extern const char *const cause_keys[CAUSE_COUNT];

/* Texts live as long as the report. "1.234 ms"; "12 %"; "1 call", "1,234 calls", of what has an s when there
 * are several. */
const char *word_time(struct report *report, uint64_t ns);
const char *word_percent(struct report *report, double part, double whole);
const char *word_count(struct report *report, uint64_t n, const char *what);

/* A result by its name, as the layer calls it that the function belongs to. */
const char *word_result(const struct analysis *a, uint32_t fn, unsigned int result);

/* The time since the trace's begin. */
const char *word_since(struct report *report, const struct analysis *a, uint64_t ns);

/* A function's name, NULL for NO_FUNCTION; " in cudaMalloc", or nothing. */
const char *word_function(const struct analysis *a, uint32_t fn);
const char *word_in_function(struct report *report, const struct analysis *a, uint32_t fn);

/* "node1"; NULL: nobody knows. */
const char *word_known_host(struct report *report, const struct host *host);

/* "@node1", where there are several hosts; else nothing. */
const char *word_host(struct report *report, const struct trace *trace);

/* "thread 123 (GPU 1)", "thread 123@node1 (GPU 1)", "thread 123 'loader' (GPU 1)", "the driver's own thread cuda-EvtHandlr (124)", "a thread without calls, loader (125)". */
const char *word_thread(struct report *report, const struct thread *thread, uint8_t device);

/* " in main, app.c:12 (app+0x1234)"; what is not known is left out, "" if nothing is. */
const char *word_place(struct report *report, const struct place *place);

/* Of what one of NVIDIA's libraries calls: " in cublasCreate_v2 (libcublas.so.13), for main, app.c:12". */
const char *word_place_for(struct report *report, const struct place *entry,
			   const struct place *place);

/* "train.py:42 in step"; NULL for none. */
const char *word_python(struct report *report, const struct python_line *line);

/* The thread of a blame_key; NULL unknown. */
const struct thread *edge_thread(const struct analysis *a, uint32_t index);

/* Is the lock the subject; has the edge to do with it? */
bool subject_is_lock(const struct subject *subject, const struct lock *lock);
bool subject_has_edge(const struct analysis *a, const struct subject *subject,
		      const struct blame_key *key);

#endif
