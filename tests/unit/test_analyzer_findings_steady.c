/*
 * tests/unit/test_analyzer_findings_steady.c: what belongs before the loop: code loaded late, and things
 * made again and again. For each detector a log in which it speaks, and a near twin in which it is
 * silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "story.h"

/* ---- code loaded late ------------------------------------------------------------------------ */

/* The second kernel's first launch takes `ns`, with work outstanding or not, early or late. Behind it the number is told
 * again as `told_again`: the site keeps the name that it has. */
static const char *told_again;

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
	if (told_again)
		fprintf(s->log, "%lluns kernel kernel=2 name=\"%s\"\n", (unsigned long long)s->ns,
			told_again);
	call(s, 1000, 40000, "call cudaDeviceSynchronize caller=0x22");
	conclude(s);
}

static void test_lazy_loading(void **state)
{
	struct story *s = *state;
	json_t *finding;

	tell_loading(s, 100, true, 30 * MS); /* behind the GPU's work */
	finding = only(s, "lazy-loading", "1 first launch of a kernel in the midst of the work");
	says(finding, "the first at t = 1.007 ms; kernels: second");
	assert_in_range(number(finding, "cost_ns"), 29 * MS, 30 * MS);
	assert_true(is_shown(s, finding));
	told_again = "another";
	tell_loading(s, 100, true, 30 * MS);
	says(only(s, "lazy-loading", "in the midst of the work"), "kernels: second");
	told_again = "second";
	tell_loading(s, 100, true, 30 * MS);
	says(only(s, "lazy-loading", "in the midst of the work"), "kernels: second");
	told_again = NULL;
	tell_loading(s, 2000, false, 3 * MS); /* long after the begin */
	finding = only(s, "lazy-loading", "3.000 ms inside it");
	assert_in_range(number(finding, "cost_ns"), 2 * MS, 3 * MS);
	tell_loading(s, 100, false, 3 * MS); /* somebody has to load it */
	nothing(s);
	tell_loading(s, 2000, true, 100000);
	nothing(s);
	tell_loading(s, 100, false, 200 * MS); /* a good part of the run */
	finding = only(s, "lazy-loading", "1 first launch of a kernel as the program starts");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");
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

/* In each round a kernel is prepared once, which takes long, and then again, which takes a moment or (noisy) a bit longer:
 * of a library that is loaded there, or was at the start. */
static void tell_new_code(struct story *s, bool anew, bool slow)
{
	int i, j;

	begin(s);
	for (i = 0; i < 200; i++) {
		if (anew || !i)
			call(s, 1000, 60000, "op cuLibraryLoadData caller=0x30 object=%#x",
			     0x100 + i);
		launch(s, 1000, 4000);
		for (j = 0; j < 12; j++) {
			call(s, 1000,
			     !j && slow               ? 1300000
			     : i % 40 == 39 && j == 1 ? 13000
						      : 600,
			     "call cuKernelSetAttribute caller=0x31");
			launch(s, 1000, 4000);
		}
		wait_for_stream(s, 40000, 0x20);
	}
	conclude(s);
}

/* The finding of cuKernelSetAttribute; NULL: there is none. */
static json_t *of_uses(const struct story *s)
{
	json_t *finding;
	size_t i;

	json_array_foreach(
		s->findings, i,
		finding) if (!strcmp(json_string_value(json_object_get(finding, "function")),
				     "cuKernelSetAttribute")) return finding;
	return NULL;
}

/* Code that is made as the program works cannot be loaded before; and what takes microseconds loads nothing. */
static void test_new_code(void **state)
{
	static const char *const cures[] = {"CUDA_MODULE_LOADING=EAGER, or", "few sizes"};
	struct story *s = *state;
	unsigned int anew;
	json_t *finding;

	for (anew = 0; anew < 2; anew++) {
		tell_new_code(s, anew, true);
		finding = of_uses(s);
		assert_non_null(finding);
		/* the first ones come as the program starts */
		assert_in_range(number(finding, "count"), 100, 200);
		assert_non_null(
			strstr(json_string_value(json_object_get(finding, "fix")), cures[anew]));
		assert_true(!strstr(json_string_value(json_object_get(finding, "what")),
				    "new code each time: cuLibraryLoadData") == !anew);
		tell_new_code(s, anew, false);
		assert_null(of_uses(s));
	}
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

/* Loads on an idle device, the longest of so many ms, then two of 20 ms behind work; `after` ms follow. */
static void tell_loads(struct story *s, const char *load, int idle, unsigned int longest,
		       uint64_t after)
{
	int i;

	for (i = 0; i < idle; i++)
		call(s, 1000, i == 1 ? longest * MS : MS, "op %s caller=0x30 object=%#x", load,
		     0x100 + i); /* the first one is cold */
	for (i = 0; i < 2; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, 20 * MS, "op %s caller=0x31 object=%#x", load, 0x200 + i);
		wait_for_stream(s, 40000, 0x20);
	}
	launch(s, after * MS, 4000);
	wait_for_stream(s, 40000, 0x20);
	conclude(s);
}

static void tell_loads_behind_work(struct story *s, const char *load, int idle,
				   unsigned int longest, uint64_t after)
{
	begin(s);
	tell_loads(s, load, idle, longest, after);
}

static void test_loads_behind_work(void **state)
{
	static const int idle[] = {0, 3, 12};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	tell_loads_behind_work(s, "cuModuleLoadData", 9, 1, 0);
	finding = found(s, "hidden-sync");
	assert_non_null(finding);
	assert_in_range(number(finding, "cost_ns"), 36 * MS, 40 * MS);
	/* With no other load to compare with, or hardly any, or one that took nearly as long: a note, or silence where
	 * it is little of the run. */
	for (i = 0; i < ARRAY_SIZE(idle); i++) {
		tell_loads_behind_work(s, "cuModuleLoadData", idle[i], idle[i] > 3 ? 6 : 1, 0);
		finding = found(s, "hidden-sync");
		assert_non_null(finding);
		assert_string_equal(json_string_value(json_object_get(finding, "severity")),
				    "note");
		says(finding, "is unknown");
	}
	tell_loads_behind_work(s, "cuModuleLoadData", 0, 1, 1000);
	nothing(s);
	/* Libraries take what they take, and wait for nothing. */
	tell_loads_behind_work(s, "cuLibraryLoadData", 9, 1, 0);
	nothing(s);
	assert_non_null(strstr(s->shown, "lost        0 % of"));
	begin_with(s, "env_CUDA_MODULE_LOADING=EAGER"); /* but then they do */
	tell_loads(s, "cuLibraryLoadData", 9, 1, 0);
	assert_in_range(number(found(s, "hidden-sync"), "cost_ns"), 36 * MS, 40 * MS);
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

static void enters(struct story *s, unsigned int slot, unsigned int tid, uint64_t pause_ns)
{
	s->ns += pause_ns;
	fprintf(s->log, "slot %u tid=%u\n%lluns thread tid=%u name=\"a\"\n", slot, tid,
		(unsigned long long)s->ns + 1, tid);
	call(s, 1000, 2000, "op cudaEventRecord stream=8 object=0x90 caller=0x61 result=1");
	launch(s, 1000, 4000); /* so that there is a finding: the error was ignored */
}

/* The system gives numbers again, to threads of the same name: the second of them is not over when the slot of the
 * first is another's, and in between there was none. */
static void test_same_number(void **state)
{
	struct story *s = *state;

	begin(s);
	enters(s, 1, 7, 1000);
	enters(s, 2, 7, 1000);
	enters(s, 1, 8, 1000);
	fprintf(s->log, "slot 2 tid=7\n");
	wait_for_stream(s, 1000 * MS, 0x20);
	conclude(s);
	assert_in_range(number(found(s, "ignored-error"), "run_ns"), 1990 * MS, 2010 * MS);
	begin(s);
	enters(s, 1, 7, 1000);
	enters(s, 1, 8, 1000);
	enters(s, 1, 7, 1000 * MS);
	conclude(s);
	assert_in_range(number(found(s, "ignored-error"), "run_ns"), 990 * MS, 1010 * MS);
}

/* Forty graphs of sixty kernels each, made before the work, which are launched then: the kernels are captured, in
 * a stream and one that follows it, or are work themselves. */
static void tell_graphs(struct story *s, bool captured)
{
	int i, j;

	begin(s);
	for (i = 0; i < 40; i++) {
		if (captured)
			call(s, 1000, 2000, "op cudaStreamBeginCapture stream=8 caller=0x60");
		call(s, 1000, 2000, "op cudaEventRecord stream=8 object=0x90 caller=0x61");
		call(s, 1000, 2000, "op cudaStreamWaitEvent stream=9 object=0x90 caller=0x62");
		if (captured && i % 2) /* on another thread: it goes on */
			call(s, 1000, 2000,
			     "op cudaStreamEndCapture stream=8 result=908 caller=0x64");
		for (j = 0; j < 30; j++) {
			launch(s, 1000, 4000);
			call(s, 1000, 4000,
			     "launch cudaLaunchKernel kernel=1 stream=9 caller=0x63");
		}
		if (captured) /* with an error or without, it is over */
			call(s, 1000, 2000,
			     "op cudaStreamEndCapture stream=8 result=%d caller=0x65",
			     i % 3 ? 0 : 901);
		call(s, 1000, 90000, "op cudaGraphInstantiate object=%#x caller=0x70", 0x70 + i);
	}
	for (i = 0; i < 400; i++) {
		call(s, 1000, 4000, "op cudaGraphLaunch stream=8 object=0x70 caller=0x72");
		launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
	}
	conclude(s);
}

static void test_captures(void **state)
{
	struct story *s = *state;

	tell_graphs(s, false);
	says(found(s, "steady-state"), "calls about graphs");
	tell_graphs(s, true);
	assert_null(found(s, "steady-state"));
	assert_null(found(s, "redundant-sync"));
}

/* Frees of memory, or of null pointers, which are none. */
static void tell_frees(struct story *s, unsigned int address)
{
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		call(s, 1000, 2000, "memory cudaFree op=free kind=unknown address=%#x caller=0x30",
		     address);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
	}
	conclude(s);
}

static void test_frees_of_nothing(void **state)
{
	struct story *s = *state;

	tell_frees(s, 0x1000);
	only(s, "steady-state", "calls about device memory");
	tell_frees(s, 0);
	nothing(s);
}

/* What a GPU can reach is changed in each of some rounds: memory mapped into a range of addresses (PyTorch's
 * expandable segments), access to it, another process's memory opened. */
static void tell_mappings(struct story *s, int rounds, const char *change)
{
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		if (i < rounds)
			call(s, 1000, 90000, "%s", change);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
	}
	conclude(s);
}

