/*
 * shim/sample/running.c: threads are interrupted by the kernel's clock, and what it copied then is read (running.h). On the sampler's
 * thread alone, so no lock is needed.
 *
 * The descriptor is closed at once: the mapping keeps the clock going, and a program that closes all descriptors, or counts them,
 * finds none of ours. A forked child does not have the mapping (the kernel sees to that). The ring is written from its end
 * downwards and never full, so that the newest record is where its head says; it may be overwritten while it is copied, which the
 * head says, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "arch/processor.h"
#include "arch/registers.h"
#include "record/notes.h"
#include "sample/running.h"
#include "stack/unwind.h"
#include "state/libraries.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

#define STACK_BYTES 16384
#define RING_BYTES ((size_t)65536) /* of three records and more */
#define PAGE 4096

/* What a record holds, by sample_type; all of it is there, as none is of the kernel's own. */
struct interruption {
	struct perf_event_header head;
	uint32_t pid, tid;
	uint64_t ns;
	uint64_t
		abi; /* PERF_SAMPLE_REGS_ABI_NONE: no registers, and the rest is not where it is here */
	uint64_t registers[REGISTERS_KEPT];
	uint64_t stack_bytes; /* copied or not; 0: none, and nothing follows */
	uint64_t stack[STACK_BYTES / sizeof(uint64_t)];
	uint64_t copied_bytes;
};

static uint64_t interval_ns; /* 0: no thread is interrupted any more */
static unsigned int n_running;
static struct interruption copy;

/* ---- may it be? ------------------------------------------------------------------------------- */

/* Is this thread under a seccomp filter, or is that unknown? proc(5), /proc/pid/status. */
static bool is_filtered(void)
{
	static const char unfiltered[] = "\nSeccomp:\t0\n";
	char text[4096];
	long fd = spy_syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/status",
			      O_RDONLY | O_CLOEXEC),
	     got;

	if (fd < 0)
		return true;
	got = spy_syscall(SYS_read, fd, text, sizeof(text) - 1);
	spy_syscall(SYS_close, fd);
	text[got > 0 ? got : 0] = '\0';
	return !strstr(text, unfiltered);
}

/* Not again in this process. */
static void refused(const char *why)
{
	interval_ns = 0;
	spy_note(
		SPY_NOTE_OTHER,
		"where threads are that run between their calls is unknown, but for lines of Python: %s",
		why);
}

/* ---- the kernel's clock ----------------------------------------------------------------------- */

/* A descriptor, or -errno. */
static long open_clock(uint32_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = interval_ns,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.write_backward = 1,
		.sample_regs_user = PERF_REGISTERS,
		.sample_stack_user = STACK_BYTES,
		.clockid = CLOCK_MONOTONIC,
	};
	long fd = spy_syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void begin(struct spy_running *running, uint32_t tid)
{
	long fd, map;

	if (is_filtered()) {
		refused("a seccomp filter may kill a process that asks the kernel for it");
		return;
	}
	fd = open_clock(tid);
	if (fd == -ESRCH) /* it is gone */
		return;
	if (fd < 0) {
		refused(fd == -EACCES || fd == -EPERM
				? "not allowed (kernel.perf_event_paranoid of 2 or less allows it)"
				: "the kernel has no perf_event_open, or not of its own threads");
		return;
	}
	map = spy_syscall(SYS_mmap, NULL, PAGE + RING_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	spy_syscall(SYS_close, fd);
	if (map < 0) {
		refused("no memory may be locked for it (kernel.perf_event_mlock_kb)");
		return;
	}
	running->ring = (void *)map;
	n_running++;
}

/* ---- the last interruption -------------------------------------------------------------------- */

static void copy_of_ring(const char *ring, uint64_t from, void *to, size_t bytes)
{
	size_t at = from % RING_BYTES, first = RING_BYTES - at < bytes ? RING_BYTES - at : bytes;

	memcpy(to, ring + at, first);
	memcpy((char *)to + first, ring, bytes - first);
}

static uint64_t head_of(const struct perf_event_mmap_page *page)
{
	return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

/* The newest record is where the head points; the head falls. False: there is none, or it is overwritten already. */
static bool take(const struct perf_event_mmap_page *page)
{
	const char *ring = (const char *)page + PAGE;
	uint64_t head = head_of(page);

	if (!head)
		return false;
	copy_of_ring(ring, head, &copy.head, sizeof(copy.head));
	if (copy.head.type != PERF_RECORD_SAMPLE || copy.head.size != sizeof(copy))
		return false;
	copy_of_ring(ring, head, &copy, sizeof(copy));
	spy_read_barrier();
	/* One that is being written has not moved the head yet. */
	return head - head_of(page) + 2 * sizeof(copy) <= RING_BYTES;
}

/* The linker's: this library's first byte, and the end of its code. */
extern const char __ehdr_start __attribute__((visibility("hidden")));
extern const char etext __attribute__((visibility("hidden")));

/* The recorder's own work, before a call and after it, is no place of the program's; nor is what it called. */
static bool is_ours(const uint64_t *frames, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (frames[i] >= (uintptr_t)&__ehdr_start && frames[i] < (uintptr_t)&etext)
			return true;
	return false;
}

size_t spy_running_walk(const struct spy_interrupted *at, uint64_t *frames, size_t most,
			uint64_t *function)
{
	size_t n;

	if (!spy_libraries_hold())
		return 0;
	n = spy_unwind_interrupted(at, frames, most, function);
	spy_libraries_release();
	return is_ours(frames, n) ? 0 : n;
}

bool spy_running_look(struct spy_running *running, uint32_t tid, uint64_t since_ns, uint64_t *ns,
		      struct spy_interrupted *at)
{
	if (!running->ring && interval_ns && n_running < SPY_RUNNING_MOST)
		begin(running, tid);
	if (!running->ring || !take(running->ring) || copy.tid != tid || copy.ns < since_ns ||
	    copy.abi != PERF_SAMPLE_REGS_ABI_64 || copy.stack_bytes != STACK_BYTES)
		return false;
	*ns = copy.ns;
	*at = (struct spy_interrupted){copy.registers, copy.stack,
				       copy.copied_bytes < STACK_BYTES ? copy.copied_bytes
								       : STACK_BYTES};
	return true;
}

void spy_running_end(struct spy_running *running)
{
	if (!running->ring)
		return;
	spy_syscall(SYS_munmap, running->ring, PAGE + RING_BYTES);
	running->ring = NULL;
	n_running--;
}

void spy_running_begin(uint64_t ns)
{
	interval_ns = ns;
}

void spy_running_forked(void)
{
	n_running = 0;
	interval_ns = 0;
}
