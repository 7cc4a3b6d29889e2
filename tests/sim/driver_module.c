/*
 * tests/sim/driver_module.c: modules, libraries, kernels, functions and global variables, on the
 * calling thread. Code is not read: every kernel and variable one asks for exists, unless the image is
 * PTX text that does not contain the name. A kernel and a function are one object. Loading and
 * unloading a module waits for the device with the context locked, as measured; loading a library does not, but,
 * unless CUDA_MODULE_LOADING is EAGER, its first use does (driver_launch.c), and unloading it if it was used.
 */
#include "sim.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define MODULE_MAGIC 0x4d4f4455u

struct global {
	struct global *next;
	char *name;
	size_t bytes;
	bool managed;
	struct sim_block *block[SIM_MAX_DEVICES]; /* a managed one: only the first */
};

struct sim_module {
	unsigned magic;
	char *ptx; /* the image, if it is text */
	struct sim_kernel *kernels;
	struct global *globals;
	atomic_uint loaded; /* bit i: on device i */
};

static struct sim_spin spin; /* the lists of all modules */

struct sim_kernel *sim_kernel_check(void *handle)
{
	struct sim_kernel *kernel = handle;

	return kernel && kernel->magic == KERNEL_MAGIC ? kernel : NULL;
}

bool sim_module_loaded(const struct sim_module *module, int dev)
{
	return atomic_load_explicit(&module->loaded, memory_order_relaxed) >> dev & 1;
}

bool sim_module_load(struct sim_module *module, int dev)
{
	return !(atomic_fetch_or(&module->loaded, 1u << dev) >> dev & 1);
}

static bool eager(void)
{
	const char *mode = getenv("CUDA_MODULE_LOADING");

	return mode && !strcmp(mode, "EAGER");
}

static struct sim_module *module_new(const void *image, bool loaded)
{
	struct sim_module *module = calloc(1, sizeof(*module));
	const char *text = image;

	if (!module)
		abort();
	module->magic = MODULE_MAGIC;
	module->loaded = loaded ? ~0u : 0;
	if (text && (text[0] == '/' || text[0] == '.' || text[0] == '\n') &&
	    strstr(text, ".version"))
		module->ptx = strdup(text);
	return module;
}

static int library_load(struct sim_module **out, const void *image)
{
	unsigned held;

	if (!out || !image)
		return SIM_INVALID_VALUE;
	held = sim_lock(HOLD_PROCESS, 0);
	sim_host_work(FN_cuLibraryLoadData, 5000);
	*out = module_new(image, eager());
	sim_unlock(held, 0);
	return SIM_OK;
}
EXPORT(cuLibraryLoadData,
       (struct sim_module * *out, const void *image, void *jo, void *jv, unsigned jn, void *lo,
	void *lv, unsigned ln),
       library_load(out, image))

static char *read_image(const char *path)
{
	FILE *file = path ? fopen(path, "re") : NULL;
	char *text = NULL;
	size_t bytes = 0, cap = 0;

	if (!file)
		return NULL;
	for (;;) {
		if (bytes + 4096 > cap) {
			cap = 2 * cap + 8192;
			text = realloc(text, cap);
			if (!text)
				abort();
		}
		size_t n = fread(text + bytes, 1, 4096 - 1, file);

		bytes += n;
		if (!n)
			break;
	}
	text[bytes] = 0;
	fclose(file);
	return text;
}

static int library_file(struct sim_module **out, const char *path)
{
	char *text = read_image(path);
	int rc = text ? library_load(out, text) : SIM_FILE_NOT_FOUND;

	free(text);
	return rc;
}
EXPORT(cuLibraryLoadFromFile,
       (struct sim_module * *out, const char *path, void *jo, void *jv, unsigned jn, void *lo,
	void *lv, unsigned ln),
       library_file(out, path))

static void module_free(struct sim_module *module)
{
	while (module->kernels) {
		struct sim_kernel *kernel = module->kernels;

		module->kernels = kernel->next;
		kernel->magic = 0;
		free(kernel);
	}
	while (module->globals) {
		struct global *global = module->globals;

		module->globals = global->next;
		for (int i = 0; i < SIM_MAX_DEVICES; i++)
			if (global->block[i])
				sim_block_free(global->block[i]);
		free(global->name);
		free(global);
	}
	module->magic = 0;
	free(module->ptx);
	free(module);
}

/* Code that no kernel was launched of is on no device. */
static bool is_used(const struct sim_module *module)
{
	for (struct sim_kernel *kernel = module->kernels; kernel; kernel = kernel->next)
		if (atomic_load(&kernel->loaded))
			return true;
	return false;
}

static int library_unload(struct sim_module *module)
{
	if (!module || module->magic != MODULE_MAGIC)
		return SIM_INVALID_HANDLE;
	for (int i = 0; i < sim_script.gpus && is_used(module); i++)
		sim_wait_device(i, WHY_HIDDEN);
	module_free(module);
	return SIM_OK;
}
EXPORT(cuLibraryUnload, (struct sim_module * m), library_unload(m))

