/*
 * analyzer/ranks/unshared.c: what a rank does and no other one ever does. A thread that is late has reasons in any case: of two
 * that run the same code, now one takes longer at a line and now the other. What only one of them does is of another kind:
 * without it, that rank would be in time like the others. So all time before operations is summed up for each rank, whether
 * it came late or not, and reasons at places where the others spend next to nothing are that rank's alone. Called for each
 * operation that was compared, and after the last record.
 */
#include "work.h"

#define OTHERS_PART 20 /* of its time at a place, what any other rank may spend there */
#define LEAST_NS \
	100000000 /* that it spends there: ten samples, of which the others then have one at most by chance */
#define ALIKE_PERCENT \
	66 /* of its time at a place, what another one spends there: they run the same code */
#define SHOWN_PART 20 /* of its lateness, what a function has at least */

/* ---- where ranks were ------------------------------------------------------------------------ */

void rank_unshared_see(const struct rank_instance *instance)
{
	for (struct rank_op *op = instance->ops; op; op = op->next) {
		struct rank_op *of = op->lead ?: op; /* whose parts they are */

		for (uint32_t i = 0; i < of->n_parts && !of->first && !of->spent; i++)
			of->parts[i].place->spent_ns += of->parts[i].ns;
		of->spent = true;
	}
}

void rank_unshared_finish(struct ranks *ranks)
{
	const struct ranks_work *w = ranks->work;

	for (size_t i = 0; i < w->n_places; i++) {
		const struct idle_part *part = &w->places[i]->longest;
		const struct process *process = part->thread ? part->thread->process : NULL;
		const struct rank *rank = process ? ranks->by_process[process->trace->index] : NULL;

		if (rank && w->places[i]->spent_ns)
			idle_sums_add(&ranks->spent, idle_owner_rank(rank->index), process, part,
				      w->places[i]->spent_ns);
	}
	samples_divide(&ranks->idle->samples, &ranks->spent);
}

/* ---- lines of all ranks ---------------------------------------------------------------------- */

/* One rank's time at a line, whatever it did there. */
struct line_time {
	struct line_time_key {
		uint64_t line, owner;
	} key;
	uint64_t ns;
	UT_hash_handle hh;
};

/* The two ranks that have most time there. */
struct line {
	uint64_t key, owner;
	uint64_t most_ns, second_ns;
	UT_hash_handle hh;
};

/* What has no place is told apart by its cause. */
static uint64_t line_of(const struct idle_sum *sum)
{
	return rank_line_key(sum->process, &sum->longest) ?: sum->key.cause + 1;
}

static bool has_line(const struct idle_sum *sum)
{
	return line_of(sum) != sum->key.cause + 1;
}

/* The sums of idle_owner_rank that are a thread's time. */
static bool is_of_rank(const struct ranks *ranks, const struct idle_sum *sum)
{
	return sum->key.owner >= idle_owner_rank(0) && sum->key.owner < idle_owner_rank(ranks->n) &&
	       sum->key.cause != IDLE_GPU_WORK && sum->ns;
}

static struct line_time *sum_lines(const struct ranks *ranks, const struct idle_sums *sums)
{
	struct line_time *times = NULL, *time;

	for (const struct idle_sum *sum = sums->by_key; sum; sum = sum->hh.next) {
		struct line_time_key key = {line_of(sum), sum->key.owner};

		if (!is_of_rank(ranks, sum))
			continue;
		HASH_FIND(hh, times, &key, sizeof(key), time);
		if (!time)
			HASH_NEW(times, time, key, key);
		time->ns += sum->ns;
	}
	return times;
}

static struct line *compare_lines(const struct ranks *ranks, const struct idle_sums *sums)
{
	struct line_time *times = sum_lines(ranks, sums), *time, *next;
	struct line *lines = NULL, *line;

	HASH_EMPTY (times, time, next) {
		HASH_FIND(hh, lines, &time->key.line, sizeof(time->key.line), line);
		if (!line)
			HASH_NEW(lines, line, key, time->key.line);
		line->second_ns = max_u64(line->second_ns, min_u64(line->most_ns, time->ns));
		if (time->ns > line->most_ns) {
			line->most_ns = time->ns;
			line->owner = time->key.owner;
		}
		free(time);
	}
	return lines;
}

