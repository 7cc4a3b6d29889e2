/*
 * shim/entry/selection.c: what the options ask of the slots, and what is wrong with them. Runs when the library is loaded, and
 * when a recording begins.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include "entry/selection.h"
#include "sample/sampler.h"
#include "hook/slots.h"
#include "process/folder.h"
#include "process/options.h"
#include "record/message.h"
#include "record/notes.h"
#include "window/plan.h"

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

/* What is wrong with the options, if anything is: one sentence into text. */
static bool find_fault(char *text, size_t size)
{
	unsigned long long number;
	const char *name;

	if (spy_options.keep && !spy_options_mib(spy_options.keep))
		snprintf(text, size,
			 "CUDASPY_KEEP=%s is no number of MiB: the trace is not bounded",
			 spy_options.keep);
	else if (spy_options.floor &&
		 !spy_options_number(spy_options.floor, SPY_KEEP_MIB_END, &number))
		snprintf(text, size, "CUDASPY_FLOOR=%s is no number of MiB: 5 %% stay free",
			 spy_options.floor);
	else if (spy_options.rotate_size && !spy_options_mib(spy_options.rotate_size))
		snprintf(text, size,
			 "CUDASPY_ROTATE_SIZE=%s is no number of MiB: parts are not bounded",
			 spy_options.rotate_size);
	else if (spy_options.rotate_every && !spy_options_time(spy_options.rotate_every))
		snprintf(text, size,
			 "CUDASPY_ROTATE_EVERY=%s is no time like 500ms, 30s or 10m: parts do not "
			 "end by time",
			 spy_options.rotate_every);
	else if (spy_options.keep_for && !spy_options_time(spy_options.keep_for))
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
	else if (spy_options.sample &&
		 !spy_options_number(spy_options.sample, SPY_SAMPLE_HZ_MOST + 1, &number))
		snprintf(text, size,
			 "CUDASPY_SAMPLE=%s is no number from 0 to %d: threads are looked at %d "
			 "times a second",
			 spy_options.sample, SPY_SAMPLE_HZ_MOST, SPY_SAMPLE_HZ);
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

void spy_options_warn(void)
{
	char warning[256];

	if (find_fault(warning, sizeof(warning))) {
		spy_message("%s", warning);
		spy_note(SPY_NOTE_OTHER, "%s", warning);
	}
	if (spy_folder_group_error())
		spy_message("CUDASPY_GROUP=%s: %s; only its owner may read the trace",
			    spy_options.group, strerrordesc_np(spy_folder_group_error()));
}
