/*
 * shim/record/stream_bound.c: the size bound: what streams have on the disk, and which full packets go for what is new. Called by the
 * owners of slots, where a tail grows or a packet is stored.
 */
#include <stdatomic.h>
#include "process/options.h"
#include "state/session.h"
#include "record/stream.h"

#define PAGE SPY_STREAM_PAGE
#define THREAD_ALLOWANCE (2 * PAGE) /* for each thread alive: its tail and its page of the board */

/*
 * With CUDASPY_KEEP=N all that streams have on the disk, tails included, and the board's pages of
 * living threads stay below max(N, 8 KiB for each thread alive). Each full packet is a file, so
 * that the oldest can be deleted.
 */
static uint64_t bound(void)
{
	uint64_t keep = spy_options_keep_bytes();
	uint64_t least = spy_session->alive * THREAD_ALLOWANCE;

	return keep > least ? keep : least;
}

bool spy_bound_fits(void)
{
	return !spy_options_keeps_packets() ||
	       spy_session->used + spy_session->alive * PAGE <= bound();
}

/* The session's own stream explains the others: it keeps its first packet, and a quarter of the
 * room. */
static bool may_give(const struct spy_thread *thread)
{
	const struct spy_stream_file *file = &thread->file;

	if (!file->stored_bytes ||
	    file->oldest + 1 >=
		    __atomic_load_n(&file->seq, __ATOMIC_RELAXED)) /* its owner begins packets */
		return false;
	return thread->slot || file->stored_bytes > spy_options_keep_bytes() / 4;
}

/* The stream that has the most full packets to give up; itself if it has any. */
static struct spy_thread *richest(struct spy_thread *self)
{
	struct spy_thread *best = NULL;

	if (may_give(self))
		return self;
	for (uint32_t i = 0; i < spy_session->slots; i++) {
		struct spy_thread *thread = &spy_threads[i];

		if (may_give(thread) &&
		    (!best || thread->file.stored_bytes > best->file.stored_bytes))
			best = thread;
	}
	return best;
}

/* Deletes a stream's oldest packet. */
static void delete_oldest(struct spy_thread *victim)
{
	struct spy_stream_file *file = &victim->file;
	char name[SPY_STREAM_NAME_BYTES];
	uint64_t bytes;

	spy_stream_packet_name(name, victim->slot, file->oldest++);
	bytes = spy_whole_pages(spy_folder_delete(file->part, name));
	if (bytes > file->stored_bytes)
		bytes = file->stored_bytes;
	file->stored_bytes -= bytes;
	atomic_fetch_sub(&spy_session->used, bytes);
}

/* So many bytes more are on the disk: old parts and packets are deleted. False: they are still too many.
 * The lock is for the deletion; it is not held while anything is written. But for the session's own stream: others wait for
 * that lock, and parts are left to them. */
bool spy_bound_add(struct spy_thread *thread, size_t bytes)
{
	struct spy_thread *victim;
	bool fitting;

	atomic_fetch_add(&spy_session->used, bytes);
	if (thread->slot)
		spy_parts_bound();
	if (spy_bound_fits())
		return true;
	if (thread->slot && !spy_lock(&spy_session->lock))
		return false;
	while (!(fitting = spy_bound_fits()) && (victim = richest(thread)))
		delete_oldest(victim);
	if (thread->slot)
		spy_unlock(&spy_session->lock);
	return fitting; /* what others add from here on they make room for themselves */
}

/* The same, if there is room for them. */
bool spy_bound_claim(struct spy_thread *thread, size_t bytes)
{
	if (spy_bound_add(thread, bytes))
		return true;
	atomic_fetch_sub(&spy_session->used, bytes);
	return false;
}
