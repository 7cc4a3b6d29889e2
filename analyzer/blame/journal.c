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
	*entry = (struct journal_entry){
		.at = moment_now(), .kind = (uint8_t)kind, .weight = (uint16_t)weight};
	journal->weight += weight;
	return entry;
}
