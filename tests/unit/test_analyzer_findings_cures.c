/*
 * tests/unit/test_analyzer_findings_cures.c: cures in a framework's words, and findings that one of them mends: the one where it
 * is to be mended has the cost of all. The twins: calls of the program's own, and two mistakes. And cures for what a library makes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "log_findings.h"

#define ROUNDS 60
#define PACKAGES "/v/lib/python3.12/site-packages/"

/* What frees memory in each round, on line 10 of the program, and what allocates it again, on line 20. */
struct cached {
	const char *file, *function; /* of the package that frees; NULL: the program does */
	const char *allocates; /* "" nothing */
	unsigned int free_us, allocate_us;
	const char *library; /* of torch, that makes these calls; NULL: the program */
	const char *variable; /* that is set; NULL: none */
};

static void tell(struct log *log, const struct cached *c)
{
	bool host = strstr(c->allocates, "Host");

	log->used = 0;
	add(log,
	    "trace app.100 pid=100 program=\"app\" probes=1 %s\n"
	    "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
	    "2us python_code code=1 first_line=1 file=\"/u/train.py\" function=\"step\"\n"
	    "2us python_code code=2 first_line=1 file=\"%s%s\" function=\"%s\"\n",
	    c->variable ?: "", PACKAGES, c->file ?: "none.py", c->function ?: "none");
	if (c->library)
		add(log,
		    "2us module base=0 begin=0 end=0x1000 span_pages=1 path=\"%storch/lib/%s\"\n",
		    PACKAGES, c->library);
	for (unsigned int i = 1; i <= ROUNDS; i++) {
		unsigned int at = 10000 * i;
		const char *free = host ? "cudaFreeHost" : "cudaFree";

		add(log, "%uus launch cudaLaunchKernel duration=2us stream=0x10 caller=0x50\n", at);
		at += 10 + c->free_us;
		add(log,
		    "%uus stack fn=%s why=32 frames=0x60\n%uus python_stack fn=%s lines=%s\n"
		    "%uus memory %s op=free %saddress=0x1000 duration=%uus caller=0x60\n",
		    at, free, at, free, c->file ? "2:224,1:10" : "1:10", at, free,
		    host ? "kind=pinned " : "", c->free_us);
		at += 10 + c->allocate_us;
		if (*c->allocates)
			add(log,
			    "%uus stack fn=%s why=32 frames=0x70\n%uus python_stack fn=%s lines=1:20\n"
			    "%uus memory %s op=alloc %saddress=0x1000 bytes=1048576 duration=%uus "
			    "caller=0x70\n",
			    at, c->allocates, at, c->allocates, at, c->allocates,
			    host ? "kind=pinned " : "", c->allocate_us);
		add(log, "%uus op cudaStreamSynchronize stream=0x10 duration=20us caller=0x80\n",
		    10000 * i + 9000);
	}
}

static bool is_of_memory(const json_t *finding)
{
	return !strcmp(text(finding, "id"), "steady-state") ||
	       !strcmp(text(finding, "id"), "hidden-sync");
}

static size_t problems(const json_t *root)
{
	size_t i, n = 0;
	json_t *finding;

	json_array_foreach(json_object_get(root, "findings"), i, finding)
	{
		n += !strcmp(text(finding, "severity"), "problem") && is_of_memory(finding);
	}
	return n;
}

static json_t *first(const json_t *root)
{
	json_t *rows = json_object_get(root, "findings"), *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (is_of_memory(row))
			return row;
	}
	return NULL;
}

static void is_one_finding(const struct cached *c, const char *function, const char *cure)
{
	static struct log log;
	json_t *root, *finding;

	tell(&log, c);
	root = report_on(log.text);
	assert_int_equal(problems(root), 1);
	finding = first(root);
	says(finding, "function", function);
	says(finding, "fix", cure);
	assert_in_range(number(finding, "cost_ns"),
			(c->free_us + c->allocate_us) * 1000ull * (ROUNDS - 8),
			(c->free_us + c->allocate_us) * 1000ull * ROUNDS);
	assert_in_range(number(finding, "share_ppm"), (c->free_us + c->allocate_us) * 90,
			(c->free_us + c->allocate_us) * 110);
	if (c->allocate_us)
		says(finding, "what", "with 1 more finding that the same cure mends");
	json_decref(root);
}

