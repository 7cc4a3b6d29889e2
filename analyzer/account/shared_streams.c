/*
 * analyzer/account/shared_streams.c: who waits for whose work in streams that several threads use. Called by work.c.
 */
#include <stdlib.h>
#include <utlist.h>
#include "shared_streams.h"
#include "streams.h"

void stream_changes_hands(struct gpu_stream *stream, const struct thread *by)
{
	struct stream_sharing *s = stream->sharing;

	if (!stream->by) /* its first work */
		return;
	if (!s) {
		s = stream->sharing = xcalloc(1, sizeof(*s));
		s->handle = stream->key.stream;
		LL_PREPEND(stream->beside->shared, s);
		s->turns[s->n_turns++] = (struct stream_turn){.by = stream->by};
	}
	s->turns[s->n_turns++ % STREAM_TURNS] = (struct stream_turn){
		.by = by, .from = stream->submitted, .before_ns = stream->handed_ns};
}

uint64_t stream_submitted_before(const struct gpu_stream *stream, uint64_t ns)
{
	const struct stream_sharing *s = stream->sharing;

	if (likely(stream->handed_ns <= ns))
		return stream->submitted;
	for (uint64_t i = 1; s && i <= STREAM_TURNS && i <= s->n_turns; i++) {
		const struct stream_turn *turn = &s->turns[(s->n_turns - i) % STREAM_TURNS];

		if (turn->before_ns <= ns)
			return turn->from;
	}
	return 0;
}

/* So many operations were done by then: a wait for them had ended. */
static uint64_t done_by(const struct stream_sharing *s, uint64_t ns)
{
	uint64_t i, done = 0;

	for (i = 0; i < STREAM_WAITS && i < s->n_waits; i++)
		if (s->waits[i].end_ns <= ns)
			done = max_u64(done, s->waits[i].upto);
	return done;
}

/* Did another thread wait for the stream at the same time? Threads that take turns, of which one waits for the other to hand
 * it the stream, have a part in its work. */
static bool waits_beside(const struct stream_sharing *s, const struct thread *thread,
			 uint64_t begin_ns)
{
	for (uint64_t i = 0; i < STREAM_WAITS && i < s->n_waits; i++)
		if (s->waits[i].by != thread && s->waits[i].end_ns > begin_ns)
			return true;
	return false;
}

/* Of the operations from one number up to another, the others' part. */
static double others_part(const struct stream_sharing *s, const struct thread *thread,
			  uint64_t done, uint64_t upto)
{
	uint64_t i, end = upto, own = 0, others = 0;

	for (i = 1; i <= STREAM_TURNS && i <= s->n_turns && end > done; i++) {
		const struct stream_turn *turn = &s->turns[(s->n_turns - i) % STREAM_TURNS];

		if (turn->from >= end)
			continue;
		*(turn->by == thread ? &own : &others) += end - max_u64(turn->from, done);
		end = turn->from;
	}
	return own + others ? (double)others / (double)(own + others) : 0;
}

static struct stream_sharer *sharer_of(struct stream_sharing *s, const struct thread *thread)
{
	struct stream_sharer *sharer;

	for (sharer = s->sharers; sharer < s->sharers + STREAM_SHARERS; sharer++) {
		if (!sharer->thread)
			sharer->thread = thread;
		if (sharer->thread == thread)
			return sharer;
	}
	return NULL;
}

static void add_wait(struct stream_sharer *sharer, const struct record *record, double others)
{
	uint64_t ns = record->duration_ns, address = record_return_address(record);
	const struct stack *stack = model_stack(record);
	bool there = sharer->return_address == address;

	sharer->waits++;
	sharer->waited_ns += ns;
	sharer->others_ns += (uint64_t)((double)ns * others);
	if (stack && there && !sharer->stack)
		sharer->stack = stack;
	if (ns <= sharer->longest_ns)
		return;
	sharer->longest_ns = ns;
	sharer->fn = record->fn;
	sharer->return_address = address;
	if (stack || !there)
		sharer->stack = stack;
	sharer->ns = record->ns;
}

void stream_is_awaited(const struct gpu_stream *stream, const struct record *record, uint64_t upto)
{
	struct stream_sharing *s = stream->sharing;
	uint64_t begin_ns = record_begin_ns(record);
	struct stream_sharer *sharer;

	if (waits_beside(s, record->thread, begin_ns)) {
		sharer = sharer_of(s, record->thread);
		if (sharer)
			add_wait(sharer, record,
				 others_part(s, record->thread, done_by(s, begin_ns), upto));
	}
	s->waits[s->n_waits++ % STREAM_WAITS] =
		(struct stream_wait){.by = record->thread, .end_ns = record->ns, .upto = upto};
}

/* Of the time since begin_ns, how long what was done for others, and comes before a copy in that direction, kept it waiting. */
static uint64_t others_before(const struct stream_sharing *s, const struct thread *thread,
			      uint64_t begin_ns, uint8_t direction)
{
	uint64_t until_ns = begin_ns, alike_ns = begin_ns, i;

	for (i = 0; i < STREAM_WAITS && i < s->n_waits; i++) {
		const struct stream_wait *wait = &s->waits[i];
		bool same_direction = direction == SPY_DIR_UNKNOWN || wait->direction == direction;

		if (wait->by != thread)
			*(same_direction ? &alike_ns : &until_ns) =
				max_u64(same_direction ? alike_ns : until_ns, wait->end_ns);
	}
	return until_ns - min_u64(alike_ns, until_ns);
}

void stream_is_copied_in(const struct gpu_stream *stream, const struct record *record,
			 uint64_t upto)
{
	struct stream_sharing *s = stream->sharing;
	uint64_t begin_ns = record_begin_ns(record);
	uint8_t direction = record_direction(record);
	uint64_t others_ns = others_before(s, record->thread, begin_ns, direction);
	struct stream_sharer *sharer = others_ns ? sharer_of(s, record->thread) : NULL;

	if (sharer) {
		add_wait(sharer, record, (double)others_ns / (double)record->duration_ns);
		sharer->copies++;
	}
	s->waits[s->n_waits++ % STREAM_WAITS] = (struct stream_wait){
		.by = record->thread, .end_ns = record->ns, .upto = upto, .direction = direction};
}

void stream_sharing_free(struct stream_sharing *all)
{
	struct stream_sharing *s, *next;

	LL_FOREACH_SAFE(all, s, next)
	free(s);
}
