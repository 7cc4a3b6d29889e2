/*
 * tests/unit/test_analyzer_profile.c: profiles: written and read, damaged, of other machines, found.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include "cmd_read/cmd_report.h"
#include "digest_scene.h"
#include "scratch.h"
#include "trace_text.h"
#include "expect/profile.h"
#include "account/evidence.h"
#include "render/render.h"
#include "sections/sections.h"

struct fixture {
	char *dir, path[300], other[300];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->dir = scratch_make();
	snprintf(f->path, sizeof(f->path), "%s/a/b/profile.json", f->dir);
	snprintf(f->other, sizeof(f->other), "%s/other.json", f->dir);
	unsetenv("CUDASPY_PROFILE");
	setenv("XDG_CONFIG_HOME", f->dir, 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	scratch_remove(f->dir);
	free(f);
	return 0;
}

static struct class_key copy_key(uint64_t bytes)
{
	return (struct class_key){
		.flags = CLASS_COPY,
		.bucket = class_bucket(bytes),
		.what = SPY_DIR_D2H,
		.kinds = SPY_MEM_DEVICE << 4 | SPY_MEM_PAGEABLE,
	};
}

#define COPY(size, ns) \
	{ \
		.function = (char *)"cudaMemcpyAsync", \
		.key = {.flags = CLASS_COPY, \
			.what = SPY_DIR_D2H, \
			.kinds = SPY_MEM_DEVICE << 4 | SPY_MEM_PAGEABLE}, \
		.bytes = (size), .expected_ns = (ns), .spread_ns = 7, .samples = 24 \
	}

/* Writes the profile all tests use. */
static void write_one(const char *path)
{
	struct profile_class classes[] = {
		COPY(4, 2000),
		COPY(1 << 20, 100000),
		COPY(4 << 20, 400000),
		{.function = (char *)"cudaMallocAsync",
		 .key = {.flags = CLASS_MEMORY | CLASS_COLD,
			 .what = 16 | SPY_MEMOP_ALLOC,
			 .kinds = SPY_MEM_DEVICE},
		 .bytes = 4096,
		 .expected_ns = 90000,
		 .samples = 8},
		{.function = (char *)"cudaLaunchKernel", .expected_ns = 2500, .samples = 400},
	};
	struct profile p = {
		.version = (char *)"1",
		.driver = (char *)"13000",
		.date = (char *)"2026-01-01T00:00:00Z",
		.gpus = (char *[]){(char *)"NVIDIA H200", (char *)"NVIDIA \"X\" 1"},
		.n_gpus = 2,
		.classes = classes,
		.n_classes = ARRAY_SIZE(classes),
	};

	assert_int_equal(profile_write(&p, path), 0);
}

static uint64_t cost(const struct profile *p, const char *function, struct class_key key)
{
	struct profile_class found;

	return profile_find(p, function, &key, &found) ? found.expected_ns : 0;
}

static void test_round_trip(void **state)
{
	const struct fixture *f = *state;
	struct class_key malloc_key = {.fn = 99,
				       .flags = CLASS_MEMORY | CLASS_COLD,
				       .bucket = class_bucket(4096),
				       .what = 16 | SPY_MEMOP_ALLOC,
				       .kinds = SPY_MEM_DEVICE};
	struct profile p;
	char *text;

	write_one(f->path);
	assert_int_equal(profile_read(&p, f->path), 0);
	assert_int_equal(p.n_classes, 5);
	assert_int_equal(p.n_gpus, 2);
	assert_string_equal(p.gpus[1], "NVIDIA \"X\" 1");
	assert_string_equal(p.driver, "13000");
	assert_int_equal(cost(&p, "cudaLaunchKernel", (struct class_key){.fn = 5}), 2500);
	assert_int_equal(cost(&p, "cudaLaunchKernel", (struct class_key){.flags = CLASS_COLD}), 0);
	assert_int_equal(cost(&p, "cudaFree", (struct class_key){0}), 0);
	assert_int_equal(cost(&p, "cudaMallocAsync", malloc_key), 90000);
	malloc_key.what = SPY_MEMOP_ALLOC; /* not of a pool */
	assert_int_equal(cost(&p, "cudaMallocAsync", malloc_key), 0);
	text = profile_describe(&p);
	assert_string_equal(text, "profile of NVIDIA H200 and others, driver 13000");
	free(text);
	profile_release(&p);
}

