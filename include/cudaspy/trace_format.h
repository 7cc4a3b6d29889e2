/*
 * include/cudaspy/trace_format.h: what a trace is, byte by byte.
 *
 * With entrypoints.def and contract.h this is all that the shim (which writes it) and the analyzer
 * (which reads it) share. docs/TRACE_FORMAT.md is the same in prose. A trace is a directory:
 *
 *   metadata        CTF 1.8 (TSDL): the layouts below, the clock, the environment, the name of each
 *                   function number; rewritten when the process ends in order
 *   stream_NNNN     one CTF data stream for each thread slot (0000 is the session's own): full
 *                   packets, one after the other; with a size bound each is a file of its own,
 *                   stream_NNNN_K, K its number; without one, K is the first packet in a file that
 *                   follows one that somebody has truncated
 *   stream_NNNN_tail  the slot's newest packet, the one being written
 *   .board          who is inside which call now, and the counters: struct spy_board
 *
 * Everything is little endian. Times are cycles of the clock that metadata describes. A tail is
 * valid at any moment: content_bits grows after each record, so a killed process loses nothing but
 * the record it was writing. Killed while a packet moves from the tail to the stream's file, the
 * packet may be there twice (same seq), or end early in the file and be whole in the tail.
 */
#ifndef CUDASPY_TRACE_FORMAT_H
#define CUDASPY_TRACE_FORMAT_H

#include <stdint.h>

/* Raised when a reader of the previous version could misread a trace. */
#define SPY_TRACE_VERSION 7

/* ---- functions ---------------------------------------------------------------------------- */

/* Room for a number for each function (function_numbers.h), where the list itself is not wanted. */
#define SPY_FN_MOST 1280

enum spy_record { SPY_TRANSPARENT, SPY_COUNTED, SPY_TRACED, SPY_INSTANT };

/* Generations of the runtime, a set: which libcudart has an entry point. 0 is the driver. */
enum spy_layer {
	SPY_LAYER_DRIVER = 0,
	SPY_LAYER_RT11 = 1,
	SPY_LAYER_RT12 = 2,
	SPY_LAYER_RT11_12 = 3,
	SPY_LAYER_RT13 = 4,
	SPY_LAYER_RT12_13 = 6,
	SPY_LAYER_RT = 7,
};

/* ---- packets ------------------------------------------------------------------------------ */

#define SPY_CTF_MAGIC 0xC1FC1FC1u

/*
 * The CTF packet header and packet context. First packet at offset 0 of a stream file; the next one
 * follows after packet_bits / 8 bytes.
 */
struct spy_packet {
	uint32_t magic; /* SPY_CTF_MAGIC */
	uint8_t uuid[16]; /* the same in metadata and in every packet of a trace */
	uint32_t stream_class; /* 0 */
	uint64_t instance; /* the slot: NNNN of the file name */
	uint64_t time_begin; /* no later than the first record */
	uint64_t time_end; /* time of the last record */
	uint64_t content_bits; /* header and context included */
	uint64_t packet_bits;
	uint64_t seq; /* counts up from 0 in each instance */
	uint64_t discarded; /* records lost in this instance so far (events_discarded of CTF) */
	uint64_t overhead; /* cycles this packet's threads spent in cudaspy's own slow paths */
	uint32_t tid; /* thread that owned the slot when the packet began; 0: no thread's */
	uint32_t kind; /* enum spy_stream_kind: the same in all packets of an instance */
} __attribute__((packed));

enum spy_stream_kind {
	SPY_STREAM_CALLS, /* of threads, or the session's own */
	SPY_STREAM_GPU, /* of CUPTI's activity records: SPY_EV_GPU_* and nothing else */
	SPY_STREAM_SAMPLES, /* of the sampler: SPY_EV_SAMPLE, SPY_EV_PLACE and what these need */
	SPY_STREAM_KINDS
};

/* ---- records ------------------------------------------------------------------------------ */

/* In the streams of threads each has a multiple of 8 bytes, so that no record's word ever straddles
 * two cache lines. */

enum spy_event {
	SPY_EV_NESTED, /* a call made inside another call that already told the details */
	SPY_EV_CALL, /* a call of which only the caller matters */
	SPY_EV_OP, /* works on a stream, an event, a context, a graph */
	SPY_EV_LAUNCH, /* starts a kernel */
	SPY_EV_COPY,
	SPY_EV_MEMORY, /* allocates, frees, pins, sets, maps */
	SPY_EV_THREAD, /* from here on this slot belongs to that thread */
	SPY_EV_COUNT, /* how often the thread made calls of a function that were only counted */
	SPY_EV_KERNEL, /* number of a kernel -> its name */
	SPY_EV_MODULE, /* an ELF object in the address space */
	SPY_EV_GPU,
	SPY_EV_CLOCK, /* the trace clock against the system's clocks */
	SPY_EV_NOTE, /* something a reader of the report must know: enum spy_note */
	SPY_EV_INNER, /* the short form of NESTED, which most are */
	SPY_EV_WAIT, /* a thread waited inside a call */
	SPY_EV_TAKEN, /* a lock others were waiting for was taken without a wait */
	SPY_EV_SCHED, /* how the system's scheduler treated the thread around a long call */
	SPY_EV_RELEASED, /* until version 2: a lock others were waiting for was given back */
	SPY_EV_NON_CUDA_THREAD, /* a thread that held a lock and makes no calls: the driver's own */
	SPY_EV_MPS, /* what of NVIDIA's Multi-Process Service this process finds */
	SPY_EV_SHARE, /* how it shares a GPU with other processes */
	SPY_EV_STACK, /* who called a call that is worth a look */
	SPY_EV_HELD, /* a lock others were waiting for was held, and given back */
	SPY_EV_PYTHON_CODE, /* number of a function of Python's -> its file and name */
	SPY_EV_PYTHON_STACK, /* which lines of Python a call with a stack was made in */
	SPY_EV_OUTSIDE, /* a thread waited between two calls */
	SPY_EV_GAP, /* how the system's scheduler treated the thread until a call began */
	SPY_EV_GPU_OP, /* an operation, as the GPU ran it */
	SPY_EV_GPU_SUBMIT, /* the driver's call that handed operations to a GPU */
	SPY_EV_GPU_CLOCK, /* CUPTI's clock against the trace's */
	SPY_EV_GPU_STATE, /* from here on GPU times are recorded, or no more */
	SPY_EV_RANGE, /* NVTX: the program began or ended a range, or set a mark */
	SPY_EV_RANGE_VALUE, /* the same with a range's number, a value or a category */
	SPY_EV_RANGE_NAME, /* number of a range's name -> domain and name */
	SPY_EV_NVTX_NAME, /* NVTX: what the program calls a thread, a stream, a category … */
	SPY_EV_NCCL_COMM, /* number of a communicator -> whose it is */
	SPY_EV_COLLECTIVE, /* NCCL: an operation was submitted */
	SPY_EV_COLLECTIVE_RAN, /* and when it ran on the GPU */
	SPY_EV_NCCL_STATE, /* are NCCL's operations recorded? */
	SPY_EV_WINDOW, /* recording begins or ends for a while */
	SPY_EV_COST, /* how many calls the thread made in a cost window */
	SPY_EV_PART, /* a part of the recording begins or ends */
	SPY_EV_HOST_FUNCTION, /* CUDA ran a function that the program had put into a stream */
	SPY_EV_PLACE, /* number of a place in the program -> its frames */
	SPY_EV_SAMPLE, /* where a thread was, between two calls */
	SPY_EV_GPU_LOOK, /* what NVML says of a GPU */
	SPY_EV_COUNT_ALL
};

