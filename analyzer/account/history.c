/*
 * analyzer/account/history.c: calls of a thread that are forgotten leave their sums. Called by the
 * accounting when a call that lost time makes room for a newer one.
 */
#include <stdlib.h>
#include "account.h"
#include "history.h"

#define CALLS_LEAST 8 /* of an era, at first */

void history_free(struct history *history)
{
	if (history)
		free(history->eras);
	free(history);
}

static void join(struct era *era, const struct era *next)
{
	era->end_ns = next->end_ns;
	era->calls += next->calls;
	era->avoidable_ns += next->avoidable_ns;
	for (size_t i = 0; i < BUCKET_COUNT; i++)
		era->bucket_ns[i] += next->bucket_ns[i];
}

static void halve(struct history *h)
{
	for (size_t i = 0; i < ERAS / 2; i++) {
		h->eras[i] = h->eras[2 * i];
		join(&h->eras[i], &h->eras[2 * i + 1]);
	}
	h->n = ERAS / 2;
	h->calls_each *= 2;
}

static struct era *open_era(struct history *h, uint64_t begin_ns)
{
	if (!h->calls_each)
		h->calls_each = CALLS_LEAST;
	if (h->n && h->eras[h->n - 1].calls < h->calls_each)
		return &h->eras[h->n - 1];
	if (h->n == ERAS)
		halve(h);
	h->eras = grow(h->eras, h->n, sizeof(*h->eras));
	h->eras[h->n] = (struct era){.begin_ns = begin_ns};
	return &h->eras[h->n++];
}

void history_add(struct history *history, const struct completed_call *call)
{
	struct era *era = open_era(history, call->begin_ns);

	era->end_ns = call->end_ns;
	era->calls++;
	era->avoidable_ns += (double)call->avoidable_ns;
	for (size_t i = 0; i < BUCKET_COUNT; i++)
		era->bucket_ns[i] += (double)call->bucket_ns[i];
}