/* Each line of the file. */
static void test_file(void **state)
{
	static const char wanted[] =
		"{\n \"schema\": \"cudaspy-profile-1\",\n \"cudaspy\": \"1\",\n"
		" \"date\": \"2026-01-01T00:00:00Z\",\n \"driver\": \"13000\",\n"
		" \"gpus\": [\n  \"NVIDIA H200\",\n  \"NVIDIA \\\"X\\\" 1\"\n ],\n"
		" \"classes\": [\n"
		"  {\n   \"function\": \"cudaMemcpyAsync\",\n   \"cold\": false,\n"
		"   \"direction\": \"d2h\",\n   \"src\": \"device\",\n   \"dst\": \"pageable\",\n"
		"   \"bytes\": 4,\n   \"expected_ns\": 2000,\n   \"spread_ns\": 7,\n   "
		"\"samples\": 24\n"
		"  },\n";
	static const char memory[] =
		"  {\n   \"function\": \"cudaMallocAsync\",\n   \"cold\": true,\n"
		"   \"op\": \"alloc\",\n   \"kind\": \"device\",\n   \"pool\": true,\n"
		"   \"bytes\": 4096,\n   \"expected_ns\": 90000,\n   \"spread_ns\": 0,\n   "
		"\"samples\": 8\n"
		"  },\n";
	const struct fixture *f = *state;
	struct profile p;
	char *text;

	write_one(f->path);
	text = scratch_read(f->path, NULL);
	assert_memory_equal(text, wanted, strlen(wanted));
	assert_non_null(strstr(text, memory));
	free(text);
	assert_int_equal(profile_read(&p, f->path), 0);
	assert_string_equal(p.version, "1");
	assert_string_equal(p.date, "2026-01-01T00:00:00Z");
	assert_string_equal(p.path, f->path);
	assert_int_equal(p.classes[0].samples, 400);
	assert_int_equal(p.classes[1].spread_ns, 0);
	assert_int_equal(p.classes[2].spread_ns, 7);
	assert_int_equal(p.classes[1].key.flags, CLASS_MEMORY | CLASS_COLD);
	assert_int_equal(p.classes[1].key.what, 16 | SPY_MEMOP_ALLOC);
	assert_int_equal(p.classes[2].key.kinds, SPY_MEM_DEVICE << 4 | SPY_MEM_PAGEABLE);
	assert_int_equal(p.classes[3].bytes, 1 << 20);
	profile_release(&p);
}

/* Of one that cannot be written, nothing is left. */
static void test_not_written(void **state)
{
	const struct fixture *f = *state;
	struct profile p = {.driver = (char *)"1", .version = (char *)"1", .date = (char *)"1"};
	unsigned int complaints = warnings_count();
	char path[400];

	scratch_write(f->other, "x", 1);
	snprintf(path, sizeof(path), "%s/p.json", f->other); /* in no folder */
	assert_true(profile_write(&p, path) < 0);
	assert_int_equal(warnings_count(), complaints + 1);
	assert_int_equal(profile_write(&p, f->dir), -EISDIR);
	assert_int_equal(warnings_count(), complaints + 2);
	assert_int_equal(profile_write(&p, "/dev/full"), -ENOSPC);
	assert_int_equal(warnings_count(), complaints + 3);
	write_one(f->other); /* others may read it, as the umask has it */
	assert_int_equal(profile_write(&p, f->other), 0);
}

