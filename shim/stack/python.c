/*
 * shim/stack/python.c: is there a Python interpreter in the process, and where are the fields of
 * its objects? Called by modules.c when libraries came or went, and by libraries.c when one goes.
 *
 * Sources: CPython's headers of 3.8 to 3.13 (cpython/pystate.h, cpython/frameobject.h,
 * cpython/object.h, internal/pycore_frame.h, internal/pycore_runtime.h) and for 3.14 those of its
 * repository (internal/pycore_debug_offsets.h, pycore_interpframe_structs.h), whose groups of
 * offsets are those that Pyodide 314's CPython 3.14.2 has in its data. On x86-64 and other machines
 * of 64 bits.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/clock.h"
#include "process/elf_scan.h"
#include "process/options.h"
#include "lib/peek.h"
#include "record/notes.h"
#include "stack/python.h"
#include "state/libraries.h"
#include "state/session.h"

/* ---- types: struct _typeobject, which is public and the same in all versions ---------------- */

enum { TYPE_NAME = 24, TYPE_BASIC_SIZE = 32, TYPE_MEMBERS = 240, TYPE_BYTES = 400 };

/* PyMemberDef, a row of tp_members. */
struct member {
	uintptr_t name;
	uint64_t type;
	uint64_t offset;
	uint64_t flags, text;
};

#define MEMBERS_MOST 64
#define OFFSET_MOST 240 /* python_frames.c reads so much of an object, and 8 bytes more */

static uint64_t word_at(uintptr_t address)
{
	uint64_t word = 0;

	return spy_peek(getpid(), &word, address, sizeof(word)) ? word : 0;
}

static bool is_text(uintptr_t address, const char *wanted)
{
	char text[32] = {0};

	return strlen(wanted) < sizeof(text) &&
	       spy_peek(getpid(), text, address, strlen(wanted) + 1) && !strcmp(text, wanted);
}

static bool is_type(uintptr_t type, const char *name)
{
	return type && is_text(word_at(type + TYPE_NAME), name);
}

/* Offset of a field by the type's members; 0: it has none of that name. */
static uint16_t member_offset(uintptr_t type, const char *name)
{
	uintptr_t at = word_at(type + TYPE_MEMBERS);
	struct member member;

	for (int i = 0; at && i < MEMBERS_MOST; i++, at += sizeof(member)) {
		if (!spy_peek(getpid(), &member, at, sizeof(member)) || !member.name)
			break;
		if (is_text(member.name, name))
			return member.offset < OFFSET_MOST ? (uint16_t)member.offset : 0;
	}
	return 0;
}

/* ---- code objects and texts ----------------------------------------------------------------- */

static void reach(uint16_t *bytes, uint16_t offset)
{
	if (*bytes < offset + 8)
		*bytes = (uint16_t)(offset + 8);
}

static bool describe_code(struct spy_python *p)
{
	uintptr_t type = p->symbols.code_type;
	uint64_t size = word_at(type + TYPE_BASIC_SIZE);

	p->code.file = member_offset(type, "co_filename");
	p->code.function = member_offset(type, p->minor >= 11 ? "co_qualname" : "co_name");
	p->code.first_line = member_offset(type, "co_firstlineno");
	p->code.lines = member_offset(type, p->minor >= 10 ? "co_linetable" : "co_lnotab");
	reach(&p->code.bytes, p->code.file);
	reach(&p->code.bytes, p->code.function);
	reach(&p->code.bytes, p->code.first_line);
	reach(&p->code.bytes, p->code.lines);
	/* Since 3.11 the bytecode lies behind the other fields, in the object. */
	p->code.bytecode = p->minor >= 11 ? (uint16_t)size : 0;
	return p->code.file && p->code.function && p->code.first_line && p->code.lines &&
	       size >= p->code.bytes && size < OFFSET_MOST && size % 8 == 0;
}

/* Their size decides in which of the two ways they are made: with a wchar_t * until 3.11,
 * without since. */
