/*
 * analyzer/sections/findings.c: the findings of a report. Called by `report` and `why`.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "base/function_name.h"
#include "blame/blame.h"
#include "findings/detector.h"
#include "findings/site.h"
#include "text/where.h"
#include "text/text.h"

struct finding_row {
	const char *id, *title, *severity, *headline, *cost_known, *program, *host, *function,
		*module, *caller, *file, *library, *library_caller, *where, *elsewhere;
	const char *python, *python_lines, *python_function, *python_file;
	const char *what, *fix, *otherwise, *gain, *more, *costs, *evidence, *overlaps, *suppressed,
		*compared, *fails;
	const char *share, *share_of, *recurs, *recurrence;
	uint64_t share_ppm, share_of_ns, share_thread;
	uint64_t rank, cost_ns, total_ns, own_ns, others_ns, gain_low_ns, gain_high_ns, idle_gpu_ns,
		joined_ns, run_ns, count, bytes, alike, alike_ns, offset;
	const struct table *stack, *ranges;
	uint64_t working_ns, occasions, every_steps, before_ns, line, python_line, processes,
		worst_at_ns, worst_ns, worst_thread, worst_device;
};

static const struct column finding_columns[] = {
	COLUMN_TONE(struct finding_row, rank, "#", UNIT_PLAIN, TONE_SEVERITY),
	COLUMN(struct finding_row, cost_ns, "cost", UNIT_NS_IF_KNOWN),
	COLUMN(struct finding_row, gain_high_ns, "gain", UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct finding_row, cost_known, UNIT_TEXT),
	COLUMN_TEXT_TONE(struct finding_row, headline, "what", TONE_SEVERITY),
	COLUMN_JSON(struct finding_row, id, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, title, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, severity, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, total_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct finding_row, own_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct finding_row, others_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct finding_row, joined_ns, UNIT_NS),
	COLUMN_JSON(struct finding_row, run_ns, UNIT_NS),
	COLUMN_JSON(struct finding_row, share, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, share_ppm, UNIT_COUNT),
	COLUMN_JSON(struct finding_row, share_of, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, share_of_ns, UNIT_NS),
	COLUMN_JSON(struct finding_row, share_thread, UNIT_PLAIN),
	COLUMN_JSON(struct finding_row, recurs, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, recurrence, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, occasions, UNIT_COUNT),
	COLUMN_JSON(struct finding_row, every_steps, UNIT_COUNT),
	COLUMN_JSON(struct finding_row, working_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct finding_row, gain_low_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct finding_row, idle_gpu_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct finding_row, count, UNIT_COUNT),
	COLUMN_JSON(struct finding_row, bytes, UNIT_BYTES),
	COLUMN_JSON(struct finding_row, alike, UNIT_COUNT),
	COLUMN_JSON(struct finding_row, alike_ns, UNIT_NS),
	COLUMN_JSON(struct finding_row, processes, UNIT_COUNT),
	COLUMN_JSON(struct finding_row, program, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, host, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, function, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, module, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, offset, UNIT_COUNT),
	COLUMN_JSON(struct finding_row, caller, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, file, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, line, UNIT_COUNT),
	COLUMN_JSON(struct finding_row, library, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, library_caller, UNIT_TEXT),
	COLUMN_LINE(struct finding_row, where, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, elsewhere, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, python, UNIT_TEXT),
	COLUMN_TEXT_WORDS(struct finding_row, python_lines),
	COLUMN_JSON(struct finding_row, python_function, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, python_file, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, python_line, UNIT_COUNT),
	COLUMN_JSON(struct finding_row, what, UNIT_TEXT),
	COLUMN_TEXT_WORDS(struct finding_row, costs),
	COLUMN_TEXT_WORDS(struct finding_row, evidence),
	COLUMN_TABLE(struct finding_row, ranges, &range_shares_kind),
	COLUMN_TABLE(struct finding_row, stack, &stack_table_kind),
	COLUMN_JSON(struct finding_row, worst_at_ns, UNIT_NS),
	COLUMN_JSON(struct finding_row, worst_ns, UNIT_NS),
	COLUMN_JSON(struct finding_row, worst_thread, UNIT_PLAIN),
	COLUMN_JSON(struct finding_row, worst_device, UNIT_DEVICE),
	COLUMN_TEXT_WORDS(struct finding_row, gain),
	COLUMN_TEXT_WORDS(struct finding_row, more),
	COLUMN_JSON(struct finding_row, fix, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, otherwise, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, overlaps, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, suppressed, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, compared, UNIT_TEXT),
	COLUMN_JSON(struct finding_row, before_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct finding_row, fails, UNIT_TEXT),
};

#define FINDING_KIND(title_) \
	{ \
		TABLE("findings", title_, struct finding_row, finding_columns), \
			.text_rows = 10, .when_empty = "none", \
	}
static const struct table_kind finding_kind =
	FINDING_KIND("FINDINGS: problems, then notes; first those whose cure gains most by itself");
static const struct table_kind about_kind =
	FINDING_KIND("FINDINGS in its calls, numbered as in the report");
static const struct table_kind one_kind = FINDING_KIND("FINDING, numbered as in the report");

/* Text leaves out those that cost little, unless their detector wants them seen or the gate fails
 * on them, and those that are suppressed: the gate has put them last (gate.c). Returns how many. */
