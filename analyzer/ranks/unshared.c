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
#define SHOWN_PART 20 /* of its lateness, what a function has at least */

/* ---- where ranks were ------------------------------------------------------------------------ */

void rank_unshared_see(const struct rank_instance *instance)
{
	for (const struct rank_op *op = instance->ops; op; op = op->next)
		for (uint32_t i = 0; i < op->n_parts && !op->first; i++)
			op->parts[i].place->spent_ns += op->parts[i].ns;
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

/* The two ranks that spent most time there. */
struct line {
	uint64_t key, owner;
	uint64_t most_ns, second_ns;
	UT_hash_handle hh;
};

static uint64_t line_of(const struct idle_sum *sum)
{
	return rank_line_key(sum->process, &sum->longest);
}

static struct line_time *sum_lines(const struct idle_sums *spent)
{
	struct line_time *times = NULL, *time;

	for (const struct idle_sum *sum = spent->by_key; sum; sum = sum->hh.next) {
		struct line_time_key key = {line_of(sum), sum->key.owner};

		if (!key.line)
			continue;
		HASH_FIND(hh, times, &key, sizeof(key), time);
		if (!time)
			HASH_NEW(times, time, key, key);
		time->ns += sum->ns;
	}
	return times;
}

/* Releases the times. */
static struct line *compare_lines(struct line_time *times)
{
	struct line *lines = NULL, *line;
	struct line_time *time, *next;

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

static bool is_unshared(struct line *lines, const struct idle_sum *reason)
{
	uint64_t key = line_of(reason);
	const struct line *line;

	HASH_FIND(hh, lines, &key, sizeof(key), line);
	return line && line->owner == reason->key.owner && line->most_ns >= LEAST_NS &&
	       line->second_ns * OTHERS_PART <= line->most_ns;
}

/* ---- functions of a rank --------------------------------------------------------------------- */

/* The lines of one function of Python, or else one place, that are a rank's alone. */
struct own_function {
	struct own_function_key {
		uint64_t owner, process, code;
	} key;
	uint64_t ns;
	const struct idle_sum *most;
	UT_hash_handle hh;
};

static void add_reason(struct own_function **functions, const struct idle_sum *sum)
{
	struct own_function_key key = {sum->key.owner, sum->key.process,
				       sum->key.code ? sum->key.code : line_of(sum)};
	struct own_function *function;

	HASH_FIND(hh, *functions, &key, sizeof(key), function);
	if (!function)
		HASH_NEW(*functions, function, key, key);
	function->ns += sum->ns;
	if (!function->most || sum->ns > function->most->ns)
		function->most = sum;
}

static void add_function(struct ranks *ranks, const struct own_function *function)
{
	struct rank *rank = ranks->all[function->key.owner - idle_owner_rank(0)];

	if (function->ns * SHOWN_PART < rank->late_ns)
		return;
	rank->unshared.ns += function->ns;
	if (function->ns <= rank->unshared.most_ns)
		return;
	rank->unshared.most_ns = function->ns;
	rank->unshared.most = function->most;
}

/* Reasons that are of a rank. */
static bool is_of_rank(const struct ranks *ranks, const struct idle_sum *sum)
{
	return sum->key.owner >= idle_owner_rank(0) && sum->key.owner < idle_owner_rank(ranks->n) &&
	       sum->key.cause != IDLE_GPU_WORK && sum->ns;
}

void ranks_find_unshared(struct ranks *ranks)
{
	struct own_function *functions = NULL, *function, *next_function;
	struct line *lines, *line, *next_line;

	if (ranks->n < 2)
		return;
	lines = compare_lines(sum_lines(&ranks->spent));
	for (const struct idle_sum *sum = ranks->idle->sums.by_key; sum; sum = sum->hh.next)
		if (is_of_rank(ranks, sum) && is_unshared(lines, sum))
			add_reason(&functions, sum);
	HASH_EMPTY (functions, function, next_function) {
		add_function(ranks, function);
		free(function);
	}
	HASH_EMPTY (lines, line, next_line)
		free(line);
}
