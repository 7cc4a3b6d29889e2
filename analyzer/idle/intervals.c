/*
 * analyzer/idle/intervals.c: what processes tell of a GPU becomes intervals in which none of them had anything for it to
 * do, and the charges for them. Called for events, in the order of their positions: by idle.c as records are read, or by the
 * replay of what parts of a set have written down (analyzer/parallel/).
 */
#include <stdlib.h>
#include "idle.h"
#include "blame/journal.h"

/* ---- charges --------------------------------------------------------------------------------- */

struct charging {
	struct idle *idle;
	struct idle_interval *interval;
	uint64_t owner;
	const struct process *process;
};

static struct idle_sum *charge_part(const struct charging *c, const struct idle_part *part,
				    uint64_t ns)
{
	struct idle_interval *interval = c->interval;
	struct idle_sum *sum = idle_sums_add(&c->idle->sums, c->owner, c->process, part, ns);
	size_t i = 0;

	while (i < interval->n_charges && interval->charges[i].sum != sum)
		i++;
	if (i == interval->n_charges) {
		interval->charges = grow(interval->charges, i, sizeof(*interval->charges));
		interval->charges[interval->n_charges++] = (struct idle_charge){.sum = sum};
	}
	interval->charges[i].ns += ns;
	return sum;
}

static void charge(void *data, const struct idle_part *part, uint64_t ns)
{
	const struct charging *c = data;

	idle_sum_follow(c->idle->accounts, &c->idle->threads, charge_part(c, part, ns), part, ns);
}

static void charge_cut(void *data, const struct idle_piece *piece, uint64_t ns)
{
	const struct charging *c = data;

	idle_pieces_follow(&c->idle->sums, charge_part(c, &piece->part, ns), piece, ns);
}

/* The process's own work was done before that of others: of what its thread did since then, the rest. */
static void charge_rest(struct charging *c, const struct idle_event *event, uint64_t own_begin_ns)
{
	struct idle *idle = c->idle;
	const struct idle_interval *interval = c->interval;
	const struct idle_piece *pieces;
	size_t n;

	if (event->activity) {
		pieces = event->activity->pieces;
		n = event->activity->n_pieces;
	} else {
		idle_pieces_collect(&idle->pieces, idle->accounts, &idle->threads, event->account,
				    own_begin_ns, interval->end_ns);
		pieces = idle->pieces.all;
		n = idle->pieces.n;
	}
	idle_pieces_cut(pieces, n, interval->begin_ns, interval->end_ns, charge_cut, c);
}

static void charge_all(struct idle *idle, const struct idle_event *event, uint64_t owner,
		       struct idle_interval *interval)
{
	const struct phase *phase =
		&idle->accounts->expect->phases.all[event->process->trace->index];
	uint64_t own_begin_ns = max_u64(event->own_since_ns, phase->begin_ns);
	struct charging c = {idle, interval, owner, event->process};

