/*
 * tests/unit/test_analyzer_divide.c: how the time of one call is divided (account/divide.c), at each bound: by what was seen in it, what
 * such calls take, and what the call may have waited for. All times are microseconds.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "account/account.h"
#include "account/divide.h"
#include "as_record.h"

#define US 1000ull

static struct process process;
static struct thread thread = {.process = &process};
static struct lock lock;

struct scene {
	uint64_t duration;
	uint64_t lock, handover, ioctl, asleep; /* seen: of lock, while it was free */
	uint64_t window, not_running; /* of the scheduler's account */
	/* What such calls take: 10, nearly all no more than 17, where nothing else is said. */
	bool none; /* nothing is known of them */
	uint8_t source; /* 0: EXPECT_CLEAN */
	uint64_t expected, spread, most, kernel, samples, rested;
	uint8_t sort, what, contract; /* contract 0: ALLOC, unless it is about the host alone */
	bool host;
	bool work; /* the GPU has some */
	bool cold, after_pause, starts_up;
	/* MPS, of another user, as was seen then: before cuInit and after; that has returned. The call is from 5 on. */
	uint64_t before, after, init;
	bool own_user;
	/* What becomes of it. */
	uint64_t own, loading, intended, hidden, locks, module, no_cpu, unexplained, mps;
	uint64_t kernel_work;
	bool unknown;
};

static void add_wait(struct wait *waits, size_t *n, struct lock *of, uint8_t kind, uint64_t us,
		     uint64_t handover)
{
	if (us)
		waits[(*n)++] = (struct wait){
			.kind = kind, .lock = of, .ns = us * US, .handover_ns = handover * US};
}

static void is(const struct completed_call *f, enum bucket bucket, uint64_t us, size_t scene)
{
	if (f->bucket_ns[bucket] != us * US)
		fail_msg("scene %zu: bucket %d is %llu us, not %llu", scene, (int)bucket,
			 (unsigned long long)(f->bucket_ns[bucket] / US), (unsigned long long)us);
}

static void check(const struct scene *s, size_t number)
{
	struct wait waits[3];
	struct device_streams device = {.handed_over = s->work};
	struct model model = {.n_processes = 0};
	struct accounting a = {.model = &model, .work = {.devices = &device, .n_processes = 1}};
	struct thread_account c = {.waits = waits,
				   .sched_window_ns = s->window * US,
				   .not_running_ns = s->not_running * US,
				   .rested = s->after_pause,
				   .starts_up = s->starts_up};
	union spy_any raw = {.call_head = {.device = 0}};
	struct record record = *AS_RECORD(&raw);
	struct call_class class = {.source = s->source ?: EXPECT_CLEAN,
				   .expected_ns = (s->expected ?: 10) * US,
				   .spread_ns = s->spread * US,
				   .most_ns = s->most * US,
				   .kernel_ns = s->kernel * US,
				   .samples = s->samples ?: 100,
				   .rested_ns = s->rested * US};
	const struct gpu_waits may_wait = {.sort = s->sort, .what = s->what};
	struct completed_call f = {.thread = &thread,
				   .begin_ns = 5 * US,
				   .end_ns = (5 + s->duration) * US,
				   .expected_ns = 7 * US};

	process.mps_before = (struct mps){.ns = s->before * US,
					  .server = 77,
					  .uid = 1000,
					  .server_uid = s->own_user ? 1000 : 1001};
	process.mps.ns = s->after * US;
	process.init_ns = s->init * US;
	if (s->none) {
		class.source = EXPECT_NONE;
		class.expected_ns = 0;
	}
	add_wait(waits, &c.n_waits, &lock, SPY_WAIT_MUTEX, s->lock, s->handover);
	add_wait(waits, &c.n_waits, NULL, SPY_WAIT_IOCTL, s->ioctl, 0);
	add_wait(waits, &c.n_waits, NULL, SPY_WAIT_POLL, s->asleep, 0);
	record.contract = s->host ? SPY_CONTRACT_HOST : s->contract ?: SPY_CONTRACT_ALLOC;
	record.duration_ns = s->duration * US;
	assert_int_equal(divide(&a, &c, &record, &class, &may_wait, s->cold, &f), !s->unknown);
	is(&f, BUCKET_OWN, s->own, number);
	is(&f, BUCKET_LOADING, s->loading, number);
	is(&f, BUCKET_GPU_INTENDED, s->intended, number);
	is(&f, BUCKET_GPU_HIDDEN, s->hidden, number);
	is(&f, BUCKET_LOCK, s->locks, number);
	is(&f, BUCKET_IOCTL, s->module, number);
	is(&f, BUCKET_NOT_RUNNING, s->no_cpu, number);
	is(&f, BUCKET_UNEXPLAINED, s->unexplained, number);
	is(&f, BUCKET_MPS, s->mps, number);
	is(&f, BUCKET_QUEUE, 0, number);
	assert_int_equal(f.kernel_ns, s->kernel_work * US);
	assert_int_equal(f.expected_ns, (7 + s->kernel_work) * US);
	process = (struct process){.threads = NULL};
}

