/*
 * analyzer/findings/framework_cures.h: cures in the words of the framework that made a call for the program. Called by
 * finding.c, when a finding's place and stacks are known.
 */
#ifndef CUDASPY_FRAMEWORK_CURES_H
#define CUDASPY_FRAMEWORK_CURES_H

#include "finding.h"

/* The same of what one of NVIDIA's libraries makes again and again, a plan or a handle; known before the stacks are. */
const char *framework_makes(const struct finding *finding);

/* NULL: it is no framework's, or there is nothing better to say than the detector's. */
const char *framework_cure(const struct finding *finding);

/* Are these words such a cure? */
bool framework_words(const char *cure);

#endif
