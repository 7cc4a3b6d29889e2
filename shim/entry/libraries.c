/*
 * shim/entry/libraries.c: looks at libraries that are opened and closed. Runs on the application's
 * threads, within its dlopen, dlmopen and dlclose.
 */
#include <dlfcn.h>
#include "describe/describe.h"
#include "hook/loader.h"
#include "hook/wrap.h"
#include "lib/signal_guard.h"
#include "process/elf_scan.h"
#include "process/own_stack.h"
#include "entry/lifecycle.h"
#include "record/notes.h"
#include "state/session.h"

/* ---- dlclose -------------------------------------------------------------------------------- */

static void look_at_modules(void *unused)
{
	(void)unused;
	spy_modules_look();
}

int dlclose(void *handle) __attribute__((visibility("default")));

int dlclose(void *handle)
{
	struct spy_object_counters before = {0}, after = {0};
	const struct spy_python *python;
	uint32_t turn;
	bool counted;
	int result;

	spy_lifecycle_init();
	/* What is to be unloaded may never have been looked at. */
	if (spy_session_active())
		spy_own_stack_run(look_at_modules, NULL);
	counted = spy_count_objects(&before);
	python = spy_python_unload_begin(&turn);
	result = spy_real_dlclose(handle);
	if (counted && spy_count_objects(&after) && after.removed == before.removed) {
		spy_python_unload_end(python, turn);
		return result;
	}
	spy_python_unload_end(NULL, turn);
	spy_own_stack_run(spy_wrap_forget_unloaded, NULL);
	if (python) { /* it may be there all the same: something else was unloaded */
		__atomic_store_n(&spy_session->python_forgotten, true, __ATOMIC_RELEASE);
		spy_own_stack_run(look_at_modules, NULL);
	}
	return result;
}

/* ---- dlopen and dlmopen pass by ------------------------------------------------------------- */

__attribute__((visibility("hidden"))) void spy_peek_dlopen(const char *file, int mode);
__attribute__((visibility("hidden"))) void spy_peek_dlmopen(Lmid_t space, const char *file,
							    int mode);

void spy_peek_dlopen(const char *file, int mode)
{
	SPY_SIGNAL_GUARD;

	spy_lifecycle_init();
	if (file && (mode & RTLD_DEEPBIND))
		spy_note(SPY_NOTE_BLIND,
			 "%s was opened with RTLD_DEEPBIND: CUDA calls it makes to libraries it "
			 "brings along are not seen",
			 file);
}

void spy_peek_dlmopen(Lmid_t space, const char *file, int mode)
{
	SPY_SIGNAL_GUARD;

	(void)mode;
	spy_lifecycle_init();
	if (file && space != LM_ID_BASE)
		spy_note(SPY_NOTE_BLIND,
			 "%s was opened in a link-map namespace of its own: CUDA calls made there "
			 "are not seen",
			 file);
}
