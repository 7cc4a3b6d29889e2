/*
 * analyzer/ranks/news.c: the way from what is found in one process to the evaluation of all: a call, or the journal of a
 * part. Called by those of this folder who read records; and by the replay of journals (analyzer/parallel/).
 */
#include <stdlib.h>
#include "work.h"

/* With what they own, about. */
static size_t weight_of(const struct rank_news *news, size_t bytes)
{
	const struct rank_submitted_news *submitted = (const struct rank_submitted_news *)news;

	if (news->kind == RANK_NEWS_SUBMITTED && submitted->op)
		bytes += sizeof(*submitted->op) +
			 submitted->op->n_parts * sizeof(*submitted->op->parts);
	return 1 + bytes / sizeof(struct journal_entry);
}

void rank_tell(struct ranks *ranks, const struct rank_news *news, size_t bytes)
{
	struct journal *journal = ranks->journal;
	struct journal_entry *entry;

	if (!journal) {
		ranks_apply(ranks, news);
		return;
	}
	entry = journal_add_heavy(journal, JOURNAL_RANK, weight_of(news, bytes));
	entry->rank.news = xcalloc(1, bytes);
	memcpy(entry->rank.news, news, bytes);
}

void rank_pin(const struct ranks *ranks, const struct idle_part *part)
{
	const struct stack *stacks[] = {part->stack, part->stack_before};
	size_t i;

	for (i = 0; ranks->journal && i < ARRAY_SIZE(stacks); i++)
		if (stacks[i]) /* the model's, of this part; others only read it */
			((struct stack *)(uintptr_t)stacks[i])->pinned = true;
}

void ranks_apply(struct ranks *ranks, const struct rank_news *news)
{
	switch (news->kind) {
	case RANK_NEWS_COMM:
		rank_apply_comm(ranks, (const struct rank_comm_news *)news);
		break;
	case RANK_NEWS_PLACE:
		rank_place_apply(ranks, (const struct rank_place_news *)news);
		break;
	case RANK_NEWS_SUBMITTED:
		rank_apply_submitted(ranks, (const struct rank_submitted_news *)news);
		break;
	case RANK_NEWS_RAN:
		rank_apply_ran(ranks, (const struct rank_ran_news *)news);
		break;
	}
}

#define CACHE_LINE 64

static void fetch(const void *data, size_t bytes)
{
	size_t at;

	for (at = 0; at < bytes; at += CACHE_LINE)
		__builtin_prefetch((const char *)data + at);
}

void ranks_fetch(const struct rank_news *news)
{
	fetch(news, sizeof(struct rank_submitted_news));
}

void ranks_fetch_owned(const struct rank_news *news)
{
	const struct rank_submitted_news *submitted = (const struct rank_submitted_news *)news;

	if (news->kind == RANK_NEWS_SUBMITTED && submitted->op)
		fetch(submitted->op, sizeof(*submitted->op) + 8 * sizeof(struct rank_part));
	else if (news->kind == RANK_NEWS_PLACE)
		fetch(((const struct rank_place_news *)news)->place, sizeof(struct rank_place));
}

void ranks_drop(struct rank_news *news)
{
	const struct rank_place_news *place = (const struct rank_place_news *)news;

	if (news->kind == RANK_NEWS_SUBMITTED)
		free(((struct rank_submitted_news *)news)->op);
	if (news->kind == RANK_NEWS_PLACE) {
		free(place->holder);
		if (place->fresh)
			free(place->place);
	}
	free(news);
}
