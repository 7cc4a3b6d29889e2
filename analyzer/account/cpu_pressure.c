/*
 * analyzer/account/cpu_pressure.c: how many threads of a host made CUDA calls at a time, and when
 * they got no CPU. Called by the accounting for calls, and by the report.
 */
#include <stdlib.h>
#include "cpu_pressure.h"
#include "cudaspy/trace_format.h"
#include "base/median.h"

#define KNOWN_LEAST_NS 10000000 /* of a slice: less says nothing */

void cpu_pressure_release(struct cpu_pressure *pressure)
{
	free(pressure->slices);
	free(pressure->settled);
	*pressure = (struct cpu_pressure){0};
}

static struct cpu_pressure_slice *slice_of(struct cpu_pressure *pressure, uint64_t number)
{
	return &pressure->slices[number % CPU_PRESSURE_SLICES];
}

/* Of the time of the CPUs that they may use, how much did the host's processes have? 0 to 1. */
static double own_part(const struct cpu_pressure *pressure, const struct cpu_pressure_slice *slice)
{
	double part = (double)slice->ran_ns / ((double)slice->known_ns * (double)pressure->cpus);

	return part > 1 ? 1 : part;
}

static void add_slice(struct cpu_pressure *pressure, const struct cpu_pressure_slice *slice)
{
	uint64_t own_ns;

	pressure->lacked_ns += slice->lacked_ns;
	if (slice->known_ns < KNOWN_LEAST_NS || !pressure->cpus) {
		pressure->fitting_ns += slice->threads <= pressure->cpus ? slice->lacked_ns : 0;
		return;
	}
	own_ns = (uint64_t)((double)slice->lacked_ns * own_part(pressure, slice));
	pressure->known_lacked_ns += slice->lacked_ns;
	pressure->own_lacked_ns += own_ns;
	pressure->fitting_ns += slice->lacked_ns - own_ns;
}

static void settle_slice(struct cpu_pressure *pressure, uint64_t number)
{
	struct cpu_pressure_slice *slice = slice_of(pressure, number);

	if (!pressure->apart) {
		add_slice(pressure, slice);
	} else if (slice->threads || slice->lacked_ns || slice->known_ns) {
		pressure->settled =
			grow(pressure->settled, pressure->n_settled, sizeof(*pressure->settled));
		pressure->settled[pressure->n_settled++] =
			(struct cpu_pressure_settled){number, *slice};
	}
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
		settle_slice(pressure, pressure->first);
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

/* The part of a time that lies in a slice. */
static uint64_t part_in(const struct cpu_pressure *pressure, uint64_t slice, uint64_t from_ns,
			uint64_t to_ns)
{
	uint64_t begin_ns = max_u64(cpu_pressure_slice_ns(pressure, slice), from_ns);
	uint64_t end_ns = min_u64(cpu_pressure_slice_ns(pressure, slice + 1), to_ns);

	return end_ns - min_u64(begin_ns, end_ns);
}

static void add_use(struct cpu_pressure *pressure, struct cpu_use *use, uint64_t number,
		    uint64_t part_ns, double rate)
{
	struct cpu_pressure_slice *slice = slice_of(pressure, number);

	if (use->slice != number)
		use->known_ns = 0;
	use->slice = number;
	use->known_ns += part_ns;
	slice->ran_ns += (uint64_t)((double)part_ns * rate);
	slice->known_ns = max_u64(slice->known_ns, use->known_ns);
}

void cpu_pressure_ran(struct cpu_pressure *pressure, struct cpu_use *use, uint64_t ns, uint32_t ran)
{
	struct cpu_use before = *use;
	uint64_t number, last;
	double rate;

	if (before.ran &&
	    ns <= before.looked_ns) /* of two threads at a time: the later one is enough */
		return;
	use->ran = ran;
	use->looked_ns = ns;
	if (!before.ran || !pressure->begin_ns || ns <= pressure->begin_ns)
		return;
	rate = (double)(uint32_t)(ran - before.ran) * SPY_RAN_UNIT /
	       (double)(ns - before.looked_ns);
	last = cpu_pressure_slice(pressure, ns);
	open_until(pressure, last);
	number = max_u64(cpu_pressure_slice(pressure, before.looked_ns), pressure->first);
	for (; number <= last; number++)
		add_use(pressure, use, number, part_in(pressure, number, before.looked_ns, ns),
			rate);
}

void cpu_pressure_settle(struct cpu_pressure *pressure)
{
	for (; pressure->first < pressure->end; pressure->first++)
		settle_slice(pressure, pressure->first);
}

static int by_number(const void *a, const void *b)
{
	const struct cpu_pressure_settled *x = a, *y = b;

	return COMPARE(x->number, y->number);
}

void cpu_pressure_join(struct cpu_pressure *pressure, const struct cpu_pressure *const *parts,
		       size_t n)
{
	struct cpu_pressure_settled *all = NULL;
	size_t i, count = 0;

	for (i = 0; i < n; i++) {
		all = xrealloc(all, count + parts[i]->n_settled, sizeof(*all));
		if (parts[i]->n_settled)
			memcpy(all + count, parts[i]->settled, parts[i]->n_settled * sizeof(*all));
		count += parts[i]->n_settled;
	}
	if (count)
		qsort(all, count, sizeof(*all), by_number);
	for (i = 0; i < count; i++) {
		if (i + 1 < count && all[i + 1].number == all[i].number) {
			all[i + 1].slice.lacked_ns += all[i].slice.lacked_ns;
			all[i + 1].slice.threads += all[i].slice.threads;
			all[i + 1].slice.ran_ns += all[i].slice.ran_ns;
			all[i + 1].slice.known_ns =
				max_u64(all[i + 1].slice.known_ns, all[i].slice.known_ns);
			continue;
		}
		add_slice(pressure, &all[i].slice);
	}
	free(all);
}

bool cpu_pressure_fits(const struct cpu_pressure *pressure, size_t n)
{
	uint64_t lacked_ns = 0, fitting_ns = 0;

	for (size_t i = 0; i < n; i++) {
		lacked_ns += pressure[i].lacked_ns;
		fitting_ns += pressure[i].fitting_ns;
	}
	return fitting_ns > lacked_ns / 2;
}

unsigned int cpu_pressure_own_percent(const struct cpu_pressure *pressure)
{
	if (pressure->known_lacked_ns <= pressure->lacked_ns / 2)
		return 0;
	return (unsigned int)(100 * pressure->own_lacked_ns / pressure->known_lacked_ns) ?: 1;
}
