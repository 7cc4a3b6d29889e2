/*
 * shim/stream_file.h: one thread's CTF stream.
 *
 * The packet being written is a small file of its own that stays mapped, stream_NNNN_tail: what is
 * in it survives a SIGKILL. A full packet is appended to stream_NNNN with one write and the tail
 * starts over, so its pages stay warm; fresh mapped pages would cost each record some 20 ns
 * (docs/VALIDATION.md). Only the slot's owner calls these; packet changes are rare.
 */
#ifndef CUDASPY_SHIM_STREAM_FILE_H
#define CUDASPY_SHIM_STREAM_FILE_H

#include <stddef.h>
#include <stdint.h>
#include "cudaspy/trace_format.h"

#define SPY_PACKET_BYTES ((size_t)128 << 10)

struct spy_stream_file {
	struct spy_packet *packet; /* the tail, mapped; NULL before the first one */
	uint64_t file_bytes; /* where the next full packet goes */
	uint64_t seq; /* of the next packet */
	uint64_t oldest; /* with a size bound: the oldest full packet not deleted */
	uint64_t discarded; /* records lost so far */
};

/*
 * Shows a reader what was written up to `bits`: the last record's time, then, ordered after all of
 * it, the new length. One of the recorder's two ordered stores; pairs with whoever maps the file,
 * such as the analyzer after a SIGKILL. Release suffices: a reader that sees the length must see the
 * records, and nothing here reads back. The packet lies at the start of a page.
 */
static inline void spy_packet_publish(struct spy_packet *packet, uint64_t time, uint64_t bits)
{
	uint64_t *content =
		(uint64_t *)((char *)packet + offsetof(struct spy_packet, content_bits));

	packet->time_end = time;
	__atomic_store_n(content, bits, __ATOMIC_RELEASE);
}

/*
 * Stores the current packet, if there is one, and begins the next. instance is the slot's number,
 * tid its owner. Returns 0, or -errno and leaves the current packet as it was.
 */
int spy_stream_next_packet(struct spy_stream_file *file, uint32_t instance, uint32_t tid);

#endif
