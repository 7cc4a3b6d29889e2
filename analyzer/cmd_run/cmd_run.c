/*
 * analyzer/cmd_run/cmd_run.c: `cudaspy run`: runs a program with the shim preloaded, then reports.
 */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "cmd_read/cmd_report.h"
#include "loadable.h"
#include "cmd/output.h"
#include "cmd_files/packing.h"
#include "recorder.h"
#include "base/hash.h"
#include "base/redact.h"
#include "base/suggest.h"
#include "cudaspy/gpu_windows.h"
#include "cudaspy/launchers.h"
#include "cudaspy/windows.h"
#include "cudaspy/trace_format.h"
#include "render/render.h"

struct options {
	/* the recorder's: handed on in the environment */
#define OPTION(name, flag, variable, argument, text) const char *name;
#include "cudaspy/options.def"
	/* ours */
	const char *format;
	const char *report;
	const char *colour;
	bool no_report;
	bool nested;
	bool pack;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"no-report", 0,   NULL,     "record only", offsetof(struct options, no_report)},
	{"format",    'f', "FORMAT", "of the report: " FORMATS_FINDINGS, offsetof(struct options, format)},
	{"report",    0,   "FILE",   "write the report to FILE (-: standard output)", offsetof(struct options, report)},
	{"color",     0,   "WHEN",   "colours of the report: auto (default: on a terminal), always, never", offsetof(struct options, colour)},
	{"nested",    'n', NULL,     "report also the calls made inside other calls", offsetof(struct options, nested)},
	{"pack",      0,   NULL,     "when the program has ended, put one file in the place of each trace directory (cudaspy help pack)", offsetof(struct options, pack)},
	{"output",    'o', "DIR",    "the same as --out", offsetof(struct options, out)},
#define OPTION(name, flag, variable, argument, text) {#flag, 0, argument, text, offsetof(struct options, name)},
#include "cudaspy/options.def"
};

/* Where the recorder looks for each of its options. */
static const struct {
	const char *variable;
	size_t offset;
} variables[] = {
#define OPTION(name, flag, variable, argument, text) {variable, offsetof(struct options, name)},
#include "cudaspy/options.def"
};
/* clang-format on */

/* ---- options -------------------------------------------------------------------------------- */

/* Always false. */
static bool wrong(const char *option, const char *value, const char *why)
{
	warn("run: --%s=%s: %s", option, value, why);
	return false;
}

static bool is_mib(const char *option, const char *text, unsigned long long min_u64)
{
	char *end = NULL;
	unsigned long long mib = text ? strtoull(text, &end, 10) : min_u64;

	return (mib >= min_u64 && mib < SPY_KEEP_MIB_END &&
		(!text || (!*end && isdigit((unsigned char)*text)))) ||
	       wrong(option, text, "this is no number of MiB");
}

static const char *const function_names[] = {
#define ENTRY(name, layer, record, contract, inspector) #name,
#include "cudaspy/entrypoints.def"
};

/* A name or a pattern that no CUDA function has. */
static bool unknown_function(const char *option, const char *list, const char *name)
{
	struct suggest suggest = {.word = name};
	char text[SUGGEST_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(function_names); i++)
		suggest_try(&suggest, function_names[i]);
	warn("run: --%s=%s: there is no CUDA function '%s'%s", option, list, name,
	     suggest_text(&suggest, text));
	return false;
}

static bool is_function(const char *pattern)
{
	for (size_t i = 0; i < ARRAY_SIZE(function_names); i++)
		if (!fnmatch(pattern, function_names[i], 0))
			return true;
	return false;
}

/* A list of names and patterns, as the recorder reads it. */
static bool are_functions(const char *option, const char *list)
{
	char *copy = xstrdup(list ?: ""), *rest = copy, *name;
	bool fine = true;
	size_t names = 0;

	while (fine && (name = strsep(&rest, ","))) {
		names += *name != 0;
		fine = !*name || is_function(name) || unknown_function(option, list, name);
	}
	free(copy);
	return fine && (!list || names || wrong(option, list, "there is no name in this list"));
}

/* Options that are set by their name alone may be given a value, too. */
static bool is_on_or_off(const char *option, const char *argument, const char *value)
{
	if (strcmp(argument, "1") != 0 || !strcmp(option, "gpu") || !value || !strcmp(value, "0") ||
	    !strcmp(value, "1"))
		return true;
	return wrong(option, value, "this is neither 0 nor 1");
}

