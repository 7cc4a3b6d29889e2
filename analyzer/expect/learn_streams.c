/*
 * analyzer/expect/learn_streams.c: the first reading of streams, each to its end: what their calls cost when nothing is in
 * their way. Called by expect_learn, on any thread.
 */
#include <stdlib.h>
#include <string.h>
#include "learned.h"
#include "signatures.h"
#include "base/hash.h"
#include "model/gpu_ops.h"
#include "model/model.h"

/* Streams with work by one thread that are distinguished. */
#define BUSY_STREAMS 16

/* Of a call's time the thread may have been kept from running. */
#define NOT_RUNNING_PART 20 /* one in so many: 5 % */

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
	struct learned *learned;
	struct expect *e; /* the same's */
	struct cold_marks marks;
	struct signature_cache signatures;
	struct stream *stream;
	uint64_t waited_ns; /* since the last call of depth 0, as the probes saw it */
	uint64_t kernel_ns; /* of that, in the kernel module */
	uint64_t not_running_ns; /* the same */
	struct busy_stream busy[BUSY_STREAMS];
	size_t n_busy, recent; /* recent: the one found last */
	uint64_t called, pause; /* end of its last call of depth 0, and EXPECT_PAUSE_NS: cycles */
	bool lost; /* what of that is done is unknown, until it next waits for some */
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
	if (l->n_busy && likely(is_stream(&l->busy[l->recent], stream, device)))
		return &l->busy[l->recent];
	for (size_t i = 0; i < l->n_busy; i++)
		if (is_stream(&l->busy[i], stream, device)) {
			l->recent = i;
			return &l->busy[i];
		}
	return NULL;
}

/* b: the stream's, if it has work already. */
static inline void submit(struct learner *l, const struct record *record,
			  const struct call_signature *signature, struct busy_stream *b)
{
	if (!b && l->n_busy == BUSY_STREAMS)
		return;
	if (!b) {
		l->recent = l->n_busy;
		b = &l->busy[l->n_busy++];
		*b = (struct busy_stream){.stream = signature_stream(signature, record),
					  .device = record->device};
	}
	b->submitted++;
	b->event = signature->does == FUNCTION_RECORDS_EVENT ? record_object(record) : 0;
}