static void test_one_cure(void **state)
{
	(void)state;
	/* What allocates costs more, but what empties the cache is to be changed. */
	is_one_finding(&(struct cached){"torch/cuda/memory.py", "empty_cache", "cudaMalloc", 500,
					1000, NULL, NULL},
		       "cudaFree", "Take torch.cuda.empty_cache() out of the loop");
	is_one_finding(&(struct cached){"torch/cuda/graphs.py", "graph.__enter__", "cudaHostAlloc",
					500, 1000, NULL, NULL},
		       "cudaFreeHost", "Capture the graph once");
	is_one_finding(
		&(struct cached){"torch/cuda/memory.py", "empty_cache", "", 500, 0, NULL, NULL},
		"cudaFree", "Take torch.cuda.empty_cache() out of the loop");
}

/* The program's own: two findings, which name each other; and another function of the same file. */
static void test_own_calls(void **state)
{
	static const struct cached twins[] = {
		{NULL, NULL, "cudaMalloc", 500, 1000, NULL, NULL},
		{"torch/cuda/memory.py", "reset_peak_memory_stats", "cudaMalloc", 500, 1000, NULL,
		 NULL},
	};
	static struct log log;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(twins); i++) {
		json_t *root, *finding;

		tell(&log, &twins[i]);
		root = report_on(log.text);
		assert_int_equal(problems(root), 2);
		finding = first(root);
		says(finding, "function", "cudaMalloc");
		says(finding, "what", "the same cause as hidden-sync (cudaFree ");
		says(finding, "fix", "Allocate once");
		json_decref(root);
	}
}

/* PyTorch's allocator, which nothing asked to give memory back; the twin: another library. */
static void test_short_of_memory(void **state)
{
	static const struct {
		struct cached told;
		bool cured;
	} cases[] = {
		{{.allocates = "", .free_us = 500, .library = "libc10_cuda.so"}, true},
		{{.allocates = "", .free_us = 500, .library = "libtorch_cuda.so"}, false},
	};
	static struct log log;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *root, *finding;

		tell(&log, &cases[i].told);
		root = report_on(log.text);
		finding = first(root);
		assert_non_null(finding);
		says(finding, "function", "cudaFree");
		assert_int_equal(strstr(text(finding, "fix"), "expandable_segments") != NULL,
				 cases[i].cured);
		json_decref(root);
	}
}

/* Its allocator, which is told to keep nothing: one finding, and the cure is the variable. The twin: without it. */
static void test_no_caching(void **state)
{
	struct cached told = {.allocates = "cudaMalloc",
			      .free_us = 500,
			      .allocate_us = 1000,
			      .library = "libc10_cuda.so",
			      .variable = "env_PYTORCH_NO_CUDA_MEMORY_CACHING=\"1\""};
	static struct log log;
	json_t *root;

	(void)state;
	tell(&log, &told);
	root = report_on(log.text);
	assert_int_equal(problems(root), 1);
	says(first(root), "function", "cudaMalloc");
	says(first(root), "fix", "Leave the variable PYTORCH_NO_CUDA_MEMORY_CACHING out");
	json_decref(root);
	told.variable = "env_PYTORCH_CUDA_ALLOC_CONF=\"backend:native\"";
	tell(&log, &told);
	root = report_on(log.text);
	assert_null(strstr(text(first(root), "fix"), "NO_CUDA_MEMORY_CACHING"));
	json_decref(root);
}

/* ---- what a library makes ---- */

#define NVIDIA PACKAGES "nvidia/cu13/lib/"

/* In each round a library makes something in 1 ms, with 2 ms of its own before that, and throws it away in 300 us; the program
 * asks for it on line 10. */
struct making {
	const char *library, *record, *makes, *destroys;
};

static void tell_making(struct log *log, const struct making *m)
{
	bool memory = !strcmp(m->record, "memory");

	log->used = 0;
	add(log,
	    "trace app.100 pid=100 program=\"app\" probes=1\n"
	    "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
	    "2us python_code code=1 first_line=1 file=\"/u/train.py\" function=\"spectrum\"\n"
	    "2us python_code code=2 first_line=1 file=\"%scupy/fft/_fft.py\" function=\"fft\"\n"
	    "2us module base=0 begin=0 end=0x1000 span_pages=1 path=\"%s%s\"\n",
	    PACKAGES, NVIDIA, m->library);
	for (unsigned int i = 1; i <= ROUNDS; i++) {
		unsigned int at = 10000 * i;

		add(log, "%uus launch cudaLaunchKernel duration=2us stream=0x10 caller=0x5000\n",
		    at);
		at += 6010;
		add(log,
		    "%uus op cudaStreamSynchronize stream=0x10 duration=6000us caller=0x5010\n",
		    at);
		add(log, "%uus call cuCtxPopCurrent_v2 duration=1us caller=0x40\n", at + 10);
		at += 3010;
		add(log,
		    "%uus stack fn=%s why=32 frames=0x60\n%uus python_stack fn=%s lines=2:224,1:10\n"
		    "%uus %s %s %s duration=1000us caller=0x60\n",
		    at, m->makes, at, m->makes, at, m->record, m->makes,
		    memory ? "op=alloc bytes=4096 address=0x7000" : "");
		add(log, "%uus %s %s %s duration=300us caller=0x70\n", at + 310, m->record,
		    m->destroys, memory ? "op=free address=0x7000" : "");
	}
}

