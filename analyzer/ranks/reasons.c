/*
 * analyzer/ranks/reasons.c: what made the last rank late: what its submitting thread did since its operation before, and
 * the threads of the other ranks did not. Called for calls and operations of such threads, and for each operation that
 * some ranks waited in.
 */
#include <stdlib.h>
#include "work.h"

/* ---- places ---------------------------------------------------------------------------------- */

/* The same place in several processes, whose addresses differ. Without padding: it is hashed byte by byte. */
struct like_place {
	struct like_key {
		uint64_t file,
			offset; /* hash of the module's or source file's name; in it, or the line */
		uint32_t cause, fn;
		uint64_t code; /* hash of a function in Python, 0: none */
	} key;
	uint32_t number;
	UT_hash_handle hh;
};

#define LIKES_MOST (1u << 17)

static uint32_t like_number(struct ranks_work *w, const struct like_key *key)
{
	struct like_place *like;

	HASH_FIND(hh, w->likes, key, sizeof(*key), like);
	if (like)
		return like->number;
	if (w->n_likes >= LIKES_MOST)
		return 0;
	like = xcalloc(1, sizeof(*like));
	like->key = *key;
	like->number = ++w->n_likes;
	HASH_ADD(hh, w->likes, key, sizeof(like->key), like);
	return like->number;
}

static uint64_t hash_text(const char *text)
{
	return hash_mix((uint64_t)hash_key(text, strlen(text)) + 1);
}

/* File and offset of an address. */
static void find_offset(const struct process *process, uint64_t address, uint64_t ns,
			uint64_t *file, uint64_t *offset)
{
	const struct module *module = address ? model_module(process, address, ns) : NULL;

	*file = module ? hash_text(path_basename(module->path)) : 0;
	*offset = module ? address - module->base : 0;
}

static uint64_t hash_frame(const struct stack *stack, const struct python_frame *frame)
{
	const struct python_code *code = model_python(stack, frame);

	return code ? hash_text(code->file) ^ hash_text(code->function) << 1 : 0;
}

static void find_likes(struct ranks_work *w, struct rank_place *place, const struct idle_part *part)
{
	const struct stack *stack = part->stack;
	struct like_key key = {.cause = part->cause, .fn = part->fn};

	find_offset(place->sum.process, part->address, part->at_ns, &key.file, &key.offset);
	place->roughly = like_number(w, &key);
	if (stack && stack->n_python) {
		key.code = hash_frame(stack, &stack->python[0]) + stack->python[0].line;
	}
	place->like = like_number(w, &key);
}

