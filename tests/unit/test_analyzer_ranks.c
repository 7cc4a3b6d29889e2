/*
 * tests/unit/test_analyzer_ranks.c: collective operations of several ranks (ranks/): who was last and for how long the
 * others waited, whatever the timers of the GPUs and the clocks of the hosts say; why; steps; ranks that disagree, are
 * missing, or were started again; damage.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "analysis.h"
#include "cmd_files/cmd_digest.h"
#include "cmd_files/cmd_job.h"
#include "cmd_read/cmd_report.h"
#include "digest/digest.h"
#include "findings/detector.h"
#include "findings_golden.h"
#include "model/python.h"
#include "render/render.h"
#include "scratch.h"
#include "symbols/symbolize.h"
#include "trace_text.h"

#define US 1000
#define MS 1000000
#define RANKS 70
#define NOTED_MOST 16 /* ranks: of larger jobs only that which a test asks for is looked at */

/* A job in the making. Each rank is a process with a thread 7; times are those of a clock that nobody has. */
struct job {
	char *dir, path[256];
	FILE *log;
	unsigned int ranks, interface;
	bool gpu_times;
	bool beside; /* nothing on the GPU waits for a collective */
	uint64_t moves_ns; /* a collective's data; 0: 20 us */
	bool own_stream; /* collectives have one, beside that of all other work */
	struct pair { /* two ranks with a communicator of their own; NULL: all ranks meet */
		unsigned int first;
		uint64_t seq;
	} * pair;
	unsigned int site; /* address in the program that NCCL is called at; 0: unknown */
	const char *line; /* and of Python: "1:11"; NULL: none */
	struct teller {
		FILE *out, *ran, *gpu; /* records of the thread; of NCCL's thread; GPU times */
		char *text, *ran_text, *gpu_text;
		size_t size, ran_size, gpu_size;
		unsigned int correlation;
		uint64_t brought; /* no record of GPU times before */
		const char *extra; /* of its environment */
		int64_t host_offset, gpu_offset; /* of its host's clock; of its GPU's timer */
		double drift; /* of the timer */
		uint64_t ns; /* its thread has come so far */
		uint64_t gpu_ns; /* and its GPU */
		uint64_t beside_ns; /* and collectives, where nothing waits for them */
		bool other_host;
		uint64_t submitted;
	} told[RANKS];
	uint64_t seq, id;
	uint64_t sent[RANKS][RANKS][2]; /* sends and receives of each pair */
	struct trace_set set;
	struct analysis a;
	bool open;
	bool unnoted; /* its report is too long */
	uint64_t wait[RANKS][RANKS]; /* truth: rank for rank */
	int noise;
	uint32_t random;
};

static int setup(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	job->dir = scratch_make();
	*state = job;
	return 0;
}

static json_t *report_of(struct job *job)
{
	const struct report_options options = {.renderer = renderer_find("json")};
	struct symbolizer *symbols = symbolizer_new();
	char *text = NULL;
	struct report report;
	size_t size;
	json_t *root;
	FILE *out = open_memstream(&text, &size);

	report_init(&report, REPORT_SCHEMA);
	report_add_sections(&report, &job->a, symbols, &options);
	assert_int_equal(renderer_show(options.renderer, &report, out), 0);
	fclose(out);
	report_release(&report);
	symbolizer_free(symbols);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	free(text);
	return root;
}

/* What the report says of ranks. */
static void note_report(struct job *job)
{
	json_t *root = report_of(job);

	findings_note_table(root, "ranks");
	findings_note_table(root, "rank_steps");
	findings_note_table(root, "collectives");
	findings_note(root);
	json_decref(root);
}

/* What the report of a job says, which is made of a digest of each rank by itself. */
static void note_digests(const struct job *job)
{
	static const char *const tables[] = {"differences", "slow_steps", "ranks", "hosts",
					     "findings"};
	struct digest *digest = digest_new();
	char *text = NULL;
	size_t size, i;
	json_t *root;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(digest_traces(digest, (const char *[]){job->dir}, 1, NULL, NULL), 0);
	assert_int_equal(job_show_digest(digest, renderer_find("json"), true, out), 0);
	fclose(out);
	digest_free(digest);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	fputs("of digests:", findings_out());
	findings_note_numbers(json_object_get(root, "job"), findings_out());
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		findings_note_table(root, tables[i]);
	fputc('\n', findings_out());
	json_decref(root);
	free(text);
}

static void close_analysis(struct job *job)
{
	if (job->open) {
		if (job->ranks <= NOTED_MOST && !job->unnoted) {
			note_report(job);
			note_digests(job);
		}
		analysis_release(&job->a);
		trace_set_release(&job->set);
	}
	job->open = false;
}

static int teardown(void **state)
{
	struct job *job = *state;

	close_analysis(job);
	scratch_remove(job->dir);
	free(job);
	return 0;
}

static unsigned long long host(const struct teller *t, uint64_t ns)
{
	return ns + (uint64_t)t->host_offset;
}

static unsigned long long timer(const struct teller *t, uint64_t ns)
{
	return ns + (uint64_t)t->gpu_offset + (uint64_t)(int64_t)((double)ns * t->drift);
}

static void begin(struct job *job, unsigned int ranks)
{
	unsigned int i;

	close_analysis(job);
	job->ranks = ranks;
	job->interface = job->interface ?: 5;
	job->random = 1;
	job->seq = job->id = 0;
	memset(job->wait, 0, sizeof(job->wait));
	memset(job->sent, 0, sizeof(job->sent));
	for (i = 0; i < ranks; i++) {
		struct teller *t = &job->told[i];

		t->out = open_memstream(&t->text, &t->size);
		t->ran = open_memstream(&t->ran_text, &t->ran_size);
		t->gpu = open_memstream(&t->gpu_text, &t->gpu_size);
		t->ns = t->gpu_ns = t->beside_ns = MS;
		t->brought = 0;
		t->correlation = 0;
		if (job->gpu_times)
			fprintf(t->gpu, "slot 3 gpu=1\n2us gpu_clock clock=2000 gpu=2000\n"
					"2us gpu_state state=on\n");
		fprintf(t->out,
			"slot 1 tid=7\n%lluns thread tid=7 name=\"a\"\n"
			"%lluns nccl_comm interface=%u number=1 hash=0xab rank=%u ranks=%u tid=7\n",
			host(t, 1000), host(t, 1000), job->interface, i,
			job->interface > 3 ? ranks : 0);
	}
}

static void conclude_into(struct job *job, const char *folder)
{
	char log[320];
	unsigned int i;
	FILE *file;

	snprintf(job->path, sizeof(job->path), "%s/%s", job->dir, folder);
	snprintf(log, sizeof(log), "%s.log", job->path);
	file = fopen(log, "w");
	assert_non_null(file);
	for (i = 0; i < job->ranks; i++) {
		struct teller *t = &job->told[i];

		fclose(t->out);
		fclose(t->ran);
		if (job->gpu_times)
			fprintf(t->gpu, "%lluns gpu_clock gpu=%llu\n%lluns gpu_state state=off\n",
				(unsigned long long)t->brought, (unsigned long long)t->brought,
				(unsigned long long)t->brought);
		fclose(t->gpu);
		fprintf(file,
			"trace %s.%u pid=%u program=\"a\" boot_id=%s clock_source=tsc probes=1 %s\n"
			"%sslot 2 tid=8\n%s%s",
			folder, i, 100 + i, t->other_host ? "c" : "b", t->extra ?: "", t->text,
			t->ran_text, t->gpu_text);
		free(t->gpu_text);
		free(t->text);
		free(t->ran_text);
	}
	fclose(file);
	tt_make(log, job->dir);
}

static void analyze(struct job *job)
{
	const char *dirs[] = {job->dir};
	const struct analysis_options options = {.profile = NULL};

	assert_int_equal(trace_set_open(&job->set, dirs, 1, &(struct trace_filter){NULL}), 0);
	job->open = true;
	assert_int_equal(analysis_run(&job->a, &job->set, &options), 0);
}

static void conclude(struct job *job)
{
	conclude_into(job, "r");
	analyze(job);
}

/* ---- what ranks do --------------------------------------------------------------------------- */

/* With GPU times: the operation of the thread's last launch. */
static void on_gpu(const struct job *job, struct teller *t, uint64_t begin, uint64_t end)
{
	if (!job->gpu_times)
		return;
	t->brought = t->brought > end ? t->brought : end;
	t->correlation++;
	fprintf(t->gpu,
		"%lluns gpu_submit correlation=%u begin=%llu end=%llu tid=7\n"
		"%lluns gpu_op kind=kernel correlation=%u begin=%llu end=%llu amount=1000\n",
		(unsigned long long)t->brought, t->correlation,
		(unsigned long long)t->submitted - 3 * US, (unsigned long long)t->submitted - US,
		(unsigned long long)t->brought, t->correlation, (unsigned long long)begin,
		(unsigned long long)end);
}

static void launch_at(struct teller *t, uint64_t gpu_ns, unsigned int caller)
{
	t->ns += 4 * US;
	fprintf(t->out,
		"%lluns launch cudaLaunchKernel kernel=1 stream=8 caller=%#x duration=4us\n",
		host(t, t->ns), caller);
	t->gpu_ns = (t->gpu_ns > t->ns ? t->gpu_ns : t->ns) + gpu_ns;
}

/* NCCL's kernel of the collective that follows, in a stream of its own. */
static void launch_collective(struct teller *t)
{
	t->ns += 4 * US;
	fprintf(t->out, "%lluns launch cudaLaunchKernel kernel=2 stream=9 duration=4us\n",
		host(t, t->ns));
}

static void launch(struct teller *t, uint64_t gpu_ns)
{
	launch_at(t, gpu_ns, 0x10);
}

static void computes(struct teller *t, uint64_t ns)
{
	t->ns += ns;
}

static void sleeps(struct teller *t, uint64_t ns, unsigned int caller)
{
	t->ns += ns;
	fprintf(t->out, "%lluns outside kind=sleep caller=%#x duration=%lluns\n", host(t, t->ns),
		caller, (unsigned long long)ns);
}

static void synchronizes(struct teller *t)
{
	uint64_t end = (t->gpu_ns > t->ns ? t->gpu_ns : t->ns) + 5 * US;

	fprintf(t->out, "%lluns op cudaStreamSynchronize stream=8 caller=0x20 duration=%lluns\n",
		host(t, end), (unsigned long long)(end - t->ns));
	t->ns = end;
}

/* The thread waits for its GPU and the collectives, and with it the GPU. */
static void waits_for_collectives(struct teller *t)
{
	uint64_t gpu = t->gpu_ns > t->beside_ns ? t->gpu_ns : t->beside_ns;
	uint64_t end = (gpu > t->ns ? gpu : t->ns) + 5 * US;

	fprintf(t->out, "%lluns op cudaDeviceSynchronize caller=0x28 duration=%lluns\n",
		host(t, end), (unsigned long long)(end - t->ns));
	t->ns = t->gpu_ns = end;
}

static void frees(struct teller *t, uint64_t ns)
{
	t->ns += ns;
	fprintf(t->out,
		"%lluns memory cudaFree op=free address=0x1000 caller=0x30 duration=%lluns\n",
		host(t, t->ns), (unsigned long long)ns);
}

static int64_t noise(struct job *job)
{
	job->random = job->random * 1103515245 + 12345;
	return job->noise ? (int64_t)(job->random >> 8) % job->noise - job->noise / 2 : 0;
}

/* All ranks submit an operation, which begins when their GPUs come to it, and ends when its data have moved after the last one has. */
static void collective_of(struct job *job, const char *func, uint64_t count, unsigned int missing)
{
	unsigned int from = job->pair ? job->pair->first : 0,
		     to = job->pair ? from + 2 : job->ranks;
	uint64_t begins[RANKS], last = 0, end, *seq = job->pair ? &job->pair->seq : &job->seq;
	unsigned int i, who = 0;

	for (i = from; i < to; i++) {
		struct teller *t = &job->told[i];

		if (i == missing)
			continue;
		if (job->own_stream)
			launch_collective(t);
		else
			launch(t, 0);
		t->submitted = t->ns;
		begins[i] = (t->gpu_ns > t->beside_ns ? t->gpu_ns : t->beside_ns) + 2 * US;
		if (job->site)
			fprintf(t->out, "%lluns stack fn=- frames=0x7e000100,%#x\n", host(t, t->ns),
				job->site);
		if (job->line)
			fprintf(t->out, "%lluns python_stack fn=- lines=%s\n", host(t, t->ns),
				job->line);
		fprintf(t->out,
			"%lluns collective func=%s comm=%u seq=%llu count=%llu id=%llu channels=2\n",
			host(t, t->ns), func, job->pair ? 2 : 1, (unsigned long long)*seq,
			(unsigned long long)count, (unsigned long long)job->id);
		if (begins[i] >= last) {
			last = begins[i];
			who = i;
		}
	}
	end = last + (job->moves_ns ?: 20 * US);
	for (i = from; i < to && missing >= job->ranks; i++) {
		struct teller *t = &job->told[i];
		bool timed = job->interface > 3;

		job->wait[i][who] += last - begins[i];
		t->beside_ns = end + (uint64_t)noise(job);
		if (!job->beside)
			t->gpu_ns = t->beside_ns;
		on_gpu(job, t, begins[i], t->beside_ns);
		fprintf(t->ran,
			"%lluns collective_ran comm=%u id=%llu begin=%llu end=%llu seen=%llu\n",
			host(t, t->beside_ns + 30 * US), job->pair ? 2 : 1,
			(unsigned long long)job->id, timed ? timer(t, begins[i]) : 0,
			timed ? timer(t, t->beside_ns) : 0, host(t, begins[i] + 10 * US));
	}
	++*seq;
	job->id++;
}

