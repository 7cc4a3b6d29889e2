/*
 * analyzer/expect/calibrate_work.c: the program that `cudaspy calibrate` records. Runs in a process
 * of its own, under the shim, alone on its one thread.
 *
 * CUDA is reached through dlsym, so that the analyzer needs no CUDA to be built or to run. Each
 * call is made by the runtime's name and by the driver's, with which programs that contain a static
 * runtime are recorded. A function that is missing or fails is left out, and said.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "calibrate_work.h"

#define REPEATS 24u
#define REPEATS_MIN 20u /* if they take long, all devices together */
#define LOOP_NS 100000000ull /* long */
#define KERNELS 16u
#define LIBRARIES 8u /* of one kernel more */
#define ASKED 4u /* times, for the function of a kernel */

#define COPY_MAX ((size_t)16 << 20)

/* ---- the functions --------------------------------------------------------------------------- */

/* Runtime and driver functions in one row have the same arguments, as machines see them. */
/* clang-format off */
#define CALLS(CALL) \
	CALL(alloc,          "cudaMalloc",                "cuMemAlloc_v2") \
	CALL(release,        "cudaFree",                  "cuMemFree_v2") \
	CALL(alloc_host,     "cudaMallocHost",            "cuMemAllocHost_v2") \
	CALL(alloc_host_ex,  "cudaHostAlloc",             "cuMemHostAlloc") \
	CALL(release_host,   "cudaFreeHost",              "cuMemFreeHost") \
	CALL(pin,            "cudaHostRegister",          "cuMemHostRegister_v2") \
	CALL(unpin,          "cudaHostUnregister",        "cuMemHostUnregister") \
	CALL(alloc_managed,  "cudaMallocManaged",         "cuMemAllocManaged") \
	CALL(alloc_pool,     "cudaMallocAsync",           "cuMemAllocAsync") \
	CALL(release_pool,   "cudaFreeAsync",             "cuMemFreeAsync") \
	CALL(set,            "cudaMemset",                "cuMemsetD8_v2") \
	CALL(set_async,      "cudaMemsetAsync",           "cuMemsetD8Async") \
	CALL(stream_new,     "cudaStreamCreateWithFlags", "cuStreamCreate") \
	CALL(stream_free,    "cudaStreamDestroy",         "cuStreamDestroy_v2") \
	CALL(stream_sync,    "cudaStreamSynchronize",     "cuStreamSynchronize") \
	CALL(stream_wait,    "cudaStreamWaitEvent",       "cuStreamWaitEvent") \
	CALL(event_new,      "cudaEventCreateWithFlags",  "cuEventCreate") \
	CALL(event_free,     "cudaEventDestroy",          "cuEventDestroy_v2") \
	CALL(event_record,   "cudaEventRecord",           "cuEventRecord") \
	CALL(event_sync,     "cudaEventSynchronize",      "cuEventSynchronize") \
	CALL(device_sync,    "cudaDeviceSynchronize",     "cuCtxSynchronize") \
	CALL(library_load,   "cudaLibraryLoadData",       "cuLibraryLoadData") \
	CALL(library_unload, "cudaLibraryUnload",         "cuLibraryUnload") \
	CALL(library_kernel, "cudaLibraryGetKernel",      "cuLibraryGetKernel") \
	CALL(function,       "cudaGetFuncBySymbol",       "cuKernelGetFunction")
/* clang-format on */

enum call {
#define CALL(name, runtime, driver) CALL_##name,
	CALLS(CALL)
#undef CALL
		CALL_COUNT
};

struct side {
	const char *name;
	bool driver;
	void *library;
	void *calls[CALL_COUNT];
	const char *names[CALL_COUNT];
	/* by direction; the runtime has one function for all of them, kinds in its order */
	void *copy[4], *copy_async[4];
	void *launch, *launch_too;
	bool complained[CALL_COUNT + 1]; /* the last one: copies and launches */
};

struct dim {
	unsigned int x, y, z;
};

enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE }; /* as cudaMemcpyKind */

