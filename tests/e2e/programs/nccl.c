/*
 * tests/e2e/programs/nccl.c: a program that acts as NCCL towards its profiler, in any version of the interface. What it passes is
 * laid out by hand, so that nothing of the recorder's own headers is in it.
 *
 *   nccl INTERFACE all       each function once, with channels, as NCCL calls
 *   nccl INTERFACE threads   four communicators, each with a thread that submits and one that reports
 *   nccl INTERFACE paced     operations in quick succession
 *   nccl INTERFACE full      more operations than can be followed, and operations after them
 *   nccl INTERFACE odd       what must not happen: wrong handles, order, ends
 *   nccl INTERFACE fork      a child with operations of its own, and with its parent's handles
 *   nccl INTERFACE graph     operations of a graph: on a thread that makes no calls
 *   nccl INTERFACE capture   two graphs with operations are captured: of how many are channels wanted?
 *   nccl INTERFACE late      events when the process is just ending
 *   nccl INTERFACE fewer     channels that never come
 *   nccl INTERFACE bench N   what an operation with two channels takes
 *   nccl INTERFACE lines     operations at several places of the program
 *
 * Status 3: there is no profiler for it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int cudaSetDevice_(int device) __asm__("cudaSetDevice");
int cudaStreamSynchronize_(void *stream) __asm__("cudaStreamSynchronize");
int cudaStreamBeginCapture_(void *stream, int mode) __asm__("cudaStreamBeginCapture");

enum { GROUP = 1, COLL = 2, P2P = 4, KERNEL = 64, COLL_CALL = 512, P2P_CALL = 1024, COPIES = 4096 };

#define CHANNEL_STOP 22

struct profiler {
	const char *name;
	void *init;
	int (*start)(void *context, void **handle, void *event);
	int (*stop)(void *handle);
	int (*record)(void *handle, int state, void *argument);
	int (*finalize)(void *context);
};

static int version;
static const struct profiler *profiler;
static int expected_mask;
static int masks[2]; /* NCCL's, of two libraries: which events are wanted */
static int which; /* of the two */

/* ---- events ------------------------------------------------------------------------------------ */

struct event {
	_Alignas(8) unsigned char bytes[192];
};

static void put(struct event *event, size_t at, uint64_t value, size_t bytes)
{
	memcpy(event->bytes + at, &value, bytes);
}

static struct event new_event(int type, void *parent)
{
	struct event event;

	memset(event.bytes, 0xa5, sizeof(event.bytes)); /* what NCCL has not set may be anything */
	put(&event, 0, (uint64_t)type, version < 5 ? 1 : 8);
	put(&event, 8, (uintptr_t)parent, 8);
	put(&event, 16, 3, 4);
	return event;
}

static uint64_t word(const char *text)
{
	return (uintptr_t)text;
}

static void *start(void *context, struct event *event)
{
	void *handle = (void *)(uintptr_t)0x1234;

	if (profiler->start(context, &handle, event->bytes))
		abort();
	return handle;
}

#define HASH 0xfeedface12345678ull

static void *coll(void *context, void *parent, const char *func, int number, uint64_t seq,
		  uint64_t count, int channels)
{
	struct event event = new_event(COLL, parent);
	size_t base = version < 4 ? 16 : 0, from = 24 + base;

	if (version < 4) {
		put(&event, 24, word("a group"), 8);
		put(&event, 32, HASH, 8);
	}
	put(&event, from, seq, 8);
	put(&event, from + 32, count, 8);
	put(&event, from + 40, 2, 4); /* root */
	if (version == 1) {
		put(&event, 48, (uint64_t)number, 1);
		put(&event, 84, 7, 1); /* float */
		put(&event, 104, (uint64_t)channels, 1);
		put(&event, 106, 1, 1); /* ring */
		put(&event, 107, 2, 1); /* simple */
		return start(context, &event);
	}
	put(&event, from + 8, word(func), 8);
	put(&event, from + 48, word("ncclFloat32"), 8);
	from += version == 2 ? 64 : 56;
	put(&event, from, (uint64_t)channels, 1);
	put(&event, from + 8, word("RING"), 8);
	put(&event, from + 16, word("SIMPLE"), 8);
	return start(context, &event);
}

