/*
 * tests/unit/test_analyzer_parts.c: a set that is read in parts. What the parts become is what one reading finds, number by
 * number; processes that belong together are found, before the reading or by it; pieces of work are done in order.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "log_findings.h"
#include "analysis.h"
#include "base/jobs.h"
#include "base/pool.h"
#include "parallel/parts.h"
#include "symbols/symbolize.h"

/* Three processes whose threads want locks and the kernel module at the same time. The first two use one GPU. */
static void make_log(struct log *log)
{
	unsigned int i, j;

	log->used = 0;
	for (i = 0; i < 3; i++) {
		add(log,
		    "trace app.%u pid=%u program=\"app%u\" hostname=\"box\" "
		    "clock_source=\"tsc\" boot_id=\"b\" probes=1 start_realtime_ns=5000000000\n"
		    "slot 0\n5ms gpu device=0 cc_major=9 cc_minor=0 bytes=150 name=\"H200\" "
		    "uuid=\"GPU-%c\" pci=\"0\"\n"
		    "5ms gpu device=1 cc_major=9 cc_minor=0 bytes=150 name=\"H200\" uuid=\"GPU-%u\" pci=\"1\"\n",
		    100 + i, 100 + i, i, i == 2 ? 'b' : 'a', i);
		add(log,
		    "5ms range_name number=1 name=\"step %u\"\n5ms range_name number=2 name=\"inner\"\n"
		    "5ms python_code code=1 first_line=1 file=\"/home/a%u.py\" function=\"load\"\n"
		    "5ms place place=1 lines=1:1%u\n",
		    i, i, i);
		for (j = 1; j <= 40; j++)
			add(log, "%uus sample of=%u place=1 state=1 weight=10000\n",
			    6850 + 1000 * j + i, 100 + i);
		add(log, "50ms gpu_look device=0 busy=%u clock=1000 clock_most=2000\n", 10 + i);
		/* The last process has the first records. */
		add(log, "slot 1 tid=%u\n%uus thread tid=%u name=\"one\"\n", 100 + i, 9 - i,
		    100 + i);
		for (j = 1; j <= 40; j++) {
			add(log, "%uus range what=push name=1\n", 5990 + 1000 * j + i);
			add(log,
			    "%uus launch cudaLaunchKernel duration=%uus stream=0x10 caller=0x%u0\n"
			    "%uus wait kind=ioctl fn=cuMemAlloc outer_fn=cudaMalloc duration=%uus "
			    "object=0x%u\n"
			    "%uus sched window=700us not_running=%uus running=%uus\n"
			    "%uus memory cudaMalloc duration=%uus op=alloc kind=device bytes=9 "
			    "caller=0x50\n"
			    "%uus op cudaDeviceSynchronize duration=3us caller=0x70\n",
			    6000 + 1000 * j + i, 3 + j % 3, 1 + j % 4, 6700 + 1000 * j + 10 * i,
			    j % 4 ? 20 + j % 3 : 400 + j, 20 + j % 3, 6705 + 1000 * j + 10 * i,
			    j % 5 * 20, 500 + j, 6710 + 1000 * j + 10 * i, j % 4 ? 60 : 500 + j,
			    6800 + 1000 * j + i);
			/* The last one stays open. */
			if (j < 40)
				add(log, "%uus range what=pop name=1\n", 6810 + 1000 * j + i);
			add(log,
			    "%uus outside kind=mutex object=0x8%u0 holder=%u caller=0x9%u duration=90us\n",
			    6940 + 1000 * j + i, j % 2, 200 + i, j % 3);
		}
		/* With a process for each GPU half of that would be spared. */
		add(log,
		    "47500us call cudaSetDevice duration=1us device=1\n"
		    "47800us wait kind=ioctl fn=cudaHostRegister duration=200us object=33 count=2 device=1\n"
		    "47900us memory cudaHostRegister duration=300us op=register kind=pinned device=1\n");
		add(log, "slot 2 tid=%u\n%uus thread tid=%u name=\"two\"\n", 200 + i, 20 + i,
		    200 + i);
		for (j = 1; j <= 40; j++)
			add(log,
			    "%uus wait kind=mutex fn=cuMemFree outer_fn=cudaFree duration=%uus "
			    "object=0x7f000%u holder=%u holder_fn=cudaMalloc holder_device=0\n"
			    "%uus memory cudaFree duration=%uus op=free kind=device bytes=9 "
			    "device=0 caller=0x6%u\n"
			    "%uus launch cudaLaunchKernel duration=3us stream=0x20 device=1 caller=0x80\n"
			    "%uus op cudaDeviceSynchronize duration=20us device=1 caller=0x81\n",
			    6500 + 1000 * j + 7 * i, 200 + j, j % 5, 100 + i,
			    6510 + 1000 * j + 7 * i, 300 + j, j % 4, 6600 + 1000 * j + 9 * i,
			    6650 + 1000 * j + 9 * i);
	}
}

