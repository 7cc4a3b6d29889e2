/*
 * analyzer/finding.c: calls that detectors want become sites, sites become findings. Called by the
 * accounting for each call that might be a case, and once by the report.
 */
#include <stdlib.h>
#include <string.h>
#include "analysis.h"
#include "detector.h"
#include "lines.h"
#include "python.h"
#include "report_words.h"

/* A finding that costs less than this, or a smaller part of the threads' time, is a minor one. */
#define MINOR_NS 1000000
#define MINOR_PART 200

/* ---- what a detector may ask ----------------------------------------------------------------- */

uint64_t observed_awaited(const struct observed *o)
{
	return work_awaited(&o->accounts->work, &o->caller->stream, o->record, o->waits);
}

uint64_t observed_outstanding(const struct observed *o)
{
	return work_outstanding(&o->accounts->work, o->record);
}

uint64_t observed_submissions(const struct observed *o)
{
	return o->accounts->work.submissions[o->record->process];
}

bool observed_host_sees(const struct observed *o)
{
	return o->accounts->work.views[o->record->process].managed;
}

bool observed_ends(const struct observed *o)
{
	return work_ends(&o->accounts->work, &o->caller->stream, o->record, o->waits);
}

bool observed_brings(const struct observed *o)
{
	return o->caller->steps.brought_back || work_brings(&o->accounts->work, o->record);
}

uint64_t observed_handed_over(const struct observed *o, uint8_t device)
{
	return work_handed_over(&o->accounts->work, o->record, device);
}

bool observed_covers(const struct observed *o, uint64_t stream, const struct claim *claim)
{
	return work_covers(&o->accounts->work, o->record, o->waits, stream, claim->device,
			   claim->end_ns);
}

uint64_t observed_warm(const struct observed *o)
{
	return expect_class(o->accounts->expect, o->record->raw, o->record->fn, false)->expected_ns;
}

bool observed_class(const struct observed *o, uint64_t key, uint64_t *expected_ns)
{
	const struct call_class *class = expect_place(o->accounts->expect, key)->class;

	if (!class)
		class = expect_add(o->accounts->expect, key);
	if (class->source == EXPECT_NONE || class->source == EXPECT_DEFAULT)
		return false;
	*expected_ns = class->expected_ns;
	return true;
}

/* ---- sites ---------------------------------------------------------------------------------- */

static uint64_t bytes_of(const union spy_any *raw)
{
	if (raw->other.event == SPY_EV_COPY)
		return raw->copy.bytes;
	return raw->other.event == SPY_EV_MEMORY ? raw->memory.bytes : 0;
}

static struct site *find_site(struct findings *f, const struct site_key *key)
{
	struct site *site = f->last;

	if (site && !memcmp(&site->key, key, sizeof(*key)))
		return site;
	HASH_FIND(hh, f->sites, key, sizeof(*key), site);
	if (!site) {
		site = xcalloc(1, sizeof(*site));
		site->key = *key;
		HASH_ADD(hh, f->sites, key, sizeof(site->key), site);
	}
	f->last = site;
	return site;
}

static void keep_worst(struct evidence *worst, const struct evidence *evidence)
{
	size_t i, least = 0;

	for (i = 0; i < EVIDENCE; i++)
		if (!worst[i].thread ||
		    (worst[least].thread && worst[i].cost_ns < worst[least].cost_ns))
			least = i;
	if (!worst[least].thread || evidence->cost_ns > worst[least].cost_ns)
		worst[least] = *evidence;
}

/* When its rounds were, by the process's submissions: thinned out evenly when there are too many. */
static void sample_round(struct site *site, uint64_t submissions)
{
	uint32_t i;

	if (!site->stride)
		site->stride = 1;
	if (site->rounds % site->stride)
		return;
	if (site->n_sampled == SITE_SAMPLES) {
		for (i = 0; i < SITE_SAMPLES / 2; i++)
			site->sampled[i] = site->sampled[2 * i];
		site->n_sampled = SITE_SAMPLES / 2;
		site->stride *= 2;
		if (site->rounds % site->stride)
			return;
	}
	site->sampled[site->n_sampled++] = submissions;
}