static size_t count_folded(const struct finding *findings, size_t n)
{
	size_t shown = n;

	while (shown && gate_folds(&findings[shown - 1]))
		shown--;
	return n - shown;
}

/* "12 % of thread 7's working time". */
static const char *share_text(struct arena *texts, const struct cost_share *cost_share)
{
	static const char *const wholes[] = {
		[COST_SHARE_WORKING] = "working time", [COST_SHARE_THREAD] = "time"};
	const char *share = text_percent(texts, cost_share->share, 1), *rank;

	if (cost_share->whole == COST_SHARE_ALL || !cost_share->thread)
		return arena_printf(texts, "%s of the threads' time", share);
	rank = text_rank(texts, cost_share->thread->process->trace);
	if (rank)
		return arena_printf(texts, "%s of the %s of thread %u of %s%s", share,
				    wholes[cost_share->whole], cost_share->thread->tid, rank,
				    text_where_runs(texts, cost_share->thread->process->trace,
						    SPY_DEVICE_NONE));
	return arena_printf(texts, "%s of thread %u%s's %s", share, cost_share->thread->tid,
			    text_host(texts, cost_share->thread->process->trace),
			    wholes[cost_share->whole]);
}

/* "; with 11 more like it, each minor, it is 40.2 ms, 5.2 % of …"; nothing if there are none. */
static const char *alike_text(struct arena *texts, const struct similar_cases *alike,
			      uint64_t cost_ns)
{
	if (!alike->count)
		return "";
	return arena_printf(texts, "; with %llu more at other places, each minor: %s, %s",
			    (unsigned long long)alike->count, text_time(texts, cost_ns + alike->ns),
			    share_text(texts, &alike->cost_share));
}

/* "; rank 3 (node7)", of one process with a rank; else where there are several hosts: "; on node7". */
static const char *where_runs(struct arena *texts, const struct origin *origin)
{
	const struct host *host = origin->host;
	const char *rank = origin->process && origin->processes == 1
				   ? text_rank(texts, origin->process->trace)
				   : NULL;

	if (rank)
		return arena_printf(
			texts, "; %s%s", rank,
			text_where_runs(texts, origin->process->trace, SPY_DEVICE_NONE));
	return host && !host->alone ? arena_printf(texts, "; on %s", host->label) : "";
}

/* "; GPU idle for it: 123 ms"; nothing if that is nothing to speak of, or unknown. */
static const char *idle_gpu_text(struct arena *texts, const struct cost *cost)
{
	if (!cost->idle_gpu_known || cost->idle_gpu_ns < REPORT_IDLE_LEAST_NS)
		return "";
	return arena_printf(texts, "; GPU idle for it: %s", text_time(texts, cost->idle_gpu_ns));
}

/* ", in each step"; nothing where that is unknown. */
static const char *recurs_text(struct arena *texts, const struct model *model,
			       const struct finding *f)
{
	const char *words = recurrence_words(texts, model, &f->recurrence);

	return words ? arena_printf(texts, ", %s", words) : "";
}

