/*
 * analyzer/findings/recurrence.c: how often a site's cases come back. Called for each case, and when findings are made.
 */
#include "finding.h"
#include "site.h"
#include "recurrence.h"
#include "text/text.h"

#define APART 1.5 /* steps from one case to the next: they are of two occasions */
#define STEPS_LEAST 16 /* in the phase: of fewer, nobody can say what would come again */
#define FAR_APART 5 /* steps: what comes back sooner may come at any of them */
#define SHORT_PART 10 /* of the work: an occasion that has no more of it is a short one */
#define SHORT_TIME_PART 4 /* and of the phase */
#define MOST_TIME 0.6 /* of the time from first to last that cases fill: they are in most steps */
#define ALL_TIME 0.9 /* and of the phase: they are in each step */
#define BURST_PARTS (OCCASION_PARTS / 4) /* a short part of the phase */
#define BURST_COST 0.9 /* of the cost, is from there */
#define MOST_WORK 0.4 /* the same of the work, some of which may be done in between */

const char *const recurs_keys[] = {
	[RECURS_START] = "start", [RECURS_END] = "end",     [RECURS_OUTSIDE] = "outside",
	[RECURS_ONCE] = "once",   [RECURS_AGAIN] = "again", [RECURS_STEPS] = "steps",
	[RECURS_UNKNOWN] = NULL,
};

/* ---- while records go by --------------------------------------------------------------------- */

/* By the work that the process handed to GPUs since: a checkpoint takes long, and is in one step. */
static bool same_occasion(const struct occasions *o, const struct phase *phase, uint64_t begin_ns,
			  uint64_t submissions)
{
	if (phase->step_work >= 1)
		return (double)submissions <= (double)o->submissions + APART * phase->step_work;
	return begin_ns <= o->last_ns || (double)(begin_ns - o->last_ns) < APART * phase->step_ns;
}

static void add_to_part(struct occasions *o, const struct phase *phase, uint64_t begin_ns,
			uint64_t end_ns, uint64_t submissions)
{
	double since = (double)(begin_ns - min_u64(phase->begin_ns, begin_ns));
	double each = (double)(phase->end_ns - phase->begin_ns) / OCCASION_PARTS;
	size_t i = each > 0 ? (size_t)(since / each) : 0;
	struct occasion_part *part = &o->parts[i < OCCASION_PARTS ? i : OCCASION_PARTS - 1];

	if (!part->count++) {
		part->first_ns = begin_ns;
		part->first_submissions = submissions;
	}
	part->ns += end_ns - begin_ns;
	part->submissions = max_u64(part->submissions, submissions);
}

static void join_part(struct occasion_part *sum, const struct occasion_part *more)
{
	if (!more->count)
		return;
	if (!sum->count || more->first_ns < sum->first_ns) {
		sum->first_ns = more->first_ns;
		sum->first_submissions = more->first_submissions;
	}
	sum->count += more->count;
	sum->ns += more->ns;
	sum->submissions = max_u64(sum->submissions, more->submissions);
}

/* Claims that were open may come late, but not by more than a few calls. */
void occasions_add(struct occasions *o, const struct phase *phase, uint64_t begin_ns,
		   uint64_t end_ns, uint64_t submissions)
{
	if (!phase->found)
		return;
	/* The phase begins and ends within a step. */
	if (end_ns + (uint64_t)phase->step_ns < phase->begin_ns) {
		o->before++;
		return;
	}
	if (end_ns > phase->end_ns && end_ns - phase->end_ns > (uint64_t)phase->step_ns) {
		o->behind++;
		return;
	}
	if (o->cases++ == 1) {
		o->parts = xcalloc(OCCASION_PARTS, sizeof(*o->parts));
		add_to_part(o, phase, o->first_ns, o->last_ns, o->submissions);
	}
	if (o->parts)
		add_to_part(o, phase, begin_ns, end_ns, submissions);
	if (!o->count) {
		o->first_ns = begin_ns;
		o->first_submissions = o->submissions = submissions;
	}
	if (!o->count || !same_occasion(o, phase, begin_ns, submissions)) {
		o->within_ns += end_ns - begin_ns;
		o->count++;
		o->last_submissions = submissions;
	} else {
		o->within_ns += end_ns - min_u64(end_ns, o->last_ns);
		/* One is the case itself, or belongs to it. */
		if (submissions > o->submissions)
			o->within_submissions += submissions - o->submissions - 1;
	}
	o->last_ns = max_u64(o->last_ns, end_ns);
	o->submissions = max_u64(o->submissions, submissions);
}

