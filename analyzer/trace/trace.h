/*
 * analyzer/trace/trace.h: trace directories, found and opened.
 *
 * One trace is one process. Commands are given any mixture of trace directories, containers (pack/container.h)
 * and directories that contain some, in folders of theirs, too, and treat what is found as one: a trace set.
 */
#ifndef CUDASPY_TRACE_H
#define CUDASPY_TRACE_H

#include "base/hash.h"
#include "board.h"
#include "functions.h"
#include "hosts.h"
#include "metadata.h"
#include "pack/container.h"
#include "reader.h"
#include "runs.h"

/*
 * Cycles to nanoseconds since the epoch. Processes of one boot that use the same counter share one
 * of these, so that the order of their records is that of the counter itself and does not depend on
 * how well each of them measured its frequency.
 */
struct timeline {
	uint64_t ns_per_cycle_40; /* times 2^40 */
	uint64_t zero_ns; /* when the counter was 0 */
};

static inline uint64_t timeline_span_ns(const struct timeline *t, uint64_t cycles)
{
	return (uint64_t)((unsigned __int128)cycles * t->ns_per_cycle_40 >> 40);
}

static inline uint64_t timeline_ns(const struct timeline *t, uint64_t cycles)
{
	return t->zero_ns + timeline_span_ns(t, cycles);
}

struct stream {
	struct trace *trace;
	uint32_t slot;
	uint32_t index; /* among all streams of the set */
	uint64_t called_ns; /* end of the last call of depth 0 that was taken in */
	/* of GPU times: how long behind its begin an operation's record came, at most (gpu_ops.h) */
	uint64_t behind_ns;
	struct reader reader;
};

/* What a process' environment told CUDA. */
struct cuda_settings {
	bool launches_block; /* CUDA_LAUNCH_BLOCKING: launches wait for their kernels */
	bool loads_eagerly; /* CUDA_MODULE_LOADING=EAGER: libraries are loaded like modules */
};

/* What tells folders apart, however they are named. Without padding: it is hashed byte by byte. */
struct folder {
	uint64_t device, inode;
	uint64_t part; /* of a container: the number of its first member, from 1 on */
};

/* What the first reading has seen a process use: by it processes are told that have to be read together. */
struct trace_use {
	uint64_t devices
		[4]; /* a bit for each GPU that it handed something to, or may have waited for */
	uint64_t timed[4]; /* likewise: of which GPU times are recorded */
	bool gpu_times; /* there are some, of whatever GPU */
	struct trace_gpu {
		uint16_t device;
		uint32_t uuid; /* a hash of it */
	} * gpus; /* that it told of; owned */
	size_t n_gpus;
	/* The daemon of MPS that it had found when it had initialised CUDA; owned; NULL: none. */
	struct trace_mps {
		uint64_t ns; /* of the record */
		uint32_t stream; /* likewise: its index */
		uint32_t uid, daemon, server, server_uid;
		char directory[];
	} * mps;
};

/* A directory of a recording that has several. */
struct trace_part {
	uint32_t number;
	char *dir;
};

struct trace {
	char *dir; /* of one in a container: the container, and behind a slash its folder if there are several */
	const struct container
		*container; /* it lies there, and is finished; NULL: in a directory. Not owned */
	size_t first_member;
	struct folder folder;
	struct metadata metadata;
	bool has_metadata;
	bool copy; /* of another trace of the set: dropped */
	bool joined; /* to another part of the same recording: dropped */
	uint32_t part; /* of its recording (trace_format.h), from 1 on; of several the last one */
	struct trace_part *parts; /* in their order; NULL: it is the only one, and the first */
	size_t n_parts;
	bool left_out; /* of another run than the one that is wanted: dropped */
	uint32_t run; /* of the set's */
	const struct trace *run_first; /* while runs are found: the first one of its run */
	struct board board;
	struct timeline timeline;
	/* This trace's function numbers -> those of the set's functions. */
	const uint32_t *functions;
	size_t n_functions;
	uint32_t *mapped; /* the same, owned; NULL: they are those of this version */
	uint32_t index; /* among all traces of the set */
	const struct host *host;
	struct stream **streams; /* of the set's, those of this trace */
	size_t n_streams;
	uint32_t pid;
	char *program; /* last part of its path; "?" unknown */
	struct cuda_settings cuda;
	/* When the trace was opened: */
	bool alive; /* the process was still running, on this machine */
	bool live; /* it may have been, here or elsewhere, and may be writing still */
	bool writing; /* tails may be changing */
	struct trace_use use;
	UT_hash_handle hh;
};

struct trace_set {
	struct trace **traces; /* in the order their processes began */
	size_t n_traces;
	struct trace *by_folder;
	struct container **containers; /* what traces lie in; owned */
	size_t n_containers;
	struct stream **streams; /* in the order of traces, then slots */
	size_t n_streams;
	struct host *hosts; /* in the order of their first traces; unknown ones last */
	size_t n_hosts;
	struct trace_run *runs;
	size_t n_runs;
	struct functions functions;
	struct cuda_settings cuda; /* of one of the traces at least */
	unsigned int unreadable; /* directories that look like traces and are none we can read */
	unsigned int begun; /* recordings that have nothing in them yet: left out, and no loss */
	unsigned int
		not_found; /* directories that were named, and cannot be read or hold no trace */
};

/* Which traces below the given directories to take. */
struct trace_filter {
	const char *run; /* only those of this run (metadata: cudaspy_run); NULL: all */
	const char *wanted; /* the same, as users say it: runs_choose; NULL: all */
	bool apart; /* whose processes are looked at one by one: nothing is said of several runs */
};

/*
 * Opens all traces in `dirs`, which may be containers, too, in the current directory if n_dirs is 0. Returns 0 if there is one
 * that can be read, -ENOENT if there are none, after warnings about each directory that was named
 * and holds none. Where they are of several runs, and no filter chooses, it says so. trace_set_release in all cases.
 */
int trace_set_open(struct trace_set *set, const char *const *dirs, size_t n_dirs,
		   const struct trace_filter *filter);

void trace_set_release(struct trace_set *set);

/* The set's number of a function number of this trace; for numbers metadata does not name, a
 * function called "function 1234". */
uint32_t trace_function_slow(struct trace_set *set, uint16_t fn);

static inline uint32_t trace_function(struct trace_set *set, struct trace *trace, uint16_t fn)
{
	return likely(fn < trace->n_functions) ? trace->functions[fn]
					       : trace_function_slow(set, fn);
}

#endif
