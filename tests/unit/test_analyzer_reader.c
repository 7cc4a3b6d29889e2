/*
 * tests/unit/test_analyzer_reader.c: the reader on good, damaged, cut off and foreign streams.
 *
 * Each test takes a good stream apart. What must come out: the records before the damage, an
 * account of what is lost, and never a crash.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include "scratch.h"
#include "trace_writer.h"
#include "trace/reader.h"

#define PACKET 512
#define CALLS 60
#define LIVE_PACKETS 60000ull

struct fixture {
	char *dir;
	char file[256], tail[256]; /* full packets; the last one */
	uint8_t uuid[16];
	bool no_file; /* write_on: only the tail */
};

/* CALLS calls at times 1000, 1010, ..., and a note. */
static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct spy_rec_note note = {.head = {1000 + 10 * CALLS, SPY_EV_NOTE}};
	static struct tw_trace w;
	unsigned int i;

	f->dir = scratch_make();
	tw_open(&w, f->dir, PACKET);
	for (i = 0; i < CALLS; i++) {
		struct spy_rec_call call = {.head = {.time = 1000 + 10 * i, .event = SPY_EV_CALL}};

		tw_record(&w, 1, &call, sizeof(call));
	}
	tw_record_text(&w, 1, &note, sizeof(note), 1, (const char *[]){"the end"});
	memcpy(f->uuid, w.uuid, sizeof(f->uuid));
	tw_close(&w);
	snprintf(f->file, sizeof(f->file), "%s/stream_0001", f->dir);
	snprintf(f->tail, sizeof(f->tail), "%s/stream_0001_tail", f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	scratch_remove(f->dir);
	free(f);
	return 0;
}

/* Reads to the end. Returns the number of records. */
static unsigned int read_to_the_end(struct reader *r, struct reader_losses *losses)
{
	unsigned int n = 0, calls = 0;
	uint64_t time = 0;

	reader_set_buffer(r, 1); /* as small as it may be: as many refills as possible */
	while (reader_next(r)) {
		assert_true(r->time >= time);
		time = r->time;
		assert_true(r->record->other.event < SPY_EV_COUNT_ALL);
		calls += raw_is_call(r->record);
		n++;
	}
	assert_false(reader_next(r));
	assert_int_equal(reader_calls(r), calls);
	*losses = r->losses;
	reader_release(r);
	return n;
}

static unsigned int read_all(const struct fixture *f, struct reader_losses *losses, bool tail)
{
	struct reader r;

	reader_init(&r, f->uuid);
	if (tail)
		reader_add_file(&r, f->tail, READER_FILE_TAIL);
	reader_add_file(&r, f->file, READER_FILE_PLAIN);
	return read_to_the_end(&r, losses);
}

/* The same of a process that has not ended in order; sure: that may still write. */
static unsigned int read_live(const struct fixture *f, struct reader_losses *losses, bool sure)
{
	struct reader r;

	reader_init(&r, f->uuid);
	r.live = sure;
	r.unbounded = true;
	reader_add_copy_of_tail(&r, f->tail);
	reader_add_file(&r, f->file, READER_FILE_PLAIN);
	return read_to_the_end(&r, losses);
}

static const struct reader_losses none;

static void change(const char *path, size_t offset, const void *bytes, size_t n)
{
	size_t size;
	char *text = scratch_read(path, &size);

	assert_non_null(text);
	assert_true(offset + n <= size);
	memcpy(text + offset, bytes, n);
	scratch_write(path, text, size);
	free(text);
}

static void cut(const char *path, size_t size)
{
	assert_int_equal(truncate(path, (off_t)size), 0);
}

static size_t file_size(const char *path)
{
	size_t size = 0;

	free(scratch_read(path, &size));
	return size;
}

static void test_good(void **state)
{
	struct reader_losses losses;

	assert_int_equal(read_all(*state, &losses, true), CALLS + 1);
	assert_memory_equal(&losses, &(struct reader_losses){0}, sizeof(losses));
}

