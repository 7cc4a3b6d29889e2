/*
 * tests/stress/runtime.c: a libcudart.so.13 for the check with random programs. Unlike a real runtime and
 * the simulator it may be called anywhere: in signal handlers, after fork, on coroutines. Device memory is
 * memory, streams do what they are told at once, and calls wait in the ways that drivers wait in. Three
 * kinds of functions (calls.h says which is which):
 *
 *   free     take no lock
 *   masked   take a lock with all signals blocked, so that a handler never meets a lock of its own thread
 *   open     take a lock with signals as they are: handlers must not call these
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "runtime.h"

#define PAGE ((size_t)4096)

enum { SUCCESS, INVALID_VALUE, OUT_OF_MEMORY };

static __thread int device; /* initial-exec: not allocated in a handler */

/* ---- locks ----------------------------------------------------------------------------------- */

static pthread_mutex_t masked_mutex, open_mutex;
static pthread_rwlock_t open_rwlock;
static pthread_spinlock_t masked_spin;
static pthread_mutex_t waited_mutex;
static pthread_cond_t never;
static sem_t turns;

/* Also in a forked child, where other threads' locks are held by nobody: what they guard is nothing. */
static void make_locks(void)
{
	masked_mutex = open_mutex = waited_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	open_rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	never = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	pthread_spin_init(&masked_spin, PTHREAD_PROCESS_PRIVATE);
	sem_init(&turns, 0, 2);
}

static __attribute__((constructor)) void begin(void)
{
	make_locks();
	pthread_atfork(NULL, NULL, make_locks);
}

static sigset_t mask_all(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	return before;
}

static void unmask(sigset_t before)
{
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Work of so many loops. */
static void work(unsigned int loops)
{
	for (volatile unsigned int i = 0; i < loops; i++)
		;
}

static void sleep_us(long us)
{
	struct timespec left = {.tv_nsec = us * 1000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

/* ---- free of locks --------------------------------------------------------------------------- */

int cudaSetDevice(int number)
{
	if (number < 0 || number >= 8)
		return INVALID_VALUE;
	device = number;
	return SUCCESS;
}

int cudaGetDevice(int *number)
{
	*number = device;
	return SUCCESS;
}

int cudaGetDeviceCount(int *count)
{
	*count = 8;
	return SUCCESS;
}

int cudaGetLastError(void)
{
	return SUCCESS;
}

int cudaPeekAtLastError(void)
{
	return SUCCESS;
}

const char *cudaGetErrorName(int error)
{
	return error ? "an error" : "cudaSuccess";
}

/* The page before it knows the size. */
int cudaMalloc(void **address, size_t bytes)
{
	char *map = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (map == MAP_FAILED)
		return OUT_OF_MEMORY;
	*(size_t *)map = bytes + PAGE;
	*address = map + PAGE;
	return SUCCESS;
}

int cudaFree(void *address)
{
	char *map = (char *)address - PAGE;

	if (address)
		munmap(map, *(size_t *)map);
	return SUCCESS;
}

int cudaMallocHost(void **address, size_t bytes)
{
	return cudaMalloc(address, bytes);
}

int cudaFreeHost(void *address)
{
	return cudaFree(address);
}

int cudaMallocAsync(void **address, size_t bytes, void *stream)
{
	(void)stream;
	return cudaMalloc(address, bytes);
}

int cudaFreeAsync(void *address, void *stream)
{
	(void)stream;
	return cudaFree(address);
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	(void)stream;
	if (kind < 0 || kind > 4)
		return INVALID_VALUE;
	memcpy(to, from, bytes);
	return SUCCESS;
}

int cudaMemsetAsync(void *address, int value, size_t bytes, void *stream)
{
	(void)stream;
	memset(address, value, bytes);
	return SUCCESS;
}

/* A kernel with one argument: it counts one up. */
int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared, void *stream)
{
	(void)kernel, (void)grid, (void)block, (void)shared, (void)stream;
	++**(unsigned char **)args[0];
	return SUCCESS;
}

static int new_object(void **object)
{
	static atomic_ulong objects = 0x1000;

	*object = (void *)(atomic_fetch_add(&objects, 16));
	return SUCCESS;
}

int cudaStreamCreateWithFlags(void **stream, unsigned int flags)
{
	(void)flags;
	return new_object(stream);
}

int cudaStreamDestroy(void *stream)
{
	(void)stream;
	return SUCCESS;
}

int cudaStreamQuery(void *stream)
{
	(void)stream;
	return SUCCESS;
}

int cudaStreamWaitEvent(void *stream, void *event, unsigned int flags)
{
	(void)stream, (void)event, (void)flags;
	return SUCCESS;
}

/* Asleep in ways that a handler may interrupt. */
int cudaStreamSynchronize(void *stream)
{
	(void)stream;
	poll(NULL, 0, 0);
	sleep_us(20);
	return SUCCESS;
}

int cudaEventCreate(void **event)
{
	return new_object(event);
}

int cudaEventRecord(void *event, void *stream)
{
	(void)event, (void)stream;
	return SUCCESS;
}

int cudaEventDestroy(void *event)
{
	(void)event;
	return SUCCESS;
}

int cudaStreamBeginCapture(void *stream, int mode)
{
	(void)stream, (void)mode;
	return SUCCESS;
}

int cudaStreamEndCapture(void *stream, void **graph)
{
	(void)stream;
	return new_object(graph);
}

int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags)
{
	(void)graph, (void)flags;
	return new_object(exec);
}

int cudaGraphLaunch(void *exec, void *stream)
{
	(void)exec, (void)stream;
	return SUCCESS;
}

int cudaGraphExecDestroy(void *exec)
{
	(void)exec;
	return SUCCESS;
}

int cudaGraphDestroy(void *graph)
{
	(void)graph;
	return SUCCESS;
}

int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
	(void)stream;
	function(data);
	return SUCCESS;
}

