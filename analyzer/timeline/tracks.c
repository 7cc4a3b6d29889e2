/*
 * analyzer/timeline/tracks.c: the tracks of a timeline, and what they are called. Called when something is to be shown in one.
 */
#include <stdlib.h>
#include "tracks.h"
#include "base/redact.h"
#include "findings/rank_words.h"
#include "lanes/lanes.h"
#include "text/text.h"
#include "base/median.h"

/* Linux has no process and no thread of a number above 2^22. */
#define FIRST_FREE_ID ((1u << 22) + 1)

/* Rows of a track: what overlaps more than so often is not put apart any more. */
#define ROWS_MOST 256

/* ---- numbers of processes and threads ---------------------------------------------------------- */

struct pid_of_trace {
	uint32_t pid, trace;
};

static int by_pid(const void *a, const void *b)
{
	const struct pid_of_trace *x = a, *y = b;

	return COMPARE(x->pid, y->pid) ?: COMPARE(x->trace, y->trace);
}

/* Processes of several hosts may have the same number: the first one keeps it. */
static void find_taken_pids(struct tracks *t)
{
	const struct trace_set *set = t->source.known->set;
	struct pid_of_trace *pids = xcalloc(set->n_traces + 1, sizeof(*pids));

	for (size_t i = 0; i < set->n_traces; i++)
		pids[i] = (struct pid_of_trace){set->traces[i]->pid, (uint32_t)i};
	qsort(pids, set->n_traces, sizeof(*pids), by_pid);
	for (size_t i = 0; i < set->n_traces; i++)
		t->pid_is_taken[pids[i].trace] = !pids[i].pid || pids[i].pid >= FIRST_FREE_ID ||
						 (i && pids[i].pid == pids[i - 1].pid);
	free(pids);
}

static bool tid_place(const struct tracks *t, uint32_t tid, size_t *at)
{
	*at = (size_t)(hash_mix(tid) >> 32) & (t->tids_room - 1);
	while (t->tids[*at] && t->tids[*at] != tid)
		*at = (*at + 1) & (t->tids_room - 1);
	return t->tids[*at] == tid;
}

static void make_room_for_tids(struct tracks *t)
{
	uint32_t *before = t->tids;
	size_t room = t->tids_room, i, at;

	if (t->n_tids * 2 < room)
		return;
	t->tids_room = room ? 2 * room : 64;
	t->tids = xcalloc(t->tids_room, sizeof(*t->tids));
	for (i = 0; i < room; i++)
		if (before[i] && !tid_place(t, before[i], &at))
			t->tids[at] = before[i];
	free(before);
}

/* The thread's own number, if no other one has it: one system may give it again, and two have the same. */
static uint32_t choose_tid(struct tracks *t, uint32_t tid)
{
	size_t at;

	make_room_for_tids(t);
	if (!tid || tid >= FIRST_FREE_ID || tid_place(t, tid, &at))
		return t->next_id++;
	t->tids[at] = tid;
	t->n_tids++;
	return tid;
}

/* ---- names ------------------------------------------------------------------------------------- */

/* Both readings find locks in the same order. Waits for some do not count: those have no name. */
const char *tracks_lock_name(const struct tracks *t, struct arena *texts, const struct lock *lock)
{
	const struct locks *known = &t->source.known->accounts.locks;
	char *place;

	if (lock->index < known->count && known->all[lock->index]->name)
		return text_lane_of_lock(texts, known->all[lock->index]);
	place = arena_take(texts, lock_place(lock->process, lock->key.address, lock->first_ns));
	return arena_printf(texts, "a lock (%s)", place);
}

/* ---- tracks ------------------------------------------------------------------------------------ */

void tracks_init(struct tracks *t, const struct timeline_source *source, const struct sink *sink)
{
	size_t n = source->known->set->n_traces;

	*t = (struct tracks){.source = *source, .sink = sink, .next_id = FIRST_FREE_ID};
	t->processes = xcalloc(n + 1, sizeof(struct track *));
	t->pid_is_taken = xcalloc(n + 1, sizeof(bool));
	find_taken_pids(t);
}

