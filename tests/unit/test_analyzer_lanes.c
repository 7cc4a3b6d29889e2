/*
 * tests/unit/test_analyzer_lanes.c: lanes of the HTML report's timeline that are filled in by hand (analyzer/lanes/): where a finding is
 * seen best, what another reading leaves whole, the order of lanes, what is said of them and of what is not drawn.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>
#include "analysis.h"
#include "lanes/lanes.h"
#include "scratch.h"
#include "trace_text.h"

#define US 1000
#define MS 1000000

/* Two processes: threads 7 and 8 of the first one, and a 7 of the second one. GPU 1 and GPU 0 of the first one, GPU 0 of the second. */
static const char told[] =
	"trace z.1 pid=1 program=\"/x/z\" boot_id=b clock_source=tsc\n"
	"slot 0\n1us gpu device=1 name=\"B\" uuid=\"GPU-b\"\n1us gpu device=0 name=\"A\" uuid=\"GPU-a\"\n"
	"slot 1 tid=7\n1us thread tid=7 name=\"z\"\n"
	"1ms launch cudaLaunchKernel stream=8 device=1 duration=10us\n"
	"2ms launch cudaLaunchKernel stream=8 device=0 duration=10us\n"
	"slot 2 tid=8\n5us thread tid=8 name=\"second\"\n"
	"1s op cudaStreamSynchronize stream=8 device=1 duration=10us\n"
	"trace y.2 pid=2 program=\"/x/y\" boot_id=b clock_source=tsc\n"
	"slot 0\n1us gpu device=0 name=\"C\" uuid=\"GPU-c\"\n"
	"slot 1 tid=7\n1us thread tid=7 name=\"y\"\n"
	"3ms launch cudaLaunchKernel stream=8 device=0 duration=10us\n"
	"1000001us op cudaStreamSynchronize stream=8 device=0 duration=10us\n";

struct filled {
	char *dir;
	struct trace_set set;
	struct analysis a;
	struct symbolizer *symbols;
	struct lanes *l;
	struct report report;
	struct lane *of[3]; /* of the threads above, in that order */
};

static const struct process *process_of(const struct filled *f, uint32_t pid)
{
	const struct process *process = f->a.model.processes;

	while (process->trace->pid != pid)
		process++;
	return process;
}

static const struct thread *thread_of(const struct filled *f, uint32_t pid, uint32_t tid)
{
	const struct thread *thread = model_find_thread(&f->a.model, process_of(f, pid), tid);

	assert_non_null(thread);
	return thread;
}

static struct lane *add_thread(struct filled *f, uint32_t pid, uint32_t tid)
{
	struct lane *lane = store_add_lane(&f->l->store, LANE_THREAD);

	lane->thread = thread_of(f, pid, tid);
	lane->process = lane->thread->process;
	while (f->l->n_threads <= lane->thread->index) {
		f->l->threads = grow(f->l->threads, f->l->n_threads, sizeof(*f->l->threads));
		f->l->threads[f->l->n_threads++] = NULL;
	}
	return f->l->threads[lane->thread->index] = lane;
}

static int setup(void **state)
{
	struct filled *f = calloc(1, sizeof(*f));
	const struct analysis_options options = {.profile = NULL};
	char path[300];

	f->dir = scratch_make();
	snprintf(path, sizeof(path), "%s/log", f->dir);
	scratch_write(path, told, sizeof(told) - 1);
	tt_make(path, f->dir);
	assert_int_equal(trace_set_open(&f->set, (const char *[]){f->dir}, 1, NULL), 0);
	assert_int_equal(analysis_run(&f->a, &f->set, &options), 0);
	f->symbols = symbolizer_new();
	f->l = lanes_new(&f->a, f->symbols);
	f->of[0] = add_thread(f, 1, 7);
	f->of[1] = add_thread(f, 1, 8);
	f->of[2] = add_thread(f, 2, 7);
	report_init(&f->report, "test");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct filled *f = *state;

	report_release(&f->report);
	lanes_free(f->l);
	symbolizer_free(f->symbols);
	analysis_release(&f->a);
	trace_set_release(&f->set);
	scratch_remove(f->dir);
	free(f);
	return 0;
}

