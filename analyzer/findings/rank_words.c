/*
 * analyzer/findings/rank_words.c: ranks of a job in words. Called by sections and detectors, after the last record.
 */
#include "rank_words.h"
#include "text/text.h"

#define TOLD_MOST 3
#define TOLD_LEAST_PART 20 /* smaller parts of all its waits are not told */

const char *text_rank_name(struct arena *texts, const struct rank *rank)
{
	const char *words = rank->process ? text_rank(texts, rank->process->trace) : NULL;

	return words ?: arena_printf(texts, "rank %u", rank->number);
}

const char *text_rank_where(struct arena *texts, const struct rank *rank)
{
	if (!rank->process)
		return text_rank_name(texts, rank);
	return arena_printf(texts, "%s%s", text_rank_name(texts, rank),
			    text_where_runs(texts, rank->process->trace, rank->device));
}

const char *text_rank_waits(struct arena *texts, const struct ranks *ranks, const struct rank *rank)
{
	uint64_t below_ns = UINT64_MAX;
	const char *words = "";

	for (unsigned int shown = 0; shown < TOLD_MOST; shown++) {
		const struct rank *most = NULL;
		uint64_t most_ns = 0;

		for (size_t i = 0; i < ranks->n; i++)
			if (rank->waited_for_ns[i] > most_ns && rank->waited_for_ns[i] < below_ns) {
				most_ns = rank->waited_for_ns[i];
				most = ranks->all[i];
			}
		if (!most || most_ns < rank->wait_ns / TOLD_LEAST_PART)
			break;
		words = arena_printf(texts, "%s%s%s for %s", words, shown ? ", " : "",
				     text_time(texts, most_ns), text_rank_name(texts, most));
		below_ns = most_ns;
	}
	return words;
}
