/*
 * tests/unit/test_analyzer_findings_legacy.c: work in the legacy default stream, for which other streams wait. A log in which the
 * detector speaks, and near twins in which it is silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "log_findings.h"

/* Thirty rounds of a kernel in a stream and one in the default stream; a call between them. */
static void default_stream(struct log *log, unsigned int flags, unsigned int stream,
			   const char *between)
{
	unsigned int i;

	log->used = 0;
	add(log,
	    "trace app.100 pid=100 program=\"app\"\n"
	    "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
	    "10us op cudaStreamCreateWithFlags duration=5us device=0 flags=%u object=0x10\n",
	    flags);
	for (i = 1; i <= 30; i++)
		add(log,
		    "%u0us launch cudaLaunchKernel duration=3us device=0 stream=0x10 "
		    "caller=0x4010\n"
		    "%u5us %s duration=1us device=0\n"
		    "%u9us launch cudaLaunchKernel duration=3us device=0 stream=%u caller=0x4020\n",
		    10 + i, 10 + i, between, 10 + i, stream);
	add(log, "1ms op cudaDeviceSynchronize duration=10us device=0\n");
}

static void test_legacy_stream(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	default_stream(&log, 0, 1, "call cudaGetLastError");
	root = report_on(log.text);
	finding = find(root, "legacy-stream");
	assert_non_null(finding);
	says(finding, "severity", "note");
	says(finding, "what",
	     "59 times work in the legacy default stream of GPU 0, mostly by "
	     "cudaLaunchKernel, and work in 1 other stream");
	assert_int_equal(number(finding, "count"), 59);
	assert_int_equal(number(finding, "offset"), 0x4020);
	says(finding, "fix", "cudaStreamNonBlocking");
	json_decref(root);

	default_stream(&log, 1, 1, "call cudaGetLastError"); /* non-blocking */
	silent(log.text, "legacy-stream");
	default_stream(&log, 0, 2, "call cudaGetLastError"); /* the thread's own default stream */
	silent(log.text, "legacy-stream");
	default_stream(&log, 0, 0x10, "call cudaGetLastError"); /* one stream only */
	silent(log.text, "legacy-stream");
	/* What is waited for in between is in nobody's way; half of the turns are left: the stream's
	 * behind the default stream's. */
	default_stream(&log, 0, 1, "op cudaStreamSynchronize stream=0x10");
	root = report_on(log.text);
	finding = find(root, "legacy-stream");
	assert_int_equal(number(finding, "count"), 29);
	says(finding, "what", "mostly by cudaLaunchKernel, and work in 1 other stream had");
	assert_int_equal(number(finding, "offset"), 0x4020);
	json_decref(root);
}

/* Several places hand work to the default stream: the one that does most of it is named, in whatever order they do. */
static void test_legacy_most(void **state)
{
	static const struct {
		const char *rounds; /* digits of the place, again and again */
		int64_t place;
	} cases[] = {{"112", 0x4010}, {"211", 0x4010},   {"121", 0x4010},
		     {"122", 0x4020}, {"11222", 0x4020}, {"33311222222", 0x4020}};
	static struct log log;
	unsigned int us;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *root;

		log.used = 0;
		add(&log, "trace app.100 pid=100 program=\"app\"\n"
			  "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
			  "10us op cudaStreamCreate duration=5us device=0 object=0x10\n");
		us = 100;
		for (unsigned int k = 0; k < 6; k++)
			for (const char *place = cases[i].rounds; *place; place++, us += 10)
				add(&log,
				    "%uus launch cudaLaunchKernel duration=3us device=0 stream=0x10 caller=0x5000\n"
				    "%uus launch cudaLaunchKernel duration=3us device=0 stream=1 caller=0x40%c0\n",
				    us, us + 4, *place);
		add(&log, "%uus op cudaDeviceSynchronize duration=1us device=0\n", us);
		root = report_on(log.text);
		assert_int_equal(number(find(root, "legacy-stream"), "offset"), cases[i].place);
		json_decref(root);
	}
}

/* So many rounds of a kernel in a stream and one in the default stream, so far apart; behind a pause, so many kernels in
 * the stream. How many turns are told; 0: none. */
