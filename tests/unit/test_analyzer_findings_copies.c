/*
 * tests/unit/test_analyzer_findings_copies.c: copies: pageable ones, staged or blocked, and small ones
 * that would batch. For each detector a log in which it speaks, and a near twin in which it is silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "story.h"

/* ---- waits that are needed, or that nobody minds ------------------------------------------------ */

/* A small copy to memory of that kind, and a wait for the stream behind it, again and again. */
static void tell_copy_and_wait(struct story *s, const char *from, const char *kind,
			       uint64_t copy_ns)
{
	char copy[128];
	int i;

	snprintf(copy, sizeof(copy),
		 "copy cudaMemcpyAsync %s dst=%s bytes=4096 stream=8 caller=0x13", from, kind);
	begin(s);
	for (i = 0; i < 50; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, copy_ns, copy);
		wait_for_stream(s, 2000, 0x20);
		if (copy_ns < MS) /* and one that has nothing to wait for */
			wait_for_stream(s, 2000, 0x21);
	}
	conclude(s);
}

static void test_wait_needed_when_pinned(void **state)
{
	struct story *s = *state;

	tell_copy_and_wait(s, "direction=d2h src=device", "pageable", MS);
	assert_non_null(found(s, "pageable-copy"));
	assert_null(found(s, "redundant-sync")); /* with the memory pinned it is needed */
	tell_copy_and_wait(s, "direction=h2h src=pinned", "pinned", MS);
	assert_non_null(found(s, "hidden-sync"));
	assert_null(found(s, "redundant-sync")); /* nor if the host copies itself */
	tell_copy_and_wait(s, "direction=d2h src=device", "pinned", 4000);
	assert_non_null(found(s, "redundant-sync"));
}

/* ---- small copies ---------------------------------------------------------------------------- */

struct copies_story {
	unsigned int rows, copies, bytes;
	const char *function, *how;
	bool launches_between;
};

static void tell_copies(struct story *s, const struct copies_story *t)
{
	unsigned int i, j;

	begin(s);
	for (i = 0; i < 20; i++) { /* what one of the whole costs */
		call(s, 1000, 9000, "copy %s %s bytes=%u stream=8 caller=0x41", t->function, t->how,
		     t->copies * t->bytes);
		wait_for_stream(s, 40000, 0x20);
	}
	for (i = 0; i < t->rows; i++) {
		for (j = 0; j < t->copies; j++) {
			call(s, 1000, 5000, "copy %s %s bytes=%u stream=8 caller=0x40", t->function,
			     t->how, t->bytes);
			if (t->launches_between)
				launch(s, 1000, 4000);
		}
		for (j = 0; j < 4; j++)
			launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
	}
	conclude(s);
}

/* Twenty rows of ten copies, of which one is shorter: still rows of ten. */
static void test_uneven_rows(void **state)
{
	struct story *s = *state;
	int i, j;

	begin(s);
	for (i = 0; i < 20; i++) {
		for (j = i ? 0 : 1; j < 10; j++)
			call(s, 1000, 5000,
			     "copy cudaMemcpyAsync direction=h2d src=pinned dst=device bytes=64 "
			     "stream=8 caller=0x40");
		for (j = 0; j < 4; j++)
			launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
	}
	conclude(s);
	says(found(s, "small-copies"), "20 times 10 copies in a row");
}

static void cures(json_t *finding, const char *text)
{
	const char *fix = json_string_value(json_object_get(finding, "fix"));

	if (!fix || !strstr(fix, text))
		fail_msg("no \"%s\" in: %s", text, fix ?: "no cure");
}

