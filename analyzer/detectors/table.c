/*
 * analyzer/detectors/table.c: the table of detectors. Findings see it as detectors_row
 * (findings/detector.h).
 */
#include "table.h"

/* clang-format off */
const struct detector *const detector_table[] = {
	&detector_capture_break,
	&detector_ignored_error, /* no failed call reaches those below */
	&detector_pageable_copy,
	&detector_hidden_sync,
	&detector_lazy_loading,
	&detector_queue_full,
	&detector_steady_state,
	&detector_redundant_sync,
	&detector_serial_gpus, /* also where they do so after every launch */
	&detector_sync_every_launch,
	&detector_read_back,
	&detector_small_copies,
	/* lets calls go when it sees what follows: so it is the last of these */
	&detector_early_sync,
	&detector_cross_device_stall,
	&detector_same_device_stall,
	&detector_lock_starvation,
	&detector_time_slicing,
	&detector_mps_users,
	&detector_mps_share,
	&detector_oversubscribed_host,
	&detector_legacy_stream,
	&detector_shared_stream,
	&detector_staged_peer_copy,
	&detector_launch_blocking,
	&detector_collective_order,
	&detector_straggler_rank,
	&detector_slow_gpu,
	&detector_uneven_work,
	&detector_exposed_collective,
	&detector_small_collectives,
	&detector_starved_by_loader,
	&detector_gil_contention,
	&detector_held_lock,
	&detector_launch_bound,
	/* of what is left of the idle time: */
	&detector_starved_by_host,
	&detector_starved_by_calls,
	&detector_stalled_on_device,
};
/* clang-format on */

const size_t detector_rows = ARRAY_SIZE(detector_table);
