/* links: shim/record/stream_file.c shim/record/stream_bound.c shim/record/stream_damage.c shim/record/stream_names.c */
/* links: shim/record/stream_part.c shim/record/stream_store.c shim/record/stream_tail.c shim/lib/disk.c shim/process/folder.c shim/process/ranks.c shim/lib/clock.c shim/lib/lock.c */
/*
 * tests/unit/test_stream_file.c: the files of a stream: what is in the tail and in the file of full packets, how the tail
 * grows, what is counted as lost when files have gone or changed, the size bound, and how a stream moves on to another part
 * of the recording, in a folder of the test's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "process/folder.h"
#include "process/options.h"
#include "scratch.h"
#include "state/session.h"
#include "record/stream.h"
#include "record/stream_file.h"

#define PAGE 4096
#define KIB 1024
#define FIRST (32 * KIB) /* of a tail */
#define RECORD 64
#define RESERVE (SPY_CALL_ROOM + SPY_WAIT_ROOM)

struct spy_session *spy_session;
static struct spy_thread threads[SPY_BOARD_SLOTS];
struct spy_thread *spy_threads = threads;
static uint64_t keep, floor_bytes;
static char *dir;
static struct spy_slot_page pages[8];

gid_t spy_options_group(void)
{
	return SPY_NO_GROUP;
}

uint64_t spy_options_floor_bytes(uint64_t file_system)
{
	(void)file_system;
	return floor_bytes;
}

uint64_t spy_options_keep_bytes(void)
{
	return keep;
}

bool spy_options_keeps_packets(void)
{
	return keep;
}

static int inside; /* spy_parts_enter and spy_parts_leave come in pairs */
static uint32_t shrunk_part;
static uint64_t shrunk_bytes;

uint32_t spy_parts_enter(void)
{
	inside++;
	return spy_session->part;
}

void spy_parts_leave(uint32_t part)
{
	assert_int_equal(part, spy_session->part);
	inside--;
}

uint64_t spy_parts_begun_at(uint32_t part)
{
	return part;
}

void spy_parts_bound(void)
{
}

void spy_parts_shrink(uint32_t part, uint64_t bytes)
{
	shrunk_part = part;
	shrunk_bytes = bytes;
}

static uint32_t deleted; /* parts up to this one */

bool spy_parts_are_deleted(uint32_t part)
{
	return part <= deleted;
}

static int n_open;

