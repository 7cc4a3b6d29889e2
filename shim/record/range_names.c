/*
 * shim/record/range_names.c: domains, and names of ranges and marks, get numbers. Runs on the application's
 * threads, within NVTX's functions.
 *
 * Ranges are named before there is a session, and their names outlive it in a forked child: so the
 * tables are the process', not the session's, and have a fixed size. A place in a table is taken by
 * setting its hash, with one atomic exchange, and never given back; two texts with the same 64 bits
 * count as one. Who takes it copies the text; until that is done other threads have the number and
 * no text.
 */
#include <string.h>
#include "lib/handle_map.h"
#include "lib/utf8.h"
#include "record/range_names.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

#define PROBES 16 /* places looked at in a table */
#define TEXT_BYTES ((size_t)1 << 20)

struct named {
	uint64_t hash; /* 0: free */
	const char *text; /* NULL: not there yet */
	uint32_t family; /* of a text with #: names that it stands for */
	uint16_t domain;
	bool folded;
};

static struct named names[SPY_RANGE_NAMES]; /* the first one is none */
static struct named domains[SPY_DOMAINS]; /* the first one is the default one */
static char texts[TEXT_BYTES]; /* of both */
static size_t texts_used;
static uint32_t n_names, n_unnamed;

/* From a tool's handle to a number + 1. */
static struct spy_handle_map tools_domains, tools_strings;

/* ---- hashes --------------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#define ODD_1 0x9e3779b97f4a7c15ull
#define ODD_2 0xd6e8feb86659fd93ull

static inline uint64_t word_at(const char *text)
{
	uint64_t word;

	memcpy(&word, text, sizeof(word));
	return word;
}

/* Eight bytes at a time, the last ones once more where they are no eight: this is most of what a
 * push costs. */
static inline uint64_t hash_of(const char *text, size_t length, uint64_t seed)
{
	uint64_t hash = seed ^ (length + 1) * ODD_1, word = 0;
	size_t at;

	for (at = 0; at + 8 <= length; at += 8)
		hash = mix(hash ^ word_at(text + at), ODD_2);
	if (at < length && length > 8) {
		hash = mix(hash ^ word_at(text + length - 8), ODD_1);
	} else if (at < length) {
		for (; at < length; at++)
			word = word << 8 | (uint8_t)text[at];
		hash = mix(hash ^ word, ODD_1);
	}
	hash = mix(hash ^ ODD_1, ODD_2);
	return hash ? hash : 1;
}

/* ---- the tables ----------------------------------------------------------------------------- */

