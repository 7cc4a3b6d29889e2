/*
 * shim/hook/wrap.c: from a real function to the stub that is handed out for it. Runs on the
 * application's threads, at look-ups only, under the wrap lock.
 */
#include "process/heap.h" /* before uthash.h */
#include <uthash.h>
#include "hook/resolve.h"
#include "hook/slots.h"
#include "hook/wrap.h"
#include "process/elf_scan.h"
#include "process/own_stack.h"
#include "record/board.h"
#include "record/notes.h"
#include "state/session.h"

/* Where the stubs are, which are above us: the assembly puts it into a section of its own, whose begin the linker names. */
extern const struct {
	void *const *of_slot; /* slot number -> address of its stub, or NULL */
	const char *begin, *end;
} __start_spy_stubs_at __attribute__((visibility("hidden")));

#define stubs __start_spy_stubs_at.of_slot

bool spy_wrap_is_stub(const void *address)
{
	return (const char *)address >= __start_spy_stubs_at.begin &&
	       (const char *)address < __start_spy_stubs_at.end;
}

/* Which slot stands for a real function under one of its names. Written at look-ups, under the
 * lock. */
struct known_address {
	struct known_key {
		void *address;
		uint64_t fn;
	} key;
	uint32_t slot;
	UT_hash_handle hh;
};

static uint32_t spare_used; /* so many spare stubs were ever handed out at one time */

static struct known_address *find_known(void *address, int fn)
{
	struct known_key key = {.address = address, .fn = (uint64_t)fn};
	struct known_address *known = NULL;

	HASH_FIND(hh, spy_session->known_addresses, &key, sizeof(key), known);
	return known;
}

static void add_known(void *address, int fn, uint32_t slot)
{
	struct known_address *known = spy_heap_take(sizeof(*known));

	if (!known)
		return;
	known->key = (struct known_key){.address = address, .fn = (uint64_t)fn};
	known->slot = slot;
	HASH_ADD(hh, spy_session->known_addresses, key, sizeof(known->key), known);
}

