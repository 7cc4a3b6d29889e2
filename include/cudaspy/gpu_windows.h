/*
 * include/cudaspy/gpu_windows.h: the value of CUDASPY_GPU: "1", or "1s/10s": one second of ten. For the recorder, and
 * for `cudaspy run`, which refuses what is neither.
 */
#ifndef CUDASPY_GPU_WINDOWS_H
#define CUDASPY_GPU_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* When GPU times are recorded: all the time, or `on_ns` of each `every_ns`. */
struct spy_gpu_windows {
	uint64_t on_ns, every_ns; /* 0: all the time */
};

/* "250ms", "1s", "2m". */
static inline bool spy_gpu_parse_time(const char **text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ms", 1e6}, {"s", 1e9}, {"m", 60e9}};
	char *end;
	double value = strtod(*text, &end);

	if (end == *text || !(value > 0) || value > 1e6)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t length = strlen(units[i].name);

		if (strncmp(end, units[i].name, length) != 0)
			continue;
		*text = end + length;
		*ns = (uint64_t)(value * units[i].ns);
		return true;
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