/* Times count from the recording's begin. */
static uint64_t at(const struct filled *f, uint64_t ns)
{
	return f->a.model.first_ns + ns;
}

/* A call that lost so much of its time to locks. */
static void calls(struct filled *f, struct lane *lane, uint64_t begin_ns, uint64_t ns,
		  const char *name, uint64_t lost_ns)
{
	const struct call_part parts[] = {{ns - lost_ns, BUCKET_GPU_INTENDED},
					  {lost_ns, BUCKET_LOCK}};

	store_add_call(&f->l->store, lane,
		       (struct call_item){.begin_ns = at(f, begin_ns),
					  .end_ns = at(f, begin_ns + ns),
					  .expected_ns = UNKNOWN_NS,
					  .name = label_of(&f->l->labels, name),
					  .count = 1},
		       parts, 2);
}

static void item(struct filled *f, struct lane *lane, enum item_kind kind, uint64_t begin_ns,
		 uint64_t ns, uint64_t second, uint64_t third, uint64_t fourth)
{
	store_add_item(&f->l->store, lane, kind,
		       &(struct item){.begin_ns = at(f, begin_ns),
				      .end_ns = at(f, begin_ns + ns),
				      .values = {0, second, third, fourth}});
}

/* ---- what the report has ---------------------------------------------------------------------- */

struct finding_row {
	const char *id, *function;
	uint64_t worst_thread, worst_at_ns, worst_ns, share_thread, rank;
};

static const struct column finding_columns[] = {
	COLUMN(struct finding_row, id, "", UNIT_TEXT),
	COLUMN(struct finding_row, function, "", UNIT_TEXT),
	COLUMN(struct finding_row, worst_thread, "", UNIT_PLAIN),
	COLUMN(struct finding_row, worst_at_ns, "", UNIT_NS),
	COLUMN(struct finding_row, worst_ns, "", UNIT_NS),
	COLUMN(struct finding_row, share_thread, "", UNIT_PLAIN),
	COLUMN(struct finding_row, rank, "", UNIT_PLAIN),
};
static const struct table_kind finding_kind = {
	TABLE("findings", "", struct finding_row, finding_columns)};

struct blame_row {
	const char *process, *root_function;
	uint64_t waiter, root, waited_ns, waiter_device, root_device;
};

static const struct column blame_columns[] = {
	COLUMN(struct blame_row, process, "", UNIT_TEXT),
	COLUMN(struct blame_row, root_function, "", UNIT_TEXT),
	COLUMN(struct blame_row, waiter, "", UNIT_PLAIN),
	COLUMN(struct blame_row, root, "", UNIT_PLAIN),
	COLUMN(struct blame_row, waited_ns, "", UNIT_NS),
	COLUMN(struct blame_row, waiter_device, "", UNIT_PLAIN),
	COLUMN(struct blame_row, root_device, "", UNIT_PLAIN),
};
static const struct table_kind blame_kind = {
	TABLE("root_blame", "", struct blame_row, blame_columns)};

static void *copied(const void *rows, size_t bytes)
{
	return memcpy(malloc(bytes), rows, bytes);
}

#define REPORT(f, kind, rows) \
	report_add(&(f)->report, kind, copied(rows, sizeof(rows)), ARRAY_SIZE(rows))

/* A finding's moment: there, from then on for so long. lane NULL: it has none. */
struct expected {
	const struct lane *lane;
	uint64_t begin_ns, ns;
	const char *text;
};

static void leads_to(struct filled *f, const struct expected *expected, size_t n)
{
	size_t n_found, next = 0;
	struct moment *moments = lanes_moments(f->l, &f->report, &n_found);

	for (size_t i = 0; i < n; i++) {
		const struct moment *m = &moments[next];

		if (!expected[i].lane)
			continue;
		assert_true(next++ < n_found);
		if (m->finding != i + 1 || m->lane != expected[i].lane ||
		    m->begin_ns != at(f, expected[i].begin_ns) ||
		    m->end_ns - m->begin_ns != expected[i].ns || strcmp(m->text, expected[i].text))
			fail_msg("finding %zu: from %llu for %llu: %s, lane %d", i + 1,
				 (unsigned long long)(m->begin_ns - f->a.model.first_ns),
				 (unsigned long long)(m->end_ns - m->begin_ns), m->text,
				 m->lane == expected[i].lane);
	}
	assert_int_equal(next, n_found);
	free(moments);
}

