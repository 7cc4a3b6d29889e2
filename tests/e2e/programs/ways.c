/*
 * tests/e2e/programs/ways.c: reaches CUDA in one of the ways that need no linking. Prints what it finds and
 * what the calls return; addresses of functions are not printed, they are called.
 *
 *   ways plugin [local|global|deepbind|namespace LIBRARY FUNCTION]...
 *   ways symbols            libcuda, one dlsym for each function
 *   ways procaddress        libcuda, one dlsym of cuGetProcAddress_v2, then through that
 *   ways entrypoint GEN     libcudart.so.GEN's cudaGetDriverEntryPoint and ...ByVersion
 *   ways handle LIBRARY     dlsym by handle in one or two libcudarts; cudaMalloc of each
 *   ways default NAME...    dlsym(RTLD_DEFAULT, NAME), and by the handle of the program
 *   ways next NAME...       dlsym(RTLD_NEXT, NAME)
 *   ways version LIBRARY NAME VERSION    dlvsym by handle, RTLD_DEFAULT, RTLD_NEXT
 *   ways local LIBRARY NAME... as default, after LIBRARY was opened RTLD_LOCAL
 *   ways global LIBRARY NAME... as default, after it was opened RTLD_GLOBAL
 *   ways again LIBRARY OTHER N    N times, beside LIBRARY: opens OTHER, looks six functions up, calls, closes
 *   ways itself             libcuda looks its own functions up
 *   ways opener LIBRARY NAME...    a library opens others by names that it can find
 *   ways reopen LIBRARY FUNCTION    open, call, close, occupy its place, again
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char host[4096];

static void *must_open(const char *library, int mode)
{
	void *handle = dlopen(library, mode);

	if (!handle) {
		printf("cannot open: %s\n", dlerror());
		exit(1);
	}
	return handle;
}

/* The part of dlerror's text that is the same whoever asks. */
static void say_error(const char *what)
{
	const char *text = dlerror(), *tail = text ? strstr(text, "undefined symbol") : NULL;

	printf("%s: none, %s\n", what, text ? tail ? tail : text : "no error");
}

static int plugins(int argc, char **argv)
{
	for (int i = 2; i + 2 < argc; i += 3) {
		int mode = RTLD_NOW | (strcmp(argv[i], "global") == 0     ? RTLD_GLOBAL
				       : strcmp(argv[i], "deepbind") == 0 ? RTLD_DEEPBIND
									  : RTLD_LOCAL);
		void *handle = strcmp(argv[i], "namespace") == 0
				       ? dlmopen(LM_ID_NEWLM, argv[i + 1], RTLD_NOW)
				       : dlopen(argv[i + 1], mode);
		int (*run)(void) = handle ? (int (*)(void))dlsym(handle, argv[i + 2]) : NULL;

		if (!run) {
			printf("plugin: %s\n", dlerror());
			return 1;
		}
		run();
		fflush(stdout);
	}
	return 0;
}

/* ---- the driver ---- */

struct driver {
	int (*init)(unsigned int);
	int (*alloc)(uint64_t *, size_t);
	int (*copy)(uint64_t, const void *, size_t, void *);
	int (*launch)(void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
		      unsigned int, unsigned int, void *, void **, void **);
	int (*synchronize)(void *);
	int (*version)(int *);
};

static int use(const struct driver *driver)
{
	uint64_t address = 0;
	int version = 0, result;

	printf("init %d\n", driver->init(0));
	result = driver->version(&version);
	printf("version %d: %d\n", result, version);
	result = driver->alloc(&address, 4096);
	printf("alloc %d: %llx\n", result, (unsigned long long)address);
	printf("copy %d\n", driver->copy(address, host, 64, (void *)0x77));
	result = driver->launch((void *)0x1234, 1, 2, 3, 4, 5, 6, 7, (void *)0x79, (void **)0x5678,
				NULL);
	printf("launch %d\n", result);
	printf("synchronize %d\n", driver->synchronize((void *)1));
	return 0;
}

static int symbols(void)
{
	void *cuda = must_open("libcuda.so.1", RTLD_NOW);
	struct driver driver = {
		(int (*)(unsigned int))dlsym(cuda, "cuInit"),
		(int (*)(uint64_t *, size_t))dlsym(cuda, "cuMemAlloc_v2"),
		(int (*)(uint64_t, const void *, size_t, void *))dlsym(cuda,
								       "cuMemcpyHtoDAsync_v2"),
		(void *)dlsym(cuda, "cuLaunchKernel"),
		(int (*)(void *))dlsym(cuda, "cuStreamSynchronize"),
		(int (*)(int *))dlsym(cuda, "cuDriverGetVersion"),
	};
	int (*brand_new)(int) = (int (*)(int))dlsym(cuda, "cuBrandNew");

	printf("brand new %d\n", brand_new ? brand_new(4) : -1);
	if (dlsym(cuda, "cuInit") != (void *)driver.init)
		puts("a second look-up has another answer");
	dlerror();
	if (!dlsym(cuda, "cuNoSuchFunction"))
		say_error("cuNoSuchFunction");
	return use(&driver);
}

