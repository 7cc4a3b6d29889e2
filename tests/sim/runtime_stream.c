/*
 * tests/sim/runtime_stream.c: streams, events, callbacks: each one driver call.
 */
#include "runtime.h"

RT_EXPORT(cudaStreamCreate, (void **out), drv->cuStreamCreate(out, 0))
RT_EXPORT(cudaStreamCreateWithFlags, (void **out, unsigned flags), drv->cuStreamCreate(out, flags))
RT_EXPORT(cudaStreamCreateWithPriority, (void **out, unsigned flags, int priority),
	  drv->cuStreamCreateWithPriority(out, flags, priority))
RT_EXPORT(cudaStreamDestroy, (void *s), drv->cuStreamDestroy(s))
RT_PTSZ(cudaStreamSynchronize, (void *s), drv->cuStreamSynchronize(s))
RT_PTSZ(cudaStreamQuery, (void *s), drv->cuStreamQuery(s))
RT_PTSZ(cudaStreamGetFlags, (void *s, unsigned *out), drv->cuStreamGetFlags(s, out))
RT_PTSZ(cudaStreamGetPriority, (void *s, int *out), drv->cuStreamGetPriority(s, out))
#if RT_GEN >= 12
RT_PTSZ(cudaStreamGetId, (void *s, unsigned long long *out), drv->cuStreamGetId(s, out))
RT_PTSZ(cudaStreamGetDevice, (void *s, int *out), drv->cuStreamGetDevice(s, out))
#endif
RT_PTSZ(cudaStreamWaitEvent, (void *s, void *event, unsigned flags),
	drv->cuStreamWaitEvent(s, event, flags))
RT_PTSZ(cudaStreamAddCallback,
	(void *s, void (*fn)(void *, int, void *), void *arg, unsigned flags),
	drv->cuStreamAddCallback(s, *(void **)&fn, arg, flags))
RT_PTSZ(cudaLaunchHostFunc, (void *s, void (*fn)(void *), void *arg),
	drv->cuLaunchHostFunc(s, fn, arg))
RT_PTSZ(cudaStreamAttachMemAsync, (void *s, void *p, size_t n, unsigned flags),
	drv->cuStreamAttachMemAsync(s, RT_ADDRESS(p), n, flags))
RT_PTSZ(cudaStreamGetAttribute, (void *s, int attr, void *value),
	drv->cuStreamGetAttribute(s, attr, value))
RT_PTSZ(cudaStreamSetAttribute, (void *s, int attr, const void *value),
	drv->cuStreamSetAttribute(s, attr, value))
RT_PTSZ(cudaStreamCopyAttributes, (void *dst, void *src), drv->cuStreamCopyAttributes(dst, src))

RT_EXPORT(cudaEventCreate, (void **out), drv->cuEventCreate(out, 0))
RT_EXPORT(cudaEventCreateWithFlags, (void **out, unsigned flags), drv->cuEventCreate(out, flags))
RT_EXPORT(cudaEventDestroy, (void *event), drv->cuEventDestroy(event))
RT_PTSZ(cudaEventRecord, (void *event, void *s), drv->cuEventRecord(event, s))
RT_PTSZ(cudaEventRecordWithFlags, (void *event, void *s, unsigned flags),
	drv->cuEventRecordWithFlags(event, s, flags))
RT_EXPORT(cudaEventQuery, (void *event), drv->cuEventQuery(event))
RT_EXPORT(cudaEventSynchronize, (void *event), drv->cuEventSynchronize(event))
RT_EXPORT(cudaEventElapsedTime, (float *ms, void *from, void *to),
	  drv->cuEventElapsedTime(ms, from, to))
#if RT_GEN == 12
RT_EXPORT(cudaEventElapsedTime_v2, (float *ms, void *from, void *to),
	  drv->cuEventElapsedTime(ms, from, to))
#endif
