/*
 * analyzer/job/feed.c: a digest is a journal of what ranks/ is told of a process, as far as it was kept: here it is told again,
 * for all ranks at once. So who was last, by how much and why, is found by the code that finds it in traces. Called by
 * matched.c.
 */
#include <stdlib.h>
#include "feed.h"
#include "findings/straggler.h"

/* What ranks/ takes for traces and processes: one for each rank. */
struct feed {
	struct job *job;
	struct accounting accounts;
	struct model model;
	struct idle idle;
	struct ranks ranks;
	struct host *hosts;
	struct trace *traces;
	struct process *processes;
	struct fed_place {
		struct fed_place_key {
			uint64_t cause, where;
		} key;
		struct rank_place is;
		UT_hash_handle hh;
	} * places;
};

static void begin(struct feed *f)
{
	const struct job *job = f->job;

	f->hosts = xcalloc(job->n_hosts + 1, sizeof(*f->hosts));
	f->traces = xcalloc(job->n_ranks + 1, sizeof(*f->traces));
	f->processes = xcalloc(job->n_ranks + 1, sizeof(*f->processes));
	for (size_t i = 0; i < job->n_ranks; i++) {
		f->traces[i].index = (uint32_t)i;
		f->traces[i].host = &f->hosts[job->ranks[i].host];
		f->processes[i].trace = &f->traces[i];
	}
	f->model.n_processes = job->n_ranks;
	f->accounts.model = &f->model;
	f->idle.accounts = &f->accounts;
	ranks_init(&f->ranks, &f->idle, true);
	f->ranks.from_digests = true;
}

static void release(struct feed *f)
{
	struct fed_place *place, *next;

	HASH_EMPTY (f->places, place, next)
		free(place);
	ranks_release(&f->ranks);
	idle_sums_release(&f->idle.sums);
	free(f->hosts);
	free(f->traces);
	free(f->processes);
}

/* ---- causes ---------------------------------------------------------------------------------- */

/* "cuda-wait:FUNCTION": a call that was made to wait for the GPU. */
static bool is_asked_for(const char *code)
{
	const char *wait = idle_cause_codes[IDLE_CUDA_WAIT];

	return !strncmp(code, wait, strlen(wait)) && code[strlen(wait)] == ':';
}

/* The GPU is late with its work if most other ranks wait there, too; else it is the program that waits where it need not. */
static enum idle_cause kind_of(const char *code)
{
	enum idle_cause cause = is_asked_for(code) ? IDLE_GPU_QUERY : idle_cause_of_code(code);

	/* A later version's: its code is its own all the same. */
	return cause < IDLE_CAUSE_COUNT ? cause : IDLE_UNEXPLAINED;
}

static struct rank_place *place_of(struct feed *f, const struct operation_cause *cause)
{
	const struct fed_place_key key = {cause->cause, cause->where};
	struct fed_place *place;

	HASH_FIND(hh, f->places, &key, sizeof(key), place);
	if (place)
		return &place->is;
	place = xcalloc(1, sizeof(*place));
	place->key = key;
	place->is.like = place->is.roughly = HASH_COUNT(f->places) + 1;
	place->is.cause = kind_of(f->job->causes[cause->cause]);
	place->is.longest = (struct idle_part){.cause = place->is.cause,
					       .fn = NO_FUNCTION,
					       .fn_before = NO_FUNCTION,
					       .address = cause->cause + 1u};
	HASH_ADD(hh, f->places, key, sizeof(place->key), place);
	return &place->is;
}

static uint8_t cause_of(struct job *job, enum idle_cause cause, uint64_t address)
{
	const char *code = address ? job->causes[address - 1] : idle_cause_codes[cause];

	if (cause == IDLE_GPU_WORK)
		code = idle_cause_codes[IDLE_GPU_WORK];
	else if (is_asked_for(code))
		code = idle_cause_codes[IDLE_CUDA_WAIT];
	return job_cause_index(job, code);
}