	if (event->activity || own_begin_ns < interval->begin_ns)
		charge_rest(&c, event, own_begin_ns);
	else
		host_divide(idle->accounts,
			    host_thread_find(&idle->threads, event->account->thread),
			    event->account, interval->begin_ns, interval->end_ns, charge, &c);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

uint64_t *idle_of_range(struct idle_ranges *ranges, const struct range_name *name)
{
	while (ranges->n <= name->index) {
		ranges->ns = grow(ranges->ns, ranges->n, sizeof(*ranges->ns));
		ranges->ns[ranges->n++] = 0;
	}
	return &ranges->ns[name->index];
}

/* ---- intervals ------------------------------------------------------------------------------- */

/* No later call can take any of it back. */
static void show_interval(const struct idle *idle, const struct idle_gpu *gpu,
			  const struct idle_interval *interval)
{
	const struct listener *listener = idle->accounts->listener;
	const struct idle_charge *most = NULL;

	if (!listener || !listener->on_idle || !interval->ns)
		return;
	for (size_t i = 0; i < interval->n_charges; i++)
		if (!most || interval->charges[i].ns > most->ns)
			most = &interval->charges[i];
	listener->on_idle(listener->data,
			  &(struct shown_idle){.gpu = (uint32_t)(gpu - idle->gpus),
					       .cause = most ? (uint8_t)most->sum->key.cause
							     : IDLE_UNEXPLAINED,
					       .begin_ns = interval->begin_ns,
					       .end_ns = interval->end_ns,
					       .ns = interval->ns});
}

void idle_show_rest(const struct idle *idle)
{
	for (size_t i = 0; i < idle->n_gpus; i++) {
		const struct idle_gpu *gpu = &idle->gpus[i];
		uint64_t kept = min_u64(gpu->n_intervals, gpu->intervals_size);

		for (uint64_t k = gpu->n_intervals - kept; k < gpu->n_intervals; k++)
			show_interval(idle, gpu, &gpu->intervals[k % gpu->intervals_size]);
	}
}

struct idle_interval *idle_next_interval(struct idle_gpu *gpu)
{
	gpu->intervals = ring_grow(gpu->intervals, &gpu->intervals_size, gpu->n_intervals,
				   IDLE_KEPT, sizeof(*gpu->intervals));
	return &gpu->intervals[gpu->n_intervals++ % gpu->intervals_size];
}

/* For GPUs of other parts. */
static struct journal_entry *write_down(struct idle *idle, const struct idle_gpu *gpu,
					enum journal_kind kind)
{
	uint32_t index = (uint32_t)(gpu - idle->gpus);
	struct journal_entry *entry;

