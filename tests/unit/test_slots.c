/* links: shim/hook/slots.c shim/hook/wrap.c shim/process/heap.c */
/*
 * tests/unit/test_slots.c: the table of slots, its counters and what the user's selection changes; and which stub is handed
 * out for a real function: its own, a spare one for a second copy, none.
 */
#include <stdio.h>
#include "hook/resolve.h"
#include "hook/slots.h"
#include "hook/wrap.h"
#include "process/elf_scan.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/notes.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

/* ---- the rest of the shim ---- */

struct spy_options spy_options;
static char code[SPY_SLOTS]; /* of the stubs */
static void *stub_of[SPY_SLOTS];

/* As trampoline.S has it. */
static const struct {
	void *const *of_slot;
	const char *begin, *end;
} at __attribute__((section("spy_stubs_at"), used)) = {stub_of, code, code + sizeof(code)};

static struct spy_slot pristine[SPY_SLOTS];
static bool elsewhere;
static char note[256];
static struct spy_object objects[2];
static int n_objects, n_scans;
static enum spy_fn exported_as; /* the function that the driver has at each address */

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	work(data);
}

bool spy_resolve_bound_elsewhere(int fn, const char *version, const void *real)
{
	(void)real;
	assert_int_equal(version != NULL, spy_slots_is_runtime(fn));
	return elsewhere;
}

void spy_note(enum spy_note what, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
	assert_true(what == SPY_NOTE_BLIND || what == SPY_NOTE_UNKNOWN);
}

int spy_each_object(int (*visit)(const struct spy_object *object, void *data), void *data)
{
	n_scans++;
	for (int i = 0; i < n_objects; i++)
		if (visit(&objects[i], data))
			return 1;
	return 0;
}

/* The driver: 16 bytes for each function; two names for the one that is asked for otherwise. */
void *spy_object_symbol(const struct spy_object *object, const char *name, const char *version,
			bool *versioned)
{
	int fn = spy_slots_find(name);

	(void)version;
	(void)versioned;
	assert_true(fn >= SPY_RUNTIME_ROWS);
	if (fn == SPY_FN_cuMemAlloc)
		fn = exported_as;
	return (void *)(object->begin + 16 * (uintptr_t)fn);
}

static void *driver(int fn)
{
	return (void *)(objects[0].begin + 16 * (uintptr_t)fn);
}

static int begin(void **state)
{
	static bool kept;

	(void)state;
	begin_session();
	if (!kept)
		memcpy(pristine, spy_slots, sizeof(pristine));
	kept = true;
	memcpy(spy_slots, pristine, sizeof(pristine));
	for (size_t i = 0; i < SPY_SLOTS; i++)
		stub_of[i] = i >= SPY_FN_COUNT * 3 || spy_slots_exist(i) ? &code[i] : NULL;
	spy_options = (struct spy_options){0};
	elsewhere = false;
	note[0] = '\0';
	objects[0] = (struct spy_object){
		.path = "libcuda.so.1", .begin = 0x100000, .end = 0x100000 + 16 * SPY_FN_COUNT};
	objects[1] = (struct spy_object){.path = "other", .begin = 0x900000, .end = 0x910000};
	n_objects = 2;
	n_scans = 0;
	exported_as = SPY_FN_cuMemAlloc;
	spy_wrap_forget_unloaded(NULL);
	return 0;
}

/* ---- the table ---- */

static void test_names(void **state)
{
	(void)state;
	for (int fn = 0; fn < SPY_FN_COUNT; fn++) {
		uint32_t any = spy_slots_any(fn);

		assert_int_equal(spy_slots_find(spy_names[fn]), fn);
		assert_int_equal(any / 3, fn);
		assert_true(spy_slots_exist(any));
		assert_int_equal(spy_slots[any].fn, fn);
		assert_int_equal(spy_slots_is_runtime(fn),
				 strncmp(spy_names[fn], "cuda", 4) == 0 ||
					 strncmp(spy_names[fn], "__cuda", 6) == 0);
	}
	assert_int_equal(spy_slots_find("cudaMallocX"), -1);
	assert_int_equal(spy_slots_find("cuInitX"), -1);
	assert_int_equal(spy_slots_find(""), -1);
	assert_int_equal(spy_slots_find("zz"), -1);
}

