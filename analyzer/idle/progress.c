/*
 * analyzer/idle/progress.c: how much of a sum lies in the first part of a process's work. Called where idle time is charged, for each
 * call on the slow path, and by detectors when all records have been read.
 */
#include <stddef.h>
#include "progress.h"
#include "base/util.h"

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

void progress_add(struct progress *progress, uint64_t at, uint64_t ns)
{
	if (!progress->each)
		progress->each = 1;
	while (at >> __builtin_ctzll(progress->each) >= PROGRESS_PARTS)
		widen(progress);
	progress->ns[at >> __builtin_ctzll(progress->each)] += ns;
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

double progress_before(const struct progress *progress, uint64_t at)
{
	uint64_t all = sum_of(progress), before = 0;

	for (size_t i = 0; i < PROGRESS_PARTS && (i + 1) * progress->each <= at; i++)
		before += progress->ns[i];
	return all ? (double)before / (double)all : 0;
}

uint64_t progress_end(const struct progress *progress)
{
	size_t i = PROGRESS_PARTS;

	while (i && !progress->ns[i - 1])
		i--;
	return i * progress->each;
}

/* ---- when ------------------------------------------------------------------------------------- */

static void keep_every_other(struct progress_clock *clock)
{
	for (size_t i = 0; i < PROGRESS_MARKS; i++)
		clock->ns[i] =
			i < PROGRESS_MARKS / 2 ? clock->ns[2 * i] ?: clock->ns[2 * i + 1] : 0;
	clock->each *= 2;
}

void progress_clock_see(struct progress_clock *clock, uint64_t count, uint64_t ns)
{
	uint64_t *mark;

	if (!clock->each)
		clock->each = 1;
	while (count >> __builtin_ctzll(clock->each) >= PROGRESS_MARKS)
		keep_every_other(clock);
	mark = &clock->ns[count >> __builtin_ctzll(clock->each)];
	if (!*mark)
		*mark = ns;
}

uint64_t progress_clock_at(const struct progress_clock *clock, uint64_t count)
{
	size_t i = clock->each ? min_u64(count / clock->each, PROGRESS_MARKS - 1) : 0;

	while (i && !clock->ns[i])
		i--;
	return clock->ns[i];
}
