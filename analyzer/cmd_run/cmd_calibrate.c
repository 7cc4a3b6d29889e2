/*
 * analyzer/cmd_run/cmd_calibrate.c: `cudaspy calibrate`: measures what calls cost on this machine when
 * nothing is in their way, and writes it down for `cudaspy report`. It records itself: a child with
 * the shim preloaded makes the calls (calibrate_work.c), and its trace is learnt from as any other.
 */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/command.h"
#include "recorder.h"
#include "account/evidence.h"
#include "expect/calibrate_work.h"
#include "expect/profile.h"
#include "render/render.h"
#include "sections/sections.h"

#define WORKLOAD "--workload"
#define DEVICES_MAX 64

struct options {
	const char *output;
	const char *devices;
	const char *format;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"output", 'o', "FILE",   "write the profile there (default: where report looks for it)", offsetof(struct options, output)},
	{"device", 'd', "N,...",  "measure these devices (default: all)", offsetof(struct options, devices)},
	{"format", 'f', "FORMAT", "of what is printed: " FORMATS, offsetof(struct options, format)},
};
/* clang-format on */

/* ---- the recorded program -------------------------------------------------------------------- */

/* "0,2" into numbers. False if it is none. */
static bool parse_devices(const char *text, unsigned int *devices, unsigned int *n)
{
	char *end;

	for (*n = 0; *n < DEVICES_MAX; text = end + 1) {
		unsigned long device = strtoul(text, &end, 10);

		if (end == text || (*end && *end != ',') || device >= DEVICES_MAX || *text == '-' ||
		    *text == '+')
			return false;
		devices[(*n)++] = (unsigned int)device;
		if (!*end)
			return true;
	}
	return false;
}

static int workload(const char *devices_text)
{
	unsigned int devices[DEVICES_MAX], n = 0;

	if (devices_text && !parse_devices(devices_text, devices, &n))
		return STATUS_USAGE;
	return calibrate_work(n ? devices : NULL, n);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* A trace of all calls, there and nowhere else. */
static void set_environment(const char *dir)
{
	static const char *const unwanted[] = {
#define OPTION(name, flag, variable, argument, text) variable,
#include "cudaspy/options.def"
		"CUDA_LAUNCH_BLOCKING",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(unwanted); i++)
		unsetenv(unwanted[i]);
	setenv("CUDASPY_OUT", dir, 1);
	setenv("CUDASPY_QUIET", "1", 1);
}

/* 0, or an exit status after a message. */
static int record(const char *dir, const char *devices)
{
	char shim[PATH_MAX], self[] = "/proc/self/exe", path[PATH_MAX];
	char verb[] = "calibrate", work[] = WORKLOAD;
	char *chosen = devices ? xstrdup(devices) : NULL;
	char *argv[] = {path, verb, work, chosen, NULL};
	ssize_t n = readlink(self, path, sizeof(path) - 1);
	int status = -ENOENT;

	if (n > 0 && recorder_find(verb, shim)) {
		path[n] = '\0';
		set_environment(dir);
		status = recorder_run(verb, shim, argv);
		if (status < 0)
			fprintf(stderr, "cudaspy calibrate: %s\n", strerror(-status));
		else if (WIFSIGNALED(status))
			fprintf(stderr, "cudaspy calibrate: ended by signal %d (%s)\n",
				WTERMSIG(status), strsignal(WTERMSIG(status)));
	}
	free(chosen);
	return !status ? STATUS_FINE : STATUS_NOTHING;
}

/* ---- the profile ----------------------------------------------------------------------------- */

static int save(const struct profile *profile, const char *output)
{
	char *path =
		output ? xstrdup(output) : profile_default_path(profile->driver, profile->gpus[0]);
	int err = -ENOENT;

	if (!path)
		fprintf(stderr, "cudaspy calibrate: neither XDG_CONFIG_HOME nor HOME is set: say "
				"--output=FILE\n");
	else
		err = profile_write(profile, path);
	if (!err)
		fprintf(stderr, "cudaspy calibrate: wrote %s\n", path);
	free(path);
	return err;
}

static int show(const struct profile *profile, const struct renderer *renderer)
{
	struct report report;
	int err;

	report_init(&report, "cudaspy-calibrate-1");
	report.view = view_for(stdout);
	report.view.verbose = true;
	report_profile(&report, profile);
	err = renderer_show(renderer, &report, stdout);
	report_release(&report);
	return err;
}

static int learn(const char *dir, const char *output, const struct renderer *renderer)
{
	struct profile profile = {0};
	struct expect expect = {0};
	struct trace_set set;
	int err = trace_set_open(&set, &dir, 1, NULL);

	if (!err) {
		expect_learn(&expect, &set);
		(void)evidence_gather(&expect, 1);
		profile_make(&profile, &expect);
		if (!profile.n_gpus || !profile.n_classes) {
			fprintf(stderr, "cudaspy calibrate: nothing was measured\n");
			err = -ENODATA;
		}
	}
	err = err ? err : save(&profile, output);
	err = err ? err : show(&profile, renderer);
	profile_release(&profile);
	expect_release(&expect);
	trace_set_release(&set);
	return err;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	remove(path);
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	unsigned int devices[DEVICES_MAX], n;
	const struct renderer *renderer;
	int status;
	char *dir;

	if (argc > 1 && !strcmp(argv[1], WORKLOAD))
		return workload(argv[2]);
	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	renderer = renderer_choose(self->name, options.format);
	if (!renderer)
		return STATUS_USAGE;
	if (argc > 1) {
		warn("calibrate: it takes no argument '%s'", argv[1]);
		return STATUS_USAGE;
	}
	if (options.devices && !parse_devices(options.devices, devices, &n)) {
		warn("calibrate: these are no device numbers: '%s' (0 to %d, with commas "
		     "between)",
		     options.devices, DEVICES_MAX - 1);
		return STATUS_USAGE;
	}
	dir = xasprintf("%s/cudaspy-calibrate.XXXXXX", getenv("TMPDIR") ?: "/tmp");
	if (!mkdtemp(dir)) {
		fprintf(stderr, "cudaspy calibrate: %s: %s\n", dir, strerror(errno));
		free(dir);
		return STATUS_NOTHING;
	}
	status = record(dir, options.devices);
	if (!status && learn(dir, options.output, renderer))
		status = STATUS_NOTHING;
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(dir);
	warnings_flush();
	return status;
}

const struct command command_calibrate = {
	.name = "calibrate",
	.arguments = "[options]",
	.summary = "Measures what calls cost on this machine when nothing is in their way",
	.text = "Takes some ten seconds, on GPUs that should have nothing else to do, and "
		"writes a profile, by which `cudaspy report` separates a call's own work from "
		"its waits. Loading code and building graphs are not measured: what they cost "
		"depends on the code and the graph.\n",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