/* Takes the slot for `real`, or finds that it has it already. */
static bool claim(uint32_t slot, void *real)
{
	void *expected = NULL;
	int fn = spy_slots[slot].fn;

	if (!stubs[slot])
		return false;
	if (__atomic_load_n(&spy_slots[slot].real, __ATOMIC_ACQUIRE) == real)
		return true;
	return !spy_resolve_bound_elsewhere(fn, spy_slots_version(slot, fn), real) &&
	       __atomic_compare_exchange_n(&spy_slots[slot].real, &expected, real, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/*
 * A spare slot for a second copy of a function: one that stands for it already, or one whose
 * library was unloaded (what still points to its stub points to nowhere), or a new one. 0: they are
 * used up. Lock held.
 */
static uint32_t take_spare(int fn, void *real, const struct spy_slot *like)
{
	uint32_t first = SPY_FN_COUNT * 3, found = 0;

	for (uint32_t slot = first; slot < first + spare_used; slot++) {
		void *other = __atomic_load_n(&spy_slots[slot].real, __ATOMIC_ACQUIRE);

		if (other == real && spy_slots[slot].fn == fn)
			return slot;
		if (!other && !found)
			found = slot;
	}
	if (!found && spare_used < SPY_SPARE_STUBS)
		found = first + spare_used++;
	if (spy_session_active())
		spy_board_show(spy_session->board->spare_stubs, spare_used);
	if (found) {
		struct spy_slot fresh = *like;

		fresh.real = NULL;
		spy_slots[found] = fresh;
	}
	return found;
}

void *spy_wrap_stub_for(int fn, int layer, void *real)
{
	struct known_address *known = find_known(real, fn);
	uint32_t slot;

	if (known)
		return stubs[known->slot];
	slot = layer < 0 ? spy_slots_any(fn) : spy_slots_of_layer(fn, layer);
	spy_slots_prepare(&spy_slots[stubs[slot] ? slot : spy_slots_any(fn)]);
	/* What is no library of CUDA's gets a stub, but not the one the loader binds to. */
	if (layer < 0 || !claim(slot, real)) {
		if (!stubs[slot])
			slot = spy_slots_any(fn);
		if (spy_slots[slot].count_when_nested &&
		    spy_slot_counter(&spy_slots[slot]) == SPY_COUNTER_NONE)
			spy_slots_number(&spy_slots[slot]); /* which both have */
		slot = take_spare(fn, real, &spy_slots[slot]);
		if (!slot) {
			spy_note(SPY_NOTE_BLIND, "more second copies of CUDA functions than %d",
				 SPY_SPARE_STUBS);
			return real;
		}
		if (spy_slots_is_runtime(fn))
			spy_slots[slot].layer = layer < 0 ? SPY_LAYER_RT : (uint8_t)layer;
		spy_slots_set_foreign(&spy_slots[slot], layer < 0);
		__atomic_store_n(&spy_slots[slot].real, real, __ATOMIC_RELEASE);
	}
	add_known(real, fn, slot);
	return stubs[slot];
}

/* ---- functions of the driver ---------------------------------------------------------------- */

/*
 * Which exported function of the driver is at an address. What cuGetProcAddress returns is always
 * one of them, and its ABI is that of the exported symbol, whatever name it was asked by
 * (docs/CUDA_FACTS.md). Several names may share an address: the one asked for is preferred.
 */
struct exported {
	uintptr_t address;
	int preferred;
	int fn; /* the answer, -1 none */
};

/* Where the functions of the driver are; of one libcuda, as a program rarely has two. A runtime
 * asks for some hundred of them by other names than they are exported by. Under the wrap lock. */
static struct {
	uintptr_t begin; /* of the object, 0 none */
	void *address[SPY_FN_COUNT - SPY_RUNTIME_ROWS];
} driver_table;

static void fill_driver_table(const struct spy_object *object)
{
	driver_table.begin = 0;
	for (int fn = SPY_RUNTIME_ROWS; fn < SPY_FN_COUNT; fn++)
		driver_table.address[fn - SPY_RUNTIME_ROWS] =
			spy_object_symbol(object, spy_names[fn], NULL, NULL);
	/* Last: a child forked meanwhile finds no table rather than half of one. */
	__atomic_store_n(&driver_table.begin, object->begin, __ATOMIC_RELEASE);
}

static int find_in_table(const void *address, int preferred)
{
	void *const *table = driver_table.address;

	if (preferred >= SPY_RUNTIME_ROWS && table[preferred - SPY_RUNTIME_ROWS] == address)
		return preferred;
	for (int fn = SPY_RUNTIME_ROWS; fn < SPY_FN_COUNT; fn++)
		if (table[fn - SPY_RUNTIME_ROWS] == address)
			return fn;
	return -1;
}

static int visit_exported(const struct spy_object *object, void *data)
{
	struct exported *exported = data;

	if (exported->address < object->begin || exported->address >= object->end)
		return 0;
	if (driver_table.begin != object->begin)
		fill_driver_table(object);
	exported->fn = find_in_table((void *)exported->address, exported->preferred);
	return 1;
}

bool spy_wrap_wants(int fn)
{
	const struct spy_slot *slot = &spy_slots[spy_slots_any(fn)];

	/* cuGetExportTable and its like go to the caller as they are: cudart verifies them. */
	return slot->record != SPY_TRANSPARENT || slot->inspector;
}

struct wrapping {
	const char *name;
	void *function; /* real, then what is handed out for it */
};

static void wrap_on_own_stack(void *data)
{
	struct wrapping *wrapping = data;
	const char *name = wrapping->name;
	void *real = wrapping->function;
	struct exported exported = {
		.address = (uintptr_t)real, .preferred = spy_slots_find(name), .fn = -1};

	if (!spy_lock(&spy_session->wrap_lock))
		return;
	if (exported.preferred >= SPY_RUNTIME_ROWS && find_known(real, exported.preferred))
		exported.fn = exported.preferred;
	else if (driver_table.begin)
		exported.fn = find_in_table(real, exported.preferred);
	if (exported.fn < 0)
		spy_each_object(visit_exported, &exported);
	if (exported.fn >= 0 && spy_wrap_wants(exported.fn))
		wrapping->function = spy_wrap_stub_for(exported.fn, SPY_LAYER_DRIVER, real);
	spy_unlock(&spy_session->wrap_lock);
	if (exported.fn < 0)
		spy_note(SPY_NOTE_UNKNOWN, "%s", name);
}

void *spy_wrap(const char *name, void *real)
{
	struct wrapping wrapping = {.name = name, .function = real};

	if (real && !spy_wrap_is_stub(real))
		spy_own_stack_run(wrap_on_own_stack, &wrapping);
	return wrapping.function;
}

/* ---- unloaded libraries --------------------------------------------------------------------- */

/* Which slots' real functions are still in the address space. */
struct loaded {
	uint64_t slots[(SPY_SLOTS + 63) / 64];
};

static bool is_loaded(const struct loaded *loaded, size_t slot)
{
	return loaded->slots[slot / 64] >> slot % 64 & 1;
}

static int visit_loaded(const struct spy_object *object, void *data)
{
	struct loaded *loaded = data;

	for (size_t i = 0; i < SPY_SLOTS; i++) {
		uintptr_t real = (uintptr_t)spy_slots[i].real;

		if (real >= object->begin && real < object->end)
			loaded->slots[i / 64] |= 1ull << i % 64;
	}
	return 0;
}

void spy_wrap_forget_unloaded(void *unused)
{
	struct known_address *known, *next;
	struct loaded loaded = {0};

	(void)unused;
	spy_each_object(visit_loaded, &loaded);
	for (size_t i = 0; i < SPY_SLOTS; i++)
		if (!is_loaded(&loaded, i))
			__atomic_store_n(&spy_slots[i].real, NULL, __ATOMIC_RELEASE);
	if (!spy_lock(&spy_session->wrap_lock))
		return;
	driver_table.begin = 0;
	HASH_ITER (hh, spy_session->known_addresses, known, next) {
		if (is_loaded(&loaded, known->slot))
			continue;
		HASH_DEL(spy_session->known_addresses, known);
		spy_heap_give(known, sizeof(*known));
	}
	spy_unlock(&spy_session->wrap_lock);
}