/* The recorder takes numbers only: looking for a name would load libraries into the program. */
static bool number_group(struct options *options)
{
	static char number[24];
	const struct group *group;

	if (!options->group ||
	    (*options->group && !options->group[strspn(options->group, "0123456789")]))
		return true;
	group = getgrnam(options->group);
	if (!group)
		return wrong("group", options->group, "there is no such group");
	snprintf(number, sizeof(number), "%u", (unsigned int)group->gr_gid);
	options->group = number;
	return true;
}

static bool is_time(const char *option, const char *text)
{
	uint64_t ns;

	return !text || (spy_parse_time(text, &ns) && ns) ||
	       wrong(option, text, "this is no time such as 500ms, 30s or 10m");
}

/* What the recorder is going to find: an option, or else the variable that the program inherits. */
static const char *in_force(const char *given, const char *variable)
{
	return given ?: getenv(variable);
}

static bool windows_right(const struct options *options)
{
	const char *range = in_force(options->capture_range, "CUDASPY_CAPTURE_RANGE");
	const char *gpu_is = in_force(options->gpu, "CUDASPY_GPU");
	bool gpu = gpu_is && *gpu_is && strcmp(gpu_is, "0") != 0;
	enum spy_capture capture = SPY_CAPTURE_ALL;
	uint64_t first, last;
	const char *name;
	uint32_t ppm;

	if (!is_time("delay", options->delay) || !is_time("duration", options->duration))
		return false;
	if (range && !spy_parse_capture(range, &capture, &name) && options->capture_range)
		return wrong("capture-range", options->capture_range,
			     "this is none of cudaProfilerApi, nvtx:NAME and command");
	if (capture == SPY_CAPTURE_RANGE && options->nonvtx && strcmp(options->nonvtx, "0") != 0)
		return wrong("capture-range", range, "this does not go with --nonvtx");
	if (options->measure_cost && strcmp(options->measure_cost, "0") != 0 && gpu)
		return wrong("measure-cost", options->measure_cost,
			     "this does not go with --gpu, which records all the time");
	if (options->overhead && !spy_parse_percent(options->overhead, &ppm))
		return wrong("overhead", options->overhead, "this is no part like 1% or 0.5%");
	if (options->overhead && gpu)
		return wrong("overhead", options->overhead,
			     "this does not go with --gpu, which records all the time");
	if (options->overhead && options->measure_cost && strcmp(options->measure_cost, "0") != 0)
		return wrong("overhead", options->overhead,
			     "--measure-cost measures what it costs without a limit");
	if (options->steps && !spy_parse_steps(options->steps, &first, &last))
		return wrong("steps", options->steps, "this is not like 10-20, or 7 (from 1 on)");
	if (options->steps && capture != SPY_CAPTURE_PROFILER && capture != SPY_CAPTURE_RANGE)
		return wrong("steps", options->steps,
			     "this needs --capture-range=nvtx:NAME, or =cudaProfilerApi");
	if (options->gpu && strchr(options->gpu, '/') &&
	    (capture || options->delay || options->duration))
		return wrong("gpu", options->gpu,
			     "GPU times follow the windows of the recording: --gpu alone");
	return true;
}

