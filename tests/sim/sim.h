/*
 * tests/sim/sim.h: the inside of the simulated driver: devices, contexts, streams, operations on the
 * timeline, memory, locks, script. Included by driver*.c, engine.c, locks.c, truth.c, script.c,
 * memory_blocks.c and mangle.c; the runtime never sees it. Everything runs on the caller's thread,
 * except effects and host functions, which the engine's worker thread may run (engine.c).
 */
#ifndef SIM_H
#define SIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "activity.h"
#include "meeting.h"
#include "span.h"
#include "unseen.h"

enum { SIM_MAX_DEVICES = 16, SIM_PEERS = 16, SIM_QUEUE_DEPTH = 1020 };

#define SIM_LEGACY ((struct sim_stream *)1)
#define SIM_PER_THREAD ((struct sim_stream *)2)

/* Spans are rare work: a program without truth or injected errors pays one predicted branch. */
extern bool sim_spans_on;
extern bool sim_ready; /* cuInit succeeded */
extern __thread struct sim_thread sim_self;

int sim_span_open(struct sim_span *span, enum sim_fn fn);
int sim_span_close(struct sim_span *span, int result);
void sim_unimplemented(enum sim_fn fn);
void sim_note_copy(uint64_t bytes, enum sim_mem src, enum sim_mem dst, const void *stream);
void sim_note_staged(void); /* the copy is one between GPUs that goes through the host */
void sim_note_stream(const void *stream);
void sim_truth_init(const char *dir);
void sim_truth_fork_child(void);
void sim_truth_mps(void); /* once it is known who is whose client */
void sim_truth_gpu(const char *text, size_t bytes); /* lines of gpu.<pid>.tsv */
extern const char *const sim_fn_name[FN_COUNT];

/*
 * Exports one entry point: name, its parameters, and the call that does the work. EXPORT fails with
 * "not initialised" before cuInit; EXPORT_ANYTIME does not.
 */
