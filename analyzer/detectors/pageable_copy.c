/*
 * analyzer/detectors/pageable_copy.c: copies that are called asynchronous and are not, because the
 * host memory is pageable. Called by detectors.c.
 *
 * The contract is the row's of the function (COPY_ASYNC, COPY_BATCH); what pageable memory does to
 * it, contract.h says. A call that failed or went into a graph copied nothing and is no case.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "detector.h"
#include "histogram.h"
#include "names.h"

/* Copies that are told apart. Without padding: it is hashed byte by byte. */
struct site_key {
	uint64_t caller;
	uint32_t process;
	uint32_t epoch; /* objects the process had unloaded: the caller's address may be reused */
	uint32_t fn;
	uint8_t direction, src_kind, dst_kind, zero;
};

struct site {
	struct site_key key;
	uint64_t count, bytes, total_ns;
	uint64_t last_ns; /* when it was there */
	struct histogram durations_ns;
	UT_hash_handle hh;
};

struct state {
	struct site *sites;
	struct site *last; /* copies come in runs */
};

/* A site, or several (of different processes, before and after an object was unloaded) that are the
 * same place in the program. */
struct row {
	const char *direction, *src_kind, *dst_kind;
	uint64_t count, bytes, total_ns, median_ns, p99_ns, max_ns;
	uint64_t processes;
	uint32_t process; /* the last of them */
	const char *function; /* the CUDA function */
	const char *where; /* for people */
	const char *module, *caller, *file; /* NULL unknown */
	uint64_t offset, line;
	struct site *site; /* whose durations include those of the others */
};

static void *start(void)
{
	return xcalloc(1, sizeof(struct state));
}

static void release(void *data)
{
	struct state *state = data;
	struct site *site, *next;

	HASH_ITER (hh, state->sites, site, next) {
		HASH_DEL(state->sites, site);
		histogram_release(&site->durations_ns);
		free(site);
	}
	free(state);
}

static bool is_case(const struct model *model, const struct record *record)
{
	const struct spy_rec_copy *copy = &record->raw->copy;

	return copy_took_place(copy) && copy->bytes &&
	       (copy->src_kind == SPY_MEM_PAGEABLE || copy->dst_kind == SPY_MEM_PAGEABLE) &&
	       functions_async_copy(&model->set->functions, record->fn);
}

static struct site *find_site(struct state *state, const struct site_key *key)
{
	struct site *site = state->last;

	if (site && !memcmp(&site->key, key, sizeof(*key)))
		return site;
	HASH_FIND(hh, state->sites, key, sizeof(*key), site);
	if (!site) {
		site = xcalloc(1, sizeof(*site));
		site->key = *key;
		HASH_ADD(hh, state->sites, key, sizeof(*key), site);
	}
	state->last = site;
	return site;
}

static void see(void *data, const struct model *model, const struct record *record)
{
	const struct spy_rec_copy *copy = &record->raw->copy;
	struct site_key key;
	struct site *site;

	if (!is_case(model, record))
		return;
	key = (struct site_key){.caller = copy->caller,
				.process = record->stream->trace->index,
				.epoch = record->thread->process->modules_gone,
				.fn = record->fn,
				.direction = copy->direction,
				.src_kind = copy->src_kind,
				.dst_kind = copy->dst_kind};
	site = find_site(data, &key);
	site->count++;
	site->bytes += copy->bytes;
	site->total_ns += record->duration_ns;
	site->last_ns = record->ns;
	histogram_add(&site->durations_ns, record->duration_ns);
}

/* ---- the report ----------------------------------------------------------------------------- */

static void fill_place(struct row *row, const struct place *place, struct report *report)
{
	const char *slash = place->path ? strrchr(place->path, '/') : NULL;
	const char *module = slash ? slash + 1 : place->path;
	const char *file = place->file ? strrchr(place->file, '/') : NULL;
	const char *source = file ? file + 1 : place->file;

	row->module = place->path ? report_text(report, "%s", place->path) : NULL;
	row->caller = place->function ? report_text(report, "%s", place->function) : NULL;
	row->file = place->file ? report_text(report, "%s", place->file) : NULL;
	row->offset = place->offset;
	row->line = (uint64_t)place->line;
	source = source ? report_text(report, ", %s:%d", source, place->line) : "";
	if (place->path)
		row->where = report_text(report, "%s in %s%s (%s+0x%llx)", row->function,
					 place->function ?: "?", source, module,
					 (unsigned long long)place->offset);
	else
		row->where = report_text(report, "%s at 0x%llx, in no known module", row->function,
					 (unsigned long long)place->offset);
}

static int same_place(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(x->module ?: "", y->module ?: "");

	if (!order && x->offset != y->offset)
		order = x->offset < y->offset ? -1 : 1;
	order = order ? order : strcmp(x->function, y->function);
	order = order ? order : strcmp(x->direction, y->direction);
	order = order ? order : strcmp(x->src_kind, y->src_kind);
	return order ? order : strcmp(x->dst_kind, y->dst_kind);
}

/* Rows of the same place stand together, and among them those of a process. */
static int by_place(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = same_place(a, b);

	return order ? order : (x->process > y->process) - (x->process < y->process);
}

static int by_total(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return same_place(a, b);
}

static void fill_row(struct row *row, struct site *site, const struct model *model,
		     struct symbolizer *symbols, struct report *report)
{
	struct place place;