/* Passed over: the rest of the first packet and two more. Bytes and records that are left say how much that was. */
static void test_pass(void **state)
{
	const struct fixture *f = *state;
	unsigned int in_packet = (PACKET - sizeof(struct spy_packet)) / 32, n = 0;
	struct reader r;

	reader_init(&r, f->uuid);
	reader_add_file(&r, f->file, READER_FILE_PLAIN);
	reader_set_buffer(&r, 1);
	assert_true(reader_next(&r));
	assert_int_equal(reader_pass(&r, 3), 3 * PACKET - sizeof(struct spy_packet) - 32);
	assert_true(reader_next(&r));
	assert_int_equal(r.seq, 3);
	assert_int_equal(r.record->other.time, 1000 + 10 * 3 * in_packet);
	while (reader_next(&r))
		n++;
	assert_true(n > 2);
	reader_rewind(&r);
	assert_true(reader_next(&r));
	/* More than there are: the file's end is reached. */
	assert_int_equal(reader_pass(&r, 1000000),
			 file_size(f->file) - sizeof(struct spy_packet) - 32);
	assert_false(reader_next(&r));
	assert_int_equal(r.losses.unreadable_bytes, 0);
	reader_release(&r);
}

/* Wherever a file is cut off, what is before the cut is read. */
static void test_cut_anywhere(void **state)
{
	const struct fixture *f = *state;
	struct reader_losses losses;
	size_t size = file_size(f->file);
	unsigned int before = CALLS, n;

	while (size--) {
		cut(f->file, size);
		n = read_all(f, &losses, false);
		assert_true(n <= before);
		assert_true(n >= size / PACKET * ((PACKET - sizeof(struct spy_packet)) / 32));
		before = n;
	}
	assert_int_equal(before, 0);
}

/* Any byte may have any value. Nothing crashes, and the reader comes to an end. */
static void test_any_byte(void **state)
{
	const struct fixture *f = *state;
	struct reader_losses losses;
	size_t size, i;
	char *text = scratch_read(f->file, &size);

	for (i = 0; i < PACKET + sizeof(struct spy_packet) + 40; i++) {
		char old = text[i];

		text[i] = (char)~old;
		scratch_write(f->file, text, size);
		read_all(f, &losses, true);
		text[i] = old;
	}
	free(text);
}

static void test_bad_magic(void **state)
{
	const struct fixture *f = *state;
	struct reader_losses losses;
	unsigned int per_packet =
		(PACKET - sizeof(struct spy_packet)) / sizeof(struct spy_rec_call);

	change(f->file, PACKET, "XXXX", 4);
	assert_int_equal(read_all(f, &losses, false), per_packet);
	assert_int_equal(losses.unreadable_bytes, file_size(f->file) - PACKET);
}

static void test_other_uuid(void **state)
{
	const struct fixture *f = *state;
	struct reader_losses losses;

	change(f->file, offsetof(struct spy_packet, uuid), "another uuid", 12);
	assert_int_equal(read_all(f, &losses, false), 0);
	assert_int_equal(losses.unreadable_bytes, file_size(f->file));
}

static void test_unknown_event(void **state)
{
	const struct fixture *f = *state;
	uint16_t event = SPY_EV_COUNT_ALL;
	struct reader_losses losses;
	unsigned int per_packet =
		(PACKET - sizeof(struct spy_packet)) / sizeof(struct spy_rec_call);

	/* The rest of the first packet is lost, and nothing else. */
	change(f->file, sizeof(struct spy_packet) + 2 * sizeof(struct spy_rec_call) + 8, &event, 2);
	assert_int_equal(read_all(f, &losses, true), CALLS + 1 - per_packet + 2);
	assert_int_equal(losses.unreadable_bytes, (per_packet - 2) * sizeof(struct spy_rec_call));
}

static void test_sizes_beyond_file(void **state)
{
	const struct fixture *f = *state;
	uint64_t huge = UINT64_MAX & ~7ull;
	struct reader_losses losses;

	change(f->file, offsetof(struct spy_packet, content_bits), &huge, 8);
	change(f->file, offsetof(struct spy_packet, packet_bits), &huge, 8);
	assert_true(read_all(f, &losses, false) > 0);
	assert_true(losses.unreadable_bytes > 0);
}

