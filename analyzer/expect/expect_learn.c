/*
 * analyzer/expect/expect_learn.c: the first reading, from which it is learnt what calls cost when nothing is in their
 * way: stream by stream, each to its end. Called by report and calibrate before anything else is read.
 */
#include <stdlib.h>
#include <string.h>
#include "kinds.h"
#include "base/hash.h"
#include "trace/model.h"

/* More streams with work by one thread than this, and all of them are taken to have some. */
#define BUSY_STREAMS 16

/*
 * Of a long stream not everything has to be read to know what its calls cost: all of its beginning, in which rare calls
 * are most of all, and of what follows one packet in so many. Packets hold some thousand records.
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
	bool clean; /* the same */
	struct class_key class; /* without CLASS_COLD */
	UT_hash_handle hh;
};

/* ---- work that may be waited for -------------------------------------------------------------- */

/* A stream with work by this thread. */
struct busy_stream {
	uint64_t stream;
	uint64_t event; /* recorded behind all of its work; 0: none */
	uint32_t submitted;
	uint8_t device;
};

/* What is known of the thread whose stream is being read. */
struct learner {
	struct expect *e;
	struct cold_marks marks;
	struct kinds kinds;
	struct first_call *firsts;
	struct stream *stream;
	uint64_t waited_ns; /* since the last call of depth 0, as the probes saw it */
	uint64_t kernel_ns; /* of that, in the kernel module */
	uint64_t not_running_ns; /* the same */
	struct busy_stream busy[BUSY_STREAMS];
	size_t n_busy, recent; /* recent: the one found last */
	bool crowded; /* it has work in more than those */
	bool works; /* it has handed over some */
	bool lost; /* nobody knows what of that is done, until it next waits for some */
	uint64_t *passed_at; /* by process: when packets were first passed over (cycles) */
};

/* What was seen belongs to a call that is over, or that nobody knows. */
static inline void forget_waits(struct learner *l)
{
	l->waited_ns = l->kernel_ns = l->not_running_ns = 0;
}

