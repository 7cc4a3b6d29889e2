/*
 * tests/unit/report_sums.h: does a report in JSON agree with itself? What it says of one thing in several places must
 * be one number, parts must add up, and no part may be more than the whole. For all tests that make reports.
 */
#ifndef CUDASPY_TESTS_REPORT_SUMS_H
#define CUDASPY_TESTS_REPORT_SUMS_H

#include <jansson.h>
#include <string.h>

static inline json_int_t rs_number(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

static inline const char *rs_text(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

static inline bool rs_is(const json_t *row, const char *key, const char *value)
{
	return !strcmp(rs_text(row, key), value);
}

#define RS_HOLDS(row, what) \
	do { \
		if (!(what)) \
			fail_msg("not so: %s, in %s", #what, json_dumps(row, 0)); \
	} while (0)

/* Is there that column, and a number in it? */
static inline bool rs_known(const json_t *row, const char *key)
{
	return json_is_integer(json_object_get(row, key));
}

/* The row of the table whose key has that text; NULL: none. */
static inline const json_t *rs_row(const json_t *root, const char *table, const char *key,
				   const char *value)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, table), i,
			   row) if (rs_is(row, key, value)) return row;
	return NULL;
}

static inline json_int_t rs_sum(const json_t *root, const char *table, const char *key)
{
	const json_t *row;
	json_int_t sum = 0;
	size_t i;

	json_array_foreach(json_object_get(root, table), i, row) sum += rs_number(row, key);
	return sum;
}

/* Of waits between launches the launches are counted, too. */
static inline bool rs_costs_more_than_calls(const json_t *row)
{
	return rs_is(row, "id", "sync-every-launch") || rs_is(row, "id", "serial-gpus");
}

/* No cure gives back more than there was lost, and no more was lost than calls took. What nobody knows is no number. */
static inline void rs_check_costs(const json_t *row)
{
	bool known = rs_is(row, "cost_known", "yes");

	RS_HOLDS(row, rs_known(row, "cost_ns") == known);
	RS_HOLDS(row, known || !rs_known(row, "gain_high_ns"));
	RS_HOLDS(row, rs_number(row, "cost_ns") == rs_number(row, "own_ns") +
							   rs_number(row, "others_ns") +
							   rs_number(row, "joined_ns"));
	RS_HOLDS(row, rs_number(row, "gain_high_ns") <= rs_number(row, "cost_ns"));
	RS_HOLDS(row, rs_number(row, "gain_low_ns") <= rs_number(row, "gain_high_ns"));
	RS_HOLDS(row, !rs_number(row, "total_ns") || rs_costs_more_than_calls(row) ||
			      rs_number(row, "own_ns") <= rs_number(row, "total_ns"));
}

/* The worst of a finding's calls is the longest of them; its row has others that are short. Calls that the list of calls
 * has as well are no longer there, and no more. */
static inline void rs_check_worst(const json_t *root, const json_t *row)
{
	const json_t *calls = rs_row(root, "calls", "function", rs_text(row, "function"));
	json_int_t worst = rs_number(row, "worst_ns"), total = rs_number(row, "total_ns");

	if (!rs_known(row, "total_ns"))
		return;
	RS_HOLDS(row, worst <= total);
	RS_HOLDS(row, rs_is(row, "id", "small-copies") || worst * rs_number(row, "count") >= total);
	RS_HOLDS(row, calls != NULL);
	RS_HOLDS(row, worst <= rs_sum(root, "calls", "max_ns"));
}

