/*
 * analyzer/cmd_read/cmd_why.c: `cudaspy why`: of one thread, CUDA function, lock or GPU: what it waited for,
 * which threads it held up, what was found in its calls, and the calls that show it. Of a place or a function of the program:
 * what happened there.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "analysis.h"
#include "cmd/output.h"
#include "why_place.h"
#include "base/function_name.h"
#include "base/redact.h"
#include "base/suggest.h"
#include "findings/gate.h"
#include "base/jobs.h"
#include "render/render.h"
#include "sections/sections.h"

#define SCHEMA "cudaspy-why-1"

/* Larger numbers are threads' at once: a report has no more findings that one would ask about. */
#define FINDINGS_MOST 999

struct options {
	const char *format;
	const char *profile;
	struct filter_words words;
	const char *run;
	const char *jobs;
	struct output_options output;
	bool redact;
};

/* What a question is asked of. */
struct asked {
	const char *const *dirs;
	size_t n_dirs;
	const struct renderer *renderer;
	const char *profile;
	const struct filter *filter;
	struct trace_filter traces;
	FILE *out;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"format",  'f', "FORMAT", FORMATS, offsetof(struct options, format)},
	{"profile", 'p', "FILE",   "what calls cost on that machine, from cudaspy calibrate", offsetof(struct options, profile)},
	FILTER_OPTIONS(struct options, words),
	RUN_OPTION(struct options, run),
	JOBS_OPTION(struct options, jobs),
	OUTPUT_OPTIONS(struct options, output),
	REDACT_OPTION(struct options, redact),
};
/* clang-format on */

/* A whole number after `prefix`, in letters of either case, or -1. */
static int64_t number_after(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);
	char *end;
	long long value;

	if (strncasecmp(text, prefix, n) != 0)
		return -1;
	text += n;
	if (*text == ':' || *text == '=')
		text++;
	if (*text < '0' || *text > '9')
		return -1;
	value = strtoll(text, &end, 10);
	return *end || value > UINT32_MAX ? -1 : value;
}

/* A lock is named by its place in the list of the longest waited for, so that one has to be
 * made. */
static bool find_lock(struct subject *subject, struct analysis *a, int64_t number)
{
	size_t n;
	struct lock **locks = locks_name(&a->accounts.locks, &n);
	bool found = number >= 1 && (size_t)number <= n;

	if (found)
		*subject = (struct subject){.kind = SUBJECT_LOCK, .lock = locks[number - 1]->key};
	else
		warn("why: there is no lock L%lld: %zu were waited for", (long long)number, n);
	free(locks);
	return found;
}

static bool has_thread(const struct analysis *a, const struct subject *subject)
{
	for (size_t i = 0; i < a->model.n_threads; i++)
		if (subject_is_thread(subject, a->model.threads[i]))
			return true;
	return false;
}

static bool has_device(const struct analysis *a, uint32_t device)
{
	if (device >= SPY_DEVICE_NONE)
		return false;
	for (size_t i = 0; i < a->model.n_processes; i++)
		if (a->stats.devices[callstats_index(&a->stats, i, device)].count)
			return true;
	return false;
}

static bool was_called(const struct callstats *stats, uint32_t fn)
{
	return fn < stats->n_functions &&
	       (stats->direct[fn].count || stats->nested[fn].count || stats->counted[fn]);
}

/* Names of the program's functions live in the arena. */
struct functions_tried {
	struct suggest *suggest;
	struct arena *texts;
};

static void try_function(void *data, const char *function)
{
	struct functions_tried *tried = data;

	suggest_try(tried->suggest, function);
	suggest_try(tried->suggest, arena_take(tried->texts, function_name_short(function)));
}

/* "; cuMemFree_v2 was called": the shortest name of a function that was, with that word in it; else what is most like
 * the word of all that one can ask about; or nothing. symbols: of the program's functions, too; NULL: not these. */
