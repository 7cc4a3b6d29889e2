/*
 * analyzer/symbols/symbolize.c: addresses to places in the program, through elfutils' libdwfl.
 * Called when the report is made.
 */
#include <dlfcn.h>
#include <dwarf.h>
#include <errno.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/hash.h"
#include "base/redact.h"
#include "perf_map.h"
#include "symbolize.h"
#include "zstd.h"

/* An address of a file that was looked up: in debug information of large templates that takes
 * milliseconds, and the same ones are on many stacks. */
struct known_address {
	struct known_key {
		const struct object *object;
		uint64_t offset;
	} key;
	struct place place; /* symbolize */
	struct place *all; /* symbolize_all; NULL: not asked for yet */
	size_t n_all;
	UT_hash_handle hh;
};

/* A file we have looked at. */
struct object {
	const char *path, *build_id; /* in key */
	char *found; /* build id of what is there now */
	bool zstd; /* has debug sections that were compressed so, which cannot be read here */
	Dwfl *dwfl; /* NULL: not there, or not the one that ran */
	Dwfl_Module *module;
	UT_hash_handle hh;
	char key[]; /* both texts */
};

struct symbolizer {
	struct object *objects; /* in the order they were asked for */
	struct known_address *known;
	struct perf_maps maps;
	char host[256]; /* this one's name; empty: unknown */
	struct arena arena;
	char *(*cxa_demangle)(const char *name, char *buffer, size_t *size, int *status);
	void *libstdcxx;
	bool looked_for_libstdcxx;
};

struct symbolizer *symbolizer_new(void)
{
	struct symbolizer *s = xcalloc(1, sizeof(*s));

	if (gethostname(s->host, sizeof(s->host) - 1))
		s->host[0] = '\0';
	/* Asking servers for debug information would make a report wait for a network. */
	unsetenv("DEBUGINFOD_URLS");
	return s;
}

/* The only demangler there is without linking C++; most machines that run CUDA have it. Loaded for the first name that needs it. */
static bool find_demangler(struct symbolizer *s)
{
	if (!s->looked_for_libstdcxx) {
		s->looked_for_libstdcxx = true;
		s->libstdcxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
		if (s->libstdcxx)
			*(void **)&s->cxa_demangle = dlsym(s->libstdcxx, "__cxa_demangle");
	}
	return s->cxa_demangle;
}

void symbolizer_free(struct symbolizer *s)
{
	struct known_address *known, *next_known;
	struct object *object, *next;

	HASH_EMPTY (s->known, known, next_known) {
		free(known->all);
		free(known);
	}
	HASH_EMPTY (s->objects, object, next) {
		if (object->dwfl)
			dwfl_end(object->dwfl);
		free(object->found);
		free(object);
	}
	if (s->libstdcxx)
		dlclose(s->libstdcxx);
	perf_maps_release(&s->maps);
	arena_release(&s->arena);
	free(s);
}

/* How long the name is without what compilers append to their variants of a function: to its author
 * they are one. */
static size_t authors_length(const char *name)
{
	static const char *const variants[] = {".isra.", ".constprop.", ".part.",
					       ".cold",  ".lto_priv.",  ".llvm."};
	const char *end = name + strlen(name), *at;

	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		at = strstr(name, variants[i]);
		if (at && at > name && at < end)
			end = at;
	}
	return (size_t)(end - name);
}

const char *demangle(struct symbolizer *s, const char *name)
{
	size_t length;
	char *text;
	int status;

	if (!name)
		return NULL;
	length = authors_length(name);
	if (name[length])
		name = arena_printf(&s->arena, "%.*s", (int)length, name);
	if (strncmp(name, "_Z", 2) || !find_demangler(s))
		return name;
	text = s->cxa_demangle(name, NULL, NULL, &status);
	return text ? arena_take(&s->arena, text) : name;
}

/* In hex, as the trace has it; empty: it has none. The caller frees. */
static char *build_id_of(Dwfl_Module *module)
{
	const unsigned char *bits;
	GElf_Addr address;
	int i, n = module ? dwfl_module_build_id(module, &bits, &address) : 0;
	char *text = xcalloc(1, n > 0 ? 2 * (size_t)n + 1 : 1);

	for (i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bits[i]);
	return text;
}

