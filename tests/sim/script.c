/*
 * tests/sim/script.c: the simulator's knobs: environment variables and the lines of SPYSIM_SCRIPT.
 * Read once, on the thread that first needs them; asked by every launch (kernel durations) and, when
 * errors are scripted, by every call.
 *
 *   gpus <n>                           also SPYSIM_GPUS
 *   lock split|process|device          also SPYSIM_LOCK    (locks.c)
 *   staging d2h|pageable|all           also SPYSIM_STAGING (driver_copy.c)
 *   kernel <substring> <us>            the first line whose substring is in the kernel's name counts
 *   kernel_us <us>                     also SPYSIM_KERNEL_US: every other kernel
 *   copy_gbps <x>                      also SPYSIM_COPY_GBPS
 *   memory_mb <n>                      device memory; also SPYSIM_MEMORY_MB
 *   staging_kb <n>                     pageable bytes to the device a stream may have outstanding
 *   queue <n>                          launches a stream may have outstanding
 *   cost <function substring> <us>     host work of a call (held under its lock)
 *   work sleep|busy                    what a thread does in its host work, when that is long
 *   host_scale <x>                     also SPYSIM_HOST_SCALE: factor where no cost line counts
 *   hold <function substring> <kind>:<lock> <us> [whole]  such calls first take the lock (kind: mutex,
 *                                      read, write, spin; a driver's lock, or any name), work under it
 *                                      and release it, with `whole` when they end; several in order
 *   ioctl <function substring> <us>    time in the kernel module, under the call's own locks
 *   broken <kernel substring>          it does not compute: its twin on the host is not called
 *   lazy <kernel substring>            its first launch waits for the device with the context locked, also
 *                                      if its library has been used or loaded eagerly
 *   error <function> <nth call> <code> the nth call (0: every call) returns code and does nothing
 *   init <code>                        also SPYSIM_INIT: what cuInit returns
 *   slice_us <us>, switch_us <us>      also SPYSIM_SLICE_US, _SWITCH_US: shared GPUs (sharing.c)
 *   mps_clients <n>                    contexts that an MPS server takes for a device (mps.c)
 *   cupti_offset_us <us>, cupti_drift_ppm <x>, cupti_broken_times <n>, cupti_drop <n>, cupti_slot_taken 1
 *                                      of the look-alike of CUPTI (cupti.c)
 *   gpu_scale <x>                      also SPYSIM_GPU_SCALE: factor on how long all kernels last
 *   nccl_interface <n>, nccl_timer_offset_us <us>, nccl_timer_drift_ppm <x>, nccl_timer_step_ns <ns>, nccl_us <us>,
 *   nccl_gbps <x>, nccl_spread_us <us>, nccl_wait_s <s>   of the look-alike of NCCL (nccl.h)
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct rule {
	struct rule *next;
	char what[128];
	double us;
	long nth;
	int code;
	atomic_long calls;
};

struct sim_script sim_script = {
#ifdef SIM_NODEVICE
	.init_result = SIM_NO_DEVICE,
#endif
	.gpus = 2,
	.staging = STAGING_D2H,
	.kernel_ns = 20000,
	.copy_gbps = 25,
	.memory_bytes = 16ull << 30,
	.staging_bytes = 2560 << 10,
	.queue_depth = SIM_QUEUE_DEPTH,
	.host_scale = 1,
	.slice_ns = 2000000,
	.switch_ns = 125000,
	.mps_clients = 48,
	.gpu_scale = 1,
	.nccl = {.interface = 5,
		 .timer_step_ns = 32,
		 .base_ns = 15000,
		 .spread_ns = 2000,
		 .gbps = 100,
		 .wait_ns = 60000000000},
};

static struct rule *kernels, *costs, *errors, *lazy, *broken, *ioctls;
static struct sim_hold_rule *holds;
static bool fn_named[FN_COUNT]; /* by a hold or ioctl line */