static const char *similar_name(const struct analysis *a, struct symbolizer *symbols,
				const char *word, char *text, size_t size)
{
	struct suggest suggest = {.word = word};
	struct arena texts = {0};
	struct functions_tried tried = {&suggest, &texts};
	const char *name, *shortest = NULL;

	for (uint32_t fn = 0; fn < a->set->functions.count && *word; fn++) {
		name = a->set->functions.all[fn].name;
		if (!was_called(&a->stats, fn))
			continue;
		suggest_try(&suggest, name);
		if (strcasestr(name, word) && (!shortest || strlen(name) < strlen(shortest)))
			shortest = name;
	}
	for (size_t i = 0; i < a->model.n_threads; i++)
		if (a->model.threads[i]->name[0])
			suggest_try(&suggest,
				    a->model.threads[i]->given ?: a->model.threads[i]->name);
	if (!shortest && symbols)
		why_functions(a, symbols, try_function, &tried);
	text[0] = '\0';
	if (shortest)
		snprintf(text, size, "; %s was called", shortest);
	else
		(void)suggest_text(&suggest, text);
	arena_release(&texts);
	return text;
}

/* -EINVAL after a message; -ESRCH without one: CUDA has no such function. */
static int find_function(struct subject *subject, const struct analysis *a, const char *name)
{
	char text[SUGGEST_TEXT];
	uint32_t fn;

	for (fn = 0; fn < a->set->functions.count; fn++)
		if (!strcmp(a->set->functions.all[fn].name, name))
			break;
	if (fn == a->set->functions.count)
		return -ESRCH;
	*subject = (struct subject){.kind = SUBJECT_CALL, .fn = fn};
	if (was_called(&a->stats, fn))
		return 0;
	warn("why: %s was never called in these traces%s", name,
	     similar_name(a, NULL, name, text, sizeof(text)));
	return -EINVAL;
}

static int unknown_word(const struct analysis *a, struct symbolizer *symbols, const char *word)
{
	char text[SUGGEST_TEXT];

	warn("why: '%s' is no finding (1), no thread's number, nor the name of one, no CUDA function, "
	     "no function of the program that a sample or a stack shows, no lock (L1), no GPU (gpu0) "
	     "and no place (file.cu:17)%s",
	     word, similar_name(a, symbols, word, text, sizeof(text)));
	return -EINVAL;
}

/* What a word means in these traces. -EINVAL after a message; -ESRCH without one: it may be a function of the program. */
static int find_subject(struct subject *subject, struct analysis *a, const char *word)
{
	int64_t number;

	if ((number = number_after(word, "L")) >= 0)
		return find_lock(subject, a, number) ? 0 : -EINVAL;
	if ((number = number_after(word, "gpu")) >= 0 ||
	    (number = number_after(word, "device")) >= 0) {
		*subject = (struct subject){.kind = SUBJECT_DEVICE, .device = (uint32_t)number};
		if (has_device(a, (uint32_t)number))
			return 0;
		warn("why: no call was made while GPU %lld was current", (long long)number);
		return -EINVAL;
	}
	if ((number = number_after(word, "")) >= 0 ||
	    (number = number_after(word, "thread")) >= 0) {
		*subject = (struct subject){.kind = SUBJECT_THREAD, .tid = (uint32_t)number};
		if (has_thread(a, subject))
			return 0;
		*subject = (struct subject){.kind = SUBJECT_THREAD, .name = word}; /* "thread3" */
		if (has_thread(a, subject))
			return 0;
		warn("why: there is no %sthread %lld in these traces",
		     isdigit((unsigned char)*word) && number <= FINDINGS_MOST ? "finding and no "
									      : "",
		     (long long)number);
		return -EINVAL;
	}
	*subject = (struct subject){.kind = SUBJECT_THREAD, .name = word};
	if (*word && has_thread(a, subject))
		return 0;
	*subject = (struct subject){0};
	return find_function(subject, a, word);
}

/* What the word will mean, as far as that can be known before the traces have been read: not which
 * lock is the longest waited for. */
static struct subject guess_subject(const struct trace_set *set, const char *word)
{
	struct subject subject = {.kind = SUBJECT_THREAD, .name = word};
	int64_t number;