/* A rank sends to another one: the data fit into buffers, so it does not wait for that. */
static void sends(struct job *job, unsigned int from, unsigned int to)
{
	uint64_t begins[2], ends[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct teller *t = &job->told[i ? to : from];

		launch(t, 0);
		begins[i] = t->gpu_ns + 2 * US;
		ends[i] = begins[i] + 20 * US;
	}
	if (begins[0] > begins[1])
		job->wait[to][from] += begins[0] - begins[1];
	ends[1] = (ends[0] > ends[1] ? ends[0] : ends[1]) + 3 * US;
	for (i = 0; i < 2; i++) {
		struct teller *t = &job->told[i ? to : from];

		t->gpu_ns = ends[i];
		fprintf(t->out,
			"%lluns collective func=%s comm=1 seq=%llu count=2048 id=%llu peer=%u\n",
			host(t, t->ns), i ? "Recv" : "Send",
			(unsigned long long)++job->sent[from][to][i], (unsigned long long)job->id,
			i ? from : to);
		fprintf(t->ran,
			"%lluns collective_ran comm=1 id=%llu begin=%llu end=%llu seen=%llu\n",
			host(t, ends[i] + 30 * US), (unsigned long long)job->id,
			timer(t, begins[i]), timer(t, ends[i]), host(t, begins[i] + 10 * US));
	}
	job->id++;
}

/*
 * In one kernel each rank sends so many elements to each one, itself too if that is said. The kernel ends when the last rank has come; what
 * NCCL says of each message is how long the first send takes, which waits for none.
 */
static void exchanges(struct job *job, uint64_t counts[RANKS][RANKS], bool to_itself)
{
	uint64_t begins[RANKS], last = 0;
	unsigned int i, k, turn, who = 0;

	for (i = 0; i < job->ranks; i++) {
		launch(&job->told[i], 0);
		begins[i] = job->told[i].gpu_ns + 2 * US;
		if (begins[i] >= last) {
			last = begins[i];
			who = i;
		}
	}
	for (i = 0; i < job->ranks; i++) {
		struct teller *t = &job->told[i];

		t->gpu_ns = last + 20 * US;
		job->wait[i][who] += last - begins[i];
		for (turn = !to_itself; turn < job->ranks; turn++) {
			for (k = 0; k < 2; k++) {
				unsigned int peer = (i + turn) % job->ranks;
				unsigned int from = k ? peer : i, to = k ? i : peer;

				fprintf(t->out,
					"%lluns collective func=%s comm=1 seq=%llu count=%llu "
					"id=%llu peer=%u\n",
					host(t, t->ns), k ? "Recv" : "Send",
					(unsigned long long)++job->sent[from][to][k],
					(unsigned long long)counts[from][to],
					(unsigned long long)++job->id, peer);
				if (turn)
					fprintf(t->ran,
						"%lluns collective_ran comm=1 id=%llu begin=%llu "
						"end=%llu seen=%llu\n",
						host(t, t->gpu_ns + 30 * US),
						(unsigned long long)job->id, timer(t, begins[i]),
						timer(t, begins[i] + 12 * US),
						host(t, begins[i] + 10 * US));
			}
		}
	}
}

/* An all-reduce of which NCCL says that it ran when, long before, rank i did something that ended at times[i]. */
static void all_reduce_with_wrong_times(struct job *job, const uint64_t times[])
{
	for (unsigned int i = 0; i < job->ranks; i++) {
		struct teller *t = &job->told[i];

		launch(t, 0);
		fprintf(t->out,
			"%lluns collective func=AllReduce comm=1 seq=%llu count=1 id=%llu\n",
			host(t, t->ns), (unsigned long long)job->seq,
			(unsigned long long)++job->id);
		t->ns += 60 * US;
		fprintf(t->ran,
			"%lluns collective_ran comm=1 id=%llu begin=%llu end=%llu seen=%llu\n",
			host(t, t->ns), (unsigned long long)job->id, timer(t, times[i] - 20 * US),
			timer(t, times[i]), host(t, t->ns));
		t->gpu_ns = t->ns;
	}
	job->seq++;
}

static void all_reduce(struct job *job)
{
	collective_of(job, "AllReduce", 1024, UINT32_MAX);
}

/* ---- what is found --------------------------------------------------------------------------- */

static const struct rank *rank(const struct job *job, unsigned int i)
{
	assert_true(i < job->a.ranks.n);
	return job->a.ranks.order[i];
}

/* Of the detectors of ranks only that one; NULL: none. said: words of it, or NULL. */
static void finds_that_says(const struct job *job, const char *id, const char *said)
{
	static const char *const ids[] = {
		"straggler-rank",    "slow-gpu",         "uneven-work", "exposed-collective",
		"small-collectives", "collective-order", "slow-link"};
	struct arena texts = {0};
	struct found found = {.texts = &texts};
	size_t i, before;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		before = found.n;
		detectors_find(ids[i])->conclude_ranks(&job->a.ranks, &found);
		if ((found.n > before) != (id && !strcmp(ids[i], id)))
			fail_msg("%s: %s", ids[i],
				 found.n > before ? found.all[before].what : "nothing");
		if (found.n > before && said && !strstr(found.all[before].what, said))
			fail_msg("%s", found.all[before].what);
	}
	findings_free(found.all, found.n);
	arena_release(&texts);
}

static void finds(const struct job *job, const char *id)
{
	finds_that_says(job, id, NULL);
}

static uint64_t charged(const struct job *job, const struct rank *of, int cause)
{
	const struct idle_sum *sum;
	uint64_t ns = 0;

	for (sum = job->a.idle.sums.by_key; sum; sum = sum->hh.next)
		if (sum->key.owner == idle_owner_rank(of->index) &&
		    (cause < 0 || sum->key.cause == (uint32_t)cause))
			ns += sum->ns;
	return ns;
}

/* To a function's calls. */
static uint64_t charged_to(const struct job *job, const struct rank *of, const char *fn)
{
	const struct functions *functions = &job->a.set->functions;
	const struct idle_sum *sum;
	uint64_t ns = 0;

	for (sum = job->a.idle.sums.by_key; sum; sum = sum->hh.next)
		if (sum->key.owner == idle_owner_rank(of->index) &&
		    sum->longest.fn != NO_FUNCTION &&
		    !strcmp(functions->all[sum->longest.fn].name, fn))
			ns += sum->ns;
	return ns;
}

static void near_to(uint64_t value, uint64_t expected, uint64_t by)
{
	assert_in_range(value + by, expected, expected + 2 * by);
}

static uint64_t total_wait(const struct job *job, unsigned int i)
{
	uint64_t sum = 0;
	unsigned int k;

	for (k = 0; k < job->ranks; k++)
		sum += job->wait[i][k];
	return sum;
}

/* Sums agree with each other, and with the truth. */
static void check(const struct job *job, uint64_t by)
{
	const struct ranks *ranks = &job->a.ranks;
	uint64_t wait = 0, caused = 0, late = 0;
	unsigned int i, k;

	assert_int_equal(ranks->n, job->ranks);
	for (i = 0; i < job->ranks; i++) {
		const struct rank *r = rank(job, i);
		uint64_t sum = 0;

		assert_int_equal(r->number, i);
		assert_int_equal(charged(job, r, -1), r->late_ns);
		for (k = 0; k < job->ranks; k++)
			sum += r->waited_for_ns[rank(job, k)->index];
		assert_int_equal(sum, r->wait_ns);
		near_to(r->wait_ns + r->start_wait_ns, total_wait(job, i), by);
		assert_true(r->held_ns <= r->late_ns);
		assert_true(r->late_ns <= r->caused_ns);
		assert_true(r->wait_ns <= r->in_collectives_ns);
		wait += r->wait_ns;
		caused += r->caused_ns;
		late += r->late_ns;
	}
	assert_int_equal(wait, ranks->wait_ns);
	assert_int_equal(caused, ranks->caused_ns);
	assert_int_equal(wait, caused);
	assert_int_equal(late, ranks->late_ns);
}

/* ---- tests ----------------------------------------------------------------------------------- */

#define STEPS 96

/* Each rank works 1 ms a step; every eighth step one frees memory for 5 ms. */
static void tell_free(struct job *job, unsigned int late)
{
	unsigned int i, k;

	for (i = 0; i < STEPS; i++) {
		for (k = 0; k < job->ranks; k++) {
			struct teller *t = &job->told[k];

			computes(t, 300 * US);
			launch(t, 500 * US);
			if (k == late && i % 8 == 7)
				frees(t, 5 * MS);
			launch(t, 200 * US);
		}
		all_reduce(job);
		for (k = 0; k < job->ranks; k++)
			synchronizes(&job->told[k]);
	}
}

static void check_free(const struct job *job, unsigned int late)
{
	const struct ranks *ranks = &job->a.ranks;
	unsigned int k;

	check(job, job->noise ? 500 * US : 100 * US); /* what clocks cannot tell is left out */
	assert_int_equal(ranks->matched, STEPS);
	assert_int_equal(ranks->incomplete + ranks->unaligned + ranks->alone + ranks->lost, 0);
	for (k = 0; k < job->ranks; k++)
		if (k != late)
			assert_true(rank(job, k)->caused_ns < (job->noise ? 3 * MS : 100 * US));
	near_to(rank(job, late)->late_ns + 5 * MS, STEPS / 8 * 5 * MS, 5 * MS + 400 * US);
	assert_true(charged_to(job, rank(job, late), "cudaFree") >
		    rank(job, late)->late_ns * (job->noise ? 90 : 99) / 100);
	assert_true(job->noise || rank(job, late)->last_count <= STEPS / 8);
}

static void test_two(void **state)
{
	struct job *job = *state;

	begin(job, 2);
	tell_free(job, 1);
	conclude(job);
	check_free(job, 1);
	assert_int_equal(job->a.ranks.align_error_ns, 0);
	assert_int_equal(job->a.ranks.n_groups, 1);
	assert_int_equal(job->a.ranks.groups[0].operations, STEPS);
	assert_int_equal(job->a.ranks.groups[0].late_ns, job->a.ranks.late_ns);
	assert_int_equal(job->a.ranks.groups[0].bytes, 4096);
}

/* Timers that differ by an uptime and drift, ends that do not quite agree, hosts whose clocks differ. */
static void test_clocks(void **state)
{
	struct job *job = *state;
	unsigned int i;

	job->noise = 16 * US;
	begin(job, 4);
	for (i = 0; i < job->ranks; i++) {
		job->told[i].gpu_offset = (int64_t)i * 86400ll * 1000 * MS + 7777;
		job->told[i].drift = ((double)i - 1.5) * 15e-6;
		job->told[i].host_offset = 0;
	}
	tell_free(job, 2);
	conclude(job);
	check_free(job, 2);
	assert_in_range(job->a.ranks.align_error_ns, 2 * US, 20 * US);
}

static void begin_hosts(struct job *job, unsigned int ranks, int64_t apart)
{
	unsigned int i;

	for (i = 0; i < ranks; i++)
		job->told[i] = (struct teller){.host_offset = i >= ranks / 2 ? apart : 0,
					       .gpu_offset = (int64_t)i * 1000 * MS,
					       .other_host = i >= ranks / 2};
	begin(job, ranks);
}

static void test_hosts(void **state)
{
	static const int64_t apart[] = {10 * MS, 3000ll * MS};
	struct job *job = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(apart); i++) {
		begin_hosts(job, 4, apart[i]);
		tell_free(job, 3);
		conclude(job);
		check_free(job, 3);
	}
}

/* All ranks alike: nobody is named. */
static void test_clean(void **state)
{
	struct job *job = *state;
	unsigned int i;

	job->noise = 16 * US;
	begin(job, 3);
	for (i = 0; i < job->ranks; i++)
		job->told[i].drift = (double)i * 20e-6;
	tell_free(job, RANKS);
	conclude(job);
	assert_int_equal(job->a.ranks.matched, STEPS);
	assert_true(job->a.ranks.late_ns < 500 * US);
	assert_int_equal(job->a.ranks.steps.slow_count, 0);
	finds(job, NULL);
}

/* It sleeps where others do not, or longer; it computes. */
static void test_reasons(void **state)
{
	struct job *job = *state;
	unsigned int i, k;

	begin(job, 3);
	for (i = 0; i < STEPS; i++) {
		for (k = 0; k < job->ranks; k++) {
			struct teller *t = &job->told[k];

			launch(t, 100 * US);
			sleeps(t, MS, 0x50);
			if (k == 1)
				sleeps(t, 2 * MS, 0x60);
			launch(t, 100 * US);
		}
		all_reduce(job);
	}
	conclude(job);
	check(job, 100 * US);
	finds(job, "straggler-rank");
	assert_true(rank(job, 1)->last_count > STEPS - 10);
	assert_true(charged(job, rank(job, 1), IDLE_SLEEP) > rank(job, 1)->late_ns * 95 / 100);
}

/* What the report says of it; NULL: nothing. */
static const char *says_of(const json_t *root, const char *id, const char **severity)
{
	const json_t *finding;
	size_t i;

	json_array_foreach(json_object_get(root, "findings"), i, finding)
	{
		if (strcmp(json_string_value(json_object_get(finding, "id")), id))
			continue;
		*severity = json_string_value(json_object_get(finding, "severity"));
		return json_string_value(json_object_get(finding, "what"));
	}
	return NULL;
}

/* Each rank computes for as long as its kernels take; in those that block the launch takes that long, too. */
static json_t *launches_block(struct job *job, unsigned int first, unsigned int n)
{
	unsigned int i, j, k;

	for (k = 0; k < 3; k++)
		job->told[k].extra = k - first < n ? "env_CUDA_LAUNCH_BLOCKING=\"1\"" : NULL;
	begin(job, 3);
	for (i = 0; i < STEPS; i++) {
		for (k = 0; k < job->ranks; k++) {
			struct teller *t = &job->told[k];

			for (j = 0; j < 10; j++) {
				uint64_t waits_ns = k - first < n && (i || j) ? 200 * US : 0;

				computes(t, 200 * US);
				t->ns += 4 * US + waits_ns;
				fprintf(t->out,
					"%lluns launch cudaLaunchKernel kernel=1 stream=8 caller=0x10 duration=%lluns\n",
					host(t, t->ns), (unsigned long long)(4 * US + waits_ns));
				t->gpu_ns = waits_ns ? t->ns : t->ns + 200 * US;
			}
		}
		all_reduce(job);
	}
	conclude(job);
	return report_of(job);
}