static void test_small_copies(void **state)
{
	static const char h2d[] = "direction=h2d src=pinned dst=device";
	static const struct copies_story silent[] = {
		{100, 8, 4096, "cudaMemcpyAsync", h2d, true},
		{100, 3, 4096, "cudaMemcpyAsync", h2d, false},
		{100, 8, 70000, "cudaMemcpyAsync", h2d, false},
		{100, 8, 4096, "cudaMemcpyAsync", "direction=d2d src=device dst=device", false},
	};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	tell_copies(s, &(struct copies_story){100, 8, 4096, "cudaMemcpyAsync", h2d, false});
	finding = only(s, "small-copies",
		       "100 times 8 copies in a row to the device, of 4.00 KiB each");
	cures(finding, "cudaMemcpyBatchAsync takes a list");
	/* Each row: 8 copies of 5 us, for which one of 9 us would do. */
	assert_in_range(number(finding, "cost_ns"), 100 * 30000, 100 * 32000);
	/* All of them are its calls: those with which a row begins, too. */
	assert_int_equal(number(finding, "count"), 800);
	assert_int_equal(number(finding, "bytes"), 800 * 4096);
	assert_in_range(number(finding, "total_ns"), 800 * 4900, 800 * 5100);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	tell_copies(s, &(struct copies_story){100, 4, 64, "cudaMemcpy",
					      "direction=d2h src=device dst=pageable", false});
	finding = found(s, "small-copies"); /* beside it, a synchronisation that is redundant */
	says(finding, "100 times 4 copies in a row to the host, of 64 B each");
	cures(finding, "copies of pageable memory wait for the GPU after a few");
	tell_copies(s, &(struct copies_story){100, 4, 64, "cudaMemcpy", h2d, false});
	cures(found(s, "small-copies"), "cudaMemcpy2D copies it in one call. Or hand");
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_copies(s, &silent[i]);
		nothing(s);
	}
	tell_copies(s, &(struct copies_story){4, 8, 4096, "cudaMemcpyAsync", h2d, false});
	assert_null(found(s, "small-copies"));
}

/* ---- staged or blocked ----------------------------------------------------------------------- */

static void tell_pageable(struct story *s, int blocked, uint64_t between_ns)
{
	int i;

	begin(s);
	for (i = 0; i < 20; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, i < blocked ? 9 * MS : 60000,
		     "copy cudaMemcpyAsync direction=h2d src=pageable dst=device bytes=1048576 "
		     "stream=8 caller=0x40");
		s->ns += between_ns;
		wait_for_stream(s, 90000, 0x20);
	}
	for (i = 0; i < 20; i++) {
		call(s, 1000, 60000,
		     "copy cudaMemcpyAsync direction=h2d src=pageable dst=device bytes=1048576 "
		     "stream=8 caller=0x41");
		wait_for_stream(s, 90000, 0x20);
	}
	conclude(s);
}

static json_t *at_place(const struct story *s, int64_t offset)
{
	json_t *finding;
	size_t i;

	json_array_foreach(s->findings, i, finding)
	{
		if (number(finding, "offset") == offset)
			return finding;
	}
	fail_msg("nothing found at %#llx in:\n%s", (unsigned long long)offset, s->shown);
	return NULL;
}

static void test_staged_or_blocked(void **state)
{
	struct story *s = *state;
	json_t *finding;

	tell_pageable(s, 0, 0);
	says(at_place(s, 0x40), "by way of a staging buffer, which the host fills");
	says(at_place(s, 0x40), "staged, not blocked");
	cures(at_place(s, 0x40), "For one copy alone it does not pay");
	tell_pageable(s, 5, 10 * MS);
	finding = at_place(s, 0x40);
	says(finding, "blocked by earlier work: 5 of them, for 44.64 ms; the others only staged");
	assert_int_equal(number(finding, "count"), 20);
	/* The staging is saved for sure, but for what handing a pinned copy over takes; the wait may only move. */
	assert_in_range(number(finding, "gain_low_ns"), 20 * 50000, 20 * 54000);
	assert_in_range(number(finding, "gain_high_ns"), 45 * MS, 47 * MS);
	says(at_place(s, 0x41), "staged, not blocked");
	/* It costs the same with a wait right behind it, but that would have waited, too: what is left is the
	 * staging, if the GPU was not behind. */
	tell_pageable(s, 5, 0);
	finding = at_place(s, 0x40);
	assert_in_range(number(finding, "cost_ns"), 45 * MS, 47 * MS);
	assert_in_range(number(finding, "gain_low_ns"), 0, 20 * 1000);
	assert_in_range(number(finding, "gain_high_ns"), 20 * 40000, 22 * 60000);
	tell_pageable(s, 20, 0);
	says(at_place(s, 0x40), "; blocked by earlier work: 20 of them, for ");
}

/* Copies blocked by earlier work for 2 ms each, at so many places, and a second's work of the host. */
static void tell_cuts(struct story *s, unsigned int places)
{
	unsigned int i, k;

	begin(s);
	for (k = 0; k < 20; k++) {
		launch(s, 1000, 4000);
		call(s, 1000, 60000,
		     "copy cudaMemcpyAsync direction=h2d src=pageable dst=device bytes=1048576 "
		     "stream=8 caller=0x40");
		wait_for_stream(s, 90000, 0x20);
	}
	for (i = 0; i < places; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, 2 * MS + i * 10000,
		     "copy cudaMemcpyAsync direction=h2d src=pageable dst=device bytes=1048576 "
		     "stream=8 caller=%#x",
		     0x1000 + 16 * i);
		s->ns += 10 * MS;
	}
	for (i = 0; i < 50; i++)
		launch(s, 20 * MS, 4000);
	conclude(s);
}

