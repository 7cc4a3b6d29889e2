/*
 * analyzer/findings/finding.c: sites become findings, each with its place, its cost and what its
 * cure would gain. Called once, by the report.
 */
#include <stdlib.h>
#include <string.h>
#include "detector.h"
#include "site.h"
#include "framework_cures.h"
#include "idle_price.h"
#include "of_ranks.h"
#include "same_cause.h"
#include "profiled.h"
#include "ranks/ranks.h"
#include "base/lines.h"
#include "text/where.h"
#include "text/text.h"
#include "base/median.h"

/* A finding that costs less than this, or a smaller share of the time it is judged by (cost_share.h), is
 * a minor one. */
#define MINOR_NS 1000000
#define MINOR_SHARE 0.01

const char *const compared_keys[] = {NULL, "new", "worse", "same"};
const char *const severity_keys[] = {"problem", "note", "minor"};

/* ---- places --------------------------------------------------------------------------------- */

static void find_source(struct finding_place *found, const struct place *place)
{
	found->inner = place->inner;
	found->file = place->file;
	found->line = (uint64_t)place->line;
}

static void find_place(struct finding *finding, const struct place *place, struct arena *texts)
{
	struct finding_place *found = &finding->place;

	finding->lookup.between = place_is_between(place);
	found->words = text_place(texts, place);
	found->library = place->library ? place->path : NULL;
	found->module = place->path;
	found->caller = place->cudas && place->kernel ? place->kernel : place->function;
	found->offset = place->offset;
	find_source(found, place);
}

/* Of what a library calls: module and offset stay those that call, by which findings of the library
 * are known. */
static void find_place_by(struct finding_place *found, const struct place *entry,
			  const struct place *place, struct arena *texts)
{
	found->library = entry->library ? entry->path : NULL;
	found->caller = entry->function;
	found->library_caller = place->function;
	find_source(found, place);
	found->words = text_place_by(texts, entry, place);
}

const char *finding_where(const struct finding *f, struct arena *texts)
{
	const struct finding_place *found = &f->place;

	if (!found->words)
		return NULL;
	if (found->works && found->function) /* where it was is unknown: it ended with that call */
		return arena_printf(texts, "work before %s%s%s", found->function, found->words,
				    found->elsewhere ? " and elsewhere" : "");
	return arena_printf(texts, "%s%s%s",
			    found->function
				    ?: found->works ? "work"
						    : "a wait",
			    found->words, found->elsewhere ? " and elsewhere" : "");
}

static uint32_t own_variant(const struct finding *f)
{
	return f->variant & ~f->detector->alike;
}

static int same_place(const struct finding *x, const struct finding *y)
{
	int order = (x->detector > y->detector) - (x->detector < y->detector);

	order = order ? order : strcmp(x->place.module ?: "", y->place.module ?: "");
	if (!order && x->place.offset != y->place.offset)
		order = x->place.offset < y->place.offset ? -1 : 1;
	order = order ? order : strcmp(x->place.function ?: "", y->place.function ?: "");
	return order ? order
		     : (own_variant(x) > own_variant(y)) - (own_variant(x) < own_variant(y));
}

/* Findings of the same place stand together, and among them those of a process. */
static int by_place(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	int order = same_place(x, y);

	return order ? order
		     : (x->origin.process > y->origin.process) -
			       (x->origin.process < y->origin.process);
}

/* ---- findings ------------------------------------------------------------------------------- */

static struct finding from_site(struct site *site, const struct accounting *a,
				struct symbolizer *symbols, struct arena *texts)
{
	const struct process *process = &a->model->processes[site->key.process];
	struct finding finding = {
		.detector = detectors_row(site->key.detector),
		.site = site,
		.origin = {process, process->trace->host, .processes = 1, .places = 1},
		.variant = site->key.variant,
		.place.function = text_function(a->model->set, site->key.fn),
	};
	struct place place;

	site_stacks_end(&site->stacks);
	site->rounds.at_the_end =
		site->rounds.count == 1 &&
		site->rounds.submissions == a->work.submissions[site->key.process];
	symbolize(symbols, process, site->key.return_address, site->last_ns, &place);
	find_place(&finding, &place, texts);
	return finding;
}

