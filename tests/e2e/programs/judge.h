/*
 * tests/e2e/programs/judge.h: what the parts of tests/e2e/judge share: the truth, and sums of who waited for whom.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define US 1000
#define MS 1000000

/* ---- what all of them use (judge.c) ---- */
void die(const char *format, ...);

/* Room for one more at the end of an array. */
void *grow(void *array, size_t cnt, size_t bytes);

/* Equal names are the same pointer. */
const char *intern(const char *name);

/* ---- the truth (judge_truth.c) ---- */
enum kind { LOCK, GPU, IOCTL };

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
extern const char *const bucket_name[BUCKET_CNT];

/* All calls of one function by one thread. */
struct account {
	int tid;
	const char *fn;
	uint64_t calls, total;
	uint64_t truth[BUCKET_CNT], ours[BUCKET_CNT];
	uint64_t not_running, reported_calls;
};

extern uint64_t truth_late_ns; /* by which work took longer than it was to: the machine's doing */
extern struct wait *waits; /* by thread and begin */
extern size_t wait_cnt;
extern struct wait **locks; /* the lock rows by address and end */
extern size_t lock_cnt;
extern struct account *accounts;
extern size_t account_cnt;

/* That of the thread's calls of the (interned) function; made if there is none. */
struct account *account(int tid, const char *fn);

/* Reads what the simulator left in the directory: waits, and the accounts' calls and total. */
void read_truth(const char *dir);

/* ---- who is to blame (judge_blame.c) ---- */
enum { HOLDERS_MAX = 16 };

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

/* Good until the next look for one. */
struct sum *find_sum(struct sums *sums, struct sum key);

/* Everything the truth knows, into sums and, where they are not NULL, into eithers. */
void tally(struct sums *direct, struct sums *root, struct eithers *direct_either,
	   struct eithers *root_either);

/* Fills the truth's buckets of all accounts. */
void account_truth(void);

/* ---- the modes (judge_show.c, judge_score.c) ---- */
void show_truth(void);
void show_as_report(void);

/* Prints the line of one report; verbose: what is wrong in it, too, to stderr. */
void judge(const char *name, const char *path, bool verbose);

#endif
