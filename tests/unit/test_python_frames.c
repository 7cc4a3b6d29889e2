/*
 * tests/unit/test_python_frames.c: lines of bytecode by all three kinds of tables, from tables made here and from
 * rubbish; frames of made-up interpreters of each version that is known; and nothing, but no crash, from
 * those that are not, from objects that are something else and from memory that is not there.
 */
/* links: shim/lib/clock.c shim/stack/python.c shim/stack/python_frames.c shim/stack/python_lines.c shim/stack/python_others.c shim/process/elf_scan.c shim/lib/elf_object.c shim/lib/lock.c shim/state/libraries.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "no_guard.h"
#include "process/options.h"
#include "record/notes.h"
#include "stack/python.h"
#include "state/session.h"

/* What python.c needs of the rest of the recorder. */
struct spy_session *spy_session;
struct spy_options spy_options;

void spy_note(enum spy_note note, const char *format, ...)
{
	(void)note;
	(void)format;
}

static uint64_t seed = 4711;

static uint64_t random_word(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* ---- tables ------------------------------------------------------------------------------------ */

static uint32_t line_in(const void *table, size_t bytes, unsigned int minor, int32_t at)
{
	struct spy_python_lines lines = {.pid = getpid(),
					 .table = (uintptr_t)table,
					 .bytes = bytes,
					 .first_line = 100,
					 .minor = minor};
	uint32_t line = spy_python_line(&lines, at);

	/* However much of it was read before. */
	lines.begun = table;
	lines.begun_bytes = bytes < 3 ? bytes : 3;
	assert_int_equal(spy_python_line(&lines, at), line);
	lines.begun_bytes = bytes;
	assert_int_equal(spy_python_line(&lines, at), line);
	return line;
}

static void test_locations(void **state)
{
	static const uint8_t table[] = {
		0x80 | 15 << 3 | 1, /* no line: 2 units */
		0x80 | 10 << 3 | 0, 4,        9, /* 1 unit, the same line */
		0x80 | 11 << 3 | 7, 4,        9, /* 8 units, one line on */
		0x80 | 3 << 3 | 0,  0x12, /* 1 unit, the same line */
		0x80 | 13 << 3 | 0, 5, /* 1 unit, 2 lines back */
		0x80 | 14 << 3 | 1, 0x40 | 8, 3, 7, 1, 2, /* 2 units, 100 lines on, ends 7 on */
		0x80 | 12 << 3 | 0, 0,        0, /* 1 unit, two on */
	};

	(void)state;
	assert_int_equal(line_in(table, sizeof(table), 11, -2), 100);
	assert_int_equal(line_in(table, sizeof(table), 12, 0), 0);
	assert_int_equal(line_in(table, sizeof(table), 12, 2), 0);
	assert_int_equal(line_in(table, sizeof(table), 12, 4), 100);
	assert_int_equal(line_in(table, sizeof(table), 12, 6), 101);
	assert_int_equal(line_in(table, sizeof(table), 12, 20), 101);
	assert_int_equal(line_in(table, sizeof(table), 12, 22), 101);
	assert_int_equal(line_in(table, sizeof(table), 12, 24), 99);
	assert_int_equal(line_in(table, sizeof(table), 14, 26), 199);
	assert_int_equal(line_in(table, sizeof(table), 14, 28), 199);
	assert_int_equal(line_in(table, sizeof(table), 14, 30), 201);
	assert_int_equal(line_in(table, sizeof(table), 14, 32), 0); /* beyond the code */
	assert_int_equal(line_in(table, sizeof(table) - 1, 14, 30), 0); /* cut off */
	assert_int_equal(line_in(table + 2, sizeof(table) - 2, 14, 8), 0); /* no head of an entry */
	assert_int_equal(line_in(table, 0, 14, 0), 0);
}

static void test_pairs(void **state)
{
	static const uint8_t table[] = {4, 0, 6, 2, 8, 0x80, 2, (uint8_t)-1, 254, 127, 200, 0};

	(void)state;
	assert_int_equal(line_in(table, sizeof(table), 10, -2), 100);
	assert_int_equal(line_in(table, sizeof(table), 10, 2), 100);
	assert_int_equal(line_in(table, sizeof(table), 10, 4), 102);
	assert_int_equal(line_in(table, sizeof(table), 10, 12), 0); /* -128: none */
	assert_int_equal(line_in(table, sizeof(table), 10, 18), 101);
	assert_int_equal(line_in(table, sizeof(table), 10, 20), 228);
	assert_int_equal(line_in(table, sizeof(table), 10, 400), 228);
	assert_int_equal(line_in(table, sizeof(table), 10, 4000), 0);
	assert_int_equal(line_in(table, sizeof(table) - 1, 10, 400), 0);
}

static void test_lnotab(void **state)
{
	static const uint8_t table[] = {0, 1, 6, 1, 50, 7, 255, 0, 45, 127, 0, 73, 6, (uint8_t)-3};

	(void)state;
	assert_int_equal(line_in(table, sizeof(table), 9, -1), 100);
	assert_int_equal(line_in(table, sizeof(table), 8, 0), 101);
	assert_int_equal(line_in(table, sizeof(table), 8, 4), 101);
	assert_int_equal(line_in(table, sizeof(table), 8, 6), 102);
	assert_int_equal(line_in(table, sizeof(table), 8, 56), 109);
	assert_int_equal(line_in(table, sizeof(table), 9, 354), 109);
	assert_int_equal(line_in(table, sizeof(table), 9, 356), 309);
	assert_int_equal(line_in(table, sizeof(table), 9, 9999), 306); /* the last goes on */
	assert_int_equal(line_in(table, 0, 9, 8), 100);
}

/* Six bits a byte. */
static size_t put_number(uint8_t *to, uint32_t value)
{
	size_t n = 0;

	for (; value >= 64; value >>= 6)
		to[n++] = 64 | (value & 63);
	to[n++] = (uint8_t)value;
	return n;
}

/* An entry for `units`; returns its bytes and changes the line, 0: none. */
static size_t put_entry(uint8_t *to, unsigned int units, int64_t *line, bool *none)
{
	static const uint8_t kinds[] = {0, 9, 10, 11, 12, 13, 14, 15};
	uint8_t kind = kinds[random_word() % sizeof(kinds)];
	int64_t delta = kind >= 13 ? (int64_t)(random_word() % 5000) - 100 : kind - 10;
	size_t n = 0;

	*none = kind == 15;
	to[n++] = (uint8_t)(0x80 | kind << 3 | (units - 1));
	if (kind < 10 || kind == 15) {
		n += kind < 10;
		return n;
	}
	if (kind < 13) {
		n += 2;
	} else {
		n += put_number(to + n, (uint32_t)(delta < 0 ? -delta * 2 + 1 : delta * 2));
		if (kind == 14) {
			n += put_number(to + n, random_word() % 100);
			n += put_number(to + n, random_word() % 5000);
			n += put_number(to + n, random_word() % 100);
		}
	}
	*line += delta;
	return n;
}

static void test_random_locations(void **state)
{
	static uint8_t table[40000];
	static uint32_t lines[16000];
	size_t round, bytes, units, i;

	(void)state;
	for (round = 0; round < 300; round++) {
		int64_t line = 100;

		memset(table, 0, sizeof(table));
		for (bytes = units = 0; bytes < 20 + round * 10;) {
			unsigned int more = 1 + random_word() % 8;
			bool none;

			bytes += put_entry(table + bytes, more, &line, &none);
			while (more--)
				lines[units++] = none || line < 0 ? 0 : (uint32_t)line;
		}
		for (i = 0; i < 50; i++) {
			size_t at = random_word() % units;

			assert_int_equal(line_in(table, bytes, 12, 2 * (int32_t)at), lines[at]);
		}
	}
}

/* Rubbish, at the end of what is mapped, and longer than that. */
static void test_rubbish_tables(void **state)
{
	uint8_t *pages =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i, j;

	(void)state;
	mprotect(pages + 4096, 4096, PROT_NONE);
	for (i = 0; i < 3000; i++) {
		struct spy_python_lines lines = {.pid = getpid()};
		size_t there = random_word() % 700;

		for (j = 4096 - there; j < 4096; j++)
			pages[j] = (uint8_t)(random_word() | (random_word() & 128));
		lines.table = (uintptr_t)pages + 4096 - there;
		lines.bytes = i % 2 ? there : random_word() % 100000;
		lines.first_line = (uint32_t)random_word();
		lines.minor = 8 + random_word() % 7;
		spy_python_line(&lines, (int32_t)random_word());
		spy_python_line(&lines, INT32_MAX);
	}
	munmap(pages, 8192);
}

/* ---- interpreters ------------------------------------------------------------------------------- */

/* A made-up one, in memory of its own between two pages that are not there. */
#define ROOM ((size_t)32 << 10)
#define FRAMES 40

struct fake {
	uint8_t *memory;
	size_t used;
	unsigned int minor;
	struct spy_python_symbols symbols;
	uintptr_t state, codes[FRAMES], frames[FRAMES];
};

static uintptr_t the_state;

static void *thread_state(void)
{
	return (void *)the_state;
}

static uintptr_t take(struct fake *f, size_t bytes)
{
	uintptr_t at = (uintptr_t)f->memory + f->used;

	f->used += (bytes + 15) & ~15ull;
	assert_true(f->used <= ROOM);
	return at;
}

static void set(uintptr_t at, size_t offset, uint64_t word)
{
	memcpy((void *)(at + offset), &word, sizeof(word));
}

static uintptr_t word(uintptr_t at, size_t offset)
{
	uintptr_t value;

	memcpy(&value, (const void *)(at + offset), sizeof(value));
	return value;
}

static void set32(uintptr_t at, size_t offset, uint32_t number)
{
	memcpy((void *)(at + offset), &number, sizeof(number));
}

static uintptr_t make_name(struct fake *f, const char *text)
{
	uintptr_t at = take(f, strlen(text) + 1);

	strcpy((char *)at, text);
	return at;
}

static uintptr_t make_type(struct fake *f, const char *name, uint64_t size)
{
	uintptr_t at = take(f, 416);

	set(at, 24, make_name(f, name));
	set(at, 32, size);
	return at;
}

/* As CPython's code objects: 3.8 to 3.10, 3.11, and later ones. */
static void make_code_type(struct fake *f)
{
	bool old = f->minor <= 10;
	const struct {
		const char *name;
		uint64_t offset;
	} members[] = {{"co_argcount", 16},
		       {"co_firstlineno", old              ? 40
					  : f->minor == 11 ? 72
							   : 68},
		       {"co_filename", old ? 104 : 112},
		       {"co_name", old ? 112 : 120},
		       {old ? "co_other" : "co_qualname", 128},
		       {f->minor < 10 ? "co_lnotab" : "co_linetable", old ? 120 : 136}};
	uintptr_t at = take(f, 40 * 7);

	f->symbols.code_type = make_type(f, "code", old ? 176 : 192);
	set(f->symbols.code_type, 240, at);
	for (size_t i = 0; i < 6; i++) {
		set(at, 40 * i, make_name(f, members[i].name));
		set(at, 40 * i + 16, members[i].offset);
	}
}

static uintptr_t make_text(struct fake *f, const char *ascii)
{
	size_t head = f->minor >= 12 ? 40 : 48;
	uintptr_t at = take(f, head + strlen(ascii) + 1);

	set(at, 8, f->symbols.text_type);
	set(at, 16, strlen(ascii));
	set32(at, 32, 1 << 2 | 1 << 5 | 1 << 6 | 1 << 7);
	strcpy((char *)at + head, ascii);
	return at;
}

/* Characters of two bytes. */
static uintptr_t make_wide_text(struct fake *f, const uint16_t *wide, size_t n)
{
	size_t head = f->minor >= 12 ? 56 : 72;
	uintptr_t at = take(f, head + 2 * n + 2);

	set(at, 8, f->symbols.text_type);
	set(at, 16, n);
	set32(at, 32, 2 << 2 | 1 << 5);
	memcpy((char *)at + head, wide, 2 * n);
	return at;
}

/* Bytes of bytecode 0 to 15 are of the first line, 16 to 31 of the next one. */
static uintptr_t make_table(struct fake *f)
{
	static const uint8_t new[] = {0x80 | 10 << 3 | 7, 0, 1, 0x80 | 11 << 3 | 7, 0, 1};
	static const uint8_t pairs[] = {16, 0, 16, 1}, lnotab[] = {16, 1};
	const uint8_t *table = f->minor >= 11 ? new : f->minor == 10 ? pairs : lnotab;
	size_t bytes = f->minor >= 11   ? sizeof(new)
		       : f->minor == 10 ? sizeof(pairs)
					: sizeof(lnotab);
	uintptr_t at = take(f, 32 + bytes + 1);

	set(at, 8, f->symbols.bytes_type);
	set(at, 16, bytes);
	memcpy((void *)(at + 32), table, bytes);
	return at;
}

static uintptr_t make_code(struct fake *f, uintptr_t file, const char *name, uint32_t first_line)
{
	bool old = f->minor <= 10;
	uintptr_t at = take(f, 192 + 32);

	set(at, 8, f->symbols.code_type);
	set(at, 16, 16); /* units of bytecode */
	set32(at, old ? 40 : f->minor == 11 ? 72 : 68, first_line);
	set(at, old ? 104 : 112, file);
	set(at, old ? 112 : 128, make_text(f, name));
	set(at, old ? 120 : 136, make_table(f));
	return at;
}

/* Frame at a byte of the bytecode. owner 3: one of the interpreter's. */
static uintptr_t make_frame(struct fake *f, uintptr_t code, uint32_t at, uintptr_t previous,
			    uint8_t owner)
{
	uintptr_t frame = take(f, 128);

	if (f->minor <= 10) {
		set(frame, 8, f->symbols.frame_type);
		set(frame, 24, previous);
		set(frame, 32, code);
		set32(frame, f->minor == 10 ? 96 : 104, f->minor == 10 ? at / 2 : at);
		return frame;
	}
	set(frame, f->minor == 11 ? 32 : 0, f->minor >= 14 ? code | 1 : code);
	set(frame, f->minor == 11 ? 48 : 8, previous);
	set(frame, 56, code + 192 + at);
	*(uint8_t *)(frame + (f->minor == 11 ? 69 : f->minor >= 14 ? 74 : 70)) = owner;
	return frame;
}

/* _Py_DebugOffsets of 3.13 and 3.14. */
static void make_runtime(struct fake *f)
{
	size_t at = 3 + 3 + (f->minor == 13 ? 13 : 16);
	uintptr_t runtime = take(f, 1024);

	memcpy((void *)runtime, "xdebugpy", 8);
	set(runtime, 8, f->symbols.version);
	for (size_t i = 3; i < at; i++)
		set(runtime, 8 * i, 300 + i);
	set(runtime, 8 * at, 640);
	set(runtime, 8 * (at + 4), 72); /* current_frame, thread_id */
	set(runtime, 8 * (at + 5), 152);
	at += 9;
	set(runtime, 8 * at, 88);
	set(runtime, 8 * (at + 1), 8); /* previous, executable, instr_ptr, localsplus, owner */
	set(runtime, 8 * (at + 2), 0);
	set(runtime, 8 * (at + 3), 56);
	set(runtime, 8 * (at + 4), 80);
	set(runtime, 8 * (at + 5), f->minor == 13 ? 70 : 74);
	at += f->minor == 13 ? 6 : 8;
	set(runtime, 8 * at, 208);
	set(runtime, 8 * (at + 1), 112); /* filename, name, qualname, linetable, firstlineno */
	set(runtime, 8 * (at + 2), 120);
	set(runtime, 8 * (at + 3), 128);
	set(runtime, 8 * (at + 4), 136);
	set(runtime, 8 * (at + 5), 68);
	f->symbols.runtime = runtime;
}

static void make_state(struct fake *f, uintptr_t frame)
{
	static const size_t thread[] = {176, 176, 176, 152, 136, 152, 152};
	uintptr_t state = take(f, 256), in_it = take(f, 16);

	f->state = the_state = state;
	set(state, thread[f->minor - 8], (uint64_t)pthread_self());
	if (f->minor <= 10)
		set(state, 24, frame);
	else if (f->minor >= 13)
		set(state, 72, frame);
	else
		set(state, 56, in_it);
	if (f->minor == 11)
		set(in_it, 8, frame);
	else
		set(in_it, 0, frame);
}

static void make(struct fake *f, unsigned int minor)
{
	static const uint16_t wide[] = {'/', 0xfc, 0x65e5, 0xd800, '\n', '.', 'p', 'y'};
	uint8_t *memory = f->memory;
	uintptr_t file, none;

	if (!memory) {
		memory = mmap(NULL, ROOM + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memory += 4096;
		mprotect(memory, ROOM, PROT_READ | PROT_WRITE);
	}
	memset(memory, 0, ROOM);
	*f = (struct fake){.memory = memory, .minor = minor};
	f->symbols.version = 3u << 24 | minor << 16 | 0x2f0;
	f->symbols.thread_state = thread_state;
	make_code_type(f);
	f->symbols.text_type = make_type(f, "str", minor >= 12 ? 64 : 80);
	f->symbols.bytes_type = make_type(f, "bytes", 33);
	f->symbols.frame_type = make_type(f, "frame", 400);
	none = make_type(f, "NoneType", 16);
	if (minor >= 13)
		make_runtime(f);
	file = make_text(f, "/home/user/train.py");
	f->codes[2] = make_code(f, file, "<module>", 1);
	f->codes[1] = make_code(f, make_wide_text(f, wide, 8), "Model.step", 40);
	f->codes[0] = make_code(f, file, "load", 90);
	f->frames[2] = make_frame(f, f->codes[2], 20, 0, 0);
	f->frames[1] = make_frame(f, f->codes[1], 4, f->frames[2], 1);
	if (minor >= 12) /* where C called Python */
		f->frames[1] = make_frame(f, none, 0, f->frames[1], 3);
	f->frames[0] = make_frame(f, f->codes[0], 30, f->frames[1], 0);
	make_state(f, f->frames[0]);
}

static size_t walk(const struct spy_python *python, struct spy_python_place *places, size_t most)
{
	struct spy_python_walk w;
	struct spy_python_frame frame;
	size_t n = 0;

	if (!spy_python_begin(&w, python))
		return 0;
	while (n < most && spy_python_next(&w, &frame) && spy_python_read(&w, &frame, &places[n]))
		n++;
	return n;
}

static void test_versions(void **state)
{
	struct spy_python_place places[8];
	struct spy_python python;
	struct fake f = {0};

	(void)state;
	for (unsigned int minor = 8; minor <= 14; minor++) {
		make(&f, minor);
		assert_true(spy_python_describe(&f.symbols, &python));
		assert_int_equal(walk(&python, places, 8), 3);
		assert_string_equal(places[0].file, "/home/user/train.py");
		assert_string_equal(places[0].function, "load");
		assert_int_equal(places[0].line, 91);
		assert_int_equal(places[0].first_line, 90);
		assert_string_equal(places[1].file, "/\u00fc\u65e5??.py");
		assert_string_equal(places[1].function, "Model.step");
		assert_int_equal(places[1].line, 40);
		assert_string_equal(places[2].function, "<module>");
		assert_int_equal(places[2].line, 2);
	}
}

static void *elsewhere(void *data)
{
	struct spy_python_walk w;

	return spy_python_begin(&w, data) ? data : NULL;
}

static void test_no_state(void **state)
{
	struct spy_python_walk w;
	struct spy_python python;
	struct fake f = {0};
	pthread_t thread;
	void *found;

	(void)state;
	make(&f, 12);
	assert_true(spy_python_describe(&f.symbols, &python));
	assert_true(spy_python_begin(&w, &python));
	pthread_create(&thread, NULL, elsewhere, &python); /* it is another thread's state */
	pthread_join(thread, &found);
	assert_null(found);
	the_state = 0;
	assert_false(spy_python_begin(&w, &python));
	the_state = (uintptr_t)f.memory - 4096; /* it was unmapped */
	assert_false(spy_python_begin(&w, &python));
}

static void test_unknown(void **state)
{
	static const uint32_t versions[] = {0x030f00f0, 0x030700f0, 0x020712f0,
					    0x040c00f0, 0,          UINT32_MAX};
	struct spy_python python;
	struct fake f = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		make(&f, 14);
		f.symbols.version = versions[i];
		assert_false(spy_python_describe(&f.symbols, &python));
	}
	make(&f, 13);
	set(f.symbols.runtime, 16, 1); /* without the GIL */
	assert_false(spy_python_describe(&f.symbols, &python));
	make(&f, 14);
	set(f.symbols.runtime, 8, 0x030d00f0); /* another version's */
	assert_false(spy_python_describe(&f.symbols, &python));
	make(&f, 13);
	f.symbols.version = 0x030c00f0; /* texts as in 3.12, and code objects, but ... */
	assert_true(spy_python_describe(&f.symbols, &python));
	{
		struct spy_python_place places[8];

		assert_int_equal(walk(&python, places, 8), 0); /* ... not the states of threads */
	}
	make(&f, 11);
	f.symbols.version = 0x030c00f0; /* texts are made otherwise */
	assert_false(spy_python_describe(&f.symbols, &python));
	make(&f, 12);
	set(f.symbols.code_type, 24, (uintptr_t)make_name(&f, "cell")); /* another type */
	assert_false(spy_python_describe(&f.symbols, &python));
	make(&f, 12);
	set(f.symbols.code_type, 240, 0); /* without members */
	assert_false(spy_python_describe(&f.symbols, &python));
	make(&f, 12);
	set(word(f.symbols.code_type, 240), 0, 0); /* with members behind their end */
	assert_false(spy_python_describe(&f.symbols, &python));
	make(&f, 12);
	set(f.symbols.code_type, 32, 1 << 20); /* of an absurd size */
	assert_false(spy_python_describe(&f.symbols, &python));
}

/* What 3.13 and later say of themselves: each place lies in its struct, and code objects are as their type says. */
static void test_bad_offsets(void **state)
{
	enum { THREAD = 19, FRAME = THREAD + 9 }; /* make_runtime */
	static const struct {
		size_t word;
		uint64_t value;
		bool is_good;
	} cases[] = {
		{THREAD + 4, 639, true},
		{THREAD + 4, 640, false}, /* the size of a thread's state */
		{THREAD + 5, 639, true},
		{THREAD + 5, 640, false},
		{THREAD, UINT16_MAX, true},
		{THREAD, UINT16_MAX + 1, false},
		{THREAD, 153, true},
		{THREAD, 152, false},
		{FRAME + 1, 87, true},
		{FRAME + 1, 88, false}, /* the size of a frame */
		{FRAME + 2, 88, false},
		{FRAME + 3, 88, false},
		{FRAME + 4, 88, false},
		{FRAME + 5, 87, true},
		{FRAME + 5, 88, false},
		{FRAME + 5, 0, false},
		{FRAME, 81, true},
		{FRAME, 80, false},
		{FRAME + 6 + 1, 113, false},
		{FRAME + 6 + 3, 127, false},
		{FRAME + 6 + 4, 137, false},
		{FRAME + 6 + 5, 0, false},
	};
	struct spy_python python;
	struct fake f = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make(&f, 13);
		set(f.symbols.runtime, 8 * cases[i].word, cases[i].value);
		assert_int_equal(spy_python_describe(&f.symbols, &python), cases[i].is_good);
	}
	/* However large a frame says that it is, no place in it is further than is read. */
	for (uint64_t most = 239; most < 241; most++) {
		make(&f, 13);
		set(f.symbols.runtime, 8 * FRAME, 1000);
		set(f.symbols.runtime, 8 * (FRAME + 4), most);
		assert_int_equal(spy_python_describe(&f.symbols, &python), most == 239);
	}
}

