/*
 * tests/unit/test_analyzer_stacks.c: a stack goes with its call and with no other, and stands for those that have
 * none; a finding shows one of where it costs most; code that a process made itself is named by its map, whatever is in there; lines of
 * Python are those its user wrote, once.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <utime.h>
#include "cmd_read/cmd_report.h"
#include "scratch.h"
#include "trace_text.h"
#include "findings/gate.h"
#include "symbols/perf_map.h"
#include "render/render.h"

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

static json_t *report_with(const char *log, const char *format, const char *suppressions)
{
	struct gate gate = {0};
	struct report_options options = {.renderer = renderer_find(format), .gate = &gate};
	char *parent = scratch_make(), path[PATH_MAX], *text = NULL;
	const char *dirs[] = {parent};
	json_t *report;
	size_t size;
	FILE *out;

	snprintf(path, sizeof(path), "%s/log", parent);
	scratch_write(path, log, strlen(log));
	tt_make(path, parent);
	if (suppressions) {
		snprintf(path, sizeof(path), "%s/accepted", parent);
		scratch_write(path, suppressions, strlen(suppressions));
		assert_int_equal(suppress_read(&gate.suppressions, path, "2026-11-20"), 0);
	}
	out = open_memstream(&text, &size);
	assert_int_equal(report_show(dirs, 1, NULL, &options, out), 0);
	fclose(out);
	report = json_loads(text, 0, NULL);
	assert_non_null(report);
	gate_release(&gate);
	free(text);
	scratch_remove(parent);
	return report;
}

static json_t *report_of(const char *log)
{
	return report_with(log, "json", NULL);
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

/* ---- NVIDIA's libraries ---- */

/* A copy that a library makes, for the program at 0x1100 or for nobody on the stack. */
#define IN_LIBRARY(path, frames) \
	HEAD "2us module base=0x800000 begin=0x801000 end=0x809000 path=\"" path "\"\n" \
	     "2us module base=0x900000 begin=0x901000 end=0x909000 " \
	     "path=\"/lib/libc.so.6\"\n" STACK( \
		     "2ms", "cudaMemcpyAsync", \
		     frames) "2ms copy cudaMemcpyAsync duration=500us direction=d2h src=device " \
			     "dst=pageable bytes=65536 " \
			     "stream=0x55 caller=0x801060\n"