static int64_t turns_told(unsigned int rounds, unsigned int apart_us, unsigned int pause_us,
			  unsigned int more)
{
	static struct log log;
	unsigned int i, us = 100;
	json_t *root, *finding;
	int64_t turns;

	log.used = 0;
	add(&log, "trace app.100 pid=100 program=\"app\"\n"
		  "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
		  "10us op cudaStreamCreate duration=5us device=0 object=0x10\n");
	for (i = 0; i < rounds; i++, us += apart_us)
		add(&log,
		    "%uus launch cudaLaunchKernel duration=3us device=0 stream=0x10\n"
		    "%uus launch cudaLaunchKernel duration=3us device=0 stream=1\n",
		    us, us + 4);
	add(&log, "%uus op cudaDeviceSynchronize duration=1us device=0\n", us);
	us += pause_us;
	for (i = 0; i < more; i++, us += 10)
		add(&log, "%uus launch cudaLaunchKernel duration=3us device=0 stream=0x10\n", us);
	root = report_on(log.text);
	finding = find(root, "legacy-stream");
	turns = finding ? number(finding, "count") : 0;
	json_decref(root);
	return turns;
}

/* Ten turns and more, over four tenths of the work or of its time. */
static void test_legacy_spread(void **state)
{
	(void)state;
	assert_int_equal(turns_told(5, 20, 1000, 0), 0);
	assert_int_equal(turns_told(6, 20, 1000, 0), 11);
	/* 58 of 60 to 360 submissions, in a small part of the time ... */
	assert_int_equal(turns_told(30, 20, 100000, 70), 59);
	assert_int_equal(turns_told(30, 20, 100000, 100), 0);
	/* ... and in a large part: 29 of 33, 29 of 71, 29 of 77 ms. */
	assert_int_equal(turns_told(30, 1000, 10, 300), 59);
	assert_int_equal(turns_told(30, 1000, 38000, 300), 59);
	assert_int_equal(turns_told(30, 1000, 44000, 300), 0);
}

/* A runtime that was linked to the program makes all calls at one place: stacks of the last ones tell where they come
 * from. */
static void test_legacy_lines(void **state)
{
	static struct log log;
	unsigned int i;
	json_t *root;

	(void)state;
	log.used = 0;
	add(&log, "trace app.100 pid=100 program=\"app\"\n"
		  "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
		  "2us python_code code=1 first_line=1 file=\"/u/warm.py\" function=\"warm\"\n"
		  "2us python_code code=2 first_line=1 file=\"/u/train.py\" function=\"step\"\n"
		  "10us op cudaStreamCreate duration=5us device=0 object=0x10\n");
	for (i = 1; i <= 30; i++)
		add(&log,
		    "%u0us launch cuLaunchKernel duration=3us device=0 stream=0x10 caller=0x4010\n"
		    "%u9us stack fn=cuLaunchKernel why=16 frames=0x4020\n"
		    "%u9us python_stack fn=cuLaunchKernel lines=%s\n"
		    "%u9us launch cuLaunchKernel duration=3us device=0 stream=1 caller=0x4020\n",
		    10 + i, 10 + i, 10 + i,
		    i == 1       ? "1:11"
		    : i % 4 == 0 ? "2:13"
				 : "2:12",
		    10 + i);
	add(&log, "1ms op cudaDeviceSynchronize duration=10us device=0\n");
	root = report_on(log.text);
	says(find(root, "legacy-stream"), "python",
	     "from Python: train.py:12 in step; also train.py:13 in step");
	json_decref(root);
}

/* A copy that waits, behind the stream of its own thread, is what somebody wants; behind another
 * thread's it is not. */
static void test_legacy_copies(void **state)
{
#define LAUNCH "launch cudaLaunchKernel duration=3us device=0 stream=0x10\n"
#define COPY \
	"copy cudaMemcpy duration=3us device=0 stream=1 direction=d2h src=device dst=pinned " \
	"bytes=64\n"
	static struct log log;
	json_t *root;
	unsigned int other, i;

	(void)state;
	for (other = 0; other < 2; other++) {
		log.used = 0;
		add(&log, "trace app.100 pid=100 program=\"app\"\n"
			  "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
			  "10us op cudaStreamCreate duration=5us device=0 object=0x10\n");
		for (i = 1; i <= 30; i++) {
			add(&log, "%u0us " LAUNCH, 10 + i);
			if (!other) /* in the order of time, in one slot */
				add(&log, "%u5us " COPY, 10 + i);
		}
		if (other)
			add(&log, "slot 2 tid=102\n1us thread tid=102 name=\"app\"\n");
		for (i = 1; other && i <= 30; i++)
			add(&log, "%u5us " COPY, 10 + i);
		root = report_on(log.text);
		if (other)
			assert_int_equal(number(find(root, "legacy-stream"), "count"), 30);
		else
			assert_null(find(root, "legacy-stream"));
		json_decref(root);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_legacy_stream), cmocka_unit_test(test_legacy_most),
		cmocka_unit_test(test_legacy_spread), cmocka_unit_test(test_legacy_lines),
		cmocka_unit_test(test_legacy_copies),
	};

	return RUN_WITH_FINDINGS(tests);
}
