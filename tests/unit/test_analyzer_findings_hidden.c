/*
 * tests/unit/test_analyzer_findings_hidden.c: calls that wait for the GPU without saying so, and the
 * waits behind them. For each detector a log in which it speaks, and a near twin in which it is silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "story.h"

/* A program that frees memory while the GPU is idle: so long does it take. */
static void begin_with_frees(struct story *s)
{
	int i;

	begin(s);
	for (i = 0; i < 20; i++) {
		call(s, 1000, 8000,
		     "memory cudaFree op=free kind=device bytes=4096 address=0x9 caller=0x50");
		launch(s, 1000, 4000);
		wait_for_stream(s, 40000, 0x20);
	}
}

/* Frees memory while the GPU works; more: and works on after that. */
static void tell_free(struct story *s, bool more)
{
	begin_with_frees(s);
	launch(s, 1000, 4000);
	call(s, 1000, 100 * MS,
	     "memory cudaFree op=free kind=device bytes=4096 address=0x9 caller=0x51");
	if (more)
		launch(s, 1000, 4000);
	conclude(s);
}

static void test_free_at_the_end(void **state)
{
	struct story *s = *state;

	tell_free(s, true);
	says(found(s, "hidden-sync"), "1 call waited for the GPU for 99.99");
	tell_free(s, false);
	assert_null(found(s, "hidden-sync"));
}

/* Each is told what helps against such a call. */
static void test_cures(void **state)
{
	static const struct {
		const char *call, *cure;
	} cases[] = {
		{"memory cudaFree op=free kind=device bytes=4096 address=0x9", "cudaFreeAsync"},
		{"call cudaDeviceSetLimit", "Set limits once"},
		{"copy cudaMemcpyAsync bytes=4096 direction=h2h src=pinned dst=pinned stream=8",
		 "memcpy where"},
	};
	struct story *s = *state;
	const char *fix;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(s);
		launch(s, 1000, 4000);
		call(s, 1000, 100 * MS, "%s caller=0x51", cases[i].call);
		launch(s, 1000, 4000);
		conclude(s);
		fix = json_string_value(json_object_get(found(s, "hidden-sync"), "fix"));
		if (!fix || !strstr(fix, cases[i].cure))
			fail_msg("%s: '%s'", cases[i].call, fix ?: "nothing found");
	}
}

/* ---- a wait behind a hidden one -------------------------------------------------------------- */

struct behind_story {
	const char *before; /* handed over before the free; NULL nothing */
	uint64_t between_ns;
	const char *between; /* a call behind the free; NULL none */
	const char *next;
};

/* Frees that wait for a kernel of 9 ms; then the host works, and makes the call `next`. */
static json_t *tell_freeing(struct story *s, const struct behind_story *t)
{
	int i;

	begin_with_frees(s);
	call(s, 1000, 9000, "op cudaStreamCreate object=8 caller=0x30");
	for (i = 0; i < 10; i++) {
		launch(s, 1000, 4000);
		if (t->before)
			call(s, 1000, 4000, "%s", t->before);
		call(s, 1000, 9 * MS,
		     "memory cudaFree op=free kind=device bytes=4096 address=0x9 caller=0x51");
		if (t->between)
			call(s, 1000, 5000, "%s", t->between);
		call(s, t->between_ns, 5000, "%s", t->next);
	}
	launch(s, 1000, 4000);
	conclude(s);
	return found(s, "hidden-sync");
}

static bool has_severity(json_t *finding, const char *severity)
{
	return !strcmp(json_string_value(json_object_get(finding, "severity")), severity);
}

#define SYNC_8 "op cudaStreamSynchronize stream=8 caller=0x20"
#define LAUNCH_9 "launch cudaLaunchKernel kernel=1 stream=9 caller=0x11"
#define RECORD_8 "op cudaEventRecord stream=8 object=0x70 caller=0x42"
#define SYNC_EVENT "op cudaEventSynchronize object=0x70 caller=0x20"

