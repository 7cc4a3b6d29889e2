/*
 * analyzer/cmd/cmd_why.c: `cudaspy why`: of one thread, function, lock or GPU: what it waited for,
 * which threads it held up, what was found in its calls, and the calls that show it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "analysis.h"
#include "cmd_report.h"
#include "render/render.h"
#include "sections/files.h"
#include "sections/filters.h"
#include "sections/ranks.h"
#include "sections/trace.h"
#include "sections/waits.h"

#define SCHEMA "cudaspy-why-1"

struct options {
	const char *format;
	const char *profile;
	struct filter_words words;
};

/* What a question is asked of. */
struct asked {
	const char *const *dirs;
	size_t n_dirs;
	const struct renderer *renderer;
	const char *profile;
	const struct filter *filter;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"format",  'f', "FORMAT", FORMATS, offsetof(struct options, format)},
	{"profile", 'p', "FILE",   "what calls cost on that machine, from cudaspy calibrate", offsetof(struct options, profile)},
	FILTER_OPTIONS(struct options, words),
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

static bool has_thread(const struct analysis *a, uint32_t tid)
{
	size_t i;

	for (i = 0; i < a->model.n_threads; i++)
		if (a->model.threads[i]->tid == tid)
			return true;
	return false;
}

/* The number of the only thread of that name; 0: there is none, or there are several. */
static uint32_t find_thread(const struct analysis *a, const char *name)
{
	uint32_t tid = 0;
	size_t i;

	for (i = 0; i < a->model.n_threads; i++) {
		const struct thread *thread = a->model.threads[i];

		if (!thread_is_called(thread, name) || thread->tid == tid)
			continue;
		if (tid)
			return 0;
		tid = thread->tid;
	}
	return tid;
}

static bool has_device(const struct analysis *a, uint32_t device)
{
	size_t i;

	if (device >= SPY_DEVICE_NONE)
		return false;
	for (i = 0; i < a->model.n_processes; i++)
		if (a->stats.devices[callstats_index(&a->stats, i, device)].count)
			return true;
	return false;
}

static bool was_called(const struct callstats *stats, uint32_t fn)
{
	return fn < stats->n_functions &&
	       (stats->direct[fn].count || stats->nested[fn].count || stats->counted[fn]);
}

/* "; cuMemFree_v2 was called": the shortest name of a function that was, with that word in it; or
 * nothing. */
static const char *alike(const struct analysis *a, const char *word, char *text, size_t size)
{
	const char *name, *shortest = NULL;
	uint32_t fn;

	for (fn = 0; fn < a->set->functions.count && *word; fn++) {
		name = a->set->functions.all[fn].name;
		if (was_called(&a->stats, fn) && strcasestr(name, word) &&
		    (!shortest || strlen(name) < strlen(shortest)))
			shortest = name;
	}
	if (!shortest)
		return "";
	snprintf(text, size, "; %s was called", shortest);
	return text;
}

/* False after a message. */
static bool find_function(struct subject *subject, const struct analysis *a, const char *name)
{
	char text[128];
	uint32_t fn;

	for (fn = 0; fn < a->set->functions.count; fn++)
		if (!strcmp(a->set->functions.all[fn].name, name))
			break;
	if (fn == a->set->functions.count)
		warn("why: '%s' is no thread's number, nor the name of one, no CUDA function, "
		     "no lock (L1) and no "
		     "GPU (gpu0)%s",
		     name, alike(a, name, text, sizeof(text)));
	else if (!was_called(&a->stats, fn))
		warn("why: %s was never called in these traces%s", name,
		     alike(a, name, text, sizeof(text)));
	else
		*subject = (struct subject){.kind = SUBJECT_CALL, .fn = fn};
	return subject->kind == SUBJECT_CALL;
}

/* What a word means in these traces. False after a message. */
static bool find_subject(struct subject *subject, struct analysis *a, const char *word)
{
	int64_t number;

	if ((number = number_after(word, "L")) >= 0)
		return find_lock(subject, a, number);
	if ((number = number_after(word, "gpu")) >= 0 ||
	    (number = number_after(word, "device")) >= 0) {
		*subject = (struct subject){.kind = SUBJECT_DEVICE, .device = (uint32_t)number};
		if (has_device(a, (uint32_t)number))
			return true;
		warn("why: no call was made with GPU %lld current", (long long)number);
		return false;
	}
	if ((number = number_after(word, "")) >= 0 ||
	    (number = number_after(word, "thread")) >= 0) {
		*subject = (struct subject){.kind = SUBJECT_THREAD, .tid = (uint32_t)number};
		if (has_thread(a, (uint32_t)number))
			return true;
		warn("why: there is no thread %lld in these traces", (long long)number);
		return false;
	}
	*subject =
		(struct subject){.kind = SUBJECT_THREAD, .tid = *word ? find_thread(a, word) : 0};
	if (subject->tid)
		return true;
	*subject = (struct subject){0};
	return find_function(subject, a, word);
}

/* What the word will mean, as far as that can be known before the traces have been read: not which
 * lock is the longest waited for. */
static struct subject guess_subject(const struct trace_set *set, const char *word)
{
	struct subject subject = {.kind = SUBJECT_THREAD, .name = word};
	int64_t number;
	uint32_t fn;

