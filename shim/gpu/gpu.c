/*
 * shim/gpu/gpu.c: loads libcudaspy_gpu.so and writes what it hands over to a stream of its own. Runs on the thread that
 * calls cuInit, on those that bring CUPTI's buffers (one of its own, or one of the application's at the end), and on
 * one that begins to use CUPTI itself.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include "cudaspy/contract.h"
#include "cudaspy/gpu_library.h"
#include "gpu/gpu.h"
#include "hook/loader.h"
#include "hook/slots.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/kernel_names.h"
#include "record/message.h"
#include "state/session.h"
#include "window/plan.h"

static const struct spy_gpu_library *library;
static int recording_pid; /* the process that the library works for; not its forked children */
static struct spy_lock stream_lock; /* the GPU stream; docs/SAFETY.md, "Locks" */
static char tool[SPY_PATH_MAX]; /* the library that took CUPTI's slot first */
static struct spy_thread *stream; /* a slot without a thread; NULL: none yet */

/* ---- what the library asks ------------------------------------------------------------------- */

static const uint8_t contracts[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) SPY_CONTRACT_##contract,
#include "cudaspy/entrypoints.def"
};

static bool submits(const char *function)
{
	int fn = spy_slots_find(function);

	return fn >= SPY_RUNTIME_ROWS && spy_contract_submits(contracts[fn]);
}

static uint64_t clock_now(void)
{
	return spy_clock();
}

static const char *who_took_slot(void)
{
	return tool;
}

static void *symbol(void *handle, const char *name)
{
	return spy_real_dlsym(handle, name);
}

static bool is_recording(void)
{
	return recording_pid == (int)spy_syscall(SYS_getpid) && spy_session_active();
}

static void put(const void *record, size_t bytes)
{
	const struct spy_rec_other *head = record;
	struct spy_rec_other *place = spy_thread_append(stream, (enum spy_event)head->event, bytes);
	uint64_t time;

	if (!place) {
		spy_thread_count_lost(stream);
		return;
	}
	time = place->time;
	memcpy(place, record, bytes);
	place->time = time;
	spy_thread_commit(stream, bytes);
}

/* Operations mean nothing without these. In a bounded trace, where the packets before may be deleted, each one begins with
 * them; and so does a part of the recording. */
static struct spy_rec_gpu_state last_state;
static struct spy_rec_gpu_clock last_clock;
static uint64_t recorded_in; /* the packet's number + 1 */
static uint32_t recorded_part = 1;

static void begin_packet(void)
{
	if (!stream->packet || recorded_in == stream->packet->seq + 1)
		return;
	recorded_in = stream->packet->seq + 1;
	if (!spy_options_keeps_packets() && recorded_part == stream->file.part)
		return;
	recorded_part = stream->file.part;
	if (last_clock.event)
		put(&last_clock, sizeof(last_clock));
	if (last_state.head.event)
		put(&last_state, sizeof(last_state));
}

/* One record. The stream's lock held. */
static void append(const void *record, size_t bytes)
{
	const struct spy_rec_other *head = record;

	if (!stream) {
		spy_session_count_lost();
		return;
	}
	/* This makes room, if there is none: the packet is the one that the record will be in. */
	if (spy_thread_append(stream, (enum spy_event)head->event, bytes))
		begin_packet();
	put(record, bytes);
	if (head->event == SPY_EV_GPU_STATE && bytes == sizeof(last_state))
		memcpy(&last_state, record, bytes);
	else if (head->event == SPY_EV_GPU_CLOCK && bytes == sizeof(last_clock))
		memcpy(&last_clock, record, bytes);
}

struct records {
	const char *first;
	size_t bytes, count;
};

static void write_on_own_stack(void *data)
{
	const struct records *records = data;

	if (!spy_lock(&stream_lock)) {
		for (size_t i = 0; i < records->count; i++)
			spy_session_count_lost();
		return;
	}
	if (!stream)
		stream = spy_thread_take(SPY_STREAM_GPU);
	for (size_t i = 0; i < records->count; i++)
		append(records->first + i * records->bytes, records->bytes);
	spy_unlock(&stream_lock);
}

/* There SIGBUS is not blocked, which a thread of CUPTI's may do: the stream's file may be truncated. */
static void write_records(void *records, size_t bytes, size_t count)
{
	if (is_recording())
		spy_own_stack_run(write_on_own_stack, &(struct records){records, bytes, count});
}

static const struct spy_gpu_recorder recorder = {
	.submits = submits,
	.kernel = spy_kernel_number,
	.clock = clock_now,
	.symbol = symbol,
	.who_took_slot = who_took_slot,
	.turn = spy_window_state,
	.await = spy_window_await,
	.write = write_records,
};

/* ---- begin ----------------------------------------------------------------------------------- */

static void write_missing(const char *why)
{
	struct spy_rec_gpu_state state = {.head.event = SPY_EV_GPU_STATE, .state = SPY_GPU_MISSING};

	snprintf(state.text, sizeof(state.text), "%s", why);
	write_records(&state, sizeof(state), 1);
	spy_message("no GPU times: %s", why);
}

/* It lies beside this one. */
static const struct spy_gpu_library *load(void)
{
	const struct spy_gpu_library *found;
	char path[SPY_PATH_MAX];
	const char *slash;
	Dl_info self;
	void *handle;

	if (!dladdr(contracts, &self) || !(slash = strrchr(self.dli_fname, '/')) ||
	    snprintf(path, sizeof(path), "%.*s/" SPY_GPU_LIBRARY, (int)(slash - self.dli_fname),
		     self.dli_fname) >= (int)sizeof(path)) {
		write_missing("libcudaspy.so does not know where it lies");
		return NULL;
	}
	handle = spy_real_dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		write_missing(SPY_GPU_LIBRARY " is not beside libcudaspy.so, or cannot be loaded");
		return NULL;
	}
	found = spy_real_dlsym(handle, SPY_GPU_LIBRARY_SYMBOL);
	if (!found || found->version != SPY_GPU_LIBRARY_VERSION) {
		write_missing(SPY_GPU_LIBRARY " is another version's");
		return NULL;
	}
	return found;
}

void spy_gpu_begin(void)
{
	static atomic_flag begun = ATOMIC_FLAG_INIT;
	const struct spy_gpu_library *found;
	struct spy_gpu_windows windows;

	if (!spy_options.gpu || !spy_session_active() || atomic_flag_test_and_set(&begun))
		return;
	recording_pid = (int)spy_syscall(SYS_getpid);
	if (!spy_gpu_parse_windows(spy_options.gpu, &windows))
		spy_message("CUDASPY_GPU=%s is neither 1 nor like 1s/10s: all the time",
			    spy_options.gpu);
	windows.follow = spy_window_is_planned();
	found = load();
	if (!found)
		return;
	__atomic_store_n(&library, found, __ATOMIC_RELEASE);
	if (!found->start(&recorder, &windows))
		__atomic_store_n(&library, NULL, __ATOMIC_RELEASE);
}

void spy_gpu_give_way(const void *caller)
{
	const struct spy_gpu_library *in_use = __atomic_load_n(&library, __ATOMIC_ACQUIRE);
	const char *who = "the program";
	Dl_info by;

	if (!spy_options.gpu)
		return;
	if (dladdr(caller, &by) && by.dli_fname)
		who = by.dli_fname;
	if (!*tool) /* ours may be just about to ask for it */
		snprintf(tool, sizeof(tool), "%s", who);
	if (in_use && is_recording())
		in_use->give_way(who);
}
