/*
 * shim/nvtx/ranges.c: ranges and marks become records in the stream of the thread that announced
 * them. Runs on the application's threads, within NVTX's functions.
 *
 * A thread has a stream from its first CUDA call on. What it announces before is only counted; but
 * it remembers which ranges are open, and its stream begins with these. The same list says what a
 * pop ends, and how deep it was. Nothing here takes a lock, but where a packet is full and where a
 * thing is named.
 */
#include <string.h>
#include "lib/lock.h"
#include "record/range_names.h"
#include "nvtx/ranges.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/board.h"
#include "state/session.h"
#include "state/thread.h"
#include "window/capture.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

#define OPEN_MOST 24 /* ranges of a thread that are known, one inside the other */
#define COUNTED_AT_ONCE 64

struct open_range {
	uint64_t since; /* 0: it is just being pushed */
	uint32_t name;
	uint16_t domain;
	bool recorded; /* its begin is in the stream */
	bool opened; /* a window opens with it (window.h) */
};

static __thread struct {
	uint32_t n;
	uint32_t beyond; /* open inside of these, and not recorded */
	uint32_t uncounted; /* announced without a stream */
	struct open_range open[OPEN_MOST];
} mine;

static uint64_t elsewhere, lost; /* see struct spy_board */
static uint64_t last_id;

/* ---- counters ------------------------------------------------------------------------------- */

static void count_elsewhere(void)
{
	if (++mine.uncounted < COUNTED_AT_ONCE)
		return;
	__atomic_fetch_add(&elsewhere, mine.uncounted, __ATOMIC_RELAXED);
	mine.uncounted = 0;
	spy_ranges_count();
}

static void count_lost(void)
{
	__atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
	spy_ranges_count();
}

/* ---- records -------------------------------------------------------------------------------- */

#define NAME_ROOM (sizeof(struct spy_rec_range_name) + SPY_RANGE_TEXT + SPY_DOMAIN_TEXT + 8)

/* Has the trace, as far as it will be kept, that name? Two threads at once may both say no. */
static bool is_recorded(const struct spy_thread *thread, uint32_t name)
{
	uint64_t here = spy_session->range_bounded
				? (uint64_t)thread->slot << 48 | (thread->packet->seq + 1)
				: spy_session->part;

	if (__builtin_expect(__atomic_load_n(&spy_session->range_name_recorded[name],
					     __ATOMIC_RELAXED) == here,
			     1))
		return true;
	__atomic_store_n(&spy_session->range_name_recorded[name], here, __ATOMIC_RELAXED);
	return false;
}

static void write_name(struct spy_thread *thread, uint32_t name)
{
	struct spy_rec_range_name *record = (struct spy_rec_range_name *)thread->head;
	uint64_t now = spy_clock();
	size_t domain_bytes, name_bytes, bytes, padding;
	const char *text, *domain_text;
	uint16_t domain;
	bool folded;

	text = spy_range_text(name, &domain, &folded);
	if (!text) { /* another thread is just adding it: the next one tells it */
		__atomic_store_n(&spy_session->range_name_recorded[name], 0, __ATOMIC_RELAXED);
		return;
	}
	domain_text = spy_domain_text(domain);
	domain_bytes = strlen(domain_text) + 1;
	name_bytes = strlen(text) + 1;
	bytes = sizeof(*record) + domain_bytes + name_bytes;
	padding = 7 - bytes % 8;
	*record = (struct spy_rec_range_name){
		.head = {.time = now, .event = SPY_EV_RANGE_NAME}, .folded = folded, .name = name};
	memcpy(record->text, domain_text, domain_bytes);
	memcpy(record->text + domain_bytes, text, name_bytes);
	memset(record->text + domain_bytes + name_bytes, ' ', padding);
	record->text[domain_bytes + name_bytes + padding] = '\0';
	spy_thread_publish(thread, now, bytes + padding + 1);
	spy_ranges_count();
}

static inline bool has_room(const struct spy_thread *thread, size_t bytes)
{
	return thread->depth ? spy_thread_has_room(thread, bytes)
			     : spy_thread_has_room_outside(thread, bytes);
}

/* Is there room for a record and a name? Between calls a packet that is full is changed, as the
 * next call would do. */
static inline bool make_room(struct spy_thread *thread)
{
	size_t bytes = NAME_ROOM + sizeof(struct spy_rec_range_value);

	if (__builtin_expect(thread->head < spy_thread_limit(thread), 1) || has_room(thread, bytes))
		return true;
	return !thread->depth && spy_thread_find_room(thread) && has_room(thread, bytes);
}

