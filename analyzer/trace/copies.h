/*
 * analyzer/trace/copies.h: directories that hold the same trace: it is read once.
 *
 * Each session has a uuid of its own. A trace that was copied to another folder, perhaps while it
 * was written, and is named with its copy, is one process.
 */
#ifndef CUDASPY_COPIES_H
#define CUDASPY_COPIES_H

struct trace_set;

/* When all traces are open: of those with one uuid, all but the one that has most become copies
 * (trace->copy), after a complaint. */
void copies_find(struct trace_set *set);

#endif
