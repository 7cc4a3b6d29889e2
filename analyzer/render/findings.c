/*
 * analyzer/render/findings.c: rows of the table "findings" in words. Called by the renderers
 * that show only those.
 */
#include <stdio.h>
#include <string.h>
#include "findings.h"
#include "base/format.h"

#define TIME 32

static void time_at(const struct table *t, size_t row, const char *key, char *text)
{
	format_ns(text, TIME, table_number_at(t, row, key));
}

/* " Because of it GPUs were idle for 1.234 ms."; nothing, if that is nothing to speak of, or unknown. */
static void idle_words(const struct table *t, size_t row, char words[3 * TIME])
{
	uint64_t ns = table_number_at(t, row, "idle_gpu_ns");
	char idle[TIME];

	*words = '\0';
	if (ns == UNKNOWN_NS || ns < REPORT_IDLE_LEAST_NS)
		return;
	format_ns(idle, TIME, ns);
	snprintf(words, 3 * TIME, " Because of it GPUs were idle for %s.", idle);
}

char *render_finding_message(const struct table *t, size_t row)
{
	const char *what = table_text_at(t, row, "what") ?: table_text_at(t, row, "title");
	const char *known = table_text_at(t, row, "cost_known");
	const char *share = table_text_at(t, row, "share") ?: "";
	const char *recurs = table_text_at(t, row, "recurs");
	const char *comma = recurs ? ", " : "";
	char cost[TIME], own[TIME], others[TIME], idle[3 * TIME];
	uint64_t cost_ns = table_number_at(t, row, "cost_ns");

	if (known && !strcmp(known, "no"))
		return xasprintf("%s. Its cost is unknown.", what);
	time_at(t, row, "cost_ns", cost);
	time_at(t, row, "own_ns", own);
	time_at(t, row, "others_ns", others);
	idle_words(t, row, idle);
	if (!report_shows_others(table_number_at(t, row, "others_ns"), cost_ns))
		return xasprintf("%s. It cost %s: %s%s%s.%s", what, cost, share, comma,
				 recurs ?: "", idle);
	return xasprintf("%s. It cost its threads %s, and %s of other threads that waited for "
			 "it: %s%s%s.%s",
			 what, own, others, share, comma, recurs ?: "", idle);
}

char *render_finding_cure(const struct table *t, size_t row)
{
	char low[TIME], high[TIME];
	const char *fix = table_text_at(t, row, "fix") ?: "";
	const char *otherwise = table_text_at(t, row, "otherwise") ?: "";
	const char *blank = *otherwise ? " " : "";
	uint64_t high_ns = table_number_at(t, row, "gain_high_ns");

	if (!high_ns || high_ns == UNKNOWN_NS)
		return xasprintf("%s%s%s", fix, blank, otherwise);
	time_at(t, row, "gain_low_ns", low);
	time_at(t, row, "gain_high_ns", high);
	if (report_is_point(table_number_at(t, row, "gain_low_ns"), high_ns))
		return xasprintf("%s Gains about %s of the threads' time.%s%s", fix, high, blank,
				 otherwise);
	if (!table_number_at(t, row, "gain_low_ns"))
		return xasprintf("%s Gains up to %s of the threads' time.%s%s", fix, high, blank,
				 otherwise);
	return xasprintf("%s Gains %s to %s of the threads' time.%s%s", fix, low, high, blank,
			 otherwise);
}

bool render_finding_is_problem(const struct table *t, size_t row)
{
	return !strcmp(table_text_at(t, row, "severity"), "problem");
}

bool render_finding_fails(const struct table *t, size_t row)
{
	const char *fails = table_text_at(t, row, "fails");
	const char *compared = table_text_at(t, row, "compared");

	if (fails)
		return !strcmp(fails, "yes");
	return render_finding_is_problem(t, row) && !table_text_at(t, row, "suppressed") &&
	       !(compared && !strcmp(compared, "same"));
}
