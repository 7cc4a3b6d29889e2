/*
 * shim/inspect/inspect_launch.c: which kernel is launched, and in which stream. Runs on the
 * application's threads: around launches, around the calls that make a kernel's handle, and, from
 * ELF constructors before any session and perhaps before our own, around __cudaRegisterFunction.
 *
 * A launch finds its kernel's number in a table of the thread's own; behind that lies a lock-free
 * map of all handles. What neither knows is resolved once, after the first such launch: a host
 * function by what the compiled code registered, a driver's handle by asking the driver.
 */
#include <sys/mman.h>
#include "cudaspy/function_numbers.h"
#include "hook/resolve.h"
#include "inspect/cuda_layout.h"
#include "inspect/inspect_common.h"
#include "record/kernel_names.h"
#include "state/session.h"

/* Places of the rows. */
enum { FUNCTION = 0, STREAM = 1, CONFIG = 1, PARAMS = 0 };
enum { FATBIN = 0, HOST_FUNCTION, DEVICE_NAME };
enum { MODULE = 1, OUT = 3, SOURCE = 4, NAME = 4 };

static struct spy_handle_map kernels; /* handle -> KNOWN | number; number 0: it has no name */
static uint32_t generation = 1; /* of `kernels`: counts up when a handle gets another number */

#define KNOWN (1ull << 32)

static void know(uint64_t handle, uint32_t number)
{
	if (spy_handle_get(&kernels, handle) == (KNOWN | number))
		return;
	spy_handle_set(&kernels, handle, KNOWN | number);
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
}

/* ---- what compiled code registered ---------------------------------------------------------- */

/*
 * A program can register tens of thousands of kernels and launch a hundred of them, so registering
 * only notes two pointers; the index is made when the first kernel has to be named. The names lie
 * in the registering module and stay as long as it is registered.
 */
#define CHUNK 4096
#define CHUNKS 4096

struct registered {
	uint64_t host_function;
	const char *name; /* NULL: unregistered */
};

static struct {
	struct spy_lock lock;
	bool unsure; /* a binary is gone, and could not be taken out: names may point to nothing */
	uint64_t count, indexed;
	struct registered *chunk[CHUNKS];
	uint64_t binaries, binaries_max;
	struct binary {
		uint64_t handle;
		uint64_t first; /* its functions are [first, the next one's first) */
	} * binary;
} registry;

static struct spy_handle_map host_functions; /* host function -> 1 + its place in the registry */

static struct registered *registered(uint64_t i)
{
	return &registry.chunk[i / CHUNK][i % CHUNK];
}