static struct rank_place *place_get(struct ranks_work *w, const struct process *process,
				    const struct idle_part *part)
{
	struct idle_sum_key key = idle_sum_key_of(0, process, part);
	struct rank_place *place;
	struct idle_sum *sum;

	HASH_FIND(hh, w->places, &key, sizeof(key), sum);
	if (!sum && w->n_places >= PLACES_MOST) {
		key.address = key.code = key.line = key.process = 0;
		HASH_FIND(hh, w->places, &key, sizeof(key), sum);
	}
	if (sum)
		return (struct rank_place *)sum;
	place = xcalloc(1, sizeof(*place));
	place->sum.key = key;
	place->sum.process = process;
	place->index = (uint32_t)w->n_places;
	find_likes(w, place, part);
	w->all_places = grow(w->all_places, w->n_places, sizeof(struct rank_place *));
	w->all_places[w->n_places++] = place;
	sum = &place->sum;
	HASH_ADD(hh, w->places, key, sizeof(sum->key), sum);
	return place;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

struct rank_lane *rank_lane_get(struct ranks *ranks, const struct thread *thread)
{
	struct ranks_work *w = ranks->work;
	struct thread_account *c = thread_account_of(ranks->idle->accounts, thread);
	struct rank_lane *lane;

	if (!c)
		return NULL;
	while (w->n_lanes <= thread->index) {
		w->lanes = grow(w->lanes, w->n_lanes, sizeof(struct rank_lane *));
		w->lanes[w->n_lanes++] = NULL;
	}
	if (w->lanes[thread->index])
		return w->lanes[thread->index];
	lane = xcalloc(1, sizeof(*lane));
	lane->thread = thread;
	lane->account = c;
	c->divided_often = true;
	if (thread->process->trace->has_gpu_times)
		lane->launches = xcalloc(LAUNCHES_MOST, sizeof(*lane->launches));
	w->lanes[thread->index] = lane;
	return lane;
}

/* The call that the time lies in, among the lane's last ones, which are in order. */
static bool has_launch(const struct rank_lane *lane, uint64_t ns)
{
	uint64_t high = lane->n_launches;
	uint64_t low = high - min_u64(high, LAUNCHES_MOST), middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (lane->launches[middle % LAUNCHES_MOST].end_ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < lane->n_launches && lane->launches[low % LAUNCHES_MOST].begin_ns <= ns;
}

bool rank_is_collective(void *data, const struct gpu_event *op)
{
	const struct ranks *ranks = data;
	const struct ranks_work *w = ranks->work;
	const struct model *model = ranks->idle->accounts->model;
	const struct thread *thread;

	if (!ranks->any || !op->submit_end_ns || op->kind != SPY_GPU_KERNEL || !op->tid)
		return false;
	thread = model_find_thread(model, &model->processes[op->process], op->tid);
	if (!thread || thread->index >= w->n_lanes || !w->lanes[thread->index])
		return false;
	return w->lanes[thread->index]->launches &&
	       has_launch(w->lanes[thread->index], op->submit_begin_ns);
}

struct dividing {
	struct ranks *ranks;
	struct rank_lane *lane;
};

static void add_to_lane(struct rank_lane *lane, uint32_t place, uint64_t ns, uint64_t end_ns)
{
	uint32_t i, least = 0;

	for (i = 0; i < lane->n_parts && lane->parts[i].place != place; i++)
		if (lane->parts[i].ns < lane->parts[least].ns)
			least = i;
	if (i == PARTS_MOST) { /* the smallest one is forgotten */
		i = least;
		lane->parts[i] = (struct rank_part){.place = place};
	} else if (i == lane->n_parts) {
		lane->parts[lane->n_parts++] = (struct rank_part){.place = place};
	}
	lane->parts[i].ns += ns;
	lane->parts[i].end_ns = max_u64(lane->parts[i].end_ns, end_ns);
}

static void see_part(void *data, const struct idle_part *part, uint64_t ns)
{
	const struct dividing *d = data;
	struct rank_place *place = place_get(d->ranks->work, d->lane->thread->process, part);
	struct idle_sum *sum = &place->sum;

	sum->ns += ns;
	sum->count++;
	if (ns >= sum->longest_ns) {
		sum->longest_ns = ns;
		sum->longest = *part;
	}
	idle_sum_follow(d->ranks->idle->accounts, &d->ranks->idle->threads, sum, part, ns);
	add_to_lane(d->lane, place->index, ns, part->at_ns + ns);
}

void rank_lane_divide(struct ranks *ranks, struct rank_lane *lane)
{
	const struct thread_account *c = lane->account;
	uint64_t end_ns;

	if (!c->ring.n)
		return;
	end_ns = completed_call_at(&c->ring, c->ring.n - 1)->end_ns;
	if (lane->divided_ns && lane->divided_ns < end_ns)
		host_divide(ranks->idle->accounts,
			    host_thread_find(&ranks->idle->threads, lane->thread), c,
			    lane->divided_ns, end_ns, see_part,
			    &(struct dividing){.ranks = ranks, .lane = lane});
	lane->divided_ns = max_u64(lane->divided_ns, end_ns);
	lane->divided_calls = c->ring.n;
}

static void see_feeder(struct rank_feeders *f, const struct thread *thread)
{
	size_t i = 0;

	while (i < f->n && f->all[i] != thread)
		i++;
	if (i == f->n && f->n < FEEDERS_MOST)
		f->all[f->n++] = thread;
}

/* The thread's calls are remembered for a while only. */
#define DIVIDE_CALLS 8

void ranks_see_call(struct ranks *ranks, const struct record *record)
{
	const struct ranks_work *w = ranks->work;
	const struct thread *thread = record->thread;
	struct rank_lane *lane = thread->index < w->n_lanes ? w->lanes[thread->index] : NULL;

	see_feeder(&w->feeders[record->process], thread);
	if (lane && lane->account->ring.n - lane->divided_calls >= DIVIDE_CALLS)
		rank_lane_divide(ranks, lane);
}

/* ---- on behalf of another thread ------------------------------------------------------------- */

/* The thread waited for another one, and nobody said for which. */
static bool is_for_another(const struct ranks *ranks, const struct rank_part *part)
{
	const struct rank_place *place = ranks->work->all_places[part->place];

	return place->sum.key.cause == IDLE_LOCK && !place->sum.holder;
}

static uint64_t for_another_ns(const struct ranks *ranks, const struct rank_lane *lane,
			       uint64_t *rest_ns)
{
	uint64_t ns = 0;
	uint32_t i;

	*rest_ns = 0;
	for (i = 0; i < lane->n_parts; i++)
		*(is_for_another(ranks, &lane->parts[i]) ? &ns : rest_ns) += lane->parts[i].ns;
	return ns;
}

/*
 * The other thread of its process that did most meanwhile, its waits for others aside, of those that made calls; NULL: none
 * did. One that only looks after the operations makes calls, too: it sleeps between them.
 */
static struct rank_lane *feeder_of(struct ranks *ranks, const struct rank_lane *lane)
{
	struct rank_feeders *f = &ranks->work->feeders[lane->thread->process->trace->index];
	struct rank_lane *feeder = NULL;
	uint64_t most_ns = 0, rest_ns;
	size_t i;

	for (i = 0; i < f->n; i++) {
		struct rank_lane *other =
			f->all[i] != lane->thread ? rank_lane_get(ranks, f->all[i]) : NULL;

		if (!other)
			continue;
		rank_lane_divide(ranks, other);
		for_another_ns(ranks, other, &rest_ns);
		if (rest_ns > most_ns) {
			most_ns = rest_ns;
			feeder = other;
		}
	}
	return feeder;
}

/* What the process's other threads did is not looked at again. */
static void forget_feeders(const struct ranks *ranks, const struct rank_lane *lane)
{
	const struct ranks_work *w = ranks->work;
	const struct rank_feeders *f = &w->feeders[lane->thread->process->trace->index];
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->all[i] != lane->thread && f->all[i]->index < w->n_lanes &&
		    w->lanes[f->all[i]->index])
			w->lanes[f->all[i]->index]->n_parts = 0;
}

/* The largest are kept. */
static uint32_t keep_part(struct rank_part parts[PARTS_MOST], uint32_t n,
			  const struct rank_part *part)
{
	uint32_t i, least = 0;

	if (n < PARTS_MOST) {
		parts[n] = *part;
		return n + 1;
	}
	for (i = 1; i < n; i++)
		if (parts[i].ns < parts[least].ns)
			least = i;
	if (parts[least].ns < part->ns)
		parts[least] = *part;
	return n;
}

/* Takes the lane's parts that are waits of that kind, or the others, a part of each. */
static uint32_t take_parts(const struct ranks *ranks, const struct rank_lane *lane,
			   bool for_another, double part, struct rank_part parts[PARTS_MOST],
			   uint32_t n)
{
	uint32_t i;

	for (i = 0; i < lane->n_parts; i++) {
		struct rank_part taken = lane->parts[i];

		taken.ns = (uint64_t)((double)taken.ns * part);
		if (taken.ns && is_for_another(ranks, &taken) == for_another)
			n = keep_part(parts, n, &taken);
	}
	return n;
}

#define FOR_ANOTHER_NS 50000 /* less is on its way */

uint32_t rank_lane_take(struct ranks *ranks, struct rank_lane *lane,
			struct rank_part parts[PARTS_MOST])
{
	struct rank_lane *feeder = NULL;
	uint64_t ns, rest_ns, its_ns, its_rest_ns;
	uint32_t n;

	rank_lane_divide(ranks, lane);
	ns = for_another_ns(ranks, lane, &rest_ns);
	if (ns > FOR_ANOTHER_NS)
		feeder = feeder_of(ranks, lane);
	n = take_parts(ranks, lane, false, 1, parts, 0);
	if (feeder && feeder->n_parts) {
		its_ns = for_another_ns(ranks, feeder, &its_rest_ns);
		n = take_parts(ranks, feeder, false, 1, parts, n);
		/* It waited, too, for what this thread did, or both for something else. */
		if (ns > its_rest_ns && its_ns)
			n = take_parts(ranks, feeder, true,
				       (double)min_u64(ns - its_rest_ns, its_ns) / (double)its_ns,
				       parts, n);
		forget_feeders(ranks, lane);
	} else {
		n = take_parts(ranks, lane, true, 1, parts, n);
	}
	lane->n_parts = 0;
	return n;
}

/* ---- sites ----------------------------------------------------------------------------------- */

static bool in_nccl(const struct process *process, uint64_t address, uint64_t ns)
{
	static const char nccl[] = "libnccl";
	const struct module *module = model_module(process, address, ns);

	return module && !strncmp(path_basename(module->path), nccl, sizeof(nccl) - 1);
}

/* Who called NCCL. */
static uint64_t caller_of_nccl(const struct stack *stack)
{
	uint8_t i = 0;

	while (i < stack->n && in_nccl(stack->process, stack->frames[i], stack->ns))
		i++;
	return i < stack->n ? stack->frames[i] : stack->n ? stack->frames[0] : 0;
}

static uint64_t key_of_site(const struct process *process, const struct idle_part *part)
{
	const struct stack *stack = part->stack;
	uint64_t file, offset, key = 1;
	uint8_t i;

	for (i = 0; stack && i < stack->n_python; i++)
		key = hash_mix(key ^
			       (hash_frame(stack, &stack->python[i]) + stack->python[i].line)) >>
		      1;
	if (stack && stack->n_python)
		return key;
	find_offset(process, part->address, part->at_ns, &file, &offset);
	return hash_mix(file ^ hash_mix(offset + 2 + (stack != NULL)));
}

struct rank_site_sum *rank_site_find(struct ranks *ranks, const struct record *record,
				     const struct completed_call *launch, bool *has_stack)
{
	const struct process *process = record->thread->process;
	const struct stack *stack = record->thread->stack;
	struct idle_part part = {.cause = IDLE_COLLECTIVE,
				 .fn = NO_FUNCTION,
				 .fn_before = NO_FUNCTION,
				 .thread = record->thread,
				 .at_ns = record->ns};
	struct rank_site_sum *site;
	uint64_t key;

	*has_stack = stack && stack->fn == SPY_FN_NONE && stack->time == record_time(record->raw);
	if (!*has_stack && launch && launch->stack) {
		stack = launch->stack;
		*has_stack = true;
	}
	part.stack = *has_stack ? stack : NULL;
	part.address = *has_stack ? caller_of_nccl(stack) : launch ? launch->return_address : 0;
	if (!*has_stack && launch)
		part.fn = launch->fn;
	key = key_of_site(process, &part);
	HASH_FIND(hh, ranks->work->sites, &key, sizeof(key), site);
	if (!site && HASH_COUNT(ranks->work->sites) >= RANK_SITES_MOST) {
		key = 0;
		HASH_FIND(hh, ranks->work->sites, &key, sizeof(key), site);
	}
	if (site)
		return site;
	site = xcalloc(1, sizeof(*site));
	site->key = key;
	site->sum.part = part;
	site->sum.process = process;
	site->sum.func = record->raw->collective.func;
	HASH_ADD(hh, ranks->work->sites, key, sizeof(site->key), site);
	return site;
}

/* ---- what the others did not ----------------------------------------------------------------- */

uint64_t rank_part_since_met(const struct rank_op *op, const struct rank_part *part)
{
	uint64_t met_ns = op->member->met_ns;

	if (part->end_ns <= met_ns)
		return 0;
	return min_u64(part->ns, part->end_ns - met_ns);
}

static uint32_t number_of(const struct ranks *ranks, const struct rank_part *part, bool roughly)
{
	const struct rank_place *place = ranks->work->all_places[part->place];

	return roughly ? place->roughly : place->like;
}

static uint64_t time_at(const struct ranks *ranks, const struct rank_op *op, uint32_t number,
			bool roughly)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < op->n_parts; i++)
		if (number_of(ranks, &op->parts[i], roughly) == number)
			sum += rank_part_since_met(op, &op->parts[i]);
	return sum;
}

