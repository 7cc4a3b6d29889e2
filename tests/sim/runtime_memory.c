/*
 * tests/sim/runtime_memory.c: allocation, pinning, arrays, pools, textures and questions about
 * pointers: each one or two driver calls.
 */
#include "runtime.h"

#include <string.h>

/* Nothing asked for is nothing given, and no driver call. */
static int device_alloc(const struct rt_driver *drv, void **out, size_t bytes)
{
	if (!out)
		return SIM_INVALID_VALUE;
	*out = NULL;
	return bytes ? drv->cuMemAlloc((sim_ptr *)out, bytes) : SIM_OK;
}
RT_EXPORT(cudaMalloc, (void **out, size_t bytes), device_alloc(drv, out, bytes))
RT_EXPORT(cudaFree, (void *ptr), drv->cuMemFree(RT_ADDRESS(ptr)))
RT_EXPORT(cudaMallocManaged, (void **out, size_t bytes, unsigned flags),
	  drv->cuMemAllocManaged((sim_ptr *)out, bytes, flags))
RT_EXPORT(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height),
	  drv->cuMemAllocPitch((sim_ptr *)out, pitch, width, height, 4))

static int alloc_3d(const struct rt_driver *drv, struct sim_pitched *out, struct sim_extent e)
{
	sim_ptr ptr;
	size_t pitch;
	int rc;

	if (!out)
		return SIM_INVALID_VALUE;
	rc = drv->cuMemAllocPitch(&ptr, &pitch, e.width, e.height * e.depth, 4);
	if (!rc)
		*out = (struct sim_pitched){(void *)(uintptr_t)ptr, pitch, e.width, e.height};
	return rc;
}
RT_EXPORT(cudaMalloc3D, (struct sim_pitched * out, struct sim_extent e), alloc_3d(drv, out, e))

static int host_alloc(const struct rt_driver *drv, void **out, size_t bytes, unsigned flags)
{
	if (!out)
		return SIM_INVALID_VALUE;
	*out = NULL;
	return bytes ? drv->cuMemHostAlloc(out, bytes, flags) : SIM_OK;
}
RT_EXPORT(cudaMallocHost, (void **out, size_t bytes), host_alloc(drv, out, bytes, 0))
RT_EXPORT(cudaHostAlloc, (void **out, size_t bytes, unsigned flags),
	  host_alloc(drv, out, bytes, flags))
RT_EXPORT(cudaFreeHost, (void *ptr), ptr ? drv->cuMemFreeHost(ptr) : SIM_OK)
RT_EXPORT(cudaHostRegister, (void *ptr, size_t bytes, unsigned flags),
	  drv->cuMemHostRegister(ptr, bytes, flags))
RT_EXPORT(cudaHostUnregister, (void *ptr), drv->cuMemHostUnregister(ptr))
RT_EXPORT(cudaHostGetDevicePointer, (void **out, void *ptr, unsigned flags),
	  drv->cuMemHostGetDevicePointer((sim_ptr *)out, ptr, flags))
RT_EXPORT(cudaHostGetFlags, (unsigned *out, void *ptr), drv->cuMemHostGetFlags(out, ptr))
RT_EXPORT(cudaMemGetInfo, (size_t * available, size_t *total), drv->cuMemGetInfo(available, total))

static int pointer_attributes(const struct rt_driver *drv, struct sim_pointer_attributes *out,
			      const void *ptr)
{
	static const int attrs[] = {2, 9, 3, 4, 8};
	unsigned type = 0, managed = 0;
	sim_ptr device = 0;
	void *host = NULL;
	int ordinal = -2, rc;
	void *where[] = {&type, &ordinal, &device, &host, &managed};

	if (!out)
		return SIM_INVALID_VALUE;
	rc = drv->cuPointerGetAttributes(5, attrs, where, RT_ADDRESS(ptr));
	if (rc)
		return rc;
	memset(out, 0, sizeof(*out) + (RT_GEN >= 13 ? 8 * sizeof(long) : 0));
	out->type = managed ? 3 : (int)type;
	out->device = ordinal;
	out->device_pointer = (void *)(uintptr_t)device;
	out->host_pointer = type ? host : (void *)(uintptr_t)ptr;
	return SIM_OK;
}
RT_EXPORT(cudaPointerGetAttributes, (struct sim_pointer_attributes * out, const void *ptr),
	  pointer_attributes(drv, out, ptr))

/* ---- pools ---- */
RT_PTSZ(cudaMallocAsync, (void **out, size_t bytes, void *stream),
	drv->cuMemAllocAsync((sim_ptr *)out, bytes, stream))
RT_PTSZ(cudaMallocFromPoolAsync, (void **out, size_t bytes, void *pool, void *stream),
	drv->cuMemAllocFromPoolAsync((sim_ptr *)out, bytes, pool, stream))
