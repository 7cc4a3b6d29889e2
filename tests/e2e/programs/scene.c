/*
 * tests/e2e/programs/scene.c: threads that wait for each other in known ways, on the simulator (tests/sim), for
 * test_blame.sh, which holds what cudaspy says against the simulator's truth.
 *
 *   scene --list                  the names
 *   scene --script NAME [SEED]    what to write into SPYSIM_SCRIPT's file
 *   scene NAME [SEED]             plays it; random SEED makes one up, the same for the same seed
 *
 * A scene is a row of a table: its script for the simulator, and groups of threads, each with a
 * program of words (see ops[]): `launch:500` is a kernel of 500 us, `*20( ... )` repeats. In scenes
 * called clean no thread waits for another device. Host work keeps the processor, as a driver's does. All
 * resources are made by the main thread before, one after the other, so that only the programs collide. Prints
 * nothing that depends on time.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include "sim_program.h"

enum { GROUPS_MAX = 8, THREADS_MAX = 16, DEVICES_MAX = 8, BUFFER_BYTES = 8 << 20, STACK_MAX = 64 };

struct group {
	int threads, device, devices; /* thread i works on device + i % devices */
	const char *program;
};

struct scene {
	const char *name, *script;
	struct group groups[GROUPS_MAX];
};

/* ---- the scenes ---- */
#define GPUS "gpus 8\nwork busy\nstaging pageable\n"

