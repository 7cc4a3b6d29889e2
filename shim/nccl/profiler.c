/*
 * shim/nccl/profiler.c: the functions that NCCL calls, for each version of its profiler interface. Runs on the program's
 * threads, on NCCL's, and on the driver's.
 *
 * NCCL gets no error from here, whatever happens: it would go on without a profiler, or not at all. An event without a
 * handle is one that it says no more of.
 */
#include <dlfcn.h>
#include <string.h>
#include "hook/loader.h"
#include "nccl/nccl_layout.h"
#include "nccl/operations.h"
#include "nccl/profiler.h"
#include "nccl/words.h"
#include "state/session.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

bool spy_nccl_serving;

/* ---- communicators ------------------------------------------------------------------------------- */

static int events_of(int interface)
{
	return NCCL_EVENT_COLLECTIVE | NCCL_EVENT_P2P | (interface >= 3 ? NCCL_EVENT_CHANNEL : 0) |
	       (interface >= 6 ? NCCL_EVENT_COPIES : 0);
}

/*
 * NCCL's set of events, which it looks at whenever operations are submitted: what channels do is only asked for as often
 * as spy_nccl_paced says. The set is the library's, and gone with it: it is not touched without communicators, nor where
 * there are two such libraries in a process.
 */
static int *events; /* NULL: none, or several */
static int alive; /* communicators */
static bool several;

static void begin_events(int *mask)
{
	int *other = __atomic_exchange_n(&events, mask, __ATOMIC_RELAXED);

	__atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED);
	if (other && other != mask)
		__atomic_store_n(&several, true, __ATOMIC_RELAXED);
}

