/*
 * analyzer/cmd_read/why_place.h: what happened at a place of the program, a line, a file or a function, for `cudaspy why`.
 */
#ifndef CUDASPY_WHY_PLACE_H
#define CUDASPY_WHY_PLACE_H

#include "analysis.h"
#include "base/hash.h"
#include "findings/finding.h"
#include "symbols/symbolize.h"
#include "trace/listener.h"

struct why_address;

struct why_place {
	struct subject_place place; /* must be the first */
	struct symbolizer *symbols;
	char *file, *module; /* owned */
	struct why_address *addresses; /* those looked at */
	struct place_call *calls; /* made there; place.n_calls of them, owned */
	struct arena texts;
	const char **
		functions; /* found by that name, with their files: FUNCTIONS_NAMED at most, owned */
	size_t n_functions;
};

/* Is the word a file and a line, "main.cu:17", or a file? */
bool why_place_is(const char *word);

/* The place that a word means; a function by its name; a finding's. why_place_release in all cases. */
void why_place_of_word(struct why_place *p, const char *word);
void why_place_of_function(struct why_place *p, const char *name);
void why_place_of_finding(struct why_place *p, const struct finding *f);
void why_place_release(struct why_place *p);

/* Has all calls counted that are made there, while records are read. */
struct listener why_place_listener(struct why_place *p);

/* After the last record: which functions of that name samples and waits show (subject_place.functions). */
void why_place_look(struct why_place *p, const struct idle *idle);

/*
 * Names of functions of the program that are known by samples, stacks and findings' sites; after the last record. One may come
 * up several times.
 */
typedef void why_function_visit(void *data, const char *function);
void why_functions(const struct analysis *a, struct symbolizer *symbols, why_function_visit *visit,
		   void *data);

#endif
