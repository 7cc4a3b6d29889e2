/*
 * tests/unit/test_analyzer_findings.c: what is found in the calls of readable logs: for each detector a
 * log in which it speaks, and a near twin in which it is silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>
#include "cmd_report.h"
#include "render.h"
#include "scratch.h"
#include "trace_text.h"

#define MS 1000000

/* A log in the making: lines of the thread 7, whose clock is `ns`. */
struct story {
	char *dir, path[256], *text;
	size_t size;
	FILE *log;
	uint64_t ns;
	json_t *findings, *root;
	char *shown; /* the text report */
	unsigned int told; /* stories before */
};

static int setup(void **state)
{
	struct story *s = calloc(1, sizeof(*s));

	s->dir = scratch_make();
	snprintf(s->path, sizeof(s->path), "%s/log", s->dir);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct story *s = *state;

	json_decref(s->root);
	free(s->shown);
	scratch_remove(s->dir);
	free(s);
	return 0;
}

static void begin(struct story *s)
{
	s->log = open_memstream(&s->text, &s->size);
	s->ns = 1000;
	fprintf(s->log,
		"trace a.%u pid=1 program=\"a\" boot_id=b clock_source=tsc\nslot 1 tid=7\n"
		"1us thread tid=7 name=\"a\"\n"
		"1us kernel kernel=1 name=\"first\"\n1us kernel kernel=2 name=\"second\"\n",
		++s->told);
}

/* A call of so many nanoseconds, after a pause. */
__attribute__((format(printf, 4, 5))) static void call(struct story *s, uint64_t pause_ns,
						       uint64_t ns, const char *format, ...)
{
	va_list arguments;

	s->ns += pause_ns + ns;
	fprintf(s->log, "%lluns ", (unsigned long long)s->ns);
	va_start(arguments, format);
	vfprintf(s->log, format, arguments);
	va_end(arguments);
	fprintf(s->log, " duration=%lluns\n", (unsigned long long)ns);
}

static void launch(struct story *s, uint64_t pause_ns, uint64_t ns)
{
	call(s, pause_ns, ns, "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10");
}

static void wait_for_stream(struct story *s, uint64_t ns, unsigned int caller)
{
	call(s, 1000, ns, "op cudaStreamSynchronize stream=8 caller=%#x", caller);
}

static char *rendered(const struct story *s, const char *format)
{
	struct report_options options = {.renderer = renderer_find(format)};
	char path[512], *text = NULL;
	const char *dirs[] = {path};
	size_t size;
	FILE *out = open_memstream(&text, &size);

	snprintf(path, sizeof(path), "%s/a.%u", s->dir, s->told);
	assert_int_equal(report_show(dirs, 1, NULL, &options, out), 0);
	fclose(out);
	return text;
}

static void conclude(struct story *s)
{
	char *text;

	fclose(s->log);
	scratch_write(s->path, s->text, s->size);
	free(s->text);
	tt_make(s->path, s->dir);
	json_decref(s->root);
	free(s->shown);
	text = rendered(s, "json");
	s->root = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(s->root);
	s->findings = json_object_get(s->root, "findings");
	s->shown = rendered(s, "text");
}

static json_t *found(const struct story *s, const char *id)
{
	json_t *finding, *one = NULL;
	size_t i;

	json_array_foreach(s->findings, i, finding)
	{
		if (strcmp(json_string_value(json_object_get(finding, "id")), id))
			continue;
		if (one)
			fail_msg("%s: more than one finding", id);
		one = finding;
	}
	return one;
}

static int64_t number(json_t *finding, const char *key)
{
	return json_integer_value(json_object_get(finding, key));
}

static const char *what(json_t *finding)
{
	return json_string_value(json_object_get(finding, "what"));
}

static void says(json_t *finding, const char *text)
{
	assert_non_null(finding);
	if (!strstr(what(finding), text))
		fail_msg("says '%s', not '%s'", what(finding), text);
}

/* Nothing else than this; it says this; and the text report shows it, or leaves it out. */
static json_t *only(const struct story *s, const char *id, const char *text)
{
	json_t *finding = found(s, id);

	if (!finding || json_array_size(s->findings) != 1)
		fail_msg("%s alone expected in:\n%s", id, s->shown);
	says(finding, text);
	return finding;
}

static void nothing(const struct story *s)
{
	if (json_array_size(s->findings))
		fail_msg("nothing expected in:\n%s", s->shown);
}

static bool is_shown(const struct story *s, json_t *finding)
{
	return strstr(s->shown, json_string_value(json_object_get(finding, "title"))) != NULL;
}

/* ---- synchronisation after every launch ------------------------------------------------------ */