static void test_library(void **state)
{
	static const struct {
		const char *log, *where, *library;
	} cases[] = {
		{IN_LIBRARY("/x/libcublas.so.13", "0x801060,0x801100,0x401100"),
		 "cudaMemcpyAsync in app+0x1100, by libcublas.so.13", "libcublas.so.13"},
		/* as Python's packages name them; through a function of the system's */
		{IN_LIBRARY("/x/libcudnn_ops-9335f6a2.so.9", "0x801060,0x901060,0x801100,0x401100"),
		 "cudaMemcpyAsync in app+0x1100, by libcudnn_ops-9335f6a2.so.9",
		 "libcudnn_ops-9335f6a2.so.9"},
		/* a thread of the library's own */
		{IN_LIBRARY("/x/libnccl.so.2", "0x801060,0x801100,0x901060"),
		 "cudaMemcpyAsync in libnccl.so.2+0x1060", "libnccl.so.2"},
		{IN_LIBRARY("/x/libcublas.so.13", ""), "cudaMemcpyAsync in libcublas.so.13+0x1060",
		 "libcublas.so.13"},
		/* CUDA itself has no handles */
		{IN_LIBRARY("/x/libcudart.so.13", "0x801060,0x401100"),
		 "cudaMemcpyAsync in app+0x1100", "null"},
		/* frameworks, which say where they make it */
		{IN_LIBRARY("/srv/torch/lib/libtorch_cuda.so", "0x801060,0x801100,0x401100"),
		 "cudaMemcpyAsync in app+0x1100, by libtorch_cuda.so+0x1060", "null"},
		{IN_LIBRARY("/venv/lib/python3.12/site-packages/other/run.so", "0x801060,0x401100"),
		 "cudaMemcpyAsync in app+0x1100, by run.so+0x1060", "null"},
		{IN_LIBRARY("/usr/lib/x86_64-linux-gnu/libcv.so.4", "0x801060,0x401100"),
		 "cudaMemcpyAsync in app+0x1100, by libcv.so.4+0x1060", "null"},
		/* in a thread of their own there is nothing better */
		{IN_LIBRARY("/srv/torch/lib/libtorch_cuda.so", "0x801060,0x901060"),
		 "cudaMemcpyAsync in libtorch_cuda.so+0x1060", "null"},
		/* the program's own, or who knows whose */
		{IN_LIBRARY("/usr/lib/app/x86_64-linux-gnu/plugins/run.so", "0x801060,0x401100"),
		 "cudaMemcpyAsync in run.so+0x1060", "null"},
		{IN_LIBRARY("/usr/local/lib/libtorchlight/libmine.so", "0x801060,0x401100"),
		 "cudaMemcpyAsync in libmine.so+0x1060", "null"},
		/* others' */
		{IN_LIBRARY("/x/libcublas_wrapper.so", "0x801060,0x801100,0x401100"),
		 "cudaMemcpyAsync in libcublas_wrapper.so+0x1060", "null"},
		{IN_LIBRARY("/x/libcuda-tools.so", "0x801060,0x801100,0x401100"),
		 "cudaMemcpyAsync in libcuda-tools.so+0x1060", "null"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *report = report_of(cases[i].log);
		json_t *finding = json_array_get(json_object_get(report, "findings"), 0);

		assert_string_equal(json_string_value(json_object_get(finding, "where")),
				    cases[i].where);
		assert_string_equal(json_string_value(json_object_get(finding, "library"))
					    ?: "null",
				    cases[i].library);
		json_decref(report);
	}
}

/* ---- Python ---- */

#define MODULES \
	"2us module base=0x800000 begin=0x801000 end=0x809000 " \
	"path=\"/nowhere/libpython3.12.so.1.0\"\n"
#define CODES \
	"30us python_code code=1 first_line=10 file=\"/home/user/train.py\" " \
	"function=\"Model.step\"\n" \
	"30us python_code code=2 first_line=1 file=\"/home/user/train.py\" " \
	"function=\"<module>\"\n" \
	"30us python_code code=3 first_line=5 file=\"/x/site-packages/torch/m.py\" " \
	"function=\"to\"\n" \
	"30us python_code code=4 first_line=5 file=\"<frozen importlib>\" function=\"load\"\n"
#define PYTHON(time, lines) time " python_stack fn=cudaMemcpyAsync lines=" lines "\n"
#define CASE(time, frames, lines) \
	STACK(time, "cudaMemcpyAsync", frames) PYTHON(time, lines) COPY(time, "500us")

static json_t *first_finding(json_t *report)
{
	return json_array_get(json_object_get(report, "findings"), 0);
}

static const char *text_in(json_t *finding, const char *key)
{
	return json_string_value(json_object_get(finding, key)) ?: "null";
}

/* "function:line", and so on, innermost first; of native functions the offset. */
static char *stack_in(json_t *finding)
{
	json_t *stack = json_object_get(finding, "stack"), *frame;
	char *text = xstrdup("");
	size_t i;

	json_array_foreach(stack, i, frame)
	{
		json_t *function = json_object_get(frame, "function");
		bool python = !strcmp(text_in(frame, "interpreted"), "yes");
		char *longer;

		if (python)
			longer = xasprintf("%s %s:%lld", text, json_string_value(function) ?: "?",
					   json_integer_value(json_object_get(frame, "line")));
		else
			longer = xasprintf("%s 0x%llx", text,
					   json_integer_value(json_object_get(frame, "offset")));
		free(text);
		text = longer;
	}
	return text;
}

static void test_python(void **state)
{
	json_t *report = report_of(HEAD MODULES CODES CASE(
		"2ms", "0x401060,0x801100,0x801200,0x401100", "4:0,3:7,1:42,2:99,77:5"));
	json_t *finding = first_finding(report);
	char *stack = stack_in(finding);

	(void)state;
	/* in front of the first function of the interpreter */
	assert_string_equal(
		stack, " 0x1060 load:0 to:7 Model.step:42 <module>:99 ?:5 0x1100 0x1200 0x1100");
	assert_string_equal(text_in(finding, "python"), "from Python: train.py:42 in Model.step");
	assert_string_equal(text_in(finding, "python_file"), "/home/user/train.py");
	assert_string_equal(text_in(finding, "python_function"), "Model.step");
	assert_int_equal(json_integer_value(json_object_get(finding, "python_line")), 42);
	free(stack);
	json_decref(report);
}

/* All in packages: the innermost. A stack without the interpreter's functions. Told later than used. */
static void test_python_library(void **state)
{
	json_t *report = report_of(
		HEAD CASE("2ms", "0x401060,0x401100",
			  "3:7,3:8") "3ms call cudaSetDevice duration=2us caller=0x401010\n"
				     "4ms python_code code=3 first_line=5 "
				     "file=\"/usr/lib/python3.12/m.py\" function=\"to\"\n");
	json_t *finding = first_finding(report);
	char *stack = stack_in(finding);

	(void)state;
	assert_string_equal(stack, " 0x1060 0x1100 to:7 to:8");
	assert_string_equal(text_in(finding, "python"), "from Python: m.py:7 in to");
	free(stack);
	json_decref(report);
}

/* Those of another call, or of nobody. */
static void test_python_of_another(void **state)
{
	json_t *report = report_of(
		HEAD CODES PYTHON("1ms", "1:42") STACK("2ms", "cudaMemcpyAsync", "0x401060")
			PYTHON("1900us", "1:42") "2ms python_stack fn=cudaMalloc lines=1:42\n" COPY(
				"2ms", "500us"));
	json_t *finding = first_finding(report);
	char *stack = stack_in(finding);

	(void)state;
	assert_string_equal(stack, " 0x1060");
	assert_string_equal(text_in(finding, "python"), "null");
	free(stack);
	json_decref(report);
}

/* Where a map names the same functions, they are shown once; beyond what was told, by the map. */
static void test_python_and_map(void **state)
{
	char log[4096];
	json_t *report;
	char *stack;

	(void)state;
	write_map("7000000 20 py::step:/home/user/train.py\n7000020 20 "
		  "py::<module>:/home/user/train.py\n"
		  "7000040 20 py::outer:/home/user/train.py\n");
	for (int more = 0; more < 2; more++) {
		snprintf(log, sizeof(log),
			 "trace app.%u pid=%u program=\"/bin/app\"\nslot 0 tid=101\n"
			 "2us module base=0x400000 begin=0x401000 end=0x409000 "
			 "path=\"/nowhere/app\"\n"
			 "slot 1 tid=101\n10us thread tid=101 name=\"app\"\n%s%s"
			 "2ms python_stack fn=cudaMemcpyAsync lines=1:42,2:99 more=%d\n%s",
			 map_pid, map_pid, CODES,
			 STACK("2ms", "cudaMemcpyAsync",
			       "0x401060,0x7000010,0x401100,0x7000030,0x7000050"),
			 more, COPY("2ms", "500us"));
		report = report_of(log);
		stack = stack_in(first_finding(report));
		assert_string_equal(stack,
				    more ? " 0x1060 Model.step:42 <module>:99 0x1100 py::outer:0"
					 : " 0x1060 Model.step:42 <module>:99 0x1100");
		free(stack);
		json_decref(report);
	}
	unlink(map_path);
}

#define THREE_LINES \
	HEAD CODES CASE("2ms", "0x401060", "1:42,2:99") CASE("4ms", "0x401060", "1:42,2:98") \
		CASE("6ms", "0x401060", "2:50")

/* Calls at one place of the program come from several lines. */
static void test_python_lines(void **state)
{
	json_t *report = report_of(THREE_LINES);

	(void)state;
	assert_string_equal(text_in(first_finding(report), "python"),
			    "from Python: train.py:42 in Model.step; also train.py:50 in <module>");
	json_decref(report);
}

/* ---- for which calls stacks stand ---- */

/* A log in the making: pageable copies at one place, one behind the other. */
struct copies {
	char *text;
	size_t size;
	FILE *log;
	unsigned int us;
};

static void begin(struct copies *c)
{
	c->log = open_memstream(&c->text, &c->size);
	c->us = 1000;
	fputs(HEAD CODES, c->log);
}

/* So many of that size and length; the last has a stack with that line of Python, and `frame` on it; NULL: none has. */
static void copy(struct copies *c, unsigned int n, unsigned int bytes, unsigned int us,
		 const char *line, unsigned int frame)
{
	while (n--) {
		c->us += us + 1;
		if (!n && line)
			fprintf(c->log,
				"%uus stack fn=cudaMemcpyAsync why=2 frames=0x401060,0x%x\n"
				"%uus python_stack fn=cudaMemcpyAsync lines=%s\n",
				c->us, frame, c->us, line);
		fprintf(c->log,
			"%uus copy cudaMemcpyAsync duration=%uus direction=d2h src=device "
			"dst=pageable bytes=%u stream=0x55 caller=0x401060\n",
			c->us, us, bytes);
	}
}

/* What the report says of the lines, and which frame calls the place on the stack it shows. */
static void tells(struct copies *c, const char *python, json_int_t offset)
{
	json_t *report;

	fclose(c->log);
	report = report_of(c->text);
	assert_string_equal(text_in(first_finding(report), "python"), python);
	assert_int_equal(offset_of(report, 1), offset);
	json_decref(report);
	free(c->text);
}

/* All stacks are of the start, but one. */
static void start_and_work(struct copies *c, unsigned int work)
{
	begin(c);
	copy(c, 1, 65536, 900, "2:98", 0x401100);
	for (int i = 0; i < 3; i++)
		copy(c, 1, 65536, 500, "2:98", 0x401100);
	copy(c, work, 65536, 500, "1:42", 0x401200);
}

static void test_stands_for_calls(void **state)
{
	struct copies c;

	(void)state;
	start_and_work(&c, 60);
	tells(&c, "from Python: train.py:42 in Model.step; also train.py:98 in <module>", 0x1200);
	start_and_work(&c, 300);
	tells(&c, "from Python: train.py:42 in Model.step, and 1 more line", 0x1200);
}

/* What nobody was told of since is shared out. */
static void test_calls_behind(void **state)
{
	struct copies c;

	(void)state;
	start_and_work(&c, 60);
	copy(&c, 1000, 65536, 500, NULL, 0);
	tells(&c, "from Python: train.py:42 in Model.step; also train.py:98 in <module>", 0x1200);
}

/* If all calls have stacks, they count as what they cost. */
static void test_stands_for_itself(void **state)
{
	struct copies c;

	(void)state;
	begin(&c);
	copy(&c, 1, 65536, 500, "1:42", 0x401100);
	copy(&c, 1, 65536, 900, "2:98", 0x401200);
	copy(&c, 1, 65536, 500, "1:42", 0x401100);
	tells(&c, "from Python: train.py:42 in Model.step; also train.py:98 in <module>", 0x1100);
}

/* One that is told of for its length says nothing of the others. */
static void test_outlier(void **state)
{
	struct copies c;

	(void)state;
	begin(&c);
	copy(&c, 1, 65536, 500, "1:42", 0x401100);
	copy(&c, 50, 65536, 500, NULL, 0);
	copy(&c, 1, 65536, 5000, "2:98", 0x401200);
	tells(&c, "from Python: train.py:42 in Model.step; also train.py:98 in <module>", 0x1100);
	/* It may be one of many, then. */
	begin(&c);
	copy(&c, 1, 65536, 500, "1:42", 0x401100);
	copy(&c, 1, 65536, 900, "2:98", 0x401200);
	copy(&c, 20, 65536, 500, NULL, 0);
	copy(&c, 1, 65536, 900, "2:98", 0x401200);
	tells(&c, "from Python: train.py:98 in <module>; also train.py:42 in Model.step", 0x1200);
}

/* Calls of as many bytes, or as long, are of the same lines. */
static void test_alike(void **state)
{
	struct copies c;

	(void)state;
	begin(&c);
	copy(&c, 1, 65536, 500, "1:42", 0x401100);
	copy(&c, 1, 64, 20, "2:98", 0x401200);
	for (int i = 0; i < 100; i++) {
		copy(&c, 1, 65536, 500, NULL, 0);
		copy(&c, 1, 64, 20, i == 98 ? "2:98" : NULL, 0x401200);
	}
	tells(&c, "from Python: train.py:42 in Model.step; also train.py:98 in <module>", 0x1100);
	begin(&c);
	copy(&c, 1, 65536, 3000, "1:42", 0x401100);
	for (int i = 0; i < 100; i++) {
		copy(&c, 1, 65536, 3000, NULL, 0);
		copy(&c, 1, 65536, 200, i == 98 ? "2:98" : NULL, 0x401200);
	}
	tells(&c, "from Python: train.py:42 in Model.step; also train.py:98 in <module>", 0x1100);
}

/* More stacks than are kept: the lightest go. */
static void test_many_stacks(void **state)
{
	struct copies c;

	(void)state;
	begin(&c);
	for (unsigned int i = 0; i < 100; i++)
		copy(&c, 1, 65536, 500, "2:98", 0x401300 + i);
	copy(&c, 900, 65536, 500, "1:42", 0x401200);
	for (unsigned int i = 0; i < 100; i++)
		copy(&c, 1, 65536, 500, "2:98", 0x401400 + i);
	tells(&c, "from Python: train.py:42 in Model.step; also train.py:98 in <module>", 0x1200);
}

/* The three costliest lines have names. */
static void test_lines_shown(void **state)
{
#define STEP_AT(line) "train.py:" line " in Model.step"
	static const char *const words[] = {
		"from Python: " STEP_AT("42"),
		"from Python: " STEP_AT("42") "; also " STEP_AT("43"),
		"from Python: " STEP_AT("42") "; also " STEP_AT("43") ", " STEP_AT("44"),
		"from Python: " STEP_AT("42") "; also " STEP_AT("43") ", " STEP_AT(
			"44") ", and 1 more line",
		"from Python: " STEP_AT("42") "; also " STEP_AT("43") ", " STEP_AT(
			"44") ", and 2 more lines",
	};

	(void)state;
	for (unsigned int n = 1; n <= ARRAY_SIZE(words); n++) {
		struct copies c;

		begin(&c);
		for (unsigned int i = 0; i < n; i++) {
			char line[8];

			snprintf(line, sizeof(line), "1:%u", 42 + i);
			for (unsigned int j = i; j < 10; j++)
				copy(&c, 1, 65536, 500, line, 0x401200 + i);
		}
		tells(&c, words[n - 1], 0x1200);
	}
}

/* A line that makes next to nothing of the cost need not be accepted. */
static void test_minor_line_suppressed(void **state)
{
	struct copies c;
	json_t *report;

	(void)state;
	for (int work = 60; work <= 300; work += 240) {
		start_and_work(&c, (unsigned int)work);
		fclose(c.log);
		report = report_with(c.text, "json", "pageable-copy train.py:42 -- known\n");
		assert_int_equal(!strcmp(text_in(first_finding(report), "suppressed"), "known"),
				 work == 300);
		json_decref(report);
		free(c.text);
	}
}

/* Suppressed if all its lines are. */
static void test_python_suppressed(void **state)
{
	static const struct {
		const char *text;
		bool suppressed;
	} cases[] = {{"pageable-copy train.py -- known\n", true},
		     {"pageable-copy train.py:42 -- known\n", false},
		     {"pageable-copy /home/user/train.py:[45]? -- known\n", true},
		     {"pageable-copy other.py -- known\n", false}};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *report = report_with(THREE_LINES, "json", cases[i].text);

		assert_int_equal(!strcmp(text_in(first_finding(report), "suppressed"), "known"),
				 cases[i].suppressed);
		json_decref(report);
	}
}

