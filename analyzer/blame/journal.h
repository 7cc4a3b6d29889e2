/*
 * analyzer/blame/journal.h: what readings of parts of a set write down for what is about several of them: threads in the
 * kernel module, the list of the worst calls, GPUs that are idle together. The journals of all parts, in the order of
 * their moments, are then what one reading of the whole set would have seen (parallel/replay.c).
 */
#ifndef CUDASPY_JOURNAL_H
#define CUDASPY_JOURNAL_H

#include "trace/moment.h"

struct thread;
struct thread_account;
struct rank_news;

enum journal_kind {
	JOURNAL_REQUEST, /* a thread was in the kernel module */
	JOURNAL_SEARCH, /* a call that was in it for longer than usual: who was there, too? */
	JOURNAL_WORST_CALL, /* a call that may be one of the worst */
	JOURNAL_GPU, /* a GPU is known from here on */
	JOURNAL_IDLE, /* it was idle */
	JOURNAL_TAKEN_BACK, /* a part of such an interval was not */
	JOURNAL_RANK, /* news of a rank: analyzer/ranks/news.h */
};

struct journal_entry {
	struct reading_moment at;
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
			uint64_t begin_ns, end_ns;
			uint64_t number, by_ns; /* of an interval; what was taken off it */
		} idle;
		struct {
			struct rank_news *news; /* owned */
		} rank;
	};
};

/* Starts with zeros. */
struct journal {
	struct journal_entry *all;
	size_t n, room;
	size_t weight; /* of all */
};

/* One more entry, of now, which weighs so much. The rest of it is the caller's to fill in. */
struct journal_entry *journal_add_heavy(struct journal *journal, enum journal_kind kind,
					size_t weight);

static inline struct journal_entry *journal_add(struct journal *journal, enum journal_kind kind)
{
	return journal_add_heavy(journal, kind, 1);
}

#endif
