/*
 * tests/e2e/programs/waits.c: threads that wait inside CUDA calls in known ways, for test_waits.sh, which looks
 * at what the trace has of it. Linked to a fake libcudart.so.13 whose cudaLaunchHostFunc calls its
 * function at once. Prints a line for each wait that there has to be: kind, object, holder's thread,
 * at least how long (ms), how many.
 *
 *   waits kinds            one wait of each kind; the holder of a lock is inside a call on device 1
 *   waits free             all of it without anybody to wait for
 *   waits timeout          a lock that was not had
 *   waits moved            locks that change hands while somebody waits, and one that seems to
 *   waits again            a lock that one thread takes again and again while another wants it sometimes
 *   waits rows             many short waits in a row
 *   waits crowd            more of them than records fit into a packet
 *   waits some N           N calls, of which the last one waits
 *   waits inside N         N calls of the driver inside one of the runtime's, of which the last one waits
 *   waits stranger         a thread without calls has the lock
 *   waits flood N [two]    N waits that cannot share a record, in one call, for locks that one thread has, or two
 *   waits left             calls that are left by longjmp, then waits outside of any call
 *   waits handler          a signal handler's calls interrupt a wait
 *   waits storm            signal handlers' calls interrupt threads that contend, at any moment
 *   waits above            the same on a stack that lies above the thread's, and more waits in one call
 *                          than a packet has room for
 *   waits hot N            in N calls, a lock that changes hands all the time while somebody wants it
 *   waits fork             a child forked while a thread waits
 *   waits map              waits between calls that come from many threads, until all are through
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int cudaSetDevice(int device);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);

#define LONG_MS 40
#define STREAM ((void *)0x5)

static void call(void (*function)(void *), void *data)
{
	cudaLaunchHostFunc(STREAM, function, data);
}

static void sleep_ms(long ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000};

	while (syscall(SYS_nanosleep, &time, &time) < 0) /* no probe stands before this one */
		;
}

static struct timespec in_ms(long ms)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_nsec += ms * 1000000;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

static void expect(const char *kind, const void *object, int holder, int ms, int count)
{
	printf("%s 0x%lx %d %d %d\n", kind, (unsigned long)object, holder, ms, count);
}

/* ---- locks ------------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, mutexes[2];
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static uint32_t word;

static void lock_mutex(void)
{
	pthread_mutex_lock(&mutex);
}

static void unlock_mutex(void)
{
	pthread_mutex_unlock(&mutex);
}

static void lock_read(void)
{
	pthread_rwlock_rdlock(&rwlock);
}

static void lock_write(void)
{
	pthread_rwlock_wrlock(&rwlock);
}

static void unlock_rwlock(void)
{
	pthread_rwlock_unlock(&rwlock);
}

static void try_read(void)
{
	pthread_rwlock_tryrdlock(&rwlock);
}

static void read_in_time(void)
{
	struct timespec time = in_ms(1000);

	pthread_rwlock_timedrdlock(&rwlock, &time);
}

static void try_write(void)
{
	pthread_rwlock_trywrlock(&rwlock);
}

static void try_spin(void)
{
	pthread_spin_trylock(&spin);
}

static void lock_spin(void)
{
	pthread_spin_lock(&spin);
}

static void unlock_spin(void)
{
	pthread_spin_unlock(&spin);
}

/* Who holds a lock, and how. */
struct holder {
	void (*lock)(void), (*unlock)(void);
	pthread_t thread;
	int tid, device; /* device -1: makes no call */
	int for_ms; /* so long after somebody came to wait; 0: until told */
	int held, told;
};

static int somebody_came; /* the thread that did */

static void wait_until(const int *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		sleep_ms(1);
}

static void come(void)
{
	__atomic_store_n(&somebody_came, gettid(), __ATOMIC_RELEASE);
}

static bool is_asleep(int tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'S';
}

/* After that he waits; he may spin, or have had no CPU so far. */
static void somebody_waits(void)
{
	int tries = 0;

	wait_until(&somebody_came);
	do
		sleep_ms(LONG_MS);
	while (!is_asleep(somebody_came) && ++tries < 5);
}

static void hold(void *data)
{
	struct holder *holder = data;

	holder->tid = gettid();
	holder->lock();
	__atomic_store_n(&holder->held, 1, __ATOMIC_RELEASE);
	wait_until(holder->for_ms ? &somebody_came : &holder->told);
	sleep_ms(holder->for_ms);
	holder->unlock();
}

