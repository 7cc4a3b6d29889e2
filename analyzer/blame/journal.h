/*
 * analyzer/blame/journal.h: what readings of parts of a set write down for what is about several of them: threads in the
 * kernel module, the list of the worst calls, GPUs that are idle together. The journals of all parts, in the order of
 * their positions, are then what one reading of the whole set would have seen (parallel/replay.c).
 */
#ifndef CUDASPY_JOURNAL_H
#define CUDASPY_JOURNAL_H

#include "trace/position.h"

struct thread;
struct thread_account;
struct rank_event;
struct process;
struct range_name;

enum journal_kind {
	JOURNAL_REQUEST, /* a thread was in the kernel module */
	JOURNAL_SEARCH, /* a call that was in it for longer than usual: who was there, too? */
	JOURNAL_WORST_CALL, /* a call that may be one of the worst */
	JOURNAL_GPU, /* a GPU is known from here on, or a process uses it that others use */
	JOURNAL_GPU_EVENT, /* of such a GPU: struct idle_event */
	JOURNAL_IDLE, /* it was idle */
	JOURNAL_TAKEN_BACK, /* a part of such an interval was not */
	JOURNAL_RANK, /* an event of a rank: analyzer/ranks/events.h */
};

struct journal_entry {
	struct reading_position at;
	uint32_t fn;
	uint32_t gpu; /* its index in the part */
	uint8_t kind; /* enum journal_kind */
	uint8_t device;
	uint16_t weight; /* what it takes, in entries */
	union {
		struct {
			struct thread_account *account;
			uint64_t begin_ns, end_ns;
			uint64_t ns; /* of a request */
			uint64_t excess_ns, lost_ns; /* of a call */
		} module;
		struct {
			struct thread *thread;
			uint64_t end_ns, lost_ns, serial;
		} worst;
		struct {
			const struct process *process;
			const char *uuid; /* not owned; NULL: no other part uses the GPU */
		} user;
		struct {
			const struct process *process;
			const struct range_name *range;
			uint64_t begin_ns;
			size_t at; /* of its pieces: where they are stored */
			uint32_t n_pieces;
			bool submits, dormant;
			int8_t busier;
			bool holds; /* stacks, that have to stay until it is replayed */
		} event;
		struct {
			uint64_t begin_ns, end_ns;
			uint64_t number, by_ns; /* of an interval; what was taken off it */
		} idle;
		struct {
			struct rank_event *event; /* owned */
		} rank;
	};
};

/* Starts with zeros. */
struct journal {
	struct journal_entry *all;
	size_t n, room;
	size_t weight; /* of all */
	char *stored;
	size_t stored_bytes, stored_room;
};

/* One more entry, of now, which weighs so much. The rest of it is the caller's to fill in. */
struct journal_entry *journal_add_heavy(struct journal *journal, enum journal_kind kind,
					size_t weight);

/* It has no entries, and keeps its room. */
void journal_empty(struct journal *journal);

/* More than an entry has room for: kept with the journal. Returns where. */
size_t journal_store(struct journal *journal, const void *data, size_t bytes);

static inline struct journal_entry *journal_add(struct journal *journal, enum journal_kind kind)
{
	return journal_add_heavy(journal, kind, 1);
}

#endif