	if (!idle->journal || index >= IDLE_PAIRED)
		return NULL;
	entry = journal_add(idle->journal, kind);
	entry->gpu = index;
	return entry;
}

/* What of that time lies in the process's working phase. NULL: nothing. */
static struct idle_interval *begin_interval(struct idle *idle, struct idle_gpu *gpu,
					    const struct process *process, uint64_t begin_ns,
					    uint64_t end_ns)
{
	const struct phase *phase = &idle->accounts->expect->phases.all[process->trace->index];
	struct idle_charge *charges = NULL;
	struct idle_interval *interval;
	struct journal_entry *entry;

	begin_ns = max_u64(begin_ns, phase->begin_ns);
	end_ns = min_u64(end_ns, phase->end_ns);
	if (begin_ns >= end_ns)
		return NULL;
	interval = idle_next_interval(gpu);
	if (gpu->n_intervals > gpu->intervals_size) { /* the place of an old one */
		show_interval(idle, gpu, interval);
		charges = interval->charges;
	}
	*interval = (struct idle_interval){.begin_ns = begin_ns,
					   .end_ns = end_ns,
					   .ns = end_ns - begin_ns,
					   .charges = charges,
					   .ranges = &idle->ranges};
	gpu->idle_ns += interval->ns;
	entry = write_down(idle, gpu, JOURNAL_IDLE);
	if (entry) {
		entry->idle.begin_ns = begin_ns;
		entry->idle.end_ns = end_ns;
	}
	idle_together(idle->gpus, idle->n_gpus, (size_t)(gpu - idle->gpus), interval);
	return interval;
}

static uint64_t owner_of(const struct idle *idle, const struct idle_gpu *gpu)
{
	return idle_owner_gpu((size_t)(gpu - idle->gpus));
}

void idle_add_interval(struct idle *idle, struct idle_gpu *gpu, const struct process *process,
		       uint64_t begin_ns, uint64_t end_ns, const struct idle_part *part)
{
	const struct idle_interval *last =
		gpu->n_intervals ? &gpu->intervals[(gpu->n_intervals - 1) % gpu->intervals_size]
				 : NULL;
	struct charging c = {.idle = idle, .owner = owner_of(idle, gpu), .process = process};

	if (last)
		begin_ns = max_u64(begin_ns, last->end_ns);
	c.interval = begin_interval(idle, gpu, process, begin_ns, end_ns);
	if (c.interval)
		charge(&c, part, c.interval->ns);
}

void idle_end(struct idle *idle, struct idle_gpu *gpu, const struct idle_event *event)
{
	struct idle_interval *interval =
		begin_interval(idle, gpu, event->process, gpu->since_ns, event->begin_ns);

	if (!interval)
		return;
	interval->range =
		event->activity ? event->activity->range
				: ranges_innermost(&idle->accounts->ranges, event->account->thread);
	if (event->activity)
		interval->ranges = event->activity->ranges;
	if (interval->range)
		*idle_of_range(interval->ranges, interval->range) += interval->ns;
	charge_all(idle, event, owner_of(idle, gpu), interval);
}

static void shrink(struct idle_gpu *gpu, struct idle_interval *interval, uint64_t by_ns)
{
	uint64_t left_ns = interval->ns - by_ns, rest_ns = by_ns, ns;

	for (size_t i = 0; i < interval->n_charges; i++) {
		struct idle_charge *part = &interval->charges[i];

		ns = i + 1 < interval->n_charges
			     ? (uint64_t)((double)part->ns * (double)by_ns / (double)interval->ns)
			     : rest_ns;
		ns = min_u64(min_u64(ns, rest_ns), part->ns);
		part->ns -= ns;
		part->sum->ns -= ns;
		rest_ns -= ns;
	}
	for (size_t i = 0; rest_ns && i < interval->n_charges; i++) { /* what rounding has left */
		ns = min_u64(rest_ns, interval->charges[i].ns);
		interval->charges[i].ns -= ns;
		interval->charges[i].sum->ns -= ns;
		rest_ns -= ns;
	}
	interval->ns = left_ns;
	if (interval->range)
		*idle_of_range(interval->ranges, interval->range) -= by_ns;
	gpu->idle_ns -= by_ns;
}

void idle_take_back(struct idle *idle, struct idle_gpu *gpu, const struct idle_event *event)
{
	uint64_t begin_ns = event->begin_ns, end_ns = event->ns;
	uint64_t i, least = gpu->n_intervals > IDLE_KEPT ? gpu->n_intervals - IDLE_KEPT : 0;
	struct journal_entry *entry;

	for (i = gpu->n_intervals; i > least; i--) {
		struct idle_interval *interval = &gpu->intervals[(i - 1) % gpu->intervals_size];
		uint64_t from_ns, to_ns;

		if (interval->end_ns <= begin_ns)
			return;
		from_ns = max_u64(interval->begin_ns, begin_ns);
		to_ns = min_u64(interval->end_ns, end_ns);
		if (from_ns < to_ns && interval->ns) {
			uint64_t by_ns = min_u64(to_ns - from_ns, interval->ns);

			entry = write_down(idle, gpu, JOURNAL_TAKEN_BACK);
			if (entry) {
				entry->idle.number = i - 1;
				entry->idle.by_ns = by_ns;
			}
			shrink(gpu, interval, by_ns);
		}
	}
	if (least && gpu->intervals[least % gpu->intervals_size].begin_ns > begin_ns)
		gpu->doubt_ns += gpu->intervals[least % gpu->intervals_size].begin_ns - begin_ns;
}

/* ---- what is certain ------------------------------------------------------------------------- */

uint64_t idle_certain_ns(const struct idle_gpu *gpu)
{
	return gpu->idle_ns - min_u64(gpu->doubt_ns, gpu->idle_ns);
}

uint64_t idle_scaled_ns(const struct idle_gpu *gpu, uint64_t ns)
{
	if (!gpu->doubt_ns || !gpu->idle_ns || idle_gpu_is_exact(gpu))
		return ns;
	return (uint64_t)((double)ns * (double)idle_certain_ns(gpu) / (double)gpu->idle_ns);
}
