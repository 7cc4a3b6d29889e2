/*
 * tests/e2e/programs/wrap_locks.c: preloaded before or after the shim: another library that stands before the
 * locks, in the usual way. Counts; says how often on standard error at the end if WRAP_SAYS is set.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long calls;

#define WRAP(name, params, args) \
	int name params \
	{ \
		static int(*real) params; \
\
		if (!real) \
			*(void **)&real = dlsym(RTLD_NEXT, #name); \
		__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED); \
		return real args; \
	}

WRAP(pthread_mutex_lock, (pthread_mutex_t * l), (l))
WRAP(pthread_mutex_trylock, (pthread_mutex_t * l), (l))
WRAP(pthread_mutex_unlock, (pthread_mutex_t * l), (l))
WRAP(pthread_mutex_timedlock, (pthread_mutex_t * l, const struct timespec *t), (l, t))
WRAP(pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))
WRAP(pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))
WRAP(pthread_rwlock_unlock, (pthread_rwlock_t * l), (l))
WRAP(pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *l), (c, l))
WRAP(pthread_cond_timedwait, (pthread_cond_t * c, pthread_mutex_t *l, const struct timespec *t),
     (c, l, t))
WRAP(sem_wait, (sem_t * s), (s))

__attribute__((destructor)) static void say(void)
{
	if (getenv("WRAP_SAYS"))
		fprintf(stderr, "wrapped %s\n", calls > 10 ? "many" : "few");
}
