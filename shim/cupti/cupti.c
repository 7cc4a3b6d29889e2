/*
 * shim/cupti/cupti.c: libcudaspy_gpu.so: subscribes to CUPTI's activity records and hands them to libcudaspy.so, which
 * loads this library when GPU times are asked for. start runs on the thread that calls cuInit; buffers are brought by a
 * thread of CUPTI's own, or by the one that ends the process; windows have a thread of ours.
 *
 * CUPTI is found at run time: the one that the program has loaded, or the system's. Of its records the structs of CUDA 12
 * are read; those of 13.0 have the same fields in the same places, which is checked below.
 */
#include <cupti.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "cudaspy/gpu_library.h"

/* ---- CUPTI's functions ----------------------------------------------------------------------- */

#define NEEDED(F) \
	F(cuptiSubscribe) \
	F(cuptiUnsubscribe) \
	F(cuptiGetTimestamp) \
	F(cuptiGetCallbackName) \
	F(cuptiGetResultString) \
	F(cuptiSetThreadIdType) \
	F(cuptiActivityEnable) \
	F(cuptiActivityDisable) \
	F(cuptiActivityRegisterCallbacks) \
	F(cuptiActivityGetNextRecord) \
	F(cuptiActivityGetNumDroppedRecords) \
	F(cuptiActivityFlushAll)
/* Not in all versions; what there is without them is said where they are used. */
#define WANTED(F) \
	F(cuptiActivityFlushPeriod) \
	F(cuptiActivityEnableDriverApi) \
	F(cuptiGetThreadIdType)

#define FIELD(name) __typeof__(name) *name;
static struct {
	NEEDED(FIELD)
	WANTED(FIELD)
} cupti;
#undef FIELD

/* ---- state ----------------------------------------------------------------------------------- */

static const struct spy_gpu_recorder *recorder;
static struct spy_gpu_windows windows;
static CUpti_SubscriberHandle subscriber;
/* Of the next three. Who waits for it does so for a while only: a signal handler may have kept the thread that has it, and a
 * holder may wait for a lock of CUPTI's or the loader's that the waiter has. */
static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static bool subscribed;
static CUpti_ActivityThreadIdType thread_ids =
	CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT; /* as it was */
static bool on; /* the activities are enabled */
static _Atomic bool ended; /* for good: given way, or the process ends */
static _Atomic pid_t pid;
static _Atomic uint64_t dropped; /* records that CUPTI has lost */
static _Atomic uint64_t next_clock; /* ns of CUPTI's clock: when the clocks are compared again */

