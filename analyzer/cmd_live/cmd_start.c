/*
 * analyzer/cmd_live/cmd_start.c: `cudaspy start`: begins a window in running programs.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ask.h"
#include "cmd/command.h"
#include "cudaspy/windows.h"

struct options {
	const char *at, *every, *for_;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"at",    0, "TIME", "begin then: 14:30, 14:30:05, +10s, or @1767225600, seconds since the epoch", offsetof(struct options, at)},
	{"for",   0, "TIME", "end it after that time: 500ms, 5s, 2m", offsetof(struct options, for_)},
	{"every", 0, "TIME", "begin another one each such time after --at, or after now; with --for", offsetof(struct options, every)},
};
/* clang-format on */

static uint64_t now_since_epoch_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The next such time of day, here. */
static bool time_of_day(const char *text, uint64_t *ns)
{
	time_t now = (time_t)(now_since_epoch_ns() / 1000000000), then;
	struct tm tm;
	const char *end;

	localtime_r(&now, &tm);
	tm.tm_sec = 0;
	end = strptime(text, "%H:%M:%S", &tm);
	if (!end || *end)
		end = strptime(text, "%H:%M", &tm);
	if (!end || *end)
		return false;
	tm.tm_isdst = -1;
	then = mktime(&tm);
	if (then < now) {
		tm.tm_mday++;
		tm.tm_isdst = -1;
		then = mktime(&tm);
	}
	*ns = (uint64_t)then * 1000000000;
	return then > 0;
}

#define SECONDS_MOST 1e10L /* since the epoch: the year 2286 */

static bool read_at(const char *text, uint64_t *ns)
{
	long double seconds;
	char *end;

	if (*text == '+' && spy_parse_time(text + 1, ns)) {
		*ns += now_since_epoch_ns();
		return true;
	}
	if (*text != '@')
		return time_of_day(text, ns);
	if (strspn(text + 1, "0123456789.") != strlen(text + 1))
		return false;
	seconds = strtold(text + 1, &end);
	if (*end || seconds > SECONDS_MOST)
		return false;
	*ns = (uint64_t)(seconds * 1e9L);
	return *ns;
}

static bool is_far(uint64_t at_ns)
{
	uint64_t now_ns = now_since_epoch_ns();

	return at_ns > now_ns && at_ns - now_ns > SPY_TIME_MOST_NS;
}

static bool read_time(const char *name, const char *text, uint64_t *ns)
{
	if (!text || (spy_parse_time(text, ns) && *ns))
		return true;
	warn("start: --%s=%s: no time such as 500ms, 5s, 10m", name, text);
	return false;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct asking asking = {.wanted = SPY_WANTED_START};
	struct options options = {0};
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (!read_time("for", options.for_, &asking.for_ns) ||
	    !read_time("every", options.every, &asking.every_ns))
		return STATUS_USAGE;
	if (options.at && !read_at(options.at, &asking.at_ns)) {
		warn("start: --at=%s: no time such as 14:30, 14:30:05, +10s or @1767225600",
		     options.at);
		return STATUS_USAGE;
	}
	if (is_far(asking.at_ns)) {
		warn("start: --at=%s: that is more than 115 days away", options.at);
		return STATUS_USAGE;
	}
	if (asking.every_ns && (!asking.for_ns || asking.for_ns >= asking.every_ns)) {
		warn("start: --every needs --for, of a shorter time");
		return STATUS_USAGE;
	}
	return ask_all(self->name, &asking, argv + 1, (size_t)argc - 1);
}

const struct command command_start = {
	.name = "start",
	.arguments = "[options] [PID|DIR...]",
	.summary = "Begins recording of running programs that are dormant, or does it from time to "
		   "time",
	.text = "Programs that were started with --capture-range=command are dormant until then. "
		"Without PID or DIR: all recorded programs, yours, or for root all. With --at all "
		"of them begin at the same moment, as far as their clocks agree; until then, and "
		"between the windows of --every, they are dormant.\n",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
