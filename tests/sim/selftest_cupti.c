/*
 * tests/sim/selftest_cupti.c: the look-alike of CUPTI tested by itself, run by tests/e2e/test_sim_cupti.sh. The
 * program works on its GPUs, from two threads, and writes a line for each record that it is given, with
 * its times brought back to CLOCK_MONOTONIC; the test holds these against the simulator's truth.
 *
 *   selftest_cupti OUT [graph] [quiet]   graph: graphs as a whole; quiet: only what the driver says unasked
 *
 * Prints what failed, exits with the number of failures.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cupti_types.h"

enum { H2D = 1, D2H = 2, ROUNDS = 60, BUFFER_BYTES = 2048 };
struct dim3 {
	unsigned x, y, z;
};

int cudaGetDeviceCount(int *);
int cudaSetDevice(int);
int cudaMalloc(void **, size_t);
int cudaMallocHost(void **, size_t);
int cudaMemcpyAsync(void *, const void *, size_t, int, void *);
int cudaMemcpyPeerAsync(void *, int, const void *, int, size_t, void *);
int cudaMemsetAsync(void *, int, size_t, void *);
int cudaStreamCreateWithFlags(void **, unsigned);
int cudaStreamSynchronize(void *);
int cudaStreamBeginCapture(void *, int);
int cudaStreamEndCapture(void *, void **);
int cudaGraphInstantiate(void **, void *, unsigned long long);
int cudaGraphLaunch(void *, void *);
int cudaGraphExecDestroy(void *);
int cudaGraphDestroy(void *);
int cudaDeviceSynchronize(void);
int cudaLaunchKernel(const void *, struct dim3, struct dim3, void **, size_t, void *);
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *,
			    void *, void *, int *);

static struct {
	int (*Subscribe)(void **, void *, void *);
	int (*Unsubscribe)(void *);
	int (*GetTimestamp)(uint64_t *);
	int (*GetVersion)(uint32_t *);
	int (*GetCallbackName)(unsigned, uint32_t, const char **);
	int (*GetResultString)(int, const char **);
	int (*GetStreamIdEx)(void *, void *, uint8_t, uint32_t *);
	int (*SetThreadIdType)(int);
	int (*Finalize)(void);
	int (*ActivityEnable)(unsigned);
	int (*ActivityDisable)(unsigned);
	int (*ActivityEnableDriverApi)(uint32_t, uint8_t);
	int (*ActivityEnableHWTrace)(uint8_t);
	int (*ActivityRegisterCallbacks)(cupti_wanted *, cupti_completed *);
	int (*ActivityGetNextRecord)(uint8_t *, size_t, void **);
	int (*ActivityGetNumDroppedRecords)(void *, uint32_t, size_t *);
	int (*ActivityFlushAll)(uint32_t);
	int (*ActivityFlushPeriod)(uint32_t);
	int (*ActivitySetAttribute)(unsigned, size_t *, void *);
	int (*ActivityGetAttribute)(unsigned, size_t *, void *);
} cupti;

static int failures;
#define WANT(x) \
	do { \
		if (!(x)) { \
			printf("selftest_cupti: line %d: %s\n", __LINE__, #x); \
			failures++; \
		} \
	} while (0)

static void load(void)
{
	void *lib = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		printf("selftest_cupti: %s\n", dlerror());
		exit(1);
	}
#define FIND(name) *(void **)&cupti.name = dlsym(lib, "cupti" #name)
	FIND(Subscribe);
	FIND(Unsubscribe);
	FIND(GetTimestamp);
	FIND(GetVersion);
	FIND(GetCallbackName);
	FIND(GetResultString);
	FIND(GetStreamIdEx);
	FIND(SetThreadIdType);
	FIND(Finalize);
	FIND(ActivityEnable);
	FIND(ActivityDisable);
	FIND(ActivityEnableDriverApi);
	FIND(ActivityEnableHWTrace);
	FIND(ActivityRegisterCallbacks);
	FIND(ActivityGetNextRecord);
	FIND(ActivityGetNumDroppedRecords);
	FIND(ActivityFlushAll);
	FIND(ActivityFlushPeriod);
	FIND(ActivitySetAttribute);
	FIND(ActivityGetAttribute);
#undef FIND
}

/* ---- the clock: two readings, between which a line is drawn ---- */
struct reading {
	uint64_t monotonic, cupti;
};
static struct reading first, last;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct reading read_clocks(void)
{
	struct reading best = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 50; i++) {
		uint64_t before = now_ns(), between, after;

		cupti.GetTimestamp(&between);
		after = now_ns();
		if (after - before < least) {
			least = after - before;
			best = (struct reading){before + least / 2, between};
		}
	}
	return best;
}

