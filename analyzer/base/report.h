/*
 * analyzer/base/report.h: a finished report: tables in the order they are shown. The renderers get
 * this and know nothing else.
 */
#ifndef CUDASPY_REPORT_H
#define CUDASPY_REPORT_H

#include "table.h"

#define REPORT_TABLES 40

/* How text is shown. */
struct view {
	unsigned int width; /* columns; 0: 80 */
	bool colour;
	bool verbose; /* also the tables that go into detail */
	bool always_brief; /* the verb has no --verbose */
};

/* What the HTML report holds (docs/HTML_REPORT.md), all parts as zlib streams; owned. */
struct report_timeline {
	uint8_t *report; /* this one itself: render/html.c */
	uint8_t *json, *items;
	size_t report_bytes, json_bytes, items_bytes;
};

struct report {
	struct view view;
	/* What follows `cudaspy why N` on a command line that reads the same, and how the command was called; NULL: text has no
	 * such hints. */
	const char *again, *called;
	const char *
		more; /* what text says of tables that it leaves out; NULL: what a report of traces has */
	bool text_only; /* it is shown as text and nothing else: report_rows */
	const char *schema; /* "cudaspy-report-2" */
	struct table tables[REPORT_TABLES];
	size_t n_tables;
	struct arena arena; /* owns rows and texts */
	struct report_timeline timeline; /* empty unless it is asked for */
};

void report_init(struct report *report, const char *schema);
void report_release(struct report *report);

/* Does text leave out tables of that kind? */
static inline bool report_hides(const struct report *report, const struct table_kind *kind)
{
	return kind->json_only || kind->unlisted || (kind->detail && !report->view.verbose);
}

/* How many of a table's n rows are looked at, of those that come first: there may be a hundred
 * thousand, of which text shows ten. The others need not be filled in. */
size_t report_rows(const struct report *report, const struct table_kind *kind, size_t n);

/* Adds a table; the report owns `rows` (from malloc, or NULL) from here on. n_rows counts those
 * that were not filled in, too. Returns it, for an intro. */
struct table *report_add(struct report *report, const struct table_kind *kind, void *rows,
			 size_t n_rows);

/* Takes paths and users' names out of all of its texts, if that is asked for (redact.h). */
void report_redact(struct report *report);

/* The table with that key, or NULL. */
const struct table *report_find(const struct report *report, const char *key);

/* Is what others waited for a finding worth a word? From a hundredth of its cost on. */
static inline bool report_shows_others(uint64_t others_ns, uint64_t cost_ns)
{
	return others_ns && others_ns >= cost_ns / 100;
}

/* So much idle time of GPUs is worth a word in a finding. */
#define REPORT_IDLE_LEAST_NS 100000

/* Is a gain told as one number? If its bounds lie within a hundredth. */
static inline bool report_is_point(uint64_t low_ns, uint64_t high_ns)
{
	return low_ns >= high_ns - high_ns / 100;
}

/* Texts that live as long as the report. */
#define report_text(report, ...) arena_printf(&(report)->arena, __VA_ARGS__)

#endif