void tracks_release(struct tracks *t)
{
	struct stream_track *known, *next;

	HASH_EMPTY (t->streams, known, next)
		free(known);
	for (size_t i = 0; i < t->n; i++) {
		free(t->all[i]->name);
		free(t->all[i]);
	}
	free(t->all);
	free(t->processes);
	free(t->pid_is_taken);
	free(t->tids);
	free(t->threads);
	free(t->gpus);
	free(t->ranks);
	*t = (struct tracks){0};
}

/* Owns the name from here on. */
static struct track *add(struct tracks *t, enum track_kind kind, const struct track *parent,
			 char *name)
{
	struct track *track = xcalloc(1, sizeof(*track));

	track->kind = kind;
	track->parent = parent;
	track->name = redacted(name);
	free(name);
	track->number = (uint32_t)t->n + 1;
	track->order = track->number;
	if (parent)
		track->pid = parent->pid;
	else
		track->pid = t->next_id++;
	track->tid = parent ? t->next_id++ : track->pid;
	t->all = grow(t->all, t->n, sizeof(struct track *));
	t->all[t->n++] = track;
	return track;
}

static struct track *emit(struct tracks *t, struct track *track)
{
	if (t->sink->track)
		t->sink->track(t->sink->data, track);
	return track;
}

struct track *tracks_process(struct tracks *t, const struct process *process)
{
	const struct trace *trace = process->trace;
	struct track **track = &t->processes[trace->index];
	struct arena texts = {0};

	if (*track)
		return *track;
	*track = add(t, TRACK_GROUP, NULL, xstrdup(text_process(&texts, trace)));
	arena_release(&texts);
	(*track)->process = true;
	if (!t->pid_is_taken[trace->index])
		(*track)->pid = (*track)->tid = trace->pid;
	return emit(t, *track);
}

struct thread_tracks *tracks_thread(struct tracks *t, const struct thread *thread)
{
	struct thread_tracks *tracks;
	struct arena texts = {0};
	struct track *process;

	while (unlikely(t->n_threads <= thread->index)) {
		t->threads = grow(t->threads, t->n_threads, sizeof(*t->threads));
		t->threads[t->n_threads++] = (struct thread_tracks){0};
	}
	tracks = &t->threads[thread->index];
	if (likely(tracks->calls != NULL))
		return tracks;
	process = tracks_process(t, thread->process);
	tracks->calls = add(t, TRACK_THREAD, process, xstrdup(text_lane_of_thread(&texts, thread)));
	arena_release(&texts);
	tracks->calls->tid = choose_tid(t, thread->tid);
	tracks->calls->order = 4 * thread->index + 2;
	emit(t, tracks->calls);
	return tracks;
}

struct track *tracks_ranges(struct tracks *t, const struct thread *thread)
{
	struct thread_tracks *tracks = tracks_thread(t, thread);

	if (!tracks->ranges) {
		tracks->ranges = add(t, TRACK_ROW, tracks->calls->parent,
				     xasprintf("ranges of %s", tracks->calls->name));
		tracks->ranges->order = 4 * thread->index + 1;
		emit(t, tracks->ranges);
	}
	return tracks->ranges;
}

/* GPUs of several processes or hosts may have the same number: whose it is says its first process. */
static char *name_of_gpu(const struct tracks *t, uint32_t index)
{
	const struct idle *idle = &t->source.shown->idle;
	const struct idle_gpu *gpu = &idle->gpus[index];
	const struct trace *trace = gpu->processes[0]->trace;
	struct arena texts = {0};
	const char *name = text_lane_of_gpu(&texts, gpu), *of;
	bool alone = true;
	char *text;

	for (size_t i = 0; i < idle->n_gpus; i++)
		alone &= i == index || idle->gpus[i].device != gpu->device;
	of = alone ? "" : arena_printf(&texts, " of %s", text_process(&texts, trace));
	text = xasprintf("%s%s", name, of);
	arena_release(&texts);
	return text;
}

