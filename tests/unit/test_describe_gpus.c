/* links: shim/describe/gpus.c shim/describe/mps.c */
/*
 * tests/unit/test_describe_gpus.c: GPUs and the driver's version, as a made-up driver has them, with functions that are missing
 * or fail; and whose MPS server there is, by processes and files made here.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cudaspy/function_numbers.h"
#include "describe/describe.h"
#include "hook/resolve.h"
#include "process/own_stack.h"
#include "record/notes.h"
#include "sample/nvml.h"
#include "scratch.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

/* ---- the rest of the shim, and the driver ---- */

static char note[100], nvml[200];
static int missing; /* a function that the driver does not have */
static int fails; /* … or that fails */
static int n_gpus, n_overhead;
static bool no_mps_attribute;

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	work(data);
}

uint64_t spy_overhead_begin(void)
{
	n_overhead++;
	return now;
}

void spy_overhead_end(struct spy_thread *of, uint64_t begun)
{
	(void)of;
	assert_int_equal(begun, now);
	n_overhead--;
}

void spy_note(enum spy_note what, const char *format, ...)
{
	va_list args;

	assert_int_equal(what, SPY_NOTE_VERSION);
	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
}

void spy_nvml_add(unsigned int ordinal, const char *pci)
{
	snprintf(nvml + strlen(nvml), sizeof(nvml) - strlen(nvml), "%u=%s ", ordinal, pci);
}

static int version(int *number)
{
	*number = 13000;
	return fails == SPY_FN_cuDriverGetVersion;
}

static int count(int *n)
{
	*n = n_gpus;
	return fails == SPY_FN_cuDeviceGetCount;
}

static int get(int *device, int ordinal)
{
	*device = 70 + ordinal;
	return fails == SPY_FN_cuDeviceGet && ordinal == 0;
}

static int name_of(char *name, int size, int device)
{
	/* As long as it may be, without an end. */
	memset(name, device == 70 ? 'n' : 'm', (size_t)size);
	if (device == 71)
		strcpy(name, "NVIDIA H200");
	return 0;
}

static int uuid_of(uint8_t *uuid, int device)
{
	for (int i = 0; i < 16; i++)
		uuid[i] = (uint8_t)(device + i);
	return fails == SPY_FN_cuDeviceGetUuid;
}

static int pci_of(char *pci, int size, int device)
{
	return snprintf(pci, (size_t)size, "0000:%d:00.0", device) < 0;
}

static int memory_of(size_t *bytes, int device)
{
	*bytes = (size_t)device << 30;
	return 0;
}

static int attribute_of(int *value, int attribute, int device)
{
	switch (attribute) {
	case 75:
		*value = 9;
		return 0;
	case 76:
		*value = device - 70;
		return 0;
	case 16:
		*value = 132;
		return 0;
	case 133:
		*value = device == 71;
		return no_mps_attribute;
	default:
		fail_msg("attribute %d", attribute);
		return 1;
	}
}

void *spy_resolve_driver(int fn)
{
	if (fn == missing)
		return NULL;
	switch (fn) {
	case SPY_FN_cuDriverGetVersion:
		return (void *)version;
	case SPY_FN_cuDeviceGetCount:
		return (void *)count;
	case SPY_FN_cuDeviceGet:
		return (void *)get;
	case SPY_FN_cuDeviceGetName:
		return (void *)name_of;
	case SPY_FN_cuDeviceGetUuid:
		return (void *)uuid_of;
	case SPY_FN_cuDeviceGetPCIBusId:
		return (void *)pci_of;
	case SPY_FN_cuDeviceTotalMem_v2:
		return (void *)memory_of;
	case SPY_FN_cuDeviceGetAttribute:
		return (void *)attribute_of;
	default: /* an older driver's */
		assert_int_equal(fn, SPY_FN_cuDeviceGetUuid_v2);
		return NULL;
	}
}

static char *dir;

static int begin(void **state)
{
	(void)state;
	begin_session();
	dir = scratch_make();
	setenv("CUDA_MPS_PIPE_DIRECTORY", dir, 1);
	unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	unsetenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
	unsetenv("CUDA_MPS_CLIENT_PRIORITY");
	note[0] = nvml[0] = '\0';
	missing = fails = -1;
	n_gpus = 2;
	spy_gpus = -1;
	no_mps_attribute = false;
	return 0;
}

static int end(void **state)
{
	(void)state;
	scratch_remove(dir);
	assert_int_equal(n_overhead, 0);
	return 0;
}

static size_t from; /* records of the session's stream are read from here on */

static const void *next(enum spy_event event, size_t bytes)
{
	const struct spy_rec_other *record = (void *)(session_records + from);

	assert_true(from + bytes <= session_bytes);
	assert_int_equal(record->event, event);
	from += bytes;
	return record;
}

