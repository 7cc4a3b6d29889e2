/*
 * analyzer/findings/sites.c: calls that detectors want become sites: at once, or when the thread's
 * next calls have shown what came of them. Called by the accounting for each call that might be a
 * case, and by the blame.
 */
#include <stdlib.h>
#include <string.h>
#include "detector.h"
#include "site.h"

/* ---- sites ---------------------------------------------------------------------------------- */

/* Field by field: the key has just been put together so, and is not yet to be had in larger
 * pieces. */
static inline bool same_key(const struct site_key *a, const struct site_key *b)
{
	return a->return_address == b->return_address &&
	       !((a->process ^ b->process) | (a->epoch ^ b->epoch) | (a->fn ^ b->fn) |
		 (a->detector ^ b->detector) | (a->variant ^ b->variant));
}

static struct site *find_site(struct findings *f, const struct site_key *key)
{
	struct site_key nowhere = *key;
	struct site *site = f->last;

	if (site && same_key(&site->key, key))
		return site;
	HASH_FIND(hh, f->sites, key, sizeof(*key), site);
	if (!site && unlikely(HASH_COUNT(f->sites) >= SITES_MOST) && key->return_address) {
		nowhere.return_address = nowhere.epoch = 0;
		return find_site(f, &nowhere);
	}
	if (!site) {
		HASH_NEW(f->sites, site, key, *key);
		site->created = position_now();
	}
	f->last = site;
	return site;
}

static void keep_worst(struct evidence *worst, const struct evidence *other)
{
	if (!other->thread || (worst->thread && other->duration_ns < worst->duration_ns))
		return;
	if (!worst->thread || other->duration_ns > worst->duration_ns ||
	    other->begin_ns < worst->begin_ns)
		*worst = *other;
}

static void keep_kernel(struct site *site, const char *kernel)
{
	size_t i;

	for (i = 0; i < SITE_KERNELS && site->kernels[i]; i++)
		if (site->kernels[i] == kernel || !strcmp(site->kernels[i], kernel))
			return;
	if (i < SITE_KERNELS)
		site->kernels[i] = kernel;
	else
		site->more_kernels = true;
}

static struct range_shares *shares_of(struct site *site)
{
	if (!site->ranges)
		site->ranges = xcalloc(1, sizeof(*site->ranges));
	return site->ranges;
}

static void add_claim(const struct claim *claim)
{
	const struct verdict *v = &claim->verdict;
	struct site *site = claim->site;
	uint64_t duration_ns = claim->end_ns - claim->begin_ns;

	/* Claims that were open may come late: in rounds that are counted. */
	if (!site->count || claim->submissions > site->rounds.submissions)
		rounds_add(&site->rounds, claim->submissions, claim->begin_ns);
	occasions_add(&site->occasions, claim->phase, claim->begin_ns, claim->end_ns,
		      claim->submissions);
	if (!site->count || claim->begin_ns < site->first_ns)
		site->first_ns = claim->begin_ns;
	if (claim->end_ns > site->last_ns)
		site->last_ns = claim->end_ns;
	site->count += 1 + v->earlier;
	site->bytes = add_capped(site->bytes, add_capped(claim->bytes, v->earlier_bytes));
	site->failed += claim->failed;
	site->total_ns += duration_ns + v->earlier_ns;
	site->hidden_ns += claim->hidden_ns;
	site->cost.own_ns += v->cost_ns;
	site->cost.gain_low_ns += v->gain_low_ns;
	site->cost.gain_high_ns += v->gain_high_ns;
	site->cost.instead_ns += v->instead_ns;
	site->tally += v->tally;
	site->went_on |=
		site->last_thread == claim->thread && claim->progress_calls > site->progress_calls;
	site->progress_calls = claim->progress_calls;
	thread_costs_add(&site->cost.threads, claim->thread, (double)v->cost_ns,
			 phase_lasts(claim->phase, claim->end_ns) ? (double)v->cost_ns : 0);
	thread_set_add(&site->callers, claim->thread);
	site->threads = site->callers.count;
	site->last_thread = claim->thread;
	if (claim->device != SPY_DEVICE_NONE)
		site->devices |= 1ull << (claim->device < 63 ? claim->device : 63);
	keep_worst(&site->worst, &(struct evidence){.begin_ns = claim->begin_ns,
						    .duration_ns = duration_ns,
						    .thread = claim->thread,
						    .device = claim->device});
	if (claim->kernel)
		keep_kernel(site, claim->kernel);
	if (claim->range)
		range_shares_add(shares_of(site), claim->range, 1, v->cost_ns);
	site_stacks_call(&site->stacks, &(struct site_call){.bytes = claim->bytes,
							    .ns = duration_ns,
							    .cost_ns = v->cost_ns,
							    .stack = claim->stack,
							    .outlier = claim->outlier});
}

