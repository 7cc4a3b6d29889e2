/*
 * analyzer/trace/records.h: what the record of a copy, or of a call about memory, says.
 */
#ifndef CUDASPY_RECORDS_H
#define CUDASPY_RECORDS_H

#include <stdbool.h>
#include "cudaspy/trace_format.h"

/* Does it move data, if it does not fail? Not if it only becomes part of a graph. */
static inline bool copy_moves(const struct spy_rec_copy *copy)
{
	return !copy->captured && copy->bytes;
}

static inline bool copy_is_pageable(const struct spy_rec_copy *copy)
{
	return copy->src_kind == SPY_MEM_PAGEABLE || copy->dst_kind == SPY_MEM_PAGEABLE;
}

/* A null pointer was freed. */
static inline bool memory_is_nothing(const struct spy_rec_memory *memory)
{
	return !memory->address && !memory->bytes;
}

/* From one GPU to another, as far as the recorder knew. */
static inline bool copy_is_between_gpus(const struct spy_rec_copy *copy)
{
	return copy->src_device != copy->dst_device && copy->src_device != SPY_DEVICE_NONE &&
	       copy->dst_device != SPY_DEVICE_NONE;
}

/* Where memory lies of which no allocation was seen (a pool's) is asked for large copies only. */
static inline bool copy_may_be_between_gpus(const struct spy_rec_copy *copy)
{
	bool known = copy->src_device != SPY_DEVICE_NONE && copy->dst_device != SPY_DEVICE_NONE;

	return known ? copy->src_device != copy->dst_device
		     : copy->direction == SPY_DIR_D2D || copy->direction == SPY_DIR_UNKNOWN;
}

#endif