unsigned int site_tenths(const struct analysis *a, const struct site *site)
{
	uint64_t all = a->accounts.work.submissions[site->key.process];
	unsigned int tenths = 0;
	uint32_t i;

	for (i = 0; i < site->n_sampled && all; i++) {
		uint64_t tenth = 10 * site->sampled[i] / (all + 1);

		tenths |= 1u << (tenth < 10 ? tenth : 9);
	}
	return (unsigned int)__builtin_popcount(tenths);
}

/* In place of the cheapest; a free place is cheapest. */
static void keep_stack_of(struct site *site, const struct stack *stack, uint64_t cost_ns)
{
	struct site_stack *cheapest = &site->stacks[0];
	size_t i;

	for (i = 0; i < SITE_STACKS && cheapest->stack; i++)
		if (!site->stacks[i].stack || site->stacks[i].cost_ns < cheapest->cost_ns)
			cheapest = &site->stacks[i];
	if (!cheapest->stack || cost_ns > cheapest->cost_ns)
		*cheapest = (struct site_stack){stack, cost_ns};
}

static void keep_stack(struct site *site, const struct stack *stack, uint64_t ns, uint64_t cost_ns)
{
	if (!stack || (site->stack && cost_ns <= site->stack_cost_ns))
		return;
	site->stack = stack;
	site->stack_ns = ns;
	site->stack_cost_ns = cost_ns;
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

static void add_claim(const struct claim *claim)
{
	const struct verdict *v = &claim->verdict;
	struct site *site = claim->site;
	uint64_t duration_ns = claim->end_ns - claim->begin_ns;

	/* Claims that were open may come late: in rounds that are counted. */
	if (!site->count || claim->submissions > site->submissions) {
		sample_round(site, claim->submissions);
		site->rounds++;
		site->submissions = claim->submissions;
	}
	if (!site->count || claim->begin_ns < site->first_ns)
		site->first_ns = claim->begin_ns;
	if (claim->end_ns > site->last_ns)
		site->last_ns = claim->end_ns;
	site->count++;
	site->bytes += claim->bytes;
	site->failed += claim->failed;
	site->total_ns += duration_ns;
	site->hidden_ns += claim->hidden_ns;
	site->cost_ns += v->cost_ns;
	site->gain_low_ns += v->gain_low_ns;
	site->gain_high_ns += v->gain_high_ns;
	site->tally += v->tally;
	site->tries = claim->tries;
	thread_set_add(&site->callers, claim->thread);
	site->threads = site->callers.count;
	site->last_thread = claim->thread;
	if (claim->device != SPY_DEVICE_NONE)
		site->devices |= 1ull << (claim->device < 63 ? claim->device : 63);
	keep_worst(site->worst, &(struct evidence){.begin_ns = claim->begin_ns,
						   .duration_ns = duration_ns,
						   .cost_ns = v->cost_ns,
						   .thread = claim->thread,
						   .device = claim->device});
	if (claim->kernel)
		keep_kernel(site, claim->kernel);
	keep_stack(site, claim->stack, duration_ns, v->cost_ns);
	if (claim->stack)
		keep_stack_of(site, claim->stack, v->cost_ns);
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

static void settle_oldest(struct caller *c)
{
	settle(&c->open[0], NULL);
	memmove(&c->open[0], &c->open[1], --c->n_open * sizeof(*c->open));
}

static void leave_open(struct caller *c, const struct claim *claim)
{
	if (c->n_open == OPEN_MOST)
		settle_oldest(c);
	c->open = grow(c->open, c->n_open, sizeof(*c->open));
	c->open[c->n_open++] = *claim;
}

static void settle_earlier(const struct observed *next)
{
	struct caller *c = next->caller;
	size_t i, kept = 0;

	for (i = 0; i < c->n_open; i++) {
		struct claim *claim = &c->open[i];

		if (next->call->begin_ns > claim->seen_ns)
			claim->outside_ns += next->call->begin_ns - claim->seen_ns;
		claim->seen_ns = next->call->end_ns;
		if (!settle(claim, next))
			c->open[kept++] = *claim;
	}
	c->n_open = kept;
}

/* The call just made lies behind those that are open; site: whose case it is. */
static void see_behind(const struct observed *o, const struct site *site)
{
	struct caller *c = o->caller;
	size_t i;

	for (i = 0; i < c->n_open; i++)
		if (c->open[i].end_ns <= o->call->begin_ns &&
		    (!site || c->open[i].site->key.detector != site->key.detector))
			c->open[i].inside_ns += finished_ns(o->call, BUCKET_OWN);
}

static void settle_all(struct accounting *accounts)
{
	size_t i;

	for (i = 0; i < accounts->n_callers; i++)
		while (accounts->callers[i] && accounts->callers[i]->n_open)
			settle_oldest(accounts->callers[i]);
}

/* ---- the calls ------------------------------------------------------------------------------ */

static struct site *site_of(struct findings *f, const struct observed *o, uint32_t detector,
			    uint32_t variant)
{
	struct site_key key = {
		.caller = record_caller(o->record->raw),
		.process = o->record->process,
		.epoch = model_gone(o->record->thread->process, record_caller(o->record->raw)),
		.fn = o->record->fn,
		.detector = detector,
		.variant = variant};

	return find_site(f, &key);
}

static const char *kernel_of(const struct record *record)
{
	if (record->raw->other.event != SPY_EV_LAUNCH)
		return NULL;
	return model_kernel(record->thread->process, record_kernel(&record->raw->launch));
}

static void claim_call(const struct observed *o, struct site *site, const struct verdict *v)
{
	const struct finished *call = o->call;
	struct claim claim = {.site = site,
			      .verdict = *v,
			      .thread = call->thread,
			      .device = call->device,
			      .failed = call_failed(&o->record->raw->call_head),
			      .begin_ns = call->begin_ns,
			      .end_ns = call->end_ns,
			      .hidden_ns = finished_ns(call, BUCKET_GPU_HIDDEN),
			      .bytes = bytes_of(o->record->raw),
			      .submissions = observed_submissions(o),
			      .tries = o->caller->steps.tries,
			      .stack = call->stack,
			      .kernel = kernel_of(o->record),
			      .seen_ns = call->end_ns};

	if (v->open)
		leave_open(o->caller, &claim);
	else
		add_claim(&claim);
}

/* The first detector that wants the call gets it. */
static struct site *judge(struct findings *f, const struct observed *o, bool *alone)
{
	uint64_t left = call_failed(&o->record->raw->call_head) ? f->failures
			: o->call->divided                      ? f->when_long[o->contract]
								: f->always[o->contract];

	for (; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);
		struct verdict v = {0};
		struct site *site;

		if (!detectors_row(i)->judge(o, &v))
			continue;
		site = site_of(f, o, i, v.variant);
		claim_call(o, site, &v);
		*alone = v.alone;
		return site;
	}
	return NULL;
}

static struct site *see(struct observer *observer, const struct observed *o)
{
	bool alone = false;
	struct site *site;

	if (o->caller->n_open)
		settle_earlier(o);
	site = judge((struct findings *)observer, o, &alone);
	if (o->caller->n_open)
		see_behind(o, site);
	return alone ? NULL : site;
}

static void charge_others(struct site *site, double ns, bool sure, bool across)
{
	site->others_ns += ns;
	if (sure)
		site->others_sure_ns += ns;
	if (across)
		site->cross_ns += ns;
}

void findings_init(struct findings *f, struct accounting *accounts)
{
	const struct detector *detector;
	size_t i, contract;

	*f = (struct findings){.observer = {.see = see, .others = charge_others},
			       .accounts = accounts};
	for (i = 0; (detector = detectors_row(i)); i++) {
		if (!detector->judge)
			continue;
		f->failures |= (uint64_t)detector->failures << i;
		f->observer.always |= detector->always;
		for (contract = 0; contract < SPY_CONTRACT_COUNT; contract++) {
			uint64_t always = detector->always >> contract & 1;

			f->always[contract] |= always << i;
			f->when_long[contract] |= (always | (detector->when_long >> contract & 1))
						  << i;
		}
	}
	accounts->observer = &f->observer;
}

void findings_release(struct findings *f)
{
	struct site *site, *next;

	HASH_ITER (hh, f->sites, site, next) {
		HASH_DEL(f->sites, site);
		free(site->callers.words);
		free(site);
	}
}

bool site_went_on(const struct analysis *a, const struct site *site)
{
	const struct caller *caller = account_caller(&a->accounts, site->last_thread);

	return caller && caller->steps.tries > site->tries;
}

/* ---- places --------------------------------------------------------------------------------- */

static void find_place(struct finding *finding, const struct place *place, struct report *report)
{
	finding->module = place->path ? report_text(report, "%s", place->path) : NULL;
	finding->caller = place->function ? report_text(report, "%s", place->function) : NULL;
	finding->inner = place->inner ? report_text(report, "%s", place->inner) : NULL;
	finding->file = place->file ? report_text(report, "%s", place->file) : NULL;
	finding->offset = place->offset;
	finding->line = (uint64_t)place->line;
	finding->where = report_text(report, "%s%s", finding->function, word_place(report, place));
}

static int same_place(const struct finding *x, const struct finding *y)
{
	int order = (x->detector > y->detector) - (x->detector < y->detector);

	order = order ? order : strcmp(x->module ?: "", y->module ?: "");
	if (!order && x->offset != y->offset)
		order = x->offset < y->offset ? -1 : 1;
	order = order ? order : strcmp(x->function, y->function);
	return order ? order : (x->variant > y->variant) - (x->variant < y->variant);
}

/* Findings of the same place stand together, and among them those of a process. */
static int by_place(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	int order = same_place(x, y);

	return order ? order : (x->process > y->process) - (x->process < y->process);
}

static void add_site(struct site *sum, const struct site *more)
{
	size_t i;

	sum->count += more->count;
	sum->bytes += more->bytes;
	sum->failed += more->failed;
	sum->total_ns += more->total_ns;
	sum->hidden_ns += more->hidden_ns;
	sum->cost_ns += more->cost_ns;
	sum->gain_low_ns += more->gain_low_ns;
	sum->gain_high_ns += more->gain_high_ns;
	sum->tally += more->tally;
	sum->others_ns += more->others_ns;
	sum->others_sure_ns += more->others_sure_ns;
	sum->cross_ns += more->cross_ns;
	sum->rounds = more->rounds > sum->rounds ? more->rounds : sum->rounds;
	sum->at_the_end &= more->at_the_end;
	sum->devices |= more->devices;
	sum->threads += more->threads;
	thread_set_join(&sum->callers, &more->callers);
	sum->first_ns = more->first_ns < sum->first_ns ? more->first_ns : sum->first_ns;
	sum->last_ns = more->last_ns > sum->last_ns ? more->last_ns : sum->last_ns;
	for (i = 0; i < EVIDENCE; i++)
		if (more->worst[i].thread)
			keep_worst(sum->worst, &more->worst[i]);
	for (i = 0; i < SITE_KERNELS && more->kernels[i]; i++)
		keep_kernel(sum, more->kernels[i]);
	sum->more_kernels |= more->more_kernels;
	keep_stack(sum, more->stack, more->stack_ns, more->stack_cost_ns);
	for (i = 0; i < SITE_STACKS && more->stacks[i].stack; i++)
		keep_stack_of(sum, more->stacks[i].stack, more->stacks[i].cost_ns);
}

/* ---- findings ------------------------------------------------------------------------------- */

static struct finding from_site(struct site *site, const struct analysis *a,
				struct symbolizer *symbols, struct report *report)
{
	const struct process *process = &a->model.processes[site->key.process];
	struct finding finding = {
		.detector = detectors_row(site->key.detector),
		.site = site,
		.process = process,
		.variant = site->key.variant,
		.processes = 1,
		.places = 1,
		.function = word_function(a, site->key.fn),
	};
	struct place place;

	site->at_the_end = site->rounds == 1 &&
			   site->submissions == a->accounts.work.submissions[site->key.process];
	symbolize(symbols, process, site->key.caller, site->last_ns, &place);
	find_place(&finding, &place, report);
	return finding;
}

/* Those that detectors added after the last record: where, if they know. */
static void place_added(struct finding *finding, struct symbolizer *symbols, struct report *report)
{
	struct place place;

	if (!finding->address || !finding->process || !finding->function)
		return;
	symbolize(symbols, finding->process, finding->address, finding->address_ns, &place);
	find_place(finding, &place, report);
}

/* Those of the same place become one. Returns how many are left. */
static size_t merge(struct finding *findings, size_t n)
{
	size_t i, kept = 0;

	qsort(findings, n, sizeof(*findings), by_place);
	for (i = 0; i < n; i++) {
		struct finding *last = kept ? &findings[kept - 1] : NULL;

		if (!last || same_place(last, &findings[i])) {
			findings[kept++] = findings[i];
			continue;
		}
		add_site(last->site, findings[i].site);
		last->processes += last->process != findings[i].process;
		last->process = findings[i].process;
	}
	return kept;
}

static int by_site_cost(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->site->cost_ns != y->site->cost_ns)
		return x->site->cost_ns < y->site->cost_ns ? 1 : -1;
	return by_place(x, y);
}

