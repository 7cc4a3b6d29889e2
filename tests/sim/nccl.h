/*
 * tests/sim/nccl.h: the inside of the look-alike of NCCL, libnccl.so.2: communicators, the file in which
 * their ranks meet, operations, the profiler's events. Included by nccl*.c. Names and numbers are those of
 * nccl.h, which need not be installed; nccl_check.c holds them against it where it is.
 *
 * Knobs, as lines `nccl_...` of the simulator's script and as SPYSIM_NCCL_...: interface, timer_offset_us,
 * timer_drift_ppm, timer_step_ns, us, gbps, spread_us, wait_s (meeting.h); SPYSIM_NCCL_SEED gives each
 * rank a GPU timer of its own (nccl_clock.c).
 */
#ifndef SIM_NCCL_H
#define SIM_NCCL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "meeting.h"

enum nccl_result {
	NCCL_OK = 0,
	NCCL_CUDA_ERROR = 1,
	NCCL_SYSTEM_ERROR = 2,
	NCCL_INTERNAL_ERROR = 3,
	NCCL_INVALID_ARGUMENT = 4,
	NCCL_INVALID_USAGE = 5,
	NCCL_REMOTE_ERROR = 6,
	NCCL_IN_PROGRESS = 7,
};

enum nccl_type {
	NCCL_INT8,
	NCCL_UINT8,
	NCCL_INT32,
	NCCL_UINT32,
	NCCL_INT64,
	NCCL_UINT64,
	NCCL_FLOAT16,
	NCCL_FLOAT32,
	NCCL_FLOAT64,
	NCCL_BFLOAT16,
	NCCL_TYPES
};

enum nccl_reduction { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG, NCCL_REDUCTIONS };

/* In NCCL's own order, which plugins of the profiler interface's first version see. */
enum nccl_func {
	NCCL_BROADCAST,
	NCCL_REDUCE,
	NCCL_ALL_GATHER,
	NCCL_REDUCE_SCATTER,
	NCCL_ALL_REDUCE,
	NCCL_SEND_RECV,
	NCCL_SEND,
	NCCL_RECV,
	NCCL_FUNCS
};

enum {
	NCCL_RANKS_MAX = 64,
	NCCL_JOINING_MAX =
		32, /* ranks of one group: thread-local memory is scarce where a library is opened late */
	NCCL_SLOTS = 8, /* operations that a rank may be ahead of another */
	NCCL_CHANNELS_MAX = 4,
	NCCL_ID_BYTES = 128,
};

/* ---- the file that the ranks of a communicator map (nccl_meet.c); zeros at first ---- */

/* What one side of an operation has reached. n counts operations from 1. */
struct nccl_slot {
	_Atomic uint64_t begun; /* n, when begin_ns is right */
	_Atomic uint64_t given; /* n, when its data are in the file */
	_Atomic uint64_t begin_ns;
	_Atomic uint64_t what; /* function, root and bytes: the same for all */
};

struct nccl_side {
	_Atomic uint64_t taken; /* operations of which it needs nothing more from others */
	struct nccl_slot slots[NCCL_SLOTS];
};

struct nccl_file {
	atomic_uint arrived, ready; /* ranks */
	atomic_int changes; /* a futex: something others may wait for is there */
	atomic_int pids[NCCL_RANKS_MAX];
	struct {
		_Atomic uint64_t round; /* of ncclCommSplit, from 1 */
		atomic_int color, key;
	} split[NCCL_RANKS_MAX];
	struct nccl_side ranks[NCCL_RANKS_MAX]; /* collectives */
	struct nccl_side sends[NCCL_RANKS_MAX][NCCL_RANKS_MAX]; /* from, to */
	struct nccl_side receives[NCCL_RANKS_MAX][NCCL_RANKS_MAX]; /* from, to */
};

/* ---- communicators and operations ---- */
struct nccl_comm {
	int rank, rank_cnt;
	int dev;
	void *ctx;
	uint64_t hash;
	char path[NCCL_ID_BYTES];
	struct nccl_file *file;
	int fd;
	uint64_t collective_cnt; /* so far, of all functions */
	uint64_t sent_cnt[NCCL_RANKS_MAX], received_cnt[NCCL_RANKS_MAX];
	uint64_t sequence[NCCL_FUNCS]; /* as the profiler counts */
	uint64_t split_cnt;
	struct sim_op *last; /* the newest kernel */
	atomic_int error; /* enum nccl_result */
	atomic_int outstanding; /* batches */
	atomic_bool aborted;
	void *profiler; /* the plugin's */
	const struct nccl_clock *clock;
	/* There are messages to itself: then NCCL 2.28 gives collectives the times of its first kernel, which were these. */
	bool to_itself;
	uint64_t first_begin_ns, first_end_ns;
};