struct sync_story {
	const char *copy; /* beside each launch; NULL none */
	const char *work; /* handed over beside it; NULL nothing */
	uint64_t pause_ns, kernel_ns;
	unsigned int launches, places; /* of waits, in turns; 0: one */
	unsigned int others; /* launches before every second wait; 0: as before the first */
	bool managed, ahead;
};

static void tell_syncs(struct story *s, const struct sync_story *t)
{
	int i;
	unsigned int j;

	begin(s);
	if (t->managed)
		call(s, 0, 20000,
		     "memory cudaMallocManaged op=alloc kind=managed bytes=4096 address=0x9");
	for (i = 0; i < 10; i++) /* what launches and synchronisations cost alone */
		launch(s, 1000, 4000);
	wait_for_stream(s, 40000, 0x20);
	for (i = 0; i < 1000; i++) {
		if (t->ahead)
			call(s, 100, 1000, "launch cudaLaunchKernel kernel=1 stream=9 caller=0x11");
		for (j = 0; j < (i % 2 && t->others ? t->others : t->launches); j++)
			launch(s, t->pause_ns, 4000);
		if (t->copy)
			call(s, 500, 2000,
			     "copy cudaMemcpyAsync %s bytes=4096 stream=8 caller=0x13", t->copy);
		if (t->work)
			call(s, 500, 2000, "%s", t->work);
		wait_for_stream(s, t->kernel_ns, 0x21 + (t->places ? i % t->places : 0));
	}
	conclude(s);
}

static void test_sync_every_launch(void **state)
{
	static const struct sync_story silent[] = {
		/* host work between, perhaps with results */
		{.launches = 1, .pause_ns = 300000, .kernel_ns = 9000},
		{.launches = 1, .pause_ns = 1000, .kernel_ns = 3 * MS}, /* long kernels */
		{.launches = 8, .pause_ns = 1000, .kernel_ns = 60000},
		/* one wait behind an upload, another one behind the work */
		{.launches = 1, .others = 8, .places = 2, .pause_ns = 1000, .kernel_ns = 60000},
		{.launches = 1, .pause_ns = 1000, .kernel_ns = 9000, .managed = true},
		/* the GPU has other work meanwhile */
		{.launches = 1, .pause_ns = 1000, .kernel_ns = 9000, .ahead = true},
		{.launches = 1,
		 .pause_ns = 1000,
		 .kernel_ns = 9000,
		 .copy = "direction=d2h src=device dst=pinned"},
		/* nobody knows what is in a graph; a function on the host may tell others */
		{.pause_ns = 1000,
		 .kernel_ns = 90000,
		 .work = "op cudaGraphLaunch stream=8 object=0x70 caller=0x72"},
		{.launches = 1,
		 .pause_ns = 1000,
		 .kernel_ns = 9000,
		 .work = "op cudaLaunchHostFunc stream=8 caller=0x72"},
	};
	static const struct sync_story speaks[] = {
		{.launches = 1, .pause_ns = 1000, .kernel_ns = 9000},
		{.launches = 2, .pause_ns = 1000, .kernel_ns = 20000},
		{.launches = 1,
		 .pause_ns = 1000,
		 .kernel_ns = 9000,
		 .copy = "direction=h2d src=pinned dst=device"},
	};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(speaks); i++) {
		tell_syncs(s, &speaks[i]);
		finding = only(s, "sync-every-launch", "handed over the next 1.000 us later");
		assert_int_equal(number(finding, "count"), 999); /* the first comes after another */
		/* The launch's own work, and what is known of the synchronisation's. */
		assert_in_range(number(finding, "cost_ns"), 999 * 4000, 999 * 7000);
		assert_int_equal(number(finding, "gain_low_ns"), 0);
		assert_int_equal(number(finding, "gain_high_ns"), number(finding, "cost_ns"));
	}
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_syncs(s, &silent[i]);
		nothing(s);
	}
	/* The macro that looks for errors behind each launch is at many places. */
	tell_syncs(s, &(struct sync_story){
			      .launches = 1, .places = 3, .pause_ns = 1000, .kernel_ns = 9000});
	assert_int_equal(json_array_size(s->findings), 3);
	json_array_foreach(s->findings, i, finding)
	{
		says(finding, "handed over the next 1.000 us later");
		assert_in_range(number(finding, "count"), 333, 334);
	}
}

/* ---- a synchronisation that could come later ------------------------------------------------- */

struct early_story {
	uint64_t wait_ns, host_ns;
	const char *before; /* the first call; NULL none */
	const char *work; /* handed over beside the kernel; NULL nothing */
	const char *sync; /* NULL: for the kernel's stream */
	const char *between; /* in the midst of the host's time; NULL none */
	const char *next; /* NULL: the next kernel */
	unsigned int rounds; /* 0: 100 */
	bool ahead; /* a kernel of the other stream is waited for when the next one is under way */
};

