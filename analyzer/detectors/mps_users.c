/*
 * analyzer/detectors/mps_users.c: processes that waited in cuInit, without an error, because the
 * MPS daemon was at work for another user.
 */
#include "table.h"
#include "account/account.h"
#include "findings/sharing.h"
#include "text/text.h"

/* What of it the accounting charged to calls; a process still in cuInit has no call to charge. */
static uint64_t waited_ns(const struct accounting *a, const struct process *process)
{
	uint64_t booked_ns = account_sum(a, process).bucket_ns[BUCKET_MPS];

	return booked_ns ? booked_ns : sharing_turn_ns(a->stats, process);
}

static void conclude(const struct accounting *a, struct found *found)
{
	const struct process *longest = NULL;
	struct finding *finding;
	uint64_t ns = 0, longest_ns = 0;
	uint32_t waiters = 0;

	for (size_t i = 0; i < a->model->n_processes; i++) {
		const struct process *process = &a->model->processes[i];

		if (!sharing_turn_ns(a->stats, process))
			continue;
		ns += waited_ns(a, process);
		waiters++;
		if (longest && waited_ns(a, process) <= longest_ns)
			continue;
		longest = process;
		longest_ns = waited_ns(a, process);
	}
	if (!longest)
		return;
	finding = detector_add(&detector_mps_users, found);
	finding->origin.process = longest;
	finding->origin.processes = waiters;
	finding->count = waiters;
	finding_set_cost(finding, ns);
	finding->place.function = "cuInit";
	finding->what =
		arena_printf(found->texts,
			     "%u process%s waited for %s in all, when CUDA started up, until "
			     "the MPS server had finished another user's processes",
			     waiters, waiters == 1 ? "" : "es", text_time(found->texts, ns));
}

const struct detector detector_mps_users = {
	.id = "mps-users",
	.title = "a process waited for another user's MPS server",
	.sees = "Processes that found the MPS daemon's server at work for another user when they "
		"called cuInit, and came out of it when the server was theirs. A daemon serves one "
		"user at a time: clients of another wait, without an error, until the last client "
		"of the first has ended.",
	.blind = "What else cuInit did meanwhile. All of it is charged, also the tenths of a "
		 "second that cuInit takes in any case.",
	.fix = "Run the processes as one user, or give each user a daemon with a "
	       "CUDA_MPS_PIPE_DIRECTORY and GPUs of its own.",
	.conclude_calls = conclude,
};
