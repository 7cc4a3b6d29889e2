/*
 * analyzer/cmd_live/cmd_top.c: `cudaspy top`: what recorded programs do, again and again: on a terminal, once for scripts, or as
 * metrics in a file.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "base/lines.h"
#include "cmd/command.h"
#include "live_view/prometheus.h"
#include "live_view/screen.h"
#include "live_options.h"
#include "render/render.h"

#define SCHEMA "cudaspy-top-1"
#define WHOLE_BYTES ((uint64_t)4 << 20) /* of larger traces only the ends: it is done each second */
#define SAMPLES 50 /* in an interval */
#define SAMPLE_LEAST_NS 10000000
#define AFTER_NS 2000000000 /* as for `snapshot` */

struct options {
	const char *format, *interval, *prom, *after;
	bool once, json;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"once", 0, NULL, "one picture as text, of one interval, and end", offsetof(struct options, once)},
	{"json", 0, NULL, "the same as JSON", offsetof(struct options, json)},
	{"interval", 'i', "TIME", "between two pictures (default: 1s; 100ms at least)", offsetof(struct options, interval)},
	{"after", 0, "TIME", "waits that have lasted for less are not called a hang (default: 2s)", offsetof(struct options, after)},
	{"prom", 0, "FILE", "also write FILE.prom for node_exporter's textfile collector, complete each time; without a terminal only that", offsetof(struct options, prom)},
};
/* clang-format on */

/* How it is asked for. */
struct plan {
	char **words; /* PID|DIR… */
	size_t n_words;
	uint64_t interval_ns, after_ns;
	const char *prom;
	bool screen;
	bool json; /* names are whole */
};

/* One picture, and all that it is made of. */
struct picture {
	struct live_targets targets;
	struct live live;
	struct report report;
	struct live_words words;
	struct verdicts verdicts;
	bool made;
};

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static void release(struct picture *p)
{
	if (p->made) {
		verdicts_release(&p->verdicts);
		live_words_release(&p->words);
		report_release(&p->report);
	}
	live_release(&p->live);
	live_targets_release(&p->targets);
	*p = (struct picture){0};
}

static void fill(struct picture *p, const struct plan *plan)
{
	report_init(&p->report, SCHEMA);
	live_words_init(&p->words, &p->live, &p->report.arena);
	p->words.name_columns = plan->json ? 0 : live_name_columns(view_for(stdout).width);
	verdicts_find(&p->verdicts, &p->words, plan->after_ns);
	live_add_verdicts(&p->report, &p->verdicts);
	live_add_processes(&p->report, &p->words);
	live_add_costs(&p->report, &p->words);
	live_add_locks(&p->report, &p->words);
	live_add_gpus(&p->report, &p->words);
	live_add_threads(&p->report, &p->words, plan->after_ns, false);
	p->made = true;
}

static void draw(struct screen *screen, struct picture *p)
{
	struct screen_picture picture = {&p->words, &p->verdicts, &p->report, p->live.sampled_ns};

	screen_draw(screen, p->made && p->live.n_processes ? &picture : NULL);
}

/* Waits for the end of a step, for a key where there is a screen. False: to end. */
static bool pass(const struct plan *plan, struct screen *screen, struct picture *shown, uint64_t ns)
{
	struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	uint64_t until = now_ns() + ns;
	enum screen_key key;

	if (!plan->screen) {
		nanosleep(&time, NULL);
		return !ended;
	}
	do {
		key = screen_wait(screen, until - min_u64(until, now_ns()));
		if (key == SCREEN_CHANGED)
			draw(screen, shown);
	} while (!ended && key == SCREEN_CHANGED && now_ns() < until);
	return !ended && key != SCREEN_QUIT;
}

/* Makes a picture of one interval. shown: the one on the screen meanwhile. False: to end. */
static bool take(const struct plan *plan, struct picture *p, struct screen *screen,
		 struct picture *shown)
{
	struct live_options options = {.whole_bytes = WHOLE_BYTES};
	uint64_t step_ns = max_u64(plan->interval_ns / SAMPLES, SAMPLE_LEAST_NS), until;
	int err = -ENOENT;

