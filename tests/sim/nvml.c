/*
 * tests/sim/nvml.c: a look-alike of NVML (libnvidia-ml.so.1): what the simulated GPUs do, as far as the recorder asks. Their
 * utilisation is that of the simulator's own timeline, since the question before. On the caller's thread.
 *
 * The environment says what a simulated GPU cannot know: SIM_NVML_OTHER=PID: that process computes on all GPUs,
 * SIM_NVML_OTHER_BUSY=PERCENT: for so much of the time, and this one for the rest; SIM_NVML_REASONS=BITS: why
 * clocks are no higher (then they are half as high); SIM_NVML_POWER=MILLIWATTS, SIM_NVML_TEMPERATURE=DEGREES: of all GPUs (without
 * them, they are not supported); SIM_NVML_LINKS=N: of 25,000 MB/s each (without it, there are none); SIM_NVML_FAIL=1: nvmlInit fails; SIM_NVML_HANG=1: the first question never returns.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "activity.h"

#define EXPORT __attribute__((visibility("default")))

enum {
	SUCCESS = 0,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7,
	UNKNOWN = 999
};

#define GPUS_MOST 64

static const struct sim_activity_source *source(void)
{
	const struct sim_activity_source *(*find)(void) = NULL;
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (driver)
		*(void **)&find = dlsym(driver, "spysim_activity");
	return find ? find() : NULL;
}

static unsigned long long setting(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A handle is the GPU's number and 1. */
static unsigned gpu_of(void *handle)
{
	return (unsigned)(uintptr_t)handle - 1;
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void)
{
	return source() && !setting("SIM_NVML_FAIL") ? SUCCESS : UNKNOWN;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **handle);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **handle)
{
	unsigned domain, bus, device;

	if (sscanf(id, "%x:%x:%x", &domain, &bus, &device) != 3 || !bus || bus > GPUS_MOST)
		return NOT_FOUND;
	*handle = (void *)(uintptr_t)bus;
	return SUCCESS;
}

struct rates {
	unsigned gpu, memory;
};

EXPORT int nvmlDeviceGetUtilizationRates(void *handle, struct rates *rates);
EXPORT int nvmlDeviceGetUtilizationRates(void *handle, struct rates *rates)
{
	static struct {
		uint64_t ns, busy_ns;
	} last[GPUS_MOST];
	const struct sim_activity_source *sim = source();
	unsigned gpu = gpu_of(handle);
	uint64_t ns = now_ns(), busy_ns;

	while (setting("SIM_NVML_HANG"))
		pause();
	if (!sim || gpu >= GPUS_MOST)
		return INVALID_ARGUMENT;
	busy_ns = sim->busy_ns(gpu, ns);
	rates->gpu = ns > last[gpu].ns && last[gpu].ns
			     ? (unsigned)((busy_ns - last[gpu].busy_ns) * 100 / (ns - last[gpu].ns))
			     : 0;
	if (rates->gpu > 100)
		rates->gpu = 100;
	rates->memory = 0;
	last[gpu].ns = ns;
	last[gpu].busy_ns = busy_ns;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetClockInfo(void *handle, int kind, unsigned *mhz);
EXPORT int nvmlDeviceGetClockInfo(void *handle, int kind, unsigned *mhz)
{
	(void)handle;
	(void)kind;
	*mhz = setting("SIM_NVML_REASONS") ? 990 : 1980;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetMaxClockInfo(void *handle, int kind, unsigned *mhz);
EXPORT int nvmlDeviceGetMaxClockInfo(void *handle, int kind, unsigned *mhz)
{
	(void)handle;
	(void)kind;
	*mhz = 1980;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *reasons);
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *reasons)
{
	(void)handle;
	*reasons = setting("SIM_NVML_REASONS");
	return SUCCESS;
}

EXPORT int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts);
EXPORT int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts)
{
	(void)handle;
	*milliwatts = (unsigned)setting("SIM_NVML_POWER");
	return *milliwatts ? SUCCESS : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *milliwatts);
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *milliwatts)
{
	(void)handle;
	*milliwatts = 700000;
	return setting("SIM_NVML_POWER") ? SUCCESS : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *degrees);
EXPORT int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *degrees)
{
	(void)handle;
	(void)sensor;
	*degrees = (unsigned)setting("SIM_NVML_TEMPERATURE");
	return *degrees ? SUCCESS : NOT_SUPPORTED;
}

struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *n, struct process *all);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *n, struct process *all)
{
	unsigned other = (unsigned)setting("SIM_NVML_OTHER");

	(void)handle;
	*n = 1 + !!other;
	all[0] = (struct process){.pid = (unsigned)getpid(), .used = 1 << 20};
	if (other)
		all[1] = (struct process){.pid = other, .used = 3ull << 30};
	return SUCCESS;
}

struct share {
	unsigned pid;
	unsigned long long time_us;
	unsigned kernels, memory, encoder, decoder;
};

/* As the real one asks for room for all that it keeps, whatever there is. */
#define SHARES_ROOM 72

EXPORT int nvmlDeviceGetProcessUtilization(void *handle, struct share *all, unsigned *n,
					   unsigned long long since_us);
EXPORT int nvmlDeviceGetProcessUtilization(void *handle, struct share *all, unsigned *n,
					   unsigned long long since_us)
{
	unsigned busy = (unsigned)setting("SIM_NVML_OTHER_BUSY");
	unsigned room = *n;
	unsigned long long now_us = now_ns() / 1000;

	(void)handle;
	if (room < SHARES_ROOM) {
		*n = SHARES_ROOM;
		return INSUFFICIENT_SIZE;
	}
	if (!busy || now_us <= since_us)
		return NOT_FOUND;
	*n = 2;
	all[0] = (struct share){(unsigned)getpid(), now_us, 100 - busy, 0, 0, 0};
	all[1] = (struct share){(unsigned)setting("SIM_NVML_OTHER"), now_us, busy, 0, 0, 0};
	return SUCCESS;
}

EXPORT int nvmlDeviceGetNvLinkState(void *handle, unsigned link, int *up);
EXPORT int nvmlDeviceGetNvLinkState(void *handle, unsigned link, int *up)
{
	(void)handle;
	if (link >= setting("SIM_NVML_LINKS"))
		return INVALID_ARGUMENT;
	*up = 1;
	return SUCCESS;
}

struct field {
	unsigned id, scope;
	long long time_us, latency_us;
	int type, error;
	union {
		unsigned number;
		unsigned long long large;
	} value;
};

EXPORT int nvmlDeviceGetFieldValues(void *handle, int n, struct field *fields);
EXPORT int nvmlDeviceGetFieldValues(void *handle, int n, struct field *fields)
{
	(void)handle;
	for (int i = 0; i < n; i++) {
		fields[i].error = fields[i].id == 164 ? SUCCESS : NOT_SUPPORTED;
		fields[i].value.number = 25000;
	}
	return SUCCESS;
}
