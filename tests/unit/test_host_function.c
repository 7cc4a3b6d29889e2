/* links: shim/inspect/host_function.c shim/inspect/per_thread.c */
/*
 * tests/unit/test_host_function.c: functions on the host that a program puts into streams: what CUDA is given in their
 * place, what the program's function gets, and the record of its run; what goes to CUDA as it is, and is counted; full
 * tables, threads of CUDA's that cannot write, windows that begin and end meanwhile, and a forked child.
 */
#include <errno.h>
#include "thread_stubs.h"
#include "cudaspy/function_numbers.h"
#include "inspect/host_function.h"
#include "inspect/inspect.h"
#include "inspect/inspect_common.h"
#include "process/options.h"

#define MOST 2048 /* host_function.c */

/* ---- the rest of the shim ---- */

struct spy_options spy_options;
struct spy_recorded spy_recorded;
uint32_t spy_captures;
static uint64_t opened_at;
static struct spy_slot_page cudas_page;
static bool captured; /* the inspectors know that the stream is */
static int asked_fn; /* which of the driver's functions was asked for */
static int capture_status, capture_result;
static bool has_driver;

uint64_t spy_window_opened_at(void)
{
	return opened_at;
}

struct spy_thread *spy_thread_ready(void)
{
	errno = ENOSPC;
	n_room++;
	if (gets_slot) {
		use_packet(gets_slot, 1);
		gets_slot->page = &cudas_page;
		spy_self = gets_slot;
	}
	return gets_slot;
}

static int is_capturing(uint64_t stream, int *status)
{
	(void)stream;
	*status = capture_status;
	return capture_result;
}

void *spy_resolve_driver(int fn)
{
	asked_fn = fn;
	return has_driver ? (void *)is_capturing : NULL;
}

void inspect_op(struct spy_frame *frame, const struct spy_inspector *self)
{
	frame->details.event = SPY_EV_OP;
	frame->details.stream = stream_arg(frame, self, 0);
	frame->details.captured = captured;
}

/* ---- a program ---- */

static const struct spy_inspector function_row = {.at = {0, 1}},
				  callback_row = {.at = {0, 1}, .a = 1},
				  node_row = {.at = {SPY_NO_ARG, 1}};
static struct spy_slot slot;
static struct spy_frame frame;
static int runs;
static uint64_t takes; /* cycles */
static void (*during)(void);

static void on_host(void *argument)
{
	assert_ptr_equal(argument, &runs);
	runs++;
	now += takes;
	if (during)
		during();
}

static void on_stream(void *stream, int status, void *argument)
{
	assert_int_equal((uintptr_t)stream, 0x77);
	assert_int_equal(status, 9);
	on_host(argument);
}

/* A call that hands one over. */
static void hand_over(uint16_t fn, uint64_t stream, const struct spy_inspector *row)
{
	slot = (struct spy_slot){.fn = fn};
	frame = (struct spy_frame){
		.regs = {stream, (uintptr_t)(row->a ? (void *)on_stream : (void *)on_host),
			 (uintptr_t)&runs},
		.slot = &slot,
		.thread = &thread,
		.caller = 0xabcd123456789abc};
	inspect_host_function(&frame, row);
}

static bool is_replaced(void)
{
	return frame.regs[1] != (uintptr_t)on_host && frame.regs[1] != (uintptr_t)on_stream;
}

/* The call returns; is the function then one that was not looked at? */
static bool is_unwatched(void)
{
	uint64_t before = board.functions_unwatched;

	inspect_host_function_done(&frame, &function_row);
	return board.functions_unwatched != before;
}

static void run(const struct spy_inspector *row)
{
	if (row->a)
		((void (*)(void *, int, void *))frame.regs[1])((void *)0x77, 9,
							       (void *)frame.regs[2]);
	else
		((void (*)(void *))frame.regs[1])((void *)frame.regs[2]);
}

static int begin(void **state)
{
	(void)state;
	begin_session();
	spy_host_functions_forked();
	spy_options = (struct spy_options){0};
	memset(&cudas_page, 0, sizeof(cudas_page));
	thread.tid = 321;
	thread.context = 5;
	thread.device = 2 + 1;
	opened_at = 0;
	captured = false;
	has_driver = true;
	capture_status = capture_result = 0;
	runs = 0;
	takes = 70;
	during = NULL;
	gets_slot = &other_thread;
	return 0;
}

/* On a thread of CUDA's, which has had no call. */
static void be_cuda(void)
{
	spy_self = &empty;
}

static const struct spy_rec_host_function *next_run(void)
{
	return next_record(&other_thread, SPY_EV_HOST_FUNCTION,
			   sizeof(struct spy_rec_host_function));
}

