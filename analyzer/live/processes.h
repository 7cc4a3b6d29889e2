/*
 * analyzer/live/processes.h: recorded processes of this machine, and what the system says of their threads. Only
 * files under /proc are read: nothing is stopped, signalled or attached to.
 *
 * A recorded process maps the board of its trace. That is how it is found: there is no register, so none can be out of
 * date, and a process that has gone is not there.
 */
#ifndef CUDASPY_LIVE_PROCESSES_H
#define CUDASPY_LIVE_PROCESSES_H

#include <sys/types.h>
#include "base/util.h"

struct recorded {
	pid_t pid; /* as this machine numbers it */
	pid_t inner_pid; /* as the process does: in a container it may be another one */
	uid_t uid;
	char *dir; /* its trace, as we reach it; owned */
	uint64_t board_inode;
};

struct recorded_list {
	struct recorded *all; /* by pid */
	size_t n;
	size_t unreadable; /* recorded, but their traces cannot be reached */
};

/* Processes of this user, of all users for root. */
void recorded_find(struct recorded_list *list);

/* The same for one process, whoever's. False: it is not there, not recorded, or cannot be looked at. */
bool recorded_find_one(struct recorded_list *list, pid_t pid);

void recorded_release(struct recorded_list *list);

/* Does one of them map the board with that inode? Also one that has another number here, or whose number was given anew. */
bool recorded_has(uint64_t board_inode);

/* What the system says of a thread. */
struct os_thread {
	char name[16]; /* empty: unknown */
	char state; /* R running or ready, S asleep, D in the kernel and not to be woken, T stopped; 0 unknown */
	char where[48]; /* the function of the kernel in which it sleeps; empty: unknown */
};

/* The thread as this machine numbers it, of one that the process calls `tid`; 0: it is not there. */
pid_t os_thread_number(const struct recorded *process, uint32_t tid);
void os_thread_look(struct os_thread *thread, pid_t pid, pid_t tid);

#endif
