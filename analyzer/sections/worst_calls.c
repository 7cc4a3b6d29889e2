/*
 * analyzer/sections/worst_calls.c: the calls that lost most, each with its chain in one sentence;
 * the worst of each kind first, then those that are like one of these. Called by waits.c.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "text/where.h"
#include "text/text.h"
#include "trace/names.h"
#include "base/median.h"

struct worst_call_row {
	const char *what, *text, *where, *python, *range, *in_range, *function, *holder_function,
		*lock, *root_function, *cause;
	uint64_t at_ns, duration_ns, expected_ns, lost_ns, thread, device, holder, holder_device;
	uint64_t root, root_device, root_ns, alike, alike_lost_ns;
};

static const struct column worst_call_columns[] = {
	COLUMN(struct worst_call_row, at_ns, "at t =", UNIT_NS),
	COLUMN(struct worst_call_row, function, "call", UNIT_TEXT),
	COLUMN(struct worst_call_row, duration_ns, "took", UNIT_NS),
	COLUMN(struct worst_call_row, expected_ns, "expected", UNIT_NS_IF_KNOWN),
	COLUMN_TONE(struct worst_call_row, lost_ns, "lost", UNIT_NS, TONE_LOSS),
	COLUMN_JSON(struct worst_call_row, what, UNIT_TEXT),
	COLUMN_JSON(struct worst_call_row, thread, UNIT_PLAIN),
	COLUMN_JSON(struct worst_call_row, device, UNIT_PLAIN),
	COLUMN_JSON(struct worst_call_row, lock, UNIT_TEXT),
	COLUMN_JSON(struct worst_call_row, holder, UNIT_PLAIN),
	COLUMN_JSON(struct worst_call_row, holder_device, UNIT_PLAIN),
	COLUMN_JSON(struct worst_call_row, holder_function, UNIT_TEXT),
	COLUMN_JSON(struct worst_call_row, root, UNIT_PLAIN),
	COLUMN_JSON(struct worst_call_row, root_device, UNIT_PLAIN),
	COLUMN_JSON(struct worst_call_row, root_function, UNIT_TEXT),
	COLUMN_JSON(struct worst_call_row, root_ns, UNIT_NS),
	COLUMN_JSON(struct worst_call_row, cause, UNIT_TEXT),
	COLUMN_LINE(struct worst_call_row, where, UNIT_TEXT),
	COLUMN_LINE(struct worst_call_row, python, UNIT_TEXT),
	COLUMN_JSON(struct worst_call_row, range, UNIT_TEXT),
	COLUMN_TEXT_LINE(struct worst_call_row, in_range),
	COLUMN_JSON(struct worst_call_row, alike, UNIT_COUNT),
	COLUMN_JSON(struct worst_call_row, alike_lost_ns, UNIT_NS),
	COLUMN_TEXT_WORDS(struct worst_call_row, text),
};

static const struct table_kind worst_call_kind = {
	TABLE("worst_calls", "WORST CALLS, and what they waited for", struct worst_call_row,
	      worst_call_columns),
	.text_rows = 5,
};

/* Of the lock that is named. */
static const struct worst_call_root *main_root(const struct worst_call *v)
{
	const struct worst_call_root *best = NULL;

	for (size_t i = 0; i < WORST_CALL_ROOTS; i++)
		if (v->roots[i].lock == v->lock && v->roots[i].ns > (best ? best->ns : 0))
			best = &v->roots[i];
	return best;
}

/* What of a call's loss is no lock: " 3.2 ms hidden wait for the GPU". */
static enum bucket main_bucket(const struct worst_call *v)
{
	enum bucket best = BUCKET_UNEXPLAINED;

	for (int i = 0; i < BUCKET_COUNT; i++)
		if (bucket_is_lost((enum bucket)i) && v->bucket_ns[i] > v->bucket_ns[best])
			best = (enum bucket)i;
	return best;
}

