/*
 * analyzer/ranks/sample.c: keeps some operations of each rank. Called for each operation when it is evaluated, if a digest
 * is made.
 */
#include <stdlib.h>
#include "sample.h"
#include "work.h"

/* ---- heaps ----------------------------------------------------------------------------------- */

/* Does x go before y? */
typedef bool goes_first(const struct rank_sampled *x, const struct rank_sampled *y);

static bool larger_key(const struct rank_sampled *x, const struct rank_sampled *y)
{
	return x->key > y->key;
}

static bool shorter_period(const struct rank_sampled *x, const struct rank_sampled *y)
{
	return x->period_ns != y->period_ns ? x->period_ns < y->period_ns : x->key > y->key;
}

static void swap(struct rank_sampled *x, struct rank_sampled *y)
{
	struct rank_sampled z = *x;

	*x = *y;
	*y = z;
}

static void sift_up(struct rank_sampled *heap, size_t i, goes_first *first)
{
	for (; i && first(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&heap[i], &heap[(i - 1) / 2]);
}

static void sift_down(struct rank_sampled *heap, size_t n, goes_first *first)
{
	size_t i = 0, child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n && first(&heap[child + 1], &heap[child]))
			child++;
		if (!first(&heap[child], &heap[i]))
			return;
		swap(&heap[i], &heap[child]);
		i = child;
	}
}

static void keep(struct rank_sampled **heap, size_t *n, size_t most, goes_first *first,
		 const struct rank_sampled *sampled)
{
	if (!*heap)
		*heap = xcalloc(most, sizeof(**heap));
	if (*n < most) {
		(*heap)[*n] = *sampled;
		sift_up(*heap, (*n)++, first);
	} else if (first(*heap, sampled)) {
		**heap = *sampled;
		sift_down(*heap, *n, first);
	}
}

/* Would it be kept? What is to be known of it takes a while. */
static bool is_wanted(const struct rank_samples *s, uint64_t key, uint64_t period_ns)
{
	return s->n_least < RANK_SAMPLE_LEAST || key < s->least[0].key ||
	       (period_ns && (s->n_slow < RANK_SAMPLE_SLOW || period_ns > s->slow[0].period_ns));
}

/* ---- an operation ---------------------------------------------------------------------------- */

/* All ranks have the same; 0 is none. */
static uint64_t key_of(const struct rank_instance *instance)
{
	uint64_t key = hash_mix(instance->comm->key.hash + 1);

	key = hash_mix(key ^ key >> 32 ^ instance->key.seq);
	key = hash_mix(key ^ key >> 32 ^ instance->key.func);
	return (key ^ key >> 32) >> 8 | 1;
}

static uint64_t bytes_of(const struct rank_instance *instance)
{
	return instance->count < NUMBER_MOST / 256 ? instance->count * instance->bytes_each : 0;
}

/* Since the one of its kind before: unknown where that may be missing. */
static uint64_t period_of(struct rank_samples *s, const struct rank_op *op)
{
	const struct rank_instance *instance = op->instance;
	struct rank_kind *kind;
	uint64_t comm = instance->comm->key.hash, bytes = bytes_of(instance), period_ns;
	size_t i = 0;

	while (i < s->n_kinds && (s->kinds[i].comm != comm || s->kinds[i].bytes != bytes ||
				  s->kinds[i].func != instance->func))
		i++;
	if (i == RANK_KINDS_MOST)
		return 0;
	kind = &s->kinds[i];
	period_ns = i < s->n_kinds && op->end_ns > kind->end_ns && op->holes == kind->holes
			    ? op->end_ns - kind->end_ns
			    : 0;
	*kind = (struct rank_kind){comm, bytes, op->end_ns, op->holes, instance->func};
	if (i == s->n_kinds)
		s->n_kinds++;
	return period_ns;
}

static struct rank_comm_sum *find_comm(struct rank_samples *s, const struct rank_op *op)
{
	const struct rank_comm *comm = op->instance->comm;
	struct rank_comm_sum *sum;