static void check_all(const struct scene *scenes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check(&scenes[i], i);
}

/* Up to half more than expected and 2 us, or what calls differ by, or what nearly none exceeds. */
static void test_own(void **state)
{
	static const struct scene scenes[] = {
		{.duration = 17, .own = 17},
		{.duration = 18, .own = 17, .unexplained = 1},
		{.duration = 30, .spread = 20, .own = 30},
		{.duration = 31, .spread = 20, .own = 30, .unexplained = 1},
		{.duration = 60, .most = 50, .own = 50, .unexplained = 10},
		{.duration = 40, .spread = 20, .most = 12, .own = 30, .unexplained = 10},
		{.duration = 100, .none = true, .own = 100},
		/* After a pause: 30 and half of that, and 2. */
		{.duration = 47, .rested = 30, .after_pause = true, .own = 47},
		{.duration = 48, .rested = 30, .after_pause = true, .own = 47, .unexplained = 1},
		{.duration = 47, .rested = 30, .own = 17, .unexplained = 30},
		{.duration = 47, .after_pause = true, .own = 17, .unexplained = 30},
	};

	(void)state;
	check_all(scenes, ARRAY_SIZE(scenes));
}

/* What was seen comes first; who was kept from running lost what nothing else explains, then what lay behind a release. */
static void test_seen(void **state)
{
	static const struct scene scenes[] = {
		{.duration = 30, .lock = 20, .own = 10, .locks = 20},
		{.duration = 30, .lock = 50, .locks = 30},
		{.duration = 100, .lock = 50, .ioctl = 70, .asleep = 9, .locks = 50, .module = 50},
		{.duration = 30,
		 .lock = 20,
		 .handover = 8,
		 .window = 30,
		 .not_running = 5,
		 .own = 10,
		 .locks = 15,
		 .no_cpu = 5},
		{.duration = 30,
		 .lock = 20,
		 .handover = 8,
		 .window = 30,
		 .not_running = 12,
		 .own = 10,
		 .locks = 12,
		 .no_cpu = 8},
		{.duration = 30,
		 .lock = 20,
		 .handover = 8,
		 .not_running = 12,
		 .own = 10,
		 .locks = 20},
		{.duration = 100,
		 .lock = 20,
		 .handover = 8,
		 .window = 100,
		 .not_running = 50,
		 .own = 17,
		 .locks = 20,
		 .no_cpu = 50,
		 .unexplained = 13},
		{.duration = 100,
		 .lock = 20,
		 .handover = 8,
		 .window = 100,
		 .not_running = 75,
		 .own = 10,
		 .locks = 15,
		 .no_cpu = 75},
		/* Of a window of 200 the half. */
		{.duration = 100,
		 .lock = 20,
		 .handover = 8,
		 .window = 200,
		 .not_running = 100,
		 .own = 17,
		 .locks = 20,
		 .no_cpu = 50,
		 .unexplained = 13},
		{.duration = 100, .window = 50, .not_running = 120, .own = 10, .no_cpu = 90},
		{.duration = 100, .asleep = 80, .own = 17, .unexplained = 83},
		{.duration = 100,
		 .asleep = 80,
		 .sort = GPU_WAIT_INTENDED,
		 .own = 10,
		 .intended = 90},
		{.duration = 100, .lock = 60, .asleep = 80, .locks = 60, .unexplained = 40},
	};

	(void)state;
	check_all(scenes, ARRAY_SIZE(scenes));
}

