/*
 * analyzer/detectors/stall.c: how long threads waited for locks that other threads of their process
 * held. Called by the detectors of stalls, after the last record.
 */
#include <stdlib.h>
#include <string.h>
#include "holder_cure.h"
#include "stall.h"
#include "table.h"
#include "findings/site.h"
#include "account/account.h"
#include "text/text.h"

/* The call that kept holders, and how long others waited for it, for what reason there. */
struct holder_call {
	uint32_t fn;
	double ns, of_cause[CAUSE_COUNT];
};

struct sums {
	struct stall stall;
	struct holder_call *holder_calls;
	size_t n_holder_calls;
	bool *waiters, *threads; /* by thread index */
	bool *processes; /* by index */
	bool devices[SPY_DEVICE_NONE];
};

static void add_holder_call(struct sums *sums, const struct blame_edge *edge)
{
	size_t i;

	for (i = 0; i < sums->n_holder_calls; i++)
		if (sums->holder_calls[i].fn == edge->key.holder_fn)
			break;
	if (i == sums->n_holder_calls) {
		sums->holder_calls = grow(sums->holder_calls, i, sizeof(*sums->holder_calls));
		sums->holder_calls[sums->n_holder_calls++] =
			(struct holder_call){.fn = edge->key.holder_fn};
	}
	sums->holder_calls[i].ns += edge->waited_ns;
	sums->holder_calls[i].of_cause[edge->key.cause] += edge->waited_ns;
}

/* ---- the start ------------------------------------------------------------------------------ */

static uint64_t starting_stalls(const struct thread_account *c, uint32_t fn)
{
	const struct account *account = c ? account_find(&c->functions, fn) : NULL;
	const uint64_t *stalls = account ? account->starting_stalls : NULL;

	if (!stalls)
		return 0;
	return stalls[0] > stalls[1] ? stalls[0] : stalls[1]; /* a call may be one of both */
}

/* Did calls of the function wait so seldom, as the program started, that it is negligible? */
static bool few_starting(const struct accounting *a, const struct thread *thread, uint32_t fn)
{
	uint64_t all = 0;

	if (starting_stalls(thread_account_of(a, thread), fn) < STALL_STARTING_THREAD)
		return true;
	for (size_t i = 0; i < a->n_thread_accounts && all < STALL_STARTING_ALL; i++) {
		const struct thread_account *c = a->thread_accounts[i];

		if (c && c->thread->process == thread->process)
			all += starting_stalls(c, fn);
	}
	return all < STALL_STARTING_ALL;
}

/* The edge without them. */
static struct blame_edge without_start(const struct accounting *a, const struct blame_edge *edge)
{
	struct blame_edge left = *edge;

	if (edge->starting_ns <= 0 ||
	    !few_starting(a, edge_thread(a->model, edge->key.waiter), edge->key.waiter_fn))
		return left;
	left.waited_ns =
		edge->starting_ns < edge->waited_ns ? edge->waited_ns - edge->starting_ns : 0;
	left.avoidable_ns *= left.waited_ns / edge->waited_ns;
	if (left.working_ns > left.waited_ns)
		left.working_ns = left.waited_ns;
	return left;
}

/* Calls that waited, without them. */
static uint64_t count_calls(const struct accounting *a, bool across_devices)
{
	uint64_t calls = across_devices ? a->blame->stalled_across.count : a->blame->stalled.count;

	for (size_t i = 0; i < a->n_thread_accounts; i++) {
		const struct thread_account *c = a->thread_accounts[i];

		for (size_t j = 0; c && j < c->functions.n; j++)
			if (c->functions.all[j].starting_stalls[across_devices] &&
			    few_starting(a, c->thread, c->functions.fns[j]))
				calls -= c->functions.all[j].starting_stalls[across_devices];
	}
	return calls;
}

/* ---- the sums ------------------------------------------------------------------------------- */

static void add_edge(struct sums *sums, const struct model *model, const struct blame_edge *edge)
{
	const union blame_key *k = &edge->key;

	sums->stall.waited_ns += edge->waited_ns;
	thread_costs_add(&sums->stall.costs, edge_thread(model, k->waiter), edge->waited_ns,
			 edge->working_ns);
	blame_add_help(edge, sums->stall.help_ns);
	sums->stall.measured |= !k->inferred;
	sums->waiters[k->waiter - 1] = true;
	sums->threads[k->waiter - 1] = sums->threads[k->holder - 1] = true;
	sums->processes[edge_thread(model, k->waiter)->process->trace->index] = true;
	sums->devices[k->waiter_device] = sums->devices[k->holder_device] = true;
	add_holder_call(sums, edge);
}

static uint64_t count(const bool *set, size_t n)
{
	uint64_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += set[i];
	return count;
}

static enum cause main_cause(const struct holder_call *call)
{
	enum cause cause, most = 0;