/* The variable in one rank makes that one late; the twins: in all of them no rank is, and in none there is no such thing. */
static void test_launches_block(void **state)
{
	struct job *job = *state;
	const char *severity = NULL, *what;
	json_t *root = launches_block(job, 1, 1);

	what = says_of(root, "launch-blocking", &severity);
	assert_non_null(what);
	assert_non_null(strstr(what, "CUDA_LAUNCH_BLOCKING is set in a.101, 1 of 3 processes: "));
	assert_string_equal(severity, "problem");
	what = says_of(root, "straggler-rank", &severity);
	assert_non_null(what);
	assert_non_null(strstr(what, "; due to launch-blocking"));
	assert_string_equal(severity, "note");
	json_decref(root);
	root = launches_block(job, 0, 3);
	what = says_of(root, "launch-blocking", &severity);
	assert_non_null(what);
	assert_non_null(strstr(what, "is set in all 3 processes"));
	assert_null(says_of(root, "straggler-rank", &severity));
	json_decref(root);
	root = launches_block(job, 0, 0);
	assert_null(says_of(root, "launch-blocking", &severity));
	assert_null(says_of(root, "straggler-rank", &severity));
	json_decref(root);
	for (unsigned int k = 0; k < 3; k++)
		job->told[k].extra = NULL;
}

/* The last of four ranks comes less behind the last but one than behind the first: without what it does, the job would
 * gain that, at least, and no more than what the first one waits. */
static void test_gain(void **state)
{
	struct job *job = *state;
	struct arena texts = {0};
	struct found found = {.texts = &texts};
	const struct rank *last;
	unsigned int i, k;

	begin(job, 4);
	for (i = 0; i < STEPS; i++) {
		for (k = 0; k < job->ranks; k++) {
			struct teller *t = &job->told[k];

			launch(t, (100 + (k < 3 ? k : 0) * 300) * US);
			sleeps(t, k < 3 ? MS : 3 * MS, 0x50);
			launch(t, 100 * US);
		}
		all_reduce(job);
	}
	conclude(job);
	check(job, 100 * US);
	last = rank(job, 3);
	detectors_find("straggler-rank")->conclude_ranks(&job->a.ranks, &found);
	assert_int_equal(found.n, 1);
	assert_true(found.all->cost.gain_known);
	near_to(found.all->cost.gain_high_ns, job->wait[0][3], MS);
	near_to(found.all->cost.gain_low_ns, job->wait[2][3], MS);
	near_to(last->held_ns, job->wait[2][3], MS);
	assert_true(job->wait[2][3] < job->wait[0][3] - 10 * MS);
	findings_free(found.all, found.n);
	arena_release(&texts);
}

/* A step in which rank 1 computes for 1.8 ms longer than the others: here and there, or in one place. */
static void compute_in_places(struct job *job, bool everywhere)
{
	unsigned int k, place;

	for (k = 0; k < job->ranks; k++)
		for (place = 0; place < 6; place++) {
			uint64_t more = k != 1       ? 0
					: everywhere ? 300 * US
					: place == 3 ? 1800 * US
						     : 0;

			computes(&job->told[k], MS + more);
			launch_at(&job->told[k], 50 * US, 0x100 + place);
		}
	all_reduce(job);
}

/* A rank whose CPU is slower has no work that others do not have. */
static void test_slower_everywhere(void **state)
{
	struct job *job = *state;
	unsigned int i;

	begin(job, 3);
	for (i = 0; i < STEPS; i++)
		compute_in_places(job, true);
	conclude(job);
	finds_that_says(job, "straggler-rank", "takes longer than theirs for what all of them do");
	begin(job, 3);
	for (i = 0; i < STEPS; i++)
		compute_in_places(job, false);
	conclude(job);
	finds_that_says(job, "straggler-rank", "unlike them");
}

/* Its kernels take longer: its thread was in time, or waits for it. */
static void test_gpu_late(void **state)
{
	struct job *job = *state;
	unsigned int i, k, waits;

	for (waits = 0; waits < 2; waits++) {
		begin(job, 2);
		for (i = 0; i < STEPS; i++) {
			for (k = 0; k < job->ranks; k++) {
				struct teller *t = &job->told[k];

				launch(t, k == 1 ? 1500 * US : MS);
				launch(t, k == 1 ? 750 * US : 500 * US);
				if (waits)
					synchronizes(t);
			}
			all_reduce(job);
			for (k = 0; k < job->ranks; k++)
				synchronizes(&job->told[k]);
		}
		conclude_into(job, "r");
		analyze(job);
		check(job, MS);
		finds(job, "slow-gpu");
		near_to(rank(job, 1)->late_ns + rank(job, 1)->start_caused_ns, STEPS * 750 * US,
			2 * MS);
		assert_true(charged(job, rank(job, 1), IDLE_GPU_WORK) >
			    rank(job, 1)->late_ns * 95 / 100);
		assert_true(rank(job, 1)->gpu_late_count > STEPS - 10);
		assert_true(rank(job, 1)->gpu_late_same_work >
			    rank(job, 1)->gpu_late_count * 9 / 10);
	}
}

/* Synchronising where the others do not is what it did, not its GPU. */
/* Rank 1 frees memory in a step of 32; its kernels take longer by slow_ns in each. */
static void tell_lag(struct job *job, uint64_t slow_ns)
{
	unsigned int i, k;

	begin(job, 3);
	for (i = 0; i < STEPS; i++) {
		for (k = 0; k < job->ranks; k++) {
			struct teller *t = &job->told[k];

			computes(t, 20 * US);
			launch(t, 1000 * US);
			if (k == 1 && i % 32 == 20)
				frees(t, 5 * MS);
			launch(t, k == 1 ? 200 * US + slow_ns : 200 * US);
		}
		all_reduce(job);
		for (k = 0; k < job->ranks; k++)
			synchronizes(&job->told[k]);
	}
	conclude(job);
}

/* The same, for another process has work on its GPU. */
static void test_gpu_shared(void **state)
{
	struct job *job = *state;
	unsigned int i, k;

	begin(job, 2);
	for (i = 0; i < STEPS; i++) {
		for (k = 0; k < job->ranks; k++) {
			struct teller *t = &job->told[k];

			launch(t, k ? 30 * MS : 20 * MS);
			if (k && i % 4 == 0)
				fprintf(t->out,
					"%lluns gpu_look device=0 busy=100 others=1 other_pid=99 "
					"own_busy=52 others_busy=48\n",
					host(t, t->ns));
		}
		all_reduce(job);
		for (k = 0; k < job->ranks; k++)
			synchronizes(&job->told[k]);
	}
	conclude_into(job, "r");
	analyze(job);
	finds_that_says(job, "slow-gpu",
			"kernels of other processes ran on it for 48 % of the time");
}

/* Where nothing waits for collectives, a rank that was late once stays behind, and its GPU is none the slower. */
static void test_lag(void **state)
{
	struct job *job = *state;
	const struct rank *late;

	job->beside = true;
	tell_lag(job, 0);
	late = rank(job, 1);
	assert_true(late->last_count > STEPS / 2);
	assert_true(charged_to(job, late, "cudaFree") > late->late_ns * 8 / 10);
	assert_true(late->gpu_late_ns < late->late_ns / 20);
	finds(job, "straggler-rank");
}

/* The same where nothing ever waits for them: each time costs the others once, though in all that follow they wait as long again. */
static void test_lag_is_paid_once(void **state)
{
	struct job *job = *state;
	const struct rank *late;

	job->beside = job->own_stream = true;
	tell_lag(job, 0);
	late = rank(job, 1);
	near_to(late->late_ns, 3 * 5 * MS, MS);
	near_to(late->paid_ns, 2 * late->late_ns, MS);
	assert_true(late->caused_ns > 5 * late->late_ns);
}

/* A slow GPU stays one, though its thread is late now and then, too. */
static void test_lag_of_slow_gpu(void **state)
{
	struct job *job = *state;
	const struct rank *late;

	tell_lag(job, 700 * US);
	late = rank(job, 1);
	near_to(charged_to(job, late, "cudaFree"), 3 * 5 * MS, 2 * MS);
	near_to(late->gpu_late_ns, STEPS * 700 * US, 5 * MS);
	finds(job, "slow-gpu");
}

static void test_more_synchronising(void **state)
{
	struct job *job = *state;
	unsigned int i, k, n;

	begin(job, 2);
	for (i = 0; i < STEPS; i++) {
		for (k = 0; k < job->ranks; k++)
			for (n = 0; n < 10; n++) {
				launch(&job->told[k], 200 * US);
				if (k)
					synchronizes(&job->told[k]);
				computes(&job->told[k], 50 * US);
			}
		all_reduce(job);
	}
	conclude(job);
	finds(job, "straggler-rank");
	assert_true(rank(job, 1)->late_ns > STEPS * 300 * US);
	assert_true(charged(job, rank(job, 1), IDLE_CUDA_WAIT) > rank(job, 1)->late_ns / 2);
}

static void test_steps_by_pattern(void **state)
{
	struct job *job = *state;
	const struct rank_steps *steps;
	unsigned int i, k, n;

	begin(job, 2);
	collective_of(job, "Broadcast", 77, UINT32_MAX); /* a different start */
	for (i = 0; i < STEPS; i++)
		for (n = 0; n < 4; n++) {
			for (k = 0; k < job->ranks; k++) {
				struct teller *t = &job->told[k];

				computes(t, n ? 100 * US : MS);
				launch(t, 100 * US);
				if (k == 1 && n == 1 && i % 8 == 7)
					frees(t, 5 * MS);
			}
			collective_of(job, "AllReduce", 1000 + (n == 3 ? 1 : n), UINT32_MAX);
		}
	conclude(job);
	steps = &job->a.ranks.steps;
	assert_int_equal(steps->by, RANK_STEPS_PATTERN);
	assert_int_equal(steps->operations, 4);
	assert_in_range(steps->count, STEPS - 2, STEPS);
	near_to(steps->median_ns, 1400 * US, 150 * US);
	assert_in_range(steps->n_slow, 11, 12);
	assert_in_range(steps->slow_count, 11, 12);
	assert_int_equal(steps->slow_every, 8);
	assert_int_equal(steps->slow_more_ns,
			 steps->slow_ns - steps->slow_count * steps->median_ns);
	for (i = 0; i < steps->n_slow; i++) {
		const struct rank_step *step = &steps->slow[i];

		assert_int_equal(step->number % 8, 0);
		assert_int_equal(step->last, rank(job, 1)->index);
		near_to(step->ns, 6000 * US, 600 * US); /* threads run ahead */
		assert_ptr_equal(step->process, rank(job, 1)->process);
		assert_true(step->cause_ns > 4 * MS);
	}
}

/* As many slow steps, but by chance; steps that are somewhat slow beside those that come again; and slow ones in a row. */
static void test_slow_by_chance(void **state)
{
	struct job *job = *state;
	const unsigned int slow[] = {3, 11, 14, 22, 31, 37, 52, 58, 66, 71, 83};

	for (unsigned int regular = 0; regular < 3; regular++) {
		begin(job, 2);
		for (unsigned int i = 0, n = 0; i < STEPS; i++) {
			bool by_chance = regular == 2 ? i >= 40 && i < 52
						      : n < ARRAY_SIZE(slow) && slow[n] == i;

			for (unsigned int k = 0; k < job->ranks; k++) {
				computes(&job->told[k], MS);
				if (k && by_chance)
					frees(&job->told[k], regular == 1 ? 2 * MS : 9 * MS);
				if (k && regular == 1 && i % 10 == 5)
					frees(&job->told[k], 9 * MS);
			}
			n += by_chance;
			collective_of(job, "AllReduce", 1000, UINT32_MAX);
			collective_of(job, "AllReduce", 1001, UINT32_MAX);
			for (unsigned int k = 0; k < job->ranks; k++)
				waits_for_collectives(&job->told[k]);
		}
		conclude(job);
		assert_true(job->a.ranks.steps.slow_count > 9);
		assert_int_equal(job->a.ranks.steps.slow_every, regular == 1 ? 10 : 0);
	}
}

/* Two operations in each step of 2 ms: rank 0 is last in the first one, rank 1 in the second one, each for so long. */
static void tell_late(struct job *job, uint64_t first_ns, uint64_t second_ns)
{
	unsigned int i, k;

	begin(job, 2);
	for (i = 0; i < 2 * STEPS; i++) {
		for (k = 0; k < job->ranks; k++)
			launch(&job->told[k], MS + (k != i % 2 ? 0 : k ? second_ns : first_ns));
		collective_of(job, "AllReduce", 1000 + i % 2, UINT32_MAX);
	}
	conclude(job);
	assert_int_equal(job->a.ranks.steps.operations, 2);
	assert_in_range(job->a.ranks.steps.count, STEPS - 2, STEPS - 1);
}

/* A step is one rank's that was last in it for longest, and only where that was a twentieth of the step. */
static void test_steps_of_a_rank(void **state)
{
	struct job *job = *state;
	unsigned int k;

	tell_late(job, 60 * US, 80 * US);
	for (k = 0; k < job->ranks; k++)
		assert_int_equal(rank(job, k)->steps, 0);
	assert_true(rank(job, 1)->last_count > STEPS - 10);

	tell_late(job, 140 * US, 130 * US);
	assert_int_equal(rank(job, 0)->steps, job->a.ranks.steps.count);
	assert_int_equal(rank(job, 1)->steps, 0);

	tell_late(job, 140 * US, 150 * US);
	assert_int_equal(rank(job, 0)->steps, 0);
	assert_int_equal(rank(job, 1)->steps, job->a.ranks.steps.count);
}

/* Around half of all the steps: too few ranges to be steps themselves. */
static void begin_epoch(struct job *job, bool again)
{
	for (unsigned int k = 0; k < job->ranks; k++) {
		struct teller *t = &job->told[k];

		if (again)
			fprintf(t->out, "%lluns range what=pop name=%u\n", host(t, t->ns),
				STEPS + 1);
		fprintf(t->out,
			"%lluns range_name number=%u name=\"epoch\"\n"
			"%lluns range what=push name=%u\n",
			host(t, t->ns), STEPS + 1, host(t, t->ns), STEPS + 1);
	}
}