#define SPY_FN_NONE 0xffff /* of a stack: it is no call's */
#define SPY_RESULT_NONE 0xffff /* the function returns no error code, or unwound */
#define SPY_DEVICE_NONE 0xff /* no device known */

/*
 * The head of every record of a call. Written at return: the call began at time - duration. Results
 * are cudaError_t or CUresult.
 */
struct spy_rec_head {
	uint64_t time;
	uint16_t event; /* enum spy_event */
	uint16_t fn; /* enum spy_fn of the writer: look the name up in metadata */
	uint16_t result;
	uint8_t device; /* the thread's current device */
	uint8_t depth; /* CUDA calls this one is inside of: 0 is the application's own */
	uint64_t duration : 48; /* cycles, without cudaspy's own */
	uint64_t context : 16; /* number of the thread's current context, 0 unknown */
} __attribute__((packed));

/*
 * Streams in all records are handles: 1 is the legacy default stream and 2 the thread's own, as CUDA
 * numbers them. A call that names stream 0, or none because it has no stream argument but works in
 * the default stream (cudaMemcpy), is recorded with the one it means: 2 for entry points whose name
 * ends in _ptsz or _ptds, else 1. 0: the call has nothing to do with a stream.
 */

/* A nested call of depth 1 with result 0 and fewer than 2^32 cycles. Device and context are those of
 * the call around it. */
struct spy_rec_inner {
	uint64_t time;
	uint16_t event;
	uint16_t fn;
	uint32_t duration;
} __attribute__((packed));

struct spy_rec_call {
	struct spy_rec_head head;
	uint64_t caller : 48; /* return address of the call */
	uint64_t flags : 16; /* 0 */
} __attribute__((packed));

struct spy_rec_op {
	struct spy_rec_head head;
	uint64_t caller : 48;
	uint64_t
		flags : 16; /* creation flags; capture mode; number of the context destroyed, or of a
			      * peer's */
	uint64_t stream; /* see above */
	/* Handle of an event, graph, context, module, created stream; a peer device. */
	uint64_t object;
} __attribute__((packed));

struct spy_rec_launch {
	struct spy_rec_head head;
	uint64_t caller : 48;
	uint64_t kernel_lo : 16; /* kernel = kernel_hi << 16 | kernel_lo, 0 unknown */
	uint64_t kernel_hi : 16;
	uint64_t stream : 48;
} __attribute__((packed));

enum spy_memory_kind {
	SPY_MEM_UNKNOWN,
	SPY_MEM_PAGEABLE, /* host memory CUDA does not know */
	SPY_MEM_PINNED, /* page-locked by CUDA, or registered */
	SPY_MEM_MANAGED,
	SPY_MEM_DEVICE,
	SPY_MEM_ARRAY,
	SPY_MEM_MIXED, /* pinned in part only, or a batch of several kinds of which none is pageable */
};

enum spy_direction { SPY_DIR_UNKNOWN, SPY_DIR_H2D, SPY_DIR_D2H, SPY_DIR_D2D, SPY_DIR_H2H };

enum spy_copy_form {
	SPY_FORM_1D,
	SPY_FORM_2D,
	SPY_FORM_3D,
	SPY_FORM_ARRAY,
	SPY_FORM_SYMBOL,
	SPY_FORM_PEER,
	SPY_FORM_BATCH,
};

/* How other GPUs come to reach memory of a GPU (programming guide, "Virtual Memory Management" and "Stream
 * Ordered Memory Allocator": neither follows peer access). */
enum spy_access {
	SPY_ACCESS_UNKNOWN,
	SPY_ACCESS_PEER, /* by peer access */
	SPY_ACCESS_MAPPED, /* it is mapped: by cuMemSetAccess */
	SPY_ACCESS_POOL, /* it is a pool's: by cudaMemPoolSetAccess */
};

/* Object of a call that gives access to mapped memory or a pool: this, and a bit for each GPU that got it. Flags: the
 * GPU whose memory it is, SPY_DEVICE_NONE unknown. Before version 4, and of a call that failed, object is the address
 * or the pool. */
#define SPY_ACCESS_GIVEN ((uint64_t)1 << 63)
#define SPY_ACCESS_GPUS 63

struct spy_rec_copy {
	struct spy_rec_head head;
	uint64_t caller : 48;
	uint64_t src_device : 8; /* of a copy from GPU to GPU; SPY_DEVICE_NONE unknown */
	uint64_t dst_device : 8;
	uint64_t stream : 48;
	uint64_t direction : 3; /* enum spy_direction */
	uint64_t captured : 1; /* the stream was capturing: nothing was copied */
	uint64_t form : 4; /* enum spy_copy_form */
	uint64_t src_kind : 4; /* enum spy_memory_kind */
	uint64_t dst_kind : 4;
	uint64_t bytes : 60; /* moved, without padding */
	uint64_t
		src_access : 2; /* enum spy_access, of a copy from GPU to GPU; before version 4 unknown */
	uint64_t dst_access : 2;
} __attribute__((packed));

enum spy_memory_op {
	SPY_MEMOP_ALLOC,
	SPY_MEMOP_FREE,
	SPY_MEMOP_REGISTER,
	SPY_MEMOP_UNREGISTER,
	SPY_MEMOP_SET,
	SPY_MEMOP_PREFETCH,
	SPY_MEMOP_MAP,
	SPY_MEMOP_UNMAP,
	SPY_MEMOP_RESERVE,
};

struct spy_rec_memory {
	struct spy_rec_head head;
	uint64_t caller : 48;
	uint64_t op : 8; /* enum spy_memory_op */
	uint64_t kind : 4; /* enum spy_memory_kind */
	uint64_t pool : 1; /* stream ordered, from a pool */
	uint64_t reserved : 3;
	uint64_t stream;
	uint64_t address;
	uint64_t bytes; /* 0 when unknown, as for a free of memory we did not see allocated */
} __attribute__((packed));

/* Records that are not calls. Text is NUL-terminated; SPY_TEXT_MAX bytes at most, NUL included. */
#define SPY_TEXT_MAX 1024

struct spy_rec_other {
	uint64_t time;
	uint16_t event;
} __attribute__((packed));

struct spy_rec_thread {
	struct spy_rec_other head;
	uint16_t reserved;
	uint32_t tid;
	char name[16]; /* as in /proc/self/task/TID/comm, with a NUL */
} __attribute__((packed));

struct spy_rec_count {
	struct spy_rec_other head;
	uint16_t fn;
	uint32_t tid;
	uint64_t count; /* since the thread's last such record */
} __attribute__((packed));

struct spy_rec_kernel {
	struct spy_rec_other head;
	uint16_t reserved;
	uint32_t kernel; /* counts up from 1 */
	char name[]; /* mangled, as registered */
} __attribute__((packed));

