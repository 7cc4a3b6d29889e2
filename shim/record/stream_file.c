/*
 * shim/record/stream_file.c: one thread's CTF stream. No file stays open between two packets, so an
 * application that closes every descriptor closes none of them. Called by the slot's owner
 * (thread.c) when there is no room; once in some four thousand calls.
 *
 * Nothing here believes what it finds in a file: another process may have changed, truncated or
 * removed it. What was lost by that is counted, and the stream goes on in a new file.
 *
 * Where the recording has parts (parts/parts.c) a tail stays in the folder of the part that it was begun in. Its owner moves
 * on to the next part's folder when it makes room, and takes with it what it has written since the cut.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "lib/disk.h"
#include "parts/parts.h"
#include "process/options.h"
#include "record/board.h"
#include "record/session.h"
#include "record/stream_file.h"

#define PAGE ((size_t)4096)
#define FIRST_ROOM ((size_t)32 << 10) /* of a tail */
#define FIRST_ROOM_BOUNDED PAGE /* the same with a size bound … */
#define THREAD_ALLOWANCE \
	(2 * PAGE) /* … for each thread alive: its tail and its page of the board */

void spy_stream_tail_name(char *name, uint32_t slot)
{
	snprintf(name, SPY_STREAM_NAME_BYTES, "stream_%04u_tail", slot);
}

static void packet_name(char *name, uint32_t slot, uint64_t seq)
{
	snprintf(name, SPY_STREAM_NAME_BYTES, "stream_%04u_%06llu", slot, (unsigned long long)seq);
}

void spy_stream_file_name(char *name, uint32_t slot, uint64_t number)
{
	if (number)
		packet_name(name, slot, number - 1);
	else
		snprintf(name, SPY_STREAM_NAME_BYTES, "stream_%04u", slot);
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

static uint8_t *base_of(const struct spy_stream_file *file)
{
	return (uint8_t *)file->packet;
}

/* Bytes of the packet that are written: the thread's own word, not the file's. */
static size_t content_of(const struct spy_thread *thread)
{
	return (size_t)(thread->head - base_of(&thread->file));
}

/* Slot 0 has none. */
static struct spy_tally tally(const struct spy_thread *thread)
{
	const struct spy_slot_page *page = thread->page;

	return page ? (struct spy_tally){page->calls, page->lost} : (struct spy_tally){0};
}

uint8_t *spy_stream_limit(const struct spy_stream_file *file)
{
	size_t reserve = SPY_CALL_ROOM + SPY_WAIT_ROOM;

	/* Those of a size bound may be smaller. What does not fit behind such a limit lies in
	 * memory until the tail grows. */
	return base_of(file) + file->room - (file->room >= FIRST_ROOM ? reserve : file->room / 4);
}

/* ---- the size bound ------------------------------------------------------------------------- */

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

static bool fits(void)
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

	packet_name(name, victim->slot, file->oldest++);
	bytes = whole_pages(spy_folder_delete(file->part, name));
	if (bytes > file->stored_bytes)
		bytes = file->stored_bytes;
	file->stored_bytes -= bytes;
	atomic_fetch_sub(&spy_session->used, bytes);
}

/* So many bytes more are on the disk: old parts and packets are deleted. False: they are still too many.
 * The lock is for the deletion; it is not held while anything is written. But for the session's own stream: others wait for
 * that lock, and parts are left to them. */
static bool add_bytes(struct spy_thread *thread, size_t bytes)
{
	struct spy_thread *victim;
	bool fitting;

	atomic_fetch_add(&spy_session->used, bytes);
	if (thread->slot)
		spy_parts_bound();
	if (fits())
		return true;
	if (thread->slot && !spy_lock(&spy_session->lock))
		return false;
	while (!(fitting = fits()) && (victim = richest(thread)))
		delete_oldest(victim);
	if (thread->slot)
		spy_unlock(&spy_session->lock);
	return fitting; /* what others add from here on they make room for themselves */
}

/* The same, if there is room for them. */
static bool claim(struct spy_thread *thread, size_t bytes)
{
	if (add_bytes(thread, bytes))
		return true;
	atomic_fetch_sub(&spy_session->used, bytes);
	return false;
}

/* ---- what was lost -------------------------------------------------------------------------- */

