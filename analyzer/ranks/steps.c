/*
 * analyzer/ranks/steps.c: the steps of a job. Called when the reference rank submits an operation, and for each operation
 * that was evaluated.
 *
 * Of the reference, the process that submitted the first operation, the first operations are kept. If ranges of NVTX
 * that are alike lie around nearly all of them, these are the steps; else the operations are searched for a period. From
 * then on only steps are kept, and of steps that are long past only how long they were.
 */
#include <stdlib.h>
#include <string.h>
#include "work.h"
#include "base/median.h"

#define LOG_MOST 4096 /* operations by which steps are found */
#define OPEN_MOST 4096 /* steps that operations may still be added to */
#define KEPT_MOST (1u << 17) /* lengths of steps; then every second one is forgotten */
#define EVERY_MOST 1000 /* a slow step comes again after so many, or it is not looked for */
#define EVERY_PERCENT 70 /* of them do */
#define STEPS_LEAST 3
#define SHARES 4 /* ranks that were last in a step, told apart */

struct op_log {
	uint64_t signature, submitted_ns;
	struct rank_level levels[RANK_LEVELS];
	bool added; /* what it adds to its step is known */
	struct rank_step_part part;
	uint64_t step;
	bool hole; /* operations may be missing before it */
};

struct open_step {
	struct rank_step sum;
	bool begun;
	bool unknown; /* where it begins or ends: recording was dormant meanwhile */
	uint64_t first_ns; /* first arrival, by the reference's GPU timer; or by its host's clock */
	bool by_host_times;
	struct {
		const struct rank *rank;
		uint64_t ns;
		struct idle_part cause;
		const struct process *process;
		uint64_t cause_ns;
	} last[SHARES];
};

struct kept_step {
	uint64_t number, ns;
};

struct rank_steps_work {
	const struct process *reference;
	uint64_t not_seen; /* operations of others since its last one */
	uint64_t holes; /* in its record, by its last one */
	uint64_t first_ns, last_ns; /* when it submitted its first and last one, … */
	uint64_t first_step_ns,
		last_step_ns; /* … and the first of its first and last step; 0: none */
	bool several; /* processes have been the reference */
	struct op_log *log; /* LOG_MOST */
	uint32_t n_log, round; /* round: how often it began anew */
	bool decided;
	/* By NVTX: the ranges on that level, of that name; since when the last one was open. */
	uint32_t level;
	const struct range_name *name;
	uint64_t since_ns;
	/* By a pattern: a step begins with this one, or after so many. */
	uint64_t marker; /* 0: none */
	uint64_t period, phase;
	uint64_t step; /* number of the reference's last one; 0: none yet */
	struct open_step *open; /* a ring, by number */
	uint64_t retired; /* steps up to this number are no longer open */
	struct kept_step *lengths; /* every stride-th one, in their order */
	size_t n_lengths;
	uint64_t stride, skipped;
	struct rank_step slow[RANK_STEPS_SLOW_MOST]; /* the longest so far */
	size_t n_slow;
};

/* ---- operations of the reference ------------------------------------------------------------- */

static uint64_t signature_of(const struct rank_instance *instance)
{
	const struct instance_key *key = &instance->key;
	uint64_t what = instance->comm->key.graphs << 60 | (uint64_t)key->func << 40 |
			instance->comm->ranks;

	return (hash_mix(hash_mix(instance->count + 1) ^ what) ^ (uint64_t)key->from << 20 ^
		key->to) |
	       1;
}

/* Parts of a set have names of their own. */
static struct rank_level level_of(struct ranks *ranks, const struct rank_level *level)
{
	if (!level->name)
		return (struct rank_level){0};
	return (struct rank_level){rank_name_get(ranks->work, level->name), level->since_ns};
}

static void add_log(struct ranks *ranks, struct rank_steps_work *s, struct rank_op *op,
		    const struct rank_submitted_event *event, bool hole)
{
	struct op_log *log = &s->log[s->n_log++];

	*log = (struct op_log){.signature = signature_of(op->instance),
			       .submitted_ns = op->submit_begin_ns,
			       .hole = hole};
	for (uint32_t i = 0; i < RANK_LEVELS; i++)
		log->levels[i] = level_of(ranks, &event->levels[i]);
	op->instance->log_at = s->n_log;
	op->instance->log_round = s->round;
}

/* The step of the reference's next operation; 0: none yet. */
static uint64_t step_by(struct rank_steps_work *s, uint64_t signature, struct rank_level level)
{
	bool begins;

	if (s->name) {
		if (level.name != s->name)
			return 0;
		begins = level.since_ns != s->since_ns;
		s->since_ns = level.since_ns;
	} else if (s->marker) {
		begins = signature == s->marker;
	} else {
		begins = s->phase++ % s->period == 0;
	}
	s->step += begins;
	return s->step;
}

