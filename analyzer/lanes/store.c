/*
 * analyzer/lanes/store.c: the items of lanes, and how they stay few. Called by lanes.c for each item.
 */
#include <stdlib.h>
#include "store.h"
#include "base/median.h"

#define CALLS_MOST 1000000
#define SHORTEST_SHARE 262144 /* of the run: what is merged first */

static const uint64_t items_most[ITEM_KIND_COUNT] = {
#define ITEM_KIND(name, key, most, text, values) [ITEMS_##name] = (most),
	ITEM_KINDS(ITEM_KIND)
#undef ITEM_KIND
};

static void free_lane(struct lane *lane)
{
	for (size_t i = 0; i < ITEM_KIND_COUNT; i++)
		free(lane->items[i]);
	free(lane->calls);
	free(lane->parts);
	free(lane);
}

void store_release(struct store *store)
{
	for (size_t i = 0; i < store->n; i++)
		free_lane(store->all[i]);
	free(store->all);
	*store = (struct store){0};
}

struct lane *store_add_lane(struct store *store, enum lane_kind kind)
{
	struct lane *lane = xcalloc(1, sizeof(*lane));

	lane->kind = kind;
	store->all = grow(store->all, store->n, sizeof(*store->all));
	store->all[store->n++] = lane;
	return lane;
}

static uint64_t most(const struct store *store, uint64_t items)
{
	return store->share > 0 ? (uint64_t)(store->share * (double)items) : items;
}

static uint64_t next_threshold(const struct store *store, uint64_t before_ns)
{
	return before_ns ? 2 * before_ns : max_u64(store->run_ns / SHORTEST_SHARE, 1000);
}

