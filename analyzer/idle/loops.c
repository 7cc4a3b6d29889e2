/*
 * analyzer/idle/loops.c: event loops that are blocked in waits for GPUs. Called by idle.c.
 */
#include <stdlib.h>
#include "loops.h"
#include "trace/decode.h"

static uint64_t gpu_wait_ns(const struct completed_call *call)
{
	return completed_ns(call, BUCKET_GPU_INTENDED) + completed_ns(call, BUCKET_GPU_HIDDEN) +
	       completed_ns(call, BUCKET_QUEUE);
}

static struct loop_call *call_at(struct loop_calls *calls, uint32_t fn, uint64_t address)
{
	size_t i = 0;

	while (i < calls->n && (calls->all[i].fn != fn || calls->all[i].address != address))
		i++;
	if (i == LOOP_CALLS)
		return &calls->all[LOOP_CALLS - 1];
	if (i == calls->n)
		calls->all[calls->n++] = (struct loop_call){.fn = fn, .address = address};
	return &calls->all[i];
}

static void add_call(struct loop_calls *calls, const struct loop_call *call)
{
	struct loop_call *sum = call_at(calls, call->fn, call->address);
	bool longest = call->longest_ns > sum->longest_ns;

	calls->ns += call->ns;
	sum->ns += call->ns;
	if (longest) {
		sum->longest_ns = call->longest_ns;
		sum->at_ns = call->at_ns;
	}
	/* Stacks are a sample: that of another call there shows as well how the program comes to it. */
	if (call->stack && (longest || !sum->stack))
		sum->stack = call->stack;
}

void loop_calls_join(struct loop_calls *sum, const struct loop_calls *calls)
{
	for (size_t i = 0; i < calls->n; i++)
		add_call(sum, &calls->all[i]);
}

void loops_see_call(struct loops **loops, const struct completed_call *call)
{
	uint64_t ns = gpu_wait_ns(call);
	struct loops *l = *loops;

	if (!ns || call->end_ns - call->begin_ns < SPY_LOOKED_AT_NS)
		return;
	if (!l)
		l = *loops = xcalloc(1, sizeof(*l));
	if (!l->since_poll.n)
		l->since_ns = call->begin_ns;
	add_call(&l->since_poll, &(struct loop_call){.fn = call->fn,
						     .address = call->return_address,
						     .ns = ns,
						     .longest_ns = ns,
						     .at_ns = call->begin_ns,
						     .stack = call->stack});
}

/* make: if there is room, and it is not known yet. */
static struct event_loop *loop_at(struct loops *loops, uint64_t address, bool make)
{
	size_t i = 0;

	while (i < loops->n && loops->all[i]->address != address)
		i++;
	if (i == LOOPS_MOST || (i == loops->n && !make))
		return NULL;
	if (i == loops->n) {
		loops->all[loops->n++] = xcalloc(1, sizeof(struct event_loop));
		loops->all[i]->address = address;
	}
	return loops->all[i];
}

static void add_poll(struct event_loop *loop, const struct outside_record *poll,
		     const struct loop_calls *calls)
{
	loop->late++;
	if (!poll->ready)
		return;
	loop->blocked++;
	loop->most_ready = max_u64(loop->most_ready, poll->ready);
	loop->longest_ns = max_u64(loop->longest_ns, calls->ns);
	loop_calls_join(&loop->calls, calls);
}

static bool is_poll(const struct outside_record *wait)
{
	return wait->kind == SPY_WAIT_EPOLL || wait->kind == SPY_WAIT_POLL;
}

void loops_see_wait(struct loops *loops, const struct record *record, const struct stack *stack)
{
	const struct outside_record wait = decode_outside(record);
	bool late = wait.flags & SPY_WAIT_LATE;
	struct event_loop *loop;

	if (!loops || !is_poll(&wait))
		return;
	loop = loop_at(loops, wait.return_address, late && loops->since_poll.n);
	if (loop) {
		loop->waits += wait.count - wait.at_once;
		loop->at_ns = record->ns;
		loop->stack = stack ?: loop->stack;
	}
	if (!late)
		return;
	/* What it did before recording was dormant has been polled for meanwhile. */
	if (loop && loops->since_poll.n && loops->since_ns >= record->thread->process->opened_ns)
		add_poll(loop, &wait, &loops->since_poll);
	loops->since_poll = (struct loop_calls){0};
}

void loops_free(struct loops *loops)
{
	for (size_t i = 0; loops && i < loops->n; i++)
		free(loops->all[i]);
	free(loops);
}
