/*
 * tests/sim/cupti.c: a look-alike of CUPTI over the simulated driver: libcupti.so.13. It tells what the
 * simulated GPUs did as CUPTI's activity API would. Here are the entry points, on the caller's thread,
 * and the clock; the records are cupti_records.c's. Facts are from CUPTI's documentation and headers,
 * CUDA 13.0.
 *
 * Not there: callbacks (what is asked for is remembered and none is made), events, metrics, profiling. A
 * driver call inside one of the runtime has the correlation id of that one.
 */
#include "cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CUPTI_API(name, params) \
	SIM_PUBLIC int name params; \
	SIM_PUBLIC int name params

const struct sim_activity_source *cupti_source;

static int64_t clock_offset_ns;
static uint64_t clock_base_ns;
static _Atomic(void *) subscriber;
static uint32_t callbacks_on[8]; /* domains, as asked for */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* CUPTI opens the driver itself, and takes the one that is there. */
static void begin(void)
{
	const struct sim_activity_source *(*find)(void) = NULL;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (driver)
		*(void **)&find = dlsym(driver, "spysim_activity");
	cupti_source = find ? find() : NULL;
	clock_base_ns = clock_ns(CLOCK_MONOTONIC);
	clock_offset_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_base_ns);
	if (cupti_source && cupti_source->knobs->offset_set)
		clock_offset_ns = (int64_t)(cupti_source->knobs->offset_us * 1e3);
}

static bool ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin);
	return cupti_source;
}

/* CUPTI's clock is a constant and a drift off, which counts from when the library was first used. */
uint64_t cupti_clock(uint64_t ns)
{
	double since = (double)(int64_t)(ns - clock_base_ns);

	return ns + (uint64_t)clock_offset_ns +
	       (uint64_t)(int64_t)(since * cupti_source->knobs->drift_ppm / 1e6);
}

/* ---- who subscribes ---- */
CUPTI_API(cuptiSubscribe, (void **out, void *callback, void *user))
{
	static char handles[64];
	static atomic_uint cnt;
	void *nobody = NULL, *handle;

	if (!ready())
		return CUPTI_NOT_INITIALIZED;
	if (!out || !callback)
		return CUPTI_BAD_PARAMETER;
	handle = &handles[atomic_fetch_add(&cnt, 1) % sizeof(handles)];
	if (cupti_source->knobs->slot_taken ||
	    !atomic_compare_exchange_strong(&subscriber, &nobody, handle))
		return CUPTI_MULTIPLE_SUBSCRIBERS;
	*out = handle;
	return CUPTI_OK;
}

CUPTI_API(cuptiUnsubscribe, (void *handle))
{
	if (!handle || !atomic_compare_exchange_strong(&subscriber, &handle, NULL))
		return CUPTI_BAD_PARAMETER;
	return CUPTI_OK;
}

static int enable_domain(uint32_t enable, void *handle, unsigned domain)
{
	if (!handle || handle != atomic_load(&subscriber) || !domain || domain > 6)
		return CUPTI_BAD_PARAMETER;
	callbacks_on[domain] = enable;
	return CUPTI_OK;
}

CUPTI_API(cuptiEnableCallback, (uint32_t enable, void *handle, unsigned domain, uint32_t cbid))
{
	return enable_domain(enable, handle, domain);
}

CUPTI_API(cuptiEnableDomain, (uint32_t enable, void *handle, unsigned domain))
{
	return enable_domain(enable, handle, domain);
}

/* ---- names and the clock ---- */
CUPTI_API(cuptiGetCallbackName, (unsigned domain, uint32_t cbid, const char **name))
{
	static const struct {
		unsigned domain;
		uint32_t cbid;
		const char *name;
	} names[] = {
#define CBID_DRIVER(function, number) {CUPTI_DOMAIN_DRIVER, number, #function},
#define CBID_RUNTIME(function, version, number) \
	{CUPTI_DOMAIN_RUNTIME, number, #function "_" #version},
#include "cupti_cbid.def"
#undef CBID_DRIVER
#undef CBID_RUNTIME
	};

	if (!name)
		return CUPTI_BAD_PARAMETER;
	*name = NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].domain == domain && names[i].cbid == cbid)
			*name = names[i].name;
	return *name ? CUPTI_OK : CUPTI_BAD_PARAMETER;
}

