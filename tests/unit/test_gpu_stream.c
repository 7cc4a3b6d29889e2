/* links: shim/gpu/gpu.c shim/hook/slots.c */
/*
 * tests/unit/test_gpu_stream.c: the library for times of GPUs, made up here: how it is found and begun, what it may ask, the
 * stream that its records go into, with what each packet and each part begins, and how it gives way.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cudaspy/gpu_library.h"
#include "gpu/gpu.h"
#include "hook/loader.h"
#include "hook/slots.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/kernel_names.h"
#include "record/message.h"
#include "window/plan.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

/* ---- the rest of the shim ---- */

struct spy_options spy_options;
static bool keeps_packets, no_slot, planned;
static int n_lost, n_stream_lost, n_taken;
static char message[300];

bool spy_options_keeps_packets(void)
{
	return keeps_packets;
}

bool spy_window_is_planned(void)
{
	return planned;
}

uint32_t spy_window_state(bool *open)
{
	*open = true;
	return 12;
}

void spy_window_await(uint32_t number)
{
	(void)number;
}

uint32_t spy_kernel_number(const char *name)
{
	return (uint32_t)strlen(name);
}

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	work(data);
}

void spy_message(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
}

void spy_session_count_lost(void)
{
	n_lost++;
}

void spy_thread_count_lost(struct spy_thread *of)
{
	assert_ptr_equal(of, &thread);
	n_stream_lost++;
}

static void (*meanwhile)(void); /* while the stream's lock is held */

struct spy_thread *spy_thread_take(enum spy_stream_kind kind)
{
	assert_int_equal(kind, SPY_STREAM_GPU);
	n_taken++;
	if (meanwhile)
		meanwhile();
	return no_slot ? NULL : &thread;
}

static bool full; /* the next record begins a packet */
static bool no_room;

void *spy_thread_append(struct spy_thread *of, enum spy_event event, size_t bytes)
{
	struct spy_rec_other *record;

	(void)bytes;
	if (no_room)
		return NULL;
	if (full) {
		uint64_t seq = of->packet->seq;

		use_packet(of, 0);
		of->packet->seq = seq + 1;
		full = false;
	}
	record = (struct spy_rec_other *)of->head;
	record->time = now;
	record->event = event;
	return record;
}

void spy_thread_commit(struct spy_thread *of, size_t bytes)
{
	spy_thread_publish(of, now, bytes);
}

/* ---- the library ---- */

static const struct spy_gpu_recorder *recorder;
static struct spy_gpu_windows windows;
static bool starts = true;
static char gave_way[300], opened[300];
static int n_started;

static bool start(const struct spy_gpu_recorder *of, const struct spy_gpu_windows *asked)
{
	recorder = of;
	windows = *asked;
	n_started++;
	return starts;
}

static void give_way(const char *who)
{
	snprintf(gave_way, sizeof(gave_way), "%s", who);
}

static struct spy_gpu_library fake = {
	.version = SPY_GPU_LIBRARY_VERSION, .start = start, .give_way = give_way};
static bool no_library, no_symbol;

static void *open_library(const char *path, int flags)
{
	assert_int_equal(flags, RTLD_NOW | RTLD_LOCAL);
	snprintf(opened, sizeof(opened), "%s", path);
	return no_library ? NULL : &fake;
}

static void *find_symbol(void *handle, const char *name)
{
	assert_ptr_equal(handle, &fake);
	return strcmp(name, SPY_GPU_LIBRARY_SYMBOL) == 0 && !no_symbol ? &fake : NULL;
}

void *(*spy_real_dlopen)(const char *path, int flags) = open_library;
void *(*spy_real_dlsym)(void *handle, const char *name) = find_symbol;

static int begin(void **state)
{
	(void)state;
	begin_session();
	thread.file.part = 1;
	thread.packet->seq = 0;
	n_lost = n_stream_lost = 0;
	message[0] = gave_way[0] = '\0';
	keeps_packets = full = no_room = false;
	return 0;
}

/* ---- begin ---- */

