/*
 * analyzer/blame/unattributed.c: long calls in which no probe saw why, and calls that were long in
 * the kernel module. Called by the accounting when such a call has returned, and when those have
 * that may have been in its way.
 */
#include <stdlib.h>
#include "account/account.h"

void unattributed_release(struct unattributed_waits *r)
{
	free(r->all);
	free(r->guesses);
	*r = (struct unattributed_waits){0};
}

/* Unexplained time that is worth a conclusion from overlap: probes see most of what there is. */
#define UNATTRIBUTED_MIN_NS 200000
#define UNATTRIBUTED_MIN_PROBED_NS 1000000

static uint64_t due_ns(const struct completed_call *f)
{
	return f->end_ns + (f->end_ns - f->begin_ns) / 8 + UNATTRIBUTED_DELAY_NS;
}

/* Is it for its unexplained time? */
static bool is_unexplained(const struct accounting *a, const struct completed_call *f)
{
	bool probed = a->probed[f->thread->process->trace->index];
	uint64_t ns = f->bucket_ns[BUCKET_UNEXPLAINED];

	return ns >= (probed ? UNATTRIBUTED_MIN_PROBED_NS : UNATTRIBUTED_MIN_NS) &&
	       ns >= (f->end_ns - f->begin_ns) / 2;
}

void unattributed_remember(struct accounting *a, const struct completed_call *f)
{
	if (!is_unexplained(a, f) && !kernel_overlap_matters(f))
		return;
	a->unattributed.all =
		grow(a->unattributed.all, a->unattributed.n, sizeof(*a->unattributed.all));
	a->unattributed.all[a->unattributed.n] = *f;
	a->unattributed.all[a->unattributed.n].waits = NULL;
	a->unattributed.all[a->unattributed.n].n_waits = 0;
	if (!a->unattributed.n || due_ns(f) < a->unattributed.due_ns)
		a->unattributed.due_ns = due_ns(f);
	a->unattributed.n++;
}

/* Conclusions that are kept until it is known whether the probes saw any lock at all. */
#define GUESSES_MOST 1024

/*
 * Where no probe could have seen a lock, what others were in the way for was one. Probes that see
 * locks would have seen this one, too: then the wait stays unattributed.
 */
static void explain(struct accounting *a, const struct completed_call *f)
{
	bool probed = a->probed[f->thread->process->trace->index];
	struct account *account;
	struct wait_chain_link link;

	if ((probed && (a->locks.count || a->unattributed.n_guesses == GUESSES_MOST)) ||
	    !blame_infer(a, f, &link))
		return;
	if (probed) {
		a->unattributed.guesses = grow(a->unattributed.guesses, a->unattributed.n_guesses,
					       sizeof(*a->unattributed.guesses));
		a->unattributed.guesses[a->unattributed.n_guesses++] = link;
		return;
	}
	blame_conclude(a, &link);
	account = account_of(&thread_account_of(a, f->thread)->functions, f->fn);
	account->bucket_ns[BUCKET_UNEXPLAINED] -= f->bucket_ns[BUCKET_UNEXPLAINED];
	account->bucket_ns[BUCKET_LOCK] += f->bucket_ns[BUCKET_UNEXPLAINED];
}

static void solve(struct accounting *a, const struct completed_call *f)
{
	if (kernel_overlap_matters(f))
		kernel_overlap_find(a, f);
	if (is_unexplained(a, f))
		explain(a, f);
}

void unattributed_resolve(struct accounting *a, uint64_t now_ns)
{
	size_t i, kept = 0;

	a->unattributed.due_ns = UINT64_MAX;
	for (i = 0; i < a->unattributed.n; i++) {
		if (due_ns(&a->unattributed.all[i]) <= now_ns) {
			solve(a, &a->unattributed.all[i]);
			continue;
		}
		if (due_ns(&a->unattributed.all[i]) < a->unattributed.due_ns)
			a->unattributed.due_ns = due_ns(&a->unattributed.all[i]);
		a->unattributed.all[kept++] = a->unattributed.all[i];
	}
	a->unattributed.n = kept;
}

void unattributed_finish(struct accounting *a)
{
	size_t i;

	unattributed_resolve(a, UINT64_MAX);
	for (i = 0; i < a->unattributed.n_guesses && !a->locks.count; i++)
		blame_conclude(a, &a->unattributed.guesses[i]);
}
