/*
 * mpi/share.c: which traces and digests each rank of cudaspy-mpi takes. Called once, by all ranks.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "share.h"
#include "base/hash.h"
#include "base/magic.h"
#include "base/util.h"

#define DEEP 8 /* folders in folders */

/* ---- what there is --------------------------------------------------------------------------- */

enum { TRACE = 't', DIGEST = 'd' };

struct list {
	char *text; /* of each TRACE or DIGEST, its path, and 0 */
	size_t n, size;
	unsigned int unknown;
};

static void list_add(struct list *list, char kind, const char *path)
{
	size_t n = strlen(path) + 2;

	while (list->n + n > list->size) {
		list->size = list->size ? 2 * list->size : 4096;
		list->text = xrealloc(list->text, list->size, 1);
	}
	list->text[list->n] = kind;
	memcpy(list->text + list->n + 1, path, n - 1);
	list->n += n;
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t n = strlen(text), m = strlen(suffix);

	return n > m && !strcmp(text + n - m, suffix);
}

static bool has_metadata(const char *dir)
{
	char *path = xasprintf("%s/metadata", dir);
	struct stat status;
	bool has = !stat(path, &status);

	free(path);
	return has;
}

static bool look(struct list *list, const char *path, bool named, unsigned int deep);

static int no_dots(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static bool look_into(struct list *list, const char *dir, unsigned int deep)
{
	struct dirent **entries;
	int n = deep < DEEP ? scandir(dir, &entries, no_dots, alphasort) : 0, i;
	bool found = false;

	if (n < 0)
		warn("%s: %s", dir, strerror(errno));
	for (i = 0; i < n; i++) {
		char *path = xasprintf("%s/%s", dir, entries[i]->d_name);

		found |= look(list, path, false, deep + 1);
		free(path);
		free(entries[i]);
	}
	if (n > 0)
		free(entries);
	return found;
}

/* What is in folders is known by its name: traces, as folders or packed, and digests. Any file that is named is taken. */
static bool look(struct list *list, const char *path, bool named, unsigned int deep)
{
	struct stat status;
	bool there = !stat(path, &status);

	if (ends_with(path, ".digest") || (named && there && file_is_digest(path))) {
		list_add(list, DIGEST, path);
		return true;
	}
	if (ends_with(path, ".cudaspy") ||
	    (named && there && (S_ISREG(status.st_mode) || has_metadata(path)))) {
		list_add(list, TRACE, path);
		return true;
	}
	return there && S_ISDIR(status.st_mode) && look_into(list, path, deep);
}

static void look_at_all(struct list *list, const char *const *names, size_t n_names)
{
	struct stat status;
	size_t i;

	for (i = 0; i < n_names; i++) {
		if (look(list, names[i], true, 0))
			continue;
		if (stat(names[i], &status))
			warn("%s: %s", names[i], strerror(errno));
		else
			warn("%s: no trace and no digest in it", names[i]);
		list->unknown++;
	}
}

/* ---- whose it is ----------------------------------------------------------------------------- */

/* The ranks among which what is there is shared. */
struct circle {
	unsigned int index, of;
};

static uint64_t hash_of(const char *text, size_t n)
{
	uint64_t hash = n;

	for (size_t i = 0; i < n; i++)
		hash = hash_mix(hash ^ (unsigned char)text[i]) + i;
	return hash;
}

/* All hosts, or this one's ranks alone? */
static struct circle circle_of(const struct share *share, MPI_Comm host)
{
	uint64_t hash = hash_of(share->text, share->text_bytes), range[2] = {hash, ~hash}, least[2];
	MPI_Comm whole = MPI_COMM_WORLD;
	int rank, ranks;

	MPI_Allreduce(range, least, 2, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
	if (least[0] != ~least[1])
		whole = host;
	MPI_Comm_rank(whole, &rank);
	MPI_Comm_size(whole, &ranks);
	return (struct circle){.index = (unsigned int)rank, .of = (unsigned int)ranks};
}

/* PROGRAM.rankN-PID.cudaspy: N; false: no rank. */
static bool rank_of(const char *path, unsigned long *rank)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *at = name,
		   *mark = NULL;
	char *end;

	while ((at = strstr(at, ".rank")))
		mark = at, at += 5;
	if (!mark || mark[5] < '0' || mark[5] > '9')
		return false;
	*rank = strtoul(mark + 5, &end, 10);
	return *end == '-';
}

static void add(struct share *share, char *name, const char *path, bool digest)
{
	struct share_group *group = NULL;
	size_t i;

	for (i = share->n_groups; !digest && i > 0 && !group; i--)
		if (!strcmp(share->groups[i - 1].name, name))
			group = &share->groups[i - 1];
	if (group) {
		free(name);
	} else {
		share->groups = grow(share->groups, share->n_groups, sizeof(*share->groups));
		group = &share->groups[share->n_groups++];
		*group = (struct share_group){.name = name, .digest = digest};
	}
	group->paths = grow((void *)group->paths, group->n, sizeof(*group->paths));
	group->paths[group->n++] = path;
}

/* The recording that a trace is of: PROGRAM-PID of PROGRAM-PID.cudaspy and of its parts, PROGRAM-PID.NNNN.cudaspy. */
static char *recording_of(const char *path)
{
	char *name = xstrndup(path, strlen(path) - (ends_with(path, ".cudaspy") ? 8 : 0));
	size_t n = strlen(name), digits = 0;

	while (digits < n && name[n - digits - 1] >= '0' && name[n - digits - 1] <= '9')
		digits++;
	if (digits >= 4 && digits < n && name[n - digits - 1] == '.')
		name[n - digits - 1] = 0;
	return name;
}

/* The processes of a rank stay together, and so do the parts of a recording, which are neighbours: they are one entry of
 * the digest. All else goes round. */
static void take(struct share *share, struct circle circle)
{
	const char *item, *end = share->text + share->text_bytes;
	char *last = NULL;
	unsigned long rank, others = 0;

	for (item = share->text; item < end; item += strlen(item) + 1) {
		const char *path = item + 1;
		char *name;

		if (*item == TRACE && rank_of(path, &rank)) {
			if (rank % circle.of == circle.index)
				add(share, xasprintf("rank %lu", rank), path, false);
			continue;
		}
		name = *item == TRACE ? recording_of(path) : xstrdup(path);
		others += !last || strcmp(last, name) != 0;
		if (others % circle.of == circle.index)
			add(share, xstrdup(name), path, *item == DIGEST);
		free(last);
		last = name;
	}
	free(last);
}

/* From the host's first rank to the others: what it found. */
static void give(struct share *share, struct list *list, MPI_Comm host)
{
	uint64_t n[2] = {list->n, list->unknown};

	MPI_Bcast(n, 2, MPI_UINT64_T, 0, host);
	share->text_bytes = n[0];
	share->text = xrealloc(list->text, n[0] + 1, 1);
	for (uint64_t at = 0; at < n[0]; at += 1 << 30)
		MPI_Bcast(share->text + at, (int)(n[0] - at < 1 << 30 ? n[0] - at : 1 << 30),
			  MPI_BYTE, 0, host);
	share->unknown = list->unknown; /* the first rank alone counts them */
}

void share_make(struct share *share, const char *const *names, size_t n_names)
{
	struct list list = {0};
	MPI_Comm host;
	int rank;

	*share = (struct share){0};
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Comm_rank(host, &rank);
	if (rank == 0)
		look_at_all(&list, names, n_names);
	give(share, &list, host);
	take(share, circle_of(share, host));
	MPI_Comm_free(&host);
}

void share_release(struct share *share)
{
	size_t i;

	for (i = 0; i < share->n_groups; i++) {
		free(share->groups[i].name);
		free((void *)share->groups[i].paths);
	}
	free(share->groups);
	free(share->text);
}
