/*
 * analyzer/blame/unattributed.c: long calls in which no probe saw why, and calls that were long in
 * the kernel module. Called by the accounting when such a call has returned, and when those have
 * that may have been in its way.
 */
#include <stdlib.h>
#include "blame.h"
#include "account/book.h"

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

static struct unattributed_waits *waits_of(struct accounting *a, const struct completed_call *f)
{
	return &a->blame->unattributed[f->thread->process->trace->index];
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
	struct unattributed_waits *r = waits_of(a, f);

	if (!is_unexplained(a, f) && !kernel_overlap_is_significant(f))
		return;
	r->all = grow(r->all, r->n, sizeof(*r->all));
	r->all[r->n] = *f;
	r->all[r->n].waits = NULL;
	r->all[r->n].n_waits = 0;
	if (!r->n || due_ns(f) < r->due_ns)
		r->due_ns = due_ns(f);
	r->n++;
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
	struct unattributed_waits *r = waits_of(a, f);
	struct account *account;
	struct wait_chain_link link;

	if ((probed && (r->locks_seen || r->n_guesses == GUESSES_MOST)) ||
	    !blame_infer(a, f, &link))
		return;
	if (probed) {
		r->guesses = grow(r->guesses, r->n_guesses, sizeof(*r->guesses));
		r->guesses[r->n_guesses++] = link;
		return;
	}
	blame_conclude(a, &link);
	account = account_of(&thread_account_of(a, f->thread)->functions, f->fn);
	account->bucket_ns[BUCKET_UNEXPLAINED] -= f->bucket_ns[BUCKET_UNEXPLAINED];
	account->bucket_ns[BUCKET_LOCK] += f->bucket_ns[BUCKET_UNEXPLAINED];
}

static void solve(struct accounting *a, const struct completed_call *f)
{
	if (kernel_overlap_is_significant(f))
		kernel_overlap_find(a, thread_account_of(a, f->thread), f);
	if (is_unexplained(a, f))
		explain(a, f);
}

void unattributed_resolve(struct accounting *a, size_t process, uint64_t now_ns)
{
	struct unattributed_waits *r = &a->blame->unattributed[process];
	size_t i, kept = 0;

	r->due_ns = UINT64_MAX;
	for (i = 0; i < r->n; i++) {
		if (due_ns(&r->all[i]) <= now_ns) {
			solve(a, &r->all[i]);
			continue;
		}
		if (due_ns(&r->all[i]) < r->due_ns)
			r->due_ns = due_ns(&r->all[i]);
		r->all[kept++] = r->all[i];
	}
	r->n = kept;
}

void unattributed_finish(struct accounting *a)
{
	for (size_t i = 0; i < a->model->n_processes; i++) {
		const struct unattributed_waits *r = &a->blame->unattributed[i];

		unattributed_resolve(a, i, UINT64_MAX);
		for (size_t j = 0; j < r->n_guesses && !r->locks_seen; j++)
			blame_conclude(a, &r->guesses[j]);
	}
}
