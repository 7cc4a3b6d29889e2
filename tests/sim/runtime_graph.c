/*
 * tests/sim/runtime_graph.c: graphs: each call becomes the driver's, after translating parameters. Names
 * that changed their meaning between generations are spelt out per generation.
 */
#include "runtime.h"

#include <string.h>

/* ---- capture ---- */
RT_PTSZ(cudaStreamBeginCapture, (void *s, int mode), drv->cuStreamBeginCapture(s, mode))
RT_PTSZ(cudaStreamEndCapture, (void *s, void **out), drv->cuStreamEndCapture(s, out))
RT_PTSZ(cudaStreamIsCapturing, (void *s, int *status), drv->cuStreamIsCapturing(s, status))
RT_EXPORT(cudaThreadExchangeStreamCaptureMode, (int *mode),
	  drv->cuThreadExchangeStreamCaptureMode(mode))
#define INFO_PARAMS void *s, int *status, unsigned long long *id, void **g, const void ***deps
#define CAPTURE_INFO_3(name) \
	RT_PTSZ(name, (INFO_PARAMS, const void **data, size_t *cnt), \
		drv->cuStreamGetCaptureInfo(s, status, id, g, deps, data, cnt))
#define CAPTURE_INFO_2(name) \
	RT_PTSZ(name, (INFO_PARAMS, size_t * cnt), \
		drv->cuStreamGetCaptureInfo(s, status, id, g, deps, NULL, cnt))
#define UPDATE_2(name) \
	RT_PTSZ(name, (void *s, void **deps, const void *data, size_t cnt, unsigned flags), \
		drv->cuStreamUpdateCaptureDependencies(s, deps, data, cnt, flags))
#if RT_GEN >= 13
CAPTURE_INFO_3(cudaStreamGetCaptureInfo)
UPDATE_2(cudaStreamUpdateCaptureDependencies)
#else
RT_PTSZ(cudaStreamGetCaptureInfo, (void *s, int *status, unsigned long long *id),
	drv->cuStreamGetCaptureInfo(s, status, id, NULL, NULL, NULL, NULL))
RT_PTSZ(cudaStreamUpdateCaptureDependencies, (void *s, void **deps, size_t cnt, unsigned flags),
	drv->cuStreamUpdateCaptureDependencies(s, deps, NULL, cnt, flags))
#endif
#if RT_GEN == 12
CAPTURE_INFO_2(cudaStreamGetCaptureInfo_v2)
CAPTURE_INFO_3(cudaStreamGetCaptureInfo_v3)
UPDATE_2(cudaStreamUpdateCaptureDependencies_v2)
#endif
#if RT_GEN >= 12
RT_PTSZ(cudaStreamBeginCaptureToGraph,
	(void *s, void *g, void **deps, const void *data, size_t cnt, int mode),
	drv->cuStreamBeginCaptureToGraph(s, g, deps, data, cnt, mode))
#endif

/* ---- building ---- */
RT_EXPORT(cudaGraphCreate, (void **out, unsigned flags), drv->cuGraphCreate(out, flags))
RT_EXPORT(cudaGraphDestroy, (void *g), drv->cuGraphDestroy(g))
RT_EXPORT(cudaGraphClone, (void **out, void *g), drv->cuGraphClone(out, g))
RT_EXPORT(cudaGraphDestroyNode, (void *n), drv->cuGraphDestroyNode(n))
RT_EXPORT(cudaGraphNodeGetType, (void *n, int *out), drv->cuGraphNodeGetType(n, out))
RT_EXPORT(cudaGraphGetNodes, (void *g, void **out, size_t *cnt), drv->cuGraphGetNodes(g, out, cnt))
RT_EXPORT(cudaGraphGetRootNodes, (void *g, void **out, size_t *cnt),
	  drv->cuGraphGetRootNodes(g, out, cnt))
RT_EXPORT(cudaGraphDebugDotPrint, (void *g, const char *path, unsigned flags),
	  drv->cuGraphDebugDotPrint(g, path, flags))

#define NODE_PARAMS void **out, void *g, void *const *deps, size_t cnt
RT_EXPORT(cudaGraphAddEmptyNode, (NODE_PARAMS), drv->cuGraphAddEmptyNode(out, g, deps, cnt))
RT_EXPORT(cudaGraphAddChildGraphNode, (NODE_PARAMS, void *child),
	  drv->cuGraphAddChildGraphNode(out, g, deps, cnt, child))