/* ---- by NVTX --------------------------------------------------------------------------------- */

/* NCCL announces its own calls: those are operations, and no steps. */
static bool is_of_program(const struct range_name *name)
{
	return name && strcmp(name->domain, "NCCL") != 0;
}

static bool is_around_most(const struct rank_steps_work *s, uint32_t level)
{
	const struct range_name *name = s->log[s->n_log / 2].levels[level].name;
	uint64_t since_ns = 0;
	uint32_t i, around = 0, steps = 0;

	for (i = 0; is_of_program(name) && i < s->n_log; i++) {
		const struct rank_level *l = &s->log[i].levels[level];

		if (l->name != name)
			continue;
		around++;
		steps += l->since_ns != since_ns;
		since_ns = l->since_ns;
	}
	return steps >= STEPS_LEAST && 10 * around >= 9 * s->n_log;
}

static bool decide_by_nvtx(struct ranks *ranks, struct rank_steps_work *s)
{
	uint32_t level = 0;

	while (level < RANK_LEVELS && !is_around_most(s, level))
		level++;
	if (level == RANK_LEVELS)
		return false;
	s->level = level;
	s->name = s->log[s->n_log / 2].levels[level].name;
	ranks->steps.by = RANK_STEPS_NVTX;
	ranks->steps.range = s->name;
	return true;
}

/* ---- by a pattern ---------------------------------------------------------------------------- */

/* How many of a thousand operations are like those so much later. */
static uint32_t likeness(const struct rank_steps_work *s, uint32_t period)
{
	uint32_t i, n = s->n_log - period, equal = 0;

	for (i = 0; i < n; i++)
		equal += s->log[i].signature == s->log[i + period].signature;
	return (uint32_t)((uint64_t)1000 * equal / n);
}

#define ALIKE_LEAST 900
#define ALIKE_BESIDE 10

/* The shortest of the best; 0: none. */
static uint32_t find_period(const struct rank_steps_work *s)
{
	uint32_t most = s->n_log / STEPS_LEAST, period, best = 0;
	uint32_t *all = xcalloc(most + 1, sizeof(*all));

	for (period = 1; period <= most; period++) {
		all[period] = likeness(s, period);
		best = all[period] > best ? all[period] : best;
	}
	for (period = 1; period <= most && all[period] + ALIKE_BESIDE < best; period++)
		;
	free(all);
	return best >= ALIKE_LEAST && period <= most ? period : 0;
}

/* Where a period repeats without a fault, from there on; n_log: nowhere. */
static uint32_t clean_from(const struct rank_steps_work *s, uint32_t period, uint32_t from)
{
	uint32_t i, equal = 0;

	for (i = from; i + period < s->n_log; i++) {
		equal = s->log[i].signature == s->log[i + period].signature ? equal + 1 : 0;
		if (equal == period)
			return i + 1 - period;
	}
	return s->n_log;
}

/* The first, if it is what the program does later, too: at the start it may do something else, over and over. */
static uint32_t clean_place(const struct rank_steps_work *s, uint32_t period)
{
	uint32_t first = clean_from(s, period, 0), later = clean_from(s, period, s->n_log / 2), i;

	if (later == s->n_log)
		return first < s->n_log ? first : 0;
	for (i = 0; i < period; i++)
		if (s->log[later + i].signature == s->log[first].signature)
			return first;
	return later;
}

static bool is_once(const struct op_log *pattern, uint32_t period, uint32_t at)
{
	uint32_t i, n = 0;

	for (i = 0; i < period; i++)
		n += pattern[i].signature == pattern[at].signature;
	return n == 1;
}

/* Before it most time passed, in all periods together. */
static uint64_t pause_before(const struct rank_steps_work *s, uint32_t at, uint32_t period)
{
	uint64_t sum = 0;

	for (uint32_t i = at ? at : period; i < s->n_log; i += period)
		sum += s->log[i].submitted_ns -
		       min_u64(s->log[i - 1].submitted_ns, s->log[i].submitted_ns);
	return sum;
}

