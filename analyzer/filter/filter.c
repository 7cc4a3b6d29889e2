/*
 * analyzer/filter/filter.c: a filter at work on a trace set: names looked up, times found, and for each record whether
 * it is in. Called by the verbs' one loop over all records.
 */
#include <errno.h>
#include <stdlib.h>
#include "filter.h"
#include "base/suggest.h"
#include "base/format.h"

enum filter_answer { ANSWER_UNKNOWN, ANSWER_IN, ANSWER_OUT };

/* ---- what there is --------------------------------------------------------------------------- */

#define SHOWN 12 /* names that a message lists */

/* For "there are: a, b, c and 4 more". */
struct listing {
	char **all; /* owned */
	size_t n;
};

/* Takes the text. */
static void list_add(struct listing *l, char *text)
{
	l->all = grow(l->all, l->n, sizeof(char *));
	l->all[l->n++] = text;
}

static int by_name(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	size_t n = strlen(x), m = strlen(y);

	if (*x >= '0' && *x <= '9' && *y >= '0' && *y <= '9' && n != m) /* numbers, by value */
		return n < m ? -1 : 1;
	return strcmp(x, y);
}

/* In order, each name once. */
static void list_sort(struct listing *l)
{
	size_t i, n = 0;

	if (l->n)
		qsort(l->all, l->n, sizeof(char *), by_name);
	for (i = 0; i < l->n; i++) {
		if (n && !strcmp(l->all[n - 1], l->all[i]))
			free(l->all[i]);
		else
			l->all[n++] = l->all[i];
	}
	l->n = n;
}

static char *join(const struct listing *l)
{
	char *text = xstrdup(""), *longer;

	for (size_t i = 0; i < l->n && i < SHOWN; i++) {
		longer = xasprintf("%s%s%s", text, i ? ", " : "", l->all[i]);
		free(text);
		text = longer;
	}
	if (l->n <= SHOWN)
		return text;
	longer = xasprintf("%s and %zu more", text, l->n - SHOWN);
	free(text);
	return longer;
}

static const char *thread_label(const struct survey_thread *thread)
{
	const struct survey_name *name, *best = NULL;

	for (name = thread->names; name; name = name->next)
		if (!best || name->given)
			best = name;
	return best ? best->name : "";
}

static void list_threads(const struct filtering *f, struct listing *l)
{
	const struct survey_thread *thread;

	for (thread = f->survey.threads; thread; thread = thread->hh.next)
		list_add(l, *thread_label(thread) ? xstrdup(thread_label(thread))
						  : xasprintf("%u", survey_tid(thread)));
}

static void list_functions(const struct filtering *f, struct listing *l)
{
	for (uint32_t fn = 0; fn < f->survey.n_functions; fn++)
		if (f->survey.functions[fn] & SURVEY_CALLED)
			list_add(l, xstrdup(f->set->functions.all[fn].name));
}

static void list_ranges(const struct filtering *f, struct listing *l)
{
	const struct range_names *names = &f->survey.ranges;

	for (size_t i = 0; i < names->n; i++) {
		const struct range_name *shown = range_shown(names->all[i]);

		/* Not the name for those unknown; families are shown in place of their members. */
		if (names->all[i] != names->unknown && !names->all[i]->members)
			list_add(l, xasprintf("%s%s%s", shown->domain, *shown->domain ? ":" : "",
					      shown->name));
	}
}

static void list_kind(const struct filtering *f, enum filter_kind kind, struct listing *l)
{
	switch (kind) {
	case FILTER_THREAD:
		list_threads(f, l);
		break;
	case FILTER_GPU:
		for (size_t i = 0; i < SURVEY_DEVICES; i++)
			if (f->survey.devices[i])
				list_add(l, xasprintf("%zu", i));
		break;
	case FILTER_RANK:
		for (size_t i = 0; i < f->survey.n_ranks; i++)
			list_add(l, xasprintf("%u", f->survey.ranks[i].number));
		break;
	case FILTER_PROCESS:
		for (size_t i = 0; i < f->set->n_traces; i++)
			list_add(l, xasprintf("%s (%u)", f->set->traces[i]->program,
					      f->set->traces[i]->pid));
		break;
	case FILTER_FUNCTION:
		list_functions(f, l);
		break;
	case FILTER_RANGE:
		list_ranges(f, l);
		break;
	default:
		break;
	}
}