/* A call that is shown as one that lost much, and as a finding's worst, took as long in both. */
static inline void rs_check_worst_call(const json_t *root, const json_t *worst_call)
{
	const json_t *calls = rs_row(root, "calls", "function", rs_text(worst_call, "function")),
		     *row;
	size_t i;

	RS_HOLDS(worst_call,
		 calls && rs_number(worst_call, "duration_ns") <= rs_number(calls, "max_ns"));
	RS_HOLDS(worst_call,
		 rs_number(worst_call, "lost_ns") <= rs_number(worst_call, "duration_ns"));
	json_array_foreach(json_object_get(root, "findings"), i, row)
	{
		if (rs_known(row, "total_ns") &&
		    rs_is(row, "function", rs_text(worst_call, "function")) &&
		    rs_number(row, "worst_thread") == rs_number(worst_call, "thread") &&
		    rs_number(row, "worst_at_ns") == rs_number(worst_call, "at_ns"))
			RS_HOLDS(row, rs_number(row, "worst_ns") ==
					      rs_number(worst_call, "duration_ns"));
	}
}

/* What is in a range is in no other one inside of it, or in that; and all calls are no more than there are. */
static inline void rs_check_ranges(const json_t *root)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "ranges"), i, row)
	{
		RS_HOLDS(row, rs_number(row, "own_calls_ns") <= rs_number(row, "calls_ns"));
		RS_HOLDS(row, rs_number(row, "lost_ns") <= rs_number(row, "calls_ns"));
		RS_HOLDS(row, rs_number(row, "gpu_ns") <= rs_number(row, "calls_ns"));
		RS_HOLDS(row, rs_number(row, "unended") <= rs_number(row, "count"));
	}
	RS_HOLDS(root, rs_sum(root, "ranges", "own_calls_ns") <= rs_sum(root, "calls", "total_ns"));
}

static inline int rs_severity_of(const char *severity)
{
	return !strcmp(severity, "minor") ? 2 : !strcmp(severity, "note");
}

static inline int rs_severity(const json_t *row)
{
	return rs_is(row, "fails", "yes") && rs_is(row, "severity", "minor")
		       ? 1
		       : rs_severity_of(rs_text(row, "severity"));
}

static inline bool rs_compared(const json_t *row)
{
	return json_is_string(json_object_get(row, "compared")) || rs_is(row, "cost_known", "no");
}

/* By which findings of a severity are in order: rs_number of what is unknown is 0. */
static inline json_int_t rs_price(const json_t *row)
{
	json_int_t gain =
		rs_number(row, rs_known(row, "gain_high_ns") ? "gain_high_ns" : "cost_ns");
	json_int_t idle = rs_number(row, "idle_gpu_ns");
	json_int_t working = rs_known(row, "working_ns") ? rs_number(row, "working_ns") : gain;

	gain = gain < working ? gain : working;
	return gain > idle ? gain : idle;
}

/* It stands first for what it means. */
static inline bool rs_ends_all(const json_t *row)
{
	return rs_is(row, "id", "ignored-error") && rs_is(row, "severity", "problem") &&
	       strstr(rs_text(row, "what"), "cannot be used any more");
}

/* Ranks, what the headline says of them, and notes below problems. */
static inline void rs_check_order(const json_t *root)
{
	const json_t *summary = json_object_get(root, "summary"), *row;
	json_int_t problems = 0, notes = 0, price = 0;
	const char *severity = "";
	size_t i;

	json_array_foreach(json_object_get(root, "findings"), i, row)
	{
		RS_HOLDS(row, rs_number(row, "rank") == (json_int_t)i + 1);
		if (json_is_string(json_object_get(row, "suppressed")))
			continue;
		RS_HOLDS(row, rs_severity(row) >= rs_severity_of(severity));
		/* What overlaps counts with the part of its gain that no other finding's cure gives. */
		RS_HOLDS(row, rs_compared(row) || !rs_is(row, "severity", severity) ||
				      rs_is(row, "overlaps", "yes") || rs_price(row) <= price);
		if (!rs_is(row, "severity", severity) || !rs_is(row, "overlaps", "yes"))
			price = rs_is(row, "overlaps", "yes") || rs_ends_all(row) ? INT64_MAX
										  : rs_price(row);
		severity = rs_text(row, "severity");
		problems += rs_is(row, "severity", "problem");
		notes += rs_is(row, "severity", "note");
	}
	RS_HOLDS(summary, rs_number(summary, "problems") == problems);
	RS_HOLDS(summary, rs_number(summary, "notes") == notes);
}