static void end_events(void)
{
	if (__atomic_sub_fetch(&alive, 1, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(&events, NULL, __ATOMIC_RELAXED);
}

/* NULL: it is not to be touched. */
static int *events_to_change(void)
{
	return __atomic_load_n(&several, __ATOMIC_RELAXED)
		       ? NULL
		       : __atomic_load_n(&events, __ATOMIC_RELAXED);
}

static void ask_for_channels(int interface, bool wanted)
{
	int *mask = events_to_change();

	if (mask)
		__atomic_store_n(mask, events_of(interface) & ~(wanted ? 0 : NCCL_EVENT_CHANNEL),
				 __ATOMIC_RELAXED);
}

/*
 * For each operation whose channels it was asked for when it was captured, NCCL puts a function on the host into the graph,
 * by which it tells of the operation whenever the graph runs. The operation waits for it, and the functions run one by one (docs/PERFORMANCE.md). So
 * of a graph one operation alone is asked for: not its first, which the GPU may come to before the function has run.
 */
#define CAPTURED_FOLLOWED \
	4 /* or the one before: some versions look at the set before the call is known, some behind */
static uint32_t captured; /* operations of the graph that is being captured */
static bool restore; /* the set of events is one for captures */

/* Not called by NCCL: so its last communicator, and with it the set, may go at any time but while they are held. */
void spy_nccl_capture_began(void)
{
	int *mask;

	__atomic_store_n(&captured, 0, __ATOMIC_RELAXED);
	if (!events_to_change() || !spy_nccl_comms_hold())
		return;
	mask = events_to_change();
	if (mask) {
		__atomic_fetch_and(mask, ~NCCL_EVENT_CHANNEL, __ATOMIC_RELAXED);
		__atomic_store_n(&restore, true, __ATOMIC_RELAXED);
	}
	spy_nccl_comms_let_go();
}

/* The program calls NCCL. */
static void pace_call(int interface, bool is_captured)
{
	if (is_captured) {
		uint32_t n = __atomic_add_fetch(&captured, 1, __ATOMIC_RELAXED);

		__atomic_store_n(&restore, true, __ATOMIC_RELAXED);
		ask_for_channels(interface, n + 1 == CAPTURED_FOLLOWED);
	} else if (__atomic_load_n(&restore, __ATOMIC_RELAXED)) {
		__atomic_store_n(&restore, false, __ATOMIC_RELAXED);
		__atomic_store_n(&captured, 0, __ATOMIC_RELAXED);
		ask_for_channels(interface, spy_nccl_paced_next());
	}
}

/* Before an operation is looked at: are its channels followed? Later ones are, or not, from here on. */
static bool pace(int interface)
{
	bool followed, change = false;

	if (!events_to_change())
		return true;
	pace_call(interface, false);
	followed = spy_nccl_paced(&change);
	if (change)
		ask_for_channels(interface, spy_nccl_paced_next());
	return followed;
}

static int begin(int interface, void **context, int *mask, const char *name, uint64_t hash,
		 int nodes, int ranks, int rank)
{
	struct spy_nccl_comm comm = {.interface = (uint16_t)interface,
				     .hash = hash,
				     .rank = (uint32_t)rank,
				     .ranks = (uint32_t)ranks,
				     .nodes = (uint32_t)nodes};

	*context = NULL;
	if (!spy_nccl_serving || !spy_session || spy_session->state == SPY_SESSION_FAILED) {
		__atomic_store_n(mask, 0, __ATOMIC_RELAXED);
		return NCCL_SUCCESS;
	}
	if (name)
		memcpy(comm.name, name, strnlen(name, sizeof(comm.name) - 1));
	__atomic_store_n(mask, events_of(interface), __ATOMIC_RELAXED);
	begin_events(mask);
	*context = (void *)spy_nccl_comm_begin(&comm);
	return NCCL_SUCCESS;
}

static int finalize(void *context)
{
	if (context)
		end_events();
	spy_nccl_comm_end((spy_nccl_handle)context);
	return NCCL_SUCCESS;
}

/* ---- what an event's descriptor says, by version --------------------------------------------------- */

static bool is_p2p(int interface, const struct nccl_descriptor *event)
{
	uint64_t type = interface < 5 ? (uint8_t)event->head.type : event->head.type;

	return type == NCCL_EVENT_P2P;
}

static void read_1(const struct nccl_descriptor *event, struct spy_nccl_said *said)
{
	const struct nccl_collective_1 *collective = &event->collective_1;
	const struct nccl_p2p_1 *p2p = &event->p2p_1;

	if (is_p2p(1, event)) {
		said->hash = p2p->hash;
		said->name = p2p->name;
		said->func = spy_nccl_func_numbered(p2p->func);
		said->bytes_each = spy_nccl_bytes_numbered(p2p->datatype);
		said->count = p2p->count;
		said->peer = p2p->peer;
		return;
	}
	said->hash = collective->hash;
	said->name = collective->name;
	said->seq = collective->seq;
	said->func = spy_nccl_func_numbered(collective->func);
	said->bytes_each = spy_nccl_bytes_numbered(collective->datatype);
	said->count = collective->count;
	said->peer = collective->root;
	said->algorithm = spy_nccl_algorithm_numbered(collective->algorithm);
	said->protocol = spy_nccl_protocol_numbered(collective->protocol);
	said->channels = collective->channels;
}

#define READ_COLLECTIVE(said, collective) \
	do { \
		(said)->seq = (collective)->seq; \
		(said)->func = spy_nccl_func_named((collective)->func); \
		(said)->bytes_each = spy_nccl_bytes_named((collective)->datatype); \
		(said)->count = (collective)->count; \
		(said)->peer = (collective)->root; \
		(said)->algorithm = spy_nccl_algorithm_named((collective)->algorithm); \
		(said)->protocol = spy_nccl_protocol_named((collective)->protocol); \
		(said)->channels = (collective)->channels; \
	} while (0)

#define READ_P2P(said, p2p) \
	do { \
		(said)->func = spy_nccl_func_named((p2p)->func); \
		(said)->bytes_each = spy_nccl_bytes_named((p2p)->datatype); \
		(said)->count = (p2p)->count; \
		(said)->peer = (p2p)->peer; \
	} while (0)

static void read_2_or_3(int interface, const struct nccl_descriptor *event,
			struct spy_nccl_said *said)
{
	said->hash = event->collective_2.hash; /* and of P2P: it lies there, too */
	said->name = event->collective_2.name;
	if (is_p2p(interface, event))
		READ_P2P(said, &event->p2p_2);
	else if (interface == 2)
		READ_COLLECTIVE(said, &event->collective_2);
	else
		READ_COLLECTIVE(said, &event->collective_3);
}

/* With interface 4 a later NCCL does not say how many channels a Send or Recv has: the byte is any. */
static void read_4(int interface, const struct nccl_descriptor *event, struct spy_nccl_said *said)
{
	if (is_p2p(interface, event)) {
		READ_P2P(said, &event->p2p_4);
		said->channels = interface > 4 ? event->p2p_4.channels : 0;
	} else {
		READ_COLLECTIVE(said, &event->collective_4);
	}
}

static void read_copies(const struct nccl_descriptor *event, struct spy_nccl_said *said)
{
	said->seq = event->copies_6.seq;
	said->func = spy_nccl_func_named(event->copies_6.func);
	said->bytes_each = spy_nccl_bytes_named(event->copies_6.datatype);
	said->count = event->copies_6.count;
	said->peer = event->copies_6.root;
	said->flags |= SPY_COLLECTIVE_COPIES;
}

/* ---- events ------------------------------------------------------------------------------------------ */

static inline __attribute__((always_inline)) spy_nccl_handle
submit(int interface, void *context, const struct nccl_descriptor *event, bool copies,
       const struct spy_unwind *from)
{
	bool graph = interface >= 5 && (spy_nccl_handle)event->head.parent == spy_nccl_mark(true);
	struct spy_nccl_said said = {.rank = (uint32_t)event->head.rank,
				     .flags = graph ? SPY_COLLECTIVE_GRAPH : 0};

	said.followed = !graph && pace(interface) && interface >= 3 && !copies;
	if (copies)
		read_copies(event, &said);
	else if (interface == 1)
		read_1(event, &said);
	else if (interface <= 3)
		read_2_or_3(interface, event, &said);
	else
		read_4(interface, event, &said);
	return spy_nccl_submit((spy_nccl_handle)context, &said, from);
}

static inline __attribute__((always_inline)) int start(int interface, void *context, void **handle,
						       const struct nccl_descriptor *event,
						       const struct spy_unwind *from)
{
	uint64_t type = interface < 5 ? (uint8_t)event->head.type : event->head.type;
	spy_nccl_handle answer = 0;

	switch (type) {
	case NCCL_EVENT_GROUP: /* old versions of NCCL tell of operations in groups alone */
		answer = spy_nccl_mark(false);
		break;
	case NCCL_EVENT_COLLECTIVE:
	case NCCL_EVENT_P2P:
		answer = submit(interface, context, event, false, from);
		break;
	case NCCL_EVENT_CHANNEL:
		answer = spy_nccl_channel_begin((spy_nccl_handle)event->head.parent,
						interface >= 4 ? event->channel_4.timer : 0);
		break;
	case NCCL_EVENT_COLLECTIVE_CALL:
		pace_call(interface, event->collective_call_5.captured);
		answer = event->collective_call_5.captured ? spy_nccl_mark(true) : 0;
		break;
	case NCCL_EVENT_P2P_CALL:
		pace_call(interface, event->p2p_call_5.captured);
		answer = event->p2p_call_5.captured ? spy_nccl_mark(true) : 0;
		break;
	case NCCL_EVENT_COPIES:
		answer = submit(interface, context, event, true, from);
		break;
	default:
		break;
	}
	*handle = (void *)answer;
	return NCCL_SUCCESS;
}

static int stop(void *handle)
{
	spy_nccl_stop((spy_nccl_handle)handle);
	return NCCL_SUCCESS;
}

static int record(void *handle, int state, const union nccl_state *argument)
{
	if (state == NCCL_STATE_CHANNEL_STOP && argument)
		spy_nccl_channel_time((spy_nccl_handle)handle, argument->timer);
	return NCCL_SUCCESS;
}

/* ---- the tables that NCCL looks up --------------------------------------------------------------------- */

#define INIT_1(version) \
	static int init_##version(void **context, int *mask) \
	{ \
		return begin(version, context, mask, NULL, 0, 0, 0, 0); \
	}

#define INIT_4(version) \
	static int init_##version(void **context, int *mask, const char *name, uint64_t hash, \
				  int nodes, int ranks, int rank, void *log) \
	{ \
		(void)log; \
		return begin(version, context, mask, name, hash, nodes, ranks, rank); \
	}

#define INIT_5(version) \
	static int init_##version(void **context, uint64_t hash, int *mask, const char *name, \
				  int nodes, int ranks, int rank, void *log) \
	{ \
		(void)log; \
		return begin(version, context, mask, name, hash, nodes, ranks, rank); \
	}