static bool describe_texts(struct spy_python *p)
{
	uint64_t size = word_at(p->symbols.text_type + TYPE_BASIC_SIZE);

	p->ascii_bytes = p->minor >= 12 ? 40 : 48;
	p->compact_bytes = p->minor >= 12 ? 56 : 72;
	return size == p->compact_bytes + 8u;
}

/* ---- threads and frames --------------------------------------------------------------------- */

/* PyFrameObject. */
static bool describe_3_8(struct spy_python *p)
{
	p->state.thread_id = 176;
	p->state.frame = 24;
	p->frame.previous = 24;
	p->frame.code = 32;
	p->frame.instruction = p->minor == 10 ? 96 : 104;
	return is_type(p->symbols.frame_type, "frame");
}

/* _PyInterpreterFrame, found by a _PyCFrame. */
static bool describe_3_11(struct spy_python *p)
{
	p->state.thread_id = p->minor == 11 ? 152 : 136;
	p->state.frame = 56;
	p->state.indirect = true;
	p->state.frame_in_it = p->minor == 11 ? 8 : 0;
	p->state.chunk = p->minor == 11 ? 296 : 232;
	p->frame.previous = p->minor == 11 ? 48 : 8;
	p->frame.code = p->minor == 11 ? 32 : 0;
	p->frame.instruction = 56;
	p->frame.owner = p->minor == 11 ? 69 : 70;
	return true;
}

/*
 * _Py_DebugOffsets: groups of numbers, which differ a little between 3.13 and 3.14. The group of
 * code objects is found by what the type's members say; in front of it lie those of frames and of
 * threads.
 */
#define DEBUG_WORDS 64

enum { FRAME_WORDS_3_13 = 6, FRAME_WORDS_3_14 = 8, THREAD_WORDS = 9 };
enum { FRAME_PREVIOUS = 1, FRAME_CODE, FRAME_INSTRUCTION, FRAME_LOCALS, FRAME_OWNER };
enum { THREAD_FRAME = 4, THREAD_ID };
enum { CODE_FILE = 1, CODE_NAME, CODE_FUNCTION, CODE_LINES, CODE_FIRST_LINE };
enum { COOKIE, VERSION, FREE_THREADED, FIRST_GROUP };

/* Where the group of code objects begins; 0: nowhere. */
static size_t find_code_group(const struct spy_python *p, const uint64_t *words)
{
	for (size_t i = FIRST_GROUP; i + CODE_FIRST_LINE < DEBUG_WORDS; i++)
		if (words[i + CODE_FILE] == p->code.file &&
		    words[i + CODE_FUNCTION] == p->code.function &&
		    words[i + CODE_LINES] == p->code.lines &&
		    words[i + CODE_FIRST_LINE] == p->code.first_line)
			return i;
	return 0;
}

static bool describe_3_13(struct spy_python *p)
{
	size_t frame_words = p->minor == 13 ? FRAME_WORDS_3_13 : FRAME_WORDS_3_14, code;
	uint64_t words[DEBUG_WORDS], *frame, *thread;

	if (!p->symbols.runtime || !spy_peek(getpid(), words, p->symbols.runtime, sizeof(words)) ||
	    memcmp(&words[COOKIE], "xdebugpy", 8) != 0 || words[VERSION] != p->symbols.version ||
	    words[FREE_THREADED])
		return false;
	code = find_code_group(p, words);
	if (code < FIRST_GROUP + frame_words + THREAD_WORDS)
		return false;
	frame = &words[code - frame_words];
	thread = frame - THREAD_WORDS;
	for (size_t i = FRAME_PREVIOUS; i <= FRAME_OWNER; i++)
		if (frame[i] >= OFFSET_MOST || frame[i] >= frame[0])
			return false;
	if (thread[THREAD_FRAME] >= thread[0] || thread[THREAD_ID] >= thread[0] ||
	    thread[0] > UINT16_MAX || !frame[FRAME_OWNER])
		return false;
	p->state.thread_id = (uint16_t)thread[THREAD_ID];
	p->state.frame = (uint16_t)thread[THREAD_FRAME];
	p->state.chunk = p->minor == 13 ? 232 : 0;
	p->frame.previous = (uint16_t)frame[FRAME_PREVIOUS];
	p->frame.code = (uint16_t)frame[FRAME_CODE];
	p->frame.instruction = (uint16_t)frame[FRAME_INSTRUCTION];
	p->frame.owner = (uint16_t)frame[FRAME_OWNER];
	return true;
}

