/*
 * analyzer/idle/host.c: what threads did between their calls. Called for the records of waits
 * between calls and gaps, and where idle time of a GPU is charged.
 */
#include <stdlib.h>
#include "base/median.h"
#include "callers.h"
#include "host.h"
#include "model/python.h"

/* ---- sums ------------------------------------------------------------------------------------ */

struct idle_sum_key idle_sum_key_of(uint64_t owner, const struct process *process,
				    const struct idle_part *part)
{
	const struct python_frame *frame = python_frame(part->stack);
	struct idle_sum_key key = {.owner = owner,
				   .address = part->address,
				   .process = process->trace->index,
				   .cause = part->cause};

	if (frame) {
		key.code = frame->code;
		key.line = frame->line;
	} else if (part->stack && part->stack->function) {
		key.address = part->stack->function;
	}
	return key;
}

static struct idle_sum *find_sum(struct idle_sums *sums, const struct process *process,
				 struct idle_sum_key key)
{
	struct idle_sum *sum;

	HASH_FIND(hh, sums->by_key, &key, sizeof(key), sum);
	if (!sum && HASH_COUNT(sums->by_key) >= IDLE_SUMS_MOST) {
		key.address = key.code = key.line = 0;
		HASH_FIND(hh, sums->by_key, &key, sizeof(key), sum);
	}
	if (!sum) {
		HASH_NEW(sums->by_key, sum, key, key);
		sum->process = process;
		sum->created = position_now();
	}
	return sum;
}

static void hold(const struct stack *stack, int by)
{
	if (stack) /* the model's, whose reading only looks at the number */
		__atomic_add_fetch(&((struct stack *)(uintptr_t)stack)->held, (uint32_t)by,
				   __ATOMIC_RELEASE);
}

void idle_part_hold(const struct idle_part *part, int by)
{
	hold(part->stack, by);
	hold(part->stack_before, by);
}

static bool borrow(const struct stack **stack, const struct stack *from, bool same_call)
{
	if (*stack || !from || from->n_python || !same_call)
		return false;
	*stack = from;
	return true;
}

bool idle_part_borrow(struct idle_part *part, const struct idle_part *from)
{
	bool behind = borrow(&part->stack, from->stack,
			     part->fn == from->fn && part->address == from->address);
	bool before = borrow(&part->stack_before, from->stack_before,
			     part->fn_before == from->fn_before &&
				     part->address_before == from->address_before);

	return behind || before;
}

static void set_longest(struct idle_part *longest, const struct idle_part *part, bool holds)
{
	if (unlikely(holds)) {
		idle_part_hold(part, 1);
		idle_part_hold(longest, -1);
	}
	*longest = *part;
}

/* A part of the same place, or (is_longest) one to show from now on. */
static void see_longest(struct idle_part *longest, const struct idle_part *part, bool is_longest,
			bool holds)
{
	struct idle_part shown;

	if (!is_longest && !part->stack && !part->stack_before)
		return;
	shown = is_longest ? *part : *longest;
	if (idle_part_borrow(&shown, is_longest ? longest : part) || is_longest)
		set_longest(longest, &shown, holds);
}

/* A line of Python, or a function of C's. */
static bool same_place(const struct stack *a, const struct stack *b)
{
	const struct python_frame *x = python_frame(a), *y = python_frame(b);

	return x && y ? x->code == y->code && x->line == y->line
		      : !x && !y && a->function == b->function;
}

static void vote_meanwhile(struct idle_sum *sum, const struct stack *place, uint32_t tid,
			   uint64_t ns)
{
	bool same = place && sum->meanwhile && same_place(place, sum->meanwhile);

	if (!place)
		return;
	if (same && sum->meanwhile_tid != tid) /* several do the same */
		sum->meanwhile_tid = 0;
	if (!majority_moves(&sum->meanwhile_lead_ns, same, ns))
		return;
	sum->meanwhile = place;
	sum->meanwhile_tid = tid;
}

static struct progress *progress_of(struct idle_sum *sum)
{
	if (!sum->progress)
		sum->progress = xcalloc(1, sizeof(*sum->progress));
	return sum->progress;
}

/* What takes less in all is too little to speak of. */
static void see_progress(const struct phases *phases, struct idle_sum *sum,
			 const struct idle_part *part, uint64_t ns)
{
	uint64_t begin_ns = phases->all[sum->process->trace->index].begin_ns;
	uint64_t end_ns = part->at_ns + ns;

	if (sum->ns < PROGRESS_UNIT_NS)
		return;
	progress_add(progress_of(sum), (end_ns - min_u64(begin_ns, end_ns)) / PROGRESS_UNIT_NS, ns);
}

