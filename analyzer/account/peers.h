/*
 * analyzer/account/peers.h: which GPUs one process has given access to the memory of others, so far.
 */
#ifndef CUDASPY_PEERS_H
#define CUDASPY_PEERS_H

#include "model/model.h"

struct peer_pair {
	uint8_t device; /* reaches memory of ... */
	/* SPY_DEVICE_NONE: some, a recording does not say which; of device the same */
	uint8_t peer;
	uint8_t access; /* enum spy_access: which memory; SPY_ACCESS_UNKNOWN: unknown */
	uint16_t context, peer_context; /* of peer access: numbers, 0: unknown */
};

struct peers {
	struct peer_pair *pairs;
	size_t n_pairs;
};

void peers_release(struct peers *p);

/* A call of a kind with `peers` has returned. */
void peers_see(struct peers *p, const struct model *model, const struct record *record);

/* Of a copy from GPU to GPU: may one of the two reach the other's end? */
bool peers_reach(const struct peers *p, const struct spy_rec_copy *copy);

#endif
