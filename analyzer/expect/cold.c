/*
 * analyzer/expect/cold.c: which calls are cold. Called for each call that may be one: by the first
 * reading for the streams one by one, by the main reading in the order of time.
 */
#include <stdlib.h>
#include <string.h>
#include "cold.h"

/* Kernel numbers count up from 1; a larger one is damage. */

_Static_assert(SPY_CONTRACT_COUNT <= 32, "a bit for each contract");

static bool first_launch(struct cold_marks *m, uint32_t kernel, uint8_t device)
{
	uint64_t bit = 1ull << (device < 63 ? device : 63), **page;

	if (kernel >= COLD_KERNELS || cold_kernel_bits(m, kernel) & bit)
		return false;
	while (m->n_pages <= kernel / COLD_PAGE) {
		m->kernels = grow(m->kernels, m->n_pages, sizeof(*m->kernels));
		m->kernels[m->n_pages++] = NULL;
	}
	page = &m->kernels[kernel / COLD_PAGE];
	if (!*page)
		*page = xcalloc(COLD_PAGE, sizeof(**page));
	(*page)[kernel % COLD_PAGE] |= bit;
	return true;
}

static bool first_start(struct cold_marks *m, uint32_t fn, uint8_t device)
{
	uint64_t start = (uint64_t)fn << 8 | device;

	for (size_t i = 0; i < m->n_starts; i++)
		if (m->starts[i] == start)
			return false;
	m->starts = grow(m->starts, m->n_starts, sizeof(*m->starts));
	m->starts[m->n_starts++] = start;
	return true;
}

enum cold_kind cold_first(struct cold_marks *m, const struct record *record, uint32_t fn,
			  uint8_t contract, uint32_t *value)
{
	uint8_t device = record->device;
	bool known = m->contracts[device] >> contract & 1;

	if (contract != SPY_CONTRACT_INIT)
		m->contracts[device] |= 1u << contract;
	if (record_kernel(record)) {
		*value = record_kernel(record);
		return first_launch(m, *value, device) ? COLD_KERNEL : COLD_NOT;
	}
	if (contract == SPY_CONTRACT_INIT) {
		*value = fn;
		if (m->joined)
			return COLD_NOT;
		return first_start(m, fn, device) ? COLD_START : COLD_NOT;
	}
	*value = contract;
	return known ? COLD_NOT : COLD_CONTRACT;
}

static void forget_kernels(struct cold_marks *m)
{
	for (size_t i = 0; i < m->n_pages; i++)
		free(m->kernels[i]);
	free(m->kernels);
	m->kernels = NULL;
	m->n_pages = 0;
}

void cold_marks_join(struct cold_marks *m)
{
	m->joined = true;
	memset(m->contracts, 0xff, sizeof(m->contracts));
}

void cold_marks_forget(struct cold_marks *m)
{
	m->joined = false;
	memset(m->contracts, 0, sizeof(m->contracts));
	forget_kernels(m);
	m->n_starts = 0;
}

void cold_marks_release(struct cold_marks *m)
{
	forget_kernels(m);
	free(m->starts);
}
