/*
 * shim/sample/nvml.c: NVML is asked what GPUs do. On a thread of its own; the sampler's thread takes what it has found.
 *
 * Sources: the NVML API reference (structs, constants); which questions disturb nothing, and what they cost: docs/CUDA_FACTS.md.
 */
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include "hook/loader.h"
#include "lib/lock.h"
#include "lib/signal_guard.h"
#include "process/options.h"
#include "record/notes.h"
#include "sample/nvml.h"
#include "state/session.h"

#define PERIOD_NS 200000000ull /* from one question about utilisation to the next */
#define EACH 5 /* so many of these there is one about the rest */
#define PROCESSES_MOST 64
#define SHARES_MOST 256 /* NVML wants room for all that its buffer may have: 72 of an H200 */
#define NOT_SUPPORTED_PERCENT 0xff
#define LINKS_MOST 18 /* NVML_NVLINK_MAX_LINKS */
/* NVML_FI_DEV_NVLINK_GET_SPEED, of a link; NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, which an H200 does not know, of all. */
#define FIELD_LINK_MBYTES 164
#define FIELD_LINKS_MBYTES 90

enum { SUCCESS, INSUFFICIENT_SIZE = 7 };
enum { CLOCK_SM = 1, TEMPERATURE_GPU = 0 };

/* nvmlUtilization_t, nvmlMemory_t, nvmlProcessInfo_t of the third version. */
struct utilisation {
	unsigned int gpu, memory;
};

struct memory {
	unsigned long long total, free, used;
};

struct process_info {
	unsigned int pid;
	unsigned long long used; /* ULLONG_MAX: unknown */
	unsigned int gpu_instance, compute_instance;
};

/* nvmlProcessUtilizationSample_t. */
struct share {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int kernels, memory, encoder, decoder; /* per cent */
};

/* nvmlFieldValue_t. */
struct field {
	unsigned int id, scope;
	long long time_us, latency_us;
	int type, error;
	union {
		unsigned int number;
		unsigned long long large;
	} value;
};

