/*
 * tests/e2e/programs/feeders.c: threads that feed GPUs, and keep them waiting for reasons that they write down, on the simulator;
 * for test_idle_truth.sh. What they do is made up from a seed.
 *
 *   feeders --script SEED              what to write into SPYSIM_SCRIPT's file
 *   feeders SEED OUT [FAKE_PYTHON]     plays it; FAKE_PYTHON: a library that looks like Python's, some seeds have a GIL in it
 *
 * OUT gets a line for each time between two CUDA calls in which a thread waited: thread, begin and end
 * (CLOCK_MONOTONIC ns), cause (a code of analyzer/idle/causes.h). What no line has was on a CPU, or ready for one;
 * what CUDA calls waited for is in the simulator's own truth.
 *
 * Each feeder has a mate, a thread without CUDA calls, that keeps it waiting: it is sent an order through a
 * semaphore, and does its part when the time is over.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>
#include "sim_program.h"

enum { FEEDERS_MAX = 4, NOTES_MAX = 4096, ROUNDS = 45, BYTES = 1 << 16 };

struct note {
	uint64_t begin_ns, end_ns;
	const char *cause;
};

enum order {
	NOTHING,
	TAKE_MUTEX,
	TAKE_READ,
	TAKE_GIL,
	SIGNAL,
	POST,
	PIPE,
	SOCKET,
	TERMINAL,
	CONNECT,
	EVENT,
	END
};

struct feeder {
	pthread_t thread, mate;
	uint64_t random;
	int device, tid;
	void *streams[2], *far_stream, *event, *far_event;
	void *memory, *pinned;
	struct note notes[NOTES_MAX];
	unsigned int note_cnt;
	/* for the mate */
	sem_t go, done;
	enum order order;
	unsigned int us;
	atomic_bool taken;
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	pthread_cond_t condition;
	bool signalled;
	int pipe[2], socket[2], terminal[2], listening, epoll, event_fd;
	struct sockaddr_un address;
};

static struct feeder feeders[FEEDERS_MAX];
static int gpu_cnt, feeder_cnt;
static unsigned int chosen; /* bits of activities[] */
static bool shared; /* feeders of a GPU share its streams */
static char stub_delay, stubs_lazy[LAZY_MOST];
static struct gil {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	int locked;
} * gil;

/* ---- chance ---- */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static unsigned int between(struct feeder *f, unsigned int least, unsigned int most)
{
	return least + (unsigned int)(next_random(&f->random) % (most - least + 1));
}

/* ---- what is written down ---- */
static void note(struct feeder *f, uint64_t begin_ns, const char *cause)
{
	if (f->note_cnt == NOTES_MAX)
		die("too many notes");
	f->notes[f->note_cnt++] = (struct note){begin_ns, now_ns(), cause};
}

static void must(bool right, const char *what)
{
	if (!right)
		die("%s: %s", what, strerror(errno));
}

/* ---- the mate ---- */
static void rest(unsigned int us)
{
	struct timespec left = {us / 1000000, (long)(us % 1000000) * 1000};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static void give_byte(int fd)
{
	must(write(fd, "\n", 1) == 1, "write");
}

static void connect_to(struct feeder *f)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && !connect(fd, (struct sockaddr *)&f->address, sizeof(f->address)),
	     "connect");
	close(fd);
}

static void handle_key(struct feeder *f)
{
	uint64_t one = 1;

	switch (f->order) {
	case TAKE_MUTEX:
		pthread_mutex_lock(&f->mutex);
		break;
	case TAKE_READ:
		pthread_rwlock_rdlock(&f->rwlock);
		break;
	case TAKE_GIL:
		pthread_mutex_lock(&gil->mutex);
		while (gil->locked)
			pthread_cond_wait(&gil->condition, &gil->mutex);
		gil->locked = 1;
		pthread_mutex_unlock(&gil->mutex);
		break;
	default:
		break;
	}
	atomic_store(&f->taken, true);
	rest(f->us);
	switch (f->order) {
	case TAKE_MUTEX:
		pthread_mutex_unlock(&f->mutex);
		break;
	case TAKE_READ:
		pthread_rwlock_unlock(&f->rwlock);
		break;
	case TAKE_GIL:
		pthread_mutex_lock(&gil->mutex);
		gil->locked = 0;
		pthread_cond_broadcast(&gil->condition);
		pthread_mutex_unlock(&gil->mutex);
		break;
	case SIGNAL:
		pthread_mutex_lock(&f->mutex);
		f->signalled = true;
		pthread_cond_signal(&f->condition);
		pthread_mutex_unlock(&f->mutex);
		break;
	case POST:
		sem_post(&f->done);
		break;
	case PIPE:
		give_byte(f->pipe[1]);
		break;
	case SOCKET:
		give_byte(f->socket[1]);
		break;
	case TERMINAL:
		give_byte(f->terminal[1]);
		break;
	case CONNECT:
		connect_to(f);
		break;
	case EVENT:
		must(write(f->event_fd, &one, sizeof(one)) == sizeof(one), "write");
		break;
	default:
		break;
	}
}

