/*
 * analyzer/export/perfetto.c: a trace for Perfetto: packets of Protocol Buffers, each with a slice's begin or end, a point of an
 * arrow, a counter's value, or a track's description. Called for each of these.
 *
 * Names are written once and then referred to by their number. A file takes so many bytes at most; then the next one begins
 * (FILE.2, FILE.3 …), in which all that is referred to is written again: each can be looked at by itself. A slice is in the
 * file of the time at which it ended.
 */
#include <stdlib.h>
#include <unistd.h>
#include "bytes.h"
#include "export.h"
#include "timeline/events.h"
#include "perfetto.h"
#include "proto.h"

#define SEQUENCE 1
/* Room that is left in a file for what belongs together: calls in a call. */
#define WINDOW_MARGIN (1u << 20)

/* By number: in which file something was written last. */
struct written_in {
	uint32_t *files;
	size_t n;
};

struct perfetto {
	const struct export_job *job;
	struct sink sink;
	struct events *events;
	struct export_target *more; /* the second file and those behind it */
	uint32_t file; /* from 1 */
	uint64_t file_begin; /* bytes before it */
	struct written_in names, strings, tracks;
	uint32_t categories[SLICE_CATEGORY_COUNT], keys[ARGUMENT_COUNT_ALL];
	/* In the making. */
	struct proto packet, event, interned, inner, text;
	struct bytes bytes;
};

/* ---- packets ----------------------------------------------------------------------------------- */

static void put_packet(struct perfetto *p)
{
	uint8_t head[PROTO_NUMBER_MOST], *at;

	at = proto_encode(head, proto_key(TRACE_PACKET, PROTO_BYTES));
	at = proto_encode(at, p->packet.n);
	bytes_put(&p->bytes, head, (size_t)(at - head));
	bytes_put(&p->bytes, p->packet.bytes, p->packet.n);
	p->packet.n = 0;
}

static void begin_packet(struct perfetto *p, uint64_t ns)
{
	proto_number(&p->packet, PACKET_TIMESTAMP, ns);
	proto_number(&p->packet, PACKET_SEQUENCE, SEQUENCE);
}

