/* links: shim/describe/modules.c */
/*
 * tests/unit/test_modules.c: what is written of the loaded objects, with a made-up list of them: each once, with its build id and
 * a path that can be found later; those that are gone or were replaced; and when there is a look at all.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "describe/describe.h"
#include "process/elf_scan.h"
#include "process/heap.h"
#include "record/notes.h"
#include "scratch.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

#define MOST 600 /* more than there is room for at once */

/* ---- the rest of the shim, and the loader ---- */

static struct spy_object objects[MOST];
static size_t n_objects;
static struct spy_object_counters counters;
static bool loader_busy, no_memory;
static int n_python_looks, n_scans, n_notes;
static long heap_used;
static char note[PATH_MAX + 100];
static size_t from; /* records of the session's stream are read from here on */

int spy_each_object(int (*visit)(const struct spy_object *object, void *data), void *data)
{
	n_scans++;
	for (size_t i = 0; i < n_objects; i++)
		assert_int_equal(visit(&objects[i], data), 0);
	return 0;
}

bool spy_count_objects(struct spy_object_counters *are)
{
	if (!loader_busy)
		*are = counters;
	return !loader_busy;
}

const void *spy_object_at(const struct spy_object *object, uintptr_t address, size_t bytes)
{
	return bytes && address + bytes <= object->copy_bytes ? object->copy + address : NULL;
}

void *spy_heap_take(size_t bytes)
{
	if (no_memory)
		return NULL;
	heap_used += (long)bytes;
	return calloc(1, bytes);
}

void spy_heap_give(void *memory, size_t bytes)
{
	if (memory)
		heap_used -= (long)bytes;
	free(memory);
}

void spy_python_look(void)
{
	assert_true(spy_lock_is_mine(&session.look_lock));
	n_python_looks++;
}

void spy_note(enum spy_note what, const char *format, ...)
{
	va_list args;

	assert_int_equal(what, SPY_NOTE_VERSION);
	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
	n_notes++;
}

static char *dir;

static int begin(void **state)
{
	(void)state;
	begin_session();
	dir = scratch_make();
	assert_int_equal(chdir(dir), 0);
	memset(objects, 0, sizeof(objects));
	n_objects = 0;
	counters = (struct spy_object_counters){0};
	loader_busy = no_memory = false;
	n_python_looks = n_scans = n_notes = 0;
	heap_used = 0;
	note[0] = '\0';
	from = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_int_equal(session.look_lock.owner, 0);
	assert_int_equal(from, session_bytes); /* no records but those */
	assert_int_equal(chdir("/"), 0);
	scratch_remove(dir);
	return 0;
}

/* ---- objects ---- */

/* The notes of an object: a version that is not GNU's, one of another kind, and the build id. */
struct notes {
	struct {
		ElfW(Nhdr) head;
		char name[8];
		char desc[4];
	} other;
	struct {
		ElfW(Nhdr) head;
		char name[4];
		unsigned char desc[8]; /* of 5 */
	} gnu;
	struct {
		ElfW(Nhdr) head;
		char name[4];
		unsigned char desc[36];
	} id;
};

static struct notes notes = {
	.other = {{6, 3, NT_GNU_BUILD_ID}, "Other", "ab"},
	.gnu = {{4, 5, NT_GNU_ABI_TAG}, "GNU", {1, 2, 3, 4, 5}},
	.id = {{4, 20, NT_GNU_BUILD_ID}, "GNU", {0}},
};

static const ElfW(Phdr) headers[] = {
	{.p_type = PT_LOAD, .p_vaddr = 0, .p_memsz = 0x1800},
	{.p_type = PT_LOAD, .p_vaddr = 0x5000, .p_memsz = 0x1001}, /* the last one */
	{.p_type = PT_LOAD, .p_vaddr = 0x2000, .p_memsz = 0x1000},
	{.p_type = PT_GNU_STACK, .p_vaddr = 0x90000, .p_memsz = 0x1000},
	{.p_type = PT_NOTE, .p_vaddr = 0x70000, .p_memsz = 0x1000}, /* cannot be read */
	{.p_type = PT_NOTE, .p_vaddr = 0, .p_memsz = sizeof(notes)},
};

