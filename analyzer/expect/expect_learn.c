/*
 * analyzer/expect/expect_learn.c: the first reading, from which it is learnt what calls cost when
 * nothing is in their way: stream by stream, each to its end. Called by report and calibrate before
 * anything else is read.
 */
#include <stdlib.h>
#include <string.h>
#include "signatures.h"
#include "base/jobs.h"
#include "base/pool.h"
#include "base/hash.h"
#include "model/gpu_ops.h"
#include "model/model.h"

/* Streams with work by one thread that are distinguished. */
#define BUSY_STREAMS 16

/*
 * Of a long stream not everything has to be read to know what its calls cost: all of its beginning,
 * in which rare calls are most of all, and of what follows one packet in so many. Packets hold some
 * thousand records.
 */
#define READ_WHOLE ((uint64_t)1 << 17) /* records */
#define READ_ONE_IN 8
#define RECORD_BYTES 40 /* about */

/* Of a call's time the thread may have been kept from running. */
#define NOT_RUNNING_PART 20 /* one in so many: 5 % */

/* The candidates of a first reading that sees one stream after the other: each stream's first ones,
 * of which the oldest of the process is it. */
struct first_call {
	struct cold_key key;
	uint64_t time; /* cycles */
	uint64_t own_ns; /* as in add_sample */
	struct class_key class; /* without CLASS_COLD */
	UT_hash_handle hh;
};

/* ---- work that may be waited for ------------------------------------------------------------- */

/* A stream with work by this thread. */
struct busy_stream {
	uint64_t stream;
	uint64_t event; /* recorded behind all of its work; 0: none */
	uint32_t submitted;
	uint8_t device;
};

/*
 * Was there room in its queue for what it hands over? One holds 254 at the least
 * (CUDA_SCALE_LAUNCH_QUEUES=0.25x, measured), or fewer where pieces are large: then a call waits
 * for whole kernels. b: the stream; NULL: has no work.
 */
#define QUEUE_CLEAN 200
#define QUEUE_SHORT_NS 50000

static inline bool finds_room(const struct busy_stream *b, uint64_t own_ns)
{
	return !b || b->submitted < QUEUE_LEAST ||
	       (b->submitted < QUEUE_CLEAN && own_ns <= QUEUE_SHORT_NS);
}

/* What is known of the thread whose stream is being read. */
struct learner {
	struct expect *e;
	struct cold_marks marks;
	struct signature_cache signatures;
	struct first_call *firsts;
	struct stream *stream;
	uint64_t waited_ns; /* since the last call of depth 0, as the probes saw it */
	uint64_t kernel_ns; /* of that, in the kernel module */
	uint64_t not_running_ns; /* the same */
	struct busy_stream busy[BUSY_STREAMS];
	size_t n_busy, recent; /* recent: the one found last */
	uint64_t called, pause; /* end of its last call of depth 0, and EXPECT_PAUSE_NS: cycles */
	bool lost; /* what of that is done is unknown, until it next waits for some */
	struct phase_windows windows; /* of the process */
	uint64_t passed_at; /* when packets of the process were first passed over (cycles) */
};

/* What was seen belongs to a call that is over, or unknown. */
static inline void forget_waits(struct learner *l)
{
	l->waited_ns = l->kernel_ns = l->not_running_ns = 0;
}

/* The default streams are one for each device; all others are one of a kind. */
static inline bool is_stream(const struct busy_stream *b, uint64_t stream, uint8_t device)
{
	return b->stream == stream && (stream > STREAM_PER_THREAD || b->device == device);
}

/* NULL: it has no work. */
static inline struct busy_stream *find_busy(struct learner *l, uint64_t stream, uint8_t device)
{
	size_t i;

	if (l->n_busy && likely(is_stream(&l->busy[l->recent], stream, device)))
		return &l->busy[l->recent];
	for (i = 0; i < l->n_busy; i++)
		if (is_stream(&l->busy[i], stream, device)) {
			l->recent = i;
			return &l->busy[i];
		}
	return NULL;
}

/* b: the stream's, if it has work already. */
static inline void submit(struct learner *l, const union spy_any *raw,
			  const struct call_signature *signature, struct busy_stream *b)
{
	if (!b && l->n_busy == BUSY_STREAMS)
		return;
	if (!b) {
		l->recent = l->n_busy;
		b = &l->busy[l->n_busy++];
		*b = (struct busy_stream){.stream = signature_stream(signature, raw),
					  .device = raw->call_head.device};
	}
	b->submitted++;
	b->event = signature->does == FUNCTION_RECORDS_EVENT ? raw->op.object : 0;
}