static void *hold_thread(void *data)
{
	struct holder *holder = data;

	if (holder->device < 0) {
		pthread_setname_np(pthread_self(), "no calls here");
		hold(holder);
	} else {
		cudaSetDevice(holder->device);
		call(hold, holder);
	}
	return NULL;
}

static void holder_begin(struct holder *holder)
{
	holder->held = holder->told = somebody_came = 0;
	pthread_create(&holder->thread, NULL, hold_thread, holder);
	wait_until(&holder->held);
}

static void holder_end(struct holder *holder)
{
	__atomic_store_n(&holder->told, 1, __ATOMIC_RELEASE);
	pthread_join(holder->thread, NULL);
}

static void do_both(void *data)
{
	const struct holder *mine = data;

	come();
	mine->lock();
	mine->unlock();
}

/* ---- kinds ------------------------------------------------------------------------------------- */

static void wait_for_nobody(void *unused)
{
	struct timespec time = in_ms(LONG_MS), span = {0, LONG_MS * 1000000};
	int bytes, ends[2];

	(void)unused;
	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&cond, &mutex, &time);
	pthread_mutex_unlock(&mutex);
	expect("condition", &cond, 0, LONG_MS - 1, 1);
	time = in_ms(LONG_MS);
	sem_timedwait(&sem, &time);
	expect("semaphore", &sem, 0, LONG_MS - 1, 1);
	syscall(SYS_futex, &word, FUTEX_WAIT, 0, &span, NULL, 0);
	expect("futex", &word, 0, LONG_MS, 1);
	poll(NULL, 0, LONG_MS);
	expect("poll", NULL, 0, LONG_MS, 1);
	nanosleep(&span, NULL);
	usleep(LONG_MS * 1000);
	expect("sleep", NULL, 0, 2 * LONG_MS, 2);
	sched_yield();
	expect("yield", NULL, 0, 0, 1);
	if (pipe(ends))
		return;
	ioctl(ends[0], FIONREAD, &bytes);
	expect("ioctl", (void *)FIONREAD, 0, 0, 1);
}

/* kind, who holds it, who waits for it */
static const struct {
	const char *kind;
	const void *object;
	struct holder holder, waiter;
} locks[] = {
#define WITH(take, give) \
	{ \
		.lock = take, .unlock = give \
	}
	{"mutex", &mutex, WITH(lock_mutex, unlock_mutex), WITH(lock_mutex, unlock_mutex)},
	{"read", &rwlock, WITH(lock_write, unlock_rwlock), WITH(lock_read, unlock_rwlock)},
	{"write", &rwlock, WITH(lock_write, unlock_rwlock), WITH(lock_write, unlock_rwlock)},
	{"write", &rwlock, WITH(lock_read, unlock_rwlock), WITH(lock_write, unlock_rwlock)},
	{"write", &rwlock, WITH(try_read, unlock_rwlock), WITH(lock_write, unlock_rwlock)},
	{"write", &rwlock, WITH(read_in_time, unlock_rwlock), WITH(lock_write, unlock_rwlock)},
	{"read", &rwlock, WITH(try_write, unlock_rwlock), WITH(read_in_time, unlock_rwlock)},
	{"spin", (const void *)&spin, WITH(lock_spin, unlock_spin), WITH(lock_spin, unlock_spin)},
	{"spin", (const void *)&spin, WITH(try_spin, unlock_spin), WITH(lock_spin, unlock_spin)},
};
#define N_LOCKS (sizeof(locks) / sizeof(locks[0]))

static void kinds(void)
{
	for (size_t i = 0; i < N_LOCKS; i++) {
		struct holder holder = locks[i].holder, waiter = locks[i].waiter;

		holder.device = 1;
		holder.for_ms = LONG_MS;
		holder_begin(&holder);
		call(do_both, &waiter);
		expect(locks[i].kind, locks[i].object, holder.tid, LONG_MS / 2, 1);
		holder_end(&holder);
	}
	call(wait_for_nobody, NULL);
}

