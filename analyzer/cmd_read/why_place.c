/*
 * analyzer/cmd_read/why_place.c: is a call made at the place that is asked about? By its return address, by the functions
 * that were compiled into each other there, by its stack, and by its lines of Python. Called while records are read, of
 * calls that lost time. Each address is looked up once.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "why_place.h"

struct why_address {
	struct why_address_key {
		uint64_t address;
		uint64_t process;
	} key;
	bool there;
	UT_hash_handle hh;
};

/* ---- what is there --------------------------------------------------------------------------- */

static bool is_file(const struct subject_place *asked, const char *file, uint64_t line)
{
	return asked->file && names_file(file) && subject_place_fits(asked, file, line);
}

static bool is_there(const struct why_place *p, const struct place *place)
{
	const struct subject_place *asked = &p->place;

	if (asked->file)
		return is_file(asked, place->file, place->line > 0 ? (uint64_t)place->line : 0);
	return p->module && place->path && !strcmp(place->path, p->module) &&
	       place->offset == asked->offset;
}

static bool look_up(struct why_place *p, const struct process *process, uint64_t address,
		    uint64_t ns)
{
	struct place places[INLINED_MOST];
	size_t n = symbolize_all(p->symbols, process, address, ns, places), i;

	for (i = 0; i < n; i++)
		if (is_there(p, &places[i]))
			return true;
	return false;
}

static bool address_there(struct why_place *p, const struct process *process, uint64_t address,
			  uint64_t ns)
{
	const struct why_address_key key = {address, process->trace->index};
	struct why_address *known;

	HASH_FIND(hh, p->addresses, &key, sizeof(key), known);
	if (!known) {
		HASH_NEW(p->addresses, known, key, key);
		known->there = look_up(p, process, address, ns);
	}
	return known->there;
}

static bool stack_there(struct why_place *p, const struct stack *stack)
{
	for (size_t i = 0; i < stack->n_python; i++) {
		const struct python_code *code = model_python(stack, &stack->python[i]);

		if (code && is_file(&p->place, code->file, stack->python[i].line))
			return true;
	}
	for (size_t i = 0; i < stack->n; i++)
		if (address_there(p, stack->process, stack->frames[i], stack->ns))
			return true;
	return false;
}

static bool made_there(struct subject_place *place, const struct completed_call *call)
{
	struct why_place *p = (struct why_place *)place;
	bool there = (call->return_address && address_there(p, call->thread->process,
							    call->return_address, call->end_ns)) ||
		     (call->stack && p->place.file && stack_there(p, call->stack));

	p->calls += there;
	return there;
}

/* ---- which ----------------------------------------------------------------------------------- */

/* Where the line's number begins, behind the last colon; NULL: there is none. */
static const char *line_of(const char *word)
{
	const char *colon = strrchr(word, ':');

	return colon && colon > word && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")]
		       ? colon + 1
		       : NULL;
}

bool why_place_is(const char *word)
{
	const char *dot = strrchr(word, '.');

	return line_of(word) || (dot && dot > word && isalpha((unsigned char)dot[1]));
}

void why_place_of_word(struct why_place *p, const char *word)
{
	const char *line = line_of(word);

	*p = (struct why_place){0};
	p->file = line ? xstrndup(word, (size_t)(line - 1 - word)) : xstrdup(word);
	p->place = (struct subject_place){.text = word,
					  .file = p->file,
					  .line = line ? strtoull(line, NULL, 10) : 0,
					  .made_there = made_there};
}

void why_place_of_finding(struct why_place *p, const struct finding *f)
{
	const struct finding_place *found = &f->place;

	*p = (struct why_place){0};
	if (found->file && found->line)
		p->file = xstrdup(found->file);
	else if (found->module)
		p->module = xstrdup(found->module);
	p->place = (struct subject_place){.file = p->file,
					  .line = p->file ? found->line : 0,
					  .offset = found->offset,
					  .made_there = made_there};
}

void why_place_release(struct why_place *p)
{
	struct why_address *known, *next;

	HASH_ITER (hh, p->addresses, known, next) {
		HASH_DEL(p->addresses, known);
		free(known);
	}
	free(p->file);
	free(p->module);
	*p = (struct why_place){0};
}
