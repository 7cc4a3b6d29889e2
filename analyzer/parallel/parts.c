/*
 * analyzer/parallel/parts.c: the parts of a set: made, read, released. Called by jobs.c and, on its threads, by
 * workers.c.
 */
#include <stdlib.h>
#include "parts.h"
#include "base/median.h"

/* ---- which ------------------------------------------------------------------------------------ */

/* A group, while parts are made of several. */
struct load {
	uint64_t bytes;
	uint32_t group; /* its first process */
};

static int by_bytes(const void *a, const void *b)
{
	const struct load *x = a, *y = b;

	return COMPARE(y->bytes, x->bytes) ?: COMPARE(x->group, y->group);
}

static uint64_t bytes_of(const struct trace *trace)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < trace->n_streams; i++)
		bytes += reader_bytes(&trace->streams[i]->reader);
	return bytes;
}

static struct load *loads_of(const struct trace_set *set, struct groups *groups, size_t *n)
{
	struct load *all = xcalloc(set->n_traces + 1, sizeof(*all));
	uint32_t *at = xcalloc(set->n_traces + 1, sizeof(*at)), i;

	*n = 0;
	for (i = 0; i < set->n_traces; i++) {
		uint32_t first = groups_find(groups, i);

		if (first == i) {
			at[i] = (uint32_t)*n;
			all[(*n)++].group = i;
		}
		all[at[first]].bytes += bytes_of(set->traces[i]);
	}
	free(at);
	return all;
}

/* Processes that share a GPU may be read apart, but then its events go through the journals: only where together they are
 * more than an even part. */
static void unite_small(const struct trace_set *set, struct groups *groups, size_t most)
{
	bool *small = xcalloc(set->n_traces + 1, sizeof(*small));
	struct groups by_use;
	struct load *loads;
	uint64_t all = 0;
	size_t n, j;

	groups_copy(&by_use, groups);
	groups_by_use(&by_use, set);
	loads = loads_of(set, &by_use, &n);
	for (j = 0; j < n; j++)
		all += loads[j].bytes;
	for (j = 0; j < n; j++)
		small[loads[j].group] = loads[j].bytes <= all / most;
	for (uint32_t i = 0; i < set->n_traces; i++)
		if (small[groups_find(&by_use, i)])
			groups_unite(groups, i, groups_find(&by_use, i));
	groups_release(&by_use);
	free(loads);
	free(small);
}

static void add_process(struct part *part, const struct trace *trace)
{
	part->processes = grow(part->processes, part->n_processes, sizeof(*part->processes));
	part->processes[part->n_processes++] = trace->index;
	for (size_t i = 0; i < trace->n_streams; i++) {
		part->streams = grow(part->streams, part->n_streams, sizeof(struct stream *));
		part->streams[part->n_streams++] = trace->streams[i];
	}
}

/* The largest groups first, each to the part that has least. */
static void share_out(struct parts *p, const struct trace_set *set, struct groups *groups,
		      size_t most)
{
	size_t n, i, j;
	struct load *loads;
	uint64_t *bytes = xcalloc(most + 1, sizeof(*bytes));
	uint32_t *part_of = xcalloc(set->n_traces + 1, sizeof(*part_of));

	if (p->whole->accounted)
		unite_small(set, groups, most);
	loads = loads_of(set, groups, &n);
	p->n = n < most ? n : most;
	p->all = xcalloc(p->n + 1, sizeof(*p->all));
	qsort(loads, n, sizeof(*loads), by_bytes);
	for (i = 0; i < n; i++) {
		size_t least = 0;

		for (j = 1; j < p->n; j++)
			if (bytes[j] < bytes[least])
				least = j;
		bytes[least] += loads[i].bytes + 1;
		part_of[loads[i].group] = (uint32_t)least;
	}
	for (i = set->n_traces; i--;)
		part_of[i] = part_of[groups_find(groups, (uint32_t)i)];
	for (i = 0; i < set->n_traces; i++)
		add_process(&p->all[part_of[i]], set->traces[i]);
	if (p->whole->accounted)
		p->elsewhere = groups_elsewhere(set, part_of, &p->n_elsewhere);
	free(loads);
	free(bytes);
	free(part_of);
}

/* ---- what is said of all processes of a host -------------------------------------------------- */

/* When the first call of the stream that is no other call's began, and its position; false: there is none. */
static bool first_call(struct stream *stream, struct reading_position *at, uint64_t *begin_ns)
{
	struct reader *r = &stream->reader;
	const struct timeline *timeline = &stream->trace->timeline;
	struct record record = {.stream = stream};
	bool found = false;

	r->quiet = true;
	while (!found && reader_next(r) && r->kind != SPY_STREAM_GPU) {
		uint64_t ns = timeline_ns(timeline, r->time), duration_ns;

		record_set(&record, r->record);
		if (!record_is_outer_call(&record))
			continue;
		duration_ns = record_span_ns(&record, record_cycles(&record));
		*at = (struct reading_position){ns, stream->index + 1};
		*begin_ns = ns - min_u64(duration_ns, ns);
		found = true;
	}
	reader_rewind(r);
	return found;
}

/* When the first call of each host's processes began: its cpu_pressure counts time from there on. */
static void find_begins(struct parts *p, const struct trace_set *set)
{
	struct reading_position *first = xcalloc(set->n_hosts + 1, sizeof(*first)), at;
	uint64_t begin_ns;

	p->begun_ns = xcalloc(set->n_hosts + 1, sizeof(*p->begun_ns));
	for (size_t i = 0; i < set->n_hosts; i++)
		first[i] = (struct reading_position){UINT64_MAX, 0};
	for (size_t i = 0; i < set->n_streams; i++) {
		size_t host = set->streams[i]->trace->host->index;

		if (!first_call(set->streams[i], &at, &begin_ns) ||
		    position_compare(&at, &first[host]) >= 0)
			continue;
		first[host] = at;
		p->begun_ns[host] = begin_ns;
	}
	free(first);
}