/* Of that sum's rank, if that has most of it; NULL: another one has. */
static const struct line *find_line(struct line *lines, const struct idle_sum *sum)
{
	uint64_t key = line_of(sum);
	const struct line *line;

	HASH_FIND(hh, lines, &key, sizeof(key), line);
	return line && line->owner == sum->key.owner ? line : NULL;
}

static void free_lines(struct line *lines)
{
	struct line *line, *next;

	HASH_EMPTY (lines, line, next)
		free(line);
}

/* ---- reasons --------------------------------------------------------------------------------- */

static bool is_unshared(struct line *spent, const struct idle_sum *reason)
{
	const struct line *line = has_line(reason) ? find_line(spent, reason) : NULL;

	return line && line->most_ns >= LEAST_NS && line->second_ns * OTHERS_PART <= line->most_ns;
}

/* By how much the rank is late there for longer than any other one is. */
static uint64_t excess_of(struct line *late, const struct idle_sum *reason)
{
	const struct line *line = find_line(late, reason);

	if (!line)
		return 0;
	return (uint64_t)((double)reason->ns * (double)(line->most_ns - line->second_ns) /
			  (double)line->most_ns);
}

static bool is_alike(struct line *spent, const struct idle_sum *reason)
{
	uint64_t key = line_of(reason);
	const struct line *line = NULL;

	if (has_line(reason))
		HASH_FIND(hh, spent, &key, sizeof(key), line);
	return line && (line->owner != reason->key.owner ||
			line->second_ns >= line->most_ns / 100 * ALIKE_PERCENT);
}

/* A thread that computes more slowly than others do does so everywhere. */
static void sum_alike(struct ranks *ranks, struct line *spent)
{
	for (const struct idle_sum *sum = ranks->idle->sums.by_key; sum; sum = sum->hh.next)
		if (is_of_rank(ranks, sum) &&
		    (sum->key.cause == IDLE_PYTHON || sum->key.cause == IDLE_CPU) &&
		    is_alike(spent, sum))
			ranks->all[sum->key.owner - idle_owner_rank(0)]->unshared.alike_ns +=
				sum->ns;
}

/* A rank's reasons in one function of Python, or else at one place. */
struct reasons_there {
	struct reasons_key {
		uint64_t owner, process, code;
	} key;
	uint64_t unshared_ns, excess_ns;
	const struct idle_sum *most; /* of unshared_ns */
	UT_hash_handle hh;
};

static struct reasons_there *get_function(struct reasons_there **all, const struct idle_sum *reason)
{
	struct reasons_key key = {reason->key.owner, reason->key.process,
				  reason->key.code ? reason->key.code : line_of(reason)};
	struct reasons_there *function;

	HASH_FIND(hh, *all, &key, sizeof(key), function);
	if (!function)
		HASH_NEW(*all, function, key, key);
	return function;
}

static struct reasons_there *sum_functions(const struct ranks *ranks, struct line *spent,
					   struct line *late)
{
	struct reasons_there *all = NULL, *function;

	for (const struct idle_sum *sum = ranks->idle->sums.by_key; sum; sum = sum->hh.next) {
		if (!is_of_rank(ranks, sum))
			continue;
		function = get_function(&all, sum);
		if (!is_unshared(spent, sum)) {
			function->excess_ns += excess_of(late, sum);
			continue;
		}
		function->unshared_ns += sum->ns;
		if (!function->most || sum->ns > function->most->ns)
			function->most = sum;
	}
	return all;
}

static void add_function(struct rank *rank, const struct reasons_there *function)
{
	struct rank_unshared *unshared = &rank->unshared;

	unshared->excess_ns = max_u64(unshared->excess_ns, function->excess_ns);
	if (!function->most || function->unshared_ns * SHOWN_PART < rank->late_ns)
		return;
	unshared->ns += function->unshared_ns;
	if (function->unshared_ns <= unshared->most_ns)
		return;
	unshared->most_ns = function->unshared_ns;
	unshared->most = function->most;
}

void ranks_find_unshared(struct ranks *ranks)
{
	struct reasons_there *all, *function, *next;
	struct line *spent, *late;

	if (ranks->n < 2)
		return;
	spent = compare_lines(ranks, &ranks->spent);
	late = compare_lines(ranks, &ranks->idle->sums);
	all = sum_functions(ranks, spent, late);
	sum_alike(ranks, spent);
	HASH_EMPTY (all, function, next) {
		add_function(ranks->all[function->key.owner - idle_owner_rank(0)], function);
		free(function);
	}
	free_lines(spent);
	free_lines(late);
}