struct spy_rec_module {
	struct spy_rec_other head;
	uint16_t gone; /* 1: was unloaded */
	uint32_t span_pages; /* of 4096 bytes from base to the end of all its segments; 0 unknown */
	uint64_t base; /* what to subtract from an address to get the file's own */
	uint64_t begin, end; /* of its executable mapping */
	char text[]; /* build id in hex (may be empty) NUL path NUL */
} __attribute__((packed));

struct spy_rec_gpu {
	struct spy_rec_other head;
	uint16_t device; /* CUDA ordinal in this process */
	uint16_t cc_major, cc_minor;
	uint64_t bytes;
	char text[]; /* name NUL uuid "GPU-..." NUL PCI address NUL */
} __attribute__((packed));

/* Written when cuInit has returned, and before it is called if there is a daemon's control pipe. */
struct spy_rec_mps {
	struct spy_rec_other head;
	uint16_t initialised; /* 1: cuInit has returned */
	uint32_t uid; /* effective, of this process */
	uint32_t daemon; /* process, 0 unknown */
	/* Process: the daemon's server for this user, or else for another; 0 unknown. */
	uint32_t server;
	uint32_t server_uid; /* whom it serves */
	/* pipe directory (empty: no control pipe) NUL, then the values of
	 * CUDA_MPS_ACTIVE_THREAD_PERCENTAGE NUL CUDA_MPS_PINNED_DEVICE_MEM_LIMIT NUL
	 * CUDA_MPS_CLIENT_PRIORITY NUL */
	char text[];
} __attribute__((packed));

enum spy_client { SPY_CLIENT_NO, SPY_CLIENT_YES, SPY_CLIENT_UNKNOWN };

/* One for each GPU, as the driver answers this process. */
struct spy_rec_share {
	struct spy_rec_other head;
	uint16_t device; /* CUDA ordinal in this process */
	uint16_t client; /* enum spy_client: is the process a client of MPS there? */
	uint16_t reserved;
	uint32_t multiprocessors; /* that it may use, 0 unknown */
	uint32_t reserved2;
} __attribute__((packed));

struct spy_rec_clock {
	struct spy_rec_other head;
	uint16_t reserved;
	uint32_t reserved2;
	uint64_t monotonic_ns; /* CLOCK_MONOTONIC at head.time */
	uint64_t realtime_ns; /* CLOCK_REALTIME at head.time */
} __attribute__((packed));

enum spy_note {
	SPY_NOTE_BLIND, /* calls we cannot see: RTLD_DEEPBIND, another link-map namespace */
	SPY_NOTE_UNKNOWN, /* a CUDA function without a row was looked up: passed through */
	SPY_NOTE_MISSING, /* a stub was called whose real function does not exist */
	SPY_NOTE_VERSION, /* "driver 13000", "runtime /path/libcudart.so.13.0.96" */
	SPY_NOTE_OTHER, /* a static runtime, an option that could not be followed */
};

struct spy_rec_note {
	struct spy_rec_other head;
	uint16_t note;
	char text[];
} __attribute__((packed));

/* ---- waits -------------------------------------------------------------------------------- */

/* The recorder looks closer at calls that took so long, a 4000th of a second: whether their thread had a CPU. */
#define SPY_LOOKED_AT_NS 250000

/* What a thread waits in: the C library's function. */
enum spy_wait_kind {
	SPY_WAIT_MUTEX,
	SPY_WAIT_READ, /* a rwlock, as reader */
	SPY_WAIT_WRITE, /* as writer */
	SPY_WAIT_SPIN,
	SPY_WAIT_CONDITION,
	SPY_WAIT_SEMAPHORE,
	SPY_WAIT_FUTEX, /* by syscall */
	SPY_WAIT_IOCTL,
	SPY_WAIT_POLL,
	SPY_WAIT_YIELD,
	SPY_WAIT_SLEEP,
	/* between calls only: */
	SPY_WAIT_TRANSFER, /* read, write, recv, send and their kin: of a descriptor */
	SPY_WAIT_EPOLL,
	SPY_WAIT_ACCEPT, /* a connection */
	SPY_WAIT_JOIN, /* the end of a thread */
	SPY_WAIT_CHILD, /* the end of a process */
	SPY_WAIT_QUERY, /* work of a GPU, of which the thread asks over and over whether it has ended */
	SPY_WAIT_KINDS
};

/* Has the kind a lock, which somebody holds meanwhile? */
static inline int spy_wait_is_lock(unsigned int kind)
{
	return kind <= SPY_WAIT_SPIN;
}

enum spy_wait_flag {
	SPY_WAIT_READERS =
		1, /* held by readers, of whom holder is one, or 0: none that we know of */
	SPY_WAIT_SHARED = 2, /* a lock between processes: holder may be a thread of another */
	SPY_WAIT_FAILED = 4, /* ended without the lock, or the work's end: a timeout, an error */
	SPY_WAIT_IDLE_HOLDER = 8, /* holder was inside no call when the wait began */
	SPY_WAIT_FREE = 16, /* nobody had the lock any more when the wait began */
	SPY_WAIT_GIL = 32, /* between calls only: for the lock of Python's interpreter */
	/* of a lock that changed hands very often: not all who had it meanwhile left a record. holder
	 * had it when the wait began, as ever. */
	SPY_WAIT_UNFOLLOWED = 64,
	/* between calls only: the first poll of several descriptors since a call that took SPY_LOOKED_AT_NS or more; `ready`
	 * is valid. */
	SPY_WAIT_LATE = 128,
};

/* What a descriptor stands for. */
enum spy_file_kind {
	SPY_FILE_UNKNOWN,
	SPY_FILE_REGULAR,
	SPY_FILE_PIPE,
	SPY_FILE_SOCKET,
	SPY_FILE_LISTENING, /* a socket at which connections arrive */
	SPY_FILE_DEVICE,
	SPY_FILE_EVENT, /* eventfd, timerfd, epoll: no file */
	SPY_FILE_KINDS
};

/* A wait between calls that took less leaves no record, but for polls with SPY_WAIT_LATE. */
#define SPY_OUTSIDE_LEAST_NS 20000

/*
 * A wait of a thread in the C library, between two calls of the application; written when it ends. Waits
 * of one kind and object at one place, with no other record between them, share a record as those of
 * spy_rec_wait do.
 */
struct spy_rec_outside {
	uint64_t time;
	uint16_t event;
	uint8_t kind; /* enum spy_wait_kind */
	uint8_t file; /* enum spy_file_kind: what a descriptor stands for, 0 for other kinds */
	uint32_t count;
	uint64_t duration : 48; /* cycles */
	uint64_t flags : 8; /* enum spy_wait_flag, or-ed */
	uint64_t at_once : 8; /* with SPY_WAIT_LATE: 1: the first poll was not to wait */
	uint64_t span : 48; /* cycles */
	/* With SPY_WAIT_LATE, of the record's first poll: descriptors that had input, and for which it did not wait; without
	 * the one that such polls returned last before, which may have been served since. */
	uint64_t ready : 16;
	uint64_t caller; /* return address of the C library's function */
	uint64_t object; /* the lock's address, a descriptor, an event or a stream; 0 none */
	/* Thread that had the lock when the wait began, or that is to end; 0 unknown. */
	uint32_t holder;
	uint32_t reserved3;
} __attribute__((packed));