/* ---- where a finding is seen ------------------------------------------------------------------ */

/* At its worst call, where the thread of that number was in a call; else at calls of its function. */
static void test_calls(void **state)
{
	struct filled *f = *state;
	const struct finding_row rows[] = {
		{"a", "cudaFree", 7, 5 * MS, 2 * MS, 0, 1}, /* both have that number */
		{"a", "cudaFree", 7, 20 * MS + 1, 100, 0, 2},
		{"a", "cudaFree", 7, 20 * MS, 100, 0, 3},
		{"a", "cudaFree", 7, 22 * MS, 100, 0, 4}, /* neither was in a call any more */
		{"a", "cudaFree", 99, 5 * MS, 2 * MS, 0, 5},
		{"a", "cudaMalloc", 0, 0, 0, 0, 6},
		{"a", "cudaGetDevice", 0, 0, 0, 0, 7},
		{"a", NULL, 0, 0, 0, 0, 8},
	};
	const struct expected expected[] = {
		{f->of[0], 5 * MS, 2 * MS, "its longest call"},
		{f->of[2], 20 * MS + 1, 100, "its longest call"},
		{f->of[2], 20 * MS, 100, "its longest call"},
		{f->of[0], 22 * MS, 100, "its longest call"},
		{f->of[2], 20 * MS, 2 * MS, "the call of this function that lost most"},
		{f->of[1], 50 * MS, 9 * MS, "the longest call of this function"},
		{f->of[1], 10 * MS, 3 * MS, "the call that lost most"},
		{f->of[1], 10 * MS, 3 * MS, "the call that lost most"},
	};

	calls(f, f->of[0], 5 * MS, 2 * MS, "cudaFree", 100);
	calls(f, f->of[0], 50 * MS, 8 * MS, "cudaMalloc", 0);
	calls(f, f->of[1], 10 * MS, 3 * MS, "cudaLaunchKernel", 2 * MS);
	calls(f, f->of[1], 50 * MS, 9 * MS, "cudaMalloc", 0);
	calls(f, f->of[2], 20 * MS, 2 * MS, "cudaFree", MS);
	calls(f, f->of[2], 30 * MS, 4 * MS, "cudaFree", MS); /* as much: the first one */
	REPORT(f, &finding_kind, rows);
	leads_to(f, expected, ARRAY_SIZE(expected));
}

/* Nothing was lost: the longest call of all; and where there is none, nowhere. */
static void test_no_losses(void **state)
{
	struct filled *f = *state;
	const struct finding_row rows[] = {{"a", "cudaFree", 0, 0, 0, 0, 1}};
	const struct expected expected[] = {{f->of[1], 10 * MS, 3 * MS, "the longest call"}};

	REPORT(f, &finding_kind, rows);
	leads_to(f, (struct expected[]){{NULL, 0, 0, NULL}}, 1);
	calls(f, f->of[0], 5 * MS, 2 * MS, "cudaMalloc", 0);
	calls(f, f->of[1], 10 * MS, 3 * MS, "cudaLaunchKernel", 0);
	leads_to(f, expected, 1);
}

