/*
 * shim/lib/elf_object.h: symbols of the loaded objects, read from their own tables.
 */
#ifndef CUDASPY_SHIM_ELF_OBJECT_H
#define CUDASPY_SHIM_ELF_OBJECT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The dynamic tables of one loaded object. */
struct spy_object {
	const char *path; /* "" for the executable */
	const char *soname; /* "" if it has none */
	uintptr_t base;
	uintptr_t begin, end; /* of its code: from the first executable segment to the last */
	const ElfW(Phdr) * phdr;
	size_t phdr_count;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const uint32_t *hash;
	const ElfW(Versym) * versions;
	const ElfW(Verdef) * definitions;
	size_t definition_count;
	size_t position; /* in the loader's list */
	bool is_self; /* the shim */
	/*
	 * NULL, or a copy of what lies at the object's first addresses: the object may be unloaded
	 * at any moment. Everything that the tables above point to is in the copy; the addresses of
	 * symbols are those in the object.
	 */
	const char *copy;
	size_t copy_bytes;
};

/* How many objects have been loaded and unloaded so far. */
struct spy_object_counters {
	unsigned long long added, removed;
};

/* What the program headers say; base and headers are set. Returns the address of the dynamic section, 0: none. */
uintptr_t spy_object_read_headers(struct spy_object *object);

/* What the dynamic section says. False: the object has no symbols. */
bool spy_object_read_dynamic(const ElfW(Dyn) * dynamic, struct spy_object *object);

/* Where so many bytes at an address of the object's (before it was loaded: p_vaddr) can be read;
 * NULL: nowhere. */
const void *spy_object_at(const struct spy_object *object, uintptr_t address, size_t bytes);

/*
 * Address of `name` in one object, NULL if it is not defined there. version: a version node's name;
 * NULL accepts the default or an unversioned definition. versioned, if not NULL, is set to whether
 * the definition found carries a version.
 */
void *spy_object_symbol(const struct spy_object *object, const char *name, const char *version,
			bool *versioned);

/* The same for a variable of at least so many bytes, without a version or of the default one. */
void *spy_object_data(const struct spy_object *object, const char *name, size_t bytes);

/* Its symbol, or NULL. */
const ElfW(Sym) * spy_object_variable(const struct spy_object *object, const char *name);

/* The size of that data; 0: it is not defined there. */
size_t spy_object_data_bytes(const struct spy_object *object, const char *name);

/* Does the object define the version node? */
bool spy_object_has_version(const struct spy_object *object, const char *version);

/*
 * The first object after the shim that defines an exported function, else the first before it, for
 * what we interpose ourselves. When the library is loaded, or earlier: calls nothing of libc's and
 * takes no lock.
 */
void *spy_next_symbol(const char *name);

#endif
