/*
 * analyzer/findings/profiled.c: the profiler that recorded while GPUs waited for the host.
 */
#include "detector.h"
#include "profiled.h"
#include "text/text.h"

#define LEAST_PART 2 /* of the working phase: for the rest the host is as slow as it is */

/* What a cause has for its own cure, as compiling, no profiler makes. */
static bool has_own_cause(const struct finding *finding)
{
	for (size_t i = 0; i < IDLE_CAUSE_COUNT; i++)
		if (finding->fix == idle_cause_meanings[i])
			return true;
	return false;
}

static bool is_about_host(const struct finding *finding)
{
	return finding->detector->of_host && finding->origin.process && !has_own_cause(finding);
}

void finding_name_profiler(struct finding *finding, const struct idle *idle, struct arena *texts)
{
	const struct profiler_use *use;
	const struct phase *phase;
	uint64_t work_ns;

	if (!is_about_host(finding))
		return;
	use = &idle->profilers[finding->origin.process->trace->index];
	phase = &idle->accounts->expect->phases.all[finding->origin.process->trace->index];
	work_ns = phase->end_ns - phase->begin_ns;
	if (!use->name || !phase->found || use->ns < work_ns / LEAST_PART)
		return;
	finding->what =
		arena_printf(texts, "%s; %s was recording for %s of the work", finding->what,
			     use->name, text_percent(texts, (double)use->ns, (double)work_ns));
	finding->otherwise =
		arena_printf(texts, "Where the GPU waits without it, too: %s", finding->fix);
	finding->fix = arena_printf(
		texts,
		"Take %s out, or give it a schedule of a few steps, and record again: it makes "
		"every call and what comes before it slower.",
		use->name);
}
