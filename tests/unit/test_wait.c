/* links: shim/probe/wait.c shim/probe/caller.c */
/*
 * tests/unit/test_wait.c: a wait becomes a record: the holder, by the lock itself, by our table of readers, or
 * not at all; what the board says of that thread; rows; records for which there is no room; and calls that were left.
 */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/clock.h"
#include "record/board.h"
#include "arch/frame_layout.h"
#include "probe/caller.h"
#include "probe/waiters.h"
#include "no_guard.h"
#include "probe/probe.h"
#include "state/session.h"
#include "probe/wait.h"

#define FN 50
#define INNER_FN 60
#define THREADS 4 /* slots 1 to 3 */

struct spy_session *spy_session;
static struct spy_thread threads[SPY_BOARD_SLOTS];
struct spy_thread *spy_threads = threads;
bool spy_probing;
bool spy_cost_without_probes, spy_cost_without_stacks;
struct spy_waiters spy_waiters[SPY_WAITERS_BUCKETS];
__thread struct spy_thread *spy_self;
bool spy_clock_is_counter;

static uint64_t now;
static struct spy_slot_page pages[THREADS];
static struct spy_thread *self; /* slot 1, thread 101 */
static uint8_t packet[SPY_PACKET_BYTES] __attribute__((aligned(64)));
static int entered, left, lost;

uint64_t spy_clock_monotonic(void)
{
	return now;
}

void spy_thread_count_lost(struct spy_thread *of)
{
	assert_ptr_equal(of, self);
	lost++;
}

static bool pauses; /* the lock */

bool spy_waiters_enter(struct spy_thread *thread, const void *lock, uint64_t at)
{
	assert_int_equal(at, now);
	if (pauses)
		return false;
	entered++;
	thread->waiting = spy_waiters_of(lock);
	return true;
}

void spy_waiters_leave(struct spy_thread *thread)
{
	left++;
	thread->waiting = NULL;
}

/* ---- a thread inside a call, and others ---- */

static int begin(void **state)
{
	(void)state;
	free(spy_session);
	spy_session = aligned_alloc(128, (sizeof(*spy_session) + 127) / 128 * 128);
	memset(spy_session, 0, sizeof(*spy_session));
	memset(threads, 0, sizeof(threads));
	memset(pages, 0, sizeof(pages));
	memset(packet, 0, sizeof(packet));
	spy_session->slots = THREADS;
	for (uint32_t slot = 1; slot < THREADS; slot++) {
		spy_session->slot_tids[slot] = 100 + slot;
		spy_threads[slot].page = &pages[slot];
		spy_threads[slot].slot = slot;
		spy_threads[slot].tid = 100 + slot;
	}
	self = &spy_threads[1];
	self->packet = (struct spy_packet *)packet;
	self->head = packet + sizeof(struct spy_packet);
	spy_thread_use_room(self, packet + SPY_PACKET_BYTES - SPY_CALL_ROOM - SPY_WAIT_ROOM);
	self->depth = 1;
	self->device = 3; /* number 2 */
	self->calls[0] = (struct spy_progress){.frame = UINTPTR_MAX, .fn = FN, .start = 500};
	pages[1].fn = FN;
	spy_self = self;
	spy_probing = true;
	entered = left = lost = 0;
	pauses = false;
	now = 1000;
	return 0;
}

static struct spy_rec_wait *last(void)
{
	assert_int_equal(self->packet->content_bits, 8 * (uint64_t)(self->head - packet));
	return (struct spy_rec_wait *)(self->head - sizeof(struct spy_rec_wait));
}

static size_t records(void)
{
	return (size_t)(self->head - packet - (ptrdiff_t)sizeof(struct spy_packet)) /
	       sizeof(struct spy_rec_wait);
}

static void wait_for(enum spy_wait_kind kind, const void *object, const uint32_t *owner,
		     uint64_t cycles, bool failed)
{
	struct spy_wait wait;

	spy_wait_begin(&wait, kind, object, owner, 0);
	now += cycles;
	spy_wait_end(&wait, failed);
}

