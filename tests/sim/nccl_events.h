/*
 * tests/sim/nccl_events.h: the profiler interface's structures, versions 1 to 6, as NCCL 2.23 to 2.30
 * hand them to a plugin: layouts are facts of that interface, names are our own. Included by
 * nccl_plugin.c and the selftest's plugin; the recorder has declarations of its own, so that one holds
 * the other to account.
 */
#ifndef SIM_NCCL_EVENTS_H
#define SIM_NCCL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of events, bits of the activation mask. */
enum {
	EVENT_GROUP = 1 << 0,
	EVENT_COLL = 1 << 1,
	EVENT_P2P = 1 << 2,
	EVENT_PROXY_OP = 1 << 3,
	EVENT_PROXY_STEP = 1 << 4,
	EVENT_PROXY_CTRL = 1 << 5,
	EVENT_KERNEL_CH = 1 << 6, /* since version 3 */
	EVENT_NET_PLUGIN = 1 << 7,
	EVENT_GROUP_API = 1 << 8, /* since version 5 */
	EVENT_COLL_API = 1 << 9,
	EVENT_P2P_API = 1 << 10,
	EVENT_KERNEL_LAUNCH = 1 << 11,
};

/* States of events. */
enum {
	STATE_KERNEL_CH_STOP = 22, /* since version 4 */
	STATE_GROUP_START_API_STOP = 23, /* since version 5 */
	STATE_GROUP_END_API_START = 24,
};

struct event1 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *comm_name;
			uint64_t comm_hash, sequence;
			uint8_t func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			uint8_t type;
			uint32_t reduction;
			size_t traffic_bytes;
			uint8_t channels, warps, algorithm, protocol;
			int collnet, nvls;
		} coll;
		struct {
			const char *comm_name;
			uint64_t comm_hash;
			uint8_t func;
			void *buffer;
			uint8_t type;
			size_t count;
			int peer;
		} p2p;
	};
};

struct event2 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *comm_name;
			uint64_t comm_hash, sequence;
			const char *func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *type;
			size_t traffic_bytes;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} coll;
		struct {
			const char *comm_name;
			uint64_t comm_hash;
			const char *func;
			void *buffer;
			const char *type;
			size_t count;
			int peer;
		} p2p;
	};
};

struct event3 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *comm_name;
			uint64_t comm_hash, sequence;
			const char *func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *type;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} coll;
		struct {
			const char *comm_name;
			uint64_t comm_hash;
			const char *func;
			void *buffer;
			const char *type;
			size_t count;
			int peer;
		} p2p;
		struct {
			uint8_t channel;
		} kernel;
	};
};

struct event4 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			uint64_t sequence;
			const char *func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *type;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} coll;
		struct {
			const char *func;
			void *buffer;
			const char *type;
			size_t count;
			int peer;
			uint8_t channels;
		} p2p;
		struct {
			uint8_t channel;
			uint64_t timer;
		} kernel;
	};
};

struct event5 { /* and 6, which has more kinds, for collectives by copy engines */
	uint64_t type;
	void *parent;
	int rank;
	union {
		struct {
			bool captured;
			int depth;
		} group_api;
		struct {
			const char *func;
			size_t count;
			const char *type;
			int root;
			void *stream;
			bool captured;
		} coll_api;
		struct {
			const char *func;
			size_t count;
			const char *type;
			void *stream;
			bool captured;
		} p2p_api;
		struct {
			void *stream;
		} launch;
		struct {
			uint64_t sequence;
			const char *func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *type;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
			void *group;
		} coll;
		struct {
			const char *func;
			void *buffer;
			const char *type;
			size_t count;
			int peer;
			uint8_t channels;
			void *group;
		} p2p;
		struct {
			uint8_t channel;
			uint64_t timer;
		} kernel;
		char most[96];
	};
};

union event_state {
	struct {
		uint64_t timer;
	} kernel;
	char most[16];
};

typedef int (*plugin_init1)(void **context, int *mask); /* to version 3 */
typedef int (*plugin_init4)(void **context, int *mask, const char *name, uint64_t hash, int nodes,
			    int ranks, int rank, void *log);
typedef int (*plugin_init5)(void **context, uint64_t hash, int *mask, const char *name, int nodes,
			    int ranks, int rank, void *log);

/* The symbol ncclProfiler_vN. */
struct plugin {
	const char *name;
	union {
		plugin_init1 init1;
		plugin_init4 init4;
		plugin_init5 init5;
	};
	int (*start)(void *context, void **event, void *description);
	int (*stop)(void *event);
	int (*state)(void *event, int state, void *arguments);
	int (*finalize)(void *context);
};

#endif
