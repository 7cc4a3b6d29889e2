/*
 * shim/stack/python_frames.c: the calling thread's frames in Python. Called by stack.c on the
 * application's thread, inside its call; python.h says what it must not do. All memory is read
 * through the kernel.
 */
#include <pthread.h>
#include <string.h>
#include "lib/peek.h"
#include "lib/utf8.h"
#include "stack/python.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

#define STEPS_MOST 256 /* frames looked at, those that are not shown included */
#define OBJECT_MOST 256 /* bytes of an object that fields are looked up in */
#define TABLE_MOST ((size_t)1 << 20)
#define TEXT_MOST ((uint64_t)1 << 20)

/* Frames that the interpreter puts where C calls Python: FRAME_OWNED_BY_CSTACK of 3.12 and 3.13,
 * FRAME_OWNED_BY_INTERPRETER and _CSTACK of 3.14. */
#define OWNER_IS_NO_FUNCTION 3

/* Every object begins with a count and its type; those of several sizes have that next. */
enum { TYPE = 8, SIZE = 16, BYTES_BEGIN = 32 };

static uint64_t word_at(const uint8_t *object, size_t offset)
{
	uint64_t word;

	memcpy(&word, object + offset, sizeof(word));
	return word;
}

static int32_t number_at(const uint8_t *object, size_t offset)
{
	int32_t number;

	memcpy(&number, object + offset, sizeof(number));
	return number;
}

/* ---- from frame to frame -------------------------------------------------------------------- */

bool spy_python_begin(struct spy_python_walk *walk, const struct spy_python *python)
{
	uintptr_t state = (uintptr_t)python->symbols.thread_state();
	uint64_t thread = 0, frame = 0;

	*walk = (struct spy_python_walk){.python = python, .pid = getpid()};
	/* A state that was given back may still be named: it is believed if it names its thread. */
	if (!state ||
	    !spy_peek(walk->pid, &thread, state + python->state.thread_id, sizeof(thread)) ||
	    thread != (uint64_t)pthread_self() ||
	    !spy_peek(walk->pid, &frame, state + python->state.frame, sizeof(frame)))
		return false;
	if (python->state.indirect &&
	    (!frame ||
	     !spy_peek(walk->pid, &frame, frame + python->state.frame_in_it, sizeof(frame))))
		return false;
	walk->next = frame;
	return frame;
}

/* Has the object that type? */
static bool is_a(const uint8_t *object, uintptr_t type)
{
	return word_at(object, TYPE) == type;
}

/* References may have marks in their lowest bits since 3.14. */
static uintptr_t untagged(const struct spy_python *python, uint64_t reference)
{
	return python->minor >= 14 ? reference & ~3ull : reference;
}

/* Where in its bytecode the frame is; INT64_MIN: nowhere. */
static int64_t place_in(const struct spy_python *python, const uint8_t *raw, const uint8_t *code,
			uintptr_t code_address)
{
	int64_t at;

	if (!python->code.bytecode) {
		at = number_at(raw, python->frame.instruction);
		return python->minor >= 10 ? 2 * at : at; /* in 3.10 in units of two bytes */
	}
	at = (int64_t)(word_at(raw, python->frame.instruction) - code_address -
		       python->code.bytecode);
	/* 3.11 and 3.12 point before the first instruction until they have executed it. */
	return at < -2 || at % 2 || at / 2 >= (int64_t)word_at(code, SIZE) ? INT64_MIN : at;
}

uintptr_t spy_python_code_of(const struct spy_python *python, const uint8_t *raw)
{
	if (python->frame.owner && raw[python->frame.owner] >= OWNER_IS_NO_FUNCTION)
		return 0;
	return untagged(python, word_at(raw, python->frame.code));
}

bool spy_python_is_frame(const struct spy_python *python, const uint8_t *raw)
{
	return python->code.bytecode || is_a(raw, python->symbols.frame_type);
}

bool spy_python_frame(const struct spy_python *python, const uint8_t *raw, uintptr_t address,
		      const uint8_t *code, struct spy_python_frame *frame)
{
	int32_t first_line;
	int64_t at;

	if (!is_a(code, python->symbols.code_type))
		return false;
	at = place_in(python, raw, code, address);
	if (at < INT32_MIN || at > INT32_MAX)
		return false;
	first_line = number_at(code, python->code.first_line);
	frame->file = word_at(code, python->code.file);
	frame->function = word_at(code, python->code.function);
	frame->lines = word_at(code, python->code.lines);
	frame->first_line = first_line > 0 ? (uint32_t)first_line : 0;
	frame->at = (int32_t)at;
	frame->bytecode = python->code.bytecode ? address + python->code.bytecode : 0;
	frame->bytecode_bytes = python->code.bytecode ? 2 * word_at(code, SIZE) : 0;
	return true;
}

/* False: it is no function's, or its code is none. */
static bool read_frame(const struct spy_python_walk *walk, const uint8_t *raw,
		       struct spy_python_frame *frame)
{
	uintptr_t address = spy_python_code_of(walk->python, raw);
	uint8_t code[OBJECT_MOST];

	return address && spy_peek(walk->pid, code, address, walk->python->code.bytes) &&
	       spy_python_frame(walk->python, raw, address, code, frame);
}

