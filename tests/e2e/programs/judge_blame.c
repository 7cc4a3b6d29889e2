/*
 * tests/e2e/programs/judge_blame.c: who is to blame for each wait, in truth. For judge, which compares it with a report
 * or shows it.
 *
 * It works the blame out by itself, from the intervals alone: a wait for a lock is cut where the lock
 * changed hands; each part belongs to who held it then, and the time from a release to the next taking
 * to the last holder, or the next. The root of a part is what its holder did at that moment: waited for another lock
 * (then that one's holder, and so on), for the GPU, in the kernel module, for room in the queue, or
 * worked. Where several readers held a lock, or it was between two holders, blaming any is right.
 */
#include <stdlib.h>
#include <string.h>
#include "judge.h"

enum { CHAIN_MAX = 16 };

enum cause { CAUSE_GPU, CAUSE_IOCTL, CAUSE_QUEUE, CAUSE_OWN, CAUSE_LOCK, CAUSE_CNT };
static const char *const cause_name[CAUSE_CNT] = {"gpu", "ioctl", "queue", "own", "lock"};

/* ---- who held it ---- */
struct part {
	uint64_t from, to;
	const struct wait *holders[HOLDERS_MAX]; /* rows; the one that kept it longest first */
	int holder_cnt;
};

typedef void part_fn(const struct part *part, void *arg);

