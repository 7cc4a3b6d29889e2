/*
 * analyzer/cmd_read/why_place.c: does something lie at the place that is asked about? A call by its return address, by the
 * functions that were compiled into each other there, by its stack, and by its lines of Python; a sample and a wait likewise.
 * Called while records are read, and by the sections of the answer. Each address is looked up once.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "base/function_name.h"
#include "model/python.h"
#include "why_place.h"

/* Where in the place something lies. */
struct spot {
	const char *file; /* NULL unknown */
	uint64_t line;
};

struct why_address {
	struct why_address_key {
		uint64_t address;
		uint64_t process;
	} key;
	bool there;
	struct spot spot;
	UT_hash_handle hh;
};

#define FUNCTIONS_NAMED 8

/* ---- what is there --------------------------------------------------------------------------- */

static bool is_file(const struct subject_place *asked, const char *file, uint64_t line)
{
	return asked->file && names_file(file) && subject_place_fits(asked, file, line);
}

/* Functions of one name in several files are all meant: which there are, the answer says. */
static void note_function(struct why_place *p, const char *function, const char *file)
{
	const char *words =
		names_file(file) ? arena_printf(&p->texts, "%s (%s)", function, path_basename(file))
				 : arena_printf(&p->texts, "%s", function);

	for (size_t i = 0; i < p->n_functions; i++)
		if (!strcmp(p->functions[i], words))
			return;
	if (p->n_functions == FUNCTIONS_NAMED)
		return;
	p->functions = grow(p->functions, p->n_functions, sizeof(*p->functions));
	p->functions[p->n_functions++] = words;
	p->place.functions = p->place.functions
				     ? arena_printf(&p->texts, "%s, %s", p->place.functions, words)
				     : words;
}

/* The program's own; of a library's, the same name means another one. */
static bool is_function(struct why_place *p, const struct place *place)
{
	if (!place->function || place->cudas || place->foreign || place->interpreter ||
	    !function_name_fits(place->function, p->place.function))
		return false;
	note_function(p, place->function, place->file);
	return true;
}

static bool is_there(struct why_place *p, const struct place *place)
{
	const struct subject_place *asked = &p->place;

	if (asked->function)
		return is_function(p, place);
	if (asked->file)
		return is_file(asked, place->file, place->line > 0 ? (uint64_t)place->line : 0);
	return p->module && place->path && !strcmp(place->path, p->module) &&
	       place->offset == asked->offset;
}

static void look_up(struct why_place *p, struct why_address *known, const struct process *process,
		    uint64_t ns)
{
	struct place places[INLINED_MOST];
	size_t n = symbolize_all(p->symbols, process, known->key.address, ns, places), i;

	for (i = 0; i < n && !known->there; i++) {
		if (!is_there(p, &places[i]))
			continue;
		known->there = true;
		known->spot.file = places[i].file;
		known->spot.line = places[i].line > 0 ? (uint64_t)places[i].line : 0;
	}
}

static bool address_there(struct why_place *p, const struct process *process, uint64_t address,
			  uint64_t ns, struct spot *spot)
{
	const struct why_address_key key = {address, process->trace->index};
	struct why_address *known;

	HASH_FIND(hh, p->addresses, &key, sizeof(key), known);
	if (!known) {
		HASH_NEW(p->addresses, known, key, key);
		look_up(p, known, process, ns);
	}
	*spot = known->spot;
	return known->there;
}

static bool line_there(struct why_place *p, const struct python_line *line)
{
	if (!p->place.function)
		return line->code && is_file(&p->place, line->code->file, line->line);
	if (!python_is_program(line) ||
	    !function_name_fits(line->code->function, p->place.function))
		return false;
	note_function(p, line->code->function, line->code->file);
	return true;
}

static bool stack_there(struct why_place *p, const struct stack *stack, struct spot *spot)
{
	for (uint8_t i = 0; i < stack->n_python; i++) {
		struct python_line line = python_line_at(stack, i);

		if (line_there(p, &line)) {
			*spot = (struct spot){line.code->file, line.line};
			return true;
		}
	}
	for (size_t i = 0; i < stack->n; i++)
		if (address_there(p, stack->process, stack->frames[i], stack->ns, spot))
			return true;
	return false;
}

static bool find(struct why_place *p, const struct process *process, const struct stack *stack,
		 uint64_t address, uint64_t ns, struct spot *spot)
{
	*spot = (struct spot){0};
	return (address && address_there(p, process, address, ns, spot)) ||
	       (stack && (p->place.file || p->place.function) && stack_there(p, stack, spot));
}

static bool lies_there(struct subject_place *place, const struct process *process,
		       const struct stack *stack, uint64_t address, uint64_t ns)
{
	struct spot spot;

	return find((struct why_place *)place, process, stack, address, ns, &spot);
}

