/* links: shim/hook/resolve.c */
/*
 * tests/unit/test_resolve.c: which of several objects' functions a call would have reached without the recorder, as the
 * dynamic linker binds it, and what a slot keeps of that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "cudaspy/function_numbers.h"
#include "hook/loader.h"
#include "hook/resolve.h"
#include "process/elf_scan.h"
#include "process/own_stack.h"
#include "state/session.h"

#define FN 5

/* ---- the rest of the shim ---- */

struct spy_slot spy_slots[SPY_SLOTS];
const char *const spy_names[SPY_FN_COUNT] = {[FN] = "cudaFree"};
struct spy_session *spy_session;
size_t spy_loader_startup;

/* An object that has the function: in that version of it, or in none ("any"). */
struct known {
	const char *version; /* NULL: has it not */
	int layer;
	struct spy_object object;
};

static struct known objects[8];
static size_t n_objects;
static int n_prepared, n_on_own_stack;
static struct spy_slot *foreign_slot;
static bool foreign, too_many_first;
static void *faster; /* what another thread puts into the slot meanwhile */

int spy_each_object(int (*visit)(const struct spy_object *object, void *data), void *data)
{
	for (size_t i = 0; i < n_objects; i++) {
		int stop = visit(&objects[i].object, data);

		if (stop)
			return stop;
	}
	return 0;
}

bool spy_each_first_object(int (*visit)(const struct spy_object *object, void *data), void *data)
{
	if (too_many_first)
		return false;
	for (size_t i = 0; i < spy_loader_startup && !visit(&objects[i].object, data); i++)
		;
	return true;
}

/* The address of the i-th object's. */
static void *at(size_t i)
{
	return (void *)(0x1000 * (i + 1));
}

void *spy_object_symbol(const struct spy_object *object, const char *name, const char *version,
			bool *versioned)
{
	size_t i = object->position;

	assert_string_equal(name, "cudaFree");
	if (!objects[i].version)
		return NULL;
	if (version)
		return strcmp(version, objects[i].version) ? NULL : at(i);
	if (versioned)
		*versioned = strcmp(objects[i].version, "any") != 0;
	return at(i);
}

int spy_loader_layer(const struct spy_object *object, int fn)
{
	assert_int_equal(fn, FN);
	return objects[object->position].layer;
}

void spy_slots_prepare(struct spy_slot *slot)
{
	n_prepared++;
	if (faster)
		slot->real = faster;
}

void spy_slots_set_foreign(struct spy_slot *slot, bool is_foreign)
{
	foreign_slot = slot;
	foreign = is_foreign;
}

bool spy_lock_slowly(struct spy_lock *lock)
{
	(void)lock;
	return false;
}

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	n_on_own_stack++;
	work(data);
}

/* ---- objects --------------------------------------------------------------------------------- */

static struct spy_session session;

static int begin(void **state)
{
	(void)state;
	memset(objects, 0, sizeof(objects));
	memset(spy_slots, 0, sizeof(spy_slots));
	memset(&session.wrap_lock, 0, sizeof(session.wrap_lock));
	spy_session = &session;
	n_objects = 0;
	n_prepared = n_on_own_stack = 0;
	foreign_slot = NULL;
	faster = NULL;
	spy_loader_startup = 4; /* objects 0 to 3 came with the program */
	return 0;
}

static void add(const char *version, int layer)
{
	objects[n_objects] = (struct known){.version = version, .layer = layer};
	objects[n_objects].object.position = n_objects;
	n_objects++;
}

static void add_self(void)
{
	add("13", SPY_LAYER_RT);
	objects[n_objects - 1].object.is_self = true;
}

/* Which object is found for that version, in that layer; -1: none. */
static int found(const char *version, int *layer)
{
	void *real = spy_resolve_find(FN, version, layer);

	return real ? (int)((uintptr_t)real / 0x1000) - 1 : -1;
}

/* Nothing but the recorder has it. */
static void test_none(void **state)
{
	int layer = 77;

	(void)state;
	assert_int_equal(found("13", &layer), -1);
	add(NULL, SPY_LAYER_DRIVER);
	add_self();
	add(NULL, SPY_LAYER_DRIVER);
	assert_int_equal(found("13", &layer), -1);
	assert_int_equal(layer, 77);
}

/* The next object that came with the program, in our version or in none. */
static void test_next(void **state)
{
	int layer;

	(void)state;
	add("13", 10); /* before the recorder: the program would not have got it */
	add_self();
	add("12", 12);
	add("any", -1); /* an interposer */
	add("13", SPY_LAYER_RT13);
	assert_int_equal(found("13", &layer), 3);
	assert_int_equal(layer, -1);
	objects[3].version = NULL;
	spy_loader_startup = 5;
	assert_int_equal(found("13", &layer), 4);
	assert_int_equal(layer, SPY_LAYER_RT13);
	assert_int_equal(found("12", &layer), 2);
	assert_int_equal(layer, 12);
	/* Of the driver, any version is. */
	assert_int_equal(found(NULL, &layer), 2);
}

/* What was opened later: our version, before another generation, before whatever else has the name. */
static void test_later(void **state)
{
	int layer;

	(void)state;
	spy_loader_startup = 2;
	add("other", -1);
	add_self();
	add("any", -1);
	add("12", SPY_LAYER_RT12);
	add("11", SPY_LAYER_RT11);
	add("13", SPY_LAYER_RT13);
	add("13", SPY_LAYER_RT);
	assert_int_equal(found("13", &layer), 5); /* the first of two */
	assert_int_equal(layer, SPY_LAYER_RT13);
	assert_int_equal(found("11", &layer), 4);
	objects[5].version = objects[6].version = NULL;
	assert_int_equal(found("13", &layer), 3); /* the newest other one */
	assert_int_equal(layer, SPY_LAYER_RT12);
	objects[3].version = objects[4].version = NULL;
	assert_int_equal(found("13", &layer), 0); /* the first of two */
	assert_int_equal(layer, -1);
	objects[0].version = NULL;
	assert_int_equal(found("13", &layer), 2);
	/* The newest comes last. */
	begin(NULL);
	spy_loader_startup = 1;
	add_self();
	add("11", SPY_LAYER_RT11);
	add("12", SPY_LAYER_RT12);
	assert_int_equal(found("13", &layer), 2);
	assert_int_equal(layer, SPY_LAYER_RT12);
}

