/*
 * analyzer/digest/make_parts.c: which parts of a recording in parts the digest of a rank is made of. Called by make.c. Of a
 * rank none of whose recordings has parts there are no rows.
 */
#include "make.h"

/* Parts of which one follows the other. */
struct part_run {
	uint32_t first, last, parts;
};

/* The first part of a recording, while it is written, does not know yet that it is one. */
static bool has_parts(const struct process *process)
{
	return process->trace->n_parts || process->trace->part > 1 || process->part_ended;
}

static bool any_has_parts(const struct model *model)
{
	for (size_t i = 0; i < model->n_processes; i++)
		if (has_parts(&model->processes[i]))
			return true;
	return false;
}

static const struct part_seen *seen_of(const struct process *process, uint32_t number)
{
	for (size_t i = 0; i < process->n_parts_seen; i++)
		if (process->parts_seen[i].number == number)
			return &process->parts_seen[i];
	return NULL;
}

const char *digest_recording(struct digest_builder *m, const struct metadata *metadata)
{
	char text[2 * sizeof(metadata->uuid) + 1];

	for (size_t i = 0; i < sizeof(metadata->uuid); i++)
		snprintf(&text[2 * i], 3, "%02x", metadata->uuid[i]);
	return arena_printf(&m->texts, "%s", text);
}

/* A part that has no end is the newest one, as far as is known: the recording goes on, or ended, in it. */
static void add_run(struct digest_builder *m, const struct process *process,
		    const struct part_run *run)
{
	const struct part_seen *first = seen_of(process, run->first);
	const struct part_seen *last = seen_of(process, run->last);
	uint64_t from_ns = max_u64(first ? first->begin_ns : 0, process->first_ns);
	uint64_t until_ns = last && last->end_ns ? last->end_ns : process->last_ns;
	uint64_t *row = digest_data_add(&m->data, D_PART);

	row[D_PART_recording] = digest_text(m, digest_recording(m, &process->trace->metadata));
	row[D_PART_pid] = process->trace->pid;
	row[D_PART_first] = run->first;
	row[D_PART_last] = run->last;
	row[D_PART_parts] = run->parts;
	row[D_PART_newest] = !last || !last->end_ns;
	row[D_PART_from_ns] = from_ns - min_u64(m->begin_ns, from_ns);
	row[D_PART_lasted_ns] = until_ns - min_u64(from_ns, until_ns);
	row[D_PART_removed] = process->removed_parts;
	row[D_PART_removed_calls] = process->removed_calls;
	row[D_PART_removed_ns] = process->removed_ns;
}

/* Where there is no row left, what lies between two runs is taken for theirs: the number of parts says that it is not. */
static void add_runs(struct digest_builder *m, const struct process *process)
{
	const struct trace *trace = process->trace;
	uint32_t room = DIGEST_PARTS_MOST - m->data.tables[D_PART].n;
	size_t n = trace->n_parts ?: 1, i;
	struct part_run run;

	for (i = 0; i < n; i++) {
		uint32_t number = trace->n_parts ? trace->parts[i].number : trace->part;

		if (!i) {
			run = (struct part_run){number, number, 1};
		} else if (number == run.last + 1 || room == 1) {
			run.last = number;
			run.parts++;
		} else {
			add_run(m, process, &run);
			run = (struct part_run){number, number, 1};
			room--;
		}
	}
	add_run(m, process, &run);
}

void digest_make_parts(struct digest_builder *m)
{
	const struct model *model = &m->a->model;
	size_t i;

	if (!any_has_parts(model))
		return;
	for (i = 0; i < model->n_processes && m->data.tables[D_PART].n < DIGEST_PARTS_MOST; i++)
		if (model->processes[i].trace->metadata.has_uuid)
			add_runs(m, &model->processes[i]);
}
