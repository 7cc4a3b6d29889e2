/*
 * tests/sim/driver_graph_exec.c: instantiated graphs. Instantiation sorts the nodes and lays chains of
 * them onto internal streams; a launch copies every node's operation there, between two marks in the
 * stream it was launched into. Instantiation locks the context and costs time per node, as measured.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

static struct sim_exec *exec_check(void *handle)
{
	struct sim_exec *exec = handle;

	return exec && exec->magic == EXEC_MAGIC ? exec : NULL;
}

static unsigned count(const struct sim_graph *graph)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < graph->cnt; i++)
		cnt += 1 + (graph->nodes[i]->type == NODE_GRAPH ? 1 + count(graph->nodes[i]->child)
								: 0);
	return cnt;
}

static unsigned place(struct sim_exec *exec, struct sim_node *node, enum node_type type)
{
	struct exec_node *e = &exec->nodes[exec->cnt++];

	memset(e, 0, sizeof(*e));
	e->origin = node;
	e->type = type;
	e->op = node && node->op ? sim_op_clone(node->op) : NULL;
	if (type == NODE_RECORD_EVENT || type == NODE_WAIT_EVENT)
		e->event = node->event;
	e->disabled = node && node->disabled;
	e->sink = true;
	return exec->cnt;
}

static void depend(struct sim_exec *exec, unsigned node, unsigned on)
{
	struct exec_node *e = &exec->nodes[node - 1];

	e->deps = realloc(e->deps, (e->dep_cnt + 1) * sizeof(unsigned));
	if (!e->deps)
		abort();
	e->deps[e->dep_cnt++] = on - 1;
	exec->nodes[on - 1].sink = false;
}

/* Dependencies first; a child graph stands between an entry and an exit node. Marks hold the index + 1
 * of the node whose end is the node's end. */
static bool flatten(struct sim_exec *exec, struct sim_graph *graph, unsigned entry)
{
	unsigned left = graph->cnt;

	for (unsigned i = 0; i < graph->cnt; i++)
		graph->nodes[i]->mark = 0;
	while (left) {
		unsigned before = left;

		for (unsigned i = 0; i < graph->cnt; i++) {
			struct sim_node *n = graph->nodes[i];
			bool ready = !n->mark;
			unsigned me;

			for (unsigned k = 0; ready && k < n->dep_cnt; k++)
				ready = n->deps[k]->mark;
			if (!ready)
				continue;
			me = place(exec, n, n->type == NODE_GRAPH ? NODE_EMPTY : n->type);
			for (unsigned k = 0; k < n->dep_cnt; k++)
				depend(exec, me, n->deps[k]->mark);
			if (!n->dep_cnt && entry)
				depend(exec, me, entry);
			n->mark = me;
			left--;
			if (n->type == NODE_GRAPH) {
				unsigned first = exec->cnt, last;

				if (!flatten(exec, n->child, me))
					return false;
				last = place(exec, n, NODE_EMPTY);
				depend(exec, last, me);
				for (unsigned k = first + 1; k < last; k++)
					if (exec->nodes[k - 1].sink)
						depend(exec, last, k);
				n->mark = last;
			}
		}
		if (left == before)
			return false; /* a circle */
	}
	return true;
}

/* A node continues the chain of its first dependency, if that is nobody else's yet. */
static void lay_out(struct sim_exec *exec)
{
	bool *continued = calloc(exec->cnt + 1, sizeof(bool));

	if (!continued)
		abort();
	exec->branch_cnt = 0;
	for (unsigned i = 0; i < exec->cnt; i++) {
		struct exec_node *e = &exec->nodes[i];
		unsigned k;

		for (k = 0; k < e->dep_cnt && continued[e->deps[k]]; k++)
			;
		if (k < e->dep_cnt) {
			continued[e->deps[k]] = true;
			e->branch = exec->nodes[e->deps[k]].branch;
		} else {
			e->branch = exec->branch_cnt++;
		}
	}
	free(continued);
}

