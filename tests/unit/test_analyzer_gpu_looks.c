/*
 * tests/unit/test_analyzer_gpu_looks.c: what NVML says of GPUs, look by look, in one reading and in parts; and how long the GPU
 * worked at most by that (idle/gpu_looks.c), at each threshold.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "log_findings.h"
#include "analysis.h"
#include "base/jobs.h"

#define S (1000ull * MS)
#define TENTH (100ull * MS)

/* ---- looks become sums ------------------------------------------------------------------------- */

/* Two processes on one GPU, launches for 4 s. A look in the first second is counted for its utilisation alone; one without utilisation, not
 * at all; what it does not know is in no sum. */
static void make_log(struct log *log)
{
	static const char *const looks[2][6] = {
		{"500ms gpu_look device=0 busy=90 clock=7777 power=9 temperature=99 others=9 other_pid=1",
		 "1500ms gpu_look device=0 busy=20 clock=1000 clock_most=2000 reasons=5 power=300000 power_limit=700000 "
		 "temperature=60 others=2 other_pid=77 others_bytes=50 own_busy=10 others_busy=30 links=18 link_mbytes=100",
		 "2000ms gpu_look device=0 busy=255 clock=7777 power=9 temperature=99 others=9 other_pid=1",
		 "2500ms gpu_look device=0 busy=30 clock=1100 clock_most=2000 reasons=4 power_limit=600000 temperature=61 "
		 "links=12 link_mbytes=90",
		 "3000ms gpu_look device=0 clock=1200 clock_most=2000 others=1 others_bytes=70 links=6",
		 "3100ms gpu_look device=0 busy=10 reasons=2 others=5 other_pid=5 others_bytes=99 own_busy=7 known=0"},
		{"500ms gpu_look device=0 busy=95 clock=7777",
		 "2700ms gpu_look device=0 busy=40 clock=500 clock_most=1900 reasons=1 power=200000 power_limit=1 "
		 "temperature=59 others=3 other_pid=66 others_bytes=60 own_busy=1 others_busy=2 links=14 link_mbytes=95",
		 "3500ms gpu_look device=0 busy=94 reasons=9223372036854775808 others=1 other_pid=88 links=13",
		 "3600ms gpu_look device=1 busy=100 clock=7777 power=9 temperature=99 others=9 other_pid=1"},
	};

	log->used = 0;
	for (unsigned int i = 0; i < 2; i++) {
		add(log,
		    "trace app.%u pid=%u program=\"app\" hostname=\"box\" clock_source=\"tsc\" boot_id=\"b\" "
		    "start_realtime_ns=5000000000\n"
		    "slot 0\n1ms gpu device=0 cc_major=9 cc_minor=0 bytes=150 name=\"H200\" uuid=\"GPU-a\" pci=\"0\"\n",
		    100 + i, 100 + i);
		for (unsigned int k = 0; k < ARRAY_SIZE(looks[i]) && looks[i][k]; k++)
			add(log, "%s\n", looks[i][k]);
		add(log, "slot 1 tid=%u\n1ms thread tid=%u name=\"a\"\n", 100 + i, 100 + i);
		for (unsigned int k = 1; k <= 40; k++)
			add(log,
			    "%ums launch cudaLaunchKernel duration=3us stream=0x10\n"
			    "%ums copy cudaMemcpyAsync duration=9us stream=0x10 direction=%s src=device dst=%s bytes=30000\n",
			    100 * k, 100 * k + 10, i ? "d2d" : "d2h", i ? "device" : "pinned");
	}
}