static void init_journals(struct part *part)
{
	for (size_t i = 0; i < PART_LINES; i++) {
		struct part_journal *j = &part->journals[i];

		j->part = part;
		j->last_chunk = &j->chunks;
		j->last_replayed = &j->replayed;
	}
}

void parts_init(struct parts *p, struct analysis *whole, struct groups *groups, size_t most)
{
	*p = (struct parts){.whole = whole};
	share_out(p, whole->set, groups, most);
	p->join.n = p->n;
	p->join.parts = xcalloc(p->n + 1, sizeof(*p->join.parts));
	for (size_t i = 0; i < p->n; i++) {
		p->all[i].parts = p;
		p->all[i].index = i;
		p->all[i].turn = PART_TURN_FIRST;
		init_journals(&p->all[i]);
		p->join.parts[i] = (struct join_part){.model = &p->all[i].a.model,
						      .processes = p->all[i].processes,
						      .n_processes = p->all[i].n_processes};
	}
	for (size_t i = 0; i < PART_LINES; i++)
		p->heaps[i].all = xcalloc(p->n + 1, sizeof(struct part_journal *));
	if (whole->accounted) {
		find_begins(p, whole->set);
		idle_replay_init(&p->gpus, &whole->accounts, p->n);
	}
	whole->blame.kernel_overlap.numbers = true;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static void take_warning(void *data, char *text)
{
	struct part *part = data;

	part->warnings = grow(part->warnings, part->n_warnings, sizeof(*part->warnings));
	part->warnings[part->n_warnings++] = (struct part_warning){position_now(), text};
}

void part_begin(struct part *part)
{
	const struct analysis *whole = part->parts->whole;
	struct analysis *a = &part->a;
	struct journal *journal;

	*a = (struct analysis){.set = whole->set, .accounted = whole->accounted};
#define ON_INIT(...) __VA_ARGS__;
#define ON_JOURNAL(...) __VA_ARGS__ = journal;
#define ON_PART ON_INIT
#define STAGE(field, type, when, ...) \
	journal = &part->journals[PART_LINE_##field].journal; \
	if (when) { \
		__VA_ARGS__ \
	}
#include "findings/stages.def"
	reading_begin(&part->reading, a, part->helpers);
	part->begun = true;
}

static void end_reading(struct part *part)
{
	struct analysis *a = &part->a;

	reading_end(&part->reading);
	for (size_t i = 0; a->accounted && i < a->set->n_hosts; i++)
		cpu_pressure_settle(&a->accounts.cpu_pressure[i]);
}

bool part_go_on(struct part *part, uint64_t records)
{
	bool more;

	part->place.apart = true;
	reading_place = part->place;
	warn_divert(take_warning, part);
	if (!part->begun)
		part_begin(part);
	more = reading_go_on(&part->reading, records);
	if (!more)
		end_reading(part);
	warn_divert(NULL, NULL);
	part->place = reading_place;
	part->place.record = NULL; /* the reading sets it */
	reading_place = (struct reading_place){0};
	return more;
}

/* ---- the end ---------------------------------------------------------------------------------- */

#define ON_RELEASE(...) __VA_ARGS__;
#define ON_RELEASE_PART ON_RELEASE
#define STAGE(field, type, when, ...) \
	static void release_##field(struct part *part) \
	{ \
		struct analysis *a = &part->a; \
\
		__VA_ARGS__ \
	}
#include "findings/stages.def"

/* What the whole has not taken over. */
static void release_analysis(struct part *part)
{
	static void (*const releases[])(struct part * part) = {
#define STAGE(field, ...) release_##field,
#include "findings/stages.def"
	};
	size_t i;

	if (part->reading.paths) /* given up */
		reading_give_up(&part->reading);
	for (i = ARRAY_SIZE(releases); i--;)
		releases[i](part);
}

/* Entries that were not replayed: from the first one on. */
static void release_journal(struct journal *journal, size_t first)
{
	for (size_t i = first; i < journal->n; i++)
		if (journal->all[i].kind == JOURNAL_RANK)
			ranks_drop(journal->all[i].rank.event);
	free(journal->all);
	free(journal->stored);
}

static void release_chunks(struct part_chunk *chunk)
{
	while (chunk) {
		struct part_chunk *behind = chunk->behind;

		release_journal(&chunk->journal, chunk->next);
		free(chunk);
		chunk = behind;
	}
}

void parts_release(struct parts *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct part *part = &p->all[i];

		if (part->begun)
			release_analysis(part);
		for (size_t j = 0; j < PART_LINES; j++) {
			release_chunks(part->journals[j].chunks);
			release_chunks(part->journals[j].replayed);
			release_chunks(part->journals[j].blank);
			release_chunks(part->journals[j].emptied);
			release_journal(&part->journals[j].journal, 0);
		}
		for (size_t j = 0; j < part->n_warnings; j++)
			free(part->warnings[j].text);
		free(part->warnings);
		free(part->streams);
		free(part->processes);
	}
	idle_replay_release(&p->gpus);
	free(p->join.parts);
	free(p->elsewhere);
	free(p->all);
	for (size_t i = 0; i < PART_LINES; i++)
		free(p->heaps[i].all);
	free(p->begun_ns);
	*p = (struct parts){0};
}
