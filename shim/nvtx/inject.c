/*
 * shim/nvtx/inject.c: the program's NVTX finds the recorder. Runs when the library is loaded, and on
 * the application's threads when an object's NVTX is used for the first time.
 *
 * NVTX is a header: each object that uses it has functions and slots of its own, and asks for a tool
 * before its first function does anything. It loads what NVTX_INJECTION64_PATH names and calls the
 * function below. So the recorder puts its own path there. What was there before, another tool, goes
 * into CUDASPY_NVTX_NEXT, and is loaded and asked from here: both see each call, and the program
 * gets the other tool's answers.
 *
 * Programs that are started by this one inherit both variables. If they are recorded, too, the same
 * happens there. If not (their LD_PRELOAD was taken away), NVTX loads this library as any tool:
 * then it only passes on to the other one, and without one says that there is no tool.
 */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "lib/lock.h"
#include "nvtx/callbacks.h"
#include "nvtx/inject.h"
#include "process/options.h"
#include "record/board.h"
#include "state/session.h"

#define NEXT_VARIABLE "CUDASPY_NVTX_NEXT"
#define OWN_NAME "libcudaspy.so"
#define OLD_INIT_NAME "InitializeInjectionNvtx" /* of NVTX 1 and 2 */

static bool recording; /* NVTX is to be recorded in this process */
static bool early; /* loaded before the C library */
static char next_path[SPY_PATH_MAX]; /* the other tool; empty: none */

/* ---- when the library is loaded --------------------------------------------------------------- */

struct place {
	char path[SPY_PATH_MAX];
	bool found, libc_came; /* in the loader's order */
	bool before_libc;
};

static bool has(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    address - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr <
			    info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct place *place = data;

	(void)size;
	if (has(info, (uintptr_t)&recording)) {
		place->found = true;
		place->before_libc = !place->libc_came;
		if (!realpath(info->dlpi_name, place->path))
			place->path[0] = '\0';
	}
	place->libc_came |= has(info, (uintptr_t)gnu_get_libc_version);
	return place->found && place->libc_came;
}

/* Does a path name this library, or another copy of it? */
static bool is_own(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash ? slash + 1 : path, OWN_NAME, strlen(OWN_NAME)) == 0;
}

/* What the user set: the variable, or what a parent process found there. */
static const char *users_tool(const char *variable)
{
	const char *kept = getenv(NEXT_VARIABLE);

	if (variable && *variable && !is_own(variable))
		return variable;
	return kept ? kept : "";
}

static void set_back(const char *tool)
{
	unsetenv(NEXT_VARIABLE);
	if (*next_path)
		setenv(NVTX_TOOL_VARIABLE, tool, 1);
	else
		unsetenv(NVTX_TOOL_VARIABLE);
}

void spy_nvtx_arrange(void)
{
	bool wanted = !spy_session_failed() && !spy_options.nonvtx;
	const char *variable = getenv(NVTX_TOOL_VARIABLE), *tool = users_tool(variable);
	bool ours = variable && is_own(variable);
	struct place place = {0};

	dl_iterate_phdr(visit, &place);
	early = place.found && place.before_libc;
	if (strlen(tool) >= sizeof(next_path))
		return;
	strcpy(next_path, tool);
	/* One that was loaded later is a tool among others, and threads may read the environment. */
	if (!early)
		return;
	if (!wanted || !place.path[0]) {
		if (ours)
			set_back(next_path);
		return;
	}
	recording = setenv(NEXT_VARIABLE, next_path, 1) == 0 &&
		    setenv(NVTX_TOOL_VARIABLE, place.path, 1) == 0;
}

bool spy_nvtx_is_early(void)
{
	return early;
}

/* ---- when an object's NVTX asks for a tool ------------------------------------------------------ */

static struct spy_lock lock; /* of spy_nvtx_next, and of the modules below */
static uint32_t left; /* functions that were left to the other tool */

#define MODULES 4
static const struct {
	int module;
	unsigned int end;
} modules[MODULES] = {
	{NVTX_MODULE_CORE, NVTX_CORE_END},
	{NVTX_MODULE_CORE2, NVTX_CORE2_END},
	{NVTX_MODULE_CUDA, NVTX_CUDA_END},
	{NVTX_MODULE_CUDART, NVTX_CUDART_END},
};

