/*
 * analyzer/lanes/names.c: what lanes are called. Called once for each.
 */
#include "lanes.h"

const char *text_lane_of_thread(struct arena *texts, const struct thread *thread)
{
	const char *name = thread_name(thread);

	return *name ? arena_printf(texts, "%s (%u)", name, thread->tid)
		     : arena_printf(texts, "thread %u", thread->tid);
}

const char *text_lane_of_gpu(struct arena *texts, const struct idle_gpu *gpu)
{
	const struct gpu *named = idle_named(gpu);

	return arena_printf(texts, "GPU %u%s%s", gpu->device, named && named->name ? ", " : "",
			    named && named->name ? named->name : "");
}

const char *text_lane_of_lock(struct arena *texts, const struct lock *lock)
{
	return arena_printf(texts, "%s (%s)", lock->name ?: "a lock",
			    lock->place ?: "unknown place");
}
