/*
 * analyzer/expect/expect.h: what a call should have cost: its own work, when nothing is in its way.
 *
 * Calls that should cost the same form a class: the function; whether it is one of the first calls
 * that start something up (cold); of copies the direction, both kinds of memory and the size; of
 * calls about memory what they do to what kind and how much of it. Sizes are counted in quarters of
 * octaves. GPUs of one trace are taken to be alike.
 *
 * What a class costs comes from a profile of the machine (profile.h) or is learnt from the trace's
 * own calls before the main reading: from clean ones, in whose way nothing can have been. What the
 * probes saw a call waiting is taken off; a call that failed, or whose thread was kept from
 * running, is not clean. Of calls that wait for nothing on the GPU, and of those that hand work
 * over to a stream whose queue is not full, each stream's own records tell (the first reading). Of
 * calls that may wait for the GPU it must be known what all threads had outstanding:
 * account/evidence.h.
 */
#ifndef CUDASPY_EXPECT_H
#define CUDASPY_EXPECT_H

#include "cold.h"
#include "gpu_wait.h"
#include "phase.h"
#include "base/histogram.h"
#include "trace/merge.h"
#include "trace/position.h"

struct profile;
struct expect;

enum expect_source {
	EXPECT_NONE, /* nothing is known: expected_ns is 0 */
	EXPECT_PROFILE,
	EXPECT_CLEAN, /* EXPECT_ENOUGH clean calls or more: their median */
	EXPECT_FEW, /* of fewer */
	EXPECT_PRIOR, /* measured on another machine: priors.h */
	EXPECT_LOW_QUANTILE, /* of EXPECT_ENOUGH calls or more, for none was clean */
	/* from a class of nearly that size; of copies that are only handed over, of any */
	EXPECT_NEIGHBOUR,
	EXPECT_DEFAULT, /* a guess */
};

#define EXPECT_ENOUGH 8

/*
 * Of a GPU that has a prior, what is learnt from fewer clean calls than EXPECT_STRONG may not be
 * more than so many times what the prior says such calls take, spread included: another machine may
 * be slower, but not by more.
 */
#define EXPECT_STRONG 64
#define EXPECT_PRIOR_MOST 8

/* Fewer operations outstanding in a stream fill no launch queue: one holds about 1,020 (measured on
 * H200, driver 580). */
#define QUEUE_LEAST 64

/* Without padding, and in this order: it is also a number. */
struct class_key {
	uint32_t fn; /* number in the set's functions */
	uint8_t flags; /* enum class_flag, or-ed */
	uint8_t bucket; /* of bytes: class_bucket */
	uint8_t what; /* direction of a copy; 16 * pool + op of a memory call */
	uint8_t kinds; /* 16 * src_kind + dst_kind of a copy; kind of a memory call */
};

enum class_flag {
	CLASS_COLD = 1,
	CLASS_COPY = 2,
	CLASS_MEMORY = 4,
	CLASS_CAPTURED = 8, /* a copy that only became part of a graph */
};

/*
 * A thread that has not called CUDA for so long finds the caches cold, and the CPU asleep: a launch
 * of 4 us takes 10 to 20 then (PyTorch on H200s). What clean calls cost after a pause is learnt
 * apart, and a call after one is held against it.
 */
#define EXPECT_PAUSE_NS 200000

struct call_class {
	struct class_key key;
	uint32_t index; /* among all classes */
	struct reading_position created; /* when it came up */
	uint8_t source; /* enum expect_source */
	/* source PRIOR: few calls took longer, and EXPECT_PRIOR_MOST times the prior is taken */
	bool bounded;
	uint64_t expected_ns; /* a call's own work */
	/* how much more clean calls may take: the distance of what nearly all of them do not exceed
	 * (usual_spread), or of the 0.9 quantile in a profile, where nothing disturbs */
	uint64_t spread_ns;
	uint64_t most_ns; /* all but UNUSUAL_CALLS of many clean calls took no more; 0: not known */
	uint64_t samples; /* calls that says so: of the source */
	/* After a pause of the thread; 0: no more than others, or not known. Samples: EXPECT_ENOUGH
	 * or more. */
	uint64_t rested_ns, rested_spread_ns, rested_samples;
	/* of that, in the kernel module: the fastest tenth of those that were there; 0 if most
	 * were not */
	uint64_t kernel_ns;
	/* Of depth 0, without errors: those that were learnt from, and that others were in the way
	 * of or not; all in the trace, which the main reading counts. */
	uint64_t learnt, clean_calls;
	uint64_t calls, total_ns;
	struct histogram clean, all; /* ns that the calls were not seen waiting */
	struct histogram rested; /* of the clean ones, those after a pause */
	/* would be clean if it were known what they did: for evidence.c, until it ends */
	struct histogram off_cpu;
	struct histogram
		kernel; /* ns in the kernel module, of those that are not cold and were there */
};

