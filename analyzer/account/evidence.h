/*
 * analyzer/account/evidence.h: unobstructed calls, of those that may wait for the GPU: what they
 * cost is what such calls cost (expect.h).
 */
#ifndef CUDASPY_EVIDENCE_H
#define CUDASPY_EVIDENCE_H

#include "expect/expect.h"

/*
 * The beginning of the traces, in the order of time, so that it is known of each call what the
 * whole process had outstanding on the GPU. After expect_learn and before expect_settle; all
 * streams are rewound. Processes that have no GPU in common (trace/groups.h) are read apart, by so many threads, a share of
 * the records each. False: it has to be done by one thread, after another expect_learn.
 *
 * A cost that is learnt from calls that had to wait has the wait in it: then nothing is found where
 * it happens each time. So a call counts only
 * - if none of the work that it may wait for was outstanding, whichever thread had handed it over; of first launches,
 *   and of what waits for the device without saying so, none on the device at all, nor any handed over meanwhile;
 * - if no other process of the traces had work on that GPU;
 * - if the thread was on a CPU all the time but for the waits that the probes saw and that are taken off, as far as the
 *   scheduler was asked; others only where a class has none of these;
 * - if it took no longer than such calls can for what they do (work of libraries that were not seen).
 */
bool evidence_gather(struct expect *e, unsigned int jobs);

#endif
