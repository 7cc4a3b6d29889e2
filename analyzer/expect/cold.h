/*
 * analyzer/expect/cold.h: which calls are cold, the first ones that start something up: the first
 * launch of a kernel in a process on a device; the first call on a device of each contract (the
 * first copy, the first allocation from a pool), and of each function that starts a device up.
 * A recording that began dormant and was first woken when CUDA was up has no first calls but those of
 * kernels: others were before.
 */
#ifndef CUDASPY_COLD_H
#define CUDASPY_COLD_H

#include "cudaspy/contract.h"
#include "trace/record.h"

/* What has begun, so that the next call of the kind is not cold. */
struct cold_marks {
	uint32_t contracts[256]; /* by device: a bit for each contract, but never for INIT */
	/* By number: a bit for each device, those from 63 on share one. In pages, n_pages so far, of
	 * which those are there that are needed (else NULL): one record may name any number. */
	uint64_t **kernels;
	size_t n_pages;
	uint64_t *starts; /* fn << 8 | device of INIT functions that were called */
	size_t n_starts;
	bool joined; /* the recording came to a program under way */
};

enum cold_kind { COLD_NOT, COLD_KERNEL, COLD_START, COLD_CONTRACT };

/* What has begun with that call: the key of a cold call within its process. */
struct cold_key {
	uint32_t process, value, kind, device;
};

#define COLD_KERNELS (1u << 22) /* numbers count up from 1: larger ones are damage */
#define COLD_PAGE 64 /* kernels */

static inline uint64_t cold_kernel_bits(const struct cold_marks *m, uint32_t kernel)
{
	const uint64_t *page =
		kernel / COLD_PAGE < m->n_pages ? m->kernels[kernel / COLD_PAGE] : NULL;

	return page ? page[kernel % COLD_PAGE] : 0;
}

/* Is it certain, and as most calls are, that nothing begins with the call? */
static inline bool cold_marks_know(const struct cold_marks *m, const struct record *record,
				   uint8_t contract)
{
	uint8_t device = record->device;
	uint32_t kernel;

	if (!(m->contracts[device] >> contract & 1))
		return false;
	kernel = record_kernel(record); /* 0 of other calls */
	return !kernel || cold_kernel_bits(m, kernel) >> (device < 63 ? device : 63) & 1;
}

/* Is it the first of its kind by the marks, which it leaves? value: of its key. fn: number in the
 * set's functions. */
enum cold_kind cold_first(struct cold_marks *m, const struct record *record, uint32_t fn,
			  uint8_t contract, uint32_t *value);

/* All but kernels have begun: to be said before the first call. */
void cold_marks_join(struct cold_marks *m);

/* As if nothing had begun. */
void cold_marks_forget(struct cold_marks *m);
void cold_marks_release(struct cold_marks *m);

#endif
