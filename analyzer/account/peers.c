/*
 * analyzer/account/peers.c: between which GPUs a process has enabled peer access. Called by the accounting.
 */
#include <stdlib.h>
#include <string.h>
#include "peers.h"

#define ALREADY_ENABLED 704 /* cudaErrorPeerAccessAlreadyEnabled, the driver's the same */

void peers_release(struct peers *p)
{
	free(p->pairs);
	*p = (struct peers){0};
}

static struct peer_pair *find(const struct peers *p, const struct peer_pair *pair)
{
	size_t i;

	for (i = 0; i < p->n_pairs; i++)
		if (p->pairs[i].process == pair->process && p->pairs[i].device == pair->device &&
		    p->pairs[i].peer == pair->peer)
			return &p->pairs[i];
	return NULL;
}

void peers_see(struct peers *p, const struct model *model, const struct record *record)
{
	const union spy_any *raw = record->raw;
	const char *name = model->set->functions.all[record->fn].name;
	struct peer_pair pair = {.process = record->process,
				 .device = raw->call_head.device,
				 .peer = SPY_DEVICE_NONE};
	struct peer_pair *known;

	if ((!strstr(name, "PeerAccess") && !strstr(name, "SetAccess")) ||
	    (call_failed(&raw->call_head) && raw->call_head.result != ALREADY_ENABLED))
		return;
	if (raw->other.event == SPY_EV_OP && raw->op.object < SPY_DEVICE_NONE)
		pair.peer = (uint8_t)raw->op.object;
	known = find(p, &pair);
	if (strstr(name, "Disable")) {
		if (known)
			*known = p->pairs[--p->n_pairs];
		return;
	}
	if (known)
		return;
	/* Enabled, or memory was mapped for some GPU. */
	p->pairs = grow(p->pairs, p->n_pairs, sizeof(*p->pairs));
	p->pairs[p->n_pairs++] = pair;
}

bool peers_reach(const struct peers *p, uint32_t process, uint8_t device, uint8_t other)
{
	size_t i;

	for (i = 0; i < p->n_pairs; i++) {
		const struct peer_pair *pair = &p->pairs[i];
		bool any = pair->peer == SPY_DEVICE_NONE || pair->device == SPY_DEVICE_NONE;

		if (pair->process != process)
			continue;
		if (any || (pair->device == device && pair->peer == other) ||
		    (pair->device == other && pair->peer == device))
			return true;
	}
	return false;
}
