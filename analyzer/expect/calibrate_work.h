/*
 * analyzer/expect/calibrate_work.h: the program that `cudaspy calibrate` records: itself.
 */
#ifndef CUDASPY_CALIBRATE_WORK_H
#define CUDASPY_CALIBRATE_WORK_H

#include "base/util.h"

/* Exit status when there is no GPU to measure, after a message. */
#define CALIBRATE_NO_GPU 3

/* Makes each kind of call many times, with nothing in its way. devices: CUDA ordinals, NULL for
 * all. Returns an exit status. */
int calibrate_work(const unsigned int *devices, unsigned int n_devices);

#endif