void occasions_join(struct occasions *sum, const struct occasions *more)
{
	sum->before += more->before;
	sum->behind += more->behind;
	if (more->parts && !sum->parts)
		sum->parts = xcalloc(OCCASION_PARTS, sizeof(*sum->parts));
	for (size_t i = 0; more->parts && i < OCCASION_PARTS; i++)
		join_part(&sum->parts[i], &more->parts[i]);
	sum->cases += more->cases;
	if (!more->count)
		return;
	sum->first_ns = sum->count ? min_u64(sum->first_ns, more->first_ns) : more->first_ns;
	sum->count = max_u64(sum->count, more->count);
	sum->last_ns = max_u64(sum->last_ns, more->last_ns);
	sum->within_ns = max_u64(sum->within_ns, more->within_ns);
	sum->first_submissions = sum->first_submissions
					 ? min_u64(sum->first_submissions, more->first_submissions)
					 : more->first_submissions;
	sum->last_submissions = max_u64(sum->last_submissions, more->last_submissions);
	sum->submissions = max_u64(sum->submissions, more->submissions);
	sum->within_submissions = max_u64(sum->within_submissions, more->within_submissions);
}

void occasions_release(struct occasions *o)
{
	free(o->parts);
	o->parts = NULL;
}

/* ---- after the last record ------------------------------------------------------------------ */

/* What it cost, and in the phase of each thread's process. */
static void add_costs(struct recurrence *r, const struct thread_costs *costs)
{
	double ns = 0, working_ns = 0;

	for (size_t i = 0; i < costs->n_places; i++) {
		if (!costs->all[i].thread)
			continue;
		ns += costs->all[i].ns;
		working_ns += costs->all[i].working_ns;
	}
	r->cost_ns = (uint64_t)ns;
	r->working_ns = min_u64((uint64_t)working_ns, r->cost_ns);
}

static uint64_t lived_ns(const struct process *process, uint64_t begin_ns, uint64_t end_ns)
{
	return end_ns - min_u64(begin_ns, end_ns) - process_dormant_ns(process, begin_ns, end_ns);
}

static bool is_short(const struct occasions *o, uint64_t submissions, uint64_t from_ns,
		     uint64_t phase_ns)
{
	return o->within_submissions <= submissions / SHORT_PART &&
	       from_ns <= phase_ns / SHORT_TIME_PART;
}

static bool in_most_steps(const struct occasions *o, uint64_t from_ns)
{
	return (double)o->within_ns >= MOST_TIME * (double)from_ns ||
	       (double)o->within_submissions >=
		       MOST_WORK * (double)(o->submissions - o->first_submissions);
}

/* From one occasion to the next. */
static double steps_between(const struct occasions *o, const struct phase *phase, uint64_t from_ns)
{
	double steps = (double)from_ns / phase->step_ns;

	if (phase->step_work >= 1)
		steps = (double)(o->last_submissions - o->first_submissions) / phase->step_work;
	return steps / (double)(o->count - 1);
}

static void find_occasions(struct recurrence *r, const struct accounting *a,
			   const struct site *site)
{
	const struct process *process = &a->model->processes[site->key.process];
	const struct phase *phase = &a->expect->phases.all[site->key.process];
	const struct occasions *o = &site->occasions;
	uint64_t submissions = a->work.submissions[site->key.process];
	uint64_t phase_ns = lived_ns(process, max_u64(phase->begin_ns, process->first_ns),
				     min_u64(phase->end_ns, process->last_ns));
	uint64_t from_ns = lived_ns(process, o->first_ns, o->last_ns);

	if (phase->step_ns <= 0 || (double)phase_ns / phase->step_ns < STEPS_LEAST)
		return;
	r->steps_sure = phase->steps_sure;
	r->first_ns = o->first_ns;
	r->occasions = o->count;
	if (o->count == 1 && (site->count == 1 || is_short(o, submissions, from_ns, phase_ns))) {
		r->recurs = RECURS_ONCE;
		return;
	}
	r->recurs = RECURS_STEPS;
	r->every = 1;
	r->each = (double)o->within_ns >= ALL_TIME * (double)phase_ns;
	if (o->count == 1 || in_most_steps(o, from_ns))
		return;
	r->every = (uint64_t)(steps_between(o, phase, from_ns) + 0.5);
	if (r->every > 1)
		r->recurs = RECURS_AGAIN;
}

/* So many parts of the phase, in a row: those that have most of the cost. */
static struct occasion_part most_of(const struct occasions *o, size_t n)
{
	struct occasion_part most = {0};

	for (size_t i = 0; i + n <= OCCASION_PARTS; i++) {
		struct occasion_part sum = {0};

		for (size_t k = i; k < i + n; k++)
			join_part(&sum, &o->parts[k]);
		most = sum.ns > most.ns ? sum : most;
	}
	return most;
}