static void open_object(struct object *object)
{
	static char *debuginfo_path; /* NULL: the usual directories */
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = &debuginfo_path,
	};
	int fd = open(object->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	int plain;

	if (fd < 0)
		return;
	plain = zstd_plain_copy(fd);
	object->zstd = plain == -ENOTSUP;
	if (plain >= 0) {
		close(fd);
		fd = plain;
	}
	object->dwfl = dwfl_begin(&callbacks);
	if (object->dwfl) {
		dwfl_report_begin(object->dwfl);
		object->module =
			dwfl_report_elf(object->dwfl, object->path, object->path, fd, 0, true);
		dwfl_report_end(object->dwfl, NULL, NULL);
	}
	if (!object->module)
		close(fd); /* else dwfl has it */
	object->found = build_id_of(object->module);
	if (object->module && *object->build_id && !strcasecmp(object->found, object->build_id))
		return;
	if (object->dwfl)
		dwfl_end(object->dwfl);
	object->dwfl = NULL;
	object->module = NULL;
}

static struct object *find_object(struct symbolizer *s, const struct module *module)
{
	size_t path_bytes = strlen(module->path) + 1;
	size_t bytes = path_bytes + strlen(module->build_id) + 1;
	struct object *object = xcalloc(1, sizeof(*object) + bytes), *known;

	memcpy(object->key, module->path, path_bytes);
	memcpy(object->key + path_bytes, module->build_id, bytes - path_bytes);
	HASH_FIND(hh, s->objects, object->key, bytes, known);
	if (known) {
		free(object);
		return known;
	}
	object->path = object->key;
	object->build_id = object->key + path_bytes;
	HASH_ADD_KEYPTR(hh, s->objects, object->key, bytes, object);
	if (*object->path == '/')
		open_object(object);
	return object;
}

const struct unread_file *symbolizer_unread(struct symbolizer *s, size_t *n)
{
	struct unread_file *files =
		arena_take(&s->arena, xcalloc(HASH_COUNT(s->objects), sizeof(*files)));

	*n = 0;
	for (const struct object *object = s->objects; object; object = object->hh.next)
		if ((!object->module || object->zstd) && *object->path == '/')
			files[(*n)++] = (struct unread_file){.path = object->path,
							     .recorded = object->build_id,
							     .found = object->found,
							     .zstd = object->module};
	return files;
}

void symbolizer_look(struct symbolizer *s, const struct module *module)
{
	find_object(s, module);
}

/* Source of a file address. libdwfl finds a compilation unit by .debug_aranges alone, which clang
 * does not write: without it, each unit is asked. */
static void find_source(Dwfl_Module *module, GElf_Addr address, struct place *place)
{
	Dwfl_Line *known = dwfl_module_getsrc(module, address);
	Dwarf_Die *unit = NULL;
	Dwarf_Addr bias;
	Dwarf_Line *line;

	if (known) {
		place->file = dwfl_lineinfo(known, NULL, &place->line, NULL, NULL, NULL);
		return;
	}
	while ((unit = dwfl_module_nextcu(module, unit, &bias))) {
		if (dwarf_haspc(unit, address - bias) <= 0)
			continue;
		line = dwarf_getsrc_die(unit, address - bias);
		if (line && !dwarf_lineno(line, &place->line))
			place->file = dwarf_linesrc(line, NULL, NULL);
		return;
	}
}

/* The compilation unit of a file address, by the same rule; NULL unknown. */
static Dwarf_Die *find_unit(Dwfl_Module *module, GElf_Addr address, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(module, address, bias);

	if (unit)
		return unit;
	while ((unit = dwfl_module_nextcu(module, unit, bias)))
		if (dwarf_haspc(unit, address - *bias) > 0)
			return unit;
	return NULL;
}

/* Where an inlined function was called. */
static bool find_call(Dwarf_Die *unit, Dwarf_Die *inlined, const char **file, int *line)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word number, at;

	if (dwarf_getsrcfiles(unit, &files, NULL) ||
	    dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &number) ||
	    dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &at))
		return false;
	*file = dwarf_filesrc(files, number, NULL, NULL);
	*line = (int)at;
	return true;
}

static const char *name_of(struct symbolizer *s, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	return name ? demangle(s, name) : dwarf_diename(die);
}