/* Kernels that are waited for with nothing to do afterwards, so that the rounds are not all of the work. */
static void tell_plain_work(struct story *s)
{
	int i;

	for (i = 0; i < 30; i++) {
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 40000, 0x20);
	}
}

static void tell_early(struct story *s, const struct early_story *t)
{
	unsigned int i, rounds = t->rounds ?: 100;

	begin(s);
	if (t->before)
		call(s, 1000, 20000, "%s", t->before);
	s->ns += 300 * MS;
	tell_plain_work(s);
	if (t->ahead)
		call(s, 1000, 4000, "launch cudaLaunchKernel kernel=1 stream=9 caller=0x10");
	for (i = 0; i < rounds; i++) {
		unsigned int stream = t->ahead && i % 2 ? 9 : 8;

		call(s, 1000, 4000, "launch cudaLaunchKernel kernel=1 stream=%u caller=0x10",
		     stream);
		if (t->work)
			call(s, 1000, 4000, "%s", t->work);
		if (t->sync)
			call(s, 1000, t->wait_ns, "%s", t->sync);
		else
			call(s, 1000, t->wait_ns, "op cudaStreamSynchronize stream=%u caller=0x21",
			     t->ahead ? 17 - stream : 8);
		if (t->between) {
			s->ns += t->host_ns / 2;
			call(s, 0, 90000, "%s", t->between);
			s->ns += t->host_ns / 2;
		} else {
			s->ns += t->host_ns;
		}
		if (t->next)
			call(s, 0, 20000, "%s", t->next);
	}
	launch(s, 1000, 4000);
	wait_for_stream(s, 40000, 0x20);
	tell_plain_work(s);
	conclude(s);
}

#define TO_HOST \
	"copy cudaMemcpyAsync direction=d2h src=device dst=pinned bytes=4096 stream=8 caller=0x13"
#define BACK "copy cudaMemcpy direction=d2h src=device dst=pageable bytes=4096 stream=1 caller=0x13"
#define EVENT "op cudaEventRecord stream=8 object=0x70 caller=0x14"

static void test_early_sync(void **state)
{
	static const struct early_story speaks[] = {
		{.wait_ns = 2 * MS, .host_ns = MS},
		{.wait_ns = MS, .host_ns = 3 * MS},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .sync = "call cudaDeviceSynchronize caller=0x21"},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .work = EVENT,
		 .sync = "op cudaEventSynchronize object=0x70 caller=0x21"},
		/* what the host gets it gets afterwards */
		{.wait_ns = 2 * MS, .host_ns = MS, .next = BACK},
		/* somebody set memory in another stream, long ago, and never waited for that */
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .before = "memory cudaMemsetAsync op=set kind=device bytes=4096 stream=9 "
			   "caller=0x12"},
		/* the host's time within CUDA does not count, and does not end it */
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .between = "memory cudaMalloc op=alloc kind=device bytes=4096 address=0x9 "
			    "caller=0x30"},
		{.wait_ns = 2 * MS, .host_ns = MS, .between = "call cudaSetDevice caller=0x30"},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .between = "memory cudaFree op=free kind=device bytes=4096 address=0x9 "
			    "caller=0x30"},
		/* pinned memory, and copies to it, but not here */
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .before = "memory cudaMallocHost op=alloc kind=pinned bytes=4096 address=0x9",
		 .next = BACK},
	};
	static const struct early_story silent[] = {
		{.wait_ns = 2 * MS, .host_ns = 40000},
		/* a copy may have gone on in another stream: so long that it need not be over */
		{.wait_ns = 30 * MS,
		 .host_ns = MS,
		 .rounds = 50,
		 .before = "copy cudaMemcpyAsync direction=h2d src=pinned dst=device bytes=1 "
			   "stream=9 "
			   "caller=0x12"},
		{.wait_ns = 30000, .host_ns = MS},
		{.wait_ns = 2 * MS, .host_ns = MS, .rounds = 9},
		{.wait_ns = 900 * MS, .host_ns = 900 * MS, .rounds = 1},
		{.wait_ns = 2 * MS, .host_ns = MS, .work = TO_HOST}, /* for its results */
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .work = "op cudaGraphLaunch stream=8 object=0x70 caller=0x72"},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .work = "op cudaLaunchHostFunc stream=8 caller=0x72"},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .before = "memory cudaMallocManaged op=alloc kind=managed bytes=4096 address=0x9"},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .before = "memory cudaMallocHost op=alloc kind=pinned bytes=4096 address=0x9"},
		/* the GPU has work meanwhile */
		{.wait_ns = 2 * MS, .host_ns = MS, .ahead = true},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .work = "launch cudaLaunchKernel kernel=1 device=1 stream=10 caller=0x15"},
	};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(speaks); i++) {
		tell_early(s, &speaks[i]);
		finding = found(s, "early-sync");
		if (!finding)
			fail_msg("%zu: nothing in:\n%s", i, s->shown);
		says(finding, "100 times the thread waited for the GPU");
		assert_int_equal(number(finding, "offset"), 0x21); /* where the wait is */
		assert_in_range(number(finding, "cost_ns"), 99 * MS, 101 * MS);
		assert_int_equal(number(finding, "gain_low_ns"), 0);
		assert_int_equal(number(finding, "gain_high_ns"), number(finding, "cost_ns"));
		assert_int_equal(number(finding, "worst_ns"), speaks[i].wait_ns);
		assert_string_equal(json_string_value(json_object_get(finding, "severity")),
				    "note");
		assert_true(is_shown(s, finding));
	}
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_early(s, &silent[i]);
		if (found(s, "early-sync"))
			fail_msg("%zu: nothing expected in:\n%s", i, s->shown);
	}
}