static void *p2p(void *context, void *parent, const char *func, int number, int peer,
		 uint64_t count, int channels)
{
	struct event event = new_event(P2P, parent);
	size_t from = version < 4 ? 40 : 24;

	if (version < 4) {
		put(&event, 24, word("a group"), 8);
		put(&event, 32, HASH, 8);
	}
	if (version == 1) {
		put(&event, 40, (uint64_t)number, 1);
		put(&event, 56, 9, 1); /* bfloat16 */
	} else {
		put(&event, from, word(func), 8);
		put(&event, from + 16, word("ncclBfloat16"), 8);
	}
	put(&event, from + 24, count, 8);
	put(&event, from + 32, (uint64_t)peer, 4);
	if (version >= 5)
		put(&event, 60, (uint64_t)channels, 1);
	return start(context, &event);
}

static void *copies(void *context, uint64_t seq)
{
	struct event event = new_event(COPIES, NULL);

	put(&event, 24, seq, 8);
	put(&event, 32, word("AllGather"), 8);
	put(&event, 56, 77, 8);
	put(&event, 64, 0, 4);
	put(&event, 72, word("ncclInt8"), 8);
	return start(context, &event);
}

static void *channel(void *context, void *parent, int number, uint64_t timer)
{
	struct event event = new_event(KERNEL, parent);

	put(&event, 24, (uint64_t)number, 1);
	if (version >= 4)
		put(&event, 32, timer, 8);
	return start(context, &event);
}

static void stop(void *handle)
{
	if (profiler->stop(handle))
		abort();
}

static void end_channel(void *handle, uint64_t timer)
{
	if (!handle)
		return;
	if (version >= 4 && profiler->record(handle, CHANNEL_STOP, &timer))
		abort();
	stop(handle);
}

static void *group(void *context)
{
	struct event event = new_event(GROUP, NULL);

	return start(context, &event);
}

/* The call of a collective, since version 5. */
static void *call(void *context, bool captured)
{
	struct event event = new_event(COLL_CALL, NULL);

	put(&event, 24, word("AllReduce"), 8);
	put(&event, 64, captured, 1);
	return start(context, &event);
}

static void *new_comm(int rank, const char *name)
{
	void *context = (void *)(uintptr_t)1;
	int *mask = &masks[which], wanted, status;

	if (version < 4)
		status = ((int (*)(void **, int *))profiler->init)(&context, mask);
	else if (version == 4)
		status = ((int (*)(void **, int *, const char *, uint64_t, int, int, int,
				   void *))profiler->init)(&context, mask, name, HASH, 1, 4, rank,
							   NULL);
	else
		status = ((int (*)(void **, uint64_t, int *, const char *, int, int, int,
				   void *))profiler->init)(&context, HASH, mask, name, 1, 4, rank,
							   NULL);
	/* Of operations in quick succession another thread may have given up the kernels' events. */
	wanted = __atomic_load_n(mask, __ATOMIC_RELAXED);
	if (status || (wanted | KERNEL) != (expected_mask | KERNEL)) {
		fprintf(stderr, "init: status %d, mask %#x\n", status, (unsigned int)wanted);
		exit(1);
	}
	return context;
}

static void end_comm(void *context)
{
	if (profiler->finalize(context))
		abort();
}

/* As NCCL does it: submitted, and then its thread reports what the kernel did. */
static void all_reduce(void *context, uint64_t seq, int channels)
{
	void *handles[8], *handle = coll(context, NULL, "AllReduce", 4, seq, 1000 + seq, channels);

	if (handle)
		stop(handle);
	for (int i = 0; handle && i < channels; i++)
		handles[i] = channel(context, handle, i, 1000000 * (seq + 1) + (uint64_t)i);
	for (int i = 0; handle && i < channels; i++)
		end_channel(handles[i], 1000000 * (seq + 1) + 500 + (uint64_t)i);
}

/* ---- what it does ---------------------------------------------------------------------------------- */