static struct spy_object *add(const char *path)
{
	struct spy_object *object = &objects[n_objects];

	object->path = path;
	object->soname = "";
	object->base = 0x100000 * (n_objects + 1);
	object->begin = object->base + 0x1000;
	object->end = object->base + 0x3000;
	object->position = n_objects++;
	counters.added++;
	return object;
}

static void take_away(size_t i)
{
	n_objects--;
	memmove(&objects[i], &objects[i + 1], (n_objects - i) * sizeof(*objects));
	counters.removed++;
}

static uintptr_t code_bytes = 0x2000;

static const struct spy_rec_module *next(uintptr_t base, const char *id, const char *path,
					 bool gone)
{
	const struct spy_rec_module *module = (void *)(session_records + from);

	from += sizeof(*module) + strlen(id) + strlen(path) + 2;
	assert_true(from <= session_bytes);
	assert_int_equal(module->head.event, SPY_EV_MODULE);
	assert_int_equal(module->base, base);
	assert_int_equal(module->begin, base + 0x1000);
	assert_int_equal(module->end, base + 0x1000 + code_bytes);
	assert_int_equal(module->gone, gone);
	assert_string_equal(module->text, id);
	assert_string_equal(module->text + strlen(id) + 1, path);
	return module;
}

/* ---- the tests ---- */

static void test_looks(void **state)
{
	(void)state;
	add("/lib/a.so");
	add("/lib/b.so");
	add("/lib/data.so")->end = 0; /* no code */
	spy_modules_look();
	next(0x100000, "", "/lib/a.so", false);
	next(0x200000, "", "/lib/b.so", false);
	assert_int_equal(n_scans, 1);
	assert_int_equal(n_python_looks, 1);
	/* Nothing was loaded since. */
	spy_modules_look();
	assert_int_equal(n_scans, 1);
	assert_int_equal(n_python_looks, 1);
	session.python_forgotten = true;
	spy_modules_look();
	spy_modules_look();
	assert_int_equal(n_scans, 1);
	assert_int_equal(n_python_looks, 2);
	/* One more, but the loader is at work; then another thread is looking; then nobody. */
	add("/lib/c.so");
	loader_busy = true;
	spy_modules_look();
	loader_busy = false;
	session.look_lock.owner = 1;
	spy_modules_look();
	assert_int_equal(n_scans, 1);
	session.look_lock.owner = 0;
	spy_modules_look();
	next(0x400000, "", "/lib/c.so", false);
	assert_int_equal(n_scans, 2);
	assert_int_equal(n_python_looks, 3);
	/* One goes. */
	take_away(0);
	spy_modules_look();
	next(0x100000, "", "/lib/a.so", true);
	/* The list cannot be read: nothing is gone by that. */
	n_objects = 0;
	counters.removed++;
	spy_modules_look();
	assert_int_equal(n_scans, 4);
	assert_int_equal(from, session_bytes);
	/* All are gone but one, and then there is no memory for another. */
	take_away(add("/lib/x.so") - objects);
	add("/lib/d.so")->base += 0x700000;
	objects[0].begin += 0x700000;
	objects[0].end += 0x700000;
	spy_modules_look();
	next(0x800000, "", "/lib/d.so", false);
	next(0x200000, "", "/lib/b.so", true);
	next(0x400000, "", "/lib/c.so", true);
	no_memory = true;
	add("/lib/e.so");
	spy_modules_look();
}

