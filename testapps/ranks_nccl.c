/*
 * testapps/ranks_nccl.c: the sum of all ranks' numbers through NCCL, which is opened when the program
 * runs: it needs no NCCL to be built. The few functions are declared after nccl.h.
 */
#include "common.h"
#include "ranks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { NCCL_INT32 = 2, NCCL_SUM = 0 };

static struct {
	int (*get_unique_id)(struct nccl_id *id);
	int (*comm_init_rank)(void **comm, int ranks, struct nccl_id id, int rank);
	int (*all_reduce)(const void *in, void *out, size_t count, int type, int reduction,
			  void *comm, cudaStream_t stream);
	int (*send)(const void *in, size_t count, int type, int peer, void *comm,
		    cudaStream_t stream);
	int (*recv)(void *out, size_t count, int type, int peer, void *comm, cudaStream_t stream);
	int (*group_start)(void);
	int (*group_end)(void);
	int (*comm_get_async_error)(void *comm, int *error);
	int (*comm_destroy)(void *comm);
	const char *(*get_error_string)(int error);
} nccl;
static void *comm;

static void check(int result, const char *call)
{
	if (result)
		die("%s: %s", call, nccl.get_error_string(result));
}

static void set(const char *name, const char *format, int value)
{
	char text[32];

	snprintf(text, sizeof(text), format, value);
	setenv(name, text, 1);
}

void nccl_name_rank(int rank, int ranks, int gpus)
{
	set("RANK", "%d", rank);
	set("LOCAL_RANK", "%d", rank);
	set("WORLD_SIZE", "%d", ranks);
	if (ranks > gpus)
		set("NCCL_HOSTID", "rank-%d", rank);
}

bool nccl_load(void)
{
	static const struct {
		const char *name;
		void *function;
	} functions[] = {
		{"ncclGetUniqueId", &nccl.get_unique_id},
		{"ncclCommInitRank", &nccl.comm_init_rank},
		{"ncclAllReduce", &nccl.all_reduce},
		{"ncclSend", &nccl.send},
		{"ncclRecv", &nccl.recv},
		{"ncclGroupStart", &nccl.group_start},
		{"ncclGroupEnd", &nccl.group_end},
		{"ncclCommGetAsyncError", &nccl.comm_get_async_error},
		{"ncclCommDestroy", &nccl.comm_destroy},
		{"ncclGetErrorString", &nccl.get_error_string},
	};
	void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	size_t i;

	for (i = 0; library && i < sizeof(functions) / sizeof(functions[0]); i++) {
		*(void **)functions[i].function = dlsym(library, functions[i].name);
		if (!*(void **)functions[i].function)
			die("libnccl.so.2 has no %s", functions[i].name);
	}
	return library;
}

void nccl_make_id(struct nccl_id *id)
{
	check(nccl.get_unique_id(id), "ncclGetUniqueId");
}

void nccl_join(const struct nccl_id *id, int rank, int ranks)
{
	check(nccl.comm_init_rank(&comm, ranks, *id, rank), "ncclCommInitRank");
}

void nccl_sum(const int *in, int *sum, size_t count, cudaStream_t stream)
{
	check(nccl.all_reduce(in, sum, count, NCCL_INT32, NCCL_SUM, comm, stream), "ncclAllReduce");
}

void nccl_send(const int *in, size_t count, int rank, cudaStream_t stream)
{
	check(nccl.send(in, count, NCCL_INT32, rank, comm, stream), "ncclSend");
}

void nccl_receive(int *out, size_t count, int rank, cudaStream_t stream)
{
	check(nccl.recv(out, count, NCCL_INT32, rank, comm, stream), "ncclRecv");
}

void nccl_exchange(const int *in, int *out, size_t count, int rank, int ranks, cudaStream_t stream)
{
	size_t part = count / (size_t)ranks;

	check(nccl.group_start(), "ncclGroupStart");
	for (int i = 0; i < ranks; i++) {
		int peer = (rank + i) % ranks;

		nccl_send(in + (size_t)peer * part, part, peer, stream);
		nccl_receive(out + (size_t)peer * part, part, peer, stream);
	}
	check(nccl.group_end(), "ncclGroupEnd");
}

void nccl_check(void)
{
	int error;

	check(nccl.comm_get_async_error(comm, &error), "ncclCommGetAsyncError");
	check(error, "ncclAllReduce");
}

void nccl_leave(void)
{
	check(nccl.comm_destroy(comm), "ncclCommDestroy");
}
