/*
 * tests/fuzz/checks.h: is a report what a report has to be, whatever the traces were? For the fuzz target.
 *
 * Each check takes what a renderer wrote and says the first thing that is wrong with it, or NULL. JSON: no number is negative,
 * and what is told in several tables adds up to the same. JUnit: well-formed, and its counts are those of its cases. SARIF:
 * results refer to rules that are there. Text: characters that a terminal shows.
 */
#ifndef CUDASPY_FUZZ_CHECKS_H
#define CUDASPY_FUZZ_CHECKS_H

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "account/buckets.h"
#include "base/lines.h"
#include "base/util.h"

static char check_wrong[512];

__attribute__((format(printf, 1, 2))) static inline const char *wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(check_wrong, sizeof(check_wrong), format, args);
	va_end(args);
	return check_wrong;
}

#define CHECK(check) \
	do { \
		const char *check_says = (check); \
		if (check_says) \
			return check_says; \
	} while (0)

/* ---- numbers ------------------------------------------------------------------------------------- */

static inline int64_t number_at(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

static inline bool is_known(const json_t *row, const char *key)
{
	return json_is_integer(json_object_get(row, key));
}

static inline int64_t sum_of(const json_t *root, const char *table, const char *key)
{
	const json_t *row;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach(json_object_get(root, table), i, row) sum =
		add_capped(sum, (uint64_t)number_at(row, key));
	return (int64_t)sum;
}

/* What has come to the end of numbers adds up no more. */
static inline const char *equal(const char *what, int64_t a, int64_t b)
{
	if (a == b || a == INT64_MAX || b == INT64_MAX)
		return NULL;
	return wrong("%s: %" PRId64 " is not %" PRId64, what, a, b);
}

static inline const char *no_more(const char *what, int64_t a, int64_t b)
{
	return a <= b ? NULL : wrong("%s: %" PRId64 " is more than %" PRId64, what, a, b);
}

/* Sums of parts of nanoseconds, each rounded in its row. */
static inline const char *about(const char *what, int64_t a, int64_t b, size_t rows)
{
	int64_t slack = (int64_t)rows + 2 + (a > b ? a : b) / 1000000000;

	return a - b <= slack && b - a <= slack ? NULL : equal(what, a, b);
}

static inline const char *none_negative(const json_t *value, const char *key, const char *but)
{
	const char *inner;
	json_t *one;
	size_t i;

	if (json_is_integer(value) && json_integer_value(value) < 0 && strcmp(key, but) != 0)
		return wrong("%s: %" JSON_INTEGER_FORMAT " is negative", key,
			     json_integer_value(value));
	if (json_is_array(value))
		json_array_foreach(value, i, one) CHECK(none_negative(one, key, but));
	if (json_is_object(value))
		json_object_foreach((json_t *)value, inner, one)
			CHECK(none_negative(one, inner, but));
	return NULL;
}

/* ---- where the time went ------------------------------------------------------------------------------ */

static inline int64_t buckets_of(const json_t *row)
{
	uint64_t sum = 0;

#define BUCKET(name, key, text) sum = add_capped(sum, (uint64_t)number_at(row, #key "_ns"));
	BUCKETS(BUCKET)
#undef BUCKET
	return (int64_t)sum;
}

static inline const char *check_account(const char *what, const json_t *row)
{
	uint64_t lost = 0;

	CHECK(equal(what, buckets_of(row), number_at(row, "total_ns")));
	CHECK(no_more("lost_ns", number_at(row, "lost_ns"), number_at(row, "total_ns")));
	CHECK(no_more("kernel_work_ns", number_at(row, "kernel_work_ns"),
		      number_at(row, "ioctl_ns")));
#define BUCKET(name, key, text) \
	lost = add_capped( \
		lost, bucket_is_lost(BUCKET_##name) ? (uint64_t)number_at(row, #key "_ns") : 0);
	BUCKETS(BUCKET)
#undef BUCKET
	return equal("lost_ns and kernel_work_ns",
		     number_at(row, "lost_ns") + number_at(row, "kernel_work_ns"), (int64_t)lost);
}

/* The same calls, by thread and function, by function, and all of them. */
static inline const char *check_accounts(const json_t *root)
{
	static const char *const keys[] = {"calls", "total_ns", "lost_ns", "kernel_work_ns",
#define BUCKET(name, key, text) #key "_ns",
					   BUCKETS(BUCKET)
#undef BUCKET
	};
	const json_t *waits = json_object_get(root, "waits"), *row;
	size_t i;

	CHECK(check_account("buckets of waits", waits));
	json_array_foreach(json_object_get(root, "accounts"), i, row)
		CHECK(check_account("buckets of an account", row));
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		int64_t all = sum_of(root, "accounts", keys[i]);

		if (is_known(waits, keys[i]))
			CHECK(equal(keys[i], all, number_at(waits, keys[i])));
		if (json_array_size(json_object_get(root, "function_accounts")) &&
		    is_known(json_array_get(json_object_get(root, "function_accounts"), 0),
			     keys[i]))
			CHECK(equal(keys[i], sum_of(root, "function_accounts", keys[i]), all));
	}
	CHECK(no_more("asleep_ns", number_at(waits, "asleep_ns"),
		      number_at(waits, "unexplained_ns")));
	return no_more("maybe_ns", number_at(waits, "maybe_ns"), number_at(waits, "lost_ns"));
}

static inline const char *check_calls(const json_t *root)
{
	const json_t *summary = json_object_get(root, "summary"), *row;
	int64_t total = number_at(summary, "call_ns"), count = number_at(summary, "calls");
	size_t i;

	json_array_foreach(json_object_get(root, "calls"), i, row)
	{
		CHECK(no_more("median_ns", number_at(row, "median_ns"), number_at(row, "p99_ns")));
		CHECK(no_more("p99_ns", number_at(row, "p99_ns"), number_at(row, "max_ns")));
		CHECK(no_more("max_ns", number_at(row, "max_ns"), number_at(row, "total_ns")));
		CHECK(no_more("failed", number_at(row, "failed"), number_at(row, "count")));
	}
	CHECK(equal("calls by function", sum_of(root, "calls", "count"), count));
	CHECK(equal("calls by thread", sum_of(root, "threads", "count"), count));
	CHECK(equal("calls by GPU", sum_of(root, "devices", "count"), count));
	CHECK(equal("calls in accounts", sum_of(root, "accounts", "calls"), count));
	CHECK(equal("failed calls", sum_of(root, "calls", "failed"), number_at(summary, "failed")));
	CHECK(equal("time by function", sum_of(root, "calls", "total_ns"), total));
	CHECK(equal("time by thread", sum_of(root, "threads", "total_ns"), total));
	CHECK(equal("time by GPU", sum_of(root, "devices", "total_ns"), total));
	CHECK(equal("time in accounts", number_at(json_object_get(root, "waits"), "total_ns"),
		    total));
	CHECK(equal("counted", sum_of(root, "counted", "count"), number_at(summary, "counted")));
	CHECK(no_more("counted by threads", sum_of(root, "threads", "counted"),
		      number_at(summary, "counted")));
	CHECK(equal("bytes by thread", sum_of(root, "threads", "copied_bytes"),
		    number_at(summary, "copied_bytes")));
	return equal("bytes by GPU", sum_of(root, "devices", "copied_bytes"),
		     number_at(summary, "copied_bytes"));
}

/* ---- because of whom ------------------------------------------------------------------------------------ */

/* Those of GPUs and of calls are of the waits whose holder is known. */
static inline const char *check_edges(const json_t *root, const char *table, int64_t waited)
{
	size_t rows = json_array_size(json_object_get(root, table));

	return about(table, sum_of(root, table, "waited_ns"), waited, rows);
}

static inline const char *check_blame(const json_t *root)
{
	const json_t *waits = json_object_get(root, "waits"), *row;
	int64_t waited = number_at(waits, "lock_waited_ns");
	int64_t known = number_at(waits, "holder_known_ns");
	size_t i;

	CHECK(check_edges(root, "blame", waited));
	CHECK(check_edges(root, "root_blame", waited));
	CHECK(check_edges(root, "device_blame", known));
	CHECK(check_edges(root, "call_blame", known));
	CHECK(no_more("holder_known_ns", known, waited));
	CHECK(no_more("cross_device_ns", number_at(waits, "cross_device_ns"),
		      number_at(waits, "holder_known_ns")));
	json_array_foreach(json_object_get(root, "locks"), i, row)
	{
		CHECK(no_more("longest_ns", number_at(row, "longest_ns"),
			      number_at(row, "waited_ns")));
		CHECK(no_more("a lock's waiters", number_at(row, "waiters"),
			      number_at(row, "waits")));
	}
	json_array_foreach(json_object_get(root, "worst_calls"), i, row)
	{
		CHECK(no_more("a victim's loss", number_at(row, "lost_ns"),
			      number_at(row, "duration_ns")));
		CHECK(no_more("a victim's root", number_at(row, "root_ns"),
			      number_at(row, "duration_ns")));
	}
	return NULL;
}

/* Calls in the program's ranges are no more than there are. */
static inline const char *check_ranges(const json_t *root)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "ranges"), i, row)
	{
		CHECK(no_more("a range's own calls", number_at(row, "own_calls_ns"),
			      number_at(row, "calls_ns")));
		CHECK(no_more("a range's loss", number_at(row, "lost_ns"),
			      number_at(row, "calls_ns")));
		CHECK(no_more("a range's GPU waits", number_at(row, "gpu_ns"),
			      number_at(row, "calls_ns")));
		CHECK(no_more("a range's ends", number_at(row, "unended"),
			      number_at(row, "count")));
	}
	return no_more("calls in ranges", sum_of(root, "ranges", "own_calls_ns"),
		       number_at(json_object_get(root, "summary"), "call_ns"));
}

