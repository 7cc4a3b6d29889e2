/* links: shim/entry/libraries.c */
/*
 * tests/unit/test_libraries.c: what is looked at before and after a library is closed, by what the loader counts, and what is
 * noted of libraries whose calls cannot be seen.
 */
#include <dlfcn.h>
#include <stdio.h>
#include "describe/describe.h"
#include "entry/lifecycle.h"
#include "hook/loader.h"
#include "hook/wrap.h"
#include "no_guard.h"
#include "process/elf_scan.h"
#include "process/own_stack.h"
#include "record/notes.h"
#include "stack/python.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

void spy_peek_dlopen(const char *file, int mode);
void spy_peek_dlmopen(Lmid_t space, const char *file, int mode);

/* ---- the rest of the shim, and the loader ---- */

int (*spy_real_dlclose)(void *handle);
static struct spy_python python;
static bool has_python, loader_busy, busy_afterwards;
static unsigned long long added, removed;
static int unloads; /* by the next dlclose */
static int loads; /* … by destructors that it runs */
static char done[200], note[300];
static int on_own_stack;

static void add(const char *what)
{
	strcat(strcat(done, what), " ");
}

void spy_lifecycle_init(void)
{
	add("init");
}

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	on_own_stack++;
	work(data);
	on_own_stack--;
}

void spy_modules_look(void)
{
	assert_int_equal(on_own_stack, 1);
	add("look");
}

bool spy_count_objects(struct spy_object_counters *counters)
{
	if (loader_busy)
		return false;
	*counters = (struct spy_object_counters){added, removed};
	return true;
}

const struct spy_python *spy_python_unload_begin(uint32_t *turn)
{
	add("begin");
	*turn = 17;
	return has_python ? &python : NULL;
}

void spy_python_unload_end(const struct spy_python *still, uint32_t turn)
{
	assert_int_equal(turn, 17);
	assert_true(!still || still == &python);
	add(still ? "end_with" : "end_without");
}

void spy_wrap_forget_unloaded(void *unused)
{
	assert_null(unused);
	assert_int_equal(on_own_stack, 1);
	add("forget");
}

void spy_note(enum spy_note what, const char *format, ...)
{
	va_list args;

	assert_int_equal(what, SPY_NOTE_BLIND);
	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
}

static int real_dlclose(void *handle)
{
	assert_int_equal((uintptr_t)handle, 0x77);
	add("close");
	removed += (unsigned int)unloads;
	added += (unsigned int)loads;
	loader_busy |= busy_afterwards;
	return 5;
}

static int begin(void **state)
{
	(void)state;
	begin_session();
	spy_real_dlclose = real_dlclose;
	has_python = loader_busy = busy_afterwards = false;
	added = 20;
	removed = 3;
	unloads = loads = 0;
	done[0] = note[0] = '\0';
	return 0;
}

/* What a dlclose does, and whether Python is to be looked for. */
static void expect_close(const char *what, bool forgotten)
{
	done[0] = '\0';
	session.python_forgotten = false;
	assert_int_equal(dlclose((void *)0x77), 5);
	assert_string_equal(done, what);
	assert_int_equal(session.python_forgotten, forgotten);
}

static void test_closed(void **state)
{
	(void)state;
	expect_close("init look begin close end_without ", false); /* others have it open */
	has_python = true;
	loads = 1;
	expect_close("init look begin close end_with ", false);
	unloads = 2;
	expect_close("init look begin close end_without forget look ", true);
	has_python = false;
	expect_close("init look begin close end_without forget ", false);
	session.state = SPY_SESSION_NONE; /* nothing to look at for */
	expect_close("init begin close end_without forget ", false);
}

/* Whether something is gone is unknown: so it may be. */
static void test_busy(void **state)
{
	has_python = true;
	busy_afterwards = true;
	expect_close("init look begin close end_without forget look ", true);
	expect_close("init look begin close end_without forget look ", true);
	begin(state);
	loader_busy = true;
	expect_close("init look begin close end_without forget ", false);
}

static void test_opened(void **state)
{
	(void)state;
	spy_peek_dlopen("a.so", RTLD_NOW | RTLD_GLOBAL);
	spy_peek_dlopen(NULL, RTLD_NOW | RTLD_DEEPBIND);
	spy_peek_dlmopen(LM_ID_BASE, "a.so", RTLD_NOW | RTLD_DEEPBIND);
	spy_peek_dlmopen(LM_ID_NEWLM, NULL, RTLD_NOW);
	assert_string_equal(note, "");
	assert_string_equal(done, "init init init init ");
	spy_peek_dlopen("b.so", RTLD_LAZY | RTLD_DEEPBIND);
	assert_non_null(strstr(note, "b.so was opened with RTLD_DEEPBIND"));
	spy_peek_dlmopen(LM_ID_NEWLM, "c.so", RTLD_NOW);
	assert_non_null(strstr(note, "c.so was opened in a link-map namespace"));
	spy_peek_dlmopen(2, "d.so", RTLD_NOW);
	assert_non_null(strstr(note, "d.so was opened in a link-map namespace"));
}

#define TEST(function) cmocka_unit_test_setup(function, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_closed),
		TEST(test_busy),
		TEST(test_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
