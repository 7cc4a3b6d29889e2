/*
 * tests/unit/test_analyzer_findings_holder_calls.c: which call it is that keeps others out, where threads stall each
 * other, and for what reason there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "report_json.h"

#define MS 1000000

/*
 * Five times thread 103 (GPU 1) waits 15 ms for 101, which is in `longest` with a lock, for part of it in the
 * kernel module, and then 9 ms for 102, which is in cudaHostRegister (GPU 0 both).
 */
static json_t *stall_behind(const char *longest, const char *record)
{
	char *text = NULL;
	json_t *root;
	size_t size, i;
	FILE *log = open_memstream(&text, &size);

	fprintf(log, "trace app.100 pid=100 program=\"app\" probes=1\n");
	for (i = 0; i < 3; i++)
		fprintf(log,
			"slot %zu tid=%zu\n1us thread tid=%zu name=\"app\"\n"
			"2us launch cudaLaunchKernel duration=1us device=%d stream=0x%zu0\n",
			i + 1, 101 + i, 101 + i, i == 2, i + 1);
	for (i = 100; i <= 500; i += 100)
		fprintf(log,
			"slot 1\n%zums wait kind=ioctl fn=%s duration=8ms object=0x21 device=0\n"
			"%zums held kind=mutex fn=%s object=0x700 held=15ms\n"
			"%zuus %s duration=15020us device=0\n"
			"slot 2\n%zums held kind=mutex fn=cudaHostRegister object=0x800 held=20ms\n"
			"%zuus memory cudaHostRegister duration=20020us device=0 op=register "
			"kind=pinned bytes=4096 address=0x8000\n"
			"slot 3\n%zums wait kind=mutex fn=cudaEventCreate duration=15ms "
			"object=0x700 device=1 holder=101 holder_fn=%s holder_device=0\n"
			"%zums wait kind=mutex fn=cudaEventCreate duration=9ms object=0x800 "
			"device=1 holder=102 holder_fn=cudaHostRegister holder_device=0\n"
			"%zuus op cudaEventCreate duration=24020us device=1\n",
			i + 9, longest, i + 15, longest, 1000 * i + 15010, record, i + 24,
			1000 * i + 24010, i + 15, longest, i + 24, 1000 * i + 24010);
	fclose(log);
	root = report_on(text);
	free(text);
	return root;
}

static json_t *stall_of(const json_t *root)
{
	json_t *rows = json_object_get(root, "findings"), *row;
	size_t i;

	json_array_foreach(rows, i, row) if (!strcmp(json_string_value(json_object_get(row, "id")),
						     "cross-device-stall")) return row;
	fail_msg("no stall: %s", json_dumps(rows, 0));
	return NULL;
}

static void says(const json_t *finding, const char *key, const char *words)
{
	const char *text = json_string_value(json_object_get(finding, key));

	if (!text || !strstr(text, words))
		fail_msg("%s is '%s', not '%s'", key, text, words);
}

/* The call that kept them longest, though for two reasons, none of which outweighs the other call's. */
static void test_reasons_of_one_call(void **state)
{
	json_t *root = stall_behind("cudaMallocHost",
				    "memory cudaMallocHost op=alloc kind=pinned bytes=4096 "
				    "address=0x9000"),
	       *stall = stall_of(root);

	(void)state;
	says(stall, "function", "cudaMallocHost");
	says(stall, "what",
	     "75.00 ms of it while one of them was in cudaMallocHost (mostly the kernel module)");
	assert_in_range(json_integer_value(json_object_get(stall, "gain_high_ns")), 74 * MS,
			76 * MS);
	json_decref(root);
}

/* Nobody can free before the work. */
static void test_cure_of_frees(void **state)
{
	json_t *root =
		stall_behind("cudaFreeHost", "memory cudaFreeHost op=free kind=pinned bytes=4096 "
					     "address=0x9000");

	(void)state;
	says(stall_of(root), "fix", "keep what it frees and use it again");
	json_decref(root);
}

/* What each kind of call is good for says how others can be kept out less. */
static void test_cures(void **state)
{
	static const struct {
		const char *function, *record, *cure;
	} calls[] = {
		{"cudaFree", "memory cudaFree op=free kind=device address=0x9000",
		 "free it in the stream's order (cudaFreeAsync)"},
		{"cudaMemcpy", "copy cudaMemcpy direction=h2d src=pinned dst=device bytes=4096",
		 "Call cudaMemcpy less often: fewer, larger copies, of pinned memory."},
		{"cudaStreamSynchronize", "op cudaStreamSynchronize stream=0x10",
		 "Call cudaStreamSynchronize less often: wait once for the work of several calls, for "
		 "the one stream or event whose results are needed."},
		{"cudaEventSynchronize", "op cudaEventSynchronize object=0x99",
		 "Call cudaEventSynchronize less often: wait once"},
		{"cudaDeviceSynchronize", "call cudaDeviceSynchronize",
		 "Call cudaDeviceSynchronize less often: wait once"},
		{"cudaMallocAsync", "memory cudaMallocAsync op=alloc kind=device bytes=4096",
		 "let the pool keep what is freed (cudaMemPoolAttrReleaseThreshold)"},
		{"cudaLaunchKernel", "launch cudaLaunchKernel kernel=1 stream=0x10",
		 "Call cudaLaunchKernel less often: more work with each call, or a graph."},
		{"cudaStreamCreate", "op cudaStreamCreate stream=0x77",
		 "do it once, before the work, and use again what it makes."},
		{"cudaSetDevice", "call cudaSetDevice",
		 "Take cudaSetDevice out of the threads' loops: do it once, before the work."},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		json_t *root = stall_behind(calls[i].function, calls[i].record);

		says(stall_of(root), "function", calls[i].function);
		says(stall_of(root), "fix", calls[i].cure);
		json_decref(root);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons_of_one_call),
		cmocka_unit_test(test_cure_of_frees),
		cmocka_unit_test(test_cures),
	};

	return RUN_WITH_FINDINGS(tests);
}