/* Thread 8 waits for 7, and both for others. */
static void test_locks(void **state)
{
	struct filled *f = *state;
	uint64_t seven = f->of[0]->thread->index + 1, other = f->of[2]->thread->index + 1;
	const struct finding_row rows[] = {
		{"same-device-stall", "cudaMalloc", 0, 0, 0, 0, 1},
		{"cross-device-stall", "cudaMalloc", 0, 0, 0, 0, 2},
		{"cross-device-stall", "cudaFree", 0, 0, 0, 0, 3},
		{"cross-device-stall", "cudaEventCreate", 0, 0, 0, 0, 4}, /* what is not blamed */
		{"cross-device-stall", NULL, 0, 0, 0, 0, 5},
	};
	const struct blame_row blames[] = {
		{"z.1", "cudaMalloc", 8, 7, 3 * MS, 0, 0},
		{"z.1", "cudaMalloc", 7, 8, 2 * MS, 0, 0}, /* less */
		{"z.1", "cudaMalloc", 7, 8, 4 * MS, 0, 1},
		{"y.2", "cudaMalloc", 8, 7, 9 * MS, 0, 0}, /* it has no such thread */
		{"y.2", "cudaFree", 7, 99, MS, 1, 0},
	};
	const struct expected expected[] = {
		{f->of[1], 10 * MS, 2 * MS, "the longest wait for that lock's holder"},
		{f->of[0], 40 * MS, 5 * MS, "the longest wait for that lock's holder"},
		{f->of[2], 60 * MS, MS, "the longest wait for that lock's holder"},
		{f->of[1], 70 * MS, MS, "the longest call"},
		{f->of[0], 40 * MS, 5 * MS, "the longest wait for that lock's holder"},
	};

	/* kind, lock, holder */
	item(f, f->of[1], ITEMS_WAITS, 5 * MS, MS, 0, seven, 0);
	item(f, f->of[1], ITEMS_WAITS, 10 * MS, 2 * MS, 0, seven, 0);
	item(f, f->of[1], ITEMS_WAITS, 20 * MS, 2 * MS, 0, seven, 0);
	item(f, f->of[1], ITEMS_WAITS, 30 * MS, 8 * MS, 0, other, 0);
	item(f, f->of[0], ITEMS_WAITS, 40 * MS, 5 * MS, 0, 0, 0);
	item(f, f->of[0], ITEMS_WAITS, 50 * MS, 4 * MS, 0, other, 0);
	item(f, f->of[2], ITEMS_WAITS, 60 * MS, MS, 0, 0, 0);
	calls(f, f->of[1], 70 * MS, MS, "cudaLaunchKernel", 0);
	REPORT(f, &finding_kind, rows);
	REPORT(f, &blame_kind, blames);
	leads_to(f, expected, ARRAY_SIZE(expected));
}

static struct lane *add_lane(struct filled *f, enum lane_kind kind, uint32_t index, uint32_t pid)
{
	struct lane *lane = store_add_lane(&f->l->store, kind);

	lane->index = index;
	lane->process = process_of(f, pid);
	return lane;
}

/* Idle GPUs, and waits for other ranks: for that of the thread named, if it has one. */
static void test_runs(void **state)
{
	struct filled *f = *state;
	struct lane *ranks[2] = {add_lane(f, LANE_RANK, 0, 2), add_lane(f, LANE_RANK, 1, 1)};
	struct lane *gpu = add_lane(f, LANE_GPU, 0, 1);
	const struct finding_row rows[] = {
		{"starved-by-host", "cudaFree", 0, 0, 0, 0, 1},
		{"straggler-rank", NULL, 0, 0, 0, 8, 2},
		{"straggler-rank", NULL, 0, 0, 0, 99, 3},
		{"straggler-rank", NULL, 0, 0, 0, 0, 4},
		{"no-such-detector", NULL, 0, 0, 0, 0, 5},
	};
	const struct expected expected[] = {
		{gpu, 30 * MS, 2 * MS, "the longest time a GPU was idle"},
		{ranks[0], 20 * MS, 5 * MS, "the longest wait for another rank"},
		{ranks[1], 40 * MS, 9 * MS, "the longest wait for another rank"},
		{ranks[1], 40 * MS, 9 * MS, "the longest wait for another rank"},
		{gpu, 30 * MS, 2 * MS, "the longest time a GPU was idle"},
	};

	f->l->ranks = xcalloc(2, sizeof(*f->l->ranks));
	memcpy(f->l->ranks, ranks, sizeof(ranks));
	f->l->n_ranks = 2;
	calls(f, f->of[0], 5 * MS, 2 * MS, "cudaFree", MS);
	/* cause, of which certainly idle */
	item(f, gpu, ITEMS_IDLE, 10 * MS, 9 * MS, MS, 0, 0);
	item(f, gpu, ITEMS_IDLE, 30 * MS, 2 * MS, 2 * MS, 0, 0);
	item(f, gpu, ITEMS_IDLE, 40 * MS, 3 * MS, 2 * MS, 0, 0);
	/* function, number, wait, the last one: rank 1 is the process with thread 8 */
	item(f, ranks[0], ITEMS_COLLECTIVES, 10 * MS, 9 * MS, 0, MS, 2);
	item(f, ranks[0], ITEMS_COLLECTIVES, 20 * MS, 5 * MS, 0, 2 * MS, 2);
	item(f, ranks[0], ITEMS_COLLECTIVES, 30 * MS, 5 * MS, 0, 2 * MS, 2);
	item(f, ranks[1], ITEMS_COLLECTIVES, 40 * MS, 9 * MS, 0, 4 * MS, 1);
	item(f, ranks[1], ITEMS_COLLECTIVES, 60 * MS, 9 * MS, 0, 3 * MS, 0);
	item(f, ranks[1], ITEMS_COLLECTIVES, 70 * MS, 9 * MS, 0, 3 * MS, 3); /* no such rank */
	REPORT(f, &finding_kind, rows);
	leads_to(f, expected, ARRAY_SIZE(expected));
}