static void test_contradicting_sizes(void **state)
{
	const struct fixture *f = *state;
	uint64_t small = 8;
	struct reader_losses losses;

	change(f->file, offsetof(struct spy_packet, packet_bits), &small, 8);
	assert_int_equal(read_all(f, &losses, false), 0);
	assert_int_equal(losses.unreadable_bytes, file_size(f->file));
}

static void test_text_without_end(void **state)
{
	const struct fixture *f = *state;
	size_t size, at;
	char *text = scratch_read(f->tail, &size), *note;
	struct reader_losses losses;

	note = memmem(text, size, "the end", 7);
	assert_non_null(note);
	at = (size_t)(note - text);
	free(text);
	change(f->tail, at + 7, "!", 1);
	assert_int_equal(read_all(f, &losses, true), CALLS);
	assert_true(losses.unreadable_bytes > 0);
}

static void test_time_runs_backwards(void **state)
{
	const struct fixture *f = *state;
	uint64_t early = 3;
	struct reader_losses losses;

	change(f->file, sizeof(struct spy_packet) + 5 * sizeof(struct spy_rec_call), &early, 8);
	assert_int_equal(read_all(f, &losses, true), CALLS + 1);
	assert_int_equal(losses.disordered, 1);
}

/* A record of another time than its packet is skipped, alone; and a header that contradicts itself is not
 * believed. */
static void test_time_runs_away(void **state)
{
	const struct fixture *f = *state;
	uint64_t late = 1ull << 60, zero = 0, all = UINT64_MAX;
	struct reader_losses losses;

	change(f->file, sizeof(struct spy_packet) + 5 * sizeof(struct spy_rec_call), &late, 8);
	assert_int_equal(read_all(f, &losses, true), CALLS);
	assert_int_equal(losses.unreadable_bytes, sizeof(struct spy_rec_call));
	assert_int_equal(losses.disordered, 0);
	change(f->file, offsetof(struct spy_packet, time_begin), &all, 8);
	change(f->file, offsetof(struct spy_packet, time_end), &zero, 8);
	assert_int_equal(read_all(f, &losses, true), CALLS + 1);
}

static void test_empty_and_missing(void **state)
{
	const struct fixture *f = *state;
	struct reader_losses losses;

	cut(f->file, 0);
	assert_int_equal(read_all(f, &losses, false), 0);
	assert_int_equal(unlink(f->file), 0);
	assert_int_equal(read_all(f, &losses, false), 0);
	assert_int_equal(losses.unreadable_files, 1);
	assert_int_equal(mkdir(f->file, 0777), 0);
	assert_int_equal(read_all(f, &losses, false), 0);
	assert_int_equal(losses.unreadable_files, 1);
}

/* Killed while a packet moved from the tail to the file: it is there twice, or in part. */
static void test_packet_twice(void **state)
{
	const struct fixture *f = *state;
	struct reader_losses losses;
	size_t file_bytes, tail_bytes, n;
	char *file = scratch_read(f->file, &file_bytes);
	char *tail = scratch_read(f->tail, &tail_bytes), *both = malloc(file_bytes + tail_bytes);

	memcpy(both, file, file_bytes);
	memcpy(both + file_bytes, tail, tail_bytes);
	for (n = 0; n <= tail_bytes; n += 7) {
		scratch_write(f->file, both, file_bytes + n);
		assert_int_equal(read_all(f, &losses, true), CALLS + 1);
		assert_memory_equal(&losses, &(struct reader_losses){0}, sizeof(losses));
	}
	free(file);
	free(tail);
	free(both);
}

static void test_missing_packets(void **state)
{
	const struct fixture *f = *state;
	struct reader_losses losses;
	uint64_t seq = 3, discarded = 11;

	/* The second packet says that it is the fourth, and that eleven records were lost. */
	change(f->file, PACKET + offsetof(struct spy_packet, seq), &seq, 8);
	change(f->file, PACKET + offsetof(struct spy_packet, discarded), &discarded, 8);
	cut(f->file, 2 * PACKET);
	read_all(f, &losses, false);
	assert_int_equal(losses.packets_missing, 2);
	assert_int_equal(losses.packets_dropped, 0);
	assert_int_equal(losses.discarded, 11);
}