/* What a program asked for. */
struct nccl_task {
	struct nccl_task *next;
	struct nccl_comm *comm;
	enum nccl_func func;
	const void *send;
	void *recv;
	size_t count;
	enum nccl_type type;
	enum nccl_reduction reduction;
	int peer; /* or the root */
	void *stream;
	uint64_t n; /* of the collective, or of the pair; from 1 */
	uint64_t sequence;
	uint64_t submitted_ns;
	void *api_event, *event; /* the plugin's handles */
	void *channel_events[NCCL_CHANNELS_MAX];
};

/* What one kernel does: one collective, or sends and receives. It belongs to the proxy thread once it has been launched. */
struct nccl_batch {
	struct sim_meeting meeting; /* first */
	struct nccl_batch *next; /* the proxy's */
	struct nccl_comm *comm;
	struct nccl_task *tasks;
	int channels;
	int mask; /* of events, as the plugin wanted when it was submitted */
	uint64_t duration_ns;
	uint64_t spread_ns; /* how much later than others it ends */
	bool published, blocked; /* under the engine's lock */
	_Atomic uint64_t begin_ns, end_ns; /* 0: not known yet */
	atomic_bool taken;
	bool channels_begun;
};

size_t nccl_type_bytes(enum nccl_type type);
size_t nccl_task_bytes(const struct nccl_task *task); /* that this rank hands over */
bool nccl_is_collective(enum nccl_func func);
void nccl_fail(struct nccl_comm *comm, enum nccl_result result, const char *why);

extern const struct sim_meeting_source *nccl_source;

static inline uint64_t nccl_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A number that looks random but follows from these. */
uint64_t nccl_mix(uint64_t a, uint64_t b);

/* ---- meeting (nccl_meet.c) ---- */
bool nccl_file_join(struct nccl_comm *comm); /* maps it, and is counted */
bool nccl_file_wait(struct nccl_comm *comm); /* until all are there; false: too long */
void nccl_file_leave(struct nccl_comm *comm);
void nccl_file_wake(struct nccl_comm *comm);
void nccl_meet_prepare(struct nccl_batch *batch);

/* ---- results (nccl_math.c) ---- */
bool nccl_can_reduce(enum nccl_type type);
void nccl_reduce(void *into, const void *from, size_t count, enum nccl_type type,
		 enum nccl_reduction reduction);
void nccl_divide(void *values, size_t count, enum nccl_type type, int by);

/* ---- GPU timers (nccl_clock.c) ---- */
const struct nccl_clock *nccl_clock_of(int dev, int rank);
uint64_t nccl_clock_read(const struct nccl_clock *clock, uint64_t ns);

/* ---- after the launch (nccl_proxy.c) ---- */
void nccl_proxy_add(struct nccl_batch *batch);
void nccl_proxy_drain(struct nccl_comm *comm);

/* ---- the profiler interface (nccl_plugin.c) ---- */
void nccl_plugin_init(struct nccl_comm *comm);
void nccl_plugin_finalize(struct nccl_comm *comm);
void nccl_plugin_group_begin(const struct nccl_task *task, int depth); /* its first task */
void nccl_plugin_group_called(void); /* ncclGroupStart has returned */
void nccl_plugin_group_ending(void); /* ncclGroupEnd has been called */
void nccl_plugin_group_end(void);
void nccl_plugin_task(struct nccl_task *task); /* it has been asked for */
int nccl_plugin_mask(void);
void *nccl_plugin_launch_begin(const struct nccl_batch *batch);
void nccl_plugin_launch_end(void *event);
void *
nccl_plugin_submitted(struct nccl_batch *batch); /* right behind the launch: starts its events */
void nccl_plugin_handed_on(struct nccl_batch *batch, void *group); /* and stops them */
void nccl_plugin_channels_begin(struct nccl_batch *batch);
void nccl_plugin_channels_end(struct nccl_batch *batch);

extern const char *const nccl_func_name[NCCL_FUNCS];
extern const char *const nccl_type_name[NCCL_TYPES];

#endif
