/*
 * tests/e2e/programs/nvtx.c: a program that says by NVTX what it does. It prints what NVTX's functions
 * return, which without a tool and with cudaspy is not the same.
 *
 *   nvtx all         each function once
 *   nvtx early       ranges that are open when the thread makes its first call
 *   nvtx threads     four threads, ranges that others end, more than a packet of them
 *   nvtx fork        ranges that are open in a child, and a thread in its parent that only announces some
 *   nvtx steps N     a range each with a number, and calls in it
 *   nvtx deep N      N ranges, one in the other
 *   nvtx signals     ranges in a signal handler, too
 *   nvtx bench N     what a push and a pop take
 *   nvtx exec CMD…   CMD in its place, after a range
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
/* cuda.h is not needed for these two. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>

int cudaSetDevice_(int device) __asm__("cudaSetDevice");
int cudaMalloc_(void **address, size_t bytes) __asm__("cudaMalloc");
int cudaStreamSynchronize_(void *stream) __asm__("cudaStreamSynchronize");
int part(void);

static nvtxEventAttributes_t text(const char *message)
{
	return (nvtxEventAttributes_t){.version = NVTX_VERSION,
				       .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
				       .messageType = NVTX_MESSAGE_TYPE_ASCII,
				       .message = {.ascii = message}};
}

static void say(const char *what, long value)
{
	printf("%s %ld\n", what, value);
}

/* Handles and ids are not the same in each run. */
static void say_handle(const char *what, const void *handle)
{
	printf("%s %s\n", what, handle ? "there" : "null");
}

static void say_id(const char *what, nvtxRangeId_t id)
{
	printf("%s %s\n", what, id ? "there" : "0");
}

static void core(void)
{
	nvtxEventAttributes_t a = text("mark with a value"), b = text("push with a category");
	nvtxEventAttributes_t wide = text(NULL), none = text(NULL);
	nvtxRangeId_t id;

	a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	a.payload.dValue = 2.5;
	nvtxMarkEx(&a);
	a.payloadType = NVTX_PAYLOAD_TYPE_INT32;
	a.payload.iValue = -7;
	nvtxMarkEx(&a);
	a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
	a.payload.ullValue = 1ull << 40;
	nvtxMarkEx(&a);
	a.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
	a.payload.fValue = 0.5f;
	nvtxMarkEx(&a);
	nvtxMarkA("mark");
	nvtxMarkW(L"wide \x2713 mark");
	nvtxNameCategoryA(3, "I/O");
	nvtxNameCategoryW(4, L"caf\xe9");
	b.category = 3;
	say("push", nvtxRangePushEx(&b));
	say("push", nvtxRangePushA("outer"));
	say("push", nvtxRangePushW(L"inn\x00e9r"));
	cudaStreamSynchronize_(NULL);
	say("pop", nvtxRangePop());
	say("pop", nvtxRangePop());
	say("pop", nvtxRangePop());
	wide.messageType = NVTX_MESSAGE_TYPE_UNICODE;
	wide.message.unicode = L"\x1f600 wide";
	say("push", nvtxRangePushEx(&wide));
	say("pop", nvtxRangePop());
	none.messageType = NVTX_MESSAGE_UNKNOWN;
	say("push", nvtxRangePushEx(&none));
	say("pop", nvtxRangePop());
	id = nvtxRangeStartEx(&b);
	say_id("start", id);
	nvtxRangeEnd(id);
	id = nvtxRangeStartA("started");
	say_id("start", id);
	say("same id", nvtxRangeStartW(L"started wide") == id && id);
	nvtxRangeEnd(id);
	nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "the main thread of all");
}

static void domains(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("layers"),
			   other = nvtxDomainCreateW(L"w\u00efde");
	nvtxStringHandle_t string = nvtxDomainRegisterStringA(domain, "registered");
	nvtxStringHandle_t wide = nvtxDomainRegisterStringW(other, L"r\xe9gistered");
	nvtxEventAttributes_t a = text(NULL), b = text("in a domain");
	nvtxRangeId_t id;

	say_handle("domain", domain);
	say_handle("string", string);
	nvtxInitialize(NULL);
	a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	a.message.registered = string;
	say("push", nvtxDomainRangePushEx(domain, &a));
	say("push", nvtxDomainRangePushEx(domain, &b));
	a.message.registered = wide;
	say("push", nvtxDomainRangePushEx(other, &a));
	say("push", nvtxRangePushA("in none"));
	cudaStreamSynchronize_(NULL);
	say("pop", nvtxDomainRangePop(domain));
	say("pop", nvtxDomainRangePop(other));
	say("pop", nvtxDomainRangePop(domain));
	say("pop", nvtxRangePop());
	id = nvtxDomainRangeStartEx(domain, &b);
	say_id("start", id);
	nvtxDomainRangeEnd(domain, id);
	nvtxDomainMarkEx(domain, &b);
	nvtxDomainNameCategoryA(domain, 5, "five");
	nvtxDomainNameCategoryW(domain, 6, L"six");
	nvtxDomainDestroy(domain);
	nvtxDomainDestroy(other);
	say("part", part());
	nvtxNameCudaStreamA((cudaStream_t)0x1234, "copies");
	nvtxNameCudaStreamW((cudaStream_t)0x1235, L"k\xebrnels");
	nvtxNameCuStreamA((CUstream)0x1236, "more copies");
	nvtxNameCudaDeviceA(0, "the first");
	nvtxNameCuContextA((CUcontext)0x77, "context");
	nvtxNameCudaEventA((cudaEvent_t)0x88, "event");
}

