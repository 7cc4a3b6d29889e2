/*
 * analyzer/blame/journal.c: what is written down while a part of a set is read.
 */
#include "journal.h"

#define ENTRIES_FIRST 1024

struct journal_entry *journal_add_heavy(struct journal *journal, enum journal_kind kind,
					size_t weight)
{
	struct journal_entry *entry;

	if (journal->n == journal->room) {
		journal->room = journal->room ? 2 * journal->room : ENTRIES_FIRST;
		journal->all = xrealloc(journal->all, journal->room, sizeof(*journal->all));
	}
	entry = &journal->all[journal->n++];
	*entry = (struct journal_entry){.at = position_now(),
					.kind = (uint8_t)kind,
					.weight = (uint16_t)min_u64(weight, UINT16_MAX)};
	journal->weight += entry->weight;
	return entry;
}

void journal_empty(struct journal *journal)
{
	journal->n = journal->weight = journal->stored_bytes = 0;
}

size_t journal_store(struct journal *journal, const void *data, size_t bytes)
{
	size_t at = journal->stored_bytes;

	while (at + bytes > journal->stored_room) {
		journal->stored_room = journal->stored_room ? 2 * journal->stored_room
							    : ENTRIES_FIRST * sizeof(*journal->all);
		journal->stored = xrealloc(journal->stored, journal->stored_room, 1);
	}
	memcpy(journal->stored + at, data, bytes);
	journal->stored_bytes += bytes;
	return at;
}
