/*
 * tests/sim/selftest_nccl_plugin.c: a profiler plugin for the look-alike of NCCL that has the interface of
 * one version, PLUGIN_VERSION, and prints each event that it gets into $PLUGIN_OUT.<pid>: what, its number, its
 * parent's, thread, and what is in it. It is made once for each version, and loaded by NCCL.
 */
#include "nccl_events.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TEXT_OF(x) #x
#define NAME_OF(version) "plugin " TEXT_OF(version)
#define PASTE(a, b) a##b
#define SYMBOL_OF(version) PASTE(ncclProfiler_v, version)

struct seen {
	long number;
};

static FILE *file;
static atomic_long events;

static long number_of(void *event)
{
	return event ? ((struct seen *)event)->number : 0;
}

static int begin(void **context, int *mask)
{
	char path[512];
	const char *out = getenv("PLUGIN_OUT"), *wanted = getenv("PLUGIN_MASK");

	if (!file) {
		snprintf(path, sizeof(path), "%s.%d", out ? out : "plugin", (int)getpid());
		file = fopen(path, "we");
	}
	*context = file;
	*mask = wanted ? atoi(wanted) : 0xfff;
	return file ? 0 : 1;
}

#if PLUGIN_VERSION <= 3
static int init1(void **context, int *mask)
{
	return begin(context, mask);
}

#else
static int init4(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
		 int rank, void *log)
{
	int rc = begin(context, mask);

	if (!rc)
		fprintf(file, "init hash %#llx rank %d of %d on %d\n", (unsigned long long)hash,
			rank, ranks, nodes);
	return rc;
}

#if PLUGIN_VERSION >= 5
static int init5(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks,
		 int rank, void *log)
{
	return init4(context, mask, name, hash, nodes, ranks, rank, log);
}
#endif
#endif

/* The fields that all versions name alike; texts are numbers in version 1. */
#if PLUGIN_VERSION == 1
#define TEXT "%d"
#else
#define TEXT "%s"
#endif
#define COLL(e) \
	fprintf(file, "seq %llu func " TEXT " count %zu root %d type " TEXT " channels %d", \
		(unsigned long long)(e)->coll.sequence, (e)->coll.func, (e)->coll.count, \
		(e)->coll.root, (e)->coll.type, (e)->coll.channels)
#define P2P(e) \
	fprintf(file, "func " TEXT " count %zu peer %d type " TEXT, (e)->p2p.func, (e)->p2p.count, \
		(e)->p2p.peer, (e)->p2p.type)
#define EVENT_OF(version) PASTE(event, version)

#if PLUGIN_VERSION == 6
typedef struct event5 event;
#else
typedef struct EVENT_OF(PLUGIN_VERSION) event;
#endif

static void print_event(const event *e)
{
	switch (e->type) {
	case EVENT_COLL:
		COLL(e);
#if PLUGIN_VERSION < 4
		fprintf(file, " hash %#llx", (unsigned long long)e->coll.comm_hash);
#elif PLUGIN_VERSION >= 5
		fprintf(file, " group %ld", number_of(e->coll.group));
#endif
		break;
	case EVENT_P2P:
		P2P(e);
		break;
#if PLUGIN_VERSION == 3
	case EVENT_KERNEL_CH:
		fprintf(file, "channel %d", e->kernel.channel);
		break;
#elif PLUGIN_VERSION >= 4
	case EVENT_KERNEL_CH:
		fprintf(file, "channel %d timer %llu", e->kernel.channel,
			(unsigned long long)e->kernel.timer);
		break;
#endif
#if PLUGIN_VERSION >= 5
	case EVENT_COLL_API:
		fprintf(file, "func %s count %zu", e->coll_api.func, e->coll_api.count);
		break;
	case EVENT_P2P_API:
		fprintf(file, "func %s count %zu", e->p2p_api.func, e->p2p_api.count);
		break;
#endif
	default:
		break;
	}
}

static int start(void *context, void **out, void *description)
{
	static const char *const types[] = {"group",    "coll",    "p2p",    "proxyop",
					    "step",     "ctrl",    "kernel", "net",
					    "groupapi", "collapi", "p2papi", "launch"};
	const event *e = description;
	struct seen *seen = malloc(sizeof(*seen));

	if (!seen)
		return 1;
	seen->number = atomic_fetch_add(&events, 1) + 1;
	flockfile(file);
	fprintf(file, "start %s %ld parent %ld thread %ld ", types[__builtin_ctzll(e->type)],
		seen->number, number_of(e->parent), (long)syscall(SYS_gettid));
	print_event(e);
	fputc('\n', file);
	funlockfile(file);
	*out = seen;
	return 0;
}

static int stop(void *seen)
{
	fprintf(file, "stop %ld thread %ld\n", number_of(seen), (long)syscall(SYS_gettid));
	return 0; /* a later event may still name it as its parent */
}

static int state(void *seen, int what, void *arguments)
{
	const union event_state *a = arguments;

	fprintf(file, "state %ld %d timer %llu\n", number_of(seen), what,
		what == STATE_KERNEL_CH_STOP ? (unsigned long long)a->kernel.timer : 0);
	return 0;
}

static int finalize(void *context)
{
	fprintf(file, "finalize\n");
	fflush(file);
	return 0;
}

__attribute__((visibility("default"))) struct plugin SYMBOL_OF(PLUGIN_VERSION) = {
	.name = NAME_OF(PLUGIN_VERSION),
#if PLUGIN_VERSION <= 3
	.init1 = init1,
#elif PLUGIN_VERSION == 4
	.init4 = init4,
#else
	.init5 = init5,
#endif
	.start = start,
	.stop = stop,
	.state = state,
	.finalize = finalize,
};
