/*
 * analyzer/analysis.c: a trace set, read from end to end. Called by `report`, `info` and `run`.
 */
#include "analysis.h"

void analysis_run(struct analysis *a, struct trace_set *set)
{
	struct merge merge;
	struct record record;

	*a = (struct analysis){.set = set};
	model_init(&a->model, set);
	callstats_init(&a->stats, &a->model);
	detectors_start(&a->detectors);
	merge_init(&merge, set);
	while (merge_next(&merge, &record)) {
		model_apply(&a->model, &record);
		callstats_see(&a->stats, &a->model, &record);
		detectors_see(&a->detectors, &a->model, &record);
	}
	merge_release(&merge);
	model_finish(&a->model);
	callstats_finish(&a->stats, &a->model);
}

void analysis_release(struct analysis *a)
{
	detectors_free(&a->detectors);
	callstats_release(&a->stats);
	model_release(&a->model);
	*a = (struct analysis){0};
}
