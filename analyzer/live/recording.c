/*
 * analyzer/live/recording.c: is a running program being recorded now, and what opens the next window? Called by the verdict, the
 * tables and the metrics. The board says what is, metadata what the recorder was told.
 */
#include <time.h>
#include "cudaspy/windows.h"
#include "recording.h"
#include "text/text.h"

uint64_t live_recording_ns(const struct live_process *p)
{
	uint64_t since = p->trace->board.head.state_since, now;

	if (since)
		return live_ago_ns(p, since);
	now = now_ns();
	return p->started_ns && p->started_ns <= now ? now - p->started_ns : UNKNOWN_NS;
}

const char *live_recording_name(const struct live_process *p)
{
	return live_is_dormant(p) ? "dormant" : live_windows(p) ? "window" : "all";
}

const char *live_recording_text(struct arena *texts, const struct live_process *p)
{
	uint64_t ns = live_recording_ns(p), windows = live_windows(p);
	const char *lasted =
		ns == UNKNOWN_NS ? "" : arena_printf(texts, " for %s", text_time(texts, ns));

	if (live_is_dormant(p))
		return arena_printf(texts, "dormant%s, %s so far", lasted,
				    windows ? text_count(texts, windows, "window") : "no window");
	return windows ? arena_printf(texts, "window %llu%s%s", (unsigned long long)windows,
				      *lasted ? "," : "", lasted)
		       : NULL;
}

/* ---- what opens the next one ------------------------------------------------------------------ */

/* "14:30:00". */
static const char *time_of_day(struct arena *texts, uint64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[32] = "?";

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	return arena_printf(texts, "%s", text);
}

/* What `cudaspy start` asked for, and is still to come; NULL: nothing. */
static const char *asked_text(struct arena *texts, const struct spy_board *board)
{
	uint64_t at = board->wanted_at_ns, now = now_ns();

	if (!board->request || board->wanted != SPY_WANTED_START)
		return NULL;
	if (at > now)
		return arena_printf(texts, "the time, %s, as `cudaspy start` asked",
				    time_of_day(texts, at));
	if (board->wanted_every_ns)
		return arena_printf(texts, "the time, each %s, as `cudaspy start` asked",
				    text_time(texts, board->wanted_every_ns));
	return board->request != board->answered ? "its next CUDA call, as `cudaspy start` asked"
						 : NULL;
}

/* What its recorder was told opens windows; NULL: nothing, or only a command. */
static const char *range_text(struct arena *texts, const struct live_process *p)
{
	const char *range = metadata_text(&p->trace->metadata, "capture_range");
	const char *steps = metadata_text(&p->trace->metadata, "steps"), *name;
	enum spy_capture capture;
	uint64_t first, last;

	if (!range || !spy_parse_capture(range, &capture, &name))
		return NULL;
	if (capture != SPY_CAPTURE_PROFILER && capture != SPY_CAPTURE_RANGE)
		return NULL;
	name = capture == SPY_CAPTURE_PROFILER ? "cudaProfilerStart"
					       : arena_printf(texts, "the range %s", name);
	if (!steps || !spy_parse_steps(steps, &first, &last))
		return name;
	/* Their window may have been one of those that there were. */
	return arena_printf(texts, "%s, steps %s of it%s", name, steps,
			    live_windows(p) ? " unless they are past" : "");
}

static const char *delay_text(struct arena *texts, const struct live_process *p)
{
	const char *delay = metadata_text(&p->trace->metadata, "delay");
	uint64_t ns;

	if (!delay || !spy_parse_time(delay, &ns) || !p->started_ns || live_windows(p))
		return NULL;
	return arena_printf(texts, "the time, %s after the begin (--delay)", delay);
}

static bool waits_for_delay(const struct live_process *p)
{
	const char *delay = metadata_text(&p->trace->metadata, "delay");
	uint64_t ns;

	return delay && spy_parse_time(delay, &ns) && p->started_ns &&
	       now_ns() < add_capped(p->started_ns, ns);
}

const char *live_opens_text(struct arena *texts, const struct live_process *p)
{
	const char *command = arena_printf(texts, "`cudaspy start %u`",
					   p->recorded ? (unsigned int)p->recorded->pid
						       : (unsigned int)p->trace->pid);
	const char *asked = asked_text(texts, &p->trace->board.head);
	const char *range = range_text(texts, p), *delay = delay_text(texts, p), *opens;

	if (!live_is_dormant(p))
		return NULL;
	if (!p->here)
		command = arena_printf(texts, "`cudaspy start %s`", p->trace->dir);
	/* A range counts from the delay on. */
	opens = range && delay && waits_for_delay(p)
			? arena_printf(texts, "%s, after the delay of %s", range,
				       metadata_text(&p->trace->metadata, "delay"))
			: range ?: delay;
	if (asked && opens)
		opens = arena_printf(texts, "%s, %s", asked, opens);
	else if (asked)
		opens = asked;
	return opens ? arena_printf(texts, "%s, or %s", opens, command) : command;
}
