/*
 * tests/unit/accounts.h: sums over the tables of a JSON report, and the beginning of logs for that: for tests of
 * where the time of calls went, and because of whom.
 */
#ifndef CUDASPY_TESTS_ACCOUNTS_H
#define CUDASPY_TESTS_ACCOUNTS_H

#include "report_json.h"

/* Does a row agree with a pattern such as "waiter=101 holder_function=cudaFree"? */
static inline bool agrees(const json_t *row, const char *pattern)
{
	char copy[256], *save, *word;

	snprintf(copy, sizeof(copy), "%s", pattern);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');
		const json_t *field;

		assert_non_null(value);
		*value++ = '\0';
		field = json_object_get(row, word);
		if (!field)
			fail_msg("no key %s", word);
		if (json_is_string(field) ? strcmp(json_string_value(field), value)
					  : json_integer_value(field) != atoll(value))
			return false;
	}
	return true;
}

/* Sum of a column over the rows that agree. */
static inline int64_t sum(const json_t *root, const char *table, const char *pattern,
			  const char *column)
{
	const json_t *rows = json_object_get(root, table), *row;
	int64_t total = 0;
	size_t i;

	assert_non_null(rows);
	json_array_foreach(rows, i, row) if (agrees(row, pattern)) total +=
		json_integer_value(json_object_get(row, column));
	return total;
}

static inline int64_t fact(const json_t *root, const char *table, const char *key)
{
	return json_integer_value(json_object_get(json_object_get(root, table), key));
}

#define TRACE \
	"trace app.100 pid=100 program=\"/bin/app\" probes=1\n" \
	"slot 0\n" \
	"1us module base=0x7f00000000 begin=0x7f00001000 end=0x7f00009000 span_pages=32 " \
	"path=\"/lib/libcuda.so.1\"\n" \
	"2us non_cuda_thread tid=777 name=\"cuda-EvtHandlr\"\n"

/* What a pageable copy of that size costs when the stream is idle, a few times. */
#define CALM_COPIES \
	"1ms call cudaSetDevice duration=5us\n" \
	"2ms copy cudaMemcpyAsync duration=40us direction=d2h src=device dst=pageable " \
	"bytes=4096 stream=0x11\n" \
	"3ms copy cudaMemcpyAsync duration=40us direction=d2h src=device dst=pageable " \
	"bytes=4096 stream=0x11\n" \
	"4ms copy cudaMemcpyAsync duration=40us direction=d2h src=device dst=pageable " \
	"bytes=4096 stream=0x11\n" \
	"5ms launch cudaLaunchKernel duration=3us kernel=1 stream=0x11\n"

/* The sums of each account and of each thread are exact. */
static inline void check_sums(const json_t *root)
{
	static const char *const buckets[] = {
		"own_ns",   "loading_ns", "gpu_intended_ns", "gpu_hidden_ns",  "lock_ns",
		"ioctl_ns", "queue_ns",   "mps_ns",          "not_running_ns", "unexplained_ns"};
	const json_t *row;
	size_t i, b;

	json_array_foreach(json_object_get(root, "accounts"), i, row)
	{
		int64_t left = json_integer_value(json_object_get(row, "total_ns"));

		for (b = 0; b < ARRAY_SIZE(buckets); b++) {
			int64_t ns = json_integer_value(json_object_get(row, buckets[b]));

			assert_true(ns >= 0);
			left -= ns;
		}
		assert_int_equal(left, 0);
	}
	json_array_foreach(json_object_get(root, "threads"), i, row)
	{
		char pattern[64];

		snprintf(pattern, sizeof(pattern), "thread=%lld",
			 json_integer_value(json_object_get(row, "tid")));
		assert_int_equal(sum(root, "accounts", pattern, "total_ns"),
				 json_integer_value(json_object_get(row, "total_ns")));
	}
}

#endif
