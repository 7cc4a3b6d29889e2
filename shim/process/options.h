/*
 * shim/process/options.h: what the environment asked for. One table (include/cudaspy/options.def),
 * which also is the help text of the command line.
 */
#ifndef CUDASPY_SHIM_OPTIONS_H
#define CUDASPY_SHIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Values are the environment's own strings, NULL where a variable is not set or empty. */
struct spy_options {
#define OPTION(name, flag, variable, argument, text) const char *name;
#include "cudaspy/options.def"
};

extern struct spy_options spy_options;

/* Reads the environment; when the library is loaded. */
void spy_options_read(void);

/* The size bound in bytes, 0 none. */
uint64_t spy_options_keep_bytes(void);

/* Is the recording to have parts (parts/parts.h)? What is asked for, 0: nothing. */
struct spy_part_options {
	uint64_t bytes, ns; /* a part has no more */
	uint64_t keep_ns; /* and is deleted so long after its end */
};
bool spy_options_parts(struct spy_part_options *parts);

/* Is the oldest packet deleted, where the size bound is reached? Else the oldest part is. */
bool spy_options_keeps_packets(void);

/* What is to stay free of a file system of so many bytes. */
uint64_t spy_options_floor_bytes(uint64_t file_system);

#define SPY_NO_GROUP ((gid_t)-1)

/* The group that may read the trace, or SPY_NO_GROUP. */
gid_t spy_options_group(void);

/* A whole number below `end` in text? So many MiB; a time in ns: 0 if it is none. */
bool spy_options_number(const char *text, unsigned long long end, unsigned long long *number);
unsigned long long spy_options_mib(const char *text);
uint64_t spy_options_time(const char *text);

#endif
