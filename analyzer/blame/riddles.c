/*
 * analyzer/blame/riddles.c: long calls in which no probe saw why, and calls that were long in the kernel module.
 * Called by the accounting when such a call has returned, and when those have that may have been in its way.
 */
#include <stdlib.h>
#include "account/account.h"

void riddles_release(struct riddles *r)
{
	free(r->all);
	free(r->guesses);
	*r = (struct riddles){0};
}

/* Unexplained time that is worth a conclusion from overlap: probes see most of what there is. */
#define RIDDLE_LEAST_NS 200000
#define RIDDLE_LEAST_PROBED_NS 1000000

static uint64_t due_ns(const struct finished *f)
{
	return f->end_ns + (f->end_ns - f->begin_ns) / 8 + RIDDLE_LIES_NS;
}

/* Is it for its unexplained time? */
static bool is_unexplained(const struct accounting *a, const struct finished *f)
{
	bool probed = a->probed[f->thread->process->trace->index];
	uint64_t ns = f->bucket_ns[BUCKET_UNEXPLAINED];

	return ns >= (probed ? RIDDLE_LEAST_PROBED_NS : RIDDLE_LEAST_NS) &&
	       ns >= (f->end_ns - f->begin_ns) / 2;
}

void riddles_remember(struct accounting *a, const struct finished *f)
{
	if (!is_unexplained(a, f) && !company_matters(f))
		return;
	a->riddles.all = grow(a->riddles.all, a->riddles.n, sizeof(*a->riddles.all));
	a->riddles.all[a->riddles.n] = *f;
	a->riddles.all[a->riddles.n].waits = NULL;
	a->riddles.all[a->riddles.n].n_waits = 0;
	if (!a->riddles.n || due_ns(f) < a->riddles.due_ns)
		a->riddles.due_ns = due_ns(f);
	a->riddles.n++;
}

/* Conclusions that are kept until it is known whether the probes saw any lock at all. */
#define GUESSES_MOST 1024

/*
 * Where no probe could have seen a lock, what others were in the way for was one. Probes that see locks
 * would have seen this one, too: then the riddle stays one.
 */
static void explain(struct accounting *a, const struct finished *f)
{
	bool probed = a->probed[f->thread->process->trace->index];
	struct account *account;
	struct blame_piece piece;

	if ((probed && (a->locks.count || a->riddles.n_guesses == GUESSES_MOST)) ||
	    !blame_infer(a, f, &piece))
		return;
	if (probed) {
		a->riddles.guesses =
			grow(a->riddles.guesses, a->riddles.n_guesses, sizeof(*a->riddles.guesses));
		a->riddles.guesses[a->riddles.n_guesses++] = piece;
		return;
	}
	blame_conclude(a, &piece);
	account = account_of(account_caller(a, f->thread), f->fn);
	account->bucket_ns[BUCKET_UNEXPLAINED] -= f->bucket_ns[BUCKET_UNEXPLAINED];
	account->bucket_ns[BUCKET_LOCK] += f->bucket_ns[BUCKET_UNEXPLAINED];
}

static void solve(struct accounting *a, const struct finished *f)
{
	if (company_matters(f))
		company_find(a, f);
	if (is_unexplained(a, f))
		explain(a, f);
}

void riddles_solve(struct accounting *a, uint64_t now_ns)
{
	size_t i, kept = 0;

	a->riddles.due_ns = UINT64_MAX;
	for (i = 0; i < a->riddles.n; i++) {
		if (due_ns(&a->riddles.all[i]) <= now_ns) {
			solve(a, &a->riddles.all[i]);
			continue;
		}
		if (due_ns(&a->riddles.all[i]) < a->riddles.due_ns)
			a->riddles.due_ns = due_ns(&a->riddles.all[i]);
		a->riddles.all[kept++] = a->riddles.all[i];
	}
	a->riddles.n = kept;
}

void riddles_finish(struct accounting *a)
{
	size_t i;

	riddles_solve(a, UINT64_MAX);
	for (i = 0; i < a->riddles.n_guesses && !a->locks.count; i++)
		blame_conclude(a, &a->riddles.guesses[i]);
}
