/*
 * tests/unit/test_analyzer_symbolize.c: addresses of this very program become functions, files and
 * lines, and do not when the file is not the one that ran.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "symbols/symbolize.h"

/* Where this program lies, and its build id. */
struct self {
	struct module module;
	char build_id[128];
	char path[4096];
};

static void find_build_id(struct self *self, const char *notes, size_t size)
{
	const ElfW(Nhdr) * note;
	size_t at = 0, i;

	while (at + sizeof(*note) <= size) {
		note = (const void *)(notes + at);
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4)
			for (i = 0; i < note->n_descsz && i < 32; i++)
				sprintf(self->build_id + 2 * i, "%02x",
					(unsigned char)notes[at + sizeof(*note) + 4 + i]);
		at += sizeof(*note) + ((note->n_namesz + 3u) & ~3u) + ((note->n_descsz + 3u) & ~3u);
	}
}

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	struct self *self = data;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_NOTE)
			find_build_id(self, (const char *)info->dlpi_addr + p->p_vaddr,
				      p->p_filesz);
		if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
			self->module.base = info->dlpi_addr;
			self->module.begin = info->dlpi_addr + p->p_vaddr;
			self->module.end = self->module.begin + p->p_memsz;
		}
	}
	return 1; /* the program itself comes first */
}

static int setup(void **state)
{
	struct self *self = calloc(1, sizeof(*self));

	dl_iterate_phdr(look, self);
	if (readlink("/proc/self/exe", self->path, sizeof(self->path) - 1) < 0)
		return -1;
	self->module.path = self->path;
	self->module.build_id = self->build_id;
	self->module.unloaded_ns = UINT64_MAX;
	*state = self;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* The address it returns to, in its caller. */
static __attribute__((noinline)) uint64_t return_address(void)
{
	return (uint64_t)(uintptr_t)__builtin_return_address(0);
}

enum { LINE_OF_CALL = __LINE__ + 3 };
static __attribute__((noinline)) uint64_t place_to_be_found(void)
{
	volatile uint64_t address = return_address(); /* volatile: no tail call */

	return address;
}

static void test_found(void **state)
{
	struct self *self = *state;
	struct process process = {.modules = &self->module, .n_modules = 1};
	struct symbolizer *symbols = symbolizer_new();
	uint64_t address = place_to_be_found();
	struct place place;
	size_t unread;

	if (!self->build_id[0])
		skip();
	model_place_module(&process, 0);
	symbolize(symbols, &process, address, 0, &place);
	assert_string_equal(place.path, self->path);
	assert_int_equal(place.offset, address - self->module.base);
	assert_non_null(place.function);
	assert_string_equal(place.function, "place_to_be_found");
	assert_non_null(place.file);
	assert_string_equal(strrchr(place.file, '/'), "/test_analyzer_symbolize.c");
	assert_int_equal(place.line, LINE_OF_CALL);
	symbolizer_unread(symbols, &unread);
	assert_int_equal(unread, 0);
	symbolizer_free(symbols);
	places_release(&process.places);
}

/* Rebuilt since: module and offset are all that is sure. */
static void test_other_file(void **state)
{
	struct self *self = *state;
	struct process process = {.modules = &self->module, .n_modules = 1};
	struct symbolizer *symbols = symbolizer_new();
	struct place place;
	size_t i;
	static const char *const paths[] = {"/nonexistent", "/", "/dev/null", "relative"};
	const struct unread_file *files;

	if (self->build_id[0])
		self->build_id[0] = self->build_id[0] == 'f' ? '0' : 'f';
	model_place_module(&process, 0);
	symbolize(symbols, &process, self->module.begin + 1, 0, &place);
	assert_string_equal(place.path, self->path);
	assert_null(place.function);
	assert_null(place.file);
	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		self->module.path = (char *)paths[i];
		symbolize(symbols, &process, self->module.begin + 1, 0, &place);
		assert_string_equal(place.path, paths[i]);
		assert_null(place.function);
	}
	files = symbolizer_unread(symbols, &i);
	assert_int_equal(i, 4);
	assert_string_equal(files[0].path, self->path);
	assert_string_equal(files[0].recorded, self->build_id);
	assert_non_null(files[0].found);
	assert_string_not_equal(files[0].found, self->build_id);
	assert_string_equal(files[1].path, "/nonexistent");
	assert_null(files[1].found);
	assert_string_equal(files[2].found, "");
	assert_string_equal(files[3].found, "");
	symbolizer_free(symbols);
	places_release(&process.places);
}

/* An address may belong to several objects, one after the other. */
static void test_in_time(void **state)
{
	struct module modules[] = {
		{.begin = 100, .end = 200, .unloaded_ns = 50, .path = "/first", .build_id = ""},
		{.begin = 150,
		 .end = 250,
		 .unloaded_ns = UINT64_MAX,
		 .path = "/second",
		 .build_id = ""},
	};
	struct process process = {.modules = modules, .n_modules = 2};

	(void)state;
	model_place_module(&process, 0);
	model_place_module(&process, 1);
	assert_string_equal(model_module(&process, 120, 10)->path, "/first");
	assert_string_equal(model_module(&process, 120, 60)->path, "/first");
	assert_string_equal(model_module(&process, 160, 60)->path, "/second");
	assert_null(model_module(&process, 250, 60));
	assert_null(model_module(&process, 99, 60));
	places_release(&process.places);
}

static void test_demangle(void **state)
{
	struct symbolizer *symbols = symbolizer_new();
	const char *name = demangle(symbols, "_Z6vecaddPfS_i");

	(void)state;
	/* Without libstdc++ on this machine the name stays as it is. */
	if (strcmp(name, "_Z6vecaddPfS_i"))
		assert_string_equal(name, "vecadd(float*, float*, int)");
	assert_string_equal(demangle(symbols, "main"), "main");
	/* the compiler's variants */
	assert_string_equal(demangle(symbols, "work.constprop.0.isra.3"), "work");
	assert_string_equal(demangle(symbols, "_Z6vecaddPfS_i.cold"), name);
	assert_string_equal(demangle(symbols, ".cold"), ".cold");
	assert_null(demangle(symbols, NULL));
	symbolizer_free(symbols);
}

/* A short name is part of many others. */
static void test_kernels(void **state)
{
	static const struct {
		const char *function, *kernel;
		bool same;
	} cases[] = {
		{"k", "void work::k(int)", true},
		{"a", "(anonymous namespace)::a(float*)", true},
		{"scale(int, float*)", "scale(int, float*)", true},
		{"scale", "scale", true},
		{"k<float>", "void k<float>(float*)", true},
		{"run", "void prune::run_all(int)", false},
		{"main", "domain(int)", false},
		{"k", "kk(k)", false},
		{"", "k(int)", false},
		{NULL, "k(int)", false},
		{"k", NULL, false},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(symbolize_is_kernels(cases[i].function, cases[i].kernel),
				 cases[i].same);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_found),    TEST(test_other_file), TEST(test_in_time),
		TEST(test_demangle), TEST(test_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
