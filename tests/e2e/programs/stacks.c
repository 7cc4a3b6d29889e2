/*
 * tests/e2e/programs/stacks.c: who calls calls that are worth a look; linked to a fake libcudart.so.13. The test
 * finds lines by the marks at their ends. Compiled without frame pointers, but where it says otherwise.
 *
 *   stacks chain          a pageable copy behind functions, of which one is compiled into another
 *   stacks signal         one from a signal handler
 *   stacks coroutine      some on stacks of 16 KiB
 *   stacks corrupt SEED   some while return addresses and saved registers above are overwritten
 *   stacks jit            one below code made at run time, told in /tmp/perf-PID.map
 *   stacks made N         N allocations at one place
 *   stacks loads N        N times a library of kernels loaded, used and unloaded
 *   stacks failed         a call that fails (FAKE_RESULT)
 *   stacks launch N       launches that fail at N places, through what nvcc makes for <<<>>>; 3: 2, without optimisation
 *   stacks many N         N pageable copies at one place
 *   stacks start          300 pageable copies at as many places
 *   stacks threads T N    the same in T threads
 *   stacks behind N       N calls that are not worth a look and 100 pageable copies behind them, all at one place
 *   stacks pause N        N waits, a pause, and 1000 more at the same place
 *   stacks library PATH N handles of the library (fake_blas.c), N of them made and given back
 *   stacks clean          calls that are not worth a look
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

int cudaSetDevice(int device);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaStreamSynchronize(void *stream);
int cudaLibraryLoadData(void **library, const void *code, void *jit_options, void *jit_values,
			unsigned int n_jit, void *options, void *values, unsigned int n);
int cudaLibraryGetKernel(void **kernel, void *library, const char *name);
int cudaLibraryUnload(void *library);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);

#define LEAF __attribute__((noinline, noclone))
#define D2H 2

static char host[4096];
static void *device = (void *)0x7000;
static volatile int sink; /* what comes after a call keeps it from being a jump */

static LEAF void copy(void)
{
	sink = cudaMemcpyAsync(host, device, sizeof(host), D2H, NULL); /* mark: copy */
	sink++;
}

/* ---- chain ---- */

static LEAF void with_array(int n)
{
	volatile char array[512];

	memset((char *)array, n, sizeof(array));
	copy(); /* mark: with_array */
	sink += array[n & 255];
}

static inline __attribute__((always_inline)) void compiled_in(int n)
{
	with_array(n + 1); /* mark: compiled_in */
	sink++;
}

/* A stack whose size only the frame pointer knows. */
static LEAF void with_alloca(int n)
{
	volatile char *array = __builtin_alloca((size_t)n * 16 + 16);

	array[0] = 1;
	compiled_in(n); /* mark: with_alloca */
	sink += array[0];
}

/* An aligned frame, found through a register or an expression. */
static LEAF void aligned(int n)
{
	volatile char array[64] __attribute__((aligned(64)));

	array[0] = (char)n;
	with_alloca(n); /* mark: aligned */
	sink += array[0];
}

static LEAF __attribute__((optimize("no-omit-frame-pointer"))) void with_pointer(int n)
{
	aligned(n); /* mark: with_pointer */
	sink++;
}

/* ---- signal ---- */

static void handler(int number)
{
	(void)number;
	copy(); /* mark: handler */
	sink++;
}

static LEAF void raise_it(void)
{
	kill(getpid(), SIGUSR1); /* mark: raise_it */
	sink++;
}

static int from_signal(void)
{
	struct sigaction action = {.sa_handler = handler};

	sigaction(SIGUSR1, &action, NULL);
	raise_it(); /* mark: from_signal */
	sink++;
	return 0;
}

/* ---- coroutines ---- */

#define SMALL 16384

static ucontext_t main_context, small_context;

static void small(void)
{
	copy(); /* mark: small */
	sink++;
}

/* Pages nobody may touch on both sides. */
static void on_small_stack(void)
{
	char *memory = mmap(NULL, SMALL + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(memory + 4096, SMALL, PROT_READ | PROT_WRITE);
	getcontext(&small_context);
	small_context.uc_stack.ss_sp = memory + 4096;
	small_context.uc_stack.ss_size = SMALL;
	small_context.uc_link = &main_context;
	makecontext(&small_context, small, 0);
	swapcontext(&main_context, &small_context);
	munmap(memory, SMALL + 2 * 4096);
}

static int coroutines(void)
{
	for (int i = 0; i < 20; i++)
		on_small_stack();
	return 0;
}

/* ---- corrupt stacks ---- */

#define SMASHED 24 /* words above our frame */

static uint64_t seed;

static uint64_t rubbish(void)
{
	static char page[8192];
	uint64_t stack = (uintptr_t)__builtin_frame_address(0);

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	switch (seed >> 60) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return UINT64_MAX;
	case 3:
		return 0x8000000000000000ull | seed >> 8;
	case 4: /* the stack itself, so that chains go round */
	case 5:
	case 6:
		return (stack + (seed >> 33 & 0x1ff)) & ~7ull;
	case 7:
		return stack + (seed >> 33 & 0xffffff8);
	case 8:
		return (uintptr_t)page + (seed >> 33 & 4095);
	case 9:
	case 10: /* code, anywhere in it */
		return (uintptr_t)&copy + (seed >> 33 & 0xfff) - 0x400;
	case 11:
	case 12:
		return (uintptr_t)&memset + (seed >> 33 & 0xffff);
	case 13:
		return seed >> 17; /* 47 bits */
	default:
		return seed;
	}
}

