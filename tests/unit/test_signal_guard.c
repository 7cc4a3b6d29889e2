/*
 * tests/unit/test_signal_guard.c: what a slow path puts off comes right behind it: a cancellation, asynchronous or not, with its
 * result; a signal; and errno is what it was. What the kernel raises for what a slow path does comes at once.
 */
/* links: shim/process/signal_mask.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>
#include "lib/signal_guard.h"
#include "lib/elf_object.h"
#include "process/signal_mask.h"
#include "state/thread.h"
#include <dlfcn.h>

static atomic_int depth; /* how deep */

/* ---- what is not linked ------------------------------------------------------------------------ */

static struct spy_thread self;
__thread struct spy_thread *spy_self = &self;
__thread unsigned int spy_self_deferring;

void *spy_next_symbol(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

struct spy_thread *spy_self_block_reentry(uintptr_t *before)
{
	*before = (uintptr_t)atomic_fetch_add(&depth, 1);
	return NULL;
}

void spy_self_restore_reentry(struct spy_thread *thread, uintptr_t before)
{
	(void)thread;
	atomic_store(&depth, (int)before);
}

struct canceled {
	sem_t inside, go_on;
	int type;
	bool was_inside, got_through, went_on;
};

static void *slow_path(void *data)
{
	struct canceled *c = data;
	struct spy_signal_guard guard;

	pthread_setcanceltype(c->type, NULL);
	guard = spy_signal_guard_begin();
	sem_post(&c->inside);
	while (sem_wait(&c->go_on) != 0) /* a cancellation point */
		;
	usleep(1000); /* another one */
	c->got_through = true;
	spy_signal_guard_end(&guard);
	c->went_on = true;
	pthread_testcancel();
	return NULL;
}

static void cancel(struct canceled *c)
{
	pthread_t thread;
	void *result = NULL;

	atomic_store(&depth, 0);
	sem_init(&c->inside, 0, 0);
	sem_init(&c->go_on, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, slow_path, c), 0);
	sem_wait(&c->inside);
	c->was_inside = atomic_load(&depth) == 1;
	assert_int_equal(pthread_cancel(thread), 0);
	sem_post(&c->go_on);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(c->was_inside);
	assert_true(c->got_through);
	assert_int_equal(atomic_load(&depth), 0);
}

static void test_a_cancellation_waits(void **state)
{
	struct canceled asynchronous = {.type = PTHREAD_CANCEL_ASYNCHRONOUS};
	struct canceled deferred = {.type = PTHREAD_CANCEL_DEFERRED};

	(void)state;
	cancel(&asynchronous);
	assert_false(asynchronous.went_on); /* canceled by the end of the slow path itself */
	cancel(&deferred);
	assert_true(deferred.went_on); /* only at a cancellation point of its own */
}

static atomic_int handled;

static void count_signal(int number)
{
	(void)number;
	atomic_fetch_add(&handled, 1);
	errno = ERANGE;
}

static void test_a_signal_waits_and_errno_stays(void **state)
{
	struct sigaction action = {.sa_handler = count_signal};
	sigset_t before, after;
	struct spy_signal_guard guard;

	(void)state;
	sigaction(SIGUSR1, &action, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	errno = EDOM;
	guard = spy_signal_guard_begin();
	raise(SIGUSR1);
	assert_int_equal(atomic_load(&handled), 0);
	errno = EIO;
	spy_signal_guard_end(&guard);
	assert_int_equal(errno, EDOM);
	assert_int_equal(atomic_load(&handled), 1);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_memory_equal(&before, &after, 8); /* as many bytes as the kernel has */
}

/* As a filter of system calls raises it, or an instruction; also in a thread that blocks SIGSYS. */
static void test_what_the_kernel_raises_does_not_wait(void **state)
{
	static const int raised[] = {SIGSYS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP};
	struct sigaction action = {.sa_handler = count_signal};
	sigset_t set, old;

	(void)state;
	for (size_t i = 0; i < sizeof(raised) / sizeof(raised[0]); i++) {
		struct spy_signal_guard guard;

		atomic_store(&handled, 0);
		sigaction(raised[i], &action, NULL);
		guard = spy_signal_guard_begin();
		raise(raised[i]);
		assert_int_equal(atomic_load(&handled), 1);
		spy_signal_guard_end(&guard);
	}
	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	for (int pending = 0; pending < 2; pending++) {
		struct spy_signal_guard guard;

		atomic_store(&handled, 0);
		if (pending)
			raise(SIGSYS);
		guard = spy_signal_guard_begin();
		assert_int_equal(atomic_load(&handled), 0);
		if (!pending)
			raise(SIGSYS);
		assert_int_equal(atomic_load(&handled), !pending);
		spy_signal_guard_end(&guard);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* The mask as the kernel has it. */
static bool is_blocked(int number)
{
	sigset_t real;

	((int (*)(int, const sigset_t *, sigset_t *))dlsym(RTLD_NEXT, "sigprocmask"))(SIG_BLOCK,
										      NULL, &real);
	return sigismember(&real, number) == 1;
}

static void test_a_blocked_sigbus_only_looks_so(void **state)
{
	static struct spy_slot_page page;
	struct spy_signal_guard guard;
	sigset_t set, old;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	assert_true(is_blocked(SIGBUS)); /* it writes no records */
	self.page = &page;
	guard = spy_signal_guard_begin();
	spy_signal_guard_end(&guard);
	assert_false(is_blocked(SIGBUS));
	pthread_sigmask(SIG_UNBLOCK, &set, &old);
	assert_true(sigismember(&old, SIGBUS));
	assert_false(sigismember(&old, SIGSTKFLT));
	assert_false(is_blocked(SIGSTKFLT));
	pthread_sigmask(SIG_SETMASK, &old, &set);
	assert_false(sigismember(&set, SIGBUS));
	pthread_sigmask(SIG_SETMASK, &set, &old);
	assert_true(sigismember(&old, SIGBUS));
	self.page = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cancellation_waits),
		cmocka_unit_test(test_a_signal_waits_and_errno_stays),
		cmocka_unit_test(test_what_the_kernel_raises_does_not_wait),
		cmocka_unit_test(test_a_blocked_sigbus_only_looks_so),
	};

	spy_truncation_watched = true;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
