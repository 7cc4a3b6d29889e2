/*
 * tests/gpu/cupti_busy.c: when the GPUs worked, as CUPTI says, to hold cudaspy's times of GPUs against (tests/gpu/busy).
 * A library to name in CUDA_INJECTION64_PATH, to preload, or both: then a process that ends by _exit is complete, too.
 * Each process that CUPTI has something of writes $CUPTI_BUSY_OUT.PID:
 *
 *   clock CUPTI REALTIME     both in ns, read one after the other when the file is begun
 *   op DEVICE BEGIN END      a kernel, copy or memset, in ns of CUPTI's clock
 *   bad N                    operations without usable times
 *   dropped N                records that CUPTI lost. The last line: without it the file is not complete
 *
 * The lines are written as buffers come, on a thread of CUPTI's own, at most FLUSH_MS late; the rest by the thread
 * that ends the process.
 */
#define _GNU_SOURCE
#include "cupti_load.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WHO "cupti_busy"
#define BUFFER_BYTES (4u << 20)
#define FLUSH_MS 200
#define TEXT_BYTES 65536
#define LINE_BYTES 128

static struct {
	pthread_mutex_t lock; /* of all below */
	char text[TEXT_BYTES]; /* not yet written */
	size_t used, bad, dropped;
	int fd; /* -1: not yet open, or it cannot be */
	int failed;
	int ended; /* the last line is written */
	pid_t pid; /* who started; 0: nobody. A forked child is another one, and writes nothing */
} busy = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static int is_on(void)
{
	return busy.pid && busy.pid == getpid();
}

/* ---- the file, with the lock held ------------------------------------------------------------ */

static void flush(void)
{
	size_t at = 0;

	while (at < busy.used) {
		ssize_t n = write(busy.fd, busy.text + at, busy.used - at);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	busy.used = 0;
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	va_list args;

	if (busy.used > TEXT_BYTES - LINE_BYTES)
		flush();
	va_start(args, format);
	busy.used += (size_t)vsnprintf(busy.text + busy.used, LINE_BYTES, format, args);
	va_end(args);
}

static void put_clock(void)
{
	struct timespec now;
	uint64_t ns = 0;

	if (cupti.cuptiGetTimestamp(&ns) != CUPTI_SUCCESS)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	put("clock %llu %lld\n", (unsigned long long)ns,
	    (long long)now.tv_sec * 1000000000 + now.tv_nsec);
}

/* 0 if the file is open. */
static int open_file(void)
{
	char path[4096];

	if (busy.fd >= 0 || busy.failed)
		return -busy.failed;
	snprintf(path, sizeof(path), "%s.%d", getenv("CUPTI_BUSY_OUT"), (int)busy.pid);
	busy.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (busy.fd < 0) {
		fprintf(stderr, WHO ": cannot write %s\n", path);
		busy.failed = 1;
		return -1;
	}
	put_clock();
	return 0;
}

static void put_op(uint32_t device, uint64_t begin, uint64_t end)
{
	if (!begin || end < begin)
		busy.bad++;
	else
		put("op %u %llu %llu\n", device, (unsigned long long)begin,
		    (unsigned long long)end);
}

/* ---- records --------------------------------------------------------------------------------- */

static void finish(void);

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *records_most)
{
	static atomic_flag first = ATOMIC_FLAG_INIT;

	/* Behind what CUDA itself has registered until its first operation, and so called before it. */
	if (!atomic_flag_test_and_set(&first))
		atexit(finish);
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*size = *buffer ? BUFFER_BYTES : 0;
	*records_most = 0;
}

/* The fields that are read lie in the same place in all versions since CUDA 12.0. */
static void see(const CUpti_Activity *record)
{
	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
		const CUpti_ActivityKernel10 *kernel = (const void *)record;

		put_op(kernel->deviceId, kernel->start, kernel->end);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMCPY: {
		const CUpti_ActivityMemcpy6 *copy = (const void *)record;

		put_op(copy->deviceId, copy->start, copy->end);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMCPY2: {
		const CUpti_ActivityMemcpyPtoP4 *copy = (const void *)record;

		put_op(copy->deviceId, copy->start, copy->end);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMSET: {
		const CUpti_ActivityMemset4 *set = (const void *)record;

		put_op(set->deviceId, set->start, set->end);
		break;
	}
	default:
		break;
	}
}

static void CUPTIAPI buffer_done(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
				 size_t valid)
{
	CUpti_Activity *record = NULL;
	size_t lost = 0;

	(void)size;
	if (is_on()) {
		pthread_mutex_lock(&busy.lock);
		if (!busy.ended && open_file() == 0) {
			while (valid && cupti.cuptiActivityGetNextRecord(buffer, valid, &record) ==
						CUPTI_SUCCESS)
				see(record);
			if (cupti.cuptiActivityGetNumDroppedRecords(context, stream, &lost) ==
			    CUPTI_SUCCESS)
				busy.dropped += lost;
			flush();
		}
		pthread_mutex_unlock(&busy.lock);
	}
	free(buffer);
}

/* ---- start and end --------------------------------------------------------------------------- */

/* On the first call: what comes after it is at the end of CUDA itself. */
static void finish(void)
{
	static atomic_flag begun = ATOMIC_FLAG_INIT;

	if (!is_on() || atomic_flag_test_and_set(&begun))
		return;
	cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	pthread_mutex_lock(&busy.lock);
	if (busy.fd >= 0) {
		put("bad %zu\ndropped %zu\n", busy.bad, busy.dropped);
		flush();
	}
	busy.ended = 1;
	pthread_mutex_unlock(&busy.lock);
}

/* Programs that end by these run no atexit handlers. In a child after vfork memory is its parent's: is_on says no. */
__attribute__((visibility("default"), noreturn)) void _exit(int status)
{
	finish();
	for (;;)
		syscall(SYS_exit_group, status);
}

__attribute__((visibility("default"), noreturn)) void _Exit(int status)
{
	_exit(status);
}

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			     const void *data)
{
	(void)user;
	(void)domain;
	(void)id;
	(void)data;
}

static void start(void)
{
	static const CUpti_ActivityKind kinds[] = {
		CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		CUPTI_ACTIVITY_KIND_MEMCPY,
		CUPTI_ACTIVITY_KIND_MEMCPY2,
		CUPTI_ACTIVITY_KIND_MEMSET,
	};
	CUpti_SubscriberHandle subscriber;
	size_t i;

	if (cupti_load(WHO) ||
	    cupti_failed(WHO, "cuptiSubscribe", cupti.cuptiSubscribe(&subscriber, on_call, NULL)) ||
	    cupti_failed(WHO, "activity callbacks",
			 cupti.cuptiActivityRegisterCallbacks(buffer_wanted, buffer_done)))
		return;
	busy.pid = getpid();
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		cupti_failed(WHO, "cuptiActivityEnable", cupti.cuptiActivityEnable(kinds[i]));
	/* So that a program that is killed leaves something. */
	cupti.cuptiActivityFlushPeriod(FLUSH_MS);
	atexit(finish);
}

/* The driver calls this in a library that CUDA_INJECTION64_PATH names, in the process that begins to use CUDA. */
int InitializeInjection(void);
int InitializeInjection(void)
{
	static atomic_flag started = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&started) && getenv("CUPTI_BUSY_OUT"))
		start();
	return 1;
}

__attribute__((constructor)) static void constructor(void)
{
	if (getenv("LD_PRELOAD") && !getenv("CUDA_INJECTION64_PATH"))
		InitializeInjection();
}