void **__cudaRegisterFatBinary(void *wrapper)
{
	static void *code;

	(void)wrapper;
	return &code;
}

void __cudaRegisterFatBinaryEnd(void **code)
{
	(void)code;
}

void __cudaUnregisterFatBinary(void **code)
{
	(void)code;
}

void __cudaRegisterFunction(void **code, const char *host, char *name_, const char *name, int limit,
			    void *tid, void *bid, void *block, void *grid, int *size)
{
	(void)code, (void)host, (void)name_, (void)name, (void)limit;
	(void)tid, (void)bid, (void)block, (void)grid, (void)size;
}

/* ---- locks with signals blocked -------------------------------------------------------------- */

int cudaHostRegister(void *address, size_t bytes, unsigned int flags)
{
	sigset_t before = mask_all();

	(void)address, (void)bytes, (void)flags;
	pthread_mutex_lock(&masked_mutex);
	work(300);
	pthread_mutex_unlock(&masked_mutex);
	unmask(before);
	return SUCCESS;
}

int cudaHostUnregister(void *address)
{
	return cudaHostRegister(address, 0, 0);
}

int cudaEventQuery(void *event)
{
	sigset_t before = mask_all();

	(void)event;
	pthread_spin_lock(&masked_spin);
	work(100);
	pthread_spin_unlock(&masked_spin);
	unmask(before);
	return SUCCESS;
}

/* ---- locks with signals as they are ----------------------------------------------------------- */

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	pthread_mutex_lock(&open_mutex);
	work(200);
	memcpy(to, from, bytes);
	pthread_mutex_unlock(&open_mutex);
	return kind < 0 || kind > 4 ? INVALID_VALUE : SUCCESS;
}

int cudaMemset(void *address, int value, size_t bytes)
{
	pthread_rwlock_wrlock(&open_rwlock);
	memset(address, value, bytes);
	work(200);
	pthread_rwlock_unlock(&open_rwlock);
	return SUCCESS;
}

int cudaEventSynchronize(void *event)
{
	(void)event;
	pthread_rwlock_rdlock(&open_rwlock);
	sleep_us(5);
	pthread_rwlock_unlock(&open_rwlock);
	return SUCCESS;
}

/* Two at a time, and then for a condition that nobody signals. */
int cudaDeviceSynchronize(void)
{
	struct timespec until;

	while (sem_wait(&turns) < 0 && errno == EINTR)
		;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 30000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&waited_mutex);
	pthread_cond_timedwait(&never, &waited_mutex, &until);
	pthread_mutex_unlock(&waited_mutex);
	sem_post(&turns);
	return SUCCESS;
}
