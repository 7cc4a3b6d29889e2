/*
 * tests/unit/test_analyzer_job.c: what the report of a job says of its digests (analyzer/job/): which ranks, hosts and GPUs
 * differ, and the near twins where none does; what is missing; parts that are one rank; who shared a GPU; sums; two jobs
 * compared.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "digest_scene.h"
#include "job/diff.h"
#include "trace_text.h"

#define US 1000
#define MS 1000000

/* ---- what calls lose ------------------------------------------------------------------------- */

#define DIFFERENCE "about who host cause share_ppm cost_ns what evidence"

/* Ranks that never meet, each there for 10 s: the last one loses so much in its calls for one reason, the others so little. */
static void test_losses_of_calls(void **state)
{
	static const struct {
		unsigned int ranks;
		const char *column;
		unsigned int others_ms, ms;
		const char *why; /* of the worst call that is there; NULL: none */
		unsigned int longest_ms;
		const char *expected;
	} cases[] = {
		{6, "lock_ns", 100, 2000, NULL, 0,
		 "rank | rank 5 | a | cuda-lock | 190000 | 1900000000 | rank 5 (a) waits longer for "
		 "locks inside CUDA than the other ranks | 20 % of its time, the others 1.0 %\n"},
		{6, "not_running_ns", 100, 2000, NULL, 0,
		 "rank | rank 5 | a | not-running | 190000 | 1900000000 | rank 5 (a) is ready but on "
		 "no CPU for longer than the other ranks, in CUDA calls | 20 % of its time, the "
		 "others 1.0 %\n"},
		{6, "ioctl_ns", 100, 2000, NULL, 0,
		 "rank | rank 5 | a | kernel-module | 190000 | 1900000000 | rank 5 (a) is longer in "
		 "NVIDIA's kernel module than the other ranks | 20 % of its time, the others 1.0 "
		 "%\n"},
		/* more, by a twentieth of the time */
		{6, "lock_ns", 100, 600, NULL, 0,
		 "rank | rank 5 | a | cuda-lock | 50000 | 500000000 | rank 5 (a) waits longer for "
		 "locks inside CUDA than the other ranks | 6.0 % of its time, the others 1.0 %\n"},
		{6, "lock_ns", 100, 599, NULL, 0, ""},
		/* three times what is usual */
		{6, "lock_ns", 300, 900, NULL, 0,
		 "rank | rank 5 | a | cuda-lock | 60000 | 600000000 | rank 5 (a) waits longer for "
		 "locks inside CUDA than the other ranks | 9.0 % of its time, the others 3.0 %\n"},
		{6, "lock_ns", 300, 899, NULL, 0, ""},
		/* no few long calls */
		{6, "lock_ns", 100, 2000, "locks", 112,
		 "rank | rank 5 | a | cuda-lock | 190000 | 1900000000 | rank 5 (a) waits longer for "
		 "locks inside CUDA than the other ranks | 20 % of its time, the others 1.0 %\n"},
		{6, "lock_ns", 100, 2000, "locks", 113, ""},
		{6, "lock_ns", 100, 2000, "kernel module", 113,
		 ""}, /* the longest that is not there */
		/* of two it is unknown which one is usual */
		{3, "lock_ns", 100, 2000, NULL, 0,
		 "rank | rank 2 | a | cuda-lock | 190000 | 1900000000 | rank 2 (a) waits longer for "
		 "locks inside CUDA than the other ranks | 20 % of its time, the others 1.0 %\n"},
		{2, "lock_ns", 100, 2000, NULL, 0, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scene s = {0};

		for (unsigned int k = 0; k < cases[i].ranks; k++) {
			bool last = k + 1 == cases[i].ranks;

			rank(&s, "rank_1=%u host=a span_ns=10s", k + 1);
			row(&s, "roles", "role=main %s=%ums", cases[i].column,
			    last ? cases[i].ms : cases[i].others_ms);
			if (cases[i].why)
				row(&s, "worst", "why='%s' lost_ns=%ums", cases[i].why,
				    cases[i].longest_ms);
		}
		scene_shows(&s, "differences", DIFFERENCE, cases[i].expected);
	}
}

/* Ranks that differ from each other anyhow: their median is 100 ms, and they are away from it by 80 ms. */
static void test_far_from_the_rest(void **state)
{
	static const unsigned int ms[] = {20, 20, 100, 100, 180, 180};
	struct scene s = {0};

	(void)state;
	for (unsigned int far = 0; far < 2; far++) {
		for (unsigned int k = 0; k < 7; k++) {
			rank(&s, "rank_1=%u host=a span_ns=10s", k + 1);
			row(&s, "roles", "role=main lock_ns=%ums", k < 6 ? ms[k] : 810 + far);
		}
		scene_shows(&s, "differences", "who share_ppm",
			    far ? "rank 6 | 71100\n" : ""); /* 6 * 1.48 * 8000 */
	}
}

/* Of a rank in parts, and one whose threads, and whose dormant times, count: 2 s of 10 s. One reason is enough for a rank. */
static void test_losses_are_added_up(void **state)
{
	struct scene s = {0};

	(void)state;
	for (unsigned int k = 0; k < 4; k++) {
		rank(&s, "rank_1=%u host=a span_ns=10s", k + 1);
		row(&s, "roles", "role=main lock_ns=100ms ioctl_ns=100ms");
	}
	rank(&s, "rank_1=5 host=a begin_ns=1s span_ns=20s dormant_ns=10s");
	row(&s, "roles", "role=main lock_ns=1500ms ioctl_ns=3s");
	row(&s, "roles", "role=loader lock_ns=500ms");
	row(&s, "worst", "why=locks lost_ns=20ms");
	row(&s, "worst", "why='kernel module' lost_ns=3s");
	for (unsigned int part = 1; part < 3; part++) {
		rank(&s, "rank_1=6 host=a begin_ns=%us span_ns=5s", 10 * part);
		row(&s, "parts", "recording=r first=%u last=%u parts=1 lasted_ns=5s", part, part);
		row(&s, "roles", "role=main not_running_ns=1s");
		row(&s, "worst", "why='not running' lost_ns=%ums", 10 * part);
	}
	scene_shows(&s, "differences", "who cause share_ppm cost_ns",
		    "rank 5 | not-running | 200000 | 2000000000\n"
		    "rank 4 | cuda-lock | 190000 | 1900000000\n");
}

/* ---- GPUs by their own times ----------------------------------------------------------------- */

/* Operations of 10 us on all GPUs but the last one. */
static void test_slow_gpus(void **state)
{
	static const struct {
		unsigned int ranks, others, operations, us;
		bool exact;
		const char *expected;
	} cases[] = {
		{5, 1000, 1000, 13000, true,
		 "gpu | GPU-4 | a | gpu-times | 300 | 3000000 | the GPU of rank 4 (a, GPU-4) takes "
		 "longer for each operation | 13.00 us on average, the other GPUs 10.00 us\n"},
		{5, 1000, 1000, 13000, false, ""},
		{3, 1000, 1000, 13000, true,
		 "gpu | GPU-2 | a | gpu-times | 300 | 3000000 | the GPU of rank 2 (a, GPU-2) takes "
		 "longer for each operation | 13.00 us on average, the other GPUs 10.00 us\n"},
		{2, 1000, 1000, 13000, true, ""},
		/* as much to do, within a twentieth */
		{5, 1000, 1050, 13650, true,
		 "gpu | GPU-4 | a | gpu-times | 315 | 3150000 | the GPU of rank 4 (a, GPU-4) takes "
		 "longer for each operation | 13.00 us on average, the other GPUs 10.00 us\n"},
		{5, 1000, 1051, 13663, true, ""},
		{5, 1000, 950, 12350, true,
		 "gpu | GPU-4 | a | gpu-times | 285 | 2850000 | the GPU of rank 4 (a, GPU-4) takes "
		 "longer for each operation | 13.00 us on average, the other GPUs 10.00 us\n"},
		{5, 1000, 949, 12337, true, ""},
		/* a fifth longer */
		{5, 1000, 1000, 12000, true,
		 "gpu | GPU-4 | a | gpu-times | 200 | 2000000 | the GPU of rank 4 (a, GPU-4) takes "
		 "longer for each operation | 12.00 us on average, the other GPUs 10.00 us\n"},
		{5, 2000, 2000, 23998, true, ""},
		/* 2 ms in all */
		{5, 700, 700, 9030, true,
		 "gpu | GPU-4 | a | gpu-times | 203 | 2030000 | the GPU of rank 4 (a, GPU-4) takes "
		 "longer for each operation | 12.90 us on average, the other GPUs 10.00 us\n"},
		{5, 700, 700, 8960, true, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scene s = {0};

		for (unsigned int k = 0; k < cases[i].ranks; k++) {
			bool last = k + 1 == cases[i].ranks;

			rank(&s, "rank_1=%u host=a span_ns=10s", k + 1);
			row(&s, "gpus", "uuid=GPU-%u exact=%u own_ns=%uus own_operations=%u", k,
			    cases[i].exact, last ? cases[i].us : 10 * cases[i].others,
			    last ? cases[i].operations : cases[i].others);
		}
		scene_shows(&s, "differences", DIFFERENCE, cases[i].expected);
	}
}

/* ---- late at operations ---------------------------------------------------------------------- */

#define STEP_NS (10 * (uint64_t)MS)
#define STEPS 100
#define SAMPLED 1024 /* of a rank: there may be more */
#define EPOCH_NS (1000 * (uint64_t)1000 * MS)

/* A job in which all meet each 10 ms. */
struct meeting {
	unsigned int ranks, hosts; /* ranks of a host follow each other */
	unsigned int steps; /* if not STEPS */
	unsigned int all; /* operations, of which steps are a sample; if not the same */
	uint64_t late_ns[16][SAMPLED];
	bool by_gpu[16]; /* it submits in time */
	unsigned int work[16]; /* operations of its GPU, if not 3 */
	uint64_t slow_ns[SAMPLED]; /* by so much the step is longer */
	int64_t clock_ns[16]; /* of a host: off by */
};

/* 60 us behind the last one all have their data. */
static void meets(struct scene *s, const struct meeting *m, unsigned int k, unsigned int step,
		  uint64_t at_ns)
{
	uint64_t late_ns = m->late_ns[k][step], last_ns = 0;
	uint64_t submit_ns = at_ns + (m->by_gpu[k] ? 0 : late_ns), begin_ns = at_ns + late_ns;

	for (unsigned int i = 0; i < m->ranks; i++)
		last_ns = max_u64(last_ns, m->late_ns[i][step]);
	row(s, "meetings",
	    "key=%u comm=7 function=%u bytes=4096 submit_ns=%llu submitted_ns=%llu begin_ns=%llu "
	    "took_ns=%llu host_1_ns=%llu host_error_ns=1000 period_ns=%llu work=%u first=%u "
	    "cause_a=python ns_a=%llu place='line %u'",
	    step + 1, SPY_NCCL_ALL_REDUCE, (unsigned long long)submit_ns,
	    (unsigned long long)submit_ns + 4 * US, (unsigned long long)begin_ns + 10 * US,
	    (unsigned long long)(last_ns - late_ns + 60 * US),
	    (unsigned long long)begin_ns + 10 * US + 1,
	    (unsigned long long)(step ? STEP_NS + m->slow_ns[step] : 0), m->work[k] ?: 3, !step,
	    (unsigned long long)(9 * MS + (m->by_gpu[k] ? 0 : late_ns)), k);
}

static void tell_meetings(struct scene *s, const struct meeting *m)
{
	unsigned int steps = m->steps ?: STEPS;

	for (unsigned int k = 0; k < m->ranks; k++) {
		unsigned int host = k * m->hosts / m->ranks;
		uint64_t base_ns = EPOCH_NS + (uint64_t)m->clock_ns[host], at_ns = 0;

		rank(s,
		     "rank_1=%u host=%c span_ns=%us begin_ns=%llu base_ns=%llu timer_base_ns=%us "
		     "operations=%u timed=%u",
		     k + 1, 'a' + host, steps > STEPS ? 40 : 2, (unsigned long long)base_ns,
		     (unsigned long long)base_ns, k + 5, m->all ?: steps, m->all ?: steps);
		row(s, "gpus", "uuid=GPU-%u", k);
		for (unsigned int step = 0; step < steps; step++) {
			at_ns += m->slow_ns[step];
			meets(s, m, k, step, at_ns);
			at_ns += STEP_NS;
		}
	}
}

/* These come 1.0 to 1.4 ms late, now one and now another the latest. */
static void come_late(struct meeting *m, unsigned int from, unsigned int to)
{
	for (unsigned int k = from; k < to; k++)
		for (unsigned int step = 0; step < STEPS; step++)
			m->late_ns[k][step] = MS + (k + step) % 5 * 100 * US;
}

/* All ranks of the second host, whose clock is 5 ms ahead. Each was the last one 20 times, by 1.4 ms, and else 1.15 ms late. */
static void test_late_host(void **state)
{
	struct meeting m = {.ranks = 10, .hosts = 2, .clock_ns = {0, 5 * MS}};
	struct scene s = {0};
	char *text;
	json_t *root;

	(void)state;
	come_late(&m, 5, 10);
	tell_meetings(&s, &m);
	text = scene_report(&s, "json");
	root = json_loads(text, 0, NULL);
	shows(root, "differences", DIFFERENCE,
	      "host | b | b | python | 119951 | 120000000 | host b: its ranks come late to "
	      "collectives: running Python | 5 of its 5 ranks, 1.198 ms behind the middle of all "
	      "ranks on average, most at line 5; about 12 % of their time\n");
	shows(root, "ranks",
	      "rank met operations last late_ns waited_ns late_each_ns cause place from_ns "
	      "until_ns align_error_ns",
	      "5 | 100 | 100 | 20 | 28000000 | 20000000 | 1200000 | python | line 5 | 0 | 2000000000 "
	      "| 0\n"
	      "6 | 100 | 100 | 20 | 28000000 | 20000000 | 1200000 | python | line 6 | 0 | 2000000000 "
	      "| 0\n"
	      "7 | 100 | 100 | 20 | 28000000 | 20000000 | 1200000 | python | line 7 | 0 | 2000000000 "
	      "| 0\n"
	      "8 | 100 | 100 | 20 | 28000000 | 20000000 | 1200000 | python | line 8 | 0 | 2000000000 "
	      "| 0\n"
	      "9 | 100 | 100 | 20 | 28000000 | 20000000 | 1200000 | python | line 9 | 0 | 2000000000 "
	      "| 0\n"
	      "0 | 100 | 100 | 0 | 0 | 140000000 | 0 | - | - | 0 | 2000000000 | 0\n"
	      "1 | 100 | 100 | 0 | 0 | 140000000 | 0 | - | - | 0 | 2000000000 | 0\n"
	      "2 | 100 | 100 | 0 | 0 | 140000000 | 0 | - | - | 0 | 2000000000 | 0\n"
	      "3 | 100 | 100 | 0 | 0 | 140000000 | 0 | - | - | 0 | 2000000000 | 0\n"
	      "4 | 100 | 100 | 0 | 0 | 140000000 | 0 | - | - | 0 | 2000000000 | 0\n");
	shows(root, "hosts", "host ranks clock_ns clock_error_ns",
	      "a | 5 | 0 | 0\nb | 5 | 5000000 | 0\n");
	shows(root, "job",
	      "ranks hosts gpus compared unaligned typical_ns align_error_ns duration_ns",
	      "10 | 2 | 10 | 100 | 0 | 10000000 | 0 | 2000000000\n");
	json_decref(root);
	free(text);
	scene_end(&s);
}

/* Which ranks are late, and what is said to differ. */
static void test_late_ranks(void **state)
{
	static const struct {
		unsigned int hosts, from, to;
		const char *expected;
	} cases[] = {
		{2, 6, 10, "host | b\n"}, /* four of its five */
		{2, 7, 10, "rank | rank 7\nrank | rank 8\nrank | rank 9\n"},
		{1, 6, 10, "rank | rank 6\nrank | rank 7\nrank | rank 8\nrank | rank 9\n"},
		{10, 8, 10, "rank | rank 8\nrank | rank 9\n"}, /* a host of one rank */
		{2, 0, 0, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct meeting m = {.ranks = 10, .hosts = cases[i].hosts};
		struct scene s = {0};

		come_late(&m, cases[i].from, cases[i].to);
		tell_meetings(&s, &m);
		scene_shows(&s, "differences", "about who", cases[i].expected);
	}
}

/* Of 2048 operations half are there: 0.2 ms in each of these is 2 % of 10 ms, which is no more; in all of them it is 4 %. */
static void test_sampled(void **state)
{
	static struct meeting m = {.ranks = 3, .hosts = 1, .steps = SAMPLED};

	(void)state;
	for (unsigned int step = 0; step < SAMPLED; step++)
		m.late_ns[2][step] = (190 + step % 5 * 5) * US; /* 200 on average */
	for (unsigned int half = 0; half < 2; half++) {
		struct scene s = {0};

		m.all = half ? 2 * SAMPLED : SAMPLED;
		tell_meetings(&s, &m);
		scene_shows(&s, "differences", "who cause cost_ns",
			    half ? "rank 2 | python | 409580000\n" : "");
	}
}

/* Two ranks are late by 5 ms in one of 16 steps each, far more than what is chance: rank 0 is late by so much in all of them. */
static void test_late_now_and_then(void **state)
{
	static struct meeting m = {.ranks = 10, .hosts = 1, .steps = SAMPLED};

	(void)state;
	for (unsigned int chance = 0; chance < 2; chance++) {
		struct scene s = {0};

		for (unsigned int step = 0; step < SAMPLED; step++) {
			m.late_ns[0][step] = chance ? 600 * US : 20 * US;
			m.late_ns[3][step] = step % 16 == 4 ? 5 * MS : 0;
			m.late_ns[7][step] = step % 16 == 12 ? 5 * MS : 0;
		}
		tell_meetings(&s, &m);
		scene_shows(&s, "differences", "who cause",
			    chance ? "rank 0 | python\n" : "rank 3 | python\nrank 7 | python\n");
	}
}

/* It submits in time, and its GPU begins late: with as much work as the others' it is the GPU, with more it is the work. */
static void test_late_gpu(void **state)
{
	(void)state;
	for (unsigned int more = 0; more < 2; more++) {
		struct meeting m = {
			.ranks = 10, .hosts = 2, .by_gpu[3] = true, .work[3] = more ? 9 : 3};
		struct scene s = {0};

		come_late(&m, 3, 4);
		tell_meetings(&s, &m);
		scene_shows(&s, "differences", "about who gpu host cause cost_ns",
			    more ? "rank | rank 3 | GPU-3 | a | gpu-work | 120000000\n"
				 : "gpu | GPU-3 | GPU-3 | a | slow-gpu | 120000000\n");
	}
}

/* A step takes 40 ms more for all, another one for rank 2 is late by 30 ms; one is but half as long again. */
static void test_slow_steps(void **state)
{
	struct meeting m = {.ranks = 4, .hosts = 1};
	struct scene s = {0};

	(void)state;
	m.slow_ns[30] = 40 * MS;
	m.late_ns[2][60] = m.slow_ns[60] = 30 * MS;
	m.slow_ns[80] = 5 * MS;
	m.slow_ns[90] = 5 * MS - 1;
	tell_meetings(&s, &m);
	scene_shows(&s, "slow_steps", "at_ns period_ns typical_ns late_ns ranks bytes last cause",
		    "340000000 | 50000000 | 10000000 | 0 | 4 | 4096 | - | -\n"
		    "670000000 | 40000000 | 10000000 | 30000000 | 4 | 4096 | rank 2 | python\n"
		    "875000000 | 15000000 | 10000000 | 0 | 4 | 4096 | - | -\n");
}

/* Of operations of one kind that come three in a step only those that end it tell its length, if there are enough of these. */
static void test_typical_step(void **state)
{
	static const struct {
		unsigned int every;
		const char *typical;
	} cases[] = {{3, "100000000\n"}, {11, "100000000\n"}, {12, "10000000\n"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct meeting m = {.ranks = 3, .hosts = 1};
		struct scene s = {0};

		for (unsigned int step = cases[i].every; step < STEPS; step += cases[i].every)
			m.slow_ns[step] = 90 * MS;
		tell_meetings(&s, &m);
		scene_shows(&s, "job", "typical_ns", cases[i].typical);
	}
}

/* ---- what is missing -------------------------------------------------------------------------- */

/* Of five ranks one kind of loss, of which one has it in both of its parts; one that this version does not know; a rank that
 * is not there. */
static void test_losses(void **state)
{
	struct scene s = {0};

	(void)state;
	for (unsigned int k = 0; k < 6; k++) {
		rank(&s, "rank_1=%u world_size=7 host=a", k + 1);
		if (k == 1)
			row(&s, "parts", "recording=r first=1 last=1 parts=1");
		row(&s, "losses", "kind=%s count=%u", k < 5 ? "calls" : "later", 10 * (k + 1));
	}
	rank(&s, "rank_1=2 world_size=7 host=a");
	row(&s, "parts", "recording=r first=2 last=2 parts=1 newest=1");
	row(&s, "losses", "kind=calls count=5");
	scene_shows(
		&s, "losses", "ranks kind count text",
		"rank 6 | missing | 1 | missing: the job has 7 ranks, and there is no digest of "
		"these\n"
		"rank 0, rank 1, rank 2, rank 3 and 1 more | calls | 155 | records of calls "
		"missing\n"
		"rank 5 | later | 60 | later\n");
}

static void test_missing_ranks(void **state)
{
	static const struct {
		const char *there; /* of 32 */
		const char *expected;
	} cases[] = {
		{"1...1.11111111111111111111111111", "ranks 1-3, 5 | 4\n"},
		{"11111111111111111111111111111111", ""},
		{"1111111111111111111111111111111.", "rank 31 | 1\n"},
		{"1111111111111111111111111111....", "ranks 28-31 | 4\n"},
		{"1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.",
		 "ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, and 4 more | 16\n"},
		{"1.1.1.1.1.1.1.1.1.1.1.1.11111111",
		 "ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23 | 12\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scene s = {0};

		for (unsigned int k = 0; k < 32; k++)
			if (cases[i].there[k] == '1')
				rank(&s, "rank_1=%u world_size=32 host=a", k + 1);
		scene_shows(&s, "losses", "ranks count", cases[i].expected);
	}
}

/* Which parts of their recordings are here, and what times they are of. */
static void test_parts(void **state)
{
	struct scene s = {0};
	char *text;
	json_t *root;

	(void)state;
	rank(&s, "rank_1=1 host=a begin_ns=100s span_ns=2s");
	row(&s, "parts", "recording=r first=1 last=2 parts=2 lasted_ns=2s removed_calls=3");
	rank(&s, "rank_1=1 host=a begin_ns=103s span_ns=1s");
	row(&s, "parts", "recording=r first=4 last=4 parts=1 newest=1 lasted_ns=1s");
	rank(&s, "rank_1=2 host=a begin_ns=100s span_ns=2s");
	row(&s, "parts", "recording=q first=1 last=2 parts=2 lasted_ns=2s");
	rank(&s, "rank_1=2 host=a begin_ns=102s span_ns=2s");
	row(&s, "parts",
	    "recording=q first=3 last=4 parts=2 newest=1 lasted_ns=2s removed_calls=7");
	rank(&s, "rank_1=3 host=a begin_ns=100s span_ns=4s");
	row(&s, "parts", "recording=p first=2 last=4 parts=3 lasted_ns=4s");
	rank(&s, "rank_1=4 host=a begin_ns=100s span_ns=4s");
	row(&s, "parts", "recording=o first=1 last=4 parts=3 newest=1 lasted_ns=4s");
	rank(&s, "rank_1=5 host=a begin_ns=100400ms span_ns=4s"); /* a tenth of what most cover */
	rank(&s, "rank_1=6 host=a begin_ns=100401ms span_ns=4s");
	text = scene_report(&s, "json");
	root = json_loads(text, 0, NULL);
	shows(root, "ranks", "rank parts parts_of from_ns until_ns span_ns",
	      "0 | parts 1-2, 4 | 4 | 0 | 4000000000 | 4000000000\n"
	      "1 | parts 1-4 | 4 | 0 | 4000000000 | 4000000000\n"
	      "2 | parts 2-4 | - | 0 | 4000000000 | 4000000000\n"
	      "3 | parts 1-4 | 4 | 0 | 4000000000 | 4000000000\n"
	      "4 | - | - | 400000000 | 4400000000 | 4000000000\n"
	      "5 | - | - | 401000000 | 4401000000 | 4000000000\n");
	shows(root, "losses", "ranks kind count text",
	      "rank 0, rank 2, rank 3 | parts | 3 | recorded in parts, and not all are here: rank 0 "
	      "has parts 1-2, 4 of 4; rank 2 has parts 2-4 of 5 or more; rank 3 has parts 1-4 of 4\n"
	      "rank 0, rank 1 | removed | 10 | records of calls in parts that the recorder has "
	      "deleted (--keep, --keep-for): rank 0 3; rank 1 7\n"
	      "rank 5 | times | 1 | ranks cover different times (most are there from 0 ns to "
	      "4.000 s), and are compared where they meet: rank 5 from 401.0 ms to 4.401 s\n");
	json_decref(root);
	free(text);
	scene_end(&s);
}

/* Which parts of its recording a trace is: a part alone says so, too, and the first one when it has ended. */
static void test_parts_of_traces(void **state)
{
	static const struct {
		const char *trace, *parts;
	} cases[] = {
		{"trace a.1 pid=1 program=\"a\" of=a part=4\nslot 0\n30ms part state=begin number=4 since=30ms\n",
		 "4-4 of 1, newest 1\n"},
		{"trace a.1 pid=1 program=\"a\" of=a part=2\nslot 0\n10ms part state=begin number=2 since=10ms\n"
		 "20ms part state=end number=2 since=10ms calls=1\n",
		 "2-2 of 1, newest 0\n"},
		{"trace a.1 pid=1 program=\"a\" of=a\nslot 0\n20ms part state=end number=1 since=1us calls=1\n",
		 "1-1 of 1, newest 0\n"},
		{"trace a.1 pid=1 program=\"a\" of=a\nslot 0\n20ms note note=version text=\"x\"\n",
		 ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct digest *digest = digest_new();
		char *dir = scratch_make(), path[300], log[1000], seen[100] = "";
		struct digest_rank **ranks;
		struct digest_data data;
		size_t n;

		snprintf(path, sizeof(path), "%s/log", dir);
		snprintf(
			log, sizeof(log),
			"%sslot 1 tid=7\n15ms thread tid=7 name=\"a\"\n16ms call cuInit duration=9us\n",
			cases[i].trace);
		scratch_write(path, log, strlen(log));
		tt_make(path, dir);
		assert_int_equal(digest_traces(digest, (const char *[]){dir}, 1, NULL, NULL), 0);
		ranks = digest_ranks(digest, &n);
		digest_rank_data(digest, ranks[0], &data);
		for (uint32_t row = 0; row < data.tables[D_PART].n; row++)
			snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen),
				 "%u-%u of %u, newest %u\n",
				 (unsigned int)digest_cell(&data, D_PART, row, D_PART_first),
				 (unsigned int)digest_cell(&data, D_PART, row, D_PART_last),
				 (unsigned int)digest_cell(&data, D_PART, row, D_PART_parts),
				 (unsigned int)digest_cell(&data, D_PART, row, D_PART_newest));
		assert_string_equal(seen, cases[i].parts);
		digest_data_release(&data);
		free(ranks);
		digest_free(digest);
		scratch_remove(dir);
	}
}

/* Five ranks that begin 1 s after the others, as many processes of a job may, and more; the twin is no longer away. */
static void test_other_times(void **state)
{
	struct scene s = {0};

	(void)state;
	for (unsigned int more = 0; more < 2; more++) {
		for (unsigned int k = 0; k < 11; k++)
			rank(&s, "rank_1=%u host=a begin_ns=%ums span_ns=4s", k + 1,
			     100000 + (k < 6 ? 0 : 1000 + more));
		scene_shows(
			&s, "losses", "ranks kind count text",
			more ? "rank 6, rank 7, rank 8, rank 9 and 1 more | times | 5 | ranks "
			       "cover different times (most are there from 0 ns to 4.000 s), and "
			       "are compared where they meet: rank 6 from 1.001 s to 5.001 s; "
			       "rank 7 from 1.001 s to 5.001 s; rank 8 from 1.001 s to 5.001 s; "
			       "rank 9 from 1.001 s to 5.001 s; …\n"
			     : "");
	}
}

/* ---- who they are ----------------------------------------------------------------------------- */

static void test_names(void **state)
{
	struct scene s = {0};
	char *text;
	json_t *root;

	(void)state;
	rank(&s, "job=x rank_1=1 world_size=9 host=a boot=1111111122 program=train");
	rank(&s, "job=x rank_1=2 restarts=2 host=a boot=3333333344");
	rank(&s, "job=y rank_1=1 world_size=12 host=a place=p");
	rank(&s, "place=q program=tool pid=77 host=b");
	rank(&s, "place=r pid=78");
	text = scene_report(&s, "json");
	root = json_loads(text, 0, NULL);
	shows(root, "ranks", "name rank host program",
	      "rank 0 of job x | 0 | a (boot 11111111) | train\n"
	      "rank 0 of job y | 0 | a (boot unknown) | \n"
	      "rank 1 (start 3) of job x | 1 | a (boot 33333333) | \n"
	      "?.78 | - | unknown | \n"
	      "tool.77 | - | b | tool\n");
	shows(root, "hosts", "host ranks clock_error_ns",
	      "b | 1 | -\nunknown | 1 | -\na (boot 11111111) | 1 | -\na (boot 33333333) | 1 | -\n"
	      "a (boot unknown) | 1 | -\n");
	shows(root, "job", "name program ranks world_size hosts gpus missing",
	      "3 jobs, compared as one | tool | 5 | 12 | 5 | 0 | 0\n");
	json_decref(root);
	free(text);
	scene_end(&s);
}

/* What the headline says. */
static void test_headline(void **state)
{
	static const struct {
		unsigned int ranks, problems;
		bool differ;
		const char *says;
	} cases[] = {
		{1, 1, false,
		 "1 problem of the program; with one rank there is no other to compare it with"},
		{2, 0, false,
		 "no problem of the program; two ranks that have no collective operations in common "
		 "are not compared"},
		{3, 2, false,
		 "no rank, host or GPU differs from the rest; 2 problems of the program"},
		{3, 1, true,
		 "1 difference from the rest: rank 2 (a) waits longer for locks inside CUDA than the "
		 "other ranks; 1 problem of the program"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scene s = {0};

		for (unsigned int k = 0; k < cases[i].ranks; k++) {
			rank(&s,
			     "rank_1=%u host=a span_ns=%us calls=10 calls_ns=400ms lost_ns=100ms records=12 "
			     "cost_ppm=%u",
			     k + 1, 10 + k, 8001 + 5000 * k);
			row(&s, "roles", "role=main lock_ns=%ums",
			    cases[i].differ && k == 2 ? 4000 : 0);
			for (unsigned int p = 0; p < cases[i].problems; p++)
				row(&s, "sites",
				    "detector=pageable-copy line=%u file=a.c own_ns=1s weight_ns=1s",
				    p + 1);
			row(&s, "sites",
			    "detector=small-copies severity=1 line=1 file=a.c own_ns=1s weight_ns=1s");
		}
		scene_says(&s, cases[i].says);
		if (cases[i].ranks == 3) {
			scene_says(&s, "cost the programs 1.3 % of their time (median of 3 ranks "
				       "that measured it; 1.8 % at most)");
			scene_says(&s, "12.00 s, 36 records");
			scene_says(&s, "30 calls, 1.200 thread-seconds in them, 25 % of that lost");
		}
		scene_end(&s);
	}
	for (unsigned int more = 0; more < 2; more++) {
		struct scene s = {0};

		for (unsigned int k = 0; k < 256 + more; k++)
			rank(&s, "rank_1=%u host=a", k + 1);
		scene_says(&s, more ? "of so many ranks each keeps 1/2 of its rows"
				    : "256, on 1 host and 0 GPUs");
		scene_end(&s);
	}
}

/* ---- findings by place ------------------------------------------------------------------------ */

static void test_sites(void **state)
{
	struct scene s = {0};
	char *text;
	json_t *root;

	(void)state;
	for (unsigned int k = 0; k < 5; k++) {
		rank(&s, "rank_1=%u host=a", k + 1);
		if (!k)
			row(&s, "parts", "recording=r first=1 last=1 parts=1");
		if (k < 4)
			row(&s, "sites",
			    "detector=pageable-copy function=cudaMemcpy file=/x/a.c line=7 offset=%u "
			    "caller=load severity=%u count=10 own_ns=%ums others_ns=1ms gain_low_ns=1ms "
			    "gain_high_ns=2ms idle_gpu_ns=3ms weight_ns=%ums share_ppm=%u",
			    16 * k, k == 2, 5 - k, 5 - k, 1000 - k);
		row(&s, "sites",
		    "detector=later function=cudaFree module=lib.so offset=%u severity=1 "
		    "weight_ns=%ums own_ns=1ms",
		    k < 2 ? 16 : 32, k < 2 ? 20 : 1);
	}
	rank(&s, "rank_1=1 host=a");
	row(&s, "parts", "recording=r first=2 last=2 parts=1 newest=1");
	row(&s, "sites",
	    "detector=pageable-copy function=cudaMemcpy file=/x/a.c line=7 caller=load count=1 "
	    "own_ns=2ms weight_ns=2ms share_ppm=2000");
	text = scene_report(&s, "json");
	root = json_loads(text, 0, NULL);
	shows(root, "findings",
	      "rank id severity cost_ns gain_low_ns gain_high_ns own_ns others_ns idle_gpu_ns count "
	      "share_ppm ranks function line offset",
	      "1 | pageable-copy | problem | 20000000 | 4000000 | 8000000 | 16000000 | 4000000 | "
	      "12000000 | 41 | 2000 | 4 | cudaMemcpy | 7 | 0\n"
	      "2 | later | note | 2000000 | 0 | 0 | 2000000 | 0 | 0 | 0 | 0 | 2 | cudaFree | 0 | 16\n"
	      "3 | later | note | 3000000 | 0 | 0 | 3000000 | 0 | 0 | 0 | 0 | 3 | cudaFree | 0 | 32\n");
	shows(root, "findings", "what",
	      "in 4 ranks of 5, a problem in 3; most in rank 0 (a): 7.000 ms, rank 1 (a): 4.000 ms, "
	      "rank 2 (a): 3.000 ms\n"
	      "in 2 ranks of 5; most in rank 0 (a): 20.00 ms, rank 1 (a): 20.00 ms\n"
	      "in 3 ranks of 5; most in rank 2 (a): 1.000 ms, rank 3 (a): 1.000 ms, rank 4 (a): "
	      "1.000 ms\n");
	json_decref(root);
	free(text);
	scene_says(&s, "cudaMemcpy in load, a.c:7");
	scene_says(&s, "cudaFree, lib.so+0x20");
	scene_says(&s, "later, a note: of a later version of cudaspy");
	scene_end(&s);
}

/* ---- who shared a GPU ------------------------------------------------------------------------- */

/* On G two take turns; on H are two clients of an MPS server and one of another one; on K one is there in parts; two have
 * pipes in one folder on L; one had to wait for another user's server. */
static void test_sharing(void **state)
{
	static const struct {
		unsigned int rank, pid, begin_s, from_s, used_s;
		const char *more;
	} tenants[] = {
		{0, 10, 0, 0, 10, "uuid=G"},
		{1, 10, 0, 4, 10, "uuid=G"},
		{2, 12, 0, 0, 10, "uuid=H client=1 server=5"},
		{3, 13, 0, 1, 4, "uuid=H client=1 server=5 percentage=30"},
		{4, 14, 0, 2, 2, "uuid=H client=1 server=6"},
		{5, 15, 0, 0, 2, "uuid=K waited_ns=1s"},
		{5, 15, 10, 0, 2, "uuid=K waited_ns=2s"},
		{6, 16, 0, 11, 5, "uuid=K"},
		{7, 17, 0, 0, 9, "uuid=L client=1 directory=d"},
		{8, 18, 0, 8, 9, "uuid=L client=1 directory=d turn_ns=1500ms server_user=33"},
		{9, 19, 0, 0, 9, "uuid=M client=1 turn_ns=2s server_user=33"},
		{10, 20, 0, 9, 9, "uuid=M"}, /* behind it */
	};
	struct scene s = {0};
	char *text;
	json_t *root;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tenants); i++) {
		rank(&s, "rank_1=%u host=a begin_ns=%us", tenants[i].rank + 1,
		     tenants[i].begin_s + 100);
		if (tenants[i].rank == 5)
			row(&s, "parts", "recording=r first=%u last=%u parts=1",
			    tenants[i].begin_s + 1, tenants[i].begin_s + 1);
		row(&s, "tenants", "pid=%u from_ns=%us used_ns=%us %s", tenants[i].pid,
		    tenants[i].from_s, tenants[i].used_s, tenants[i].more);
	}
	text = scene_report(&s, "json");
	root = json_loads(text, 0, NULL);
	shows(root, "sharing", "rank uuid from_ns until_ns shared_ns turns_ns others how with",
	      "rank 0 (a) | G | 0 | 10000000000 | 6000000000 | 6000000000 | 1 | time slices | rank 1\n"
	      "rank 1 (a) | G | 4000000000 | 14000000000 | 6000000000 | 6000000000 | 1 | time slices "
	      "| rank 0\n"
	      "rank 2 (a) | H | 0 | 10000000000 | 4000000000 | 2000000000 | 2 | MPS, time slices | "
	      "rank 3 and 1 more\n"
	      "rank 3 (a) | H | 1000000000 | 5000000000 | 4000000000 | 2000000000 | 2 | MPS, time "
	      "slices | rank 2 and 1 more\n"
	      "rank 4 (a) | H | 2000000000 | 4000000000 | 2000000000 | 2000000000 | 2 | time slices "
	      "| rank 2 and 1 more\n"
	      "rank 5 (a) | K | 0 | 12000000000 | 1000000000 | 1000000000 | 1 | time slices | rank 6\n"
	      "rank 6 (a) | K | 11000000000 | 16000000000 | 1000000000 | 1000000000 | 1 | time "
	      "slices | rank 5\n"
	      "rank 7 (a) | L | 0 | 9000000000 | 1000000000 | 0 | 1 | MPS | rank 8\n"
	      "rank 8 (a) | L | 8000000000 | 17000000000 | 1000000000 | 0 | 1 | MPS | rank 7\n"
	      "rank 9 (a) | M | 0 | 9000000000 | 0 | 0 | 0 | another user's MPS | -\n");
	/* Those that took turns for a tenth of their time. */
	shows(root, "findings", "id severity ranks count", "time-slicing | note | 6 | 6\n");
	json_decref(root);
	free(text);
	scene_says(
		&s,
		"with rank 2 and 1 more; for 2.000 s another process had its time slices on this "
		"GPU; its calls waited for GPUs for 0 ns in all; its share is 30 % of the threads");
	scene_says(&s, "with rank 5; for 1.000 s another process");
	scene_says(
		&s,
		"with rank 7; in cuInit it waited for 1.500 s, until the MPS server had finished "
		"the processes of user 33");
	scene_end(&s);
}

/* ---- sums of all ranks ------------------------------------------------------------------------ */

static void test_sums(void **state)
{
	struct scene s = {0};
	char *text;
	json_t *root;

	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		rank(&s, "rank_1=%u host=a", k + 1);
		row(&s, "functions",
		    "function=cudaMalloc count=10 failed=%u total_ns=%ums longest_ns=%ums lost_ns=2ms "
		    "us_1024=6 us_16384=3 us_32768=1",
		    k, 100 + (k == 1), 20 + k);
		row(&s, "functions",
		    "function=cuMemAlloc_v2 nested=1 count=4 total_ns=3ms longest_ns=700 us_1=4");
	}
	row(&s, "functions",
	    "function=cudaFree count=2 total_ns=2ms longest_ns=9s us_2=1 us_more=1");
	row(&s, "functions", "count=1 total_ns=1");
	row(&s, "causes", "of=gpu cause=sleep place=a.py:3 count=2 ns=5ms longest_ns=4ms");
	row(&s, "causes", "of=thread cause=cpu count=1 ns=4ms longest_ns=4ms");
	row(&s, "causes", "count=7 ns=1ms");
	row(&s, "locks",
	    "place=heap kind=mutex function=cudaMalloc locks=2 waits=5 waited_ns=6ms longest_ns=3ms");
	row(&s, "edges",
	    "waiter=main waiter_function=cudaFree holder=loader holder_function=cudaMalloc "
	    "cause=ioctl waits=3 waited_ns=5ms");
	row(&s, "edges", "waiter=main inferred=1 waits=2 waited_ns=4ms");
	row(&s, "edges", "waits=1 waited_ns=3ms");
	rank(&s, "rank_1=4 host=a");
	row(&s, "causes", "of=gpu cause=sleep place=a.py:3 count=1 ns=7ms longest_ns=7ms");
	row(&s, "locks",
	    "place=heap kind=mutex function=cudaMalloc locks=1 waits=1 waited_ns=1ms longest_ns=1ms");
	text = scene_report(&s, "json");
	root = json_loads(text, 0, NULL);
	/* Half of 30 calls took 512 us to 1.024 ms, 99 in 100 16.384 ms to 32.768 ms, but none more than 22 ms. */
	shows(root, "functions",
	      "function nested count failed total_ns lost_ns median_ns p99_ns max_ns ranks most_rank",
	      "cudaMalloc | 0 | 30 | 3 | 301000000 | 6000000 | 768000 | 22000000 | 22000000 | 3 | rank 1\n"
	      "cuMemAlloc_v2, inside of others | 1 | 12 | 0 | 9000000 | 0 | 500 | 500 | 700 | 3 | rank 0\n"
	      "cudaFree | 0 | 2 | 0 | 2000000 | 0 | 1500 | 9000000000 | 9000000000 | 1 | rank 2\n"
	      "all others | 0 | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 1 | rank 2\n");
	shows(root, "causes", "of cause place count ns longest_ns ranks most_rank text",
	      "gpu | sleep | a.py:3 | 3 | 12000000 | 7000000 | 2 | rank 3 | GPUs idle: asleep (a.py:3)\n"
	      "thread | cpu | - | 1 | 4000000 | 4000000 | 1 | rank 2 | threads: computing on a CPU\n"
	      "- | - | - | 7 | 1000000 | 0 | 1 | rank 2 | all others\n");
	shows(root, "locks", "place kind function locks waits waited_ns longest_ns ranks most_rank",
	      "heap | mutex | cudaMalloc | 3 | 6 | 7000000 | 3000000 | 2 | rank 2\n");
	shows(root, "waits",
	      "waiter waiter_function holder holder_function cause inferred waits waited_ns ranks",
	      "main | cudaFree | loader | cudaMalloc | ioctl | 0 | 3 | 5000000 | 1\n"
	      "main | - | - | - | - | 1 | 2 | 4000000 | 1\n"
	      "- | - | - | - | - | 0 | 1 | 3000000 | 1\n");
	json_decref(root);
	free(text);
	scene_says(&s, "main in cudaFree for loader in cudaMalloc: ioctl");
	scene_says(&s, "main in ? for ? in ?");
	scene_end(&s);
}

/* ---- two jobs --------------------------------------------------------------------------------- */

/* json_decref frees it; ends both scenes. */
static json_t *compared(struct scene *a, struct scene *b)
{
	struct report report;
	struct job before, after;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *root;

	scene_add(a);
	scene_add(b);
	job_init(&before, a->digest);
	job_init(&after, b->digest);
	report_init(&report, JOB_DIFF_SCHEMA);
	job_diff_report(&report, &before, &after);
	assert_int_equal(renderer_show(renderer_find("json"), &report, out), 0);
	fclose(out);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	report_release(&report);
	job_release(&before);
	job_release(&after);
	free(text);
	scene_end(a);
	scene_end(b);
	return root;
}

/* What a rank pays for it on average, of 4 before and 5 behind: more by a fifth and by 1 ms, or not. */
static void test_changes_of_findings(void **state)
{
	static const struct {
		uint64_t before_ns, after_ns; /* of a rank */
	} sites[] = {
		{10 * MS, 12 * MS + 1}, {10 * MS, 12 * MS}, {2 * MS, 3 * MS + 1}, {2 * MS, 3 * MS},
		{12 * MS + 1, 10 * MS}, {12 * MS, 10 * MS}, {0, 5 * MS},          {4 * MS, 0}};
	struct scene scenes[2] = {{0}, {0}};
	json_t *root;

	(void)state;
	for (unsigned int b = 0; b < 2; b++)
		for (unsigned int k = 0; k < 4 + b; k++) {
			rank(&scenes[b],
			     "rank_1=%u host=a span_ns=%us calls=20 calls_ns=%us lost_ns=%us job=%s",
			     k + 1, b ? 8 : 9, b ? 5 : 4, b ? 1 : 2, b ? "new" : "old");
			for (size_t i = 0; i < ARRAY_SIZE(sites); i++) {
				uint64_t ns = b ? sites[i].after_ns : sites[i].before_ns;

				if (ns)
					row(&scenes[b], "sites",
					    "detector=d function=f file=/x/a.c line=%zu own_ns=%llu others_ns=100000 "
					    "weight_ns=1ms",
					    i + 1, (unsigned long long)ns - 100000);
			}
		}
	root = compared(&scenes[0], &scenes[1]);
	shows(root, "findings", "line change before_ns after_ns more_ns before_ranks after_ranks",
	      "7 | appeared | 0 | 5000000 | 5000000 | 0 | 5\n"
	      "8 | vanished | 4000000 | 0 | -4000000 | 4 | 0\n"
	      "1 | worse | 10000000 | 12000001 | 2000001 | 4 | 5\n"
	      "5 | better | 12000001 | 10000000 | -2000001 | 4 | 5\n"
	      "2 | same | 10000000 | 12000000 | 2000000 | 4 | 5\n"
	      "6 | same | 12000000 | 10000000 | -2000000 | 4 | 5\n"
	      "3 | worse | 2000000 | 3000001 | 1000001 | 4 | 5\n"
	      "4 | same | 2000000 | 3000000 | 1000000 | 4 | 5\n");
	shows(root, "jobs", "side name ranks hosts duration_ns calls calls_ns lost_ns differences",
	      "before | old | 4 | 1 | 9000000000 | 80 | 4000000000 | 2000000000 | 0\n"
	      "after | new | 5 | 1 | 8000000000 | 100 | 5000000000 | 1000000000 | 0\n");
	json_decref(root);
}

/* Ranks that lose time in their calls, and one whose GPU is slow, before and behind. */
static void test_changes_of_ranks(void **state)
{
	static const struct {
		unsigned int rank;
		const char *column;
		unsigned int ms[2];
	} losses[] = {{3, "lock_ns", {2000, 3000}},
		      {4, "lock_ns", {0, 2000}},
		      {5, "lock_ns", {1000, 0}},
		      {6, "ioctl_ns", {1000, 0}},
		      {6, "lock_ns", {0, 1000}}}; /* for another reason */
	struct scene scenes[2] = {{0}, {0}};
	json_t *root;

	(void)state;
	for (unsigned int b = 0; b < 2; b++)
		for (unsigned int k = 0; k < 12; k++) {
			rank(&scenes[b], "rank_1=%u host=a span_ns=10s", k + 1);
			row(&scenes[b], "gpus",
			    "uuid=GPU-%u exact=1 own_ns=%ums own_operations=1000", k,
			    k == 8 ? 20 + 10 * b : 10);
			for (size_t i = 0; i < ARRAY_SIZE(losses); i++)
				if (losses[i].rank == k)
					row(&scenes[b], "roles", "role=main %s=%ums",
					    losses[i].column, losses[i].ms[b]);
		}
	root = compared(&scenes[0], &scenes[1]);
	shows(root, "differences", "change about cause before_ppm after_ppm what",
	      "same | rank | cuda-lock | 200000 | 300000 | rank 3 (a, GPU-3) waits longer for locks inside "
	      "CUDA than the other ranks\n"
	      "appeared | rank | cuda-lock | 0 | 200000 | rank 4 (a, GPU-4) waits longer for locks inside "
	      "CUDA than the other ranks\n"
	      "appeared | rank | cuda-lock | 0 | 100000 | rank 6 (a, GPU-6) waits longer for locks inside "
	      "CUDA than the other ranks\n"
	      "same | gpu | gpu-times | 1000 | 2000 | the GPU of rank 8 (a, GPU-8) takes longer for "
	      "each operation\n"
	      "vanished | rank | cuda-lock | 100000 | 0 | rank 5 (a, GPU-5) waits longer for locks inside "
	      "CUDA than the other ranks\n"
	      "vanished | rank | kernel-module | 100000 | 0 | rank 6 (a, GPU-6) is longer in NVIDIA's kernel "
	      "module than the other ranks\n");
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_losses_of_calls),
		cmocka_unit_test(test_far_from_the_rest),
		cmocka_unit_test(test_losses_are_added_up),
		cmocka_unit_test(test_slow_gpus),
		cmocka_unit_test(test_late_host),
		cmocka_unit_test(test_late_ranks),
		cmocka_unit_test(test_late_gpu),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_late_now_and_then),
		cmocka_unit_test(test_slow_steps),
		cmocka_unit_test(test_typical_step),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_missing_ranks),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_parts_of_traces),
		cmocka_unit_test(test_other_times),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_headline),
		cmocka_unit_test(test_sites),
		cmocka_unit_test(test_sharing),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_changes_of_findings),
		cmocka_unit_test(test_changes_of_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
