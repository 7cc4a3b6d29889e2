/*
 * analyzer/sections/files.h: the section about files in which places cannot be looked up.
 */
#ifndef CUDASPY_SECTIONS_FILES_H
#define CUDASPY_SECTIONS_FILES_H

#include "base/report.h"
#include "symbols/symbolize.h"

/* Those that were looked at so far; no row: all are as they were. Returns how many there are.
 * Behind all sections that name places. */
size_t report_files(struct report *report, struct symbolizer *symbols);

#endif