/* Of the table of classes. */
struct class_place {
	uint64_t key; /* class_key_bits */
	struct call_class *class; /* NULL: empty */
};

/* Does the number rest on calls with nothing in their way? */
static inline bool expect_is_measured(const struct call_class *class)
{
	return class->source == EXPECT_PROFILE || class->source == EXPECT_CLEAN ||
	       class->source == EXPECT_FEW;
}

/* What the traces were made on. */
struct machine {
	char **drivers; /* "13000": as the processes noted it; each once */
	size_t n_drivers;
	char **gpus; /* names, each once */
	size_t n_gpus;
};

struct expect {
	struct trace_set *set;
	struct machine machine;
	uint64_t records; /* that the first reading met */
	uint64_t outer,
		inner; /* that it looked at, but for calls inside others; and these, about */
	uint64_t *last_ns; /* by the trace's index: its last record's time */
	struct phases phases;
	const struct profile *profile; /* in use, or NULL */
	const struct profile *prior; /* the same */
	bool probed; /* all of the traces were recorded with probes */
	bool prior_fits; /* it is of a GPU that made the traces */
	struct call_class **classes; /* by index */
	size_t n_classes;
	size_t n_copied; /* of these: of a copy */
	/* Classes without size and kinds: [2 * fn + cold]. The others in an open table of n_table
	 * (a power of two) places. */
	struct call_class **plain;
	size_t n_plain;
	struct class_place *table;
	size_t n_table, n_in_table;
	unsigned int table_shift; /* 64 less the bits of n_table */
	struct cold_marks *processes; /* by the trace's index: for expect_cold */
	bool settled;
	struct arena arena;
};

/* The first reading: reads each stream of the set to its end and rewinds it, so that it says what
 * the traces were made on and what their calls cost. expect_release in any case. */
void expect_learn(struct expect *e, struct trace_set *set);

/* Then: a clean call of the class, that took so long without what it was seen waiting; after a
 * pause? */
static inline void expect_add_clean(struct call_class *class, uint64_t own_ns, bool rested)
{
	histogram_add(&class->clean, own_ns);
	if (rested)
		histogram_add(&class->rested, own_ns);
	class->clean_calls++;
}

/* Then: gives each class its number. profile: of the machine that made the traces, or NULL; prior:
 * of another one (priors.h), or NULL; they must live as long as `e`. */
void expect_settle(struct expect *e, const struct profile *profile, const struct profile *prior);

void expect_release(struct expect *e);

/*
 * A copy, for the main reading of a part of the set: it counts calls and makes classes of its own, and shares all else
 * with the settled original, which must live longer. expect_release_copy.
 */
void expect_copy(struct expect *copy, const struct expect *e);
void expect_release_copy(struct expect *copy);

/* What all copies have counted becomes the original's. */
struct join;
bool expect_join(struct expect *whole, struct expect *const *parts, struct join *join);

/* The same of one that is not settled yet: classes have learnt nothing in it. */
void expect_copy_empty(struct expect *copy, const struct expect *e);

/* The class of that key, made if it is new. */
struct call_class *expect_class_of_key(struct expect *e, const struct class_key *key);

/* For expect_learn. */
void expect_grow_table(struct expect *e);

/* For expect_class. */
struct call_class *expect_add(struct expect *e, uint64_t key);
struct call_class *expect_find_plain(struct expect *e, uint32_t fn, bool cold);

static inline uint8_t expect_contract(const struct expect *e, uint32_t fn)
{
	return e->set->functions.all[fn].contract;
}

static inline uint64_t class_key_bits(const struct class_key *key)
{
	uint64_t bits;

	__builtin_memcpy(&bits, key, sizeof(bits));
	return bits;
}

