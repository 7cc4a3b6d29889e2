/*
 * tests/sim/cupti.h: between the files of the look-alike of CUPTI: cupti.c has the interface and what is
 * switched on, cupti_records.c the buffers and the thread that delivers them.
 */
#ifndef SIM_CUPTI_H
#define SIM_CUPTI_H

#include "activity.h"
#include "cupti_types.h"

#include <stdatomic.h>

/* ---- cupti.c ---- */
extern const struct sim_activity_source *cupti_source; /* NULL: no simulated driver */
uint64_t cupti_clock(uint64_t monotonic_ns);

/* ---- cupti_records.c ---- */
extern atomic_bool cupti_kind_on[KIND_CNT];
extern atomic_bool cupti_driver_on[FN_COUNT], cupti_runtime_on[FN_COUNT]; /* by function */
extern atomic_int cupti_thread_type;
extern const struct sim_listener cupti_listener;
uint32_t cupti_cbid(enum sim_fn fn, bool *runtime); /* 0: a call that is not recorded */
int cupti_buffers_set(cupti_wanted *wanted, cupti_completed *completed);
int cupti_next_record(uint8_t *buffer, size_t valid, uint8_t **record);
int cupti_flush(void); /* on the calling thread */
void cupti_flush_every(uint32_t ms); /* 0: no more */
size_t cupti_dropped(void);
void cupti_records_stop(void); /* ends the thread; buffers that wait are delivered first */

#endif
