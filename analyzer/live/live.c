/*
 * analyzer/live/live.c: looks at running programs. Called by `ps`, `top` and `snapshot`.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "live.h"

/* ---- clocks ---------------------------------------------------------------------------------- */

static bool is_this_boot(const struct trace *trace)
{
	const char *boot = metadata_text(&trace->metadata, "boot_id");
	char here[64] = "";
	FILE *file = boot ? fopen("/proc/sys/kernel/random/boot_id", "re") : NULL;

	if (!file)
		return false;
	if (!fgets(here, sizeof(here), file))
		here[0] = '\0';
	fclose(file);
	here[strcspn(here, "\n")] = '\0';
	return !strcmp(here, boot);
}

static uint64_t counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t value;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
#else
	return 0;
#endif
}

/* The clock itself where it is to be had; elsewhere what the time of day makes of it. */
static uint64_t live_clock(const struct trace *trace)
{
	const char *source = metadata_text(&trace->metadata, "clock_source");
	const struct timeline *t = &trace->timeline;
	uint64_t ns = now_ns();
	struct timespec time;

	if (source && is_this_boot(trace)) {
		if (!strcmp(source, "tsc") && counter())
			return counter();
		clock_gettime(CLOCK_MONOTONIC, &time);
		if (!strcmp(source, "monotonic"))
			return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
	}
	ns -= min_u64(ns, t->zero_ns);
	return (uint64_t)(((unsigned __int128)ns << 40) / t->ns_per_cycle_40);
}

uint64_t live_ago_ns(const struct live_process *process, uint64_t when)
{
	if (!when)
		return UNKNOWN_NS;
	return timeline_span_ns(&process->trace->timeline,
				process->now - min_u64(process->now, when));
}

