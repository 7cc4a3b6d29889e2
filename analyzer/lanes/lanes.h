/*
 * analyzer/lanes/lanes.h: what happened, one by one, in a lane for each thread, GPU, stream and rank: what the HTML report
 * draws (docs/HTML_REPORT.md). It listens to the main reading (trace/listener.h).
 *
 * However long the trace is, lanes stay small: of too many calls those next to each other are merged, of too many other
 * items the shortest are dropped and counted. What must be seen as it was lies in windows: in these nothing is merged. They
 * are known only after a first reading, so a long trace is read twice.
 */
#ifndef CUDASPY_LANES_H
#define CUDASPY_LANES_H

#include "store.h"
#include "account/account.h"
#include "account/locks.h"
#include "base/report.h"
#include "findings/analyzed.h"
#include "idle/idle.h"
#include "symbols/symbolize.h"
#include "trace/listener.h"

struct lanes;

/* For one reading of that analysis; both arguments must live as long. lanes_free. */
struct lanes *lanes_new(const struct analysis *a, struct symbolizer *symbols);
void lanes_free(struct lanes *l);

const struct listener *lanes_listener(struct lanes *l);

/*
 * After the reading: lanes for another one, which merge as much as these had to, but nothing around the worst moments of
 * the findings; NULL: these have merged nothing. report: finished. a: as in lanes_new, for the other reading.
 */
struct lanes *lanes_again(struct lanes *l, const struct report *report, const struct analysis *a);

/* After the reading: the timeline, into the report, with what its findings lead to; packed, at most so many bytes. */
void lanes_report(struct lanes *l, struct report *report, size_t most_bytes);

/*
 * ---- labels.c: the names in a timeline, each once: functions, places in the program, locks,
 * what calls were about. Places are looked up when all is read.
 */

#define LABELS_MOST (1u << 17) /* names; what comes then has none */

struct label {
	uint32_t number;
	UT_hash_handle hh;
	char text[];
};

/* Where calls return to. */
struct label_place {
	struct label_place_key {
		uint64_t address;
		uint64_t process;
	} key;
	uint64_t ns; /* of the first of these calls */
	uint32_t number, name; /* name: once it is looked up */
	UT_hash_handle hh;
};

/* What is known of a call's arguments; without padding: it is hashed byte by byte. */
struct label_about_key {
	uint64_t bytes, stream;
	uint32_t kernel; /* its name's number */
	uint32_t fn, result; /* of calls that failed; else 0 */
	uint16_t event;
	uint8_t op, kind; /* of memory */
	uint8_t src_kind, dst_kind, src_device, dst_device; /* of copies */
	uint8_t captured, zeros[3];
};

struct label_about {
	struct label_about_key key;
	uint32_t name;
	UT_hash_handle hh;
};

struct labels {
	const struct model *model;
	struct label *by_text;
	struct label **all; /* by number; the first is the empty one */
	uint32_t n;
	struct label_place *by_address;
	struct label_place **places; /* by number */
	uint32_t n_places;
	struct label_about *abouts; /* that have been put into words */
	uint32_t *functions; /* names by the set's functions, + 1 */
	size_t n_functions;
	uint32_t *
		readable; /* of a kernel's name as the linker has it, by number: the other one, + 1 */
	size_t n_readable;
	struct symbolizer *symbols;
};

void labels_init(struct labels *labels, const struct model *model, struct symbolizer *symbols);
void labels_release(struct labels *labels);

/* The number of a name; 0: NULL, empty, or one too many. */
uint32_t label_of(struct labels *labels, const char *text);

/* Of a function of the set's; NO_FUNCTION: 0. */
uint32_t label_of_function(struct labels *labels, uint32_t fn);

/* Where a call was made: what label_of_where understands; 0 unknown. */
uint64_t label_where(struct labels *labels, const struct process *process, uint64_t address,
		     uint64_t ns, const struct stack *stack);

/* After the last record: the number of its name. */
uint32_t label_of_where(struct labels *labels, uint64_t where);

/* Of a kernel, as people write it; 0 unknown. */
uint32_t label_of_kernel(struct labels *labels, const struct process *process, uint32_t kernel);

/* What is known of a call's arguments, in words. */
uint32_t label_of_arguments(struct labels *labels, const struct record *record);

/* ---- collect: lanes while they are filled. For the files of this folder. */

struct stream_lane {
	/* Without padding: it is hashed byte by byte. */
	struct stream_lane_key {
		uint32_t gpu, process, context, stream;
	} key;
	struct lane *lane;
	UT_hash_handle hh;
};

struct lanes {
	const struct analysis *a;
	struct symbolizer *symbols;
	struct listener listener;
	struct store store;
	struct labels labels;
	/* By index; NULL: none. */
	struct lane **threads, **gpus, **ranks;
	size_t n_threads, n_gpus, n_ranks;
	struct stream_lane *streams;
};

/* A finding's worst moment. */
struct moment {
	uint64_t finding; /* its number in the report */
	const struct lane *lane;
	uint64_t begin_ns, end_ns;
	const char *text;
};

/* moments.c: of the report's findings; *n of them, the caller frees. */
struct moment *lanes_moments(struct lanes *l, const struct report *report, size_t *n);

/* encode.c: the bytes of all items, and what docs/HTML_REPORT.md says of the timeline. */
struct encoded {
	uint8_t *bytes;
	size_t n;
	char *json;
};

/* Lanes are in order, and items sorted. moments: n of them. The caller frees both parts. */
struct encoded lanes_encode(struct lanes *l, const struct moment *moments, size_t n,
			    struct arena *texts);

/*
 * ---- names.c: what lanes, and the locks in them, are called; also in exports. Texts live as
 * long as the arena.
 */

/* "loader (123)", "thread 123". */
const char *text_lane_of_thread(struct arena *texts, const struct thread *thread);

/* "GPU 1, NVIDIA H200". */
const char *text_lane_of_gpu(struct arena *texts, const struct idle_gpu *gpu);

/* "L1 (libcuda.so.1+0x1234)": after locks_name; before it "a lock (unknown place)". */
const char *text_lane_of_lock(struct arena *texts, const struct lock *lock);

#endif
