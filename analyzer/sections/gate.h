/*
 * analyzer/sections/gate.h: the section that says what a gate was asked, and what came of it.
 */
#ifndef CUDASPY_SECTIONS_GATE_H
#define CUDASPY_SECTIONS_GATE_H

#include "base/report.h"
#include "findings/gate.h"

/* Text and JSON: what was asked, what counted, what exceeded what. */
void report_gate(struct report *report, const struct gate *gate);

#endif
