/*
 * analyzer/expect/priors.h: what calls cost on machines that `cudaspy calibrate` was run on,
 * shipped with the analyzer: the files in priors/, one a machine, which are profiles (profile.h).
 *
 * A profile says what calls cost on the machine of the traces; a prior says what they cost on one
 * like it, or at least on some GPU. So a prior is second to all that a trace tells of calls in
 * whose way nothing can have been. It is for calls of which the trace tells nothing, and it bounds
 * what is learnt from few calls: expect.h.
 */
#ifndef CUDASPY_PRIORS_H
#define CUDASPY_PRIORS_H

#include "profile.h"

/*
 * The one for these traces, read into `p`: of their GPU and driver, or of their GPU, or else of the
 * first machine. False: the traces do not say which GPU they are of. profile_release in any case.
 */
bool priors_choose(struct profile *p, const struct machine *machine);

/* Is it of a GPU that the traces name? */
bool prior_is_of(const struct profile *p, const struct machine *machine);

/* The text of row i, which the caller does not own; NULL behind the last. *gpu, *driver: for which
 * machine. */
const char *priors_row(size_t i, const char **gpu, const char **driver, size_t *size);

#endif