/* Calls that had been recorded, and are deleted. */
static void count_lost(struct spy_thread *thread, uint64_t since)
{
	uint64_t calls = tally(thread).calls;
	uint64_t lost = calls > since ? calls - since : 0;

	if (thread->page) {
		__atomic_store_n(&thread->page->calls, calls - lost, __ATOMIC_RELAXED);
		__atomic_store_n(&thread->page->lost, thread->page->lost + lost, __ATOMIC_RELAXED);
	}
	thread->file.discarded += lost ? lost : 1;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	while (size && !bytes[size - 1])
		size--;
	return !size;
}

/* Has the tail been truncated, or has it a hole? Then a page of it is all zeros, or the header
 * is not ours. A look at a page ends with its first record. */
static bool is_damaged(const struct spy_thread *thread)
{
	const struct spy_packet *packet = thread->file.packet;
	size_t content = content_of(thread);

	if (thread->file.torn || packet->magic != SPY_CTF_MAGIC ||
	    packet->instance != thread->slot || packet->seq + 1 != thread->file.seq ||
	    memcmp(packet->uuid, spy_session->uuid, sizeof(packet->uuid)) != 0)
		return true;
	for (size_t at = 0; at + PAGE <= content; at += PAGE)
		if (is_zero((const uint8_t *)packet + at, PAGE))
			return true;
	return false;
}

/* ---- full packets --------------------------------------------------------------------------- */

/* The stream's file has gone, or is shorter than we left it: what was in it is lost, and the
 * next packet begins another file. */
static void leave_file(struct spy_thread *thread)
{
	struct spy_stream_file *file = &thread->file;
	uint64_t calls = tally(thread).calls;
	uint64_t in_packet = calls > file->packet_calls ? calls - file->packet_calls : 0;

	count_lost(thread, file->began.calls + in_packet);
	atomic_store(&spy_session->damaged, true);
	file->packet_calls = file->began.calls;
	file->full.inode = 0;
	file->file_bytes = 0;
	file->file_number = file->seq; /* of the packet that is stored now, + 1 */
}

static int open_file(struct spy_thread *thread, char *name)
{
	struct spy_stream_file *file = &thread->file;
	struct stat status;
	int fd;

	if (file->full.inode) {
		spy_stream_file_name(name, thread->slot, file->file_number);
		fd = spy_folder_open(file->part, name, &file->full);
		if (fd >= 0 && fstat(fd, &status) == 0 &&
		    (uint64_t)status.st_size >= file->file_bytes)
			return fd;
		if (fd >= 0)
			close(fd);
		else if (fd != -ENOENT && fd != -ESTALE)
			return fd;
		leave_file(thread);
	}
	spy_stream_file_name(name, thread->slot, file->file_number);
	return spy_folder_make(file->part, name, &file->full);
}

/* Writes the tail, without its unused end. 0 or -errno. */
static int write_packet(const struct spy_thread *thread, int fd, off_t offset)
{
	struct spy_packet header = *thread->file.packet;
	size_t bytes = content_of(thread);
	struct iovec parts[] = {
		{&header, sizeof(header)},
		{thread->file.packet + 1, bytes - sizeof(header)},
	};
	ssize_t done;
	int error = spy_disk_allows(offset, bytes);

	header.content_bits = header.packet_bits = bytes * 8;
	header.discarded = thread->file.discarded;
	if (error)
		return error;
	do {
		done = pwritev(fd, parts, 2, offset);
	} while (done < 0 && errno == EINTR);
	if (done < 0)
		return -errno;
	return (size_t)done < bytes ? -ENOSPC : 0;
}

/* At once after the packet was written: between these two a killed process leaves the packet
 * twice. */
static void empty_tail(struct spy_thread *thread)
{
	struct spy_packet *packet = thread->file.packet;

	spy_packet_publish(packet, packet->time_begin, sizeof(*packet) * 8);
}

/* Appends the packet to the stream's file. */
static int append_packet(struct spy_thread *thread)
{
	struct spy_stream_file *file = &thread->file;
	char name[SPY_STREAM_NAME_BYTES];
	int fd = open_file(thread, name), error;

	if (fd < 0)
		return fd;
	error = write_packet(thread, fd, (off_t)file->file_bytes);
	if (!error) {
		empty_tail(thread);
		file->file_bytes += content_of(thread);
		add_bytes(thread, content_of(thread));
	} else if (ftruncate(fd, (off_t)file->file_bytes) < 0) {
		error = -errno; /* part of a packet would not be a trace */
	}
	close(fd);
	return error;
}

/* The same with a size bound. A packet for which there is no room is as if it had been deleted
 * already. */
