/*
 * analyzer/sections/idle_causes.c: what time was charged to, with places in words. Called by gpus.c and ranks.c, after the last
 * record.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "idle/callers.h"
#include "text/text.h"
#include "text/where.h"
#include "base/lines.h"
#include "base/median.h"

/* ---- rows ------------------------------------------------------------------------------------ */

struct cause_row {
	const char *cause, *site, *name, *text;
	const char *function; /* that a sample found, without the line; NULL: none, or nameless */
	unsigned int more_lines; /* of that function, beside the one of `site` */
	const char *holder_cause, *holder_site;
	const char *meanwhile; /* where another thread ran; NULL: unknown */
	struct in_c c; /* of its lines of Python */
	const char *
		in_c; /* where most of their time was, "the interpreter" or a function of a library; NULL: unknown */
	int64_t in_c_ppm; /* of the time */
	uint64_t ns, holder;
};

static const struct column columns[] = {
	COLUMN_TEXT(struct cause_row, text, ""),
	COLUMN_JSON(struct cause_row, cause, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, ns, UNIT_NS),
	COLUMN_JSON(struct cause_row, site, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, name, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, holder, UNIT_PLAIN),
	COLUMN_JSON(struct cause_row, holder_cause, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, holder_site, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, meanwhile, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, in_c, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, in_c_ppm, UNIT_PPM),
};

#define KIND(key_) \
	{ \
		TABLE(key_, "", struct cause_row, columns), .text_rows = 5 \
	}

const struct table_kind idle_causes_kind = KIND("idle_causes");
const struct table_kind feeder_causes_kind = KIND("feeder_causes");
const struct table_kind rank_causes_kind = KIND("causes");

/* ---- sums ------------------------------------------------------------------------------------ */

/* Of a place those without a line come first. */
static int by_place(const void *a, const void *b)
{
	const struct idle_sum_key *x = &(*(const struct idle_sum *const *)a)->key;
	const struct idle_sum_key *y = &(*(const struct idle_sum *const *)b)->key;

	return COMPARE(x->owner, y->owner) ?: COMPARE(x->cause, y->cause) ?:
	       COMPARE(x->address, y->address) ?: COMPARE(x->process, y->process) ?:
	       COMPARE(x->code, y->code) ?: COMPARE(x->line, y->line);
}

void idle_writer_init(struct idle_writer *w, struct arena *texts, const struct idle *idle,
		      struct symbolizer *symbols)
{
	const struct idle_sum *sum = idle->sums.by_key;

	*w = (struct idle_writer){.texts = texts, .idle = idle, .symbols = symbols};
	w->sums = xcalloc(HASH_COUNT(idle->sums.by_key) + 1, sizeof(*w->sums));
	for (; sum; sum = sum->hh.next)
		w->sums[w->n_sums++] = sum;
	qsort(w->sums, w->n_sums, sizeof(*w->sums), by_place);
}

void idle_writer_release(struct idle_writer *w)
{
	free(w->sums);
}

