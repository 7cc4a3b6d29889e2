/*
 * tests/sim/driver_launch.c: launching kernels and asking how they fit, on the calling thread. A kernel
 * lasts as long as the script says; if the program exports spysim_kernel_<its mangled name>, that
 * function runs when the kernel ends, as its twin on the host, with copies of its arguments.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct kernel_work {
	struct sim_work work;
	void (*twin)(void **args, unsigned grid[3], unsigned block[3]);
	unsigned grid[3], block[3];
	void *args[33];
	char bytes[];
};

static void run_twin(struct sim_work *work)
{
	struct kernel_work *k = (struct kernel_work *)work;

	k->twin(k->args, k->grid, k->block);
}

/* How long a kernel called "delay" asks to last: its first argument, in microseconds. A name that
 * says nothing about types is taken to have an int there. */
static uint64_t delay_ns(const struct sim_kernel *kernel, void **params)
{
	unsigned size = kernel->param_cnt > 0 ? kernel->param_size[0] : 4;
	uint64_t us = 0;

	if (kernel->param_cnt == 0 || !params || !params[0])
		return kernel->duration_ns;
	memcpy(&us, params[0], size < 8 ? size : 8);
	return us * 1000;
}

static bool scripted_as_delay(const struct sim_kernel *kernel)
{
	return kernel->delay && kernel->duration_ns == sim_script.kernel_ns;
}

struct sim_op *sim_kernel_op(struct sim_kernel *kernel, const unsigned grid[3],
			     const unsigned block[3], void **params, void **extra)
{
	uint64_t ns = scripted_as_delay(kernel) ? delay_ns(kernel, params) : kernel->duration_ns;
	struct sim_op *op = sim_op_new(
		OP_KERNEL, sim_mps_stretch((uint64_t)((double)ns * sim_script.gpu_scale)));
	struct kernel_work *k;
	size_t at = 0;

	op->what.name = kernel->name;
	memcpy(op->what.grid, grid, sizeof(op->what.grid));
	memcpy(op->what.block, block, sizeof(op->what.block));
	if (!kernel->twin)
		return op;
	for (int i = 0; i < kernel->param_cnt; i++)
		at += (size_t)(kernel->param_size[i] + 15) / 16 * 16;
	k = sim_work_new(sizeof(*k) + at + 16, run_twin);
	k->twin = kernel->twin;
	memcpy(k->grid, grid, sizeof(k->grid));
	memcpy(k->block, block, sizeof(k->block));
	at = 0;
	for (int i = 0; params && i < kernel->param_cnt; i++) {
		k->args[i] = k->bytes + at;
		memcpy(k->args[i], params[i], kernel->param_size[i]);
		at += (size_t)(kernel->param_size[i] + 15) / 16 * 16;
	}
	op->work = &k->work;
	return op;
}

/* The first launch loads the kernel; that of a library's first one on the device, and one that needs more
 * local memory (script: lazy), wait for the device with the context locked. */
static void load(struct sim_kernel *kernel, int dev)
{
	bool first = !atomic_exchange(&kernel->loaded, true);
	bool waits = sim_module_load(kernel->module, dev) || (first && kernel->lazy_wait);
	unsigned held;

	if (!first && !waits)
		return;
	held = sim_lock(waits ? HOLD_CTX_WRITE : HOLD_PROCESS, dev);
	if (waits)
		sim_wait_device(dev, WHY_HIDDEN);
	sim_host_work(FN_cuFuncLoad, 30000);
	sim_unlock(held, dev);
}

static int launch(struct sim_kernel *kernel, const unsigned grid[3], const unsigned block[3],
		  unsigned shared, void *handle, bool per_thread, void **params, void **extra)
{
	struct sim_meeting *meeting = sim_meeting_next();
	struct sim_stream *stream;
	struct sim_op *op, *done = NULL;
	struct sim_node *node;
	unsigned held;
	int rc, dev;

	if (!sim_kernel_check(kernel))
		return SIM_INVALID_HANDLE;
	stream = sim_stream_of(handle, per_thread, &rc);
	if (rc)
		return rc;
	if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2] ||
	    (uint64_t)block[0] * block[1] * block[2] > 1024 || grid[1] > 65535 || grid[2] > 65535 ||
	    shared > 232448)
		return SIM_INVALID_VALUE;
	dev = stream->ctx->dev;
	sim_note_stream(handle);
	if (!atomic_load_explicit(&kernel->loaded, memory_order_relaxed) ||
	    !sim_module_loaded(kernel->module, dev))
		load(kernel, dev);
	if (sim_capturing(stream)) {
		rc = sim_capture(stream, sim_kernel_op(kernel, grid, block, params, extra), &node);
		if (!rc)
			sim_node_describe(node, kernel, grid, block, shared, params);
		return rc;
	}
	rc = sim_capture_legacy(stream);
	if (rc)
		return rc;
	sim_wait_room(stream, WHY_QUEUE);
	held = sim_lock(HOLD_CTX_READ, dev);
	op = sim_kernel_op(kernel, grid, block, params, extra);
	op->what.shared = shared;
	if (meeting)
		sim_meeting_launch(meeting, stream, op);
	else
		sim_submit(stream, op, sim_script.blocking_launch ? &done : NULL);
	sim_unlock(held, dev);
	if (done) {
		sim_wait_op(done, WHY_INTENDED);
		sim_op_put(done);
	}
	return SIM_OK;
}