/* In the kernel module: up to half more than such calls are, it is what the call is made for. Who is there longer may
 * work for longer around it, too: 5 ms. */
static void test_kernel_module(void **state)
{
	static const struct scene scenes[] = {
		{.duration = 40,
		 .ioctl = 30,
		 .kernel = 20,
		 .own = 10,
		 .module = 30,
		 .kernel_work = 30},
		{.duration = 41,
		 .ioctl = 31,
		 .kernel = 20,
		 .own = 10,
		 .module = 31,
		 .kernel_work = 20},
		{.duration = 140,
		 .ioctl = 30,
		 .kernel = 20,
		 .own = 17,
		 .module = 30,
		 .unexplained = 93,
		 .kernel_work = 30},
		{.duration = 160,
		 .ioctl = 50,
		 .kernel = 20,
		 .own = 110,
		 .module = 50,
		 .kernel_work = 20},
		{.duration = 5065,
		 .ioctl = 50,
		 .kernel = 20,
		 .own = 5010,
		 .module = 50,
		 .unexplained = 5,
		 .kernel_work = 20},
		{.duration = 7050,
		 .ioctl = 50,
		 .kernel = 20,
		 .most = 6000,
		 .own = 6000,
		 .module = 50,
		 .unexplained = 1000,
		 .kernel_work = 20},
		{.duration = 60, .ioctl = 50, .own = 10, .module = 50},
		{.duration = 60,
		 .ioctl = 50,
		 .cold = true,
		 .own = 10,
		 .module = 50,
		 .kernel_work = 50},
		{.duration = 100, .ioctl = 50, .none = true, .own = 50, .module = 50},
	};

	(void)state;
	check_all(scenes, ARRAY_SIZE(scenes));
}

/* What such a call may have waited for. */
static void test_waits(void **state)
{
	static const struct scene scenes[] = {
		{.duration = 100, .sort = GPU_WAIT_INTENDED, .own = 10, .intended = 90},
		{.duration = 100,
		 .sort = GPU_WAIT_INTENDED,
		 .none = true,
		 .intended = 100,
		 .unknown = true},
		{.duration = 100,
		 .sort = GPU_WAIT_HIDDEN,
		 .what = GPU_WAIT_DEVICE,
		 .work = true,
		 .own = 10,
		 .hidden = 90},
		{.duration = 100,
		 .sort = GPU_WAIT_HIDDEN,
		 .what = GPU_WAIT_DEVICE,
		 .own = 17,
		 .unexplained = 83},
		{.duration = 100,
		 .sort = GPU_WAIT_HIDDEN,
		 .what = GPU_WAIT_STREAM,
		 .own = 10,
		 .hidden = 90},
		{.duration = 100, .sort = GPU_WAIT_NOT, .work = true, .own = 17, .unexplained = 83},
		{.duration = 100,
		 .sort = GPU_WAIT_QUEUE,
		 .work = true,
		 .own = 17,
		 .unexplained = 83},
		/* What it costs is unknown: 50. */
		{.duration = 100,
		 .sort = GPU_WAIT_HIDDEN,
		 .what = GPU_WAIT_STREAM,
		 .none = true,
		 .own = 50,
		 .hidden = 50,
		 .unknown = true},
		{.duration = 50,
		 .sort = GPU_WAIT_HIDDEN,
		 .what = GPU_WAIT_STREAM,
		 .none = true,
		 .own = 50},
		{.duration = 100,
		 .sort = GPU_WAIT_QUEUE,
		 .none = true,
		 .own = 100,
		 .unknown = true},
	};

	(void)state;
	check_all(scenes, ARRAY_SIZE(scenes));
}