/* The first of an owner; n_sums: none of it, nor behind. */
static size_t first_of(const struct idle_writer *w, uint64_t owner)
{
	size_t low = 0, high = w->n_sums, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (w->sums[middle]->key.owner < owner)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Without what is between its brackets, which for templates is many lines: "rank(..)". */
static const char *short_name(const struct idle_writer *w, const char *function)
{
	return function ? arena_take(w->texts, shorten_names(function, 3)) : NULL;
}

/* "main, app.c:12", "app+0x1234"; NULL: unknown. */
static const char *words_of(const struct idle_writer *w, const struct place *place)
{
	const char *function = short_name(w, place->inner ?: place->function);

	if (place->path && place->file)
		return arena_printf(w->texts, "%s, %s:%d", function ?: "?",
				    path_basename(place->file), place->line);
	if (place->path && function)
		return arena_printf(w->texts, "%s (%s)", function, path_basename(place->path));
	return place->path ? arena_printf(w->texts, "%s+0x%llx", path_basename(place->path),
					  (unsigned long long)place->offset)
			   : NULL;
}

static const char *place_words(const struct idle_writer *w, const struct process *process,
			       const struct stack *stack, uint64_t address, uint64_t ns)
{
	struct place place, entry;

	if (!address)
		return NULL;
	symbolize_program(w->symbols, process, address, ns, stack, &place, &entry);
	return words_of(w, &place);
}

/* Of a call or a wait: its line of Python, or else its place. */
static const char *site_words(const struct idle_writer *w, const struct process *process,
			      uint32_t fn, const struct stack *stack, uint64_t address, uint64_t ns)
{
	struct python_line line = python_line(stack);
	const char *words = text_python(w->texts, &line), *function;

	if (words)
		return words;
	words = place_words(w, process, stack, address, ns);
	function = text_function(w->idle->accounts->model->set, fn);
	if (!function)
		return words;
	return words ? arena_printf(w->texts, "%s in %s", function, words) : function;
}

/* One end of a time on a CPU, in few words: "train.py:17", "copy.c:25", "cudaMalloc (app+0x12)". */
static const char *end_words(const struct idle_writer *w, const struct process *process,
			     uint32_t fn, const struct stack *stack, uint64_t address, uint64_t ns)
{
	struct python_line line = python_line(stack);
	const char *function = text_function(w->idle->accounts->model->set, fn);
	struct place place = {0}, entry;

	if (line.code && line.line)
		return arena_printf(w->texts, "%s:%u", path_basename(line.code->file), line.line);
	if (address)
		symbolize_program(w->symbols, process, address, ns, stack, &place, &entry);
	if (place.path && place.file)
		return arena_printf(w->texts, "%s:%d", path_basename(place.file), place.line);
	if (place.kernel)
		return arena_printf(w->texts, "%s of %s", function, place.kernel);
	return place.path
		       ? arena_printf(w->texts, "%s (%s+0x%llx)", function,
				      path_basename(place.path), (unsigned long long)place.offset)
		       : function;
}

/* Where a sample found the thread: "train.py:21 in save: torch.save", "load, app.c:12: memmove". */
static const char *sampled_words(const struct idle_writer *w, const struct process *process,
				 const struct idle_part *part)
{
	struct python_line line = python_line(part->stack), called = python_called(part->stack);
	const char *words = text_python(w->texts, &line), *library = NULL;
	struct place place, entry = {0};

	if (words) {
		library = called.code ? text_python_called(w->texts, &called) : NULL;
	} else {
		symbolize_program(w->symbols, process, part->address, part->at_ns, part->stack,
				  &place, &entry);
		words = words_of(w, &place);
		if (place.file && place.inner && place.function)
			words = arena_printf(w->texts, "%s, inlined in %s", words,
					     short_name(w, place.function));
		library = entry.path ? short_name(w, entry.function) ?: path_basename(entry.path)
				     : NULL;
	}
	return words && library ? arena_printf(w->texts, "%s: %s", words, library) : words;
}

/* The function of Python that the stack's line stands in, and what it called of a package: "/home/a.py save: torch.save". */
static const char *python_function(const struct idle_writer *w, const struct stack *stack)
{
	struct python_line line = python_line(stack), called = python_called(stack);

	if (!line.code || !line.code->function)
		return NULL;
	return arena_printf(w->texts, "%s %.*s: %s", line.code->file,
			    (int)python_name_length(line.code), line.code->function,
			    called.code ? text_python_called(w->texts, &called) : "");
}

/* What a sample found, without the line: "load: memmove", and what it is inlined in. NULL: no sample did, or it has no name; or
 * it waited: each line that waits is a place. */
static const char *sampled_function(const struct idle_writer *w, const struct process *process,
				    const struct idle_part *part)
{
	struct place place, entry;

	if (part->fn != NO_FUNCTION || !part->stack)
		return NULL;
	if (part->stack->n_python)
		return idle_runs_python(part->cause) ? python_function(w, part->stack) : NULL;
	if (!part->stack->function)
		return NULL;
	symbolize_program(w->symbols, process, part->address, part->at_ns, part->stack, &place,
			  &entry);
	if (!place.function)
		return NULL;
	return arena_printf(w->texts, "%s in %s: %s", place.inner ?: "", place.function,
			    entry.function ?: "");
}

/* A time on a CPU lies between two calls. */
static const char *between(const struct idle_writer *w, const struct process *process,
			   const struct idle_part *part)
{
	const char *before, *behind, *function;

	if (part->fn == NO_FUNCTION)
		return part->stack ? sampled_words(w, process, part) : NULL;
	behind = end_words(w, process, part->fn, part->stack, part->address, part->at_ns);
	if (part->fn_before == NO_FUNCTION)
		return arena_printf(w->texts, "before %s", behind);
	before = end_words(w, process, part->fn_before, part->stack_before, part->address_before,
			   part->at_ns);
	function = text_function(w->idle->accounts->model->set, part->fn);
	if (before && behind && !strcmp(before, behind))
		return arena_printf(w->texts, "between calls %s %s",
				    strstr(behind, function ?: "?") == behind ? "of" : "at",
				    behind);
	return arena_printf(w->texts, "between %s and %s", before, behind);
}

/* "on_host, app.c:3, put into a stream by cudaLaunchHostFunc in main, app.c:15". */
static const char *function_words(const struct idle_writer *w, const struct process *process,
				  const struct idle_part *part)
{
	const char *function =
		place_words(w, process, NULL, idle_function_address(part), part->at_ns);
	const char *site =
		site_words(w, process, part->fn, part->stack, part->address, part->at_ns);

	return arena_printf(w->texts, "%s, put into a stream by %s", function ?: "unknown", site);
}

const char *idle_part_place(const struct idle_writer *w, const struct process *process,
			    const struct idle_part *part)
{
	if (idle_runs_python(part->cause) || part->cause == IDLE_CPU ||
	    (part->cause == IDLE_UNEXPLAINED && part->fn_before != NO_FUNCTION))
		return between(w, process, part);
	if (part->cause == IDLE_HOST_FUNCTION && part->object)
		return function_words(w, process, part);
	return site_words(w, process, part->fn, part->stack, part->address, part->at_ns);
}

bool idle_part_lies(struct subject_place *place, const struct process *process,
		    const struct idle_part *part)
{
	if (part->fn != NO_FUNCTION && !idle_in_a_call(part->cause))
		return false;
	return place->lies_there(place, process, part->stack, part->address, part->at_ns);
}

static const char *site_of(const struct idle_writer *w, const struct idle_sum *sum)
{
	const char *site = idle_part_place(w, sum->process, &sum->longest);

	if (!sum->gil_held_at)
		return site;
	return arena_printf(w->texts, "%s%s%s", site ?: "", site ? "; " : "",
			    text_gil_holder(w->texts, w->idle->accounts->model, sum->process,
					    sum->gil_holder, sum->gil_held_at));
}

/* ---- causes ---------------------------------------------------------------------------------- */

static int by_cause(const void *a, const void *b)
{
	const struct cause_row *x = a, *y = b;

	return strcmp(x->cause, y->cause) ?: strcmp(x->function ?: "", y->function ?: "") ?:
	       strcmp(x->site ?: "", y->site ?: "");
}

static int by_ns(const void *a, const void *b)
{
	const struct cause_row *x = a, *y = b;

	return COMPARE(y->ns, x->ns) ?: by_cause(a, b);
}

static bool reads_alike(const struct cause_row *a, const struct cause_row *b)
{
	if (a->function && b->function)
		return !strcmp(a->cause, b->cause) && !strcmp(a->function, b->function);
	return !by_cause(a, b);
}

/* Places that read alike are one, and those in one function, at the line of the longest. */
static size_t join(struct cause_row *rows, size_t n)
{
	size_t i, kept = 0, most = 0;
	const char *last;

	if (!n)
		return 0;
	qsort(rows, n, sizeof(*rows), by_cause);
	most = rows[0].ns;
	last = rows[0].site;
	for (i = 1; i < n; i++) {
		bool same_line = last && rows[i].site && !strcmp(last, rows[i].site);

		last = rows[i].site;
		if (!reads_alike(&rows[kept], &rows[i])) {
			rows[++kept] = rows[i];
			most = rows[i].ns;
			continue;
		}
		rows[kept].more_lines += !same_line;
		if (rows[i].ns > most) {
			most = rows[i].ns;
			rows[kept].site = rows[i].site;
			rows[kept].meanwhile = rows[i].meanwhile;
		}
		rows[kept].ns += rows[i].ns;
		in_c_add_all(&rows[kept].c, &rows[i].c);
	}
	return kept + 1;
}

#define CAUSES_MOST 256 /* rows; what else there is has no place */

/* What the thread did most that had the lock, or was to end; NULL: unknown. */
static const struct idle_part *holders_part(const struct idle_sum *sum, enum idle_cause *cause)
{
	const struct idle_holder *holder = sum->holder;
	enum idle_cause most = IDLE_UNEXPLAINED;

	for (size_t i = 0; holder && i < IDLE_CAUSE_COUNT; i++)
		if (holder->ns[i] > holder->ns[most])
			most = (enum idle_cause)i;
	*cause = most;
	return holder && holder->ns[most] ? &holder->longest : NULL;
}

/* "torch's DataLoader", "compiling (torch.compile)"; else the cause's own words. */
const char *idle_part_name(const struct idle_writer *w, const struct process *process,
			   const struct idle_part *part)
{
	const char *words = idle_cause_texts[part->cause];
	const char *library = idle_name_of_work(process, part);

	if (library)
		return arena_printf(w->texts, "%s (%s)", words, library);
	return idle_name_of_wait(part) ?: words;
}

static struct cause_row row_of(const struct idle_writer *w, const struct idle_sum *sum, uint64_t ns)
{
	struct cause_row row = {.cause = idle_cause_codes[sum->key.cause],
				.site = site_of(w, sum),
				.name = idle_part_name(w, sum->process, &sum->longest),
				.function = sampled_function(w, sum->process, &sum->longest),
				.ns = ns,
				.holder = sum->holder ? sum->holder->tid : 0,
				.meanwhile = text_meanwhile(w->texts, w->idle->accounts->model,
							    sum->process, sum->meanwhile_tid,
							    sum->meanwhile)};
	enum idle_cause cause;
	const struct idle_part *part = holders_part(sum, &cause);

	if (idle_runs_python(sum->key.cause) && sum->longest.fn == NO_FUNCTION)
		in_c_add(&row.c, &w->idle->in_c, &sum->key);
	if (!part)
		return row;
	row.holder_cause = idle_cause_codes[cause];
	if (part->cause == cause)
		row.holder_site = idle_part_place(w, sum->process, part);
	return row;
}

static bool same_place(const struct idle_sum *a, const struct idle_sum *b)
{
	return a->key.owner == b->key.owner && a->key.cause == b->key.cause &&
	       a->key.address == b->key.address && a->key.process == b->key.process;
}

/* The sums of a place, from `first` on: what has no line is shared out to those that have one, the
 * last of which gets what rounding leaves. What has no address either is no place. Returns where the next place begins. */
static size_t add_place(const struct idle_writer *w, size_t first, const struct idle_gpu *gpu,
			struct cause_row **rows, size_t *n)
{
	const struct idle_sum *const *sums = &w->sums[first];
	uint64_t without_ns = 0, with_ns = 0, left_ns, ns;
	size_t count, i;

	for (count = 0; first + count < w->n_sums && same_place(sums[0], sums[count]); count++)
		*(sums[count]->key.code ? &with_ns : &without_ns) += sums[count]->ns;
	if (!sums[0]->key.address)
		with_ns = 0;
	left_ns = without_ns;
	for (i = 0; i < count; i++) {
		if (!sums[i]->ns || (!sums[i]->key.code && with_ns))
			continue;
		ns = with_ns ? (uint64_t)((double)without_ns * (double)sums[i]->ns /
					  (double)with_ns)
			     : 0;
		ns = i + 1 == count && with_ns ? left_ns : min_u64(ns, left_ns);
		left_ns -= ns;
		ns += sums[i]->ns;
		if (w->only && !idle_part_lies(w->only, sums[i]->process, &sums[i]->longest))
			continue;
		*rows = grow(*rows, *n, sizeof(**rows));
		(*rows)[(*n)++] = row_of(w, sums[i], gpu ? idle_scaled_ns(gpu, ns) : ns);
	}
	return first + count;
}

/* Too many for anybody: the smallest have no place. */
static size_t cut(struct cause_row *rows, size_t n)
{
	struct cause_row *last;

	if (n <= CAUSES_MOST)
		return n;
	last = &rows[CAUSES_MOST - 1];
	for (size_t i = CAUSES_MOST; i < n; i++)
		last->ns += rows[i].ns;
	last->cause = idle_cause_codes[IDLE_UNEXPLAINED];
	last->name = "many small parts";
	last->site = NULL;
	last->c = (struct in_c){0};
	qsort(rows, CAUSES_MOST, sizeof(*rows), by_ns);
	return CAUSES_MOST;
}

/* What the thread waited for: the cause in words, or the other thread and what it did: "waiting for thread 9 (asleep)". */
static const char *name_words(const struct idle_writer *w, const struct cause_row *row)
{
	bool join = !strcmp(row->cause, idle_cause_codes[IDLE_JOIN]);
	const char *did = "";

	if (!row->holder)
		return row->name;
	if (row->holder_cause)
		did = arena_printf(w->texts, " (%s)",
				   idle_cause_texts[idle_cause_of_code(row->holder_cause)]);
	return arena_printf(w->texts, "waiting for thread %llu%s%s",
			    (unsigned long long)row->holder, join ? " to end" : "", did);
}

static const char *lines_words(const struct idle_writer *w, const struct cause_row *row)
{
	if (!row->more_lines)
		return "";
	return arena_printf(w->texts, " (and %u more %s of the function)", row->more_lines,
			    row->more_lines == 1 ? "line" : "lines");
}

static void name_in_c(const struct idle_writer *w, struct cause_row *row)
{
	const struct in_c_most most = in_c_most(&row->c);

	row->in_c_ppm = INT64_MIN;
	if (most.where == IN_C_UNKNOWN)
		return;
	row->in_c = most.where == IN_C_INTERPRETER
			    ? "the interpreter"
			    : text_in_library(w->texts, w->symbols, most.function->place->process,
					      most.function->address, most.function->place->ns,
					      most.where == IN_C_LIBRARY);
	if (row->in_c)
		row->in_c_ppm = (int64_t)((double)most.us * 1e6 / (double)row->c.us);
}

/* ", 92 % of it in deflate (libz.so.1)"; of Python by itself nothing. */
static const char *in_c_words(const struct idle_writer *w, const struct cause_row *row)
{
	if (!row->in_c || in_c_most(&row->c).where == IN_C_INTERPRETER)
		return "";
	return arena_printf(w->texts, ", %s of it in %s",
			    text_percent(w->texts, (double)row->in_c_ppm, 1e6), row->in_c);
}

const struct table *idle_causes(const struct idle_writer *w, const struct table_kind *kind,
				uint64_t owner, const struct idle_gpu *gpu, uint64_t whole_ns)
{
	struct table *table = arena_take(w->texts, xcalloc(1, sizeof(*table)));
	size_t i = first_of(w, owner), n = 0;
	struct cause_row *rows = NULL;
	uint64_t sum_ns = 0;

	while (i < w->n_sums && w->sums[i]->key.owner == owner)
		i = add_place(w, i, gpu, &rows, &n);
	n = join(rows, n);
	for (i = 0; i < n; i++)
		sum_ns += rows[i].ns;
	whole_ns = whole_ns ?: sum_ns;
	if (n)
		qsort(rows, n, sizeof(*rows), by_ns);
	if (n && sum_ns < whole_ns)
		rows[0].ns += whole_ns - sum_ns;
	n = cut(rows, n);
	for (i = 0; i < n; i++) {
		name_in_c(w, &rows[i]);
		rows[i].text = arena_printf(
			w->texts, "%s  %s%s%s%s%s%s%s",
			text_percent(w->texts, (double)rows[i].ns, (double)whole_ns),
			name_words(w, &rows[i]), rows[i].site ? ": " : "", rows[i].site ?: "",
			lines_words(w, &rows[i]), in_c_words(w, &rows[i]),
			rows[i].meanwhile ? ", while " : "", rows[i].meanwhile ?: "");
	}
	*table = (struct table){
		.kind = kind, .rows = n ? arena_take(w->texts, rows) : NULL, .n_rows = n};
	return table;
}

uint64_t idle_causes_ns(const struct table *causes)
{
	const struct cause_row *rows = causes->rows;
	uint64_t ns = 0;

	for (size_t i = 0; i < causes->n_rows; i++)
		ns += rows[i].ns;
	return ns;
}

/* ---- in a sentence --------------------------------------------------------------------------- */

#define WORDS_CAUSES 6

struct cause_sum {
	const struct cause_row *first; /* the largest */
	uint64_t ns;
};

static int by_sum(const void *a, const void *b)
{
	const struct cause_sum *x = a, *y = b;

	return COMPARE(y->ns, x->ns) ?: strcmp(x->first->cause, y->first->cause);
}

/* Where the program has to be changed: of what has most of the cause's time. */
static bool needs_place(const struct cause_sum *sum)
{
	enum idle_cause cause = idle_cause_of_code(sum->first->cause);

	return sum->first->site && sum->first->ns >= sum->ns / 2 &&
	       (idle_runs_python(cause) || cause == IDLE_CPU);
}

const char *idle_causes_words(const struct idle_writer *w, const struct table *causes,
			      uint64_t whole_ns)
{
	struct cause_sum sums[IDLE_CAUSE_COUNT + 1];
	const struct cause_row *rows = causes ? causes->rows : NULL;
	const char *words = "";
	size_t n = 0, i, j;

	for (i = 0; causes && i < causes->n_rows; i++) {
		for (j = 0; j < n && strcmp(sums[j].first->cause, rows[i].cause); j++)
			;
		if (j == n)
			sums[n++] = (struct cause_sum){.first = &rows[i]};
		sums[j].ns += rows[i].ns;
	}
	qsort(sums, n, sizeof(*sums), by_sum);
	for (i = 0; i < n && i < WORDS_CAUSES; i++) {
		const struct cause_row *row = sums[i].first;

		if (i && sums[i].ns * 200 < whole_ns)
			break;
		words = arena_printf(w->texts, "%s%s%s%s%s%s %s", words, i ? ", " : "", row->name,
				     needs_place(&sums[i]) ? " (" : "",
				     needs_place(&sums[i]) ? row->site : "",
				     needs_place(&sums[i]) ? ")" : "",
				     text_percent(w->texts, (double)sums[i].ns, (double)whole_ns));
	}
	return words;
}

const char *idle_causes_largest(const struct idle_writer *w, const struct table *causes,
				uint64_t whole_ns)
{
	const struct cause_row *row = causes && causes->n_rows ? causes->rows : NULL;
	const char *words;

	if (!row)
		return NULL;
	words = arena_printf(w->texts, "%s%s%s%s", name_words(w, row), row->site ? ": " : "",
			     row->site ?: "", in_c_words(w, row));
	return row->ns >= whole_ns
		       ? words
		       : arena_printf(w->texts, "%s (%s)", words,
				      text_percent(w->texts, (double)row->ns, (double)whole_ns));
}
