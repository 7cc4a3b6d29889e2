/*
 * shim/record/identity.c: processes that become another user, as daemons do once they are set up.
 * Runs within the program's own calls of setuid and its kin.
 *
 * The new user has no rights in the trace's folder, which is for its owner alone. So the folder and
 * its files become that user's, right before; and the old one's again if the change fails. Only
 * once: in a folder that has been another user's anything may lie under any name, and must not be
 * given away.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include "lib/signal_guard.h"
#include "lib/elf_object.h"
#include "state/session.h"

#define EXPORT __attribute__((visibility("default")))
#define NOBODY ((uid_t)-1)

static void give_stream(const struct spy_thread *thread, uid_t owner)
{
	char name[SPY_STREAM_NAME_BYTES];

	spy_stream_tail_name(name, thread->slot);
	spy_folder_give(thread->file.part, name, &thread->file.tail, owner);
	if (!thread->file.full.inode)
		return;
	spy_stream_file_name(name, thread->slot, thread->file.file_number);
	spy_folder_give(thread->file.part, name, &thread->file.full, owner);
}

/* The folder last: until then no other user can enter it. */
static void give_guarded(uid_t owner)
{
	SPY_SIGNAL_GUARD;

	for (uint32_t slot = 0; slot < atomic_load(&spy_session->slots); slot++)
		give_stream(&spy_threads[slot], owner);
	spy_folder_give(spy_session->part, ".board", &spy_session->board_id, owner);
	spy_folder_give(spy_session->part, "", NULL, owner);
}

/* The owner before; NOBODY: it stays. */
static uid_t hand_over(uid_t owner)
{
	uid_t self = geteuid();

	/* A child of vfork has our memory, but is not us. */
	if (!spy_session_active() || owner == NOBODY || owner == self ||
	    spy_session->pid != getpid() || spy_session->given)
		return NOBODY;
	spy_session->given = true;
	give_guarded(owner);
	return self;
}

static void take_back(uid_t before, int result)
{
	if (before == NOBODY || result == 0)
		return;
	give_guarded(before);
	spy_session->given = false;
}

/* Each by what the effective user becomes. */
#define CHANGE(name, params, args, effective) \
	EXPORT int name params \
	{ \
		static int(*real) params; \
		uid_t before; \
		int result; \
\
		if (!real) \
			real = (int(*) params)spy_next_symbol(#name); \
		before = hand_over(effective); \
		result = real args; \
		take_back(before, result); \
		return result; \
	}

CHANGE(setuid, (uid_t user), (user), user)
CHANGE(seteuid, (uid_t user), (user), user)
CHANGE(setreuid, (uid_t user, uid_t next), (user, next), next)
CHANGE(setresuid, (uid_t user, uid_t next, uid_t saved), (user, next, saved), next)
