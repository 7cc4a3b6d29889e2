/*
 * shim/describe/gpus.c: which GPUs and which driver the process talks to, asked of the driver once,
 * after its cuInit succeeded. Runs on the thread that called cuInit, after its call was timed.
 */
#include <stdio.h>
#include <string.h>
#include "cudaspy/function_numbers.h"
#include "describe/describe.h"
#include "hook/resolve.h"
#include "process/own_stack.h"
#include "record/notes.h"
#include "sample/nvml.h"
#include "state/session.h"

/* CUdevice_attribute, cuda.h: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR,
 * _MULTIPROCESSOR_COUNT, _MPS_ENABLED. */
#define ATTRIBUTE_CC_MAJOR 75
#define ATTRIBUTE_CC_MINOR 76
#define ATTRIBUTE_MULTIPROCESSORS 16
#define ATTRIBUTE_MPS 133

int spy_gpus;

struct gpu_functions {
	int (*version)(int *);
	int (*count)(int *);
	int (*get)(int *, int);
	int (*name)(char *, int, int);
	int (*uuid)(uint8_t *, int);
	int (*pci)(char *, int, int);
	int (*memory)(size_t *, int);
	int (*attribute)(int *, int, int);
};

static bool find_functions(struct gpu_functions *driver)
{
	driver->version = spy_resolve_driver(SPY_FN_cuDriverGetVersion);
	driver->count = spy_resolve_driver(SPY_FN_cuDeviceGetCount);
	driver->get = spy_resolve_driver(SPY_FN_cuDeviceGet);
	driver->name = spy_resolve_driver(SPY_FN_cuDeviceGetName);
	driver->uuid = spy_resolve_driver(SPY_FN_cuDeviceGetUuid_v2);
	if (!driver->uuid)
		driver->uuid = spy_resolve_driver(SPY_FN_cuDeviceGetUuid);
	driver->pci = spy_resolve_driver(SPY_FN_cuDeviceGetPCIBusId);
	driver->memory = spy_resolve_driver(SPY_FN_cuDeviceTotalMem_v2);
	driver->attribute = spy_resolve_driver(SPY_FN_cuDeviceGetAttribute);
	return driver->version && driver->count && driver->get && driver->name && driver->uuid &&
	       driver->pci && driver->memory && driver->attribute;
}

static void write_gpu(const struct gpu_functions *driver, int ordinal)
{
	char name[128] = "", pci[32] = "", uuid[48] = "";
	int device, major = 0, minor = 0, length;
	struct spy_rec_gpu *record;
	uint8_t u[16] = {0};
	size_t memory = 0, bytes, at = 0;

	if (driver->get(&device, ordinal) != 0)
		return;
	driver->name(name, sizeof(name), device);
	driver->pci(pci, sizeof(pci), device);
	driver->memory(&memory, device);
	driver->attribute(&major, ATTRIBUTE_CC_MAJOR, device);
	driver->attribute(&minor, ATTRIBUTE_CC_MINOR, device);
	name[sizeof(name) - 1] = pci[sizeof(pci) - 1] = '\0';
	spy_nvml_add((unsigned int)ordinal, pci);
	if (driver->uuid(u, device) == 0) {
		length = snprintf(uuid, sizeof(uuid), "GPU-");
		for (size_t i = 0; i < 16; i++)
			length += snprintf(uuid + length, sizeof(uuid) - (size_t)length, "%s%02x",
					   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
	}
	bytes = sizeof(*record) + strlen(name) + strlen(uuid) + strlen(pci) + 3;
	record = spy_session_append(SPY_EV_GPU, bytes);
	if (!record)
		return;
	record->device = (uint16_t)ordinal;
	record->cc_major = (uint16_t)major;
	record->cc_minor = (uint16_t)minor;
	record->bytes = memory;
	for (const char *const *text = (const char *const[]){name, uuid, pci, NULL}; *text;
	     text++) {
		strcpy(record->text + at, *text);
		at += strlen(*text) + 1;
	}
	spy_session_commit(bytes);
}

/* Drivers without the attribute leave it unknown. */
static void write_share(const struct gpu_functions *driver, int ordinal)
{
	int device, enabled = 0, multiprocessors = 0;
	struct spy_rec_share *record;

	if (driver->get(&device, ordinal) != 0)
		return;
	if (driver->attribute(&enabled, ATTRIBUTE_MPS, device) != 0)
		enabled = SPY_CLIENT_UNKNOWN;
	else
		enabled = enabled ? SPY_CLIENT_YES : SPY_CLIENT_NO;
	driver->attribute(&multiprocessors, ATTRIBUTE_MULTIPROCESSORS, device);
	record = spy_session_append(SPY_EV_SHARE, sizeof(*record));
	if (!record)
		return;
	record->device = (uint16_t)ordinal;
	record->client = (uint16_t)enabled;
	record->reserved = 0;
	record->multiprocessors = (uint32_t)multiprocessors;
	record->reserved2 = 0;
	spy_session_commit(sizeof(*record));
}

static void ask_on_own_stack(void *unused)
{
	struct gpu_functions driver;
	int version = 0, count = 0;
	uint64_t begun;
	bool described;

	(void)unused;
	described = __atomic_exchange_n(&spy_session->driver_described, true, __ATOMIC_RELAXED);
	if (described || !find_functions(&driver))
		return;
	begun = spy_overhead_begin();
	if (driver.version(&version) == 0)
		spy_note(SPY_NOTE_VERSION, "driver %d", version);
	if (driver.count(&count) != 0)
		count = 0;
	__atomic_store_n(&spy_gpus, count, __ATOMIC_RELAXED);
	for (int ordinal = 0; ordinal < count; ordinal++) {
		write_gpu(&driver, ordinal);
		write_share(&driver, ordinal);
	}
	spy_mps_look(true);
	spy_overhead_end(spy_self, begun);
}

void spy_gpus_driver_ready(void)
{
	if (spy_session_active())
		spy_own_stack_run(ask_on_own_stack, NULL);
}
