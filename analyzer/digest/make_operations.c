/*
 * analyzer/digest/make_operations.c: the collective operations of a rank, as far as they were sampled (ranks/sample.h).
 * Called by make.c.
 */
#include <stdlib.h>
#include "make.h"
#include "ranks/sample.h"
#include "text/text.h"
#include "base/median.h"

/* The columns of both tables are the same. */
_Static_assert((int)D_MEET_COLUMNS == (int)D_SLOW_COLUMNS, "columns");
_Static_assert(DIGEST_OPERATION_CAUSES == RANK_SAMPLE_CAUSES, "causes");

/* "cpu", "cuda-wait:cudaStreamSynchronize" */
static const char *cause_text(struct digest_builder *m, const struct rank_sampled_cause *cause)
{
	const char *code = idle_cause_codes[cause->cause];

	return cause->fn == NO_FUNCTION ? code
					: arena_printf(&m->texts, "%s:%s", code,
						       text_function(m->a->set, cause->fn));
}

static void add_operation(struct digest_builder *m, uint32_t table, const struct rank_sampled *s,
			  const uint64_t *rank)
{
	uint64_t *row = digest_data_add(&m->data, table);
	uint64_t *cause = &row[D_MEET_cause_a];

	row[D_MEET_key] = s->key;
	row[D_MEET_comm] = s->comm;
	row[D_MEET_ordinal] = s->seq;
	row[D_MEET_function] = s->func;
	row[D_MEET_bytes] = s->bytes;
	row[D_MEET_by_host] = s->by_host;
	row[D_MEET_submit_ns] = s->submit_ns - min_u64(rank[D_RANK_base_ns], s->submit_ns);
	row[D_MEET_submitted_ns] = s->submitted_ns - min_u64(rank[D_RANK_base_ns], s->submitted_ns);
	row[D_MEET_begin_ns] = s->begin_ns - min_u64(rank[D_RANK_timer_base_ns], s->begin_ns);
	row[D_MEET_took_ns] = s->end_ns - s->begin_ns;
	if (s->host_begin_ns > rank[D_RANK_base_ns])
		row[D_MEET_host_1_ns] = s->host_begin_ns - rank[D_RANK_base_ns] + 1;
	row[D_MEET_host_error_ns] = s->host_error_ns;
	row[D_MEET_period_ns] = s->period_ns;
	row[D_MEET_gap_ns] = s->gap_ns;
	row[D_MEET_queued_ns] = s->queued_ns;
	row[D_MEET_work] = s->work;
	row[D_MEET_continues] = s->continues;
	row[D_MEET_first] = s->first;
	for (uint32_t i = 0; i < s->n_causes; i++, cause += 2) {
		cause[0] = digest_text(m, cause_text(m, &s->causes[i]));
		cause[1] = s->causes[i].ns;
		row[D_MEET_where_a + i] = s->causes[i].where;
	}
	if (s->n_causes)
		row[D_MEET_place] =
			digest_text(m, idle_part_place(&m->words, s->process, &s->part));
}

static int by_submit(const void *a, const void *b)
{
	const struct rank_sampled *x = a, *y = b;

	return COMPARE(x->submit_ns, y->submit_ns) ?: COMPARE(x->key, y->key);
}

static void find_bases(const struct rank_sampled *all, size_t n, uint64_t *rank)
{
	for (size_t i = 0; i < n; i++) {
		if (!rank[D_RANK_base_ns] || all[i].submit_ns < rank[D_RANK_base_ns])
			rank[D_RANK_base_ns] = all[i].submit_ns;
		if (!rank[D_RANK_timer_base_ns] || all[i].begin_ns < rank[D_RANK_timer_base_ns])
			rank[D_RANK_timer_base_ns] = all[i].begin_ns;
	}
}

static void add_comms(struct digest_builder *m, const struct rank_samples *s)
{
	for (size_t i = 0; i < s->n_comms; i++) {
		const struct rank_comm_sum *sum = &s->comms[i];
		uint64_t *row = digest_data_add(&m->data, D_COMM);

		row[D_COMM_comm] = sum->comm;
		row[D_COMM_name] = digest_text(m, sum->name);
		row[D_COMM_ranks] = sum->ranks;
		row[D_COMM_member_1] = (uint64_t)sum->member + 1;
		row[D_COMM_operations] = sum->operations;
		row[D_COMM_kernel_ns] = sum->kernel_ns;
		row[D_COMM_period_ns] = sum->period_ns;
		row[D_COMM_periods] = sum->periods;
	}
}

void digest_make_operations(struct digest_builder *m)
{
	const struct ranks *ranks = &m->a->ranks;
	uint64_t *rank = m->data.tables[D_RANK].cells;

	for (size_t i = 0; i < ranks->n; i++) {
		const struct rank_samples *s = ranks->all[i]->samples;

		if (!s)
			continue;
		find_bases(s->least, s->n_least, rank);
		find_bases(s->slow, s->n_slow, rank);
		qsort(s->least, s->n_least, sizeof(*s->least), by_submit);
		if (s->n_slow)
			qsort(s->slow, s->n_slow, sizeof(*s->slow), by_submit);
		add_comms(m, s);
		for (size_t j = 0; j < s->n_least; j++)
			add_operation(m, D_MEET, &s->least[j], rank);
		for (size_t j = 0; j < s->n_slow; j++)
			add_operation(m, D_SLOW, &s->slow[j], rank);
	}
}