	if (number_after(word, "L") >= 0)
		return (struct subject){.kind = SUBJECT_LOCK};
	if ((number = number_after(word, "gpu")) >= 0 ||
	    (number = number_after(word, "device")) >= 0)
		return (struct subject){.kind = SUBJECT_DEVICE, .device = (uint32_t)number};
	if ((number = number_after(word, "")) >= 0 || (number = number_after(word, "thread")) >= 0)
		return (struct subject){.kind = SUBJECT_THREAD, .tid = (uint32_t)number};
	for (fn = 0; fn < set->functions.count; fn++)
		if (!strcmp(set->functions.all[fn].name, word))
			return (struct subject){.kind = SUBJECT_CALL, .fn = fn};
	return subject;
}

/* Was that what was meant? A thread of the name may have turned out to be the only one. */
static bool was_meant(const struct subject *guess, const struct subject *subject)
{
	if (guess->kind != subject->kind || guess->kind == SUBJECT_LOCK)
		return false;
	return guess->name || (guess->tid == subject->tid && guess->fn == subject->fn &&
			       guess->device == subject->device);
}

static int show(struct analysis *analysis, const struct renderer *renderer)
{
	struct symbolizer *symbols = symbolizer_new();
	struct report report;
	int err;

	report_init(&report, SCHEMA);
	report.view = view_for(stdout);
	report.view.verbose = true;
	analysis->complete = report_losses(&report, analysis);
	report_only(&report, analysis);
	report_waits(&report, analysis, symbols);
	report_files(&report, symbols);
	err = renderer->render(&report, stdout);
	report_release(&report);
	symbolizer_free(symbols);
	return err;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* NULL after a message. */
static const struct rank *find_rank(const struct ranks *ranks, int64_t number)
{
	size_t i;

	for (i = 0; i < ranks->n; i++)
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
	int err = trace_set_open(&set, asked->dirs, asked->n_dirs, NULL)
			  ?: analysis_run(&analysis, &set, &options);

	if (!err)
		rank = find_rank(&analysis.ranks, number);
	if (rank) {
		symbols = symbolizer_new();
		report_init(&report, SCHEMA);
		report.view = view_for(stdout);
		report.view.verbose = true;
		analysis.complete = report_losses(&report, &analysis);
		report_only(&report, &analysis);
		report_rank(&report, &analysis, symbols, rank);
		report_files(&report, symbols);
		err = asked->renderer->render(&report, stdout);
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
		       const struct subject *subject, const char *word, struct subject *guess)
{
	int err = trace_set_open(set, asked->dirs, asked->n_dirs, NULL);

	*analysis = (struct analysis){.set = set};
	if (err)
		return err;
	if (!subject)
		*guess = guess_subject(set, word);
	return analysis_run(analysis, set,
			    &(struct analysis_options){.profile = asked->profile,
						       .filter = asked->filter,
						       .subject = subject ?: guess});
}

/* Reads the traces once; twice where it takes a reading to know what the word means. */
static int answer(const char *word, const struct asked *asked)
{
	struct trace_set set;
	struct analysis analysis;
	struct subject subject = {0}, guess;
	int err = read_traces(&set, &analysis, asked, NULL, word, &guess);
	bool found = !err && find_subject(&subject, &analysis, word);

	if (found && !was_meant(&guess, &subject)) {
		analysis_release(&analysis);
		trace_set_release(&set);
		err = read_traces(&set, &analysis, asked, &subject, word, NULL);
	}
	if (!err && found) {
		analysis.accounts.blame.subject = subject;
		err = show(&analysis, asked->renderer);
	}
	analysis_release(&analysis);
	trace_set_release(&set);
	return err ? err : found ? 0 : -EINVAL;
}

/* The only word: then it is not what to explain. */
static bool is_directory(const char *word)
{
	struct stat status;

	return !stat(word, &status) && S_ISDIR(status.st_mode);
}

/* argv: the word, and directories. */
static int explain(int argc, char **argv, struct asked *asked)
{
	int64_t rank;
	int err;

	if (argc < 2 || (argc == 2 && is_directory(argv[1]))) {
		warn("why: a thread, function, lock, GPU or rank to explain is missing%s%s",
		     argc < 2 ? "" : " before ", argc < 2 ? "" : argv[1]);
		return STATUS_USAGE;
	}
	asked->dirs = (const char *const *)argv + 2;
	asked->n_dirs = (size_t)argc - 2;
	rank = number_after(argv[1], "rank");
	err = rank >= 0 ? answer_rank(rank, asked) : answer(argv[1], asked);
	warnings_flush();
	return err == -EINVAL ? STATUS_USAGE : err ? STATUS_NOTHING : STATUS_FINE;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	struct filter filter = {0};
	struct asked asked = {.filter = &filter};
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	asked.profile = options.profile;
	asked.renderer = renderer_choose(self->name, options.format);
	if (!asked.renderer)
		return STATUS_USAGE;
	status = filter_parse(&filter, &options.words) ? STATUS_USAGE : explain(argc, argv, &asked);
	filter_release(&filter);
	return status;
}

const struct command command_why = {
	.name = "why",
	.arguments = "[options] THREAD|FUNCTION|LOCK|GPU|RANK [DIR...]",
	.summary =
		"Explains the waits of one thread, function, lock (L1), GPU (gpu0) or rank (rank3)",
	.text = "A thread is named by its number, a function by its name (cudaMalloc), a lock as "
		"in the report (L1 is the one waited for longest), a GPU as gpu0, a rank of a job "
		"as rank3. Findings have "
		"the numbers of the report. DIR as for report.\n\n" FILTER_HELP,
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