/* ---- what another reading leaves whole --------------------------------------------------------- */

/* Of the recording's second so much around each moment that 20,000 items of the commonest kind are in it. */
static void test_windows(void **state)
{
	struct filled *f = *state;
	struct finding_row rows[17] = {
		{"a", NULL, 7, 400 * MS, 1000, 0, 1},
		{"a", NULL, 7, 500 * MS, 400 * MS, 0, 2}, /* longer than half of that */
		{"a", NULL, 7, 600 * MS, 200 * MS, 0, 3},
	};
	static const struct {
		uint64_t calls, operations;
		uint64_t half_ns[3]; /* of each window */
	} cases[] = {
		{39999, 0, {250 * MS, 250 * MS, 300 * MS}},
		{39999, 79999, {125 * MS, 125 * MS, 125 * MS}},
		{4000000000, 0, {500 * US, 500 * US, 500 * US}},
	};

	assert_int_equal(f->a.model.last_ns - f->a.model.first_ns, 1000 * MS);
	for (size_t i = 3; i < 17; i++)
		rows[i] = rows[0];
	REPORT(f, &finding_kind, rows);
	assert_null(lanes_again(f->l, &f->report, &f->a)); /* it is all there */
	f->l->store.run_ns = 77;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct lanes *again;

		/* Either is enough. */
		f->l->store.merged_ns = i == 1 ? 0 : 5000;
		f->l->store.least_ns[ITEMS_OPS] = i == 0 ? 0 : 6000;
		f->l->store.least_ns[ITEMS_GAPS] = 7000;
		f->l->store.calls_seen = cases[i].calls;
		f->l->store.items_seen[ITEMS_OPS] = cases[i].operations;
		again = lanes_again(f->l, &f->report, &f->a);
		assert_non_null(again);
		assert_int_equal(again->store.n_windows, 16);
		assert_int_equal(again->store.merged_ns, f->l->store.merged_ns);
		assert_int_equal(again->store.run_ns, 77);
		assert_int_equal(again->store.least_ns[ITEMS_GAPS], 7000);
		for (size_t k = 0; k < 3; k++) {
			const struct window *w = &again->store.windows[k];

			assert_int_equal(at(f, rows[k].worst_at_ns) - w->begin_ns,
					 cases[i].half_ns[k]);
			assert_int_equal(w->end_ns - at(f, rows[k].worst_at_ns),
					 cases[i].half_ns[k]);
		}
		lanes_free(again);
	}
}

/* Findings that lead nowhere are no reason to read again. */
static void test_no_windows(void **state)
{
	struct filled *f = *state;
	const struct finding_row rows[] = {{"a", NULL, 0, 0, 0, 0, 1}};

	f->l->store.merged_ns = 5000;
	REPORT(f, &finding_kind, rows);
	assert_null(lanes_again(f->l, &f->report, &f->a));
}

