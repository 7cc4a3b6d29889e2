/*
 * analyzer/findings/detector.h: what can be found in a trace. A detector is one file in detectors/
 * and one row of the table there.
 *
 * Most judge calls. Their row says which ones `judge` sees: those that failed; those that took
 * longer than their own work, of some contracts; all that did not fail, of others. It says what of
 * a call's time is its problem's. Where that depends on what the thread does next, it leaves the
 * verdict open, and `settle` sees the thread's next calls until it is decided. `keep` then looks at
 * what has come together at one place and may say that it is none. Others look at the whole run: they
 * conclude from one of the stages, and those that it stands on. A detector keeps no state and
 * changes nothing.
 */
#include "finding.h"
#include "cudaspy/contract.h"

#ifndef CUDASPY_DETECTOR_H
#define CUDASPY_DETECTOR_H

#define DETECTOR_CONTRACT(name) (1u << SPY_CONTRACT_##name)

/* A copy to the host of no more than this brings a value that the host is about to look at. */
#define DETECTOR_FEW_BYTES 256

/* What handing over one copy takes at most, whatever its size: of pinned memory, or between GPUs
 * with access (measured on H200s: 2 to 6 us). */
#define DETECTOR_HAND_OVER_NS 6000

enum copies_asked {
	COPIES_ALL,
	COPIES_PAGEABLE, /* with a pageable side */
	COPIES_PEER, /* from one GPU to another */
	COPIES_IN_RUN, /* that continue a run: recent_ops.h */
};

/* Of an open claim: */
enum settled {
	SETTLED_NOT, /* ask again at the next call */
	SETTLED_CASE, /* it is one, as the verdict now says */
	SETTLED_NONE, /* it is none */
};

/* About waits for locks inside CUDA, of threads that work on: */
enum stalls {
	STALLS_NOT,
	STALLS_WITHIN, /* the same GPU */
	STALLS_ACROSS, /* different ones */
};

struct claim;
struct idle;
struct observed;
struct verdict;

/* The findings so far. */
struct found {
	struct arena *texts; /* what they say */
	struct finding *all;
	size_t n;
};

struct detector {
	const char *id; /* "pageable-copy" */
	const char *title; /* a few words */
	const char *sees, *blind,
		*fix; /* for `cudaspy explain`: what it sees, what not, what to do */
	const struct detector *absorbs; /* whose findings at the same place are part of its own */
	bool everywhere; /* cases at several places of a process have one cause: one finding */
	/* bits of the variant in which cases at one place may differ and still be one finding */
	uint32_t alike;
	/* What the thread did on a CPU right behind its calls stood in the GPU's way because of
	 * them: for idle_price.h. */
	bool idle_behind;
	/* Its calls may be taken to wait for GPUs for longer than these worked: for idle_price.h. */
	bool waits_bounded;
	/* What its threads lose costs the run nothing where the GPU has no time to spare: for idle_price.h. */
	bool free_behind_work;
	/* Of the whole run: the ranks of a job have it together, all of them or those whose Python is at fault in the same function
	 * (of_ranks.h) */
	bool of_code, of_function;
	bool of_idle; /* it is about GPUs that have nothing to do, not calls */
	bool of_host; /* … because of the host: a profiler of the program's own makes it slower (profiled.h) */
	enum stalls stalls;
	bool kernels; /* which ones were launched is told behind what `keep` says */
	bool failures; /* it sees calls that failed */
	/* DETECTOR_CONTRACT(...), or-ed: of those that did not, all of these contracts, and of
	 * these those that took longer than their own work */
	uint32_t always, when_long;
	enum copies_asked copies; /* which copies, of those in `always` */
	bool (*judge)(const struct observed *o, struct verdict *v);
	/*
	 * Of a claim whose verdict is open: the next call of its thread, which lies behind those
	 * that claim->inside_ns has; NULL: there are no more to be seen. May change the verdict,
	 * but not its variant. A call that is let go is no case at all: the detectors below were
	 * not asked.
	 */
	enum settled (*settle)(const struct claim *claim, const struct observed *next,
			       struct verdict *v);
	/* settle need not see calls that only hand over work and take no longer than such calls do:
	 * to it they are time that passes. */
	bool patient;
	/* What is found here, in a sentence; NULL: nothing. May change gain and fix. */
	const char *(*keep)(const struct findings *f, const struct site *site,
			    struct finding *finding, struct arena *texts);
	/* The cure where it is one of NVIDIA's libraries that calls, that file; NULL: the same. */
	const char *(*fix_of_library)(const char *library, struct arena *texts);
	/* One of them, which adds findings of the whole run: from what became of calls; from when GPUs
	 * had nothing to do, and threads were outside of calls; from collective operations. */
	void (*conclude_calls)(const struct accounting *accounts, struct found *found);
	void (*conclude_idle)(const struct idle *idle, struct found *found);
	void (*conclude_ranks)(const struct ranks *ranks, struct found *found);
};

/* The table of them: detectors/table.c. */
extern const struct detector *const detector_table[];
extern const size_t detector_rows;

/* Row i of the table; NULL behind the last. A call is shown to them in this order. */
const struct detector *detectors_row(size_t i);

/* The detector of that id, or NULL. */
const struct detector *detectors_find(const char *id);

/* For those that conclude: a new finding, of the whole run, behind the others. */
struct finding *detector_add(const struct detector *detector, struct found *found);

#endif
