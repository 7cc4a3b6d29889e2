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

/* Those whom the runtime enabled, and recordings that do not tell contexts, know none. */
static bool same_context(uint16_t context, uint16_t other)
{
	return !context || !other || context == other;
}

static struct peer_pair *find(const struct peers *p, const struct peer_pair *pair)
{
	size_t i;

	for (i = 0; i < p->n_pairs; i++)
		if (p->pairs[i].process == pair->process && p->pairs[i].device == pair->device &&
		    p->pairs[i].peer == pair->peer &&
		    same_context(p->pairs[i].context, pair->context) &&
		    same_context(p->pairs[i].peer_context, pair->peer_context))
			return &p->pairs[i];
	return NULL;
}

/*
 * Access lasts until either device is reset (the runtime's reference, "Peer Device Memory Access"), and no longer than
 * the contexts that it is between. Whether a release of a primary context was the last one, a recording does not tell.
 */
static void end(struct peers *p, const char *name, const struct record *record)
{
	const struct spy_rec_op *op = &record->raw->op;
	bool whole = strstr(name, "Reset") || strstr(name, "ThreadExit");
	uint16_t context = strstr(name, "CtxDestroy") ? op->flags : 0;
	size_t i = 0;

	if (op->head.event != SPY_EV_OP || call_failed(&op->head) ||
	    (whole && op->object >= SPY_DEVICE_NONE))
		return;
	while (i < p->n_pairs) {
		const struct peer_pair *pair = &p->pairs[i];
		bool gone = whole ? pair->device == op->object || pair->peer == op->object
				  : context && (pair->context == context ||
						pair->peer_context == context);

		if (gone && pair->process == record->process)
			p->pairs[i] = p->pairs[--p->n_pairs];
		else
			i++;
	}
}

void peers_see(struct peers *p, const struct model *model, const struct record *record)
{
	const struct function *function = &model->set->functions.all[record->fn];
	const union spy_any *raw = record->raw;
	struct peer_pair pair = {.process = record->process,
				 .device = raw->call_head.device,
				 .peer = SPY_DEVICE_NONE,
				 .context = raw->call_head.context};
	struct peer_pair *known;

	if (function->does == FUNCTION_ENDS_CONTEXT) {
		end(p, function->name, record);
		return;
	}
	if (call_failed(&raw->call_head) && raw->call_head.result != ALREADY_ENABLED)
		return;
	if (raw->other.event == SPY_EV_OP && raw->op.object < SPY_DEVICE_NONE) {
		pair.peer = (uint8_t)raw->op.object;
		pair.peer_context = raw->op.flags;
	}
	known = find(p, &pair);
	if (strstr(function->name, "Disable")) {
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
