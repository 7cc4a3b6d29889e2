/*
 * tests/e2e/programs/peers.c: copies from GPU 0 to GPU 1, with memory and access as the habit named says, and whether they
 * then go through the host. What they do the simulator knows (SPYSIM_TRUTH).
 *
 *   peers HABIT     one of those listed below, on the simulator
 */
#include <string.h>
#include "sim_program.h"

int cudaDeviceReset(void);
int cuCtxPopCurrent_v2(void **context);
int cuCtxSetCurrent(void *context);
int cuCtxEnablePeerAccess(void *peer, unsigned int flags);
int cuInit(unsigned int flags);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream);
int cuStreamSynchronize(void *stream);

enum { ROUNDS = 20, BYTES = 2 << 20, DEFAULT = 4 };

static void *on(int device)
{
	void *address;

	OK(cudaSetDevice(device));
	OK(cudaMalloc(&address, BYTES));
	return address;
}

/* The current device is GPU 0. */
static __attribute__((noinline)) void copies(void *to, const void *from)
{
	for (int i = 0; i < ROUNDS; i++)
		OK(cudaMemcpyAsync(to, from, BYTES, DEFAULT, NULL));
	OK(cudaDeviceSynchronize());
}

/* Access ends with a reset of either device. */
static void reset_one(int device)
{
	void *there;

	OK(cudaSetDevice(0));
	OK(cudaDeviceEnablePeerAccess(1, 0));
	if (device >= 0) {
		OK(cudaSetDevice(device));
		OK(cudaDeviceReset());
	}
	there = on(1);
	copies(there, on(0));
}

static void reset(void)
{
	reset_one(0);
}

static void reset_peer(void)
{
	reset_one(1);
}

static void not_reset(void)
{
	reset_one(-1);
}

static void reset_and_again(void)
{
	void *there;

	OK(cudaSetDevice(0));
	OK(cudaDeviceEnablePeerAccess(1, 0));
	OK(cudaDeviceReset());
	OK(cudaDeviceEnablePeerAccess(1, 0));
	there = on(1);
	copies(there, on(0));
}

/* Of four contexts one on each GPU has access, and one of them is destroyed. */
static void contexts(int destroyed)
{
	void *all[4];
	uint64_t to, from;

	OK(cuInit(0));
	for (int i = 0; i < 4; i++) {
		OK(cuCtxCreate_v4(&all[i], NULL, 0, i & 1));
		OK(cuCtxPopCurrent_v2(NULL));
	}
	OK(cuCtxSetCurrent(all[0]));
	OK(cuCtxEnablePeerAccess(all[1], 0));
	if (destroyed >= 0)
		OK(cuCtxDestroy_v2(all[destroyed]));
	OK(cuCtxSetCurrent(all[destroyed == 1 ? 3 : 1]));
	OK(cuMemAlloc_v2(&to, BYTES));
	OK(cuCtxSetCurrent(all[destroyed == 0 ? 2 : 0]));
	OK(cuMemAlloc_v2(&from, BYTES));
	for (int i = 0; i < ROUNDS; i++)
		OK(cuMemcpyAsync(to, from, BYTES, NULL));
	OK(cuStreamSynchronize(NULL));
}

static void destroyed(void)
{
	contexts(0);
}

static void destroyed_peer(void)
{
	contexts(1);
}

static void destroyed_other(void)
{
	contexts(3);
}

/* ---- mapped memory ---- */

struct access {
	struct {
		int type, id;
	} who;
	int flags;
};

int cuMemCreate(uint64_t *handle, size_t bytes, const void *properties, unsigned long long flags);
int cuMemAddressReserve(uint64_t *address, size_t bytes, size_t align, uint64_t hint,
			unsigned long long flags);
int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t handle,
	     unsigned long long flags);

enum { ON_DEVICE = 1, READ_WRITE = 3 };

