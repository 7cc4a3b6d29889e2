/* links: shim/entry/lookup.c shim/hook/slots.c */
/*
 * tests/unit/test_lookup.c: what dlsym and dlvsym answer: our stub, the real function, nothing, or whatever the real dlsym says
 * to the caller itself.
 */
#include <dlfcn.h>
#include <stdio.h>
#include "entry/lifecycle.h"
#include "gpu/gpu.h"
#include "hook/loader.h"
#include "hook/resolve.h"
#include "hook/slots.h"
#include "hook/wrap.h"
#include "nccl/profiler.h"
#include "process/options.h"
#include "record/notes.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

/* Addresses, and what they lie in: as the loader has the objects, in this order. */
enum {
	PROGRAM = 0x1000,
	BEFORE = 0x2000,
	SHIM = 0x3000,
	CUDART = 0x4000,
	OTHER = 0x5000,
	LATE = 0x6000,
	STUB = 0x9000
};
#define AT(where) ((void *)(uintptr_t)(where))

struct spy_options spy_options;
size_t spy_loader_self = 2, spy_loader_startup = 5;
void *(*spy_real_dlsym)(void *handle, const char *name);
void *(*spy_real_dlvsym)(void *handle, const char *name, const char *version);

static void *found, *next,
	*scanned; /* what look-ups find: with a handle, behind us, by a walk over all objects */
static int n_asked, n_wrapped, n_next;
static bool unwanted;
static char note[256];
static const char *asked_version;

static void *real_dlsym(void *handle, const char *name)
{
	(void)name;
	n_asked++;
	n_next += handle == RTLD_NEXT;
	return handle == RTLD_NEXT ? next : found;
}

static void *real_dlvsym(void *handle, const char *name, const char *version)
{
	asked_version = version;
	return real_dlsym(handle, name);
}

struct spy_place spy_loader_at(const void *address, int fn)
{
	uintptr_t at_page = (uintptr_t)address & ~(uintptr_t)0xfff;
	struct spy_place place = {.address = (uintptr_t)address,
				  .fn = fn,
				  .found = true,
				  .layer = -1,
				  .position = at_page / 0x1000 - 1};

	if (at_page == CUDART)
		place.layer = fn >= SPY_RUNTIME_ROWS ? SPY_LAYER_DRIVER : SPY_LAYER_RT12;
	if (at_page == LATE)
		strcpy(place.path, "plugin.so");
	return place;
}

bool spy_wrap_is_stub(const void *address)
{
	return (uintptr_t)address == STUB;
}

bool spy_wrap_wants(int fn)
{
	(void)fn;
	return !unwanted;
}

void *spy_wrap_stub_for(int fn, int layer, void *real)
{
	(void)fn;
	assert_true(spy_lock_is_mine(&session.wrap_lock));
	assert_int_equal(layer, spy_loader_at(real, fn).layer);
	n_wrapped++;
	return (char *)real + 1;
}

void *spy_resolve_find(int fn, const char *version, int *layer)
{
	(void)fn;
	(void)version;
	*layer = -1;
	return scanned;
}

void spy_lifecycle_init(void)
{
}

void *spy_gpu_look_up(const char *name, void *was_found)
{
	(void)name;
	return (char *)was_found + 2;
}

void *spy_nccl_look_up(const char *name, void *was_found)
{
	(void)name;
	return (char *)was_found + 3;
}

void spy_note(enum spy_note what, const char *format, ...)
{
	va_list args;

	assert_true(what == SPY_NOTE_UNKNOWN || what == SPY_NOTE_OTHER);
	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
}

int spy_lookup(void *handle, const char *name, const char *version, void **answer,
	       const void *caller);

static int begin(void **state)
{
	(void)state;
	begin_session();
	spy_options = (struct spy_options){0};
	spy_real_dlsym = real_dlsym;
	spy_real_dlvsym = real_dlvsym;
	found = AT(CUDART);
	next = scanned = NULL;
	n_asked = n_wrapped = n_next = 0;
	unwanted = false;
	note[0] = '\0';
	asked_version = NULL;
	return 0;
}

#define LEFT AT(0xdead) /* the real function is asked by the caller itself */

static void *answer_to(void *handle, const char *name, int caller)
{
	void *answer = AT(0xbad);

	return spy_lookup(handle, name, NULL, &answer, AT(caller)) ? answer : LEFT;
}

static int handle; /* of some library */

/* ---- CUDA's functions ---- */

static void test_stubs(void **state)
{
	(void)state;
	assert_ptr_equal(answer_to(&handle, "cudaMalloc", PROGRAM), AT(CUDART + 1));
	assert_ptr_equal(answer_to(RTLD_DEFAULT, "cuInit", PROGRAM), AT(CUDART + 1));
	assert_int_equal(n_wrapped, 2);
	assert_int_equal(session.wrap_lock.owner, 0);
	/* A version is asked for, too. */
	{
		void *answer;

		assert_int_equal(
			spy_lookup(&handle, "cudaMalloc", "libcudart.so.12", &answer, AT(PROGRAM)),
			1);
		assert_ptr_equal(answer, AT(CUDART + 1));
		assert_string_equal(asked_version, "libcudart.so.12");
	}
	/* What is no library of CUDA's gets one, unless it lies before us: it calls on. */
	found = AT(OTHER);
	assert_ptr_equal(answer_to(&handle, "cudaMalloc", PROGRAM), AT(OTHER + 1));
	found = AT(BEFORE);
	assert_ptr_equal(answer_to(&handle, "cudaMalloc", PROGRAM), AT(BEFORE));
	/* A library of CUDA's looks itself up; one whose answer is not to be changed; nothing. */
	found = AT(CUDART);
	assert_ptr_equal(answer_to(&handle, "cudaMalloc", CUDART), AT(CUDART));
	unwanted = true;
	assert_ptr_equal(answer_to(&handle, "cuGetExportTable", PROGRAM), AT(CUDART));
	unwanted = false;
	found = NULL;
	assert_null(answer_to(&handle, "cudaMalloc", PROGRAM));
	session.wrap_lock.owner = 1; /* not to be had */
	found = AT(CUDART);
	assert_ptr_equal(answer_to(&handle, "cudaMalloc", PROGRAM), AT(CUDART));
	session.wrap_lock.owner = 0;
}

