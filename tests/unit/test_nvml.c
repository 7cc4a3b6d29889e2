/* links: shim/sample/nvml.c shim/lib/lock.c */
/*
 * tests/unit/test_nvml.c: what NVML is asked about GPUs, and what of its answers comes into a look: a made-up NVML, of which
 * functions may be missing or fail; more processes than there is room for; processes of another namespace; shares; links.
 */
#include <dlfcn.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "hook/loader.h"
#include "lib/signal_guard.h"
#include "process/options.h"
#include "record/notes.h"
#include "sample/nvml.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

#define PROCESSES_MOST 64 /* nvml.c */
#define SHARES_MOST 256
#define INSUFFICIENT 7
#define UNKNOWN_BYTES (~0ull)

/* ---- the rest of the shim ---- */

struct spy_options spy_options;
static char note[200];

bool spy_signals_hold(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	return pthread_sigmask(SIG_SETMASK, &all, before) == 0;
}

void spy_signals_release(const sigset_t *before)
{
	(void)before;
}

void spy_note(enum spy_note what, const char *format, ...)
{
	va_list args;

	(void)what;
	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
}

/* ---- NVML ---- */

struct process {
	unsigned int pid;
	unsigned long long used;
	unsigned int instances[2];
};

struct share {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int kernels, memory, encoder, decoder;
};

struct field {
	unsigned int id, scope;
	long long time_us, latency_us;
	int type, error;
	unsigned long long value;
};

static const char *missing; /* a function that it does not have */
static const char *fails; /* … or that fails */
static char gpus[2]; /* handles */
static struct process processes[PROCESSES_MOST + 1];
static unsigned int n_processes;
static int processes_error;
static struct share shares[4];
static unsigned int n_shares, busy = 37;
static unsigned long long asked_since;
static int n_shares_asked, n_links_asked, links_up; /* bits */
static int field_errors[2];
static _Atomic int n_utilisation[2];

#define ANSWER(name) \
	do { \
		if (fails && strcmp(fails, name) == 0) \
			return 999; \
	} while (0)

static int init(void)
{
	ANSWER("nvmlInit_v2");
	return 0;
}

static int by_pci(const char *pci, void **handle)
{
	int i = strcmp(pci, "0000:01:00.0") == 0 ? 0 : strcmp(pci, "0000:02:00.0") == 0 ? 1 : -1;

	ANSWER("nvmlDeviceGetHandleByPciBusId_v2");
	if (i < 0)
		return 6;
	*handle = &gpus[i];
	return 0;
}

static int utilisation(char *handle, unsigned int *rates)
{
	n_utilisation[handle - gpus]++;
	ANSWER("nvmlDeviceGetUtilizationRates");
	rates[0] = busy + (unsigned int)(handle - gpus);
	rates[1] = 1;
	return 0;
}

#define NUMBER(function, name, number) \
	static int function(void *handle, unsigned int *value) \
	{ \
		(void)handle; \
		ANSWER(name); \
		*value = number; \
		return 0; \
	}
#define KIND(function, name, of, number) \
	static int function(void *handle, int kind, unsigned int *value) \
	{ \
		(void)handle; \
		ANSWER(name); \
		*value = kind == (of) ? number : 1; \
		return 0; \
	}
KIND(clock_now, "nvmlDeviceGetClockInfo", 1, 1980)
KIND(clock_most, "nvmlDeviceGetMaxClockInfo", 1, 2010)
KIND(temperature, "nvmlDeviceGetTemperature", 0, 64)
NUMBER(power, "nvmlDeviceGetPowerUsage", 700123)
NUMBER(power_limit, "nvmlDeviceGetEnforcedPowerLimit", 700000)

static int reasons(void *handle, unsigned long long *bits)
{
	(void)handle;
	ANSWER("nvmlDeviceGetCurrentClocksThrottleReasons");
	*bits = 0x104;
	return 0;
}

static int memory(void *handle, unsigned long long *bytes)
{
	(void)handle;
	ANSWER("nvmlDeviceGetMemoryInfo");
	bytes[0] = 150;
	bytes[1] = 50;
	bytes[2] = 100;
	return 0;
}

static int running(void *handle, unsigned int *n, struct process *all)
{
	(void)handle;
	ANSWER("nvmlDeviceGetComputeRunningProcesses_v3");
	assert_int_equal(*n, PROCESSES_MOST);
	memcpy(all, processes, (n_processes < *n ? n_processes : *n) * sizeof(*all));
	*n = n_processes;
	return processes_error;
}

static int share_of(void *handle, struct share *all, unsigned int *n, unsigned long long since)
{
	(void)handle;
	ANSWER("nvmlDeviceGetProcessUtilization");
	assert_int_equal(*n, SHARES_MOST);
	asked_since = since;
	n_shares_asked++;
	memcpy(all, shares, sizeof(shares));
	*n = n_shares;
	return 0;
}

