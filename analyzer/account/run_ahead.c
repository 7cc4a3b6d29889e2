/*
 * analyzer/account/run_ahead.c: the run without CUDA_LAUNCH_BLOCKING. Called for each call of a process that has the variable
 * set, on the thread of the main reading. Of threads that work side by side what one saves is taken from the other's time, too: less
 * is gained than would be.
 */
#include "account.h"
#include "run_ahead.h"

/* Times may be anything in a trace that is damaged: they wrap. */
static int64_t clock_of(const struct run_without *run, uint64_t ns)
{
	return (int64_t)(ns - run->saved_ns);
}

/* A launch that ends then, by which saved_ns are saved; its kernel takes kernel_ns. */
static void launch(struct run_without *run, const struct completed_call *call, uint64_t saved_ns,
		   uint64_t kernel_ns)
{
	int64_t *done_ns = &run->done_ns[call->device], now_ns;

	run->saved_ns += saved_ns;
	now_ns = clock_of(run, call->end_ns);
	*done_ns = (int64_t)((uint64_t)(*done_ns > now_ns ? *done_ns : now_ns) + kernel_ns);
}

/* How long the host has to wait for that GPU then: never until later than in the run that was recorded. */
static uint64_t left_ns(const struct run_without *run, size_t device, uint64_t ns)
{
	int64_t left_ns = (int64_t)((uint64_t)run->done_ns[device] - (uint64_t)clock_of(run, ns));

	return run->done_ns[device] && left_ns > 0 ? min_u64((uint64_t)left_ns, run->saved_ns) : 0;
}

/* ns: from when on the host does nothing else. */
static void wait(struct run_without *run, size_t device, uint64_t ns)
{
	run->saved_ns -= left_ns(run, device, ns);
}

uint64_t run_without_saved_ns(const struct run_without *run, uint64_t end_ns)
{
	uint64_t most_ns = 0;

	for (size_t i = 0; i < RUN_AHEAD_DEVICES; i++)
		most_ns = max_u64(most_ns, left_ns(run, i, end_ns));
	return run->saved_ns - most_ns;
}

void run_ahead_see(struct run_ahead **ahead, const struct call_signature *signature,
		   const struct completed_call *call)
{
	uint64_t waited_ns;
	struct run_ahead *run;

	if (signature->failed || !gpu_wait_is_for_work(signature->waits))
		return;
	run = *ahead = *ahead ?: xcalloc(1, sizeof(*run));
	if (signature->contract == SPY_CONTRACT_LAUNCH) {
		waited_ns = completed_ns(call, BUCKET_GPU_INTENDED);
		launch(&run->least, call, waited_ns, call->end_ns - call->begin_ns);
		launch(&run->most, call,
		       run_ahead_waited_most(waited_ns, completed_ns(call, BUCKET_OWN), 1),
		       waited_ns);
		return;
	}
	wait(&run->least, call->device, call->begin_ns);
	if (signature->waited)
		wait(&run->most, call->device, call->end_ns);
}
