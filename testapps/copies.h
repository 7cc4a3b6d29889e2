/*
 * testapps/copies.h: the two halves of copies: copies.c has main, the options and the reduced case,
 * copies_throughput.c the benchmark.
 */
#ifndef TESTAPPS_COPIES_H
#define TESTAPPS_COPIES_H

#include "common.h"

struct throughput {
	const char *modes, *workers; /* lists; all modes: those that can be run here */
	long gpus, bytes, launches, ms_each;
};

/* Runs it and prints its table. Returns how many values came back wrong. Called from main. */
unsigned long throughput_run(const struct throughput *options, enum output output);

#endif
