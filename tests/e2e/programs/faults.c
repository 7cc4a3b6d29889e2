/*
 * tests/e2e/programs/faults.c: programs with known faults, on the simulator (tests/sim), for test_findings.sh,
 * which holds what cudaspy finds against what is there; test_diff.sh compares some of them.
 *
 *   faults --list                               a line for each: name, detector, truth, calls, also
 *   faults [--clean] --script HABIT...          what to write into SPYSIM_SCRIPT's file
 *   faults [--clean] [--one] [--then-more] [--seed N] [--user ID] HABIT...
 *                                               has them: each in threads and on GPUs of its own, or (--one)
 *                                               one after the other in one thread; and then a short phase in
 *                                               which it hands over far more; as that user
 *
 * A habit is a function of the same name, with _ for -; with --clean it does the same work as it should
 * be done. What others do to a program (scripted locks, costs) stays the same in the clean twin. The seed
 * varies lengths and numbers. Everything is made before the work, one after the other, and a first call
 * of each kind is made there, too: a fault is what the function does, not how the process starts. No habit
 * hands over so much that another one, before or behind it in a thread, is a mere phase (site_tenths). Prints
 * a line for each thread of a habit: name, thread id, begin and end in CLOCK_MONOTONIC ns, and what by its own
 * reckoning the fault cost more than the calls of its truth (less, if negative).
 *
 * Here are what habits share and how they are played. The habits are in faults_*.c, a file a subject.
 */
#include <grp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "faults.h"

static const struct habit *const tables[] = {
	copy_habits,   hidden_habits,  steady_habits, sync_habits,
	launch_habits, company_habits, idle_habits,
};
enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

char stub_delay, stub_lazy[LAZY_KERNELS], symbol[1];

/* ---- what several habits use ---- */
int64_t calm_copy_ns(struct worker *w, void *to, const void *from, size_t bytes, int kind)
{
	int64_t least_ns = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t begin_ns = now_ns();
		int64_t ns;

		OK(cudaMemcpyAsync(to, from, bytes, kind, w->stream));
		ns = (int64_t)(now_ns() - begin_ns);
		least_ns = ns < least_ns ? ns : least_ns;
		OK(cudaStreamSynchronize(w->stream));
	}
	return least_ns;
}

void make_array(void **array, size_t bytes)
{
	OK(cudaMallocArray(array, &(struct channels){32, 0, 0, 0, 2}, ARRAY_PITCH / sizeof(float),
			   bytes / ARRAY_PITCH, 0));
}

/* ---- a phase behind them: some milliseconds, in which it hands over many times as much ---- */
static void hand_over_more(struct worker *w)
{
	for (int i = 1; i <= 2048; i++) {
		OK(cudaMemsetAsync(w->gpu, 0, 64, w->stream));
		if (i % 32 == 0)
			finish(w);
	}
}

/* ---- playing ---- */
static pthread_barrier_t ready;
static struct worker workers[WORKERS_MAX];
static int worker_cnt;
static bool then_more;

static void turn_to(struct worker *w, int habit)
{
	w->places = w->all_places[habit];
	w->calm_ns = &w->all_calm_ns[habit];
	w->cost_ns = w->delayed_ns = 0;
	w->reckoned = 0;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* All of them, as if the machine had interrupted none: so many times the one in the middle. */
static int64_t sum_up(struct worker *w)
{
	if (!w->reckoned)
		return 0;
	qsort(w->reckoned_ns, (size_t)w->reckoned, sizeof(*w->reckoned_ns), by_size);
	return w->reckoned * w->reckoned_ns[w->reckoned / 2];
}

static void prepare(struct worker *w)
{
	OK(cudaSetDevice(w->device));
	OK(cudaStreamCreateWithFlags(&w->stream, 1));
	OK(cudaStreamCreateWithFlags(&w->blocking[0], 0));
	OK(cudaStreamCreateWithFlags(&w->blocking[1], 0));
	OK(cudaEventCreate(&w->event));
	OK(cudaMalloc(&w->gpu, BUFFER_BYTES));
	OK(cudaMallocHost(&w->pinned, BUFFER_BYTES));
	OK(cudaMallocHost(&w->pinned_to, BUFFER_BYTES));
	w->pageable = aligned_alloc(4096, BUFFER_BYTES);
	if (!w->pageable)
		die("no memory");
	memset(w->pageable, 1, BUFFER_BYTES);
	memset(w->pinned, 1, BUFFER_BYTES);
	memset(w->pinned_to, 1, BUFFER_BYTES);
	launch(&stub_delay, 1, w->stream);
	OK(cudaStreamSynchronize(w->stream));
	work(w, 4);
	OK(cudaStreamSynchronize(w->stream));
	for (int i = 0; i < w->habit_cnt; i++) {
		turn_to(w, i);
		if (w->habits[i]->prepare)
			w->habits[i]->prepare(w);
	}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	OK(cudaSetDevice(w->device));
	pthread_barrier_wait(&ready);
	for (int i = 0; i < w->habit_cnt; i++) {
		uint64_t begin_ns = now_ns();

		turn_to(w, i);
		w->habits[i]->run(w);
		printf("%s %d %llu %llu %lld %lld\n", w->habits[i]->name, (int)syscall(SYS_gettid),
		       (unsigned long long)begin_ns, (unsigned long long)now_ns(),
		       (long long)(w->cost_ns + sum_up(w)), (long long)w->delayed_ns);
	}
	if (then_more)
		hand_over_more(w);
	return NULL;
}

static unsigned int pick(uint64_t *seed, unsigned int low, unsigned int high)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return low + (unsigned int)(*seed >> 33) % (high - low + 1);
}