/* first: the rank by which steps are counted, though the other one has named the ranges before. */
static void steps_by_nvtx(struct job *job, unsigned int first, bool epochs)
{
	unsigned int i, k, n;

	begin(job, 2);
	computes(&job->told[first], 5 * US);
	for (i = 0; i < STEPS; i++) {
		if (epochs && i % (STEPS / 2) == 0)
			begin_epoch(job, i);
		for (k = 0; k < job->ranks; k++) {
			struct teller *t = &job->told[k];

			computes(t, 100 * US);
			fprintf(t->out,
				"%lluns range_name number=%u name=\"step %u\"\n"
				"%lluns range what=push name=%u\n",
				host(t, t->ns), i + 1, i, host(t, t->ns), i + 1);
		}
		if (!i)
			computes(&job->told[!first], 10 * US);
		for (n = 0; n < 1 + i % 3; n++) {
			for (k = 0; k < job->ranks; k++) {
				launch(&job->told[k], 100 * US);
				if (k == 0 && i == 50)
					sleeps(&job->told[k], 4 * MS, 0x50);
			}
			all_reduce(job);
		}
		for (k = 0; k < job->ranks; k++)
			fprintf(job->told[k].out, "%lluns range what=pop name=%u\n",
				host(&job->told[k], job->told[k].ns), i + 1);
	}
	conclude(job);
	assert_int_equal(job->a.ranks.steps.by, RANK_STEPS_NVTX);
	assert_non_null(strstr(job->a.ranks.steps.range->name, "step"));
	/* Whichever thread has read it: the model's own name. */
	i = job->a.ranks.steps.range->index;
	assert_true(i < job->a.model.range_names.n);
	assert_ptr_equal(job->a.model.range_names.all[i], job->a.ranks.steps.range);
	assert_in_range(job->a.ranks.steps.count, STEPS - 1, STEPS);
	assert_true(job->a.ranks.steps.n_slow >= 1);
}

static void test_steps_by_nvtx(void **state)
{
	steps_by_nvtx(*state, 0, false);
	steps_by_nvtx(*state, 1, false);
	steps_by_nvtx(*state, 0, true);
}

/* No times of GPUs: what NCCL's thread saw, on one host; on two hosts nothing. */
static void test_old_interfaces(void **state)
{
	struct job *job = *state;

	job->interface = 3;
	begin(job, 2);
	tell_free(job, 1);
	conclude(job);
	check_free(job, 1);
	assert_true(job->a.ranks.by_host_times);
	begin_hosts(job, 2, 0);
	tell_free(job, 1);
	conclude(job);
	assert_int_equal(job->a.ranks.matched, 0);
	assert_int_equal(job->a.ranks.unaligned, STEPS);
	assert_int_equal(job->a.ranks.late_ns, 0);
}

/* Launchers say which rank a process is; a rank that was started again is the same. */
static void test_started_again(void **state)
{
	static const char *const extra[] = {
		"rank=5 local_rank=0 world_size=16 job=\"j\" restarts=0 rank_from=RANK",
		"rank=3 local_rank=1 world_size=16 job=\"j\" restarts=0 rank_from=RANK",
		"rank=5 local_rank=0 world_size=16 job=\"j\" restarts=1 rank_from=RANK",
		"rank=3 local_rank=1 world_size=16 job=\"j\" restarts=1 rank_from=RANK",
		"rank=3 local_rank=1 world_size=16 job=\"k\" rank_from=RANK",
	};
	struct job *job = *state;
	const struct rank *r;
	unsigned int n, k;

	for (n = 0; n < 2; n++) {
		for (k = 0; k < 2; k++) {
			job->told[k].extra = extra[2 * n + k];
			job->told[k].host_offset = (int64_t)n * 2000 * MS;
		}
		begin(job, 2);
		tell_free(job, 1);
		conclude_into(job, n ? "second" : "first");
	}
	begin(job, 1);
	job->told[0].extra = extra[4];
	launch(&job->told[0], 0);
	conclude_into(job, "third");
	analyze(job);
	assert_int_equal(job->a.ranks.n, 3);
	r = rank(job, 0);
	assert_int_equal(r->number, 3);
	assert_int_equal(r->restarts, 1);
	assert_int_equal(r->n_processes, 2);
	assert_string_equal(r->job, "j");
	assert_int_equal(r->world_size, 16);
	assert_int_equal(r->operations, 2 * STEPS);
	assert_int_equal(rank(job, 1)->number, 5);
	assert_true(r->late_ns > 2 * 10 * 4 * MS);
	assert_int_equal(job->a.ranks.matched, 2 * STEPS);
	assert_string_equal(rank(job, 2)->job, "k");
	assert_int_equal(rank(job, 2)->operations, 0);
}

static void test_missing(void **state)
{
	struct job *job = *state;
	const struct rank_missing *missing;

	begin(job, 3);
	tell_free(job, RANKS);
	collective_of(job, "AllGather", 9, 2);
	conclude(job);
	assert_int_equal(job->a.ranks.n_missing, 1);
	missing = &job->a.ranks.missing[0];
	assert_int_equal(missing->missing, rank(job, 2)->index);
	assert_int_equal(missing->n_missing, 1);
	assert_int_equal(missing->n_waiting, 2);
	assert_int_equal(missing->waiting.func, SPY_NCCL_ALL_GATHER);
	assert_true(missing->has_last);
	assert_int_equal(missing->last.func, SPY_NCCL_ALL_REDUCE);
	assert_int_equal(missing->last.seq, STEPS - 1);
	assert_int_equal(job->a.ranks.matched, STEPS);
	assert_int_equal(job->a.ranks.incomplete, 1);
	assert_int_equal(job->a.ranks.disagreement.count, 0);
	finds(job, "collective-order");
}

static void test_order(void **state)
{
	struct job *job = *state;
	const struct rank_disagreement *d = &job->a.ranks.disagreement;
	unsigned int k;

	begin(job, 2);
	tell_free(job, RANKS);
	for (k = 0; k < 4; k++) {
		struct teller *t = &job->told[k % 2];

		launch(t, 0);
		fprintf(t->out, "%lluns collective func=%s comm=1 seq=%u count=5 id=%u\n",
			host(t, t->ns), k == 0 || k == 3 ? "AllGather" : "ReduceScatter", 0,
			1000 + k);
	}
	conclude(job);
	assert_int_equal(d->count, 1);
	assert_int_equal(d->kind, RANK_ANOTHER_ORDER);
	assert_int_equal(d->hash, 0xab);
	assert_int_not_equal(d->a.func, d->b.func);
	assert_int_not_equal(d->a.rank, d->b.rank);
	finds(job, "collective-order");
}

/* What a rank submits that another one does not, or that is another's in other numbers; and what is only not recorded. */
enum oddity { ONE_MORE, ANOTHER_SIZE, IN_A_COUNTING_WINDOW, NOT_RECORDED, ODDITIES };

static void tell_odd(struct job *job, enum oddity what)
{
	struct teller *t = &job->told[1];

	launch(t, 0);
	switch (what) {
	case IN_A_COUNTING_WINDOW: /* of rank 0 */
		fprintf(job->told[0].ran,
			"slot 0\n%lluns window state=counting\n%lluns window state=recording\nslot "
			"2\n",
			host(t, t->ns - US), host(t, t->ns + US));
		/* fall through */
	case ONE_MORE:
		fprintf(t->out, "%lluns collective func=AllGather comm=1 seq=0 count=5 id=5000\n",
			host(t, t->ns));
		break;
	case ANOTHER_SIZE:
		fprintf(t->out,
			"%lluns collective func=AllReduce comm=1 seq=%llu count=5 id=5000\n",
			host(t, t->ns), (unsigned long long)job->seq);
		launch(&job->told[0], 0);
		fprintf(job->told[0].out,
			"%lluns collective func=AllReduce comm=1 seq=%llu count=6 id=5000\n",
			host(&job->told[0], job->told[0].ns), (unsigned long long)job->seq++);
		break;
	default: /* all but rank 1 have one that has its number in rank 1, too */
		fprintf(job->told[0].out,
			"%lluns collective func=AllReduce comm=1 seq=%llu count=1000 id=5000\n",
			host(&job->told[0], job->told[0].ns), (unsigned long long)job->seq++);
		break;
	}
}

static void test_order_unknown(void **state)
{
	struct job *job = *state;
	const struct rank_disagreement *d = &job->a.ranks.disagreement;
	unsigned int what, i;

	for (what = 0; what < ODDITIES; what++) {
		begin(job, 2);
		for (i = 0; i < STEPS; i++) {
			if (i == STEPS / 2)
				tell_odd(job, what);
			computes(&job->told[0], 50 * MS);
			computes(&job->told[1], 50 * MS);
			collective_of(job, "AllReduce", 1000, RANKS);
		}
		conclude(job);
		finds(job, what < IN_A_COUNTING_WINDOW ? "collective-order" : NULL);
		assert_int_equal(d->count, what < IN_A_COUNTING_WINDOW);
		if (what == ONE_MORE) {
			assert_int_equal(d->kind, RANK_ONE_MORE);
			assert_int_equal(d->a.func, SPY_NCCL_ALL_GATHER);
			assert_int_equal(d->a.rank, rank(job, 1)->index);
			assert_int_equal(d->b.rank, rank(job, 0)->index);
			assert_int_equal(d->b.seq, STEPS / 2);
		} else if (what == ANOTHER_SIZE) {
			assert_int_equal(d->kind, RANK_ANOTHER_SIZE);
			assert_int_equal(d->a.count + d->b.count, 11);
		}
	}
}

/* A rank waits at the end for one that never came; the twins: that one's record, or the end of what waits, may be missing. */
static void test_missing_unknown(void **state)
{
	static const int windows[] = {-1, 0, 1, 2};
	struct job *job = *state;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		begin(job, 3);
		tell_free(job, RANKS);
		collective_of(job, "AllGather", 9, 2);
		if (windows[i] >= 0)
			fprintf(job->told[windows[i]].ran,
				"slot 0\n%lluns window state=counting\nslot 2\n",
				host(&job->told[0], job->told[0].ns + US));
		conclude(job);
		/* The record of one that waits is enough. */
		assert_int_equal(job->a.ranks.n_missing, windows[i] != 2);
		if (windows[i] != 2)
			assert_int_equal(job->a.ranks.missing[0].n_waiting, windows[i] < 0 ? 2 : 1);
	}
}

/* Rank 2 has not come to the last operation; its record is one that keeps the last, and has not kept the begin. It may have come
 * before, where nothing that is there shows that it did not. */
static void test_missing_where_the_begin_is(void **state)
{
	struct job *job = *state;
	unsigned int i;
	char path[400];

	for (i = 0; i < 4; i++) {
		begin(job, 3);
		job->told[2].extra = "packet=4096 bounded=1";
		fprintf(job->told[2].ran,
			"slot 0\n1us nccl_comm interface=5 number=1 hash=0xab rank=2 ranks=3 "
			"tid=7\nslot 2\n");
		tell_free(job, RANKS);
		collective_of(job, i % 2 ? "AllGather" : "AllReduce", 9, 2);
		conclude_into(job, "r");
		snprintf(path, sizeof(path), "%s/r.2/stream_0001_%06d", job->dir, 0);
		if (i >= 2)
			assert_int_equal(remove(path), 0);
		analyze(job);
		job->told[2].extra = NULL;
		assert_int_equal(job->a.ranks.n_missing, i != 3);
	}
}

/* ---- what may be missing --------------------------------------------------------------------- */

static void submits(struct job *job, unsigned int k, const char *func, unsigned int seq,
		    unsigned int count, unsigned int id)
{
	struct teller *t = &job->told[k];

	launch(t, 0);
	fprintf(t->out, "%lluns collective func=%s comm=1 seq=%u count=%u id=%u\n", host(t, t->ns),
		func, seq, count, id);
}

static void counts_only(struct job *job, unsigned int k, bool to_the_end)
{
	struct teller *t = &job->told[k];

	fprintf(t->out, "%lluns window state=counting\n", host(t, t->ns + 100));
	t->ns += MS;
	if (!to_the_end)
		fprintf(t->out, "%lluns window state=recording\n", host(t, t->ns));
}

/* Several never came: all count, and the first is named, of those that wait, too. */
static void test_several_missing(void **state)
{
	struct job *job = *state;
	const struct rank_missing *missing = &job->a.ranks.missing[0];
	unsigned int i;

	begin(job, 5);
	tell_free(job, RANKS);
	for (i = 1; i < 5; i += 2)
		submits(job, i, "AllGather", 0, 9, 5000);
	conclude(job);
	assert_int_equal(job->a.ranks.n_missing, 1);
	assert_int_equal(missing->n_missing, 3);
	assert_int_equal(missing->n_waiting, 2);
	assert_int_equal(missing->missing, rank(job, 0)->index);
	assert_int_equal(missing->waiting.rank, rank(job, 1)->index);
}

/* Sizes that come again; rank 1's record lacks one, by a cost window or only so, and it makes one less if it does not. */
static void tell_sizes(struct job *job, unsigned int lacks, bool window)
{
	unsigned int i, k;

	begin(job, 2);
	for (i = 0; i < 3 * STEPS; i++) {
		for (k = 0; k < 2; k++) {
			if (k && i == lacks && window)
				counts_only(job, k, false);
			if (!k || i != lacks)
				submits(job, k, i % 3 == 2 ? "AllGather" : "AllReduce",
					i % 3 == 2 ? i / 3 : i / 3 * 2 + i % 3, 100 + i % 3, i + 1);
		}
	}
}

static void test_order_where_something_is_missing(void **state)
{
	struct job *job = *state;
	unsigned int lacks;

	for (lacks = 0; lacks < 8; lacks++) {
		tell_sizes(job, lacks, lacks & 1);
		conclude(job);
		assert_int_equal(job->a.ranks.disagreement.count, 0);
		assert_int_equal(job->a.ranks.n_missing, 0);
	}
}

/* Every tenth step is not recorded, by a cost window or because it was lost: the one before it is not slow, its end is unknown. */
static void test_steps_that_are_missing(void **state)
{
	struct job *job = *state;
	const struct rank_steps *steps = &job->a.ranks.steps;
	unsigned int i, k, n, window;

	for (window = 0; window < 2; window++) {
		begin(job, 2);
		for (i = 0; i < STEPS; i++) {
			for (k = 0; i % 10 == 5 && k < 2; k++) {
				if (window)
					counts_only(job, k, false);
				computes(&job->told[k], 2 * MS);
			}
			if (i % 10 == 5) {
				job->seq += 4;
				continue;
			}
			for (n = 0; n < 4; n++) {
				for (k = 0; k < 2; k++) {
					computes(&job->told[k], n ? 100 * US : MS);
					launch(&job->told[k], 100 * US);
				}
				collective_of(job, "AllReduce", 1000 + n, UINT32_MAX);
			}
		}
		conclude(job);
		assert_int_equal(steps->by, RANK_STEPS_PATTERN);
		assert_int_equal(steps->operations, 4);
		assert_in_range(steps->count, STEPS / 10 * 7, STEPS / 10 * 9);
		assert_int_equal(steps->slow_count, 0);
	}
}

