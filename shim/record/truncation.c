/*
 * shim/record/truncation.c: files of the trace that are truncated while they are mapped. The handler
 * runs on any thread that touches them; the rest within the program's own calls of sigaction and
 * its kin, and in slow paths.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "record/board.h"
#include "lib/disk.h"
#include "lib/elf_object.h"
#include "lib/lock.h"
#include "lib/signal_guard.h"
#include "state/session.h"
#include "process/signal_mask.h"
#include "record/truncation.h"

#define EXPORT __attribute__((visibility("default")))
#define SA_RESTORER_ 0x04000000 /* the kernel shows it in old actions */

typedef void (*handler)(int);

#define FUNCTIONS(F) \
	F(int, sigaction, (int, const struct sigaction *, struct sigaction *)) \
	F(handler, signal, (int, handler)) \
	F(handler, bsd_signal, (int, handler)) \
	F(handler, ssignal, (int, handler)) \
	F(handler, sysv_signal, (int, handler)) \
	F(handler, __sysv_signal, (int, handler)) \
	F(handler, sigset, (int, handler)) \
	F(int, sigignore, (int)) \
	F(int, siginterrupt, (int, int))

static struct {
#define POINTER(type, name, params) type(*name) params;
	FUNCTIONS(POINTER)
#undef POINTER
} real;

static void find_all(void)
{
#define FIND(type, name, params) real.name = (type(*) params)spy_next_symbol(#name);
	FUNCTIONS(FIND)
#undef FIND
}

/* Found when first asked for: before any constructor. */
#define REAL(name) (__atomic_load_n(&real.name, __ATOMIC_RELAXED) ?: (find_all(), real.name))

/* ---- what the program wants ----------------------------------------------------------------- */

/* Of what follows, but for the handler, which only reads it. A signal handler that comes in
 * between may take it over. */
static struct spy_lock lock;
static struct sigaction settings[2]; /* the program's own, and the one before */
static _Atomic unsigned int setting;

static void on_bus(int number, siginfo_t *info, void *context);

/* Installs the handler for these settings of the program. It behaves alike: it runs on the same
 * stack, and system calls are restarted or not. The lock is held. */
static void install(const struct sigaction *action)
{
	struct sigaction ours = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
	unsigned int next = !atomic_load(&setting);

	ours.sa_flags |= action->sa_flags & (SA_ONSTACK | SA_RESTART);
	if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN)
		ours.sa_flags |= SA_ONSTACK | SA_RESTART;
	sigfillset(&ours.sa_mask);
	settings[next] = *action;
	atomic_store(&setting, next);
	REAL(sigaction)(SIGBUS, &ours, NULL);
}

static bool is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_bus;
}

void spy_truncation_watch(void)
{
	struct sigaction now;

	if (REAL(sigaction)(SIGBUS, NULL, &now) != 0 || is_ours(&now))
		return;
	if (!spy_lock_table(&lock))
		return;
	install(&now);
	atomic_store(&spy_truncation_watched, true);
	spy_unlock(&lock);
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction before, wanted;
	bool alone;

	if (action) {
		wanted = *action;
		if (spy_signal_mask_clean(number, action, &wanted.sa_mask))
			action = &wanted;
	}
	if (number != SIGBUS || !atomic_load(&spy_truncation_watched))
		return REAL(sigaction)(number, action, old);
	if (action)
		wanted.sa_flags |= SA_RESTORER_;
	alone = spy_lock_table(&lock);
	before = settings[atomic_load(&setting)];
	if (action)
		install(&wanted);
	if (alone)
		spy_unlock(&lock);
	if (old)
		*old = before;
	return 0;
}

/* The others, which the C library implements: they find the program's own handler, and then ours
 * is put back. */
static bool uninstall(int number, handler wanted)
{
	struct sigaction action = {.sa_handler = wanted};

	spy_signal_mask_clean(number, &action, &action.sa_mask);
	if (number != SIGBUS || !atomic_load(&spy_truncation_watched) || !spy_lock_table(&lock))
		return false;
	REAL(sigaction)(SIGBUS, &settings[atomic_load(&setting)], NULL);
	return true;
}

static void reinstall(void)
{
	struct sigaction now;

	if (REAL(sigaction)(SIGBUS, NULL, &now) == 0)
		install(&now);
	spy_unlock(&lock);
}

