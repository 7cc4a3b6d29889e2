/*
 * shim/nccl/pairs.c: the numbers of sends and receives, which NCCL gives only to collective operations: how many there
 * were of a kind between two ranks of a communicator, recorded or not. Runs on the application's threads, within NCCL's
 * profiler interface.
 */
#include "lib/lock.h"
#include "nccl/operations.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

#define PAIRS_MOST 4096 /* of all communicators: those that come later have no numbers */
#define PROBES_MOST 32

static struct pair {
	uint64_t key; /* 0: free */
	uint64_t n;
} pairs[PAIRS_MOST];
static struct spy_lock pairs_lock;

static struct pair *find(uint64_t key)
{
	uint64_t at = key * 0x9e3779b97f4a7c15 >> 32;

	for (unsigned int i = 0; i < PROBES_MOST; i++) {
		struct pair *pair = &pairs[(at + i) % PAIRS_MOST];

		if (!pair->key)
			pair->key = key;
		if (pair->key == key)
			return pair;
	}
	return NULL;
}

uint64_t spy_nccl_pair_number(uint32_t comm, int32_t peer, bool receives)
{
	uint64_t key = (uint64_t)comm << 32 | (uint64_t)(uint32_t)peer << 1 | receives;
	struct pair *pair;
	uint64_t n = 0;

	if (peer < 0 || !spy_lock(&pairs_lock))
		return 0;
	pair = find(key);
	if (pair)
		n = ++pair->n;
	spy_unlock(&pairs_lock);
	return n;
}

void spy_nccl_pairs_forked(void)
{
	spy_lock_forget(&pairs_lock);
}
