/*
 * analyzer/lanes/moments.c: where in the timeline a finding is seen best. Called when all is read.
 */
#include <stdlib.h>
#include "collect.h"
#include "detectors/table.h"
#include "findings/detector.h"
#include "text/text.h"

/* The call of a lane that began then; NULL: it is not a call of its own. */
static const struct call_item *call_at(const struct lane *lane, uint64_t begin_ns)
{
	size_t low = 0, high = lane->n_calls, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (lane->calls[middle].end_ns <= begin_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < lane->n_calls && lane->calls[low].begin_ns <= begin_ns ? &lane->calls[low]
									    : NULL;
}

/* Of the threads of that number, the one that was in a call then. */
static const struct lane *lane_of_tid(const struct lanes *l, uint64_t tid, uint64_t begin_ns)
{
	const struct lane *any = NULL;
	size_t i;

	for (i = 0; i < l->store.n; i++) {
		const struct lane *lane = l->store.all[i];

		if (lane->kind != LANE_THREAD || lane->thread->tid != tid)
			continue;
		if (call_at(lane, begin_ns))
			return lane;
		any = any ?: lane;
	}
	return any;
}

/* The worst call that the report tells of. */
static bool worst_call(const struct lanes *l, const struct table *findings, size_t row,
		       struct moment *m)
{
	uint64_t tid = table_number_at(findings, row, "worst_thread");

	if (!tid)
		return false;
	m->begin_ns = l->a->model.first_ns + table_number_at(findings, row, "worst_at_ns");
	m->end_ns = m->begin_ns + table_number_at(findings, row, "worst_ns");
	m->lane = lane_of_tid(l, tid, m->begin_ns);
	m->text = "its longest call";
	return m->lane;
}

static uint64_t lost_in(const struct lane *lane, const struct call_item *call)
{
	uint64_t ns = 0;
	size_t i;

	for (i = 0; i < call->n_parts; i++)
		if (bucket_is_lost(lane->parts[call->parts_at + i].bucket))
			ns += lane->parts[call->parts_at + i].ns;
	return ns;
}

/* Of the calls of a function, the one that lost most. */
static bool worst_of_function(struct lanes *l, const char *function, struct moment *m)
{
	uint32_t name = label_of(&l->labels, function);
	uint64_t most = 0, ns;
	size_t i, k;

	for (i = 0; name && i < l->store.n; i++) {
		const struct lane *lane = l->store.all[i];

		for (k = 0; k < lane->n_calls; k++) {
			const struct call_item *call = &lane->calls[k];

			ns = call->name == name ? lost_in(lane, call) : 0;
			if (ns <= most)
				continue;
			most = ns;
			m->lane = lane;
			m->begin_ns = call->begin_ns;
			m->end_ns = call->end_ns;
		}
	}
	m->text = "the call of this function that lost most";
	return most;
}

/* Of items of a kind in all lanes, the one with the largest value; weight: which one, or its duration. */
static bool longest_item(const struct lanes *l, enum item_kind kind, int weight, struct moment *m)
{
	uint64_t most = 0, ns;
	size_t i, k;

	for (i = 0; i < l->store.n; i++) {
		const struct lane *lane = l->store.all[i];

		for (k = 0; k < lane->n_items[kind]; k++) {
			const struct item *item = &lane->items[kind][k];

			ns = weight < 0 ? item->end_ns - item->begin_ns : item->values[weight];
			if (ns <= most)
				continue;
			most = ns;
			m->lane = lane;
			m->begin_ns = item->begin_ns;
			m->end_ns = item->end_ns;
		}
	}
	return most;
}

#define COLLECTIVE_WAIT 2 /* its value in ITEM_KINDS */
#define IDLE_NS 1

static bool worst_of_run(const struct lanes *l, const char *id, struct moment *m)
{
	const struct detector *detector = id ? detectors_find(id) : NULL;

	if (detector && detector->of_ranks) {
		m->text = "the longest wait for another rank";
		return longest_item(l, ITEMS_COLLECTIVES, COLLECTIVE_WAIT, m);
	}
	m->text = "the longest time a GPU was idle";
	return longest_item(l, ITEMS_IDLE, IDLE_NS, m);
}

struct moment *lanes_moments(struct lanes *l, const struct report *report, size_t *n)
{
	const struct table *findings = report_find(report, "findings");
	struct moment *moments = xcalloc(findings ? findings->n_rows + 1 : 1, sizeof(*moments));
	size_t row;

	*n = 0;
	for (row = 0; findings && row < findings->n_rows; row++) {
		struct moment m = {.finding = table_number_at(findings, row, "rank")};

		if (worst_call(l, findings, row, &m) ||
		    worst_of_function(l, table_text_at(findings, row, "function"), &m) ||
		    worst_of_run(l, table_text_at(findings, row, "id"), &m))
			moments[(*n)++] = m;
	}
	return moments;
}