static void check_looks(const struct gpu_looks *looks, uint64_t begin_ns)
{
	static const uint64_t limited[64] = {[0] = 2, [2] = 2, [63] = 1};

	assert_int_equal(looks->busy_percent_most, 95);
	assert_int_equal(looks->all_n, 8);
	assert_int_equal(looks->last_ns - begin_ns, 35 * TENTH);
	assert_int_equal(looks->n, 6);
	assert_int_equal(looks->busy_percent, 20 + 30 + 0 + 10 + 40 + 94);
	assert_int_equal(looks->begin_ns - begin_ns, 15 * TENTH);
	assert_int_equal(looks->end_ns - begin_ns, 35 * TENTH);
	assert_int_equal(looks->n_rest, 6);
	assert_int_equal(looks->clock, 1000 + 1100 + 1200 + 500);
	assert_int_equal(looks->clock_most, 3 * 2000 + 1900);
	assert_memory_equal(looks->limited, limited, sizeof(limited));
	assert_int_equal(looks->n_power, 2);
	assert_int_equal(looks->power, 500000);
	assert_int_equal(looks->power_limit_most, 700000);
	assert_int_equal(looks->temperature_most, 61);
	assert_int_equal(looks->links, 12);
	assert_int_equal(looks->link_mbytes, 90);
	assert_int_equal(looks->others_n, 4);
	assert_int_equal(looks->others_most, 3);
	assert_int_equal(looks->other_pid, 66);
	assert_int_equal(looks->others_bytes_most, 70);
	assert_int_equal(looks->shares_n, 2);
	assert_int_equal(looks->own_busy, 11);
	assert_int_equal(looks->others_busy, 32);
}

static void test_sums(void **state)
{
	static struct log log;
	char *dir = scratch_make(), path[256];
	const char *dirs[] = {dir};
	struct trace_set set;
	struct analysis a;

	(void)state;
	make_log(&log);
	snprintf(path, sizeof(path), "%s/log", dir);
	scratch_write(path, log.text, log.used);
	tt_make(path, dir);
	remove(path);
	for (unsigned int jobs = 1; jobs <= 2; jobs++) {
		setenv("CUDASPY_JOBS", jobs == 1 ? "1" : "2", 1);
		assert_int_equal(jobs_choose(NULL), 0);
		assert_int_equal(trace_set_open(&set, dirs, 1, NULL), 0);
		assert_int_equal(analysis_run(&a, &set, &(struct analysis_options){0}), 0);
		assert_int_equal(a.idle.n_gpus, 1);
		check_looks(&a.idle.gpus[0].looks, a.model.processes[0].first_ns - MS);
		analysis_release(&a);
		trace_set_release(&set);
	}
	scratch_remove(dir);
}

/* ---- what they prove --------------------------------------------------------------------------- */

