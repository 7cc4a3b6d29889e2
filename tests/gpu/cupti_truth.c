/*
 * tests/gpu/cupti_truth.c: what CUPTI says a program did, to hold cudaspy's trace against. A
 * library to preload (or to name in CUDA_INJECTION64_PATH). It counts the calls of each function of
 * the runtime and the driver, and lists every copy with the function that asked for it. At exit the
 * file $CUPTI_TRUTH_OUT has lines of tab-separated fields:
 *
 *   copy  function  inner  kind  source  destination  bytes  async  stream  graph
 *   call  runtime|driver  function  calls  of them inside another call
 *   dropped  records
 *
 * function is the outermost call, inner the driver call inside it. on_call runs on the threads of
 * the application, copies_done mostly on one of CUPTI's own.
 */
#define _GNU_SOURCE
#include "cupti_load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define WHO "cupti_truth"
#define FUNCTION_MAX 2048 /* callback ids of a domain; CUDA 13.0 has 807 */
#define BUFFER_BYTES (4u << 20)

enum side { RUNTIME, DRIVER };

struct function {
	_Atomic(const char *) name;
	atomic_ulong calls, nested;
	atomic_int copies; /* may lead to copies: its correlation ids are kept */
};

static struct function functions[2][FUNCTION_MAX];

/* By correlation id: which call it was. 0: none. */
struct origin {
	uint16_t outer_side : 1, outer : 15; /* callback id */
	uint16_t inner; /* of the driver */
};

static struct {
	pthread_mutex_t lock;
	struct origin *origins;
	uint32_t origin_max;
	FILE *out;
	size_t dropped;
	int off; /* a forked child's copy of it all; or all is written */
} truth = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread int depth;
static __thread uint16_t outer_side, outer_id;

/* ---- calls ---------------------------------------------------------------------------------- */

/*
 * The exported symbol behind a callback's name: cudaMemcpyAsync_ptsz_v7000 -> cudaMemcpyAsync_ptsz.
 * A driver function's suffix is part of its symbol.
 */
static const char *symbol_name(enum side side, uint32_t id)
{
	CUpti_CallbackDomain domain =
		side == RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
	const char *given = NULL;
	char *name, *version;

	if (cupti.cuptiGetCallbackName(domain, id, &given) != CUPTI_SUCCESS || !given)
		given = "unknown";
	name = strdup(given);
	if (!name)
		return "unknown";
	version = strrchr(name, '_');
	if (side == RUNTIME && version && version[1] == 'v' && strlen(version) >= 6 &&
	    strspn(version + 2, "0123456789") == strlen(version + 2))
		*version = '\0';
	return name;
}

static struct function *function_of(enum side side, uint32_t id)
{
	struct function *function = &functions[side][id];

	if (!atomic_load(&function->name)) {
		const char *name = symbol_name(side, id);

		atomic_store(&function->copies, strcasestr(name, "memcpy") ||
							strstr(name, "GraphLaunch") ||
							strstr(name, "Prefetch"));
		atomic_store(&function->name, name); /* twice at worst, by two first callers */
	}
	return function;
}

static void remember(uint32_t correlation, enum side side, uint32_t id)
{
	pthread_mutex_lock(&truth.lock);
	if (correlation >= truth.origin_max) {
		uint32_t max = correlation + correlation / 2 + 4096;
		struct origin *more = realloc(truth.origins, max * sizeof(*more));

		if (!more) {
			pthread_mutex_unlock(&truth.lock);
			return;
		}
		memset(more + truth.origin_max, 0, (max - truth.origin_max) * sizeof(*more));
		truth.origins = more;
		truth.origin_max = max;
	}
	truth.origins[correlation].outer_side = outer_side & 1;
	truth.origins[correlation].outer = outer_id & 0x7fff;
	if (side == DRIVER)
		truth.origins[correlation].inner = (uint16_t)id;
	pthread_mutex_unlock(&truth.lock);
}

static void finish_early(void);

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			     const void *argument)
{
	static atomic_flag first = ATOMIC_FLAG_INIT;
	enum side side = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? RUNTIME : DRIVER;
	const CUpti_CallbackData *data = argument;
	struct function *function;

	(void)user;
	if (truth.off || id >= FUNCTION_MAX)
		return;
	if (data->callbackSite == CUPTI_API_EXIT) {
		depth -= depth > 0;
		return;
	}
	if (!atomic_flag_test_and_set(&first))
		atexit(finish_early);
	function = function_of(side, id);
	atomic_fetch_add(&function->calls, 1);
	if (depth++) {
		atomic_fetch_add(&function->nested, 1);
	} else {
		outer_side = (uint16_t)side;
		outer_id = (uint16_t)id;
	}
	if (atomic_load(&function->copies))
		remember(data->correlationId, side, id);
}

/* ---- copies --------------------------------------------------------------------------------- */