static void nobody_waits(void *unused)
{
	struct timespec time = in_ms(1000);

	(void)unused;
	for (int i = 0; i < 100; i++) {
		for (size_t j = 0; j < N_LOCKS; j++)
			do_both((void *)(uintptr_t)&locks[j].waiter);
		pthread_mutex_trylock(&mutex);
		pthread_mutex_unlock(&mutex);
		pthread_mutex_timedlock(&mutex, &time);
		pthread_mutex_unlock(&mutex);
		pthread_rwlock_tryrdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
		pthread_spin_trylock(&spin);
		pthread_spin_unlock(&spin);
		sem_post(&sem);
		sem_wait(&sem);
		syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

static void give_up(void *unused)
{
	struct timespec time = in_ms(LONG_MS);

	(void)unused;
	come();
	pthread_mutex_timedlock(&mutex, &time);
}

/* ---- how locks move ---------------------------------------------------------------------------- */

static void *wait_thread(void *data)
{
	call(do_both, data);
	return NULL;
}

/* Recursively: had once, given back once. */
static void twice(void *data)
{
	pthread_t waiter;

	pthread_mutex_lock(&mutexes[0]);
	somebody_came = 0;
	pthread_create(&waiter, NULL, wait_thread, data);
	somebody_waits();
	pthread_mutex_lock(&mutexes[0]);
	pthread_mutex_trylock(&mutexes[0]);
	pthread_mutex_unlock(&mutexes[0]);
	pthread_mutex_unlock(&mutexes[0]);
	pthread_mutex_unlock(&mutexes[0]);
	pthread_join(waiter, NULL);
}

static void lock_first(void)
{
	pthread_mutex_lock(&mutexes[0]);
}

static void unlock_first(void)
{
	pthread_mutex_unlock(&mutexes[0]);
}

/* A writer waits for a reader; another reader comes. Then a recursive mutex that its owner locks
 * again. */
static void moved(void)
{
	struct holder reader = {.lock = lock_read, .unlock = unlock_rwlock};
	struct holder writer = {.lock = lock_write, .unlock = unlock_rwlock};
	struct holder first = {.lock = lock_first, .unlock = unlock_first};
	pthread_mutexattr_t attributes;
	pthread_t thread;

	holder_begin(&reader);
	pthread_create(&thread, NULL, wait_thread, &writer);
	somebody_waits();
	printf("held read 0x%lx 2\n", (unsigned long)&rwlock);
	call(do_both, &reader);
	holder_end(&reader);
	pthread_join(thread, NULL);

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&mutexes[0], &attributes);
	call(twice, &first);
	printf("held mutex 0x%lx 1\n", (unsigned long)&mutexes[0]);
}

static int all_done;

static void take_once(void *unused)
{
	(void)unused;
	lock_mutex();
	unlock_mutex();
}

static void *take_thread(void *unused)
{
	for (int i = 0; i < 20; i++) {
		sleep_ms(2);
		call(take_once, unused);
	}
	__atomic_store_n(&all_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Quickly, before anybody can wake up, and then for long enough that he falls asleep again. */
static void take_always(void *unused)
{
	for (int round = 0; !__atomic_load_n(&all_done, __ATOMIC_ACQUIRE); round++) {
		if (round % 10 == 9)
			sleep_ms(1); /* on an idle machine nobody would be awake in time, ever */
		for (int i = 0; i < 10; i++)
			take_once(unused);
		lock_mutex();
		sleep_ms(1);
		unlock_mutex();
	}
}

/* In one call a mutex is taken again and again: who else wants it comes seldom between. */
static void again(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, take_thread, NULL);
	call(take_always, NULL);
	pthread_join(thread, NULL);
}

/* ---- rows -------------------------------------------------------------------------------------- */

static void rows(void *unused)
{
	struct timespec nothing = {0, 1};
	int bytes, ends[2];

	(void)unused;
	if (pipe(ends))
		return;
	for (int i = 0; i < 1000; i++)
		sched_yield();
	expect("yield", NULL, 0, 0, 1000);
	for (int i = 0; i < 30; i++)
		nanosleep(&nothing, NULL);
	expect("sleep", NULL, 0, 0, 30);
	for (int i = 0; i < 20; i++)
		poll(NULL, 0, 0);
	expect("poll", NULL, 0, 0, 20);
	for (int i = 0; i < 7; i++)
		ioctl(ends[0], FIONREAD, &bytes);
	expect("ioctl", (void *)FIONREAD, 0, 0, 7);
	for (int i = 0; i < 3; i++)
		ioctl(ends[0], FIOCLEX);
	expect("ioctl", (void *)FIOCLEX, 0, 0, 3);
}

/* More requests in one call than there is room for, each unlike the one before. */
static void crowd(void *unused)
{
	int bytes, ends[2];

	(void)unused;
	if (pipe(ends))
		return;
	for (int i = 0; i < 5000; i++)
		ioctl(ends[0], i % 2 ? FIONREAD : FIOCLEX, &bytes);
}

/* Answers of poll other than that it failed. */
static void answers(void *unused)
{
	struct pollfd fd = {.events = POLLOUT};
	int ends[2];

	(void)unused;
	if (pipe(ends))
		return;
	fd.fd = ends[1];
	poll(&fd, 1, -1);
}

static void nothing(void *unused)
{
	(void)unused;
}

static void some(int n)
{
	struct holder holder = {.lock = lock_mutex, .unlock = unlock_mutex, .for_ms = LONG_MS};
	struct holder waiter = {.lock = lock_mutex, .unlock = unlock_mutex};

	for (int i = 1; i < n; i++)
		call(nothing, NULL);
	holder.device = -1;
	holder_begin(&holder);
	call(do_both, &waiter);
	holder_end(&holder);
}

static void inside(void *n)
{
	struct holder holder = {.lock = lock_mutex, .unlock = unlock_mutex, .for_ms = LONG_MS};
	struct holder waiter = {.lock = lock_mutex, .unlock = unlock_mutex};
	int (*driver_call)(void *stream, void (*function)(void *), void *data);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	*(void **)&driver_call = driver ? dlsym(driver, "cuLaunchHostFunc") : NULL;
	if (!driver_call)
		exit(3);
	for (int i = 1; i < *(const int *)n; i++)
		driver_call(STREAM, nothing, NULL);
	holder.device = -1;
	holder_begin(&holder);
	driver_call(STREAM, do_both, &waiter);
	holder_end(&holder);
}

static void stranger(void)
{
	struct holder holder = {.lock = lock_mutex, .unlock = unlock_mutex, .for_ms = LONG_MS};
	struct holder waiter = {.lock = lock_mutex, .unlock = unlock_mutex}, second = waiter;
	pthread_t thread;

	holder.device = -1;
	holder_begin(&holder);
	pthread_create(&thread, NULL, wait_thread, &second);
	call(do_both, &waiter);
	printf("stranger %d\n", holder.tid);
	pthread_join(thread, NULL);
	holder_end(&holder);
}

/* ---- more than there is room for --------------------------------------------------------------- */

static void lock_second(void)
{
	pthread_mutex_lock(&mutexes[1]);
}

static void unlock_second(void)
{
	pthread_mutex_unlock(&mutexes[1]);
}

static void lock_both(void)
{
	lock_first();
	lock_second();
}

static void unlock_both(void)
{
	unlock_first();
	unlock_second();
}

static void flooded(void *data)
{
	struct timespec past = {1, 0};

	for (intptr_t i = 0; i < (intptr_t)data; i++)
		pthread_mutex_timedlock(&mutexes[i % 2], &past);
}

static void flood(intptr_t n, bool two)
{
	struct holder both = {.lock = lock_both, .unlock = unlock_both};
	struct holder first = {.lock = lock_first, .unlock = unlock_first};
	struct holder second = {.lock = lock_second, .unlock = unlock_second};

	pthread_mutex_init(&mutexes[0], NULL);
	pthread_mutex_init(&mutexes[1], NULL);
	holder_begin(two ? &first : &both);
	if (two)
		holder_begin(&second);
	call(flooded, (void *)n);
	cudaSetDevice(2);
	holder_end(two ? &first : &both);
	if (two)
		holder_end(&second);
	else
		printf("%d\n", both.tid);
}

/* ---- calls that are left ----------------------------------------------------------------------- */

static jmp_buf back;

static void leave(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
	longjmp(back, 1);
}

static void leave_two(void *unused)
{
	(void)unused;
	call(leave, NULL);
}

/* Below where the call was that was left, which is gone: the stack there has been used since. */
static __attribute__((noinline)) void wait_outside(bool far_below)
{
	struct holder holder = {.lock = lock_mutex, .unlock = unlock_mutex, .for_ms = 3};
	char *area = __builtin_alloca(far_below ? 16384 : 16);

	memset(area, 0x11, far_below ? 16384 : 16);
	__asm__ volatile("" : : "r"(area) : "memory");
	holder.device = -1;
	holder_begin(&holder);
	come();
	lock_mutex();
	unlock_mutex();
	sched_yield();
	holder_end(&holder);
}

static void left(void)
{
	for (volatile int i = 0; i < 5; i++) {
		if (setjmp(back) == 0)
			call(leave_two, NULL);
		unlock_mutex();
		wait_outside(false);
		wait_outside(true);
		cudaSetDevice(i);
		wait_outside(false);
	}
	some(1); /* and one that is to be recorded */
}

/* ---- signals ----------------------------------------------------------------------------------- */

static atomic_int handled, launched;

static void on_signal(int number)
{
	(void)number;
	cudaSetDevice(7);
	handled++;
}

static void *send(void *data)
{
	wait_until(&somebody_came);
	sleep_ms(LONG_MS / 2);
	pthread_kill(*(pthread_t *)data, SIGUSR1);
	return NULL;
}

static void handler(void)
{
	struct holder holder = {.lock = lock_mutex, .unlock = unlock_mutex, .for_ms = 2 * LONG_MS};
	struct holder waiter = {.lock = lock_mutex, .unlock = unlock_mutex};
	pthread_t self = pthread_self(), thread;
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &action, NULL);
	holder_begin(&holder);
	pthread_create(&thread, NULL, send, &self);
	call(do_both, &waiter);
	expect("mutex", &mutex, holder.tid, LONG_MS, 1);
	holder_end(&holder);
	pthread_join(thread, NULL);
}

enum { STORM_THREADS = 3, STORM_SECONDS = 1 };

static atomic_int storm_is_over, in_the_storm;

static void hold_a_while(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
	for (volatile int i = 0; i < 1000; i++)
		;
	pthread_mutex_unlock(&mutex);
}

static void *contend(void *unused)
{
	(void)unused;
	cudaSetDevice(
		0); /* not first of all in a handler that interrupts the beginning of the thread */
	in_the_storm++;
	while (!storm_is_over) {
		call(hold_a_while, NULL);
		launched++;
		for (volatile int i = 0; i < 3000; i++)
			;
	}
	return NULL;
}

static void storm(void)
{
	const struct timespec pause = {0, 2000};
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	const time_t begun = time(NULL);
	pthread_t threads[STORM_THREADS];

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < STORM_THREADS; i++)
		pthread_create(&threads[i], NULL, contend, NULL);
	while (in_the_storm < STORM_THREADS)
		sched_yield();
	for (int i = 0; time(NULL) <= begun + STORM_SECONDS; i++) {
		pthread_kill(threads[i % STORM_THREADS], SIGUSR1);
		nanosleep(&pause, NULL);
	}
	storm_is_over = 1;
	for (int i = 0; i < STORM_THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("launched %d handled %d\n", launched, handled);
}

/* ---- processes --------------------------------------------------------------------------------- */

static void forked(void)
{
	struct holder waiter = {.lock = lock_mutex, .unlock = unlock_mutex};
	pthread_t thread;
	pid_t pid;
	int status;

	lock_mutex();
	pthread_create(&thread, NULL, wait_thread, &waiter);
	somebody_waits();
	pid = fork();
	unlock_mutex();
	if (pid == 0) {
		call(do_both, &waiter);
		exit(0);
	}
	pthread_join(thread, NULL);
	waitpid(pid, &status, 0);
}

/* ---- many -------------------------------------------------------------------------------------- */

static void quarrel(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++) {
		lock_mutex();
		if (i % 5 == 0)
			sched_yield();
		unlock_mutex();
		lock_read();
		unlock_rwlock();
		if (i % 7 == 0) {
			lock_write();
			unlock_rwlock();
		}
		lock_spin();
		unlock_spin();
	}
}

