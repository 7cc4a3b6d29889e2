/*
 * analyzer/model/range_names.h: names of NVTX's ranges and marks: the same name is the same one in
 * all processes. The model adds what records tell; the accounting sums up by them.
 *
 * Programs name ranges one by one: "step 17". Names that differ in their numbers only are a family,
 * and have one name in reports, with # for the numbers, as soon as there are many of them. Few stay
 * apart: "stage 1" and "stage 2".
 */
#ifndef CUDASPY_RANGE_NAMES_H
#define CUDASPY_RANGE_NAMES_H

#include <stdbool.h>
#include "base/util.h"
#include "base/hash.h"
#include "trace/position.h"

#define RANGE_FAMILY_MOST 8 /* names of a family that are shown one by one */
#define RANGE_NAMES_MOST (1u << 16) /* are told apart */

struct range_name {
	uint32_t index; /* among all names */
	struct reading_position created; /* when it came up */
	struct range_name *family; /* NULL: there are no numbers in the name */
	uint32_t members; /* of a family: names so far */
	bool many; /* of a family: the recorder has given up to tell its names apart */
	bool library; /* announced by a library about itself: no place in the program */
	struct range_name
		*into; /* of a part of a set: the whole's name of that key, once there is one */
	const char *domain, *name; /* in key */
	UT_hash_handle hh;
	char key[]; /* domain NUL name NUL, and a byte: is it a family's? */
};

struct range_names {
	struct range_name *by_key;
	struct range_name **all;
	size_t n;
	struct range_name *unknown; /* of ranges whose names were not told, or are too many */
};

void range_names_init(struct range_names *names);
void range_names_release(struct range_names *names);

/* The name, made if it is new. folded: it stands for a family already. */
struct range_name *range_names_get(struct range_names *names, const char *domain, const char *name,
				   bool folded);

/* When parts of a set have been read: the name of that key in the whole, made of this one if there is none yet. */
struct range_name *range_names_adopt(struct range_names *names, struct range_names *from,
				     struct range_name *name);

/* Names that are not known: those of the whole. */
void range_names_adopt_unknown(struct range_names *names, struct range_names *from);

/* Of its key. */
static inline size_t range_name_key_bytes(const struct range_name *name)
{
	return (size_t)(name->name - name->key) + strlen(name->name) + 2;
}

/* What a name is shown as: itself, or its family. */
static inline struct range_name *range_shown(struct range_name *name)
{
	struct range_name *family = name->family;

	return family && (family->many || family->members > RANGE_FAMILY_MOST) ? family : name;
}

/* Is it meant by a pattern of the command line, for the name, its family or DOMAIN:NAME? */
bool range_matches(const struct range_name *name, const char *pattern);

#endif
