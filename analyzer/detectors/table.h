/*
 * analyzer/detectors/table.h: the detectors by name, from detectors.def.
 */
#ifndef CUDASPY_DETECTORS_TABLE_H
#define CUDASPY_DETECTORS_TABLE_H

#include "findings/detector.h"

#define DETECTOR(name, symptom, cure) extern const struct detector detector_##name;
#include "detectors.def"

#endif
