/*
 * analyzer/detectors/steady_state.c: things that are made again and again while the program works:
 * device memory, pinned and managed memory, mappings, access between GPUs, contexts, streams,
 * events, graphs. Each costs, and most take locks that all threads of the process need.
 *
 * Made again: work was handed to a GPU between two calls of the place, a few times at least, and
 * that all through the program's work, or for a good part of its time. What is made before the work
 * and freed after it is no case, however often, nor is what is made at the beginning of each of a
 * few phases. Memory that is kept, as a cache does that fills while the program works, is a note:
 * it ends when the cache is full.
 *
 * What is used again instead costs nothing after the first time; what else the cure names costs
 * what such calls do by the profile or the trace, and where that is unknown, perhaps all that is
 * gained. What other threads waited may go on to something else.
 *
 * A pool keeps what is freed, but by default only until the next synchronisation: then its memory is unmapped, and the next
 * allocation maps it anew, in the kernel module. Where allocations from a pool go there all through the work, though about
 * as much is freed as is allocated, that is what happens.
 */
#include "cudaspy/function_numbers.h"
#include "table.h"
#include "findings/site.h"
#include "text/text.h"

#define ROUNDS_LEAST 5
#define TENTHS_LEAST 4

/* In the kernel module. A pool that has what is asked for does not go there at all. */
#define GROWTH_LEAST_NS 20000

/* A cache that fills: a quarter as many calls give back at most. */
#define KEPT_PART 4

enum variant {
	DEVICE_MEMORY,
	PINNED_MEMORY,
	MANAGED_MEMORY,
	MAPPING,
	POOL_GROWTH,
	PEER_ACCESS,
	CONTEXT,
	STREAM,
	EVENT,
	GRAPH,
	VARIANTS
};

static const struct {
	const char *what, *fix;
} variants[VARIANTS] = {
	{"device memory",
	 "Allocate once and use it again, or allocate in the stream's order from a pool that "
	 "keeps what is freed: cudaMallocAsync, cudaFreeAsync, "
	 "cudaMemPoolAttrReleaseThreshold."},
	{"pinned host memory",
	 "Pin once, before the work: pinning goes through the kernel and holds a "
	 "lock of the whole process."},
	{"managed memory",
	 "Allocate managed memory once, before the work: it holds a lock of the whole "
	 "process."},
	{"mappings of memory", "Map once, or open another process's memory once, and keep it: "
			       "each change goes through the kernel, for every GPU that has "
			       "access."},
	{"memory of a pool",
	 "Let the pool keep what is freed: raise its cudaMemPoolAttrReleaseThreshold "
	 "(cudaMemPoolSetAttribute), which is 0 by default, so that each synchronisation gives the "
	 "memory back to the system."},
	{"access between GPUs", "Enable it once for each two GPUs, before the work, and keep it: "
				"all memory of the GPU is mapped anew."},
	{"contexts", "Keep the context, because making one starts the GPU up again: no "
		     "cudaDeviceReset, no cuCtxDestroy before the program ends."},
	{"streams", "Make streams once and use them again."},
	{"events", "Make events once and record them again and again."},
	{"graphs",
	 "Instantiate once and launch again; cudaGraphExecUpdate changes its parameters."},
};

/* A free belongs to its allocation: it is told where it waits (hidden_sync.c) or for what it
 * allocated. Tally: calls that give back. */
static bool variant_of_memory(const struct observed *o, struct verdict *v)
{
	const struct spy_rec_memory *memory = record_memory(o->record);
	uint32_t *variant = &v->variant;

	if (memory_is_nothing(memory))
		return false;
	if (memory->pool) {
		*variant = POOL_GROWTH;
		v->cost_ns = completed_ns(o->call, BUCKET_IOCTL);
		return memory->op == SPY_MEMOP_ALLOC && v->cost_ns >= GROWTH_LEAST_NS;
	}
	switch (memory->op) {
	case SPY_MEMOP_FREE:
	case SPY_MEMOP_UNREGISTER:
		v->tally = 1;
		/* fall through */
	case SPY_MEMOP_ALLOC:
	case SPY_MEMOP_REGISTER:
		*variant = memory->kind == SPY_MEM_PINNED    ? PINNED_MEMORY
			   : memory->kind == SPY_MEM_MANAGED ? MANAGED_MEMORY
							     : DEVICE_MEMORY;
		return true;
	case SPY_MEMOP_UNMAP:
		v->tally = 1;
		/* fall through */
	case SPY_MEMOP_RESERVE:
	case SPY_MEMOP_MAP:
		*variant = MAPPING;
		return memory->kind != SPY_MEM_MANAGED; /* that is a variable of a library's */
	default:
		return false;
	}
}