/* Thread 102 is in a call of its own. */
static void be_in_call(unsigned int slot)
{
	pages[slot].depth = 1;
	pages[slot].outer_fn = (uint16_t)(FN + slot);
	pages[slot].since = 100 * slot;
	pages[slot].device = (uint8_t)slot;
	pages[slot].stream = 0xffff000000000000ull | slot;
}

static char lock;

static void test_mutex(void **state)
{
	const struct spy_rec_wait *record;
	uint32_t owner = 102;
	struct spy_wait wait;

	(void)state;
	be_in_call(2);
	spy_wait_begin(&wait, SPY_WAIT_MUTEX, &lock, &owner, 0);
	assert_int_equal(pages[1].wait_kind, SPY_WAIT_MUTEX + 1);
	assert_int_equal(pages[1].wait_holder, 102);
	assert_true(pages[1].wait_since && pages[1].wait_since <= now);
	assert_int_equal(pages[1].wait_object, (uintptr_t)&lock);
	assert_int_equal(entered, 1);
	owner = 103; /* it changes hands, which other records tell */
	now += 70;
	spy_wait_end(&wait, false);
	assert_int_equal(pages[1].wait_kind, 0);
	record = last();
	assert_int_equal(records(), 1);
	assert_int_equal(record->time, 1070);
	assert_int_equal(record->event, SPY_EV_WAIT);
	assert_int_equal(record->kind, SPY_WAIT_MUTEX);
	assert_int_equal(record->depth, 0);
	assert_int_equal(record->fn, FN);
	assert_int_equal(record->outer_fn, FN);
	assert_int_equal(record->duration, 70);
	assert_int_equal(record->span, 70);
	assert_int_equal(record->device, 2);
	assert_int_equal(record->flags, 0);
	assert_int_equal(record->object, (uintptr_t)&lock);
	assert_int_equal(record->count, 1);
	assert_int_equal(record->holder, 102);
	assert_int_equal(record->holder_fn, FN + 2);
	assert_int_equal(record->holder_since, 200);
	assert_int_equal(record->holder_device, 2);
	assert_int_equal(record->holder_stream, 2);
	assert_int_equal(self->waited, 70);
	assert_int_equal(self->reentry_frame, 0);
	/* Locks come one by one, however alike. */
	owner = 102;
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 30, false);
	assert_int_equal(records(), 2);
	assert_int_equal(self->waited, 100);
}

static void test_holders(void **state)
{
	uint32_t owner = 0;

	(void)state;
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 5, false);
	assert_int_equal(last()->flags, SPY_WAIT_FREE);
	assert_int_equal(last()->holder, 0);
	owner = 102; /* in no call */
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 5, false);
	assert_int_equal(last()->holder, 102);
	assert_int_equal(last()->flags, SPY_WAIT_IDLE_HOLDER);
	assert_int_equal(last()->holder_fn, 0);
	assert_int_equal(last()->holder_device, SPY_DEVICE_NONE);
	owner = INT32_MAX; /* its owner died */
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 5, false);
	assert_int_equal(last()->holder, 0);
	owner = INT32_MAX - 1; /* it is not recoverable */
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 5, false);
	assert_int_equal(last()->holder, 0);
	owner = INT32_MAX - 2;
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 5, true);
	assert_int_equal(last()->holder, INT32_MAX - 2);
	assert_int_equal(last()->flags, SPY_WAIT_IDLE_HOLDER | SPY_WAIT_FAILED);
}