/* Behind what is missing, another size and another order are still found. */
static void test_disagreement_behind_a_hole(void **state)
{
	struct job *job = *state;
	const struct rank_disagreement *d = &job->a.ranks.disagreement;
	unsigned int size, k;

	for (size = 0; size < 2; size++) {
		tell_sizes(job, 4, true);
		for (k = 0; k < 2; k++) {
			bool swaps = k && !size;

			submits(job, k, swaps ? "AllGather" : "AllReduce",
				swaps ? STEPS : 2 * STEPS, k && size ? 8 : 7, 4000);
			submits(job, k, swaps ? "AllReduce" : "AllGather",
				swaps ? 2 * STEPS : STEPS, 7, 4001);
		}
		conclude(job);
		assert_int_equal(d->count, 1);
		assert_int_equal(d->kind, size ? RANK_ANOTHER_SIZE : RANK_ANOTHER_ORDER);
		assert_int_not_equal(d->a.rank, d->b.rank);
		assert_int_equal(d->a.seq,
				 size || d->a.func == SPY_NCCL_ALL_REDUCE ? 2 * STEPS : STEPS);
	}
}

/* Who waits at the end waits for a rank only if that one cannot have come: its record goes on, and has it not. */
static void test_missing_at_the_end(void **state)
{
	static const char killed[] = "\nboard ended=0";
	static const struct {
		const char *ended;
		uint64_t later; /* a record of the one that waits */
		int counts; /* who only counted calls at last */
		size_t missing;
	} cases[] = {{"", 0, -1, 1},
		     {"", 0, 0, 0},
		     {"", 0, 1, 0},
		     {killed, 0, -1, 0},
		     {killed, 10 * MS, -1, 0},
		     {killed, 3000 * (uint64_t)MS, -1, 1}};
	struct job *job = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(job, 2);
		tell_free(job, RANKS);
		job->told[0].extra = job->told[1].extra = cases[i].ended;
		collective_of(job, "AllGather", 9, 1);
		if (cases[i].counts >= 0)
			counts_only(job, (unsigned int)cases[i].counts, true);
		if (cases[i].later)
			sleeps(&job->told[0], cases[i].later, 0x50);
		conclude(job);
		assert_int_equal(job->a.ranks.n_missing, cases[i].missing);
		assert_int_equal(job->a.ranks.disagreement.count, 0);
	}
}

/* A rank's GPU has more to do in every fourth step; the twin: in one step. */
static void test_uneven(void **state)
{
	struct job *job = *state;
	unsigned int i, k, once;

	for (once = 0; once < 2; once++) {
		begin(job, 3);
		for (i = 0; i < STEPS; i++) {
			for (k = 0; k < job->ranks; k++) {
				launch(&job->told[k], MS);
				if (k == 2 && (once ? i == 50 : i % 4 == 3))
					launch(&job->told[k], 2 * MS);
			}
			all_reduce(job);
			for (k = 0; k < job->ranks; k++)
				synchronizes(&job->told[k]);
		}
		conclude_into(job, "r");
		analyze(job);
		finds(job, once ? NULL : "uneven-work");
	}
}

/* GPUs have more to do for a while, now the one and now the other; the twin: always the same one. That it was late in that part
 * of the run is not its habit, nor do ranks change places. */
static void test_uneven_for_a_while(void **state)
{
	struct job *job = *state;
	unsigned int i, k, same;

	for (same = 0; same < 2; same++) {
		begin(job, 3);
		for (i = 0; i < STEPS; i++) {
			for (k = 0; k < job->ranks; k++) {
				launch(&job->told[k], MS);
				if (i >= STEPS / 2 && i < STEPS / 2 + 15 && k == (same ? 2 : i % 3))
					launch(&job->told[k], 10 * MS);
			}
			all_reduce(job);
			for (k = 0; k < job->ranks; k++)
				synchronizes(&job->told[k]);
		}
		conclude_into(job, "r");
		analyze(job);
		finds_that_says(job, same ? NULL : "uneven-work",
				"now for one and now for another");
	}
}

#define IN_STEP 4

/* The end of a step whose collectives run beside the work that comes before the next one. Before the last one there is little. */
static void buckets(struct job *job, const uint64_t each_ns[])
{
	unsigned int b, k, n;

	for (b = 0; b < IN_STEP; b++) {
		for (k = 0; k < job->ranks; k++)
			for (n = 0; n < 4; n++)
				launch(&job->told[k],
				       b + 1 < IN_STEP ? each_ns[k] : each_ns[k] / 10);
		collective_of(job, "AllReduce", 1024 + b, UINT32_MAX);
	}
	for (k = 0; k < job->ranks; k++)
		waits_for_collectives(&job->told[k]);
}

/* The work of the one and of the other takes four times as long, in turn. It does so before the first collective, and on beside them.
 * The twin's thread is late by as much at the first one, and all else takes as long. */
static void test_uneven_beside(void **state)
{
	struct job *job = *state;
	unsigned int i, asleep;

	job->beside = job->own_stream = true;
	for (asleep = 0; asleep < 2; asleep++) {
		begin(job, 2);
		for (i = 0; i < STEPS; i++) {
			uint64_t each_ns[2] = {100 * US, 100 * US};

			if (asleep)
				sleeps(&job->told[i % 2], 1200 * US, 0x50);
			else
				each_ns[i % 2] *= 4;
			buckets(job, each_ns);
		}
		conclude_into(job, "r");
		analyze(job);
		near_to(job->a.ranks.late_ns, STEPS * (asleep ? 1200 : 3720) * US,
			(asleep ? 8 : 24) * MS);
		finds_that_says(job, asleep ? NULL : "uneven-work",
				"rank 0 in 48 of 95 steps, rank 1 in 47; it had as many");
	}
}

/* A GPU that is slower all the time falls back further with each of the collectives of a step, beside which its work goes on: each costs the
 * others that, though they wait for less, or for more, than it is behind. */
static void test_slow_beside(void **state)
{
	static const uint64_t each_ns[3] = {100 * US, 100 * US, 200 * US};
	struct job *job = *state;
	unsigned int i;

	job->beside = job->own_stream = true;
	begin(job, 3);
	for (i = 0; i < STEPS; i++)
		buckets(job, each_ns);
	conclude_into(job, "r");
	analyze(job);
	near_to(rank(job, 2)->late_ns, STEPS * (3 * 4 * 100 + 4 * 10) * US, STEPS * 60 * US);
	finds(job, "slow-gpu");
}

enum more { MORE_WORK, MORE_SYNCHRONISING, MORE_SLEEP };

static void does_more(struct teller *t, enum more what)
{
	unsigned int n;

	if (what == MORE_SLEEP)
		sleeps(t, 2 * MS, 0x50);
	for (n = 0; n < 20 && what != MORE_SLEEP; n++) {
		computes(t, 40 * US);
		launch(t, 100 * US);
		if (what == MORE_SYNCHRONISING)
			synchronizes(t);
	}
}

/* Beside collectives: one rank has more work for its GPU, which it takes a while to submit. In the twins it waits for each piece of
 * that, or sleeps. */
static void test_more_work_beside(void **state)
{
	static const uint64_t each_ns[2] = {100 * US, 100 * US};
	struct job *job = *state;
	unsigned int i;
	enum more what;

	job->beside = job->own_stream = true;
	for (what = MORE_WORK; what <= MORE_SLEEP; what++) {
		begin(job, 2);
		all_reduce(job); /* begins right behind its launch */
		waits_for_collectives(&job->told[0]);
		waits_for_collectives(&job->told[1]);
		for (i = 0; i < STEPS; i++) {
			does_more(&job->told[1], what);
			launch(&job->told[0], 2 * MS);
			launch(&job->told[1], 2 * MS);
			buckets(job, each_ns);
		}
		conclude_into(job, "r");
		analyze(job);
		if (what != MORE_SYNCHRONISING)
			near_to(rank(job, 1)->late_ns, STEPS * 2 * MS, 10 * MS);
		finds_that_says(job, what == MORE_WORK ? "uneven-work" : "straggler-rank",
				"holds the other ranks up");
	}
}

/* Many of one kind in a row; the twin has work between them. */
static void test_small(void **state)
{
	struct job *job = *state;
	unsigned int i, k, between;

	for (between = 0; between < 2; between++) {
		begin(job, 2);
		for (i = 0; i < 4 * STEPS; i++) {
			for (k = 0; k < job->ranks && (between || i % 32 == 0); k++) {
				launch(&job->told[k], 20 * US);
				launch(&job->told[k], 20 * US);
			}
			all_reduce(job);
		}
		conclude_into(job, "r");
		analyze(job);
		finds(job, between ? NULL : "small-collectives");
	}
}

/* The root is waited for, or waits. */
static void test_roots(void **state)
{
	static const char *const funcs[] = {"Broadcast", "Reduce"};
	struct job *job = *state;
	unsigned int f, i, k;

	for (f = 0; f < 2; f++) {
		begin(job, 3);
		for (i = 0; i < STEPS; i++) {
			for (k = 0; k < 3; k++) {
				/* Root 0 is 1 ms late, rank 2 2 ms. */
				sleeps(&job->told[k], (k == 0 ? 2 : k == 1 ? 1 : 3) * MS, 0x50);
				launch(&job->told[k], 10 * US);
			}
			all_reduce(job);
			for (k = 0; k < 3; k++) {
				synchronizes(&job->told[k]);
				sleeps(&job->told[k], (k == 0 ? 2 : k == 1 ? 1 : 3) * MS, 0x50);
				launch(&job->told[k], 10 * US);
			}
			collective_of(job, funcs[f], 9, UINT32_MAX);
			for (k = 0; k < 3; k++)
				synchronizes(&job->told[k]);
		}
		conclude(job);
		assert_int_equal(job->a.ranks.matched, 2 * STEPS);
		for (i = 0; i < job->a.ranks.n_groups; i++) {
			const struct rank_group *group = &job->a.ranks.groups[i];

			if (group->func == SPY_NCCL_BROADCAST) {
				near_to(group->late_ns, STEPS * MS, 5 * MS);
				near_to(group->wait_ns, STEPS * MS, 5 * MS);
			} else if (group->func == SPY_NCCL_REDUCE) {
				near_to(group->wait_ns, STEPS * MS, 5 * MS);
			} else {
				near_to(group->wait_ns, STEPS * 3 * MS, 15 * MS);
				near_to(group->late_ns, STEPS * 2 * MS, 10 * MS);
			}
		}
	}
}

/* Sends and receives in pairs, by their numbers: of each fifth send, and each seventh receive, there is no record. */
static void test_pairs(void **state)
{
	struct job *job = *state;
	unsigned int i, k, whole = 0;

	begin(job, 3);
	for (i = 0; i < STEPS; i++) {
		whole += i % 5 != 3 && i % 7 != 3;
		all_reduce(job);
		for (k = 0; k < 2; k++) {
			struct teller *t = &job->told[k];
			uint64_t begins;

			if (k)
				sleeps(t, 2 * MS, 0x50);
			launch(t, 0);
			begins = t->gpu_ns + 2 * US;
			t->gpu_ns = job->told[1].ns + (k ? 0 : 2 * MS) + 20 * US;
			if (i % (k ? 7 : 5) == 3)
				continue;
			fprintf(t->out,
				"%lluns collective func=%s comm=1 seq=%u count=3 id=%u peer=%u\n",
				host(t, t->ns), k ? "Recv" : "Send", i + 1, 5000 + i, !k);
			fprintf(t->ran,
				"%lluns collective_ran comm=1 id=%u begin=%llu end=%llu "
				"seen=%llu\n",
				host(t, t->gpu_ns + 30 * US), 5000 + i, timer(t, begins),
				timer(t, t->gpu_ns), host(t, begins + 10 * US));
		}
		for (k = 0; k < 3; k++)
			synchronizes(&job->told[k]);
	}
	conclude(job);
	assert_int_equal(job->a.ranks.matched, STEPS + whole);
	for (i = 0; i < job->a.ranks.n_groups; i++)
		if (job->a.ranks.groups[i].func == SPY_NCCL_SEND)
			near_to(job->a.ranks.groups[i].late_ns, whole * 2 * MS, 5 * MS);
	assert_true(rank(job, 0)->waited_for_ns[rank(job, 1)->index] > whole * 19 / 10 * MS);
	assert_int_equal(rank(job, 2)->caused_ns, 0);
}

#define MICROBATCHES 4

/* A step of a pipeline: all microbatches forward, then all of them backward. Threads begin the next one together. */
static void pipeline_step(struct job *job, const uint64_t work_ns[])
{
	unsigned int m, k;
	uint64_t last = 0;

	for (m = 0; m < MICROBATCHES; m++)
		for (k = 0; k < job->ranks; k++) {
			if (k)
				sends(job, k - 1, k);
			launch(&job->told[k], work_ns[k]);
		}
	for (m = 0; m < MICROBATCHES; m++)
		for (k = job->ranks; k-- > 0;) {
			if (k + 1 < job->ranks)
				sends(job, k + 1, k);
			launch(&job->told[k], 2 * work_ns[k]);
		}
	for (k = 0; k < job->ranks; k++) {
		synchronizes(&job->told[k]);
		last = job->told[k].ns > last ? job->told[k].ns : last;
	}
	for (k = 0; k < job->ranks; k++)
		job->told[k].ns = last;
}

/* A pipeline: stages only send to each other, which aligns their timers. They wait for each other as the schedule has it, and that is
 * nobody's fault; but where the last one has more work, it is. */
static void test_pipeline(void **state)
{
	uint64_t work_ns[3] = {300 * US, 300 * US, 300 * US};
	struct job *job = *state;
	unsigned int i, heavy;

	for (i = 0; i < 3; i++) {
		job->told[i].gpu_offset = (int64_t)i * 7 * MS;
		job->told[i].drift = i * 1e-6;
	}
	for (heavy = 0; heavy < 2; heavy++) {
		begin(job, 3);
		work_ns[2] *= heavy ? 3 : 1;
		for (i = 0; i < STEPS; i++) {
			/* Now the send is submitted first, and now the receive. */
			computes(&job->told[i % 3 == 1], 100 * US);
			pipeline_step(job, work_ns);
		}
		conclude_into(job, "r");
		analyze(job);
		check(job, 4 * MS);
		assert_true(job->a.ranks.align_error_ns > 0);
		assert_true(job->a.ranks.align_error_ns < 30 * US);
		assert_int_equal(job->a.ranks.steps.operations, 4 * MICROBATCHES); /* rank 1 */
		finds_that_says(job, heavy ? "uneven-work" : NULL, "rank 2 (GPU 0) holds");
	}
}

