/*
 * shim/window/control.c: the control loop of --overhead. Runs on the application's threads, in slow paths.
 *
 * A rougher estimate than the analyzer's (docs/COST.md) is enough: the mean of the last relative differences of the rates
 * of calls in the windows of a block, where those far from their median are cut off.
 *
 * What recording has taken so far follows from that and from how long each kind of it was in force. It is a debt where it
 * is more than the limit allows for the time that has gone by, else a credit. A frame is spent on recording if there is
 * credit for the whole of it.
 *
 * Before there are differences, a call is taken to cost PRIOR_NS: how many calls there are in a time is known from the first
 * block on. So a program with many calls is measured by as many blocks as there is credit for, from its begin on.
 */
#include <stdatomic.h>
#include <string.h>
#include "record/board.h"
#include "state/session.h"
#include "window/control.h"

#define MILLION 1e6
#define BLOCKS 64 /* more than a frame has: those of the frame before are whole */
#define FAR 0.25 /* from the median: a difference is cut off there */
#define REMEMBERED 256 /* differences */
/* What recording a call takes more than counting it, as long as that is not known */
#define PRIOR_NS 250
#define PRIOR_WEIGHT 2 /* counts as so many differences */
#define LEAST 8 /* from so many on the cost may be known; … */
#define SURE 128 /* … from so many on it is */
#define MEASURED_UNSURE 120 /* of a thousand frames are measured until then … */
#define MEASURED 60 /* … and later */
#define NEGLIGIBLE 0.05 /* of what recording may take: then it need not be known soon */
#define BEGIN_PART 0.5 /* of the credit goes into measuring, before the cost is known */
#define FORGOTTEN 1024 /* frames after which a time counts 1/e */
#define USED 0.9 /* of what recording may take */
#define WORTH 0.75 /* without probes and stacks has to take less than so much of what all takes */

/* One block: calls in a number of cycles, by kind; sums of threads. */
static struct tally {
	_Atomic uint64_t block;
	_Atomic uint64_t rate[SPY_COST_KINDS];
	_Atomic uint32_t threads; /* in the window in which calls were counted */
} tallies[BLOCKS];

/* Recording with everything, over …: parts of the mean of both. */
static struct differences {
	float last[REMEMBERED];
	uint32_t n, next;
	double mean, error_squared;
} over[SPY_COST_KINDS];

static _Atomic uint32_t wanted;
static uint64_t evaluated; /* blocks before that one are in the means */
static double pace; /* calls of a thread in a cycle, when they were last counted; 0: not known */
static double spent[SPY_COST_KINDS]; /* cycles; old ones are forgotten by and by */
static double share[SPY_COST_KINDS]; /* of these that the recorder has taken */

#define RATE_CYCLES ((uint64_t)1 << 40)

static void clear(struct tally *tally)
{
	for (int i = 0; i < SPY_COST_KINDS; i++)
		atomic_store(&tally->rate[i], 0);
	atomic_store(&tally->threads, 0);
}

void spy_control_begin(uint32_t ppm)
{
	wanted = ppm;
	evaluated = 0;
	pace = 0;
	for (int i = 0; i < BLOCKS; i++) {
		tallies[i].block = 0;
		clear(&tallies[i]);
	}
	memset(over, 0, sizeof(over));
	memset(spent, 0, sizeof(spent));
	memset(share, 0, sizeof(share));
	if (ppm)
		spy_session->board->overhead_ppm = ppm;
}

void spy_control_count(uint64_t window, enum spy_cost_kind kind, uint64_t calls, uint64_t cycles)
{
	struct tally *tally = &tallies[window / 4 % BLOCKS];
	uint64_t block = atomic_load(&tally->block);

	if (!wanted || !cycles || calls >= 1u << 23)
		return;
	/* The first one of a block clears what was there. One that is late by a whole round is of no use. */
	if (block < window / 4 && atomic_compare_exchange_strong(&tally->block, &block, window / 4))
		clear(tally);
	if (atomic_load(&tally->block) != window / 4)
		return;
	atomic_fetch_add(&tally->rate[kind], calls * RATE_CYCLES / cycles);
	if (kind == SPY_COST_COUNTING)
		atomic_fetch_add(&tally->threads, 1);
}

/* ---- what was measured ----------------------------------------------------------------------- */

static void sort(float *numbers, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		float number = numbers[i];
		uint32_t at = i;

		for (; at && numbers[at - 1] > number; at--)
			numbers[at] = numbers[at - 1];
		numbers[at] = number;
	}
}

