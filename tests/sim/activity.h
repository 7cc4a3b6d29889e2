/*
 * tests/sim/activity.h: how the look-alike of CUPTI (cupti*.c) learns what the simulated driver did. The
 * driver exports spysim_activity(), which hands out the one struct sim_activity_source. Times are
 * CLOCK_MONOTONIC ns. Included by both; the code behind it is jobs.c.
 */
#ifndef SIM_ACTIVITY_H
#define SIM_ACTIVITY_H

#include "span.h"

enum sim_activity_kind { ACTIVITY_KERNEL, ACTIVITY_COPY, ACTIVITY_SET };

/* What an operation is, besides when; the fields of other kinds are 0. */
struct sim_what {
	const char *name; /* of the kernel, mangled; stays for ever */
	unsigned grid[3], block[3], shared;
	uint64_t bytes;
	unsigned value;
	unsigned char src, dst; /* enum sim_mem */
	bool async;
	short src_dev, dst_dev;
};

/* An operation that has ended on a GPU. */
struct sim_activity {
	enum sim_activity_kind kind;
	unsigned device, context, stream;
	unsigned correlation; /* of the call that submitted it */
	unsigned graph; /* 0, or which executable graph */
	unsigned graph_ops; /* how many operations of these kinds that launch of the graph has */
	uint64_t graph_node;
	uint64_t submit_ns, begin_ns, end_ns;
	struct sim_what what;
};

/* A call that has returned. */
struct sim_call {
	enum sim_fn fn;
	unsigned correlation; /* a driver call inside one of the runtime has that one's */
	int tid, result;
	uint64_t begin_ns, end_ns;
};

/* Both may run on any thread, several at once, with no lock of the simulator held. */
struct sim_listener {
	void (*activity)(const struct sim_activity *activity);
	void (*call)(const struct sim_call *call); /* on the thread that called */
};

/* The knobs `cupti_...` of the script. */
struct sim_cupti {
	bool offset_set, slot_taken;
	double offset_us, drift_ppm;
	unsigned broken_times, drop; /* every so many-th record; 0: none */
};

struct sim_activity_source {
	uint64_t (*busy_ns)(unsigned gpu,
			    uint64_t now_ns); /* so long kernels have run on it until then */
	const struct sim_cupti *knobs;
	void (*listen)(const struct sim_listener *listener); /* NULL: nobody listens any more */
	void (*settle)(void); /* tells the listener of what has ended by now, on this thread */
	unsigned (*context_id)(void *ctx); /* 0: no such context; as the next two */
	int (*device)(void *ctx); /* -1: no such context */
	unsigned (*stream_id)(void *ctx, void *stream, bool per_thread);
};

SIM_PUBLIC const struct sim_activity_source *spysim_activity(void);

#endif