/* Experts: the last rank receives more than the others and works longer for it; the twins: all receive the same, and one rank's GPU is slower,
 * or its thread sleeps; or no rank is slower. Now and then a collective has times that are not its own: no clock is aligned by these. */
static void test_all_to_all(void **state)
{
	static const struct {
		bool more, slower, sleeps;
		const char *finds, *says;
	} cases[] = {
		{true, true, false, "uneven-work", "received 3.0 times what they did on average"},
		{false, true, false, "slow-gpu", "as much work submitted"},
		{false, false, true, "straggler-rank", "asleep"},
		{true, false, false, NULL, NULL},
		{false, false, false, NULL, NULL},
	};
	struct job *job = *state;
	unsigned int c, i, k;

	for (i = 0; i < 3; i++)
		job->told[i].gpu_offset = (int64_t)i * 7 * MS;
	for (c = 0; c < ARRAY_SIZE(cases); c++) {
		uint64_t counts[RANKS][RANKS], before[3] = {0};

		for (i = 0; i < RANKS; i++)
			for (k = 0; k < RANKS; k++)
				counts[i][k] = cases[c].more && k == 2 ? 3 << 20 : 1 << 20;
		begin(job, 3);
		for (i = 0; i < 10; i++)
			all_reduce(job);
		for (i = 0; i < STEPS; i++) {
			for (k = 0; k < 3 && !i; k++)
				before[k] = job->told[k].gpu_ns - k * MS / 4;
			if (i % 24 == 20)
				all_reduce_with_wrong_times(job, before);
			for (k = 0; k < 3; k++)
				launch(&job->told[k], k == 2 && cases[c].slower ? 3 * MS : MS);
			if (cases[c].sleeps)
				sleeps(&job->told[2], 3 * MS, 0x50);
			exchanges(job, counts, true);
			for (k = 0; k < 3; k++)
				synchronizes(&job->told[k]);
		}
		conclude_into(job, "r");
		analyze(job);
		check(job, MS);
		assert_int_equal(job->a.ranks.matched, 10 + STEPS * 6);
		assert_int_equal(job->a.ranks.incomplete + job->a.ranks.lost, 0);
		finds_that_says(job, cases[c].finds, cases[c].says);
	}
}

/* The same without messages to themselves is no all-to-all: ranks that wait in sends and receives are stages. A receive in a
 * kernel with a send waits for longer than NCCL says. */
static void test_sends_beside_receives(void **state)
{
	uint64_t counts[RANKS][RANKS] = {{0, 2048}, {2048}};
	struct job *job = *state;
	unsigned int i;

	begin(job, 2);
	for (i = 0; i < 10; i++)
		all_reduce(job);
	for (i = 0; i < STEPS; i++) {
		launch(&job->told[0], MS);
		launch(&job->told[1], 3 * MS);
		exchanges(job, counts, false);
	}
	conclude(job);
	check(job, MS);
	finds_that_says(job, "uneven-work", "rank 1 (GPU 0) holds");
}

/* One collective at the begin, then only sends and receives, by timers that count from 1970 on: what was learned at the begin holds,
 * with the drift since then as its error. */
static void test_clocks_of_long_ago(void **state)
{
	struct job *job = *state;
	unsigned int i;

	job->told[0].gpu_offset = job->told[1].gpu_offset = (int64_t)1700000000 * 1000 * MS;
	begin(job, 2);
	all_reduce(job);
	for (i = 0; i < 3 * STEPS; i++) {
		sleeps(&job->told[1], 2 * MS, 0x50);
		sends(job, 1, 0);
	}
	conclude(job);
	assert_int_equal(job->a.ranks.matched, 1 + 3 * STEPS);
	assert_true(job->a.ranks.align_error_ns < 100 * US);
	assert_true(rank(job, 0)->wait_ns > 3 * STEPS * 19 / 10 * MS);
}

/* Threads are with their GPUs at the begin only, then ever further ahead of them. What was learnt of the host's clock holds: that a
 * thread of one rank does more, ahead of its GPU, holds nobody up; that its GPU does more, does. */
static void test_ahead_of_gpus(void **state)
{
	struct job *job = *state;
	unsigned int i, k;

	begin(job, 2);
	for (i = 0; i < 4 * STEPS; i++) {
		for (k = 0; k < 2; k++) {
			if (k && i >= STEPS)
				sleeps(&job->told[k], 200 * US, 0x50);
			if (i >= STEPS / 2)
				launch(&job->told[k], (k && i >= STEPS ? 1500 : 500) * US);
		}
		all_reduce(job);
		for (k = 0; k < 2 && i < STEPS / 2; k++)
			synchronizes(&job->told[k]);
	}
	conclude(job);
	assert_true(job->a.ranks.host_error_ns < 100 * US);
	near_to(rank(job, 1)->late_ns, 3 * STEPS * MS, 10 * MS);
	assert_true(charged(job, rank(job, 1), IDLE_GPU_WORK) > rank(job, 1)->late_ns * 98 / 100);
}

/* As many as a long run has. */
/* More ranks than there are bits in a word: the one in the second word is late by 2 ms, each second time. */
static void test_many_ranks(void **state)
{
	struct job *job = *state;
	unsigned int i, k;

	begin(job, 70);
	for (i = 0; i < 20; i++) {
		for (k = 0; k < job->ranks; k++)
			computes(&job->told[k], (k == 66 && i % 2 ? 2500 : 500) * US);
		all_reduce(job);
		for (k = 0; k < job->ranks; k++)
			synchronizes(&job->told[k]);
	}
	conclude(job);
	assert_int_equal(job->a.ranks.matched, 20);
	assert_int_equal(job->a.ranks.incomplete + job->a.ranks.alone, 0);
	check(job, 100 * US);
	assert_int_equal(rank(job, 66)->last_count, 10);
	near_to(rank(job, 66)->late_ns, 20 * MS, 200 * US);
	near_to(rank(job, 0)->wait_ns, 20 * MS, 200 * US);
}

/* More sizes than are told apart: the rest of a function is one group. */
static void test_many_sizes(void **state)
{
	struct job *job = *state;
	uint64_t operations = 0, rest = 0;
	unsigned int i;

	job->unnoted = true;
	begin(job, 2);
	for (i = 0; i < RANK_GROUPS_MOST; i++)
		collective_of(job, i % 2 ? "AllGather" : "AllReduce", 1000 + i, UINT32_MAX);
	conclude(job);
	assert_int_equal(job->a.ranks.n_groups, RANK_GROUPS_MOST / 2 + 2);
	for (i = 0; i < job->a.ranks.n_groups; i++) {
		const struct rank_group *group = &job->a.ranks.groups[i];

		operations += group->operations;
		rest += group->count ? 0 : group->operations;
		assert_int_equal(group->bytes, 4 * group->count);
		assert_int_equal(!group->count, group->operations > 1);
	}
	assert_int_equal(operations, RANK_GROUPS_MOST);
	assert_int_equal(rest, RANK_GROUPS_MOST / 2);
}

/* Rank 1 is at 60 places between two operations, at which all but one of its lateness is small: what is kept are the large ones. */
static void test_many_places(void **state)
{
	struct job *job = *state;
	const struct idle_sum *sum;
	uint64_t ns = 0;
	unsigned int i, k;

	begin(job, 2);
	for (i = 0; i < STEPS; i++) {
		for (k = 0; k < 60; k++)
			sleeps(&job->told[1], k == 5 ? 3 * MS : (20 + k) * US, 0x1000 + 16 * k);
		for (k = 0; k < 2; k++)
			launch(&job->told[k], 100 * US);
		all_reduce(job);
		for (k = 0; k < 2; k++)
			synchronizes(&job->told[k]);
	}
	conclude(job);
	check(job, 200 * US);
	for (sum = job->a.idle.sums.by_key; sum; sum = sum->hh.next)
		if (sum->key.owner == idle_owner_rank(rank(job, 1)->index) &&
		    sum->longest.address == 0x1050)
			ns += sum->ns;
	near_to(ns, (STEPS - 1) * 3 * (uint64_t)MS, 9 * MS); /* the first step's is the start's */
	assert_true(rank(job, 1)->late_ns > ns + (STEPS - 2) * 48 * 40 * (uint64_t)US);
}

static void test_many(void **state)
{
	struct job *job = *state;
	unsigned int i, k;

	begin(job, 2);
	for (i = 0; i < 100000; i++) {
		for (k = 0; k < 2; k++)
			computes(&job->told[k], (k ? 50 : 10) * US);
		all_reduce(job);
		for (k = 0; k < 2 && i % 1000 == 999; k++)
			synchronizes(&job->told[k]);
	}
	conclude(job);
	assert_int_equal(job->a.ranks.matched, 100000);
	assert_int_equal(job->a.ranks.lost, 0);
	check(job, 10 * MS);
	assert_int_equal(job->a.ranks.steps.operations, 1);
	assert_in_range(job->a.ranks.steps.count, 99990, 100000);
}

/* With GPU times: hardly anything but collectives, whose data take 2 ms. Where launches wait for their kernels, nothing can run beside
 * them. */
static void test_nothing_beside(void **state)
{
	struct job *job = *state;
	unsigned int i, k, blocks;

	job->gpu_times = true;
	job->moves_ns = 2 * MS;
	for (blocks = 0; blocks < 2; blocks++) {
		job->told[0].extra = job->told[1].extra =
			blocks ? "env_CUDA_LAUNCH_BLOCKING=\"1\"" : NULL;
		begin(job, 2);
		for (i = 0; i < STEPS; i++) {
			for (k = 0; k < 2; k++) {
				struct teller *t = &job->told[k];

				launch(t, 0);
				t->submitted = t->ns;
				on_gpu(job, t, t->ns + 2 * US, t->ns + 102 * US);
				t->gpu_ns = t->ns + 102 * US;
			}
			all_reduce(job);
			for (k = 0; k < 2; k++)
				synchronizes(&job->told[k]);
		}
		conclude(job);
		finds(job, blocks ? NULL : "exposed-collective");
	}
	job->told[0].extra = job->told[1].extra = NULL;
}

/* With GPU times: what of collective operations nothing else hides. */
static void test_exposed(void **state)
{
	struct job *job = *state;
	unsigned int i, k, hidden;

	job->gpu_times = true;
	for (hidden = 0; hidden < 2; hidden++) {
		begin(job, 2);
		for (i = 0; i < STEPS; i++) {
			for (k = 0; k < 2; k++) {
				struct teller *t = &job->told[k];

				launch(t, 0);
				t->submitted = t->ns;
				/* The second rank is a millisecond late; 400 us of that something else is done. */
				on_gpu(job, t, t->ns + 2 * US, t->ns + 102 * US);
				if (k == 0 && hidden) {
					launch(t, 0);
					t->submitted = t->ns;
					on_gpu(job, t, t->ns + 200 * US, t->ns + 600 * US);
				}
				t->gpu_ns = t->ns + 102 * US + (k ? MS : 0);
			}
			all_reduce(job);
			for (k = 0; k < 2; k++)
				synchronizes(&job->told[k]);
		}
		conclude(job);
		assert_true(rank(job, 0)->exposed_known);
		near_to(rank(job, 0)->collective_ns, STEPS * 1020 * US, 3 * MS);
		near_to(rank(job, 0)->exposed_ns, STEPS * (hidden ? 620 : 1020) * US, 3 * MS);
		near_to(rank(job, 0)->own_ns, STEPS * (hidden ? 500 : 100) * US, 3 * MS);
		near_to(rank(job, 0)->own_operations, STEPS * (1 + hidden), 3);
		near_to(rank(job, 1)->exposed_ns, STEPS * 20 * US, MS);
	}
}

/* A thread that sleeps all the time, and pins memory now and then. */
static void pins(struct teller *t, uint64_t since)
{
	fprintf(t->ran,
		"slot 4 tid=9\n"
		"%lluns outside kind=sleep caller=0x92 duration=%lluns\n"
		"%lluns memory cudaHostAlloc op=alloc kind=pinned address=0x9000 caller=0x91 "
		"duration=10us\n"
		"slot 2\n",
		host(t, t->ns), (unsigned long long)(t->ns - since), host(t, t->ns + 10 * US));
}

/* A thread submits the operations when another one lets it: that one freed memory, or slept. */
static void tell_on_behalf(struct job *job, bool loader)
{
	unsigned int i, k;

	begin(job, 2);
	for (i = 0; i < STEPS; i++) {
		uint64_t last = 0, begins[2], since[2];

		for (k = 0; k < 2; k++) {
			struct teller *t = &job->told[k];

			since[k] = t->ns;
			launch(t, 100 * US);
			computes(t, 200 * US);
			if (k && i % 2 && !loader)
				frees(t, 2 * MS);
			if (k && i % 2 && loader)
				sleeps(t, 2 * MS, 0x72);
			launch(t, 100 * US);
			if (loader)
				pins(t, since[k]);
			/* The other thread, whose records are in the stream of NCCL's. */
			t->ns += 20 * US;
			fprintf(t->ran,
				"%lluns outside kind=condition caller=0x70 duration=%lluns\n"
				"%lluns launch cudaLaunchKernel kernel=1 stream=8 caller=0x80 "
				"duration=4us\n"
				"%lluns collective func=AllReduce comm=1 seq=%u count=9 id=%u\n",
				host(t, t->ns), (unsigned long long)(t->ns - since[k]),
				host(t, t->ns + 4 * US), host(t, t->ns + 4 * US), i, i);
			begins[k] = (t->gpu_ns > t->ns ? t->gpu_ns : t->ns) + 5 * US;
			last = begins[k] > last ? begins[k] : last;
		}
		for (k = 0; k < 2; k++) {
			struct teller *t = &job->told[k];

			t->gpu_ns = last + 20 * US;
			fprintf(t->ran,
				"%lluns collective_ran comm=1 id=%u begin=%llu end=%llu "
				"seen=%llu\n",
				host(t, last + 30 * US), i, timer(t, begins[k]),
				timer(t, t->gpu_ns), host(t, last + 30 * US));
			t->ns = last + 40 * US;
			fprintf(t->out, "%lluns outside kind=condition caller=0x71 duration=50us\n",
				host(t, t->ns));
		}
	}
	conclude_into(job, "r");
	analyze(job);
	near_to(rank(job, 1)->late_ns, STEPS / 2 * 2 * MS, 4 * MS);
}