/* The next text of a record with several. */
static const char *text_at(const char **at)
{
	const char *text = *at;

	*at += strlen(text) + 1;
	return text;
}

static const struct spy_rec_mps *next_mps(void)
{
	const struct spy_rec_mps *record = (void *)(session_records + from);
	const char *at = record->text;

	for (int i = 0; i < 4; i++)
		text_at(&at);
	return next(SPY_EV_MPS, (size_t)(at - (const char *)record));
}

/* ---- GPUs ---- */

static void expect_gpu(uint16_t ordinal, const char *name, const char *uuid, uint16_t client)
{
	const struct spy_rec_gpu *gpu = (void *)(session_records + from);
	const struct spy_rec_share *share;
	const char *at = gpu->text;
	char pci[32];

	snprintf(pci, sizeof(pci), "0000:%d:00.0", 70 + ordinal);
	next(SPY_EV_GPU, sizeof(*gpu) + strlen(name) + strlen(uuid) + strlen(pci) + 3);
	assert_int_equal(gpu->device, ordinal);
	assert_int_equal(gpu->cc_major, 9);
	assert_int_equal(gpu->cc_minor, ordinal);
	assert_int_equal(gpu->bytes, (uint64_t)(70 + ordinal) << 30);
	assert_string_equal(text_at(&at), name);
	assert_string_equal(text_at(&at), uuid);
	assert_string_equal(text_at(&at), pci);
	share = next(SPY_EV_SHARE, sizeof(*share));
	assert_int_equal(share->device, ordinal);
	assert_int_equal(share->client, client);
	assert_int_equal(share->multiprocessors, 132);
	assert_int_equal(share->reserved + share->reserved2, 0);
}

static void test_gpus(void **state)
{
	char longest[128];

	(void)state;
	memset(longest, 'n', 127);
	longest[127] = '\0';
	from = 0;
	spy_gpus_driver_ready();
	assert_string_equal(note, "driver 13000");
	assert_int_equal(spy_gpus, 2);
	assert_string_equal(nvml, "0=0000:70:00.0 1=0000:71:00.0 ");
	expect_gpu(0, longest, "GPU-46474849-4a4b-4c4d-4e4f-505152535455", SPY_CLIENT_NO);
	expect_gpu(1, "NVIDIA H200", "GPU-4748494a-4b4c-4d4e-4f50-515253545556", SPY_CLIENT_YES);
	assert_int_equal(next_mps()->initialised, 1);
	assert_int_equal(from, session_bytes);
	spy_gpus_driver_ready(); /* once in a session */
	assert_int_equal(from, session_bytes);
}

static void test_failing_driver(void **state)
{
	static const int needed[] = {SPY_FN_cuDriverGetVersion,  SPY_FN_cuDeviceGetCount,
				     SPY_FN_cuDeviceGet,         SPY_FN_cuDeviceGetName,
				     SPY_FN_cuDeviceGetUuid,     SPY_FN_cuDeviceGetPCIBusId,
				     SPY_FN_cuDeviceTotalMem_v2, SPY_FN_cuDeviceGetAttribute};

	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		missing = needed[i];
		session.driver_described = false;
		spy_gpus_driver_ready();
		assert_int_equal(session_bytes, 0);
		assert_int_equal(spy_gpus, -1);
	}
	missing = -1;
	end(state);
	begin(state);
	fails = SPY_FN_cuDriverGetVersion;
	from = 0;
	spy_gpus_driver_ready();
	assert_string_equal(note, "");
	assert_int_equal(spy_gpus, 2);
	end(state);
	begin(state);
	fails = SPY_FN_cuDeviceGetCount;
	spy_gpus_driver_ready();
	assert_int_equal(spy_gpus, 0);
	next_mps();
	end(state);
	begin(state);
	fails = SPY_FN_cuDeviceGet; /* of the first one */
	from = 0;
	spy_gpus_driver_ready();
	expect_gpu(1, "NVIDIA H200", "GPU-4748494a-4b4c-4d4e-4f50-515253545556", SPY_CLIENT_YES);
	end(state);
	begin(state);
	fails = SPY_FN_cuDeviceGetUuid;
	no_mps_attribute = true;
	n_gpus = 1;
	from = 0;
	spy_gpus_driver_ready();
	{
		char longest[128];

		memset(longest, 'n', 127);
		longest[127] = '\0';
		expect_gpu(0, longest, "", SPY_CLIENT_UNKNOWN);
	}
	end(state);
	begin(state);
	session.state = SPY_SESSION_FAILED;
	spy_gpus_driver_ready();
	assert_int_equal(spy_gpus, -1);
}

/* ---- MPS ---- */

static void make_file(const char *name, const char *text)
{
	char path[1024];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
}

