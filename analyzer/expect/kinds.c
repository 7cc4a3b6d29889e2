/*
 * analyzer/expect/kinds.c: kinds of calls. Called by both readings for a call of a kind that they have not met.
 */
#include <stdlib.h>
#include <string.h>
#include "kinds.h"
#include "trace/model.h"

#define PLACES_FIRST 64
#define PLACES_MOST 16384 /* half of them in use at most */

void kinds_release(struct kinds *kinds)
{
	free(kinds->all);
	*kinds = (struct kinds){0};
}

/* Room for one more. */
static void make_room(struct kinds *kinds)
{
	struct kinds old = *kinds;
	size_t i;

	if (2 * (kinds->n + 1) <= kinds->n_places)
		return;
	if (kinds->n_places == PLACES_MOST) {
		memset(kinds->all, 0, kinds->n_places * sizeof(*kinds->all));
		kinds->n = 0;
		return;
	}
	kinds->n_places = old.n_places ? 4 * old.n_places : PLACES_FIRST;
	kinds->shift = 64 - (unsigned int)__builtin_ctzll(kinds->n_places);
	kinds->all = xcalloc(kinds->n_places, sizeof(*kinds->all));
	for (i = 0; i < old.n_places; i++)
		if (old.all[i].detail)
			*kinds_place(kinds, old.all[i].head, old.all[i].detail) = old.all[i];
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

static bool submits(const union spy_any *raw, uint8_t contract)
{
	switch (contract) {
	case SPY_CONTRACT_SUBMIT:
	case SPY_CONTRACT_LAUNCH:
	case SPY_CONTRACT_COPY_ASYNC:
	case SPY_CONTRACT_COPY_BATCH:
	case SPY_CONTRACT_COPY_SYNC:
	case SPY_CONTRACT_PEER:
	case SPY_CONTRACT_MEMSET_SYNC:
		return raw->other.event != SPY_EV_COPY || copy_moves(&raw->copy);
	default:
		return false;
	}
}

/*
 * Is what the call waits for done now? Of hidden waits only some are certain: a copy from pageable memory
 * may have been staged, and not every load of code or change of a limit waits.
 */
static bool has_waited(const union spy_any *raw, uint8_t contract, const struct gpu_waits *waits)
{
	if (waits->sort == GPU_WAIT_INTENDED)
		return true;
	if (waits->sort != GPU_WAIT_HIDDEN)
		return false;
	if (raw->other.event == SPY_EV_COPY)
		return raw->copy.direction != SPY_DIR_H2D;
	return contract == SPY_CONTRACT_FREE;
}

static void see_copy(struct call_kind *kind, const struct spy_rec_copy *copy)
{
	kind->copy = true;
	/* Also where nobody knows the direction. */
	kind->to_host = copy->direction != SPY_DIR_H2D && copy->direction != SPY_DIR_D2D;
	kind->leans = copy->dst_kind == SPY_MEM_PAGEABLE || copy->direction == SPY_DIR_H2H;
}

/* Which GPUs reach which memory? */
static bool changes_access(uint8_t does)
{
	return does == FUNCTION_OPENS_PEER || does == FUNCTION_CLOSES_PEER ||
	       does == FUNCTION_OPENS_POOL || does == FUNCTION_OPENS_MAPPING ||
	       does == FUNCTION_OPENS_SHARED || does == FUNCTION_ENDS_CONTEXT;
}

struct call_kind *kinds_add(struct kinds *kinds, struct expect *e, struct trace *trace,
			    const union spy_any *raw)
{
	struct call_kind kind =
				 {
					 .head = kind_head(raw),
					 .detail = kind_detail(raw),
					 .fn = trace_function(e->set, trace, raw->call_head.fn),
					 .failed = call_failed(&raw->call_head),
				 },
			 *place;
	const struct function *function = &e->set->functions.all[kind.fn];

	kind.contract = function->contract;
	kind.waits = gpu_wait_of(raw, kind.contract, &trace->cuda);
	kind.tries = is_try(kind.contract);
	if (raw->other.event == SPY_EV_COPY)
		see_copy(&kind, &raw->copy);
	if (raw->other.event == SPY_EV_OP)
		kind.does = function->does;
	kind.submits = submits(raw, kind.contract);
	kind.is_work = raw->other.event != SPY_EV_OP || kind.does == FUNCTION_LAUNCHES_GRAPH;
	kind.brings = kind.to_host || kind.does == FUNCTION_LAUNCHES_GRAPH ||
		      kind.does == FUNCTION_SHOWS_OTHERS;
	kind.waited = has_waited(raw, kind.contract, kind.waits);
	kind.has_stream = raw->other.event >= SPY_EV_OP;
	kind.peers = changes_access(function->does);
	kind.only_submits = kind.submits && kind.is_work && !kind.waited && !kind.failed &&
			    kind.does == FUNCTION_OTHER && kind.has_stream;
	kind.stream_left = raw->other.event == SPY_EV_COPY ? 16 : 0;
	kind.stream_right =
		raw->other.event == SPY_EV_COPY || raw->other.event == SPY_EV_LAUNCH ? 16 : 0;
	make_room(kinds);
	place = kinds_place(kinds, kind.head, kind.detail);
	*place = kind;
	kinds->n++;
	return place;
}