/* The call has waited: what it waited for is done. */
static void finish(struct learner *l, const union spy_any *raw, uint8_t what)
{
	size_t i;

	for (i = 0; i < l->n_busy; i++) {
		struct busy_stream *b = &l->busy[i];
		bool done = what == GPU_WAIT_EVENT
				    ? raw->other.event == SPY_EV_OP && raw->op.object &&
					      b->event == raw->op.object
			    : what == GPU_WAIT_DEVICE
				    ? b->device == raw->call_head.device
				    : is_stream(b, record_stream(raw), raw->call_head.device);

		if (done)
			l->busy[i--] = l->busy[--l->n_busy];
	}
	l->recent = 0;
	l->lost = false;
}

/* ---- the first reading ----------------------------------------------------------------------- */

/* A call: what of its time it was not seen waiting. */
static inline void add_sample(struct call_class *c, uint64_t own_ns, bool clean, bool rested)
{
	/* The clean ones are added to all of them at the end. */
	histogram_add(clean ? &c->clean : &c->all, own_ns);
	if (unlikely(rested) && clean)
		histogram_add(&c->rested, own_ns);
}

static void sum_up(struct call_class *c)
{
	histogram_merge(&c->all, &c->clean);
	c->learnt = histogram_count(&c->all);
	c->clean_calls = histogram_count(&c->clean);
	if (histogram_count(&c->kernel) > c->learnt / 2)
		c->kernel_ns = histogram_quantile(&c->kernel, 0.1);
}

/* The first of its kind in this stream. Is it, so far, in the whole process? */
static void learn_first(struct learner *l, const union spy_any *raw, uint32_t fn, uint64_t own_ns,
			enum cold_kind signature, uint32_t value)
{
	struct first_call call = {
		.key = {l->stream->trace->index, value, signature, raw->call_head.device},
		.time = raw->call_head.time,
		.own_ns = own_ns,
		.class = {.fn = fn},
	};
	struct first_call *first;
	uint64_t key;

	if (raw->other.event == SPY_EV_COPY || raw->other.event == SPY_EV_MEMORY) {
		key = expect_key(raw, fn, false);
		memcpy(&call.class, &key, sizeof(key));
	}
	HASH_FIND(hh, l->firsts, &call.key, sizeof(call.key), first);
	if (!first) {
		first = xcalloc(1, sizeof(*first));
		*first = call;
		HASH_ADD(hh, l->firsts, key, sizeof(first->key), first);
	} else if (call.time < first->time) {
		struct call_class *c = expect_class_of_key(l->e, &first->class);

		add_sample(c, first->own_ns, false, false);
		first->time = call.time;
		first->own_ns = call.own_ns;
		first->class = call.class;
	} else {
		add_sample(expect_class_of_key(l->e, &call.class), own_ns, false, false);
	}
}

/* Keeps account of what the thread has submitted and waited for. b: the stream's, or NULL. */
static inline void keep_account(struct learner *l, const union spy_any *raw,
				const struct call_signature *signature, struct busy_stream *b)
{
	switch (signature->waits->sort) {
	case GPU_WAIT_QUEUE:
		submit(l, raw, signature, b);
		break;
	case GPU_WAIT_INTENDED:
		finish(l, raw, signature->waits->what);
		break;
	case GPU_WAIT_HIDDEN:
		/* From pageable memory copies do not always wait; nor do all changes of limits
		 * and of modules. */
		if (signature->waited)
			finish(l, raw, signature->waits->what);
		else if (signature->copy)
			submit(l, raw, signature, b);
		break;
	default:
		if (signature->contract == SPY_CONTRACT_ALLOC_POOL)
			submit(l, raw, signature, b);
		break;
	}
}

/* Is it certain that nothing begins with the call, nor with any other of its signature? Else what
 * does. */
static enum cold_kind might_be_cold(struct learner *l, const union spy_any *raw,
				    struct call_signature *signature, uint32_t *value)
{
	enum cold_kind cold = cold_first(&l->marks, raw, signature->fn, signature->contract, value);

	if (cold == COLD_NOT)
		signature->class = expect_class(l->e, raw, signature->fn, false);
	return cold;
}

