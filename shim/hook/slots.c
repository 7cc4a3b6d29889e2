/*
 * shim/hook/slots.c: the table of slots, made from the list of entry points, and what the user's
 * selection changes in it. Runs on the application's threads: when the library is loaded, and at
 * first calls.
 */
#include <stdlib.h>
#include <string.h>
#include "cudaspy/contract.h"
#include "hook/slots.h"
#include "state/inspectors.h"
#include "process/options.h"
#include "state/session.h"

/* ---- the tables, from the list -------------------------------------------------------------- */

const char *const spy_names[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) #name,
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

/* Of contract HOST, streams and events are recognised by their inspectors. */
#define makes(contract, inspector) \
	((contract) == SPY_CONTRACT_ALLOC || (contract) == SPY_CONTRACT_PIN || \
	 (contract) == SPY_CONTRACT_FREE || (contract) == SPY_CONTRACT_GRAPH_BUILD || \
	 (contract) == SPY_CONTRACT_MODULE || (contract) == SPY_CONTRACT_LIBRARY || \
	 (inspector) == SPY_INSPECTOR_stream_create || \
	 (inspector) == SPY_INSPECTOR_stream_create_flags || \
	 (inspector) == SPY_INSPECTOR_stream_destroy || \
	 (inspector) == SPY_INSPECTOR_event_create || \
	 (inspector) == SPY_INSPECTOR_event_create_flags || \
	 (inspector) == SPY_INSPECTOR_event_destroy)

/*
 * What there may be too much of, however short each is; and what is short but now and then: where a pool grows, or a first use
 * loads code. Of the runtime's launches those into the stream for which others wait; the driver's a runtime linked to the program
 * makes for all kernels.
 */
#define may_be_too_many(contract) \
	((contract) == SPY_CONTRACT_LAUNCH || (contract) == SPY_CONTRACT_STREAM || \
	 (contract) == SPY_CONTRACT_EVENT || (contract) == SPY_CONTRACT_DEVICE || \
	 (contract) == SPY_CONTRACT_COPY_SYNC || (contract) == SPY_CONTRACT_COPY_ASYNC || \
	 (contract) == SPY_CONTRACT_COPY_BATCH || (contract) == SPY_CONTRACT_PEER || \
	 (contract) == SPY_CONTRACT_MEMSET_SYNC || (contract) == SPY_CONTRACT_SUBMIT || \
	 (contract) == SPY_CONTRACT_ALLOC_POOL || (contract) == SPY_CONTRACT_LAZY_LOAD)
#define sampled(layer, record, contract) \
	((record) == SPY_COUNTED                                            ? SPY_SAMPLED_ALL \
	 : (contract) == SPY_CONTRACT_LAUNCH && (layer) != SPY_LAYER_DRIVER ? SPY_SAMPLED_LEGACY \
	 : may_be_too_many(contract)                                        ? SPY_SAMPLED_ALL \
									    : SPY_SAMPLED_NONE)

/*
 * The runtime's calls make these calls of the driver's, which are then only counted. The outer call
 * is timed and has its arguments recorded, and what it waits for is recorded with the inner call's
 * name. Not so what starts up or ends a device's state: the analyzer needs to know that it happened
 * inside another call, and how long it took (account_nested).
 */
#define counts_when_nested(layer, record, contract) \
	((layer) == SPY_LAYER_DRIVER && (record) == SPY_TRACED && (contract) != SPY_CONTRACT_INIT)

/*
 * From which detail level of the outermost call on the assembly may count a call of the driver's
 * and jump: its inspector then has nothing to add. For a row that is only counted, and keeps no table, any level is
 * enough: if the outermost call is seen to wait, it gets a record, and of questions to the GPU only the program's own matter.
 */
