/*
 * analyzer/findings/detectors.c: the table of detectors. Called by sites.c and finding.c, and by `cudaspy explain`.
 */
#include <string.h>
#include "detector.h"

/* clang-format off */
static const struct detector *const table[] = {
	&detector_capture_break,
	&detector_ignored_error, /* no failed call reaches those below */
	&detector_pageable_copy,
	&detector_hidden_sync,
	&detector_lazy_loading,
	&detector_queue_full,
	&detector_steady_state,
	&detector_redundant_sync,
	&detector_gpus_in_turn, /* also where they do so after every launch */
	&detector_sync_every_launch,
	&detector_read_back,
	&detector_small_copies,
	&detector_early_sync, /* lets calls go when it sees what follows: so it is the last of these */
	&detector_cross_device_stall,
	&detector_same_device_stall,
	&detector_lock_starvation,
	&detector_time_slicing,
	&detector_mps_users,
	&detector_mps_share,
	&detector_oversubscribed_host,
	&detector_legacy_stream,
	&detector_staged_peer_copy,
	&detector_launch_blocking,
};
/* clang-format on */

const struct detector *detectors_row(size_t i)
{
	return i < ARRAY_SIZE(table) ? table[i] : NULL;
}

const struct detector *detectors_find(const char *id)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (!strcmp(table[i]->id, id))
			return table[i];
	return NULL;
}

struct finding *detector_add(const struct detector *detector, struct finding **findings, size_t *n)
{
	struct finding *finding;

	*findings = grow(*findings, *n, sizeof(**findings));
	finding = &(*findings)[(*n)++];
	*finding = (struct finding){.detector = detector, .processes = 1, .fix = detector->fix};
	return finding;
}
