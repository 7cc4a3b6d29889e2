/*
 * shim/hook/slots.h: the table of slots, one for each stub. Read on the application's threads by
 * each call; changed when the library is loaded, and at first calls and look-ups.
 */
#ifndef CUDASPY_SHIM_SLOTS_H
#define CUDASPY_SHIM_SLOTS_H

#include <stddef.h>
#include "cudaspy/function_numbers.h"
#include "state/call.h"
#include "arch/frame_layout.h"

/* How many of the two halves of the list are the runtime's; each half is in strcmp order. */
enum {
#define COUNT_DRIVER 0
#define COUNT_RT 1
#define COUNT_RT11 1
#define COUNT_RT12 1
#define COUNT_RT13 1
#define COUNT_RT11_12 1
#define COUNT_RT12_13 1
	SPY_RUNTIME_ROWS = 0
#define ENTRY(name, layer, record, contract, inspector) +COUNT_##layer
#include "cudaspy/entrypoints.def"
};

struct spy_generation {
	uint8_t layer; /* enum spy_layer */
	const char *version;
};

extern const struct spy_generation spy_generations[3];

/* Slot numbers: 3 * enum spy_fn + generation (0: runtime 11.0 or the driver, 1: 12, 2: 13), then
 * the spare ones. */
#define SPY_SLOTS (SPY_FN_COUNT * 3 + SPY_SPARE_STUBS)

extern struct spy_slot spy_slots[SPY_SLOTS];

/* Not those of the generations that a row lacks. */
static inline bool spy_slots_exist(size_t slot)
{
	return spy_slots[slot].window;
}

/* Exported names by enum spy_fn. */
extern const char *const spy_names[SPY_FN_COUNT];

/* The rest of the table; once, when the library is loaded. */
void spy_slots_init(void);

/* Is it a function of the runtime's? */
bool spy_slots_is_runtime(int fn);

/* The slot of a row for a layer; of another layer's functions the first one. */
uint32_t spy_slots_of_layer(int fn, int layer);

/* A slot of the row that exists: a row of one generation leaves the others' empty. */
uint32_t spy_slots_any(int fn);

/* The version node of a slot's stub; NULL for the driver's and for spare ones. */
const char *spy_slots_version(uint64_t index, int fn);

/* Whether the slot's real function is no library of CUDA's; before its real function is set. */
void spy_slots_set_foreign(struct spy_slot *slot, bool foreign);

/* The slot is about to be used for the first time. */
void spy_slots_prepare(struct spy_slot *slot);

/* From now on no call is recorded, at the cost of a branch. */
void spy_slots_disable(void);

/* A row is counted, or traced, instead of what the list says. Rows that are transparent stay so; a
 * counted one is traced after all when a page of the board has no counter left. */
void spy_slots_count(uint16_t fn);
void spy_slots_trace(uint16_t fn);

/*
 * Of a counted function's calls some are timed (call.c): so many of each SPY_TIMED_AMONG that a thread makes, and more where many
 * prove long: a getter that enters the kernel, or waits for a lock that no probe sees. By function; 0: none, for the user wants it counted.
 */
#define SPY_TIMED_LEAST 4
#define SPY_TIMED_AMONG 64
extern uint8_t spy_slots_timed[SPY_FN_COUNT];

/* A timed call took so many cycles. True: that is worth a record. */
bool spy_slots_took(const struct spy_slot *slot, uint64_t cycles);

/* Of the process, once it records. */
void spy_slots_begin(uint64_t frequency);

/* A counter for a row that is nested for the first time, and then only counted (count_when_nested).
 * SPY_COUNTER_NONE: there is none left. Takes no lock. */
uint16_t spy_slots_number(struct spy_slot *slot);

/* Which function each counter of a slot's page counts. */
void spy_slots_list_counters(struct spy_board *board);

/* A session is active: the same in its board, for those that were given out before. */
void spy_slots_first_records(void);

/* Number of an exported name, -1 if it has no row. */
int spy_slots_find(const char *name);

#endif