struct others {
	const struct rank_op *all[OTHERS_MOST];
	size_t n;
};

/* Some of many: evenly spread. */
static void choose_others(const struct rank_instance *instance, const struct rank_op *last,
			  struct others *others)
{
	size_t every = instance->n_ops / OTHERS_MOST + 1, i = 0;
	const struct rank_op *op;

	others->n = 0;
	for (op = instance->ops; op && others->n < OTHERS_MOST; op = op->next)
		if (op != last && !op->first && i++ % every == 0)
			others->all[others->n++] = op;
}

static int by_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median_of(uint64_t *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), by_ns);
	return n % 2 ? values[n / 2] : values[n / 2 - 1] + (values[n / 2] - values[n / 2 - 1]) / 2;
}

static uint64_t median_time(const struct ranks *ranks, const struct others *others, uint32_t number,
			    bool roughly)
{
	uint64_t values[OTHERS_MOST];
	size_t i;

	for (i = 0; i < others->n; i++)
		values[i] = time_at(ranks, others->all[i], number, roughly);
	return median_of(values, others->n);
}

/* The last one's excess, a number for each of its parts. */
struct excess {
	uint64_t ns[PARTS_MOST], sum_ns;
	bool common[PARTS_MOST]; /* the others were there, too */
};

/* The excess at lines of a place is no more than at the place. */
static void limit_place(const struct ranks *ranks, const struct rank_op *last,
			const struct others *others, uint32_t first, struct excess *e, bool *seen)
{
	uint32_t roughly = number_of(ranks, &last->parts[first], true), i;
	uint64_t whole_ns = time_at(ranks, last, roughly, true), sum_ns = 0, most_ns;
	uint64_t others_ns = median_time(ranks, others, roughly, true);

	most_ns = whole_ns - min_u64(others_ns, whole_ns);
	for (i = first; i < last->n_parts; i++)
		if (number_of(ranks, &last->parts[i], true) == roughly) {
			sum_ns += e->ns[i];
			seen[i] = true;
			e->common[i] = others_ns > 0;
		}
	for (i = first; i < last->n_parts && sum_ns > most_ns; i++)
		if (number_of(ranks, &last->parts[i], true) == roughly)
			e->ns[i] = (uint64_t)((double)e->ns[i] * (double)most_ns / (double)sum_ns);
}

