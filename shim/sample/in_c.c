/*
 * shim/sample/in_c.c: what a line of Python called in C (in_c.h). From where the thread was interrupted to the interpreter's
 * function that executes bytecode: the libraries on the way, each with the function by which it was entered. That is one that
 * the library exports, most often, and the same wherever in it the thread is; so there are few such places.
 */
#include "sample/in_c.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

#define LIBRARIES_MOST 3 /* the innermost ones */
#define UNIT 2 /* bytes of an instruction, without what it has behind it */

struct in_c {
	struct spy_places *places;
	const struct spy_python *python;
	const struct spy_python_frame *innermost;
	uint64_t line; /* as a word of a place: its number and line */
	uintptr_t interpreter, ours; /* objects */
	uint64_t entered[LIBRARIES_MOST];
	size_t n;
	uintptr_t last; /* object whose function was entered[n - 1] */
	/* UNCLEAR: perhaps elsewhere. */
	enum found { ON_THE_WAY, THERE, ELSEWHERE, UNCLEAR } found;
};

/* ---- which line was it? ----------------------------------------------------------------------- */

static bool is_in_line(const struct in_c *c, uintptr_t at)
{
	struct spy_python_frame frame = *c->innermost;

	frame.at = (int32_t)at;
	return spy_place_word(c->places, c->python, &frame) == c->line;
}

/* The address of an instruction of the function: the next one, which may be of the next line. */
static bool leads_into_line(const struct in_c *c, uint64_t word)
{
	uintptr_t at = word - c->innermost->bytecode;

	return is_in_line(c, at) || (at >= UNIT && is_in_line(c, at - UNIT));
}

/* How many of the words lead into the function, and how many of these into the line. */
struct count {
	size_t function, line;
};

/* (The first instruction's address is kept by itself.) */
static void count(struct count *n, const struct in_c *c, uint64_t word)
{
	if (word <= c->innermost->bytecode ||
	    word - c->innermost->bytecode >= c->innermost->bytecode_bytes)
		return;
	n->function++;
	n->line += leads_into_line(c, word);
}

/* By the registers, if they say anything. On the stack there may also be what was there before: a library is believed to belong to
 * the line if all agree; the interpreter if any does, so that it rather gets what is not its own. */
static enum found find_line(const struct in_c *c, const struct spy_unwound *f)
{
	struct count in_registers = {0}, on_stack = {0};

	for (unsigned int reg = 0; f->known >> reg; reg++)
		if (f->known >> reg & 1)
			count(&in_registers, c, f->registers[reg]);
	if (in_registers.function)
		return in_registers.line ? THERE : ELSEWHERE;
	for (size_t i = 0; i < f->n_words; i++)
		count(&on_stack, c, f->words[i]);
	if (!on_stack.line)
		return ELSEWHERE;
	return !c->n || on_stack.line == on_stack.function ? THERE : UNCLEAR;
}

/* ---- the way there ---------------------------------------------------------------------------- */

/* Of functions of one library in a row the outermost. */
static void enter(struct in_c *c, const struct spy_unwound *f)
{
	if (f->object != c->last && c->n == LIBRARIES_MOST)
		return;
	c->n += f->object != c->last;
	c->last = f->object;
	c->entered[c->n - 1] = f->function + 1;
}

static bool visit(const struct spy_unwound *f, void *data)
{
	struct in_c *c = data;

	if (!f->function) /* the walk is not to be relied on */
		return false;
	if (f->object == c->ours)
		c->found = ELSEWHERE; /* in a call, or the recorder's own work */
	else if (f->object != c->interpreter)
		enter(c, f);
	else if (f->function == c->python->symbols.evaluate)
		c->found = find_line(c, f);
	else
		c->last = 0;
	return c->found == ON_THE_WAY;
}

void spy_place_add_c(struct spy_places *p, const struct spy_python *python,
		     const struct spy_python_frame *innermost, const struct spy_interrupted *at,
		     struct spy_frames *place)
{
	struct in_c c = {.places = p,
			 .python = python,
			 .innermost = innermost,
			 .line = place->words[0],
			 .ours = spy_unwind_object((uintptr_t)spy_place_add_c)};

	if (!python->symbols.evaluate || !innermost->bytecode || !c.line ||
	    place->count + LIBRARIES_MOST >= SPY_PLACE_MOST)
		return;
	c.interpreter = spy_unwind_object(python->symbols.evaluate);
	spy_unwind_each(at, visit, &c);
	if (c.found == ELSEWHERE)
		return;
	for (size_t i = 0; c.found == THERE && i < c.n; i++)
		place->words[place->count++] = c.entered[i];
	place->words[place->count++] = c.found == THERE ? python->symbols.evaluate : 0;
	place->python |= SPY_PLACE_FUNCTION;
}
