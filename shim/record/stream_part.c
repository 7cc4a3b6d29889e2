/*
 * shim/record/stream_part.c: a stream moves on to another part of the recording. A tail stays in the folder of the part that it was begun in;
 * its owner moves on to the next part's folder when it makes room, and takes with it what it has written since the cut.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "record/board.h"
#include "state/session.h"
#include "record/stream.h"

bool spy_stream_is_behind(const struct spy_stream_file *file)
{
	return file->packet && atomic_load(&file->part) != atomic_load(&spy_session->part);
}

bool spy_stream_is_deleted(const struct spy_stream_file *file)
{
	return file->packet && spy_parts_are_deleted(atomic_load(&file->part));
}

/* Its files are closed as they are. */
void spy_stream_leave_part(struct spy_stream_file *file)
{
	file->full.inode = 0;
	file->file_bytes = file->file_number = 0;
	file->packet_calls = file->began.calls;
	file->stored_bytes = 0;
	file->discarded = 0;
}

/* Whoever ends the part before counts what is in it by this, if the slot has gone on already (parts.c). */
void spy_stream_enter_part(struct spy_stream_file *file, uint32_t part, struct spy_tally so_far)
{
	file->began = so_far;
	atomic_store(&file->began_in, part);
}

/* Up to where the part goes: to the head, if its owner comes here before the cut is noted, or that is unknown. */
static struct spy_cut cut_of(const struct spy_thread *thread, uint32_t part)
{
	const struct spy_cut *cut = &thread->cut;

	if (atomic_load(&cut->part) == part && cut->seq == thread->file.seq &&
	    cut->head > spy_tail_base(&thread->file) && cut->head <= thread->head)
		return *cut;
	return (struct spy_cut){.head = thread->head, .so_far = spy_stream_tally(thread)};
}

/* Nothing of a damaged tail goes on. */
static struct spy_cut cut_of_damaged(const struct spy_thread *thread)
{
	struct spy_tally so_far = spy_stream_tally(thread);
	uint64_t kept = thread->file.packet_calls;

	if (so_far.calls > kept)
		so_far = (struct spy_tally){kept, so_far.lost + so_far.calls - kept};
	return (struct spy_cut){.head = thread->head, .so_far = so_far};
}

/* What a tail was, whose owner moves on. */
struct left {
	struct spy_packet *packet;
	uint8_t *head;
	struct spy_file_id tail;
	size_t room, content;
	uint64_t calls; /* when the packet began */
	struct spy_tally began;
	uint32_t part, began_in;
};

/* What was counted in the part belongs there, as far as there is room, and the part is there. */
static size_t append_counts(struct spy_thread *thread, const struct left *left, uint64_t time)
{
	const uint16_t *fn = spy_session->board->counter_fn;
	uint64_t *counts = thread->page->counts;
	size_t content = left->content;

	for (size_t i = 0; i < SPY_BOARD_COUNTERS; i++) {
		struct spy_rec_count *record =
			(struct spy_rec_count *)((char *)left->packet + content);

		if (!counts[i])
			continue;
		if (content + sizeof(*record) > left->room)
			break; /* the rest is counted in the next part */
		*record = (struct spy_rec_count){.head = {.time = time, .event = SPY_EV_COUNT},
						 .fn = spy_board_see(fn[i]),
						 .tid = thread->tid,
						 .count = counts[i]};
		counts[i] = 0;
		content += sizeof(*record);
	}
	return content;
}

/* The tail's file ends with what is in it, where the part's folder is known still. What is mapped behind is not touched any
 * more. */
static void trim(const struct spy_thread *thread, const struct left *left)
{
	char name[SPY_STREAM_NAME_BYTES];
	int fd;

	if (!left->tail.inode)
		return;
	spy_stream_tail_name(name, thread->slot);
	fd = spy_folder_open(left->part, name, &left->tail);
	if (fd < 0)
		return; /* the part has been removed, or another one was finished since */
	if (ftruncate(fd, (off_t)left->content) == 0) {
		left->packet->packet_bits = left->content * 8;
		spy_parts_shrink(left->part, left->room - spy_whole_pages(left->content));
	}
	close(fd);
}

