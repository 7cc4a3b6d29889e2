/*
 * analyzer/blame/subject.h: what a question is about (`cudaspy why`), and what belongs to it.
 */
#ifndef CUDASPY_SUBJECT_H
#define CUDASPY_SUBJECT_H

#include "edges.h"
#include "locks.h"

struct accounting;

/* What a question is about; all zero: everything. */
enum subject_kind { SUBJECT_ALL, SUBJECT_THREAD, SUBJECT_CALL, SUBJECT_LOCK, SUBJECT_DEVICE };

struct subject {
	enum subject_kind kind;
	uint32_t tid, fn, device;
	const char *name; /* of a thread, while its number is not known; else NULL */
	struct lock_key lock;
};

/* Is the lock the subject; has the edge to do with it? */
bool subject_is_lock(const struct subject *subject, const struct lock *lock);
bool subject_has_edge(const struct accounting *a, const struct subject *subject,
		      const struct blame_key *key);

#endif
