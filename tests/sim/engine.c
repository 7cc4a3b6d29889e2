/*
 * tests/sim/engine.c: the GPUs. Every stream is a queue of operations; an operation starts when it was
 * submitted, its predecessor and its dependencies have ended, and ends its duration later, so its
 * times are plain arithmetic at submission. Only a host function's end is not known before it has run;
 * whatever depends on it stays pending until then. Kernels of different streams do not slow each
 * other down, nor do copies: what is simulated is order, not bandwidth. On a GPU that is shared among
 * processes (sharing.c) a kernel is pending until its process has been given time enough, and one that is
 * part of a meeting of processes (meetings.c) until the others let it end.
 *
 * What an operation does to memory (sim_work) happens when its end has passed: on any thread that
 * waits or asks, in pump(), or on the worker thread, which also runs host functions, asks for turns on
 * shared GPUs, and is there for those who wait for nothing. All state is under one spin lock, which is never held while work runs.
 */
#include "sim.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct sim_spin sim_engine;
struct sim_ctx *sim_contexts;

static struct sim_stream *active; /* streams with a queue */
static struct sim_stream *stream_pool; /* destroyed streams: their memory stays stream-shaped */
static struct sim_op *op_pool;
static uint64_t next_stream_id = 1;
static atomic_int worker_futex;
static atomic_bool worker_parked;
static bool worker_started;

/* ---- operations ---- */
struct sim_op *sim_op_new(enum sim_op_kind kind, uint64_t duration_ns)
{
	struct sim_op *op, **deps = NULL;
	unsigned cap = 0;

	sim_spin_lock(&sim_engine);
	op = op_pool;
	if (op)
		op_pool = op->next;
	sim_spin_unlock(&sim_engine);
	if (op) {
		deps = op->deps;
		cap = op->dep_cap;
	} else {
		op = malloc(sizeof(*op));
		if (!op)
			abort();
	}
	memset(op, 0, sizeof(*op));
	op->deps = deps;
	op->dep_cap = cap;
	op->refs = 1;
	op->kind = kind;
	op->duration_ns = duration_ns;
	return op;
}

/* Those of copies from pageable memory have its bytes. Memory that is new each time costs each time the machine's page faults,
 * which no CUDA call has: a driver's staging buffers are there. */
enum { LARGE_BYTES = 64 << 10, LARGE_KEPT = 64, HUGE_PAGE = 2 << 20 };
static struct sim_work *kept_works;
static int kept_cnt;
static struct sim_spin kept_lock;

/* One that is large enough and not much too large, or NULL. */
static struct sim_work *take_kept(size_t bytes)
{
	struct sim_work **p, *work = NULL;

	sim_spin_lock(&kept_lock);
	for (p = &kept_works; *p; p = &(*p)->next_kept)
		if ((*p)->kept_bytes >= bytes && (*p)->kept_bytes <= 2 * bytes) {
			work = *p;
			*p = work->next_kept;
			kept_cnt--;
			break;
		}
	sim_spin_unlock(&kept_lock);
	return work;
}

static bool keep(struct sim_work *work)
{
	bool kept;

	sim_spin_lock(&kept_lock);
	kept = kept_cnt < LARGE_KEPT;
	if (kept) {
		kept_cnt++;
		work->next_kept = kept_works;
		kept_works = work;
	}
	sim_spin_unlock(&kept_lock);
	return kept;
}

/* All but the beginning is going to be written. */
static void *huge_alloc(size_t bytes)
{
	size_t size = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	void *work = aligned_alloc(HUGE_PAGE, size);

	if (work) {
		madvise(work, size, MADV_HUGEPAGE);
		memset(work, 0, 4096);
	}
	return work;
}

void *sim_work_new(size_t bytes, void (*run)(struct sim_work *work))
{
	bool large = bytes >= LARGE_BYTES;
	struct sim_work *work = large ? take_kept(bytes) : NULL;

	if (!work) {
		work = bytes >= HUGE_PAGE ? huge_alloc(bytes) : calloc(1, bytes);
		if (!work)
			abort();
		work->kept_bytes = large ? bytes : 0;
	}
	atomic_init(&work->refs, 1);
	work->run = run;
	return work;
}

void sim_work_put(struct sim_work *work)
{
	if (work && atomic_fetch_sub(&work->refs, 1) == 1 && !(work->kept_bytes && keep(work)))
		free(work);
}

struct sim_op *sim_op_clone(const struct sim_op *op)
{
	struct sim_op *copy = sim_op_new(op->kind, op->duration_ns);

