/*
 * shim/record/stream_tail.c: the tail, the packet that is being written: a small file that is mapped, and grows. Called by the slot's
 * owner; spy_stream_prepare by the thread that ends a part of the recording.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/disk.h"
#include "process/options.h"
#include "state/session.h"
#include "record/stream.h"

#define PAGE SPY_STREAM_PAGE
#define FIRST_ROOM ((size_t)32 << 10) /* of a tail */
#define FIRST_ROOM_BOUNDED PAGE /* the same with a size bound */

uint8_t *spy_stream_limit(const struct spy_stream_file *file)
{
	size_t reserve = SPY_CALL_ROOM + SPY_WAIT_ROOM;

	/* Those of a size bound may be smaller. What does not fit behind such a limit lies in
	 * memory until the tail grows. */
	return spy_tail_base(file) + file->room -
	       (file->room >= FIRST_ROOM ? reserve : file->room / 4);
}

/* Puts bytes [from, to) of the tail into its file, with what is in memory there. */
static int back(const struct spy_stream_file *file, int fd, size_t from, size_t to, size_t content)
{
	size_t bytes = content > from ? content - from : 0;
	int error = spy_disk_reserve(fd, (off_t)from, to - from);
	void *map;

	if (error)
		return error;
	if (bytes && pwrite(fd, spy_tail_base(file) + from, bytes, (off_t)from) != (ssize_t)bytes)
		return -EIO;
	map = mmap(spy_tail_base(file) + from, to - from, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, (off_t)from);
	if (map == MAP_FAILED)
		return -errno;
	madvise(map, to - from, MADV_DONTFORK);
	return 0;
}

static void *map_memory(void *at)
{
	void *map = mmap(at, SPY_PACKET_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);

	if (map != MAP_FAILED)
		madvise(map, SPY_PACKET_BYTES, MADV_DONTFORK);
	return map;
}

/* Slot 0 has records that are larger than a page. */
static size_t first_room(const struct spy_thread *thread)
{
	return thread->slot && spy_options_keeps_packets() ? FIRST_ROOM_BOUNDED : FIRST_ROOM;
}

/* The tail's size changes, and with it what tails have grown by. */
void spy_tail_set_room(struct spy_thread *thread, size_t room)
{
	size_t before = thread->file.room, first = first_room(thread);

	thread->file.room = room;
	if (room > first)
		atomic_fetch_add(&spy_session->grown, room - first);
	if (before > first)
		atomic_fetch_sub(&spy_session->grown, before - first);
}

/* Slot 0's. Under a name that no reader looks at: a process that is killed before the part begins leaves no stream in it. */
int spy_stream_prepare(uint32_t part)
{
	struct spy_thread *self = &spy_threads[0];
	int fd = spy_folder_make(part, SPY_STREAM_PREPARED, &self->file.prepared), error;

	if (fd < 0)
		return fd;
	error = spy_disk_reserve(fd, 0, first_room(self));
	close(fd);
	if (error)
		spy_stream_unprepare(part);
	return error;
}

void spy_stream_unprepare(uint32_t part)
{
	struct spy_stream_file *file = &spy_threads[0].file;

	spy_folder_remove(part, SPY_STREAM_PREPARED, &file->prepared);
	file->prepared.inode = 0;
}

/* The tail's file: the one that was prepared, or a new one. A descriptor or -errno. */
static int make_tail(struct spy_stream_file *file, const char *name, size_t room)
{
	file->tail = file->prepared;
	if (file->tail.inode) {
		file->prepared.inode = 0;
		return spy_folder_rename(file->part, SPY_STREAM_PREPARED, name)
			       ?: spy_folder_open(file->part, name, &file->tail);
	}
	return spy_folder_has_room(room) ? spy_folder_make(file->part, name, &file->tail) : -ENOSPC;
}

/* A new file for the tail, of which nothing is kept. If there can be none, memory has to do:
 * then only a full packet is safe. */
int spy_tail_map(struct spy_thread *thread)
{
	struct spy_stream_file *file = &thread->file;
	size_t room = first_room(thread);
	char name[SPY_STREAM_NAME_BYTES];
	void *map = map_memory(file->packet);
	int fd, error;

	if (map == MAP_FAILED)
		return -errno;
	file->packet = map;
	file->truncated = false;
	atomic_fetch_sub(&spy_session->used, file->room);
	spy_tail_set_room(thread, room);
	spy_bound_add(thread, room); /* each thread has as much */
	spy_stream_tail_name(name, thread->slot);
	spy_folder_remove(file->part, name, &file->tail);
	fd = make_tail(file, name, room);
	if (fd < 0)
		return fd;
	error = back(file, fd, 0, room, 0);
	close(fd);
	if (error) {
		spy_folder_remove(file->part, name, &file->tail);
		file->tail.inode = 0;
	}
	return error;
}