/* The default streams are one for each device; all others are one of a kind. */
static inline bool is_stream(const struct busy_stream *b, uint64_t stream, uint8_t device)
{
	return b->stream == stream && (stream > 2 || b->device == device);
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
static inline void submit(struct learner *l, const union spy_any *raw, const struct call_kind *kind,
			  struct busy_stream *b)
{
	l->works = true;
	if (!b && l->n_busy == BUSY_STREAMS) {
		l->crowded = true;
		return;
	}
	if (!b) {
		l->recent = l->n_busy;
		b = &l->busy[l->n_busy++];
		*b = (struct busy_stream){.stream = kind_stream(kind, raw),
					  .device = raw->call_head.device};
	}
	b->submitted++;
	b->event = kind->does == FUNCTION_RECORDS_EVENT ? raw->op.object : 0;
}

static bool concerns(const struct busy_stream *b, const union spy_any *raw, uint8_t what)
{
	uint8_t device = raw->call_head.device;
	uint64_t stream = record_stream(raw);

	if (what == GPU_WAIT_DEVICE)
		return b->device == device;
	if (what == GPU_WAIT_EVENT)
		return true; /* which stream's event it is, is not known any more */
	/* The legacy default stream and all blocking ones wait for each other. */
	return is_stream(b, stream, device) ||
	       ((stream == 1 || b->stream == 1) && b->device == device);
}

/* Might there be work that the call waits for? */
static bool finds_work(const struct learner *l, const union spy_any *raw, uint8_t what)
{
	size_t i;

	for (i = 0; i < l->n_busy; i++)
		if (concerns(&l->busy[i], raw, what))
			return true;
	return l->crowded;
}

/*
 * Of other threads' work a thread's own records know nothing. So calls that take longer than any with nothing to
 * wait for have waited for such work (or a library's): a wait that finds none returns at once, and a copy
 * takes its time for its bytes, if they lie together. And who has never handed anything over learns nothing of
 * the GPU by freeing.
 */
#define IDLE_WAIT_MOST_NS 50000
#define COPY_NS_PER_BYTE_MOST 2
#define LOADING_MOST_NS 100000000 /* of a kernel's code, with nothing in its way */

/* Many short rows may take any time. */
static bool has_rows(const struct learner *l, const struct call_kind *kind)
{
	const char *name = l->e->set->functions.all[kind->fn].name;

	return kind->contract == SPY_CONTRACT_COPY_BATCH || strstr(name, "2D") ||
	       strstr(name, "3D");
}

static bool knows_all(const struct learner *l, const union spy_any *raw,
		      const struct call_kind *kind, uint64_t own_ns)
{
	if (raw->other.event == SPY_EV_COPY)
		return own_ns <= IDLE_WAIT_MOST_NS + raw->copy.bytes * COPY_NS_PER_BYTE_MOST ||
		       has_rows(l, kind);
	if (kind->waits->sort == GPU_WAIT_INTENDED)
		return own_ns <= IDLE_WAIT_MOST_NS || raw->other.event == SPY_EV_MEMORY;
	return kind->contract != SPY_CONTRACT_FREE || l->works;
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
	if (what == GPU_WAIT_DEVICE)
		l->crowded = false;
}

/* ---- the first reading ------------------------------------------------------------------------ */

/* A call: what of its time it was not seen waiting. */
static inline void add_sample(struct call_class *c, uint64_t own_ns, bool clean)
{
	/* The clean ones are added to all of them at the end. */
	histogram_add(clean ? &c->clean : &c->all, own_ns);
}

static void sum_up(struct call_class *c)
{
	histogram_merge(&c->all, &c->clean);
	c->learnt = histogram_count(&c->all);
	c->clean_calls = histogram_count(&c->clean);
	if (histogram_count(&c->kernel) > c->learnt / 2)
		c->kernel_ns = histogram_quantile(&c->kernel, 0.1);
}

static struct call_class *class_of_key(struct expect *e, const struct class_key *key)
{
	struct call_class *c;

	if (!(key->flags & (CLASS_COPY | CLASS_MEMORY)))
		return expect_find_plain(e, key->fn, key->flags & CLASS_COLD);
	c = expect_place(e, class_key_bits(key))->class;
	return c ? c : expect_add(e, class_key_bits(key));
}

/* The first of its kind in this stream. Is it, so far, in the whole process? */
static void learn_first(struct learner *l, const union spy_any *raw, uint32_t fn, uint64_t own_ns,
			bool clean, enum cold_kind kind, uint32_t value)
{
	struct first_call call = {
		.key = {l->stream->trace->index, value, kind, raw->call_head.device},
		.time = raw->call_head.time,
		.own_ns = own_ns,
		.clean = clean,
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
		struct call_class *c = class_of_key(l->e, &first->class);

		add_sample(c, first->own_ns, false);
		first->time = call.time;
		first->own_ns = call.own_ns;
		first->clean = call.clean;
		first->class = call.class;
	} else {
		add_sample(class_of_key(l->e, &call.class), own_ns, false);
	}
}

/* Keeps account of what the thread has submitted and waited for. b: the stream's, or NULL. */
static inline void keep_account(struct learner *l, const union spy_any *raw,
				const struct call_kind *kind, struct busy_stream *b)
{
	switch (kind->waits->sort) {
	case GPU_WAIT_QUEUE:
		submit(l, raw, kind, b);
		break;
	case GPU_WAIT_INTENDED:
		finish(l, raw, kind->waits->what);
		break;
	case GPU_WAIT_HIDDEN:
		/* From pageable memory copies do not always wait; nor do all changes of limits
		 * and of modules. */
		if (kind->waited)
			finish(l, raw, kind->waits->what);
		else if (kind->copy)
			submit(l, raw, kind, b);
		break;
	default:
		if (kind->contract == SPY_CONTRACT_ALLOC_POOL)
			submit(l, raw, kind, b);
		break;
	}
}

/* Is it certain that nothing begins with the call, nor with any other of its kind? Else what does. */
static enum cold_kind might_be_cold(struct learner *l, const union spy_any *raw,
				    struct call_kind *kind, uint32_t *value)
{
	enum cold_kind cold = cold_first(&l->marks, raw, kind->fn, kind->contract, value);

	if (cold == COLD_NOT)
		kind->class = expect_class(l->e, raw, kind->fn, false);
	return cold;
}

/* Any call. b: its stream's, or NULL. */
static void learn_any(struct learner *l, const union spy_any *raw, struct call_kind *kind,
		      struct busy_stream *b, uint64_t ns)
{
	/* Less what the probes saw it waiting. */
	uint64_t own_ns = ns > l->waited_ns ? ns - l->waited_ns : 0;
	bool clean = !l->lost && l->not_running_ns * NOT_RUNNING_PART <= own_ns;
	enum cold_kind cold = COLD_NOT;
	uint32_t value;

	if (unlikely(!kind->class))
		cold = might_be_cold(l, raw, kind, &value);
	if (unlikely(cold != COLD_NOT)) {
		/* A kernel's first launch may wait for all work of the device, also for other threads'. */
		clean &= cold == COLD_KERNEL && own_ns <= LOADING_MOST_NS &&
			 !finds_work(l, raw, GPU_WAIT_DEVICE);
		learn_first(l, raw, kind->fn, own_ns, clean, cold, value);
	} else {
		if (kind->waits->sort == GPU_WAIT_QUEUE)
			clean &= !b || b->submitted < QUEUE_LEAST;
		else if (clean && kind->waits->sort != GPU_WAIT_NOT)
			clean = knows_all(l, raw, kind, own_ns) &&
				!finds_work(l, raw, kind->waits->what);
		add_sample(kind->class, own_ns, clean);
		if (unlikely(l->kernel_ns != 0))
			histogram_add(&kind->class->kernel, l->kernel_ns);
	}
	keep_account(l, raw, kind, b);
	forget_waits(l);
}

static inline void learn_call(struct learner *l, const union spy_any *raw)
{
	struct call_kind *kind = kinds_find(&l->kinds, l->e, l->stream->trace, raw);
	uint64_t ns = timeline_span_ns(&l->stream->trace->timeline, record_duration(raw));
	struct busy_stream *b = find_busy(l, kind_stream(kind, raw), raw->call_head.device);

	if (unlikely(l->waited_ns | l->kernel_ns | l->not_running_ns) || unlikely(l->lost) ||
	    unlikely(!kind->class) || !kind->only_submits ||
	    unlikely(kind->waits->sort != GPU_WAIT_QUEUE)) {
		learn_any(l, raw, kind, b, ns);
		return;
	}
	/* As most calls are. */
	add_sample(kind->class, ns, !b || b->submitted < QUEUE_LEAST);
	submit(l, raw, kind, b);
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
		l->crowded = l->works = l->lost = false;
		forget_waits(l);
		l->n_busy = 0;
		break;
	case SPY_EV_GPU:
		add_name(&machine->gpus, &machine->n_gpus, record_text(raw, 0));
		break;
	case SPY_EV_NOTE:
		if (raw->note.note == SPY_NOTE_VERSION &&
		    !strncmp(record_text(raw, 0), driver, strlen(driver)))
			add_name(&machine->drivers, &machine->n_drivers,
				 record_text(raw, 0) + strlen(driver));
		break;
	default:
		break;
	}
}