static void test_mappings(void **state)
{
	static const char *const changes[] = {
		"memory cuMemMap op=map kind=device address=0x10000 bytes=4096 caller=0x30",
		"memory cuMemUnmap op=unmap kind=device address=0x10000 bytes=4096 caller=0x30",
		"op cuMemSetAccess object=0x10000 caller=0x30",
		"memory cudaIpcOpenMemHandle op=map kind=device address=0x10000 caller=0x30",
	};
	struct story *s = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		tell_mappings(s, 100, changes[i]);
		only(s, "steady-state", "calls about mappings of memory");
		tell_mappings(s, 1, changes[i]);
		nothing(s);
	}
}

/* The finding of that detector about that function, of several. */
static json_t *found_of(struct story *s, const char *id, const char *function)
{
	json_t *finding;
	size_t i;

	json_array_foreach(s->findings, i, finding)
	{
		if (!strcmp(json_string_value(json_object_get(finding, "id")), id) &&
		    !strcmp(json_string_value(json_object_get(finding, "function")), function))
			return finding;
	}
	fail_msg("no %s of %s", id, function);
	return NULL;
}

/* Access to another GPU's memory, enabled in each round; taken back in each, or never. */
static void tell_access(struct story *s, bool taken_back)
{
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		call(s, 1000, 9 * MS, "op cudaDeviceEnablePeerAccess object=%d caller=0x30",
		     taken_back ? 1 : i);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
		if (taken_back)
			call(s, 1000, 90000, "op cudaDeviceDisablePeerAccess object=1 caller=0x31");
	}
	conclude(s);
}

