/*
 * tests/e2e/judge.c: holds what cudaspy says of waits against what the simulator wrote down
 * (tests/sim/README.md, "Truth"). Run by test_blame.sh, single-threaded.
 *
 *   judge [--name=NAME] TRUTH_DIR REPORT.json    one line of key=value: how much of it is right
 *   judge --truth-only TRUTH_DIR                 who waited for whom, in truth
 *   judge --as-report TRUTH_DIR                  the truth, as a report would say it
 *   judge --sum [LINES]                          adds such lines up; status 1 when a target is missed
 *
 * It works the blame out by itself, from the intervals alone: a wait for a lock is cut where the lock
 * changed hands; each part belongs to who held it then, and the time from a release to the next taking
 * to the last holder, or the next. The root of a part is what its holder did at that moment: waited for another lock
 * (then that one's holder, and so on), for the GPU, in the kernel module, for room in the queue, or
 * worked. Where several readers held a lock, or it was between two holders, blaming any is right.
 */
#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOLDERS_MAX = 16, CHAIN_MAX = 16, UNKNOWN_DEVICE = 255 };

#define US 1000
#define MS 1000000

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "judge: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(2);
}

/* Room for one more at the end of an array. */
static void *grow(void *array, size_t cnt, size_t bytes)
{
	if (cnt & (cnt - 1))
		return array;
	array = realloc(array, (cnt ? 2 * cnt : 1) * bytes);
	if (!array)
		die("no memory");
	return array;
}

/* Equal names are the same pointer. */
static const char *intern(const char *name)
{
	static char **names;
	static size_t cnt;

	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(names[i], name))
			return names[i];
	names = grow(names, cnt, sizeof(*names));
	names[cnt] = strdup(name);
	return names[cnt++];
}

/* ---- the truth ---- */
enum kind { LOCK, GPU, IOCTL };
enum cause { CAUSE_GPU, CAUSE_IOCTL, CAUSE_QUEUE, CAUSE_OWN, CAUSE_LOCK, CAUSE_UNKNOWN, CAUSE_CNT };
static const char *const cause_name[CAUSE_CNT] = {"gpu", "ioctl", "queue",
						  "own", "lock",  "unknown"};

struct wait {
	enum kind kind;
	const char *how; /* mutex, read, write, spin; intended, hidden, queue */
	int tid, dev;
	const char *fn; /* the application's */
	const char *lock;
	uint64_t address;
	uint64_t begin, end, release, released; /* a lock is held from end to release */
};

enum bucket { OWN, INTENDED, HIDDEN, LOCKS, KERNEL, QUEUE, UNEXPLAINED, BUCKET_CNT };
static const char *const bucket_name[BUCKET_CNT] = {"own",   "gpu_intended", "gpu_hidden", "lock",
						    "ioctl", "queue",        "unexplained"};

/* All calls of one function by one thread. */
struct account {
	int tid;
	const char *fn;
	uint64_t calls, total;
	uint64_t truth[BUCKET_CNT], ours[BUCKET_CNT];
	uint64_t not_running, reported_calls;
};

static struct wait *waits; /* by thread and begin */
static size_t wait_cnt;
static struct wait **locks; /* the lock rows by address and end */
static size_t lock_cnt;
static struct account *accounts;
static size_t account_cnt;

static struct account *account(int tid, const char *fn)
{
	for (size_t i = 0; i < account_cnt; i++)
		if (accounts[i].tid == tid && accounts[i].fn == fn)
			return &accounts[i];
	accounts = grow(accounts, account_cnt, sizeof(*accounts));
	accounts[account_cnt] = (struct account){.tid = tid, .fn = fn};
	return &accounts[account_cnt++];
}

