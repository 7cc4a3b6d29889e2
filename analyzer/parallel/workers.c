/*
 * analyzer/parallel/workers.c: threads that read the parts of a set. Each takes the part that is furthest behind, reads
 * some of its records and puts it back; so all parts are at about the same time, journals stay short, and one thread at a
 * time replays what all have read. A part that is far ahead waits while there is much to be replayed.
 */
#include <stdlib.h>
#include <time.h>
#include "base/jobs.h"
#include "base/pool.h"
#include "parts.h"

#define REPLAY_FROM 16384 /* entries that are worth a replay … */
#define AHEAD_MOST 1000000 /* … and so many wait for it: 70 MB */
#define TURN_LEAST 2048 /* records */
#define LOG_EVERY_NS 500000000

/* What a thread's time went into, in ns. */
enum activity { READING, REPLAYING, WAITING_FOR_LOCK, WAITING_AHEAD, WAITING_FOR_PART, ACTIVITIES };

static const char *const activity_names[ACTIVITIES] = {
	"reading",
	"replaying",
	"waiting for the lock",
	"waiting because ahead",
	"waiting for a part",
};

struct worker {
	struct workers *workers;
	uint64_t since_ns, cpu_since_ns;
	uint64_t ns[ACTIVITIES], cpu_ns[ACTIVITIES];
};

struct workers {
	struct parts *parts;
	pthread_mutex_t lock; /* of all below, and of what parts.h says */
	pthread_cond_t changed;
	size_t n_ended;
	size_t n_waiting; /* threads */
	struct line {
		size_t pending; /* what entries weigh */
		struct reading_position until; /* they have been replayed until then */
		bool replaying;
	} lines[PART_LINES];
	size_t pending; /* of all lines */
	bool logs; /* what time went into */
	size_t replayed, most_pending;
	uint64_t records;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The thread has done that since the last time. */
static void did(struct worker *worker, enum activity activity)
{
	uint64_t ns, cpu_ns;

	if (!worker->workers->logs)
		return;
	ns = clock_ns(CLOCK_MONOTONIC);
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (worker->since_ns) {
		worker->ns[activity] += ns - worker->since_ns;
		worker->cpu_ns[activity] += cpu_ns - worker->cpu_since_ns;
	}
	worker->since_ns = ns;
	worker->cpu_since_ns = cpu_ns;
}

static void log_activities(const struct workers *w, const struct worker *all, unsigned int n)
{
	for (unsigned int k = 0; w->logs && k < ACTIVITIES; k++) {
		uint64_t sum_ns = 0, cpu_ns = 0, most_ns = 0;

		for (unsigned int i = 0; i < n; i++) {
			sum_ns += all[i].ns[k];
			cpu_ns += all[i].cpu_ns[k];
			most_ns = max_u64(most_ns, all[i].ns[k]);
		}
		jobs_log("  %-22s %8.3f s, CPU %8.3f s of %u threads, the most %.3f s",
			 activity_names[k], (double)sum_ns / 1e9, (double)cpu_ns / 1e9, n,
			 (double)most_ns / 1e9);
	}
	if (w->logs)
		jobs_log("  %zu entries replayed, %zu at most waited for it", w->replayed,
			 w->most_pending);
}

static bool is_over(const struct workers *w)
{
	return w->parts->join.refused || w->n_ended == w->parts->n;
}

/* Of those that are not read just now, the one that is furthest behind; NULL: none is left, or may go on. */
static struct part *choose(const struct workers *w)
{
	const struct reading_position *least = NULL;
	struct part *best = NULL;

	for (size_t i = 0; i < w->parts->n; i++) {
		struct part *part = &w->parts->all[i];

		if (part->state == PART_ENDED)
			continue;
		if (!least || position_compare(&part->at, least) < 0)
			least = &part->at;
		if (part->state == PART_READY &&
		    (!best || position_compare(&part->at, &best->at) < 0))
			best = part;
	}
	if (best && w->pending > AHEAD_MOST && position_compare(&best->at, least) > 0)
		return NULL;
	return best;
}

static size_t put_back_journal(struct part_journal *j)
{
	struct part_chunk *chunk;
	struct journal written;
	size_t weight = j->journal.weight;

	if (!j->journal.n)
		return 0;
	chunk = j->blank ?: xcalloc(1, sizeof(*chunk));
	j->blank = chunk->behind;
	written = j->journal;
	j->journal = chunk->journal;
	chunk->journal = written;
	chunk->behind = NULL;
	*j->last_chunk = chunk;
	j->last_chunk = &chunk->behind;
	return weight;
}

/* All parts together write down no more in a turn than a part of what may wait. */
static void settle_turn(const struct workers *w, struct part *part, size_t weight, uint64_t records)
{
	uint64_t most = AHEAD_MOST / 4 / w->parts->n;

	if (weight > most)
		part->turn = max_u64(records * most / weight, TURN_LEAST);
	else
		part->turn = min_u64(2 * part->turn, PART_TURN_MOST);
}

static void put_back(struct workers *w, struct part *part, bool ended)
{
	uint64_t records = part->reading.records - part->records;
	size_t i, weight, sum = 0;

	w->records += records;
	part->records = part->reading.records;
	part->state = ended ? PART_ENDED : PART_READY;
	w->n_ended += ended;
	if (part->place.refused)
		join_refuse(&w->parts->join, part->place.refused);
	if (part->reading.record.stream)
		part->at = (struct reading_position){part->reading.record.ns,
						     part->reading.record.stream->index + 1};
	for (i = 0; i < PART_LINES; i++) {
		weight = put_back_journal(&part->journals[i]);
		w->lines[i].pending += weight;
		sum += weight;
	}
	w->pending += sum;
	w->most_pending = w->pending > w->most_pending ? w->pending : w->most_pending;
	settle_turn(w, part, sum, records);
}

/* Until when all parts have been read. */
static struct reading_position all_read(const struct parts *p)
{
	struct reading_position until = {UINT64_MAX, UINT32_MAX};

