/*
 * analyzer/model/range_names.c: names of NVTX's ranges and marks. Called by the model for each
 * record that tells one.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "range_names.h"

#define UNKNOWN_NAME "(names that are not known)"

/* NVIDIA's and other libraries' own domains, as their sources or recordings have them. Not those of frameworks whose ranges
 * are the program's layers or operations (TensorRT, XLA's TSL). */
static bool is_librarys(const char *domain)
{
	static const char *const libraries[] = {"NCCL",   "CCCL",     "cuBLAS",   "cuBLASLt",
						"cuDNN",  "cuFFT",    "cuSPARSE", "cuSOLVER",
						"cuRAND", "cuTENSOR", "NVSHMEM",  "UCC",
						"UCX",    "UCP",      "libcudf",  "librmm"};

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		if (!strcasecmp(domain, libraries[i]))
			return true;
	return false;
}

static struct range_name *add(struct range_names *names, const char *key, size_t bytes)
{
	struct range_name *name = xcalloc(1, sizeof(*name) + bytes);

	memcpy(name->key, key, bytes);
	name->domain = name->key;
	name->name = name->key + strlen(name->key) + 1;
	name->library = is_librarys(name->domain);
	name->index = (uint32_t)names->n;
	name->created = position_now();
	names->all = grow(names->all, names->n, sizeof(struct range_name *));
	names->all[names->n++] = name;
	HASH_ADD_KEYPTR(hh, names->by_key, name->key, bytes, name);
	return name;
}

static struct range_name *find(struct range_names *names, const struct range_name *like)
{
	struct range_name *name;

	HASH_FIND(hh, names->by_key, like->key, range_name_key_bytes(like), name);
	return name;
}

static void move(struct range_names *names, struct range_names *from, struct range_name *name)
{
	HASH_DEL(from->by_key, name);
	name->index = (uint32_t)names->n;
	names->all = grow(names->all, names->n, sizeof(struct range_name *));
	names->all[names->n++] = name;
	HASH_ADD_KEYPTR(hh, names->by_key, name->key, range_name_key_bytes(name), name);
}

struct range_name *range_names_adopt(struct range_names *names, struct range_names *from,
				     struct range_name *name)
{
	struct range_name *own = find(names, name);

	if (own)
		return own;
	move(names, from, name);
	return name;
}

void range_names_adopt_unknown(struct range_names *names, struct range_names *from)
{
	range_names_release(names);
	move(names, from, from->unknown);
	names->unknown = from->unknown;
}

static struct range_name *get(struct range_names *names, const char *domain, const char *text,
			      bool family, bool *fresh)
{
	size_t domain_bytes = strlen(domain) + 1, text_bytes = strlen(text) + 1;
	size_t bytes = domain_bytes + text_bytes + 1;
	char *key = xcalloc(1, bytes);
	struct range_name *name;

	memcpy(key, domain, domain_bytes);
	memcpy(key + domain_bytes, text, text_bytes);
	key[bytes - 1] = (char)family;
	HASH_FIND(hh, names->by_key, key, bytes, name);
	*fresh = !name && names->n < RANGE_NAMES_MOST;
	if (*fresh)
		name = add(names, key, bytes);
	free(key);
	return name ?: names->unknown;
}

void range_names_init(struct range_names *names)
{
	bool fresh;

	*names = (struct range_names){0};
	names->unknown = get(names, "", UNKNOWN_NAME, true, &fresh);
}

void range_names_release(struct range_names *names)
{
	struct range_name *name, *next;

	HASH_EMPTY (names->by_key, name, next)
		free(name);
	free(names->all);
	*names = (struct range_names){0};
}

/* As the recorder does it (spy_range_fold): runs of decimal digits, and 0x with its hexadecimal
 * ones. NULL: there are none. */
static char *fold(const char *text)
{
	char *folded = xstrdup(text), *to = folded;
	bool any = false;

	while (*text) {
		const char *end = text;

		if (text[0] == '0' && (text[1] | 32) == 'x' &&
		    strspn(text + 2, "0123456789abcdefABCDEF"))
			end += 2 + strspn(text + 2, "0123456789abcdefABCDEF");
		end += strspn(end, "0123456789");
		any |= end != text;
		*to++ = end != text ? '#' : *text++;
		text = end > text ? end : text;
	}
	*to = '\0';
	if (any)
		return folded;
	free(folded);
	return NULL;
}

struct range_name *range_names_get(struct range_names *names, const char *domain, const char *text,
				   bool folded)
{
	struct range_name *name, *family;
	bool fresh, of_family;
	char *pattern;

	name = get(names, domain, text, folded, &fresh);
	if (folded)
		name->many = true;
	pattern = folded || !fresh ? NULL : fold(text);
	if (!pattern)
		return name;
	family = get(names, domain, pattern, true, &of_family);
	if (family != names->unknown) {
		name->family = family;
		family->members++;
	}
	free(pattern);
	return name;
}

static bool matches(const struct range_name *name, const char *pattern)
{
	size_t domain = strlen(name->domain);

	return !fnmatch(pattern, name->name, 0) ||
	       (domain && !strncmp(pattern, name->domain, domain) && pattern[domain] == ':' &&
		!fnmatch(pattern + domain + 1, name->name, 0));
}

bool range_matches(const struct range_name *name, const char *pattern)
{
	return matches(name, pattern) || (name->family && matches(name->family, pattern));
}
