/*
 * shim/nccl/operations.c: NCCL's communicators and operations become records. Runs on the program's threads where
 * operations are submitted, on NCCL's own where they run, and on the driver's where a graph is launched.
 *
 * An operation is followed from its submission until its kernel's channels have ended: by an entry of a table without
 * allocation. NCCL tells of the channels later, on another thread, and says first that the submission is done. An entry
 * is free again when as many channels have ended as the operation was said to have. Where fewer come (a kernel may use
 * fewer), the entry is swept: nothing of it has happened for a while, and all that began has ended. What is never told
 * goes when its communicator does, or when the table is full and the entry is old.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include "lib/lock.h"
#include "nccl/operations.h"
#include "record/board.h"
#include "state/session.h"
#include "state/thread.h"
#include "stack/stack.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

#define COMMS_MOST 4096 /* alive at one time */
#define OPERATIONS_MOST 4096 /* followed at one time */
/* Between sweeps, and nothing of an entry that is swept happened for that long. */
#define SWEEP_MS 100
#define OLD_MS 60000 /* without any channel, where entries are needed */

/* ---- handles ---------------------------------------------------------------------------------- */

enum kind { KIND_OPERATION = 1, KIND_CHANNEL, KIND_COMM, KIND_MARK, KIND_CAPTURED };

/* From the top: the process (16 bits), a number (32), an index (12), the kind (4). */
static uint64_t own_bits;

static uint64_t process_bits(void)
{
	uint64_t bits = __atomic_load_n(&own_bits, __ATOMIC_RELAXED);

	if (!bits) {
		bits = ((uint64_t)spy_syscall(SYS_getpid) * 0x9e3779b97f4a7c15ull) & 0xffffull
											     << 48;
		bits |= 1ull << 48;
		__atomic_store_n(&own_bits, bits, __ATOMIC_RELAXED);
	}
	return bits;
}

static spy_nccl_handle make_handle(uint32_t number, uint32_t index, enum kind kind)
{
	return process_bits() | (uint64_t)number << 16 | index << 4 | kind;
}

static bool is_kind(spy_nccl_handle handle, enum kind kind)
{
	return (handle & 15) == kind && (handle & 0xffffull << 48) == process_bits();
}

static uint32_t number_of(spy_nccl_handle handle)
{
	return (uint32_t)(handle >> 16);
}

static uint32_t index_of(spy_nccl_handle handle)
{
	return (uint32_t)(handle >> 4 & 0xfff);
}

_Static_assert(COMMS_MOST <= 4096 && OPERATIONS_MOST <= 4096, "index_of");

spy_nccl_handle spy_nccl_mark(bool captured)
{
	return make_handle(0, 0, captured ? KIND_CAPTURED : KIND_MARK);
}

/* ---- counters --------------------------------------------------------------------------------- */

static uint64_t lost; /* operations without a record */
static uint64_t unfollowed; /* without one of when they ran, for the table was full */

static void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
	if (!spy_session_active())
		return;
	spy_board_show(spy_session->board->collectives_lost,
		       __atomic_load_n(&lost, __ATOMIC_RELAXED));
	spy_board_show(spy_session->board->collectives_unfollowed,
		       __atomic_load_n(&unfollowed, __ATOMIC_RELAXED));
}

/* ---- room for records -------------------------------------------------------------------------- */

static bool has_room(const struct spy_thread *thread, size_t bytes)
{
	return thread->depth ? spy_thread_has_room(thread, bytes)
			     : spy_thread_has_room_outside(thread, bytes);
}

/* The calling thread, with room for a record, and at work; NULL: it cannot write. *first: it has had no call, and so no
 * slot, before. */
static struct spy_thread *begin_record(size_t bytes, const void *here, bool *first)
{
	struct spy_thread *thread = spy_self;

	if (!spy_window_is_open() || !spy_session_active() || thread->reentry_frame)
		return NULL;
	*first = !thread->packet && !thread->asleep;
	if (!thread->packet || (thread->head >= spy_thread_limit(thread) && !thread->depth)) {
		spy_thread_find_room(thread);
		thread = spy_self;
	}
	if (!thread->packet || !has_room(thread, bytes) || !spy_thread_try_work(thread, here))
		return NULL;
	return thread;
}