/* ---- records ---- */

static void test_record(void **state)
{
	static const struct {
		const struct spy_inspector *row;
		uint16_t fn;
		uint64_t stream, shown;
	} cases[] = {
		{&function_row, SPY_FN_cudaLaunchHostFunc, 0x77, 0x77},
		{&function_row, SPY_FN_cudaLaunchHostFunc, 0, SPY_STREAM_LEGACY},
		{&callback_row, SPY_FN_cudaStreamAddCallback, 0x77, 0x77},
		{&callback_row, SPY_FN_cudaStreamAddCallback_ptsz, 0, SPY_STREAM_PER_THREAD},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct spy_rec_host_function *record;
		uint64_t handed = now, begun;

		begin(state);
		handed = now;
		hand_over(cases[i].fn, cases[i].stream, cases[i].row);
		assert_true(is_replaced());
		assert_false(is_unwatched());
		be_cuda();
		now += 500;
		begun = now;
		errno = 4711;
		run(cases[i].row);
		assert_int_equal(errno, 4711);
		assert_int_equal(runs, 1);
		record = next_run();
		assert_int_equal(record->time, now);
		assert_int_equal(record->duration, now - begun);
		assert_int_equal(record->tid, 321);
		assert_int_equal(record->fn, cases[i].fn);
		assert_int_equal(record->stream, cases[i].shown);
		assert_int_equal(record->handed, handed);
		assert_int_equal(record->caller, 0x123456789abc);
		assert_int_equal(record->function, (uintptr_t)(cases[i].row->a ? (void *)on_stream
									       : (void *)on_host));
		assert_int_equal(record->context, 5);
		assert_int_equal(record->device, 2);
		no_record(&other_thread);
		/* Its thread is known as one of CUDA's. */
		assert_true(other_thread.serves_cuda);
		/* Again: it has a packet, and room. */
		hand_over(cases[i].fn, cases[i].stream, cases[i].row);
		run(cases[i].row);
		next_run();
		no_record(&other_thread);
		assert_int_equal(n_room, 1);
	}
}

/* A thread of the program's own that runs one, and has made calls, is not CUDA's. */
static void test_programs_thread(void **state)
{
	(void)state;
	hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
	other_thread.page = &page;
	spy_self = &other_thread;
	run(&function_row);
	next_run();
	assert_false(other_thread.serves_cuda);
	assert_int_equal(n_room, 1);
	/* A full packet is changed between calls only. */
	other_thread.depth = 1;
	other_thread.head = spy_thread_limit(&other_thread);
	hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
	run(&function_row);
	assert_int_equal(n_room, 1);
	assert_int_equal(runs, 2);
}

/* ---- what goes to CUDA as it is ---- */

static void test_unwatched(void **state)
{
	enum { CAPTURED, CAPTURING, FAILS, NO_DRIVER, OPTION };

	for (int why = CAPTURED; why <= OPTION; why++) {
		begin(state);
		captured = why == CAPTURED;
		capture_status = why == CAPTURING;
		capture_result = why == FAILS ? 900 : 0;
		has_driver = why != NO_DRIVER;
		spy_options.nofunctions = why == OPTION ? "1" : NULL;
		hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
		assert_false(is_replaced());
		assert_int_equal(frame.regs[2], (uintptr_t)&runs);
		assert_true(is_unwatched());
		assert_int_equal(board.functions_unwatched, 1);
		/* The call failed: there is no such function in any stream. */
		hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
		frame.result = 700;
		assert_false(is_unwatched());
		/* The legacy stream is never captured, and nothing is asked. */
		asked_fn = 0;
		hand_over(SPY_FN_cuLaunchHostFunc, SPY_STREAM_LEGACY, &function_row);
		assert_int_equal(is_replaced(),
				 why == CAPTURING || why == FAILS || why == NO_DRIVER);
	}
	/* Which function is asked depends on the one that was called. */
	begin(state);
	hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
	assert_int_equal(asked_fn, SPY_FN_cuStreamIsCapturing);
	hand_over(SPY_FN_cuLaunchHostFunc_ptsz, 0x77, &function_row);
	assert_int_equal(asked_fn, SPY_FN_cuStreamIsCapturing_ptsz);
}

