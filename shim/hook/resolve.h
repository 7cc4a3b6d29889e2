/*
 * shim/hook/resolve.h: the way to the real function, and of ours to the caller.
 */
#ifndef CUDASPY_SHIM_RESOLVE_H
#define CUDASPY_SHIM_RESOLVE_H

#include "record/call.h"
#include "arch/x86_64/frame_layout.h"

/* Slot numbers: 3 * enum spy_fn + generation (0: runtime 11.0 or the driver, 1: 12, 2: 13), then the
 * spare ones. */
#define SPY_SLOTS (SPY_FN_COUNT * 3 + SPY_SPARE_STUBS)

extern struct spy_slot spy_slots[SPY_SLOTS];

/* Slot number -> address of its stub, or NULL (trampoline.S). */
extern void *const spy_stubs[SPY_SLOTS];

/* Exported names by enum spy_fn. */
extern const char *const spy_names[SPY_FN_COUNT];

/* Finds and keeps the real function of a slot. Never NULL: where the process has none, a function
 * that reports "no device". Takes no lock of the dynamic linker's. */
void *spy_resolve(struct spy_slot *slot, uint64_t index);

/* Finds the functions the shim itself interposes; called by the first look-up, by the assembly. */
void spy_find_dl(void);

/* The rest of what look-ups need; when the library is loaded. */
void spy_resolve_init(void);

/* From now on every call passes unseen, at the cost of a branch. */
void spy_slots_disable(void);

/* A row is counted, or traced, instead of what the list says. Rows that are transparent stay so; a
 * counted one is traced after all when a page of the board has no counter left. */
void spy_slots_count(uint16_t fn);
void spy_slots_trace(uint16_t fn);

/* A counter for a brief row that is called for the first time where it is only counted; SPY_COUNTER_NONE: there
 * is none left. Takes no lock. */
uint16_t spy_slots_number(struct spy_slot *slot);

/* Which function each counter of a slot's page counts. */
void spy_slots_list_counters(uint16_t counter_fn[SPY_BOARD_COUNTERS]);

/* Number of an exported name, -1 if it has no row. */
int spy_find_name(const char *name);

#endif
