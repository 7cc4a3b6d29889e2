/*
 * analyzer/account/legacy.c: how the legacy default stream and the streams that wait for it stand
 * in each other's way. Called by work.c when one of them is handed work.
 */
#include "legacy.h"
#include "streams.h"

static struct legacy_call call_of(const struct record *record)
{
	return (struct legacy_call){
		.fn = record->fn,
		/* the same in all */
		.return_address = record->event >= SPY_EV_OP ? record_return_address(record) : 0,
		.ns = record->ns,
		.stack = model_stack(record),
	};
}

/* Which call handed the legacy stream most of its work: a majority is left over if each other one
 * takes a vote away. */
static void vote(struct legacy_use *use)
{
	const struct legacy_call *call = &use->last;

	if (use->votes &&
	    (use->most.fn != call->fn || use->most.return_address != call->return_address)) {
		use->votes--;
		return;
	}
	if (use->most.fn != call->fn || use->most.return_address != call->return_address)
		use->n_stacks = 0;
	if (call->stack)
		use->stacks[use->n_stacks++ % LEGACY_STACKS] = call->stack;
	use->most = *call;
	use->last.stack = NULL; /* it may vote again, for the turn behind it */
	use->votes++;
}

static void count_stream(struct legacy_use *use, struct gpu_stream *stream)
{
	use->streams += !stream->counted;
	stream->counted = true;
}

/* There may be thousands with work that no call waits for: of these so many, which have been busy
 * for the shortest time, are looked at in each turn. */
#define LOOKS 256

/* Blocking streams of the device with work outstanding; and the stream `but` does not count. */
static bool others_busy(struct gpu_work *w, const struct record *record, struct legacy_use *use,
			const struct gpu_stream *but)
{
	struct gpu_stream *stream = streams_of_device(w, record)->busy;
	bool busy = false;

	for (unsigned int looks = 0; stream && looks < LOOKS; stream = stream->next, looks++) {
		if (!stream->blocking || stream == but)
			continue;
		busy = true;
		count_stream(use, stream);
	}
	return busy;
}

static bool legacy_busy(struct gpu_work *w, const struct record *record)
{
	const struct gpu_stream *stream = streams_named(w, record, 1, false);

	return stream && stream_is_busy(stream);
}

void legacy_take_turn(struct gpu_work *w, const struct record *record, struct gpu_stream *stream,
		      const struct gpu_stream *own, bool waits)
{
	struct legacy_use *use = &w->legacy[streams_device_index(w, record)];
	bool legacy = stream->key.stream == STREAM_LEGACY, turn;

	if (!legacy && !stream->blocking)
		return;
	if (legacy)
		use->last = call_of(record);
	if (legacy == use->was_legacy)
		return;
	turn = legacy ? others_busy(w, record, use, waits ? own : NULL) : legacy_busy(w, record);
	use->was_legacy = legacy;
	if (!turn)
		return;
	if (!legacy)
		count_stream(use, stream);
	vote(use);
	use->last_turn = w->submissions[record->process];
	use->last_ns = record->ns;
	if (use->turns++)
		return;
	use->first_turn = use->last_turn;
	use->first_ns = use->last_ns;
}