	for (cause = 1; cause < CAUSE_COUNT; cause++)
		if (call->of_cause[cause] > call->of_cause[most])
			most = cause;
	return most;
}

/* At the first use of a kernel: what comes again is no such call for long, unless its module is
 * loaded anew. */
static bool loads_code(const struct trace_set *set, uint32_t fn)
{
	return fn != NO_FUNCTION && set->functions.all[fn].contract == SPY_CONTRACT_LAZY_LOAD;
}

static bool loads_modules(const struct trace_set *set, uint32_t fn)
{
	uint8_t contract = set->functions.all[fn].contract;

	return contract == SPY_CONTRACT_MODULE || contract == SPY_CONTRACT_LIBRARY;
}

static void sum_up(struct sums *sums, const struct model *model)
{
	struct stall *stall = &sums->stall;

	stall->waiters = count(sums->waiters, model->n_threads);
	stall->threads = count(sums->threads, model->n_threads);
	stall->processes = count(sums->processes, model->n_processes);
	stall->devices = count(sums->devices, ARRAY_SIZE(sums->devices));
	stall->fn = NO_FUNCTION;
	for (size_t i = 0; i < sums->n_holder_calls; i++) {
		if (loads_code(model->set, sums->holder_calls[i].fn))
			stall->loading_ns += sums->holder_calls[i].ns;
		if (sums->holder_calls[i].ns <= stall->fn_ns)
			continue;
		stall->fn = sums->holder_calls[i].fn;
		stall->cause = main_cause(&sums->holder_calls[i]);
		stall->cause_ns = sums->holder_calls[i].of_cause[stall->cause];
		stall->fn_ns = sums->holder_calls[i].ns;
	}
}

/* What findings of single calls, which come first, have told of it. */
static void add_reported(struct stall *stall, const struct trace_set *set, bool across_devices,
			 const struct found *found)
{
	const char *function = text_function(set, stall->fn);
	double most_ns = 0;

	for (size_t i = 0; i < found->n; i++) {
		const struct site *site = found->all[i].site;
		double ns;

		if (!site)
			continue;
		stall->loads_again |= found->all[i].detector == &detector_lazy_loading &&
				      loads_modules(set, site->key.fn);
		ns = across_devices ? site->cost.cross_ns
				    : site->cost.others_ns - site->cost.cross_ns;
		stall->charged_ns += ns;
		if (ns <= most_ns || !function ||
		    strcmp(found->all[i].place.function, function) != 0)
			continue;
		most_ns = ns;
		stall->reported = found->all[i].detector;
	}
	/* One that has little to do with these waits is no cure of them. */
	if (most_ns < stall->fn_ns / 2)
		stall->reported = NULL;
}

struct stall stall_sum(const struct accounting *a, bool across_devices, const struct found *found)
{
	struct sums sums = {
		.waiters = xcalloc(a->model->n_threads + 1, sizeof(bool)),
		.threads = xcalloc(a->model->n_threads + 1, sizeof(bool)),
		.processes = xcalloc(a->model->n_processes + 1, sizeof(bool)),
	};
	const struct call_set *calls =
		across_devices ? &a->blame->stalled_across : &a->blame->stalled;
	const struct blame_edge *edge;

	EDGES_ITER (edge, &a->blame->roots) {
		const struct blame_edge left = without_start(a, edge);

		if (left.waited_ns > 0 && blame_is_stall(&left.key, across_devices))
			add_edge(&sums, a->model, &left);
	}
	sum_up(&sums, a->model);
	sums.stall.calls = count_calls(a, across_devices);
	sums.stall.span_ns = calls->count ? calls->last_ns - calls->first_ns : 0;
	sums.stall.cost_share = cost_share_of(a, &sums.stall.costs, (uint64_t)sums.stall.waited_ns);
	add_reported(&sums.stall, a->model->set, across_devices, found);
	free(sums.holder_calls);
	free(sums.waiters);
	free(sums.threads);
	free(sums.processes);
	return sums.stall;
}

/* That part of the waits. */
static bool is_significant(const struct stall *stall, double ns)
{
	return ns >= STALL_LEAST_NS &&
	       stall->cost_share.share * ns / stall->waited_ns >= STALL_LEAST_SHARE;
}

bool stall_is_significant(struct stall *stall)
{
	if (is_significant(stall, stall->waited_ns))
		return true;
	thread_costs_release(&stall->costs);
	return false;
}

/* "mostly" is more than half: of several reasons none may be. */
static const char *reason(struct arena *texts, const struct stall *stall)
{
	const char *name = cause_names[stall->cause];

	if (stall->cause_ns >= stall->fn_ns * 0.9)
		return name;
	if (stall->cause_ns > stall->fn_ns / 2)
		return arena_printf(texts, "mostly %s", name);
	return arena_printf(texts, "of several reasons first, for %s: %s",
			    text_time(texts, (uint64_t)stall->cause_ns), name);
}

