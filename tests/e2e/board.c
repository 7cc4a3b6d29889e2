/*
 * tests/e2e/board.c: reads a trace's board: `board TRACE` prints what each thread was in, `board TRACE
 * count [NAME]` the calls of counted functions (NAME, or all) that are on the board and in no stream.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cudaspy/trace_format.h"

static const char *const names[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) #name,
#include "cudaspy/entrypoints.def"
};

static const char *name_of(uint16_t fn)
{
	return fn < SPY_FN_COUNT ? names[fn] : "?";
}

int main(int argc, char **argv)
{
	static union {
		struct spy_board board;
		char bytes[SPY_BOARD_PAGE];
	} first;
	struct spy_slot_page page;
	unsigned long long sum = 0, calls = 0, lost = 0;
	char path[4096];
	FILE *file;

	if (argc < 2)
		return 2;
	snprintf(path, sizeof(path), "%s/.board", argv[1]);
	file = fopen(path, "r");
	if (!file || fread(&first, sizeof(first), 1, file) != 1 ||
	    first.board.magic != SPY_BOARD_MAGIC) {
		fprintf(stderr, "board: no board in %s\n", argv[1]);
		return 1;
	}
	while (fread(&page, sizeof(page), 1, file) == 1) {
		calls += page.calls;
		lost += page.lost;
		if (argc == 2 && page.depth)
			printf("depth %d: %s in %s\n", page.depth, name_of(page.fn),
			       name_of(page.outer_fn));
		for (size_t i = 0; i < SPY_BOARD_COUNTERS; i++)
			if (argc < 4 || strcmp(name_of(first.board.counter_fn[i]), argv[3]) == 0)
				sum += page.counts[i];
	}
	if (argc == 2)
		printf("calls %llu lost %llu ended %u\n", calls,
		       lost + (unsigned long long)first.board.lost, first.board.ended);
	else
		printf("%llu\n", sum);
	return 0;
}
