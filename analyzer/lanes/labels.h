/*
 * analyzer/lanes/labels.h: the names in a timeline, each once: functions, places in the program, locks, what calls were
 * about. Places are looked up when all is read.
 */
#ifndef CUDASPY_LABELS_H
#define CUDASPY_LABELS_H

#include "account/account.h"
#include "symbols/symbolize.h"

#define LABELS_MOST (1u << 17) /* names; what comes then has none */

struct label {
	uint32_t number;
	UT_hash_handle hh;
	char text[];
};

/* Where calls return to. */
struct label_place {
	struct label_place_key {
		uint64_t address;
		uint64_t process;
	} key;
	uint64_t ns; /* of the first of these calls */
	uint32_t number, name; /* name: once it is looked up */
	UT_hash_handle hh;
};

/* What is known of a call's arguments; without padding: it is hashed byte by byte. */
struct label_about_key {
	uint64_t bytes, stream;
	uint32_t kernel; /* its name's number */
	uint32_t fn, result; /* of calls that failed; else 0 */
	uint16_t event;
	uint8_t op, kind; /* of memory */
	uint8_t src_kind, dst_kind, src_device, dst_device; /* of copies */
	uint8_t captured, zeros[3];
};

struct label_about {
	struct label_about_key key;
	uint32_t name;
	UT_hash_handle hh;
};

struct labels {
	const struct model *model;
	struct label *by_text;
	struct label **all; /* by number; the first is the empty one */
	uint32_t n;
	struct label_place *by_address;
	struct label_place **places; /* by number */
	uint32_t n_places;
	struct label_about *abouts; /* that have been put into words */
	uint32_t *functions; /* names by the set's functions, + 1 */
	size_t n_functions;
	uint32_t *
		readable; /* of a kernel's name as the linker has it, by number: the other one, + 1 */
	size_t n_readable;
	struct symbolizer *symbols;
};

void labels_init(struct labels *labels, const struct model *model, struct symbolizer *symbols);
void labels_release(struct labels *labels);

/* The number of a name; 0: NULL, empty, or one too many. */
uint32_t label_of(struct labels *labels, const char *text);

/* Of a function of the set's; NO_FUNCTION: 0. */
uint32_t label_of_function(struct labels *labels, uint32_t fn);

/* Where a call was made: what label_of_where understands; 0 unknown. */
uint64_t label_where(struct labels *labels, const struct process *process, uint64_t address,
		     uint64_t ns, const struct stack *stack);

/* After the last record: the number of its name. */
uint32_t label_of_where(struct labels *labels, uint64_t where);

/* Of a kernel, as people write it; 0 unknown. */
uint32_t label_of_kernel(struct labels *labels, const struct process *process, uint32_t kernel);

/* What is known of a call's arguments, in words. */
uint32_t label_of_arguments(struct labels *labels, const struct record *record);

#endif