static const char *cost_text(struct arena *texts, const struct model *model,
			     const struct finding *f)
{
	const struct cost *cost = &f->cost;
	const char *share = share_text(texts, &cost->cost_share);
	const char *alike = alike_text(texts, &f->similar, cost_ns(cost));
	const char *recurs = recurs_text(texts, model, f);

	if (cost->unknown)
		return arena_printf(texts, "%s; its cost is unknown", f->what);
	if (!report_shows_others(cost->others_ns, cost_ns(cost)))
		return arena_printf(texts, "%s; %s%s%s", f->what, share, recurs, alike);
	return arena_printf(
		texts,
		"%s; it cost its threads %s, and %s of other threads that waited for it: %s%s%s",
		f->what, text_time(texts, cost->own_ns), text_time(texts, cost->others_ns), share,
		recurs, alike);
}

static const char *evidence_text(struct arena *texts, const struct model *model,
				 const struct finding *f, const struct evidence *e)
{
	if (!e->thread || !f->cost.own_ns)
		return NULL;
	return arena_printf(texts, "worst: %s at %s, in %s", text_time(texts, e->duration_ns),
			    text_since(texts, model, e->begin_ns),
			    text_thread(texts, e->thread, e->device));
}

static const char *gain_text(struct arena *texts, const struct cost *cost, const char *fix)
{
	const char *from = "up to";

	if (!cost->gain_known || !cost->gain_high_ns)
		return fix;
	if (report_is_point(cost->gain_low_ns, cost->gain_high_ns))
		from = "about";
	else if (cost->gain_low_ns)
		from = arena_printf(texts, "%s to", text_time(texts, cost->gain_low_ns));
	return arena_printf(texts, "%s Gains %s %s of the threads' time.", fix, from,
			    text_time(texts, cost->gain_high_ns));
}

static const char *const share_keys[] = {
	[COST_SHARE_WORKING] = "working", [COST_SHARE_THREAD] = "thread", [COST_SHARE_ALL] = "all"};

static const struct evidence *worst_of(const struct finding *f)
{
	static const struct evidence none;

	return f->site ? &f->site->worst : &none;
}

/* Why its cost is not what a problem's is. */
static const char *note(const struct finding *f)
{
	if (f->remarks.maybe_harmless)
		return ", a note (perhaps free)";
	if (f->cost.unknown)
		return ", a note (cost unknown)";
	if (f->remarks.once && !finding_minor(f))
		return ", a note (once a run)";
	if (f->remarks.counted && !finding_minor(f))
		return ", a note (of another finding)";
	if (finding_gains_little(f))
		return ", a note (gains little)";
	if (finding_severity(f) == SEVERITY_NOTE)
		return ", a note";
	return finding_severity(f) == SEVERITY_MINOR ? ", minor" : "";
}

/* What the gate says of it, or how grave it is. */
static const char *repeated(struct arena *texts, const struct finding *f)
{
	if (f->gate.suppressed)
		return arena_printf(texts, ", accepted (%s)", f->gate.suppressed);
	if (f->gate.compared == COMPARED_NOT || f->gate.compared == COMPARED_SAME)
		return note(f);
	if (f->gate.compared == COMPARED_NEW)
		return ", NEW";
	return arena_printf(texts, ", WORSE (it was %s)",
			    f->gate.before_ns == UNKNOWN_NS ? "unknown"
							    : text_time(texts, f->gate.before_ns));
}

/* The id first: `explain`, --suppress and --budget ask for it. */
static const char *headline(struct arena *texts, const struct finding *f)
{
	return arena_printf(texts, "%s%s: %s", f->detector->id, repeated(texts, f),
			    f->detector->title);
}

static uint64_t if_known(bool known, uint64_t ns)
{
	return known ? ns : UNKNOWN_NS;
}

#define PYTHON_LINES_MOST 3

/* "train.py:42 in step; also data.py:7 in load, and 2 more lines". */
static const char *python_words(struct arena *texts, const struct finding_stacks *stacks)
{
	const char *words = text_python(texts, &stacks->python[0].at);
	size_t i, more;

	for (i = 1; i < stacks->n_python && i < PYTHON_LINES_MOST; i++)
		words = arena_printf(texts, "%s%s %s", words, i > 1 ? "," : "; also",
				     text_python(texts, &stacks->python[i].at));
	more = stacks->n_minor_python + stacks->n_python - i;
	return more ? arena_printf(texts, "%s, and %s", words, text_count(texts, more, "more line"))
		    : words;
}

