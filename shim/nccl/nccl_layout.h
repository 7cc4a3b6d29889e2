/*
 * shim/nccl/nccl_layout.h: NCCL's profiler interface, versions 1 to 7, as far as it is used here. Declared anew: where a
 * field lies is a fact, its name here is ours. test_nccl_layout compares the offsets with the published shapes.
 *
 * NCCL (2.23 and later) has its plugin's functions in a struct ncclProfiler_vN, the newest one that both know. It calls
 * them on the program's threads (a communicator, an operation that is submitted), on its own (what a kernel's channels
 * did) and on the driver's (operations of a graph that is launched).
 */
#ifndef CUDASPY_SHIM_NCCL_LAYOUT_H
#define CUDASPY_SHIM_NCCL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_INTERFACES 7 /* versions, from 1 on */
#define NCCL_SUCCESS 0

/* Kinds of events: bits of the activation mask. */
enum nccl_event {
	NCCL_EVENT_GROUP = 1 << 0,
	NCCL_EVENT_COLLECTIVE = 1 << 1,
	NCCL_EVENT_P2P = 1 << 2,
	NCCL_EVENT_CHANNEL = 1 << 6, /* of a kernel; 3 and later */
	NCCL_EVENT_COLLECTIVE_CALL = 1 << 9, /* 5 and later, with NCCL_EVENT_COLLECTIVE */
	NCCL_EVENT_P2P_CALL = 1 << 10,
	NCCL_EVENT_COPIES = 1 << 12, /* a collective made of copies; 6 and later */
};

#define NCCL_STATE_CHANNEL_STOP 22 /* 4 and later: the argument is the GPU's timer */

/* What all descriptors begin with. */
struct nccl_head {
	uint64_t type; /* until 4 one byte, and padding of any content */
	void *parent; /* a handle, or NULL */
	int32_t rank;
	int32_t padding;
};

/* ---- 1 ---- */

struct nccl_collective_1 {
	const char *name;
	uint64_t hash;
	uint64_t seq;
	uint8_t func;
	const void *send;
	void *receive;
	size_t count;
	int32_t root;
	uint8_t datatype;
	uint32_t op;
	size_t traffic;
	uint8_t channels, warps, algorithm, protocol;
	int32_t collnet, nvls;
};

struct nccl_p2p_1 {
	const char *name;
	uint64_t hash;
	uint8_t func;
	void *buffer;
	uint8_t datatype;
	size_t count;
	int32_t peer;
};

/* ---- 2 and 3 ---- */

struct nccl_collective_2 {
	const char *name;
	uint64_t hash;
	uint64_t seq;
	const char *func;
	const void *send;
	void *receive;
	size_t count;
	int32_t root;
	const char *datatype;
	size_t traffic;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};

struct nccl_collective_3 {
	const char *name;
	uint64_t hash;
	uint64_t seq;
	const char *func;
	const void *send;
	void *receive;
	size_t count;
	int32_t root;
	const char *datatype;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};

struct nccl_p2p_2 {
	const char *name;
	uint64_t hash;
	const char *func;
	void *buffer;
	const char *datatype;
	size_t count;
	int32_t peer;
};

/* ---- 4 and later ---- */

struct nccl_collective_4 {
	uint64_t seq;
	const char *func;
	const void *send;
	void *receive;
	size_t count;
	int32_t root;
	const char *datatype;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};

struct nccl_p2p_4 {
	const char *func;
	void *buffer;
	const char *datatype;
	size_t count;
	int32_t peer;
	uint8_t channels;
};

struct nccl_channel_4 {
	uint8_t channel;
	uint64_t timer; /* ns */
};

/* ---- 5 and later: the calls that operations are of ---- */

struct nccl_collective_call_5 {
	const char *func;
	size_t count;
	const char *datatype;
	int32_t root;
	void *stream;
	bool captured;
};

struct nccl_p2p_call_5 {
	const char *func;
	size_t count;
	const char *datatype;
	void *stream;
	bool captured;
};

/* ---- 6 and later ---- */

struct nccl_copies_6 {
	uint64_t seq;
	const char *func;
	const void *send;
	void *receive;
	size_t count;
	int32_t root;
	const char *datatype;
};