/* Of its time in the kernel module: which other threads were in it; "" if that is negligible. */
static const char *overlap_words(struct arena *texts, const struct accounting *a,
				 const struct worst_call *v)
{
	if (v->overlap_ns <= v->bucket_ns[BUCKET_IOCTL] / 20)
		return "";
	return arena_printf(texts, ", up to %s of it while %s%s was in it, too: inferred",
			    text_time(texts, v->overlap_ns),
			    text_thread(texts, v->overlap_thread, v->overlap_device),
			    text_in_function(texts, a->model->set, v->overlap_fn));
}

static const char *loss_sentence(struct arena *texts, const struct accounting *a,
				 const struct worst_call *v)
{
	static const char *const sentences[BUCKET_COUNT] = {
		[BUCKET_GPU_HIDDEN] = "waited for the GPU, which this call does not promise to do",
		[BUCKET_LOCK] = "waited for locks, holders unknown",
		[BUCKET_IOCTL] = "was in the kernel module (ioctl)",
		[BUCKET_QUEUE] =
			"waited because the stream's launch queue was full: no other thread is to "
			"blame",
		[BUCKET_MPS] = "waited for another user's MPS server to end",
		[BUCKET_NOT_RUNNING] =
			"was ready to run and got no CPU: the host is oversubscribed",
		[BUCKET_UNEXPLAINED] = "took longer than such calls do, for an unknown reason",
	};
	enum bucket bucket = main_bucket(v);

	if (bucket == BUCKET_UNEXPLAINED && v->slept_ns > v->lost_ns / 2 &&
	    (v->slept_kind == SPY_WAIT_SLEEP || v->slept_kind == SPY_WAIT_YIELD))
		return arena_printf(texts, "%s polled and slept in between, for %s, reason unknown",
				    text_thread(texts, v->thread, v->device),
				    text_time(texts, v->slept_ns));
	if (bucket == BUCKET_UNEXPLAINED && v->slept_ns > v->lost_ns / 2)
		return arena_printf(texts, "%s waited in the C library (%s) for %s, reason unknown",
				    text_thread(texts, v->thread, v->device),
				    name_wait(v->slept_kind), text_time(texts, v->slept_ns));
	if (bucket == BUCKET_GPU_HIDDEN && v->expected_ns == UNKNOWN_NS)
		return arena_printf(
			texts,
			"%s worked or waited for the GPU, for %s, and there is no call to "
			"compare it with%s%s",
			text_thread(texts, v->thread, v->device),
			text_time(texts, v->bucket_ns[bucket]), v->why ? ": " : "", v->why ?: "");
	if (bucket == BUCKET_IOCTL)
		return arena_printf(texts, "%s %s, for %s%s",
				    text_thread(texts, v->thread, v->device), sentences[bucket],
				    text_time(texts, v->bucket_ns[bucket]),
				    overlap_words(texts, a, v));
	return arena_printf(texts, "%s %s, for %s%s%s", text_thread(texts, v->thread, v->device),
			    sentences[bucket], text_time(texts, v->bucket_ns[bucket]),
			    bucket == BUCKET_GPU_HIDDEN && v->why ? ": " : "",
			    bucket == BUCKET_GPU_HIDDEN && v->why ? v->why : "");
}

/* "; the reason there, for 3 ms: a wait for the GPU", or the thread at the root. */
static const char *root_words(struct arena *texts, const struct accounting *a,
			      const struct worst_call *v, uint64_t most_ns)
{
	const struct worst_call_root *root = main_root(v);
	const char *ns;

	if (!root)
		return "";
	/* The wait is told without what the thread was not running for, the root is with it. */
	ns = text_time(texts, min_u64((uint64_t)root->ns, most_ns));
	if (root->thread == v->holder && root->fn == v->holder_fn)
		return arena_printf(texts, "; the reason there, for %s: %s", ns,
				    cause_names[root->cause]);
	return arena_printf(texts, "; at the root, for %s: %s%s, %s", ns,
			    text_thread(texts, root->thread, root->device),
			    text_in_function(texts, a->model->set, root->fn),
			    cause_names[root->cause]);
}

/* One sentence: how long the call waited for which lock, its holder and the holder's call, and the
 * root. */