/* Where a class of that key is, or would be. */
static inline struct class_place *expect_place(const struct expect *e, uint64_t key)
{
	/* The bytes of a key differ at its top, and only the product's top knows. */
	size_t i = (size_t)(hash_mix(key) >> e->table_shift);

	while (e->table[i].class && e->table[i].key != key)
		i = (i + 1) & (e->n_table - 1);
	return &e->table[i];
}

/* Sizes: 0 for none, then quarters of octaves, the last one open. */
static inline uint8_t class_bucket(uint64_t bytes)
{
	unsigned int octave, quarter, bucket;

	if (unlikely(!bytes))
		return 0;
	octave = 63 - (unsigned int)__builtin_clzll(bytes);
	quarter = (unsigned int)(bytes << (63 - octave) >> 61 & 3);
	bucket = 1 + 4 * octave + quarter;
	return bucket < UINT8_MAX ? (uint8_t)bucket : UINT8_MAX;
}

/* The keys of classes, as numbers: put together byte by byte in memory they would have to be waited for. */
static inline uint64_t expect_copy_key(const struct spy_rec_copy *copy, uint32_t fn, bool cold)
{
	uint64_t flags = CLASS_COPY | (cold ? CLASS_COLD : 0), bucket = 0;

	if (copy->captured)
		flags |= CLASS_CAPTURED;
	else
		bucket = class_bucket(copy->bytes);
	return fn | flags << 32 | bucket << 40 | (uint64_t)copy->direction << 48 |
	       (uint64_t)copy->src_kind << 60 | (uint64_t)copy->dst_kind << 56;
}

static inline uint64_t expect_memory_key(const struct spy_rec_memory *memory, uint32_t fn,
					 bool cold)
{
	uint64_t flags = CLASS_MEMORY | (cold ? CLASS_COLD : 0);
	uint64_t what = (uint64_t)memory->pool << 4 | (memory->op & 15);

	return fn | flags << 32 | (uint64_t)class_bucket(memory->bytes) << 40 | what << 48 |
	       (uint64_t)memory->kind << 56;
}

/* Of a copy or a call about memory. */
static inline uint64_t expect_key(const struct record *record, uint32_t fn, bool cold)
{
	const struct spy_rec_copy *copy = record_copy(record);

	return copy ? expect_copy_key(copy, fn, cold)
		    : expect_memory_key(record_memory(record), fn, cold);
}

/* Such a call has been met in the main reading. */
static inline void expect_count(struct call_class *class, uint64_t ns)
{
	class->calls++;
	class->total_ns += ns;
}

/* A call's class; a new one, told from its neighbours, for a call there was none of. fn: number in
 * the set's functions. */
static inline struct call_class *expect_class(struct expect *e, const struct record *record,
					      uint32_t fn, bool cold)
{
	uint16_t event = record->event;
	const struct class_place *place;
	uint64_t key;

	if (event != SPY_EV_COPY && event != SPY_EV_MEMORY) {
		size_t i = 2 * (size_t)fn + cold;

		if (likely(i < e->n_plain) && likely(e->plain[i] != NULL))
			return e->plain[i];
		return expect_find_plain(e, fn, cold);
	}
	key = expect_key(record, fn, cold);
	place = expect_place(e, key);
	return likely(place->class != NULL) ? place->class : expect_add(e, key);
}

/* For expect_cold: the call is a first one, or its function says no more than that it might be. */
bool expect_cold_slow(struct expect *e, const struct record *record);

/* Is the call cold (cold.h)? For the main reading: to be asked once about each call of depth 0 that
 * returned no error, in the order of time. */
static inline bool expect_cold(struct expect *e, const struct record *record)
{
	const struct cold_marks *marks = &e->processes[record->process];

	if (likely(cold_marks_know(marks, record, record->contract)))
		return false;
	return expect_cold_slow(e, record);
}

/* What the number is based on: "median of 1,234 unobstructed calls". Lives as long as `e`. */
const char *expect_source_text(struct expect *e, const struct call_class *c);

/* The class without the function: "d2h device to pageable, 1.00 to 1.25 MiB"; "" if there is
 * nothing to say. Lives as long as `e`. */
const char *expect_class_text(struct expect *e, const struct call_class *c);

/* The smallest size of a bucket. */
uint64_t class_bucket_low(uint8_t bucket);

#endif