static bool variant_of(const struct observed *o, struct verdict *v)
{
	uint32_t *variant = &v->variant;

	if (o->record->event == SPY_EV_MEMORY)
		return variant_of_memory(o, v);
	switch (o->accounts->model->set->functions.all[o->record->fn].does) {
	case FUNCTION_OPENS_MAPPING:
		*variant = MAPPING;
		break;
	case FUNCTION_CLOSES_PEER:
		v->tally = 1;
		/* fall through */
	case FUNCTION_OPENS_PEER:
		*variant = PEER_ACCESS;
		break;
	case FUNCTION_MAKES_GRAPH:
		/* not what belongs to the cure: cudaGraphExecUpdate, and the graphs it takes */
		*variant = GRAPH;
		break;
	case FUNCTION_CREATES_STREAM:
	case FUNCTION_DESTROYS_STREAM:
		*variant = STREAM;
		break;
	case FUNCTION_MAKES_EVENT:
		*variant = EVENT;
		break;
	default:
		return false;
	}
	return true;
}

/*
 * Of a call in which CUDA or a GPU may start up or end: has the process had a context before, which
 * it ended? A thread that begins with a GPU of its own, or makes the context that it keeps, makes
 * nothing again; and cudaSetDevice may take long for many reasons.
 */
static bool is_again(const struct observed *o)
{
	const struct contexts *contexts = &o->accounts->contexts[o->record->process];

	if (o->accounts->model->set->functions.all[o->record->fn].does == FUNCTION_ENDS_CONTEXT)
		return contexts->made_again;
	return contexts->ended;
}

/* The same of a pool. */
static bool pool_ns(const struct observed *o, uint64_t *ns)
{
	static const uint32_t runtime[] = {SPY_FN_cudaMallocAsync, SPY_FN_cudaFreeAsync};
	static const uint32_t driver[] = {SPY_FN_cuMemAllocAsync, SPY_FN_cuMemFreeAsync};
	const char *name = o->accounts->model->set->functions.all[o->record->fn].name;
	struct spy_rec_memory pool = *record_memory(o->record);
	bool frees = pool.op == SPY_MEMOP_FREE;

	pool.pool = true;
	if (frees) /* the amount does not matter */
		pool.bytes = 0;
	return observed_class(
		o,
		expect_memory_key(&pool, (strncmp(name, "cuda", 4) ? driver : runtime)[frees],
				  false),
		ns);
}

/* What the call costs that the cure has instead of it; false: unknown. */
static bool instead_ns(const struct observed *o, uint32_t variant, uint64_t *ns)
{
	*ns = 0;
	switch (variant) {
	case DEVICE_MEMORY:
		return pool_ns(o, ns);
	case GRAPH: /* an update takes what the graph takes */
		return false;
	default:
		return true;
	}
}

static bool judge(const struct observed *o, struct verdict *v)
{
	if (o->cold || record_failed(o->record))
		return false;
	v->cost_ns = o->call->end_ns - o->call->begin_ns - completed_ns(o->call, BUCKET_LOCK) -
		     completed_ns(o->call, BUCKET_NOT_RUNNING);
	if (observed_starts_up(o)) {
		v->variant = CONTEXT;
		if (v->cost_ns < ACCOUNT_LONG_NS || !is_again(o))
			return false;
	} else if (!variant_of(o, v)) {
		return false;
	}
	/* What it waited for a lock is the cost of the holder, and in the gain there. */
	v->gain_high_ns = v->cost_ns;
	if (instead_ns(o, v->variant, &v->instead_ns))
		v->gain_low_ns = v->cost_ns;
	return true;
}

/* What the process makes of a variant, and gives back, all through the work: calls, and bytes, for
 * several pieces may be given back as one. */
struct turnover {
	uint64_t made, given_back, made_bytes, given_back_bytes;
	uint64_t said; /* of what is made: access to memory that is mapped */
};

static bool says_access(const struct trace_set *set, const struct site *site)
{
	return set->functions.all[site->key.fn].does == FUNCTION_OPENS_MAPPING;
}

