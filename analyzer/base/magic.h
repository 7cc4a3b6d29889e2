/*
 * analyzer/base/magic.h: how files of cudaspy's begin that are no traces.
 */
#ifndef CUDASPY_MAGIC_H
#define CUDASPY_MAGIC_H

#include "util.h"

#define DIGEST_MAGIC "CSPYDGST"
#define DIGEST_MAGIC_BYTES 8

/* Is it a regular file that begins so? False for what cannot be read. */
bool file_is_digest(const char *path);

#endif
