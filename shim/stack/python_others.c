/*
 * shim/stack/python_others.c: the frames in Python of another thread, which may be running. Called by the sampler, on its own
 * thread. All memory is read through the kernel; nothing of Python is called, nothing of it changes.
 */
#include <string.h>
#include "lib/peek.h"
#include "stack/python.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

#define CHUNK_MOST SPY_PYTHON_COPY /* the others one by one */
#define CHUNK_FIRST 2048
#define CHUNK_OF_CALLERS 8192 /* half of the smallest one */
#define FRAMES_MOST 256 /* of a thread; one that has more has none */
#define FRAME_MOST SPY_PYTHON_FRAME
#define CODE_MOST 256 /* of a code object, read_frame's bound, too */
#define TRIES 4 /* a thread has moved on since the last look, or while it was looked at */

/* A thread's frames, as one copy has them, innermost first. */
struct chain {
	uint64_t top;
	uint8_t chunk[CHUNK_MOST];
	uint8_t raw[FRAMES_MOST][FRAME_MOST];
	uintptr_t code[FRAMES_MOST];
	size_t n;
};

struct room {
	struct chain chains[2];
	uint8_t codes[SPY_PYTHON_LOOKED][CODE_MOST];
};

size_t spy_python_look_bytes(void)
{
	return sizeof(struct room);
}

static uint64_t word_at(const uint8_t *object, size_t offset)
{
	uint64_t word;

	memcpy(&word, object + offset, sizeof(word));
	return word;
}

/* ---- the copies ------------------------------------------------------------------------------ */

/* What is copied at once. */
struct pieces {
	struct iovec to[10], from[10];
	size_t n;
};

static void add(struct pieces *p, void *to, uintptr_t from, size_t bytes)
{
	p->to[p->n] = (struct iovec){to, bytes};
	p->from[p->n++] = (struct iovec){(void *)from, bytes};
}

/* Where the thread's innermost frame is named, and the memory that its frames lie in. False: the state is no longer there, or
 * another thread's. */
static bool find(const struct spy_python *python, struct spy_python_guess *g, int pid,
		 uintptr_t state, uintptr_t handle)
{
	struct pieces p = {.n = 0};
	uint64_t owner = 0, leads = 0, chunk = 0;

	add(&p, &owner, state + python->state.thread_id, sizeof(owner));
	add(&p, &leads, state + python->state.frame, sizeof(leads));
	if (python->state.chunk)
		add(&p, &chunk, state + python->state.chunk, sizeof(chunk));
	if (!spy_peek_all(pid, p.to, p.from, p.n) || owner != handle)
		return false;
	g->state = state;
	g->leads_to_frame = python->state.indirect ? leads + python->state.frame_in_it
						   : state + python->state.frame;
	g->chunk = chunk;
	if (!g->bytes)
		g->bytes = CHUNK_FIRST;
	return !python->state.indirect || leads;
}

/* Both copies by one call. True: they are of the memory that the thread uses, if perhaps not of all of it. */
static bool copy_twice(const struct spy_python *python, const struct spy_python_guess *g, int pid,
		       uintptr_t handle, struct room *room)
{
	uint64_t owner = 0, leads = 0, chunk = 0;
	struct pieces p = {.n = 0};

	add(&p, &owner, g->state + python->state.thread_id, sizeof(owner));
	for (size_t i = 0; i < 2; i++) {
		add(&p, &room->chains[i].top, g->leads_to_frame, sizeof(uint64_t));
		if (g->chunk)
			add(&p, room->chains[i].chunk, g->chunk, g->bytes);
	}
	add(&p, &leads, g->state + python->state.frame, sizeof(leads));
	if (g->chunk)
		add(&p, &chunk, g->state + python->state.chunk, sizeof(chunk));
	return spy_peek_all(pid, p.to, p.from, p.n) && owner == handle && chunk == g->chunk &&
	       (!python->state.indirect || leads + python->state.frame_in_it == g->leads_to_frame);
}