/* The driver's functions: libcuda's before those that others export. */
static void test_driver(void **state)
{
	int layer = 77;

	(void)state;
	spy_loader_startup = 1;
	add_self();
	add("any", -1);
	add("any", SPY_LAYER_DRIVER);
	add("any", SPY_LAYER_DRIVER);
	assert_int_equal(found(NULL, &layer), 2);
	assert_int_equal(layer, SPY_LAYER_DRIVER);
	objects[2].version = objects[3].version = NULL;
	assert_int_equal(found(NULL, &layer), 1);
	assert_int_equal(layer, -1);
	spy_loader_startup = 4;
	objects[2].version = "any";
	assert_int_equal(found(NULL, &layer), 1); /* an interposer that came with the program */
	assert_int_equal(layer, -1);
}

/* Does the loader bind calls to another interposer? What was opened later does not count. */
static void test_elsewhere(void **state)
{
	(void)state;
	spy_loader_startup = 3;
	add_self();
	add(NULL, -1);
	add("any", -1);
	add("13", SPY_LAYER_RT13);
	assert_true(spy_resolve_bound_elsewhere(FN, "13", at(3)));
	assert_false(spy_resolve_bound_elsewhere(FN, "13", at(2)));
	objects[2].version = NULL;
	assert_false(spy_resolve_bound_elsewhere(FN, "13", at(3)));
	assert_false(spy_resolve_bound_elsewhere(FN, "13", at(7)));
	objects[2].version = "12";
	assert_false(spy_resolve_bound_elsewhere(FN, "13", at(3)));
	too_many_first = true; /* to be kept: all are scanned */
	assert_false(spy_resolve_bound_elsewhere(FN, "13", at(3)));
	objects[2].version = "any";
	assert_true(spy_resolve_bound_elsewhere(FN, "13", at(3)));
	too_many_first = false;
}

/* ---- what a slot keeps ------------------------------------------------------------------------ */

static void test_keep(void **state)
{
	struct spy_slot *slot = &spy_slots[1];

	(void)state;
	slot->layer = SPY_LAYER_RT11;
	assert_ptr_equal(spy_resolve_keep(slot, at(1), SPY_LAYER_RT13), at(1));
	assert_ptr_equal(slot->real, at(1));
	assert_int_equal(slot->layer, SPY_LAYER_RT13);
	assert_ptr_equal(foreign_slot, slot);
	assert_false(foreign);
	assert_int_equal(n_prepared, 1);
	assert_int_equal(session.wrap_lock.owner, 0);
	/* It stays. */
	assert_ptr_equal(spy_resolve_keep(slot, at(2), SPY_LAYER_RT12), at(1));
	assert_ptr_equal(slot->real, at(1));
	assert_int_equal(slot->layer, SPY_LAYER_RT13);
	/* The driver's layer is 0; an interposer's is that of what lies below it. */
	slot = &spy_slots[2];
	slot->layer = SPY_LAYER_RT11;
	assert_ptr_equal(spy_resolve_keep(slot, at(3), SPY_LAYER_DRIVER), at(3));
	assert_int_equal(slot->layer, SPY_LAYER_DRIVER);
	slot = &spy_slots[3];
	slot->layer = SPY_LAYER_RT12;
	assert_ptr_equal(spy_resolve_keep(slot, at(4), -1), at(4));
	assert_int_equal(slot->layer, SPY_LAYER_RT12);
	assert_ptr_equal(foreign_slot, slot);
	assert_true(foreign);
	/* There is none; another thread was faster; the lock was not to be had. */
	slot = &spy_slots[4];
	foreign_slot = NULL;
	assert_null(spy_resolve_keep(slot, NULL, SPY_LAYER_RT13));
	assert_null(slot->real);
	assert_null(foreign_slot);
	faster = at(6);
	assert_ptr_equal(spy_resolve_keep(slot, at(5), SPY_LAYER_RT13), at(6));
	assert_int_equal(slot->layer, 0);
	faster = NULL;
	slot = &spy_slots[5];
	session.wrap_lock.owner = 1;
	assert_ptr_equal(spy_resolve_keep(slot, at(5), SPY_LAYER_RT13), at(5));
	assert_null(slot->real);
	assert_int_equal(session.wrap_lock.owner, 1);
}

static void test_driver_function(void **state)
{
	(void)state;
	spy_slots[FN * 3].fn = FN;
	add_self();
	assert_null(spy_resolve_driver(FN));
	assert_null(spy_slots[FN * 3].real);
	add("any", SPY_LAYER_DRIVER);
	assert_ptr_equal(spy_resolve_driver(FN), at(1));
	assert_ptr_equal(spy_slots[FN * 3].real, at(1));
	assert_int_equal(n_on_own_stack, 2);
	assert_ptr_equal(spy_resolve_driver(FN), at(1));
	assert_int_equal(n_on_own_stack, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(test_none),
		TEST(test_next),
		TEST(test_later),
		TEST(test_driver),
		TEST(test_elsewhere),
		TEST(test_keep),
		TEST(test_driver_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