static void test_peer_access(void **state)
{
	struct story *s = *state;

	tell_access(s, true);
	assert_int_equal(json_array_size(s->findings), 2);
	says(found_of(s, "steady-state", "cudaDeviceEnablePeerAccess"),
	     "99 calls about access between GPUs");
	/* What is opened once for each two GPUs is kept; that their GPU stands still meanwhile is another finding's. */
	tell_access(s, false);
	assert_int_equal(json_array_size(s->findings), 1);
	assert_non_null(found(s, "starved-by-calls"));
}

/* Pinned memory for some of the first rounds, freed at the end; or in each, and freed two rounds later. */
static void tell_cache(struct story *s, int rounds, bool freed)
{
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		if (i < rounds)
			call(s, 1000, 900000,
			     "memory cudaMallocHost op=alloc kind=pinned address=%#x bytes=4096 "
			     "caller=0x30",
			     0x1000 * (i + 1));
		if (freed && i >= 2 && i < rounds + 2)
			call(s, 1000, 900,
			     "memory cudaFreeHost op=free kind=pinned address=%#x caller=0x31",
			     0x1000 * (i - 1));
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
	}
	for (i = 0; i < rounds && !freed; i++)
		call(s, 1000, 900,
		     "memory cudaFreeHost op=free kind=pinned address=%#x caller=0x31",
		     0x1000 * (i + 1));
	conclude(s);
}

