/*
 * analyzer/reading/stack_gc.c: garbage collection of stacks: marks those that are in use, and has the
 * model forget the others. Called by the main reading now and then.
 */
#include "findings/analyzed.h"
#include "stack_gc.h"
#include "account/shared_streams.h"

/* How many were looked at, for the next time. */
static size_t keep(const struct stack *stack)
{
	if (stack)
		((struct stack *)(uintptr_t)stack)->kept =
			true; /* the model's; others only read it */
	return 1;
}

static size_t keep_of_threads(const struct model *model)
{
	size_t i, n = 0;

	for (i = 0; i < model->n_threads; i++)
		n += keep(model->threads[i]->stack);
	return n;
}

static size_t keep_of_thread_accounts(const struct accounting *a)
{
	size_t i, j, n = 0;

	for (i = 0; i < a->n_thread_accounts; i++) {
		const struct thread_account *c = a->thread_accounts[i];

		for (j = 0; c && j < c->ring.size; j++)
			n += keep(c->ring.calls[j].stack);
		for (j = 0; c && j < c->n_open; j++)
			n += keep(c->open[j].stack);
	}
	return n;
}

static size_t keep_of_work(const struct gpu_work *work)
{
	size_t i, j, n = 0;

	for (i = 0; i < work->n_devices * work->n_processes; i++) {
		const struct legacy_use *use = &work->legacy[i];
		const struct stream_sharing *s = work->devices[i].shared;

		for (; s; s = s->next)
			for (j = 0; j < STREAM_SHARERS; j++)
				n += keep(s->sharers[j].stack);

		n += keep(use->last.stack) + keep(use->most.stack);
		for (j = 0; use->n_stacks && j < LEGACY_STACKS; j++)
			n += keep(use->stacks[j]);
	}
	return n;
}

static size_t keep_of_blame(const struct blame *b)
{
	size_t i, j, n = 0;

	for (i = 0; i < WORST_CALLS; i++)
		n += keep(b->worst_calls[i].stack);
	for (i = 0; i < b->accounts->model->n_processes; i++)
		for (j = 0; j < b->unattributed[i].n; j++)
			n += keep(b->unattributed[i].all[j].stack);
	return n;
}

static size_t keep_of_sites(const struct findings *f)
{
	size_t n = 0;

	for (const struct site *site = f->sites; site; site = site->hh.next)
		for (uint32_t i = 0; i < site->stacks.n; i++)
			n += keep(site->stacks.all[i].stack);
	return n;
}

static size_t keep_of_part(const struct idle_part *part)
{
	return keep(part->stack) + keep(part->stack_before);
}

static size_t keep_of_loop_calls(const struct loop_calls *calls)
{
	size_t n = 0;

	for (size_t i = 0; i < calls->n; i++)
		n += keep(calls->all[i].stack);
	return n;
}

static size_t keep_of_loops(const struct loops *loops)
{
	size_t n = loops ? keep_of_loop_calls(&loops->since_poll) : 0;

	for (size_t i = 0; loops && i < loops->n; i++)
		n += keep(loops->all[i]->stack) + keep_of_loop_calls(&loops->all[i]->calls);
	return n;
}

static size_t keep_of_idle(const struct idle *idle)
{
	size_t i, j, n = 0;

	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		n += keep_of_part(&sum->longest);
		if (sum->holder)
			n += keep_of_part(&sum->holder->longest);
	}
	for (i = 0; i < idle->threads.n; i++) {
		const struct host_thread *h = idle->threads.all[i];

		if (!h)
			continue;
		for (j = 0; j < h->n_waits && j < h->waits_size; j++)
			n += keep(h->waits[j].part.stack);
		n += keep_of_loops(h->loops);
	}
	return n;
}

size_t stack_gc(struct analysis *a)
{
	size_t looks = 0;

#define ON_STACKS(...) __VA_ARGS__;
#define STAGE(field, type, when, ...) \
	if (when) { \
		__VA_ARGS__ \
	}
#include "findings/stages.def"
	model_forget_stacks(&a->model);
	return 2 * a->model.n_stacks + looks / 4 + STACKS_FIRST;
}