/* What lies where another one lay is another one: by its name, its build id, or its size. */
static void test_replaced(void **state)
{
	struct spy_object *object;
	long used;

	(void)state;
	object = add("/lib/a.so");
	object->phdr = headers;
	object->phdr_count = sizeof(headers) / sizeof(*headers);
	object->copy = (const char *)&notes;
	object->copy_bytes = sizeof(notes);
	for (int i = 0; i < 36; i++)
		notes.id.desc[i] = (unsigned char)(0xe0 + i);
	spy_modules_look();
	assert_int_equal(
		next(0x100000, "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3", "/lib/a.so", false)
			->span_pages,
		7);
	used = heap_used;
	object->path = "/lib/b.so";
	counters.added++;
	counters.removed++;
	spy_modules_look();
	next(0x100000, "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3", "/lib/a.so", true);
	next(0x100000, "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3", "/lib/b.so", false);
	assert_int_equal(heap_used, used); /* what it took was given back */
	counters.added++;
	counters.removed++;
	notes.id.head.n_descsz = 36; /* longer than is written: 32 */
	notes.id.desc[0] = 7;
	spy_modules_look();
	next(0x100000, "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3", "/lib/b.so", true);
	next(0x100000, "07e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
	     "/lib/b.so", false);
	assert_int_equal(heap_used, used);
	counters.added++;
	spy_modules_look(); /* the same as before */
	notes.id.head.n_descsz = 20;
	object->phdr_count = 0; /* none has a build id */
	spy_modules_look();
	assert_int_equal(from, session_bytes);
	counters.added++;
	spy_modules_look();
	next(0x100000, "07e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
	     "/lib/b.so", true);
	next(0x100000, "", "/lib/b.so", false);
	counters.added++;
	object->end += 0x1000;
	spy_modules_look();
	next(0x100000, "", "/lib/b.so", true);
	code_bytes += 0x1000;
	next(0x100000, "", "/lib/b.so", false);
	code_bytes -= 0x1000;
}

static void test_paths(void **state)
{
	char self[PATH_MAX] = "", path[PATH_MAX], name[2000], *real;
	ssize_t length;

	(void)state;
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(length > 0);
	real = realpath(".", NULL);
	scratch_write("libx.so.1.2", "", 0);
	assert_int_equal(symlink("libx.so.1.2", "libx.so"), 0);
	add(""); /* the executable */
	add("linux-vdso.so.1");
	add("./libx.so");
	add("./gone.so");
	add(""); /* without a name, but not the executable */
	add("libx.so"); /* a name that is no path */
	spy_modules_look();
	next(0x100000, "", self, false);
	next(0x200000, "", "linux-vdso.so.1", false);
	snprintf(path, sizeof(path), "%s/libx.so.1.2", real);
	next(0x300000, "", path, false);
	next(0x400000, "", "./gone.so", false);
	next(0x500000, "", "", false);
	next(0x600000, "", "libx.so", false);
	assert_int_equal(n_notes, 0);
	/* The runtime's version is in its file's name. */
	snprintf(path, sizeof(path), "%s/libx.so", real);
	add(path)->soname = "libcudart.so.13";
	spy_modules_look();
	next(0x700000, "", path, false);
	snprintf(name, sizeof(name), "runtime %s/libx.so.1.2", real);
	assert_string_equal(note, name);
	add("/nowhere/libcudart.so.12")->soname = "libcudart.so.12";
	add("/nowhere/libcudart_other.so")->soname = "libcudart_static.so";
	spy_modules_look();
	next(0x800000, "", "/nowhere/libcudart.so.12", false);
	next(0x900000, "", "/nowhere/libcudart_other.so", false);
	assert_string_equal(note, "runtime /nowhere/libcudart.so.12");
	assert_int_equal(n_notes, 2);
	/* One that is too long: its end is cut off. */
	memset(name, 'x', sizeof(name));
	name[0] = '/';
	name[sizeof(name) - 1] = '\0';
	add(name);
	spy_modules_look();
	{
		char cut[1024];

		memcpy(cut, name, 1022);
		cut[1022] = '\0';
		next(0xa00000, "", cut, false);
	}
	free(real);
}

/* More than there is room for at once, and when nothing can be written. */
static void test_many(void **state)
{
	(void)state;
	for (int i = 0; i < MOST; i++)
		add("/lib/many.so");
	spy_modules_look();
	assert_int_equal(n_scans, 2);
	for (uintptr_t i = 1; i <= MOST; i++)
		next(0x100000 * i, "", "/lib/many.so", false);
	assert_int_equal(from, session_bytes);
	session_full = true;
	take_away(MOST - 1);
	spy_modules_look();
	session_full = false;
	take_away(MOST - 2);
	spy_modules_look();
	next(0x100000 * (MOST - 1), "", "/lib/many.so", true);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_looks),
		TEST(test_replaced),
		TEST(test_paths),
		TEST(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
