/*
 * tests/sim/runtime_device.c: devices, their properties and limits, and which one a thread uses.
 */
#include "runtime.h"

#include <string.h>

#define PROP_GEN RT_GEN
#define PROP_NAME rt_prop
#define PROP_TABLE prop_fields
#include "runtime_prop.h"
#if RT_GEN == 12 /* the unversioned name still means the structure of CUDA 11 */
#define PROP_GEN 11
#define PROP_NAME rt_prop11
#define PROP_TABLE prop11_fields
#include "runtime_prop.h"
#endif

static int give(int *out, int value)
{
	if (!out)
		return SIM_INVALID_VALUE;
	*out = value;
	return SIM_OK;
}

RT_QUERY(cudaGetDeviceCount, (int *out), give(out, rt_device_cnt))

static int set_device(int device)
{
	void *ctx;
	int rc;

	if (device < 0 || device >= rt_device_cnt)
		return SIM_INVALID_DEVICE;
	rt_thread.device = device;
	rc = rt_context(device, &ctx);
	return rc ? rc : rt_drivers[0].cuCtxSetCurrent(ctx);
}
RT_QUERY(cudaSetDevice, (int device), set_device(device))
#if RT_GEN >= 12
static int init_device(int device)
{
	void *ctx;
	int rc = rt_context(device, &ctx);

	if (rc)
		return rc;
	rt_drivers[0].cuCtxPushCurrent(ctx);
	return rt_drivers[0].cuCtxPopCurrent(&ctx);
}
RT_QUERY(cudaInitDevice, (int device, unsigned device_flags, unsigned flags), init_device(device))
#endif

static int get_device(int *out)
{
	if (!out)
		return SIM_INVALID_VALUE;
	if (!rt_thread.self->ctx)
		return give(out, rt_thread.device);
#if RT_GEN >= 13
	return rt_drivers[0].cuCtxGetDevice(out, NULL);
#else
	return rt_drivers[0].cuCtxGetDevice(out);
#endif
}
RT_QUERY(cudaGetDevice, (int *out), get_device(out))
RT_QUERY(cudaSetValidDevices, (int *list, int len), SIM_OK)

static int set_device_flags(unsigned flags)
{
	return rt_drivers[0].cuDevicePrimaryCtxSetFlags(rt_thread.device, flags & 0x3f);
}
RT_QUERY(cudaSetDeviceFlags, (unsigned flags), set_device_flags(flags))
RT_EXPORT(cudaGetDeviceFlags, (unsigned *flags), drv->cuCtxGetFlags(flags))

struct field {
	unsigned short offset, element, bytes;
	short attr;
};

static int fill(void *out, size_t bytes, const void *table, size_t cnt, int device)
{
	const struct field *fields = table;

	if (!out)
		return SIM_INVALID_VALUE;
	if (device < 0 || device >= rt_device_cnt)
		return SIM_INVALID_DEVICE;
	memset(out, 0, bytes);
	rt_drivers[0].cuDeviceGetName(out, 256, device);
	rt_drivers[0].cuDeviceGetUuid((char *)out + offsetof(struct rt_prop, uuid), device);
	rt_drivers[0].cuDeviceTotalMem(
		(size_t *)((char *)out + offsetof(struct rt_prop, totalGlobalMem)), device);
	for (size_t i = 0; i < cnt; i++) {
		char *at = (char *)out + fields[i].offset;

		for (unsigned k = 0; fields[i].attr && k * fields[i].element < fields[i].bytes;
		     k++) {
			int value = 0;

			rt_drivers[0].cuDeviceGetAttribute(&value, fields[i].attr + (int)k, device);
			if (fields[i].element == sizeof(size_t))
				((size_t *)(void *)at)[k] = (size_t)value;
			else
				((int *)(void *)at)[k] = value;
		}
	}
	return SIM_OK;
}

#define FILL(type, table) fill(out, sizeof(type), table, sizeof(table) / sizeof(table[0]), device)
#if RT_GEN == 12
RT_QUERY(cudaGetDeviceProperties_v2, (struct rt_prop * out, int device),
	 FILL(struct rt_prop, prop_fields))
RT_QUERY(cudaGetDeviceProperties, (struct rt_prop11 * out, int device),
	 FILL(struct rt_prop11, prop11_fields))
#else
RT_QUERY(cudaGetDeviceProperties, (struct rt_prop * out, int device),
	 FILL(struct rt_prop, prop_fields))
