/*
 * shim/probe/probe_outside.c: functions of the C library that a thread waits in between CUDA calls
 * only: what it reads and writes, other threads and processes whose end it awaits. Runs on every
 * thread of the process at every such call, also before the library's constructor and in threads
 * without CUDA calls. Hence no sanitizer in this file, and nothing here but a branch and the call.
 * What a wait becomes is decided by outside.c.
 */
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "probe/poll.h"
#include "probe/probe.h"
#include "probe/real.h"

#define unlikely(x) __builtin_expect(!!(x), 0)

typedef const struct timespec time_limit;
typedef struct epoll_event event;
typedef struct sockaddr place;
typedef const struct iovec pieces;

/* What programs that were built with _FORTIFY_SOURCE call (the C library's bits/unistd.h). */
ssize_t __read_chk(int d, void *to, size_t n, size_t room);
ssize_t __recv_chk(int d, void *to, size_t n, size_t room, int f);

/* clang-format off */
#define TRANSFERS(F) \
	F(ssize_t, read, (int d, void *to, size_t n), (d, to, n)) \
	F(ssize_t, __read_chk, (int d, void *to, size_t n, size_t room), (d, to, n, room)) \
	F(ssize_t, pread, (int d, void *to, size_t n, off_t at), (d, to, n, at)) \
	F(ssize_t, pread64, (int d, void *to, size_t n, off_t at), (d, to, n, at)) \
	F(ssize_t, readv, (int d, pieces *to, int n), (d, to, n)) \
	F(ssize_t, write, (int d, const void *from, size_t n), (d, from, n)) \
	F(ssize_t, pwrite, (int d, const void *from, size_t n, off_t at), (d, from, n, at)) \
	F(ssize_t, pwrite64, (int d, const void *from, size_t n, off_t at), (d, from, n, at)) \
	F(ssize_t, writev, (int d, pieces *from, int n), (d, from, n)) \
	F(int, fsync, (int d), (d)) \
	F(int, fdatasync, (int d), (d))

/* These say themselves that they are not to wait. */
#define MESSAGES(F) \
	F(ssize_t, recv, (int d, void *to, size_t n, int f), (d, to, n, f)) \
	F(ssize_t, __recv_chk, (int d, void *to, size_t n, size_t room, int f), (d, to, n, room, f)) \
	F(ssize_t, recvfrom, (int d, void *to, size_t n, int f, place *p, socklen_t *l), (d, to, n, f, p, l)) \
	F(ssize_t, recvmsg, (int d, struct msghdr *m, int f), (d, m, f)) \
	F(ssize_t, send, (int d, const void *from, size_t n, int f), (d, from, n, f)) \
	F(ssize_t, sendto, (int d, const void *from, size_t n, int f, const place *p, socklen_t l), (d, from, n, f, p, l)) \
	F(ssize_t, sendmsg, (int d, const struct msghdr *m, int f), (d, m, f))

#define ACCEPTS(F) \
	F(int, accept, (int d, place *p, socklen_t *l), (d, p, l)) \
	F(int, accept4, (int d, place *p, socklen_t *l, int f), (d, p, l, f))

#define EPOLLS(F) \
	F(int, epoll_wait, (int d, event *e, int n, int t), (d, e, n, t)) \
	F(int, epoll_pwait, (int d, event *e, int n, int t, const sigset_t *m), (d, e, n, t, m))

#define SELECTS(F) \
	F(int, select, (int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *t), (n, r, w, x, t)) \
	F(int, pselect, (int n, fd_set *r, fd_set *w, fd_set *x, time_limit *t, const sigset_t *m), (n, r, w, x, t, m))

#define SLEEPS(F) \
	F(unsigned int, sleep, (unsigned int t), (t)) \
	F(int, clock_nanosleep, (clockid_t c, int f, time_limit *t, struct timespec *left), (c, f, t, left))

#define JOINS(F) \
	F(int, pthread_join, (pthread_t of, void **value), (of, value)) \
	F(int, pthread_timedjoin_np, (pthread_t of, void **value, time_limit *t), (of, value, t)) \
	F(int, pthread_clockjoin_np, (pthread_t of, void **value, clockid_t c, time_limit *t), (of, value, c, t))

/* Not wait itself: a library may well have a function of its own that is called so. */
#define CHILDREN(F) \
	F(pid_t, waitpid, (pid_t p, int *s, int f), (p, s, f)) \
	F(pid_t, wait4, (pid_t p, int *s, int f, struct rusage *u), (p, s, f, u)) \
	F(int, waitid, (idtype_t t, id_t p, siginfo_t *i, int f), (t, p, i, f))

#define FUNCTIONS(F) \
	TRANSFERS(F) MESSAGES(F) ACCEPTS(F) EPOLLS(F) SELECTS(F) SLEEPS(F) JOINS(F) CHILDREN(F)
/* clang-format on */