/*
 * Written when the wait ends, so before the record of the call it happened in. The holder is who
 * held the lock when the wait began, and what the board said it was doing. Waits of the kinds that
 * come in rows (ioctl, poll, yield, sleep) share a record: count of them, duration the sum, span the
 * time from the first one's begin to the last one's end; else count is 1 and span the duration. Where a call has
 * no room for more records, its last one takes in all waits of its kind that follow.
 */
struct spy_rec_wait {
	uint64_t time;
	uint16_t event;
	uint8_t kind; /* enum spy_wait_kind */
	uint8_t depth; /* of the call it happened in */
	uint16_t fn; /* that call, or the last one inside it that was only counted */
	uint16_t outer_fn; /* the application's call around it */
	uint64_t duration : 48; /* cycles */
	uint64_t device : 8; /* current, SPY_DEVICE_NONE unknown */
	uint64_t flags : 8; /* enum spy_wait_flag, or-ed */
	/* The lock's address, request of an ioctl; 0 of several for want of room. */
	uint64_t object;
	uint32_t count;
	uint32_t holder; /* thread, 0 unknown */
	uint64_t holder_since; /* when its outermost call began, 0 unknown */
	uint64_t holder_stream : 48;
	uint64_t holder_device : 8;
	uint64_t reserved : 8;
	uint64_t span : 48; /* cycles */
	uint64_t
		holder_fn : 16; /* its outermost call, valid unless SPY_WAIT_IDLE_HOLDER or no holder */
} __attribute__((packed));

/* How a lock changed hands while somebody waited for it, together with the waits: taken by somebody who
 * did not have to wait, or (SPY_EV_RELEASED) given back. Versions 3 and 4 have spy_rec_held for both; since version 5
 * of a mutex that is given back when nobody sleeps for it only this one: it was by the end of the call. */
struct spy_rec_taken {
	uint64_t time;
	uint16_t event;
	uint8_t kind;
	uint8_t depth;
	uint16_t fn;
	uint16_t outer_fn;
	uint64_t object;
} __attribute__((packed));

/*
 * Since version 3: written when the lock has been given back, by whoever had it. Giving it back began at the record's
 * time and took a while, because those who wait have to be woken.
 */
struct spy_rec_held {
	uint64_t time;
	uint16_t event;
	uint8_t kind;
	uint8_t depth;
	uint16_t fn;
	uint16_t outer_fn;
	uint64_t object;
	uint64_t span : 16; /* units that giving it back took, 65535: or more */
	uint64_t held : 48; /* cycles since it was taken at once; 0: else, or told before */
} __attribute__((packed));

#define SPY_SPAN_UNIT 64 /* cycles */

#define SPY_UNKNOWN_UNIT 1024u /* ns */

/* Written before the record of a call of a quarter of a millisecond or more. Between two looks at the scheduler's
 * own account, this one and the last: */
struct spy_rec_sched {
	uint64_t time;
	uint16_t event;
	/* By so much not_running_ns may be more, in SPY_UNKNOWN_UNIT; UINT16_MAX: or by more. */
	uint16_t unknown;
	/* All threads of the process on CPUs, in SPY_RAN_UNIT, modulo 2^32; 0: not looked at. */
	uint32_t process_ran;
	uint64_t window; /* cycles since the last look, or since the thread's first call */
	uint64_t not_running_ns; /* ready to run, but on no CPU */
	uint64_t running_ns; /* on a CPU */
} __attribute__((packed));

#define SPY_RAN_UNIT 65536 /* ns */

/* The same struct as SPY_EV_GAP: written before the record of a call that began 2 ms or more after the last look;
 * its time is when that call began. */

struct spy_rec_non_cuda_thread {
	struct spy_rec_other head;
	uint16_t reserved;
	uint32_t tid;
	char name[16]; /* as in /proc/self/task/TID/comm, with a NUL */
} __attribute__((packed));

enum spy_stack_why {
	SPY_STACK_LONG = 1, /* it took a millisecond or more */
	SPY_STACK_PAGEABLE = 2, /* an asynchronous copy with a pageable side */
	SPY_STACK_FAILED = 4,
	SPY_STACK_MADE = 8, /* memory, a stream, an event, a graph was made or given back, again */
	SPY_STACK_SAMPLED =
		16, /* in a sample of the calls that wait, copy or are handed to a stream */
	SPY_STACK_GAP =
		32, /* a long time without a call came before it, or was expected behind it; or a wait */
};

#define SPY_STACK_MOST 48

/*
 * Written before the record of a call of the application's own (depth 0), with the same time and
 * function: how it came to that call. Return addresses, innermost first: frames[0] is the call's own.
 * Where the walk had to end, the rest is 0.
 */
struct spy_rec_stack {
	uint64_t time;
	uint16_t event;
	uint16_t fn;
	uint8_t why; /* enum spy_stack_why, or-ed */
	uint8_t count; /* frames that are there, SPY_STACK_MOST at most */
	uint16_t reserved;
	uint64_t frames[SPY_STACK_MOST];
} __attribute__((packed));

/* A number is told once in a trace, or once in a packet if the trace is bounded. It may be used before it
 * is told, by another thread. */
struct spy_rec_python_code {
	struct spy_rec_other head;
	uint16_t reserved;
	uint32_t code; /* the number, from 1 on */
	uint32_t first_line; /* 0 unknown */
	uint32_t reserved2;
	/* file NUL function NUL, blanks up to a multiple of 8 bytes, NUL. The file as Python has it, of a
	 * longer one the end; the function's qualified name since Python 3.11. */
	char text[];
} __attribute__((packed));

#define SPY_PYTHON_MOST 24
/* Of deeper stacks so many innermost ones, and the rest outermost ones: those of the program lie there, where a framework is deep. */
#define SPY_PYTHON_INNERMOST 12

enum spy_python_more {
	SPY_PYTHON_ALL,
	SPY_PYTHON_MORE_OUTSIDE, /* of these; until November 2026 */
	SPY_PYTHON_MORE_BETWEEN, /* behind the first SPY_PYTHON_INNERMOST */
};

/* Follows a SPY_EV_STACK of the same time and function: the thread's frames in Python, innermost first. */
struct spy_rec_python_stack {
	uint64_t time;
	uint16_t event;
	uint16_t fn;
	uint8_t count; /* frames that are there, SPY_PYTHON_MOST at most */
	uint8_t more; /* enum spy_python_more */
	uint16_t reserved;
	uint32_t codes[SPY_PYTHON_MOST]; /* numbers of SPY_EV_PYTHON_CODE, 0 unknown */
	uint32_t lines[SPY_PYTHON_MOST]; /* 0 unknown */
} __attribute__((packed));

/* ---- samples: where threads are between their calls ------------------------------------------ */

/* A number is told once in a trace, or once in a packet if the trace is bounded; 0: told for the sample behind it alone. */
#define SPY_PLACES 4096
#define SPY_PLACE_MOST 48
/* Or-ed to `python`: the last word is no return address, see words. */
#define SPY_PLACE_FUNCTION 0x80

