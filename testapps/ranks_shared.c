/*
 * testapps/ranks_shared.c: the sum of all ranks' numbers without NCCL: each rank copies its own into
 * pinned memory that all processes share, meets the others on the host, adds, and copies the sum to its
 * GPU. There are two sets of places, used in turns, so that nobody overwrites what others still read.
 */
#include "common.h"
#include "ranks.h"
#include "workers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int *places; /* [2][ranks][count] */
static size_t places_bytes;
static int *total; /* this rank's, pinned */
static int turn;

void shared_make(int ranks, size_t count)
{
	places_bytes = 2 * (size_t)ranks * count * sizeof(*places);
	places =
		mmap(NULL, places_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (places == MAP_FAILED)
		die("no memory to share: %s", strerror(errno));
}

void shared_join(void)
{
	CUDA_CHECK(cudaHostRegister(places, places_bytes, cudaHostRegisterPortable));
}

void shared_sum(const int *in, int *sum, size_t count, int rank, int ranks, cudaStream_t stream)
{
	int *all = places + (size_t)turn * (size_t)ranks * count, r;
	size_t i, bytes = count * sizeof(*in);

	if (!total)
		CUDA_CHECK(cudaMallocHost((void **)&total, bytes));
	CUDA_CHECK(cudaMemcpyAsync(all + (size_t)rank * count, in, bytes, cudaMemcpyDeviceToHost,
				   stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));
	crew_meet();
	memset(total, 0, bytes);
	for (r = 0; r < ranks; r++)
		for (i = 0; i < count; i++)
			total[i] += all[(size_t)r * count + i];
	CUDA_CHECK(cudaMemcpyAsync(sum, total, bytes, cudaMemcpyHostToDevice, stream));
	turn = !turn;
}

void shared_leave(void)
{
	CUDA_CHECK(cudaHostUnregister(places));
	CUDA_CHECK(cudaFreeHost(total));
}