static void test_on_behalf(void **state)
{
	struct job *job = *state;

	tell_on_behalf(job, false);
	assert_true(charged_to(job, rank(job, 1), "cudaFree") > rank(job, 1)->late_ns * 9 / 10);
}

/* A third thread pins what a data loader brings, and waits for the same: what the feeding thread waits for is told. */
static void test_on_behalf_beside_loader(void **state)
{
	struct job *job = *state;
	const struct idle_sum *sum;
	uint64_t ns = 0;

	tell_on_behalf(job, true);
	for (sum = job->a.idle.sums.by_key; sum; sum = sum->hh.next)
		if (sum->key.owner == idle_owner_rank(rank(job, 1)->index) &&
		    sum->longest.address == 0x72)
			ns += sum->ns;
	assert_true(ns > rank(job, 1)->late_ns * 9 / 10);
}

/* ---- lines of Python ------------------------------------------------------------------------- */

/* What samples find a rank's thread in: the sampler has the stream of NCCL's thread. And a module, by which two calls are at
 * two places. */
static void tell_python(struct job *job)
{
	unsigned int k;

	for (k = 0; k < job->ranks; k++)
		fputs("slot 0\n1us module base=0x7f000000 begin=0x7f000000 end=0x7f001000 "
		      "span_pages=1 path=\"/lib/a.so\"\nslot 2\n"
		      "1us python_code code=1 first_line=1 file=\"/home/user/train.py\" "
		      "function=\"step\"\n"
		      "1us python_code code=2 first_line=1 file=\"/home/user/train.py\" "
		      "function=\"collect\"\n"
		      "2us place place=1 lines=1:11\n2us place place=2 lines=2:22,1:12\n",
		      job->told[k].ran);
}

/* A time between two calls, in which samples find the thread every 10 ms, or (ns is less) in the middle. */
static void works_at(struct teller *t, uint64_t ns, const char *at)
{
	uint64_t every = ns < 10 * MS ? ns : 10 * MS, passed;

	for (passed = every / 2; passed < ns; passed += every)
		fprintf(t->ran, "%lluns sample of=7 %s weight=%llu\n", host(t, t->ns + passed), at,
			(unsigned long long)every / US);
	t->ns += ns;
}

/* Rank 1 collects garbage each fourth step, from when it has submitted a collective, which is going on still. */
static void test_long_gap_with_samples(void **state)
{
	struct job *job = *state;
	unsigned int i, k;

	begin(job, 2);
	tell_python(job);
	for (i = 0; i < STEPS; i++) {
		if (i % 4 == 3)
			works_at(&job->told[1], 100 * MS, "place=2 state=9");
		for (k = 0; k < job->ranks; k++)
			launch(&job->told[k], 2 * MS);
		all_reduce(job);
		for (k = 0; k < job->ranks; k++)
			job->told[k].ns += 100 * US;
	}
	conclude(job);
	assert_true(rank(job, 1)->late_ns > (uint64_t)STEPS / 4 * 90 * MS);
	assert_true(charged(job, rank(job, 1), IDLE_GC) > rank(job, 1)->late_ns * 9 / 10);
	finds(job, "straggler-rank");
}

/* A thread that is ahead of its GPU did most of its step before the ranks met last, at places where it was since, too. What it did since is no
 * more than the time that has passed: the rest of what the late one did is all of its lateness. */
static void test_ahead(void **state)
{
	struct job *job = *state;
	unsigned int i, k, n;

	begin(job, 2);
	tell_python(job);
	computes(&job->told[1], 4 * MS);
	for (i = 0; i < STEPS; i++) {
		for (k = 0; k < job->ranks; k++) {
			for (n = 0; n < 20; n++)
				sleeps(&job->told[k], 250 * US, 0x7f000100 + n % 10);
			launch(&job->told[k], 10 * US);
		}
		all_reduce(job);
	}
	conclude(job);
	check(job, 100 * US);
	assert_true(rank(job, 1)->late_ns > (STEPS - 10) * 3 * MS);
	assert_true(charged(job, rank(job, 1), IDLE_SLEEP) > rank(job, 1)->late_ns / 100 * 95);
}

/* A step of two ranks, each of which computes for 5 ms at a line, and now one and now the other for longer. */
static void compute_in_turn(struct job *job, unsigned int i, uint64_t more_ns)
{
	unsigned int k;

	for (k = 0; k < job->ranks; k++) {
		works_at(&job->told[k], 5 * MS + (i % 2 == k ? more_ns : 0), "place=1 state=1");
		launch_at(&job->told[k], 100 * US, 0x7f000100);
	}
}

static void end_step(struct job *job)
{
	unsigned int k;

	for (k = 0; k < job->ranks; k++)
		launch(&job->told[k], 100 * US);
	all_reduce(job);
	for (k = 0; k < job->ranks; k++)
		synchronizes(&job->told[k]);
}

/* Ranks that are late in turn, about as long, and every eighth step one of them does what the other one does not; or, each time another one, what
 * both do. */
static void tell_turns(struct job *job, bool unshared)
{
	unsigned int i;

	begin(job, 2);
	tell_python(job);
	for (i = 0; i < STEPS; i++) {
		compute_in_turn(job, i, 3 * MS);
		if (i % 8 == 6)
			works_at(&job->told[unshared ? 0 : i / 8 % 2], 12 * MS,
				 unshared ? "place=2 state=1" : "place=1 state=1");
		end_step(job);
	}
	conclude(job);
}

/* A slow step has its reason where samples found the thread, and not at the call that it made next. */
static void test_slow_steps_with_samples(void **state)
{
	struct job *job = *state;
	const struct rank_steps *steps = &job->a.ranks.steps;

	tell_turns(job, true);
	assert_in_range(steps->n_slow, STEPS / 8 - 1, STEPS / 8);
	for (size_t i = 0; i < steps->n_slow; i++) {
		assert_int_equal(steps->slow[i].last, rank(job, 0)->index);
		assert_int_equal(steps->slow[i].cause.fn, NO_FUNCTION);
		assert_int_equal(python_line(steps->slow[i].cause.stack).line, 22);
	}
}

static void test_unshared(void **state)
{
	struct job *job = *state;
	struct arena texts = {0};
	struct found found = {.texts = &texts};

	tell_turns(job, true);
	finds_that_says(job, "straggler-rank", "what no other rank does");
	detectors_find("straggler-rank")->conclude_ranks(&job->a.ranks, &found);
	near_to(found.all->cost.gain_low_ns, STEPS / 8 * 12 * MS, 10 * MS);
	assert_int_equal(found.all->cost.gain_high_ns, rank(job, 0)->late_ns);
	assert_int_equal(rank(job, 1)->unshared.ns, 0);
	assert_true(found.all->cost.gain_high_ns > found.all->cost.gain_low_ns + 20 * MS);
	findings_free(found.all, found.n);
	arena_release(&texts);
	tell_turns(job, false);
	finds(job, NULL);
}

/* Where one rank spends nearly all of the time that any spends there, it is alone in that, and not the one which was there once. */
static void test_unshared_by_one(void **state)
{
	struct job *job = *state;
	unsigned int i;

	begin(job, 2);
	tell_python(job);
	for (i = 0; i < STEPS; i++) {
		if (i % 8 == 6)
			works_at(&job->told[0], 12 * MS, "place=2 state=1");
		if (i == 10)
			works_at(&job->told[1], 6 * MS, "place=2 state=1");
		end_step(job);
	}
	conclude(job);
	near_to(rank(job, 0)->unshared.ns, STEPS / 8 * 12 * MS, 2 * MS);
	near_to(rank(job, 1)->late_ns, 6 * MS, MS);
	assert_int_equal(rank(job, 1)->unshared.ns, 0);
}

/* At one line, where the others are nearly as long; or half as long, for it does more there. */
static void test_slower_at_line(void **state)
{
	struct job *job = *state;
	struct arena texts = {0};
	struct found found = {.texts = &texts};
	unsigned int i, k, more;

	for (more = 0; more < 2; more++) {
		begin(job, 3);
		tell_python(job);
		for (i = 0; i < STEPS; i++) {
			for (k = 0; k < job->ranks; k++) {
				works_at(&job->told[k],
					 k != 1 ? 5 * MS : (more ? 10 * MS : 6500 * US),
					 "place=1 state=1");
				launch_at(&job->told[k], 100 * US, 0x7f000100);
			}
			end_step(job);
		}
		conclude(job);
		finds_that_says(job, "straggler-rank",
				more ? "unlike them"
				     : "takes longer than theirs for what all of them do");
		detectors_find("straggler-rank")->conclude_ranks(&job->a.ranks, &found);
		assert_int_equal(found.all[more].remarks.maybe_harmless, !more);
	}
	findings_free(found.all, found.n);
	arena_release(&texts);
}

/* What no other rank does is the reason before what is slower in many places, but not before another place that has more of it. */
static void test_unshared_beside(void **state)
{
	struct job *job = *state;
	unsigned int i, k;

	begin(job, 3);
	tell_python(job);
	for (i = 0; i < STEPS; i++) {
		works_at(&job->told[1], 2 * MS, "place=2 state=1");
		compute_in_places(job, true);
	}
	conclude(job);
	finds_that_says(job, "straggler-rank", "what no other rank does");
	begin(job, 3);
	tell_python(job);
	for (i = 0; i < STEPS; i++) {
		for (k = 0; k < job->ranks; k++) {
			works_at(&job->told[k], k == 1 ? 9 * MS : 5 * MS, "place=1 state=1");
			launch_at(&job->told[k], 100 * US, 0x7f000100);
		}
		if (i % 8 == 6)
			works_at(&job->told[1], 11 * MS, "place=2 state=1");
		end_step(job);
	}
	conclude(job);
	assert_true(rank(job, 1)->unshared.ns > 80 * MS);
	finds_that_says(job, "straggler-rank", "unlike them");
}

static void test_damaged(void **state)
{
	static const char *const wrong[] = {
		"collective func=AllReduce comm=9 seq=1 id=1",
		"collective func=AllReduce comm=1 seq=3 id=3 count=0xffffffffffffffff",
		"collective func=AllReduce comm=1 seq=3 id=3",
		"collective func=Send comm=1 peer=-5 id=9",
		"collective func=Recv comm=1 peer=7 id=9",
		"collective_ran comm=1 id=77 begin=5 end=4",
		"collective_ran comm=1 id=3 begin=0xffffffffffffffff end=0xffffffffffffffff",
		"collective_ran comm=1 id=9 begin=500 end=400 seen=0xffffffffffffffff",
		"nccl_comm number=1 hash=0xab rank=0xffffffff ranks=0xffffffff",
		"nccl_comm number=2 hash=0xab rank=1 ranks=1",
		"collective func=AllReduce comm=1 seq=3 id=3",
		"collective func=AllReduce comm=2 seq=0xffffffffffffffff id=0",
		"nccl_state state=taken text=\"libnccl-profiler.so\"",
	};
	struct job *job = *state;
	size_t i, k;

	begin(job, 2);
	for (k = 0; k < 2; k++)
		for (i = 0; i < ARRAY_SIZE(wrong); i++)
			fprintf(job->told[k].out, "%lluns %s\n", host(&job->told[k], MS), wrong[i]);
	tell_free(job, 1);
	conclude(job);
	assert_true(job->a.ranks.lost > 4);
	assert_true(job->a.ranks.states[0].seen);
	assert_int_equal(job->a.ranks.states[0].state, SPY_NCCL_TAKEN);
	assert_string_equal(job->a.ranks.states[0].text, "libnccl-profiler.so");
}

/* Each operation takes 20 us behind the last arrival. */
static void test_rates(void **state)
{
	static const struct {
		const char *func;
		uint64_t count;
		double bytes; /* over each link, of three ranks */
	} cases[] = {
		{"AllReduce", 1 << 20, 4.0 * (1 << 20) * 4 / 3},
		{"AllGather", 1 << 20, 4.0 * (1 << 20) * 2},
		{"Broadcast", 1 << 20, 4.0 * (1 << 20)},
		{"AllReduce", 1 << 10, 0}, /* it is the begin that takes time */
	};
	struct job *job = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(job, 3);
		for (unsigned int step = 0; step < 20; step++) {
			collective_of(job, "ReduceScatter", 7,
				      UINT32_MAX); /* by which clocks are aligned */
			job->seq--;
			collective_of(job, cases[i].func, cases[i].count, UINT32_MAX);
		}
		conclude(job);
		for (size_t k = 0; k < job->a.ranks.n_groups; k++) {
			const struct rank_group *g = &job->a.ranks.groups[k];

			if (g->count == cases[i].count)
				near_to((uint64_t)rank_group_rate(&job->a.ranks, g),
					(uint64_t)(cases[i].bytes / 20e-6), 1000);
		}
		job->a.ranks.align_error_ns = 11 * US;
		assert_true(rank_group_rate(&job->a.ranks, &job->a.ranks.groups[0]) == 0);
	}
}

/* 32 MiB a step by the host's memory, though there are NVLinks; the twins: by NVLink, or there is none, or less data. */
static void test_slow_link(void **state)
{
	static const struct {
		unsigned int links;
		uint64_t moves_ns, count;
		const char *finds;
	} cases[] = {
		{18, 1200 * US, 8 << 20, "slow-link"},
		{18, 170 * US, 8 << 20, NULL},
		{0, 1200 * US, 8 << 20, NULL},
		{18, 1200 * US, 1 << 10, NULL},
	};
	struct job *job = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		job->moves_ns = cases[i].moves_ns;
		begin(job, 2);
		for (unsigned int step = 0; step < 4 * STEPS; step++) {
			for (unsigned int k = 0; k < 2; k++) {
				struct teller *t = &job->told[k];

				launch(t, 4 * MS);
				fprintf(t->out,
					"%lluns gpu_look device=0 busy=100 links=%u link_mbytes=%u\n",
					host(t, t->ns), cases[i].links, cases[i].links ? 26562 : 0);
			}
			collective_of(job, "AllReduce", cases[i].count, UINT32_MAX);
			for (unsigned int k = 0; k < 2; k++)
				synchronizes(&job->told[k]);
		}
		conclude_into(job, "r");
		analyze(job);
		finds_that_says(
			job, cases[i].finds,
			"AllReduce of 32.0 MiB moves 28 GB/s (bus bandwidth) when all ranks are there, and "
			"each GPU has 478 GB/s of NVLink in each direction");
	}
	job->moves_ns = 0;
}