static void *quarrel_thread(void *unused)
{
	for (int i = 0; i < 50; i++) {
		cudaSetDevice(i % 4);
		call(quarrel, unused);
	}
	return NULL;
}

static void map(void)
{
	pthread_t threads[8];

	/* twice, so that threads end while others wait, and slots serve other threads */
	for (int i = 0; i < 16; i++) {
		if (i >= 8)
			pthread_join(threads[i % 8], NULL);
		pthread_create(&threads[i % 8], NULL, quarrel_thread, NULL);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

/* ---- on a stack above --------------------------------------------------------------------------- */

static int moves_left;

static void move_often(void *data)
{
	(void)data;
	for (int i = 0; i < moves_left; i++) {
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
	}
}

static void call_and_move(int signal)
{
	(void)signal;
	call(move_often, NULL);
}

static void be_interrupted(void *data)
{
	(void)data;
	raise(SIGUSR1);
	usleep(1000); /* long enough for the scheduler's account */
}

static void *above_thread(void *stack)
{
	const stack_t above = {.ss_sp = stack, .ss_size = 1 << 16};

	sigaltstack(&above, NULL);
	for (int i = 0; i < 60; i++) {
		moves_left = 2600 + i;
		call(be_interrupted, NULL);
	}
	return NULL;
}

/* A thread that wants a lock for as long as all of this lasts. */
static void write_once(void *data)
{
	(void)data;
	pthread_rwlock_wrlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
}

static void *want(void *data)
{
	call(write_once, data);
	return NULL;
}

static void above(void)
{
	const struct sigaction action = {.sa_handler = call_and_move, .sa_flags = SA_ONSTACK};
	const size_t stack_bytes = 1 << 20;
	pthread_t thread, wanting;
	pthread_attr_t attributes;
	char *memory = mmap(NULL, 2 * stack_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sigaction(SIGUSR1, &action, NULL);
	pthread_rwlock_rdlock(&rwlock);
	pthread_create(&wanting, NULL, want, NULL);
	sleep_ms(LONG_MS);
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, memory, stack_bytes);
	pthread_create(&thread, &attributes, above_thread, memory + stack_bytes);
	pthread_join(thread, NULL);
	pthread_rwlock_unlock(&rwlock);
	pthread_join(wanting, NULL);
	pthread_attr_destroy(&attributes);
}

/* ---- a hot lock ------------------------------------------------------------------------------------ */

#define HOT_MOVES 1000

static int hot_calls;

static void *move_in_calls(void *data)
{
	moves_left = HOT_MOVES;
	for (int i = 0; i < hot_calls; i++)
		call(move_often, data);
	return NULL;
}

/* Then one that nobody has in between. */
static void hot(int calls)
{
	struct holder holder = {.lock = lock_read, .unlock = unlock_rwlock, .for_ms = LONG_MS};
	struct holder writer = {.lock = lock_write, .unlock = unlock_rwlock};
	pthread_t moving, wanting;

	hot_calls = calls;
	pthread_rwlock_rdlock(&rwlock);
	pthread_create(&wanting, NULL, want, NULL);
	sleep_ms(LONG_MS);
	pthread_create(&moving, NULL, move_in_calls, NULL);
	pthread_join(moving, NULL);
	pthread_rwlock_unlock(&rwlock);
	pthread_join(wanting, NULL);
	sleep_ms(LONG_MS); /* no rest is as long */
	holder_begin(&holder);
	call(do_both, &writer);
	holder_end(&holder);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 1;
	struct holder holder = {.lock = lock_mutex, .unlock = unlock_mutex, .for_ms = 3 * LONG_MS};

	setvbuf(stdout, NULL, _IOLBF, 0);
	pthread_spin_init(&spin, 0);
	sem_init(&sem, 0, 0);
	cudaSetDevice(0);
	if (strcmp(what, "kinds") == 0) {
		kinds();
	} else if (strcmp(what, "free") == 0) {
		call(nobody_waits, NULL);
	} else if (strcmp(what, "timeout") == 0) {
		holder_begin(&holder);
		call(give_up, NULL);
		expect("mutex", &mutex, holder.tid, LONG_MS - 1, 1);
		holder_end(&holder);
	} else if (strcmp(what, "moved") == 0) {
		moved();
	} else if (strcmp(what, "again") == 0) {
		again();
	} else if (strcmp(what, "rows") == 0) {
		call(rows, NULL);
		call(answers, NULL);
	} else if (strcmp(what, "crowd") == 0) {
		call(crowd, NULL);
	} else if (strcmp(what, "some") == 0) {
		some(n);
	} else if (strcmp(what, "inside") == 0) {
		call(inside, &n);
	} else if (strcmp(what, "stranger") == 0) {
		stranger();
	} else if (strcmp(what, "flood") == 0) {
		flood(n, argc > 3);
	} else if (strcmp(what, "left") == 0) {
		left();
	} else if (strcmp(what, "handler") == 0) {
		handler();
	} else if (strcmp(what, "storm") == 0) {
		storm();
	} else if (strcmp(what, "above") == 0) {
		above();
	} else if (strcmp(what, "hot") == 0) {
		hot(n);
	} else if (strcmp(what, "fork") == 0) {
		forked();
	} else if (strcmp(what, "map") == 0) {
		map();
	} else {
		return 2;
	}
	return 0;
}