/* Each its own, so that the version is a constant. Their caller is NCCL. The exported name may be the program's, too: then
 * here, too, it is the program's table, so ours have names of their own,
 * and the compiler does not know that they are the same. */
#define SERVE(version, kind) \
	INIT_##kind(version) static __attribute__((noinline)) int start_##version( \
		void *context, void **handle, const struct nccl_descriptor *event) \
	{ \
		struct spy_unwind from = {.ip = (uintptr_t)__builtin_return_address(0), \
					  .sp = (uintptr_t)__builtin_dwarf_cfa(), \
					  .bp = *(const uintptr_t *)__builtin_frame_address(0)}; \
\
		return start(version, context, handle, event, &from); \
	} \
	static const __attribute__((used)) struct nccl_profiler table_##version = { \
		.name = "cudaspy", \
		.init_##kind = init_##version, \
		.start = start_##version, \
		.stop = stop, \
		.record = record, \
		.finalize = finalize}; \
	__asm__(".globl ncclProfiler_v" #version "\n" \
		".type ncclProfiler_v" #version ", @object\n" \
		".size ncclProfiler_v" #version ", 48\n" \
		".set ncclProfiler_v" #version ", table_" #version);

_Static_assert(sizeof(struct nccl_profiler) == 48, ".size");

SERVE(1, 1)
SERVE(2, 1)
SERVE(3, 1)
SERVE(4, 4)
SERVE(5, 5)
SERVE(6, 5)
SERVE(7, 5)

static const struct {
	const char *name;
	const void *own;
} tables[] = {
#define TABLE(version) \
	{ \
		"ncclProfiler_v" #version, &table_##version \
	}
	TABLE(1), TABLE(2), TABLE(3), TABLE(4), TABLE(5), TABLE(6), TABLE(7),
};

#define TABLES (sizeof(tables) / sizeof(*tables))

bool spy_nccl_has_other(void)
{
	for (size_t i = 0; i < TABLES; i++) {
		const void *found = spy_real_dlsym(RTLD_DEFAULT, tables[i].name);

		if ((found && found != tables[i].own) || spy_real_dlsym(RTLD_NEXT, tables[i].name))
			return true;
	}
	return false;
}

void *spy_nccl_look_up(const char *name, void *found)
{
	for (size_t i = 0; found && !spy_nccl_serving && i < TABLES; i++)
		if (found == tables[i].own)
			return spy_real_dlsym(RTLD_NEXT, name);
	return found;
}
