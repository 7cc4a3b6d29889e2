/*
 * tests/e2e/programs/sharing.c: one of several processes that share a GPU, on the simulator, for
 * test_sim_sharing.sh.
 *
 *   sharing devices             a line for each device: number, UUID from the driver, from its _v2 and from
 *                               the runtime's properties, bus id, device at that bus id, multiprocessors,
 *                               MPS
 *   sharing run N US            N kernels of US microseconds, one after the other in a stream
 *   sharing steps N US          N times launch and synchronise
 *   sharing streams N US        N kernels in each of two streams
 *   sharing contexts N          makes N contexts, says how many there are and how it ended
 *   sharing hold                just is there
 *
 * All but `devices` make a context, say `ready`, wait for the end of standard input, and say how many
 * milliseconds it took from there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct dim3 {
	unsigned int x, y, z;
};

int cudaGetDeviceCount(int *count);
int cudaGetDeviceProperties(void *properties, int device);
int cudaSetDevice(int device);
int cudaStreamCreateWithFlags(void **stream, unsigned int flags);
int cudaStreamSynchronize(void *stream);
int cudaStreamWaitEvent(void *stream, void *event, unsigned int flags);
int cudaEventCreate(void **event);
int cudaEventRecord(void *event, void *stream);
int cudaEventSynchronize(void *event);
int cudaEventElapsedTime(float *ms, void *begin, void *end);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);
int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared, void *stream);
const char *cudaGetErrorName(int error);
int cuDeviceGetUuid(unsigned char *uuid, int device);
int cuDeviceGetUuid_v2(unsigned char *uuid, int device);
int cuDeviceGetPCIBusId(char *id, int bytes, int device);
int cuDeviceGetByPCIBusId(int *device, const char *id);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuCtxCreate_v2(void **context, unsigned int flags, int device);
int cuCtxPopCurrent_v2(void **context);
int cuGetErrorName(int error, const char **name);
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **code);
void __cudaRegisterFunction(void **code, const char *host, char *device, const char *name,
			    int limit, void *tid, void *bid, void *block, void *grid, int *size);

enum { QUEUE = 500 }; /* launches that surely do not have to wait */

static void ok(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "sharing: %s: %s\n", what, cudaGetErrorName(result));
	exit(1);
}
#define OK(call) ok(call, #call)

/* What nvcc would make of `void delay(int us)`. */
static char stub_delay;

static void register_code(void)
{
	static struct {
		int magic, version;
		const void *data;
		void *unused;
	} wrapper = {0x466243b1, 1, "code", NULL};
	void **code = __cudaRegisterFatBinary(&wrapper);

	__cudaRegisterFunction(code, &stub_delay, NULL, "_Z5delayi", -1, NULL, NULL, NULL, NULL,
			       NULL);
	__cudaRegisterFatBinaryEnd(code);
}

static void launch(int us, void *stream)
{
	struct dim3 one = {1, 1, 1};
	void *args[] = {&us};

	OK(cudaLaunchKernel(&stub_delay, one, one, args, 0, stream));
}

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void print_uuid(const unsigned char *uuid)
{
	printf("GPU-");
	for (int i = 0; i < 16; i++)
		printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	printf(" ");
}

static void devices(void)
{
	int cnt;

	OK(cudaGetDeviceCount(&cnt));
	for (int i = 0; i < cnt; i++) {
		unsigned char uuid[16],
			properties[4096]; /* the UUID is behind a name of 256 bytes */
		char bus[16];
		int at_bus, multiprocessors, mps;

		printf("%d ", i);
		OK(cuDeviceGetUuid(uuid, i));
		print_uuid(uuid);
		OK(cuDeviceGetUuid_v2(uuid, i));
		print_uuid(uuid);
		OK(cudaGetDeviceProperties(properties, i));
		print_uuid(properties + 256);
		OK(cuDeviceGetPCIBusId(bus, sizeof(bus), i));
		OK(cuDeviceGetByPCIBusId(&at_bus, bus));
		OK(cuDeviceGetAttribute(&multiprocessors, 16, i));
		OK(cuDeviceGetAttribute(&mps, 133, i));
		printf("%s %d %d %d\n", bus, at_bus, multiprocessors, mps);
	}
}

static void contexts(int cnt)
{
	const char *name;
	void *context;
	int made = 0, rc = 0;

	while (made < cnt && !(rc = cuCtxCreate_v2(&context, 0, 0))) {
		cuCtxPopCurrent_v2(&context);
		made++;
	}
	cuGetErrorName(rc, &name);
	printf("%d %s\n", made, name);
}

static void say_ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

/* A host function, too. */
static void wait_for_go(void *unused)
{
	char byte;

	(void)unused;
	while (read(0, &byte, 1) > 0)
		;
}

static double step(int cnt, int us)
{
	double begin_ms;
	void *stream;

	OK(cudaStreamCreateWithFlags(&stream, 1));
	say_ready();
	wait_for_go(NULL);
	begin_ms = now_ms();
	for (int i = 0; i < cnt; i++) {
		launch(us, stream);
		OK(cudaStreamSynchronize(stream));
	}
	return now_ms() - begin_ms;
}

/* All is queued before it begins, so that the time is the GPU's alone. */
static double run(int streams, int cnt, int us)
{
	void *stream[2], *begin, *end[2];
	float ms[2] = {0, 0};

	OK(cudaEventCreate(&begin));
	for (int k = 0; k < streams; k++) {
		OK(cudaStreamCreateWithFlags(&stream[k], 1));
		OK(cudaEventCreate(&end[k]));
	}
	launch(0, stream[0]); /* the first launch waits for all that is queued */
	OK(cudaStreamSynchronize(stream[0]));
	OK(cudaLaunchHostFunc(stream[0], wait_for_go, NULL));
	OK(cudaEventRecord(begin, stream[0]));
	for (int k = 1; k < streams; k++)
		OK(cudaStreamWaitEvent(stream[k], begin, 0));
	for (int i = 0; i < cnt; i++) {
		if (i == QUEUE)
			say_ready();
		for (int k = 0; k < streams; k++)
			launch(us, stream[k]);
	}
	for (int k = 0; k < streams; k++)
		OK(cudaEventRecord(end[k], stream[k]));
	if (cnt <= QUEUE)
		say_ready();
	for (int k = 0; k < streams; k++) {
		OK(cudaEventSynchronize(end[k]));
		OK(cudaEventElapsedTime(&ms[k], begin, end[k]));
	}
	return ms[0] > ms[1] ? ms[0] : ms[1];
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int cnt = argc > 2 ? atoi(argv[2]) : 0, us = argc > 3 ? atoi(argv[3]) : 0;

	if (!strcmp(what, "devices")) {
		devices();
		return 0;
	}
	register_code();
	OK(cudaSetDevice(0));
	if (!strcmp(what, "contexts")) {
		contexts(cnt);
		cnt = 0;
	}
	printf("%.1f ms\n", !strcmp(what, "steps")
				    ? step(cnt, us)
				    : run(!strcmp(what, "streams") ? 2 : 1, cnt, us));
	return 0;
}
