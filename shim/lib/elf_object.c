/*
 * shim/lib/elf_object.c: symbols of a loaded object, read from its own tables. Runs on any thread, also before a sanitizer's
 * runtime works: calls nothing of libc's.
 *
 * Sources: System V gABI (hash table), "ELF symbol versioning" of the LSB, glibc's DT_GNU_HASH.
 */
#include <elf.h>
#include "lib/elf_object.h"

/* Our own dynamic section. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* ---- an object's tables --------------------------------------------------------------------- */

/* Of a copy: is all of that in it? */
static bool inside(const struct spy_object *object, const void *at, size_t bytes)
{
	size_t offset = (size_t)((const char *)at - object->copy);

	return !object->copy ||
	       (offset < object->copy_bytes && bytes <= object->copy_bytes - offset);
}

const void *spy_object_at(const struct spy_object *object, uintptr_t address, size_t bytes)
{
	const char *at = (object->copy ? object->copy : (const char *)object->base) + address;

	return inside(object, at, bytes) ? at : NULL;
}

/* Entries of the dynamic section hold addresses, relocated by glibc except in objects it does not
 * map itself (the vDSO). */
static const void *dynamic_address(const struct spy_object *object, ElfW(Addr) value)
{
	return spy_object_at(object, value < object->base ? value : value - object->base, 1);
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
bool spy_object_read_dynamic(const ElfW(Dyn) * dynamic, struct spy_object *object)
{
	ElfW(Word) soname = 0;
	bool has_soname = false;

	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		const void *address = dynamic_address(object, dynamic->d_un.d_ptr);

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
	object->soname = has_soname && inside(object, object->strings + soname, 1)
				 ? object->strings + soname
				 : "";
	return true;
}

/* What the program headers say; base and headers are set. Returns the address of the dynamic
 * section, 0: none. */
uintptr_t spy_object_read_headers(struct spy_object *object)
{
	uintptr_t dynamic = 0;

	for (size_t i = 0; i < object->phdr_count; i++) {
		const ElfW(Phdr) *header = &object->phdr[i];

		if (header->p_type == PT_DYNAMIC)
			dynamic = object->base + header->p_vaddr;
		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		if (!object->end)
			object->begin = object->base + header->p_vaddr;
		object->end = object->base + header->p_vaddr + header->p_memsz;
	}
	object->is_self = dynamic == (uintptr_t)_DYNAMIC;
	return dynamic;
}

/* ---- symbols -------------------------------------------------------------------------------- */

static const char *version_name(const struct spy_object *object, unsigned int index)
{
	const ElfW(Verdef) *definition = object->definitions;

	for (size_t i = 0; definition && i < object->definition_count; i++) {
		if (!inside(object, definition, sizeof(*definition)))
			break;
		if (definition->vd_ndx == index) {
			const ElfW(Verdaux) *name =
				(const void *)((const char *)definition + definition->vd_aux);

			return inside(object, name, sizeof(*name)) &&
					       inside(object, object->strings + name->vda_name, 1)
				       ? object->strings + name->vda_name
				       : NULL;
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
	unsigned int type, index = VER_NDX_GLOBAL;
	bool hidden = false;

	if (!inside(object, symbol, sizeof(*symbol)) || symbol->st_shndx == SHN_UNDEF ||
	    !inside(object, object->strings + symbol->st_name, 1))
		return false;
	type = ELF64_ST_TYPE(symbol->st_info);
	if (wanted->data ? type != STT_OBJECT : type != STT_FUNC && type != STT_GNU_IFUNC)
		return false;
	if (!same(object->strings + symbol->st_name, wanted->name))
		return false;
	if (object->versions && inside(object, &object->versions[i], sizeof(*object->versions))) {
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

/* A word of one of the two hash tables; what lies beyond a copy is as good as the end of it. */
static uint32_t table_word(const struct wanted *wanted, const uint32_t *word, uint32_t otherwise)
{
	return inside(wanted->object, word, sizeof(*word)) ? *word : otherwise;
}

static void search_gnu_hash(struct wanted *wanted)
{
	const uint32_t *table = wanted->object->gnu_hash;
	bool there = inside(wanted->object, table, 4 * sizeof(*table));
	uint32_t bucket_count = there ? table[0] : 0, first = there ? table[1] : 0;
	uint32_t bloom_count = there ? table[2] : 0;
	const ElfW(Addr) *bloom = (const ElfW(Addr) *)(table + 4);
	const uint32_t *buckets = (const uint32_t *)(bloom + bloom_count);
	const uint32_t *chain = buckets + bucket_count;
	uint32_t hash = gnu_hash(wanted->name), i;

	/* Most objects have none of our names: the Bloom filter says so at once. */
	if (bloom_count) {
		const unsigned int bits = 8 * sizeof(*bloom);
		const ElfW(Addr) *word = &bloom[hash / bits % bloom_count];

		if (!inside(wanted->object, word, sizeof(*word)) ||
		    !(*word >> hash % bits & *word >> (hash >> table[3]) % bits & 1))
			return;
	}
	i = bucket_count ? table_word(wanted, &buckets[hash % bucket_count], 0) : 0;
	if (i < first)
		return;
	for (;; i++) {
		uint32_t other = table_word(wanted, &chain[i - first], 1);

		if ((other | 1) == (hash | 1) && matches(wanted, i))
			return;
		if (other & 1)
			return;
	}
}

#define CHAIN_MOST (1u << 20) /* a torn copy may lead in circles */

static void search_sysv_hash(struct wanted *wanted)
{
	const uint32_t *table = wanted->object->hash;
	uint32_t bucket_count = table_word(wanted, table, 0);
	const uint32_t *buckets = table + 2;
	const uint32_t *chain = buckets + bucket_count;
	uint32_t hash = 0, i;

	for (const char *c = wanted->name; *c; c++) {
		uint32_t high;

		hash = (hash << 4) + (unsigned char)*c;
		high = hash & 0xf0000000;
		hash ^= high >> 24;
		hash &= ~high;
	}
	i = bucket_count ? table_word(wanted, &buckets[hash % bucket_count], 0) : 0;
	for (uint32_t n = 0; i && n < CHAIN_MOST && !matches(wanted, i); n++)
		i = table_word(wanted, &chain[i], 0);
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

const ElfW(Sym) * spy_object_variable(const struct spy_object *object, const char *name)
{
	struct wanted wanted = {.object = object, .name = name, .data = true};

	search(&wanted);
	return wanted.found;
}

void *spy_object_data(const struct spy_object *object, const char *name, size_t bytes)
{
	const ElfW(Sym) *symbol = spy_object_variable(object, name);

	return symbol && symbol->st_size >= bytes ? (void *)(object->base + symbol->st_value)
						  : NULL;
}

size_t spy_object_data_bytes(const struct spy_object *object, const char *name)
{
	const ElfW(Sym) *symbol = spy_object_variable(object, name);

	return symbol ? symbol->st_size : 0;
}

static void *symbol_in(const struct link_map *map, const char *name)
{
	struct spy_object object = {.base = map->l_addr};

	return spy_object_read_dynamic(map->l_ld, &object)
		       ? spy_object_symbol(&object, name, NULL, NULL)
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
