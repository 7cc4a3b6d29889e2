/*
 * analyzer/parallel/parts.h: a trace set is read in parts, by several threads at a time, and the result is that of one
 * reading of the whole set, to the last byte.
 *
 * A part is some processes. Those that share a GPU of which times are recorded are in one part, for these are put in one
 * order (trace/groups.h). Each part has a struct analysis of its own and goes through the main reading alone (workers.c).
 * What is about several parts (threads of other processes in the kernel module, the list of the worst calls, GPUs that they
 * share or that are idle together, ranks) it writes down in journals. Those of all parts are replayed in the order of time
 * (replay.c), while the parts are read. Then the parts become one: threads, locks, places and all that has a number
 * or an order get those that one reading would have given them, by the position at which they came up (model/join.h).
 *
 * Where a part meets what it cannot know by itself, or a bound that is for the whole set, the parts are given up, and the
 * set is read as a whole.
 */
#ifndef CUDASPY_PARTS_H
#define CUDASPY_PARTS_H

#include <pthread.h>
#include "idle/replay.h"
#include "model/join.h"
#include "reading/reading.h"
#include "trace/groups.h"

struct part_warning {
	struct reading_position at;
	char *text;
};

enum part_state { PART_READY, PART_RUNNING, PART_ENDED };

/* Journals are kept apart by stage, so that each of them can be replayed by a thread of its own. */
enum part_line {
#define STAGE(field, ...) PART_LINE_##field,
#include "findings/stages.def"
	PART_LINES
};

/* What was written down in one go, and how much of it has been replayed. */
struct part_chunk {
	struct journal journal;
	size_t next;
	struct part_chunk *behind;
};

#define PART_TURN_FIRST 4096 /* records that are read in one go */
#define PART_TURN_MOST 32768

/* A journal of a part. */
struct part_journal {
	struct journal journal; /* of the one who reads */
	struct part_chunk *chunks, **last_chunk; /* the workers' lock: put back, to be replayed */
	struct part_chunk *replayed, **last_replayed; /* the replay's */
	/* Empty ones, to be written again: the workers' lock, and the replay's. */
	struct part_chunk *blank, *emptied;
	struct part *part;
};

struct part {
	struct parts *parts;
	size_t index;
	struct analysis a;
	struct stream **streams; /* in the set's order; owned */
	size_t n_streams;
	uint32_t *processes; /* likewise */
	size_t n_processes;
	struct reading reading;
	struct reading_place place; /* of the thread that reads it */
	unsigned int helpers; /* threads that may read ahead of the one that has it */
	bool begun;
	/* The rest belongs to the workers' lock: */
	enum part_state state;
	struct reading_position at; /* all before that has been read, and written down */
	uint64_t records;
	uint64_t turn; /* records that it reads in a turn */
	struct part_journal journals[PART_LINES];
	/* … but for this, which is the one's who reads: */
	struct part_warning *warnings;
	size_t n_warnings;
};

struct parts {
	struct analysis *whole;
	struct part *all;
	size_t n;
	uint64_t *begun_ns; /* by host: its cpu_pressure's begin_ns */
	struct join join;
	/* replay.c: of each line the journals that have something to be replayed, a binary heap by the positions of what is
	 * next; owned */
	struct part_heap {
		struct part_journal **all;
		size_t n;
	} heaps[PART_LINES];
	struct idle_replay gpus;
	uint64_t *elsewhere; /* GPUs that several parts use: groups_elsewhere; owned */
	size_t n_elsewhere;
};

/* Makes parts of the groups, `most` at most. parts_release in any case. */
void parts_init(struct parts *p, struct analysis *whole, struct groups *groups, size_t most);
void parts_release(struct parts *p);

/* Reads all parts with so many threads, and shows how far it is: workers.c. */
void parts_read(struct parts *p, unsigned int jobs,
		void (*tell)(const struct analysis *whole, uint64_t records));

/* Of one part; for workers.c. */
void part_begin(struct part *part);
bool part_go_on(struct part *part, uint64_t records); /* false: it has ended */

/* What was put back becomes the replay's. */
void parts_replay_take(struct parts *p, enum part_line line);

/* All of that up to a position; NULL: all. Returns what the entries weigh. A thread for each line may do so. */
size_t parts_replay(struct parts *p, enum part_line line, const struct reading_position *until);

/* The parts become the whole, whose own parts are initialised and empty. False: they are worth nothing, and the whole is
 * not what it should be either. Prints the warnings of the readings. */
bool parts_join(struct parts *p);

#endif
