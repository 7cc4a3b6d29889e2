/*
 * analyzer/account/ranges.c: what calls did in the program's own ranges. Called by the main reading
 * for each record of a range. Records may be damaged: an end without a begin, or a hundred thousand
 * begins.
 */
#include <stdlib.h>
#include <string.h>
#include "ranges.h"

void ranges_init(struct ranges *r, struct model *model)
{
	*r = (struct ranges){.model = model};
}

void ranges_release(struct ranges *r)
{
	struct started_range *started, *next;

	for (size_t i = 0; i < r->n_threads; i++) {
		if (r->threads[i])
			free(r->threads[i]->open);
		free(r->threads[i]);
	}
	HASH_EMPTY (r->started, started, next)
		free(started);
	free(r->threads);
	free(r->sums);
	*r = (struct ranges){0};
}

static struct range_sum *sum_of(struct ranges *r, const struct range_name *name)
{
	while (r->n_sums <= name->index) {
		r->sums = grow(r->sums, r->n_sums, sizeof(*r->sums));
		r->sums[r->n_sums++] = (struct range_sum){0};
	}
	return &r->sums[name->index];
}

static struct range_thread *thread_of(struct ranges *r, const struct thread *thread)
{
	while (r->n_threads <= thread->index) {
		r->threads = grow(r->threads, r->n_threads, sizeof(struct range_thread *));
		r->threads[r->n_threads++] = NULL;
	}
	if (!r->threads[thread->index]) {
		r->threads[thread->index] = xcalloc(1, sizeof(struct range_thread));
		r->threads[thread->index]->thread = thread;
	}
	return r->threads[thread->index];
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* A damaged trace may go back. */
static uint64_t more(uint64_t now, uint64_t then)
{
	return now - min_u64(then, now);
}

static void add_since(struct range_seen *sum, const struct range_seen *now,
		      const struct range_seen *then)
{
	sum->ns += more(now->ns, then->ns);
	sum->calls += more(now->calls, then->calls);
	sum->calls_ns += more(now->calls_ns, then->calls_ns);
	sum->lost_ns += more(now->lost_ns, then->lost_ns);
	sum->gpu_ns += more(now->gpu_ns, then->gpu_ns);
	sum->lock_ns += more(now->lock_ns, then->lock_ns);
	sum->outside_ns += more(now->outside_ns, then->outside_ns);
}

/* The innermost range is about to change: what was since the last time is its own. */
static void settle(struct ranges *r, struct range_thread *t, const struct range_seen *seen)
{
	const struct open_range *range = ranges_last(r, t, false);
	struct open_range *librarys = ranges_last(r, t, true);

	if (range)
		add_since(&sum_of(r, range->name)->own, seen, &t->last);
	if (librarys)
		add_since(&librarys->own, seen, &t->last);
	t->last = *seen;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static struct range_seen with_outside(const struct range_thread *t, const struct range_seen *seen)
{
	struct range_seen now = *seen;

	now.outside_ns = t->outside_ns;
	return now;
}

static bool is_open(const struct range_thread *t, const struct range_name *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->open[i].name == name)
			return true;
	return false;
}

static bool is_wanted(const struct ranges *r, const struct range_name *name)
{
	return r->only && range_matches(name, r->only);
}

/* False: too many. */
static bool begin(struct ranges *r, struct range_thread *t, const struct open_range *range)
{
	if (t->n == RANGES_OPEN_MOST) {
		r->lost++;
		return false;
	}
	settle(r, t, &range->at);
	t->open = grow(t->open, t->n, sizeof(*t->open));
	t->open[t->n] = *range;
	t->open[t->n].again = is_open(t, range->name);
	t->n++;
	t->wanted += is_wanted(r, range->name);
	sum_of(r, range->name)->count++;
	return true;
}

static void show(const struct ranges *r, const struct shown_range *range)
{
	if (r->listener && r->listener->on_range)
		r->listener->on_range(r->listener->data, range);
}

static void show_end(const struct ranges *r, const struct range_thread *t, size_t i,
		     uint64_t end_ns, bool unended)
{
	const struct open_range *range = &t->open[i];

	show(r, &(struct shown_range){.thread = t->thread,
				      .name = range->name,
				      .begin_ns = min_u64(range->since_ns, end_ns),
				      .end_ns = end_ns,
				      .depth = (uint32_t)i,
				      .pushed = !range->id,
				      .unended = unended});
}

static void end(struct ranges *r, struct range_thread *t, size_t i, const struct range_seen *seen)
{
	struct range_sum *sum = sum_of(r, t->open[i].name);
	struct open_range range;
	size_t j;

	settle(r, t, seen);
	range = t->open[i];
	memmove(&t->open[i], &t->open[i + 1], (t->n - i - 1) * sizeof(*t->open));
	t->n--;
	t->wanted -= is_wanted(r, range.name);
	sum->longest_ns = max_u64(sum->longest_ns, more(seen->ns, range.since_ns));
	add_since(&sum->own, &range.own, &(struct range_seen){0});
	if (!range.again) {
		add_since(&sum->all, seen, &range.at);
		/* One of its name that began inside goes on without it. */
		for (j = i; j < t->n && t->open[j].name != range.name; j++)
			;
		if (j < t->n) {
			t->open[j].again = false;
			t->open[j].at = *seen;
		}
	}
}

/* ---- records ---------------------------------------------------------------------------------- */

static struct started_range *find_started(const struct ranges *r, uint32_t process, uint64_t id)
{
	struct started_key key = {.id = id, .process = process};
	struct started_range *started;

