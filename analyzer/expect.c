/*
 * analyzer/expect.c: what a call should have cost. Called by report before and during its main
 * reading, and by calibrate.
 */
#include <stdlib.h>
#include <string.h>
#include "expect.h"
#include "model.h"
#include "names.h"
#include "profile.h"
#include "table.h"

/* More streams with work by one thread than this, and all of them are taken to have some. */
#define BUSY_STREAMS 16

/* Of a call's time the thread may have been kept from running. */
#define NOT_RUNNING_PART 20 /* one in so many: 5 % */

/* Sizes are told from others that are at most this many buckets (two octaves) away. */
#define NEIGHBOUR_BUCKETS 8

/* The guess for a copy: what any call costs, and 10 GB/s. */
#define GUESS_CALL_NS 5000
#define GUESS_BYTES_PER_NS 10

/* Kernel numbers count up from 1; a larger one is damage. */
#define KERNELS_MAX (1u << 22)

_Static_assert(sizeof(struct class_key) == sizeof(uint64_t), "a key is also a number");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as expect_key puts it together");
_Static_assert(SPY_CONTRACT_COUNT <= 32, "a bit for each contract");

/* ---- sizes ----------------------------------------------------------------------------------- */

uint64_t class_bucket_low(uint8_t bucket)
{
	unsigned int octave = (bucket - 1u) / 4, quarter = (bucket - 1u) % 4;

	if (!bucket)
		return 0;
	return octave >= 2 ? (uint64_t)(4 + quarter) << (octave - 2)
			   : (4 + quarter + (1u << (2 - octave)) - 1) >> (2 - octave);
}

uint64_t class_bucket_bytes(uint8_t bucket)
{
	uint64_t low = class_bucket_low(bucket);

	return bucket && bucket < UINT8_MAX ? low + (class_bucket_low(bucket + 1) - low) / 2 : low;
}

/* ---- classes --------------------------------------------------------------------------------- */

static void put(struct expect *e, struct call_class *c)
{
	uint64_t key = class_key_bits(&c->key);

	*expect_place(e, key) = (struct class_place){key, c};
}

static void grow_table(struct expect *e)
{
	size_t i;

	free(e->table);
	e->n_table = e->n_table ? 2 * e->n_table : 512;
	e->table_shift = 64 - (unsigned int)__builtin_ctzll(e->n_table);
	e->table = xcalloc(e->n_table, sizeof(*e->table));
	for (i = 0; i < e->n_classes; i++)
		if (e->classes[i]->key.flags & (CLASS_COPY | CLASS_MEMORY))
			put(e, e->classes[i]);
}

static void settle(struct expect *e, struct call_class *c);

static struct call_class *add_class(struct expect *e, uint64_t key)
{
	struct call_class *c = xcalloc(1, sizeof(*c));

	memcpy(&c->key, &key, sizeof(key));
	c->index = (uint32_t)e->n_classes;
	e->classes = grow(e->classes, e->n_classes, sizeof(struct call_class *));
	e->classes[e->n_classes++] = c;
	return c;
}

struct call_class *expect_add(struct expect *e, uint64_t key)
{
	struct call_class *c = add_class(e, key);

	if (2 * ++e->n_in_table > e->n_table)
		grow_table(e);
	else
		put(e, c);
	if (e->settled)
		settle(e, c);
	return c;
}

struct call_class *expect_find_plain(struct expect *e, uint32_t fn, bool cold)
{
	const struct class_key key = {.fn = fn, .flags = cold ? CLASS_COLD : 0};
	size_t i = 2 * (size_t)fn + cold, n = e->n_plain;

	if (i >= n) {
		e->n_plain = 2 * (size_t)e->set->functions.count;
		e->n_plain = i < e->n_plain ? e->n_plain : i + 1;
		e->plain = xrealloc(e->plain, e->n_plain, sizeof(struct call_class *));
		memset(e->plain + n, 0, (e->n_plain - n) * sizeof(struct call_class *));
	}
	if (!e->plain[i]) {
		e->plain[i] = add_class(e, class_key_bits(&key));
		if (e->settled)
			settle(e, e->plain[i]);
	}
	return e->plain[i];
}

