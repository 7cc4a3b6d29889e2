/*
 * tests/unit/test_analyzer_lines.c: text on a screen: what fits, and what a traced process may not do to it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>
#include "cmd_read/cmd_report.h"
#include "scratch.h"
#include "trace_text.h"
#include "base/lines.h"
#include "findings/gate.h"
#include "render/render.h"
#include "model/dump.h"

static void test_visible(void **state)
{
	static const char *const rows[][2] = {
		{"plain", "plain"},
		{"a\nb\tc\x1b[31m", "a\\x0ab\\x09c\\x1b[31m"},
		{"\x7f\xc2\x9b", "\\x7f\\xc2\\x9b"}, /* delete; CSI in one character */
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
		{"cut \xc3", "cut \\xc3"},
		{"\xe2\x80\xae", "\\xe2\\x80\\xae"}, /* writes from right to left */
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		char *shown = visible(rows[i][0]);

		assert_string_equal(shown, rows[i][1]);
		free(shown);
	}
}

static void test_shorten(void **state)
{
	static const struct {
		const char *text, *at[SHORTEST + 1];
	} rows[] = {
		{"cudaMemcpyAsync",
		 {"cudaMemcpyAsync", "cudaMemcpyAsync", "cudaMemcpyAsync", "cudaMemcpyAsync",
		  "cudaMemcpyAsync"}},
		{"in /opt/app/src/main.cu:17",
		 {"in /opt/app/src/main.cu:17", "in .../main.cu:17", "in .../main.cu:17",
		  "in .../main.cu:17", "in .../main.cu:17"}},
		{"thread 7 'app/1' of a/b",
		 {"thread 7 'app/1' of a/b", "thread 7 'app/1' of a/b", "thread 7 'app/1' of a/b",
		  "thread 7 'app/1' of a/b", "thread 7 'app/1' of a/b"}},
		{"void at::native::fill<float, 4>(float*, int)",
		 {"void at::native::fill<float, 4>(float*, int)",
		  "void at::native::fill<float, 4>(float*, int)",
		  "void at::native::fill<..>(float*, int)", "void at::native::fill<..>(..)",
		  "void ..::fill<..>(..)"}},
		{"void at::(anonymous namespace)::(anonymous namespace)::fill<at::(anonymous "
		 "namespace)::T>(at::T)",
		 {"void at::(anonymous namespace)::(anonymous namespace)::fill<at::(anonymous "
		  "namespace)::T>(at::T)",
		  "void at::(anonymous namespace)::(anonymous namespace)::fill<at::(anonymous "
		  "namespace)::T>(at::T)",
		  "void at::(anonymous namespace)::(anonymous namespace)::fill<..>(at::T)",
		  "void at::(anonymous namespace)::(anonymous namespace)::fill<..>(..)",
		  "void ..::fill<..>(..)"}},
		{"decode: llama_kv_cache::clear(bool), kernels::fill",
		 {"decode: llama_kv_cache::clear(bool), kernels::fill",
		  "decode: llama_kv_cache::clear(bool), kernels::fill",
		  "decode: llama_kv_cache::clear(bool), kernels::fill",
		  "decode: llama_kv_cache::clear(..), kernels::fill",
		  "decode: llama_kv_cache::clear(..), kernels::fill"}},
		{"a::operator<<(std::ostream&) of (GPU 0)",
		 {"a::operator<<(std::ostream&) of (GPU 0)",
		  "a::operator<<(std::ostream&) of (GPU 0)",
		  "a::operator<<(std::ostream&) of (GPU 0)",
		  "a::operator<<(std::ostream&) of (GPU 0)",
		  "a::operator<<(..::ostream&) of (GPU 0)"}},
		{"f<g<h>, (a > b)",
		 {"f<g<h>, (a > b)", "f<g<h>, (a > b)", "f<..>b)", "f<..>b)", "f<..>b)"}},
	};
	size_t i;
	unsigned int level;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		for (level = 0; level <= SHORTEST; level++) {
			char *copy = shorten_names(rows[i].text, level);

			if (i < 6)
				assert_string_equal(copy, rows[i].at[level]);
			else
				assert_true(strlen(copy) <= strlen(rows[i].text));
			free(copy);
		}
	}
}

