/*
 * tests/e2e/programs/judge_score.c: how much of a report is right: reads what it says of waits, holds it against the
 * truth, and prints the line of key=value. For judge, once a report.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "judge.h"

enum { UNKNOWN_DEVICE = 255 };

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

/* Of the loading of code the simulator knows that it is work. */
static const char *cause_of(const json_t *o)
{
	const char *cause = text(o, "cause");

	return strcmp(cause, "loading") ? cause : intern("own");
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
		.what = root ? cause_of(o) : text(o, "lock"),
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
		/* Of the loading of code the simulator knows that it is work. */
		a->ours[OWN] += ns_of(o, "loading_ns");
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

		/* A report need not mention calls without waits that took no time worth mentioning. */
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

void judge(const char *name, const char *path, bool verbose)
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
	printf(" late_ns=%" PRIu64, truth_late_ns);
	for (int b = 0; b < BUCKET_CNT; b++)
		printf(" off_%s_ns=%" PRIu64, bucket_name[b], books.off[b]);
	printf(" pairs=%u off_pairs=%u worst=%.4f worst_at=%s/%s\n", books.pairs, books.off_pairs,
	       books.worst, books.worst_fn, books.worst_bucket);
	json_decref(report);
}
