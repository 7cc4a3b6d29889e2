/*
 * tests/sim/selftest_nccl.c: the look-alike of NCCL with several processes: `selftest_nccl RANKS [MODE]`.
 * Each rank is a process; they run every operation, and what comes out is compared. Modes: `late` (rank 1
 * submits 20 ms late, and rank 0's kernel must have waited for it), `alone` (rank 1 never submits: with a
 * short nccl_wait_s the others get an error). Run by tests/e2e/test_sim_nccl.sh.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct id {
	char bytes[128];
};
enum { INT32 = 2, FLOAT32 = 7, SUM = 0, COUNT = 1000 };

int ncclGetVersion(int *out);
int ncclGetUniqueId(struct id *out);
int ncclCommInitRank(void **out, int cnt, struct id id, int rank);
int ncclCommSplit(void *comm, int color, int key, void **out, void *config);
int ncclCommCount(void *comm, int *out);
int ncclCommGetAsyncError(void *comm, int *out);
int ncclCommDestroy(void *comm);
int ncclCommAbort(void *comm);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *in, void *out, size_t n, int type, int op, void *comm, void *stream);
int ncclReduce(const void *in, void *out, size_t n, int type, int op, int root, void *comm,
	       void *stream);
int ncclReduceScatter(const void *in, void *out, size_t n, int type, int op, void *comm,
		      void *stream);
int ncclAllGather(const void *in, void *out, size_t n, int type, void *comm, void *stream);
int ncclBroadcast(const void *in, void *out, size_t n, int type, int root, void *comm,
		  void *stream);
int ncclSend(const void *in, size_t n, int type, int peer, void *comm, void *stream);
int ncclRecv(void *out, size_t n, int type, int peer, void *comm, void *stream);
int cudaSetDevice(int dev);
int cudaMalloc(void **out, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaStreamCreateWithFlags(void **out, unsigned flags);
int cudaStreamSynchronize(void *stream);
int cudaDeviceSynchronize(void);

static int rank, ranks;
static void *comm, *stream;
static float *in, *out, host[COUNT * 32];

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "rank %d: not so: %s\n", rank, #what); \
			_exit(1); \
		} \
	} while (0)

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double begun_ms; /* before there were ranks */

/* Element i of what rank r puts in. */
static float value(int r, int i)
{
	return (float)((r + 1) * (i % 50 + 1));
}

static void fill(int elements)
{
	for (int i = 0; i < elements; i++)
		host[i] = value(rank, i);
	CHECK(!cudaMemcpy(in, host, (size_t)elements * 4, 1));
	memset(host, 0, sizeof(host));
	CHECK(!cudaMemcpy(out, host, sizeof(host), 1));
	CHECK(!cudaDeviceSynchronize()); /* until then the data may only have been staged */
}

static void fetch(void)
{
	CHECK(!cudaStreamSynchronize(stream));
	CHECK(!cudaMemcpy(host, out, sizeof(host), 2));
}

static float sum_of(int i)
{
	float sum = 0;

	for (int r = 0; r < ranks; r++)
		sum += value(r, i);
	return sum;
}

static void collectives(void)
{
	fill(COUNT);
	for (int i = 0; i < 30; i++) /* more than the ring of slots has */
		CHECK(!ncclAllReduce(in, out, COUNT, FLOAT32, SUM, comm, stream));
	fetch();
	for (int i = 0; i < COUNT; i++)
		CHECK(host[i] == sum_of(i));

	fill(COUNT);
	CHECK(!ncclAllGather(in, out, COUNT, FLOAT32, comm, stream));
	fetch();
	for (int i = 0; i < COUNT * ranks; i++)
		CHECK(host[i] == value(i / COUNT, i % COUNT));

	fill(COUNT * ranks);
	CHECK(!ncclReduceScatter(in, out, COUNT, FLOAT32, SUM, comm, stream));
	fetch();
	for (int i = 0; i < COUNT; i++)
		CHECK(host[i] == sum_of(rank * COUNT + i));

	fill(COUNT);
	CHECK(!ncclBroadcast(in, out, COUNT, FLOAT32, 1, comm, stream));
	fetch();
	for (int i = 0; i < COUNT; i++)
		CHECK(host[i] == value(1, i));

	fill(COUNT);
	CHECK(!ncclReduce(in, out, COUNT, FLOAT32, SUM, 1, comm, stream));
	fetch();
	for (int i = 0; i < COUNT; i++)
		CHECK(host[i] == (rank == 1 ? sum_of(i) : 0));
}

