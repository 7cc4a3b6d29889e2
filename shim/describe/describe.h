/*
 * shim/describe/describe.h: what the trace says of its process. Called on the application's threads, in slow paths.
 */
#ifndef CUDASPY_SHIM_DESCRIBE_H
#define CUDASPY_SHIM_DESCRIBE_H

#include <stdbool.h>
#include <stdint.h>

struct spy_session;

/* cuInit is about to be called. Its first success: the driver answers questions now; puts GPUs, how
 * they are shared, and versions into the trace (gpus.c, mps.c). */
void spy_mps_driver_begins(void);
void spy_gpus_driver_ready(void);
void spy_mps_look(bool initialised);

/* Puts libraries loaded or unloaded since the last look into the trace (modules.c). */
void spy_modules_look(void);

/* How many GPUs the process sees, 0: unknown. */
extern int spy_gpus;

static inline bool spy_may_see_several_gpus(void)
{
	return __atomic_load_n(&spy_gpus, __ATOMIC_RELAXED) != 1;
}

/* Writes or rewrites the metadata of a part of the recording (metadata.c). 0 or -errno. */
int spy_metadata_write(struct spy_session *session, uint32_t part);

#endif
