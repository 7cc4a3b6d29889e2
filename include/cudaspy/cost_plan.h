/*
 * include/cudaspy/cost_plan.h: when cost windows are. The recorder follows it; the analyzer learns from it which blocks
 * a program let pass without a call.
 *
 * The time of day is cut into frames. A frame that is measured has a first block somewhere in its first part, and others
 * right behind it, each of three windows of one length. All that is drawn is drawn from the frame's number.
 */
#ifndef CUDASPY_COST_PLAN_H
#define CUDASPY_COST_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define SPY_COST_FRAME_NS 260000000ull
/* Of it blocks take so much: a multiple of each length's block. */
#define SPY_COST_BLOCKS_NS 240000000ull
#define SPY_COST_PLACES 3 /* windows in a block */
#define SPY_COST_BLOCKS_MOST 16 /* in a frame */
#define SPY_COST_PER_MILLE 30 /* of all frames are measured, unless all are */

struct spy_cost_frame {
	uint64_t number;
	uint64_t random;
	uint64_t first_ns; /* from the frame's begin to its first block */
	uint64_t length_ns; /* of each window */
	uint32_t blocks;
	bool sampled; /* it is one of those that are measured in any case */
};

static inline uint64_t spy_cost_mix(uint64_t number)
{
	number = (number + 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
	number = (number ^ number >> 29) * 0x94d049bb133111ebull;
	return number ^ number >> 32;
}

static inline struct spy_cost_frame spy_cost_frame(uint64_t number)
{
	static const uint8_t lengths_ms[] = {5, 5, 10, 10, 10, 20, 20, 40};
	struct spy_cost_frame frame = {.number = number, .random = spy_cost_mix(number)};

	frame.first_ns = (frame.random >> 16) % (SPY_COST_FRAME_NS - SPY_COST_BLOCKS_NS);
	frame.length_ns = lengths_ms[(frame.random >> 12) % sizeof(lengths_ms)] * 1000000ull;
	frame.blocks = (uint32_t)(SPY_COST_BLOCKS_NS / (SPY_COST_PLACES * frame.length_ns));
	frame.sampled = frame.random % 1000 < SPY_COST_PER_MILLE;
	return frame;
}

/* In which order are the kinds in that block of the frame? As indexes, of the first place first. */
static inline const uint8_t *spy_cost_order(const struct spy_cost_frame *frame, uint64_t block)
{
	static const uint8_t orders[][SPY_COST_PLACES] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
							  {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	return orders[spy_cost_mix(frame->random + block) % (sizeof(orders) / sizeof(orders[0]))];
}

/* The number of a window in records. */
static inline uint64_t spy_cost_window(uint64_t frame, uint64_t block, uint64_t place)
{
	return (frame * SPY_COST_BLOCKS_MOST + block) * 4 + place + 1;
}

static inline uint64_t spy_cost_frame_of(uint64_t window)
{
	return window / 4 / SPY_COST_BLOCKS_MOST;
}

#endif
