/*
 * analyzer/steps.c: what a thread has just done. Called by the accounting for each call of the
 * application, and by detectors.
 */
#include "steps.h"

bool steps_is_try(uint8_t contract)
{
	switch (contract) {
	case SPY_CONTRACT_HOST:
	case SPY_CONTRACT_FREE:
	case SPY_CONTRACT_INIT:
	case SPY_CONTRACT_MODULE:
	case SPY_CONTRACT_LIMIT:
		return false;
	default:
		return true;
	}
}

bool steps_in_row(const struct copy_row *row, const struct spy_rec_copy *copy)
{
	return row->count && row->place == copy->caller && row->stream == copy->stream &&
	       row->direction == copy->direction;
}

static void see_copy(struct copy_row *row, const struct spy_rec_copy *copy, uint64_t own_ns)
{
	if (!steps_in_row(row, copy))
		*row = (struct copy_row){.place = copy->caller,
					 .stream = copy->stream,
					 .direction = copy->direction};
	row->count++;
	row->own_ns += own_ns;
	row->bytes += copy->bytes;
}

void steps_see(struct steps *s, const union spy_any *raw, const struct gpu_waits *waits,
	       const struct step *step)
{
	bool copy = raw->other.event == SPY_EV_COPY && step->submitted;

	if (step->failed || (step->contract == SPY_CONTRACT_HOST && !copy))
		return;
	if (copy)
		see_copy(&s->row, &raw->copy, step->own_ns);
	else
		s->row.count = 0;
	if (waits->sort == GPU_WAIT_INTENDED) {
		s->waited_ns = step->end_ns;
		s->waited_at = record_caller(raw);
		s->submissions = 0;
		s->brought_back = false;
	} else if (step->submitted) {
		if (!s->submissions++) {
			s->first_ns = step->begin_ns;
			s->first_own_ns = step->cold ? 0 : step->own_ns;
		}
		s->brought_back |= copy && raw->copy.direction != SPY_DIR_H2D &&
				   raw->copy.direction != SPY_DIR_D2D;
	}
}
