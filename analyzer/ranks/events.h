/*
 * analyzer/ranks/events.h: what the evaluation of ranks has to know of a process: told while its records are read, in their
 * order. All that is decided by what other processes do is decided from these. For the files of this folder.
 */
#ifndef CUDASPY_RANKS_EVENTS_H
#define CUDASPY_RANKS_EVENTS_H

#include "ranks.h"

enum rank_event_kind { RANK_EVENT_COMM, RANK_EVENT_PLACE, RANK_EVENT_SUBMITTED, RANK_EVENT_RAN };

/* The begin of all of them. */
struct rank_event {
	enum rank_event_kind kind;
	const struct process *process;
};

/* A communicator has a rank in the process. */
struct rank_comm_event {
	struct rank_event head;
	struct spy_rec_nccl_comm comm;
};

/* The same place in several processes, whose addresses differ. Without padding: it is hashed byte by byte. */
struct rank_like_key {
	uint64_t file, offset; /* hash of the module's or source file's name; in it, or the line */
	uint32_t cause, fn;
	uint64_t code; /* hash of a function in Python, 0: none */
};

/* A place is there, or what is known of it has changed. */
struct rank_place_event {
	struct rank_event head;
	struct rank_place *place; /* owned if it is fresh */
	bool fresh;
	bool any_time;
	enum idle_cause cause; /* these three of a fresh one */
	struct rank_like_key like, roughly;
	struct idle_part longest;
	struct idle_holder *holder; /* owned; NULL: none */
};

/* Where an operation was submitted. */
struct rank_site_event {
	uint64_t key; /* hash of the place */
	bool has_stack;
	bool first; /* it has not been told before: part is */
	struct idle_part part;
};

/* A range of NVTX that was open. */
struct rank_level {
	const struct range_name *name; /* or its family; NULL: none */
	uint64_t since_ns;
};

#define RANK_LEVELS 4 /* ranges inside one another that may be the steps */

/* An operation was submitted. */
struct rank_submitted_event {
	struct rank_event head;
	struct spy_rec_collective operation;
	uint64_t ns; /* of the record */
	struct rank_op *op; /* owned; NULL: it is one of a graph's */
	bool graph; /* it stands for a launch of a graph: graphs.c */
	struct rank_site_event site;
	struct rank_level levels[RANK_LEVELS]; /* the outermost first */
};

/* It has run. */
struct rank_ran_event {
	struct rank_event head;
	uint32_t id;
	bool graph;
	bool by_host_times;
	uint64_t ran_ns, seen_ns; /* trace time */
	uint64_t begin_ns, end_ns; /* GPU's timer; or the same as those */
};

/* Tells it: at once, or by the journal. Takes over what it owns. */
void rank_emit(struct ranks *ranks, const struct rank_event *event, size_t bytes);

/* What a part tells has to stay, though the part needs it no more. */
void rank_pin(const struct ranks *ranks, const struct idle_part *part);

#endif