static void write_state(enum spy_gpu_state state, const char *text)
{
	struct spy_rec_gpu_state record = {.head.event = SPY_EV_GPU_STATE,
					   .state = (uint16_t)state};

	snprintf(record.text, sizeof(record.text), "%s", text);
	recorder->write(&record, sizeof(record), 1);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

#define CLOCK_TRIES 8
#define CLOCK_EVERY_NS 1000000000ull

static void compare_clocks(void)
{
	struct spy_rec_gpu_clock best = {.event = SPY_EV_GPU_CLOCK, .error = UINT32_MAX};

	for (int i = 0; i < CLOCK_TRIES; i++) {
		uint64_t before, after, ns = 0;

		before = recorder->clock();
		if (cupti.cuptiGetTimestamp(&ns) != CUPTI_SUCCESS)
			return;
		after = recorder->clock();
		if ((after - before + 1) / 2 >= best.error)
			continue;
		best.error = (uint32_t)((after - before + 1) / 2);
		best.clock = before + (after - before) / 2;
		best.gpu_ns = ns;
	}
	best.dropped = atomic_load(&dropped);
	if (best.error == UINT32_MAX)
		return;
	atomic_store(&next_clock, best.gpu_ns + CLOCK_EVERY_NS);
	recorder->write(&best, sizeof(best), 1);
}

static void compare_clocks_again(void)
{
	uint64_t ns = 0, due = atomic_load(&next_clock);

	if (cupti.cuptiGetTimestamp(&ns) == CUPTI_SUCCESS && ns >= due &&
	    atomic_compare_exchange_strong(&next_clock, &due, ns + CLOCK_EVERY_NS))
		compare_clocks();
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* CUPTI asks for them within launches: they are kept. When all are in use, records are lost, and CUPTI counts them. */
#define BUFFERS 32
#define BUFFER_BYTES ((size_t)1 << 20)

static struct {
	_Atomic bool taken;
	uint8_t *_Atomic memory; /* NULL: not yet used */
} buffers[BUFFERS];

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *records_most)
{
	*buffer = NULL;
	*size = *records_most = 0;
	for (int i = 0; i < BUFFERS; i++) {
		bool no = false;

		if (!atomic_compare_exchange_strong(&buffers[i].taken, &no, true))
			continue;
		if (!buffers[i].memory) {
			void *memory = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (memory == MAP_FAILED) {
				atomic_store(&buffers[i].taken, false);
				return;
			}
			/* Not MADV_DONTFORK: what of CUPTI lives on in a child may still look. */
			madvise(memory, BUFFER_BYTES, MADV_WIPEONFORK);
			buffers[i].memory = memory;
		}
		*buffer = buffers[i].memory;
		*size = BUFFER_BYTES;
		return;
	}
}

static void give_back(const uint8_t *buffer)
{
	for (int i = 0; i < BUFFERS; i++)
		if (buffer && buffers[i].memory == buffer)
			atomic_store(&buffers[i].taken, false);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Records are written many at a time: of one kind, as they come. */
#define BATCH 64

struct batch {
	struct spy_rec_gpu_op ops[BATCH];
	struct spy_rec_gpu_submit submits[BATCH];
	size_t n_ops, n_submits;
};

static void flush_ops(struct batch *batch)
{
	if (batch->n_ops)
		recorder->write(batch->ops, sizeof(batch->ops[0]), batch->n_ops);
	batch->n_ops = 0;
}

static void flush_submits(struct batch *batch)
{
	if (batch->n_submits)
		recorder->write(batch->submits, sizeof(batch->submits[0]), batch->n_submits);
	batch->n_submits = 0;
}

static struct spy_rec_gpu_op *add_op(struct batch *batch)
{
	struct spy_rec_gpu_op *op;

	if (batch->n_ops == BATCH)
		flush_ops(batch);
	op = &batch->ops[batch->n_ops++];
	*op = (struct spy_rec_gpu_op){.event = SPY_EV_GPU_OP};
	return op;
}

/*
 * A kernel's number, by the address and the bytes of its name: CUPTI gives the same address for each launch of one,
 * but what was unloaded leaves its address to others. Only the thread that brings a buffer; two of them may ask for
 * the same number.
 */
#define NAMES 1024

static uint32_t number_of_kernel(const char *name)
{
	static __thread struct {
		const char *name;
		uint64_t hash;
		uint32_t number;
	} names[NAMES];
	uint64_t hash = 0xcbf29ce484222325;
	size_t place = ((uintptr_t)name >> 4) % NAMES;

	if (!name)
		return 0;
	for (const char *at = name; *at; at++)
		hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
	if (names[place].name != name || names[place].hash != hash) {
		names[place].number = recorder->kernel(name);
		names[place].name = name;
		names[place].hash = hash;
	}
	return names[place].number;
}

static void see_kernel(struct batch *batch, const CUpti_ActivityKernel9 *kernel)
{
	struct spy_rec_gpu_op *op = add_op(batch);
	uint64_t threads =
		(uint64_t)kernel->blockX * (uint32_t)kernel->blockY * (uint32_t)kernel->blockZ;

	op->kind = SPY_GPU_KERNEL;
	op->device = (uint8_t)kernel->deviceId;
	op->correlation = kernel->correlationId;
	op->begin_ns = kernel->start;
	op->end_ns = kernel->end;
	op->amount = (uint64_t)kernel->gridX * (uint32_t)kernel->gridY * (uint32_t)kernel->gridZ;
	op->stream = kernel->streamId;
	op->context = kernel->contextId;
	op->kernel = number_of_kernel(kernel->name);
	op->threads = (uint16_t)(threads < UINT16_MAX ? threads : UINT16_MAX);
	op->flags = kernel->graphNodeId ? SPY_GPU_OF_GRAPH : 0;
}

/* CUpti_ActivityMemcpyKind. */
static uint8_t direction_of(uint8_t kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
	case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
		return SPY_DIR_H2D;
	case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
	case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
		return SPY_DIR_D2H;
	case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
		return SPY_DIR_H2H;
	case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
	case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
	case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
	case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
	case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
		return SPY_DIR_D2D;
	default:
		return SPY_DIR_UNKNOWN;
	}
}

#if CUPTI_API_VERSION >= 130000
#define SAME(of_12, of_13, field) \
	_Static_assert(offsetof(of_12, field) == offsetof(of_13, field), #of_13 " differs")
SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, deviceId);
SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, blockZ);
SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, correlationId);
SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, name);
SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, graphNodeId);
SAME(CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, correlationId);
SAME(CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, graphNodeId);
#undef SAME
#endif