#define LAUNCH_PARAMS \
	struct sim_kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
		unsigned bz
#define GRID ((const unsigned[3]){gx, gy, gz})
#define BLOCK ((const unsigned[3]){bx, by, bz})

EXPORT(cuLaunchKernel, (LAUNCH_PARAMS, unsigned shared, void *h, void **params, void **extra),
       launch(k, GRID, BLOCK, shared, h, false, params, extra))
EXPORT(cuLaunchKernel_ptsz, (LAUNCH_PARAMS, unsigned shared, void *h, void **params, void **extra),
       launch(k, GRID, BLOCK, shared, h, true, params, extra))
EXPORT(cuLaunchCooperativeKernel, (LAUNCH_PARAMS, unsigned shared, void *h, void **params),
       launch(k, GRID, BLOCK, shared, h, false, params, NULL))
EXPORT(cuLaunchCooperativeKernel_ptsz, (LAUNCH_PARAMS, unsigned shared, void *h, void **params),
       launch(k, GRID, BLOCK, shared, h, true, params, NULL))
EXPORT(cuLaunchKernelEx,
       (const struct sim_launch_config *c, struct sim_kernel *k, void **params, void **extra),
       launch(k, c->grid, c->block, c->shared, c->stream, false, params, extra))
EXPORT(cuLaunchKernelEx_ptsz,
       (const struct sim_launch_config *c, struct sim_kernel *k, void **params, void **extra),
       launch(k, c->grid, c->block, c->shared, c->stream, true, params, extra))

/* ---- occupancy: of a multiprocessor with 2048 threads, 32 blocks and 228 KiB of shared memory ---- */
static int occupancy(int *out, struct sim_kernel *kernel, int threads, size_t shared)
{
	int blocks;

	if (!out || !sim_kernel_check(kernel) || threads < 1)
		return SIM_INVALID_VALUE;
	blocks = threads > 1024 ? 0 : 2048 / ((threads + 31) / 32 * 32);
	if (shared && (size_t)blocks > 233472 / (shared + 1024))
		blocks = (int)(233472 / (shared + 1024));
	*out = blocks > 32 ? 32 : blocks;
	return SIM_OK;
}
EXPORT(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *out, void *k, int threads, size_t shared),
       occupancy(out, k, threads, shared))
EXPORT(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *out, void *k, int threads, size_t shared, unsigned flags),
       occupancy(out, k, threads, shared))

static int potential(int *grid, int *block, void *k, size_t shared, int limit)
{
	int per_sm, rc;

	*block = limit > 0 && limit < 1024 ? limit : 1024;
	rc = occupancy(&per_sm, k, *block, shared);
	*grid = 132 * (rc ? 1 : per_sm);
	return rc;
}
EXPORT(cuOccupancyMaxPotentialBlockSize,
       (int *grid, int *block, void *k, size_t (*shared_of)(int), size_t shared, int limit),
       potential(grid, block, k, shared, limit))
EXPORT(cuOccupancyMaxPotentialBlockSizeWithFlags,
       (int *grid, int *block, void *k, size_t (*shared_of)(int), size_t shared, int limit,
	unsigned flags),
       potential(grid, block, k, shared, limit))
EXPORT(cuOccupancyAvailableDynamicSMemPerBlock, (size_t * out, void *k, int blocks, int threads),
       sim_kernel_check(k) && blocks > 0 ? (*out = 233472 / (size_t)blocks - 1024, SIM_OK)
					 : SIM_INVALID_VALUE)
EXPORT(cuOccupancyMaxActiveClusters, (int *out, void *k, const void *config),
       sim_kernel_check(k) ? (*out = 16, SIM_OK) : SIM_INVALID_HANDLE)
EXPORT(cuOccupancyMaxPotentialClusterSize, (int *out, void *k, const void *config),
       sim_kernel_check(k) ? (*out = 8, SIM_OK) : SIM_INVALID_HANDLE)
