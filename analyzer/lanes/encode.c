/*
 * analyzer/lanes/encode.c: lanes as docs/HTML_REPORT.md describes them. Called when all is read.
 */
#include <jansson.h>
#include <stdlib.h>
#include "lanes.h"
#include "base/lines.h"
#include "base/redact.h"
#include "findings/rank_words.h"
#include "idle/causes.h"
#include "text/text.h"
#include "trace/names.h"

struct writer {
	struct lanes *l;
	struct arena *texts;
	uint8_t *bytes;
	size_t n, room;
	uint64_t zero_ns; /* the recording's begin */
	/* Names that items have, and those alone: their labels, and of each label its number here + 1; 0: not yet. */
	uint32_t *names, *numbers;
	size_t n_names, n_numbers;
};

/* ---- bytes ----------------------------------------------------------------------------------- */

static void put(struct writer *w, uint64_t value)
{
	if (w->n + 10 > w->room) {
		w->room = w->room ? 2 * w->room : 65536;
		w->bytes = xrealloc(w->bytes, w->room, 1);
	}
	for (; value >= 0x80; value >>= 7)
		w->bytes[w->n++] = (uint8_t)(value | 0x80);
	w->bytes[w->n++] = (uint8_t)value;
}

/* The number in the file of a label; 0 is the empty one. */
static uint64_t name_number(struct writer *w, uint64_t label)
{
	if (!label)
		return 0;
	while (w->n_numbers <= label) {
		w->numbers = grow(w->numbers, w->n_numbers, sizeof(*w->numbers));
		w->numbers[w->n_numbers++] = 0;
	}
	if (!w->numbers[label]) {
		w->names = grow(w->names, w->n_names, sizeof(*w->names));
		w->names[w->n_names++] = (uint32_t)label;
		w->numbers[label] = (uint32_t)w->n_names;
	}
	return w->numbers[label];
}

/* Puts an item's begin as the difference to the one before, and its duration. */
static void put_times(struct writer *w, uint64_t *before_ns, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t at_ns = max_u64(begin_ns - min_u64(w->zero_ns, begin_ns), *before_ns);

	put(w, at_ns - *before_ns);
	put(w, end_ns - min_u64(begin_ns, end_ns));
	*before_ns = at_ns;
}

static uint64_t lane_number(struct lane *const *lanes, size_t n, uint64_t index)
{
	return index && index <= n && lanes[index - 1] ? lanes[index - 1]->number + 1 : 0;
}

static uint64_t label_of_lock(struct lanes *l, uint64_t index)
{
	struct arena texts = {0};
	uint32_t name;

	if (!index || index > l->a->accounts.locks.count)
		return 0;
	name = label_of(&l->labels, text_lane_of_lock(&texts, l->a->accounts.locks.all[index - 1]));
	arena_release(&texts);
	return name;
}

static uint64_t shown_value(struct writer *w, char type, uint64_t value)
{
	struct lanes *l = w->l;

	switch ((enum item_value)type) {
	case VALUE_NAME:
		return name_number(w, value);
	case VALUE_WHERE:
		return name_number(w, label_of_where(&l->labels, value));
	case VALUE_LOCK:
		return name_number(w, label_of_lock(l, value));
	case VALUE_FUNCTION:
		return value ? name_number(w, label_of_function(&l->labels, (uint32_t)value - 1))
			     : 0;
	case VALUE_THREAD:
		return lane_number(l->threads, l->n_threads, value);
	case VALUE_RANK:
		return lane_number(l->ranks, l->n_ranks, value);
	default:
		return value;
	}
}

static void put_calls(struct writer *w, const struct lane *lane)
{
	uint64_t before_ns = 0;

	for (size_t i = 0; i < lane->n_calls; i++) {
		const struct call_item *call = &lane->calls[i];

		put_times(w, &before_ns, call->begin_ns, call->end_ns);
		put(w, name_number(w, call->name));
		put(w, call->count);
		put(w, name_number(w, label_of_where(&w->l->labels, call->where)));
		put(w, name_number(w, call->about));
		put(w, call->expected_ns == UNKNOWN_NS ? 0 : call->expected_ns + 1);
		put(w, call->n_parts);
		for (size_t k = 0; k < call->n_parts; k++) {
			put(w, lane->parts[call->parts_at + k].bucket);
			put(w, lane->parts[call->parts_at + k].ns);
		}
	}
}