static void *zeroed(uint64_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* In an order that a fork may cut anywhere: the child finds the table as it was, or as it is to
 * be. */
static bool begin_binary(uint64_t handle)
{
	uint64_t n = registry.binaries, max = registry.binaries_max;
	struct binary *grown, *old = registry.binary;

	if (n && registry.binary[n - 1].handle == handle)
		return true;
	if (n == max) {
		max = max ? 2 * max : 256;
		grown = zeroed(max * sizeof(*grown));
		if (!grown)
			return false;
		for (uint64_t i = 0; i < n; i++)
			grown[i] = old[i];
		__atomic_store_n(&registry.binary, grown, __ATOMIC_RELEASE);
		__atomic_store_n(&registry.binaries_max, max, __ATOMIC_RELEASE);
		if (old)
			munmap(old, n * sizeof(*grown));
	}
	registry.binary[n] = (struct binary){.handle = handle, .first = registry.count};
	__atomic_store_n(&registry.binaries, n + 1, __ATOMIC_RELEASE);
	return true;
}

static void append(uint64_t host_function, const char *name)
{
	uint64_t chunk = registry.count / CHUNK;

	if (chunk == CHUNKS)
		return;
	if (!registry.chunk[chunk])
		registry.chunk[chunk] = zeroed(CHUNK * sizeof(struct registered));
	if (!registry.chunk[chunk])
		return;
	*registered(registry.count) = (struct registered){host_function, name};
	__atomic_store_n(&registry.count, registry.count + 1,
			 __ATOMIC_RELEASE); /* a fork may cut */
}

void inspect_register_function(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t host_function = arg(frame, self, HOST_FUNCTION);
	const char *name = (const char *)arg(frame, self, DEVICE_NAME);

	if (!spy_lock_table(&registry.lock))
		return; /* it will have no name */
	if (host_function && name && begin_binary(arg(frame, self, FATBIN)))
		append(host_function, name);
	spy_unlock(&registry.lock);
}

/* The lock is held. */
static void forget_binary(uint64_t first, uint64_t end)
{
	for (uint64_t i = first; i < end; i++) {
		struct registered *gone = registered(i);

		if (spy_handle_get(&host_functions, gone->host_function) == i + 1)
			spy_handle_set(&host_functions, gone->host_function, 0);
		if (spy_handle_get(&kernels, gone->host_function))
			spy_handle_set(&kernels, gone->host_function, 0);
		gone->name = NULL;
	}
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
}

void inspect_unregister_fatbin(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t handle = arg(frame, self, FATBIN);

	if (!spy_lock_table(&registry.lock)) {
		__atomic_store_n(&registry.unsure, true, __ATOMIC_RELEASE);
		return;
	}
	for (uint64_t i = 0; i < registry.binaries; i++) {
		bool last = i + 1 == registry.binaries;

		if (registry.binary[i].handle != handle)
			continue;
		forget_binary(registry.binary[i].first,
			      last ? registry.count : registry.binary[i + 1].first);
		registry.binary[i].handle = 0; /* the next binary may get the same one */
	}
	spy_unlock(&registry.lock);
}

static const char *registered_name(uint64_t host_function)
{
	const char *name = NULL;
	uint64_t place;

	if (!spy_lock_table(&registry.lock))
		return NULL;
	for (; registry.indexed < registry.count; registry.indexed++) {
		struct registered *new = registered(registry.indexed);

		if (new->name)
			spy_handle_set(&host_functions, new->host_function, registry.indexed + 1);
	}
	place = spy_handle_get(&host_functions, host_function);
	if (place && !__atomic_load_n(&registry.unsure, __ATOMIC_ACQUIRE))
		name = registered(place - 1)->name;
	spy_unlock(&registry.lock);
	return name;
}

/* Another handle of a registered function, for the time that its binary is registered. */
static void register_alias(uint64_t alias, uint64_t host_function)
{
	uint64_t place, i = 0;

	if (!spy_lock_table(&registry.lock))
		return;
	place = spy_handle_get(&host_functions, host_function);
	while (place && i + 1 < registry.binaries && registry.binary[i + 1].first < place)
		i++;
	if (place && begin_binary(registry.binary[i].handle))
		append(alias, registered(place - 1)->name);
	spy_unlock(&registry.lock);
}

/* What was registered stays: a forked child runs no constructors. */
void spy_kernels_reset(void)
{
	if (!spy_lock_table(&registry.lock))
		return;
	spy_handle_reset(&kernels);
	spy_handle_reset(&host_functions);
	registry.indexed = 0;
	generation++;
	spy_unlock(&registry.lock);
}

void spy_kernels_locks(spy_visit_lock *visit)
{
	visit(&registry.lock);
	visit(&kernels.lock);
	visit(&host_functions.lock);
}

/* ---- numbers of handles --------------------------------------------------------------------- */

typedef int get_name(const char **name, uint64_t handle);

/* A driver's launch takes a CUfunction or a CUkernel. The handle was good for a launch, and each of
 * the two questions refuses the other sort of handle (error 400; driver 580). */
static const char *ask_name(uint64_t handle)
{
	get_name *of_function = (get_name *)spy_resolve_driver(SPY_FN_cuFuncGetName);
	get_name *of_kernel = (get_name *)spy_resolve_driver(SPY_FN_cuKernelGetName);
	const char *name = NULL;

	if (of_function && !of_function(&name, handle) && name)
		return name;
	name = NULL;
	if (of_kernel && !of_kernel(&name, handle))
		return name;
	return NULL;
}

/* Number of a handle that may be new to us; it was just used in a call that succeeded. */
static uint32_t resolve(struct spy_frame *frame, uint64_t handle, bool drivers)
{
	uint64_t known = spy_handle_get(&kernels, handle), begun;
	const char *name;
	uint32_t number;

	if (known)
		return (uint32_t)known;
	if (!spy_session_active())
		return 0;
	begun = spy_overhead_begin();
	name = registered_name(handle);
	if (!name && drivers)
		name = ask_name(handle);
	number = spy_kernel_number(name);
	know(handle, number);
	spy_overhead_end(frame->thread, begun);
	return number;
}

static inline struct spy_kernel_hit *hit_of(struct spy_frame *frame, uint64_t handle)
{
	uint64_t hash = handle >> 4 ^ handle >> 11;

	return &frame->thread->inspect.kernels[hash % SPY_KERNEL_HITS];
}

/* False: never met. */
static inline bool look_up(struct spy_frame *frame, uint64_t handle, uint32_t *number)
{
	struct spy_kernel_hit *hit = hit_of(frame, handle);
	uint32_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
	uint64_t known;

	if (hit->handle == handle && hit->generation == now) {
		*number = hit->number;
		return true;
	}
	known = spy_handle_get(&kernels, handle);
	*number = (uint32_t)known;
	if (!known)
		return false;
	*hit = (struct spy_kernel_hit){.handle = handle, .generation = now, .number = *number};
	return true;
}

/* ---- launches ------------------------------------------------------------------------------- */

static void describe_launch(struct spy_frame *frame, uint64_t function, uint64_t stream)
{
	struct spy_details *details = &frame->details;

	set_event(frame, SPY_EV_LAUNCH);
	details->stream = stream_or_default(frame, stream);
	details->captured = capturing(frame, details->stream);
	look_up(frame, function, &details->kernel);
}

void inspect_launch(struct spy_frame *frame, const struct spy_inspector *self)
{
	describe_launch(frame, arg(frame, self, FUNCTION), arg(frame, self, STREAM));
}

void inspect_launch_ex(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_launch_config *config = (const void *)arg(frame, self, CONFIG);

	describe_launch(frame, arg(frame, self, FUNCTION), config ? config->stream : 0);
}

void inspect_launch_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t function = arg(frame, self, FUNCTION);
	uint32_t *number = &frame->details.kernel;

	if (*number || !succeeded(frame) || look_up(frame, function, number))
		return;
	*number = resolve(frame, function, frame->slot->layer == SPY_LAYER_DRIVER);
}

