/*
 * tests/scale/gendigest.c: digests of a job that never ran, drawn by a seed: ranks on hosts with GPUs whose clocks are all
 * off, the steps they took, chance, and somebody who is late on purpose. For tests of merges and of the job's report at
 * sizes that no machine here has.
 *
 *   gendigest OUT SEED RANKS [--hosts=N] [--steps=N] [--ops=N] [--clean] [--weather] [--alone] [--odd] [--from=A] [--to=B] [--job-file=ALL.digest] [--ends=FILE]
 *
 * writes OUT/NUMBER.digest for ranks A to B - 1 (all), or all of these into one file, and prints what was planted as JSON:
 * {"planted": [{"about": "rank"|"host"|"gpu", "who": …, "cause": …}, …]}. The same seed, ranks, hosts and steps are the same
 * job, whichever part of it is written. --ends keeps when its steps ended, for the next part.
 *
 * The model: a step takes each rank about 20 ms; then all meet in an operation, which ends some 60 us after the last one
 * came; --ops is how many operations a step has, of which the others follow at once. Before the first step there is one
 * operation of its own kind, as parameters are sent round. Whoever is planted is late by 5 to 15 % of a step in each, or by as
 * much more in each 2nd or 4th. In all jobs some rank has a hiccup of 5 to 60 ms in one of 16 steps, as machines do.
 *
 * One rank of a few has calls that lose 6 to 12 % of its time to other programs on its CPUs, in a few of them, and comes no
 * later for it: chance.
 *
 * --odd: all hosts have one name, and their clocks are off by up to five hours.
 *
 * --alone: the ranks have no collective operations. Who is planted waits for locks, twice as long.
 *
 * --weather: the pace of each rank's host changes by itself, by up to a fifth of a step, for 20 to 60 steps each time. Nobody
 * is slower for that.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "account/buckets.h"
#include "digest/digest.h"
#include "idle/causes.h"

#define STEP_NS 20000000ull
#define NOISE_NS 300000
#define TRANSFER_NS 60000
#define HICCUP_STEPS 16 /* in one of so many steps some rank has a hiccup */
#define BYTES (4u << 20)
#define COMM 0x5eedc0ffeeull
#define PLANTED_MOST 8
#define SPELL_RANKS 8 /* one of so many has one */
#define WORST_MOST 48

enum plant_kind { PLANT_CPU, PLANT_LOCK, PLANT_GPU, PLANT_HOST, PLANT_KINDS };

static const struct {
	const char *about, *cause;
} plant_words[] = {
	[PLANT_CPU] = {"rank", "python"},
	[PLANT_LOCK] = {"rank", "cuda-lock"},
	[PLANT_GPU] = {"gpu", "slow-gpu"},
	[PLANT_HOST] = {"host", "not-running"},
};

struct plant {
	enum plant_kind kind;
	uint64_t who; /* rank or host */
	uint64_t every, late_ns;
};

struct model {
	uint64_t seed, ranks, hosts, steps, ops, from, to;
	bool clean, weather, alone, odd;
	const char *out, *job_file, *ends;
	struct plant plants[PLANTED_MOST];
	size_t n_plants;
	uint64_t *end_ns; /* of each step's operation, true time */
};

/* ---- chance ---------------------------------------------------------------------------------- */

