/*
 * analyzer/sections/sections.h: the sections of a report, each by the name of its file: they turn
 * what stages found into tables.
 */
#ifndef CUDASPY_SECTIONS_SECTIONS_H
#define CUDASPY_SECTIONS_SECTIONS_H

#include "account/account.h"
#include "account/callstats.h"
#include "base/report.h"
#include "base/table.h"
#include "blame/blame.h"
#include "cost/cost.h"
#include "expect/expect.h"
#include "expect/profile.h"
#include "findings/finding.h"
#include "findings/gate.h"
#include "idle/idle.h"
#include "model/model.h"
#include "ranks/ranks.h"
#include "symbols/symbolize.h"

struct summary_row;
struct findings;
struct ranks;

/*
 * ---- idle_causes.c: what time was charged to, as a table in a row of another one: cause, place
 * and length, the largest first.
 */

/* Of a GPU's idle time; of a thread's time outside CUDA; of what others waited for a rank. */
extern const struct table_kind idle_causes_kind, feeder_causes_kind, rank_causes_kind;

struct idle_writer {
	struct arena *texts;
	const struct idle *idle;
	struct symbolizer *symbols;
	const struct idle_sum **sums; /* all, by owner, cause and place */
	size_t n_sums;
	/* Causes have what lies at that place alone; NULL: everything. */
	struct subject_place *only;
};

void idle_writer_init(struct idle_writer *w, struct arena *texts, const struct idle *idle,
		      struct symbolizer *symbols);
void idle_writer_release(struct idle_writer *w);

/*
 * The causes of an owner (idle.h). Their sum is whole_ns exactly: what rounding leaves goes to the largest. gpu: whose
 * certain part is meant; NULL: all. Waits at a place of which only some have a stack are taken for those in proportion.
 * whole_ns 0: they are shares of their own sum.
 */
const struct table *idle_causes(const struct idle_writer *w, const struct table_kind *kind,
				uint64_t owner, const struct idle_gpu *gpu, uint64_t whole_ns);

/* What the causes come to. */
uint64_t idle_causes_ns(const struct table *causes);

/* Does the part lie at the place? A time between two calls of which only these are known lies nowhere. */
bool idle_part_lies(struct subject_place *place, const struct process *process,
		    const struct idle_part *part);

/* Such a table in a sentence: the largest causes, with the place of the largest part of each that has one, as parts of
 * whole_ns: "running Python (between a.py:1 and a.py:9) 41 %, asleep 2 %". Empty: no causes. */
const char *idle_causes_words(const struct idle_writer *w, const struct table *causes,
			      uint64_t whole_ns);

/* The largest cause with its place, and its part of whole_ns where that is not all: "waiting inside CUDA for a GPU:
 * train.py:22 in step (93 %)". NULL: no causes. */
const char *idle_causes_largest(const struct idle_writer *w, const struct table *causes,
				uint64_t whole_ns);

/* What it was, in words: "saving (torch.save)". */
const char *idle_part_name(const struct idle_writer *w, const struct process *process,
			   const struct idle_part *part);

/* The place of a part; NULL: unknown. */
const char *idle_part_place(const struct idle_writer *w, const struct process *process,
			    const struct idle_part *part);

/* ---- stack.c: how the application came to a call, as a table in a row of another one. */

extern const struct table_kind stack_table_kind;

/*
 * One row a function, innermost first, those that were compiled into others and those in Python
 * included. For people the application's own come to 8 lines at most: without CUDA's libraries,
 * what the C and C++ libraries run before main or a thread's function, and, where an interpreter's
 * functions are known, all but the innermost two of the functions that are not its own.
 * duration_ns: of the call. `texts` owns everything.
 */
const struct table *report_stack(struct arena *texts, struct symbolizer *symbols,
				 const struct stack *stack, uint64_t duration_ns);

/* ---- ranges.c: the program's own ranges (NVTX) in a report. */

/* "layers: backward": a range as reports name it. */
const char *report_range_name(struct arena *texts, struct range_name *name);

/* The ranges, by name. */
void report_ranges(struct report *report, const struct idle *idle);

/* In which ranges the calls of a finding were made: a cell of its row. own_ns: what they all cost. */
extern const struct table_kind range_shares_kind;
const struct table *report_range_shares(struct arena *texts, const struct range_shares *shares,
					uint64_t own_ns);

/*
 * ---- trace.c: the sections of a report that say what the trace is and what it is not: losses,
 * headline, calls in flight at the end, processes, environment, coverage, GPUs.
 */

/* The executable of a process: its path, or as much of its name as is known; the trace's directory
 * if nothing is. NULL: of the process that began the others. */
const char *report_program(struct arena *texts, const struct trace_set *set,
			   const struct trace *trace);

/* What the trace does not have; no row when nothing is missing: returns true. */
bool report_losses(struct report *report, const struct model *model);

/* The headline; and, when they are known, how many findings there are that matter. */
struct summary_row *report_summary(struct report *report, const struct accounting *a,
				   const struct cost_study *cost);
void report_found(struct arena *texts, struct summary_row *row, uint64_t problems, uint64_t notes,
		  const char *first);

/* What was done for long before and behind the working phase (around.c), if anything. */
void report_besides(struct summary_row *row, const char *words);

/* So many files of the program are not those that ran (files.h). */
void report_unread(struct arena *texts, struct summary_row *row, size_t n);

/* Calls that had not returned when the trace ends. end_ns: when the processes ended, since the
 * epoch, if the caller knows it better than the traces do; else 0. summary: of the report, to be
 * told of them; or NULL. */
void report_in_flight(struct report *report, const struct model *model, uint64_t end_ns,
		      struct summary_row *summary);

