/*
 * shim/nccl/operations.h: communicators and operations that NCCL's profiler interface tells of become records. Called by
 * profiler.c on whatever thread NCCL calls it on: the program's, NCCL's, the driver's.
 */
#ifndef CUDASPY_SHIM_NCCL_OPERATIONS_H
#define CUDASPY_SHIM_NCCL_OPERATIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "cudaspy/trace_format.h"
#include "stack/unwind.h"

/*
 * What NCCL gets for communicators and events are numbers, not addresses: some come back late, twice, or from another
 * process, and are looked up. 0 is none.
 */
typedef uint64_t spy_nccl_handle;

/* A communicator. What is not known is 0. */
struct spy_nccl_comm {
	uint16_t interface;
	uint64_t hash;
	uint32_t rank, ranks, nodes;
	char name[32];
};

/* An operation that is submitted. */
struct spy_nccl_said {
	uint64_t hash; /* interfaces 1 to 3: of the communicator */
	uint32_t rank; /* likewise */
	const char *name; /* likewise; or NULL */
	uint64_t seq, count;
	int32_t peer;
	uint8_t func, flags, bytes_each, algorithm, protocol, channels;
	bool followed; /* what its kernel does will be told */
};

/* An operation is submitted: is it followed? *change: with the next one that may be otherwise, as spy_nccl_paced_next
 * says. */
bool spy_nccl_paced(bool *change);
bool spy_nccl_paced_next(void);

spy_nccl_handle spy_nccl_comm_begin(const struct spy_nccl_comm *comm);
void spy_nccl_comm_end(spy_nccl_handle comm);

/* No communicator ends meanwhile, and NCCL stays. False: one begins or ends just now; else it is to be let go at once. */
bool spy_nccl_comms_hold(void);
void spy_nccl_comms_let_go(void);

/* The number of a send to that rank, or of a receive from it, from 1 on; called once for each, whether it is recorded or
 * not. 0: unknown. */
uint64_t spy_nccl_pair_number(uint32_t comm, int32_t peer, bool receives);
void spy_nccl_pairs_forked(void);

/* Writes the operation's record. from: who submits it. Returns its handle; 0: it is not followed. */
spy_nccl_handle spy_nccl_submit(spy_nccl_handle comm, const struct spy_nccl_said *said,
				const struct spy_unwind *from);

/* A channel of its kernel begins (0: the time is not known); the channel's handle, 0: there is no such operation. */
spy_nccl_handle spy_nccl_channel_begin(spy_nccl_handle operation, uint64_t timer_ns);
void spy_nccl_channel_time(spy_nccl_handle channel, uint64_t timer_ns);

/* An operation was handed over, or a channel has ended. Other handles are no error. */
void spy_nccl_stop(spy_nccl_handle handle);

/* Handles for events that say something of the operations within them. */
spy_nccl_handle spy_nccl_mark(bool captured);

/* The library is loaded. state: enum spy_nccl_state; text: what there is to say of it. */
void spy_nccl_state(uint16_t state, const char *text);

/* When a session begins: writes who serves the interface, where it is not this library. */
void spy_nccl_begin(void);

/* When it ends: writes what has run, and was not said to have ended as a whole. */
void spy_nccl_end(void);

void spy_nccl_forked(void);

#endif