static void test_wait_behind_hidden(void **state)
{
	static const struct behind_story anyway[] = {
		{.next = SYNC_8},
		{.next = "call cudaDeviceSynchronize caller=0x20"},
		{.before = LAUNCH_9, .next = "call cudaDeviceSynchronize caller=0x20"},
		{.between = RECORD_8, .next = SYNC_EVENT},
		{.before = RECORD_8, .next = SYNC_EVENT},
		{.next = "copy cudaMemcpy direction=d2h src=device dst=pageable bytes=4096 "
			 "stream=1 caller=0x20"},
		/* that all frees go is the cure */
		{.between = "memory cudaFree op=free kind=device bytes=4096 address=0x9 "
			    "caller=0x52",
		 .next = SYNC_8},
	};
	static const struct behind_story not_sure[] = {
		{.before = LAUNCH_9, .next = SYNC_8}, /* several were busy */
		{.before = LAUNCH_9, .next = "op cudaStreamSynchronize caller=0x20"},
		{.next = "op cudaStreamSynchronize stream=9 caller=0x20"},
		{.next = "call cudaDeviceSynchronize device=1 caller=0x20"},
		{.between = LAUNCH_9, .next = SYNC_8}, /* they would have worked at a time */
		{.next = "launch cudaLaunchKernel kernel=1 stream=8 caller=0x20"},
		{.next = "op cudaEventSynchronize object=0x71 caller=0x20"},
	};
	struct story *s = *state;
	struct behind_story t;
	json_t *finding;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(anyway); i++) {
		t = anyway[i];
		t.between_ns = 1000;
		finding = tell_freeing(s, &t);
		assert_in_range(number(finding, "cost_ns"), 89 * MS, 90 * MS);
		assert_int_equal(number(finding, "gain_low_ns"), 0);
		assert_in_range(number(finding, "gain_high_ns"), 10 * 1000, 10 * 20000);
		says(finding, "the thread would have waited right behind them, in any case");
		assert_true(has_severity(finding, "note"));
		/* In part. */
		t.between_ns = 3 * MS;
		finding = tell_freeing(s, &t);
		assert_in_range(number(finding, "gain_high_ns"), 30 * MS, 31 * MS);
		assert_true(has_severity(finding, "problem"));
		/* There was something else to do: the wait was in its way. */
		t.between_ns = 20 * MS;
		finding = tell_freeing(s, &t);
		assert_int_equal(number(finding, "gain_high_ns"), number(finding, "cost_ns"));
		assert_null(strstr(what(finding), "in any case"));
	}
	for (i = 0; i < ARRAY_SIZE(not_sure); i++) {
		t = not_sure[i];
		t.between_ns = 1000;
		finding = tell_freeing(s, &t);
		assert_in_range(number(finding, "cost_ns"), 89 * MS, 90 * MS);
		if (number(finding, "gain_high_ns") != number(finding, "cost_ns"))
			fail_msg("not sure %zu: %s", i, s->shown);
		assert_true(has_severity(finding, "problem"));
	}
}

/* Two frees in a row: of the first one alone the second would take the wait over, of both nobody. */
static void test_frees_in_a_row(void **state)
{
	struct story *s = *state;
	json_t *finding = tell_freeing(
		s, &(struct behind_story){
			   .between_ns = 1000,
			   .between = "memory cudaFree op=free kind=device bytes=4096 "
				      "address=0x9 caller=0x52",
			   .next = "launch cudaLaunchKernel kernel=1 stream=8 caller=0x20"});

	assert_int_equal(number(finding, "gain_high_ns"), number(finding, "cost_ns"));
}

/* Another thread hands work over while a free waits: what would have been without that, nobody knows. */
static void test_work_during_free(void **state)
{
	struct story *s = *state;
	json_t *finding;

	begin_with_frees(s);
	launch(s, 1000, 4000);
	call(s, 1000, 9 * MS,
	     "memory cudaFree op=free kind=device bytes=4096 address=0x9 caller=0x51");
	call(s, 1000, 6 * MS, "call cudaDeviceSynchronize caller=0x22");
	launch(s, 1000, 4000);
	fprintf(s->log, "slot 2 tid=8\n1us thread tid=8 name=\"b\"\n");
	s->ns -= 10 * MS;
	call(s, 0, 4000, LAUNCH_9);
	conclude(s);
	finding = found(s, "hidden-sync");
	assert_in_range(number(finding, "cost_ns"), 8 * MS, 9 * MS);
	assert_int_equal(number(finding, "gain_high_ns"), number(finding, "cost_ns"));
}

/* ---- streams for which the default one does not wait ------------------------------------------ */

/* A blocking copy in the default stream between kernels in another one, made with those flags, and a call that waits
 * for them, if it has to. */
static void tell_copy_between(struct story *s, unsigned int flags, const char *next, uint64_t ns)
{
	int i;

	begin_with_frees(s);
	call(s, 1000, 9000, "op cudaStreamCreateWithFlags object=8 flags=%u caller=0x30", flags);
	for (i = 0; i < 20; i++) {
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		call(s, 1000, flags ? 5000 : 9 * MS,
		     "copy cudaMemcpy direction=h2d src=pinned dst=device bytes=4096 stream=1 "
		     "caller=0x13");
		call(s, MS, ns, "%s", next);
	}
	launch(s, 1000, 4000);
	conclude(s);
}

