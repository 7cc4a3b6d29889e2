/*
 * analyzer/ranks/lanes.c: what threads that submit operations did since their operation before, and where they submit
 * them. Called for calls and operations of such threads, on the thread that reads the records of their process: nothing
 * of other processes is known here.
 */
#include <stdlib.h>
#include "model/python.h"
#include "work.h"

/* ---- places ---------------------------------------------------------------------------------- */

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

static void find_likes(const struct process *process, const struct idle_part *part,
		       struct rank_place_event *event)
{
	const struct stack *stack = part->stack;
	struct rank_like_key key = {.cause = part->cause, .fn = part->fn};

	find_offset(process, part->address, part->at_ns, &key.file, &key.offset);
	event->roughly = key;
	if (stack && stack->n_python)
		key.code = hash_frame(stack, &stack->python[0]) + stack->python[0].line;
	event->like = key;
}

/* Hosts may have the program in different folders. Of code that is not the program's only the function's name is looked at: what
 * torch.compile generates is in files of each rank's own. */
static uint64_t hash_line(const struct python_line *line)
{
	uint64_t function = hash_text(line->code->function);

	if (!python_is_program(line))
		return hash_mix(function) | 1;
	return hash_mix((hash_text(path_basename(line->code->file)) ^ function << 1) + line->line) |
	       1;
}

uint64_t rank_line_key(const struct process *process, const struct idle_part *part)
{
	const struct python_line line = python_line(part->stack);
	uint64_t address = part->address, file, offset;

	if (line.code)
		return hash_line(&line);
	if (part->stack && part->stack->function)
		address = part->stack->function;
	find_offset(process, address, part->at_ns, &file, &offset);
	return file ? hash_mix(file ^ hash_mix(offset + 1)) | 1 : 0;
}

/* What the evaluation has to know of a place from now on. */
static void emit_place(struct ranks *ranks, struct lane_place *place, bool fresh)
{
	const struct idle_sum *sum = &place->sum;
	struct rank_place_event event = {.head = {RANK_EVENT_PLACE, sum->process},
					 .place = place->place,
					 .fresh = fresh,
					 .cause = (enum idle_cause)sum->key.cause,
					 .any_time = sum->ns > 0,
					 .longest = sum->longest};

	if (fresh)
		find_likes(sum->process, &sum->longest, &event);
	rank_pin(ranks, &sum->longest);
	if (sum->holder) {
		event.holder = xcalloc(1, sizeof(*event.holder));
		*event.holder = *sum->holder;
		rank_pin(ranks, &sum->holder->longest);
	}
	rank_emit(ranks, &event.head, sizeof(event));
}

static struct lane_place *find_place(struct ranks *ranks, const struct process *process,
				     const struct idle_part *part, struct idle_sum_key key)
{
	struct ranks_work *w = ranks->work;
	struct lane_place *place;
	struct idle_sum *sum;

	HASH_FIND(hh, w->lane_places, &key, sizeof(key), sum);
	if (!sum && HASH_COUNT(w->lane_places) >= PLACES_MOST) {
		key.address = key.code = key.line = key.process = 0;
		HASH_FIND(hh, w->lane_places, &key, sizeof(key), sum);
	}
	if (sum)
		return (struct lane_place *)sum;
	place = xcalloc(1, sizeof(*place));
	place->sum.key = key;
	place->sum.process = process;
	place->sum.longest = *part;
	place->place = xcalloc(1, sizeof(*place->place));
	sum = &place->sum;
	HASH_ADD(hh, w->lane_places, key, sizeof(sum->key), sum);
	emit_place(ranks, place, true);
	return place;
}

static struct lane_place *place_get(struct ranks *ranks, struct rank_lane *lane,
				    const struct idle_part *part)
{
	const struct process *process = lane->thread->process;
	struct idle_sum_key key = idle_sum_key_of(0, process, part);
	struct lane_place **recent = &lane->recent[idle_sum_key_place(&key, LANE_RECENT_BITS)];

	if (!*recent || !idle_sum_key_same(&(*recent)->sum.key, &key))
		*recent = find_place(ranks, process, part, key);
	return *recent;
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
	if (thread->process->trace->use.gpu_times)
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
	struct idle_span span; /* of the part in hand */
};