static const char *chain_sentence(struct arena *texts, const struct accounting *a,
				  const struct worst_call *v)
{
	uint64_t ns = min_u64(v->lock_ns, v->bucket_ns[BUCKET_LOCK]);
	uint64_t others_ns = v->bucket_ns[BUCKET_LOCK] - ns, held_ns = min_u64(v->held_ns, ns);
	const char *of = "", *others = "";

	if (held_ns < ns - ns / 20)
		of = arena_printf(texts, ", %s of it", text_time(texts, held_ns));
	if (others_ns > ns / 20)
		others = arena_printf(texts, "; and %s for other locks",
				      text_time(texts, others_ns));
	return arena_printf(texts, "%s waited %s for %s (%s)%s held by %s%s%s%s",
			    text_thread(texts, v->thread, v->device), text_time(texts, ns),
			    v->lock->name, v->lock->place, of,
			    text_thread(texts, v->holder, v->holder_device),
			    text_in_function(texts, a->model->set, v->holder_fn),
			    root_words(texts, a, v, of[0] ? held_ns : ns), others);
}

/* Recorded without probes, or a lock that is not the C library's. */
static const char *inferred_sentence(struct arena *texts, const struct accounting *a,
				     const struct worst_call *v)
{
	return arena_printf(
		texts,
		"%s took longer than such calls do, for %s, while %s was%s (inferred, without a "
		"probe)%s",
		text_thread(texts, v->thread, v->device),
		text_time(texts, v->bucket_ns[BUCKET_UNEXPLAINED]),
		text_thread(texts, v->holder, v->holder_device),
		text_in_function(texts, a->model->set, v->holder_fn),
		root_words(texts, a, v, v->bucket_ns[BUCKET_UNEXPLAINED]));
}

static int by_lost(const void *a, const void *b)
{
	const struct worst_call *x = a, *y = b;

	return COMPARE(y->lost_ns, x->lost_ns) ?: position_compare(&x->at, &y->at);
}

/* The same thread in the same function, for the same reason. */
static bool alike(const struct worst_call *a, const struct worst_call *b)
{
	return a->thread == b->thread && a->fn == b->fn && main_bucket(a) == main_bucket(b) &&
	       a->lock == b->lock && a->holder == b->holder && a->holder_fn == b->holder_fn;
}

/* Where it was called: the function it was called in, file and line as far as they are known. */
static const char *place_text(struct arena *texts, const struct accounting *a,
			      struct symbolizer *symbols, const struct worst_call *v)
{
	if (!v->return_address)
		return NULL;
	return arena_printf(texts, "%s%s", text_function(a->model->set, v->fn),
			    text_program_place(texts, symbols, v->thread->process,
					       v->return_address, v->end_ns, v->stack));
}

/* In which line of Python, if it has a stack. */
static const char *python_text(struct arena *texts, const struct worst_call *v)
{
	struct python_line line = python_line(v->stack);
	const char *words = text_python(texts, &line);

	return words ? arena_printf(texts, "from Python: %s", words) : NULL;
}

static struct worst_call_row describe(struct arena *texts, const struct accounting *a,
				      struct symbolizer *symbols, const struct worst_call *v)
{
	const struct worst_call_root *root = main_root(v);
	struct worst_call_row row = {
		.function = text_function(a->model->set, v->fn),
		.at_ns = v->begin_ns < a->model->first_ns ? 0 : v->begin_ns - a->model->first_ns,
		.duration_ns = v->end_ns - v->begin_ns,
		.expected_ns = v->expected_ns,
		.lost_ns = v->lost_ns,
		.thread = v->thread->tid,
		.device = v->device,
		.where = place_text(texts, a, symbols, v),
		.python = python_text(texts, v),
	};

	if (v->range) {
		row.range = report_range_name(texts, v->range);
		row.in_range = arena_printf(texts, "in range %s", row.range);
	}
	if (v->lock && main_bucket(v) == BUCKET_LOCK) {
		row.what = chain_sentence(texts, a, v);
		row.lock = arena_printf(texts, "%s", v->lock->name);
	} else if (v->inferred && main_bucket(v) == BUCKET_UNEXPLAINED) {
		row.what = inferred_sentence(texts, a, v);
	} else {
		row.what = loss_sentence(texts, a, v);
	}
	if (main_bucket(v) == (v->inferred ? BUCKET_UNEXPLAINED : BUCKET_LOCK)) {
		row.holder = v->holder ? v->holder->tid : 0;
		row.holder_device = v->holder_device;
		row.holder_function = text_function(a->model->set, v->holder_fn);
	}
	if (root) {
		row.root = root->thread ? root->thread->tid : 0;
		row.root_device = root->device;
		row.root_function = text_function(a->model->set, root->fn);
		/* A sum of shares, which as floating-point numbers round up. */
		row.root_ns = min_u64((uint64_t)root->ns, row.duration_ns);
		row.cause = cause_keys[root->cause];
	}
	return row;
}