struct idle_sum *idle_sums_add(struct idle_sums *sums, uint64_t owner,
			       const struct process *process, const struct idle_part *part,
			       uint64_t ns)
{
	struct idle_sum_key key = idle_sum_key_of(owner, process, part);
	struct idle_sum **recent = &sums->recent[idle_sum_key_place(&key, IDLE_SUMS_RECENT_BITS)];
	struct idle_sum *sum = *recent;

	if (unlikely(!sum) || !idle_sum_key_same(&sum->key, &key))
		sum = *recent = find_sum(sums, process, key);
	sum->ns += ns;
	sum->count++;
	if (sums->phases && !idle_in_a_call(part->cause))
		see_progress(sums->phases, sum, part, ns);
	/* Samples divide one time between two calls into several parts. */
	sum->last_ns = ns + (part->at_ns && part->at_ns == sum->last_at_ns ? sum->last_ns : 0);
	sum->last_at_ns = part->at_ns;
	/* (Short times between many calls come as one part that knows none of them, and no place.) */
	if ((part->fn != NO_FUNCTION || part->stack) && sum->last_ns >= IDLE_LONG_NS)
		sum->long_ns += ns;
	vote_meanwhile(sum, part->meanwhile, part->meanwhile_tid, ns);
	see_longest(&sum->longest, part, sum->last_ns >= sum->longest_ns, sums->holds);
	sum->longest_ns = max_u64(sum->longest_ns, sum->last_ns);
	return sum;
}

struct idle_sum *idle_sums_add_of(struct idle_sums *sums, uint64_t owner,
				  const struct idle_part *part, uint64_t ns,
				  const struct idle_sum *from)
{
	double share = (double)ns / (double)from->ns;
	struct idle_sum_key key = idle_sum_key_of(owner, from->process, part);
	struct idle_sum *sum = find_sum(sums, from->process, key);
	uint64_t longest_ns = (uint64_t)((double)from->longest_ns * share);
	uint64_t count = (uint64_t)((double)from->count * share);

	sum->ns += ns;
	sum->long_ns += (uint64_t)((double)from->long_ns * share);
	sum->count += count ?: 1;
	if (from->progress && !idle_in_a_call(part->cause))
		progress_add_of(progress_of(sum), from->progress, ns);
	vote_meanwhile(sum, from->meanwhile, from->meanwhile_tid, ns);
	see_longest(&sum->longest, part, longest_ns >= sum->longest_ns, sums->holds);
	sum->longest_ns = max_u64(sum->longest_ns, longest_ns);
	return sum;
}

bool idle_sum_is_own_python(const struct idle_sum *sum)
{
	return sum->key.cause == IDLE_PYTHON && sum->key.code && sum->longest.fn == NO_FUNCTION &&
	       !python_called(sum->longest.stack).code;
}

void idle_sums_release(struct idle_sums *sums)
{
	struct idle_sum *sum, *next;

	HASH_EMPTY (sums->by_key, sum, next) {
		free(sum->holder);
		free(sum->progress);
		free(sum);
	}
}

