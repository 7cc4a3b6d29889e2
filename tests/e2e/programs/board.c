/*
 * tests/e2e/programs/board.c: reads a trace's board.
 *
 *   board TRACE                    what each thread was in, and sums
 *   board TRACE count [NAME]       the calls of counted functions (NAME, a pattern, or all) that are on the board and
 *                                  in no stream
 *   board TRACE nvtx               ranges of threads without calls, lost ones
 *   board sums NAME TRACE...       for each trace: pid, such calls, lost calls
 */
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "cudaspy/function_numbers.h"
#include "cudaspy/trace_format.h"

static const char *const names[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) #name,
#include "cudaspy/entrypoints.def"
};

static const char *name_of(uint16_t fn)
{
	return fn < SPY_FN_COUNT ? names[fn] : "?";
}

struct sums {
	unsigned long long calls, lost, counted, ranges_elsewhere, ranges_lost;
	unsigned int pid, ended;
};

/* False: there is none, which it says. */
static bool read_board(const char *trace, const char *pattern, bool show, struct sums *sums)
{
	static union {
		struct spy_board board;
		char bytes[SPY_BOARD_PAGE];
	} first;
	struct spy_slot_page page;
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/.board", trace);
	file = fopen(path, "r");
	if (!file || fread(&first, sizeof(first), 1, file) != 1 ||
	    first.board.magic != SPY_BOARD_MAGIC) {
		fprintf(stderr, "board: no board in %s\n", trace);
		if (file)
			fclose(file);
		return false;
	}
	*sums = (struct sums){.lost = first.board.lost,
			      .pid = first.board.pid,
			      .ended = first.board.ended,
			      .ranges_elsewhere = first.board.ranges_elsewhere,
			      .ranges_lost = first.board.ranges_lost};
	while (fread(&page, sizeof(page), 1, file) == 1) {
		sums->calls += page.calls;
		sums->lost += page.lost;
		if (show && page.depth)
			printf("depth %d: %s in %s\n", page.depth, name_of(page.fn),
			       name_of(page.outer_fn));
		for (size_t i = 0; i < SPY_BOARD_COUNTERS && !page.asleep; i++)
			if (fnmatch(pattern, name_of(first.board.counter_fn[i]), 0) == 0)
				sums->counted += page.counts[i];
	}
	fclose(file);
	return true;
}

int main(int argc, char **argv)
{
	struct sums sums;
	int failed = 0;

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "sums") == 0) {
		for (int i = 3; i < argc; i++) {
			if (read_board(argv[i], argv[2], false, &sums))
				printf("%u %llu %llu\n", sums.pid, sums.counted, sums.lost);
			else
				failed = 1;
		}
		return failed;
	}
	if (!read_board(argv[1], argc > 3 ? argv[3] : "*", argc == 2, &sums))
		return 1;
	if (argc == 2)
		printf("calls %llu lost %llu ended %u\n", sums.calls, sums.lost, sums.ended);
	else if (strcmp(argv[2], "nvtx") == 0)
		printf("%llu %llu\n", sums.ranges_elsewhere, sums.ranges_lost);
	else
		printf("%llu\n", sums.counted);
	return 0;
}
