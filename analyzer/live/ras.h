/*
 * analyzer/live/ras.h: what NCCL's own RAS subsystem (NCCL 2.24 and later) says of a job: which ranks are not where the
 * others are. It is asked on request, at the socket that a process of the job listens at (NCCL_RAS_ADDR, else localhost,
 * port 28028), in the text protocol that NVIDIA documents (NCCL user guide, Troubleshooting, RAS).
 */
#ifndef CUDASPY_LIVE_RAS_H
#define CUDASPY_LIVE_RAS_H

#include "base/report.h"
#include "words.h"

#define RAS_ADDRESS "localhost:28028"
#define RAS_WITHIN_NS 12000000000 /* RAS itself needs up to ten seconds where ranks do not answer */

struct ras {
	char *text; /* its answer; NULL: it has not answered. Owned */
	char *error; /* why not, in words; NULL: it has answered. Owned */
};

/* Asks, for within_ns at most. address: HOST, HOST:PORT or [HOST]:PORT. */
void ras_ask(struct ras *ras, const char *address, uint64_t within_ns);
void ras_release(struct ras *ras);

/* Its errors and warnings, and beside each line that names a process what cudaspy sees of that one. */
void live_add_ras(struct report *report, const struct live_words *w, const struct ras *ras,
		  const char *address);

#endif
