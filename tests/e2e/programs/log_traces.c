/*
 * tests/e2e/programs/log_traces.c LOG DIR: makes the traces of a readable log (tests/unit/trace_text.h) in directories below DIR,
 * for tests that need known ones.
 */
#include <stdbool.h>
#include "../../unit/trace_text.h"

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	tt_make(argv[1], argv[2]);
	return 0;
}
