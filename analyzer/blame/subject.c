/*
 * analyzer/blame/subject.c: what belongs to the subject of a question. Called by the sections about
 * waits.
 */
#include <string.h>
#include "subject.h"
#include "account/account.h"

bool subject_place_fits(const struct subject_place *place, const char *file, uint64_t line)
{
	size_t n = strlen(place->file), n_file = strlen(file);

	if (place->line && place->line != line)
		return false;
	return n <= n_file && !strcmp(file + n_file - n, place->file) &&
	       (n == n_file || file[n_file - n - 1] == '/');
}

bool subject_is_thread(const struct subject *s, const struct thread *thread)
{
	return s->name ? thread_is_called(thread, s->name) : thread->tid == s->tid;
}

bool subject_is_lock(const struct subject *s, const struct lock *lock)
{
	return lock->key.address == s->lock.address && lock->key.process == s->lock.process;
}

bool subject_has_edge(const struct accounting *a, const struct subject *s, const union blame_key *k)
{
	switch (s->kind) {
	case SUBJECT_THREAD:
		return (k->waiter && subject_is_thread(s, edge_thread(a->model, k->waiter))) ||
		       (k->holder && subject_is_thread(s, edge_thread(a->model, k->holder)));
	case SUBJECT_CALL:
		return k->waiter_fn == s->fn || k->holder_fn == s->fn;
	case SUBJECT_LOCK:
		return k->lock && subject_is_lock(s, a->locks.all[k->lock - 1]);
	case SUBJECT_DEVICE:
		return k->waiter_device == s->device || k->holder_device == s->device;
	default:
		return true;
	}
}