/* The three of them have fields of the same names. */
#define SEE_MEMORY(kind_, record, batch) \
	({ \
		struct spy_rec_gpu_op *op_ = add_op(batch); \
\
		op_->kind = (kind_); \
		op_->device = (uint8_t)(record)->deviceId; \
		op_->correlation = (record)->correlationId; \
		op_->begin_ns = (record)->start; \
		op_->end_ns = (record)->end; \
		op_->amount = (record)->bytes; \
		op_->stream = (record)->streamId; \
		op_->context = (record)->contextId; \
		op_->flags = (record)->graphNodeId ? SPY_GPU_OF_GRAPH : 0; \
		op_; \
	})

static void see_submit(struct batch *batch, const CUpti_ActivityAPI *call)
{
	struct spy_rec_gpu_submit *submit;

	if (batch->n_submits == BATCH)
		flush_submits(batch);
	submit = &batch->submits[batch->n_submits++];
	*submit = (struct spy_rec_gpu_submit){.event = SPY_EV_GPU_SUBMIT,
					      .correlation = call->correlationId,
					      .begin_ns = call->start,
					      .end_ns = call->end,
					      .tid = call->threadId};
}

static void see(struct batch *batch, const CUpti_Activity *record)
{
	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		see_kernel(batch, (const void *)record);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY: {
		const CUpti_ActivityMemcpy5 *copy = (const void *)record;

		SEE_MEMORY(SPY_GPU_COPY, copy, batch)->direction = direction_of(copy->copyKind);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMCPY2: {
		const CUpti_ActivityMemcpyPtoP4 *copy = (const void *)record;

		SEE_MEMORY(SPY_GPU_COPY, copy, batch)->direction = SPY_DIR_D2D;
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMSET: {
		const CUpti_ActivityMemset4 *set = (const void *)record;

		SEE_MEMORY(SPY_GPU_MEMSET, set, batch);
		break;
	}
	case CUPTI_ACTIVITY_KIND_DRIVER:
		see_submit(batch, (const void *)record);
		break;
	default:
		break;
	}
}

static void CUPTIAPI buffer_done(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
				 size_t valid)
{
	CUpti_Activity *record = NULL;
	struct batch batch;
	size_t lost = 0;

	(void)size;
	batch.n_ops = batch.n_submits = 0;
	if (pid == getpid()) {
		while (valid &&
		       cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
			see(&batch, record);
		/* The submissions first: their operations look for them. */
		flush_submits(&batch);
		flush_ops(&batch);
		if (cupti.cuptiActivityGetNumDroppedRecords(context, stream, &lost) ==
		    CUPTI_SUCCESS)
			atomic_fetch_add(&dropped, lost);
		compare_clocks_again();
	}
	give_back(buffer);
}

/* ---- on and off ------------------------------------------------------------------------------ */

static const CUpti_ActivityKind kinds[] = {
	CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
	CUPTI_ACTIVITY_KIND_MEMCPY,
	CUPTI_ACTIVITY_KIND_MEMCPY2,
	CUPTI_ACTIVITY_KIND_MEMSET,
};

#define CALLBACKS_MOST 2048 /* numbers of functions of the driver that are tried */

/* Only calls that hand work to a GPU leave a record: it has the correlation with what they handed over. Of one that CUPTI
 * refuses the submissions stay unknown. */
static CUptiResult set_submissions(uint8_t enable)
{
	CUptiResult result = CUPTI_SUCCESS, one;
	const char *name;
	bool any = false;

	if (!cupti.cuptiActivityEnableDriverApi)
		return (enable ? cupti.cuptiActivityEnable
			       : cupti.cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_DRIVER);
	for (CUpti_CallbackId id = 1; id < CALLBACKS_MOST; id++) {
		if (cupti.cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) !=
			    CUPTI_SUCCESS ||
		    !name)
			continue; /* numbers have gaps */
		if (!recorder->submits(name))
			continue;
		one = cupti.cuptiActivityEnableDriverApi(id, enable);
		any |= one == CUPTI_SUCCESS;
		result = one == CUPTI_SUCCESS ? result : one;
	}
	return any ? CUPTI_SUCCESS : result;
}

static void disable(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		cupti.cuptiActivityDisable(kinds[i]);
	set_submissions(0);
}

/* With the lock held. */
static CUptiResult turn_on(void)
{
	CUptiResult result = set_submissions(1);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && result == CUPTI_SUCCESS; i++)
		result = cupti.cuptiActivityEnable(kinds[i]);
	on = result == CUPTI_SUCCESS;
	if (!on)
		disable();
	compare_clocks();
	if (on)
		write_state(SPY_GPU_ON, "");
	return result;
}