REAL_FUNCTIONS

void spy_probe_outside_init(void)
{
	find_all();
}

/* Two functions, as in probe.c: the exported one, without a frame, decides and jumps; outside_
 * does the rest. at_once: the call returns at once, whatever there is; its time is the kernel's work. */
/* clang-format off */
#define PROBE(type, name, params, args, at_once, known, ...) \
	static __attribute__((noinline)) type outside_##name params \
	{ \
		WAIT_OUTSIDE(type, known, real.name args, __VA_ARGS__) \
	} \
	SPY_EXPORT type name params \
	{ \
		if (unlikely(spy_is_outside()) && !(at_once)) \
			return outside_##name args; \
		return real.name args; \
	}
/* clang-format on */

/* Of a read or write: what ended with an error. */
#define FAILED(result) ((result) == (__typeof__(result))-1 ? SPY_WAIT_FAILED : 0)

/* What is known of a wait for a descriptor before it, and behind it. */
#define OF_FILE(kind_) (.kind = kind_, .object = (uintptr_t)d, .is_file = true)
#define AND_THEN .flags = FAILED(result)
#define AND_BYTES AND_THEN, .bytes = result > 0 ? (uint64_t)result : 0

#define TRANSFER(type, name, params, args) \
	PROBE(type, name, params, args, false, OF_FILE(SPY_WAIT_TRANSFER), AND_BYTES)
TRANSFERS(TRANSFER)

#define MESSAGE(type, name, params, args) \
	PROBE(type, name, params, args, f &MSG_DONTWAIT, OF_FILE(SPY_WAIT_TRANSFER), AND_BYTES)
MESSAGES(MESSAGE)

#define ACCEPT(type, name, params, args) \
	PROBE(type, name, params, args, false, OF_FILE(SPY_WAIT_ACCEPT), AND_THEN)
ACCEPTS(ACCEPT)

/* Of a poll, also one that does not wait: poll.h. */
#define POLL_PROBE(type, name, params, args, at_once, known, see, ...) \
	static __attribute__((noinline)) \
	type outside_##name params{POLL_OUTSIDE(true, at_once, known, see, real.name args, \
						__VA_ARGS__)} SPY_EXPORT type name params \
	{ \
		if (unlikely(spy_is_outside())) \
			return outside_##name args; \
		return real.name args; \
	}

#define POLL_FLAGS .flags = (uint8_t)(FAILED(result) | spy_poll_flags(&polled))

#define EPOLL(type, name, params, args) \
	POLL_PROBE(type, name, params, args, t == 0, OF_FILE(SPY_WAIT_EPOLL), \
		   spy_poll_see_events(&polled, e, result), POLL_FLAGS)
EPOLLS(EPOLL)

/* The first descriptor that is ready to be read; -1: none. */
static int first_in(const fd_set *set, int n)
{
	for (int d = 0; set && d < n && d < FD_SETSIZE; d++)
		if (FD_ISSET(d, set))
			return d;
	return -1;
}

/* Is that no time at all? */
#define at_once(t) \
	((t) && !(t)->tv_sec && \
	 !_Generic((t), struct timeval * \
		   : ((const struct timeval *)(t))->tv_usec, time_limit * \
		   : ((time_limit *)(t))->tv_nsec))

/* Without descriptors it sleeps. Of a call that failed, r may lead anywhere. */
#define SELECT(type, name, params, args) \
	POLL_PROBE(type, name, params, args, at_once(t), \
		   (.kind = n > 0 ? SPY_WAIT_POLL : SPY_WAIT_SLEEP), \
		   spy_poll_see_set(&polled, r, n), \
		   .object = n > 0 && result >= 0 ? (uintptr_t)first_in(r, n) : 0, \
		   .is_file = n > 0 && result >= 0, POLL_FLAGS)
SELECTS(SELECT)

#define SLEEP(type, name, params, args) \
	PROBE(type, name, params, args, false, (.kind = SPY_WAIT_SLEEP), .flags = 0)
SLEEPS(SLEEP)

/* The thread is looked up before: when it has ended its name is gone. */
#define JOIN(type, name, params, args) \
	static __attribute__((noinline)) type outside_##name params \
	{ \
		uint32_t thread = spy_outside_thread(of); \
\
		WAIT_OUTSIDE(type, \
			     (.kind = SPY_WAIT_JOIN, .holder = thread, .object = (uintptr_t)of), \
			     real.name args, .flags = result ? SPY_WAIT_FAILED : 0) \
	} \
	SPY_EXPORT type name params \
	{ \
		if (unlikely(spy_is_outside())) \
			return outside_##name args; \
		return real.name args; \
	}
JOINS(JOIN)

#define CHILD(type, name, params, args) \
	PROBE(type, name, params, args, f &WNOHANG, (.kind = SPY_WAIT_CHILD), \
	      .flags = FAILED(result))
CHILDREN(CHILD)