/* clang-format off */
static const struct scene scenes[] = {
	/* Copies to pageable memory wait for their stream, and others of the device behind them. */
	{"pageable_d2h", GPUS,
		{{1, 0, 1, "at:0 h2d:1400 launch:80000 d2h:1400"},
		 {1, 0, 1, "at:1000 h2d:1400 launch:70000 d2h:1400"},
		 {1, 0, 1, "at:2000 h2d:1400 launch:60000 d2h:1400"},
		 {1, 0, 1, "at:3000 h2d:1400 launch:50000 d2h:1400"}}},
	{"pageable_d2h_alone", GPUS "staging d2h\n",
		{{1, 0, 1, "at:0 h2d:1400 launch:80000 d2h:1400"},
		 {1, 0, 1, "at:1000 h2d:1400 launch:70000 d2h:1400"},
		 {1, 0, 1, "at:2000 h2d:1400 launch:60000 d2h:1400"},
		 {1, 0, 1, "at:3000 h2d:1400 launch:50000 d2h:1400"}}},
	{"pageable_sync_first", GPUS,
		{{1, 0, 1, "at:0 h2d:1400 launch:80000 sync d2h:1400"},
		 {1, 0, 1, "at:1000 h2d:1400 launch:70000 sync d2h:1400"},
		 {1, 0, 1, "at:2000 h2d:1400 launch:60000 sync d2h:1400"},
		 {1, 0, 1, "at:3000 h2d:1400 launch:50000 sync d2h:1400"}}},
	{"clean_pinned_d2h", GPUS,
		{{1, 0, 1, "at:0 ph2d:1400 launch:80000 pd2h:1400 sync"},
		 {1, 0, 1, "at:1000 ph2d:1400 launch:70000 pd2h:1400 sync"},
		 {1, 0, 1, "at:2000 ph2d:1400 launch:60000 pd2h:1400 sync"},
		 {1, 0, 1, "at:3000 ph2d:1400 launch:50000 pd2h:1400 sync"}}},
	{"clean_pageable_4gpus", GPUS, {{4, 0, 4, "*3( h2d:1400 launch:20000 d2h:1400 )"}}},
	{"h2d_behind_d2h", GPUS,
		{{1, 0, 1, "*2( launch:40000 d2h:64 )"}, {1, 0, 1, "at:3000 *20( h2d:64 sleep:2000 )"}}},
	{"h2d_large", GPUS,
		{{1, 0, 1, "launch:40000 h2d:4096 sync"}, {1, 0, 1, "at:3000 *10( h2d:64 sleep:2000 )"}}},
	{"h2d_staging_d2h", GPUS "staging d2h\n",
		{{1, 0, 1, "launch:40000 d2h:64"}, {1, 0, 1, "at:3000 *10( h2d:64 sleep:2000 )"}}},
	{"launch_staging_all", GPUS "staging all\n",
		{{1, 0, 1, "launch:40000 d2h:64"}, {2, 0, 1, "at:3000 *10( launch:10 sleep:2000 )"}}},

	/* Convoys on the lock of the process, one thread on each device. */
	{"malloc_2gpus", GPUS "cost cuMemAlloc_v2 300\n", {{2, 0, 2, "*40( malloc:3072 free )"}}},
	{"malloc_8gpus", GPUS "cost cuMemAlloc_v2 300\n", {{8, 0, 8, "*20( malloc:3072 free )"}}},
	{"mallochost_4gpus", GPUS, {{4, 0, 4, "*20( mallochost:2048 freehost )"}}},
	{"mallochost_8gpus", GPUS, {{8, 0, 8, "*12( mallochost:2048 freehost )"}}},
	{"register_2gpus", GPUS "cost cuMemHostRegister_v2 800\n", {{2, 0, 2, "*30( register:1024 unregister )"}}},
	{"register_8gpus", GPUS "cost cuMemHostRegister_v2 800\n", {{8, 0, 8, "*10( register:1024 unregister )"}}},
	{"managed_8gpus", GPUS "cost cuMemAllocManaged 700\n", {{8, 0, 8, "*12( managed:1024 free )"}}},
	{"graph_4gpus", GPUS "cost cuGraphInstantiate 900\n", {{4, 0, 4, "*8( graph:10 )"}}},
	{"graph_8gpus", GPUS "cost cuGraphInstantiate 900\n", {{8, 0, 8, "*6( graph:10 )"}}},
	{"stream_create_8gpus", GPUS "cost cuStreamCreate 200\ncost cuStreamDestroy 200\n", {{8, 0, 8, "*20( stream )"}}},
	{"library_8gpus", GPUS "cost cuLibraryLoadData 600\n", {{8, 0, 8, "*15( library )"}}},
	{"module_4gpus", GPUS "cost cuModuleLoadData 600\n", {{4, 0, 4, "*15( module )"}}},
	{"allocators_and_launchers", GPUS "cost cuMemAlloc_v2 300\n",
		{{3, 0, 3, "*30( malloc:1024 free )"}, {3, 3, 3, "*60( launch:300 sync )"}}},
	{"malloc_1gpu", GPUS "cost cuMemAlloc_v2 300\n", {{4, 0, 1, "*20( malloc:3072 free )"}}},
	{"mallochost_same_gpu", GPUS "cost cuMemHostAlloc 40000\n",
		{{1, 0, 1, "sleep:3000 *3( mallochost:1024 sleep:3000 )"}, {2, 0, 1, "*60( ph2d:64 sleep:1500 )"},
		 {1, 1, 1, "*60( ph2d:64 sleep:1500 )"}}},
	{"pool_1gpu", GPUS "cost cuMemAllocAsync 500\n", {{4, 0, 1, "*15( pool:2048 sleep:200 ) sync"}}},

	/* Other granularities. */
	{"process_lock_d2h", GPUS "lock process\n", {{4, 0, 4, "*4( launch:8000 d2h:256 )"}}},
	{"process_lock_free", GPUS "lock process\n",
		{{1, 0, 1, "*3( malloc:64 launch:20000 free )"}, {3, 1, 3, "*30( launch:200 sleep:1500 )"}}},
	{"process_lock_launch", GPUS "lock process\nhold cuLaunchKernel mutex:process 100\n",
		{{4, 0, 4, "*60( launch:100 ) sync"}}},
	{"clean_device_locks", GPUS "lock device\ncost cuMemAlloc_v2 300\n", {{2, 0, 2, "*20( malloc:3072 free )"}}},
	{"device_locks_1gpu", GPUS "lock device\ncost cuMemAlloc_v2 300\n", {{4, 0, 2, "*20( malloc:3072 free )"}}},

	/* A call that waits for the device stops the others of its context. */
	{"free_under_kernel", GPUS,
		{{1, 0, 1, "launch:80000 sync"}, {1, 0, 1, "at:5000 malloc:1024 free"},
		 {1, 0, 1, "*40( ph2d:4 launch:1 sleep:2000 )"}}},
	{"limit_under_kernel", GPUS,
		{{1, 0, 1, "launch:80000 sync"}, {1, 0, 1, "at:5000 limit:4096"},
		 {1, 0, 1, "*40( ph2d:4 launch:1 sleep:2000 )"}}},
	{"lazy_under_kernel", GPUS "lazy lazy1_\n",
		{{1, 0, 1, "launch:80000 sync"}, {1, 0, 1, "at:5000 lazy:10"},
		 {1, 0, 1, "*40( ph2d:4 launch:1 sleep:2000 )"}}},
	{"eager_under_kernel", GPUS,
		{{1, 0, 1, "launch:80000 sync"}, {1, 0, 1, "at:5000 lazy:10"},
		 {1, 0, 1, "*40( ph2d:4 launch:1 sleep:2000 )"}}},
	{"unregister_under_kernel", GPUS,
		{{1, 0, 1, "launch:60000 sync"}, {1, 0, 1, "at:5000 register:64 unregister"},
		 {2, 0, 1, "*30( ph2d:4 sleep:2000 )"}}},
	{"freehost_under_kernel", GPUS,
		{{1, 0, 1, "launch:60000 sync"}, {1, 0, 1, "at:5000 mallochost:64 freehost"},
		 {2, 0, 1, "*30( launch:1 sleep:2000 )"}}},
	{"module_under_kernel", GPUS,
		{{1, 0, 1, "launch:60000 sync"}, {1, 0, 1, "at:5000 module"}, {1, 0, 1, "*30( event sleep:2000 )"}}},
	{"two_frees_under_kernel", GPUS,
		{{1, 0, 1, "launch:80000 sync"}, {2, 0, 1, "at:5000 malloc:64 free"}, {1, 0, 1, "*40( ph2d:4 sleep:2000 )"}}},
	{"clean_free_other_gpu", GPUS,
		{{1, 0, 1, "launch:60000 sync"}, {1, 0, 1, "at:5000 malloc:64 free"}, {1, 1, 1, "*30( ph2d:4 launch:1 sleep:2000 )"}}},

	/* The launch queue. */
	{"queue_alone", GPUS "queue 80\n", {{1, 0, 1, "*200( launch:1000 ) sync"}}},
	{"queue_and_waiter", GPUS "queue 80\nhold cuLaunchKernel mutex:submit 0 whole\n",
		{{1, 0, 1, "*200( launch:1000 ) sync"}, {1, 1, 1, "at:3000 *20( launch:1 sleep:3000 )"}}},
	{"clean_queue_2gpus", GPUS "queue 80\n", {{2, 0, 2, "*200( launch:1000 ) sync"}}},

	/* The kernel module. */
	{"ioctl_alone", GPUS "ioctl cuMemAlloc_v2 3000\n", {{1, 0, 1, "*20( malloc:1024 free )"}}},
	{"ioctl_4gpus", GPUS "ioctl cuMemAlloc_v2 2000\n", {{4, 0, 4, "*10( malloc:1024 free )"}}},
	{"ioctl_context", GPUS "ioctl cuMemHostRegister_v2 6000\n",
		{{1, 0, 1, "*8( register:64 sleep:1000 unregister )"}, {2, 0, 1, "*40( ph2d:4 sleep:1000 )"}}},
	{"ioctl_no_lock", GPUS "ioctl cuStreamWaitEvent 1500\n", {{4, 0, 4, "*30( follow )"}}},

	/* Chains: the last waits for the one before, who waits for the one before. */
	{"chain2_gpu", GPUS "hold cuStreamSynchronize mutex:a 0 whole\n"
		"hold cuEventRecord mutex:b 0 whole\nhold cuEventRecord mutex:a 200\nhold cuEventCreate mutex:b 200\n",
		{{1, 0, 1, "launch:90000 sync"}, {1, 1, 1, "at:15000 event"}, {1, 2, 1, "at:30000 newevent"}}},
	{"chain3_gpu", GPUS "hold cuStreamSynchronize mutex:a 0 whole\n"
		"hold cuEventRecord mutex:b 0 whole\nhold cuEventRecord mutex:a 200\n"
		"hold cuEventCreate mutex:c 0 whole\nhold cuEventCreate mutex:b 200\nhold cuStreamQuery mutex:c 200\n",
		{{1, 0, 1, "launch:90000 sync"}, {1, 1, 1, "at:15000 event"}, {1, 2, 1, "at:30000 newevent"},
		 {1, 3, 1, "at:45000 query"}}},
	{"chain2_ioctl", GPUS "hold cuStreamWaitEvent mutex:a 0 whole\nioctl cuStreamWaitEvent 70000\n"
		"hold cuEventRecord write:b 0 whole\nhold cuEventRecord mutex:a 200\nhold cuEventCreate read:b 200\n",
		{{1, 0, 1, "follow"}, {1, 1, 1, "at:15000 event"}, {2, 2, 2, "at:30000 newevent"}}},
	{"chain2_own", GPUS "hold cuStreamWaitEvent mutex:a 70000\n"
		"hold cuEventRecord mutex:b 0 whole\nhold cuEventRecord mutex:a 200\nhold cuEventCreate mutex:b 200\n",
		{{1, 0, 1, "follow"}, {1, 0, 1, "at:15000 event"}, {1, 1, 1, "at:30000 newevent"}}},
	{"chain2_queue", GPUS "queue 80\nhold cuLaunchKernel mutex:submit 0 whole\n"
		"hold cuEventRecord mutex:b 0 whole\nhold cuEventRecord mutex:submit 100\nhold cuEventCreate mutex:b 100\n",
		{{1, 0, 1, "*140( launch:1000 ) sync"}, {1, 1, 1, "at:8000 *4( event sleep:4000 )"},
		 {1, 2, 1, "at:9000 *8( newevent sleep:4000 )"}}},
	{"chain_free_malloc", GPUS "hold cuMemFree_v2 mutex:heap 0 whole\nhold cuMemAlloc_v2 mutex:heap 100\n",
		{{1, 0, 1, "malloc:64 launch:60000 free"}, {3, 1, 3, "at:8000 *6( malloc:64 sleep:2000 )"}}},

	/* Readers, spinners, starvation. */
	{"reader_held", GPUS "hold cuMemcpyHtoDAsync_v2 read:context 12000\n",
		{{1, 0, 1, "*5( ph2d:4 sleep:2000 )"}, {1, 0, 1, "at:3000 *4( mallochost:64 sleep:9000 )"}}},
	{"two_readers", GPUS "hold cuEventRecord read:x 10000\nhold cuEventCreate write:x 1000\n",
		{{1, 0, 1, "*5( event sleep:6000 )"}, {1, 1, 1, "at:4000 *5( event sleep:6000 )"},
		 {1, 2, 1, "at:6000 *5( newevent sleep:9000 )"}}},
	{"writer_and_readers", GPUS "hold cuEventRecord read:x 300\nhold cuEventCreate write:x 8000\n",
		{{1, 0, 1, "*8( newevent sleep:4000 )"}, {3, 1, 3, "*30( event sleep:1500 )"}}},
	{"spin_2gpus", GPUS "hold cuEventRecord spin:x 400\n", {{2, 0, 2, "*60( event )"}}},
	{"spin_4threads", GPUS "hold cuEventRecord spin:x 3000\n", {{4, 0, 2, "*8( event sleep:1000 )"}}},
	{"starvation", GPUS "hold cuEventRecord mutex:x 3000\nhold cuEventCreate mutex:x 100\n",
		{{1, 0, 1, "*50( event )"}, {1, 1, 1, "at:20000 *15( newevent sleep:3000 )"}}},
	{"starved_writer", GPUS "hold cuEventRecord read:x 6000\nhold cuEventCreate write:x 100\n",
		{{2, 0, 2, "*12( event )"}, {1, 2, 1, "at:2000 *4( newevent sleep:1000 )"}}},
	{"convoy_three_locks", GPUS "hold cuEventRecord mutex:x 300\nhold cuEventRecord mutex:y 300\nhold cuEventRecord mutex:z 300\n",
		{{4, 0, 4, "*25( event )"}}},

	/* More threads than processors. */
	{"oversubscribed_malloc", GPUS "cost cuMemAlloc_v2 300\n",
		{{4, 0, 4, "*20( malloc:1024 free )"}, {4, 0, 1, "burn:150000"}}},
	{"oversubscribed_convoy", GPUS "hold cuEventRecord mutex:x 40\n",
		{{6, 0, 3, "*200( event )"}, {3, 0, 1, "burn:150000"}}},
	{"clean_oversubscribed_4gpus", GPUS,
		{{4, 0, 4, "*30( ph2d:64 launch:300 sync )"}, {4, 0, 1, "burn:150000"}}},

	/* Nobody waits for anybody. */
	{"clean_launch_1", GPUS, {{1, 0, 1, "*100( launch:300 ) sync"}}},
	{"clean_launch_4gpus", GPUS, {{4, 0, 4, "*50( launch:500 sync )"}}},
	{"clean_pinned_4gpus", GPUS, {{4, 0, 4, "*40( ph2d:256 launch:400 pd2h:256 sync )"}}},
	{"clean_pinned_8gpus", GPUS, {{8, 0, 8, "*20( ph2d:256 launch:800 pd2h:256 sync )"}}},
	{"clean_events_4gpus", GPUS, {{4, 0, 4, "*40( launch:500 event waitevent )"}}},
	{"clean_memset_4gpus", GPUS, {{4, 0, 4, "*40( memset:1024 launch:500 dsync )"}}},
	{"clean_sync_copies_4gpus", GPUS, {{4, 0, 4, "*30( sh2d:64 sd2h:64 launch:300 sync )"}}},
	{"clean_pool_4gpus", GPUS, {{4, 0, 4, "*20( pool:512 launch:300 ) sync"}}},
};
/* clang-format on */