/* In SARIF the line is the place; of what is no file it is the module, without a line. */
static void test_python_sarif(void **state)
{
	json_t *report =
		report_with(HEAD MODULES CODES CASE("2ms", "0x401060", "3:7,1:42"), "sarif", NULL);
	json_t *result = json_array_get(
		json_object_get(json_array_get(json_object_get(report, "runs"), 0), "results"), 0);
	json_t *place = json_array_get(json_object_get(result, "locations"), 0);
	json_t *physical = json_object_get(place, "physicalLocation");
	json_t *logical = json_array_get(json_object_get(place, "logicalLocations"), 0);

	(void)state;
	assert_string_equal(text_in(json_object_get(physical, "artifactLocation"), "uri"),
			    "file:///home/user/train.py");
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(physical, "region"), "startLine")),
			 42);
	assert_string_equal(text_in(logical, "name"), "Model.step");
	json_decref(report);
	report = report_with(HEAD CODES CASE("2ms", "0x401060", "4:7"), "sarif", NULL);
	result = json_array_get(
		json_object_get(json_array_get(json_object_get(report, "runs"), 0), "results"), 0);
	place = json_array_get(json_object_get(result, "locations"), 0);
	physical = json_object_get(place, "physicalLocation");
	assert_string_equal(text_in(json_object_get(physical, "artifactLocation"), "uri"),
			    "file:///nowhere/app");
	assert_null(json_object_get(physical, "region"));
	json_decref(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_old_map),
		cmocka_unit_test(test_costliest),
		cmocka_unit_test(test_of_another),
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_python),
		cmocka_unit_test(test_python_library),
		cmocka_unit_test(test_python_of_another),
		cmocka_unit_test(test_python_and_map),
		cmocka_unit_test(test_python_lines),
		cmocka_unit_test(test_stands_for_calls),
		cmocka_unit_test(test_calls_behind),
		cmocka_unit_test(test_stands_for_itself),
		cmocka_unit_test(test_outlier),
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_many_stacks),
		cmocka_unit_test(test_lines_shown),
		cmocka_unit_test(test_minor_line_suppressed),
		cmocka_unit_test(test_python_suppressed),
		cmocka_unit_test(test_python_sarif),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