struct reading_of {
	char *dir;
	struct trace_set set;
	struct analysis a;
};

static void open_log(struct reading_of *r, const char *dir)
{
	const char *dirs[] = {dir};

	assert_int_equal(trace_set_open(&r->set, dirs, 1, NULL), 0);
}

static void read_with(struct reading_of *r, const char *dir, const char *jobs)
{
	setenv("CUDASPY_JOBS", jobs, 1);
	assert_int_equal(jobs_choose(NULL), 0);
	open_log(r, dir);
	assert_int_equal(analysis_run(&r->a, &r->set, &(struct analysis_options){0}), 0);
}

static void close_log(struct reading_of *r)
{
	analysis_release(&r->a);
	trace_set_release(&r->set);
}

static char *make_dir(void)
{
	static struct log log;
	char *dir = scratch_make(), path[256];

	make_log(&log);
	snprintf(path, sizeof(path), "%s/log", dir);
	scratch_write(path, log.text, log.used);
	tt_make(path, dir);
	remove(path);
	return dir;
}

static void same_edges(const struct blame_edges *x, const struct blame_edges *y)
{
	size_t i;

	assert_int_equal(x->n, y->n);
	for (i = 0; i < x->n; i++) {
		assert_memory_equal(&x->all[i].key, &y->all[i].key, sizeof(x->all[i].key));
		assert_int_equal(x->all[i].waits, y->all[i].waits);
		assert_memory_equal(&x->all[i].waited_ns, &y->all[i].waited_ns, sizeof(double));
	}
}

static void same_sites(const struct findings *x, const struct findings *y)
{
	const struct site *a = x->sites, *b = y->sites;

	for (; a && b; a = a->hh.next, b = b->hh.next) {
		assert_memory_equal(&a->key, &b->key, sizeof(a->key));
		assert_int_equal(a->count, b->count);
		assert_int_equal(a->cost.own_ns, b->cost.own_ns);
		assert_int_equal(a->callers.count, b->callers.count);
	}
	assert_null(a);
	assert_null(b);
}

static void same_idle(const struct idle *x, const struct idle *y)
{
	assert_int_equal(x->n_gpus, y->n_gpus);
	for (size_t i = 0; i < x->n_gpus; i++) {
		const struct idle_gpu *a = &x->gpus[i], *b = &y->gpus[i];

		assert_int_equal(a->n_processes, b->n_processes);
		assert_int_equal(a->idle_ns, b->idle_ns);
		assert_int_equal(a->n_intervals, b->n_intervals);
		assert_memory_equal(a->together_ns, b->together_ns, sizeof(a->together_ns));
		assert_memory_equal(&a->looks, &b->looks, sizeof(a->looks));
	}
}

static void same_accounts(const struct accounting *x, const struct accounting *y)
{
	assert_int_equal(x->n_thread_accounts, y->n_thread_accounts);
	for (size_t i = 0; i < x->n_thread_accounts; i++)
		assert_ptr_equal(y->thread_accounts[i]->cpu_pressure,
				 &y->cpu_pressure[y->thread_accounts[i]
							  ->thread->process->trace->host->index]);
	assert_int_equal(x->n_ioctls, y->n_ioctls);
	for (size_t i = 0; i < x->n_ioctls; i++) {
		assert_int_equal(x->ioctls[i].request, y->ioctls[i].request);
		assert_int_equal(x->ioctls[i].count, y->ioctls[i].count);
		assert_int_equal(x->ioctls[i].ns, y->ioctls[i].ns);
	}
	for (size_t i = 0; i < x->model->set->n_hosts; i++) {
		assert_int_equal(x->cpu_pressure[i].lacked_ns, y->cpu_pressure[i].lacked_ns);
		assert_int_equal(x->cpu_pressure[i].fitting_ns, y->cpu_pressure[i].fitting_ns);
	}
	for (size_t i = 0; i < x->model->n_processes; i++) {
		assert_int_equal(x->probed[i], y->probed[i]);
		assert_int_equal(x->gaps_recorded[i], y->gaps_recorded[i]);
		assert_int_equal(x->gpus_used[i], y->gpus_used[i]);
		assert_int_equal(x->contexts[i].ended, y->contexts[i].ended);
		assert_int_equal(x->contexts[i].made_again, y->contexts[i].made_again);
		assert_int_equal(x->work.submissions[i], y->work.submissions[i]);
		assert_int_equal(x->work.first_work_ns[i], y->work.first_work_ns[i]);
	}
	assert_int_equal(x->ranges.n_sums, y->ranges.n_sums);
	for (size_t i = 0; i < x->ranges.n_sums; i++)
		assert_memory_equal(&x->ranges.sums[i], &y->ranges.sums[i],
				    sizeof(x->ranges.sums[i]));
	assert_int_equal(x->ranges.most_started, y->ranges.most_started);
}

