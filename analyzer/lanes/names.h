/*
 * analyzer/lanes/names.h: what lanes, and the locks in them, are called; also in exports. Texts live as long as the arena.
 */
#ifndef CUDASPY_LANES_NAMES_H
#define CUDASPY_LANES_NAMES_H

#include "account/locks.h"
#include "idle/idle.h"

/* "loader (123)", "thread 123". */
const char *text_lane_of_thread(struct arena *texts, const struct thread *thread);

/* "GPU 1, NVIDIA H200". */
const char *text_lane_of_gpu(struct arena *texts, const struct idle_gpu *gpu);

/* "L1 (libcuda.so.1+0x1234)": after locks_name; before it "a lock (unknown place)". */
const char *text_lane_of_lock(struct arena *texts, const struct lock *lock);

#endif