static void test_cache_that_fills(void **state)
{
	static const struct {
		int rounds;
		bool freed;
		const char *severity;
	} cases[] = {{50, false, "note"}, {50, true, "problem"}, {100, false, "problem"}};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		tell_cache(s, cases[i].rounds, cases[i].freed);
		finding = found_of(s, "steady-state", "cudaMallocHost");
		assert_string_equal(json_string_value(json_object_get(finding, "severity")),
				    cases[i].severity);
		if (strcmp(cases[i].severity, "note") == 0)
			says(finding, "most of it is kept");
	}
}

/* Device memory for some of the first rounds, freed in each behind work of the GPU, and waiting for that. */
static void tell_frees_that_wait(struct story *s)
{
	int i;

	begin(s);
	for (i = 0; i < 20; i++) /* so long does a free take */
		call(s, 1000, 8000,
		     "memory cudaFree op=free kind=device address=0x9 bytes=4096 caller=0x29");
	for (i = 0; i < 100; i++) {
		if (i < 50)
			call(s, 1000, 900000,
			     "memory cudaMalloc op=alloc kind=device address=0x1000 bytes=4096 "
			     "caller=0x30");
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		if (i < 50)
			call(s, 1000, 90000,
			     "memory cudaFree op=free kind=device address=0x1000 bytes=4096 "
			     "caller=0x31");
		wait_for_stream(s, 90000, 0x20);
	}
	conclude(s);
}

/* In some of the first rounds memory is mapped piece by piece, and unmapped as a whole. */
static void tell_pieces(struct story *s)
{
	int i, piece;

	begin(s);
	for (i = 0; i < 100; i++) {
		for (piece = 0; piece < 8 && i < 50; piece++) {
			call(s, 1000, 90000,
			     "memory cuMemMap op=map kind=device address=%#x bytes=4096 "
			     "caller=0x30",
			     0x1000 * (piece + 1));
			call(s, 1000, 90000, "op cuMemSetAccess object=%#x caller=0x31",
			     0x1000 * (piece + 1));
		}
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
		if (i < 50)
			call(s, 1000, 90000,
			     "memory cuMemUnmap op=unmap kind=device address=0x1000 bytes=32768 "
			     "caller=0x32");
	}
	conclude(s);
}