/* The finding among the first n, of the same process, whose cause is also f's. */
static struct finding *same_cause(struct finding *findings, size_t n, const struct finding *f)
{
	size_t i;

	for (i = 0; i < n && f->detector->everywhere; i++)
		if (findings[i].detector == f->detector && findings[i].process == f->process &&
		    findings[i].variant == f->variant)
			return &findings[i];
	return NULL;
}

/* Those that have one cause wherever they are become one in each process, at the costliest place. */
static size_t merge_everywhere(struct finding *findings, size_t n)
{
	size_t i, kept = 0;

	qsort(findings, n, sizeof(*findings), by_site_cost);
	for (i = 0; i < n; i++) {
		struct finding *first = same_cause(findings, kept, &findings[i]);

		if (!first) {
			findings[kept++] = findings[i];
			continue;
		}
		add_site(first->site, findings[i].site);
		first->places++;
	}
	return kept;
}

#define KERNEL_WIDTH 40

/* "; kernels: first(int), second(float) and others"; nothing if there are none. */
static const char *kernels_text(const struct site *site, struct symbolizer *symbols,
				struct report *report)
{
	const char *text = "";
	size_t i;

	for (i = 0; i < SITE_KERNELS && site->kernels[i]; i++) {
		char *name = visible(demangle(symbols, site->kernels[i]));

		shorten(name, KERNEL_WIDTH);
		text = report_text(report, "%s%s%s", text, i ? ", " : "; kernels: ", name);
		free(name);
	}
	return site->more_kernels ? report_text(report, "%s and others", text) : text;
}