static int module_load(struct sim_module **out, const void *image)
{
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);
	unsigned held;

	if (rc || !out || !image)
		return rc ? rc : SIM_INVALID_VALUE;
	held = sim_lock_idle(ctx->dev);
	sim_host_work(FN_cuModuleLoadData, 10000);
	*out = module_new(image, true);
	sim_unlock(held, ctx->dev);
	return SIM_OK;
}
EXPORT(cuModuleLoadData, (struct sim_module * *out, const void *image), module_load(out, image))
EXPORT(cuModuleLoadDataEx,
       (struct sim_module * *out, const void *image, unsigned n, void *o, void *v),
       module_load(out, image))
EXPORT(cuModuleLoadFatBinary, (struct sim_module * *out, const void *image),
       module_load(out, image))

static int module_file(struct sim_module **out, const char *path)
{
	char *text = read_image(path);
	int rc = text ? module_load(out, text) : SIM_FILE_NOT_FOUND;

	free(text);
	return rc;
}
EXPORT(cuModuleLoad, (struct sim_module * *out, const char *path), module_file(out, path))

static int module_unload(struct sim_module *module)
{
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);
	unsigned held;

	if (rc || !module || module->magic != MODULE_MAGIC)
		return rc ? rc : SIM_INVALID_HANDLE;
	held = sim_lock_idle(ctx->dev);
	sim_host_work(FN_cuModuleUnload, 2000);
	module_free(module);
	sim_unlock(held, ctx->dev);
	return SIM_OK;
}
EXPORT(cuModuleUnload, (struct sim_module * m), module_unload(m))
EXPORT(cuModuleGetLoadingMode, (int *mode), (*mode = eager() ? 1 : 2, SIM_OK))

/* ---- kernels ---- */
static struct sim_kernel *kernel_new(struct sim_module *module, const char *name)
{
	struct sim_kernel *kernel = calloc(1, sizeof(*kernel));
	char symbol[512];
	const unsigned *sizes;

	if (!kernel)
		abort();
	kernel->magic = KERNEL_MAGIC;
	kernel->name = sim_intern(name);
	kernel->module = module;
	kernel->duration_ns = sim_script_kernel_ns(name);
	kernel->lazy_wait = sim_script_lazy(name);
	kernel->delay = strstr(name, "delay") != NULL;
	kernel->param_cnt = sim_params_of_name(name, kernel->param_size, 32);
	kernel->attrs[0] = 1024;
	kernel->attrs[4] = 32;
	kernel->attrs[5] = kernel->attrs[6] = 90;
	kernel->attrs[8] = 49152;
	snprintf(symbol, sizeof(symbol), "spysim_kernel_%s", name);
	*(void **)&kernel->twin = dlsym(RTLD_DEFAULT, symbol);
	if (kernel->twin && kernel->param_cnt < 0) {
		snprintf(symbol, sizeof(symbol), "spysim_sizes_%s", name);
		sizes = dlsym(RTLD_DEFAULT, symbol);
		for (kernel->param_cnt = 0;
		     sizes && sizes[kernel->param_cnt] && kernel->param_cnt < 32;
		     kernel->param_cnt++)
			kernel->param_size[kernel->param_cnt] =
				(unsigned short)sizes[kernel->param_cnt];
	}
	if (sim_script_broken(name))
		kernel->twin = NULL;
	return kernel;
}

static int get_kernel(struct sim_kernel **out, struct sim_module *module, const char *name)
{
	struct sim_kernel *kernel, *fresh;

	if (!out || !name)
		return SIM_INVALID_VALUE;
	if (!module || module->magic != MODULE_MAGIC)
		return SIM_INVALID_HANDLE;
	if (module->ptx && !strstr(module->ptx, name))
		return SIM_NOT_FOUND;
	sim_spin_lock(&spin);
	for (kernel = module->kernels; kernel && strcmp(kernel->name, name); kernel = kernel->next)
		;
	sim_spin_unlock(&spin);
	if (!kernel) {
		fresh = kernel_new(module, name);
		sim_spin_lock(&spin);
		fresh->next = module->kernels;
		module->kernels = kernel = fresh;
		sim_spin_unlock(&spin);
	}
	*out = kernel;
	return SIM_OK;
}
EXPORT(cuLibraryGetKernel, (struct sim_kernel * *out, struct sim_module *m, const char *name),
       get_kernel(out, m, name))
EXPORT(cuModuleGetFunction, (struct sim_kernel * *out, struct sim_module *m, const char *name),
       get_kernel(out, m, name))

static int same(void *out, void *value, bool ok)
{
	if (!ok || !out)
		return SIM_INVALID_HANDLE;
	*(void **)out = value;
	return SIM_OK;
}
EXPORT(cuKernelGetFunction, (void **out, void *kernel), same(out, kernel, sim_kernel_check(kernel)))
EXPORT(cuLibraryGetModule, (void **out, struct sim_module *m),
       same(out, m, m && m->magic == MODULE_MAGIC))