/* Passes over packets. Returns how many bytes. */
static uint64_t pass_over(struct learner *l, struct reader *r)
{
	uint64_t *at = &l->passed_at[l->stream->trace->index], time = r->record->other.time, bytes;

	if (time < *at)
		*at = time;
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

static void learn_stream(struct learner *l, struct stream *stream)
{
	struct reader *r = &stream->reader;
	uint64_t packet = 0, passed = 0;

	l->stream = stream;
	l->crowded = l->lost = false;
	forget_waits(l);
	l->n_busy = 0;
	cold_marks_forget(&l->marks);
	kinds_release(&l->kinds);
	r->quiet = true;
	while (reader_next_outer(r)) {
		if (unlikely(r->seq != packet) && r->records > READ_WHOLE) {
			passed += pass_over(l, r);
			if (!reader_next_outer(r))
				break;
		}
		packet = r->seq;
		learn_record(l, r->record);
	}
	l->e->records += r->records + passed / RECORD_BYTES;
	reader_rewind(r);
}

/* Which of each kind was the first is known only now. */
static void learn_firsts(struct learner *l)
{
	struct first_call *first, *next;

	HASH_ITER (hh, l->firsts, first, next) {
		first->class.flags |= CLASS_COLD;
		/* What was passed over may have had an earlier one. */
		if (first->time < l->passed_at[first->key.process])
			add_sample(class_of_key(l->e, &first->class), first->own_ns, first->clean);
		HASH_DEL(l->firsts, first);
		free(first);
	}
}

void expect_learn(struct expect *e, struct trace_set *set)
{
	struct learner l = {.e = e};
	size_t i;

	*e = (struct expect){.set = set};
	e->processes = xcalloc(set->n_traces, sizeof(*e->processes));
	expect_grow_table(e);
	l.passed_at = xcalloc(set->n_traces, sizeof(*l.passed_at));
	for (i = 0; i < set->n_traces; i++)
		l.passed_at[i] = UINT64_MAX;
	for (i = 0; i < set->n_streams; i++)
		learn_stream(&l, set->streams[i]);
	learn_firsts(&l);
	for (i = 0; i < e->n_classes; i++)
		sum_up(e->classes[i]);
	cold_marks_release(&l.marks);
	kinds_release(&l.kinds);
	free(l.passed_at);
}