/* Nothing is put in the place of what is no file: a link leads somewhere, as /dev/stdout does. */
static void test_no_file(void **state)
{
	const struct fixture *f = *state;
	struct profile p;
	struct stat status;
	char *link = xasprintf("%s.link", f->other);

	assert_int_equal(symlink(f->other, link), 0);
	write_one(link);
	assert_int_equal(lstat(link, &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(profile_read(&p, f->other), 0);
	profile_release(&p);
	unlink(link);
	free(link);
}

static void test_sizes(void **state)
{
	const struct fixture *f = *state;
	const char *function = "cudaMemcpyAsync";
	struct class_key other = copy_key(1 << 20);
	struct profile p;

	write_one(f->path);
	assert_int_equal(profile_read(&p, f->path), 0);
	assert_int_equal(cost(&p, function, copy_key(4)), 2000);
	assert_int_equal(cost(&p, function, copy_key(1)), 2000);
	assert_int_equal(cost(&p, function, copy_key(1 << 20)), 100000);
	assert_int_equal(cost(&p, function, copy_key(2 << 20)), 200000);
	assert_in_range(cost(&p, function, copy_key(512 << 10)), 50000, 52000);
	assert_int_equal(cost(&p, function, copy_key(8 << 20)), 800000);
	assert_int_equal(cost(&p, function, copy_key(64 << 20)), 0); /* too far away */
	assert_int_equal(cost(&p, function, copy_key(0)), 0);
	other.what = SPY_DIR_H2D;
	assert_int_equal(cost(&p, function, other), 0);
	profile_release(&p);
}

/* Each of these is refused with a complaint. */
static void test_damaged(void **state)
{
	static const char head[] = "\"schema\":\"cudaspy-profile-1\",\"driver\":\"1\",\"gpus\":[]";
	static const char *const bad[] = {
		"",
		"not JSON",
		"[]",
		"{}",
		"{\"schema\":\"cudaspy-profile-2\",\"driver\":\"1\",\"gpus\":[],\"classes\":[]}",
		"{\"schema\":\"cudaspy-profile-1\",\"gpus\":[],\"classes\":[]}",
		"{\"schema\":\"cudaspy-profile-1\",\"driver\":\"1\",\"classes\":[]}",
		"{\"schema\":\"cudaspy-profile-1\",\"driver\":\"1\",\"gpus\":[1],\"classes\":[]}",
		"{%s,\"classes\":[{}]}",
		"{%s,\"classes\":[3]}",
		"{%s,\"classes\":[{\"function\":\"f\",\"bytes\":0,\"expected_ns\":1,\"spread_ns\":"
		"0}]}",
		"{%s,\"classes\":[{\"function\":\"f\",\"bytes\":-1,\"expected_ns\":1,\"spread_ns\":0,\"samples\":1}]}",
		"{%s,\"classes\":[{\"function\":\"f\",\"direction\":\"up\",\"bytes\":1,"
		"\"expected_ns\":1,\"spread_ns\":0,\"samples\":1}]}",
		"{%s,\"classes\":[{\"function\":\"f\",\"op\":\"alloc\",\"bytes\":1,"
		"\"expected_ns\":1,\"spread_ns\":0,\"samples\":1}]}",
	};
	const struct fixture *f = *state;
	unsigned int complaints;
	struct profile p;
	char text[512];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
#pragma GCC diagnostic ignored "-Wformat-security"
		snprintf(text, sizeof(text), bad[i], head);
#pragma GCC diagnostic pop
		scratch_write(f->other, text, strlen(text));
		complaints = warnings_count();
		assert_int_equal(profile_read(&p, f->other), -EINVAL);
		assert_int_equal(warnings_count(), complaints + 1);
		profile_release(&p);
	}
	snprintf(text, sizeof(text), "{%s,\"classes\":[]}", head);
	scratch_write(f->other, text, strlen(text));
	assert_int_equal(profile_read(&p, f->other), 0);
	profile_release(&p);
	assert_int_equal(profile_read(&p, "/nonexistent"), -ENOENT);
	profile_release(&p);
	assert_true(profile_read(&p, f->dir) < 0);
	profile_release(&p);
}

static struct machine machine_of(const char **driver, const char **gpu)
{
	return (struct machine){.drivers = (char **)(uintptr_t)driver,
				.n_drivers = *driver != NULL,
				.gpus = (char **)(uintptr_t)gpu,
				.n_gpus = *gpu != NULL};
}

/* 1 used, 0 refused with a reason, -1 there was none. */
static int choose(const char *named, const char *driver, const char *gpu)
{
	struct machine machine = machine_of(&driver, &gpu);
	struct profile p;
	char *why;
	int found = profile_choose(&p, named, &machine, &why);

	assert_false(found > 0 && why);
	if (!found && !why)
		found = -1;
	free(why);
	profile_release(&p);
	return found;
}

static void test_choice(void **state)
{
	const struct fixture *f = *state;
	char *path = profile_default_path("13000", "NVIDIA H200/2");

	assert_true(strstr(path, "/cudaspy/profile-13000-NVIDIA_H200_2.json"));
	free(path);
	assert_int_equal(choose(NULL, "13000", "NVIDIA H200"), -1);
	path = profile_default_path("13000", "NVIDIA H200");
	write_one(path);
	assert_int_equal(choose(NULL, "13000", "NVIDIA H200"), 1);
	assert_int_equal(choose(NULL, "13001", "NVIDIA H200"), -1);
	assert_int_equal(choose(NULL, NULL, NULL), -1);
	write_one(f->path);
	assert_int_equal(choose(f->path, "13000", "NVIDIA H200"), 1);
	assert_int_equal(choose(f->path, "13001", "NVIDIA H200"), 0);
	assert_int_equal(choose(f->path, "13000", "NVIDIA A100"), 0);
	assert_int_equal(choose(f->path, NULL, NULL), 0);
	assert_int_equal(choose("/nonexistent", "13000", "NVIDIA H200"), -ENOENT);
	setenv("CUDASPY_PROFILE", f->path, 1);
	assert_int_equal(choose(NULL, "13001", "NVIDIA H200"), 0);
	setenv("CUDASPY_PROFILE", "", 1); /* as if it were not set */
	assert_int_equal(choose(NULL, "13000", "NVIDIA H200"), 1);
	assert_int_equal(choose("", "13000", "NVIDIA H200"), 1);
	unsetenv("CUDASPY_PROFILE");
	/* One that was only found, and not named, does not keep a report from being made. */
	scratch_write(path, "{", 1);
	assert_int_equal(choose(NULL, "13000", "NVIDIA H200"), -1);
	free(path);
}

static void test_report(void **state)
{
	static const char log[] = "trace a.1 pid=1 program=\"a\"\nslot 1 tid=7\n"
				  "10us op cudaEventCreate duration=5us\n";
	const struct fixture *f = *state;
	struct report_options options = {.renderer = renderer_find("json")};
	char log_path[300], trace[300], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	snprintf(log_path, sizeof(log_path), "%s/log", f->dir);
	snprintf(trace, sizeof(trace), "%s/a.1", f->dir);
	scratch_write(log_path, log, strlen(log));
	tt_make(log_path, f->dir);
	assert_int_equal(report_show((const char *[]){trace}, 1, NULL, &options, out), 0);
	write_one(f->path);
	options.profile = f->path; /* which does not fit: nothing is lost by that */
	assert_int_equal(report_show((const char *[]){trace}, 1, NULL, &options, out), 0);
	scratch_write(f->path, "{", 1);
	assert_int_equal(report_show((const char *[]){trace}, 1, NULL, &options, out), -EINVAL);
	fclose(out);
	free(text);
}

/* Copies of all sizes are a line, with the smallest and the largest; another kind of copy is another one. */
static void test_costs(void **state)
{
	struct profile_class classes[] = {
		{.function = (char *)"cudaLaunchKernel", .expected_ns = 2500, .samples = 400},
		{.function = (char *)"cudaLaunchKernel",
		 .key = {.flags = CLASS_COLD},
		 .expected_ns = 90000,
		 .samples = 8},
		{.function = (char *)"cudaMallocAsync",
		 .key = {.flags = CLASS_MEMORY | CLASS_COLD,
			 .what = 16 | SPY_MEMOP_ALLOC,
			 .kinds = SPY_MEM_DEVICE},
		 .bytes = 4096,
		 .expected_ns = 80000,
		 .samples = 7},
		{.function = (char *)"cudaMallocAsync",
		 .key = {.flags = CLASS_MEMORY, .what = SPY_MEMOP_ALLOC, .kinds = SPY_MEM_DEVICE},
		 .bytes = 4096,
		 .expected_ns = 70000,
		 .samples = 6},
		COPY(4, 2000),
		COPY(1 << 20, 100000),
		COPY(4 << 20, 400000),
		{.function = (char *)"cudaMemcpyAsync",
		 .key = {.flags = CLASS_COPY | CLASS_COLD,
			 .what = SPY_DIR_D2H,
			 .kinds = SPY_MEM_DEVICE << 4 | SPY_MEM_PAGEABLE},
		 .bytes = 4,
		 .expected_ns = 9000,
		 .samples = 1},
		{.function = (char *)"cudaMemcpyAsync",
		 .key = {.flags = CLASS_COPY | CLASS_COLD,
			 .what = SPY_DIR_D2H,
			 .kinds = SPY_MEM_DEVICE << 4 | SPY_MEM_PINNED},
		 .bytes = 8,
		 .expected_ns = 8000,
		 .samples = 2},
	};
	const struct profile profile = {.driver = (char *)"13000",
					.date = (char *)"today",
					.gpus = (char *[]){(char *)"H200", (char *)"X"},
					.n_gpus = 2,
					.classes = classes,
					.n_classes = ARRAY_SIZE(classes)};
	struct report report;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *root;

	(void)state;
	report_init(&report, "test");
	report_profile(&report, &profile);
	assert_int_equal(renderer_show(renderer_find("json"), &report, out), 0);
	assert_int_equal(renderer_show(renderer_find("text"), &report, out), 0);
	fclose(out);
	report_release(&report);
	assert_non_null(strstr(text, "device to pageable, 4 B to 4.00 MiB"));
	assert_non_null(strstr(text, "400.0 us"));
	root = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
	assert_non_null(root);
	shows(root, "costs", "function what low_bytes low_ns high_bytes high_ns samples",
	      "cudaLaunchKernel | - | 0 | 2500 | 0 | 2500 | 400\n"
	      "cudaLaunchKernel | first one | 0 | 90000 | 0 | 90000 | 8\n"
	      "cudaMallocAsync | alloc device of a pool, first one | 4096 | 80000 | 4096 | 80000 | 7\n"
	      "cudaMallocAsync | alloc device | 4096 | 70000 | 4096 | 70000 | 6\n"
	      "cudaMemcpyAsync | d2h device to pageable | 4 | 2000 | 4194304 | 400000 | 72\n"
	      "cudaMemcpyAsync | d2h device to pageable, first one | 4 | 9000 | 4 | 9000 | 1\n"
	      "cudaMemcpyAsync | d2h device to pinned, first one | 8 | 8000 | 8 | 8000 | 2\n");
	shows(root, "profile", "gpus driver date classes", "H200 and others | 13000 | today | 9\n");
	json_decref(root);
	free(text);
}

/* A function that cost depends on something no class knows of is left out, and cold calls need to be
 * many. */
static void test_make(void **state)
{
	const struct fixture *f = *state;
	char log_path[300], *text = NULL;
	struct expect expect;
	struct trace_set set;
	struct profile p;
	unsigned int i;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fputs("trace a.1 pid=1 program=\"a\"\nslot 1 tid=7\n1us gpu device=0 name=\"G\"\n"
	      "1us note note=version text=\"driver 12080\"\n",
	      out);
	for (i = 1; i < 20; i++)
		fprintf(out,
			"%ums op cudaEventCreate duration=5us\n"
			"%ums op cudaGraphInstantiate duration=50us\n"
			"%ums launch cudaLaunchKernel duration=90us kernel=%u stream=16\n"
			"%ums launch cudaLaunchKernel duration=4us kernel=%u stream=16\n"
			"%ums copy cudaMemcpyAsync duration=2us direction=h2d src=pinned "
			"dst=device bytes=4096 stream=16 captured=1\n"
			"%ums call cuModuleGetFunction duration=2us\n"
			"%ums call cuModuleLoadData duration=2us\n"
			"%ums call cuLibraryLoadData duration=2us\n",
			i, i, i, i, i, i, i, i, i, i);
	/* One too few to tell what they cost, and just enough. */
	for (i = 20; i < 28; i++)
		fprintf(out,
			"%ums op cudaStreamCreate duration=9us\n%ums op cudaEventCreate "
			"duration=5us\n",
			i, i);
	for (i = 29; i < 36; i++)
		fprintf(out, "%ums op cudaEventDestroy duration=7us\n", i);
	fclose(out);
	snprintf(log_path, sizeof(log_path), "%s/log", f->dir);
	scratch_write(log_path, text, size);
	free(text);
	tt_make(log_path, f->dir);
	assert_int_equal(trace_set_open(&set, (const char *[]){f->dir}, 1, NULL), 0);
	expect_learn(&expect, &set);
	evidence_gather(&expect, 1);
	profile_make(&p, &expect);
	assert_string_equal(p.driver, "12080");
	assert_int_equal(p.n_gpus, 1);
	assert_string_equal(p.classes[0].function, "cudaEventCreate");
	assert_int_equal(p.n_classes, 4);
	assert_string_equal(p.classes[1].function, "cudaLaunchKernel");
	assert_string_equal(p.classes[2].function, "cudaLaunchKernel");
	assert_string_equal(p.classes[3].function, "cudaStreamCreate");
	assert_int_equal(cost(&p, "cudaStreamCreate", (struct class_key){0}) / 1000, 9);
	assert_int_equal(cost(&p, "cudaEventDestroy", (struct class_key){0}), 0);
	assert_in_range(cost(&p, "cudaLaunchKernel", (struct class_key){0}), 3960, 4040);
	assert_in_range(cost(&p, "cudaLaunchKernel", (struct class_key){.flags = CLASS_COLD}),
			89000, 91000);
	profile_release(&p);
	expect_release(&expect);
	trace_set_release(&set);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_round_trip),  TEST(test_sizes),  TEST(test_damaged),
		TEST(test_no_file),     TEST(test_choice), TEST(test_report),
		TEST(test_costs),       TEST(test_make),   TEST(test_file),
		TEST(test_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