void spy_tail_unmap(struct spy_thread *thread)
{
	struct spy_stream_file *file = &thread->file;
	char name[SPY_STREAM_NAME_BYTES];

	spy_stream_tail_name(name, thread->slot);
	spy_folder_remove(file->part, name, &file->tail);
	munmap(file->packet, SPY_PACKET_BYTES);
	atomic_fetch_sub(&spy_session->used, file->room);
	spy_tail_set_room(thread, 0);
	file->packet = NULL;
	file->tail.inode = 0;
	thread->packet = NULL;
	thread->head = NULL;
	spy_thread_lose_room(thread);
	thread->row = NULL;
}

uint64_t spy_stream_first_bytes(void)
{
	return atomic_load(&spy_session->slots) * FIRST_ROOM;
}

/* How large may the tail become? With a size bound the tails' growth together takes an eighth of
 * it. */
static size_t next_room(const struct spy_thread *thread, bool bounded)
{
	size_t room = thread->file.room,
	       wanted = spy_whole_pages(spy_tail_content(thread) + 2 * PAGE);

	if (!bounded)
		return SPY_PACKET_BYTES;
	while (room < wanted || room < 2 * thread->file.room)
		room *= 2;
	if (room > SPY_PACKET_BYTES ||
	    spy_session->grown + room - thread->file.room > spy_options_keep_bytes() / 8)
		return 0;
	return room;
}

/* False: the packet has to be stored. */
bool spy_tail_grow(struct spy_thread *thread, bool bounded)
{
	struct spy_stream_file *file = &thread->file;
	size_t before = file->room, room;
	char name[SPY_STREAM_NAME_BYTES];
	int fd, error;

	if (before == SPY_PACKET_BYTES || spy_stream_is_damaged(thread))
		return false;
	room = next_room(thread, bounded);
	if (!room || !spy_folder_has_room(room - before) ||
	    (bounded && !spy_bound_claim(thread, room - before)))
		return false;
	spy_stream_tail_name(name, thread->slot);
	fd = spy_folder_open(file->part, name, &file->tail);
	error = fd < 0 ? fd : back(file, fd, before, room, spy_tail_content(thread));
	if (fd >= 0)
		close(fd);
	if (error) {
		if (bounded)
			atomic_fetch_sub(&spy_session->used, room - before);
		return false;
	}
	if (!bounded)
		atomic_fetch_add(&spy_session->used, room - before);
	spy_tail_set_room(thread, room);
	file->packet->packet_bits = room * 8;
	return true;
}

void spy_stream_give_back(struct spy_thread *thread)
{
	struct spy_stream_file *file = &thread->file;
	char name[SPY_STREAM_NAME_BYTES];
	size_t kept;
	int fd;

	if (!file->packet || !file->tail.inode || file->truncated)
		return;
	kept = spy_whole_pages(spy_tail_content(thread));
	if (kept >= file->room)
		return;
	spy_stream_tail_name(name, thread->slot);
	fd = spy_folder_open(file->part, name, &file->tail);
	if (fd < 0)
		return;
	spy_disk_release(fd, (off_t)kept, file->room - kept);
	close(fd);
}

void spy_tail_begin_packet(struct spy_thread *thread)
{
	struct spy_stream_file *file = &thread->file;
	struct spy_packet *packet = file->packet;

	/* Empty first: a reader of this moment sees no record twice. */
	spy_packet_publish(packet, packet->time_begin, sizeof(*packet) * 8);
	packet->seq = file->seq;
	__atomic_store_n(&file->seq, file->seq + 1, __ATOMIC_RELAXED); /* may_give */
	packet->magic = SPY_CTF_MAGIC;
	memcpy(packet->uuid, spy_session->uuid, sizeof(packet->uuid));
	packet->instance = thread->slot;
	packet->time_begin = packet->time_end = spy_clock();
	packet->packet_bits = file->room * 8;
	packet->discarded = file->discarded;
	packet->overhead = 0;
	packet->tid = thread->tid;
	packet->kind = file->kind;
	file->packet_calls = spy_stream_tally(thread).calls;
	thread->head = (uint8_t *)(packet + 1);
}
