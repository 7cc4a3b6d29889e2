/*
 * tests/unit/test_analyzer_metadata.c: the parser of the metadata file: what the writer writes,
 * what other writers may write, and what nobody should.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "cudaspy/function_numbers.h"
#include "scratch.h"
#include "trace_writer.h"
#include "trace/metadata.h"

static int parse(struct metadata *m, const char *text)
{
	return metadata_parse(m, "metadata", text, strlen(text));
}

static void test_own(void **state)
{
	static struct tw_trace w;
	const struct tw_metadata written = {
		.frequency = 2100000000,
		.offset_s = 17,
		.offset = 4,
		.env = "\ttracer_name = \"cudaspy\";\n\tpid = 4711;\n"
		       "\tcommand_line = \"./a \\\"b\\\\\\n\\x41\\101\";\n\tempty = \"\";\n",
	};
	char *dir = scratch_make(), path[512];
	struct metadata m;

	(void)state;
	tw_open(&w, dir, 0);
	tw_write_metadata(&w, &written);
	snprintf(path, sizeof(path), "%s/metadata", dir);
	assert_int_equal(metadata_read(&m, path), 0);
	assert_int_equal(m.frequency, 2100000000);
	assert_int_equal(m.offset_s, 17);
	assert_int_equal(m.offset_cycles, 4);
	assert_true(m.has_uuid);
	assert_memory_equal(m.uuid, w.uuid, 16);
	assert_int_equal(metadata_number(&m, "pid", 0), 4711);
	assert_string_equal(metadata_text(&m, "command_line"), "./a \"b\\\nAA");
	assert_string_equal(metadata_text(&m, "empty"), "");
	assert_null(metadata_text(&m, "no such key"));
	assert_int_equal(m.n_functions, 0);
	assert_int_equal(m.n_events, 0);
	metadata_release(&m);
	tw_close(&w);
	scratch_remove(dir);
}

/* As another version writes it, which begins or ends otherwise. */
static void test_others(void **state)
{
	static const char *const texts[] = {
		SPY_TSDL_HEAD "\n%s%s%s",
		SPY_TSDL_HEAD "%s%s%s\n",
	};
	struct metadata m;
	char *text;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		text = xasprintf(texts[i], spy_tsdl_types, "env { tracer_name = \"cudaspy\"; };\n",
				 spy_tsdl_stream);
		assert_int_equal(parse(&m, text), 0);
		assert_int_equal(m.n_functions, SPY_FN_COUNT);
		assert_string_equal(m.functions[SPY_FN_cudaMemcpyAsync], "cudaMemcpyAsync");
		assert_int_equal(m.n_events, SPY_EV_COUNT_ALL);
		assert_string_equal(m.events[SPY_EV_COPY], "copy");
		metadata_release(&m);
		free(text);
	}
}

/* Explicit numbers, a container spelt out, blocks and blanks in another order. */
static void test_tolerant(void **state)
{
	struct metadata m;

	(void)state;
	assert_int_equal(
		parse(&m, "/* CTF 1.8 */\n"
			  "clock { name = cycles; freq=1000; uuid = \"x\"; offset_s = 0x10; };\n"
			  "typealias enum : integer { size = 16; align = 8; } {\n"
			  "  \"cudaFree\" = 7, cudaMalloc, /* a hole */ \"later\" = 10\n"
			  "} := fn_t;\n"
			  "struct unknown { int x; } ;\n"
			  "env { tracer_name = \"cudaspy\" ; n = 5; };\n"
			  "event { id = 9; };\n"
			  "event { name = \"copy\"; id = 4; fields := struct { int id; }; };\n"),
		0);
	assert_int_equal(m.frequency, 1000);
	assert_int_equal(m.offset_s, 16);
	assert_int_equal(m.n_functions, 11);
	assert_string_equal(m.functions[7], "cudaFree");
	assert_string_equal(m.functions[8], "cudaMalloc");
	assert_null(m.functions[9]);
	assert_string_equal(m.functions[10], "later");
	assert_string_equal(m.events[4], "copy");
	metadata_release(&m);
}