static void neighbours(void)
{
	int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;

	fill(COUNT);
	CHECK(!ncclGroupStart());
	CHECK(!ncclSend(in, COUNT, FLOAT32, right, comm, stream));
	CHECK(!ncclRecv(out, COUNT, FLOAT32, left, comm, stream));
	CHECK(!ncclGroupEnd());
	fetch();
	for (int i = 0; i < COUNT; i++)
		CHECK(host[i] == value(left, i));
}

static void split(void)
{
	void *half;
	int cnt, color = rank % 2;
	float sum = 0;

	CHECK(!ncclCommSplit(comm, color, rank, &half, NULL));
	CHECK(!ncclCommCount(half, &cnt));
	CHECK(cnt == (ranks + 1 - color) / 2);
	fill(COUNT);
	CHECK(!ncclAllReduce(in, out, COUNT, FLOAT32, SUM, half, stream));
	fetch();
	for (int r = color; r < ranks; r += 2)
		sum += value(r, 7);
	CHECK(host[7] == sum);
	CHECK(!ncclCommDestroy(half));
}

/* Rank 1 comes late, and says in the data when: nobody is done before. */
static void late(void)
{
	float came_ms = 0;

	fill(COUNT);
	if (rank == 1) {
		usleep(20000);
		came_ms = (float)(now_ms() - begun_ms);
	}
	CHECK(!cudaMemcpy(in + 5, &came_ms, sizeof(came_ms), 1));
	CHECK(!cudaDeviceSynchronize());
	CHECK(!ncclAllReduce(in, out, COUNT, FLOAT32, SUM, comm, stream));
	fetch();
	CHECK(host[5] >= 20 && now_ms() - begun_ms >= (double)host[5]);
	CHECK(host[3] == sum_of(3));
}

static void alone(void)
{
	int error = 0;

	fill(COUNT);
	if (rank != 1)
		CHECK(!ncclAllReduce(in, out, COUNT, FLOAT32, SUM, comm, stream));
	CHECK(!cudaStreamSynchronize(stream));
	CHECK(!ncclCommGetAsyncError(comm, &error));
	CHECK(error == (rank == 1 ? 0 : 6));
	CHECK(!ncclCommAbort(comm));
}

static void run(const struct id *id, const char *mode)
{
	CHECK(!cudaSetDevice(0));
	CHECK(!cudaStreamCreateWithFlags(&stream, 1));
	CHECK(!cudaMalloc((void **)&in, sizeof(host)));
	CHECK(!cudaMalloc((void **)&out, sizeof(host)));
	CHECK(!ncclCommInitRank(&comm, ranks, *id, rank));
	if (!strcmp(mode, "alone")) {
		alone();
		return;
	}
	if (!strcmp(mode, "late")) {
		late();
	} else {
		collectives();
		neighbours();
		split();
	}
	CHECK(!ncclCommDestroy(comm));
}

int main(int argc, char **argv)
{
	struct id id;
	int status, bad = 0;

	ranks = argc > 1 ? atoi(argv[1]) : 2;
	begun_ms = now_ms();
	if (ncclGetUniqueId(&id))
		return 1;
	for (rank = 0; rank < ranks; rank++)
		if (!fork()) {
			run(&id, argc > 2 ? argv[2] : "all");
			exit(0);
		}
	for (int i = 0; i < ranks; i++)
		bad |= wait(&status) < 0 || status;
	if (!bad)
		printf("selftest_nccl: %d ranks: ok\n", ranks);
	return bad != 0;
}
