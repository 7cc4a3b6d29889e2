/*
 * shim/stack/python_lines.c: from a place in Python's bytecode to its line, by the code object's
 * table. Called by python_frames.c on the application's thread. The table is read a piece at a time
 * through the kernel: it may be anything.
 *
 * Sources: CPython, Objects/locations.md (3.11 and later), Objects/lnotab_notes.txt (3.10, and
 * before).
 */
#include "lib/peek.h"
#include "stack/python.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

#define LINE_MOST INT32_MAX

struct bytes {
	int pid;
	uintptr_t at; /* of what was not fetched yet … */
	size_t left; /* … so much */
	const uint8_t *now; /* what was fetched last: of … */
	size_t fetched, used; /* … so many bytes so many are used */
	bool bad; /* it ended too early, or made no sense */
	uint8_t piece[512];
};

static bool is_more(const struct bytes *b)
{
	return !b->bad && (b->used < b->fetched || b->left);
}

static bool fetch(struct bytes *b)
{
	size_t bytes = b->left < sizeof(b->piece) ? b->left : sizeof(b->piece);

	b->bad |= !bytes || !spy_peek(b->pid, b->piece, b->at, bytes);
	b->now = b->piece;
	b->used = 0;
	b->fetched = b->bad ? 0 : bytes;
	b->at += b->fetched;
	b->left -= b->fetched;
	return !b->bad;
}

/* 0 beyond the end. */
static uint8_t take(struct bytes *b)
{
	return b->used < b->fetched || fetch(b) ? b->now[b->used++] : 0;
}

/* Six bits a byte, the lowest first; bit 6 says that there are more. */
static uint32_t take_number(struct bytes *b)
{
	uint32_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = take(b);
		if (shift < 30)
			value |= (byte & 63) << shift;
		shift += 6;
	} while (byte & 64);
	return value;
}

/* The sign is the lowest bit. */
static int64_t take_signed(struct bytes *b)
{
	uint32_t value = take_number(b);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* ---- 3.11 and later: entries of a kind, a length in units of two bytes, and lines and columns  */

enum { SHORT_LAST = 9, ONE_LINE = 10, ONE_LINE_LAST = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };

/* Reads what follows the head of an entry; returns how many lines it is on from the one before. */
static int64_t take_lines(struct bytes *b, unsigned int kind)
{
	int64_t lines;

	if (kind == NONE)
		return 0;
	if (kind <= SHORT_LAST) {
		take(b);
		return 0;
	}
	if (kind <= ONE_LINE_LAST) {
		take(b);
		take(b);
		return kind - ONE_LINE;
	}
	lines = take_signed(b);
	if (kind == LONG) {
		take_number(b); /* lines to the end, column, end's column */
		take_number(b);
		take_number(b);
	}
	return lines;
}

static int64_t find_in_locations(struct bytes *b, int64_t line, int64_t at)
{
	int64_t end = 0;

	while (is_more(b)) {
		uint8_t head = take(b);
		unsigned int kind = head >> 3 & 15;

		b->bad |= !(head & 128);
		end += 2 * ((head & 7) + 1);
		line += take_lines(b, kind);
		if (at < end)
			return kind == NONE ? 0 : line;
	}
	return 0;
}

/* ---- 3.10: pairs of bytes on and lines on, -128: none --------------------------------------- */

static int64_t find_in_pairs(struct bytes *b, int64_t line, int64_t at)
{
	int64_t end = 0;

	while (is_more(b)) {
		int8_t lines;

		end += take(b);
		lines = (int8_t)take(b);
		if (lines != -128)
			line += lines;
		if (at < end)
			return lines == -128 ? 0 : line;
	}
	return 0;
}

/* ---- before: the same, but a pair says where its line begins -------------------------------- */

static int64_t find_in_lnotab(struct bytes *b, int64_t line, int64_t at)
{
	int64_t begin = 0;

	while (is_more(b)) {
		begin += take(b);
		if (begin > at)
			break;
		line += (int8_t)take(b);
	}
	return line;
}

uint32_t spy_python_line(const struct spy_python_lines *lines, int32_t at)
{
	struct bytes b;
	int64_t line = lines->first_line;

	b.pid = lines->pid; /* all but the piece */
	b.at = lines->table + lines->begun_bytes;
	b.left = lines->bytes - lines->begun_bytes;
	b.now = lines->begun;
	b.fetched = lines->begun_bytes;
	b.used = 0;
	b.bad = false;
	if (at >= 0 && lines->minor >= 11)
		line = find_in_locations(&b, line, at);
	else if (at >= 0 && lines->minor == 10)
		line = find_in_pairs(&b, line, at);
	else if (at >= 0)
		line = find_in_lnotab(&b, line, at);
	return b.bad || line < 0 || line > LINE_MOST ? 0 : (uint32_t)line;
}