static void load_runtime(struct side *s)
{
	static const char *const files[] = {"libcudart.so.13", "libcudart.so.12",
					    "/usr/local/cuda/lib64/libcudart.so"};
	static const char *const names[] = {
#define CALL(name, runtime, driver) runtime,
		CALLS(CALL)
#undef CALL
	};
	size_t i;

	s->name = "runtime";
	for (i = 0; i < ARRAY_SIZE(files) && !s->library; i++)
		s->library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
	for (i = 0; s->library && i < CALL_COUNT; i++) {
		s->names[i] = names[i];
		s->calls[i] = dlsym(s->library, names[i]);
	}
	for (i = 0; s->library && i < ARRAY_SIZE(s->copy); i++) {
		s->copy[i] = dlsym(s->library, "cudaMemcpy");
		s->copy_async[i] = dlsym(s->library, "cudaMemcpyAsync");
	}
	if (s->library) {
		s->launch = dlsym(s->library, "cudaLaunchKernel");
		s->launch_too = dlsym(s->library, "__cudaLaunchKernel");
	}
}

static void load_driver(struct side *s)
{
	static const char *const names[] = {
#define CALL(name, runtime, driver) driver,
		CALLS(CALL)
#undef CALL
	};
	static const char *const copies[] = {NULL, "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2",
					     "cuMemcpyDtoD_v2"};
	static const char *const copies_async[] = {NULL, "cuMemcpyHtoDAsync_v2",
						   "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2"};
	size_t i;

	s->name = "driver";
	s->driver = true;
	s->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	for (i = 0; s->library && i < CALL_COUNT; i++) {
		s->names[i] = names[i];
		s->calls[i] = dlsym(s->library, names[i]);
	}
	for (i = 1; s->library && i < ARRAY_SIZE(s->copy); i++) {
		s->copy[i] = dlsym(s->library, copies[i]);
		s->copy_async[i] = dlsym(s->library, copies_async[i]);
	}
	if (s->library)
		s->launch = dlsym(s->library, "cuLaunchKernel");
}

/* Says it once; false. */
static bool left_out(struct side *s, enum call call, const char *what, int result)
{
	if (!s->complained[call])
		fprintf(stderr, "cudaspy calibrate: %s: error %d: left out\n", what, result);
	s->complained[call] = true;
	return false;
}

/* A call with these arguments; true if it was made and returned 0. All are wide enough in a
 * register. */
typedef int (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
			uintptr_t);

static bool make(struct side *s, enum call call, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
	int result;

	if (!s->calls[call])
		return false;
	result = ((function)s->calls[call])(a, b, c, d, 0, 0, 0, 0);
	return !result || left_out(s, call, s->names[call], result);
}

#define WORD(x) ((uintptr_t)(x))
#define make0(s, name) make(s, CALL_##name, 0, 0, 0, 0)
#define make1(s, name, a) make(s, CALL_##name, WORD(a), 0, 0, 0)
#define make2(s, name, a, b) make(s, CALL_##name, WORD(a), WORD(b), 0, 0)
#define make3(s, name, a, b, c) make(s, CALL_##name, WORD(a), WORD(b), WORD(c), 0)
#define make4(s, name, a, b, c, d) make(s, CALL_##name, WORD(a), WORD(b), WORD(c), WORD(d))

/* ---- measuring ------------------------------------------------------------------------------- */

struct work {
	struct side *s;
	unsigned int repeats, repeats_min;
	void *stream;
	char *pageable[2], *pinned[2], *device[2]; /* COPY_MAX bytes each */
};

/* while (again(w, &loop)): so often, or for so long. */
struct loop {
	uint64_t begun_ns;
	unsigned int done;
};

static bool again(const struct work *w, struct loop *loop)
{
	if (!loop->done)
		loop->begun_ns = now_ns();
	if (loop->done >= w->repeats ||
	    (loop->done >= w->repeats_min && now_ns() - loop->begun_ns > LOOP_NS))
		return false;
	loop->done++;
	return true;
}

static void measure_alloc(struct work *w)
{
	for (size_t bytes = 256; bytes <= (size_t)256 << 20; bytes *= 4) {
		struct loop loop = {0};
		void *p;

		while (again(w, &loop))
			if (!make2(w->s, alloc, &p, bytes) || !make1(w->s, release, p))
				return;
	}
}