/* Frees that wait for the GPU are cases of hidden_sync.c: may what they free be of the variant? */
static bool is_hidden_free(const struct trace_set *set, const struct site *site, uint32_t variant)
{
	const struct function *function = &set->functions.all[site->key.fn];
	bool unmaps = strstr(function->name, "Unmap") || strstr(function->name, "Close");
	bool unpins = strstr(function->name, "Host");

	if (detectors_row(site->key.detector) != &detector_hidden_sync ||
	    function->contract != SPY_CONTRACT_FREE)
		return false;
	return variant == MAPPING ? unmaps : variant == PINNED_MEMORY ? unpins : !unmaps && !unpins;
}

static struct turnover turnover_of(const struct findings *f, const struct site *site)
{
	const struct model *model = f->accounts->model;
	struct turnover turnover = {0};
	const struct site *other, *next;

	HASH_ITER (hh, f->sites, other, next) {
		bool same = other->key.detector == site->key.detector &&
			    other->key.variant == site->key.variant;
		bool hidden = is_hidden_free(model->set, other, site->key.variant);

		if (other->key.process != site->key.process || (!same && !hidden))
			continue;
		if (same && !other->tally) {
			turnover.made += other->count;
			turnover.made_bytes = add_capped(turnover.made_bytes, other->bytes);
			turnover.said += says_access(model->set, other) ? other->count : 0;
		} else if (other->rounds.count >= ROUNDS_LEAST) {
			turnover.given_back += other->count;
			turnover.given_back_bytes =
				add_capped(turnover.given_back_bytes, other->bytes);
		}
	}
	return turnover;
}

/* Access that is said far more often than memory is mapped is said of the same memory again. */
static bool is_kept(const struct trace_set *set, const struct site *site,
		    const struct turnover *turnover)
{
	if (says_access(set, site) && turnover->made - turnover->said < site->count / KEPT_PART)
		return false;
	return turnover->given_back < turnover->made / KEPT_PART &&
	       turnover->given_back_bytes <= turnover->made_bytes / KEPT_PART;
}

/* Do they become fewer: three of four rounds in the first half of the work? */
static bool dies_down(const struct accounting *a, const struct site *site)
{
	uint64_t all = a->work.submissions[site->key.process];

	return site->rounds.sampled[site->rounds.n_sampled * 3 / 4].submissions < all / 2;
}

static bool is_memory(uint32_t variant)
{
	return variant == DEVICE_MEMORY || variant == PINNED_MEMORY || variant == MANAGED_MEMORY ||
	       variant == MAPPING;
}

/* Memory that is given back where none is made while the program works: a thread that has finished
 * throws away what was made before the work, and others go on. (Mappings may come from calls that
 * tell nothing of them.) */
static bool only_gives_back(const struct findings *f, const struct site *site)
{
	const struct site *other, *next;
	uint64_t again = 0;

	if (!site->tally || !is_memory(site->key.variant) || site->key.variant == MAPPING)
		return false;
	HASH_ITER (hh, f->sites, other, next)
		if (other->key.detector == site->key.detector &&
		    other->key.process == site->key.process &&
		    other->key.variant == site->key.variant && !other->tally && other->rounds.count)
			again += other->rounds.count - 1;
	return again < ROUNDS_LEAST - 1;
}

/* What a process does with its pools: allocations and frees in the order of streams, and for how long its synchronisations
 * were in the kernel module, where what a pool does not keep is given back. */
struct pool_use {
	uint64_t allocations, frees, giving_back_ns;
};

static void see_function(struct pool_use *use, const struct function *f,
			 const struct account *account)
{
	switch (f->contract) {
	case SPY_CONTRACT_ALLOC_POOL:
		use->allocations += account->calls;
		break;
	case SPY_CONTRACT_STREAM:
	case SPY_CONTRACT_EVENT:
	case SPY_CONTRACT_DEVICE:
		use->giving_back_ns += account->bucket_ns[BUCKET_IOCTL];
		break;
	default:
		use->frees += strstr(f->name, "FreeAsync") ? account->calls : 0;
	}
}

static struct pool_use pool_use_of(const struct accounting *a, const struct process *process)
{
	struct pool_use use = {0};

	for (size_t i = 0; i < a->n_thread_accounts; i++) {
		const struct thread_account *c = a->thread_accounts[i];

		for (size_t k = 0; c && c->thread->process == process && k < c->functions.n; k++)
			see_function(&use, &a->model->set->functions.all[c->functions.fns[k]],
				     &c->functions.all[k]);
	}
	return use;
}

/* One of its calls stays, in each process. */
static void gain_but_first(const struct site *site, uint32_t processes, struct cost *cost)
{
	uint64_t most_ns =
		site->cost.gain_high_ns - site->cost.gain_high_ns / site->count * processes;

	cost->gain_low_ns = min_u64(site_gain_low(&site->cost), most_ns);
	cost->gain_high_ns = most_ns + cost->others_ns;
}