/* A global search finds our own stub: what would it have found without us? */
static void test_behind_us(void **state)
{
	(void)state;
	found = AT(STUB);
	next = AT(CUDART);
	scanned = AT(OTHER);
	assert_ptr_equal(answer_to(RTLD_DEFAULT, "cudaMalloc", PROGRAM), AT(CUDART + 1));
	next = NULL; /* nothing: the scope of a caller that was opened later is its own */
	assert_null(answer_to(RTLD_DEFAULT, "cudaMalloc", PROGRAM));
	assert_ptr_equal(answer_to(RTLD_DEFAULT, "cudaMalloc", LATE), AT(OTHER + 1));
	assert_null(answer_to(&handle, "cudaMalloc", LATE)); /* it asked a library that has none */
	assert_int_equal(n_next, 4);
	/* A library of CUDA's: its own, never a stub. */
	next = AT(CUDART);
	assert_ptr_equal(answer_to(RTLD_DEFAULT, "cudaMalloc", CUDART), AT(CUDART));
}

/* Only the loader knows what is next; our stub is no answer where nothing behind us has the function. */
static void test_next(void **state)
{
	(void)state;
	assert_ptr_equal(answer_to(RTLD_NEXT, "malloc", PROGRAM), LEFT);
	next = AT(CUDART);
	assert_ptr_equal(answer_to(RTLD_NEXT, "cudaMalloc", PROGRAM), LEFT);
	next = NULL;
	assert_null(answer_to(RTLD_NEXT, "cudaMalloc", PROGRAM));
	assert_null(answer_to(RTLD_NEXT, "cudaMalloc", SHIM));
	assert_ptr_equal(answer_to(RTLD_NEXT, "cudaMalloc", CUDART), LEFT); /* behind us */
	assert_int_equal(n_wrapped, 0);
}

/* ---- other names ---- */

static void test_unknown(void **state)
{
	static const char *const others[] = {"malloc", "cu", "cublasCreate", "cuda",
					     "c",      "",   "CuInit",       "cu_init"};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_ptr_equal(answer_to(&handle, others[i], PROGRAM), LEFT);
	assert_ptr_equal(answer_to(&handle, NULL, PROGRAM), LEFT);
	assert_int_equal(n_asked, 0);
	/* One of the driver's that has no row: as it is, and noted. */
	assert_ptr_equal(answer_to(&handle, "cuOfTomorrow", PROGRAM), AT(CUDART));
	assert_string_equal(note, "cuOfTomorrow");
	note[0] = '\0';
	assert_ptr_equal(answer_to(RTLD_DEFAULT, "cuOfTomorrow", PROGRAM), LEFT);
	found = AT(OTHER); /* another library has one of such a name */
	assert_ptr_equal(answer_to(&handle, "cuZ", PROGRAM), AT(OTHER));
	assert_ptr_equal(answer_to(&handle, "cuA", PROGRAM), AT(OTHER));
	found = NULL;
	assert_null(answer_to(&handle, "cuOfTomorrow", PROGRAM));
	assert_string_equal(note, "");
}

static void test_tools(void **state)
{
	(void)state;
	assert_ptr_equal(answer_to(&handle, "cuptiSubscribe", PROGRAM), LEFT);
	spy_options.gpu = "1";
	assert_ptr_equal(answer_to(&handle, "cuptiSubscribe", PROGRAM), AT(CUDART + 2));
	assert_ptr_equal(answer_to(RTLD_DEFAULT, "cuptiSubscribe", PROGRAM), LEFT);
	assert_ptr_equal(answer_to(&handle, "ncclProfiler_v5", PROGRAM), AT(CUDART + 3));
	assert_ptr_equal(answer_to(&handle, "ncclProfiler_", PROGRAM), LEFT);
	assert_ptr_equal(answer_to(RTLD_DEFAULT, "ncclProfiler_v5", PROGRAM), LEFT);
}

/* ---- a runtime that is linked into the program ---- */

static void test_static_runtime(void **state)
{
	(void)state;
	answer_to(&handle, "cuInit", LATE);
	assert_string_equal(note, "");
	answer_to(&handle, "cuGetProcAddress_v2", CUDART); /* a runtime of its own */
	assert_string_equal(note, "");
	answer_to(&handle, "cuGetProcAddress_v2", LATE);
	assert_non_null(strstr(note, "plugin.so looks the driver's functions up by itself"));
	note[0] = '\0';
	answer_to(&handle, "cuGetProcAddress", PROGRAM);
	assert_non_null(strstr(note, "test_lookup looks the driver's functions up by itself"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_stubs, begin),
		cmocka_unit_test_setup(test_behind_us, begin),
		cmocka_unit_test_setup(test_next, begin),
		cmocka_unit_test_setup(test_unknown, begin),
		cmocka_unit_test_setup(test_tools, begin),
		cmocka_unit_test_setup(test_static_runtime, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
