/*
 * shim/describe/modules.c: the ELF objects of the process, so that an address in the trace can be
 * shown as module and offset. Called when a session begins and ends and at each packet change, on
 * the application's threads. A look costs one step of dl_iterate_phdr unless something was loaded
 * or unloaded since.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "process/heap.h" /* before uthash.h */
#include <uthash.h>
#include "describe/describe.h"
#include "process/elf_scan.h"
#include "record/notes.h"
#include "state/session.h"

struct spy_module {
	uintptr_t begin; /* key: of the executable segment */
	uintptr_t end, base;
	uint32_t span_pages; /* as in spy_rec_module */
	unsigned long long seen; /* dlpi_adds + dlpi_subs of the last look that found it */
	UT_hash_handle hh;
	char build_id[65];
	char path[];
};

static void read_build_id(const struct spy_object *object, char text[65])
{
	text[0] = '\0';
	for (size_t i = 0; i < object->phdr_count; i++) {
		const ElfW(Phdr) *header = &object->phdr[i];
		const char *at = spy_object_at(object, header->p_vaddr, header->p_memsz);
		const char *end = at + header->p_memsz;

		if (header->p_type != PT_NOTE || !at)
			continue;
		while (at + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
			const char *name = at + sizeof(*note);
			const unsigned char *id =
				(const unsigned char *)name + ((note->n_namesz + 3u) & ~3u);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			    memcmp(name, "GNU", 4) == 0) {
				for (size_t b = 0; b < note->n_descsz && b < 32; b++)
					sprintf(text + 2 * b, "%02x", id[b]);
				return;
			}
			at = (const char *)id + ((note->n_descsz + 3u) & ~3u);
		}
	}
}

static void write_module(const struct spy_module *module, bool gone)
{
	size_t id_bytes = strlen(module->build_id) + 1;
	size_t path_bytes = strlen(module->path) + 1;
	struct spy_rec_module *record;
	size_t bytes;

	if (id_bytes + path_bytes > SPY_TEXT_MAX)
		path_bytes = SPY_TEXT_MAX - id_bytes;
	bytes = sizeof(*record) + id_bytes + path_bytes;
	record = spy_session_append(SPY_EV_MODULE, bytes);
	if (!record)
		return;
	record->gone = gone;
	record->span_pages = module->span_pages;
	record->base = module->base;
	record->begin = module->begin;
	record->end = module->end;
	memcpy(record->text, module->build_id, id_bytes);
	memcpy(record->text + id_bytes, module->path, path_bytes);
	record->text[id_bytes + path_bytes - 1] = '\0';
	spy_session_commit(bytes);
}

/* What a walk over the objects found of one. */
struct found {
	uintptr_t begin, end, base;
	uint32_t span_pages;
	bool runtime; /* a libcudart */
	char build_id[65];
	char path[SPY_PATH_MAX];
};

struct walk {
	struct found *found;
	size_t count, room;
};

/* A lock in a library's data is shown as library and offset: where does the last segment end? */
static uint32_t span_pages(const struct spy_object *object)
{
	uintptr_t end = 0;

	for (size_t i = 0; i < object->phdr_count; i++) {
		const ElfW(Phdr) *header = &object->phdr[i];

		if (header->p_type == PT_LOAD && header->p_vaddr + header->p_memsz > end)
			end = header->p_vaddr + header->p_memsz;
	}
	return (uint32_t)((end + 4095) / 4096);
}

/* Copies only: the loader's lock is held here, and an allocator that is not libc's may need it. */
static int visit_object(const struct spy_object *object, void *data)
{
	struct walk *walk = data;
	struct found *found;

	if (!object->end) /* no code in it */
		return 0;
	if (walk->count >= walk->room) { /* only counted: there will be more room */
		walk->count++;
		return 0;
	}
	found = &walk->found[walk->count++];
	found->begin = object->begin;
	found->end = object->end;
	found->base = object->base;
	found->span_pages = span_pages(object);
	found->runtime = strncmp(object->soname, "libcudart.so", 12) == 0;
	read_build_id(object, found->build_id);
	snprintf(found->path, sizeof(found->path), "%s",
		 object->position || *object->path ? object->path : "/proc/self/exe");
	return 0;
}

/* All objects, in memory of the kernel's; sets *bytes. NULL: no memory. */
static struct found *walk_objects(size_t *count, size_t *bytes)
{
	struct walk walk = {.room = 512};