/* After report_in_flight: does the gate fail, or has it nothing to judge by, for calls that failed or never returned? */
void report_judge_calls(struct gate *gate, const struct summary_row *summary);

/* Everything else `info` shows. */
void report_about(struct report *report, const struct callstats *stats);

/*
 * ---- around.c: what the program did for long before and behind its working phase, in a sentence; NULL: nothing to speak of.
 */
const char *report_around(struct arena *texts, const struct idle *idle, struct symbolizer *symbols);

/*
 * ---- calls.c: the sections of a report that say where the time went: calls by function, by
 * thread, by device, and counted functions.
 */

/* nested: also the calls made inside other calls. */
void report_calls(struct report *report, const struct callstats *stats, bool nested);

/* ---- cost.c: what recording cost the program, in a report (docs/COST.md). */

/* "recording cost this program 0.8 % (0.3 to 1.3 %)", or why that is not known; and the function that it changes most, if
 * that is much more. */
const char *report_cost_text(struct arena *texts, const struct cost_study *cost);

/* The table: in all, by thread, by function; and what of it are probes and stacks. */
void report_cost(struct report *report, const struct cost_study *cost);

/* ---- expectations.c: what calls should have cost, as tables: learnt from a trace, or measured. */

/* The classes of calls and what one of each should have cost; after expect_settle. */
void report_expectations(struct report *report, struct expect *e);

/* What a profile says: of what, and a row for the smallest and the largest size of each kind. */
void report_profile(struct report *report, const struct profile *profile);

/* ---- files.c: the section about files in which places cannot be looked up. */

/* Those that were looked at so far; no row: all are as they were. Returns how many there are.
 * Behind all sections that name places. */
size_t report_files(struct report *report, struct symbolizer *symbols);

/*
 * ---- filters.c: the header of a report on a part of a recording: what it is about, and what is
 * left out.
 */

/* Nothing without a filter. */
void report_only(struct report *report, const struct ranks *ranks);

/*
 * ---- findings.c: what is wrong, what it costs, and what to do: the section a report begins
 * with.
 */

/* What the gate says, then the findings, those first that count for it and then the costliest; in
 * text those that are worth it. Judges the gate, and tells the summary. */
void report_findings(struct report *report, struct findings *f, const struct ranks *ranks,
		     struct symbolizer *symbols, struct gate *gate, struct summary_row *summary);

/* Those about the analysis' subject, a function, a thread or a GPU, numbered as they are in the
 * report: in calls of that function, by that thread, with that GPU current. Of an unknown lock: no
 * section. */
void report_findings_about(struct report *report, struct findings *f, const struct ranks *ranks,
			   struct symbolizer *symbols);

/* ---- gate.c: the section that says what a gate was asked, and what came of it. */

/* Text and JSON: what was asked, what counted, what exceeded what. */
void report_gate(struct report *report, const struct gate *gate);

/*
 * ---- gpus.c: for each GPU, how long it certainly had nothing to do, and what those who feed it
 * did meanwhile.
 */

void report_gpus(struct report *report, const struct idle *idle, struct symbolizer *symbols);

/* "GPU 0"; where several processes use GPUs, whose: "GPU 0 (train.123)", "GPU 0 (rank 3)". */
const char *report_gpu_name(const struct idle_writer *w, const struct idle_gpu *gpu);

/* ---- place.c: what happened at the place that `why` is asked about. */

/* Times outside CUDA, by thread and by GPU that was idle meanwhile; the calls; waits for the program's own locks, and for Python's. */
void report_place(struct report *report, const struct idle *idle, struct symbolizer *symbols,
		  struct subject_place *place);

/* ---- ranks.c: who waited for whom in collective operations, and why. */

/* All ranks, their steps and their collective operations; nothing of traces without ranks. */
void report_ranks(struct report *report, const struct ranks *ranks, struct symbolizer *symbols);

/* One rank in full: whom it waited for and why those were late, and who waited for it. */
void report_rank(struct report *report, const struct ranks *ranks, struct symbolizer *symbols,
		 const struct rank *rank);

/*
 * ---- sharing.c: the sections of a report that say which processes shared a GPU, when, and how:
 * by time slices or through MPS.
 */

/* Processes that used one GPU at the same time, and those that waited for another user's MPS
 * server; no rows when there are none. */
void report_sharing(struct report *report, const struct callstats *stats);

/* What of MPS each process found, for `info`: daemon, server, limits. */
void report_mps(struct report *report, const struct model *model);

/*
 * ---- waits.c: the sections of a report that say what was lost by waiting, and to which threads
 * and calls.
 */

/* The headline, or what is asked about and its findings, the worst calls, waiters and holders,
 * locks, the kernel module, and what each function's calls took against what they should have: of
 * the analysis' subject. */
void report_waits(struct report *report, struct findings *f, const struct ranks *ranks,
		  struct symbolizer *symbols);

/* Its sections, in files of their own. */
void report_subject(struct report *report, const struct accounting *a);
void report_worst_calls(struct report *report, const struct accounting *a,
			struct symbolizer *symbols, uint64_t least_lost_ns);
void report_edges(struct report *report, const struct accounting *a);
void report_locks(struct report *report, const struct trace_set *set, struct lock *const *locks,
		  size_t n_locks, const struct subject *subject);
/* only: those where the waiter was at that place, or the holder, mostly; NULL: all. */
void report_own_locks(struct report *report, const struct idle *idle, struct symbolizer *symbols,
		      struct subject_place *only);
void report_ioctls(struct report *report, const struct accounting *a);
void report_non_cuda_threads(struct report *report, const struct model *model);
void report_accounts(struct report *report, const struct accounting *a,
		     const struct subject *subject);

#endif
