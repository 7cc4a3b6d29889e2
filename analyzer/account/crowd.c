/*
 * analyzer/account/crowd.c: how many threads of a host made CUDA calls at a time, and when they got no CPU. Called by
 * the accounting for calls, and by the report.
 */
#include <stdlib.h>
#include "crowd.h"

void crowd_release(struct crowd *crowd)
{
	free(crowd->slices);
	*crowd = (struct crowd){0};
}

static struct crowd_slice *slice_of(struct crowd *crowd, uint64_t number)
{
	return &crowd->slices[number % CROWD_SLICES];
}

static void settle_slice(struct crowd *crowd, struct crowd_slice *slice)
{
	crowd->lacked_ns += slice->lacked_ns;
	if (slice->threads <= crowd->cpus)
		crowd->fitting_ns += slice->lacked_ns;
	*slice = (struct crowd_slice){0};
}

/* Opens all slices up to a number; those before `first` are settled. */
static void open_until(struct crowd *crowd, uint64_t number)
{
	uint64_t first = number >= CROWD_SLICES ? number - CROWD_SLICES + 1 : 0;

	if (number < crowd->end)
		return;
	if (!crowd->slices)
		crowd->slices = xcalloc(CROWD_SLICES, sizeof(*crowd->slices));
	for (; crowd->first < first && crowd->first < crowd->end; crowd->first++)
		settle_slice(crowd, slice_of(crowd, crowd->first));
	if (crowd->first < first)
		crowd->first = first;
	crowd->end = number + 1;
}

void crowd_add(struct crowd *crowd, uint64_t *last, uint64_t from, uint64_t to)
{
	uint64_t number;

	open_until(crowd, to);
	from = from > *last ? from : *last;
	for (number = from > crowd->first ? from : crowd->first; number <= to; number++)
		slice_of(crowd, number)->threads++;
	if (to >= *last)
		*last = to + 1;
}

void crowd_lack(struct crowd *crowd, uint64_t slice, uint64_t lacked_ns)
{
	open_until(crowd, slice);
	if (slice >= crowd->first)
		slice_of(crowd, slice)->lacked_ns += lacked_ns;
}

void crowd_settle(struct crowd *crowd)
{
	for (; crowd->first < crowd->end; crowd->first++)
		settle_slice(crowd, slice_of(crowd, crowd->first));
}

bool crowds_fit(const struct crowd *crowds, size_t n)
{
	uint64_t lacked_ns = 0, fitting_ns = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		lacked_ns += crowds[i].lacked_ns;
		fitting_ns += crowds[i].fitting_ns;
	}
	return fitting_ns > lacked_ns / 2;
}