/* "no thread 'worker' (there are: loader, main)". */
static int no_such(const struct filtering *f, enum filter_kind kind, const char *what)
{
	struct listing l = {0};
	char *text;

	struct suggest suggest = {.word = what};
	char meant[SUGGEST_TEXT];
	size_t i;

	list_kind(f, kind, &l);
	for (i = 0; i < l.n; i++)
		suggest_try(&suggest, l.all[i]);
	suggest_text(&suggest, meant);
	list_sort(&l);
	text = join(&l);
	warn("--%s=%s: no %s%s '%s'%s (%s%s)", filter_option(kind), f->filter->words.of[kind],
	     kind == FILTER_GPU ? "GPU" : filter_option(kind),
	     kind == FILTER_FUNCTION ? " was called that is named" : "", what,
	     suggest.best ? meant : "", l.n ? "there are: " : "there are none in these traces",
	     text);
	free(text);
	while (l.n)
		free(l.all[--l.n]);
	free(l.all);
	return -EINVAL;
}

/* ---- finding ---------------------------------------------------------------------------------- */

static bool item_fits_thread(const char *item, const struct survey_thread *thread)
{
	if (filter_item_is(item, survey_tid(thread)) ||
	    (!thread->names && filter_item_fits(item, "")))
		return true;
	for (const struct survey_name *name = thread->names; name; name = name->next)
		if (filter_item_fits(item, name->name))
			return true;
	return false;
}

static bool item_fits_process(const char *item, const struct trace *trace)
{
	return filter_item_is(item, trace->pid) || filter_item_fits(item, trace->program);
}

/* How many things of a kind does the item mean? */
static uint64_t count_item(const struct filtering *f, enum filter_kind kind, const char *item)
{
	const struct range_names *ranges = &f->survey.ranges;
	const struct survey_thread *thread;
	uint64_t n = 0;

	switch (kind) {
	case FILTER_THREAD:
		for (thread = f->survey.threads; thread; thread = thread->hh.next)
			n += item_fits_thread(item, thread);
		break;
	case FILTER_PROCESS:
		for (size_t i = 0; i < f->set->n_traces; i++)
			n += item_fits_process(item, f->set->traces[i]);
		break;
	case FILTER_FUNCTION:
		for (size_t i = 0; i < f->survey.n_functions; i++)
			n += f->survey.functions[i] &&
			     filter_item_fits(item, f->set->functions.all[i].name);
		break;
	default:
		for (size_t i = 0; i < ranges->n; i++)
			n += ranges->all[i] != ranges->unknown && !ranges->all[i]->members &&
			     range_matches(ranges->all[i], item);
		break;
	}
	return n;
}

static uint64_t count_numbers(const struct filtering *f, enum filter_kind kind,
			      const struct filter_numbers *numbers)
{
	uint64_t n = 0;

	if (kind == FILTER_GPU) {
		for (size_t i = numbers->from; i <= numbers->to && i < SURVEY_DEVICES; i++)
			n += f->survey.devices[i];
		return n;
	}
	for (size_t i = 0; i < f->survey.n_ranks; i++)
		n += f->survey.ranks[i].number >= numbers->from &&
		     f->survey.ranks[i].number <= numbers->to;
	return n;
}

