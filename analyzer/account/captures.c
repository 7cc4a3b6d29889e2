/*
 * analyzer/account/captures.c: captures of streams, begun, joined and ended. Called by work.c.
 */
#include "captures.h"
#include "streams.h"

static bool capture_lasts(const struct capture *capture)
{
	return capture->stream && capture->stream->begun == capture->number;
}

void capture_forget(struct gpu_work *w, struct gpu_stream *stream)
{
	if (capture_lasts(&stream->capture)) {
		stream->capture.stream->begun = 0;
		w->n_capturing[stream->key.process]--;
	}
	stream->capture = (struct capture){0};
}

/* A stream is in one at a time: of an earlier one the end was not told. */
static void begin_capture(struct gpu_work *w, struct gpu_stream *stream)
{
	capture_forget(w, stream);
	stream->begun = ++w->n_captures;
	stream->capture = (struct capture){stream, stream->begun};
	w->n_capturing[stream->key.process]++;
}

/* Made for another stream than the one that began it, or on another thread: then it goes on. */
#define UNMATCHED 903
#define WRONG_THREAD 908

/* Also one that failed has ended. */
static void end_capture(struct gpu_work *w, struct gpu_stream *stream, uint16_t result)
{
	if (result != UNMATCHED && result != WRONG_THREAD)
		capture_forget(w, stream);
}

void capture_see(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
		 uint8_t what)
{
	struct gpu_stream *stream = streams_of_call(w, last, record, true);

	if (!stream)
		return;
	if (what == FUNCTION_ENDS_CAPTURE)
		end_capture(w, stream, record->result);
	else if (!record_failed(record))
		begin_capture(w, stream);
}

bool capture_takes(struct gpu_work *w, const struct record *record, struct gpu_stream *stream,
		   uint8_t what)
{
	const struct event_mark *mark;

	if (what == FUNCTION_WAITS_FOR_EVENT && !capture_lasts(&stream->capture)) {
		mark = streams_event(w, record, false);
		if (mark && capture_lasts(&mark->capture))
			stream->capture = mark->capture;
	}
	return capture_lasts(&stream->capture);
}
