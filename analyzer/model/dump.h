/*
 * analyzer/model/dump.h: records as lines of text.
 */
#ifndef CUDASPY_DUMP_H
#define CUDASPY_DUMP_H

#include <stdio.h>
#include "model.h"

#define DUMP_FIELDS "time,thread,depth,function,duration,result,details"
#define DUMP_FIELDS_MAX 16

struct dump_field;

struct dump {
	FILE *out;
	char separator; /* of columns */
	bool stable; /* nothing that differs from run to run */
	const struct dump_field *fields[DUMP_FIELDS_MAX];
	size_t n_fields;
	uint64_t origin_ns; /* time 0 of the lines */
	struct model *model;
	/* Is the record not to be shown? Sees all of them, behind the model; NULL: all are shown. */
	bool (*skip)(void *data, struct model *model, const struct record *record);
	void *skip_data;
};

/* fields: a list as DUMP_FIELDS, NULL for all. Columns are parted by blanks. -EINVAL after a message if the list has
 * an unknown name, or if no column is left. */
int dump_init(struct dump *dump, FILE *out, const char *fields, bool no_times, bool stable);

/* One line with the columns' names. */
void dump_header(struct dump *dump);

/* All records of the set. 0, or -EIO if they could not be written. */
int dump_all(struct dump *dump, struct trace_set *set);

#endif