RT_EXPORT(cudaGraphAddEventRecordNode, (NODE_PARAMS, void *event),
	  drv->cuGraphAddEventRecordNode(out, g, deps, cnt, event))
RT_EXPORT(cudaGraphAddEventWaitNode, (NODE_PARAMS, void *event),
	  drv->cuGraphAddEventWaitNode(out, g, deps, cnt, event))
RT_EXPORT(cudaGraphAddHostNode, (NODE_PARAMS, const struct sim_host_node *p),
	  drv->cuGraphAddHostNode(out, g, deps, cnt, p))
RT_EXPORT(cudaGraphAddMemsetNode, (NODE_PARAMS, const struct sim_memset_node *p),
	  drv->cuGraphAddMemsetNode(out, g, deps, cnt, p, rt_thread.self->ctx))

static int kernel_params(struct sim_kernel_node *out, const struct sim_rt_kernel_node *p)
{
	void *kernel;
	int rc = p ? rt_kernel(&kernel, p->func) : SIM_INVALID_VALUE;

	if (!rc)
		*out = (struct sim_kernel_node){kernel,
						{p->grid.x, p->grid.y, p->grid.z},
						{p->block.x, p->block.y, p->block.z},
						p->shared,
						p->params,
						p->extra,
						NULL,
						NULL};
	return rc;
}

static int add_kernel(const struct rt_driver *drv, NODE_PARAMS, const struct sim_rt_kernel_node *p)
{
	struct sim_kernel_node k;
	int rc = kernel_params(&k, p);

	return rc ? rc : drv->cuGraphAddKernelNode(out, g, deps, cnt, &k);
}
RT_EXPORT(cudaGraphAddKernelNode, (NODE_PARAMS, const struct sim_rt_kernel_node *p),
	  add_kernel(drv, out, g, deps, cnt, p))

static int add_memcpy(const struct rt_driver *drv, NODE_PARAMS, const struct sim_rt_memcpy3d *p)
{
	struct sim_memcpy3d c;
	int rc = rt_memcpy3d(&c, p);

	return rc ? rc : drv->cuGraphAddMemcpyNode(out, g, deps, cnt, &c, rt_thread.self->ctx);
}
RT_EXPORT(cudaGraphAddMemcpyNode, (NODE_PARAMS, const struct sim_rt_memcpy3d *p),
	  add_memcpy(drv, out, g, deps, cnt, p))

static struct sim_rt_memcpy3d row(void *dst, const void *src, size_t n, int kind)
{
	return (struct sim_rt_memcpy3d){.src = {(void *)(uintptr_t)src, n, n, 1},
					.dst = {dst, n, n, 1},
					.extent = {n, 1, 1},
					.kind = kind};
}

static int add_memcpy_1d(const struct rt_driver *drv, NODE_PARAMS, void *dst, const void *src,
			 size_t n, int kind)
{
	struct sim_rt_memcpy3d p = row(dst, src, n, kind);

	return add_memcpy(drv, out, g, deps, cnt, &p);
}
RT_EXPORT(cudaGraphAddMemcpyNode1D, (NODE_PARAMS, void *dst, const void *src, size_t n, int kind),
	  add_memcpy_1d(drv, out, g, deps, cnt, dst, src, n, kind))

static int add_to_symbol(const struct rt_driver *drv, NODE_PARAMS, const void *symbol,
			 const void *src, size_t n, size_t offset, int kind, bool to)
{
	size_t bytes;
	sim_ptr p;
	int rc = rt_symbol(&p, &bytes, symbol);
	void *at;

	if (rc)
		return rc;
	at = (char *)(uintptr_t)p + offset;
	return add_memcpy_1d(drv, out, g, deps, cnt, to ? at : (void *)(uintptr_t)src,
			     to ? src : at, n, kind);
}
RT_EXPORT(cudaGraphAddMemcpyNodeToSymbol,
	  (NODE_PARAMS, const void *symbol, const void *src, size_t n, size_t offset, int kind),
	  add_to_symbol(drv, out, g, deps, cnt, symbol, src, n, offset, kind, true))
RT_EXPORT(cudaGraphAddMemcpyNodeFromSymbol,
	  (NODE_PARAMS, void *dst, const void *symbol, size_t n, size_t offset, int kind),
	  add_to_symbol(drv, out, g, deps, cnt, symbol, dst, n, offset, kind, false))