/* Writes one record. False: there is no stream, or no room. Between spy_thread_try_work and
 * spy_thread_end_work. */
static inline bool write_record(struct spy_thread *thread, enum spy_range_what what,
				const struct spy_said *said, uint64_t id, bool long_form)
{
	uint64_t now;

	if (!make_room(thread))
		return false;
	if (said->name && !is_recorded(thread, said->name))
		write_name(thread, said->name);
	now = spy_clock();
	if (!long_form) {
		*(struct spy_rec_range *)thread->head =
			(struct spy_rec_range){.time = now,
					       .event = SPY_EV_RANGE,
					       .what = (uint8_t)what,
					       .name = said->name};
		spy_thread_publish(thread, now, sizeof(struct spy_rec_range));
		return true;
	}
	*(struct spy_rec_range_value *)thread->head =
		(struct spy_rec_range_value){.time = now,
					     .event = SPY_EV_RANGE_VALUE,
					     .what = (uint8_t)what,
					     .payload_type = said->payload_type,
					     .name = said->name,
					     .id = id,
					     .payload = said->payload,
					     .category = said->category};
	spy_thread_publish(thread, now, sizeof(struct spy_rec_range_value));
	return true;
}

/* May the calling thread write into its stream? A signal handler may have interrupted that. */
static inline struct spy_thread *begin_work(const void *here)
{
	struct spy_thread *thread = spy_self;

	if (!spy_window_is_open())
		return NULL;
	if (thread->asleep && !thread->depth)
		spy_thread_find_room(thread);
	if (!thread->packet) {
		count_elsewhere();
		return NULL;
	}
	if (thread->reentry_frame || !spy_thread_try_work(thread, here)) {
		count_lost();
		return NULL;
	}
	if (spy_thread_missed_a_change(thread) && !thread->depth)
		spy_thread_renew(thread);
	return thread;
}

/* The record's time; 0: there is none. */
static inline uint64_t write_alone(enum spy_range_what what, const struct spy_said *said,
				   uint64_t id, bool long_form)
{
	struct spy_thread *thread = begin_work(__builtin_frame_address(0));
	uint64_t time = 0;

	if (__builtin_expect(!thread, 0))
		return 0;
	if (write_record(thread, what, said, id, long_form))
		time = thread->packet->time_end;
	spy_thread_end_work(thread);
	if (__builtin_expect(!time, 0))
		count_lost();
	return time;
}

/* ---- ranges of a thread --------------------------------------------------------------------- */

static int depth_in(uint16_t domain, uint32_t n)
{
	int depth = 0;

	for (uint32_t i = 0; i < n; i++)
		depth += mine.open[i].domain == domain;
	return depth;
}

int spy_range_push(const struct spy_said *said)
{
	bool opens = spy_window_range_begins(said->name);
	uint32_t n = mine.n;
	int depth = depth_in(said->domain, n);
	uint64_t time;

	if (__builtin_expect(n == OPEN_MOST, 0)) {
		count_lost();
		if (opens)
			spy_window_range_ends(); /* its end would not be known */
		return depth + (int)mine.beyond++;
	}
	mine.open[n] =
		(struct open_range){.name = said->name, .domain = said->domain, .opened = opens};
	mine.n = n + 1; /* a signal handler's go behind it */
	time = write_alone(SPY_RANGE_PUSH, said, 0, said->payload_type || said->category);
	mine.open[n].recorded = time;
	mine.open[n].since = time ? time : spy_clock();
	return depth;
}

/* A signal handler may come in between, and leave more or fewer of them open: none is written but those that there
 * were. */
static void forget_open(uint32_t i, uint32_t n)
{
	for (; i + 1 < n; i++)
		mine.open[i] = mine.open[i + 1];
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mine.n = n - 1;
}

int spy_range_pop(uint16_t domain)
{
	struct open_range range;
	uint32_t n = mine.n, i = n;

	if (__builtin_expect(mine.beyond, 0))
		return depth_in(domain, mine.n) + (int)--mine.beyond;
	while (i && mine.open[i - 1].domain != domain)
		i--;
	if (!i)
		return -1;
	range = mine.open[--i];
	forget_open(i, n);
	if (range.recorded)
		write_alone(SPY_RANGE_POP, &(struct spy_said){.name = range.name}, 0, false);
	else if (!spy_self->packet && spy_window_is_open())
		count_elsewhere();
	if (range.opened)
		spy_window_range_ends();
	return depth_in(domain, i);
}

