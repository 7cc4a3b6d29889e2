/*
 * tests/stress/threads.c: actors as threads (joined, detached, with little stack, cancelled, with keys whose
 * destructors call CUDA) and as coroutines.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "runtime.h"
#include "stress.h"

atomic_int detached;

/* Memory and threads are there, or the run says nothing. */
static void must(bool there)
{
	if (!there)
		_Exit(92);
}

static void start(pthread_t *thread, size_t stack, void *(*function)(void *), void *data)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	if (stack)
		must(pthread_attr_setstacksize(&attributes, stack) == 0);
	must(pthread_create(thread, &attributes, function, data) == 0);
	pthread_attr_destroy(&attributes);
}

/* As one of several threads. */
static void limit(struct actor *actor)
{
	actor->may &= ~(unsigned int)MAY_FORK;
}

static void *as_thread(void *data)
{
	struct actor *actor = data;

	act(actor);
	actor_end(actor);
	return NULL;
}

void do_threads(struct actor *actor)
{
	enum { MOST = 6 };
	struct actor actors[MOST];
	pthread_t threads[MOST];
	unsigned int n = 1 + below(actor, MOST);
	size_t stack = one_in(actor, 2) ? 0 : 256 << 10;

	for (unsigned int i = 0; i < n; i++) {
		actor_begin(&actors[i], actor, "thread", (int)i);
		limit(&actors[i]);
		start(&threads[i], stack, as_thread, &actors[i]);
	}
	for (unsigned int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void *as_detached(void *data)
{
	as_thread(data);
	free(data);
	atomic_fetch_sub(&detached, 1);
	return NULL;
}

void do_detached(struct actor *actor)
{
	limit(actor);
	for (unsigned int i = 1 + below(actor, 4); i > 0; i--) {
		struct actor *child = malloc(sizeof(*child));
		pthread_t thread;

		must(child);
		actor_begin(child, actor, "loose", (int)i);
		atomic_fetch_add(&detached, 1);
		start(&thread, 0, as_detached, child);
		pthread_detach(thread);
	}
}

/* What needs little stack. */
static void *with_little_stack(void *data)
{
	struct actor *actor = data;

	burst_of_free(actor, 20);
	actor_end(actor);
	return NULL;
}

void do_small(struct actor *actor)
{
	struct actor child;
	pthread_t thread;

	actor_begin(&child, actor, "small", 0);
	limit(&child);
	start(&thread, 16384, with_little_stack, &child);
	pthread_join(thread, NULL);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

/* Three rounds. */
static void key_destructor(void *rounds)
{
	int device;

	CALL(cudaGetDevice(&device));
	CALL(cudaSetDevice(0));
	if ((intptr_t)rounds > 1)
		pthread_setspecific(key, (void *)((intptr_t)rounds - 1));
}

static void make_key(void)
{
	pthread_key_create(&key, key_destructor);
}

static void *with_key(void *data)
{
	pthread_once(&key_once, make_key);
	pthread_setspecific(key, (void *)3);
	return data ? as_thread(data) : NULL;
}

/* One that calls, and one whose first calls its destructors make. */
void do_keys(struct actor *actor)
{
	struct actor child;
	pthread_t threads[2];

	actor_begin(&child, actor, "key", 0);
	limit(&child);
	start(&threads[0], 0, with_key, &child);
	start(&threads[1], 0, with_key, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

/* ---- cancellation ---------------------------------------------------------------------------- */

struct cancelled {
	bool anywhere;
	atomic_bool ready;
};

static void *until_cancelled(void *data)
{
	struct cancelled *how = data;

	CALL(cudaGetLastError());
	if (simulated) /* it may hold locks where it sleeps */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	else if (how->anywhere)
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	atomic_store(&how->ready, true);
	for (unsigned int i = 0; i < UINT32_MAX; i++) {
		CALL(cudaPeekAtLastError());
		CALL(cudaStreamQuery(NULL));
		if (!how->anywhere || i % 16 == 0)
			CALL(cudaStreamSynchronize(NULL));
		if (simulated) {
			pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
			pthread_testcancel();
			pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		}
	}
	return NULL;
}

static void cancel_one(struct actor *actor, bool anywhere)
{
	struct cancelled how = {.anywhere = anywhere};
	void *result = NULL;
	pthread_t thread;

	start(&thread, 0, until_cancelled, &how);
	while (!atomic_load(&how.ready))
		sleep_us(50);
	sleep_us(below(actor, 300));
	pthread_cancel(thread);
	pthread_join(thread, &result);
	see(actor, result == PTHREAD_CANCELED);
}

void do_cancel(struct actor *actor)
{
	for (unsigned int i = 1 + below(actor, 4); i > 0; i--)
		cancel_one(actor, false);
}

void do_async(struct actor *actor)
{
	for (unsigned int i = 1 + below(actor, 4); i > 0; i--)
		cancel_one(actor, true);
}

/* ---- coroutines ------------------------------------------------------------------------------ */

enum { STACK = 128 << 10 };

struct coroutine {
	ucontext_t own, back;
	struct actor actor;
	void *stack;
	bool ended;
};

static void yield(void *data)
{
	struct coroutine *coroutine = data;

	swapcontext(&coroutine->own, &coroutine->back);
}

/* Switched away from between calls, and inside one. */
static void body(unsigned int high, unsigned int low)
{
	struct coroutine *coroutine = (struct coroutine *)((uintptr_t)high << 32 | low);
	struct actor *actor = &coroutine->actor;

	for (unsigned int i = 1 + below(actor, 4); i > 0; i--) {
		burst_of_free(actor, 3);
		if (simulated || one_in(actor, 2))
			yield(coroutine);
		else
			CALL(cudaLaunchHostFunc(NULL, yield, coroutine));
	}
	actor_end(actor);
	coroutine->ended = true;
	yield(coroutine);
}

static void *resume(void *data)
{
	struct coroutine *coroutine = data;

	swapcontext(&coroutine->back, &coroutine->own);
	return NULL;
}

/* Here, or on a thread that is there for nothing else. */
static void resume_somewhere(struct actor *actor, struct coroutine *coroutine)
{
	pthread_t thread;

	if (!(actor->may & MAY_THREAD) || !one_in(actor, 4)) {
		resume(coroutine);
		return;
	}
	image->may_lose |= 1; /* a call that ends on another thread */
	start(&thread, 0, resume, coroutine);
	pthread_join(thread, NULL);
}

void do_coroutines(struct actor *actor)
{
	enum { MOST = 4 };
	struct coroutine *all = calloc(MOST, sizeof(*all));
	unsigned int n = 1 + below(actor, MOST), alive = n;

	must(all);
	for (unsigned int i = 0; i < n; i++) {
		uintptr_t address = (uintptr_t)&all[i];

		actor_begin(&all[i].actor, actor, "co", (int)i);
		all[i].stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		must(all[i].stack != MAP_FAILED);
		getcontext(&all[i].own);
		all[i].own.uc_stack.ss_sp = all[i].stack;
		all[i].own.uc_stack.ss_size = STACK;
		makecontext(&all[i].own, (void (*)(void))body, 2, (unsigned int)(address >> 32),
			    (unsigned int)address);
	}
	while (alive) {
		unsigned int i = below(actor, n);

		if (all[i].ended)
			continue;
		resume_somewhere(actor, &all[i]);
		if (one_in(actor, 2))
			burst_of_free(actor, 2);
		alive -= all[i].ended;
	}
	for (unsigned int i = 0; i < n; i++)
		munmap(all[i].stack, STACK);
	free(all);
}