/* Without a file of full packets the first ones are missing; only a bound would excuse it. */
static void test_tail_alone(void **state)
{
	const struct fixture *f = *state;
	struct reader_losses losses;
	struct reader r;

	assert_int_equal(unlink(f->file), 0);
	reader_init(&r, f->uuid);
	r.unbounded = true;
	reader_add_file(&r, f->tail, READER_FILE_TAIL);
	read_to_the_end(&r, &losses);
	assert_true(losses.packets_missing > 0);
	assert_int_equal(losses.packets_dropped, 0);
	reader_init(&r, f->uuid);
	reader_add_file(&r, f->tail, READER_FILE_TAIL);
	read_to_the_end(&r, &losses);
	assert_true(losses.packets_dropped > 0);
	assert_int_equal(losses.packets_missing, 0);
}

/* With a size bound a tail may be about to grow, and be smaller than what is in it; but not smaller than its header. */
static void test_tail_of_no_size(void **state)
{
	const struct fixture *f = *state;
	struct reader_losses losses;
	uint64_t no_bits = 0;
	struct reader r;

	change(f->tail, offsetof(struct spy_packet, packet_bits), &no_bits, 8);
	reader_init(&r, f->uuid);
	reader_add_file(&r, f->tail, READER_FILE_TAIL);
	read_to_the_end(&r, &losses);
	assert_int_equal(losses.unreadable_bytes, file_size(f->tail));
}

/* The stream's file was longer than when we looked at its size, or the tail is ahead of it: what was
 * complete is read, and nothing is lost. In a trace that has ended, the same is damage. */
static void test_live_cut(void **state)
{
	const struct fixture *f = *state;
	const unsigned int per_packet =
		(PACKET - sizeof(struct spy_packet)) / sizeof(struct spy_rec_call);
	struct reader_losses losses;
	size_t size = file_size(f->file);
	unsigned int n;

	assert_int_equal(read_live(f, &losses, true), CALLS + 1);
	assert_memory_equal(&losses, &none, sizeof(losses));
	while (size--) {
		cut(f->file, size);
		n = read_live(f, &losses, true);
		if (size < PACKET)
			break; /* not one packet: then there is no telling */
		assert_int_equal(n, size / PACKET * per_packet);
		assert_memory_equal(&losses, &none, sizeof(losses));
		read_all(f, &losses, true);
		assert_true(losses.packets_missing + losses.unreadable_bytes > 0);
	}
}

/* The copy of the tail is older than the stream's file: its packet is there, and others. */
static void test_live_old_tail(void **state)
{
	const struct fixture *f = *state;
	struct reader_losses losses;
	size_t bytes;
	char *text = scratch_read(f->file, &bytes);

	/* With three records, fewer than it had later. */
	text[offsetof(struct spy_packet, content_bits) + 1] = (96 + 3 * 32) * 8 >> 8;
	scratch_write(f->tail, text, PACKET);
	assert_int_equal(read_live(f, &losses, true),
			 bytes / PACKET * ((PACKET - sizeof(struct spy_packet)) / 32));
	assert_memory_equal(&losses, &none, sizeof(losses));
	/* Even if nobody knows that the process was alive: the file ends inside a later packet. */
	cut(f->file, bytes - 100);
	read_live(f, &losses, false);
	assert_memory_equal(&losses, &none, sizeof(losses));
	free(text);
}