/* Any call. b: its stream's, or NULL. */
static void learn_any(struct learner *l, const union spy_any *raw, struct call_signature *signature,
		      struct busy_stream *b, uint64_t ns, bool rested)
{
	/* Less what the probes saw it waiting. */
	uint64_t own_ns = ns > l->waited_ns ? ns - l->waited_ns : 0;
	bool clean = l->not_running_ns * NOT_RUNNING_PART <= own_ns;
	enum cold_kind cold = COLD_NOT;
	uint32_t value;

	if (unlikely(!signature->class)) {
		cold = might_be_cold(l, raw, signature, &value);
		if (signature->submits || signature->waits->sort != GPU_WAIT_NOT) {
			uint8_t device = raw->call_head.device;

			device = device == SPY_DEVICE_NONE ? 0 : device; /* as accounts have it */
			l->stream->trace->use.devices[device / 64] |= 1ull << device % 64;
		}
	}
	if (unlikely(cold != COLD_NOT)) {
		learn_first(l, raw, signature->fn, own_ns, cold, value);
	} else {
		if (signature->waits->sort == GPU_WAIT_QUEUE)
			clean &= !l->lost && finds_room(b, own_ns);
		else
			clean &= signature->waits->sort == GPU_WAIT_NOT;
		add_sample(signature->class, own_ns, clean, rested);
		if (unlikely(l->kernel_ns != 0))
			histogram_add(&signature->class->kernel, l->kernel_ns);
	}
	keep_account(l, raw, signature, b);
	forget_waits(l);
}

static inline void learn_call(struct learner *l, const union spy_any *raw)
{
	struct call_signature *signature =
		signature_find(&l->signatures, l->e, l->stream->trace, raw);
	uint64_t ns = timeline_span_ns(&l->stream->trace->timeline, record_duration(raw));
	struct busy_stream *b =
		find_busy(l, signature_stream(signature, raw), raw->call_head.device);
	bool rested = record_time(raw) - l->called >= l->pause + record_duration(raw);

	l->called = record_time(raw);
	if (unlikely(l->waited_ns | l->kernel_ns | l->not_running_ns) || unlikely(l->lost) ||
	    unlikely(!signature->class) || !signature->only_submits ||
	    unlikely(signature->waits->sort != GPU_WAIT_QUEUE)) {
		learn_any(l, raw, signature, b, ns, rested);
		return;
	}
	/* As most calls are. */
	add_sample(signature->class, ns, finds_room(b, ns), rested);
	submit(l, raw, signature, b);
}

static void add_name(char ***names, size_t *n, const char *name)
{
	size_t i;

	for (i = 0; i < *n; i++)
		if (!strcmp((*names)[i], name))
			return;
	*names = grow(*names, *n, sizeof(char *));
	(*names)[(*n)++] = xstrdup(name);
}

/* The first one counts, as for the model. */
static void see_mps(const struct stream *stream, const union spy_any *raw)
{
	struct trace_use *use = &stream->trace->use;
	const char *directory = record_text(raw, 0);
	size_t bytes = strlen(directory) + 1;

	if (use->mps || !raw->mps.initialised)
		return;
	use->mps = xcalloc(1, sizeof(*use->mps) + bytes);
	use->mps->ns = timeline_ns(&stream->trace->timeline, raw->other.time);
	use->mps->stream = stream->index;
	use->mps->uid = raw->mps.uid;
	use->mps->daemon = raw->mps.daemon;
	use->mps->server = raw->mps.server;
	use->mps->server_uid = raw->mps.server_uid;
	memcpy(use->mps->directory, directory, bytes);
}

static void see_gpu(struct trace_use *use, const union spy_any *raw)
{
	const char *uuid = record_text(raw, 1);

	use->gpus = grow(use->gpus, use->n_gpus, sizeof(*use->gpus));
	use->gpus[use->n_gpus++] =
		(struct trace_gpu){raw->gpu.device, hash_key(uuid, strlen(uuid))};
}