static const char *named_line(struct named_place *named, struct arena *texts)
{
	struct python_line line = python_line(named->stack);

	if (!line.code)
		return "";
	named->file = line.code->file;
	named->function = line.code->function;
	named->line = line.line;
	return text_python(texts, &line);
}

static const char *named_text(const struct finding *finding, struct named_place *named,
			      struct symbolizer *symbols, struct arena *texts)
{
	const struct process *process = finding->origin.process;
	const char *variable = NULL;
	struct place place, entry;

	if (named->in_library)
		return text_in_library(texts, symbols, process, named->address, named->ns,
				       named->whole_library)
			       ?: "C";
	if (named->address) {
		symbolize_program(symbols, process, named->address, named->ns, named->stack, &place,
				  &entry);
		named->file = place.file ? arena_printf(texts, "%s", place.file) : NULL;
		named->function = place.function
					  ? arena_printf(texts, "%s", place.inner ?: place.function)
					  : NULL;
		named->line = place.line > 0 ? (uint64_t)place.line : 0;
		return entry.path ? text_place_by(texts, &entry, &place)
				  : text_place(texts, &place);
	}
	if (named->stack)
		return named_line(named, texts);
	if (named->variable)
		variable = symbolize_data(symbols, process, named->variable, named->ns);
	return variable ? arena_printf(texts, " (%s)", variable) : "";
}

void finding_name_place(struct finding *finding, struct arena *texts,
			const struct named_place *more)
{
	struct finding_lookup *lookup = &finding->lookup;
	struct named_place *all = arena_take(texts, xcalloc(lookup->n_named + 1, sizeof(*all)));

	if (lookup->n_named)
		memcpy(all, lookup->named, lookup->n_named * sizeof(*all));
	all[lookup->n_named++] = *more;
	lookup->named = all;
}

void finding_name_wait(struct finding *finding, struct arena *texts, const char *at, const char *in,
		       uint64_t address, uint64_t ns, const struct stack *stack)
{
	bool in_python = stack && stack->n_python;

	if (in_python ? python_line(stack).code != NULL : address != 0)
		finding_name_place(finding, texts,
				   &(struct named_place){.words = in_python ? at : in,
							 .address = in_python ? 0 : address,
							 .ns = ns,
							 .stack = stack});
}

/* Those that detectors added after the last record: where, if they know. */
static void place_added(struct finding *finding, struct symbolizer *symbols, struct arena *texts)
{
	struct finding_lookup *lookup = &finding->lookup;
	const char *variable = NULL;
	struct place place;

	if (finding->origin.process && finding->origin.processes == 1 && !finding->origin.host)
		finding->origin.host = finding->origin.process->trace->host;
	for (size_t i = 0; i < lookup->n_named; i++)
		finding->what =
			arena_printf(texts, "%s%s%s", finding->what, lookup->named[i].words,
				     named_text(finding, &lookup->named[i], symbols, texts));
	if (!lookup->address || !finding->origin.process ||
	    !(finding->place.function || lookup->of_wait))
		return;
	symbolize(symbols, finding->origin.process, lookup->address, lookup->address_ns, &place);
	find_place(finding, &place, texts);
	if (lookup->variable)
		variable = symbolize_data(symbols, finding->origin.process, lookup->variable,
					  lookup->variable_ns);
	if (variable)
		finding->what = arena_printf(texts, "%s; the lock is the variable %s",
					     finding->what, variable);
}

void finding_look_up(struct finding *finding, struct arena *texts, const struct idle_part *part)
{
	const struct stack **stacks;

	finding->lookup.address = part->address;
	finding->lookup.address_ns = part->at_ns;
	finding->lookup.of_wait = part->fn == NO_FUNCTION;
	finding->place.works = part->cause == IDLE_CPU || idle_runs_python(part->cause);
	if (!part->stack)
		return;
	stacks = arena_take(texts, xcalloc(1, sizeof(struct stack *)));
	stacks[0] = part->stack;
	finding->lookup.stacks = stacks;
	finding->lookup.n_stacks = 1;
}

