/*
 * tests/stress/calls.c: bursts of CUDA calls, with a memory of the actor's own whose contents it sees at the
 * end. Three kinds of calls, as runtime.c has them: handlers make only such that take no lock, or one with
 * signals blocked; a raw child only such that take none.
 */
#include <setjmp.h>
#include <stddef.h>
#include <string.h>
#include "runtime.h"
#include "stress.h"

enum { BYTES = 1024 };
enum { H2D = 1, D2H = 2 };

struct burst {
	struct actor *actor;
	unsigned char *memory; /* of the device */
	unsigned char host[BYTES];
	void *stream, *event;
};

/* ---- kernels --------------------------------------------------------------------------------- */

static const char count_up; /* the kernel's address */

/* For the simulator. */
void spysim_kernel__Z8count_upPh(void **args, unsigned int grid[3], unsigned int block[3]);

void spysim_kernel__Z8count_upPh(void **args, unsigned int grid[3], unsigned int block[3])
{
	(void)grid, (void)block;
	++**(unsigned char **)args[0];
}

void calls_begin(void)
{
	static struct {
		int magic, version;
		const void *data;
		void *unused;
	} wrapper = {0x466243b1, 1, "code", NULL};
	void **code = __cudaRegisterFatBinary(&wrapper);

	__cudaRegisterFunction(code, &count_up, NULL, "_Z8count_upPh", -1, NULL, NULL, NULL, NULL,
			       NULL);
	__cudaRegisterFatBinaryEnd(code);
}

/* ---- single calls ---------------------------------------------------------------------------- */

static void result(struct burst *b, int error)
{
	see(b->actor, (uint64_t)error);
}

static void call_device(struct burst *b)
{
	int device = -1;

	result(b, CALL(cudaSetDevice((int)below(b->actor, simulated ? 2 : 9))));
	result(b, CALL(cudaGetDevice(&device)));
	see(b->actor, (uint64_t)device);
	CALL(cudaSetDevice(0));
}

static void call_getters(struct burst *b)
{
	int n = 0;

	for (unsigned int i = below(b->actor, 20); i > 0; i--) {
		CALL(cudaGetDevice(&n));
		CALL(cudaPeekAtLastError());
	}
	CALL(cudaGetDeviceCount(&n));
	see(b->actor, (uint64_t)n);
	see(b->actor, (uint64_t)CALL(cudaGetErrorName(0))[0]);
}

static void call_copy(struct burst *b)
{
	if (!b->memory)
		return;
	memset(b->host, (int)draw(b->actor), BYTES);
	result(b, CALL(cudaMemcpyAsync(b->memory, b->host, BYTES, H2D, b->stream)));
	result(b, CALL(cudaStreamSynchronize(b->stream)));
}

static void call_wrong_copy(struct burst *b)
{
	result(b, CALL(cudaMemcpyAsync(b->host, b->host, 0, 77, NULL)));
	CALL(cudaGetLastError());
}

static void call_set(struct burst *b)
{
	if (b->memory)
		result(b, CALL(cudaMemsetAsync(b->memory, (int)draw(b->actor), BYTES, b->stream)));
}

static void call_launch(struct burst *b)
{
	struct dim3 one = {1, 1, 1};
	void *args[] = {&b->memory};

	if (!b->memory)
		return;
	for (unsigned int i = 1 + below(b->actor, 5); i > 0; i--)
		result(b, CALL(cudaLaunchKernel(&count_up, one, one, args, 0, b->stream)));
}

static void call_events(struct burst *b)
{
	result(b, CALL(cudaEventRecord(b->event, b->stream)));
	result(b, CALL(cudaStreamWaitEvent(b->stream, b->event, 0)));
	CALL(cudaStreamQuery(b->stream));
}

/* In the simulator, as in CUDA, what another thread waits for may break a capture. */
static void call_graph(struct burst *b)
{
	void *graph, *exec;

	if (!b->stream || (simulated && !(b->actor->may & MAY_FORK)))
		return;
	result(b, CALL(cudaStreamBeginCapture(b->stream, 2)));
	call_launch(b);
	result(b, CALL(cudaStreamEndCapture(b->stream, &graph)));
	result(b, CALL(cudaGraphInstantiate(&exec, graph, 0)));
	result(b, CALL(cudaGraphLaunch(exec, b->stream)));
	CALL(cudaStreamSynchronize(b->stream));
	CALL(cudaGraphExecDestroy(exec));
	CALL(cudaGraphDestroy(graph));
}

