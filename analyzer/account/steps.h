/*
 * analyzer/account/steps.h: what a thread has just done, for detectors that judge a call by those before it. Kept by
 * the accounting, which lets them look at it before the call itself becomes a step.
 */
#ifndef CUDASPY_STEPS_H
#define CUDASPY_STEPS_H

#include "expect/kinds.h"
#include "trace/model.h"

/* Copies of one direction in one stream, from one place of the program, with no other work between them. */
struct copy_row {
	uint64_t place, stream;
	uint8_t direction;
	uint64_t count, ns, own_ns, bytes;
};

struct steps {
	uint64_t tries; /* calls by which the thread went on working, also in vain */
	struct copy_row row;
	/* Launches and copies that it has handed over since its last wait for the GPU that it meant to make, when the
	 * first began and its own work. */
	uint64_t submissions, first_ns, first_own_ns;
	bool brought_back; /* one of them brought data to the host */
	/* One was to pageable memory or from host to host, and waited for that: of pinned memory, or made by the
	 * host itself, it would not. */
	bool leans;
	/* That wait: its end and its place; 0: none yet. */
	uint64_t waited_ns, waited_at;
	uint64_t before; /* launches and copies between that and the wait before it */
	bool brought_before; /* by one of these, or by that wait itself */
	/* The GPU that all of `submissions` went to, and all of `before`; SPY_DEVICE_NONE: more than one. */
	uint8_t device, device_before;
	uint64_t
		devices; /* all that the thread has handed work to, a bit each; those from 63 on share one */
};

/* A call that has returned, as far as it is a step. */
struct step {
	uint64_t begin_ns, end_ns, own_ns;
	bool submitted, cold;
};

/* For steps_see: a copy, which goes on with the row or begins another one. */
void steps_see_copy(struct copy_row *row, const union spy_any *raw, const struct step *step);

/* Would the copy go on with the row? */
static inline bool steps_in_row(const struct copy_row *row, const union spy_any *raw)
{
	return row->count && row->place == record_caller(raw) &&
	       row->stream == record_stream(raw) && row->direction == raw->copy.direction;
}

static inline void steps_see_device(struct steps *s, const union spy_any *raw, bool copy)
{
	uint8_t device = raw->call_head.device;
	bool crosses = copy && copy_may_be_between_gpus(&raw->copy);

	if (likely(s->submissions) && likely(s->device == device) && likely(!crosses))
		return;
	s->devices |= 1ull << (device < 63 ? device : 63);
	s->device = s->submissions || crosses ? SPY_DEVICE_NONE : device;
}

static inline void steps_see(struct steps *s, const union spy_any *raw,
			     const struct call_kind *kind, const struct step *step)
{
	bool copy = kind->copy && step->submitted;

	if (unlikely(kind->failed) || kind->contract == SPY_CONTRACT_HOST)
		return;
	if (copy)
		steps_see_copy(&s->row, raw, step);
	else
		s->row.count = 0;
	if (kind->waits->sort == GPU_WAIT_INTENDED) {
		s->waited_ns = step->end_ns;
		s->waited_at = record_caller(raw);
		s->before = s->submissions;
		s->device_before = s->device;
		s->brought_before = s->brought_back || kind->to_host;
		s->submissions = 0;
		s->brought_back = s->leans = false;
	} else if (step->submitted) {
		steps_see_device(s, raw, copy);
		if (!s->submissions++) {
			s->first_ns = step->begin_ns;
			s->first_own_ns = step->cold ? 0 : step->own_ns;
		}
		s->brought_back |= kind->to_host;
		s->leans |= kind->leans;
	}
}

#endif
