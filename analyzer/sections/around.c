/*
 * analyzer/sections/around.c: what the program did before and behind its working phase, in a sentence, where that is a large part
 * of its time: loading a model, saving one, what a profiler makes of its records. Called by `report`, after the last record.
 */
#include "sections.h"
#include "model/python.h"
#include "text/text.h"

#define LEAST_PART 10 /* of the time of the process */
#define LEAST_NS 1000000000
#define PLACED_PART 2 /* of that, samples have to stand for, and of these a place */

/* Of a process: one side of its phase. */
struct side {
	const struct process *process;
	enum samples_around where;
	uint64_t ns, all_ns;
};

static bool is_large(const struct side *side)
{
	return side->ns >= LEAST_NS && side->ns >= side->all_ns / LEAST_PART;
}

static struct side side_of(const struct accounting *a, const struct process *process,
			   enum samples_around where)
{
	const struct phase *phase = &a->expect->phases.all[process->trace->index];
	uint64_t begin_ns = where == SAMPLES_BEFORE ? process->first_ns : phase->end_ns;
	uint64_t end_ns = where == SAMPLES_BEFORE ? phase->begin_ns : process->last_ns;
	struct side side = {.process = process, .where = where};

	if (!phase->found || phase->cut || end_ns <= begin_ns)
		return side;
	side.ns = end_ns - begin_ns - process_dormant_ns(process, begin_ns, end_ns);
	side.all_ns = process->last_ns - process->first_ns;
	return side;
}

/* Of the threads that call CUDA the one that ran most there. */
static const struct thread *running(const struct idle *idle, const struct side *side,
				    struct samples_place *found)
{
	const struct thread *most = NULL;

	*found = (struct samples_place){0};
	for (const struct thread *t = side->process->threads; t; t = t->next) {
		struct samples_place place =
			samples_place_around(&idle->samples, t, side->where, true);

		if (place.all_us <= found->all_us)
			continue;
		*found = place;
		most = t;
	}
	return most;
}

/* The first thread, blocked in a line of the program: others may wait all the time for something to do. */
static const struct thread *blocked(const struct idle *idle, const struct side *side,
				    struct samples_place *found)
{
	const struct thread *t = side->process->threads;

	*found = (struct samples_place){0};
	while (t && t->tid != side->process->trace->pid)
		t = t->next;
	if (t)
		*found = samples_place_around(&idle->samples, t, side->where, false);
	if (!python_line(found->place).code)
		found->place = NULL;
	return t;
}

static bool is_placed(const struct samples_place *found, const struct side *side)
{
	return found->place && found->all_us * 1000 >= side->ns / PLACED_PART &&
	       found->us >= found->all_us / PLACED_PART;
}

/* ": thread 7 was running Python, fresh.py:39 in main, for 96 % of it"; nothing where that is unknown. */
static const char *place_words(const struct idle_writer *w, const struct side *side)
{
	struct idle_part part = {.cause = IDLE_CPU, .fn = NO_FUNCTION, .fn_before = NO_FUNCTION};
	struct samples_place found;
	const struct thread *thread = running(w->idle, side, &found);
	bool ran = is_placed(&found, side);
	const char *site;

	if (!ran)
		thread = blocked(w->idle, side, &found);
	if (!thread || !is_placed(&found, side))
		return "";
	part.thread = thread;
	part.at_ns = found.place->ns;
	part = host_sampled_part(&part, found.place, found.state);
	site = idle_part_place(w, side->process, &part);
	return arena_printf(w->texts, ": thread %u was %s%s%s, for %s of it", thread->tid,
			    ran ? idle_part_name(w, side->process, &part) : "waiting",
			    site ? ", " : "", site ?: "",
			    text_percent(w->texts, (double)found.us * 1000, (double)side->ns));
}

static const char *side_words(const struct idle_writer *w, const struct side *side)
{
	return arena_printf(w->texts, "%s the work, %s, %s of the time%s",
			    side->where == SAMPLES_BEFORE ? "before" : "after",
			    text_time(w->texts, side->ns),
			    text_percent(w->texts, (double)side->ns, (double)side->all_ns),
			    place_words(w, side));
}

/* Of several processes the one with most of it stands for all. */
static struct side largest(const struct accounting *a, enum samples_around where)
{
	struct side most = {.where = where};

	for (size_t i = 0; i < a->model->n_processes; i++) {
		struct side side = side_of(a, &a->model->processes[i], where);

		if (side.ns > most.ns)
			most = side;
	}
	return most;
}

const char *report_around(struct arena *texts, const struct idle *idle, struct symbolizer *symbols)
{
	const struct accounting *a = idle->accounts;
	const char *words = NULL;
	struct idle_writer w;

	idle_writer_init(&w, texts, idle, symbols);
	for (unsigned int where = 0; where < SAMPLES_AROUND_COUNT; where++) {
		struct side side = largest(a, (enum samples_around)where);

		if (!is_large(&side))
			continue;
		words = arena_printf(
			texts, "%s%s%s%s%s", words ?: "", words ? "; " : "",
			a->model->n_processes > 1 ? text_process(texts, side.process->trace) : "",
			a->model->n_processes > 1 ? " " : "", side_words(&w, &side));
	}
	idle_writer_release(&w);
	return words;
}