static struct rule *rule_add(struct rule **list, const char *what)
{
	struct rule *rule = calloc(1, sizeof(*rule));

	if (!rule)
		abort();
	snprintf(rule->what, sizeof(rule->what), "%s", what);
	while (*list)
		list = &(*list)->next;
	return *list = rule;
}

/* A knob of the look-alike of NCCL. */
static bool set_nccl(const char *key, double number)
{
	struct sim_nccl *nccl = &sim_script.nccl;

	if (!strcmp(key, "nccl_interface"))
		nccl->interface = number < 1 ? 1 : number > 6 ? 6 : (int)number;
	else if (!strcmp(key, "nccl_timer_offset_us")) {
		nccl->timer_offset_us = number;
		nccl->timer_set = true;
	} else if (!strcmp(key, "nccl_timer_drift_ppm")) {
		nccl->timer_drift_ppm = number;
		nccl->timer_set = true;
	} else if (!strcmp(key, "nccl_timer_step_ns") && number >= 1)
		nccl->timer_step_ns = (uint64_t)number;
	else if (!strcmp(key, "nccl_us") && number > 0)
		nccl->base_ns = (uint64_t)(number * 1000);
	else if (!strcmp(key, "nccl_spread_us") && number >= 0)
		nccl->spread_ns = (uint64_t)(number * 1000);
	else if (!strcmp(key, "nccl_gbps") && number > 0)
		nccl->gbps = number;
	else if (!strcmp(key, "nccl_wait_s") && number > 0)
		nccl->wait_ns = (uint64_t)(number * 1e9);
	else
		return false;
	return true;
}

static bool set(const char *key, const char *value)
{
	double number = strtod(value, NULL);

	if (!strcmp(key, "gpus"))
		sim_script.gpus = number < 0                 ? 0
				  : number > SIM_MAX_DEVICES ? SIM_MAX_DEVICES
							     : (int)number;
	else if (!strcmp(key, "lock"))
		sim_script.locks = !strcmp(value, "process")  ? LOCKS_PROCESS
				   : !strcmp(value, "device") ? LOCKS_DEVICE
							      : LOCKS_SPLIT;
	else if (!strcmp(key, "staging"))
		sim_script.staging = !strcmp(value, "all")        ? STAGING_ALL
				     : !strcmp(value, "pageable") ? STAGING_PAGEABLE
								  : STAGING_D2H;
	else if (!strcmp(key, "kernel_us"))
		sim_script.kernel_ns = (uint64_t)(number * 1000);
	else if (!strcmp(key, "copy_gbps") && number > 0)
		sim_script.copy_gbps = number;
	else if (!strcmp(key, "memory_mb"))
		sim_script.memory_bytes = (uint64_t)number << 20;
	else if (!strcmp(key, "staging_kb"))
		sim_script.staging_bytes = (uint64_t)number << 10;
	else if (!strcmp(key, "queue") && number >= 1)
		sim_script.queue_depth = (unsigned)number;
	else if (!strcmp(key, "host_scale"))
		sim_script.host_scale = number;
	else if (!strcmp(key, "work"))
		sim_script.busy_work = !strcmp(value, "busy");
	else if (!strcmp(key, "slice_us") && number > 0)
		sim_script.slice_ns = (uint64_t)(number * 1000);
	else if (!strcmp(key, "switch_us") && number >= 0)
		sim_script.switch_ns = (uint64_t)(number * 1000);
	else if (!strcmp(key, "mps_clients"))
		sim_script.mps_clients = (int)number;
	else if (!strcmp(key, "cupti_offset_us")) {
		sim_script.cupti.offset_us = number;
		sim_script.cupti.offset_set = true;
	} else if (!strcmp(key, "cupti_drift_ppm"))
		sim_script.cupti.drift_ppm = number;
	else if (!strcmp(key, "cupti_broken_times") && number >= 0)
		sim_script.cupti.broken_times = (unsigned)number;
	else if (!strcmp(key, "cupti_drop") && number >= 0)
		sim_script.cupti.drop = (unsigned)number;
	else if (!strcmp(key, "cupti_slot_taken"))
		sim_script.cupti.slot_taken = number != 0;
	else if (!strcmp(key, "gpu_scale") && number > 0)
		sim_script.gpu_scale = number;
	else if (!strncmp(key, "nccl_", 5))
		return set_nccl(key, number);
	else if (!strcmp(key, "init"))
		sim_script.init_result = (int)number;
	else
		return false;
	return true;
}

