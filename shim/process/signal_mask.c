/*
 * shim/process/signal_mask.c: the signal masks of the program's threads, as the program sees them and
 * as they are. Runs on any thread, within its calls of pthread_sigmask and sigprocmask, and at both
 * ends of the shim's slow paths.
 */
#include <stdatomic.h>
#include "lib/elf_object.h"
#include "lib/signal_guard.h"
#include "process/signal_mask.h"
#include "state/thread.h"

#define EXPORT __attribute__((visibility("default")))
#define MARK SIGSTKFLT

typedef int change_mask(int how, const sigset_t *set, sigset_t *old);

static change_mask *real_sigmask, *real_procmask;

/* Found when first asked for: before any constructor. */
static change_mask *find(change_mask **real, const char *name)
{
	change_mask *found = __atomic_load_n(real, __ATOMIC_RELAXED);

	if (!found) {
		found = (change_mask *)spy_next_symbol(name);
		__atomic_store_n(real, found, __ATOMIC_RELAXED);
	}
	return found;
}

int spy_signal_mask_set(int how, const sigset_t *set, sigset_t *old)
{
	return find(&real_sigmask, "pthread_sigmask")(how, set, old);
}

/* ---- whose the mark is ----------------------------------------------------------------------- */

_Atomic bool spy_truncation_watched;

enum { MARK_FREE, MARK_OURS, MARK_PROGRAMS };

static _Atomic int mark_is;

static bool is_ours(void)
{
	return atomic_load_explicit(&mark_is, memory_order_relaxed) == MARK_OURS;
}

/* Who comes first has it for good. */
static bool take_mark(int owner)
{
	int none = MARK_FREE;

	return atomic_compare_exchange_strong(&mark_is, &none, owner) || none == owner;
}

static bool has(const sigset_t *set, int number)
{
	return sigismember(set, number) == 1;
}

static bool names_mark_alone(const sigset_t *set)
{
	return has(set, MARK) && !has(set, SIGBUS);
}

bool spy_signal_mask_is_marked(const sigset_t *mask)
{
	return is_ours() && has(mask, MARK);
}

/* Only threads that write records, and while there is a handler that mends their files. */
static bool may_mark(void)
{
	return spy_self->page &&
	       atomic_load_explicit(&spy_truncation_watched, memory_order_relaxed) &&
	       take_mark(MARK_OURS);
}

void spy_signal_mask_mark(sigset_t *mask)
{
	if (!has(mask, SIGBUS) || !may_mark())
		return;
	sigdelset(mask, SIGBUS);
	sigaddset(mask, MARK);
}

bool spy_signal_mask_clean(int number, const struct sigaction *action, sigset_t *mask)
{
	bool alone = names_mark_alone(&action->sa_mask);

	if (!alone && (number != MARK || action->sa_handler == SIG_DFL))
		return false;
	if (take_mark(MARK_PROGRAMS) || !alone)
		return false;
	*mask = action->sa_mask;
	sigdelset(mask, MARK);
	return true;
}

/* ---- what the program does ------------------------------------------------------------------- */

static __thread bool names_mark; /* where the program blocked SIGBUS it named SIGSTKFLT, too */

/* What to give the kernel for what the program asks for. */
static sigset_t translate(int how, const sigset_t *set)
{
	sigset_t wanted = *set;

	if (names_mark_alone(set) && is_ours()) {
		sigdelset(&wanted, MARK);
	} else if (names_mark_alone(set) && how != SIG_UNBLOCK) {
		take_mark(MARK_PROGRAMS);
	} else if (how != SIG_UNBLOCK) {
		names_mark = has(set, MARK);
		spy_signal_mask_mark(&wanted);
	} else if (has(set, SIGBUS) && is_ours()) {
		sigaddset(&wanted, MARK);
	}
	return wanted;
}

static void translate_back(sigset_t *old, bool named)
{
	if (!spy_signal_mask_is_marked(old) || has(old, SIGBUS))
		return;
	sigaddset(old, SIGBUS);
	if (!named)
		sigdelset(old, MARK);
}

static int change(change_mask *real, int how, const sigset_t *set, sigset_t *old)
{
	bool named = names_mark;
	sigset_t wanted;
	int result;

	if (set)
		wanted = translate(how, set);
	result = real(how, set ? &wanted : NULL, old);
	if (result)
		names_mark = named;
	else if (old)
		translate_back(old, named);
	return result;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return change(find(&real_sigmask, "pthread_sigmask"), how, set, old);
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return change(find(&real_procmask, "sigprocmask"), how, set, old);
}

/* ---- the shim's slow paths -------------------------------------------------------------------- */

/* Those that the kernel raises for what an instruction or a system call does. It kills a thread that
 * blocks them, where a handler of the program's would have answered. */
static const int synchronous[] = {SIGBUS, SIGSYS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP};

#define N_SYNCHRONOUS (sizeof(synchronous) / sizeof(synchronous[0]))
#define N_NEEDED 2 /* of these in a slow path, also in a thread that blocks them */

/* What a slow path raises itself, by a truncated file or in a sandbox, is handled also where the
 * program blocks it, unless one is pending: that would come now. */
static void open_needed(const sigset_t *before)
{
	sigset_t pending, open;
	bool any = false;

	if ((!has(before, SIGBUS) && !has(before, SIGSYS)) || sigpending(&pending) != 0)
		return;
	sigemptyset(&open);
	for (size_t i = 0; i < N_NEEDED; i++)
		if (has(before, synchronous[i]) && !has(&pending, synchronous[i])) {
			sigaddset(&open, synchronous[i]);
			any = true;
		}
	if (any)
		spy_signal_mask_set(SIG_UNBLOCK, &open, NULL);
}

bool spy_signals_hold(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	for (size_t i = 0; i < N_SYNCHRONOUS; i++)
		sigdelset(&all, synchronous[i]);
	if (spy_signal_mask_set(SIG_BLOCK, &all, before) != 0)
		return false;
	open_needed(before);
	return true;
}

void spy_signals_release(const sigset_t *before)
{
	sigset_t mask = *before, pending;

	if (!spy_self_deferring && names_mark_alone(before)) /* the program's mask, not a guard's */
		take_mark(MARK_PROGRAMS);
	/* One that is pending stays so. */
	if (has(before, SIGBUS) && sigpending(&pending) == 0 && !has(&pending, SIGBUS))
		spy_signal_mask_mark(&mask);
	spy_signal_mask_set(SIG_SETMASK, &mask, NULL);
}