void site_add(struct site *sum, const struct site *more)
{
	sum->count += more->count;
	sum->bytes = add_capped(sum->bytes, more->bytes);
	sum->failed += more->failed;
	sum->total_ns += more->total_ns;
	sum->hidden_ns += more->hidden_ns;
	sum->cost.own_ns += more->cost.own_ns;
	sum->cost.gain_low_ns += more->cost.gain_low_ns;
	sum->cost.gain_high_ns += more->cost.gain_high_ns;
	sum->cost.instead_ns += more->cost.instead_ns;
	sum->tally += more->tally;
	sum->cost.others_ns += more->cost.others_ns;
	sum->cost.others_sure_ns += more->cost.others_sure_ns;
	sum->cost.cross_ns += more->cost.cross_ns;
	sum->rounds.count =
		more->rounds.count > sum->rounds.count ? more->rounds.count : sum->rounds.count;
	sum->rounds.at_the_end &= more->rounds.at_the_end;
	occasions_join(&sum->occasions, &more->occasions);
	sum->devices |= more->devices;
	sum->went_on |= more->went_on;
	sum->threads += more->threads;
	thread_set_join(&sum->callers, &more->callers);
	thread_costs_join(&sum->cost.threads, &more->cost.threads, 1);
	sum->first_ns = more->first_ns < sum->first_ns ? more->first_ns : sum->first_ns;
	sum->last_ns = more->last_ns > sum->last_ns ? more->last_ns : sum->last_ns;
	keep_worst(&sum->worst, &more->worst);
	for (size_t i = 0; i < SITE_KERNELS && more->kernels[i]; i++)
		keep_kernel(sum, more->kernels[i]);
	sum->more_kernels |= more->more_kernels;
	if (more->ranges)
		range_shares_join(shares_of(sum), more->ranges);
	site_stacks_add(&sum->stacks, &more->stacks);
}

/* ---- claims that are open ------------------------------------------------------------------- */

/* Of a thread: if there are more, the oldest is settled as if nothing came after it. */
#define OPEN_MOST 16

/* Asks the claim's detector. True: it is decided. */
static bool settle(struct claim *claim, const struct observed *next)
{
	const struct detector *detector = detectors_row(claim->site->key.detector);
	enum settled settled = detector->settle(claim, next, &claim->verdict);

	if (settled == SETTLED_CASE)
		add_claim(claim);
	return settled != SETTLED_NOT || !next;
}

static bool needs_next(const struct claim *claim)
{
	return !detectors_row(claim->site->key.detector)->patient;
}

static void settle_oldest(struct thread_account *c)
{
	settle(&c->open[0], NULL);
	c->n_need_next -= needs_next(&c->open[0]);
	memmove(&c->open[0], &c->open[1], --c->n_open * sizeof(*c->open));
}

static void leave_open(struct thread_account *c, const struct claim *claim)
{
	if (c->n_open == OPEN_MOST)
		settle_oldest(c);
	if (c->n_open == c->open_size) { /* most threads have few at a time */
		c->open_size = c->open_size ? 2 * c->open_size : 1;
		c->open = xrealloc(c->open, c->open_size, sizeof(*c->open));
	}
	c->n_need_next += needs_next(claim);
	c->open[c->n_open++] = *claim;
}

/* What the recorder may take behind a call at which it looked closer (some 20 to 30 us on dev, with
 * nothing beside it). */
#define LOOK_NS 30000

static uint64_t look_ns(const struct completed_call *f)
{
	return f->end_ns - f->begin_ns < SPY_LOOKED_AT_NS ? 0 : LOOK_NS;
}

