/*
 * analyzer/detectors/pageable_copy.c: copies that are called asynchronous and are not, because the
 * host memory is pageable.
 *
 * The contract is the function's row (COPY_ASYNC, COPY_BATCH); what pageable memory does to it,
 * contract.h says. A call that failed or went into a graph copied nothing and is no case. A copy
 * from pageable memory is staged and returns at once while little is outstanding: then it costs its
 * thread the staging alone; one to pageable memory waits for its stream.
 *
 * What the cure gives back depends on what comes next: a thread that waits for the stream in any
 * case, as most do right behind the copy, would wait there for what it waited for here.
 */
#include "table.h"
#include "findings/site.h"
#include "base/format.h"
#include "text/text.h"
#include "trace/names.h"

/* Variant: direction << 8 | kind of the source << 4 | kind of the destination. Tally: calls that
 * waited for the GPU. Mark: the stream. */

#define BLOCKED_LEAST_NS 20000

static bool is_case(const struct observed *o)
{
	const struct spy_rec_copy *copy = record_copy(o->record);

	return copy && copy_took_place(copy) && copy_is_pageable(copy) &&
	       functions_async_copy(&o->accounts->model->set->functions, o->record->fn);
}

/* The same copy with pinned memory. */
static bool pinned_ns(const struct observed *o, uint64_t *ns)
{
	struct spy_rec_copy pinned = *record_copy(o->record);

	if (pinned.src_kind == SPY_MEM_PAGEABLE)
		pinned.src_kind = SPY_MEM_PINNED;
	if (pinned.dst_kind == SPY_MEM_PAGEABLE)
		pinned.dst_kind = SPY_MEM_PINNED;
	return observed_class(o, expect_copy_key(&pinned, o->record->fn, false), ns);
}

/* Staging does not always take the same time: a wait is what goes far beyond. */
static bool was_blocked(const struct observed *o, uint64_t own_ns)
{
	uint64_t hidden_ns = completed_ns(o->call, BUCKET_GPU_HIDDEN);

	return hidden_ns > own_ns && hidden_ns > BLOCKED_LEAST_NS;
}

static bool judge(const struct observed *o, struct verdict *v)
{
	const struct spy_rec_copy *copy = record_copy(o->record);
	uint64_t own_ns, cost_ns = 0, pinned = 0;

	if (!is_case(o))
		return false;
	own_ns = completed_ns(o->call, BUCKET_OWN);
	if (!pinned_ns(o, &pinned)) /* a pinned one costs nothing to speak of, or a little */
		v->instead_ns = DETECTOR_HAND_OVER_NS;
	if (own_ns > pinned)
		cost_ns = own_ns - pinned;
	v->cost_ns = cost_ns + completed_ns(o->call, BUCKET_GPU_HIDDEN);
	/* Staging is certainly saved, where its cost is known; the wait may only move to where the
	 * data is needed. */
	v->gain_low_ns = expect_is_measured(o->class) ? cost_ns : 0;
	v->gain_high_ns = v->cost_ns;
	v->tally = was_blocked(o, own_ns);
	v->variant =
		(uint32_t)copy->direction << 8 | (uint32_t)copy->src_kind << 4 | copy->dst_kind;
	v->mark = copy->stream;
	v->open = true;
	return true;
}

/*
 * The thread waits for the stream before it has done as much as the copy took. What is true of the
 * wait in the copy (claim_waits_anyway) is true of the time a copy to the host itself takes, with
 * pinned memory too; and staging was for nothing only if the GPU was not behind in any case.
 */
static void waits_anyway(const struct claim *claim, const struct observed *next, struct verdict *v)
{
	claim_waits_anyway(claim, v);
	if (v->variant >> 8 != SPY_DIR_H2D)
		v->gain_low_ns = min_u64(v->gain_low_ns, claim_between_ns(claim));
	v->gain_low_ns -=
		min_u64(v->gain_low_ns, completed_ns(next->call, BUCKET_GPU_INTENDED) +
						completed_ns(next->call, BUCKET_GPU_HIDDEN));
}

/* Such a call waits for the GPU, whatever comes of this copy: not one that is a case itself. */
static bool always_waits(const struct observed *next)
{
	return observed_means_to_wait(next) ||
	       (next->waits->sort == GPU_WAIT_HIDDEN && next->contract == SPY_CONTRACT_FREE);
}