#define FUNCTIONS(F) \
	F(init, "nvmlInit_v2", (void)) \
	F(handle, "nvmlDeviceGetHandleByPciBusId_v2", (const char *, void **)) \
	F(utilisation, "nvmlDeviceGetUtilizationRates", (void *, struct utilisation *)) \
	F(clock, "nvmlDeviceGetClockInfo", (void *, int, unsigned int *)) \
	F(clock_most, "nvmlDeviceGetMaxClockInfo", (void *, int, unsigned int *)) \
	F(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons", (void *, unsigned long long *)) \
	F(power, "nvmlDeviceGetPowerUsage", (void *, unsigned int *)) \
	F(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (void *, unsigned int *)) \
	F(temperature, "nvmlDeviceGetTemperature", (void *, int, unsigned int *)) \
	F(memory, "nvmlDeviceGetMemoryInfo", (void *, struct memory *)) \
	F(processes, "nvmlDeviceGetComputeRunningProcesses_v3", \
	  (void *, unsigned int *, struct process_info *)) \
	F(shares, "nvmlDeviceGetProcessUtilization", \
	  (void *, struct share *, unsigned int *, unsigned long long)) \
	F(link, "nvmlDeviceGetNvLinkState", (void *, unsigned int, int *)) \
	F(fields, "nvmlDeviceGetFieldValues", (void *, int, struct field *))

struct functions {
#define POINTER(field, name, params) int(*field) params;
	FUNCTIONS(POINTER)
};

struct gpu {
	char pci[32]; /* empty: there is none of this ordinal */
	void *handle; /* NVML's; NULL: not known */
	struct spy_rec_gpu_look look;
	unsigned long long shares_us; /* of the last share that was seen */
	bool is_new, links_asked;
};

static struct gpu gpus[SPY_NVML_GPUS];
static struct spy_lock lock; /* their looks, while they are copied */
static const _Atomic uint32_t *stop; /* a futex; NULL: nobody asks */
static pthread_t thread;
static _Atomic int thread_tid;

void spy_nvml_add(unsigned int ordinal, const char *pci)
{
	if (ordinal < SPY_NVML_GPUS)
		snprintf(gpus[ordinal].pci, sizeof(gpus[ordinal].pci), "%s", pci);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Not all versions have all of them. */
static bool find_functions(void *library, struct functions *f)
{
#define FIND(field, name, params) *(void **)&f->field = spy_real_dlsym(library, name);
	FUNCTIONS(FIND)
	return f->init && f->handle && f->utilisation;
}

static uint32_t number(int (*function)(void *, unsigned int *), void *handle)
{
	unsigned int value = 0;

	return function && function(handle, &value) == SUCCESS ? value : 0;
}

static uint16_t kind_number(int (*function)(void *, int, unsigned int *), void *handle, int kind)
{
	unsigned int value = 0;

	return function && function(handle, kind, &value) == SUCCESS ? (uint16_t)value : 0;
}

/* Where numbers of processes are of another namespace, this process is not among them: those of the others are unknown. */
static void ask_processes(const struct functions *f, void *handle, struct spy_rec_gpu_look *look)
{
	struct process_info all[PROCESSES_MOST];
	unsigned int n = PROCESSES_MOST, i;
	bool has_own = false;
	int error;

	if (!f->processes)
		return;
	error = f->processes(handle, &n, all);
	if (error != SUCCESS && error != INSUFFICIENT_SIZE)
		return;
	look->known |= SPY_GPU_LOOK_PROCESSES;
	if (error == INSUFFICIENT_SIZE || n > PROCESSES_MOST)
		n = PROCESSES_MOST;
	for (i = 0; i < n; i++)
		has_own |= all[i].pid == (unsigned int)spy_session->pid;
	look->others = (uint16_t)(n ? n - 1 : 0);
	for (i = 0; has_own && i < n; i++) {
		if (all[i].pid == (unsigned int)spy_session->pid)
			continue;
		if (!look->other_pid)
			look->other_pid = all[i].pid;
		if (all[i].used != ~0ull)
			look->others_bytes += all[i].used;
	}
}

static uint8_t up_to_100(unsigned int percent)
{
	return (uint8_t)(percent < 100 ? percent : 100);
}

/* Whose kernels ran. This question takes milliseconds, and holds up other threads' allocations where it is asked hundreds of times a
 * second: it is asked only where others are on the GPU. */
static void ask_shares(const struct functions *f, struct gpu *gpu, struct spy_rec_gpu_look *look)
{
	struct share all[SHARES_MOST];
	unsigned int n = SHARES_MOST, own = 0, others = 0;

	if (!f->shares || !look->other_pid ||
	    f->shares(gpu->handle, all, &n, gpu->shares_us) != SUCCESS || n > SHARES_MOST)
		return;
	for (unsigned int i = 0; i < n; i++) {
		*(all[i].pid == (unsigned int)spy_session->pid ? &own : &others) += all[i].kernels;
		if (all[i].time_us > gpu->shares_us)
			gpu->shares_us = all[i].time_us;
	}
	look->own_busy = up_to_100(own);
	look->others_busy = up_to_100(others);
	look->known |= SPY_GPU_LOOK_SHARES;
}

/* Of those between GPUs, or to their switch: asked once. */
static void ask_links(const struct functions *f, struct gpu *gpu, struct spy_rec_gpu_look *look)
{
	struct field fields[] = {{.id = FIELD_LINK_MBYTES}, {.id = FIELD_LINKS_MBYTES}};
	unsigned int n = 0;
	int up;

	if (gpu->links_asked || !f->link || !f->fields)
		return;
	gpu->links_asked = true;
	for (unsigned int i = 0; i < LINKS_MOST; i++) {
		up = 0;
		if (f->link(gpu->handle, i, &up) != SUCCESS || !up)
			continue;
		fields[0].scope = i;
		n++;
	}
	if (!n || f->fields(gpu->handle, 2, fields) != SUCCESS)
		return;
	look->links = (uint16_t)n;
	look->link_mbytes = fields[0].error == SUCCESS   ? fields[0].value.number
			    : fields[1].error == SUCCESS ? fields[1].value.number
							 : 0;
}

static void ask_rest(const struct functions *f, struct gpu *gpu, struct spy_rec_gpu_look *look)
{
	void *handle = gpu->handle;
	unsigned long long reasons = 0;
	struct memory memory = {0};

	look->clock = kind_number(f->clock, handle, CLOCK_SM);
	look->clock_most = kind_number(f->clock_most, handle, CLOCK_SM);
	look->temperature = kind_number(f->temperature, handle, TEMPERATURE_GPU);
	look->power = number(f->power, handle);
	look->power_limit = number(f->power_limit, handle);
	if (f->reasons && f->reasons(handle, &reasons) == SUCCESS) {
		look->reasons = reasons;
		look->known |= SPY_GPU_LOOK_REASONS;
	}
	if (f->memory && f->memory(handle, &memory) == SUCCESS)
		look->used_bytes = memory.used;
	look->other_pid = look->others = 0;
	look->others_bytes = 0;
	look->own_busy = look->others_busy = 0;
	ask_processes(f, handle, look);
	ask_shares(f, gpu, look);
	ask_links(f, gpu, look);
	look->known |= look->link_mbytes ? SPY_GPU_LOOK_LINKS : 0;
}

static void ask(const struct functions *f, unsigned int ordinal, bool all)
{
	struct gpu *gpu = &gpus[ordinal];
	struct spy_rec_gpu_look look = gpu->look;
	struct utilisation utilisation;
	int error = f->utilisation(gpu->handle, &utilisation);

	look.device = (uint8_t)ordinal;
	look.busy = error == SUCCESS ? (uint8_t)utilisation.gpu : NOT_SUPPORTED_PERCENT;
	look.known = all ? 0 : look.known;
	if (all)
		ask_rest(f, gpu, &look);
	if (!spy_lock(&lock))
		return;
	gpu->look = look;
	gpu->is_new = true;
	spy_unlock(&lock);
}

bool spy_nvml_take(struct spy_rec_gpu_look *look)
{
	bool found = false;

	if (!stop || !spy_lock(&lock))
		return false;
	for (unsigned int i = 0; i < SPY_NVML_GPUS && !found; i++) {
		found = gpus[i].is_new;
		if (!found)
			continue;
		gpus[i].is_new = false;
		*look = gpus[i].look;
	}
	spy_unlock(&lock);
	return found;
}

/* ---- the thread ------------------------------------------------------------------------------- */

static void sleep_a_period(void)
{
	const struct timespec period = {.tv_nsec = (long)PERIOD_NS};

	spy_syscall(SYS_futex, stop, FUTEX_WAIT_PRIVATE, 0, &period, NULL, 0);
}

static bool find_gpus(const struct functions *f)
{
	bool any = false;

	for (unsigned int i = 0; i < SPY_NVML_GPUS; i++) {
		if (!*gpus[i].pci || f->handle(gpus[i].pci, &gpus[i].handle) != SUCCESS)
			gpus[i].handle = NULL;
		any |= gpus[i].handle != NULL;
	}
	return any;
}

static const char *prepare(struct functions *f)
{
	void *library = spy_real_dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (!library)
		return "there is no libnvidia-ml.so.1";
	if (!find_functions(library, f))
		return "libnvidia-ml.so.1 is of a version that is not known";
	if (f->init() != SUCCESS)
		return "nvmlInit fails";
	return find_gpus(f) ? NULL : "it does not know the GPUs of the program";
}

static void *run(void *data)
{
	struct functions f;
	const char *missing;
	sigset_t before;

	(void)data;
	atomic_store(&thread_tid, (int)spy_syscall(SYS_gettid));
	spy_signals_hold(&before);
	prctl(PR_SET_NAME, "cudaspy-nvml");
	missing = prepare(&f);
	if (missing)
		spy_note(SPY_NOTE_OTHER, "NVML is not asked about GPUs: %s", missing);
	for (unsigned int turn = 0; !missing && !atomic_load(stop); turn++) {
		for (unsigned int i = 0; i < SPY_NVML_GPUS && !atomic_load(stop); i++)
			if (gpus[i].handle)
				ask(&f, i, turn % EACH == 0);
		sleep_a_period();
	}
	return NULL;
}

void spy_nvml_begin(const _Atomic uint32_t *asked_to_stop)
{
	if (spy_options.nonvml)
		return;
	stop = asked_to_stop;
	if (pthread_create(&thread, NULL, run, NULL))
		stop = NULL;
}

int spy_nvml_leave(const struct timespec *until)
{
	if (stop)
		pthread_timedjoin_np(thread, NULL, until);
	return stop ? atomic_load(&thread_tid) : 0;
}

void spy_nvml_forked(void)
{
	memset(gpus, 0, sizeof(gpus));
	lock = (struct spy_lock){0};
	stop = NULL;
}