static void settle_earlier(const struct observed *next)
{
	struct thread_account *c = next->account;
	size_t i, kept = 0;

	for (i = 0; i < c->n_open; i++) {
		struct claim *claim = &c->open[i];

		if (next->call->begin_ns > claim->seen_ns)
			claim->outside_ns += next->call->begin_ns - claim->seen_ns;
		claim->seen_ns = next->call->end_ns;
		if (settle(claim, next)) {
			c->n_need_next -= needs_next(claim);
			continue;
		}
		claim->looks_ns += look_ns(next->call);
		if (kept != i)
			c->open[kept] = *claim;
		kept++;
	}
	c->n_open = kept;
}

/* What the call took, but for waits for the GPU. */
static uint64_t busy_ns(const struct completed_call *f)
{
	return f->end_ns - f->begin_ns - completed_ns(f, BUCKET_GPU_INTENDED) -
	       completed_ns(f, BUCKET_GPU_HIDDEN) - completed_ns(f, BUCKET_QUEUE);
}

/* The call just made lies behind those that are open; site: whose case it is. */
static void see_behind(const struct observed *o, const struct site *site)
{
	struct thread_account *c = o->account;

	for (size_t i = 0; i < c->n_open; i++)
		if (c->open[i].end_ns <= o->call->begin_ns &&
		    (!site || c->open[i].site->key.detector != site->key.detector))
			c->open[i].inside_ns += busy_ns(o->call);
}

void claim_waits_anyway(const struct claim *claim, struct verdict *v)
{
	v->gain_high_ns -= claim->hidden_ns - min_u64(claim->hidden_ns, claim_between_ns(claim));
}

void sites_settle(struct accounting *a)
{
	for (size_t i = 0; i < a->n_thread_accounts; i++)
		while (a->thread_accounts[i] && a->thread_accounts[i]->n_open)
			settle_oldest(a->thread_accounts[i]);
}

/* ---- the calls ------------------------------------------------------------------------------ */

static struct site *site_of(struct findings *f, const struct observed *o, uint32_t detector,
			    uint32_t variant)
{
	struct site_key key = {
		.return_address = record_return_address(o->record),
		.process = o->record->process,
		.epoch = model_gone(o->record->thread->process, record_return_address(o->record)),
		.fn = o->record->fn,
		.detector = detector,
		.variant = variant};

	return find_site(f, &key);
}

static const char *kernel_of(const struct record *record)
{
	if (record->event != SPY_EV_LAUNCH)
		return NULL;
	return model_kernel(record->thread->process, record_kernel(record));
}

static void claim_call(const struct observed *o, struct site *site, const struct verdict *v,
		       bool outlier)
{
	const struct completed_call *call = o->call;
	struct claim claim = {.site = site,
			      .verdict = *v,
			      .thread = call->thread,
			      .device = call->device,
			      .failed = record_failed(o->record),
			      .phase = &o->accounts->expect->phases.all[o->record->process],
			      .begin_ns = call->begin_ns,
			      .end_ns = call->end_ns,
			      .hidden_ns = completed_ns(call, BUCKET_GPU_HIDDEN),
			      .bytes = record_bytes(o->record),
			      .submissions = observed_submissions(o),
			      .progress_calls = o->account->recent_ops.progress_calls,
			      .stack = call->stack,
			      .outlier = outlier,
			      .kernel = kernel_of(o->record),
			      .range = ranges_innermost_shown(&o->accounts->ranges, call->thread),
			      .outside_ns = 0, /* all are named: gcc zeroes a part of it slowly */
			      .inside_ns = 0,
			      .seen_ns = call->end_ns,
			      .looks_ns = look_ns(call)};

	if (v->open)
		leave_open(o->account, &claim);
	else
		add_claim(&claim);
}

/* Which detectors see the call. In one that starts CUDA or a GPU up all else is small. */
static uint64_t who_judges(const struct findings *f, const struct observed *o)
{
	if (record_failed(o->record))
		return f->failures;
	if (o->account->starts_up)
		return f->always[SPY_CONTRACT_INIT];
	return o->call->divided ? f->when_long[o->contract] : f->always[o->contract];
}