static void find_excess(const struct ranks *ranks, const struct rank_op *last,
			const struct others *others, struct excess *e)
{
	bool seen[PARTS_MOST] = {false};
	uint32_t i;

	*e = (struct excess){.sum_ns = 0};
	for (i = 0; i < last->n_parts; i++) {
		uint32_t like = number_of(ranks, &last->parts[i], false);
		uint64_t ns = rank_part_since_met(last, &last->parts[i]);

		e->ns[i] = ns - min_u64(median_time(ranks, others, like, false), ns);
	}
	for (i = 0; i < last->n_parts; i++)
		if (!seen[i])
			limit_place(ranks, last, others, i, e, seen);
	for (i = 0; i < last->n_parts; i++)
		e->sum_ns += e->ns[i];
}

/* ---- charging -------------------------------------------------------------------------------- */

struct charging {
	struct ranks *ranks;
	const struct rank_op *last;
	struct idle_part *largest;
	uint64_t *largest_ns;
	uint64_t gpu_ns, host_ns; /* charged: its GPU's work; what its thread did */
	struct idle_part host; /* the most of host_ns */
	uint64_t host_most_ns;
	/* Its GPU's work, until it is known how much of it is an old lag. */
	struct held_back {
		struct idle_part part;
		const struct idle_sum *of;
		uint64_t ns;
	} held_back[PARTS_MOST + 1];
	uint32_t n_held_back;
};

