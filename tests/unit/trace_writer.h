/*
 * tests/unit/trace_writer.h: writes synthetic trace directories, record by record.
 *
 * Used by the unit tests, the golden tests (through trace_text.h) and tests/bench/gentrace.c. It
 * follows trace_format.h and metadata_layout.h and shares nothing else with the shim, so that a
 * misreading of the format in one of them shows. Not for damaged traces: tests write a good one and
 * damage it.
 *
 * Errors of the file system end the program: a test cannot go on without its trace.
 */
#ifndef CUDASPY_TESTS_TRACE_WRITER_H
#define CUDASPY_TESTS_TRACE_WRITER_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cudaspy/metadata_layout.h"
#include "cudaspy/trace_format.h"

#define TW_UNUSED __attribute__((unused))
#define TW_SLOTS SPY_BOARD_SLOTS

/* One stream being written; the packet in progress is kept in memory and becomes the tail. */
struct tw_stream {
	bool has_file; /* of full packets; opened for each of them: there may be thousands of streams */
	uint8_t *packet; /* tw_trace.packet_bytes; NULL: no such stream */
	size_t used;
	uint64_t seq;
	uint64_t discarded;
	uint32_t tid;
	uint32_t kind; /* enum spy_stream_kind */
};

struct tw_trace {
	char dir[1024];
	size_t packet_bytes; /* size of every packet */
	bool bounded; /* each full packet in a file of its own */
	uint8_t uuid[16]; /* babeltrace2 takes traces with one uuid for one trace */
	struct tw_stream streams[TW_SLOTS];
	struct spy_board board;
	struct spy_slot_page *pages[TW_SLOTS]; /* NULL: never used */
};

/* What metadata says. */
struct tw_metadata {
	uint64_t frequency, offset_s, offset;
	const char *env; /* lines of the env block, in TSDL */
};

TW_UNUSED static FILE *tw_open_file(const char *dir, const char *name, const char *mode)
{
	char path[1280];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, mode);
	if (!file) {
		perror(path);
		exit(3);
	}
	return file;
}

TW_UNUSED static FILE *tw_create(const char *dir, const char *name)
{
	return tw_open_file(dir, name, "w");
}

TW_UNUSED static void tw_write_metadata(const struct tw_trace *w, const struct tw_metadata *m)
{
	FILE *file = tw_create(w->dir, "metadata");
	const uint8_t *u = w->uuid;
	char uuid[40];

	snprintf(uuid, sizeof(uuid),
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
		 u[15]);
	fprintf(file, "%s%s", SPY_TSDL_HEAD, spy_tsdl_types);
	fprintf(file, SPY_TSDL_TRACE, uuid);
	fprintf(file, "env {\n%s};\n\n", m->env);
	fprintf(file, SPY_TSDL_CLOCK, m->frequency, m->offset_s, m->offset);
	fputs(spy_tsdl_stream, file);
	fclose(file);
}

/* From a name, so that the same log makes the same bytes. */
static void tw_make_uuid(struct tw_trace *w, const char *name)
{
	unsigned int i;

	memset(w->uuid, 0, sizeof(w->uuid));
	for (i = 0; name[i]; i++)
		w->uuid[i % 16] = (uint8_t)(w->uuid[i % 16] * 31 + (uint8_t)name[i]);
}

/* Creates the directory and starts a trace of 1 GHz (a cycle is a nanosecond) in it. */
TW_UNUSED static void tw_open(struct tw_trace *w, const char *dir, size_t packet_bytes)
{
	memset(w, 0, sizeof(*w));
	snprintf(w->dir, sizeof(w->dir), "%s", dir);
	tw_make_uuid(w, strrchr(dir, '/') ? strrchr(dir, '/') + 1 : dir);
	w->packet_bytes = packet_bytes ? packet_bytes : 4096;
	w->board = (struct spy_board){.magic = SPY_BOARD_MAGIC,
				      .version = SPY_TRACE_VERSION,
				      .pid = 100,
				      .frequency = 1000000000,
				      .ended = 1};
	if (mkdir(dir, 0777) && errno != EEXIST) {
		perror(dir);
		exit(3);
	}
}

/* The file a packet belongs into. */
TW_UNUSED static FILE *tw_packet_file(struct tw_trace *w, struct tw_stream *s, bool tail)
{
	unsigned int slot = (unsigned int)(s - w->streams);
	char name[48];

	if (tail)
		snprintf(name, sizeof(name), "stream_%04u_tail", slot);
	else if (w->bounded)
		snprintf(name, sizeof(name), "stream_%04u_%06llu", slot,
			 (unsigned long long)s->seq - 1);
	else
		snprintf(name, sizeof(name), "stream_%04u", slot);
	if (tail || w->bounded || !s->has_file) {
		s->has_file |= !tail && !w->bounded;
		return tw_create(w->dir, name);
	}
	return tw_open_file(w->dir, name, "a");
}