static bool decide_by_pattern(struct ranks *ranks, struct rank_steps_work *s)
{
	uint32_t period = s->n_log >= STEPS_LEAST ? find_period(s) : 0, at, best = 0, place;
	uint64_t pause, longest = 0;
	bool once = false;

	if (!period)
		return false;
	place = clean_place(s, period);
	for (at = 0; at < period; at++) {
		bool is = is_once(&s->log[place], period, at);

		if (once && !is)
			continue;
		pause = pause_before(s, place + at, period);
		if (!at || is > once || pause > longest) {
			best = at;
			longest = pause;
		}
		once |= is;
	}
	s->period = period;
	s->marker = once ? s->log[place + best].signature : 0;
	s->phase = period - (place + best) % period;
	ranks->steps.by = RANK_STEPS_PATTERN;
	ranks->steps.operations = period;
	return true;
}

/* ---- sums of a step -------------------------------------------------------------------------- */

/* Every second one is forgotten where there are too many. */
static void keep_length(struct rank_steps_work *s, uint64_t number, uint64_t ns)
{
	size_t i;

	if (s->skipped++ % s->stride)
		return;
	if (s->n_lengths == KEPT_MOST) {
		for (i = 0; 2 * i < s->n_lengths; i++)
			s->lengths[i] = s->lengths[2 * i];
		s->n_lengths = i;
		s->stride *= 2;
	}
	s->lengths = grow(s->lengths, s->n_lengths, sizeof(*s->lengths));
	s->lengths[s->n_lengths++] = (struct kept_step){number, ns};
}

static void keep_slow(struct rank_steps_work *s, const struct rank_step *step)
{
	size_t i, least = 0;

	if (s->n_slow < RANK_STEPS_SLOW_MOST) {
		s->slow[s->n_slow++] = *step;
		return;
	}
	for (i = 1; i < s->n_slow; i++)
		if (s->slow[i].ns < s->slow[least].ns)
			least = i;
	if (step->ns > s->slow[least].ns)
		s->slow[least] = *step;
}

/* The rank that was last for most of the time. */
static void find_last(struct open_step *step)
{
	size_t i, most = 0;

	for (i = 1; i < SHARES; i++)
		if (step->last[i].ns > step->last[most].ns)
			most = i;
	step->sum.last = UINT32_MAX;
	if (!step->last[most].ns)
		return;
	step->sum.last = step->last[most].rank->index;
	step->sum.last_ns = step->last[most].ns;
	step->sum.cause = step->last[most].cause;
	step->sum.process = step->last[most].process;
	step->sum.cause_ns = step->last[most].cause_ns;
}

#define MUCH 20 /* a part of a step that was somebody's: one twentieth */

static struct open_step *open_at(struct rank_steps_work *s, uint64_t number)
{
	return &s->open[number % OPEN_MOST];
}

/* The next step has begun, or there is none: then its end is not known. */
static void retire(struct ranks *ranks, struct rank_steps_work *s)
{
	uint64_t number = ++s->retired;
	struct open_step *step = open_at(s, number), *next = open_at(s, number + 1);
	struct rank_steps *steps = &ranks->steps;

	if (step->begun && next->begun && !step->unknown && number < s->step &&
	    step->by_host_times == next->by_host_times && next->first_ns > step->first_ns) {
		step->sum.ns = next->first_ns - step->first_ns;
		find_last(step);
		steps->count++;
		steps->total_ns += step->sum.ns;
		steps->wait_ns += step->sum.wait_ns;
		if (step->sum.last != UINT32_MAX && MUCH * step->sum.last_ns >= step->sum.ns)
			ranks->all[step->sum.last]->steps++;
		keep_length(s, number, step->sum.ns);
		keep_slow(s, &step->sum);
	}
	*step = (struct open_step){.begun = false};
}

static void add_last(struct open_step *step, const struct rank_step_part *part)
{
	size_t i = 0, least = 0;

	for (; i < SHARES && step->last[i].rank && step->last[i].rank != part->last; i++)
		if (step->last[i].ns < step->last[least].ns)
			least = i;
	if (i == SHARES) {
		i = least;
		step->last[i].ns = step->last[i].cause_ns = 0;
	}
	step->last[i].rank = part->last;
	step->last[i].ns += part->late_ns;
	if (part->cause_ns <= step->last[i].cause_ns)
		return;
	step->last[i].cause = part->cause;
	step->last[i].process = part->process;
	step->last[i].cause_ns = part->cause_ns;
}

static void add_to_step(struct rank_steps_work *s, uint64_t number,
			const struct rank_step_part *part)
{
	struct open_step *step;

	if (number <= s->retired || number > s->retired + OPEN_MOST)
		return;
	step = open_at(s, number);
	step->sum.number = number;
	step->sum.wait_ns += part->wait_ns;
	step->sum.late_ns += part->late_ns;
	if (part->first_ns && (!step->begun || (part->by_host_times == step->by_host_times &&
						part->first_ns < step->first_ns))) {
		step->begun = true;
		step->by_host_times = part->by_host_times;
		step->first_ns = part->first_ns;
		step->sum.begin_ns = part->begin_ns;
	}
	if (part->last)
		add_last(step, part);
}

