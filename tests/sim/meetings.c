/*
 * tests/sim/meetings.c: kernels that end when other processes let them (meeting.h). A launch asks
 * sim_meeting_launch() whether it is one, on the calling thread; the engine asks sim_meeting_settle()
 * for the end of its two operations, under its lock.
 *
 * Not modelled: such kernels take no turns on a shared GPU (sharing.c), and one captured into a graph
 * only lasts.
 */
#include "sim.h"

#include <linux/futex.h>
#include <sys/syscall.h>

struct meeting_work {
	struct sim_work work;
	struct sim_meeting *meeting;
};

static __thread struct sim_meeting *next;
static atomic_bool used;
static atomic_int settled_cnt; /* a futex: those who wait for an end that is not known */

static void give(struct sim_work *work)
{
	struct sim_meeting *meeting = ((struct meeting_work *)work)->meeting;

	meeting->give(meeting);
}

static void take(struct sim_work *work)
{
	struct sim_meeting *meeting = ((struct meeting_work *)work)->meeting;

	meeting->take(meeting);
}

static struct sim_work *work_new(struct sim_meeting *meeting, void (*run)(struct sim_work *work))
{
	struct meeting_work *work = sim_work_new(sizeof(*work), run);

	work->meeting = meeting;
	return &work->work;
}

struct sim_meeting *sim_meeting_next(void)
{
	struct sim_meeting *meeting = next;

	next = NULL;
	return meeting;
}

void sim_meeting_launch(struct sim_meeting *meeting, struct sim_stream *stream, struct sim_op *op)
{
	struct sim_op *mark = sim_op_new(OP_MARK, 0), *before = *meeting->last;

	atomic_store(&used, true);
	meeting->launched = true;
	mark->meeting = meeting;
	mark->work = work_new(meeting, give);
	sim_op_dep(mark, before);
	sim_op_put(before);
	sim_submit(stream, mark, NULL);
	op->meeting = meeting;
	op->work = work_new(meeting, take);
	sim_submit(stream, op, meeting->last);
}

bool sim_meeting_settle(struct sim_op *op)
{
	struct sim_meeting *meeting = op->meeting;
	bool known = op->kind == OP_KERNEL ? meeting->end(meeting, op->start_ns, &op->end_ns)
					   : meeting->begin(meeting, op->start_ns, &op->end_ns);

	if (known && op->kind == OP_KERNEL) {
		atomic_store(&settled_cnt, (atomic_load(&settled_cnt) + 1) & INT32_MAX);
		syscall(SYS_futex, &settled_cnt, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	}
	return known;
}

int sim_meetings_settled(void)
{
	return atomic_load(&used) ? atomic_load(&settled_cnt) : -1;
}

/* Until another end has become known, or for a moment. */
void sim_meetings_wait(int seen)
{
	struct timespec moment = {0, 500000};

	syscall(SYS_futex, &settled_cnt, FUTEX_WAIT_PRIVATE, seen, &moment, NULL, 0);
}

static void set_next(struct sim_meeting *meeting)
{
	next = meeting;
}

static void forget(struct sim_op **last)
{
	sim_op_put(*last);
	*last = NULL;
}

const struct sim_meeting_source *spysim_meetings(void)
{
	static const struct sim_meeting_source source = {
		.knobs = &sim_script.nccl,
		.next = set_next,
		.settle = sim_engine_settle,
		.forget = forget,
	};

	sim_script_load();
	return &source;
}
