/*
 * tests/stress/stress.h: a random program. A seed is a plan: a tree of actors (threads, coroutines, child
 * processes), each with a generator of its own, from which its actions are drawn. What an actor does and
 * computes depends on nothing else, so what the program shows is the same each time, recorded or not.
 *
 * What actors computed is written into a table, a file that all processes of the program map, and shown by
 * `stress show` when all have ended, in the order of the actors' names. The table also has a row for each
 * program image: how many CUDA calls it began and completed, for the trace to be held against.
 */
#ifndef STRESS_H
#define STRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What an actor may do where it is. */
enum {
	MAY_FORK = 1, /* it is its process' only thread */
	MAY_LOAD = 2, /* use the loader and call exit; not in a child of one of several threads */
	MAY_THREAD = 4, /* start threads */
	MAY_SPAWN = 8, /* start processes, if as one of several threads */
	MAY_ALLOCATE = 16, /* make calls that allocate */
	MAY_LOCK = 32, /* make calls that take locks */
	MAY_ALL = 63,
};

/* What can be drawn, and what one must be allowed to do. ACTIONS=name,name allows only these in the whole
 * program; ACTIONS=-name,-name all but these. Those of weight 0 are ways in which others are done. */
/* clang-format off */
#define ACTIONS(ROW) \
	ROW(calls,        6, 0)            /* a burst of CUDA calls */ \
	ROW(threads,      4, MAY_THREAD)   /* threads, joined */ \
	ROW(detached,     2, MAY_THREAD)   /* threads, detached */ \
	ROW(small,        1, MAY_THREAD)   /* a thread with a stack of 16 KiB */ \
	ROW(keys,         1, MAY_THREAD)   /* a thread whose keys' destructors call CUDA */ \
	ROW(cancel,       1, MAY_THREAD)   /* a thread that is cancelled at a cancellation point, also in a call */ \
	ROW(async,        1, MAY_THREAD)   /* ... wherever it is */ \
	ROW(coroutines,   2, 0)            /* swapcontext between calls and out of them, also to other threads */ \
	ROW(jumps,        1, 0)            /* longjmp out of a host function */ \
	ROW(fork,         4, MAY_FORK)     /* by the only thread */ \
	ROW(forkmt,       3, MAY_SPAWN)    /* by one of several */ \
	ROW(clone,        1, MAY_SPAWN)    /* by the system call alone */ \
	ROW(vfork,        1, MAY_SPAWN)    /* and exec, also a failing one */ \
	ROW(spawn,        2, MAY_SPAWN)    /* posix_spawn */ \
	ROW(exec,         2, MAY_SPAWN)    /* fork and exec */ \
	ROW(kill,         1, MAY_FORK)     /* a child that is killed while it calls */ \
	ROW(limits,       1, MAY_FORK)     /* a child under setrlimit */ \
	ROW(descriptors,  1, MAY_FORK)     /* a child that closes all, opens some, looks at their numbers */ \
	ROW(plugins,      3, MAY_LOAD)     /* dlopen, dlclose of what calls CUDA, also in its constructors */ \
	ROW(lookups,      2, MAY_LOAD)     /* dlsym, dlvsym */ \
	ROW(objects,      1, MAY_LOAD)     /* dl_iterate_phdr, with a callback that calls CUDA */ \
	ROW(timers,       3, 0)            /* handlers that call CUDA, by a timer, while other things are done */ \
	ROW(kicks,        2, MAY_THREAD)   /* ... by pthread_kill */ \
	ROW(altstack,     2, 0)            /* ... on an alternate stack */ \
	ROW(faults,       1, 0)            /* SIGSEGV and SIGBUS of the program's own, left by siglongjmp */ \
	ROW(mask,         1, 0)            /* calls with all signals blocked */ \
	ROW(chdir,        1, 0)            /* the working directory changes */ \
	ROW(tinystack,    0, 0)            /* alternate stacks of 8 KiB */ \
	ROW(early,        0, 0)            /* a handler's call may be the process' first one */ \
	ROW(handlerforks, 0, 0)            /* handlers fork */ \
	ROW(ends,         0, 0)            /* processes end otherwise than by exit */
/* clang-format on */

enum action {
#define ROW(name, weight, needs) ACTION_##name,
	ACTIONS(ROW)
#undef ROW
		ACTION_CNT
};

bool allowed(enum action action);

struct actor {
	char path[56];
	uint64_t random;
	uint64_t sum; /* of what it saw: what has to be the same each time */
	int depth;
	unsigned int may;
};

#define DEPTH_MOST 3

uint64_t draw(struct actor *actor);
unsigned int below(struct actor *actor, unsigned int end);
static inline bool one_in(struct actor *actor, unsigned int n)
{
	return !below(actor, n);
}
void see(struct actor *actor, uint64_t value);

/* A part of the plan of `parent`. */
void actor_begin(struct actor *actor, struct actor *parent, const char *what, int number);
/* Writes down what it saw. */
void actor_end(struct actor *actor);
/* Draws actions and does them. */
void act(struct actor *actor);

/* ---- the table ---- */

enum { ACTORS_MOST = 4096, IMAGES_MOST = 512 };

struct table {
	atomic_uint actors, images, full;
	struct seen {
		char path[56];
		uint64_t sum;
		atomic_uint done;
	} actor[ACTORS_MOST];
	struct image {
		atomic_int pid;
		atomic_uint
			may_lose; /* handlers that interrupt the recorder, ends with threads at work; 2: may have no trace */
		atomic_ulong begun, done; /* calls of the runtime's */
		char path[56];
	} image[IMAGES_MOST];
};

extern struct table *table;
extern struct image *image; /* this process' */
void image_begin(const char *path);

/* ---- calls ---- */

#define CALL(call) \
	({ \
		stress_call_begins(); \
		__auto_type result_ = (call); \
		stress_call_ends(); \
		result_; \
	})
void stress_call_begins(void) __attribute__((visibility("default")));
void stress_call_ends(void) __attribute__((visibility("default")));

extern bool
	simulated; /* on the simulator: no calls in handlers and host functions, none after fork */

void calls_begin(void); /* registers the kernels */
void burst(struct actor *actor); /* a number of calls, as the actor may */
void burst_of_free(struct actor *actor, int n); /* of such that take no lock */
void call_in_handler(unsigned int number); /* a few, async-signal-safe, without an actor */
void call_for_ever(void);
void calls_leave_by_jump(struct actor *actor);

/* ---- processes ---- */

extern const char *self; /* the program, absolute */
extern atomic_int detached; /* threads alive */

int wait_for(pid_t pid); /* exit status, 256 + signal */
void process(struct actor *actor)
	__attribute__((noreturn)); /* acts, and ends the process in some way */
void begin_signals(struct actor *actor);
void begin_process(struct actor *actor); /* of a new or forked image */
void sleep_us(long us);

#define ROW(name, weight, needs) void do_##name(struct actor *actor);
ACTIONS(ROW)
#undef ROW

#endif