/* The first lock row of the address. */
static size_t first_of(uint64_t address)
{
	size_t low = 0, high = lock_cnt;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (locks[mid]->address < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool is_read(const struct wait *w)
{
	return !strcmp(w->how, "read");
}

/* Rows of others that kept w from having the lock, in the order in which they had it. */
static size_t rivals_of(const struct wait *w, const struct wait ***out)
{
	static const struct wait **found;
	static size_t cap;
	size_t cnt = 0;

	for (size_t i = first_of(w->address); i < lock_cnt && locks[i]->address == w->address;
	     i++) {
		const struct wait *r = locks[i];

		if (r->end >= w->end)
			break;
		if (r->tid == w->tid || r->released <= w->begin || (is_read(w) && is_read(r)))
			continue;
		if (cnt == cap) {
			cap = cap ? 2 * cap : 64;
			found = realloc(found, cap * sizeof(*found));
			if (!found)
				die("no memory");
		}
		found[cnt++] = r;
	}
	*out = found;
	return cnt;
}

static bool contended(const struct wait *w)
{
	const struct wait **rivals;

	return rivals_of(w, &rivals) > 0;
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Who has it at the time. Nobody: who had it last; or who is next, for a thread may have been given it
 * and not have come to say so. */
static void holders_at(struct part *part, const struct wait **rivals, size_t cnt)
{
	const struct wait *last = NULL, *next = NULL;

	part->holder_cnt = 0;
	for (size_t i = 0; i < cnt; i++) {
		const struct wait *r = rivals[i];

		if (r->end > part->from) {
			next = next ? next : r;
			continue;
		}
		if (r->release > part->from && part->holder_cnt < HOLDERS_MAX) {
			int at = part->holder_cnt++;

			part->holders[at] = r;
			if (r->release > part->holders[0]->release) {
				part->holders[at] = part->holders[0];
				part->holders[0] = r;
			}
		} else if (!last || r->release > last->release) {
			last = r;
		}
	}
	if (part->holder_cnt)
		return;
	if (last)
		part->holders[part->holder_cnt++] = last;
	if (next)
		part->holders[part->holder_cnt++] = next;
}

/* The parts of [from, to] of a wait. */
static void cut(const struct wait *w, uint64_t from, uint64_t to, part_fn *fn, void *arg)
{
	const struct wait **shared, **rivals;
	size_t cnt = rivals_of(w, &shared), cut_cnt = 0;
	uint64_t *cuts = malloc((2 * cnt + 2) * sizeof(*cuts));

	rivals = malloc((cnt + 1) * sizeof(*rivals));
	if (!cuts || !rivals)
		die("no memory");
	if (cnt)
		memcpy(rivals, shared, cnt * sizeof(*rivals));
	cuts[cut_cnt++] = from;
	cuts[cut_cnt++] = to;
	for (size_t i = 0; i < cnt; i++) {
		if (rivals[i]->end > from && rivals[i]->end < to)
			cuts[cut_cnt++] = rivals[i]->end;
		if (rivals[i]->release > from && rivals[i]->release < to)
			cuts[cut_cnt++] = rivals[i]->release;
	}
	qsort(cuts, cut_cnt, sizeof(*cuts), by_time);
	for (size_t i = 0; cnt && i + 1 < cut_cnt; i++) {
		struct part part = {.from = cuts[i], .to = cuts[i + 1]};

		if (part.from == part.to)
			continue;
		holders_at(&part, rivals, cnt);
		fn(&part, arg);
	}
	free(cuts);
	free(rivals);
}

/* ---- the root ---- */
typedef void root_fn(const struct wait *held, enum cause cause, uint64_t ns, void *arg);

struct chase {
	root_fn *fn;
	void *arg;
	int depth;
	int waiter;
	const struct wait *by; /* who waits for the part */
};

static void chase(const struct wait *held, uint64_t from, uint64_t to, struct chase *c);

static void chase_part(const struct part *part, void *arg)
{
	struct chase *c = arg;

	/* The waiter himself had it last: it is being handed over. */
	if (part->holders[0]->tid == c->waiter)
		c->fn(c->by, CAUSE_OWN, part->to - part->from, c->arg);
	else
		chase(part->holders[0], part->from, part->to, c);
}

static size_t first_of_thread(int tid)
{
	size_t low = 0, high = wait_cnt;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (waits[mid].tid < tid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* What the thread did between from and to, while it had the lock of this row. */
static void chase(const struct wait *held, uint64_t from, uint64_t to, struct chase *c)
{
	uint64_t stop = held->release < to ? held->release : to, at = from;

	if (++c->depth > CHAIN_MAX) {
		c->fn(held, CAUSE_LOCK, to - from, c->arg);
		c->depth--;
		return;
	}
	/* Not woken yet, but the lock was his already. */
	if (at < held->end) {
		at = held->end < to ? held->end : to;
		c->fn(held, CAUSE_OWN, at - from, c->arg);
	}
	for (size_t i = first_of_thread(held->tid); i < wait_cnt && waits[i].tid == held->tid;
	     i++) {
		const struct wait *w = &waits[i];
		uint64_t begin = w->begin > at ? w->begin : at, end = w->end < stop ? w->end : stop;

		if (w->begin >= stop)
			break;
		if (end <= begin || (w->kind == LOCK && !contended(w)))
			continue;
		if (begin > at)
			c->fn(held, CAUSE_OWN, begin - at, c->arg);
		if (w->kind == LOCK) {
			const struct wait *by = c->by;

			c->by = held;
			cut(w, begin, end, chase_part, c);
			c->by = by;
		} else {
			c->fn(held,
			      w->kind == IOCTL           ? CAUSE_IOCTL
			      : !strcmp(w->how, "queue") ? CAUSE_QUEUE
							 : CAUSE_GPU,
			      end - begin, c->arg);
		}
		at = end;
	}
	if (to > at)
		c->fn(held, CAUSE_OWN, to - at, c->arg);
	c->depth--;
}

/* ---- sums ---- */
static size_t sum_of(struct sums *sums, struct sum key)
{
	if (sums->by_waiter_only) {
		key.waiter_fn = "";
		key.waiter_dev = 0;
	}
	if (!sums->by_what)
		key.what = "";
	if (sums->any_device)
		key.holder_dev = 0;
	for (size_t i = 0; i < sums->cnt; i++) {
		const struct sum *s = &sums->all[i];

		if (s->waiter == key.waiter && s->holder == key.holder &&
		    s->holder_dev == key.holder_dev && s->waiter_dev == key.waiter_dev &&
		    !strcmp(s->holder_fn, key.holder_fn) && !strcmp(s->waiter_fn, key.waiter_fn) &&
		    !strcmp(s->what, key.what))
			return i;
	}
	sums->all = grow(sums->all, sums->cnt, sizeof(*sums->all));
	sums->all[sums->cnt] = key;
	return sums->cnt++;
}

struct sum *find_sum(struct sums *sums, struct sum key)
{
	size_t i = sum_of(sums, key);

	return &sums->all[i];
}

static struct sum key_of(const struct wait *w, const struct wait *holder, const char *what)
{
	return (struct sum){
		.waiter = w->tid,
		.waiter_fn = w->fn,
		.waiter_dev = w->dev,
		.holder = holder->tid,
		.holder_fn = holder->fn,
		.holder_dev = holder->dev,
		.what = what,
	};
}

struct tally {
	const struct wait *wait;
	struct sums *direct, *root;
	struct eithers *direct_either, *root_either;
	/* the cause with most of the part, where only one counts */
	enum cause best;
	uint64_t best_ns;
	const struct wait *best_root;
};

static void add_root(const struct wait *held, enum cause cause, uint64_t ns, void *arg)
{
	struct tally *t = arg;

	find_sum(t->root, key_of(t->wait, held, cause_name[cause]))->truth += ns;
}

static void note_best(const struct wait *held, enum cause cause, uint64_t ns, void *arg)
{
	struct tally *t = arg;

	if (ns <= t->best_ns)
		return;
	t->best_ns = ns;
	t->best = cause;
	t->best_root = held;
}

static struct either *new_either(struct eithers *eithers, uint64_t ns)
{
	eithers->all = grow(eithers->all, eithers->cnt, sizeof(*eithers->all));
	eithers->all[eithers->cnt] = (struct either){.ns = ns};
	return &eithers->all[eithers->cnt++];
}

static void add_part(const struct part *part, void *arg)
{
	struct tally *t = arg;
	uint64_t ns = part->to - part->from;

	if (part->holder_cnt == 1 || !t->direct_either) {
		struct chase c = {add_root, t, 0, t->wait->tid, NULL};
		struct sum *sum =
			find_sum(t->direct, key_of(t->wait, part->holders[0], t->wait->lock));

		sum->truth += ns;
		sum->waits += sum->last != t->wait;
		sum->last = t->wait;
		chase(part->holders[0], part->from, part->to, &c);
		return;
	}
	new_either(t->direct_either, ns);
	new_either(t->root_either, ns);
	for (int i = 0; i < part->holder_cnt; i++) {
		struct chase c = {note_best, t, 0, t->wait->tid, NULL};
		struct either *direct = &t->direct_either->all[t->direct_either->cnt - 1];
		struct either *root = &t->root_either->all[t->root_either->cnt - 1];

		t->best_ns = 0;
		chase(part->holders[i], part->from, part->to, &c);
		direct->sums[direct->cnt++] =
			sum_of(t->direct, key_of(t->wait, part->holders[i], t->wait->lock));
		root->sums[root->cnt++] =
			sum_of(t->root, key_of(t->wait, t->best_root, cause_name[t->best]));
	}
}

void tally(struct sums *direct, struct sums *root, struct eithers *direct_either,
	   struct eithers *root_either)
{
	for (size_t i = 0; i < lock_cnt; i++) {
		struct tally t = {locks[i],    direct,    root, direct_either,
				  root_either, CAUSE_OWN, 0,    NULL};

		if (!contended(locks[i]))
			continue;
		cut(locks[i], locks[i]->begin, locks[i]->end, add_part, &t);
	}
}

/* Did another thread wait for the lock when w began to give it back, or before that was done? Whoever
 * gives it back then wakes one, and what that takes the lock costs, too. */
static bool wakes(const struct wait *w)
{
	for (size_t i = first_of(w->address); i < lock_cnt && locks[i]->address == w->address; i++)
		if (locks[i]->tid != w->tid && contended(locks[i]) &&
		    locks[i]->begin < w->released && locks[i]->end > w->release)
			return true;
	return false;
}

void account_truth(void)
{
	for (size_t i = 0; i < wait_cnt; i++) {
		const struct wait *w = &waits[i];
		enum bucket bucket = w->kind == IOCTL              ? KERNEL
				     : w->kind == LOCK             ? LOCKS
				     : !strcmp(w->how, "intended") ? INTENDED
				     : !strcmp(w->how, "hidden")   ? HIDDEN
								   : QUEUE;

		if (w->kind != LOCK || contended(w))
			account(w->tid, w->fn)->truth[bucket] += w->end - w->begin;
		if (w->kind == LOCK && w->released > w->release && wakes(w))
			account(w->tid, w->fn)->truth[LOCKS] += w->released - w->release;
	}
	for (size_t i = 0; i < account_cnt; i++) {
		struct account *a = &accounts[i];
		uint64_t waited = 0;

		for (int b = 0; b < BUCKET_CNT; b++)
			waited += a->truth[b];
		a->truth[OWN] = a->total > waited ? a->total - waited : 0;
	}
}