#define COPY(n) \
	case n: \
		sink = cudaMemcpyAsync(host, device, sizeof(host), D2H, NULL); \
		__asm__ volatile("# place %c0" : : "i"(n)); \
		break;

/* A place of its own for each number. */
static inline __attribute__((always_inline)) void copy_at(int place)
{
	switch (place & 7) {
		COPY(0)
		COPY(1)
		COPY(2)
		COPY(3)
		COPY(4)
		COPY(5)
		COPY(6)
		COPY(7)
	}
}

/* The words above come back before anybody returns to them. */
static LEAF __attribute__((optimize("no-omit-frame-pointer"))) void smash(int place)
{
	uint64_t *above = __builtin_frame_address(0), saved[SMASHED];

	memcpy(saved, above, sizeof(saved));
	for (int i = 0; i < SMASHED; i++)
		if (i < 2 || rubbish() & 1)
			((volatile uint64_t *)above)[i] = rubbish();
	copy_at(place);
	memcpy(above, saved, sizeof(saved));
	__asm__ volatile("" : : : "memory");
}

static LEAF void room(int n, int place)
{
	volatile uint64_t words[64];

	for (int i = 0; i < 64; i++)
		words[i] = (uint64_t)i;
	if (n)
		room(n - 1, place);
	else
		smash(place);
	sink += (int)words[n];
}

/* A thread may have so many stacks at once. */
static void *corrupt_some(void *unused)
{
	for (int i = 0; i < 50; i++)
		room(3, i);
	return unused;
}

static int corrupt(void)
{
	for (int i = 0; i < 8; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, corrupt_some, NULL);
		pthread_join(thread, NULL);
	}
	corrupt_some(NULL);
	return 0;
}

/* ---- code made at run time ---- */

static void below_jit(void)
{
	copy();
	sink++;
}

/* Calls what rdi names: as Python's trampoline, with a frame pointer, and with one after other code. */
static const struct {
	const char *name;
	unsigned char code[16];
} made[] = {
	{"py::inner:/srv/train.py", {0x48, 0x83, 0xec, 8, 0xff, 0xd6, 0x48, 0x83, 0xc4, 8, 0xc3}},
	{"py::middle:/srv/train.py", {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3}},
	{"compiled", {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x90, 0x90, 0x5d, 0xc3}},
};
#define MADE 3

static char *code;

static LEAF void go_down(int level)
{
	void (*next)(int, void *) = (void (*)(int, void *))(uintptr_t)(code + 64 * (level - 1));

	if (level)
		next(level - 1, (void *)go_down);
	else
		below_jit();
	sink++;
}

static int jit(void)
{
	char path[64];
	FILE *map;

	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (code == MAP_FAILED)
		return 1;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	if (!map)
		return 1;
	for (int i = 0; i < MADE; i++) {
		memcpy(code + 64 * i, made[i].code, 16);
		fprintf(map, "%lx %x %s\n", (unsigned long)(code + 64 * i), 16, made[i].name);
	}
	fclose(map);
	printf("%s\n", path);
	go_down(MADE);
	return 0;
}

/* ---- how many ---- */

static int many(int n)
{
	for (int i = 0; i < n; i++)
		copy();
	return 0;
}

/* A start: three hundred places, one call each. */
static int start(void)
{
#define ONE sink = cudaMemcpyAsync(host, device, sizeof(host), D2H, NULL);
#define FIVE(x) x x x x x
#define SIXTY FIVE(FIVE(ONE)) FIVE(FIVE(ONE)) FIVE(ONE) FIVE(ONE)
	FIVE(SIXTY)
	return 0;
}

static void *many_in_thread(void *n)
{
	for (int i = 0; i < (int)(intptr_t)n; i++)
		copy();
	return NULL;
}

