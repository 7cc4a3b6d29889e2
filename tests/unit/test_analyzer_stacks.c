/*
 * tests/unit/test_analyzer_stacks.c: a stack goes with its call and with no other; a finding shows that of
 * its costliest call; code that a process made itself is named by its map, whatever is in there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <utime.h>
#include "cmd_report.h"
#include "perf_map.h"
#include "render.h"
#include "scratch.h"
#include "trace_text.h"

/* ---- maps ---- */

static char map_path[64];
static uint32_t map_pid;

/* A process that is not there: numbers end at 2^22. */
static void write_map(const char *text)
{
	FILE *out;

	map_pid = 0x70000000 + (uint32_t)getpid();
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%u.map", map_pid);
	out = fopen(map_path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static const char *find(struct perf_maps *maps, uint64_t address, const char **file)
{
	*file = NULL;
	return perf_map_find(maps, map_pid, now_ns(), address, file);
}

static void test_map(void **state)
{
	struct perf_maps maps = {0};
	const char *file;

	(void)state;
	write_map("1000 20 py::step:/home/user/a b.py\n"
		  "rubbish\n\n1020\n1040 zz x\n"
		  "1020 20 a function with blanks\n"
		  "3000 10 py::old:/old.py\n"
		  "3000 10 py::<module>:/new.py\n"
		  "5000 10 py::\n");
	assert_null(find(&maps, 0x1000, &file)); /* nothing returns to a beginning */
	assert_string_equal(find(&maps, 0x1001, &file), "py::step");
	assert_string_equal(file, "/home/user/a b.py");
	assert_string_equal(find(&maps, 0x1020, &file), "py::step");
	assert_string_equal(find(&maps, 0x1021, &file), "a function with blanks");
	assert_null(file);
	assert_null(find(&maps, 0x1041, &file));
	assert_string_equal(find(&maps, 0x3008, &file), "py::<module>");
	assert_string_equal(find(&maps, 0x5008, &file), "py::");
	perf_maps_release(&maps);
	unlink(map_path);
	assert_null(find(&maps, 0x1001, &file));
	perf_maps_release(&maps);
}

/* The same number two days before was another process. */
static void test_old_map(void **state)
{
	struct utimbuf before = {0};
	struct perf_maps maps = {0};
	const char *file;

	(void)state;
	write_map("1000 20 py::step:/a.py\n");
	before.modtime = before.actime = (time_t)(now_ns() / 1000000000) - 2 * 24 * 3600;
	utime(map_path, &before);
	assert_null(find(&maps, 0x1001, &file));
	perf_maps_release(&maps);
	unlink(map_path);
}

/* ---- stacks of findings ---- */

#define HEAD \
	"trace app.100 pid=100 program=\"/bin/app\"\n" \
	"slot 0 tid=101\n" \
	"2us module base=0x400000 begin=0x401000 end=0x409000 path=\"/nowhere/app\"\n" \
	"slot 1 tid=101\n" \
	"10us thread tid=101 name=\"app\"\n" \
	"20us call cudaSetDevice duration=2us caller=0x401010\n"

/* A copy to pageable memory, and a stack before it. */
#define COPY(end, duration) \
	end " copy cudaMemcpyAsync duration=" duration \
	    " direction=d2h src=device dst=pageable bytes=65536 stream=0x55 caller=0x401060\n"
#define STACK(time, fn, frames) time " stack fn=" fn " why=2 frames=" frames "\n"

static json_t *report_of(const char *log)
{
	struct report_options options = {.renderer = renderer_find("json")};
	char *parent = scratch_make(), path[PATH_MAX], *text = NULL;
	const char *dirs[] = {parent};
	json_t *report;
	size_t size;
	FILE *out;

	snprintf(path, sizeof(path), "%s/log", parent);
	scratch_write(path, log, strlen(log));
	tt_make(path, parent);
	out = open_memstream(&text, &size);
	assert_int_equal(report_show(dirs, 1, NULL, &options, out), 0);
	fclose(out);
	report = json_loads(text, 0, NULL);
	assert_non_null(report);
	free(text);
	scratch_remove(parent);
	return report;
}

/* Frame i of the first finding: its offset; -1: there is none. */
static json_int_t offset_of(json_t *report, size_t i)
{
	json_t *finding = json_array_get(json_object_get(report, "findings"), 0);
	json_t *frame = json_array_get(json_object_get(finding, "stack"), i);

	assert_non_null(finding);
	return frame ? json_integer_value(json_object_get(frame, "offset")) : -1;
}

static void test_costliest(void **state)
{
	json_t *report = report_of(HEAD STACK("2ms", "cudaMemcpyAsync", "0x401060,0x401100") COPY(
		"2ms", "500us") STACK("4ms", "cudaMemcpyAsync", "0x401060,0x401200")
					   COPY("4ms", "900us") COPY("6ms", "1500us"));

	(void)state;
	assert_int_equal(offset_of(report, 0), 0x1060);
	assert_int_equal(offset_of(report, 1), 0x1200);
	assert_int_equal(offset_of(report, 2), -1);
	json_decref(report);
}

/* A stack whose call is lost is not the next one's. */
static void test_of_another(void **state)
{
	json_t *report = report_of(HEAD STACK("1ms", "cudaMemcpyAsync", "0x401060,0x401100") STACK(
		"2ms", "cudaMalloc", "0x401060,0x401300") COPY("2ms", "500us"));

	(void)state;
	assert_int_equal(offset_of(report, 0), -1);
	json_decref(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_old_map),
		cmocka_unit_test(test_costliest),
		cmocka_unit_test(test_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