/* Does each item of the kind mean something? */
static int find_items(struct filtering *f, enum filter_kind kind)
{
	const struct filter *filter = f->filter;
	char what[32];

	for (size_t i = 0; i < filter->n[kind]; i++) {
		const struct filter_numbers *numbers =
			filter->numbers[kind] ? &filter->numbers[kind][i] : NULL;
		uint64_t n = numbers ? count_numbers(f, kind, numbers)
				     : count_item(f, kind, filter->items[kind][i]);

		f->found[kind] += n;
		if (n)
			continue;
		if (!numbers)
			return no_such(f, kind, filter->items[kind][i]);
		if (numbers->from == numbers->to)
			snprintf(what, sizeof(what), "%u", numbers->from);
		else
			snprintf(what, sizeof(what), "%u-%u", numbers->from, numbers->to);
		return no_such(f, kind, what);
	}
	return 0;
}

/* Most processes are one rank, whatever their GPU. */
static void find_ranks(struct filtering *f)
{
	f->ranks = xcalloc(f->survey.n_ranks + 1, sizeof(*f->ranks));
	f->ranks_of = xcalloc(f->set->n_traces + 1, sizeof(*f->ranks_of));
	memset(f->ranks_of, ANSWER_OUT, f->set->n_traces);
	for (size_t i = 0; i < f->survey.n_ranks; i++) {
		const struct survey_rank *rank = &f->survey.ranks[i];

		f->ranks[i] = filter_fits_number(f->filter, FILTER_RANK, rank->number);
		if (!rank->whole)
			f->ranks_of[rank->process] = ANSWER_UNKNOWN;
		else if (f->ranks[i])
			f->ranks_of[rank->process] = ANSWER_IN;
	}
}

static int find_all(struct filtering *f)
{
	int err = 0;

	for (unsigned int kind = 0; kind < FILTER_FROM && !err; kind++)
		err = find_items(f, kind);
	f->processes = xcalloc(f->set->n_traces + 1, sizeof(*f->processes));
	for (size_t i = 0; i < f->set->n_traces; i++)
		for (size_t j = 0; j < f->filter->n[FILTER_PROCESS]; j++)
			f->processes[i] |= item_fits_process(f->filter->items[FILTER_PROCESS][j],
							     f->set->traces[i]);
	find_ranks(f);
	return err;
}

/* ---- times ------------------------------------------------------------------------------------ */

static bool is_phase(const struct filter_time *time)
{
	return time->form == FILTER_TIME_PHASE;
}

bool filter_needs_phase(const struct filter *filter)
{
	return filter && (is_phase(&filter->from) || is_phase(&filter->to));
}

/* From the first begin of a process's working phase to the last end. */
static struct phase phase_of_all(const struct filtering *f, const struct phases *phases)
{
	struct phase all = {.begin_ns = UINT64_MAX};

	for (size_t i = 0; i < phases->n; i++) {
		if (!phases->all[i].found)
			continue;
		all.found = true;
		all.begin_ns = min_u64(all.begin_ns, phases->all[i].begin_ns);
		all.end_ns = max_u64(all.end_ns, phases->all[i].end_ns);
	}
	if (!all.found)
		all = (struct phase){.begin_ns = f->survey.first_ns, .end_ns = f->survey.last_ns};
	return all;
}

static uint64_t time_of(const struct filtering *f, const struct filter_time *time,
			uint64_t phase_ns, uint64_t otherwise_ns)
{
	uint64_t all_ns = f->survey.last_ns - f->survey.first_ns;

	switch (time->form) {
	case FILTER_TIME_NS:
		return f->survey.first_ns + time->ns;
	case FILTER_TIME_PART:
		/* All of it has the last record in it. */
		return time->part >= 1
			       ? otherwise_ns
			       : f->survey.first_ns + (uint64_t)(time->part * (double)all_ns);
	case FILTER_TIME_PHASE:
		return phase_ns;
	default:
		return otherwise_ns;
	}
}

