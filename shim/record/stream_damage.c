/*
 * shim/record/stream_damage.c: a tail that another process has changed, and records that are lost by that. Called by the slot's owner,
 * before the tail is stored, grows, or moves on.
 */
#include <string.h>
#include "state/session.h"
#include "record/stream.h"

#define PAGE SPY_STREAM_PAGE

/* Calls that had been recorded, and are deleted. */
void spy_stream_count_lost(struct spy_thread *thread, uint64_t since)
{
	uint64_t calls = spy_stream_tally(thread).calls;
	uint64_t lost = calls > since ? calls - since : 0;

	if (thread->page) {
		__atomic_store_n(&thread->page->calls, calls - lost, __ATOMIC_RELAXED);
		__atomic_store_n(&thread->page->lost, thread->page->lost + lost, __ATOMIC_RELAXED);
	}
	thread->file.discarded += lost ? lost : 1;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	while (size && !bytes[size - 1])
		size--;
	return !size;
}

/* Has the tail been truncated, or has it a hole? Then a page of it is all zeros, or the header
 * is not ours. A look at a page ends with its first record. */
bool spy_stream_is_damaged(const struct spy_thread *thread)
{
	const struct spy_packet *packet = thread->file.packet;
	size_t content = spy_tail_content(thread);

	if (thread->file.truncated || packet->magic != SPY_CTF_MAGIC ||
	    packet->instance != thread->slot || packet->seq + 1 != thread->file.seq ||
	    memcmp(packet->uuid, spy_session->uuid, sizeof(packet->uuid)) != 0)
		return true;
	for (size_t at = 0; at + PAGE <= content; at += PAGE)
		if (is_zero((const uint8_t *)packet + at, PAGE))
			return true;
	return false;
}