/* The costliest of the lines. */
static void describe_python(struct finding_row *row, struct arena *texts,
			    const struct finding_stacks *stacks)
{
	if (!stacks->n_python)
		return;
	row->python = arena_printf(texts, "from Python: %s", python_words(texts, stacks));
	/* for people unless it says what the place did */
	if (!stacks->python_place || stacks->n_python + stacks->n_minor_python > 1)
		row->python_lines = row->python;
	row->python_function = arena_printf(texts, "%s", stacks->python[0].at.code->function);
	row->python_file = arena_printf(texts, "%s", stacks->python[0].at.code->file);
	row->python_line = stacks->python[0].at.line;
}

static struct finding_row describe(struct arena *texts, const struct model *model,
				   struct symbolizer *symbols, const struct finding *f,
				   uint64_t run_ns)
{
	const struct finding_place *place = &f->place;
	const struct cost *cost = &f->cost;
	const struct evidence *worst = worst_of(f);
	struct finding_row row = {
		.id = f->detector->id,
		.title = f->detector->title,
		.headline = headline(texts, f),
		.severity = severity_keys[finding_severity(f)],
		.program = report_program(texts, model->set,
					  f->origin.process ? f->origin.process->trace : NULL),
		.host = text_known_host(texts, f->origin.host),
		.function = place->function,
		.module = place->module,
		.caller = place->caller,
		.file = place->file,
		.library = place->library ? path_basename(place->library) : NULL,
		.library_caller = place->library_caller,
		.where = finding_where(f, texts),
		.elsewhere = place->elsewhere ? "yes" : "no",
		.what = f->what,
		.fix = f->fix,
		.otherwise = f->otherwise,
		.cost_ns = if_known(!cost->unknown, cost_ns(cost)),
		.cost_known = cost->unknown ? "no" : "yes",
		.total_ns = f->site ? f->site->total_ns : UNKNOWN_NS,
		.own_ns = if_known(!cost->unknown, cost->own_ns),
		.others_ns = if_known(!cost->unknown, cost->others_ns),
		.joined_ns = cost->joined_ns,
		.run_ns = run_ns,
		.share = cost->unknown ? NULL : share_text(texts, &cost->cost_share),
		.share_ppm = cost->unknown ? 0 : (uint64_t)(cost->cost_share.share * 1e6),
		.share_of = cost->unknown ? NULL : share_keys[cost->cost_share.whole],
		.share_of_ns = cost->unknown ? 0 : cost->cost_share.whole_ns,
		.share_thread = cost->cost_share.thread ? cost->cost_share.thread->tid : 0,
		.recurs = recurrence_words(texts, model, &f->recurrence),
		.recurrence = recurs_keys[f->recurrence.recurs],
		.occasions = f->recurrence.occasions,
		.every_steps = f->recurrence.steps_sure ? f->recurrence.every : 0,
		.working_ns = if_known(f->recurrence.recurs, f->recurrence.working_ns),
		.gain_low_ns = if_known(cost->gain_known, cost->gain_low_ns),
		.gain_high_ns = if_known(cost->gain_known, cost->gain_high_ns),
		.idle_gpu_ns = if_known(cost->idle_gpu_known, cost->idle_gpu_ns),
		.count = f->count,
		.bytes = f->bytes,
		.alike = f->similar.count,
		.alike_ns = f->similar.ns,
		.offset = place->offset,
		.line = place->line,
		.processes = f->origin.processes,
		.worst_ns = worst->duration_ns,
		.worst_thread = worst->thread ? worst->thread->tid : 0,
		.worst_device = worst->thread ? worst->device : SPY_DEVICE_NONE,
		.overlaps = cost->overlaps ? "yes" : "no",
		.suppressed =
			f->gate.suppressed ? arena_printf(texts, "%s", f->gate.suppressed) : NULL,
		.compared = compared_keys[f->gate.compared],
		.before_ns = if_known(f->gate.compared, f->gate.before_ns),
	};

	if (worst->thread && worst->begin_ns > model->first_ns)
		row.worst_at_ns = worst->begin_ns - model->first_ns;
	describe_python(&row, texts, &f->stacks);
	row.costs = arena_printf(texts, "%s%s%s", cost_text(texts, model, f),
				 idle_gpu_text(texts, cost), where_runs(texts, &f->origin));
	row.evidence = evidence_text(texts, model, f, worst);
	row.gain = gain_text(texts, cost, f->fix);
	if (f->otherwise)
		row.gain = arena_printf(texts, "%s %s", row.gain, f->otherwise);
	if (f->site && f->site->ranges)
		row.ranges = report_range_shares(texts, f->site->ranges, cost->own_ns);
	if (f->stacks.shown)
		row.stack =
			report_stack(texts, symbols, f->stacks.shown->stack, f->stacks.shown->ns);
	return row;
}