struct spy_rec_place {
	struct spy_rec_other head;
	uint8_t python; /* so many words are frames in Python: number of the code << 32 | line (0 unknown) */
	uint8_t count; /* words; those behind Python's are return addresses. Each innermost first */
	uint32_t place;
	/* SPY_PLACE_FUNCTION: the thread ran. The last one is where the function begins that the first return address lies in: 1
	 * beyond the instruction that it was at. With frames in Python: what the innermost of them ran. The last one is where the
	 * interpreter's function begins, 0 unknown; those before it lie, as return addresses, in the functions by which libraries
	 * were entered that it had called, none if it was the interpreter itself. */
	uint64_t words[]; /* SPY_PLACE_MOST at most */
} __attribute__((packed));

enum spy_sample_state {
	SPY_SAMPLE_RAN = 1, /* it was on a CPU */
	SPY_SAMPLE_BLOCKED = 2, /* in the kernel, by a system call */
	/* Neither: it was ready and had no CPU, or the system does not say. */
	SPY_SAMPLE_CUT =
		4, /* it called something meanwhile, or returned: the place is that of its callers */
	SPY_SAMPLE_GC = 8, /* Python collected garbage */
	SPY_SAMPLE_GIL = 16, /* it waited for Python's GIL, which `holder` had */
	SPY_SAMPLE_HOLDER = 32, /* of a thread for whose GIL others waited; it may make no calls */
};

/* About `weight` microseconds of the thread's time: that long ago it, or whom it stands for, was looked at before. A thread
 * that has not run since is not looked at again: its samples are one. */
struct spy_rec_sample {
	struct spy_rec_other head;
	uint16_t state; /* enum spy_sample_state, or-ed */
	uint32_t tid;
	uint32_t place; /* of SPY_EV_PLACE; 0: the one right before, or unknown if that is none */
	uint32_t holder; /* thread, 0 unknown */
	uint32_t weight; /* us */
	uint32_t ago; /* ns before the record's time */
} __attribute__((packed));

/* What NVML says of a GPU, several times a second. */
enum spy_gpu_look_known {
	SPY_GPU_LOOK_REASONS = 1,
	SPY_GPU_LOOK_PROCESSES = 2,
	SPY_GPU_LOOK_SHARES = 4,
	SPY_GPU_LOOK_LINKS = 8,
};

struct spy_rec_gpu_look {
	struct spy_rec_other head;
	uint8_t device; /* ordinal of CUDA's */
	uint8_t busy; /* per cent of the last sixth of a second to second in which a kernel ran; 255 unknown */
	uint16_t clock, clock_most; /* MHz, of the multiprocessors; 0 unknown */
	uint64_t reasons; /* NVML's bits: why the clock is no higher */
	uint32_t power, power_limit; /* mW; 0 unknown */
	uint16_t temperature; /* degrees Celsius; 0 unknown */
	uint16_t others; /* processes that compute on it, this one not counted */
	uint32_t other_pid; /* one of them; 0: none, or of another namespace */
	uint64_t used_bytes, others_bytes; /* memory: in use, and by these; 0 unknown */
	uint32_t known; /* enum spy_gpu_look_known, or-ed */
	/* Per cent of the time in which kernels of this process, and of the others, ran. */
	uint8_t own_busy, others_busy;
	uint16_t links; /* NVLinks that are up */
	uint32_t link_mbytes; /* MB/s that each of them moves in one direction; 0 unknown */
	uint32_t reserved;
} __attribute__((packed));

/* ---- times of GPUs ------------------------------------------------------------------------ */

/*
 * With CUDASPY_GPU, in a stream of their own: what CUPTI's activity records say. They come late and in no order: time
 * is when a record was written; when things happened is in nanoseconds of CUPTI's clock (cuptiGetTimestamp), which
 * SPY_EV_GPU_CLOCK ties to the trace's.
 */

enum spy_gpu_op_kind {
	SPY_GPU_KERNEL,
	SPY_GPU_COPY,
	SPY_GPU_MEMSET,
};

enum spy_gpu_op_flag {
	SPY_GPU_OF_GRAPH = 1, /* a graph's: its submission is the graph's launch */
};

struct spy_rec_gpu_op {
	uint64_t time;
	uint16_t event;
	uint8_t kind; /* enum spy_gpu_op_kind */
	uint8_t device; /* as the process numbers them */
	uint32_t correlation; /* of its submission; 0 unknown */
	uint64_t begin_ns, end_ns; /* CUPTI's clock */
	uint64_t amount; /* bytes; of a kernel its blocks */
	uint32_t stream, context; /* CUPTI's numbers */
	uint32_t kernel; /* number of SPY_EV_KERNEL, 0 unknown or no kernel */
	uint16_t threads; /* of a kernel, in a block */
	uint8_t direction; /* of a copy: enum spy_direction */
	uint8_t flags; /* enum spy_gpu_op_flag, or-ed */
} __attribute__((packed));

/* Operations of one submission have its correlation. Submissions of CUDA's own libraries are among them. */
struct spy_rec_gpu_submit {
	uint64_t time;
	uint16_t event;
	uint16_t reserved;
	uint32_t correlation;
	uint64_t begin_ns, end_ns; /* CUPTI's clock */
	uint32_t tid;
	uint32_t reserved2;
} __attribute__((packed));

struct spy_rec_gpu_clock {
	uint64_t time; /* when the record was written */
	uint16_t event;
	uint16_t reserved;
	uint32_t error; /* cycles by which `clock` may be wrong, either way */
	uint64_t clock; /* the trace's clock, in cycles … */
	uint64_t gpu_ns; /* … when CUPTI's said this */
	uint64_t dropped; /* activity records that CUPTI has lost so far, by its own word */
} __attribute__((packed));

enum spy_gpu_state {
	SPY_GPU_ON,
	SPY_GPU_OFF, /* the process ends, or a window */
	SPY_GPU_TAKEN, /* another tool uses CUPTI: text says which */
	SPY_GPU_GAVE_WAY, /* another tool began to use CUPTI */
	SPY_GPU_MISSING, /* no CUPTI, or it failed: text says why */
};

struct spy_rec_gpu_state {
	struct spy_rec_other head;
	uint16_t state; /* enum spy_gpu_state */
	uint32_t reserved;
	char text[112]; /* what there is to say, with a NUL */
} __attribute__((packed));

/* ---- NVTX --------------------------------------------------------------------------------- */

enum spy_range_what {
	SPY_RANGE_PUSH,
	SPY_RANGE_POP, /* the innermost open range of that name */
	SPY_RANGE_START, /* and end: a range that any thread may end, known by its id */
	SPY_RANGE_END,
	SPY_RANGE_MARK,
	SPY_RANGE_OPEN, /* pushed before: not told yet, or told in a packet that may be deleted */
	SPY_RANGE_WHATS
};

/* In the stream of the thread that called NVTX. A thread has a stream from its first CUDA call on. */
struct spy_rec_range {
	uint64_t time;
	uint16_t event;
	uint8_t what; /* enum spy_range_what */
	uint8_t reserved;
	uint32_t name; /* number of SPY_EV_RANGE_NAME, 0 unknown */
} __attribute__((packed));

/* As NVTX numbers them. */
enum spy_range_payload {
	SPY_PAYLOAD_NONE,
	SPY_PAYLOAD_U64,
	SPY_PAYLOAD_I64,
	SPY_PAYLOAD_DOUBLE,
	SPY_PAYLOAD_U32,
	SPY_PAYLOAD_I32,
	SPY_PAYLOAD_FLOAT,
	SPY_PAYLOADS
};