/* What is given back otherwise than it was made is given back all the same. */
static void test_no_cache(void **state)
{
	static const struct {
		void (*tell)(struct story *s);
		const char *function;
	} cases[] = {{tell_frees_that_wait, "cudaMalloc"},
		     {tell_pieces, "cuMemMap"},
		     {tell_pieces, "cuMemSetAccess"}};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		cases[i].tell(s);
		finding = found_of(s, "steady-state", cases[i].function);
		assert_string_equal(json_string_value(json_object_get(finding, "severity")),
				    "problem");
	}
}

/* The device's context is ended in each of some rounds, which costs there, and where the next one is made: inside
 * of what needs it. */
static void tell_resets(struct story *s, int rounds)
{
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		bool makes = i < rounds || !i;

		if (makes)
			call(s, 1000, 90 * MS, "nested cuDevicePrimaryCtxRetain depth=1");
		s->ns += 2000;
		fprintf(s->log,
			"%lluns memory cudaMallocAsync op=alloc kind=device pool=1 address=0x1000 "
			"bytes=64 caller=0x30 duration=%uns\n",
			(unsigned long long)s->ns, makes ? 90 * MS + 2000 : 2000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
		if (i < rounds)
			call(s, 1000, 30 * MS, "call cudaDeviceReset caller=0x31");
	}
	conclude(s);
}

static void test_contexts(void **state)
{
	struct story *s = *state;
	json_t *finding;
	size_t i;

	tell_resets(s, 100);
	assert_int_equal(json_array_size(s->findings), 2);
	json_array_foreach(s->findings, i, finding)
	{
		assert_string_equal(json_string_value(json_object_get(finding, "id")),
				    "steady-state");
		says(finding, "calls about contexts");
	}
	tell_resets(s, 1);
	nothing(s);
}

/* cudaSetDevice in each of some rounds, as libraries call it: now and then it takes two milliseconds, for its thread
 * has no CPU or waits for a lock. No context is made in it. */
static void tell_slow_set_device(struct story *s, const char *why, bool nested)
{
	int i;

	begin(s);
	call(s, 1000, 90 * MS, "op cudaSetDevice caller=0x30");
	for (i = 0; i < 1000; i++) {
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 90000, 0x20);
		if (i % 10) {
			call(s, 1000, 500, "op cudaSetDevice caller=0x30");
			continue;
		}
		s->ns += 1000 + 2 * MS;
		fprintf(s->log, why, (unsigned long long)s->ns - 1000);
		if (nested)
			fprintf(s->log,
				"%lluns nested cuDevicePrimaryCtxRetain depth=1 duration=%uns\n",
				(unsigned long long)s->ns - 500, 2 * MS - 2000);
		fprintf(s->log, "%lluns op cudaSetDevice caller=0x30 duration=%uns\n",
			(unsigned long long)s->ns, 2 * MS);
	}
	conclude(s);
}

static void test_slow_set_device(void **state)
{
	static const char
		no_cpu[] = "%lluns sched window=2ms not_running=1990000 running=5000\n",
		lock[] = "%lluns wait kind=mutex fn=cudaSetDevice duration=1995us object=0x700\n";
	struct story *s = *state;
	int nested;

	for (nested = 0; nested < 2; nested++) {
		tell_slow_set_device(s, no_cpu, nested);
		assert_null(found(s, "steady-state"));
		tell_slow_set_device(s, lock, nested);
		assert_null(found(s, "steady-state"));
	}
}

/* Eight threads, one after the other, each begin with a GPU of their own and work on, in a program whose runtime is
 * linked to it: a thread that has no context yet asks for one. Nothing is made again. */
