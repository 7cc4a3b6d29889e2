/*
 * analyzer/blame/calls.h: records as the accounting sees them: calls, and what the recorder saw their threads waiting for.
 */
#ifndef CUDASPY_BLAME_CALLS_H
#define CUDASPY_BLAME_CALLS_H

#include "blame.h"
#include "account/account.h"

/* For account_see. */
void account_call(struct accounting *a, const struct record *record);
void account_nested(struct accounting *a, const struct record *record);
void account_other(struct accounting *a, const struct record *record); /* waits.c */

/* Sees each record after the model. */
static inline void account_see(struct accounting *a, const struct record *record)
{
	if (record_is_call(record)) {
		if (!record->depth)
			account_call(a, record);
		else if (unlikely(record->duration_ns >= ACCOUNT_LONG_NS))
			account_nested(a, record);
		if (unlikely(a->blame->unattributed[record->process].n) &&
		    record->ns >= a->blame->unattributed[record->process].due_ns)
			unattributed_resolve(a, record->process, record->ns);
	} else if (record->event >= SPY_EV_WAIT) {
		account_other(a, record);
	}
}

/* After the last record. */
void account_finish(struct accounting *a);

#endif