struct spy_rec_range_value {
	uint64_t time;
	uint16_t event;
	uint8_t what;
	uint8_t payload_type; /* enum spy_range_payload */
	uint32_t name; /* 0 for SPY_RANGE_END */
	uint64_t id; /* of a started range; SPY_RANGE_OPEN: when it began */
	uint64_t payload; /* its bits; those of a 32-bit type are the lower ones */
	uint32_t category; /* 0 none */
	uint32_t reserved;
} __attribute__((packed));

/* Told as a function of Python's is (spy_rec_python_code). */
struct spy_rec_range_name {
	struct spy_rec_other head;
	uint16_t folded; /* 1: one name for many that differ in numbers only; # stands for these */
	uint32_t name; /* the number, from 1 on */
	/* domain (empty: the default one) NUL name NUL, blanks up to a multiple of 8 bytes, NUL */
	char text[];
} __attribute__((packed));

enum spy_nvtx_named {
	SPY_NAMED_THREAD,
	SPY_NAMED_STREAM,
	SPY_NAMED_CONTEXT,
	SPY_NAMED_DEVICE,
	SPY_NAMED_EVENT,
	SPY_NAMED_CATEGORY,
	SPY_NAMED_KINDS
};

/* In the session's stream. */
struct spy_rec_nvtx_name {
	struct spy_rec_other head;
	uint16_t what; /* enum spy_nvtx_named */
	uint32_t reserved;
	uint64_t object; /* thread, handle, ordinal of a device or number of a category */
	char text[]; /* the name; of a category "domain/name" */
} __attribute__((packed));

/* ---- NCCL --------------------------------------------------------------------------------- */

/* What NCCL's profiler interface brings (docs/TRACE_FORMAT.md). In its own enums' words, as far as all versions of the
 * interface have them; functions by name. */
enum spy_nccl_func {
	SPY_NCCL_OTHER,
	SPY_NCCL_ALL_REDUCE,
	SPY_NCCL_ALL_GATHER,
	SPY_NCCL_REDUCE_SCATTER,
	SPY_NCCL_BROADCAST,
	SPY_NCCL_REDUCE,
	SPY_NCCL_SEND,
	SPY_NCCL_RECV,
	SPY_NCCL_ALL_TO_ALL,
	SPY_NCCL_GATHER,
	SPY_NCCL_SCATTER,
	SPY_NCCL_FUNCS
};

enum spy_nccl_algorithm {
	SPY_NCCL_ALGORITHM_UNKNOWN,
	SPY_NCCL_TREE,
	SPY_NCCL_RING,
	SPY_NCCL_COLLNET_DIRECT,
	SPY_NCCL_COLLNET_CHAIN,
	SPY_NCCL_NVLS,
	SPY_NCCL_NVLS_TREE,
	SPY_NCCL_PAT,
	SPY_NCCL_ALGORITHMS
};

enum spy_nccl_protocol {
	SPY_NCCL_PROTOCOL_UNKNOWN,
	SPY_NCCL_LL,
	SPY_NCCL_LL128,
	SPY_NCCL_SIMPLE,
	SPY_NCCL_PROTOCOLS
};

/* In the session's stream, before the first operation of the communicator. */
struct spy_rec_nccl_comm {
	struct spy_rec_other head;
	uint16_t interface; /* version of the profiler interface */
	uint32_t comm; /* the number, from 1 on; of this process */
	uint64_t hash; /* the same in all ranks of the communicator */
	uint32_t rank; /* in it */
	uint32_t ranks; /* that it has; 0 unknown (interfaces 1 to 3) */
	uint32_t nodes; /* likewise */
	uint32_t tid; /* thread that made it */
	uint8_t device; /* that thread's current device */
	uint8_t reserved[7];
	char name[32]; /* that the program gave it, with a NUL */
} __attribute__((packed));

enum spy_collective_flag {
	SPY_COLLECTIVE_GRAPH =
		1, /* captured into a graph: the time is not that of the submission */
	SPY_COLLECTIVE_COPIES = 2, /* made of copies, not of a kernel */
	SPY_COLLECTIVE_RUN_FOLLOWS = 4, /* SPY_EV_COLLECTIVE_RAN is to follow */
};

/* In the stream of the thread that submitted it, right behind the launch. */
struct spy_rec_collective {
	uint64_t time;
	uint16_t event;
	uint8_t func; /* enum spy_nccl_func */
	uint8_t flags; /* enum spy_collective_flag, or-ed */
	uint32_t comm; /* number of SPY_EV_NCCL_COMM */
	/* NCCL's, of this function in this communicator; of a send or receive its number from 1 on among those to or from
	 * that peer, recorded or not; 0 unknown (traces of before 2026-11). */
	uint64_t seq;
	uint64_t count; /* elements */
	uint32_t id; /* of SPY_EV_COLLECTIVE_RAN; unique among the process's last ones */
	int32_t peer; /* root of a collective, the other rank of a send or receive */
	uint8_t bytes_each; /* of an element */
	uint8_t algorithm; /* enum spy_nccl_algorithm */
	uint8_t protocol; /* enum spy_nccl_protocol */
	uint8_t channels;
	uint32_t reserved;
} __attribute__((packed));

/* In the stream of the thread of NCCL that learns it; time is when it did. */
struct spy_rec_collective_ran {
	uint64_t time;
	uint16_t event;
	uint8_t channels; /* whose times these are: of the first that began and the last that ended */
	uint8_t reserved;
	uint32_t comm;
	uint32_t id; /* of the SPY_EV_COLLECTIVE */
	uint32_t reserved2;
	uint64_t begin_ns, end_ns; /* the GPU's global timer; 0: unknown (interfaces 1 to 3) */
	uint64_t seen; /* when the thread learnt that it had begun (cycles) */
} __attribute__((packed));

enum spy_nccl_state {
	SPY_NCCL_ON, /* this library is NCCL's profiler; text: "interface 5" */
	SPY_NCCL_OFF, /* not wanted, or events switched off */
	SPY_NCCL_TAKEN, /* the user has another plugin: text says which */
};

/* In the session's stream. */
struct spy_rec_nccl_state {
	struct spy_rec_other head;
	uint16_t state; /* enum spy_nccl_state */
	uint32_t reserved;
	char text[112]; /* what there is to say, with a NUL */
} __attribute__((packed));

/* ---- functions on the host ------------------------------------------------------------------ */

/*
 * In the stream of the thread of CUDA's that ran it, when it has ended: a function that the program put into a stream
 * (cudaLaunchHostFunc, cudaStreamAddCallback). When it began, all work of the stream before it was done, and until it has
 * ended none behind it begins.
 */
struct spy_rec_host_function {
	uint64_t time;
	uint16_t event;
	uint8_t device; /* current, of the call that handed it over; SPY_DEVICE_NONE unknown */
	uint8_t reserved;
	uint32_t tid; /* the thread that handed it over */
	uint64_t duration : 48; /* cycles */
	uint64_t fn : 16; /* the call */
	uint64_t function; /* its address */
	uint64_t stream; /* as in records of calls */
	uint64_t handed; /* when, right before the call (cycles) */
	uint64_t caller : 48; /* return address of the call */
	uint64_t context : 16; /* number, 0 unknown */
} __attribute__((packed));

