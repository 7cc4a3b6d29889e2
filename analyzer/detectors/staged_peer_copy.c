/*
 * analyzer/detectors/staged_peer_copy.c: copies from one GPU to another of which neither had been
 * given access to the other's memory: they go through the memory of the host.
 */
#include "table.h"
#include "findings/site.h"
#include "account/peers.h"
#include "base/format.h"
#include "text/text.h"

/* What a PCIe bus moves in about a millisecond: less is not worth a call. */
#define BYTES_LEAST (16u << 20)

/* A slow way through the host, 5 GB/s. What a call took beyond that it waited for room, behind more
 * than such copies, which some thread has to do. */
#define SLOW_BYTES_PER_NS 5

/* Variant: device copied from << 8 | device copied to | access << 16, that decides about the
 * cure. */
#define DIRECTION 0xffffu

/* So many directions are told, of those that copies at one place took. */
#define DIRECTIONS_TOLD 4
#define DIRECTIONS_MOST 64

/* Whose way to give access cures the copy: peer access as long as one of its ends follows that. */
static enum spy_access access_of(const struct spy_rec_copy *copy)
{
	if (copy->src_access <= SPY_ACCESS_PEER || copy->dst_access <= SPY_ACCESS_PEER)
		return SPY_ACCESS_PEER;
	return copy->src_access > copy->dst_access ? copy->src_access : copy->dst_access;
}

static bool judge(const struct observed *o, struct verdict *v)
{
	const struct spy_rec_copy *copy = record_copy(o->record);
	uint64_t inside_ns;

	if (!copy || !copy_took_place(copy) || !copy_is_between_gpus(copy))
		return false;
	v->variant = (uint32_t)copy->src_device << 8 | (uint32_t)copy->dst_device |
		     (uint32_t)access_of(copy) << 16;
	inside_ns = o->call->end_ns - o->call->begin_ns - completed_ns(o->call, BUCKET_LOCK) -
		    completed_ns(o->call, BUCKET_NOT_RUNNING);
	inside_ns = min_u64(inside_ns, DETECTOR_HAND_OVER_NS + copy->bytes / SLOW_BYTES_PER_NS);
	v->cost_ns = v->gain_high_ns =
		inside_ns > DETECTOR_HAND_OVER_NS ? inside_ns - DETECTOR_HAND_OVER_NS : 0;
	return !peers_reach(&o->accounts->peers[o->record->process], copy);
}

/* Where peer access is no cure: of what memory that is so, and what is. */
static const struct {
	const char *memory, *fix;
} others[] = {
	[SPY_ACCESS_MAPPED] = {" (mapped by cuMemMap: peer access is not for that)",
			       "Name both GPUs in cuMemSetAccess, where the memory is mapped, if "
			       "cuDeviceCanAccessPeer says that they can."},
	[SPY_ACCESS_POOL] =
		{" (a pool's: peer access is not for that)",
		 "Give the other GPU access to each pool by cudaMemPoolSetAccess, once, "
		 "before the work, where cudaDeviceCanAccessPeer says that they can."},
};

/* Of the copies at the site's place in its process: the first DIRECTIONS_MOST; returns how many. */
static size_t find_directions(const struct findings *f, const struct site *site, uint32_t *all)
{
	const struct site *other, *next;
	size_t n = 0, i;

	HASH_ITER (hh, f->sites, other, next) {
		uint32_t direction = other->key.variant & DIRECTION;

		if (other->key.detector != site->key.detector ||
		    other->key.process != site->key.process ||
		    other->key.return_address != site->key.return_address ||
		    other->key.fn != site->key.fn)
			continue;
		for (i = 0; i < n && all[i] != direction; i++)
			;
		if (i == n && n < DIRECTIONS_MOST)
			all[n++] = direction;
	}
	return n;
}

/* "from GPU 0 to GPU 1, 1 to 0 and 4 more ways". */
static const char *directions(struct arena *texts, const struct findings *f,
			      const struct site *site)
{
	uint32_t all[DIRECTIONS_MOST];
	size_t n = find_directions(f, site, all), i;
	const char *text = "";

	for (i = 0; i < n && i < DIRECTIONS_TOLD; i++)
		text = arena_printf(texts, i ? "%s, %u to %u" : "%sfrom GPU %u to GPU %u", text,
				    all[i] >> 8, all[i] & 0xff);
	if (n > DIRECTIONS_TOLD)
		text = arena_printf(texts, "%s and %zu more ways", text, n - DIRECTIONS_TOLD);
	return text;
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	unsigned int access = finding->variant >> 16;
	const char *memory = "";
	char bytes[32];

	if (site->bytes < BYTES_LEAST)
		return NULL;
	/* What is little for the host may be much for the GPUs. */
	finding->cost.unknown = finding_little(cost_ns(&finding->cost),
					       finding_cost_share(f->accounts, finding).share);
	if (access < ARRAY_SIZE(others) && others[access].fix) {
		memory = others[access].memory;
		finding->fix = others[access].fix;
	}
	format_bytes(bytes, sizeof(bytes), site->bytes);
	return arena_printf(
		texts,
		"%s copied %s %s, neither of which had access to the other's memory%s: such copies "
		"go through the host's memory; %s inside the calls",
		text_count(texts, site->count, "call"), bytes, directions(texts, f, site), memory,
		text_time(texts, site->total_ns));
}

const struct detector detector_staged_peer_copy = {
	.id = "staged-peer-copy",
	.title = "copies between GPUs go through the host: no peer access",
	.sees = "Copies from one GPU to another, by cudaMemcpyPeer and its relatives or by any "
		"other function between memory of both, of 16 MiB and more in all, for which "
		"neither GPU had access to the other's memory: it had not been given "
		"(cudaDeviceEnablePeerAccess, cuCtxEnablePeerAccess; of memory of pools and mapped "
		"memory, to which these do not apply, cudaMemPoolSetAccess and cuMemSetAccess), or "
		"had ended (peer access ends with a reset of either GPU, and with cuCtxDestroy of "
		"either context). CUDA then copies piece by piece to host memory and from there to "
		"the other GPU. Between two H200s that was 38 GB/s instead of 390, and a call for "
		"256 MiB took 0.9 ms, 5.7 ms with other such copies before it, instead of some "
		"microseconds. Access in either direction is enough.",
	.blind = "How long the copies took, on the GPU: the cost is what the host spent in the "
		 "calls. Whether the two can reach each other at all: cudaDeviceCanAccessPeer "
		 "returns that; where they cannot, the copies stay as they are. On which GPU "
		 "memory lies whose allocation was not recorded; of a pool's that is asked only "
		 "for copies of 256 KiB and more. Which pool or mapping access was given to, "
		 "and whether it was taken away again: after one such call copies between that "
		 "GPU and memory of the same sort of the same other GPU are left alone; after "
		 "cudaIpcOpenMemHandle, which enables peer access to a GPU that is not named, "
		 "all those with the GPU that was current.",
	.fix = "Call cudaDeviceEnablePeerAccess once for each of the two GPUs, before the work, "
	       "where cudaDeviceCanAccessPeer says that they can.",
	.always = DETECTOR_CONTRACT(PEER) | DETECTOR_CONTRACT(SUBMIT) |
		  DETECTOR_CONTRACT(COPY_SYNC) | DETECTOR_CONTRACT(COPY_ASYNC),
	.alike = DIRECTION,
	.copies = COPIES_PEER,
	.judge = judge,
	.keep = keep,
};
