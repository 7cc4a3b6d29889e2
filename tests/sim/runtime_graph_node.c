/*
 * tests/sim/runtime_graph_node.c: asking and changing nodes of a graph that exists: each one driver call.
 */
#include "runtime.h"

RT_EXPORT(cudaGraphChildGraphNodeGetGraph, (void *n, void **out),
	  drv->cuGraphChildGraphNodeGetGraph(n, out))
RT_EXPORT(cudaGraphMemsetNodeGetParams, (void *n, struct sim_memset_node *p),
	  drv->cuGraphMemsetNodeGetParams(n, p))
RT_EXPORT(cudaGraphMemsetNodeSetParams, (void *n, const struct sim_memset_node *p),
	  drv->cuGraphMemsetNodeSetParams(n, p))
RT_EXPORT(cudaGraphHostNodeGetParams, (void *n, struct sim_host_node *p),
	  drv->cuGraphHostNodeGetParams(n, p))
RT_EXPORT(cudaGraphHostNodeSetParams, (void *n, const struct sim_host_node *p),
	  drv->cuGraphHostNodeSetParams(n, p))
RT_EXPORT(cudaGraphNodeSetEnabled, (void *e, void *n, unsigned on),
	  drv->cuGraphNodeSetEnabled(e, n, on))
RT_EXPORT(cudaGraphNodeGetEnabled, (void *e, void *n, unsigned *on),
	  drv->cuGraphNodeGetEnabled(e, n, on))
RT_EXPORT(cudaGraphRetainUserObject, (void *g, void *o, unsigned cnt, unsigned flags),
	  drv->cuGraphRetainUserObject(g, o, cnt, flags))
RT_EXPORT(cudaGraphReleaseUserObject, (void *g, void *o, unsigned cnt),
	  drv->cuGraphReleaseUserObject(g, o, cnt))

/* Attributes of kernel nodes change nothing here. */
RT_EXPORT(cudaGraphKernelNodeSetAttribute, (void *n, int attr, const void *value), SIM_OK)
RT_EXPORT(cudaGraphKernelNodeCopyAttributes, (void *dst, void *src), SIM_OK)

static int set_memcpy(const struct rt_driver *drv, void *node, const struct sim_rt_memcpy3d *p)
{
	struct sim_memcpy3d c;
	int rc = rt_memcpy3d(&c, p);

	return rc ? rc : drv->cuGraphMemcpyNodeSetParams(node, &c);
}
RT_EXPORT(cudaGraphMemcpyNodeSetParams, (void *n, const struct sim_rt_memcpy3d *p),
	  set_memcpy(drv, n, p))

static int set_memcpy_1d(const struct rt_driver *drv, void *node, void *dst, const void *src,
			 size_t n, int kind)
{
	struct sim_rt_memcpy3d p = {.src = {(void *)(uintptr_t)src, n, n, 1},
				    .dst = {dst, n, n, 1},
				    .extent = {n, 1, 1},
				    .kind = kind};

	return set_memcpy(drv, node, &p);
}
RT_EXPORT(cudaGraphMemcpyNodeSetParams1D,
	  (void *n, void *dst, const void *src, size_t bytes, int kind),
	  set_memcpy_1d(drv, n, dst, src, bytes, kind))

/* Edges carry data in 13; 12 has both forms. */
#define PLAIN(name, driver) \
	RT_EXPORT(name, (void *n, void **out, size_t *cnt), drv->driver(n, out, cnt))
#define WITH_DATA(name, driver) \
	RT_EXPORT(name, (void *n, void **out, void *data, size_t *cnt), drv->driver(n, out, cnt))
#define REMOVE_PLAIN(name) \
	RT_EXPORT(name, (void *g, void *const *from, void *const *to, size_t cnt), \
		  drv->cuGraphRemoveDependencies(g, from, to, cnt))
#define REMOVE_WITH_DATA(name) \
	RT_EXPORT(name, \
		  (void *g, void *const *from, void *const *to, const void *data, size_t cnt), \
		  drv->cuGraphRemoveDependencies(g, from, to, cnt))
#if RT_GEN >= 13
WITH_DATA(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies)
WITH_DATA(cudaGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes)
REMOVE_WITH_DATA(cudaGraphRemoveDependencies)
#else
PLAIN(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies)
PLAIN(cudaGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes)
REMOVE_PLAIN(cudaGraphRemoveDependencies)
#if RT_GEN == 12
WITH_DATA(cudaGraphNodeGetDependencies_v2, cuGraphNodeGetDependencies)
WITH_DATA(cudaGraphNodeGetDependentNodes_v2, cuGraphNodeGetDependentNodes)
REMOVE_WITH_DATA(cudaGraphRemoveDependencies_v2)
#endif
#endif
