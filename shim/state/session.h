/*
 * shim/state/session.h: one process' recording, from its first CUDA call to its end. Used on the
 * application's threads.
 */
#ifndef CUDASPY_SHIM_SESSION_H
#define CUDASPY_SHIM_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/clock.h"
#include "lib/disk.h"
#include "lib/elf_object.h"
#include "process/heap.h"
#include "lib/lock.h"
#include "record/range_names.h"
#include "stack/python.h"
#include "stack/stack.h"
#include "process/text.h"
#include "record/part.h"
#include "state/thread.h"

#define SPY_NONCUDA_THREADS 64 /* whose names get into the trace */

enum spy_session_state {
	SPY_SESSION_NONE,
	SPY_SESSION_BEGINNING, /* a thread is making the files */
	SPY_SESSION_ACTIVE,
	SPY_SESSION_FAILED
};

struct spy_session {
	_Atomic int state; /* enum spy_session_state */
	int pid;
	struct spy_lock early_lock; /* notes made before the session began */
	struct spy_lock look_lock; /* modules.c */
	struct spy_lock lock; /* slots, size bound, and the session's own stream */
	char directory[SPY_PATH_MAX -
		       32]; /* absolute; room for a file name; of the part being written */
	_Atomic uint32_t part; /* which that is, from 1 on; 0: no folder yet */
	uint8_t uuid[16];
	struct spy_clock_pair begun;
	_Atomic uint64_t frequency;
	struct spy_board *board;
	_Atomic uint32_t slots; /* slots in use or free, 0 (the session's own stream) included */
	uint32_t free_slot; /* head of the list of free ones, 0 none */
	/* Slots that are no thread's (spy_thread_take), by the kind of their stream; NULL: none. */
	struct spy_thread *_Atomic taken[SPY_STREAM_KINDS];
	_Atomic uint32_t alive; /* with a size bound: threads that have a slot */
	_Atomic uint64_t used,
		grown; /* bytes of streams on the disk; of them those that tails have grown by */
	_Atomic bool damaged; /* files of the trace were, and no message has said so yet */
	uint32_t said; /* kinds of errors that were said: bits */
	/* Records of the session's own stream that were lost, in all parts. */
	_Atomic uint64_t untold;
	struct spy_file_id board_id;
	bool given; /* the folder has become another user's (identity.c) */
	uint32_t slot_tids[SPY_BOARD_SLOTS]; /* thread that has the slot now, 0 none */
	uint32_t noncuda_threads
		[SPY_NONCUDA_THREADS]; /* non-CUDA threads whose names are in the trace; 0 none */
	struct spy_object_counters objects; /* as of the last look at the modules */
	bool driver_described; /* GPUs and versions are in the trace */
	bool driver_begun; /* cuInit was called; what there is of MPS was looked for */
	_Atomic bool ended; /* spy_lifecycle_end ran */
	_Atomic uintptr_t ender; /* of a process about to die: only this thread stores packets */
	struct spy_lock wrap_lock; /* wrap.c: the map from real functions to stubs */
	struct known_address *known_addresses;
	uint64_t kernels; /* names numbered so far */
	struct spy_kernel_name *kernel_names;
	struct spy_note_text *notes; /* said already */
	uint32_t n_notes;
	struct spy_heap heap;
	struct spy_text environment; /* of the metadata */
	struct spy_module *modules; /* known to the trace */
	struct spy_stack_site stack_sites[SPY_STACK_SITES], stack_kernels[SPY_STACK_KERNELS];
	struct spy_python pythons[2]; /* python.c: the interpreter, if … */
	const struct spy_python *python_here; /* … it points to one of them */
	const struct spy_python *python_last; /* the one described last; under the look_lock */
	uint32_t python_unloads; /* of any library, so far */
	uint32_t library_users, library_unloaders; /* threads: libraries.c */
	bool python_forgotten; /* to be looked for, though nothing was loaded or unloaded since */
	struct spy_python_code python_codes[SPY_PYTHON_CODES]; /* stack.c */
	/* ranges.c: which packet, or that the trace, has the name; old packets are deleted */
	uint64_t range_name_recorded[SPY_RANGE_NAMES];
	bool range_bounded;
	struct spy_parts parts;
};

/* When the library was loaded. */
extern struct spy_clock_pair spy_loaded;

/* The process' session; zeros in a forked child. NULL before the library was initialised. */
extern struct spy_session *spy_session;

/* Its slots, and the parts of the recording that are finished (part n in place n % SPY_PARTS_MOST):
 * 45 MB of address space, which a process without CUDA does not have. Zeros in a forked child. */
extern struct spy_thread *spy_threads;
extern struct spy_part *spy_finished_parts;

/* Makes room for them, once. False: there is no memory. */
bool spy_session_map_tables(void);

/* In a forked child, where the kernel has not done it (MADV_WIPEONFORK): zeros. */
void spy_session_wipe(void);

/* The library is initialised. False: the kernel does not wipe its memory in a forked child. */
bool spy_session_init(void);

/* Has one begun, and does it record? Registration of kernels runs before there is one. */
bool spy_session_active(void);

/* Will nothing be recorded, for whatever reason? */
bool spy_session_failed(void);

/* Takes the number of calls that were lost before there was a board. */
uint64_t spy_session_take_lost(void);

/*
 * A record in the session's own stream, for what belongs to no thread. Takes the session's lock;
 * spy_session_commit releases it. NULL if there is no room, or the lock was not to be had (and then
 * none is held).
 */
void *spy_session_append(enum spy_event event, size_t bytes);

/* The same for a record that is not lost where this says NULL: the caller comes again in a while, or it is told otherwise. */
void *spy_session_offer(enum spy_event event, size_t bytes);
void spy_session_commit(size_t bytes);

/* Another part of the recording has begun: the session's stream goes on there. Session lock held. */
void spy_session_turn(void);

/* A whole record; its time is filled in. Where it lies until the next one, or NULL. Session lock held. */
void *spy_session_put(const void *record, size_t bytes);

#endif
