/*
 * analyzer/export/chrome.c: the JSON of chrome://tracing, which speedscope reads, too ("Trace Event Format"): slices as complete
 * events, in microseconds. Called for each slice.
 */
#include <stdlib.h>
#include "bytes.h"
#include "export.h"
#include "timeline/events.h"

/* A text of JSON's. */
struct json_text {
	char *text; /* owned; NULL: not asked for yet */
	size_t n;
};

/* What is the same in all events: `"key":`. */
struct constant {
	char text[32];
	size_t n;
};

struct chrome {
	struct sink sink;
	struct events *events;
	struct json_text *names; /* by number */
	size_t n_names;
	struct json_text *counters; /* their names, by track number */
	size_t n_counters;
	struct constant categories[SLICE_CATEGORY_COUNT], keys[ARGUMENT_COUNT_ALL];
	bool any; /* an event is written */
	struct bytes bytes;
};

#define PUT(c, text) bytes_put(&(c)->bytes, text, sizeof(text) - 1)

/* ---- parts of an event --------------------------------------------------------------------------- */

/* Of a number in an array that grows. */
static const struct json_text *json_of(struct json_text **array, size_t *n, uint32_t number,
				       const char *text)
{
	while (unlikely(*n <= number)) {
		*array = grow(*array, *n, sizeof(**array));
		(*array)[(*n)++] = (struct json_text){0};
	}
	(*array)[number].text = bytes_json(text);
	(*array)[number].n = strlen((*array)[number].text);
	return &(*array)[number];
}

static const struct json_text *name_of(struct chrome *c, uint32_t number)
{
	if (likely(number < c->n_names) && likely(c->names[number].text != NULL))
		return &c->names[number];
	return json_of(&c->names, &c->n_names, number, events_name(c->events, number));
}

static const struct json_text *name_of_counter(struct chrome *c, const struct track *track)
{
	if (likely(track->number < c->n_counters) &&
	    likely(c->counters[track->number].text != NULL))
		return &c->counters[track->number];
	return json_of(&c->counters, &c->n_counters, track->number, track->name);
}

static void put_constant(struct chrome *c, const struct constant *constant)
{
	bytes_put(&c->bytes, constant->text, constant->n);
}

static void put_name(struct chrome *c, uint32_t number)
{
	const struct json_text *name = name_of(c, number);

	bytes_put(&c->bytes, name->text, name->n);
}

static void begin_event(struct chrome *c)
{
	if (likely(c->any))
		PUT(c, ",\n{\"ph\":\"");
	else
		PUT(c, "\n{\"ph\":\"");
	c->any = true;
}

static void put_track(struct chrome *c, const struct track *track)
{
	PUT(c, ",\"pid\":");
	bytes_number(&c->bytes, track->pid);
	PUT(c, ",\"tid\":");
	bytes_number(&c->bytes, track->tid);
}

static void put_when(struct chrome *c, const struct track *track, uint64_t ns)
{
	put_track(c, track);
	PUT(c, ",\"ts\":");
	bytes_us(&c->bytes, ns);
}

static void put_category(struct chrome *c, enum slice_category category)
{
	PUT(c, "\",\"cat\":");
	put_constant(c, &c->categories[category]);
}

static void put_argument(struct chrome *c, const struct slice_argument *argument)
{
	put_constant(c, &c->keys[argument->key]);
	switch (slice_argument_forms[argument->key]) {
	case FORM_NUMBER:
		bytes_number(&c->bytes, min_u64(argument->value, NUMBER_MOST));
		break;
	case FORM_HANDLE:
		PUT(c, "\"0x");
		bytes_hex(&c->bytes, argument->value);
		PUT(c, "\"");
		break;
	case FORM_NAME:
		put_name(c, (uint32_t)argument->value);
		break;
	}
}

static void put_arguments(struct chrome *c, const struct slice *slice)
{
	if (!slice->n)
		return;
	PUT(c, ",\"args\":{");
	for (size_t i = 0; i < slice->n; i++) {
		if (i)
			PUT(c, ",");
		put_argument(c, &slice->arguments[i]);
	}
	PUT(c, "}");
}

/* ---- events -------------------------------------------------------------------------------------- */

/* The two ends of an arrow have the same name and category. It begins and ends in the slices around its ends. */
static void put_flow(struct chrome *c, const struct slice *point)
{
	begin_event(c);
	if (point->flow_ends)
		PUT(c, "f\",\"bp\":\"e");
	else
		PUT(c, "s");
	put_category(c, SLICE_FLOW);
	PUT(c, ",\"name\":\"flow\",\"id\":");
	bytes_number(&c->bytes, point->flow);
	put_when(c, point->track, point->begin_ns);
	PUT(c, "}");
}

