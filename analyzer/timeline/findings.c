/*
 * analyzer/timeline/findings.c: the report's findings in a timeline: a slice each in a track of their own, at the time of their
 * longest call, with an arrow to that call. Called when the reading has come so far.
 */
#include <stdlib.h>
#include "events.h"
#include "base/median.h"

/* Threads may have the same number, one after the other. */
static const struct thread *thread_of(const struct model *model, uint64_t tid, uint64_t ns)
{
	const struct thread *any = NULL;

	for (size_t i = 0; i < model->n_threads; i++) {
		const struct thread *thread = model->threads[i];

		if (thread->tid != tid)
			continue;
		if (thread->first_ns <= ns && ns < thread->exited_ns)
			return thread;
		any = any ?: thread;
	}
	return any;
}

static int by_end(const void *a, const void *b)
{
	const struct finding_moment *x = a, *y = b;

	return COMPARE(x->end_ns, y->end_ns) ?: COMPARE(x->row, y->row);
}

void events_take_findings(struct events *e)
{
	const struct model *model = &e->source.known->model;
	const struct table *table = report_find(e->source.report, "findings");

	for (size_t row = 0; table && row < table->n_rows; row++) {
		uint64_t tid = table_number_at(table, row, "worst_thread");
		struct finding_moment m = {.row = row};

		m.begin_ns = table_number_at(table, row, "worst_at_ns");
		m.end_ns = m.begin_ns + table_number_at(table, row, "worst_ns");
		m.thread = tid ? thread_of(model, tid, m.end_ns + model->first_ns) : NULL;
		if (!m.thread)
			continue;
		e->findings = grow(e->findings, e->n_findings, sizeof(*e->findings));
		e->findings[e->n_findings++] = m;
	}
	if (e->n_findings)
		qsort(e->findings, e->n_findings, sizeof(*e->findings), by_end);
}

static void add_text(struct events *e, struct slice *slice, enum slice_argument_key key,
		     const char *text)
{
	slice_add_known(slice, key, text ? label_of(&e->labels, text) : 0);
}

static void add_time(struct slice *slice, enum slice_argument_key key, uint64_t ns)
{
	if (ns != UNKNOWN_NS)
		slice_add(slice, key, ns);
}

static void show(struct events *e, const struct finding_moment *m)
{
	const struct table *table = report_find(e->source.report, "findings");
	struct slice slice = {.track = tracks_findings(&e->tracks),
			      .begin_ns = m->begin_ns,
			      .end_ns = m->end_ns,
			      .category = SLICE_FINDING,
			      .flow = ++e->flows};
	struct arena texts = {0};

	add_text(e, &slice, ARGUMENT_WHERE, table_text_at(table, m->row, "where"));
	add_text(e, &slice, ARGUMENT_WHAT, table_text_at(table, m->row, "what"));
	add_text(e, &slice, ARGUMENT_CURE, table_text_at(table, m->row, "fix"));
	add_time(&slice, ARGUMENT_COST, table_number_at(table, m->row, "cost_ns"));
	add_time(&slice, ARGUMENT_GAIN, table_number_at(table, m->row, "gain_high_ns"));
	slice.name = label_of(
		&e->labels, arena_printf(&texts, "#%llu %s: %s",
					 (unsigned long long)table_number_at(table, m->row, "rank"),
					 table_text_at(table, m->row, "id") ?: "?",
					 table_text_at(table, m->row, "title") ?: "?"));
	arena_release(&texts);
	events_put(e, &slice);
	events_flow(e, tracks_thread(&e->tracks, m->thread)->calls,
		    e->zero_ns + m->begin_ns + (m->end_ns > m->begin_ns), slice.flow, true);
}

void events_show_findings(struct events *e, uint64_t until_ns)
{
	for (;
	     e->findings_shown < e->n_findings && e->findings[e->findings_shown].end_ns <= until_ns;
	     e->findings_shown++)
		show(e, &e->findings[e->findings_shown]);
}