static const char *memory_kind(uint8_t kind)
{
	static const char *const names[] = {"unknown", "pageable", "pinned", "device",
					    "array",   "managed",  "device", "managed"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

static const char *copy_kind(uint8_t kind)
{
	static const char *const names[] = {"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					    "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

/* Called with the lock held. */
static FILE *output(void)
{
	const char *path = getenv("CUPTI_TRUTH_OUT");
	char other[4096];

	if (truth.out || !path || truth.off)
		return truth.out;
	truth.out = fopen(path, "wxe");
	if (!truth.out) { /* another process of the tree was first */
		snprintf(other, sizeof(other), "%s.%d", path, (int)getpid());
		truth.out = fopen(other, "we");
	}
	if (!truth.out)
		fprintf(stderr, WHO ": cannot write %s\n", path);
	return truth.out;
}

static void copy_write(uint32_t correlation, uint32_t runtime_correlation, uint8_t kind,
		       uint8_t source, uint8_t destination, uint64_t bytes, uint8_t flags,
		       uint32_t stream, uint32_t graph)
{
	struct origin origin = {0};
	const char *outer = NULL, *inner = NULL;

	pthread_mutex_lock(&truth.lock);
	if (correlation < truth.origin_max)
		origin = truth.origins[correlation];
	if (!origin.outer && runtime_correlation && runtime_correlation < truth.origin_max)
		origin = truth.origins[runtime_correlation];
	if (origin.outer)
		outer = atomic_load(&functions[origin.outer_side][origin.outer].name);
	if (origin.inner)
		inner = atomic_load(&functions[DRIVER][origin.inner].name);
	if (output())
		fprintf(truth.out, "copy\t%s\t%s\t%s\t%s\t%s\t%llu\t%d\t%u\t%u\n",
			outer ? outer : "unknown", inner ? inner : "-", copy_kind(kind),
			memory_kind(source), memory_kind(destination), (unsigned long long)bytes,
			(flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0, stream, graph);
	pthread_mutex_unlock(&truth.lock);
}

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *record_cnt_max)
{
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*size = *buffer ? BUFFER_BYTES : 0;
	*record_cnt_max = 0;
}

static void CUPTIAPI copies_done(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
				 size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context;
	(void)stream;
	(void)size;
	while (!truth.off && valid &&
	       cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
			const CUpti_ActivityMemcpy6 *copy = (const void *)record;

			copy_write(copy->correlationId, copy->runtimeCorrelationId, copy->copyKind,
				   copy->srcKind, copy->dstKind, copy->bytes, copy->flags,
				   copy->streamId, copy->graphId);
		} else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
			const CUpti_ActivityMemcpyPtoP4 *copy = (const void *)record;

			copy_write(copy->correlationId, 0, copy->copyKind, copy->srcKind,
				   copy->dstKind, copy->bytes, copy->flags, copy->streamId,
				   copy->graphId);
		}
	}
	free(buffer);
}

/* ---- start and end -------------------------------------------------------------------------- */

/* While CUDA is still whole: what is left in CUPTI's buffers. Calls are counted on. */
static void finish_early(void)
{
	if (truth.off)
		return;
	cupti.cuptiActivityFlushAll(1);
	cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &truth.dropped);
}

__attribute__((destructor)) static void finish(void)
{
	static const char *const sides[] = {"runtime", "driver"};
	int side, id;

	if (truth.off)
		return;
	pthread_mutex_lock(&truth.lock);
	for (side = 0; side < 2; side++) {
		for (id = 0; id < FUNCTION_MAX; id++) {
			struct function *function = &functions[side][id];

			if (!atomic_load(&function->calls) || !output())
				continue;
			fprintf(truth.out, "call\t%s\t%s\t%lu\t%lu\n", sides[side],
				atomic_load(&function->name), atomic_load(&function->calls),
				atomic_load(&function->nested));
		}
	}
	if (truth.out) {
		fprintf(truth.out, "dropped\t%zu\n", truth.dropped);
		fclose(truth.out);
		truth.out = NULL;
	}
	truth.off = 1;
	pthread_mutex_unlock(&truth.lock);
}

static void forget_in_child(void)
{
	truth.off = 1;
}

static void start(void)
{
	CUpti_SubscriberHandle subscriber;

	if (cupti_load(WHO) ||
	    cupti_failed(WHO, "cuptiSubscribe", cupti.cuptiSubscribe(&subscriber, on_call, NULL))) {
		truth.off = 1;
		return;
	}
	pthread_atfork(NULL, NULL, forget_in_child);
	cupti_failed(WHO, "runtime domain",
		     cupti.cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
	cupti_failed(WHO, "driver domain",
		     cupti.cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
	cupti_failed(WHO, "activity callbacks",
		     cupti.cuptiActivityRegisterCallbacks(buffer_wanted, copies_done));
	cupti_failed(WHO, "copies", cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
	cupti_failed(WHO, "peer copies", cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2));
	cupti.cuptiActivityFlushPeriod(500); /* so that a program that is killed leaves something */
}

/* The driver calls this in a library that CUDA_INJECTION64_PATH names. */
int InitializeInjection(void);
int InitializeInjection(void)
{
	static int started;

	if (!started++ && getenv("CUPTI_TRUTH_OUT"))
		start();
	return 1;
}

__attribute__((constructor)) static void constructor(void)
{
	if (getenv("LD_PRELOAD") && !getenv("CUDA_INJECTION64_PATH"))
		InitializeInjection();
}
