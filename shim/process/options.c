/*
 * shim/process/options.c: what the environment asked for. Read once, when the library is loaded.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "process/options.h"
#include "cudaspy/windows.h"
#include "hook/slots.h"
#include "window/plan.h"

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
	switch_off(&spy_options.nogetters);
	switch_off(&spy_options.nonvtx);
	switch_off(&spy_options.nonccl);
	switch_off(&spy_options.nofunctions);
	switch_off(&spy_options.redact);
	switch_off(&spy_options.disable);
}

/* A whole number below `end` in text? */
static bool is_number(const char *text, unsigned long long end, unsigned long long *number)
{
	char *rest;

	if (!text || *text < '0' || *text > '9')
		return false;
	*number = strtoull(text, &rest, 10);
	return !*rest && *number < end;
}

/* 0 if it is none. */
static unsigned long long mib_of(const char *text)
{
	unsigned long long mib;

	return is_number(text, SPY_KEEP_MIB_END, &mib) ? mib : 0;
}

uint64_t spy_options_keep_bytes(void)
{
	return mib_of(spy_options.keep) << 20;
}

/* 0 if it is none. */
static uint64_t time_of(const char *text)
{
	uint64_t ns;

	return text && spy_parse_time(text, &ns) ? ns : 0;
}

#define PARTS_IN_BOUND 8 /* of what is kept, a part has such a share … */
#define PART_MOST 2 /* … or what is asked for, this share at most */

bool spy_options_parts(struct spy_part_options *parts)
{
	uint64_t keep = spy_options_keep_bytes();

	*parts = (struct spy_part_options){.bytes = mib_of(spy_options.rotate_size) << 20,
					   .ns = time_of(spy_options.rotate_every),
					   .keep_ns = time_of(spy_options.keep_for)};
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

	if (is_number(spy_options.floor, SPY_KEEP_MIB_END, &mib))
		return mib << 20;
	return file_system / 20 < FLOOR_MOST ? file_system / 20 : FLOOR_MOST;
}

gid_t spy_options_group(void)
{
	unsigned long long group;

	return is_number(spy_options.group, SPY_NO_GROUP, &group) ? (gid_t)group : SPY_NO_GROUP;
}

/* Does a list name something that is not there? */
static const char *unknown_name(const char *list)
{
	static char pattern[128];

	for (; list && *list; list += strcspn(list, ",") + (list[strcspn(list, ",")] == ',')) {
		size_t length = strcspn(list, ",");
		bool found = !length;

		snprintf(pattern, sizeof(pattern), "%.*s", (int)length, list);
		for (int fn = 0; fn < SPY_FN_COUNT && !found; fn++)
			found = fnmatch(pattern, spy_names[fn], 0) == 0;
		if (!found)
			return pattern;
	}
	return NULL;
}

bool spy_options_warning(char *text, size_t size)
{
	unsigned long long number;
	const char *name;

	if (spy_options.keep && !mib_of(spy_options.keep))
		snprintf(text, size,
			 "CUDASPY_KEEP=%s is no number of MiB: the trace is not bounded",
			 spy_options.keep);
	else if (spy_options.floor && !is_number(spy_options.floor, SPY_KEEP_MIB_END, &number))
		snprintf(text, size, "CUDASPY_FLOOR=%s is no number of MiB: 5 %% stay free",
			 spy_options.floor);
	else if (spy_options.rotate_size && !mib_of(spy_options.rotate_size))
		snprintf(text, size,
			 "CUDASPY_ROTATE_SIZE=%s is no number of MiB: parts are not bounded",
			 spy_options.rotate_size);
	else if (spy_options.rotate_every && !time_of(spy_options.rotate_every))
		snprintf(text, size,
			 "CUDASPY_ROTATE_EVERY=%s is no time like 500ms, 30s or 10m: parts do not "
			 "end by time",
			 spy_options.rotate_every);
	else if (spy_options.keep_for && !time_of(spy_options.keep_for))
		snprintf(text, size,
			 "CUDASPY_KEEP_FOR=%s is no time like 30s, 10m or 2h: no part is deleted "
			 "for its age",
			 spy_options.keep_for);
	else if (spy_options.group && spy_options_group() == SPY_NO_GROUP)
		snprintf(text, size, "CUDASPY_GROUP=%s is no group's number: none may read",
			 spy_options.group);
	else if (spy_options.clock && strcmp(spy_options.clock, "monotonic") != 0)
		snprintf(text, size, "CUDASPY_CLOCK=%s: the only clock to choose is 'monotonic'",
			 spy_options.clock);
	else if (spy_plan_warning(text, size))
		return true;
	else if ((name = unknown_name(spy_options.trace)))
		snprintf(text, size, "CUDASPY_TRACE: there is no function '%s'", name);
	else if ((name = unknown_name(spy_options.count)))
		snprintf(text, size, "CUDASPY_COUNT: there is no function '%s'", name);
	else
		return false;
	return true;
}

/* Is a name in a comma-separated list of patterns? */
static bool listed(const char *name, const char *list)
{
	char pattern[128];

	while (list && *list) {
		size_t length = strcspn(list, ",");

		if (length && length < sizeof(pattern)) {
			memcpy(pattern, list, length);
			pattern[length] = '\0';
			if (fnmatch(pattern, name, 0) == 0)
				return true;
		}
		list += length + (list[length] == ',');
	}
	return false;
}

void spy_options_select(void)
{
	if (!spy_options.trace && !spy_options.count)
		return;
	for (uint16_t fn = 0; fn < SPY_FN_COUNT; fn++) {
		if (listed(spy_names[fn], spy_options.count))
			spy_slots_count(fn);
		if (listed(spy_names[fn], spy_options.trace))
			spy_slots_trace(fn);
	}
}