/* A first call: all of it where the GPU is idle; else no more than such calls take, of few of them 5 ms, eight times a prior. */
static void test_cold(void **state)
{
	static const struct scene scenes[] = {
		{.duration = 6000, .cold = true, .own = 6000},
		{.duration = 6000, .cold = true, .sort = GPU_WAIT_QUEUE, .own = 6000},
		{.duration = 100,
		 .asleep = 30,
		 .cold = true,
		 .sort = GPU_WAIT_QUEUE,
		 .own = 70,
		 .unexplained = 30},
		{.duration = 6000,
		 .cold = true,
		 .work = true,
		 .sort = GPU_WAIT_QUEUE,
		 .none = true,
		 .own = 5000,
		 .hidden = 1000,
		 .unknown = true},
		{.duration = 100,
		 .cold = true,
		 .work = true,
		 .sort = GPU_WAIT_HIDDEN,
		 .none = true,
		 .own = 50,
		 .hidden = 50,
		 .unknown = true},
		{.duration = 6000, .cold = true, .work = true, .none = true, .own = 6000},
		{.duration = 200,
		 .cold = true,
		 .work = true,
		 .sort = GPU_WAIT_QUEUE,
		 .source = EXPECT_PRIOR,
		 .spread = 5,
		 .own = 120,
		 .hidden = 80},
		{.duration = 17, .cold = true, .work = true, .sort = GPU_WAIT_QUEUE, .own = 17},
		{.duration = 18,
		 .cold = true,
		 .work = true,
		 .sort = GPU_WAIT_QUEUE,
		 .own = 10,
		 .hidden = 8},
		{.duration = 9000,
		 .cold = true,
		 .work = true,
		 .sort = GPU_WAIT_QUEUE,
		 .expected = 6000,
		 .samples = 2,
		 .own = 5000,
		 .hidden = 4000},
		{.duration = 9000,
		 .cold = true,
		 .work = true,
		 .sort = GPU_WAIT_QUEUE,
		 .expected = 6000,
		 .samples = 3,
		 .own = 9000},
		{.duration = 100,
		 .cold = true,
		 .work = true,
		 .sort = GPU_WAIT_INTENDED,
		 .own = 10,
		 .intended = 90},
	};

	(void)state;
	check_all(scenes, ARRAY_SIZE(scenes));
}

/* What starts CUDA up is for that in the kernel module, and asleep; what loads code takes as long as the code wants. */
static void test_made_for(void **state)
{
	static const struct scene scenes[] = {
		{.duration = 100,
		 .ioctl = 40,
		 .asleep = 30,
		 .cold = true,
		 .starts_up = true,
		 .own = 100},
		{.duration = 100,
		 .ioctl = 40,
		 .asleep = 30,
		 .cold = true,
		 .contract = SPY_CONTRACT_INIT,
		 .own = 100},
		{.duration = 100,
		 .ioctl = 40,
		 .asleep = 30,
		 .cold = true,
		 .host = true,
		 .own = 100},
		{.duration = 100,
		 .ioctl = 40,
		 .asleep = 30,
		 .cold = true,
		 .own = 30,
		 .module = 40,
		 .unexplained = 30,
		 .kernel_work = 40},
		{.duration = 100,
		 .ioctl = 40,
		 .contract = SPY_CONTRACT_INIT,
		 .kernel = 40,
		 .own = 17,
		 .module = 40,
		 .unexplained = 43,
		 .kernel_work = 40},
		{.duration = 100, .ioctl = 40, .contract = SPY_CONTRACT_MODULE, .loading = 100},
		{.duration = 100, .ioctl = 40, .contract = SPY_CONTRACT_LIBRARY, .loading = 100},
		{.duration = 100,
		 .ioctl = 40,
		 .contract = SPY_CONTRACT_LAZY_LOAD,
		 .own = 10,
		 .loading = 90},
		{.duration = 100,
		 .contract = SPY_CONTRACT_LAZY_LOAD,
		 .none = true,
		 .own = 2,
		 .loading = 98},
		{.duration = 17, .contract = SPY_CONTRACT_LAZY_LOAD, .own = 17},
		{.duration = 100, .contract = SPY_CONTRACT_LAUNCH, .own = 17, .unexplained = 83},
	};

	(void)state;
	check_all(scenes, ARRAY_SIZE(scenes));
}