static void *mate_main(void *data)
{
	struct feeder *f = data;

	for (;;) {
		while (sem_wait(&f->go))
			;
		if (f->order == END)
			return NULL;
		handle_key(f);
	}
}

static void command(struct feeder *f, enum order order)
{
	f->order = order;
	f->us = between(f, 300, 3000);
	atomic_store(&f->taken, false);
	sem_post(&f->go);
}

/* The mate has what the feeder is about to want. */
static void order_and_see(struct feeder *f, enum order order)
{
	command(f, order);
	while (!atomic_load(&f->taken))
		sched_yield();
}

/* ---- what a feeder does between two bursts ---- */
static void do_sleep(struct feeder *f)
{
	uint64_t begin_ns = now_ns();

	if (between(f, 0, 1))
		usleep(between(f, 300, 3000));
	else
		rest(between(f, 300, 3000));
	note(f, begin_ns, "sleep");
}

static void do_compute(struct feeder *f)
{
	uint64_t until_ns = now_ns() + between(f, 200, 2000) * 1000ull;

	while (now_ns() < until_ns)
		;
}

static void do_mutex(struct feeder *f)
{
	uint64_t begin_ns;

	order_and_see(f, TAKE_MUTEX);
	begin_ns = now_ns();
	pthread_mutex_lock(&f->mutex);
	note(f, begin_ns, "lock");
	pthread_mutex_unlock(&f->mutex);
}

static void do_rwlock(struct feeder *f)
{
	uint64_t begin_ns;

	order_and_see(f, TAKE_READ);
	begin_ns = now_ns();
	pthread_rwlock_wrlock(&f->rwlock);
	note(f, begin_ns, "lock");
	pthread_rwlock_unlock(&f->rwlock);
}

static void do_condition(struct feeder *f)
{
	uint64_t begin_ns;

	command(f, SIGNAL);
	begin_ns = now_ns();
	pthread_mutex_lock(&f->mutex);
	while (!f->signalled)
		pthread_cond_wait(&f->condition, &f->mutex);
	f->signalled = false;
	pthread_mutex_unlock(&f->mutex);
	note(f, begin_ns, "lock");
}

static void do_semaphore(struct feeder *f)
{
	uint64_t begin_ns;

	command(f, POST);
	begin_ns = now_ns();
	while (sem_wait(&f->done))
		;
	note(f, begin_ns, "lock");
}

static void take_byte(struct feeder *f, int fd, const char *cause)
{
	uint64_t begin_ns = now_ns();
	char byte;

	must(read(fd, &byte, 1) == 1, cause);
	note(f, begin_ns, cause);
}

static void do_pipe(struct feeder *f)
{
	command(f, PIPE);
	take_byte(f, f->pipe[0], "pipe");
}

static void do_socket(struct feeder *f)
{
	uint64_t begin_ns;
	char byte;

	command(f, SOCKET);
	begin_ns = now_ns();
	must(recv(f->socket[0], &byte, 1, 0) == 1, "recv");
	note(f, begin_ns, "socket");
}

static void do_terminal(struct feeder *f)
{
	command(f, TERMINAL);
	take_byte(f, f->terminal[0], "file");
}

static void *sleeper(void *us)
{
	rest((unsigned int)(uintptr_t)us);
	return NULL;
}

static void do_join(struct feeder *f)
{
	void *us = (void *)(uintptr_t)between(f, 300, 3000);
	uint64_t begin_ns;
	pthread_t thread;

	must(!pthread_create(&thread, NULL, sleeper, us), "pthread_create");
	begin_ns = now_ns();
	pthread_join(thread, NULL);
	note(f, begin_ns, "join");
}

