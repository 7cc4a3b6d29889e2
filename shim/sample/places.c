/*
 * shim/sample/places.c: places and functions get numbers. On the sampler's thread alone, so no lock is needed; what it shares with
 * other threads is the table of functions of Python's (stack/stack.c).
 */
#include <string.h>
#include "cudaspy/trace_format.h"
#include "lib/thread_name.h"
#include "process/options.h"
#include "sample/places.h"
#include "stack/stack.h"
#include "state/session.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

#define PROBES 16
#define GROWS 8
/* What is written for one sample: its functions, its place, itself. */
#define CODE_BYTES (sizeof(struct spy_rec_python_code) + SPY_PYTHON_FILE + SPY_PYTHON_FUNCTION + 8)
#define PLACE_BYTES (sizeof(struct spy_rec_place) + SPY_PLACE_MOST * sizeof(uint64_t))
#define ROOM (2 * CODE_BYTES + PLACE_BYTES + 1024 + sizeof(struct spy_rec_sample))

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* The place of a key in a table of entries that begin with theirs; a free one is taken. Where there is none the first gives
 * way, if it may. NULL: it may not. */
static void *entry_of(void *table, size_t entries, size_t bytes, uint64_t key, bool replace)
{
	char *all = table;
	uint64_t *entry;

	for (uint64_t i = 0; i < PROBES; i++) {
		entry = (uint64_t *)(all + ((key >> 20) + i) % entries * bytes);
		if (!*entry)
			*entry = key;
		if (*entry == key)
			return entry;
	}
	if (!replace)
		return NULL;
	entry = (uint64_t *)(all + (key >> 20) % entries * bytes);
	memset(entry, 0, bytes);
	*entry = key;
	return entry;
}

/* ---- the stream ------------------------------------------------------------------------------- */

/* Not in the part before. */
static bool has_room_for(const struct spy_thread *stream, size_t bytes)
{
	return stream->packet && spy_thread_limit(stream) &&
	       stream->head + bytes <= stream->full_at;
}

bool spy_places_ready(struct spy_places *p)
{
	struct spy_thread *stream = p->stream;

	if (!stream) {
		p->bounded = spy_options_keeps_packets();
		stream = p->stream = spy_thread_take(SPY_STREAM_SAMPLES);
	}
	if (!stream)
		return false;
	/* A tail grows by and by. */
	for (int i = 0; i < GROWS && !has_room_for(stream, ROOM); i++)
		if (!spy_thread_next_packet(stream))
			return false;
	return has_room_for(stream, ROOM);
}

static uint64_t recorded_in(const struct spy_places *p)
{
	return p->bounded ? p->stream->packet->seq + 1 : p->stream->file.part;
}

/* ---- functions of Python's -------------------------------------------------------------------- */

static uint64_t key_of_code(const struct spy_python_frame *frame)
{
	return mix(mix(mix(mix(1, frame->file), frame->function), frame->lines),
		   frame->first_line) |
	       1;
}

/* The number of the frame's function, and its line. A function that is known has both without a look at its texts. */
uint64_t spy_place_word(struct spy_places *p, const struct spy_python *python,
			const struct spy_python_frame *frame)
{
	uint64_t key = key_of_code(frame);
	struct spy_known_code *code =
		entry_of(p->codes, SPY_PLACES_CODES, sizeof(*code), key, true);
	struct spy_known_line *line = entry_of(p->lines, SPY_PLACES_LINES, sizeof(*line),
					       mix(key, (uint32_t)frame->at) | 1, true);
	struct spy_python_walk walk = {.python = python, .pid = spy_session->pid};
	struct spy_python_place place;

	if (code->number && line->line && spy_stack_code_is_recorded(p->stream, code->number))
		return (uint64_t)code->number << 32 | line->line;
	if (!has_room_for(p->stream, CODE_BYTES + PLACE_BYTES + sizeof(struct spy_rec_sample)) ||
	    !spy_python_read(&walk, frame, &place))
		return 0;
	code->number = spy_stack_code(p->stream, &place, spy_clock());
	line->line = place.line;
	return (uint64_t)code->number << 32 | line->line;
}

void spy_place_add_python(struct spy_places *p, const struct spy_python *python,
			  const struct spy_python_frame *frames, size_t n, struct spy_frames *place)
{
	for (size_t i = 0; i < n && place->count < SPY_PLACE_MOST; i++) {
		place->words[place->count++] = spy_place_word(p, python, &frames[i]);
		place->python++;
	}
}

/* ---- places ----------------------------------------------------------------------------------- */

static uint64_t key_of(const struct spy_frames *place)
{
	uint64_t hash = mix(1, place->python);

	for (size_t i = 0; i < place->count; i++)
		hash = mix(hash, place->words[i]);
	return hash | 1;
}

static void write_place(struct spy_places *p, const struct spy_frames *place, uint32_t number)
{
	size_t bytes = sizeof(struct spy_rec_place) + place->count * sizeof(place->words[0]);
	struct spy_rec_place *record = (struct spy_rec_place *)p->stream->head;
	uint64_t now = spy_clock();

	*record = (struct spy_rec_place){.head = {.time = now, .event = SPY_EV_PLACE},
					 .python = place->python,
					 .count = place->count,
					 .place = number};
	memcpy(record->words, place->words, place->count * sizeof(place->words[0]));
	spy_thread_publish(p->stream, now, bytes);
}

uint32_t spy_place_number(struct spy_places *p, const struct spy_frames *place)
{
	struct spy_known_place *known;
	uint32_t number = 0;

	if (!place->count)
		return 0;
	known = entry_of(p->places, SPY_PLACES, sizeof(*known), key_of(place), false);
	if (known)
		number = (uint32_t)(known - p->places) + 1;
	if (known && known->recorded_in == recorded_in(p))
		return number;
	if (known)
		known->recorded_in = recorded_in(p);
	write_place(p, place, number);
	return number;
}

void spy_place_name_thread(struct spy_places *p, uint32_t tid)
{
	struct spy_rec_non_cuda_thread record = {.head.event = SPY_EV_NON_CUDA_THREAD, .tid = tid};

	for (uint32_t i = 0; i < SPY_PLACES_NAMED && !p->bounded; i++)
		if (p->named[i] == tid)
			return;
	if (!spy_thread_name(tid, record.name))
		return;
	p->named[p->n_named++ % SPY_PLACES_NAMED] = tid;
	record.head.time = spy_clock();
	spy_place_write(p, &record, sizeof(record));
}

void spy_place_write(struct spy_places *p, const void *record, size_t bytes)
{
	const struct spy_rec_other *head = record;

	memcpy(p->stream->head, record, bytes);
	spy_thread_publish(p->stream, head->time, bytes);
}
