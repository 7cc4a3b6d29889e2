/*
 * tests/unit/test_analyzer_layout.c: metadata_layout.h describes the structs of trace_format.h.
 *
 * The TSDL text is measured: the fields of each event add up to its struct, texts aside. And
 * babeltrace2, if installed, finds in a record what was put in.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "cudaspy/function_numbers.h"
#include "scratch.h"
#include "trace_writer.h"
#include "trace/reader.h"
#include "as_record.h"

/* Bits of a type, from its typealias; enums by their container. */
static unsigned int type_bits(const char *type)
{
	char wanted[64];
	const char *at, *line;
	unsigned int bits = 0;

	if (!strcmp(type, "time64"))
		return 64;
	snprintf(wanted, sizeof(wanted), "} := %s;", type);
	at = strstr(spy_tsdl_types, wanted);
	if (!at)
		fail_msg("no type %s", type);
	if (at[-1] == ' ') { /* an integer, on one line */
		for (line = at; line > spy_tsdl_types && line[-1] != '\n'; line--)
			;
		assert_int_equal(sscanf(line, "typealias integer { size = %u;", &bits), 1);
		return bits;
	}
	while (strncmp(at, "typealias enum : ", 17))
		at--;
	assert_int_equal(sscanf(at, "typealias enum : %63s {", wanted), 1);
	return type_bits(wanted);
}

static void check_event(unsigned int number, const char *name, const struct record_layout *layout)
{
	char wanted[128], type[64], field[64];
	unsigned int bits = 80, texts = 0; /* time and event, in the event header */
	const char *at;

	snprintf(wanted, sizeof(wanted), "\tname = \"%s\";\n\tid = %u;\n", name, number);
	at = strstr(spy_tsdl_stream, wanted);
	if (!at)
		fail_msg("no event %s with number %u", name, number);
	at = strchr(strstr(at, "struct {"), '\n');
	for (; strncmp(at, "\n\t};", 4); at = strchr(at + 1, '\n')) {
		assert_int_equal(sscanf(at, " %63s %63[^;]", type, field), 2);
		if (!strcmp(type, "string"))
			texts++;
		else
			bits += type_bits(type) *
				(strchr(field, '[') ? (unsigned int)atoi(strchr(field, '[') + 1)
						    : 1);
	}
	assert_int_equal(bits, 8 * layout->bytes);
	assert_int_equal(texts, layout->texts);
}

static void test_sizes(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < SPY_EV_COUNT_ALL; i++)
		check_event(i, record_layouts[i].name, &record_layouts[i]);
}

static void check_head(const struct record *record, const struct spy_rec_head *head)
{
	assert_int_equal(record->event, head->event);
	assert_int_equal(record->trace_fn, head->fn);
	assert_int_equal(record->result, head->result);
	assert_int_equal(record->device, head->device);
	assert_int_equal(record->depth, head->depth);
}

/* What is taken from words is what the bit fields of trace_format.h have. */
static void test_words(void **state)
{
	uint8_t bytes[sizeof(union spy_any)];
	union spy_any raw;
	unsigned int round, i;

	(void)state;
	srand(1);
	for (round = 0; round < 100; round++) {
		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)rand();
		memcpy(&raw, bytes, sizeof(raw));
		assert_int_equal(raw_duration(&raw), raw.call_head.duration);
		raw.other.event = SPY_EV_NESTED;
		check_head(AS_RECORD(&raw), &raw.call_head);
		assert_int_equal(
			record_return_address(AS_RECORD(&raw)) | record_stream(AS_RECORD(&raw)), 0);
		raw.other.event = SPY_EV_CALL;
		assert_int_equal(record_return_address(AS_RECORD(&raw)), raw.call.caller);
		assert_int_equal(record_stream(AS_RECORD(&raw)), 0);
		raw.other.event = SPY_EV_OP;
		assert_int_equal(record_return_address(AS_RECORD(&raw)), raw.op.caller);
		assert_int_equal(record_stream(AS_RECORD(&raw)), raw.op.stream);
		raw.other.event = SPY_EV_LAUNCH;
		assert_int_equal(record_kernel(AS_RECORD(&raw)),
				 (uint32_t)raw.launch.kernel_hi << 16 |
					 (uint32_t)raw.launch.kernel_lo);
		assert_int_equal(record_return_address(AS_RECORD(&raw)), raw.launch.caller);
		assert_int_equal(record_stream(AS_RECORD(&raw)), raw.launch.stream);
		raw.other.event = SPY_EV_COPY;
		assert_int_equal(record_return_address(AS_RECORD(&raw)), raw.copy.caller);
		assert_int_equal(record_stream(AS_RECORD(&raw)), raw.copy.stream);
		raw.other.event = SPY_EV_MEMORY;
		assert_int_equal(record_return_address(AS_RECORD(&raw)), raw.memory.caller);
		assert_int_equal(record_stream(AS_RECORD(&raw)), raw.memory.stream);
		raw.other.event = SPY_EV_WAIT;
		assert_int_equal(
			record_return_address(AS_RECORD(&raw)) | record_stream(AS_RECORD(&raw)), 0);
	}
}

static void write_copy(const char *dir)
{
	static struct tw_trace w;
	const struct spy_rec_copy copy = {
		.head = {.time = 77,
			 .event = SPY_EV_COPY,
			 .fn = SPY_FN_cudaMemcpyBatchAsync,
			 .result = 719,
			 .device = 3,
			 .depth = 2,
			 .duration = 0x123456789abc,
			 .context = 0xdef0},
		.caller = 0x7ffdeadbeef1,
		.src_device = 5,
		.dst_device = 6,
		.stream = 0xabcdef123456,
		.direction = SPY_DIR_D2H,
		.captured = 1,
		.form = SPY_FORM_BATCH,
		.src_kind = SPY_MEM_DEVICE,
		.dst_kind = SPY_MEM_PAGEABLE,
		.bytes = 987654321,
		.src_access = SPY_ACCESS_MAPPED,
		.dst_access = SPY_ACCESS_POOL,
	};

	tw_open(&w, dir, 0);
	tw_write_metadata(&w, &(struct tw_metadata){.frequency = 1000000000, .env = ""});
	tw_record(&w, 1, &copy, sizeof(copy));
	tw_close(&w);
}

static void test_babeltrace(void **state)
{
	static const char *const wanted[] = {
		"00.000000077",
		"copy:",
		"\"cudaMemcpyBatchAsync\"",
		"result = 719,",
		"device = 3,",
		"depth = 2,",
		"duration = 20015998343868,",
		"context = 57072,",
		"caller = 0x7FFDEADBEEF1,",
		"src_device = 5,",
		"dst_device = 6,",
		"stream = 0xABCDEF123456,",
		"direction = ( \"d2h\"",
		"captured = 1,",
		"form = ( \"batch\"",
		"src_kind = ( \"device\"",
		"dst_kind = ( \"pageable\"",
		"bytes = 987654321,",
		"src_access = ( \"mapped\"",
		"dst_access = ( \"pool\"",
	};
	char *dir = scratch_make(), command[512], text[8192];
	size_t i, n;
	FILE *pipe;

	(void)state;
	if (system("command -v babeltrace2 >/dev/null")) {
		scratch_remove(dir);
		skip();
	}
	write_copy(dir);
	snprintf(command, sizeof(command), "babeltrace2 --clock-gmt %s 2>&1", dir);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	n = fread(text, 1, sizeof(text) - 1, pipe);
	text[n] = '\0';
	pclose(pipe);
	for (i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!strstr(text, wanted[i]))
			fail_msg("'%s' is not in: %s", wanted[i], text);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_babeltrace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