/* A chain that ends in itself, and one much longer than anybody wants to see. */
static void test_endless(void **state)
{
	struct spy_python_walk w;
	struct spy_python_frame frame;
	struct spy_python python;
	struct fake f = {0};
	size_t n = 0;

	(void)state;
	make(&f, 12);
	set(f.frames[2], 8, f.frames[0]);
	assert_true(spy_python_describe(&f.symbols, &python));
	assert_true(spy_python_begin(&w, &python));
	while (spy_python_next(&w, &frame))
		n++;
	assert_in_range(n, 100, 256);
	assert_false(spy_python_next(&w, &frame));
}

/* A long path keeps its end, a long name its beginning; texts of absurd lengths are none. */
static void test_long_texts(void **state)
{
	static char path[3000];
	struct spy_python_place places[8];
	struct spy_python python;
	struct fake f = {0};
	uintptr_t text;

	(void)state;
	memset(path, 'd', sizeof(path) - 1);
	strcpy(path + 2900, "/end.py");
	make(&f, 13);
	assert_true(spy_python_describe(&f.symbols, &python));
	text = make_text(&f, path);
	set(f.codes[0], 112, text);
	set(f.codes[0], 128, text);
	assert_int_equal(walk(&python, places, 1), 1);
	assert_in_range(strlen(places[0].file), 400, SPY_PYTHON_FILE - 1);
	assert_string_equal(places[0].file + strlen(places[0].file) - 7, "/end.py");
	assert_in_range(strlen(places[0].function), 100, SPY_PYTHON_FUNCTION - 1);
	set(text, 16, 1ull << 40);
	assert_int_equal(walk(&python, places, 1), 0);
	set(text, 16, 0);
	assert_int_equal(walk(&python, places, 1), 1);
	assert_string_equal(places[0].file, "");
}