/* By key: new ones may have come up in another order. */
static void same_classes(const struct expect *x, struct expect *y)
{
	assert_int_equal(x->n_classes, y->n_classes);
	for (size_t i = 0; i < x->n_classes; i++) {
		const struct call_class *a = x->classes[i], *b = expect_class_of_key(y, &a->key);

		assert_int_equal(a->source, b->source);
		assert_int_equal(a->expected_ns, b->expected_ns);
		assert_int_equal(a->calls, b->calls);
		assert_int_equal(a->total_ns, b->total_ns);
	}
}

static void same_threads(const struct reading_of *x, const struct reading_of *y,
			 const struct thread_set *a, const struct thread_set *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < x->a.model.n_threads; i++)
		assert_int_equal(thread_set_has(a, x->a.model.threads[i]),
				 thread_set_has(b, y->a.model.threads[i]));
}

static void same_lock(const struct reading_of *x, const struct reading_of *y, size_t i)
{
	const struct lock *a = x->a.accounts.locks.all[i], *b = y->a.accounts.locks.all[i];

	assert_memory_equal(&a->key, &b->key, sizeof(a->key));
	assert_int_equal(a->waited_ns, b->waited_ns);
	assert_int_equal(a->index, b->index);
	same_threads(x, y, &a->waiters, &b->waiters);
	same_threads(x, y, &a->holders, &b->holders);
}

/* What is known when all has been read. */
static void same_state(struct reading_of *one, struct reading_of *more)
{
	size_t i;

	assert_int_equal(one->a.model.n_threads, more->a.model.n_threads);
	for (i = 0; i < one->a.model.n_threads; i++) {
		assert_int_equal(one->a.model.threads[i]->tid, more->a.model.threads[i]->tid);
		assert_int_equal(more->a.model.threads[i]->index, i);
		assert_int_equal(one->a.stats.threads[i].total_ns,
				 more->a.stats.threads[i].total_ns);
	}
	assert_int_equal(one->a.accounts.locks.count, more->a.accounts.locks.count);
	for (i = 0; i < one->a.accounts.locks.count; i++)
		same_lock(one, more, i);
	same_edges(&one->a.blame.direct, &more->a.blame.direct);
	same_edges(&one->a.blame.roots, &more->a.blame.roots);
	same_edges(&one->a.blame.kernel_overlap.edges, &more->a.blame.kernel_overlap.edges);
	same_sites(&one->a.findings, &more->a.findings);
	for (i = 0; i < WORST_CALLS; i++)
		assert_int_equal(one->a.blame.worst_calls[i].end_ns,
				 more->a.blame.worst_calls[i].end_ns);
	same_idle(&one->a.idle, &more->a.idle);
	same_accounts(&one->a.accounts, &more->a.accounts);
	same_classes(&one->a.expect, &more->a.expect);
}

/* What the report says; the caller frees. */
static char *report_of(struct reading_of *r)
{
	const struct report_options options = {.renderer = renderer_find("json"), .nested = true};
	struct symbolizer *symbols = symbolizer_new();
	struct report report;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_init(&report, REPORT_SCHEMA);
	report_add_sections(&report, &r->a, symbols, &options);
	assert_int_equal(renderer_show(options.renderer, &report, out), 0);
	fclose(out);
	report_release(&report);
	symbolizer_free(symbols);
	return text;
}

static void same_report(struct reading_of *one, struct reading_of *more)
{
	char *x = report_of(one), *y = report_of(more);

	if (strcmp(x, y))
		golden_differs("in parts", x, y);
	free(x);
	free(y);
}

