/*
 * tests/sim/meeting.h: how the look-alike of NCCL (nccl*.c) puts kernels on the simulated GPUs whose end
 * depends on other processes. The driver exports spysim_meetings(), which hands out the one struct
 * sim_meeting_source. Times are CLOCK_MONOTONIC ns. Included by both; the code behind it is meetings.c.
 */
#ifndef SIM_MEETING_H
#define SIM_MEETING_H

#include "sim_types.h"

struct sim_op;

/*
 * One launch becomes two operations of its stream: the first lasts no time and hands over what the
 * others need, the second is the kernel. begin and end are asked once the operation's start is known,
 * again and again until they answer true and set its end; both run under the engine's lock, so they may
 * neither block nor call the driver. give and take run without it, when that end has passed: the memory
 * is then as the stream's earlier work has left it.
 */
struct sim_meeting {
	bool (*begin)(struct sim_meeting *meeting, uint64_t start_ns, uint64_t *end_ns);
	void (*give)(struct sim_meeting *meeting);
	bool (*end)(struct sim_meeting *meeting, uint64_t start_ns, uint64_t *end_ns);
	void (*take)(struct sim_meeting *meeting);
	struct sim_op **last; /* the kernel before, after which this one runs; then this one */
	bool launched; /* set by the launch */
};

/* The knobs `nccl_...` of the script. */
struct sim_nccl {
	int interface; /* the profiler interface that the library's version has */
	bool timer_set; /* offset or drift are given, not by the seed */
	double timer_offset_us, timer_drift_ppm;
	uint64_t timer_step_ns;
	uint64_t base_ns; /* how long a collective takes besides its bytes */
	uint64_t spread_ns; /* by how much the ranks' ends differ at most */
	double gbps;
	uint64_t wait_ns; /* after this long alone, an operation fails */
};

struct sim_meeting_source {
	const struct sim_nccl *knobs;
	void (*next)(
		struct sim_meeting *meeting); /* of the calling thread's next launch; NULL: none */
	void (*settle)(void); /* does what has come to its end by now, on this thread */
	void (*forget)(struct sim_op **last);
};

SIM_PUBLIC const struct sim_meeting_source *spysim_meetings(void);

#endif
