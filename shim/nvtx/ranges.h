/*
 * shim/nvtx/ranges.h: ranges and marks that the program announces become records. Called on the
 * application's threads, within NVTX's functions (callbacks.c), and where a thread's stream begins.
 */
#ifndef CUDASPY_SHIM_NVTX_RANGES_H
#define CUDASPY_SHIM_NVTX_RANGES_H

#include <stdint.h>
#include "cudaspy/trace_format.h"

struct spy_thread;

/* What is said of a range or a mark. */
struct spy_said {
	uint32_t name; /* its number: names.h */
	uint16_t domain;
	uint8_t payload_type; /* enum spy_range_payload */
	uint32_t category; /* 0 none */
	uint64_t payload;
};

/* The depth of a range in its domain and thread, from 0 on: of the one that begins, and of the one
 * that ends; -1: none is open. */
int spy_range_push(const struct spy_said *said);
int spy_range_pop(uint16_t domain);

/* A number that no other range of the process has. */
uint64_t spy_range_new_id(void);
void spy_range_start(const struct spy_said *said, uint64_t id);
void spy_range_end(uint64_t id);
void spy_range_mark(const struct spy_said *said);

/* What the program calls a thing. object: as in struct spy_rec_nvtx_name. */
void spy_range_name_object(enum spy_nvtx_named what, uint64_t object, const char *name);

/* The thread has a slot now, or in a bounded trace a new packet: writes which ranges are open. */
void spy_ranges_write_open(struct spy_thread *thread);

/* When a session begins: writes what things are called. */
void spy_ranges_begin(void);

/* Writes the counters to the board. */
void spy_ranges_count(void);

void spy_ranges_forked(void);

#endif