static uint64_t monotonic(uint64_t at)
{
	double per =
		(double)(last.monotonic - first.monotonic) / (double)(last.cupti - first.cupti);

	return first.monotonic + (uint64_t)(int64_t)((double)(int64_t)(at - first.cupti) * per);
}

/* ---- records: kept until the clock is known ---- */
struct line {
	struct line *next;
	union {
		int32_t kind;
		struct cupti_kernel kernel;
		struct cupti_copy copy;
		struct cupti_peer_copy peer;
		struct cupti_set set;
		struct cupti_call call;
		struct cupti_graph graph;
	};
};

static struct line *lines;
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int buffers_out, buffers_by_others;
static pthread_t main_thread;

static void wanted(uint8_t **buffer, size_t *bytes, size_t *record_max)
{
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*bytes = BUFFER_BYTES;
	*record_max = 0;
	atomic_fetch_add(&buffers_out, 1);
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	void *record = NULL;

	WANT(valid && valid <= bytes && !stream && !context);
	if (!pthread_equal(pthread_self(), main_thread))
		atomic_fetch_add(&buffers_by_others, 1);
	while (cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_OK) {
		struct line *line = calloc(1, sizeof(*line));
		size_t left = (size_t)(buffer + valid - (uint8_t *)record);
		size_t most = sizeof(*line) - offsetof(struct line, kind);

		memcpy(&line->kind, record, left < most ? left : most);
		pthread_mutex_lock(&lines_lock);
		line->next = lines;
		lines = line;
		pthread_mutex_unlock(&lines_lock);
	}
	free(buffer);
	atomic_fetch_sub(&buffers_out, 1);
}

static void write_op(FILE *out, const char *kind, unsigned device, unsigned stream, uint64_t start,
		     uint64_t end, uint64_t size, unsigned correlation, unsigned graph,
		     const char *name)
{
	fprintf(out, "%s\t%u\t%u\t%llu\t%llu\t%llu\t%u\t%u\t%s\n", kind, device, stream,
		(unsigned long long)(start ? monotonic(start) : 0),
		(unsigned long long)(end ? monotonic(end) : 0), (unsigned long long)size,
		correlation, graph, name);
}

static void write_line(FILE *out, const struct line *l)
{
	const char *name = "?";

	switch (l->kind) {
	case KIND_KERNEL:
	case KIND_CONCURRENT_KERNEL:
		write_op(out, "kernel", l->kernel.device, l->kernel.stream, l->kernel.start,
			 l->kernel.end,
			 (uint64_t)l->kernel.grid[0] * (unsigned)l->kernel.grid[1] *
				 (unsigned)l->kernel.grid[2],
			 l->kernel.correlation, l->kernel.graph, l->kernel.name);
		break;
	case KIND_MEMCPY:
		write_op(out, "copy", l->copy.device, l->copy.stream, l->copy.start, l->copy.end,
			 l->copy.bytes, l->copy.correlation, l->copy.graph, "-");
		break;
	case KIND_MEMCPY2:
		WANT(l->peer.src_device != l->peer.dst_device && l->peer.copy_kind == COPY_PTOP);
		write_op(out, "copy", l->peer.device, l->peer.stream, l->peer.start, l->peer.end,
			 l->peer.bytes, l->peer.correlation, l->peer.graph, "-");
		break;
	case KIND_MEMSET:
		write_op(out, "set", l->set.device, l->set.stream, l->set.start, l->set.end,
			 l->set.bytes, l->set.correlation, l->set.graph, "-");
		break;
	case KIND_GRAPH_TRACE:
		write_op(out, "graph", l->graph.device, l->graph.stream, l->graph.start,
			 l->graph.end, 0, l->graph.correlation, l->graph.graph, "-");
		break;
	case KIND_DRIVER:
		WANT(!cupti.GetCallbackName(CUPTI_DOMAIN_DRIVER, l->call.cbid, &name));
		WANT(l->call.process == (uint32_t)getpid());
		write_op(out, "call", 0, l->call.thread, l->call.start, l->call.end, l->call.result,
			 l->call.correlation, 0, name);
		break;
	default:
		WANT(!"a kind of record that was not asked for");
	}
}