static uint8_t contract_of(const struct expect *e, uint32_t fn)
{
	return e->set->functions.all[fn].contract;
}

/* ---- cold calls ------------------------------------------------------------------------------ */

enum cold_kind { COLD_NOT, COLD_KERNEL, COLD_START, COLD_CONTRACT };

/* What has begun with that call: the key of a cold call within its process. */
struct cold_key {
	uint32_t process, value, kind, device;
};

static bool first_launch(struct cold_marks *m, uint32_t kernel, uint8_t device)
{
	uint64_t bit = 1ull << (device < 63 ? device : 63);
	size_t n = m->n_kernels;

	if (kernel >= KERNELS_MAX)
		return false;
	if (kernel >= n) {
		m->n_kernels = 2 * (size_t)kernel + 64;
		m->kernels = xrealloc(m->kernels, m->n_kernels, sizeof(*m->kernels));
		memset(m->kernels + n, 0, (m->n_kernels - n) * sizeof(*m->kernels));
	}
	if (m->kernels[kernel] & bit)
		return false;
	m->kernels[kernel] |= bit;
	return true;
}

static bool first_start(struct cold_marks *m, uint32_t fn, uint8_t device)
{
	uint64_t start = (uint64_t)fn << 8 | device;
	size_t i;

	for (i = 0; i < m->n_starts; i++)
		if (m->starts[i] == start)
			return false;
	m->starts = grow(m->starts, m->n_starts, sizeof(*m->starts));
	m->starts[m->n_starts++] = start;
	return true;
}

/* Is it the first of its kind by the marks, which it leaves? */
static enum cold_kind first_of(struct cold_marks *m, const union spy_any *raw, uint32_t fn,
			       uint8_t contract, uint32_t *value)
{
	uint8_t device = raw->call_head.device;
	bool known = m->contracts[device] >> contract & 1;

	if (contract != SPY_CONTRACT_INIT)
		m->contracts[device] |= 1u << contract;
	if (raw->other.event == SPY_EV_LAUNCH && record_kernel(&raw->launch)) {
		*value = record_kernel(&raw->launch);
		return first_launch(m, *value, device) ? COLD_KERNEL : COLD_NOT;
	}
	if (contract == SPY_CONTRACT_INIT) {
		*value = fn;
		return first_start(m, fn, device) ? COLD_START : COLD_NOT;
	}
	*value = contract;
	return known ? COLD_NOT : COLD_CONTRACT;
}

static void forget_marks(struct cold_marks *m)
{
	memset(m->contracts, 0, sizeof(m->contracts));
	if (m->n_kernels)
		memset(m->kernels, 0, m->n_kernels * sizeof(*m->kernels));
	m->n_starts = 0;
}

static void release_marks(struct cold_marks *m)
{
	free(m->kernels);
	free(m->starts);
}

bool expect_cold_slow(struct expect *e, const struct record *record)
{
	uint32_t value;

	return first_of(&e->processes[record->stream->trace->index], record->raw, record->fn,
			record->contract, &value) != COLD_NOT;
}

/* The candidates of a first reading that sees one stream after the other: each stream's first ones,
 * of which the oldest of the process is it. */
struct first_call {
	struct cold_key key;
	uint64_t time; /* cycles */
	uint64_t total_ns, own_ns; /* as in add_sample */
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
	struct first_call *firsts;
	bool *records_event; /* by function number: cudaEventRecord and relatives */
	size_t n_functions;
	struct stream *stream;
	uint64_t waited_ns; /* since the last call of depth 0, as the probes saw it */
	uint64_t kernel_ns; /* of that, in the kernel module */
	uint64_t not_running_ns; /* the same */
	struct busy_stream busy[BUSY_STREAMS];
	size_t n_busy, recent; /* recent: the one found last */
	bool crowded; /* it has work in more than those */
};

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
static inline void submit(struct learner *l, const union spy_any *raw, uint32_t fn,
			  struct busy_stream *b)
{
	if (!b && l->n_busy == BUSY_STREAMS) {
		l->crowded = true;
		return;
	}
	if (!b) {
		l->recent = l->n_busy;
		b = &l->busy[l->n_busy++];
		*b = (struct busy_stream){.stream = record_stream(raw),
					  .device = raw->call_head.device};
	}
	b->submitted++;
	b->event = raw->other.event == SPY_EV_OP && fn < l->n_functions && l->records_event[fn]
			   ? raw->op.object
			   : 0;
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
	if (what == GPU_WAIT_DEVICE)
		l->crowded = false;
}

