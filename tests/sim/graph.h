/*
 * tests/sim/graph.h: graphs as the driver's three graph files share them: nodes hold an operation that
 * every launch copies. Graph objects are not thread safe, as in CUDA; captures are one thread's.
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "sim.h"

#define GRAPH_MAGIC 0x47524150u
#define EXEC_MAGIC 0x45584543u

enum node_type {
	NODE_KERNEL,
	NODE_MEMCPY,
	NODE_MEMSET,
	NODE_HOST,
	NODE_GRAPH,
	NODE_EMPTY,
	NODE_WAIT_EVENT,
	NODE_RECORD_EVENT,
};

struct sim_node {
	enum node_type type;
	struct sim_graph *graph;
	struct sim_op *op; /* copied by every launch */
	struct sim_node **deps;
	unsigned dep_cnt;
	unsigned mark; /* scratch of whoever walks the graph: index + 1 */
	bool disabled;
	union {
		struct sim_kernel_node kernel;
		struct sim_memcpy3d copy;
		struct sim_memset_node set;
		struct sim_host_node host;
		struct sim_graph *child;
		struct sim_event *event;
	};
	void *param_copies;
};

struct sim_graph {
	unsigned magic;
	struct sim_node **nodes;
	unsigned cnt, cap;
};

struct exec_node {
	const struct sim_node *origin;
	enum node_type type;
	struct sim_op *op;
	struct sim_event *event;
	unsigned *deps;
	unsigned dep_cnt, branch;
	bool disabled, sink;
};

struct sim_exec {
	unsigned magic;
	unsigned id; /* as CUPTI tells graphs apart */
	unsigned long long flags;
	struct exec_node *nodes; /* dependencies first */
	unsigned cnt;
	struct sim_stream **branches; /* internal streams, one for each chain of nodes */
	unsigned branch_cnt;
	struct sim_op *last; /* end of the last launch: the next one waits for it */
};

struct sim_graph *graph_check(void *handle);
struct sim_graph *graph_new(void);
void graph_free(struct sim_graph *graph);
struct sim_node *graph_add(struct sim_graph *graph, enum node_type type, struct sim_op *op,
			   struct sim_node *const *deps, size_t dep_cnt);
int node_dep(struct sim_node *node, struct sim_node *on);

#endif