static void exec_free(struct sim_exec *exec)
{
	for (unsigned i = 0; i < exec->cnt; i++) {
		sim_op_put(exec->nodes[i].op);
		free(exec->nodes[i].deps);
	}
	for (unsigned i = 0; exec->branches && i < exec->branch_cnt; i++)
		sim_stream_retire(exec->branches[i]);
	sim_op_put(exec->last);
	free(exec->branches);
	free(exec->nodes);
	exec->magic = 0;
	free(exec);
}

static struct sim_exec *exec_new(struct sim_graph *graph, unsigned long long flags)
{
	static atomic_uint exec_cnt;
	struct sim_exec *exec = calloc(1, sizeof(*exec));

	if (!exec)
		abort();
	exec->magic = EXEC_MAGIC;
	exec->id = atomic_fetch_add(&exec_cnt, 1) + 1;
	exec->flags = flags;
	exec->nodes = calloc(count(graph) + 1, sizeof(*exec->nodes));
	if (!exec->nodes)
		abort();
	if (!flatten(exec, graph, 0)) {
		exec_free(exec);
		return NULL;
	}
	lay_out(exec);
	return exec;
}

static int instantiate(struct sim_exec **out, struct sim_graph *graph, unsigned long long flags)
{
	struct sim_exec *exec;
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);
	unsigned held;

	if (rc || !out || !graph_check(graph))
		return rc ? rc : SIM_INVALID_VALUE;
	held = sim_lock(HOLD_CTX_WRITE | HOLD_PROCESS, ctx->dev);
	exec = exec_new(graph, flags);
	sim_host_work(FN_cuGraphInstantiateWithFlags, 10000 + graph->cnt * 2300ull);
	sim_unlock(held, ctx->dev);
	if (!exec)
		return SIM_INVALID_VALUE;
	*out = exec;
	return SIM_OK;
}
EXPORT(cuGraphInstantiateWithFlags,
       (struct sim_exec * *out, struct sim_graph *g, unsigned long long flags),
       instantiate(out, g, flags))
EXPORT(cuGraphInstantiate,
       (struct sim_exec * *out, struct sim_graph *g, void **bad, char *log, size_t n),
       instantiate(out, g, 0))
EXPORT(cuGraphInstantiate_v2,
       (struct sim_exec * *out, struct sim_graph *g, void **bad, char *log, size_t n),
       instantiate(out, g, 0))
EXPORT(cuGraphInstantiateWithParams,
       (struct sim_exec * *out, struct sim_graph *g, struct sim_instantiate_params *p),
       (p->result = 0, instantiate(out, g, p->flags)))
EXPORT(cuGraphInstantiateWithParams_ptsz,
       (struct sim_exec * *out, struct sim_graph *g, struct sim_instantiate_params *p),
       (p->result = 0, instantiate(out, g, p->flags)))

static int exec_destroy(struct sim_exec *exec)
{
	unsigned held;

	if (!exec_check(exec))
		return SIM_INVALID_VALUE;
	held = sim_lock(HOLD_PROCESS, 0);
	sim_host_work(FN_cuGraphExecDestroy, 3000 + exec->cnt * 100ull);
	exec_free(exec);
	sim_unlock(held, 0);
	return SIM_OK;
}
EXPORT(cuGraphExecDestroy, (struct sim_exec * e), exec_destroy(e))
EXPORT(cuGraphExecGetFlags, (struct sim_exec * e, unsigned long long *out),
       exec_check(e) ? (*out = e->flags, SIM_OK) : SIM_INVALID_VALUE)

/* ---- launching ---- */
static struct sim_op *copy_of(const struct exec_node *e)
{
	return e->op && !e->disabled ? sim_op_clone(e->op) : sim_op_new(OP_MARK, 0);
}

static void record(struct sim_event *event, struct sim_op *op)
{
	struct sim_op *old;

	sim_op_get(op);
	sim_spin_lock(&sim_engine);
	old = event->op;
	event->op = op;
	sim_spin_unlock(&sim_engine);
	sim_op_put(old);
}