#define WRAP(type, name, params, args, what) \
	EXPORT type name params; \
	EXPORT type name params \
	{ \
		bool removed = uninstall(number, what); \
		type result = REAL(name) args; \
\
		if (removed) \
			reinstall(); \
		return result; \
	}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
WRAP(handler, signal, (int number, handler wanted), (number, wanted), wanted)
WRAP(handler, bsd_signal, (int number, handler wanted), (number, wanted), wanted)
WRAP(handler, ssignal, (int number, handler wanted), (number, wanted), wanted)
WRAP(handler, sysv_signal, (int number, handler wanted), (number, wanted), wanted)
WRAP(handler, __sysv_signal, (int number, handler wanted), (number, wanted), wanted)
WRAP(handler, sigset, (int number, handler wanted), (number, wanted), wanted)
WRAP(int, sigignore, (int number), (number), SIG_IGN)
WRAP(int, siginterrupt, (int number, int interrupt), (number, interrupt), SIG_DFL)

/* ---- the handler ---------------------------------------------------------------------------- */

#define BOARD_PAGES (1 + SPY_BOARD_SLOTS)

static uint64_t truncated[(BOARD_PAGES + 63) / 64]; /* pages of the board that are memory now */
static struct spy_lock truncation_lock; /* taken with all signals blocked */

static bool is_torn(size_t page)
{
	return __atomic_load_n(&truncated[page / 64], __ATOMIC_RELAXED) >> page % 64 & 1;
}

static void set_torn(size_t page, bool value)
{
	uint64_t bit = (uint64_t)1 << page % 64;

	if (value)
		__atomic_fetch_or(&truncated[page / 64], bit, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&truncated[page / 64], ~bit, __ATOMIC_RELAXED);
}

static bool map_memory(void *at, size_t bytes)
{
	void *map = mmap(at, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return false;
	madvise(map, bytes, MADV_DONTFORK);
	return true;
}

/* What of a page is known without it. */
static void restore_page(size_t page)
{
	struct spy_thread *thread;

	if (!page) {
		spy_board_fill(spy_session->board);
		return;
	}
	thread = &spy_threads[page - 1];
	if (!thread->page)
		return;
	thread->page->tid = spy_session->slot_tids[page - 1];
	thread->page->calls = thread->file.packet_calls;
	thread->page->lost = thread->file.discarded;
}

static bool mend_board(uintptr_t address)
{
	size_t page = (address - (uintptr_t)spy_session->board) / SPY_BOARD_PAGE;
	char *at = (char *)spy_session->board + page * SPY_BOARD_PAGE;
	bool done = true, alone = spy_lock_table(&truncation_lock);

	if (!is_torn(page)) { /* or another thread was here before */
		done = map_memory(at, SPY_BOARD_PAGE);
		if (done) {
			set_torn(page, true);
			restore_page(page);
			atomic_store(&spy_session->damaged, true);
		}
	}
	if (alone)
		spy_unlock(&truncation_lock);
	return done;
}

/* The whole tail is lost: its next record, at the latest the one behind, begins a new one. */
static bool mend_tail(struct spy_thread *thread)
{
	if (!map_memory(thread->file.packet, SPY_PACKET_BYTES))
		return false;
	thread->file.truncated = true;
	if (thread->full_at > thread->head)
		spy_thread_use_room(thread, thread->head);
	return true;
}

static bool in_tail(const struct spy_thread *thread, uintptr_t address)
{
	return thread->file.packet && address - (uintptr_t)thread->file.packet < SPY_PACKET_BYTES;
}

/* Only its owner touches a tail; the session's own, and that of no thread, the holder of its lock. */
static bool mend(uintptr_t address)
{
	struct spy_thread *taken;

	if (!spy_session || !spy_session->board)
		return false;
	if (in_tail(spy_self, address))
		return mend_tail(spy_self);
	if (in_tail(&spy_threads[0], address))
		return mend_tail(&spy_threads[0]);
	for (size_t kind = 0; kind < SPY_STREAM_KINDS; kind++) {
		taken = spy_session->taken[kind];
		if (taken && in_tail(taken, address))
			return mend_tail(taken);
	}
	return spy_board_backs(spy_session->board, (void *)address) && mend_board(address);
}

/* There is no handler: what the kernel would have done, now that the program's own setting is
 * there again. */
static void act_as_default(const siginfo_t *info, bool fault)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t set;

	REAL(sigaction)(SIGBUS, &action, NULL);
	if (fault)
		return; /* it happens again */
	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	spy_syscall(SYS_rt_tgsigqueueinfo, getpid(), spy_syscall(SYS_gettid), SIGBUS, info);
	spy_signal_mask_set(SIG_UNBLOCK, &set, NULL);
}