/* An object's slots, and what was in them before the other tool was asked. */
struct slots {
	unsigned int n[MODULES];
	nvtx_function ***at[MODULES];
	nvtx_function *before[MODULES][SPY_NVTX_FUNCTIONS];
};

static bool find_slots(struct slots *slots, nvtx_get_table *get)
{
	const struct nvtx_callbacks *callbacks = get ? get(NVTX_TABLE_CALLBACKS) : NULL;

	if (!callbacks || callbacks->bytes < sizeof(*callbacks) || !callbacks->module)
		return false;
	for (int m = 0; m < MODULES; m++) {
		unsigned int n = 0;

		if (!callbacks->module(modules[m].module, &slots->at[m], &n) || !slots->at[m])
			n = 0;
		slots->n[m] = n < modules[m].end ? n : modules[m].end;
		for (unsigned int i = 1; i < slots->n[m]; i++)
			slots->before[m][i] = slots->at[m][i] ? *slots->at[m][i] : NULL;
	}
	return slots->n[0];
}

static void put_back(const struct slots *slots)
{
	for (int m = 0; m < MODULES; m++)
		for (unsigned int i = 1; i < slots->n[m]; i++)
			if (slots->at[m][i])
				*slots->at[m][i] = slots->before[m][i];
}

static void fill_slot(nvtx_function **slot, nvtx_function *before, int m, unsigned int i,
		      bool has_tool)
{
	int module = modules[m].module;
	enum spy_nvtx_mode mode = has_tool ? SPY_NVTX_MUTE : SPY_NVTX_ALONE;
	nvtx_function *theirs = *slot != before ? *slot : NULL;
	nvtx_function **next = &spy_nvtx_next[module][i];

	if (!spy_nvtx_callback(module, i, mode))
		return;
	if (theirs) {
		if (*next && *next != theirs) {
			left++;
			return;
		}
		__atomic_store_n(next, theirs, __ATOMIC_RELEASE);
		mode = SPY_NVTX_CHAINED;
	}
	*slot = spy_nvtx_callback(module, i, mode);
}

static void fill_slots(const struct slots *slots, bool has_tool)
{
	if (!spy_lock(&lock))
		return; /* this object's ranges are not recorded */
	for (int m = 0; m < MODULES; m++)
		for (unsigned int i = 1; i < slots->n[m]; i++)
			if (slots->at[m][i])
				fill_slot(slots->at[m][i], slots->before[m][i], m, i, has_tool);
	spy_unlock(&lock);
	if (left && spy_session_active())
		spy_board_show(spy_session->board->nvtx_left, left);
}

void spy_nvtx_forked(void)
{
	spy_lock_forget(&lock);
}

/* The other tool's function of that name. The library stays loaded, as NVTX would keep it. */
static void *next_function(const char *name)
{
	void *library = next_path[0] && !is_own(next_path) ? dlopen(next_path, RTLD_LAZY) : NULL;

	return library ? dlsym(library, name) : NULL;
}

/* Called by an object's NVTX. Not 0: the slots that were filled are used. */
int InitializeInjectionNvtx2(nvtx_get_table *get) __attribute__((visibility("default")));

int InitializeInjectionNvtx2(nvtx_get_table *get)
{
	nvtx_initialize *next = (nvtx_initialize *)next_function(NVTX_INIT_NAME);
	struct slots slots = {0};
	int result;

	if (!recording || !find_slots(&slots, get))
		return next ? next(get) : 0;
	result = next ? next(get) : 0;
	/* A tool that failed is no tool: NVTX would use none of its functions. */
	if (!result)
		put_back(&slots);
	fill_slots(&slots, result);
	return result ? result : 1;
}

/* The same for NVTX 1 and 2, whose tables are others: for the other tool. */
int InitializeInjectionNvtx(nvtx_get_table *get) __attribute__((visibility("default")));

int InitializeInjectionNvtx(nvtx_get_table *get)
{
	nvtx_initialize *next = (nvtx_initialize *)next_function(OLD_INIT_NAME);

	return next ? next(get) : 0;
}
