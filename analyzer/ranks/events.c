/*
 * analyzer/ranks/events.c: the way from what is found in one process to the evaluation of all: a call, or the journal of a
 * part. Called by those of this folder who read records; and by the replay of journals (analyzer/parallel/).
 */
#include <stdlib.h>
#include "work.h"

/* With what they own, about. */
static size_t weight_of(const struct rank_event *event, size_t bytes)
{
	const struct rank_submitted_event *submitted = (const struct rank_submitted_event *)event;

	if (event->kind == RANK_EVENT_SUBMITTED && submitted->op)
		bytes += sizeof(*submitted->op) +
			 submitted->op->n_parts * sizeof(*submitted->op->parts);
	return 1 + bytes / sizeof(struct journal_entry);
}

void rank_emit(struct ranks *ranks, const struct rank_event *event, size_t bytes)
{
	struct journal *journal = ranks->journal;
	struct journal_entry *entry;

	if (!journal) {
		ranks_apply(ranks, event);
		return;
	}
	entry = journal_add_heavy(journal, JOURNAL_RANK, weight_of(event, bytes));
	entry->rank.event = xcalloc(1, bytes);
	memcpy(entry->rank.event, event, bytes);
}

void rank_pin(const struct ranks *ranks, const struct idle_part *part)
{
	const struct stack *stacks[] = {part->stack, part->stack_before};

	for (size_t i = 0; ranks->journal && i < ARRAY_SIZE(stacks); i++)
		if (stacks[i]) /* the model's, of this part; others only read it */
			((struct stack *)(uintptr_t)stacks[i])->pinned = true;
}

void ranks_apply(struct ranks *ranks, const struct rank_event *event)
{
	switch (event->kind) {
	case RANK_EVENT_COMM:
		rank_apply_comm(ranks, (const struct rank_comm_event *)event);
		break;
	case RANK_EVENT_PLACE:
		rank_place_apply(ranks, (const struct rank_place_event *)event);
		break;
	case RANK_EVENT_SUBMITTED:
		rank_apply_submitted(ranks, (const struct rank_submitted_event *)event);
		break;
	case RANK_EVENT_RAN:
		rank_apply_ran(ranks, (const struct rank_ran_event *)event);
		break;
	}
}

#define CACHE_LINE 64

static void fetch(const void *data, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += CACHE_LINE)
		__builtin_prefetch((const char *)data + at);
}

void ranks_fetch(const struct rank_event *event)
{
	fetch(event, sizeof(struct rank_submitted_event));
}

void ranks_fetch_owned(const struct rank_event *event)
{
	const struct rank_submitted_event *submitted = (const struct rank_submitted_event *)event;

	if (event->kind == RANK_EVENT_SUBMITTED && submitted->op)
		fetch(submitted->op, sizeof(*submitted->op) + 8 * sizeof(struct rank_part));
	else if (event->kind == RANK_EVENT_PLACE)
		fetch(((const struct rank_place_event *)event)->place, sizeof(struct rank_place));
}

void ranks_drop(struct rank_event *event)
{
	const struct rank_place_event *place = (const struct rank_place_event *)event;

	if (event->kind == RANK_EVENT_SUBMITTED)
		free(((struct rank_submitted_event *)event)->op);
	if (event->kind == RANK_EVENT_PLACE) {
		free(place->holder);
		if (place->fresh)
			free(place->place);
	}
	free(event);
}