static int empty_window(const struct filtering *f, enum filter_kind kind, uint64_t ns,
			const char *why)
{
	char at[32], whole[32];

	format_ns(at, sizeof(at), ns - min_u64(ns, f->survey.first_ns));
	format_ns(whole, sizeof(whole), f->survey.last_ns - f->survey.first_ns);
	warn("--%s=%s: t = %s %s; the recording is %s long", filter_option(kind),
	     f->filter->words.of[kind], at, why, whole);
	return -EINVAL;
}

static int find_window(struct filtering *f, const struct phases *phases)
{
	const struct filter *filter = f->filter;
	struct phase phase = {0};

	if (filter_needs_phase(filter)) {
		phase = phase_of_all(f, phases);
		f->no_phase = !phase.found;
	}
	f->from_ns = time_of(f, &filter->from, phase.begin_ns,
			     filter_has(f, FILTER_FROM) ? f->survey.last_ns + 1 : 0);
	f->to_ns = time_of(f, &filter->to, phase.end_ns + 1, UINT64_MAX);
	if (f->from_ns > f->survey.last_ns)
		return empty_window(f, FILTER_FROM, f->from_ns, "is behind the end");
	if (f->to_ns <= f->survey.first_ns)
		return empty_window(f, FILTER_TO, f->to_ns, "is not behind the begin");
	if (f->from_ns >= f->to_ns)
		return empty_window(f, FILTER_TO, f->to_ns, "is not behind --from");
	return 0;
}

void filtering_cut(const struct filtering *f, struct phases *phases)
{
	for (size_t i = 0; i < phases->n && filter_has_window(f); i++) {
		const struct survey_span *span = &f->survey.processes[i];
		struct phase *phase = &phases->all[i];
		uint64_t first_ns = max_u64(f->from_ns, min_u64(span->first_ns, span->last_ns));
		uint64_t last_ns = min_u64(f->to_ns - 1, span->last_ns);

		/* Without a working phase in it, all of the time is that. */
		if (phase->found && phase->begin_ns <= last_ns && phase->end_ns >= first_ns) {
			first_ns = max_u64(first_ns, phase->begin_ns);
			last_ns = min_u64(last_ns, phase->end_ns);
		}
		*phase = (struct phase){.begin_ns = first_ns,
					.end_ns = max_u64(first_ns, last_ns),
					.step_ns = phase->step_ns,
					.step_work = phase->step_work,
					.steps_sure = phase->steps_sure,
					.found = true,
					.cut = true};
	}
}

/* ---- begin and end ----------------------------------------------------------------------------- */

int filtering_begin(struct filtering *f, const struct filter *filter, struct trace_set *set,
		    const struct phases *phases)
{
	int err;

	*f = (struct filtering){.set = set, .to_ns = UINT64_MAX};
	if (!filter || !filter->kinds)
		return 0;
	f->filter = filter;
	f->kinds = filter->kinds;
	survey_make(&f->survey, set);
	err = find_all(f);
	return err ?: find_window(f, phases);
}

void filtering_end(struct filtering *f)
{
	survey_release(&f->survey);
	free(f->processes);
	free(f->ranks);
	free(f->ranks_of);
	free(f->threads);
	free(f->functions);
	free(f->devices);
	*f = (struct filtering){0};
}

/* ---- parts of the set --------------------------------------------------------------------------- */

void filtering_copy(struct filtering *f, const struct filtering *whole)
{
	*f = *whole;
	f->threads = f->functions = f->devices = NULL;
	f->n_threads = f->n_functions = f->n_devices = 0;
	memset(f->outside, 0, sizeof(f->outside));
	f->left_out = (struct filter_sum){0};
	f->counted = 0;
}

void filtering_release_copy(struct filtering *f)
{
	free(f->threads);
	free(f->functions);
	free(f->devices);
}

/* struct filtering, joined: outside, left_out, counted; not: filter, kinds, set, from_ns, to_ns, no_phase, survey, processes, ranks,
 * ranks_of, found (copied from the whole), threads, functions, n_threads, n_functions, devices, n_devices (answers so far,
 * which come again). */