static void site_join(struct site *sum, struct site *more)
{
	sum->joined_total_ns += more->total_ns;
	sum->joined_own_ns += more->cost.own_ns;
	site_add(sum, more);
	more->into = sum;
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
		site_join(last->site, findings[i].site);
		last->origin.processes += last->origin.process != findings[i].origin.process;
		last->origin.process = findings[i].origin.process;
		if (last->origin.host != findings[i].origin.host)
			last->origin.host = NULL;
	}
	return kept;
}

static int by_site_cost(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	return COMPARE(y->site->cost.own_ns, x->site->cost.own_ns) ?: by_place(x, y);
}

/* The finding among the first n, of the same process, whose cause is also f's. */
static struct finding *same_cause(struct finding *findings, size_t n, const struct finding *f)
{
	for (size_t i = 0; i < n && f->detector->everywhere; i++)
		if (findings[i].detector == f->detector &&
		    findings[i].origin.process == f->origin.process &&
		    findings[i].variant == f->variant)
			return &findings[i];
	return NULL;
}

/* Those that have one cause wherever they are become one in each process, at the costliest
 * place. */
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
		site_join(first->site, findings[i].site);
		first->origin.places++;
	}
	return kept;
}

#define KERNEL_WIDTH 40

/* "; kernels: first(int), second(float) and others"; nothing if there are none. */
static const char *kernels_text(const struct site *site, struct symbolizer *symbols,
				struct arena *texts)
{
	char *names[SITE_KERNELS], *shown[SITE_KERNELS];
	const char *text = "";
	size_t i, n;

	for (n = 0; n < SITE_KERNELS && site->kernels[n]; n++)
		names[n] = visible(demangle(symbols, site->kernels[n]));
	shorten_apart((const char *const *)names, shown, n, KERNEL_WIDTH, true);
	for (i = 0; i < n; i++) {
		text = arena_printf(texts, "%s%s%s", text, i ? ", " : "; kernels: ", shown[i]);
		free(shown[i]);
		free(names[i]);
	}
	return site->more_kernels ? arena_printf(texts, "%s and others", text) : text;
}

/* What the site says of itself; false: its detector finds nothing in it. */
static bool fill(struct finding *finding, const struct findings *f, struct symbolizer *symbols,
		 struct arena *texts)
{
	const struct site *site = finding->site;
	struct cost *cost = &finding->cost;

	finding->count = site->count;
	finding->bytes = site->bytes;
	cost->own_ns = site->cost.own_ns;
	cost->others_ns = (uint64_t)site->cost.others_ns;
	cost->gain_low_ns = site_gain_low(&site->cost) + (uint64_t)site->cost.others_sure_ns;
	cost->gain_high_ns = site->cost.gain_high_ns + cost->others_ns;
	cost->gain_known = true;
	finding->fix = finding->detector->fix;
	finding->what = finding->detector->keep(f, site, finding, texts);
	if (finding->what && finding->detector->kernels)
		finding->what = arena_printf(texts, "%s%s", finding->what,
					     kernels_text(site, symbols, texts));
	return finding->what != NULL;
}

/* Asks the detectors which are findings. */
static size_t sift(struct finding *findings, size_t n, const struct findings *f,
		   struct symbolizer *symbols, struct arena *texts)
{
	size_t i, kept = 0;

	for (i = 0; i < n; i++)
		if (fill(&findings[i], f, symbols, texts))
			findings[kept++] = findings[i];
	return kept;
}

static int compare_calls(const struct finding_place *x, const struct finding_place *y)
{

	return COMPARE(x->offset, y->offset) ?: strcmp(x->module ?: "", y->module ?: "") ?:
	       strcmp(x->function, y->function);
}

/* Those of the same calls stand together, in the order they had. */
static int by_calls(const void *a, const void *b)
{
	const struct finding *x = *(struct finding *const *)a, *y = *(struct finding *const *)b;

	return compare_calls(&x->place, &y->place) ?: COMPARE(x, y);
}

/* Whose part the finding is. absorbers: by_calls. */
static struct finding *absorber_of(const struct finding *f, struct finding **absorbers, size_t n)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare_calls(&absorbers[middle]->place, &f->place) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < n && !compare_calls(&absorbers[low]->place, &f->place); low++)
		if (absorbers[low]->detector->absorbs == f->detector)
			return absorbers[low];
	return NULL;
}

