/*
 * tests/sim/driver_graph.c: building graphs node by node and asking about them, on the calling thread.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

struct sim_graph *graph_check(void *handle)
{
	struct sim_graph *graph = handle;

	return graph && graph->magic == GRAPH_MAGIC ? graph : NULL;
}

struct sim_graph *graph_new(void)
{
	struct sim_graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		abort();
	graph->magic = GRAPH_MAGIC;
	return graph;
}

static void node_free(struct sim_node *node)
{
	sim_op_put(node->op);
	if (node->type == NODE_GRAPH)
		graph_free(node->child);
	free(node->param_copies);
	free(node->deps);
	free(node);
}

void graph_free(struct sim_graph *graph)
{
	for (unsigned i = 0; i < graph->cnt; i++)
		node_free(graph->nodes[i]);
	free(graph->nodes);
	graph->magic = 0;
	free(graph);
}

int node_dep(struct sim_node *node, struct sim_node *on)
{
	for (unsigned i = 0; i < node->dep_cnt; i++)
		if (node->deps[i] == on)
			return SIM_INVALID_VALUE;
	node->deps = realloc(node->deps, (node->dep_cnt + 1) * sizeof(struct sim_node *));
	if (!node->deps)
		abort();
	node->deps[node->dep_cnt++] = on;
	return SIM_OK;
}

struct sim_node *graph_add(struct sim_graph *graph, enum node_type type, struct sim_op *op,
			   struct sim_node *const *deps, size_t dep_cnt)
{
	struct sim_node *node = calloc(1, sizeof(*node));

	if (!node)
		abort();
	node->type = type;
	node->graph = graph;
	node->op = op;
	for (size_t i = 0; i < dep_cnt; i++)
		node_dep(node, deps[i]);
	if (graph->cnt == graph->cap) {
		graph->cap = graph->cap ? 2 * graph->cap : 16;
		graph->nodes = realloc(graph->nodes, graph->cap * sizeof(struct sim_node *));
		if (!graph->nodes)
			abort();
	}
	graph->nodes[graph->cnt++] = node;
	return node;
}

static int create(struct sim_graph **out)
{
	if (!out)
		return SIM_INVALID_VALUE;
	*out = graph_new();
	return SIM_OK;
}
EXPORT(cuGraphCreate, (struct sim_graph * *out, unsigned flags), create(out))

static int destroy(struct sim_graph *graph)
{
	unsigned held;

	if (!graph_check(graph))
		return SIM_INVALID_VALUE;
	held = sim_lock(HOLD_PROCESS, 0);
	graph_free(graph);
	sim_unlock(held, 0);
	return SIM_OK;
}
EXPORT(cuGraphDestroy, (struct sim_graph * graph), destroy(graph))

/* ---- nodes ---- */
static int add(struct sim_node **out, struct sim_graph *graph, struct sim_node *const *deps,
	       size_t cnt, enum node_type type, struct sim_op *op)
{
	if (!out || !graph_check(graph) || (cnt && !deps) || (!op && type < NODE_GRAPH)) {
		sim_op_put(op);
		return SIM_INVALID_VALUE;
	}
	*out = graph_add(graph, type, op, deps, cnt);
	return SIM_OK;
}

/* Keeps what a kernel node would be asked for, with copies of the arguments where their sizes are
 * known. */
void sim_node_describe(struct sim_node *node, struct sim_kernel *kernel, const unsigned grid[3],
		       const unsigned block[3], unsigned shared, void **params)
{
	size_t bytes = 0;
	void **args;
	char *at;

	node->kernel = (struct sim_kernel_node){kernel,
						{grid[0], grid[1], grid[2]},
						{block[0], block[1], block[2]},
						shared,
						NULL,
						NULL,
						kernel,
						NULL};
	free(node->param_copies);
	node->param_copies = NULL;
	if (!params || kernel->param_cnt < 1)
		return;
	for (int i = 0; i < kernel->param_cnt; i++)
		bytes += (size_t)(kernel->param_size[i] + 15) / 16 * 16;
	args = calloc(1, 33 * sizeof(void *) + 16 + bytes);
	if (!args)
		abort();
	at = (char *)(args + 34);
	for (int i = 0; i < kernel->param_cnt; i++) {
		args[i] = at;
		memcpy(at, params[i], kernel->param_size[i]);
		at += (size_t)(kernel->param_size[i] + 15) / 16 * 16;
	}
	node->param_copies = node->kernel.params = args;
}

