/*
 * analyzer/detectors/slow_link.c: GPUs of one host are joined by NVLink, and collective operations move their data at a tenth of its speed
 * or less: they go by PCIe, or through the host's memory.
 */
#include <string.h>
#include "table.h"
#include "findings/gpu_use.h"
#include "findings/rank_words.h"
#include "ranks/lateness.h"
#include "trace/names.h"
#include "base/format.h"
#include "text/text.h"

#define LARGE_BYTES (16u << 20) /* less takes as long as it takes to begin */
#define OPERATIONS_LEAST 8
/*
 * Of the links' speed in one direction. Measured on two H200s with 478 GB/s (docs/VALIDATION.md, `rank_shapes.py buckets`):
 * 193 GB/s by NVLink, 27 by the host's memory; PCIe of the fifth generation has 64.
 */
#define SLOW_PART 0.1
#define USUAL_PART 0.4

/* The fewest bytes a second that a rank's GPU moves by NVLink; 0: there is one without, or ranks are of several hosts. */
static double least_link(const struct ranks *ranks)
{
	double least = 0;

	for (size_t i = 0; i < ranks->n; i++) {
		const struct rank *rank = ranks->all[i];
		const struct idle_gpu *gpu = gpu_of_rank(ranks->idle, rank);
		double bytes =
			gpu ? (double)gpu->looks.links * (double)gpu->looks.link_mbytes * 1e6 : 0;

		if (bytes <= 0 || rank->process->trace->host != ranks->all[0]->process->trace->host)
			return 0;
		least = !i || bytes < least ? bytes : least;
	}
	return least;
}

struct slow {
	const struct rank_group *most; /* the operations that took longest */
	uint64_t operations, ns, more_ns; /* of all that are slow; more_ns: than usual by NVLink */
};

static struct slow find_slow(const struct ranks *ranks, double link)
{
	struct slow slow = {.most = NULL};

	for (size_t i = 0; i < ranks->n_groups; i++) {
		const struct rank_group *g = &ranks->groups[i];
		double rate = rank_group_rate(ranks, g);

		if (rate <= 0 || rate > SLOW_PART * link || g->bytes < LARGE_BYTES ||
		    g->operations < OPERATIONS_LEAST)
			continue;
		slow.operations += g->operations;
		slow.ns += g->transfer_ns;
		slow.more_ns +=
			(uint64_t)((double)g->transfer_ns * (1 - rate / (USUAL_PART * link)));
		if (!slow.most || g->transfer_ns > slow.most->transfer_ns)
			slow.most = g;
	}
	return slow;
}

/* Of several, who works longest. */
static const struct rank *longest(const struct ranks *ranks)
{
	const struct rank *most = ranks->all[0];

	for (size_t i = 1; i < ranks->n; i++)
		if (rank_job_ns(ranks->all[i]) > rank_job_ns(most))
			most = ranks->all[i];
	return most;
}

/* What runs beside other work costs nothing: where GPU times are recorded, no more than they say. */
static uint64_t most_gain(const struct rank *rank, uint64_t ns)
{
	return rank->exposed_known ? min_u64(ns, rank->exposed_ns) : ns;
}

/* "; NCCL_P2P_DISABLE=1 is set"; empty: nothing is that is known to do it. */
static const char *setting_words(struct arena *texts, const struct process *process)
{
	static const char *const names[] = {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *key = arena_printf(texts, "env_%s", names[i]);
		const char *value = metadata_text(&process->trace->metadata, key);

		if (value && *value && strcmp(value, "0"))
			return arena_printf(texts, "; %s=%s is set", names[i], value);
	}
	return "";
}

static const char *rate_words(struct arena *texts, double bytes)
{
	return arena_printf(texts, "%.0f GB/s", bytes / 1e9);
}

static void conclude(const struct ranks *ranks, struct found *found)
{
	struct arena *texts = found->texts;
	double link = least_link(ranks);
	struct slow slow = find_slow(ranks, link);
	const struct rank *rank;
	struct finding *finding;
	char each[32];

	if (!slow.most)
		return;
	rank = longest(ranks);
	if (!rank_late_is_significant(most_gain(rank, slow.more_ns), rank_job_ns(rank)))
		return;
	finding = detector_add(&detector_slow_link, found);
	finding->origin.process = rank->process;
	finding->origin.processes = (uint32_t)ranks->n;
	finding->count = slow.operations;
	finding_set_cost(finding, most_gain(rank, slow.more_ns));
	if (ranks->n_sites && ranks->sites[0].part.thread)
		thread_costs_add(&finding->cost.threads, ranks->sites[0].part.thread,
				 (double)cost_ns(&finding->cost), (double)cost_ns(&finding->cost));
	format_bytes(each, sizeof(each), slow.most->bytes);
	finding->what = arena_printf(
		texts,
		"%s of %s moves %s (bus bandwidth) when all ranks are there, and each GPU has %s of "
		"NVLink in each direction: %s take %s, %s of %s, of which by NVLink some %s were "
		"left, beside other work or not%s",
		name_nccl_func(slow.most->func), each,
		rate_words(texts, rank_group_rate(ranks, slow.most)), rate_words(texts, link),
		text_count(texts, slow.operations, "collective"), text_time(texts, slow.ns),
		text_percent(texts, (double)slow.ns, (double)rank_job_ns(rank)),
		text_time(texts, rank_job_ns(rank)), text_time(texts, slow.ns - slow.more_ns),
		setting_words(texts, rank->process));
	finding->fix = detector_slow_link.fix;
}

const struct detector detector_slow_link = {
	.id = "slow-link",
	.title = "collectives move data far more slowly than the GPUs' links allow",
	.sees = "All ranks of one host, on GPUs that have NVLinks, as NVML says. Operations of 16 MiB and "
		"more, eight or more of a kind, from the arrival of the last rank to the first end: a tenth "
		"of the links' speed or less.",
	.blind =
		"GPUs without NVLink, several hosts. Without --gpu, whether the operations ran beside "
		"other work: then they cost less.",
	.fix = "See which way NCCL takes: NCCL_DEBUG=INFO (P2P, SHM or NET in its lines of channels). Unset "
	       "NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; nvidia-smi topo -p2p r and nvidia-smi nvlink "
	       "--status must show the links; all GPUs of the job in one container, with IPC "
	       "(--ipc=host) and a shared /dev/shm.",
	.conclude_ranks = conclude,
};