/* One finding for a cause: what another one is part of goes into that. */
static size_t absorb(struct finding *findings, size_t n, const struct findings *f,
		     struct symbolizer *symbols, struct arena *texts)
{
	struct finding **absorbers = xcalloc(n, sizeof(struct finding *));
	size_t i, n_absorbers = 0, kept = 0;

	for (i = 0; i < n; i++)
		if (findings[i].detector->absorbs)
			absorbers[n_absorbers++] = &findings[i];
	qsort(absorbers, n_absorbers, sizeof(*absorbers), by_calls);
	for (i = 0; i < n; i++) {
		struct finding *whole = absorber_of(&findings[i], absorbers, n_absorbers);

		if (!whole)
			continue;
		site_join(whole->site, findings[i].site);
		fill(whole, f, symbols, texts);
		findings[i].what = NULL;
	}
	free(absorbers);
	for (i = 0; i < n; i++)
		if (findings[i].what)
			findings[kept++] = findings[i];
	return kept;
}

/* What its cure gives back and no other finding's does, and no more than it cost in the working phase; or for how long GPUs had nothing to do
 * because of it, where that is more. */
static uint64_t price_of(const struct finding *f)
{
	const struct cost *cost = &f->cost;
	uint64_t gain = cost_gain_ns(cost);

	gain -= min_u64(gain, cost->elsewhere_ns);
	if (f->recurrence.recurs)
		gain = min_u64(gain, f->recurrence.working_ns);
	return cost->idle_gpu_known ? max_u64(gain, cost->idle_gpu_ns) : gain;
}

/* Problems, then notes, then what is minor; of each, what ends all work, then the largest price first. */
static int by_price(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	uint64_t gain = price_of(x), other = price_of(y);

	return (int)finding_severity(x) - (int)finding_severity(y) ?:
	       (int)y->remarks.ends_all - (int)x->remarks.ends_all ?: COMPARE(other, gain) ?:
	       COMPARE(cost_ns(&y->cost), cost_ns(&x->cost)) ?:
	       strcmp(x->detector->id, y->detector->id) ?: same_place(x, y);
}

/* Of some of its calls. The cost of calls without a site is unknown: all are the same. */
static const struct site_stack *stacks_of(const struct finding *finding, struct arena *texts,
					  size_t *n)
{
	struct site_stack *stacks;

	if (finding->site) {
		*n = finding->site->stacks.n;
		return finding->site->stacks.all;
	}
	stacks = arena_take(texts, xcalloc(SITE_STACKS, sizeof(*stacks)));
	for (*n = 0; *n < finding->lookup.n_stacks && *n < SITE_STACKS; ++*n)
		stacks[*n] = (struct site_stack){.stack = finding->lookup.stacks[*n], .weight = 1};
	return stacks;
}

/* The lines of Python, and the stack that goes with the first. */
static bool find_python(struct finding_stacks *found, const struct site_stack *stacks, size_t n,
			struct arena *texts)
{
	struct costly_line *lines = arena_take(texts, xcalloc(SITE_STACKS, sizeof(*lines)));
	size_t count = python_lines(stacks, n, lines);

	found->python = lines;
	found->n_python = python_lines_shown(lines, count);
	found->n_minor_python = count - found->n_python;
	if (count)
		found->shown = lines[0].costliest;
	return count;
}

static const struct site_stack *heaviest(const struct site_stack *stacks, size_t n)
{
	const struct site_stack *most = &stacks[0];

	for (size_t i = 1; i < n; i++)
		if (stacks[i].weight > most->weight)
			most = &stacks[i];
	return most;
}

/* A place of the program, behind CUDA's code. */
struct behind {
	struct place place, entry; /* symbolize_caller */
	uint64_t weight;
	const struct site_stack *costliest;
};

static int by_weight(const void *a, const void *b)
{
	const struct behind *x = a, *y = b;

	return COMPARE(y->weight, x->weight) ?: COMPARE(x->place.offset, y->place.offset);
}

/* Each once, the heaviest first, without those that make next to nothing of the cost; returns how
 * many. */