const char *stall_mostly(struct arena *texts, const struct trace_set *set,
			 const struct stall *stall)
{
	const char *function = text_function(set, stall->fn);

	if (!function)
		return arena_printf(texts, "%s of it for threads that were in no call",
				    text_time(texts, (uint64_t)stall->fn_ns));
	return arena_printf(texts, "%s of it while one of them was in %s (%s)",
			    text_time(texts, (uint64_t)stall->fn_ns), function,
			    reason(texts, stall));
}

static const char *cure(struct arena *texts, const struct trace_set *set, const struct stall *stall)
{
	const char *function = text_function(set, stall->fn);

	if (!function)
		return NULL;
	if (stall->reported && stall->fn_ns >= stall->waited_ns * 0.9)
		return arena_printf(texts,
				    "Cure the finding of %s first (%s), whose gain has these "
				    "waits in it.",
				    function, stall->reported->id);
	if (stall->reported)
		return arena_printf(texts,
				    "Cure the finding of %s first (%s), whose gain has %s of "
				    "these waits in it.",
				    function, stall->reported->id,
				    text_time(texts, (uint64_t)stall->fn_ns));
	if (loads_code(set, stall->fn) && !stall->loads_again)
		return "Code is loaded once for each kernel and GPU: by one thread before the "
		       "others start, or all of it at the start (CUDA_MODULE_LOADING=EAGER), no "
		       "thread waits for it.";
	return holder_cure(texts, set, stall->fn, stall->cause == CAUSE_GPU);
}

/* The cure named first is that of the call at the root, and the gain is its; what processes would
 * save is said with them. */
static void fill_cure(struct arena *texts, const struct trace_set *set, const struct stall *stall,
		      const char *processes, struct finding *finding)
{
	double saved_ns = stall->help_ns[HELP_ALONE] + stall->help_ns[HELP_WITH_MPS];

	finding->cost.gain_known = true;
	finding->fix = cure(texts, set, stall);
	if (!finding->fix) {
		finding->fix = arena_printf(texts, "Use %s.", processes);
		finding->cost.gain_high_ns = (uint64_t)saved_ns;
		return;
	}
	finding->cost.gain_high_ns = (uint64_t)stall->fn_ns;
	if (saved_ns < stall->waited_ns / 20)
		return;
	finding->otherwise = arena_printf(texts, "Or use %s: that saves up to %s.", processes,
					  text_time(texts, (uint64_t)saved_ns));
}

/*
 * Each of a few threads was kept waiting a few times while others prepared their work: so they
 * begin, side by side, but that is over soon. Where a thread is made for each request, there are
 * many.
 */
#define BEGINNINGS_EACH 3
#define BEGINNERS_MOST 16

/* Of the run, and of what each thread waited. A thread that waits long now and then, all through
 * the run, is not at its start. */
#define BEGINNING_PART 4
#define BEGINNING_WAITS 4

static bool is_over_soon(const struct model *model, const struct stall *stall)
{
	uint64_t run_ns = model->last_ns - model->first_ns;

	return stall->span_ns <= run_ns / BEGINNING_PART ||
	       (double)stall->span_ns <=
		       BEGINNING_WAITS * stall->waited_ns / (double)stall->waiters;
}

static bool is_beginning(const struct model *model, const struct stall *stall)
{
	return stall->fn != NO_FUNCTION && stall->cause != CAUSE_GPU &&
	       holder_prepares(&model->set->functions.all[stall->fn]) && !stall->loads_again &&
	       stall->fn_ns >= stall->waited_ns * 0.9 && stall->waiters <= BEGINNERS_MOST &&
	       stall->calls <= BEGINNINGS_EACH * stall->waiters && is_over_soon(model, stall);
}

/* Code is loaded once: what else there is of waits is nothing, or next to nothing of them. */
static bool is_loading(const struct stall *stall)
{
	return !stall->loads_again && stall->loading_ns >= stall->waited_ns / 2 &&
	       (stall->loading_ns >= stall->waited_ns * 0.9 ||
		!is_significant(stall, stall->waited_ns - stall->loading_ns));
}

void stall_fill(struct arena *texts, const struct model *model, const struct stall *stall,
		const char *processes, struct finding *finding)
{
	finding->place.function = text_function(model->set, stall->fn);
	finding->count = stall->calls;
	finding->origin.processes = (uint32_t)stall->processes;
	finding->cost.own_ns = (uint64_t)stall->waited_ns;
	finding->cost.threads = stall->costs;
	finding->cost.overlaps = stall->charged_ns > 0;
	finding->cost.elsewhere_ns = stall->charged_ns >= stall->waited_ns * 0.9
					     ? UINT64_MAX
					     : (uint64_t)stall->charged_ns;
	finding->remarks.once = is_beginning(model, stall) || is_loading(stall);
	fill_cure(texts, model->set, stall, processes, finding);
}