static void learn_other(struct learner *l, const union spy_any *raw)
{
	static const char driver[] = "driver ";
	struct machine *machine = &l->e->machine;
	uint64_t ns;

	switch (raw->other.event) {
	case SPY_EV_WAIT:
		ns = timeline_span_ns(&l->stream->trace->timeline, raw->wait.duration);
		l->waited_ns += ns;
		l->kernel_ns += raw->wait.kind == SPY_WAIT_IOCTL ? ns : 0;
		break;
	case SPY_EV_SCHED:
		l->not_running_ns += raw->sched.not_running_ns;
		break;
	case SPY_EV_THREAD: /* another one: it has submitted nothing yet */
		l->lost = false;
		forget_waits(l);
		l->n_busy = 0;
		break;
	case SPY_EV_GPU:
		see_gpu(&l->stream->trace->use, raw);
		add_name(&machine->gpus, &machine->n_gpus, record_text(raw, 0));
		phase_see_window(&l->windows, raw);
		break;
	case SPY_EV_WINDOW:
		phase_see_window(&l->windows, raw);
		break;
	case SPY_EV_NOTE:
		if (raw->note.note == SPY_NOTE_VERSION &&
		    !strncmp(record_text(raw, 0), driver, strlen(driver)))
			add_name(&machine->drivers, &machine->n_drivers,
				 record_text(raw, 0) + strlen(driver));
		break;
	case SPY_EV_MPS:
		see_mps(l->stream, raw);
		break;
	default:
		break;
	}
}

/* Passes over packets. Returns how many bytes. */
static uint64_t pass_over(struct learner *l, struct reader *r)
{
	uint64_t bytes;

	l->passed_at = min_u64(l->passed_at, r->record->other.time);
	bytes = reader_pass(r, READ_ONE_IN - 1);
	l->lost = true;
	forget_waits(l);
	return bytes;
}

static void learn_record(struct learner *l, const union spy_any *raw)
{
	if (unlikely(!record_is_call(raw)))
		learn_other(l, raw);
	else if (raw->call_head.depth)
		return;
	else if (likely(!call_failed(&raw->call_head)))
		learn_call(l, raw);
	else
		forget_waits(l);
}

static uint64_t pause_cycles(const struct timeline *timeline)
{
	return (uint64_t)(((unsigned __int128)EXPECT_PAUSE_NS << 40) /
			  (timeline->ns_per_cycle_40 ?: 1));
}

/* A call stands for those that are passed over. */
static inline void show_call(struct learner *l, const union spy_any *raw, uint64_t records)
{
	if (record_is_call(raw) && !raw->call_head.depth)
		phases_see(&l->e->phases, raw, records > READ_WHOLE ? READ_ONE_IN : 1);
}

static void learn_stream(struct learner *l, struct stream *stream)
{
	struct reader *r = &stream->reader;
	uint64_t packet = 0, passed = 0, *last_ns;

	l->stream = stream;
	l->called = 0;
	l->pause = pause_cycles(&stream->trace->timeline);
	l->lost = false;
	forget_waits(l);
	l->n_busy = 0;
	cold_marks_forget(&l->marks);
	if (phase_joined(&l->windows)) /* the session's stream is the first one */
		cold_marks_join(&l->marks);
	signatures_release(&l->signatures);
	r->quiet = true;
	while (reader_next_outer(r)) {
		if (unlikely(r->kind == SPY_STREAM_GPU)) {
			gpu_ops_measure(stream, &stream->trace->use);
			break;
		}
		if (unlikely(r->seq != packet) && r->records > READ_WHOLE) {
			passed += pass_over(l, r);
			if (!reader_next_outer(r))
				break;
		}
		packet = r->seq;
		show_call(l, r->record, r->records);
		learn_record(l, r->record);
	}
	l->e->records += r->records + passed / RECORD_BYTES;
	last_ns = &l->e->last_ns[stream->trace->index];
	if (r->records && timeline_ns(&stream->trace->timeline, r->time) > *last_ns)
		*last_ns = timeline_ns(&stream->trace->timeline, r->time);
	reader_rewind(r);
}

/* ---- process by process ---------------------------------------------------------------------- */

/* What has been learnt of a process. */
struct learned {
	struct expect e;
	struct first_call *firsts;
	uint64_t passed_at;
	bool refused;
};

struct lesson {
	struct expect *e;
	struct learned *processes; /* by index */
	bool apart; /* several at a time */
	bool refused; /* something that only one at a time can do */
};