/* Of the first problem: what is wrong may cost nothing. */
static const char *first_text(struct arena *texts, const struct finding_row *row)
{
	const char *cost;

	if (finding_little(row->cost_ns, (double)row->share_ppm / 1e6))
		return arena_printf(texts, "%s: %s", row->id, row->title);
	cost = arena_printf(texts, "%s, %s", text_time(texts, row->cost_ns), row->share);
	if (row->gain_high_ns == UNKNOWN_NS || report_is_point(row->gain_high_ns, row->cost_ns))
		return cost;
	return arena_printf(texts, "%s, gains up to %s", cost, text_time(texts, row->gain_high_ns));
}

/* Those that are not suppressed. Problems come first. */
static void count_findings(struct arena *texts, struct summary_row *summary,
			   const struct finding *findings, const struct finding_row *rows, size_t n)
{
	uint64_t problems = 0, notes = 0;

	for (size_t i = 0; i < n; i++) {
		enum severity severity = finding_severity(&findings[i]);

		if (findings[i].gate.suppressed)
			continue;
		notes += severity == SEVERITY_NOTE;
		problems += severity == SEVERITY_PROBLEM;
	}
	report_found(texts, summary, problems, notes, problems ? first_text(texts, rows) : NULL);
}

/* Where findings are numbered otherwise than in an answer of `why`, there is none. */
static const char *more_text(struct report *report, const struct gate *gate,
			     const struct finding *f, size_t number)
{
	if (!report->again || gate->suppressed || f->gate.compared != COMPARED_NOT)
		return NULL;
	return report_text(report, "More: %s why %zu%s", report->called, number, report->again);
}

static const char *costs_summed(const struct callstats *stats)
{
	if (callstats_callers(stats) < 2)
		return NULL;
	return "Cost and gain are thread-seconds: the time of all threads, added up.";
}

void report_findings(struct report *report, struct findings *f, const struct ranks *ranks,
		     struct symbolizer *symbols, struct gate *gate, struct summary_row *summary)
{
	uint64_t run_ns = f->accounts->stats->run_ns;
	struct finding_row *rows;
	struct finding *findings;
	struct table *table;
	size_t i, n, folded, n_shown;

	findings = findings_conclude(f, ranks, symbols, &report->arena, &n);
	gate_look_at_files(gate, findings, n, symbols);
	gate_judge(gate, f->accounts, findings, n);
	report_gate(report, gate);
	folded = count_folded(findings, n);
	n_shown = report_rows(report, &finding_kind, n);
	rows = xcalloc(n_shown + 1, sizeof(*rows));
	for (i = 0; i < n_shown; i++) {
		rows[i] =
			describe(&report->arena, f->accounts->model, symbols, &findings[i], run_ns);
		rows[i].rank = i + 1;
		rows[i].more = more_text(report, gate, &findings[i], i + 1);
		rows[i].fails = !gate_asked(gate) ? NULL : findings[i].gate.fails ? "yes" : "no";
	}
	count_findings(&report->arena, summary, findings, rows, n);
	findings_free(findings, n);
	table = report_add(report, &finding_kind, rows, n);
	table->minor_rows = folded;
	if (gate->suppressed)
		table->minor_name = "minor or suppressed";
	if (n && folded < n)
		table->intro = costs_summed(f->accounts->stats);
	else if (n)
		table->intro = gate->suppressed ? "None that costs much and is not suppressed."
						: "None that costs much.";
}

/* ---- of one subject -------------------------------------------------------------------------- */

static bool has_thread(const struct thread_set *set, const struct accounting *a)
{
	for (size_t i = 0; i < a->model->n_threads; i++)
		if (subject_is_thread(&a->blame->subject, a->model->threads[i]) &&
		    thread_set_has(set, a->model->threads[i]))
			return true;
	return false;
}

