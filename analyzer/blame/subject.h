/*
 * analyzer/blame/subject.h: what a question is about (`cudaspy why`), and what belongs to it.
 */
#ifndef CUDASPY_SUBJECT_H
#define CUDASPY_SUBJECT_H

#include "edges.h"
#include "account/locks.h"

struct accounting;
struct completed_call;
struct process;
struct stack;

/* What a question is about; all zero: everything. SUBJECT_FINDING: one finding, and calls at its place. */
enum subject_kind {
	SUBJECT_ALL,
	SUBJECT_THREAD,
	SUBJECT_CALL,
	SUBJECT_LOCK,
	SUBJECT_DEVICE,
	SUBJECT_PLACE,
	SUBJECT_FINDING
};

/* Calls of one CUDA function that are made at one line of a place. */
struct place_call {
	uint32_t fn;
	const char *file; /* NULL unknown */
	uint64_t line; /* 0 unknown */
	uint64_t count, total_ns, lost_ns;
};

/* A place of the program: a line, a file, a function. */
struct subject_place {
	const char *text; /* as it was asked for; NULL: of a finding */
	const char *file; /* NULL: the function, or the offset in a module says where */
	uint64_t line; /* 0: all of the file */
	const char *function; /* as it was asked for; NULL: it is no function */
	uint64_t offset;
	bool (*made_there)(struct subject_place *place, const struct completed_call *call);
	/* Does the stack (NULL: none), or the code that returns to the address (0: none), lie there? */
	bool (*lies_there)(struct subject_place *place, const struct process *process,
			   const struct stack *stack, uint64_t address, uint64_t ns);
	/* Of a place that was asked for: all recorded calls that are known to be made there. */
	const struct place_call *calls;
	size_t n_calls;
	/* Functions that were found by the name that was asked for: "Net.forward (net.py), forward (old.py)". */
	const char *functions;
	/* Where findings are, if there is none here, with commas between: told by the section of findings. */
	const char *others;
};

struct subject {
	enum subject_kind kind;
	uint32_t tid, fn, device;
	const char *name; /* all threads that are called so, whatever their number; else NULL */
	struct lock_key lock;
	struct subject_place *place; /* NULL: none, or a finding of the whole run */
	size_t finding; /* its number in the report */
	bool also_function; /* the program has a function of that name, too */
};

/* Are file and line those of the place, which is a file or a line? Of the file as much as was asked for has to fit: its end. */
bool subject_place_fits(const struct subject_place *place, const char *file, uint64_t line);

/* Is the thread the subject, or one of those that are? Of questions about threads. */
bool subject_is_thread(const struct subject *subject, const struct thread *thread);

/* Is the lock the subject; has the edge to do with it? */
bool subject_is_lock(const struct subject *subject, const struct lock *lock);
bool subject_has_edge(const struct accounting *a, const struct subject *subject,
		      const union blame_key *key);

#endif