/* In a child, for it begins once in a process. What is said, and whether it started. */
static void expect_begin(const char *said, bool started)
{
	pid_t child = fork();
	int status;

	if (!child) {
		spy_gpu_begin();
		if (said && !strstr(message, said))
			_exit(1);
		if (!said && message[0])
			_exit(2);
		if (n_started != started)
			_exit(3);
		spy_gpu_begin(); /* once */
		_exit(n_started == started ? 0 : 4);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_begin(void **state)
{
	(void)state;
	expect_begin(NULL, false); /* not asked for */
	spy_options.gpu = "1";
	session.state = SPY_SESSION_NONE;
	expect_begin(NULL, false);
	session.state = SPY_SESSION_ACTIVE;
	no_library = true;
	expect_begin("no GPU times: libcudaspy_gpu.so is not beside libcudaspy.so", false);
	no_library = false;
	no_symbol = true;
	expect_begin("no GPU times: libcudaspy_gpu.so is another version's", false);
	no_symbol = false;
	fake.version++;
	expect_begin("is another version's", false);
	fake.version--;
	spy_options.gpu = "often";
	expect_begin("CUDASPY_GPU=often is neither 1 nor like 1s/10s", true);
	spy_options.gpu = "1s/10s";
	planned = true;
	/* And now here. */
	spy_gpu_begin();
	assert_int_equal(n_started, 1);
	assert_true(windows.follow);
	assert_string_equal(message, "");
	assert_non_null(strstr(opened, "/tests/unit/libcudaspy_gpu.so"));
}

/* ---- what it may ask ---- */

static void test_questions(void **state)
{
	bool open = false;

	(void)state;
	assert_true(recorder->submits("cuLaunchKernel"));
	assert_true(recorder->submits("cuMemcpyHtoDAsync_v2"));
	assert_false(recorder->submits("cuInit"));
	assert_false(recorder->submits("cuStreamSynchronize"));
	assert_false(recorder->submits("cudaLaunchKernel")); /* not the driver's */
	assert_false(recorder->submits("cuNothing"));
	assert_int_equal(recorder->kernel("seven77"), 7);
	assert_int_equal(recorder->clock(), now);
	assert_int_equal(recorder->turn(&open), 12);
	assert_true(open);
	assert_null(recorder->symbol(&fake, "other"));
	assert_string_equal(recorder->who_took_slot(), "");
}

/* ---- records ---- */

static struct spy_rec_gpu_op ops[3];

static void write_ops(size_t n)
{
	for (size_t i = 0; i < n; i++)
		ops[i] = (struct spy_rec_gpu_op){
			.event = SPY_EV_GPU_OP, .time = 1, .begin_ns = 100 * i};
	recorder->write(ops, sizeof(ops[0]), n);
}

/* The lock is not to be had. */
static void write_two(void)
{
	meanwhile = NULL;
	recorder->write(ops, sizeof(ops[0]), 2);
}

static void expect_ops(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct spy_rec_gpu_op *op = next_record(&thread, SPY_EV_GPU_OP, sizeof(*op));

		assert_int_equal(op->time, now); /* when it was written */
		assert_int_equal(op->begin_ns, 100 * i);
	}
}

static void expect_begun(void)
{
	assert_int_equal(((const struct spy_rec_gpu_clock *)next_record(
				  &thread, SPY_EV_GPU_CLOCK, sizeof(struct spy_rec_gpu_clock)))
				 ->gpu_ns,
			 77);
	assert_int_equal(((const struct spy_rec_gpu_state *)next_record(
				  &thread, SPY_EV_GPU_STATE, sizeof(struct spy_rec_gpu_state)))
				 ->state,
			 SPY_GPU_ON);
}

static void test_records(void **state)
{
	struct spy_rec_gpu_state on = {.head.event = SPY_EV_GPU_STATE, .state = SPY_GPU_ON};
	struct spy_rec_gpu_clock clock = {.event = SPY_EV_GPU_CLOCK, .gpu_ns = 77};

	(void)state;
	no_slot = true; /* none is left: lost, one by one */
	write_ops(3);
	assert_int_equal(n_lost, 3);
	meanwhile = write_two;
	write_ops(1);
	assert_int_equal(n_lost, 3 + 2 + 1);
	no_slot = false;
	n_taken = 0;
	write_ops(3);
	expect_ops(3);
	recorder->write(&clock, sizeof(clock), 1);
	recorder->write(&on, sizeof(on), 1);
	expect_begun();
	write_ops(1);
	expect_ops(1);
	no_record(&thread);
	assert_int_equal(n_taken, 1);
	/* Other records of the same sizes are neither a clock nor a state; nor are these of other sizes. */
	{
		struct spy_rec_gpu_state other = {.head.event = SPY_EV_NOTE};
		struct spy_rec_gpu_clock beside = {.event = SPY_EV_NOTE};

		recorder->write(&other, sizeof(other), 1);
		recorder->write(&beside, sizeof(beside), 1);
		other.head.event = SPY_EV_GPU_STATE;
		beside.event = SPY_EV_GPU_CLOCK;
		recorder->write(&other, sizeof(other) - 8, 1);
		recorder->write(&beside, sizeof(beside) - 8, 1);
		use_packet(&thread, 0);
	}
	/* The next packet goes on where the one before ended. */
	full = true;
	write_ops(2);
	expect_ops(2);
	no_record(&thread);
	/* Where packets before may be deleted, or in another part, operations mean nothing without the clock and the state. */
	for (int part = 0; part < 2; part++) {
		keeps_packets = !part;
		thread.file.part += (uint32_t)part;
		full = true;
		write_ops(2);
		expect_begun();
		expect_ops(2);
		write_ops(1);
		expect_ops(1);
		no_record(&thread);
	}
	/* No room: lost, and known to be. */
	no_room = true;
	write_ops(2);
	assert_int_equal(n_stream_lost, 2);
	assert_int_equal(n_lost, 6);
	no_room = false;
	/* Not in a forked child, nor when the session is over. */
	session.state = SPY_SESSION_FAILED;
	write_ops(1);
	no_record(&thread);
	session.state = SPY_SESSION_ACTIVE;
	{
		pid_t child = fork();
		int status;

		if (!child) {
			const uint8_t *head = thread.head;

			write_ops(1);
			_exit(thread.head != head);
		}
		waitpid(child, &status, 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(session.lock.owner, 0);
}

/* ---- another tool ---- */

static void test_gives_way(void **state)
{
	(void)state;
	spy_options.gpu = NULL;
	spy_gpu_give_way((const void *)begin);
	assert_string_equal(gave_way, "");
	spy_options.gpu = "1";
	spy_gpu_give_way((const void *)begin); /* in an object that has a name */
	assert_non_null(strstr(gave_way, "test_gpu_stream"));
	assert_string_equal(recorder->who_took_slot(), gave_way);
	spy_gpu_give_way(NULL);
	assert_string_equal(gave_way, "the program");
	assert_non_null(strstr(recorder->who_took_slot(), "test_gpu_stream")); /* the first one */
	gave_way[0] = '\0';
	session.state = SPY_SESSION_FAILED;
	spy_gpu_give_way(NULL);
	assert_string_equal(gave_way, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* In this order: it begins once in a process. */
		cmocka_unit_test_setup(test_begin, begin),
		cmocka_unit_test_setup(test_questions, begin),
		cmocka_unit_test_setup(test_records, begin),
		cmocka_unit_test_setup(test_gives_way, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
