/*
 * analyzer/idle/gpu_looks.c: what NVML says of GPUs, summed up over the working phase. Called by idle.c.
 */
#include "account/streams.h"
#include "idle.h"

/* The smallest one, in whatever order looks come. */
static uint32_t min_pid(uint32_t a, uint32_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* The fewest that are known. */
static void see_links(struct gpu_looks *looks, uint64_t links, uint64_t mbytes)
{
	if (!links || !mbytes || (looks->links && looks->links <= links))
		return;
	looks->links = links;
	looks->link_mbytes = mbytes;
}

static void see_rest(struct gpu_looks *looks, const struct spy_rec_gpu_look *look)
{
	looks->n_rest++;
	looks->clock += look->clock;
	looks->clock_most += look->clock_most;
	for (unsigned int bit = 0; look->known & SPY_GPU_LOOK_REASONS && bit < 64; bit++)
		looks->limited[bit] += look->reasons >> bit & 1;
	looks->n_power += look->power > 0;
	looks->power += look->power;
	looks->power_limit_most = max_u64(looks->power_limit_most, look->power_limit);
	looks->temperature_most = max_u64(looks->temperature_most, look->temperature);
	see_links(looks, look->links, look->link_mbytes);
	if (!(look->known & SPY_GPU_LOOK_PROCESSES) || !look->others)
		return;
	looks->others_n++;
	looks->others_most = max_u64(looks->others_most, look->others);
	looks->other_pid = min_pid(looks->other_pid, look->other_pid);
	looks->others_bytes_most = max_u64(looks->others_bytes_most, look->others_bytes);
	if (!(look->known & SPY_GPU_LOOK_SHARES))
		return;
	looks->shares_n++;
	looks->own_busy += look->own_busy;
	looks->others_busy += look->others_busy;
}

/* What NVML says is of the last sixth of a second to second: then the GPU worked as it does in the working phase, and was recorded. */
#define LAG_NS 1000000000

static bool tells_of_phase(const struct record *record, const struct phase *phase)
{
	const struct process *process = record->thread->process;
	uint64_t since_ns = max_u64(process->opened_ns, process->first_ns);

	if (phase->found)
		since_ns = max_u64(since_ns, phase->begin_ns);
	return record->ns >= since_ns + LAG_NS;
}

void gpu_looks_see(struct idle *idle, const struct record *record)
{
	const struct spy_rec_gpu_look *look = record_gpu_look(record);
	const struct phases *phases = &idle->accounts->expect->phases;
	uint32_t device = streams_device(look->device);
	struct gpu_looks *looks;
	uint32_t gpu;

	gpu = idle->users[work_index(&idle->accounts->work, record->process, device)].gpu;
	if (!gpu || look->busy > 100 || !phase_has(phases, record->process, record->ns))
		return;
	looks = &idle->gpus[gpu - 1].looks;
	looks->busy_percent_most = max_u64(looks->busy_percent_most, look->busy);
	looks->all_n++;
	looks->last_ns = max_u64(looks->last_ns, record->ns);
	if (!tells_of_phase(record, &phases->all[record->process]))
		return;
	if (!looks->n++)
		looks->begin_ns = record->ns;
	looks->end_ns = record->ns;
	looks->busy_percent += look->busy;
	see_rest(looks, look);
}

void gpu_looks_see_copy(struct idle *idle, const struct record *record)
{
	size_t index = streams_device_index(&idle->accounts->work, record);
	uint32_t gpu = idle->users[index].gpu;
	struct gpu_looks *looks;
	uint64_t ns;

	if (!gpu || !phase_has(&idle->accounts->expect->phases, record->process, record->ns))
		return;
	looks = &idle->gpus[gpu - 1].looks;
	ns = copy_most_ns(record_copy(record), record->duration_ns);
	looks->copies_ns += ns;
	if (copy_is_pinned(record_copy(record)))
		looks->pinned_ns += ns;
}

void gpu_looks_join(struct gpu_looks *looks, const struct gpu_looks *other)
{
	looks->busy_percent_most = max_u64(looks->busy_percent_most, other->busy_percent_most);
	looks->copies_ns += other->copies_ns;
	looks->pinned_ns += other->pinned_ns;
	looks->all_n += other->all_n;
	looks->last_ns = max_u64(looks->last_ns, other->last_ns);
	if (!other->n)
		return;
	looks->begin_ns = looks->n ? min_u64(looks->begin_ns, other->begin_ns) : other->begin_ns;
	looks->other_pid = min_pid(looks->other_pid, other->other_pid);
	looks->end_ns = max_u64(looks->end_ns, other->end_ns);
	looks->n += other->n;
	looks->busy_percent += other->busy_percent;
	looks->n_rest += other->n_rest;
	looks->clock += other->clock;
	looks->clock_most += other->clock_most;
	for (unsigned int bit = 0; bit < 64; bit++)
		looks->limited[bit] += other->limited[bit];
	looks->n_power += other->n_power;
	looks->power += other->power;
	looks->power_limit_most = max_u64(looks->power_limit_most, other->power_limit_most);
	looks->temperature_most = max_u64(looks->temperature_most, other->temperature_most);
	see_links(looks, other->links, other->link_mbytes);
	looks->others_n += other->others_n;
	looks->others_most = max_u64(looks->others_most, other->others_most);
	looks->others_bytes_most = max_u64(looks->others_bytes_most, other->others_bytes_most);
	looks->shares_n += other->shares_n;
	looks->own_busy += other->own_busy;
	looks->others_busy += other->others_busy;
}

#define SHARES_LEAST 5 /* looks: those of one answer */

double gpu_looks_others(const struct gpu_looks *looks)
{
	return looks->shares_n < SHARES_LEAST
		       ? -1
		       : (double)looks->others_busy / 100 / (double)looks->shares_n;
}

#define LEAST 2 /* looks, for anything to be said */
#define LEAST_FOR_MEAN 5 /* with fewer the largest stands for all */
#define LEAST_FOR_MOST 3 /* for the busiest look to bound a short phase */
#define COVERED_PERCENT 80 /* of the time, from the first look to the last */

double gpu_looks_busy(const struct gpu_looks *looks)
{
	double percent = looks->n < LEAST_FOR_MEAN ? (double)looks->busy_percent_most
						   : (double)looks->busy_percent / (double)looks->n;

	/* Whole per cents; and a kernel that ran at all in a moment is taken for all of it: at most so much. */
	return percent < 99 ? (percent + 1) / 100 : 1;
}

static bool covers(const struct gpu_looks *looks, uint64_t work_ns)
{
	return looks->n >= LEAST &&
	       looks->end_ns - looks->begin_ns + LAG_NS >= work_ns / 100 * COVERED_PERCENT;
}

/* By the mean of looks that tell of the working phase alone. */
static uint64_t busy_by_mean_ns(const struct gpu_looks *looks, uint64_t work_ns)
{
	if (!covers(looks, work_ns))
		return work_ns;
	return (uint64_t)(gpu_looks_busy(looks) * (double)work_ns);
}

/*
 * Short phases: each look tells of a time that ends at it and is LAG_NS long at most. Such times, one behind the other, cover the
 * phase up to the last look and begin less than LAG_NS before it, and in none of them was the GPU busier than the busiest look
 * says. Behind the last look it may have worked all the time.
 */
static uint64_t busy_by_most_ns(const struct gpu_looks *looks, uint64_t work_ns, uint64_t end_ns)
{
	double most = (double)(looks->busy_percent_most + 1) / 100;

	if (looks->all_n < LEAST_FOR_MOST || end_ns < looks->last_ns)
		return work_ns;
	return min_u64(work_ns,
		       (uint64_t)(most * (double)(work_ns + LAG_NS)) + end_ns - looks->last_ns);
}

static uint64_t kernels_ns(const struct gpu_looks *looks, uint64_t work_ns, uint64_t end_ns)
{
	return min_u64(busy_by_mean_ns(looks, work_ns), busy_by_most_ns(looks, work_ns, end_ns));
}

uint64_t gpu_looks_worked_ns(const struct gpu_looks *looks, uint64_t work_ns, uint64_t end_ns,
			     uint64_t fast_copies_ns)
{
	return min_u64(work_ns,
		       kernels_ns(looks, work_ns, end_ns) + looks->pinned_ns + fast_copies_ns);
}

uint64_t gpu_looks_idle_ns(const struct gpu_looks *looks, uint64_t work_ns, uint64_t end_ns,
			   uint64_t fast_copies_ns)
{
	uint64_t idle_ns = work_ns - kernels_ns(looks, work_ns, end_ns);

	/* A copy is no kernel: NVML does not count it. */
	return idle_ns - min_u64(idle_ns, looks->copies_ns + fast_copies_ns);
}

/*
 * A short gap between kernels is none to NVML: a loop like `tests/gpu/jobs.py emptycache` was at work for 85 % of its time (by its twin without gaps), and for 95 %
 * by NVML; one of 99 % by CUPTI for 100 % (H200).
 */
#define BUSY_PERCENT 99
#define SPARE_PERCENT 3

uint64_t gpu_looks_spare_ns(const struct gpu_looks *looks, uint64_t work_ns)
{
	if (looks->n < LEAST_FOR_MEAN || looks->others_n || !covers(looks, work_ns) ||
	    looks->busy_percent < BUSY_PERCENT * looks->n)
		return UINT64_MAX;
	return work_ns / 100 * SPARE_PERCENT;
}