/* The scopes around a file address as they lie in each other, innermost first. The caller frees. */
static int find_scopes(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die **scopes)
{
	Dwarf_Die *innermost = NULL;
	int n = dwarf_getscopes(unit, address, &innermost);

	*scopes = NULL;
	n = n > 0 ? dwarf_getscopes_die(&innermost[0], scopes) : 0;
	free(innermost);
	return n;
}

/* ---- CUDA's code ----------------------------------------------------------------------------- */

/* By their names before ".so"; with * all that begin so. */
/* clang-format off */
static const char *const nvidias[] = {
	"libcublas", "libcublasLt", "libcudnn", "libcudnn_*", "libcufft", "libcufftMp", "libcufftw",
	"libcufile", "libcurand", "libcusolver", "libcusolverMg", "libcusparse", "libcusparseLt",
	"libcutensor", "libcutensorMg", "libnccl", "libnpp*", "libnvJitLink", "libnvblas",
	"libnvinfer", "libnvinfer_*", "libnvjpeg", "libnvjpeg2k", "libnvrtc", "libnvrtc-builtins",
	NULL};
/* clang-format on */
static const char *const cudas_own[] = {"libcuda", "libcudart", NULL};
/* Libraries call others back through these, and threads begin there: they say nothing of what is done. */
static const char *const systems[] = {"libc",     "libc-*", "libpthread*", "libstdc++",
				      "libgcc_s", "ld-*",   "linux-vdso",  NULL};
/* Frameworks and languages that a program calls, wherever they were installed. */
static const char *const frameworks[] = {
	"libffi",  "_ctypes", "_cffi_backend", "libtorch*", "libc10*",        "libcaffe2*",
	"libxla*", "xla_*",   "libjax*",       "pjrt_*",    "libtensorflow*", "libonnxruntime*",
	"libgomp", "libomp",  "libiomp5",      NULL};
static const char *const interpreters[] = {"libpython*", "python", "python2*", "python3*", NULL};

/* How much of a file's name is the library's: Python's packages add "-" and eight digits,
 * "libcudart-9335f6a2.so.12". */
static size_t name_length(const char *file)
{
	size_t length = strcspn(file, ".");

	if (length > 9 && file[length - 9] == '-' &&
	    strspn(file + length - 8, "0123456789abcdef") == 8)
		return length - 9;
	return length;
}

bool symbolize_is_library(const char *path, const char *name)
{
	const char *file = path_basename(path);
	size_t length = name_length(file), known = strlen(name);
	bool begins = name[known - 1] == '*';

	return (begins ? length >= --known : length == known) && !strncmp(file, name, known);
}

static bool is_one_of(const char *const *names, const char *path)
{
	for (; *names; names++)
		if (symbolize_is_library(path, *names))
			return true;
	return false;
}

static bool has_part(const char *path, const char *const *parts)
{
	for (; *parts; parts++)
		if (strstr(path, *parts))
			return true;
	return false;
}

static bool is_systems(const struct place *place)
{
	return place->path && is_one_of(systems, place->path);
}

/* Right in one of the distribution's folders for libraries: "/usr/lib/x86_64-linux-gnu/libcv.so". */
static bool is_distributions(const char *path)
{
	static const char *const folders[] = {"/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/", NULL};
	const char *file = path_basename(path), *const * folder, *triplet;

	for (folder = folders; *folder; folder++) {
		const char *in = path + strlen(*folder);

		if (strncmp(path, *folder, strlen(*folder)) != 0)
			continue;
		triplet = strstr(in, "-linux-gnu/");
		return in == file || (triplet && strchr(triplet, '/') + 1 == file);
	}
	return false;
}

/* A header whose templates are compiled into programs. */
static bool is_foreign_file(const char *file)
{
	static const char *const headers[] = {"/include/c++/", "/torch/include/", "/include/ATen/",
					      "/include/c10/", "/include/torch/", NULL};

	return has_part(file, headers);
}

/* Neither CUDA's nor the program's. */
static bool is_foreign(const struct place *place)
{
	static const char *const packages[] = {"/site-packages/", "/dist-packages/", "/lib/python3",
					       "/lib64/python3", NULL};

	if (place->file && is_foreign_file(place->file))
		return true;
	return place->path && (is_systems(place) || is_one_of(frameworks, place->path) ||
			       has_part(place->path, packages) || is_distributions(place->path));
}

/* Of CUDA's headers, those of Thrust and CUB (before CUDA 13 not in cccl) among them, or what nvcc
 * made of the program's file. */