/* Another thread gives the GPU work while the host is busy, or another GPU. */
static void tell_neighbour(struct story *s, unsigned int device)
{
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, 2 * MS, "op cudaStreamSynchronize stream=8 caller=0x21");
		s->ns += MS;
	}
	launch(s, 1000, 4000);
	fprintf(s->log, "slot 2 tid=8\n1us thread tid=8 name=\"b\"\n");
	s->ns = 1000;
	for (i = 0; i < 3000; i++)
		call(s, 96000, 4000,
		     "launch cudaLaunchKernel kernel=1 device=%u stream=9 caller=0x50", device);
	conclude(s);
}

static void test_early_sync_beside_others(void **state)
{
	struct story *s = *state;

	tell_neighbour(s, 1);
	says(found(s, "early-sync"), "100 times");
	tell_neighbour(s, 0);
	assert_null(found(s, "early-sync"));
}

/* What the program does when all is done, and then clears away, came after the last round. */
static void test_early_sync_at_the_end(void **state)
{
	struct story *s = *state;
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		launch(s, MS, 4000);
		call(s, 1000, 2 * MS, "op cudaStreamSynchronize stream=8 caller=0x21");
	}
	call(s, 900 * MS, 20000,
	     "memory cudaFree op=free kind=device bytes=4096 address=0x9 caller=0x30");
	conclude(s);
	says(found(s, "early-sync"), "99 times");
}

/* Each thread once, in its preparations. */
static void test_early_sync_of_each_thread(void **state)
{
	struct story *s = *state;
	int i;

	begin(s);
	for (i = 0; i < 20; i++) {
		if (i)
			fprintf(s->log, "slot %d tid=%d\n1us thread tid=%d name=\"b\"\n", i + 1,
				i + 7, i + 7);
		s->ns = (uint64_t)(1 + i) * 10 * MS;
		launch(s, 1000, 4000);
		call(s, 1000, 2 * MS, "op cudaStreamSynchronize stream=8 caller=0x21");
		launch(s, 3 * MS, 4000);
	}
	conclude(s);
	assert_null(found(s, "early-sync"));
}

/* ---- waits that are needed, or that nobody minds ------------------------------------------------ */

/* A small copy to the host, to memory of that kind, and a wait for the stream behind it, again and again. */
static void tell_copy_and_wait(struct story *s, const char *kind, uint64_t copy_ns)
{
	char copy[128];
	int i;

	snprintf(copy, sizeof(copy),
		 "copy cudaMemcpyAsync direction=d2h src=device dst=%s bytes=4096 stream=8 "
		 "caller=0x13",
		 kind);
	begin(s);
	for (i = 0; i < 50; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, copy_ns, copy);
		wait_for_stream(s, 2000, 0x20);
		if (!strcmp(kind, "pinned")) /* and one that has nothing to wait for */
			wait_for_stream(s, 2000, 0x21);
	}
	conclude(s);
}

static void test_wait_needed_when_pinned(void **state)
{
	struct story *s = *state;

	tell_copy_and_wait(s, "pageable", MS);
	assert_non_null(found(s, "pageable-copy"));
	assert_null(found(s, "redundant-sync")); /* with the memory pinned it is needed */
	tell_copy_and_wait(s, "pinned", 4000);
	assert_non_null(found(s, "redundant-sync"));
}

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

/* ---- code loaded late ------------------------------------------------------------------------ */

/* The second kernel's first launch takes `ns`, with work outstanding or not, early or late. */
static void tell_loading(struct story *s, unsigned int before, bool busy, uint64_t ns)
{
	unsigned int i;

	begin(s);
	for (i = 0; i < 10; i++)
		launch(s, 1000, 4000);
	wait_for_stream(s, 40000, 0x20);
	for (i = 0; i < before; i++) {
		launch(s, 1000, 4000);
		if (i % 10 == 9)
			wait_for_stream(s, 40000, 0x21);
	}
	if (busy)
		launch(s, 1000, 4000);
	call(s, 1000, ns, "launch cudaLaunchKernel kernel=2 stream=9 caller=0x12");
	call(s, 1000, 40000, "call cudaDeviceSynchronize caller=0x22");
	conclude(s);
}