/* What the site says of itself; false: its detector finds nothing in it. */
static bool fill(struct finding *finding, const struct analysis *a, struct symbolizer *symbols,
		 struct report *report)
{
	const struct site *site = finding->site;

	finding->count = site->count;
	finding->bytes = site->bytes;
	finding->own_ns = site->cost_ns;
	finding->others_ns = (uint64_t)site->others_ns;
	finding->gain_low_ns = site->gain_low_ns + (uint64_t)site->others_sure_ns;
	finding->gain_high_ns = site->gain_high_ns + finding->others_ns;
	finding->gain_known = true;
	finding->fix = finding->detector->fix;
	finding->what = finding->detector->keep(a, site, finding, report);
	if (finding->what && finding->detector->kernels)
		finding->what = report_text(report, "%s%s", finding->what,
					    kernels_text(site, symbols, report));
	return finding->what != NULL;
}

/* Asks the detectors which are findings. */
static size_t sift(struct finding *findings, size_t n, const struct analysis *a,
		   struct symbolizer *symbols, struct report *report)
{
	size_t i, kept = 0;

	for (i = 0; i < n; i++)
		if (fill(&findings[i], a, symbols, report))
			findings[kept++] = findings[i];
	return kept;
}

static bool at_same_place(const struct finding *x, const struct finding *y)
{
	return x->offset == y->offset && !strcmp(x->module ?: "", y->module ?: "") &&
	       !strcmp(x->function, y->function);
}

