/*
 * analyzer/account/cpu_pressure.c: how many threads of a host made CUDA calls at a time, and when
 * they got no CPU. Called by the accounting for calls, and by the report.
 */
#include <stdlib.h>
#include "cpu_pressure.h"

void cpu_pressure_release(struct cpu_pressure *pressure)
{
	free(pressure->slices);
	*pressure = (struct cpu_pressure){0};
}

static struct cpu_pressure_slice *slice_of(struct cpu_pressure *pressure, uint64_t number)
{
	return &pressure->slices[number % CPU_PRESSURE_SLICES];
}

static void settle_slice(struct cpu_pressure *pressure, struct cpu_pressure_slice *slice)
{
	pressure->lacked_ns += slice->lacked_ns;
	if (slice->threads <= pressure->cpus)
		pressure->fitting_ns += slice->lacked_ns;
	*slice = (struct cpu_pressure_slice){0};
}

/* Opens all slices up to a number; those before `first` are settled. */
static void open_until(struct cpu_pressure *pressure, uint64_t number)
{
	uint64_t first = number >= CPU_PRESSURE_SLICES ? number - CPU_PRESSURE_SLICES + 1 : 0;

	if (number < pressure->end)
		return;
	if (!pressure->slices)
		pressure->slices = xcalloc(CPU_PRESSURE_SLICES, sizeof(*pressure->slices));
	for (; pressure->first < first && pressure->first < pressure->end; pressure->first++)
		settle_slice(pressure, slice_of(pressure, pressure->first));
	if (pressure->first < first)
		pressure->first = first;
	pressure->end = number + 1;
}

void cpu_pressure_add(struct cpu_pressure *pressure, uint64_t *last, uint64_t from, uint64_t to)
{
	uint64_t number;

	open_until(pressure, to);
	from = from > *last ? from : *last;
	for (number = from > pressure->first ? from : pressure->first; number <= to; number++)
		slice_of(pressure, number)->threads++;
	if (to >= *last)
		*last = to + 1;
}

void cpu_pressure_lack(struct cpu_pressure *pressure, uint64_t slice, uint64_t lacked_ns)
{
	open_until(pressure, slice);
	if (slice >= pressure->first)
		slice_of(pressure, slice)->lacked_ns += lacked_ns;
}

void cpu_pressure_settle(struct cpu_pressure *pressure)
{
	for (; pressure->first < pressure->end; pressure->first++)
		settle_slice(pressure, slice_of(pressure, pressure->first));
}

bool cpu_pressure_fits(const struct cpu_pressure *pressure, size_t n)
{
	uint64_t lacked_ns = 0, fitting_ns = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		lacked_ns += pressure[i].lacked_ns;
		fitting_ns += pressure[i].fitting_ns;
	}
	return fitting_ns > lacked_ns / 2;
}
