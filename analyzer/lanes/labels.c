/*
 * analyzer/lanes/labels.c: the names in a timeline, each once. Called by lanes.c for each item, and by encode.c when all is
 * read.
 */
#include <stdlib.h>
#include "lanes.h"
#include "base/format.h"
#include "base/redact.h"
#include "model/python.h"
#include "text/text.h"
#include "text/where.h"
#include "trace/names.h"

#define TEXT_MOST 512 /* bytes of a name: C++ has names of a page */
#define PLACES_MOST 20000 /* that are looked up */

void labels_init(struct labels *labels, const struct model *model, struct symbolizer *symbols)
{
	*labels = (struct labels){.model = model, .symbols = symbols};
	label_of(labels, "");
}

void labels_release(struct labels *labels)
{
	struct label_about *about, *next;

	HASH_CLEAR(hh, labels->by_text);
	HASH_CLEAR(hh, labels->by_address);
	HASH_ITER (hh, labels->abouts, about, next) {
		HASH_DEL(labels->abouts, about);
		free(about);
	}
	for (uint32_t i = 0; i < labels->n; i++)
		free(labels->all[i]);
	for (uint32_t i = 0; i < labels->n_places; i++)
		free(labels->places[i]);
	free(labels->all);
	free(labels->places);
	free(labels->functions);
	free(labels->readable);
	*labels = (struct labels){0};
}

static uint32_t number_of(struct labels *labels, const char *text)
{
	size_t bytes = text ? strnlen(text, TEXT_MOST) : 0;
	struct label *label;

	if (!bytes && labels->n)
		return 0;
	HASH_FIND(hh, labels->by_text, text, (unsigned int)bytes, label);
	if (label)
		return label->number;
	if (labels->n >= LABELS_MOST)
		return 0;
	label = xcalloc(1, sizeof(*label) + bytes + 1);
	memcpy(label->text, text, bytes);
	label->number = labels->n;
	labels->all = grow(labels->all, labels->n, sizeof(*labels->all));
	labels->all[labels->n++] = label;
	HASH_ADD_KEYPTR(hh, labels->by_text, label->text, (unsigned int)bytes, label);
	return label->number;
}

/* What is redacted is cut behind that: else half of a path would be left. */
uint32_t label_of(struct labels *labels, const char *text)
{
	char *left = text && redact_is_on() ? redacted(text) : NULL;
	uint32_t number = number_of(labels, left ?: text);

	free(left);
	return number;
}

/* Zeros up to that number; an array that grows. */
static uint32_t *entry(uint32_t **array, size_t *n, size_t i)
{
	while (*n <= i) {
		*array = grow(*array, *n, sizeof(**array));
		(*array)[(*n)++] = 0;
	}
	return &(*array)[i];
}

uint32_t label_of_function(struct labels *labels, uint32_t fn)
{
	uint32_t *name;

	if (fn == NO_FUNCTION)
		return 0;
	name = entry(&labels->functions, &labels->n_functions, fn);
	if (!*name)
		*name = label_of(labels, text_function(labels->model->set, fn)) + 1;
	return *name - 1;
}

