/*
 * tests/e2e/programs/faults_syncs.c: waits for the GPU that are made again, too often, too early, or for one GPU after the
 * other. Habits of faults (faults.c), for test_findings.sh.
 */
#include <unistd.h>
#include "faults.h"

static void prepare_second_device(struct worker *w)
{
	OK(cudaSetDevice(w->device + 1));
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(w->device));
}

static void redundant_device(struct worker *w)
{
	for (unsigned int i = rounds(w, 40); i; i--) {
		work(w, 1000);
		finish(w);
		if (w->clean)
			continue;
		OK(cudaSetDevice(w->device + 1));
		for (int j = 0; j < 5; j++)
			OK(cudaDeviceSynchronize());
		OK(cudaSetDevice(w->device));
	}
}

static void redundant_twice(struct worker *w)
{
	for (unsigned int i = rounds(w, 40); i; i--) {
		uint64_t begin_ns;

		work(w, 1000);
		finish(w);
		begin_ns = now_ns();
		for (int j = 0; j < 5 && !w->clean; j++)
			OK(cudaStreamSynchronize(w->stream));
		reckon(w, begin_ns);
	}
}

static void prepare_two_devices(struct worker *w)
{
	OK(cudaSetDevice(w->device + 1));
	OK(cudaStreamCreateWithFlags(&w->places[0], 1));
	launch(&stub_delay, 1, w->places[0]);
	OK(cudaStreamSynchronize(w->places[0]));
	OK(cudaSetDevice(w->device));
}

/* Two GPUs with the same work; in the clean twin at once, which takes half the time. */
static void serial_gpus(struct worker *w)
{
	for (unsigned int i = rounds(w, 16); i; i--) {
		w->cost_ns += 4 * 500 * 1000;
		for (int j = 0; j < 4; j++)
			launch(&stub_delay, 500, w->stream);
		if (!w->clean)
			OK(cudaStreamSynchronize(w->stream));
		OK(cudaSetDevice(w->device + 1));
		for (int j = 0; j < 4; j++)
			launch(&stub_delay, 500, w->places[0]);
		OK(cudaStreamSynchronize(w->places[0]));
		OK(cudaSetDevice(w->device));
		if (w->clean)
			OK(cudaStreamSynchronize(w->stream));
	}
}

/* From those that find nothing to wait for it is known what the call itself takes. */
static void prepare_syncs(struct worker *w)
{
	for (int i = 0; i < 8; i++)
		OK(cudaStreamSynchronize(w->stream));
}

static void sync_every_launch(struct worker *w)
{
	for (unsigned int i = rounds(w, 40); i; i--) {
		for (int j = 0; j < 6; j++) {
			launch(&stub_delay, 150, w->stream);
			if (!w->clean)
				OK(cudaStreamSynchronize(w->stream));
		}
		if (w->clean)
			OK(cudaStreamSynchronize(w->stream));
	}
}

/* A few kernels that take so many microseconds. */
INLINE void kernels(const struct worker *w, unsigned int us)
{
	for (int i = 0; i < 4; i++)
		launch(&stub_delay, (int)(us * w->length_pct / 400), w->stream);
}

/* The host's own work, without CUDA. */
INLINE void host_work(const struct worker *w, unsigned int us)
{
	usleep(us * w->length_pct / 100);
}

/* It waits for the GPU before its own work, and not behind it: the longer of the two is the host's ... */
static void early_sync(struct worker *w)
{
	for (unsigned int i = rounds(w, 30); i; i--) {
		OK(cudaMemcpyAsync(w->gpu, w->pinned, size(w, 64 * KB), H2D, w->stream));
		kernels(w, 1000);
		if (!w->clean)
			finish(w);
		host_work(w, 2000);
		if (w->clean)
			finish(w);
	}
}

/* ... or the GPU's; and results are fetched when all is done. */
static void early_sync_device(struct worker *w)
{
	for (unsigned int i = rounds(w, 30); i; i--) {
		kernels(w, 2500);
		if (!w->clean)
			OK(cudaDeviceSynchronize());
		host_work(w, 1000);
		OK(cudaMemcpyAsync(w->pinned_to, w->gpu, size(w, 64 * KB), D2H, w->stream));
		finish(w);
	}
}

/* With an event, which the clean twin waits for one round later: the GPU then has the next one to do. */
static void early_sync_event(struct worker *w)
{
	unsigned int cnt = rounds(w, 30);

	for (unsigned int i = 0; i < cnt; i++) {
		if (!w->clean || !i)
			kernels(w, 1500);
		OK(cudaEventRecord(w->event, w->stream));
		if (w->clean)
			kernels(w, 1500);
		OK(cudaEventSynchronize(w->event));
		host_work(w, 1000);
	}
	finish(w);
}

/* clang-format off */
const struct habit sync_habits[] = {
	{"redundant-device", "redundant-sync", "time", "cudaDeviceSynchronize", "", "hold cuCtxSynchronize read:idle1 45\n", 1, 1,
		prepare_second_device, redundant_device},
	{"redundant-twice", "redundant-sync", "own", "cudaStreamSynchronize", "", "hold cuStreamSynchronize read:idle2 45\n", 1, 1, NULL, redundant_twice},
	{"serial-gpus", "serial-gpus", "own", "cudaStreamSynchronize", "", "", 1, 1, prepare_two_devices, serial_gpus},
	{"sync-every-launch", "sync-every-launch", "work", "cudaStreamSynchronize|cudaLaunchKernel", "", "hold cuLaunchKernel read:launches 55\n", 1, 1, prepare_syncs, sync_every_launch},
	{"early-sync", "early-sync", "turns", "cudaStreamSynchronize", "", "", 1, 1, NULL, early_sync},
	{"early-sync-device", "early-sync", "turns", "cudaDeviceSynchronize", "", "", 1, 1, NULL, early_sync_device},
	{"early-sync-event", "early-sync", "turns", "cudaEventSynchronize", "", "", 1, 1, NULL, early_sync_event},
	{.name = NULL},
};
/* clang-format on */
