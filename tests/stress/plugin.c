/*
 * tests/stress/plugin.c: a library that the random program opens and closes. It has a kernel, and calls CUDA
 * also when it comes and goes. The program counts its calls (CALL of stress.h).
 */
#include "runtime.h"
#include "stress.h"

static const char kernel;
static void **code;

static __attribute__((constructor)) void come(void)
{
	static struct {
		int magic, version;
		const void *data;
		void *unused;
	} wrapper = {0x466243b1, 1, "code", NULL};
	int device;

	code = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(code, &kernel, NULL, "_Z6pluginPh", -1, NULL, NULL, NULL, NULL,
			       NULL);
	__cudaRegisterFatBinaryEnd(code);
	CALL(cudaGetDevice(&device));
}

static __attribute__((destructor)) void go(void)
{
	CALL(cudaGetLastError());
	__cudaUnregisterFatBinary(code);
}

int plugin_work(int n);

int plugin_work(int n)
{
	struct dim3 one = {1, 1, 1};
	unsigned char cell = 0, *memory = &cell;
	void *args[] = {&memory};

	for (int i = 0; i < n; i++)
		CALL(cudaLaunchKernel(&kernel, one, one, args, 0, NULL));
	return CALL(cudaStreamSynchronize(NULL));
}