/* ---- the work ---- */
static char stub_add;

static void register_code(void)
{
	static struct {
		int magic, version;
		const void *data;
		void *unused;
	} wrapper = {0x466243b1, 1, "code", NULL};
	void **code = __cudaRegisterFatBinary(&wrapper);

	__cudaRegisterFunction(code, &stub_add, NULL, "_Z3addPii", -1, NULL, NULL, NULL, NULL,
			       NULL);
	__cudaRegisterFatBinaryEnd(code);
}

static int launch(void *stream, unsigned blocks)
{
	int *p = NULL, n = 0;
	void *args[] = {&p, &n};

	return cudaLaunchKernel(&stub_add, (struct dim3){blocks, 2, 1}, (struct dim3){32, 1, 1},
				args, 0, stream);
}

static void pause_us(long us)
{
	nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

static void *work(void *arg)
{
	int device = *(int *)arg, other = 1 - device;
	void *streams[2], *p = NULL, *q = NULL, *host = NULL, *graph = NULL, *exec = NULL;
	uint32_t id = 0;

	WANT(!cudaSetDevice(other) && !cudaMalloc(&q, 65536));
	WANT(!cudaSetDevice(device) && !cudaMalloc(&p, 65536) && !cudaMallocHost(&host, 65536));
	for (int i = 0; i < 2; i++)
		WANT(!cudaStreamCreateWithFlags(&streams[i], 1));
	WANT(!cupti.GetStreamIdEx(NULL, streams[0], 0, &id) && id);
	WANT(!cudaStreamBeginCapture(streams[0], 1) && !launch(streams[0], 7) &&
	     !cudaMemcpyAsync(p, host, 4096, H2D, streams[0]) && !launch(streams[0], 8));
	WANT(!cudaStreamEndCapture(streams[0], &graph) && !cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < ROUNDS; i++) {
		WANT(!launch(streams[0], (unsigned)i + 1));
		WANT(!cudaMemcpyAsync(p, host, 65536, H2D, streams[1]));
		WANT(!cudaMemsetAsync(p, i, 1024, streams[1]));
		if (i % 10 == 0)
			WANT(!cudaGraphLaunch(exec, streams[0]));
		if (i % 15 == 0)
			WANT(!cudaMemcpyPeerAsync(q, other, p, device, 32768, streams[1]));
		if (i % 20 == 0)
			WANT(!cudaStreamSynchronize(streams[0]));
		pause_us(100);
	}
	WANT(!cudaDeviceSynchronize());
	WANT(!cudaGraphExecDestroy(exec) && !cudaGraphDestroy(graph));
	return NULL;
}

static void never(void)
{
}

static void check_interface(void)
{
	void *handle = NULL, *second = NULL;
	const char *text = NULL;
	uint32_t version = 0;
	size_t size = sizeof(size_t), value = 8 << 20;

	WANT(!cupti.GetVersion(&version) && version == CUPTI_VERSION);
	WANT(!cupti.Subscribe(&handle, (void *)(uintptr_t)never, NULL) && handle);
	WANT(cupti.Subscribe(&second, (void *)(uintptr_t)never, NULL) ==
	     CUPTI_MULTIPLE_SUBSCRIBERS);
	WANT(!cupti.GetResultString(CUPTI_MULTIPLE_SUBSCRIBERS, &text) &&
	     strstr(text, "MULTIPLE_SUBSCRIBERS"));
	WANT(!cupti.Unsubscribe(handle) && cupti.Unsubscribe(handle) == CUPTI_BAD_PARAMETER);
	WANT(!cupti.Subscribe(&handle, (void *)(uintptr_t)never, NULL));
	WANT(!cupti.ActivitySetAttribute(0, &size, &value) && (value = 0, 1) &&
	     !cupti.ActivityGetAttribute(0, &size, &value) && value == 8 << 20);
	WANT(cupti.ActivityEnable(1000) == CUPTI_BAD_KIND);
	WANT(cupti.ActivityEnableHWTrace(1) == CUPTI_UNSUPPORTED);
	WANT(cupti.ActivityFlushAll(0) == CUPTI_BAD_OPERATION);
	WANT(!cupti.SetThreadIdType(CUPTI_THREAD_SYSTEM));
}

static uint32_t cbid_of(const char *function)
{
	const char *name;

	for (uint32_t id = 1; id < 1000; id++)
		if (!cupti.GetCallbackName(CUPTI_DOMAIN_DRIVER, id, &name) &&
		    !strcmp(name, function))
			return id;
	WANT(!"a function without a number");
	return 0;
}

static void switch_on(bool graphs)
{
	static const char *const calls[] = {"cuLaunchKernel",       "cuLaunchKernel_ptsz",
					    "cuMemcpyAsync",        "cuMemcpyHtoDAsync_v2",
					    "cuMemcpyPeerAsync",    "cuMemsetD8Async",
					    "cuMemcpyDtoHAsync_v2", "cuGraphLaunch"};

	WANT(!cupti.ActivityRegisterCallbacks(wanted, completed));
	WANT(!cupti.ActivityFlushPeriod(20));
	WANT(!cupti.ActivityEnable(KIND_CONCURRENT_KERNEL) && !cupti.ActivityEnable(KIND_MEMCPY) &&
	     !cupti.ActivityEnable(KIND_MEMCPY2) && !cupti.ActivityEnable(KIND_MEMSET));
	if (graphs)
		WANT(!cupti.ActivityEnable(KIND_GRAPH_TRACE));
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		WANT(!cupti.ActivityEnableDriverApi(cbid_of(calls[i]), 1));
}

int main(int argc, char **argv)
{
	bool graphs = argc > 2 && !strcmp(argv[2], "graph");
	int devices[2] = {0, 1}, cnt = 0;
	pthread_t threads[2];
	size_t dropped = 0;
	void *handle;
	FILE *out;

	main_thread = pthread_self();
	load();
	if (argc > 2 && !strcmp(argv[2], "taken")) {
		WANT(cupti.Subscribe(&handle, (void *)(uintptr_t)never, NULL) ==
		     CUPTI_MULTIPLE_SUBSCRIBERS);
		return failures;
	}
	check_interface();
	register_code();
	first = read_clocks();
	switch_on(graphs);
	WANT(!cudaGetDeviceCount(&cnt) && cnt == 2);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, &devices[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	last = read_clocks();
	WANT(!cupti.ActivityFlushAll(0));
	WANT(!cupti.ActivityGetNumDroppedRecords(NULL, 0, &dropped));
	WANT(!cupti.Finalize());
	WANT(!atomic_load(&buffers_out) && atomic_load(&buffers_by_others) > 4);
	out = argc > 1 ? fopen(argv[1], "w") : NULL;
	WANT(out);
	if (!out)
		return failures;
	fprintf(out, "dropped\t%zu\n", dropped);
	for (struct line *line = lines, *next; line; line = next) {
		next = line->next;
		write_line(out, line);
		free(line);
	}
	fclose(out);
	printf("selftest_cupti: %d failures\n", failures);
	return failures;
}
