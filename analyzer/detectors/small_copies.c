/*
 * analyzer/detectors/small_copies.c: many small copies where one would do: one directly after the
 * other, from one place, in one direction and stream, again and again.
 */
#include "table.h"
#include "findings/site.h"
#include "base/format.h"
#include "text/text.h"

#define SMALL_MOST 65536
#define ROW_LEAST 4
#define ROWS_LEAST 5
#define TENTHS_LEAST 4

/* Variant: the direction, and what is to be known for the cure: PAGEABLE, BLOCKING, DEFAULT_STREAM. Tally: runs. */
enum { DIRECTION = 0xff, PAGEABLE = 0x100, BLOCKING = 0x200, DEFAULT_STREAM = 0x400 };

static bool is_small(const struct observed *o)
{
	const struct spy_rec_copy *copy = record_copy(o->record);

	return copy && copy_took_place(copy) && copy->bytes <= SMALL_MOST && !o->cold &&
	       (copy->direction == SPY_DIR_H2D || copy->direction == SPY_DIR_D2H) &&
	       (o->contract == SPY_CONTRACT_COPY_SYNC || o->contract == SPY_CONTRACT_COPY_ASYNC);
}

/* What one copy of so much costs; no less than one of the small ones. */
static uint64_t together_ns(const struct observed *o, uint64_t bytes)
{
	struct spy_rec_copy large = *record_copy(o->record);
	uint64_t ns = 0;

	large.bytes = bytes;
	if (!observed_class(o, expect_copy_key(&large, o->record->fn, false), &ns) ||
	    ns < o->class->expected_ns)
		ns = o->class->expected_ns;
	return ns;
}

static uint64_t saved_ns(uint64_t apart_ns, uint64_t together_ns)
{
	return apart_ns > together_ns ? apart_ns - together_ns : 0;
}

static uint32_t variant_of(const struct observed *o)
{
	const struct spy_rec_copy *copy = record_copy(o->record);
	uint32_t variant = copy->direction;

	if (copy_is_pageable(copy))
		variant |= PAGEABLE;
	if (o->contract == SPY_CONTRACT_COPY_SYNC)
		variant |= BLOCKING;
	else if (copy->stream == STREAM_LEGACY)
		variant |= DEFAULT_STREAM;
	return variant;
}

/* The fourth of a run speaks for the three before it, too; each that follows for itself. */
static bool judge(const struct observed *o, struct verdict *v)
{
	const struct copy_run *run = &o->account->recent_ops.run;
	uint64_t own_ns, apart_ns, bytes, before_ns;

	if (!is_small(o) || run->count < ROW_LEAST - 1 || !recent_ops_in_run(run, o->record) ||
	    run->bytes > run->count * SMALL_MOST)
		return false;
	own_ns = completed_ns(o->call, BUCKET_OWN);
	apart_ns = run->own_ns + own_ns;
	bytes = run->bytes + record_bytes(o->record);
	v->cost_ns = saved_ns(apart_ns, together_ns(o, bytes));
	v->tally = run->count == ROW_LEAST - 1;
	if (v->tally) {
		v->earlier = run->count;
		v->earlier_ns = run->ns;
		v->earlier_bytes = run->bytes;
	} else {
		before_ns = saved_ns(run->own_ns, together_ns(o, run->bytes));
		v->cost_ns = saved_ns(v->cost_ns, before_ns);
	}
	/* To gather the data costs something, too; how much is unknown. */
	v->gain_high_ns = v->cost_ns;
	v->variant = variant_of(o);
	return true;
}

/* Lists of copies do not go into the default stream, and block early where the memory is pageable; so do 2-D copies. */
static const char *cure(uint32_t variant)
{
	if (variant & PAGEABLE)
		return "Gather the data in one buffer, pinned if it is used again "
		       "(cudaMallocHost), and copy it once. Lists (cudaMemcpyBatchAsync) and "
		       "2-D copies of pageable memory wait for the GPU after a few.";
	if (variant & BLOCKING)
		return "Gather the data in one buffer and copy it once; if it lies in even "
		       "distances, cudaMemcpy2D copies it in one call. Or hand the copies over "
		       "with cudaMemcpyAsync in a stream, and wait once behind the last.";
	if (variant & DEFAULT_STREAM)
		return "Gather the data in one buffer and copy it once; if it lies in even "
		       "distances, cudaMemcpy2DAsync copies it in one call, and in a stream of "
		       "its own cudaMemcpyBatchAsync takes a list.";
	return detector_small_copies.fix;
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	char bytes[32];

	if (site->tally < ROWS_LEAST || site_spread(f->accounts, site) < TENTHS_LEAST)
		return NULL;
	format_bytes(bytes, sizeof(bytes), site->bytes / site->count);
	finding->fix = cure(finding->variant);
	return arena_printf(texts,
			    "%s %llu copies in a row %s, of %s each: one copy of it all would "
			    "have cost its threads %s less",
			    text_count(texts, site->tally, "time"),
			    (unsigned long long)((site->count + site->tally / 2) / site->tally),
			    (finding->variant & DIRECTION) == SPY_DIR_H2D ? "to the device"
									  : "to the host",
			    bytes, text_time(texts, site->cost.own_ns));
}

const struct detector detector_small_copies = {
	.id = "small-copies",
	.title = "many small copies instead of one",
	.sees = "Copies between host and device of at most 64 KiB, four or more one directly "
		"after the other from the same place, in the same direction and stream, with no "
		"launch or other work between, five times or more. The cost is what they took "
		"beyond what one copy of the whole takes, by the profile or the trace; where that "
		"is unknown, beyond one of them.",
	.blind = "Whether the data lies together or can be made to. Copies from several places.",
	.fix = "Gather the data in one buffer and copy it once; if it lies in even distances, "
	       "cudaMemcpy2DAsync copies it in one call, and cudaMemcpyBatchAsync takes a list.",
	.always = DETECTOR_CONTRACT(COPY_SYNC) | DETECTOR_CONTRACT(COPY_ASYNC),
	.copies = COPIES_IN_RUN,
	.judge = judge,
	.keep = keep,
};