static void test_same_as_one(void **state)
{
	static struct reading_of one, more;
	struct groups groups;
	char *dir = make_dir();
	size_t i;

	(void)state;
	read_with(&one, dir, "1");
	read_with(&more, dir, "3");
	same_state(&one, &more);
	assert_int_equal(one.a.accounts.locks.count, 15);
	assert_true(one.a.blame.kernel_overlap.edges.n > 0);
	/* GPUs of different parts, too, were idle at the same time. */
	assert_int_equal(one.a.idle.n_gpus, 5);
	for (i = 1; i < 5; i++)
		assert_true(one.a.idle.gpus[0].together_ns[i] > 0);
	assert_int_equal(account_avoidable_ns(&one.a.accounts), 3 * 100000);
	assert_int_equal(account_avoidable_ns(&more.a.accounts), 3 * 100000);
	/* The first reading has seen who uses the same GPU. */
	groups_init(&groups, 3);
	groups_by_use(&groups, &more.set);
	assert_int_equal(groups_find(&groups, 1), groups_find(&groups, 0));
	assert_int_equal(groups_find(&groups, 2), 2);
	groups_release(&groups);
	same_report(&one, &more);
	close_log(&one);
	close_log(&more);
	scratch_remove(dir);
}

/* The same words, each time, for others as long. */
static void rename_all(char *text, const char *from, const char *to)
{
	for (char *at = text; (at = strstr(at, from)); at += strlen(to))
		memcpy(at, to, strlen(to));
}

/* What follows each such word begins with a capital. */
static void capitalize_all(char *text, const char *word)
{
	for (char *at = text; (at = strstr(at, word));) {
		at += strlen(word);
		*at = (char)toupper(*at);
	}
}

/* Two hosts that did the same, each with GPUs of its own. */
static char *make_twice(const char *name)
{
	char *dir = scratch_make(), path[PATH_MAX + 64], log[PATH_MAX + 64], *text;

	snprintf(path, sizeof(path), "%s/%s.log", golden_dir, name);
	text = scratch_read(path, NULL);
	assert_non_null(text);
	for (unsigned int host = 0; host < 2; host++) {
		snprintf(log, sizeof(log), "%s/log", dir);
		scratch_write(log, text, strlen(text));
		snprintf(path, sizeof(path), "%s/%u", dir, host);
		assert_int_equal(mkdir(path, 0700), 0);
		tt_make(log, path);
		remove(log);
		capitalize_all(text, "trace ");
		capitalize_all(text, " of=");
		rename_all(text, "\"box\"", "\"cox\"");
		rename_all(text, "boot-", "toob-");
		rename_all(text, "GPU-", "GPV-");
	}
	free(text);
	return dir;
}

/* The same of logs that have some of everything. */
static void test_logs_same_as_one(void **state)
{
	static const char *const names[] = {"pageable", "killed", "locks", "sharing", "turns",
					    "mixed",    "ranks",  "parts", "between"};
	static struct reading_of one, more;

	(void)state;
	golden_find();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *dir = make_twice(names[i]);

		read_with(&one, dir, "1");
		read_with(&more, dir, "3");
		same_state(&one, &more);
		same_report(&one, &more);
		close_log(&one);
		close_log(&more);
		scratch_remove(dir);
	}
}

/* However much is written down, it is there, until the journal is emptied. */
static void test_journal(void **state)
{
	struct journal journal = {.all = NULL};
	char data[50];
	size_t at = 0, room;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < 20000; i++) {
			memset(data, (int)(i % 101), sizeof(data));
			journal_add_heavy(&journal, JOURNAL_GPU, i % 3)->gpu = i;
			at = journal_store(&journal, data, i % sizeof(data));
		}
		assert_int_equal(journal.n, 20000);
		assert_int_equal(journal.weight, 19999);
		assert_int_equal(journal.stored_bytes, 400 * 49 * 25);
		assert_int_equal(at, journal.stored_bytes - 19999 % 50);
		for (unsigned int i = 0, byte = 0; i < 20000; byte += i++ % sizeof(data)) {
			assert_int_equal(journal.all[i].gpu, i);
			assert_true(!(i % sizeof(data)) || journal.stored[byte] == (char)(i % 101));
		}
		room = journal.room;
		journal_empty(&journal);
		assert_int_equal(journal.n + journal.weight + journal.stored_bytes, 0);
		assert_int_equal(journal.room, room);
	}
	free(journal.all);
	free(journal.stored);
}

