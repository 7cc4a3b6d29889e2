/*
 * tests/unit/test_analyzer_findings_peers.c: copies from one GPU to another that pass through the host, and which GPU may reach which
 * memory. A log in which the detector speaks, and near twins in which it is silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "log_findings.h"

#define PEER_COPIES(before, form, bytes) \
	"trace app.100 pid=100 program=\"app\"\n" \
	"slot 1 tid=101\n1us thread tid=101 name=\"app\"\n" before \
	"1ms copy cudaMemcpyPeerAsync duration=10us device=0 stream=0x10 direction=d2d " \
	"src=device " \
	"dst=device form=" form " src_device=0 dst_device=1 caller=0x4010 bytes=" bytes "\n" \
	"2ms copy cudaMemcpyPeerAsync duration=10us device=0 stream=0x10 direction=d2d " \
	"src=device " \
	"dst=device form=" form " src_device=0 dst_device=1 caller=0x4010 bytes=" bytes "\n"

static void test_staged_peer_copy(void **state)
{
	json_t *root = report_on(PEER_COPIES("", "peer", "16777216"));
	const json_t *finding = find(root, "staged-peer-copy");

	(void)state;
	assert_non_null(finding);
	says(finding, "severity", "note");
	says(finding, "what", "2 calls copied 32.0 MiB from GPU 0 to GPU 1");
	assert_int_equal(number(finding, "offset"), 0x4010);
	assert_int_equal(number(finding, "bytes"), 33554432);
	/* What the host spent is little; what the GPUs did, nobody knows. */
	assert_true(json_is_null(json_object_get(finding, "own_ns")));
	json_decref(root);
	/* of another pair, and taken back */
	root = report_on(
		PEER_COPIES("10us op cudaDeviceEnablePeerAccess duration=9us device=0 object=2\n"
			    "20us op cudaDeviceEnablePeerAccess duration=9us device=0 object=1\n"
			    "30us op cudaDeviceDisablePeerAccess duration=9us device=0 object=1\n",
			    "peer", "16777216"));
	assert_non_null(find(root, "staged-peer-copy"));
	json_decref(root);

	silent(PEER_COPIES("10us op cudaDeviceEnablePeerAccess duration=9us device=0 object=1\n",
			   "peer", "16777216"),
	       "staged-peer-copy");
	silent(PEER_COPIES("10us op cuCtxEnablePeerAccess duration=9us device=1 object=0\n", "peer",
			   "16777216"),
	       "staged-peer-copy");
	/* enabled already; a recording that does not say for whom */
	silent(PEER_COPIES("10us op cudaDeviceEnablePeerAccess duration=9us device=0 object=1 "
			   "result=704\n",
			   "peer", "16777216"),
	       "staged-peer-copy");
	silent(PEER_COPIES("10us call cudaDeviceEnablePeerAccess duration=9us device=0\n", "peer",
			   "16777216"),
	       "staged-peer-copy");
	/* memory mapped for other GPUs, nobody knows which: an older recording */
	silent(PEER_COPIES("10us op cuMemSetAccess duration=9us device=0 object=0x7000000000\n",
			   "peer", "16777216"),
	       "staged-peer-copy");
	silent(PEER_COPIES("10us op cuMemSetAccess duration=9us device=3 object=0x7000000000\n",
			   "peer src_access=mapped dst_access=peer", "16777216"),
	       "staged-peer-copy");
	silent(PEER_COPIES("", "peer", "4096"), "staged-peer-copy"); /* next to nothing */
}

/* Memory of GPU 1, or of one that is not known, given to these. */
#define GIVEN(whom) \
	"10us op cuMemSetAccess duration=9us device=2 flags=1 object=0x80000000000000" whom "\n"
#define POOL_GIVEN(whom) \
	"10us op cudaMemPoolSetAccess duration=9us device=2 flags=1 " \
	"object=0x80000000000000" whom "\n"
#define GIVEN_UNKNOWN(whom) \
	"10us op cuMemSetAccess duration=9us device=2 flags=255 object=0x80000000000000" whom "\n"