static void tell_starts(struct story *s, const char *start)
{
	int i, j;

	begin(s);
	for (i = 0; i < 8; i++) {
		fprintf(s->log, "slot %d tid=%d\n%lluns thread tid=%d name=\"a\"\n", 2 + i, 100 + i,
			(unsigned long long)s->ns + 1, 100 + i);
		call(s, 1000, 150 * MS, start, 0x100 + i);
		for (j = 0; j < 100; j++) {
			call(s, 1000, 4000,
			     "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10 device=%d", i);
			call(s, 1000, 90000,
			     "op cudaStreamSynchronize stream=8 caller=0x20 device=%d", i);
		}
	}
	conclude(s);
}

static void test_starts(void **state)
{
	struct story *s = *state;

	tell_starts(s, "op cuDevicePrimaryCtxRetain caller=0x30 object=%#x device=255");
	assert_null(found(s, "steady-state"));
	tell_starts(s, "op cuCtxCreate_v4 caller=0x30 object=%#x device=0");
	assert_null(found(s, "steady-state"));
}

/* A hundred requests, each in a thread of its own that allocates: one after the other, in the slot that the one
 * before has left; or in threads that all stay. */
static void tell_requests(struct story *s, bool threads_stay)
{
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		fprintf(s->log, "slot %d tid=%d\n", threads_stay ? 2 + i : 2, 100 + i);
		fprintf(s->log, "%lluns thread tid=%d name=\"a\"\n", (unsigned long long)s->ns + 1,
			100 + i);
		call(s, 1000, 40000,
		     "memory cudaMalloc op=alloc kind=device address=%#x bytes=4096 caller=0x30",
		     0x1000 + i);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 900000, 0x20);
	}
	conclude(s);
}

static void test_threads_that_end(void **state)
{
	struct story *s = *state;
	json_t *finding;

	tell_requests(s, false);
	finding = only(s, "steady-state", "calls about device memory");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "problem");
	assert_in_range(number(finding, "run_ns"), 90 * MS, 110 * MS);
	tell_requests(s, true);
	finding = only(s, "steady-state", "calls about device memory");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "minor");
	assert_in_range(number(finding, "run_ns"), 4000ull * MS, 6000ull * MS);
}

/* Steps that pin or load, each with some work behind it, then short phases of many launches. */
static void tell_phase(struct story *s, bool given_back, uint64_t step_ns)
{
	int i, k;

	begin(s);
	launch(s, 1000, 4000);
	for (i = 0; i < 50; i++) {
		call(s, 1000, 100000,
		     "memory cudaMallocHost op=alloc kind=pinned bytes=4096 caller=0x50 "
		     "address=%#x",
		     0x1000 * (i + 1));
		launch(s, 1000, 4000);
		wait_for_stream(s, step_ns, 0x20);
		if (given_back)
			call(s, 1000, 90000,
			     "memory cudaFreeHost op=free kind=pinned bytes=4096 caller=0x51 "
			     "address=%#x",
			     0x1000 * (i + 1));
	}
	for (i = 0; i < 10; i++) {
		for (k = 0; k < 100; k++)
			launch(s, 1000, 4000);
		wait_for_stream(s, 40000, 0x21);
	}
	conclude(s);
}

static void test_phase(void **state)
{
	struct story *s = *state;
	size_t i;
	json_t *finding;

	tell_phase(s, true, 400000); /* of 4 % of the work, and 80 % of the time */
	assert_true(json_array_size(s->findings) > 0);
	json_array_foreach(s->findings, i, finding)
	{
		assert_string_equal(json_string_value(json_object_get(finding, "id")),
				    "steady-state");
		assert_string_equal(json_string_value(json_object_get(finding, "severity")),
				    "problem");
	}
	tell_phase(s, false, 400000); /* that is how data is loaded */
	nothing(s);
}

/* Behind the work it is thrown away piece by piece what was made before it, or (again) while other work was done; and
 * some work is done in between. */