/* The innermost frame lies in that memory, and behind what was copied: more is next time. */
static bool grow(const struct spy_python *python, struct spy_python_guess *g, uint64_t top)
{
	uint64_t end = top + python->frame.bytes - g->chunk;

	if (!g->chunk || top < g->chunk || end <= g->bytes || end > CHUNK_MOST)
		return false;
	g->bytes = (end + 1023) & ~(size_t)511;
	if (g->bytes > CHUNK_MOST)
		g->bytes = CHUNK_MOST;
	return true;
}

/* ---- chains of frames ------------------------------------------------------------------------ */

static bool read_raw(const struct spy_python *python, const struct spy_python_guess *g, int pid,
		     const struct chain *c, uintptr_t at, uint8_t *raw)
{
	uintptr_t in = at - g->chunk;

	if (g->chunk && in < g->bytes && in + python->frame.bytes <= g->bytes) {
		memcpy(raw, c->chunk + in, python->frame.bytes);
		return true;
	}
	return spy_peek(pid, raw, at, python->frame.bytes);
}

/* From the innermost frame to the outermost. False: it does not get there. */
static bool follow(const struct spy_python *python, const struct spy_python_guess *g, int pid,
		   struct chain *c)
{
	uintptr_t at = c->top;

	c->n = 0;
	for (size_t steps = 0; at && c->n < FRAMES_MOST && steps < 2 * FRAMES_MOST; steps++) {
		uint8_t *raw = c->raw[c->n];

		if (at % 8 || !read_raw(python, g, pid, c, at, raw) ||
		    !spy_python_is_frame(python, raw))
			return false;
		at = word_at(raw, python->frame.previous);
		c->code[c->n] = spy_python_code_of(python, raw);
		c->n += c->code[c->n] != 0;
	}
	return !at && c->n;
}

static bool same_place(const struct spy_python *python, const struct chain *a, size_t i,
		       const struct chain *b, size_t j)
{
	size_t bytes = python->code.bytecode ? 8 : 4;

	return !memcmp(a->raw[i] + python->frame.instruction, b->raw[j] + python->frame.instruction,
		       bytes);
}

/* How many frames both have, from the outermost on. The innermost of these may have moved on in its function. */
static size_t in_common(const struct spy_python *python, const struct chain *a,
			const struct chain *b)
{
	size_t n = 0;

	while (n < a->n && n < b->n) {
		size_t i = a->n - 1 - n, j = b->n - 1 - n;

		if (a->code[i] != b->code[j])
			break;
		n++;
		if (!same_place(python, a, i, b, j))
			break;
	}
	return n;
}

/* ---- what the interpreter does ----------------------------------------------------------------- */

/* struct _gil_runtime_state (internal/pycore_gil.h). */
enum { GIL_HOLDER = 8, GIL_LOCKED = 16, GIL_HEAD = 20 };

static uintptr_t find_gil(const struct spy_python *python, int pid, uintptr_t interpreter)
{
	uintptr_t at = python->interpreter.gil_runtime ? python->symbols.runtime : interpreter;
	uint64_t gil = 0;

	if (!at || !python->interpreter.gil)
		return 0;
	at += python->interpreter.gil;
	if (!python->interpreter.gil_pointer)
		return at;
	return spy_peek(pid, &gil, at, sizeof(gil)) ? gil : 0;
}

/* The thread that has the GIL: it is of the same interpreter. */
static bool find_holder(const struct spy_python *python, int pid, uintptr_t interpreter,
			struct spy_python_activity *activity)
{
	struct pieces p = {.n = 0};
	uint64_t its = 0, handle = 0, native = 0;
	uintptr_t state = activity->holder;