/* An event's descriptor. Only the fields of the version and the event that it is of are there. */
struct nccl_descriptor {
	struct nccl_head head;
	union {
		struct nccl_collective_1 collective_1;
		struct nccl_collective_2 collective_2;
		struct nccl_collective_3 collective_3;
		struct nccl_collective_4 collective_4;
		struct nccl_p2p_1 p2p_1;
		struct nccl_p2p_2 p2p_2;
		struct nccl_p2p_4 p2p_4;
		struct nccl_channel_4 channel_4;
		struct nccl_collective_call_5 collective_call_5;
		struct nccl_p2p_call_5 p2p_call_5;
		struct nccl_copies_6 copies_6;
	};
};

/* The argument of a change of state. */
union nccl_state {
	uint64_t timer; /* NCCL_STATE_CHANNEL_STOP */
};

typedef int nccl_start(void *context, void **handle, const struct nccl_descriptor *event);
typedef int nccl_stop(void *handle);
typedef int nccl_record(void *handle, int state, const union nccl_state *argument);
typedef int nccl_finalize(void *context);
typedef int nccl_init_1(void **context, int *mask);
typedef int nccl_init_4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
			int ranks, int rank, void *log);
typedef int nccl_init_5(void **context, uint64_t hash, int *mask, const char *name, int nodes,
			int ranks, int rank, void *log);

/* ncclProfiler_vN. */
struct nccl_profiler {
	const char *name;
	union {
		nccl_init_1 *init_1; /* 1 to 3 */
		nccl_init_4 *init_4;
		nccl_init_5 *init_5; /* and later */
	};
	nccl_start *start;
	nccl_stop *stop;
	nccl_record *record;
	nccl_finalize *finalize;
};

/* clang-format off */
#define NCCL_AT(field, offset) \
	_Static_assert(offsetof(struct nccl_descriptor, field) == (offset), "NCCL's layout")

NCCL_AT(head.parent, 8); NCCL_AT(head.rank, 16);
NCCL_AT(collective_1.hash, 32); NCCL_AT(collective_1.seq, 40); NCCL_AT(collective_1.func, 48);
NCCL_AT(collective_1.count, 72); NCCL_AT(collective_1.root, 80); NCCL_AT(collective_1.datatype, 84);
NCCL_AT(collective_1.channels, 104); NCCL_AT(collective_1.algorithm, 106); NCCL_AT(collective_1.protocol, 107);
NCCL_AT(collective_2.hash, 32); NCCL_AT(collective_2.seq, 40); NCCL_AT(collective_2.func, 48);
NCCL_AT(collective_2.count, 72); NCCL_AT(collective_2.root, 80); NCCL_AT(collective_2.datatype, 88);
NCCL_AT(collective_2.channels, 104); NCCL_AT(collective_2.algorithm, 112); NCCL_AT(collective_2.protocol, 120);
NCCL_AT(collective_3.datatype, 88); NCCL_AT(collective_3.channels, 96);
NCCL_AT(collective_3.algorithm, 104); NCCL_AT(collective_3.protocol, 112);
NCCL_AT(collective_4.seq, 24); NCCL_AT(collective_4.func, 32); NCCL_AT(collective_4.count, 56);
NCCL_AT(collective_4.root, 64); NCCL_AT(collective_4.datatype, 72); NCCL_AT(collective_4.channels, 80);
NCCL_AT(collective_4.algorithm, 88); NCCL_AT(collective_4.protocol, 96);
NCCL_AT(p2p_1.hash, 32); NCCL_AT(p2p_1.func, 40); NCCL_AT(p2p_1.datatype, 56); NCCL_AT(p2p_1.count, 64);
NCCL_AT(p2p_1.peer, 72);
NCCL_AT(p2p_2.func, 40); NCCL_AT(p2p_2.datatype, 56); NCCL_AT(p2p_2.count, 64); NCCL_AT(p2p_2.peer, 72);
NCCL_AT(p2p_4.func, 24); NCCL_AT(p2p_4.datatype, 40); NCCL_AT(p2p_4.count, 48); NCCL_AT(p2p_4.peer, 56);
NCCL_AT(p2p_4.channels, 60);
NCCL_AT(channel_4.timer, 32);
NCCL_AT(collective_call_5.captured, 64); NCCL_AT(p2p_call_5.captured, 56);
NCCL_AT(copies_6.seq, 24); NCCL_AT(copies_6.func, 32); NCCL_AT(copies_6.count, 56); NCCL_AT(copies_6.root, 64);
NCCL_AT(copies_6.datatype, 72);
_Static_assert(sizeof(struct nccl_profiler) == 48, "NCCL's layout");
#undef NCCL_AT
/* clang-format on */

#endif
