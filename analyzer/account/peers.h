/*
 * analyzer/account/peers.h: between which GPUs a process has enabled peer access, so far.
 */
#ifndef CUDASPY_PEERS_H
#define CUDASPY_PEERS_H

#include "trace/model.h"

struct peer_pair {
	uint32_t process;
	uint8_t device, peer; /* SPY_DEVICE_NONE: some, a recording does not say which */
	uint16_t context, peer_context; /* numbers of those it is between, 0: unknown */
};

struct peers {
	struct peer_pair *pairs; /* that are enabled */
	size_t n_pairs;
};

void peers_release(struct peers *p);

/* A call of a kind with `peers` has returned. */
void peers_see(struct peers *p, const struct model *model, const struct record *record);

/* May one of the two reach the other's memory? */
bool peers_reach(const struct peers *p, uint32_t process, uint8_t device, uint8_t other);

#endif