static void test_lazy_loading(void **state)
{
	struct story *s = *state;
	json_t *finding;

	tell_loading(s, 100, true, 30 * MS); /* behind the GPU's work */
	finding = only(s, "lazy-loading", "1 first launch of a kernel in the midst of the work");
	says(finding, "the first after 1.007 ms; kernels: second");
	assert_in_range(number(finding, "cost_ns"), 29 * MS, 30 * MS);
	assert_true(is_shown(s, finding));
	tell_loading(s, 2000, false, 3 * MS); /* long after the begin */
	finding = only(s, "lazy-loading", "3.000 ms inside it");
	assert_in_range(number(finding, "cost_ns"), 2 * MS, 3 * MS);
	tell_loading(s, 100, false, 3 * MS); /* somebody has to load it */
	nothing(s);
	tell_loading(s, 2000, true, 100000);
	nothing(s);
}

/* Asked about a function for the first time, behind work of the GPU; `known`: such questions were asked before. */
static void tell_first_use(struct story *s, unsigned int known)
{
	unsigned int i;

	begin(s);
	for (i = 0; i < known; i++)
		call(s, 1000, 5000, "op cuKernelGetFunction caller=0x40 object=%#x", 0x200 + i);
	for (i = 0; i < 20; i++)
		launch(s, 1000, 4000);
	wait_for_stream(s, 40000, 0x20);
	launch(s, 1000, 4000);
	call(s, 1000, 30 * MS, "op cuKernelGetFunction caller=0x41 object=0x300");
	wait_for_stream(s, 40000, 0x20);
	conclude(s);
}

static void test_first_use(void **state)
{
	struct story *s = *state;
	json_t *finding;

	tell_first_use(s, 0); /* all of it may be the loading */
	finding = only(s, "lazy-loading", "1 use of code that had to be loaded");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");
	tell_first_use(s, 20);
	finding = only(s, "lazy-loading", "1 use of code that had to be loaded");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "problem");
}

/* Modules: loaded and unloaded in each round, or once. */
static void tell_modules(struct story *s, bool rounds, bool busy)
{
	int i;

	begin(s);
	for (i = 0; i < 200; i++) {
		if (rounds || !i)
			call(s, 1000, 100000, "op cuModuleLoadData caller=0x30 object=%#x",
			     0x100 + i);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		if (!busy || i <= 100)
			wait_for_stream(s, 40000, 0x20);
		if (rounds || i == 199)
			call(s, 1000, busy && i > 100 ? 900000 : 90000,
			     "op cuModuleUnload caller=0x31 object=%#x", 0x100 + i);
		if (busy && i > 100)
			wait_for_stream(s, 40000, 0x20);
	}
	conclude(s);
}

static void test_modules(void **state)
{
	struct story *s = *state;
	json_t *finding;
	size_t i;

	tell_modules(s, true, false);
	assert_int_equal(json_array_size(s->findings), 2); /* of loading, and of unloading */
	json_array_foreach(s->findings, i, finding)
	{
		assert_string_equal(json_string_value(json_object_get(finding, "id")),
				    "lazy-loading");
		assert_in_range(number(finding, "cost_ns"), 199 * 90000, 200 * 100000);
	}
	tell_modules(s, false, false);
	nothing(s);
	/* Where some of them wait for the device it is one finding still. */
	tell_modules(s, true, true);
	assert_int_equal(json_array_size(s->findings), 2);
	if (found(s, "hidden-sync"))
		fail_msg("%s", s->shown);
}

/* Loads of a millisecond on an idle device, then two of 20 ms behind work; `after` ms follow. */
static void tell_loads_behind_work(struct story *s, int idle, uint64_t after)
{
	int i;

	begin(s);
	for (i = 0; i < idle; i++)
		call(s, 1000, MS, "op cuModuleLoadData caller=0x30 object=%#x", 0x100 + i);
	for (i = 0; i < 2; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, 20 * MS, "op cuModuleLoadData caller=0x31 object=%#x", 0x200 + i);
		wait_for_stream(s, 40000, 0x20);
	}
	launch(s, after * MS, 4000);
	wait_for_stream(s, 40000, 0x20);
	conclude(s);
}

static void test_loads_behind_work(void **state)
{
	struct story *s = *state;
	json_t *finding;

	tell_loads_behind_work(s, 8, 0);
	finding = found(s, "hidden-sync");
	assert_non_null(finding);
	assert_in_range(number(finding, "cost_ns"), 36 * MS, 40 * MS);
	/* With no other load to compare with: a note, or silence where it is little of the run. */
	tell_loads_behind_work(s, 0, 0);
	finding = found(s, "hidden-sync");
	assert_non_null(finding);
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");
	says(finding, "nobody can tell");
	tell_loads_behind_work(s, 0, 1000);
	nothing(s);
}