RT_PTSZ(cudaFreeAsync, (void *ptr, void *stream), drv->cuMemFreeAsync(RT_ADDRESS(ptr), stream))
RT_EXPORT(cudaDeviceGetDefaultMemPool, (void **out, int device),
	  drv->cuDeviceGetDefaultMemPool(out, device))
RT_EXPORT(cudaDeviceGetMemPool, (void **out, int device), drv->cuDeviceGetMemPool(out, device))
RT_EXPORT(cudaDeviceSetMemPool, (int device, void *pool), drv->cuDeviceSetMemPool(device, pool))
RT_EXPORT(cudaMemPoolCreate, (void **out, const struct sim_pool_props *props),
	  drv->cuMemPoolCreate(out, props))
RT_EXPORT(cudaMemPoolDestroy, (void *pool), drv->cuMemPoolDestroy(pool))
RT_EXPORT(cudaMemPoolTrimTo, (void *pool, size_t keep), drv->cuMemPoolTrimTo(pool, keep))
RT_EXPORT(cudaMemPoolSetAttribute, (void *pool, int attr, void *value),
	  drv->cuMemPoolSetAttribute(pool, attr, value))
RT_EXPORT(cudaMemPoolGetAttribute, (void *pool, int attr, void *value),
	  drv->cuMemPoolGetAttribute(pool, attr, value))
RT_EXPORT(cudaMemPoolSetAccess, (void *pool, const struct sim_access_desc *d, size_t cnt),
	  drv->cuMemPoolSetAccess(pool, d, cnt))
RT_EXPORT(cudaMemPoolGetAccess, (int *out, void *pool, struct sim_location *where),
	  drv->cuMemPoolGetAccess(out, pool, where))

/* ---- managed memory: 13 took over what 12 called _v2 ---- */
static struct sim_location at_device(int device)
{
	return (struct sim_location){device >= 0 ? 1 : 2, device >= 0 ? device : 0};
}
#define PREFETCH_LOCATION(name) \
	RT_PTSZ(name, \
		(const void *p, size_t n, struct sim_location where, unsigned flags, void *s), \
		drv->cuMemPrefetchAsync(RT_ADDRESS(p), n, where, flags, s))
#define ADVISE_LOCATION(name) \
	RT_EXPORT(name, (const void *p, size_t n, int advice, struct sim_location where), \
		  drv->cuMemAdvise(RT_ADDRESS(p), n, advice, where))
#if RT_GEN >= 13
PREFETCH_LOCATION(cudaMemPrefetchAsync)
ADVISE_LOCATION(cudaMemAdvise)
static void keep_used(void) __attribute__((unused));
static void keep_used(void)
{
	(void)at_device;
}
#else
RT_PTSZ(cudaMemPrefetchAsync, (const void *p, size_t n, int device, void *s),
	drv->cuMemPrefetchAsync(RT_ADDRESS(p), n, at_device(device), 0, s))
RT_EXPORT(cudaMemAdvise, (const void *p, size_t n, int advice, int device),
	  drv->cuMemAdvise(RT_ADDRESS(p), n, advice, at_device(device)))
#if RT_GEN == 12
PREFETCH_LOCATION(cudaMemPrefetchAsync_v2)
ADVISE_LOCATION(cudaMemAdvise_v2)
#endif
#endif
RT_EXPORT(cudaMemRangeGetAttribute, (void *out, size_t size, int attr, const void *p, size_t n),
	  drv->cuMemRangeGetAttribute(out, size, attr, RT_ADDRESS(p), n))
RT_EXPORT(cudaMemRangeGetAttributes,
	  (void **out, size_t *sizes, int *attrs, size_t cnt, const void *p, size_t n),
	  drv->cuMemRangeGetAttributes(out, sizes, attrs, cnt, RT_ADDRESS(p), n))

/* ---- arrays ---- */
SIM_PUBLIC struct sim_channel_desc cudaCreateChannelDesc(int x, int y, int z, int w, int kind);
SIM_PUBLIC struct sim_channel_desc cudaCreateChannelDesc(int x, int y, int z, int w, int kind)
{
	return (struct sim_channel_desc){x, y, z, w, kind};
}

/* The driver's CUarray_format of a channel description. */
static int format_of(const struct sim_channel_desc *d)
{
	static const int formats[3][3] = {{8, 9, 10}, {1, 2, 3}, {0, 0x10, 0x20}};
	int size = d->x == 8 ? 0 : d->x == 16 ? 1 : d->x == 32 ? 2 : -1;

	return d->kind < 0 || d->kind > 2 || size < 0 ? 0 : formats[d->kind][size];
}

static struct sim_array3d_desc describe(const struct sim_channel_desc *d, struct sim_extent e,
					unsigned flags)
{
	unsigned channels = (d->x > 0) + (d->y > 0) + (d->z > 0) + (d->w > 0);

	return (struct sim_array3d_desc){e.width, e.height, e.depth, format_of(d), channels, flags};
}

