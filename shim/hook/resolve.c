/*
 * shim/hook/resolve.c: the way to the real function, and of ours to the caller.
 *
 * Calls reach a stub through the dynamic linker, dlsym, dlvsym, cuGetProcAddress or
 * cudaGetDriverEntryPoint. A stub's slot keeps its real function; the first call or look-up finds it
 * (spy_resolve, spy_wrap). Runs on the application's threads, at first calls and look-ups only.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "process/heap.h" /* before uthash.h */
#include <uthash.h>
#include "process/apart.h"
#include "record/board.h"
#include "lib/calm.h"
#include "cudaspy/contract.h"
#include "lib/elf_scan.h"
#include "inspect/inspect.h"
#include "probe/probe.h"
#include "hook/resolve.h"
#include "record/lifecycle.h"

/* ---- the tables, from the list --------------------------------------------------------------- */

const char *const spy_names[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) #name,
#include "cudaspy/entrypoints.def"
};

/* How many of the two halves of the list are the runtime's; each half is in strcmp order. */
enum {
#define COUNT_DRIVER 0
#define COUNT_RT 1
#define COUNT_RT11 1
#define COUNT_RT12 1
#define COUNT_RT13 1
#define COUNT_RT11_12 1
#define COUNT_RT12_13 1
	RUNTIME_ROWS = 0
#define ENTRY(name, layer, record, contract, inspector) +COUNT_##layer
#include "cudaspy/entrypoints.def"
};

/* Counters of the COUNTED and INSTANT rows: numbers 0, 1, 2 … */
enum {
#define NUMBER_TRACED(name)
#define NUMBER_TRANSPARENT(name)
#define NUMBER_COUNTED(name) COUNTER_OF_##name,
#define NUMBER_INSTANT(name) COUNTER_OF_##name,
#define ENTRY(name, layer, record, contract, inspector) NUMBER_##record(name)
#include "cudaspy/entrypoints.def"
	COUNTER_COUNT
};
_Static_assert(COUNTER_COUNT <= SPY_BOARD_COUNTERS, "more counted rows than counters in a page");

#define COUNTER_TRACED(name) SPY_COUNTER_NONE
#define COUNTER_TRANSPARENT(name) SPY_COUNTER_NONE
#define COUNTER_COUNTED(name) COUNTER_OF_##name
#define COUNTER_INSTANT(name) COUNTER_OF_##name

/* Of contract HOST, streams and events are told by how they are inspected. */
#define makes(contract, inspector) \
	((contract) == SPY_CONTRACT_ALLOC || (contract) == SPY_CONTRACT_PIN || \
	 (contract) == SPY_CONTRACT_FREE || (contract) == SPY_CONTRACT_GRAPH_BUILD || \
	 (inspector) == SPY_INSPECTOR_stream_create || \
	 (inspector) == SPY_INSPECTOR_stream_create_flags || \
	 (inspector) == SPY_INSPECTOR_stream_destroy || \
	 (inspector) == SPY_INSPECTOR_event_create || \
	 (inspector) == SPY_INSPECTOR_event_create_flags || \
	 (inspector) == SPY_INSPECTOR_event_destroy)

/* What there may be too much of, however short each is. Of the runtime's launches those into the stream for which others
 * wait; the driver's a runtime linked to the program makes for all kernels. */
#define may_be_too_many(contract) \
	((contract) == SPY_CONTRACT_LAUNCH || (contract) == SPY_CONTRACT_STREAM || \
	 (contract) == SPY_CONTRACT_EVENT || (contract) == SPY_CONTRACT_DEVICE || \
	 (contract) == SPY_CONTRACT_COPY_SYNC || (contract) == SPY_CONTRACT_COPY_ASYNC || \
	 (contract) == SPY_CONTRACT_COPY_BATCH || (contract) == SPY_CONTRACT_PEER || \
	 (contract) == SPY_CONTRACT_MEMSET_SYNC || (contract) == SPY_CONTRACT_SUBMIT)
#define sampled(layer, contract) \
	((contract) == SPY_CONTRACT_LAUNCH && (layer) != SPY_LAYER_DRIVER ? SPY_SAMPLED_LEGACY \
	 : may_be_too_many(contract)                                      ? SPY_SAMPLED_ALL \
									  : SPY_SAMPLED_NONE)

