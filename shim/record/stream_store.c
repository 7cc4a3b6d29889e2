/*
 * shim/record/stream_store.c: a full packet goes to the stream's file, or, with a size bound, to a file of its own. Called by the slot's
 * owner, when its tail cannot grow.
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "lib/disk.h"
#include "process/options.h"
#include "state/session.h"
#include "record/stream.h"

/* The stream's file has gone, or is shorter than we left it: what was in it is lost, and the
 * next packet begins another file. */
static void leave_file(struct spy_thread *thread)
{
	struct spy_stream_file *file = &thread->file;
	uint64_t calls = spy_stream_tally(thread).calls;
	uint64_t in_packet = calls > file->packet_calls ? calls - file->packet_calls : 0;

	spy_stream_count_lost(thread, file->began.calls + in_packet);
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
	size_t bytes = spy_tail_content(thread);
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
		file->file_bytes += spy_tail_content(thread);
		spy_bound_add(thread, spy_tail_content(thread));
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
	size_t bytes = spy_whole_pages(spy_tail_content(thread));
	char name[SPY_STREAM_NAME_BYTES];
	struct spy_file_id id;
	int fd, error;

	if (!spy_bound_claim(thread, bytes)) {
		if (file->stored_bytes) /* which cannot be deleted */
			spy_stream_count_lost(thread, file->packet_calls);
		else
			file->oldest = file->seq;
		return 0;
	}
	spy_stream_packet_name(name, thread->slot, file->seq - 1);
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

int spy_stream_store(struct spy_thread *thread)
{
	if (spy_stream_is_damaged(thread)) {
		spy_stream_count_lost(thread, thread->file.packet_calls);
		atomic_store(&spy_session->damaged, true);
		return 0;
	}
	if (!spy_folder_has_room(spy_tail_content(thread)))
		return -ENOSPC;
	return spy_options_keeps_packets() ? keep_packet(thread) : append_packet(thread);
}
