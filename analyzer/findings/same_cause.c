/*
 * analyzer/findings/same_cause.c: which findings have the same cause. Called by finding.c.
 *
 * A thread that is passed over while others take a lock is one of those that wait for it: its waits are in the cost of the
 * stall, or of the finding of the call that has the lock. What is allocated in each step is freed in each step. (Stalls name the
 * finding of their call in their cure.) A wait that blocks an event loop is a wait for the loop's clients, whatever it is else. A
 * rank's GPU is slow because others use it. Who waits for a launch that waits for its kernel does so because of CUDA_LAUNCH_BLOCKING. What a rank is late by keeps its own GPU waiting, too.
 */
#include <string.h>
#include "detector.h"
#include "framework_cures.h"
#include "site.h"
#include "same_cause.h"
#include "base/lines.h"
#include "text/text.h"

static bool is(const struct finding *f, const char *id)
{
	return !strcmp(f->detector->id, id);
}

static bool is_stall(const struct finding *f)
{
	return f->detector->stalls != STALLS_NOT;
}

/* Stalls are of all processes. */
static bool same_process(const struct finding *x, const struct finding *y)
{
	return !x->origin.process || !y->origin.process || x->origin.process == y->origin.process;
}

static bool same_function(const struct finding *x, const struct finding *y)
{
	return x->place.function && y->place.function &&
	       !strcmp(x->place.function, y->place.function);
}

/* Is a loop blocked in the calls of a finding, which may be of several processes? */
static bool blocks(const struct finding *calls, const struct finding *loop)
{
	return is(loop, "blocked-loop") && calls->site &&
	       (calls->origin.processes > 1 || same_process(loop, calls)) &&
	       same_function(loop, calls) && loop->place.offset == calls->place.offset &&
	       !strcmp(loop->place.module ?: "", calls->place.module ?: "");
}

static bool same_code(const struct python_code *a, const struct python_code *b)
{
	return a && b && !strcmp(a->function, b->function) && !strcmp(a->file, b->file);
}

static bool same_line(const struct finding *x, const struct finding *y)
{
	const struct costly_line *a = x->stacks.n_python ? x->stacks.python : NULL;
	const struct costly_line *b = y->stacks.n_python ? y->stacks.python : NULL;

	if (a && b)
		return a->at.line == b->at.line && same_code(a->at.code, b->at.code);
	return x->place.line && x->place.line == y->place.line && x->place.file && y->place.file &&
	       !strcmp(x->place.file, y->place.file);
}

/* What a rank is late by, and the same seen in that rank alone. */
static bool is_late_by(const struct finding *rank, const struct finding *f)
{
	bool alone = f->site || !strncmp(f->detector->id, "starved-by-", 11);

	return is(rank, "straggler-rank") && alone && same_process(rank, f) && same_line(rank, f);
}

/* What holds other ranks up says more than what it costs one of them, unless it costs that one far more. */
#define ALONE_TIMES 2

static bool has_lateness_of(const struct finding *f, const struct finding *part)
{
	if (f->remarks.maybe_harmless)
		return false;
	if (is_late_by(f, part))
		return cost_ns(&f->cost) >= cost_ns(&part->cost) / ALONE_TIMES;
	return is_late_by(part, f) && cost_ns(&part->cost) < cost_ns(&f->cost) / ALONE_TIMES;
}

/* Launches that wait for their kernels, and who waits for these launches: the one rank that they make late, or a thread. */
static bool is_due_to(const struct finding *f, const struct finding *launches)
{
	if (!is(launches, "launch-blocking"))
		return false;
	if (is(f, "straggler-rank"))
		return launches->origin.processes == 1 && same_process(launches, f);
	return (is(f, "blocked-loop") || is_stall(f)) &&
	       (launches->origin.processes > 1 || same_process(launches, f)) && f->place.function &&
	       strstr(f->place.function, "Launch");
}

/* Has the first one the cost of the second in its own? */
static bool has_cost_of(const struct finding *f, const struct finding *part)
{
	if (is_due_to(part, f))
		return true;
	if (has_lateness_of(f, part))
		return true;
	if (blocks(part, f))
		return part->remarks.maybe_harmless;
	if (is(f, "slow-gpu") && is(part, "time-slicing"))
		return same_process(f, part);
	return is(part, "lock-starvation") && (f->site || is_stall(f)) && same_process(f, part) &&
	       same_function(f, part);
}

static bool is_of_memory(const struct finding *f)
{
	const char *function = f->place.function;

	return function && (is(f, "steady-state") || is(f, "hidden-sync")) &&
	       (strstr(function, "lloc") || strstr(function, "Free")) && !strstr(function, "Async");
}

/* "Host": what is pinned; else memory of the device. */
static bool is_pinned(const struct finding *f)
{
	return strstr(f->place.function, "Host");
}

static bool gives_back(const struct finding *f)
{
	return strstr(f->place.function, "Free");
}