enum {
	STATE_none,
#define INSPECTOR(name, before, after, stateful, ...) STATE_##name = (stateful),
#include "inspect/inspectors.def"
};
#define elide_from(layer, record, contract, inspector) \
	((layer) != SPY_LAYER_DRIVER                       ? SPY_DETAIL_NEVER \
	 : (record) == SPY_COUNTED                         ? elide_counted_from(inspector) \
	 : !counts_when_nested(layer, record, contract)    ? SPY_DETAIL_NEVER \
	 : SPY_INSPECTOR_##inspector == SPY_INSPECTOR_none ? SPY_DETAIL_TIME \
	 : STATE_##inspector == 0                          ? SPY_DETAIL_ARGUMENTS \
	 : STATE_##inspector == 2                          ? SPY_DETAIL_ALL \
							   : SPY_DETAIL_NEVER)
#define elide_counted_from(inspector) (STATE_##inspector == 0 ? SPY_DETAIL_COUNT : SPY_DETAIL_NEVER)

/* While recording is dormant. Of the others events carry a capture from stream to stream. */
#define keeps_tables(inspector) \
	(STATE_##inspector != 0 ? SPY_KEEPS_TABLES \
	 : SPY_INSPECTOR_##inspector == SPY_INSPECTOR_event_record || \
			 SPY_INSPECTOR_##inspector == SPY_INSPECTOR_event_record_flags || \
			 SPY_INSPECTOR_##inspector == SPY_INSPECTOR_stream_wait_event \
		 ? SPY_KEEPS_CAPTURES \
		 : SPY_KEEPS_NOTHING)