/* Called by the slot's owner, which is at work already. */
static void write_open(struct spy_thread *thread)
{
	for (uint32_t i = 0; i < mine.n; i++) {
		struct open_range *range = &mine.open[i];
		struct spy_said said = {.name = range->name, .domain = range->domain};

		if (!range->since) /* its own record comes, into the packet that has just begun */
			continue;
		range->recorded =
			has_room(thread, NAME_ROOM + sizeof(struct spy_rec_range_value)) &&
			write_record(thread, SPY_RANGE_OPEN, &said, range->since, true);
	}
}

void spy_ranges_write_open(struct spy_thread *thread)
{
	if (thread == spy_self && thread->packet && mine.n)
		write_open(thread);
}

/* ---- ranges of the process, marks ------------------------------------------------------------ */

uint64_t spy_range_new_id(void)
{
	return __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
}

void spy_range_start(const struct spy_said *said, uint64_t id)
{
	spy_window_range_started(said->name, id);
	write_alone(SPY_RANGE_START, said, id, true);
}

void spy_range_end(uint64_t id)
{
	write_alone(SPY_RANGE_END, &(struct spy_said){0}, id, true);
	spy_window_range_ended(id);
}

void spy_range_mark(const struct spy_said *said)
{
	write_alone(SPY_RANGE_MARK, said, 0, said->payload_type || said->category);
}

/* ---- names of things ------------------------------------------------------------------------- */

#define OBJECTS_MOST 256 /* that are remembered for a session to come */

static struct object {
	uint16_t what;
	uint64_t object;
	char name[SPY_DOMAIN_TEXT];
} objects[OBJECTS_MOST];
static unsigned int n_objects;
static struct spy_lock objects_lock;

static void write_object(const struct object *object)
{
	size_t bytes = sizeof(struct spy_rec_nvtx_name) + strlen(object->name) + 1;
	struct spy_rec_nvtx_name *record = spy_session_append(SPY_EV_NVTX_NAME, bytes);

	if (!record)
		return;
	record->what = object->what;
	record->reserved = 0;
	record->object = object->object;
	memcpy(record->text, object->name, strlen(object->name) + 1);
	spy_session_commit(bytes);
}

/* A thing that has a new name keeps its place. */
static void remember_object(const struct object *object)
{
	unsigned int i = 0;

	if (!spy_lock(&objects_lock))
		return;
	while (i < n_objects &&
	       (objects[i].what != object->what || objects[i].object != object->object))
		i++;
	if (i < OBJECTS_MOST)
		objects[i] = *object;
	if (i == n_objects && i < OBJECTS_MOST)
		n_objects++;
	spy_unlock(&objects_lock);
}

static void name_on_own_stack(void *data)
{
	remember_object(data);
	if (spy_session_active())
		write_object(data);
}

void spy_range_name_object(enum spy_nvtx_named what, uint64_t object, const char *name)
{
	struct object named = {.what = (uint16_t)what, .object = object};

	memcpy(named.name, name, strnlen(name, sizeof(named.name) - 1));
	spy_own_stack_run(name_on_own_stack, &named);
}

/* ---- sessions -------------------------------------------------------------------------------- */

void spy_ranges_begin(void)
{
	static struct object copy;

	spy_session->range_bounded = spy_options_keeps_packets();
	/* One at a time: the session's lock is not taken inside this one. */
	for (unsigned int i = 0;; i++) {
		if (!spy_lock(&objects_lock))
			return;
		if (i < n_objects)
			copy = objects[i];
		spy_unlock(&objects_lock);
		if (i >= n_objects)
			return;
		write_object(&copy);
	}
}

void spy_ranges_count(void)
{
	if (!spy_session_active())
		return;
	spy_board_show(spy_session->board->ranges_elsewhere,
		       __atomic_load_n(&elsewhere, __ATOMIC_RELAXED));
	spy_board_show(spy_session->board->ranges_lost, __atomic_load_n(&lost, __ATOMIC_RELAXED));
	spy_board_show(spy_session->board->range_names, spy_range_names());
	spy_board_show(spy_session->board->ranges_unnamed, spy_range_unnamed());
}

void spy_ranges_forked(void)
{
	elsewhere = lost = 0;
	mine.uncounted = 0;
	for (uint32_t i = 0; i < mine.n; i++)
		mine.open[i].recorded = mine.open[i].opened = false;
	spy_lock_forget(&objects_lock);
	spy_names_forked();
}