/* ---- threads and what they have ---- */
struct worker {
	pthread_t thread;
	int index, device;
	const char *program;
	void *stream, *event, *gpu, *pinned;
	char *pageable;
	void *allocated[STACK_MAX], *allocated_host[STACK_MAX];
	int allocated_cnt, allocated_host_cnt;
};

static struct worker workers[THREADS_MAX];
static int worker_cnt;
static pthread_barrier_t ready;
static uint64_t begin_ns;
static char stub_delay, stub_lazy[THREADS_MAX];

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

static int launch(const void *kernel, int us, void *stream)
{
	struct dim3 one = {1, 1, 1};
	void *args[] = {&us};

	return cudaLaunchKernel(kernel, one, one, args, 0, stream);
}

/* ---- the words ---- */
static void op_launch(struct worker *w, long us)
{
	OK(launch(&stub_delay, (int)us, w->stream));
}

/* A kernel of this thread alone, so that its first launch is here. */
static void op_lazy(struct worker *w, long us)
{
	OK(launch(&stub_lazy[w->index], (int)us, w->stream));
}

static void op_h2d(struct worker *w, long kb)
{
	OK(cudaMemcpyAsync(w->gpu, w->pageable, (size_t)kb << 10, H2D, w->stream));
}

static void op_d2h(struct worker *w, long kb)
{
	OK(cudaMemcpyAsync(w->pageable, w->gpu, (size_t)kb << 10, D2H, w->stream));
}