static int link_state(void *handle, unsigned int link, int *up)
{
	(void)handle;
	n_links_asked++;
	*up = links_up >> link & 1;
	return link == 17 ? 3 : 0; /* there is none of that number */
}

static int fields(void *handle, int n, struct field *all)
{
	(void)handle;
	ANSWER("nvmlDeviceGetFieldValues");
	assert_int_equal(n, 2);
	assert_int_equal(all[0].id, 164);
	assert_int_equal(all[1].id, 90);
	assert_int_equal(links_up >> all[0].scope & 1, 1); /* one that is up */
	for (int i = 0; i < 2; i++) {
		all[i].error = field_errors[i];
		all[i].value = i ? 20000 : 26562;
	}
	return 0;
}

static void *open_library(const char *path, int flags)
{
	assert_int_equal(flags, RTLD_LAZY | RTLD_LOCAL);
	return missing && strcmp(missing, path) == 0 ? NULL : gpus;
}

static void *find_symbol(void *handle, const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} all[] = {{"nvmlInit_v2", (void *)init},
		   {"nvmlDeviceGetHandleByPciBusId_v2", (void *)by_pci},
		   {"nvmlDeviceGetUtilizationRates", (void *)utilisation},
		   {"nvmlDeviceGetClockInfo", (void *)clock_now},
		   {"nvmlDeviceGetMaxClockInfo", (void *)clock_most},
		   {"nvmlDeviceGetCurrentClocksThrottleReasons", (void *)reasons},
		   {"nvmlDeviceGetPowerUsage", (void *)power},
		   {"nvmlDeviceGetEnforcedPowerLimit", (void *)power_limit},
		   {"nvmlDeviceGetTemperature", (void *)temperature},
		   {"nvmlDeviceGetMemoryInfo", (void *)memory},
		   {"nvmlDeviceGetComputeRunningProcesses_v3", (void *)running},
		   {"nvmlDeviceGetProcessUtilization", (void *)share_of},
		   {"nvmlDeviceGetNvLinkState", (void *)link_state},
		   {"nvmlDeviceGetFieldValues", (void *)fields}};

	assert_ptr_equal(handle, gpus);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (strcmp(name, all[i].name) == 0)
			return missing && strcmp(missing, name) == 0 ? NULL : all[i].function;
	fail_msg("%s", name);
	return NULL;
}

void *(*spy_real_dlopen)(const char *path, int flags) = open_library;
void *(*spy_real_dlsym)(void *handle, const char *name) = find_symbol;

/* ---- a process ---- */

static _Atomic uint32_t stop;

static int begin(void **state)
{
	(void)state;
	spy_nvml_forked();
	begin_session();
	session.pid = 100;
	spy_options = (struct spy_options){0};
	note[0] = '\0';
	missing = fails = NULL;
	processes[0] = (struct process){.pid = 100, .used = 1000};
	n_processes = 1;
	processes_error = 0;
	n_shares = 0;
	links_up = 0;
	n_shares_asked = n_links_asked = 0;
	field_errors[0] = field_errors[1] = 0;
	n_utilisation[0] = n_utilisation[1] = 0;
	stop = 0;
	return 0;
}