static enum settled settle(const struct claim *claim, const struct observed *next,
			   struct verdict *v)
{
	if (!next || claim_between_ns(claim) >= v->cost_ns)
		return SETTLED_CASE;
	if (!always_waits(next) || !observed_covers(next, v->mark, claim))
		return SETTLED_NOT;
	waits_anyway(claim, next, v);
	return SETTLED_CASE;
}

/* Staged or blocked: from pageable memory it depends on how much is outstanding. */
static const char *how(const struct site *site, struct arena *texts, unsigned int direction)
{
	const char *blocked_time = text_time(texts, site->hidden_ns);

	if (site->tally)
		return arena_printf(texts, "; blocked by earlier work: %llu of them, for %s%s",
				    (unsigned long long)site->tally, blocked_time,
				    direction == SPY_DIR_H2D && site->tally < site->count
					    ? "; the others only staged"
					    : "");
	if (direction != SPY_DIR_H2D)
		return "";
	return site->count == 1 ? "; staged, not blocked: it did not wait for the GPU"
				: "; staged, not blocked: they did not wait for the GPU";
}

/* The cure gains little where the thread would wait for the stream right behind the copy. */
static const char *in_any_case(const struct site *site, unsigned int direction)
{
	return direction != SPY_DIR_H2D ? site_waits_anyway(site) : "";
}

/* Nobody waited for the GPU: to synchronise first would bring nothing. To pin memory costs more than one such copy of it. */
static const char fix_of_staged[] =
	"Pin the buffer (cudaMallocHost, cudaHostRegister), once, if it is used again: then the "
	"GPU copies, and the call returns at once. For one copy alone it does not pay.";

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	unsigned int direction = finding->variant >> 8;
	char bytes[32];

	(void)f;
	format_bytes(bytes, sizeof(bytes), site->bytes);
	if (direction == SPY_DIR_D2H && site->bytes <= DETECTOR_FEW_BYTES * site->count)
		finding->fix = "Keep these few bytes on the GPU and fetch them less often, "
			       "or many at once; or copy to pinned memory "
			       "(cudaMallocHost), record an event and look one step later.";
	if (direction == SPY_DIR_H2D && !site->tally)
		finding->fix = fix_of_staged;
	if (direction == SPY_DIR_H2H)
		finding->fix =
			"A copy from host to host waits for its stream whatever its memory "
			"is: use memcpy where the data is known to be there, or wait for the "
			"stream first.";
	return arena_printf(texts, "%s copied %s from %s to %s memory%s: %s inside %s%s%s",
			    text_count(texts, site->count, "call"), bytes,
			    name_memory_kind(finding->variant >> 4 & 15),
			    name_memory_kind(finding->variant & 15),
			    direction == SPY_DIR_H2D
				    ? " by way of a staging buffer, which the host fills"
				    : " and did not return at once",
			    text_time(texts, site->total_ns), site->count == 1 ? "it" : "them",
			    how(site, texts, direction), in_any_case(site, direction));
}

const struct detector detector_pageable_copy = {
	.id = "pageable-copy",
	.title = "asynchronous copies block: the host memory is not pinned",
	.sees = "Calls of cudaMemcpyAsync and its relatives (2D, 3D, array, symbol, batch, "
		"driver) of which one side is host memory that CUDA did not pin. Data from such "
		"memory goes through a staging buffer, and the call waits once about 2 MB are "
		"outstanding; a copy to such memory returns only when its stream has reached "
		"it. Other threads' copies wait with it.",
	.blind = "Copies inside graphs. What the wait would have cost elsewhere: if the data is "
		 "needed right away, the thread waits for it in any case. Where a wait for the "
		 "stream follows, the gain has only what the thread did in between.",
	.fix = "Pin the buffer (cudaMallocHost, cudaHostRegister), once; or synchronise the stream "
	       "before the copy, so that at least no other thread waits with it.",
	.waits_bounded = true,
	.always = DETECTOR_CONTRACT(COPY_ASYNC) | DETECTOR_CONTRACT(COPY_BATCH),
	.copies = COPIES_PAGEABLE,
	.judge = judge,
	.settle = settle,
	.patient = true,
	.keep = keep,
};