static void on_flow(void *data, const struct slice *point)
{
	put_flow(data, point);
}

/* Behind the phase: what it is, where, and from when on. */
static void put_what(struct chrome *c, const struct slice *slice)
{
	put_category(c, slice->category);
	PUT(c, ",\"name\":");
	put_name(c, slice->name);
	put_when(c, slice->track, slice->begin_ns);
}

static void on_slice(void *data, const struct slice *slice)
{
	struct chrome *c = data;

	begin_event(c);
	PUT(c, "X");
	put_what(c, slice);
	PUT(c, ",\"dur\":");
	bytes_us(&c->bytes, slice->end_ns - slice->begin_ns);
	put_arguments(c, slice);
	PUT(c, "}");
	if (slice->flow)
		put_flow(c, slice);
}

static void on_mark(void *data, const struct slice *slice)
{
	struct chrome *c = data;

	begin_event(c);
	PUT(c, "i\",\"s\":\"t");
	put_what(c, slice);
	put_arguments(c, slice);
	PUT(c, "}");
}

static void put_text(struct chrome *c, const char *text)
{
	char *json = bytes_json(text);

	bytes_text(&c->bytes, json);
	free(json);
}

static void on_counter(void *data, struct track *track, uint64_t ns, uint64_t value)
{
	struct chrome *c = data;
	const struct json_text *name = name_of_counter(c, track);

	begin_event(c);
	PUT(c, "C\",\"name\":");
	bytes_put(&c->bytes, name->text, name->n);
	put_when(c, track, ns);
	PUT(c, ",\"args\":{\"value\":");
	bytes_number(&c->bytes, min_u64(value, NUMBER_MOST));
	PUT(c, "}}");
}

static void put_metadata(struct chrome *c, const struct track *track, const char *what)
{
	begin_event(c);
	PUT(c, "M\",\"name\":\"");
	bytes_text(&c->bytes, what);
	PUT(c, "\"");
	put_track(c, track);
}

static void on_track(void *data, struct track *track)
{
	struct chrome *c = data;
	bool group = track->kind == TRACK_GROUP;

	if (track->kind == TRACK_COUNTER)
		return;
	put_metadata(c, track, group ? "process_name" : "thread_name");
	PUT(c, ",\"args\":{\"name\":");
	put_text(c, track->name);
	PUT(c, "}}");
	put_metadata(c, track, group ? "process_sort_index" : "thread_sort_index");
	PUT(c, ",\"args\":{\"sort_index\":");
	bytes_number(&c->bytes, track->order);
	PUT(c, "}}");
}

/* ---- */

static void set_constant(struct constant *constant, const char *format, const char *text)
{
	constant->n = (size_t)snprintf(constant->text, sizeof(constant->text), format, text);
}

static void set_constants(struct chrome *c)
{
	for (size_t i = 0; i < SLICE_CATEGORY_COUNT; i++)
		set_constant(&c->categories[i], "\"%s\"", slice_categories[i]);
	for (size_t i = 0; i < ARGUMENT_COUNT_ALL; i++)
		set_constant(&c->keys[i], "\"%s\":", slice_argument_keys[i]);
}

static void free_texts(struct json_text *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(texts[i].text);
	free(texts);
}

void *chrome_begin(const struct export_job *job)
{
	const struct timeline_source source = {job->known, job->shown, job->symbols, job->report};
	struct chrome *c = xcalloc(1, sizeof(*c));

	c->sink = (struct sink){.data = c,
				.track = on_track,
				.slice = on_slice,
				.mark = on_mark,
				.flow = on_flow,
				.counter = on_counter};
	c->bytes.out = job->out;
	set_constants(c);
	c->events = events_new(&source, &c->sink);
	PUT(c, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	return c;
}

const struct listener *chrome_listener(void *state)
{
	struct chrome *c = state;

	return events_listener(c->events);
}

int chrome_end(void *state, int err)
{
	struct chrome *c = state;

	if (!err) {
		events_finish(c->events);
		PUT(c, "\n]}\n");
		bytes_flush(&c->bytes);
	}
	free_texts(c->names, c->n_names);
	free_texts(c->counters, c->n_counters);
	events_free(c->events);
	free(c);
	return 0;
}
