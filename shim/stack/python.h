/*
 * shim/stack/python.h: which lines of Python a thread is at: 24 frames at most, innermost first,
 * each a file, a function and a line. A frame takes some three system calls.
 *
 * PyTorch gives the interpreter's lock (GIL) back around nearly all it does, so nothing of Python
 * may be called here and no object's count of references may change. But a thread's own frames
 * stand still while it is inside a call of ours: they are read as a debugger of another process
 * would, through the kernel (peek.h).
 *
 *   - PyGILState_GetThisThreadState, one look into a thread-local variable, is the only function
 *     that is called. Its answer is believed if it names this thread. Threads without a state have
 *     no frames, and cost two reads.
 *   - python.c finds the interpreter, in the executable or in a libpython, when the session begins
 *     and at packet changes if libraries came or went. One that comes after the first CUDA call has
 *     its lines told from the next packet on. dlclose makes us forget it first.
 *   - Where the fields are, the interpreter says itself as far as it can: the members of
 *     PyCode_Type (where a code object has its file, name, first line and table of lines; its
 *     bytecode lies behind them), since 3.13 _Py_DebugOffsets. For threads and frames of 3.8 to
 *     3.12 there is a table.
 *   - An object is believed if its type is the exported one, a text if it is a compact one of sane
 *     length, a place in the bytecode if it lies in it. Chains end after 256 frames. A version we
 *     do not know, a build without the GIL and whatever does not add up give nothing.
 *   - A function is told once, under a number: its place in a table of 4096, found by a hash of
 *     file, name and first line, for its object may be freed and another one lie there.
 */
#ifndef CUDASPY_SHIM_PYTHON_H
#define CUDASPY_SHIM_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cudaspy/trace_format.h"

/* ---- the interpreter: python.c -------------------------------------------------------------- */

/* What an interpreter exports. */
struct spy_python_symbols {
	uintptr_t code_type, text_type, bytes_type, frame_type; /* PyCode_Type, PyUnicode_Type … */
	/* _PyRuntime, which begins with _Py_DebugOffsets since 3.13; the GIL of the main interpreter
	 * lies in it */
	uintptr_t runtime, runtime_bytes;
	void *(*thread_state)(void); /* PyGILState_GetThisThreadState, which needs no GIL */
	uintptr_t evaluate; /* _PyEval_EvalFrameDefault, which executes bytecode; 0: not known */
	uint32_t version; /* as PY_VERSION_HEX */
};

/* The same, and where the fields of its objects are. */
struct spy_python {
	struct spy_python_symbols symbols;
	unsigned int minor; /* of version 3 */
	struct {
		uint16_t thread_id;
		uint16_t frame; /* or what leads to it … */
		bool indirect; /* … which then has it … */
		uint16_t frame_in_it; /* … there */
		/* The memory that the frames of functions in progress lie in, innermost last; 0: they have none, or it is not
		 * known */
		uint16_t chunk;
	} state;
	struct {
		uint16_t previous, code, instruction;
		uint16_t owner; /* 0: has none */
		uint16_t bytes; /* all of the above */
	} frame;
	struct {
		uint16_t file, function, first_line, lines;
		/* 0: elsewhere, and the frame has a number instead of an address */
		uint16_t bytecode;
		uint16_t bytes; /* all of the above */
	} code;
	uint16_t ascii_bytes, compact_bytes; /* before a text's characters */
	/* Of the interpreter that a thread's state belongs to. gil: where its lock lies, or (pointer) where that is said: in the
	 * interpreter, or (runtime) in _PyRuntime. Zeros where it is not known. */
	struct {
		uint16_t of_state; /* in the thread's state */
		uint16_t native_id; /* likewise: the system's number of the thread */
		uint32_t collecting; /* in the interpreter: garbage is being collected */
		uint16_t gil;
		bool gil_pointer, gil_runtime;
	} interpreter;
};

/* Where the fields are. False: nothing we could read safely. The types' memory must be readable. */
bool spy_python_describe(const struct spy_python_symbols *symbols, struct spy_python *python);

/* Looks for an interpreter in the process if none is known. With the session's look_lock held;
 * slow. */
void spy_python_look(void);

/* On a slow path, where memory may be allocated: calls for the first time in this thread what
 * has to be called where it may not. */
struct spy_thread;
void spy_python_ask(struct spy_thread *thread);

/* The one that was found; NULL: none. */
const struct spy_python *spy_python_here(void);

/* A library is about to be unloaded, perhaps the interpreter: no thread uses it, or finds it, until
 * the end. The end takes what this returned if nothing was unloaded, and else NULL; and the turn,
 * which tells whether another thread unloaded something meanwhile. */
const struct spy_python *spy_python_unload_begin(uint32_t *turn);
void spy_python_unload_end(const struct spy_python *still, uint32_t turn);

/* ---- the frames of the calling thread: python_frames.c -------------------------------------- */

struct spy_python_walk {
	const struct spy_python *python;
	int pid;
	uintptr_t next; /* frame, 0 none */
	unsigned int steps;
};

struct spy_python_frame {
	uintptr_t file, function, lines; /* objects of its code */
	uint32_t first_line; /* 0 unknown */
	int32_t at; /* byte of its bytecode; negative: before the first */
	uintptr_t bytecode; /* where that lies; 0 unknown */
	size_t bytecode_bytes;
};