static void test_generations(void **state)
{
	uint32_t slot = (uint32_t)SPY_FN_cudaMalloc * 3;

	(void)state;
	assert_int_equal(spy_slots_of_layer(SPY_FN_cudaMalloc, SPY_LAYER_RT11), slot);
	assert_int_equal(spy_slots_of_layer(SPY_FN_cudaMalloc, SPY_LAYER_RT12), slot + 1);
	assert_int_equal(spy_slots_of_layer(SPY_FN_cudaMalloc, SPY_LAYER_RT13), slot + 2);
	assert_int_equal(spy_slots_of_layer(SPY_FN_cudaMalloc, SPY_LAYER_DRIVER), slot);
	assert_int_equal(spy_slots_of_layer(SPY_FN_cuInit, SPY_LAYER_RT13), SPY_FN_cuInit * 3);
	assert_string_equal(spy_slots_version(slot, SPY_FN_cudaMalloc), "libcudart.so.11.0");
	assert_string_equal(spy_slots_version(slot + 2, SPY_FN_cudaMalloc), "libcudart.so.13");
	assert_null(spy_slots_version(SPY_FN_cuInit * 3, SPY_FN_cuInit));
	assert_null(spy_slots_version(SPY_FN_COUNT * 3, SPY_FN_cudaMalloc)); /* a spare one */
	/* What takes a structure of EGL's by value has more on the stack. */
	spy_slots_init();
	for (size_t i = 0; i < SPY_FN_COUNT * 3; i++)
		if (spy_slots_exist(i))
			assert_int_equal(spy_slots[i].window,
					 strstr(spy_names[spy_slots[i].fn], "EGL") ? SPY_WINDOW_EGL
										   : SPY_WINDOW);
}

/* ---- counters ---- */

/* The session's board lists each counter once, with its function. */
static void test_counters(void **state)
{
	int listed = 0;

	(void)state;
	memset(board.counter_fn, 0xff, sizeof(board.counter_fn));
	spy_slots_first_records();
	for (size_t i = 0; i < SPY_FN_COUNT * 3; i++) {
		const struct spy_slot *slot = &spy_slots[i];

		if (!spy_slots_exist(i) || slot->counter == SPY_COUNTER_NONE)
			continue;
		assert_true(slot->record == SPY_COUNTED || slot->record == SPY_INSTANT);
		assert_int_equal(board.counter_fn[slot->counter], slot->fn);
	}
	for (int i = 0; i < SPY_BOARD_COUNTERS; i++)
		listed += board.counter_fn[i] != 0xffff;
	assert_true(listed > 50 && listed < SPY_BOARD_COUNTERS);
	/* Others get one when they are first counted; the same for ever. */
	spy_slots_count(SPY_FN_cudaMalloc);
	for (uint32_t g = 0; g < 3; g++) {
		struct spy_slot *slot = &spy_slots[SPY_FN_cudaMalloc * 3 + g];
		uint16_t counter;

		assert_int_equal(slot->record, SPY_COUNTED);
		assert_int_equal(slot->counter, SPY_COUNTER_NONE);
		spy_slots_prepare(slot);
		counter = slot->counter;
		assert_true(counter >= listed && counter < SPY_BOARD_COUNTERS);
		assert_int_equal(board.counter_fn[counter], SPY_FN_cudaMalloc);
		spy_slots_prepare(slot);
		assert_int_equal(slot->counter, counter);
		assert_int_equal(slot->record, SPY_COUNTED);
	}
	/* When there is none left, it is traced after all. */
	while (spy_slots_number(&(struct spy_slot){
		       .fn = SPY_FN_cuInit, .counter = SPY_COUNTER_NONE}) != SPY_COUNTER_NONE)
		;
	spy_slots_count(SPY_FN_cudaFree);
	spy_slots_prepare(&spy_slots[spy_slots_any(SPY_FN_cudaFree)]);
	assert_int_equal(spy_slots[spy_slots_any(SPY_FN_cudaFree)].record, SPY_TRACED);
	assert_int_equal(board.counter_fn[SPY_BOARD_COUNTERS - 1], SPY_FN_cuInit);
}