static bool in_window(const struct store *store, uint64_t begin_ns, uint64_t end_ns)
{
	for (size_t i = 0; i < store->n_windows; i++)
		if (begin_ns < store->windows[i].end_ns && end_ns > store->windows[i].begin_ns)
			return true;
	return false;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void append_parts(struct lane *lane, struct call_item *call, const struct call_part *parts,
			 size_t n)
{
	call->parts_at = (uint32_t)lane->n_parts;
	call->n_parts = (uint8_t)n;
	for (size_t i = 0; i < n; i++) {
		lane->parts = grow(lane->parts, lane->n_parts, sizeof(*lane->parts));
		lane->parts[lane->n_parts++] = parts[i];
	}
}

/* The name stays that of the function that most of the time went into, as far as one has more than half of it. */
static void join_names(struct call_item *last, const struct call_item *call)
{
	uint64_t ns = call->end_ns - call->begin_ns;

	if (last->name == call->name) {
		last->weight_ns += ns;
	} else if (last->weight_ns >= ns) {
		last->weight_ns -= ns;
	} else {
		last->name = call->name;
		last->weight_ns = ns - last->weight_ns;
	}
}

/* Into the lane's last call, whose parts are the lane's last ones. */
static void join(struct lane *lane, const struct call_item *call, const struct call_part *parts,
		 size_t n)
{
	struct call_item *last = &lane->calls[lane->n_calls - 1];
	struct call_part sum[BUCKET_COUNT];
	uint64_t ns[BUCKET_COUNT] = {0};
	size_t i, n_sum = 0;

	if (last->count == 1)
		last->weight_ns = last->end_ns - last->begin_ns;
	join_names(last, call);
	for (i = 0; i < last->n_parts; i++)
		ns[lane->parts[last->parts_at + i].bucket] += lane->parts[last->parts_at + i].ns;
	for (i = 0; i < n; i++)
		ns[parts[i].bucket] += parts[i].ns;
	for (i = 0; i < BUCKET_COUNT; i++)
		if (ns[i])
			sum[n_sum++] = (struct call_part){ns[i], (enum bucket)i};
	lane->n_parts = last->parts_at;
	append_parts(lane, last, sum, n_sum);
	last->end_ns = call->end_ns;
	last->expected_ns = add_known_ns(last->expected_ns, call->expected_ns);
	last->count += call->count;
	last->where = last->about = 0;
}

static void append_call(struct store *store, struct lane *lane, const struct call_item *call,
			const struct call_part *parts, size_t n)
{
	const struct call_item *last = lane->n_calls ? &lane->calls[lane->n_calls - 1] : NULL;

	if (last && store->merged_ns && !last->whole && !call->whole &&
	    last->count < UINT32_MAX - call->count && call->begin_ns >= last->begin_ns &&
	    call->end_ns - last->begin_ns <= store->merged_ns) {
		join(lane, call, parts, n);
		return;
	}
	lane->calls = grow(lane->calls, lane->n_calls, sizeof(*lane->calls));
	lane->calls[lane->n_calls] = *call;
	append_parts(lane, &lane->calls[lane->n_calls], parts, n);
	lane->n_calls++;
	store->n_calls++;
}

static void merge_calls_of(struct store *store, struct lane *lane)
{
	struct call_item *calls = lane->calls;
	struct call_part *parts = lane->parts;
	size_t n = lane->n_calls, i;

	lane->calls = NULL;
	lane->parts = NULL;
	lane->n_calls = lane->n_parts = 0;
	for (i = 0; i < n; i++)
		append_call(store, lane, &calls[i], &parts[calls[i].parts_at], calls[i].n_parts);
	free(calls);
	free(parts);
}

/* Until there are no more than so many; what is in windows stays. */
static void merge_calls(struct store *store, uint64_t until)
{
	for (uint64_t rounds = 0; store->n_calls > until && rounds < 64; rounds++) {
		store->merged_ns = next_threshold(store, store->merged_ns);
		store->n_calls = 0;
		for (size_t i = 0; i < store->n; i++)
			merge_calls_of(store, store->all[i]);
		if (store->merged_ns > 2 * store->run_ns)
			break; /* all that is left lies in windows */
	}
}

void store_add_call(struct store *store, struct lane *lane, struct call_item call,
		    const struct call_part *parts, size_t n)
{
	call.whole = in_window(store, call.begin_ns, call.end_ns);
	store->calls_seen++;
	append_call(store, lane, &call, parts, n);
	if (unlikely(store->n_calls > max_u64(most(store, CALLS_MOST), 2 * store->left_calls))) {
		merge_calls(store, most(store, CALLS_MOST) / 2);
		store->left_calls = store->n_calls;
	}
}

/* ---- other items ----------------------------------------------------------------------------- */

/* The mean by the times that they are of; 0 is unknown. */
static uint64_t mean_of(uint64_t a, uint64_t a_ns, uint64_t b, uint64_t b_ns)
{
	double ns = (double)a_ns + (double)b_ns;

	if (!a || !b || ns <= 0)
		return a ?: b;
	return (uint64_t)(((double)a * (double)a_ns + (double)b * (double)b_ns) / ns + 0.5);
}

/* Numbers become means; what slows the GPU down is that of the longer one. */
static void join_looks(struct item *last, const struct item *look)
{
	uint64_t last_ns = last->end_ns - last->begin_ns, ns = look->end_ns - look->begin_ns;

	for (size_t i = 0; i < ITEM_VALUES; i++)
		if (i != LOOK_SLOWED)
			last->values[i] = mean_of(last->values[i], last_ns, look->values[i], ns);
	if (ns > last_ns)
		last->values[LOOK_SLOWED] = look->values[LOOK_SLOWED];
}

static bool is_merged(enum item_kind kind)
{
	return kind == ITEMS_OPS || kind == ITEMS_LOOKS;
}

/* Into the one before it, if both are short enough. Operations become one that has no name. */
static bool merge_item(const struct store *store, struct lane *lane, enum item_kind kind,
		       const struct item *item)
{
	size_t n = lane->n_items[kind];
	struct item *last = n ? &lane->items[kind][n - 1] : NULL;

	if (!last || !store->least_ns[kind] || last->whole || item->whole ||
	    item->begin_ns < last->begin_ns ||
	    item->end_ns - last->begin_ns > store->least_ns[kind])
		return false;
	if (kind == ITEMS_LOOKS)
		join_looks(last, item);
	else
		memset(last->values, 0, sizeof(last->values));
	last->end_ns = max_u64(last->end_ns, item->end_ns);
	return true;
}

/* With a sample, of those that are not twice as long as what is dropped in any case. */
static bool is_left_out(struct store *store, enum item_kind kind, uint64_t ns)
{
	uint64_t one_in = store->one_in[kind];

	if (ns < store->least_ns[kind])
		return true;
	return one_in && ns < next_threshold(store, store->least_ns[kind]) &&
	       store->sampled[kind]++ % one_in;
}

static void append_item(struct store *store, struct lane *lane, enum item_kind kind,
			const struct item *item)
{
	size_t n = lane->n_items[kind];

	if (is_merged(kind)) {
		if (merge_item(store, lane, kind, item))
			return;
	} else if (!item->whole && is_left_out(store, kind, item->end_ns - item->begin_ns)) {
		store->dropped[kind]++;
		return;
	}
	lane->items[kind] = grow(lane->items[kind], n, sizeof(*item));
	lane->items[kind][n] = *item;
	lane->n_items[kind]++;
	store->n_items[kind]++;
}

static void thin_lane(struct store *store, struct lane *lane, enum item_kind kind)
{
	struct item *items = lane->items[kind];
	size_t n = lane->n_items[kind], i;

	lane->items[kind] = NULL;
	lane->n_items[kind] = 0;
	for (i = 0; i < n; i++)
		append_item(store, lane, kind, &items[i]);
	free(items);
}

static uint64_t count_longer(const struct store *store, enum item_kind kind, uint64_t ns)
{
	uint64_t n = 0;

	for (size_t i = 0; i < store->n; i++)
		for (size_t k = 0; k < store->all[i]->n_items[kind]; k++) {
			const struct item *item = &store->all[i]->items[kind][k];

			n += item->whole || item->end_ns - item->begin_ns >= ns;
		}
	return n;
}

/* A higher threshold; or where next to nothing would be above it, a sample of what is below. */
static void raise_threshold(struct store *store, enum item_kind kind, uint64_t until)
{
	uint64_t next_ns = next_threshold(store, store->least_ns[kind]);

	if (!is_merged(kind) && count_longer(store, kind, next_ns) < until / 4) {
		store->one_in[kind] = 2;
		return;
	}
	store->least_ns[kind] = next_ns;
	store->one_in[kind] = 0;
}

static void thin(struct store *store, enum item_kind kind, uint64_t until)
{
	for (uint64_t rounds = 0; store->n_items[kind] > until && rounds < 64; rounds++) {
		raise_threshold(store, kind, until);
		store->n_items[kind] = 0;
		for (size_t i = 0; i < store->n; i++)
			thin_lane(store, store->all[i], kind);
		if (store->least_ns[kind] > 2 * store->run_ns)
			break;
	}
}

void store_add_item(struct store *store, struct lane *lane, enum item_kind kind,
		    const struct item *item)
{
	struct item own = *item;

	own.end_ns = max_u64(own.begin_ns, own.end_ns);
	own.whole = in_window(store, own.begin_ns, own.end_ns);
	store->items_seen[kind]++;
	append_item(store, lane, kind, &own);
	if (unlikely(store->n_items[kind] >
		     max_u64(most(store, items_most[kind]), 2 * store->left[kind]))) {
		thin(store, kind, most(store, items_most[kind]) / 2);
		store->left[kind] = store->n_items[kind];
	}
}

/* ---- after the last one ------------------------------------------------------------------------ */

/* What was in windows may be merged and dropped as all else is. */
static void give_windows_up(struct store *store)
{
	for (size_t i = 0; i < store->n; i++) {
		struct lane *lane = store->all[i];

		for (size_t k = 0; k < lane->n_calls; k++)
			lane->calls[k].whole = false;
		for (size_t kind = 0; kind < ITEM_KIND_COUNT; kind++)
			for (size_t k = 0; k < lane->n_items[kind]; k++)
				lane->items[kind][k].whole = false;
	}
}

void store_halve(struct store *store)
{
	if (!store->n_windows)
		give_windows_up(store);
	merge_calls(store, store->n_calls / 2);
	for (size_t kind = 0; kind < ITEM_KIND_COUNT; kind++)
		thin(store, (enum item_kind)kind, store->n_items[kind] / 2);
}

static int by_begin(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return COMPARE(x->begin_ns, y->begin_ns) ?: COMPARE(y->end_ns, x->end_ns);
}

void store_sort(struct store *store)
{
	for (size_t i = 0; i < store->n; i++)
		for (size_t kind = 0; kind < ITEM_KIND_COUNT; kind++)
			if (store->all[i]->n_items[kind])
				qsort(store->all[i]->items[kind], store->all[i]->n_items[kind],
				      sizeof(struct item), by_begin);
}