static struct gpu_tracks *gpu_tracks(struct tracks *t, uint32_t gpu)
{
	while (t->n_gpus <= gpu) {
		t->gpus = grow(t->gpus, t->n_gpus, sizeof(*t->gpus));
		t->gpus[t->n_gpus++] = (struct gpu_tracks){0};
	}
	if (!t->gpus[gpu].group)
		t->gpus[gpu].group = emit(t, add(t, TRACK_GROUP, NULL, name_of_gpu(t, gpu)));
	return &t->gpus[gpu];
}

struct track *tracks_idle(struct tracks *t, uint32_t gpu, bool exact)
{
	struct gpu_tracks *tracks = gpu_tracks(t, gpu);
	struct track **track = exact ? &tracks->exact : &tracks->idle;

	if (!*track)
		*track = emit(t, add(t, TRACK_ROW, tracks->group,
				     xstrdup(exact ? "idle, by GPU times" : "certainly idle")));
	return *track;
}

struct track *tracks_stream(struct tracks *t, uint32_t gpu, const struct gpu_event *op)
{
	struct stream_track_key key = {gpu, op->process, op->context, op->stream};
	const struct idle_gpu *of = &t->source.shown->idle.gpus[gpu];
	struct stream_track *known;
	struct arena texts = {0};
	const char *by = "";

	HASH_FIND(hh, t->streams, &key, sizeof(key), known);
	if (known)
		return known->track;
	HASH_NEW(t->streams, known, key, key);
	if (of->n_processes > 1)
		by = arena_printf(
			&texts, " of %s",
			text_process(&texts, t->source.shown->model.processes[op->process].trace));
	known->track = add(t, TRACK_ROW, gpu_tracks(t, gpu)->group,
			   xasprintf("stream %u%s", op->stream, by));
	arena_release(&texts);
	return emit(t, known->track);
}

struct track *tracks_rank(struct tracks *t, uint32_t rank)
{
	const struct ranks *ranks = &t->source.known->ranks;
	/* There may be one more if the recording goes on. */
	const struct rank *known = rank < ranks->n ? ranks->all[rank] : NULL;
	struct arena texts = {0};

	while (t->n_ranks <= rank) {
		t->ranks = grow(t->ranks, t->n_ranks, sizeof(struct track *));
		t->ranks[t->n_ranks++] = NULL;
	}
	if (!t->ranks_group)
		t->ranks_group =
			emit(t, add(t, TRACK_GROUP, NULL, xstrdup("collective operations")));
	if (!t->ranks[rank]) {
		t->ranks[rank] =
			add(t, TRACK_ROW, t->ranks_group,
			    xstrdup(known ? text_rank_where(&texts, known) : "an unknown rank"));
		t->ranks[rank]->order = known ? known->number : UINT32_MAX;
		emit(t, t->ranks[rank]);
		arena_release(&texts);
	}
	return t->ranks[rank];
}

struct track *tracks_findings(struct tracks *t)
{
	if (!t->findings)
		t->findings = emit(
			t, add(t, TRACK_ROW,
			       emit(t, add(t, TRACK_GROUP, NULL, xstrdup("cudaspy's findings"))),
			       xstrdup("longest calls")));
	return t->findings;
}

struct track *tracks_counter(struct tracks *t, struct track *group, const char *name)
{
	return emit(t, add(t, TRACK_COUNTER, group, xstrdup(name)));
}

static struct track *row_below(struct tracks *t, struct track *track)
{
	if (!track->next_row) {
		track->next_row = add(t, TRACK_ROW, track->parent, xstrdup(track->name));
		track->next_row->order = track->order;
		emit(t, track->next_row);
	}
	return track->next_row;
}

uint64_t tracks_row(struct tracks *t, struct slice *slice, uint32_t depth)
{
	struct track *track = slice->track;
	uint64_t from_ns;

	for (uint32_t row = 0; row < depth || track->until_ns > slice->begin_ns; row++) {
		if (row == ROWS_MOST) {
			slice->begin_ns = max_u64(slice->begin_ns, track->until_ns);
			slice->end_ns = max_u64(slice->begin_ns, slice->end_ns);
			break;
		}
		track = row_below(t, track);
	}
	from_ns = track->until_ns;
	track->until_ns = slice->end_ns;
	slice->track = track;
	return from_ns;
}