static inline void rs_check_sums(const json_t *root)
{
	const json_t *summary = json_object_get(root, "summary");

	RS_HOLDS(summary, rs_number(summary, "calls") == rs_sum(root, "calls", "count"));
	RS_HOLDS(summary, rs_number(summary, "calls") == rs_sum(root, "threads", "count"));
	RS_HOLDS(summary, rs_number(summary, "calls") == rs_sum(root, "accounts", "calls"));
	RS_HOLDS(summary, rs_number(summary, "failed") == rs_sum(root, "calls", "failed"));
	RS_HOLDS(summary, rs_number(summary, "call_ns") == rs_sum(root, "calls", "total_ns"));
	RS_HOLDS(summary, rs_number(summary, "call_ns") == rs_sum(root, "threads", "total_ns"));
	RS_HOLDS(summary, rs_number(summary, "call_ns") == rs_sum(root, "accounts", "total_ns"));
	RS_HOLDS(summary, rs_number(summary, "processes") == rs_sum(root, "hosts", "processes"));
	RS_HOLDS(summary, rs_number(json_object_get(root, "waits"), "total_ns") ==
				  rs_number(summary, "call_ns"));
	RS_HOLDS(summary, rs_number(json_object_get(root, "waits"), "lost_ns") ==
				  rs_sum(root, "accounts", "lost_ns"));
}

static inline json_int_t rs_causes(const json_t *row, const char *key)
{
	const json_t *cause, *all = json_object_get(row, key);
	json_int_t sum = 0, last = INT64_MAX;
	size_t i;

	json_array_foreach(all, i, cause)
	{
		RS_HOLDS(row, rs_number(cause, "ns") > 0 && rs_number(cause, "ns") <= last);
		last = rs_number(cause, "ns");
		sum += last;
	}
	return sum;
}

/* What a GPU's idle time and its feeder's time are charged to is all of it, exactly. */
static inline void rs_check_gpu(const json_t *row)
{
	RS_HOLDS(row, rs_causes(row, "idle_causes") == rs_number(row, "idle_ns"));
	RS_HOLDS(row, rs_number(row, "idle_ns") <= rs_number(row, "idle_max_ns"));
	RS_HOLDS(row, rs_number(row, "idle_max_ns") <= rs_number(row, "work_ns"));
	RS_HOLDS(row, rs_number(row, "busy_ns") + rs_number(row, "idle_ns") <=
			      rs_number(row, "work_ns"));
	if (json_array_size(json_object_get(row, "feeder_causes")))
		RS_HOLDS(row,
			 rs_causes(row, "feeder_causes") == rs_number(row, "feeder_outside_ns"));
}

/* Each nanosecond of a GPU's idle time is the price of one finding at most. */
static inline void rs_check_prices(const json_t *root)
{
	/* GPUs that wait in a collective operation for another rank are not idle. */
	RS_HOLDS(root, rs_sum(root, "findings", "idle_gpu_ns") <=
			       rs_sum(root, "gpus", "idle_ns") + rs_sum(root, "ranks", "wait_ns") +
				       rs_sum(root, "ranks", "exposed_ns"));
}

static inline void report_agrees(const json_t *root)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "findings"), i, row)
	{
		rs_check_costs(row);
		rs_check_worst(root, row);
	}
	json_array_foreach(json_object_get(root, "worst_calls"), i, row)
		rs_check_worst_call(root, row);
	json_array_foreach(json_object_get(root, "gpus"), i, row) rs_check_gpu(row);
	rs_check_order(root);
	rs_check_prices(root);
	rs_check_sums(root);
	rs_check_ranges(root);
}

#endif
