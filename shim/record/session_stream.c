/*
 * shim/record/session_stream.c: the session's own stream, for records that belong to no thread.
 * Runs in slow paths, on the application's threads, under the session's lock.
 */
#include <stdatomic.h>
#include <string.h>
#include "state/session.h"
#include "state/subsystem.h"

/* A full disk stays full for a while: it is not asked again at each record. */
static bool make_room(struct spy_thread *self)
{
	uint64_t now = spy_clock();

	if (now < self->retry_at)
		return false;
	self->retry_at = 0;
	if (spy_stream_make_room(self) == 0)
		return true;
	self->retry_at = now + atomic_load(&spy_session->frequency) / 10;
	return false;
}

/* Is there room in the session's stream, or can some be made? Where another part of the recording has begun, the stream goes
 * on there. */
static bool has_room(size_t bytes)
{
	struct spy_thread *self = &spy_threads[0];

	if (spy_stream_is_behind(&self->file) && make_room(self))
		SPY_EACH(part_begins);
	if (self->head + bytes <= (const uint8_t *)self->file.packet + self->file.room &&
	    !self->file.truncated)
		return true;
	return make_room(self) &&
	       self->head + bytes <= (const uint8_t *)self->file.packet + self->file.room;
}

/* Where the next record goes, with its time; NULL: there is no room. Session lock held. */
static struct spy_rec_other *find_place(size_t bytes)
{
	struct spy_thread *self = &spy_threads[0];
	struct spy_rec_other *record;

	if (!has_room(bytes))
		return NULL;
	record = (struct spy_rec_other *)self->head;
	record->time = spy_clock();
	if (record->time < self->file.packet->time_end)
		record->time = self->file.packet->time_end;
	return record;
}

static void count_discarded(void)
{
	struct spy_thread *self = &spy_threads[0];

	self->file.packet->discarded = ++self->file.discarded;
	atomic_fetch_add(&spy_session->untold, 1);
}

static void publish(size_t bytes)
{
	struct spy_thread *self = &spy_threads[0];
	const struct spy_rec_other *record = (const struct spy_rec_other *)self->head;

	self->head += bytes;
	spy_packet_publish(self->file.packet, record->time,
			   (uint64_t)(self->head - (uint8_t *)self->file.packet) * 8);
}

/* As spy_session_append; lost: what finds no place is counted as lost. */
static void *append(enum spy_event event, size_t bytes, bool lost)
{
	struct spy_rec_other *record;

	if (!spy_session_active())
		return NULL;
	if (!spy_lock(&spy_session->lock)) {
		if (lost)
			spy_session_count_lost();
		return NULL;
	}
	record = find_place(bytes);
	if (record) {
		record->event = event;
		return record;
	}
	if (lost)
		count_discarded();
	spy_unlock(&spy_session->lock);
	return NULL;
}

void *spy_session_append(enum spy_event event, size_t bytes)
{
	return append(event, bytes, true);
}

void *spy_session_offer(enum spy_event event, size_t bytes)
{
	return append(event, bytes, false);
}

void spy_session_commit(size_t bytes)
{
	const struct spy_rec_other *record = (const struct spy_rec_other *)spy_threads[0].head;

	publish(bytes);
	spy_repeated_add(record, bytes);
	spy_unlock(&spy_session->lock);
}

void spy_session_turn(void)
{
	spy_threads[0].retry_at = 0; /* there is room in the new folder's disk */
	has_room(0);
}

void *spy_session_put(const void *record, size_t bytes)
{
	struct spy_rec_other *place = find_place(bytes);
	uint64_t time;

	if (!place) {
		count_discarded();
		return NULL;
	}
	time = place->time;
	memcpy(place, record, bytes);
	place->time = time;
	publish(bytes);
	return place;
}