static void submit_all(struct sim_exec *exec, struct sim_stream *stream)
{
	struct sim_op **ops = calloc(exec->cnt + 1, sizeof(*ops)), *begin, *end;
	unsigned work_cnt = 0;

	if (!ops)
		abort();
	for (unsigned i = 0; i < exec->cnt; i++)
		work_cnt += exec->nodes[i].op && !exec->nodes[i].disabled &&
			    sim_op_counts(exec->nodes[i].op);
	begin = sim_op_new(OP_MARK, 2000);
	sim_op_dep(begin, exec->last);
	sim_submit(stream, begin, &begin);
	end = sim_op_new(OP_MARK, 0);
	for (unsigned i = 0; i < exec->cnt; i++) {
		const struct exec_node *e = &exec->nodes[i];
		struct sim_op *op = copy_of(e);

		op->graph = exec->id;
		op->graph_ops = work_cnt;
		op->graph_node = (uint64_t)exec->id << 32 | (i + 1);
		op->as_stream = e->branch ? 0 : (unsigned)stream->id;
		if (!e->dep_cnt)
			sim_op_dep(op, begin);
		for (unsigned k = 0; k < e->dep_cnt; k++)
			sim_op_dep(op, ops[e->deps[k]]);
		if (e->type == NODE_WAIT_EVENT && e->event)
			sim_op_dep(op, e->event->op);
		sim_submit(exec->branches[e->branch], op, &ops[i]);
		if (e->type == NODE_RECORD_EVENT)
			record(e->event, ops[i]);
		if (e->sink)
			sim_op_dep(end, ops[i]);
	}
	sim_op_put(exec->last);
	sim_submit(stream, end, &exec->last);
	for (unsigned i = 0; i < exec->cnt; i++)
		sim_op_put(ops[i]);
	sim_op_put(begin);
	free(ops);
}

static void make_branches(struct sim_exec *exec, struct sim_ctx *ctx)
{
	exec->branches = calloc(exec->branch_cnt + 1, sizeof(struct sim_stream *));
	if (!exec->branches)
		abort();
	for (unsigned i = 0; i < exec->branch_cnt; i++) {
		exec->branches[i] = sim_stream_new(ctx, 1, 0);
		exec->branches[i]->internal = true;
	}
}

/* A graph launched into a capturing stream becomes a chain of its nodes: their order is kept, their
 * concurrency is not. */
static int capture_all(struct sim_exec *exec, struct sim_stream *stream)
{
	for (unsigned i = 0; i < exec->cnt; i++) {
		int rc = sim_capture(stream, copy_of(&exec->nodes[i]), NULL);

		if (rc)
			return rc;
	}
	return SIM_OK;
}

static int launch(struct sim_exec *exec, void *handle, bool per_thread)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);
	unsigned held;

	if (rc || !exec_check(exec))
		return rc ? rc : SIM_INVALID_VALUE;
	sim_note_stream(handle);
	if (sim_capturing(stream))
		return capture_all(exec, stream);
	sim_wait_room(stream, WHY_QUEUE);
	held = sim_lock(HOLD_CTX_READ, stream->ctx->dev);
	if (!exec->branches)
		make_branches(exec, stream->ctx);
	submit_all(exec, stream);
	sim_unlock(held, stream->ctx->dev);
	return SIM_OK;
}
EXPORT(cuGraphLaunch, (struct sim_exec * e, void *h), launch(e, h, false))
EXPORT(cuGraphLaunch_ptsz, (struct sim_exec * e, void *h), launch(e, h, true))
EXPORT(cuGraphUpload, (struct sim_exec * e, void *h), exec_check(e) ? SIM_OK : SIM_INVALID_VALUE)
EXPORT(cuGraphUpload_ptsz, (struct sim_exec * e, void *h),
       exec_check(e) ? SIM_OK : SIM_INVALID_VALUE)

/* ---- changing ---- */
static int replace(struct sim_exec *exec, const struct sim_node *node, enum node_type type,
		   struct sim_op *op)
{
	if (exec_check(exec) && op)
		for (unsigned i = 0; i < exec->cnt; i++)
			if (exec->nodes[i].origin == node && exec->nodes[i].type == type) {
				sim_op_put(exec->nodes[i].op);
				exec->nodes[i].op = op;
				return SIM_OK;
			}
	sim_op_put(op);
	return SIM_INVALID_VALUE;
}