static void open_to(void *address, int first, int n)
{
	struct access both[2] = {{{ON_DEVICE, 0}, READ_WRITE}, {{ON_DEVICE, 1}, READ_WRITE}};

	OK(cuMemSetAccess((uint64_t)(uintptr_t)address, BYTES, (const int *)&both[first],
			  (size_t)n));
}

/* On a device, whichever is the current one, and open to that. */
static void *mapped_on(int device)
{
	struct {
		int type, handles, location[2];
		void *security;
		char flags[8];
	} properties = {1, 0, {ON_DEVICE, device}, NULL, ""};
	uint64_t handle, address;

	OK(cuMemCreate(&handle, BYTES, &properties, 0));
	OK(cuMemAddressReserve(&address, BYTES, 0, 0, 0));
	OK(cuMemMap(address, BYTES, 0, handle, 0));
	open_to((void *)(uintptr_t)address, device, 1);
	return (void *)(uintptr_t)address;
}

/* Each device's by a thread whose current one it is. */
static void map(void **there, void **here)
{
	OK(cudaSetDevice(1));
	*there = mapped_on(1);
	OK(cudaSetDevice(0));
	*here = mapped_on(0);
}

static void mapped(void)
{
	void *there, *here;

	map(&there, &here);
	copies(there, here);
}

static void mapped_opened(void)
{
	void *there, *here;

	map(&there, &here);
	open_to(there, 0, 2);
	copies(there, here);
}

/* Peer access is not for mapped memory, */
static void mapped_enabled(void)
{
	void *there, *here;

	map(&there, &here);
	OK(cudaDeviceEnablePeerAccess(1, 0));
	copies(there, here);
}

/* nor cuMemSetAccess for any other. */
static void opened_beside(void)
{
	void *there, *here;

	map(&there, &here);
	open_to(there, 0, 2);
	open_to(here, 0, 2);
	there = on(1);
	copies(there, on(0));
}

static void enabled_beside(void)
{
	void *there, *here;

	map(&there, &here);
	OK(cudaDeviceEnablePeerAccess(1, 0));
	there = on(1);
	copies(there, on(0));
}

/* All of it by one thread, whose device is another one, and the device of some of it is reset before the copies. */
static void mapped_from(int current, int to, int from, int opened)
{
	void *there, *here;

	OK(cudaSetDevice(current));
	there = mapped_on(to);
	here = mapped_on(from);
	if (opened)
		open_to(there, 0, 2);
	OK(cudaSetDevice(1));
	OK(cudaDeviceReset());
	OK(cudaSetDevice(0));
	copies(there, here);
}

static void mapped_by_one(void)
{
	mapped_from(0, 1, 0, 0);
}

static void mapped_by_one_opened(void)
{
	mapped_from(0, 1, 0, 1);
}

static void mapped_by_other(void)
{
	mapped_from(1, 1, 0, 0);
}

static void mapped_on_one(void)
{
	void *there = on(0);

	OK(cudaSetDevice(1));
	copies(there, mapped_on(0));
}

/* ---- pools ---- */

int cudaDeviceGetDefaultMemPool(void **pool, int device);
int cudaMemPoolCreate(void **pool, const void *properties);
int cudaMemPoolSetAccess(void *pool, const struct access *whom, size_t n);
int cudaMallocFromPoolAsync(void **address, size_t bytes, void *pool, void *stream);

static __attribute__((noinline)) void named_copies(void *to, const void *from)
{
	for (int i = 0; i < ROUNDS; i++)
		OK(cudaMemcpyPeerAsync(to, 1, from, 0, BYTES, NULL));
	OK(cudaDeviceSynchronize());
}

static void *pooled_on(int device)
{
	void *address;

	OK(cudaSetDevice(device));
	OK(cudaMallocAsync(&address, BYTES, NULL));
	OK(cudaDeviceSynchronize());
	return address;
}

static void open_pool(void *pool, int device)
{
	struct access access = {{ON_DEVICE, device}, READ_WRITE};

	OK(cudaMemPoolSetAccess(pool, &access, 1));
}

