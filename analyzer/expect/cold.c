/*
 * analyzer/expect/cold.c: which calls are cold. Called for each call that may be one: by the first reading for the
 * streams one by one, by the main reading in the order of time.
 */
#include <stdlib.h>
#include <string.h>
#include "cold.h"

/* Kernel numbers count up from 1; a larger one is damage. */
#define KERNELS_MAX (1u << 22)

_Static_assert(SPY_CONTRACT_COUNT <= 32, "a bit for each contract");

static bool first_launch(struct cold_marks *m, uint32_t kernel, uint8_t device)
{
	uint64_t bit = 1ull << (device < 63 ? device : 63);
	size_t n = m->n_kernels;

	if (kernel >= KERNELS_MAX)
		return false;
	if (kernel >= n) {
		m->n_kernels = 2 * (size_t)kernel + 64;
		m->kernels = xrealloc(m->kernels, m->n_kernels, sizeof(*m->kernels));
		memset(m->kernels + n, 0, (m->n_kernels - n) * sizeof(*m->kernels));
	}
	if (m->kernels[kernel] & bit)
		return false;
	m->kernels[kernel] |= bit;
	return true;
}

static bool first_start(struct cold_marks *m, uint32_t fn, uint8_t device)
{
	uint64_t start = (uint64_t)fn << 8 | device;
	size_t i;

	for (i = 0; i < m->n_starts; i++)
		if (m->starts[i] == start)
			return false;
	m->starts = grow(m->starts, m->n_starts, sizeof(*m->starts));
	m->starts[m->n_starts++] = start;
	return true;
}

enum cold_kind cold_first(struct cold_marks *m, const union spy_any *raw, uint32_t fn,
			  uint8_t contract, uint32_t *value)
{
	uint8_t device = raw->call_head.device;
	bool known = m->contracts[device] >> contract & 1;

	if (contract != SPY_CONTRACT_INIT)
		m->contracts[device] |= 1u << contract;
	if (raw->other.event == SPY_EV_LAUNCH && record_kernel(&raw->launch)) {
		*value = record_kernel(&raw->launch);
		return first_launch(m, *value, device) ? COLD_KERNEL : COLD_NOT;
	}
	if (contract == SPY_CONTRACT_INIT) {
		*value = fn;
		return first_start(m, fn, device) ? COLD_START : COLD_NOT;
	}
	*value = contract;
	return known ? COLD_NOT : COLD_CONTRACT;
}

void cold_marks_forget(struct cold_marks *m)
{
	memset(m->contracts, 0, sizeof(m->contracts));
	if (m->n_kernels)
		memset(m->kernels, 0, m->n_kernels * sizeof(*m->kernels));
	m->n_starts = 0;
}

void cold_marks_release(struct cold_marks *m)
{
	free(m->kernels);
	free(m->starts);
}
