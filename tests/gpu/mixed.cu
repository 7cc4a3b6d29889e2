/*
 * tests/gpu/mixed.cu: a bit of everything a CUDA program does, with results that are checked and
 * printed as checksums: no times, no addresses, so that two runs print the same. The audit runs it
 * bare, under cudaspy and under CUPTI, linked to the shared and to the static runtime.
 *
 *   mixed [SECTION...]
 *
 * The sections that copy are in mixed_copies.cu.
 */
#include "mixed.h"

int failures;

/* ---- the kernel and what it should give ----------------------------------------------------- */

static __host__ __device__ unsigned mixed_value(unsigned value, unsigned seed)
{
	return value * 1664525u + 1013904223u + seed;
}

extern "C" __global__ void mix(unsigned *values, unsigned count, unsigned seed)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		values[i] = mixed_value(values[i], seed);
}

/* What the simulator calls in place of the kernel, and the sizes of its arguments; a GPU never
 * does. */
extern "C" const unsigned spysim_sizes_mix[];
const unsigned spysim_sizes_mix[] = {sizeof(unsigned *), sizeof(unsigned), sizeof(unsigned), 0};
extern "C" void spysim_kernel_mix(void **args, const unsigned *, const unsigned *)
{
	unsigned *values = *(unsigned **)args[0], count = *(unsigned *)args[1], i;

	for (i = 0; i < count; i++)
		values[i] = mixed_value(values[i], *(unsigned *)args[2]);
}

void launch(unsigned *device, unsigned seed, cudaStream_t stream)
{
	mix<<<(COUNT + 255) / 256, 256, 0, stream>>>(device, COUNT, seed);
	CHECK(cudaGetLastError());
}

void fill(unsigned *values, unsigned seed)
{
	unsigned i;

	for (i = 0; i < COUNT; i++)
		values[i] = i * 2654435761u + seed;
}

/* Prints the checksum of what came back, and compares with fill(seed) after mix for each of mixes.
 */
void expect(const char *what, const unsigned *values, unsigned seed, const char *mixes)
{
	unsigned sum = 2166136261u, wrong = 0, i;
	const char *mix_seed;

	for (i = 0; i < COUNT; i++) {
		unsigned value = i * 2654435761u + seed;

		for (mix_seed = mixes; *mix_seed; mix_seed++)
			value = mixed_value(value, (unsigned)(*mix_seed - '0'));
		wrong += value != values[i];
		sum = (sum ^ values[i]) * 16777619u;
		sum ^= sum >> 15;
	}
	printf("%-32s %08x%s\n", what, sum, wrong ? "  WRONG" : "");
	failures += wrong != 0;
}

unsigned *pageable(void)
{
	unsigned *memory = (unsigned *)malloc(BYTES);

	if (!memory)
		exit(1);
	memset(memory, 0, BYTES);
	return memory;
}

unsigned *device_memory(void)
{
	unsigned *memory;

	CHECK(cudaMalloc(&memory, BYTES));
	return memory;
}

/* ---- sections ------------------------------------------------------------------------------- */