/* cudaGraphAddNode: the node's type and then one of many structures, from byte 16 on. */
struct node_params {
	int type, reserved[3];
	union {
		struct sim_rt_kernel_node kernel;
		struct sim_rt_memcpy_node copy;
		struct sim_memset_node set;
		struct sim_host_node host;
		void *handle; /* child graph, event */
		long long reserved1[29];
	};
	long long reserved2;
};

static int add_node(const struct rt_driver *drv, NODE_PARAMS, const struct node_params *p)
{
	if (!p)
		return SIM_INVALID_VALUE;
	switch (p->type) {
	case 0:
		return add_kernel(drv, out, g, deps, cnt, &p->kernel);
	case 1:
		return add_memcpy(drv, out, g, deps, cnt, &p->copy.copy);
	case 2:
		return drv->cuGraphAddMemsetNode(out, g, deps, cnt, &p->set, rt_thread.self->ctx);
	case 3:
		return drv->cuGraphAddHostNode(out, g, deps, cnt, &p->host);
	case 4:
		return drv->cuGraphAddChildGraphNode(out, g, deps, cnt, p->handle);
	case 5:
		return drv->cuGraphAddEmptyNode(out, g, deps, cnt);
	case 6:
		return drv->cuGraphAddEventWaitNode(out, g, deps, cnt, p->handle);
	case 7:
		return drv->cuGraphAddEventRecordNode(out, g, deps, cnt, p->handle);
	}
	return SIM_NOT_SUPPORTED;
}

/* With 13 edges carry data everywhere; 12 has both, 11 only the short ones. */
#define ADD_NODE_2(name) \
	RT_EXPORT(name, \
		  (void **out, void *g, void *const *deps, const void *data, size_t cnt, \
		   const struct node_params *p), \
		  add_node(drv, out, g, deps, cnt, p))
#define DEPENDENCIES_1(name) \
	RT_EXPORT(name, (void *g, void *const *from, void *const *to, size_t cnt), \
		  drv->cuGraphAddDependencies(g, from, to, cnt))
#define DEPENDENCIES_2(name) \
	RT_EXPORT(name, \
		  (void *g, void *const *from, void *const *to, const void *data, size_t cnt), \
		  drv->cuGraphAddDependencies(g, from, to, cnt))
#define EDGES_1(name) \
	RT_EXPORT(name, (void *g, void **from, void **to, size_t *cnt), \
		  drv->cuGraphGetEdges(g, from, to, cnt))
#define EDGES_2(name) \
	RT_EXPORT(name, (void *g, void **from, void **to, void *data, size_t *cnt), \
		  drv->cuGraphGetEdges(g, from, to, cnt))
#if RT_GEN >= 13
ADD_NODE_2(cudaGraphAddNode)
DEPENDENCIES_2(cudaGraphAddDependencies)
EDGES_2(cudaGraphGetEdges)
#else
DEPENDENCIES_1(cudaGraphAddDependencies)
EDGES_1(cudaGraphGetEdges)
#if RT_GEN == 12
RT_EXPORT(cudaGraphAddNode, (NODE_PARAMS, const struct node_params *p),
	  add_node(drv, out, g, deps, cnt, p))
ADD_NODE_2(cudaGraphAddNode_v2)
DEPENDENCIES_2(cudaGraphAddDependencies_v2)
EDGES_2(cudaGraphGetEdges_v2)
#else
static void keep_used(void) __attribute__((unused));
static void keep_used(void)
{
	(void)add_node;
}
#endif
#endif

static int get_kernel(const struct rt_driver *drv, void *node, struct sim_rt_kernel_node *p)
{
	struct sim_kernel_node k;
	int rc = drv->cuGraphKernelNodeGetParams(node, &k);

	if (!rc)
		*p = (struct sim_rt_kernel_node){rt_host_of(k.func),
						 {k.grid[0], k.grid[1], k.grid[2]},
						 {k.block[0], k.block[1], k.block[2]},
						 k.shared,
						 k.params,
						 k.extra};
	return rc;
}
RT_EXPORT(cudaGraphKernelNodeGetParams, (void *n, struct sim_rt_kernel_node *p),
	  get_kernel(drv, n, p))

static int set_kernel(const struct rt_driver *drv, void *exec, void *node,
		      const struct sim_rt_kernel_node *p)
{
	struct sim_kernel_node k;
	int rc = kernel_params(&k, p);

	if (rc)
		return rc;
	return exec ? drv->cuGraphExecKernelNodeSetParams(exec, node, &k)
		    : drv->cuGraphKernelNodeSetParams(node, &k);
}
RT_EXPORT(cudaGraphKernelNodeSetParams, (void *n, const struct sim_rt_kernel_node *p),
	  set_kernel(drv, NULL, n, p))
