/*
 * analyzer/lanes/moments.c: where in the timeline a finding is seen best. Called when all is read.
 */
#include <stdlib.h>
#include "lanes.h"
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

	for (size_t i = 0; i < l->store.n; i++) {
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

	for (size_t i = 0; i < call->n_parts; i++)
		if (bucket_is_lost(lane->parts[call->parts_at + i].bucket))
			ns += lane->parts[call->parts_at + i].ns;
	return ns;
}

static uint64_t length_of(const struct lane *lane, const struct call_item *call)
{
	(void)lane;
	return call->end_ns - call->begin_ns;
}

/* Of the calls of that name (0: of all), the one of which there is most. */
static bool most_of(const struct lanes *l, uint32_t name,
		    uint64_t (*measure)(const struct lane *lane, const struct call_item *call),
		    struct moment *m)
{
	uint64_t most = 0, ns;

	for (size_t i = 0; i < l->store.n; i++) {
		const struct lane *lane = l->store.all[i];

		for (size_t k = 0; k < lane->n_calls; k++) {
			const struct call_item *call = &lane->calls[k];

			ns = !name || call->name == name ? measure(lane, call) : 0;
			if (ns <= most)
				continue;
			most = ns;
			m->lane = lane;
			m->begin_ns = call->begin_ns;
			m->end_ns = call->end_ns;
		}
	}
	return most;
}

static bool worst_of_function(struct lanes *l, const char *function, struct moment *m)
{
	uint32_t name = label_of(&l->labels, function);

	m->text = "the call of this function that lost most";
	if (name && most_of(l, name, lost_in, m))
		return true;
	m->text = "the longest call of this function";
	return name && most_of(l, name, length_of, m);
}

/* What nothing else is known of: a finding leads somewhere. */
static bool worst_of_all(const struct lanes *l, struct moment *m)
{
	m->text = "the call that lost most";
	if (most_of(l, 0, lost_in, m))
		return true;
	m->text = "the longest call";
	return most_of(l, 0, length_of, m);
}

/* ---- of locks ---------------------------------------------------------------------------------- */

#define WAIT_HOLDER 2 /* values in ITEM_KINDS */

/* Of the waits of a lane, the longest; those for a thread come first, if it is given. */
static bool longest_wait(const struct lane *lane, const struct lane *holder, struct moment *m)
{
	uint64_t most = 0, wanted = holder ? holder->thread->index + 1 : 0;
	bool found = false;

	for (size_t i = 0; i < lane->n_items[ITEMS_WAITS]; i++) {
		const struct item *wait = &lane->items[ITEMS_WAITS][i];
		uint64_t ns = wait->end_ns - wait->begin_ns;
		bool fits = wanted && wait->values[WAIT_HOLDER] == wanted;

		if (fits < found || (fits == found && ns <= most))
			continue;
		found = fits;
		most = ns;
		m->lane = lane;
		m->begin_ns = wait->begin_ns;
		m->end_ns = wait->end_ns;
	}
	return most;
}

static const struct lane *lane_of_thread(const struct lanes *l, uint64_t tid, const char *process,
					 struct arena *texts)
{
	for (size_t i = 0; i < l->store.n; i++) {
		const struct lane *lane = l->store.all[i];

		if (lane->kind == LANE_THREAD && lane->thread->tid == tid &&
		    !strcmp(text_process(texts, lane->process->trace), process))
			return lane;
	}
	return NULL;
}

/* Between which two threads it went worst, the report says: waiters and what they waited for in the end. */
static bool worst_of_locks(const struct lanes *l, const struct report *report, size_t row,
			   bool across, struct moment *m)
{
	const struct table *blame = report_find(report, "root_blame");
	const char *function = table_text_at(report_find(report, "findings"), row, "function");
	struct arena texts = {0};
	uint64_t most = 0;

	m->text = "the longest wait for that lock's holder";
	for (size_t i = 0; blame && i < blame->n_rows; i++) {
		const char *process = table_text_at(blame, i, "process");
		const char *root_function = table_text_at(blame, i, "root_function");
		uint64_t ns = table_number_at(blame, i, "waited_ns");
		bool apart = table_number_at(blame, i, "waiter_device") !=
			     table_number_at(blame, i, "root_device");
		const struct lane *waiter;

		if (ns <= most || apart != across || !process ||
		    (function && root_function && strcmp(function, root_function) != 0))
			continue;
		waiter = lane_of_thread(l, table_number_at(blame, i, "waiter"), process, &texts);
		if (waiter && longest_wait(waiter,
					   lane_of_thread(l, table_number_at(blame, i, "root"),
							  process, &texts),
					   m))
			most = ns;
	}
	arena_release(&texts);
	return most;
}