	for (;;) {
		*bytes = walk.room * sizeof(*walk.found);
		walk.found = mmap(NULL, *bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (walk.found == MAP_FAILED)
			return NULL;
		walk.count = 0;
		spy_each_object(visit_object, &walk);
		if (walk.count <= walk.room)
			break;
		munmap(walk.found, *bytes);
		walk.room = walk.count + 64;
	}
	*count = walk.count;
	return walk.found;
}

/* What a path leads to, where /proc says it; in memory that is the next call's. Under the
 * look_lock. */
static const char *real_path(const char *path)
{
	static char real[SPY_PATH_MAX];
	char link[48];
	int fd = open(path, O_PATH | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, real, sizeof(real) - 1);
	close(fd);
	if (length <= 0)
		return NULL;
	real[length] = '\0';
	return real;
}

/* The executable's own name is empty in the loader's list, and what was opened by a relative
 * path has that one: a name that can be found later is absolute. */
static void make_absolute(struct found *found)
{
	const char *path;

	if (*found->path == '/' && strcmp(found->path, "/proc/self/exe") != 0)
		return;
	path = strchr(found->path, '/') ? real_path(found->path) : NULL;
	if (path)
		strcpy(found->path, path);
}

/* Versions of the runtime are in the names its files really have: libcudart.so.13.0.96. */
static void note_runtime(const struct found *found)
{
	spy_note(SPY_NOTE_VERSION, "runtime %s", real_path(found->path) ?: found->path);
}

static size_t bytes_of(const char *path)
{
	return sizeof(struct spy_module) + strlen(path) + 1;
}

static void forget_module(struct spy_module *module)
{
	write_module(module, true);
	HASH_DEL(spy_session->modules, module);
	spy_heap_give(module, bytes_of(module->path));
}

/* Another one may lie where one has gone from, even of the same name: a plugin that was built anew. */
static bool is_same(const struct spy_module *module, const struct found *found)
{
	return strcmp(module->path, found->path) == 0 &&
	       strcmp(module->build_id, found->build_id) == 0 && module->end == found->end;
}

static void take_module(struct found *found, unsigned long long look)
{
	struct spy_module *module = NULL;

	make_absolute(found);
	HASH_FIND(hh, spy_session->modules, &found->begin, sizeof(found->begin), module);
	if (module && !is_same(module, found)) {
		forget_module(module);
		module = NULL;
	}
	if (!module) {
		module = spy_heap_take(bytes_of(found->path));
		if (!module)
			return;
		module->begin = found->begin;
		module->end = found->end;
		module->base = found->base;
		module->span_pages = found->span_pages;
		strcpy(module->build_id, found->build_id);
		strcpy(module->path, found->path);
		HASH_ADD(hh, spy_session->modules, begin, sizeof(module->begin), module);
		write_module(module, false);
		if (found->runtime)
			note_runtime(found);
	}
	module->seen = look;
}

static void look_at_all(unsigned long long look)
{
	struct spy_module *module, *next;
	size_t count, bytes;
	struct found *found = walk_objects(&count, &bytes);

	if (!found)
		return;
	if (!count) { /* the list could not be read */
		munmap(found, bytes);
		return;
	}
	for (size_t i = 0; i < count; i++)
		take_module(&found[i], look);
	munmap(found, bytes);
	HASH_ITER (hh, spy_session->modules, module, next)
		if (module->seen != look)
			forget_module(module);
}

void spy_modules_look(void)
{
	struct spy_object_counters counters;
	bool look_for_python = false;

	if (!spy_try_lock(&spy_session->look_lock))
		return; /* another thread is looking */
	counters = spy_session->objects;
	spy_count_objects(&counters); /* or else, when the loader's lock is free */
	if (!spy_session->modules || counters.added != spy_session->objects.added ||
	    counters.removed != spy_session->objects.removed) {
		spy_session->objects = counters;
		look_at_all(counters.added + counters.removed);
		look_for_python = true;
	}
	/* A thread that unloads may have forgotten it after the look. */
	if (__atomic_exchange_n(&spy_session->python_forgotten, false, __ATOMIC_ACQ_REL) ||
	    look_for_python)
		spy_python_look();
	spy_unlock(&spy_session->look_lock);
}
