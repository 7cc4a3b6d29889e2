/*
 * tests/unit/test_elf_scan.c: the list of loaded objects, for a thread that has the loader's lock itself: in a callback of
 * dl_iterate_phdr, or in a signal handler that interrupted a dlclose, which has unmapped what the list still names.
 */
/* links: shim/process/elf_scan.c shim/lib/elf_object.c shim/lib/lock.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include "no_guard.h"
#include "process/elf_scan.h"

#define LIBRARY "libresolv.so.2" /* nothing here is linked with it */

struct seen {
	size_t objects;
	bool libc, library;
};

static int visit(const struct spy_object *object, void *data)
{
	struct seen *seen = data;

	seen->objects++;
	seen->libc |= strcmp(object->soname, "libc.so.6") == 0;
	seen->library |= strcmp(object->soname, LIBRARY) == 0;
	return 0;
}

static struct seen all(void)
{
	struct seen seen = {.objects = 0};

	spy_each_object(visit, &seen);
	return seen;
}

static int scan_inside(struct dl_phdr_info *info, size_t size, void *data)
{
	struct seen tried = {.objects = 0};
	struct spy_object_counters counters;

	(void)info;
	(void)size;
	*(struct seen *)data = all();
	spy_try_each_object(visit, &tried);
	assert_int_equal(tried.objects, 0);
	assert_false(spy_count_objects(&counters));
	return 1;
}

static void test_inside_a_walk(void **state)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	struct seen outside = all(), inside;

	(void)state;
	assert_non_null(library);
	assert_true(outside.libc && outside.library);
	dl_iterate_phdr(scan_inside, &inside);
	assert_int_equal(inside.objects, outside.objects);
	assert_true(inside.libc && inside.library);
	dlclose(library);
}

struct hidden {
	struct dl_phdr_info info;
	struct seen seen;
};

static int hide_and_scan(struct dl_phdr_info *info, size_t size, void *data)
{
	struct hidden *hidden = data;

	if (!strstr(info->dlpi_name, LIBRARY))
		return 0;
	hidden->info = *info;
	assert_int_equal(mprotect((void *)info->dlpi_addr, 4096, PROT_NONE), 0);
	return scan_inside(info, size, &hidden->seen);
}

static void test_what_is_unmapped_already(void **state)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	struct seen outside = all();
	struct hidden hidden;

	(void)state;
	assert_int_equal(dl_iterate_phdr(hide_and_scan, &hidden), 1);
	mprotect((void *)hidden.info.dlpi_addr, 4096, PROT_READ);
	assert_int_equal(hidden.seen.objects, outside.objects - 1);
	assert_true(hidden.seen.libc && !hidden.seen.library);
	dlclose(library);
}

static int find_memcpy(const struct spy_object *object, void *data)
{
	if (strcmp(object->soname, "libc.so.6"))
		return 0;
	*(void **)data = spy_object_symbol(object, "memcpy", NULL, NULL);
	return 1;
}

/* Those that came with the program: not what was opened since. */
static void test_first(void **state)
{
	struct seen first = {.objects = 0}, now;
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	(void)state;
	now = all();
	assert_true(spy_each_first_object(visit, &first));
	assert_true(first.libc && !first.library && now.library);
	assert_true(first.objects > 1 && first.objects < now.objects);
	dlclose(library);
}

/* libc's memcpy is a function that says which one to take; that one is its address. */
static void test_chosen_at_run_time(void **state)
{
	void *found = NULL;

	(void)state;
	spy_each_object(find_memcpy, &found);
	assert_non_null(found);
	assert_ptr_equal(found, dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.14"));
}

/* Some libraries have code in several segments (OpenBLAS; what BOLT has laid out anew), in the order of their addresses. */
static void test_two_segments(void **state)
{
	const ElfW(Phdr) headers[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = 0x1000},
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x1000, .p_memsz = 0x800},
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x2000, .p_memsz = 0x5000},
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = 0x8000, .p_memsz = 0x1000}};
	struct spy_object object = {.base = 0x400000, .phdr = headers, .phdr_count = 4};

	(void)state;
	spy_object_read_headers(&object);
	assert_int_equal(object.begin, 0x401000);
	assert_int_equal(object.end, 0x407000);
	object = (struct spy_object){.base = 0x400000, .phdr = headers, .phdr_count = 1};
	spy_object_read_headers(&object);
	assert_int_equal(object.end, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inside_a_walk),
		cmocka_unit_test(test_what_is_unmapped_already),
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_chosen_at_run_time),
		cmocka_unit_test(test_two_segments),
	};

	spy_elf_scan_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