static void copy_holder(struct idle_sum *sum, const struct idle_sum *of, uint64_t ns)
{
	if (!of->holder || !of->ns || ns < sum->longest_ns)
		return;
	if (!sum->holder)
		sum->holder = xcalloc(1, sizeof(*sum->holder));
	*sum->holder = *of->holder;
}

static void charge(struct charging *c, const struct idle_part *part, const struct idle_sum *of,
		   uint64_t ns)
{
	const struct rank_member *member = c->last->member;
	struct idle_sum *sum;

	if (!ns)
		return;
	sum = idle_sums_add(&c->ranks->idle->sums, idle_owner_rank(member->rank->index),
			    member->process, part, ns);
	if (of)
		copy_holder(sum, of, ns);
	if (part->cause == IDLE_GPU_WORK)
		c->gpu_ns += ns;
	if (ns <= *c->largest_ns)
		return;
	*c->largest_ns = ns;
	*c->largest = *part;
}

static void charge_host(struct charging *c, const struct idle_part *part, const struct idle_sum *of,
			uint64_t ns)
{
	charge(c, part, of, ns);
	if (part->cause == IDLE_UNEXPLAINED)
		return;
	c->host_ns += ns;
	if (ns <= c->host_most_ns)
		return;
	c->host_most_ns = ns;
	c->host = *part;
}

