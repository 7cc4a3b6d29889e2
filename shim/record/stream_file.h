/*
 * shim/record/stream_file.h: one thread's CTF stream.
 *
 * The packet being written is a small file of its own that stays mapped, stream_NNNN_tail: what is
 * in it survives a SIGKILL. A full packet is appended to stream_NNNN with one write and the tail
 * starts over, so its pages stay warm; fresh mapped pages would cost each record some 20 ns
 * (docs/PERFORMANCE.md). A tail begins small and grows: most threads make few calls. Only the
 * slot's owner calls these; packet changes are rare.
 */
#ifndef CUDASPY_SHIM_STREAM_FILE_H
#define CUDASPY_SHIM_STREAM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cudaspy/trace_format.h"
#include "process/folder.h"

#define SPY_PACKET_BYTES ((size_t)128 << 10)

struct spy_thread;

/* Of a slot since it was first used: records of calls, and lost ones. */
struct spy_tally {
	uint64_t calls, lost;
};

struct spy_stream_file {
	struct spy_packet *packet; /* the tail, mapped; NULL before the first one */
	/* bytes of it that lie in the file; behind them is memory of this process alone */
	size_t room;
	uint64_t file_bytes; /* where the next full packet goes */
	uint64_t file_number; /* stream_NNNN_K, K its first packet + 1; 0: stream_NNNN */
	uint64_t seq; /* of the next packet */
	uint64_t oldest; /* with a size bound: the oldest full packet not deleted */
	_Atomic uint64_t stored_bytes; /* with a size bound: of full packets that are there */
	uint64_t discarded; /* records lost so far */
	uint64_t packet_calls; /* what the slot had recorded when the packet began */
	struct spy_tally began; /* … when the slot came to the part of the recording … */
	_Atomic uint32_t began_in; /* … with this number; set last */
	struct spy_file_id tail, full;
	struct spy_file_id prepared; /* slot 0: the tail that the next part's folder has already */
	uint32_t kind; /* enum spy_stream_kind */
	_Atomic uint32_t part; /* of the recording, whose folder the tail is in (parts/parts.h) */
	bool truncated; /* the tail was truncated; what is mapped now is memory (truncation.c) */
};

/*
 * How far the slot had come when a part of the recording ended, noted by the thread that ended it: what is written behind
 * belongs to the next part. Valid for that part, and while the packet is still that one.
 */
struct spy_cut {
	_Atomic uint32_t part; /* 0: none; set last */
	uint64_t seq; /* of the next packet */
	uint8_t *head;
	struct spy_tally so_far;
};

/*
 * Shows a reader what was written up to `bits`: the last record's time, then, ordered after all of
 * it, the new length. One of the recorder's two ordered stores; pairs with every reader that maps
 * the file, such as the analyzer after a SIGKILL. Release suffices: a reader that sees the length
 * must see the records, and nothing here reads back. The packet lies at the start of a page.
 */
static inline void spy_packet_publish(struct spy_packet *packet, uint64_t time, uint64_t bits)
{
	uint64_t *content =
		(uint64_t *)((char *)packet + offsetof(struct spy_packet, content_bits));

	packet->time_end = time;
	__atomic_store_n(content, bits, __ATOMIC_RELEASE);
}

#define SPY_STREAM_NAME_BYTES 48

/* Names of a stream's files: of the tail, and of the one that full packets go to. */
void spy_stream_tail_name(char *name, uint32_t slot);
void spy_stream_file_name(char *name, uint32_t slot, uint64_t number);

/* May its calls be recorded so far without a look at the room? As far as `limit`, which leaves
 * room for what is in progress then. */
uint8_t *spy_stream_limit(const struct spy_stream_file *file);

/* So much do the tails of all slots have on the disk, in a part of the recording that has just begun. */
uint64_t spy_stream_first_bytes(void);

/*
 * Makes room for the slot's records: the tail grows, or its packet is stored and the next one
 * begins. head is where the thread's next record would go, and goes. Of slot 0 with the session's
 * lock held. Returns 0, or -errno and leaves all as it was.
 */
int spy_stream_make_room(struct spy_thread *thread);

#define SPY_STREAM_PREPARED ".stream_0000_tail.new"

/* The session's stream is to have room in the folder of the part that is about to begin: its tail is there. 0 or -errno. And
 * that part does not begin: it is removed. Session lock held. */
int spy_stream_prepare(uint32_t part);
void spy_stream_unprepare(uint32_t part);

/* Has another part of the recording begun since the tail did? Then room is made in that part. */
bool spy_stream_is_behind(const struct spy_stream_file *file);

/* Has the part been deleted that the tail is in? */
bool spy_stream_is_deleted(const struct spy_stream_file *file);

/* The thread ends: where its tail is too much for the size bound, it is stored and given up.
 * Session lock not held. */
void spy_stream_end(struct spy_thread *thread);

/* The process ends: the disk gets back what no record has reached of the tail. On the slot's owner; slot 0: session lock held.
 * What is written all the same takes its space anew (without any: SIGBUS, truncation.c). */
void spy_stream_give_back(struct spy_thread *thread);

/* Is what was written still there? From the end of the session. */
bool spy_stream_is_whole(const struct spy_thread *thread);

#endif
