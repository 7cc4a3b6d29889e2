/*
 * tests/sim/runtime_launch.c: launches in all their spellings, what a kernel is like and how many of its
 * blocks fit. On the calling thread.
 */
#include "runtime.h"

#include <string.h>

/* ---- what <<<>>> pushes and the stub pops, a small stack of the thread ---- */
static __thread struct {
	struct sim_dim3 grid, block;
	size_t shared;
	void *stream;
} pushed[4];
static __thread unsigned pushed_cnt;

SIM_PUBLIC unsigned __cudaPushCallConfiguration(struct sim_dim3 grid, struct sim_dim3 block,
						size_t shared, void *stream);
SIM_PUBLIC unsigned __cudaPushCallConfiguration(struct sim_dim3 grid, struct sim_dim3 block,
						size_t shared, void *stream)
{
	unsigned i = pushed_cnt++ & 3;

	pushed[i].grid = grid;
	pushed[i].block = block;
	pushed[i].shared = shared;
	pushed[i].stream = stream;
	return 0;
}

SIM_PUBLIC int __cudaPopCallConfiguration(struct sim_dim3 *grid, struct sim_dim3 *block,
					  size_t *shared, void *stream);
SIM_PUBLIC int __cudaPopCallConfiguration(struct sim_dim3 *grid, struct sim_dim3 *block,
					  size_t *shared, void *stream)
{
	unsigned i;

	if (!pushed_cnt)
		return rt_fail(SIM_INVALID_CONFIGURATION);
	i = --pushed_cnt & 3;
	*grid = pushed[i].grid;
	*block = pushed[i].block;
	*shared = pushed[i].shared;
	*(void **)stream = pushed[i].stream;
	return SIM_OK;
}

static bool fits(struct sim_dim3 g, struct sim_dim3 b)
{
	return g.x && g.y && g.z && b.x && b.y && b.z && (uint64_t)b.x * b.y * b.z <= 1024 &&
	       g.y <= 65535 && g.z <= 65535;
}

static int launch_kernel(const struct rt_driver *drv, void *kernel, struct sim_dim3 g,
			 struct sim_dim3 b, void **args, size_t shared, void *stream,
			 bool cooperative)
{
	if (!fits(g, b))
		return SIM_INVALID_CONFIGURATION;
	if (cooperative)
		return drv->cuLaunchCooperativeKernel(kernel, g.x, g.y, g.z, b.x, b.y, b.z,
						      (unsigned)shared, stream, args);
	return drv->cuLaunchKernel(kernel, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared, stream,
				   args, NULL);
}

static int launch(const struct rt_driver *drv, const void *func, struct sim_dim3 g,
		  struct sim_dim3 b, void **args, size_t shared, void *stream, bool cooperative)
{
	void *kernel;
	int rc = rt_kernel(&kernel, func);

	return rc ? rc : launch_kernel(drv, kernel, g, b, args, shared, stream, cooperative);
}

static int launch_ex(const struct rt_driver *drv, const struct sim_rt_launch_config *c,
		     const void *func, void **args)
{
	struct sim_launch_config config;
	void *kernel;
	int rc;

	if (!c)
		return SIM_INVALID_VALUE;
	if (!fits(c->grid, c->block))
		return SIM_INVALID_CONFIGURATION;
	rc = rt_kernel(&kernel, func);
	if (rc)
		return rc;
	config = (struct sim_launch_config){{c->grid.x, c->grid.y, c->grid.z},
					    {c->block.x, c->block.y, c->block.z},
					    (unsigned)c->shared,
					    c->stream,
					    c->attrs,
					    c->attr_cnt};
	return drv->cuLaunchKernelEx(&config, kernel, args, NULL);
}

#define LAUNCH_PARAMS struct sim_dim3 g, struct sim_dim3 b, void **args, size_t shared, void *stream
RT_PTSZ(cudaLaunchKernel, (const void *func, LAUNCH_PARAMS),
	launch(drv, func, g, b, args, shared, stream, false))
RT_PTSZ(cudaLaunchCooperativeKernel, (const void *func, LAUNCH_PARAMS),
	launch(drv, func, g, b, args, shared, stream, true))
RT_PTSZ(cudaLaunchKernelExC, (const struct sim_rt_launch_config *c, const void *func, void **args),
	launch_ex(drv, c, func, args))
#if RT_GEN >= 12
RT_PTSZ(__cudaLaunchKernel, (void *kernel, LAUNCH_PARAMS),
	launch_kernel(drv, kernel, g, b, args, shared, stream, false))