	HASH_FIND(hh, r->started, &key, sizeof(key), started);
	return started;
}

struct thread *ranges_owner(const struct ranges *r, const struct record *record, size_t *stream)
{
	const struct range_record range = decode_range(record);
	const struct started_range *started;

	*stream = record->stream->index;
	if (!range.has_id || range.what != SPY_RANGE_END)
		return record->thread;
	started = find_started(r, record->process, range.id);
	if (!started)
		return NULL;
	*stream = started->stream;
	return started->thread;
}

static void see_start(struct ranges *r, struct range_thread *t, const struct record *record,
		      const struct open_range *range)
{
	struct started_range *started;

	if (find_started(r, record->process, range->id) ||
	    HASH_COUNT(r->started) >= RANGES_STARTED_MOST) {
		r->lost++;
		return;
	}
	if (!begin(r, t, range))
		return;
	HASH_NEW(r->started, started, key,
		 (struct started_key){.id = range->id, .process = record->process});
	started->thread = record->thread;
	started->stream = record->stream->index;
	r->most_started = max_u64(r->most_started, HASH_COUNT(r->started));
}

static void see_end(struct ranges *r, struct range_thread *t, uint32_t process, uint64_t id,
		    const struct range_seen *seen)
{
	struct started_range *started = find_started(r, process, id);
	size_t i;

	for (i = t->n; i; i--)
		if (t->open[i - 1].id && t->open[i - 1].id == id)
			break;
	if (i) {
		show_end(r, t, i - 1, seen->ns, false);
		end(r, t, i - 1, seen);
	}
	HASH_DEL(r->started, started);
	free(started);
}

/* Of a domain the innermost range ends first: where one inside of it is open still, its end was
 * lost. */
static void see_pop(struct ranges *r, struct range_thread *t, uint32_t number,
		    const struct range_seen *seen)
{
	const struct range_name *name;
	size_t i, j;

	for (i = t->n; i; i--)
		if (!t->open[i - 1].id && t->open[i - 1].number == number)
			break;
	if (!i) {
		r->lost++;
		return;
	}
	name = t->open[i - 1].name;
	for (j = t->n; j > i; j--) {
		if (t->open[j - 1].id || strcmp(t->open[j - 1].name->domain, name->domain) != 0)
			continue;
		r->lost++;
		show_end(r, t, j - 1, seen->ns, false);
		end(r, t, j - 1, seen);
	}
	show_end(r, t, i - 1, seen->ns, false);
	end(r, t, i - 1, seen);
}

/* It began before the thread's stream, or before the packets that are left; or it is known. */
static void see_open(struct ranges *r, struct range_thread *t, const struct open_range *range)
{
	for (size_t i = 0; i < t->n; i++)
		if (!t->open[i].id && t->open[i].number == range->number &&
		    t->open[i].since_ns == range->since_ns)
			return;
	if (!begin(r, t, range))
		return;
	/* Its time begins then; its own does if it is in no other one. */
	t->open[t->n - 1].at.ns = range->since_ns;
	if (t->n == 1)
		t->last.ns = range->since_ns;
}

void ranges_see(struct ranges *r, const struct record *record, struct thread *owner,
		const struct range_seen *seen)
{
	const struct range_record named = decode_range(record);
	struct range_thread *t;
	struct range_seen now;
	struct open_range range = {.since_ns = record->ns, .number = named.name, .id = named.id};

	if (!owner) {
		r->lost++;
		return;
	}
	t = thread_of(r, owner);
	now = with_outside(t, seen);
	range.at = now;
	range.named = model_range_number(owner->process, range.number);
	range.name = range.named ? range.named->name : r->model->range_names.unknown;
	switch (named.what) {
	case SPY_RANGE_PUSH:
		begin(r, t, &range);
		break;
	case SPY_RANGE_POP:
		see_pop(r, t, range.number, &now);
		break;
	case SPY_RANGE_START:
		if (range.id)
			see_start(r, t, record, &range);
		break;
	case SPY_RANGE_END:
		if (named.has_id)
			see_end(r, t, record->process, named.id, &now);
		break;
	case SPY_RANGE_MARK:
		sum_of(r, range.name)->marks++;
		show(r, &(struct shown_range){.thread = t->thread,
					      .name = range.name,
					      .begin_ns = record->ns,
					      .end_ns = record->ns,
					      .depth = (uint32_t)t->n,
					      .pushed = true,
					      .mark = true});
		break;
	case SPY_RANGE_OPEN:
		range.since_ns = named.since_ns;
		see_open(r, t, &range);
		break;
	default:
		break;
	}
}

void ranges_follow(struct ranges *r, const struct record *record)
{
	struct range_seen seen = {.ns = record->ns};
	size_t stream;

	ranges_see(r, record, ranges_owner(r, record, &stream), &seen);
}

void ranges_see_outside(struct ranges *r, const struct record *record)
{
	struct range_thread *t;

	if (!ranges_thread(r, record->thread))
		return;
	t = thread_of(r, record->thread);
	t->outside_ns += decode_outside(record).ns;
}

/* NCCL 2.28 does so with ncclCommInitRankConfig and ncclCommFinalize: all that its thread does from then on would seem to
 * be part of that. */
static void forget_left_open(struct ranges *r, struct range_thread *t)
{
	struct range_sum *sum = sum_of(r, t->open[--t->n].name);

	sum->count--;
	sum->left_open++;
}

void ranges_finish(struct ranges *r, const struct thread *thread, const struct range_seen *seen)
{
	struct range_thread *t;
	struct range_seen now;

	if (!ranges_thread(r, thread))
		return;
	t = thread_of(r, thread);
	now = with_outside(t, seen);
	while (t->n) {
		if (range_is_librarys(r, t->open[t->n - 1].name)) {
			settle(r, t, &now);
			forget_left_open(r, t);
			continue;
		}
		sum_of(r, t->open[t->n - 1].name)->unended++;
		show_end(r, t, t->n - 1, now.ns, true);
		end(r, t, t->n - 1, &now);
	}
}

/* ---- shares ----------------------------------------------------------------------------------- */

void range_shares_add(struct range_shares *shares, struct range_name *name, uint64_t count,
		      uint64_t ns)
{
	size_t i;

	for (i = 0; i < shares->n && shares->all[i].name != name; i++)
		;
	if (i == RANGE_SHARES) {
		shares->other_count += count;
		shares->other_ns += ns;
		return;
	}
	if (i == shares->n)
		shares->all[shares->n++] = (struct range_share){.name = name};
	shares->all[i].count += count;
	shares->all[i].ns += ns;
}

static struct range_name *shown_as(struct range_name *name)
{
	return name ? range_shown(name) : NULL;
}

void range_shares_join(struct range_shares *shares, const struct range_shares *more)
{
	for (size_t i = 0; i < more->n; i++)
		range_shares_add(shares, shown_as(more->all[i].name), more->all[i].count,
				 more->all[i].ns);
	shares->other_count += more->other_count;
	shares->other_ns += more->other_ns;
}