static struct sim_kernel *kernel_of(const struct sim_kernel_node *p, bool second)
{
	struct sim_kernel *kernel = p ? sim_kernel_check(p->func) : NULL;

	return kernel || !p || !second ? kernel : sim_kernel_check(p->kernel);
}

static int add_kernel(struct sim_node **out, struct sim_graph *graph, struct sim_node *const *deps,
		      size_t cnt, const struct sim_kernel_node *p, bool second)
{
	struct sim_kernel *kernel = kernel_of(p, second);
	int rc;

	if (!kernel)
		return SIM_INVALID_VALUE;
	rc = add(out, graph, deps, cnt, NODE_KERNEL,
		 sim_kernel_op(kernel, p->grid, p->block, p->params, p->extra));
	if (!rc)
		sim_node_describe(*out, kernel, p->grid, p->block, p->shared, p->params);
	return rc;
}
#define NODE_PARAMS \
	struct sim_node **out, struct sim_graph *g, struct sim_node *const *deps, size_t cnt
EXPORT(cuGraphAddKernelNode, (NODE_PARAMS, const struct sim_kernel_node *p),
       add_kernel(out, g, deps, cnt, p, false))
EXPORT(cuGraphAddKernelNode_v2, (NODE_PARAMS, const struct sim_kernel_node *p),
       add_kernel(out, g, deps, cnt, p, true))

static int add_memcpy(struct sim_node **out, struct sim_graph *g, struct sim_node *const *deps,
		      size_t cnt, const struct sim_memcpy3d *p)
{
	int rc = p ? add(out, g, deps, cnt, NODE_MEMCPY, sim_copy_op(p)) : SIM_INVALID_VALUE;

	if (!rc)
		(*out)->copy = *p;
	return rc;
}
EXPORT(cuGraphAddMemcpyNode, (NODE_PARAMS, const struct sim_memcpy3d *p, void *ctx),
       add_memcpy(out, g, deps, cnt, p))

static struct sim_op *set_op(const struct sim_memset_node *p)
{
	return p ? sim_set_op(p->dst, p->pitch, p->value, p->element, p->width, p->height) : NULL;
}

static int add_memset(struct sim_node **out, struct sim_graph *g, struct sim_node *const *deps,
		      size_t cnt, const struct sim_memset_node *p)
{
	int rc = add(out, g, deps, cnt, NODE_MEMSET, set_op(p));

	if (!rc)
		(*out)->set = *p;
	return rc;
}
EXPORT(cuGraphAddMemsetNode, (NODE_PARAMS, const struct sim_memset_node *p, void *ctx),
       add_memset(out, g, deps, cnt, p))

static int add_host(struct sim_node **out, struct sim_graph *g, struct sim_node *const *deps,
		    size_t cnt, const struct sim_host_node *p)
{
	int rc = p && p->fn ? add(out, g, deps, cnt, NODE_HOST, sim_host_op(p->fn, p->arg))
			    : SIM_INVALID_VALUE;

	if (!rc)
		(*out)->host = *p;
	return rc;
}
EXPORT(cuGraphAddHostNode, (NODE_PARAMS, const struct sim_host_node *p),
       add_host(out, g, deps, cnt, p))
EXPORT(cuGraphAddEmptyNode, (NODE_PARAMS), add(out, g, deps, cnt, NODE_EMPTY, NULL))

static int add_event(struct sim_node **out, struct sim_graph *g, struct sim_node *const *deps,
		     size_t cnt, struct sim_event *event, enum node_type type)
{
	int rc = event ? add(out, g, deps, cnt, type, NULL) : SIM_INVALID_VALUE;

	if (!rc)
		(*out)->event = event;
	return rc;
}
EXPORT(cuGraphAddEventRecordNode, (NODE_PARAMS, struct sim_event *e),
       add_event(out, g, deps, cnt, e, NODE_RECORD_EVENT))
EXPORT(cuGraphAddEventWaitNode, (NODE_PARAMS, struct sim_event *e),
       add_event(out, g, deps, cnt, e, NODE_WAIT_EVENT))

static struct sim_graph *graph_clone(const struct sim_graph *graph)
{
	struct sim_graph *copy = graph_new();