/* ---- windows ------------------------------------------------------------------------------ */

/*
 * Recording may be dormant: then calls leave no records, and what is to be known about memory, streams and contexts is
 * kept all the same. A window is a time in which it is not. In the session's stream, in order; a recording without
 * such a record is one window. A call belongs to the window in which it began: its record may come behind the window's
 * end.
 */
enum spy_window_state {
	SPY_WINDOW_OPEN, /* from here on calls are recorded */
	SPY_WINDOW_CLOSED, /* from here on they are not */
	SPY_WINDOW_MARK, /* text is what somebody outside has to say: `cudaspy mark` */
	SPY_WINDOW_COUNTING, /* from here on calls are only counted, in a cost window: no window ends */
	SPY_WINDOW_RECORDING, /* and from here on they are recorded again */
};

struct spy_rec_window {
	struct spy_rec_other head;
	uint16_t state; /* enum spy_window_state */
	uint32_t number; /* of the window, from 1 on; 0: none so far */
	uint64_t since; /* when the state before this one began; 0: when the recording did */
	char text[104]; /* what opened or closed it, with a NUL */
} __attribute__((packed));

/* ---- what recording costs ----------------------------------------------------------------- */

/* What is done in a cost window. */
enum spy_cost_kind {
	SPY_COST_ALL, /* calls are recorded, with everything */
	SPY_COST_COUNTING, /* calls are counted */
	SPY_COST_NO_PROBES, /* calls are recorded, without looking at waits */
	SPY_COST_NO_STACKS, /* calls are recorded, without stacks */
	SPY_COST_LEAN, /* calls are recorded, without both */
	SPY_COST_KINDS
};

#define SPY_COST_FUNCTIONS 8

/*
 * In the stream of a thread, when it notices that a cost window is over: at its next call. Windows come in blocks of
 * three, one of each kind (the third one without probes or without stacks), in random order. window: 4 times the
 * number of the block, and 1 to 3: the place in it; the same in all processes. 0: a time outside of blocks, or one that is
 * not to be used. The next one begins with this record's end.
 *
 * Calls of the application that begin in the window: `calls` in all, of functions that are recorded one by one. Those of
 * them that were only counted follow by function; where there are more functions than one record has room for, another
 * record of the same time follows, with calls 0.
 */
struct spy_rec_cost {
	struct spy_rec_other head;
	uint8_t kind; /* enum spy_cost_kind */
	uint8_t n; /* functions below */
	uint32_t calls;
	uint64_t begin, end; /* of what the thread had of the window, cycles */
	uint64_t window;
	uint64_t delay_ns; /* of that time the thread was ready to run, and on no CPU */
	uint16_t fn[SPY_COST_FUNCTIONS];
	uint32_t count[SPY_COST_FUNCTIONS];
} __attribute__((packed));

/* ---- parts -------------------------------------------------------------------------------- */

/*
 * A recording may have parts, one after the other, each in a directory of its own: the same uuid, the same slots, packets
 * numbered through. The part that is being written has the recording's name, PROGRAM-PID.cudaspy, and a finished one
 * PROGRAM-PID.NNNN.cudaspy. Metadata has `part`, the number, from 1 on (no such key: 1). A record is in one part: the one
 * during which it was written. What a later part has to know of earlier ones is told again: in the session's stream between
 * SPY_PART_BEGIN and SPY_PART_REPEATED, and by each thread when it begins its first packet in the part. A recording of one part
 * has no such record.
 */
enum spy_part_state {
	SPY_PART_BEGIN, /* the first record of a part but for the first one */
	SPY_PART_REPEATED, /* what stands between them, earlier parts have had */
	SPY_PART_END, /* the last record of the session in a finished part */
	SPY_PART_REMOVED, /* the recorder has deleted parts: the counts have changed */
};

struct spy_rec_part {
	struct spy_rec_other head;
	uint16_t state; /* enum spy_part_state */
	uint32_t number;
	uint64_t since; /* when the part began; of part 1 when the recording did */
	uint64_t calls; /* SPY_PART_END: records of calls in the part */
	/* What the recorder has deleted so far: the oldest parts, up to this number */
	uint32_t removed;
	uint32_t reserved;
	uint64_t removed_calls; /* records of calls in them */
	uint64_t removed_until; /* when the last of them ended */
	uint64_t recording_began;
} __attribute__((packed));

/* ---- the board ---------------------------------------------------------------------------- */

#define SPY_KEEP_MIB_END (1ull << 40) /* what CUDASPY_KEEP has to be below */
#define SPY_BOARD_MAGIC 0x44524f4259505343ull /* "CSPYBORD" */
#define SPY_BOARD_SLOTS 4096 /* threads alive at one time that can be recorded */
#define SPY_BOARD_PAGE 4096
#define SPY_BOARD_COUNTERS 496 /* counted functions there can be: what is left of a page */

/*
 * Page 0 of .board. Page 1 + s is the slot s: file offset (1 + s) * SPY_BOARD_PAGE; a slot beyond
 * the end of the file was never used.
 */
struct spy_board {
	uint64_t magic;
	uint32_t version; /* SPY_TRACE_VERSION */
	uint32_t pid;
	uint64_t frequency; /* cycles a second, as metadata has it */
	uint64_t lost; /* records lost by threads that got no slot or no stream */
	uint32_t slots; /* slots used so far */
	uint32_t ended; /* 1: the process ended in order */
	uint16_t counter_fn[SPY_BOARD_COUNTERS]; /* spy_slot_page.counts[i] counts this function */
	/* What the recorder remembers; each has a bound. (0 in traces of before.) */
	uint32_t kernels; /* names */
	/* Kernels that have one together, for there were as many as there may be. */
	uint32_t kernels_unnamed;
	uint32_t notes; /* texts */
	uint32_t notes_dropped; /* times one was left out */
	uint32_t spare_stubs; /* that were needed at one time, for second copies of functions */
	uint32_t reserved;
	uint64_t heap; /* bytes taken of the recorder's own memory (shim/process/heap.h) */
	/* NVTX (0 in traces of before) */
	uint64_t ranges_elsewhere; /* ranges and marks of threads that had made no CUDA call */
	uint64_t ranges_lost; /* for want of room, or because too many were open in their thread */
	uint32_t range_names;
	uint32_t ranges_unnamed; /* times that a name was one too many */
	uint32_t nvtx_left; /* functions left to another tool, for it has several of one kind */
	uint32_t reserved2;
	/* NCCL (0 in traces of before) */
	uint64_t collectives_lost; /* operations, and when they ran, for want of room */
	uint64_t collectives_unfollowed; /* for too many were at one time */
	/* Windows (0 in traces of before: one window) */
	uint32_t dormant; /* 1: recording is */
	uint32_t windows; /* that have been opened so far, 0 also if recording never was dormant */
	uint64_t state_since; /* when it became so, or was opened; 0: when the recording began */
	/* What somebody outside asks for, who has the file's lock (flock): filled in, then `request` counts up. A
	 * thread that follows it writes that number to `answered`. */
	uint32_t request;
	uint32_t answered;
	uint32_t wanted; /* enum spy_wanted */
	uint32_t reserved3;
	uint64_t wanted_at_ns; /* since the epoch; 0: now */
	uint64_t wanted_every_ns; /* SPY_WANTED_START: again after that time; 0: once */
	uint64_t wanted_for_ns; /* and for so long; 0: until it is closed */
	char wanted_text[104]; /* of a mark, with a NUL */
	/* --overhead (0 in traces of before): what is asked for, in millionths; what recording takes, with everything and
	 * without probes and stacks, as the recorder has it; and how long it did what. */
	uint32_t overhead_ppm;
	int32_t cost_ppm, lean_ppm;
	uint32_t reserved4;
	uint64_t cost_cycles[SPY_COST_KINDS];
	/* Parts (0 in traces of before: one) */
	uint32_t part; /* that is being written */
	uint32_t parts_removed; /* the oldest ones, deleted by the recorder */
	uint32_t rotated; /* the last request of SPY_WANTED_ROTATE that has been followed … */
	uint32_t rotate_error; /* … and what came of it: 0, or an error number */
	/* Of the parts that were deleted (0 in traces of before): records of calls in them, records that were lost meanwhile,
	 * and how long they lasted together */
	uint64_t removed_calls;
	uint64_t removed_lost;
	uint64_t removed_cycles;
	/* Functions put into streams or graphs that were not looked at: a graph may run them again, or there was no room (0 in
	 * traces of before) */
	uint64_t functions_unwatched;
	/* When the sampler's thread was awake last (0: there is none, or in traces of before): the process lived then */
	uint64_t looked;
};