/* Its thread got no CPU: the host's doing, of which one line says enough. */
static bool is_noise(const struct worst_call *v)
{
	return main_bucket(v) == BUCKET_NOT_RUNNING;
}

/* "Host noise: 9 calls lost 12.3 ms …"; NULL: there is none. The calls are in order. */
static const char *noise_text(struct arena *texts, const struct accounting *a,
			      const struct worst_call *sorted, size_t count)
{
	const struct worst_call *worst = NULL;
	uint64_t n = 0, lost_ns = 0;

	for (size_t i = 0; i < count; i++) {
		if (!is_noise(&sorted[i]))
			continue;
		worst = worst ?: &sorted[i];
		lost_ns += sorted[i].lost_ns;
		n++;
	}
	if (!n)
		return NULL;
	return arena_printf(
		texts, "Host noise: %s lost %s because %s got no CPU; worst: %s in %s at %s, %s",
		text_count(texts, n, "call"), text_time(texts, lost_ns),
		n == 1 ? "its thread" : "their threads", text_time(texts, worst->lost_ns),
		text_function(a->model->set, worst->fn),
		text_since(texts, a->model, worst->begin_ns),
		text_thread(texts, worst->thread, worst->device));
}

/* Others of the calls that are like one, which is the worst of them. */
static void count_alike(struct worst_call_row *row, const struct worst_call *more)
{
	row->alike++;
	row->alike_lost_ns += more->lost_ns;
}

void report_worst_calls(struct report *report, const struct accounting *a,
			struct symbolizer *symbols, uint64_t least_lost_ns)
{
	struct worst_call sorted[WORST_CALLS];
	struct worst_call_row *rows = xcalloc(WORST_CALLS, sizeof(*rows));
	size_t row_of
		[WORST_CALLS]; /* the row of the worst one like it; SIZE_MAX: it has none yet */
	size_t count, kinds, i, j, n = 0;
	struct table *table;

	memcpy(sorted, a->blame->worst_calls, sizeof(sorted));
	qsort(sorted, WORST_CALLS, sizeof(sorted[0]), by_lost);
	for (i = 0; i < WORST_CALLS && sorted[i].serial && sorted[i].lost_ns >= least_lost_ns;
	     i++) {
		row_of[i] = SIZE_MAX;
		if (is_noise(&sorted[i]))
			continue;
		for (j = 0; !alike(&sorted[i], &sorted[j]); j++)
			;
		row_of[i] = i == j ? n : row_of[j];
		if (i == j)
			rows[n++] = describe(&report->arena, a, symbols, &sorted[i]);
	}
	count = i;
	kinds = n;
	for (i = 0; i < count; i++) {
		for (j = 0; !alike(&sorted[i], &sorted[j]); j++)
			;
		if (i == j && !is_noise(&sorted[i]))
			continue;
		if (i != j)
			count_alike(&rows[row_of[j]], &sorted[i]);
		else
			row_of[i] = n;
		rows[n++] = describe(&report->arena, a, symbols, &sorted[i]);
	}
	for (i = 0; i < n; i++)
		rows[i].text =
			rows[i].alike
				? report_text(report, "%s; %llu more like it lost %s", rows[i].what,
					      (unsigned long long)rows[i].alike,
					      text_time(&report->arena, rows[i].alike_lost_ns))
				: rows[i].what;
	table = report_add(report, &worst_call_kind, rows, n);
	table->minor_rows = n - kinds;
	table->minor_name = "like these";
	table->outro = noise_text(&report->arena, a, sorted, count);
	if (table->outro)
		table->minor_name = kinds ? "like these, or host noise" : "host noise";
}