#endif

/* ---- attributes ---- */
static int func_attributes(const struct rt_driver *drv, struct sim_func_attributes *out,
			   const void *func)
{
	static const struct {
		short attr, offset;
		bool wide;
	} fields[] = {
#define WIDE(a, f) {a, offsetof(struct sim_func_attributes, f), true}
#define NARROW(a, f) \
	{ \
		a, offsetof(struct sim_func_attributes, f), false \
	}
		NARROW(0, max_threads),
		WIDE(1, shared_bytes),
		WIDE(2, const_bytes),
		WIDE(3, local_bytes),
		NARROW(4, regs),
		NARROW(5, ptx),
		NARROW(6, binary),
		NARROW(7, cache_ca),
		NARROW(8, max_dynamic_shared),
		NARROW(9, carveout),
#if RT_GEN >= 12
		NARROW(10, cluster[0]),
		NARROW(11, cluster[1]),
		NARROW(12, cluster[2]),
		NARROW(13, cluster[3]),
		NARROW(14, cluster[5]),
		NARROW(15, cluster[4]),
#endif
	};
	void *kernel;
	int rc = rt_kernel(&kernel, func), value;

	if (rc || !out)
		return rc ? rc : SIM_INVALID_VALUE;
	memset(out, 0, RT_GEN >= 12 ? sizeof(*out) : offsetof(struct sim_func_attributes, cluster));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		rc = drv->cuKernelGetAttribute(&value, fields[i].attr, kernel, rt_thread.device);
		if (rc)
			return rc;
		if (fields[i].wide)
			*(size_t *)((char *)out + fields[i].offset) = (size_t)value;
		else
			*(int *)((char *)out + fields[i].offset) = value;
	}
	return SIM_OK;
}
RT_EXPORT(cudaFuncGetAttributes, (struct sim_func_attributes * out, const void *func),
	  func_attributes(drv, out, func))

static int func_set(const struct rt_driver *drv, const void *func, int attr, int value)
{
	void *kernel;
	int rc = rt_kernel(&kernel, func);

	return rc ? rc : drv->cuKernelSetAttribute(attr, value, kernel, rt_thread.device);
}
RT_EXPORT(cudaFuncSetAttribute, (const void *func, int attr, int value),
	  func_set(drv, func, attr, value))

static int func_cache(const struct rt_driver *drv, const void *func, int config)
{
	void *kernel;
	int rc = rt_kernel(&kernel, func);

	return rc ? rc : drv->cuKernelSetCacheConfig(kernel, config, rt_thread.device);
}
RT_EXPORT(cudaFuncSetCacheConfig, (const void *func, int config), func_cache(drv, func, config))
RT_EXPORT(cudaFuncSetSharedMemConfig, (const void *func, int config), SIM_OK)

/* ---- occupancy ---- */
static int occupancy(const struct rt_driver *drv, int *out, const void *func, int threads,
		     size_t shared, unsigned flags)
{
	void *kernel;
	int rc = rt_kernel(&kernel, func);

	return rc ? rc
		  : drv->cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, kernel, threads,
									      shared, flags);
}
RT_EXPORT(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
	  (int *out, const void *func, int threads, size_t shared),
	  occupancy(drv, out, func, threads, shared, 0))
RT_EXPORT(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	  (int *out, const void *func, int threads, size_t shared, unsigned flags),
	  occupancy(drv, out, func, threads, shared, flags))

static int available_shared(const struct rt_driver *drv, size_t *out, const void *func, int blocks,
			    int threads)
{
	void *kernel;
	int rc = rt_kernel(&kernel, func);

	return rc ? rc : drv->cuOccupancyAvailableDynamicSMemPerBlock(out, kernel, blocks, threads);
}
RT_EXPORT(cudaOccupancyAvailableDynamicSMemPerBlock,
	  (size_t * out, const void *func, int blocks, int threads),
	  available_shared(drv, out, func, blocks, threads))

static int clusters(int (*ask)(int *, void *, const void *), int *out, const void *func,
		    const void *config)
{
	void *kernel;
	int rc = rt_kernel(&kernel, func);

	return rc ? rc : ask(out, kernel, config);
}
RT_EXPORT(cudaOccupancyMaxActiveClusters, (int *out, const void *func, const void *config),
	  clusters(drv->cuOccupancyMaxActiveClusters, out, func, config))
RT_EXPORT(cudaOccupancyMaxPotentialClusterSize, (int *out, const void *func, const void *config),
	  clusters(drv->cuOccupancyMaxPotentialClusterSize, out, func, config))