static void learn_process(void *data, size_t i)
{
	const struct lesson *lesson = data;
	struct learned *p = &lesson->processes[i];
	struct trace_set *set = lesson->e->set;
	struct trace *trace = set->traces[i];
	struct learner l = {.e = &p->e, .passed_at = UINT64_MAX};
	size_t j;

	reading_place = (struct reading_place){.apart = lesson->apart};
	p->e = (struct expect){.set = set, .last_ns = lesson->e->last_ns};
	p->e.phases = (struct phases){.all = lesson->e->phases.all, .n = lesson->e->phases.n};
	expect_grow_table(&p->e);
	for (j = 0; j < trace->n_streams; j++)
		learn_stream(&l, trace->streams[j]);
	if (trace->n_streams)
		phases_conclude(&p->e.phases, trace, &l.windows);
	if (phase_joined(&l.windows))
		cold_marks_join(&lesson->e->processes[i]);
	cold_marks_release(&l.marks);
	signatures_release(&l.signatures);
	p->firsts = l.firsts;
	p->passed_at = l.passed_at;
	p->refused = reading_place.refused;
	reading_place = (struct reading_place){0};
}

/* The process's class becomes a part of the whole's, which is new most often. */
static void join_class(struct expect *e, struct call_class *c)
{
	size_t n = e->n_classes;
	struct call_class *sum = expect_class_of_key(e, &c->key);

	if (e->n_classes > n) {
		sum->clean = c->clean;
		sum->all = c->all;
		sum->rested = c->rested;
		sum->kernel = c->kernel;
		c->clean = c->all = c->rested = c->kernel = (struct histogram){0};
		return;
	}
	histogram_merge(&sum->clean, &c->clean);
	histogram_merge(&sum->all, &c->all);
	histogram_merge(&sum->rested, &c->rested);
	histogram_merge(&sum->kernel, &c->kernel);
}

static void join_names(char ***names, size_t *n, char *const *more, size_t n_more)
{
	size_t i;

	for (i = 0; i < n_more; i++)
		add_name(names, n, more[i]);
}

static void join_process(void *data, size_t i)
{
	struct lesson *lesson = data;
	struct learned *p = &lesson->processes[i];
	struct machine *machine = &lesson->e->machine;
	size_t j;

	for (j = 0; j < p->e.n_classes; j++)
		join_class(lesson->e, p->e.classes[j]);
	join_names(&machine->drivers, &machine->n_drivers, p->e.machine.drivers,
		   p->e.machine.n_drivers);
	join_names(&machine->gpus, &machine->n_gpus, p->e.machine.gpus, p->e.machine.n_gpus);
	lesson->e->records += p->e.records;
	lesson->refused |= p->refused;
	p->e.last_ns = NULL; /* the whole's */
	p->e.phases.all = NULL;
	expect_release(&p->e);
}

/* Which of each kind was the first is known only now. */
static void learn_firsts(struct expect *e, struct learned *p)
{
	struct first_call *first, *next;

	HASH_ITER (hh, p->firsts, first, next) {
		first->class.flags |= CLASS_COLD;
		/* What was passed over may have had an earlier one. */
		if (first->time < p->passed_at)
			add_sample(expect_class_of_key(e, &first->class), first->own_ns, false,
				   false);
		HASH_DEL(p->firsts, first);
		free(first);
	}
}

static void init(struct expect *e, struct trace_set *set)
{
	size_t i;

	*e = (struct expect){.set = set, .probed = true};
	e->processes = xcalloc(set->n_traces, sizeof(*e->processes));
	e->last_ns = xcalloc(set->n_traces, sizeof(*e->last_ns));
	phases_init(&e->phases, set);
	expect_grow_table(e);
	for (i = 0; i < set->n_traces; i++) {
		free(set->traces[i]->use.gpus);
		free(set->traces[i]->use.mps);
		set->traces[i]->use = (struct trace_use){0};
		e->probed &= metadata_number(&set->traces[i]->metadata, "probes", 0) != 0;
	}
}

/* False: it has to be done by one thread. */
static bool learn_all(struct expect *e, struct trace_set *set, unsigned int jobs)
{
	struct lesson lesson = {.e = e, .apart = jobs > 1};
	size_t i;

	init(e, set);
	lesson.processes = xcalloc(set->n_traces, sizeof(*lesson.processes));
	pool_run(jobs, set->n_traces, learn_process, join_process, &lesson);
	for (i = 0; i < set->n_traces; i++)
		learn_firsts(e, &lesson.processes[i]);
	for (i = 0; i < e->n_classes; i++)
		sum_up(e->classes[i]);
	free(lesson.processes);
	return !lesson.refused;
}

void expect_learn(struct expect *e, struct trace_set *set)
{
	if (learn_all(e, set, jobs_now()))
		return;
	expect_release(e);
	(void)learn_all(e, set, 1);
}
