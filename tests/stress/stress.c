/*
 * tests/stress/stress.c: the random program's frame: its start, the table of what was seen, and how actions
 * are drawn. See stress.h.
 *
 *   stress run SEED                 in a fresh folder; needs STRESS_TABLE=FILE, a table that is there
 *   stress image PATH RANDOM DEPTH  the same program, executed by itself
 *   stress table FILE               makes an empty table
 *   stress show FILE                what the actors saw, one a line
 *   stress images FILE              a line each: pid, calls completed, begun, whether some may be lost (1)
 *                                 or all (2), path
 *
 *   ACTIONS=LIST   what may be drawn (stress.h)
 *   STRESS_VERBOSE=1  what each actor does and sees, on standard error
 *   STRESS_SIM=1   it runs on the simulator, which is not made for calls in handlers and after fork
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "stress.h"

struct table *table;
struct image *image;
const char *self;
bool simulated;
static bool verbose;

static void die(const char *what)
{
	perror(what);
	exit(90);
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct table *map_table(const char *file)
{
	int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
	struct table *map;

	if (fd < 0 || ftruncate(fd, sizeof(*map)) < 0)
		die(file ? file : "STRESS_TABLE");
	map = mmap(NULL, sizeof(*map), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		die("mmap");
	close(fd);
	return map;
}

static int make_table(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || posix_fallocate(fd, 0, sizeof(struct table)) != 0)
		die(file);
	return close(fd);
}

static int compare_paths(const void *a, const void *b)
{
	const struct seen *x = &table->actor[*(const int *)a], *y = &table->actor[*(const int *)b];
	int order = strcmp(x->path, y->path);

	return order ? order : x->sum < y->sum ? -1 : x->sum > y->sum;
}

static int show(const char *file)
{
	static int order[ACTORS_MOST];
	int n;

	table = map_table(file);
	n = (int)table->actors;
	if (table->full)
		printf("the table is full\n");
	for (int i = 0; i < n; i++)
		order[i] = i;
	qsort(order, (size_t)n, sizeof(*order), compare_paths);
	for (int i = 0; i < n; i++)
		printf("%s %016llx%s\n", table->actor[order[i]].path,
		       (unsigned long long)table->actor[order[i]].sum,
		       table->actor[order[i]].done ? "" : " unfinished");
	return 0;
}

static int show_images(const char *file)
{
	table = map_table(file);
	for (unsigned int i = 0; i < table->images; i++)
		printf("%d %lu %lu %u %s\n", table->image[i].pid, table->image[i].done,
		       table->image[i].begun, table->image[i].may_lose, table->image[i].path);
	return 0;
}

/* Async-signal-safe: forked children and handlers' children begin with it. */
void image_begin(const char *path)
{
	unsigned int i = atomic_fetch_add(&table->images, 1);

	if (i >= IMAGES_MOST) {
		table->full = 1;
		_exit(91);
	}
	image = &table->image[i];
	image->pid = getpid();
	strncpy(image->path, path, sizeof(image->path) - 1);
}

void stress_call_begins(void)
{
	atomic_fetch_add(&image->begun, 1);
}

void stress_call_ends(void)
{
	atomic_fetch_add(&image->done, 1);
}

/* ---- actors ---------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ value >> 27) * 0x94d049bb133111ebull;
	return value ^ value >> 31;
}

uint64_t draw(struct actor *actor)
{
	return mix(actor->random += 0x9e3779b97f4a7c15ull);
}

unsigned int below(struct actor *actor, unsigned int end)
{
	return (unsigned int)(draw(actor) % end);
}

void see(struct actor *actor, uint64_t value)
{
	actor->sum = mix(actor->sum ^ value) + 1;
	if (verbose)
		dprintf(2, "%s sees %llx\n", actor->path, (unsigned long long)value);
}

void actor_begin(struct actor *actor, struct actor *parent, const char *what, int number)
{
	memset(actor, 0, sizeof(*actor));
	snprintf(actor->path, sizeof(actor->path), "%.40s.%.6s%d", parent->path, what,
		 number % 100);
	actor->random = draw(parent);
	actor->depth = parent->depth + 1;
	actor->may = parent->may;
}

void actor_end(struct actor *actor)
{
	unsigned int i = atomic_fetch_add(&table->actors, 1);

	if (i >= ACTORS_MOST) {
		table->full = 1;
		return;
	}
	memcpy(table->actor[i].path, actor->path, sizeof(actor->path));
	table->actor[i].sum = actor->sum;
	table->actor[i].done = 1;
}

/* ---- actions --------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	unsigned int weight;
	unsigned int needs;
	void (*act)(struct actor *actor);
} actions[] = {
#define ROW(name, weight, needs) {#name, weight, needs, do_##name},
	ACTIONS(ROW)
#undef ROW
};

static bool forbidden[ACTION_CNT];

static void forbid(const char *list)
{
	bool only = *list && *list != '-';

	for (int i = 0; i < ACTION_CNT; i++)
		forbidden[i] = only;
	while (*list) {
		bool minus = *list == '-';
		size_t length = strcspn(list += minus, ",");
		int i = 0;

		while (i < ACTION_CNT && (strlen(actions[i].name) != length ||
					  strncmp(actions[i].name, list, length) != 0))
			i++;
		if (i == ACTION_CNT && length) {
			fprintf(stderr, "stress: no action %.*s\n", (int)length, list);
			exit(90);
		}
		if (length)
			forbidden[i] = minus;
		list += length + (list[length] == ',');
	}
}

bool allowed(enum action action)
{
	return !forbidden[action];
}

static enum action draw_action(struct actor *actor)
{
	for (int tries = 0; tries < 100; tries++) {
		unsigned int i = below(actor, ACTION_CNT), weight = below(actor, 6);

		if (!forbidden[i] && actions[i].weight > weight &&
		    (actor->may & actions[i].needs) == actions[i].needs)
			return (enum action)i;
	}
	return ACTION_calls;
}

void act(struct actor *actor)
{
	static const unsigned int least[] = {3, 2, 1}, more[] = {4, 3, 2};
	unsigned int n;

	if (actor->depth >= DEPTH_MOST) {
		do_calls(actor);
		return;
	}
	n = least[actor->depth] + below(actor, more[actor->depth]);
	for (unsigned int i = 0; i < n; i++) {
		enum action action = draw_action(actor);

		see(actor, action);
		if (verbose)
			dprintf(2, "%s: %s\n", actor->path, actions[action].name);
		actions[action].act(actor);
	}
}

/* ---- main ------------------------------------------------------------------------------------ */

static void find_self(void)
{
	static char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length < 0)
		die("/proc/self/exe");
	self = path;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	struct actor actor = {.may = MAY_ALL};

	if (strcmp(what, "table") == 0)
		return make_table(argv[2]);
	if (strcmp(what, "show") == 0)
		return show(argv[2]);
	if (strcmp(what, "images") == 0)
		return show_images(argv[2]);
	find_self();
	forbid(getenv("ACTIONS") ?: "");
	simulated = getenv("STRESS_SIM");
	verbose = getenv("STRESS_VERBOSE");
	table = map_table(getenv("STRESS_TABLE"));
	if (strcmp(what, "run") == 0) {
		strcpy(actor.path, "0");
		actor.random = strtoull(argv[2], NULL, 0);
	} else if (strcmp(what, "image") == 0 && argc == 5) {
		snprintf(actor.path, sizeof(actor.path), "%s", argv[2]);
		actor.random = strtoull(argv[3], NULL, 0);
		actor.depth = atoi(argv[4]);
	} else {
		return 90;
	}
	begin_process(&actor);
	process(&actor);
}