/* ---- one event, several who wait ---------------------------------------------------------------- */

static void wait_for_event(struct story *s, uint64_t ns)
{
	call(s, 0, ns, "op cudaEventSynchronize object=0x70 caller=0x21");
}

/* Two threads that hand nothing over wait for the same event; for the last one it is done when its wait ends. */
static void test_event_of_all(void **state)
{
	struct story *s = *state;
	int i, thread;

	begin(s);
	s->ns = 0;
	for (i = 0; i < 50; i++) {
		launch(s, 1000, 4000);
		call(s, 0, 5000, "op cudaEventRecord stream=8 object=0x70 caller=0x11");
		s->ns += MS - 10000;
	}
	for (thread = 0; thread < 2; thread++) {
		fprintf(s->log, "slot %d tid=%d\n1us thread tid=%d name=\"b\"\n", 2 + thread,
			8 + thread, 8 + thread);
		s->ns = 20000;
		for (i = 0; i < 50; i++) {
			wait_for_event(s, MS / 2 + (uint64_t)thread * 5000);
			s->ns += MS / 2 - (uint64_t)thread * 5000;
		}
	}
	conclude(s);
	nothing(s);
}

/* ---- a full queue ---------------------------------------------------------------------------- */

static void tell_queue(struct story *s, unsigned int ahead)
{
	unsigned int i;

	begin(s);
	for (i = 0; i < 20; i++)
		launch(s, 1000, 4000);
	wait_for_stream(s, 40000, 0x20);
	for (i = 0; i < ahead; i++)
		launch(s, 1000, 4000);
	for (i = 0; i < 5; i++)
		launch(s, 1000, 2 * MS);
	wait_for_stream(s, 40 * MS, 0x20);
	conclude(s);
}

static void test_queue_full(void **state)
{
	struct story *s = *state;
	json_t *finding;

	tell_queue(s, 1000);
	finding = only(s, "queue-full", "5 calls waited for room");
	assert_in_range(number(finding, "cost_ns"), 9 * MS, 10 * MS);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");
	tell_queue(s, 10); /* not for want of room */
	nothing(s);
}

struct late_story {
	unsigned int ahead; /* launches; then one that takes long, alone */
	bool tells; /* a function on the host behind every tenth; late ones come together */
};

static void tell_late(struct story *s, const struct late_story *t)
{
	unsigned int i;

	begin(s);
	for (i = 0; i < t->ahead; i++) {
		launch(s, 1000, 4000);
		if (t->tells && i % 10 == 9)
			call(s, 1000, 4000, "op cudaLaunchHostFunc stream=8 caller=0x72");
	}
	for (i = 0; i < (t->tells ? 3 : 1); i++)
		launch(s, 1000, 4 * MS);
	for (i = 0; i < 20; i++)
		launch(s, 1000, 4000);
	wait_for_stream(s, 40 * MS, 0x20);
	conclude(s);
}

/* A late launch is no full queue where there was room, or where nobody knows how much. */
static void test_queue_not_full(void **state)
{
	static const struct late_story silent[] = {
		{.ahead = 400},
		{.ahead = 5000}, /* more than there is room for: much of it was done long ago */
		{.ahead = 1000, .tells = true},
	};
	struct story *s = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_late(s, &silent[i]);
		nothing(s);
	}
	tell_late(s, &(struct late_story){.ahead = 1000});
	only(s, "queue-full", "1 call waited for room");
}

/* It is one cause, wherever in the program the launches are. */
static void test_queue_full_everywhere(void **state)
{
	struct story *s = *state;
	json_t *finding;
	int i;

	begin(s);
	for (i = 0; i < 1000; i++)
		launch(s, 1000, 4000);
	for (i = 0; i < 9; i++)
		call(s, 1000, (i % 3 + 1) * MS,
		     "launch cudaLaunchKernel kernel=1 stream=8 caller=%#x", 0x10 + i % 3);
	wait_for_stream(s, 40 * MS, 0x20);
	conclude(s);
	finding = only(s, "queue-full", "9 calls at 3 places, here most,");
	assert_in_range(number(finding, "cost_ns"), 17 * MS, 18 * MS);
	assert_int_equal(number(finding, "count"), 9);
	assert_int_equal(number(finding, "offset"), 0x12); /* 9 ms; the others 3 and 6 */
}

/* ---- values read back ------------------------------------------------------------------------ */