/*
 * The runtime's calls make these of the driver's, which are then only counted: the one around them is timed, tells
 * the details, and what it waits for is recorded with the inner one's name. Not what starts up or ends a device's
 * state: that it happened inside another call, and how long it took, is what the analyzer wants to know
 * (account_nested).
 */
#define brief(layer, record, contract) \
	((layer) == SPY_LAYER_DRIVER && (record) == SPY_TRACED && (contract) != SPY_CONTRACT_INIT)

/*
 * How much has to be told by the call around one of the driver's, that the assembly may pass it by: its inspector then
 * has nothing to add. For one that is only counted anyhow it is enough that there is one: if that is seen to wait, it
 * gets a record.
 */
enum {
	STATE_none,
#define INSPECTOR(name, before, after, stateful, ...) STATE_##name = (stateful),
#include "inspect/inspectors.def"
};
#define passes(layer, record, contract, inspector) \
	((layer) != SPY_LAYER_DRIVER                       ? SPY_TOLD_NEVER \
	 : (record) == SPY_COUNTED                         ? passes_counted(inspector) \
	 : !brief(layer, record, contract)                 ? SPY_TOLD_NEVER \
	 : SPY_INSPECTOR_##inspector == SPY_INSPECTOR_none ? SPY_TOLD_TIME \
	 : STATE_##inspector == 0                          ? SPY_TOLD_DETAILS \
	 : STATE_##inspector == 2                          ? SPY_TOLD_ALL \
							   : SPY_TOLD_NEVER)
