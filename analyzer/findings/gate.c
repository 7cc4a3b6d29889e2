/*
 * analyzer/findings/gate.c: findings as a gate of a build. Called by `report`.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "detector.h"
#include "gate.h"
#include "base/suggest.h"
#include "base/format.h"
#include "text/where.h"
#include "trace/losses.h"

#define PPM 1000000
#define TIERS 7 /* of findings, in the order in which they are shown */

/* How a limit is written, after its number; the first is what a bare number is. */
static const struct {
	const char *suffix;
	enum limit_unit unit;
	double factor;
} limit_forms[] = {
	{"ms", LIMIT_NS, 1e6},       {"us", LIMIT_NS, 1e3}, {"s", LIMIT_NS, 1e9},
	{"%", LIMIT_PPM, PPM / 100}, {"x", LIMIT_CALLS, 1},
};

/* ---- options -------------------------------------------------------------------------------- */

/* The next part of a list, up to its comma; NULL behind the last. */
static char *next_item(struct gate *gate, const char **list)
{
	size_t n;
	char *item;

	if (!*list)
		return NULL;
	n = strcspn(*list, ",");
	item = arena_printf(&gate->texts, "%.*s", (int)n, *list);
	*list = (*list)[n] ? *list + n + 1 : NULL;
	return item;
}

static int no_detector(const char *option, const char *item, const char *name, const char *others)
{
	struct suggest suggest = {.word = name};
	const struct detector *detector;
	char text[SUGGEST_TEXT];

	for (size_t i = 0; (detector = detectors_row(i)); i++)
		suggest_try(&suggest, detector->id);
	suggest_try(&suggest, strcmp(others, "all") ? "problem" : "all");
	warn("report: %s=%s: '%s' is neither %s nor a detector%s (cudaspy explain lists them)",
	     option, item, name, others, suggest_text(&suggest, text));
	return -EINVAL;
}

static int parse_fail_on(struct gate *gate, const char *list)
{
	const struct detector *detector;
	char *item;

	while ((item = next_item(gate, &list))) {
		if (!strcmp(item, "any")) {
			gate->any = true;
		} else if (!strcmp(item, "problem")) {
			gate->problem = true;
		} else {
			detector = detectors_find(item);
			if (!detector)
				return no_detector("--fail-on", item, item, "any nor problem");
			gate->fail_on = grow(gate->fail_on, gate->n_fail_on, sizeof(detector));
			gate->fail_on[gate->n_fail_on++] = detector;
		}
	}
	return 0;
}

static int wrong_budget(const char *item, const char *part, const char *why)
{
	warn("report: --budget=%s: '%s' %s", item, part, why);
	return -EINVAL;
}

static int parse_limit(struct budget *budget, const char *text)
{
	/* Decimal, and nothing else that strtod understands. */
	const char *end = text + strspn(text, "0123456789.");
	char *stop;
	double number = strtod(text, &stop);
	size_t i;

	if (!isdigit((unsigned char)*text) || stop < end)
		return wrong_budget(budget->text, text, "is no limit: 100ms, 2.5%, 10x");
	for (i = 0; i < ARRAY_SIZE(limit_forms); i++)
		if (!*end || !strcmp(end, limit_forms[i].suffix))
			break;
	if (i == ARRAY_SIZE(limit_forms))
		return wrong_budget(budget->text, end, "is no unit: ms, us, s, % or x");
	number *= limit_forms[i].factor;
	if (!(number < 1e18))
		return wrong_budget(budget->text, text, "is too much");
	budget->unit = limit_forms[i].unit;
	budget->limit = (uint64_t)llround(number);
	return 0;
}

static int parse_budget(struct gate *gate, const char *list)
{
	char *item, *colon, *id;
	int err;

	while ((item = next_item(gate, &list))) {
		struct budget budget = {.text = item};

		colon = strchr(item, ':');
		if (!colon)
			return wrong_budget(item, item,
					    "has no limit: DETECTOR:LIMIT or all:LIMIT");
		id = arena_printf(&gate->texts, "%.*s", (int)(colon - item), item);
		budget.detector = detectors_find(id);
		if (!budget.detector && strcmp(id, "all"))
			return no_detector("--budget", item, id, "all");
		err = parse_limit(&budget, colon + 1);
		if (err)
			return err;
		gate->budgets = grow(gate->budgets, gate->n_budgets, sizeof(budget));
		gate->budgets[gate->n_budgets++] = budget;
	}
	return 0;
}

int gate_init(struct gate *gate, const char *fail_on, const char *budget,
	      const char *const *suppress, size_t n_suppress)
{
	time_t now = time(NULL);
	char today[16];
	struct tm tm;
	int err;

	*gate = (struct gate){0};
	strftime(today, sizeof(today), "%Y-%m-%d", localtime_r(&now, &tm));
	err = parse_fail_on(gate, fail_on);
	if (!err)
		err = parse_budget(gate, budget);
	for (size_t i = 0; !err && i < n_suppress; i++)
		err = suppress_read(&gate->suppressions, suppress[i], today);
	return err;
}