/* A thread that blocks it gets it later, or by sigwait. */
static void defer(const siginfo_t *info, ucontext_t *context)
{
	sigaddset(&context->uc_sigmask, SIGBUS);
	if (info->si_code == SI_TKILL)
		spy_syscall(SYS_rt_tgsigqueueinfo, getpid(), spy_syscall(SYS_gettid), SIGBUS, info);
	else
		spy_syscall(SYS_rt_sigqueueinfo, getpid(), SIGBUS, info);
}

static void call_handler(const struct sigaction *action, siginfo_t *info, ucontext_t *context)
{
	struct sigaction none = {.sa_handler = SIG_DFL};
	sigset_t mask;

	sigorset(&mask, &context->uc_sigmask, &action->sa_mask);
	if (!(action->sa_flags & SA_NODEFER))
		sigaddset(&mask, SIGBUS);
	if (action->sa_flags & SA_RESETHAND)
		sigaction(SIGBUS, &none, NULL);
	spy_signal_mask_mark(&mask);
	spy_signal_mask_set(SIG_SETMASK, &mask, NULL);
	action->sa_sigaction(SIGBUS, info, context);
}

static void on_bus(int number, siginfo_t *info, void *context)
{
	bool fault = info->si_code > 0 && info->si_code != BUS_MCEERR_AO;
	bool blocked = spy_signal_mask_is_marked(&((ucontext_t *)context)->uc_sigmask);
	struct sigaction action = settings[atomic_load(&setting)];
	int error = errno;

	(void)number;
	if (fault && mend((uintptr_t)info->si_addr)) {
		errno = error;
		return;
	}
	if (!fault && (blocked || spy_self_deferring))
		defer(info, context);
	else if (action.sa_handler == SIG_IGN && !fault)
		;
	else if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN ||
		 (blocked && !spy_self_deferring))
		act_as_default(info, fault);
	else
		call_handler(&action, info, context);
	errno = error;
}

/* ---- afterwards ----------------------------------------------------------------------------- */

static void mend_page(size_t page)
{
	char *at = (char *)spy_session->board + page * SPY_BOARD_PAGE;
	off_t offset = (off_t)(page * SPY_BOARD_PAGE);
	int fd = spy_folder_open(spy_session->part, ".board", &spy_session->board_id);

	if (fd < 0)
		return;
	if (spy_disk_reserve(fd, offset, SPY_BOARD_PAGE) == 0 &&
	    pwrite(fd, at, SPY_BOARD_PAGE, offset) == SPY_BOARD_PAGE &&
	    mmap(at, SPY_BOARD_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset) !=
		    MAP_FAILED) {
		madvise(at, SPY_BOARD_PAGE, MADV_DONTFORK);
		set_torn(page, false);
	}
	close(fd);
}

void spy_truncation_forked(void)
{
	memset(truncated, 0, sizeof(truncated));
	spy_lock_forget(&lock);
	spy_lock_forget(&truncation_lock);
}

/* A file that was truncated and has grown again since is all zeros up to there. */
static bool is_wiped(size_t page)
{
	const struct spy_thread *thread;

	if (!page)
		return spy_session->board->magic != SPY_BOARD_MAGIC;
	thread = &spy_threads[page - 1];
	return thread->page && spy_board_backs(spy_session->board, thread->page) &&
	       thread->page->calls < thread->file.packet_calls;
}

static void look_at_page(size_t page)
{
	if (is_torn(page)) {
		mend_page(page);
	} else if (is_wiped(page)) {
		restore_page(page);
		atomic_store(&spy_session->damaged, true);
	}
}

void spy_truncation_repair(const struct spy_thread *thread)
{
	if (thread) {
		look_at_page(thread->slot + 1);
		return;
	}
	for (size_t page = 0; page <= atomic_load(&spy_session->slots); page++)
		look_at_page(page);
}