/* With what it refers to. */
static void put_event(struct perfetto *p, uint64_t ns)
{
	begin_packet(p, ns);
	proto_number(&p->packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
	if (unlikely(p->interned.n))
		proto_message(&p->packet, PACKET_INTERNED_DATA, &p->interned);
	proto_message(&p->packet, PACKET_TRACK_EVENT, &p->event);
	put_packet(p);
	p->interned.n = p->event.n = 0;
}

/* ---- files ------------------------------------------------------------------------------------- */

static void put_clock(struct perfetto *p, uint64_t id, uint64_t ns)
{
	p->text.n = 0;
	proto_number(&p->text, CLOCK_ID, id);
	proto_number(&p->text, CLOCK_TIMESTAMP, ns);
	proto_message(&p->inner, SNAPSHOT_CLOCKS, &p->text);
}

/* Times are since the recording's begin. */
static void begin_file(struct perfetto *p)
{
	p->file++;
	p->file_begin = p->bytes.written;
	p->inner.n = 0;
	put_clock(p, BUILTIN_CLOCK_BOOTTIME, 0);
	put_clock(p, BUILTIN_CLOCK_REALTIME, p->job->known->model.first_ns);
	proto_number(&p->inner, SNAPSHOT_PRIMARY, BUILTIN_CLOCK_BOOTTIME);
	begin_packet(p, 0);
	proto_number(&p->packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED | SEQUENCE_NEEDS_STATE);
	proto_message(&p->packet, PACKET_CLOCK_SNAPSHOT, &p->inner);
	put_packet(p);
}

static char *path_of_file(const struct perfetto *p, uint32_t file)
{
	return xasprintf("%s.%u", p->job->out->path, file);
}

/* What cannot be opened is told as the error of the file before it. */
static void next_file(struct perfetto *p)
{
	char *path = path_of_file(p, p->file + 1);
	struct export_target next;
	int err;

	bytes_flush(&p->bytes);
	err = target_open(&next, path);
	free(path);
	if (err) {
		target_discard(&next);
		p->job->out->err = err;
		return;
	}
	p->more = grow(p->more, p->file - 1, sizeof(*p->more));
	p->more[p->file - 1] = next;
	p->bytes.out = &p->more[p->file - 1];
	begin_file(p);
}

static void on_next(void *data)
{
	struct perfetto *p = data;
	uint64_t most = p->job->options->window_bytes;

	most -= min_u64(WINDOW_MARGIN, most / 8);
	if (unlikely(p->bytes.written - p->file_begin >= most) && p->job->out->temporary &&
	    !p->job->out->err)
		next_file(p);
}

/* ---- what is referred to ------------------------------------------------------------------------- */

/* Is it new in this file? It is not any more. */
static bool is_new(const struct perfetto *p, struct written_in *in, uint32_t number)
{
	while (unlikely(in->n <= number)) {
		in->files = grow(in->files, in->n, sizeof(*in->files));
		in->files[in->n++] = 0;
	}
	if (likely(in->files[number] == p->file))
		return false;
	in->files[number] = p->file;
	return true;
}

static void intern(struct perfetto *p, unsigned int field, uint64_t iid, const char *text)
{
	char *clean = bytes_utf8(text);

	p->text.n = 0;
	proto_number(&p->text, INTERNED_IID, iid);
	proto_bytes(&p->text, INTERNED_TEXT, clean, strlen(clean));
	proto_message(&p->interned, field, &p->text);
	free(clean);
}

static void put_string(struct perfetto *p, struct proto *to, unsigned int field, const char *text)
{
	char *clean = bytes_utf8(text);

	(void)p;
	proto_bytes(to, field, clean, strlen(clean));
	free(clean);
}

static void describe_process(struct perfetto *p, const struct track *track)
{
	p->text.n = 0;
	proto_number(&p->text, PROCESS_PID, track->pid);
	put_string(p, &p->text, PROCESS_NAME, track->name);
	proto_message(&p->inner, DESCRIPTOR_PROCESS, &p->text);
}

static void describe_thread(struct perfetto *p, const struct track *track)
{
	p->text.n = 0;
	proto_number(&p->text, THREAD_PID, track->pid);
	proto_number(&p->text, THREAD_TID, track->tid);
	put_string(p, &p->text, THREAD_NAME, track->name);
	proto_message(&p->inner, DESCRIPTOR_THREAD, &p->text);
}

static void describe_counter(struct perfetto *p)
{
	p->text.n = 0;
	proto_number(&p->text, COUNTER_UNIT, UNIT_OF_COUNT);
	proto_message(&p->inner, DESCRIPTOR_COUNTER, &p->text);
}

/* Its parent before it. */
static void describe(struct perfetto *p, const struct track *track)
{
	if (likely(!is_new(p, &p->tracks, track->number)))
		return;
	if (track->parent)
		describe(p, track->parent);
	p->inner.n = 0;
	proto_number(&p->inner, DESCRIPTOR_UUID, track->number);
	if (track->parent)
		proto_number(&p->inner, DESCRIPTOR_PARENT, track->parent->number);
	if (track->process)
		describe_process(p, track);
	else if (track->kind == TRACK_THREAD)
		describe_thread(p, track);
	else
		put_string(p, &p->inner, DESCRIPTOR_NAME, track->name);
	if (track->kind == TRACK_COUNTER)
		describe_counter(p);
	proto_number(&p->inner, DESCRIPTOR_RANK, track->order & INT32_MAX);
	begin_packet(p, 0);
	proto_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->inner);
	put_packet(p);
}

/* ---- events -------------------------------------------------------------------------------------- */

static void put_argument(struct perfetto *p, const struct slice_argument *argument)
{
	p->inner.n = 0;
	if (unlikely(p->keys[argument->key] != p->file)) {
		p->keys[argument->key] = p->file;
		intern(p, INTERNED_ANNOTATION_NAMES, argument->key + 1,
		       slice_argument_keys[argument->key]);
	}
	proto_number(&p->inner, ANNOTATION_NAME, argument->key + 1);
	switch (slice_argument_forms[argument->key]) {
	case FORM_NUMBER:
		proto_number(&p->inner, ANNOTATION_UINT, min_u64(argument->value, NUMBER_MOST));
		break;
	case FORM_HANDLE:
		proto_number(&p->inner, ANNOTATION_POINTER, argument->value);
		break;
	case FORM_NAME:
		if (unlikely(is_new(p, &p->strings, (uint32_t)argument->value)))
			intern(p, INTERNED_STRINGS, argument->value + 1,
			       events_name(p->events, (uint32_t)argument->value));
		proto_number(&p->inner, ANNOTATION_STRING, argument->value + 1);
		break;
	}
	proto_message(&p->event, EVENT_ANNOTATION, &p->inner);
}

