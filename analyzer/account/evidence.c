/*
 * analyzer/account/evidence.c: a reading of the traces' beginning in the order of time, for what
 * calls cost that may wait for the GPU. Called by report and calibrate, after the first reading and
 * before the main one.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "evidence.h"
#include "streams.h"
#include "base/pool.h"
#include "trace/groups.h"
#include "trace/position.h"

/* So many records, of all processes together, are enough to know what calls cost. */
#define RECORDS_MOST ((uint64_t)1 << 20)

/* Of a call's time the thread may have been kept from running, or off the CPU without a wait that
 * was seen: one part in so many. */
#define OFF_CPU_PART 20

/* A thread, since its last call of depth 0. */
struct thread_state {
	uint64_t waited_ns; /* as the probes saw it */
	uint64_t not_running_ns, running_ns,
		window_ns; /* the scheduler's account; window 0: none */
	struct gpu_stream *last; /* it used last */
	uint64_t called_ns; /* end of that call */
};

struct evidence {
	struct expect *e;
	struct model model;
	struct gpu_work work;
	struct signature_cache *signatures; /* by process */
	struct cold_marks *marks; /* the same */
	const uint32_t *group_of; /* by process; those of other groups are read elsewhere */
	struct thread_state *threads; /* by thread index */
	size_t n_threads;
};

static struct thread_state *state_of(struct evidence *v, const struct thread *thread)
{
	while (v->n_threads <= thread->index) {
		v->threads = grow(v->threads, v->n_threads, sizeof(*v->threads));
		v->threads[v->n_threads++] = (struct thread_state){0};
	}
	return &v->threads[thread->index];
}

/* ---- other processes ------------------------------------------------------------------------- */

/* Has the process anything to do on that device of its own? */
static bool is_at_work(const struct evidence *v, const struct process *process, uint16_t device,
		       uint64_t begin_ns)
{
	size_t index = process->trace->index;
	const struct device_streams *d =
		&v->work.devices[work_index(&v->work, index, device % WORK_DEVICES)];
	const struct gpu_stream *stream;

	if (v->e->last_ns[index] < begin_ns)
		return false; /* it has ended, or its end is unknown */
	DL_FOREACH(d->busy, stream)
	if (stream_outstanding(stream, begin_ns))
		return true;
	return false;
}