/* One kernel on several devices: the first stands for all. */
void inspect_launch_rt_multi(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_rt_launch_params *first = (const void *)arg(frame, self, PARAMS);

	if (first)
		describe_launch(frame, first->function, first->stream);
}

void inspect_launch_cu_multi(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_cu_launch_params *first = (const void *)arg(frame, self, PARAMS);

	if (first)
		describe_launch(frame, first->function, first->stream);
}

/* ---- handles made --------------------------------------------------------------------------- */

/* One handle made of another, or of a host function: the same kernel. */
void inspect_kernel_copied(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t handle = output(frame, self, OUT);
	uint64_t source = arg(frame, self, SOURCE), known;
	const char *name;

	if (!handle)
		return;
	frame->details.object = handle;
	known = spy_handle_get(&kernels, source);
	if (known) {
		know(handle, (uint32_t)known);
		return;
	}
	/* __cudaGetKernel comes before the session: nothing has a number yet */
	name = registered_name(source);
	if (!name)
		return;
	if (spy_session_active())
		know(handle, spy_kernel_number(name));
	else
		register_alias(handle, source);
}

void inspect_kernel_named(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t handle = output(frame, self, OUT), begun;
	const char *name = (const char *)arg(frame, self, NAME);

	if (!handle || !name || !spy_session_active())
		return;
	begun = spy_overhead_begin();
	know(handle, spy_kernel_number(name));
	spy_overhead_end(frame->thread, begun);
}

/* Handles of the module's functions may come back as other kernels': those calls will say so. What
 * could not be named may become so. */
void inspect_module_unloaded(struct spy_frame *frame, const struct spy_inspector *self)
{
	(void)frame;
	(void)self;
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
}