static void op_ph2d(struct worker *w, long kb)
{
	OK(cudaMemcpyAsync(w->gpu, w->pinned, (size_t)kb << 10, H2D, w->stream));
}

static void op_pd2h(struct worker *w, long kb)
{
	OK(cudaMemcpyAsync(w->pinned, w->gpu, (size_t)kb << 10, D2H, w->stream));
}

static void op_sh2d(struct worker *w, long kb)
{
	OK(cudaMemcpy(w->gpu, w->pageable, (size_t)kb << 10, H2D));
}

static void op_sd2h(struct worker *w, long kb)
{
	OK(cudaMemcpy(w->pageable, w->gpu, (size_t)kb << 10, D2H));
}

static void op_memset(struct worker *w, long kb)
{
	OK(cudaMemsetAsync(w->gpu, 1, (size_t)kb << 10, w->stream));
}

static void op_sync(struct worker *w, long arg)
{
	OK(cudaStreamSynchronize(w->stream));
}

static void op_dsync(struct worker *w, long arg)
{
	OK(cudaDeviceSynchronize());
}

static void op_query(struct worker *w, long arg)
{
	cudaStreamQuery(w->stream);
}

static void op_follow(struct worker *w, long arg)
{
	OK(cudaStreamWaitEvent(w->stream, w->event, 0));
}