/* Any byte may be any other one. */
static void test_rubbish(void **state)
{
	static uint8_t whole[ROOM];
	struct spy_python_place places[8];
	struct spy_python python, changed;
	struct fake f = {0};
	size_t found = 0;

	(void)state;
	for (unsigned int minor = 8; minor <= 14; minor++) {
		make(&f, minor);
		assert_true(spy_python_describe(&f.symbols, &python));
		memcpy(whole, f.memory, ROOM);
		for (size_t round = 0; round < 4000; round++) {
			for (size_t n = 1 + random_word() % 12; n--;) {
				size_t at = random_word() % f.used & ~7ull;
				uint64_t kinds[] = {random_word(), random_word() % 256,
						    (uintptr_t)f.memory +
							    random_word() % (ROOM + 99),
						    f.codes[0], f.frames[1]};

				set((uintptr_t)f.memory, at, kinds[random_word() % 5]);
			}
			found += walk(&python, places, 8);
			if (spy_python_describe(&f.symbols, &changed))
				found += walk(&changed, places, 8);
			for (size_t i = 0; i < 8; i++) {
				places[i].file[SPY_PYTHON_FILE - 1] = '\0';
				assert_true(strlen(places[i].file) < SPY_PYTHON_FILE);
			}
			memcpy(f.memory, whole, ROOM);
		}
	}
	assert_true(found > 1000);
}

