/*
 * tests/unit/never_busy.h: what slow paths of the recorder need of the rest of it (calm.h), for tests that have
 * no rest. Included once.
 */
#ifndef CUDASPY_TESTS_NEVER_BUSY_H
#define CUDASPY_TESTS_NEVER_BUSY_H

#include <stddef.h>
#include "lib/calm.h"

struct spy_thread *spy_set_busy(uintptr_t *before)
{
	(void)before;
	return NULL;
}

void spy_restore_busy(struct spy_thread *thread, uintptr_t before)
{
	(void)thread;
	(void)before;
}

#endif
