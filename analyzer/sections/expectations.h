/*
 * analyzer/sections/expectations.h: what calls should have cost, as tables: learnt from a trace, or
 * measured.
 */
#ifndef CUDASPY_SECTIONS_EXPECTATIONS_H
#define CUDASPY_SECTIONS_EXPECTATIONS_H

#include "base/report.h"
#include "expect/expect.h"
#include "expect/profile.h"

/* The classes of calls and what one of each should have cost; after expect_settle. */
void report_expectations(struct report *report, struct expect *e);

/* What a profile says: of what, and a row for the smallest and the largest size of each kind. */
void report_profile(struct report *report, const struct profile *profile);

#endif