/* ---- the frames of another thread --------------------------------------------------------------- */

static struct spy_python_frame looked[SPY_PYTHON_LOOKED];
static bool cut;

static size_t look(const struct spy_python *python, struct spy_python_guess *guess, uintptr_t at,
		   uintptr_t handle)
{
	static void *room;

	if (!room)
		room = malloc(spy_python_look_bytes());
	return spy_python_look_at(python, guess, room, at, handle, looked, &cut);
}

/* What a thread copies of itself are its frames then, wherever they lie, whatever has become of them since. */
static void copy_own(struct fake *f, const struct spy_python *python, uintptr_t at, uintptr_t self)
{
	static struct spy_python_copy copy;
	static uint8_t now[ROOM], apart[128] __attribute__((aligned(16)));
	struct spy_python_frame before[3];
	void *room = malloc(spy_python_look_bytes());

	memcpy(before, looked, sizeof(before));
	assert_false(spy_python_copy_own(python, at, self + 8, &copy));
	if (!python->state.chunk) {
		assert_false(spy_python_copy_own(python, at, self, &copy));
		free(room);
		return;
	}
	memcpy(now, f->memory, ROOM);
	memcpy(apart, (void *)f->frames[1], python->frame.bytes);
	set(f->frames[0], python->frame.previous, (uintptr_t)apart);
	assert_true(spy_python_copy_own(python, at, self, &copy));
	memset(apart, 0xa5, sizeof(apart));
	for (size_t i = 0; i < 3; i++)
		memset((void *)f->frames[i], 0xa5, python->frame.bytes);
	assert_int_equal(spy_python_look_at_copy(python, room, &copy, looked), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(looked[i].function, before[i].function);
		assert_int_equal(looked[i].first_line, before[i].first_line);
		assert_int_equal(looked[i].at, before[i].at);
	}
	memcpy(f->memory, now, ROOM);
	free(room);
}

