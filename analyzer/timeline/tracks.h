/*
 * analyzer/timeline/tracks.h: the tracks of a timeline: processes with their threads, GPUs with their streams, ranks. Made when
 * something is to be shown in them. For events.c and the files beside it.
 */
#ifndef CUDASPY_TRACKS_H
#define CUDASPY_TRACKS_H

#include "sink.h"
#include "base/hash.h"
#include "base/report.h"
#include "findings/analyzed.h"
#include "symbols/symbolize.h"
#include "model/gpu_ops.h"

/* What a timeline is made of. All of it must live as long. */
struct timeline_source {
	/* A reading that is over: names of locks, ranks, places. */
	const struct analysis *known;
	/* The reading that is shown, what the listener's pointers belong to. Empty before it begins. */
	const struct analysis *shown;
	struct symbolizer *symbols;
	const struct report *report; /* of the first one; finished */
};

struct stream_track {
	/* Without padding: it is hashed byte by byte. */
	struct stream_track_key {
		uint32_t gpu, process, context, stream;
	} key;
	struct track *track;
	UT_hash_handle hh;
};

/* What a thread has. */
struct thread_tracks {
	struct track *calls;
	struct track *ranges; /* NULL: none yet */
	uint32_t name; /* number of its name, + 1; 0: not asked for yet */
};

struct gpu_tracks {
	struct track *group, *idle, *exact;
};

struct tracks {
	struct timeline_source source;
	const struct sink *sink;
	struct track **all;
	size_t n;
	struct track **processes; /* by trace */
	bool *pid_is_taken; /* by trace: an earlier one has the number */
	uint32_t *tids; /* of threads that have a track, an open table */
	size_t n_tids, tids_room;
	struct thread_tracks *threads; /* by thread index */
	size_t n_threads;
	struct gpu_tracks *gpus; /* by index in idle.gpus */
	size_t n_gpus;
	struct track *ranks_group, **ranks; /* by index */
	size_t n_ranks;
	struct track *findings; /* NULL: none yet */
	struct stream_track *streams;
	uint32_t next_id; /* a number that no process and no thread has */
};

void tracks_init(struct tracks *t, const struct timeline_source *source, const struct sink *sink);
void tracks_release(struct tracks *t);

/* "L1 (libcuda.so.1+0x1234)". */
const char *tracks_lock_name(const struct tracks *t, struct arena *texts, const struct lock *lock);

struct track *tracks_process(struct tracks *t, const struct process *process);
struct thread_tracks *tracks_thread(struct tracks *t, const struct thread *thread);
struct track *tracks_ranges(struct tracks *t, const struct thread *thread);
struct track *tracks_idle(struct tracks *t, uint32_t gpu, bool exact);
struct track *tracks_stream(struct tracks *t, uint32_t gpu, const struct gpu_event *op);
struct track *tracks_rank(struct tracks *t, uint32_t rank);
struct track *tracks_findings(struct tracks *t);

/* A counter of the group. */
struct track *tracks_counter(struct tracks *t, struct track *group, const char *name);

/* Puts the slice into a row of its track: `depth` below it or lower, where nothing ends after it begins. Rows are not
 * without end: what overlaps too much is cut. Returns when the row's last slice before it ended. */
uint64_t tracks_row(struct tracks *t, struct slice *slice, uint32_t depth);

#endif