/* A lock that pauses: what it says itself. */
static void test_at_rest(void **state)
{
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
	uint32_t owner = 102;
	struct spy_wait wait;

	(void)state;
	pauses = true;
	be_in_call(2);
	be_in_call(3);
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 70, false);
	assert_int_equal(last()->flags, SPY_WAIT_UNFOLLOWED);
	assert_int_equal(last()->holder, 102);
	assert_int_equal(last()->holder_fn, FN + 2);
	assert_int_equal(last()->duration, 70);
	assert_int_equal(self->waited, 70);
	assert_int_equal(entered, 0);
	assert_ptr_equal(self->waiting, NULL);
	owner = 0;
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 5, true);
	assert_int_equal(last()->flags, SPY_WAIT_UNFOLLOWED | SPY_WAIT_FREE | SPY_WAIT_FAILED);
	spy_hold_add(&spy_threads[3], &rwlock); /* the table is not searched */
	wait_for(SPY_WAIT_SPIN, &rwlock, NULL, 5, false);
	assert_int_equal(last()->flags, SPY_WAIT_UNFOLLOWED);
	assert_int_equal(last()->holder, 0);
	pthread_rwlock_rdlock(&rwlock);
	wait_for(SPY_WAIT_WRITE, &rwlock, &owner, 5, false);
	assert_int_equal(last()->flags, SPY_WAIT_UNFOLLOWED | SPY_WAIT_READERS);
	pthread_rwlock_unlock(&rwlock);
	/* It begins to rest during a wait. */
	pauses = false;
	owner = 102;
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 5, false);
	assert_int_equal(last()->flags, 0);
	spy_wait_begin(&wait, SPY_WAIT_MUTEX, &lock, &owner, 0);
	spy_waiters_of(&lock)->pauses++;
	spy_wait_end(&wait, false);
	assert_int_equal(last()->flags, SPY_WAIT_UNFOLLOWED);
}

/* Which locks the thread has: as many as there are places, the last ones. */
static void expect_holds(unsigned int n, const char *wanted)
{
	char found[SPY_HOLDS + 1] = "";
	size_t length = 0;

	for (unsigned int i = 0; i < SPY_HOLDS; i++)
		if (self->holds[i])
			found[length++] = (char)self->holds[i];
	assert_string_equal(found, wanted);
	assert_int_equal(self->n_holds, n);
}

static const void *named(int name)
{
	return (const void *)(uintptr_t)name;
}

static void test_table_of_holds(void **state)
{
	(void)state;
	for (int name = 'a'; name <= 'c'; name++)
		spy_hold_add(self, named(name));
	expect_holds(3, "abc");
	spy_hold_remove(self, named('c')); /* in turn: its place is free */
	expect_holds(2, "ab");
	spy_hold_remove(self, named('a')); /* out of turn: a hole */
	expect_holds(2, "b");
	spy_hold_remove(self, named('x')); /* it is none of these */
	expect_holds(2, "b");
	spy_hold_add(self, named('b')); /* twice */
	expect_holds(3, "bb");
	spy_hold_remove(self, named('b'));
	expect_holds(2, "b");
	spy_hold_remove(self, named('b'));
	expect_holds(1, "");
	/* Beyond the table the oldest is forgotten. */
	for (int name = 'd'; name <= 'd' + SPY_HOLDS; name++)
		spy_hold_add(self, named(name));
	expect_holds(2 + SPY_HOLDS, "klefghij");
	spy_hold_remove(self, named('d'));
	expect_holds(2 + SPY_HOLDS, "klefghij");
	spy_hold_remove(self, named('e'));
	spy_hold_remove(self, named('l'));
	expect_holds(1 + SPY_HOLDS, "kfghij");
}

/* Locks that name no holder: whose table has them. */
static void test_readers(void **state)
{
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
	uint32_t owner = 0;

	(void)state;
	be_in_call(3);
	spy_hold_add(&spy_threads[3], &rwlock);
	spy_hold_add(self, &rwlock); /* one's own does not count */
	wait_for(SPY_WAIT_WRITE, &rwlock, &owner, 5, false);
	assert_int_equal(last()->holder, 103);
	assert_int_equal(last()->holder_fn, FN + 3);
	assert_int_equal(last()->flags, SPY_WAIT_READERS);
	wait_for(SPY_WAIT_SPIN, &rwlock, NULL, 5, false);
	assert_int_equal(last()->holder, 103);
	assert_int_equal(last()->flags, 0);
	wait_for(SPY_WAIT_MUTEX, &rwlock, &owner, 5, false); /* no reader has a mutex */
	assert_int_equal(last()->holder, 0);
	pages[3].depth = 0; /* a thread in no call has released it */
	wait_for(SPY_WAIT_SPIN, &rwlock, NULL, 5, false);
	assert_int_equal(last()->holder, 0);
	assert_int_equal(last()->flags, SPY_WAIT_FREE);
	pages[3].depth = 1;
	spy_session->slot_tids[3] = 0; /* that thread has ended */
	wait_for(SPY_WAIT_SPIN, &rwlock, NULL, 5, false);
	assert_int_equal(last()->holder, 0);
	spy_session->slot_tids[3] = 103;
	spy_hold_remove(&spy_threads[3], &rwlock);
	wait_for(SPY_WAIT_WRITE, &rwlock, &owner, 5, false);
	assert_int_equal(last()->flags, SPY_WAIT_FREE);
	pthread_rwlock_rdlock(&rwlock); /* a reader in no call */
	wait_for(SPY_WAIT_WRITE, &rwlock, &owner, 5, false);
	assert_int_equal(last()->flags, SPY_WAIT_READERS);
	assert_int_equal(last()->holder, 0);
	wait_for(SPY_WAIT_READ, &rwlock, &owner, 5, false);
	assert_int_equal(last()->flags, SPY_WAIT_READERS);
	pthread_rwlock_unlock(&rwlock);
	owner = 102; /* a writer names itself */
	be_in_call(2);
	wait_for(SPY_WAIT_READ, &rwlock, &owner, 5, false);
	assert_int_equal(last()->holder, 102);
	assert_int_equal(last()->flags, 0);
}

