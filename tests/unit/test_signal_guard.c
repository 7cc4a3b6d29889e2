/*
 * tests/unit/test_signal_guard.c: what a slow path puts off comes right behind it: a cancellation, asynchronous or not, with its
 * result; a signal; and errno is what it was.
 */
/* links: */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>
#include "lib/signal_guard.h"

static atomic_int depth; /* how deep */

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cancellation_waits),
		cmocka_unit_test(test_a_signal_waits_and_errno_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