/* What costs little at each place is a note where it adds up. */
static void test_many_places(void **state)
{
	struct story *s = *state;
	json_t *finding;
	size_t i, notes = 0;

	tell_cuts(s, 1);
	json_array_foreach(s->findings, i, finding) assert_string_equal(
		json_string_value(json_object_get(finding, "severity")), "minor");
	tell_cuts(s, 8);
	json_array_foreach(s->findings, i, finding) notes +=
		!strcmp(json_string_value(json_object_get(finding, "severity")), "note");
	assert_int_equal(notes, 1);
	finding = at_place(s, 0x1000 + 16 * 7); /* the costliest */
	assert_int_equal(number(finding, "alike"), 8);
	assert_in_range(number(finding, "alike_ns"), 14 * MS, 16 * MS);
	assert_true(is_shown(s, finding));
	assert_non_null(strstr(s->shown, "each minor:"));
}

/* To pageable memory, each behind a kernel of 9 ms; then the host works, and makes the call `next`. */
static json_t *tell_fetching(struct story *s, uint64_t between_ns, const char *next)
{
	int i;

	begin(s);
	call(s, 1000, 9000, "op cudaStreamCreate object=8 caller=0x30");
	for (i = 0; i < 20; i++)
		call(s, 1000, 60000,
		     "copy cudaMemcpyAsync direction=d2h src=device dst=pageable bytes=1048576 "
		     "stream=8 caller=0x40");
	for (i = 0; i < 10; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, 9 * MS,
		     "copy cudaMemcpyAsync direction=d2h src=device dst=pageable bytes=1048576 "
		     "stream=8 caller=0x41");
		call(s, 1000, 3000, "op cudaEventRecord stream=8 object=0x70 caller=0x42");
		call(s, between_ns, 5000, "%s", next);
	}
	conclude(s);
	return at_place(s, 0x41);
}

static void test_wait_behind_pageable(void **state)
{
	static const char *const anyway[] = {
		"op cudaStreamSynchronize stream=8 caller=0x20",
		"op cudaEventSynchronize object=0x70 caller=0x20",
		"call cudaDeviceSynchronize caller=0x20",
		"copy cudaMemcpy direction=h2d src=pinned dst=device bytes=4096 stream=1 "
		"caller=0x20",
		"memory cudaFree op=free kind=device bytes=4096 address=0x9 caller=0x20",
	};
	static const char *const no_wait[] = {
		"op cudaStreamSynchronize stream=9 caller=0x20",
		"op cudaEventSynchronize object=0x71 caller=0x20",
		"call cudaDeviceSynchronize device=1 caller=0x20",
		"launch cudaLaunchKernel kernel=1 stream=8 caller=0x20",
	};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(anyway); i++) {
		finding = tell_fetching(s, 1000, anyway[i]);
		assert_in_range(number(finding, "cost_ns"), 89 * MS, 90 * MS);
		assert_in_range(number(finding, "gain_low_ns"), 0, 10 * 6000);
		assert_in_range(number(finding, "gain_high_ns"), 10 * 50000, 10 * 70000);
		/* There was something else to do: the wait was in its way. */
		finding = tell_fetching(s, 20 * MS, anyway[i]);
		assert_in_range(number(finding, "cost_ns"), 89 * MS, 90 * MS);
		assert_in_range(number(finding, "gain_low_ns"), 10 * 50000, 10 * 60000);
		assert_int_equal(number(finding, "gain_high_ns"), number(finding, "cost_ns"));
		/* In part. */
		finding = tell_fetching(s, 3 * MS, anyway[i]);
		assert_in_range(number(finding, "gain_high_ns"), 30 * MS, 31 * MS);
	}
	for (i = 0; i < ARRAY_SIZE(no_wait); i++) {
		finding = tell_fetching(s, 1000, no_wait[i]);
		assert_int_equal(number(finding, "gain_high_ns"), number(finding, "cost_ns"));
	}
}

/* What the thread hands over between the copy and the wait is time that passes, by whichever way the analyzer takes
 * such calls in: with hundreds before them it is the short one (fast_path.h). */