static void tell_nothing(const struct analysis *whole, uint64_t records)
{
	(void)whole;
	(void)records;
}

/* As analysis_run has it before the main reading. */
static void prepare(struct reading_of *r)
{
	r->a = (struct analysis){.set = &r->set, .accounted = true};
	expect_learn(&r->a.expect, &r->set);
	expect_settle(&r->a.expect, NULL, NULL);
	assert_int_equal(filtering_begin(&r->a.filtering, NULL, &r->set, &r->a.expect.phases), 0);
	filtering_cut(&r->a.filtering, &r->a.expect.phases);
	model_init(&r->a.model, &r->set);
	callstats_init(&r->a.stats, &r->a.model, &r->a.filtering);
	account_init(&r->a.accounts, &r->a.model, &r->a.expect, &r->a.stats);
	blame_init(&r->a.blame, &r->a.accounts);
	findings_init(&r->a.findings, &r->a.accounts);
	idle_init(&r->a.idle, &r->a.accounts);
	ranks_init(&r->a.ranks, &r->a.idle, false);
}

/* Each of three processes by itself; the first two use one GPU. known: the first reading has seen it. */
static void read_apart(struct reading_of *r, struct parts *parts, bool known)
{
	struct groups groups;
	size_t i;

	prepare(r);
	for (i = 0; !known && i < r->set.n_traces; i++)
		r->set.traces[i]->use.n_gpus = 0;
	groups_init(&groups, 3);
	parts_init(parts, &r->a, &groups, 8);
	assert_int_equal(parts->n, 3);
	parts_read(parts, 2, tell_nothing);
	groups_release(&groups);
}

static void test_one_gpu_of_two_parts(void **state)
{
	static struct reading_of r;
	char *dir = make_dir();
	struct parts parts;

	(void)state;
	open_log(&r, dir);
	read_apart(&r, &parts, true);
	assert_true(parts_join(&parts));
	assert_int_equal(r.a.idle.gpus[0].n_processes, 2);
	assert_ptr_equal(r.a.idle.gpus[0].processes[0], &r.a.model.processes[0]);
	assert_ptr_equal(r.a.idle.gpus[0].processes[1], &r.a.model.processes[1]);
	parts_release(&parts);
	close_log(&r);
	scratch_remove(dir);
}

/* Joining the parts finds it. */
static void test_one_gpu_unknown(void **state)
{
	static struct reading_of r;
	char *dir = make_dir();
	struct parts parts;

	(void)state;
	open_log(&r, dir);
	read_apart(&r, &parts, false);
	assert_false(parts_join(&parts));
	assert_true(parts.join.has_conflict);
	assert_int_equal(parts.join.conflict[0] + parts.join.conflict[1], 1); /* 0 and 1 */
	parts_release(&parts);
	close_log(&r);
	scratch_remove(dir);
}

/* What only a reading of the whole can do, is refused where others go on. */
static void test_refusal(void **state)
{
	(void)state;
	assert_false(reading_refuses("this"));
	reading_place.apart = true;
	assert_true(reading_refuses("that"));
	assert_string_equal(reading_place.refused, "that");
	reading_place = (struct reading_place){0};
}

#define PIECES 200

struct pieces {
	int worked[PIECES];
	size_t order[PIECES], n;
};

static void work_on(void *data, size_t i)
{
	struct pieces *p = data;

	p->worked[i]++;
}

static void put_down(void *data, size_t i)
{
	struct pieces *p = data;

	p->order[p->n++] = i;
}

static void test_pool(void **state)
{
	static const unsigned int jobs[] = {1, 2, 7, 300};
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct pieces p = {.n = 0};

		pool_run(jobs[i], PIECES, work_on, put_down, &p);
		assert_int_equal(p.n, PIECES);
		for (j = 0; j < PIECES; j++) {
			assert_int_equal(p.worked[j], 1);
			assert_int_equal(p.order[j], j);
		}
		pool_run(jobs[i], 0, work_on, put_down, &p);
		assert_int_equal(p.n, PIECES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_one),
		cmocka_unit_test(test_logs_same_as_one),
		cmocka_unit_test(test_journal),
		cmocka_unit_test(test_one_gpu_of_two_parts),
		cmocka_unit_test(test_one_gpu_unknown),
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