#define passes_counted(inspector) \
	(SPY_INSPECTOR_##inspector == SPY_INSPECTOR_none ? SPY_TOLD_COUNT : SPY_TOLD_NEVER)

#define SLOT(name, which, layer_, record_, contract_, inspector_) \
	[SPY_FN_##name * 3 + (which)] = { \
		.fn = SPY_FN_##name, \
		.record = SPY_##record_, \
		.layer = (layer_), \
		.counter = COUNTER_##record_(name), \
		.window = SPY_WINDOW, \
		.inspector = SPY_INSPECTOR_##inspector_, \
		.brief = brief(layer_, SPY_##record_, SPY_CONTRACT_##contract_), \
		.passes = passes(layer_, SPY_##record_, SPY_CONTRACT_##contract_, inspector_), \
		.makes = makes(SPY_CONTRACT_##contract_, SPY_INSPECTOR_##inspector_), \
		.sampled = sampled(layer_, SPY_CONTRACT_##contract_)},
#define SLOTS_DRIVER(name, record, contract, inspector) \
	SLOT(name, 0, SPY_LAYER_DRIVER, record, contract, inspector)
#define SLOTS_RT11(name, record, contract, inspector) \
	SLOT(name, 0, SPY_LAYER_RT11, record, contract, inspector)
#define SLOTS_RT12(name, record, contract, inspector) \
	SLOT(name, 1, SPY_LAYER_RT12, record, contract, inspector)
#define SLOTS_RT13(name, record, contract, inspector) \
	SLOT(name, 2, SPY_LAYER_RT13, record, contract, inspector)
#define SLOTS_RT11_12(name, record, contract, inspector) \
	SLOTS_RT11(name, record, contract, inspector) SLOTS_RT12(name, record, contract, inspector)
#define SLOTS_RT12_13(name, record, contract, inspector) \
	SLOTS_RT12(name, record, contract, inspector) SLOTS_RT13(name, record, contract, inspector)
#define SLOTS_RT(name, record, contract, inspector) \
	SLOTS_RT11_12(name, record, contract, inspector) \
	SLOTS_RT13(name, record, contract, inspector)

struct spy_slot spy_slots[SPY_SLOTS] = {
#define ENTRY(name, layer, record, contract, inspector) \
	SLOTS_##layer(name, record, contract, inspector)
#include "cudaspy/entrypoints.def"
};

static const struct generation {
	uint8_t layer; /* enum spy_layer */
	const char *version;
} generations[3] = {
	{SPY_LAYER_RT11, "libcudart.so.11.0"},
	{SPY_LAYER_RT12, "libcudart.so.12"},
	{SPY_LAYER_RT13, "libcudart.so.13"},
};

#define DRIVER_SONAME "libcuda.so"

static bool is_runtime(int fn)
{
	return fn < RUNTIME_ROWS;
}

static int compare_names(const void *name, const void *row)
{
	return strcmp(name, *(const char *const *)row);
}

int spy_find_name(const char *name)
{
	const char *const *found;

	found = bsearch(name, spy_names, RUNTIME_ROWS, sizeof(name), compare_names);
	if (!found)
		found = bsearch(name, spy_names + RUNTIME_ROWS, SPY_FN_COUNT - RUNTIME_ROWS,
				sizeof(name), compare_names);
	return found ? (int)(found - spy_names) : -1;
}

/* First and last byte of the stubs (trampoline.S). */
extern const char spy_stubs_begin[], spy_stubs_end[];

static bool is_stub(const void *address)
{
	return (const char *)address >= spy_stubs_begin && (const char *)address < spy_stubs_end;
}

/* A slot of the row that exists: a row of one generation leaves the others' empty. */
static uint32_t any_slot(int fn)
{
	uint32_t slot = (uint32_t)fn * 3;

	while (!spy_stubs[slot])
		slot++;
	return slot;
}

/* ---- selection ------------------------------------------------------------------------------- */

void spy_slots_disable(void)
{
	for (size_t i = 0; i < SPY_SLOTS; i++) {
		spy_slots[i].record = SPY_TRANSPARENT;
		spy_slots[i].inspector = 0;
	}
}

/* Counters of rows that are traced in the list, and counted because the user wants it or where they are brief,
 * follow those of the list. A page of the board has fewer than there are rows, so a row gets one when it is
 * first needed. */
static uint16_t counters = COUNTER_COUNT;

static void name_counter(uint16_t counter, uint16_t fn)
{
	if (spy_session_active())
		__atomic_store_n(&spy_session->board->counter_fn[counter], fn, __ATOMIC_RELAXED);
}

uint16_t spy_slots_number(struct spy_slot *slot)
{
	uint16_t none = SPY_COUNTER_NONE, counter = __atomic_load_n(&counters, __ATOMIC_RELAXED);

	while (counter < SPY_BOARD_COUNTERS &&
	       !__atomic_compare_exchange_n(&counters, &counter, counter + 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	if (counter >= SPY_BOARD_COUNTERS)
		return SPY_COUNTER_NONE;
	name_counter(counter, slot->fn);
	/* Two threads at once: one of the two counters stays at 0. */
	if (!__atomic_compare_exchange_n(&slot->counter, &none, counter, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return none;
	/* Again: a session that became active in between listed it, or is seen here (begin_alone). */
	name_counter(counter, slot->fn);
	return counter;
}

void spy_slots_count(uint16_t fn)
{
	for (size_t i = fn * 3; i < fn * 3 + 3u; i++)
		if (spy_stubs[i] && spy_slots[i].record == SPY_TRACED)
			spy_slots[i].record = SPY_COUNTED;
}

/* The slot is about to be used for the first time. */
static void prepare(struct spy_slot *slot)
{
	if (slot->record == SPY_COUNTED && slot->counter == SPY_COUNTER_NONE &&
	    spy_slots_number(slot) == SPY_COUNTER_NONE)
		slot->record = SPY_TRACED;
}

void spy_slots_trace(uint16_t fn)
{
	for (size_t i = fn * 3; i < fn * 3 + 3u; i++)
		if (spy_stubs[i] && spy_slots[i].record != SPY_TRANSPARENT) {
			spy_slots[i].record = SPY_TRACED;
			spy_slots[i].brief = false;
			spy_slots[i].passes = SPY_TOLD_NEVER;
		}
}

void spy_slots_list_counters(uint16_t counter_fn[SPY_BOARD_COUNTERS])
{
	for (size_t i = 0; i < SPY_FN_COUNT * 3; i++)
		if (spy_stubs[i] && spy_slot_counter(&spy_slots[i]) < SPY_BOARD_COUNTERS)
			__atomic_store_n(&counter_fn[spy_slots[i].counter], spy_slots[i].fn,
					 __ATOMIC_RELAXED);
}

/* ---- what we interpose ourselves ------------------------------------------------------------- */

/* The assembly jumps through these. */
void *(*spy_real_dlsym)(void *, const char *)__attribute__((visibility("hidden")));
void *(*spy_real_dlvsym)(void *, const char *, const char *)__attribute__((visibility("hidden")));
void *(*spy_real_dlopen)(const char *, int)__attribute__((visibility("hidden")));
void *(*spy_real_dlmopen)(Lmid_t, const char *, int)__attribute__((visibility("hidden")));

int (*spy_real_dlclose)(void *) __attribute__((visibility("hidden")));

/* Objects loaded with the program: those after the shim may interpose, those opened later not. */
static size_t startup_objects;
static size_t self_position;

static int count_objects(const struct spy_object *object, void *data)
{
	(void)data;
	startup_objects = object->position + 1;
	if (object->is_self)
		self_position = object->position;
	return 0;
}

/* May run before anything else of this process, inside a sanitizer's own beginning. */
__attribute__((no_sanitize("address", "undefined", "thread"))) void spy_find_dl(void)
{
	spy_real_dlvsym = spy_next_symbol("dlvsym");
	spy_real_dlopen = spy_next_symbol("dlopen");
	spy_real_dlmopen = spy_next_symbol("dlmopen");
	spy_real_dlclose = spy_next_symbol("dlclose");
	spy_real_dlsym = spy_next_symbol("dlsym");
}

void spy_resolve_init(void)
{
	if (!spy_real_dlsym)
		spy_find_dl();
	spy_probe_init();
	for (size_t i = 0; i < SPY_FN_COUNT * 3; i++)
		if (strstr(spy_names[spy_slots[i].fn], "EGL"))
			spy_slots[i].window = SPY_WINDOW_EGL;
	spy_each_object(count_objects, NULL);
}

/* ---- from a slot to the real function -------------------------------------------------------- */

/* The enum spy_layer of a loaded object that provides the function, or -1: neither libcuda nor a
 * libcudart. */
static int object_layer(const struct spy_object *object, int fn)
{
	if (!is_runtime(fn))
		return strncmp(object->soname, DRIVER_SONAME, strlen(DRIVER_SONAME)) == 0
			       ? SPY_LAYER_DRIVER
			       : -1;
	for (size_t g = 3; g-- > 0;)
		if (spy_object_has_version(object, generations[g].version))
			return generations[g].layer;
	return -1;
}

struct search {
	int fn;
	bool startup_only;
	const char *version; /* the stub's own generation; NULL for the driver */
	bool past_self;
	void *found[4]; /* by preference, best first */
	int layer[4];
};

/*
 * Preferences, as the dynamic linker would have bound the call had we not been there:
 * 0  the next object loaded with the program that has it, in our version or (an interposer) in none
 * 1  an object opened later that has it in our version; for the driver, libcuda itself
 * 2  the newest other generation of the runtime
 * 3  anything else that exports the name
 */
static int visit_real(const struct spy_object *object, void *data)
{
	struct search *search = data;
	const char *name = spy_names[search->fn];
	void *exact = NULL, *any;
	bool versioned = false;
	int layer;

	if (object->is_self) {
		search->past_self = true;
		return 0;
	}
	if (search->startup_only && object->position >= startup_objects)
		return 1;
	if (search->version)
		exact = spy_object_symbol(object, name, search->version, NULL);
	any = exact ? exact : spy_object_symbol(object, name, NULL, &versioned);
	if (!any)
		return 0;
	layer = object_layer(object, search->fn);
	if (search->past_self && object->position < startup_objects &&
	    (exact || !versioned || !search->version)) {
		if (!search->found[0]) {
			search->found[0] = any;
			search->layer[0] = layer;
		}
		return 1;
	}
	if (exact || (!search->version && layer == SPY_LAYER_DRIVER)) {
		if (!search->found[1]) {
			search->found[1] = any;
			search->layer[1] = layer;
		}
	} else if (versioned && layer >= 0) {
		if (!search->found[2] || layer > search->layer[2]) {
			search->found[2] = any;
			search->layer[2] = layer;
		}
	} else if (!search->found[3]) {
		search->found[3] = any;
		search->layer[3] = layer;
	}
	return 0;
}

static void *find_real(int fn, const char *version, int *layer)
{
	struct search search = {.fn = fn, .version = version};

	spy_each_object(visit_real, &search);
	for (int i = 0; i < 4; i++) {
		if (search.found[i]) {
			*layer = search.layer[i];
			return search.found[i];
		}
	}
	return NULL;
}

/* Does a call that the loader bound to our stub go somewhere else than to `real`? It does when
 * another interposer was loaded with the program. */
static bool bound_elsewhere(int fn, const char *version, const void *real)
{
	struct search search = {.fn = fn, .version = version, .startup_only = true};

	spy_each_object(visit_real, &search);
	return search.found[0] && search.found[0] != real;
}

/* cudaErrorNoDevice and CUDA_ERROR_NO_DEVICE are both 100: driver_types.h, cuda.h. What a program
 * gets that found our stub although it has no CUDA library (a weak reference, say). */
static int no_device(void)
{
	return 100;
}

static const char *slot_version(uint64_t index, int fn)
{
	if (!is_runtime(fn) || index >= SPY_FN_COUNT * 3)
		return NULL;
	return generations[index % 3].version;
}

/* Before its real function is. Another interposer's may allocate and free what it was not asked for. */
static void set_foreign(struct spy_slot *slot, bool foreign)
{
	slot->foreign = foreign;
	if (foreign && slot->passes == SPY_TOLD_ALL)
		slot->passes = SPY_TOLD_NEVER;
}

/* Keeps what was found for a slot, if anything was, and returns what the slot goes by. */
static void *keep_real(struct spy_slot *slot, void *real, int layer)
{
	bool locked = spy_lock(&spy_session->wrap_lock);

	prepare(slot);
	if (slot->real) { /* another thread was faster */
		real = slot->real;
	} else if (real && locked) { /* or else the next call finds it again */
		/* An interposer in between: the layer below it is the one the caller was linked to. */
		if (layer >= 0)
			__atomic_store_n(&slot->layer, (uint8_t)layer, __ATOMIC_RELAXED);
		set_foreign(slot, layer < 0);
		__atomic_store_n(&slot->real, real, __ATOMIC_RELEASE);
	}
	if (locked)
		spy_unlock(&spy_session->wrap_lock);
	return real;
}

struct resolving {
	struct spy_slot *slot;
	uint64_t index;
	void *real; /* the answer */
};

static void resolve_apart(void *data)
{
	struct resolving *resolving = data;
	struct spy_slot *slot = resolving->slot;
	int layer = __atomic_load_n(&slot->layer, __ATOMIC_RELAXED);
	void *real;

	spy_lifecycle_init();
	real = find_real(slot->fn, slot_version(resolving->index, slot->fn), &layer);
	resolving->real = keep_real(slot, real, layer);
	if (resolving->real)
		return;
	spy_note(SPY_NOTE_MISSING, "%s", spy_names[slot->fn]);
	resolving->real = no_device;
}

void *spy_resolve(struct spy_slot *slot, uint64_t index)
{
	struct resolving resolving = {.slot = slot, .index = index};

	spy_apart(resolve_apart, &resolving);
	return resolving.real;
}

static void find_driver_apart(void *data)
{
	struct resolving *resolving = data;
	int layer = SPY_LAYER_DRIVER;
	void *real = find_real(resolving->slot->fn, NULL, &layer);

	resolving->real = keep_real(resolving->slot, real, layer);
}

static void *find_driver(struct spy_slot *slot)
{
	struct resolving resolving = {.slot = slot};

	spy_apart(find_driver_apart, &resolving);
	return resolving.real;
}

void *spy_real_driver(enum spy_fn fn)
{
	struct spy_slot *slot = &spy_slots[fn * 3];
	void *real = __atomic_load_n(&slot->real, __ATOMIC_ACQUIRE);

	return real ? real : find_driver(slot);
}

/* ---- from a real function to the stub we hand out -------------------------------------------- */

/* Which slot stands for a real function under one of its names. Written at look-ups, under the lock. */
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

	if (!spy_stubs[slot])
		return false;
	if (__atomic_load_n(&spy_slots[slot].real, __ATOMIC_ACQUIRE) == real)
		return true;
	return !bound_elsewhere(fn, slot_version(slot, fn), real) &&
	       __atomic_compare_exchange_n(&spy_slots[slot].real, &expected, real, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/*
 * A spare slot for a second copy of a function: one that stands for it already, or one whose library was unloaded (what
 * still points to its stub points to nowhere), or a new one. 0: they are used up. Lock held.
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

/* The stub for a real function of a known row. Lock held. layer -1: not a library we know. */
static void *stub_for(int fn, int layer, void *real)
{
	struct known_address *known = find_known(real, fn);
	uint32_t slot = (uint32_t)fn * 3;

	if (known)
		return spy_stubs[known->slot];
	if (layer < 0)
		slot = any_slot(fn);
	for (uint32_t g = 0; is_runtime(fn) && g < 3; g++)
		if (layer == generations[g].layer)
			slot += g;
	prepare(&spy_slots[spy_stubs[slot] ? slot : any_slot(fn)]);
	/* What is no library of CUDA's gets a stub, but not the one the loader binds to. */
	if (layer < 0 || !claim(slot, real)) {
		if (!spy_stubs[slot])
			slot = any_slot(fn);
		if (spy_slots[slot].brief && spy_slot_counter(&spy_slots[slot]) == SPY_COUNTER_NONE)
			spy_slots_number(&spy_slots[slot]); /* which both have */
		slot = take_spare(fn, real, &spy_slots[slot]);
		if (!slot) {
			spy_note(SPY_NOTE_BLIND, "more second copies of CUDA functions than %d",
				 SPY_SPARE_STUBS);
			return real;
		}
		if (is_runtime(fn))
			spy_slots[slot].layer = layer < 0 ? SPY_LAYER_RT : (uint8_t)layer;
		set_foreign(&spy_slots[slot], layer < 0);
		__atomic_store_n(&spy_slots[slot].real, real, __ATOMIC_RELEASE);
	}
	add_known(real, fn, slot);
	return spy_stubs[slot];
}

/* ---- which object an address lies in --------------------------------------------------------- */

struct at_address {
	uintptr_t address;
	int fn;
	bool found;
	char path[256]; /* the end of it */
	int layer; /* enum spy_layer for fn, -1 no CUDA library */
	size_t position; /* in the loader's list */
};

static int visit_at(const struct spy_object *object, void *data)
{
	struct at_address *at = data;
	size_t length, from = 0;

	if (at->address < object->begin || at->address >= object->end)
		return 0;
	at->found = true;
	at->position = object->position;
	length = strlen(object->path);
	if (length >= sizeof(at->path))
		from = length - sizeof(at->path) + 1;
	strcpy(at->path, object->path + from);
	at->layer = object_layer(object, at->fn);
	return 1;
}

static struct at_address locate(const void *address, int fn)
{
	struct at_address at = {.address = (uintptr_t)address, .fn = fn, .layer = -1};

	spy_each_object(visit_at, &at);
	return at;
}

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

/* Where the functions of the driver are; of one libcuda, as a program rarely has two. A runtime asks
 * for some hundred of them by other names than they are exported by. Under the wrap lock. */
static struct {
	uintptr_t begin; /* of the object, 0 none */
	void *address[SPY_FN_COUNT - RUNTIME_ROWS];
} driver_table;

static void fill_driver_table(const struct spy_object *object)
{
	driver_table.begin = 0;
	for (int fn = RUNTIME_ROWS; fn < SPY_FN_COUNT; fn++)
		driver_table.address[fn - RUNTIME_ROWS] =
			spy_object_symbol(object, spy_names[fn], NULL, NULL);
	/* Last: a child forked meanwhile finds no table rather than half of one. */
	__atomic_store_n(&driver_table.begin, object->begin, __ATOMIC_RELEASE);
}

static int visit_exported(const struct spy_object *object, void *data)
{
	struct exported *exported = data;
	void *address = (void *)exported->address;

	if (exported->address < object->begin || exported->address >= object->end)
		return 0;
	if (exported->preferred >= RUNTIME_ROWS &&
	    spy_object_symbol(object, spy_names[exported->preferred], NULL, NULL) == address) {
		exported->fn = exported->preferred;
		return 1;
	}
	if (driver_table.begin != object->begin)
		fill_driver_table(object);
	for (int fn = RUNTIME_ROWS; fn < SPY_FN_COUNT; fn++) {
		if (driver_table.address[fn - RUNTIME_ROWS] == address) {
			exported->fn = fn;
			break;
		}
	}
	return 1;
}

static bool want_stub(int fn)
{
	const struct spy_slot *slot = &spy_slots[any_slot(fn)];

	/* cuGetExportTable and its like go to the caller as they are: cudart verifies them. */
	return slot->record != SPY_TRANSPARENT || slot->inspector;
}

struct wrapping {
	const char *name;
	void *function; /* real, then what is handed out for it */
};

static void wrap_apart(void *data)
{
	struct wrapping *wrapping = data;
	const char *name = wrapping->name;
	void *real = wrapping->function;
	struct exported exported = {
		.address = (uintptr_t)real, .preferred = spy_find_name(name), .fn = -1};

	if (!spy_lock(&spy_session->wrap_lock))
		return;
	if (exported.preferred >= RUNTIME_ROWS && find_known(real, exported.preferred))
		exported.fn = exported.preferred;
	else
		spy_each_object(visit_exported, &exported);
	if (exported.fn >= 0 && want_stub(exported.fn))
		wrapping->function = stub_for(exported.fn, SPY_LAYER_DRIVER, real);
	spy_unlock(&spy_session->wrap_lock);
	if (exported.fn < 0)
		spy_note(SPY_NOTE_UNKNOWN, "%s", name);
}

void *spy_wrap(const char *name, void *real)
{
	struct wrapping wrapping = {.name = name, .function = real};

	if (real && !is_stub(real))
		spy_apart(wrap_apart, &wrapping);
	return wrapping.function;
}

/* ---- dlsym and dlvsym ------------------------------------------------------------------------ */

/* The real answer to a look-up made from here, error message included. */
static void *ask(void *handle, const char *name, const char *version)
{
	return version ? spy_real_dlvsym(handle, name, version) : spy_real_dlsym(handle, name);
}

/* The stub to answer with for a real function that a look-up found. */
static void *wrap_found(int fn, void *found)
{
	struct at_address at = locate(found, fn);

	/* An interposer before us calls on; we shall see its call. */
	if ((at.found && at.position < self_position) || !spy_lock(&spy_session->wrap_lock))
		return found;
	found = stub_for(fn, at.layer, found);
	spy_unlock(&spy_session->wrap_lock);
	return found;
}

/*
 * A global search found our own stub first: what would it have found without us? What lies behind us
 * in the global scope; or, for a caller that was opened later, in the scope of its own.
 */
static void *behind_us(int fn, void *handle, const char *name, const char *version,
		       const void *caller)
{
	void *found = ask(RTLD_NEXT, name, version);
	int layer;

	if (!found && handle == RTLD_DEFAULT && locate(caller, fn).position >= startup_objects)
		found = find_real(fn, version, &layer);
	if (found)
		(void)dlerror(); /* of our own question */
	return found;
}

/* Names of the driver's that have no row: the answer goes out as it is, and into the trace. */
static void *look_up_unknown(void *handle, const char *name, const char *version)
{
	void *found = ask(handle, name, version);

	if (found && locate(found, RUNTIME_ROWS).layer == SPY_LAYER_DRIVER)
		spy_note(SPY_NOTE_UNKNOWN, "%s", name);
	return found;
}

/* A static runtime begins by looking this one up. What it does shows at the driver's level only. */
static void note_static_runtime(int fn, const void *caller)
{
	struct at_address at;

	if (fn != SPY_FN_cuGetProcAddress_v2 && fn != SPY_FN_cuGetProcAddress)
		return;
	at = locate(caller, SPY_FN_cudaFree);
	if (at.found && at.layer < 0)
		spy_note(SPY_NOTE_OTHER,
			 "%s looks the driver's functions up by itself, as a CUDA runtime linked "
			 "statically does: its calls are seen at the driver's level",
			 *at.path ? at.path : program_invocation_name);
}

/*
 * Decides a look-up whose name begins like CUDA's, made at `caller`. Returns 1 and the answer, or 0:
 * jump to the real function, which will see the caller as it is. Called by the assembly.
 */
__attribute__((visibility("hidden"))) int
spy_lookup(void *handle, const char *name, const char *version, void **answer, const void *caller);

int spy_lookup(void *handle, const char *name, const char *version, void **answer,
	       const void *caller)
{
	bool own;
	int fn;

	spy_lifecycle_init();
	fn = name ? spy_find_name(name) : -1;
	if (handle == RTLD_NEXT) {
		/* Only the loader knows who is next after the caller. But where nobody after us
		 * has the function, our stub must not pretend to. */
		if (fn < 0 || locate(caller, fn).position > self_position ||
		    ask(RTLD_NEXT, name, version))
			return 0;
		*answer = NULL;
		return 1;
	}
	if (fn < 0) {
		/* RTLD_DEFAULT depends on who asks: nothing of ours comes in its way. */
		if (!name || handle == RTLD_DEFAULT || strncmp(name, "cu", 2) != 0 ||
		    name[2] < 'A' || name[2] > 'Z')
			return 0;
		*answer = look_up_unknown(handle, name, version);
		return 1;
	}
	note_static_runtime(fn, caller);
	/* A library of CUDA's looks itself up: what it gets is its own. */
	own = locate(caller, fn).layer >= 0;
	*answer = ask(handle, name, version);
	if (*answer && is_stub(*answer))
		*answer = behind_us(fn, handle, name, version, caller);
	if (*answer && !own && want_stub(fn))
		*answer = wrap_found(fn, *answer);
	return 1;
}

/* ---- dlclose --------------------------------------------------------------------------------- */

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

/* A library that was unloaded may come back elsewhere: its slots have to find it again. */
static void forget_unloaded(void *unused)
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

static void look_at_modules(void *unused)
{
	(void)unused;
	spy_modules_look();
}

int dlclose(void *handle) __attribute__((visibility("default")));

int dlclose(void *handle)
{
	struct spy_object_counters before = {0}, after = {0};
	const struct spy_python *python;
	bool counted;
	int result;

	spy_lifecycle_init();
	/* What is to be unloaded may never have been looked at. */
	if (spy_session_active())
		spy_apart(look_at_modules, NULL);
	counted = spy_count_objects(&before);
	python = spy_python_forget();
	result = spy_real_dlclose(handle);
	if (counted && spy_count_objects(&after) && after.removed == before.removed) {
		if (python)
			spy_python_remember(python);
		return result;
	}
	spy_apart(forget_unloaded, NULL);
	if (spy_python_forget() || python) { /* somebody else may have found it again meanwhile */
		__atomic_store_n(&spy_session->python_forgotten, true, __ATOMIC_RELEASE);
		spy_apart(look_at_modules, NULL);
	}
	return result;
}

/* ---- dlopen and dlmopen pass by -------------------------------------------------------------- */

__attribute__((visibility("hidden"))) void spy_peek_dlopen(const char *file, int mode);
__attribute__((visibility("hidden"))) void spy_peek_dlmopen(Lmid_t space, const char *file,
							    int mode);

void spy_peek_dlopen(const char *file, int mode)
{
	SPY_CALM;

	spy_lifecycle_init();
	if (file && (mode & RTLD_DEEPBIND))
		spy_note(SPY_NOTE_BLIND,
			 "%s was opened with RTLD_DEEPBIND: CUDA calls it makes to libraries it "
			 "brings along are not seen",
			 file);
}

void spy_peek_dlmopen(Lmid_t space, const char *file, int mode)
{
	SPY_CALM;

	(void)mode;
	spy_lifecycle_init();
	if (file && space != LM_ID_BASE)
		spy_note(SPY_NOTE_BLIND,
			 "%s was opened in a link-map namespace of its own: CUDA calls made there "
			 "are not seen",
			 file);
}