static void do_accept(struct feeder *f)
{
	uint64_t begin_ns;
	int fd;

	command(f, CONNECT);
	begin_ns = now_ns();
	fd = accept(f->listening, NULL, NULL);
	note(f, begin_ns, "nothing-to-do");
	must(fd >= 0, "accept");
	close(fd);
}

static void do_epoll(struct feeder *f)
{
	struct epoll_event event;
	uint64_t begin_ns, count;

	command(f, EVENT);
	begin_ns = now_ns();
	must(epoll_wait(f->epoll, &event, 1, -1) == 1, "epoll_wait");
	note(f, begin_ns, "nothing-to-do");
	must(read(f->event_fd, &count, sizeof(count)) == sizeof(count), "read");
}

/* As the interpreter takes it: in turns of 5 ms. */
static void do_gil(struct feeder *f)
{
	uint64_t begin_ns;

	order_and_see(f, TAKE_GIL);
	begin_ns = now_ns();
	pthread_mutex_lock(&gil->mutex);
	while (gil->locked) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 5000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&gil->condition, &gil->mutex, &until);
	}
	pthread_mutex_unlock(&gil->mutex);
	note(f, begin_ns, "gil");
}

/* Where nobody of ours sees it. */
static void do_unseen(struct feeder *f)
{
	struct timespec ts = {0, between(f, 300, 3000) * 1000};
	uint64_t begin_ns = now_ns();
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_nanosleep), "D"(&ts), "S"(NULL)
			 : "rcx", "r11", "memory");
	must(!result, "nanosleep");
	note(f, begin_ns, "unexplained");
}

static int launch(void *stream, int us)
{
	void *args[] = {&us};

	return cudaLaunchKernel(&stub_delay, (struct dim3){4, 1, 1}, (struct dim3){32, 1, 1}, args,
				0, stream);
}

/* Waits for work of another GPU, or on the same where there is one only. */
static void do_far_wait(struct feeder *f)
{
	OK(cudaSetDevice((f->device + 1) % gpu_cnt));
	OK(launch(f->far_stream, (int)between(f, 300, 2000)));
	OK(cudaStreamSynchronize(f->far_stream));
	OK(cudaSetDevice(f->device));
}

/* The next work is submitted, and waits on its GPU for that of another one. */
static void do_dependency(struct feeder *f)
{
	OK(cudaSetDevice((f->device + 1) % gpu_cnt));
	OK(launch(f->far_stream, (int)between(f, 300, 2000)));
	OK(cudaEventRecord(f->far_event, f->far_stream));
	OK(cudaSetDevice(f->device));
	OK(cudaStreamWaitEvent(f->streams[0], f->far_event, 0));
}

/* What the script makes last in the kernel module, and take a lock of all devices. */
static void do_register(struct feeder *f)
{
	static _Alignas(4096) char areas[FEEDERS_MAX][4096];
	char *area = areas[f - feeders];

	OK(cudaHostRegister(area, 4096, 0));
	OK(cudaHostUnregister(area));
}

static void do_allocate(struct feeder *f)
{
	void *memory;

	(void)f;
	OK(cudaMalloc(&memory, 4096));
	OK(cudaFree(memory));
}

static const struct activity {
	void (*run)(struct feeder *f);
	bool needs_gil, needs_gpus;
} activities[] = {
	{do_sleep, 0, 0},     {do_compute, 0, 0},   {do_mutex, 0, 0},    {do_rwlock, 0, 0},
	{do_condition, 0, 0}, {do_semaphore, 0, 0}, {do_pipe, 0, 0},     {do_socket, 0, 0},
	{do_terminal, 0, 0},  {do_join, 0, 0},      {do_accept, 0, 0},   {do_epoll, 0, 0},
	{do_gil, 1, 0},       {do_unseen, 0, 0},    {do_far_wait, 0, 1}, {do_dependency, 0, 1},
	{do_register, 0, 0},  {do_allocate, 0, 0},
};
enum { ACTIVITIES = sizeof(activities) / sizeof(activities[0]) };

static void act(struct feeder *f)
{
	for (;;) {
		unsigned int i = between(f, 0, ACTIVITIES - 1);

		if (chosen & 1u << i) {
			activities[i].run(f);
			return;
		}
	}
}