	add(&p, &its, state + python->interpreter.of_state, sizeof(its));
	add(&p, &handle, state + python->state.thread_id, sizeof(handle));
	add(&p, &native, state + python->interpreter.native_id, sizeof(native));
	if (!spy_peek_all(pid, p.to, p.from, p.n) || its != interpreter)
		return false;
	activity->holder_handle = handle;
	activity->holder_tid = (uint32_t)native;
	return true;
}

bool spy_python_activity(const struct spy_python *python, uintptr_t state,
			 struct spy_python_activity *activity)
{
	int pid = (int)getpid();
	uint64_t interpreter = 0;
	uint8_t gil[GIL_HEAD];
	int32_t collecting = 0, locked;

	*activity = (struct spy_python_activity){0};
	if (!python->interpreter.of_state ||
	    !spy_peek(pid, &interpreter, state + python->interpreter.of_state,
		      sizeof(interpreter)) ||
	    !spy_peek(pid, &collecting, interpreter + python->interpreter.collecting,
		      sizeof(collecting)))
		return false;
	activity->gil = find_gil(python, pid, interpreter);
	if (!activity->gil || !spy_peek(pid, gil, activity->gil, sizeof(gil)))
		return false;
	memcpy(&locked, gil + GIL_LOCKED, sizeof(locked));
	activity->holder = locked == 1 ? word_at(gil, GIL_HOLDER) : 0;
	if (activity->holder && !find_holder(python, pid, interpreter, activity))
		return false;
	activity->collects = collecting == 1;
	return true;
}

/* ---- a look ---------------------------------------------------------------------------------- */

/* The frames of the chain from `first` on, with the code objects of all of them read at once. */
static size_t describe(const struct spy_python *python, int pid, struct room *room,
		       const struct chain *c, size_t first, struct spy_python_frame *frames)
{
	struct iovec to[SPY_PYTHON_LOOKED], from[SPY_PYTHON_LOOKED];
	size_t at[SPY_PYTHON_LOOKED], n = c->n - first;

	if (n > SPY_PYTHON_LOOKED)
		n = SPY_PYTHON_LOOKED;
	for (size_t i = 0; i < n; i++) {
		at[i] = i < SPY_PYTHON_INNERMOST ? first + i : c->n - n + i;
		to[i] = (struct iovec){room->codes[i], python->code.bytes};
		from[i] = (struct iovec){(void *)c->code[at[i]], python->code.bytes};
	}
	if (!spy_peek_all(pid, to, from, n))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (!spy_python_frame(python, c->raw[at[i]], c->code[at[i]], room->codes[i],
				      &frames[i]))
			return 0;
	return n;
}

static bool copy_chains(const struct spy_python *python, struct spy_python_guess *g,
			struct room *room, uintptr_t state, uintptr_t handle, int pid)
{
	if (g->state != state)
		*g = (struct spy_python_guess){0};
	for (int i = 0; i < TRIES; i++) {
		if (!g->state && !find(python, g, pid, state, handle))
			return false;
		if (!copy_twice(python, g, pid, handle, room))
			g->state = 0;
		else if (!grow(python, g, room->chains[0].top))
			return true;
	}
	return false;
}

/*
 * One try. What both copies have in common; or, where that is nothing, the callers in the one that has more: while it was read the
 * thread left a frame that lies in an object of its own, a generator's, which leads nowhere then.
 */
static size_t look(const struct spy_python *python, struct spy_python_guess *guess,
		   struct room *room, int pid, struct spy_python_frame *frames, bool *cut)
{
	const struct chain *a = &room->chains[0], *b = &room->chains[1], *more;
	size_t n;

	for (size_t i = 0; i < 2; i++)
		if (!follow(python, guess, pid, &room->chains[i]))
			room->chains[i].n = 0;
	n = in_common(python, a, b);
	*cut = n < a->n;
	if (n)
		return describe(python, pid, room, a, a->n - n, frames);
	*cut = true;
	more = a->n >= b->n ? a : b;
	return more->n > 1 ? describe(python, pid, room, more, 1, frames) : 0;
}