#define SLOT(name, which, layer_, record_, contract_, inspector_) \
	[SPY_FN_##name * 3 + (which)] = { \
		.fn = SPY_FN_##name, \
		.record = SPY_##record_, \
		.layer = (layer_), \
		.counter = COUNTER_##record_(name), \
		.window = SPY_WINDOW, \
		.inspector = SPY_INSPECTOR_##inspector_, \
		.count_when_nested = \
			counts_when_nested(layer_, SPY_##record_, SPY_CONTRACT_##contract_), \
		.elide_from = \
			elide_from(layer_, SPY_##record_, SPY_CONTRACT_##contract_, inspector_), \
		.keeps = keeps_tables(inspector_), \
		.makes = makes(SPY_CONTRACT_##contract_, SPY_INSPECTOR_##inspector_), \
		.sampled = sampled(layer_, SPY_##record_, SPY_CONTRACT_##contract_)},
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

const struct spy_generation spy_generations[3] = {
	{SPY_LAYER_RT11, "libcudart.so.11.0"},
	{SPY_LAYER_RT12, "libcudart.so.12"},
	{SPY_LAYER_RT13, "libcudart.so.13"},
};

bool spy_slots_is_runtime(int fn)
{
	return fn < SPY_RUNTIME_ROWS;
}

static int compare_names(const void *name, const void *row)
{
	return strcmp(name, *(const char *const *)row);
}

int spy_slots_find(const char *name)
{
	const char *const *found;

	found = bsearch(name, spy_names, SPY_RUNTIME_ROWS, sizeof(name), compare_names);
	if (!found)
		found = bsearch(name, spy_names + SPY_RUNTIME_ROWS, SPY_FN_COUNT - SPY_RUNTIME_ROWS,
				sizeof(name), compare_names);
	return found ? (int)(found - spy_names) : -1;
}

uint32_t spy_slots_any(int fn)
{
	uint32_t slot = (uint32_t)fn * 3;

	while (!spy_slots_exist(slot))
		slot++;
	return slot;
}

const char *spy_slots_version(uint64_t index, int fn)
{
	if (!spy_slots_is_runtime(fn) || index >= SPY_FN_COUNT * 3)
		return NULL;
	return spy_generations[index % 3].version;
}

void spy_slots_init(void)
{
	for (size_t i = 0; i < SPY_FN_COUNT * 3; i++)
		if (strstr(spy_names[spy_slots[i].fn], "EGL"))
			spy_slots[i].window = SPY_WINDOW_EGL;
}

uint32_t spy_slots_of_layer(int fn, int layer)
{
	uint32_t slot = (uint32_t)fn * 3;

	for (uint32_t g = 0; spy_slots_is_runtime(fn) && g < 3; g++)
		if (layer == spy_generations[g].layer)
			slot += g;
	return slot;
}

/* Before its real function is. Another interposer's may allocate and free what it was not asked
 * for. */
void spy_slots_set_foreign(struct spy_slot *slot, bool foreign)
{
	slot->foreign = foreign;
	if (foreign && slot->elide_from == SPY_DETAIL_ALL)
		slot->elide_from = SPY_DETAIL_NEVER;
}

/* ---- selection ------------------------------------------------------------------------------ */

void spy_slots_disable(void)
{
	for (size_t i = 0; i < SPY_SLOTS; i++) {
		spy_slots[i].record = SPY_TRANSPARENT;
		spy_slots[i].inspector = 0;
		spy_slots[i].keeps = SPY_KEEPS_NOTHING;
	}
}

/*
 * Counters of rows that are traced in the list, and counted because the user wants it or where they
 * are nested, follow those of the list. A page of the board has fewer than there are rows, so a row
 * gets one when it is first needed.
 */
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
	/* Again: a session that became active in between listed it, or is seen here
	 * (begin_alone). */
	name_counter(counter, slot->fn);
	return counter;
}

/* Recording a call costs a tenth of that at most (docs/PERFORMANCE.md). */
#define LONG_US 2

uint8_t spy_slots_timed[SPY_FN_COUNT] = {[0 ... SPY_FN_COUNT - 1] = SPY_TIMED_LEAST};
static uint64_t worth_a_record = UINT64_MAX; /* cycles */

void spy_slots_begin(uint64_t frequency)
{
	worth_a_record = frequency / (1000000 / LONG_US);
	if (spy_options.nogetters)
		memset(spy_slots_timed, 0, sizeof(spy_slots_timed));
}

void spy_slots_count(uint16_t fn)
{
	spy_slots_timed[fn] = 0;
	for (size_t i = fn * 3; i < fn * 3 + 3u; i++)
		if (spy_slots_exist(i) && spy_slots[i].record == SPY_TRACED)
			spy_slots[i].record = SPY_COUNTED;
}

/* Threads may do so at once: a step may be lost. */
bool spy_slots_took(const struct spy_slot *slot, uint64_t cycles)
{
	uint8_t *timed = &spy_slots_timed[slot->fn];
	uint8_t now = __atomic_load_n(timed, __ATOMIC_RELAXED);
	bool is_long = cycles >= worth_a_record;

	if (is_long && now + SPY_TIMED_LEAST <= SPY_TIMED_AMONG)
		now += SPY_TIMED_LEAST;
	else if (!is_long && now > SPY_TIMED_LEAST)
		now--;
	__atomic_store_n(timed, now, __ATOMIC_RELAXED);
	return is_long;
}

void spy_slots_prepare(struct spy_slot *slot)
{
	if (slot->record == SPY_COUNTED && slot->counter == SPY_COUNTER_NONE &&
	    spy_slots_number(slot) == SPY_COUNTER_NONE)
		slot->record = SPY_TRACED;
}

void spy_slots_trace(uint16_t fn)
{
	for (size_t i = fn * 3; i < fn * 3 + 3u; i++)
		if (spy_slots_exist(i) && spy_slots[i].record != SPY_TRANSPARENT) {
			spy_slots[i].record = SPY_TRACED;
			spy_slots[i].count_when_nested = false;
			spy_slots[i].elide_from = SPY_DETAIL_NEVER;
		}
}

void spy_slots_list_counters(struct spy_board *board)
{
	for (size_t i = 0; i < SPY_FN_COUNT * 3; i++)
		if (spy_slots_exist(i) && spy_slot_counter(&spy_slots[i]) < SPY_BOARD_COUNTERS)
			__atomic_store_n(&board->counter_fn[spy_slots[i].counter], spy_slots[i].fn,
					 __ATOMIC_RELAXED);
}

/* Once more (spy_slots_number). */
void spy_slots_first_records(void)
{
	spy_slots_list_counters(spy_session->board);
}
