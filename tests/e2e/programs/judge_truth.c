/*
 * tests/e2e/programs/judge_truth.c: reads what the simulator wrote down (tests/sim/README.md, "Truth"): who waited when,
 * for what, and how long the application's calls took. For judge, which starts with it.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "judge.h"

const char *const bucket_name[BUCKET_CNT] = {"own",   "gpu_intended", "gpu_hidden", "lock",
					     "ioctl", "queue",        "unexplained"};

uint64_t truth_late_ns;
struct wait *waits;
size_t wait_cnt;
struct wait **locks;
size_t lock_cnt;
struct account *accounts;
size_t account_cnt;

struct account *account(int tid, const char *fn)
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

static void read_late(char **f)
{
	truth_late_ns += strtoull(f[0], NULL, 10);
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

void read_truth(const char *dir)
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
		} else if (!strncmp(entry->d_name, "late.", 5)) {
			read_file(dir, entry->d_name, 1, read_late);
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