/* Calls inside of others, without a function, and while recording is dormant: nothing is done, nor counted. */
static void test_left_alone(void **state)
{
	for (int why = 0; why < 3; why++) {
		begin(state);
		spy_recorded_from = why == 0 ? SPY_DORMANT : SPY_RECORDED;
		slot = (struct spy_slot){.fn = SPY_FN_cuLaunchHostFunc};
		frame = (struct spy_frame){
			.regs = {0x77, why == 1 ? 0 : (uintptr_t)on_host, (uintptr_t)&runs},
			.depth = why == 2,
			.slot = &slot,
			.thread = &thread};
		inspect_host_function(&frame, &function_row);
		assert_int_equal(frame.regs[2], (uintptr_t)&runs);
		assert_int_equal(frame.details.address, 0);
		assert_false(is_unwatched());
	}
}

/* Nodes of graphs run with each launch. */
static void test_nodes(void **state)
{
	begin(state);
	hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
	inspect_host_node(&frame, &node_row);
	assert_int_equal(board.functions_unwatched, 1);
	frame.depth = 1;
	inspect_host_node(&frame, &node_row);
	frame.depth = 0;
	spy_recorded_from = SPY_DORMANT;
	inspect_host_node(&frame, &node_row);
	assert_int_equal(board.functions_unwatched, 1);
	assert_int_equal(frame.details.event, SPY_EV_OP);
	spy_host_functions_forked();
	spy_host_functions_count();
	assert_int_equal(board.functions_unwatched, 0);
}

/* As many as there are entries may be on their way at one time, and each is used again. */
static void test_full(void **state)
{
	static uint64_t entries[MOST], given;

	(void)state;
	for (int pass = 0; pass < 2; pass++) {
		runs = 0;
		for (int i = 0; i < MOST; i++) {
			hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
			assert_true(is_replaced());
			entries[i] = frame.regs[2];
			given = frame.regs[1];
			for (int k = 0; k < i; k += 97)
				assert_int_not_equal(entries[k], entries[i]);
		}
		/* Of a call that failed the entry stays taken: perhaps the function runs all the same. */
		frame.result = 700;
		assert_false(is_unwatched());
		hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
		assert_false(is_replaced());
		assert_true(is_unwatched());
		be_cuda();
		frame.regs[1] = given;
		for (int i = 0; i < MOST; i++) {
			frame.regs[2] = entries[i];
			use_packet(&other_thread, 1);
			run(&function_row);
		}
		assert_int_equal(runs, MOST);
	}
}

/* ---- when there is no record ---- */

static void close_window(void)
{
	spy_recorded_from = SPY_DORMANT;
}

static void new_window(void)
{
	opened_at = now;
}

static void be_interrupted(void)
{
	spy_self->reentry_frame = 1;
}

static void fork_meanwhile(void)
{
	spy_self->packet = NULL;
}

/* The function is the program's, and runs in each case. */
static void test_no_record(void **state)
{
	static void (*const meanwhile[])(void) = {close_window, new_window, be_interrupted,
						  fork_meanwhile};

	for (size_t i = 0; i < sizeof(meanwhile) / sizeof(*meanwhile); i++) {
		uint8_t *head;

		begin(state);
		use_packet(&other_thread, 1);
		other_thread.page = &cudas_page;
		spy_self = &other_thread;
		head = other_thread.head;
		hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
		during = meanwhile[i];
		run(&function_row);
		assert_int_equal(runs, 1);
		assert_ptr_equal(other_thread.head, head);
		assert_int_equal(cudas_page.lost, 0);
	}
	/* Dormant when it begins: the thread gets no slot for it. */
	begin(state);
	hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
	be_cuda();
	spy_recorded_from = SPY_DORMANT;
	run(&function_row);
	assert_int_equal(n_room, 0);
	assert_int_equal(runs, 1);
	/* No slot is left. */
	begin(state);
	hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
	be_cuda();
	gets_slot = NULL;
	run(&function_row);
	assert_int_equal(runs, 1);
	/* No room: it is lost, and known to be. */
	begin(state);
	hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
	use_packet(&other_thread, 1);
	other_thread.page = &cudas_page;
	spy_self = &other_thread;
	other_thread.file.room =
		sizeof(struct spy_packet) + sizeof(struct spy_rec_host_function) - 1;
	run(&function_row);
	no_record(&other_thread);
	assert_int_equal(cudas_page.lost, 1);
	other_thread.file.room++;
	hand_over(SPY_FN_cuLaunchHostFunc, 0x77, &function_row);
	run(&function_row);
	next_run();
	assert_int_equal(cudas_page.lost, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_full, begin), /* first: all entries are free */
		cmocka_unit_test_setup(test_record, begin),
		cmocka_unit_test_setup(test_programs_thread, begin),
		cmocka_unit_test_setup(test_unwatched, begin),
		cmocka_unit_test_setup(test_left_alone, begin),
		cmocka_unit_test_setup(test_nodes, begin),
		cmocka_unit_test_setup(test_no_record, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
