/*
 * analyzer/account/peers.c: which GPUs a process has given access to the memory of others. Called
 * by the accounting.
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

/* Access that the runtime enabled, and recordings without contexts, have none. */
static bool same_context(uint16_t context, uint16_t other)
{
	return !context || !other || context == other;
}

static struct peer_pair *find(const struct peers *p, const struct peer_pair *pair)
{
	for (size_t i = 0; i < p->n_pairs; i++)
		if (p->pairs[i].device == pair->device && p->pairs[i].peer == pair->peer &&
		    p->pairs[i].access == pair->access &&
		    same_context(p->pairs[i].context, pair->context) &&
		    same_context(p->pairs[i].peer_context, pair->peer_context))
			return &p->pairs[i];
	return NULL;
}

static void remember(struct peers *p, const struct peer_pair *pair)
{
	struct peer_pair *known = find(p, pair);

	if (known) { /* it is not only between those */
		known->context = known->context == pair->context ? pair->context : 0;
		known->peer_context =
			known->peer_context == pair->peer_context ? pair->peer_context : 0;
		return;
	}
	p->pairs = grow(p->pairs, p->n_pairs, sizeof(*p->pairs));
	p->pairs[p->n_pairs++] = *pair;
}

/*
 * Peer access lasts until either device is reset (the runtime's reference, "Peer Device Memory
 * Access"), and no longer than the contexts that it is between. Mapped memory and pools belong to
 * no context (cuCtxDestroy's page), and so do their lists. Whether a release of a primary context
 * was the last one, a recording does not tell.
 */
static void end(struct peers *p, const char *name, const struct record *record)
{
	const struct spy_rec_op *op = record_op(record);
	bool whole = strstr(name, "Reset") || strstr(name, "ThreadExit");
	uint16_t context = op && strstr(name, "CtxDestroy") ? op->flags : 0;
	size_t i = 0;

	if (!op || (whole && op->object >= SPY_DEVICE_NONE))
		return;
	while (i < p->n_pairs) {
		const struct peer_pair *pair = &p->pairs[i];
		bool gone = whole ? pair->device == op->object || pair->peer == op->object
				  : context && (pair->context == context ||
						pair->peer_context == context);

		if (gone && pair->access == SPY_ACCESS_PEER)
			p->pairs[i] = p->pairs[--p->n_pairs];
		else
			i++;
	}
}

/* To memory that has a list of the GPUs that may reach it: which pool or address that is, is not
 * asked, nor what is taken away again. */
static void give(struct peers *p, const struct record *record, enum spy_access access)
{
	const struct spy_rec_op *op = record_op(record);
	struct peer_pair pair = {.peer = SPY_DEVICE_NONE};

	if (!op || !(op->object & SPY_ACCESS_GIVEN)) {
		pair.device = SPY_DEVICE_NONE;
		remember(p, &pair);
		return;
	}
	pair.access = (uint8_t)access;
	pair.peer = (uint8_t)op->flags;
	for (pair.device = 0; pair.device < SPY_ACCESS_GPUS; pair.device++)
		if (op->object >> pair.device & 1 && pair.device != pair.peer)
			remember(p, &pair);
}

static void enable(struct peers *p, const struct record *record, bool enable)
{
	const struct spy_rec_op *op = record_op(record);
	struct peer_pair *known, pair = {.device = record->device,
					 .peer = SPY_DEVICE_NONE,
					 .access = SPY_ACCESS_PEER,
					 .context = record_context(record)};

	if (op && op->object < SPY_DEVICE_NONE) {
		pair.peer = (uint8_t)op->object;
		pair.peer_context = op->flags;
	}
	if (enable) {
		remember(p, &pair);
		return;
	}
	known = find(p, &pair);
	if (known)
		*known = p->pairs[--p->n_pairs];
}

/* Memory of another process enables peer access to the GPU that it lies on (cudaIpcOpenMemHandle's
 * page, cudaIpcMemLazyEnablePeerAccess): which one is unknown. */
static void share(struct peers *p, const struct record *record)
{
	struct peer_pair pair = {.device = record->device,
				 .peer = SPY_DEVICE_NONE,
				 .access = SPY_ACCESS_PEER,
				 .context = record_context(record)};

	remember(p, &pair);
}

void peers_see(struct peers *p, const struct model *model, const struct record *record)
{
	const struct function *function = &model->set->functions.all[record->fn];

	if (record_failed(record) && record->result != ALREADY_ENABLED)
		return;
	if (function->does == FUNCTION_ENDS_CONTEXT)
		end(p, function->name, record);
	else if (function->does == FUNCTION_OPENS_MAPPING)
		give(p, record, SPY_ACCESS_MAPPED);
	else if (function->does == FUNCTION_OPENS_POOL)
		give(p, record, SPY_ACCESS_POOL);
	else if (function->does == FUNCTION_OPENS_SHARED)
		share(p, record);
	else
		enable(p, record, function->does == FUNCTION_OPENS_PEER);
}

static bool reaches(const struct peers *p, unsigned int device, unsigned int other,
		    unsigned int access)
{
	for (size_t i = 0; i < p->n_pairs; i++) {
		const struct peer_pair *pair = &p->pairs[i];

		if ((pair->device == device || pair->device == SPY_DEVICE_NONE) &&
		    (pair->peer == other || pair->peer == SPY_DEVICE_NONE) &&
		    (!access || !pair->access || pair->access == access))
			return true;
	}
	return false;
}

bool peers_reach(const struct peers *p, const struct spy_rec_copy *copy)
{
	return reaches(p, copy->dst_device, copy->src_device, copy->src_access) ||
	       reaches(p, copy->src_device, copy->dst_device, copy->dst_access);
}