	for (size_t i = s->n_comms; i > 0; i--)
		if (s->comms[i - 1].comm == comm->key.hash)
			return &s->comms[i - 1];
	s->comms = grow(s->comms, s->n_comms, sizeof(*s->comms));
	sum = &s->comms[s->n_comms++];
	*sum = (struct rank_comm_sum){
		.comm = comm->key.hash, .ranks = comm->ranks, .member = op->member->number};
	memcpy(sum->name, comm->name, sizeof(sum->name));
	return sum;
}

static struct rank_comm_sum *comm_of(struct rank_samples *s, const struct rank_op *op)
{
	struct rank_member *member = op->member;

	if (!member->sampled_comm_1)
		member->sampled_comm_1 = (size_t)(find_comm(s, op) - s->comms) + 1;
	return &s->comms[member->sampled_comm_1 - 1];
}

struct cause_sum {
	uint64_t ns, longest_ns;
	uint8_t cause;
	uint32_t fn;
	uint64_t where;
	struct idle_part part;
};

static struct cause_sum *cause_sum_of(struct cause_sum *sums, uint32_t *n, enum idle_cause cause,
				      uint32_t fn, uint64_t where)
{
	for (uint32_t i = 0; i < *n; i++)
		if (sums[i].cause == cause && sums[i].fn == fn && sums[i].where == where)
			return &sums[i];
	sums[*n] = (struct cause_sum){.cause = (uint8_t)cause, .fn = fn, .where = where};
	return &sums[(*n)++];
}

/* What the lane's thread did, by cause; waits that a call is made for by function and place, too: whether they are the GPU's work or
 * needless, those of other ranks tell. */
static uint32_t sum_causes(const struct ranks *ranks, const struct rank_op *op,
			   struct cause_sum sums[PARTS_MOST])
{
	uint32_t i, n = 0;

	for (i = 0; i < op->n_parts; i++) {
		const struct rank_place *place = op->parts[i].place;
		const struct idle_part *part = &place->longest;
		uint64_t ns = rank_part_since_met(op, &op->parts[i]);
		enum idle_cause cause = place->cause;
		uint32_t fn = NO_FUNCTION;
		uint64_t where = 0;
		struct cause_sum *sum;

		if (rank_waits_for_own_gpu(ranks, part, false))
			cause = IDLE_GPU_WORK;
		else if (rank_waits_for_own_gpu(ranks, part, true)) {
			fn = part->fn;
			where = place->where;
		}
		sum = cause_sum_of(sums, &n, cause, fn, where);
		sum->ns += ns;
		if (ns > sum->longest_ns) {
			sum->longest_ns = ns;
			sum->part = *part;
		}
	}
	return n;
}

static void take_causes(const struct ranks *ranks, const struct rank_op *op,
			struct rank_sampled *sampled)
{
	struct cause_sum sums[PARTS_MOST];
	uint32_t n = sum_causes(ranks, op, sums), i, most;

	while (n && sampled->n_causes < RANK_SAMPLE_CAUSES) {
		for (most = i = 0; i < n; i++)
			if (sums[i].ns > sums[most].ns)
				most = i;
		if (!sums[most].ns)
			break;
		if (!sampled->n_causes) {
			sampled->part = sums[most].part;
			sampled->process = op->member->process;
		}
		sampled->causes[sampled->n_causes++] = (struct rank_sampled_cause){
			sums[most].cause, sums[most].fn, sums[most].where, sums[most].ns};
		sums[most].ns = 0;
	}
}

/* Of the host's clock and the GPU's timer no more is known than has_host says. */
static uint64_t queued_ns(const struct rank_op *op)
{
	const struct rank_member *member = op->member;
	uint64_t begin_ns = op->begin_ns, error_ns = 0;

	if (!op->launched || (!op->by_host_times && !member->has_host))
		return 0;
	if (!op->by_host_times) {
		begin_ns += (uint64_t)member->host_offset_ns;
		error_ns = member->host_error_ns;
	}
	return begin_ns - min_u64(begin_ns, add_capped(op->submit_end_ns, error_ns));
}