/* A tail in the next part's folder, with room for so much. 0 or -errno. */
static int begin_in(struct spy_thread *thread, uint32_t part, size_t bytes)
{
	struct spy_stream_file *file = &thread->file;
	uint64_t seq = file->seq;
	int error;

	file->packet = NULL;
	spy_tail_set_room(thread, 0);
	file->tail.inode = 0;
	file->part = part;
	error = spy_tail_map(thread);
	if (error)
		return error;
	spy_tail_begin_packet(thread);
	if (bytes <= file->room / 4 || spy_tail_grow(thread, false))
		return 0;
	file->seq = seq;
	return -ENOSPC;
}

/* As it was. */
static void stay(struct spy_thread *thread, const struct left *left, bool truncated)
{
	struct spy_stream_file *file = &thread->file;
	struct spy_packet *shown = thread->packet;

	if (file->packet)
		spy_tail_unmap(thread);
	file->packet = left->packet;
	file->tail = left->tail;
	file->truncated = truncated;
	file->part = left->part;
	file->packet_calls = left->calls;
	spy_stream_enter_part(file, left->began_in, left->began);
	spy_tail_set_room(thread, left->room);
	thread->packet = shown;
	thread->head = left->head;
}

/*
 * Moves on to the next part's folder, with what was written since the cut. The old tail is shown without that right before
 * the new one is shown with it: a process that is killed between these two stores loses that. On an error all stays as it
 * was.
 */
int spy_stream_move_on(struct spy_thread *thread, uint32_t part)
{
	struct spy_stream_file *file = &thread->file;
	struct left left = {.packet = file->packet,
			    .head = thread->head,
			    .tail = file->tail,
			    .room = file->room,
			    .calls = file->packet_calls,
			    .began = file->began,
			    .began_in = file->began_in,
			    .part = file->part};
	bool damaged = spy_stream_is_damaged(thread), truncated = file->truncated;
	struct spy_cut cut = damaged ? cut_of_damaged(thread) : cut_of(thread, left.part);
	const uint8_t *from = cut.head;
	size_t bytes = (size_t)(left.head - from);
	uint64_t last = left.packet->time_end, time = last;
	int error;

	spy_stream_enter_part(file, part, cut.so_far);
	error = begin_in(thread, part, bytes);
	if (error) {
		stay(thread, &left, truncated);
		return error;
	}
	if (damaged) {
		spy_stream_count_lost(thread, left.calls);
		atomic_store(&spy_session->damaged, true);
	}
	spy_stream_leave_part(file);
	file->oldest = file->seq - !!thread->slot;
	file->packet->discarded = 0;
	file->packet->time_begin = spy_parts_begun_at(part);
	memcpy(thread->head, from, bytes);
	if (bytes)
		memcpy(&time, from, sizeof(time)); /* a record's first field */
	/* It may be of the time of a part between the two, in which the thread made no call. */
	if (bytes && time < file->packet->time_begin)
		file->packet->time_begin = time;
	left.content = (size_t)(from - (const uint8_t *)left.packet);
	if (!damaged) {
		if (thread->page && file->kind == SPY_STREAM_CALLS &&
		    !spy_parts_are_deleted(left.part))
			left.content = append_counts(thread, &left, time);
		spy_packet_publish(left.packet, time, left.content * 8);
	}
	thread->head += bytes;
	spy_packet_publish(file->packet, bytes ? last : file->packet->time_begin,
			   (sizeof(struct spy_packet) + bytes) * 8);
	if (!damaged)
		trim(thread, &left);
	munmap(left.packet, SPY_PACKET_BYTES);
	return 0;
}