static void average(struct differences *d)
{
	float sorted[REMEMBERED];
	double middle, sum = 0, squares = 0;

	if (!d->n)
		return;
	memcpy(sorted, d->last, d->n * sizeof(*sorted));
	sort(sorted, d->n);
	middle = (double)sorted[d->n / 2];
	for (uint32_t i = 0; i < d->n; i++) {
		double beside = (double)sorted[i] - middle;

		beside = beside > FAR ? FAR : beside < -FAR ? -FAR : beside;
		sum += beside;
		squares += beside * beside;
	}
	d->mean = middle + sum / d->n;
	d->error_squared = (squares - sum * sum / d->n) / d->n / d->n;
}

static void remember(struct differences *d, uint64_t with, uint64_t without)
{
	if (!with || !without)
		return;
	d->last[d->next++ % REMEMBERED] =
		(float)(2 * ((double)without - (double)with) / ((double)without + (double)with));
	if (d->n < REMEMBERED)
		d->n++;
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
	for (int kind = SPY_COST_COUNTING; kind < SPY_COST_KINDS; kind++)
		average(&over[kind]);
}

/* From that block on. Threads that have not told of it yet would not matter much. */
static void find_pace(uint64_t from)
{
	double sum = 0;
	uint32_t n = 0;

	for (int i = 0; i < BLOCKS; i++) {
		struct tally *tally = &tallies[i];
		uint32_t threads = atomic_load(&tally->threads);

		if (!threads || atomic_load(&tally->block) < from)
			continue;
		sum += (double)atomic_load(&tally->rate[SPY_COST_COUNTING]) / threads;
		n++;
	}
	if (n)
		pace = sum / n / (double)RATE_CYCLES;
}

static double at_least_0(double number)
{
	return number > 0 ? number : 0;
}

/* By how much longer something takes, from a difference as a part of the mean. */
static double longer(double difference)
{
	return 2 * difference / (2 - (difference < 1.9 ? difference : 1.9));
}

/* The part of the time that is the recorder's, where things take so much longer. */
static double share_of(double more)
{
	return more / (1 + more);
}

static void show(double all, double lean)
{
	struct spy_board *board = spy_session->board;

	spy_board_show(board->cost_ppm, (int32_t)(all * MILLION));
	spy_board_show(board->lean_ppm, (int32_t)(lean * MILLION));
}

static double cycles(double ns)
{
	return ns * (double)atomic_load_explicit(&spy_session->frequency, memory_order_relaxed) /
	       1e9;
}

/* By how much longer things take while they are recorded; the less is known, the more that is taken to be the number of
 * calls' matter. */
static double longer_by_all(void)
{
	const struct differences *d = &over[SPY_COST_COUNTING];

	return (d->n * longer(at_least_0(d->mean)) + PRIOR_WEIGHT * pace * cycles(PRIOR_NS)) /
	       (d->n + PRIOR_WEIGHT);
}

/* So much of it is left without one part of the recording. */
static double left_without(double part)
{
	double all = at_least_0(over[SPY_COST_COUNTING].mean);

	return all > 0 ? longer(at_least_0(all - part)) / longer(all) : 1;
}

static double part_of(enum spy_cost_kind without)
{
	return over[without].n >= LEAST ? at_least_0(over[without].mean) : 0;
}

static void estimate(void)
{
	double all = longer_by_all();
	double probes = part_of(SPY_COST_NO_PROBES), stacks = part_of(SPY_COST_NO_STACKS);
	double lean = all * left_without(probes + stacks);

	share[SPY_COST_ALL] = share_of(all);
	share[SPY_COST_NO_PROBES] = share_of(all * left_without(probes));
	share[SPY_COST_NO_STACKS] = share_of(all * left_without(stacks));
	share[SPY_COST_LEAN] = share_of(lean);
	show(all, lean);
}

/* ---- what may be done ------------------------------------------------------------------------ */

static double limit(void)
{
	return wanted / MILLION;
}

/* Cycles that recording may still take, by the limit; less than 0: that it has taken too much. */
static double credit(void)
{
	double taken = 0, all = 0;

	for (int kind = 0; kind < SPY_COST_KINDS; kind++) {
		taken += spent[kind] * share[kind];
		all += spent[kind];
	}
	return limit() * (all - taken) - taken;
}

/* Is it known what recording takes? */
static bool is_known(void)
{
	const struct differences *d = &over[SPY_COST_COUNTING];

	return d->n >= SURE ||
	       (d->n >= LEAST && d->mean > 0 && d->mean * d->mean > 4 * d->error_squared);
}