/* Descriptors of this process. */
static int count_open(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int begin(void **state)
{
	(void)state;
	n_open = count_open();
	spy_session = calloc(1, sizeof(*spy_session));
	assert_non_null(spy_session);
	memset(threads, 0, 4 * sizeof(threads[0]));
	memset(pages, 0, sizeof(pages));
	memset(spy_session->uuid, 0xab, sizeof(spy_session->uuid));
	spy_session->slots = 4;
	spy_session->part = 1;
	keep = floor_bytes = deleted = 0;
	dir = scratch_make();
	assert_int_equal(
		spy_folder_create(spy_session->directory, sizeof(spy_session->directory), dir, 7),
		0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		if (spy_threads[i].file.packet)
			munmap(spy_threads[i].file.packet, SPY_PACKET_BYTES);
	spy_folder_forget();
	assert_int_equal(count_open(), n_open);
	scratch_remove(dir);
	free(spy_session);
	return 0;
}

/* ---- threads and files ------------------------------------------------------------------------ */

/* The thread of a slot that has just been taken. */
static struct spy_thread *thread_of(uint32_t slot)
{
	struct spy_thread *t = &spy_threads[slot];

	t->slot = slot;
	t->tid = 1000 + slot;
	t->page = slot ? &pages[slot] : NULL;
	return t;
}

static int make_room(struct spy_thread *t)
{
	int error = spy_stream_make_room(t);

	if (!error) {
		t->packet = t->file.packet;
		spy_thread_use_room(t, spy_stream_limit(&t->file));
	}
	assert_int_equal(inside, 0);
	assert_false(spy_lock_is_mine(&spy_session->lock));
	return error;
}

/* A record: 64 bytes of the call's number, from 1 on. */
static void record(struct spy_thread *t)
{
	uint64_t number = ++t->page->calls;

	for (size_t i = 0; i < RECORD; i += sizeof(number))
		memcpy(t->head + i, &number, sizeof(number));
	spy_thread_publish(t, number, RECORD);
}

/* As many as fit; returns their number. */
static uint64_t fill(struct spy_thread *t)
{
	uint64_t n = 0;

	for (; t->head < t->limit; n++)
		record(t);
	return n;
}

/* Until a packet is full; the next one has begun. */
static uint64_t fill_packet(struct spy_thread *t)
{
	uint64_t seq = t->file.seq, n = 0;

	while (t->file.seq == seq) {
		n += fill(t);
		assert_int_equal(make_room(t), 0);
	}
	return n;
}

static char *path_of(const char *name)
{
	static char path[SPY_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", spy_session->directory, name);
	return path;
}

/* Of a file of the folder; -1: there is none. */
static long size_of(const char *name)
{
	struct stat status;

	return stat(path_of(name), &status) ? -1 : (long)status.st_size;
}

/* The packet at that place of a file is of so many records, the first of them of that call. Returns where the next
 * one is. */
static size_t check_packet(const char *name, size_t at, uint64_t seq, uint64_t first,
			   uint64_t records, uint64_t discarded)
{
	size_t bytes = sizeof(struct spy_packet) + records * RECORD, size;
	char *text = scratch_read(path_of(name), &size);
	const struct spy_packet *packet = (const struct spy_packet *)(text + at);
	const uint64_t *words = (const uint64_t *)(packet + 1);

	assert_non_null(text);
	assert_true(at + bytes <= size);
	assert_int_equal(packet->magic, SPY_CTF_MAGIC);
	assert_memory_equal(packet->uuid, spy_session->uuid, sizeof(packet->uuid));
	assert_int_equal(packet->seq, seq);
	assert_int_equal(packet->content_bits, bytes * 8);
	assert_int_equal(packet->packet_bits, bytes * 8);
	assert_int_equal(packet->discarded, discarded);
	assert_int_equal(packet->time_end, first + records - 1);
	for (uint64_t i = 0; i < records * RECORD / 8; i++)
		assert_int_equal(words[i], first + i / 8);
	free(text);
	return at + bytes;
}

/* ---- without a bound -------------------------------------------------------------------------- */

static void test_names(void **state)
{
	char name[SPY_STREAM_NAME_BYTES];

	(void)state;
	spy_stream_tail_name(name, 12);
	assert_string_equal(name, "stream_0012_tail");
	spy_stream_file_name(name, 12, 0);
	assert_string_equal(name, "stream_0012");
	spy_stream_file_name(name, 12, 1);
	assert_string_equal(name, "stream_0012_000000");
	spy_stream_file_name(name, 12345, 78);
	assert_string_equal(name, "stream_12345_000077");
}

static void test_first_packet(void **state)
{
	struct spy_thread *t = thread_of(1);
	const struct spy_packet *packet;
	uint64_t before = spy_clock();

	(void)state;
	assert_int_equal(make_room(t), 0);
	packet = t->file.packet;
	assert_int_equal(packet->magic, SPY_CTF_MAGIC);
	assert_memory_equal(packet->uuid, spy_session->uuid, sizeof(packet->uuid));
	assert_int_equal(packet->instance, 1);
	assert_int_equal(packet->seq, 0);
	assert_int_equal(packet->tid, 1001);
	assert_int_equal(packet->discarded, 0);
	assert_int_equal(packet->overhead, 0);
	assert_int_equal(packet->content_bits, sizeof(*packet) * 8);
	assert_int_equal(packet->packet_bits, FIRST * 8);
	assert_true(packet->time_begin >= before && packet->time_end == packet->time_begin);
	assert_ptr_equal(t->head, packet + 1);
	assert_ptr_equal(t->limit, (const uint8_t *)packet + FIRST - RESERVE);
	assert_int_equal(t->file.seq, 1);
	assert_int_equal(size_of("stream_0001_tail"), FIRST);
	assert_int_equal(size_of("stream_0001"), -1);
	assert_int_equal(spy_session->used, FIRST);
	assert_int_equal(spy_session->grown, 0);
	assert_true(spy_stream_is_whole(t));
}

/* The tail grows once; what is in it stays, and what is written behind it is in the file, too. */
static void test_growth(void **state)
{
	struct spy_thread *t = thread_of(1);
	const uint8_t *packet;
	uint64_t records;
	size_t size;
	char *text;

	(void)state;
	assert_int_equal(make_room(t), 0);
	packet = (const uint8_t *)t->packet;
	records = fill(t);
	assert_int_equal(records,
			 (FIRST - RESERVE - sizeof(struct spy_packet) + RECORD - 1) / RECORD);
	while (t->head < packet + FIRST + 3 * PAGE) /* calls in progress, and waits */
		record(t);
	records = t->page->calls;
	assert_int_equal(make_room(t), 0);
	assert_ptr_equal(t->packet, packet);
	assert_int_equal(t->file.seq, 1);
	assert_int_equal(t->file.room, SPY_PACKET_BYTES);
	assert_int_equal(t->packet->packet_bits, SPY_PACKET_BYTES * 8);
	assert_ptr_equal(t->limit, packet + SPY_PACKET_BYTES - RESERVE);
	assert_int_equal(spy_session->used, SPY_PACKET_BYTES);
	assert_int_equal(spy_session->grown, SPY_PACKET_BYTES - FIRST);
	records += fill(t);
	text = scratch_read(path_of("stream_0001_tail"), &size);
	assert_int_equal(size, SPY_PACKET_BYTES);
	assert_memory_equal(text, packet, SPY_PACKET_BYTES);
	assert_int_equal(((const struct spy_packet *)text)->content_bits,
			 8 * (sizeof(struct spy_packet) + records * RECORD));
	free(text);
}

/* Full packets lie one behind the other, without their unused ends. */
static void test_full_packets(void **state)
{
	struct spy_thread *t = thread_of(1);
	uint64_t records[3], first = 1;
	size_t at = 0;
	int i;

	(void)state;
	assert_int_equal(make_room(t), 0);
	for (i = 0; i < 3; i++) {
		t->file.discarded += 10;
		records[i] = fill_packet(t);
		assert_int_equal(t->packet->seq, i + 1);
		assert_int_equal(t->packet->discarded, 10 * (i + 1));
		assert_int_equal(t->packet->content_bits, sizeof(struct spy_packet) * 8);
		assert_int_equal(t->file.packet_calls, t->page->calls);
		assert_ptr_equal(t->head, t->packet + 1);
	}
	assert_true(records[0] > 1500);
	for (i = 0; i < 3; i++) {
		at = check_packet("stream_0001", at, (uint64_t)i, first, records[i],
				  10 * ((uint64_t)i + 1));
		first += records[i];
	}
	assert_int_equal(size_of("stream_0001"), at);
	assert_int_equal(t->file.file_bytes, at);
	assert_int_equal(size_of("stream_0001_tail"), SPY_PACKET_BYTES);
	assert_int_equal(spy_session->used, SPY_PACKET_BYTES + at);
	assert_int_equal(t->page->lost, 0);
	assert_false(spy_session->damaged);
	assert_true(spy_stream_is_whole(t));
}

/* ---- what is lost ----------------------------------------------------------------------------- */

/* Something is done to a tail with records of a second packet; how many calls are counted as lost. */
static uint64_t lost_by(void (*harm)(struct spy_thread *t))
{
	struct spy_thread *t = thread_of(1);
	uint64_t before, lost;

	assert_int_equal(make_room(t), 0);
	before = fill_packet(t);
	fill(t);
	harm(t);
	assert_int_equal(make_room(t), 0);
	assert_int_equal(t->packet->seq, 2);
	assert_int_equal(t->packet->discarded, t->file.discarded);
	assert_int_equal(t->packet->content_bits, sizeof(struct spy_packet) * 8);
	lost = t->page->lost;
	assert_int_equal(t->file.discarded, lost);
	assert_int_equal(t->page->calls, before + (lost ? 0 : t->page->calls - before));
	assert_int_equal(spy_session->damaged, lost != 0);
	/* What is recorded from here on is there. */
	t->page->calls = 100000;
	t->file.packet_calls = 100000;
	lost += t->page->lost - lost;
	before = fill_packet(t);
	assert_int_equal(t->packet->seq, 3);
	assert_int_equal(t->page->lost, lost);
	end(NULL);
	begin(NULL);
	return lost;
}

static void nothing(struct spy_thread *t)
{
	(void)t;
}

static void zero_page(struct spy_thread *t)
{
	memset((uint8_t *)t->packet + 2 * PAGE, 0, PAGE);
}

static void zero_last_page(struct spy_thread *t)
{
	size_t content = (size_t)(t->head - (uint8_t *)t->packet);

	memset((uint8_t *)t->packet + (content / PAGE - 1) * PAGE, 0, PAGE);
}

static void nearly_zero_page(struct spy_thread *t)
{
	memset((uint8_t *)t->packet + 2 * PAGE + 8, 0, PAGE - 8);
	memset((uint8_t *)t->packet + 3 * PAGE, 0, PAGE - 8);
}

static void other_magic(struct spy_thread *t)
{
	t->packet->magic++;
}

static void other_instance(struct spy_thread *t)
{
	t->packet->instance++;
}

static void other_seq(struct spy_thread *t)
{
	t->packet->seq++;
}

static void other_uuid(struct spy_thread *t)
{
	t->packet->uuid[15]++;
}

static void truncated(struct spy_thread *t)
{
	t->file.truncated = true;
}

static void test_damaged_tail(void **state)
{
	static void (*const harms[])(struct spy_thread *) = {
		zero_page, zero_last_page, other_magic, other_instance,
		other_seq, other_uuid,     truncated};
	uint64_t full, i;

	(void)state;
	assert_int_equal(lost_by(nothing), 0);
	assert_int_equal(lost_by(nearly_zero_page), 0);
	full = lost_by(zero_page);
	assert_in_range(full, (SPY_PACKET_BYTES - RESERVE) / RECORD - 2,
			(SPY_PACKET_BYTES - RESERVE) / RECORD);
	for (i = 0; i < sizeof(harms) / sizeof(*harms); i++)
		assert_int_equal(lost_by(harms[i]), full);
}

/* The file of the full packets has gone, is another one, or has become shorter: what was in it is lost, and the next
 * packet begins a file of its own. */
static void test_file_gone(void **state)
{
	int how;

	(void)state;
	for (how = 0; how < 3; how++) {
		struct spy_thread *t = thread_of(1);
		uint64_t lost, kept;

		assert_int_equal(make_room(t), 0);
		lost = fill_packet(t);
		lost += fill_packet(t);
		assert_true(spy_stream_is_whole(t));
		if (how == 0)
			unlink(path_of("stream_0001"));
		if (how == 1) { /* not one that gets the same number */
			char *other = strdup(path_of("other"));

			scratch_write(other, "x", 1);
			assert_int_equal(rename(other, path_of("stream_0001")), 0);
			free(other);
		}
		if (how == 2)
			assert_int_equal(truncate(path_of("stream_0001"), 1000), 0);
		assert_false(spy_stream_is_whole(t));
		kept = fill_packet(t);
		assert_int_equal(t->page->lost, lost);
		assert_int_equal(t->page->calls, kept);
		assert_int_equal(t->file.discarded, lost);
		assert_true(spy_session->damaged);
		assert_int_equal(check_packet("stream_0001_000002", 0, 2, lost + 1, kept, lost),
				 size_of("stream_0001_000002"));
		assert_int_equal(size_of("stream_0001"), how == 0 ? -1 : how == 1 ? 1 : 1000);
		assert_true(spy_stream_is_whole(t));
		/* And that file, too. */
		t->page->calls = 50000;
		t->file.packet_calls = 50000;
		fill_packet(t);
		unlink(path_of("stream_0001_000002"));
		lost = t->page->lost;
		kept = t->page->calls;
		fill_packet(t);
		assert_int_equal(t->page->lost - lost, kept);
		assert_true(size_of("stream_0001_000004") > 0);
		end(NULL);
		begin(NULL);
	}
}

/* It cannot be opened for now: nothing is lost, and it goes on when it can. */
static void test_no_descriptors(void **state)
{
	struct spy_thread *t = thread_of(1);
	struct rlimit before, none;
	uint64_t calls;

	(void)state;
	assert_int_equal(make_room(t), 0);
	calls = fill_packet(t);
	calls += fill(t);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(make_room(t), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(t->file.seq, 2);
	calls += fill_packet(t);
	assert_int_equal(t->page->lost, 0);
	assert_int_equal(t->page->calls, calls);
	assert_int_equal(t->file.discarded, 0);
	assert_false(spy_session->damaged);
	assert_int_equal(size_of("stream_0001_000002"), -1);
	assert_true(spy_stream_is_whole(t));
}

/* Without the tail's file the next packet gets another one. */
static void test_tail_gone(void **state)
{
	struct spy_thread *t = thread_of(1);

	(void)state;
	assert_int_equal(make_room(t), 0);
	fill_packet(t);
	unlink(path_of("stream_0001_tail"));
	assert_false(spy_stream_is_whole(t));
	fill_packet(t); /* what is in memory is stored */
	assert_int_equal(t->page->lost, 0);
	assert_int_equal(size_of("stream_0001_tail"), FIRST);
	assert_int_equal(t->file.room, FIRST);
	assert_int_equal(spy_session->used, FIRST + (uint64_t)size_of("stream_0001"));
	assert_int_equal(spy_session->grown, 0);
	assert_true(spy_stream_is_whole(t));
}

/* No room on the disk: nothing has changed, and there is a packet when there is room again. */
static void test_no_room(void **state)
{
	struct spy_thread *t = thread_of(1);
	uint64_t calls;

	(void)state;
	floor_bytes = UINT64_MAX / 2;
	assert_int_equal(make_room(t), -ENOSPC);
	assert_null(t->file.packet);
	assert_null(t->head);
	assert_int_equal(spy_session->used, 0);
	assert_int_equal(size_of("stream_0001_tail"), -1);
	floor_bytes = 0;
	assert_int_equal(make_room(t), 0);
	fill(t);
	floor_bytes = UINT64_MAX / 2; /* it cannot grow, nor be stored */
	assert_int_equal(make_room(t), -ENOSPC);
	assert_int_equal(t->file.room, FIRST);
	assert_int_equal(t->file.seq, 1);
	assert_int_equal(spy_session->used, FIRST);
	floor_bytes = 0;
	calls = t->page->calls;
	calls += fill_packet(t);
	check_packet("stream_0001", 0, 0, 1, calls, 0);
	spy_session->ender = 1; /* another thread ends the process */
	assert_int_equal(make_room(t), -EBUSY);
	spy_session->ender = spy_lock_self();
	fill(t);
	assert_int_equal(make_room(t), 0);
}

/* ---- with a bound ----------------------------------------------------------------------------- */

static char *packet_name(uint32_t slot, uint64_t seq)
{
	static char name[SPY_STREAM_NAME_BYTES];

	spy_stream_file_name(name, slot, seq + 1);
	return name;
}

static uint64_t on_disk(uint32_t slot, uint64_t packets, uint64_t *oldest)
{
	uint64_t bytes = 0, seq = packets;

	*oldest = packets;
	while (seq--) {
		long size = size_of(packet_name(slot, seq));

		if (size < 0)
			continue;
		assert_int_equal(*oldest, seq + 1); /* no gap */
		*oldest = seq;
		bytes += ((uint64_t)size + PAGE - 1) / PAGE * PAGE;
	}
	return bytes;
}

/* The oldest packets are deleted, no more of them than needed. */
static void test_bound(void **state)
{
	struct spy_thread *t = thread_of(1);
	uint64_t oldest, bytes, i, used, room = 0;

	(void)state;
	keep = 1 << 20;
	spy_session->alive = 1;
	assert_int_equal(make_room(t), 0);
	assert_int_equal(t->file.room, PAGE);
	assert_ptr_equal(t->limit, (uint8_t *)t->packet + PAGE - PAGE / 4);
	for (i = 4 * PAGE; i <= SPY_PACKET_BYTES; i *= 2) {
		fill(t);
		assert_int_equal(make_room(t), 0);
		assert_int_equal(t->file.seq, 1);
		assert_int_equal(t->file.room, i);
		assert_int_equal(size_of("stream_0001_tail"), i);
		assert_int_equal(spy_session->used, i);
		assert_ptr_equal(t->limit,
				 (uint8_t *)t->packet + i - (i >= FIRST ? RESERVE : i / 4));
	}
	for (i = 0; i < 40; i++) {
		fill_packet(t);
		bytes = on_disk(1, t->file.seq - 1, &oldest);
		used = spy_session->used;
		assert_int_equal(used, bytes + t->file.room);
		assert_int_equal(t->file.stored_bytes, bytes);
		assert_int_equal(t->file.oldest, oldest);
		assert_true(used + PAGE <= keep);
		if (oldest && i > 20)
			assert_true(used + PAGE + SPY_PACKET_BYTES > keep);
		assert_true(t->file.room >= room); /* which grows to an eighth, and stays */
		room = t->file.room;
	}
	assert_true(oldest > 0);
	assert_int_equal(room, SPY_PACKET_BYTES);
	assert_int_equal(spy_session->grown, SPY_PACKET_BYTES - PAGE);
	assert_int_equal(t->page->lost, 0); /* what was to be deleted is not lost */
	assert_int_equal(size_of("stream_0001"), -1);
	assert_true(spy_stream_is_whole(t));
}

/* Tails together grow by an eighth of the bound. */
static void test_growth_in_bound(void **state)
{
	uint64_t i;

	(void)state;
	keep = 1 << 20;
	spy_session->alive = 3;
	for (i = 1; i <= 3; i++)
		assert_int_equal(make_room(thread_of((uint32_t)i)), 0);
	for (i = 0; i < 9; i++) {
		fill(thread_of(1 + i % 3));
		assert_int_equal(make_room(thread_of(1 + i % 3)), 0);
		assert_true(spy_session->grown <= keep / 8);
	}
	for (i = 0; i < 60; i++)
		fill_packet(thread_of(1 + i % 3));
	assert_int_equal(spy_session->grown, thread_of(1)->file.room + thread_of(2)->file.room +
						     thread_of(3)->file.room - 3 * PAGE);
	assert_in_range(spy_session->grown, keep / 16, keep / 8);
	assert_true(spy_session->used + 3 * PAGE <= keep);
}

/* Who has no packets to give up takes from the thread that has most; the session's own stream keeps its first one and a
 * quarter of the room. */
static void test_richest(void **state)
{
	struct spy_thread *own = thread_of(0), *poor = thread_of(1), *rich = thread_of(2),
			  *late = thread_of(3);
	uint64_t before[2];
	int i;

	(void)state;
	own->page = &pages[7];
	keep = 1 << 20;
	spy_session->alive = 3;
	assert_int_equal(make_room(own), 0);
	assert_int_equal(own->file.room, FIRST);
	assert_int_equal(own->file.oldest, 1);
	assert_int_equal(make_room(poor), 0);
	assert_int_equal(make_room(rich), 0);
	for (i = 0; i < 40; i++)
		fill_packet(rich);
	fill_packet(poor);
	fill_packet(poor);
	before[0] = poor->file.stored_bytes;
	before[1] = rich->file.stored_bytes;
	assert_true(before[1] > before[0]);
	assert_int_equal(make_room(late), 0);
	fill(late);
	assert_int_equal(make_room(late), 0);
	for (i = 0; i < 3; i++)
		fill_packet(own);
	assert_int_equal(poor->file.stored_bytes, before[0]);
	assert_true(rich->file.stored_bytes < before[1]);
	assert_true(spy_session->used + 3 * PAGE <= keep);
	for (i = 0; i < 30; i++)
		fill_packet(own);
	assert_true(size_of(packet_name(0, 0)) > 0);
	assert_int_equal(size_of(packet_name(0, 1)), -1);
	assert_true(own->file.stored_bytes >= keep / 4);
	for (i = 0; i < 40; i++) /* the others take from it what is more than its quarter */
		fill_packet(late);
	assert_true(spy_session->used + 3 * PAGE <= keep);
}

/* Whose oldest packet goes: never the only one of a stream, whose owner may be at work on it; nor is more given back than a
 * stream had, whatever somebody has made of the file. */
static void test_who_gives(void **state)
{
	static uint8_t large[3 * PAGE];
	struct spy_thread *poor = thread_of(1), *late = thread_of(3);
	uint64_t used;
	FILE *file;

	(void)state;
	keep = 1 << 20;
	spy_session->alive = 1;
	assert_int_equal(make_room(poor), 0);
	assert_int_equal(make_room(late), 0);
	spy_session->used = used = keep + 5 * PAGE;
	poor->file.stored_bytes = PAGE;
	poor->file.seq = 1;
	assert_false(spy_bound_claim(late, 0));
	assert_int_equal(poor->file.oldest, 0);
	file = fopen(path_of(packet_name(1, 0)), "w");
	assert_non_null(file);
	assert_int_equal(fwrite(large, sizeof(large), 1, file), 1);
	fclose(file);
	poor->file.seq = 3;
	assert_false(spy_bound_claim(late, 0));
	assert_int_equal(size_of(packet_name(1, 0)), -1);
	assert_int_equal(spy_session->used, used - PAGE);
	assert_int_equal(poor->file.stored_bytes, 0);
	assert_int_equal(poor->file.oldest, 1); /* it has no more to give */
}

/* The session's own stream keeps a quarter of the bound. */
static void test_session_gives(void **state)
{
	struct spy_thread *self = thread_of(0), *late = thread_of(1);

	(void)state;
	keep = 1 << 20;
	spy_session->alive = 1;
	assert_int_equal(make_room(self), 0);
	assert_int_equal(make_room(late), 0);
	spy_session->used = keep + 5 * PAGE;
	self->file.seq = 3;
	self->file.oldest = 0;
	self->file.stored_bytes = keep / 4;
	assert_false(spy_bound_claim(late, 0));
	assert_int_equal(self->file.oldest, 0);
	self->file.stored_bytes = keep / 4 + PAGE;
	assert_false(spy_bound_claim(late, 0));
	assert_true(self->file.oldest > 0);
}

/* A thread ends: its tail is left to the next one as long as there is room, and is stored where there is not. */
static void test_end(void **state)
{
	struct spy_thread *t = thread_of(1);
	uint64_t calls, oldest, used;

	(void)state;
	assert_int_equal(make_room(t), 0);
	spy_session->alive = 5;
	spy_stream_end(t); /* without a bound there is nothing to do */
	assert_int_equal(spy_session->alive, 5);
	assert_non_null(t->file.packet);
	end(NULL);
	begin(NULL);
	keep = 1 << 20;
	t = thread_of(1);
	spy_session->alive = 2;
	assert_int_equal(make_room(t), 0);
	record(t);
	spy_stream_end(t);
	assert_int_equal(spy_session->alive, 1);
	assert_non_null(t->file.packet);
	assert_int_equal(size_of(packet_name(1, 0)), -1);
	/* So many threads are alive that their pages fill it. */
	spy_session->alive = 2;
	spy_session->used += keep;
	used = spy_session->used - t->file.room;
	calls = t->page->calls;
	spy_stream_end(t);
	assert_int_equal(calls, 1);
	assert_int_equal(spy_session->alive, 1);
	assert_null(t->file.packet);
	assert_null(t->head);
	assert_null(t->packet);
	assert_null(t->limit);
	assert_int_equal(t->file.room, 0);
	assert_int_equal(t->file.tail.inode, 0);
	assert_int_equal(t->page->lost, 0);
	assert_int_equal(size_of("stream_0001_tail"), -1);
	assert_true(spy_session->used <= used + PAGE);
	on_disk(1, 2, &oldest);
	assert_int_equal(inside, 0);
}

/* ---- parts ------------------------------------------------------------------------------------- */

/* The part ends, as the thread that ends it has it: these threads have come so far. */
static void end_part(struct spy_thread *t)
{
	t->cut.seq = t->file.seq;
	t->cut.head = t->head;
	t->cut.so_far = (struct spy_tally){t->page->calls, t->page->lost};
	t->cut.part = spy_session->part;
}

/* And the next one has begun. */
static void begin_part(void)
{
	uint32_t part = spy_session->part + 1, number;

	if (part == 2)
		scratch_write(path_of(".board"), "x", 1);
	assert_int_equal(spy_folder_begin_part(part, &number), 0);
	assert_int_equal(spy_folder_exchange(part, number), 0);
	spy_session->part = part;
}

static void next_part(struct spy_thread *t)
{
	end_part(t);
	begin_part();
}

/* What is written behind the end of a part is in the next one. */
static void test_next_part(void **state)
{
	struct spy_thread *t = thread_of(1);
	uint64_t calls, i;

	(void)state;
	assert_int_equal(make_room(t), 0);
	calls = fill_packet(t) + fill(t);
	end_part(t);
	for (i = 0; i < 3; i++)
		record(t);
	begin_part();
	assert_true(spy_stream_is_behind(&t->file));
	assert_int_equal(make_room(t), 0);
	assert_false(spy_stream_is_behind(&t->file));
	assert_int_equal(t->packet->content_bits, (sizeof(struct spy_packet) + 3 * RECORD) * 8);
	assert_int_equal(*(uint64_t *)(t->packet + 1), calls + 1);
	assert_int_equal(t->file.packet_calls, calls);
	assert_int_equal(t->file.began_in, 2);
	assert_int_equal(t->file.began.calls, calls);
	assert_int_equal(t->page->calls, calls + 3);
	assert_int_equal(t->page->lost, 0);
	assert_int_equal(shrunk_part, 1);
	assert_true(shrunk_bytes > 0);
	/* The tail of the new part is damaged: with what was taken along. */
	t->file.truncated = true;
	fill(t);
	assert_int_equal(make_room(t), 0);
	assert_int_equal(t->page->calls, calls);
}

/* Calls that are only counted go into the part that ends, unless that has been deleted already. */
static void test_next_part_counts(void **state)
{
	static struct spy_board board;
	struct spy_thread *t = thread_of(1);
	const struct spy_rec_count *record;
	struct spy_packet *packet;
	char *text;
	size_t size;

	(void)state;
	spy_session->board = &board;
	board.counter_fn[3] = 44;
	assert_int_equal(make_room(t), 0);
	fill(t);
	t->page->counts[3] = 7;
	end_part(t);
	text = spy_session->directory + strlen(spy_session->directory) - strlen(".cudaspy");
	begin_part();
	assert_int_equal(make_room(t), 0);
	assert_int_equal(t->page->counts[3], 0);
	memcpy(text, ".0001.cudaspy", sizeof(".0001.cudaspy"));
	packet = (struct spy_packet *)scratch_read(path_of("stream_0001_tail"), &size);
	memcpy(text, ".cudaspy", sizeof(".cudaspy"));
	record =
		(const struct spy_rec_count *)((const char *)packet + packet->content_bits / 8) - 1;
	assert_int_equal(record->head.event, SPY_EV_COUNT);
	assert_int_equal(record->fn, 44);
	assert_int_equal(record->count, 7);
	free(packet);
	t->page->counts[3] = 9;
	next_part(t);
	deleted = 2;
	assert_int_equal(make_room(t), 0);
	assert_int_equal(t->page->counts[3], 9);
}

/* The slot goes on before it is noted how far it was: it knows that itself. */
static void test_next_part_early(void **state)
{
	struct spy_thread *t = thread_of(1);
	uint64_t calls;

	(void)state;
	assert_int_equal(make_room(t), 0);
	assert_int_equal(t->file.began_in, 1);
	calls = fill(t);
	t->page->lost = 5;
	begin_part();
	assert_int_equal(make_room(t), 0);
	assert_int_equal(t->packet->content_bits, sizeof(struct spy_packet) * 8);
	fill(t);
	assert_int_equal(t->file.began_in, 2);
	assert_int_equal(t->file.began.calls, calls);
	assert_int_equal(t->file.began.lost, 5);
	deleted = 1;
	assert_false(spy_stream_is_deleted(&t->file));
	deleted = 2;
	assert_true(spy_stream_is_deleted(&t->file));
	assert_false(spy_stream_is_deleted(&thread_of(2)->file));
}

/* A damaged tail takes nothing along: all of it is lost, and counted. */
static void test_next_part_damaged(void **state)
{
	struct spy_thread *t = thread_of(1);
	uint64_t kept, calls;

	(void)state;
	assert_int_equal(make_room(t), 0);
	kept = fill_packet(t);
	calls = fill(t);
	end_part(t);
	record(t);
	other_magic(t);
	begin_part();
	assert_int_equal(make_room(t), 0);
	assert_int_equal(t->packet->content_bits, sizeof(struct spy_packet) * 8);
	assert_int_equal(t->page->lost, calls + 1);
	assert_int_equal(t->page->calls, kept);
	assert_int_equal(t->file.packet_calls, kept);
	assert_int_equal(t->file.began.calls, kept);
	assert_int_equal(t->file.began.lost, calls + 1);
	assert_true(spy_session->damaged);
}

/* Of a part that is finished nothing is lost when the next one's file has gone. */
static void test_next_part_file_gone(void **state)
{
	struct spy_thread *t = thread_of(1);
	uint64_t kept, lost;

	(void)state;
	assert_int_equal(make_room(t), 0);
	kept = fill_packet(t) + fill_packet(t);
	next_part(t);
	assert_int_equal(make_room(t), 0);
	lost = fill_packet(t);
	unlink(path_of("stream_0001"));
	kept += fill_packet(t);
	assert_int_equal(t->page->lost, lost);
	assert_int_equal(t->page->calls, kept);
}

/* Without room in the next part all is as it was. */
static void test_next_part_no_room(void **state)
{
	struct spy_thread *t = thread_of(1);
	const struct spy_packet *packet;
	uint64_t calls;

	(void)state;
	assert_int_equal(make_room(t), 0);
	fill_packet(t);
	packet = t->packet;
	record(t);
	next_part(t);
	calls = t->file.packet_calls;
	floor_bytes = UINT64_MAX / 2;
	assert_int_equal(make_room(t), -ENOSPC);
	assert_true(spy_stream_is_behind(&t->file));
	assert_ptr_equal(t->packet, packet);
	assert_ptr_equal(t->file.packet, packet);
	assert_int_equal(t->file.packet_calls, calls);
	assert_int_equal(t->file.part, 1);
	assert_int_equal(t->file.began_in, 1);
	assert_int_equal(t->file.began.calls, 0);
	record(t);
	floor_bytes = 0;
	assert_int_equal(make_room(t), 0);
	assert_int_equal(t->packet->content_bits, (sizeof(struct spy_packet) + RECORD) * 8);
	assert_int_equal(t->page->lost, 0);
}

/* What was prepared serves when the part has begun, though the disk is full by then. */
static void test_prepared(void **state)
{
	struct spy_thread *own = thread_of(0);
	uint32_t number;

	(void)state;
	own->page = &pages[7];
	assert_int_equal(make_room(own), 0);
	scratch_write(path_of(".board"), "x", 1);
	assert_int_equal(spy_folder_begin_part(2, &number), 0);
	assert_int_equal(spy_stream_prepare(2), 0);
	spy_stream_unprepare(2); /* that part did not begin */
	assert_int_equal(spy_stream_prepare(2), 0);
	assert_int_equal(spy_folder_exchange(2, number), 0);
	assert_int_equal(size_of(SPY_STREAM_PREPARED), FIRST);
	assert_int_equal(size_of("stream_0000_tail"), -1);
	spy_session->part = 2;
	floor_bytes = UINT64_MAX / 2;
	assert_int_equal(make_room(own), 0);
	assert_int_equal(own->file.part, 2);
	assert_int_equal(size_of(SPY_STREAM_PREPARED), -1);
	assert_int_equal(size_of("stream_0000_tail"), FIRST);
	assert_true(spy_stream_is_whole(own));
	record(own);
	/* Of the one after that nothing was. */
	next_part(own);
	assert_int_equal(make_room(own), -ENOSPC);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_names),
		TEST(test_first_packet),
		TEST(test_growth),
		TEST(test_full_packets),
		TEST(test_damaged_tail),
		TEST(test_file_gone),
		TEST(test_no_descriptors),
		TEST(test_tail_gone),
		TEST(test_no_room),
		TEST(test_bound),
		TEST(test_growth_in_bound),
		TEST(test_richest),
		TEST(test_who_gives),
		TEST(test_session_gives),
		TEST(test_end),
		TEST(test_next_part),
		TEST(test_next_part_counts),
		TEST(test_next_part_early),
		TEST(test_next_part_damaged),
		TEST(test_next_part_file_gone),
		TEST(test_next_part_no_room),
		TEST(test_prepared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
