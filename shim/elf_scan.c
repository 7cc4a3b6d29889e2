/*
 * shim/elf_scan.c: symbols of the loaded objects, read from their own tables. Called by resolve.c
 * and session.c on whatever thread makes a first call or a look-up; the only lock below is the one
 * dl_iterate_phdr holds for the length of the walk, which no constructor runs under.
 *
 * Sources: System V gABI (hash table), "ELF symbol versioning" of the LSB, glibc's DT_GNU_HASH.
 */
#include <elf.h>
#include "calm.h"
#include "elf_scan.h"
#include "lock.h"

/* Our own dynamic section. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* Entries of the dynamic section hold addresses, relocated by glibc except in objects it does not
 * map itself (the vDSO). */
static const void *dynamic_address(uintptr_t base, ElfW(Addr) value)
{
	return (const void *)(value < base ? base + value : value);
}

/* Not libc's: a sanitizer's runtime looks symbols up before its own strcmp works. */
static bool same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* Reads a dynamic section; object->base is set. False: no symbols. */
static bool read_dynamic(const ElfW(Dyn) * dynamic, struct spy_object *object)
{
	ElfW(Word) soname = 0;
	bool has_soname = false;

	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		const void *address = dynamic_address(object->base, dynamic->d_un.d_ptr);

		switch (dynamic->d_tag) {
		case DT_SYMTAB:
			object->symbols = address;
			break;
		case DT_STRTAB:
			object->strings = address;
			break;
		case DT_GNU_HASH:
			object->gnu_hash = address;
			break;
		case DT_HASH:
			object->hash = address;
			break;
		case DT_VERSYM:
			object->versions = address;
			break;
		case DT_VERDEF:
			object->definitions = address;
			break;
		case DT_VERDEFNUM:
			object->definition_count = dynamic->d_un.d_val;
			break;
		case DT_SONAME:
			soname = (ElfW(Word))dynamic->d_un.d_val;
			has_soname = true;
			break;
		default:
			break;
		}
	}
	if (!object->symbols || !object->strings)
		return false;
	object->soname = has_soname ? object->strings + soname : "";
	return true;
}

static bool read_object(const struct dl_phdr_info *info, struct spy_object *object)
{
	const ElfW(Dyn) *dynamic = NULL;

	*object = (struct spy_object){0};
	object->path = info->dlpi_name ? info->dlpi_name : "";
	object->base = info->dlpi_addr;
	object->phdr = info->dlpi_phdr;
	object->phdr_count = info->dlpi_phnum;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)(object->base + header->p_vaddr);
		if (header->p_type == PT_LOAD && (header->p_flags & PF_X) && !object->end) {
			object->begin = object->base + header->p_vaddr;
			object->end = object->begin + header->p_memsz;
		}
	}
	object->is_self = dynamic == _DYNAMIC;
	return dynamic && read_dynamic(dynamic, object);
}

struct walk {
	int (*visit)(const struct spy_object *object, void *data);
	void *data;
	size_t position;
};

static int walk_one(struct dl_phdr_info *info, size_t size, void *data)
{
	struct walk *walk = data;
	struct spy_object object;
	size_t position = walk->position++;

	(void)size;
	if (!read_object(info, &object))
		return 0;
	object.position = position;
	return walk->visit(&object, walk->data);
}

/*
 * dl_iterate_phdr holds a lock of the loader's that glibc does not free in a forked child. Nobody of
 * ours may be in there when the process forks: hence a lock around it, which fork takes, too.
 */
static struct spy_lock scan_lock;

void spy_elf_scan_hold(bool hold)
{
	spy_hold(&scan_lock, hold);
}

static int scan(int (*callback)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	int result;
	SPY_CALM;

	spy_lock(&scan_lock);
	result = dl_iterate_phdr(callback, data);
	spy_unlock(&scan_lock);
	return result;
}

int spy_each_object(int (*visit)(const struct spy_object *object, void *data), void *data)
{
	struct walk walk = {.visit = visit, .data = data};

	return scan(walk_one, &walk);
}

static int read_counters(struct dl_phdr_info *info, size_t size, void *data)
{
	struct spy_object_counters *counters = data;

	(void)size;
	counters->added = info->dlpi_adds;
	counters->removed = info->dlpi_subs;
	return 1;
}

struct spy_object_counters spy_count_objects(void)
{
	struct spy_object_counters counters = {0};

	scan(read_counters, &counters);
	return counters;
}

static const char *version_name(const struct spy_object *object, unsigned int index)
{
	const ElfW(Verdef) *definition = object->definitions;

	for (size_t i = 0; definition && i < object->definition_count; i++) {
		if (definition->vd_ndx == index) {
			const ElfW(Verdaux) *name =
				(const void *)((const char *)definition + definition->vd_aux);

			return object->strings + name->vda_name;
		}
		if (!definition->vd_next)
			break;
		definition = (const void *)((const char *)definition + definition->vd_next);
	}
	return NULL;
}