/* Asks once more, unless that comes by itself. */
static void another_turn(int gpu)
{
	int before = n_utilisation[gpu];

	while (n_utilisation[gpu] == before) {
		syscall(SYS_futex, &stop, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		usleep(500);
	}
}

static struct spy_rec_gpu_look take(void)
{
	struct spy_rec_gpu_look look;

	while (!spy_nvml_take(&look))
		usleep(500);
	return look;
}

static void end(void)
{
	struct timespec until;

	stop = 1;
	syscall(SYS_futex, &stop, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	assert_true(spy_nvml_leave(&until) > 0);
}

/* The first look at one GPU. */
static struct spy_rec_gpu_look look_once(void)
{
	struct spy_rec_gpu_look look;

	spy_nvml_add(3, "0000:01:00.0");
	spy_nvml_begin(&stop);
	look = take();
	end();
	return look;
}

/* ---- answers ---- */

static void test_look(void **state)
{
	struct spy_rec_gpu_look look, again;

	(void)state;
	spy_nvml_add(3, "0000:01:00.0");
	spy_nvml_add(SPY_NVML_GPUS, "0000:02:00.0"); /* beyond the table */
	spy_nvml_begin(&stop);
	look = take();
	assert_int_equal(look.device, 3);
	assert_int_equal(look.busy, 37);
	assert_int_equal(look.clock, 1980);
	assert_int_equal(look.clock_most, 2010);
	assert_int_equal(look.reasons, 0x104);
	assert_int_equal(look.power, 700123);
	assert_int_equal(look.power_limit, 700000);
	assert_int_equal(look.temperature, 64);
	assert_int_equal(look.used_bytes, 100);
	assert_int_equal(look.others + look.other_pid + look.others_bytes, 0);
	assert_int_equal(look.known, SPY_GPU_LOOK_REASONS | SPY_GPU_LOOK_PROCESSES);
	/* Between questions about all of it utilisation alone is new; the rest stays. */
	busy = 55;
	fails = "nvmlDeviceGetClockInfo";
	another_turn(0);
	again = take();
	assert_int_equal(again.busy, 55);
	assert_int_equal(again.clock, 1980);
	assert_int_equal(again.known, look.known);
	for (int i = 0; i < 5; i++)
		another_turn(0);
	do
		again = take();
	while (again.clock);
	assert_int_equal(again.clock_most, 2010);
	end();
	busy = 37;
	assert_string_equal(note, "");
	/* It is taken once. */
	while (spy_nvml_take(&look))
		;
	assert_false(spy_nvml_take(&look));
}

/* What a version does not have, or says no to, is unknown; the rest is not. */
static void test_unknown(void **state)
{
	static const struct {
		const char *name;
		uint32_t known;
	} cases[] = {{"nvmlDeviceGetClockInfo", 3},
		     {"nvmlDeviceGetMaxClockInfo", 3},
		     {"nvmlDeviceGetCurrentClocksThrottleReasons", 2},
		     {"nvmlDeviceGetPowerUsage", 3},
		     {"nvmlDeviceGetEnforcedPowerLimit", 3},
		     {"nvmlDeviceGetTemperature", 3},
		     {"nvmlDeviceGetMemoryInfo", 3},
		     {"nvmlDeviceGetComputeRunningProcesses_v3", 1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (int how = 0; how < 2; how++) {
			struct spy_rec_gpu_look look;

			begin(state);
			*(how ? &fails : &missing) = cases[i].name;
			look = look_once();
			assert_int_equal(look.known, cases[i].known);
			assert_int_equal(look.clock, i == 0 ? 0 : 1980);
			assert_int_equal(look.clock_most, i == 1 ? 0 : 2010);
			assert_int_equal(look.reasons, i == 2 ? 0 : 0x104);
			assert_int_equal(look.power, i == 3 ? 0 : 700123);
			assert_int_equal(look.power_limit, i == 4 ? 0 : 700000);
			assert_int_equal(look.temperature, i == 5 ? 0 : 64);
			assert_int_equal(look.used_bytes, i == 6 ? 0 : 100);
			assert_int_equal(look.busy, 37);
		}
	begin(state);
	fails = "nvmlDeviceGetUtilizationRates";
	assert_int_equal(look_once().busy, 255);
}

static void test_processes(void **state)
{
	struct spy_rec_gpu_look look;

	(void)state;
	processes[1] = (struct process){.pid = 200, .used = 5000};
	processes[2] = (struct process){.pid = 300, .used = UNKNOWN_BYTES};
	processes[3] = (struct process){.pid = 400, .used = 7000};
	n_processes = 4;
	look = look_once();
	assert_int_equal(look.others, 3);
	assert_int_equal(look.other_pid, 200);
	assert_int_equal(look.others_bytes, 12000);
	/* Numbers of another namespace: there are others, and no more is known of them. */
	begin(state);
	processes[0].pid = 1;
	n_processes = 4;
	look = look_once();
	assert_int_equal(look.others, 3);
	assert_int_equal(look.other_pid + look.others_bytes, 0);
	begin(state);
	n_processes = 0;
	assert_int_equal(look_once().others, 0);
	/* More than there is room for. */
	for (int error = 0; error < 2; error++) {
		begin(state);
		for (unsigned int i = 1; i <= PROCESSES_MOST; i++)
			processes[i] = (struct process){.pid = 100 + i, .used = 10};
		n_processes = PROCESSES_MOST + 1;
		processes_error = error ? INSUFFICIENT : 0;
		look = look_once();
		assert_int_equal(look.others, PROCESSES_MOST - 1);
		assert_int_equal(look.others_bytes, 10 * (PROCESSES_MOST - 1));
		assert_true(look.known & SPY_GPU_LOOK_PROCESSES);
	}
}

/* Whose kernels ran: asked only where others are on the GPU, from the last one that was seen on. */
static void test_shares(void **state)
{
	struct spy_rec_gpu_look look;

	(void)state;
	shares[0] = (struct share){.pid = 100, .time_us = 7000, .kernels = 30};
	shares[1] = (struct share){.pid = 200, .time_us = 9000, .kernels = 60};
	shares[2] = (struct share){.pid = 300, .time_us = 8000, .kernels = 70};
	n_shares = 3;
	look_once();
	assert_int_equal(n_shares_asked, 0);
	begin(state);
	n_shares = 3;
	processes[1] = (struct process){.pid = 200, .used = 5000};
	n_processes = 2;
	spy_nvml_add(3, "0000:01:00.0");
	spy_nvml_begin(&stop);
	look = take();
	assert_int_equal(look.own_busy, 30);
	assert_int_equal(look.others_busy, 100); /* no more than all */
	assert_int_equal(look.known,
			 SPY_GPU_LOOK_REASONS | SPY_GPU_LOOK_PROCESSES | SPY_GPU_LOOK_SHARES);
	assert_int_equal(asked_since, 0);
	while (n_shares_asked < 2)
		another_turn(0);
	assert_int_equal(asked_since, 9000);
	end();
	begin(state);
	n_processes = 2;
	n_shares = SHARES_MOST + 1; /* that makes no sense */
	assert_int_equal(look_once().known, SPY_GPU_LOOK_REASONS | SPY_GPU_LOOK_PROCESSES);
}

/* Links are asked for once: how many are up, and how fast each of them is. */
static void test_links(void **state)
{
	static const struct {
		int up, errors[2];
		uint16_t links;
		uint32_t mbytes;
	} cases[] = {{0x3ffff, {0, 0}, 17, 26562},
		     {0x24, {0, 0}, 2, 26562},
		     {1, {5, 0}, 1, 20000},
		     {1, {5, 5}, 1, 0},
		     {0, {0, 0}, 0, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct spy_rec_gpu_look look;

		begin(state);
		links_up = cases[i].up;
		memcpy(field_errors, cases[i].errors, sizeof(field_errors));
		spy_nvml_add(3, "0000:01:00.0");
		spy_nvml_begin(&stop);
		for (int turn = 0; turn < 7; turn++) {
			look = take();
			assert_int_equal(look.links, cases[i].links);
			assert_int_equal(look.link_mbytes, cases[i].mbytes);
			assert_int_equal(!(look.known & SPY_GPU_LOOK_LINKS), !cases[i].mbytes);
			another_turn(0);
		}
		end();
		assert_int_equal(n_links_asked, 18);
	}
}

/* Each GPU by its ordinal; those that NVML does not know are not asked. */
static void test_several(void **state)
{
	struct spy_rec_gpu_look looks[2];

	(void)state;
	spy_nvml_add(0, "0000:02:00.0");
	spy_nvml_add(1, "0000:77:00.0");
	spy_nvml_add(SPY_NVML_GPUS - 1, "0000:01:00.0");
	spy_nvml_begin(&stop);
	while (!n_utilisation[0] || !n_utilisation[1])
		usleep(500);
	end();
	looks[0] = take();
	looks[1] = take();
	assert_int_equal(looks[0].device, 0);
	assert_int_equal(looks[0].busy, 38);
	assert_int_equal(looks[1].device, SPY_NVML_GPUS - 1);
	assert_int_equal(looks[1].busy, 37);
}

/* ---- no NVML ---- */

static void test_missing(void **state)
{
	static const struct {
		const char *missing, *fails, *pci, *said;
	} cases[] = {{"libnvidia-ml.so.1", NULL, "0000:01:00.0", "there is no libnvidia-ml.so.1"},
		     {"nvmlInit_v2", NULL, "0000:01:00.0", "of a version that is not known"},
		     {"nvmlDeviceGetHandleByPciBusId_v2", NULL, "0000:01:00.0",
		      "of a version that is not known"},
		     {"nvmlDeviceGetUtilizationRates", NULL, "0000:01:00.0",
		      "of a version that is not known"},
		     {NULL, "nvmlInit_v2", "0000:01:00.0", "nvmlInit fails"},
		     {NULL, "nvmlDeviceGetHandleByPciBusId_v2", "0000:01:00.0",
		      "it does not know the GPUs"},
		     {NULL, NULL, "0000:77:00.0", "it does not know the GPUs"},
		     {NULL, NULL, "", "it does not know the GPUs"}};
	struct spy_rec_gpu_look look;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin(state);
		missing = cases[i].missing;
		fails = cases[i].fails;
		spy_nvml_add(0, cases[i].pci);
		spy_nvml_begin(&stop);
		end();
		assert_non_null(strstr(note, cases[i].said));
		assert_false(spy_nvml_take(&look));
		assert_int_equal(n_utilisation[0], 0);
	}
	/* Not asked for. */
	begin(state);
	spy_options.nonvml = "1";
	spy_nvml_add(0, "0000:01:00.0");
	spy_nvml_begin(&stop);
	assert_false(spy_nvml_take(&look));
	assert_int_equal(spy_nvml_leave(&(struct timespec){0}), 0);
	assert_string_equal(note, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_look, begin),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test_setup(test_processes, begin),
		cmocka_unit_test_setup(test_shares, begin),
		cmocka_unit_test(test_links),
		cmocka_unit_test_setup(test_several, begin),
		cmocka_unit_test(test_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