static void test_streams_apart(void **state)
{
	static const char sync[] = "op cudaStreamSynchronize stream=8 caller=0x21";
	static const char release[] =
		"memory cudaFree op=free kind=device bytes=4096 address=0x9 caller=0x51";
	struct story *s = *state;

	tell_copy_between(s, 0, sync, 2000);
	says(found(s, "redundant-sync"),
	     "20 calls had nothing to wait for: the stream has been given no work");
	tell_copy_between(s, 1, sync, 2000); /* the kernels had ended meanwhile, by chance */
	assert_null(found(s, "redundant-sync"));
	tell_copy_between(s, 0, release, 8000);
	assert_null(found(s, "hidden-sync"));
	tell_copy_between(s, 1, release, 9 * MS);
	says(found(s, "hidden-sync"), "20 calls waited for the GPU for 179.8");
}

/* ---- streams that wait for each other --------------------------------------------------------- */

/* The thread waits for one stream, and then frees memory, and waits for another one, which never took long. That one's
 * work comes before an event for which the first one waits, or does not. */
static void tell_two_streams(struct story *s, const char *event)
{
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		call(s, 1000, 4000, "launch cudaLaunchKernel kernel=1 stream=9 caller=0x11");
		call(s, 1000, 1000, "op cudaEventRecord stream=9 object=0x90 caller=0x12");
		call(s, 1000, 1000, "op cudaStreamWaitEvent stream=8 object=%s caller=0x13", event);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
		call(s, 1000, 400000,
		     "memory cudaFree op=free kind=device bytes=4096 address=0x9 caller=0x51");
		call(s, 1000, 1000, "op cudaStreamSynchronize stream=9 caller=0x21");
	}
	conclude(s);
}

static void test_streams_behind(void **state)
{
	struct story *s = *state;

	tell_two_streams(s, "0x91"); /* another event */
	assert_non_null(found(s, "hidden-sync"));
	tell_two_streams(s, "0x90");
	assert_null(found(s, "hidden-sync")); /* so long does it take */
	says(found(s, "steady-state"), "calls about device memory");
}

/* Changes a limit behind a launch, which half of the times takes long: it waits for that, if the work is known not to
 * be done. */
static void change_limit(struct story *s, int i)
{
	call(s, 1000, i < 50 ? 9000 : 900000, "call cudaDeviceSetLimit caller=0x50");
	launch(s, 1000, 4000);
	wait_for_stream(s, 90000, 0x20);
}

/* A capture is over when its stream is another one, although nobody told its end: what others that took part in it
 * are given is work again. */
static void test_capture_given_up(void **state)
{
	struct story *s = *state;
	int i;

	begin(s);
	call(s, 1000, 2000, "op cudaStreamBeginCapture stream=9 caller=0x60");
	call(s, 1000, 2000, "op cudaEventRecord stream=9 object=0x90 caller=0x61");
	call(s, 1000, 2000, "op cudaStreamWaitEvent stream=8 object=0x90 caller=0x62");
	call(s, 1000, 2000, "op cudaStreamDestroy object=9 caller=0x63");
	call(s, 1000, 2000, "op cudaStreamCreate object=9 caller=0x64");
	for (i = 0; i < 100; i++) {
		launch(s, 1000, 4000);
		change_limit(s, i);
	}
	conclude(s);
	assert_non_null(found(s, "hidden-sync"));
}

/* An event that was destroyed stands for nothing any more, nor does one made in its place: to wait for it is to wait
 * for none of the stream's work, for which the changed limit then waits. */
static void test_event_made_again(void **state)
{
	struct story *s = *state;
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, 2000, "op cudaEventRecord stream=8 object=0x90 caller=0x61");
		call(s, 1000, 2000, "op cudaEventDestroy object=0x90 caller=0x62");
		call(s, 1000, 2000, "op cudaEventCreate object=0x90 caller=0x63");
		call(s, 1000, 2000, "op cudaEventSynchronize object=0x90 caller=0x64");
		change_limit(s, i);
	}
	conclude(s);
	assert_non_null(found(s, "hidden-sync"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY_TEST(test_free_at_the_end),    STORY_TEST(test_cures),
		STORY_TEST(test_wait_behind_hidden), STORY_TEST(test_frees_in_a_row),
		STORY_TEST(test_work_during_free),   STORY_TEST(test_streams_apart),
		STORY_TEST(test_streams_behind),     STORY_TEST(test_event_made_again),
		STORY_TEST(test_capture_given_up),
	};

	return RUN_WITH_FINDINGS(tests);
}