/* A thread that stands still: what it sees itself. */
static void test_others(void **state)
{
	const uintptr_t self = (uintptr_t)pthread_self();

	(void)state;
	for (unsigned int minor = 8; minor <= 14; minor++) {
		struct spy_python_guess guess = {0};
		struct spy_python_walk w;
		struct spy_python_frame own;
		struct spy_python python;
		struct fake f = {0};

		make(&f, minor);
		assert_true(spy_python_describe(&f.symbols, &python));
		if (python.state.chunk) { /* a state that has it */
			uintptr_t larger = take(&f, 512);

			memcpy((void *)larger, (void *)the_state, 256);
			set(larger, python.state.chunk, f.frames[2] & ~(uintptr_t)15);
			f.state = the_state = larger;
		}
		for (int again = 0; again < 2;
		     again++) { /* the second time it is known where things are */
			assert_int_equal(look(&python, &guess, the_state, self), 3);
			assert_false(cut);
			assert_true(spy_python_begin(&w, &python));
			for (size_t i = 0; i < 3; i++) {
				assert_true(spy_python_next(&w, &own));
				assert_int_equal(looked[i].file, own.file);
				assert_int_equal(looked[i].function, own.function);
				assert_int_equal(looked[i].first_line, own.first_line);
				assert_int_equal(looked[i].at, own.at);
			}
		}
		copy_own(&f, &python, the_state, self);
		/* It has returned since, into a frame that is another one. */
		set(python.state.indirect
			    ? word(the_state, python.state.frame) + python.state.frame_in_it
			    : the_state + python.state.frame,
		    0, f.frames[2]);
		assert_int_equal(look(&python, &guess, the_state, self), 1);
		assert_int_equal(looked[0].first_line, 1);
		/* Another thread's state by now; none; one that is not there any more. */
		assert_int_equal(look(&python, &guess, the_state, self + 8), 0);
		assert_int_equal(look(&python, &guess, 0, self), 0);
		assert_int_equal(look(&python, &guess, (uintptr_t)f.memory - 4096, self), 0);
		assert_int_equal(look(&python, &guess, the_state, self), 1);
		/* In no function. */
		set(python.state.indirect
			    ? word(the_state, python.state.frame) + python.state.frame_in_it
			    : the_state + python.state.frame,
		    0, 0);
		assert_int_equal(look(&python, &guess, the_state, self), 0);
	}
}