/* So many of a function's calls are timed; more where they prove long. */
static void test_timed(void **state)
{
	struct spy_slot slot = {.fn = SPY_FN_cudaGetDevice};
	uint8_t *timed = &spy_slots_timed[slot.fn];

	(void)state;
	spy_slots_begin(FREQUENCY); /* two microseconds are worth a record */
	assert_int_equal(*timed, SPY_TIMED_LEAST);
	assert_false(spy_slots_took(&slot, 1999));
	assert_int_equal(*timed, SPY_TIMED_LEAST);
	for (int i = 2; i <= SPY_TIMED_AMONG / SPY_TIMED_LEAST + 2; i++) {
		assert_true(spy_slots_took(&slot, 2000));
		assert_int_equal(*timed, i * SPY_TIMED_LEAST < SPY_TIMED_AMONG ? i * SPY_TIMED_LEAST
									       : SPY_TIMED_AMONG);
	}
	assert_false(spy_slots_took(&slot, 0));
	assert_int_equal(*timed, SPY_TIMED_AMONG - 1);
	assert_true(spy_slots_took(&slot, 2000)); /* not beyond all of them */
	assert_int_equal(*timed, SPY_TIMED_AMONG - 1);
	spy_slots_count(slot.fn); /* the user wants it counted */
	assert_int_equal(*timed, 0);
	spy_options.nogetters = "1";
	spy_slots_begin(FREQUENCY);
	for (int fn = 0; fn < SPY_FN_COUNT; fn++)
		assert_int_equal(spy_slots_timed[fn], 0);
	memset(spy_slots_timed, SPY_TIMED_LEAST, sizeof(spy_slots_timed));
}

/* ---- selection ---- */

static void test_selection(void **state)
{
	struct spy_slot *nested = &spy_slots[SPY_FN_cuMemcpyAsync * 3];

	(void)state;
	assert_true(nested->count_when_nested);
	spy_slots_trace(SPY_FN_cuMemcpyAsync);
	assert_false(nested->count_when_nested);
	assert_int_equal(nested->elide_from, SPY_DETAIL_NEVER);
	assert_int_equal(nested->record, SPY_TRACED);
	spy_slots_trace(SPY_FN_cuGetExportTable); /* transparent for ever */
	spy_slots_count(SPY_FN_cuGetExportTable);
	assert_int_equal(spy_slots[SPY_FN_cuGetExportTable * 3].record, SPY_TRANSPARENT);
	spy_slots_trace(SPY_FN_cudaGetDevice);
	assert_int_equal(spy_slots[spy_slots_any(SPY_FN_cudaGetDevice)].record, SPY_TRACED);
	/* Another interposer's may allocate what it was not asked for. */
	for (int foreign = 0; foreign < 2; foreign++)
		for (uint8_t level = SPY_DETAIL_TIME; level <= SPY_DETAIL_NEVER; level++) {
			struct spy_slot slot = {.elide_from = level};

			spy_slots_set_foreign(&slot, foreign);
			assert_int_equal(slot.foreign, foreign);
			assert_int_equal(slot.elide_from, foreign && level == SPY_DETAIL_ALL
								  ? SPY_DETAIL_NEVER
								  : level);
		}
	spy_slots_disable();
	for (size_t i = 0; i < SPY_SLOTS; i++)
		assert_int_equal(spy_slots[i].record + spy_slots[i].inspector + spy_slots[i].keeps,
				 SPY_TRANSPARENT);
}

/* ---- stubs ---- */

static size_t slot_of(const void *stub)
{
	assert_true(spy_wrap_is_stub(stub));
	return (size_t)((const char *)stub - code);
}

static void test_is_stub(void **state)
{
	(void)state;
	assert_true(spy_wrap_is_stub(code));
	assert_true(spy_wrap_is_stub(code + sizeof(code) - 1));
	assert_false(spy_wrap_is_stub(code - 1));
	assert_false(spy_wrap_is_stub(code + sizeof(code)));
}