	copy->what = op->what;
	copy->work = op->work;
	if (copy->work)
		atomic_fetch_add(&copy->work->refs, 1);
	return copy;
}

static void put_locked(struct sim_op *op)
{
	if (op && --op->refs == 0) {
		for (unsigned i = 0; i < op->dep_cnt; i++)
			put_locked(op->deps[i]);
		op->dep_cnt = 0;
		sim_work_put(op->work);
		op->work = NULL;
		op->next = op_pool;
		op_pool = op;
	}
}

struct sim_op *sim_op_get(struct sim_op *op)
{
	sim_spin_lock(&sim_engine);
	if (op)
		op->refs++;
	sim_spin_unlock(&sim_engine);
	return op;
}

void sim_op_put(struct sim_op *op)
{
	sim_spin_lock(&sim_engine);
	put_locked(op);
	sim_spin_unlock(&sim_engine);
}

static void dep_locked(struct sim_op *op, struct sim_op *on)
{
	if (!on || on->state == OP_DONE)
		return;
	if (op->dep_cnt == op->dep_cap) {
		op->dep_cap = op->dep_cap ? 2 * op->dep_cap : 4;
		op->deps = realloc(op->deps, op->dep_cap * sizeof(struct sim_op *));
		if (!op->deps)
			abort();
	}
	on->refs++;
	op->deps[op->dep_cnt++] = on;
}

void sim_op_dep(struct sim_op *op, struct sim_op *on)
{
	sim_spin_lock(&sim_engine);
	dep_locked(op, on);
	sim_spin_unlock(&sim_engine);
}

void sim_op_dep_device(struct sim_op *op, int dev)
{
	sim_spin_lock(&sim_engine);
	for (struct sim_ctx *ctx = sim_contexts; ctx; ctx = ctx->next) {
		if (ctx->dev != dev)
			continue;
		dep_locked(op, ctx->legacy.tail);
		for (struct sim_stream *s = ctx->streams; s; s = s->next)
			dep_locked(op, s->tail);
	}
	sim_spin_unlock(&sim_engine);
}

/* ---- the timeline, all under the lock ---- */

/* By GPU: how long kernels run there in all, and until when, as far as they are scheduled. */
static struct {
	uint64_t ns, until_ns;
} busy[SIM_MAX_DEVICES];

static void add_busy(int dev, uint64_t start, uint64_t end)
{
	int gpu = sim_devices[dev].gpu;

	if (start < busy[gpu].until_ns)
		start = busy[gpu].until_ns;
	if (end <= start)
		return;
	busy[gpu].ns += end - start;
	busy[gpu].until_ns = end;
}

uint64_t sim_engine_busy_ns(unsigned gpu, uint64_t now_ns)
{
	uint64_t ns = 0;

	sim_spin_lock(&sim_engine);
	if (gpu < SIM_MAX_DEVICES) {
		ns = busy[gpu].ns;
		if (busy[gpu].until_ns > now_ns)
			ns -= busy[gpu].until_ns - now_ns < ns ? busy[gpu].until_ns - now_ns : ns;
	}
	sim_spin_unlock(&sim_engine);
	return ns;
}

/* Gives every operation whose predecessors' ends are known its times. */
static void schedule(struct sim_stream *s)
{
	struct sim_op *op;

	while ((op = s->pending)) {
		uint64_t start = op->submit_ns > s->last_end_ns ? op->submit_ns : s->last_end_ns;

		for (unsigned i = 0; i < op->dep_cnt; i++) {
			if (op->deps[i]->state == OP_PENDING)
				return;
			if (op->deps[i]->end_ns > start)
				start = op->deps[i]->end_ns;
		}
		op->start_ns = start;
		if (op->kind == OP_HOST) {
			s->start_known = true;
			return;
		}
		if (op->meeting) {
			if (!sim_meeting_settle(op))
				return;
		} else if (!sim_sharing || op->kind != OP_KERNEL)
			op->end_ns = start + op->duration_ns;
		else if (!sim_sharing_run(s->ctx->dev, op))
			return;
		s->last_end_ns = op->end_ns;
		if (op->kind == OP_KERNEL)
			add_busy(s->ctx->dev, start, op->end_ns);
		op->state = OP_SCHEDULED;
		s->pending = op->next;
	}
}

static void activate(struct sim_stream *s)
{
	if (s->active)
		return;
	s->active = true;
	s->prev_active = NULL;
	s->next_active = active;
	if (active)
		active->prev_active = s;
	active = s;
}

static void deactivate(struct sim_stream *s)
{
	s->active = false;
	if (s->prev_active)
		s->prev_active->next_active = s->next_active;
	else
		active = s->next_active;
	if (s->next_active)
		s->next_active->prev_active = s->prev_active;
}

