/*
 * tests/bench/cupti_activity.c: the second peer: CUPTI activity records of runtime and driver
 * calls, kernels, copies and synchronisation, into 8 MiB buffers that are dropped as soon as they
 * are full, so that only CUPTI's own cost is seen. A library to preload; enabled in the
 * constructor.
 */
#include "cupti_load.h"

#define BUFFER_BYTES (8u << 20)

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *record_cnt_max)
{
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*size = *buffer ? BUFFER_BYTES : 0;
	*record_cnt_max = 0;
}

static void CUPTIAPI buffer_full(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
				 size_t valid)
{
	(void)context;
	(void)stream;
	(void)size;
	(void)valid;
	free(buffer);
}

__attribute__((constructor)) static void start(void)
{
	static const CUpti_ActivityKind kinds[] = {
		CUPTI_ACTIVITY_KIND_RUNTIME,           CUPTI_ACTIVITY_KIND_DRIVER,
		CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
		CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
	};
	const char *who = "cupti_activity";
	size_t i;

	if (cupti_load(who) ||
	    cupti_failed(who, "callbacks",
			 cupti.cuptiActivityRegisterCallbacks(buffer_wanted, buffer_full)))
		return;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		cupti_failed(who, "cuptiActivityEnable", cupti.cuptiActivityEnable(kinds[i]));
}
