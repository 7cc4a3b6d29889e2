/*
 * analyzer/idle/progress.c: how much of a sum lies in the first part of a process's work. Called where idle time is charged, and
 * by detectors when all records have been read.
 */
#include <stddef.h>
#include "progress.h"

/* Two parts are one from then on. */
static void widen(struct progress *progress)
{
	for (size_t i = 0; i < PROGRESS_PARTS; i++) {
		uint64_t ns =
			i < PROGRESS_PARTS / 2 ? progress->ns[2 * i] + progress->ns[2 * i + 1] : 0;

		progress->ns[i] = ns;
	}
	progress->each *= 2;
}

void progress_add(struct progress *progress, uint64_t submissions, uint64_t ns)
{
	if (!progress->each)
		progress->each = 1;
	while (submissions / progress->each >= PROGRESS_PARTS)
		widen(progress);
	progress->ns[submissions / progress->each] += ns;
}

static uint64_t sum_of(const struct progress *progress)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < PROGRESS_PARTS; i++)
		sum += progress->ns[i];
	return sum;
}

void progress_add_of(struct progress *progress, const struct progress *from, uint64_t ns)
{
	uint64_t all = sum_of(from);

	for (size_t i = 0; all && i < PROGRESS_PARTS; i++)
		progress_add(progress, i * from->each,
			     (uint64_t)((double)ns * (double)from->ns[i] / (double)all));
}

double progress_before(const struct progress *progress, uint64_t submissions)
{
	uint64_t all = sum_of(progress), before = 0;

	for (size_t i = 0; i < PROGRESS_PARTS && (i + 1) * progress->each <= submissions; i++)
		before += progress->ns[i];
	return all ? (double)before / (double)all : 0;
}