/* Depends on what it is asked for, not on the order. */
static uint64_t drawn(const struct model *m, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = m->seed * 0x9e3779b97f4a7c15ull + a;

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull + b;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull + c;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

static uint64_t below(const struct model *m, uint64_t n, uint64_t a, uint64_t b, uint64_t c)
{
	return n ? drawn(m, a, b, c) % n : 0;
}

static uint64_t host_of(const struct model *m, uint64_t rank)
{
	return rank * m->hosts / m->ranks;
}

enum {
	DRAW_PLANTS = 1,
	DRAW_NOISE,
	DRAW_HICCUP,
	DRAW_LENGTH,
	DRAW_TIMER,
	DRAW_DRIFT,
	DRAW_CLOCK,
	DRAW_JITTER,
	DRAW_SITE,
	DRAW_KEY,
	DRAW_WHY,
	DRAW_WEATHER,
	DRAW_SPELL
};

/* ---- who is late ----------------------------------------------------------------------------- */

/* Not one on a host that is planted, nor twice the same; and most hosts are as they should be: they are the rest. So are
 * most ranks. */
static bool is_free(const struct model *m, enum plant_kind kind, uint64_t who)
{
	size_t i, hosts = 0;

	if (m->n_plants && 4 * (m->n_plants + 1) > m->ranks)
		return false;
	for (i = 0; i < m->n_plants; i++) {
		uint64_t host = m->plants[i].kind == PLANT_HOST ? m->plants[i].who
								: host_of(m, m->plants[i].who);

		if (host == (kind == PLANT_HOST ? who : host_of(m, who)))
			return false;
		hosts += m->plants[i].kind == PLANT_HOST;
	}
	return kind != PLANT_HOST || 2 * (hosts + 1) < m->hosts;
}

static void plant(struct model *m)
{
	uint64_t n = m->clean ? 0 : 1 + below(m, 4, DRAW_PLANTS, 0, 0), i;

	for (i = 0; i < n; i++) {
		enum plant_kind kind =
			m->alone ? PLANT_LOCK
				 : (enum plant_kind)below(m, PLANT_KINDS, DRAW_PLANTS, i, 1);
		uint64_t who =
			below(m, kind == PLANT_HOST ? m->hosts : m->ranks, DRAW_PLANTS, i, 2);
		uint64_t every = kind == PLANT_GPU || kind == PLANT_HOST
					 ? 1
					 : 1ull << below(m, 3, DRAW_PLANTS, i, 3);

		if (!is_free(m, kind, who))
			continue;
		m->plants[m->n_plants++] = (struct plant){
			kind, who, every,
			every * (STEP_NS / 20 + below(m, STEP_NS * 2 / 5 / 4, DRAW_PLANTS, i, 4))};
	}
}

static const struct plant *plant_of(const struct model *m, uint64_t rank, uint64_t step)
{
	size_t i;

	for (i = 0; i < m->n_plants; i++) {
		const struct plant *p = &m->plants[i];

		if (p->kind == PLANT_HOST ? p->who == host_of(m, rank) : p->who == rank)
			return step % p->every == 0 ? p : NULL;
	}
	return NULL;
}

/* ---- what ranks do --------------------------------------------------------------------------- */

/* Chance: about a bell. */
static uint64_t noise_ns(const struct model *m, uint64_t rank, uint64_t step)
{
	uint64_t x = drawn(m, DRAW_NOISE, rank, step);

	return ((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48)) * NOISE_NS /
	       0x40000;
}

static uint64_t hiccup_ns(const struct model *m, uint64_t rank, uint64_t step)
{
	if (below(m, HICCUP_STEPS * m->ranks, DRAW_HICCUP, rank, step))
		return 0;
	return 5000000 + below(m, 55000000, DRAW_LENGTH, rank, step);
}

/* Each rank has spells of a length of its own. */
static uint64_t weather_ns(const struct model *m, uint64_t rank, uint64_t step)
{
	uint64_t length = 20 + below(m, 40, DRAW_WEATHER, rank, UINT64_MAX);

	return m->weather ? below(m, STEP_NS / 5, DRAW_WEATHER, rank, step / length) : 0;
}

static uint64_t work_ns(const struct model *m, uint64_t rank, uint64_t step)
{
	const struct plant *p = plant_of(m, rank, step);

	return STEP_NS + noise_ns(m, rank, step) + weather_ns(m, rank, step) +
	       hiccup_ns(m, rank, step) + (p ? p->late_ns : 0);
}

/* What takes long with many ranks: for one job that is written in many parts. */
static bool read_ends(struct model *m)
{
	FILE *file = fopen(m->ends, "re");
	size_t n = file ? fread(m->end_ns, sizeof(*m->end_ns), m->steps + 1, file) : 0;

	if (file)
		fclose(file);
	return n == m->steps + 1;
}

static void write_ends(const struct model *m)
{
	FILE *file = fopen(m->ends, "we");

	if (!file || fwrite(m->end_ns, sizeof(*m->end_ns), m->steps + 1, file) != m->steps + 1 ||
	    fclose(file))
		perror(m->ends);
}

/* All meet in each step. */
static void run_job(struct model *m)
{
	uint64_t step, rank, at_ns = 1000000000ull;

	m->end_ns = xcalloc(m->steps + 1, sizeof(*m->end_ns));
	if (m->ends && read_ends(m))
		return;
	m->end_ns[0] = at_ns;
	for (step = 1; step <= m->steps; step++) {
		uint64_t longest_ns = 0;

		for (rank = 0; rank < m->ranks; rank++)
			longest_ns = max_u64(longest_ns, work_ns(m, rank, step));
		m->end_ns[step] = m->end_ns[step - 1] + longest_ns + TRANSFER_NS;
	}
	if (m->ends)
		write_ends(m);
}

/* ---- its digest ------------------------------------------------------------------------------ */

struct writing {
	const struct model *m;
	struct digest *digest;
	struct digest_data data;
	uint64_t rank;
	uint64_t *row; /* of the rank */
	uint64_t codes[IDLE_CAUSE_COUNT], places[PLANT_KINDS + 1]; /* numbers of their texts */
};

static uint64_t text(struct writing *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static uint64_t text(struct writing *w, const char *format, ...)
{
	va_list ap;
	char *words;
	uint64_t number;

	va_start(ap, format);
	words = xvasprintf(format, ap);
	va_end(ap);
	number = digest_texts_add(&w->digest->texts, words);
	free(words);
	return number;
}

/* What a clock shows at a true time: its offset, up to 1000 s, and drift, up to 20 ppm. */
static uint64_t timer_ns(const struct writing *w, uint64_t ns)
{
	uint64_t offset_ns = below(w->m, 1000000000000ull, DRAW_TIMER, w->rank, 0);
	uint64_t ppm = below(w->m, 20, DRAW_DRIFT, w->rank, 0);

	return offset_ns + ns + ns / 1000000 * ppm + below(w->m, 800, DRAW_JITTER, w->rank, ns);
}

#define EPOCH_NS 1700000000000000000ull

static uint64_t host_ns(const struct writing *w, uint64_t ns)
{
	uint64_t off_ns = w->m->odd ? 5 * 3600 * 1000000000ull : 5000000;

	return EPOCH_NS + below(w->m, off_ns, DRAW_CLOCK, host_of(w->m, w->rank), 0) + ns;
}

static void write_rank(struct writing *w)
{
	const struct model *m = w->m;
	uint64_t *row = w->row = digest_data_add(&w->data, D_RANK);
	uint64_t *gpu;

	row[D_RANK_job] = text(w, "made-%" PRIu64, m->seed);
	row[D_RANK_rank_1] = w->rank + 1;
	row[D_RANK_host] = m->odd ? text(w, "node") : text(w, "node%" PRIu64, host_of(m, w->rank));
	row[D_RANK_boot] = text(w, "boot-%" PRIu64, host_of(m, w->rank));
	row[D_RANK_program] = text(w, "python3");
	row[D_RANK_pid] = 1000 + w->rank;
	row[D_RANK_world_size] = m->ranks;
	row[D_RANK_processes] = row[D_RANK_ended] = 1;
	row[D_RANK_threads] = 4;
	row[D_RANK_begin_ns] = host_ns(w, 0);
	row[D_RANK_span_ns] = m->end_ns[m->steps];
	row[D_RANK_clock_hz] = 1000000000;
	row[D_RANK_records] = 40 * m->steps;
	row[D_RANK_calls] = 30 * m->steps;
	row[D_RANK_calls_ns] = m->steps * 9000000;
	row[D_RANK_lost_ns] = m->steps * 100000;
	if (!m->alone)
		row[D_RANK_operations] = row[D_RANK_timed] = m->steps * m->ops + 1;
	row[D_RANK_base_ns] = host_ns(w, 0);
	row[D_RANK_timer_base_ns] = timer_ns(w, 0) / 1000000 * 1000000;
	row[D_RANK_cost_ppm] = 4000 + w->rank % 2 * 1000 + 1;
	gpu = digest_data_add(&w->data, D_GPU);
	gpu[D_GPU_uuid] = text(w, "GPU-%08" PRIx64 "-%" PRIu64, m->seed, w->rank);
	gpu[D_GPU_name] = text(w, "Made H100");
	gpu[D_GPU_device_1] = w->rank % 8 + 1;
}

static void set_causes(struct writing *w, uint64_t *op, uint64_t step)
{
	static const enum idle_cause whys[] = {IDLE_FILE, IDLE_NOT_RUNNING, IDLE_PYTHON,
					       IDLE_LOADER};
	static const enum idle_cause causes[] = {[PLANT_CPU] = IDLE_PYTHON,
						 [PLANT_LOCK] = IDLE_CUDA_LOCK,
						 [PLANT_GPU] = IDLE_GPU_WORK,
						 [PLANT_HOST] = IDLE_NOT_RUNNING};
	const struct plant *p = plant_of(w->m, w->rank, step);
	uint64_t hiccup = hiccup_ns(w->m, w->rank, step), ns[IDLE_CAUSE_COUNT] = {0};
	uint64_t *cause = &op[D_MEET_cause_a];
	size_t i, most, n;

	ns[IDLE_GPU_WORK] = STEP_NS * 6 / 10;
	ns[IDLE_PYTHON] =
		STEP_NS * 3 / 10 + noise_ns(w->m, w->rank, step) + weather_ns(w->m, w->rank, step);
	ns[IDLE_LAUNCH] = STEP_NS / 10;
	if (p)
		ns[causes[p->kind]] += p->late_ns;
	if (hiccup)
		ns[whys[below(w->m, ARRAY_SIZE(whys), DRAW_WHY, w->rank, step)]] += hiccup;
	for (n = 0; n < DIGEST_OPERATION_CAUSES; n++, cause += 2) {
		for (most = i = 0; i < IDLE_CAUSE_COUNT; i++)
			if (ns[i] > ns[most])
				most = i;
		cause[0] = w->codes[most];
		cause[1] = ns[most];
		ns[most] = 0;
	}
	op[D_MEET_place] = w->places[p ? p->kind : PLANT_KINDS];
}

/* Operation i behind the first one of a step: they find the ranks together. Of step 0: that before the first step. */
static void write_more(struct writing *w, uint32_t table, uint64_t step, uint64_t i)
{
	uint64_t at_ns = w->m->end_ns[step] + i * (STEP_NS / 100), *op;
	uint64_t begin_ns = at_ns + below(w->m, 20000, DRAW_NOISE, w->rank, step * 1000 + i);
	uint64_t end_ns = at_ns + 20000 + TRANSFER_NS;

	op = digest_data_add(&w->data, table);
	op[D_MEET_key] = drawn(w->m, DRAW_KEY, step, i) >> 8 | 1;
	op[D_MEET_comm] = COMM + w->m->seed;
	op[D_MEET_ordinal] = step * w->m->ops + i;
	op[D_MEET_function] = 1;
	op[D_MEET_bytes] = step ? BYTES : 4;
	op[D_MEET_submit_ns] = begin_ns - 30000;
	op[D_MEET_submitted_ns] = begin_ns - 20000;
	op[D_MEET_begin_ns] = timer_ns(w, begin_ns) - w->row[D_RANK_timer_base_ns];
	op[D_MEET_took_ns] = timer_ns(w, end_ns) - timer_ns(w, begin_ns);
	op[D_MEET_period_ns] = step ? STEP_NS / 100 : 0;
	op[D_MEET_queued_ns] = 20000;
	op[D_MEET_host_1_ns] = begin_ns + 1;
}

static void write_step(struct writing *w, uint32_t table, uint64_t step)
{
	uint64_t begin_ns = w->m->end_ns[step - 1] + work_ns(w->m, w->rank, step);
	uint64_t end_ns = w->m->end_ns[step], *op = digest_data_add(&w->data, table);

	op[D_MEET_key] = drawn(w->m, DRAW_KEY, step, 0) >> 8 | 1;
	op[D_MEET_comm] = COMM + w->m->seed;
	op[D_MEET_ordinal] = step;
	op[D_MEET_function] = 1;
	op[D_MEET_bytes] = BYTES;
	op[D_MEET_submit_ns] = begin_ns - 30000;
	op[D_MEET_submitted_ns] = begin_ns - 20000;
	op[D_MEET_begin_ns] = timer_ns(w, begin_ns) - w->row[D_RANK_timer_base_ns];
	op[D_MEET_took_ns] = timer_ns(w, end_ns) - timer_ns(w, begin_ns);
	op[D_MEET_period_ns] = end_ns - w->m->end_ns[step - 1];
	op[D_MEET_gap_ns] = begin_ns - w->m->end_ns[step - 1];
	op[D_MEET_queued_ns] = 20000;
	op[D_MEET_work] = 120;
	op[D_MEET_host_1_ns] = begin_ns + 1;
	op[D_MEET_host_error_ns] = 5000;
	set_causes(w, op, step);
}

/* The parameters are sent to all ranks once, before the first step: the only operation of its kind. */
static void write_once(struct writing *w, uint32_t table)
{
	uint64_t at_ns = w->m->end_ns[0] + below(w->m, 20000, DRAW_NOISE, w->rank, 0);
	uint64_t *op = digest_data_add(&w->data, table);

	op[D_MEET_key] = drawn(w->m, DRAW_KEY, 0, 0) >> 8 | 1;
	op[D_MEET_comm] = COMM + w->m->seed;
	op[D_MEET_ordinal] = 0;
	op[D_MEET_function] = 2;
	op[D_MEET_bytes] = BYTES * 2;
	op[D_MEET_submit_ns] = at_ns - 30000;
	op[D_MEET_submitted_ns] = at_ns - 20000;
	op[D_MEET_begin_ns] = timer_ns(w, at_ns) - w->row[D_RANK_timer_base_ns];
	op[D_MEET_took_ns] = TRANSFER_NS;
	op[D_MEET_queued_ns] = 20000;
	op[D_MEET_host_1_ns] = at_ns + 1;
}

static void write_worst(struct writing *w, enum bucket why, uint64_t n, uint64_t lost_ns)
{
	uint64_t *row, i;

	for (i = 0; i < n && i < WORST_MOST; i++) {
		row = digest_data_add(&w->data, D_WORST);
		row[D_WORST_function] = text(w, "cudaStreamSynchronize");
		row[D_WORST_role] = text(w, "main");
		row[D_WORST_why] = text(w, "%s", bucket_names[why]);
		row[D_WORST_took_ns] = row[D_WORST_lost_ns] = lost_ns;
	}
}

/* What its calls lose: of a spell in a few of them, of who is planted in each step. */
static void write_role(struct writing *w)
{
	const struct model *m = w->m;
	const struct plant *p = m->alone ? plant_of(m, w->rank, 0) : NULL;
	uint64_t *row = digest_data_add(&w->data, D_ROLE), part, n;

	row[D_ROLE_role] = text(w, "main");
	row[D_ROLE_threads] = 1;
	row[D_ROLE_calls] = w->row[D_RANK_calls];
	row[D_ROLE_total_ns] = w->row[D_RANK_calls_ns];
	row[D_ROLE_own_ns] = w->row[D_RANK_calls_ns];
	if (p) {
		row[D_ROLE_lock_ns] = m->steps / p->every * 2 * p->late_ns;
		write_worst(w, BUCKET_LOCK, m->steps / p->every, 2 * p->late_ns);
	}
	if (!below(m, SPELL_RANKS, DRAW_SPELL, w->rank, 0)) {
		part = 6 + below(m, 7, DRAW_SPELL, w->rank, 1);
		n = 3 + below(m, 10, DRAW_SPELL, w->rank, 2);
		row[D_ROLE_not_running_ns] = w->row[D_RANK_span_ns] / 100 * part;
		write_worst(w, BUCKET_NOT_RUNNING, n, row[D_ROLE_not_running_ns] / n);
	}
}

/* What a real digest has beside: a finding that all ranks have, and one of few. */
static void write_sites(struct writing *w)
{
	uint64_t *row, i;

	for (i = 0; i < 20; i++) {
		if (i && below(w->m, 10, DRAW_SITE, w->rank, i))
			continue;
		row = digest_data_add(&w->data, D_SITE);
		row[D_SITE_detector] = text(w, i % 2 ? "small-copies" : "pageable-copy");
		row[D_SITE_function] = text(w, "cudaMemcpyAsync");
		row[D_SITE_module] = text(w, "libtorch_cuda.so");
		row[D_SITE_offset] = 0x1000 + i;
		row[D_SITE_python] = text(w, "train.py:%" PRIu64 " in step", 20 + i);
		row[D_SITE_severity] = i ? 1 : 0;
		row[D_SITE_count] = w->m->steps;
		row[D_SITE_own_ns] = row[D_SITE_weight_ns] = row[D_SITE_gain_high_ns] =
			w->m->steps * (20000 + below(w->m, 1000, DRAW_SITE, w->rank, i + 100));
	}
	for (i = 0; i < 40; i++) {
		row = digest_data_add(&w->data, D_FUNC);
		row[D_FUNC_function] = text(w, "cudaFunction%" PRIu64, i);
		row[D_FUNC_count] = w->m->steps;
		row[D_FUNC_total_ns] = w->m->steps * (3000 + i * 100 + w->rank % 7);
		row[D_FUNC_us_4] = w->m->steps;
	}
}

static int write_digest(const struct model *m, uint64_t rank, struct digest *into)
{
	struct writing w = {.m = m, .rank = rank, .digest = into ?: digest_new()};
	char *path = xasprintf("%s/%" PRIu64 ".digest", m->out, rank);
	uint64_t step, i;
	uint8_t *bytes;
	size_t n;
	FILE *file;
	int err;

	digest_data_init(&w.data, &w.digest->schema);
	for (step = 0; step < IDLE_CAUSE_COUNT; step++)
		w.codes[step] = text(&w, "%s", idle_cause_codes[step]);
	for (step = 0; step <= PLANT_KINDS; step++)
		w.places[step] = text(&w, "train.py:%" PRIu64 " in step", 40 + step);
	write_rank(&w);
	write_role(&w);
	if (!m->alone)
		write_once(&w, D_MEET);
	for (step = 1; !m->alone && step <= m->steps; step++) {
		write_step(&w, D_MEET, step);
		write_step(&w, D_SLOW, step);
		for (i = 1; i < m->ops; i++)
			write_more(&w, D_MEET, step, i);
	}
	write_sites(&w);
	err = digest_add(w.digest, &w.data, path);
	digest_data_release(&w.data);
	if (!into) {
		digest_write(w.digest, &bytes, &n);
		file = fopen(path, "we");
		err = !file || fwrite(bytes, 1, n, file) != n || fclose(file) ? -1 : err;
		free(bytes);
		digest_free(w.digest);
	}
	if (err)
		perror(path);
	free(path);
	return err;
}

static int write_all(const struct model *m)
{
	struct digest *all = m->job_file ? digest_new() : NULL;
	uint64_t rank;
	uint8_t *bytes;
	size_t n;
	FILE *file;
	int err = 0;

	if (!all)
		mkdir(m->out, 0777);
	for (rank = m->from; !err && rank < m->to; rank++)
		err = write_digest(m, rank, all);
	if (!all || err)
		return err;
	digest_write(all, &bytes, &n);
	file = fopen(m->job_file, "we");
	err = !file || fwrite(bytes, 1, n, file) != n || fclose(file);
	free(bytes);
	digest_free(all);
	return err;
}

static void tell(const struct model *m)
{
	size_t i;

	printf("{\"planted\": [");
	for (i = 0; i < m->n_plants; i++) {
		const struct plant *p = &m->plants[i];

		printf("%s{\"about\": \"%s\", \"cause\": \"%s\", \"every\": %" PRIu64
		       ", \"late_ns\": %" PRIu64 ", \"who\": ",
		       i ? ", " : "", plant_words[p->kind].about, plant_words[p->kind].cause,
		       p->every, p->late_ns);
		if (p->kind == PLANT_HOST && m->odd)
			printf("\"node (boot boot-%" PRIu64 ")\"}", p->who);
		else if (p->kind == PLANT_HOST)
			printf("\"node%" PRIu64 "\"}", p->who);
		else if (p->kind == PLANT_GPU)
			printf("\"GPU-%08" PRIx64 "-%" PRIu64 "\"}", m->seed, p->who);
		else
			printf("\"rank %" PRIu64 "\"}", p->who);
	}
	printf("]}\n");
}

static bool option(const char *word, const char *name, uint64_t *value)
{
	size_t n = strlen(name);

	if (strncmp(word, name, n) != 0 || word[n] != '=')
		return false;
	*value = strtoull(word + n + 1, NULL, 0);
	return true;
}

int main(int argc, char **argv)
{
	struct model m = {.hosts = 8, .steps = 200, .ops = 1};
	int i, err;

	if (argc < 4) {
		fprintf(stderr,
			"gendigest OUT SEED RANKS [--hosts=N] [--steps=N] [--ops=N] [--clean] "
			"[--weather] [--alone] [--odd] [--from=A] [--to=B] "
			"[--job-file=FILE] [--ends=FILE]\n");
		return 2;
	}
	m.out = argv[1];
	m.seed = strtoull(argv[2], NULL, 0);
	m.ranks = m.to = strtoull(argv[3], NULL, 0);
	for (i = 4; i < argc; i++) {
		if (!strcmp(argv[i], "--clean"))
			m.clean = true;
		else if (!strcmp(argv[i], "--weather"))
			m.weather = true;
		else if (!strcmp(argv[i], "--alone"))
			m.alone = true;
		else if (!strcmp(argv[i], "--odd"))
			m.odd = true;
		else if (!strncmp(argv[i], "--job-file=", 11))
			m.job_file = argv[i] + 11;
		else if (!strncmp(argv[i], "--ends=", 7))
			m.ends = argv[i] + 7;
		else if (!option(argv[i], "--hosts", &m.hosts) &&
			 !option(argv[i], "--steps", &m.steps) &&
			 !option(argv[i], "--ops", &m.ops) && !option(argv[i], "--from", &m.from) &&
			 !option(argv[i], "--to", &m.to)) {
			fprintf(stderr, "gendigest: what is %s?\n", argv[i]);
			return 2;
		}
	}
	plant(&m);
	run_job(&m);
	tell(&m);
	err = write_all(&m);
	free(m.end_ns);
	return err ? 1 : 0;
}