static void turn_off(enum spy_gpu_state state, const char *text)
{
	if (!on)
		return;
	cupti.cuptiActivityFlushAll(0); /* before: what is not asked for any more may be dropped */
	disable();
	cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	compare_clocks();
	write_state(state, text);
	on = false;
}

/* The next tool finds CUPTI as we found it. With the lock held. */
static void leave(void)
{
	if (cupti.cuptiActivityFlushPeriod)
		cupti.cuptiActivityFlushPeriod(0);
	cupti.cuptiSetThreadIdType(thread_ids);
	cupti.cuptiUnsubscribe(subscriber);
	subscribed = false;
}

#define LOCK_S 2

/* False: this thread has it, was interrupted or called back; or another one keeps it. */
static bool take_lock(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LOCK_S;
	return pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until) == 0;
}

/* For good. In a forked child nothing is left, but perhaps the lock, of a thread that is not there. */
static void end(enum spy_gpu_state state, const char *text)
{
	if (ended || pid != getpid() || !take_lock())
		return;
	if (!ended) {
		turn_off(state, text);
		if (state == SPY_GPU_GAVE_WAY && subscribed)
			leave();
		ended = true;
	}
	pthread_mutex_unlock(&lock);
}

/* Registered behind the driver's own, and so run before it. */
static void process_ends(void)
{
	end(SPY_GPU_OFF, "the process ends");
}