static bool is_shared(const struct evidence *v, const struct record *record)
{
	const struct process *own = record->thread->process, *other;
	const struct gpu *gpu = model_gpu(own, record->device), *same;
	uint64_t begin_ns = record->ns - min_u64(record->duration_ns, record->ns);

	for (size_t i = 0; gpu && gpu->uuid && i < v->model.n_processes; i++) {
		if (v->group_of[i] != v->group_of[own->trace->index])
			continue;
		other = &v->model.processes[i];
		for (size_t j = 0; other != own && j < other->n_gpus; j++) {
			same = &other->gpus[j];
			if (same->uuid && !strcmp(same->uuid, gpu->uuid) &&
			    is_at_work(v, other, same->device, begin_ns))
				return true;
		}
	}
	return false;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* Many short rows may take any time. */
static bool has_rows(const struct evidence *v, const struct call_signature *signature)
{
	const char *name = v->e->set->functions.all[signature->fn].name;

	return signature->contract == SPY_CONTRACT_COPY_BATCH || strstr(name, "2D") ||
	       strstr(name, "3D");
}

/*
 * Work that libraries hand over in ways that are not seen is unknown. So calls that take longer
 * than any with nothing to wait for have waited for such work: a wait that finds none returns at
 * once, and a copy takes its time for its bytes, if they lie together. A process that has never
 * handed anything over learns nothing of the GPU by freeing.
 */
#define IDLE_WAIT_MOST_NS 50000
#define COPY_NS_PER_BYTE_MOST 2

static bool knows_all(const struct evidence *v, const struct record *record,
		      const struct call_signature *signature, uint64_t own_ns)
{
	if (record->event == SPY_EV_COPY)
		return own_ns <= IDLE_WAIT_MOST_NS + record_bytes(record) * COPY_NS_PER_BYTE_MOST ||
		       has_rows(v, signature);
	if (signature->waits->sort == GPU_WAIT_INTENDED)
		return own_ns <= IDLE_WAIT_MOST_NS || record->event == SPY_EV_MEMORY;
	return signature->contract != SPY_CONTRACT_FREE || v->work.submissions[record->process];
}

/* Was it at work all the time, but for what it was seen waiting? The scheduler's account is of a
 * window that ends with the call, and what the thread did before it counts for it. */
static bool was_running(const struct thread_state *t, uint64_t duration_ns, uint64_t own_ns)
{
	if (!t->window_ns)
		return true;
	return t->window_ns - min_u64(t->running_ns, t->window_ns) <=
	       t->window_ns - min_u64(duration_ns, t->window_ns) + t->waited_ns +
		       own_ns / OFF_CPU_PART;
}

/* Was there nothing that the call may have waited for? */
static bool finds_nothing(struct evidence *v, struct thread_state *t, const struct record *record,
			  const struct gpu_waits *waits, bool cold)
{
	uint64_t awaited = 0, only;

	if (!cold && waits->what != GPU_WAIT_DEVICE)
		awaited = work_awaited(&v->work, &t->last, record, waits);
	else if (!work_nothing_submitted(&v->work, record, &only))
		return false;
	/* The stream of an event whose recording was not seen is unknown. */
	if (cold || waits->what == GPU_WAIT_DEVICE || awaited == UINT64_MAX)
		awaited = work_on_device(&v->work, record);
	return !awaited && !is_shared(v, record);
}

static void add_if_clean(struct evidence *v, struct thread_state *t, const struct record *record,
			 struct call_signature *signature)
{
	uint64_t own_ns = record->duration_ns - min_u64(t->waited_ns, record->duration_ns);
	enum cold_kind cold = COLD_NOT;
	struct call_class *class;
	uint32_t value;

	if (!signature->class) {
		cold = cold_first(&v->marks[record->process], record, signature->fn,
				  signature->contract, &value);
		if (cold == COLD_NOT)
			signature->class = expect_class(v->e, record, signature->fn, false);
	}
	/* What else is cold starts something up, and that is all that is known of it. */
	if (cold != COLD_NOT && cold != COLD_KERNEL)
		return;
	if (cold == COLD_NOT && !gpu_wait_is_for_work(signature->waits))
		return;
	if (t->not_running_ns * OFF_CPU_PART > own_ns || !knows_all(v, record, signature, own_ns) ||
	    !finds_nothing(v, t, record, signature->waits, cold == COLD_KERNEL))
		return;
	class = expect_class(v->e, record, signature->fn, cold == COLD_KERNEL);
	if (!was_running(t, record->duration_ns, own_ns)) {
		histogram_add(&class->off_cpu, own_ns);
		return;
	}
	expect_add_clean(class, own_ns,
			 record->ns - record->duration_ns >= t->called_ns + EXPECT_PAUSE_NS);
}

static void see_call(struct evidence *v, const struct record *record)
{
	struct thread_state *t = state_of(v, record->thread);
	struct call_signature *signature = signature_find(&v->signatures[record->process], v->e,
							  record->stream->trace, record);

	if (!signature->failed)
		add_if_clean(v, t, record, signature);
	work_see(&v->work, &t->last, record, signature);
	signature->first_seen = true;
	*t = (struct thread_state){.last = t->last, .called_ns = record->ns};
}

static void see_other(struct evidence *v, const struct record *record)
{
	struct sched_record sched;
	struct thread_state *t;

	if (record->event == SPY_EV_OUTSIDE)
		work_see_outside(&v->work, record);
	if (record->event != SPY_EV_WAIT && record->event != SPY_EV_SCHED)
		return;
	t = state_of(v, record->thread);
	if (record->event == SPY_EV_WAIT) {
		t->waited_ns += decode_wait(record).ns;
		return;
	}
	sched = decode_sched(record);
	t->not_running_ns += sched.not_running_ns;
	t->running_ns = sched.running_ns;
	t->window_ns = sched.window_ns;
}

/* ---- the reading ----------------------------------------------------------------------------- */

/* What is read together, and what is made of it. */
struct inquiry {
	struct expect *e;
	struct model model; /* all processes, and owners of streams: each belongs to one group */
	struct signature_cache *signatures; /* by process */
	struct cold_marks *marks; /* the same */
	uint32_t *group_of; /* the same */
	struct evidence_group {
		struct stream **streams; /* in the set's order; owned */
		size_t n_streams, n_processes;
		struct expect e; /* a copy, with what is found */
	} * groups;
	size_t n;
	struct expect found; /* by the groups so far */
	bool apart; /* several groups at a time */
	bool refused;
};

/* Each group has its share of what is read, this at least. */
#define RECORDS_LEAST ((uint64_t)1 << 14)

static uint64_t records_of(const struct inquiry *q, const struct evidence_group *group)
{
	uint64_t share = RECORDS_MOST * group->n_processes / (q->model.n_processes ?: 1);

	return max_u64(share, RECORDS_LEAST);
}

static void init(struct evidence *v, const struct inquiry *q, struct evidence_group *group)
{
	*v = (struct evidence){.e = &group->e,
			       .signatures = q->signatures,
			       .marks = q->marks,
			       .group_of = q->group_of};
	v->model = q->model;
	v->model.streams = group->streams;
	v->model.n_streams = group->n_streams;
	range_names_init(&v->model.range_names);
	v->model.bare = true;
	work_init(&v->work, &v->model);
}

static void release(struct evidence *v)
{
	free(v->threads);
	work_release(&v->work);
	v->model.processes = NULL; /* of all groups */
	v->model.n_processes = 0;
	v->model.owners = NULL;
	model_release(&v->model);
}

/* Where all of a class's calls were off the CPU, for what no probe saw, that is what such
 * calls do. */
static void settle_off_cpu(struct call_class *c)
{
	if (!c->clean_calls) {
		histogram_merge(&c->clean, &c->off_cpu);
		c->clean_calls = histogram_count(&c->clean);
	}
	histogram_release(&c->off_cpu);
}

static void read_group(void *data, size_t i)
{
	struct inquiry *q = data;
	struct evidence_group *group = &q->groups[i];
	uint64_t records = 0, most = records_of(q, group);
	struct evidence v;
	struct merge merge;
	struct record record;

	expect_copy_empty(&group->e, q->e);
	reading_place = (struct reading_place){.apart = q->apart};
	init(&v, q, group);
	for (size_t j = 0; j < group->n_streams; j++)
		group->streams[j]->reader.quiet = true;
	merge_init_streams(&merge, group->streams, group->n_streams, false);
	while (records++ < most && merge_next(&merge, &record)) {
		model_apply(&v.model, &record);
		if (!record_is_call(&record))
			see_other(&v, &record);
		else if (!record.depth)
			see_call(&v, &record);
	}
	merge_release(&merge);
	for (size_t j = 0; j < group->n_streams; j++) {
		reader_rewind(&group->streams[j]->reader);
		group->streams[j]->called_ns = 0;
	}
	release(&v);
	if (reading_place.refused)
		__atomic_store_n(&q->refused, true, __ATOMIC_RELAXED);
	reading_place = (struct reading_place){0};
}

/* What a copy has found is added; the copy is gone. */
static void join_copy(struct expect *e, struct expect *copy)
{
	for (size_t j = 0; j < copy->n_classes; j++) {
		struct call_class *more = copy->classes[j];
		struct call_class *sum;

		if (j < copy->n_copied && !more->clean_calls && !histogram_count(&more->off_cpu))
			continue;
		sum = expect_class_of_key(e, &more->key);
		histogram_merge(&sum->clean, &more->clean);
		histogram_merge(&sum->rested, &more->rested);
		histogram_merge(&sum->off_cpu, &more->off_cpu);
		sum->clean_calls += more->clean_calls;
		histogram_release(&more->clean);
		histogram_release(&more->rested);
		histogram_release(&more->off_cpu);
	}
	expect_release_copy(copy);
}

/* Not into what other groups are being copied from. */
static void join_group(void *data, size_t i)
{
	struct inquiry *q = data;

	join_copy(&q->found, &q->groups[i].e);
}

static void make_groups(struct inquiry *q)
{
	struct trace_set *set = q->e->set;
	struct evidence_group **of = xcalloc(set->n_traces + 1, sizeof(*of));
	struct groups groups;

	groups_init(&groups, set->n_traces);
	groups_by_use(&groups, set);
	q->group_of = xcalloc(set->n_traces + 1, sizeof(*q->group_of));
	q->groups = xcalloc(set->n_traces + 1, sizeof(*q->groups));
	for (uint32_t i = 0; i < set->n_traces; i++) {
		struct trace *trace = set->traces[i];
		struct evidence_group *group;

		q->group_of[i] = groups_find(&groups, i);
		if (q->group_of[i] == i)
			of[i] = &q->groups[q->n++];
		group = of[q->group_of[i]];
		group->n_processes++;
		for (size_t j = 0; j < trace->n_streams; j++) {
			group->streams =
				grow(group->streams, group->n_streams, sizeof(struct stream *));
			group->streams[group->n_streams++] = trace->streams[j];
		}
	}
	groups_release(&groups);
	free(of);
}

/* False: something has to be done by one thread. Then nothing has been found. */
static bool inquire(struct expect *e, unsigned int jobs)
{
	struct inquiry q = {.e = e, .apart = jobs > 1};

	model_init(&q.model, e->set);
	q.signatures = xcalloc(q.model.n_processes, sizeof(*q.signatures));
	q.marks = xcalloc(q.model.n_processes, sizeof(*q.marks));
	for (size_t i = 0; i < q.model.n_processes; i++)
		if (e->processes[i].joined)
			cold_marks_join(&q.marks[i]);
	make_groups(&q);
	expect_copy_empty(&q.found, e);
	pool_run(jobs, q.n, read_group, join_group, &q);
	join_copy(e, &q.found);
	for (size_t i = 0; i < q.n; i++)
		free(q.groups[i].streams);
	for (size_t i = 0; i < q.model.n_processes; i++) {
		signatures_release(&q.signatures[i]);
		cold_marks_release(&q.marks[i]);
	}
	free(q.groups);
	free(q.group_of);
	free(q.signatures);
	free(q.marks);
	model_release(&q.model);
	return !q.refused;
}

bool evidence_gather(struct expect *e, unsigned int jobs)
{
	if (!inquire(e, jobs))
		return false;
	for (size_t i = 0; i < e->n_classes; i++)
		settle_off_cpu(e->classes[i]);
	return true;
}