static void tell_cleanup(struct story *s, bool again)
{
	int i, k;

	begin(s);
	for (i = 0; i < 20; i++) {
		call(s, 1000, 400000,
		     "memory cudaMalloc op=alloc kind=device bytes=4096 caller=0x50 address=%#x",
		     0x1000 * (i + 1));
		if (!again)
			continue;
		launch(s, 1000, 4000);
		wait_for_stream(s, 20000, 0x20);
	}
	for (k = 0; k < 200; k++)
		launch(s, 1000, 4000);
	wait_for_stream(s, 2 * MS, 0x21);
	for (i = 0; i < 20; i++) {
		call(s, 1000, 400000,
		     "memory cudaFree op=free kind=device bytes=4096 caller=0x51 address=%#x",
		     0x1000 * (i + 1));
		launch(s, 1000, 4000);
		wait_for_stream(s, 20000, 0x22);
	}
	conclude(s);
}

static void test_cleanup(void **state)
{
	struct story *s = *state;

	tell_cleanup(s, false);
	nothing(s);
	tell_cleanup(s, true);
	found_of(s, "steady-state", "cudaFree");
}

/* In such steps access is said, to memory that was mapped before, or to what is mapped in each. */
static void tell_phase_of_access(struct story *s, bool maps)
{
	int i, k;

	begin(s);
	launch(s, 1000, 4000);
	for (i = 0; i < 50; i++) {
		if (maps || !i)
			call(s, 1000, 90000,
			     "memory cuMemMap op=map kind=device bytes=4096 caller=0x50 "
			     "address=%#x",
			     0x1000 * (i + 1));
		call(s, 1000, 100000, "op cuMemSetAccess object=%#x caller=0x51",
		     maps ? 0x1000 * (i + 1) : 0x1000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 400000, 0x20);
	}
	for (i = 0; i < 10; i++) {
		for (k = 0; k < 100; k++)
			launch(s, 1000, 4000);
		wait_for_stream(s, 40000, 0x21);
	}
	conclude(s);
}

static void test_phase_of_access(void **state)
{
	struct story *s = *state;

	tell_phase_of_access(s, false);
	only(s, "steady-state", "50 calls about mappings of memory");
	tell_phase_of_access(s, true);
	nothing(s);
}

/* Things made again and again, 100 times; and 20 times what the cure has instead, NULL: that is not known. */
static json_t *tell_again(struct story *s, uint64_t ns, const char *made, const char *instead,
			  uint64_t instead_ns)
{
	int i;

	begin(s);
	for (i = 0; i < 20 && instead; i++)
		call(s, 1000, instead_ns, "%s", instead);
	for (i = 0; i < 100; i++) {
		/* Every tenth takes longer than the others. */
		call(s, 1000, i % 10 ? ns : 2 * ns, "%s caller=0x30", made);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 900000, 0x20);
	}
	conclude(s);
	return found(s, "steady-state");
}

/* From what the cure's own calls leave of the cost to all of it but the first call. */
static void test_gain(void **state)
{
	static const char malloc[] =
		"memory cudaMalloc op=alloc kind=device address=0x1000 bytes=1048576";
	static const char driver[] =
		"memory cuMemAlloc_v2 op=alloc kind=device address=0x1000 bytes=1048576";
	static const char pool[] =
		"memory cudaMallocAsync op=alloc kind=device pool=1 address=0x2000 "
		"bytes=1048576 stream=8 caller=0x31";
	static const char pin[] =
		"memory cudaMallocHost op=alloc kind=pinned address=0x1000 bytes=1048576";
	struct story *s = *state;
	json_t *finding;

	finding = tell_again(s, 40000, malloc, NULL, 0); /* perhaps a pool costs as much */
	assert_in_range(number(finding, "cost_ns"), 108 * 40000, 110 * 40000);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	assert_in_range(number(finding, "gain_high_ns"), 105 * 40000, 109 * 40000);
	finding = tell_again(s, 40000, malloc, pool, 5000);
	assert_in_range(number(finding, "gain_low_ns"), 107 * 40000 - 100 * 5200,
			110 * 40000 - 98 * 4800);
	assert_in_range(number(finding, "gain_high_ns"), 105 * 40000, 109 * 40000);
	/* It costs more than all of them together, if not more than each. */
	finding = tell_again(s, 4000, malloc, pool, 5000);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	/* The driver's has another price. */
	finding = tell_again(s, 40000, driver, pool, 5000);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	finding = tell_again(s, 40000, pin, NULL, 0); /* used again, it costs nothing */
	assert_in_range(number(finding, "gain_low_ns"), 105 * 40000, 109 * 40000);
	assert_int_equal(number(finding, "gain_low_ns"), number(finding, "gain_high_ns"));
	finding = tell_again(s, 40000, "op cudaGraphInstantiate object=0x50", NULL, 0);
	assert_int_equal(number(finding, "gain_low_ns"), 0); /* an update, perhaps */
}