	if (number_after(word, "L") >= 0)
		return (struct subject){.kind = SUBJECT_LOCK};
	if ((number = number_after(word, "gpu")) >= 0 ||
	    (number = number_after(word, "device")) >= 0)
		return (struct subject){.kind = SUBJECT_DEVICE, .device = (uint32_t)number};
	if ((number = number_after(word, "")) >= 0 || (number = number_after(word, "thread")) >= 0)
		return (struct subject){.kind = SUBJECT_THREAD, .tid = (uint32_t)number};
	for (uint32_t fn = 0; fn < set->functions.count; fn++)
		if (!strcmp(set->functions.all[fn].name, word))
			return (struct subject){.kind = SUBJECT_CALL, .fn = fn};
	return subject;
}

/* Was that what was meant? */
static bool was_meant(const struct subject *guess, const struct subject *subject)
{
	if (guess->kind != subject->kind || guess->kind == SUBJECT_LOCK ||
	    !guess->name != !subject->name)
		return false;
	return guess->name || (guess->tid == subject->tid && guess->fn == subject->fn &&
			       guess->device == subject->device);
}

/* To be said of a place of which nothing is known, as long as the arena lives. */
static const char *nothing_there(struct arena *texts, const struct subject_place *place)
{
	struct suggest suggest = {.word = place->text};
	char text[SUGGEST_TEXT], *others = xstrdup(place->others ?: "");
	const char *words;

	suggest_try_list(&suggest, others);
	words = arena_printf(
		texts, "why: no call, no sample and no wait is known at %s, and nothing was found there%s%s",
		place->text, suggest.best || !place->others ? "" : "; findings are at ",
		suggest.best ? suggest_text(&suggest, text) : place->others ?: "");
	free(others);
	return words;
}

/* Has the answer to a question about a place anything in it? */
static bool is_empty(const struct report *report)
{
	static const char *const tables[] = {"findings",      "worst_calls", "place_threads",
					     "place_gpus",    "place_calls", "place_waiters",
					     "own_lock_blame"};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (report_find(report, tables[i])->n_rows)
			return false;
	return true;
}

static void make_report(struct report *report, struct analysis *analysis,
			struct symbolizer *symbols, const struct asked *asked)
{
	report_init(report, SCHEMA);
	report->view = view_for(asked->out);
	report->view.verbose = true;
	analysis->model.complete = report_losses(report, &analysis->model);
	report_only(report, &analysis->ranks);
	report_waits(report, &analysis->findings, &analysis->ranks, symbols);
	report_files(report, symbols);
}

