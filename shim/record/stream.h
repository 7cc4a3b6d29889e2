/*
 * shim/record/stream.h: what the files of a stream (stream_*.c) have for each other; for all others there is stream_file.h.
 * On the slot's owner.
 */
#ifndef CUDASPY_SHIM_STREAM_H
#define CUDASPY_SHIM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "record/part.h"
#include "record/stream_file.h"
#include "state/thread.h"

#define SPY_STREAM_PAGE ((size_t)4096)

static inline size_t spy_whole_pages(size_t bytes)
{
	return (bytes + SPY_STREAM_PAGE - 1) & ~(SPY_STREAM_PAGE - 1);
}

static inline uint8_t *spy_tail_base(const struct spy_stream_file *file)
{
	return (uint8_t *)file->packet;
}

/* Bytes of the packet that are written: the thread's own word, not the file's. */
static inline size_t spy_tail_content(const struct spy_thread *thread)
{
	return (size_t)(thread->head - spy_tail_base(&thread->file));
}

/* Slot 0 has none. */
static inline struct spy_tally spy_stream_tally(const struct spy_thread *thread)
{
	const struct spy_slot_page *page = thread->page;

	return page ? (struct spy_tally){page->calls, page->lost} : (struct spy_tally){0};
}

/* stream_names.c: of a full packet, with a size bound. */
void spy_stream_packet_name(char *name, uint32_t slot, uint64_t seq);

/* stream_bound.c: is all that streams have on the disk within the bound? */
bool spy_bound_fits(void);

/* So many bytes more are on the disk: old parts and packets are deleted. False: they are still too many. The session's lock
 * is not held, but for the session's own stream. */
bool spy_bound_add(struct spy_thread *thread, size_t bytes);

/* The same, if there is room for them. */
bool spy_bound_claim(struct spy_thread *thread, size_t bytes);

/* stream_damage.c: calls that had been recorded, since that many, are lost. */
void spy_stream_count_lost(struct spy_thread *thread, uint64_t since);

/* Has the tail been truncated, or changed by others? */
bool spy_stream_is_damaged(const struct spy_thread *thread);

/* stream_store.c: the tail is full. 0 or -errno: then it stays. */
int spy_stream_store(struct spy_thread *thread);

/* stream_tail.c: a new file for the tail, of which nothing is kept. If there can be none, memory has to do. */
int spy_tail_map(struct spy_thread *thread);
void spy_tail_unmap(struct spy_thread *thread);

/* The tail's size changes, and with it what tails have grown by. */
void spy_tail_set_room(struct spy_thread *thread, size_t room);

/* False: the packet has to be stored. */
bool spy_tail_grow(struct spy_thread *thread, bool bounded);

/* An empty packet in it. */
void spy_tail_begin_packet(struct spy_thread *thread);

/* stream_part.c: the stream begins in that part, where it had so many calls. */
void spy_stream_enter_part(struct spy_stream_file *file, uint32_t part, struct spy_tally so_far);

/* Its files in the part before are closed as they are. */
void spy_stream_leave_part(struct spy_stream_file *file);

/* Moves on to the next part's folder, with what was written since the cut. 0, or -errno: all stays as it was. */
int spy_stream_move_on(struct spy_thread *thread, uint32_t part);

#endif