/* How busy, at most: by the mean of five looks and more, with fewer by the busiest. */
static void test_busy(void **state)
{
	static const struct {
		uint64_t n, percent, most;
		double busy;
	} cases[] = {
		{5, 50, 90, 0.11}, {4, 40, 90, 0.91}, {5, 494, 100, 0.998}, {5, 495, 100, 1},
		{5, 0, 0, 0.01},   {4, 0, 98, 0.99},  {4, 0, 99, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct gpu_looks looks = {.n = cases[i].n,
						.busy_percent = cases[i].percent,
						.busy_percent_most = cases[i].most};
		double busy = gpu_looks_busy(&looks);

		assert_true(busy > cases[i].busy - 1e-9 && busy < cases[i].busy + 1e-9);
	}
}

static void test_others(void **state)
{
	struct gpu_looks looks = {.shares_n = 4, .others_busy = 100};

	(void)state;
	assert_true(gpu_looks_others(&looks) == -1);
	looks.shares_n = 5;
	assert_true(gpu_looks_others(&looks) == 0.2);
}

/* Of a phase of 10 s, or less: the kernels' time at most, and what is left for idle time beside copies. */
static void test_kernels(void **state)
{
	static const struct {
		uint64_t work_ms, n, percent, most, begin_ms,
			end_ms; /* its looks; its end is at 20 s */
		uint64_t all_n, last_ms;
		uint64_t kernels_ms;
	} cases[] = {
		/* The mean, of two looks and more that cover 80 % of the time, with the second before the first one. */
		{10000, 5, 50, 90, 13000, 20000, 0, 0, 1100},
		{10000, 5, 50, 90, 13001, 20000, 0, 0, 10000},
		{10000, 2, 50, 19, 13000, 20000, 2, 20000, 2000},
		{10000, 1, 50, 19, 13000, 20000, 1, 20000, 10000},
		{10000, 0, 0, 0, 0, 0, 0, 0, 10000},
		/* The busiest of three looks and more, for a second more, and all behind the last one. */
		{2000, 0, 0, 9, 0, 0, 3, 20000, 300},
		{2000, 0, 0, 9, 0, 0, 2, 20000, 2000},
		{2000, 0, 0, 9, 0, 0, 3, 19500, 800},
		{2000, 0, 0, 9, 0, 0, 3, 18301, 1999},
		{2000, 0, 0, 9, 0, 0, 3, 18299, 2000},
		{2000, 0, 0, 9, 0, 0, 3, 20001, 2000}, /* behind its end */
		{2000, 0, 0, 99, 0, 0, 3, 20000, 2000},
		/* The smaller one of both. */
		{10000, 5, 50, 9, 13000, 20000, 5, 20000, 1100},
		{10000, 5, 150, 19, 13000, 20000, 5, 20000, 2200},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t work_ns = cases[i].work_ms * MS,
			 left_ns = work_ns - cases[i].kernels_ms * MS;
		struct gpu_looks looks = {.n = cases[i].n,
					  .busy_percent = cases[i].percent,
					  .busy_percent_most = cases[i].most,
					  .begin_ns = cases[i].begin_ms * MS,
					  .end_ns = cases[i].end_ms * MS,
					  .all_n = cases[i].all_n,
					  .last_ns = cases[i].last_ms * MS};

		assert_in_range(gpu_looks_worked_ns(&looks, work_ns, 20 * S, 0),
				work_ns - left_ns - 1, work_ns - left_ns + 1);
		assert_in_range(gpu_looks_idle_ns(&looks, work_ns, 20 * S, 0), left_ns,
				left_ns + 1);
	}
}

/* Copies are no kernels: they leave less idle time. Of the GPU's own time those of pageable memory are none, for the host copies. */
static void test_copies(void **state)
{
	static const struct {
		uint64_t copies_ms, pinned_ms, fast_ms, worked_ms, idle_ms;
	} cases[] = {
		{0, 0, 0, 1100, 8900},     {300, 200, 0, 1300, 8600}, {300, 200, 50, 1350, 8550},
		{8900, 8900, 0, 10000, 0}, {8901, 8901, 0, 10000, 0}, {0, 0, 8899, 9999, 1},
		{8000, 0, 1000, 2100, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpu_looks looks = {.n = 5,
					  .busy_percent = 50,
					  .begin_ns = 13 * S,
					  .end_ns = 20 * S,
					  .copies_ns = cases[i].copies_ms * MS,
					  .pinned_ns = cases[i].pinned_ms * MS};
		uint64_t fast_ns = cases[i].fast_ms * MS;

		assert_int_equal(gpu_looks_worked_ns(&looks, 10 * S, 20 * S, fast_ns),
				 cases[i].worked_ms * MS);
		assert_int_equal(gpu_looks_idle_ns(&looks, 10 * S, 20 * S, fast_ns),
				 cases[i].idle_ms * MS);
	}
}

/* 3 % of the time may be gaps where NVML says 99 %: of five looks and more that cover the time, with no one else on the GPU. */
static void test_spare(void **state)
{
	static const struct {
		uint64_t n, percent, others_n, begin_ms;
		bool known;
	} cases[] = {
		{5, 495, 0, 13000, true},  {5, 494, 0, 13000, false}, {4, 400, 0, 13000, false},
		{5, 500, 1, 13000, false}, {5, 500, 0, 13001, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpu_looks looks = {.n = cases[i].n,
					  .busy_percent = cases[i].percent,
					  .others_n = cases[i].others_n,
					  .begin_ns = cases[i].begin_ms * MS,
					  .end_ns = 20 * S};

		assert_int_equal(gpu_looks_spare_ns(&looks, 10 * S),
				 cases[i].known ? 300 * MS : UINT64_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),   cmocka_unit_test(test_busy),
		cmocka_unit_test(test_others), cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_copies), cmocka_unit_test(test_spare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