/* ---- the finished timeline --------------------------------------------------------------------- */

static uint32_t gpu_of(const struct filled *f, const char *name)
{
	for (uint32_t i = 0; i < f->a.idle.n_gpus; i++)
		if (!strcmp(idle_named(&f->a.idle.gpus[i])->name, name))
			return i;
	fail_msg("no GPU %s", name);
	return 0;
}

static struct lane *add_stream(struct filled *f, const char *gpu, uint32_t stream)
{
	struct lane *lane = add_lane(f, LANE_STREAM, gpu_of(f, gpu), 1);

	lane->stream = stream;
	return lane;
}

/* The lanes of a process lie together: GPUs, streams, threads as they began; items in the order of their begins, the longer first. */
static void test_order(void **state)
{
	struct filled *f = *state;
	uint32_t a = gpu_of(f, "A"), b = gpu_of(f, "B");
	struct lane *second = add_stream(f, a < b ? "A" : "B", 2),
		    *last = add_stream(f, a < b ? "B" : "A", 1);
	struct lane *first = add_stream(f, a < b ? "A" : "B", 1);
	struct lane *high = add_lane(f, LANE_GPU, a < b ? b : a, 1),
		    *low = add_lane(f, LANE_GPU, a < b ? a : b, 1);
	const struct lane *order[] = {low, high, first, second, last, f->of[0], f->of[1]};
	uint32_t zero = process_of(f, 1)->trace->index ? 1 : 0;
	static const uint64_t begins[][2] = {{MS, 5}, {2 * MS, 9}, {2 * MS, 5}, {3 * MS, 1}};
	static const size_t mixed[] = {3, 2, 0, 1};

	for (size_t i = 0; i < ARRAY_SIZE(mixed); i++)
		item(f, low, ITEMS_IDLE, begins[mixed[i]][0], begins[mixed[i]][1], 0, 0, 0);
	lanes_report(f->l, &f->report, SIZE_MAX);
	for (uint32_t i = 0; i < ARRAY_SIZE(order); i++)
		assert_int_equal(order[i]->number, zero + i);
	assert_int_equal(f->of[2]->number, zero ? 0 : ARRAY_SIZE(order));
	for (size_t i = 0; i < ARRAY_SIZE(mixed); i++) {
		assert_int_equal(low->items[ITEMS_IDLE][i].begin_ns, at(f, begins[i][0]));
		assert_int_equal(low->items[ITEMS_IDLE][i].end_ns,
				 at(f, begins[i][0] + begins[i][1]));
	}
}

/* What takes too many bytes becomes less by half; if need be also what lies in windows. */
static void test_fewer_bytes(void **state)
{
	struct filled *f = *state;
	struct store *store = &f->l->store;
	const struct report_timeline *t = &f->report.timeline;
	size_t bytes;

	store->run_ns = 1000 * MS;
	for (unsigned int i = 0; i < 4096; i++)
		calls(f, f->of[0], i * 200 * US, (i * 7919 % 997 + 1) * 100, "cudaFree", 0);
	lanes_report(f->l, &f->report, SIZE_MAX);
	bytes = t->json_bytes + t->items_bytes;
	assert_int_equal(store->n_calls, 4096);
	lanes_report(f->l, &f->report, bytes);
	assert_int_equal(store->n_calls, 4096);
	lanes_report(f->l, &f->report, bytes - 1);
	assert_in_range(store->n_calls, 1024, 2048);
	bytes = t->json_bytes + t->items_bytes;
	for (size_t i = 0; i < f->of[0]->n_calls; i++)
		f->of[0]->calls[i].whole = true;
	store->windows[store->n_windows++] = (struct window){0, UINT64_MAX};
	lanes_report(f->l, &f->report, bytes - 1);
	assert_in_range(store->n_calls, 1, 1023);
	assert_int_equal(store->n_windows, 0);
	assert_in_range(t->json_bytes + t->items_bytes, 1, bytes - 1);
}

