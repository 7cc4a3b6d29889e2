/*
 * shim/probe/poll.h: polls of several descriptors, as event loops make them: which of them has the thread kept waiting in a
 * call? Around epoll, poll and select between calls, on the thread that polls; a poll of one descriptor waits for that one, and
 * is no loop.
 *
 * The first such poll behind a long call leaves a record in any case (SPY_WAIT_LATE), so one at most for each of them. What has
 * input by then, and was returned at once, had it while the thread did not look. Not the descriptor that was returned last
 * before: the thread has served it, and the next request may be the answer to that.
 */
#ifndef CUDASPY_SHIM_POLL_H
#define CUDASPY_SHIM_POLL_H

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include "probe/outside.h"

struct spy_poll {
	uint64_t before; /* the descriptor that was returned last, before this poll */
	uint64_t last; /* and behind it */
	uint32_t ready; /* returned, with input, and not that one */
	bool late;
};

/* several: does it poll more than one? Else the next poll may be the loop's. */
static inline struct spy_poll spy_poll_begin(bool several)
{
	struct spy_thread *thread = spy_self;
	struct spy_poll poll = {.before = thread->poll_served,
				.last = thread->poll_served,
				.late = several && thread->poll_is_late};

	if (poll.late)
		thread->poll_is_late = false;
	return poll;
}

static inline void spy_poll_add(struct spy_poll *poll, uint64_t descriptor)
{
	poll->ready += descriptor != poll->before;
	poll->last = descriptor;
}

static inline void spy_poll_see_events(struct spy_poll *poll, const struct epoll_event *events,
				       int n)
{
	for (int i = 0; i < n; i++)
		if (events[i].events & (uint32_t)~EPOLLOUT)
			spy_poll_add(poll, events[i].data.u64);
}

static inline void spy_poll_see_descriptors(struct spy_poll *poll, const struct pollfd *all,
					    nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (all[i].revents & ~POLLOUT)
			spy_poll_add(poll, (uint64_t)all[i].fd);
}

static inline void spy_poll_see_set(struct spy_poll *poll, const fd_set *set, int n)
{
	for (int d = 0; set && d < n && d < FD_SETSIZE; d++)
		if (FD_ISSET(d, set))
			spy_poll_add(poll, (uint64_t)d);
}

/* The poll has returned. A signal handler may have made another thread's memory of the thread's: in a forked child. */
static inline void spy_poll_end(const struct spy_poll *poll, bool several)
{
	if (several && spy_is_outside())
		spy_self->poll_served = poll->last;
}

static inline unsigned int spy_poll_flags(const struct spy_poll *poll)
{
	return poll->late ? SPY_WAIT_LATE : 0;
}

/* As its record has it: what came while it waited was not ready before. */
static inline uint16_t spy_poll_ready(const struct spy_poll *poll, bool waited)
{
	uint32_t ready = poll->late && !waited ? poll->ready : 0;

	return ready < UINT16_MAX ? (uint16_t)ready : UINT16_MAX;
}

/*
 * As WAIT_OUTSIDE (outside.h), of a poll that names the struct `polled` in `see`, where it is shown what it returned, if that is
 * more than 0. no_wait: it is not to wait in any case.
 */
#define POLL_OUTSIDE(several, no_wait, known, see, call, ...) \
	struct spy_poll polled = spy_poll_begin(several); \
	uint64_t start_; \
	int result; \
	bool waited_; \
\
	if ((no_wait) && !polled.late) { \
		result = call; \
		if (result > 0) \
			see; \
		spy_poll_end(&polled, several); \
		return result; \
	} \
	start_ = spy_clock(); \
	SHOW_WAIT(known); \
	result = call; \
	spy_outside_hide(); \
	waited_ = spy_clock() - start_ >= spy_outside_least; \
	if (result > 0) \
		see; \
	spy_poll_end(&polled, several); \
	if (__builtin_expect(waited_ | polled.late, 0)) \
		WRITE_WAIT(SPY_FIELDS known, .at_once = (no_wait), \
			   .ready = spy_poll_ready(&polled, waited_), __VA_ARGS__); \
	return result;

#endif
