/*
 * tests/sim/runtime_init.c: how the runtime finds its driver and makes a context: dlopen libcuda.so.1,
 * one dlsym, and every other function through cuGetProcAddress, at the first call that needs it, on the
 * thread that makes it.
 */
#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

struct rt_driver rt_drivers[2];
const struct sim_private *rt_private;
int rt_device_cnt;
bool rt_ready;
void *rt_primary[16];
__thread struct rt_thread rt_thread;

static int init_result = SIM_NOT_INITIALIZED;
static pthread_once_t once = PTHREAD_ONCE_INIT;

typedef int get_proc_address(const char *, void **, int, uint64_t, int *);

static bool look_up(get_proc_address *get, struct rt_driver *table, uint64_t flags)
{
	void *address = NULL;
	int status;

#define DRIVER(name, version, params) \
	if (get(#name, &address, version, flags, &status) || !address) \
		return false; \
	memcpy(&table->name, &address, sizeof(address));
#include "runtime_driver.def"
#undef DRIVER
	return true;
}

/* A static cudart asks for private tables of its own, and so does this one; that some are missing is
 * no error. */
static bool ask_private_tables(get_proc_address *get)
{
	int (*export_table)(const void **, const void *) = NULL;
	const void *table;
	void *address;
	int status;

	if (get("cuGetExportTable", &address, 3000, 0, &status) || !address)
		return false;
	memcpy(&export_table, &address, sizeof(address));
	for (int i = 0; i < 2; i++)
		export_table(&table, sim_missing_uuids[i]);
	if (export_table(&table, sim_private_uuid))
		return false;
	rt_private = table;
	return true;
}

static void init(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	get_proc_address *get = NULL;
	void *address;

	init_result = SIM_INSUFFICIENT_DRIVER;
	if (!lib)
		return;
	address = dlsym(lib, "cuGetProcAddress_v2");
	memcpy(&get, &address, sizeof(address));
	if (!get)
		return;
	if (!ask_private_tables(get))
		return;
	/* What follows belongs to the runtime call that made it necessary. */
	rt_private->thread()->depth++;
	if (look_up(get, &rt_drivers[0], 0) && look_up(get, &rt_drivers[1], 2))
		init_result = rt_drivers[0].cuInit(0);
	if (!init_result)
		init_result = rt_drivers[0].cuDeviceGetCount(&rt_device_cnt);
	if (!init_result)
		init_result = rt_load_code();
	rt_private->thread()->depth--;
	rt_ready = !init_result;
}

int rt_context(int device, void **ctx)
{
	int rc = SIM_OK;

	if (device < 0 || device >= rt_device_cnt)
		return SIM_INVALID_DEVICE;
	*ctx = __atomic_load_n(&rt_primary[device], __ATOMIC_ACQUIRE);
	if (*ctx)
		return SIM_OK;
	rt_private->lock();
	if (!rt_primary[device]) {
		rc = rt_drivers[0].cuDevicePrimaryCtxRetain(ctx, device);
		if (!rc)
			__atomic_store_n(&rt_primary[device], *ctx, __ATOMIC_RELEASE);
	} else {
		*ctx = rt_primary[device];
	}
	rt_private->unlock();
	return rc;
}

static int make_current(void)
{
	void *ctx = NULL;
	int rc;

	rt_drivers[0].cuCtxGetCurrent(&ctx);
	rc = rt_context(rt_thread.device, &ctx);
	return rc ? rc : rt_drivers[0].cuCtxSetCurrent(ctx);
}

int rt_prepare(enum rt_need need)
{
	if (need == RT_NOTHING)
		return SIM_OK;
	if (__builtin_expect(!rt_thread.self, 0)) {
		pthread_once(&once, init);
		if (!rt_ready)
			return init_result;
		rt_thread.self = rt_private->thread();
	}
	if (need == RT_CONTEXT && __builtin_expect(!rt_thread.self->ctx, 0))
		return make_current();
	return SIM_OK;
}

uint64_t rt_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int rt_span_late(struct sim_span *span, enum sim_fn fn, uint64_t begin_ns)
{
	int rc = rt_private->span_open(span, fn);

	if (span->begin_ns)
		span->begin_ns = begin_ns;
	return rc;
}

int rt_fail(int rc)
{
	if (rc != SIM_NOT_READY)
		rt_thread.last_error = rc;
	return rc;
}

__attribute__((destructor)) static void runtime_exit(void)
{
	if (!rt_ready)
		return;
	rt_unload_code();
	for (int i = 0; i < rt_device_cnt; i++)
		if (rt_primary[i])
			rt_drivers[0].cuDevicePrimaryCtxRelease(i);
}

/* ---- errors and versions ---- */
static int take_error(bool clear)
{
	int rc = rt_thread.last_error;

	if (clear)
		rt_thread.last_error = SIM_OK;
	return rc;
}

/* These two answer with an error that is not theirs, so they cannot be RT_EXPORT. */
#define ERROR_GETTER(name, clear) \
	SIM_PUBLIC int name(void); \
	SIM_PUBLIC int name(void) \
	{ \
		struct sim_span span; \
		int rc = rt_prepare(RT_DRIVER); \
		if (rc) \
			return rc; \
		if (!rt_spans()) \
			return take_error(clear); \
		rt_private->span_open(&span, FN_##name); \
		return rt_private->span_close(&span, take_error(clear)); \
	}
ERROR_GETTER(cudaGetLastError, true)
ERROR_GETTER(cudaPeekAtLastError, false)

static const char *error_text(int code, bool name)
{
	switch (code) {
#define ERROR(number, driver_name, runtime_name, text) \
	case number: \
		return name ? runtime_name : text;
#include "cudaspy/errors.def"
#undef ERROR
	}
	return "unrecognized error code";
}

SIM_PUBLIC const char *cudaGetErrorName(int code);
SIM_PUBLIC const char *cudaGetErrorName(int code)
{
	return error_text(code, true);
}

SIM_PUBLIC const char *cudaGetErrorString(int code);
SIM_PUBLIC const char *cudaGetErrorString(int code)
{
	return error_text(code, false);
}

static int runtime_version(int *out)
{
	if (!out)
		return SIM_INVALID_VALUE;
	*out = RT_GEN == 13 ? 13000 : RT_GEN == 12 ? 12090 : 11080;
	return SIM_OK;
}
RT_PLAIN(cudaRuntimeGetVersion, (int *out), runtime_version(out))
RT_QUERY(cudaDriverGetVersion, (int *out), drv->cuDriverGetVersion(out))
RT_QUERY(cudaGetExportTable, (const void **out, const void *uuid), drv->cuGetExportTable(out, uuid))
RT_EXPORT(cudaProfilerStart, (void), drv->cuProfilerStart())
RT_EXPORT(cudaProfilerStop, (void), drv->cuProfilerStop())
#if RT_GEN == 11
RT_PLAIN(cudaProfilerInitialize, (const char *config, const char *file, int mode), SIM_OK)
#endif

static int entry_point(const char *name, void **out, int version, unsigned long long flags,
		       int *status, bool per_thread)
{
	get_proc_address *get = NULL;
	void *address;
	int ignored;

	address = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuGetProcAddress_v2");
	memcpy(&get, &address, sizeof(address));
	if (!name || !out || !get)
		return SIM_INVALID_VALUE;
	if (!flags && per_thread)
		flags = 2;
	get(name, out, version, flags, status ? status : &ignored);
	return SIM_OK;
}
#if RT_GEN >= 12
#define STATUS_PARAM , int *status
#define STATUS status
#else
#define STATUS_PARAM
#define STATUS NULL
#endif
#define DRIVER_VERSION (RT_GEN * 1000)
RT_EXPORT_AS(cudaGetDriverEntryPoint, RT_DRIVER, 0,
	     (const char *name, void **out, unsigned long long flags STATUS_PARAM),
	     entry_point(name, out, DRIVER_VERSION, flags, STATUS, false))
RT_EXPORT_AS(cudaGetDriverEntryPoint_ptsz, RT_DRIVER, 1,
	     (const char *name, void **out, unsigned long long flags STATUS_PARAM),
	     entry_point(name, out, DRIVER_VERSION, flags, STATUS, true))
#if RT_GEN >= 12
RT_EXPORT_AS(cudaGetDriverEntryPointByVersion, RT_DRIVER, 0,
	     (const char *name, void **out, unsigned version, unsigned long long flags,
	      int *status),
	     entry_point(name, out, (int)version, flags, status, false))
RT_EXPORT_AS(cudaGetDriverEntryPointByVersion_ptsz, RT_DRIVER, 1,
	     (const char *name, void **out, unsigned version, unsigned long long flags,
	      int *status),
	     entry_point(name, out, (int)version, flags, status, true))
#endif
