/*
 * analyzer/cmd/completion.h: completion of verbs and options in shells, from the tables that --help
 * prints. Called by `cudaspy help --format=bash` and zsh, from which `make` writes the files.
 */
#ifndef CUDASPY_COMPLETION_H
#define CUDASPY_COMPLETION_H

#include "command.h"

void completion_bash(const struct command_set *set, FILE *out);
void completion_zsh(const struct command_set *set, FILE *out);

#endif
