/*
 * analyzer/filter/survey.c: which threads, GPUs, ranks, functions and ranges a trace set has. Called once for a set, by
 * filtering_begin, before its other readings.
 */
#include <stdlib.h>
#include "survey.h"

/* Records may be damaged, and name any number of them. */
#define THREADS_MOST (1u << 18)
#define RANKS_MOST 4096

struct surveyor {
	struct survey *s;
	struct trace_set *set;
	struct stream *stream;
	uint32_t process;
	uint32_t tid; /* of the record before */
};

/* ---- threads --------------------------------------------------------------------------------- */

static uint64_t key_of(uint32_t process, uint32_t tid)
{
	return (uint64_t)process << 32 | tid;
}

const struct survey_thread *survey_find_thread(const struct survey *s, uint32_t process,
					       uint32_t tid)
{
	uint64_t key = key_of(process, tid);
	struct survey_thread *thread;

	HASH_FIND(hh, s->threads, &key, sizeof(key), thread);
	return thread;
}

static struct survey_thread *thread_get(struct survey *s, uint32_t process, uint32_t tid)
{
	uint64_t key = key_of(process, tid);
	struct survey_thread *thread;

	HASH_FIND(hh, s->threads, &key, sizeof(key), thread);
	if (thread || !tid || HASH_COUNT(s->threads) >= THREADS_MOST)
		return thread;
	HASH_NEW(s->threads, thread, key, key);
	return thread;
}

