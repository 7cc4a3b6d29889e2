/*
 * analyzer/blame/holders.h: the holders of a lock during a wait for it: the wait, cut where the
 * lock changed hands.
 */
#ifndef CUDASPY_HOLDERS_H
#define CUDASPY_HOLDERS_H

#include "account/waits.h"

struct accounting;
struct record;
struct wait_record;

/* Divides a wait for a lock among its holders, one after the other: w->intervals, w->handover_ns
 * and w->loss. The record is the wait's, w->lock its lock, which learns of its holders. */
void holders_find(struct accounting *a, const struct record *record, const struct wait_record *wait,
		  struct wait *w);

/* A call's waits take no more time together than the call did: what their records claim beyond that
 * is taken off those that came first, and off their locks. */
void holders_fit(struct wait *waits, size_t n, uint64_t call_ns);

/* The call is over, and w->loss.lacked_ns is known: the lock learns how often the wait was lost. */
void holders_settle(struct wait *w);

#endif