static void measure_managed(struct work *w)
{
	for (size_t bytes = 64 << 10; bytes <= (size_t)16 << 20; bytes *= 16) {
		struct loop loop = {0};
		void *p;

		while (again(w, &loop))
			if (!make3(w->s, alloc_managed, &p, bytes, 1) || !make1(w->s, release, p))
				return;
	}
}

static void measure_pool(struct work *w)
{
	for (size_t bytes = 4 << 10; bytes <= (size_t)64 << 20; bytes *= 16) {
		struct loop loop = {0};
		void *p;

		/* Without a pause, in which the pool would give back what is free. */
		while (again(w, &loop))
			if (!make3(w->s, alloc_pool, &p, bytes, w->stream) ||
			    !make2(w->s, release_pool, p, w->stream))
				return;
		make1(w->s, stream_sync, w->stream);
	}
}

static void measure_pinned(struct work *w)
{
	for (size_t bytes = 4 << 10; bytes <= COPY_MAX; bytes *= 4) {
		struct loop loop = {0}, loop_ex = {0}, loop_pin = {0};
		void *p;

		while (again(w, &loop))
			if (!make2(w->s, alloc_host, &p, bytes) || !make1(w->s, release_host, p))
				break;
		while (again(w, &loop_ex))
			if (!make3(w->s, alloc_host_ex, &p, bytes, 0) ||
			    !make1(w->s, release_host, p))
				break;
		while (again(w, &loop_pin))
			if (!make3(w->s, pin, w->pageable[0], bytes, 0) ||
			    !make1(w->s, unpin, w->pageable[0]))
				break;
	}
}

static void measure_streams(struct work *w)
{
	struct loop loop = {0};

	while (again(w, &loop)) {
		void *stream, *event;

		if (!make2(w->s, stream_new, &stream, 1))
			return;
		make1(w->s, stream_free, stream);
		if (!make2(w->s, event_new, &event, 2))
			return;
		make2(w->s, event_record, event, w->stream);
		make1(w->s, event_sync, event);
		make1(w->s, event_sync, event); /* has nothing to wait for */
		make3(w->s, stream_wait, w->stream, event, 0);
		make1(w->s, stream_sync, w->stream);
		make1(w->s, stream_sync, w->stream); /* nor has this one */
		make0(w->s, device_sync);
		make0(w->s, device_sync);
		make1(w->s, event_free, event);
	}
}

static void measure_set(struct work *w)
{
	for (size_t bytes = 4; bytes <= COPY_MAX; bytes *= 16) {
		struct loop loop = {0};

		while (again(w, &loop)) {
			if (!make3(w->s, set, w->device[0], 0, bytes) ||
			    !make4(w->s, set_async, w->device[0], 0, bytes, w->stream))
				return;
			make0(w->s, device_sync);
		}
	}
}

static bool copy(struct work *w, int kind, bool async, char *to, const char *from, size_t bytes)
{
	void *call = async ? w->s->copy_async[kind] : w->s->copy[kind];
	int result;

	if (!call)
		return false;
	/* The driver's functions do not look at what comes after the stream. */
	if (w->s->driver)
		result = ((function)call)(WORD(to), WORD(from), bytes, WORD(w->stream), 0, 0, 0, 0);
	else
		result = ((function)call)(WORD(to), WORD(from), bytes, (uintptr_t)kind,
					  WORD(w->stream), 0, 0, 0);
	return !result || left_out(w->s, CALL_COUNT, "copies", result);
}

