/*
 * analyzer/diff/diff_items.c: what the runs of two sides have in common: the same function, bucket
 * or finding in all their reports, each of its numbers on both sides, and whether a difference is
 * noise. Called by diff.c.
 */
#include <stdlib.h>
#include <string.h>
#include "diff.h"
#include "account/buckets.h"
#include "base/format.h"
#include "base/median.h"

/* ---- numbers -------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return COMPARE(x, y);
}

struct diff_range diff_range_of(uint64_t *values, size_t n)
{
	uint64_t low, high;

	qsort(values, n, sizeof(*values), by_value);
	low = values[(n - 1) / 2];
	high = values[n / 2];
	return (struct diff_range){
		.median = low + (high - low) / 2, .low = values[0], .high = values[n - 1]};
}

uint64_t diff_distance(uint64_t x, uint64_t y)
{
	return x > y ? x - y : y - x;
}

enum diff_noise diff_judge(const struct diff_range *a, size_t n_a, const struct diff_range *b,
			   size_t n_b)
{
	uint64_t width_a = a->high - a->low, width_b = b->high - b->low;

	if (n_a < 2 && n_b < 2)
		return DIFF_UNKNOWN;
	if (a->low <= b->high && b->low <= a->high)
		return DIFF_NOISE;
	return diff_distance(a->median, b->median) > (width_a > width_b ? width_a : width_b)
		       ? DIFF_REAL
		       : DIFF_NOISE;
}

/* ---- what there is on both sides ------------------------------------------------------------- */

static struct diff_item *item_of(struct diff_items *items, char *key)
{
	struct diff_item *item;

	HASH_FIND_STR(items->all, key, item);
	if (item) {
		free(key);
	} else {
		item = xcalloc(1, sizeof(*item));
		item->key = key;
		item->cells = xcalloc(items->a->n + items->b->n, sizeof(*item->cells));
		HASH_ADD_KEYPTR(hh, items->all, item->key, strlen(item->key), item);
	}
	return item;
}

static struct diff_cell *cell_of(struct diff_items *items, char *key, const json_t *row, size_t run)
{
	struct diff_item *item = item_of(items, key);

	item->row = row;
	return &item->cells[run];
}

void diff_items_release(struct diff_items *items)
{
	struct diff_item *item, *next;

	HASH_EMPTY (items->all, item, next) {
		free(item->key);
		free(item->cells);
		free(item);
	}
}

const char *diff_text_of(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

uint64_t diff_number_of(const json_t *row, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(row, key));

	return value > 0 ? (uint64_t)value : 0;
}

void diff_collect(struct diff_items *items, const struct diff_side *a, const struct diff_side *b,
		  diff_collect_fn *fn)
{
	*items = (struct diff_items){.a = a, .b = b};
	for (size_t i = 0; i < a->n; i++)
		fn(items, a->reports[i], i);
	for (size_t i = 0; i < b->n; i++)
		fn(items, b->reports[i], a->n + i);
}

void diff_collect_calls(struct diff_items *items, const json_t *report, size_t run)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "calls"), i, row)
	{
		struct diff_cell *cell =
			cell_of(items, xstrdup(diff_text_of(row, "function") ?: "?"), row, run);

		cell->present = true;
		cell->numbers[0] = diff_number_of(row, "total_ns");
		cell->numbers[1] = diff_number_of(row, "count");
		cell->numbers[2] = diff_number_of(row, "median_ns");
	}
}

void diff_collect_waits(struct diff_items *items, const json_t *report, size_t run)
{
	static const char *const keys[] = {
#define BUCKET(name, key, text) #key "_ns",
		BUCKETS(BUCKET)
#undef BUCKET
	};
	const json_t *row = json_object_get(report, "waits");
	/* As the report's text has it: what calls take in the kernel module in any case is own
	 * work. */
	uint64_t kernel_work_ns = diff_number_of(row, "kernel_work_ns");
	size_t i;

	for (i = 0; i < BUCKET_COUNT; i++) {
		struct diff_cell *cell = cell_of(items, xstrdup(keys[i]), row, run);

		cell->present = true;
		cell->numbers[0] = diff_number_of(row, keys[i]);
		if (i == BUCKET_OWN)
			cell->numbers[0] += kernel_work_ns;
		else if (i == BUCKET_IOCTL && cell->numbers[0] >= kernel_work_ns)
			cell->numbers[0] -= kernel_work_ns;
	}
}

bool diff_is_minor(const char *severity)
{
	return !severity || !strcmp(severity, "minor");
}