static bool hold_add(const char *function, const char *lock, const char *us, const char *whole)
{
	static const struct {
		const char *prefix;
		unsigned char kind, mode;
	} kinds[] = {{"mutex:", SIM_MUTEX, AS_MUTEX},
		     {"read:", SIM_RWLOCK, AS_READER},
		     {"write:", SIM_RWLOCK, AS_WRITER},
		     {"spin:", SIM_SPINLOCK, AS_SPINNER}};
	struct sim_hold_rule *rule, **list = &holds;
	const char *name = NULL;
	size_t i;

	for (i = 0; i < 4 && !name; i++)
		if (!strncmp(lock, kinds[i].prefix, strlen(kinds[i].prefix)))
			name = lock + strlen(kinds[i].prefix);
	if (!name || !*name || (whole && strcmp(whole, "whole") != 0))
		return false;
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		abort();
	snprintf(rule->function, sizeof(rule->function), "%s", function);
	snprintf(rule->lock, sizeof(rule->lock), "%s", name);
	rule->kind = kinds[i - 1].kind;
	rule->mode = kinds[i - 1].mode;
	rule->work_ns = (uint64_t)(strtod(us, NULL) * 1000);
	rule->whole_call = whole;
	while (*list)
		list = &(*list)->next;
	*list = rule;
	return true;
}

static void read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[512], a[128], b[128], c[128], d[128];

	if (!file) {
		fprintf(stderr, "sim: cannot read %s\n", path);
		return;
	}
	while (fgets(line, sizeof(line), file)) {
		int n = sscanf(line, "%127s %127s %127s %127s", a, b, c, d);
		struct rule *rule;

		if (n < 1 || a[0] == '#')
			continue;
		if (n >= 3 && !strcmp(a, "kernel")) {
			rule = rule_add(&kernels, b);
			rule->us = strtod(c, NULL);
		} else if (n >= 3 && !strcmp(a, "cost")) {
			rule = rule_add(&costs, b);
			rule->us = strtod(c, NULL);
		} else if (n >= 4 && !strcmp(a, "error")) {
			rule = rule_add(&errors, b);
			rule->nth = strtol(c, NULL, 0);
			rule->code = (int)strtol(d, NULL, 0);
		} else if (n >= 4 && !strcmp(a, "hold")) {
			char e[16];
			bool more = sscanf(line, "%*s %*s %*s %*s %15s", e) == 1 && e[0] != '#';

			if (!hold_add(b, c, d, more ? e : NULL))
				fprintf(stderr, "sim: %s: not understood: %s", path, line);
		} else if (n >= 3 && !strcmp(a, "ioctl")) {
			rule = rule_add(&ioctls, b);
			rule->us = strtod(c, NULL);
		} else if (n >= 2 && !strcmp(a, "lazy")) {
			rule_add(&lazy, b);
		} else if (n >= 2 && !strcmp(a, "broken")) {
			rule_add(&broken, b);
		} else if (n < 2 || !set(a, b)) {
			fprintf(stderr, "sim: %s: not understood: %s", path, line);
		}
	}
	fclose(file);
}