/* The first name that the program gives a thread is the one it has (model.c). */
static void add_name(struct surveyor *v, uint32_t tid, const char *text, size_t most, bool given)
{
	struct survey_thread *thread = thread_get(v->s, v->process, tid);
	size_t length = strnlen(text, most);
	struct survey_name *name;

	if (!thread || !length)
		return;
	for (name = thread->names; name; name = name->next)
		if (name->given == given &&
		    (given || (!strncmp(name->name, text, length) && !name->name[length])))
			return;
	name = xcalloc(1, sizeof(*name) + length + 1);
	memcpy(name->name, text, length);
	name->given = given;
	name->next = thread->names;
	thread->names = name;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static void add_rank(struct survey *s, const struct survey_rank *rank)
{
	size_t i;

	for (i = 0; i < s->n_ranks; i++)
		if (s->ranks[i].process == rank->process &&
		    (s->ranks[i].whole || s->ranks[i].device == rank->device))
			break;
	if (i < s->n_ranks) {
		/* The communicator with most ranks numbers them, as in the report (ranks.c). */
		if (!s->ranks[i].whole && rank->ranks > s->ranks[i].ranks)
			s->ranks[i] = *rank;
		return;
	}
	if (s->n_ranks == RANKS_MOST)
		return;
	s->ranks = grow(s->ranks, s->n_ranks, sizeof(*s->ranks));
	s->ranks[s->n_ranks++] = *rank;
}

/* As a launcher said it. */
static void add_launched(struct survey *s, const struct trace *trace)
{
	const struct metadata *m = &trace->metadata;

	if (m->has_rank && m->world_size != 1)
		add_rank(s, &(struct survey_rank){.process = trace->index,
						  .number = m->rank,
						  .device = SPY_DEVICE_NONE,
						  .whole = true});
}

/* The only rank of a process has all of its calls. */
static void settle_ranks(struct survey *s)
{
	size_t i, j, n;

	for (i = 0; i < s->n_ranks; i++) {
		for (j = n = 0; j < s->n_ranks; j++)
			n += s->ranks[j].process == s->ranks[i].process;
		s->ranks[i].whole = n == 1;
	}
}

/* ---- records --------------------------------------------------------------------------------- */

static void see_call(struct surveyor *v, struct trace *trace, uint16_t number, unsigned int how)
{
	uint32_t fn = trace_function(v->set, trace, number);
	struct survey *s = v->s;

	if (unlikely(fn >= s->n_functions)) {
		size_t n = v->set->functions.count;

		s->functions = xrealloc(s->functions, n, sizeof(*s->functions));
		memset(s->functions + s->n_functions, 0, n - s->n_functions);
		s->n_functions = n;
	}
	s->functions[fn] |= (uint8_t)how;
}

static void see_other(struct surveyor *v, const struct record *record)
{
	const struct spy_rec_nvtx_name *named;
	const struct spy_rec_nccl_comm *comm;
	const struct spy_rec_thread *thread;

	switch (record->event) {
	case SPY_EV_THREAD:
		thread = record_thread(record);
		add_name(v, thread->tid, thread->name, sizeof(thread->name), false);
		break;
	case SPY_EV_NVTX_NAME:
		named = record_nvtx_name(record);
		if (named->what == SPY_NAMED_THREAD)
			add_name(v, (uint32_t)named->object, record_text(record, 0), SPY_TEXT_MAX,
				 true);
		break;
	case SPY_EV_COUNT:
		see_call(v, v->stream->trace, record_count(record)->fn, SURVEY_NESTED);
		break;
	case SPY_EV_RANGE_NAME:
		range_names_get(&v->s->ranges, record_text(record, 0), record_text(record, 1),
				record_range_name(record)->folded);
		break;
	case SPY_EV_NCCL_COMM:
		comm = record_nccl_comm(record);
		add_rank(v->s, &(struct survey_rank){.process = v->process,
						     .number = comm->rank,
						     .ranks = comm->ranks,
						     .device = comm->device});
		break;
	case SPY_EV_GPU_OP:
		v->s->devices[record_gpu_op(record)->device] = true;
		break;
	default:
		break;
	}
}

static void see(struct surveyor *v, const struct record *record)
{
	if (!record_is_call(record)) {
		see_other(v, record);
		return;
	}
	see_call(v, v->stream->trace, record->trace_fn,
		 record->depth ? SURVEY_NESTED : SURVEY_CALLED);
	v->s->devices[record->device] = true;
}

static void see_stream(struct surveyor *v, struct stream *stream)
{
	struct reader *r = &stream->reader;
	const struct timeline *timeline = &stream->trace->timeline;
	struct survey_span *span = &v->s->processes[stream->trace->index];
	struct record record = {0};
	bool any = false;

	v->stream = stream;
	v->process = stream->trace->index;
	v->tid = 0;
	r->quiet = true; /* of damage the next reading speaks */
	for (; reader_next(r); any = true) {
		if (!any && r->kind != SPY_STREAM_GPU)
			span->first_ns = min_u64(span->first_ns, timeline_ns(timeline, r->time));
		if (unlikely(r->tid != v->tid) && r->kind != SPY_STREAM_GPU)
			thread_get(v->s, v->process, r->tid);
		v->tid = r->tid;
		record_of_stream(&record, stream);
		see(v, &record);
	}
	if (any)
		span->last_ns = max_u64(span->last_ns, timeline_ns(timeline, r->time));
	reader_rewind(r);
}

/* What threads counted, and did not write down any more. */
static void see_board(struct surveyor *v, struct trace *trace)
{
	const struct board *board = &trace->board;

	for (size_t slot = 0; slot < board->n_slots; slot++)
		for (size_t i = 0; i < SPY_BOARD_COUNTERS; i++)
			if (board->slots[slot].counts[i])
				see_call(v, trace, board->head.counter_fn[i], SURVEY_NESTED);
}

void survey_make(struct survey *s, struct trace_set *set)
{
	struct surveyor v = {.s = s, .set = set};

	*s = (struct survey){.first_ns = UINT64_MAX};
	range_names_init(&s->ranges);
	s->processes = xcalloc(set->n_traces, sizeof(*s->processes));
	for (size_t i = 0; i < set->n_traces; i++) {
		s->processes[i].first_ns = UINT64_MAX;
		add_launched(s, set->traces[i]);
	}
	for (size_t i = 0; i < set->n_streams; i++)
		see_stream(&v, set->streams[i]);
	for (size_t i = 0; i < set->n_traces; i++) {
		see_board(&v, set->traces[i]);
		s->first_ns = min_u64(s->first_ns, s->processes[i].first_ns);
		s->last_ns = max_u64(s->last_ns, s->processes[i].last_ns);
	}
	s->first_ns = min_u64(s->first_ns, s->last_ns);
	s->devices[SPY_DEVICE_NONE] = false;
	settle_ranks(s);
}

void survey_release(struct survey *s)
{
	struct survey_thread *thread, *next;

	HASH_EMPTY (s->threads, thread, next) {
		while (thread->names) {
			struct survey_name *name = thread->names;

			thread->names = name->next;
			free(name);
		}
		free(thread);
	}
	free(s->processes);
	free(s->functions);
	free(s->ranks);
	if (s->ranges.all)
		range_names_release(&s->ranges);
	*s = (struct survey){0};
}
