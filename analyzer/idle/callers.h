/*
 * analyzer/idle/callers.h: waits by what people call them: a table of who waits, by the file in
 * Python or the library that the wait's stack goes through.
 */
#ifndef CUDASPY_IDLE_CALLERS_H
#define CUDASPY_IDLE_CALLERS_H

#include "causes.h"
#include "host.h"

/* What the stack of a wait says that it is; otherwise `cause`. NULL: no stack. */
enum idle_cause idle_cause_of_stack(const struct stack *stack, enum idle_cause cause);

/* The same of a wait between calls, for people: "torch's DataLoader"; NULL: nothing better than the cause's own words. */
const char *idle_name_of_wait(const struct idle_part *part);

/* What a thread does that runs between two calls, by the library that its program has called: a table, too; otherwise `cause`. */
enum idle_cause idle_cause_of_work(const struct stack *stack, enum idle_cause cause);

/* Code that is loaded by a call at that address, with that stack (NULL: unknown): has it just been compiled? */
bool idle_is_compiled(const struct process *process, uint64_t address, uint64_t ns,
		      const struct stack *stack);

/* The library, for people, where it is what the part's cause is about: "torch.compile"; NULL: unknown. */
const char *idle_name_of_work(const struct process *process, const struct idle_part *part);

/* Does the stack go through the begin or the end of a profiler's recording: a table, too? Its name; NULL: it does not. */
const char *idle_profiler_of_stack(const struct stack *stack, bool *ends);

/* A framework that runs functions of the program on the host, in the midst of a step of the GPU's. */
struct idle_callback {
	const char *file,
		*function; /* of it, in Python, that calls the program's: ends of their names */
	const char *domain, *range; /* of NVTX, around that: a part of the name */
	const char *name; /* as programs call it */
	const char *cure;
};

/* By which the program's innermost function was called, or by which the copies in such a range are made; NULL: none. */
const struct idle_callback *idle_callback_of_stack(const struct stack *stack);
const struct idle_callback *idle_callback_of_range(const struct range_name *range);

/* Are these words its cure? */
bool idle_is_callback_cure(const char *words);

#endif