static json_t *encoded(struct filled *f)
{
	struct arena texts = {0};
	struct encoded encoded = lanes_encode(f->l, NULL, 0, &texts);
	json_t *root = json_loads(encoded.json, 0, NULL);

	assert_non_null(root);
	arena_release(&texts);
	free(encoded.json);
	free(encoded.bytes);
	return root;
}

static void says(const json_t *root, size_t i, const char *words)
{
	const char *text =
		json_string_value(json_array_get(json_object_get(root, "left_out"), i)) ?: "";

	if (strcmp(text, words))
		fail_msg("'%s', not '%s'", text, words);
}

/* What is not drawn, in sentences; nothing where all of it is. */
static void test_left_out(void **state)
{
	struct filled *f = *state;
	struct store *store = &f->l->store;
	json_t *root = encoded(f);
	char name[16];

	assert_int_equal(json_array_size(json_object_get(root, "left_out")), 0);
	json_decref(root);
	calls(f, f->of[0], MS, MS, "cudaFree", 0);
	calls(f, f->of[2], MS, MS, "cudaFree", 0);
	calls(f, f->of[2], 3 * MS, MS, "cudaFree", 0);
	f->of[2]->calls[0].count = 5;
	store->merged_ns = 5000;
	store->calls_seen = 1234567;
	store->least_ns[ITEMS_OPS] = 6000;
	store->least_ns[ITEMS_LOOKS] = 7000;
	store->dropped[ITEMS_WAITS] = 12;
	store->least_ns[ITEMS_WAITS] = 8000;
	store->least_ns[ITEMS_GAPS] = 9000;
	store->windows[store->n_windows++] = (struct window){at(f, MS), at(f, 3 * MS)};
	for (unsigned int i = 0; f->l->labels.n < LABELS_MOST; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		assert_int_not_equal(label_of(&f->l->labels, name), 0);
	}
	assert_int_equal(label_of(&f->l->labels, "one more"), 0);
	root = encoded(f);
	says(root, 0,
	     "Of 1,234,567 calls, 3 are drawn one by one or in groups: calls next to each other "
	     "within 5.000 us are one.");
	says(root, 1, "Operations of a GPU next to each other within 6.000 us are one.");
	says(root, 2, "What NVML says of GPUs is drawn as means of 7.000 us at most.");
	says(root, 3, "12 waits are not drawn: they are shorter than 8.000 us.");
	says(root, 4, "There are too many names: some items have none.");
	assert_int_equal(json_array_size(json_object_get(root, "left_out")), 5);
	assert_int_equal(json_integer_value(json_object_get(root, "merged_ns")), 5000);
	assert_int_equal(json_integer_value(json_object_get(root, "calls")), 1234567);
	assert_int_equal(json_integer_value(json_object_get(root, "shown")), 2);
	assert_int_equal(json_integer_value(json_object_get(root, "end_ns")), 1000 * MS);
	assert_int_equal(json_integer_value(json_object_get(
				 json_array_get(json_object_get(root, "whole"), 0), "end_ns")),
			 3 * MS);
	json_decref(root);
}

/* The report has GPUs in the order of their numbers, those of one number by their processes. */
static void test_lanes_of_gpus(void **state)
{
	static const struct {
		const char *name;
		unsigned int pid;
		json_int_t gpu;
		const char *lane, *brief;
	} gpus[] = {{"A", 1, 1, "GPU 0, A", "GPU 0"},
		    {"B", 1, 2, "GPU 1, B", "GPU 1"},
		    {"C", 2, 0, "GPU 0, C", "GPU 0"}};
	struct filled *f = *state;
	const json_t *lanes;
	json_t *root;

	for (size_t i = 0; i < ARRAY_SIZE(gpus); i++)
		add_lane(f, LANE_GPU, gpu_of(f, gpus[i].name), gpus[i].pid);
	add_stream(f, "B", 5);
	root = encoded(f);
	lanes = json_object_get(root, "lanes");
	for (size_t i = 0; i < ARRAY_SIZE(gpus); i++) {
		const json_t *lane = json_array_get(lanes, 3 + i); /* behind the threads */

		assert_string_equal(json_string_value(json_object_get(lane, "kind")), "gpu");
		assert_string_equal(json_string_value(json_object_get(lane, "name")), gpus[i].lane);
		assert_string_equal(json_string_value(json_object_get(lane, "short")),
				    gpus[i].brief);
		assert_int_equal(json_integer_value(json_object_get(lane, "gpu")), gpus[i].gpu);
		assert_int_equal(json_integer_value(json_object_get(lane, "pid")), gpus[i].pid);
	}
	assert_string_equal(json_string_value(json_object_get(json_array_get(lanes, 6), "name")),
			    "stream 5 of GPU 1");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(lanes, 6), "gpu")), 2);
	/* A thread is there from its first record on. */
	assert_int_equal(json_integer_value(json_object_get(json_array_get(lanes, 1), "first_ns")),
			 4 * US);
	assert_string_equal(json_string_value(json_object_get(json_array_get(lanes, 1), "short")),
			    "second");
	json_decref(root);
}