	for (unsigned i = 0; i < graph->cnt; i++) {
		const struct sim_node *from = graph->nodes[i];
		struct sim_node *to = graph_add(copy, from->type,
						from->op ? sim_op_clone(from->op) : NULL, NULL, 0);

		((struct sim_node *)graph->nodes[i])->mark = i;
		to->disabled = from->disabled;
		to->copy = from->copy; /* the largest of the union */
		if (from->type == NODE_GRAPH)
			to->child = graph_clone(from->child);
		if (from->type == NODE_KERNEL) {
			to->kernel.params = NULL;
			sim_node_describe(to, from->kernel.func, from->kernel.grid,
					  from->kernel.block, from->kernel.shared,
					  from->kernel.params);
		}
	}
	for (unsigned i = 0; i < graph->cnt; i++)
		for (unsigned k = 0; k < graph->nodes[i]->dep_cnt; k++)
			node_dep(copy->nodes[i], copy->nodes[graph->nodes[i]->deps[k]->mark]);
	return copy;
}
EXPORT(cuGraphClone, (struct sim_graph * *out, struct sim_graph *g),
       graph_check(g) ? (*out = graph_clone(g), SIM_OK) : SIM_INVALID_VALUE)

static int add_child(struct sim_node **out, struct sim_graph *g, struct sim_node *const *deps,
		     size_t cnt, struct sim_graph *child)
{
	int rc = graph_check(child) ? add(out, g, deps, cnt, NODE_GRAPH, NULL) : SIM_INVALID_VALUE;

	if (!rc)
		(*out)->child = graph_clone(child);
	return rc;
}
EXPORT(cuGraphAddChildGraphNode, (NODE_PARAMS, struct sim_graph *child),
       add_child(out, g, deps, cnt, child))
EXPORT(cuGraphChildGraphNodeGetGraph, (struct sim_node * n, struct sim_graph **out),
       n->type == NODE_GRAPH ? (*out = n->child, SIM_OK) : SIM_INVALID_VALUE)

/* ---- changing nodes ---- */
static int set_kernel(struct sim_node *node, const struct sim_kernel_node *p, bool second)
{
	struct sim_kernel *kernel = kernel_of(p, second);

	if (!kernel || !node || node->type != NODE_KERNEL)
		return SIM_INVALID_VALUE;
	sim_op_put(node->op);
	node->op = sim_kernel_op(kernel, p->grid, p->block, p->params, p->extra);
	sim_node_describe(node, kernel, p->grid, p->block, p->shared, p->params);
	return SIM_OK;
}
EXPORT(cuGraphKernelNodeSetParams, (struct sim_node * n, const struct sim_kernel_node *p),
       set_kernel(n, p, false))
EXPORT(cuGraphKernelNodeSetParams_v2, (struct sim_node * n, const struct sim_kernel_node *p),
       set_kernel(n, p, true))

static int get_kernel(struct sim_node *node, struct sim_kernel_node *p, bool second)
{
	if (!node || !p || node->type != NODE_KERNEL)
		return SIM_INVALID_VALUE;
	memcpy(p, &node->kernel, second ? sizeof(*p) : offsetof(struct sim_kernel_node, kernel));
	return SIM_OK;
}
EXPORT(cuGraphKernelNodeGetParams, (struct sim_node * n, struct sim_kernel_node *p),
       get_kernel(n, p, false))
EXPORT(cuGraphKernelNodeGetParams_v2, (struct sim_node * n, struct sim_kernel_node *p),
       get_kernel(n, p, true))

static int set_op_of(struct sim_node *node, enum node_type type, struct sim_op *op,
		     const void *params, size_t bytes)
{
	if (!node || node->type != type || !op) {
		sim_op_put(op);
		return SIM_INVALID_VALUE;
	}
	sim_op_put(node->op);
	node->op = op;
	memcpy(&node->copy, params, bytes);
	return SIM_OK;
}
EXPORT(cuGraphMemcpyNodeSetParams, (struct sim_node * n, const struct sim_memcpy3d *p),
       set_op_of(n, NODE_MEMCPY, sim_copy_op(p), p, sizeof(*p)))
EXPORT(cuGraphMemcpyNodeGetParams, (struct sim_node * n, struct sim_memcpy3d *p),
       n->type == NODE_MEMCPY ? (*p = n->copy, SIM_OK) : SIM_INVALID_VALUE)
EXPORT(cuGraphMemsetNodeSetParams, (struct sim_node * n, const struct sim_memset_node *p),
       set_op_of(n, NODE_MEMSET, set_op(p), p, sizeof(*p)))