static const struct {
	const char *key, *text, *values;
} kinds[ITEM_KIND_COUNT] = {
#define ITEM_KIND(name, key, most, text, values) [ITEMS_##name] = {key, text, values},
	ITEM_KINDS(ITEM_KIND)
#undef ITEM_KIND
};

/* Where exact times are known, they are drawn alone; the third value says which it is. */
static bool is_drawn(const struct lanes *l, const struct lane *lane, enum item_kind kind,
		     const struct item *item)
{
	return kind != ITEMS_IDLE ||
	       idle_gpu_is_exact(&l->a->idle.gpus[lane->index]) == item->values[2];
}

static uint64_t put_items(struct writer *w, const struct lane *lane, enum item_kind kind)
{
	uint64_t before_ns = 0, count = 0;

	for (size_t i = 0; i < lane->n_items[kind]; i++) {
		const struct item *item = &lane->items[kind][i];

		if (!is_drawn(w->l, lane, kind, item))
			continue;
		put_times(w, &before_ns, item->begin_ns, item->end_ns);
		for (size_t k = 0; kinds[kind].values[k]; k++)
			put(w, shown_value(w, kinds[kind].values[k], item->values[k]));
		count++;
	}
	return count;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Texts of a traced process may be anything: what is not UTF-8 becomes '?'. */
static json_t *text_of(const char *text)
{
	char *left = redacted(text), *valid = left ? valid_utf8(left) : NULL;
	json_t *value = valid ? json_string(valid) : json_null();

	free(valid);
	free(left);
	return value;
}

static json_t *number_of(uint64_t value)
{
	return json_integer((json_int_t)min_u64(value, NUMBER_MOST));
}

static json_t *since(const struct writer *w, uint64_t ns)
{
	return number_of(ns - min_u64(w->zero_ns, ns));
}

static json_t *items_of(struct writer *w, const struct lane *lane)
{
	json_t *items = json_object();
	size_t at = w->n, kind;

	if (lane->n_calls) {
		put_calls(w, lane);
		json_object_set_new(items, "calls",
				    json_pack("[III]", (json_int_t)at, (json_int_t)(w->n - at),
					      (json_int_t)lane->n_calls));
	}
	for (kind = 0; kind < ITEM_KIND_COUNT; kind++) {
		uint64_t count;

		at = w->n;
		count = put_items(w, lane, (enum item_kind)kind);
		if (count)
			json_object_set_new(items, kinds[kind].key,
					    json_pack("[III]", (json_int_t)at,
						      (json_int_t)(w->n - at), (json_int_t)count));
	}
	return items;
}

/* Of those GPUs in the report's order: sections/gpus.c. */
static uint64_t gpu_in_report(const struct writer *w, uint32_t index)
{
	const struct idle *idle = &w->l->a->idle;
	const struct idle_gpu *gpu = &idle->gpus[index];
	const char *process = text_process(w->texts, gpu->processes[0]->trace);
	uint64_t before = 0;

	for (size_t i = 0; i < idle->n_gpus; i++) {
		const struct idle_gpu *other = &idle->gpus[i];

		if (other->device != gpu->device)
			before += other->device < gpu->device;
		else
			before += strcmp(text_process(w->texts, other->processes[0]->trace),
					 process) < 0;
	}
	return before;
}

static void add_thread(const struct writer *w, json_t *object, const struct lane *lane)
{
	const struct thread *thread = lane->thread;
	const struct process *process = thread->process;
	/* One that has no records is there as long as its process, as far as is known. */
	bool known = thread->first_ns <= process->last_ns;
	uint64_t first_ns = known ? thread->first_ns : process->first_ns;
	uint64_t end_ns = min_u64(thread->exited_ns, process->last_ns);
	const char *name = thread_name(thread);

	json_object_set_new(object, "name", text_of(text_lane_of_thread(w->texts, thread)));
	json_object_set_new(object, "short",
			    text_of(*name ? name : arena_printf(w->texts, "%u", thread->tid)));
	json_object_set_new(object, "tid", number_of(thread->tid));
	json_object_set_new(object, "first_ns", since(w, first_ns));
	json_object_set_new(object, "last_ns", since(w, max_u64(first_ns, end_ns)));
}

static void add_other(const struct writer *w, json_t *object, const struct lane *lane)
{
	const struct rank *rank;

	switch (lane->kind) {
	case LANE_RANK:
		rank = w->l->a->ranks.all[lane->index];
		json_object_set_new(object, "name", text_of(text_rank_where(w->texts, rank)));
		json_object_set_new(object, "short", text_of(text_rank_name(w->texts, rank)));
		break;
	case LANE_GPU:
		json_object_set_new(
			object, "name",
			text_of(text_lane_of_gpu(w->texts, &w->l->a->idle.gpus[lane->index])));
		json_object_set_new(object, "short",
				    text_of(arena_printf(w->texts, "GPU %u",
							 w->l->a->idle.gpus[lane->index].device)));
		break;
	default:
		json_object_set_new(
			object, "name",
			text_of(arena_printf(w->texts, "stream %u of GPU %u", lane->stream,
					     w->l->a->idle.gpus[lane->index].device)));
		json_object_set_new(object, "short",
				    text_of(arena_printf(w->texts, "stream %u", lane->stream)));
		break;
	}
	json_object_set_new(object, "first_ns", since(w, lane->process->first_ns));
	json_object_set_new(object, "last_ns", since(w, lane->process->last_ns));
	if (lane->kind != LANE_RANK)
		json_object_set_new(object, "gpu", number_of(gpu_in_report(w, lane->index)));
}

static json_t *lane_of(struct writer *w, const struct lane *lane)
{
	static const char *const names[] = {[LANE_RANK] = "rank",
					    [LANE_GPU] = "gpu",
					    [LANE_STREAM] = "stream",
					    [LANE_THREAD] = "thread"};
	const struct trace *trace = lane->process->trace;
	const struct ranks *ranks = &w->l->a->ranks;
	const struct rank *rank = ranks->by_process ? ranks->by_process[trace->index] : NULL;
	json_t *object = json_object();

	json_object_set_new(object, "kind", json_string(names[lane->kind]));
	json_object_set_new(object, "process", text_of(text_process(w->texts, trace)));
	json_object_set_new(object, "pid", number_of(trace->pid));
	json_object_set_new(object, "rank", rank ? number_of(rank->number) : json_null());
	json_object_set_new(object, "host", text_of(text_known_host(w->texts, trace->host)));
	if (lane->kind == LANE_THREAD)
		add_thread(w, object, lane);
	else
		add_other(w, object, lane);
	json_object_set_new(object, "items", items_of(w, lane));
	return object;
}

static json_t *names_of(const struct writer *w)
{
	json_t *names = json_array();

	json_array_append_new(names, json_string(""));
	for (size_t i = 0; i < w->n_names; i++)
		json_array_append_new(names, text_of(w->l->labels.all[w->names[i]]->text));
	return names;
}

static json_t *key_and_name(const char *key, const char *name)
{
	return json_pack("{ssss}", "key", key, "name", name);
}

static json_t *bucket_list(void)
{
	static const char *const keys[] = {
#define BUCKET(name, key, text) #key,
		BUCKETS(BUCKET)
#undef BUCKET
	};
	json_t *array = json_array(), *object;
	size_t i;

	for (i = 0; i < BUCKET_COUNT; i++) {
		object = key_and_name(keys[i], bucket_names[i]);
		json_object_set_new(object, "lost", json_boolean(bucket_is_lost((enum bucket)i)));
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *cause_list(void)
{
	static const char *const keys[] = {
#define CAUSE(name, key, text, meaning) key,
		IDLE_CAUSES(CAUSE)
#undef CAUSE
	};
	static const char *const names[] = {
#define CAUSE(name, key, text, meaning) text,
		IDLE_CAUSES(CAUSE)
#undef CAUSE
	};
	json_t *array = json_array();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		json_array_append_new(array, key_and_name(keys[i], names[i]));
	return array;
}

static json_t *wait_kind_names(void)
{
	json_t *array = json_array();

	/* The last one is any that this analyzer does not know. */
	for (unsigned int i = 0; i <= SPY_WAIT_KINDS; i++)
		json_array_append_new(array, key_and_name(name_wait(i), name_wait(i)));
	return array;
}

/* What the timeline does not show, in sentences. */
static json_t *left_out(const struct writer *w)
{
	const struct store *store = &w->l->store;
	json_t *array = json_array();

	if (store->merged_ns)
		json_array_append_new(
			array,
			text_of(arena_printf(
				w->texts,
				"Of %s, %llu are drawn one by one or in groups: calls next to each "
				"other within %s are one.",
				text_count(w->texts, store->calls_seen, "call"),
				(unsigned long long)store->n_calls,
				text_time(w->texts, store->merged_ns))));
	if (store->least_ns[ITEMS_OPS])
		json_array_append_new(
			array, text_of(arena_printf(
				       w->texts,
				       "Operations of a GPU next to each other within %s are one.",
				       text_time(w->texts, store->least_ns[ITEMS_OPS]))));
	if (store->least_ns[ITEMS_LOOKS])
		json_array_append_new(
			array,
			text_of(arena_printf(
				w->texts, "What NVML says of GPUs is drawn as means of %s at most.",
				text_time(w->texts, store->least_ns[ITEMS_LOOKS]))));
	for (size_t kind = 0; kind < ITEM_KIND_COUNT; kind++)
		if (store->dropped[kind])
			json_array_append_new(
				array,
				text_of(arena_printf(
					w->texts,
					"%llu %s are not drawn: they are shorter than %s.",
					(unsigned long long)store->dropped[kind], kinds[kind].text,
					text_time(w->texts, store->least_ns[kind]))));
	if (w->l->labels.n >= LABELS_MOST)
		json_array_append_new(array,
				      text_of("There are too many names: some items have none."));
	return array;
}

static json_t *windows(const struct writer *w)
{
	const struct store *store = &w->l->store;
	json_t *array = json_array();

	for (size_t i = 0; i < store->n_windows; i++)
		json_array_append_new(
			array, json_pack("{soso}", "begin_ns", since(w, store->windows[i].begin_ns),
					 "end_ns", since(w, store->windows[i].end_ns)));
	return array;
}

static json_t *moments_of(const struct writer *w, const struct moment *moments, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, json_pack("{sososososo}", "finding",
						       number_of(moments[i].finding), "lane",
						       number_of(moments[i].lane->number),
						       "begin_ns", since(w, moments[i].begin_ns),
						       "end_ns", since(w, moments[i].end_ns),
						       "text", text_of(moments[i].text)));
	return array;
}

static uint64_t single_calls(const struct store *store)
{
	uint64_t n = 0;

	for (size_t i = 0; i < store->n; i++)
		for (size_t k = 0; k < store->all[i]->n_calls; k++)
			n += store->all[i]->calls[k].count == 1;
	return n;
}

struct encoded lanes_encode(struct lanes *l, const struct moment *moments, size_t n,
			    struct arena *texts)
{
	const struct model *model = &l->a->model;
	struct writer w = {.l = l, .texts = texts, .zero_ns = model->first_ns};
	json_t *root = json_object(), *lanes = json_array();
	struct encoded encoded;

	for (size_t i = 0; i < l->store.n; i++)
		json_array_append_new(lanes, lane_of(&w, l->store.all[i]));
	json_object_set_new(root, "schema", json_string("cudaspy-timeline-1"));
	json_object_set_new(root, "begin_ns", json_integer(0));
	json_object_set_new(root, "end_ns", since(&w, model->last_ns));
	json_object_set_new(root, "names", names_of(&w));
	json_object_set_new(root, "buckets", bucket_list());
	json_object_set_new(root, "causes", cause_list());
	json_object_set_new(root, "wait_kinds", wait_kind_names());
	json_object_set_new(root, "lanes", lanes);
	json_object_set_new(root, "whole", windows(&w));
	json_object_set_new(root, "merged_ns", number_of(l->store.merged_ns));
	json_object_set_new(root, "calls", number_of(l->store.calls_seen));
	json_object_set_new(root, "shown", number_of(single_calls(&l->store)));
	json_object_set_new(root, "left_out", left_out(&w));
	json_object_set_new(root, "moments", moments_of(&w, moments, n));
	encoded = (struct encoded){w.bytes, w.n, json_dumps(root, JSON_COMPACT)};
	json_decref(root);
	free(w.names);
	free(w.numbers);
	return encoded;
}