/* One finding for a cause: what another one is part of goes into that. */
static size_t absorb(struct finding *findings, size_t n, const struct analysis *a,
		     struct symbolizer *symbols, struct report *report)
{
	size_t i, j, kept = 0;

	for (i = 0; i < n; i++) {
		for (j = 0; j < n; j++)
			if (findings[j].detector->absorbs == findings[i].detector &&
			    at_same_place(&findings[i], &findings[j]))
				break;
		if (j == n)
			continue;
		add_site(findings[j].site, findings[i].site);
		fill(&findings[j], a, symbols, report);
		findings[i].what = NULL;
	}
	for (i = 0; i < n; i++)
		if (findings[i].what)
			findings[kept++] = findings[i];
	return kept;
}

static int by_cost(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (finding_cost(x) != finding_cost(y))
		return finding_cost(x) < finding_cost(y) ? 1 : -1;
	if (x->function && y->function)
		return same_place(x, y);
	return strcmp(x->detector->id, y->detector->id);
}

static void find_python(struct finding *finding, struct report *report)
{
	struct python_line *lines;

	if (!finding->site || !finding->site->stack)
		return;
	lines = arena_take(&report->arena, xcalloc(SITE_STACKS, sizeof(*lines)));
	finding->python = lines;
	finding->n_python = python_lines(finding->site->stacks, SITE_STACKS, lines);
}

