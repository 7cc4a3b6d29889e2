/*
 * analyzer/export/folded.c: lost time as folded stacks, for flame graphs: a line for each, `frame;frame;frame NANOSECONDS`, the
 * outermost frame first. Called for each call that has returned.
 *
 * Frames are nodes of a tree, so that memory grows with the number of different stacks and not with that of calls.
 */
#include <stdlib.h>
#include "bytes.h"
#include "export.h"
#include "base/lines.h"
#include "lanes/lanes.h"
#include "sections/sections.h"
#include "text/text.h"

#define NODES_MOST (1u << 20) /* what comes then is added to the node that it would be below */
#define STACKS_MOST (1u << 16) /* whose nodes are remembered */

struct node {
	uint32_t above; /* index; of the root itself */
	uint32_t name; /* number of its label */
	uint64_t ns; /* lost there, and in no node below */
};

/* Where a stack's frames end in the tree. */
struct known_stack {
	struct stack_key {
		uint64_t hash;
		uint32_t root, padding;
	} key;
	uint32_t node;
	UT_hash_handle hh;
};

enum order { BY_THREAD, BY_CAUSE };

struct folded {
	const struct export_job *job;
	struct listener listener;
	struct labels labels;
	enum order order;
	struct node *nodes;
	uint32_t n, *places, n_places; /* an open table of indexes, + 1 */
	struct known_stack *stacks;
	uint32_t *threads; /* by index: the name of each, + 1 */
	size_t n_threads;
	uint32_t *processes; /* by trace: likewise */
	uint32_t causes[BUCKET_COUNT];
	bool full;
	struct bytes bytes;
};

/* ---- the tree ------------------------------------------------------------------------------------ */

static uint32_t *place_of(const struct folded *f, uint32_t above, uint32_t name)
{
	uint64_t hash = hash_mix((uint64_t)above << 32 | name);
	uint32_t at = (uint32_t)(hash >> 32) & (f->n_places - 1);

	while (f->places[at] && (f->nodes[f->places[at] - 1].above != above ||
				 f->nodes[f->places[at] - 1].name != name))
		at = (at + 1) & (f->n_places - 1);
	return &f->places[at];
}

static void grow_table(struct folded *f)
{
	free(f->places);
	f->n_places = f->n_places ? 2 * f->n_places : 1024;
	f->places = xcalloc(f->n_places, sizeof(*f->places));
	for (uint32_t i = 1; i < f->n; i++)
		*place_of(f, f->nodes[i].above, f->nodes[i].name) = i + 1;
}

static uint32_t below(struct folded *f, uint32_t above, uint32_t name)
{
	uint32_t *place;

	if (2 * f->n >= f->n_places)
		grow_table(f);
	place = place_of(f, above, name);
	if (*place)
		return *place - 1;
	if (f->n == NODES_MOST) {
		f->full = true;
		return above;
	}
	f->nodes = grow(f->nodes, f->n, sizeof(*f->nodes));
	f->nodes[f->n++] = (struct node){above, name, 0};
	*place = f->n;
	return f->n - 1;
}

/* ---- frames -------------------------------------------------------------------------------------- */

/* A frame's name stands between semicolons on a line, which people may look at. */
static uint32_t frame_label(struct folded *f, const char *text)
{
	char *clean = xstrdup(text), *at;
	uint32_t name;
	size_t n;

	for (at = clean; *at; at += n) {
		n = harmless_character(at);
		if (!n || *at == ';')
			*at = n ? ':' : '?';
		n = n ?: 1;
	}
	name = label_of(&f->labels, clean);
	free(clean);
	return name;
}

static uint32_t thread_node(struct folded *f, uint32_t above, const struct thread *thread)
{
	struct arena texts = {0};
	uint32_t *process = &f->processes[thread->process->trace->index], *name;

	while (f->n_threads <= thread->index) {
		f->threads = grow(f->threads, f->n_threads, sizeof(*f->threads));
		f->threads[f->n_threads++] = 0;
	}
	name = &f->threads[thread->index];
	if (!*process)
		*process = frame_label(f, text_process(&texts, thread->process->trace)) + 1;
	if (!*name)
		*name = frame_label(f, text_lane_of_thread(&texts, thread)) + 1;
	arena_release(&texts);
	return below(f, below(f, above, *process - 1), *name - 1);
}

static uint64_t hash_of(const struct stack *stack)
{
	uint64_t hash = hash_mix(stack->n ^ (uint64_t)stack->n_python << 8);

	for (uint8_t i = 0; i < stack->n; i++)
		hash = hash_mix(hash ^ hash >> 29 ^ stack->frames[i]);
	for (uint8_t i = 0; i < stack->n_python; i++)
		hash = hash_mix(hash ^ hash >> 29 ^
				((uint64_t)stack->python[i].code << 32 | stack->python[i].line));
	return hash;
}

/* What the report shows of the stack, the outermost first. */
static uint32_t add_frames(struct folded *f, uint32_t node, const struct stack *stack)
{
	struct arena texts = {0};
	const struct table *table = report_stack(&texts, f->job->symbols, stack, 0);

	for (size_t i = table->n_rows; i-- > 0;) {
		const char *shown = table_text(table, i, &table->kind->columns[0]);

		if (shown)
			node = below(f, node, frame_label(f, shown));
	}
	arena_release(&texts);
	return node;
}