size_t spy_python_look_at(const struct spy_python *python, struct spy_python_guess *guess,
			  void *room, uintptr_t state, uintptr_t handle,
			  struct spy_python_frame *frames, bool *cut)
{
	int pid = (int)getpid();
	size_t n = 0;

	*cut = false;
	if (!state || python->frame.bytes > FRAME_MOST || python->code.bytes > CODE_MOST)
		return 0;
	for (int i = 0; i < TRIES && !n; i++)
		n = copy_chains(python, guess, room, state, handle, pid)
			    ? look(python, guess, room, pid, frames, cut)
			    : 0;
	return n;
}

/* ---- of a copy --------------------------------------------------------------------------------- */

/* Where a frame of the copy lies; NULL: nowhere. */
static const uint8_t *frame_in(const struct spy_python *python, const struct spy_python_copy *copy,
			       uint64_t at)
{
	uint64_t in = at - copy->chunk;

	if (in < copy->bytes && in + python->frame.bytes <= copy->bytes)
		return copy->memory + in;
	for (size_t i = 0; i < copy->n_apart; i++)
		if (copy->apart_at[i] == at)
			return copy->apart[i];
	return NULL;
}

/* What is gone, or another one's, by the time the copy is read. */
static void copy_apart(const struct spy_python *python, int pid, struct spy_python_copy *copy)
{
	uint64_t at = copy->top;

	copy->n_apart = 0;
	for (size_t i = 0; at && i < FRAMES_MOST; i++) {
		const uint8_t *raw = frame_in(python, copy, at);

		if (!raw) {
			if (copy->n_apart == SPY_PYTHON_APART ||
			    !spy_peek(pid, copy->apart[copy->n_apart], at, python->frame.bytes))
				return;
			copy->apart_at[copy->n_apart] = at;
			raw = copy->apart[copy->n_apart++];
		}
		at = word_at(raw, python->frame.previous);
	}
}

bool spy_python_copy_own(const struct spy_python *python, uintptr_t state, uintptr_t handle,
			 struct spy_python_copy *copy)
{
	int pid = (int)getpid();
	struct spy_python_guess g = {0};

	if (!python->state.chunk || python->frame.bytes > FRAME_MOST ||
	    !find(python, &g, pid, state, handle) || !g.chunk ||
	    !spy_peek(pid, &copy->top, g.leads_to_frame, sizeof(copy->top)))
		return false;
	copy->chunk = g.chunk;
	copy->bytes = copy->top - g.chunk + python->frame.bytes;
	/* Of a generator the innermost frame lies elsewhere, and where those of its callers end is not known. */
	if (copy->top < g.chunk || copy->bytes > CHUNK_MOST)
		copy->bytes = CHUNK_OF_CALLERS;
	if (!spy_peek(pid, copy->memory, copy->chunk, copy->bytes))
		return false;
	copy_apart(python, pid, copy);
	return true;
}

size_t spy_python_look_at_copy(const struct spy_python *python, void *room,
			       const struct spy_python_copy *copy, struct spy_python_frame *frames)
{
	struct chain *c = &((struct room *)room)->chains[0];
	uint64_t at = copy->top;
	const uint8_t *raw;

	if (python->code.bytes > CODE_MOST || python->frame.bytes > FRAME_MOST)
		return 0;
	for (c->n = 0; at && c->n < FRAMES_MOST; at = word_at(raw, python->frame.previous)) {
		raw = frame_in(python, copy, at);
		/* Of more frames apart than are kept the callers are not known. */
		if (!raw || !spy_python_is_frame(python, raw))
			break;
		memcpy(c->raw[c->n], raw, python->frame.bytes);
		c->code[c->n] = spy_python_code_of(python, raw);
		c->n += c->code[c->n] != 0;
	}
	return c->n ? describe(python, (int)getpid(), room, c, 0, frames) : 0;
}
