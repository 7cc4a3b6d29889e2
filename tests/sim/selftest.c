/*
 * tests/sim/selftest.c: the simulator tested by itself: a runtime program in plain C with its own
 * declarations, linked to the simulated libcudart.so.13, run by tests/e2e/test_sim.sh. Prints what
 * failed, exits with the number of failures.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { H2H, H2D, D2H, D2D };
struct dim3 {
	unsigned x, y, z;
};

int cudaGetDeviceCount(int *);
int cudaSetDevice(int);
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMallocHost(void **, size_t);
int cudaFreeHost(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemcpyAsync(void *, const void *, size_t, int, void *);
int cudaMemset(void *, int, size_t);
int cudaStreamCreateWithFlags(void **, unsigned);
int cudaStreamDestroy(void *);
int cudaStreamSynchronize(void *);
int cudaStreamQuery(void *);
int cudaEventCreate(void **);
int cudaEventRecord(void *, void *);
int cudaEventSynchronize(void *);
int cudaEventElapsedTime(float *, void *, void *);
int cudaEventDestroy(void *);
int cudaDeviceSynchronize(void);
int cudaLaunchKernel(const void *, struct dim3, struct dim3, void **, size_t, void *);
int cudaLaunchHostFunc(void *, void (*)(void *), void *);
int cudaGetLastError(void);
int cudaRuntimeGetVersion(int *);
int cudaImportExternalMemory(void **, const void *);
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *,
			    void *, void *, int *);

static int failures;
#define WANT(x) \
	do { \
		if (!(x)) { \
			printf("selftest: line %d: %s\n", __LINE__, #x); \
			failures++; \
		} \
	} while (0)

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* What nvcc would make of `void add(int *p, int n)` and `void delay(int us)`. */
static char stub_add, stub_delay;

/* The host twin of the first one. */
__attribute__((visibility("default"))) void spysim_kernel__Z3addPii(void **args, unsigned *grid,
								    unsigned *block);
void spysim_kernel__Z3addPii(void **args, unsigned *grid, unsigned *block)
{
	**(int **)args[0] += *(int *)args[1] * (int)grid[0] * (int)block[0];
}

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
	__cudaRegisterFunction(code, &stub_delay, NULL, "_Z5delayi", -1, NULL, NULL, NULL, NULL,
			       NULL);
	__cudaRegisterFatBinaryEnd(code);
}

static int add(int *p, int n, void *stream)
{
	void *args[] = {&p, &n};

	return cudaLaunchKernel(&stub_add, (struct dim3){2, 1, 1}, (struct dim3){4, 1, 1}, args, 0,
				stream);
}

static int delay(int us, void *stream)
{
	void *args[] = {&us};

	return cudaLaunchKernel(&stub_delay, (struct dim3){1, 1, 1}, (struct dim3){1, 1, 1}, args,
				0, stream);
}

static void count_up(void *arg)
{
	++*(int *)arg;
}

static void test_order(void)
{
	int *device = NULL, *pinned = NULL, host = 1, calls = 0;
	void *s = NULL, *begin = NULL, *end = NULL;
	double start;
	float ms = 0;

	WANT(!cudaMalloc((void **)&device, 64) && !cudaMallocHost((void **)&pinned, 64));
	WANT(!cudaStreamCreateWithFlags(&s, 1) && !cudaEventCreate(&begin) &&
	     !cudaEventCreate(&end));
	WANT(!cudaMemcpy(device, &host, sizeof(host), H2D));
	start = now_ms();
	WANT(!cudaEventRecord(begin, s) && !delay(20000, s) && !add(device, 3, s));
	WANT(!cudaEventRecord(end, s) && !cudaLaunchHostFunc(s, count_up, &calls));
	WANT(!cudaMemcpyAsync(pinned, device, sizeof(int), D2H, s));
	WANT(now_ms() - start < 15 && cudaStreamQuery(s) == 600 && !cudaGetLastError());
	WANT(!cudaStreamSynchronize(s) && now_ms() - start >= 20);
	WANT(*pinned == 25 && calls == 1);
	WANT(!cudaEventElapsedTime(&ms, begin, end) && ms > 19.9f && ms < 25);

	/* To pageable memory even an asynchronous copy waits for its stream. */
	start = now_ms();
	WANT(!delay(10000, s) && !cudaMemcpyAsync(&host, device, sizeof(host), D2H, s));
	WANT(now_ms() - start >= 10 && host == 25);
	/* From pageable memory it does not, unless it is large. */
	start = now_ms();
	WANT(!delay(10000, s) && !cudaMemcpyAsync(device, &host, sizeof(host), H2D, s));
	WANT(now_ms() - start < 8);
	/* Freeing waits for every stream. */
	WANT(!cudaFree(device) && now_ms() - start >= 10);
	WANT(!cudaStreamDestroy(s) && !cudaEventDestroy(begin) && !cudaEventDestroy(end) &&
	     !cudaFreeHost(pinned));
}