/* Allocations from a pool, all through the work; so many of a hundred go to the kernel module. */
static json_t *tell_pool(struct story *s, int from, int to, bool frees)
{
	int i;

	begin_with(s, "probes=1");
	for (i = 0; i < 100; i++) {
		bool grows = i >= from && i < to;

		if (grows) {
			s->ns += 210000;
			fprintf(s->log,
				"%lluns wait kind=ioctl fn=cudaMallocAsync duration=200us "
				"object=0x21 device=0\n",
				(unsigned long long)s->ns);
		}
		call(s, 0, grows ? 205000 : 2000,
		     "memory cudaMallocAsync op=alloc kind=device pool=1 address=0x2000 "
		     "bytes=1048576 stream=8 caller=0x30");
		launch(s, 1000, 4000);
		if (frees)
			call(s, 500, 2000,
			     "memory cudaFreeAsync op=free kind=device pool=1 address=0x2000 "
			     "bytes=0 stream=8 caller=0x32");
		wait_for_stream(s, 300000, 0x20);
	}
	conclude(s);
	return found(s, "steady-state");
}

/* A pool that gives its memory back at each synchronisation; one that does so no more once it is there; one that grows,
 * for nothing is freed; and one that has all it needs. */
static void test_pool_gives_back(void **state)
{
	struct story *s = *state;
	json_t *finding = tell_pool(s, 0, 100, true);

	assert_non_null(finding);
	says(finding, "from a pool mapped memory anew in the kernel module");
	assert_in_range(number(finding, "cost_ns"), 98 * 200000, 100 * 200000);
	assert_non_null(strstr(json_string_value(json_object_get(finding, "fix")),
			       "cudaMemPoolAttrReleaseThreshold"));
	assert_true(rs_is(finding, "severity", "problem"));
	assert_null(tell_pool(s, 0, 20, true));
	assert_null(tell_pool(s, 0, 100, false));
	assert_null(tell_pool(s, 0, 0, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY_TEST(test_gain),
		STORY_TEST(test_lazy_loading),
		STORY_TEST(test_first_use),
		STORY_TEST(test_new_code),
		STORY_TEST(test_modules),
		STORY_TEST(test_loads_behind_work),
		STORY_TEST(test_graph_update),
		STORY_TEST(test_captures),
		STORY_TEST(test_frees_of_nothing),
		STORY_TEST(test_threads_that_end),
		STORY_TEST(test_mappings),
		STORY_TEST(test_contexts),
		STORY_TEST(test_pool_gives_back),
		STORY_TEST(test_slow_set_device),
		STORY_TEST(test_starts),
		STORY_TEST(test_same_number),
		STORY_TEST(test_peer_access),
		STORY_TEST(test_cache_that_fills),
		STORY_TEST(test_no_cache),
		STORY_TEST(test_phase),
		STORY_TEST(test_phase_of_access),
		STORY_TEST(test_cleanup),
	};

	return RUN_WITH_FINDINGS(tests);
}