void gate_release(struct gate *gate)
{
	suppress_release(&gate->suppressions);
	baseline_release(&gate->baseline);
	arena_release(&gate->texts);
	free(gate->fail_on);
	free(gate->budgets);
	free(gate->failures);
	*gate = (struct gate){0};
}

bool gate_asked(const struct gate *gate)
{
	return gate->any || gate->problem || gate->n_fail_on || gate->n_budgets;
}

bool gate_used(const struct gate *gate)
{
	return gate_asked(gate) || gate->suppressions.n || gate->baseline.path;
}

/* ---- is there anything to judge by? --------------------------------------------------------- */

static void cannot_judge(struct gate *gate, const char *what)
{
	gate->unjudged =
		gate->unjudged ? arena_printf(&gate->texts, "%s; %s", gate->unjudged, what) : what;
}

void gate_look(struct gate *gate, const struct trace_set *set, bool complete)
{
	size_t i, n = 0, first = 0;

	gate->incomplete = !complete;
	if (set->not_found)
		cannot_judge(gate,
			     arena_printf(&gate->texts,
					  "%u director%s named without a trace that can be read",
					  set->not_found, set->not_found == 1 ? "y" : "ies"));
	if (set->unreadable)
		cannot_judge(gate, arena_printf(&gate->texts, "%u trace%s cannot be read",
						set->unreadable, set->unreadable == 1 ? "" : "s"));
	for (i = 0; i < set->n_traces; i++) {
		struct losses losses = losses_sum(set->traces[i]);

		gate->lost_records =
			add_capped(gate->lost_records, losses_records(&losses, set->traces[i]));
		if (losses_all(&losses, set->traces[i]) && !n++)
			first = i;
	}
	if (n)
		cannot_judge(gate,
			     arena_printf(&gate->texts, "no call is left of %s%s",
					  set->traces[first]->dir,
					  n > 1 ? arena_printf(&gate->texts, " and %zu more", n - 1)
						: ""));
}

static bool is_place_in(const char *path, const struct finding *findings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (findings[i].place.module && !strcmp(findings[i].place.module, path))
			return true;
	return false;
}

static bool names_places(const struct gate *gate)
{
	for (size_t i = 0; i < gate->suppressions.n; i++)
		if (gate->suppressions.all[i].place)
			return true;
	return gate->baseline.path;
}

void gate_look_at_files(struct gate *gate, const struct finding *findings, size_t n,
			struct symbolizer *symbols)
{
	const struct unread_file *files;
	size_t i, n_files;

	if (!names_places(gate))
		return;
	files = symbolizer_unread(symbols, &n_files);
	for (i = 0; i < n_files; i++)
		if (is_place_in(files[i].path, findings, n))
			gate->unnamed = arena_printf(&gate->texts, "%s%s%s %s", gate->unnamed ?: "",
						     gate->unnamed ? "; " : "", files[i].path,
						     text_unread(&gate->texts, &files[i]));
}

/* ---- judging -------------------------------------------------------------------------------- */

static bool counts(const struct finding *f)
{
	return !f->gate.suppressed && f->gate.compared != COMPARED_SAME;
}

static void add_failure(struct gate *gate, const struct gate_failure *failure)
{
	gate->failures = grow(gate->failures, gate->n_failures, sizeof(*failure));
	gate->failures[gate->n_failures++] = *failure;
}

/* What of --fail-on forbids the finding; NULL: nothing. */
static const char *forbidden(const struct gate *gate, const struct finding *f)
{
	for (size_t i = 0; i < gate->n_fail_on; i++)
		if (gate->fail_on[i] == f->detector)
			return f->detector->id;
	if (gate->problem && finding_problem(f))
		return "problem";
	return gate->any ? "any" : NULL;
}

/* Texts of failures outlive the report. */
static const char *time_text(struct gate *gate, uint64_t ns)
{
	char text[32];

	format_ns(text, sizeof(text), ns);
	return arena_printf(&gate->texts, "%s", text);
}

/* "gains up to 5.200 ms", or what it cost, as far as that is known. */
static const char *weight_text(struct gate *gate, const struct cost *cost)
{
	if (cost->unknown)
		return "its cost is unknown";
	if (!cost->gain_known)
		return arena_printf(&gate->texts, "cost %s", time_text(gate, cost_ns(cost)));
	return arena_printf(&gate->texts, "its cure gains up to %s",
			    time_text(gate, cost->gain_high_ns));
}

static void judge_finding(struct gate *gate, struct finding *f)
{
	const char *what = forbidden(gate, f);

	gate->counted++;
	gate->counted_unknown += f->cost.unknown;
	gate->counted_ns += f->cost.overlaps ? 0 : cost_known_ns(&f->cost);
	if (!what)
		return;
	f->gate.fails = true;
	add_failure(gate,
		    &(struct gate_failure){
			    .rule = arena_printf(&gate->texts, "--fail-on=%s", what),
			    .id = f->detector->id,
			    .text = arena_printf(&gate->texts, "%s: %s: %s", f->detector->id,
						 f->detector->title, weight_text(gate, &f->cost)),
			    .where = finding_where(f, &gate->texts),
		    });
}