/* What is different stays so, and function names stay whole. */
static void test_shorten_apart(void **state)
{
	static const char *const texts[] = {
		"at::native::fill<float>(int)",
		"at::native::fill<double>(int)",
		"c10::fill<double>(int)",
		"cudaMemcpyAsync",
		"at::native::fill<float>(int)",
		"/a/b/main.cu:17",
		"/a/c/main.cu:17",
	};
	char *shown[ARRAY_SIZE(texts)];
	size_t i, j, width;

	(void)state;
	for (width = 4; width < 40; width++) {
		shorten_apart(texts, shown, ARRAY_SIZE(texts), width, true);
		assert_string_equal(shown[3], texts[3]);
		for (i = 0; i < ARRAY_SIZE(texts); i++)
			for (j = 0; j < ARRAY_SIZE(texts); j++)
				assert_int_equal(!strcmp(shown[i], shown[j]),
						 !strcmp(texts[i], texts[j]));
		for (i = 0; i < ARRAY_SIZE(texts); i++)
			free(shown[i]);
	}
}

static void wraps(const char *text, size_t indent, size_t width, const char *wanted)
{
	char *shown = NULL;
	size_t size;
	FILE *out = open_memstream(&shown, &size);

	print_words(text, indent, indent, width, out);
	fclose(out);
	assert_string_equal(shown, wanted);
	free(shown);
}

static void test_words(void **state)
{
	(void)state;
	wraps("one two  three", 2, 10, "one two\n  three\n");
	wraps("it took 12.3 ms, once", 0, 12, "it took\n12.3 ms,\nonce\n");
	wraps("at /a/path/that/is/long here", 0, 10, "at\n/a/path/th\nat/is/long\nhere\n");
	wraps("", 2, 10, "\n");
}

/* ---- what columns do -------------------------------------------------------------------------- */

struct row {
	const char *first, *second, *last;
	uint64_t number, time_ns, unknown_ns;
};

/* clang-format off */
static const struct column columns[] = {
	COLUMN(struct row, first, "first", UNIT_TEXT),
	COLUMN(struct row, number, "number", UNIT_COUNT),
	COLUMN(struct row, second, "second", UNIT_TEXT),
	COLUMN(struct row, time_ns, "time", UNIT_NS),
	COLUMN(struct row, unknown_ns, "who knows", UNIT_NS_IF_KNOWN),
	COLUMN(struct row, last, "last", UNIT_TEXT),
};
/* clang-format on */

static const struct table_kind kind = {
	.key = "things",
	.title = "THINGS, with a title that is too long for a line of forty columns",
	.columns = columns,
	.n_columns = ARRAY_SIZE(columns),
	.row_bytes = sizeof(struct row),
};

static const struct row rows[] = {
	{"cudaMemcpyAsync", "cudaMallocHost", "some words that go on and on, as words do", 12345,
	 6789000, UNKNOWN_NS},
	{"cudaFree", "cudaEventRecord", "-", 1, 5, 77000},
};

static char *show(unsigned int width)
{
	struct report report;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_init(&report, "test-1");
	report.view.width = width;
	report_add(&report, &kind, memcpy(xcalloc(2, sizeof(*rows)), rows, sizeof(rows)), 2);
	assert_int_equal(render_text(&report, out), 0);
	fclose(out);
	report_release(&report);
	return text;
}

static void test_widths(void **state)
{
	static const char *const parts[] = {"12,345", "6.789 ms", "77.00 us", "?",        "some",
					    "on,",    "number",   "time",     "who knows"};
	static const char *const names[] = {"cudaMemcpyAsync", "cudaMallocHost", "cudaFree",
					    "cudaEventRecord"};
	unsigned int width;
	size_t i;

	(void)state;
	for (width = 40; width <= 160; width++) {
		char *text = show(width), *line, *rest;

		for (i = 0; i < ARRAY_SIZE(parts); i++)
			assert_non_null(strstr(text, parts[i]));
		/* Names give way only if the row then fits one line. */
		for (i = 0; i < ARRAY_SIZE(names) && (width < 70 || width > 105); i++)
			assert_non_null(strstr(text, names[i]));
		for (rest = text; (line = strsep(&rest, "\n"));) {
			assert_true(strlen(line) <= width);
			assert_true(!*line || line[strlen(line) - 1] != ' ');
		}
		free(text);
	}
}