/* Of a call that has a stack: for its length alone, for it took twice as long as those told of
 * before? As the recorder decides it (is_due in shim/stack/stack.c). */
static bool is_outlier(struct findings *f, const struct observed *o)
{
	struct longest_call_key key = {.return_address = record_return_address(o->record),
				       .kernel = kernel_of(o->record),
				       .process = o->record->process,
				       .fn = o->record->fn};
	uint64_t ns = o->call->end_ns - o->call->begin_ns, before;
	struct longest_call *longest_call;

	HASH_FIND(hh, f->longest_call, &key, sizeof(key), longest_call);
	if (!longest_call)
		HASH_NEW(f->longest_call, longest_call, key, key);
	before = longest_call->longest_ns;
	if (ns / 2 < before)
		return false;
	longest_call->longest_ns = ns;
	return before;
}

/* The first detector that wants the call gets it. */
static struct site *judge(struct findings *f, const struct observed *o, bool *alone)
{
	uint64_t left = who_judges(f, o);
	bool outlier = o->call->stack && is_outlier(f, o);

	for (; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);
		struct verdict v = {0};
		struct site *site;

		if (!detectors_row(i)->judge(o, &v))
			continue;
		site = site_of(f, o, i, v.variant);
		claim_call(o, site, &v, outlier);
		*alone = v.alone;
		return site;
	}
	return NULL;
}

static struct site *on_call(struct observer *observer, const struct observed *o)
{
	bool alone = false;
	struct site *site;

	if (o->account->n_open)
		settle_earlier(o);
	site = judge((struct findings *)observer, o, &alone);
	if (o->account->n_open)
		see_behind(o, site);
	return alone ? NULL : site;
}

static void charge_others(struct site *site, const struct others_wait *wait)
{
	site->cost.others_ns += wait->ns;
	if (wait->sure)
		site->cost.others_sure_ns += wait->ns;
	if (wait->across_devices)
		site->cost.cross_ns += wait->ns;
	thread_costs_add(&site->cost.threads, wait->waiter, wait->ns, wait->working ? wait->ns : 0);
}

void findings_init(struct findings *f, struct accounting *a)
{
	uint32_t *const asked[] = {[COPIES_ALL] = &f->observer.always,
				   [COPIES_PAGEABLE] = &f->observer.pageable,
				   [COPIES_PEER] = &f->observer.peer,
				   [COPIES_IN_RUN] = &f->observer.in_run};
	const struct detector *detector;

	*f = (struct findings){.observer = {.on_call = on_call, .on_others_wait = charge_others},
			       .accounts = a};
	for (size_t i = 0; (detector = detectors_row(i)); i++) {
		if (!detector->judge)
			continue;
		f->failures |= (uint64_t)detector->failures << i;
		*asked[detector->copies] |= detector->always;
		for (size_t contract = 0; contract < SPY_CONTRACT_COUNT; contract++) {
			uint64_t always = detector->always >> contract & 1;

			f->always[contract] |= always << i;
			f->when_long[contract] |= (always | (detector->when_long >> contract & 1))
						  << i;
		}
	}
	a->observer = &f->observer;
}

void findings_release(struct findings *f)
{
	struct site *site, *next;
	struct longest_call *longest_call, *next_longest_call;

	HASH_EMPTY (f->sites, site, next) {
		thread_set_release(&site->callers);
		free(site->rounds.sampled);
		site_stacks_release(&site->stacks);
		thread_costs_release(&site->cost.threads);
		free(site->ranges);
		occasions_release(&site->occasions);
		free(site);
	}
	HASH_EMPTY (f->longest_call, longest_call, next_longest_call)
		free(longest_call);
}

bool site_went_on(const struct accounting *a, const struct site *site)
{
	const struct thread_account *account = thread_account_of(a, site->last_thread);

	return site->went_on ||
	       (account && account->recent_ops.progress_calls > site->progress_calls);
}

const char *site_waits_anyway(const struct site *site)
{
	return site->cost.gain_high_ns < site->cost.own_ns / 2
		       ? "; for most of that the thread would have waited right behind them, in "
			 "any case"
		       : "";
}