static void op_event(struct worker *w, long arg)
{
	OK(cudaEventRecord(w->event, w->stream));
}

static void op_waitevent(struct worker *w, long arg)
{
	OK(cudaEventSynchronize(w->event));
}

static void op_newevent(struct worker *w, long arg)
{
	void *event;

	OK(cudaEventCreate(&event));
	OK(cudaEventDestroy(event));
}

static void **push(void **stack, int *cnt)
{
	if (*cnt == STACK_MAX)
		die("too many allocations in a program");
	return &stack[(*cnt)++];
}

static void *pop(void **stack, int *cnt)
{
	return *cnt ? stack[--*cnt] : NULL;
}

static void op_malloc(struct worker *w, long kb)
{
	OK(cudaMalloc(push(w->allocated, &w->allocated_cnt), (size_t)kb << 10));
}

static void op_managed(struct worker *w, long kb)
{
	OK(cudaMallocManaged(push(w->allocated, &w->allocated_cnt), (size_t)kb << 10, 1));
}

static void op_free(struct worker *w, long arg)
{
	OK(cudaFree(pop(w->allocated, &w->allocated_cnt)));
}

static void op_mallochost(struct worker *w, long kb)
{
	OK(cudaMallocHost(push(w->allocated_host, &w->allocated_host_cnt), (size_t)kb << 10));
}