void *ring_grow(void *ring, size_t *size, uint64_t n, size_t most, size_t bytes)
{
	if (n < *size || *size >= most)
		return ring;
	*size = *size ? min_u64(4 * *size, most)
		      : 4; /* entries keep their places: all are below the old size */
	return xrealloc(ring, *size, bytes);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct host_thread *host_thread_get(struct host_threads *threads, const struct thread *thread)
{
	while (threads->n <= thread->index) {
		threads->all = grow(threads->all, threads->n, sizeof(*threads->all));
		threads->all[threads->n++] = NULL;
	}
	if (!threads->all[thread->index])
		threads->all[thread->index] = xcalloc(1, sizeof(**threads->all));
	return threads->all[thread->index];
}

const struct host_thread *host_thread_find(const struct host_threads *threads,
					   const struct thread *thread)
{
	return thread->index < threads->n ? threads->all[thread->index] : NULL;
}

void host_threads_release(struct host_threads *threads)
{
	for (size_t i = 0; i < threads->n; i++) {
		struct host_thread *h = threads->all[i];

		if (!h)
			continue;
		free(h->waits);
		free(h->gaps);
		free(h->samples);
		free(h->known);
		free(h->clock);
		loops_free(h->loops);
		free(h);
	}
	free(threads->all);
}

/* ---- waits ----------------------------------------------------------------------------------- */

static enum idle_cause cause_of_file(enum spy_file_kind file)
{
	switch (file) {
	case SPY_FILE_PIPE:
		return IDLE_PIPE;
	case SPY_FILE_SOCKET:
		return IDLE_SOCKET;
	case SPY_FILE_LISTENING:
		return IDLE_NOTHING_TO_DO;
	case SPY_FILE_REGULAR:
	case SPY_FILE_DEVICE:
		return IDLE_FILE;
	case SPY_FILE_EVENT:
		return IDLE_LOCK; /* another thread's signal, most often */
	default:
		return IDLE_UNEXPLAINED;
	}
}

/* By the function alone, and what it waited for. */
static enum idle_cause cause_of_kind(const struct outside_record *wait)
{
	if (wait->flags & SPY_WAIT_GIL)
		return IDLE_GIL;
	switch (wait->kind) {
	case SPY_WAIT_MUTEX:
	case SPY_WAIT_READ:
	case SPY_WAIT_WRITE:
	case SPY_WAIT_SPIN:
	case SPY_WAIT_CONDITION:
	case SPY_WAIT_SEMAPHORE:
	case SPY_WAIT_FUTEX:
		return IDLE_LOCK;
	case SPY_WAIT_SLEEP:
		return IDLE_SLEEP;
	case SPY_WAIT_QUERY:
		return IDLE_GPU_QUERY;
	case SPY_WAIT_JOIN:
	case SPY_WAIT_CHILD:
		return IDLE_JOIN;
	case SPY_WAIT_ACCEPT:
	case SPY_WAIT_EPOLL:
		return IDLE_NOTHING_TO_DO;
	case SPY_WAIT_POLL:
	case SPY_WAIT_TRANSFER:
		return cause_of_file(wait->file);
	default:
		return IDLE_UNEXPLAINED;
	}
}

static enum idle_cause cause_of(struct host_thread *h, const struct outside_record *wait,
				const struct stack *stack)
{
	enum idle_cause cause = cause_of_kind(wait);
	size_t i = 0;

	/* A compiler is a child process, a checkpoint a file. */
	if (cause == IDLE_FILE || cause == IDLE_JOIN)
		return idle_cause_of_work(stack, cause);
	if (idle_is_certain(cause))
		return cause;
	while (i < h->n_known && i < h->known_size &&
	       (h->known[i].address != wait->return_address || h->known[i].kind != wait->kind))
		i++;
	if (i < h->n_known && i < h->known_size && !stack)
		return h->known[i].cause;
	if (!stack)
		return cause;
	if (i >= h->n_known || i >= h->known_size) {
		h->known = ring_grow(h->known, &h->known_size, h->n_known, HOST_KNOWN,
				     sizeof(*h->known));
		i = h->n_known++ % h->known_size;
	}
	h->known[i] = (struct host_known){wait->return_address, wait->kind,
					  idle_cause_of_stack(stack, cause)};
	cause = h->known[i].cause;
	/* Others may do a library's work for it: threads that compile. Elsewhere it waits for them at the same address. */
	return cause == IDLE_LOCK ? idle_cause_of_work(stack, cause) : cause;
}

/* The stack that was recorded with a wait. More waits for the same may have been added to the record since. */
static const struct stack *stack_of(const struct record *record, const struct outside_record *wait)
{
	const struct stack *stack = record->thread->stack;

	return stack && stack->fn == SPY_FN_NONE && stack->time <= record_time(record) &&
			       stack->time > wait->begin_time
		       ? stack
		       : NULL;
}

static struct host_wait *last_wait(const struct host_thread *h)
{
	return &h->waits[(h->n_waits - 1) % h->waits_size];
}

/* The last one is the first. */
static const struct host_sample *sample_at(const struct host_thread *h, uint64_t i)
{
	return &h->samples[(h->n_samples - i) % h->samples_size];
}

/* The last sample in that time that shows lines of Python; NULL: none. */
static const struct stack *sampled_between(const struct host_thread *h, uint64_t begin_ns,
					   uint64_t end_ns)
{
	for (uint64_t i = 1; i <= h->samples_size && i <= h->n_samples; i++) {
		const struct host_sample *sample = sample_at(h, i);

		if (sample->ns < begin_ns)
			break;
		if (sample->ns < end_ns && sample->place && sample->place->n_python)
			return sample->place;
	}
	return NULL;
}

#define MEANWHILE_LEAST_NS 2000000 /* a shorter wait has no sample in it, most often */
#define MEANWHILE_THREADS 256 /* are looked at, for one wait */

/* What the samples in that time stand for that found the thread running at a known place; where most of them did. */
static uint64_t ran_us(const struct host_thread *h, uint64_t begin_ns, uint64_t end_ns,
		       const struct stack **place)
{
	uint64_t us = 0, lead_us = 0;

	*place = NULL;
	for (uint64_t i = 1; i <= h->samples_size && i <= h->n_samples; i++) {
		const struct host_sample *sample = sample_at(h, i);

		if (sample->ns < begin_ns)
			break;
		if (sample->ns >= end_ns || !(sample->state & SPY_SAMPLE_RAN) || !sample->place)
			continue;
		if (majority_moves(&lead_us, *place && same_place(*place, sample->place),
				   sample->weight_us))
			*place = sample->place;
		us += sample->weight_us;
	}
	return us;
}

/* It is unknown whom the thread waited for: which of the others ran most meanwhile? */
static void look_meanwhile(const struct host_threads *threads, const struct thread *waiter,
			   struct idle_part *part, uint64_t end_ns)
{
	const struct thread *thread = waiter->process->threads;
	uint64_t most_us = 0, us;

	for (unsigned int n = 0; thread && n < MEANWHILE_THREADS; thread = thread->next, n++) {
		const struct host_thread *h =
			thread != waiter ? host_thread_find(threads, thread) : NULL;
		const struct stack *place;

		us = h && h->n_samples ? ran_us(h, part->at_ns, end_ns, &place) : 0;
		if (us <= most_us)
			continue;
		most_us = us;
		part->meanwhile_tid = thread->tid;
		part->meanwhile = place;
	}
}

void host_see_wait(const struct host_threads *threads, struct host_thread *h,
		   const struct record *record)
{
	const struct outside_record wait = decode_outside(record);
	const struct stack *stack = stack_of(record, &wait), *sampled = NULL;
	uint64_t begin_ns = wait.begin_ns, last_ns = 0;

	h->in_python |= stack && stack->n_python;
	if (!stack || !stack->n_python)
		sampled = sampled_between(h, begin_ns, record->ns);
	if (h->n_waits)
		last_ns = last_wait(h)->end_ns;
	if (begin_ns < last_ns) /* damaged */
		begin_ns = min_u64(last_ns, record->ns);
	h->waits = ring_grow(h->waits, &h->waits_size, h->n_waits, HOST_WAITS, sizeof(*h->waits));
	h->n_waits++;
	*last_wait(h) = (struct host_wait){.begin_ns = begin_ns,
					   .end_ns = record->ns,
					   .ns = min_u64(wait.ns, record->ns - begin_ns),
					   .part = {.cause = cause_of(h, &wait, stack),
						    .address = wait.return_address,
						    .fn = NO_FUNCTION,
						    .fn_before = NO_FUNCTION,
						    .holder = wait.holder,
						    .object = wait.object,
						    .stack = sampled ?: stack,
						    .at_ns = begin_ns}};
	loops_see_wait(h->loops, record, stack);
	if (last_wait(h)->part.cause == IDLE_LOCK && !wait.holder &&
	    record->ns - begin_ns >= MEANWHILE_LEAST_NS)
		look_meanwhile(threads, record->thread, &last_wait(h)->part, record->ns);
}

static uint64_t share(uint64_t ns, uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? (uint64_t)((double)ns * (double)part_ns / (double)whole_ns) : 0;
}

/* How much of [begin_ns, end_ns) the waits take, those of a record in proportion. */
static uint64_t waited_ns(const struct host_wait *wait, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t from_ns = max_u64(wait->begin_ns, begin_ns);
	uint64_t to_ns = min_u64(wait->end_ns, end_ns);

	return from_ns < to_ns ? share(wait->ns, to_ns - from_ns, wait->end_ns - wait->begin_ns)
			       : 0;
}

void host_see_sample(struct host_thread *h, const struct host_sample *sample)
{
	h->samples = ring_grow(h->samples, &h->samples_size, h->n_samples, HOST_SAMPLES,
			       sizeof(*h->samples));
	h->samples[h->n_samples++ % h->samples_size] = *sample;
	h->in_python |= sample->place && sample->place->n_python;
}

static bool is_in_wait(const struct host_thread *h, uint64_t ns)
{
	for (uint64_t i = 1; i <= h->waits_size && i <= h->n_waits; i++) {
		const struct host_wait *wait = &h->waits[(h->n_waits - i) % h->waits_size];

		if (wait->end_ns <= ns)
			return false;
		if (wait->begin_ns <= ns)
			return true;
	}
	return false;
}

static uint64_t all_waited_ns(const struct host_thread *h, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t i, sum = 0;

	for (i = 1; i <= h->waits_size && i <= h->n_waits; i++) {
		const struct host_wait *wait = &h->waits[(h->n_waits - i) % h->waits_size];

		if (wait->end_ns <= begin_ns)
			break;
		sum += waited_ns(wait, begin_ns, end_ns);
	}
	return sum;
}

/* How long the thread was between its calls from then on, before the gap that ends now, and in no wait. */
static uint64_t earlier_ns(const struct host_thread *h, const struct thread_account *c,
			   uint64_t from_ns)
{
	uint64_t known = min_u64(c->ring.n, c->ring.size), i, sum_ns = 0;

	for (i = 2; i <= known; i++) {
		uint64_t end_ns = completed_call_at(&c->ring, c->ring.n - i + 1)->begin_ns;
		uint64_t begin_ns = completed_call_at(&c->ring, c->ring.n - i)->end_ns;

		begin_ns = max_u64(begin_ns, from_ns);
		if (begin_ns < end_ns)
			sum_ns += end_ns - begin_ns -
				  min_u64(all_waited_ns(h, begin_ns, end_ns), end_ns - begin_ns);
		if (end_ns <= from_ns)
			break;
	}
	return sum_ns;
}

void host_see_gap(struct host_thread *h, const struct thread_account *c,
		  const struct record *record)
{
	const struct sched_record sched = decode_sched(record);
	uint64_t begin_ns =
		c->ring.n ? completed_call_at(&c->ring, c->ring.n - 1)->end_ns : record->ns;
	uint64_t rest_ns, running_ns, not_running_ns, ran_earlier_ns;

	if (begin_ns >= record->ns)
		return;
	rest_ns = record->ns - begin_ns;
	rest_ns -= min_u64(all_waited_ns(h, begin_ns, record->ns), rest_ns);
	not_running_ns = min_u64(sched.not_running_ns, rest_ns);
	/* The window began before the gap. If the thread was blocked where nobody saw it, then in the
	 * longest time between two calls; else in all of them alike. */
	ran_earlier_ns = earlier_ns(h, c, record->ns - min_u64(sched.window_ns, record->ns));
	if (ran_earlier_ns > rest_ns)
		ran_earlier_ns = share(sched.running_ns, ran_earlier_ns, ran_earlier_ns + rest_ns);
	running_ns = sched.running_ns - min_u64(sched.running_ns, ran_earlier_ns);
	running_ns = min_u64(running_ns, rest_ns - not_running_ns);
	h->gaps = ring_grow(h->gaps, &h->gaps_size, h->n_gaps, HOST_GAPS, sizeof(*h->gaps));
	h->gaps[h->n_gaps++ % h->gaps_size] =
		(struct host_gap){.end_ns = record->ns,
				  .not_running_ns = not_running_ns,
				  .blocked_ns = rest_ns - not_running_ns - running_ns};
}

/* ---- division -------------------------------------------------------------------------------- */

enum idle_cause host_cpu_cause(const struct accounting *a, const struct process *process,
			       const struct host_thread *h)
{
	if (!a->gaps_recorded[process->trace->index])
		return IDLE_UNEXPLAINED;
	return h && h->in_python ? IDLE_PYTHON : IDLE_CPU;
}

struct division {
	const struct accounting *accounts;
	const struct host_thread *host;
	const struct thread *thread;
	const struct process *process;
	struct idle_span *span;
	idle_visit *visit;
	void *data;
};

static void show(const struct division *d, const struct idle_part *part, uint64_t ns)
{
	struct idle_part its = *part;

	its.thread = d->thread;
	if (ns)
		d->visit(d->data, &its, ns);
}

static const struct host_gap *gap_at(const struct host_thread *h, uint64_t begin_ns,
				     uint64_t end_ns)
{
	for (uint64_t i = 1; i <= h->gaps_size && i <= h->n_gaps; i++) {
		const struct host_gap *gap = &h->gaps[(h->n_gaps - i) % h->gaps_size];

		if (gap->end_ns <= begin_ns)
			break;
		if (gap->end_ns <= end_ns)
			return gap;
	}
	return NULL;
}

bool host_loads_code(const struct accounting *a, uint32_t fn)
{
	uint8_t contract =
		fn != NO_FUNCTION ? a->model->set->functions.all[fn].contract : SPY_CONTRACT_HOST;

	return contract == SPY_CONTRACT_MODULE || contract == SPY_CONTRACT_LIBRARY;
}

struct idle_part host_gap_part(const struct accounting *a, const struct process *process,
			       const struct host_thread *h, const struct completed_call *before,
			       const struct completed_call *behind, uint64_t begin_ns)
{
	bool compiled = behind && host_loads_code(a, behind->fn) &&
			idle_is_compiled(process, behind->return_address, begin_ns, behind->stack);

	return (struct idle_part){
		.cause = compiled ? IDLE_COMPILE : host_cpu_cause(a, process, h),
		.compiler = compiled ? behind->return_address : 0,
		.address = behind ? behind->return_address : 0,
		.fn = behind ? behind->fn : NO_FUNCTION,
		.fn_before = before ? before->fn : NO_FUNCTION,
		.address_before = before ? before->return_address : 0,
		.stack = behind ? behind->stack : NULL,
		.stack_before = before ? before->stack : NULL,
		.at_ns = begin_ns,
	};
}

static bool same_line(const struct stack *x, const struct stack *y)
{
	const struct python_frame *a = python_frame(x), *b = python_frame(y);

	return a && b && a->code == b->code && a->line == b->line;
}

/* What was being done there: what the library is for that the program had called; or the program's line is that of the call
 * behind, for which something was being compiled. */
static enum idle_cause cause_there(const struct idle_part *part, const struct stack *place)
{
	enum idle_cause cause = part->cause;

	if (!place->n_python)
		return cause;
	if (cause == IDLE_CPU || (cause == IDLE_COMPILE && !same_line(place, part->stack)))
		cause = IDLE_PYTHON;
	return idle_cause_of_work(place, cause);
}

struct idle_part host_sampled_part(const struct idle_part *part, const struct stack *place,
				   uint16_t state)
{
	struct idle_part sampled = *part;

	sampled.fn = NO_FUNCTION;
	sampled.stack = place;
	sampled.address = place->n ? place->frames[0] : 0;
	if (state & SPY_SAMPLE_GC)
		sampled.cause = IDLE_GC;
	else if (state & SPY_SAMPLE_GIL)
		sampled.cause = IDLE_GIL;
	else
		sampled.cause = cause_there(part, place);
	return sampled;
}

bool host_sample_counts(const struct host_thread *h, const struct host_sample *sample)
{
	return !(sample->state & SPY_SAMPLE_BLOCKED) || !is_in_wait(h, sample->ns);
}

/* Does the sample tell of time of that cause? */
static bool tells_of(const struct host_thread *h, const struct host_sample *sample,
		     enum idle_cause cause)
{
	return !!(sample->state & SPY_SAMPLE_BLOCKED) == (cause == IDLE_UNEXPLAINED) &&
	       host_sample_counts(h, sample);
}

/* What the samples in that time stand for, in microseconds. */
static uint64_t sampled_us(const struct host_thread *h, enum idle_cause cause,
			   const struct idle_span *times)
{
	uint64_t sum = 0, i;

	for (i = 1; i <= h->samples_size && i <= h->n_samples; i++) {
		const struct host_sample *sample = sample_at(h, i);

		if (sample->ns < times->begin_ns)
			break;
		if (sample->ns < times->end_ns && tells_of(h, sample, cause))
			sum += sample->weight_us;
	}
	return sum;
}

/* Shows a part of a long gap as its samples say where the thread was; else, and of a short one, as it is. */
static void show_sampled(const struct division *d, const struct idle_part *part, uint64_t ns,
			 const struct idle_span *gap)
{
	const struct host_thread *h = d->host;
	uint64_t whole_us = 0, left_us, i, share_ns;

	if (h && h->n_samples && gap->end_ns - gap->begin_ns >= HOST_LONG_GAP_NS)
		whole_us = sampled_us(h, part->cause, gap);
	left_us = whole_us;
	for (i = 1; left_us && ns; i++) {
		const struct host_sample *sample = sample_at(h, i);

		if (sample->ns >= gap->end_ns || !tells_of(h, sample, part->cause))
			continue;
		share_ns = share(ns, sample->weight_us, left_us);
		left_us -= sample->weight_us;
		ns -= share_ns;
		if (sample->place) {
			struct idle_part sampled =
				host_sampled_part(part, sample->place, sample->state);

			show(d, &sampled, share_ns);
		} else {
			show(d, part, share_ns);
		}
	}
	show(d, part, ns);
}

/* Of the gap between two calls the part [begin_ns, end_ns). behind: NULL: there is none yet. */
static void divide_gap(const struct division *d, const struct completed_call *before,
		       const struct completed_call *behind, uint64_t begin_ns, uint64_t end_ns)
{
	const struct host_thread *h = d->host;
	uint64_t rest_ns = end_ns - begin_ns, whole_ns, i, ns, running_ns;
	uint64_t gap_begin_ns = before ? before->end_ns : begin_ns;
	uint64_t gap_end_ns = behind ? behind->begin_ns : end_ns;
	const struct idle_span gap_times = {gap_begin_ns, gap_end_ns, false};
	const struct host_gap *gap;
	struct idle_part part = host_gap_part(d->accounts, d->process, h, before, behind, begin_ns);

	for (i = 1; h && i <= h->waits_size && i <= h->n_waits; i++) {
		const struct host_wait *wait = &h->waits[(h->n_waits - i) % h->waits_size];

		if (wait->end_ns <= begin_ns)
			break;
		ns = min_u64(waited_ns(wait, begin_ns, end_ns), rest_ns);
		*d->span = (struct idle_span){max_u64(wait->begin_ns, begin_ns),
					      min_u64(wait->end_ns, end_ns), false};
		show(d, &wait->part, ns);
		rest_ns -= ns;
	}
	*d->span = (struct idle_span){begin_ns, end_ns, true};
	gap = h ? gap_at(h, gap_begin_ns, gap_end_ns) : NULL;
	if (gap) {
		whole_ns = gap_end_ns - gap_begin_ns;
		whole_ns -= min_u64(all_waited_ns(h, gap_begin_ns, gap_end_ns), whole_ns);
		running_ns = rest_ns;
		ns = min_u64(share(gap->not_running_ns, rest_ns, whole_ns), running_ns);
		running_ns -= ns;
		show(d,
		     &(struct idle_part){.cause = IDLE_NOT_RUNNING,
					 .fn = NO_FUNCTION,
					 .fn_before = NO_FUNCTION,
					 .at_ns = begin_ns},
		     ns);
		ns = min_u64(share(gap->blocked_ns, rest_ns, whole_ns), running_ns);
		running_ns -= ns;
		rest_ns = running_ns;
		if (ns) {
			struct idle_part blocked = part;

			blocked.cause = IDLE_UNEXPLAINED;
			show_sampled(d, &blocked, ns, &gap_times);
		}
	}
	show_sampled(d, &part, rest_ns, &gap_times);
}

static const enum idle_cause causes_by_bucket[BUCKET_COUNT] = {
	[BUCKET_OWN] = IDLE_CUDA_CALL,           [BUCKET_LOADING] = IDLE_CODE_LOADING,
	[BUCKET_GPU_INTENDED] = IDLE_CUDA_WAIT,  [BUCKET_GPU_HIDDEN] = IDLE_CUDA_WAIT,
	[BUCKET_LOCK] = IDLE_CUDA_LOCK,          [BUCKET_IOCTL] = IDLE_KERNEL_MODULE,
	[BUCKET_QUEUE] = IDLE_CUDA_WAIT,         [BUCKET_MPS] = IDLE_CUDA_WAIT,
	[BUCKET_NOT_RUNNING] = IDLE_NOT_RUNNING, [BUCKET_UNEXPLAINED] = IDLE_UNEXPLAINED,
};

/* Does the call hand work to a GPU? */
static bool submits(const struct accounting *a, uint32_t fn)
{
	uint8_t contract = a->model->set->functions.all[fn].contract;

	return spy_contract_submits(contract) || contract == SPY_CONTRACT_ALLOC_POOL;
}

/* Of a call the part [begin_ns, end_ns): its buckets in proportion. */
static void divide_call(const struct division *d, const struct completed_call *call,
			uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t whole_ns = call->end_ns - call->begin_ns, rest_ns = end_ns - begin_ns, ns;
	struct idle_part part = {.address = call->return_address,
				 .fn = call->fn,
				 .fn_before = NO_FUNCTION,
				 .stack = call->stack,
				 .at_ns = begin_ns};

	*d->span = (struct idle_span){begin_ns, end_ns, true};
	for (unsigned int bucket = BUCKET_COUNT - 1; bucket > BUCKET_OWN; bucket--) {
		ns = min_u64(share(completed_ns(call, bucket), end_ns - begin_ns, whole_ns),
			     rest_ns);
		part.cause = causes_by_bucket[bucket];
		show(d, &part, ns);
		rest_ns -= ns;
	}
	part.cause = submits(d->accounts, call->fn) ? IDLE_LAUNCH : IDLE_CUDA_CALL;
	show(d, &part, rest_ns);
}

void host_divide_spans(const struct accounting *a, const struct host_thread *h,
		       const struct thread_account *c, uint64_t begin_ns, uint64_t end_ns,
		       struct idle_span *span, idle_visit *visit, void *data)
{
	const struct division d = {.accounts = a,
				   .host = h,
				   .thread = c->thread,
				   .process = c->thread->process,
				   .span = span,
				   .visit = visit,
				   .data = data};
	uint64_t known = min_u64(c->ring.n, c->ring.size), i, at_ns = end_ns;
	const struct completed_call *behind = NULL, *call = NULL;

	for (i = 1; i <= known && at_ns > begin_ns; i++, behind = call) {
		call = completed_call_at(&c->ring, c->ring.n - i);
		if (call->begin_ns >= end_ns)
			continue;
		if (call->end_ns < at_ns) {
			uint64_t from_ns = max_u64(call->end_ns, begin_ns);

			divide_gap(&d, call, behind, from_ns, at_ns);
			at_ns = from_ns;
		}
		if (at_ns > begin_ns && call->begin_ns < at_ns) {
			uint64_t from_ns = max_u64(call->begin_ns, begin_ns);

			divide_call(&d, call, from_ns, at_ns);
			at_ns = from_ns;
		}
	}
	if (at_ns <= begin_ns)
		return;
	*span = (struct idle_span){begin_ns, at_ns, true};
	if (c->ring.n <= c->ring.size) /* before its first call */
		divide_gap(&d, NULL, behind, begin_ns, at_ns);
	else
		show(&d,
		     &(struct idle_part){.cause = IDLE_UNEXPLAINED,
					 .fn = NO_FUNCTION,
					 .fn_before = NO_FUNCTION,
					 .at_ns = begin_ns},
		     at_ns - begin_ns);
}

void host_divide(const struct accounting *a, const struct host_thread *h,
		 const struct thread_account *c, uint64_t begin_ns, uint64_t end_ns,
		 idle_visit *visit, void *data)
{
	struct idle_span span;

	host_divide_spans(a, h, c, begin_ns, end_ns, &span, visit, data);
}

/* The thread's call that was going on then; NULL: none, or too long ago. */
static const struct completed_call *call_at(const struct thread_account *c, uint64_t ns)
{
	uint64_t known = min_u64(c->ring.n, c->ring.size), i;

	for (i = 1; i <= known; i++) {
		const struct completed_call *call = completed_call_at(&c->ring, c->ring.n - i);

		if (call->end_ns < ns)
			return NULL;
		if (call->begin_ns <= ns)
			return call;
	}
	return NULL;
}

static bool waits_for_gpu(unsigned int bucket)
{
	return bucket == BUCKET_GPU_INTENDED || bucket == BUCKET_GPU_HIDDEN;
}

void host_divide_submission(const struct accounting *a, const struct thread_account *c,
			    uint64_t begin_ns, uint64_t end_ns, idle_visit *visit, void *data)
{
	const struct division d = {
		.accounts = a, .process = c->thread->process, .visit = visit, .data = data};
	const struct completed_call *call = call_at(c, begin_ns);
	struct idle_part part = {.cause = IDLE_LAUNCH,
				 .fn = NO_FUNCTION,
				 .fn_before = NO_FUNCTION,
				 .at_ns = begin_ns};
	uint64_t rest_ns = end_ns - begin_ns, ns;

	if (call) {
		part.fn = call->fn;
		part.address = call->return_address;
		part.stack = call->stack;
	}
	for (unsigned int bucket = BUCKET_COUNT - 1; call && bucket > BUCKET_OWN; bucket--) {
		if (waits_for_gpu(bucket))
			continue;
		ns = min_u64(completed_ns(call, bucket), rest_ns);
		part.cause = causes_by_bucket[bucket];
		show(&d, &part, ns);
		rest_ns -= ns;
	}
	part.cause = IDLE_LAUNCH;
	show(&d, &part, rest_ns);
}

/* ---- whom a thread waited for ---------------------------------------------------------------- */

/* A thread that makes CUDA calls. */
static bool waits_for_thread(const struct idle_part *part, uint64_t ns)
{
	return part->holder && ns && (part->cause == IDLE_LOCK || part->cause == IDLE_JOIN);
}

static void add_by(struct idle_holder *holder, uint32_t tid, uint64_t ns)
{
	size_t i = 0;

	while (i < IDLE_HOLDERS - 1 && holder->by[i].waits && holder->by[i].tid != tid)
		i++;
	holder->by[i].tid = holder->by[i].waits && holder->by[i].tid != tid ? 0 : tid;
	holder->by[i].ns += ns;
	holder->by[i].waits++;
}

struct idle_holder *idle_sum_holder(struct idle_sum *sum, const struct idle_part *part, uint64_t ns)
{
	if (!waits_for_thread(part, ns))
		return NULL;
	if (!sum->holder)
		sum->holder = xcalloc(1, sizeof(*sum->holder));
	if (ns >= sum->holder->tid_ns) {
		sum->holder->tid = part->holder;
		sum->holder->tid_ns = ns;
	}
	add_by(sum->holder, part->holder, ns);
	return sum->holder;
}

void idle_holder_add(struct idle_holder *holder, const struct idle_part *part, uint64_t ns,
		     bool holds)
{
	enum idle_cause longest = holder->longest.cause;
	bool is_longest;

	holder->ns[part->cause] += ns;
	/* The longest part is one of what it did most: the two are shown together. */
	is_longest = part->cause == longest ? ns >= holder->longest_ns
					    : holder->ns[part->cause] > holder->ns[longest];
	see_longest(&holder->longest, part, is_longest, holds);
	if (is_longest)
		holder->longest_ns = ns;
}

static void add_holder(void *data, const struct idle_part *part, uint64_t ns)
{
	idle_holder_add(data, part, ns, false);
}

void host_divide_holder(const struct accounting *a, const struct host_threads *threads,
			const struct process *process, const struct idle_part *part, uint64_t ns,
			struct idle_span *span, idle_visit *visit, void *data)
{
	const struct thread_account *c;
	const struct thread *thread;

	if (!waits_for_thread(part, ns))
		return;
	thread = model_find_thread(a->model, process, part->holder);
	c = thread ? thread_account_of(a, thread) : NULL;
	if (c)
		host_divide_spans(a, host_thread_find(threads, thread), c, part->at_ns,
				  part->at_ns + ns, span, visit, data);
}

bool idle_sum_follow(const struct accounting *a, const struct host_threads *threads,
		     struct idle_sum *sum, const struct idle_part *part, uint64_t ns)
{
	struct idle_holder *holder = idle_sum_holder(sum, part, ns);
	struct idle_span span;

	if (holder)
		host_divide_holder(a, threads, sum->process, part, ns, &span, add_holder, holder);
	return holder;
}
