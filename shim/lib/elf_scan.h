/*
 * shim/lib/elf_scan.h: symbols of the loaded objects, read from their own tables.
 *
 * dlsym would take the loader's lock, which a library's constructor may hold while it waits for the
 * very thread that makes the CUDA call. It would also change what dlerror returns. These functions
 * do neither, and none of them waits for the loader: a program may call CUDA inside a callback of
 * dl_iterate_phdr, and a forked child may have inherited a lock that stays locked (elf_scan.c).
 */
#ifndef CUDASPY_SHIM_ELF_SCAN_H
#define CUDASPY_SHIM_ELF_SCAN_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The dynamic tables of one loaded object. */
struct spy_object {
	const char *path; /* "" for the executable */
	const char *soname; /* "" if it has none */
	uintptr_t base;
	uintptr_t begin, end; /* of the executable segment */
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

/* False: the loader's lock is not free, and the answer is unknown. */
bool spy_count_objects(struct spy_object_counters *counters);

/* Finds the loader's lock; once, when the library is loaded. */
void spy_elf_scan_init(void);

/* In a forked child, before anything else. */
void spy_elf_scan_forked(void);

/*
 * Calls visit for each loaded object in the loader's order until it returns non-zero. visit must
 * not scan itself, nor keep what the object points to. The second one calls it for none if the
 * loader is at work; the first one then reads the loader's list as a debugger does.
 */
int spy_each_object(int (*visit)(const struct spy_object *object, void *data), void *data);
int spy_try_each_object(int (*visit)(const struct spy_object *object, void *data), void *data);

/* The same for those that came with the program, up to the first that it opened, or up to some hundred: true, for all of them.
 * They stay where they are, and what they point to as well, so that no scan is needed. */
bool spy_each_first_object(int (*visit)(const struct spy_object *object, void *data), void *data);

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
