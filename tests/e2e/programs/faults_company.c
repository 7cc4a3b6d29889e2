/*
 * tests/e2e/programs/faults_company.c: threads, GPUs, streams and processes that are in each other's way. Habits of faults
 * (faults.c), for test_findings.sh.
 */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include "faults.h"

/* ---- threads: in calls whose locks the script makes ---- */
static void cross_device_stall(struct worker *w)
{
	for (unsigned int i = rounds(w, 30); i; i--) {
		work(w, 300);
		if (!w->clean)
			OK(cudaStreamWaitEvent(w->stream, w->event, 0));
		finish(w);
	}
}

static void same_device_stall(struct worker *w)
{
	for (unsigned int i = rounds(w, 30); i; i--) {
		work(w, 300);
		if (!w->clean)
			OK(cudaEventRecord(w->event, w->stream));
		finish(w);
	}
}

/* Three read, some of them at any time; who wants to write waits until they are done. */
static void lock_starvation(struct worker *w)
{
	bool writer = w->role == 3;

	usleep((useconds_t)w->role * 1000);
	for (unsigned int i = rounds(w, writer ? 5 : 30); i; i--) {
		if (w->clean)
			work(w, 3000);
		else if (writer)
			OK(cudaMemcpyAsync(w->gpu, (char *)w->gpu + BUFFER_BYTES / 2,
					   size(w, 256 * KB), D2D, w->stream));
		else
			OK(cudaMemsetAsync(w->gpu, 0, size(w, 256 * KB), w->stream));
		if (w->clean)
			finish(w);
	}
	if (!w->clean)
		finish(w);
}

/* ---- GPUs, streams ---- */

/* With access a copy takes no more of the host than one within the GPU. */
static void prepare_peer(struct worker *w)
{
	*w->calm_ns = calm_copy_ns(w, w->gpu, (char *)w->gpu + BUFFER_BYTES / 2, 64 * KB, D2D);
	OK(cudaSetDevice(w->device + 1));
	OK(cudaMalloc(&w->peer_gpu, BUFFER_BYTES));
	OK(cudaSetDevice(w->device));
	if (w->clean)
		OK(cudaDeviceEnablePeerAccess(w->device + 1, 0));
}

static void staged_peer_copy(struct worker *w)
{
	for (unsigned int i = rounds(w, 20); i; i--) {
		OK(cudaMemcpyPeerAsync(w->peer_gpu, w->device + 1, w->gpu, w->device,
				       size(w, 4096 * KB), w->stream));
		w->cost_ns -= *w->calm_ns;
		work(w, 1000);
		finish(w);
	}
}

static void legacy_stream(struct worker *w)
{
	for (unsigned int i = rounds(w, 45); i; i--) {
		for (int j = 0; j < 2; j++) {
			launch(&stub_delay, 200, w->clean ? w->stream : w->blocking[0]);
			launch(&stub_delay, 200, w->clean ? w->stream : NULL);
			launch(&stub_delay, 200, w->clean ? w->stream : w->blocking[1]);
		}
		OK(cudaDeviceSynchronize());
	}
}

/* ---- processes ---- */
static void time_slicing(struct worker *w)
{
	for (unsigned int i = rounds(w, 20); i; i--) {
		work(w, 5000);
		finish(w);
	}
}

/* With CUDA_LAUNCH_BLOCKING=1; in the twin with 0. */
static void launch_blocking(struct worker *w)
{
	for (unsigned int i = rounds(w, 10); i; i--) {
		work(w, 4000);
		finish(w);
	}
}

/* A client of MPS that has a quarter of the GPU; in the twin all of it. */
static void mps_share(struct worker *w)
{
	for (unsigned int i = rounds(w, 6); i; i--) {
		work(w, 5000);
		finish(w);
	}
}

/* Another client of MPS was first, and is another user's; in the twin the same user's. */
static void mps_users(struct worker *w)
{
	for (unsigned int i = rounds(w, 4); i; i--) {
		work(w, 5000);
		finish(w);
	}
}

/* Threads that share one processor, with calls that need it: large copies, which the host stages. */
static void oversubscribed_host(struct worker *w)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (!w->clean)
		pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	for (unsigned int i = rounds(w, 12); i; i--) {
		work(w, 500);
		OK(cudaMemcpy(w->gpu, w->pageable, w->clean ? 256 * KB : BUFFER_BYTES, H2D));
		finish(w);
	}
}

/* clang-format off */
const struct habit company_habits[] = {
	{"cross-device-stall", "cross-device-stall", "lock", "cudaStreamWaitEvent", "lock-starvation",
		"hold cuStreamWaitEvent mutex:cross 1000\n", 2, 2, NULL, cross_device_stall},
	{"same-device-stall", "same-device-stall", "lock", "cudaEventRecord", "lock-starvation",
		"hold cuEventRecord mutex:same 1000\n", 2, 1, NULL, same_device_stall},
	{"lock-starvation", "lock-starvation", "-", "cudaMemcpyAsync|cudaMemsetAsync", "same-device-stall",
		"hold cuMemsetD8Async read:starved 3000\nhold cuMemcpyDtoDAsync_v2 write:starved 50\n", 4, 1, NULL, lock_starvation},
	{"staged-peer-copy", "staged-peer-copy", "time", "cudaMemcpyPeerAsync", "", "hold cuMemcpyPeerAsync read:peers 300\n", 1, 1, prepare_peer, staged_peer_copy},
	{"legacy-stream", "legacy-stream", "-", "cudaLaunchKernel", "", "", 1, 1, NULL, legacy_stream},
	{"oversubscribed-host", "oversubscribed-host", "-", "-", "", "", 4, 1, NULL, oversubscribed_host},
	{"launch-blocking", "launch-blocking", "gpu", "cudaLaunchKernel", "", "", 1, 1, NULL, launch_blocking},
	{"mps-share", "mps-share", "-", "-", "", "", 1, 1, NULL, mps_share},
	{"mps-users", "mps-users", "mps", "cuInit", "", "", 1, 1, NULL, mps_users},
	{"time-slicing", "time-slicing", "-", "-", "", "", 1, 1, NULL, time_slicing},
	{.name = NULL},
};
/* clang-format on */