/* ---- several communicators, and places ---------------------------------------------------------- */

static const struct rank_group *group_of(const struct job *job, uint64_t hash)
{
	const struct rank_group *found = NULL;

	for (size_t i = 0; i < job->a.ranks.n_groups; i++)
		if (job->a.ranks.groups[i].hash == hash) {
			assert_null(found);
			found = &job->a.ranks.groups[i];
		}
	assert_non_null(found);
	return found;
}

/* The ranks of two hosts meet in each step, those of a host before all. Rank 3 is 2 ms late for its pair, and 0.5 ms more for all; to rank 1
 * of the other pair that happens once. */
static void test_communicators(void **state)
{
	struct job *job = *state;
	struct pair pairs[2] = {{0, 0}, {2, 0}};
	const struct rank_group *group;
	unsigned int i, k, p;

	begin_hosts(job, 4, 3000ll * MS);
	for (k = 0; k < 4; k++)
		fprintf(job->told[k].out,
			"%lluns nccl_comm interface=5 number=2 hash=%#x rank=%u ranks=2 tid=7 name=\"pair %u\"\n",
			host(&job->told[k], 1000), 0xb0 + k / 2, k % 2, k / 2);
	for (i = 0; i < STEPS; i++) {
		sleeps(&job->told[3], 2 * MS, 0x50);
		if (i == 40)
			sleeps(&job->told[1], 9 * MS, 0x51);
		for (p = 0; p < 2; p++) {
			job->pair = &pairs[p];
			collective_of(job, "AllReduce", 2048, UINT32_MAX);
		}
		job->pair = NULL;
		sleeps(&job->told[3], 500 * US, 0x52);
		all_reduce(job);
		for (k = 0; k < 4; k++)
			synchronizes(&job->told[k]);
	}
	conclude(job);
	check(job, MS);
	assert_int_equal(job->a.ranks.matched, 3 * STEPS);
	assert_int_equal(job->a.ranks.incomplete + job->a.ranks.lost + job->a.ranks.unaligned, 0);
	group = group_of(job, 0xb0);
	assert_string_equal(group->comm_name, "pair 0");
	assert_int_equal(group->comm_ranks, 2);
	assert_int_equal(group->operations, STEPS);
	near_to(group->wait_ns, 9 * MS, 200 * US);
	group = group_of(job, 0xb1);
	assert_int_equal(group->bytes, 8192);
	near_to(group->wait_ns, STEPS * 2 * MS, 3 * MS);
	near_to(group->late_ns, STEPS * 2 * MS, 3 * MS);
	/* In the one step ranks 2 and 3 wait for rank 1 instead; in all others 0 and 1 wait for 2.5 ms, and 2 for 0.5. */
	group = group_of(job, 0xab);
	assert_int_equal(group->operations, STEPS);
	near_to(group->late_ns, (STEPS - 1) * 2500 * US + 7 * MS, 4 * MS);
	near_to(group->wait_ns, (STEPS - 1) * 5500 * US + 7 * MS + 6500 * US, 9 * MS);
	/* Rank 3 is late for all at the same time as for its pair: that counts once. In the one step only the pair waits for it. */
	near_to(rank(job, 3)->late_ns, (STEPS - 2) * 2500 * US + 2 * MS, 3 * MS);
	near_to(rank(job, 1)->late_ns, 9 * MS, MS);
	finds_that_says(job, "straggler-rank", "rank 3");
}

/* Where the program calls NCCL, behind what NCCL's own library has of the stack: two places, at one of which rank 1 is late. */
static void test_sites(void **state)
{
	struct job *job = *state;
	const struct rank_site *sites;
	unsigned int i, k;

	begin(job, 2);
	for (k = 0; k < 2; k++)
		fputs("slot 0\n1us module base=0x7e000000 begin=0x7e000000 end=0x7e001000 span_pages=1 path=\"/lib/libnccl.so.2\"\n"
		      "1us module base=0x400000 begin=0x400000 end=0x402000 span_pages=2 path=\"/app\"\nslot 2\n",
		      job->told[k].ran);
	for (i = 0; i < STEPS; i++) {
		job->site = 0x400100;
		all_reduce(job);
		if (i % 2)
			sleeps(&job->told[1], 3 * MS, 0x400050);
		job->site = 0x400200;
		collective_of(job, "AllReduce", 1025, UINT32_MAX);
		for (k = 0; k < 2; k++)
			synchronizes(&job->told[k]);
	}
	job->site = 0;
	conclude(job);
	check(job, MS);
	sites = job->a.ranks.sites;
	assert_int_equal(job->a.ranks.n_sites, 2);
	assert_int_equal(sites[0].part.address, 0x400200);
	assert_int_equal(sites[0].operations, STEPS);
	near_to(sites[0].late_ns, STEPS / 2 * 3 * MS, 2 * MS);
	assert_int_equal(sites[0].last[rank(job, 1)->index].count, STEPS / 2);
	assert_int_equal(sites[1].part.address, 0x400100);
	assert_int_equal(sites[1].operations, STEPS);
	assert_true(sites[1].late_ns < MS);
}

/* In Python a place is a line, whatever address the interpreter calls NCCL at. */
static void test_sites_of_python(void **state)
{
	static const struct {
		unsigned int site;
		const char *line;
	} calls[] = {{0x400100, "1:11"},
		     {0x400200, "1:11"},
		     {0x400100, "1:12"},
		     {0x400100, "2:11"},
		     {0x400100, "1:12,2:7"}};
	struct job *job = *state;
	unsigned int i, k;

	begin(job, 2);
	tell_python(job);
	for (i = 0; i < STEPS; i++)
		for (k = 0; k < sizeof(calls) / sizeof(calls[0]); k++) {
			job->site = calls[k].site;
			job->line = calls[k].line;
			all_reduce(job);
		}
	job->site = 0;
	job->line = NULL;
	conclude(job);
	assert_int_equal(job->a.ranks.n_sites, 4);
	assert_int_equal(job->a.ranks.sites[0].operations, 2 * STEPS);
	assert_int_equal(python_line(job->a.ranks.sites[0].part.stack).line, 11);
	for (i = 1; i < 4; i++)
		assert_int_equal(job->a.ranks.sites[i].operations, STEPS);
}

/* ---- CUDA graphs ----------------------------------------------------------------------------- */

/* All ranks launch a graph with collectives in it, so many times in a row, and wait for it; rank 1 sleeps before. Each function has
 * numbers of its own. Of some NCCL says when they ran, which is not so. */
static void graph_step(struct job *job, unsigned int launches, uint64_t sleep_ns, bool gathers,
		       uint64_t *seq)
{
	uint64_t last = 0, begins[RANKS];

	for (unsigned int i = 0; i < job->ranks; i++) {
		struct teller *t = &job->told[i];

		if (i == 1 && sleep_ns)
			sleeps(t, sleep_ns, 0x40);
		computes(t, 50 * US);
		for (unsigned int k = 0; k < launches; k++) {
			unsigned long long id = job->id + k;

			t->ns += 30 * US;
			fprintf(t->out,
				"%lluns op cudaGraphLaunch stream=8 object=0x77 caller=0x50 duration=30us\n",
				host(t, t->ns));
			/* The driver's thread says so before the call has returned, in some. */
			fprintf(t->ran,
				"%lluns collective func=%s comm=1 seq=%llu count=64 id=%llu flags=%u\n",
				host(t, t->ns + (k % 2 ? 5 : 0) * US - (i ? 3 : 0) * US),
				gathers ? "AllGather" : "AllReduce", (unsigned long long)*seq + k,
				id, i == 2 ? 5 : 1);
			if (i == 2)
				fprintf(t->ran,
					"%lluns collective_ran comm=1 id=%llu begin=7 end=9\n",
					host(t, t->ns + 6 * US), id);
		}
		begins[i] = t->ns;
		last = last > t->ns ? last : t->ns;
	}
	for (unsigned int i = 0; i < job->ranks; i++) {
		struct teller *t = &job->told[i];

		job->wait[i][1] += i == 1 ? 0 : last - begins[i];
		t->gpu_ns = last + MS;
		synchronizes(t);
	}
	*seq += launches;
	job->id += launches;
}

/* A graph that no other rank launches: it may do so behind the end of its recording. And one ran that was never submitted. */
static void launches_alone(struct job *job, struct teller *t)
{
	t->ns += 30 * US;
	fprintf(t->out,
		"%lluns op cudaGraphLaunch stream=8 object=0x77 caller=0x50 duration=30us\n",
		host(t, t->ns));
	fprintf(t->ran,
		"%lluns collective func=AllReduce comm=1 seq=%llu count=64 id=%llu flags=1\n"
		"%lluns collective_ran comm=1 id=99999 begin=7 end=9\n",
		host(t, t->ns + 500 * US), (unsigned long long)job->seq,
		(unsigned long long)job->id, host(t, t->ns + 600 * US));
}

static void graph_steps(struct job *job, unsigned int launches, uint64_t sleep_ns)
{
	uint64_t gathered = 0;

	begin(job, 3);
	for (unsigned int step = 0; step < 40; step++)
		all_reduce(job);
	for (unsigned int i = 0; i < job->ranks; i++)
		synchronizes(&job->told[i]);
	for (unsigned int step = 0; step < 200; step++)
		graph_step(job, launches, sleep_ns, step % 2, step % 2 ? &gathered : &job->seq);
	for (unsigned int step = 0; step < 5; step++)
		all_reduce(job);
	launches_alone(job, &job->told[0]);
	conclude(job);
	assert_int_equal(job->a.ranks.captured, 200 * launches * job->ranks + 1);
	assert_int_equal(job->a.ranks.lost, 1);
	assert_int_equal(job->a.ranks.incomplete + job->a.ranks.unaligned, 0);
	assert_int_equal(job->a.ranks.n_missing, 0);
	assert_int_equal(job->a.ranks.align_operations, 45);
	assert_int_equal(rank(job, 0)->skips + rank(job, 1)->skips, 0);
}

/* Launches that a wait of the host is behind are compared; those that another one is behind are not. */
static void test_graphs(void **state)
{
	struct job *job = *state;

	graph_steps(job, 1, 3 * MS);
	assert_int_equal(job->a.ranks.graphs, 200);
	near_to(rank(job, 1)->late_ns, 200 * 3 * MS, 2 * MS);
	near_to(rank(job, 0)->wait_ns, job->wait[0][1], 2 * MS);
	assert_in_range(rank(job, 0)->in_collectives_ns, rank(job, 0)->wait_ns, 1000 * MS);
	near_to(job->a.ranks.steps.median_ns, 4085 * US, 100 * US);
	near_to(job->a.ranks.steps.count, 199, 2);
	finds(job, "straggler-rank");
	graph_steps(job, 1, 0);
	assert_int_equal(job->a.ranks.graphs, 200);
	finds(job, NULL);
	graph_steps(job, 2, 3 * MS);
	assert_int_equal(job->a.ranks.graphs, 0);
	finds(job, NULL);
}

#define RANKS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RANKS_TEST(test_two),
		RANKS_TEST(test_clocks),
		RANKS_TEST(test_hosts),
		RANKS_TEST(test_clean),
		RANKS_TEST(test_reasons),
		RANKS_TEST(test_launches_block),
		RANKS_TEST(test_gain),
		RANKS_TEST(test_slower_everywhere),
		RANKS_TEST(test_gpu_late),
		RANKS_TEST(test_gpu_shared),
		RANKS_TEST(test_lag),
		RANKS_TEST(test_lag_is_paid_once),
		RANKS_TEST(test_lag_of_slow_gpu),
		RANKS_TEST(test_more_synchronising),
		RANKS_TEST(test_steps_by_pattern),
		RANKS_TEST(test_slow_by_chance),
		RANKS_TEST(test_steps_of_a_rank),
		RANKS_TEST(test_steps_by_nvtx),
		RANKS_TEST(test_old_interfaces),
		RANKS_TEST(test_started_again),
		RANKS_TEST(test_missing),
		RANKS_TEST(test_several_missing),
		RANKS_TEST(test_missing_at_the_end),
		RANKS_TEST(test_steps_that_are_missing),
		RANKS_TEST(test_order_where_something_is_missing),
		RANKS_TEST(test_disagreement_behind_a_hole),
		RANKS_TEST(test_order),
		RANKS_TEST(test_order_unknown),
		RANKS_TEST(test_missing_unknown),
		RANKS_TEST(test_missing_where_the_begin_is),
		RANKS_TEST(test_uneven),
		RANKS_TEST(test_uneven_for_a_while),
		RANKS_TEST(test_uneven_beside),
		RANKS_TEST(test_slow_beside),
		RANKS_TEST(test_more_work_beside),
		RANKS_TEST(test_small),
		RANKS_TEST(test_roots),
		RANKS_TEST(test_pairs),
		RANKS_TEST(test_pipeline),
		RANKS_TEST(test_all_to_all),
		RANKS_TEST(test_sends_beside_receives),
		RANKS_TEST(test_clocks_of_long_ago),
		RANKS_TEST(test_ahead_of_gpus),
		RANKS_TEST(test_many_ranks),
		RANKS_TEST(test_many),
		RANKS_TEST(test_nothing_beside),
		RANKS_TEST(test_many_sizes),
		RANKS_TEST(test_many_places),
		RANKS_TEST(test_exposed),
		RANKS_TEST(test_on_behalf),
		RANKS_TEST(test_on_behalf_beside_loader),
		RANKS_TEST(test_long_gap_with_samples),
		RANKS_TEST(test_ahead),
		RANKS_TEST(test_slow_steps_with_samples),
		RANKS_TEST(test_unshared),
		RANKS_TEST(test_unshared_beside),
		RANKS_TEST(test_unshared_by_one),
		RANKS_TEST(test_slower_at_line),
		RANKS_TEST(test_rates),
		RANKS_TEST(test_slow_link),
		RANKS_TEST(test_graphs),
		RANKS_TEST(test_communicators),
		RANKS_TEST(test_sites),
		RANKS_TEST(test_sites_of_python),
		RANKS_TEST(test_damaged),
	};

	return RUN_WITH_FINDINGS(tests);
}
