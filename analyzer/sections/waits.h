/*
 * analyzer/sections/waits.h: the sections of a report that say what was lost by waiting, and to
 * which threads and calls.
 */
#ifndef CUDASPY_SECTIONS_WAITS_H
#define CUDASPY_SECTIONS_WAITS_H

#include "base/report.h"
#include "account/account.h"
#include "blame/blame.h"
#include "symbols/symbolize.h"

struct findings;
struct ranks;

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
void report_ioctls(struct report *report, const struct accounting *a);
void report_non_cuda_threads(struct report *report, const struct model *model);
void report_accounts(struct report *report, const struct accounting *a,
		     const struct subject *subject);

#endif