/* Has the process become `sleep`? */
static bool is_asleep(pid_t pid)
{
	char path[64], text[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return strcmp(text, "sleep\n") == 0;
}

/* A process that is called so, with a child; both sleep until they are killed. server: what the child is called. */
static pid_t start_daemon(const char *name, const char *server)
{
	pid_t pid = fork();
	char path[64], text[16] = "";

	if (!pid) {
		/* Who reads what this test writes does not wait for them. */
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execl("/bin/bash", name, "-c", "(exec -a \"$0\" sleep 20) & wait", server,
		      (char *)NULL);
		_exit(1);
	}
	/* Until the child is there, and is another program. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	for (bool there = false; !there; usleep(1000)) {
		FILE *file = fopen(path, "r");

		there = file && fgets(text, sizeof(text), file) && is_asleep(atoi(text));
		if (file)
			fclose(file);
	}
	return pid;
}

static void end_daemon(pid_t pid)
{
	char path[64], text[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	file = fopen(path, "r");
	if (file && fgets(text, sizeof(text), file) && atoi(text) > 0)
		kill(atoi(text), SIGKILL);
	if (file)
		fclose(file);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_no_daemon(void **state)
{
	const struct spy_rec_mps *record;
	const char *at;

	(void)state;
	from = 0;
	spy_mps_look(false); /* no pipe: nothing is said before the driver is there */
	assert_int_equal(session_bytes, 0);
	setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25", 1);
	setenv("CUDA_MPS_CLIENT_PRIORITY", "1", 1);
	spy_mps_look(true);
	record = next_mps();
	at = record->text;
	assert_int_equal(record->initialised, 1);
	assert_int_equal(record->uid, geteuid());
	assert_int_equal(record->daemon + record->server + record->server_uid, 0);
	assert_string_equal(text_at(&at), "");
	assert_string_equal(text_at(&at), "25");
	assert_string_equal(text_at(&at), "");
	assert_string_equal(text_at(&at), "1");
	assert_int_equal(from, session_bytes);
}

static void test_daemon(void **state)
{
	pid_t daemon = start_daemon("/usr/bin/nvidia-cuda-mps-control", "nvidia-cuda-mps-server");
	const struct spy_rec_mps *record;
	const char *at;
	char pid[32], longest[600];

	(void)state;
	from = 0;
	make_file("control", "");
	snprintf(pid, sizeof(pid), "%d\n", daemon);
	make_file("nvidia-cuda-mps-control.pid", pid);
	memset(longest, 'v', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", longest, 1);
	spy_mps_driver_begins();
	record = next_mps();
	at = record->text;
	assert_int_equal(record->initialised, 0);
	assert_int_equal(record->daemon, daemon);
	assert_true(record->server > 0 && record->server != (uint32_t)daemon);
	assert_int_equal(record->server_uid, geteuid());
	assert_string_equal(text_at(&at), dir);
	assert_string_equal(text_at(&at), "");
	assert_true(strlen(at) < sizeof(longest) - 1 &&
		    strspn(at, "v") == strlen(at)); /* cut off */
	spy_mps_driver_begins(); /* once */
	assert_int_equal(from, session_bytes);
	/* A number that is another process' by now, or none. */
	for (int i = 0; i < 3; i++) {
		snprintf(pid, sizeof(pid), "%d", i == 0 ? getpid() : i == 1 ? 0 : 5000000);
		make_file("nvidia-cuda-mps-control.pid", pid);
		spy_mps_look(true);
		record = next_mps();
		assert_int_equal(record->daemon + record->server, 0);
		at = record->text;
		assert_string_equal(text_at(&at), dir);
	}
	end_daemon(daemon);
	/* One without a server. */
	daemon = start_daemon("nvidia-cuda-mps-control", "another-child");
	snprintf(pid, sizeof(pid), "%d", daemon);
	make_file("nvidia-cuda-mps-control.pid", pid);
	spy_mps_look(true);
	record = next_mps();
	assert_int_equal(record->daemon, daemon);
	assert_int_equal(record->server, 0);
	end_daemon(daemon);
}

/* What is no plain file is not opened: a pipe waits for its writer. */
static void test_odd_files(void **state)
{
	char path[1024];

	(void)state;
	from = 0;
	make_file("control", "");
	snprintf(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	spy_mps_look(true);
	assert_int_equal(next_mps()->daemon, 0);
	unlink(path);
	mkdir(path, 0700);
	spy_mps_look(true);
	assert_int_equal(next_mps()->daemon, 0);
	session_full = true;
	spy_mps_look(true);
	assert_int_equal(from, session_bytes);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_gpus),   TEST(test_failing_driver), TEST(test_no_daemon),
		TEST(test_daemon), TEST(test_odd_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
