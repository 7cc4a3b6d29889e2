/*
 * analyzer/timeline/sink.h: what a format for timelines writes: slices in tracks, arrows between them, counters. events.c makes
 * them of what happened; analyzer/export/chrome.c and perfetto.c write them.
 *
 * Slices of a track are given in the order of their begins, the outer before the inner, and slice_end for each after all that
 * lie in it: a track is a stack. Those of different tracks, and stretches of one track that are apart, come in any order.
 */
#ifndef CUDASPY_TIMELINE_SINK_H
#define CUDASPY_TIMELINE_SINK_H

#include "account/buckets.h"
#include "base/util.h"

enum track_kind {
	TRACK_GROUP, /* a process, a GPU: has no slices, but tracks */
	TRACK_THREAD, /* of a process */
	TRACK_ROW, /* any other with slices; tracks of the same name in a group are rows of one */
	TRACK_COUNTER,
};

struct track {
	enum track_kind kind;
	uint32_t number; /* of all tracks, from 1 */
	const struct track *parent; /* NULL: of a group */
	/* Of a group's tracks the first number is the group's. Processes and threads have their own, if no other one has
	 * the same; else, and of other tracks, there is no process or thread of that number. */
	uint32_t pid, tid;
	bool process; /* of a group: pid is a process's */
	uint32_t order; /* among the tracks of a group */
	char *name;
	uint64_t until_ns; /* end of the last slice */
	struct track *next_row; /* for slices that would not fit into this one */
	/* Of a counter: what is not written yet, and when the last was. */
	uint64_t value, value_ns, written_ns;
	bool open, any;
};

/* clang-format off */
/* What a slice is. */
#define SLICE_CATEGORIES(CATEGORY) \
	CATEGORY(CALL,       "call") \
	CATEGORY(NESTED,     "nested call") \
	CATEGORY(WAIT,       "wait") \
	CATEGORY(OUTSIDE,    "outside") \
	CATEGORY(RANGE,      "range") \
	CATEGORY(MARK,       "mark") \
	CATEGORY(OPERATION,  "operation") \
	CATEGORY(IDLE,       "idle") \
	CATEGORY(COLLECTIVE, "collective") \
	CATEGORY(FINDING,    "finding") \
	CATEGORY(FLOW,       "flow")

/* What is known of it, and how it is told: as a number, a handle (hexadecimal) or a name. */
#define SLICE_ARGUMENTS(ARGUMENT) \
	ARGUMENT(BEFORE,      "before_recording_ns", NUMBER) \
	ARGUMENT(EXPECTED,    "expected_ns", NUMBER) \
	ARGUMENT(WHERE,       "where",       NAME) \
	ARGUMENT(GPU,         "gpu",         NUMBER) \
	ARGUMENT(STREAM,      "stream",      HANDLE) \
	ARGUMENT(RESULT,      "failed",      NAME) \
	ARGUMENT(KERNEL,      "kernel",      NAME) \
	ARGUMENT(BYTES,       "bytes",       NUMBER) \
	ARGUMENT(BLOCKS,      "blocks",      NUMBER) \
	ARGUMENT(DIRECTION,   "direction",   NAME) \
	ARGUMENT(FROM,        "from",        NAME) \
	ARGUMENT(TO,          "to",          NAME) \
	ARGUMENT(CAPTURED,    "captured",    NUMBER) \
	ARGUMENT(DOES,        "does",        NAME) \
	ARGUMENT(MEMORY,      "memory",      NAME) \
	ARGUMENT(LOCK,        "lock",        NAME) \
	ARGUMENT(HOLDER,      "holder",      NAME) \
	ARGUMENT(HOLDER_CALL, "holder_call", NAME) \
	ARGUMENT(HOLDERS,     "holders",     NUMBER) \
	ARGUMENT(RELEASE,     "release_ns",  NUMBER) \
	ARGUMENT(WAITED,      "waited_ns",   NUMBER) \
	ARGUMENT(TIMES,       "times",       NUMBER) \
	ARGUMENT(UNENDED,     "unended",     NUMBER) \
	ARGUMENT(THREAD,      "thread",      NAME) \
	ARGUMENT(CORRELATION, "correlation", NUMBER) \
	ARGUMENT(LATENCY,     "since_submission_ns", NUMBER) \
	ARGUMENT(IDLE,        "idle_ns",     NUMBER) \
	ARGUMENT(NUMBER,      "number",      NUMBER) \
	ARGUMENT(COMM,        "communicator", HANDLE) \
	ARGUMENT(COUNT,       "count",       NUMBER) \
	ARGUMENT(LAST,        "last_rank",   NAME) \
	ARGUMENT(HOST_TIMES,  "host_times",  NUMBER) \
	ARGUMENT(WHAT,        "what",        NAME) \
	ARGUMENT(CURE,        "cure",        NAME) \
	ARGUMENT(COST,        "cost_ns",     NUMBER) \
	ARGUMENT(GAIN,        "gain_ns",     NUMBER)
/* clang-format on */

enum slice_category {
#define CATEGORY(name, text) SLICE_##name,
	SLICE_CATEGORIES(CATEGORY)
#undef CATEGORY
		SLICE_CATEGORY_COUNT
};

enum slice_argument_key {
#define ARGUMENT(name, text, form) ARGUMENT_##name,
	SLICE_ARGUMENTS(ARGUMENT)
#undef ARGUMENT
	/* parts of the call's time, in nanoseconds: "lock_ns" */
	ARGUMENT_BUCKET,
	ARGUMENT_COUNT_ALL = ARGUMENT_BUCKET + BUCKET_COUNT
};

enum argument_form { FORM_NUMBER, FORM_HANDLE, FORM_NAME };

struct slice_argument {
	enum slice_argument_key key;
	uint64_t value; /* of a name its number: sink_name */
};

#define SLICE_ARGUMENTS_MOST 20

struct slice {
	struct track *track;
	uint64_t begin_ns, end_ns; /* since the recording's begin */
	enum slice_category category;
	uint32_t name; /* 0: none */
	uint64_t flow; /* number of the arrow that begins here, or … */
	bool flow_ends; /* … ends here; 0: none */
	uint8_t depth; /* for events.c: of slices with the same times the lower one is outside */
	uint8_t n;
	struct slice_argument arguments[SLICE_ARGUMENTS_MOST];
};

/* Functions may be NULL. */
struct sink {
	void *data;
	/* What follows until the next of these belongs together. */
	void (*next)(void *data);
	void (*track)(void *data, struct track *track); /* a new one; its parent is known */
	void (*slice)(void *data, const struct slice *slice);
	void (*slice_end)(void *data, struct track *track, uint64_t ns);
	void (*mark)(void *data, const struct slice *slice); /* begin and end are the same */
	/* One end of an arrow, somewhere within a slice of the track. */
	void (*flow)(void *data, const struct slice *point);
	void (*counter)(void *data, struct track *track, uint64_t ns, uint64_t value);
};

/* By number. */
extern const char *const slice_categories[SLICE_CATEGORY_COUNT];
extern const char *const slice_argument_keys[ARGUMENT_COUNT_ALL];
extern const enum argument_form slice_argument_forms[ARGUMENT_COUNT_ALL];

static inline void slice_add(struct slice *slice, enum slice_argument_key key, uint64_t value)
{
	if (slice->n < SLICE_ARGUMENTS_MOST)
		slice->arguments[slice->n++] = (struct slice_argument){key, value};
}

/* The same for numbers that are not always known, and names. */
static inline void slice_add_known(struct slice *slice, enum slice_argument_key key, uint64_t value)
{
	if (value)
		slice_add(slice, key, value);
}

#endif
