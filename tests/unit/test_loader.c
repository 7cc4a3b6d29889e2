/* links: shim/hook/loader.c */
/*
 * tests/unit/test_loader.c: which loaded object an address lies in, and of which layer it is, with a made-up list of them; and
 * what came with the program.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "cudaspy/function_numbers.h"
#include "hook/loader.h"
#include "hook/slots.h"
#include "process/elf_scan.h"

static struct spy_object objects[8];
static size_t n_objects;
static const char *versions[8]; /* those that the objects define */
static int n_asked;

const struct spy_generation spy_generations[3] = {
	{SPY_LAYER_RT11, "libcudart.so.11.0"},
	{SPY_LAYER_RT12, "libcudart.so.12"},
	{SPY_LAYER_RT13, "libcudart.so.13"},
};

bool spy_slots_is_runtime(int fn)
{
	return fn == SPY_FN_cudaMalloc;
}

int spy_each_object(int (*visit)(const struct spy_object *object, void *data), void *data)
{
	int result = 0;

	for (size_t i = 0; i < n_objects && !result; i++)
		result = visit(&objects[i], data);
	return result;
}

bool spy_object_has_version(const struct spy_object *object, const char *version)
{
	const char *defined = versions[object - objects];

	return defined && strstr(defined, version);
}

void *spy_next_symbol(const char *name)
{
	static const char *const names[] = {"dlsym", "dlvsym", "dlopen", "dlmopen", "dlclose"};

	n_asked++;
	for (uintptr_t i = 0; i < 5; i++)
		if (strcmp(name, names[i]) == 0)
			return (void *)(i + 1);
	return NULL;
}

static struct spy_object *add(const char *path, const char *soname, const char *version)
{
	struct spy_object *object = &objects[n_objects];

	versions[n_objects] = version;
	*object = (struct spy_object){.path = path,
				      .soname = soname,
				      .begin = 0x1000 * (n_objects + 1),
				      .end = 0x1000 * (n_objects + 1) + 0x800,
				      .position = n_objects};
	n_objects++;
	return object;
}

static void test_startup(void **state)
{
	(void)state;
	n_objects = 0;
	add("", "", NULL);
	add("/a.so", "a.so", NULL);
	add("/libcudaspy.so", "", NULL)->is_self = true;
	add("/b.so", "b.so", NULL);
	spy_loader_init();
	assert_int_equal(spy_loader_startup, 4);
	assert_int_equal(spy_loader_self, 2);
	assert_int_equal((uintptr_t)spy_real_dlsym, 1);
	assert_int_equal((uintptr_t)spy_real_dlvsym, 2);
	assert_int_equal((uintptr_t)spy_real_dlopen, 3);
	assert_int_equal((uintptr_t)spy_real_dlmopen, 4);
	assert_int_equal((uintptr_t)spy_real_dlclose, 5);
	assert_int_equal(n_asked, 5);
	spy_loader_init(); /* they have been found */
	assert_int_equal(n_asked, 5);
}

static void expect_at(uintptr_t address, int fn, long position, int layer, const char *path)
{
	struct spy_place at = spy_loader_at((void *)address, fn);

	assert_int_equal(at.address, address);
	assert_int_equal(at.fn, fn);
	assert_int_equal(at.found, position >= 0);
	assert_int_equal(at.position, position >= 0 ? position : 0);
	assert_int_equal(at.layer, layer);
	assert_string_equal(at.path, path);
}

static void test_layers(void **state)
{
	const int driver = SPY_FN_cuInit, runtime = SPY_FN_cudaMalloc;
	char path[300], end[256];

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	path[0] = '/';
	path[44] = 'q'; /* the first one of those that are kept */
	path[sizeof(path) - 1] = '\0';
	strcpy(end, path + 44);
	n_objects = 0;
	add("", "", NULL);
	add("/x/libcuda.so.1", "libcuda.so.1", NULL);
	add("/x/libcudart.so.12", "libcudart.so.12", "libcudart.so.12");
	add("/x/libcudart.so.13", "libcudart.so.13", "libcudart.so.13");
	add("/x/libcudart.so.11.0", "any", "libcudart.so.11.0");
	add(path, "libcuda", "libcuda.so");
	add("/x/both", "both", "libcudart.so.12 libcudart.so.13");
	expect_at(0x0fff, driver, -1, -1, "");
	expect_at(0x1000, driver, 0, -1, "");
	expect_at(0x17ff, runtime, 0, -1, "");
	expect_at(0x1800, driver, -1, -1, "");
	expect_at(0x2000, driver, 1, SPY_LAYER_DRIVER, "/x/libcuda.so.1");
	expect_at(0x2000, runtime, 1, -1, "/x/libcuda.so.1");
	expect_at(0x3000, runtime, 2, SPY_LAYER_RT12, "/x/libcudart.so.12");
	expect_at(0x3000, driver, 2, -1, "/x/libcudart.so.12");
	expect_at(0x4123, runtime, 3, SPY_LAYER_RT13, "/x/libcudart.so.13");
	expect_at(0x5000, runtime, 4, SPY_LAYER_RT11, "/x/libcudart.so.11.0");
	expect_at(0x6000, driver, 5, -1, end); /* it is called nearly so */
	expect_at(0x7000, runtime, 6, SPY_LAYER_RT13, "/x/both"); /* the newest one */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_startup),
		cmocka_unit_test(test_layers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