/* ---- findings ------------------------------------------------------------------------------------------- */

/* A nanosecond counts for one finding of calls only; what others waited and what the whole run says may overlap. */
static inline const char *check_findings(const json_t *root)
{
	const json_t *row;
	int64_t own = 0;
	size_t i;

	json_array_foreach(json_object_get(root, "findings"), i, row)
	{
		const char *id = json_string_value(json_object_get(row, "id"));

		CHECK(equal("rank", number_at(row, "rank"), (int64_t)i + 1));
		CHECK(no_more(id, number_at(row, "gain_low_ns"), number_at(row, "gain_high_ns")));
		CHECK(no_more(id, number_at(row, "gain_high_ns"), number_at(row, "cost_ns")));
		if (!is_known(row, "cost_ns"))
			continue;
		CHECK(equal(id, number_at(row, "own_ns") + number_at(row, "others_ns"),
			    number_at(row, "cost_ns")));
		if (!is_known(row, "total_ns"))
			continue;
		CHECK(no_more(id, number_at(row, "own_ns"), number_at(row, "total_ns")));
		own = (int64_t)add_capped((uint64_t)own, (uint64_t)number_at(row, "own_ns"));
	}
	return no_more("findings' own cost", own,
		       number_at(json_object_get(root, "summary"), "call_ns"));
}

