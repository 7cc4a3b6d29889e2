/*
 * analyzer/symbols/perf_map.h: whose the code is that a process made while it ran:
 * /tmp/perf-PID.map, which interpreters and compilers at run time write for Linux's perf
 * (tools/perf/Documentation/ jit-interface.txt of the kernel). Called by symbolize.c.
 */
#ifndef CUDASPY_PERF_MAP_H
#define CUDASPY_PERF_MAP_H

#include "base/util.h"

struct perf_map;

/* Start with zeros. */
struct perf_maps {
	struct perf_map **maps;
	size_t n_maps;
};

/*
 * The name for an address in a process that had this number at that time; NULL unknown. Python's
 * "py::name:/path/file.py" is taken apart: the name and, in *file, the file. Both belong to the
 * maps.
 */
const char *perf_map_find(struct perf_maps *maps, uint32_t pid, uint64_t ns, uint64_t address,
			  const char **file);
void perf_maps_release(struct perf_maps *maps);

#endif