/* Of the versions whose structs are known (internal/pycore_interp.h, pycore_gil.h, cpython/pystate.h). */
static void describe_interpreter(struct spy_python *p)
{
	if (p->minor < 11 || p->minor > 13)
		return;
	p->interpreter.of_state = 16;
	p->interpreter.native_id = p->minor == 12 ? 144 : 160;
	p->interpreter.collecting = p->minor == 11 ? 848 : p->minor == 12 ? 312 : 7600;
	p->interpreter.gil = p->minor == 11 ? 360 : p->minor == 12 ? 384 : 16;
	p->interpreter.gil_runtime = p->minor == 11;
	p->interpreter.gil_pointer = p->minor > 11;
}

static bool describe_frames(struct spy_python *p)
{
	bool known = false;

	describe_interpreter(p);
	if (p->minor <= 10)
		known = describe_3_8(p);
	else if (p->minor <= 12)
		known = describe_3_11(p);
	else
		known = describe_3_13(p);
	reach(&p->frame.bytes, p->frame.previous);
	reach(&p->frame.bytes, p->frame.code);
	reach(&p->frame.bytes, p->frame.instruction);
	reach(&p->frame.bytes, p->frame.owner);
	return known;
}

bool spy_python_describe(const struct spy_python_symbols *symbols, struct spy_python *python)
{
	*python = (struct spy_python){.symbols = *symbols, .minor = symbols->version >> 16 & 0xff};
	return symbols->thread_state && symbols->version >> 24 == 3 && python->minor >= 8 &&
	       python->minor <= 14 && is_type(symbols->code_type, "code") &&
	       is_type(symbols->text_type, "str") && is_type(symbols->bytes_type, "bytes") &&
	       describe_code(python) && describe_texts(python) && describe_frames(python);
}

/* ---- finding it ----------------------------------------------------------------------------- */

/* What of an interpreter the objects of the process define, the first of each name, as the
 * linker would bind them. */
struct exports {
	struct spy_python_symbols symbols;
	uintptr_t version; /* of Py_Version, since 3.11 */
	const char *(*version_text)(void); /* Py_GetVersion */
};

static void keep_data(uintptr_t *known, const struct spy_object *object, const char *name,
		      size_t bytes)
{
	if (!*known)
		*known = (uintptr_t)spy_object_data(object, name, bytes);
}

/* The loader's lock is held: nothing is called. */
static int visit(const struct spy_object *object, void *data)
{
	struct exports *e = data;

	keep_data(&e->symbols.code_type, object, "PyCode_Type", TYPE_BYTES);
	keep_data(&e->symbols.text_type, object, "PyUnicode_Type", TYPE_BYTES);
	keep_data(&e->symbols.bytes_type, object, "PyBytes_Type", TYPE_BYTES);
	keep_data(&e->symbols.frame_type, object, "PyFrame_Type", TYPE_BYTES);
	if (!e->symbols.runtime)
		e->symbols.runtime_bytes = spy_object_data_bytes(object, "_PyRuntime");
	keep_data(&e->symbols.runtime, object, "_PyRuntime", 8 * DEBUG_WORDS);
	keep_data(&e->version, object, "Py_Version", sizeof(long));
	if (!e->symbols.thread_state)
		*(void **)&e->symbols.thread_state =
			spy_object_symbol(object, "PyGILState_GetThisThreadState", NULL, NULL);
	if (!e->symbols.evaluate)
		e->symbols.evaluate = (uintptr_t)spy_object_symbol(
			object, "_PyEval_EvalFrameDefault", NULL, NULL);
	if (!e->version_text)
		*(void **)&e->version_text = spy_object_symbol(object, "Py_GetVersion", NULL, NULL);
	return 0;
}