void gate_judge_calls(struct gate *gate, const char *failed, bool none_returned)
{
	if (none_returned)
		cannot_judge(gate, "no call returned");
	if (failed && gate->any)
		add_failure(gate, &(struct gate_failure){
					  .rule = "--fail-on=any",
					  .text = arena_printf(&gate->texts, "%s", failed),
				  });
}

static bool in_budget(const struct budget *budget, const struct finding *f)
{
	/* What is in others' findings, too, would be in the sum of all twice. */
	return counts(f) &&
	       (budget->detector ? budget->detector == f->detector : !f->cost.overlaps);
}

static const char *amount(struct gate *gate, enum limit_unit unit, uint64_t value)
{
	switch (unit) {
	case LIMIT_NS:
		return time_text(gate, value);
	case LIMIT_PPM:
		return arena_printf(&gate->texts, "%.4g %%", (double)value * 100 / PPM);
	default:
		return arena_printf(&gate->texts, "%llu calls", (unsigned long long)value);
	}
}

/* What is in the budget: calls, time, or the share of the thread's time of which it is most
 * (cost_share.h). */
static uint64_t spent(const struct accounting *a, const struct budget *budget,
		      const struct finding *findings, size_t n)
{
	struct thread_costs gains = {0};
	uint64_t ns = 0, calls = 0;
	struct cost_share cost_share;

	for (size_t i = 0; i < n; i++) {
		if (!in_budget(budget, &findings[i]))
			continue;
		calls += findings[i].count;
		if (findings[i].cost.unknown)
			continue;
		ns += cost_gain_ns(&findings[i].cost);
		finding_add_gains(&gains, &findings[i]);
	}
	cost_share = cost_share_of(a, &gains, ns);
	thread_costs_release(&gains);
	if (budget->unit == LIMIT_CALLS)
		return calls;
	return budget->unit == LIMIT_PPM ? (uint64_t)(cost_share.share * PPM) : ns;
}

static void judge_budget(struct gate *gate, const struct accounting *a, const struct budget *budget,
			 struct finding *findings, size_t n)
{
	static const char *const units[LIMIT_UNITS] = {"ns", "ppm", "calls"};
	uint64_t value = spent(a, budget, findings, n);

	if (value <= budget->limit)
		return;
	for (size_t i = 0; i < n; i++)
		findings[i].gate.fails |= in_budget(budget, &findings[i]);
	add_failure(gate, &(struct gate_failure){
				  .rule = arena_printf(&gate->texts, "--budget=%s", budget->text),
				  .id = budget->detector ? budget->detector->id : NULL,
				  .text = arena_printf(&gate->texts, "%s, more than %s",
						       amount(gate, budget->unit, value),
						       amount(gate, budget->unit, budget->limit)),
				  .value = value,
				  .limit = budget->limit,
				  .unit = units[budget->unit],
			  });
}

bool gate_folds(const struct finding *f)
{
	return f->gate.suppressed || (finding_minor(f) && !f->remarks.shown && !f->gate.fails);
}

/* The place of a finding among the others: problems, notes, what is minor, what is accepted; of
 * each first what counts. */
static int tier(const struct finding *f)
{
	if (f->gate.suppressed)
		return TIERS - 1;
	return (finding_problem(f) ? 0 : gate_folds(f) ? 4 : 2) + !counts(f);
}

static bool is_in_order(const struct finding *findings, size_t n)
{
	int before = 0, now;

	for (size_t i = 0; i < n; i++, before = now) {
		now = tier(&findings[i]);
		if (now < before)
			return false;
	}
	return true;
}

static void put_in_order(struct finding *findings, size_t n)
{
	struct finding *sorted;
	size_t i, kept = 0;

	if (is_in_order(findings, n))
		return;
	sorted = xcalloc(n, sizeof(*sorted));
	for (int t = 0; t < TIERS; t++)
		for (i = 0; i < n; i++)
			if (tier(&findings[i]) == t)
				sorted[kept++] = findings[i];
	memcpy(findings, sorted, n * sizeof(*sorted));
	free(sorted);
}

void gate_judge(struct gate *gate, const struct accounting *a, struct finding *findings, size_t n)
{
	if (gate->baseline.path)
		baseline_compare(&gate->baseline, findings, n);
	for (size_t i = 0; i < n; i++) {
		findings[i].gate.suppressed = suppress_reason(&gate->suppressions, &findings[i]);
		if (findings[i].gate.suppressed) {
			gate->suppressed++;
			gate->suppressed_unknown += findings[i].cost.unknown;
			gate->suppressed_ns +=
				findings[i].cost.overlaps ? 0 : cost_known_ns(&findings[i].cost);
		} else if (counts(&findings[i])) {
			judge_finding(gate, &findings[i]);
		}
	}
	for (size_t i = 0; i < gate->n_budgets; i++)
		judge_budget(gate, a, &gate->budgets[i], findings, n);
	put_in_order(findings, n);
}
