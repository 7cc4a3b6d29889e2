/*
 * include/cudaspy/gpu_windows.h: the value of CUDASPY_GPU: "1", or "1s/10s": one second of ten. For the recorder, and
 * for `cudaspy run`, which refuses what is neither.
 */
#ifndef CUDASPY_GPU_WINDOWS_H
#define CUDASPY_GPU_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* When GPU times are recorded: all the time, or `on_ns` of each `every_ns`. */
struct spy_gpu_windows {
	uint64_t on_ns, every_ns; /* 0: all the time */
	bool follow; /* while calls are recorded: windows of the recording (windows.h) */
};

/* "250ms", "0.5s", "2m"; a millisecond at least. Not strtod: the program's locale may write numbers another way. */
static inline bool spy_gpu_parse_time(const char **text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ms", 1e6}, {"s", 1e9}, {"m", 60e9}};
	const char *end = *text;
	double value = 0, place = 1;

	for (; *end >= '0' && *end <= '9'; end++)
		value = value * 10 + (*end - '0');
	if (end == *text)
		return false;
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++)
			value += (*end - '0') * (place /= 10);
	if (value > 1e6)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t length = strlen(units[i].name);

		if (strncmp(end, units[i].name, length) != 0)
			continue;
		*text = end + length;
		*ns = (uint64_t)(value * units[i].ns);
		return *ns >= 1000000;
	}
	return false;
}

/* False: it is neither; then all the time. */
static inline bool spy_gpu_parse_windows(const char *text, struct spy_gpu_windows *windows)
{
	*windows = (struct spy_gpu_windows){0};
	if (strcmp(text, "1") == 0)
		return true;
	if (spy_gpu_parse_time(&text, &windows->on_ns) && *text++ == '/' &&
	    spy_gpu_parse_time(&text, &windows->every_ns) && !*text &&
	    windows->on_ns < windows->every_ns)
		return true;
	*windows = (struct spy_gpu_windows){0};
	return false;
}

#endif