/* ---- communicators ----------------------------------------------------------------------------- */

struct comm {
	struct spy_nccl_comm is;
	uint32_t number; /* 0: the entry is free */
	uint32_t tid; /* thread that made it */
	uint8_t device; /* its current one */
	int recorded_by; /* process in whose trace it is */
};

static struct comm comms[COMMS_MOST];
static struct spy_lock comms_lock;
static uint32_t comms_high, comms_free; /* entries used so far; of them free ones */
static uint32_t last_comm;
static int told_on; /* process that has told that its operations are recorded */

/* Under the lock. */
static struct comm *free_comm(void)
{
	if (!comms_free)
		return comms_high < COMMS_MOST ? &comms[comms_high++] : NULL;
	for (uint32_t i = 0; i < comms_high; i++)
		if (!comms[i].number) {
			comms_free--;
			return &comms[i];
		}
	return NULL;
}

static void write_state(uint16_t state, const char *text)
{
	struct spy_rec_nccl_state *record = spy_session_append(SPY_EV_NCCL_STATE, sizeof(*record));

	if (!record)
		return;
	record->state = state;
	record->reserved = 0;
	memset(record->text, 0, sizeof(record->text));
	memcpy(record->text, text, strnlen(text, sizeof(record->text) - 1));
	spy_session_commit(sizeof(*record));
}

static void write_comm(const struct comm *comm)
{
	struct spy_rec_nccl_comm *record = spy_session_append(SPY_EV_NCCL_COMM, sizeof(*record));

	if (!record)
		return;
	record->interface = comm->is.interface;
	record->comm = comm->number;
	record->hash = comm->is.hash;
	record->rank = comm->is.rank;
	record->ranks = comm->is.ranks;
	record->nodes = comm->is.nodes;
	record->tid = comm->tid;
	record->device = comm->device;
	memset(record->reserved, 0, sizeof(record->reserved));
	memcpy(record->name, comm->is.name, sizeof(record->name));
	spy_session_commit(sizeof(*record));
}

/* Once in each session; of interfaces that say it late, when they have. */
static void record_comm(struct comm *comm)
{
	int pid = spy_session->pid;
	char text[] = "interface 0";

	if (!spy_session_active() ||
	    __atomic_exchange_n(&comm->recorded_by, pid, __ATOMIC_RELAXED) == pid)
		return;
	text[sizeof(text) - 2] = (char)('0' + comm->is.interface);
	if (__atomic_exchange_n(&told_on, pid, __ATOMIC_RELAXED) != pid)
		write_state(SPY_NCCL_ON, text);
	write_comm(comm);
}

spy_nccl_handle spy_nccl_comm_begin(const struct spy_nccl_comm *is)
{
	const struct spy_thread *thread = spy_self;
	struct comm *comm;
	uint32_t number = 0;

	if (!spy_lock(&comms_lock))
		return spy_nccl_mark(false);
	comm = free_comm();
	if (comm) {
		number = ++last_comm;
		*comm = (struct comm){.is = *is,
				      .tid = (uint32_t)spy_syscall(SYS_gettid),
				      .device = (uint8_t)(thread->device - 1)};
		__atomic_store_n(&comm->number, number, __ATOMIC_RELEASE);
	}
	spy_unlock(&comms_lock);
	if (!comm)
		return spy_nccl_mark(false);
	if (is->ranks)
		record_comm(comm);
	return make_handle(number, (uint32_t)(comm - comms), KIND_COMM);
}

static struct comm *find_comm(spy_nccl_handle handle)
{
	struct comm *comm = &comms[index_of(handle)];

	return is_kind(handle, KIND_COMM) &&
			       __atomic_load_n(&comm->number, __ATOMIC_ACQUIRE) == number_of(handle)
		       ? comm
		       : NULL;
}

/* Interfaces 1 to 3 say with each operation whose it is. The operations of a communicator are submitted by one thread at
 * a time. */
