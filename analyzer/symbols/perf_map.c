/*
 * analyzer/symbols/perf_map.c: whose the code is that a process made while it ran. Lines "START
 * SIZE NAME", numbers in hexadecimal; what is written later about an address is true.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "perf_map.h"
#include "base/median.h"

/* Numbers of processes come again: a map that was not touched for so long before is another
 * one's. */
#define OLDEST_NS (24 * 3600 * 1000000000ull)

struct range {
	uint64_t begin, end;
	uint64_t order; /* in the file */
	const char *name, *file;
};

struct perf_map {
	uint32_t pid;
	struct range *ranges; /* by begin */
	size_t n_ranges;
	struct arena arena;
};

/* py::name:/path/file.py */
static void take_apart(struct range *range, char *name)
{
	char *colon = strncmp(name, "py::", 4) ? NULL : strrchr(name, ':');

	if (colon && colon > name + 4) {
		*colon = '\0';
		range->file = colon + 1;
	}
	range->name = name;
}

static void read_line(struct perf_map *map, char *line)
{
	struct range range = {.order = map->n_ranges};
	uint64_t size;
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &range.begin, &size, &at) < 2 || !at ||
	    !line[at])
		return;
	range.end = range.begin + size;
	take_apart(&range, arena_take(&map->arena, xstrdup(line + at)));
	map->ranges = grow(map->ranges, map->n_ranges, sizeof(*map->ranges));
	map->ranges[map->n_ranges++] = range;
}

static int by_begin(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return COMPARE(x->begin, y->begin) ?: COMPARE(x->order, y->order);
}

static void read_map(struct perf_map *map, uint64_t ns)
{
	char path[64], *line = NULL;
	struct stat st;
	size_t size = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", map->pid);
	in = open_regular(path);
	if (!in)
		return;
	if (!fstat(fileno(in), &st) && (uint64_t)st.st_mtim.tv_sec * 1000000000 + OLDEST_NS >= ns)
		while (getline(&line, &size, in) > 0)
			read_line(map, line);
	free(line);
	fclose(in);
	if (map->n_ranges)
		qsort(map->ranges, map->n_ranges, sizeof(*map->ranges), by_begin);
}

static struct perf_map *map_of(struct perf_maps *maps, uint32_t pid, uint64_t ns)
{
	struct perf_map *map;

	for (size_t i = 0; i < maps->n_maps; i++)
		if (maps->maps[i]->pid == pid)
			return maps->maps[i];
	map = xcalloc(1, sizeof(*map));
	map->pid = pid;
	read_map(map, ns);
	maps->maps = grow(maps->maps, maps->n_maps, sizeof(*maps->maps));
	maps->maps[maps->n_maps++] = map;
	return map;
}

const char *perf_map_find(struct perf_maps *maps, uint32_t pid, uint64_t ns, uint64_t address,
			  const char **file)
{
	const struct perf_map *map = map_of(maps, pid, ns);
	size_t low = 0, high = map->n_ranges;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->ranges[middle].begin < address)
			low = middle + 1;
		else
			high = middle;
	}
	/* A return address may be the first one behind its function. */
	if (!low || address > map->ranges[low - 1].end)
		return NULL;
	*file = map->ranges[low - 1].file;
	return map->ranges[low - 1].name;
}

void perf_maps_release(struct perf_maps *maps)
{
	for (size_t i = 0; i < maps->n_maps; i++) {
		free(maps->maps[i]->ranges);
		arena_release(&maps->maps[i]->arena);
		free(maps->maps[i]);
	}
	free(maps->maps);
	*maps = (struct perf_maps){0};
}