static void do_all(void)
{
	static const struct {
		const char *name;
		int number;
	} funcs[] = {{"Broadcast", 0},
		     {"Reduce", 1},
		     {"AllGather", 2},
		     {"ReduceScatter", 3},
		     {"AllReduce", 4}};
	void *context = new_comm(3, "a group"), *in_group = group(context), *handle, *send;

	for (uint64_t i = 0; i < 5; i++) {
		handle = coll(context, in_group, funcs[i].name, funcs[i].number, i, 100 * i, 2);
		if (handle) {
			void *first = channel(context, handle, 0, 5000 + i * 1000), *second;

			stop(handle);
			second = channel(context, handle, 1, 5010 + i * 1000);
			end_channel(first, 5900 + i * 1000);
			end_channel(second, 5850 + i * 1000);
		}
	}
	send = p2p(context, in_group, "Send", 6, 1, 64, 1);
	handle = p2p(context, in_group, "Recv", 7, 2, 65, 1);
	if (send) {
		stop(send);
		stop(handle);
		end_channel(channel(context, send, 0, 70000), 70100);
		end_channel(channel(context, handle, 0, 70001), 70101);
	}
	if (version >= 6)
		(void)copies(context, 9);
	if (in_group)
		stop(in_group);
	end_comm(context);
}

#define ROUNDS 3000

struct pair {
	pthread_t submits, reports;
	int rank;
	void *context;
	void *queue[ROUNDS];
};

static void *submit_many(void *data)
{
	struct pair *pair = data;

	cudaSetDevice_(pair->rank % 2);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		void *handle = coll(pair->context, NULL, "AllReduce", 4, i, 1000, 2);

		__atomic_store_n(&pair->queue[i], handle ? handle : (void *)(uintptr_t)1,
				 __ATOMIC_RELEASE);
		if (handle)
			stop(handle);
	}
	return NULL;
}

static void *report_many(void *data)
{
	struct pair *pair = data;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		void *handle, *first, *second;

		while (!(handle = __atomic_load_n(&pair->queue[i], __ATOMIC_ACQUIRE)))
			sched_yield();
		first = channel(pair->context, handle, 0, 1000 * i + 1);
		second = channel(pair->context, handle, 1, 1000 * i + 2);
		end_channel(second, 1000 * i + 900);
		end_channel(first, 1000 * i + 901);
	}
	return NULL;
}

static void do_threads(void)
{
	static struct pair pairs[4];

	for (int i = 0; i < 4; i++) {
		pairs[i].rank = i;
		pairs[i].context = new_comm(i, "many");
		pthread_create(&pairs[i].submits, NULL, submit_many, &pairs[i]);
		pthread_create(&pairs[i].reports, NULL, report_many, &pairs[i]);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(pairs[i].submits, NULL);
		pthread_join(pairs[i].reports, NULL);
		end_comm(pairs[i].context);
	}
}

static void do_full(void)
{
	void *context = new_comm(0, "full"), *first = NULL, *other;
	int without = 0;

	/* Where there are two libraries, all operations are followed. */
	which = 1;
	other = new_comm(0, "other");
	which = 0;

	for (uint64_t i = 0; i < 5000; i++) {
		void *handle = coll(context, NULL, "AllReduce", 4, i, 10, 1);

		without += !handle;
		if (i == 0)
			first = handle;
		if (handle)
			stop(handle);
	}
	printf("without %d\n", without);
	end_comm(context);
	printf("late %d\n", channel(context, first, 0, 1) != NULL);
	end_comm(other);
	context = new_comm(0, "after");
	all_reduce(context, 6000, 2);
	end_comm(context);
}

/* Operations in quick succession: of some the kernel's events are not asked for. */
static void do_paced(void)
{
	void *context = new_comm(0, "paced");
	int asked = 0, before;

	for (uint64_t i = 0; i < 2000; i++) {
		before = __atomic_load_n(&masks[0], __ATOMIC_RELAXED) & KERNEL;
		asked += before != 0;
		stop(coll(context, NULL, "AllReduce", 4, i, 10, 1));
	}
	printf("asked %d\n", asked);
	end_comm(context);
}