static void read_wait(char **f)
{
	struct wait *w;

	waits = grow(waits, wait_cnt, sizeof(*waits));
	w = &waits[wait_cnt++];
	*w = (struct wait){
		.kind = !strcmp(f[0], "lock")  ? LOCK
			: !strcmp(f[0], "gpu") ? GPU
					       : IOCTL,
		.tid = atoi(f[1]),
		.fn = intern(f[3]),
		.dev = atoi(f[4]),
		.lock = intern(f[5]),
		.address = strtoull(f[6], NULL, 16),
		.how = intern(f[7]),
		.begin = strtoull(f[8], NULL, 10),
		.end = strtoull(f[9], NULL, 10),
		.release = strtoull(f[10], NULL, 10),
		.released = strtoull(f[11], NULL, 10),
	};
}

/* Calls the application made itself. */
static void read_call(char **f)
{
	struct account *a;

	if (strcmp(f[2], "0") != 0)
		return;
	a = account(atoi(f[0]), intern(f[3]));
	a->calls++;
	a->total += strtoull(f[6], NULL, 10) - strtoull(f[5], NULL, 10);
}

static void read_file(const char *dir, const char *name, int columns, void (*line_fn)(char **))
{
	char path[4096], line[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r");
	if (!file)
		die("cannot read %s", path);
	while (fgets(line, sizeof(line), file)) {
		char *f[20], *rest = line;
		int cnt = 0;

		if (line[0] == '#')
			continue;
		line[strcspn(line, "\n")] = '\0';
		while (cnt < 20 && (f[cnt] = strsep(&rest, "\t")))
			cnt++;
		if (cnt < columns)
			die("%s: a line of %d columns", path, cnt);
		line_fn(f);
	}
	fclose(file);
}

static int by_thread(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int by_lock(const void *a, const void *b)
{
	const struct wait *x = *(struct wait *const *)a, *y = *(struct wait *const *)b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static void read_truth(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	bool any = false;

	if (!d)
		die("cannot read %s", dir);
	while ((entry = readdir(d))) {
		if (!strncmp(entry->d_name, "waits.", 6)) {
			read_file(dir, entry->d_name, 12, read_wait);
			any = true;
		} else if (!strncmp(entry->d_name, "truth.", 6)) {
			read_file(dir, entry->d_name, 16, read_call);
		}
	}
	closedir(d);
	if (!any)
		die("%s: no truth", dir);
	qsort(waits, wait_cnt, sizeof(*waits), by_thread);
	for (size_t i = 0; i < wait_cnt; i++) {
		if (waits[i].kind != LOCK)
			continue;
		locks = grow(locks, lock_cnt, sizeof(struct wait *));
		locks[lock_cnt++] = &waits[i];
	}
	qsort(locks, lock_cnt, sizeof(struct wait *), by_lock);
}

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
struct sum {
	int waiter;
	const char *waiter_fn;
	int waiter_dev;
	int holder;
	const char *holder_fn;
	int holder_dev;
	const char *what; /* lock, or cause of a root */
	uint64_t waits, truth, ours;
	const struct wait *last; /* counted in waits */
};

struct sums {
	struct sum *all;
	size_t cnt;
	bool by_waiter_only; /* neither by the waiter's function nor its device */
	bool by_what;
	bool any_device; /* of the holder */
};

/* What any of several holders may be blamed for. */
struct either {
	size_t sums[HOLDERS_MAX];
	int cnt;
	uint64_t ns;
};

struct eithers {
	struct either *all;
	size_t cnt;
};

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

/* Good until the next look for one. */
static struct sum *find_sum(struct sums *sums, struct sum key)
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

/* Everything the truth knows, into sums and, where they are not NULL, into eithers. */
static void tally(struct sums *direct, struct sums *root, struct eithers *direct_either,
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

static void account_truth(void)
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

/* ---- showing the truth ---- */
static int largest_first(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	return x->truth > y->truth ? -1 : x->truth < y->truth;
}

static void show_sums(const char *title, struct sums *sums)
{
	qsort(sums->all, sums->cnt, sizeof(*sums->all), largest_first);
	printf("%s\n", title);
	for (size_t i = 0; i < sums->cnt; i++) {
		const struct sum *s = &sums->all[i];

		if (s->truth >= 10 * US)
			printf("  %10.3f ms  %d %s gpu%d  <-  %d %s gpu%d  %s\n",
			       (double)s->truth / MS, s->waiter, s->waiter_fn, s->waiter_dev,
			       s->holder, s->holder_fn, s->holder_dev, s->what);
	}
}

static void show_truth(void)
{
	struct sums direct = {.by_what = true}, root = {.by_what = true};

	tally(&direct, &root, NULL, NULL);
	account_truth();
	show_sums("waiter <- holder, lock", &direct);
	show_sums("waiter <- root, cause", &root);
	printf("%-8s %-28s %7s %10s", "thread", "function", "calls", "total ms");
	for (int b = 0; b < UNEXPLAINED; b++)
		printf(" %12s", bucket_name[b]);
	printf("\n");
	for (size_t i = 0; i < account_cnt; i++) {
		const struct account *a = &accounts[i];

		if (a->total < 100 * US)
			continue;
		printf("%-8d %-28s %7" PRIu64 " %10.3f", a->tid, a->fn, a->calls,
		       (double)a->total / MS);
		for (int b = 0; b < UNEXPLAINED; b++)
			printf(" %12.3f", (double)a->truth[b] / MS);
		printf("\n");
	}
}

static void add_blame(json_t *array, const struct sum *s, bool root)
{
	json_t *o = json_object();

	json_object_set_new(o, "waiter", json_integer(s->waiter));
	json_object_set_new(o, "waiter_function", json_string(s->waiter_fn));
	json_object_set_new(o, "waiter_device", json_integer(s->waiter_dev));
	json_object_set_new(o, root ? "root" : "holder", json_integer(s->holder));
	json_object_set_new(o, root ? "root_function" : "holder_function",
			    json_string(s->holder_fn));
	json_object_set_new(o, root ? "root_device" : "holder_device", json_integer(s->holder_dev));
	json_object_set_new(o, root ? "cause" : "lock", json_string(s->what));
	if (!root)
		json_object_set_new(o, "waits", json_integer((json_int_t)s->waits));
	json_object_set_new(o, "waited_ns", json_integer((json_int_t)s->truth));
	json_object_set_new(o, "how", json_string("measured"));
	json_array_append_new(array, o);
}

static void show_as_report(void)
{
	struct sums direct = {.by_what = true}, root = {.by_what = true};
	json_t *report = json_object(), *array = json_array();
	char key[64];

	tally(&direct, &root, NULL, NULL);
	account_truth();
	for (size_t i = 0; i < account_cnt; i++) {
		const struct account *a = &accounts[i];
		json_t *o = json_object();

		json_object_set_new(o, "thread", json_integer(a->tid));
		json_object_set_new(o, "function", json_string(a->fn));
		json_object_set_new(o, "calls", json_integer((json_int_t)a->calls));
		json_object_set_new(o, "total_ns", json_integer((json_int_t)a->total));
		json_object_set_new(o, "not_running_ns", json_integer(0));
		for (int b = 0; b < BUCKET_CNT; b++) {
			snprintf(key, sizeof(key), "%s_ns", bucket_name[b]);
			json_object_set_new(o, key, json_integer((json_int_t)a->truth[b]));
		}
		json_array_append_new(array, o);
	}
	json_object_set_new(report, "accounts", array);
	array = json_array();
	for (size_t i = 0; i < direct.cnt; i++)
		add_blame(array, &direct.all[i], false);
	json_object_set_new(report, "blame", array);
	array = json_array();
	for (size_t i = 0; i < root.cnt; i++)
		add_blame(array, &root.all[i], true);
	json_object_set_new(report, "root_blame", array);
	json_dumpf(report, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	printf("\n");
	json_decref(report);
}

/* ---- reading the report ---- */
static json_int_t number(const json_t *o, const char *key, json_int_t missing)
{
	const json_t *value = json_object_get(o, key);

	return json_is_integer(value) ? json_integer_value(value)
	       : json_is_real(value)  ? (json_int_t)json_real_value(value)
				      : missing;
}

static uint64_t ns_of(const json_t *o, const char *key)
{
	json_int_t value = number(o, key, 0);

	return value > 0 ? (uint64_t)value : 0;
}

static const char *text(const json_t *o, const char *key)
{
	const char *value = json_string_value(json_object_get(o, key));

	return intern(value ? value : "");
}

/* Unknown: -1, however the report says so. */
static int device(const json_t *o, const char *key)
{
	json_int_t value = number(o, key, -1);

	return value < 0 || value >= UNKNOWN_DEVICE ? -1 : (int)value;
}

static struct sum read_blame(const json_t *o, bool root)
{
	return (struct sum){
		.waiter = (int)number(o, "waiter", 0),
		.waiter_fn = text(o, "waiter_function"),
		.waiter_dev = device(o, "waiter_device"),
		.holder = (int)number(o, root ? "root" : "holder", 0),
		.holder_fn = text(o, root ? "root_function" : "holder_function"),
		.holder_dev = device(o, root ? "root_device" : "holder_device"),
		.what = text(o, root ? "cause" : "lock"),
	};
}

static void read_blames(const json_t *report, const char *name, bool root, struct sums *sums)
{
	const json_t *array = json_object_get(report, name), *o;
	size_t i;

	if (!json_is_array(array))
		die("the report has no %s", name);
	json_array_foreach(array, i, o) find_sum(sums, read_blame(o, root))->ours +=
		ns_of(o, "waited_ns");
}

static void read_accounts(const json_t *report)
{
	const json_t *array = json_object_get(report, "accounts"), *o;
	char key[64];
	size_t i;

	if (!json_is_array(array))
		die("the report has no accounts");
	json_array_foreach(array, i, o)
	{
		struct account *a = account((int)number(o, "thread", 0), text(o, "function"));

		a->reported_calls += (uint64_t)number(o, "calls", 0);
		for (int b = 0; b < BUCKET_CNT; b++) {
			snprintf(key, sizeof(key), "%s_ns", bucket_name[b]);
			a->ours[b] += ns_of(o, key);
		}
		a->not_running += ns_of(o, "not_running_ns");
	}
}

/* ---- scores ---- */
static uint64_t above(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* What any of several may be blamed for is first the first one's, and then, as far as the report has
 * too little of him and too much of another, the other's. */
static void settle(struct sums *sums, const struct eithers *eithers)
{
	for (size_t i = 0; i < eithers->cnt; i++)
		sums->all[eithers->all[i].sums[0]].truth += eithers->all[i].ns;
	for (size_t i = 0; i < eithers->cnt; i++) {
		const struct either *e = &eithers->all[i];
		struct sum *first = &sums->all[e->sums[0]];
		uint64_t left = e->ns;

		for (int j = 1; j < e->cnt; j++) {
			struct sum *other = &sums->all[e->sums[j]];
			uint64_t moved = above(first->truth, first->ours);

			if (moved > above(other->ours, other->truth))
				moved = above(other->ours, other->truth);
			if (moved > left)
				moved = left;
			first->truth -= moved;
			other->truth += moved;
			left -= moved;
		}
	}
}

/* The simulator does not know when the root was kept from running; a report that does takes that time
 * from whatever the root was about. */
static void forgive_roots(struct sums *sums)
{
	for (size_t i = 0; i < sums->cnt; i++) {
		struct sum *idle = &sums->all[i];

		if (strcmp(idle->what, "not_running"))
			continue;
		for (size_t j = 0; j < sums->cnt && idle->ours; j++) {
			struct sum *s = &sums->all[j];
			uint64_t given = above(s->truth, s->ours);

			if (s->waiter != idle->waiter || s->holder != idle->holder ||
			    s->holder_fn != idle->holder_fn)
				continue;
			given = given < idle->ours ? given : idle->ours;
			s->ours += given;
			idle->ours -= given;
		}
	}
}

static void totals(const struct sums *sums, uint64_t *truth, uint64_t *ours, uint64_t *right)
{
	*truth = *ours = *right = 0;
	for (size_t i = 0; i < sums->cnt; i++) {
		const struct sum *s = &sums->all[i];

		*truth += s->truth;
		*ours += s->ours;
		*right += s->truth < s->ours ? s->truth : s->ours;
	}
}

/* Beyond 2 % of the waiter's waits and 200 us. */
static uint64_t wrong_device(const struct sums *sums)
{
	struct sums by_device = {.by_waiter_only = true};
	uint64_t wrong = 0;

	for (size_t i = 0; i < sums->cnt; i++) {
		struct sum key = sums->all[i], *s;

		key.truth = key.ours = 0;
		key.holder = 0;
		key.holder_fn = "";
		s = find_sum(&by_device, key);
		s->truth += sums->all[i].truth;
		s->ours += sums->all[i].ours;
	}
	for (size_t i = 0; i < by_device.cnt; i++) {
		const struct sum *s = &by_device.all[i];
		uint64_t waited = 0;

		if (s->holder_dev < 0)
			continue;
		for (size_t j = 0; j < by_device.cnt; j++)
			if (by_device.all[j].waiter == s->waiter)
				waited += by_device.all[j].truth;
		wrong += above(s->ours, s->truth + waited / 50 + 200 * US);
	}
	free(by_device.all);
	return wrong;
}

/* Stalls of one device by another that the report claims and the truth does not know. */
static unsigned int false_stalls(const json_t *report)
{
	struct sums direct = {.by_what = false}, root = {.by_what = false};
	unsigned int cnt = 0;

	tally(&direct, &root, NULL, NULL);
	read_blames(report, "blame", false, &direct);
	for (size_t i = 0; i < direct.cnt; i++) {
		const struct sum *s = &direct.all[i];

		if (s->waiter_dev >= 0 && s->holder_dev >= 0 && s->waiter_dev != s->holder_dev &&
		    s->ours >= 200 * US && s->truth < 100 * US)
			cnt++;
	}
	free(direct.all);
	free(root.all);
	return cnt;
}

/* A thread that could run and did not: the simulator cannot know, so it may be part of anything. */
static void forgive_not_running(struct account *a)
{
	while (a->not_running) {
		int best = -1;
		uint64_t most = 0, given;

		for (int b = 0; b < BUCKET_CNT; b++)
			if (above(a->truth[b], a->ours[b]) > most) {
				most = a->truth[b] - a->ours[b];
				best = b;
			}
		if (best < 0)
			break;
		given = most < a->not_running ? most : a->not_running;
		a->ours[best] += given;
		a->not_running -= given;
	}
}

struct books {
	uint64_t calls_ns, off[BUCKET_CNT];
	double worst; /* share of the calls' time */
	const char *worst_fn, *worst_bucket;
	unsigned int pairs, off_pairs;
};

/* A report need not mention calls without waits that took no time worth mentioning. */
/* Of getters only the calls that waited are recorded, by design: the own work of the others is not
 * known. */
static void forgive_getters(struct account *a)
{
	uint64_t missing = above(a->truth[OWN], a->ours[OWN]);

	if (a->reported_calls >= a->calls)
		return;
	a->truth[OWN] -= missing;
	a->total -= missing;
}

static void audit(struct books *books, bool verbose)
{
	*books = (struct books){.worst_fn = "-", .worst_bucket = "-"};
	for (size_t i = 0; i < account_cnt; i++) {
		struct account *a = &accounts[i];
		bool off = false;

		if (!a->reported_calls && a->total < MS)
			continue;
		forgive_not_running(a);
		forgive_getters(a);
		books->calls_ns += a->total;
		books->pairs++;
		for (int b = 0; b < BUCKET_CNT; b++) {
			uint64_t error = a->ours[b] > a->truth[b] ? a->ours[b] - a->truth[b]
								  : a->truth[b] - a->ours[b];

			/* The recorder's own time is in no truth. */
			error = above(error, a->calls * US);
			books->off[b] += error;
			if (a->total < 2 * MS)
				continue;
			if ((double)error / (double)a->total > books->worst) {
				books->worst = (double)error / (double)a->total;
				books->worst_fn = a->fn;
				books->worst_bucket = bucket_name[b];
			}
			if (error <= a->total / 50 + 300 * US)
				continue;
			off = true;
			if (verbose)
				fprintf(stderr,
					"judge: %d %s (%" PRIu64
					" calls, %.3f ms) %s: truth %.3f, ours %.3f ms\n",
					a->tid, a->fn, a->calls, (double)a->total / MS,
					bucket_name[b], (double)a->truth[b] / MS,
					(double)a->ours[b] / MS);
		}
		books->off_pairs += off;
	}
}

static void show_misses(const char *what, const struct sums *sums)
{
	for (size_t i = 0; i < sums->cnt; i++) {
		const struct sum *s = &sums->all[i];

		if (above(s->truth, s->ours) > 300 * US || above(s->ours, s->truth) > 300 * US)
			fprintf(stderr,
				"judge: %s: %d <- %d %s gpu%d %s: truth %.3f, ours %.3f ms\n", what,
				s->waiter, s->holder, s->holder_fn, s->holder_dev, s->what,
				(double)s->truth / MS, (double)s->ours / MS);
	}
}

static void judge(const char *name, const char *path, bool verbose)
{
	struct sums direct = {.by_waiter_only = true};
	struct sums root = {.by_waiter_only = true, .by_what = true, .any_device = true};
	struct eithers direct_either = {0}, root_either = {0};
	uint64_t truth, ours, right, root_truth, root_ours, root_right;
	bool clean = !strncmp(name, "clean", 5);
	struct books books;
	json_error_t error;
	json_t *report = json_load_file(path, 0, &error);

	if (!report)
		die("%s: %s", path, error.text);
	tally(&direct, &root, &direct_either, &root_either);
	account_truth();
	read_blames(report, "blame", false, &direct);
	read_blames(report, "root_blame", true, &root);
	read_accounts(report);
	settle(&direct, &direct_either);
	settle(&root, &root_either);
	forgive_roots(&root);
	totals(&direct, &truth, &ours, &right);
	totals(&root, &root_truth, &root_ours, &root_right);
	audit(&books, verbose);
	if (verbose) {
		show_misses("blame", &direct);
		show_misses("root", &root);
	}
	printf("name=%s lock_ns=%" PRIu64 " ours_ns=%" PRIu64 " right_ns=%" PRIu64
	       " wrong_device_ns=%" PRIu64,
	       name, truth, ours, right, wrong_device(&direct));
	printf(" root_ns=%" PRIu64 " root_ours_ns=%" PRIu64 " root_right_ns=%" PRIu64, root_truth,
	       root_ours, root_right);
	printf(" clean=%d false_stalls=%u calls_ns=%" PRIu64, clean,
	       clean ? false_stalls(report) : 0, books.calls_ns);
	for (int b = 0; b < BUCKET_CNT; b++)
		printf(" off_%s_ns=%" PRIu64, bucket_name[b], books.off[b]);
	printf(" pairs=%u off_pairs=%u worst=%.4f worst_at=%s/%s\n", books.pairs, books.off_pairs,
	       books.worst, books.worst_fn, books.worst_bucket);
	json_decref(report);
}

/* ---- many runs ---- */
static double value_of(const char *line, const char *key)
{
	char with[64];
	const char *at;

	snprintf(with, sizeof(with), " %s=", key);
	at = strstr(line, with);
	return at ? strtod(at + strlen(with), NULL) : 0;
}

static bool check(const char *what, double value, const char *unit, bool met, const char *target)
{
	printf("  %-44s %9.3f %-3s %s (target: %s)\n", what, value, unit, met ? "met" : "MISSED",
	       target);
	return met;
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 100;
}

static int add_up(FILE *file)
{
	static const char *const keys[] = {
		"lock_ns",      "right_ns", "wrong_device_ns", "root_ns", "root_right_ns",
		"false_stalls", "calls_ns", "clean",           "pairs",   "off_pairs"};
	enum { LOCK_NS, RIGHT, WRONG, ROOT, ROOT_RIGHT, STALLS, CALLS, CLEAN, PAIRS, OFF, KEY_CNT };
	double sum[KEY_CNT] = {0}, off[BUCKET_CNT] = {0}, worst = 0;
	char line[4096], worst_line[256] = "-", key[64], title[64];
	unsigned int runs = 0;
	bool met = true;

	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "name=", 5) != 0)
			continue;
		runs++;
		for (int i = 0; i < KEY_CNT; i++)
			sum[i] += value_of(line, keys[i]);
		for (int b = 0; b < BUCKET_CNT; b++) {
			snprintf(key, sizeof(key), "off_%s_ns", bucket_name[b]);
			off[b] += value_of(line, key);
		}
		if (value_of(line, "worst") > worst) {
			worst = value_of(line, "worst");
			snprintf(worst_line, sizeof(worst_line), "%.*s %.60s",
				 (int)strcspn(line, " "), line,
				 strstr(line, "worst_at=") ? strstr(line, "worst_at=") : "");
			worst_line[strcspn(worst_line, "\n")] = '\0';
		}
	}
	printf("%u runs, %.0f ms waited for locks in truth, %.0f ms in calls; %.0f of them clean\n",
	       runs, sum[LOCK_NS] / MS, sum[CALLS] / MS, sum[CLEAN]);
	if (!runs)
		return 1;
	met &= check("lock time with the right holder", percent(sum[RIGHT], sum[LOCK_NS]), "%",
		     percent(sum[RIGHT], sum[LOCK_NS]) >= 98, "98 % or more");
	met &= check("blamed on a wrong device", sum[WRONG] / MS, "ms", sum[WRONG] == 0, "none");
	met &= check("lock time with the right root", percent(sum[ROOT_RIGHT], sum[ROOT]), "%",
		     percent(sum[ROOT_RIGHT], sum[ROOT]) >= 95, "95 % or more");
	for (int b = 0; b < BUCKET_CNT; b++) {
		snprintf(title, sizeof(title), "time of calls misplaced: %s", bucket_name[b]);
		met &= check(title, percent(off[b], sum[CALLS]), "%", off[b] <= 0.02 * sum[CALLS],
			     "2 % or less");
	}
	met &= check("false stalls across devices in clean runs", sum[STALLS], "", sum[STALLS] == 0,
		     "none");
	printf("  %-44s %9.0f of %.0f\n", "accounts of a thread's function beyond 2 %", sum[OFF],
	       sum[PAIRS]);
	printf("  %-44s %9.3f %%  %s\n", "the worst of them", 100 * worst, worst_line);
	return met ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *name = "-";
	bool truth_only = false, as_report = false, sum = false, verbose = false;

	for (; argc > 1 && argv[1][0] == '-'; argc--, argv++) {
		if (!strncmp(argv[1], "--name=", 7))
			name = argv[1] + 7;
		else if (!strcmp(argv[1], "--truth-only"))
			truth_only = true;
		else if (!strcmp(argv[1], "--as-report"))
			as_report = true;
		else if (!strcmp(argv[1], "--sum"))
			sum = true;
		else if (!strcmp(argv[1], "-v"))
			verbose = true;
		else
			die("no such option: %s", argv[1]);
	}
	if (sum) {
		FILE *file = argc > 1 ? fopen(argv[1], "r") : stdin;

		if (!file)
			die("cannot read %s", argv[1]);
		return add_up(file);
	}
	if (argc != (truth_only || as_report ? 2 : 3))
		die("a directory with truth%s, please",
		    truth_only || as_report ? "" : " and a report");
	read_truth(argv[1]);
	if (truth_only)
		show_truth();
	else if (as_report)
		show_as_report();
	else
		judge(name, argv[2], verbose);
	return 0;
}