/* No cure gives back more than there was lost. */
static void limit_gain(struct finding *finding)
{
	finding->gain_high_ns = least(finding->gain_high_ns, finding_cost(finding));
	finding->gain_low_ns = least(finding->gain_low_ns, finding->gain_high_ns);
}

struct finding *findings_conclude(struct findings *f, const struct analysis *a,
				  struct symbolizer *symbols, struct report *report, size_t *n)
{
	struct finding *findings = NULL;
	const struct detector *detector;
	struct site *site, *next;
	size_t i, count = 0, n_sites;

	settle_all(f->accounts);
	HASH_ITER (hh, f->sites, site, next) {
		if (!site->count) /* all claims were let go */
			continue;
		findings = grow(findings, count, sizeof(*findings));
		findings[count++] = from_site(site, a, symbols, report);
	}
	if (count) {
		count = merge_everywhere(findings, merge(findings, count));
		count = absorb(findings, sift(findings, count, a, symbols, report), a, symbols,
			       report);
	}
	n_sites = count;
	for (i = 0; (detector = detectors_row(i)); i++)
		if (detector->conclude)
			detector->conclude(a, report, &findings, &count);
	for (i = n_sites; i < count; i++)
		place_added(&findings[i], symbols, report);
	for (i = 0; i < count; i++) {
		limit_gain(&findings[i]);
		find_python(&findings[i], report);
	}
	if (count)
		qsort(findings, count, sizeof(*findings), by_cost);
	*n = count;
	return findings;
}

uint64_t findings_process_ns(const struct analysis *a, const struct process *process,
			     uint64_t *n_threads)
{
	size_t i, n = 0;

	for (i = 0; i < a->model.n_threads; i++)
		n += a->model.threads[i]->process == process && a->stats.threads[i].count;
	*n_threads = n;
	return process->first_ns < process->last_ns ? n * (process->last_ns - process->first_ns)
						    : 0;
}

/* What nobody knows the cost of is none: it might be large. */
bool finding_minor(const struct finding *f, uint64_t run_ns)
{
	return !f->cost_unknown &&
	       (finding_cost(f) < MINOR_NS || finding_cost(f) < run_ns / MINOR_PART);
}

bool finding_problem(const struct finding *f, uint64_t run_ns)
{
	return !f->cost_unknown && !f->perhaps_free && !f->not_ours && !finding_minor(f, run_ns);
}

uint64_t findings_run_ns(const struct analysis *a)
{
	uint64_t ns = 0, n_threads;
	size_t i;

	for (i = 0; i < a->model.n_processes; i++)
		ns += findings_process_ns(a, &a->model.processes[i], &n_threads);
	return ns;
}