static struct sim_op *kernel_op(const struct sim_kernel_node *p, bool second)
{
	struct sim_kernel *kernel = sim_kernel_check(p->func);

	if (!kernel && second)
		kernel = sim_kernel_check(p->kernel);
	return kernel ? sim_kernel_op(kernel, p->grid, p->block, p->params, p->extra) : NULL;
}
#define SET_PARAMS struct sim_exec *e, struct sim_node *n
EXPORT(cuGraphExecKernelNodeSetParams, (SET_PARAMS, const struct sim_kernel_node *p),
       replace(e, n, NODE_KERNEL, kernel_op(p, false)))
EXPORT(cuGraphExecKernelNodeSetParams_v2, (SET_PARAMS, const struct sim_kernel_node *p),
       replace(e, n, NODE_KERNEL, kernel_op(p, true)))
EXPORT(cuGraphExecMemcpyNodeSetParams, (SET_PARAMS, const struct sim_memcpy3d *p, void *ctx),
       replace(e, n, NODE_MEMCPY, sim_copy_op(p)))
EXPORT(cuGraphExecMemsetNodeSetParams, (SET_PARAMS, const struct sim_memset_node *p, void *ctx),
       replace(e, n, NODE_MEMSET,
	       sim_set_op(p->dst, p->pitch, p->value, p->element, p->width, p->height)))
EXPORT(cuGraphExecHostNodeSetParams, (SET_PARAMS, const struct sim_host_node *p),
       replace(e, n, NODE_HOST, sim_host_op(p->fn, p->arg)))

static int set_enabled(struct sim_exec *exec, struct sim_node *node, unsigned *get, unsigned set)
{
	for (unsigned i = 0; exec_check(exec) && i < exec->cnt; i++)
		if (exec->nodes[i].origin == node) {
			if (get)
				*get = !exec->nodes[i].disabled;
			else
				exec->nodes[i].disabled = !set;
			return SIM_OK;
		}
	return SIM_INVALID_VALUE;
}
EXPORT(cuGraphNodeSetEnabled, (SET_PARAMS, unsigned on), set_enabled(e, n, NULL, on))
EXPORT(cuGraphNodeGetEnabled, (SET_PARAMS, unsigned *out), set_enabled(e, n, out, 0))

/* The other graph must have the same shape: same types in the same order with as many edges. */
static int update(struct sim_exec *exec, struct sim_graph *graph, int *result)
{
	struct sim_exec *fresh;

	if (!exec_check(exec) || !graph_check(graph))
		return SIM_INVALID_VALUE;
	fresh = exec_new(graph, exec->flags);
	if (!fresh)
		return SIM_INVALID_VALUE;
	*result = fresh->cnt == exec->cnt ? 0 : 2;
	for (unsigned i = 0; !*result && i < exec->cnt; i++)
		if (fresh->nodes[i].type != exec->nodes[i].type)
			*result = 3;
		else if (fresh->nodes[i].dep_cnt != exec->nodes[i].dep_cnt)
			*result = 2;
	for (unsigned i = 0; !*result && i < exec->cnt; i++) {
		struct sim_op *op = exec->nodes[i].op;

		exec->nodes[i].op = fresh->nodes[i].op;
		fresh->nodes[i].op = op;
	}
	exec_free(fresh);
	return *result ? SIM_GRAPH_UPDATE_FAILURE : SIM_OK;
}

static int update_info(struct sim_exec *exec, struct sim_graph *graph,
		       struct sim_update_result *out)
{
	int result = 1, rc = update(exec, graph, &result);

	if (out)
		*out = (struct sim_update_result){result, NULL, NULL};
	return rc;
}
EXPORT(cuGraphExecUpdate_v2,
       (struct sim_exec * e, struct sim_graph *g, struct sim_update_result *out),
       update_info(e, g, out))
EXPORT(cuGraphExecUpdate, (struct sim_exec * e, struct sim_graph *g, void **bad, int *result),
       update(e, g, result))