void filtering_join(struct filtering *f, struct filtering *const *parts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct filtering *part = parts[i];

		for (size_t kind = 0; kind < FILTER_KINDS; kind++) {
			f->outside[kind].calls += part->outside[kind].calls;
			f->outside[kind].ns += part->outside[kind].ns;
		}
		f->left_out.calls += part->left_out.calls;
		f->left_out.ns += part->left_out.ns;
		f->counted = add_capped(f->counted, part->counted);
	}
}

/* ---- records ------------------------------------------------------------------------------------ */

static uint8_t *answer_at(uint8_t **answers, size_t *n, size_t index, uint8_t unknown)
{
	while (*n <= index) {
		*answers = grow(*answers, *n, 1);
		(*answers)[(*n)++] = unknown;
	}
	return &(*answers)[index];
}

/* By all names that the program ever gives it; by the system's name it has now, as its number may have been another
 * thread's. */
static bool look_up_thread(const struct filtering *f, const struct thread *thread)
{
	const struct survey_thread *found =
		survey_find_thread(&f->survey, thread->process->trace->index, thread->tid);
	const struct survey_name *name = found ? found->names : NULL;

	if (filter_fits_number(f->filter, FILTER_THREAD, thread->tid) ||
	    filter_fits_name(f->filter, FILTER_THREAD, thread->name))
		return true;
	for (; name; name = name->next)
		if ((name->given || !thread->name[0]) &&
		    filter_fits_name(f->filter, FILTER_THREAD, name->name))
			return true;
	return false;
}

static bool has_thread(struct filtering *f, const struct thread *thread)
{
	uint8_t *answer;

	if (!filter_has(f, FILTER_THREAD))
		return true;
	answer = answer_at(&f->threads, &f->n_threads, thread->index, ANSWER_UNKNOWN);
	if (*answer == ANSWER_UNKNOWN)
		*answer = look_up_thread(f, thread) ? ANSWER_IN : ANSWER_OUT;
	return *answer == ANSWER_IN;
}

static bool has_function(struct filtering *f, uint32_t fn)
{
	uint8_t *answer;

	if (!filter_has(f, FILTER_FUNCTION))
		return true;
	if (fn == FILTER_NO_FUNCTION)
		return false;
	answer = answer_at(&f->functions, &f->n_functions, fn, ANSWER_UNKNOWN);
	if (*answer == ANSWER_UNKNOWN)
		*answer =
			filter_fits_name(f->filter, FILTER_FUNCTION, f->set->functions.all[fn].name)
				? ANSWER_IN
				: ANSWER_OUT;
	return *answer == ANSWER_IN;
}

/* device: SPY_DEVICE_NONE: of none, or of an unknown one. */
static bool has_rank(const struct filtering *f, size_t process, uint8_t device)
{
	if (!filter_has(f, FILTER_RANK))
		return true;
	if (f->ranks_of[process] != ANSWER_UNKNOWN)
		return f->ranks_of[process] == ANSWER_IN;
	for (size_t i = 0; i < f->survey.n_ranks; i++) {
		const struct survey_rank *rank = &f->survey.ranks[i];

		if (f->ranks[i] && rank->process == process && rank->device == device)
			return true;
	}
	return false;
}

static bool has_gpu(const struct filtering *f, uint8_t device)
{
	return !filter_has(f, FILTER_GPU) ||
	       (device != SPY_DEVICE_NONE && filter_fits_number(f->filter, FILTER_GPU, device));
}

bool filter_has_gpu(const struct filtering *f, size_t process, uint8_t device)
{
	if (!f->kinds)
		return true;
	return has_gpu(f, device) && has_rank(f, process, device) &&
	       (!filter_has(f, FILTER_PROCESS) || f->processes[process]);
}