/* Values that the recorder would have to refuse, when the program runs already. */
static bool options_right(struct options *options)
{
#define OPTION(name, flag, variable, argument, text) \
	if (!is_on_or_off(#flag, argument, options->name)) \
		return false;
#include "cudaspy/options.def"
	if (!is_mib("keep", options->keep, 1) || !is_mib("rotate-size", options->rotate_size, 1) ||
	    !is_time("rotate-every", options->rotate_every) ||
	    !is_time("keep-for", options->keep_for) || !is_mib("floor", options->floor, 0) ||
	    !number_group(options) || !are_functions("trace", options->trace) ||
	    !are_functions("count", options->count))
		return false;
	if (options->gpu && strcmp(options->gpu, "0") != 0 &&
	    !spy_gpu_parse_windows(options->gpu, &(struct spy_gpu_windows){0}))
		return wrong("gpu", options->gpu, "this is neither 1 nor a window like 1s/10s");
	if (!windows_right(options))
		return false;
	if (options->clock && strcmp(options->clock, "monotonic") != 0)
		return wrong("clock", options->clock, "the only clock to choose is monotonic");
	return true;
}

/* ---- before --------------------------------------------------------------------------------- */

/* The name of this run. Where a launcher starts `cudaspy run` once for each rank (srun, mpirun), all of them are one run:
 * the launcher's job, or if it has no name none, and the traces are together by their times. With --redact a number
 * stands for what the launcher calls its job. */
static const char *name_run(bool redact, char *id, size_t size)
{
	struct spy_rank rank;
	uint64_t random = 0;

	spy_launcher_read(&rank);
	if (rank.from && (!rank.has_world_size || rank.world_size > 1)) {
		if (redact)
			snprintf(id, size, "%08x", hash_key(rank.job, strlen(rank.job)));
		else
			snprintf(id, size, "%s", rank.job);
		return *rank.job ? id : NULL;
	}
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
	snprintf(id, size, "%016" PRIx64, random);
	return id;
}

static void set_variables(const struct options *options)
{
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *value =
			*(const char *const *)((const char *)options + variables[i].offset);

		if (value)
			setenv(variables[i].variable, value, 1);
	}
}

/* False, with errno. */
static bool can_hold_traces(const char *dir)
{
	struct stat status;

	if (stat(dir, &status))
		return false;
	if (!S_ISDIR(status.st_mode)) {
		errno = ENOTDIR;
		return false;
	}
	return !access(dir, W_OK | X_OK);
}

/* For its owner alone, and the group that may read traces. Nonzero, with errno. */
static int make_output(const char *dir, const char *group)
{
	if (mkdir(dir, 0700))
		return errno != EEXIST;
	if (group && !lchown(dir, (uid_t)-1, (gid_t)strtoul(group, NULL, 10)))
		chmod(dir, 0750);
	return 0;
}

/* Finds the shim, completes the options, makes the directory and sets the environment. `output` and
 * `run_id` are buffers for two of the options. */
static int prepare(struct options *options, char *shim, char *output, char *run_id,
		   size_t run_id_size)
{
	const char *given = options->out ?: getenv("CUDASPY_OUT");
	const char *dir = given && *given ? given : "."; /* as the recorder has it */
	int err;

	if (!recorder_find("run", shim))
		return -ENOENT;
	/* Absolute, because the program may change its directory. A program that could not be
	 * recorded is not started. */
	err = make_parents(dir);
	if (err)
		return err;
	if (make_output(dir, options->group) || !realpath(dir, output) ||
	    (!options->disable && !can_hold_traces(output))) {
		err = -errno;
		fprintf(stderr,
			"cudaspy run: no traces can be written to %s: %s (--out=DIR says where)\n",
			dir, strerror(errno));
		return err;
	}
	options->out = output;
	if (!options->run) {
		options->run = name_run(options->redact, run_id, run_id_size);
		unsetenv("CUDASPY_RUN");
	}
	set_variables(options);
	return 0;
}

/* ---- the program ---------------------------------------------------------------------------- */

/* Ends as the program ended; without a second core file. */
static int end_like(int status)
{
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0});
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

/* Where the report goes: text to the terminal, but never between what the program has written to a file or a pipe;
 * other forms, which are for programs, into a file. NULL: standard output. The caller frees. */
static char *report_path(const struct options *options)
{
	if (options->report)
		return strcmp(options->report, "-") != 0 ? xstrdup(options->report) : NULL;
	if (strcmp(options->format, "text") != 0)
		return xasprintf("%s/cudaspy-report.%s", options->out, options->format);
	return NULL;
}

/* What cannot be written is known before the program runs for hours. */
static bool report_right(const struct options *options, const char *path)
{
	const struct output_options output = {.path = path, .colour = options->colour};

	return !output_check("run", &output);
}

/* What `why` needs to read this run, and no other that is in the folder. */
static void hint(struct report_options *show, const struct options *options, char *again, size_t n)
{
	*again = 0;
	if (options->run)
		snprintf(again, n, "--run=%s", options->run);
	show->again = again;
	show->hints = true;
}

static void say_nothing_recorded(const struct options *options, const char *program,
				 const char *why_not)
{
	if (options->disable)
		fprintf(stderr, "cudaspy run: nothing was recorded: --disable\n");
	else if (*why_not)
		fprintf(stderr, "cudaspy run: no trace was written: %s %s\n", program, why_not);
	else
		fprintf(stderr,
			"cudaspy run: no trace was written: no process called CUDA in a way "
			"that can be seen, or none could write one (then it said so)\n");
}

/* why_not: why the program cannot be recorded, or empty. */
static void show_report(const char *const *dirs, const struct options *options,
			const struct report_options *show, const char *program, const char *why_not)
{
	const struct trace_filter filter = {.run = options->run};
	char *path = report_path(options);
	struct output out;
	int err = output_begin(&out, "run",
			       &(struct output_options){.path = path, .colour = options->colour},
			       false);

	if (!err) {
		if (!path && !options->report && !isatty(STDOUT_FILENO))
			out.file = stderr;
		err = report_show(dirs, 1, &filter, show, out.file);
		if (err == -ENOENT)
			say_nothing_recorded(options, program, why_not);
		if (!output_end(&out, !err) && path && !err)
			fprintf(stderr, "cudaspy run: the report is in %s\n", path);
	}
	free(path);
}