/* Which rank the process is; none that cannot be. */
static void test_ranks(void **state)
{
	static const char *const none[] = {"", "rank = -1;", "rank = 4294967296;", "rank = \"x\";"};
	struct metadata m;
	char *text;
	size_t i;

	(void)state;
	assert_int_equal(
		parse(&m,
		      "/* CTF 1.8 */\nenv { tracer_name = \"cudaspy\"; rank = 3; local_rank = 1;\n"
		      "world_size = 8; job = \"4711.0\"; restarts = 2; rank_from = \"RANK\"; };\n"),
		0);
	assert_true(m.has_rank);
	assert_int_equal(m.rank, 3);
	assert_int_equal(m.local_rank, 1);
	assert_int_equal(m.world_size, 8);
	assert_int_equal(m.restarts, 2);
	assert_string_equal(m.job, "4711.0");
	assert_string_equal(m.rank_from, "RANK");
	metadata_release(&m);
	/* One alone is a program as any other. */
	assert_int_equal(
		parse(&m,
		      "/* CTF 1.8 */\nenv { tracer_name = \"cudaspy\"; rank = 0; world_size = 1; };\n"),
		0);
	assert_false(m.has_rank);
	metadata_release(&m);
	for (i = 0; i < ARRAY_SIZE(none); i++) {
		text = xasprintf(
			"/* CTF 1.8 */\nenv { tracer_name = \"cudaspy\"; job = \"\"; %s };\n",
			none[i]);
		assert_int_equal(parse(&m, text), 0);
		assert_false(m.has_rank);
		assert_int_equal(m.local_rank, -1);
		assert_int_equal(m.world_size, 0);
		assert_null(m.job);
		metadata_release(&m);
		free(text);
	}
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"not metadata at all",
		"/* CTF 1.8 */\n",
		"/* CTF 1.8 */\nenv { tracer_name = \"lttng-modules\"; };\n",
		"/* CTF 1.8 */\nenv { tracer_name = \"cudaspy\"; trace_version = 9; };\n",
		"/* CTF 1.8 */\nenv { tracer_name = \"cudaspy\"; trace_version = 0; };\n",
		"/* CTF 1.8 */\nenv { tracer_name = \"cudaspy\"; trace_version = -3; };\n",
		"/* CTF 1.8 */\nenv { tracer_name = \"cudaspy\"; trace_version = \"x\"; };\n",
		"/* CTF 1.8 */\nenv { tracer_name = \"cudaspy\"; trace_version = "
		"99999999999999999999; };\n",
	};
	struct metadata m;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_not_equal(parse(&m, texts[i]), 0);
		metadata_release(&m);
	}
	assert_int_equal(metadata_read(&m, "/nonexistent/metadata"), -ENOENT);
	metadata_release(&m);
}

/* A good file, cut off at each length and with each byte changed: no crash, no endless loop. */
static void test_damaged(void **state)
{
	static const char good[] =
		"/* CTF 1.8 */\n/* c */ // d\ntypealias enum : u16 { \"a\", \"b\" = 3, c } := "
		"fn_t;\n"
		"trace { major = 1; uuid = \"00010203-0405-0607-0809-0a0b0c0d0e0f\";\n"
		"packet.header := struct { u32 magic; }; };\n"
		"env { tracer_name = \"cudaspy\"; a = \"\\\"\\x4\"; };\n"
		"clock { freq = 12; };\nevent { name = \"call\"; id = 1; };\n";
	static const char changes[] = "\"{};=\\/*,:x0\377";
	char text[sizeof(good)];
	struct metadata m;
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(good); i++) {
		metadata_parse(&m, "metadata", good, i);
		metadata_release(&m);
		for (j = 0; j < sizeof(changes); j++) {
			memcpy(text, good, sizeof(good));
			text[i] = changes[j];
			metadata_parse(&m, "metadata", text, sizeof(text));
			metadata_release(&m);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),      cmocka_unit_test(test_others),
		cmocka_unit_test(test_tolerant), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_damaged),  cmocka_unit_test(test_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
