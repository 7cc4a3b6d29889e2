/*
 * analyzer/live/decisive.c: of a process's threads the one that says why it does not go on. Called where a rank is spoken
 * of: by collectives.c and ras.c.
 *
 * The thread that called NCCL last need not be it: PyTorch submits gradients from a thread of its own, which waits for
 * the main thread's next step. So what a thread is doing counts first.
 */
#include "verdict.h"

/* The less it can be another thread of the process that keeps it, the more it matters. */
enum weight {
	WEIGHT_IDLE, /* what helpers do all the time: polling, sleeping, asking whether work is done */
	WEIGHT_SIGNAL, /* waits until another thread wakes it */
	WEIGHT_UNKNOWN, /* sleeps in what no probe sees */
	WEIGHT_LOCK, /* whose holder is known: its chain leads there */
	WEIGHT_OUTSIDE, /* waits for what comes from outside the process */
	WEIGHT_RUNS,
	WEIGHT_CALL, /* in a call, or makes calls */
	WEIGHT_CYCLE,
};

static enum weight weight_of_wait(const struct live_thread *t, bool helper)
{
	switch (t->wait_kind) {
	case SPY_WAIT_QUERY:
		return helper ? WEIGHT_IDLE : WEIGHT_CALL;
	case SPY_WAIT_TRANSFER:
	case SPY_WAIT_CHILD:
	case SPY_WAIT_IOCTL:
		return WEIGHT_OUTSIDE;
	case SPY_WAIT_POLL:
	case SPY_WAIT_EPOLL:
	case SPY_WAIT_ACCEPT:
	case SPY_WAIT_YIELD:
	case SPY_WAIT_SLEEP:
		return helper ? WEIGHT_IDLE : WEIGHT_OUTSIDE;
	default:
		return spy_wait_is_lock(t->wait_kind) && t->holder ? WEIGHT_LOCK : WEIGHT_SIGNAL;
	}
}

/* Between two calls, and waits for nothing that is known. */
static enum weight weight_of_state(const struct live_thread *t, bool helper)
{
	switch (t->os.state) {
	case 'D':
		return WEIGHT_OUTSIDE;
	case 'S':
		return WEIGHT_UNKNOWN;
	default: /* stopped is no sleep either; nor is it known of another machine's */
		return helper ? WEIGHT_UNKNOWN : WEIGHT_RUNS;
	}
}

static enum weight weight_of(const struct live_thread *t, bool helper)
{
	if (t->cycle)
		return WEIGHT_CYCLE;
	if (!t->slot || t->doing == LIVE_GONE)
		return WEIGHT_IDLE;
	if (t->doing == LIVE_GOES_ON)
		return helper ? WEIGHT_IDLE : WEIGHT_CALL;
	if (t->in_call)
		return WEIGHT_CALL;
	return t->waits ? weight_of_wait(t, helper) : weight_of_state(t, helper);
}

const struct live_thread *live_decisive_thread(const struct live_process *process,
					       uint32_t submitter)
{
	const struct live_thread *best = NULL;
	enum weight most = WEIGHT_IDLE;

	for (size_t i = 0; i < process->n_threads; i++) {
		const struct live_thread *t = process->threads[i];
		bool is_main = t->tid == process->trace->pid;
		enum weight weight = weight_of(t, !is_main && t->tid != submitter);

		if (!best || weight > most ||
		    (weight == most && best->tid != process->trace->pid &&
		     (is_main || t->calls > best->calls))) {
			best = t;
			most = weight;
		}
	}
	return best;
}
