/*
 * tests/fuzz/check_timeline.h: is the timeline of an HTML report what docs/HTML_REPORT.md says, whatever the traces were? For
 * the fuzz target. Each lane's items fill their bytes, lie in the file behind each other, and refer to names, lanes, buckets and
 * causes that there are.
 */
#ifndef CUDASPY_FUZZ_CHECK_TIMELINE_H
#define CUDASPY_FUZZ_CHECK_TIMELINE_H

#include <zlib.h>
#include "base/report.h"
#include "checks.h"

struct unpacked {
	uint8_t *bytes;
	size_t n;
};

/* Aborts on what zlib does not unpack: that would be our own mistake, too. The caller frees. */
static inline struct unpacked unpack(const uint8_t *packed, size_t n)
{
	struct unpacked out = {.bytes = xcalloc(1, 1 << 16)};
	z_stream stream = {.next_in = (Bytef *)packed, .avail_in = (uInt)n};
	size_t room = 1 << 16;
	int status;

	if (inflateInit(&stream) != Z_OK)
		abort();
	do {
		if (room - out.n < 1 << 15) {
			room *= 2;
			out.bytes = xrealloc(out.bytes, room, 1);
		}
		stream.next_out = out.bytes + out.n;
		stream.avail_out = (uInt)(room - out.n - 1);
		status = inflate(&stream, Z_NO_FLUSH);
		out.n = room - 1 - stream.avail_out;
	} while (status == Z_OK);
	if (status != Z_STREAM_END)
		abort();
	out.bytes[out.n] = 0;
	inflateEnd(&stream);
	return out;
}

struct numbers {
	const uint8_t *at, *end;
	bool cut;
};

static inline uint64_t next_number(struct numbers *numbers)
{
	uint64_t value = 0;
	unsigned int shift;

	for (shift = 0; numbers->at < numbers->end && shift < 70; shift += 7) {
		uint8_t byte = *numbers->at++;

		value |= (uint64_t)(byte & 0x7f) << (shift & 63);
		if (byte < 0x80)
			return value;
	}
	numbers->cut = true;
	return 0;
}

/* How many there are of what values refer to. */
struct refer_to {
	uint64_t names, lanes, buckets, causes, wait_kinds;
};

/* N a name, L a lane + 1, C a cause, W a kind of wait, P a number; after begin and duration. */
static inline const char *values_of(const char *kind)
{
	static const struct {
		const char *kind, *values;
	} kinds[] = {
		{"calls", "NPNNP"}, {"waits", "WNLNP"}, {"gaps", "CNL"},           {"ranges", "NP"},
		{"ops", "NPLPP"},   {"idle", "CP"},     {"collectives", "NPPLPP"},
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].kind, kind))
			return kinds[i].values;
	return NULL;
}

static inline uint64_t most_of(const struct refer_to *to, char value)
{
	switch (value) {
	case 'N':
		return to->names;
	case 'L':
		return to->lanes + 1;
	case 'C':
		return to->causes;
	case 'W':
		return to->wait_kinds;
	default:
		return UINT64_MAX;
	}
}

static inline const char *check_item(struct numbers *numbers, const char *kind, const char *values,
				     const struct refer_to *to)
{
	uint64_t parts, bucket;

	next_number(numbers); /* begin and duration */
	next_number(numbers);
	for (; *values; values++)
		if (next_number(numbers) >= most_of(to, *values))
			return wrong("%s: a value %c is too large", kind, *values);
	for (parts = strcmp(kind, "calls") ? 0 : next_number(numbers); parts && !numbers->cut;
	     parts--) {
		bucket = next_number(numbers);
		next_number(numbers);
		if (bucket >= to->buckets)
			return wrong("a call's bucket %" PRIu64, bucket);
	}
	return numbers->cut ? wrong("%s: an item is cut off", kind) : NULL;
}

static inline const char *check_items(const char *kind, const json_t *where,
				      const struct unpacked *items, size_t *covered,
				      const struct refer_to *to)
{
	json_int_t offset = json_integer_value(json_array_get(where, 0));
	json_int_t bytes = json_integer_value(json_array_get(where, 1));
	json_int_t count = json_integer_value(json_array_get(where, 2));
	const char *values = values_of(kind);
	struct numbers numbers;

	if (!values)
		return wrong("items of a kind %s", kind);
	if (offset != (json_int_t)*covered || bytes < 0 || (size_t)(offset + bytes) > items->n)
		return wrong("%s lie at %" JSON_INTEGER_FORMAT, kind, offset);
	*covered += (size_t)bytes;
	numbers =
		(struct numbers){.at = items->bytes + offset, .end = items->bytes + offset + bytes};
	for (; count > 0; count--)
		CHECK(check_item(&numbers, kind, values, to));
	return numbers.at == numbers.end ? NULL : wrong("%s: bytes are left", kind);
}

static inline const char *check_lanes(const json_t *root, const struct unpacked *items)
{
	struct refer_to to = {.names = json_array_size(json_object_get(root, "names")),
			      .lanes = json_array_size(json_object_get(root, "lanes")),
			      .buckets = json_array_size(json_object_get(root, "buckets")),
			      .causes = json_array_size(json_object_get(root, "causes")),
			      .wait_kinds = json_array_size(json_object_get(root, "wait_kinds"))};
	const json_t *lane, *moment;
	const char *kind;
	size_t i, covered = 0;
	json_t *where;

	json_array_foreach(json_object_get(root, "lanes"), i, lane)
	{
		json_object_foreach(json_object_get(lane, "items"), kind, where)
			CHECK(check_items(kind, where, items, &covered, &to));
	}
	json_array_foreach(json_object_get(root, "moments"), i, moment)
	{
		if ((uint64_t)number_at(moment, "lane") >= to.lanes ||
		    number_at(moment, "begin_ns") > number_at(moment, "end_ns"))
			return wrong("moment %zu", i);
	}
	return covered == items->n ? NULL : wrong("bytes of no lane");
}

static inline const char *check_timeline(const struct report_timeline *timeline)
{
	struct unpacked text, items;
	const char *says;
	json_error_t why;
	json_t *root;

	if (!timeline->json || !timeline->items || !timeline->report)
		return "a part is missing";
	text = unpack(timeline->json, timeline->json_bytes);
	items = unpack(timeline->items, timeline->items_bytes);
	root = json_loadb((const char *)text.bytes, text.n, JSON_REJECT_DUPLICATES, &why);
	says = root ? check_lanes(root, &items) : wrong("line %d: %s", why.line, why.text);
	json_decref(root);
	free(text.bytes);
	free(items.bytes);
	return says;
}

#endif