/* ---- what the main reading shows --------------------------------------------------------------- */

/* On a GPU's own lane what overlaps is one; what comes late, or right behind, is not. Each stream has all of its own. */
static void test_operations(void **state)
{
	static const struct {
		uint64_t begin_ns, end_ns;
		uint32_t stream, context;
	} operations[] = {{10, 20, 1, 1}, {15, 30, 2, 1}, {16, 25, 1, 2},
			  {30, 40, 1, 1}, {35, 38, 2, 1}, {5, 8, 1, 1}};
	static const uint64_t merged[][3] = {{10, 30, 0}, {30, 40, 0}, {5, 8, 3}};
	struct filled *f = *state;
	const struct listener *listener = lanes_listener(f->l);
	uint32_t process = process_of(f, 1)->trace->index, gpu = gpu_of(f, "B");
	const struct lane *lane;

	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		listener->on_gpu_op(listener->data,
				    &(struct gpu_event){.kind = SPY_GPU_MEMSET,
							.process = process,
							.tid = i ? 8 : 99,
							.begin_ns = at(f, operations[i].begin_ns),
							.end_ns = at(f, operations[i].end_ns),
							.submit_begin_ns = at(f, 4),
							.stream = operations[i].stream,
							.context = operations[i].context,
							.amount = 3},
				    gpu);
	lane = f->l->gpus[gpu];
	assert_int_equal(lane->n_items[ITEMS_OPS], ARRAY_SIZE(merged));
	for (size_t i = 0; i < ARRAY_SIZE(merged); i++) {
		assert_int_equal(lane->items[ITEMS_OPS][i].begin_ns, at(f, merged[i][0]));
		assert_int_equal(lane->items[ITEMS_OPS][i].end_ns, at(f, merged[i][1]));
		assert_int_equal(lane->items[ITEMS_OPS][i].values[4], merged[i][2]);
	}
	assert_int_equal(f->l->store.n, 3 + 1 + 3); /* threads, the GPU, its streams */
	lane = f->l->store.all[4];
	assert_int_equal(lane->kind, LANE_STREAM);
	assert_int_equal(lane->index, gpu);
	assert_int_equal(lane->n_items[ITEMS_OPS], 3);
	/* Kind, the thread that submitted it, how long before; of one whose thread is unknown neither. */
	assert_int_equal(lane->items[ITEMS_OPS][0].values[2], 0);
	assert_int_equal(lane->items[ITEMS_OPS][0].values[3], 0);
	assert_int_equal(lane->items[ITEMS_OPS][1].values[1], SPY_GPU_MEMSET);
	assert_int_equal(lane->items[ITEMS_OPS][1].values[2], f->of[1]->thread->index + 1);
	assert_int_equal(lane->items[ITEMS_OPS][1].values[3], 30 - 4);
}

#define LANES_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LANES_TEST(test_calls),      LANES_TEST(test_no_losses),
		LANES_TEST(test_locks),      LANES_TEST(test_runs),
		LANES_TEST(test_windows),    LANES_TEST(test_no_windows),
		LANES_TEST(test_order),      LANES_TEST(test_fewer_bytes),
		LANES_TEST(test_left_out),   LANES_TEST(test_lanes_of_gpus),
		LANES_TEST(test_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
