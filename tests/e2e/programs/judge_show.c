/*
 * tests/e2e/programs/judge_show.c: the truth, for people (judge --truth-only) and as a report would say it (judge
 * --as-report), from which test_judge.sh makes reports with mistakes.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include "judge.h"

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

void show_truth(void)
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

void show_as_report(void)
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
