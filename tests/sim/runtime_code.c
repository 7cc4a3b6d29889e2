/*
 * tests/sim/runtime_code.c: the code and variables a program registers, in ELF constructors before
 * main, and launching them. Nothing here calls the driver before the program's first real call.
 */
#include "runtime.h"
#include "unseen.h"

#include <stdlib.h>
#include <string.h>

struct rt_code {
	struct rt_code *next;
	const void *image;
	void *library;
	struct rt_variable *variables;
	struct rt_function **functions; /* this code's, for freeing */
	unsigned function_cnt;
};

static struct sim_spin lock;
static struct rt_code *codes;

/* From the address of a host stub (or a driver's kernel) to the function: open addressing, replaced
 * as a whole when it grows; readers take no lock. */
static struct table {
	unsigned size, used;
	struct rt_function *_Atomic slots[];
} * _Atomic table;

static unsigned slot_of(const void *host, unsigned size)
{
	return (unsigned)(((uintptr_t)host >> 4) * 0x9e3779b97f4a7c15ull >> 40) & (size - 1);
}

static struct rt_function *find(const void *host)
{
	struct table *t = table;

	if (!t)
		return NULL;
	for (unsigned i = slot_of(host, t->size);; i = (i + 1) & (t->size - 1)) {
		struct rt_function *f = t->slots[i];

		if (!f || f->host == host)
			return f;
	}
}

static void put(struct table *t, struct rt_function *f)
{
	unsigned i = slot_of(f->host, t->size);

	while (t->slots[i] && t->slots[i]->host != f->host)
		i = (i + 1) & (t->size - 1);
	if (!t->slots[i])
		t->used++;
	t->slots[i] = f;
}

static struct rt_function *add(const void *host, const char *name, struct rt_code *code,
			       void *kernel, const void *origin)
{
	struct rt_function *f = calloc(1, sizeof(*f));
	struct table *t;

	if (!f)
		abort();
	*f = (struct rt_function){host, name, code, kernel, origin};
	sim_spin_lock(&lock);
	t = table;
	if (!t || t->used * 2 >= t->size) {
		unsigned size = t ? 2 * t->size : 256;
		struct table *bigger = calloc(1, sizeof(*t) + size * sizeof(t->slots[0]));

		if (!bigger)
			abort();
		bigger->size = size;
		for (unsigned i = 0; t && i < t->size; i++)
			if (t->slots[i])
				put(bigger, t->slots[i]);
		/* The old table is not freed: somebody may be reading it. */
		table = t = bigger;
	}
	put(t, f);
	sim_spin_unlock(&lock);
	return f;
}

/* ---- registration, in constructors ---- */
SIM_PUBLIC void **__cudaRegisterFatBinary(void *wrapper);
SIM_PUBLIC void **__cudaRegisterFatBinary(void *wrapper)
{
	struct rt_code *code = calloc(1, sizeof(*code));
	const struct {
		int magic, version;
		const void *data;
		void *unused;
	} *w = wrapper;

	if (!code)
		abort();
	code->image = w->data ? w->data : wrapper;
	sim_spin_lock(&lock);
	code->next = codes;
	codes = code;
	sim_spin_unlock(&lock);
	return (void **)code;
}

static int load_one(struct rt_code *code)
{
	int rc = rt_drivers[0].cuLibraryLoadData(&code->library, code->image, NULL, NULL, 0, NULL,
						 NULL, 0);

	for (struct rt_variable *v = rt_private && !rc ? code->variables : NULL; v; v = v->next)
		rt_private->declare_global(code->library, v->name, v->bytes, v->pointer);
	return rc;
}

/* Once the program runs, code may still arrive with dlopen. */
SIM_PUBLIC void __cudaRegisterFatBinaryEnd(void **handle);
SIM_PUBLIC void __cudaRegisterFatBinaryEnd(void **handle)
{
	struct rt_code *code = (struct rt_code *)handle;

	if (rt_ready && !code->library)
		load_one(code);
}

SIM_PUBLIC void __cudaUnregisterFatBinary(void **handle);
SIM_PUBLIC void __cudaUnregisterFatBinary(void **handle)
{
	/* At exit, or dlclose: the library stays until the runtime goes. */
	(void)handle;
}

SIM_PUBLIC void __cudaRegisterFunction(void **handle, const char *host, char *device,
				       const char *name, int limit, void *tid, void *bid,
				       void *bdim, void *gdim, int *size);
SIM_PUBLIC void __cudaRegisterFunction(void **handle, const char *host, char *device,
				       const char *name, int limit, void *tid, void *bid,
				       void *bdim, void *gdim, int *size)
{
	add(host, name, (struct rt_code *)handle, NULL, NULL);
}

static void variable(void **handle, const void *host, void **pointer, const char *name,
		     size_t bytes)
{
	struct rt_code *code = (struct rt_code *)handle;
	struct rt_variable *v = calloc(1, sizeof(*v));

	if (!v)
		abort();
	*v = (struct rt_variable){code->variables, host, pointer, name, bytes, code};
	code->variables = v;
}

SIM_PUBLIC void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
				  int ext, size_t bytes, int constant, int global);
SIM_PUBLIC void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
				  int ext, size_t bytes, int constant, int global)
{
	variable(handle, host, NULL, name, bytes);
}

SIM_PUBLIC void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
					 int ext, size_t bytes, int constant, int global);
SIM_PUBLIC void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
					 int ext, size_t bytes, int constant, int global)
{
	variable(handle, host, host, name, bytes);
}

SIM_PUBLIC void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t bytes);
SIM_PUBLIC void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t bytes)
{
}