static void learn_comm(struct comm *comm, const struct spy_nccl_said *said)
{
	if (__atomic_load_n(&comm->recorded_by, __ATOMIC_RELAXED) == spy_session->pid)
		return;
	if (!comm->is.ranks) {
		comm->is.hash = said->hash;
		comm->is.rank = said->rank;
		if (said->name)
			memcpy(comm->is.name, said->name,
			       strnlen(said->name, sizeof(comm->is.name) - 1));
	}
	record_comm(comm);
}

/* ---- which operations are followed ------------------------------------------------------------- */

/*
 * NCCL needs 2 to 5 us for an operation whose channels it tells of (docs/PERFORMANCE.md). Where they come in quick succession,
 * as many in a row are followed as a block has, and then those of some blocks are not: so that what it takes stays below
 * a hundredth of the time. Blocks are counted alike in all ranks, which submit the same operations, and the number of
 * blocks is a power of two: what one rank leaves out more than another is left out of all.
 */
#define PACE_BLOCK 64
#define PACE_NS 500000 /* from one followed operation to the next, on average */
#define PACE_MOST 64 /* one block of so many, at least */

static uint64_t paced; /* operations so far */
static uint64_t block_began; /* cycles */
static bool unfollowed_now; /* operations of this block are not followed */

static uint64_t every_block(uint64_t spent)
{
	uint64_t frequency = atomic_load_explicit(&spy_session->frequency, memory_order_relaxed);
	uint64_t wanted = frequency / 1000 * PACE_BLOCK * (PACE_NS / 1000) / 1000, every = 1;

	while (every < PACE_MOST && spent * every < wanted)
		every *= 2;
	return every;
}

bool spy_nccl_paced(bool *change)
{
	bool followed = !__atomic_load_n(&unfollowed_now, __ATOMIC_RELAXED);
	uint64_t n = __atomic_add_fetch(&paced, 1, __ATOMIC_RELAXED), now, began;
	bool leave_out;

	if (n % PACE_BLOCK || !spy_session_active())
		return followed;
	now = spy_clock();
	began = __atomic_exchange_n(&block_began, now, __ATOMIC_RELAXED);
	leave_out = began && now > began && n / PACE_BLOCK % every_block(now - began);
	*change = leave_out == followed;
	__atomic_store_n(&unfollowed_now, leave_out, __ATOMIC_RELAXED);
	return followed;
}

bool spy_nccl_paced_next(void)
{
	return !__atomic_load_n(&unfollowed_now, __ATOMIC_RELAXED);
}

/* ---- operations that are followed --------------------------------------------------------------- */

struct operation {
	struct spy_lock lock; /* of the rest */
	uint32_t id; /* 0: the entry is free */
	uint32_t next; /* of the free ones: index and 1 */
	uint32_t comm;
	uint8_t expected, open, ended; /* channels; expected 0: unknown */
	bool handed_over;
	uint64_t begin_ns, end_ns, seen;
	uint64_t touched; /* when something of it last happened (cycles) */
};

static struct operation operations[OPERATIONS_MOST];
static uint64_t free_head; /* of the list: index and 1, above them a count of changes */
static uint32_t operations_high; /* entries used so far */
static uint32_t last_id;
static uint64_t next_sweep;