static size_t places_behind(struct behind places[SITE_STACKS], const struct site_stack *stacks,
			    size_t n, struct symbolizer *symbols)
{
	struct behind here;
	size_t i, j, count = 0;
	uint64_t sum = 0;

	for (i = 0; i < n; i++) {
		here = (struct behind){.costliest = &stacks[i]};
		if (!symbolize_caller(symbols, stacks[i].stack, &here.place, &here.entry))
			continue;
		for (j = 0; j < count && (places[j].place.path != here.place.path ||
					  places[j].place.offset != here.place.offset);
		     j++)
			;
		if (j == count)
			places[count++] = here;
		places[j].weight += stacks[i].weight;
		sum += stacks[i].weight;
		if (stacks[i].cost_ns > places[j].costliest->cost_ns)
			places[j].costliest = &stacks[i];
	}
	if (count)
		qsort(places, count, sizeof(*places), by_weight);
	while (count > 1 && site_stacks_minor(places[count - 1].weight, sum))
		count--;
	return count;
}

/* The kernel that all of a site's calls launch; NULL: none, several, or the detector names them. */
static const char *only_kernel(const struct finding *finding, struct symbolizer *symbols)
{
	const struct site *site = finding->site;

	if (!site || finding->detector->kernels || site->more_kernels || !site->kernels[0] ||
	    site->kernels[1])
		return NULL;
	return demangle(symbols, site->kernels[0]);
}

/*
 * Kernels are launched from code that nvcc makes, and all launches of a kernel from the same;
 * without optimisation wrappers of CUDA's headers make calls, a runtime that was linked to the
 * program makes all of them, and libraries make calls that are not in the program's code.
 * Stacks tell where in the program that is; if there are several such places, the one that costs most is shown. Returns
 * the stack that goes with it; NULL: there is no such place.
 */
static const struct site_stack *find_caller(struct finding *finding,
					    const struct site_stack *stacks, size_t n,
					    struct symbolizer *symbols, struct arena *texts)
{
	struct behind places[SITE_STACKS];
	size_t count = finding->lookup.between ? places_behind(places, stacks, n, symbols) : 0;

	if (!count)
		return NULL;
	places[0].place.kernel = places[0].place.kernel ?: only_kernel(finding, symbols);
	if (places[0].entry.path)
		find_place_by(&finding->place, &places[0].entry, &places[0].place, texts);
	else
		find_place(finding, &places[0].place, texts);
	finding->place.elsewhere = count > 1;
	return places[0].costliest;
}

/* The costliest of the lines of Python is the program's place: what it called made the calls. */
static void find_python_place(struct finding *finding, struct symbolizer *symbols,
			      struct arena *texts)
{
	const struct costly_line *line = &finding->stacks.python[0];
	struct place place, entry;
	struct python_line by;

	if (!finding->lookup.between || !python_is_program(&line->at))
		return;
	symbolize_caller(symbols, line->costliest->stack, &place, &entry);
	entry.kernel = entry.kernel ?: only_kernel(finding, symbols);
	by = python_called(line->costliest->stack);
	finding->place.words = text_python_place(texts, &line->at, &by, &entry);
	finding->stacks.python_place = true;
}

/* In a thread of a framework's own: what of it called NVIDIA's library. */
static void find_framework(struct finding *finding, const struct stack *stack,
			   struct symbolizer *symbols, struct arena *texts)
{
	struct place place, entry;

	if (finding->lookup.between && !symbolize_caller(symbols, stack, &place, &entry) &&
	    place.path)
		find_place_by(&finding->place, &entry, &place, texts);
}

/* What stacks tell of a finding: where in the program, in which lines of Python, and which of them
 * to show. */
static void look_into_stacks(struct finding *finding, struct symbolizer *symbols,
			     struct arena *texts)
{
	const struct site_stack *stacks, *shown, *caller;
	bool python;
	size_t n;