bool spy_python_next(struct spy_python_walk *walk, struct spy_python_frame *frame)
{
	const struct spy_python *python = walk->python;
	uint8_t raw[OBJECT_MOST];

	while (walk->next && walk->next % 8 == 0 && walk->steps++ < STEPS_MOST) {
		if (!spy_peek(walk->pid, raw, walk->next, python->frame.bytes))
			break;
		if (!spy_python_is_frame(python, raw))
			break;
		walk->next = word_at(raw, python->frame.previous);
		if (read_frame(walk, raw, frame))
			return true;
	}
	walk->next = 0;
	return false;
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* A character as UTF-8; what would break a line is left out. Returns the bytes. */
static size_t put_character(char *to, uint32_t c)
{
	if (c < ' ' || c == 127 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = '?';
	return spy_utf8_put(to, c);
}

/* Characters of 1, 2 or 4 bytes each. */
static void put_text(char *to, size_t size, const uint8_t *from, size_t characters, size_t width)
{
	size_t used = 0;

	for (size_t i = 0; i < characters && used + 4 < size; i++) {
		uint32_t c = 0;

		memcpy(&c, from + i * width, width);
		used += put_character(to + used, c);
	}
	to[used] = '\0';
}

/* How a text is stored: state of PyASCIIObject. */
enum { KIND_SHIFT = 2, KIND_MASK = 7, COMPACT = 1 << 5, ASCII = 1 << 6 };
enum { LENGTH = 16, STATE = 32, TEXT_HEAD = 40 };

/* The first bytes of an object. What is not there reads as 0. */
struct begun {
	uintptr_t at;
	size_t bytes; /* that were read */
	uint8_t *raw;
};

/* A text's characters `from` on, `bytes` behind its beginning; from what was read, or else from
 * there. */
static const uint8_t *characters(const struct spy_python_walk *walk, const struct begun *text,
				 uint64_t from, uint64_t bytes, uint8_t *room)
{
	if (from + bytes <= text->bytes)
		return text->raw + from;
	return spy_peek(walk->pid, room, text->at + from, bytes) ? room : NULL;
}

/* Of a text that is longer than there is room the end, or the beginning. */
static bool read_text(const struct spy_python_walk *walk, const struct begun *text, bool end,
		      char *to, size_t size)
{
	uint64_t length, width, most, from;
	uint8_t room[SPY_PYTHON_FILE];
	const uint8_t *raw;
	uint32_t state;

	if (text->bytes < TEXT_HEAD || !is_a(text->raw, walk->python->symbols.text_type))
		return false;
	length = word_at(text->raw, LENGTH);
	state = (uint32_t)number_at(text->raw, STATE);
	width = state >> KIND_SHIFT & KIND_MASK;
	if (!(state & COMPACT) || (width != 1 && width != 2 && width != 4) ||
	    (state & ASCII && width != 1) || length > TEXT_MOST)
		return false;
	/* In UTF-8 no character becomes more than four bytes, and none of ASCII more than one. */
	most = (state & ASCII ? size - 5 : size / 4) - 1;
	from = state & ASCII ? walk->python->ascii_bytes : walk->python->compact_bytes;
	if (end && length > most)
		from += (length - most) * width;
	if (length > most)
		length = most;
	raw = characters(walk, text, from, length * width, room);
	if (!raw)
		return false;
	put_text(to, size, raw, length, width);
	return true;
}

/* ---- what a frame is called ----------------------------------------------------------------- */

static uint32_t line_of(const struct spy_python_walk *walk, const struct begun *table,
			const struct spy_python_frame *frame)
{
	struct spy_python_lines lines = {.pid = walk->pid,
					 .table = table->at + BYTES_BEGIN,
					 .begun = table->raw + BYTES_BEGIN,
					 .first_line = frame->first_line,
					 .minor = walk->python->minor};

	if (table->bytes < BYTES_BEGIN || !is_a(table->raw, walk->python->symbols.bytes_type))
		return 0;
	lines.bytes = word_at(table->raw, SIZE);
	lines.begun_bytes = table->bytes - BYTES_BEGIN;
	if (lines.begun_bytes > lines.bytes)
		lines.begun_bytes = lines.bytes;
	return lines.bytes > TABLE_MOST ? 0 : spy_python_line(&lines, frame->at);
}

/* Reads objects' beginnings, those that end a mapping as far as they go. */
static void begin_objects(const struct spy_python_walk *walk, struct begun *objects, size_t n)
{
	struct iovec to[3], from[3];

	for (size_t i = 0; i < n; i++) {
		to[i] = (struct iovec){objects[i].raw, objects[i].bytes};
		from[i] = (struct iovec){(void *)objects[i].at, objects[i].bytes};
	}
	if (spy_peek_all(walk->pid, to, from, n))
		return;
	for (size_t i = 0; i < n; i++)
		objects[i].bytes =
			spy_peek_some(walk->pid, objects[i].raw, objects[i].at, objects[i].bytes);
}

bool spy_python_read(const struct spy_python_walk *walk, const struct spy_python_frame *frame,
		     struct spy_python_place *place)
{
	/* As much as most of them have. */
	uint8_t file[TEXT_HEAD + 152], function[TEXT_HEAD + 72], lines[BYTES_BEGIN + 160];
	struct begun objects[] = {
		{frame->file, sizeof(file), file},
		{frame->function, sizeof(function), function},
		{frame->lines, sizeof(lines), lines},
	};

	begin_objects(walk, objects, 3);
	if (!read_text(walk, &objects[0], true, place->file, sizeof(place->file)) ||
	    !read_text(walk, &objects[1], false, place->function, sizeof(place->function)))
		return false;
	place->first_line = frame->first_line;
	place->line = line_of(walk, &objects[2], frame);
	return true;
}