/* While the server of MPS is another user's, from what was seen before to what was seen after: no more than the call. */
static void test_mps(void **state)
{
	static const struct scene scenes[] = {
		{.duration = 100, .before = 1, .mps = 100},
		{.duration = 100, .before = 1, .own_user = true, .own = 17, .unexplained = 83},
		{.duration = 100,
		 .before = 1,
		 .after = 50,
		 .mps = 45,
		 .own = 17,
		 .unexplained = 38},
		{.duration = 100,
		 .before = 20,
		 .after = 50,
		 .mps = 30,
		 .own = 17,
		 .unexplained = 53},
		{.duration = 100,
		 .before = 20,
		 .init = 60,
		 .mps = 40,
		 .own = 17,
		 .unexplained = 43},
		{.duration = 100,
		 .before = 20,
		 .after = 30,
		 .init = 60,
		 .mps = 10,
		 .own = 17,
		 .unexplained = 73},
		{.duration = 100, .before = 1, .after = 200, .mps = 100},
		{.duration = 100, .before = 1, .after = 4, .own = 17, .unexplained = 83},
		{.duration = 100, .before = 106, .own = 17, .unexplained = 83},
		{.duration = 100, .before = 1, .lock = 30, .asleep = 50, .mps = 70, .locks = 30},
		{.duration = 100,
		 .before = 1,
		 .after = 35,
		 .asleep = 50,
		 .mps = 30,
		 .own = 17,
		 .unexplained = 53},
	};

	(void)state;
	check_all(scenes, ARRAY_SIZE(scenes));
}

/* In which of its waits for locks it had no CPU is unknown: each has its share. */
static void test_lack(void **state)
{
	struct wait waits[] = {{.lock = &lock, .ns = 20 * US},
			       {.kind = SPY_WAIT_IOCTL, .ns = 30 * US},
			       {.lock = &lock, .ns = 10 * US}};
	struct device_streams device = {0};
	struct accounting a = {.work = {.devices = &device, .n_processes = 1}};
	struct thread_account c = {.waits = waits,
				   .n_waits = 3,
				   .sched_window_ns = 70 * US,
				   .not_running_ns = 15 * US};
	union spy_any raw = {.call_head = {.device = 0}};
	struct record record = *AS_RECORD(&raw);
	const struct call_class class = {.source = EXPECT_CLEAN, .expected_ns = 10 * US};
	const struct gpu_waits none = {.sort = GPU_WAIT_NOT};
	struct completed_call f = {.thread = &thread, .end_ns = 70 * US};

	(void)state;
	divide(&a, &c, &record, &class, &none, false, &f);
	assert_int_equal(waits[0].loss.lacked_ns, 10 * US);
	assert_int_equal(waits[1].loss.lacked_ns, 0);
	assert_int_equal(waits[2].loss.lacked_ns, 5 * US);
	assert_int_equal(f.bucket_ns[BUCKET_LOCK], 30 * US);
}

/* On a CPU while it waited, for certain: without what it may have run before the call, and its own work. */
static void test_busy_wait(void **state)
{
	static const struct {
		uint64_t window, running, busy;
	} cases[] = {{0, 70, 60},    {100, 70, 60},  {100, 10, 0}, {100, 9, 0},
		     {100, 200, 90}, {150, 100, 40}, {150, 60, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct thread_account c = {.sched_window_ns = cases[i].window * US,
						 .running_ns = cases[i].running * US};
		const struct completed_call f = {
			.end_ns = 100 * US,
			.bucket_ns = {[BUCKET_OWN] = 10 * US, [BUCKET_GPU_INTENDED] = 90 * US}};

		assert_int_equal(divide_busy_wait(&c, &f), cases[i].busy * US);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),           cmocka_unit_test(test_seen),
		cmocka_unit_test(test_kernel_module), cmocka_unit_test(test_waits),
		cmocka_unit_test(test_cold),          cmocka_unit_test(test_made_for),
		cmocka_unit_test(test_mps),           cmocka_unit_test(test_lack),
		cmocka_unit_test(test_busy_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
