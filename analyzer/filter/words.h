/*
 * analyzer/filter/words.h: the options that limit what a verb is about, as they are written on the command line.
 */
#ifndef CUDASPY_FILTER_WORDS_H
#define CUDASPY_FILTER_WORDS_H

#include "base/util.h"

enum filter_kind {
	FILTER_THREAD,
	FILTER_GPU,
	FILTER_RANK,
	FILTER_PROCESS,
	FILTER_FUNCTION,
	FILTER_RANGE,
	FILTER_FROM,
	FILTER_TO,
	FILTER_KINDS
};

/* What followed each option; NULL: it was not given. */
struct filter_words {
	const char *of[FILTER_KINDS];
};

/* The rows of a verb's table of options; type: of its options; member: a struct filter_words in it. */
/* clang-format off */
#define FILTER_OPTIONS(type, member) \
	{"thread",   0,   "LIST", "only these threads: names, with * and ?, or numbers", offsetof(type, member.of[FILTER_THREAD])}, \
	{"gpu",      0,   "LIST", "only calls with these GPUs current: 0, 0-3", offsetof(type, member.of[FILTER_GPU])}, \
	{"rank",     0,   "LIST", "only these ranks of a job: 3, 0-7", offsetof(type, member.of[FILTER_RANK])}, \
	{"process",  0,   "LIST", "only these processes: programs, with * and ?, or numbers", offsetof(type, member.of[FILTER_PROCESS])}, \
	{"function", 0,   "LIST", "only calls of these functions, with * and ?", offsetof(type, member.of[FILTER_FUNCTION])}, \
	{"range",    'r', "NAME", "only calls in the program's ranges (NVTX) of that name", offsetof(type, member.of[FILTER_RANGE])}, \
	{"from",     0,   "TIME", "only what ended from then on: 1.5s, 300ms, 25%, phase", offsetof(type, member.of[FILTER_FROM])}, \
	{"to",       0,   "TIME", "only what ended before: the same", offsetof(type, member.of[FILTER_TO])}
/* clang-format on */

/* For the help of a verb with these options. */
#define FILTER_HELP \
	"Options that limit the report: a call counts if it matches all of them. LIST is " \
	"separated by commas.\n  --thread    as the report names threads, or by number\n  --gpu " \
	"      by the device that was current in the call\n  --rank      as a launcher or NCCL " \
	"numbers them\n  --range     NAME or DOMAIN:NAME, with * and ?, and # for numbers, as " \
	"the report shows it\n  --from, --to  TIME is since the recording's start (with a unit: " \
	"s, ms, us, ns, min), a part of it in percent, or phase: the begin or the end of the " \
	"working phase\n"

/* The option's name, without dashes. */
const char *filter_option(enum filter_kind kind);

/* From one number to another one, both included. */
struct filter_numbers {
	uint32_t from, to;
};

struct filter_time {
	enum { FILTER_TIME_NONE, FILTER_TIME_NS, FILTER_TIME_PART, FILTER_TIME_PHASE } form;
	uint64_t ns; /* since the recording's start */
	double part; /* of the recording, 0 to 1 */
};

/* What the words mean, as far as they say themselves. */
struct filter {
	struct filter_words words;
	unsigned int kinds; /* that were given, a bit for each */
	char **items[FILTER_KINDS]; /* of lists of names; owned */
	struct filter_numbers *numbers[FILTER_KINDS]; /* of lists of numbers; owned */
	size_t n[FILTER_KINDS];
	struct filter_time from, to;
};

/* 0, or -EINVAL after a message that names the option. filter_release in all cases; the words must live as long. */
int filter_parse(struct filter *filter, const struct filter_words *words);
void filter_release(struct filter *filter);

/* Does one of the kind's items fit the name, or its number the number? */
bool filter_fits_name(const struct filter *filter, enum filter_kind kind, const char *name);
bool filter_fits_number(const struct filter *filter, enum filter_kind kind, uint32_t number);

/* Does the item, which may have * and ?, fit it: a name, or a number in decimal? */
bool filter_item_fits(const char *item, const char *name);
bool filter_item_is(const char *item, uint32_t number);

#endif
