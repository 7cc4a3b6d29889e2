/*
 * analyzer/digest/make_findings.c: the findings of a rank, by their place in the program, and why its GPUs and the thread
 * that feeds them were idle. Called by make.c.
 */
#include <stdlib.h>
#include "make.h"
#include "findings/detector.h"
#include "findings/finding.h"
#include "findings/gpu_use.h"
#include "text/where.h"

static void add_finding(struct digest_builder *m, const struct finding *f)
{
	const struct finding_place *place = &f->place;
	uint64_t *row = digest_data_add(&m->data, D_SITE);

	row[D_SITE_detector] = digest_text(m, f->detector->id);
	row[D_SITE_function] = digest_text(m, place->function);
	row[D_SITE_module] = digest_text(m, path_basename(place->module));
	row[D_SITE_offset] = place->offset;
	row[D_SITE_caller] = digest_text(m, place->caller);
	row[D_SITE_file] = digest_text(m, place->file);
	row[D_SITE_line] = place->line;
	if (f->stacks.n_python)
		row[D_SITE_python] =
			digest_text(m, text_python(&m->texts, &f->stacks.python[0].at));
	row[D_SITE_severity] = finding_severity(f);
	row[D_SITE_count] = f->count;
	row[D_SITE_own_ns] = f->cost.unknown ? 0 : f->cost.own_ns;
	row[D_SITE_others_ns] = f->cost.unknown ? 0 : f->cost.others_ns;
	row[D_SITE_gain_low_ns] = f->cost.gain_known ? f->cost.gain_low_ns : 0;
	row[D_SITE_gain_high_ns] = f->cost.gain_known ? f->cost.gain_high_ns : 0;
	row[D_SITE_idle_gpu_ns] = f->cost.idle_gpu_known ? f->cost.idle_gpu_ns : 0;
	row[D_SITE_bytes] = f->bytes;
	row[D_SITE_weight_ns] = f->cost.unknown ? 0 : cost_gain_ns(&f->cost);
	row[D_SITE_share_ppm] = (uint64_t)(f->cost.cost_share.share * 1e6);
}

/* ---- idle time ------------------------------------------------------------------------------- */

static void add_cause(struct digest_builder *m, const char *of, const struct idle_sum *sum,
		      uint64_t ns)
{
	struct digest_rows *rows = &m->data.tables[D_CAUSE];
	const char *place = idle_part_place(&m->words, sum->process, &sum->longest);
	uint64_t key[3] = {digest_text(m, of), digest_text(m, idle_cause_codes[sum->key.cause]),
			   digest_text(m, place)};
	uint64_t *row = NULL;

	for (uint32_t i = 0; i < rows->n && !row; i++)
		if (!memcmp(&rows->cells[(size_t)i * rows->columns], key, sizeof(key)))
			row = &rows->cells[(size_t)i * rows->columns];
	if (!row) {
		row = digest_data_add(&m->data, D_CAUSE);
		memcpy(row, key, sizeof(key));
	}
	row[D_CAUSE_count] += sum->count;
	row[D_CAUSE_ns] += ns;
	row[D_CAUSE_longest_ns] = max_u64(row[D_CAUSE_longest_ns], sum->longest_ns);
}

#define CAUSES_MOST 512 /* more are not named one by one: symbols take time */

struct placed {
	const struct idle_sum *sum;
	size_t i; /* they are in the order of places */
};

static int by_ns(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->sum->ns != y->sum->ns)
		return x->sum->ns < y->sum->ns ? 1 : -1;
	return x->i < y->i ? -1 : 1;
}

static void make_causes(struct digest_builder *m)
{
	struct placed *all = xcalloc(m->words.n_sums + 1, sizeof(*all));
	const struct thread *feeder =
		m->a->idle.n_gpus ? gpu_feeder(&m->a->idle, &m->a->idle.gpus[0]) : NULL;

	for (size_t i = 0; i < m->words.n_sums; i++)
		all[i] = (struct placed){m->words.sums[i], i};
	qsort(all, m->words.n_sums, sizeof(*all), by_ns);
	/* What samples have shared out among their places is nothing by itself. */
	for (size_t i = 0; i < m->words.n_sums && i < CAUSES_MOST && all[i].sum->ns; i++) {
		const struct idle_sum *sum = all[i].sum;
		size_t gpu = gpu_of_sum(&m->a->idle, sum);

		if (gpu != SIZE_MAX)
			add_cause(m, "gpu", sum,
				  idle_gpu_is_exact(&m->a->idle.gpus[gpu])
					  ? sum->ns
					  : idle_scaled_ns(&m->a->idle.gpus[gpu], sum->ns));
		else if (feeder && sum->key.owner == idle_owner_thread(feeder))
			add_cause(m, "thread", sum, sum->ns);
	}
	free(all);
}

void digest_make_findings(struct digest_builder *m)
{
	struct finding *findings;
	size_t i, n;

	findings = findings_conclude((struct findings *)(uintptr_t)&m->a->findings, &m->a->ranks,
				     m->symbols, &m->texts, &n);
	for (i = 0; i < n; i++)
		add_finding(m, &findings[i]);
	findings_free(findings, n);
	make_causes(m);
}