/* The call has waited: what it waited for is done. */
static void finish(struct learner *l, const struct record *record, uint8_t what)
{
	for (size_t i = 0; i < l->n_busy; i++) {
		struct busy_stream *b = &l->busy[i];
		bool done = what == GPU_WAIT_EVENT
				    ? record->event == SPY_EV_OP && record_object(record) &&
					      b->event == record_object(record)
			    : what == GPU_WAIT_DEVICE
				    ? b->device == record->device
				    : is_stream(b, record_stream(record), record->device);

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

void firsts_add(struct first_call **firsts, struct expect *e, const struct first_call *call)
{
	struct first_call *first, other = *call;

	HASH_FIND(hh, *firsts, &call->key, sizeof(call->key), first);
	if (!first) {
		first = xcalloc(1, sizeof(*first));
		*first = *call;
		HASH_ADD(hh, *firsts, key, sizeof(first->key), first);
		return;
	}
	if (call->time < first->time) {
		other = *first;
		first->time = call->time;
		first->own_ns = call->own_ns;
		first->class = call->class;
	}
	histogram_add(&expect_class_of_key(e, &other.class)->all, other.own_ns);
}

/* The first of its kind in this stream. */
static void learn_first(struct learner *l, const struct record *record, uint32_t fn,
			uint64_t own_ns, enum cold_kind signature, uint32_t value)
{
	struct first_call call = {
		.key = {l->stream->trace->index, value, signature, record->device},
		.time = record_time(record),
		.own_ns = own_ns,
		.class = {.fn = fn},
	};
	uint64_t key;

	if (record->event == SPY_EV_COPY || record->event == SPY_EV_MEMORY) {
		key = expect_key(record, fn, false);
		memcpy(&call.class, &key, sizeof(key));
	}
	firsts_add(&l->learned->firsts, l->e, &call);
}

/* Keeps account of what the thread has submitted and waited for. b: the stream's, or NULL. */
static inline void keep_account(struct learner *l, const struct record *record,
				const struct call_signature *signature, struct busy_stream *b)
{
	switch (signature->waits->sort) {
	case GPU_WAIT_QUEUE:
		submit(l, record, signature, b);
		break;
	case GPU_WAIT_INTENDED:
		finish(l, record, signature->waits->what);
		break;
	case GPU_WAIT_HIDDEN:
		/* From pageable memory copies do not always wait; nor do all changes of limits
		 * and of modules. */
		if (signature->waited)
			finish(l, record, signature->waits->what);
		else if (signature->copy)
			submit(l, record, signature, b);
		break;
	default:
		if (signature->contract == SPY_CONTRACT_ALLOC_POOL)
			submit(l, record, signature, b);
		break;
	}
}

/* Is it certain that nothing begins with the call, nor with any other of its signature? Else what
 * does. */
static enum cold_kind might_be_cold(struct learner *l, const struct record *record,
				    struct call_signature *signature, uint32_t *value)
{
	enum cold_kind cold =
		cold_first(&l->marks, record, signature->fn, signature->contract, value);

	if (cold == COLD_NOT)
		signature->class = expect_class(l->e, record, signature->fn, false);
	return cold;
}

/* Any call. b: its stream's, or NULL. */
static void learn_any(struct learner *l, const struct record *record,
		      struct call_signature *signature, struct busy_stream *b, uint64_t ns,
		      bool rested)
{
	/* Less what the probes saw it waiting. */
	uint64_t own_ns = ns > l->waited_ns ? ns - l->waited_ns : 0;
	bool clean = l->not_running_ns * NOT_RUNNING_PART <= own_ns;
	enum cold_kind cold = COLD_NOT;
	uint32_t value;

	if (unlikely(!signature->class)) {
		cold = might_be_cold(l, record, signature, &value);
		if (signature->submits || signature->waits->sort != GPU_WAIT_NOT) {
			uint8_t device = record->device;

			device = device == SPY_DEVICE_NONE ? 0 : device; /* as accounts have it */
			l->learned->use.devices[device / 64] |= 1ull << device % 64;
		}
	}
	if (unlikely(cold != COLD_NOT)) {
		learn_first(l, record, signature->fn, own_ns, cold, value);
	} else {
		if (signature->waits->sort == GPU_WAIT_QUEUE)
			clean &= !l->lost && finds_room(b, own_ns);
		else
			clean &= signature->waits->sort == GPU_WAIT_NOT;
		add_sample(signature->class, own_ns, clean, rested);
		if (unlikely(l->kernel_ns != 0))
			histogram_add(&signature->class->kernel, l->kernel_ns);
	}
	keep_account(l, record, signature, b);
	forget_waits(l);
}

static inline void learn_call(struct learner *l, const struct record *record)
{
	struct call_signature *signature =
		signature_find(&l->signatures, l->e, l->stream->trace, record);
	uint64_t ns = timeline_span_ns(&l->stream->trace->timeline, record_cycles(record));
	struct busy_stream *b = find_busy(l, signature_stream(signature, record), record->device);
	bool rested = record_time(record) - l->called >= l->pause + record_cycles(record);

	l->called = record_time(record);
	if (unlikely(l->waited_ns | l->not_running_ns) || unlikely(l->lost) ||
	    unlikely(!signature->class) || !signature->only_submits ||
	    unlikely(signature->waits->sort != GPU_WAIT_QUEUE)) {
		learn_any(l, record, signature, b, ns, rested);
		return;
	}
	/* As most calls are. */
	add_sample(signature->class, ns, finds_room(b, ns), rested);
	submit(l, record, signature, b);
}

void machine_add_name(char ***names, size_t *n, const char *name)
{
	for (size_t i = 0; i < *n; i++)
		if (!strcmp((*names)[i], name))
			return;
	*names = grow(*names, *n, sizeof(char *));
	(*names)[(*n)++] = xstrdup(name);
}

/* The first one counts, as for the model. */
static void see_mps(struct trace_use *use, const struct stream *stream, const struct record *record)
{
	const struct spy_rec_mps *mps = record_mps(record);
	const char *directory = record_text(record, 0);
	size_t bytes = strlen(directory) + 1;

	if (use->mps || !mps->initialised)
		return;
	use->mps = xcalloc(1, sizeof(*use->mps) + bytes);
	use->mps->ns = record->ns;
	use->mps->stream = stream->index;
	use->mps->uid = mps->uid;
	use->mps->daemon = mps->daemon;
	use->mps->server = mps->server;
	use->mps->server_uid = mps->server_uid;
	memcpy(use->mps->directory, directory, bytes);
}

static void see_gpu(struct trace_use *use, const struct record *record)
{
	const char *uuid = record_text(record, 1);

	use->gpus = grow(use->gpus, use->n_gpus, sizeof(*use->gpus));
	use->gpus[use->n_gpus++] =
		(struct trace_gpu){record_gpu(record)->device, hash_key(uuid, strlen(uuid))};
}

static void see_window(struct learner *l, const struct record *record)
{
	if (is_session(l->stream))
		phase_see_window(&l->learned->windows, record);
}

static void learn_other(struct learner *l, const struct record *record)
{
	static const char driver[] = "driver ";
	struct machine *machine = &l->e->machine;
	struct wait_record wait;

	switch (record->event) {
	case SPY_EV_WAIT:
		wait = decode_wait(record);
		l->waited_ns += wait.ns;
		l->kernel_ns += wait.kind == SPY_WAIT_IOCTL ? wait.ns : 0;
		break;
	case SPY_EV_SCHED:
		l->not_running_ns += decode_sched(record).not_running_ns;
		break;
	case SPY_EV_THREAD: /* another one: it has submitted nothing yet */
		l->lost = false;
		forget_waits(l);
		l->n_busy = 0;
		break;
	case SPY_EV_GPU:
		see_gpu(&l->learned->use, record);
		machine_add_name(&machine->gpus, &machine->n_gpus, record_text(record, 0));
		see_window(l, record);
		break;
	case SPY_EV_WINDOW:
		see_window(l, record);
		break;
	case SPY_EV_NOTE:
		if (record_note(record)->note == SPY_NOTE_VERSION &&
		    !strncmp(record_text(record, 0), driver, strlen(driver)))
			machine_add_name(&machine->drivers, &machine->n_drivers,
					 record_text(record, 0) + strlen(driver));
		break;
	case SPY_EV_MPS:
		see_mps(&l->learned->use, l->stream, record);
		break;
	default:
		break;
	}
}

/* Passes over packets. Returns how many bytes. */
static uint64_t pass_over(struct learner *l, struct reader *r)
{
	uint64_t bytes;

	l->learned->passed_at = min_u64(l->learned->passed_at, raw_time(r->record));
	bytes = reader_pass(r, READ_ONE_IN - 1);
	l->lost = true;
	forget_waits(l);
	return bytes;
}

static void learn_record(struct learner *l, const struct record *record)
{
	if (unlikely(!record_is_call(record)))
		learn_other(l, record);
	else if (record->depth)
		return;
	else if (likely(!record_failed(record)))
		learn_call(l, record);
	else
		forget_waits(l);
}

static uint64_t pause_cycles(const struct timeline *timeline)
{
	return (uint64_t)(((unsigned __int128)EXPECT_PAUSE_NS << 40) /
			  (timeline->ns_per_cycle_40 ?: 1));
}

/* A call stands for those that are passed over. */
static inline void show_call(struct learner *l, const struct record *record, uint64_t records)
{
	if (record_is_outer_call(record))
		phases_see(&l->e->phases, record, records > READ_WHOLE ? READ_ONE_IN : 1);
}

static void learn_stream(struct learner *l, struct stream *stream)
{
	struct reader *r = &stream->reader;
	uint64_t packet = 0, passed = 0;
	struct record record = {.stream = stream};

	l->stream = stream;
	l->called = 0;
	l->pause = pause_cycles(&stream->trace->timeline);
	l->lost = false;
	forget_waits(l);
	l->n_busy = 0;
	cold_marks_forget(&l->marks);
	if (phase_joined(&l->learned->windows)) /* the session's stream is the first one */
		cold_marks_join(&l->marks);
	signatures_release(&l->signatures);
	r->quiet = true;
	while (reader_next_outer(r)) {
		if (unlikely(r->kind == SPY_STREAM_GPU)) {
			gpu_ops_measure(stream, &l->learned->use);
			break;
		}
		if (unlikely(r->seq != packet) && r->records > READ_WHOLE) {
			passed += pass_over(l, r);
			if (!reader_next_outer(r))
				break;
		}
		packet = r->seq;
		record_set(&record, r->record);
		if (!record_is_call(&record)) /* the times of calls are not asked for */
			record.ns = timeline_ns(&stream->trace->timeline, record_time(&record));
		show_call(l, &record, r->records);
		learn_record(l, &record);
	}
	l->e->records += r->records + passed / RECORD_BYTES;
	l->e->outer += r->records;
	l->e->inner += r->inner_bytes / sizeof(struct spy_rec_inner);
	if (r->records)
		l->learned->last_ns = max_u64(l->learned->last_ns,
					      timeline_ns(&stream->trace->timeline, r->time));
	reader_rewind(r);
}

void learn_streams(struct learned *learned, struct trace_set *set, struct stream *const *streams,
		   size_t n, const struct phase_windows *session)
{
	struct learner l = {.learned = learned, .e = &learned->e};

	*learned = (struct learned){.e.set = set, .windows = *session, .passed_at = UINT64_MAX};
	expect_grow_table(&learned->e);
	for (size_t i = 0; i < n; i++)
		learn_stream(&l, streams[i]);
	cold_marks_release(&l.marks);
	signatures_release(&l.signatures);
}