static void hold_back(struct charging *c, const struct idle_part *part, const struct idle_sum *of,
		      uint64_t ns)
{
	if (ns)
		c->held_back[c->n_held_back++] = (struct held_back){*part, of, ns};
}

static void charge_bare(struct charging *c, enum idle_cause cause, uint64_t ns)
{
	struct idle_part part = {.cause = cause,
				 .fn = NO_FUNCTION,
				 .fn_before = NO_FUNCTION,
				 .at_ns = c->last->submit_begin_ns};

	if (cause == IDLE_GPU_WORK)
		hold_back(c, &part, NULL, ns);
	else
		charge_host(c, &part, NULL, ns);
}

/*
 * How much of the GPU's lateness is what its thread made it late by before. Where nothing waits for a collective, a GPU
 * that has come late stays behind, though it takes no longer for its work than the others. What it was late by before
 * its thread made it late, it is late by itself. What was once made up for does not come back.
 */
static uint64_t lag_of(const struct rank_lag *lag, uint64_t gpu_ns)
{
	if (!lag->known)
		return 0;
	return min_u64(gpu_ns - min_u64(lag->gpu_ns, gpu_ns), lag->host_ns);
}

static void charge_gpu(struct charging *c)
{
	struct rank_lag *lag = &c->last->member->lag;
	uint64_t gpu_ns = 0, left_ns, lag_ns;
	uint32_t i;

	for (i = 0; i < c->n_held_back; i++)
		gpu_ns += c->held_back[i].ns;
	left_ns = lag_ns = lag_of(lag, gpu_ns);
	for (i = 0; i < c->n_held_back; i++) {
		const struct held_back *h = &c->held_back[i];
		uint64_t ns = min_u64(h->ns, left_ns);

		left_ns -= ns;
		charge(c, &lag->cause, NULL, ns);
		charge(c, &h->part, h->of, h->ns - ns);
	}
	if (c->host_most_ns > lag_ns)
		lag->cause = c->host;
	lag->host_ns = lag_ns + c->host_ns;
	if (!lag->known || !lag->host_ns)
		lag->gpu_ns = c->gpu_ns;
	lag->known = true;
}

void rank_reasons_in_time(struct rank_member *member)
{
	member->lag = (struct rank_lag){.known = true};
}

/* Did the thread wait there for its own GPU because the program asked for it, or because that has too much to do? */
bool rank_waits_for_own_gpu(const struct ranks *ranks, const struct idle_part *part, bool common)
{
	if (part->cause != IDLE_CUDA_WAIT || part->fn == NO_FUNCTION)
		return false;
	switch (ranks->idle->accounts->model->set->functions.all[part->fn].contract) {
	case SPY_CONTRACT_STREAM:
	case SPY_CONTRACT_EVENT:
	case SPY_CONTRACT_DEVICE:
	case SPY_CONTRACT_COPY_SYNC:
	case SPY_CONTRACT_COPY_ASYNC:
	case SPY_CONTRACT_COPY_BATCH:
		return common;
	case SPY_CONTRACT_SUBMIT:
	case SPY_CONTRACT_LAUNCH:
		return true;
	default:
		return false;
	}
}