static int threads(int count, int n)
{
	pthread_t ids[64];

	for (int i = 0; i < count; i++)
		pthread_create(&ids[i], NULL, many_in_thread, (void *)(intptr_t)n);
	for (int i = 0; i < count; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

static int make(int n)
{
	for (int i = 0; i < n; i++) {
		void *memory;

		cudaMalloc(&memory, 4096); /* mark: make */
	}
	return 0;
}

/* The libraries that cuFFT makes for a plan, for one. */
static int load(int n)
{
	void *library = &host, *kernel;

	for (int i = 0; i < n; i++) {
		sink = cudaLibraryLoadData(&library, "code", NULL, NULL, 0, NULL, NULL,
					   0); /* mark: load */
		sink = cudaLibraryGetKernel(&kernel, library, "kernel");
		sink = cudaLibraryUnload(library);
	}
	return 0;
}

static LEAF int waits(int n)
{
	for (int i = 0; i < n; i++)
		cudaStreamSynchronize(NULL);
	return 0;
}

static int with_pause(int n)
{
	waits(n);
	usleep(300000);
	sink = waits(1000);
	return 0;
}

/* As in a library, which copies for all of a program at one place. */
static LEAF void copy_to(void *to)
{
	sink = cudaMemcpyAsync(to, device, sizeof(host), 4, NULL);
	sink++;
}

static int behind(int n)
{
	void *memory;

	cudaMalloc(&memory, 4096);
	device = memory;
	for (int i = 0; i < n; i++)
		copy_to(device);
	for (int i = 0; i < 100; i++)
		copy_to(host);
	return 0;
}

/* ---- a library's handles ---- */

static int (*create)(void **handle), (*destroy)(void *handle);

static LEAF void request(void)
{
	void *handle;

	sink = create(&handle); /* mark: create */
	cudaMemcpyAsync(device, device, 4096, 3, NULL);
	sink = destroy(handle); /* mark: destroy */
	sink++;
}

static int library(const char *path, int n)
{
	void *opened = dlopen(path, RTLD_NOW);

	*(void **)&create = opened ? dlsym(opened, "cublasCreate_v2") : NULL;
	*(void **)&destroy = opened ? dlsym(opened, "cublasDestroy_v2") : NULL;
	if (!create || !destroy)
		return 2;
	for (int i = 0; i < n; i++)
		request(); /* mark: library */
	return 0;
}

static int clean(void)
{
	void *memory;

	cudaMalloc(&memory, 4096);
	for (int i = 0; i < 1000; i++)
		cudaSetDevice(0);
	for (int i = 0; i < 400; i++)
		cudaMemcpyAsync(device, device, 4096, 3, NULL);
	cudaFree(memory);
	return 0;
}

/* ---- a kernel's launch ----------------------------------------------------------------------- */

struct dim3 {
	unsigned int x, y, z;
};
int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared, void *stream);
int __cudaLaunchKernel_helper(void **args);
void __device_stub__Z5scaleiPf(int by, float *what);
void scale(int by, float *what);

static bool unoptimised;

/* All kernels' stubs call it, where it is not compiled into them. */
__attribute__((noinline)) int __cudaLaunchKernel_helper(void **args)
{
	struct dim3 one = {1, 1, 1};

	sink = cudaLaunchKernel((void *)scale, one, one, args, 0, NULL);
	return sink + 1;
}

__attribute__((noinline)) void __device_stub__Z5scaleiPf(int by, float *what)
{
	void *args[] = {&by, &what};
	struct dim3 one = {1, 1, 1};

	if (unoptimised)
		sink = __cudaLaunchKernel_helper(args);
	else
		sink = cudaLaunchKernel((void *)scale, one, one, args, 0, NULL); /* mark: stub */
	sink = sink + 1;
}

__attribute__((noinline)) void scale(int by, float *what)
{
	__device_stub__Z5scaleiPf(by, what); /* mark: scale */
	sink = sink + 1;
}

__attribute__((noinline)) static void first_layer(void)
{
	scale(2, NULL); /* mark: first_layer */
	sink = sink + 1;
}

__attribute__((noinline)) static void second_layer(void)
{
	scale(3, NULL); /* mark: second_layer */
	sink = sink + 1;
}

static int launch(int places)
{
	unoptimised = places > 2;
	for (int i = 0; i < 4; i++) {
		first_layer(); /* mark: first */
		if (places > 1)
			second_layer();
	}
	cudaMemcpyAsync(device, device, 4096, 3, NULL); /* goes on */
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	dlopen("libcuda.so.1", RTLD_NOW); /* knows which memory is pageable */
	if (!strcmp(what, "chain"))
		with_pointer(n); /* mark: main */
	else if (!strcmp(what, "signal"))
		return from_signal(); /* mark: signal */
	else if (!strcmp(what, "coroutine"))
		return coroutines();
	else if (!strcmp(what, "corrupt"))
		return seed = (uint64_t)n, corrupt();
	else if (!strcmp(what, "jit"))
		return jit();
	else if (!strcmp(what, "made"))
		return make(n);
	else if (!strcmp(what, "loads"))
		return load(n);
	else if (!strcmp(what, "failed"))
		sink = cudaSetDevice(0); /* mark: failed */
	else if (!strcmp(what, "launch"))
		return launch(n); /* mark: launch */
	else if (!strcmp(what, "many"))
		return many(n);
	else if (!strcmp(what, "start"))
		return start();
	else if (!strcmp(what, "threads"))
		return threads(n, argc > 3 ? atoi(argv[3]) : 0);
	else if (!strcmp(what, "waits"))
		return waits(n);
	else if (!strcmp(what, "behind"))
		return behind(n);
	else if (!strcmp(what, "pause"))
		return with_pause(n);
	else if (!strcmp(what, "library"))
		return library(argv[2], atoi(argv[3]));
	else if (!strcmp(what, "clean"))
		return clean();
	else
		return 2;
	return sink < 0;
}