static void *early_thread(void *unused)
{
	(void)unused;
	nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "worker");
	nvtxRangePushA("thread's");
	nvtxRangePushA("gone before");
	nvtxRangePop();
	nvtxRangePushA("first call");
	cudaStreamSynchronize_(NULL);
	nvtxRangePop();
	nvtxRangePop();
	return NULL;
}

static void early(void)
{
	pthread_t thread;

	nvtxRangePushA("step");
	cudaSetDevice_(0);
	pthread_create(&thread, NULL, early_thread, NULL);
	pthread_join(thread, NULL);
	nvtxRangePop();
}

static nvtxRangeId_t given; /* by one thread, for another one to end */

static void *many(void *end)
{
	char name[32];

	cudaStreamSynchronize_(NULL);
	nvtxRangePushA("all items");
	for (int i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "item %d", i);
		nvtxRangePushA("loop");
		nvtxRangePushA(name);
		nvtxRangePop();
		nvtxRangePop();
		if (i % 1000 == 0)
			cudaStreamSynchronize_(NULL);
	}
	nvtxRangePop();
	if (end)
		nvtxRangeEnd(given);
	return NULL;
}

static void threads(void)
{
	pthread_t all[4];

	cudaSetDevice_(0);
	given = nvtxRangeStartA("across threads");
	for (int i = 0; i < 4; i++)
		pthread_create(&all[i], NULL, many, i == 3 ? all : NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(all[i], NULL);
}

/* Without a call of CUDA it has no stream. */
static void *only_announces(void *unused)
{
	for (int i = 0; i < 64; i++) {
		nvtxRangePushA("only counted");
		nvtxRangePop();
	}
	return unused;
}

static void in_child(void)
{
	pthread_t other;
	int status;

	nvtxRangePushA("before fork");
	cudaStreamSynchronize_(NULL);
	pthread_create(&other, NULL, only_announces, NULL);
	pthread_join(other, NULL);
	fflush(stdout);
	if (!fork()) {
		nvtxRangePushA("in the child");
		cudaStreamSynchronize_(NULL);
		nvtxRangePop();
		nvtxRangePop();
		exit(0);
	}
	wait(&status);
	cudaStreamSynchronize_(NULL);
	nvtxRangePop();
	say("child", status);
}

static void steps(int n)
{
	const struct timespec a_moment = {.tv_nsec = 2000000};
	char name[32];
	void *memory;

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "step %d", i);
		nvtxRangePushA(name);
		cudaMalloc_(&memory, 4096);
		nvtxRangePushA("wait");
		cudaStreamSynchronize_(NULL);
		nanosleep(&a_moment, NULL);
		nvtxRangePop();
		nvtxRangePop();
		cudaStreamSynchronize_(NULL);
	}
}

static void deep(int n)
{
	long sum = 0;

	cudaSetDevice_(0);
	for (int i = 0; i < n; i++)
		sum += nvtxRangePushA("deep");
	cudaStreamSynchronize_(NULL);
	for (int i = 0; i < n; i++)
		sum -= nvtxRangePop();
	say("sum", sum);
	say("one too many", nvtxRangePop());
}

static volatile sig_atomic_t ticks;

static void tick(int signal)
{
	(void)signal;
	nvtxRangePushA("in a handler");
	nvtxRangePop();
	ticks++;
}

/*
 * One signal at a time: a timer that goes on would starve this thread where a handler takes longer than its interval. And
 * none before the first range has made NVTX ready: a handler in the middle of that waits for it for ever.
 */
static void signals(void)
{
	struct itimerval timer = {.it_value = {.tv_usec = 100}};
	struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
	long wrong = 0, depth;
	sig_atomic_t armed = 0;

	cudaSetDevice_(0);
	sigaction(SIGALRM, &action, NULL);
	nvtxRangePushA("interrupted");
	nvtxRangePop();
	while (ticks < 200) {
		if (ticks == armed) {
			armed++;
			setitimer(ITIMER_REAL, &timer, NULL);
		}
		depth = nvtxRangePushA("interrupted");
		wrong += nvtxRangePop() != depth;
		cudaStreamSynchronize_(NULL);
	}
	say("wrong", wrong);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double round_of(int n)
{
	double begin = now();

	for (int i = 0; i < n; i++) {
		nvtxRangePushA("aten::linear_backward");
		nvtxRangePop();
	}
	return (now() - begin) / n;
}

static void bench(int n)
{
	double best = 1e9;

	cudaSetDevice_(0);
	for (int i = 0; i < 20; i++) {
		double ns = round_of(n / 20);

		best = ns < best ? ns : best;
		cudaSetDevice_(0);
	}
	printf("push and pop: %.1f ns\n", best);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (!strcmp(what, "all")) {
		cudaSetDevice_(0);
		core();
		domains();
		core(); /* once more: no name is told twice */
	} else if (!strcmp(what, "early")) {
		early();
	} else if (!strcmp(what, "threads")) {
		threads();
	} else if (!strcmp(what, "fork")) {
		in_child();
	} else if (!strcmp(what, "steps")) {
		steps(n);
	} else if (!strcmp(what, "deep")) {
		deep(n);
	} else if (!strcmp(what, "signals")) {
		signals();
	} else if (!strcmp(what, "bench")) {
		bench(n);
	} else if (!strcmp(what, "exec")) {
		nvtxRangePushA("before exec");
		cudaStreamSynchronize_(NULL);
		nvtxRangePop();
		execvp(argv[2], argv + 2);
		return 127;
	}
	return 0;
}
#else
int main(void)
{
	return 77;
}
#endif