static void test_launches_behind_pageable(void **state)
{
	struct story *s = *state;
	unsigned int launches, i, j;
	json_t *finding;

	for (launches = 0; launches < 4; launches++) {
		begin(s);
		for (i = 0; i < 200; i++) {
			launch(s, 1000, 4000);
			if (i % 10 == 9)
				wait_for_stream(s, 90000, 0x20);
		}
		for (i = 0; i < 10; i++) {
			launch(s, 1000, 4000);
			call(s, 1000, 9 * MS,
			     "copy cudaMemcpyAsync direction=d2h src=device dst=pageable "
			     "bytes=4096 stream=8 caller=0x41");
			for (j = 0; j < launches; j++)
				launch(s, MS, 4000);
			wait_for_stream(s, 90000, 0x20);
		}
		conclude(s);
		finding = at_place(s, 0x41);
		assert_in_range(number(finding, "cost_ns"), 89 * MS, 90 * MS);
		assert_in_range(number(finding, "gain_high_ns"), 10 * launches * MS,
				10 * launches * MS + MS);
	}
}

/* ---- copies between GPUs --------------------------------------------------------------------- */

/* None takes longer than the others, and all kinds of functions make them. */
static void test_peer_copies(void **state)
{
	static const char *const functions[] = {"cudaMemcpyPeer",   "cudaMemcpyPeerAsync",
						"cudaMemcpy3DPeer", "cudaMemcpy3DPeerAsync",
						"cuMemcpy3DPeer",   "cuMemcpy3DPeerAsync"};
	struct story *s = *state;
	json_t *finding;
	size_t i;
	int j;

	for (i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		begin(s);
		for (j = 0; j < 20; j++)
			call(s, 10000, 4000,
			     "copy %s form=peer direction=d2d src=device dst=device src_device=0 "
			     "dst_device=1 bytes=1048576 stream=8 device=0 caller=0x30",
			     functions[i]);
		conclude(s);
		only(s, "staged-peer-copy", "20 calls copied 20.0 MiB from GPU 0 to GPU 1");
	}
	begin(s); /* any function may, and large copies take the host's time */
	for (j = 0; j < 20; j++) {
		call(s, 10000, MS,
		     "copy cudaMemcpyAsync direction=d2d src=device dst=device src_device=0 "
		     "dst_device=1 bytes=67108864 stream=8 device=0 caller=0x30");
		call(s, 10000, 4000,
		     "copy cudaMemcpyAsync direction=d2d src=device dst=device src_device=0 "
		     "dst_device=0 bytes=67108864 stream=8 device=0 caller=0x31");
		wait_for_stream(s, 90000, 0x20);
	}
	conclude(s);
	finding = found(s, "staged-peer-copy");
	says(finding, "20 calls copied 1.25 GiB from GPU 0 to GPU 1");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "problem");
	assert_in_range(number(finding, "cost_ns"), 19 * MS, 20 * MS);
	begin(s); /* behind kernels: what they take is not the copies' */
	for (j = 0; j < 20; j++) {
		launch(s, 1000, 4000);
		call(s, 10000, 50 * MS,
		     "copy cudaMemcpyPeerAsync form=peer direction=d2d src=device dst=device "
		     "src_device=0 dst_device=1 bytes=1048576 stream=8 device=0 caller=0x30");
		wait_for_stream(s, 4000, 0x20);
	}
	conclude(s);
	assert_in_range(number(found(s, "staged-peer-copy"), "cost_ns"), 0, 5 * MS);
}

/* A ring of six GPUs: one place, one finding. */
static void test_peer_copies_of_a_ring(void **state)
{
	struct story *s = *state;
	int i;

	begin(s);
	for (i = 0; i < 60; i++)
		call(s, 10000, 4000,
		     "copy cudaMemcpyPeerAsync form=peer direction=d2d src=device dst=device "
		     "src_device=%d dst_device=%d bytes=1048576 stream=8 device=0 caller=0x30",
		     i % 6, (i + 1) % 6);
	conclude(s);
	only(s, "staged-peer-copy",
	     "60 calls copied 60.0 MiB from GPU 0 to GPU 1, 1 to 2, 2 to 3, 3 to 4 and 2 more "
	     "ways, neither of which");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY_TEST(test_wait_needed_when_pinned),
		STORY_TEST(test_small_copies),
		STORY_TEST(test_uneven_rows),
		STORY_TEST(test_staged_or_blocked),
		STORY_TEST(test_many_places),
		STORY_TEST(test_wait_behind_pageable),
		STORY_TEST(test_launches_behind_pageable),
		STORY_TEST(test_peer_copies),
		STORY_TEST(test_peer_copies_of_a_ring),
	};

	return RUN_WITH_FINDINGS(tests);
}