static int alloc_array(const struct rt_driver *drv, void **out, const struct sim_channel_desc *d,
		       struct sim_extent e, unsigned flags)
{
	struct sim_array3d_desc desc;

	if (!out || !d || !format_of(d))
		return SIM_INVALID_VALUE;
	desc = describe(d, e, flags);
	return drv->cuArray3DCreate(out, &desc);
}
RT_EXPORT(cudaMallocArray,
	  (void **out, const struct sim_channel_desc *d, size_t width, size_t height,
	   unsigned flags),
	  alloc_array(drv, out, d, (struct sim_extent){width, height, 0}, flags))
RT_EXPORT(cudaMalloc3DArray,
	  (void **out, const struct sim_channel_desc *d, struct sim_extent e, unsigned flags),
	  alloc_array(drv, out, d, e, flags))
RT_EXPORT(cudaFreeArray, (void *array), array ? drv->cuArrayDestroy(array) : SIM_OK)

static int alloc_mipmapped(const struct rt_driver *drv, void **out,
			   const struct sim_channel_desc *d, struct sim_extent e, unsigned levels,
			   unsigned flags)
{
	struct sim_array3d_desc desc = describe(d, e, flags);

	return drv->cuMipmappedArrayCreate(out, &desc, levels);
}
RT_EXPORT(cudaMallocMipmappedArray,
	  (void **out, const struct sim_channel_desc *d, struct sim_extent e, unsigned levels,
	   unsigned flags),
	  alloc_mipmapped(drv, out, d, e, levels, flags))
RT_EXPORT(cudaFreeMipmappedArray, (void *array),
	  array ? drv->cuMipmappedArrayDestroy(array) : SIM_OK)
RT_EXPORT(cudaGetMipmappedArrayLevel, (void **out, void *array, unsigned level),
	  drv->cuMipmappedArrayGetLevel(out, array, level))

static int channel_of(const struct rt_driver *drv, struct sim_channel_desc *out,
		      struct sim_extent *e, unsigned *flags, void *array)
{
	static const struct {
		short format, bits, kind;
	} known[] = {{1, 8, 1},  {2, 16, 1},  {3, 32, 1},    {8, 8, 0},
		     {9, 16, 0}, {10, 32, 0}, {0x10, 16, 2}, {0x20, 32, 2}};
	struct sim_array3d_desc d;
	int rc = drv->cuArray3DGetDescriptor(&d, array);

	if (rc)
		return rc;
	for (size_t i = 0; out && i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].format == d.format) {
			int bits = known[i].bits;

			*out = (struct sim_channel_desc){bits, d.channels > 1 ? bits : 0,
							 d.channels > 2 ? bits : 0,
							 d.channels > 3 ? bits : 0, known[i].kind};
		}
	if (e)
		*e = (struct sim_extent){d.width, d.height, d.depth};
	if (flags)
		*flags = d.flags;
	return SIM_OK;
}
RT_EXPORT(cudaArrayGetInfo,
	  (struct sim_channel_desc * out, struct sim_extent *e, unsigned *flags, void *array),
	  channel_of(drv, out, e, flags, array))
RT_EXPORT(cudaGetChannelDesc, (struct sim_channel_desc * out, void *array),
	  channel_of(drv, out, NULL, NULL, array))

/* ---- textures and surfaces: objects without a meaning, since kernels do not read them ---- */
RT_EXPORT(cudaCreateTextureObject,
	  (unsigned long long *out, const void *resource, const void *texture, const void *view),
	  drv->cuTexObjectCreate(out, resource, texture, view))
RT_EXPORT(cudaDestroyTextureObject, (unsigned long long object), drv->cuTexObjectDestroy(object))
RT_EXPORT(cudaCreateSurfaceObject, (unsigned long long *out, const void *resource),
	  drv->cuSurfObjectCreate(out, resource))
RT_EXPORT(cudaDestroySurfaceObject, (unsigned long long object), drv->cuSurfObjectDestroy(object))
#if RT_GEN <= 12
RT_EXPORT(cudaCreateTextureObject_v2,
	  (unsigned long long *out, const void *resource, const void *texture, const void *view),
	  drv->cuTexObjectCreate(out, resource, texture, view))
#endif

RT_EXPORT(cudaIpcGetMemHandle, (void *out, void *ptr), drv->cuIpcGetMemHandle(out, RT_ADDRESS(ptr)))
RT_EXPORT(cudaIpcCloseMemHandle, (void *ptr), drv->cuIpcCloseMemHandle(RT_ADDRESS(ptr)))
RT_EXPORT(cudaIpcGetEventHandle, (void *out, void *event), drv->cuIpcGetEventHandle(out, event))
