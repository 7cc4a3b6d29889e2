/*
 * tests/e2e/programs/faults_launches.c: launches that load code or find no room, copies that would batch, a value that is read
 * back each time, calls that fail. Habits of faults (faults.c), for test_findings.sh.
 */
#include "faults.h"

/* ---- launches and copies ---- */
static void prepare_lazy(struct worker *w)
{
	for (int i = 0; i < LAZY_KERNELS && w->clean; i++)
		launch(&stub_lazy[i], 10, w->stream);
	OK(cudaStreamSynchronize(w->stream));
}

static void lazy_loading(struct worker *w)
{
	for (int i = 0; i < LAZY_KERNELS; i++) {
		work(w, 4000);
		launch(&stub_lazy[i], 100, w->stream);
		finish(w);
	}
}

static void queue_full(struct worker *w)
{
	unsigned int cnt = rounds(w, 240);

	for (unsigned int i = 1; i <= cnt; i++) {
		launch(&stub_delay, 400, w->stream);
		if (w->clean && i % 40 == 0)
			finish(w);
	}
	finish(w);
}

static void prepare_small_copies(struct worker *w)
{
	*w->calm_ns = calm_copy_ns(w, w->gpu, w->pinned, 12 * size(w, 2048), H2D);
}

static void small_copies(struct worker *w)
{
	size_t bytes = size(w, 2048);

	for (unsigned int i = rounds(w, 14); i; i--) {
		uint64_t begin_ns = now_ns();

		for (size_t j = 0; j < 12 && !w->clean; j++)
			OK(cudaMemcpyAsync((char *)w->gpu + j * bytes,
					   (char *)w->pinned + j * bytes, bytes, H2D, w->stream));
		if (w->clean)
			OK(cudaMemcpyAsync(w->gpu, w->pinned, 12 * bytes, H2D, w->stream));
		reckon(w, begin_ns);
		work(w, 1000);
		finish(w);
	}
}

/* A flag that the host looks at after every piece of work. */
static void read_back(struct worker *w)
{
	for (unsigned int i = rounds(w, 30); i; i--) {
		work(w, 2000);
		if (!w->clean)
			OK(cudaMemcpyAsync(w->pinned_to, w->gpu, 8, D2H, w->stream));
		finish(w);
	}
}

/* ---- errors ---- */
static void ignored_error(struct worker *w)
{
	for (unsigned int i = rounds(w, 20); i; i--) {
		int result = cudaMemsetAsync(w->clean ? w->gpu : NULL, 0, 16 * KB, w->stream);

		if (w->clean)
			ok(result, "cudaMemsetAsync");
		work(w, 1000);
		finish(w);
	}
}

static void capture_break(struct worker *w)
{
	void *graph, *exec;

	for (unsigned int i = rounds(w, 4); i; i--) {
		OK(cudaStreamBeginCapture(w->stream, 2));
		launch(&stub_delay, 200, w->stream);
		if (!w->clean && !cudaStreamSynchronize(w->stream))
			die("a stream that is captured was waited for");
		if (cudaStreamEndCapture(w->stream, &graph)) {
			cudaGetLastError();
		} else {
			OK(cudaGraphInstantiate(&exec, graph, 0));
			OK(cudaGraphLaunch(exec, w->stream));
			OK(cudaGraphDestroy(graph));
		}
		work(w, 4000);
		finish(w);
	}
}

/* clang-format off */
const struct habit launch_habits[] = {
	{"lazy-loading", "lazy-loading", "gpu", "cudaLaunchKernel", "", "lazy lazy\n", 1, 1, prepare_lazy, lazy_loading},
	{"queue-full", "queue-full", "gpu", "cudaLaunchKernel", "", "queue 80\n", 1, 1, NULL, queue_full},
	{"small-copies", "small-copies", "own", "cudaMemcpyAsync", "", "hold cuMemcpyHtoDAsync_v2 read:copies 60\n", 1, 1, prepare_small_copies, small_copies},
	{"read-back", "read-back", "gpu", "cudaStreamSynchronize", "", "", 1, 1, NULL, read_back},
	{"ignored-error", "ignored-error", "-", "cudaMemsetAsync", "", "", 1, 1, NULL, ignored_error},
	{"capture-break", "capture-break", "-", "cudaStreamSynchronize", "", "", 1, 1, NULL, capture_break},
	{.name = NULL},
};
/* clang-format on */