	stacks = stacks_of(finding, texts, &n);
	if (!n)
		return;
	caller = find_caller(finding, stacks, n, symbols, texts);
	shown = caller ?: heaviest(stacks, n);
	python = find_python(&finding->stacks, stacks, n, texts);
	if (!python)
		finding->stacks.shown = shown;
	if (!python && !caller)
		find_framework(finding, shown->stack, symbols, texts);
	else if (!caller)
		find_python_place(finding, symbols, texts);
	if (!finding->site)
		finding->stacks.shown = NULL; /* what its call took is unknown */
}

/* In a library the user changes nothing, but what of it is called. */
static void find_cure(struct finding *finding, struct arena *texts)
{
	const char *cure = framework_cure(finding);

	if (cure)
		finding->fix = cure;
	else if (finding->place.library && finding->detector->fix_of_library)
		finding->fix = finding->detector->fix_of_library(finding->place.library, texts);
}

static bool is_small_case(const struct finding *f)
{
	return f->site && cost_ns(&f->cost) && !f->remarks.maybe_harmless && finding_minor(f);
}

/* A detector may count less of a site's costs, or more, than its verdicts did. */
static void add_part(struct thread_costs *sum, const struct finding *f, uint64_t ns)
{
	const struct thread_costs *costs = f->site ? &f->site->cost.threads : &f->cost.threads;

	if (cost_ns(&f->cost))
		thread_costs_join(sum, costs, (double)ns / (double)cost_ns(&f->cost));
}

/* The small cases of a detector. */
struct small_cases {
	struct finding *first; /* the costliest */
	struct thread_costs costs;
	uint64_t cases, ns;
};

static void add_case(struct small_cases *small, struct finding *f)
{
	if (!small->first || cost_ns(&f->cost) > cost_ns(&small->first->cost))
		small->first = f;
	small->cases++;
	small->ns += cost_ns(&f->cost);
	add_part(&small->costs, f, cost_ns(&f->cost));
}

static void show_sum(const struct accounting *a, struct small_cases *small)
{
	struct cost_share cost_share = cost_share_of(a, &small->costs, small->ns);

	if (small->cases < 2 || finding_little(small->ns, cost_share.share))
		return;
	small->first->similar =
		(struct similar_cases){.count = small->cases - 1,
				       .ns = small->ns - cost_ns(&small->first->cost),
				       .cost_share = cost_share};
	small->first->remarks.shown = true;
}

/* One fault at many places: each costs little, and all of them together do not. The costliest is
 * shown and says so. */
static void add_up(const struct accounting *a, struct finding *findings, size_t n)
{
	struct small_cases *sums = xcalloc(detector_rows, sizeof(*sums));

	for (size_t i = 0; i < n; i++)
		if (is_small_case(&findings[i]))
			add_case(&sums[findings[i].site->key.detector], &findings[i]);
	for (size_t i = 0; i < detector_rows; i++) {
		show_sum(a, &sums[i]);
		thread_costs_release(&sums[i].costs);
	}
	free(sums);
}

static void judge_stall(struct finding *finding, const struct accounting *a)
{
	struct recurrence *r = &finding->recurrence;

	*r = recurrence_of_costs(a, &finding->cost.threads);
	r->little |= r->cost_share.share < STALL_LEAST_SHARE;
}

/* What comes again is judged by the time in which it does; what does not is a note, unless it is wrong. */
static void judge_recurrence(struct finding *finding, const struct accounting *a)
{
	if (finding->site)
		finding->recurrence = recurrence_of(a, finding->site);
	else if (finding->detector->stalls)
		judge_stall(finding, a);
	if (recurrence_passes(&finding->recurrence))
		finding->remarks.once |= !finding->remarks.wrong;
	else if (finding->recurrence.recurs)
		finding->cost.cost_share = finding->recurrence.cost_share;
}

/* The cost for each thread is known; now the part of it that counts. */
static void weigh(struct finding *finding, const struct accounting *a)
{
	finding->cost.gain_known &= !finding->cost.unknown;
	finding->cost.cost_share = finding_cost_share(a, finding);
	judge_recurrence(finding, a);
}