static void pause_for(uint64_t ns)
{
	struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

/* ---- a slot ---------------------------------------------------------------------------------- */

static bool has_counted_none(const struct spy_slot_page *a, const struct spy_slot_page *b)
{
	return a->calls == b->calls && !memcmp(a->counts, b->counts, sizeof(a->counts));
}

/* In the same call at both looks? Calls inside of it, and what it sleeps in for short times, may come and go. */
static bool same_call(const struct spy_slot_page *a, const struct spy_slot_page *b)
{
	if (!a->depth || !b->depth || a->outer_fn != b->outer_fn || a->caller != b->caller)
		return false;
	return a->since ? a->since == b->since : !b->since && has_counted_none(a, b);
}

/* In the same wait inside that call? */
static bool same_wait(const struct spy_slot_page *a, const struct spy_slot_page *b)
{
	return a->wait_kind == b->wait_kind && a->wait_object == b->wait_object &&
	       a->wait_since == b->wait_since;
}

/* Does the thread do the same at both looks? */
static bool is_same(const struct spy_slot_page *a, const struct spy_slot_page *b)
{
	if (a->tid != b->tid)
		return false;
	if (board_asks_gpu(a) && board_asks_gpu(b))
		return a->outside_since == b->outside_since &&
		       a->outside_object == b->outside_object;
	if (a->depth || b->depth)
		return same_call(a, b);
	return has_counted_none(a, b) && board_waits_outside(a) == board_waits_outside(b) &&
	       (!board_waits_outside(a) || a->outside_since == b->outside_since);
}

static bool is_for_gpu(uint8_t contract)
{
	switch (contract) {
	case SPY_CONTRACT_STREAM:
	case SPY_CONTRACT_EVENT:
	case SPY_CONTRACT_DEVICE:
	case SPY_CONTRACT_COPY_SYNC:
	case SPY_CONTRACT_COPY_ASYNC:
	case SPY_CONTRACT_COPY_BATCH:
	case SPY_CONTRACT_MEMSET_SYNC:
	case SPY_CONTRACT_SUBMIT:
	case SPY_CONTRACT_LAUNCH:
	case SPY_CONTRACT_FREE:
	case SPY_CONTRACT_LIMIT:
	case SPY_CONTRACT_MODULE:
	case SPY_CONTRACT_LAZY_LOAD:
		return true;
	default:
		return false;
	}
}

static enum live_doing doing_of_wait(const struct live_thread *t, const struct trace_set *set)
{
	if (spy_wait_is_lock(t->wait_kind))
		return LIVE_LOCK;
	if (t->wait_kind == SPY_WAIT_QUERY)
		return LIVE_GPU;
	if (t->wait_kind == SPY_WAIT_JOIN)
		return LIVE_JOIN;
	/* What the driver sleeps in says nothing of what it is for. */
	if (t->in_call && is_for_gpu(set->functions.all[t->fn].contract))
		return LIVE_GPU;
	return t->wait_kind == SPY_WAIT_IOCTL ? LIVE_MODULE : LIVE_WAIT;
}

static void read_wait(struct live_thread *t, const struct spy_slot_page *page)
{
	struct board_wait wait;

	if (!board_wait_of(page, &wait))
		return;
	t->waits = true;
	t->outside = wait.outside;
	t->wait_kind = wait.kind;
	t->wait_object = wait.object;
	t->holder_tid = wait.holder;
	t->wait_caller = wait.caller;
	t->wait_ns = live_ago_ns(t->process, wait.since);
	t->wait_since_ns = timeline_ns(&t->process->trace->timeline, wait.since);
	if (t->wait_kind == SPY_WAIT_QUERY)
		t->call_ns = t->wait_ns;
}

/* Makes a thread of a slot of a board. before: at the first look; NULL: it was not there. */
static void live_read_slot(struct live_thread *t, struct trace_set *set,
			   const struct spy_slot_page *before, const struct spy_slot_page *page)
{
	struct trace *trace = t->process->trace;
	const struct live_process *process = t->process;
	bool asks = board_asks_gpu(page);

	t->tid = page->tid;
	t->device = page->device;
	t->calls = page->calls;
	t->in_call = page->depth && !asks;
	t->call_ns = t->wait_ns = UNKNOWN_NS;
	if (t->in_call) {
		t->fn = trace_function(set, trace, page->outer_fn);
		t->inner_fn = page->depth > 1 ? trace_function(set, trace, page->fn) : t->fn;
		t->call_ns = live_ago_ns(process, page->since);
		t->call_caller = page->caller;
		t->call_stream = page->stream;
	}
	if (!asks || (before && !has_counted_none(before, page)))
		read_wait(t, page);
	if (!before || !is_same(before, page))
		t->doing = LIVE_GOES_ON;
	else if (t->waits &&
		 (t->outside || !spy_wait_is_lock(t->wait_kind) || same_wait(before, page)))
		t->doing = doing_of_wait(t, set);
	else if (t->in_call)
		t->doing = is_for_gpu(set->functions.all[t->fn].contract) ? LIVE_GPU : LIVE_CALL;
	else
		t->doing = trace->board.head.dormant ? LIVE_UNSEEN : LIVE_BETWEEN;
}

/* ---- who waits for whom ---------------------------------------------------------------------- */

static struct live_thread *find_thread(struct live_process *process, uint32_t tid)
{
	for (size_t i = 0; i < process->n_threads; i++)
		if (process->threads[i]->tid == tid)
			return process->threads[i];
	return NULL;
}

static struct live_thread *add_thread(struct live *live, struct live_process *process)
{
	struct live_thread *t = xcalloc(1, sizeof(*t));

	t->process = process;
	process->threads = grow(process->threads, process->n_threads, sizeof(t));
	process->threads[process->n_threads++] = t;
	live->threads = grow(live->threads, live->n_threads, sizeof(t));
	live->threads[live->n_threads++] = t;
	return t;
}

static void look_at_thread(struct live *live, struct live_thread *t)
{
	const struct live_process *process = t->process;

	if (live->open)
		t->model = model_find_thread(&live->model, &live->model.processes[process->index],
					     t->tid);
	if (!process->recorded)
		return;
	t->os_tid = os_thread_number(process->recorded, t->tid);
	os_thread_look(&t->os, process->recorded->pid, t->os_tid);
}

/* A holder that has no slot. */
static struct live_thread *add_non_cuda_thread(struct live *live, struct live_process *process,
					       uint32_t tid)
{
	struct live_thread *t = add_thread(live, process);

	t->tid = tid;
	t->device = SPY_DEVICE_NONE;
	t->call_ns = t->wait_ns = UNKNOWN_NS;
	look_at_thread(live, t);
	t->doing = process->recorded && !t->os_tid ? LIVE_GONE : LIVE_NO_CUDA;
	return t;
}

/* Of a lock that processes share the holder may be another one's thread. */
static struct live_thread *find_elsewhere(struct live *live, const struct live_process * not,
					  uint32_t tid)
{
	for (size_t i = 0; i < live->n_processes; i++)
		if (&live->processes[i] != not &&live->processes[i].trace->host ==
		    not ->trace->host) {
			struct live_thread *t = find_thread(&live->processes[i], tid);

			if (t)
				return t;
		}
	return NULL;
}

static void find_holder(struct live *live, struct live_thread *t)
{
	struct live_process *process = t->process;
	uint32_t tid = t->holder_tid;

	if (t->doing == LIVE_LOCK)
		tid = recent_holder(&live->recent, process->index, t->wait_object, tid, t->tid,
				    t->wait_since_ns);
	t->holder_tid = tid;
	if (!tid)
		return;
	t->holder = find_thread(process, tid);
	if (!t->holder && process->recorded && !os_thread_number(process->recorded, tid))
		t->holder = find_elsewhere(live, process, tid);
	if (!t->holder)
		t->holder = add_non_cuda_thread(live, process, tid);
}

/* From the thread where the chain went round, around. */
static void set_cycle(struct live *live, struct live_thread *first)
{
	struct live_thread *t = first;

	live->n_cycles++;
	do {
		t->cycle = live->n_cycles;
		t->root = t;
		t = t->holder;
	} while (t != first);
}

/* Follows the chain to its end, or to where it is known already. mark: of this chain alone. */
static void follow(struct live *live, struct live_thread *from, uint32_t mark)
{
	struct live_thread *end = from, *t;

	while (!end->root && end->mark != mark && end->holder) {
		end->mark = mark;
		end = end->holder;
	}
	if (!end->root && end->mark == mark)
		set_cycle(live, end);
	else if (!end->root)
		end->root = end;
	for (t = from; !t->root; t = t->holder)
		t->root = end->cycle ? end : end->root;
}

/* Who waits for whom, to the end: sets holder, root, cycle, waiters. */
static void live_link(struct live *live)
{
	size_t i,
		n = live->n_threads; /* threads without CUDA calls come behind, and wait for nobody */

	for (i = 0; i < n; i++)
		if (live->threads[i]->doing == LIVE_LOCK || live->threads[i]->doing == LIVE_JOIN)
			find_holder(live, live->threads[i]);
	for (i = 0; i < live->n_threads; i++)
		if (!live->threads[i]->root)
			follow(live, live->threads[i], (uint32_t)i + 1);
	for (i = 0; i < live->n_threads; i++)
		if (live->threads[i]->root != live->threads[i] &&
		    live->threads[i]->doing == LIVE_LOCK)
			live->threads[i]->root->waiters++;
}

/* ---- processes ------------------------------------------------------------------------------- */

static int read_board(struct board *board, const struct trace *trace)
{
	char *path = xasprintf("%s/.board", trace->dir);
	int err = board_read(board, path);

	free(path);
	return err;
}

static const struct recorded *find_recorded(const struct live_options *options,
					    const struct trace *trace)
{
	char *path = xasprintf("%s/.board", trace->dir);
	const struct recorded *found = NULL;
	struct stat st;

	for (size_t i = 0; !stat(path, &st) && i < options->recorded->n; i++)
		if (options->recorded->all[i].board_inode == st.st_ino &&
		    options->recorded->all[i].inner_pid == (pid_t)trace->board.head.pid)
			found = &options->recorded->all[i];
	free(path);
	return found;
}

/* Could we have found that it maps its board? Then one that does not has ended: a zombie, or another process with its
 * number. */
static bool is_for_us(const struct trace *trace)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", trace->pid);
	return is_this_boot(trace) && !stat(path, &st) && (!geteuid() || st.st_uid == geteuid());
}