/*
 * A finding is the same one if detector, CUDA function and place are: the function that calls,
 * which stays when the program is built again, and its module, wherever that was built; without
 * symbols the address in the module. Which of several places is told may change from run to run.
 */
void diff_collect_findings(struct diff_items *items, const json_t *report, size_t run)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "findings"), i, row)
	{
		bool elsewhere = !strcmp(diff_text_of(row, "elsewhere") ?: "no", "yes");
		const char *caller = elsewhere ? "*" : diff_text_of(row, "caller");
		uint64_t offset = caller ? 0 : diff_number_of(row, "offset");
		bool known = !!strcmp(diff_text_of(row, "cost_known") ?: "yes", "no");
		uint64_t cost_ns = known ? diff_number_of(row, "cost_ns") : 0;
		char *key = xasprintf("%s %s %s %s+%llx", diff_text_of(row, "id") ?: "?",
				      diff_text_of(row, "function") ?: "",
				      path_basename(diff_text_of(row, "module") ?: ""),
				      caller ?: "", (unsigned long long)offset);
		struct diff_item *item = item_of(items, key);
		struct diff_cell *cell = &item->cells[run];

		if (!item->row || cost_ns > item->most_ns) {
			item->most_ns = cost_ns;
			item->row = row;
		}
		cell->places++;
		cell->present = true;
		cell->unknown |= !known;
		cell->numbers[0] += cost_ns;
		cell->numbers[1] += diff_number_of(row, "count");
		cell->numbers[2] = 1;
		if (!cell->severity || diff_is_minor(cell->severity))
			cell->severity = diff_text_of(row, "severity");
	}
}

struct diff_range diff_side_range(const struct diff_item *item, size_t number, size_t first,
				  size_t n)
{
	uint64_t *values = xcalloc(n, sizeof(*values));
	struct diff_range range;

	for (size_t i = 0; i < n; i++)
		values[i] = item->cells[first + i].numbers[number];
	range = diff_range_of(values, n);
	free(values);
	return range;
}

/* ---- a number of an item, on both sides ------------------------------------------------------ */

struct diff_change diff_change_of(const struct diff_items *items, const struct diff_item *item,
				  size_t number)
{
	struct diff_change c = {.a = diff_side_range(item, number, 0, items->a->n),
				.b = diff_side_range(item, number, items->a->n, items->b->n)};

	c.noise = diff_judge(&c.a, items->a->n, &c.b, items->b->n);
	return c;
}

int64_t diff_difference(const struct diff_change *c)
{
	return (int64_t)(c->b.median - c->a.median);
}

const char *diff_noise_key(const struct diff_change *c)
{
	return c->noise == DIFF_NOISE ? "yes" : c->noise == DIFF_REAL ? "no" : "unknown";
}

/* From so many times on, percents say nothing, and from so many on times do not, either. */
#define TIMES_LEAST 10
#define TIMES_MOST 100

/* How often a number is what it was: "12 times", "from 2.300 us". */
static const char *times_text(struct arena *texts, const struct diff_change *c, double times)
{
	char before[32];

	if (times <= TIMES_MOST)
		return arena_printf(texts, "%.0f times", times);
	format_ns(before, sizeof(before), c->a.median);
	return arena_printf(texts, "from %s", before);
}

/* "+1.234 ms (+12 %)", "+1.234 ms (12 times)", "+1.234 ms (from 2.300 us)". */
const char *diff_signed_time(struct arena *texts, const struct diff_change *c)
{
	const char *noise = c->noise == DIFF_NOISE ? ", noise" : "";
	double times = c->a.median ? (double)c->b.median / (double)c->a.median : 0;
	int64_t ns = diff_difference(c);
	char text[32], share[32], sign = ns < 0 ? '-' : '+';

	if (!ns)
		return "same";
	format_ns(text, sizeof(text), diff_distance(c->a.median, c->b.median));
	if (!c->a.median)
		return arena_printf(texts, "+%s%s", text, noise);
	if (times >= TIMES_LEAST)
		return arena_printf(texts, "+%s (%s)%s", text, times_text(texts, c, times), noise);
	format_percent(share, sizeof(share), (double)diff_distance(c->a.median, c->b.median),
		       (double)c->a.median);
	if (share[0] < '0' || share[0] > '9') /* "over 99.9 %" */
		return arena_printf(texts, "%c%s (%s)%s", sign, text, share, noise);
	return arena_printf(texts, "%c%s (%c%s)%s", sign, text, sign, share, noise);
}