static void measure_copies(struct work *w)
{
	const struct {
		int kind;
		char *to, *from;
	} ways[] = {
		{HOST_TO_DEVICE, w->device[0], w->pageable[0]},
		{HOST_TO_DEVICE, w->device[0], w->pinned[0]},
		{DEVICE_TO_HOST, w->pageable[0], w->device[0]},
		{DEVICE_TO_HOST, w->pinned[0], w->device[0]},
		{DEVICE_TO_DEVICE, w->device[1], w->device[0]},
		{HOST_TO_HOST, w->pinned[1], w->pinned[0]},
		{HOST_TO_HOST, w->pageable[1], w->pageable[0]},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		for (int async = 0; async < 2; async++)
			for (size_t bytes = 4; bytes <= COPY_MAX; bytes *= 4) {
				struct loop loop = {0};

				if (!ways[i].to || !ways[i].from)
					break;
				while (again(w, &loop) && copy(w, ways[i].kind, async, ways[i].to,
							       ways[i].from, bytes))
					make0(w->s, device_sync);
			}
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* A module of empty kernels, whose names no other side has. The caller frees. */
static char *kernel_text(const struct side *s, unsigned int first, unsigned int n)
{
	char *text = xstrdup(".version 6.0\n.target sm_50\n.address_size 64\n"), *longer;

	for (unsigned int i = first; i < first + n; i++) {
		longer = xasprintf("%s.visible .entry cudaspy_%s_%u()\n{\n\tret;\n}\n", text,
				   s->name, i);
		free(text);
		text = longer;
	}
	return text;
}

static bool launch(struct work *w, void *call, void *kernel)
{
	typedef int (*runtime)(void *, struct dim, struct dim, void **, size_t, void *);
	typedef int (*driver)(void *, unsigned int, unsigned int, unsigned int, unsigned int,
			      unsigned int, unsigned int, unsigned int, void *, void **, void **);
	const struct dim one = {1, 1, 1};
	int result;

	if (!call)
		return false;
	if (w->s->driver)
		result = ((driver)call)(kernel, 1, 1, 1, 1, 1, 1, 0, w->stream, NULL, NULL);
	else
		result = ((runtime)call)(kernel, one, one, NULL, 0, w->stream);
	return !result || left_out(w->s, CALL_COUNT, "launches", result);
}

/* The first question for a kernel's function loads its code, as a first launch does. The runtime
 * has symbols there. */
static void ask_for_function(struct work *w, void *kernel)
{
	void *found;

	for (unsigned int i = 0; w->s->driver && i < ASKED; i++)
		if (!make2(w->s, function, &found, kernel))
			return;
}

/* Half of the kernels for each way to launch, where there are two. */
static void measure_kernels(struct work *w, void *library, unsigned int first, unsigned int n)
{
	void *kernel = NULL, *call;

	for (unsigned int i = first; i < first + n; i++) {
		char *name = xasprintf("cudaspy_%s_%u", w->s->name, i);
		bool found = make3(w->s, library_kernel, &kernel, library, name);
		struct loop loop = {0};

		free(name);
		if (!found)
			return;
		if (i % 4 == 3)
			ask_for_function(w, kernel);
		call = i % 2 && w->s->launch_too ? w->s->launch_too : w->s->launch;
		while (again(w, &loop)) {
			if (!launch(w, call, kernel))
				return;
			/* Some find the stream idle, and some do not. */
			if (loop.done % 4 == 1)
				make1(w->s, stream_sync, w->stream);
		}
		make1(w->s, stream_sync, w->stream);
	}
}

static bool measure_library(struct work *w, unsigned int first, unsigned int n)
{
	char *text = kernel_text(w->s, first, n);
	void *library = NULL;
	int result;

	result = ((function)w->s->calls[CALL_library_load])(WORD(&library), WORD(text), 0, 0, 0, 0,
							    0, 0);
	free(text);
	if (result)
		return left_out(w->s, CALL_library_load, "launches: loading a kernel", result);
	measure_kernels(w, library, first, n);
	make1(w->s, library_unload, library);
	return true;
}

/* The first launch of a library loads more than those that follow. */
static void measure_launches(struct work *w)
{
	if (!w->s->calls[CALL_library_load] || !w->s->calls[CALL_library_kernel]) {
		fprintf(stderr,
			"cudaspy calibrate: launches by the %s: too old to load a library: "
			"left out\n",
			w->s->name);
		return;
	}
	if (!measure_library(w, 0, KERNELS))
		return;
	for (unsigned int i = 0; i < LIBRARIES; i++)
		measure_library(w, KERNELS + i, 1);
}

/* ---- a device -------------------------------------------------------------------------------- */

static void free_buffers(struct work *w)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (w->device[i])
			make1(w->s, release, w->device[i]);
		if (w->pinned[i])
			make1(w->s, release_host, w->pinned[i]);
		free(w->pageable[i]);
	}
}

