/*
 * analyzer/detectors/table.c: the table of detectors, from detectors.def. Findings see it as detectors_row
 * (findings/detector.h).
 */
#include "table.h"

const struct detector *const detector_table[] = {
#define DETECTOR(name, symptom, cure) &detector_##name,
#include "detectors.def"
};

const size_t detector_rows = ARRAY_SIZE(detector_table);