static void do_odd(void)
{
	void *context = new_comm(0, NULL), *other = new_comm(1, "no end is heard of it"), *handle,
	     *ch;
	void *wrong[] = {NULL,
			 context,
			 &context,
			 (void *)(uintptr_t)-1,
			 (void *)(uintptr_t)0x15,
			 (void *)(uintptr_t)0xc5a5000000010011ull};
	struct event event;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		stop(wrong[i]);
		(void)profiler->record(wrong[i], CHANNEL_STOP, &event);
		(void)profiler->record(wrong[i], CHANNEL_STOP, NULL);
		printf("parent %d\n", channel(context, wrong[i], 0, 1) != NULL);
		if (wrong[i] != context)
			printf("context %d\n",
			       coll(wrong[i], NULL, "AllReduce", 4, 1, 1, 1) != NULL);
	}
	event = new_event(1 << 5, NULL); /* of NCCL's threads: not asked for */
	printf("unknown %d\n", start(context, &event) != NULL);
	handle = coll(context, NULL, "Unheard", 99, 1, 1, 2);
	stop(handle);
	stop(handle);
	ch = channel(context, handle, 0, 20);
	end_channel(ch, 30);
	if (ch)
		stop(ch);
	end_channel(channel(context, handle, 1, 19), 29);
	printf("over %d\n", channel(context, handle, 1, 19) != NULL);
	stop(handle);
	handle = coll(context, NULL, NULL, 99, 2, 1, 1);
	end_comm(context);
	end_comm(context);
	end_comm(NULL);
	printf("ended %d\n", coll(context, NULL, "AllReduce", 4, 3, 1, 1) != NULL);
	printf("ended %d\n", channel(context, handle, 0, 1) != NULL);
	all_reduce(other, 4, 1);
	for (int i = 0; i < 5000; i++) /* more than may be alive */
		(void)new_comm(i, "many");
}

static void do_fork(void)
{
	void *context = new_comm(0, "parent"), *handle = coll(context, NULL, "Reduce", 1, 1, 1, 1);
	int status;
	pid_t child;

	stop(handle);
	fflush(stdout);
	child = fork();
	if (!child) {
		void *own;

		end_channel(channel(context, handle, 0, 1), 2); /* before its first call */
		cudaSetDevice_(0);
		printf("parent's %d\n", channel(context, handle, 0, 1) != NULL);
		own = new_comm(1, "child");
		all_reduce(own, 5, 2);
		end_comm(own);
		fflush(stdout);
		exit(0);
	}
	waitpid(child, &status, 0);
	printf("child %d\n", status);
	end_channel(channel(context, handle, 0, 100), 200);
	end_comm(context);
}

static void *launch_graph(void *context)
{
	void *captured = version >= 5 ? call(context, true) : NULL;
	void *handle = coll(context, captured, "AllReduce", 4, 0, 1, 1);

	if (captured)
		stop(captured);
	if (handle)
		stop(handle);
	end_channel(channel(context, handle, 0, 1), 2);
	return NULL;
}

static void do_graph(void)
{
	void *context = new_comm(0, "graph");
	pthread_t thread;

	all_reduce(context, 0, 1);
	if (version >= 5 && call(context, false))
		printf("a call that is not captured has a handle\n");
	pthread_create(&thread, NULL, launch_graph, context);
	pthread_join(thread, NULL);
	end_comm(context);
}

static bool kernels_wanted(void)
{
	return __atomic_load_n(&masks[which], __ATOMIC_RELAXED) & KERNEL;
}

static void do_capture(void)
{
	void *context = new_comm(0, "capture"), *captured;
	int before,
		behind; /* some versions look at the mask before they tell of the call, some behind */

	all_reduce(context, 0, 1);
	for (int n = 8; n > 0; n -= 6) {
		before = behind = 0;
		cudaStreamBeginCapture_(NULL, 0);
		for (int i = 0; i < n; i++) {
			before += kernels_wanted();
			captured = version >= 5 ? call(context, true) : NULL;
			behind += kernels_wanted();
			if (captured)
				stop(captured);
		}
		printf("%d captured: %d %d\n", n, before, behind);
	}
	if (version >= 5)
		call(context, false);
	all_reduce(context, 1, 2);
	printf("then: %d\n", kernels_wanted());
	end_comm(context);
}