/* A process that writes as the shim does: record times count up by one. */
static void *write_on(void *data)
{
	const struct fixture *f = data;
	int file = f->no_file ? -1 : open(f->file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	int tail = open(f->tail, O_RDWR | O_CREAT | O_TRUNC, 0666);
	struct spy_packet *p;
	struct spy_rec_call call = {.head = {.event = SPY_EV_CALL}};
	uint64_t bits, off = 0;
	unsigned int packet;

	if (ftruncate(tail, PACKET))
		abort();
	p = mmap(NULL, PACKET, PROT_READ | PROT_WRITE, MAP_SHARED, tail, 0);
	if (p == MAP_FAILED)
		abort();
	for (packet = 0; packet < (f->no_file ? 50 : 1) * LIVE_PACKETS; packet++) {
		__atomic_store_n((uint64_t *)((char *)p + 48), 96 * 8, __ATOMIC_RELEASE);
		__atomic_store_n((uint64_t *)((char *)p + 64), packet, __ATOMIC_RELEASE);
		memcpy(p->uuid, f->uuid, sizeof(p->uuid));
		p->packet_bits = PACKET * 8;
		p->magic = SPY_CTF_MAGIC;
		for (bits = 96 * 8; bits + sizeof(call) * 8 <= PACKET * 8;) {
			call.head.time++;
			memcpy((char *)p + bits / 8, &call, sizeof(call));
			bits += sizeof(call) * 8;
			__atomic_store_n((uint64_t *)((char *)p + 48), bits, __ATOMIC_RELEASE);
		}
		if (!f->no_file && pwrite(file, p, PACKET, (off_t)off) != PACKET)
			abort();
		off += PACKET;
	}
	close(file);
	close(tail);
	munmap(p, PACKET);
	return NULL;
}

/* Read again and again while it is written: each time a beginning without a hole, never a shorter
 * one, and no word of loss. */
static void test_live_writer(void **state)
{
	const struct fixture *f = *state;
	const uint64_t all = LIVE_PACKETS * ((PACKET - sizeof(struct spy_packet)) / 32);
	uint64_t seen = 0;
	pthread_t writer;
	struct reader r;

	unlink(f->tail);
	unlink(f->file);
	assert_int_equal(pthread_create(&writer, NULL, write_on, *state), 0);
	while (seen < all) {
		reader_init(&r, f->uuid);
		r.live = r.unbounded = true;
		if (!access(f->tail, F_OK))
			reader_add_copy_of_tail(&r, f->tail);
		if (!access(f->file, F_OK))
			reader_add_file(&r, f->file, READER_FILE_PLAIN);
		while (reader_next(&r))
			assert_int_equal(r.time, r.records);
		assert_memory_equal(&r.losses, &none, sizeof(none));
		assert_true(r.records >= seen);
		seen = r.records;
		reader_release(&r);
	}
	pthread_join(writer, NULL);
}

/* Whatever the process does meanwhile, a copy of the tail is of one packet. */
static void test_live_tail(void **state)
{
	const unsigned int per_packet = (PACKET - sizeof(struct spy_packet)) / 32;
	struct fixture *f = *state;
	pthread_t writer;
	uint64_t seq = 0;

	f->no_file = true;
	assert_int_equal(unlink(f->tail), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_on, f), 0);
	while (seq + 1 < 50 * LIVE_PACKETS) {
		struct reader r;

		reader_init(&r, f->uuid);
		if (!access(f->tail, F_OK))
			reader_add_copy_of_tail(&r, f->tail);
		while (reader_next(&r))
			assert_int_equal(r.time, r.seq * per_packet + r.records);
		if (r.any_packet && r.seq > seq)
			seq = r.seq;
		assert_int_equal(r.losses.unreadable_bytes, 0);
		reader_release(&r);
	}
	pthread_join(writer, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_good),
		TEST(test_pass),
		TEST(test_cut_anywhere),
		TEST(test_any_byte),
		TEST(test_bad_magic),
		TEST(test_other_uuid),
		TEST(test_unknown_event),
		TEST(test_sizes_beyond_file),
		TEST(test_contradicting_sizes),
		TEST(test_tail_of_no_size),
		TEST(test_text_without_end),
		TEST(test_time_runs_backwards),
		TEST(test_time_runs_away),
		TEST(test_empty_and_missing),
		TEST(test_packet_twice),
		TEST(test_missing_packets),
		TEST(test_tail_alone),
		TEST(test_live_cut),
		TEST(test_live_old_tail),
		TEST(test_live_writer),
		TEST(test_live_tail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