static int show(struct analysis *analysis, struct symbolizer *symbols, const struct asked *asked)
{
	struct report report;
	int err;

	make_report(&report, analysis, symbols, asked);
	err = renderer_show(asked->renderer, &report, asked->out);
	report_release(&report);
	return err;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* NULL after a message. */
static const struct rank *find_rank(const struct ranks *ranks, int64_t number)
{
	for (size_t i = 0; i < ranks->n; i++)
		if (ranks->order[i]->number == (uint64_t)number)
			return ranks->order[i];
	if (ranks->n)
		warn("why: there is no rank %lld in these traces: %zu from %u to %u",
		     (long long)number, ranks->n, ranks->order[0]->number,
		     ranks->order[ranks->n - 1]->number);
	else
		warn("why: no trace says which rank of a job it is");
	return NULL;
}

static int answer_rank(int64_t number, const struct asked *asked)
{
	struct analysis_options options = {.profile = asked->profile, .filter = asked->filter};
	struct trace_set set;
	struct analysis analysis = {.set = &set};
	const struct rank *rank = NULL;
	struct symbolizer *symbols;
	struct report report;
	int err = trace_set_open(&set, asked->dirs, asked->n_dirs, &asked->traces)
			  ?: analysis_run(&analysis, &set, &options);

	if (!err)
		rank = find_rank(&analysis.ranks, number);
	if (rank) {
		symbols = symbolizer_new();
		report_init(&report, SCHEMA);
		report.view = view_for(asked->out);
		report.view.verbose = true;
		analysis.model.complete = report_losses(&report, &analysis.model);
		report_only(&report, &analysis.ranks);
		report_rank(&report, &analysis.ranks, symbols, rank);
		report_files(&report, symbols);
		err = renderer_show(asked->renderer, &report, asked->out);
		report_release(&report);
		symbolizer_free(symbols);
	}
	analysis_release(&analysis);
	trace_set_release(&set);
	return err ? err : rank ? 0 : -EINVAL;
}

/* Reads the traces, with an eye on the calls that have to do with `subject`; NULL: on what the word
 * will mean, which is written to *guess. analysis_release and trace_set_release in all cases. */
static int read_traces(struct trace_set *set, struct analysis *analysis, const struct asked *asked,
		       const struct subject *subject, const char *word, struct subject *guess,
		       const struct listener *listener)
{
	int err = trace_set_open(set, asked->dirs, asked->n_dirs, &asked->traces);

	*analysis = (struct analysis){.set = set};
	if (err)
		return err;
	if (!subject && guess)
		*guess = guess_subject(set, word);
	return analysis_run(analysis, set,
			    &(struct analysis_options){.profile = asked->profile,
						       .filter = asked->filter,
						       .subject = subject ?: guess,
						       .listener = listener});
}

/* ---- findings and places --------------------------------------------------------------------- */

/* What is made of a finding or a place, while it is. */
struct place_answer {
	struct trace_set set;
	struct analysis analysis;
	struct symbolizer *symbols;
	struct why_place place;
	struct subject subject;
	struct listener listener;
};

static int read_for(struct place_answer *p, const struct asked *asked)
{
	p->symbols = symbolizer_new();
	p->place.symbols = p->symbols;
	p->listener = why_place_listener(&p->place);
	return read_traces(&p->set, &p->analysis, asked, &p->subject, NULL, NULL,
			   p->subject.kind == SUBJECT_PLACE ? &p->listener : NULL);
}

static void forget(struct place_answer *p)
{
	analysis_release(&p->analysis);
	trace_set_release(&p->set);
	symbolizer_free(p->symbols);
}

/* Takes up the n-th of a report's findings, and its place if it has one. False: there are not so many. */
static bool take_finding(struct place_answer *p, size_t n, size_t *n_findings)
{
	struct arena texts = {0};
	struct gate none = {0};
	struct finding *findings = findings_conclude(&p->analysis.findings, &p->analysis.ranks,
						     p->symbols, &texts, n_findings);
	bool found = n && n <= *n_findings;

	gate_judge(&none, &p->analysis.accounts, findings, *n_findings);
	if (found) {
		why_place_of_finding(&p->place, &findings[n - 1]);
		p->subject = (struct subject){.kind = SUBJECT_FINDING, .finding = n};
		if (p->place.file || p->place.module)
			p->subject.place = &p->place.place;
	}
	findings_free(findings, *n_findings);
	arena_release(&texts);
	return found;
}

/* Read once for what is found, and again for the calls at its place. -ESRCH: there are not so many findings. */
static int answer_finding(size_t number, const struct asked *asked, size_t *n_findings)
{
	struct place_answer p = {.subject = {0}};
	bool found;
	int err = read_for(&p, asked);

	found = !err && take_finding(&p, number, n_findings);
	if (found) {
		forget(&p);
		err = read_for(&p, asked);
	}
	if (!err)
		err = found ? show(&p.analysis, p.symbols, asked) : -ESRCH;
	why_place_release(&p.place);
	forget(&p);
	return err;
}

static int unknown_finding(size_t number, size_t n_findings)
{
	if (n_findings)
		warn("why: there is no finding %zu in these traces: %zu from 1 to %zu", number,
		     n_findings, n_findings);
	else
		warn("why: there is no finding %zu: nothing was found in these traces", number);
	return -EINVAL;
}

struct function_sought {
	const char *word;
	bool found;
};

static void compare_function(void *data, const char *function)
{
	struct function_sought *sought = data;

	sought->found |= function_name_fits(function, sought->word);
}

/* Does the program have a function of that name, as far as is known? */
static bool has_function(const struct analysis *a, struct symbolizer *symbols, const char *word)
{
	struct function_sought sought = {.word = word};

	why_functions(a, symbols, compare_function, &sought);
	return sought.found;
}

/* -ESRCH: nothing is known of the place; *nothing says so, as long as it lives. */
static int show_place(struct place_answer *p, const struct asked *asked, const char **nothing)
{
	struct report report;
	int err = -ESRCH;

	why_place_look(&p->place, &p->analysis.idle);
	make_report(&report, &p->analysis, p->symbols, asked);
	if (is_empty(&report))
		*nothing = nothing_there(&p->place.texts, &p->place.place);
	else
		err = renderer_show(asked->renderer, &report, asked->out);
	report_release(&report);
	return err;
}

/* -EINVAL after a message. */
static int answer_function(const char *name, const struct asked *asked)
{
	struct place_answer p = {.subject = {.kind = SUBJECT_PLACE}};
	const char *nothing;
	int err;

	why_place_of_function(&p.place, name);
	p.subject.place = &p.place.place;
	err = read_for(&p, asked) ?: show_place(&p, asked, &nothing);
	if (err == -ESRCH)
		err = unknown_word(&p.analysis, p.symbols, name);
	why_place_release(&p.place);
	forget(&p);
	return err;
}

/* A file and a line, unless a thread is called so. -ESRCH: it may be a function ("Net.forward"), of a file nothing is known.
 * -EINVAL after a message. */
static int answer_file(const char *word, const struct asked *asked, bool *is_thread)
{
	struct place_answer p = {.subject = {.kind = SUBJECT_PLACE}};
	struct subject named = {.kind = SUBJECT_THREAD, .name = word};
	const char *nothing;
	int err;

	why_place_of_word(&p.place, word);
	p.subject.place = &p.place.place;
	err = read_for(&p, asked);
	*is_thread = !err && has_thread(&p.analysis, &named);
	if (!err && !*is_thread)
		err = show_place(&p, asked, &nothing);
	if (err == -ESRCH && !has_function(&p.analysis, p.symbols, word)) {
		warn("%s", nothing);
		err = -EINVAL;
	}
	why_place_release(&p.place);
	forget(&p);
	return err;
}

/* Reads the traces once; twice where it takes a reading to know what the word means. */
static int answer(const char *word, const struct asked *asked)
{
	struct trace_set set;
	struct analysis analysis;
	struct subject subject = {0}, guess;
	struct symbolizer *symbols;
	int err = read_traces(&set, &analysis, asked, NULL, word, &guess, NULL);

	err = err ?: find_subject(&subject, &analysis, word);
	if (!err && !was_meant(&guess, &subject)) {
		analysis_release(&analysis);
		trace_set_release(&set);
		err = read_traces(&set, &analysis, asked, &subject, word, NULL, NULL);
	}
	if (!err) {
		symbols = symbolizer_new();
		subject.also_function = (subject.name || subject.kind == SUBJECT_CALL) &&
					has_function(&analysis, symbols, word);
		analysis.blame.subject = subject;
		err = show(&analysis, symbols, asked);
		symbolizer_free(symbols);
	}
	analysis_release(&analysis);
	trace_set_release(&set);
	return err == -ESRCH ? answer_function(word, asked) : err;
}

static int answer_place(const char *word, const struct asked *asked)
{
	bool is_thread;
	int err = answer_file(word, asked, &is_thread);

	if (is_thread)
		return answer(word, asked);
	return err == -ESRCH ? answer_function(word, asked) : err;
}

/* The only word: then it is not what to explain. */
static bool is_trace(const char *word)
{
	struct stat status;

	return (!stat(word, &status) && S_ISDIR(status.st_mode)) || container_begins(word);
}

/* A bare number is a finding's as long as there are so many; threads have larger ones, as a rule. */
static int answer_number(const char *word, size_t number, const struct asked *asked)
{
	size_t n_findings = 0;
	int err = answer_finding(number, asked, &n_findings);

	if (err != -ESRCH)
		return err;
	return *word == '#' ? unknown_finding(number, n_findings) : answer(word, asked);
}

/* Other words have a colon and a number, too. */
static bool is_place(const char *word)
{
	return why_place_is(word) && number_after(word, "L") < 0 && number_after(word, "gpu") < 0 &&
	       number_after(word, "device") < 0 && number_after(word, "thread") < 0;
}

#define FUNCTION_PREFIX "function:"

static int answer_word(const char *word, const struct asked *asked)
{
	int64_t number = number_after(word, "rank");

	if (!strncmp(word, FUNCTION_PREFIX, strlen(FUNCTION_PREFIX)))
		return answer_function(word + strlen(FUNCTION_PREFIX), asked);
	if (number >= 0)
		return answer_rank(number, asked);
	number = number_after(word, "#");
	if (number < 0)
		number = number_after(word, "finding");
	if (number >= 0)
		return answer_number("#", (size_t)number, asked);
	number = number_after(word, "");
	if (number >= 0 && number <= FINDINGS_MOST)
		return answer_number(word, (size_t)number, asked);
	return is_place(word) ? answer_place(word, asked) : answer(word, asked);
}

/* argv: the word, and directories. */
static int explain(int argc, char **argv, struct asked *asked)
{
	int err;

	if (argc < 2 || (argc == 2 && is_trace(argv[1]))) {
		warn("why: a finding, thread, function, lock, GPU, rank or place to explain is "
		     "missing%s%s",
		     argc < 2 ? "" : " before ", argc < 2 ? "" : argv[1]);
		return STATUS_USAGE;
	}
	asked->dirs = (const char *const *)argv + 2;
	asked->n_dirs = (size_t)argc - 2;
	err = answer_word(argv[1], asked);
	warnings_flush();
	return err == -EINVAL ? STATUS_USAGE : err ? STATUS_NOTHING : STATUS_FINE;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	struct filter filter = {0};
	struct asked asked = {.filter = &filter};
	struct output out;
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (jobs_choose(options.jobs))
		return STATUS_USAGE;
	if (options.redact)
		redact_begin();
	asked.profile = options.profile;
	asked.traces.wanted = options.run;
	asked.renderer = renderer_choose(self->name, options.format);
	if (!asked.renderer)
		return STATUS_USAGE;
	status = filter_parse(&filter, &options.words) ? STATUS_USAGE : STATUS_FINE;
	if (!status)
		status = output_begin(&out, self->name, &options.output,
				      asked.renderer->render == render_text);
	if (!status) {
		asked.out = out.file;
		status = explain(argc, argv, &asked);
		if (output_end(&out, !status))
			status = status ?: STATUS_NOTHING;
	}
	filter_release(&filter);
	return status;
}

const struct command command_why = {
	.name = "why",
	.arguments = "[options] FINDING|THREAD|FUNCTION|LOCK|GPU|RANK|PLACE [DIR...]",
	.summary =
		"Explains one finding (1), thread, function (cudaMalloc, train_step), lock (L1), "
		"GPU (gpu0), rank (rank3) or place (file.cu:17)",
	.text = "A finding is named by its number in the report (1, or '#1'; the options that "
		"limit the report must be the same, and --suppress and --baseline change its "
		"order), a thread by its name or number, also as thread1, a function of "
		"CUDA by its name (cudaMalloc), one of the program by as much of its name as says "
		"which (train_step, Net.forward, Field::scale; function:NAME where it is also a "
		"thread's name or CUDA's), a lock as in the report (L1 is the one waited for longest), "
		"a GPU as gpu0, a rank of a job as rank3, a place of the program by file and "
		"line (src/file.cu:17, or the end of that), or by the file alone. DIR as for "
		"report.\n\n" FILTER_HELP,
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