EXPORT(cuGraphMemsetNodeGetParams, (struct sim_node * n, struct sim_memset_node *p),
       n->type == NODE_MEMSET ? (*p = n->set, SIM_OK) : SIM_INVALID_VALUE)
EXPORT(cuGraphHostNodeSetParams, (struct sim_node * n, const struct sim_host_node *p),
       set_op_of(n, NODE_HOST, sim_host_op(p->fn, p->arg), p, sizeof(*p)))
EXPORT(cuGraphHostNodeGetParams, (struct sim_node * n, struct sim_host_node *p),
       n->type == NODE_HOST ? (*p = n->host, SIM_OK) : SIM_INVALID_VALUE)

/* ---- edges and questions ---- */
static int add_edges(struct sim_node *const *from, struct sim_node *const *to, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		int rc = node_dep(to[i], from[i]);

		if (rc)
			return rc;
	}
	return SIM_OK;
}
EXPORT(cuGraphAddDependencies,
       (struct sim_graph * g, struct sim_node *const *from, struct sim_node *const *to, size_t cnt),
       add_edges(from, to, cnt))
EXPORT(cuGraphAddDependencies_v2,
       (struct sim_graph * g, struct sim_node *const *from, struct sim_node *const *to,
	const void *data, size_t cnt),
       add_edges(from, to, cnt))

static int remove_edges(struct sim_node *const *from, struct sim_node *const *to, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		for (unsigned k = 0; k < to[i]->dep_cnt; k++)
			if (to[i]->deps[k] == from[i])
				to[i]->deps[k--] = to[i]->deps[--to[i]->dep_cnt];
	return SIM_OK;
}
EXPORT(cuGraphRemoveDependencies,
       (struct sim_graph * g, struct sim_node *const *from, struct sim_node *const *to, size_t cnt),
       remove_edges(from, to, cnt))

EXPORT(cuGraphRemoveDependencies_v2,
       (struct sim_graph * g, struct sim_node *const *from, struct sim_node *const *to,
	const void *data, size_t cnt),
       remove_edges(from, to, cnt))

static int list(struct sim_node **out, size_t *cnt, struct sim_graph *graph, bool roots)
{
	size_t n = 0, room = out && cnt ? *cnt : 0;

	if (!graph_check(graph) || !cnt)
		return SIM_INVALID_VALUE;
	for (unsigned i = 0; i < graph->cnt; i++) {
		if (roots && graph->nodes[i]->dep_cnt)
			continue;
		if (n < room)
			out[n] = graph->nodes[i];
		n++;
	}
	*cnt = out && n > room ? room : n;
	return SIM_OK;
}
EXPORT(cuGraphGetNodes, (struct sim_graph * g, struct sim_node **out, size_t *cnt),
       list(out, cnt, g, false))
EXPORT(cuGraphGetRootNodes, (struct sim_graph * g, struct sim_node **out, size_t *cnt),
       list(out, cnt, g, true))

static int edges(struct sim_graph *graph, struct sim_node **from, struct sim_node **to, size_t *cnt)
{
	size_t n = 0;

	if (!graph_check(graph) || !cnt)
		return SIM_INVALID_VALUE;
	for (unsigned i = 0; i < graph->cnt; i++)
		for (unsigned k = 0; k < graph->nodes[i]->dep_cnt; k++, n++)
			if (from && to && n < *cnt) {
				from[n] = graph->nodes[i]->deps[k];
				to[n] = graph->nodes[i];
			}
	*cnt = n;
	return SIM_OK;
}
EXPORT(cuGraphGetEdges,
       (struct sim_graph * g, struct sim_node **from, struct sim_node **to, size_t *cnt),
       edges(g, from, to, cnt))
EXPORT(cuGraphGetEdges_v2,
       (struct sim_graph * g, struct sim_node **from, struct sim_node **to, void *data,
	size_t *cnt),
       edges(g, from, to, cnt))

static int dependencies(struct sim_node *node, struct sim_node **out, size_t *cnt)
{
	for (unsigned k = 0; out && k < node->dep_cnt && k < *cnt; k++)
		out[k] = node->deps[k];
	*cnt = node->dep_cnt;
	return SIM_OK;
}
EXPORT(cuGraphNodeGetDependencies, (struct sim_node * n, struct sim_node **out, size_t *cnt),
       dependencies(n, out, cnt))