static bool is_cudas_file(const char *file)
{
	static const char *const parts[] = {"cuda_runtime",
					    "/crt/device_functions.h",
					    ".cudafe1.stub.c",
					    "/include/cccl/",
					    "/include/thrust/",
					    "/include/cub/",
					    NULL};

	return has_part(file, parts);
}

#define STUB "__device_stub_"

/* The kernel of a stub: of nvcc's, whose name goes on with the kernel's own as linkers know it, or
 * of clang's. */
static const char *kernel_of(struct symbolizer *s, const char *stub)
{
	size_t length = strcspn(stub, "(");
	char *name;

	if (strncmp(stub, "_Z", 2) != 0)
		return *stub == '_' ? stub + 1 : NULL;
	name = arena_take(&s->arena, xcalloc(1, length + 1));
	memcpy(name, stub, length);
	return demangle(s, name);
}

static bool begins_with(const char *text, const char *begin)
{
	return !strncmp(text, begin, strlen(begin));
}

/* A function of the runtime that was linked to the program, or a wrapper of its name in a header:
 * "cudaError cudaMalloc<float>(float**, unsigned long)"; or one of Thrust or CUB, in a program
 * without debug information. */
static bool is_known_function(const char *function)
{
	const char *end = function + strcspn(function, "(<"), *name = end;

	while (name > function && name[-1] != ' ')
		name--;
	return functions_known(name, (size_t)(end - name)) || begins_with(name, "thrust::") ||
	       begins_with(name, "cub::");
}

/* What a runtime has inside that was linked to the program: hashes with this beginning. They are
 * shown as … */
static const char runtimes_function[] = "CUDA's runtime";

static bool is_runtimes_function(const char *function)
{
	return function == runtimes_function || begins_with(function, "libcudart_static_");
}

/* <<<>>> calls a function of the kernel's name, that one a stub, and that one a function of a
 * header. */
static bool is_cudas_function(const char *function)
{
	static const char *const parts[] = {"__cudaLaunchKernel_helper", "__wrapper__device_stub_",
					    NULL};

	return has_part(function, parts) || is_runtimes_function(function) ||
	       is_known_function(function);
}

/* "libggml.so", "libcv.so.4.2", "addon.node". */
static bool is_library(const char *path)
{
	const char *file = path_basename(path), *suffix = strstr(file, ".so");

	return (suffix && (!suffix[3] || suffix[3] == '.')) ||
	       (file[0] && !strcmp(file + strcspn(file, "."), ".node"));
}

static void look_for_cudas(struct symbolizer *s, struct place *place)
{
	bool stub = place->function && begins_with(place->function, STUB);

	place->unlined = false;
	place->library = is_one_of(nvidias, place->path);
	place->kernel = stub ? kernel_of(s, place->function + strlen(STUB)) : NULL;
	place->cudas =
		stub || place->library || (place->function && is_cudas_function(place->function)) ||
		(place->file && is_cudas_file(place->file)) || is_one_of(cudas_own, place->path);
	place->interpreter = is_one_of(interpreters, place->path);
	place->foreign = !place->cudas && !place->interpreter && is_foreign(place);
	place->unlined = !place->file && !place_is_between(place) && is_library(place->path);
	if (place->cudas && place->function && is_runtimes_function(place->function))
		place->function = runtimes_function;
}

/* The first time is not the only one: "k" is in "work::k(int)" twice. */
bool symbolize_is_kernels(const char *function, const char *kernel)
{
	size_t length = function ? strlen(function) : 0;

	for (const char *at = length && kernel ? strstr(kernel, function) : NULL; at;
	     at = strstr(at + 1, function))
		if ((at == kernel || at[-1] == ' ' || at[-1] == ':') &&
		    (!at[length] || at[length] == '('))
			return true;
	return false;
}

struct walk {
	struct place *entry;
	struct place framework; /* that called NVIDIA's library; no path: none */
	const char *kernel;
	bool between; /* somebody else's code so far */
	bool unlined; /* which libraries without lines are, too */
};

/* Where nothing was told yet, or something without a name. */
static bool is_more_precise(const struct place *place, const struct place *known)
{
	return !known->path || (place->function && !known->function);
}