uint8_t job_cause_of_part(struct job *job, const struct idle_part *part)
{
	return cause_of(job, part->cause, part->address);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void emit_comm(struct feed *f, uint32_t number, const struct operation_row *row)
{
	struct rank_comm_event event = {.head = {RANK_EVENT_COMM, &f->processes[row->rank]},
					.comm = {.comm = number,
						 .hash = row->comm,
						 .rank = row->rank,
						 .device = SPY_DEVICE_NONE}};

	ranks_apply(&f->ranks, &event.head);
}

static struct rank_op *op_new(struct feed *f, const struct operation_row *row, bool aside)
{
	struct rank_op *op =
		xcalloc(1, sizeof(*op) + DIGEST_OPERATION_CAUSES * sizeof(*op->own_parts));

	op->parts = op->own_parts;
	op->row = row;
	op->aside = aside;
	op->launched = true;
	op->continues = row->continues;
	op->first = row->first;
	op->submit_begin_ns = row->submit_ns;
	op->submit_end_ns = row->submitted_ns;
	op->gpu_operations = row->work;
	for (size_t i = 0; i < DIGEST_OPERATION_CAUSES; i++)
		if (row->causes[i].ns) /* what was before the ranks met is not in it */
			op->parts[op->n_parts++] = (struct rank_part){
				place_of(f, &row->causes[i]), row->causes[i].ns, UINT64_MAX, 0, 0};
	return op;
}

static void emit_row(struct feed *f, const struct operation_row *row, bool aside)
{
	const struct process *process = &f->processes[row->rank];
	uint32_t id = (uint32_t)(row - f->job->rows);
	uint64_t begin_ns = row->host_ns, took_ns = row->end_ns - row->begin_ns;
	struct rank_submitted_event submitted = {
		.head = {RANK_EVENT_SUBMITTED, process},
		/* of a later version: any other one */
		.operation = {.func = row->function < SPY_NCCL_FUNCS ? row->function
								     : SPY_NCCL_OTHER,
			      .flags = SPY_COLLECTIVE_RUN_FOLLOWS,
			      .comm = row->comm_number,
			      .seq = row->key, /* of one operation only, whatever it is */
			      .count = row->bytes,
			      .bytes_each = 1,
			      .id = id},
		.ns = row->submitted_ns,
		.op = op_new(f, row, aside)};
	struct rank_ran_event ran = {.head = {RANK_EVENT_RAN, process},
				     .id = id,
				     .by_host_times = row->by_host,
				     .begin_ns = row->begin_ns,
				     .end_ns = row->end_ns};

	if (begin_ns) {
		ran.seen_ns = begin_ns + row->host_error_ns;
		ran.ran_ns = ran.seen_ns + took_ns;
	}
	ranks_apply(&f->ranks, &submitted.head);
	ranks_apply(&f->ranks, &ran.head);
}

/* ---- in the order of time -------------------------------------------------------------------- */

/* Rows of one operation. */
struct rows_span {
	uint64_t at_ns;
	size_t from, to;
	bool outside; /* a rank did not work yet, or no more: it was recorded, and has no row */
};

static int by_at(const void *a, const void *b)
{
	const struct rows_span *x = a, *y = b;

	return COMPARE(x->at_ns, y->at_ns) ?: COMPARE(x->from, y->from);
}

/* Most of its ranks have it because it came late. */
static bool is_aside(const struct operation_row *rows, size_t n)
{
	size_t i, chosen = 0;

	for (i = 0; i < n; i++)
		chosen += !rows[i].slow;
	return 2 * chosen < n || chosen < 2;
}

static void emit_comms(struct feed *f)
{
	uint32_t *last = xcalloc(f->job->n_ranks + 1, sizeof(*last)), number = 0;

	for (size_t i = 0; i < f->job->n_rows; i++) {
		struct operation_row *row = &f->job->rows[i];

		if (!i || row->comm != row[-1].comm)
			number++;
		row->comm_number = number;
		if (last[row->rank] != number)
			emit_comm(f, number, row);
		last[row->rank] = number;
	}
	free(last);
}

static size_t find_spans(const struct job *job, struct rows_span *spans)
{
	const struct operation_row *rows = job->rows;
	size_t n = 0, i;

	for (i = 0; i < job->n_rows; i++) {
		if (!i || rows[i].comm != rows[i - 1].comm || rows[i].key != rows[i - 1].key)
			spans[n++] = (struct rows_span){
				.at_ns = job_at_ns(job, rows[i].rank, rows[i].submit_ns),
				.from = i};
		spans[n - 1].to = i + 1;
	}
	return n;
}

/* Of a rank, in one communicator. */
struct met {
	uint64_t first_ns, last_ns;
};

/* Of one communicator. met: room for all ranks. */
static void find_outside(const struct job *job, struct rows_span *spans, size_t n, struct met *met)
{
	struct met all = {UINT64_MAX, 0}, work = {0, UINT64_MAX};

	for (size_t i = 0; i < job->n_ranks; i++)
		met[i] = (struct met){UINT64_MAX, 0};
	for (size_t i = 0; i < n; i++)
		for (size_t j = spans[i].from; j < spans[i].to; j++) {
			struct met *m = &met[job->rows[j].rank];

			m->first_ns = min_u64(m->first_ns, spans[i].at_ns);
			m->last_ns = max_u64(m->last_ns, spans[i].at_ns);
			all.first_ns = min_u64(all.first_ns, m->first_ns);
			all.last_ns = max_u64(all.last_ns, m->last_ns);
		}
	for (size_t i = 0; i < job->n_ranks; i++) {
		if (met[i].first_ns == UINT64_MAX)
			continue;
		if (job_from_ns(job, &job->ranks[i]) <= all.first_ns)
			work.first_ns = max_u64(work.first_ns, met[i].first_ns);
		if (job_until_ns(job, &job->ranks[i]) >= all.last_ns)
			work.last_ns = min_u64(work.last_ns, met[i].last_ns);
	}
	for (size_t i = 0; i < n; i++)
		spans[i].outside = spans[i].at_ns < work.first_ns || spans[i].at_ns > work.last_ns;
}

static void find_all_outside(const struct job *job, struct rows_span *spans, size_t n)
{
	struct met *met = xcalloc(job->n_ranks + 1, sizeof(*met));
	size_t from, to;

	for (from = 0; from < n; from = to) {
		for (to = from;
		     to < n && job->rows[spans[to].from].comm == job->rows[spans[from].from].comm;
		     to++)
			;
		find_outside(job, &spans[from], to - from, met);
	}
	free(met);
}

static void emit_all(struct feed *f)
{
	const struct job *job = f->job;
	struct rows_span *spans = xcalloc(job->n_rows + 1, sizeof(*spans));
	const struct operation_row *rows = job->rows;
	size_t n = find_spans(job, spans), i, j;

	find_all_outside(job, spans, n);
	qsort(spans, n, sizeof(*spans), by_at);
	for (i = 0; i < n; i++) {
		bool aside = spans[i].outside ||
			     is_aside(&rows[spans[i].from], spans[i].to - spans[i].from);

		for (j = spans[i].from; j < spans[i].to; j++)
			emit_row(f, &rows[j], aside);
	}
	free(spans);
}

/* ---- what ranks/ says ------------------------------------------------------------------------ */

static void take_rank(struct job_rank *to, const struct rank *rank)
{
	to->last = rank->last_count;
	to->late_ns = rank->late_ns;
	to->waited_ns = rank->wait_ns;
	to->sure_ns = rank->sure_ns - rank->longest_sure_ns;
	to->gpu_late += rank->gpu_late_count;
	to->same_work += rank->gpu_late_same_work;
	to->fit_error_ns = rank->align_error_ns;
}

/* Of all operations, those that were compared. */
static double part_of(const struct job *job)
{
	double all = 0, met = 0;

	for (size_t i = 0; i < job->n_ranks; i++) {
		met += (double)job->ranks[i].met;
		all += (double)job_operations_of(&job->ranks[i]);
	}
	return all > 0 ? met / all : 1;
}

static void take(struct feed *f)
{
	struct job *job = f->job;
	struct straggler straggler;

	for (size_t i = 0; i < job->n_ranks; i++)
		if (f->ranks.by_process[i])
			take_rank(&job->ranks[i], f->ranks.by_process[i]);
	for (const struct idle_sum *sum = f->idle.sums.by_key; sum; sum = sum->hh.next) {
		struct job_rank *rank = &job->ranks[sum->process->trace->index];
		uint8_t cause = cause_of(job, (enum idle_cause)sum->key.cause, sum->key.address);

		rank->cause_ns[cause] = add_capped(rank->cause_ns[cause], sum->ns);
	}
	job->align_error_ns = f->ranks.align_error_ns;
	f->ranks.part = part_of(job);
	straggler = straggler_find(&f->ranks);
	job->straggler = UINT32_MAX;
	if (straggler.mostly) {
		job->straggler = straggler.rank->process->trace->index;
		job->straggler_by = straggler.by;
	}
}

void job_feed(struct job *job,
	      void (*see)(void *data, struct rank_instance *instance, const struct rank_op *last),
	      void *data)
{
	struct feed *f = xcalloc(1, sizeof(*f));

	f->job = job;
	begin(f);
	f->ranks.on_evaluated = see;
	f->ranks.data = data;
	job->ranks_of = &f->ranks;
	emit_comms(f);
	emit_all(f);
	ranks_close(&f->ranks);
	take(f);
	job->ranks_of = NULL;
	release(f);
	free(f);
}