/* A thread that makes no calls is named once. */
static void test_noncuda_thread(void **state)
{
	const struct spy_rec_non_cuda_thread *record = (const void *)self->head;
	uint32_t owner = (uint32_t)syscall(SYS_gettid);

	(void)state;
	prctl(PR_SET_NAME, "strange one");
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 5, false);
	assert_int_equal(record->head.event, SPY_EV_NON_CUDA_THREAD);
	assert_int_equal(record->head.time, 1000);
	assert_int_equal(record->tid, owner);
	assert_string_equal(record->name, "strange one");
	assert_int_equal(last()->flags, SPY_WAIT_IDLE_HOLDER);
	assert_ptr_equal((uint8_t *)last(), (const uint8_t *)record + sizeof(*record));
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 5, false);
	assert_ptr_equal((uint8_t *)last(),
			 (const uint8_t *)record + sizeof(*record) + sizeof(struct spy_rec_wait));
	owner = 99999999; /* of another process: it has no name here */
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 5, false);
	assert_ptr_equal((uint8_t *)last(), (const uint8_t *)record + sizeof(*record) +
						    2 * sizeof(struct spy_rec_wait));
}

/* What is no lock joins the one before: of the same kind, for the same thing, in the same call. */
static void test_rows(void **state)
{
	(void)state;
	wait_for(SPY_WAIT_IOCTL, (void *)1, NULL, 10, false);
	now += 5;
	wait_for(SPY_WAIT_IOCTL, (void *)1, NULL, 20, false);
	assert_int_equal(records(), 1);
	assert_int_equal(last()->count, 2);
	assert_int_equal(last()->duration, 30);
	assert_int_equal(last()->span, 35);
	assert_int_equal(last()->time, now);
	assert_int_equal(self->packet->time_end, now);
	assert_int_equal(self->waited + (uint64_t)entered + (uint64_t)left, 0); /* no lock */
	wait_for(SPY_WAIT_IOCTL, (void *)2, NULL, 1, false); /* another request */
	assert_int_equal(records(), 2);
	wait_for(SPY_WAIT_POLL, (void *)2, NULL, 1, false); /* another kind */
	assert_int_equal(records(), 3);
	pages[1].fn = INNER_FN; /* another function */
	wait_for(SPY_WAIT_POLL, (void *)2, NULL, 1, false);
	assert_int_equal(records(), 4);
	assert_int_equal(last()->fn, INNER_FN);
	assert_int_equal(last()->outer_fn, FN);
	self->calls[1] =
		(struct spy_progress){.frame = UINTPTR_MAX - 1, .fn = INNER_FN, .start = 600};
	self->depth = 2; /* deeper */
	wait_for(SPY_WAIT_POLL, (void *)2, NULL, 1, false);
	assert_int_equal(records(), 5);
	assert_int_equal(last()->depth, 1);
	self->calls[1].start = now + 1; /* a later call */
	now += 2;
	wait_for(SPY_WAIT_POLL, (void *)2, NULL, 1, false);
	assert_int_equal(records(), 6);
	self->head += 8; /* something else has come between */
	wait_for(SPY_WAIT_POLL, (void *)2, NULL, 1, false);
	assert_int_equal(self->head - packet - (ptrdiff_t)sizeof(struct spy_packet),
			 7 * (ptrdiff_t)sizeof(struct spy_rec_wait) + 8);
}

