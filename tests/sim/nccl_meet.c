/*
 * tests/sim/nccl_meet.c: where the ranks of a communicator meet: a file that all map, named by the unique
 * id, and when a rank's kernel may begin and end. The file is removed when all have it; data of the
 * operations lie behind its head. begin() and end() run under the engine's lock on any thread, give()
 * and take() on the thread that finds the time has come; one of a communicator's kernels at a time.
 *
 * An operation has a slot on each side. A rank writes in its own when its kernel begins and when its data
 * are in the file, and reads those of the ranks it depends on. Both times are known before they have
 * come, where nothing but earlier work is in the way: so ends are exact, however late a process looks.
 */
#include "nccl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOT_BYTES ((uint64_t)256 << 20) /* of data; the file has holes */

/* ---- the file ---- */
bool nccl_file_join(struct nccl_comm *comm)
{
	comm->fd = open(comm->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (comm->fd < 0 || ftruncate(comm->fd, sizeof(*comm->file)))
		return false;
	comm->file =
		mmap(NULL, sizeof(*comm->file), PROT_READ | PROT_WRITE, MAP_SHARED, comm->fd, 0);
	if (comm->file == MAP_FAILED)
		return false;
	atomic_store(&comm->file->pids[comm->rank], getpid());
	if (atomic_fetch_add(&comm->file->arrived, 1) + 1 == (unsigned)comm->rank_cnt)
		unlink(comm->path);
	nccl_file_wake(comm);
	return true;
}

void nccl_file_wake(struct nccl_comm *comm)
{
	atomic_fetch_add(&comm->file->changes, 1);
	syscall(SYS_futex, &comm->file->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool nccl_file_wait(struct nccl_comm *comm)
{
	uint64_t until = nccl_now_ns() + nccl_source->knobs->wait_ns;
	struct timespec moment = {0, 2000000};

	for (;;) {
		int seen = atomic_load(&comm->file->changes);

		if (atomic_load(&comm->file->arrived) >= (unsigned)comm->rank_cnt)
			return true;
		if (nccl_now_ns() > until)
			break;
		syscall(SYS_futex, &comm->file->changes, FUTEX_WAIT, seen, &moment, NULL, 0);
	}
	unlink(comm->path);
	return false;
}

void nccl_file_leave(struct nccl_comm *comm)
{
	if (comm->file && comm->file != MAP_FAILED)
		munmap(comm->file, sizeof(*comm->file));
	if (comm->fd >= 0)
		close(comm->fd);
}

/* ---- data ---- */
static uint64_t place(const struct nccl_comm *comm, const struct nccl_task *task, int rank)
{
	uint64_t side =
		task->func == NCCL_SEND   ? (uint64_t)(comm->rank * NCCL_RANKS_MAX + task->peer)
		: task->func == NCCL_RECV ? (uint64_t)(task->peer * NCCL_RANKS_MAX + comm->rank)
					  : (uint64_t)rank;

	if (!nccl_is_collective(task->func))
		side += NCCL_RANKS_MAX;
	return (sizeof(struct nccl_file) + 4095) / 4096 * 4096 +
	       (side * NCCL_SLOTS + task->n % NCCL_SLOTS) * SLOT_BYTES;
}

static void move(struct nccl_comm *comm, bool out, char *memory, size_t bytes, uint64_t at)
{
	while (bytes) {
		ssize_t n = out ? pwrite(comm->fd, memory, bytes, (off_t)at)
				: pread(comm->fd, memory, bytes, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			nccl_fail(comm, NCCL_SYSTEM_ERROR, "the file for data cannot be used");
			return;
		}
		memory += n;
		at += (uint64_t)n;
		bytes -= (size_t)n;
	}
}

/* ---- whom an operation depends on ---- */
static struct nccl_side *own_side(const struct nccl_comm *comm, const struct nccl_task *task)
{
	return task->func == NCCL_SEND   ? &comm->file->sends[comm->rank][task->peer]
	       : task->func == NCCL_RECV ? &comm->file->receives[task->peer][comm->rank]
					 : &comm->file->ranks[comm->rank];
}

/* Of a collective: rank's side. Of the others: the peer's. */
static struct nccl_side *other_side(const struct nccl_comm *comm, const struct nccl_task *task,
				    int rank)
{
	return task->func == NCCL_SEND   ? &comm->file->receives[comm->rank][task->peer]
	       : task->func == NCCL_RECV ? &comm->file->sends[task->peer][comm->rank]
					 : &comm->file->ranks[rank];
}

static int other_cnt(const struct nccl_comm *comm, const struct nccl_task *task)
{
	return nccl_is_collective(task->func) ? comm->rank_cnt : 1;
}

/* Must the rank have begun before this one's kernel can end? */
static bool needs(const struct nccl_comm *comm, const struct nccl_task *task, int rank)
{
	if (task->func == NCCL_BROADCAST)
		return rank == task->peer;
	if (task->func == NCCL_REDUCE)
		return comm->rank == task->peer || rank == comm->rank;
	return true;
}

static bool hands_over(const struct nccl_comm *comm, const struct nccl_task *task)
{
	return task->func != NCCL_RECV &&
	       (task->func != NCCL_BROADCAST || comm->rank == task->peer);
}

static uint64_t what_it_is(const struct nccl_task *task)
{
	uint64_t func = nccl_is_collective(task->func) ? task->func : NCCL_SEND_RECV;
	uint64_t root = nccl_is_collective(task->func) ? (uint64_t)task->peer : 0;

	return func << 56 | root << 48 | (nccl_task_bytes(task) & 0xffffffffffff);
}

/* ---- beginning ---- */

/* May this operation have the slot, or is its last one still being read? */
static bool slot_free(const struct nccl_comm *comm, const struct nccl_task *task)
{
	for (int i = 0; task->n > NCCL_SLOTS && i < other_cnt(comm, task); i++)
		if (atomic_load(&other_side(comm, task, i)->taken) < task->n - NCCL_SLOTS)
			return false;
	return true;
}

static bool failed(const struct nccl_comm *comm)
{
	return atomic_load(&comm->aborted) || atomic_load(&comm->error);
}

static bool begin(struct sim_meeting *meeting, uint64_t start_ns, uint64_t *end_ns)
{
	struct nccl_batch *batch = (struct nccl_batch *)meeting;
	uint64_t now;

	for (struct nccl_task *task = batch->tasks; task; task = task->next)
		if (!slot_free(batch->comm, task) && !failed(batch->comm)) {
			batch->blocked = true;
			return false;
		}
	now = batch->blocked ? nccl_now_ns() : start_ns;
	*end_ns = now > start_ns ? now : start_ns;
	return true;
}

/* ---- handing over, and ending ---- */
/* Whether the others are there, and when the last of them came. */
static bool others_there(const struct nccl_comm *comm, const struct nccl_task *task,
			 uint64_t *last_ns)
{
	for (int i = 0; i < other_cnt(comm, task); i++) {
		const struct nccl_slot *slot =
			&other_side(comm, task, i)->slots[task->n % NCCL_SLOTS];
		uint64_t begin_ns;

		if (nccl_is_collective(task->func) && !needs(comm, task, i))
			continue;
		if (atomic_load(&slot->begun) != task->n || atomic_load(&slot->given) != task->n ||
		    atomic_load(&slot->what) != what_it_is(task))
			return false;
		begin_ns = atomic_load(&slot->begin_ns);
		if (begin_ns > *last_ns)
			*last_ns = begin_ns;
	}
	return true;
}

/* Only who completes an operation wakes the others: with many ranks, most changes let nobody go on. */
static void wake_if_complete(struct nccl_batch *batch)
{
	uint64_t last_ns = 0;

	for (struct nccl_task *task = batch->tasks; task; task = task->next)
		if (others_there(batch->comm, task, &last_ns)) {
			nccl_file_wake(batch->comm);
			return;
		}
}

static void give(struct sim_meeting *meeting)
{
	struct nccl_batch *batch = (struct nccl_batch *)meeting;
	struct nccl_comm *comm = batch->comm;

	for (struct nccl_task *task = batch->tasks; task && !failed(comm); task = task->next) {
		if (hands_over(comm, task))
			move(comm, true, (char *)(uintptr_t)task->send, nccl_task_bytes(task),
			     place(comm, task, comm->rank));
		atomic_store(&own_side(comm, task)->slots[task->n % NCCL_SLOTS].given, task->n);
	}
	wake_if_complete(batch);
}

static void publish(struct nccl_batch *batch, uint64_t start_ns)
{
	if (batch->published)
		return;
	batch->published = true;
	for (struct nccl_task *task = batch->tasks; task; task = task->next) {
		struct nccl_slot *slot = &own_side(batch->comm, task)->slots[task->n % NCCL_SLOTS];

		atomic_store(&slot->begin_ns, start_ns);
		atomic_store(&slot->what, what_it_is(task));
		atomic_store(&slot->begun, task->n);
	}
	atomic_store(&batch->begin_ns, start_ns);
	wake_if_complete(batch);
}

static bool end(struct sim_meeting *meeting, uint64_t start_ns, uint64_t *end_ns)
{
	struct nccl_batch *batch = (struct nccl_batch *)meeting;
	struct nccl_comm *comm = batch->comm;
	uint64_t last_ns = start_ns;

	publish(batch, start_ns);
	for (struct nccl_task *task = batch->tasks; task; task = task->next) {
		uint64_t now;

		if (!failed(comm) && others_there(comm, task, &last_ns))
			continue;
		now = nccl_now_ns();
		if (!failed(comm)) {
			if (now < start_ns + nccl_source->knobs->wait_ns)
				return false;
			nccl_fail(comm, NCCL_REMOTE_ERROR, "the other ranks did not come");
		}
		last_ns = now > start_ns ? now : start_ns;
		break;
	}
	*end_ns = last_ns + batch->duration_ns + batch->spread_ns;
	atomic_store(&batch->end_ns, *end_ns);
	return true;
}

/* ---- results ---- */
static void take_reduced(struct nccl_comm *comm, struct nccl_task *task)
{
	size_t type_bytes = nccl_type_bytes(task->type), bytes = task->count * type_bytes;
	uint64_t skip = task->func == NCCL_REDUCE_SCATTER ? (uint64_t)comm->rank * bytes : 0;
	char *part = malloc(bytes ? bytes : 1);

	if (!part)
		abort();
	for (int i = 0; i < comm->rank_cnt; i++) {
		move(comm, false, i ? part : task->recv, bytes, place(comm, task, i) + skip);
		if (i)
			nccl_reduce(task->recv, part, task->count, task->type, task->reduction);
	}
	if (task->reduction == NCCL_AVG)
		nccl_divide(task->recv, task->count, task->type, comm->rank_cnt);
	free(part);
}

static void take_task(struct nccl_comm *comm, struct nccl_task *task)
{
	size_t bytes = task->count * nccl_type_bytes(task->type);

	switch (task->func) {
	case NCCL_ALL_REDUCE:
	case NCCL_REDUCE_SCATTER:
		take_reduced(comm, task);
		break;
	case NCCL_REDUCE:
		if (comm->rank == task->peer)
			take_reduced(comm, task);
		break;
	case NCCL_ALL_GATHER:
		for (int i = 0; i < comm->rank_cnt; i++)
			move(comm, false, (char *)task->recv + (size_t)i * bytes, bytes,
			     place(comm, task, i));
		break;
	case NCCL_BROADCAST:
		move(comm, false, task->recv, bytes, place(comm, task, task->peer));
		break;
	case NCCL_RECV:
		move(comm, false, task->recv, bytes, place(comm, task, 0));
		break;
	default:
		break;
	}
}

static void take(struct sim_meeting *meeting)
{
	struct nccl_batch *batch = (struct nccl_batch *)meeting;
	struct nccl_comm *comm = batch->comm;

	for (struct nccl_task *task = batch->tasks; task; task = task->next) {
		if (!failed(comm))
			take_task(comm, task);
		atomic_store(&own_side(comm, task)->taken, task->n);
	}
	atomic_store(&batch->taken, true);
}

void nccl_meet_prepare(struct nccl_batch *batch)
{
	batch->meeting = (struct sim_meeting){
		.begin = begin, .give = give, .end = end, .take = take, .last = &batch->comm->last};
}
