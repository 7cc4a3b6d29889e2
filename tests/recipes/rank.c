/*
 * tests/recipes/rank.c: one rank of a job, on the simulator: steps that end in an all-reduce of NCCL's look-alike, where
 * there are several ranks. Started by any launcher, or alone: which rank it is, it reads where such programs do. Ranks
 * meet by a file that rank 0 writes.
 *
 *   rank [STEPS]      20
 *
 * RANK_LATE=N: rank N computes 10 ms more in each step. RANK_MEET=DIR: where the file is (the current directory).
 * RANK_KILL=N: rank N ends itself by SIGKILL in the middle. Prints "rank N of M: SUM", which all ranks agree on.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include "../e2e/programs/sim_program.h"

#define COUNT 1024
#define MEET_MOST_S 60
#define LATE_MS 10

struct id {
	char bytes[128];
};

static struct {
	int (*get_unique_id)(struct id *id);
	int (*comm_init_rank)(void **comm, int ranks, struct id id, int rank);
	int (*all_reduce)(const void *in, void *out, size_t count, int type, int operation,
			  void *comm, void *stream);
	int (*comm_destroy)(void *comm);
} nccl;

static int rank, ranks = 1, local_rank;
static char delay;

static int number_of(const char *const *variables, int otherwise)
{
	for (; *variables; variables++)
		if (getenv(*variables))
			return atoi(getenv(*variables));
	return otherwise;
}

static void read_launcher(void)
{
	static const char *const names[][8] = {
		{"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"},
		{"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"},
		{"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"},
	};

	rank = number_of(names[0], 0);
	ranks = number_of(names[1], 1);
	local_rank = number_of(names[2], rank);
}

static void load_nccl(void)
{
	void *library = dlopen("libnccl.so.2", RTLD_NOW);

	if (!library)
		die("%s", dlerror());
	*(void **)&nccl.get_unique_id = dlsym(library, "ncclGetUniqueId");
	*(void **)&nccl.comm_init_rank = dlsym(library, "ncclCommInitRank");
	*(void **)&nccl.all_reduce = dlsym(library, "ncclAllReduce");
	*(void **)&nccl.comm_destroy = dlsym(library, "ncclCommDestroy");
}

static void nccl_ok(int result, const char *what)
{
	if (result)
		die("rank %d: %s: error %d", rank, what, result);
}

static void write_id(const char *path, const struct id *id)
{
	char part[4200];
	FILE *file;

	snprintf(part, sizeof(part), "%s.part", path);
	file = fopen(part, "w");
	if (!file || fwrite(id, sizeof(*id), 1, file) != 1 || fclose(file) || rename(part, path))
		die("cannot write %s: %s", path, strerror(errno));
}

static void read_id(const char *path, struct id *id)
{
	uint64_t until = now_ns() + MEET_MOST_S * 1000000000ull;
	FILE *file;

	while (!(file = fopen(path, "r")) && now_ns() < until)
		usleep(1000);
	if (!file || fread(id, sizeof(*id), 1, file) != 1)
		die("rank %d: no rank 0 came", rank);
	fclose(file);
}

static void *join(void)
{
	const char *folder = getenv("RANK_MEET") ?: ".";
	char path[4096];
	struct id id;
	void *comm;

	if (ranks == 1)
		return NULL;
	load_nccl();
	snprintf(path, sizeof(path), "%s/.ranks-meet", folder);
	if (rank == 0) {
		nccl_ok(nccl.get_unique_id(&id), "ncclGetUniqueId");
		write_id(path, &id);
	} else {
		read_id(path, &id);
	}
	nccl_ok(nccl.comm_init_rank(&comm, ranks, id, rank), "ncclCommInitRank");
	if (rank == 0)
		unlink(path); /* all have read it */
	return comm;
}

static void compute(int ms)
{
	uint64_t until = now_ns() + (uint64_t)ms * 1000000;
	volatile double value = 1;

	while (now_ns() < until)
		value = value * 1.0000001 + 1e-9;
}

static void one_step(void *comm, void *stream, int *numbers, int *host)
{
	static int us = 500;
	void *args[] = {&us};

	OK(cudaMemsetAsync(numbers, rank + 1, COUNT * sizeof(int), stream));
	OK(cudaLaunchKernel(&delay, (struct dim3){1, 1, 1}, (struct dim3){1, 1, 1}, args, 0,
			    stream));
	if (comm)
		nccl_ok(nccl.all_reduce(numbers, numbers, COUNT, 2, 0, comm, stream),
			"ncclAllReduce");
	OK(cudaMemcpyAsync(host, numbers, COUNT * sizeof(int), D2H, stream));
	OK(cudaStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 20;
	const char *late = getenv("RANK_LATE"), *killed = getenv("RANK_KILL");
	void *comm, *stream, *numbers, *host;

	read_launcher();
	register_kernels(&delay, NULL, 0);
	OK(cudaSetDevice(getenv("CUDA_VISIBLE_DEVICES") ? 0 : local_rank));
	OK(cudaStreamCreateWithFlags(&stream, 1));
	OK(cudaMalloc(&numbers, COUNT * sizeof(int)));
	OK(cudaMallocHost(&host, COUNT * sizeof(int)));
	comm = join();
	for (int step = 0; step < steps; step++) {
		if (late && atoi(late) == rank && step)
			compute(LATE_MS);
		if (killed && atoi(killed) == rank && step == steps / 2)
			raise(SIGKILL);
		one_step(comm, stream, numbers, host);
	}
	printf("rank %d of %d: %d\n", rank, ranks, *(int *)host & 0xff);
	if (comm)
		nccl_ok(nccl.comm_destroy(comm), "ncclCommDestroy");
	return 0;
}