enum spy_wanted {
	SPY_WANTED_NOTHING,
	SPY_WANTED_START,
	SPY_WANTED_STOP,
	SPY_WANTED_MARK,
	SPY_WANTED_ROTATE, /* end the part, and begin another one */
};

/* What one thread is doing. Written by that thread alone, read by anyone, torn reads allowed. */
struct spy_slot_page {
	/* the first cache line */
	uint32_t tid; /* 0: the slot is free */
	uint16_t fn; /* innermost call in progress or last one inside it, valid while depth > 0 */
	uint8_t depth; /* calls in progress, one inside the other */
	uint8_t device;
	uint64_t since; /* time the outermost call in progress began */
	uint64_t inner_since; /* depth > 1: time the innermost call in progress began, 0 unknown */
	uint64_t stream; /* of the innermost inspected call in progress */
	uint16_t outer_fn; /* outermost call in progress */
	uint16_t context;
	uint32_t wait_holder; /* thread that had the lock when the wait began, 0 unknown */
	uint64_t caller; /* return address of the outermost call in progress */
	uint64_t wait_object; /* as in spy_rec_wait */
	uint64_t wait_kind; /* enum spy_wait_kind + 1 while the thread waits, else 0 */
	/* the second cache line: totals of the slot, all its threads together */
	uint64_t calls; /* records of calls written */
	uint64_t pageable; /* async copies with a pageable side */
	uint64_t lost;
	/* A wait in progress (0 in traces of before): when it began, valid while wait_kind is. */
	uint64_t wait_since;
	/* A wait between two calls, valid while depth is 0. It may have been left by longjmp or a
	 * cancellation: then a call has begun, or calls has changed, since. */
	uint8_t outside_kind; /* enum spy_wait_kind + 1 while the thread waits, else 0 */
	uint8_t asleep; /* 1: the thread records nothing now, and counts are not to be read */
	uint16_t outside_calls; /* the lower bits of calls when it began */
	uint32_t outside_holder; /* as wait_holder; the thread that is to end */
	uint64_t outside_object; /* as in spy_rec_outside; of several descriptors 0 */
	uint64_t outside_since;
	uint64_t outside_caller; /* return address of the C library's function */
	/* calls of counted functions since the last SPY_EV_COUNT; spy_board.counter_fn says whose */
	uint64_t counts[SPY_BOARD_COUNTERS];
};

_Static_assert(sizeof(struct spy_packet) == 96, "layout");
_Static_assert(sizeof(struct spy_rec_head) == 24, "layout");
_Static_assert(sizeof(struct spy_rec_inner) == 16, "layout");
_Static_assert(sizeof(struct spy_rec_call) == 32, "layout");
_Static_assert(sizeof(struct spy_rec_op) == 48, "layout");
_Static_assert(sizeof(struct spy_rec_launch) == 40, "layout");
_Static_assert(sizeof(struct spy_rec_copy) == 48, "layout");
_Static_assert(sizeof(struct spy_rec_memory) == 56, "layout");
_Static_assert(sizeof(struct spy_rec_thread) == 32, "layout");
_Static_assert(sizeof(struct spy_rec_count) == 24, "layout");
_Static_assert(sizeof(struct spy_rec_wait) == 64, "layout");
_Static_assert(sizeof(struct spy_rec_taken) == 24, "layout");
_Static_assert(sizeof(struct spy_rec_sched) == 40, "layout");
_Static_assert(sizeof(struct spy_rec_outside) == 56, "layout");
_Static_assert(sizeof(struct spy_rec_non_cuda_thread) == 32, "layout");
_Static_assert(sizeof(struct spy_rec_mps) == 28, "layout");
_Static_assert(sizeof(struct spy_rec_share) == 24, "layout");
_Static_assert(sizeof(struct spy_rec_held) == 32, "layout");
_Static_assert(sizeof(struct spy_rec_stack) == 16 + 8 * SPY_STACK_MOST, "layout");
_Static_assert(sizeof(struct spy_rec_python_code) == 24, "layout");
_Static_assert(sizeof(struct spy_rec_python_stack) == 16 + 8 * SPY_PYTHON_MOST, "layout");
_Static_assert(sizeof(struct spy_rec_place) == 16, "layout");
_Static_assert(sizeof(struct spy_rec_sample) == 32, "layout");
_Static_assert(sizeof(struct spy_rec_gpu_look) == 72, "layout");
_Static_assert(sizeof(struct spy_rec_gpu_op) == 56, "layout");
_Static_assert(sizeof(struct spy_rec_gpu_submit) == 40, "layout");
_Static_assert(sizeof(struct spy_rec_gpu_clock) == 40, "layout");
_Static_assert(sizeof(struct spy_rec_gpu_state) == 128, "layout");
_Static_assert(sizeof(struct spy_rec_range) == 16, "layout");
_Static_assert(sizeof(struct spy_rec_range_value) == 40, "layout");
_Static_assert(sizeof(struct spy_rec_range_name) == 16, "layout");
_Static_assert(sizeof(struct spy_rec_nvtx_name) == 24, "layout");
_Static_assert(sizeof(struct spy_rec_nccl_comm) == 80, "layout");
_Static_assert(sizeof(struct spy_rec_collective) == 48, "layout");
_Static_assert(sizeof(struct spy_rec_collective_ran) == 48, "layout");
_Static_assert(sizeof(struct spy_rec_nccl_state) == 128, "layout");
_Static_assert(sizeof(struct spy_rec_host_function) == 56, "layout");
_Static_assert(sizeof(struct spy_rec_window) == 128, "layout");
_Static_assert(sizeof(struct spy_rec_cost) == 96, "layout");
_Static_assert(sizeof(struct spy_rec_part) == 64, "layout");
_Static_assert(sizeof(struct spy_board) <= SPY_BOARD_PAGE, "layout");
_Static_assert(sizeof(struct spy_slot_page) == SPY_BOARD_PAGE, "layout");

#endif
