/*
 * analyzer/findings/detector.c: looks into the table of detectors; what they add to findings.
 * Called by findings, sections and detectors, and by `cudaspy explain`.
 */
#include <string.h>
#include "detector.h"

const struct detector *detectors_row(size_t i)
{
	return i < detector_rows ? detector_table[i] : NULL;
}

const struct detector *detectors_find(const char *id)
{
	for (size_t i = 0; i < detector_rows; i++)
		if (!strcmp(detector_table[i]->id, id))
			return detector_table[i];
	return NULL;
}

struct finding *detector_add(const struct detector *detector, struct found *found)
{
	struct finding *finding;

	found->all = grow(found->all, found->n, sizeof(*found->all));
	finding = &found->all[found->n++];
	*finding =
		(struct finding){.detector = detector, .origin.processes = 1, .fix = detector->fix};
	return finding;
}