/* So many of a thousand frames are measured: less where that alone would take half of what may be. */
static unsigned int measured_per_mille(void)
{
	/* Two windows of three are recorded. */
	double part = share[SPY_COST_ALL] * 2 / 3 * (double)SPY_COST_BLOCKS_NS /
		      (double)SPY_COST_FRAME_NS;
	unsigned int n = over[SPY_COST_COUNTING].n < SURE ? MEASURED_UNSURE : MEASURED;

	while (n > 1 && part * n / 1000 > limit() / 2)
		n /= 2;
	return n;
}

/* The credit that a time takes of which such a part is the recorder's; less than 0: it brings some. */
static double takes(double ns, double part)
{
	return cycles(ns) * (part - limit() * (1 - part));
}

static bool has_credit_for(double part)
{
	double frame = takes((double)SPY_COST_FRAME_NS, part);

	return frame <= 0 || credit() >= frame;
}

/* How many blocks of the frame are measured. Two windows of three are recorded. */
static uint32_t blocks_to_measure(const struct spy_cost_frame *frame)
{
	double part = share[SPY_COST_ALL] * 2 / 3;
	double block = takes((double)(SPY_COST_PLACES * frame->length_ns), part);

	if (pace <= 0)
		return 1;
	if (is_known() || share[SPY_COST_ALL] < NEGLIGIBLE * limit())
		return frame->random % 1000 < measured_per_mille() && has_credit_for(part)
			       ? frame->blocks
			       : 0;
	if (block <= 0 || block * frame->blocks <= credit() * BEGIN_PART)
		return frame->blocks;
	return (uint32_t)(at_least_0(credit()) * BEGIN_PART / block);
}

/* The part of the time that recording may take, beside what is measured: a bit less than the limit, so that there is credit
 * when a frame is drawn, nearly always, once the begin is paid back. */
static double may(void)
{
	double measured = measured_per_mille() * share[SPY_COST_ALL] * 2 / 3 / 1000;

	return USED * at_least_0(limit() / (1 + limit()) - measured);
}

/* What the parts of the frame that are not measured are spent on. Multiples of the golden ratio are spread evenly, and are
 * the same in all processes: of those that wait for each other, one that records in fewer frames than another one does so in
 * frames in which that one does, too. */
static enum spy_cost_kind besides(const struct spy_cost_frame *frame)
{
	double drawn = (double)(frame->number * 0x9e3779b97f4a7c15ull >> 11) / (double)(1ull << 53);
	double all = share[SPY_COST_ALL], lean = share[SPY_COST_LEAN], part = may();
	bool has_lean = lean < WORTH * all;

	if (pace <= 0)
		return SPY_COST_COUNTING;
	if (all <= limit() / (1 + limit()))
		return SPY_COST_ALL;
	if (has_lean && part < lean)
		return lean * drawn <= part && has_credit_for(lean) ? SPY_COST_LEAN
								    : SPY_COST_COUNTING;
	if (!has_lean)
		lean = 0;
	if ((all - lean) * drawn <= part - lean && has_credit_for(all))
		return SPY_COST_ALL;
	return has_lean && has_credit_for(lean) ? SPY_COST_LEAN : SPY_COST_COUNTING;
}

struct spy_control_decision spy_control_decide(const struct spy_cost_frame *frame)
{
	struct spy_control_decision decision;

	evaluate((frame->number - 1) * SPY_COST_BLOCKS_MOST);
	find_pace((frame->number - 1) * SPY_COST_BLOCKS_MOST);
	estimate();
	decision.blocks = blocks_to_measure(frame);
	decision.kind = besides(frame);
	for (int kind = 0; kind < SPY_COST_KINDS; kind++)
		spent[kind] -= spent[kind] / FORGOTTEN;
	return decision;
}

/* Time without a call brings no more than a frame's credit: a long sleep shall not be followed by a long time above the
 * limit. */
void spy_control_spent(enum spy_cost_kind kind, uint64_t in, uint64_t idle)
{
	struct spy_board *board = spy_session->board;
	double most = cycles((double)SPY_COST_FRAME_NS);

	if (kind >= SPY_COST_KINDS)
		return;
	spy_board_show(board->cost_cycles[kind], board->cost_cycles[kind] + in + idle);
	spent[kind] += (double)in;
	spent[SPY_COST_COUNTING] += (double)idle < most ? (double)idle : most;
}