/* ---- what a traced process is called ----------------------------------------------------------- */

#define EVIL "\x1b[2J\xc2\x9b\a"

/* Names of a process, a thread, a kernel, a module, a lock's place and one that held it. */
static const char evil_log[] =
	"trace app.100 pid=100 program=\"/bin/a" EVIL "\" probes=1\n"
	"slot 0\n"
	"1us module base=0x400000 begin=0x401000 end=0x409000 span_pages=32 path=\"/x/m" EVIL "\"\n"
	"2us non_cuda_thread tid=777 name=\"s" EVIL "\"\n"
	"slot 1 tid=101\n"
	"1us thread tid=101 name=\"t" EVIL "\"\n"
	"2us kernel kernel=1 name=\"k" EVIL "\"\n"
	"3us gpu device=0 name=\"g" EVIL "\" uuid=\"u" EVIL "\"\n"
	"20ms launch cudaLaunchKernel duration=3us kernel=1 stream=0x11\n"
	"60ms wait kind=mutex fn=cuMemcpyDtoHAsync_v2 outer_fn=cudaMemcpyAsync duration=30ms "
	"object=0x401010 device=0 holder=777\n"
	"121ms copy cudaMemcpyAsync duration=100ms direction=d2h src=device dst=pageable "
	"bytes=4096 stream=0x11 caller=0x402000\n";

static void check_harmless(const char *what, const char *text)
{
	size_t n;

	for (; *text; text += n) {
		n = *text == '\n' ? 1 : harmless_character(text);
		if (!n)
			fail_msg("%s: byte %02x before: %.40s", what, (unsigned char)*text,
				 text + 1);
	}
}

/* JSON has words for all of it. */
static void check_json(const char *what, const char *text)
{
	json_t *root = json_loads(text, 0, NULL);

	if (!root)
		fail_msg("%s is no JSON", what);
	json_decref(root);
	for (; *text; text++)
		if ((unsigned char)*text < ' ' && *text != '\n')
			fail_msg("%s: byte %02x before: %.40s", what, (unsigned char)*text,
				 text + 1);
}

static void show_dump(const char *dir, FILE *out)
{
	struct trace_set set;
	struct dump dump;

	assert_int_equal(dump_init(&dump, out, NULL, false, false), 0);
	assert_int_equal(trace_set_open(&set, &dir, 1, NULL), 0);
	assert_int_equal(dump_all(&dump, &set), 0);
	trace_set_release(&set);
}

static void test_harmless(void **state)
{
	char *dir = scratch_make(), path[256], *text = NULL;
	const char *dirs[] = {dir};
	size_t i, size;
	FILE *out;

	(void)state;
	snprintf(path, sizeof(path), "%s/log", dir);
	scratch_write(path, evil_log, strlen(evil_log));
	tt_make(path, dir);
	for (i = 0; i < n_renderers; i++) {
		struct gate gate = {0};
		struct report_options options = {.renderer = &renderers[i],
						 .nested = true,
						 .verbose = true,
						 .gate = renderers[i].findings ? &gate : NULL};

		out = open_memstream(&text, &size);
		assert_int_equal(report_show(dirs, 1, NULL, &options, out), 0);
		fclose(out);
		/* A page has its report packed: test_html.sh unpacks it. */
		if (!strncmp(text, "<!DOCTYPE html>", 15)) {
			assert_null(strstr(text, "\x1b"));
		} else {
			assert_non_null(strstr(text, "pageable"));
			if (*text == '{')
				check_json(renderers[i].name, text);
			else
				check_harmless(renderers[i].name, text);
		}
		free(text);
	}
	out = open_memstream(&text, &size);
	show_dump(dir, out);
	assert_int_equal(info_show(dirs, 1, NULL, renderer_find("text"), out), 0);
	fclose(out);
	check_harmless("dump and info", text);
	assert_non_null(strstr(text, "\\x1b[2J\\xc2\\x9b\\x07"));
	free(text);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_visible),       cmocka_unit_test(test_shorten),
		cmocka_unit_test(test_shorten_apart), cmocka_unit_test(test_words),
		cmocka_unit_test(test_widths),        cmocka_unit_test(test_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