static void tell_read_back(struct story *s, unsigned int rounds, unsigned int bytes, bool between)
{
	unsigned int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		if (i % (100 / rounds))
			continue;
		call(s, 1000, 5000,
		     "copy cudaMemcpyAsync direction=d2h src=device dst=pinned bytes=%u stream=8 "
		     "caller=0x40",
		     bytes);
		if (between)
			launch(s, 1000, 4000);
		wait_for_stream(s, MS, 0x20);
	}
	wait_for_stream(s, 40000, 0x21);
	conclude(s);
}

static void test_read_back(void **state)
{
	struct story *s = *state;
	json_t *finding;
	int i;

	tell_read_back(s, 50, 8, false);
	finding = only(s, "read-back", /* the first is cold */
		       "49 times the thread fetched a few bytes");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");
	assert_in_range(number(finding, "cost_ns"), 45 * MS, 50 * MS);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	/* Synchronous copies wait themselves; what they cost is known from some on an idle GPU. */
	begin(s);
	for (i = 0; i < 60; i++) {
		if (i >= 10) {
			launch(s, 1000, 4000);
			launch(s, 1000, 4000);
		}
		call(s, 1000, i < 10 ? 9000 : MS,
		     "copy cudaMemcpy direction=d2h src=device dst=pageable bytes=4 caller=%#x",
		     i < 10 ? 0x41 : 0x40);
	}
	conclude(s);
	only(s, "read-back", "50 times");
	tell_read_back(s, 5, 8, false); /* seldom */
	nothing(s);
	tell_read_back(s, 50, 4096, false); /* a result */
	nothing(s);
	tell_read_back(s, 50, 8, true); /* the wait is for something else */
	nothing(s);
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

static void test_small_copies(void **state)
{
	static const char h2d[] = "direction=h2d src=pinned dst=device";
	static const struct copies_story silent[] = {
		{100, 8, 4096, "cudaMemcpyAsync", h2d, true},
		{100, 3, 4096, "cudaMemcpyAsync", h2d, false},
		{100, 8, 70000, "cudaMemcpyAsync", h2d, false},
		{4, 8, 4096, "cudaMemcpyAsync", h2d, false},
		{100, 8, 4096, "cudaMemcpyAsync", "direction=d2d src=device dst=device", false},
	};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	tell_copies(s, &(struct copies_story){100, 8, 4096, "cudaMemcpyAsync", h2d, false});
	finding = only(s, "small-copies",
		       "100 times 8 copies in a row to the device, of 4.00 KiB each");
	/* Each row: 8 copies of 5 us, for which one of 9 us would do. */
	assert_in_range(number(finding, "cost_ns"), 100 * 30000, 100 * 32000);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	tell_copies(s, &(struct copies_story){100, 4, 64, "cudaMemcpy",
					      "direction=d2h src=device dst=pageable", false});
	finding = found(s, "small-copies"); /* beside it, a synchronisation that is redundant */
	says(finding, "100 times 4 copies in a row to the host, of 64 B each");
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_copies(s, &silent[i]);
		nothing(s);
	}
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void test_ignored_error(void **state)
{
	struct story *s = *state;
	json_t *finding;

	begin(s);
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "launch cudaLaunchKernel kernel=2 stream=8 caller=0x12 result=9");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error",
		       "1 call returned cudaErrorInvalidConfiguration, first after 6.000 us");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");
	assert_true(is_shown(s, finding)); /* although it costs nothing */

	begin(s); /* the program gives up */
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "launch cudaLaunchKernel kernel=2 stream=8 caller=0x12 result=9");
	call(s, 1000, 9000, "memory cudaFree op=free kind=device bytes=4096 caller=0x50");
	conclude(s);
	nothing(s);

	begin(s); /* an answer */
	call(s, 1000, 2000, "call cudaDeviceEnablePeerAccess caller=0x51 result=704");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error", "peer access was enabled already");
	assert_false(is_shown(s, finding));

	begin(s); /* a library looks for the kernels that it has for this GPU ... */
	call(s, 1000, 2000, "call cuLibraryGetKernel caller=0x51 result=209");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error", "code for this GPU was asked for");
	assert_false(is_shown(s, finding));

	begin(s); /* ... but does not launch what it has not */
	call(s, 1000, 2000, "launch cudaLaunchKernel kernel=2 stream=8 caller=0x12 result=209");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error", "cudaErrorNoKernelImageForDevice");
	assert_true(is_shown(s, finding));

	begin(s); /* and what is none at all */
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "op cudaStreamQuery stream=8 caller=0x51 result=600");
	launch(s, 1000, 4000);
	conclude(s);
	nothing(s);
}