/* ---- feeding ---- */
static void burst(struct feeder *f)
{
	unsigned int n = between(f, 1, 5);

	for (unsigned int i = 0; i < n; i++) {
		void *stream = f->streams[between(f, 0, 3) == 0];

		switch (between(f, 0, 5)) {
		case 0:
			OK(cudaMemcpyAsync(f->memory, f->pinned, BYTES, H2D, stream));
			break;
		case 1:
			OK(cudaMemsetAsync(f->memory, 1, BYTES, stream));
			break;
		default:
			OK(launch(stream, (int)between(f, 20, 400)));
		}
		if (between(f, 0, 3) == 0)
			do_compute(f);
	}
}

enum { NOT_READY = 600 };

/* Asks until the work is done, for a stream or for an event. */
static void ask(struct feeder *f, bool for_event)
{
	uint64_t begin_ns;
	int answer;

	OK(cudaEventRecord(f->event, f->streams[1]));
	OK(cudaStreamWaitEvent(f->streams[0], f->event, 0));
	OK(cudaEventRecord(f->event, f->streams[0]));
	begin_ns = now_ns();
	do
		answer = for_event ? cudaEventQuery(f->event) : cudaStreamQuery(f->streams[0]);
	while (answer == NOT_READY);
	OK(answer);
	note(f, begin_ns, "gpu-query");
}

static void drain(struct feeder *f)
{
	void *memory;

	switch (between(f, 0, 9)) {
	case 0:
		return;
	case 1:
		OK(cudaDeviceSynchronize());
		return;
	case 2:
		OK(cudaMalloc(&memory, 4096));
		OK(cudaFree(memory));
		return;
	case 3:
		OK(cudaEventRecord(f->event, f->streams[1]));
		OK(cudaStreamWaitEvent(f->streams[0], f->event, 0));
		OK(cudaStreamSynchronize(f->streams[0]));
		return;
	case 4:
	case 5:
		ask(f, between(f, 0, 1));
		return;
	default:
		OK(cudaStreamSynchronize(f->streams[0]));
		OK(cudaStreamSynchronize(f->streams[1]));
	}
}

static void *feeder_main(void *data)
{
	struct feeder *f = data;

	f->tid = (int)syscall(SYS_gettid);
	OK(cudaSetDevice(f->device));
	for (int i = 0; i < ROUNDS; i++) {
		burst(f);
		drain(f);
		act(f);
	}
	OK(cudaStreamSynchronize(f->streams[0]));
	OK(cudaStreamSynchronize(f->streams[1]));
	return NULL;
}

/* ---- beginning and end ---- */
static void open_terminal(struct feeder *f)
{
	struct termios mode;

	f->terminal[1] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	must(f->terminal[1] >= 0 && !grantpt(f->terminal[1]) && !unlockpt(f->terminal[1]),
	     "posix_openpt");
	f->terminal[0] = open(ptsname(f->terminal[1]), O_RDWR | O_NOCTTY | O_CLOEXEC);
	must(f->terminal[0] >= 0 && !tcgetattr(f->terminal[0], &mode), "a terminal");
	cfmakeraw(&mode);
	must(!tcsetattr(f->terminal[0], TCSANOW, &mode), "tcsetattr");
}

static void open_files(struct feeder *f)
{
	struct epoll_event event = {.events = EPOLLIN};

	must(!pipe2(f->pipe, O_CLOEXEC), "pipe");
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->socket), "socketpair");
	open_terminal(f);
	f->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	f->address.sun_family = AF_UNIX;
	snprintf(f->address.sun_path + 1, sizeof(f->address.sun_path) - 1, "feeders-%d-%d",
		 (int)getpid(), (int)(f - feeders));
	must(!bind(f->listening, (struct sockaddr *)&f->address, sizeof(f->address)) &&
		     !listen(f->listening, 4),
	     "listen");
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	f->event_fd = eventfd(0, EFD_CLOEXEC);
	must(f->epoll >= 0 && f->event_fd >= 0 &&
		     !epoll_ctl(f->epoll, EPOLL_CTL_ADD, f->event_fd, &event),
	     "epoll");
}