static void op_freehost(struct worker *w, long arg)
{
	OK(cudaFreeHost(pop(w->allocated_host, &w->allocated_host_cnt)));
}

/* From the end of the pageable buffer: its beginning is copied from and to. */
static void op_register(struct worker *w, long kb)
{
	OK(cudaHostRegister(w->pageable + BUFFER_BYTES / 2, (size_t)kb << 10, 0));
}

static void op_unregister(struct worker *w, long arg)
{
	OK(cudaHostUnregister(w->pageable + BUFFER_BYTES / 2));
}

static void op_pool(struct worker *w, long kb)
{
	void *address;

	OK(cudaMallocAsync(&address, (size_t)kb << 10, w->stream));
	OK(cudaFreeAsync(address, w->stream));
}

static void op_stream(struct worker *w, long arg)
{
	void *stream;

	OK(cudaStreamCreateWithFlags(&stream, 1));
	OK(cudaStreamDestroy(stream));
}

static void op_graph(struct worker *w, long nodes)
{
	void *graph, *exec;

	OK(cudaStreamBeginCapture(w->stream, 2));
	for (long i = 0; i < nodes; i++)
		OK(launch(&stub_delay, 20, w->stream));
	OK(cudaStreamEndCapture(w->stream, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, w->stream));
	OK(cudaStreamSynchronize(w->stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
}

static void op_library(struct worker *w, long arg)
{
	void *library;

	OK(cudaLibraryLoadData(&library, "code", NULL, NULL, 0, NULL, NULL, 0));
	OK(cudaLibraryUnload(library));
}

static void op_module(struct worker *w, long arg)
{
	void *module;

	OK(cuModuleLoadData(&module, "code"));
	OK(cuModuleUnload(module));
}

static void op_limit(struct worker *w, long bytes)
{
	OK(cudaDeviceSetLimit(0, (size_t)bytes));
}

static void op_sleep(struct worker *w, long us)
{
	sleep_until(now_ns() + (uint64_t)us * 1000);
}

static void op_at(struct worker *w, long us)
{
	sleep_until(begin_ns + (uint64_t)us * 1000);
}

static void op_burn(struct worker *w, long us)
{
	uint64_t end_ns = now_ns() + (uint64_t)us * 1000;

	while (now_ns() < end_ns)
		;
}

static const struct {
	const char *name;
	void (*run)(struct worker *w, long arg);
} ops[] = {
#define OP(name) \
	{ \
#name, op_##name \
	}
	OP(launch), OP(lazy),       OP(h2d),       OP(d2h),      OP(ph2d),       OP(pd2h),
	OP(sh2d),   OP(sd2h),       OP(memset),    OP(sync),     OP(dsync),      OP(query),
	OP(follow), OP(event),      OP(waitevent), OP(newevent), OP(malloc),     OP(managed),
	OP(free),   OP(mallochost), OP(freehost),  OP(register), OP(unregister), OP(pool),
	OP(stream), OP(graph),      OP(library),   OP(module),   OP(limit),      OP(sleep),
	OP(at),     OP(burn),
#undef OP
};

static const char *skip_block(const char *p)
{
	for (int depth = 1; depth; p++) {
		if (!*p)
			die("a ( without its )");
		depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
	}
	return p;
}

static void run_word(struct worker *w, const char *word, size_t len)
{
	const char *colon = memchr(word, ':', len);
	size_t name_len = colon ? (size_t)(colon - word) : len;

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strlen(ops[i].name) == name_len && !memcmp(ops[i].name, word, name_len)) {
			ops[i].run(w, colon ? strtol(colon + 1, NULL, 10) : 0);
			return;
		}
	die("no such word: %.*s", (int)len, word);
}

/* Runs up to the end or an unpaired ). */
static void run_program(struct worker *w, const char *p)
{
	for (;;) {
		size_t len;

		p += strspn(p, " ");
		if (!*p || *p == ')')
			return;
		if (*p == '*') {
			long times = strtol(p + 1, (char **)&p, 10);

			if (*p++ != '(')
				die("*%ld is not followed by (", times);
			for (long i = 0; i < times; i++)
				run_program(w, p);
			p = skip_block(p);
			continue;
		}
		len = strcspn(p, " )");
		run_word(w, p, len);
		p += len;
	}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	/* Threads that only burn the processor make no calls at all. */
	if (strncmp(w->program, "burn", 4) != 0)
		OK(cudaSetDevice(w->device));
	pthread_barrier_wait(&ready);
	run_program(w, w->program);
	return NULL;
}

/* ---- playing ---- */
static void prepare(struct worker *w)
{
	OK(cudaSetDevice(w->device));
	OK(cudaStreamCreateWithFlags(&w->stream, 1));
	OK(cudaEventCreate(&w->event));
	OK(cudaMalloc(&w->gpu, BUFFER_BYTES));
	OK(cudaMallocHost(&w->pinned, 1 << 21));
	w->pageable = aligned_alloc(2 << 20, BUFFER_BYTES);
	if (!w->pageable)
		die("no memory");
	madvise(w->pageable, BUFFER_BYTES, MADV_HUGEPAGE);
	memset(w->pageable, w->index, BUFFER_BYTES);
	/* The simulator's GPUs have the machine's memory: its page faults are not to come in the scene's calls. */
	memset(w->gpu, 0, BUFFER_BYTES);
	memset(w->pinned, 0, 1 << 21);
	OK(launch(&stub_delay, 1, w->stream));
	OK(cudaStreamSynchronize(w->stream));
}

static void play(const struct scene *scene)
{
	register_kernels(&stub_delay, stub_lazy, THREADS_MAX);
	for (const struct group *g = scene->groups; g < scene->groups + GROUPS_MAX && g->threads;
	     g++)
		for (int i = 0; i < g->threads; i++) {
			struct worker *w = &workers[worker_cnt];

			if (worker_cnt == THREADS_MAX)
				die("too many threads");
			w->index = worker_cnt++;
			w->device = g->device + i % g->devices;
			w->program = g->program;
			prepare(w);
		}
	pthread_barrier_init(&ready, NULL, (unsigned int)worker_cnt + 1);
	for (int i = 0; i < worker_cnt; i++)
		pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
	begin_ns = now_ns() + 500000;
	pthread_barrier_wait(&ready);
	for (int i = 0; i < worker_cnt; i++)
		pthread_join(workers[i].thread, NULL);
}

/* ---- random scenes ---- */
static uint64_t seed;

static unsigned int pick(unsigned int below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned int)(seed >> 33) % below;
}