/* Who may reach which memory, by what. */
static void test_access(void **state)
{
	static const char *const denied[] = {
		PEER_COPIES("", "peer src_access=mapped dst_access=mapped", "16777216"),
		PEER_COPIES(GIVEN("02"), "peer src_access=mapped dst_access=mapped", "16777216"),
		PEER_COPIES(GIVEN("06"), "1d src_access=mapped dst_access=mapped", "16777216"),
		PEER_COPIES(GIVEN("03"), "peer src_access=peer dst_access=peer", "16777216"),
		PEER_COPIES(GIVEN("03"), "peer src_access=mapped dst_access=peer", "16777216"),
		PEER_COPIES(GIVEN_UNKNOWN("08"), "peer src_access=mapped dst_access=mapped",
			    "16777216"),
		PEER_COPIES("10us op cudaDeviceEnablePeerAccess duration=9us device=0 object=1\n",
			    "peer src_access=mapped dst_access=mapped", "16777216"),
		PEER_COPIES(GIVEN("03"), "peer src_access=pool dst_access=pool", "16777216"),
		PEER_COPIES("10us memory cudaIpcOpenMemHandle duration=9us device=3 op=map "
			    "kind=device\n",
			    "peer src_access=peer dst_access=peer", "16777216"),
		PEER_COPIES(POOL_GIVEN("02"), "1d src_access=pool dst_access=pool", "16777216"),
		PEER_COPIES(POOL_GIVEN("01"), "peer src_access=pool dst_access=peer", "16777216"),
	};
	static const char *const granted[] = {
		PEER_COPIES(GIVEN("03"), "peer src_access=mapped dst_access=mapped", "16777216"),
		PEER_COPIES(GIVEN("01"), "1d src_access=peer dst_access=mapped", "16777216"),
		PEER_COPIES(POOL_GIVEN("01"), "1d src_access=pool dst_access=pool", "16777216"),
		PEER_COPIES("10us op cudaMemPoolSetAccess duration=9us device=0 object=0x91\n",
			    "peer", "16777216"), /* an older recording */
		PEER_COPIES(GIVEN("01"), "peer", "16777216"), /* nobody knows what memory */
		PEER_COPIES("10us memory cudaIpcOpenMemHandle duration=9us device=0 op=map "
			    "kind=device\n",
			    "peer src_access=peer dst_access=unknown", "16777216"),
		PEER_COPIES(GIVEN_UNKNOWN("01"), "peer src_access=mapped dst_access=mapped",
			    "16777216"),
		PEER_COPIES("10us op cudaDeviceEnablePeerAccess duration=9us device=1 object=0\n",
			    "peer src_access=peer dst_access=mapped", "16777216"),
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(denied); i++) {
		json_t *root = report_on(denied[i]);

		assert_non_null(find(root, "staged-peer-copy"));
		json_decref(root);
	}
	for (i = 0; i < ARRAY_SIZE(granted); i++)
		silent(granted[i], "staged-peer-copy");
}

#define ENABLED "10us op cudaDeviceEnablePeerAccess duration=9us device=0 context=1 object=1\n"
#define CTX_ENABLED \
	"10us op cuCtxEnablePeerAccess duration=9us device=0 context=1 object=1 flags=2\n"
#define OTHER_ENABLED \
	"11us op cuCtxEnablePeerAccess duration=9us device=0 context=4 object=1 flags=2\n"
#define ENDED(call) "20us op " call "\n"

#define OTHER_PROCESS(calls) \
	"trace app.99 pid=99 program=\"app\"\nslot 1 tid=99\n1us thread tid=99 " \
	"name=\"app\"\n" calls

/* How long access lasts. */
static void test_peer_access_ends(void **state)
{
	static const char *const ends[] = {
		PEER_COPIES(ENABLED ENDED("cudaDeviceReset duration=9us object=0"), "peer",
			    "16777216"),
		PEER_COPIES(
			ENABLED ENDED("cuDevicePrimaryCtxReset_v2 duration=9us device=0 object=1"),
			"peer", "16777216"),
		PEER_COPIES(CTX_ENABLED ENDED("cuCtxDestroy_v2 duration=9us object=0xc1 flags=1"),
			    "peer", "16777216"),
		PEER_COPIES(CTX_ENABLED ENDED("cuCtxDestroy duration=9us object=0xc2 flags=2"),
			    "peer", "16777216"),
	};
	static const char *const lasts[] = {
		PEER_COPIES(ENABLED ENDED("cudaDeviceReset duration=9us object=2"), "peer",
			    "16777216"),
		PEER_COPIES(ENABLED ENDED("cudaDeviceReset duration=9us object=0 result=46"),
			    "peer", "16777216"),
		OTHER_PROCESS(ENDED("cudaDeviceReset duration=9us object=0"))
			PEER_COPIES(ENABLED, "peer", "16777216"),
		PEER_COPIES(CTX_ENABLED ENDED("cuCtxDestroy_v2 duration=9us object=0xc3 flags=3"),
			    "peer", "16777216"),
		PEER_COPIES(CTX_ENABLED OTHER_ENABLED ENDED(
				    "cuCtxDestroy_v2 duration=9us object=0xc1 flags=1"),
			    "peer", "16777216"),
		/* a recording that does not tell which context or GPU */
		PEER_COPIES(CTX_ENABLED ENDED("cuCtxDestroy_v2 duration=9us object=0xc1"), "peer",
			    "16777216"),
		PEER_COPIES(ENABLED ENDED("cudaDeviceReset duration=9us object=255"), "peer",
			    "16777216"),
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		json_t *root = report_on(ends[i]);

		assert_non_null(find(root, "staged-peer-copy"));
		json_decref(root);
	}
	for (i = 0; i < ARRAY_SIZE(lasts); i++)
		silent(lasts[i], "staged-peer-copy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_staged_peer_copy),
		cmocka_unit_test(test_access),
		cmocka_unit_test(test_peer_access_ends),
	};

	return RUN_WITH_FINDINGS(tests);
}