/* "3.10.13 (main, …": Py_GetVersion may be called at any time, on any thread. */
static uint32_t version_of(const struct exports *e)
{
	const char *text;
	char *end;
	unsigned long major, minor;

	if (e->version)
		return (uint32_t)word_at(e->version);
	text = e->version_text ? e->version_text() : "";
	major = strtoul(text, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return (uint32_t)(major & 0xff) << 24 | (uint32_t)(minor & 0xff) << 16;
}

/* Threads may still read what was known before (stack.c takes no lock): it stays as it is if it
 * is the same interpreter, and else until one more is found. */
static const struct spy_python *keep(const struct spy_python *python)
{
	const struct spy_python *last = spy_session->python_last;
	struct spy_python *other = &spy_session->pythons[last == &spy_session->pythons[0]];

	if (last && !memcmp(last, python, sizeof(*python)))
		return last;
	*other = *python;
	spy_session->python_last = other;
	return other;
}

static void look(void)
{
	struct spy_python python;
	struct exports e = {0};

	spy_each_object(visit, &e);
	if (!e.symbols.thread_state || !e.symbols.code_type)
		return;
	e.symbols.version = version_of(&e);
	if (spy_python_describe(&e.symbols, &python))
		__atomic_store_n(&spy_session->python_here, keep(&python), __ATOMIC_RELEASE);
	else
		spy_note(SPY_NOTE_OTHER,
			 "no lines of Python %u.%u: a version or build that is not known, or the "
			 "system does not let a process read itself (process_vm_readv)",
			 e.symbols.version >> 24, e.symbols.version >> 16 & 0xff);
}

/* ---- a library is unloaded --------------------------------------------------------------------- */

const struct spy_python *spy_python_unload_begin(uint32_t *turn)
{
	*turn = __atomic_add_fetch(&spy_session->python_unloads, 1, __ATOMIC_SEQ_CST);
	spy_libraries_unload_begin();
	return __atomic_exchange_n(&spy_session->python_here, NULL, __ATOMIC_ACQ_REL);
}

static void look_again(void)
{
	__atomic_store_n(&spy_session->python_forgotten, true, __ATOMIC_RELEASE);
}

void spy_python_unload_end(const struct spy_python *still, uint32_t turn)
{
	spy_libraries_unload_end();
	if (!still)
		return;
	/* Another thread may have unloaded it meanwhile, or may be about to. */
	if (!spy_libraries_hold()) {
		look_again();
		return;
	}
	if (turn == __atomic_load_n(&spy_session->python_unloads, __ATOMIC_SEQ_CST))
		__atomic_store_n(&spy_session->python_here, still, __ATOMIC_RELEASE);
	else
		look_again();
	spy_libraries_release();
}

void spy_python_look(void)
{
	if (spy_options.nostacks || spy_python_here())
		return;
	if (spy_libraries_hold()) {
		look();
		spy_libraries_release();
	} else {
		look_again();
	}
}

/* Since 3.14 the function has a thread-local variable, for which the loader may allocate memory at a thread's
 * first call. */
void spy_python_ask(struct spy_thread *thread)
{
	void *(**asked)(void) = &thread->python_asked;
	const struct spy_python *python = spy_python_here();

	if (!python || !spy_libraries_hold())
		return;
	python = spy_python_here();
	if (python) {
		__atomic_store_n(&thread->python_state, (uintptr_t)python->symbols.thread_state(),
				 __ATOMIC_RELAXED);
		*asked = python->symbols.thread_state;
	}
	spy_libraries_release();
}

/* Pairs with look: a reader that finds the pointer finds the data complete. */
const struct spy_python *spy_python_here(void)
{
	return __atomic_load_n(&spy_session->python_here, __ATOMIC_ACQUIRE);
}