struct text {
	char at[4096];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->at + t->used, sizeof(t->at) - t->used, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(t->at) - t->used)
		die("a random text that does not end");
	t->used += (size_t)n;
}

/* Locks are taken in the order of the lines, everywhere the same, so that nothing deadlocks. */
static void random_script(struct text *t)
{
	static const char *const modes[] = {"split", "split", "split", "device", "process"};
	static const char *const calls[] = {"cuEventRecord", "cuEventCreate", "cuStreamWaitEvent",
					    "cuMemcpyHtoDAsync_v2", "cuLaunchKernel"};
	static const char *const locks[] = {"mutex:a", "mutex:b", "spin:c"};
	static const char *const busy[] = {"cuMemAlloc_v2", "cuMemHostAlloc",
					   "cuMemHostRegister_v2", "cuStreamCreate",
					   "cuGraphInstantiate"};

	add(t, "gpus 4\nwork busy\nlock %s\n", modes[pick(5)]);
	if (pick(4) == 0)
		add(t, "queue %u\n", 70 + pick(24));
	for (unsigned int i = 0; i < 5; i++)
		if (pick(3) == 0)
			add(t, "%s %s %u\n", pick(2) ? "cost" : "ioctl", busy[i], 50 + pick(1500));
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int j = 0; j < 4; j++)
			if (pick(6) == 0)
				add(t, "hold %s %s %u%s\n", calls[j], locks[i], 20 + pick(800),
				    i < 2 && pick(4) == 0 ? " whole" : "");
	if (pick(3) == 0)
		add(t, "hold cuEventRecord read:r %u\nhold cuEventCreate write:r %u\n",
		    100 + pick(1500), 50 + pick(1500));
	if (pick(3) == 0)
		add(t, "lazy lazy%u_\n", pick(8));
}