#define EXPORT_ANYTIME(name, params, call) \
	SIM_PUBLIC int name params; \
	SIM_PUBLIC int name params \
	{ \
		struct sim_span span; \
		int rc; \
		if (__builtin_expect(!sim_spans_on, 1)) \
			return call; \
		rc = sim_span_open(&span, FN_##name); \
		if (!rc) \
			rc = call; \
		return sim_span_close(&span, rc); \
	}
#define EXPORT(name, params, call) \
	EXPORT_ANYTIME(name, params, \
		       (__builtin_expect(sim_ready, 1) ? (call) : SIM_NOT_INITIALIZED))

/* ---- time ---- */
static inline uint64_t sim_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void sim_sleep_until(uint64_t when_ns);
void sim_host_work(enum sim_fn fn, uint64_t default_ns);
void sim_work_for(uint64_t ns);
/* The time that the script makes the current call spend in ioctl(), unless it is spent. */
void sim_kernel_work(void);

/* ---- script (script.c): read once by cuInit or the first call that needs it ---- */
enum sim_lock_mode { LOCKS_SPLIT, LOCKS_PROCESS, LOCKS_DEVICE };
enum sim_staging { STAGING_D2H, STAGING_PAGEABLE, STAGING_ALL };

struct sim_script {
	int gpus;
	int init_result;
	enum sim_lock_mode locks;
	enum sim_staging staging;
	uint64_t kernel_ns;
	double copy_gbps;
	uint64_t memory_bytes;
	uint64_t
		staging_bytes; /* pageable bytes to the device that may be outstanding in a stream */
	unsigned queue_depth;
	double host_scale; /* factor on the cost of host work that no cost line names */
	bool blocking_launch;
	bool busy_work; /* long host work keeps the CPU */
	uint64_t slice_ns, switch_ns; /* of GPUs shared among processes */
	int mps_clients; /* contexts that an MPS server takes for a device */
	struct sim_cupti cupti; /* for the look-alike of CUPTI */
	double gpu_scale; /* factor on how long kernels last */
	struct sim_nccl nccl; /* for the look-alike of NCCL */
};
extern struct sim_script sim_script;

void sim_script_load(void);
uint64_t sim_script_kernel_ns(const char *name);
uint64_t sim_script_cost_ns(const char *function, uint64_t default_ns);
int sim_script_error(enum sim_fn fn);
bool sim_script_lazy(const char *kernel);
bool sim_script_broken(const char *kernel);
bool sim_script_has_errors(void);

/* A `hold` line: calls of some functions take a lock, work under it and release it. */
struct sim_hold_rule {
	struct sim_hold_rule *next;
	char function[128];
	char lock[128]; /* without its kind */
	unsigned char kind; /* enum sim_lock_kind */
	unsigned char mode; /* enum sim_lock_as */
	bool whole_call; /* released when the call ends */
	uint64_t work_ns;
};
/* Both ask for little where no line names the function. */
const struct sim_hold_rule *sim_script_holds(enum sim_fn fn);
uint64_t sim_script_ioctl_ns(enum sim_fn fn);
bool sim_script_names(enum sim_fn fn); /* by a hold or ioctl line */

/* ---- locks (locks.c): real ones, so that whoever interposes pthread sees them ---- */
enum sim_lock {
	SIM_LOCK_PROCESS,
	SIM_LOCK_CONTEXT,
	SIM_LOCK_STAGING,
	SIM_LOCK_POOL,
	SIM_LOCK_INIT, /* creating and dropping contexts */
	SIM_LOCK_RUNTIME, /* the runtime's, around the former */
	SIM_LOCK_SCRIPTED
};
enum sim_lock_kind { SIM_MUTEX, SIM_RWLOCK, SIM_SPINLOCK };
enum sim_lock_as { AS_MUTEX, AS_READER, AS_WRITER, AS_SPINNER };
enum sim_hold {
	HOLD_PROCESS = 1,
	HOLD_CTX_READ = 2,
	HOLD_CTX_WRITE = 4,
	HOLD_STAGING = 8,
	HOLD_POOL = 16
};

/* Takes the locks of the set in the one right order and returns what sim_unlock must release. */
unsigned sim_lock(unsigned set, int dev);
/* Takes more, later in the order, and returns the whole. */
unsigned sim_lock_also(unsigned held, unsigned set, int dev);
/* For calls that free, and that load or unload a module: as measured, they wait for the device with
 * the context locked as writer and take the process's lock only then. Returns what to release. */
unsigned sim_lock_idle(int dev);
void sim_unlock(unsigned held, int dev);
void sim_lock_global(enum sim_lock which); /* init or runtime */
void sim_unlock_global(enum sim_lock which);
/* Frees those that a forked child can meet on its way to being refused: another thread may have had them. */
void sim_locks_fork_child(void);
/* What the script adds to a call, when it begins and when it ends. */
void sim_holds_begin(struct sim_span *span);
void sim_holds_end(struct sim_span *span);

/* ---- waits, written down (waits.c) ---- */
enum sim_wait_kind { WAIT_LOCK, WAIT_GPU, WAIT_IOCTL, WAIT_MPS };
/* Why a call waits for the GPU: as documented and meant, by surprise, or because the queue is full. */
enum sim_why { WHY_INTENDED, WHY_HIDDEN, WHY_QUEUE };

struct sim_wait {
	unsigned char kind; /* enum sim_wait_kind */
	unsigned char how; /* a lock: enum sim_lock_as; the GPU: enum sim_why */
	unsigned char lock; /* enum sim_lock */
	short dev; /* of the call; -1 without a context */
	short lock_dev;
	enum sim_fn fn, outer_fn;
	const char *name; /* a scripted lock's */
	const void *address;
	uint64_t begin_ns, end_ns; /* of the wait; the lock is held from end to release */
	uint64_t release_ns, released_ns; /* before and after the release */
};

extern bool sim_waits_on;
void sim_note_wait(struct sim_wait *wait); /* fills in dev, fn and outer_fn */
void sim_note_late(uint64_t ns); /* work or a sleep took so much longer than it was to */
void sim_waits_write(int fd, int tid, const struct sim_wait *waits, unsigned cnt);
extern const char sim_waits_head[];

/* ---- devices and contexts (driver_context.c) ---- */
#define CTX_MAGIC 0x43545853u
#define STREAM_MAGIC 0x53545253u
#define EVENT_MAGIC 0x45565453u

struct sim_stream {
	unsigned magic;
	struct sim_ctx *ctx;
	unsigned flags; /* 1: non-blocking */
	int priority;
	uint64_t id;
	/* under the engine's lock: */
	struct sim_op *head, *tail; /* queued operations, oldest first; tail also when it is done */
	struct sim_op *pending; /* first whose end is not known yet */
	unsigned queued;
	uint64_t last_end_ns; /* when the last operation with a known end ends */
	uint64_t staged_bytes; /* pageable bytes of queued copies to the device */
	bool start_known; /* pending is a host function that may start at its start_ns */
	bool busy; /* an effect of this stream is being executed */
	bool active, zombie, internal;
	struct sim_stream *next_active, *prev_active;
	struct sim_stream *next, *prev; /* of the context */
	struct sim_capture *capture; /* not NULL: records instead of running (driver_capture.c) */
	struct sim_node **capture_deps;
	unsigned capture_dep_cnt;
};

struct sim_ctx {
	unsigned magic;
	int dev;
	bool primary, alive;
	unsigned flags;
	int refs;
	uint64_t id;
	struct sim_stream legacy;
	struct sim_stream *streams; /* every stream of the context, under the engine's lock */
	size_t limits[16];
	int cache_config, shared_config;
	struct sim_ctx *peers
		[SIM_PEERS]; /* whose memory it reaches, NULL: none; no pool's, nothing mapped */
	struct sim_ctx *next; /* of all contexts, never taken off */
};

struct sim_device {
	char name[64];
	int gpu; /* which of the machine's: CUDA_VISIBLE_DEVICES can put them in another order */
	struct sim_ctx primary;
	_Atomic uint64_t used_bytes;
	struct sim_pool *default_pool, *pool;
};
extern struct sim_device sim_devices[SIM_MAX_DEVICES];

/* Finds out which GPUs the devices are, once; returns how many devices there are. */
int sim_find_gpus(void);
void sim_uuid(int gpu, unsigned char out[16]);

/* Runs op in the stream, or records it where the stream is being captured. Takes op over. */
int sim_enqueue(struct sim_stream *stream, struct sim_op *op, struct sim_op **out);
bool sim_dev_ok(int dev);
struct sim_stream *sim_stream_of(void *handle, bool per_thread, int *rc);
int sim_current(struct sim_ctx **ctx);
int sim_attribute(int *value, int attr, int dev);

/* ---- engine (engine.c): the timeline ---- */
enum sim_op_kind { OP_MARK, OP_KERNEL, OP_COPY, OP_SET, OP_HOST };
enum sim_op_state { OP_PENDING, OP_SCHEDULED, OP_DONE };

/* What an operation does to memory, besides lasting. Shared by the launches of a graph. */
struct sim_work {
	atomic_int refs;
	/* Run when the operation's end has come (a host function: when its start has come), on the
	 * worker or, except for host functions, on a thread that waits. */
	void (*run)(struct sim_work *work);
	size_t kept_bytes; /* of a large one: it is kept when it is put away */
	struct sim_work *next_kept;
};

struct sim_op {
	int refs;
	enum sim_op_kind kind;
	enum sim_op_state state;
	struct sim_op *next;
	uint64_t submit_ns, duration_ns, start_ns, end_ns;
	uint64_t ran_ns,
		ran_until_ns; /* of a kernel on a shared GPU: time had so far, and when last */
	uint64_t ran_from_ns; /* and when first; 0: its GPU is not shared */
	uint64_t staged_bytes;
	struct sim_what what;
	struct sim_job *job; /* NULL: nobody asks what the GPUs did */
	uint64_t graph_node; /* of a launched graph, as the next two */
	unsigned graph, graph_ops;
	unsigned as_stream; /* the stream it is said to run in; 0: its own */
	struct sim_op **deps; /* operations of other streams that must end first */
	unsigned dep_cnt, dep_cap;
	struct sim_work *work; /* NULL: only lasts */
	struct sim_meeting *meeting; /* NULL: its end is up to nobody else */
};

struct sim_op *sim_op_new(enum sim_op_kind kind, uint64_t duration_ns);
void sim_op_dep(struct sim_op *op, struct sim_op *on);
void sim_op_dep_device(struct sim_op *op, int dev); /* on all work of the device */
/* Appends to the stream; takes over op. With out, also returns a reference to it there. */
void sim_submit(struct sim_stream *stream, struct sim_op *op, struct sim_op **out);
struct sim_op *sim_op_get(struct sim_op *op);
void sim_op_put(struct sim_op *op);
bool sim_op_done(struct sim_op *op);
bool sim_op_end(struct sim_op *op, uint64_t *end_ns);
void sim_wait_op(struct sim_op *op, enum sim_why why);
void sim_wait_stream(struct sim_stream *stream, enum sim_why why);
bool sim_stream_idle(struct sim_stream *stream);
void sim_wait_ctx(struct sim_ctx *ctx, enum sim_why why);
void sim_wait_device(int dev, enum sim_why why);
void sim_wait_room(struct sim_stream *stream, enum sim_why why);
void sim_stream_init(struct sim_stream *stream, struct sim_ctx *ctx, unsigned flags, int priority);
void sim_stream_retire(struct sim_stream *stream);
extern struct sim_ctx *sim_contexts;
extern struct sim_spin sim_engine;
uint64_t sim_staged_bytes(struct sim_stream *stream);
/* Tells of what has ended by now; at exit also of what runs (jobs.c). */
void sim_engine_settle(void);
/* How long kernels have run on a GPU until then. */
uint64_t sim_engine_busy_ns(unsigned gpu, uint64_t now_ns);
void sim_engine_exit(void);
struct sim_stream *sim_stream_new(struct sim_ctx *ctx, unsigned flags, int priority);
struct sim_op *sim_stream_tail(struct sim_stream *stream);
void sim_engine_fork_child(void);

/* ---- what the GPUs did (jobs.c) ---- */
extern atomic_bool sim_jobs_on; /* truth or a listener asks */
extern atomic_bool sim_calls_on; /* a listener hears of calls */
const char *sim_intern(const char *text); /* a copy that stays */
bool sim_op_counts(const struct sim_op *op); /* is it work of a GPU? */
/* For an operation that the calling thread is about to submit; NULL: not work of a GPU. */
struct sim_job *sim_job_new(const struct sim_op *op, const struct sim_stream *stream);
void sim_job_ended(struct sim_job *job, const struct sim_op *op);
void sim_job_cut(struct sim_job *job, const struct sim_op *op, uint64_t now);
void sim_jobs_of_call(struct sim_span *span); /* the outermost call returns */
void sim_job_call(const struct sim_span *span);
void sim_jobs_hand_on(void);
bool sim_jobs_waiting(void);
void sim_jobs_truth(void);
void sim_jobs_fork_child(void);

/* ---- kernels whose end is up to other processes (meetings.c) ---- */
struct sim_meeting *sim_meeting_next(void); /* what the thread's launch is part of; NULL: nothing */
/* Runs the kernel in the stream as part of the meeting. Takes op over. */
void sim_meeting_launch(struct sim_meeting *meeting, struct sim_stream *stream, struct sim_op *op);
bool sim_meeting_settle(struct sim_op *op); /* under the engine's lock; true: its end_ns is known */
int sim_meetings_settled(void); /* how many are; -1: there is no such kernel */
void sim_meetings_wait(int seen); /* for more than that, or a moment */

/* ---- GPUs shared among processes (sharing.c) ---- */
extern bool sim_sharing;
int sim_sharing_init(int gpus); /* by cuInit, for so many devices */
/* Lets a kernel, whose start_ns is known, run in the turns that its process has; under the engine's
 * lock. True: its end_ns is known. */
bool sim_sharing_run(int dev, struct sim_op *op);

/* ---- this process as a client of MPS (mps.c) ---- */
struct sim_mps {
	bool client;
	int user, server_pid, server_user;
	uint64_t wait_ns; /* in cuInit, until another user's server was gone */
	double percentage; /* of each GPU, that this client may use */
	int multiprocessors;
};
extern struct sim_mps sim_mps;
int sim_mps_init(void); /* by cuInit */
int sim_mps_context_made(int gpu); /* an error: it is not to be made */
void sim_mps_context_gone(int gpu);
uint64_t sim_mps_stretch(uint64_t ns); /* how long a kernel lasts on the client's part of the GPU */
void sim_mps_fork_child(void);

/* ---- memory (memory_blocks.c) and pools (driver_pool.c) ---- */
struct sim_block {
	uint64_t base, bytes; /* as asked for */
	uint64_t granule_bytes; /* as reserved */
	enum sim_mem kind;
	int dev;
	unsigned flags;
	uint64_t id;
	struct sim_pool *pool;
	struct sim_ctx *ctx;
	bool vmm, registered;
	struct sim_block *next_free;
};

struct sim_pool {
	int dev;
	bool fixed; /* a device's default pool: cannot be destroyed */
	unsigned access; /* bit per device: those given access; its own has it anyway */
	uint64_t threshold, reserved, reserved_high, used, used_high;
	uint64_t cached; /* reserved and not in use */
	int attrs[4];
};

void sim_memory_init(void);
struct sim_block *sim_block_of(uint64_t address);
int sim_block_new(struct sim_block **out, enum sim_mem kind, int dev, uint64_t bytes);
void sim_block_free(struct sim_block *block);
int sim_register_range(void *ptr, size_t bytes, unsigned flags);
int sim_unregister_range(void *ptr);
struct sim_pool *sim_pool_of(int dev);
void sim_block_release(struct sim_block *block);
uint64_t sim_reserve_va(uint64_t bytes, struct sim_block **out);
enum sim_mem sim_mem_at(uint64_t address, int *dev);

/* The device that mapped (VMM) memory at the address lies on, -1: nothing is mapped there; and a bit for
 * each device that was given access. */
int sim_mapped_on(uint64_t address, unsigned *access);

/* May a device reach memory at the address? */
bool sim_reaches(int dev, uint64_t address);

/* ---- arrays (driver_array.c) ---- */
#define ARRAY_MAGIC 0x41525259u
struct sim_array {
	unsigned magic;
	struct sim_array3d_desc desc;
	size_t element, pitch, slice, bytes;
	int dev;
	unsigned level_cnt;
	struct sim_array **levels; /* a mipmapped array's */
	struct sim_block *block;
	unsigned char *data;
};

/* ---- graphs (driver_graph.c) and captures (driver_capture.c) ---- */
struct sim_event;
struct sim_node;
struct sim_kernel;
/* The stream is capturing: takes op over as a node. */
int sim_capture(struct sim_stream *stream, struct sim_op *op, struct sim_node **out);
/* Does a capture forbid what the calling thread is about to do? Then it is broken, and the call returns the error: what
 * might wait for more than it says; to wait for a stream that captures, or its device; work in a legacy stream. */
int sim_capture_unsafe(void);
int sim_capture_waited(const struct sim_stream *stream);
int sim_capture_device(const struct sim_ctx *ctx);
int sim_capture_legacy(const struct sim_stream *stream);
int sim_capture_event(struct sim_stream *stream, struct sim_event *event);
int sim_capture_wait(struct sim_stream *stream, struct sim_event *event, bool *handled);
void sim_node_describe(struct sim_node *node, struct sim_kernel *kernel, const unsigned grid[3],
		       const unsigned block[3], unsigned shared, void **params);
bool sim_capturing(const struct sim_stream *stream);

struct sim_event {
	unsigned magic;
	unsigned flags;
	struct sim_ctx *ctx;
	struct sim_op *op; /* last recorded, under the engine's lock */
	struct sim_capture *capture;
	struct sim_node *capture_node;
};

/* ---- kernels and launches (driver_module.c, driver_launch.c) ---- */
struct sim_kernel {
	unsigned magic;
	const char *name;
	struct sim_module *module;
	uint64_t duration_ns;
	void (*twin)(void **args, unsigned grid[3], unsigned block[3]);
	bool delay; /* lasts as many microseconds as its first argument says */
	bool lazy_wait; /* its first launch waits for the device, also if its library is there */
	atomic_bool loaded;
	int param_cnt; /* -1: not known */
	unsigned short param_size[32];
	int attrs[16];
	struct sim_kernel *next;
};
#define KERNEL_MAGIC 0x4b524e4cu

/* Whether its code is on the device; puts it there, and says whether it was not. */
bool sim_module_loaded(const struct sim_module *module, int dev);
bool sim_module_load(struct sim_module *module, int dev);

struct sim_op *sim_kernel_op(struct sim_kernel *kernel, const unsigned grid[3],
			     const unsigned block[3], void **params, void **extra);
struct sim_op *sim_copy_op(const struct sim_memcpy3d *copy);
struct sim_op *sim_set_op(sim_ptr dst, size_t pitch, unsigned value, unsigned element, size_t width,
			  size_t height);
struct sim_op *sim_host_op(void (*fn)(void *), void *arg);
struct sim_op *sim_op_clone(const struct sim_op *op);
void *sim_work_new(size_t bytes, void (*run)(struct sim_work *work));
void sim_work_put(struct sim_work *work);
struct sim_kernel *sim_kernel_check(void *handle);
int sim_params_of_name(const char *mangled, unsigned short *sizes, int max);

#endif