static void count_host(void *counter)
{
	atomic_fetch_add((atomic_int *)counter, 1);
}

/* A real runtime forbids calls in there; cudaGetErrorName it has to answer. */
static void call_in_there(void *counter)
{
	int device;

	count_host(counter);
	if (!simulated)
		CALL(cudaGetDevice(&device));
}

static void call_host(struct burst *b)
{
	atomic_int counter = 0;

	result(b, CALL(cudaLaunchHostFunc(
			  b->stream, one_in(b->actor, 2) ? count_host : call_in_there, &counter)));
	CALL(cudaStreamSynchronize(b->stream));
	see(b->actor, (uint64_t)counter);
}

/* ---- that allocate --------------------------------------------------------------------------- */

static void call_allocate(struct burst *b)
{
	void *memory = NULL;
	int error = CALL(cudaMalloc(&memory, 1 + below(b->actor, 100000)));

	result(b, error);
	if (!error)
		result(b, CALL(cudaFree(memory)));
}

static void call_allocate_async(struct burst *b)
{
	void *memory = NULL;
	int error = CALL(cudaMallocAsync(&memory, 1 + below(b->actor, 100000), b->stream));

	result(b, error);
	if (!error)
		result(b, CALL(cudaFreeAsync(memory, b->stream)));
}

static void call_host_memory(struct burst *b)
{
	void *memory = NULL;

	if (CALL(cudaMallocHost(&memory, 5000)))
		return;
	if (b->memory) {
		result(b, CALL(cudaMemcpyAsync(memory, b->memory, BYTES, D2H, b->stream)));
		CALL(cudaStreamSynchronize(b->stream));
		see(b->actor, *(unsigned char *)memory);
	}
	CALL(cudaFreeHost(memory));
}

/* ---- that take locks ------------------------------------------------------------------------- */

static void call_register(struct burst *b)
{
	static char memory[64][8192] __attribute__((aligned(4096)));
	static atomic_uint next;
	char *mine = memory[atomic_fetch_add(&next, 1) % 64];

	/* the page may be another thread's as well: that is none of what is seen */
	if (CALL(cudaHostRegister(mine, 4096, 0)) == 0)
		CALL(cudaHostUnregister(mine));
	else
		CALL(cudaGetLastError());
	see(b->actor, 1);
}

static void call_query(struct burst *b)
{
	CALL(cudaEventQuery(b->event));
	CALL(cudaEventSynchronize(b->event));
}

static void call_copy_sync(struct burst *b)
{
	if (!b->memory)
		return;
	CALL(cudaStreamSynchronize(b->stream)); /* one that does not wait for the default stream */
	result(b, CALL(cudaMemcpy(b->memory, b->host, BYTES, H2D)));
	result(b, CALL(cudaMemcpy(b->host, b->memory, BYTES, D2H)));
}

static void call_set_sync(struct burst *b)
{
	if (!b->memory)
		return;
	CALL(cudaStreamSynchronize(b->stream));
	result(b, CALL(cudaMemset(b->memory, (int)draw(b->actor), BYTES)));
	result(b, CALL(cudaStreamSynchronize(NULL)));
}

/* A device that another thread captures on may not be waited for. */
static void call_wait(struct burst *b)
{
	if (!simulated || b->actor->may & MAY_FORK)
		result(b, CALL(cudaDeviceSynchronize()));
}

/* ---- bursts ---------------------------------------------------------------------------------- */

static const struct {
	void (*call)(struct burst *burst);
	unsigned int needs;
} calls[] = {
	{call_device, 0},
	{call_getters, 0},
	{call_copy, 0},
	{call_wrong_copy, 0},
	{call_set, 0},
	{call_launch, 0},
	{call_events, 0},
	{call_graph, 0},
	{call_host, 0},
	{call_allocate, MAY_ALLOCATE},
	{call_allocate_async, MAY_ALLOCATE},
	{call_host_memory, MAY_ALLOCATE},
	{call_register, MAY_LOCK},
	{call_query, MAY_LOCK},
	{call_copy_sync, MAY_LOCK},
	{call_set_sync, MAY_LOCK},
	{call_wait, MAY_LOCK},
};