/* ---- of runs ----------------------------------------------------------------------------------- */

#define COLLECTIVE_WAIT 2 /* values in ITEM_KINDS */
#define COLLECTIVE_LAST 3
#define IDLE_NS 1

/* Of items of a kind in all lanes, the one with the largest value; weight: which one, or its duration. */
static bool longest_item(const struct lanes *l, enum item_kind kind, int weight, struct moment *m)
{
	uint64_t most = 0, ns;

	for (size_t i = 0; i < l->store.n; i++) {
		const struct lane *lane = l->store.all[i];

		for (size_t k = 0; k < lane->n_items[kind]; k++) {
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

/* The longest wait in a collective for the rank of a thread, if that is known and has one. */
static bool longest_for(const struct lanes *l, uint64_t tid, struct moment *m)
{
	uint64_t most = 0;

	for (size_t i = 0; tid && i < l->store.n; i++) {
		const struct lane *lane = l->store.all[i];

		for (size_t k = 0; k < lane->n_items[ITEMS_COLLECTIVES]; k++) {
			const struct item *item = &lane->items[ITEMS_COLLECTIVES][k];
			uint64_t last = item->values[COLLECTIVE_LAST];

			if (item->values[COLLECTIVE_WAIT] <= most || !last || last > l->n_ranks ||
			    !l->ranks[last - 1] ||
			    !model_find_thread(&l->a->model, l->ranks[last - 1]->process,
					       (uint32_t)tid))
				continue;
			most = item->values[COLLECTIVE_WAIT];
			m->lane = lane;
			m->begin_ns = item->begin_ns;
			m->end_ns = item->end_ns;
		}
	}
	return most;
}

static bool worst_of_run(const struct lanes *l, const struct detector *detector, uint64_t tid,
			 struct moment *m)
{
	if (detector && detector->conclude_ranks) {
		m->text = "the longest wait for another rank";
		return longest_for(l, tid, m) ||
		       longest_item(l, ITEMS_COLLECTIVES, COLLECTIVE_WAIT, m);
	}
	m->text = "the longest time a GPU was idle";
	return longest_item(l, ITEMS_IDLE, IDLE_NS, m);
}

static bool moment_of(struct lanes *l, const struct report *report, const struct table *findings,
		      size_t row, struct moment *m)
{
	const char *id = table_text_at(findings, row, "id");
	const struct detector *detector = id ? detectors_find(id) : NULL;

	if (worst_call(l, findings, row, m))
		return true;
	if (detector && detector->stalls != STALLS_NOT &&
	    worst_of_locks(l, report, row, detector->stalls == STALLS_ACROSS, m))
		return true;
	if (detector && detector->of_idle && worst_of_run(l, detector, 0, m))
		return true;
	return worst_of_function(l, table_text_at(findings, row, "function"), m) ||
	       worst_of_run(l, detector, table_number_at(findings, row, "share_thread"), m) ||
	       worst_of_all(l, m);
}

#define MOMENTS_MOST 200 /* of the first findings: nobody asks to be shown more */

struct moment *lanes_moments(struct lanes *l, const struct report *report, size_t *n)
{
	const struct table *findings = report_find(report, "findings");
	struct moment *moments = xcalloc(findings ? findings->n_rows + 1 : 1, sizeof(*moments));

	*n = 0;
	for (size_t row = 0; findings && row < findings->n_rows && row < MOMENTS_MOST; row++) {
		struct moment m = {.finding = table_number_at(findings, row, "rank")};

		if (moment_of(l, report, findings, row, &m))
			moments[(*n)++] = m;
	}
	return moments;
}
