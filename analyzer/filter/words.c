/*
 * analyzer/filter/words.c: options that limit what a verb is about, from words to lists, numbers and times. Called by
 * the verbs that have them, before any trace is read.
 */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include "words.h"

static const char *const names[FILTER_KINDS] = {
	[FILTER_THREAD] = "thread",     [FILTER_GPU] = "gpu",
	[FILTER_RANK] = "rank",         [FILTER_PROCESS] = "process",
	[FILTER_FUNCTION] = "function", [FILTER_RANGE] = "range",
	[FILTER_FROM] = "from",         [FILTER_TO] = "to",
};

const char *filter_option(enum filter_kind kind)
{
	return names[kind];
}

static int wrong(const struct filter *filter, enum filter_kind kind, const char *part,
		 const char *why)
{
	warn("--%s=%s: '%s' %s", names[kind], filter->words.of[kind], part, why);
	return -EINVAL;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* The next part of a list, up to its comma; NULL behind the last. The caller frees. */
static char *next_item(const char **list)
{
	size_t n;
	char *item;

	if (!*list)
		return NULL;
	n = strcspn(*list, ",");
	item = xstrndup(*list, n);
	*list = (*list)[n] ? *list + n + 1 : NULL;
	return item;
}

/* Names of ranges may have commas: such an option has one. */
static bool is_list(enum filter_kind kind)
{
	return kind != FILTER_RANGE;
}

static int parse_names(struct filter *filter, enum filter_kind kind)
{
	const char *list = filter->words.of[kind];
	char *item;

	while (list) {
		item = is_list(kind) ? next_item(&list) : xstrdup(list);
		if (!is_list(kind))
			list = NULL;
		filter->items[kind] = grow(filter->items[kind], filter->n[kind], sizeof(char *));
		filter->items[kind][filter->n[kind]++] = item;
		if (!*item)
			return wrong(filter, kind, item, "is no name");
	}
	return 0;
}

/* A number in decimal that ends at one of the characters of `ends`, or with the text. */
static bool take_number(const char **text, const char *ends, uint32_t *number)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	value = strtoull(*text, &end, 10);
	if (errno || value > UINT32_MAX || (*end && !strchr(ends, *end)))
		return false;
	*number = (uint32_t)value;
	*text = end;
	return true;
}

static bool take_span(const char *text, struct filter_numbers *span)
{
	if (!take_number(&text, "-", &span->from))
		return false;
	span->to = span->from;
	return !*text || (text++, take_number(&text, "", &span->to));
}

static int parse_numbers(struct filter *filter, enum filter_kind kind)
{
	const char *list = filter->words.of[kind];
	struct filter_numbers span;
	char *item;
	int err = 0;

	while (!err && (item = next_item(&list))) {
		if (!take_span(item, &span))
			err = wrong(filter, kind, item,
				    "is no number: 3, or from one to another: 0-7");
		else if (span.from > span.to)
			err = wrong(filter, kind, item, "ends before it begins");
		free(item);
		if (err)
			break;
		filter->numbers[kind] = grow(filter->numbers[kind], filter->n[kind], sizeof(span));
		filter->numbers[kind][filter->n[kind]++] = span;
	}
	return err;
}

/* ---- times ----------------------------------------------------------------------------------- */

static const struct {
	const char *suffix;
	double ns;
} units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"min", 60e9}};

#define TIME_FORMS "is no time: 1.5s, 300ms, 25%, or phase"

static int parse_time(const struct filter *filter, enum filter_kind kind, struct filter_time *time)
{
	const char *text = filter->words.of[kind];
	/* Decimal, and nothing else that strtod understands. */
	const char *end = text + strspn(text, "0123456789.");
	char *stop;
	double number;
	size_t i;

	*time = (struct filter_time){.form = FILTER_TIME_PHASE};
	if (!strcmp(text, "phase"))
		return 0;
	number = strtod(text, &stop);
	if (!isdigit((unsigned char)*text) || stop < end)
		return wrong(filter, kind, text, TIME_FORMS);
	if (!*end)
		return wrong(filter, kind, text, "has no unit: s, ms, us, ns, min, or %");
	if (!strcmp(end, "%")) {
		*time = (struct filter_time){.form = FILTER_TIME_PART, .part = number / 100};
		return number <= 100 ? 0 : wrong(filter, kind, text, "is more than all: 100%");
	}
	for (i = 0; i < ARRAY_SIZE(units) && strcmp(end, units[i].suffix) != 0; i++)
		;
	if (i == ARRAY_SIZE(units))
		return wrong(filter, kind, end, "is no unit: s, ms, us, ns, min, or %");
	number *= units[i].ns;
	if (!(number < 1e18))
		return wrong(filter, kind, text, "is too much");
	*time = (struct filter_time){.form = FILTER_TIME_NS, .ns = (uint64_t)(number + 0.5)};
	return 0;
}

/* What can be known without a recording. */
static bool is_backwards(const struct filter_time *from, const struct filter_time *to)
{
	if (to->form == FILTER_TIME_NS && from->form == FILTER_TIME_NS)
		return from->ns >= to->ns;
	if (to->form == FILTER_TIME_PART && from->form == FILTER_TIME_PART)
		return from->part >= to->part;
	return false;
}

static int parse_times(struct filter *filter)
{
	int err = 0;

	if (filter->words.of[FILTER_FROM])
		err = parse_time(filter, FILTER_FROM, &filter->from);
	if (!err && filter->words.of[FILTER_TO])
		err = parse_time(filter, FILTER_TO, &filter->to);
	if (err || !is_backwards(&filter->from, &filter->to))
		return err;
	return wrong(filter, FILTER_TO, filter->words.of[FILTER_FROM],
		     "(--from) is not before that");
}

/* ---- all ------------------------------------------------------------------------------------- */

int filter_parse(struct filter *filter, const struct filter_words *words)
{
	int err = 0;

	*filter = (struct filter){.words = *words};
	for (unsigned int kind = 0; kind < FILTER_KINDS && !err; kind++) {
		if (!words->of[kind])
			continue;
		filter->kinds |= 1u << kind;
		if (kind == FILTER_GPU || kind == FILTER_RANK)
			err = parse_numbers(filter, kind);
		else if (kind != FILTER_FROM && kind != FILTER_TO)
			err = parse_names(filter, kind);
	}
	return err ?: parse_times(filter);
}

void filter_release(struct filter *filter)
{
	for (unsigned int kind = 0; kind < FILTER_KINDS; kind++) {
		for (size_t i = 0; filter->items[kind] && i < filter->n[kind]; i++)
			free(filter->items[kind][i]);
		free(filter->items[kind]);
		free(filter->numbers[kind]);
	}
	*filter = (struct filter){0};
}

bool filter_item_fits(const char *item, const char *name)
{
	return !fnmatch(item, name, 0);
}

bool filter_item_is(const char *item, uint32_t number)
{
	uint32_t value;

	return take_number(&item, "", &value) && value == number;
}

bool filter_fits_name(const struct filter *filter, enum filter_kind kind, const char *name)
{
	for (size_t i = 0; i < filter->n[kind]; i++)
		if (filter_item_fits(filter->items[kind][i], name))
			return true;
	return false;
}

bool filter_fits_number(const struct filter *filter, enum filter_kind kind, uint32_t number)
{
	for (size_t i = 0; i < filter->n[kind]; i++)
		if (filter->numbers[kind] ? number >= filter->numbers[kind][i].from &&
						    number <= filter->numbers[kind][i].to
					  : filter_item_is(filter->items[kind][i], number))
			return true;
	return false;
}