static void get_buffers(struct work *w)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (posix_memalign((void **)&w->pageable[i], 4096, COPY_MAX))
			w->pageable[i] = NULL;
		if (w->pageable[i])
			memset(w->pageable[i], 1, COPY_MAX);
		if (!make2(w->s, alloc, &w->device[i], COPY_MAX))
			w->device[i] = NULL;
		if (!make2(w->s, alloc_host, &w->pinned[i], COPY_MAX))
			w->pinned[i] = NULL;
	}
}

static void measure(struct side *s, unsigned int n_devices)
{
	struct work w = {
		.s = s,
		.repeats = REPEATS / n_devices > 4 ? REPEATS / n_devices : 4,
		.repeats_min = REPEATS_MIN / n_devices > 2 ? REPEATS_MIN / n_devices : 2,
	};

	get_buffers(&w);
	if (w.pageable[0] && make2(s, stream_new, &w.stream, 1)) {
		measure_launches(&w);
		measure_streams(&w);
		measure_set(&w);
		measure_copies(&w);
		measure_pool(&w);
		measure_alloc(&w);
		measure_managed(&w);
		measure_pinned(&w);
		make1(s, stream_free, w.stream);
	}
	free_buffers(&w);
}

/* Makes a device current, for both sides. */
static bool use_device(const struct side *runtime, const struct side *driver, unsigned int device)
{
	function set_device =
		runtime->library ? (function)dlsym(runtime->library, "cudaSetDevice") : NULL;
	function retain = (function)dlsym(driver->library, "cuDevicePrimaryCtxRetain");
	function set_current = (function)dlsym(driver->library, "cuCtxSetCurrent");
	void *context = NULL;
	int result;

	if (set_device) {
		result = set_device(device, 0, 0, 0, 0, 0, 0, 0);
		for (unsigned int i = 0; i < REPEATS && !result; i++)
			set_device(device, 0, 0, 0, 0, 0, 0, 0);
	} else {
		result = retain && set_current ? retain(WORD(&context), device, 0, 0, 0, 0, 0, 0)
					       : -1;
		if (!result)
			result = set_current(WORD(context), 0, 0, 0, 0, 0, 0, 0);
	}
	if (result)
		fprintf(stderr, "cudaspy calibrate: device %u: error %d: left out\n", device,
			result);
	return !result;
}

static int no_gpu(const char *why, int result)
{
	if (result)
		fprintf(stderr, "cudaspy calibrate: no GPU to measure: %s: error %d\n", why,
			result);
	else
		fprintf(stderr, "cudaspy calibrate: no GPU to measure: %s\n", why);
	return CALIBRATE_NO_GPU;
}

int calibrate_work(const unsigned int *devices, unsigned int n_devices)
{
	static struct side runtime, driver;
	unsigned int all[64], i, measured = 0;
	function init, get_count;
	int count = 0, result;

	load_driver(&driver);
	if (!driver.library)
		return no_gpu(dlerror(), 0);
	init = (function)dlsym(driver.library, "cuInit");
	get_count = (function)dlsym(driver.library, "cuDeviceGetCount");
	if (!init || !get_count)
		return no_gpu("libcuda.so.1 is no CUDA driver", 0);
	result = init(0, 0, 0, 0, 0, 0, 0, 0);
	if (result)
		return no_gpu("cuInit", result);
	result = get_count(WORD(&count), 0, 0, 0, 0, 0, 0, 0);
	if (result || count <= 0)
		return no_gpu("the driver has no device", result);
	load_runtime(&runtime);
	if (!runtime.library)
		fprintf(stderr, "cudaspy calibrate: no libcudart.so.13 or .12: the runtime's "
				"functions are left out\n");
	for (i = 0; !devices && i < (unsigned int)count && i < ARRAY_SIZE(all); i++)
		all[n_devices++] = i;
	if (!devices)
		devices = all;
	for (i = 0; i < n_devices; i++) {
		if (!use_device(&runtime, &driver, devices[i]))
			continue;
		measured++;
		if (runtime.library)
			measure(&runtime, n_devices);
		measure(&driver, n_devices);
	}
	return measured ? 0 : CALIBRATE_NO_GPU;
}
