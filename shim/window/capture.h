/*
 * shim/window/capture.h: calls and ranges of the program's that open windows. Used on the application's threads, within
 * those calls.
 */
#ifndef CUDASPY_SHIM_WINDOW_CAPTURE_H
#define CUDASPY_SHIM_WINDOW_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

/* When the library is loaded, behind the plan; and in a forked child. */
void spy_capture_init(void);

/* cudaProfilerStart or cudaProfilerStop was called. */
void spy_window_profiler(bool start);

/* Do ranges open windows? Then each one is compared. */
extern bool spy_window_by_ranges;

/* Does a range of that name, a number of names.h, open a window? If so, it has begun; spy_window_range_ends has to
 * follow when it ends. */
bool spy_window_range_begins(uint32_t name);
void spy_window_range_ends(void);

/* The same for ranges that are known by a number, and that any thread may end. */
void spy_window_range_started(uint32_t name, uint64_t id);
void spy_window_range_ended(uint64_t id);

#endif
