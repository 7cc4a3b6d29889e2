/*
 * analyzer/cmd/manual.h: manual pages, in roff, from the tables that --help prints. Called by
 * `cudaspy help --format=man`, from which `make` writes the pages.
 */
#ifndef CUDASPY_MANUAL_H
#define CUDASPY_MANUAL_H

#include "command.h"

/* cudaspy(1): the verbs, and the environment variables of the recorder and the analyzer. */
void manual_overview(const struct command_set *set, FILE *out);

/* cudaspy-VERB(1) */
void manual_verb(const struct command *command, const struct command_set *set, FILE *out);

#endif