EXPORT(cuFuncGetModule, (void **out, struct sim_kernel *k),
       same(out, sim_kernel_check(k) ? k->module : NULL, sim_kernel_check(k)))
EXPORT(cuKernelGetLibrary, (void **out, struct sim_kernel *k),
       same(out, sim_kernel_check(k) ? k->module : NULL, sim_kernel_check(k)))
EXPORT(cuKernelGetName, (const char **out, struct sim_kernel *k),
       same(out, sim_kernel_check(k) ? (void *)(uintptr_t)k->name : NULL, sim_kernel_check(k)))
EXPORT(cuFuncGetName, (const char **out, struct sim_kernel *k),
       same(out, sim_kernel_check(k) ? (void *)(uintptr_t)k->name : NULL, sim_kernel_check(k)))

static int kernel_attribute(struct sim_kernel *kernel, int attr, int *get, int set)
{
	if (!sim_kernel_check(kernel))
		return SIM_INVALID_HANDLE;
	if (attr < 0 || attr >= 16)
		return SIM_INVALID_VALUE;
	if (get)
		*get = kernel->attrs[attr];
	else
		kernel->attrs[attr] = set;
	return SIM_OK;
}
EXPORT(cuFuncGetAttribute, (int *out, int attr, void *k), kernel_attribute(k, attr, out, 0))
EXPORT(cuFuncSetAttribute, (void *k, int attr, int value), kernel_attribute(k, attr, NULL, value))
EXPORT(cuKernelGetAttribute, (int *out, int attr, void *k, int dev),
       kernel_attribute(k, attr, out, 0))
EXPORT(cuKernelSetAttribute, (int attr, int value, void *k, int dev),
       kernel_attribute(k, attr, NULL, value))
EXPORT(cuFuncSetCacheConfig, (void *k, int config),
       sim_kernel_check(k) ? SIM_OK : SIM_INVALID_HANDLE)
EXPORT(cuFuncSetSharedMemConfig, (void *k, int config),
       sim_kernel_check(k) ? SIM_OK : SIM_INVALID_HANDLE)
EXPORT(cuKernelSetCacheConfig, (void *k, int config, int dev),
       sim_kernel_check(k) ? SIM_OK : SIM_INVALID_HANDLE)
EXPORT(cuFuncLoad, (void *k), sim_kernel_check(k) ? SIM_OK : SIM_INVALID_HANDLE)
EXPORT(cuFuncIsLoaded, (int *out, struct sim_kernel *k),
       sim_kernel_check(k) ? (*out = atomic_load(&k->loaded), SIM_OK) : SIM_INVALID_HANDLE)

/* ---- variables ---- */
static struct global *global_of(struct sim_module *module, const char *name, bool make)
{
	struct global *global;

	sim_spin_lock(&spin);
	for (global = module->globals; global && strcmp(global->name, name); global = global->next)
		;
	if (!global && make) {
		global = calloc(1, sizeof(*global));
		if (!global)
			abort();
		global->name = strdup(name);
		global->bytes = 65536;
		global->next = module->globals;
		module->globals = global;
	}
	sim_spin_unlock(&spin);
	return global;
}

void sim_declare_global(void *library, const char *name, size_t bytes, bool managed);
void sim_declare_global(void *library, const char *name, size_t bytes, bool managed)
{
	struct global *global = global_of(library, name, true);

	global->bytes = bytes ? bytes : 1;
	global->managed = managed;
}

static int get_global(sim_ptr *out, size_t *bytes, struct sim_module *module, const char *name)
{
	struct global *global;
	struct sim_block *block, *fresh;
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx), dev;

	if (rc)
		return rc;
	if (!module || module->magic != MODULE_MAGIC)
		return SIM_INVALID_HANDLE;
	if (module->ptx && !strstr(module->ptx, name))
		return SIM_NOT_FOUND;
	global = global_of(module, name, true);
	dev = global->managed ? 0 : ctx->dev;
	block = __atomic_load_n(&global->block[dev], __ATOMIC_ACQUIRE);
	if (!block) {
		rc = sim_block_new(&fresh, global->managed ? MEM_MANAGED : MEM_DEVICE, dev,
				   global->bytes);
		if (rc)
			return rc;
		fresh->ctx = ctx;
		if (!__atomic_compare_exchange_n(&global->block[dev], &block, fresh, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			sim_block_free(fresh);
		else
			block = fresh;
	}
	if (out)
		*out = block->base;
	if (bytes)
		*bytes = global->bytes;
	return SIM_OK;
}
EXPORT(cuLibraryGetGlobal, (sim_ptr * out, size_t *bytes, struct sim_module *m, const char *name),
       get_global(out, bytes, m, name))
EXPORT(cuLibraryGetManaged, (sim_ptr * out, size_t *bytes, struct sim_module *m, const char *name),
       get_global(out, bytes, m, name))
EXPORT(cuModuleGetGlobal_v2, (sim_ptr * out, size_t *bytes, struct sim_module *m, const char *name),
       get_global(out, bytes, m, name))