static void *late_context, *late_handle;

__attribute__((destructor)) static void be_late(void)
{
	if (!late_context)
		return;
	end_channel(channel(late_context, late_handle, 0, 1), 2);
	all_reduce(late_context, 8, 2);
	end_comm(late_context);
}

static void do_late(void)
{
	late_context = new_comm(0, "late");
	all_reduce(late_context, 7, 2);
	late_handle = coll(late_context, NULL, "AllGather", 2, 1, 1, 1);
}

static void do_fewer(void)
{
	const struct timespec a_while = {.tv_nsec = 300000000};
	void *context = new_comm(0, "fewer"),
	     *handle = coll(context, NULL, "AllReduce", 4, 1, 1, 8);

	stop(handle);
	end_channel(channel(context, handle, 0, 10), 20);
	nanosleep(&a_while, NULL);
	all_reduce(context, 2, 1);
	all_reduce(context, 3, 1);
	printf("still there %d\n", channel(context, handle, 1, 1) != NULL);
	end_comm(context);
}

static __attribute__((noinline)) void place_one(void *context)
{
	all_reduce(context, 1, 1);
	__asm__("");
}

static __attribute__((noinline)) void place_two(void *context)
{
	void *handle = coll(context, NULL, "AllGather", 2, 1, 100000, 1);

	if (handle)
		stop(handle);
	__asm__("");
}

static void do_lines(void)
{
	void *context = new_comm(0, "lines");

	for (int i = 0; i < 100; i++)
		place_one(context);
	place_two(context);
	end_comm(context);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* What the thread that submits pays, and what NCCL's own does. */
static void bench(uint64_t n)
{
	void *context = new_comm(0, "bench"), *handles[64];
	uint64_t submits = 0, reports = 0, begin;

	for (uint64_t i = 0; i < n; i += 64) {
		begin = now_ns();
		for (uint64_t k = 0; k < 64; k++) {
			handles[k] = coll(context, NULL, "AllReduce", 4, i + k, 1000, 2);
			if (handles[k])
				stop(handles[k]);
		}
		submits += now_ns() - begin;
		begin = now_ns();
		for (uint64_t k = 0; k < 64; k++) {
			void *first = channel(context, handles[k], 0, i);
			void *second = channel(context, handles[k], 1, i);

			end_channel(first, i + 1);
			end_channel(second, i + 1);
		}
		reports += now_ns() - begin;
	}
	n = (n + 63) / 64 * 64;
	printf("submit %.1f report %.1f\n", (double)submits / (double)n,
	       (double)reports / (double)n);
	end_comm(context);
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {{"all", do_all},     {"threads", do_threads}, {"full", do_full},
	     {"paced", do_paced}, {"odd", do_odd},         {"fork", do_fork},
	     {"graph", do_graph}, {"late", do_late},       {"fewer", do_fewer},
	     {"lines", do_lines}, {"capture", do_capture}};

static const struct profiler *find(void)
{
	const char *named = getenv("NCCL_PROFILER_PLUGIN");
	char symbol[32];
	void *library;

	if (named && strcmp(named, "STATIC_PLUGIN") == 0)
		library = dlopen(NULL, RTLD_NOW);
	else
		library = dlopen(named ? named : "libnccl-profiler.so", RTLD_NOW);
	snprintf(symbol, sizeof(symbol), "ncclProfiler_v%d", version);
	return library ? dlsym(library, symbol) : NULL;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "";

	version = argc > 1 ? atoi(argv[1]) : 0;
	cudaSetDevice_(0);
	profiler = find();
	if (!profiler)
		return 3;
	printf("profiler %s\n", profiler->name);
	expected_mask = COLL | P2P | (version >= 3 ? KERNEL : 0) | (version >= 6 ? COPIES : 0);
	if (strcmp(mode, "bench") == 0 && argc > 3) {
		bench(strtoull(argv[3], NULL, 10));
		return 0;
	}
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(mode, modes[i].name) == 0) {
			modes[i].run();
			cudaStreamSynchronize_(NULL);
			return 0;
		}
	return 2;
}
