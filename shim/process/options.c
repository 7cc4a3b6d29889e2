/*
 * shim/process/options.c: what the environment asked for. Read once, when the library is loaded.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "process/options.h"
#include "cudaspy/trace_format.h"
#include "cudaspy/windows.h"

struct spy_options spy_options;

/* ld.so's: where the process found its arguments' number, its arguments, and its environment. */
extern void *__libc_stack_end;

/* The C library does not know it yet where a program calls us from its .preinit_array. */
static char **environment(void)
{
	long *start = __libc_stack_end;

	return environ ? environ : (char **)(start + *start + 2);
}

static const char *text_of(const char *variable)
{
	size_t length = strlen(variable);

	for (char **each = environment(); *each; each++)
		if (strncmp(*each, variable, length) == 0 && (*each)[length] == '=')
			return (*each)[length + 1] ? *each + length + 1 : NULL;
	return NULL;
}

static void switch_off(const char **option)
{
	if (*option && strcmp(*option, "0") == 0)
		*option = NULL;
}

void spy_options_read(void)
{
#define OPTION(name, flag, variable, argument, text) spy_options.name = text_of(variable);
#include "cudaspy/options.def"
	/* "0" switches a switch off */
	switch_off(&spy_options.quiet);
	switch_off(&spy_options.noprobes);
	switch_off(&spy_options.all_locks);
	switch_off(&spy_options.gpu);
	switch_off(&spy_options.nostacks);
	switch_off(&spy_options.nonvml);
	switch_off(&spy_options.nogetters);
	switch_off(&spy_options.nonvtx);
	switch_off(&spy_options.nonccl);
	switch_off(&spy_options.nofunctions);
	switch_off(&spy_options.redact);
	switch_off(&spy_options.disable);
}

bool spy_options_number(const char *text, unsigned long long end, unsigned long long *number)
{
	char *rest;

	if (!text || *text < '0' || *text > '9')
		return false;
	*number = strtoull(text, &rest, 10);
	return !*rest && *number < end;
}

unsigned long long spy_options_mib(const char *text)
{
	unsigned long long mib;

	return spy_options_number(text, SPY_KEEP_MIB_END, &mib) ? mib : 0;
}

uint64_t spy_options_keep_bytes(void)
{
	return spy_options_mib(spy_options.keep) << 20;
}

uint64_t spy_options_time(const char *text)
{
	uint64_t ns;

	return text && spy_parse_time(text, &ns) ? ns : 0;
}

#define PARTS_IN_BOUND 8 /* of what is kept, a part has such a share … */
#define PART_MOST 2 /* … or what is asked for, this share at most */

bool spy_options_parts(struct spy_part_options *parts)
{
	uint64_t keep = spy_options_keep_bytes();

	*parts = (struct spy_part_options){.bytes = spy_options_mib(spy_options.rotate_size) << 20,
					   .ns = spy_options_time(spy_options.rotate_every),
					   .keep_ns = spy_options_time(spy_options.keep_for)};
	if (!parts->bytes && !parts->ns && !parts->keep_ns)
		return false;
	if (keep && !parts->bytes)
		parts->bytes = keep / PARTS_IN_BOUND;
	if (keep && parts->bytes > keep / PART_MOST)
		parts->bytes = keep / PART_MOST;
	if (parts->keep_ns && !parts->ns)
		parts->ns = parts->keep_ns / PARTS_IN_BOUND;
	return true;
}

bool spy_options_keeps_packets(void)
{
	struct spy_part_options parts;

	return spy_options_keep_bytes() && !spy_options_parts(&parts);
}

#define FLOOR_MOST ((uint64_t)1 << 30)

uint64_t spy_options_floor_bytes(uint64_t file_system)
{
	unsigned long long mib;

	if (spy_options_number(spy_options.floor, SPY_KEEP_MIB_END, &mib))
		return mib << 20;
	return file_system / 20 < FLOOR_MOST ? file_system / 20 : FLOOR_MOST;
}

gid_t spy_options_group(void)
{
	unsigned long long group;

	return spy_options_number(spy_options.group, SPY_NO_GROUP, &group) ? (gid_t)group
									   : SPY_NO_GROUP;
}