EXPORT(cuGraphNodeGetDependencies_v2,
       (struct sim_node * n, struct sim_node **out, void *data, size_t *cnt),
       dependencies(n, out, cnt))

static int dependents(struct sim_node *node, struct sim_node **out, size_t *cnt)
{
	struct sim_graph *graph = node->graph;
	size_t n = 0;

	for (unsigned i = 0; i < graph->cnt; i++)
		for (unsigned k = 0; k < graph->nodes[i]->dep_cnt; k++)
			if (graph->nodes[i]->deps[k] == node) {
				if (out && n < *cnt)
					out[n] = graph->nodes[i];
				n++;
			}
	*cnt = n;
	return SIM_OK;
}
EXPORT(cuGraphNodeGetDependentNodes, (struct sim_node * n, struct sim_node **out, size_t *cnt),
       dependents(n, out, cnt))
EXPORT(cuGraphNodeGetDependentNodes_v2,
       (struct sim_node * n, struct sim_node **out, void *data, size_t *cnt),
       dependents(n, out, cnt))
EXPORT(cuGraphNodeGetType, (struct sim_node * n, int *out),
       n &&out ? (*out = (int)n->type, SIM_OK) : SIM_INVALID_VALUE)

static int remove_node(struct sim_node *node)
{
	struct sim_graph *graph = node->graph;

	for (unsigned i = 0; i < graph->cnt; i++) {
		remove_edges(&node, &graph->nodes[i], 1);
		if (graph->nodes[i] == node) {
			memmove(&graph->nodes[i], &graph->nodes[i + 1],
				(graph->cnt - i - 1) * sizeof(struct sim_node *));
			graph->cnt--;
			i--;
		}
	}
	node_free(node);
	return SIM_OK;
}
EXPORT(cuGraphDestroyNode, (struct sim_node * n), remove_node(n))

static int dot(struct sim_graph *graph, const char *path)
{
	static const char *const names[] = {"kernel", "memcpy", "memset", "host",
					    "graph",  "empty",  "wait",   "record"};
	FILE *file = graph_check(graph) ? fopen(path, "we") : NULL;

	if (!file)
		return SIM_INVALID_VALUE;
	fprintf(file, "digraph simulated {\n");
	for (unsigned i = 0; i < graph->cnt; i++) {
		struct sim_node *n = graph->nodes[i];

		fprintf(file, "\t\"%p\" [label=\"%s\"]\n", (void *)n, names[n->type]);
		for (unsigned k = 0; k < n->dep_cnt; k++)
			fprintf(file, "\t\"%p\" -> \"%p\"\n", (void *)n->deps[k], (void *)n);
	}
	fprintf(file, "}\n");
	fclose(file);
	return SIM_OK;
}
EXPORT(cuGraphDebugDotPrint, (struct sim_graph * g, const char *path, unsigned flags), dot(g, path))

/* ---- user objects: counted, freed with the last reference the program holds ---- */
struct user_object {
	atomic_uint refs;
	void (*destroy)(void *);
	void *arg;
};

static int object_create(struct user_object **out, void *arg, void (*fn)(void *), unsigned refs)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return SIM_OUT_OF_MEMORY;
	atomic_init(&(*out)->refs, refs);
	(*out)->destroy = fn;
	(*out)->arg = arg;
	return SIM_OK;
}
EXPORT(cuUserObjectCreate,
       (struct user_object * *out, void *arg, void (*fn)(void *), unsigned refs, unsigned flags),
       object_create(out, arg, fn, refs))

static int object_release(struct user_object *object, unsigned cnt)
{
	if (atomic_fetch_sub(&object->refs, cnt) == cnt) {
		object->destroy(object->arg);
		free(object);
	}
	return SIM_OK;
}
EXPORT(cuUserObjectRelease, (struct user_object * o, unsigned cnt), object_release(o, cnt))
/* A graph that keeps an object keeps it for good: graphs do not release theirs. */
EXPORT(cuGraphRetainUserObject,
       (struct sim_graph * g, struct user_object *o, unsigned cnt, unsigned flags),
       (flags & 1 ? 0 : atomic_fetch_add(&o->refs, cnt), SIM_OK))
EXPORT(cuGraphReleaseUserObject, (struct sim_graph * g, struct user_object *o, unsigned cnt),
       object_release(o, cnt))
EXPORT(cuUserObjectRetain, (struct user_object * o, unsigned cnt),
       (atomic_fetch_add(&o->refs, cnt), SIM_OK))