/* The first one takes the slot; the same function again has the same stub; a second copy a spare one. */
static void test_copies(void **state)
{
	static char real[4];
	uint32_t slot = (uint32_t)SPY_FN_cudaMalloc * 3 + 1;
	size_t spare;

	(void)state;
	assert_int_equal(slot_of(spy_wrap_stub_for(SPY_FN_cudaMalloc, SPY_LAYER_RT12, &real[0])),
			 slot);
	assert_ptr_equal(spy_slots[slot].real, &real[0]);
	assert_int_equal(slot_of(spy_wrap_stub_for(SPY_FN_cudaMalloc, SPY_LAYER_RT12, &real[0])),
			 slot);
	spare = slot_of(spy_wrap_stub_for(SPY_FN_cudaMalloc, SPY_LAYER_RT12, &real[1]));
	assert_true(spare >= SPY_FN_COUNT * 3);
	assert_ptr_equal(spy_slots[spare].real, &real[1]);
	assert_int_equal(spy_slots[spare].fn, SPY_FN_cudaMalloc);
	assert_int_equal(spy_slots[spare].layer, SPY_LAYER_RT12);
	assert_int_equal(spy_slots[spare].inspector, spy_slots[slot].inspector);
	assert_false(spy_slots[spare].foreign);
	assert_int_equal(slot_of(spy_wrap_stub_for(SPY_FN_cudaMalloc, SPY_LAYER_RT12, &real[1])),
			 spare);
	assert_ptr_equal(spy_slots[slot].real, &real[0]);
	/* One that is no library of CUDA's; another function at the same address. */
	spare = slot_of(spy_wrap_stub_for(SPY_FN_cudaMalloc, -1, &real[2]));
	assert_true(spare >= SPY_FN_COUNT * 3 && spy_slots[spare].foreign);
	assert_int_equal(spy_slots[spare].layer, SPY_LAYER_RT);
	assert_int_not_equal(slot_of(spy_wrap_stub_for(SPY_FN_cudaFree, -1, &real[2])), spare);
	/* What the loader binds elsewhere does not take the slot. */
	elsewhere = true;
	assert_true(slot_of(spy_wrap_stub_for(SPY_FN_cudaHostAlloc, SPY_LAYER_RT12, &real[3])) >=
		    SPY_FN_COUNT * 3);
	assert_null(spy_slots[SPY_FN_cudaHostAlloc * 3 + 1].real);
}

/* So many second copies, and those whose library was unloaded make room; then the real function is handed out. */
static void test_spares(void **state)
{
	static char real[SPY_SPARE_STUBS + 3];
	size_t last = 0;

	(void)state;
	spy_slots[SPY_FN_cuInit * 3].real = real;
	for (int i = 1; i <= SPY_SPARE_STUBS; i++)
		last = slot_of(spy_wrap_stub_for(SPY_FN_cuInit, SPY_LAYER_DRIVER, &real[i]));
	assert_true(last >= SPY_FN_COUNT * 3);
	assert_int_equal(board.spare_stubs, SPY_SPARE_STUBS);
	assert_string_equal(note, "");
	assert_ptr_equal(
		spy_wrap_stub_for(SPY_FN_cuInit, SPY_LAYER_DRIVER, &real[SPY_SPARE_STUBS + 1]),
		&real[SPY_SPARE_STUBS + 1]);
	assert_memory_equal(note, "more second copies of CUDA functions than ", 42);
	spy_slots[last].real = NULL;
	assert_int_equal(slot_of(spy_wrap_stub_for(SPY_FN_cuInit, SPY_LAYER_DRIVER,
						   &real[SPY_SPARE_STUBS + 2])),
			 last);
	assert_int_equal(board.spare_stubs, SPY_SPARE_STUBS);
}

/* A function that lacks the generation of the library that has it. */
static void test_other_generation(void **state)
{
	static char real;
	int fn = 0;
	size_t slot;

	(void)state;
	while (spy_slots_exist((size_t)fn * 3) || !spy_slots_is_runtime(fn)) /* not in 11.0 */
		fn++;
	slot = slot_of(spy_wrap_stub_for(fn, SPY_LAYER_RT11, &real));
	assert_true(slot >= SPY_FN_COUNT * 3);
	assert_int_equal(spy_slots[slot].fn, fn);
	assert_int_equal(spy_slots[slot].layer, SPY_LAYER_RT11);
}

/* ---- functions of the driver ---- */