/* Deep stacks: the innermost frames and the outermost ones; too deep, and endless ones, have none. */
static void test_deep_others(void **state)
{
	static const unsigned int depths[] = {
		SPY_PYTHON_LOOKED, SPY_PYTHON_LOOKED + 1, 100, 255, 256, 257};
	const uintptr_t self = (uintptr_t)pthread_self();
	uint8_t *many =
		mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++)
		for (int in_chunk = 0; in_chunk < 2; in_chunk++) {
			struct spy_python_guess guess = {0};
			struct spy_python python;
			struct fake f = {0};
			unsigned int depth = depths[i],
				     n = depth < SPY_PYTHON_LOOKED ? depth : SPY_PYTHON_LOOKED;
			uintptr_t frame = 0, larger, in_it;

			make(&f, 12);
			assert_true(spy_python_describe(&f.symbols, &python));
			larger = take(&f, 512);
			memcpy((void *)larger, (void *)the_state, 256);
			set(larger, python.state.chunk, in_chunk ? (uintptr_t)many : 0);
			in_it = word(larger, python.state.frame) + python.state.frame_in_it;
			/* The d-th function from outside is at byte 2 * (d % 16). */
			for (unsigned int d = 0; d < depth; d++) {
				uintptr_t below = (uintptr_t)many + 128 + d * 96;

				memset((void *)below, 0, 96);
				set(below, 0, f.codes[1]);
				set(below, 8, frame);
				set(below, 56, f.codes[1] + 192 + 2 * (d % 16));
				frame = below;
			}
			set(in_it, 0, frame);
			if (depth > 256) {
				assert_int_equal(look(&python, &guess, larger, self), 0);
				continue;
			}
			assert_int_equal(look(&python, &guess, larger, self), n);
			assert_false(cut);
			for (unsigned int k = 0; k < n; k++) {
				unsigned int d =
					k < SPY_PYTHON_INNERMOST ? depth - 1 - k : n - 1 - k;

				assert_int_equal(looked[k].at, 2 * (d % 16));
			}
			/* A frame that leads to itself, or to where none is. */
			set((uintptr_t)many + 128, 8, (uintptr_t)many + 128);
			assert_int_equal(look(&python, &guess, larger, self), 0);
			set((uintptr_t)many + 128, 8, 12);
			assert_int_equal(look(&python, &guess, larger, self), 0);
			set((uintptr_t)many + 128, 8, 0);
			assert_int_equal(look(&python, &guess, larger, self), n);
		}
	munmap(many, 64 << 10);
}