/* A pool that grows because more is allocated than freed has to. */
static const char *keep_pool(const struct findings *f, const struct site *site,
			     struct finding *finding, struct arena *texts)
{
	struct pool_use use = pool_use_of(f->accounts, finding->origin.process);
	const char *back = "";

	if (use.frees < use.allocations - use.allocations / KEPT_PART ||
	    dies_down(f->accounts, site))
		return NULL;
	if (use.giving_back_ns)
		back = arena_printf(texts,
				    "; synchronisations, which return memory of the pool, were in "
				    "the kernel module for %s",
				    text_time(texts, use.giving_back_ns));
	finding->fix = variants[POOL_GROWTH].fix;
	gain_but_first(site, finding->origin.processes, &finding->cost);
	finding->cost.own_ns += use.giving_back_ns;
	finding->cost.gain_high_ns += use.giving_back_ns;
	return arena_printf(texts,
			    "%s from a pool mapped memory anew in the kernel module, for %s, while "
			    "the program works, though as much is freed as is allocated%s",
			    text_count(texts, site->count, "allocation"),
			    text_time(texts, site->cost.own_ns), back);
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	const struct model *model = f->accounts->model;
	struct turnover turnover = {0};
	bool loading, dying;

	if (site->rounds.count < ROUNDS_LEAST || site_spread(f->accounts, site) < TENTHS_LEAST)
		return NULL;
	if (finding->variant == POOL_GROWTH)
		return keep_pool(f, site, finding, texts);
	/* Most of the time, but not of the work: what is loaded then is kept, or thrown away at the
	 * end. */
	loading = site_tenths(f->accounts, site) < TENTHS_LEAST;
	if (loading && only_gives_back(f, site))
		return NULL;
	dying = is_memory(finding->variant) && (loading || dies_down(f->accounts, site));
	if (dying || finding->variant == PEER_ACCESS) /* looks at all sites */
		turnover = turnover_of(f, site);
	if (dying && loading && is_kept(model->set, site, &turnover))
		return NULL;
	/* For each two GPUs once, when they first need it, is as it should be. */
	if (finding->variant == PEER_ACCESS && !turnover.given_back)
		return NULL;
	finding->remarks.once = dying && is_kept(model->set, site, &turnover);
	finding->fix = variants[finding->variant].fix;
	gain_but_first(site, finding->origin.processes, &finding->cost);
	return arena_printf(texts, "%s about %s while the program works, %s inside them%s",
			    text_count(texts, site->count, "call"), variants[finding->variant].what,
			    text_time(texts, site->total_ns),
			    finding->remarks.once ? "; most of it is kept, as by a cache that fills"
						  : "");
}

/* Programs that use cuBLAS have handles, not memory. */
static const char *fix_of_library(const char *library, struct arena *texts)
{
	return arena_printf(
		texts,
		"That belongs to a handle, plan, communicator or workspace of %s, which "
		"is made again and again: make it once, before the work, and keep it.",
		path_basename(library));
}

const struct detector detector_steady_state = {
	.id = "steady-state",
	.title = "resources are made again and again instead of being kept",
	.sees = "Places that allocate, pin, map, enable peer access, create or instantiate, and "
		"the matching frees, with work handed to a GPU between their calls five times or "
		"more. Memory that is kept and asked for ever more seldom, as by a cache that "
		"fills, is a note.",
	.blind = "Whether what is made could be used again: sizes may differ. What a pool would "
		 "cost instead, unless `cudaspy calibrate` has measured that or the trace has "
		 "such calls. Allocations from pools (cudaMallocAsync) are a case only where "
		 "the pool goes to the kernel module for them all through the work, though as "
		 "much is freed.",
	.fix = "Make it once, before the work.",
	.free_behind_work = true,
	.absorbs = &detector_hidden_sync,
	.always = DETECTOR_CONTRACT(ALLOC) | DETECTOR_CONTRACT(ALLOC_POOL) |
		  DETECTOR_CONTRACT(PIN) | DETECTOR_CONTRACT(FREE) |
		  DETECTOR_CONTRACT(GRAPH_BUILD) | DETECTOR_CONTRACT(HOST) |
		  DETECTOR_CONTRACT(INIT),
	.when_long = DETECTOR_CONTRACT(SUBMIT) | DETECTOR_CONTRACT(LAZY_LOAD),
	.judge = judge,
	.keep = keep,
	.fix_of_library = fix_of_library,
};