static int keep_packet(struct spy_thread *thread)
{
	struct spy_stream_file *file = &thread->file;
	size_t bytes = whole_pages(content_of(thread));
	char name[SPY_STREAM_NAME_BYTES];
	struct spy_file_id id;
	int fd, error;

	if (!claim(thread, bytes)) {
		if (file->stored_bytes) /* which cannot be deleted */
			count_lost(thread, file->packet_calls);
		else
			file->oldest = file->seq;
		return 0;
	}
	packet_name(name, thread->slot, file->seq - 1);
	fd = spy_folder_make(file->part, name, &id);
	error = fd < 0 ? fd : write_packet(thread, fd, 0);
	if (fd >= 0)
		close(fd);
	if (error) {
		if (fd >= 0)
			spy_folder_remove(file->part, name, &id);
		atomic_fetch_sub(&spy_session->used, bytes);
		return error;
	}
	empty_tail(thread);
	file->stored_bytes += bytes;
	return 0;
}

static int store_packet(struct spy_thread *thread)
{
	if (is_damaged(thread)) {
		count_lost(thread, thread->file.packet_calls);
		atomic_store(&spy_session->damaged, true);
		return 0;
	}
	if (!spy_folder_has_room(content_of(thread)))
		return -ENOSPC;
	return spy_options_keeps_packets() ? keep_packet(thread) : append_packet(thread);
}

/* ---- the tail ------------------------------------------------------------------------------- */

