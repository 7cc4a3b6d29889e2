/*
 * shim/stream_file.c: one thread's CTF stream. Nothing stays open between two packets, so an
 * application that closes every descriptor closes none of ours. Called by the slot's owner
 * (thread.c) when a packet is full; once in some four thousand calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include "disk.h"
#include "options.h"
#include "session.h"
#include "stream_file.h"

/* With a size bound each full packet is a file, so that the oldest can be deleted. */
static void packet_path(char *path, uint32_t instance, uint64_t seq, bool bounded)
{
	if (bounded)
		snprintf(path, SPY_PATH_MAX, "%s/stream_%04u_%06llu", spy_session->directory,
			 instance, (unsigned long long)seq);
	else
		snprintf(path, SPY_PATH_MAX, "%s/stream_%04u", spy_session->directory, instance);
}

/* The stream that has the most full packets to give up; itself if it has any. */
static struct spy_thread *richest(struct spy_stream_file *file)
{
	struct spy_thread *best = NULL;
	uint64_t most = 0;

	for (uint32_t i = 1; i < spy_session->slots; i++) {
		struct spy_thread *thread = &spy_session->threads[i];
		uint64_t full = thread->file.seq - thread->file.oldest;

		/* the newest is the tail */
		full = full ? full - 1 : 0;
		if (&thread->file == file && full)
			return thread;
		if (full > most) {
			most = full;
			best = thread;
		}
	}
	return best;
}

/* Deletes old packets until one more fits under the bound; a stream always keeps its tail. Session
 * lock held. */
static void make_room(struct spy_stream_file *file, uint64_t keep)
{
	char path[SPY_PATH_MAX];

	while ((spy_session->packets + 1) * SPY_PACKET_BYTES > keep) {
		struct spy_thread *victim = richest(file);

		if (!victim)
			break;
		packet_path(path, victim->slot, victim->file.oldest++, true);
		unlink(path);
		spy_session->packets--;
	}
	spy_session->packets++;
}

/* Appends the tail, without its unused end, to the stream's file. 0 or -errno. */
static int store_packet(struct spy_stream_file *file, uint32_t instance, bool bounded)
{
	struct spy_packet header = *file->packet;
	size_t bytes = header.content_bits / 8;
	struct iovec parts[] = {
		{&header, sizeof(header)},
		{file->packet + 1, bytes - sizeof(header)},
	};
	off_t offset = bounded ? 0 : (off_t)file->file_bytes;
	char path[SPY_PATH_MAX];
	ssize_t done;
	int fd, error = 0;

	header.packet_bits = header.content_bits;
	packet_path(path, instance, header.seq, bounded);
	fd = spy_disk_open(path, O_WRONLY | O_CREAT);
	if (fd < 0)
		return fd;
	error = spy_disk_allows(offset, bytes);
	if (!error) {
		do {
			done = pwritev(fd, parts, 2, offset);
		} while (done < 0 && errno == EINTR);
		if (done < 0)
			error = -errno;
		else if ((size_t)done < bytes)
			error = -ENOSPC;
	}
	/* At once: between these two a killed process leaves the packet twice. */
	if (!error)
		spy_packet_publish(file->packet, header.time_begin, sizeof(header) * 8);
	/* Part of a packet would not be a trace. */
	if (error && ftruncate(fd, offset) < 0)
		error = -errno;
	if (error && bounded)
		unlink(path);
	close(fd);
	if (!error)
		file->file_bytes += bytes;
	return error;
}

static int map_tail(struct spy_stream_file *file, uint32_t instance)
{
	char path[SPY_PATH_MAX];
	void *map = MAP_FAILED;
	int fd, error;

	snprintf(path, sizeof(path), "%s/stream_%04u_tail", spy_session->directory, instance);
	fd = spy_disk_open(path, O_RDWR | O_CREAT);
	if (fd < 0)
		return fd;
	error = spy_disk_reserve(fd, 0, SPY_PACKET_BYTES);
	if (!error) {
		map = mmap(NULL, SPY_PACKET_BYTES, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, fd, 0);
		if (map == MAP_FAILED)
			error = -errno;
	}
	close(fd);
	if (error) {
		unlink(path);
		return error;
	}
	madvise(map, SPY_PACKET_BYTES, MADV_DONTFORK);
	file->packet = map;
	return 0;
}

static void begin_packet(struct spy_stream_file *file, uint32_t instance, uint32_t tid)
{
	struct spy_packet *packet = file->packet;

	/* Empty first: a reader of this moment sees no record twice. */
	spy_packet_publish(packet, packet->time_begin, sizeof(*packet) * 8);
	packet->seq = file->seq++;
	packet->magic = SPY_CTF_MAGIC;
	memcpy(packet->uuid, spy_session->uuid, sizeof(packet->uuid));
	packet->instance = instance;
	packet->time_begin = packet->time_end = spy_clock();
	packet->packet_bits = SPY_PACKET_BYTES * 8;
	packet->discarded = file->discarded;
	packet->overhead = 0;
	packet->tid = tid;
}

static int next_packet(struct spy_stream_file *file, uint32_t instance, uint32_t tid, uint64_t keep)
{
	int error;

	error = file->packet ? store_packet(file, instance, keep) : map_tail(file, instance);
	if (error)
		return error;
	if (keep)
		make_room(file, keep);
	begin_packet(file, instance, tid);
	return 0;
}

int spy_stream_next_packet(struct spy_stream_file *file, uint32_t instance, uint32_t tid)
{
	/* The session's own stream explains the others: it is small and never shortened. */
	uint64_t keep = instance ? spy_options_keep_bytes() : 0;
	int error = -EBUSY;

	/* exit_group may stop a thread in the middle of a write; pairs with wait_for_stores. */
	atomic_fetch_add(&spy_session->storing, 1);
	if (!atomic_load(&spy_session->closed)) {
		if (!keep || spy_lock(&spy_session->lock)) {
			error = next_packet(file, instance, tid, keep);
			if (keep)
				spy_unlock(&spy_session->lock);
		}
	}
	atomic_fetch_sub(&spy_session->storing, 1);
	return error;
}