/* glibc's bits of a lock that say no more than that a writer waits or had it are no reader. */
static void test_free_rwlock(void **state)
{
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
	uint32_t owner = 0;

	(void)state;
	for (rwlock.__data.__readers = 0; rwlock.__data.__readers < 8; rwlock.__data.__readers++) {
		wait_for(SPY_WAIT_WRITE, &rwlock, &owner, 5, false);
		assert_int_equal(last()->flags, SPY_WAIT_FREE);
		wait_for(SPY_WAIT_READ, &rwlock, &owner, 5, false);
		assert_int_equal(last()->flags, SPY_WAIT_FREE);
	}
	wait_for(SPY_WAIT_WRITE, &rwlock, &owner, 5, false);
	assert_int_equal(last()->flags, SPY_WAIT_READERS);
	wait_for(SPY_WAIT_MUTEX, &rwlock, &owner, 5, false); /* a mutex has no readers */
	assert_int_equal(last()->flags, SPY_WAIT_FREE);
	wait_for(SPY_WAIT_SPIN, &rwlock, NULL, 5, false);
	assert_int_equal(last()->flags, SPY_WAIT_FREE);
}

/* The first wait of a call, of which there is no record that could take it in, nor room. */
static void test_no_room_at_all(void **state)
{
	uint32_t owner = 102;

	(void)state;
	self->head = packet + SPY_PACKET_BYTES - SPY_RECORD_MAX;
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 10, false);
	assert_int_equal(lost, 1);
	wait_for(SPY_WAIT_IOCTL, (void *)1, NULL, 10, false);
	assert_int_equal(lost, 2);
	assert_ptr_equal(self->head, packet + SPY_PACKET_BYTES - SPY_RECORD_MAX);
}

/* No room for another record in this call: the last one takes it in. */
static void test_no_room(void **state)
{
	uint32_t owner = 102;

	(void)state;
	self->head = packet + SPY_PACKET_BYTES - SPY_RECORD_MAX - sizeof(struct spy_rec_wait);
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 10, false);
	assert_int_equal(last()->holder, 102);
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 20, true);
	assert_int_equal(last()->count, 2);
	assert_int_equal(last()->duration, 30);
	assert_int_equal(last()->object, (uintptr_t)&lock);
	assert_int_equal(last()->holder, 102);
	assert_int_equal(last()->flags, SPY_WAIT_IDLE_HOLDER | SPY_WAIT_FAILED); /* one of them */
	owner = 103; /* another one had it */
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 1, false);
	assert_int_equal(last()->holder, 0);
	assert_int_equal(last()->object, (uintptr_t)&lock);
	wait_for(SPY_WAIT_MUTEX, &owner, &owner, 1, false); /* another lock */
	assert_int_equal(last()->object, 0);
	assert_int_equal(last()->count, 4);
	be_in_call(3); /* what is not so of all is not said */
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 1, false);
	assert_int_equal(last()->flags, SPY_WAIT_FAILED);
	assert_int_equal(lost, 0);
	wait_for(SPY_WAIT_IOCTL, (void *)1, NULL, 1, false); /* none of its kind */
	assert_int_equal(lost, 1);
	assert_int_equal(last()->count, 5);
	self->calls[0].start = last()->time; /* the call's own first moment */
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 1, false);
	assert_int_equal(last()->count, 6);
	assert_int_equal(lost, 1);
	self->calls[0].start = now + 1; /* nor in another call */
	now += 2;
	wait_for(SPY_WAIT_MUTEX, &lock, &owner, 1, false);
	assert_int_equal(lost, 2);
}