/* The application's call that the record is, or is of. */
static uint32_t function_of(const struct filtering *f, const struct record *record)
{
	struct trace *trace = record->stream->trace;

	if (record_is_call(record) || record->event == SPY_EV_COUNT)
		return record->fn;
	switch (record->event) {
	case SPY_EV_WAIT:
		return trace_function(f->set, trace, decode_wait(record).outer_fn);
	case SPY_EV_TAKEN:
	case SPY_EV_RELEASED:
	case SPY_EV_HELD:
		return trace_function(f->set, trace, decode_lock(record).outer_fn);
	case SPY_EV_STACK:
		return trace_function(f->set, trace, record_stack(record)->fn);
	case SPY_EV_PYTHON_STACK:
		return trace_function(f->set, trace, record_python_stack(record)->fn);
	default:
		return FILTER_NO_FUNCTION;
	}
}

/* What does not say it itself, as calls inside others, was made with the device that was current before. */
static uint8_t device_of(struct filtering *f, const struct record *record)
{
	uint8_t device = SPY_DEVICE_NONE, *now;

	if (record->event == SPY_EV_GPU_OP)
		return record_gpu_op(record)->device;
	if (record->event == SPY_EV_GPU)
		return (uint8_t)min_u64(record_gpu(record)->device, SPY_DEVICE_NONE);
	now = answer_at(&f->devices, &f->n_devices, record->thread->index, SPY_DEVICE_NONE);
	if (record_is_call(record))
		device = record->device;
	else if (record->event == SPY_EV_WAIT)
		device = decode_wait(record).device;
	if (device != SPY_DEVICE_NONE || (record_is_outer_call(record)))
		*now = device;
	return *now;
}

unsigned int filter_outside(struct filtering *f, const struct record *record)
{
	unsigned int outside = 0;
	uint8_t device;

	if (!f->kinds)
		return 0;
	outside |= (unsigned int)(record->ns < f->from_ns) << FILTER_FROM;
	outside |= (unsigned int)(record->ns >= f->to_ns) << FILTER_TO;
	outside |= (unsigned int)!has_thread(f, record->thread) << FILTER_THREAD;
	if (filter_has(f, FILTER_PROCESS))
		outside |= (unsigned int)!f->processes[record->process] << FILTER_PROCESS;
	if (filter_has(f, FILTER_GPU) || filter_has(f, FILTER_RANK)) {
		device = device_of(f, record);
		outside |= (unsigned int)!has_gpu(f, device) << FILTER_GPU;
		outside |= (unsigned int)!has_rank(f, record->process, device) << FILTER_RANK;
	}
	if (filter_has(f, FILTER_FUNCTION))
		outside |= (unsigned int)!has_function(f, function_of(f, record))
			   << FILTER_FUNCTION;
	return outside;
}

/* Of these it is unknown when they were made, and with which GPU. */
#define TIMED (1u << FILTER_GPU | 1u << FILTER_RANGE | 1u << FILTER_FROM | 1u << FILTER_TO)

unsigned int filter_outside_counted(struct filtering *f, size_t process,
				    const struct thread *thread, uint32_t fn)
{
	unsigned int outside = f->kinds & TIMED;

	if (!f->kinds)
		return 0;
	if (filter_has(f, FILTER_THREAD) && (!thread || !has_thread(f, thread)))
		outside |= 1u << FILTER_THREAD;
	if (filter_has(f, FILTER_PROCESS) && !f->processes[process])
		outside |= 1u << FILTER_PROCESS;
	if (!has_rank(f, process, SPY_DEVICE_NONE))
		outside |= 1u << FILTER_RANK;
	if (!has_function(f, fn))
		outside |= 1u << FILTER_FUNCTION;
	return outside;
}

void filter_count(struct filtering *f, unsigned int outside, uint64_t duration_ns)
{
	f->left_out.calls++;
	f->left_out.ns += duration_ns;
	for (unsigned int kind = 0; kind < FILTER_KINDS; kind++) {
		if (!(outside >> kind & 1))
			continue;
		f->outside[kind].calls++;
		f->outside[kind].ns += duration_ns;
	}
}
