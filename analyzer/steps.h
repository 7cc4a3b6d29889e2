/*
 * analyzer/steps.h: what a thread has just done, for detectors that judge a call by those before it. Kept by
 * the accounting, which lets them look at it before the call itself becomes a step.
 */
#ifndef CUDASPY_STEPS_H
#define CUDASPY_STEPS_H

#include "gpu_wait.h"

/* Copies of one direction in one stream, from one place of the program, with no other work between them. */
struct copy_row {
	uint64_t place, stream;
	uint8_t direction;
	uint64_t count, own_ns, bytes;
};

struct steps {
	uint64_t tries; /* calls by which the thread went on working, also in vain */
	/* Its last wait for the GPU that it meant to make: its end and its place; 0: none yet. */
	uint64_t waited_ns, waited_at;
	/* Since then: launches and copies that it handed over, when the first began and its own work. */
	uint64_t submissions, first_ns, first_own_ns;
	bool brought_back; /* one of them brought data to the host */
	struct copy_row row;
};

/* A call that has returned, as far as it is a step. */
struct step {
	uint64_t begin_ns, end_ns, own_ns;
	uint8_t contract; /* enum spy_contract */
	bool failed, submitted, cold;
};

void steps_see(struct steps *s, const union spy_any *raw, const struct gpu_waits *waits,
	       const struct step *step);

/* Would the copy go on with the row? */
bool steps_in_row(const struct copy_row *row, const struct spy_rec_copy *copy);

/* Does a thread that makes such a call go on working? Not if it tidies up. */
bool steps_is_try(uint8_t contract);

#endif