/* ---- what the interpreter does -------------------------------------------------------------------- */

static void test_activity(void **state)
{
	static uint8_t interpreter[8192], other[512], runtime[512],
		gil[64] __attribute__((aligned(8)));

	(void)state;
	for (unsigned int minor = 11; minor <= 13; minor++) {
		struct spy_python_activity activity;
		struct spy_python python;
		struct fake f = {0};
		uintptr_t lock, holder = (uintptr_t)other, larger;

		make(&f, minor);
		if (minor == 11)
			f.symbols.runtime = (uintptr_t)runtime;
		assert_true(spy_python_describe(&f.symbols, &python));
		if (!python.interpreter.of_state)
			continue;
		larger = take(&f, 512);
		set(larger, python.interpreter.of_state, (uintptr_t)interpreter);
		memset(interpreter, 0, sizeof(interpreter));
		memset(other, 0, sizeof(other));
		lock = python.interpreter.gil_runtime ? (uintptr_t)runtime + python.interpreter.gil
						      : (uintptr_t)gil;
		if (python.interpreter.gil_pointer)
			set((uintptr_t)interpreter, python.interpreter.gil, lock);
		set(holder, python.interpreter.of_state, (uintptr_t)interpreter);
		set(holder, python.state.thread_id, 0x7777);
		set32(holder, python.interpreter.native_id, 4711);
		/* Held; garbage is collected or not. */
		set(lock, 8, holder);
		set32(lock, 16, 1);
		for (uint32_t collecting = 0; collecting < 2; collecting++) {
			set32((uintptr_t)interpreter, python.interpreter.collecting, collecting);
			assert_true(spy_python_activity(&python, larger, &activity));
			assert_int_equal(activity.collects, collecting);
			assert_int_equal(activity.gil, lock);
			assert_int_equal(activity.holder, holder);
			assert_int_equal(activity.holder_tid, 4711);
			assert_int_equal(activity.holder_handle, 0x7777);
		}
		/* Nobody has it: the last holder is still named. */
		set32(lock, 16, 0);
		assert_true(spy_python_activity(&python, larger, &activity));
		assert_int_equal(activity.holder, 0);
		assert_int_equal(activity.gil, lock);
		/* One of another interpreter, or memory that is not there. */
		set32(lock, 16, 1);
		set(holder, python.interpreter.of_state, (uintptr_t)other);
		assert_false(spy_python_activity(&python, larger, &activity));
		set(lock, 8, (uintptr_t)f.memory - 4096);
		assert_false(spy_python_activity(&python, larger, &activity));
		assert_false(spy_python_activity(&python, (uintptr_t)f.memory - 4096, &activity));
		set(larger, python.interpreter.of_state, (uintptr_t)f.memory - 4096);
		assert_false(spy_python_activity(&python, larger, &activity));
		python.interpreter.of_state = 0; /* a version of which it is not known */
		assert_false(spy_python_activity(&python, larger, &activity));
		assert_int_equal(activity.gil, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_deep_others),
		cmocka_unit_test(test_activity),
		cmocka_unit_test(test_locations),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_lnotab),
		cmocka_unit_test(test_random_locations),
		cmocka_unit_test(test_rubbish_tables),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_no_state),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_bad_offsets),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_rubbish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
