/*
 * tests/gpu/facts.h: what the parts of tests/gpu/facts share.
 */
#ifndef CUDASPY_TESTS_GPU_FACTS_H
#define CUDASPY_TESTS_GPU_FACTS_H

#include <cuda.h>

/* Milliseconds since some moment. */
double now_ms(void);

/* Ends the program, with a message, if a call failed on whose success the next ones depend. */
void need(CUresult result, const char *what);

#define NEED(call) need(call, #call)

/* Prints which look-ups take locks (facts_getters.c). A context is current. */
void tell_getters(CUfunction kernel);

/* Prints what breaks the capture of a stream (facts_captures.c). A context is current. */
void tell_captures(void);

#endif