/* Puts bytes [from, to) of the tail into its file, with what is in memory there. */
static int back(const struct spy_stream_file *file, int fd, size_t from, size_t to, size_t content)
{
	size_t bytes = content > from ? content - from : 0;
	int error = spy_disk_reserve(fd, (off_t)from, to - from);
	void *map;

	if (error)
		return error;
	if (bytes && pwrite(fd, base_of(file) + from, bytes, (off_t)from) != (ssize_t)bytes)
		return -EIO;
	map = mmap(base_of(file) + from, to - from, PROT_READ | PROT_WRITE,
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
static void set_room(struct spy_thread *thread, size_t room)
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
static int map_tail(struct spy_thread *thread)
{
	struct spy_stream_file *file = &thread->file;
	size_t room = first_room(thread);
	char name[SPY_STREAM_NAME_BYTES];
	void *map = map_memory(file->packet);
	int fd, error;

	if (map == MAP_FAILED)
		return -errno;
	file->packet = map;
	file->torn = false;
	atomic_fetch_sub(&spy_session->used, file->room);
	set_room(thread, room);
	add_bytes(thread, room); /* each thread has as much */
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

static void unmap_tail(struct spy_thread *thread)
{
	struct spy_stream_file *file = &thread->file;
	char name[SPY_STREAM_NAME_BYTES];

	spy_stream_tail_name(name, thread->slot);
	spy_folder_remove(file->part, name, &file->tail);
	munmap(file->packet, SPY_PACKET_BYTES);
	atomic_fetch_sub(&spy_session->used, file->room);
	set_room(thread, 0);
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
	size_t room = thread->file.room, wanted = whole_pages(content_of(thread) + 2 * PAGE);

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
static bool grow(struct spy_thread *thread, bool bounded)
{
	struct spy_stream_file *file = &thread->file;
	size_t before = file->room, room;
	char name[SPY_STREAM_NAME_BYTES];
	int fd, error;

	if (before == SPY_PACKET_BYTES || is_damaged(thread))
		return false;
	room = next_room(thread, bounded);
	if (!room || !spy_folder_has_room(room - before) ||
	    (bounded && !claim(thread, room - before)))
		return false;
	spy_stream_tail_name(name, thread->slot);
	fd = spy_folder_open(file->part, name, &file->tail);
	error = fd < 0 ? fd : back(file, fd, before, room, content_of(thread));
	if (fd >= 0)
		close(fd);
	if (error) {
		if (bounded)
			atomic_fetch_sub(&spy_session->used, room - before);
		return false;
	}
	if (!bounded)
		atomic_fetch_add(&spy_session->used, room - before);
	set_room(thread, room);
	file->packet->packet_bits = room * 8;
	return true;
}

static void begin_packet(struct spy_thread *thread)
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
	file->packet_calls = tally(thread).calls;
	thread->head = (uint8_t *)(packet + 1);
}

/* ---- another part of the recording ----------------------------------------------------------- */

bool spy_stream_is_behind(const struct spy_stream_file *file)
{
	return file->packet && atomic_load(&file->part) != atomic_load(&spy_session->part);
}

bool spy_stream_is_deleted(const struct spy_stream_file *file)
{
	return file->packet && spy_parts_are_deleted(atomic_load(&file->part));
}

/* Its files are closed as they are. */
static void leave_part(struct spy_stream_file *file)
{
	file->full.inode = 0;
	file->file_bytes = file->file_number = 0;
	file->packet_calls = file->began.calls;
	file->stored_bytes = 0;
	file->discarded = 0;
}

/* Whoever ends the part before counts what is in it by this, if the slot has gone on already (parts.c). */
static void come_to(struct spy_stream_file *file, uint32_t part, struct spy_tally so_far)
{
	file->began = so_far;
	atomic_store(&file->began_in, part);
}

/* Up to where the part goes: to the head, if its owner comes here before the cut is noted, or that is unknown. */
static struct spy_cut cut_of(const struct spy_thread *thread, uint32_t part)
{
	const struct spy_cut *cut = &thread->cut;

	if (atomic_load(&cut->part) == part && cut->seq == thread->file.seq &&
	    cut->head > base_of(&thread->file) && cut->head <= thread->head)
		return *cut;
	return (struct spy_cut){.head = thread->head, .so_far = tally(thread)};
}

/* Nothing of a damaged tail goes on. */
static struct spy_cut cut_of_damaged(const struct spy_thread *thread)
{
	struct spy_tally so_far = tally(thread);
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
		spy_parts_shrink(left->part, left->room - whole_pages(left->content));
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
	set_room(thread, 0);
	file->tail.inode = 0;
	file->part = part;
	error = map_tail(thread);
	if (error)
		return error;
	begin_packet(thread);
	if (bytes <= file->room / 4 || grow(thread, false))
		return 0;
	file->seq = seq;
	return -ENOSPC;
}

/* As it was. */
static void stay(struct spy_thread *thread, const struct left *left, bool torn)
{
	struct spy_stream_file *file = &thread->file;
	struct spy_packet *shown = thread->packet;

	if (file->packet)
		unmap_tail(thread);
	file->packet = left->packet;
	file->tail = left->tail;
	file->torn = torn;
	file->part = left->part;
	file->packet_calls = left->calls;
	come_to(file, left->began_in, left->began);
	set_room(thread, left->room);
	thread->packet = shown;
	thread->head = left->head;
}

/*
 * Moves on to the next part's folder, with what was written since the cut. The old tail is shown without that right before
 * the new one is shown with it: a process that is killed between these two stores loses that. On an error all stays as it
 * was.
 */
static int move_on(struct spy_thread *thread, uint32_t part)
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
	bool damaged = is_damaged(thread), torn = file->torn;
	struct spy_cut cut = damaged ? cut_of_damaged(thread) : cut_of(thread, left.part);
	const uint8_t *from = cut.head;
	size_t bytes = (size_t)(left.head - from);
	uint64_t last = left.packet->time_end, time = last;
	int error;

	come_to(file, part, cut.so_far);
	error = begin_in(thread, part, bytes);
	if (error) {
		stay(thread, &left, torn);
		return error;
	}
	if (damaged) {
		count_lost(thread, left.calls);
		atomic_store(&spy_session->damaged, true);
	}
	leave_part(file);
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

/* Has the tail lost its file? If something else has the name, that is not ours to remove. */
static bool tail_is_gone(const struct spy_thread *thread)
{
	char name[SPY_STREAM_NAME_BYTES];

	if (thread->file.torn || !thread->file.tail.inode)
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
		come_to(file, part, tally(thread));
		leave_part(file);
	}
	file->part = part;
	error = map_tail(thread);
	if (error) {
		if (file->packet)
			unmap_tail(thread);
		return error;
	}
	if (!thread->slot)
		file->oldest = file->seq + 1;
	else if (!file->stored_bytes)
		file->oldest = file->seq;
	begin_packet(thread);
	return 0;
}

static int next_packet(struct spy_thread *thread, uint32_t part)
{
	int error;

	if (!thread->file.packet)
		return first_packet(thread, part);
	if (thread->file.part != part)
		return move_on(thread, part);
	if (grow(thread, spy_options_keep_bytes()))
		return 0;
	error = store_packet(thread);
	if (error)
		return error;
	if (tail_is_gone(thread))
		map_tail(thread);
	begin_packet(thread);
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
	if (thread->file.packet && thread->file.part == part && !fits()) {
		if (store_packet(thread) < 0)
			count_lost(thread, thread->file.packet_calls);
		unmap_tail(thread);
	}
	add_bytes(thread, 0);
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