/* Somebody else's code on the way to the call. */
static void note_between(struct walk *walk, const struct place *place)
{
	struct place *entry = walk->entry;

	walk->between = true;
	walk->kernel = place->kernel ?: walk->kernel;
	if (place->library && (place->function || !entry->function))
		*entry = *place;
	if ((!place->foreign && !place->unlined) || is_systems(place))
		return;
	if (!entry->library && is_more_precise(place, entry))
		*entry = *place;
	else if (entry->library && is_more_precise(place, &walk->framework))
		walk->framework = *place;
}

/* The program's own? What lies before it is noted. */
static bool walk_ends(struct walk *walk, const struct place *place)
{
	if (!place_is_between(place) || (place->unlined && !walk->unlined))
		return !walk->between || !symbolize_is_kernels(place->function, walk->kernel);
	note_between(walk, place);
	return false;
}

enum walked { WALKED_TO_PROGRAM, WALKED_TO_INTERPRETER, WALKED_OUT };

/* To the innermost frame that is the program's own. */
static enum walked walk_stack(struct symbolizer *s, const struct stack *stack, struct walk *walk,
			      struct place *place)
{
	struct place places[INLINED_MOST];
	size_t i, j, n;

	for (i = 0; i < stack->n; i++) {
		n = symbolize_all(s, stack->process, stack->frames[i], stack->ns, places);
		for (j = 0; j < n && !walk_ends(walk, &places[j]); j++)
			if (places[j].interpreter)
				return WALKED_TO_INTERPRETER;
		if (j == n)
			continue;
		*place = places[n - 1];
		place->kernel = walk->kernel;
		place->file = places[j].file;
		place->line = places[j].line;
		place->inner = j < n - 1 ? places[j].function : NULL;
		return WALKED_TO_PROGRAM;
	}
	return WALKED_OUT;
}

bool symbolize_caller(struct symbolizer *s, const struct stack *stack, struct place *place,
		      struct place *entry)
{
	struct place library = {0};
	struct walk walk = {.entry = &library, .unlined = true};
	enum walked walked = walk_stack(s, stack, &walk, place);

	*entry = library;
	/* If not to a line, then to the innermost code that may be the program's. */
	if (walked != WALKED_TO_PROGRAM || !place->file) {
		walk = (struct walk){.entry = entry};
		*entry = (struct place){0};
		walked = walk_stack(s, stack, &walk, place);
	}
	if (walked == WALKED_TO_PROGRAM && walk.between) {
		/* Templates of a library's headers, compiled into the program: nothing that it calls. */
		if (entry->path && !strcmp(entry->path, place->path))
			*entry = (struct place){0};
		return true;
	}
	*entry = walk.between ? *entry : library;
	*place = walk.framework;
	return false;
}

void symbolize_program(struct symbolizer *s, const struct process *process, uint64_t address,
		       uint64_t ns, const struct stack *stack, struct place *place,
		       struct place *entry)
{
	struct place programs;

	symbolize(s, process, address, ns, place);
	if (stack && place_is_between(place) && symbolize_caller(s, stack, &programs, entry))
		*place = programs;
	else
		*entry = (struct place){0};
}

/* ---- places ---------------------------------------------------------------------------------- */

/*
 * The line found is that of the innermost function compiled into the ones around it, which is
 * named, too. But a wrapper of a header of CUDA's or of a library's, compiled into its caller, names a line of
 * the header: the line to show is the one that called it.
 */
static void enter_inlined(struct symbolizer *s, Dwfl_Module *module, GElf_Addr address,
			  struct place *place)
{
	Dwarf_Die *unit, *scopes = NULL;
	Dwarf_Addr bias;
	int n, i;

	unit = find_unit(module, address, &bias);
	n = unit ? find_scopes(unit, address - bias, &scopes) : 0;
	for (i = 0; i < n; i++) {
		if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
			continue;
		if (!place->file ||
		    (!is_cudas_file(place->file) && !is_foreign_file(place->file))) {
			place->inner = name_of(s, &scopes[i]);
			break;
		}
		find_call(unit, &scopes[i], &place->file, &place->line);
	}
	free(scopes);
}

/* No place is a line of the C or C++ library, whose debug information, where it is installed, takes long to decompress. */
static bool has_lines(const struct object *object)
{
	return object->module && !is_one_of(systems, object->path);
}