RT_EXPORT(cudaGraphExecKernelNodeSetParams, (void *e, void *n, const struct sim_rt_kernel_node *p),
	  set_kernel(drv, e, n, p))

/* ---- running ---- */
#if RT_GEN == 11
RT_EXPORT(cudaGraphInstantiate, (void **out, void *g, void **bad, char *log, size_t n),
	  drv->cuGraphInstantiateWithFlags(out, g, 0))
#else
RT_EXPORT(cudaGraphInstantiate, (void **out, void *g, unsigned long long flags),
	  drv->cuGraphInstantiateWithFlags(out, g, flags))
RT_PTSZ(cudaGraphInstantiateWithParams, (void **out, void *g, struct sim_instantiate_params *p),
	drv->cuGraphInstantiateWithParams(out, g, p))
RT_EXPORT(cudaGraphExecGetFlags, (void *e, unsigned long long *out),
	  drv->cuGraphExecGetFlags(e, out))
#endif
RT_EXPORT(cudaGraphInstantiateWithFlags, (void **out, void *g, unsigned long long flags),
	  drv->cuGraphInstantiateWithFlags(out, g, flags))
RT_PTSZ(cudaGraphUpload, (void *e, void *s), drv->cuGraphUpload(e, s))
RT_PTSZ(cudaGraphLaunch, (void *e, void *s), drv->cuGraphLaunch(e, s))
RT_EXPORT(cudaGraphExecDestroy, (void *e), drv->cuGraphExecDestroy(e))
#if RT_GEN == 11
static int exec_update(const struct rt_driver *drv, void *e, void *g, void **bad, int *result)
{
	struct sim_update_result info = {0, NULL, NULL};
	int rc = drv->cuGraphExecUpdate(e, g, &info);

	if (bad)
		*bad = info.error_node;
	if (result)
		*result = info.result;
	return rc;
}
RT_EXPORT(cudaGraphExecUpdate, (void *e, void *g, void **bad, int *result),
	  exec_update(drv, e, g, bad, result))
#else
RT_EXPORT(cudaGraphExecUpdate, (void *e, void *g, struct sim_update_result *info),
	  drv->cuGraphExecUpdate(e, g, info))
#endif

static int exec_memcpy(const struct rt_driver *drv, void *e, void *n,
		       const struct sim_rt_memcpy3d *p)
{
	struct sim_memcpy3d c;
	int rc = rt_memcpy3d(&c, p);

	return rc ? rc : drv->cuGraphExecMemcpyNodeSetParams(e, n, &c, rt_thread.self->ctx);
}
RT_EXPORT(cudaGraphExecMemcpyNodeSetParams, (void *e, void *n, const struct sim_rt_memcpy3d *p),
	  exec_memcpy(drv, e, n, p))

static int exec_memcpy_1d(const struct rt_driver *drv, void *e, void *n, void *dst, const void *src,
			  size_t bytes, int kind)
{
	struct sim_rt_memcpy3d p = row(dst, src, bytes, kind);

	return exec_memcpy(drv, e, n, &p);
}
RT_EXPORT(cudaGraphExecMemcpyNodeSetParams1D,
	  (void *e, void *n, void *dst, const void *src, size_t bytes, int kind),
	  exec_memcpy_1d(drv, e, n, dst, src, bytes, kind))
RT_EXPORT(cudaGraphExecMemsetNodeSetParams, (void *e, void *n, const struct sim_memset_node *p),
	  drv->cuGraphExecMemsetNodeSetParams(e, n, p, rt_thread.self->ctx))
RT_EXPORT(cudaGraphExecHostNodeSetParams, (void *e, void *n, const struct sim_host_node *p),
	  drv->cuGraphExecHostNodeSetParams(e, n, p))

RT_EXPORT(cudaUserObjectCreate,
	  (void **out, void *arg, void (*fn)(void *), unsigned refs, unsigned flags),
	  drv->cuUserObjectCreate(out, arg, fn, refs, flags))
RT_EXPORT(cudaUserObjectRetain, (void *o, unsigned cnt), drv->cuUserObjectRetain(o, cnt))
RT_EXPORT(cudaUserObjectRelease, (void *o, unsigned cnt), drv->cuUserObjectRelease(o, cnt))
