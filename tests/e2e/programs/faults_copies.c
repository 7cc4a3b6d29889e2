/*
 * tests/e2e/programs/faults_copies.c: copies of pageable memory, each another way that CUDA has to copy. Habits of
 * faults (faults.c), for test_findings.sh.
 */
#include "faults.h"

static void pageable_d2h(struct worker *w)
{
	for (unsigned int i = rounds(w, 10); i; i--) {
		work(w, 4000);
		OK(cudaMemcpyAsync(w->clean ? w->pinned : w->pageable, w->gpu, size(w, 256 * KB),
				   D2H, w->stream));
		finish(w);
	}
}

static void pageable_d2h_2d(struct worker *w)
{
	for (unsigned int i = rounds(w, 10); i; i--) {
		work(w, 4000);
		OK(cudaMemcpy2DAsync(w->clean ? w->pinned : w->pageable, 4096, w->gpu, 4096, 2048,
				     size(w, 256 * KB) / 4096, D2H, w->stream));
		finish(w);
	}
}

static void pageable_d2h_driver(struct worker *w)
{
	for (unsigned int i = rounds(w, 10); i; i--) {
		work(w, 4000);
		OK(cuMemcpyDtoHAsync_v2(w->clean ? w->pinned : w->pageable,
					(uint64_t)(uintptr_t)w->gpu, size(w, 256 * KB), w->stream));
		finish(w);
	}
}

static void pageable_d2h_3d(struct worker *w)
{
	struct copy_box box = {.from = w->gpu,
			       .from_pitch = 4096,
			       .from_height = 4,
			       .to = w->clean ? w->pinned : w->pageable,
			       .to_pitch = 4096,
			       .to_height = 4,
			       .width = 2048,
			       .height = 4,
			       .depth = size(w, 256 * KB) / 16384,
			       .kind = D2H};

	for (unsigned int i = rounds(w, 10); i; i--) {
		work(w, 4000);
		OK(cudaMemcpy3DAsync(&box, w->stream));
		finish(w);
	}
}

/* More than may be staged: it waits for the kernels. */
static void pageable_h2d(struct worker *w)
{
	for (unsigned int i = rounds(w, 8); i; i--) {
		work(w, 5000);
		OK(cudaMemcpyAsync(w->gpu, w->clean ? w->pinned : w->pageable, size(w, 4096 * KB),
				   H2D, w->stream));
		finish(w);
	}
}

static void pageable_h2d_driver(struct worker *w)
{
	for (unsigned int i = rounds(w, 8); i; i--) {
		work(w, 5000);
		OK(cuMemcpyHtoDAsync_v2((uint64_t)(uintptr_t)w->gpu,
					w->clean ? w->pinned : w->pageable, size(w, 4096 * KB),
					w->stream));
		finish(w);
	}
}

static void prepare_symbol(struct worker *w)
{
	OK(cudaMemcpyToSymbolAsync(symbol, w->pinned, 64, 0, H2D, w->stream));
	OK(cudaStreamSynchronize(w->stream));
}

static void pageable_symbol(struct worker *w)
{
	for (unsigned int i = rounds(w, 8); i; i--) {
		work(w, 5000);
		OK(cudaMemcpyToSymbolAsync(symbol, w->clean ? w->pinned : w->pageable,
					   size(w, 4096 * KB), 0, H2D, w->stream));
		finish(w);
	}
}

static void prepare_array(struct worker *w)
{
	make_array(&w->places[0], BUFFER_BYTES);
	OK(cudaMemcpy2DToArrayAsync(w->places[0], 0, 0, w->pinned, ARRAY_PITCH, 64, 1, H2D,
				    w->stream));
	OK(cudaStreamSynchronize(w->stream));
}

static void pageable_array(struct worker *w)
{
	for (unsigned int i = rounds(w, 8); i; i--) {
		work(w, 5000);
		OK(cudaMemcpy2DToArrayAsync(w->places[0], 0, 0, w->clean ? w->pinned : w->pageable,
					    ARRAY_PITCH, ARRAY_PITCH,
					    size(w, 4096 * KB) / ARRAY_PITCH, H2D, w->stream));
		finish(w);
	}
}

static void pageable_batch(struct worker *w)
{
	char *host = w->clean ? w->pinned : w->pageable, *gpu = w->gpu;
	size_t bytes = size(w, 64 * KB), all[] = {bytes, bytes, bytes};

	for (unsigned int i = rounds(w, 10); i; i--) {
		const void *from[] = {host, host + bytes, host + 2 * bytes};
		void *to[] = {gpu, gpu + bytes, gpu + 2 * bytes};

		work(w, 4000);
		OK(cudaMemcpyBatchAsync(to, from, all, 3, NULL, NULL, 0, w->stream));
		finish(w);
	}
}

#define COPIES "pageable-copy"

/* clang-format off */
const struct habit copy_habits[] = {
	{"pageable-d2h", COPIES, "time", "cudaMemcpyAsync", "", "", 1, 1, NULL, pageable_d2h},
	{"pageable-d2h-2d", COPIES, "time", "cudaMemcpy2DAsync", "", "", 1, 1, NULL, pageable_d2h_2d},
	{"pageable-d2h-driver", COPIES, "time", "cuMemcpyDtoHAsync_v2", "", "", 1, 1, NULL, pageable_d2h_driver},
	{"pageable-h2d", COPIES, "time", "cudaMemcpyAsync", "", "", 1, 1, NULL, pageable_h2d},
	{"pageable-d2h-3d", COPIES, "time", "cudaMemcpy3DAsync", "", "", 1, 1, NULL, pageable_d2h_3d},
	{"pageable-h2d-driver", COPIES, "time", "cuMemcpyHtoDAsync_v2", "", "", 1, 1, NULL, pageable_h2d_driver},
	{"pageable-symbol", COPIES, "time", "cudaMemcpyToSymbolAsync", "", "", 1, 1, prepare_symbol, pageable_symbol},
	{"pageable-array", COPIES, "time", "cudaMemcpy2DToArrayAsync", "", "", 1, 1, prepare_array, pageable_array},
	{"pageable-batch", COPIES, "time", "cudaMemcpyBatchAsync", "", "", 1, 1, NULL, pageable_batch},
	{.name = NULL},
};
/* clang-format on */