/* Called before a managed variable is first touched: from here its pointer must be good. */
SIM_PUBLIC char __cudaInitModule(void **handle);
SIM_PUBLIC char __cudaInitModule(void **handle)
{
	struct rt_code *code = (struct rt_code *)handle;
	size_t bytes;
	sim_ptr p;

	if (rt_prepare(RT_CONTEXT))
		return 0;
	for (struct rt_variable *v = code->variables; v; v = v->next)
		if (v->pointer &&
		    !rt_drivers[0].cuLibraryGetManaged(&p, &bytes, code->library, v->name))
			*v->pointer = (void *)(uintptr_t)p;
	return 1;
}

int rt_load_code(void)
{
	int rc = SIM_OK;

	sim_spin_lock(&lock);
	for (struct rt_code *code = codes; code && !rc; code = code->next)
		if (!code->library)
			rc = load_one(code);
	sim_spin_unlock(&lock);
	return rc;
}

void rt_unload_code(void)
{
	for (struct rt_code *code = codes; code; code = code->next)
		if (code->library)
			rt_drivers[0].cuLibraryUnload(code->library);
}

int rt_kernel(void **kernel, const void *func)
{
	struct rt_function *f = find(func);
	int rc;

	if (!f)
		return SIM_INVALID_FUNCTION;
	if (!f->kernel) {
		rc = rt_drivers[0].cuLibraryGetKernel(kernel, f->code->library, f->name);
		if (rc)
			return rc;
		f->kernel = *kernel;
		/* The driver's handle is as good as the stub from now on. */
		if (!find(*kernel))
			add(*kernel, NULL, NULL, *kernel, func);
	}
	*kernel = f->kernel;
	return SIM_OK;
}

void *rt_host_of(void *kernel)
{
	struct rt_function *f = find(kernel);

	return f && f->origin ? (void *)(uintptr_t)f->origin : kernel;
}

int rt_symbol(sim_ptr *out, size_t *bytes, const void *symbol)
{
	for (struct rt_code *code = codes; code; code = code->next)
		for (struct rt_variable *v = code->variables; v; v = v->next)
			if (v->host == symbol || (v->pointer && *v->pointer == symbol))
				return v->pointer ? rt_drivers[0].cuLibraryGetManaged(
							    out, bytes, code->library, v->name)
						  : rt_drivers[0].cuLibraryGetGlobal(
							    out, bytes, code->library, v->name);
	return SIM_INVALID_SYMBOL;
}

static int symbol_address(void **out, const void *symbol)
{
	size_t bytes;
	sim_ptr p;
	int rc = rt_symbol(&p, &bytes, symbol);

	if (!rc)
		*out = (void *)(uintptr_t)p;
	return rc;
}
RT_EXPORT(cudaGetSymbolAddress, (void **out, const void *symbol), symbol_address(out, symbol))

static int symbol_size(size_t *out, const void *symbol)
{
	sim_ptr p;

	return rt_symbol(&p, out, symbol);
}
RT_EXPORT(cudaGetSymbolSize, (size_t * out, const void *symbol), symbol_size(out, symbol))

/* ---- kernels from libraries: their handles are also good where a host stub is expected ---- */
static int library_kernel(void **out, void *library, const char *name)
{
	int rc = rt_drivers[0].cuLibraryGetKernel(out, library, name);

	if (!rc && !find(*out))
		add(*out, NULL, NULL, *out, NULL);
	return rc;
}

static int function_name(const char **out, const void *func)
{
	void *kernel;
	int rc = rt_kernel(&kernel, func);

	return rc ? rc : rt_drivers[0].cuKernelGetName(out, kernel);
}

RT_EXPORT(cudaGetFuncBySymbol, (void **out, const void *func), rt_kernel(out, func))
#if RT_GEN >= 12
RT_QUERY(__cudaGetKernel, (void **out, const void *func), rt_kernel(out, func))
RT_QUERY(cudaGetKernel, (void **out, const void *func), rt_kernel(out, func))
RT_QUERY(cudaFuncGetName, (const char **out, const void *func), function_name(out, func))
RT_EXPORT(cudaLibraryLoadData,
	  (void **out, const void *image, void *jo, void *jv, unsigned jn, void *lo, void *lv,
	   unsigned ln),
	  drv->cuLibraryLoadData(out, image, jo, jv, jn, lo, lv, ln))
RT_EXPORT(cudaLibraryLoadFromFile,
	  (void **out, const char *path, void *jo, void *jv, unsigned jn, void *lo, void *lv,
	   unsigned ln),
	  drv->cuLibraryLoadFromFile(out, path, jo, jv, jn, lo, lv, ln))
RT_EXPORT(cudaLibraryUnload, (void *library), drv->cuLibraryUnload(library))
RT_EXPORT(cudaLibraryGetKernel, (void **out, void *library, const char *name),
	  library_kernel(out, library, name))
RT_EXPORT(cudaLibraryGetGlobal, (void **out, size_t *bytes, void *library, const char *name),
	  drv->cuLibraryGetGlobal((sim_ptr *)out, bytes, library, name))
RT_EXPORT(cudaLibraryGetManaged, (void **out, size_t *bytes, void *library, const char *name),
	  drv->cuLibraryGetManaged((sim_ptr *)out, bytes, library, name))
RT_EXPORT(cudaKernelSetAttributeForDevice, (void *kernel, int attr, int value, int dev),
	  drv->cuKernelSetAttribute(attr, value, kernel, dev))
#else
static void keep_used(void) __attribute__((unused));
static void keep_used(void)
{
	(void)library_kernel;
	(void)function_name;
}
#endif
