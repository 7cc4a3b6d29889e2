/*
 * analyzer/account/buckets.h: what a call's time is divided into, and what keeps a holder of a
 * lock: one row each, with its key in JSON and its name for people.
 */
#ifndef CUDASPY_BUCKETS_H
#define CUDASPY_BUCKETS_H

#include <stdbool.h>

/* clang-format off */
#define BUCKETS(BUCKET) \
	BUCKET(OWN,          own,          "own work") \
	BUCKET(LOADING,      loading,      "loading code") \
	BUCKET(GPU_INTENDED, gpu_intended, "intended GPU waits") \
	BUCKET(GPU_HIDDEN,   gpu_hidden,   "hidden GPU waits") \
	BUCKET(LOCK,         lock,         "locks") \
	BUCKET(IOCTL,        ioctl,        "kernel module") \
	BUCKET(QUEUE,        queue,        "full queues") \
	BUCKET(MPS,          mps,          "another user's MPS server") \
	BUCKET(NOT_RUNNING,  not_running,  "not running") \
	BUCKET(UNEXPLAINED,  unexplained,  "unexplained")
/* clang-format on */

enum bucket {
#define BUCKET(name, key, text) BUCKET_##name,
	BUCKETS(BUCKET)
#undef BUCKET
		BUCKET_COUNT
};

/* Is what is in the bucket lost? Not what the call is made for, nor the loading of code, which has
 * to happen at some time. Of the kernel module's what such calls take there is not lost either
 * (struct account). */
static inline bool bucket_is_lost(enum bucket bucket)
{
	return bucket != BUCKET_OWN && bucket != BUCKET_LOADING && bucket != BUCKET_GPU_INTENDED;
}

/* What the thread was doing at which a chain of waits ends. */
/* clang-format off */
#define CAUSES(CAUSE) \
	CAUSE(OWN,         "own",         "its own work") \
	CAUSE(LOADING,     "loading",     "loading code") \
	CAUSE(GPU,         "gpu",         "a wait for the GPU") \
	CAUSE(IOCTL,       "ioctl",       "the kernel module") \
	CAUSE(QUEUE,       "queue",       "a full launch queue") \
	CAUSE(MPS,         "mps",         "another user's MPS server") \
	CAUSE(NOT_RUNNING, "not_running", "not running on any CPU") \
	CAUSE(LOCK,        "lock",        "another lock") \
	CAUSE(UNKNOWN,     "unknown",     "unknown")
/* clang-format on */

enum cause {
#define CAUSE(name, key, text) CAUSE_##name,
	CAUSES(CAUSE)
#undef CAUSE
		CAUSE_COUNT
};

/* For people, and as JSON has them; by their numbers. */
extern const char *const bucket_names[BUCKET_COUNT];
extern const char *const cause_names[CAUSE_COUNT];
extern const char *const cause_keys[CAUSE_COUNT];

#endif