static void sample(const struct ranks *ranks, const struct rank_op *op, uint64_t key,
		   uint64_t period_ns, uint64_t gap_ns)
{
	struct rank_samples *s = op->member->rank->samples;
	struct rank_sampled sampled = {.key = key,
				       .comm = op->instance->comm->key.hash,
				       .seq = op->instance->key.seq,
				       .bytes = bytes_of(op->instance),
				       .func = op->instance->func,
				       .by_host = op->by_host_times,
				       .continues = op->continues,
				       .first = op->first,
				       .submit_ns = op->submit_begin_ns,
				       .submitted_ns = op->submit_end_ns,
				       .begin_ns = op->begin_ns,
				       .end_ns = op->end_ns,
				       .period_ns = period_ns,
				       .gap_ns = gap_ns,
				       .queued_ns = queued_ns(op),
				       .work = op->gpu_operations};

	if (op->by_host_times || op->member->has_host) {
		sampled.host_begin_ns = op->begin_ns;
		if (!op->by_host_times)
			sampled.host_begin_ns += (uint64_t)op->member->host_offset_ns;
		sampled.host_error_ns = op->by_host_times ? 0 : op->member->host_error_ns;
	}
	if (!op->first)
		take_causes(ranks, op, &sampled);
	keep(&s->least, &s->n_least, RANK_SAMPLE_LEAST, larger_key, &sampled);
	if (period_ns)
		keep(&s->slow, &s->n_slow, RANK_SAMPLE_SLOW, shorter_period, &sampled);
}

static void see_op(const struct ranks *ranks, struct rank_op *op, uint64_t key)
{
	struct rank_member *member = op->member;
	struct rank *rank = member->rank;
	struct rank_comm_sum *comm;
	uint64_t period_ns, gap_ns = 0;

	if (!rank->samples)
		rank->samples = xcalloc(1, sizeof(*rank->samples));
	period_ns = period_of(rank->samples, op);
	if (member->sampled_end_ns && op->begin_ns > member->sampled_end_ns)
		gap_ns = op->begin_ns - member->sampled_end_ns;
	member->sampled_end_ns = op->end_ns;
	comm = comm_of(rank->samples, op);
	comm->operations++;
	comm->kernel_ns += op->end_ns - op->begin_ns;
	comm->period_ns += period_ns;
	comm->periods += period_ns > 0;
	/* What a rank does before it begins to work says nothing of the others. */
	if (rank_working(ranks, member->process, op->submit_begin_ns) &&
	    is_wanted(rank->samples, key, period_ns))
		sample(ranks, op, key, period_ns, gap_ns);
}

void rank_sample_see(struct ranks *ranks, const struct rank_instance *instance)
{
	uint64_t key;

	if (!ranks->sample || !rank_func_is_symmetric(instance->func))
		return;
	key = key_of(instance);
	for (struct rank_op *op = instance->ops; op; op = op->next)
		if (op->ran)
			see_op(ranks, op, key);
}

void rank_samples_free(struct rank_samples *samples)
{
	if (!samples)
		return;
	free(samples->least);
	free(samples->slow);
	free(samples->comms);
	free(samples);
}

static size_t parts_of(const struct rank_sampled *sampled, size_t n,
		       size_t (*see)(const struct idle_part *part))
{
	size_t i, parts = 0;

	for (i = 0; i < n; i++)
		parts += sampled[i].n_causes ? see(&sampled[i].part) : 0;
	return parts;
}

size_t rank_samples_parts(const struct rank_samples *samples,
			  size_t (*see)(const struct idle_part *part))
{
	if (!samples)
		return 0;
	return parts_of(samples->least, samples->n_least, see) +
	       parts_of(samples->slow, samples->n_slow, see);
}