static void add_process(struct live *live, struct trace *trace, const struct live_options *options)
{
	const struct recorded *recorded = find_recorded(options, trace);
	struct live_process *p;

	if (!recorded && (!trace->live || is_for_us(trace))) {
		live->n_ended++;
		for (size_t i = 0; i < trace->n_streams; i++) /* there is nothing to be read */
			reader_release(&trace->streams[i]->reader);
		return;
	}
	live->processes = grow(live->processes, live->n_processes, sizeof(*live->processes));
	p = &live->processes[live->n_processes++];
	*p = (struct live_process){.trace = trace, .index = trace->index, .recorded = recorded};
	p->here = recorded || trace->alive;
	p->started_ns = (uint64_t)metadata_number(&trace->metadata, "start_realtime_ns", 0);
	p->before = trace->board;
	trace->board = (struct board){0};
}

static uint64_t counted_in(const struct board *board)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < board->n_slots; i++)
		for (size_t j = 0; j < SPY_BOARD_COUNTERS; j++)
			sum += board->slots[i].counts[j];
	return sum;
}

static uint64_t calls_in(const struct board *board)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < board->n_slots; i++)
		sum += board->slots[i].calls;
	return sum;
}

/* The second look, at once twice: what is not the same in both was being changed. */
static void look_again(struct live *live, struct live_process *p)
{
	struct trace *trace = p->trace;
	struct board again;

	p->now = live_clock(trace);
	if (read_board(&trace->board, trace) || read_board(&again, trace))
		return;
	for (size_t i = 0; i < trace->board.n_slots && i < again.n_slots; i++) {
		const struct spy_slot_page *before =
			i < p->before.n_slots ? &p->before.slots[i] : NULL;
		struct live_thread *t;

		if (!again.slots[i].tid)
			continue;
		if (!is_same(&trace->board.slots[i], &again.slots[i]))
			before = NULL;
		t = add_thread(live, p);
		t->slot = (uint32_t)i + 1;
		live_read_slot(t, &live->set, before, &again.slots[i]);
	}
	p->calls = calls_in(&again) - min_u64(calls_in(&again), calls_in(&p->before));
	p->counted = counted_in(&again) - min_u64(counted_in(&again), counted_in(&p->before));
	board_release(&again);
}