/* What detectors find in the whole run. */
static void add_of_run(struct found *found, const struct ranks *ranks, struct symbolizer *symbols)
{
	const struct idle *idle = ranks->idle;
	const struct detector *detector;
	size_t i, n_sites = found->n;

	for (i = 0; (detector = detectors_row(i)); i++) {
		if (detector->conclude_calls)
			detector->conclude_calls(idle->accounts, found);
		if (detector->conclude_idle)
			detector->conclude_idle(idle, found);
		if (detector->conclude_ranks)
			detector->conclude_ranks(ranks, found);
	}
	for (i = n_sites; i < found->n; i++)
		place_added(&found->all[i], symbols, found->texts);
}

struct finding *findings_conclude(struct findings *f, const struct ranks *ranks,
				  struct symbolizer *symbols, struct arena *texts, size_t *n)
{
	const struct trace_set *set = f->accounts->model->set;
	struct found found = {.texts = texts};
	struct site *site, *next;

	sites_settle(f->accounts);
	HASH_ITER (hh, f->sites, site, next) {
		if (!site->count) /* all claims were let go */
			continue;
		found.all = grow(found.all, found.n, sizeof(*found.all));
		found.all[found.n++] = from_site(site, f->accounts, symbols, texts);
	}
	if (found.n) {
		found.n = merge_everywhere(found.all, merge(found.all, found.n));
		found.n = absorb(found.all, sift(found.all, found.n, f, symbols, texts), f, symbols,
				 texts);
	}
	idle_price_sites(f, ranks->idle, found.all, found.n, texts);
	add_of_run(&found, ranks, symbols);
	for (size_t i = 0; i < found.n; i++) {
		if (set->n_hosts == 1)
			found.all[i].origin.host = &set->hosts[0];
		weigh(&found.all[i], f->accounts);
		look_into_stacks(&found.all[i], symbols, texts);
		find_cure(&found.all[i], texts);
		finding_name_profiler(&found.all[i], ranks->idle, texts);
	}
	findings_join_ranks(&found, ranks);
	add_up(f->accounts, found.all, found.n);
	findings_name_causes(found.all, found.n, texts);
	if (found.n)
		qsort(found.all, found.n, sizeof(*found.all), by_price);
	*n = found.n;
	return found.all;
}

void findings_free(struct finding *findings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		thread_costs_release(&findings[i].cost.threads);
	free(findings);
}

/* ---- what matters --------------------------------------------------------------------------- */

struct cost_share site_cost_share(const struct accounting *a, const struct site *site)
{
	return cost_share_of(a, &site->cost.threads,
			     site->cost.own_ns + (uint64_t)site->cost.others_ns);
}

struct cost_share finding_cost_share(const struct accounting *a, const struct finding *f)
{
	return cost_share_of(a, f->site ? &f->site->cost.threads : &f->cost.threads,
			     cost_ns(&f->cost));
}

void finding_add_gains(struct thread_costs *sum, const struct finding *f)
{
	add_part(sum, f, cost_gain_ns(&f->cost));
}

bool finding_little(uint64_t ns, double share)
{
	return ns < MINOR_NS || share < MINOR_SHARE;
}

/* That part of its cost share. */
static double gain_share(const struct cost *cost)
{
	uint64_t ns = cost_ns(cost);

	return ns ? cost->cost_share.share * (double)cost_gain_ns(cost) / (double)ns : 0;
}

/* A finding of unknown cost is not minor: it might be large. */
bool finding_minor(const struct finding *f)
{
	return f->remarks.joined || (!f->cost.unknown && !f->remarks.wrong &&
				     finding_little(cost_ns(&f->cost), f->cost.cost_share.share));
}

bool finding_gains_little(const struct finding *f)
{
	return !f->cost.unknown && !f->remarks.wrong && !finding_minor(f) &&
	       finding_little(cost_gain_ns(&f->cost), gain_share(&f->cost));
}

bool finding_problem(const struct finding *f)
{
	return !f->cost.unknown && !f->remarks.maybe_harmless && !f->remarks.once &&
	       !f->remarks.not_ours && !f->remarks.counted && !finding_minor(f) &&
	       !finding_gains_little(f);
}

enum severity finding_severity(const struct finding *f)
{
	if (finding_problem(f))
		return SEVERITY_PROBLEM;
	return f->remarks.shown || !finding_minor(f) ? SEVERITY_NOTE : SEVERITY_MINOR;
}