static void random_program(struct text *t)
{
	static const char *const parts[] = {
		"launch:%u sync",
		"h2d:%u",
		"launch:%u d2h:64",
		"d2h:%u",
		"ph2d:%u launch:200 pd2h:64 sync",
		"malloc:%u free",
		"mallochost:%u freehost",
		"register:%u unregister",
		"managed:%u free",
		"stream",
		"graph:8",
		"event",
		"newevent",
		"event follow",
		"follow",
		"event waitevent",
		"pool:%u sync",
		"library",
		"module",
		"sd2h:%u",
		"launch:%u launch:300 launch:300 launch:300",
		"lazy:%u",
	};
	unsigned int phases = 2 + pick(3);

	add(t, "at:%u", pick(4000));
	for (unsigned int i = 0; i < phases; i++) {
		add(t, " *%u(", 4 + pick(16));
		for (unsigned int j = 1 + pick(3); j; j--) {
			const char *part = parts[pick(sizeof(parts) / sizeof(parts[0]))];
			const char *hole = strchr(part, '%');

			if (hole)
				add(t, " %.*s%u%s", (int)(hole - part), part, 10 + pick(1000),
				    hole + 2);
			else
				add(t, " %s", part);
		}
		if (pick(2))
			add(t, " sleep:%u", pick(1500));
		add(t, " )");
	}
	if (pick(8) == 0)
		add(t, " limit:%u", 2048 + pick(4096));
}

static struct scene random_scene(uint64_t from)
{
	static struct text script, programs[GROUPS_MAX];
	struct scene scene = {"random", script.at, {{0}}};
	int threads = 0, wanted, devices;

	seed = from * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < 8; i++)
		pick(2);
	random_script(&script);
	wanted = 2 + (int)pick(7);
	devices = 1 + (int)pick(4);
	for (int i = 0; i < GROUPS_MAX && threads < wanted; i++) {
		struct group *g = &scene.groups[i];

		random_program(&programs[i]);
		g->threads = 1 + (int)pick(3);
		if (g->threads > wanted - threads)
			g->threads = wanted - threads;
		g->device = (int)pick((unsigned int)devices);
		g->devices = devices - g->device;
		g->program = programs[i].at;
		threads += g->threads;
	}
	return scene;
}

static void show(const struct scene *scene, uint64_t from)
{
	printf("random %llu\n", (unsigned long long)from);
	for (const char *line = scene->script; *line;) {
		size_t len = strcspn(line, "\n");

		printf("  script   %.*s\n", (int)len, line);
		line += len + (line[len] == '\n');
	}
	for (const struct group *g = scene->groups; g < scene->groups + GROUPS_MAX && g->threads;
	     g++)
		printf("  threads  %d from device %d on %d: %s\n", g->threads, g->device,
		       g->devices, g->program);
}

int main(int argc, char **argv)
{
	bool script = argc > 1 && !strcmp(argv[1], "--script");
	struct scene scene = {NULL, NULL, {{0}}};
	uint64_t from;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
			puts(scenes[i].name);
		return 0;
	}
	argc -= script;
	argv += script;
	if (argc < 2)
		die("which? --list lists the scenes");
	from = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	if (!strcmp(argv[1], "random"))
		scene = random_scene(from);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		if (!strcmp(scenes[i].name, argv[1]))
			scene = scenes[i];
	if (!scene.name)
		die("no scene %s", argv[1]);
	if (script) {
		fputs(scene.script, stdout);
		return 0;
	}
	if (!strcmp(scene.name, "random"))
		show(&scene, from);
	play(&scene);
	printf("%s: %d threads, done\n", scene.name, worker_cnt);
	return 0;
}