static void test_driver(void **state)
{
	void *alloc = driver(SPY_FN_cuMemAlloc_v2);
	size_t slot;

	(void)state;
	assert_null(spy_wrap("cuInit", NULL));
	assert_ptr_equal(spy_wrap("cuInit", &code[5]), &code[5]);
	assert_int_equal(n_scans, 1); /* the one of begin */
	/* Asked for by another name than it is exported by. */
	assert_int_equal(slot_of(spy_wrap("cuMemAlloc", alloc)), SPY_FN_cuMemAlloc_v2 * 3);
	assert_ptr_equal(spy_slots[SPY_FN_cuMemAlloc_v2 * 3].real, alloc);
	assert_int_equal(slot_of(spy_wrap("a name of later", alloc)), SPY_FN_cuMemAlloc_v2 * 3);
	assert_int_equal(n_scans, 2); /* the table is filled once */
	assert_int_equal(slot_of(spy_wrap("cuInit", driver(SPY_FN_cuInit))), SPY_FN_cuInit * 3);
	/* What the caller verifies goes to it as it is. */
	assert_ptr_equal(spy_wrap("cuGetExportTable", driver(SPY_FN_cuGetExportTable)),
			 driver(SPY_FN_cuGetExportTable));
	assert_string_equal(note, "");
	/* Not exported at all. */
	assert_ptr_equal(spy_wrap("cuSecret", (char *)driver(SPY_FN_cuInit) + 1),
			 (char *)driver(SPY_FN_cuInit) + 1);
	assert_string_equal(note, "cuSecret");
	note[0] = '\0';
	assert_ptr_equal(spy_wrap("elsewhere", (void *)0x800000), (void *)0x800000);
	assert_string_equal(note, "elsewhere");
	assert_int_equal(session.wrap_lock.owner, 0);
	/* Two names of one address: the one that was asked for. */
	begin(state);
	exported_as = SPY_FN_cuMemAlloc_v2;
	slot = slot_of(spy_wrap("cuMemAlloc", alloc));
	assert_int_equal(spy_slots[slot].fn, SPY_FN_cuMemAlloc);
	slot = slot_of(spy_wrap("cuMemAlloc_v2", alloc));
	assert_int_equal(spy_slots[slot].fn, SPY_FN_cuMemAlloc_v2);
	/* Without the lock the real one. */
	session.wrap_lock.owner = 1;
	assert_ptr_equal(spy_wrap("cuInit", driver(SPY_FN_cuInit)), driver(SPY_FN_cuInit));
	session.wrap_lock.owner = 0;
}

/* The driver is unloaded, and comes back elsewhere. */
static void test_unloaded(void **state)
{
	void *init = driver(SPY_FN_cuInit), *other = (void *)0x900010;

	(void)state;
	spy_wrap("cuInit", init);
	spy_wrap_stub_for(SPY_FN_cudaMalloc, SPY_LAYER_RT12, other);
	assert_ptr_equal(spy_slots[SPY_FN_cuInit * 3].real, init);
	objects[0].begin += 0x200000;
	objects[0].end += 0x200000;
	spy_wrap_forget_unloaded(NULL);
	assert_null(spy_slots[SPY_FN_cuInit * 3].real);
	assert_ptr_equal(spy_slots[SPY_FN_cudaMalloc * 3 + 1].real, other);
	assert_int_equal(slot_of(spy_wrap_stub_for(SPY_FN_cudaMalloc, SPY_LAYER_RT12, other)),
			 SPY_FN_cudaMalloc * 3 + 1);
	assert_int_equal(slot_of(spy_wrap("cuInit", driver(SPY_FN_cuInit))), SPY_FN_cuInit * 3);
	assert_ptr_equal(spy_slots[SPY_FN_cuInit * 3].real, driver(SPY_FN_cuInit));
	assert_int_equal(session.wrap_lock.owner, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_names, begin),
		cmocka_unit_test_setup(test_generations, begin),
		cmocka_unit_test_setup(test_counters, begin),
		cmocka_unit_test_setup(test_timed, begin),
		cmocka_unit_test_setup(test_selection, begin),
		cmocka_unit_test_setup(test_is_stub, begin),
		cmocka_unit_test_setup(test_copies, begin),
		cmocka_unit_test_setup(test_other_generation, begin),
		cmocka_unit_test_setup(test_driver, begin),
		cmocka_unit_test_setup(test_unloaded, begin),
		cmocka_unit_test_setup(test_spares, begin), /* last: no spare one is free then */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