/* Room for a step of that number. */
static void make_room(struct ranks *ranks, struct rank_steps_work *s, uint64_t number)
{
	while (number >= s->retired + OPEN_MOST)
		retire(ranks, s);
}

static void lose_step(struct rank_steps_work *s, uint64_t number)
{
	if (number > s->retired && number < s->retired + OPEN_MOST)
		open_at(s, number)->unknown = true;
}

/* The step of the reference's next operation; 0: none yet. The end of one and the begin of another may be missing. */
static uint64_t next_step(struct ranks *ranks, struct rank_steps_work *s, uint64_t ns,
			  uint64_t signature, struct rank_level level, bool hole)
{
	uint64_t before = s->step, number = step_by(s, signature, level);

	make_room(ranks, s, number);
	if (s->step > before) {
		s->first_step_ns = s->first_step_ns ?: ns;
		s->last_step_ns = ns;
	}
	if (hole) {
		lose_step(s, before);
		lose_step(s, s->step);
	}
	return number;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The operations that are kept get their steps. */
static void replay(struct ranks *ranks, struct rank_steps_work *s)
{
	for (uint32_t i = 0; i < s->n_log; i++) {
		struct op_log *log = &s->log[i];

		log->step = next_step(ranks, s, log->submitted_ns, log->signature,
				      log->levels[s->level], log->hole);
		if (log->step && log->added)
			add_to_step(s, log->step, &log->part);
	}
}

static void decide(struct ranks *ranks, struct rank_steps_work *s)
{
	s->decided = s->n_log && (decide_by_nvtx(ranks, s) || decide_by_pattern(ranks, s));
	if (s->decided) {
		s->open = xcalloc(OPEN_MOST, sizeof(*s->open));
		s->stride = 1;
		replay(ranks, s);
	} else {
		s->n_log = 0;
		s->round++;
	}
}

/* The reference may end, and its job be started again. */
#define PATIENCE_LEAST 4096
#define PATIENCE_RANK 64

static bool is_reference(struct ranks *ranks, struct rank_steps_work *s,
			 const struct process *process)
{
	if (s->reference && s->reference != process &&
	    s->not_seen++ < PATIENCE_LEAST + PATIENCE_RANK * ranks->n)
		return false;
	s->several |= s->reference && s->reference != process;
	s->reference = process;
	s->not_seen = 0;
	return true;
}

void rank_steps_see(struct ranks *ranks, struct rank_op *op,
		    const struct rank_submitted_event *event)
{
	struct rank_steps_work *s = ranks->work->steps;
	bool hole;

	if (ranks->from_digests) /* which do not have all operations */
		return;
	if (!s) {
		s = ranks->work->steps = xcalloc(1, sizeof(*s));
		s->log = xcalloc(LOG_MOST, sizeof(*s->log));
		s->round = 1;
	}
	if (!is_reference(ranks, s, event->head.process))
		return;
	op->reference = true;
	hole = op->holes != s->holes;
	s->holes = op->holes;
	s->first_ns = s->first_ns ?: op->submit_begin_ns;
	s->last_ns = op->submit_begin_ns;
	if (s->decided) {
		op->instance->step =
			next_step(ranks, s, op->submit_begin_ns, signature_of(op->instance),
				  level_of(ranks, &event->levels[s->level]), hole);
		return;
	}
	add_log(ranks, s, op, event, hole);
	if (s->n_log == LOG_MOST)
		decide(ranks, s);
}

void rank_steps_add(struct ranks *ranks, const struct rank_instance *instance,
		    const struct rank_step_part *part)
{
	struct rank_steps_work *s = ranks->work->steps;
	struct op_log *log;

	if (instance->step) {
		add_to_step(s, instance->step, part);
		return;
	}
	if (!s || !instance->log_at || instance->log_round != s->round)
		return;
	log = &s->log[instance->log_at - 1];
	if (s->decided) {
		add_to_step(s, log->step, part);
		return;
	}
	log->part = *part;
	log->added = true;
}

/* So much longer than the median is slow. */
#define SLOW_MORE_NS 100000

static bool is_slow(const struct rank_steps *steps, uint64_t ns)
{
	return ns > steps->median_ns + steps->median_ns / 2 && ns > steps->median_ns + SLOW_MORE_NS;
}

static int by_number(const void *a, const void *b)
{
	const struct rank_step *x = a, *y = b;

	return COMPARE(x->number, y->number);
}

static uint64_t median_length(const struct rank_steps_work *s)
{
	uint64_t *lengths = xcalloc(s->n_lengths, sizeof(*lengths)), median;

	for (size_t i = 0; i < s->n_lengths; i++)
		lengths[i] = s->lengths[i].ns;
	qsort(lengths, s->n_lengths, sizeof(*lengths), by_u64);
	median = lengths[s->n_lengths / 2];
	free(lengths);
	return median;
}

/*
 * From one long step to the next it is mostly the same number of steps. Those that are only somewhat longer are by chance, and not looked
 * at; numbers may be missing.
 */
static uint64_t find_every(const struct rank_steps *steps, const struct rank_steps_work *s)
{
	uint64_t counts[EVERY_MOST + 1] = {0}, last = 0, apart, every = 0, n = 0;
	uint64_t long_ns = steps->median_ns + steps->slow_more_ns / (2 * (steps->slow_count ?: 1));

	for (size_t i = 0; i < s->n_lengths; i++) {
		if (!is_slow(steps, s->lengths[i].ns) || s->lengths[i].ns < long_ns)
			continue;
		apart = min_u64(s->lengths[i].number - last, EVERY_MOST);
		if (last && ++n && ++counts[apart] > counts[every])
			every = apart;
		last = s->lengths[i].number;
	}
	if (s->stride > 1 || every < 2 || every == EVERY_MOST || n < STEPS_LEAST)
		return 0;
	return 100 * counts[every] >= EVERY_PERCENT * n ? every : 0;
}

static void find_slow(struct rank_steps *steps, struct rank_steps_work *s,
		      const struct sample_pools *samples)
{
	if (!s->n_lengths)
		return;
	steps->median_ns = median_length(s);
	for (size_t i = 0; i < s->n_lengths; i++) {
		uint64_t ns = s->lengths[i].ns;

		if (!is_slow(steps, ns))
			continue;
		steps->slow_count += s->stride;
		steps->slow_ns += s->stride * ns;
		steps->slow_more_ns += s->stride * (ns - steps->median_ns);
	}
	steps->slow_every = find_every(steps, s);
	for (size_t i = 0; i < s->n_slow; i++)
		if (is_slow(steps, s->slow[i].ns))
			steps->slow[steps->n_slow++] = s->slow[i];
	for (size_t i = 0; i < steps->n_slow; i++)
		if (steps->slow[i].process)
			samples_place(samples, &steps->slow[i].cause);
	steps->slow_count = max_u64(steps->slow_count, steps->n_slow);
	qsort(steps->slow, steps->n_slow, sizeof(*steps->slow), by_number);
}

void rank_steps_finish(struct ranks *ranks)
{
	struct rank_steps_work *s = ranks->work->steps;

	if (!s)
		return;
	if (!s->decided)
		decide(ranks, s);
	if (!s->decided)
		return;
	while (s->retired < s->step)
		retire(ranks, s);
	find_slow(&ranks->steps, s, &ranks->idle->samples);
	ranks->steps.outside_ns =
		s->several ? UINT64_MAX
			   : s->last_ns - min_u64(s->first_ns, s->last_ns) -
				     (s->last_step_ns - min_u64(s->first_step_ns, s->last_step_ns));
}

static void rename_level(struct rank_level *level)
{
	if (level->name && level->name->into)
		level->name = level->name->into;
}

void rank_steps_rename(struct ranks *ranks)
{
	struct rank_steps_work *s = ranks->work->steps;

	for (uint32_t i = 0; s && i < s->n_log; i++)
		for (uint32_t k = 0; k < RANK_LEVELS; k++)
			rename_level(&s->log[i].levels[k]);
	if (s && s->name && s->name->into)
		s->name = ranks->steps.range = s->name->into;
	rank_names_forget(ranks->work);
}

size_t rank_steps_parts(const struct ranks_work *w, size_t (*see)(const struct idle_part *part))
{
	const struct rank_steps_work *s = w->steps;
	size_t i, k, n = 0;

	for (i = 0; s && i < s->n_log; i++)
		n += s->log[i].part.process ? see(&s->log[i].part.cause) : 0;
	for (i = 0; s && s->open && i < OPEN_MOST; i++)
		for (k = 0; k < SHARES; k++)
			n += s->open[i].last[k].process ? see(&s->open[i].last[k].cause) : 0;
	for (i = 0; s && i < s->n_slow; i++)
		n += s->slow[i].process ? see(&s->slow[i].cause) : 0;
	return n;
}

void rank_steps_release(struct ranks_work *w)
{
	if (!w->steps)
		return;
	free(w->steps->log);
	free(w->steps->open);
	free(w->steps->lengths);
	free(w->steps);
}
