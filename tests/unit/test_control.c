/* links: shim/window/control.c */
/*
 * tests/unit/test_control.c: --overhead keeps to its limit, in the first seconds, too: of made-up programs, of which it is known
 * what recording takes. Frames, windows and the program's calls pass in no time; its pace varies as those of real ones do.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "state/session.h"
#include "window/control.h"

#define SECOND 1000000000ull /* cycles are nanoseconds */
#define TRIES 20
#define FIRST_NS 20000000 /* cost.c: are recorded */

struct spy_session *spy_session;

/* What takes how much longer, as a part; calls in a second of each thread while they are only counted; by how much they vary
 * from window to window. */
struct program {
	const char *name;
	double all, no_probes, no_stacks, calls_per_s, varies;
	unsigned int threads;
	double early; /* times the limit that a run of two seconds may take, as a mean: a call may cost more than was thought */
};

static const struct program programs[] = {
	{"a million calls a second", 0.20, 0.20, 0.20, 1e6, 0.01, 1, 1},
	{"launch-bound", 0.045, 0.043, 0.044, 250e3, 0.02, 1, 1},
	{"many threads that contend", 0.12, 0.06, 0.12, 60e3, 0.08, 8, 1.5},
	{"a training step", 0.015, 0.015, 0.010, 27e3, 0.03, 1, 1},
	{"costs more than it has calls for", 0.30, 0.10, 0.25, 50e3, 0.03, 1, 3},
	{"uneven", 0.10, 0.10, 0.10, 400e3, 0.20, 2, 1},
	{"quiet", 0.0, 0.0, 0.0, 200, 0.05, 1, 1},
};

struct outcome {
	double overhead; /* what recording took, as a part of the rest */
	double recorded; /* part of the time with everything */
};

static uint64_t state;

static double drawn(void) /* from -1 to 1, evenly */
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(int64_t)state / 9223372036854775808.0;
}

static double longer_by(const struct program *program, enum spy_cost_kind kind)
{
	switch (kind) {
	case SPY_COST_ALL:
		return program->all;
	case SPY_COST_NO_PROBES:
		return program->no_probes;
	case SPY_COST_NO_STACKS:
		return program->no_stacks;
	case SPY_COST_LEAN:
		return fmax(program->no_probes + program->no_stacks - program->all, 0);
	default:
		return 0;
	}
}

static double taken, passed, with_all;

static void pass(const struct program *program, enum spy_cost_kind kind, uint64_t ns)
{
	double longer = longer_by(program, kind);

	taken += (double)ns * longer / (1 + longer);
	passed += (double)ns;
	with_all += kind == SPY_COST_ALL ? (double)ns : 0;
	spy_control_spent(kind, ns, 0);
}

static void pass_window(const struct program *program, enum spy_cost_kind kind, uint64_t number,
			uint64_t ns)
{
	for (unsigned int i = 0; i < program->threads; i++) {
		double calls = program->calls_per_s * (double)ns / 1e9 /
			       (1 + longer_by(program, kind)) * (1 + program->varies * drawn());

		spy_control_count(number, kind, (uint64_t)llround(calls), ns);
	}
	pass(program, kind, ns);
}

/* From `from` ns of the frame on. */
static void pass_frame(const struct program *program, uint64_t number, uint64_t from)
{
	struct spy_cost_frame frame = spy_cost_frame(number);
	struct spy_control_decision decision = spy_control_decide(&frame);
	const uint8_t kinds[SPY_COST_PLACES] = {SPY_COST_ALL, SPY_COST_COUNTING,
						number % 2 ? SPY_COST_NO_STACKS
							   : SPY_COST_NO_PROBES};
	uint64_t at = frame.first_ns;

	assert_true(decision.blocks <= frame.blocks);
	if (from < at)
		pass(program, decision.kind, at - from);
	for (uint64_t block = 0; block < decision.blocks; block++)
		for (uint64_t place = 0; place < SPY_COST_PLACES; place++, at += frame.length_ns)
			if (at >= from)
				pass_window(program, kinds[spy_cost_order(&frame, block)[place]],
					    spy_cost_window(number, block, place), frame.length_ns);
	if (at < from)
		at = from;
	pass(program, decision.kind, SPY_COST_FRAME_NS - at);
}

static struct outcome run(const struct program *program, uint32_t ppm, unsigned int seconds,
			  uint64_t number)
{
	uint64_t last = number + seconds * SECOND / SPY_COST_FRAME_NS;

	state = number;
	taken = passed = with_all = 0;
	spy_control_begin(ppm);
	pass(program, SPY_COST_ALL, FIRST_NS);
	pass_frame(program, number, (uint64_t)((drawn() + 1) / 2 * (double)SPY_COST_FRAME_NS));
	while (number++ < last)
		pass_frame(program, number, 0);
	return (struct outcome){taken / (passed - taken), with_all / passed};
}

/* In each run, of all that begin at some time or other. */
static void test_limit_is_kept(void **unused)
{
	static const unsigned int lengths[] = {2, 5, 10, 60};
	static const uint32_t limits[] = {10000, 20000, 50000};

	(void)unused;
	for (size_t p = 0; p < sizeof(programs) / sizeof(*programs); p++)
		for (size_t l = 0; l < sizeof(limits) / sizeof(*limits); l++)
			for (size_t s = 0; s < sizeof(lengths) / sizeof(*lengths); s++) {
				double sum = 0, most = 0, recorded = 0, limit = limits[l] / 1e6;

				for (uint64_t i = 0; i < TRIES; i++) {
					struct outcome o = run(&programs[p], limits[l], lengths[s],
							       6900000000ull + 977 * i);

					sum += o.overhead / TRIES;
					recorded += o.recorded / TRIES;
					most = fmax(most, o.overhead);
				}
				printf("%s, limit %g %%, %u s: %.2f %% (most %.2f), everything in "
				       "%.0f %%\n",
				       programs[p].name, limit * 100, lengths[s], sum * 100,
				       most * 100, recorded * 100);
				assert_true(sum <=
					    limit * (lengths[s] < 5 ? programs[p].early : 1));
				if (lengths[s] >= 10)
					assert_true(most <= limit * (1.3 + 2 * programs[p].varies));
				if (lengths[s] == 60 && programs[p].all >= limit)
					assert_true(sum >= 0.6 * limit);
				if (programs[p].all == 0.0)
					assert_true(recorded > 0.7);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_limit_is_kept)};

	spy_session = calloc(1, sizeof(*spy_session));
	spy_session->board = calloc(1, sizeof(*spy_session->board));
	spy_session->frequency = SECOND;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