/* Processes often end a moment after the one that began them. */
#define PACK_PATIENCE_NS 2000000000
#define PACK_PAUSE_NS 20000000

static bool one_is_alive(const struct trace_set *set)
{
	for (size_t i = 0; i < set->n_traces; i++)
		if (set->traces[i]->alive)
			return true;
	return false;
}

/* Processes that go on without the program keep their directories, after a message. */
static void pack_traces(const char *const *dirs, const struct options *options)
{
	const struct trace_filter filter = {.run = options->run};
	uint64_t until_ns = now_ns() + PACK_PATIENCE_NS;
	struct packing p = {.verb = "run"};
	struct trace_set set;
	bool waits = true;

	while (waits) {
		int err = trace_set_open(&set, dirs, 1, &filter);

		waits = !err && one_is_alive(&set) && now_ns() < until_ns;
		if (waits)
			nanosleep(&(struct timespec){0, PACK_PAUSE_NS}, NULL);
		else if (!err)
			packing_in_place(&p, &set);
		trace_set_release(&set);
	}
}

/* Is the cost of recording all that is asked for? Forms for findings have them all the same. */
static bool measures_alone(const struct options *options)
{
	return options->measure_cost && strcmp(options->measure_cost, "0") != 0 &&
	       (!strcmp(options->format, "text") || !strcmp(options->format, "json"));
}

static bool could_not_run(int wait_status)
{
	return WIFEXITED(wait_status) && (WEXITSTATUS(wait_status) == RECORDER_CANNOT_RUN ||
					  WEXITSTATUS(wait_status) == RECORDER_NOT_FOUND);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	struct report_options show = {0};
	char shim[PATH_MAX], output[PATH_MAX], run_id[SPY_JOB_MAX], why_not[PATH_MAX + 256];
	char again[SPY_JOB_MAX + 8];
	const char *dirs[] = {output};
	int wait_status, status;
	char *report;
	bool starts;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (argc == 1) {
		fprintf(stderr, "cudaspy run: no program (cudaspy help run)\n");
		return STATUS_USAGE;
	}
	if (options.redact)
		redact_begin();
	show.renderer = renderer_choose_findings(self->name, options.format);
	show.nested = options.nested;
	if (!show.renderer)
		return STATUS_USAGE;
	if (!options_right(&options))
		return STATUS_USAGE;
	if (prepare(&options, shim, output, run_id, sizeof(run_id)))
		return STATUS_USAGE;
	report = report_path(&options);
	status = report_right(&options, report) ? STATUS_FINE : STATUS_USAGE;
	free(report);
	if (status)
		return status;
	starts = loadable_look(argv[1], why_not, sizeof(why_not));
	if (*why_not && !options.disable)
		fprintf(stderr, "cudaspy run: %s %s; %s\n", argv[1], why_not,
			starts ? "only programs that it starts can be recorded"
			       : "it runs without it");
	wait_status = recorder_run("run", starts ? shim : NULL, argv + 1);
	if (wait_status < 0) {
		fprintf(stderr, "cudaspy run: %s\n", strerror(-wait_status));
		return STATUS_NOTHING;
	}
	show.end_ns = now_ns();
	if (options.pack)
		pack_traces(dirs, &options);
	show.cost_only = measures_alone(&options);
	hint(&show, &options, again, sizeof(again));
	if (!options.no_report && !could_not_run(wait_status))
		show_report(dirs, &options, &show, argv[1], why_not);
	fflush(stdout);
	return end_like(wait_status);
}

const struct command command_run = {
	.name = "run",
	.arguments = "[options] [--] PROGRAM [ARGUMENT...]",
	.summary = "Runs PROGRAM under the recorder, then reports",
	.text = "Each process that uses CUDA leaves a trace directory, or with --pack one file. "
		"The exit status is PROGRAM's; if a signal ended it, the same signal ends "
		"cudaspy, after the report. 2: wrong usage, or nothing could be recorded, so "
		"PROGRAM was not begun; 126, 127: it cannot be run, is not there.\n"
		"The report goes to the terminal: to standard output, or to standard error "
		"where standard output is a file or a pipe, which is the program's. "
		"--report=FILE puts it elsewhere; forms other than text go into "
		"cudaspy-report.FORMAT in the folder of the traces.\n"
		"Options of the recorder can also be given as environment variables: "
		"cudaspy(1).\n",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.first_ends = true,
	.run = run,
};