uint32_t label_of_kernel(struct labels *labels, const struct process *process, uint32_t kernel)
{
	const char *name = model_kernel(process, kernel);
	uint32_t linked = label_of(labels, name), *readable;

	if (!linked)
		return 0;
	readable = entry(&labels->readable, &labels->n_readable, linked);
	if (!*readable)
		*readable = label_of(labels, demangle(labels->symbols, name)) + 1;
	return *readable - 1;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A name, or the number of a place that has none yet. */
static uint64_t where_of_name(uint32_t name)
{
	return (uint64_t)name << 1;
}

static uint64_t where_of_place(uint32_t number)
{
	return (uint64_t)number << 1 | 1;
}

static uint32_t label_of_place(struct labels *labels, const struct process *process,
			       uint64_t address, uint64_t ns, const struct stack *stack)
{
	struct arena texts = {0};
	const char *words =
		text_program_place(&texts, labels->symbols, process, address, ns, stack);
	uint32_t name = label_of(labels, text_bare_place(words));

	arena_release(&texts);
	return name;
}

/* Not in the program's own code: where that is, each call's own stack tells. */
static bool is_between(const struct labels *labels, const struct process *process, uint64_t address,
		       uint64_t ns)
{
	struct place place;

	symbolize(labels->symbols, process, address, ns, &place);
	return place_is_between(&place);
}

uint64_t label_where(struct labels *labels, const struct process *process, uint64_t address,
		     uint64_t ns, const struct stack *stack)
{
	struct label_place_key key = {address, process->trace->index};
	struct label_place *place;
	struct arena texts = {0};
	uint32_t name;

	if (stack && stack->n_python) {
		struct python_line line = python_line(stack);

		name = label_of(labels, text_python(&texts, &line));
		arena_release(&texts);
		if (name)
			return where_of_name(name);
	}
	if (!address)
		return 0;
	if (stack && is_between(labels, process, address, ns))
		return where_of_name(label_of_place(labels, process, address, ns, stack));
	HASH_FIND(hh, labels->by_address, &key, sizeof(key), place);
	if (!place) {
		if (labels->n_places >= PLACES_MOST)
			return 0;
		HASH_NEW(labels->by_address, place, key, key);
		place->ns = ns;
		place->name = UINT32_MAX;
		place->number = labels->n_places;
		labels->places = grow(labels->places, labels->n_places, sizeof(*labels->places));
		labels->places[labels->n_places++] = place;
	}
	return where_of_place(place->number);
}

uint32_t label_of_where(struct labels *labels, uint64_t where)
{
	struct label_place *at;

	if (!(where & 1))
		return (uint32_t)(where >> 1);
	at = labels->places[where >> 1];
	if (at->name == UINT32_MAX)
		at->name = label_of_place(labels, &labels->model->processes[at->key.process],
					  at->key.address, at->ns, NULL);
	return at->name;
}

/* ---- arguments ------------------------------------------------------------------------------- */

struct words {
	char text[256];
	size_t n;
};

static void __attribute__((format(printf, 2, 3))) add(struct words *w, const char *format, ...)
{
	va_list ap;
	int n;

	if (w->n + 1 >= sizeof(w->text))
		return;
	if (w->n)
		w->n += (size_t)snprintf(w->text + w->n, sizeof(w->text) - w->n, ", ");
	if (w->n >= sizeof(w->text))
		return;
	va_start(ap, format);
	n = vsnprintf(w->text + w->n, sizeof(w->text) - w->n, format, ap);
	va_end(ap);
	w->n = min_u64(w->n + (size_t)(n > 0 ? n : 0), sizeof(w->text) - 1);
}

static void add_bytes(struct words *w, uint64_t bytes)
{
	char text[32];

	if (!bytes)
		return;
	format_bytes(text, sizeof(text), bytes);
	add(w, "%s", text);
}

static void add_stream(struct words *w, uint64_t stream)
{
	if (stream == STREAM_LEGACY)
		add(w, "legacy default stream");
	else if (stream == STREAM_PER_THREAD)
		add(w, "the thread's default stream");
	else if (stream)
		add(w, "stream 0x%llx", (unsigned long long)stream);
}

static void add_side(struct words *w, const char *preposition, unsigned int kind, uint8_t device)
{
	if (kind == SPY_MEM_UNKNOWN)
		return;
	if (device != SPY_DEVICE_NONE)
		add(w, "%s %s memory of GPU %u", preposition, name_memory_kind(kind), device);
	else
		add(w, "%s %s memory", preposition, name_memory_kind(kind));
}

static void describe_copy(struct words *w, const struct label_about_key *key)
{
	add_bytes(w, key->bytes);
	add_side(w, "from", key->src_kind, key->src_device);
	add_side(w, "to", key->dst_kind, key->dst_device);
	if (key->captured)
		add(w, "captured into a graph");
}

static void describe_memory(struct words *w, const struct label_about_key *key)
{
	add(w, "%s", name_memory_op(key->op));
	add_bytes(w, key->bytes);
	if (key->kind)
		add(w, "%s memory", name_memory_kind(key->kind));
}

static uint32_t describe(struct labels *labels, const struct label_about_key *key)
{
	struct words w = {.n = 0};

	if (key->result)
		add(&w, "failed: %s", text_result(labels->model->set, key->fn, key->result));
	if (key->event == SPY_EV_COPY)
		describe_copy(&w, key);
	else if (key->event == SPY_EV_MEMORY)
		describe_memory(&w, key);
	else if (key->kernel)
		add(&w, "kernel %.200s", labels->all[key->kernel]->text);
	add_stream(&w, key->stream);
	return label_of(labels, w.text);
}

static struct label_about_key key_of(struct labels *labels, const struct record *record)
{
	struct label_about_key key = {.event = record->event,
				      .stream = record_stream(record),
				      .bytes = record_bytes(record)};
	const struct spy_rec_memory *memory = record_memory(record);
	const struct spy_rec_copy *copy = record_copy(record);

	if (record_failed(record)) {
		key.fn = record->fn;
		key.result = record->result;
	}
	if (copy) {
		key.src_kind = copy->src_kind;
		key.dst_kind = copy->dst_kind;
		key.src_device = (uint8_t)copy->src_device;
		key.dst_device = (uint8_t)copy->dst_device;
		key.captured = copy->captured;
	} else if (memory) {
		key.op = memory->op;
		key.kind = memory->kind;
	} else if (record->event == SPY_EV_LAUNCH) {
		key.kernel =
			label_of_kernel(labels, record->thread->process, record_kernel(record));
	}
	return key;
}

/* Most calls are about what another one was about: words are made once. */
uint32_t label_of_arguments(struct labels *labels, const struct record *record)
{
	struct label_about_key key = key_of(labels, record);
	struct label_about *about;
	uint32_t name;

	HASH_FIND(hh, labels->abouts, &key, sizeof(key), about);
	if (about)
		return about->name;
	name = describe(labels, &key);
	if (HASH_COUNT(labels->abouts) < LABELS_MOST) {
		HASH_NEW(labels->abouts, about, key, key);
		about->name = name;
	}
	return name;
}