	*p = (struct picture){0};
	live_targets_find_again(&p->targets, plan->words, plan->n_words);
	options.recorded = &p->targets.recorded;
	if (p->targets.n_dirs)
		err = live_begin(&p->live, p->targets.dirs, p->targets.n_dirs, &options);
	until = now_ns() + plan->interval_ns;
	while (now_ns() < until) {
		if (!pass(plan, screen, shown, min_u64(step_ns, until - min_u64(until, now_ns()))))
			return false;
		if (!err)
			live_sample(&p->live);
	}
	if (!err)
		live_end(&p->live, &options);
	fill(p, plan);
	return true;
}

static int show_once(const struct plan *plan, const struct renderer *renderer)
{
	struct picture picture;
	int status = STATUS_NOTHING;

	if (take(plan, &picture, NULL, NULL)) {
		picture.report.view = view_for(stdout);
		picture.report.view.always_brief = true;
		if (renderer->render == render_text) {
			print_words(picture.live.n_processes ? picture.verdicts.all[0].text
							     : "No recorded program is running.",
				    0, 0, picture.report.view.width ?: 80, stdout);
			fputc('\n', stdout);
		}
		status = renderer->render(&picture.report, stdout) ? STATUS_NOTHING : STATUS_FINE;
		if (plan->prom && prometheus_write(plan->prom, &picture.words, &picture.verdicts))
			status = STATUS_NOTHING;
	}
	release(&picture);
	warnings_flush();
	return status;
}

/* The next picture takes the place of the one that is shown, unless that is to stay. The words point into a picture, so
 * pictures do not move: the two change places. */
static int go_on(const struct plan *plan)
{
	struct picture pictures[2] = {0}, *shown = &pictures[0], *next = &pictures[1];
	struct screen screen = {0};
	int status = STATUS_FINE;

	if (plan->screen)
		draw(&screen, shown);
	while (!ended && !status && take(plan, next, &screen, shown)) {
		if (plan->prom && prometheus_write(plan->prom, &next->words, &next->verdicts))
			status = STATUS_NOTHING;
		if (!screen.stopped) {
			struct picture *old = shown;

			shown = next;
			next = old;
			if (plan->screen)
				draw(&screen, shown);
		}
		release(next);
	}
	release(next);
	release(shown);
	return status;
}

static int run_plan(const struct plan *plan)
{
	struct sigaction action = {.sa_handler = end};
	int status;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	if (plan->screen && !screen_begin())
		return STATUS_NOTHING;
	status = go_on(plan);
	if (plan->screen)
		screen_end();
	warnings_flush();
	return status;
}

/* Once: a process may end while it is looked at. */
static bool are_there(const struct plan *plan)
{
	struct live_targets targets;
	bool there = live_targets_find(&targets, "top", plan->words, plan->n_words);

	for (size_t i = 0; there && i < targets.n_dirs; i++)
		if (access(targets.dirs[i], F_OK)) {
			warn("top: %s: %s", targets.dirs[i], strerror(errno));
			there = false;
		}
	live_targets_release(&targets);
	return there;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {0};
	struct plan plan = {.interval_ns = 1000000000, .after_ns = AFTER_NS};
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if ((options.interval &&
	     !live_read_time(self->name, "interval", options.interval, &plan.interval_ns)) ||
	    (options.after && !live_read_time(self->name, "after", options.after, &plan.after_ns)))
		return STATUS_USAGE;
	if (plan.interval_ns < 100000000) {
		warn("top: --interval=%s: 100ms at least", options.interval);
		return STATUS_USAGE;
	}
	plan.words = argv + 1;
	plan.n_words = (size_t)argc - 1;
	plan.prom = options.prom;
	plan.json = options.json;
	if (!are_there(&plan))
		return STATUS_NOTHING;
	if (options.once || options.json)
		return show_once(&plan, renderer_find(options.json ? "json" : "text"));
	plan.screen = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
	if (!plan.screen && !plan.prom) {
		warn("top: standard output is no terminal: --once or --json are for scripts, "
		     "--prom=FILE for services");
		return STATUS_USAGE;
	}
	return run_plan(&plan);
}

const struct command command_top = {
	.name = "top",
	.arguments = "[options] [PID|DIR...]",
	.summary = "Shows what recorded programs do, refreshed in place",
	.text = "Threads by what they wait for, locks with their holders and how many wait, "
		"work that GPUs have outstanding, calls a second, and the costliest calls and "
		"waits of the last interval. Default: all of your recorded programs; for root "
		"those of everybody. The keys are in the last line, `?` explains them.\n\n"
		"Costs are sampled: fifty looks at the boards in an interval. Nothing is "
		"stopped, signalled or attached to.\n",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