	*row = (struct row){
		.direction = report_text(report, "%s", name_direction(site->key.direction)),
		.src_kind = report_text(report, "%s", name_memory_kind(site->key.src_kind)),
		.dst_kind = report_text(report, "%s", name_memory_kind(site->key.dst_kind)),
		.function = report_text(report, "%s", model->set->functions.all[site->key.fn].name),
		.count = site->count,
		.bytes = site->bytes,
		.total_ns = site->total_ns,
		.processes = 1,
		.process = site->key.process,
		.site = site,
	};
	symbolize(symbols, &model->processes[site->key.process], site->key.caller, site->last_ns,
		  &place);
	fill_place(row, &place, report);
}

static void add_row(struct row *sum, const struct row *row)
{
	sum->count += row->count;
	sum->bytes += row->bytes;
	sum->total_ns += row->total_ns;
	sum->processes += row->process != sum->process;
	sum->process = row->process;
	histogram_merge(&sum->site->durations_ns, &row->site->durations_ns);
}

/* Rows of the same place become one. Returns how many are left. */
static size_t merge_rows(struct row *rows, size_t n)
{
	size_t i, kept = 0;

	qsort(rows, n, sizeof(*rows), by_place);
	for (i = 0; i < n; i++) {
		if (kept && !same_place(&rows[kept - 1], &rows[i]))
			add_row(&rows[kept - 1], &rows[i]);
		else
			rows[kept++] = rows[i];
	}
	for (i = 0; i < kept; i++) {
		const struct histogram *h = &rows[i].site->durations_ns;

		rows[i].median_ns = histogram_quantile(h, 0.5);
		rows[i].p99_ns = histogram_quantile(h, 0.99);
		rows[i].max_ns = h->max;
	}
	qsort(rows, kept, sizeof(*rows), by_total);
	return kept;
}

/* clang-format off */
static const struct column columns[] = {
	COLUMN(struct row, direction, "copy", UNIT_TEXT),
	COLUMN(struct row, src_kind, "from", UNIT_TEXT),
	COLUMN(struct row, dst_kind, "to", UNIT_TEXT),
	COLUMN(struct row, count, "calls", UNIT_COUNT),
	COLUMN(struct row, bytes, "bytes", UNIT_BYTES),
	COLUMN(struct row, total_ns, "total", UNIT_NS),
	COLUMN(struct row, median_ns, "median", UNIT_NS),
	COLUMN(struct row, max_ns, "max", UNIT_NS),
	COLUMN_LINE(struct row, where, UNIT_TEXT),
	COLUMN_JSON(struct row, p99_ns, UNIT_NS),
	COLUMN_JSON(struct row, processes, UNIT_COUNT),
	COLUMN_JSON(struct row, function, UNIT_TEXT),
	COLUMN_JSON(struct row, module, UNIT_TEXT),
	COLUMN_JSON(struct row, offset, UNIT_COUNT),
	COLUMN_JSON(struct row, caller, UNIT_TEXT),
	COLUMN_JSON(struct row, file, UNIT_TEXT),
	COLUMN_JSON(struct row, line, UNIT_COUNT),
};
/* clang-format on */

static const struct table_kind kind = {
	.key = "pageable_copies",
	.title = "PAGEABLE \"ASYNC\" COPIES, by call site",
	.columns = columns,
	.n_columns = ARRAY_SIZE(columns),
	.row_bytes = sizeof(struct row),
	.text_rows = 20,
	.when_empty = "none",
	.advice = "These calls promise to return at once and do not, because the host buffer is "
		  "pageable: the data goes through a staging buffer, and a copy to pageable memory "
		  "returns only when its stream has come that far. Pin the buffer "
		  "(cudaMallocHost, cudaHostRegister), or synchronise the stream before the copy "
		  "so that it does not hold up other threads. A copy from host to host waits "
		  "for its stream whatever its memory is: use memcpy.",
};

static const char *describe_all(const struct row *rows, size_t n, struct report *report)
{
	uint64_t count = 0, bytes = 0, total_ns = 0;
	char calls[32], size[32], time[32];
	size_t i;

	for (i = 0; i < n; i++) {
		count += rows[i].count;
		bytes += rows[i].bytes;
		total_ns += rows[i].total_ns;
	}
	format_count(calls, sizeof(calls), count);
	format_bytes(size, sizeof(size), bytes);
	format_ns(time, sizeof(time), total_ns);
	return report_text(report, "%s call%s at %zu place%s copied %s and took %s of host time.",
			   calls, count == 1 ? "" : "s", n, n == 1 ? "" : "s", size, time);
}

static void report_section(void *data, const struct model *model, struct symbolizer *symbols,
			   struct report *report)
{
	struct state *state = data;
	size_t n = 0;
	struct row *rows = xcalloc(HASH_COUNT(state->sites), sizeof(*rows));
	struct site *site, *next;

	HASH_ITER (hh, state->sites, site, next)
		fill_row(&rows[n++], site, model, symbols, report);
	n = merge_rows(rows, n);
	report_add(report, &kind, rows, n)->intro = describe_all(rows, n, report);
}

const struct detector detector_pageable_copy = {
	.name = "pageable-copy",
	.events = DETECTOR_SEES(SPY_EV_COPY),
	.start = start,
	.see = see,
	.report = report_section,
	.free = release,
};