/* ---- the first reading ------------------------------------------------------------------------ */

/* A call and what of its time it was not seen waiting. */
static inline void add_sample(struct call_class *c, uint64_t total_ns, uint64_t own_ns, bool clean)
{
	c->total_ns += total_ns;
	/* The clean ones are added to all of them at the end. */
	histogram_add(clean ? &c->clean : &c->all, own_ns);
}

static void sum_up(struct call_class *c)
{
	histogram_merge(&c->all, &c->clean);
	c->calls = histogram_count(&c->all);
	c->clean_calls = histogram_count(&c->clean);
	if (histogram_count(&c->kernel) > c->calls / 2)
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
static void learn_first(struct learner *l, const union spy_any *raw, uint32_t fn, uint64_t total_ns,
			uint64_t own_ns, bool clean, enum cold_kind kind, uint32_t value)
{
	struct first_call call = {
		.key = {l->stream->trace->index, value, kind, raw->call_head.device},
		.time = raw->call_head.time,
		.total_ns = total_ns,
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

		add_sample(c, first->total_ns, first->own_ns, false);
		first->time = call.time;
		first->total_ns = call.total_ns;
		first->own_ns = call.own_ns;
		first->clean = call.clean;
		first->class = call.class;
	} else {
		add_sample(class_of_key(l->e, &call.class), total_ns, own_ns, false);
	}
}

/* Keeps account of what the thread has submitted and waited for. b: the stream's, or NULL. */
static inline void keep_account(struct learner *l, const union spy_any *raw, uint32_t fn,
				const struct gpu_waits *waits, uint8_t contract,
				struct busy_stream *b)
{
	bool copy = raw->other.event == SPY_EV_COPY;

	switch (waits->sort) {
	case GPU_WAIT_QUEUE:
		submit(l, raw, fn, b);
		break;
	case GPU_WAIT_INTENDED:
		finish(l, raw, waits->what);
		break;
	case GPU_WAIT_HIDDEN:
		/* From pageable memory copies do not always wait; nor do all changes of limits
		 * and of modules. */
		if (copy && raw->copy.direction == SPY_DIR_H2D)
			submit(l, raw, fn, b);
		else if (copy || contract == SPY_CONTRACT_FREE)
			finish(l, raw, waits->what);
		break;
	default:
		if (contract == SPY_CONTRACT_ALLOC_POOL)
			submit(l, raw, fn, b);
		break;
	}
}

static inline void learn_call(struct learner *l, const union spy_any *raw)
{
	struct expect *e = l->e;
	uint32_t fn = trace_function(e->set, l->stream->trace, raw->call_head.fn), value;
	enum cold_kind cold = COLD_NOT;
	uint8_t contract = contract_of(e, fn);
	uint64_t ns = timeline_span_ns(&l->stream->trace->timeline, record_duration(raw));
	/* Less what the probes saw it waiting. */
	uint64_t own_ns = ns > l->waited_ns ? ns - l->waited_ns : 0;
	const struct gpu_waits *waits = gpu_wait_of(raw, contract);
	struct busy_stream *b = find_busy(l, record_stream(raw), raw->call_head.device);
	bool clean = l->not_running_ns * NOT_RUNNING_PART <= own_ns;
	struct call_class *c;

	if (unlikely(!cold_marks_know(&l->marks, raw, contract)))
		cold = first_of(&l->marks, raw, fn, contract, &value);
	if (unlikely(cold != COLD_NOT)) {
		/* A kernel's first launch may wait for all work of the device. */
		clean &= cold == COLD_KERNEL && !finds_work(l, raw, GPU_WAIT_DEVICE);
		learn_first(l, raw, fn, ns, own_ns, clean, cold, value);
	} else {
		if (waits->sort == GPU_WAIT_QUEUE)
			clean &= !b || b->submitted < QUEUE_LEAST;
		else if (clean && waits->sort != GPU_WAIT_NOT)
			clean = !finds_work(l, raw, waits->what);
		c = expect_class(e, raw, fn, false);
		add_sample(c, ns, own_ns, clean);
		if (unlikely(l->kernel_ns != 0))
			histogram_add(&c->kernel, l->kernel_ns);
	}
	keep_account(l, raw, fn, waits, contract, b);
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
		l->crowded = false;
		l->waited_ns = l->kernel_ns = l->not_running_ns = 0;
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

static void learn_stream(struct learner *l, struct stream *stream)
{
	struct reader *r = &stream->reader;

	l->stream = stream;
	l->crowded = false;
	l->waited_ns = l->kernel_ns = l->not_running_ns = 0;
	l->n_busy = 0;
	forget_marks(&l->marks);
	r->quiet = true;
	while (reader_next_outer(r)) {
		const union spy_any *raw = r->record;

		if (unlikely(!record_is_call(raw))) {
			learn_other(l, raw);
			continue;
		}
		if (raw->call_head.depth)
			continue;
		if (!call_failed(&raw->call_head))
			learn_call(l, raw);
		l->waited_ns = l->kernel_ns = l->not_running_ns = 0;
	}
	l->e->records += r->records;
	reader_rewind(r);
}

/* Which of each kind was the first is known only now. */
static void learn_firsts(struct learner *l)
{
	struct first_call *first, *next;

	HASH_ITER (hh, l->firsts, first, next) {
		first->class.flags |= CLASS_COLD;
		add_sample(class_of_key(l->e, &first->class), first->total_ns, first->own_ns,
			   first->clean);
		HASH_DEL(l->firsts, first);
		free(first);
	}
}

static bool *find_event_records(const struct functions *f)
{
	bool *found = xcalloc(f->count, sizeof(*found));
	uint32_t i;

	for (i = 0; i < f->count; i++)
		found[i] = !strncmp(f->all[i].name, "cudaEventRecord", 15) ||
			   !strncmp(f->all[i].name, "cuEventRecord", 13);
	return found;
}

void expect_learn(struct expect *e, struct trace_set *set)
{
	struct learner l = {.e = e, .n_functions = set->functions.count};
	size_t i;

	*e = (struct expect){.set = set};
	e->processes = xcalloc(set->n_traces, sizeof(*e->processes));
	grow_table(e);
	l.records_event = find_event_records(&set->functions);
	for (i = 0; i < set->n_streams; i++)
		learn_stream(&l, set->streams[i]);
	learn_firsts(&l);
	for (i = 0; i < e->n_classes; i++)
		sum_up(e->classes[i]);
	release_marks(&l.marks);
	free(l.records_event);
}

static void free_names(char **names, size_t n)
{
	while (n)
		free(names[--n]);
	free(names);
}

void expect_release(struct expect *e)
{
	size_t i;

	for (i = 0; i < e->n_classes; i++) {
		histogram_release(&e->classes[i]->clean);
		histogram_release(&e->classes[i]->all);
		histogram_release(&e->classes[i]->kernel);
		free(e->classes[i]);
	}
	for (i = 0; e->processes && i < e->set->n_traces; i++)
		release_marks(&e->processes[i]);
	free_names(e->machine.drivers, e->machine.n_drivers);
	free_names(e->machine.gpus, e->machine.n_gpus);
	free(e->classes);
	free(e->plain);
	free(e->table);
	free(e->processes);
	arena_release(&e->arena);
	*e = (struct expect){0};
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool may_wait(const struct expect *e, const struct call_class *c)
{
	union spy_any raw = {.call_head = {.event = SPY_EV_CALL}};

	/* A record of the class, so far as it matters. */
	if (c->key.flags & CLASS_COPY) {
		raw.copy = (struct spy_rec_copy){
			.head.event = SPY_EV_COPY,
			.direction = c->key.what & 7,
			.captured = !!(c->key.flags & CLASS_CAPTURED),
			.src_kind = (c->key.kinds >> 4) & 15,
			.dst_kind = c->key.kinds & 15,
			.bytes = class_bucket_low(c->key.bucket),
		};
	} else if (c->key.flags & CLASS_MEMORY) {
		raw.memory = (struct spy_rec_memory){
			.head.event = SPY_EV_MEMORY,
			.op = c->key.what & 15,
			.kind = c->key.kinds & 15,
			.pool = (c->key.what >> 4) & 1,
			.address = 1,
		};
	}
	return gpu_wait_is_for_work(gpu_wait_of(&raw, contract_of(e, c->key.fn)));
}

static bool from_profile(const struct expect *e, struct call_class *c)
{
	struct profile_class found;

	if (!e->profile ||
	    !profile_find(e->profile, e->set->functions.all[c->key.fn].name, &c->key, &found))
		return false;
	c->source = EXPECT_PROFILE;
	c->expected_ns = found.expected_ns;
	c->spread_ns = found.spread_ns;
	c->samples = found.samples;
	return true;
}

/*
 * Calls that may wait for the GPU are taken for clean when their own thread had left nothing to wait
 * for; other threads may have, and that only ever adds to their time.
 */
static bool from_clean_calls(const struct expect *e, struct call_class *c)
{
	double quantile = may_wait(e, c) ? 0.1 : 0.5;
	uint64_t high;

	if (!c->clean_calls)
		return false;
	c->source = c->clean_calls >= EXPECT_ENOUGH ? EXPECT_CLEAN : EXPECT_FEW;
	c->samples = c->clean_calls;
	c->expected_ns = histogram_quantile(&c->clean, quantile);
	high = may_wait(e, c) ? 0 : histogram_quantile(&c->clean, 0.75);
	c->spread_ns = high > c->expected_ns ? high - c->expected_ns : 0;
	return true;
}

static bool from_all_calls(const struct expect *e, struct call_class *c)
{
	if (!c->calls || may_wait(e, c))
		return false;
	c->source = EXPECT_LOW_QUANTILE;
	c->samples = c->calls;
	c->expected_ns = histogram_quantile(&c->all, 0.1);
	return true;
}

/* Has it a number of its own? */
static bool is_known(const struct call_class *c)
{
	return c && c->source >= EXPECT_PROFILE && c->source <= EXPECT_FEW;
}

/* In proportion to the bytes, but for what any call costs. */
static void take_over(struct call_class *c, const struct call_class *other)
{
	uint64_t floor_ns = other->expected_ns < GUESS_CALL_NS ? other->expected_ns : GUESS_CALL_NS;
	uint64_t scaled_ns =
		(uint64_t)((double)other->expected_ns * (double)class_bucket_bytes(c->key.bucket) /
			   (double)class_bucket_bytes(other->key.bucket));

	c->source = EXPECT_NEIGHBOUR;
	c->samples = other->samples;
	c->expected_ns = scaled_ns > floor_ns ? scaled_ns : floor_ns;
	c->spread_ns = other->spread_ns;
}

static bool from_neighbour(const struct expect *e, struct call_class *c)
{
	struct class_key key = c->key;
	int distance, side;

	if (!c->key.bucket)
		return false;
	for (distance = 1; distance <= NEIGHBOUR_BUCKETS; distance++)
		for (side = -1; side <= 1; side += 2) {
			int bucket = c->key.bucket + side * distance;
			const struct call_class *other;

			if (bucket < 1 || bucket > UINT8_MAX)
				continue;
			key.bucket = (uint8_t)bucket;
			other = expect_place(e, class_key_bits(&key))->class;
			if (!is_known(other))
				continue;
			take_over(c, other);
			return true;
		}
	return false;
}

static bool from_guess(struct call_class *c)
{
	if (!(c->key.flags & CLASS_COPY) || c->key.flags & CLASS_CAPTURED)
		return false;
	c->source = EXPECT_DEFAULT;
	c->expected_ns = GUESS_CALL_NS + class_bucket_bytes(c->key.bucket) / GUESS_BYTES_PER_NS;
	return true;
}

/* Without own calls to learn from. */
static void settle_poor(struct expect *e, struct call_class *c)
{
	if (!from_all_calls(e, c) && !from_neighbour(e, c))
		from_guess(c);
}

static void settle(struct expect *e, struct call_class *c)
{
	if (!from_profile(e, c) && !from_clean_calls(e, c))
		settle_poor(e, c);
}

void expect_settle(struct expect *e, const struct profile *profile)
{
	size_t i;

	e->profile = profile;
	for (i = 0; i < e->n_classes; i++)
		if (!from_profile(e, e->classes[i]))
			from_clean_calls(e, e->classes[i]);
	for (i = 0; i < e->n_classes; i++)
		if (e->classes[i]->source == EXPECT_NONE)
			settle_poor(e, e->classes[i]);
	e->settled = true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *expect_source_text(struct expect *e, const struct call_class *c)
{
	char count[32], *profile, *text;

	format_count(count, sizeof(count), c->samples);
	switch (c->source) {
	case EXPECT_PROFILE:
		profile = profile_describe(e->profile);
		text = arena_printf(&e->arena, "%s", profile);
		free(profile);
		return text;
	case EXPECT_CLEAN:
		return arena_printf(&e->arena, "%s of %s unobstructed calls",
				    may_wait(e, c) ? "fastest tenth" : "median", count);
	case EXPECT_FEW:
		if (c->samples == 1)
			return "the only unobstructed call";
		return arena_printf(&e->arena, "%s of only %s unobstructed calls",
				    may_wait(e, c) ? "fastest tenth" : "median", count);
	case EXPECT_LOW_QUANTILE:
		return c->samples == 1 ? "the only call"
				       : arena_printf(&e->arena,
						      "fastest tenth of %s calls, none of them "
						      "unobstructed",
						      count);
	case EXPECT_NEIGHBOUR:
		return "calls of nearly that size";
	case EXPECT_DEFAULT:
		return "a guess: 5 us and 10 GB/s";
	default:
		return "not known";
	}
}

static char *size_text(struct expect *e, uint8_t bucket)
{
	uint64_t low = class_bucket_low(bucket), next;
	char from[32], to[32];

	format_bytes(from, sizeof(from), low);
	if (bucket == UINT8_MAX)
		return arena_printf(&e->arena, "%s or more", from);
	next = class_bucket_low(bucket + 1);
	format_bytes(to, sizeof(to), next);
	if (next <= low + 1)
		return arena_printf(&e->arena, "%s", from);
	return arena_printf(&e->arena, "%s to %s", from, to);
}

const char *expect_class_text(struct expect *e, const struct call_class *c)
{
	const struct class_key *key = &c->key;
	const char *cold = key->flags & CLASS_COLD ? "first one" : "", *text = "", *size = "";

	if (key->flags & CLASS_CAPTURED)
		text = "captured";
	else if (key->flags & CLASS_COPY)
		text = arena_printf(&e->arena, "%s %s to %s", name_direction(key->what),
				    name_memory_kind(key->kinds >> 4),
				    name_memory_kind(key->kinds & 15));
	else if (key->flags & CLASS_MEMORY)
		text = arena_printf(&e->arena, "%s %s%s", name_memory_op(key->what & 15),
				    name_memory_kind(key->kinds),
				    key->what >> 4 ? " of a pool" : "");
	if (key->bucket)
		size = size_text(e, key->bucket);
	return arena_printf(&e->arena, "%s%s%s%s%s", text, *text && *size ? ", " : "", size,
			    *cold && *text ? ", " : "", cold);
}