static void test_full_queue(void)
{
	double start, longest = 0;
	int where = 0;
	void *s = NULL;

	WANT(!cudaStreamCreateWithFlags(&s, 1) && !delay(400000, s));
	for (int i = 1; i < 1100; i++) {
		start = now_ms();
		WANT(!delay(1, s));
		if (now_ms() - start > longest) {
			longest = now_ms() - start;
			where = i;
		}
	}
	WANT(where == 1020 && longest > 100);
	WANT(!cudaDeviceSynchronize() && !cudaStreamDestroy(s));
}

struct worker {
	pthread_t thread;
	int device;
	double start_ms, end_ms;
};

static void *copy_behind_kernel(void *arg)
{
	struct worker *w = arg;
	char *host = calloc(1, 4096);
	void *s = NULL, *p = NULL;

	WANT(!cudaSetDevice(w->device) && !cudaStreamCreateWithFlags(&s, 1) &&
	     !cudaMalloc(&p, 4096));
	w->start_ms = now_ms();
	WANT(!delay(w->device ? 20000 : 400000, s));
	WANT(!cudaMemcpyAsync(host, p, 4096, D2H, s));
	w->end_ms = now_ms();
	WANT(!cudaStreamDestroy(s));
	free(host);
	return NULL;
}

/* Two devices do not hold each other up: the short kernel's copy ends while the long one still runs.
 * A busy machine may delay either thread, so the two lengths lie far apart and each is timed from before
 * its launch. */
static void test_devices(void)
{
	struct worker w[2] = {{.device = 0}, {.device = 1}};

	for (int i = 0; i < 2; i++)
		pthread_create(&w[i].thread, NULL, copy_behind_kernel, &w[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(w[i].thread, NULL);
	WANT(w[0].end_ms - w[0].start_ms >= 399 && w[1].end_ms - w[1].start_ms >= 19);
	WANT(w[1].end_ms < w[0].end_ms);
}

/* The other generations: their version, and a name that changed its parameters. */
static void test_generation(const char *library, int version)
{
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*get_version)(int *) = NULL, (*prefetch)(const void *, size_t, int, void *) = NULL,
			       got = 0;
	int (*managed)(void **, size_t, unsigned) = NULL;
	void *p;

	WANT(lib);
	if (!lib)
		return;
	*(void **)&get_version = dlvsym(lib, "cudaRuntimeGetVersion", library);
	*(void **)&prefetch = dlvsym(lib, "cudaMemPrefetchAsync", library);
	*(void **)&managed = dlvsym(lib, "cudaMallocManaged", library);
	WANT(get_version && prefetch && managed);
	WANT(!get_version(&got) && got / 1000 == version);
	WANT(!managed(&p, 4096, 1) && !prefetch(p, 4096, 1, NULL));
}

static void test_fork(void)
{
	pid_t child = fork();
	void *p;
	int status = 0;

	if (!child)
		_exit(cudaMalloc(&p, 16) == 0 ? 1 : 0);
	waitpid(child, &status, 0);
	WANT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	int cnt = 0, version = 0;
	void *p;

	register_code();
	WANT(!cudaGetDeviceCount(&cnt) && cnt == 2);
	WANT(!cudaRuntimeGetVersion(&version) && version / 1000 == 13);
	WANT(cudaSetDevice(99) == 101 && cudaGetLastError() == 101 && !cudaGetLastError());
	WANT(cudaMalloc(&p, (size_t)1 << 45) == 2 && cudaGetLastError() == 2);
	WANT(cudaImportExternalMemory(&p, NULL) == 801 && cudaGetLastError() == 801);
	WANT(!cudaSetDevice(0));
	test_order();
	test_full_queue();
	test_devices();
	test_generation("libcudart.so.12", 12);
	test_generation("libcudart.so.11.0", 11);
	test_fork();
	printf("selftest: %d failures\n", failures);
	return failures;
}
