/*
 * analyzer/live/recent.h: what the ends of a running program's streams say: who called, what was handed to GPUs, which
 * collective operations are open, who took which lock. Of large traces only the ends of the streams are
 * read; what then is not known, is not claimed.
 */
#ifndef CUDASPY_LIVE_RECENT_H
#define CUDASPY_LIVE_RECENT_H

#include "base/hash.h"
#include "model/model.h"

#define RECENT_PACKETS \
	4 /* of each stream of larger traces, besides its tail; fewer where there are many streams */

/* Work of a GPU's stream that no call has waited for since. */
struct recent_key {
	uint64_t
		stream; /* handle; of the per-thread default stream with the thread's index, as work.h has it */
	uint32_t process, device;
};

struct recent_work {
	struct recent_key key;
	uint64_t outstanding; /* operations, at most */
	/* the last one handed over, and the last kernel: */
	uint64_t ns, caller;
	const struct thread *thread;
	const struct stack *stack; /* NULL: none */
	uint32_t fn;
	uint32_t kernel; /* number in the process; 0: none or unknown */
	uint64_t
		host_caller; /* a function on the host was handed over behind it, from there; 0: none */
	UT_hash_handle hh;
};

/* A lock: who had it last. */
struct recent_lock {
	struct recent_lock_key {
		uint64_t object;
		uint64_t process;
	} key;
	uint64_t taken_ns, given_ns; /* 0: not seen */
	uint32_t taken_tid, given_tid;
	UT_hash_handle hh;
};

/* A process's part in a communicator. */
struct recent_comm {
	struct recent_comm_key {
		uint32_t process, comm;
	} key;
	uint64_t hash;
	uint32_t rank, ranks, tid;
	uint8_t device;
	char name[32];
	bool told; /* its own record was read */
	/* by function: the last operation submitted */
	struct recent_op {
		bool seen, follows, ran, graph;
		uint64_t seq, ns, count;
		uint32_t id;
		const struct thread *thread;
		uint8_t bytes_each;
	} last[SPY_NCCL_FUNCS];
	uint8_t last_func; /* of the last of all */
	uint64_t operations; /* that were read of */
	UT_hash_handle hh;
};

/* A stack of a call from that return address. */
struct recent_site {
	struct recent_site_key {
		uint64_t caller, process;
	} key;
	const struct stack *stack; /* the last one */
	UT_hash_handle hh;
};

struct recent {
	struct recent_work *works;
	struct recent_lock *locks;
	struct recent_comm *comms;
	struct recent_event *events;
	struct recent_site *sites;
	bool partly; /* not everything was read */
};

/* Reads the set's streams into model, which is new, and what is above: all of them if they have no more than so many
 * bytes, else their ends. */
void recent_read(struct recent *recent, struct model *model, uint64_t whole_bytes);
void recent_release(struct recent *recent);

/* Work of that stream of the thread's process and device; stream 0: the GPU's work that was handed over last. NULL:
 * none is outstanding. */
const struct recent_work *recent_find_work(const struct recent *recent, uint32_t process,
					   uint32_t device, uint64_t stream,
					   const struct thread *thread);

/* Operations outstanding of the process on the device, at most. */
uint64_t recent_outstanding(const struct recent *recent, uint32_t process, uint32_t device);

/* The stack of the last call from there that has one; NULL: there is none. */
const struct stack *recent_stack(const struct recent *recent, uint32_t process, uint64_t caller);

/*
 * Who has the lock, of which `holder` was read at since_ns. It may have changed hands since, as far as records say so.
 * 0: unknown.
 */
uint32_t recent_holder(const struct recent *recent, uint32_t process, uint64_t object,
		       uint32_t holder, uint32_t waiter, uint64_t since_ns);

#endif
