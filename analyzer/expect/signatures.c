/*
 * analyzer/expect/signatures.c: signatures of calls. Called by both readings for a call of a new
 * signature.
 */
#include <stdlib.h>
#include <string.h>
#include "signatures.h"

#define PLACES_FIRST 64
#define PLACES_MOST 16384 /* half of them in use at most */

void signatures_release(struct signature_cache *cache)
{
	free(cache->all);
	*cache = (struct signature_cache){0};
}

/* Room for one more. */
static void make_room(struct signature_cache *cache)
{
	struct signature_cache old = *cache;

	if (2 * (cache->n + 1) <= cache->n_places)
		return;
	if (cache->n_places == PLACES_MOST) {
		memset(cache->all, 0, cache->n_places * sizeof(*cache->all));
		cache->n = 0;
		return;
	}
	cache->n_places = old.n_places ? 4 * old.n_places : PLACES_FIRST;
	cache->shift = 64 - (unsigned int)__builtin_ctzll(cache->n_places);
	cache->all = xcalloc(cache->n_places, sizeof(*cache->all));
	for (size_t i = 0; i < old.n_places; i++)
		if (old.all[i].detail)
			*signature_place(cache, old.all[i].head, old.all[i].detail) = old.all[i];
	free(old.all);
}

/* Does a thread that makes such a call go on working? Not if it tidies up. */
static bool is_try(uint8_t contract)
{
	switch (contract) {
	case SPY_CONTRACT_HOST:
	case SPY_CONTRACT_FREE:
	case SPY_CONTRACT_INIT:
	case SPY_CONTRACT_MODULE:
	case SPY_CONTRACT_LIBRARY:
	case SPY_CONTRACT_LIMIT:
		return false;
	default:
		return true;
	}
}

static bool submits(const struct record *record, uint8_t contract)
{
	return spy_contract_submits(contract) &&
	       (record->event != SPY_EV_COPY || copy_moves(record_copy(record)));
}

static void see_copy(struct call_signature *signature, const struct spy_rec_copy *copy)
{
	signature->copy = true;
	/* Also where the direction is unknown. */
	signature->to_host = copy->direction != SPY_DIR_H2D && copy->direction != SPY_DIR_D2D;
	signature->blocks_on_pageable =
		copy->dst_kind == SPY_MEM_PAGEABLE || copy->direction == SPY_DIR_H2H;
}

/* Which GPUs reach which memory? */
static bool changes_access(uint8_t does)
{
	return does == FUNCTION_OPENS_PEER || does == FUNCTION_CLOSES_PEER ||
	       does == FUNCTION_OPENS_POOL || does == FUNCTION_OPENS_MAPPING ||
	       does == FUNCTION_OPENS_SHARED || does == FUNCTION_ENDS_CONTEXT;
}

struct call_signature *signature_add(struct signature_cache *cache, struct expect *e,
				     struct trace *trace, const struct record *record)
{
	struct call_signature signature =
				      {
					      .head = signature_head(record),
					      .detail = signature_detail(record),
					      .fn = trace_function(e->set, trace, record->trace_fn),
					      .failed = record_failed(record),
				      },
			      *place;
	const struct function *function = &e->set->functions.all[signature.fn];

	signature.contract = function->contract;
	signature.waits = gpu_wait_of(record, signature.contract, &trace->cuda);
	signature.progress_calls = is_try(signature.contract);
	if (record->event == SPY_EV_COPY)
		see_copy(&signature, record_copy(record));
	if (record->event == SPY_EV_OP)
		signature.does = function->does;
	signature.submits = submits(record, signature.contract);
	signature.is_work = record->event != SPY_EV_OP || signature.does == FUNCTION_LAUNCHES_GRAPH;
	signature.host_visible = signature.to_host || signature.does == FUNCTION_LAUNCHES_GRAPH ||
				 signature.does == FUNCTION_SHOWS_OTHERS;
	signature.waited = gpu_wait_ended(record, signature.contract, signature.waits);
	signature.has_stream = record->event >= SPY_EV_OP;
	signature.peers = changes_access(function->does);
	signature.only_submits = signature.submits && signature.is_work && !signature.waited &&
				 !signature.failed && signature.does == FUNCTION_OTHER &&
				 signature.has_stream;
	signature.stream_left = record->event == SPY_EV_COPY ? 16 : 0;
	signature.stream_right =
		record->event == SPY_EV_COPY || record->event == SPY_EV_LAUNCH ? 16 : 0;
	make_room(cache);
	place = signature_place(cache, signature.head, signature.detail);
	*place = signature;
	cache->n++;
	return place;
}