static bool made_there(struct subject_place *place, const struct completed_call *call)
{
	return lies_there(place, call->thread->process, call->stack, call->return_address,
			  call->end_ns);
}

/* ---- calls ----------------------------------------------------------------------------------- */

#define CALLS_MOST 1024 /* lines with calls that are told apart; one place has not that many */

static bool same_spot(const struct place_call *call, const struct spot *spot)
{
	return call->line == spot->line && !strcmp(call->file ?: "", spot->file ?: "");
}

static struct place_call *calls_at(struct why_place *p, uint32_t fn, const struct spot *spot)
{
	size_t i;

	for (i = 0; i < p->place.n_calls; i++)
		if (p->calls[i].fn == fn && same_spot(&p->calls[i], spot))
			return &p->calls[i];
	if (i == CALLS_MOST)
		return &p->calls[i - 1];
	p->calls = grow(p->calls, i, sizeof(*p->calls));
	p->calls[i] = (struct place_call){.fn = fn, .file = spot->file, .line = spot->line};
	p->place.calls = p->calls;
	p->place.n_calls++;
	return &p->calls[i];
}

static void count_call(void *data, const struct record *record, const struct completed_call *call)
{
	struct why_place *p = data;
	struct place_call *calls;
	struct spot spot;

	(void)record;
	if (!find(p, call->thread->process, call->stack, call->return_address, call->end_ns, &spot))
		return;
	calls = calls_at(p, call->fn, &spot);
	calls->count++;
	calls->total_ns += call->end_ns - call->begin_ns;
	calls->lost_ns += call->divided ? completed_lost(call) : 0;
}

struct listener why_place_listener(struct why_place *p)
{
	return (struct listener){.data = p, .on_call = count_call};
}

void why_place_look(struct why_place *p, const struct idle *idle)
{
	const struct idle_sum *sum;

	for (sum = idle->sums.by_key; sum; sum = sum->hh.next)
		(void)lies_there(&p->place, sum->process, sum->longest.stack, sum->longest.address,
				 sum->longest.at_ns);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Names that are passed to the caller; addresses whose names were. */
struct function_names {
	struct symbolizer *symbols;
	why_function_visit *visit;
	void *data;
	struct why_address *shown;
};

static void free_addresses(struct why_address *all)
{
	struct why_address *known, *next;

	HASH_EMPTY (all, known, next)
		free(known);
}

/* Stacks have most of their frames in common. */
static bool is_new(struct function_names *f, const struct process *process, uint64_t address)
{
	const struct why_address_key key = {address, process->trace->index};
	struct why_address *known;

	HASH_FIND(hh, f->shown, &key, sizeof(key), known);
	if (known)
		return false;
	HASH_NEW(f->shown, known, key, key);
	return true;
}

static void visit_address(struct function_names *f, const struct process *process, uint64_t address,
			  uint64_t ns)
{
	struct place places[INLINED_MOST];
	size_t n = 0;

	if (address && is_new(f, process, address))
		n = symbolize_all(f->symbols, process, address, ns, places);
	for (size_t i = 0; i < n; i++)
		if (places[i].function && !place_is_between(&places[i]))
			f->visit(f->data, places[i].function);
}

static void visit_python(struct function_names *f, const struct process *process)
{
	struct python_line at = {.code = process->python};

	for (; at.code; at.code = at.code->hh.next)
		if (python_is_program(&at))
			f->visit(f->data, at.code->function);
}

void why_functions(const struct analysis *a, struct symbolizer *symbols, why_function_visit *visit,
		   void *data)
{
	struct function_names f = {.symbols = symbols, .visit = visit, .data = data};
	const struct idle_sum *sum;
	const struct site *site;

	for (size_t i = 0; i < a->model.n_processes; i++)
		visit_python(&f, &a->model.processes[i]);
	for (sum = a->idle.sums.by_key; sum; sum = sum->hh.next) {
		const struct idle_part *part = &sum->longest;

		visit_address(&f, sum->process, part->address, part->at_ns);
		for (size_t i = 0; part->stack && i < part->stack->n; i++)
			visit_address(&f, sum->process, part->stack->frames[i], part->stack->ns);
	}
	for (site = a->findings.sites; site; site = site->hh.next)
		visit_address(&f, &a->model.processes[site->key.process], site->key.return_address,
			      site->last_ns);
	free_addresses(f.shown);
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
					  .made_there = made_there,
					  .lies_there = lies_there};
}

void why_place_of_function(struct why_place *p, const char *name)
{
	*p = (struct why_place){.place = {.text = name,
					  .function = name,
					  .made_there = made_there,
					  .lies_there = lies_there}};
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
					  .made_there = made_there,
					  .lies_there = lies_there};
}

void why_place_release(struct why_place *p)
{
	free_addresses(p->addresses);
	arena_release(&p->texts);
	free(p->functions);
	free(p->calls);
	free(p->file);
	free(p->module);
	*p = (struct why_place){0};
}