static void begin_event(struct perfetto *p, unsigned int type, const struct track *track)
{
	describe(p, track);
	proto_number(&p->event, EVENT_TYPE, type);
	proto_number(&p->event, EVENT_TRACK, track->number);
}

static void put_category(struct perfetto *p, enum slice_category category)
{
	if (unlikely(p->categories[category] != p->file)) {
		p->categories[category] = p->file;
		intern(p, INTERNED_CATEGORIES, category + 1, slice_categories[category]);
	}
	proto_number(&p->event, EVENT_CATEGORY, category + 1);
}

static void put_flow(struct perfetto *p, const struct slice *slice)
{
	if (slice->flow)
		proto_fixed64(&p->event, slice->flow_ends ? EVENT_FLOW_END : EVENT_FLOW,
			      slice->flow);
}

static void put_slice(struct perfetto *p, unsigned int type, const struct slice *slice)
{
	begin_event(p, type, slice->track);
	put_category(p, slice->category);
	if (unlikely(is_new(p, &p->names, slice->name)))
		intern(p, INTERNED_NAMES, slice->name + 1ull, events_name(p->events, slice->name));
	proto_number(&p->event, EVENT_NAME, slice->name + 1ull);
	for (size_t i = 0; i < slice->n; i++)
		put_argument(p, &slice->arguments[i]);
	put_flow(p, slice);
	put_event(p, slice->begin_ns);
}

static void on_slice(void *data, const struct slice *slice)
{
	put_slice(data, TYPE_SLICE_BEGIN, slice);
}

static void on_slice_end(void *data, struct track *track, uint64_t ns)
{
	struct perfetto *p = data;

	begin_event(p, TYPE_SLICE_END, track);
	put_event(p, ns);
}

static void on_mark(void *data, const struct slice *slice)
{
	put_slice(data, TYPE_INSTANT, slice);
}

/* Arrows lead from event to event: one of no duration, inside the slice that is meant. */
static void on_flow(void *data, const struct slice *point)
{
	put_slice(data, TYPE_INSTANT, point);
}

static void on_counter(void *data, struct track *track, uint64_t ns, uint64_t value)
{
	struct perfetto *p = data;

	begin_event(p, TYPE_COUNTER, track);
	proto_number(&p->event, EVENT_COUNTER_VALUE, min_u64(value, NUMBER_MOST));
	put_event(p, ns);
}

/* ---- */

void *perfetto_begin(const struct export_job *job)
{
	const struct timeline_source source = {job->known, job->shown, job->symbols, job->report};
	struct perfetto *p = xcalloc(1, sizeof(*p));

	p->job = job;
	p->sink = (struct sink){.data = p,
				.next = on_next,
				.slice = on_slice,
				.slice_end = on_slice_end,
				.mark = on_mark,
				.flow = on_flow,
				.counter = on_counter};
	p->bytes.out = job->out;
	p->events = events_new(&source, &p->sink);
	begin_file(p);
	return p;
}

const struct listener *perfetto_listener(void *state)
{
	struct perfetto *p = state;

	return events_listener(p->events);
}

/* Of an export that was longer. */
static void warn_of_old_file(const struct perfetto *p)
{
	char *path = path_of_file(p, p->file + 1);

	if (p->job->out->temporary && !access(path, F_OK))
		warn("%s is not of this export, which ends with the file before it", path);
	free(path);
}

/* The other files get their names before the first one does. */
static int end_files(struct perfetto *p, int err)
{
	for (uint32_t i = 0; i + 1 < p->file; i++) {
		if (err)
			target_discard(&p->more[i]);
		else
			err = target_commit(&p->more[i]);
	}
	if (!err)
		warn_of_old_file(p);
	return err;
}

int perfetto_end(void *state, int err)
{
	struct perfetto *p = state;

	if (!err) {
		events_finish(p->events);
		bytes_flush(&p->bytes);
		err = p->job->out->err;
	}
	err = end_files(p, err);
	free(p->more);
	free(p->names.files);
	free(p->strings.files);
	free(p->tracks.files);
	proto_release(&p->packet);
	proto_release(&p->event);
	proto_release(&p->interned);
	proto_release(&p->inner);
	proto_release(&p->text);
	events_free(p->events);
	free(p);
	return err;
}