static inline const char *check_report(const json_t *root)
{
	const char *schema = json_string_value(json_object_get(root, "schema"));

	if (!schema || strcmp(schema, "cudaspy-report-2") != 0)
		return wrong("schema is '%s'", schema ?: "none");
	CHECK(none_negative(root, "", ""));
	CHECK(check_ranges(root));
	CHECK(check_calls(root));
	CHECK(check_accounts(root));
	CHECK(check_blame(root));
	return check_findings(root);
}

/* ---- JSON of other commands ------------------------------------------------------------------------------- */

/* Of `why`, `info` and `diff`. */
static inline const char *check_json(const char *text, size_t size)
{
	json_error_t why;
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
	const char *says;

	if (!root)
		return wrong("line %d: %s", why.line, why.text);
	says = none_negative(root, "", "change_ns");
	json_decref(root);
	return says;
}

/* ---- SARIF --------------------------------------------------------------------------------------------------- */

static inline bool is_one_of(const char *word, const char *const *words)
{
	while (word && *words && strcmp(word, *words) != 0)
		words++;
	return word && *words;
}

static inline const char *check_place(const json_t *place)
{
	const json_t *physical = json_object_get(place, "physicalLocation"), *region;

	if (!physical)
		return NULL;
	if (!json_is_string(json_object_get(json_object_get(physical, "artifactLocation"), "uri")))
		return wrong("a place without a file");
	region = json_object_get(physical, "region");
	return region && number_at(region, "startLine") < 1 ? wrong("a region without a line")
							    : NULL;
}

static inline const char *check_result(const json_t *result, const json_t *rules)
{
	static const char *const levels[] = {"none", "note", "warning", "error", NULL};
	const char *id = json_string_value(json_object_get(result, "ruleId"));
	const json_t *index = json_object_get(result, "ruleIndex"), *place;
	size_t i;

	if (!is_one_of(json_string_value(json_object_get(result, "level")), levels))
		return wrong("no level");
	if (!id || !json_string_value(json_object_get(json_object_get(result, "message"), "text")))
		return wrong("a result without a rule or a message");
	if (index &&
	    strcmp(id, json_string_value(json_object_get(
			       json_array_get(rules, (size_t)json_integer_value(index)), "id"))
			       ?: "") != 0)
		return wrong("%s: ruleIndex is another one's", id);
	json_array_foreach(json_object_get(result, "locations"), i, place)
		CHECK(check_place(place));
	return NULL;
}

static inline const char *check_sarif(const char *text, size_t size)
{
	json_error_t why;
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why), *run, *rules, *result;
	const char *says = NULL;
	size_t i;

	if (!root)
		return wrong("line %d: %s", why.line, why.text);
	run = json_array_get(json_object_get(root, "runs"), 0);
	rules = json_object_get(json_object_get(json_object_get(run, "tool"), "driver"), "rules");
	if (!json_array_size(rules))
		says = wrong("no rules");
	json_array_foreach(json_object_get(run, "results"), i, result) if (!says) says =
		check_result(result, rules);
	json_decref(root);
	return says;
}

