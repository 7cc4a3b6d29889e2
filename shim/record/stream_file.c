/*
 * shim/record/stream_file.c: one thread's CTF stream. No file stays open between two packets, so an
 * application that closes every descriptor closes none of them. Called by the slot's owner
 * (thread.c) when there is no room; once in some four thousand calls.
 *
 * Nothing here, and in the other files of stream.h, believes what it finds in a file: another process may have changed,
 * truncated or removed it. What was lost by that is counted, and the stream goes on in a new file.
 */
#include <errno.h>
#include <stdatomic.h>
#include "lib/lock.h"
#include "process/options.h"
#include "state/session.h"
#include "record/stream.h"

/* Has the tail lost its file? If something else has the name, that is not ours to remove. */
static bool tail_is_gone(const struct spy_thread *thread)
{
	char name[SPY_STREAM_NAME_BYTES];

	if (thread->file.truncated || !thread->file.tail.inode)
		return true;
	spy_stream_tail_name(name, thread->slot);
	return spy_folder_check(thread->file.part, name, &thread->file.tail, thread->file.room) ==
	       -ENOENT;
}

static int first_packet(struct spy_thread *thread, uint32_t part)
{
	struct spy_stream_file *file = &thread->file;
	int error;

	if (file->part != part) {
		spy_stream_enter_part(file, part, spy_stream_tally(thread));
		spy_stream_leave_part(file);
	}
	file->part = part;
	error = spy_tail_map(thread);
	if (error) {
		if (file->packet)
			spy_tail_unmap(thread);
		return error;
	}
	if (!thread->slot)
		file->oldest = file->seq + 1;
	else if (!file->stored_bytes)
		file->oldest = file->seq;
	spy_tail_begin_packet(thread);
	return 0;
}

static int next_packet(struct spy_thread *thread, uint32_t part)
{
	int error;

	if (!thread->file.packet)
		return first_packet(thread, part);
	if (thread->file.part != part)
		return spy_stream_move_on(thread, part);
	if (spy_tail_grow(thread, spy_options_keep_bytes()))
		return 0;
	error = spy_stream_store(thread);
	if (error)
		return error;
	if (tail_is_gone(thread))
		spy_tail_map(thread);
	spy_tail_begin_packet(thread);
	return 0;
}

/*
 * exit_group may stop a thread in the middle of a write, but for the one that calls it, whose
 * libraries may still say good-bye to the driver; pairs with wait_for_stores. False: this thread's
 * packets are not stored any more.
 */
static bool begin_store(uint32_t *part)
{
	uintptr_t ender;

	*part = spy_parts_enter();
	ender = atomic_load(&spy_session->ender);
	if (!ender || ender == spy_lock_self())
		return true;
	spy_parts_leave(*part);
	return false;
}

int spy_stream_make_room(struct spy_thread *thread)
{
	uint32_t part;
	int error;

	if (!begin_store(&part))
		return -EBUSY;
	error = next_packet(thread, part);
	spy_parts_leave(part);
	return error;
}

void spy_stream_end(struct spy_thread *thread)
{
	uint32_t part;

	if (!spy_options_keeps_packets() || !begin_store(&part))
		return;
	atomic_fetch_sub(&spy_session->alive, 1);
	/* As long as there is room, the tail is left to the next thread. */
	if (thread->file.packet && thread->file.part == part && !spy_bound_fits()) {
		if (spy_stream_store(thread) < 0)
			spy_stream_count_lost(thread, thread->file.packet_calls);
		spy_tail_unmap(thread);
	}
	spy_bound_add(thread, 0);
	spy_parts_leave(part);
}

/* Not what we may not look at. */
static bool is_lost(const struct spy_stream_file *file, const char *name,
		    const struct spy_file_id *id, uint64_t bytes)
{
	int error = spy_folder_check(file->part, name, id, bytes);

	return error == -ENOENT || error == -ESTALE;
}

bool spy_stream_is_whole(const struct spy_thread *thread)
{
	const struct spy_stream_file *file = &thread->file;
	char name[SPY_STREAM_NAME_BYTES];

	if (file->part != spy_session->part)
		return true; /* of a part that is finished, and perhaps removed */
	spy_stream_tail_name(name, thread->slot);
	if (file->packet && file->tail.inode && is_lost(file, name, &file->tail, file->room))
		return false;
	spy_stream_file_name(name, thread->slot, file->file_number);
	return !file->full.inode || !is_lost(file, name, &file->full, file->file_bytes);
}