/* What begins no later than so long after its submission was on the way; what begins later waited for its GPU. */
#define ON_THE_WAY_NS 50000

static bool gpu_was_late(const struct rank_op *op)
{
	const struct rank_member *member = op->member;
	uint64_t begin_ns = op->begin_ns;

	if (op->by_host_times)
		return begin_ns > op->submit_end_ns + ON_THE_WAY_NS;
	if (!member->has_host || !op->launched)
		return false;
	begin_ns += (uint64_t)member->host_offset_ns;
	return begin_ns > op->submit_end_ns + ON_THE_WAY_NS + member->host_error_ns;
}

static uint64_t median_work(const struct others *others)
{
	uint64_t values[OTHERS_MOST];
	size_t i;

	for (i = 0; i < others->n; i++)
		values[i] = others->all[i]->gpu_operations;
	return median_of(values, others->n);
}

static void see_gpu_late(struct rank *rank, const struct rank_op *last, const struct others *others,
			 uint64_t ns, uint64_t late_ns)
{
	rank->gpu_late_ns += ns;
	if (late_ns == rank->longest_late_ns)
		rank->longest_gpu_late_ns = ns;
	if (2 * ns <= late_ns)
		return;
	rank->gpu_late_count++;
	rank->gpu_late_same_work += others->n && last->gpu_operations == median_work(others);
}

static void charge_parts(struct charging *c, const struct excess *e, double scale,
			 uint64_t *left_ns)
{
	uint32_t i;

	for (i = 0; i < c->last->n_parts; i++) {
		const struct rank_place *place =
			c->ranks->work->all_places[c->last->parts[i].place];
		struct idle_part part = place->sum.longest;
		uint64_t ns = min_u64((uint64_t)((double)e->ns[i] * scale), *left_ns);

		*left_ns -= ns;
		if (rank_waits_for_own_gpu(c->ranks, &part, e->common[i])) {
			part.cause = IDLE_GPU_WORK;
			hold_back(c, &part, &place->sum, ns);
		} else {
			charge_host(c, &part, &place->sum, ns);
		}
	}
}

void rank_reasons_charge(struct ranks *ranks, const struct rank_instance *instance,
			 const struct rank_op *last, uint64_t late_ns, struct idle_part *largest,
			 uint64_t *largest_ns)
{
	struct charging c = {
		.ranks = ranks, .last = last, .largest = largest, .largest_ns = largest_ns};
	uint64_t left_ns = late_ns;
	struct others others;
	struct excess e;
	bool rounding;

	*largest_ns = 0;
	choose_others(instance, last, &others);
	if (others.n && !last->first) {
		find_excess(ranks, last, &others, &e);
		charge_parts(&c, &e, e.sum_ns > late_ns ? (double)late_ns / (double)e.sum_ns : 1.0,
			     &left_ns);
	}
	rounding = left_ns * 100 <= late_ns && left_ns < late_ns;
	if (!rounding)
		charge_bare(&c, gpu_was_late(last) ? IDLE_GPU_WORK : IDLE_UNEXPLAINED, left_ns);
	charge_gpu(&c);
	if (rounding)
		charge(&c, largest, NULL, left_ns);
	see_gpu_late(last->member->rank, last, &others, c.gpu_ns, late_ns);
}

/* ---- the end --------------------------------------------------------------------------------- */

void rank_reasons_release(struct ranks_work *w)
{
	struct like_place *like, *next;
	struct rank_site_sum *site, *next_site;
	size_t i;

	for (i = 0; i < w->n_lanes; i++) {
		if (w->lanes[i])
			free(w->lanes[i]->launches);
		free(w->lanes[i]);
	}
	free(w->lanes);
	HASH_CLEAR(hh, w->places);
	for (i = 0; i < w->n_places; i++) {
		free(w->all_places[i]->sum.holder);
		free(w->all_places[i]);
	}
	free(w->all_places);
	HASH_EMPTY (w->likes, like, next)
		free(like);
	HASH_EMPTY (w->sites, site, next_site)
		free(site);
}
