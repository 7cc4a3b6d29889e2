/*
 * tests/e2e/programs/delay.h: an artificial delay in the recorder, for a build of tests alone (build/tests/delay/libcudaspy.so): what it
 * costs is known then. shim/entry/call.c includes it where CUDASPY_TEST_DELAY is defined; the environment variable of
 * that name says how long each recorded call of the application takes more: "500ns", or "2%" of the time since the last one; or
 * each of one function: "500ns@cudaEventRecord".
 * Nothing else reads it. When the process ends it writes to standard error how much that was in all, in ns: where threads
 * wait for a CPU the share is one of a longer time than that in which they run.
 */
#ifndef CUDASPY_TEST_DELAY_H
#define CUDASPY_TEST_DELAY_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hook/slots.h"
#include "lib/clock.h"
#include "state/session.h"

static double test_delay_cycles, test_delay_share;
static const char *test_delay_function; /* NULL: of all */
static _Atomic uint64_t test_delay_total; /* cycles */

__attribute__((constructor(101))) static void test_delay_read(void)
{
	const char *text = getenv("CUDASPY_TEST_DELAY");
	char *unit;
	double number = text ? strtod(text, &unit) : 0;

	if (text && unit[0] == '%')
		test_delay_share = number / 100;
	else if (text && strncmp(unit, "ns", 2) == 0)
		test_delay_cycles = number; /* made cycles of when the frequency is known */
	if (text && strchr(unit, '@'))
		test_delay_function = strchr(unit, '@') + 1;
}

__attribute__((destructor)) static void test_delay_tell(void)
{
	if (getenv("CUDASPY_TEST_DELAY") && spy_session && spy_session->frequency)
		dprintf(2, "test_delay_ns %.0f\n",
			(double)test_delay_total * 1e9 / (double)spy_session->frequency);
}

/* Of more time since the last call than that the thread was off its CPU for most: that is none of the program's. */
#define TEST_DELAY_MOST_US 200

static inline void test_delay(const struct spy_thread *thread)
{
	static __thread uint64_t last;
	static __thread uint32_t turn;
	uint64_t now = spy_clock(), until = now;

	if (test_delay_function && strcmp(spy_names[thread->calls[0].fn], test_delay_function) != 0)
		return;
	/* What was before a cost window in which nothing was recorded is no time since the last recorded call. */
	if (turn == thread->turn && last) {
		uint64_t most = spy_session->frequency / 1000000 * TEST_DELAY_MOST_US;

		until += (uint64_t)(test_delay_share *
				    (double)(now - last < most ? now - last : most));
	}
	until += (uint64_t)(test_delay_cycles * (double)spy_session->frequency / 1e9);
	atomic_fetch_add_explicit(&test_delay_total, until - now, memory_order_relaxed);
	while (now < until)
		now = spy_clock();
	turn = thread->turn;
	last = now;
}

#endif
