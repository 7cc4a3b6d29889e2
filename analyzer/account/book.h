/*
 * analyzer/account/book.h: a call is remembered by its thread, and booked: for those that see calls (blame/calls.c, reading/fast_path.h).
 */
#ifndef CUDASPY_ACCOUNT_BOOK_H
#define CUDASPY_ACCOUNT_BOOK_H

#include "account.h"

struct thread_account *thread_account_add(struct accounting *a, struct thread *thread);
struct account *account_add_function(struct function_accounts *f, uint32_t fn);

/* A thread's account, made if it is new. */
static inline struct thread_account *thread_account_get(struct accounting *a, struct thread *thread)
{
	if (likely(thread->index < a->n_thread_accounts) &&
	    likely(a->thread_accounts[thread->index] != NULL))
		return a->thread_accounts[thread->index];
	return thread_account_add(a, thread);
}

/* The sums of a thread's calls of a function, made if they are new. */
static inline struct account *account_of(struct function_accounts *f, uint32_t fn)
{
	struct account *account;

	if (likely(f->n_places) && likely(f->places[fn & (f->n_places - 1)].fn == fn) &&
	    likely(f->places[fn & (f->n_places - 1)].number))
		return &f->all[f->places[fn & (f->n_places - 1)].number - 1];
	account = account_find(f, fn);
	return account ? account : account_add_function(f, fn);
}

/* For completed_call_next: room for more; a call that lost time makes room for a newer one. */
void account_grow_ring(struct thread_account *c);
void account_forget(struct thread_account *c, struct completed_call *f);

/* A divided call has the waits of its thread since the call before. There is a bound for those of the last calls: the oldest
 * calls go without theirs. */
void account_keep_waits(struct thread_account *c, struct completed_call *f);

/* Where the thread's next call is remembered; thread is filled in. */
static inline struct completed_call *completed_call_next(struct thread_account *c)
{
	struct completed_call *f, *next;

	if (unlikely(c->ring.n == c->ring.size) && c->ring.size < c->ring.most)
		account_grow_ring(c);
	f = completed_call_at(&c->ring, c->ring.n++);
	if (unlikely(f->divided))
		account_forget(c, f);
	/* With many threads, the rings of all of them are more than the cache has room for. */
	next = completed_call_at(&c->ring, c->ring.n);
	__builtin_prefetch(next, 1);
	__builtin_prefetch(&next->site, 1);
	return f;
}

/* What is known of each call at once. */
static inline void account_remember(struct completed_call *f, uint32_t fn,
				    const struct record *record, uint64_t duration_ns,
				    const struct thread *thread)
{
	f->fn = fn;
	f->divided = f->awaits = f->fast = false;
	f->end_ns = record->ns;
	f->begin_ns = record->ns - min_u64(duration_ns, record->ns);
	f->return_address = record_return_address(record);
	f->stream = record_stream(record);
	f->stack = model_stack_of(thread, record);
	f->site = NULL;
}

static inline void account_book(struct account *account, const struct completed_call *f)
{
	account->calls++;
	account->total_ns += f->end_ns - f->begin_ns;
	account->expected_ns = add_known_ns(account->expected_ns, f->expected_ns);
	if (likely(!f->divided))
		account->bucket_ns[BUCKET_OWN] += f->end_ns - f->begin_ns;
}

/* A record says which device was current. */
static inline void account_set_device(struct accounting *a, struct thread_account *c,
				      uint8_t device)
{
	if (likely(c->device == device))
		return;
	c->device = device;
	if (device < 64)
		a->gpus_used[c->thread->process->trace->index] |= 1ull << device;
}

#endif