static uint32_t smallest_part(const struct rank_lane *lane)
{
	uint32_t least = 0, i;

	for (i = 1; i < lane->n_parts; i++)
		least = lane->parts[i].ns < lane->parts[least].ns ? i : least;
	return least;
}

/* The part of that place; a new one, if need be where the smallest one was, which is forgotten. */
static struct lane_part *part_of(struct rank_lane *lane, struct lane_place *place)
{
	bool known = place->lane == lane;
	uint32_t i = known ? place->part : 0;

	if (!known)
		while (i < lane->n_parts && lane->parts[i].place != place)
			i++;
	if (i >= lane->n_parts || lane->parts[i].place != place) {
		i = lane->n_parts < PARTS_MOST ? lane->n_parts++ : smallest_part(lane);
		lane->parts[i] = (struct lane_part){.place = place};
	}
	place->lane = lane;
	place->part = i;
	return &lane->parts[i];
}

static void add_to_lane(struct rank_lane *lane, struct lane_place *place, uint64_t ns,
			uint64_t end_ns)
{
	struct lane_part *part = part_of(lane, place);

	part->ns += ns;
	part->end_ns = max_u64(part->end_ns, end_ns);
}

/* It is told once for each division. */
static void mark_changed(struct ranks_work *w, struct lane_place *place)
{
	if (place->changed)
		return;
	place->changed = true;
	place->next_changed = w->changed_places;
	w->changed_places = place;
}

static void emit_changed(struct ranks *ranks)
{
	struct ranks_work *w = ranks->work;
	struct lane_place *place;

	while ((place = w->changed_places)) {
		w->changed_places = place->next_changed;
		place->changed = false;
		emit_place(ranks, place, false);
	}
}

static void see_part(void *data, const struct idle_part *part, uint64_t ns)
{
	const struct dividing *d = data;
	struct ranks *ranks = d->ranks;
	struct lane_place *place = place_get(ranks, d->lane, part);
	struct idle_sum *sum = &place->sum;
	struct idle_part longest;

	if ((!sum->ns && ns) || ns >= sum->longest_ns)
		mark_changed(ranks->work, place);
	sum->ns += ns;
	sum->count++;
	if (ns >= sum->longest_ns) {
		longest = *part;
		idle_part_borrow(&longest, &sum->longest);
		sum->longest_ns = ns;
		sum->longest = longest;
	} else if (idle_part_borrow(&sum->longest, part)) {
		mark_changed(ranks->work, place);
	}
	if (idle_sum_follow(ranks->idle->accounts, &ranks->idle->threads, sum, part, ns))
		mark_changed(ranks->work, place);
	/* What samples found in a long gap lies anywhere in it: such parts all begin with it. */
	add_to_lane(d->lane, place, ns, d->span.end_ns);
}

void rank_lane_divide(struct ranks *ranks, struct rank_lane *lane)
{
	const struct thread_account *c = lane->account;
	struct dividing d = {.ranks = ranks, .lane = lane};
	uint64_t end_ns;

	if (!c->ring.n)
		return;
	end_ns = completed_call_at(&c->ring, c->ring.n - 1)->end_ns;
	if (lane->divided_ns && lane->divided_ns < end_ns) {
		host_divide_spans(ranks->idle->accounts,
				  host_thread_find(&ranks->idle->threads, lane->thread), c,
				  lane->divided_ns, end_ns, &d.span, see_part, &d);
		emit_changed(ranks);
	}
	lane->divided_ns = max_u64(lane->divided_ns, end_ns);
	lane->divided_calls = c->ring.n;
}