	for (size_t i = 0; i < p->n; i++)
		if (p->all[i].state != PART_ENDED && position_compare(&p->all[i].at, &until) < 0)
			until = p->all[i].at;
	return until;
}

static void look_whether_refused(struct parts *p)
{
	const char *why = p->whole->accounted ? ranks_refused(&p->whole->ranks) : NULL;

	if (why)
		join_refuse(&p->join, why);
}

static void replay_line(struct workers *w, struct worker *worker, enum part_line number)
{
	struct line *line = &w->lines[number];
	size_t weight;

	parts_replay_take(w->parts, number);
	line->replaying = true;
	pthread_mutex_unlock(&w->lock);
	weight = parts_replay(w->parts, number, &line->until);
	did(worker, REPLAYING);
	pthread_mutex_lock(&w->lock);
	did(worker, WAITING_FOR_LOCK);
	line->replaying = false;
	line->pending -= weight;
	w->pending -= weight;
	w->replayed += weight;
	if (number == PART_LINE_ranks)
		look_whether_refused(w->parts);
	if (w->n_waiting)
		pthread_cond_broadcast(&w->changed);
}

/* The line with most to be replayed, if that is worth it and another thread is not at it. False: there is none. */
static bool replay_some(struct workers *w, struct worker *worker)
{
	struct reading_position until = all_read(w->parts);
	size_t i, most = PART_LINES;

	for (i = 0; i < PART_LINES; i++) {
		const struct line *line = &w->lines[i];

		if (!line->replaying && line->pending >= REPLAY_FROM &&
		    position_compare(&until, &line->until) > 0 &&
		    (most == PART_LINES || line->pending > w->lines[most].pending))
			most = i;
	}
	if (most == PART_LINES)
		return false;
	w->lines[most].until = until;
	replay_line(w, worker, (enum part_line)most);
	return true;
}

static void wait_for_part(struct workers *w, struct worker *worker)
{
	enum activity why = w->pending > AHEAD_MOST ? WAITING_AHEAD : WAITING_FOR_PART;

	w->n_waiting++;
	pthread_cond_wait(&w->changed, &w->lock);
	w->n_waiting--;
	did(worker, why);
}

static void *work(void *data)
{
	struct worker *worker = data;
	struct workers *w = worker->workers;
	struct part *part;
	bool ended;

	did(worker, READING);
	pthread_mutex_lock(&w->lock);
	while (!is_over(w)) {
		if (replay_some(w, worker))
			continue;
		part = choose(w);
		if (!part) {
			wait_for_part(w, worker);
			continue;
		}
		part->state = PART_RUNNING;
		pthread_mutex_unlock(&w->lock);
		ended = !part_go_on(part, part->turn);
		did(worker, READING);
		pthread_mutex_lock(&w->lock);
		did(worker, WAITING_FOR_LOCK);
		put_back(w, part, ended);
		if (w->n_waiting)
			pthread_cond_broadcast(&w->changed);
	}
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void wait_and_log(struct workers *w,
			 void (*print)(const struct analysis *whole, uint64_t records))
{
	uint64_t logged_ns = now_ns();
	struct timespec until;

	pthread_mutex_lock(&w->lock);
	while (!is_over(w)) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOG_EVERY_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&w->changed, &w->lock, &until);
		if (now_ns() - logged_ns < LOG_EVERY_NS)
			continue;
		logged_ns = now_ns();
		print(w->parts->whole, w->records);
	}
	pthread_mutex_unlock(&w->lock);
}

static void replay_all_of(void *data, size_t line)
{
	parts_replay_take(data, (enum part_line)line);
	parts_replay(data, (enum part_line)line, NULL);
}

static void nothing_more(void *data, size_t line)
{
	(void)data;
	(void)line;
}

/* When all parts have been read. */
static void replay_rest(struct parts *p, unsigned int jobs)
{
	if (!p->join.refused)
		pool_run(jobs, PART_LINES, replay_all_of, nothing_more, p);
	look_whether_refused(p);
}

void parts_read(struct parts *p, unsigned int jobs,
		void (*print)(const struct analysis *whole, uint64_t records))
{
	struct workers w = {.parts = p, .logs = jobs_logs_phases()};
	pthread_t *threads = xcalloc(jobs, sizeof(*threads));
	struct worker *all = xcalloc(jobs, sizeof(*all));
	unsigned int i, n = 0;

	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.changed, NULL);
	for (i = 0; i < jobs; i++)
		all[i].workers = &w;
	for (i = 0; p->n && i + p->n < jobs; i++)
		p->all[i % p->n].helpers++; /* the largest come first */
	for (i = 0; i < jobs && i < p->n; i++)
		if (!pthread_create(&threads[n], NULL, work, &all[n]))
			n++;
	if (n)
		wait_and_log(&w, print);
	else
		work(&all[0]); /* there may be no more threads */
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	log_activities(&w, all, n);
	free(all);
	pthread_cond_destroy(&w.changed);
	pthread_mutex_destroy(&w.lock);
	jobs_phase("replaying rest");
	replay_rest(p, n);
}