static struct worker *add_worker(int device, int role, bool clean, uint64_t *seed)
{
	struct worker *w = &workers[worker_cnt++];

	if (worker_cnt > WORKERS_MAX)
		die("too many threads");
	w->device = device;
	w->role = role;
	w->clean = clean;
	w->rounds_pct = pick(seed, 80, 130);
	w->length_pct = pick(seed, 80, 130);
	w->size_pct = pick(seed, 75, 125);
	return w;
}

static void add_habit(const struct habit *habit, int device, bool clean, bool one, uint64_t *seed)
{
	struct worker *w;

	if (one && habit->threads > 1)
		die("%s is one of several threads", habit->name);
	for (int i = 0; i < habit->threads; i++) {
		w = one && worker_cnt ? &workers[0]
				      : add_worker(device + i % habit->devices, i, clean, seed);
		w->habits[w->habit_cnt++] = habit;
	}
}

static void play(void)
{
	register_kernels(&stub_delay, stub_lazy, LAZY_KERNELS);
	register_variable(symbol, BUFFER_BYTES);
	for (int i = 0; i < worker_cnt; i++)
		prepare(&workers[i]);
	pthread_barrier_init(&ready, NULL, (unsigned int)worker_cnt);
	for (int i = 0; i < worker_cnt; i++)
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
			die("no thread");
	for (int i = 0; i < worker_cnt; i++)
		pthread_join(workers[i].thread, NULL);
}

static const struct habit *habit_find(const char *name)
{
	for (size_t i = 0; i < TABLES; i++)
		for (const struct habit *h = tables[i]; h->name; h++)
			if (!strcmp(h->name, name))
				return h;
	die("no habit %s; --list lists them", name);
	return NULL;
}

static void list(void)
{
	for (size_t i = 0; i < TABLES; i++)
		for (const struct habit *h = tables[i]; h->name; h++)
			printf("%s %s %s %s %d %s\n", h->name, h->detector, h->truth, h->calls,
			       h->threads, *h->also ? h->also : "-");
}

static void become(uid_t user)
{
	if (setgroups(0, NULL) || setgid(user) || setuid(user))
		die("cannot be user %d: %s", (int)user, strerror(errno));
}

int main(int argc, char **argv)
{
	bool clean = false, one = false, script = false;
	uint64_t seed = 1;
	int device = 0;

	for (argc--, argv++; argc && !strncmp(*argv, "--", 2); argc--, argv++) {
		if (!strcmp(*argv, "--list")) {
			list();
			return 0;
		}
		if (!strcmp(*argv, "--seed") && argc > 1) {
			argc--;
			seed = strtoull(*++argv, NULL, 0);
		} else if (!strcmp(*argv, "--user") && argc > 1) {
			argc--;
			become((uid_t)strtoul(*++argv, NULL, 0));
		} else if (!strcmp(*argv, "--clean")) {
			clean = true;
		} else if (!strcmp(*argv, "--one")) {
			one = true;
		} else if (!strcmp(*argv, "--then-more")) {
			then_more = true;
		} else if (!strcmp(*argv, "--script")) {
			script = true;
		} else {
			die("no such option: %s", *argv);
		}
	}
	if (!argc)
		die("which? --list lists the habits");
	pick(&seed, 0, 1);
	if (script)
		printf("gpus 8\n");
	for (int i = 0; i < argc; i++, device += 2) {
		const struct habit *habit = habit_find(argv[i]);

		if (script)
			fputs(habit->script, stdout);
		else
			add_habit(habit, one ? 0 : device, clean, one, &seed);
	}
	if (!script)
		play();
	return 0;
}
