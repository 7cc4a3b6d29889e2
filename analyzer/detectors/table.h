/*
 * analyzer/detectors/table.h: the detectors, a row of the table (table.c) each.
 */
#ifndef CUDASPY_DETECTORS_TABLE_H
#define CUDASPY_DETECTORS_TABLE_H

#include "findings/detector.h"

/* Of calls. */
extern const struct detector detector_capture_break, detector_ignored_error, detector_pageable_copy,
	detector_hidden_sync, detector_lazy_loading, detector_queue_full, detector_small_copies,
	detector_read_back, detector_redundant_sync, detector_serial_gpus,
	detector_sync_every_launch, detector_steady_state, detector_early_sync;

/* Of the whole run. */
extern const struct detector detector_cross_device_stall, detector_same_device_stall,
	detector_lock_starvation, detector_time_slicing, detector_mps_users, detector_mps_share,
	detector_oversubscribed_host, detector_legacy_stream, detector_staged_peer_copy,
	detector_shared_stream, detector_launch_blocking, detector_starved_by_loader,
	detector_gil_contention, detector_held_lock, detector_launch_bound,
	detector_starved_by_host, detector_starved_by_calls, detector_stalled_on_device;

/* Of jobs of several ranks. */
extern const struct detector detector_straggler_rank, detector_slow_gpu, detector_uneven_work,
	detector_exposed_collective, detector_small_collectives, detector_collective_order;

#endif
