/*
 * include/cudaspy/windows.h: the values of the options that say when windows are open. For the recorder, and for
 * `cudaspy run` and `cudaspy start`, which refuse what is wrong.
 */
#ifndef CUDASPY_WINDOWS_H
#define CUDASPY_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SPY_TIME_MOST_NS ((uint64_t)10000000000000000) /* 115 days */

/* "250ms", "0.5s", "10m", "2h", "7d"; 115 days at most. Not strtod: the program's locale may write numbers another way. */
static inline bool spy_parse_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"us", 1e3}, {"ms", 1e6},   {"s", 1e9},
		     {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
	double value = 0, place = 1;
	const char *end = text;

	for (; *end >= '0' && *end <= '9'; end++)
		value = value * 10 + (*end - '0');
	if (end == text)
		return false;
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++)
			value += (*end - '0') * (place /= 10);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].name) == 0 &&
		    value * units[i].ns < (double)SPY_TIME_MOST_NS) {
			*ns = (uint64_t)(value * units[i].ns);
			return true;
		}
	return false;
}

/* "1%", "0.5", to 100; in millionths. */
static inline bool spy_parse_percent(const char *text, uint32_t *ppm)
{
	uint32_t places = 10000, value = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9' && value <= 100000000; at++)
		value = value * 10 + (uint32_t)(*at - '0') * places;
	if (at == text)
		return false;
	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9'; at++)
			value += (uint32_t)(*at - '0') * (places /= 10);
	*ppm = value;
	return value && value <= 1000000 && (!*at || strcmp(at, "%") == 0);
}

/* "10-20", "7". */
static inline bool spy_parse_steps(const char *text, uint64_t *first, uint64_t *last)
{
	uint64_t *const numbers[] = {first, last};

	*first = *last = 0;
	for (int i = 0; i < 2; i++) {
		if (*text < '0' || *text > '9')
			return false;
		for (; *text >= '0' && *text <= '9'; text++) {
			if (*numbers[i] > UINT64_MAX / 20)
				return false;
			*numbers[i] = *numbers[i] * 10 + (uint64_t)(*text - '0');
		}
		if (!i && !*text) {
			*last = *first;
			break;
		}
		if (!i && *text++ != '-')
			return false;
	}
	return !*text && *first && *first <= *last;
}

enum spy_capture { SPY_CAPTURE_ALL, SPY_CAPTURE_PROFILER, SPY_CAPTURE_RANGE, SPY_CAPTURE_COMMAND };

/* name: of nvtx:NAME, inside text. */
static inline bool spy_parse_capture(const char *text, enum spy_capture *capture, const char **name)
{
	*name = NULL;
	if (strcmp(text, "cudaProfilerApi") == 0)
		*capture = SPY_CAPTURE_PROFILER;
	else if (strcmp(text, "command") == 0)
		*capture = SPY_CAPTURE_COMMAND;
	else if (strncmp(text, "nvtx:", 5) == 0 && text[5]) {
		*capture = SPY_CAPTURE_RANGE;
		*name = text + 5;
	} else {
		return false;
	}
	return true;
}

#endif
