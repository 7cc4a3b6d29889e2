/*
 * analyzer/cmd_run/recorder.h: programs run with the shim preloaded: what `cudaspy run` and `cudaspy
 * calibrate` have in common.
 */
#ifndef CUDASPY_RECORDER_H
#define CUDASPY_RECORDER_H

#include "base/util.h"

/* Exit statuses of a program that could not be started, as env, nohup and the shells have them. */
#define RECORDER_CANNOT_RUN 126
#define RECORDER_NOT_FOUND 127

/* Path of the shim into PATH_MAX bytes. False, after a message of the verb, if it is nowhere. */
bool recorder_find(const char *verb, char *path);

/* Runs a program under the shim (NULL: without it) to its end. Returns its wait status, or -errno.
 * Signals that are meant for the program reach it. */
int recorder_run(const char *verb, const char *shim, char **argv);

#endif