/* No caller: without probes, in no call, in the recorder, without a packet, in a call that was left. */
static void test_no_caller(void **state)
{
	struct spy_wait wait;

	(void)state;
	assert_ptr_equal(spy_caller(&now), self);
	spy_probing = false;
	assert_null(spy_caller(&now));
	spy_probing = true;
	self->reentry_frame = 1;
	assert_null(spy_caller(&now));
	self->reentry_frame = 0;
	self->depth = 0;
	assert_null(spy_caller(&now));
	self->depth = 1;
	self->packet = NULL;
	assert_null(spy_caller(&now));
	self->packet = (struct spy_packet *)packet;
	self->calls[0].frame = (uintptr_t)&now;
	assert_null(spy_caller(&now)); /* its frame lay where we are */
	self->calls[0].frame = UINTPTR_MAX;
	spy_wait_begin(&wait, SPY_WAIT_POLL, NULL, NULL, 0);
	assert_int_equal(pages[1].wait_kind, SPY_WAIT_POLL + 1);
	self->calls[0].frame = 1;
	now += 10;
	spy_wait_end(&wait, false); /* it was left meanwhile */
	assert_int_equal(records(), 0);
	spy_wait_begin(&wait, SPY_WAIT_POLL, NULL, NULL, 0);
	assert_null(wait.thread);
	spy_wait_end(&wait, false);
	assert_int_equal(records(), 0);
}

/* What a probe finds behind a call that was left: nothing, and the thread is in no call any more. */
static struct spy_thread *left_by(const void *here)
{
	struct spy_thread *found = spy_caller(here);

	assert_int_equal(self->depth, 0);
	self->depth = 1;
	return found;
}

/* On the thread's own stack a frame is looked at: something else may have come to lie there. */
static void test_frames(void **state)
{
	struct {
		uint64_t below;
		uint64_t frame[SPY_FRAME_BYTES / 8 + 4];
	} stack;
	struct spy_frame *frame = (struct spy_frame *)stack.frame;

	(void)state;
	memset(&stack, 0, sizeof(stack));
	frame->thread = self;
	frame->stack = (uint64_t *)((uintptr_t)frame + SPY_FRAME_BYTES + 24);
	frame->caller = frame->stack[-1] = 0x1234;
	self->calls[0].frame = (uintptr_t)frame;
	self->stack_begin = (uintptr_t)&stack;
	self->stack_end = (uintptr_t)(&stack + 1);
	assert_ptr_equal(spy_caller(&stack.below), self);
	frame->stack[-1]++;
	assert_null(left_by(&stack.below));
	frame->stack[-1]--;
	frame->depth = 1;
	assert_null(left_by(&stack.below));
	frame->depth = 0;
	frame->stack++;
	assert_null(left_by(&stack.below));
	frame->stack--;
	frame->thread = NULL;
	assert_null(left_by(&stack.below));
	self->stack_begin += 8; /* we are elsewhere: that stack may be gone */
	assert_ptr_equal(spy_caller(&stack.below), self);
	self->stack_begin -= 8;
	self->stack_end = (uintptr_t)frame;
	assert_ptr_equal(spy_caller(&stack.below), self);
}

/* A counted call has a beginning from its first wait on. */
static void test_begins(void **state)
{
	(void)state;
	self->calls[0].start = 0;
	self->calls[1] = (struct spy_progress){.frame = UINTPTR_MAX, .fn = INNER_FN};
	self->calls[2] = (struct spy_progress){.frame = UINTPTR_MAX, .fn = INNER_FN};
	self->depth = 3;
	wait_for(SPY_WAIT_POLL, NULL, NULL, 10, false);
	for (int i = 0; i < 3; i++)
		assert_int_equal(self->calls[i].start, 1000);
	assert_int_equal(pages[1].since, 1000);
	assert_int_equal(pages[1].inner_since, 1000);
	self->calls[2].start = 0;
	wait_for(SPY_WAIT_POLL, NULL, NULL, 10, false);
	assert_int_equal(self->calls[2].start, 1010);
	assert_int_equal(self->calls[0].start, 1000);
	assert_int_equal(pages[1].since, 1000);
	assert_int_equal(pages[1].inner_since, 1010);
}

#define TEST(function) cmocka_unit_test_setup(function, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_mutex),          TEST(test_holders),        TEST(test_at_rest),
		TEST(test_readers),        TEST(test_noncuda_thread), TEST(test_rows),
		TEST(test_no_room),        TEST(test_free_rwlock),    TEST(test_no_room_at_all),
		TEST(test_no_caller),      TEST(test_frames),         TEST(test_begins),
		TEST(test_table_of_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
