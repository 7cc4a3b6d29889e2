/*
 * analyzer/account/crowd.c: how many threads made CUDA calls at a time, and when they got no CPU. Called by the
 * accounting for calls, and by the report.
 */
#include <stdlib.h>
#include "crowd.h"
#include "trace/model.h"

void crowd_release(struct crowd *crowd)
{
	free(crowd->slices);
	*crowd = (struct crowd){0};
}

static struct crowd_slice *slice_of(struct crowd *crowd, uint64_t slice)
{
	while (crowd->n <= slice) {
		crowd->slices = grow(crowd->slices, crowd->n, sizeof(*crowd->slices));
		crowd->slices[crowd->n++] = (struct crowd_slice){0};
	}
	return &crowd->slices[slice];
}

void crowd_add(struct crowd *crowd, uint64_t *last, uint64_t from, uint64_t to)
{
	uint64_t slice;

	for (slice = from > *last ? from : *last; slice <= to; slice++)
		slice_of(crowd, slice)->threads++;
	if (to >= *last)
		*last = to + 1;
}

void crowd_lack(struct crowd *crowd, uint64_t slice, uint64_t lacked_ns)
{
	slice_of(crowd, slice)->lacked_ns += lacked_ns;
}

uint64_t crowd_cpus(const struct model *model)
{
	uint64_t fewest = 0;
	size_t i;

	for (i = 0; i < model->n_processes; i++) {
		int64_t cpus = metadata_number(&model->processes[i].trace->metadata, "cpus", 0);

		if (cpus > 0 && (!fewest || (uint64_t)cpus < fewest))
			fewest = (uint64_t)cpus;
	}
	return fewest;
}

bool crowd_fits(const struct crowd *crowd, const struct model *model)
{
	uint64_t cpus = crowd_cpus(model), all_ns = 0, fits_ns = 0;
	size_t i;

	for (i = 0; i < crowd->n; i++) {
		all_ns += crowd->slices[i].lacked_ns;
		if (crowd->slices[i].threads <= cpus)
			fits_ns += crowd->slices[i].lacked_ns;
	}
	return fits_ns > all_ns / 2;
}