enum { CALLS_CNT = sizeof(calls) / sizeof(calls[0]) };

static void make(struct burst *b, int n)
{
	while (n-- > 0) {
		unsigned int i = below(b->actor, CALLS_CNT);

		if ((b->actor->may & calls[i].needs) == calls[i].needs)
			calls[i].call(b);
	}
}

static void begin(struct burst *b, struct actor *actor)
{
	*b = (struct burst){.actor = actor};
	CALL(cudaStreamCreateWithFlags(&b->stream, 1));
	if (actor->may & MAY_ALLOCATE && CALL(cudaMalloc((void **)&b->memory, BYTES)) != 0)
		b->memory = NULL;
	if (b->memory)
		CALL(cudaMemsetAsync(b->memory, 0, BYTES, b->stream));
	CALL(cudaEventCreate(&b->event));
}

static void end(struct burst *b)
{
	struct actor *actor = b->actor;

	CALL(cudaStreamSynchronize(b->stream));
	if (b->memory && CALL(cudaMemcpyAsync(b->host, b->memory, BYTES, D2H, b->stream)) == 0 &&
	    CALL(cudaStreamSynchronize(b->stream)) == 0)
		for (int i = 0; i < BYTES; i += 8)
			see(actor, b->host[i]);
	CALL(cudaEventDestroy(b->event));
	CALL(cudaStreamDestroy(b->stream));
	if (b->memory)
		CALL(cudaFree(b->memory));
}

void burst(struct actor *actor)
{
	struct burst b;

	begin(&b, actor);
	make(&b, (int)(1 + below(actor, 30)));
	end(&b);
}

void burst_of_free(struct actor *actor, int n)
{
	unsigned int may = actor->may;
	struct burst b = {.actor = actor};

	actor->may = 0;
	make(&b, n);
	actor->may = may;
}

/* Rarely so many that packets fill. */
void do_calls(struct actor *actor)
{
	int device;

	for (unsigned int i = 1 + below(actor, 4); i > 0; i--)
		burst(actor);
	if (one_in(actor, 6))
		for (int i = 0; i < 4000; i++) {
			CALL(cudaSetDevice(i % 2));
			CALL(cudaGetDevice(&device));
		}
}

void call_in_handler(unsigned int number)
{
	struct dim3 one = {1, 1, 1};
	static unsigned char cell;
	unsigned char *memory = &cell;
	void *args[] = {&memory}, *allocated;
	atomic_int counter = 0;
	int n;

	switch (number % 8) {
	case 0:
		CALL(cudaGetDevice(&n));
		break;
	case 1:
		CALL(cudaStreamQuery(NULL));
		break;
	case 2:
		CALL(cudaLaunchKernel(&count_up, one, one, args, 0, NULL));
		break;
	case 3:
		if (CALL(cudaMalloc(&allocated, 100)) == 0)
			CALL(cudaFree(allocated));
		break;
	case 4:
		CALL(cudaLaunchHostFunc(NULL, call_in_there, &counter));
		break;
	case 5:
		CALL(cudaStreamSynchronize(NULL));
		break;
	case 6:
		CALL(cudaMemcpyAsync(&n, &counter, sizeof(n), 0, NULL));
		break;
	case 7:
		CALL(cudaGetErrorName(0));
		break;
	}
}

void call_for_ever(void)
{
	for (unsigned int i = 0;; i++)
		if (!simulated || i % 8 != 4)
			call_in_handler(i);
}

/* ---- longjmp out of a call ------------------------------------------------------------------- */

static void jump(void *buffer)
{
	longjmp(*(jmp_buf *)buffer, 1);
}

static void leave_a_call(void)
{
	jmp_buf buffer;

	if (setjmp(buffer) == 0)
		CALL(cudaLaunchHostFunc(NULL, jump, &buffer));
}

void do_jumps(struct actor *actor)
{
	for (unsigned int i = 0; i < 3 && !simulated; i++)
		leave_a_call();
	burst(actor);
}