#define SPY_PYTHON_FILE 512
#define SPY_PYTHON_FUNCTION 200

/* What people call a frame. Texts are UTF-8; of a longer path the end, of a longer name the
 * beginning. */
struct spy_python_place {
	uint32_t first_line, line; /* 0 unknown */
	char file[SPY_PYTHON_FILE];
	char function[SPY_PYTHON_FUNCTION];
};

/* The calling thread's frames, innermost first. False: it has none. No allocation, no lock, no
 * GIL; errno may change. */
bool spy_python_begin(struct spy_python_walk *walk, const struct spy_python *python);
bool spy_python_next(struct spy_python_walk *walk, struct spy_python_frame *frame);
bool spy_python_read(const struct spy_python_walk *walk, const struct spy_python_frame *frame,
		     struct spy_python_place *place);

/* What a frame of Python's that has been copied (python->frame.bytes of it) says: is it one? The address of its code, 0: it is
 * no function's. And where it is in that code, of which the first python->code.bytes are in `code`. False: that is no code. */
bool spy_python_is_frame(const struct spy_python *python, const uint8_t *raw);
uintptr_t spy_python_code_of(const struct spy_python *python, const uint8_t *raw);
bool spy_python_frame(const struct spy_python *python, const uint8_t *raw, uintptr_t address,
		      const uint8_t *code, struct spy_python_frame *frame);

/* ---- the frames of another thread: python_others.c ------------------------------------------- */

/*
 * A thread that runs changes its frames while they are copied. So they are copied twice by one call of the kernel's, and what both
 * copies have in common, from the outermost frame on, is believed: a call that came or went meanwhile is cut off, its
 * callers stay. Of threads that stand still all frames are in common.
 */

/* Frames that are read, innermost first; of deeper stacks SPY_PYTHON_INNERMOST of the innermost ones, and outermost ones. */
#define SPY_PYTHON_LOOKED SPY_PYTHON_MOST

/* Bytes of a thread's frames that are copied at once */
#define SPY_PYTHON_COPY ((size_t)64 << 10)
#define SPY_PYTHON_APART 24 /* frames that lie elsewhere */
#define SPY_PYTHON_FRAME 128 /* bytes of one */

/* Of a thread that is looked at again and again: where things were the last time. Zeros at first. */
struct spy_python_guess {
	uintptr_t state, leads_to_frame, chunk;
	size_t bytes;
};

/* Bytes of memory that a look needs; the caller's, for one look at a time. */
size_t spy_python_look_bytes(void);

/* The frames of the thread with that state of Python's (PyThreadState) and that number of pthread's, innermost first; 0: none,
 * or it is not that thread's state. *cut: innermost ones are missing. While libraries are held (state/libraries.h). */
size_t spy_python_look_at(const struct spy_python *python, struct spy_python_guess *guess,
			  void *room, uintptr_t state, uintptr_t handle,
			  struct spy_python_frame *frames, bool *cut);

/* What a thread has copied of its own frames, for another one to read: where the innermost one is, and the memory that the
 * frames of functions in progress lie in. Generators' lie elsewhere, and since 3.12 those by which C code has called Python, on the
 * thread's stack: of these the innermost ones. */
struct spy_python_copy {
	uint64_t top;
	uint64_t chunk;
	size_t bytes, n_apart;
	uint64_t apart_at[SPY_PYTHON_APART];
	uint8_t apart[SPY_PYTHON_APART][SPY_PYTHON_FRAME];
	uint8_t memory[SPY_PYTHON_COPY];
};

/* Of the calling thread, which has that state and that number of pthread's: four system calls, and one for each frame that
 * lies apart. False: it has no frames, or all of them lie elsewhere, as before 3.11. While libraries are held. */
bool spy_python_copy_own(const struct spy_python *python, uintptr_t state, uintptr_t handle,
			 struct spy_python_copy *copy);

/* The frames of a copy, as spy_python_look_at has them; soon: of functions the copy has the addresses. */
size_t spy_python_look_at_copy(const struct spy_python *python, void *room,
			       const struct spy_python_copy *copy, struct spy_python_frame *frames);

/* What the interpreter of a thread does, of which that is the state. */
struct spy_python_activity {
	bool collects; /* garbage; the one who has the GIL does */
	uintptr_t gil; /* 0: not known */
	uintptr_t
		holder; /* state of the thread that has the GIL; 0: nobody has, or it is not known */
	uint32_t holder_tid;
	uintptr_t holder_handle;
};

#define SPY_PYTHON_GIL_BYTES 256 /* of it; what waits for it waits in there */

/* False: it is not known, or does not make sense. While libraries are held (state/libraries.h). */
bool spy_python_activity(const struct spy_python *python, uintptr_t state,
			 struct spy_python_activity *activity);

/* ---- lines: python_lines.c ------------------------------------------------------------------ */

/* A table of lines in memory that may be anything. */
struct spy_python_lines {
	int pid;
	uintptr_t table;
	size_t bytes;
	const uint8_t *begun; /* its first bytes, if they were read before … */
	size_t begun_bytes; /* … so many, bytes at most */
	uint32_t first_line;
	unsigned int minor; /* of the version, which says how the table is made */
};

/* The line of a byte of the bytecode; 0: none, or the table makes no sense. */
uint32_t spy_python_line(const struct spy_python_lines *lines, int32_t at);

#endif
