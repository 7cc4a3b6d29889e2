/*
 * tests/sim/sharing.c: GPUs that several processes share. The processes that name the same folder in
 * SPYSIM_SHARE have the same GPUs. Called by the engine, under its lock, for every kernel.
 *
 * A GPU's turns are in a file of the folder, which all map: whose, from when, until when. A kernel
 * advances only in turns of its owner, so its end is plain arithmetic here, too, once its owner has been
 * given time enough. Nobody waits for a turn and nobody gives one back: a turn is asked for when a
 * kernel is there that may start and needs it, it is put behind the last one, and it is no longer than
 * a slice nor than the kernels that are queued behind each other. Who has the last turn prolongs it, as
 * nobody else wants the GPU, but never more than a slice ahead of the clock. Who has a turn that is still
 * to come gets no other. So N owners with endless work get 1/N each, less the switches; a process that
 * dies leaves at most two slices behind; and asking late costs nothing while nobody else asks.
 *
 * Owners are processes, or MPS servers (mps.c), whose clients' kernels all run in the server's turns.
 * Kernels of one owner do not slow each other down, as everywhere in this simulator.
 *
 * Not modelled: copies and memory take no turns and are each process's own; an owner whose kernel is not
 * there the moment its turn begins finds it gone, however short the gap; the switch costs the same
 * whatever is switched, and nothing when the GPU was idle that long; no priorities, no time slices set
 * by the administrator.
 */
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TURNS_KEPT = 128 };

struct turn {
	int64_t owner;
	uint64_t begin_ns, end_ns;
};

/* The file. Written under its flock, which the kernel takes from a process that dies. */
struct gpu {
	uint64_t given; /* turns, ever; the last is turns[(given - 1) % TURNS_KEPT] */
	struct turn turns[TURNS_KEPT];
};

bool sim_sharing;

static struct shared {
	struct gpu *gpu;
	int fd;
} shared[SIM_MAX_DEVICES];
static int64_t self;

static void lock(const struct shared *s, int how)
{
	while (sim_syscall(SYS_flock, s->fd, how, 0) == -EINTR)
		;
}

static bool map_gpu(struct shared *s, const char *folder, int gpu)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/gpu%d", folder, gpu);
	s->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (s->fd >= 0)
		fchmod(s->fd, 0666); /* other users' processes share it, too */
	if (s->fd < 0 || ftruncate(s->fd, sizeof(*s->gpu)))
		return false;
	s->gpu = mmap(NULL, sizeof(*s->gpu), PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	return s->gpu != MAP_FAILED;
}

int sim_sharing_init(int gpus)
{
	const char *folder = getenv("SPYSIM_SHARE");

	if (!folder || !*folder)
		return SIM_OK;
	for (int i = 0; i < gpus; i++)
		if (!map_gpu(&shared[i], folder, sim_devices[i].gpu)) {
			fprintf(stderr, "sim: cannot share GPUs in %s: %m\n", folder);
			return SIM_NO_DEVICE;
		}
	self = sim_mps.client ? sim_mps.server_pid : getpid();
	sim_sharing = true;
	return SIM_OK;
}

/* Lets the operation, which may go on from *at, advance in the turn. Returns what it has left. */
static uint64_t advance(const struct turn *turn, struct sim_op *op, uint64_t *at, uint64_t left)
{
	uint64_t begin = *at > turn->begin_ns ? *at : turn->begin_ns, ns;

	if (turn->owner != self || begin >= turn->end_ns)
		return left;
	ns = turn->end_ns - begin < left ? turn->end_ns - begin : left;
	if (!op->ran_from_ns)
		op->ran_from_ns = begin;
	*at = begin + ns;
	return left - ns;
}

/* Gives this owner time from `at` on, or NULL: not yet. */
static const struct turn *ask(struct gpu *gpu, uint64_t now, uint64_t at, uint64_t want)
{
	struct turn *last = &gpu->turns[(gpu->given + TURNS_KEPT - 1) % TURNS_KEPT], *turn;
	uint64_t limit;

	if (last->owner == self) {
		limit = (now > last->begin_ns ? now : last->begin_ns) + sim_script.slice_ns;
		if (at >= limit)
			return NULL;
		last->end_ns = at + want < limit ? at + want : limit;
		return last;
	}
	for (int i = 0; i < TURNS_KEPT; i++)
		if (gpu->turns[i].owner == self && gpu->turns[i].begin_ns > now)
			return NULL;
	turn = &gpu->turns[gpu->given % TURNS_KEPT];
	turn->owner = 0;
	turn->begin_ns = last->end_ns + (last->owner ? sim_script.switch_ns : 0);
	if (turn->begin_ns < at)
		turn->begin_ns = at;
	turn->end_ns = turn->begin_ns + (want < sim_script.slice_ns ? want : sim_script.slice_ns);
	turn->owner = self;
	gpu->given++;
	return turn;
}

/* The operation and the kernels right behind it in its stream. */
static uint64_t queued_ns(const struct sim_op *op)
{
	uint64_t ns = op->duration_ns - op->ran_ns;

	while ((op = op->next) && !op->dep_cnt && ns < sim_script.slice_ns &&
	       (op->kind == OP_KERNEL || op->kind == OP_MARK))
		ns += op->duration_ns;
	return ns;
}

bool sim_sharing_run(int dev, struct sim_op *op)
{
	const struct shared *s = &shared[dev];
	uint64_t at = op->ran_ns ? op->ran_until_ns : op->start_ns;
	uint64_t left = op->duration_ns - op->ran_ns, now = sim_now_ns();
	const struct turn *turn;

	lock(s, LOCK_EX);
	for (unsigned i = 0; left && i < TURNS_KEPT; i++) /* oldest first */
		left = advance(&s->gpu->turns[(s->gpu->given + i) % TURNS_KEPT], op, &at, left);
	op->ran_ns = op->duration_ns - left;
	while (left && (turn = ask(s->gpu, now, at, queued_ns(op)))) {
		left = advance(turn, op, &at, left);
		op->ran_ns = op->duration_ns - left;
	}
	lock(s, LOCK_UN);
	op->ran_until_ns = at;
	op->end_ns = at;
	return !left;
}
