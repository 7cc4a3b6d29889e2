/*
 * tests/e2e/programs/probes.h: what the parts of tests/e2e/probes share: ways into a CUDA call, times, threads that
 * have a lock for a while, attempts at a lock, signals.
 */
#ifndef PROBES_H
#define PROBES_H

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

int cudaSetDevice(int device);

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define MS 1000000L
#define NO_CLOCK 77

/* Calls function(data), inside a CUDA call or not. */
void enter(void (*function)(void *), void *data);

void show(const char *what, long result, int error);

#define TRY(expression) \
	do { \
		long result_; \
\
		errno = 0; \
		result_ = (long)(expression); \
		show(#expression, result_, errno); \
	} while (0)

/* ---- times ------------------------------------------------------------------------------------ */

struct timespec *soon(clockid_t clock);

/* Other than soon, for ever as far as a test is concerned. */
struct timespec *late(clockid_t clock);

extern struct timespec past, bad, worse;

void sleep_ms(long ms);

/* ---- threads ---------------------------------------------------------------------------------- */

/* Another thread does it, and ends. */
int by_other(int (*act)(void *), void *lock);

/* A thread that takes a lock, says so, and gives it back after a while or when told. */
struct holder {
	pthread_t thread;
	int (*take)(void *lock), (*give)(void *lock); /* give NULL: ends with it */
	void *lock;
	int for_ms; /* 0: until told */
	int taken, given;
	int said, told;
};

void *hold_thread(void *holder);
void holder_begin(struct holder *holder);
void holder_end(struct holder *holder);

/* An attempt at a lock. */
struct attempt {
	const char *name;
	int (*act)(void *lock);
	bool stays; /* waits until it has it */
};

extern const char *prefix; /* of what attempt_all prints */

/* Every attempt, by this thread, at a lock in the state it is in; what is had is given back. */
void attempt_all(const char *state, const struct attempt *attempts, size_t n, void *lock,
		 int (*give)(void *), bool stays);

/* ---- signals ----------------------------------------------------------------------------------- */

extern bool handler_calls; /* the handler makes a CUDA call */
extern struct holder *until_signal; /* gives back what it has when one came */

/* Sends signals to a thread until it says that it had enough: one could come too early. */
struct pest {
	pthread_t thread, target;
	int enough;
};

void pest_begin(struct pest *pest);
void pest_end(struct pest *pest);

#define INTERRUPTED(expression) \
	do { \
		struct pest pest_; \
		long result_; \
		int error_; \
\
		pest_begin(&pest_); \
		errno = 0; \
		result_ = (long)(expression); \
		error_ = errno; \
		pest_end(&pest_); \
		show("interrupted: " #expression, result_, error_); \
	} while (0)

/* ---- locks, to be held (probes_locks.c) -------------------------------------------------------- */

struct mutex_kind {
	int type, robust, protocol, shared;
};

int mutex_init(pthread_mutex_t *lock, const struct mutex_kind *kind);
int mutex_lock(void *lock);
int mutex_unlock(void *lock);
int rw_write(void *lock);
int rw_unlock(void *lock);

/* ---- waits (probes_waits.c) -------------------------------------------------------------------- */

int semaphore_value(sem_t *semaphore);
int sleep_interrupted(void);

/* ---- what there is to check -------------------------------------------------------------------- */

void mutex_checks(void);
void rwlock_checks(void);
void spin_checks(void);
void condition_checks(void);
void semaphore_checks(void);
void wait_checks(void);
void old_checks(void);
void syscall_checks(void);
void fork_checks(void);
void cancel_checks(void);
void signal_checks(void);

#endif
