/*
 * analyzer/lanes/store.h: a lane and its items, and how they stay few: of too many calls, and operations of GPUs, those next to
 * each other are merged; of other items the shortest are dropped.
 */
#ifndef CUDASPY_LANES_STORE_H
#define CUDASPY_LANES_STORE_H

#include "account/buckets.h"
#include "base/util.h"

/* clang-format off */
/* The kinds of items but calls, their values in order (docs/HTML_REPORT.md), and how many there may be. What each value is,
 * value types say: for encode.c. */
#define ITEM_KINDS(KIND) \
	KIND(WAITS,       "waits",       200000, "waits",                "PLTFP") \
	KIND(GAPS,        "gaps",        100000, "waits between calls",  "PWT") \
	KIND(RANGES,      "ranges",      100000, "ranges",               "NP") \
	KIND(OPS,         "ops",         300000, "operations of GPUs",   "NPTPP") \
	KIND(IDLE,        "idle",        100000, "idle times of GPUs",   "PP") \
	KIND(COLLECTIVES, "collectives", 200000, "parts of collectives", "NPPRPP") \
	KIND(LOOKS,       "looks",       100000, "answers of NVML",      "PPPNPP")
/* clang-format on */

enum item_kind {
#define ITEM_KIND(name, key, most, text, values) ITEMS_##name,
	ITEM_KINDS(ITEM_KIND)
#undef ITEM_KIND
		ITEM_KIND_COUNT
};

/* What a value is: P a number, N a name, W a place (labels.c), L a lock's index + 1, F a function + 1, T a thread's index + 1,
 * R a rank's index + 1. */
enum item_value {
	VALUE_PLAIN = 'P',
	VALUE_NAME = 'N',
	VALUE_WHERE = 'W',
	VALUE_LOCK = 'L',
	VALUE_FUNCTION = 'F',
	VALUE_THREAD = 'T',
	VALUE_RANK = 'R',
};

#define ITEM_VALUES 6

/* The values of ITEMS_LOOKS; 0 is unknown. */
enum look_value {
	LOOK_BUSY, /* thousandths of the time in which a kernel ran, + 1 */
	LOOK_CLOCK, /* MHz */
	LOOK_CLOCK_MOST,
	LOOK_SLOWED, /* a name: by what; 0 by nothing */
	LOOK_POWER, /* W */
	LOOK_TEMPERATURE, /* degrees Celsius */
};

struct item {
	uint64_t begin_ns, end_ns;
	bool whole; /* in a window: stays as it is */
	uint64_t values[ITEM_VALUES];
};

struct call_part {
	uint64_t ns;
	enum bucket bucket;
};

struct call_item {
	uint64_t begin_ns, end_ns, expected_ns;
	uint64_t where;
	uint64_t weight_ns; /* of merged ones: by so much the name leads */
	uint32_t name, about;
	uint32_t count;
	uint32_t parts_at; /* in the lane's parts */
	uint8_t n_parts;
	bool whole;
};

enum lane_kind { LANE_RANK, LANE_GPU, LANE_STREAM, LANE_THREAD };

struct lane {
	enum lane_kind kind;
	const struct process *process;
	const struct thread *thread; /* of threads */
	uint32_t index; /* of a GPU in idle.gpus, of a rank in ranks.all */
	uint32_t stream, context; /* of a stream: CUPTI's numbers */
	uint32_t group; /* lanes of a rank, or a process, lie together */
	uint32_t number; /* once they are in order */
	struct call_item *calls;
	struct call_part *parts;
	size_t n_calls, n_parts;
	struct item *items[ITEM_KIND_COUNT];
	size_t n_items[ITEM_KIND_COUNT];
	uint64_t busy_until_ns; /* of a GPU: of all its streams */
	uint64_t looked_ns; /* of a GPU: when NVML was asked last; 0: not yet */
};

struct window {
	uint64_t begin_ns, end_ns;
};

#define WINDOWS_MOST 16

/* All lanes. Start with zeros. */
struct store {
	struct lane **all;
	size_t n;
	uint64_t calls_seen, items_seen[ITEM_KIND_COUNT]; /* of the trace */
	uint64_t n_calls, n_items[ITEM_KIND_COUNT]; /* of all lanes */
	/* So many the last round left: where windows keep more than there should be, the next one waits until there are twice
	 * as many. */
	uint64_t left_calls, left[ITEM_KIND_COUNT];
	/* Calls, operations, and what NVML says, that lie within so much are merged; of others, shorter ones are dropped. 0: none. Where too
	 * many are equally long, of the short ones one in so many is kept; 0: none is dropped for that. */
	uint64_t merged_ns, least_ns[ITEM_KIND_COUNT], one_in[ITEM_KIND_COUNT];
	uint64_t dropped[ITEM_KIND_COUNT], sampled[ITEM_KIND_COUNT];
	uint64_t run_ns; /* the trace's length as far as it is known: sets the first threshold */
	struct window windows[WINDOWS_MOST];
	size_t n_windows;
	double share; /* of the most items there may be: less, where they do not compress; 0: all */
};

void store_release(struct store *store);
struct lane *store_add_lane(struct store *store, enum lane_kind kind);

/* n parts, at most one for each bucket, which are copied. */
void store_add_call(struct store *store, struct lane *lane, struct call_item call,
		    const struct call_part *parts, size_t n);

void store_add_item(struct store *store, struct lane *lane, enum item_kind kind,
		    const struct item *item);

/* After the last one: fewer by half of all kinds, for they take too many bytes. */
void store_halve(struct store *store);

/* After the last one: in the order of their begins, and of those that begin together the longest first. */
void store_sort(struct store *store);

#endif
