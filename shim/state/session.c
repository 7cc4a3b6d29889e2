/*
 * shim/state/session.c: the one session of a process: where it lies, whether it is active, and
 * calls that no thread can count. Runs on the application's threads, at any time.
 *
 * The session lives in memory that a forked child reads as zeros (MADV_WIPEONFORK): the child has
 * no session until it calls CUDA itself. Its first call finds that out in the slow path.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include "state/session.h"

#define PAGE 4096

struct spy_session *spy_session;
struct spy_clock_pair spy_loaded;

/* Pages of its own. */
static union {
	struct spy_session session;
	char pages[(sizeof(struct spy_session) + PAGE - 1) / PAGE * PAGE];
} memory __attribute__((aligned(PAGE)));

struct tables {
	struct spy_thread threads[SPY_BOARD_SLOTS];
	struct spy_part finished[SPY_PARTS_MOST];
};

static struct spy_thread no_threads[1]; /* before there is a session */
struct spy_thread *spy_threads = no_threads;
struct spy_part *spy_finished_parts;

bool spy_session_init(void)
{
	bool wiped = madvise(&memory, sizeof(memory), MADV_WIPEONFORK) == 0;

	spy_session = &memory.session;
	return wiped;
}

bool spy_session_map_tables(void)
{
	struct tables *tables;

	if (spy_finished_parts)
		return true;
	tables = mmap(NULL, sizeof(*tables), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (tables == MAP_FAILED)
		return false;
	madvise(tables, sizeof(*tables), MADV_WIPEONFORK);
	spy_threads = tables->threads;
	spy_finished_parts = tables->finished;
	return true;
}

void spy_session_wipe(void)
{
	uint32_t slots = spy_session->slots;

	if (spy_finished_parts) {
		memset(spy_threads, 0, slots * sizeof(*spy_threads));
		memset(spy_finished_parts, 0, SPY_PARTS_MOST * sizeof(*spy_finished_parts));
	}
	memset(spy_session, 0, sizeof(*spy_session));
}

/* Calls lost before the board was there. */
static uint64_t lost_early;

void spy_session_count_lost(void)
{
	uint64_t *lost = spy_session_active() ? &spy_session->board->lost : &lost_early;

	__atomic_fetch_add(lost, 1, __ATOMIC_RELAXED);
}

bool spy_session_active(void)
{
	return spy_session && atomic_load(&spy_session->state) == SPY_SESSION_ACTIVE;
}

bool spy_session_failed(void)
{
	return !spy_session || atomic_load(&spy_session->state) == SPY_SESSION_FAILED;
}

uint64_t spy_session_take_lost(void)
{
	return __atomic_exchange_n(&lost_early, 0, __ATOMIC_RELAXED);
}
