/*
 * analyzer/live/costs.c: samples of boards between two looks: in which calls, and for which locks, threads spend their
 * time. A sample stands for the time since the last one. Called by `top`.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "live.h"

/* What of a page is read: the call, the wait and the wait between calls. */
#define SEEN_BYTES offsetof(struct spy_slot_page, counts)

static void add(struct live *live, const struct live_cost_key *key, uint64_t ns)
{
	struct live_cost *cost;

	HASH_FIND(hh, live->costs, key, sizeof(*key), cost);
	if (!cost)
		HASH_NEW(live->costs, cost, key, *key);
	cost->ns += ns;
}

/* Who has waited since before the first look costs nothing now: it is idle, or it hangs, which threads show. */
static bool is_recent(const struct live *live, const struct live_process *p, uint64_t when)
{
	return timeline_ns(&p->trace->timeline, when) >= live->began_ns;
}

static void see(struct live *live, const struct live_process *p, const struct spy_slot_page *page,
		uint64_t ns)
{
	struct live_cost_key key;

	memset(&key, 0, sizeof(key)); /* padding is hashed, too */
	key.process = p->index;
	key.fn = LIVE_BETWEEN_CALLS;
	if (page->depth) {
		key.fn = trace_function(&live->set, p->trace, page->outer_fn);
		if (page->wait_kind && page->wait_kind <= SPY_WAIT_KINDS &&
		    spy_wait_is_lock((unsigned int)page->wait_kind - 1)) {
			key.kind = (uint32_t)page->wait_kind;
			key.object = page->wait_object;
			key.holder = page->wait_holder;
		}
	} else if (board_waits_outside(page)) {
		key.kind = page->outside_kind;
		if (spy_wait_is_lock(page->outside_kind - 1u)) {
			key.object = page->outside_object;
			key.holder = page->outside_holder;
		} else if (!is_recent(live, p, page->outside_since)) {
			return;
		}
	} else {
		return;
	}
	add(live, &key, ns);
}

static void sample_process(struct live *live, const struct live_process *p, uint64_t ns)
{
	char *path = xasprintf("%s/.board", p->trace->dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct spy_slot_page page = {0};

	free(path);
	for (unsigned int slot = 0; fd >= 0 && slot < SPY_BOARD_SLOTS; slot++) {
		if (pread(fd, &page, SEEN_BYTES, (1 + (off_t)slot) * SPY_BOARD_PAGE) != SEEN_BYTES)
			break;
		if (page.tid && board_slot_is_sound(&page))
			see(live, p, &page, ns);
	}
	if (fd >= 0)
		close(fd);
}

void live_sample(struct live *live)
{
	uint64_t now = now_ns(), ns = now - min_u64(now, live->sampled_ns);

	live->sampled_ns = now;
	for (size_t i = 0; i < live->n_processes; i++)
		sample_process(live, &live->processes[i], ns);
}