#endif
RT_QUERY(cudaChooseDevice, (int *out, const struct rt_prop *wanted), give(out, 0))
RT_QUERY(cudaDeviceGetAttribute, (int *out, int attr, int device),
	 drv->cuDeviceGetAttribute(out, attr, device))
RT_QUERY(cudaDeviceGetPCIBusId, (char *out, int len, int device),
	 drv->cuDeviceGetPCIBusId(out, len, device))
RT_QUERY(cudaDeviceGetByPCIBusId, (int *out, const char *id), drv->cuDeviceGetByPCIBusId(out, id))
RT_QUERY(cudaDeviceCanAccessPeer, (int *out, int device, int peer),
	 drv->cuDeviceCanAccessPeer(out, device, peer))
RT_QUERY(cudaDeviceGetP2PAttribute, (int *out, int attr, int src, int dst),
	 drv->cuDeviceGetP2PAttribute(out, attr, src, dst))

/* ---- the current device ---- */
static int synchronize(void)
{
	void *ctx = NULL;

	rt_drivers[0].cuCtxGetCurrent(&ctx);
#if RT_GEN >= 13
	return rt_drivers[0].cuCtxSynchronize(ctx);
#else
	return rt_drivers[0].cuCtxSynchronize();
#endif
}
RT_EXPORT(cudaDeviceSynchronize, (void), synchronize())

static int current_device(void)
{
	int device = rt_thread.device;

	get_device(&device);
	return device;
}

static int reset(void)
{
	int device = current_device(), rc = SIM_OK;

	if (rt_primary[device]) {
		rc = rt_drivers[0].cuDevicePrimaryCtxReset(device);
		rt_drivers[0].cuCtxSetCurrent(NULL);
		rt_primary[device] = NULL;
	}
	return rc;
}
RT_QUERY(cudaDeviceReset, (void), reset())

RT_EXPORT(cudaDeviceGetLimit, (size_t * out, unsigned limit), drv->cuCtxGetLimit(out, limit))
RT_EXPORT(cudaDeviceSetLimit, (unsigned limit, size_t value), drv->cuCtxSetLimit(limit, value))
RT_EXPORT(cudaDeviceGetCacheConfig, (int *out), drv->cuCtxGetCacheConfig(out))
RT_EXPORT(cudaDeviceSetCacheConfig, (int value), drv->cuCtxSetCacheConfig(value))
RT_EXPORT(cudaDeviceGetSharedMemConfig, (int *out), drv->cuCtxGetSharedMemConfig(out))
RT_EXPORT(cudaDeviceSetSharedMemConfig, (int value), drv->cuCtxSetSharedMemConfig(value))
RT_EXPORT(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
	  drv->cuCtxGetStreamPriorityRange(least, greatest))
RT_EXPORT(cudaCtxResetPersistingL2Cache, (void), drv->cuCtxResetPersistingL2Cache())

static int peer_access(const struct rt_driver *drv, int peer, unsigned flags, bool enable)
{
	unsigned version;
	void *ctx;
	int rc;

	if (flags)
		return SIM_INVALID_VALUE;
	rc = rt_context(peer, &ctx);
	if (rc)
		return rc;
	drv->cuCtxGetApiVersion(ctx, &version);
	return enable ? drv->cuCtxEnablePeerAccess(ctx, 0) : drv->cuCtxDisablePeerAccess(ctx);
}
RT_EXPORT(cudaDeviceEnablePeerAccess, (int peer, unsigned flags),
	  peer_access(drv, peer, flags, true))
RT_EXPORT(cudaDeviceDisablePeerAccess, (int peer), peer_access(drv, peer, 0, false))

#if RT_GEN <= 12
RT_EXPORT(cudaThreadSynchronize, (void), synchronize())
RT_QUERY(cudaThreadExit, (void), reset())
RT_EXPORT(cudaThreadGetLimit, (size_t * out, unsigned limit), drv->cuCtxGetLimit(out, limit))
RT_EXPORT(cudaThreadSetLimit, (unsigned limit, size_t value), drv->cuCtxSetLimit(limit, value))
RT_EXPORT(cudaThreadGetCacheConfig, (int *out), drv->cuCtxGetCacheConfig(out))
RT_EXPORT(cudaThreadSetCacheConfig, (int value), drv->cuCtxSetCacheConfig(value))
#endif