static uint32_t stack_node(struct folded *f, uint32_t root, const struct stack *stack)
{
	struct stack_key key = {hash_of(stack), root, 0};
	struct known_stack *known;
	uint32_t node;

	HASH_FIND(hh, f->stacks, &key, sizeof(key), known);
	if (known)
		return known->node;
	node = add_frames(f, root, stack);
	if (HASH_COUNT(f->stacks) < STACKS_MOST) {
		HASH_NEW(f->stacks, known, key, key);
		known->node = node;
	}
	return node;
}

/* Of a call without a stack, where it was made is known. */
static uint32_t site_node(struct folded *f, uint32_t node, const struct record *record,
			  const struct completed_call *call)
{
	uint64_t where = label_where(&f->labels, record->thread->process, call->return_address,
				     call->end_ns, NULL);
	uint32_t name = label_of_where(&f->labels, where);

	return name ? below(f, node, frame_label(f, f->labels.all[name]->text)) : node;
}

static uint32_t call_node(struct folded *f, uint32_t node, const struct record *record,
			  const struct completed_call *call)
{
	uint32_t name;

	node = thread_node(f, node, record->thread);
	node = call->stack && (call->stack->n || call->stack->n_python)
		       ? stack_node(f, node, call->stack)
		       : site_node(f, node, record, call);
	/* Also what functions are called, the trace says. */
	name = label_of_function(&f->labels, call->fn);
	return below(f, node, frame_label(f, f->labels.all[name]->text));
}

/* ---- calls --------------------------------------------------------------------------------------- */

static void add_lost(struct folded *f, const struct record *record,
		     const struct completed_call *call, enum bucket bucket, uint64_t ns)
{
	uint32_t node = 0;

	if (!f->causes[bucket])
		f->causes[bucket] = frame_label(f, bucket_names[bucket]) + 1;
	if (f->order == BY_CAUSE)
		node = below(f, node, f->causes[bucket] - 1);
	node = call_node(f, node, record, call);
	if (f->order == BY_THREAD)
		node = below(f, node, f->causes[bucket] - 1);
	f->nodes[node].ns = add_capped(f->nodes[node].ns, ns);
}

static void on_call(void *data, const struct record *record, const struct completed_call *call)
{
	struct folded *f = data;

	if (!call->divided)
		return;
	for (size_t i = 0; i < BUCKET_COUNT; i++) {
		uint64_t ns = call->bucket_ns[i];

		if (i == BUCKET_IOCTL)
			ns -= min_u64(ns, call->kernel_ns);
		if (ns && bucket_is_lost((enum bucket)i))
			add_lost(f, record, call, (enum bucket)i, ns);
	}
}

/* ---- lines --------------------------------------------------------------------------------------- */

static void put_frames(struct folded *f, uint32_t node)
{
	uint32_t path[512];
	size_t n = 0;
	char *clean;

	for (; node && n < ARRAY_SIZE(path); node = f->nodes[node].above)
		path[n++] = f->nodes[node].name;
	while (n--) {
		clean = bytes_utf8(f->labels.all[path[n]]->text);
		bytes_text(&f->bytes, *clean ? clean : "?");
		bytes_text(&f->bytes, n ? ";" : " ");
		free(clean);
	}
}

static void put_lines(struct folded *f)
{
	for (uint32_t i = 1; i < f->n; i++) {
		if (!f->nodes[i].ns)
			continue;
		put_frames(f, i);
		bytes_number(&f->bytes, f->nodes[i].ns);
		bytes_text(&f->bytes, "\n");
	}
	bytes_flush(&f->bytes);
	if (f->full)
		warn("there are too many different stacks: some lack their inner frames");
}

/* ---- */

/* False after a message. */
static bool choose_order(enum order *order, const char *by)
{
	*order = by && !strcmp(by, "cause") ? BY_CAUSE : BY_THREAD;
	if (!by || *order == BY_CAUSE || !strcmp(by, "thread"))
		return true;
	warn("export: --by=%s: thread or cause", by);
	return false;
}

void *folded_begin(const struct export_job *job)
{
	struct folded *f;
	enum order order;

	if (!choose_order(&order, job->options->by))
		return NULL;
	f = xcalloc(1, sizeof(*f));
	f->job = job;
	f->order = order;
	f->bytes.out = job->out;
	f->listener = (struct listener){.data = f, .on_call = on_call};
	f->processes = xcalloc(job->known->set->n_traces + 1, sizeof(*f->processes));
	labels_init(&f->labels, &job->known->model, job->symbols);
	f->nodes = grow(f->nodes, f->n, sizeof(*f->nodes));
	f->nodes[f->n++] = (struct node){0};
	return f;
}

const struct listener *folded_listener(void *state)
{
	struct folded *f = state;

	return &f->listener;
}

int folded_end(void *state, int err)
{
	struct folded *f = state;
	struct known_stack *known, *next;

	if (!err)
		put_lines(f);
	HASH_EMPTY (f->stacks, known, next)
		free(known);
	labels_release(&f->labels);
	free(f->nodes);
	free(f->places);
	free(f->threads);
	free(f->processes);
	free(f);
	return 0;
}