static void put_back(struct operation *operation)
{
	uint64_t head = __atomic_load_n(&free_head, __ATOMIC_RELAXED), new;

	do {
		__atomic_store_n(&operation->next, (uint32_t)head, __ATOMIC_RELAXED);
		new = ((head >> 32) + 1) << 32 | (uint32_t)(operation - operations + 1);
	} while (!__atomic_compare_exchange_n(&free_head, &head, new, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

static struct operation *take_used(void)
{
	uint64_t head = __atomic_load_n(&free_head, __ATOMIC_ACQUIRE), new;
	struct operation *operation;

	do {
		if (!(uint32_t)head)
			return NULL;
		operation = &operations[(uint32_t)head - 1];
		new = ((head >> 32) + 1) << 32 |
		      __atomic_load_n(&operation->next, __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(&free_head, &head, new, true, __ATOMIC_ACQUIRE,
					      __ATOMIC_ACQUIRE));
	return operation;
}

static struct operation *take_new(void)
{
	uint32_t high = __atomic_load_n(&operations_high, __ATOMIC_RELAXED);

	while (high < OPERATIONS_MOST)
		if (__atomic_compare_exchange_n(&operations_high, &high, high + 1, true,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return &operations[high];
	return NULL;
}

/* Under its lock. Shows what it was, for the record, and is nobody's from here on. */
static void forget(struct operation *operation, struct spy_rec_collective_ran *ran)
{
	*ran = (struct spy_rec_collective_ran){.event = SPY_EV_COLLECTIVE_RAN,
					       .channels = operation->ended,
					       .comm = operation->comm,
					       .id = operation->id,
					       .begin_ns = operation->begin_ns,
					       .end_ns = operation->end_ns,
					       .seen = operation->seen};
	__atomic_store_n(&operation->id, 0, __ATOMIC_RELAXED);
}

static void write_ran(struct spy_rec_collective_ran *ran)
{
	bool first;
	struct spy_thread *thread = begin_record(sizeof(*ran), __builtin_frame_address(0), &first);

	if (!thread) {
		if (spy_window_is_open())
			count(&lost);
		return;
	}
	ran->time = spy_clock();
	memcpy(thread->head, ran, sizeof(*ran));
	spy_thread_publish(thread, ran->time, sizeof(*ran));
	spy_thread_end_work(thread);
}

static uint64_t cycles(uint64_t ms)
{
	return atomic_load_explicit(&spy_session->frequency, memory_order_relaxed) / 1000 * ms;
}

/* Which entries are swept: what they are of, and for how long nothing of them has happened. */
struct sweep {
	uint32_t comm; /* 0: of any */
	bool ended; /* its communicator has */
	uint64_t now, old;
};

static bool is_swept(const struct operation *operation, const struct sweep *sweep)
{
	if (!operation->id || (sweep->comm && operation->comm != sweep->comm))
		return false;
	if (sweep->ended)
		return true;
	return operation->handed_over && !operation->open && sweep->now > operation->touched &&
	       sweep->now - operation->touched >=
		       (operation->ended ? cycles(SWEEP_MS) : sweep->old);
}

static void sweep_one(struct operation *operation, const struct sweep *sweep)
{
	struct spy_rec_collective_ran ran = {0};

	if (!spy_lock(&operation->lock))
		return;
	if (is_swept(operation, sweep))
		forget(operation, &ran);
	spy_unlock(&operation->lock);
	if (!ran.id)
		return;
	put_back(operation);
	if (ran.channels)
		write_ran(&ran);
}

static void sweep_all(const struct sweep *sweep)
{
	uint32_t high = __atomic_load_n(&operations_high, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < high && i < OPERATIONS_MOST; i++)
		if (__atomic_load_n(&operations[i].id, __ATOMIC_RELAXED))
			sweep_one(&operations[i], sweep);
}

/* Is it time to sweep? One thread at a time. */
static bool is_due(uint64_t now)
{
	uint64_t due = __atomic_load_n(&next_sweep, __ATOMIC_RELAXED);

	return now >= due && __atomic_compare_exchange_n(&next_sweep, &due, now + cycles(SWEEP_MS),
							 false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void spy_nccl_comm_end(spy_nccl_handle handle)
{
	struct comm *comm = find_comm(handle);

	if (!comm || !spy_lock(&comms_lock))
		return;
	if (comm->number == number_of(handle)) {
		__atomic_store_n(&comm->number, 0, __ATOMIC_RELEASE);
		comms_free++;
	}
	spy_unlock(&comms_lock);
	sweep_all(&(struct sweep){.comm = number_of(handle), .ended = true});
}

bool spy_nccl_comms_hold(void)
{
	return spy_try_lock(&comms_lock);
}

void spy_nccl_comms_let_go(void)
{
	spy_unlock(&comms_lock);
}

static struct operation *take(void)
{
	struct operation *operation = take_used();
	uint64_t now;

	if (!operation)
		operation = take_new();
	if (operation)
		return operation;
	now = spy_clock();
	if (!is_due(now))
		return NULL;
	sweep_all(&(struct sweep){.now = now, .old = cycles(OLD_MS)});
	return take_used();
}

/* The handle; 0: the table is full. */
static spy_nccl_handle follow(uint32_t id, uint32_t comm, uint8_t channels)
{
	struct operation *operation = take();

	if (!operation || !spy_lock(&operation->lock)) {
		count(&unfollowed);
		return 0;
	}
	operation->comm = comm;
	operation->expected = channels;
	operation->open = operation->ended = 0;
	operation->handed_over = false;
	operation->begin_ns = operation->end_ns = operation->seen = 0;
	operation->touched = spy_clock();
	__atomic_store_n(&operation->id, id, __ATOMIC_RELAXED);
	spy_unlock(&operation->lock);
	return make_handle(id, (uint32_t)(operation - operations), KIND_OPERATION);
}

/* Locked; NULL: it is over, or never was. */
static struct operation *find(spy_nccl_handle handle, enum kind kind)
{
	struct operation *operation = &operations[index_of(handle)];

	if (!is_kind(handle, kind) || !spy_lock(&operation->lock))
		return NULL;
	if (operation->id && operation->id == number_of(handle))
		return operation;
	spy_unlock(&operation->lock);
	return NULL;
}

static bool is_complete(const struct operation *operation)
{
	return operation->handed_over && !operation->open && operation->expected &&
	       operation->ended >= operation->expected;
}

/* Gives the lock back, and the entry, if that was all. */
static void leave(struct operation *operation)
{
	struct spy_rec_collective_ran ran = {0};

	if (is_complete(operation))
		forget(operation, &ran);
	spy_unlock(&operation->lock);
	if (!ran.id)
		return;
	put_back(operation);
	write_ran(&ran);
}

spy_nccl_handle spy_nccl_channel_begin(spy_nccl_handle handle, uint64_t timer_ns)
{
	struct operation *operation = find(handle, KIND_OPERATION);
	uint64_t now;

	if (!operation)
		return 0;
	now = spy_clock();
	operation->touched = now;
	if (!operation->seen)
		operation->seen = now;
	if (timer_ns && (!operation->begin_ns || timer_ns < operation->begin_ns))
		operation->begin_ns = timer_ns;
	if (operation->open < UINT8_MAX)
		operation->open++;
	spy_unlock(&operation->lock);
	return make_handle(number_of(handle), index_of(handle), KIND_CHANNEL);
}

void spy_nccl_channel_time(spy_nccl_handle handle, uint64_t timer_ns)
{
	struct operation *operation = find(handle, KIND_CHANNEL);

	if (!operation)
		return;
	if (timer_ns > operation->end_ns)
		operation->end_ns = timer_ns;
	spy_unlock(&operation->lock);
}

static void end_channel(spy_nccl_handle handle)
{
	struct operation *operation = find(handle, KIND_CHANNEL);
	uint64_t now;

	if (!operation)
		return;
	now = spy_clock();
	operation->touched = now;
	if (operation->open) {
		operation->open--;
		if (operation->ended < UINT8_MAX)
			operation->ended++;
	}
	leave(operation);
	if (is_due(now))
		sweep_all(&(struct sweep){.now = now, .old = UINT64_MAX});
}

void spy_nccl_stop(spy_nccl_handle handle)
{
	struct operation *operation;

	if (is_kind(handle, KIND_CHANNEL)) {
		end_channel(handle);
		return;
	}
	operation = find(handle, KIND_OPERATION);
	if (!operation)
		return;
	operation->handed_over = true;
	leave(operation);
}

/* ---- operations that are submitted --------------------------------------------------------------- */

/* A thread that had made no call before it submits is the driver's, in a graph that is launched. */
static __thread bool is_callback;

static uint32_t new_id(void)
{
	uint32_t id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);

	return id ? id : __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
}

/* What is submitted at one place has much in common. Sizes are not told apart by less than a factor of two: the table of
 * places is bounded, and others are in it. */
static uint64_t place_of(uint32_t comm, const struct spy_nccl_said *said)
{
	unsigned int size = said->count ? 64 - (unsigned int)__builtin_clzll(said->count) : 0;

	return (uint64_t)comm << 24 | size << 16 | (uint64_t)said->func << 8 | 0xff;
}

static void write_collective(struct spy_thread *thread, const struct spy_nccl_said *said,
			     uint32_t comm, uint32_t id, uint8_t flags, uint64_t seq, uint64_t now)
{
	*(struct spy_rec_collective *)thread->head =
		(struct spy_rec_collective){.time = now,
					    .event = SPY_EV_COLLECTIVE,
					    .func = said->func,
					    .flags = flags,
					    .comm = comm,
					    .seq = seq,
					    .count = said->count,
					    .id = id,
					    .peer = said->peer,
					    .bytes_each = said->bytes_each,
					    .algorithm = said->algorithm,
					    .protocol = said->protocol,
					    .channels = said->channels};
	spy_thread_publish(thread, now, sizeof(struct spy_rec_collective));
}

spy_nccl_handle spy_nccl_submit(spy_nccl_handle context, const struct spy_nccl_said *said,
				const struct spy_unwind *from)
{
	struct comm *comm = find_comm(context);
	struct spy_thread *thread;
	spy_nccl_handle handle;
	uint32_t id, number = number_of(context);
	uint8_t flags = said->flags;
	uint64_t seq = said->seq, now;
	bool first;

	if (!comm)
		return 0;
	if (said->func == SPY_NCCL_SEND || said->func == SPY_NCCL_RECV)
		seq = spy_nccl_pair_number(number, said->peer, said->func == SPY_NCCL_RECV);
	if (!spy_session_active() || !spy_window_is_open())
		return 0;
	learn_comm(comm, said);
	thread =
		begin_record(sizeof(struct spy_rec_collective), __builtin_frame_address(0), &first);
	if (!thread) {
		count(&lost);
		return 0;
	}
	is_callback |= first;
	if (is_callback && comm->is.interface < 5)
		flags |= SPY_COLLECTIVE_GRAPH;
	id = new_id();
	handle = said->followed && !(flags & SPY_COLLECTIVE_GRAPH)
			 ? follow(id, number, said->channels)
			 : 0;
	if (handle)
		flags |= SPY_COLLECTIVE_RUN_FOLLOWS;
	now = spy_clock();
	spy_stack_place(thread, from, place_of(number, said), now);
	write_collective(thread, said, number, id, flags, seq, now);
	spy_thread_end_work(thread);
	return handle;
}

/* ---- sessions -------------------------------------------------------------------------------------- */

static uint16_t first_state = SPY_NCCL_ON;
static char first_text[sizeof(((struct spy_rec_nccl_state *)0)->text)];

void spy_nccl_state(uint16_t state, const char *text)
{
	first_state = state;
	memcpy(first_text, text, strnlen(text, sizeof(first_text) - 1));
}

void spy_nccl_begin(void)
{
	if (first_state != SPY_NCCL_ON)
		write_state(first_state, first_text);
}

void spy_nccl_end(void)
{
	sweep_all(&(struct sweep){.now = UINT64_MAX, .old = UINT64_MAX});
}

/* The parent's communicators and operations are not this process': their handles are none here. */
void spy_nccl_forked(void)
{
	uint32_t high = operations_high < OPERATIONS_MOST ? operations_high : OPERATIONS_MOST;

	for (uint32_t i = 0; i < high; i++)
		operations[i] = (struct operation){.id = 0};
	for (uint32_t i = 0; i < comms_high; i++)
		comms[i].number = 0;
	own_bits = 0;
	comms_high = comms_free = 0;
	free_head = 0;
	operations_high = 0;
	next_sweep = 0;
	lost = unfollowed = 0;
	is_callback = false;
	spy_lock_forget(&comms_lock);
	spy_nccl_pairs_forked();
}