static void sets(void)
{
	unsigned *device = device_memory(), *back = pageable(), i, wrong = 0;
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMemset(device, 0x11, BYTES));
	CHECK(cudaMemsetAsync(device, 0x22, BYTES / 2, stream));
	CHECK(cudaMemset2DAsync(device, 1024, 0x33, 512, 4, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
	for (i = 0; i < COUNT; i++) {
		unsigned value = i < COUNT / 2 ? 0x22222222 : 0x11111111;

		if (i < 1024 && i % 256 < 128)
			value = 0x33333333;
		wrong += back[i] != value;
	}
	printf("%-32s %u wrong\n", "memset", wrong);
	failures += wrong != 0;
	CHECK(cudaFree(device));
	CHECK(cudaStreamDestroy(stream));
	free(back);
}

static void pools(void)
{
	unsigned *page = pageable(), *back = pageable(), *device, *pooled;
	cudaMemPoolProps props = {};
	cudaStream_t stream;
	cudaMemPool_t pool;
	cudaError_t result;

	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	result = cudaMemPoolCreate(&pool, &props);
	if (result == cudaErrorNotSupported) { /* the simulator */
		printf("%-32s none here\n", "pools");
		cudaGetLastError();
		return;
	}
	CHECK(result);
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocAsync((void **)&device, BYTES, stream));
	CHECK(cudaMallocFromPoolAsync((void **)&pooled, BYTES, pool, stream));
	fill(page, 61);
	CHECK(cudaMemcpyAsync(device, page, BYTES, cudaMemcpyHostToDevice, stream));
	launch(device, 1, stream);
	CHECK(cudaMemcpyAsync(pooled, device, BYTES, cudaMemcpyDeviceToDevice, stream));
	launch(pooled, 2, stream);
	CHECK(cudaMemcpyAsync(back, pooled, BYTES, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaFreeAsync(device, stream));
	CHECK(cudaFreeAsync(pooled, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("pools", back, 61, "12");
	CHECK(cudaMemPoolDestroy(pool));
	CHECK(cudaStreamDestroy(stream));
	free(page);
	free(back);
}

static void graphs(void)
{
	unsigned *device = device_memory(), *pinned, round;
	cudaGraphExec_t executable;
	cudaStream_t stream;
	cudaGraph_t graph;

	CHECK(cudaMallocHost(&pinned, BYTES));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaMemcpyAsync(device, pinned, BYTES, cudaMemcpyHostToDevice, stream));
	launch(device, 8, stream);
	CHECK(cudaMemcpyAsync(pinned, device, BYTES, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&executable, graph, 0));
	fill(pinned, 71);
	for (round = 0; round < 5; round++)
		CHECK(cudaGraphLaunch(executable, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("graph, replayed 5 times", pinned, 71, "88888");
	CHECK(cudaGraphExecDestroy(executable));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(device));
	CHECK(cudaStreamDestroy(stream));
}

static void CUDART_CB count_up(void *counter)
{
	++*(int *)counter;
}

static void CUDART_CB count_up_stream(cudaStream_t, cudaError_t, void *counter)
{
	++*(int *)counter;
}

static void host_functions(void)
{
	cudaStream_t stream;
	int counter = 0;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaLaunchHostFunc(stream, count_up, &counter));
	CHECK(cudaStreamAddCallback(stream, count_up_stream, &counter, 0));
	CHECK(cudaStreamSynchronize(stream));
	printf("%-32s %d\n", "host functions called", counter);
	failures += counter != 2;
	CHECK(cudaStreamDestroy(stream));
}

static void events(void)
{
	unsigned *device = device_memory(), *page = pageable(), *back = pageable();
	cudaStream_t first, second;
	cudaEvent_t done, end;
	float ms;

	CHECK(cudaStreamCreate(&first));
	CHECK(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, 0));
	CHECK(cudaEventCreate(&done));
	CHECK(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
	fill(page, 81);
	CHECK(cudaMemcpyAsync(device, page, BYTES, cudaMemcpyHostToDevice, first));
	CHECK(cudaEventRecord(done, first));
	CHECK(cudaStreamWaitEvent(second, done, 0));
	launch(device, 9, second);
	CHECK(cudaEventRecord(end, second));
	CHECK(cudaEventSynchronize(end));
	CHECK(cudaEventElapsedTime(&ms, done, end));
	CHECK(cudaEventQuery(end));
	CHECK(cudaStreamQuery(second));
	CHECK(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
	expect("events", back, 81, "9");
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaEventDestroy(done));
	CHECK(cudaEventDestroy(end));
	CHECK(cudaStreamDestroy(first));
	CHECK(cudaStreamDestroy(second));
	CHECK(cudaFree(device));
	free(page);
	free(back);
}

/* Calls that fail must fail in the same way under a tracer. */
static void errors(void)
{
	void *memory = NULL;
	int failed, last, after;

	failed = cudaMalloc(&memory, (size_t)1 << 42);
	last = cudaGetLastError();
	after = cudaGetLastError();
	printf("%-32s %d %d %d\n", "cudaMalloc of too much", failed, last, after);
	failed = cudaSetDevice(999);
	last = cudaPeekAtLastError();
	after = cudaGetLastError();
	printf("%-32s %d %d %d\n", "cudaSetDevice of none", failed, last, after);
}

/* Driver functions by name and version, as libraries get them. */
static void driver_entry(void)
{
	CUresult (*copy)(CUdeviceptr, const void *, size_t, CUstream) = NULL;
	CUresult (*current)(CUcontext *) = NULL;
	unsigned *device = device_memory(), *page = pageable(), *back = pageable();
	cudaDriverEntryPointQueryResult found;
	CUcontext context = NULL;

	CHECK(cudaGetDriverEntryPointByVersion("cuMemcpyHtoDAsync", (void **)&copy, 12000,
					       cudaEnableDefault, &found));
	CHECK(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", (void **)&current, 12000,
					       cudaEnableDefault, &found));
	fill(page, 91);
	CHECK(copy((CUdeviceptr)device, page, BYTES, NULL));
	CHECK(current(&context));
	CHECK(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
	expect("driver entry points", back, 91);
	failures += context == NULL;
	CHECK(cudaFree(device));
	free(page);
	free(back);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void *thread_work(void *argument)
{
	unsigned index = *(unsigned *)argument, *device = device_memory(), *pinned, round;
	unsigned *page = pageable();
	cudaStream_t stream = cudaStreamPerThread;

	if (index % 2)
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&pinned, BYTES));
	for (round = 0; round < 20; round++) {
		fill(page, index);
		memcpy(pinned, page, BYTES);
		CHECK(cudaMemcpyAsync(device, round % 2 ? page : pinned, BYTES,
				      cudaMemcpyHostToDevice, stream));
		launch(device, index, stream);
		CHECK(cudaMemcpyAsync(page, device, BYTES, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
	}
	memcpy(argument, &page, sizeof(page)); /* the caller reads and frees it */
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(device));
	if (index % 2)
		CHECK(cudaStreamDestroy(stream));
	return NULL;
}

static void threads(void)
{
	union {
		unsigned index;
		unsigned *page;
	} arguments[4];
	pthread_t ids[4];
	unsigned i;

	for (i = 0; i < 4; i++) {
		arguments[i].index = i + 1;
		pthread_create(&ids[i], NULL, thread_work, &arguments[i]);
	}
	for (i = 0; i < 4; i++) {
		char mixes[] = {(char)('1' + i), 0};

		pthread_join(ids[i], NULL);
		expect("thread", arguments[i].page, i + 1, mixes);
		free(arguments[i].page);
	}
}

/* ---- main ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(void);
} sections[] = {
	{"1d", copy_1d},	  {"2d", copy_2d},	 {"3d", copy_3d},
	{"symbol", copy_symbol},  {"array", copy_array}, {"peer", copy_peer},
	{"memset", sets},	  {"pools", pools},	 {"graph", graphs},
	{"host", host_functions}, {"events", events},	 {"errors", errors},
	{"entry", driver_entry},  {"threads", threads},
};

int main(int argc, char **argv)
{
	size_t i;
	int j;

	for (i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		int wanted = argc == 1;

		for (j = 1; j < argc; j++)
			wanted |= !strcmp(argv[j], sections[i].name);
		if (wanted)
			sections[i].run();
		fflush(stdout);
	}
	printf("%s\n", failures ? "FAILED" : "right");
	return failures != 0;
}