static void unlink_stream(struct sim_stream *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		s->ctx->streams = s->next;
	if (s->next)
		s->next->prev = s->prev;
	put_locked(s->tail);
	s->tail = NULL;
	s->next = stream_pool;
	stream_pool = s;
}

static void pop(struct sim_stream *s)
{
	struct sim_op *op = s->head;

	if (s->pending == op)
		s->pending = op->next;
	s->head = op->next;
	s->queued--;
	s->staged_bytes -= op->staged_bytes;
	op->state = OP_DONE;
	if (op->job)
		sim_job_ended(op->job, op);
	op->job = NULL;
	for (unsigned i = 0; i < op->dep_cnt; i++)
		put_locked(op->deps[i]);
	op->dep_cnt = 0;
	put_locked(op);
	if (!s->head) {
		deactivate(s);
		if (s->zombie)
			unlink_stream(s);
	}
}

static bool ready(struct sim_stream *s, struct sim_op *op, bool worker, uint64_t now)
{
	for (unsigned i = 0; i < op->dep_cnt; i++)
		if (op->deps[i]->state != OP_DONE)
			return false;
	if (op->kind == OP_HOST)
		return worker && s->pending == op && s->start_known && op->start_ns <= now;
	return op->state == OP_SCHEDULED && op->end_ns <= now;
}

/* Executes what has come to its end by now. Drops the lock around work. */
static void pump(uint64_t now, bool worker)
{
	bool progress;

	do {
		struct sim_stream *s, *next;

		progress = false;
		for (s = active; s; s = next) {
			next = s->next_active;
			schedule(s);
			while (s->head && !s->busy && ready(s, s->head, worker, now)) {
				struct sim_op *op = s->head;

				progress = true;
				if (op->work) {
					s->busy = true;
					op->refs++;
					sim_spin_unlock(&sim_engine);
					op->work->run(op->work);
					if (op->kind == OP_HOST)
						now = sim_now_ns();
					sim_spin_lock(&sim_engine);
					s->busy = false;
					if (op->kind == OP_HOST) {
						op->end_ns = s->last_end_ns = now;
						s->start_known = false;
					}
					pop(s);
					put_locked(op);
					goto again; /* the list may have changed meanwhile */
				}
				pop(s);
			}
		}
	again:;
	} while (progress);
}

/* ---- the worker ---- */
static void *worker_main(void *arg)
{
	(void)arg;
	for (;;) {
		int seen = atomic_load(&worker_futex);
		struct timespec nap = {0, 500000}, *timeout = &nap;

		sim_spin_lock(&sim_engine);
		pump(sim_now_ns(), true);
		if (!active && !sim_jobs_waiting()) {
			timeout = NULL;
			atomic_store(&worker_parked, true);
		}
		sim_spin_unlock(&sim_engine);
		if (atomic_load_explicit(&sim_jobs_on, memory_order_relaxed))
			sim_jobs_hand_on();
		syscall(SYS_futex, &worker_futex, FUTEX_WAIT_PRIVATE, seen, timeout, NULL, 0);
		atomic_store(&worker_parked, false);
	}
	return NULL;
}

/* There can be no new thread for the moment in which another one calls execve: then the next one who wakes it begins it. */
static void worker_begin(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	bool mine = false;

	sim_spin_lock(&sim_engine);
	if (!worker_started)
		mine = worker_started = true;
	sim_spin_unlock(&sim_engine);
	if (!mine)
		return;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, worker_main, NULL))
		worker_started = false;
	pthread_attr_destroy(&attr);
}