/* The driver's functions have names of their own for errors. */
static void test_driver_error(void **state)
{
	struct story *s = *state;

	begin(s);
	call(s, 1000, 2000, "op cuStreamWaitEvent stream=8 caller=0x51 result=400");
	launch(s, 1000, 4000);
	conclude(s);
	only(s, "ignored-error", "CUDA_ERROR_INVALID_HANDLE");
	begin(s);
	call(s, 1000, 2000, "op cuStreamWaitEvent stream=8 caller=0x51 result=333");
	launch(s, 1000, 4000);
	conclude(s);
	only(s, "ignored-error", "returned #333");
}

/* An error that stays is one finding, at the place where it showed first. */
static void test_error_that_stays(void **state)
{
	struct story *s = *state;
	json_t *finding;
	int i;

	begin(s);
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "op cudaStreamSynchronize stream=8 caller=0x20 result=700");
	for (i = 0; i < 5; i++) {
		call(s, 1000, 2000,
		     "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10 result=700");
		call(s, 1000, 2000, "op cudaStreamSynchronize stream=8 caller=0x21 result=700");
	}
	conclude(s);
	finding = only(s, "ignored-error", "1 calls here and 10 elsewhere");
	assert_string_equal(json_string_value(json_object_get(finding, "function")),
			    "cudaStreamSynchronize");
	begin(s);
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "op cudaStreamSynchronize stream=8 caller=0x20 result=700");
	conclude(s);
	nothing(s);
}

static void test_capture_break(void **state)
{
	struct story *s = *state;
	json_t *finding;

	begin(s);
	call(s, 1000, 2000, "op cudaStreamBeginCapture stream=8 caller=0x60");
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "call cudaDeviceSynchronize caller=0x61 result=900");
	call(s, 1000, 2000, "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10 result=901");
	call(s, 1000, 2000, "op cudaStreamEndCapture stream=8 caller=0x62 result=901");
	conclude(s);
	finding = only(s, "capture-break", "cudaErrorStreamCaptureUnsupported");
	says(finding, "2 later calls found the capture broken");
	assert_string_equal(json_string_value(json_object_get(finding, "function")),
			    "cudaDeviceSynchronize");
	assert_true(is_shown(s, finding));

	begin(s); /* nobody knows who did it */
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "op cudaStreamEndCapture stream=8 caller=0x62 result=901");
	conclude(s);
	only(s, "capture-break", "which call broke it is not in the trace");

	begin(s);
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "op cudaStreamEndCapture stream=8 caller=0x62");
	call(s, 1000, 2000, "call cudaDeviceSynchronize caller=0x61");
	conclude(s);
	nothing(s);
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
	says(at_place(s, 0x40), "staged, not blocked");
	tell_pageable(s, 5, 10 * MS);
	finding = at_place(s, 0x40);
	says(finding, "blocked by earlier work: 5 of them, for 44.64 ms; the others only staged");
	assert_int_equal(number(finding, "count"), 20);
	/* The staging is saved for sure, the wait may only move. */
	assert_in_range(number(finding, "gain_low_ns"), 20 * 40000, 22 * 60000);
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

/* ---- steady state ---------------------------------------------------------------------------- */

/* A graph captured, and its parameters taken over, in each round: the cure is no problem. */
static void test_graph_update(void **state)
{
	struct story *s = *state;
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		call(s, 1000, 90000, "op cudaGraphExecUpdate object=0x70 caller=0x70");
		call(s, 1000, 2000, "op cudaGraphDestroy object=0x71 caller=0x71");
		call(s, 1000, 4000, "op cudaGraphLaunch stream=8 object=0x70 caller=0x72");
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
	}
	conclude(s);
	nothing(s);
	begin(s);
	for (i = 0; i < 100; i++) {
		call(s, 1000, 90000, "op cudaGraphInstantiate object=0x70 caller=0x70");
		call(s, 1000, 4000, "op cudaGraphLaunch stream=8 object=0x70 caller=0x72");
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
	}
	conclude(s);
	only(s, "steady-state", "calls about graphs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_sync_every_launch),
		TEST(test_wait_needed_when_pinned),
		TEST(test_free_at_the_end),
		TEST(test_lazy_loading),
		TEST(test_first_use),
		TEST(test_modules),
		TEST(test_loads_behind_work),
		TEST(test_event_of_all),
		TEST(test_queue_full),
		TEST(test_queue_not_full),
		TEST(test_queue_full_everywhere),
		TEST(test_read_back),
		TEST(test_small_copies),
		TEST(test_ignored_error),
		TEST(test_driver_error),
		TEST(test_error_that_stays),
		TEST(test_capture_break),
		TEST(test_staged_or_blocked),
		TEST(test_graph_update),
		TEST(test_wait_behind_pageable),
		TEST(test_wait_behind_hidden),
		TEST(test_frees_in_a_row),
		TEST(test_work_during_free),
		TEST(test_early_sync),
		TEST(test_early_sync_beside_others),
		TEST(test_early_sync_at_the_end),
		TEST(test_early_sync_of_each_thread),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