int live_begin(struct live *live, const char *const *dirs, size_t n_dirs,
	       const struct live_options *options)
{
	int err;

	*live = (struct live){0};
	err = trace_set_open(&live->set, dirs, n_dirs, &(struct trace_filter){.apart = true});
	if (err)
		return err;
	for (size_t i = 0; i < live->set.n_traces; i++)
		add_process(live, live->set.traces[i], options);
	live->began_ns = live->sampled_ns = now_ns();
	return live->n_processes ? 0 : -ESRCH;
}

/* Calls that may wait for a GPU, and need not: not if it has nothing to do. */
static void doubt_gpu(struct live *live, struct live_thread *t)
{
	if (t->wait_kind == SPY_WAIT_QUERY && t->waits)
		return;
	switch (live->set.functions.all[t->fn].contract) {
	case SPY_CONTRACT_STREAM:
	case SPY_CONTRACT_EVENT:
	case SPY_CONTRACT_DEVICE:
		return;
	default:
		break;
	}
	if (recent_outstanding(&live->recent, t->process->index, t->device))
		return;
	if (!t->waits || spy_wait_is_lock(t->wait_kind))
		t->doing = LIVE_CALL;
	else
		t->doing = t->wait_kind == SPY_WAIT_IOCTL ? LIVE_MODULE : LIVE_WAIT;
}

/* The event or stream that is asked for may have been given new work since the first question: then that is what does not
 * end. Where not everything was read, that is not known. */
static void correct_query(const struct live *live, struct live_thread *t)
{
	uint64_t now = timeline_ns(&t->process->trace->timeline, t->process->now), ns;

	if (!recent_asked(&live->recent, t->process->index, t->wait_object, t->model, &ns))
		ns = live->recent.partly ? now : 0;
	if (t->wait_ns != UNKNOWN_NS)
		t->call_ns = t->wait_ns = min_u64(t->wait_ns, now - min_u64(now, ns));
}

void live_end(struct live *live, const struct live_options *options)
{
	for (size_t i = 0; i < live->n_processes; i++) {
		look_again(live, &live->processes[i]);
		live->processes[i].apart_ns = now_ns() - min_u64(now_ns(), live->began_ns);
	}
	model_init(&live->model, &live->set);
	live->open = true;
	if (options->whole_bytes)
		recent_read(&live->recent, &live->model, options->whole_bytes);
	for (size_t i = 0; i < live->n_processes; i++)
		for (size_t j = 0; j < live->processes[i].n_threads; j++) {
			struct live_thread *t = live->processes[i].threads[j];

			look_at_thread(live, t);
			if (t->waits && t->wait_kind == SPY_WAIT_QUERY)
				correct_query(live, t);
			if (t->doing == LIVE_GPU && options->whole_bytes && !live->recent.partly)
				doubt_gpu(live, t);
		}
	live_link(live);
}

int live_look(struct live *live, const char *const *dirs, size_t n_dirs,
	      const struct live_options *options)
{
	int err = live_begin(live, dirs, n_dirs, options);

	if (err)
		return err;
	pause_for(options->apart_ns);
	live_end(live, options);
	return 0;
}

void live_release(struct live *live)
{
	struct live_cost *cost, *next;

	HASH_EMPTY (live->costs, cost, next)
		free(cost);

	for (size_t i = 0; i < live->n_threads; i++)
		free(live->threads[i]);
	for (size_t i = 0; i < live->n_processes; i++) {
		board_release(&live->processes[i].before);
		free(live->processes[i].threads);
	}
	free(live->threads);
	free(live->processes);
	recent_release(&live->recent);
	if (live->open)
		model_release(&live->model);
	trace_set_release(&live->set);
	*live = (struct live){0};
}