/* ---- JUnit ------------------------------------------------------------------------------------------------------ */

#define XML_DEEPEST 16

/* Bytes of what a text may consist of: a character of XML 1.0, or a reference to one by its number. 0: neither. */
static inline size_t xml_character(const char *at)
{
	unsigned int number;
	uint32_t code;
	size_t n;
	int bytes = 0;

	if (*at == '&') {
		if (sscanf(at, "&#%3u%n", &number, &bytes) != 1 || at[bytes] != ';')
			return 0;
		return number >= 32 || number == 9 || number == 10 ? (size_t)bytes + 1 : 0;
	}
	n = *at == '<' ? 0 : utf8_character(at, &code);
	if (!n || code == 0xfffe || code == 0xffff)
		return 0;
	return code >= 32 || code == 9 || code == 10 ? n : 0;
}

/* To the first character `end`; NULL: there is none, or something else is wrong. */
static inline const char *skip_xml_text(const char *at, char end)
{
	size_t n;

	for (; *at != end; at += n) {
		n = xml_character(at);
		if (!n)
			return NULL;
	}
	return at;
}

struct xml {
	const char *at;
	char open[XML_DEEPEST][32];
	size_t depth;
	unsigned int cases, failures, errors, skipped;
	unsigned int said_cases, said_failures, said_errors, said_skipped;
};

static inline void see_attribute(struct xml *x, const char *tag, const char *name,
				 const char *value)
{
	unsigned int number = (unsigned int)atoi(value);

	if (strcmp(tag, "testsuite") != 0)
		return;
	if (!strcmp(name, "tests"))
		x->said_cases = number;
	else if (!strcmp(name, "failures"))
		x->said_failures = number;
	else if (!strcmp(name, "errors"))
		x->said_errors = number;
	else if (!strcmp(name, "skipped"))
		x->said_skipped = number;
}

/* Behind the '<' of a tag that opens. */
static inline const char *check_open_tag(struct xml *x)
{
	char tag[32], name[32];
	int n = 0;

	if (sscanf(x->at, "%31[a-z]%n", tag, &n) != 1 || x->depth == XML_DEEPEST)
		return wrong("no tag: '%.20s'", x->at);
	x->cases += !strcmp(tag, "testcase");
	x->failures += !strcmp(tag, "failure");
	x->errors += !strcmp(tag, "error");
	x->skipped += !strcmp(tag, "skipped");
	for (x->at += n, n = 0; sscanf(x->at, " %31[a-z]=\"%n", name, &n) == 1 && n; n = 0) {
		const char *value = x->at + n;

		x->at = skip_xml_text(value, '"');
		if (!x->at)
			return wrong("%s: a bad value: '%.40s'", name, value);
		see_attribute(x, tag, name, value);
		x->at++;
	}
	if (!strncmp(x->at, "/>", 2)) {
		x->at += 2;
		return NULL;
	}
	if (*x->at++ != '>')
		return wrong("a bad tag: '%.20s'", x->at - 1);
	strcpy(x->open[x->depth++], tag);
	return NULL;
}

static inline const char *check_close_tag(struct xml *x)
{
	char tag[32];
	int n = 0;

	if (sscanf(x->at, "/%31[a-z]>%n", tag, &n) != 1 || !n || !x->depth ||
	    strcmp(tag, x->open[--x->depth]) != 0)
		return wrong("closes what is not open: '%.20s'", x->at);
	x->at += n;
	return NULL;
}

static inline const char *check_junit(const char *text)
{
	static const char head[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<";
	struct xml x = {.at = text + strlen(head)};

	if (strncmp(text, head, strlen(head)) != 0)
		return wrong("no XML");
	for (;;) {
		CHECK(*x.at == '/' ? check_close_tag(&x) : check_open_tag(&x));
		if (!x.depth)
			break;
		x.at = skip_xml_text(x.at, '<');
		if (!x.at++)
			return wrong("bad text in %s", x.open[x.depth - 1]);
	}
	CHECK(equal("tests", x.said_cases, x.cases));
	CHECK(equal("failures", x.said_failures, x.failures));
	CHECK(equal("errors", x.said_errors, x.errors));
	return equal("skipped", x.said_skipped, x.skipped);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static inline const char *check_text(const char *text, size_t size)
{
	const char *at;
	size_t n;

	if (strlen(text) != size)
		return wrong("a NUL at %zu", strlen(text));
	for (at = text; *at; at += n) {
		n = *at == '\n' ? 1 : harmless_character(at);
		if (!n)
			return wrong("byte %02x at %zu", (unsigned char)*at, (size_t)(at - text));
	}
	return NULL;
}

#endif