static void open_default_pool(int of, int to)
{
	void *pool;

	OK(cudaDeviceGetDefaultMemPool(&pool, of));
	open_pool(pool, to);
}

static void pooled(void)
{
	void *there = pooled_on(1);

	copies(there, pooled_on(0));
}

static void pooled_named(void)
{
	void *there = pooled_on(1);

	named_copies(there, pooled_on(0));
}

static void pooled_opened(void)
{
	void *there = pooled_on(1);

	open_default_pool(1, 0);
	copies(there, pooled_on(0));
}

static void pooled_opened_named(void)
{
	void *there = pooled_on(1);

	open_default_pool(0, 1);
	named_copies(there, pooled_on(0));
}

/* To its own GPU, which has access anyway. */
static void pooled_opened_to_own(void)
{
	void *there = pooled_on(1);

	open_default_pool(1, 1);
	copies(there, pooled_on(0));
}

/* Peer access is not for memory of pools, */
static void pooled_enabled(void)
{
	void *there = pooled_on(1), *here = pooled_on(0);

	OK(cudaDeviceEnablePeerAccess(1, 0));
	OK(cudaSetDevice(1));
	OK(cudaDeviceEnablePeerAccess(0, 0));
	OK(cudaSetDevice(0));
	copies(there, here);
}

/* but as long as one end is not a pool's. */
static void half_pooled_enabled(void)
{
	void *there = on(1), *here = pooled_on(0);

	OK(cudaDeviceEnablePeerAccess(1, 0));
	copies(there, here);
}

static void pool_opened_beside(void)
{
	void *there = on(1);

	open_default_pool(1, 0);
	open_default_pool(0, 1);
	copies(there, on(0));
}

static void from_own_pool(int open)
{
	struct {
		int type, handles, location[2];
		void *security;
		char rest[64];
	} properties = {1, 0, {ON_DEVICE, 1}, NULL, ""};
	void *pool, *there;

	OK(cudaSetDevice(1));
	OK(cudaMemPoolCreate(&pool, &properties));
	OK(cudaMallocFromPoolAsync(&there, BYTES, pool, NULL));
	open_pool(pool, open ? 0 : 1);
	copies(there, on(0));
}

static void own_pool(void)
{
	from_own_pool(0);
}

static void own_pool_opened(void)
{
	from_own_pool(1);
}

static const struct {
	const char *name;
	void (*run)(void);
} habits[] = {
	{"reset", reset},
	{"reset_peer", reset_peer},
	{"not_reset", not_reset},
	{"reset_and_again", reset_and_again},
	{"destroyed", destroyed},
	{"destroyed_peer", destroyed_peer},
	{"destroyed_other", destroyed_other},
	{"mapped", mapped},
	{"mapped_opened", mapped_opened},
	{"mapped_enabled", mapped_enabled},
	{"opened_beside", opened_beside},
	{"enabled_beside", enabled_beside},
	{"mapped_by_one", mapped_by_one},
	{"mapped_by_one_opened", mapped_by_one_opened},
	{"mapped_by_other", mapped_by_other},
	{"mapped_on_one", mapped_on_one},
	{"pooled", pooled},
	{"pooled_named", pooled_named},
	{"pooled_opened", pooled_opened},
	{"pooled_opened_named", pooled_opened_named},
	{"pooled_opened_to_own", pooled_opened_to_own},
	{"pooled_enabled", pooled_enabled},
	{"half_pooled_enabled", half_pooled_enabled},
	{"pool_opened_beside", pool_opened_beside},
	{"own_pool", own_pool},
	{"own_pool_opened", own_pool_opened},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(habits) / sizeof(habits[0]); i++)
		if (!strcmp(argv[1], habits[i].name)) {
			habits[i].run();
			return 0;
		}
	fprintf(stderr, "usage: peers HABIT\n");
	return 2;
}
