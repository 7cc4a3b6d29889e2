/*
 * analyzer/detectors/staged_peer_copy.c: copies from one GPU to another for which nobody had enabled peer
 * access: they go through the memory of the host.
 */
#include "account/peers.h"
#include "findings/detector.h"
#include "report/report_words.h"

/* What a PCIe bus moves in about a millisecond: less is not worth a call. */
#define BYTES_LEAST (16u << 20)

/* Variant: device copied from << 8 | device copied to. */

static bool judge(const struct observed *o, struct verdict *v)
{
	const struct spy_rec_copy *copy = &o->record->raw->copy;

	if (o->record->raw->other.event != SPY_EV_COPY || !copy_took_place(copy) ||
	    copy->src_device == SPY_DEVICE_NONE || copy->dst_device == SPY_DEVICE_NONE ||
	    copy->src_device == copy->dst_device)
		return false;
	v->variant = (uint32_t)copy->src_device << 8 | (uint32_t)copy->dst_device;
	return !peers_reach(&o->accounts->peers, o->record->process, (uint8_t)copy->src_device,
			    (uint8_t)copy->dst_device);
}

static const char *keep(const struct analysis *a, const struct site *site, struct finding *finding,
			struct report *report)
{
	char bytes[32];

	(void)a;
	if (site->bytes < BYTES_LEAST)
		return NULL;
	finding->gain_known = false;
	finding->cost_unknown = !finding_cost(finding);
	format_bytes(bytes, sizeof(bytes), site->bytes);
	return report_text(
		report,
		"%s copied %s from GPU %u to GPU %u, between which peer access "
		"was not enabled: such copies go through the host's memory; %s inside the "
		"calls",
		word_count(report, site->count, "call"), bytes, finding->variant >> 8,
		finding->variant & 0xff, word_time(report, site->total_ns));
}

const struct detector detector_staged_peer_copy = {
	.id = "staged-peer-copy",
	.title = "copies between GPUs go through the host",
	.sees = "cudaMemcpyPeer, cudaMemcpyPeerAsync and their 3D and driver forms between two "
		"GPUs "
		"for which neither had called cudaDeviceEnablePeerAccess (cuCtxEnablePeerAccess) "
		"before, of 16 MiB and more in all. CUDA then copies to host memory and from there "
		"to the other GPU: over the bus twice.",
	.blind = "How long the copies took, on the GPU. Whether the two can reach each other at "
		 "all: "
		 "cudaDeviceCanAccessPeer tells, and where they cannot, the copies stay as they "
		 "are. "
		 "That access in one direction is enough, and that copies are staged without it on "
		 "this machine, is CUDA's documentation: cudaspy's authors have not measured it. "
		 "cudaMemcpy between GPUs does not say which they are; access by pools "
		 "(cudaMemPoolSetAccess) and cuMemSetAccess is not looked at.",
	.fix = "Call cudaDeviceEnablePeerAccess once for each of the two GPUs, before the work, "
	       "where cudaDeviceCanAccessPeer says that they can.",
	.always = DETECTOR_CONTRACT(PEER) | DETECTOR_CONTRACT(SUBMIT) |
		  DETECTOR_CONTRACT(COPY_SYNC) | DETECTOR_CONTRACT(COPY_ASYNC),
	.copies = COPIES_PEER,
	.judge = judge,
	.keep = keep,
};
