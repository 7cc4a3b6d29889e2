/*
 * analyzer/account/recent_ops.h: what a thread has just done, for detectors that judge a call by
 * those before it. Kept by the accounting, which lets them look at it before the call itself is
 * added.
 */
#ifndef CUDASPY_RECENT_OPS_H
#define CUDASPY_RECENT_OPS_H

#include "expect/signatures.h"
#include "model/model.h"

/* Copies of one direction in one stream, from one place of the program, with no other work between
 * them. */
struct copy_run {
	uint64_t place, stream;
	uint8_t direction;
	uint64_t count, ns, own_ns, bytes;
};

struct recent_ops {
	uint64_t progress_calls; /* calls by which the thread went on working, also in vain */
	struct copy_run run;
	/* Launches and copies that it has handed over since its last wait for the GPU that it meant
	 * to make, when the first began and its own work. */
	uint64_t submissions, first_ns, first_own_ns;
	bool brought_back; /* one of them brought data to the host */
	/* One was to pageable memory or from host to host, and waited for that: of pinned memory,
	 * or made by the host itself, it would not. */
	bool blocks_on_pageable;
	/* That wait: its end and its place; 0: none yet. */
	uint64_t waited_ns, waited_at;
	uint64_t before; /* launches and copies between that and the wait before it */
	bool brought_before; /* by one of these, or by that wait itself */
	/* The GPU that all of `submissions` went to, and all of `before`; SPY_DEVICE_NONE: more
	 * than one. */
	uint8_t device, device_before;
	/* all that the thread has handed work to, a bit each; those from 63 on share one */
	uint64_t devices;
};

/* What recent_ops_see needs of a call that has returned. */
struct recent_op {
	uint64_t begin_ns, end_ns, own_ns;
	bool submitted, cold;
};

/* For recent_ops_see: a copy, which continues the run or begins another one. */
void recent_ops_see_copy(struct copy_run *run, const struct record *record,
			 const struct recent_op *step);

/* Would the copy continue the run? */
static inline bool recent_ops_in_run(const struct copy_run *run, const struct record *record)
{
	return run->count && run->place == record_return_address(record) &&
	       run->stream == record_stream(record) && run->direction == record_direction(record);
}

static inline void recent_ops_see_device(struct recent_ops *s, const struct record *record,
					 bool copy)
{
	uint8_t device = record->device;
	bool crosses = copy && copy_may_be_between_gpus(record_copy(record));

	if (likely(s->submissions) && likely(s->device == device) && likely(!crosses))
		return;
	s->devices |= 1ull << (device < 63 ? device : 63);
	s->device = s->submissions || crosses ? SPY_DEVICE_NONE : device;
}

static inline void recent_ops_see(struct recent_ops *s, const struct record *record,
				  const struct call_signature *signature,
				  const struct recent_op *step)
{
	bool copy = signature->copy && step->submitted;

	if (unlikely(signature->failed) || signature->contract == SPY_CONTRACT_HOST)
		return;
	if (copy)
		recent_ops_see_copy(&s->run, record, step);
	else
		s->run.count = 0;
	if (signature->waits->sort == GPU_WAIT_INTENDED) {
		s->waited_ns = step->end_ns;
		s->waited_at = record_return_address(record);
		s->before = s->submissions;
		s->device_before = s->device;
		s->brought_before = s->brought_back || signature->to_host;
		s->submissions = 0;
		s->brought_back = s->blocks_on_pageable = false;
	} else if (step->submitted) {
		recent_ops_see_device(s, record, copy);
		if (!s->submissions++) {
			s->first_ns = step->begin_ns;
			s->first_own_ns = step->cold ? 0 : step->own_ns;
		}
		s->brought_back |= signature->to_host;
		s->blocks_on_pageable |= signature->blocks_on_pageable;
	}
}

#endif