/* By the function that makes the calls, another one that the finding names, or one of Python: not one that only leads there. */
static bool is_in(const struct finding *f, const char *function)
{
	if (!f->lookup.between &&
	    ((f->place.caller && function_name_fits(f->place.caller, function)) ||
	     (f->place.inner && function_name_fits(f->place.inner, function))))
		return true;
	for (size_t i = 0; i < f->lookup.n_named; i++)
		if (f->lookup.named[i].function &&
		    function_name_fits(f->lookup.named[i].function, function))
			return true;
	for (size_t i = 0; i < f->stacks.n_python; i++)
		if (python_is_program(&f->stacks.python[i].at) &&
		    function_name_fits(f->stacks.python[i].at.code->function, function))
			return true;
	return false;
}

/* By the line of the program, another one that it tells of, or one of Python. */
static bool is_at(const struct finding *f, const struct subject_place *place)
{
	if (names_file(f->place.file) && subject_place_fits(place, f->place.file, f->place.line))
		return true;
	for (size_t i = 0; i < f->lookup.n_named; i++)
		if (names_file(f->lookup.named[i].file) &&
		    subject_place_fits(place, f->lookup.named[i].file, f->lookup.named[i].line))
			return true;
	for (size_t i = 0; i < f->stacks.n_python; i++)
		if (subject_place_fits(place, f->stacks.python[i].at.code->file,
				       f->stacks.python[i].at.line))
			return true;
	return false;
}

/* Only calls have threads and GPUs; what is found in the whole run may have a function. */
static bool is_about(const struct finding *f, const struct accounting *a)
{
	const struct subject *s = &a->blame->subject;

	switch (s->kind) {
	case SUBJECT_CALL:
		return f->place.function &&
		       !strcmp(f->place.function, a->model->set->functions.all[s->fn].name);
	case SUBJECT_THREAD:
		return f->site && has_thread(&f->site->callers, a);
	case SUBJECT_DEVICE:
		return f->site && (f->site->devices >> min_u64(s->device, 63) & 1);
	case SUBJECT_PLACE:
		return s->place->function ? is_in(f, s->place->function) : is_at(f, s->place);
	default:
		return false;
	}
}

/* "main.cu:17,main.cu:20": those that cost most. */
static const char *other_places(struct arena *texts, const struct finding *findings, size_t n)
{
	const char *list = NULL;
	size_t i, listed = 0;

	for (i = 0; i < n && listed < 8; i++) {
		const struct finding_place *place = &findings[i].place;
		const char *name;

		if (!names_file(place->file) || !place->line)
			continue;
		name = arena_printf(texts, "%s:%llu", path_basename(place->file),
				    (unsigned long long)place->line);
		if (list && strstr(list, name))
			continue;
		list = list ? arena_printf(texts, "%s,%s", list, name) : name;
		listed++;
	}
	return list;
}

void report_findings_about(struct report *report, struct findings *f, const struct ranks *ranks,
			   struct symbolizer *symbols)
{
	uint64_t run_ns = f->accounts->stats->run_ns;
	const struct subject *subject = &f->accounts->blame->subject;
	struct gate none = {0};
	struct finding_row *rows;
	struct finding *findings;
	struct table *table;
	size_t i, n, n_rows = 0, folded = 0, first_folded;

	if (subject->kind == SUBJECT_LOCK)
		return;
	findings = findings_conclude(f, ranks, symbols, &report->arena, &n);
	gate_judge(&none, f->accounts, findings, n);
	first_folded = n - count_folded(findings, n);
	rows = xcalloc(n + 1, sizeof(*rows));
	for (i = 0; i < n; i++) {
		if (subject->finding ? subject->finding != i + 1
				     : !is_about(&findings[i], f->accounts))
			continue;
		rows[n_rows] =
			describe(&report->arena, f->accounts->model, symbols, &findings[i], run_ns);
		rows[n_rows++].rank = i + 1;
		folded += i >= first_folded && !subject->finding;
	}
	if (subject->kind == SUBJECT_PLACE && !n_rows)
		subject->place->others = other_places(&report->arena, findings, n);
	findings_free(findings, n);
	table = report_add(report, subject->kind == SUBJECT_FINDING ? &one_kind : &about_kind, rows,
			   n_rows);
	table->minor_rows = folded;
	if (n_rows && folded == n_rows)
		table->intro = "None that costs much.";
}