CUPTI_API(cuptiGetResultString, (int result, const char **text))
{
	static const struct {
		int result;
		const char *text;
	} texts[] = {
		{CUPTI_OK, "CUPTI_SUCCESS"},
		{CUPTI_BAD_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER"},
		{CUPTI_BAD_DEVICE, "CUPTI_ERROR_INVALID_DEVICE"},
		{CUPTI_BAD_CONTEXT, "CUPTI_ERROR_INVALID_CONTEXT"},
		{CUPTI_BAD_OPERATION, "CUPTI_ERROR_INVALID_OPERATION"},
		{CUPTI_TOO_SMALL, "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT"},
		{CUPTI_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
		{CUPTI_NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED"},
		{CUPTI_BAD_STREAM, "CUPTI_ERROR_INVALID_STREAM"},
		{CUPTI_BAD_KIND, "CUPTI_ERROR_INVALID_KIND"},
		{CUPTI_UNSUPPORTED, "CUPTI_ERROR_NOT_SUPPORTED"},
		{CUPTI_MULTIPLE_SUBSCRIBERS, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
		{CUPTI_UNKNOWN, "CUPTI_ERROR_UNKNOWN"},
	};

	if (!text)
		return CUPTI_BAD_PARAMETER;
	*text = "<unknown>";
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].result == result)
			*text = texts[i].text;
	return CUPTI_OK;
}

CUPTI_API(cuptiGetVersion, (uint32_t * version))
{
	if (!version)
		return CUPTI_BAD_PARAMETER;
	*version = CUPTI_VERSION;
	return CUPTI_OK;
}

CUPTI_API(cuptiGetTimestamp, (uint64_t * timestamp))
{
	if (!timestamp)
		return CUPTI_BAD_PARAMETER;
	if (!ready())
		return CUPTI_NOT_INITIALIZED;
	*timestamp = cupti_clock(clock_ns(CLOCK_MONOTONIC));
	return CUPTI_OK;
}

/* ---- what is recorded ---- */
static bool delivered(unsigned kind)
{
	return kind == KIND_MEMCPY || kind == KIND_MEMSET || kind == KIND_KERNEL ||
	       kind == KIND_DRIVER || kind == KIND_RUNTIME || kind == KIND_CONCURRENT_KERNEL ||
	       kind == KIND_OVERHEAD || kind == KIND_MEMCPY2 || kind == KIND_GRAPH_TRACE;
}

/* The driver tells only while something is recorded. */
static void listen_or_not(void)
{
	bool on = false;

	for (int i = 0; i < KIND_CNT; i++)
		on |= atomic_load(&cupti_kind_on[i]);
	for (int i = 0; i < FN_COUNT; i++)
		on |= atomic_load(&cupti_driver_on[i]) || atomic_load(&cupti_runtime_on[i]);
	cupti_source->listen(on ? &cupti_listener : NULL);
}

static int enable_kind(unsigned kind, bool on)
{
	bool runtime;

	if (!ready())
		return CUPTI_NOT_INITIALIZED;
	if (kind >= KIND_CNT || !delivered(kind))
		return CUPTI_BAD_KIND;
	atomic_store(&cupti_kind_on[kind], on);
	/* It overrides what was said about single functions. */
	if (kind == KIND_DRIVER || kind == KIND_RUNTIME)
		for (enum sim_fn fn = 0; fn < FN_COUNT; fn++)
			if (cupti_cbid(fn, &runtime) && runtime == (kind == KIND_RUNTIME))
				atomic_store(&(runtime ? cupti_runtime_on : cupti_driver_on)[fn],
					     on);
	listen_or_not();
	return CUPTI_OK;
}

CUPTI_API(cuptiActivityEnable, (unsigned kind))
{
	return enable_kind(kind, true);
}

/* What has ended until now is recorded. */
CUPTI_API(cuptiActivityDisable, (unsigned kind))
{
	if (ready())
		cupti_source->settle();
	return enable_kind(kind, false);
}

static int enable_function(uint32_t cbid, bool enable, bool of_runtime)
{
	bool runtime;

	if (!ready())
		return CUPTI_NOT_INITIALIZED;
	for (enum sim_fn fn = 0; cbid && fn < FN_COUNT; fn++)
		if (cupti_cbid(fn, &runtime) == cbid && runtime == of_runtime)
			atomic_store(&(runtime ? cupti_runtime_on : cupti_driver_on)[fn], enable);
	listen_or_not();
	return CUPTI_OK;
}

CUPTI_API(cuptiActivityEnableDriverApi, (uint32_t cbid, uint8_t enable))
{
	return enable_function(cbid, enable, false);
}

CUPTI_API(cuptiActivityEnableRuntimeApi, (uint32_t cbid, uint8_t enable))
{
	return enable_function(cbid, enable, true);
}

CUPTI_API(cuptiActivityEnableHWTrace, (uint8_t enable))
{
	return enable ? CUPTI_UNSUPPORTED : CUPTI_OK;
}

CUPTI_API(cuptiSetThreadIdType, (int type))
{
	if (type != CUPTI_THREAD_DEFAULT && type != CUPTI_THREAD_SYSTEM)
		return CUPTI_UNSUPPORTED;
	atomic_store(&cupti_thread_type, type);
	return CUPTI_OK;
}

CUPTI_API(cuptiGetThreadIdType, (int *type))
{
	if (!type)
		return CUPTI_BAD_PARAMETER;
	*type = atomic_load(&cupti_thread_type);
	return CUPTI_OK;
}

/* ---- buffers ---- */
CUPTI_API(cuptiActivityRegisterCallbacks, (cupti_wanted * wanted, cupti_completed *completed))
{
	if (!wanted || !completed)
		return CUPTI_BAD_PARAMETER;
	return ready() ? cupti_buffers_set(wanted, completed) : CUPTI_NOT_INITIALIZED;
}

CUPTI_API(cuptiActivityGetNextRecord, (uint8_t * buffer, size_t valid, uint8_t **record))
{
	return cupti_next_record(buffer, valid, record);
}

CUPTI_API(cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped))
{
	if (!dropped)
		return CUPTI_BAD_PARAMETER;
	*dropped = cupti_dropped();
	return CUPTI_OK;
}

CUPTI_API(cuptiActivityFlushAll, (uint32_t flag))
{
	return ready() ? cupti_flush() : CUPTI_NOT_INITIALIZED;
}

CUPTI_API(cuptiActivityFlushPeriod, (uint32_t ms))
{
	cupti_flush_every(ms);
	return CUPTI_OK;
}

/* Sizes and limits of the device's buffers mean nothing here; they are kept. */
static size_t attributes[16] = {[0] = 3200 << 10, [2] = 250, [6] = 3};

static bool is_byte(unsigned attr) /* the others are a size_t */
{
	return attr == 5 || attr == 8 || attr == 9;
}

static int attribute(unsigned attr, size_t *bytes, void *value, bool set)
{
	size_t want = is_byte(attr) ? 1 : sizeof(size_t);

	if (!bytes || !value || attr > 10)
		return CUPTI_BAD_PARAMETER;
	if (*bytes < want)
		return CUPTI_TOO_SMALL;
	if (set)
		memcpy(&attributes[attr], value, want);
	else
		memcpy(value, &attributes[attr], want);
	*bytes = want;
	return CUPTI_OK;
}

CUPTI_API(cuptiActivitySetAttribute, (unsigned attr, size_t *bytes, void *value))
{
	return attribute(attr, bytes, value, true);
}

CUPTI_API(cuptiActivityGetAttribute, (unsigned attr, size_t *bytes, void *value))
{
	return attribute(attr, bytes, value, false);
}

/* ---- what CUPTI calls things ---- */
CUPTI_API(cuptiGetStreamIdEx, (void *ctx, void *stream, uint8_t per_thread, uint32_t *id))
{
	if (!id || !ready())
		return CUPTI_BAD_PARAMETER;
	*id = cupti_source->stream_id(ctx, stream, per_thread);
	return *id ? CUPTI_OK : CUPTI_BAD_STREAM;
}

CUPTI_API(cuptiGetContextId, (void *ctx, uint32_t *id))
{
	if (!id || !ready())
		return CUPTI_BAD_PARAMETER;
	*id = cupti_source->context_id(ctx);
	return *id ? CUPTI_OK : CUPTI_BAD_CONTEXT;
}

CUPTI_API(cuptiGetDeviceId, (void *ctx, uint32_t *id))
{
	int device;

	if (!id || !ready())
		return CUPTI_BAD_PARAMETER;
	device = cupti_source->device(ctx);
	*id = (uint32_t)device;
	return device < 0 ? CUPTI_BAD_CONTEXT : CUPTI_OK;
}

CUPTI_API(cuptiFinalize, (void))
{
	if (!ready())
		return CUPTI_NOT_INITIALIZED;
	cupti_source->listen(NULL);
	for (int i = 0; i < KIND_CNT; i++)
		atomic_store(&cupti_kind_on[i], false);
	for (int i = 0; i < FN_COUNT; i++) {
		atomic_store(&cupti_driver_on[i], false);
		atomic_store(&cupti_runtime_on[i], false);
	}
	cupti_records_stop();
	atomic_store(&subscriber, NULL);
	return CUPTI_OK;
}