bool spy_object_has_version(const struct spy_object *object, const char *version)
{
	/* Index 1 is the object's own name, not a version. */
	for (unsigned int i = 2; i <= object->definition_count; i++) {
		const char *name = version_name(object, i);

		if (name && same(name, version))
			return true;
	}
	return false;
}

struct wanted {
	const struct spy_object *object;
	const char *name;
	const char *version;
	bool data; /* not a function */
	const ElfW(Sym) * found;
	bool versioned;
};

/* Is symbol number i the one that is wanted? */
static bool matches(struct wanted *wanted, uint32_t i)
{
	const struct spy_object *object = wanted->object;
	const ElfW(Sym) *symbol = &object->symbols[i];
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);
	unsigned int index = VER_NDX_GLOBAL;
	bool hidden = false;

	if (symbol->st_shndx == SHN_UNDEF ||
	    (wanted->data ? type != STT_OBJECT : type != STT_FUNC && type != STT_GNU_IFUNC))
		return false;
	if (!same(object->strings + symbol->st_name, wanted->name))
		return false;
	if (object->versions) {
		index = object->versions[i] & 0x7fff;
		hidden = object->versions[i] & 0x8000;
	}
	if (index == VER_NDX_LOCAL)
		return false;
	if (wanted->version) {
		const char *version = index > VER_NDX_GLOBAL ? version_name(object, index) : NULL;

		if (!version || !same(version, wanted->version))
			return false;
	} else if (hidden) {
		return false;
	}
	wanted->found = symbol;
	wanted->versioned = index > VER_NDX_GLOBAL;
	return true;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static void search_gnu_hash(struct wanted *wanted)
{
	const uint32_t *table = wanted->object->gnu_hash;
	uint32_t bucket_count = table[0], first = table[1], bloom_count = table[2];
	const ElfW(Addr) *bloom = (const ElfW(Addr) *)(table + 4);
	const uint32_t *buckets = (const uint32_t *)(bloom + bloom_count);
	const uint32_t *chain = buckets + bucket_count;
	uint32_t hash = gnu_hash(wanted->name), i;

	/* Most objects have none of our names: the Bloom filter says so at once. */
	if (bloom_count) {
		const unsigned int bits = 8 * sizeof(*bloom);
		ElfW(Addr) word = bloom[hash / bits % bloom_count];

		if (!(word >> hash % bits & word >> (hash >> table[3]) % bits & 1))
			return;
	}
	i = bucket_count ? buckets[hash % bucket_count] : 0;
	if (i < first)
		return;
	for (;; i++) {
		uint32_t other = chain[i - first];

		if ((other | 1) == (hash | 1) && matches(wanted, i))
			return;
		if (other & 1)
			return;
	}
}

static void search_sysv_hash(struct wanted *wanted)
{
	const uint32_t *table = wanted->object->hash;
	uint32_t bucket_count = table[0];
	const uint32_t *buckets = table + 2;
	const uint32_t *chain = buckets + bucket_count;
	uint32_t hash = 0;

	for (const char *c = wanted->name; *c; c++) {
		uint32_t high;

		hash = (hash << 4) + (unsigned char)*c;
		high = hash & 0xf0000000;
		hash ^= high >> 24;
		hash &= ~high;
	}
	for (uint32_t i = bucket_count ? buckets[hash % bucket_count] : 0; i; i = chain[i])
		if (matches(wanted, i))
			return;
}

static void search(struct wanted *wanted)
{
	if (wanted->object->gnu_hash)
		search_gnu_hash(wanted);
	else if (wanted->object->hash)
		search_sysv_hash(wanted);
}

void *spy_object_symbol(const struct spy_object *object, const char *name, const char *version,
			bool *versioned)
{
	struct wanted wanted = {.object = object, .name = name, .version = version};
	void *address;

	search(&wanted);
	if (!wanted.found)
		return NULL;
	if (versioned)
		*versioned = wanted.versioned;
	address = (void *)(object->base + wanted.found->st_value);
	if (ELF64_ST_TYPE(wanted.found->st_info) == STT_GNU_IFUNC)
		address = ((void *(*)(void))address)();
	return address;
}

void *spy_object_data(const struct spy_object *object, const char *name, size_t bytes)
{
	struct wanted wanted = {.object = object, .name = name, .data = true};

	search(&wanted);
	if (!wanted.found || wanted.found->st_size < bytes)
		return NULL;
	return (void *)(object->base + wanted.found->st_value);
}

static void *symbol_in(const struct link_map *map, const char *name)
{
	struct spy_object object = {.base = map->l_addr};

	return read_dynamic(map->l_ld, &object) ? spy_object_symbol(&object, name, NULL, NULL)
						: NULL;
}

void *spy_next_symbol(const char *name)
{
	struct link_map *map = _r_debug.r_map, *self;
	void *found = NULL;

	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	self = map;
	for (map = map ? map->l_next : NULL; map && !found; map = map->l_next)
		found = symbol_in(map, name);
	/* Opened late, we come behind the C library. */
	for (map = _r_debug.r_map; map && map != self && !found; map = map->l_next)
		found = symbol_in(map, name);
	return found;
}