static bool submits(const struct ranks *ranks, const struct thread *thread)
{
	const struct thread_account *c = thread_account_of(ranks->idle->accounts, thread);
	const struct functions *functions = &ranks->idle->accounts->model->set->functions;

	return c && c->ring.n &&
	       spy_contract_submits(
		       functions->all[completed_call_at(&c->ring, c->ring.n - 1)->fn].contract);
}

static void see_feeder(const struct ranks *ranks, struct rank_feeders *f,
		       const struct thread *thread)
{
	size_t i = 0;

	while (i < f->n && f->all[i] != thread)
		i++;
	if (i == FEEDERS_MOST)
		return;
	if (i == f->n)
		f->all[f->n++] = thread;
	if (!f->submits[i])
		f->submits[i] = submits(ranks, thread);
}

/* The thread's calls are remembered for a while only. */
#define DIVIDE_CALLS 8

void ranks_see_call(struct ranks *ranks, const struct record *record)
{
	const struct ranks_work *w = ranks->work;
	const struct thread *thread = record->thread;
	struct rank_lane *lane = thread->index < w->n_lanes ? w->lanes[thread->index] : NULL;

	see_feeder(ranks, &w->feeders[record->process], thread);
	rank_graph_see_call(ranks, record);
	if (lane && lane->account->ring.n - lane->divided_calls >= DIVIDE_CALLS)
		rank_lane_divide(ranks, lane);
}

/* ---- on behalf of another thread ------------------------------------------------------------- */

/* The thread waited for another one, and nobody said for which. */
static bool is_for_another(const struct lane_part *part)
{
	const struct idle_sum *sum = &part->place->sum;

	return sum->key.cause == IDLE_LOCK && !sum->holder;
}

static uint64_t for_another_ns(const struct rank_lane *lane, uint64_t *rest_ns)
{
	uint64_t ns = 0;

	*rest_ns = 0;
	for (uint32_t i = 0; i < lane->n_parts; i++)
		*(is_for_another(&lane->parts[i]) ? &ns : rest_ns) += lane->parts[i].ns;
	return ns;
}

/*
 * The other thread of its process that did most meanwhile, its waits for others aside, of those that made calls; NULL: none
 * did. One that only looks after the operations makes calls, too: it sleeps between them; and so does one that only pins what a data loader brings.
 * So one that hands over work comes before them, if it accounts for half of the wait.
 */