static void look_up(struct symbolizer *s, const struct object *object, struct place *place)
{
	GElf_Addr call = place->offset - 1; /* the next one may be of another line, or function */

	if (object->module) {
		place->function = demangle(s, dwfl_module_addrname(object->module, call));
		if (has_lines(object)) {
			find_source(object->module, call, place);
			enter_inlined(s, object->module, call, place);
		}
	}
	look_for_cudas(s, place);
	if (!place->cudas)
		return;
	place->file = place->inner = NULL;
	place->line = 0;
}

static struct known_address *find_known(struct symbolizer *s, const struct object *object,
					uint64_t offset)
{
	struct known_key key = {object, offset};
	struct known_address *known;

	HASH_FIND(hh, s->known, &key, sizeof(key), known);
	if (known)
		return known;
	known = xcalloc(1, sizeof(*known));
	known->key = key;
	known->place = (struct place){.path = object->path, .offset = offset};
	look_up(s, object, &known->place);
	redact_path(known->place.file);
	HASH_ADD(hh, s->known, key, sizeof(known->key), known);
	return known;
}

/* May files that a process left behind be here? Numbers of processes mean nothing on another
 * host. */
static bool may_be_here(const struct symbolizer *s, const struct process *process)
{
	const char *name = process->trace->host->name;

	return !name || !*s->host || !strcmp(name, s->host);
}

void symbolize(struct symbolizer *s, const struct process *process, uint64_t address, uint64_t ns,
	       struct place *place)
{
	const struct module *module = model_module(process, address, ns);
	const struct object *object;

	if (module) {
		object = find_object(s, module);
		*place = (struct place){.path = object->path, .offset = address - module->base};
		if (object->module)
			*place = find_known(s, object, place->offset)->place;
		else
			look_for_cudas(s, place);
		return;
	}
	*place = (struct place){.offset = address};
	if (!may_be_here(s, process))
		return;
	place->function = perf_map_find(&s->maps, process->trace->pid, process->first_ns, address,
					&place->file);
	place->interpreted = place->function;
}

const char *symbolize_data(struct symbolizer *s, const struct process *process, uint64_t address,
			   uint64_t ns)
{
	const struct module *module = model_module_of_data(process, address, ns);
	const struct object *object = module ? find_object(s, module) : NULL;
	const char *name = NULL;
	GElf_Off inside;
	GElf_Sym symbol;

	if (object && object->module)
		name = dwfl_module_addrinfo(object->module, address - module->base, &inside,
					    &symbol, NULL, NULL, NULL);
	if (!name || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || inside >= symbol.st_size)
		return NULL;
	name = demangle(s, name);
	return inside ? arena_printf(&s->arena, "%s+0x%llx", name, (unsigned long long)inside)
		      : name;
}

/* outer: as look_up has it. */
static size_t look_up_all(struct symbolizer *s, Dwfl_Module *object, struct place outer,
			  struct place places[INLINED_MOST])
{
	Dwarf_Die *scopes = NULL, *unit;
	Dwarf_Addr bias;
	size_t count = 0;
	int n = 0, i;

	unit = find_unit(object, outer.offset - 1, &bias);
	if (unit) {
		n = find_scopes(unit, outer.offset - 1 - bias, &scopes);
		find_source(object, outer.offset - 1, &outer);
	}
	for (i = 0; i < n && count + 1 < INLINED_MOST; i++) {
		if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
			continue;
		places[count] = outer;
		places[count].function = name_of(s, &scopes[i]);
		places[count].inlined = true;
		look_for_cudas(s, &places[count]);
		if (!find_call(unit, &scopes[i], &outer.file, &outer.line))
			break;
		count++;
	}
	free(scopes);
	look_for_cudas(s, &outer);
	places[count++] = outer;
	return count;
}

size_t symbolize_all(struct symbolizer *s, const struct process *process, uint64_t address,
		     uint64_t ns, struct place places[INLINED_MOST])
{
	const struct module *module = model_module(process, address, ns);
	struct object *object = module ? find_object(s, module) : NULL;
	struct known_address *known;

	if (!object || !has_lines(object)) {
		symbolize(s, process, address, ns, &places[0]);
		return 1;
	}
	known = find_known(s, object, address - module->base);
	if (!known->all) {
		known->n_all = look_up_all(s, object->module, known->place, places);
		known->all = xcalloc(known->n_all, sizeof(*known->all));
		memcpy(known->all, places, known->n_all * sizeof(*places));
	}
	memcpy(places, known->all, known->n_all * sizeof(*places));
	return known->n_all;
}