static bool is_pair(const struct finding *x, const struct finding *y)
{
	if (blocks(x, y) || blocks(y, x))
		return !x->remarks.maybe_harmless && !y->remarks.maybe_harmless;
	return x->site && y->site && x->origin.process == y->origin.process && is_of_memory(x) &&
	       is_of_memory(y) && is_pinned(x) == is_pinned(y) && gives_back(x) != gives_back(y);
}

static void name(struct finding *f, const struct finding *other, const char *words,
		 struct arena *texts)
{
	const char *where = finding_where(other, texts) ?: other->place.function;

	if (where)
		where = arena_take(texts, shorten_names(where, SHORTEST));
	f->what = arena_printf(texts, where ? "%s; %s %s (%s)" : "%s; %s %s", f->what, words,
			       other->detector->id, where);
}

/* Those that others may be part of, in their order: a few of what may be tens of thousands. */
struct main_findings {
	const struct finding *all[256];
	size_t n;
};

static void find_main(struct main_findings *most, const struct finding *findings, size_t n)
{
	most->n = 0;
	for (size_t i = 0; i < n && most->n < ARRAY_SIZE(most->all); i++)
		if (!finding_minor(&findings[i]))
			most->all[most->n++] = &findings[i];
}

/* The costliest one that is its pair. */
static const struct finding *pair_of(const struct main_findings *most, const struct finding *f)
{
	const struct finding *costliest = NULL;

	for (size_t i = 0; i < most->n; i++)
		if (is_pair(most->all[i], f) &&
		    (!costliest || cost_ns(&most->all[i]->cost) > cost_ns(&costliest->cost)))
			costliest = most->all[i];
	return costliest;
}

static const struct finding *whole_of(const struct main_findings *most, const struct finding *f)
{
	for (size_t i = 0; i < most->n; i++)
		if (most->all[i] != f && has_cost_of(most->all[i], f))
			return most->all[i];
	return NULL;
}

/* Of its pair, if that has one in a framework's words. */
static void take_cure(struct finding *f, const struct finding *pair)
{
	const char *cure = framework_cure(pair);

	if (cure && !framework_cure(f))
		f->fix = cure;
}

/* Idle time is the price of one finding. */
static void join_cost(struct finding *f, struct finding *part)
{
	f->cost.joined_ns += cost_ns(&part->cost);
	f->cost.gain_low_ns += part->cost.gain_low_ns;
	f->cost.gain_high_ns += part->cost.gain_high_ns;
	f->cost.idle_gpu_ns += part->cost.idle_gpu_ns;
	part->cost.idle_gpu_ns = 0;
	if (part->cost.cost_share.thread == f->cost.cost_share.thread)
		f->cost.cost_share.share += part->cost.cost_share.share;
}

static bool same_cure(const struct finding *x, const struct finding *y)
{
	return x->fix == y->fix && x->origin.process == y->origin.process;
}

/* Is it about what is to be mended? Others have the cure of their pair. Of the whole run are those that a function of the program
 * is at fault for. */
static bool is_mended(const struct finding *f)
{
	return !f->site || framework_cure(f);
}

/* First where what is mended stands, then what it costs. */
static bool comes_before(const struct finding *x, const struct finding *y)
{
	bool own = is_mended(x), others = is_mended(y);

	return own != others ? own : cost_ns(&x->cost) > cost_ns(&y->cost);
}

/* What one cure mends is one finding, which has the cost of all. */
static void join_cured(struct finding *f, struct finding *findings, size_t n, struct arena *texts)
{
	size_t joined = 0;

	for (size_t i = 0; i < n; i++)
		if (same_cure(f, &findings[i]) && comes_before(&findings[i], f))
			return;
	for (size_t i = 0; i < n; i++) {
		struct finding *part = &findings[i];

		if (part == f || !same_cure(f, part) || part->remarks.counted)
			continue;
		join_cost(f, part);
		name(part, f, "this is in the cost of", texts);
		part->remarks.joined = part->cost.overlaps = true;
		part->similar = (struct similar_cases){0};
		joined++;
	}
	if (joined)
		f->what = arena_printf(texts,
				       "%s; with %s that the same cure mends, it costs %s in all",
				       f->what, text_count(texts, joined, "more finding"),
				       text_time(texts, cost_ns(&f->cost)));
}

void findings_name_causes(struct finding *findings, size_t n, struct arena *texts)
{
	struct main_findings most;

	find_main(&most, findings, n);
	for (size_t i = 0; i < n; i++) {
		struct finding *f = &findings[i];
		const struct finding *whole = whole_of(&most, f), *pair;

		if (whole) {
			name(f, whole,
			     is_due_to(f, whole) ? "due to" : "these waits are in the cost of",
			     texts);
			f->remarks.counted = finding_problem(whole);
			f->cost.overlaps = true;
			continue;
		}
		pair = finding_minor(f) ? NULL : pair_of(&most, f);
		if (!pair)
			continue;
		take_cure(f, pair);
		if (!framework_cure(pair) && !framework_cure(f))
			name(f, pair, "the same cause as", texts);
	}
	for (size_t i = 0; i < n; i++)
		if (framework_words(findings[i].fix) && !findings[i].remarks.counted)
			join_cured(&findings[i], findings, n, texts);
}