static void worker_wake(bool urgent)
{
	if (!worker_started) {
		worker_begin();
		return;
	}
	if (urgent || atomic_load(&worker_parked)) {
		atomic_fetch_add(&worker_futex, 1);
		syscall(SYS_futex, &worker_futex, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

/* ---- submitting ---- */
void sim_submit(struct sim_stream *stream, struct sim_op *op, struct sim_op **out)
{
	struct sim_ctx *ctx = stream->ctx;
	bool host = op->kind == OP_HOST, kernel = op->kind == OP_KERNEL, work = op->work;

	if (__builtin_expect(atomic_load_explicit(&sim_jobs_on, memory_order_relaxed), 0)) {
		op->job = sim_job_new(op, stream);
		work = work || op->job; /* the worker sees its end */
	}
	sim_spin_lock(&sim_engine);
	op->submit_ns = sim_now_ns();
	if (!stream->internal && stream == &ctx->legacy) {
		for (struct sim_stream *s = ctx->streams; s; s = s->next)
			if (!(s->flags & 1) && !s->internal)
				dep_locked(op, s->tail);
	} else if (!stream->internal && !(stream->flags & 1)) {
		dep_locked(op, ctx->legacy.tail);
	}
	/* The queue takes the caller's reference, tail one, and the caller one if he wants it. */
	op->refs += out ? 2 : 1;
	op->next = NULL;
	if (stream->head)
		stream->tail->next = op;
	else
		stream->head = op;
	put_locked(stream->tail);
	stream->tail = op;
	stream->queued++;
	stream->staged_bytes += op->staged_bytes;
	if (!stream->pending)
		stream->pending = op;
	activate(stream);
	schedule(stream);
	/* Keep the queue short where that costs nothing. */
	while (stream->head != op && !stream->busy && !stream->head->work &&
	       ready(stream, stream->head, false, op->submit_ns))
		pop(stream);
	sim_spin_unlock(&sim_engine);
	if (out)
		*out = op;
	if (work || host || (sim_sharing && kernel))
		worker_wake(host);
}

/* ---- waiting ---- */
bool sim_op_done(struct sim_op *op)
{
	bool done;

	if (!op)
		return true;
	sim_spin_lock(&sim_engine);
	if (op->state != OP_DONE)
		pump(sim_now_ns(), false);
	done = op->state == OP_DONE;
	sim_spin_unlock(&sim_engine);
	return done;
}

bool sim_op_end(struct sim_op *op, uint64_t *end_ns)
{
	bool done;

	sim_spin_lock(&sim_engine);
	done = op->state == OP_DONE;
	*end_ns = op->end_ns;
	sim_spin_unlock(&sim_engine);
	return done;
}

void sim_wait_op(struct sim_op *op, enum sim_why why)
{
	uint64_t since_ns = 0;

	if (!op)
		return;
	for (;;) {
		uint64_t now = sim_now_ns(), until;
		enum sim_op_state state;
		int settled = sim_meetings_settled();

		sim_spin_lock(&sim_engine);
		if (op->state != OP_DONE)
			pump(now, false);
		state = op->state;
		until = op->end_ns;
		sim_spin_unlock(&sim_engine);
		if (state == OP_DONE)
			break;
		if (!since_ns)
			since_ns = now;
		if (state == OP_PENDING && settled >= 0) {
			sim_meetings_wait(settled);
			continue;
		}
		now = sim_now_ns();
		if (state == OP_PENDING || until <= now)
			until = now + (sim_sharing ? 200000 : 20000);
		sim_sleep_until(until);
	}
	if (since_ns && sim_self.span) {
		struct sim_wait wait = {.kind = WAIT_GPU,
					.how = (unsigned char)why,
					.begin_ns = since_ns,
					.end_ns = sim_now_ns()};

		for (struct sim_span *span = sim_self.span; span; span = span->outer)
			span->gpu_wait_ns += wait.end_ns - since_ns;
		sim_note_wait(&wait);
	}
}

struct sim_op *sim_stream_tail(struct sim_stream *stream)
{
	struct sim_op *op;

	sim_spin_lock(&sim_engine);
	op = stream->tail;
	if (op)
		op->refs++;
	sim_spin_unlock(&sim_engine);
	return op;
}

/* The legacy stream is idle when the streams it waits for are. */
bool sim_stream_idle(struct sim_stream *stream)
{
	struct sim_ctx *ctx = stream->ctx;
	bool idle;

	sim_spin_lock(&sim_engine);
	pump(sim_now_ns(), false);
	idle = !stream->head;
	if (idle && stream == &ctx->legacy)
		for (struct sim_stream *s = ctx->streams; s; s = s->next)
			if (!(s->flags & 1) && !s->internal && s->head)
				idle = false;
	sim_spin_unlock(&sim_engine);
	return idle;
}

void sim_wait_stream(struct sim_stream *stream, enum sim_why why)
{
	struct sim_op *op;

	if (sim_stream_idle(stream))
		return;
	if (stream == &stream->ctx->legacy)
		sim_submit(stream, sim_op_new(OP_MARK, 0), &op);
	else
		op = sim_stream_tail(stream);
	sim_wait_op(op, why);
	sim_op_put(op);
}

static void wait_all(struct sim_ctx *only, int dev, enum sim_why why)
{
	struct sim_op *few[16], **ops = few;
	unsigned cnt = 0, cap = 16;

	sim_spin_lock(&sim_engine);
	for (struct sim_ctx *ctx = sim_contexts; ctx; ctx = ctx->next) {
		if (only ? ctx != only : ctx->dev != dev)
			continue;
		for (struct sim_stream *s = &ctx->legacy; s;
		     s = s == &ctx->legacy ? ctx->streams : s->next) {
			if (!s->head)
				continue;
			if (cnt == cap) {
				struct sim_op **more = malloc(2 * cap * sizeof(*more));

				if (!more)
					abort();
				memcpy(more, ops, cap * sizeof(*more));
				if (ops != few)
					free(ops);
				ops = more;
				cap *= 2;
			}
			s->tail->refs++;
			ops[cnt++] = s->tail;
		}
	}
	sim_spin_unlock(&sim_engine);
	for (unsigned i = 0; i < cnt; i++) {
		sim_wait_op(ops[i], why);
		sim_op_put(ops[i]);
	}
	if (ops != few)
		free(ops);
}

void sim_wait_ctx(struct sim_ctx *ctx, enum sim_why why)
{
	wait_all(ctx, 0, why);
}

void sim_wait_device(int dev, enum sim_why why)
{
	wait_all(NULL, dev, why);
}

/* A full launch queue: wait until its oldest operation is done. */
void sim_wait_room(struct sim_stream *stream, enum sim_why why)
{
	for (;;) {
		struct sim_op *op = NULL;

		sim_spin_lock(&sim_engine);
		if (stream->queued >= sim_script.queue_depth) {
			pump(sim_now_ns(), false);
			if (stream->queued >= sim_script.queue_depth) {
				op = stream->head;
				op->refs++;
			}
		}
		sim_spin_unlock(&sim_engine);
		if (!op)
			return;
		sim_wait_op(op, why);
		sim_op_put(op);
	}
}

uint64_t sim_staged_bytes(struct sim_stream *stream)
{
	uint64_t bytes;

	sim_spin_lock(&sim_engine);
	pump(sim_now_ns(), false);
	bytes = stream->staged_bytes;
	sim_spin_unlock(&sim_engine);
	return bytes;
}

/* ---- streams ---- */
void sim_stream_init(struct sim_stream *stream, struct sim_ctx *ctx, unsigned flags, int priority)
{
	memset(stream, 0, sizeof(*stream));
	stream->ctx = ctx;
	stream->flags = flags;
	stream->priority = priority;
	stream->magic = STREAM_MAGIC;
	stream->id = next_stream_id++;
}

struct sim_stream *sim_stream_new(struct sim_ctx *ctx, unsigned flags, int priority)
{
	struct sim_stream *stream;

	sim_spin_lock(&sim_engine);
	stream = stream_pool;
	if (stream)
		stream_pool = stream->next;
	else
		stream = malloc(sizeof(*stream));
	if (!stream)
		abort();
	sim_stream_init(stream, ctx, flags, priority);
	stream->next = ctx->streams;
	if (ctx->streams)
		ctx->streams->prev = stream;
	ctx->streams = stream;
	sim_spin_unlock(&sim_engine);
	return stream;
}

/* Destroying a stream with work in it: the work ends first, nobody waits. */
void sim_stream_retire(struct sim_stream *stream)
{
	sim_spin_lock(&sim_engine);
	stream->magic = 0;
	if (stream->head)
		stream->zombie = true;
	else
		unlink_stream(stream);
	sim_spin_unlock(&sim_engine);
}

/* ---- telling what was done (jobs.c) ---- */
void sim_engine_settle(void)
{
	sim_spin_lock(&sim_engine);
	pump(sim_now_ns(), false);
	sim_spin_unlock(&sim_engine);
	sim_jobs_hand_on();
}

void sim_engine_exit(void)
{
	uint64_t now = sim_now_ns();

	sim_spin_lock(&sim_engine);
	for (struct sim_stream *s = active; s; s = s->next_active)
		for (struct sim_op *op = s->head; op; op = op->next) {
			bool known = op->state != OP_PENDING;
			uint64_t start = known || op->ran_from_ns ? op->start_ns : UINT64_MAX;

			if (!op->job || start >= now)
				continue;
			if (known && op->end_ns <= now)
				sim_job_ended(op->job, op);
			else
				sim_job_cut(op->job, op, now);
			op->job = NULL;
		}
	sim_spin_unlock(&sim_engine);
	sim_jobs_hand_on();
}

/* The child has no worker and no right to its parent's GPU. */
void sim_engine_fork_child(void)
{
	atomic_store(&sim_engine.locked, 0);
	atomic_store(&kept_lock.locked, 0); /* what was kept may be half in the list */
	kept_works = NULL;
	kept_cnt = 0;
	worker_started = false;
	active = NULL;
}