static int (*get_address)(const char *, void **, int, uint64_t, int *);

static void *ask(const char *name, int version, uint64_t flags)
{
	void *function = NULL, *again = NULL;
	int status = -1, result = get_address(name, &function, version, flags, &status);

	printf("ask %s %d %d: result %d status %d %s\n", name, version, (int)flags, result, status,
	       function ? "found" : "none");
	get_address(name, &again, version, flags, &status);
	if (function != again)
		puts("a second look-up has another answer");
	return function;
}

static int procaddress(void)
{
	void *cuda = must_open("libcuda.so.1", RTLD_LAZY);
	struct driver driver;
	int (*brand_new)(int);

	*(void **)&get_address = dlsym(cuda, "cuGetProcAddress_v2");
	for (uint64_t flags = 0; flags <= 2; flags += 2) {
		*(void **)&driver.init = ask("cuInit", 2000, flags);
		*(void **)&driver.alloc = ask("cuMemAlloc", 3020, flags);
		*(void **)&driver.copy = ask("cuMemcpyHtoDAsync", flags ? 7000 : 3020, flags);
		*(void **)&driver.launch = ask("cuLaunchKernel", 7000, flags);
		*(void **)&driver.synchronize = ask("cuStreamSynchronize", 7000, flags);
		*(void **)&driver.version = ask("cuDriverGetVersion", 2020, flags);
		use(&driver);
	}
	ask("cuNoSuchFunction", 13000, 0);
	*(void **)&brand_new = ask("cuBrandNew", 13000, 0);
	printf("brand new %d\n", brand_new(4));
	/* the oldest ABI of a function, by the same name: a 32-bit size */
	*(void **)&driver.alloc = ask("cuMemAlloc", 2000, 0);
	use(&driver);
	/* asked for itself, it answers with another way in */
	*(void **)&get_address = ask("cuGetProcAddress", 12000, 0);
	*(void **)&driver.init = ask("cuInit", 2000, 0);
	printf("init %d\n", driver.init(0));
	return 0;
}

static int entrypoint(const char *generation)
{
	char library[64];
	void *runtime, *function = NULL;
	int (*get)(const char *, void **, uint64_t, int *);
	int (*by_version)(const char *, void **, unsigned int, uint64_t, int *);
	uint64_t address = 0;
	int status = -1, result;

	snprintf(library, sizeof(library), "libcudart.so.%s", generation);
	runtime = must_open(library, RTLD_NOW);
	*(void **)&get = dlsym(runtime, "cudaGetDriverEntryPoint");
	*(void **)&by_version = dlsym(runtime, "cudaGetDriverEntryPointByVersion");
	if (get) {
		result = get("cuMemAlloc", &function, 0, &status);
		printf("get %d status %d\n", result, status);
		result = ((int (*)(uint64_t *, size_t))function)(&address, 64);
		printf("alloc %d: %llx\n", result, (unsigned long long)address);
		result = get("cuStreamSynchronize", &function, 2, NULL);
		printf("get %d, synchronize %d\n", result, ((int (*)(void *))function)(NULL));
		function = NULL;
		result = get("cuNoSuchFunction", &function, 0, &status);
		printf("none %d status %d %s\n", result, status, function ? "found" : "none");
	}
	if (by_version) {
		result = by_version("cuMemAlloc", &function, 12000, 0, &status);
		printf("by version %d status %d\n", result, status);
		result = ((int (*)(uint64_t *, size_t))function)(&address, 64);
		printf("alloc %d: %llx\n", result, (unsigned long long)address);
	}
	return 0;
}

/* ---- dlsym and dlvsym ---- */

static int (*malloc_of(void *handle))(void **, size_t)
{
	return (int (*)(void **, size_t))dlsym(handle, "cudaMalloc");
}

static int by_handle(int argc, char **argv)
{
	void *address, *handles[8];

	/* all open before the first call: which is whose is decided by the handle alone */
	for (int i = 2; i < argc; i++)
		handles[i] = must_open(argv[i], RTLD_NOW | RTLD_LOCAL);
	for (int round = 0; round < 2; round++) {
		for (int i = argc - 1; i >= 2; i--) {
			int result = malloc_of(handles[i])(&address, 100);

			printf("library %d: cudaMalloc %d: %p\n", i - 1, result, address);
		}
	}
	return 0;
}

static void try_symbol(void *handle, const char *how, const char *name)
{
	char what[256];
	void *function, *address = NULL;

	snprintf(what, sizeof(what), "%s %s", how, name);
	dlerror();
	function = dlsym(handle, name);
	if (!function) {
		say_error(what);
		return;
	}
	printf("%s: found\n", what);
	if (strcmp(name, "cudaMalloc") == 0) {
		int result = ((int (*)(void **, size_t))function)(&address, 100);

		printf("%s: %d %p\n", what, result, address);
	}
}