#define MODULES "op", "cuModuleLoadData", "cuModuleUnload"

static json_t *report_on_making(struct log *log, const struct making *m)
{
	tell_making(log, m);
	return report_on(log->text);
}

static json_t *first_of(const json_t *root, const char *id)
{
	json_t *rows = json_object_get(root, "findings"), *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (!strcmp(text(row, "id"), id))
			return row;
	}
	return NULL;
}

static size_t all_problems(const json_t *root)
{
	size_t i, n = 0;
	json_t *finding;

	json_array_foreach(json_object_get(root, "findings"), i, finding)
	{
		n += !strcmp(text(finding, "severity"), "problem");
	}
	return n;
}

/* One mistake, one finding: at the program's line, with what is thrown away, and with what the library does meanwhile. */
static void test_plans(void **state)
{
	static struct log log;
	json_t *root = report_on_making(&log, &(struct making){"libcufft.so.12", MODULES}),
	       *finding;

	(void)state;
	assert_int_equal(all_problems(root), 1);
	finding = first_of(root, "lazy-loading");
	assert_non_null(finding);
	says(finding, "where", "cuModuleLoadData in spectrum, train.py:10, by fft (_fft.py:224)");
	says(finding, "fix", "Make each plan of cuFFT once");
	says(finding, "what", "with 1 more finding that the same cure mends");
	assert_in_range(number(finding, "cost_ns"), 1300 * 1000ull * (ROUNDS - 2),
			1300 * 1000ull * ROUNDS);
	/* No more than the calls took, of 2 ms each time. */
	assert_in_range(number(finding, "idle_gpu_ns"), 1300 * 1000ull * (ROUNDS - 2),
			1300 * 1000ull * ROUNDS);
	json_decref(root);
}

/* The same calls of a library that is not NVIDIA's: what is between them is the program's. */
static void test_own_modules(void **state)
{
	static struct log log;
	json_t *root = report_on_making(&log, &(struct making){"libours.so", MODULES}), *finding;

	(void)state;
	assert_int_equal(all_problems(root), 3);
	assert_non_null(first_of(root, "starved-by-host"));
	finding = first_of(root, "lazy-loading");
	assert_non_null(finding);
	says(finding, "fix", "Load modules once");
	json_decref(root);
}

/* Whose memory it is, is known by the library; one that has no row has the detector's words. */
static void test_libraries(void **state)
{
	static const struct {
		const char *library, *cure;
	} cases[] = {
		{"libcufft-9335f6a2.so.11", "plan of cuFFT"},
		{"libcublas.so.13", "(cublasCreate) once"},
		{"libcublasLt.so.13", "(cublasLtCreate)"},
		{"libcudnn_engines_precompiled.so.9", "(cudnnCreate) and plans once"},
		{"libcusolver.so.12", "(cusolverDnCreate) once"},
		{"libcusparse.so.12", "(cusparseCreate)"},
		{"libcurand.so.10", "(curandCreateGenerator) once"},
		{"libnvjpeg.so.13", "(nvjpegCreate, nvjpegJpegStateCreate) once"},
		{"libcutensor.so.2", "plan, communicator or workspace of libcutensor.so.2"},
		{"libours.so", "Allocate once and use it again"},
	};
	static struct log log;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct making memory = {cases[i].library, "memory", "cudaMalloc", "cudaFree"};
		json_t *root = report_on_making(&log, &memory), *finding;

		finding = first_of(root, "steady-state");
		assert_non_null(finding);
		says(finding, "fix", cases[i].cure);
		json_decref(root);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_cure),        cmocka_unit_test(test_own_calls),
		cmocka_unit_test(test_short_of_memory), cmocka_unit_test(test_no_caching),
		cmocka_unit_test(test_plans),           cmocka_unit_test(test_own_modules),
		cmocka_unit_test(test_libraries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