/*
 * A place may be part of each step, where it costs next to nothing, and have cost much at once before: a library's own copy, which loads the model,
 * and then moves each step's few bytes. Where the process did little else meanwhile, that was no step.
 */
static void find_burst(struct recurrence *r, const struct accounting *a, const struct site *site)
{
	const struct occasions *o = &site->occasions;
	uint64_t submissions = a->work.submissions[site->key.process], all_ns = 0, others;
	struct occasion_part most = {0};
	double part;

	if (!o->parts)
		return;
	for (size_t i = 0; i < OCCASION_PARTS; i++)
		all_ns += o->parts[i].ns;
	for (size_t n = 1; n <= BURST_PARTS && (double)most.ns < BURST_COST * (double)all_ns; n++)
		most = most_of(o, n);
	others = most.submissions - most.first_submissions;
	others -= min_u64(most.count, others);
	if (!most.ns || (double)most.ns < BURST_COST * (double)all_ns ||
	    others > submissions / SHORT_PART)
		return;
	part = (double)most.ns / (double)all_ns;
	r->burst_at_ns = most.first_ns;
	r->burst_ns = (uint64_t)(part * (double)r->working_ns);
	r->working_ns -= r->burst_ns;
	r->cost_share.share *= 1 - part;
	r->little = finding_little(r->working_ns, r->cost_share.share);
}

struct recurrence recurrence_of_costs(const struct accounting *a, const struct thread_costs *costs)
{
	struct recurrence r = {0};

	add_costs(&r, costs);
	r.cost_share = cost_share_working(a, costs);
	r.little = finding_little(r.working_ns, r.cost_share.share);
	return r;
}

struct recurrence recurrence_of(const struct accounting *a, const struct site *site)
{
	const struct occasions *o = &site->occasions;
	struct recurrence r = {0};

	if (!a->expect->phases.all[site->key.process].found)
		return r;
	r = recurrence_of_costs(a, &site->cost.threads);
	r.at_start = o->before;
	r.at_end = o->behind;
	if (o->count)
		find_occasions(&r, a, site);
	else if (o->before && o->behind)
		r.recurs = RECURS_OUTSIDE;
	else if (o->before || o->behind)
		r.recurs = o->before ? RECURS_START : RECURS_END;
	if (r.recurs == RECURS_STEPS || r.recurs == RECURS_AGAIN)
		find_burst(&r, a, site);
	return r;
}

bool recurrence_passes(const struct recurrence *r)
{
	return r->little || (r->recurs > RECURS_UNKNOWN && r->recurs <= RECURS_ONCE);
}

static const char *times_words(struct arena *texts, const struct model *model,
			       const struct recurrence *r)
{
	switch (r->recurs) {
	case RECURS_START:
		return "once, at the start";
	case RECURS_END:
		return "once, at the end";
	case RECURS_OUTSIDE:
		return "once, at the start and at the end";
	case RECURS_ONCE:
		return arena_printf(texts, "once, at %s", text_since(texts, model, r->first_ns));
	case RECURS_AGAIN:
		if (!r->steps_sure)
			return arena_printf(texts, "%llu times while it works",
					    (unsigned long long)r->occasions);
		if (r->every < FAR_APART)
			return "every few steps";
		return arena_printf(texts, "%llu times, about every %s step",
				    (unsigned long long)r->occasions,
				    text_ordinal(texts, r->every));
	case RECURS_STEPS:
		if (!r->steps_sure)
			return "again and again";
		return r->each ? "in each step" : "in most steps";
	default:
		return NULL;
	}
}

/* Where the phase has a part of the cost only: "; 50.00 ms of the cost at the start". */
static const char *outside_words(struct arena *texts, const struct model *model,
				 const struct recurrence *r)
{
	uint64_t ns = r->cost_ns - r->working_ns;

	if (r->burst_ns)
		return arena_printf(texts, "; %s of the cost at once, at %s",
				    text_time(texts, r->burst_ns),
				    text_since(texts, model, r->burst_at_ns));
	if (!r->occasions || ns < r->cost_ns / SHORT_PART)
		return "";
	return arena_printf(texts, "; %s of the cost %s", text_time(texts, ns),
			    r->at_start && r->at_end ? "at the start and at the end"
			    : r->at_start            ? "at the start"
						     : "at the end");
}

const char *recurrence_words(struct arena *texts, const struct model *model,
			     const struct recurrence *r)
{
	const char *times = times_words(texts, model, r);

	return times ? arena_printf(texts, "%s%s", times, outside_words(texts, model, r)) : NULL;
}