static void load(void)
{
	static const char *const env[][2] = {
		{"SPYSIM_GPUS", "gpus"},
		{"SPYSIM_LOCK", "lock"},
		{"SPYSIM_STAGING", "staging"},
		{"SPYSIM_KERNEL_US", "kernel_us"},
		{"SPYSIM_COPY_GBPS", "copy_gbps"},
		{"SPYSIM_MEMORY_MB", "memory_mb"},
		{"SPYSIM_INIT", "init"},
		{"SPYSIM_HOST_SCALE", "host_scale"},
		{"SPYSIM_SLICE_US", "slice_us"},
		{"SPYSIM_SWITCH_US", "switch_us"},
		{"SPYSIM_GPU_SCALE", "gpu_scale"},
		{"SPYSIM_NCCL_INTERFACE", "nccl_interface"},
		{"SPYSIM_NCCL_TIMER_OFFSET_US", "nccl_timer_offset_us"},
		{"SPYSIM_NCCL_TIMER_DRIFT_PPM", "nccl_timer_drift_ppm"},
		{"SPYSIM_NCCL_TIMER_STEP_NS", "nccl_timer_step_ns"},
		{"SPYSIM_NCCL_SPREAD_US", "nccl_spread_us"},
		{"SPYSIM_NCCL_WAIT_S", "nccl_wait_s"},
	};
	const char *path = getenv("SPYSIM_SCRIPT");

	if (path && *path)
		read_file(path);
	for (size_t i = 0; i < sizeof(env) / sizeof(env[0]); i++) {
		const char *value = getenv(env[i][0]);

		if (value && *value)
			set(env[i][1], value);
	}
	sim_script.blocking_launch =
		getenv("CUDA_LAUNCH_BLOCKING") && !strcmp(getenv("CUDA_LAUNCH_BLOCKING"), "1");
	for (int fn = 0; fn < FN_COUNT; fn++) {
		for (struct sim_hold_rule *rule = holds; rule; rule = rule->next)
			fn_named[fn] |= strstr(sim_fn_name[fn], rule->function) != NULL;
		for (struct rule *rule = ioctls; rule; rule = rule->next)
			fn_named[fn] |= strstr(sim_fn_name[fn], rule->what) != NULL;
	}
	if (errors || holds || ioctls)
		sim_spans_on = true;
}

void sim_script_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
}

uint64_t sim_script_kernel_ns(const char *name)
{
	for (struct rule *rule = kernels; rule; rule = rule->next)
		if (strstr(name, rule->what))
			return (uint64_t)(rule->us * 1000);
	return sim_script.kernel_ns;
}

uint64_t sim_script_cost_ns(const char *function, uint64_t default_ns)
{
	for (struct rule *rule = costs; rule; rule = rule->next)
		if (strstr(function, rule->what))
			return (uint64_t)(rule->us * 1000);
	return (uint64_t)((double)default_ns * sim_script.host_scale);
}

bool sim_script_has_errors(void)
{
	return errors;
}

int sim_script_error(enum sim_fn fn)
{
	for (struct rule *rule = errors; rule; rule = rule->next)
		if (!strcmp(sim_fn_name[fn], rule->what)) {
			long nth = atomic_fetch_add(&rule->calls, 1) + 1;

			if (!rule->nth || nth == rule->nth)
				return rule->code;
		}
	return 0;
}

static bool names_kernel(const struct rule *rule, const char *kernel)
{
	for (; rule; rule = rule->next)
		if (strstr(kernel, rule->what))
			return true;
	return false;
}

bool sim_script_lazy(const char *kernel)
{
	return names_kernel(lazy, kernel);
}

bool sim_script_broken(const char *kernel)
{
	return names_kernel(broken, kernel);
}

bool sim_script_names(enum sim_fn fn)
{
	return fn_named[fn];
}

const struct sim_hold_rule *sim_script_holds(enum sim_fn fn)
{
	return fn_named[fn] ? holds : NULL;
}

uint64_t sim_script_ioctl_ns(enum sim_fn fn)
{
	for (struct rule *rule = ioctls; rule; rule = rule->next)
		if (strstr(sim_fn_name[fn], rule->what))
			return (uint64_t)(rule->us * 1000);
	return 0;
}