static const char *keep_text(const char *text, size_t length)
{
	size_t at = __atomic_load_n(&texts_used, __ATOMIC_RELAXED);

	do {
		if (at + length + 1 > TEXT_BYTES)
			return NULL;
	} while (!__atomic_compare_exchange_n(&texts_used, &at, at + length + 1, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	memcpy(texts + at, text, length);
	return texts + at; /* the NUL is there: the memory was zero */
}

static bool have_room(size_t length)
{
	return __atomic_load_n(&texts_used, __ATOMIC_RELAXED) + length + 1 <= TEXT_BYTES;
}

/* The place of a hash, or *empty set to one where it could go (-1: none). */
static inline int find(const struct named *table, int first, int n, uint64_t hash, int *empty)
{
	int at = first + (int)((hash >> 32) * (uint64_t)(n - first) >> 32);

	*empty = -1;
	for (int i = 0; i < PROBES && i < n - first; i++, at = at + 1 < n ? at + 1 : first) {
		uint64_t known = __atomic_load_n(&table[at].hash, __ATOMIC_RELAXED);

		if (known == hash)
			return at;
		if (!known) {
			*empty = at;
			return -1;
		}
	}
	return -1;
}

struct wanted {
	uint64_t hash;
	const char *text;
	size_t length;
	uint16_t domain;
	bool folded;
	bool fresh; /* the answer: nobody had added it */
};

/* Takes the place, or finds that another thread just did so for the same; -1: for another. */
static int take(struct named *table, int at, struct wanted *wanted)
{
	uint64_t known = 0;

	if (!__atomic_compare_exchange_n(&table[at].hash, &known, wanted->hash, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return known == wanted->hash ? at : -1;
	table[at].domain = wanted->domain;
	table[at].folded = wanted->folded;
	__atomic_store_n(&table[at].text, keep_text(wanted->text, wanted->length),
			 __ATOMIC_RELEASE);
	if (table == names)
		__atomic_fetch_add(&n_names, 1, __ATOMIC_RELAXED);
	wanted->fresh = true;
	return at;
}

static int find_or_take(struct named *table, int first, int n, struct wanted *wanted)
{
	int empty, at = find(table, first, n, wanted->hash, &empty);

	/* Again where another thread took it: another place is free then, or none. */
	for (int i = 0; at < 0 && empty >= 0 && have_room(wanted->length) && i < PROBES; i++) {
		at = take(table, empty, wanted);
		if (at < 0)
			at = find(table, first, n, wanted->hash, &empty);
	}
	return at;
}

/* ---- texts ---------------------------------------------------------------------------------- */

void spy_utf8_from_wide(char *text, size_t size, const wchar_t *wide)
{
	size_t used = 0;

	for (; wide && *wide && used + 5 <= size; wide++) {
		uint32_t c = (uint32_t)*wide;

		/* No character: what it is replaced by. */
		if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			c = 0xfffd;
		used += spy_utf8_put(text + used, c);
	}
	text[used] = '\0';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

/* The end of the number that begins there; the same place: none does. */
static const char *end_of_number(const char *text)
{
	if (text[0] == '0' && (text[1] | 32) == 'x' && is_hex(text[2]))
		for (text += 2; is_hex(*text);)
			text++;
	while (is_digit(*text))
		text++;
	return text;
}

bool spy_range_fold(char *folded, size_t size, const char *text)
{
	bool any = false;
	size_t used = 0;

	while (*text && used + 1 < size) {
		const char *end = end_of_number(text);

		any |= end != text;
		folded[used++] = end != text ? '#' : *text++;
		text = end > text ? end : text;
	}
	folded[used] = '\0';
	return any;
}

/* ---- domains -------------------------------------------------------------------------------- */

uint16_t spy_domain_number(const char *name)
{
	size_t length = name ? strnlen(name, SPY_DOMAIN_TEXT - 1) : 0;
	int at;

	if (!length)
		return 0;
	at = find_or_take(
		domains, 1, SPY_DOMAINS - 1,
		&(struct wanted){.hash = hash_of(name, length, 0), .text = name, .length = length});
	return at < 0 ? SPY_DOMAINS - 1 : (uint16_t)at;
}

uint16_t spy_domain_number_wide(const wchar_t *name)
{
	char text[SPY_DOMAIN_TEXT];

	spy_utf8_from_wide(text, sizeof(text), name);
	return spy_domain_number(text);
}

const char *spy_domain_text(uint16_t domain)
{
	const char *text;

	if (domain == SPY_DOMAINS - 1)
		return "(other domains)";
	text = __atomic_load_n(&domains[domain % SPY_DOMAINS].text, __ATOMIC_ACQUIRE);
	return text ? text : "";
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Seeds: names of different domains differ, and a text with # from the same one as a name. */
static uint64_t seed_of(uint16_t domain, bool folded)
{
	return ((uint64_t)domain << 1 | folded) * ODD_2;
}

static int count_unnamed(void)
{
	__atomic_fetch_add(&n_unnamed, 1, __ATOMIC_RELAXED);
	return 0;
}

/* What stands for names that differ from this one in numbers only; -1: there are no numbers in it. */
static int family_of(uint16_t domain, const char *text)
{
	char folded[SPY_RANGE_TEXT];
	size_t length;

	if (!spy_range_fold(folded, sizeof(folded), text))
		return -1;
	length = strlen(folded);
	return find_or_take(names, 1, SPY_RANGE_NAMES,
			    &(struct wanted){.hash = hash_of(folded, length, seed_of(domain, true)),
					     .text = folded,
					     .length = length,
					     .domain = domain,
					     .folded = true});
}

/* A name that is not in the table. */
static int add_name(uint16_t domain, const char *name, size_t length, uint64_t hash)
{
	char text[SPY_RANGE_TEXT];
	struct wanted wanted = {.hash = hash, .text = text, .length = length, .domain = domain};
	int family, at;

	memcpy(text, name, length);
	text[length] = '\0';
	family = family_of(domain, text);
	if (family >= 0 &&
	    __atomic_load_n(&names[family].family, __ATOMIC_RELAXED) >= SPY_RANGE_FAMILY)
		return family;
	at = find_or_take(names, 1, SPY_RANGE_NAMES, &wanted);
	if (at < 0)
		return family >= 0 ? family : count_unnamed();
	if (family >= 0 && wanted.fresh)
		__atomic_fetch_add(&names[family].family, 1, __ATOMIC_RELAXED);
	return at;
}

uint32_t spy_range_number(uint16_t domain, const char *name)
{
	size_t length;
	uint64_t hash;
	int empty, at;

	if (!name)
		name = "";
	length = strnlen(name, SPY_RANGE_TEXT - 1);
	hash = hash_of(name, length, seed_of(domain, false));
	at = find(names, 1, SPY_RANGE_NAMES, hash, &empty);
	if (__builtin_expect(at < 0, 0))
		at = add_name(domain, name, length, hash);
	return (uint32_t)at;
}

uint32_t spy_range_number_wide(uint16_t domain, const wchar_t *name)
{
	char text[SPY_RANGE_TEXT];

	spy_utf8_from_wide(text, sizeof(text), name);
	return spy_range_number(domain, text);
}

const char *spy_range_text(uint32_t number, uint16_t *domain, bool *folded)
{
	const struct named *named = &names[number % SPY_RANGE_NAMES];
	/* Pairs with take: with the text the rest is there. */
	const char *text = __atomic_load_n(&named->text, __ATOMIC_ACQUIRE);

	*domain = 0;
	*folded = false;
	if (!text)
		return NULL;
	*domain = named->domain;
	*folded = named->folded;
	return *domain && *domain != SPY_DOMAINS - 1 && !*spy_domain_text(*domain) ? NULL : text;
}

uint32_t spy_range_names(void)
{
	return __atomic_load_n(&n_names, __ATOMIC_RELAXED);
}

uint32_t spy_range_unnamed(void)
{
	return __atomic_load_n(&n_unnamed, __ATOMIC_RELAXED);
}

/* ---- handles -------------------------------------------------------------------------------- */

void *spy_domain_handle(uint16_t domain)
{
	return &domains[domain % SPY_DOMAINS];
}

void *spy_string_handle(uint32_t number)
{
	return &names[number % SPY_RANGE_NAMES];
}

static int place_in(const struct named *table, size_t bytes, const void *handle)
{
	size_t offset = (size_t)((uintptr_t)handle - (uintptr_t)table);

	return offset < bytes ? (int)(offset / sizeof(*table)) : -1;
}

uint16_t spy_domain_of(const void *handle)
{
	uint64_t learnt;
	int at;

	if (!handle)
		return 0;
	at = place_in(domains, sizeof(domains), handle);
	if (at >= 0)
		return (uint16_t)at;
	learnt = spy_handle_get(&tools_domains, (uintptr_t)handle);
	return learnt ? (uint16_t)(learnt - 1) : 0;
}

uint32_t spy_string_of(const void *handle)
{
	uint64_t learnt;
	int at;

	if (!handle)
		return spy_range_number(0, "");
	at = place_in(names, sizeof(names), handle);
	if (at >= 0)
		return (uint32_t)at;
	learnt = spy_handle_get(&tools_strings, (uintptr_t)handle);
	return learnt ? (uint32_t)(learnt - 1) : 0;
}

/* Without memory the handle stays unknown: of the default domain, without a name. */
void spy_domain_learn(const void *handle, uint16_t domain)
{
	if (handle && place_in(domains, sizeof(domains), handle) < 0)
		(void)spy_handle_set(&tools_domains, (uintptr_t)handle, domain + 1ull);
}

void spy_string_learn(const void *handle, uint32_t number)
{
	if (handle && place_in(names, sizeof(names), handle) < 0)
		(void)spy_handle_set(&tools_strings, (uintptr_t)handle, number + 1ull);
}

void spy_names_forked(void)
{
	spy_lock_forget(&tools_domains.lock);
	spy_lock_forget(&tools_strings.lock);
}
