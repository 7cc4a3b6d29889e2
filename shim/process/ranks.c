/*
 * shim/process/ranks.c: which rank the process is, in the recorder. Runs when a session begins.
 */
#include "process/ranks.h"

void spy_rank_read(struct spy_rank *rank)
{
	spy_launcher_read(rank);
}
