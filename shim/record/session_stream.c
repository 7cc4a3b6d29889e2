/*
 * shim/record/session_stream.c: the session's own stream, for records that belong to no thread.
 * Runs in slow paths, on the application's threads, under the session's lock.
 */
#include <stdatomic.h>
#include "record/session.h"

/* Is there room in the session's stream, or can some be made? */
static bool has_room(size_t bytes)
{
	struct spy_thread *self = &spy_session->threads[0];
	const uint8_t *packet = (const uint8_t *)self->file.packet;

	if (self->head + bytes <= packet + self->file.room && !self->file.torn)
		return true;
	return spy_stream_make_room(self) == 0 &&
	       self->head + bytes <= (const uint8_t *)self->file.packet + self->file.room;
}

void *spy_session_append(enum spy_event event, size_t bytes)
{
	struct spy_thread *self = &spy_session->threads[0];
	struct spy_rec_other *record;

	if (!spy_session_active())
		return NULL;
	if (!spy_lock(&spy_session->lock)) {
		spy_session_count_lost();
		return NULL;
	}
	if (!has_room(bytes)) {
		self->file.packet->discarded = ++self->file.discarded;
		spy_unlock(&spy_session->lock);
		return NULL;
	}
	record = (struct spy_rec_other *)self->head;
	record->time = spy_clock();
	if (record->time < self->file.packet->time_end)
		record->time = self->file.packet->time_end;
	record->event = event;
	return record;
}

void spy_session_commit(size_t bytes)
{
	struct spy_thread *self = &spy_session->threads[0];
	const struct spy_rec_other *record = (const struct spy_rec_other *)self->head;

	self->head += bytes;
	spy_packet_publish(self->file.packet, record->time,
			   (uint64_t)(self->head - (uint8_t *)self->file.packet) * 8);
	spy_unlock(&spy_session->lock);
}