TW_UNUSED static void tw_flush(struct tw_trace *w, struct tw_stream *s, bool tail)
{
	struct spy_packet *p = (struct spy_packet *)s->packet;
	FILE *file = tw_packet_file(w, s, tail);

	p->content_bits = s->used * 8;
	p->packet_bits = w->packet_bytes * 8;
	p->discarded = s->discarded;
	fwrite(s->packet, w->packet_bytes, 1, file);
	fclose(file);
	memset(s->packet, 0, w->packet_bytes);
	s->used = 0;
}

TW_UNUSED static struct tw_stream *tw_stream(struct tw_trace *w, unsigned int slot)
{
	struct tw_stream *s = &w->streams[slot];

	if (!s->packet)
		s->packet = calloc(1, w->packet_bytes);
	return s;
}

TW_UNUSED static struct spy_slot_page *tw_page(struct tw_trace *w, unsigned int slot)
{
	if (!w->pages[slot])
		w->pages[slot] = calloc(1, sizeof(*w->pages[slot]));
	return w->pages[slot];
}

TW_UNUSED static void tw_begin_packet(struct tw_trace *w, struct tw_stream *s, uint64_t time)
{
	struct spy_packet *p = (struct spy_packet *)s->packet;

	*p = (struct spy_packet){.magic = SPY_CTF_MAGIC,
				 .instance = (uint64_t)(s - w->streams),
				 .time_begin = time,
				 .time_end = time,
				 .seq = s->seq++,
				 .tid = s->tid,
				 .kind = s->kind};
	memcpy(p->uuid, w->uuid, sizeof(w->uuid));
	s->used = sizeof(*p);
}

/* Appends a record that begins with its time. */
TW_UNUSED static void tw_record(struct tw_trace *w, unsigned int slot, const void *record,
				size_t size)
{
	struct tw_stream *s = tw_stream(w, slot);
	struct spy_rec_other head;

	memcpy(&head, record, sizeof(head));
	if (s->used + size > w->packet_bytes)
		tw_flush(w, s, false);
	if (!s->used)
		tw_begin_packet(w, s, head.time);
	((struct spy_packet *)s->packet)->time_end = head.time;
	memcpy(s->packet + s->used, record, size);
	s->used += size;
	if (head.event <= SPY_EV_MEMORY || head.event == SPY_EV_INNER)
		tw_page(w, slot)->calls++;
}

/* Appends a record with its texts, each with its NUL. fixed: bytes before the first text. */
TW_UNUSED static void tw_record_text(struct tw_trace *w, unsigned int slot, const void *record,
				     size_t fixed, unsigned int texts, const char *const text[])
{
	uint8_t buffer[256 + 4 * SPY_TEXT_MAX];
	size_t used = fixed;
	unsigned int i;

	memcpy(buffer, record, fixed);
	for (i = 0; i < texts; i++) {
		size_t n = strnlen(text[i], SPY_TEXT_MAX - 1);

		memcpy(buffer + used, text[i], n);
		buffer[used + n] = '\0';
		used += n + 1;
	}
	tw_record(w, slot, buffer, used);
}

/* Writes what is left, and the board; metadata is written by tw_write_metadata. The session's own
 * stream is always there. */
TW_UNUSED static void tw_close(struct tw_trace *w)
{
	uint8_t page[SPY_BOARD_PAGE] = {0};
	FILE *board = tw_create(w->dir, ".board");
	unsigned int i;

	if (!tw_stream(w, 0)->used)
		tw_begin_packet(w, &w->streams[0], 0);
	for (i = 0; i < TW_SLOTS; i++)
		if (w->streams[i].packet || w->pages[i])
			w->board.slots = i + 1;
	memcpy(page, &w->board, sizeof(w->board));
	fwrite(page, sizeof(page), 1, board);
	memset(page, 0, sizeof(page));
	for (i = 0; i < w->board.slots; i++)
		fwrite(w->pages[i] ? (void *)w->pages[i] : page, sizeof(page), 1, board);
	fclose(board);
	for (i = 0; i < TW_SLOTS; i++) {
		struct tw_stream *s = &w->streams[i];

		if (s->used)
			tw_flush(w, s, true);
		free(s->packet);
		free(w->pages[i]);
	}
}

#endif