static struct rank_lane *feeder_of(struct ranks *ranks, const struct rank_lane *lane,
				   uint64_t wait_ns)
{
	struct rank_feeders *f = &ranks->work->feeders[lane->thread->process->trace->index];
	struct rank_lane *feeder = NULL;
	uint64_t most_ns = 0, rest_ns;
	bool feeds = false, does;

	for (size_t i = 0; i < f->n; i++) {
		struct rank_lane *other =
			f->all[i] != lane->thread ? rank_lane_get(ranks, f->all[i]) : NULL;

		if (!other)
			continue;
		rank_lane_divide(ranks, other);
		for_another_ns(other, &rest_ns);
		does = f->submits[i] && rest_ns >= wait_ns / 2;
		if (rest_ns && (does > feeds || (does == feeds && rest_ns > most_ns))) {
			feeds = does;
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

	for (size_t i = 0; i < f->n; i++)
		if (f->all[i] != lane->thread && f->all[i]->index < w->n_lanes &&
		    w->lanes[f->all[i]->index])
			w->lanes[f->all[i]->index]->n_parts = 0;
}

/* The largest are kept. */
static uint32_t keep_part(struct lane_part parts[PARTS_MOST], uint32_t n,
			  const struct lane_part *part)
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
static uint32_t take_parts(const struct rank_lane *lane, bool for_another, double part,
			   struct lane_part parts[PARTS_MOST], uint32_t n)
{
	for (uint32_t i = 0; i < lane->n_parts; i++) {
		struct lane_part taken = lane->parts[i];

		taken.ns = (uint64_t)((double)taken.ns * part);
		if (taken.ns && is_for_another(&taken) == for_another)
			n = keep_part(parts, n, &taken);
	}
	return n;
}

#define FOR_ANOTHER_NS 50000 /* less is on its way */

uint32_t rank_lane_take(struct ranks *ranks, struct rank_lane *lane,
			struct lane_part parts[PARTS_MOST])
{
	struct rank_lane *feeder = NULL;
	uint64_t ns, rest_ns, its_ns, its_rest_ns;
	uint32_t n;

	rank_lane_divide(ranks, lane);
	ns = for_another_ns(lane, &rest_ns);
	if (ns > FOR_ANOTHER_NS)
		feeder = feeder_of(ranks, lane, ns);
	n = take_parts(lane, false, 1, parts, 0);
	if (feeder && feeder->n_parts) {
		its_ns = for_another_ns(feeder, &its_rest_ns);
		n = take_parts(feeder, false, 1, parts, n);
		/* It waited, too, for what this thread did, or both for something else. */
		if (ns > its_rest_ns && its_ns)
			n = take_parts(feeder, true,
				       (double)min_u64(ns - its_rest_ns, its_ns) / (double)its_ns,
				       parts, n);
		forget_feeders(ranks, lane);
	} else {
		n = take_parts(lane, true, 1, parts, n);
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

	for (uint8_t i = 0; stack && i < stack->n_python; i++)
		key = hash_mix(key ^
			       (hash_frame(stack, &stack->python[i]) + stack->python[i].line)) >>
		      1;
	if (stack && stack->n_python)
		return key;
	find_offset(process, part->address, part->at_ns, &file, &offset);
	return hash_mix(file ^ hash_mix(offset + 2 + (stack != NULL)));
}

/* Is the place told for the first time? One more than are kept, for that is where all the rest go to. */
static bool is_first_there(struct ranks_work *w, uint64_t key)
{
	struct lane_site *site;

	HASH_FIND(hh, w->lane_sites, &key, sizeof(key), site);
	if (site || HASH_COUNT(w->lane_sites) > RANK_SITES_MOST)
		return false;
	HASH_NEW(w->lane_sites, site, key, key);
	return true;
}

void rank_site_see(struct ranks *ranks, const struct thread *thread, uint64_t ns,
		   const struct stack *stack, const struct completed_call *launch,
		   struct rank_site_event *event)
{
	const struct process *process = thread->process;
	struct idle_part part = {.cause = IDLE_COLLECTIVE,
				 .fn = NO_FUNCTION,
				 .fn_before = NO_FUNCTION,
				 .thread = thread,
				 .at_ns = ns};

	if (!stack && launch)
		stack = launch->stack;
	event->has_stack = stack;
	part.stack = stack;
	part.address = event->has_stack ? caller_of_nccl(stack)
		       : launch         ? launch->return_address
					: 0;
	if (!event->has_stack && launch)
		part.fn = launch->fn;
	event->key = key_of_site(process, &part);
	event->first = is_first_there(ranks->work, event->key);
	if (!event->first)
		return;
	event->part = part;
	rank_pin(ranks, &part);
}

/* ---- the end --------------------------------------------------------------------------------- */

size_t rank_lane_places_parts(const struct ranks_work *w,
			      size_t (*see)(const struct idle_part *part))
{
	size_t n = 0;

	for (const struct idle_sum *sum = w->lane_places; sum; sum = sum->hh.next) {
		n += see(&sum->longest);
		if (sum->holder)
			n += see(&sum->holder->longest);
	}
	return n;
}

void rank_lanes_release(struct ranks_work *w)
{
	struct lane_site *site, *next_site;
	struct idle_sum *place, *next;

	for (size_t i = 0; i < w->n_lanes; i++) {
		if (w->lanes[i])
			free(w->lanes[i]->launches);
		free(w->lanes[i]);
	}
	free(w->lanes);
	HASH_EMPTY (w->lane_places, place, next) {
		free(place->holder);
		free(place);
	}
	HASH_EMPTY (w->lane_sites, site, next_site)
		free(site);
	free(w->feeders);
	free(w->graphs);
}