static void give_way(const char *who)
{
	end(SPY_GPU_GAVE_WAY, who);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* False: it cannot be waited here (seccomp). */
static bool wait_ns(uint64_t ns)
{
	struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (nanosleep(&left, &left) != 0)
		if (errno != EINTR)
			return false;
	return true;
}

/* GPU times are recorded while calls are. */
static void follow_windows(void)
{
	bool more = true, open;

	while (more) {
		uint32_t turn = recorder->turn(&open);

		pthread_mutex_lock(&lock);
		if (!ended && open && !on)
			more = turn_on() == CUPTI_SUCCESS;
		else if (!ended && !open && on)
			turn_off(SPY_GPU_OFF, "a window");
		more &= !ended;
		pthread_mutex_unlock(&lock);
		if (more)
			recorder->await(turn);
	}
}

static void *open_windows(void *unused)
{
	bool more = true;

	(void)unused;
	if (windows.follow) {
		follow_windows();
		return NULL;
	}
	while (more && wait_ns(windows.on_ns)) {
		pthread_mutex_lock(&lock);
		if (!ended)
			turn_off(SPY_GPU_OFF, "a window");
		pthread_mutex_unlock(&lock);
		wait_ns(windows.every_ns - windows.on_ns);
		pthread_mutex_lock(&lock);
		more = !ended && turn_on() == CUPTI_SUCCESS;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* No signal of the program's is for that thread. */
static bool begin_windows(void)
{
	sigset_t all, before;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, open_windows, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		pthread_detach(thread);
	return !error;
}

/* ---- start ----------------------------------------------------------------------------------- */

static bool fail(const char *what, CUptiResult result)
{
	const char *words = NULL;
	char text[sizeof(((struct spy_rec_gpu_state *)0)->text)];

	cupti.cuptiGetResultString(result, &words);
	snprintf(text, sizeof(text), "%s: %s", what, words ? words : "an unknown error of CUPTI's");
	write_state(SPY_GPU_MISSING, text);
	return false;
}

static bool load(void)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
	char text[sizeof(((struct spy_rec_gpu_state *)0)->text)];
	void *library = NULL;
	size_t i;

	/* One that the program has loaded, whichever; else the system's. */
	for (i = 0; i < 2 * sizeof(names) / sizeof(names[0]) && !library; i++)
		library = dlopen(names[i % 3], RTLD_NOW | RTLD_LOCAL | (i < 3 ? RTLD_NOLOAD : 0));
	if (!library) {
		write_state(SPY_GPU_MISSING, "libcupti.so.13 and .12 cannot be loaded: they come "
					     "with the CUDA Toolkit (extras/CUPTI/lib64)");
		return false;
	}
#define WANT(name) cupti.name = (__typeof__(name) *)recorder->symbol(library, #name);
#define NEED(name) \
	WANT(name) \
	if (!cupti.name) { \
		snprintf(text, sizeof(text), "CUPTI has no %s", #name); \
		write_state(SPY_GPU_MISSING, text); \
		return false; \
	}
	NEEDED(NEED)
	WANTED(WANT)
	return true;
}

/* Tools that put themselves into programs, by what they set or load. */
static const char *guess_tool(void)
{
	const char *injected = getenv("CUDA_INJECTION64_PATH");

	if (*recorder->who_took_slot())
		return recorder->who_took_slot();
	if (injected && *injected)
		return injected;
	if (getenv("NSYS_PROFILING_SESSION_ID"))
		return "Nsight Systems, it seems";
	if (getenv("NV_COMPUTE_PROFILER_PERFWORKS_DIR"))
		return "Nsight Compute, it seems";
	return "another tool in this process";
}

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			     const void *data)
{
	(void)user;
	(void)domain;
	(void)id;
	(void)data;
}

/* With the lock held: who wants CUPTI meanwhile waits, and gets it then. */
static bool subscribe(void)
{
	bool open = true;
	CUptiResult result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;

	if (!ended)
		result = cupti.cuptiSubscribe(&subscriber, on_call, NULL);
	if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
		write_state(SPY_GPU_TAKEN, guess_tool());
		return false;
	}
	if (result != CUPTI_SUCCESS)
		return fail("cuptiSubscribe", result);
	subscribed = true;
	if (cupti.cuptiGetThreadIdType)
		cupti.cuptiGetThreadIdType(&thread_ids);
	cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
	result = cupti.cuptiActivityRegisterCallbacks(buffer_wanted, buffer_done);
	if (result != CUPTI_SUCCESS) {
		leave();
		return fail("cuptiActivityRegisterCallbacks", result);
	}
	if (cupti.cuptiActivityFlushPeriod) /* full ones; of half-full ones CUPTI decides */
		cupti.cuptiActivityFlushPeriod(500);
	if (windows.follow)
		recorder->turn(&open);
	result = open ? turn_on() : CUPTI_SUCCESS;
	if (result != CUPTI_SUCCESS) {
		leave();
		return fail("cuptiActivityEnable", result);
	}
	return true;
}

static bool start(const struct spy_gpu_recorder *with, const struct spy_gpu_windows *when)
{
	bool begun;

	recorder = with;
	windows = *when;
	pid = getpid();
	if (!load())
		return false;
	if (!take_lock()) {
		write_state(SPY_GPU_TAKEN, guess_tool());
		return false;
	}
	begun = subscribe();
	pthread_mutex_unlock(&lock);
	if (!begun)
		return false;
	atexit(process_ends);
	if ((windows.every_ns || windows.follow) && !begin_windows())
		write_state(SPY_GPU_ON, "no thread for windows: all the time");
	return true;
}

__attribute__((visibility("default"))) extern const struct spy_gpu_library cudaspy_gpu_library;
const struct spy_gpu_library cudaspy_gpu_library = {
	.version = SPY_GPU_LIBRARY_VERSION,
	.start = start,
	.give_way = give_way,
};
