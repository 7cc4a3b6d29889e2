/*
 * analyzer/sections/own_locks.c: waits of threads between their calls for locks of the program's own, by waiter and holder, as
 * blame.c has those for locks inside CUDA. Called by waits.c.
 */
#include <stdlib.h>
#include <string.h>
#include "account/locks.h"
#include "base/median.h"
#include "sections.h"
#include "text/text.h"

struct own_lock_row {
	const char *process, *site, *lock, *did;
	uint64_t waiter, holder, waits, waited_ns;
};

static const struct column columns[] = {
	COLUMN(struct own_lock_row, waiter, "thread", UNIT_PLAIN),
	COLUMN(struct own_lock_row, site, "waited at", UNIT_TEXT),
	COLUMN(struct own_lock_row, holder, "for", UNIT_PLAIN),
	COLUMN(struct own_lock_row, did, "which was mostly", UNIT_TEXT),
	COLUMN(struct own_lock_row, waits, "times", UNIT_COUNT),
	COLUMN(struct own_lock_row, waited_ns, "waited", UNIT_NS),
	COLUMN_JSON(struct own_lock_row, lock, UNIT_TEXT),
	COLUMN_JSON(struct own_lock_row, process, UNIT_TEXT),
};

static const struct table_kind kind = {
	TABLE("own_lock_blame",
	      "THE PROGRAM'S OWN LOCKS: waits for them between calls, by waiter and holder",
	      struct own_lock_row, columns),
	.detail = true,
	.text_rows = 12,
};

static int by_waited(const void *a, const void *b)
{
	const struct own_lock_row *x = a, *y = b;

	return COMPARE(y->waited_ns, x->waited_ns) ?: COMPARE(x->waiter, y->waiter) ?:
	       COMPARE(x->holder, y->holder) ?: strcmp(x->site ?: "", y->site ?: "");
}

/* What holders did for most of the waits at that place. */
static const char *did(const struct idle_holder *holder)
{
	enum idle_cause most = 0;

	for (size_t i = 1; i < IDLE_CAUSE_COUNT; i++)
		if (holder->ns[i] > holder->ns[most])
			most = (enum idle_cause)i;
	return holder->ns[most] ? idle_cause_texts[most] : NULL;
}

static const char *lock_of(struct report *report, const struct idle_sum *sum)
{
	const struct idle_part *wait = &sum->longest;

	return wait->object ? arena_take(&report->arena,
					 lock_place(sum->process, wait->object, wait->at_ns))
			    : NULL;
}

/* Of a thread's own account; what GPUs were idle for is of the same waits. */
static bool is_of_thread(const struct idle_sum *sum)
{
	return sum->key.cause == IDLE_LOCK && sum->holder && sum->longest.thread &&
	       sum->key.owner == idle_owner_thread(sum->longest.thread);
}

/* The waiter, or what the holder did in the longest of the waits. */
static bool lies_there(struct subject_place *place, const struct idle_sum *sum)
{
	return idle_part_lies(place, sum->process, &sum->longest) ||
	       (sum->holder->longest.thread &&
		idle_part_lies(place, sum->process, &sum->holder->longest));
}

void report_own_locks(struct report *report, const struct idle *idle, struct symbolizer *symbols,
		      struct subject_place *only)
{
	size_t most = HASH_COUNT(idle->sums.by_key) * IDLE_HOLDERS, n = 0;
	struct own_lock_row *rows = NULL;
	const struct idle_sum *sum;
	struct idle_writer w;

	idle_writer_init(&w, &report->arena, idle, symbols);
	for (sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		if (!is_of_thread(sum) || (only && !lies_there(only, sum)))
			continue;
		for (size_t i = 0; i < IDLE_HOLDERS; i++) {
			if (!sum->holder->by[i].waits)
				break;
			rows = rows ?: xcalloc(most, sizeof(*rows));
			rows[n++] = (struct own_lock_row){
				.process = text_process(&report->arena, sum->process->trace),
				.site = idle_part_place(&w, sum->process, &sum->longest),
				.lock = lock_of(report, sum),
				.did = did(sum->holder),
				.waiter = sum->longest.thread->tid,
				.holder = sum->holder->by[i].tid,
				.waits = sum->holder->by[i].waits,
				.waited_ns = sum->holder->by[i].ns,
			};
		}
	}
	idle_writer_release(&w);
	if (rows)
		qsort(rows, n, sizeof(*rows), by_waited);
	report_add(report, &kind, rows, n);
}
