/*
 * shim/record/repeated.c: what the session's stream has said and is true until it says otherwise: objects in the address
 * space, kernels' names, GPUs, notes, communicators. Each part of the recording begins with it. Runs on the application's
 * threads, in slow paths, with the session's lock held.
 */
#include <string.h>
#include "process/heap.h" /* before uthash.h */
#include <uthash.h>
#include "record/part.h"
#include "state/session.h"

/* What a record is about: a later one about the same takes its place. Without padding: it is hashed byte by byte. */
struct subject {
	uint64_t event, which, of;
};

struct spy_repeated {
	UT_hash_handle hh;
	struct subject subject;
	size_t bytes;
	_Alignas(8) uint8_t record[];
};

static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ull;
	return hash;
}

/* False: it is about a moment. */
static bool find_subject(const struct spy_rec_other *record, struct subject *subject)
{
	*subject = (struct subject){.event = record->event};
	switch (record->event) {
	case SPY_EV_KERNEL:
		subject->which = ((const struct spy_rec_kernel *)record)->kernel;
		return true;
	case SPY_EV_MODULE:
		subject->which = ((const struct spy_rec_module *)record)->begin;
		return true;
	case SPY_EV_GPU:
		subject->which = ((const struct spy_rec_gpu *)record)->device;
		return true;
	case SPY_EV_SHARE:
		subject->which = ((const struct spy_rec_share *)record)->device;
		return true;
	case SPY_EV_MPS:
		subject->which = ((const struct spy_rec_mps *)record)->initialised;
		return true;
	case SPY_EV_NOTE:
		subject->which = ((const struct spy_rec_note *)record)->note;
		subject->of = hash_of(((const struct spy_rec_note *)record)->text);
		return true;
	case SPY_EV_NVTX_NAME:
		subject->which = ((const struct spy_rec_nvtx_name *)record)->what;
		subject->of = ((const struct spy_rec_nvtx_name *)record)->object;
		return true;
	case SPY_EV_NCCL_COMM:
		subject->which = ((const struct spy_rec_nccl_comm *)record)->comm;
		return true;
	case SPY_EV_NCCL_STATE:
		return true;
	default:
		return false;
	}
}

static void forget(struct spy_repeated *repeated)
{
	HASH_DEL(spy_session->parts.repeated, repeated);
	spy_heap_give(repeated, sizeof(*repeated) + repeated->bytes);
}

/* What the heap has no room for is missing from later parts. */
void spy_repeated_add(const struct spy_rec_other *record, size_t bytes)
{
	struct spy_repeated *before = NULL, *fresh;
	struct subject subject;

	if (!find_subject(record, &subject))
		return;
	HASH_FIND(hh, spy_session->parts.repeated, &subject, sizeof(subject), before);
	if (before)
		forget(before);
	if (record->event == SPY_EV_MODULE && ((const struct spy_rec_module *)record)->gone)
		return;
	fresh = spy_heap_take(sizeof(*fresh) + bytes);
	if (!fresh)
		return;
	fresh->subject = subject;
	fresh->bytes = bytes;
	memcpy(fresh->record, record, bytes);
	HASH_ADD(hh, spy_session->parts.repeated, subject, sizeof(subject), fresh);
}

void spy_repeated_each(void *(*put)(const void *record, size_t bytes))
{
	struct spy_repeated *repeated, *next;

	HASH_ITER (hh, spy_session->parts.repeated, repeated, next)
		put(repeated->record, repeated->bytes);
}
