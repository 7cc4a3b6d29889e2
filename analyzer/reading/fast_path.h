/*
 * analyzer/reading/fast_path.h: a fast path of the main reading for the most common calls: they hand work
 * to the stream that their thread used last, take no longer than usual, and no detector has to see
 * them. Such a call usually passes through the model, the sums of calls and the accounting, one
 * after the other (the slow path). Here one step has the same effect as all of these.
 *
 * There is one for each stream of records. It opens after a call on the slow path, and stays open
 * while its thread keeps its device and its GPU stream, which has had work since before the call: so
 * that the call ends no idle time. A call that is unusual in any way takes the slow path.
 */
#ifndef CUDASPY_FAST_PATH_H
#define CUDASPY_FAST_PATH_H

#include "account/book.h"
#include "ahead/ahead.h"
#include "account/callstats.h"
#include "account/streams.h"
#include "blame/blame.h"

struct fast_path {
	struct thread_account *account; /* NULL: closed */
	struct thread *thread;
	uint32_t tid;
	uint8_t device;
	uint64_t until_ns; /* until then the thread has been counted in cpu_pressure */
	/* Since it opened: */
	uint64_t calls, total_ns, copied_bytes, copies_ns;
	uint64_t last_ns; /* end of its last call */
};

/* The record took the slow path: does a fast path begin with it? */
void fast_path_open(struct fast_path *path, const struct accounting *a, struct callstats *s,
		    const struct record *record);

/* Adds what went through it to the sums. */
void fast_path_close(struct fast_path *path, struct callstats *s);

/* Has the thread anything in progress that the next call has to be looked at for? */
static inline bool fast_path_is_free(const struct thread_account *c)
{
	return !(c->n_waits | c->n_need_next | c->n_deferred | c->sched_window_ns | c->starts_up |
		 c->gap_recorded);
}

/* The record, if it may go this way: then that was all that was to be done. found: as it was read ahead; NULL: it was not. */
static __always_inline bool fast_path_take(struct fast_path *path, struct accounting *a,
					   struct callstats *s, const struct record *record,
					   const struct ahead_record *found)
{
	struct thread_account *c = path->account;
	const struct call_signature *signature;
	struct completed_call *f;
	uint64_t ns;

	if (unlikely(!c) || unlikely(record->event < SPY_EV_OP) ||
	    unlikely(record->event > SPY_EV_MEMORY))
		return false;
	if (found) {
		signature = signature_at(&a->signatures[record->process], signature_head(record),
					 found->detail, found->hash);
		ns = found->item.duration_ns;
	} else {
		signature = signature_place(&a->signatures[record->process], signature_head(record),
					    signature_detail(record));
		ns = model_duration_ns(record);
	}
	if (!signature->plain || !signature->only_submits || ns > signature->own_most_ns ||
	    unlikely(!fast_path_is_free(c)) || unlikely(path->tid != record->tid) ||
	    unlikely(path->device != record->device) ||
	    unlikely(!work_goes_on(&a->work, c->stream, record, path->thread, signature)) ||
	    unlikely(!stream_is_busy(c->stream)) ||
	    unlikely(c->stream->busy_ns > record->ns - min_u64(ns, record->ns)) ||
	    unlikely(record->ns >= path->until_ns) ||
	    (unlikely(a->blame->unattributed[record->process].n) &&
	     record->ns >= a->blame->unattributed[record->process].due_ns) ||
	    (signature->asked_in_run && recent_ops_in_run(&c->recent_ops.run, record)))
		return false;

	record->stream->called_ns = record->ns;
	path->calls++;
	path->total_ns += ns;
	path->last_ns = record->ns;
	if (unlikely(signature->copy)) {
		path->copied_bytes = add_capped(path->copied_bytes, record_bytes(record));
		path->copies_ns += copy_most_ns(record_copy(record), ns);
	}
	if (!s->named_elsewhere ||
	    unlikely(record->trace_fn >= record->stream->trace->n_functions)) {
		s->called[signature->fn] = true;
		callstats_add(&s->direct[signature->fn], false, ns);
	}

	f = completed_call_next(c);
	f->device = path->device;
	f->expected_ns = signature->expected_ns;
	expect_count(signature->class, ns);
	account_remember(f, signature->fn, record, ns, path->thread);
	f->fast = true;
	account_book(account_of(&c->functions, signature->fn), f);
	work_go_on(&a->work, c->stream, record, path->thread, signature);
	c->recent_ops.progress_calls += signature->progress_calls;
	recent_ops_see(&c->recent_ops, record, signature,
		       &(struct recent_op){.begin_ns = f->begin_ns,
					   .end_ns = f->end_ns,
					   .own_ns = ns,
					   .submitted = true});
	return true;
}

#endif
