/*
 * analyzer/findings/observed.c: what a detector may ask about a call it is shown. Called by the
 * detectors, while the records are read.
 */
#include "site.h"

/* Code differs: a load is longer than any of those that had nothing to wait for, and still nothing
 * else. */
#define LOADS_DIFFER 4

uint64_t observed_awaited(const struct observed *o)
{
	return work_awaited(&o->accounts->work, &o->account->stream, o->record, o->waits);
}

uint64_t observed_outstanding(const struct observed *o)
{
	return work_outstanding(&o->accounts->work, o->record);
}

uint64_t observed_submissions(const struct observed *o)
{
	return o->accounts->work.submissions[o->record->process];
}

bool observed_host_sees(const struct observed *o)
{
	return o->accounts->work.views[o->record->process].managed;
}

bool observed_ends(const struct observed *o)
{
	return work_ends(&o->accounts->work, &o->account->stream, o->record, o->waits);
}

bool observed_host_visible(const struct observed *o)
{
	return o->account->recent_ops.brought_back ||
	       work_host_visible(&o->accounts->work, o->record);
}

uint64_t observed_handed_over(const struct observed *o, uint8_t device)
{
	return work_handed_over(&o->accounts->work, o->record, device);
}

bool observed_covers(const struct observed *o, uint64_t stream, const struct claim *claim)
{
	return work_covers(&o->accounts->work, o->record, o->waits, stream, claim->device,
			   claim->end_ns);
}

bool observed_nothing_submitted(const struct observed *o, uint64_t *only)
{
	return work_nothing_submitted(&o->accounts->work, o->record, only);
}

bool observed_means_to_wait(const struct observed *o)
{
	return o->waits->sort == GPU_WAIT_INTENDED && !record_failed(o->record);
}

bool observed_starts_up(const struct observed *o)
{
	return o->account->starts_up || (o->contract == SPY_CONTRACT_INIT &&
					 o->call->end_ns - o->call->begin_ns >= ACCOUNT_LONG_NS);
}

bool observed_is_no_loading(const struct observed *o)
{
	return o->class->source == EXPECT_CLEAN &&
	       o->call->end_ns - o->call->begin_ns > LOADS_DIFFER * o->class->clean.max;
}

bool observed_class(const struct observed *o, uint64_t key, uint64_t *expected_ns)
{
	const struct call_class *class = expect_place(o->accounts->expect, key)->class;

	if (!class)
		class = expect_add(o->accounts->expect, key);
	if (class->source == EXPECT_NONE || class->source == EXPECT_DEFAULT)
		return false;
	*expected_ns = class->expected_ns;
	return true;
}
