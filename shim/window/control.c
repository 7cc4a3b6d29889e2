/*
 * shim/window/control.c: the control loop of --overhead. Runs on the application's threads, in slow paths.
 *
 * A rougher estimate than the analyzer's (docs/COST.md) is enough: the mean of the relative differences of the rates of
 * calls in the windows of a block, large ones cut off, old ones forgotten by and by. All numbers are whole: millionths.
 */
#include <stdatomic.h>
#include "record/board.h"
#include "record/session.h"
#include "window/control.h"

#define MILLION 1000000
#define BLOCKS 64 /* more than a frame has: those of the frame before are whole */
#define MOST 250000 /* a larger difference of two rates is cut off there */
#define REMEMBERED 512 /* differences */
#define LEAST 24 /* before there are so many, nothing is changed */
#define SURE 128 /* differences; until then all frames are measured, then … */
#define MEASURED 60 /* … so many of a thousand */
#define MEASURED_COST \
	600 /* so much of a thousand of what recording takes, in measured time: two windows of three */

/* One block: calls in a number of cycles, by kind; sums of threads. */
static struct tally {
	_Atomic uint64_t block;
	_Atomic uint64_t rate[SPY_COST_KINDS];
} tallies[BLOCKS];

/* Recording with everything, over … */
static struct difference {
	int64_t mean;
	_Atomic uint32_t n;
} over[SPY_COST_KINDS];

static _Atomic uint32_t wanted;
static uint64_t evaluated; /* blocks before that one are in the means */
static uint32_t full, recorded; /* of a million: with everything; with or without */

#define RATE_CYCLES ((uint64_t)1 << 40)

void spy_control_begin(uint32_t ppm)
{
	wanted = ppm;
	evaluated = 0;
	full = recorded = MILLION;
	for (int i = 0; i < BLOCKS; i++)
		tallies[i].block = 0;
	for (int i = 0; i < SPY_COST_KINDS; i++) {
		over[i].mean = 0;
		over[i].n = 0;
	}
	if (ppm)
		spy_session->board->overhead_ppm = ppm;
}

bool spy_control_is_on(void)
{
	return wanted;
}

void spy_control_count(uint64_t window, enum spy_cost_kind kind, uint64_t calls, uint64_t cycles)
{
	struct tally *tally = &tallies[window / 4 % BLOCKS];
	uint64_t block = atomic_load(&tally->block);

	if (!wanted || !cycles || calls >= 1u << 23)
		return;
	/* The first one of a block clears what was there. One that is late by a whole round is of no use. */
	if (block < window / 4 && atomic_compare_exchange_strong(&tally->block, &block, window / 4))
		for (int i = 0; i < SPY_COST_KINDS; i++)
			atomic_store(&tally->rate[i], 0);
	if (atomic_load(&tally->block) == window / 4)
		atomic_fetch_add(&tally->rate[kind], calls * RATE_CYCLES / cycles);
}

/* ---- what was measured ----------------------------------------------------------------------- */

static void remember(struct difference *d, uint64_t with, uint64_t without)
{
	int64_t difference;

	if (!with || !without)
		return;
	difference = (int64_t)(2.0 * MILLION * ((double)without - (double)with) /
			       ((double)without + (double)with));
	if (difference > MOST)
		difference = MOST;
	if (difference < -MOST)
		difference = -MOST;
	if (d->n < REMEMBERED)
		d->n++;
	d->mean += (difference - d->mean) / (int64_t)d->n;
}

/* Blocks before that one are whole, but for threads that have made no call since. */
static void evaluate(uint64_t before)
{
	for (int i = 0; i < BLOCKS; i++) {
		struct tally *tally = &tallies[i];
		uint64_t block = atomic_load(&tally->block);
		uint64_t all = atomic_load(&tally->rate[SPY_COST_ALL]);

		if (block < evaluated || block >= before)
			continue;
		for (int kind = SPY_COST_COUNTING; kind < SPY_COST_KINDS; kind++)
			remember(&over[kind], all, atomic_load(&tally->rate[kind]));
	}
	evaluated = before;
}

static int64_t at_least_0(int64_t number)
{
	return number > 0 ? number : 0;
}

/* Which parts of the time make `may` of what recording takes, all and without probes and stacks? */
static void divide(int64_t may, int64_t all, int64_t lean)
{
	if (may < 0)
		may = 0;
	full = recorded = MILLION;
	if (all <= may)
		return;
	if (lean <= may) {
		full = (uint32_t)((may - lean) * MILLION / (all - lean));
	} else {
		full = 0;
		recorded = (uint32_t)(may * MILLION / lean);
	}
}

static void show(int64_t all, int64_t lean)
{
	struct spy_board *board = spy_session->board;

	spy_board_show(board->cost_ppm, (int32_t)all);
	spy_board_show(board->lean_ppm, (int32_t)lean);
}

static void control(void)
{
	int64_t all = at_least_0(over[SPY_COST_COUNTING].mean), parts, lean, may;
	int64_t measured = over[SPY_COST_COUNTING].n < SURE ? 1000 : MEASURED;

	if (over[SPY_COST_COUNTING].n < LEAST)
		return;
	parts = at_least_0(over[SPY_COST_NO_PROBES].mean) +
		at_least_0(over[SPY_COST_NO_STACKS].mean);
	lean = at_least_0(all - parts);
	may = (int64_t)wanted;
	if (measured < 1000)
		may = (may * 1000 - measured * all * MEASURED_COST / 1000) / (1000 - measured);
	divide(may, all, lean);
	show(all, lean);
}

/* ---- what is done ---------------------------------------------------------------------------- */

bool spy_control_measures(const struct spy_cost_frame *frame)
{
	return over[SPY_COST_COUNTING].n < SURE || frame->random % 1000 < MEASURED;
}

enum spy_cost_kind spy_control_decide(const struct spy_cost_frame *frame)
{
	uint64_t drawn = (frame->random >> 24) % MILLION;

	evaluate((frame->number - 1) * SPY_COST_BLOCKS_MOST);
	control();
	if (drawn < full)
		return SPY_COST_ALL;
	return drawn < recorded ? SPY_COST_LEAN : SPY_COST_COUNTING;
}

void spy_control_spent(enum spy_cost_kind kind, uint64_t cycles)
{
	struct spy_board *board = spy_session->board;

	if (kind < SPY_COST_KINDS)
		spy_board_show(board->cost_cycles[kind], board->cost_cycles[kind] + cycles);
}
