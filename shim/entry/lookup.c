/*
 * shim/entry/lookup.c: what dlsym and dlvsym answer when they are asked for a function of CUDA's.
 * Runs on the application's threads, within its look-ups.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include "gpu/gpu.h"
#include "hook/loader.h"
#include "hook/resolve.h"
#include "hook/slots.h"
#include "hook/wrap.h"
#include "nccl/profiler.h"
#include "process/options.h"
#include "entry/lifecycle.h"
#include "record/notes.h"
#include "state/session.h"

/* The real answer to a look-up made from here, error message included. */
static void *ask(void *handle, const char *name, const char *version)
{
	return version ? spy_real_dlvsym(handle, name, version) : spy_real_dlsym(handle, name);
}

/* The stub to answer with for a real function that a look-up found. */
static void *wrap_found(int fn, void *found)
{
	struct spy_place at = spy_loader_at(found, fn);

	/* An interposer before us calls on; we shall see its call. */
	if ((at.found && at.position < spy_loader_self) || !spy_lock(&spy_session->wrap_lock))
		return found;
	found = spy_wrap_stub_for(fn, at.layer, found);
	spy_unlock(&spy_session->wrap_lock);
	return found;
}

/*
 * A global search found our own stub first: what would it have found without the shim? What lies
 * behind the shim in the global scope; or, for a caller that was opened later, in the scope of its
 * own.
 */
static void *behind_us(int fn, void *handle, const char *name, const char *version,
		       const void *caller)
{
	void *found = ask(RTLD_NEXT, name, version);
	int layer;

	if (!found && handle == RTLD_DEFAULT &&
	    spy_loader_at(caller, fn).position >= spy_loader_startup)
		found = spy_resolve_find(fn, version, &layer);
	if (found)
		(void)dlerror(); /* of our own question */
	return found;
}

/* Names of the driver's that have no row: the answer goes out as it is, and into the trace. */
static void *look_up_unknown(void *handle, const char *name, const char *version)
{
	void *found = ask(handle, name, version);

	if (found && spy_loader_at(found, SPY_RUNTIME_ROWS).layer == SPY_LAYER_DRIVER)
		spy_note(SPY_NOTE_UNKNOWN, "%s", name);
	return found;
}

/* A static runtime begins by looking this one up. What it does shows at the driver's level only. */
static void note_static_runtime(int fn, const void *caller)
{
	struct spy_place at;

	if (fn != SPY_FN_cuGetProcAddress_v2 && fn != SPY_FN_cuGetProcAddress)
		return;
	at = spy_loader_at(caller, SPY_FN_cudaFree);
	if (at.found && at.layer < 0)
		spy_note(SPY_NOTE_OTHER,
			 "%s looks the driver's functions up by itself, as a CUDA runtime linked "
			 "statically does: its calls are seen at the driver's level",
			 *at.path ? at.path : program_invocation_name);
}

/* Decides a look-up whose name begins like CUDA's, made at `caller`. Returns 1 and the answer,
 * or 0: jump to the real function, which will see the caller as it is. Called by the assembly. */
__attribute__((visibility("hidden"))) int
spy_lookup(void *handle, const char *name, const char *version, void **answer, const void *caller);

int spy_lookup(void *handle, const char *name, const char *version, void **answer,
	       const void *caller)
{
	bool own;
	int fn;

	spy_lifecycle_init();
	fn = name ? spy_slots_find(name) : -1;
	if (handle == RTLD_NEXT) {
		/* Only the loader knows what is next after the caller. But where nothing behind
		 * us has the function, our stub must not be the answer. */
		if (fn < 0 || spy_loader_at(caller, fn).position > spy_loader_self ||
		    ask(RTLD_NEXT, name, version))
			return 0;
		*answer = NULL;
		return 1;
	}
	if (fn < 0) {
		/* The answer to RTLD_DEFAULT depends on the caller: the real function must see
		 * it. */
		if (name && handle != RTLD_DEFAULT && spy_options.gpu &&
		    strncmp(name, "cupti", 5) == 0) {
			*answer = spy_gpu_look_up(name, ask(handle, name, version));
			return 1;
		}
		if (name && handle != RTLD_DEFAULT && strncmp(name, "ncclProfiler_v", 14) == 0) {
			*answer = spy_nccl_look_up(name, ask(handle, name, version));
			return 1;
		}
		if (!name || handle == RTLD_DEFAULT || strncmp(name, "cu", 2) != 0 ||
		    name[2] < 'A' || name[2] > 'Z')
			return 0;
		*answer = look_up_unknown(handle, name, version);
		return 1;
	}
	note_static_runtime(fn, caller);
	/* A library of CUDA's looks itself up: what it gets is its own. */
	own = spy_loader_at(caller, fn).layer >= 0;
	*answer = ask(handle, name, version);
	if (*answer && spy_wrap_is_stub(*answer))
		*answer = behind_us(fn, handle, name, version, caller);
	if (*answer && !own && spy_wrap_wants(fn))
		*answer = wrap_found(fn, *answer);
	return 1;
}