static void prepare(struct feeder *f, int index, uint64_t seed)
{
	f->device = index % gpu_cnt;
	f->random = seed * 1000 + (uint64_t)index;
	sem_init(&f->go, 0, 0);
	sem_init(&f->done, 0, 0);
	pthread_mutex_init(&f->mutex, NULL);
	pthread_rwlock_init(&f->rwlock, NULL);
	pthread_cond_init(&f->condition, NULL);
	open_files(f);
	OK(cudaSetDevice((f->device + 1) % gpu_cnt));
	OK(cudaStreamCreateWithFlags(&f->far_stream, 1));
	OK(cudaEventCreate(&f->far_event));
	OK(launch(f->far_stream, 1));
	OK(cudaSetDevice(f->device));
	for (int i = 0; i < 2; i++) {
		if (shared && index >= gpu_cnt)
			f->streams[i] = feeders[index % gpu_cnt].streams[i];
		else
			OK(cudaStreamCreateWithFlags(&f->streams[i], 1));
		OK(launch(f->streams[i], 1));
	}
	OK(cudaEventCreate(&f->event));
	OK(cudaMalloc(&f->memory, BYTES));
	OK(cudaMallocHost(&f->pinned, BYTES));
	OK(cudaDeviceSynchronize());
	must(!pthread_create(&f->mate, NULL, mate_main, f), "pthread_create");
}

static void write_notes(const char *path)
{
	FILE *out = fopen(path, "we");

	must(out, path);
	fprintf(out, "#tid\tbegin_ns\tend_ns\tcause\n");
	for (int i = 0; i < feeder_cnt; i++)
		for (unsigned int k = 0; k < feeders[i].note_cnt; k++) {
			const struct note *n = &feeders[i].notes[k];

			fprintf(out, "%d\t%llu\t%llu\t%s\n", feeders[i].tid,
				(unsigned long long)n->begin_ns, (unsigned long long)n->end_ns,
				n->cause);
		}
	must(!fclose(out), path);
}

/* Between three and eight of the activities that this process can have. */
static void choose(uint64_t *random, bool python)
{
	unsigned int wanted = 3 + (unsigned int)(next_random(random) % 6);

	while ((unsigned int)__builtin_popcount(chosen) < wanted) {
		unsigned int i = (unsigned int)(next_random(random) % ACTIVITIES);

		if ((python || !activities[i].needs_gil) &&
		    (gpu_cnt > 1 || !activities[i].needs_gpus))
			chosen |= 1u << i;
	}
}

static void find_gil(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	char *runtime = library ? dlsym(library, "_PyRuntime") : NULL;

	if (!runtime)
		die("%s: %s", path, dlerror());
	gil = (struct gil *)(runtime + 512);
	pthread_mutex_init(&gil->mutex, NULL);
	pthread_cond_init(&gil->condition, NULL);
}

int main(int argc, char **argv)
{
	bool script = argc > 2 && !strcmp(argv[1], "--script");
	uint64_t seed = argc > 2 ? strtoull(argv[script ? 2 : 1], NULL, 0) : 0;
	uint64_t random = seed;
	bool python;

	if (argc < 3)
		die("usage: feeders --script SEED | SEED OUT [FAKE_PYTHON]");
	gpu_cnt = 1 + (int)(next_random(&random) % 2);
	feeder_cnt = gpu_cnt + (int)(next_random(&random) % 3);
	shared = next_random(&random) % 2;
	python = next_random(&random) % 3 == 0;
	python &= argc > 3;
	if (script) {
		printf("gpus %d\nwork busy\n", gpu_cnt);
		printf("cost cuMemAlloc_v2 %d\n", 50 + (int)(next_random(&random) % 600));
		printf("ioctl cuMemHostRegister_v2 %d\n", 200 + (int)(next_random(&random) % 1500));
		return 0;
	}
	if (python)
		find_gil(argv[3]);
	choose(&random, python);
	register_kernels(&stub_delay, stubs_lazy, 0);
	for (int i = 0; i < feeder_cnt; i++)
		prepare(&feeders[i], i, seed);
	for (int i = 0; i < feeder_cnt; i++)
		must(!pthread_create(&feeders[i].thread, NULL, feeder_main, &feeders[i]),
		     "pthread_create");
	for (int i = 0; i < feeder_cnt; i++)
		pthread_join(feeders[i].thread, NULL);
	for (int i = 0; i < feeder_cnt; i++) {
		feeders[i].order = END;
		sem_post(&feeders[i].go);
		pthread_join(feeders[i].mate, NULL);
	}
	write_notes(argv[2]);
	return 0;
}