static int by_default(int argc, char **argv, int i)
{
	void *program = dlopen(NULL, RTLD_NOW);

	for (; i < argc; i++) {
		try_symbol(RTLD_DEFAULT, "default", argv[i]);
		try_symbol(program, "program", argv[i]);
	}
	return 0;
}

static int by_next(int argc, char **argv, int i)
{
	for (; i < argc; i++)
		try_symbol(RTLD_NEXT, "next", argv[i]);
	return 0;
}

static int by_version(char **argv)
{
	void *handle = must_open(argv[2], RTLD_NOW | RTLD_GLOBAL);
	void *const handles[] = {handle, RTLD_DEFAULT, RTLD_NEXT};

	for (int i = 0; i < 3; i++) {
		void *function, *address = NULL;
		int result;

		dlerror();
		function = dlvsym(handles[i], argv[3], argv[4]);
		if (function) {
			result = ((int (*)(void **, size_t))function)(&address, 100);
			printf("dlvsym %d: %d %p\n", i, result, address);
		} else {
			say_error("dlvsym");
		}
	}
	return 0;
}

/* ---- closing and opening again ---- */

static int find_base(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	if (!strstr(info->dlpi_name, "libcudart.so"))
		return 0;
	*(uintptr_t *)data = info->dlpi_addr;
	return 1;
}

static int reopen(char **argv)
{
	for (int round = 0; round < 3; round++) {
		void *handle = must_open(argv[2], RTLD_NOW | RTLD_LOCAL);
		uintptr_t base = 0;
		int (*run)(void);

		*(void **)&run = dlsym(handle, argv[3]);
		run();
		fflush(stdout);
		dl_iterate_phdr(find_base, &base);
		printf("close %d\n", dlclose(handle));
		/* what comes next cannot lie where it lay */
		if (mmap((void *)base, 4096, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
			printf("still there: errno %d\n", errno);
	}
	return 0;
}

/* Each time OTHER lies elsewhere than it lay before, as far as that can be had. */
static int again(char **argv)
{
	static const char *const names[] = {"cudaFree", "cudaMemcpy", "cudaMemcpyAsync",
					    "cudaLaunchKernel", "cudaStreamSynchronize"};
	void *one = must_open(argv[2], RTLD_NOW | RTLD_LOCAL), *address;
	int failed = malloc_of(one)(&address, 8);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		failed += !dlsym(one, names[i]);
	for (int n = atoi(argv[4]); n > 0; n--) {
		void *other = must_open(argv[3], RTLD_NOW | RTLD_LOCAL);

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			failed += !dlsym(other, names[i]);
		failed += malloc_of(other)(&address, 8);
		dlclose(other);
	}
	printf("%d failed\n", failed);
	return 0;
}

/* ---- on behalf of others ---- */

/* Opened by a name, the driver is in nobody's scope but its own. */
static int itself(void)
{
	void *cuda = must_open("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned int) = (int (*)(unsigned int))dlsym(cuda, "cuInit");
	int (*look)(void) = (int (*)(void))dlsym(cuda, "cuLooksItselfUp");

	printf("elsewhere %d\n", look ? look() : -1);
	printf("init %d\n", init(0));
	return 0;
}

static int opener(int argc, char **argv)
{
	void *library = must_open(argv[2], RTLD_NOW);
	void (*open_for_me)(const char *, int) =
		(void (*)(const char *, int))dlsym(library, "open_for_me");

	for (int i = 3; i < argc; i++) {
		open_for_me(argv[i], 0);
		open_for_me(argv[i], 1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(way, "plugin") == 0)
		return plugins(argc, argv);
	if (strcmp(way, "symbols") == 0)
		return symbols();
	if (strcmp(way, "procaddress") == 0)
		return procaddress();
	if (strcmp(way, "entrypoint") == 0)
		return entrypoint(argv[2]);
	if (strcmp(way, "handle") == 0)
		return by_handle(argc, argv);
	if (strcmp(way, "default") == 0)
		return by_default(argc, argv, 2);
	if (strcmp(way, "next") == 0)
		return by_next(argc, argv, 2);
	if (strcmp(way, "version") == 0)
		return by_version(argv);
	if (strcmp(way, "local") == 0) {
		must_open(argv[2], RTLD_NOW | RTLD_LOCAL);
		by_next(argc, argv, 3);
		return by_default(argc, argv, 3);
	}
	if (strcmp(way, "global") == 0) {
		must_open(argv[2], RTLD_NOW | RTLD_GLOBAL);
		by_next(argc, argv, 3);
		return by_default(argc, argv, 3);
	}
	if (strcmp(way, "again") == 0)
		return again(argv);
	if (strcmp(way, "itself") == 0)
		return itself();
	if (strcmp(way, "opener") == 0)
		return opener(argc, argv);
	if (strcmp(way, "reopen") == 0)
		return reopen(argv);
	return 2;
}
